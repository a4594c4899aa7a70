"""Limits on the steps and the time that making a grammar takes, and arguments of wrong types."""

from __future__ import annotations

import contextlib
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from byte_tokens import BYTES
from processor_time import processor_time

import constrain
from constrain import ConstrainError, Deadline, Grammar, GrammarCompiler, LimitError, limits
from constrain.grammar.json_schema.document.document import Document, Location, Resource
from constrain.grammar.json_schema.document.places import Place
from constrain.grammar.json_schema.lexical.texts import Pattern
from constrain.grammar.json_schema.normal.count_texts import few_strings, runs_short
from constrain.grammar.json_schema.normal.nodes import Normal, StringNode, Term
from constrain.grammar.json_schema.normal.satisfiable import may_have_value

# Seconds of work for each part of a front-end, so that a limit of a tenth is reached in the middle of it.
_NAMES = {
    "type": "object",
    "propertyNames": {"allOf": [{"pattern": f"{chr(97 + n % 26)}.{{{n}}}b"} for n in range(60)]},
}
_LONG = {
    "schema": lambda limit: Grammar.from_json_schema(_NAMES, time_limit=limit),
    "numbers": lambda limit: Grammar.from_json_schema({"enum": [n / 7 for n in range(60_000)]}, time_limit=limit),
    "objects": lambda limit: Grammar.from_json_schema({"enum": [{"a": n} for n in range(60_000)]}, time_limit=limit),
    "regex": lambda limit: Grammar.from_regex("|".join(f"w{n}" for n in range(30_000)), time_limit=limit),
    "look-around": lambda limit: Grammar.from_regex(
        "".join(f"(?:(?!{chr(97 + n)}{chr(98 + n)}).)*" for n in range(20)), time_limit=limit
    ),
    "lark": lambda limit: Grammar.from_lark("start: " + " | ".join(f'"w{n}"' for n in range(15_000)), time_limit=limit),
    "gbnf": lambda limit: Grammar.from_gbnf(
        "root ::= " + " | ".join(f'"w{n}"' for n in range(30_000)), time_limit=limit
    ),
    "choices": lambda limit: Grammar.from_choices([f"w{n}" for n in range(200_000)], time_limit=limit),
}


@pytest.mark.parametrize("name", _LONG)
def test_time_limit_in_the_front_end(name: str) -> None:
    with processor_time() as spent, pytest.raises(LimitError, match="time_limit"):
        _LONG[name](0.05)
    assert spent.seconds < 2


@pytest.mark.parametrize("name", ["schema", "lark"])
def test_cancelled_in_the_front_end(name: str) -> None:
    deadline = Deadline()
    timer = threading.Timer(0.2, deadline.cancel)
    timer.start()
    with pytest.raises(LimitError, match="cancelled"):
        _LONG[name](deadline)
    timer.join()
    with pytest.raises(LimitError, match="cancelled"):
        Grammar.from_regex("a", time_limit=deadline)


# Terminals that double, and a rule that is one of a million: Lark writes both out.
_WRITTEN_OUT = {
    "terminals": "start: T0\n" + "".join(f"T{n}: T{n + 1} T{n + 1}\n" for n in range(20)) + 'T20: "x"\n',
    "rules": "start: " + " ".join(f'"a{n}"?' for n in range(20)),
}


@pytest.mark.parametrize("name", _WRITTEN_OUT)
@pytest.mark.parametrize("limit", [None, 0.05])
def test_limits_hold_within_lark(name: str, limit: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if limit is None:
        monkeypatch.setattr("constrain.watched.MOST_SECONDS", 0.05)
    with pytest.raises(LimitError, match="takes more than 0.05 s to read" if limit is None else "time_limit"):
        Grammar.from_lark(_WRITTEN_OUT[name], lexing="longest", time_limit=limit)
    # And no exception comes later.
    monkeypatch.undo()
    for _ in range(5):
        time.sleep(0.01)
    Grammar.from_lark('start: "a"', lexing="longest", time_limit=60)
    deadline = time.monotonic() + 5
    while any(thread.name == "constrain-watch" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_terminals_of_the_longest_match_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("constrain.grammar.lark.longest.MOST_TERMINALS", 3)
    Grammar.from_lark('start: "a" "b" "c"', lexing="longest")
    with pytest.raises(LimitError, match="may have 3 terminals"):
        Grammar.from_lark('start: "a" "b" "c" "d"', lexing="longest")


def test_collisions_of_terminals_are_not_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lark would warn of them; the automata that say so may have 2 to the 40 states."""

    Grammar.from_lark('start: "a"', lexing="longest")  # Lark reads its own notation by a lexer that is made once.

    def search(*_: object) -> None:
        raise AssertionError("collisions are searched for")

    monkeypatch.setattr("lark.lexer._check_regex_collisions", search)
    for lexing in ("longest", "longest-basic"):
        Grammar.from_lark("start: A | B\nA: /[ab]*a/\nB: /a[ab]*/\n", lexing=lexing)


@pytest.mark.parametrize(
    "pattern", [r"\p{" + "a" * 100_000 + "}", "(?P<" + "a" * 100_000 + ">x)(?P=" + "b" * 90_000 + ")"]
)
def test_long_names_are_quoted_in_part(pattern: str) -> None:
    with pytest.raises(ConstrainError) as caught:
        Grammar.from_regex(pattern)
    assert len(str(caught.value)) < 2000
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


# Its conjunction has more states than can be searched for one that is left.
_PATTERNS = [{"pattern": f"^(..)*{chr(97 + n % 26)}.{{{n}}}{chr(98 + n % 24)}(...)*$"} for n in range(60)]


@pytest.fixture
def many_patterns() -> Grammar:
    return Grammar.from_json_schema({"type": "string", "allOf": _PATTERNS})


def test_time_limit_of_compile(many_patterns: Grammar) -> None:
    compiler = GrammarCompiler(BYTES)
    with pytest.raises(LimitError, match="time_limit"):
        compiler.compile(many_patterns, time_limit=0.05)
    assert compiler.nbytes == 0
    # Without the limit there is the other one, of work.
    with pytest.raises(LimitError, match="too long to follow"):
        compiler.compile(many_patterns)
    small = Grammar.from_regex("a+")
    assert compiler.compile(small, time_limit=60) is compiler.compile(small)


def test_cancelled_compile(many_patterns: Grammar) -> None:
    deadline = Deadline(600)
    timer = threading.Timer(0.1, deadline.cancel)
    timer.start()
    with processor_time() as spent, pytest.raises(LimitError, match="cancelled"):
        GrammarCompiler(BYTES).compile(many_patterns, time_limit=deadline)
    assert spent.seconds < 2


def test_a_limit_that_is_kept_changes_nothing() -> None:
    compiler = GrammarCompiler(BYTES)
    deadline = Deadline(600)
    grammar = Grammar.from_json_schema({"type": "string", "pattern": "^a+$"}, time_limit=deadline)
    assert grammar.ir == Grammar.from_json_schema({"type": "string", "pattern": "^a+$"}).ir
    matcher = constrain.Matcher(compiler.compile(grammar, time_limit=deadline))
    assert matcher.accept_bytes(b'"aa"')
    assert matcher.is_accepting()
    assert not limits.has_deadline()


def test_a_deadline_is_for_all_calls_together() -> None:
    deadline = Deadline(0.05)
    time.sleep(0.1)
    for call in (
        lambda: Grammar.from_json_schema({}, time_limit=deadline),
        lambda: Grammar.from_pydantic(int, time_limit=deadline),
        lambda: GrammarCompiler(BYTES).compile(Grammar.from_regex("a"), time_limit=deadline),
    ):
        with pytest.raises(LimitError, match=r"longer than 0\.05 s"):
            call()


@pytest.mark.parametrize("limit", [0, -1, True, "2", float("nan"), [1], 1j])
def test_wrong_time_limits(limit: Any) -> None:
    with pytest.raises(ConstrainError, match="positive number of seconds"):
        Grammar.from_regex("a", time_limit=limit)
    with pytest.raises(ConstrainError, match="positive number of seconds"):
        GrammarCompiler(BYTES).compile(Grammar.from_regex("a"), time_limit=limit)


def test_steps_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_STEPS", 10_000)
    for make in _LONG.values():
        with pytest.raises(LimitError, match=r"10,000 steps"):
            make(None)
    Grammar.from_json_schema({"type": "object", "properties": {"a": {"type": "string"}}})


def test_limits_within_limits() -> None:
    with limits.limited(600), limits.limited(None), limits.limited(Deadline(700)):
        assert limits.has_deadline()
        limits.check()
    outer = Deadline()
    outer.cancel()
    with pytest.raises(LimitError, match="cancelled"), limits.limited(600), contextlib.suppress(LimitError):
        # Searches that catch the LimitError of their own bounds do not catch this one.
        limits.limited(outer).__enter__()
    with (
        pytest.raises(LimitError, match="it takes more than 8,000,000 steps"),
        limits.limited(500, "it"),
        contextlib.suppress(LimitError),
    ):
        limits.spend(1 << 60)
    assert not limits.has_deadline()
    limits.spend(1 << 60)


class _EndsAtLook(Deadline):
    """Over when the clock is read for the n-th time, whatever the time is then."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self._left = looks

    @property
    def ended(self) -> bool:
        return self._left <= 0

    def check(self) -> None:
        self._left -= 1
        if self._left == 0:
            self.cancel()
        super().check()


def _has_value(text: Pattern) -> bool:
    return may_have_value(lambda _: Normal((StringNode("#", terms=(Term(text, "#"),)),)), (Place(),))


_ASKED: dict[str, tuple[str, Callable[[Pattern], object], object]] = {
    "few": ("[a-d]{2}", lambda text: len(few_strings(text, 100) or ()), 16),
    "keys": ("[a-z]+", runs_short, False),
    "none": ("a(?!a|b|)", _has_value, False),
}


@pytest.mark.parametrize("name", _ASKED)
def test_what_was_cancelled_leaves_no_answer_behind(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_SLICE", 1)
    pattern, ask, expected = _ASKED[name]
    looks, ended = 1, True
    while ended:
        looks += 1
        # Nothing is known of this one yet.
        text = Pattern(f"^{name}{looks}{pattern}$")
        deadline = _EndsAtLook(looks)
        with contextlib.suppress(LimitError), limits.limited(deadline):
            ask(text)
        ended = deadline.ended
        assert ask(text) == expected
    assert looks > 8


# -- arguments that are none ----------------------------------------------------------------------


def _endless() -> Iterator[str]:
    while True:
        yield "a"


_WRONG: dict[str, Callable[[], object]] = {
    "a pattern": lambda: Grammar.from_regex(b"a"),  # type: ignore[arg-type]
    "flags": lambda: Grammar.from_regex("a", 5),  # type: ignore[arg-type]
    "Lark": lambda: Grammar.from_lark(None),  # type: ignore[arg-type]
    "Lark's start": lambda: Grammar.from_lark("start: /a/", start=5),  # type: ignore[arg-type]
    "Lark's folder": lambda: Grammar.from_lark("start: /a/", base_path=5),  # type: ignore[arg-type]
    "a folder that cannot be": lambda: Grammar.from_lark("%import .x.y\nstart: y", base_path="\0"),
    "GBNF": lambda: Grammar.from_gbnf(b"x"),  # type: ignore[arg-type]
    "GBNF's start": lambda: Grammar.from_gbnf('root ::= "a"', start=None),  # type: ignore[arg-type]
    "choices": lambda: Grammar.from_choices(5),  # type: ignore[arg-type]
    "endless choices": lambda: Grammar.from_choices(_endless()),  # type: ignore[arg-type]
    "pydantic": lambda: Grammar.from_pydantic(5),
}


@pytest.mark.parametrize("name", _WRONG)
def test_wrong_arguments(name: str) -> None:
    with pytest.raises(ConstrainError) as caught:
        _WRONG[name]()
    assert "\n" not in str(caught.value)


_OPTIONS = (
    *("whitespace", "max_whitespace", "indent", "separators", "property_order", "formats", "lenient", "registry"),
    *("max_work", "ensure_ascii"),
)
_NO_OPTIONS: tuple[Any, ...] = ([1], {}, b"x", object(), ({}, []), np.zeros(3), -1j, 10**30, float("nan"))


@pytest.mark.parametrize("option", _OPTIONS)
@pytest.mark.parametrize("value", _NO_OPTIONS, ids=lambda value: type(value).__name__)
def test_wrong_options(option: str, value: Any) -> None:
    if (option, value if isinstance(value, int) else 0) in (("max_work", 10**30), ("lenient", 10**30)):
        pytest.skip("large, but no wrong type")
    with pytest.raises(ConstrainError) as caught:
        GrammarCompiler(BYTES).compile(Grammar.from_json_schema({}, **{option: value}))
    assert "\n" not in str(caught.value)


def test_choices_of_an_iterator_are_told_apart() -> None:
    compiler = GrammarCompiler(BYTES)
    for word in ("a", "b"):
        grammar = Grammar.from_choices(iter([word]))  # type: ignore[arg-type]
        assert constrain.Matcher(compiler.compile(grammar)).accept_bytes(word.encode())


def test_places_with_the_way_to_them_are_weighed(monkeypatch: pytest.MonkeyPatch) -> None:
    # 30 resources that lead to each other in any order; each order is cheap to count and dear to keep.
    monkeypatch.setattr(limits, "MAX_STEPS", 100_000)
    numbers = range(30)

    def resources(anchors: list[str]) -> Any:
        definitions = {
            f"d{i}": {
                "$id": f"d{i}",
                "$dynamicAnchor": anchors[i],
                "properties": {f"p{j}": {"$ref": f"d{j}"} for j in numbers} | {"z": {"$dynamicRef": f"#{anchors[i]}"}},
            }
            for i in numbers
        }
        return {"$id": "http://a/", "$defs": definitions, "$ref": "d0"}

    made: list[str] = []
    locate = Document.locate

    def counted(self: Document, schema: Any, pointer: str, resource: Resource, depth: int) -> Location:
        made.append(pointer)
        return locate(self, schema, pointer, resource, depth)

    monkeypatch.setattr(Document, "locate", counted)
    with pytest.raises(LimitError, match="100,000 steps"):
        Grammar.from_json_schema(resources([f"n{i}" for i in numbers]))
    assert len(made) < 10_000
    # Of one name the outermost counts, in whatever order the others were entered.
    made.clear()
    Grammar.from_json_schema(resources(["n"] * len(numbers)))
    assert len(made) < 2_500
