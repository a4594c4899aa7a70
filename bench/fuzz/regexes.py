"""Kind "regexes": masks of random patterns, token by token, by sets of positions; characters by ``re``."""

from __future__ import annotations

import random
import re
from typing import Any

import constrain
from bench.fuzz import patterns, vocabularies
from bench.fuzz.byte_judge import ByteJudge, walk
from bench.fuzz.characters import characters
from bench.fuzz.protocol import Budget, Counts, Difference, Kind, isolated, smallest

# States of a pattern's judge; patterns with more are left out.
_MOST_STATES = 3000
_ALPHABET = 'abcd019 -_,;=.()+\\"\nKké😀😃ß'


class TooLarge(Exception):
    """The judge gives up."""


class PatternJudge:
    """Judges texts by a pattern: those that match ``made`` as a whole and, if there is ``ahead``, begin with a match of
    that (``(?=...)``), or do not (``(?!...)``).

    A place is (states of the pattern, states of what is ahead, whether that has matched).
    """

    def __init__(self, made: patterns.Tree, ahead: patterns.Tree | None, is_negative: bool) -> None:
        self._machine = patterns.Machine(made)
        self._ahead = None if ahead is None else patterns.Machine(ahead)
        self._is_negative = is_negative
        self._live = self._alive()

    def _begin(self) -> Any:
        ahead = frozenset() if self._ahead is None else self._ahead.start()
        return self._machine.start(), ahead, self._ahead is not None and self._ahead.accepts(ahead)

    def _next(self, place: Any, which: int) -> Any:
        states, ahead, matched = place
        states = self._machine.step(states, which)
        if self._ahead is not None and not matched:
            ahead = self._ahead.step(ahead, which)
            matched = self._ahead.accepts(ahead)
        return states, frozenset() if matched else ahead, matched

    def accepts(self, place: Any) -> bool:
        if not self._machine.accepts(place[0]):
            return False
        return self._ahead is None or place[2] != self._is_negative

    def _alive(self) -> set[Any]:
        """The places from which a text can be finished."""
        first = self._begin()
        before: dict[Any, set[Any]] = {first: set()}
        todo = [first]
        while todo:
            place = todo.pop()
            for which in range(characters().count):
                then = self._next(place, which)
                if not then[0]:
                    continue
                if then not in before:
                    if len(before) >= _MOST_STATES:
                        raise TooLarge
                    before[then] = set()
                    todo.append(then)
                before[then].add(place)
        live = {place for place in before if self.accepts(place)}
        todo = list(live)
        while todo:
            for place in before[todo.pop()]:
                if place not in live:
                    live.add(place)
                    todo.append(place)
        return live

    def start(self) -> Any:
        first = self._begin()
        return first if first in self._live else None

    def step(self, place: Any, which: int) -> Any:
        then = self._next(place, which)
        return then if then in self._live else None


def _agrees_with_re(pattern: str, judge: PatternJudge, rng: random.Random, counts: Counts) -> str:
    """The judge itself, by ``re.fullmatch`` on some texts."""
    compiled = re.compile(pattern)
    for _ in range(6):
        text = "".join(rng.choices(_ALPHABET, k=rng.randrange(6)))
        place = judge._begin()
        for character in text:
            place = judge._next(place, characters().class_of(character))
        counts["texts by re"] += 1
        # Atomic and possessive parts, where re would differ, are not made.
        if judge.accepts(place) != (compiled.fullmatch(text) is not None):
            return f"the judge and re.fullmatch differ on {text!r}"
    return ""


def _simpler(made: patterns.Tree) -> list[patterns.Tree]:
    """Smaller trees, each with a part left out or in place of the whole."""
    kind = made[0]
    if kind == "leaf":
        return [] if made[1] == "a" else [("leaf", "a")]
    if kind == "rep":
        return [made[1], *(("rep", item, *made[2:]) for item in _simpler(made[1]))]
    parts = made[1]
    found = [*parts]
    if len(parts) > 1:
        found += [(kind, parts[:i] + parts[i + 1 :]) for i in range(len(parts))]
    for i, part in enumerate(parts):
        found += [(kind, (*parts[:i], each, *parts[i + 1 :])) for each in _simpler(part)]
    return found


def run(rng: random.Random, budget: Budget) -> Counts:
    counts: Counts = Counts()
    taste = patterns.taste(rng)
    made = patterns.tree(rng, rng.choice((2, 3, 4)), taste)
    ahead = patterns.tree(rng, 2, taste) if rng.random() < 0.2 else None
    is_negative = rng.random() < 0.5
    spelling = rng.randrange(1 << 30)
    alphabet = _ALPHABET.encode()
    vocabulary = vocabularies.small() if rng.random() < 0.2 else vocabularies.random_vocabulary(rng, alphabet, 200)
    choices = [rng.random() for _ in range(rng.choice((4, 8, 16)))]
    check_rng = rng.randrange(1 << 30)

    def pattern_of(made: patterns.Tree) -> str:
        head = "" if ahead is None else f"(?{'!' if is_negative else '='}{patterns.text(ahead)})"
        body = patterns.text(made, random.Random(spelling))
        return f"{head}(?:{body})" if head else body

    def check(made: patterns.Tree, counts: Counts, choices: list[float]) -> str:
        pattern = pattern_of(made)
        try:
            judge = PatternJudge(made, ahead, is_negative)
        except TooLarge:
            counts["patterns too large for the judge"] += 1
            return ""
        wrong = _agrees_with_re(pattern, judge, random.Random(check_rng), counts)
        if wrong:
            return wrong
        counts["patterns"] += 1
        is_empty = judge.start() is None
        try:
            compiled = constrain.CompiledGrammar(constrain.Grammar.from_regex(pattern).ir, vocabulary)
        except constrain.LimitError:
            counts["refused by a limit"] += 1
            return ""
        except constrain.ConstrainError as error:
            if is_empty or "not supported" in str(error):
                counts["refused"] += 1
                return ""
            return f"refused: {error}"
        if is_empty:
            return "it compiles, and matches no text"
        return walk(constrain.Matcher(compiled), ByteJudge(judge), choices, counts)

    wrong = isolated(lambda: check(made, counts, choices))
    if wrong:
        choices, wrong = smallest(choices, lambda fewer: isolated(lambda: check(made, Counts(), fewer)), wrong)
        made, wrong = _smaller(made, lambda less: isolated(lambda: check(less, Counts(), choices)), wrong)
        case = f"pattern = {pattern_of(made)!r}\nchoices = {choices}\ntokens = {vocabulary.tokens!r}"
        raise Difference(wrong, case)
    return counts


def _smaller(made: patterns.Tree, check: Any, wrong: str) -> tuple[patterns.Tree, str]:
    from bench.fuzz import protocol

    tries = 300 if protocol.is_careful else 0
    found = True
    while found and tries > 0:
        found = False
        for less in _simpler(made):
            tries -= 1
            what = check(less) if tries > 0 else ""
            if what:
                made, wrong, found = less, what, True
                break
    return made, wrong


KIND = Kind(
    "regexes",
    "masks token by token by sets of positions of the pattern, whose characters `re` judges",
    run,
    120,
    {"masks": 800, "tokens judged": 100_000},
)
