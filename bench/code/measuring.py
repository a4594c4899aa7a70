"""One language, all engines: compile, then two programs in parts, each part by one engine after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.code.engines import CANDIDATES
from bench.code.languages import Language
from bench.code.worker import Compile, Compiled, Done, Lost, Part, Player, Restart
from bench.maskbench.figures import concatenate
from bench.maskbench.jobs import Flags, Nanoseconds, Ready
from bench.maskbench.token_list import TokenList
from bench.maskbench.vocabulary import TokenTable

PART = 250
"""Tokens in a part."""

COMPILE_LIMIT_SECONDS = 120.0
PART_LIMIT_SECONDS = 120.0

# An engine that is late but alive stops by itself, and keeps what it has measured.
_GRACE = 3.0


@dataclass(frozen=True)
class Program:
    """A program and its tokens."""

    text: str
    tokens: list[int]
    lengths: list[int]

    @classmethod
    def of(cls, text: str, table: TokenTable | TokenList) -> Program:
        """A given text."""
        tokens, of_ids = table.encode(text), table.tokens
        return cls(text, tokens, [len(of_ids[token]) for token in tokens])

    @classmethod
    def make(cls, language: Language, seed: int, count: int, table: TokenTable | TokenList) -> Program:
        """A whole program of at least ``count`` tokens."""

        def is_long_enough(text: str) -> bool:
            # No program has so many tokens; below it they need not be counted.
            return len(text) >= 2 * count and len(table.encode(text)) >= count

        return cls.of(language.program(seed, is_long_enough), table)

    def place(self, step: int) -> str:
        """Where a token begins: its number, and line and column, all but the first from 1."""
        data = self.text.encode()
        begin = ([0, *accumulate(self.lengths)])[step]
        before = data[:begin].decode(errors="replace")
        line = before.count("\n") + 1
        column = len(before) - (before.rfind("\n") + 1) + 1
        token = data[begin : begin + self.lengths[step]].decode(errors="replace")
        return f"token {step} ({token!r}, line {line}, column {column})"


@dataclass
class ProgramRun:
    """One program run through one engine.

    Attributes
    ----------
    steps : int64[n]
        Nanoseconds of each mask + look-up + accept.
    interrupted, first : bool[n]
        See :class:`bench.maskbench.jobs.Run`.
    message : str
        Why it did not come to the end, if it did not: the place of a token that is refused, an error, the time.
    """

    steps: Nanoseconds
    interrupted: Flags
    first: Flags | None
    message: str
    table_bytes: int | None
    peak_memory: int


@dataclass
class EngineRun:
    """What one engine made of one language.

    Attributes
    ----------
    compile : int
        Nanoseconds from the grammar's text to the first mask; -1 if there is none.
    message : str
        Why there is none.
    programs : list of ProgramRun
        The second one with the same compiled grammar.
    probes : dict of str to str
        The language's small programs that it does not take: at which token, or why.
    """

    name: str
    ready: Ready
    compile: int = -1
    message: str = ""
    programs: list[ProgramRun] = field(default_factory=list)
    probes: dict[str, str] = field(default_factory=dict)


@dataclass
class _Progress:
    """How far an engine is in a program."""

    player: Player
    result: EngineRun
    tokens: list[int]
    answers: list[Done] = field(default_factory=list)
    at: int = 0
    message: str = ""

    def step(self, program: Program, part: int, limit: float, of_processor: bool) -> None:
        """Go through the next ``part`` tokens."""
        tokens = self.tokens[self.at : self.at + part]
        if self.message or not tokens:
            return
        answer = self.player.ask(Part(tokens, limit, of_processor), _GRACE * limit)
        if isinstance(answer, Done):
            self.answers.append(answer)
            last = self.at + len(answer.run.steps) - 1
            if answer.run.error:
                self.message = f"{answer.run.error} at {program.place(self.at + len(answer.run.steps))}"
            elif answer.late:
                self.message = f"{len(answer.run.steps)} of {len(tokens)} tokens after {limit:g} s; stopped there"
            elif not answer.run.accepted:
                fault = f": {answer.fault}" if answer.fault else ""
                self.message = f"refuses {program.place(last)}{fault}"
            self.at += len(tokens)
            if not self.message and self.at == len(program.tokens) and not answer.can_end:
                self.message = "refuses the end of the program"
        elif isinstance(answer, Lost):
            self.message = answer.message

    def finish(self) -> None:
        """Add the program to the engine's result."""
        runs = [answer.run for answer in self.answers]
        first: Flags | None = None
        if runs and all(run.first is not None for run in runs):
            first = _flags([run.first for run in runs if run.first is not None])
        self.result.programs.append(
            ProgramRun(
                concatenate(run.steps for run in runs),
                _flags([run.interrupted for run in runs]),
                first,
                self.message,
                self.answers[-1].table_bytes if self.answers else None,
                self.answers[-1].peak_memory if self.answers else 0,
            )
        )


def _flags(parts: Sequence[npt.NDArray[np.bool_]]) -> Flags:
    return np.concatenate([np.zeros(0, np.bool_), *parts])


def measure(
    language: Language,
    names: Sequence[str],
    programs: Sequence[Program],
    probes: Sequence[Program],
    vocabulary: Path,
    *,
    limits: dict[str, int],
    part: int = PART,
    part_limit: float = PART_LIMIT_SECONDS,
    of_processor: bool = False,
    progress: Callable[[str], None] = lambda text: None,
    players: Callable[[str, Path], Player] = Player,
) -> list[EngineRun]:
    """Run all programs through all engines.

    Parameters
    ----------
    limits : dict of str to int
        How many tokens of the first program an engine is given; it is given no second one then.
    of_processor : bool
        Whether steps are timed by the processor's clock, so that other processes do not count.
    progress : callable
        Called with what is done next.

    Raises
    ------
    bench.maskbench.runner.WorkerFailed
        If an engine does not start.
    """
    workers: list[Player] = []
    try:
        progress("starting the engines")
        workers += (players(name, vocabulary) for name in names)
        for player in workers:
            player.wait()
        results = {player.name: EngineRun(player.name, player.ready) for player in workers}
        for player in workers:
            progress(f"{player.name} compiles")
            result = results[player.name]
            candidate = CANDIDATES[player.name]
            answer = player.ask(Compile(candidate.kind, candidate.grammar(language)), COMPILE_LIMIT_SECONDS)
            result.message = answer.message if isinstance(answer, Compiled | Lost) else ""
            result.compile = answer.nanoseconds if isinstance(answer, Compiled) else -1
        for number, program in enumerate(programs):
            running = [
                _Progress(player, results[player.name], program.tokens[: limits.get(player.name)])
                for player in workers
                if results[player.name].compile >= 0 and not (number and player.name in limits)
            ]
            for each in running:
                each.player.ask(Restart(), COMPILE_LIMIT_SECONDS)
            for turn, begin in enumerate(range(0, len(program.tokens), part)):
                first = turn % max(1, len(running))
                for each in (*running[first:], *running[:first]):
                    progress(f"{each.player.name}, program {number + 1}, token {begin} of {len(program.tokens)}")
                    each.step(program, part, part_limit, of_processor)
            for each in running:
                each.finish()
        for player in workers:
            if results[player.name].compile >= 0:
                progress(f"{player.name}, small programs")
                results[player.name].probes = _refused(player, probes, part_limit)
        return list(results.values())
    finally:
        for player in workers:
            player.kill()


def _refused(player: Player, probes: Sequence[Program], limit: float) -> dict[str, str]:
    """The small programs that an engine does not take, and why."""
    refused = {}
    for probe in probes:
        result = EngineRun(player.name, player.ready)
        player.ask(Restart(), COMPILE_LIMIT_SECONDS)
        run = _Progress(player, result, probe.tokens)
        run.step(probe, len(probe.tokens), limit, of_processor=False)
        if run.message:
            refused[probe.text] = run.message
    return refused
