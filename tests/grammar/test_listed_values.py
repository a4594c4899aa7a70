"""Long lists in ``enum``: as a tree they are what they are one by one."""

from __future__ import annotations

import itertools
import json
import random
from decimal import Decimal
from typing import Any

import pytest
from byte_tokens import BYTES, fits
from processor_time import processor_time

import constrain
from constrain import Grammar, GrammarCompiler, LimitError, Matcher, SchemaError
from constrain.grammar.json_schema.lexical.numbers import NumberForm, number_language
from constrain.grammar.json_schema.writing.listed_values import MIN_LISTED
from constrain.grammar.languages.derivatives import Automaton
from constrain.grammar.languages.prefix_tree import tree_of
from constrain.grammar.languages.regular import complement, intersect, union

COMPILER = GrammarCompiler(BYTES)

_SCALARS = (None, True, False, 0, 1, -3, 2.5, 1e20, -1.5e-7, "", "a", "ab", 'é"\\\n', "😀")


def _values(seed: int, count: int) -> list[Any]:
    rng = random.Random(seed)

    def value(depth: int) -> Any:
        kind = rng.randrange(4 if depth else 2)
        if kind < 2:
            return rng.choice(_SCALARS)
        size = rng.randrange(4)
        if kind == 2:
            return [value(depth - 1) for _ in range(size)]
        return {rng.choice(("a", "b", "é", "a b", "aa")): value(depth - 1) for _ in range(size)}

    return [rng.choice(([], {}))] + [[value(2)] if n % 2 else {"k": value(2)} for n in range(count)]


def _accepts(grammar: Grammar, text: str) -> bool:
    return fits(COMPILER.compile(grammar), text)


_LAYOUTS: tuple[dict[str, Any], ...] = (
    {},
    {"whitespace": "compact"},
    {"indent": 2},
    {"separators": (", ", ": ")},
    {"ensure_ascii": True},
)


@pytest.mark.parametrize("options", _LAYOUTS, ids=str)
@pytest.mark.parametrize("place", ["root", "member", "item"])
def test_listed_values_are_those_one_by_one(options: dict[str, Any], place: str) -> None:
    values = _values(5, 3 * MIN_LISTED)

    def schema(value: dict[str, Any]) -> dict[str, Any]:
        if place == "member":
            return {"type": "object", "properties": {"v": value}, "required": ["v"], "additionalProperties": False}
        return {"type": "array", "items": value, "minItems": 1, "maxItems": 2} if place == "item" else value

    def within(value: Any) -> Any:
        return {"v": value} if place == "member" else [value] if place == "item" else value

    grammar = Grammar.from_json_schema(schema({"enum": values}), **options)
    few = [Grammar.from_json_schema(schema({"enum": list(some)}), **options) for some in _in_parts(values)]
    rng = random.Random(1)
    accepted = 0
    for value in values + _values(6, 40):
        for dump in (_dump(within(value), options), json.dumps(within(value), ensure_ascii=False)):
            for text in (dump, dump.replace("a", "\\u0061"), dump.replace(":", " :"), _changed(dump, rng)):
                expected = any(_accepts(one, text) for one in few)
                assert _accepts(grammar, text) == expected, text
                accepted += expected
    assert accepted > 40


def _in_parts(values: list[Any]) -> list[list[Any]]:
    size = MIN_LISTED - 1
    return [values[begin : begin + size] for begin in range(0, len(values), size)]


def _dump(value: Any, options: dict[str, Any]) -> str:
    separators = options.get("separators", (",", ":") if options.get("whitespace") else None)
    ascii_only = bool(options.get("ensure_ascii"))
    return json.dumps(value, indent=options.get("indent"), separators=separators, ensure_ascii=ascii_only)


def _changed(text: str, rng: random.Random) -> str:
    place = rng.randrange(len(text))
    return text[:place] + rng.choice('ab"0,:[]{} ') + text[place + rng.randrange(2) :]


def test_masks_of_listed_values() -> None:
    values = [{"a": n, "b": [n % 3]} for n in range(40)]
    grammar = Grammar.from_json_schema({"enum": values}, whitespace="compact")
    texts = [json.dumps(value, separators=(",", ":")) for value in values]
    matcher = Matcher(COMPILER.compile(grammar))
    mask = constrain.allocate_token_bitmask(1, BYTES.size)
    beginnings = {text[:size] for text in texts for size in range(len(text))}
    for prefix in sorted(beginnings)[::7]:
        matcher.reset()
        assert matcher.accept_bytes(prefix.encode())
        matcher.fill_next_token_bitmask(mask)
        for byte in range(0x20, 0x7F):
            after = Matcher(COMPILER.compile(grammar))
            expected = after.accept_bytes(prefix.encode() + bytes([byte]))
            assert bool(mask[0, byte // 32] >> byte % 32 & 1) == expected
            if prefix + chr(byte) in beginnings:
                assert expected


def test_listed_values_that_must_differ() -> None:
    values: list[Any] = [{"a": n} for n in range(20)] + [[n] for n in range(20)] + [1, "x"]
    unique = Grammar.from_json_schema({"type": "array", "uniqueItems": True, "items": {"enum": values}})
    for first, second in itertools.product([values[0], values[3], values[25], 1, "x"], repeat=2):
        assert _accepts(unique, json.dumps([first, second])) == (first != second)
    assert not _accepts(unique, json.dumps([{"a": 77}]))
    repeated = Grammar.from_json_schema({"type": "array", "items": {"enum": values}, "not": {"uniqueItems": True}})
    for first, second in itertools.product([values[0], values[25], "x"], repeat=2):
        assert _accepts(repeated, json.dumps([first, second])) == (first == second)
    many = Grammar.from_json_schema({"uniqueItems": True, "items": {"enum": [[n] for n in range(3000)]}})
    with pytest.raises(LimitError, match="uniqueItems over more than"):
        _accepts(many, "[[1],[2],")


def test_listed_values_beside_other_keywords() -> None:
    values = [{"a": n, "b": "x"} for n in range(100)]
    for beside, allowed in (
        ({"type": "object"}, range(100)),
        ({"type": ["object", "null"]}, range(100)),
        ({"properties": {"a": {"minimum": 90}}}, range(90, 100)),
        ({"not": {"const": values[0]}}, range(1, 100)),
        ({"anyOf": [{"enum": values[:10]}, {"enum": values[5:30]}]}, range(30)),
        ({"maxProperties": 2, "required": ["b"]}, range(100)),
    ):
        grammar = Grammar.from_json_schema({"enum": values, **beside})
        assert [n for n in range(100) if _accepts(grammar, json.dumps(values[n]))] == list(allowed)
    with pytest.raises(SchemaError):
        Grammar.from_json_schema({"enum": values, "type": "array"})


@pytest.mark.parametrize("form", NumberForm)
def test_one_number_is_what_lies_between_two_bounds(form: NumberForm) -> None:
    rng = random.Random(2)
    texts = ["0", "1", "-1", "0.5", "-12.25", "1e16", "-1.25e20", "123456789012345678", "12345678901234567891", "1e-5"]
    texts += ["-3.25e-7", "1e-4", "0.00012", "9.99e15", "1e308", "1e309", "5e-324", "1e-324", "1.7976931348623157e308"]
    texts += [f"{rng.randrange(-999, 999)}e{rng.randrange(-9, 19)}" for _ in range(9)]
    for value in map(Decimal, texts):
        alone = number_language(form, value, False, value, False)
        # What is not below and not above.
        both = intersect(number_language(form, value), number_language(form, None, False, value))
        for left, right in ((alone, both), (both, alone)):
            assert Automaton(intersect(left, complement(right))).is_empty(50_000) is True, value


def test_the_tree_of_languages_is_their_union() -> None:
    rng = random.Random(3)
    some = [Decimal(rng.randrange(-500, 500)).scaleb(rng.randrange(-8, 3)) for _ in range(60)]
    languages = [number_language(NumberForm.ANY, value, False, value, False) for value in some]
    tree, flat = tree_of(languages), union(*languages)
    for left, right in ((tree, flat), (flat, tree)):
        assert Automaton(intersect(left, complement(right))).is_empty(100_000) is True


@pytest.mark.parametrize(
    "values",
    [
        [n / 7 for n in range(30_000)],
        [(n + 1) * 1e-9 for n in range(30_000)],
        [f"s{n}" for n in range(30_000)],
        [{"a": n, "b": [n]} for n in range(30_000)],
        [[n, f"s{n}", {"k": n}, n / 3][n % 4] for n in range(30_000)],
    ],
    ids=["numbers", "small numbers", "strings", "objects", "mixed"],
)
def test_long_lists_take_little_time(values: list[Any]) -> None:
    with processor_time() as spent:
        matcher = Matcher(GrammarCompiler(BYTES).compile(Grammar.from_json_schema({"enum": values})))
        mask = constrain.allocate_token_bitmask(1, BYTES.size)
        matcher.fill_next_token_bitmask(mask)
    assert spent.seconds < 8
    assert matcher.accept_bytes(json.dumps(values[12_345]).encode())
    assert matcher.is_accepting()


def test_many_exclusions_and_demands_take_little_time() -> None:
    with processor_time() as spent:
        words = Grammar.from_json_schema({"allOf": [{"not": {"const": f"w{n}"}} for n in range(4000)]})
        assert not _accepts(words, '"w77"')
        assert _accepts(words, '"w4000"')
        numbers = Grammar.from_json_schema({"type": "number", "not": {"enum": list(range(5000))}})
        assert not _accepts(numbers, "77")
        assert not _accepts(numbers, "77.0")
        assert _accepts(numbers, "77.5")
        assert _accepts(numbers, "5000")
        assert _accepts(numbers, "1e20")
        contains = [{"contains": {"const": n}, "maxContains": 3} for n in range(9)]
        with pytest.raises(LimitError, match="5000 states"):
            Grammar.from_json_schema({"type": "array", "allOf": contains})
    assert spent.seconds < 8
