"""The campaigns of ``python -m bench.fuzz``: they run, and each of their judges finds an error that is planted."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import link_callbacks
import numpy as np
import pytest

import constrain
from bench.fuzz import (
    campaign,
    characters,
    faults,
    kinds,
    patterns,
    protocol,
    schemas_made,
    scripts,
    seams,
    vocabularies,
)
from bench.fuzz.protocol import Budget, Counts, Difference
from bench.judge import Judge
from constrain.engine.compiled_grammar import CompiledGrammar
from constrain.engine.conditions.budget.budget import Budget as Within
from constrain.engine.conditions.limited_rules.gates import Gates
from constrain.engine.conditions.limited_rules.limited_rules import LimitedRules
from constrain.engine.conditions.limited_rules.open_rules import OpenRules
from constrain.engine.matcher import Matcher
from constrain.engine.storage import links, tables


def _run(name: str, cases: int, seed: int = 1) -> Counts:
    kind = kinds.kind(name)
    counts: Counts = Counts()
    for case in range(cases):
        counts.update(kind.run(campaign.rng_of(name, seed, case), Budget()))
    return counts


def _fails(name: str, cases: int) -> Difference:
    with pytest.raises(Difference) as found:
        _run(name, cases)
    return found.value


@pytest.fixture
def wrong_masks(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Matcher], bool]], None]:
    """Turn one token over in the masks of matchers for which a condition holds."""

    def plant(condition: Callable[[Matcher], bool]) -> None:
        fill = Matcher.fill_next_token_bitmask

        def fill_wrongly(self: Matcher, mask: Any, index: int = 0) -> None:
            fill(self, mask, index)
            if condition(self):
                mask[index, 0] ^= 2

        monkeypatch.setattr(Matcher, "fill_next_token_bitmask", fill_wrongly)

    return plant


def test_the_command_runs_and_prints_what_it_checked() -> None:
    command = [
        sys.executable,
        "-m",
        "bench.fuzz",
        "--kind",
        "regexes",
        "--kind",
        "history",
        "--cases",
        "2",
        "--seed",
        "3",
    ]
    said = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert said.returncode == 0, said.stdout + said.stderr
    assert "seed 3" in said.stdout
    assert re.search(r"^all: .*\d+ masks.*seed 3$", said.stdout, re.MULTILINE)


def test_a_case_is_the_same_each_time() -> None:
    assert _run("regexes", 2) == _run("regexes", 2)
    assert _run("lark", 2) == _run("lark", 2)


def test_too_few_checks_are_a_failure(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(campaign, "run_kind", lambda *_: (Counts(masks=3), ""))
    assert campaign._run_ci(["regexes"], 1.0)
    assert "should be" in capsys.readouterr().out


def test_a_crash_is_a_failure_with_the_command_that_repeats_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    _, wrong = campaign.run_kind("regexes", 5, 7, 1, None)
    assert "ended with 1" in wrong
    assert "python -m bench.fuzz --kind regexes --seed 5 --first 7 --cases 1" in wrong


_CASES_THAT_WAIT = """
import random, time
from bench.fuzz import campaign
from bench.fuzz.protocol import Budget, Counts, Kind

waits = iter([2, 0, 1000])

def run(rng: random.Random, budget: Budget) -> Counts:
    time.sleep(next(waits))
    return Counts()

campaign.kind = lambda name: Kind(name, "", run, 3, {})
campaign._work("regexes", 1, 0, 3, None, hangs_after=1)
"""


def test_a_case_that_hangs_ends_its_process() -> None:
    """The first case has longer, since kernels may be compiled in it."""
    said = subprocess.run([sys.executable, "-c", _CASES_THAT_WAIT], capture_output=True, text=True, timeout=120)
    messages = [json.loads(line) for line in said.stdout.splitlines()]
    assert [message["case"] for message in messages if "case" in message] == [0, 1, 2]
    assert len([message for message in messages if "counts" in message]) == 2
    assert said.returncode == 1
    assert "Timeout" in said.stderr


def test_a_case_that_hangs_in_ci_costs_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    class Hung:
        returncode = 1
        stdout = ('{"case": 3}',)

        def __init__(self, command: list[str], **_options: Any) -> None:
            commands.append(command)

        def __enter__(self) -> Hung:
            return self

        def __exit__(self, *_error: object) -> None:
            pass

    monkeypatch.setattr(subprocess, "Popen", Hung)
    assert campaign._run_ci(["regexes"], 1.0)
    assert ["--careful" in command for command in commands] == [False, True]
    for command in commands:
        assert command[command.index("--hangs-after") + 1] == str(campaign._HANGS_IN_CI_AFTER)
    assert sum(campaign._HANGS_IN_CI_AFTER for _ in commands) <= 600


# -- judges ------------------------------------------------------------------------------------------


_JUDGED_FROM_OUTSIDE = ("regexes", "lark", "limited_rules", "few_values")


@pytest.mark.parametrize(
    ("name", "cases"),
    [
        *(("regexes", 8), ("lark", 8), ("limited_rules", 8), ("few_values", 4), ("history", 2), ("budgets", 12)),
        ("threads", 3),
    ],
)
def test_a_wrong_token_in_a_mask_is_found(name: str, cases: int, wrong_masks: Any) -> None:
    if name in _JUDGED_FROM_OUTSIDE:
        wrong_masks(lambda matcher: matcher.steps == 2)
    else:
        # Only where a matcher went back, so that fresh ones, the judges of histories, are right.
        rollback = Matcher.rollback

        def remember(self: Matcher, count: int = 1) -> None:
            rollback(self, count)
            self.__dict__["went_back"] = True

        Matcher.rollback = remember  # type: ignore[method-assign]
        wrong_masks(lambda matcher: matcher.__dict__.get("went_back", False))
    try:
        assert re.search("mask|leads nowhere", str(_fails(name, cases))) or name == "budgets"
    finally:
        if name not in _JUDGED_FROM_OUTSIDE:
            Matcher.rollback = rollback  # type: ignore[method-assign]


_LIMITS = ("maxLength", "maximum", "maxItems", "minLength", "minimum", "minItems", "pattern")


@pytest.mark.parametrize(
    ("name", "cases", "left_out", "said"),
    [
        ("schemas", 100, _LIMITS, "is not valid"),
        ("applicators", 30, ("not", "unevaluatedProperties"), "is not valid"),
        ("near_repeats", 30, ("uniqueItems",), "is not valid"),
        ("few_values", 20, ("uniqueItems", "maxItems", "minProperties"), "leads nowhere"),
    ],
)
def test_texts_that_are_not_valid_are_found(
    monkeypatch: pytest.MonkeyPatch, name: str, cases: int, left_out: tuple[str, ...], said: str
) -> None:
    make = constrain.Grammar.from_json_schema.__func__  # type: ignore[attr-defined]

    def without_limits(cls: Any, schema: Any, **options: Any) -> Any:
        if isinstance(schema, dict):
            schema = {key: value for key, value in schema.items() if key not in left_out}
        return make(cls, schema, **options)

    monkeypatch.setattr(constrain.Grammar, "from_json_schema", classmethod(without_limits))
    assert said in str(_fails(name, cases))


def test_texts_that_pydantic_does_not_read_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    make = constrain.Grammar.from_pydantic.__func__  # type: ignore[attr-defined]
    any_value = classmethod(lambda cls, given, **options: make(cls, object))
    monkeypatch.setattr(constrain.Grammar, "from_pydantic", any_value)
    assert "is not read" in str(_fails("python_types", 8))


def test_valid_instances_that_are_refused_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    make = constrain.Grammar.from_json_schema.__func__  # type: ignore[attr-defined]
    monkeypatch.setattr(
        constrain.Grammar,
        "from_json_schema",
        classmethod(lambda cls, schema, **options: make(cls, {"allOf": [schema, {"type": "object"}]}, **options)),
    )
    assert re.search("and refused|is valid", str(_fails("schemas", 40)))


def test_a_budget_that_is_not_kept_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    restrict = Within.restrict
    monkeypatch.setattr(Within, "restrict", lambda self, *args: _without(self, lambda: restrict(self, *args)))
    _fails("budgets", 20)


def test_limited_rules_that_go_on_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LimitedRules, "_may_close", staticmethod(lambda *args: False))
    assert "is wrong in" in str(_fails("limited_rules", 10))


def test_limited_rules_that_end_too_soon_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def init(self: Any, compiled: Any) -> None:
        before(self, compiled)
        self.limits = tuple(
            limit if limit.tokens is None else limit._replace(tokens=max(1, limit.tokens - 1)) for limit in self.limits
        )

    before = OpenRules.__init__
    monkeypatch.setattr(OpenRules, "__init__", init)
    assert re.search("is wrong in|refused", str(_fails("limited_rules", 10)))


def test_limited_rules_that_end_before_their_time_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Gates.least
    monkeypatch.setattr(Gates, "least", lambda self, instance: max(1, before(self, instance) - 1))
    assert re.search("is wrong in|refused", str(_fails("limited_rules", 20)))


def _without(budget: Any, call: Callable[[], None]) -> None:
    """A budget that believes it has one token more than it has."""
    account = budget.account
    budget.account = account._replace(left=account.left + 1)
    try:
        call()
    finally:
        budget.account = account


def _two_calls(*steps: scripts.Step) -> tuple[scripts.Case, scripts.Reference]:
    source = scripts.SOURCES[0]
    return scripts.Case(source, "small", steps), scripts.Reference(source, vocabularies.small())


def test_a_failure_that_leaves_something_half_done_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    accept = Matcher.accept_token

    def half(self: Matcher, token: int) -> bool:
        taken = accept(self, token)
        injected("behind the step")
        return taken

    injector = seams.Injector()

    def injected(where: str) -> None:
        if injector.fails(where):
            raise MemoryError(where)

    monkeypatch.setattr(Matcher, "accept_token", half)
    case, reference = _two_calls(("begin", None), ("token", 0, ord("[")))
    injector.begin(1, False)
    wrong = faults.play(case, reference, injector, Counts(), _options())
    assert "behind the step" in wrong
    assert "text b'['" in wrong


def _options() -> Any:
    return faults.Options(in_compile=False, lasting=False, is_small=False)


@pytest.fixture
def interrupts() -> Iterator[Any]:
    """The module, while SIGINT is a KeyboardInterrupt."""
    from bench.fuzz import interrupts

    before = signal.signal(signal.SIGINT, interrupts._handler)
    yield interrupts
    signal.signal(signal.SIGINT, before)


def test_interrupts_come_wherever_python_lets_them_through(interrupts: Any) -> None:
    matcher = CompiledGrammar(constrain.Grammar.from_regex("a*").ir, vocabularies.small()).recognizer()
    interrupter = interrupts.Interrupter()
    interrupter.call(matcher.try_push_byte, (ord("a"),), 0)
    points = interrupter.count
    assert points > 3
    seen = set()
    for point in range(1, points + 1):
        try:
            interrupter.call(matcher.try_push_byte, (ord("a"),), point)
        except KeyboardInterrupt as error:
            # The last frame is the handler's.
            *_, (frame, line), _ = traceback.walk_tb(error.__traceback__)
            seen.add((frame.f_code.co_name, line))
        assert interrupter.where
        assert sys.gettrace() is None
    assert len(seen) > 2


def test_a_lock_that_is_left_held_is_found(interrupts: Any) -> None:
    compiled = CompiledGrammar(constrain.Grammar.from_regex("a*").ir, vocabularies.small())
    locksmith = interrupts.Locksmith()
    assert locksmith.wrong(compiled, compiled.vocabulary) == ""
    with compiled.lock:
        assert locksmith.wrong(compiled, compiled.vocabulary) == "a lock is held for ever"


def test_a_step_that_an_interrupt_tears_is_found(interrupts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    accept = Matcher.accept_token

    def torn(self: Matcher, token: int) -> bool:
        self._steps += 1
        taken = accept(self, token)
        self._steps -= 1
        return taken

    torn.__code__ = torn.__code__.replace(co_filename=accept.__code__.co_filename)
    monkeypatch.setattr(Matcher, "accept_token", torn)
    case, reference = _two_calls(("begin", None), ("token", 0, ord("[")))
    found = [interrupts.play(case, reference, Counts(), (1, point)) for point in range(1, 12)]
    assert any("steps" in wrong or "Error" in wrong for wrong in found)


# -- what campaigns are made of ------------------------------------------------------------------------


def test_the_judge_of_patterns_agrees_with_re() -> None:
    rng = random.Random(5)
    for _ in range(60):
        made = patterns.tree(rng, 3)
        machine, compiled = patterns.Machine(made), re.compile(patterns.text(made, rng))
        for _ in range(20):
            text = "".join(rng.choices("abcd01é😀 .K\n", k=rng.randrange(5)))
            states = machine.start()
            for character in text:
                states = machine.step(states, characters.characters().class_of(character))
            assert machine.accepts(states) == (compiled.fullmatch(text) is not None), (compiled.pattern, text)


def test_characters_that_have_begun() -> None:
    found = characters.characters()
    assert found.begun(b"\xff") is None
    assert found.begun(b"\xed\xa0") is None  # a surrogate
    assert found.begun(b"\xc3") == frozenset(found.ids[0xC0:0x100].tolist())
    assert found.begun("é".encode()) == frozenset([found.class_of("é")])


def test_a_case_is_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(steps: list[int]) -> str:
        return "wrong" if {3, 17} <= set(steps) else ""

    assert protocol.smallest(range(20), check, "wrong")[0] == list(range(20))
    monkeypatch.setattr(protocol, "is_careful", True)
    assert protocol.smallest(range(20), check, "wrong") == ([3, 17], "wrong")


def test_a_crash_in_a_careful_run_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "is_careful", True)

    def crash() -> str:
        protocol.note("in a test")
        signal.raise_signal(signal.SIGKILL)
        return ""

    assert protocol.isolated(crash) == "the process crashes (status 9) in a test"
    assert protocol.isolated(lambda: "wrong") == "wrong"


def test_small_tables_grow_and_give_the_same_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    case, reference = _two_calls(("begin", None), *[("token", 0, ord(sign)) for sign in '[[{"a":1},'])
    grow = tables.Tables.grow
    grown: list[int] = []
    monkeypatch.setattr(tables.Tables, "grow", lambda self: (grow(self), grown.append(grown.pop() + 1)))
    for patch in (seams.nothing(), seams.small_tables()):
        grown.append(0)
        with patch:
            run = scripts.Run(case, reference)
            run.compile()
            for step in case.steps:
                call = run.prepare(step)
                assert call is not None
                assert run.finish(step, call[0](*call[1])) == ""
            assert run.wrong() == ""
    assert grown[1] > grown[0] + 10


def test_large_vocabularies_reach_the_accelerators() -> None:
    vocabulary = vocabularies.large()
    trie = vocabulary.trie
    assert vocabulary.size > 8192
    assert len(trie.wide) > 10
    assert len(trie.subtrees) > 10
    assert np.max(trie.size) > 1000


def test_thresholds_are_set_low_from_outside() -> None:
    tokens = [b"a", b"ab", b"ac", b"acd", b"b", b"bb"]
    usual = constrain.Vocabulary(tokens)
    with seams.low_thresholds():
        low = constrain.Vocabulary(tokens)
    assert len(usual.trie.wide_ends) == 1  # the root alone
    assert len(low.trie.wide_ends) == 2
    assert len(low.trie.subtrees) > len(usual.trie.subtrees)


def test_an_accelerator_that_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    # One that takes every subtree for nothing at all stands for an accelerator that loses tokens.
    with link_callbacks.replaced(links.F_SELF_LOOP, lambda _kernel, _a, _b: 0):
        assert "without self_loops" in str(_fails("accelerators", 6))
        assert "the mask allows [] wrongly, and forbids" in str(_fails("shared_masks", 6))


def test_schemas_and_instances_meet() -> None:
    rng = random.Random(2)
    valid = 0
    for _ in range(60):
        schema = schemas_made.schema(rng)
        for _ in range(5):
            valid += Judge(schema).verdict(json.dumps(schemas_made.instance(rng, schema))) == ""
    assert valid > 100


def test_an_error_that_a_damaged_file_should_not_cause_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _run("damaged_files", 1)["errors"] > 20

    def careless(text: str) -> bool:
        raise KeyError(text)

    monkeypatch.setattr("constrain.tokenizers.formats.json_pieces.byte_tokens", careless)
    assert "KeyError" in _fails("damaged_files", 3).what
