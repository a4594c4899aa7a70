"""``uniqueItems`` over values of every kind, exactly."""

from __future__ import annotations

import itertools
import json
import random
import sys
from collections.abc import Iterable
from typing import Any

import jsonschema
import pytest
from byte_tokens import BYTES, fits
from finite_texts import Texts, compare_masks
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from masks import mask_of
from processor_time import processor_time

import constrain
from constrain.engine import grammar_tables as tables_module
from constrain.engine.storage.schemas import BRANCH_DOTS, BRANCHES, CHILDREN, EXPRESSIONS, SYMBOLS
from constrain.errors import LimitError, SchemaError

TOKENS = [bytes((byte,)) for byte in b'[]{}:,"ab12'] + [
    *(b'",', b'","', b'","a', b'","a"', b'","a"]', b'"a"', b'"a","b"', b"1,", b"1,1", b"1,2", b",1", b",1]", b"2]"),
    *(b'{"a":1}', b'{"a":1},{"a"', b'},{"a":', b'{"a":1},{"a":1}', b"],[", b"[1],[1", b"[[", b"]]", b"[],[]", b"{},"),
    *(b'"a":', b'"b":1', b',"b":', b'":1,"', b'":1,"a":1', b'"]', b'a","a'),
    b"</s>",
]
EOS = len(TOKENS) - 1
VOCABULARY = constrain.Vocabulary(TOKENS, eos_ids=[EOS])


def compiled(schema: Any, vocabulary: constrain.Vocabulary = BYTES, **options: Any) -> constrain.CompiledGrammar:
    return constrain.CompiledGrammar(constrain.Grammar.from_json_schema(schema, **options).ir, vocabulary)


VALUES: list[Any] = ["a", "b", "", 1, 1.0, 2, True, None, [], [1], ["a"], [[1]], {}, {"a": 1}, {"a": 1.0}, {"a": 2}]
VALUES += [{"b": 1}, {"a": 1, "b": 1}, {"b": 1, "a": 1}, {"a": {"b": 1}}, {"a": {"b": 2}}]
VALUES += [[1, 1.0], [1, 2], [2, 1], [[1], ["a", 1]], [["a", "a"]], {"a": [1, 2]}, {"a": [1, 1]}]

ITEMS: list[Any] = [
    {},
    {"type": "string"},
    {"type": "string", "pattern": "^[ab]$"},
    {"type": "number", "minimum": 1},
    {"type": ["string", "integer", "null"]},
    {"type": "array", "items": {"type": "integer"}, "maxItems": 1},
    {"type": "object"},
    {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False},
    {"type": "object", "properties": {"a": {"enum": [1, 2]}, "b": {"const": 1}}, "additionalProperties": False},
    {"type": "object", "properties": {"a": {}, "b": {}}, "minProperties": 1},
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"minLength": 1}}, "additionalProperties": False},
    {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"enum": [1, 2]}},
        "required": ["b"],
        "additionalProperties": False,
    },
    {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 1},
    {"type": "object", "additionalProperties": {"enum": [1, 2]}, "minProperties": 1, "maxProperties": 2},
    {"anyOf": [{"type": "object", "required": ["a"]}, {"type": "object", "maxProperties": 1}, {"type": "boolean"}]},
    {"type": "object", "patternProperties": {"^a": {"type": "integer"}}, "additionalProperties": {"const": 1}},
    {"type": "array", "uniqueItems": True},
    {"type": "array", "items": {"enum": [1, "a"]}, "uniqueItems": True, "minItems": 1},
    {
        "type": "array",
        "items": {"type": "array", "items": {"enum": [1, "a"]}, "uniqueItems": True},
        "uniqueItems": True,
    },
    {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}, "additionalProperties": False},
    {"anyOf": [{"type": "array", "uniqueItems": True}, {"type": "array", "items": {"const": 1}}, {"type": "number"}]},
]


@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize("items", ITEMS, ids=range(len(ITEMS)))
def test_values_of_every_kind(items: Any, order: str) -> None:
    schema = {"type": "array", "items": items, "uniqueItems": True}
    grammar = compiled(schema, property_order=order)
    validator = jsonschema.Draft202012Validator(schema)
    choose = random.Random(1)
    for size in range(4):
        for values in itertools.product(VALUES, repeat=size):
            if size == 3 and choose.random() > 0.1:
                continue
            if order == "schema" and any(isinstance(one, dict) and list(one) != sorted(one) for one in values):
                continue
            assert fits(grammar, json.dumps(values)) == validator.is_valid(list(values)), values


def _instances(value: Any) -> list[Any]:
    """The values that a schema of the strategy below allows."""
    if "enum" in value:
        return list(value["enum"])
    if value["type"] == "array":
        items = _instances(value["items"])
        rows = itertools.permutations if value.get("uniqueItems") else _repeated
        return [list(each) for size in range(value["maxItems"] + 1) for each in rows(items, size)]
    members = []
    for name, schema in value["properties"].items():
        absent = [] if name in value["required"] else [None]
        members.append([*((name, one) for one in _instances(schema)), *absent])
    return [dict(each for each in chosen if each is not None) for chosen in itertools.product(*members)]


def _repeated(items: list[Any], size: int) -> Iterable[tuple[Any, ...]]:
    return itertools.product(items, repeat=size)


def _items() -> st.SearchStrategy[Any]:
    """Schemas of few values, nested."""
    scalars = st.lists(st.sampled_from(["a", "b", "ab", 1, 2, 12]), min_size=1, max_size=3, unique=True)
    leaf = scalars.map(lambda values: {"enum": values})

    def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        arrays = st.builds(lambda items: {"type": "array", "items": items, "maxItems": 1}, inner)
        unique = inner.filter(lambda items: len(_instances(items)) <= 3).map(
            lambda items: {"type": "array", "items": items, "maxItems": 2, "uniqueItems": True}
        )
        objects = st.builds(
            lambda properties, required: {
                "type": "object",
                "properties": properties,
                "required": sorted(required & properties.keys()),
                "additionalProperties": False,
            },
            st.dictionaries(st.sampled_from("ab"), inner, min_size=1, max_size=2).map(
                lambda properties: dict(sorted(properties.items()))
            ),
            st.sets(st.sampled_from("ab")),
        )
        return arrays | unique | objects

    return nested(leaf) | nested(leaf | nested(leaf)) | leaf


@settings(max_examples=120)
@given(
    items=_items(),
    high=st.integers(1, 3),
    low=st.integers(0, 2),
    walks=st.lists(st.lists(st.integers(0, 1000), max_size=12), min_size=1, max_size=4),
)
def test_masks_of_unique_items(masks_compared: Any, items: Any, high: int, low: int, walks: list[list[int]]) -> None:
    """Items of so few values that all arrays can be listed: no mask may lead to where they are used up."""
    values = _instances(items)[:9]
    if len(_instances(items)) > 9:
        high = min(high, 2)
        values = _instances(items)
    schema: dict[str, Any] = {"type": "array", "items": items, "uniqueItems": True, "maxItems": high}
    if low:
        schema["minItems"] = low
    texts = []
    for size in range(low, high + 1):
        chosen = itertools.permutations(values, size)
        texts += [json.dumps(items, separators=(",", ":")).encode() for items in chosen]
    expected = Texts(texts)
    try:
        grammar = compiled(schema, VOCABULARY, whitespace="compact")
    except SchemaError:
        assert not expected.is_viable(b"")
        return
    for walk in walks:
        masks_compared.add(compare_masks(grammar, expected, TOKENS, EOS, [*walk, 0]))


@settings(max_examples=60)
@given(
    items=_items().filter(lambda items: len(_instances(items)) <= 5),
    low=st.integers(0, 3),
    high=st.integers(1, 3),
    walks=st.lists(st.lists(st.integers(0, 1000), max_size=12), min_size=1, max_size=4),
)
def test_masks_of_items_that_must_not_be_unique(
    masks_compared: Any, items: Any, low: int, high: int, walks: list[list[int]]
) -> None:
    schema = {"type": "array", "items": items, "minItems": low, "maxItems": high, "not": {"uniqueItems": True}}
    values = [json.dumps(one, separators=(",", ":")) for one in _instances(items)]
    rows = [row for size in range(low, high + 1) for row in itertools.product(values, repeat=size)]
    expected = Texts([f"[{','.join(row)}]".encode() for row in rows if len(set(row)) < len(row)])
    try:
        grammar = compiled(schema, VOCABULARY, whitespace="compact")
    except SchemaError as error:
        assume("not supported" not in error.reason)
        assert not expected.is_viable(b"")
        return
    for walk in walks:
        masks_compared.add(compare_masks(grammar, expected, TOKENS, EOS, [*walk, 0]))


@pytest.mark.parametrize(
    ("schema", "valid", "invalid"),
    [
        (
            {"type": "array", "not": {"uniqueItems": True}},
            ["[1, 1]", "[{}, 2, {}, 3, 3]", '[{"a": 1}, {"a": 1.0}]', "[[[]], [[]]]"],
            ["[]", "[1]", '[1, "1", [1]]', '[{"a": 1}, {"a": 2}]'],
        ),
        (
            {
                "type": "array",
                "prefixItems": [{"enum": [1, 2]}],
                "items": {"type": "boolean"},
                "not": {"uniqueItems": True},
            },
            ["[1, true, true]", "[2, true, false, true]"],
            ["[1, 1]", "[1, true]", "[1, true, false]"],
        ),
        (
            {"oneOf": [{"uniqueItems": True, "type": "array"}, {"items": {"type": "integer"}, "type": "array"}]},
            ["[1, 1]", '["a"]', '[1, "a"]'],
            ["[]", "[1]", "[1, 2]", '["a", "a"]'],
        ),
        ({"not": {"not": {"uniqueItems": True}}}, ["1", "[]", "[1, 2]"], ["[1, 1]"]),
    ],
)
def test_complements(schema: Any, valid: list[str], invalid: list[str]) -> None:
    grammar = compiled(schema)
    assert all(fits(grammar, text) for text in valid)
    assert not any(fits(grammar, text) for text in invalid)


def test_unique_and_not() -> None:
    with pytest.raises(SchemaError, match=r"uniqueItems \(at #/uniqueItems\) contradicts .*not #/not/uniqueItems"):
        compiled({"type": "array", "uniqueItems": True, "not": {"uniqueItems": True}})
    with pytest.raises(SchemaError, match=r"not #/not/uniqueItems\) with maxItems 1 \(at #/maxItems\)"):
        compiled({"type": "array", "maxItems": 1, "not": {"uniqueItems": True}})


def test_values_that_take_long_to_find_are_not_looked_for() -> None:
    schema = {"type": "object", "properties": {"when": {"type": "string", "format": "date-time"}}, "required": ["when"]}
    with processor_time() as spent:
        grammar = compiled({"type": "array", "items": schema, "uniqueItems": True, "minItems": 3})
        first, second, third = (json.dumps({"when": f"2024-02-2{day}T10:00:00Z"}) for day in (7, 8, 9))
        assert fits(grammar, f"[{first}, {second}, {third}]")
        assert not fits(grammar, f"[{first}, {second}, {first}]")
    assert spent.seconds < 10


def after_items(values: Iterable[Any]) -> constrain.CompiledGrammar:
    """The grammar of arrays of unique items after a text of these items."""
    grammar = compiled({"type": "array", "uniqueItems": True})
    matcher = constrain.Matcher(grammar)
    for index, value in enumerate(values):
        assert matcher.accept_bytes((b"," if index else b"[") + json.dumps(value).encode())
    return grammar


def test_objects_that_lack_the_same_are_one_way() -> None:
    branches = []
    for size in (20, 40):
        grammar = after_items({"a": index} for index in range(size))
        branches.append(grammar._tables.used(BRANCHES))
    # Earlier items that are as different as later ones would make this quadratic.
    assert branches[1] < 2.2 * branches[0]


def work_of_items(schema: Any, values: list[Any], counted: list[range]) -> list[int]:
    """How many functions are called, and elements of tables made, for ranges of the items of a text."""
    grammar = compiled({"type": "array", "uniqueItems": True, "items": schema}, whitespace="compact")
    matcher = constrain.Matcher(grammar)
    calls = 0

    def count(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    def tables() -> int:
        return sum(grammar._tables.used(slot) for slot in (EXPRESSIONS, BRANCH_DOTS, SYMBOLS, CHILDREN))

    work = dict.fromkeys(counted, 0)
    for index, value in enumerate(values):
        data = (b"," if index else b"[") + json.dumps(value, separators=(",", ":")).encode()
        of_range = next((each for each in counted if index in each), None)
        before, calls = tables(), 0
        sys.setprofile(count)
        try:
            assert matcher.accept_bytes(data)
        finally:
            sys.setprofile(None)
        if of_range is not None:
            work[of_range] += calls + tables() - before
    assert not matcher.fork().accept_bytes(b"," + json.dumps(values[0], separators=(",", ":")).encode() + b"]")
    assert matcher.accept_bytes(b"]")
    return list(work.values())


@pytest.mark.parametrize("more", [{}, {"additionalProperties": True}, {"additionalProperties": False}])
@pytest.mark.parametrize("kind", ["integer", "string"])
def test_one_more_object_takes_no_more_work_after_many(kind: str, more: Any) -> None:
    schema = {"type": "object", "properties": {"a": {"type": kind}}, "required": ["a"], **more}
    values = [{"a": index if kind == "integer" else f"x{index}"} for index in range(100, 500)]
    early, late = work_of_items(schema, values, [range(40, 60), range(370, 390)])
    assert late < 1.3 * early


@pytest.mark.parametrize("make", [lambda i: i, lambda i: f"x{i}", lambda i: [i], lambda i: i / 8])
def test_one_more_item_takes_no_more_work_after_many(make: Any) -> None:
    early, late = work_of_items({}, [make(index) for index in range(100, 500)], [range(40, 60), range(370, 390)])
    assert late < 1.3 * early


@pytest.mark.parametrize("make", [lambda i: {"a": i}, lambda i: {"a": i, "b": f"x{i}"}, lambda i: f"word{i}"])
def test_many_items_take_quadratic_time_at_most(make: Any) -> None:
    early, late = work_of_items({}, [make(index) for index in range(100, 300)], [range(20, 30), range(180, 190)])
    # Eight times as many items came before.
    assert late < 8 * early


@pytest.mark.parametrize("kind", [{}, {"maxProperties": 100}, {"additionalProperties": {"type": "integer"}}])
@pytest.mark.parametrize("is_closed", [False, True])
def test_objects_of_the_same_keys_take_quadratic_time_at_most(kind: Any, is_closed: bool) -> None:
    keys = [f"k{index}" for index in range(60)]
    schema = {"type": "object", **kind}
    if is_closed:
        schema |= {"properties": {key: {"type": "integer"} for key in keys}, "additionalProperties": False}
    values = [dict.fromkeys(keys[:-1], 1) | {keys[-1]: index} for index in range(3)]
    (work,) = work_of_items(schema, values, [range(2, 3)])
    # For each key, what may take the place of each that is to come is written down; not what its value may be.
    assert work < 60 * len(keys) ** 2


def test_tokens_that_close_several_items() -> None:
    grammar = compiled({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, VOCABULARY)
    matcher = constrain.Matcher(grammar)
    assert matcher.accept_bytes(b'["a')
    allowed = {TOKENS[token] for token in mask_of(matcher)}
    assert {b'","', b'","a', b"a", b'","b"'} - allowed == {b'","b"'}
    assert b'","a"' not in allowed
    assert b'a","a' in allowed
    assert not matcher.accept_token(TOKENS.index(b'","a"'))
    assert matcher.accept_bytes(b"a")
    assert b'","a"' in {TOKENS[token] for token in mask_of(matcher)}
    assert matcher.accept_token(TOKENS.index(b'","a"'))
    assert not matcher.accept_bytes(b',"a"')
    assert matcher.accept_bytes(b',"b"]')


def test_spelling_does_not_matter() -> None:
    grammar = compiled({"uniqueItems": True}, property_order="any")
    objects = '[{"a": 1, "b": 2}, {"b": 2.0, "\\u0061": 1}]'
    for text in ('["a", "\\u0061"]', "[1, 1.0]", "[100, 1e2]", "[0, -0.0]", objects):
        assert not fits(grammar, text), text
    for text in ('["a", "A"]', "[1, true, null, 0, false]", '["1", 1]', "[[1, 2], [2, 1]]", '[{"a": 1}, {"a": [1]}]'):
        assert fits(grammar, text), text


def test_forced_bytes_go_on_behind_items() -> None:
    items = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"], "additionalProperties": False}
    schema = {"type": "array", "items": items, "uniqueItems": True, "minItems": 2, "maxItems": 2}
    grammar = compiled(schema, whitespace="compact")
    matcher = constrain.Matcher(grammar)
    assert matcher.forced_bytes() == b'[{"'
    # The name may be spelled in several ways, and a number have a fraction.
    assert matcher.accept_bytes(b'[{"a":2}')
    assert matcher.forced_bytes() == b',{"'
    assert matcher.accept_bytes(b',{"a":')
    assert not matcher.fork().accept_bytes(b"2")
    assert matcher.accept_bytes(b"1}]")


def test_long_arrays_roll_back_and_start_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables_module, "_START_OVER_BYTES", 3 << 20)
    monkeypatch.setattr(tables_module, "_COLLECT_BYTES", 0)
    schema = {"type": "array", "items": {"type": ["string", "object"]}, "uniqueItems": True}
    grammar = compiled(schema)
    matchers = [constrain.Matcher(grammar) for _ in range(3)]
    for number in range(60):
        for index, matcher in enumerate(matchers):
            item = f'"{index}{number}"' if number % 3 else f'{{"x": {number}}}'
            assert matcher.accept_bytes(("[" if number == 0 else ", ").encode() + item.encode())
            assert not matcher.fork().accept_bytes(b", " + item.encode())
    assert grammar.generation > 0
    for matcher in matchers:
        matcher.rollback(30)
        assert not matcher.fork().accept_bytes(b', {"x": 0}')
        assert matcher.accept_bytes(b', {"x": 57}]')


def test_what_cannot_be_told_apart_is_refused() -> None:
    for items in (
        {"type": "array", "contains": {"type": "string"}},
        {"type": "array", "prefixItems": [{"type": "string"}], "uniqueItems": True},
        {"type": "array", "not": {"uniqueItems": True}},
    ):
        with pytest.raises(SchemaError, match="uniqueItems") as caught:
            compiled({"type": "array", "items": items, "uniqueItems": True})
        assert caught.value.pointer == "#/uniqueItems"
    grammar = constrain.Grammar.from_json_schema(
        {"type": "array", "items": {"type": "array", "contains": {"const": 1}}, "uniqueItems": True}, lenient=True
    )
    assert "not enforced" in grammar.warnings[0]


def test_what_contains_asks_of_items_is_refused_where_items_are() -> None:
    for part, keywords in (
        ({"type": "array", "contains": {"const": 1}}, {}),
        ({"not": {"type": "array", "contains": {"const": 1}}}, {}),
        ({"type": "array", "not": {"uniqueItems": True}}, {}),
        ({"type": "array", "uniqueItems": True}, {"maxContains": 2}),
        ({"type": "object", "not": {"additionalProperties": {"type": "integer"}}}, {}),
        ({"type": "number", "multipleOf": 17.3}, {}),
    ):
        with pytest.raises(SchemaError, match="uniqueItems is not supported for items that have") as caught:
            compiled({"type": "array", "contains": part, "uniqueItems": True, **keywords})
        assert caught.value.pointer == "#/uniqueItems"


def test_contains_an_array_that_is_unique() -> None:
    schema = {"type": "array", "contains": {"type": "array", "uniqueItems": True}, "uniqueItems": True}
    validator = jsonschema.Draft202012Validator(schema)
    grammar = compiled(schema)
    for size in range(4):
        for values in itertools.product([1, [], [1], [1, 1], [2, 1]], repeat=size):
            assert fits(grammar, json.dumps(values)) == validator.is_valid(list(values)), values


def test_too_few_values() -> None:
    items = {"type": "string", "pattern": "^[ab]?$"}
    assert fits(compiled({"type": "array", "items": items, "uniqueItems": True, "minItems": 3}), '["b", "", "a"]')
    with pytest.raises(SchemaError, match="different"):
        compiled({"type": "array", "items": items, "uniqueItems": True, "minItems": 4})


def test_contains() -> None:
    schema: dict[str, Any] = {
        "type": "array",
        "prefixItems": [{"type": "string"}, {"type": "integer"}],
        "items": {"type": ["string", "integer"]},
        "uniqueItems": True,
    }
    for contains in ({"const": "a"}, {"type": "string", "minLength": 2}):
        validator = jsonschema.Draft202012Validator({**schema, "contains": contains})
        grammar = compiled({**schema, "contains": contains})
        for size in range(5):
            for values in itertools.product(["a", "bb", "cc", 1, 2], repeat=size):
                assert fits(grammar, json.dumps(values)) == validator.is_valid(list(values)), values


BOOLEAN = {"type": "boolean"}


@pytest.mark.parametrize(
    "contains",
    [{"not": {"const": 3}}, {"multipleOf": 2}, {"not": {"multipleOf": 2}}, {"minimum": 3}, {"enum": [2, 4, 7]}],
    ids=str,
)
@pytest.mark.parametrize("least", [1, 2])
@pytest.mark.parametrize("prefix", [[], [{"const": 1}], [{"enum": [1, 3]}]], ids=str)
def test_contains_numbers_of_a_range(contains: Any, least: int, prefix: Any) -> None:
    """Those of a range with a multiple, or without some numbers, were no items that ``contains`` could count."""
    schema = {"type": "array", "items": {"type": "integer", "minimum": 2, "maximum": 5}, "uniqueItems": True}
    schema |= {"contains": contains, "minContains": least, **({"prefixItems": prefix} if prefix else {})}
    grammar, judge = compiled(schema), jsonschema.Draft202012Validator(schema)
    for size in range(4):
        for items in itertools.product(range(1, 6), repeat=size):
            text = json.dumps(list(items))
            assert fits(grammar, text) == judge.is_valid(list(items)), text


PREFIXES: list[Any] = [
    {"prefixItems": [BOOLEAN, BOOLEAN]},
    {"prefixItems": [BOOLEAN, BOOLEAN], "items": False},
    {"prefixItems": [{"enum": [1, True]}, BOOLEAN, BOOLEAN], "minItems": 3},
    {
        "prefixItems": [{}, BOOLEAN, {"enum": ["a", True, False]}],
        "items": {"type": ["string", "integer"]},
        "minItems": 2,
    },
    {"prefixItems": [BOOLEAN, BOOLEAN, BOOLEAN], "minItems": 2},
    {"prefixItems": [{"type": "array"}, {"enum": [[], [1]]}, {"const": [1]}], "maxItems": 4},
]


@pytest.mark.parametrize("keywords", PREFIXES, ids=range(len(PREFIXES)))
def test_values_of_a_prefix_run_out(keywords: Any) -> None:
    schema = {"type": "array", "uniqueItems": True, **keywords}
    validator = jsonschema.Draft202012Validator(schema)
    grammar = compiled(schema, whitespace="compact")
    choices: list[Any] = [True, False, [], [1], 1, 2, "a", "b"]
    valid = []
    for size in range(5):
        for values in itertools.product(choices, repeat=size):
            text = json.dumps(values, separators=(",", ":"))
            assert fits(grammar, text) == validator.is_valid(list(values)), values
            valid += [text] if fits(grammar, text) else []
    # No comma leads to where nothing is left.
    for values in itertools.product(choices, repeat=3):
        begin = json.dumps(values, separators=(",", ":"))[:-1] + ","
        if constrain.Matcher(grammar).accept_bytes(begin.encode()):
            assert any(text.startswith(begin) for text in valid), begin


def test_a_prefix_without_enough_values() -> None:
    with pytest.raises(SchemaError, match="different"):
        compiled({"type": "array", "prefixItems": [BOOLEAN, BOOLEAN, BOOLEAN], "minItems": 3, "uniqueItems": True})


def test_a_prefix_with_an_item_that_no_value_can_be() -> None:
    none = {"type": "array", "prefixItems": [{"type": "integer", "minimum": 2, "exclusiveMaximum": 1}], "minItems": 1}
    within = {"type": "object", "required": ["a"], "properties": {"a": none}}
    for schema in (False, none, within):
        prefix = [{"type": "number"}, schema]
        grammar = compiled({"type": "array", "prefixItems": prefix, "uniqueItems": True}, whitespace="compact")
        assert [fits(grammar, text) for text in ("[]", "[1]", "[1,[2]]", '[1,{"a":[]}]')] == [True, True, False, False]


def test_deep_items_are_limited() -> None:
    grammar = compiled({"uniqueItems": True})
    with pytest.raises(LimitError, match="deep"):
        constrain.Matcher(grammar).accept_bytes(b"[" + b"[" * 20_000 + b"]" * 20_000 + b",1")


def test_what_is_expected_behind_items() -> None:
    grammar = compiled({"type": "array", "items": {"enum": [f"{n}x" for n in range(30)]}, "uniqueItems": True})
    matcher = constrain.Matcher(grammar)
    assert matcher.accept_bytes(b'["1x", ')
    (expected,) = matcher.expected()
    assert expected.next_bytes.endswith(b'"')
    assert expected.lexeme is not None
    assert expected.lexeme >= len(grammar.ir.lexemes)
    assert "#/items/enum" in str(expected)


@pytest.mark.parametrize("items", ITEMS, ids=range(len(ITEMS)))
def test_masks_equal_what_is_accepted(items: Any, masks_compared: Any) -> None:
    """Token by token along random walks, and what comes of them is valid."""
    schema = {"type": "array", "items": items, "uniqueItems": True}
    validator = jsonschema.Draft202012Validator(schema)
    grammar = compiled(schema, VOCABULARY, whitespace="compact", property_order="any")
    for seed in range(12):
        choose = random.Random(seed)
        matcher = constrain.Matcher(grammar)
        text = b""
        for _ in range(14):
            allowed = mask_of(matcher)
            accepted = {token for token in range(len(TOKENS)) if matcher.fork().accept_token(token)}
            assert allowed == accepted, (text, [TOKENS[token] for token in allowed ^ accepted])
            masks_compared.add()
            if EOS in allowed:
                break
            # Short values meet more often.
            closing = [token for token in allowed if TOKENS[token][-1:] in b'",]}'] or sorted(allowed)
            token = choose.choice(sorted(closing if choose.random() < 0.7 else allowed))
            assert matcher.accept_token(token)
            text += TOKENS[token]
        if matcher.is_accepting():
            assert validator.is_valid(json.loads(text)), text


def test_numbers_without_measure() -> None:
    """What is too long or too large to be compared one by one does not end in an error, nor does it come twice."""
    long, fraction = "1" * 150, "0." + "3" * 150
    for options in ({}, {"spelling": "canonical"}):
        grammar = compiled({"type": "array", "uniqueItems": True}, whitespace="compact", **options)
        for text in (f"[{long},1]", f"[{fraction},1.5,2.25]", f'["a",{long},"b",[1],[1,{long}],2]', "[1e5000,1,2]"):
            assert fits(grammar, text), text
        for text in (f"[{long},{long}]", f"[{fraction},{fraction}]", f"[{long},1,1.0]", "[1e5000,1e5000]"):
            assert not fits(grammar, text), text
        assert fits(grammar, "[1e999999999999,1,2]")
        assert not fits(grammar, "[1e999999999999,1,10e999999999998]")
        assert fits(grammar, '[{"a":1e99999},{"a":1},{"b":1e99999},[1e99999],[1]]')


def test_a_member_that_is_required_and_has_no_value() -> None:
    """Such an object has none either; the search for the few values of items comes past it."""
    item = {"type": "object", "properties": {"": {"type": "array", "maxItems": 0}}, "required": [""]}
    item |= {"additionalProperties": False, "propertyNames": {"enum": ["a"]}}
    null = {"type": "array", "items": {"type": "array", "items": {"type": "null"}, "minItems": 2}, "maxItems": 0}
    schema = {"type": "array", "items": item, "uniqueItems": True, "oneOf": [True, null]}
    with pytest.raises(SchemaError, match="not as many different values of items"):
        constrain.Grammar.from_json_schema(schema)


def test_a_required_member_without_values_beside_a_maximum() -> None:
    impossible = {"type": "string", "pattern": "^a$", "minLength": 5}
    item: Any = {"type": "object", "properties": {"a": impossible, "b": {}}, "required": ["a"], "maxProperties": 1}
    items: Any = {"anyOf": [item, {"enum": [1, 2, 3]}]}
    schema: Any = {"type": "array", "uniqueItems": True, "minItems": 2, "items": items}
    compiled = constrain.GrammarCompiler(constrain.Vocabulary([b"[", b"]", b",", b"1", b"2", b"{"])).compile(
        constrain.Grammar.from_json_schema(schema)
    )
    assert constrain.Matcher(compiled).accept_bytes(b"[1,2]")
    assert not constrain.Matcher(compiled).accept_bytes(b"[1,1]")


@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize("keys", ["^[ab]{1,2}$", "^[ab0-9]{1,2}$", "^[ab]*$"])
def test_no_key_comes_twice_in_an_object_of_any_item(keys: str, order: str) -> None:
    item = {"type": "object", "patternProperties": {keys: {"enum": [0, 1, 2]}}, "additionalProperties": False}
    grammar = compiled(_unique(item) | {"minItems": 0}, property_order=order)
    for first in "{}", '{"a":0}', '{"a":0,"b":0}':
        for second in '{"a":0,"a":1}', '{"ab":1,"ab":0}', '{"b":0,"ab":1,"b":1}', '{"a":0,"b":1,"b":0}':
            assert not fits(grammar, f"[{first},{second}]"), (first, second)
        assert fits(grammar, f'[{first},{{"ab":1,"b":0,"a":0}}]'), first


def _objects_of(keys: Iterable[str], values: list[str], low: int) -> list[tuple[str, Any]]:
    """The texts of all objects of some keys in any order, and what they mean."""
    keys = list(keys)
    texts = [
        "{" + ",".join(f'"{key}":{value}' for key, value in zip(names, chosen, strict=True)) + "}"
        for size in range(low, len(keys) + 1)
        for names in itertools.permutations(keys, size)
        for chosen in itertools.product(values, repeat=size)
    ]
    return [(text, json.loads(text)) for text in texts]


def _class_of(pattern: str, value: Any, low: int) -> dict[str, Any]:
    return {
        "type": "object",
        "patternProperties": {pattern: value},
        "additionalProperties": False,
        "minProperties": low,
    }


@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize("low", range(4))
def test_every_mask_of_items_whose_keys_run_out(low: int, order: str, masks_compared: Any) -> None:
    """No key comes twice, and none begins that is not left."""
    schema = _unique(_class_of("^(a|ab|b)$", {"enum": [1, 2]}, low)) | {"maxItems": 2}
    pairs = itertools.product(_objects_of(["a", "ab", "b"], ["1", "2"], low), repeat=2)
    texts = Texts(f"[{first},{second}]".encode() for (first, one), (second, other) in pairs if one != other)
    grammar = compiled(schema, VOCABULARY, whitespace="compact", property_order=order)
    for seed in range(12):
        choose = random.Random(seed)
        masks_compared.add(compare_masks(grammar, texts, TOKENS, EOS, [choose.randrange(10**6) for _ in range(60)]))


def test_keys_run_out_in_an_object_of_an_item() -> None:
    """Around it are keys that the engine keeps apart."""
    inner = _class_of("^(a|ab|b)$", {"enum": [1, 2]}, 2)
    matcher = constrain.Matcher(compiled(_unique(_class_of("^[ab]*$", inner, 0))))
    assert matcher.accept_bytes(b'[{"":{"a":1,"b":1}},{"":{"ab":1,"a')
    assert mask_of(matcher) == set(b'"')


@pytest.mark.parametrize("order", ["schema", "any"])
def test_keys_of_large_classes_run_out_behind_some_beginning(order: str) -> None:
    """A key that was there is not begun again where nothing else begins so, though endlessly many are left."""
    grammar = compiled(_unique(_class_of("^(ab|b[0-9]*)$", {"enum": [1, 2]}, 0)), property_order=order)
    for before in "[{}", '[{"ab":1}', '[{"b":1,"ab":2}':
        matcher = constrain.Matcher(grammar)
        assert matcher.accept_bytes(f'{before},{{"b":2,"ab":1,"'.encode())
        assert mask_of(matcher) == set(b"b\\")
        assert not matcher.accept_bytes(b'b"')
        assert matcher.accept_bytes(b'b1":1}]')
        assert matcher.is_accepting()


def _unique(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, "uniqueItems": True, "minItems": 2}


def test_each_schema_of_a_grammar_has_unique_items_of_its_own() -> None:
    """Rules that were written for one schema are none of another's."""
    schemas = [_unique({"type": "integer"}), _unique({"type": "string"}), _unique({"type": "integer"})]
    repeated = {"type": "array", "items": {"type": "boolean"}, "not": {"uniqueItems": True}}
    parts = " ".join(f"%json {json.dumps(schema)}" for schema in [*schemas, repeated])
    grammar = constrain.Grammar.from_lark(f"start: {parts}")
    compiled = constrain.CompiledGrammar(grammar.ir, BYTES)
    assert fits(compiled, '[1,2]["a","b"][3,4][true,true]')
    assert not fits(compiled, '[1,2]["a","a"][3,4][true,true]')
    assert not fits(compiled, '[1,2]["a","b"][3,3][true,true]')
    assert not fits(compiled, '[1,2]["a","b"][3,4][true]')
    for matcher in constrain.Matcher(compiled), constrain.Matcher(compiled, 40):
        assert matcher.accept_tokens(matcher.completion())
        assert matcher.is_accepting()


@pytest.mark.parametrize("style", ["llama3.1", "qwen3_coder"])
def test_unique_items_of_every_tool(style: str) -> None:
    values: dict[str, Any] = {"f": [1, 2], "g": ["a", "b"], "h": [{"k": 1}, {"k": 2}]}
    pair = {"type": "object", "properties": {"k": {"type": "integer"}}, "additionalProperties": False}
    types = {"f": {"type": "integer"}, "g": {"type": "string"}, "h": pair}
    tools = [
        {"function": {"name": name, "parameters": {"properties": {"x": _unique(items)}, "required": ["x"]}}}
        for name, items in types.items()
    ]
    grammar = constrain.Grammar.from_tools(tools, style=style, tool_choice="required")
    compiled = constrain.CompiledGrammar(grammar.ir, BYTES)
    for name, value in values.items():
        for items in value, [value[0], value[0]]:
            call = {
                "llama3.1": json.dumps({"name": name, "parameters": {"x": items}}),
                "qwen3_coder": f"<tool_call>\n<function={name}>\n<parameter=x>\n{json.dumps(items)}\n</parameter>\n"
                "</function>\n</tool_call>",
            }[style]
            assert fits(compiled, call) == (items is value), call


@pytest.mark.parametrize("most", [1, 2, 6, 7, 13, 14, 15, 16, 17, 18, 30, None])
@pytest.mark.parametrize("kind", ["string", "string or null", "some or any", "at least one"])
@pytest.mark.parametrize("budget", [None, 24])
def test_tokens_that_begin_the_next_string(kind: str, most: int | None, budget: int | None) -> None:
    """Strings of at most so many characters: those that a token can hold, and those that have room for more."""
    limits = {} if most is None else {"maxLength": most}
    items: dict[str, Any] = {
        "string": {"type": "string", **limits},
        "string or null": {"type": ["string", "null"], **limits},
        "some or any": {"anyOf": [{"enum": ["a", "ab", "aab", "b"]}, {"type": "string", "minLength": 2, **limits}]},
        "at least one": {"type": "string", "minLength": 1, **limits},
    }[kind]
    schema = {"type": "array", "items": items, "uniqueItems": True}
    tokens = [bytes((byte,)) for byte in b'[],"abnul'] + [b'","', b'","a', b'","ab', b'","a","', b'","a","b"', b'a","a']
    tokens += [
        b'","aab',
        b'","aaaaaa',
        b'","aaaaaab',
        b'aaaaaa","aa',
        b"aa",
        b"aaaa",
        b'",null',
        b'null,"a',
        b'"]',
        b"</s>",
    ]
    vocabulary = constrain.Vocabulary(tokens, eos_ids=[len(tokens) - 1])
    grammar = compiled(schema, vocabulary, whitespace="compact")
    validator = jsonschema.Draft202012Validator(schema)
    rng = random.Random(f"{kind} {most} {budget}")
    for _ in range(3):
        matcher = constrain.Matcher(grammar, budget)
        for step in range(30):
            allowed = mask_of(matcher)
            assert allowed == {token for token in range(vocabulary.size) if matcher.fork().accept_token(token)}
            within = sorted(allowed - {vocabulary.size - 1})
            if not within or step == 29:
                break
            # Mostly what tells little apart, so that one item is all that another could be.
            alike = [each for each in within if set(tokens[each]) == {ord("a")}]
            matcher.accept_token(rng.choice(alike if alike and rng.random() < 0.7 else within))
        end = matcher.completion()
        assert budget is None or len(end) <= (matcher.tokens_left or 0)
        assert matcher.accept_tokens(end)
        assert validator.is_valid(json.loads(matcher.text(matcher._steps)))


def test_a_budget_over_arrays_of_unique_arrays() -> None:
    """What the further items of an inner array cost is not known as long as its first is not."""
    innermost = {"type": "array", "items": {"type": ["boolean", "null"]}, "uniqueItems": True, "minItems": 3}
    middle = {"type": "array", "items": {"type": "array", "items": innermost, "uniqueItems": True}, "uniqueItems": True}
    grammar = compiled({**middle, "minItems": 6, "maxItems": 6}, whitespace="compact")
    text = b"[[],[[null,false,true]],[[null,true,false]],[[true,null,false]],[[true,false,null]],[[false,null,true]]]"
    for budget in range(len(text), len(text) + 12):
        try:
            matcher = constrain.Matcher(grammar, budget)
        except constrain.ConstrainError:
            continue
        for token in text:
            if token in mask_of(matcher):
                assert matcher.accept_token(token)
                assert mask_of(matcher), (budget, matcher.text(matcher._steps))


@pytest.mark.parametrize("items", [{"type": "integer"}, {"type": "object"}])
@pytest.mark.parametrize("most", [{}, {"maxItems": 70}])
def test_what_is_contained_may_stand_in_the_prefix_alone(items: Any, most: Any) -> None:
    contains = {"type": "string", "pattern": "^b"}
    for prefix in (1, 2):
        schema = {"prefixItems": [{"type": "string"}] * prefix, "items": items, "contains": contains, **most}
        grammar = compiled({"type": "array", "uniqueItems": True, **schema}, VOCABULARY, whitespace="compact")
        matcher = constrain.Matcher(grammar)
        assert matcher.accept_bytes(b'["a' if prefix == 2 else b'["')
        closing = {TOKENS[token] for token in mask_of(matcher) if TOKENS[token].startswith(b'"')}
        # The second string has to begin with b.
        assert closing == ({b'"', b'",', b'","'} if prefix == 2 else set())
        assert matcher.accept_bytes(b'","b' if prefix == 2 else b"b")
        assert matcher.accept_tokens(matcher.completion())
