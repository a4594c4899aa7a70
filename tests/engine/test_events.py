"""Events: at every token, what a full parse of the completed text gives for their pointers."""

from __future__ import annotations

import json
import random
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from processor_time import processor_time

import constrain
from constrain.engine.event_stream import EventStream
from constrain.errors import ConstrainError
from constrain.grammar import json_events
from constrain.grammar.events import Event

PIECES = [
    b'{"',
    b'": "',
    b'", "',
    b'":',
    b'"}',
    b"\xc3\xa9",
    b"\x98\x80",
    b"\\u",
    b"\\ud8",
    b"3d\\ude",
    b"ab",
    b"12",
    b"]}",
    b", ",
]
PIECES += [b'"a": [', b'"], "', b"[[", b"{}", b'""', b"true", b"ull", b".5e", b'\\"', b"\\\\", b'\\\\"', b"\n  "]
VOCABULARY = constrain.Vocabulary([*(bytes((byte,)) for byte in range(256)), b"</s>", *PIECES], eos_ids=[256])
END = 256
ANY_JSON = constrain.GrammarCompiler(VOCABULARY).compile(
    constrain.Grammar.from_json_schema(True, surrounding_whitespace=True, max_whitespace=20)
)
LETTERS = 'ab"\\/~\n\x01é€😀 {}[],:'


def some_text(rng: random.Random) -> str:
    return "".join(rng.choice(LETTERS) for _ in range(rng.choice((0, 1, 2, 3, 9))))


def some_value(rng: random.Random, depth: int = 3) -> Any:
    kind = rng.randrange(8 if depth else 6)
    if kind == 6:
        return [some_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    if kind == 7:
        return {some_text(rng): some_value(rng, depth - 1) for _ in range(rng.randrange(4))}
    return rng.choice((None, True, False, 0, -7, 120, 1e300, -0.5, 2e-7, 10**30)) if kind < 3 else some_text(rng)


def spelled(value: Any, rng: random.Random) -> str:
    """The value as JSON, with escapes here and there."""
    if isinstance(value, str):
        return '"' + "".join(spelled_letter(letter, rng) for letter in value) + '"'
    space = rng.choice(("", " ", "\n  "))
    if isinstance(value, dict):
        members = [f"{spelled(key, rng)}{space}:{space}{spelled(each, rng)}" for key, each in value.items()]
        return "{" + space + f",{space}".join(members) + space + "}"
    if isinstance(value, list):
        return "[" + space + f"{space},{space}".join(spelled(each, rng) for each in value) + "]"
    return json.dumps(value)


def spelled_letter(letter: str, rng: random.Random) -> str:
    if letter in '"\\' or letter < " " or rng.random() < 0.3:
        escaped = json.dumps(letter)[1:-1]
        return escaped if escaped != letter else f"\\u{ord(letter):04X}"
    return letter


def some_tokens(data: bytes, rng: random.Random) -> list[int]:
    """A random way to write some bytes in tokens."""
    tokens, at = [], 0
    while at < len(data):
        fits = [257 + index for index, piece in enumerate(PIECES) if data.startswith(piece, at)]
        token = rng.choice(fits) if fits and rng.random() < 0.7 else data[at]
        tokens.append(token)
        at += len(VOCABULARY.tokens[token])
    return tokens


def parts(value: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    """All values of a parsed text, those within others first."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from parts(inner, f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}")
    yield pointer, value


def shown(events: list[Event]) -> list[tuple[Any, ...]]:
    return [(each.pointer, each.name, each.kind, each.delta, each.value, each.is_complete) for each in events]


KINDS = {
    dict: "object",
    list: "array",
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    type(None): "null",
}


def check_against(whole: dict[str, Any], told: dict[str, str], events: list[Event]) -> list[tuple[str, Any]]:
    """Compare events with a full parse; what is complete with them.  ``told`` grows by their deltas."""
    complete = []
    for event in events:
        assert event.pointer is not None
        assert event.name is None
        value = whole[event.pointer]
        assert event.kind == KINDS[type(value)]
        told[event.pointer] = told.get(event.pointer, "") + event.delta
        if event.is_complete:
            assert event.value == value
            assert type(event.value) is type(value)
            complete.append((event.pointer, event.value))
        elif event.kind == "string":
            assert value.startswith(event.value)
        elif event.kind == "number":
            try:
                assert event.value == json.loads(told[event.pointer])
            except json.JSONDecodeError:
                assert event.value is None
        else:
            assert event.value == {"object": {}, "array": []}.get(event.kind)
        if event.kind == "string":
            assert told[event.pointer] == event.value
    return complete


@pytest.mark.parametrize("seed", range(300))
def test_a_full_parse_says_the_same(seed: int) -> None:
    rng = random.Random(seed)
    text = rng.choice(("", "\n")) + spelled(some_value(rng), rng) + rng.choice(("", " "))
    whole = dict(parts(json.loads(text)))
    matcher = constrain.Matcher(ANY_JSON)
    told: dict[str, str] = {}
    complete: list[tuple[str, Any]] = []
    before: list[list[Event]] = []
    for token in some_tokens(text.encode(), rng):
        assert matcher.accept_token(token)
        before.append(matcher.events())
        complete += check_against(whole, told, before[-1])
        assert matcher.events() == []
    if rng.random() < 0.5:
        # What was taken back comes again, in one call or several.
        count = rng.randrange(len(before) + 1)
        tokens = matcher._steps_taken()[len(before) - count :]
        twin = matcher.fork()
        matcher.rollback(count)
        assert matcher.events() == []
        assert twin.events() == []
        for token in tokens:
            assert isinstance(token, int)
            assert matcher.accept_token(token)
        again = [event for events in before[len(before) - count :] for event in events]
        assert shown(matcher.events()) == shown(again)
    at_end = shown(matcher.fork().events(at_end=True))
    assert matcher.accept_token(END)
    last = matcher.events()
    assert shown(last) == at_end
    assert matcher.events() == []
    complete += check_against(whole, told, last)
    assert complete == list(parts(json.loads(text)))
    # All at once, in steps of bytes.
    matcher.reset()
    data = text.encode()
    half = rng.randrange(len(data) + 1)
    assert matcher.accept_bytes(data[:half])
    assert matcher.accept_bytes(data[half:])
    found = [(each.pointer, each.value) for each in matcher.events(at_end=True) if each.is_complete]
    assert found == list(parts(json.loads(text)))


def test_values_are_worked_out_when_they_are_asked_for_and_stay() -> None:
    matcher = constrain.Matcher(ANY_JSON)
    assert matcher.accept_bytes(b'{"a": [1, "x')
    events = matcher.events()
    assert [each.pointer for each in events] == ["", "/a", "/a/0", "/a/1"]
    assert matcher.accept_bytes(b'y"]}')
    later = matcher.events()
    assert events[-1].value == "x"
    assert events[0].value == {}
    assert later[-1].value == {"a": [1, "xy"]}
    assert repr(later[0]) == "<Event string '/a/1': 'xy'>"
    assert repr(events[-1]) == "<Event string '/a/1': 'x' ...>"


def test_a_text_may_be_nested_deeply_and_a_string_long() -> None:
    matcher = constrain.Matcher(ANY_JSON)
    assert matcher.accept_bytes(b"[" * 5000 + b"]" * 5000)
    events = matcher.events()
    assert len(events) == 10_000
    assert events[-1].pointer == ""
    value, depth = events[-1].value, 1
    while value:
        value, depth = value[0], depth + 1
    assert depth == 5000
    matcher.reset()
    assert matcher.accept_bytes(b'"')
    for _ in range(20_000):
        assert matcher.accept_token(ord("x"))
        matcher.events()
    assert matcher.accept_bytes(b'"')
    assert [each.value for each in matcher.events()] == ["x" * 20_000]


def _read(pieces: list[bytes]) -> list[Event]:
    reader, events = json_events.JsonReader(), []
    place = reader.start
    for piece in pieces:
        place = reader.read(place, piece, None, events)
    return events


def test_events_of_a_text_that_is_nested_deeply_are_small() -> None:
    def kept(depth: int) -> int:
        tracemalloc.start()
        try:
            events = _read([b'{"a":[' * depth])
            assert events[-1].pointer == "/a/0" * (depth - 1) + "/a"
            return tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()

    # With a pointer written out in each of them it was 12 times as much.
    assert kept(4000) < 6 * kept(1000)


def test_a_number_is_read_in_time_proportional_to_its_digits() -> None:
    def seconds(digits: int) -> float:
        pieces = [b"1"] * digits
        found = []
        for _ in range(3):
            with processor_time() as spent:
                events = _read(pieces)
            found.append(spent.seconds)
            assert events[-1].kind == "number"
        return min(found)

    seconds(100)
    # Going back to its first digit for each of them, it was 16 times as long.
    assert seconds(20_000) < 10 * seconds(5000) + 0.05


def test_the_memo_of_a_reader_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("constrain.grammar.json_events._MOST_KNOWN", 3)
    for seed in range(20):
        test_a_full_parse_says_the_same(seed)


def test_another_thread_may_meet_a_state_while_the_memo_is_emptied(monkeypatch: pytest.MonkeyPatch) -> None:
    class Met(json_events._State):
        def clear(self) -> None:
            # The reader of a grammar is that of all its matchers: here another thread reads half of an escape.
            reader._states.setdefault(b"\\", Met(b"\\"))
            super().clear()

    monkeypatch.setattr(json_events, "_MOST_KNOWN", 1)
    monkeypatch.setattr(json_events, "_State", Met)
    reader = json_events.JsonReader()
    place, events = reader.start, list[Event]()
    for key, piece in enumerate((b'["a', b"b", b'"]')):
        place = reader.read(place, piece, key, events)
    assert events[-1].value == ["ab"]


def test_captures_are_events_too() -> None:
    grammar = constrain.Grammar.from_lark('start: (word ",")*\nword[capture="w"]: /[a-zé]+/')
    matcher = constrain.Matcher(constrain.GrammarCompiler(VOCABULARY).compile(grammar))
    found = []
    for byte in "aé,b".encode():
        assert matcher.accept_token(byte)
        found.append(
            [
                (each.name, each.pointer, each.kind, each.delta, each.value, each.is_complete)
                for each in matcher.events()
            ]
        )
    assert found == [
        [("w", None, "capture", "a", "a", False)],
        [("w", None, "capture", "", "a", False)],
        [("w", None, "capture", "é", "aé", False)],
        [("w", None, "capture", "", "aé", True)],
        [("w", None, "capture", "b", "b", False)],
    ]
    twin = matcher.fork()
    matcher.rollback(2)
    assert matcher.events() == []
    assert twin.events() == []
    assert matcher.accept_bytes(b",bc,")
    assert [(each.delta, each.is_complete) for each in matcher.events()] == [("", True), ("bc", True)]
    matcher.reset()
    assert matcher.events() == []


def test_a_capture_is_complete_where_the_text_ends() -> None:
    grammar = constrain.Grammar.from_lark('start: word ("," word)*\nword[capture="w"]: /[a-z]+/')
    matcher = constrain.Matcher(constrain.GrammarCompiler(VOCABULARY).compile(grammar))
    assert matcher.accept_bytes(b"a,b")
    told = matcher.fork().events(at_end=True)
    assert [(each.value, each.is_complete) for each in told] == [("a", True), ("b", False), ("b", True)]
    assert len(matcher.events()) == 2
    assert [(each.delta, each.value, each.is_complete) for each in matcher.events(at_end=True)] == [("", "b", True)]
    # Nothing is kept of it: the text may go on.
    assert matcher.accept_bytes(b"c")
    assert [(each.delta, each.value, each.is_complete) for each in matcher.events()] == [("c", "bc", False)]
    assert matcher.accept_bytes(b",")
    assert [each.value for each in matcher.events(at_end=True)] == ["bc"]
    assert matcher.events() == []


def test_other_grammars_have_no_events() -> None:
    matcher = constrain.Matcher(constrain.GrammarCompiler(VOCABULARY).compile(constrain.Grammar.from_regex("a")))
    with pytest.raises(ConstrainError, match=r"^events\(\) needs a grammar of a JSON Schema or a pydantic model, or"):
        matcher.events()


def test_nothing_is_read_where_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("a step was read")

    monkeypatch.setattr(EventStream, "read", refuse)
    matcher = constrain.Matcher(ANY_JSON)
    assert matcher.accept_bytes(b"[1")
    assert matcher.accept_token(ord("]"))
    matcher.rollback()
    matcher.reset()
