"""No object has a key twice: masks held against all texts of small grammars, and what goes with going back."""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
import re
from typing import Any

import pytest

import constrain
from constrain.engine import grammar_tables as tables_module
from constrain.engine.compiled_grammar import CompiledGrammar
from tests.byte_tokens import BYTES


def spellings(key: str) -> list[str]:
    return ["".join(parts) for parts in itertools.product(*map(spellings_of_character, key))]


def spellings_of_character(c: str) -> list[str]:
    """Raw, if that is possible; by a backslash; by number, in lower case only: capital digits are in no token."""
    raw = [] if c in '"\\' or c < " " else [c]
    return [*raw, *(["\\" + c] if c in '"\\' else []), f"\\u{ord(c):04x}"]


def texts_of(keys: list[str], low: int, high: int) -> set[bytes]:
    """All compact objects of ``low`` to ``high`` different keys, each spelled in every way, with the value 1."""
    found = set()
    for count in range(low, high + 1):
        for chosen in itertools.permutations(keys, count):
            for spelled in itertools.product(*map(spellings, chosen)):
                found.add(("{" + ",".join(f'"{key}":1' for key in spelled) + "}").encode())
    return found


def masks_agree(
    schema: Any, texts: set[bytes], tokens: list[bytes], seed: int, walks: int = 60, property_order: str = "schema"
) -> int:
    """Walk at random, with all masks held against the beginnings of all texts; returns how many were looked at."""
    beginnings = {text[:end] for text in texts for end in range(len(text) + 1)}
    vocabulary = constrain.Vocabulary([*tokens, b"</s>"], eos_ids=[len(tokens)])
    grammar = constrain.Grammar.from_json_schema(
        json.dumps(schema), whitespace="compact", property_order=property_order
    )
    compiled = constrain.GrammarCompiler(vocabulary).compile(grammar)
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    rng = random.Random(seed)
    looked = 0
    for _ in range(walks):
        matcher = constrain.Matcher(compiled)
        text = b""
        path: list[int] = []
        while True:
            matcher.fill_next_token_bitmask(mask)
            allowed = {i for i in range(len(tokens)) if int(mask[0, i >> 5]) >> (i & 31) & 1}
            expected = {i for i in range(len(tokens)) if text + tokens[i] in beginnings}
            assert {tokens[i] for i in allowed} == {tokens[i] for i in expected}, text
            assert matcher.is_accepting() == (text in texts)
            looked += 1
            refused = rng.choice(range(len(tokens)))
            if refused not in expected:
                assert not matcher.accept_token(refused)
            if rng.random() < 0.1 and matcher.steps:
                back = rng.randrange(matcher.steps) + 1
                taken = matcher.steps - back
                matcher.rollback(back)
                text = b"".join(tokens[i] for i in path[:taken])
                del path[taken:]
                continue
            if not expected:
                break
            token = rng.choice(sorted(expected))
            if rng.random() < 0.1:
                matcher = matcher.fork()
            assert matcher.accept_token(token), (text, tokens[token])
            path.append(token)
            text += tokens[token]
        assert text in texts
    return looked


def pieces(texts: set[bytes], seed: int, count: int) -> list[bytes]:
    """All bytes, and random pieces of texts."""
    rng = random.Random(seed)
    ordered = sorted(texts)
    found = {bytes((byte,)) for text in ordered for byte in text}
    while len(found) < count:
        text = rng.choice(ordered)
        begin = rng.randrange(len(text))
        found.add(text[begin : begin + rng.choice((2, 3, 4, 6, 9))])
    return sorted(found)


def schema_of(patterns: list[str], low: int, high: int | None) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "patternProperties": {pattern: {"const": 1} for pattern in patterns},
        "additionalProperties": False,
        "minProperties": low,
    }
    return schema if high is None else {**schema, "maxProperties": high}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("patterns", "keys", "low", "high"),
    [
        # The keys are so many and no more: they run out.
        (["^[ab]$"], ["a", "b"], 0, 2),
        (["^[ab]{0,2}$"], ["", "a", "b", "aa", "ab", "ba", "bb"], 1, 2),
        (["^(a|ab|abc|b)$"], ["a", "ab", "abc", "b"], 0, 3),
        (["^(ab|ac)$"], ["ab", "ac"], 2, 2),
        (["^ab$", "^ac$", "^a[bd]$"], ["ab", "ac", "ad"], 0, 3),
        (['^[a"]$'], ["a", '"'], 0, 2),
        (["^x[a\\\\]$"], ["xa", "x\\"], 0, 2),
        (["^[\\u0001a]$"], ["a", "\x01"], 0, 2),
        (["^(aé|aè)$"], ["aé", "aè"], 0, 2),
    ],
)
def test_every_mask_is_that_of_all_texts(patterns: list[str], keys: list[str], low: int, high: int, seed: int) -> None:
    texts = texts_of(keys, low, high)
    assert masks_agree(schema_of(patterns, low, high), texts, pieces(texts, seed, 60), seed) > 200


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("patterns", "keys"),
    [
        (["^a$"], ["a"]),
        (["^[ab]$"], ["a", "b"]),
        (["^(ab|ac)$"], ["ab", "ac"]),
        (['^[é"]$'], ["é", '"']),
        (["^(a|ab|abc|b)$"], ["a", "ab", "abc", "b"]),
        (["^ab$", "^[bx]$"], ["ab", "b", "x"]),
    ],
)
def test_every_mask_with_tokens_as_they_usually_are(patterns: list[str], keys: list[str], seed: int) -> None:
    """A token may end a key and hold the comma behind it, but the next key begins in another."""
    texts = texts_of(keys, 0, len(keys))
    tokens = [token for token in pieces(texts, seed, min(90, 5 * len(texts))) if not begins_next_key(token)]
    tokens += [token for token in (b'":1,"', b'":1,', b',"', b"\\u", b'":1}') if token not in tokens]
    assert masks_agree(schema_of(patterns, 0, None), texts, tokens, seed) > 200


@pytest.mark.parametrize("property_order", ["schema", "any"])
@pytest.mark.parametrize("seed", range(3))
def test_every_mask_where_some_keys_have_names(seed: int, property_order: str) -> None:
    schema = {**schema_of(["^[ab]$"], 0, None), "properties": {"x": {"const": 1}}}
    texts = texts_of(["x", "a", "b"], 0, 3)
    if property_order == "schema":
        texts = {text for text in texts if "x" not in list(json.loads(text))[1:]}
    tokens = pieces(texts, seed, 60)
    assert masks_agree(schema, texts, tokens, seed, 30, property_order=property_order) > 100
    # As real ones are, and with one in which two keys end.
    tokens = [token for token in tokens if not begins_next_key(token) and token.count(b":") < 2]
    tokens += [token for token in (b'":1,"', b'":1,', b',"') if token not in tokens]
    assert masks_agree(schema, texts, tokens, seed, 30, property_order=property_order) > 100
    tokens.append(b':1,"a":1,')
    assert masks_agree(schema, texts, tokens, seed, 30, property_order=property_order) > 100


def begins_next_key(token: bytes) -> bool:
    """Whether a key may end in a token, and the next one begin and go on."""
    return re.search(rb'(?:"|\A)[ \t\r\n]*:.*,[ \t\r\n]*"(?!\Z)', token) is not None


@pytest.mark.parametrize(("count", "ascii_only"), [(5, False), (5, True), (90, False)])
def test_all_keys_there_are_in_one_object(count: int, ascii_only: bool) -> None:
    """Many keys; and such as have to be escaped, which the kernels do not follow."""
    rng = random.Random(count)
    words = [f"{'é' if ascii_only and number % 2 else ''}{number:02d}{number:02d}" for number in range(count)]
    tokens = [bytes((byte,)) for byte in b'{}":,1 \\u' + bytes(range(0x30, 0x3A)) + b"abcdefABCDEF"]
    tokens += [b'{"', b',"', b'":1,"', b'":1,', b'":1}', "é".encode(), b"\\u00"]
    vocabulary = constrain.Vocabulary([*tokens, b"</s>"], eos_ids=[len(tokens)])
    grammar = constrain.Grammar.from_json_schema(
        json.dumps(schema_of([f"^({'|'.join(words)})$"], 0, None)), whitespace="compact", ensure_ascii=ascii_only
    )
    compiled = constrain.GrammarCompiler(vocabulary).compile(grammar)
    matcher = constrain.Matcher(compiled)
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    rng.shuffle(words)
    assert matcher.accept_bytes(b"{")
    for number, word in enumerate(words):
        assert matcher.accept_bytes(b'"')
        spelled = json.dumps(word)[1:-1].encode() if ascii_only else word.encode()
        for end, byte in enumerate(spelled):
            if byte < 0x80 and b"\\" not in spelled[:end]:
                matcher.fill_next_token_bitmask(mask)
                allowed = {tokens[i] for i in range(len(tokens)) if int(mask[0, i >> 5]) >> (i & 31) & 1}
                following = {other[end] for other in words[number:] if other[:end].encode() == spelled[:end]}
                assert {each for each in allowed if each.isdigit()} == {c.encode() for c in following if c.isdigit()}
            assert matcher.accept_bytes(bytes((byte,)))
        is_last = number + 1 == count
        assert matcher.fork().accept_bytes(b'":1,') != is_last
        matcher.fill_next_token_bitmask(mask)
        allowed = {tokens[i] for i in range(len(tokens)) if int(mask[0, i >> 5]) >> (i & 31) & 1}
        assert {b'":1,', b'":1,"'} & allowed == (set() if is_last else {b'":1,', b'":1,"'})
        assert matcher.accept_bytes(b'":1}' if is_last else b'":1,')


TOKENS = [b'{"', b"a", b"aa", b'"', b'":1', b'":1,"', b":1", b",", b"}", b'a"', b'a":1,"a', b',"', b'":1}', b"\\u0061"]
TOKENS += [
    b"\\u00",
    b"61",
    b'aa":1',
    b'""',
    b'"a"',
    b'{"',
    b"{",
    b'":{"',
    b'},"',
    b"}}",
    b"\\ud83d",
    b"\\ude00",
    "😀".encode(),
]
TOKENS += [b'"x', b'x"', b'x","', b'\\"', b"\\"]


def keys_of(text: bytes) -> list[str] | None:
    """The complete keys of the objects of a beginning of JSON without lists; None if one has a key twice."""
    objects: list[list[str]] = []
    is_key = False
    place = 0
    while place < len(text):
        byte = text[place : place + 1]
        place += 1
        if byte == b"{":
            objects.append([])
        elif byte == b"}":
            objects.pop()
        if byte in b"{,":
            is_key = True
        if byte == b'"':
            end = place
            while end < len(text) and text[end : end + 1] != b'"':
                end += 2 if text[end : end + 1] == b"\\" else 1
            if end >= len(text):
                break
            if is_key:
                objects[-1].append(json.loads(text[place - 1 : end + 1]))
                if len(set(objects[-1])) < len(objects[-1]):
                    return None
            is_key = False
            place = end + 1
    return [key for keys in objects for key in keys]


@pytest.mark.parametrize("extra", [[], [b'{"":1,"":1', b'":1,"a":1', b'":"x","a"']])
@pytest.mark.parametrize("seed", range(3))
def test_every_mask_where_keys_do_not_run_out(seed: int, extra: list[bytes]) -> None:
    """Held against the grammar without the condition, and the condition by itself."""
    tokens = [*TOKENS, *extra]
    value = {"anyOf": [{"const": 1}, {"type": "string"}, {"$ref": "#"}]}
    schema = {"type": "object", "properties": {"x": {"const": 1}}, "additionalProperties": value}
    vocabulary = constrain.Vocabulary([*tokens, b"</s>"], eos_ids=[len(tokens)])
    grammar = constrain.Grammar.from_json_schema(json.dumps(schema), whitespace="compact")
    compiled = constrain.GrammarCompiler(vocabulary).compile(grammar)
    without = CompiledGrammar(dataclasses.replace(grammar.ir, distinct_keys=()), vocabulary)
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    rng = random.Random(seed)
    repeated = 0
    for _ in range(60):
        matcher, free, recognizer = constrain.Matcher(compiled), constrain.Matcher(without), compiled.recognizer()
        text = b""
        for _ in range(40):
            free.fill_next_token_bitmask(mask)
            possible = [i for i in range(len(tokens)) if int(mask[0, i >> 5]) >> (i & 31) & 1]
            expected = [i for i in possible if keys_of(text + tokens[i]) is not None]
            matcher.fill_next_token_bitmask(mask)
            allowed = [i for i in range(len(tokens)) if int(mask[0, i >> 5]) >> (i & 31) & 1]
            assert allowed == expected, text
            for token in set(possible) - set(expected):
                repeated += 1
                assert not matcher.accept_token(token)
                assert not matcher.accept_bytes(tokens[token])
                count = sum(recognizer.try_push_byte(byte) for byte in tokens[token])
                assert count < len(tokens[token])
                recognizer.pop_bytes(count)
            if not expected:
                break
            token = rng.choice(expected)
            assert matcher.accept_token(token)
            assert free.accept_token(token)
            assert all(recognizer.try_push_byte(byte) for byte in tokens[token])
            text += tokens[token]
    assert repeated > 50


@pytest.mark.parametrize("seed", range(5))
def test_budgets_where_keys_have_to_differ(seed: int) -> None:
    """Objects that need keys without names: within any budget a text is completed, with keys that differ."""
    schema = {
        "type": "object",
        "additionalProperties": {"anyOf": [{"const": 1}, {"type": "object", "minProperties": 2}]},
        "minProperties": 3,
    }
    tokens = [bytes((byte,)) for byte in b'{}[]":,1abcntrufles0. \\'] + [b'{"', b'":', b'":1', b',"', b'a":', b"true"]
    vocabulary = constrain.Vocabulary([*tokens, b"</s>"], eos_ids=[len(tokens)])
    grammar = constrain.Grammar.from_json_schema(json.dumps(schema), whitespace="compact")
    compiled = constrain.GrammarCompiler(vocabulary).compile(grammar)
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    rng = random.Random(seed)
    shortest = constrain.Matcher(compiled).completion()
    assert len(json.loads(b"".join(tokens[token] for token in shortest))) == 3
    with pytest.raises(constrain.ConstrainError, match="takes"):
        constrain.Matcher(compiled, max_tokens=len(shortest) - 1)
    for limit in (len(shortest), len(shortest) + 1, len(shortest) + 7, 60):
        for _ in range(5):
            matcher = constrain.Matcher(compiled, max_tokens=limit)
            text = b""
            while True:
                matcher.fill_next_token_bitmask(mask)
                allowed = [i for i in range(vocabulary.size) if int(mask[0, i >> 5]) >> (i & 31) & 1]
                assert allowed, (limit, text)
                token = rng.choice(allowed)
                assert matcher.accept_token(token)
                if token == len(tokens):
                    break
                text += tokens[token]
            assert matcher.steps - 1 <= limit
            assert len(json.loads(text, object_pairs_hook=without_repeats)) >= 3


def without_repeats(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys differ."""
    assert len(dict(members)) == len(members)
    return dict(members)


def test_states_are_forgotten_while_keys_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Held against a compiled grammar that forgets nothing."""
    value = {"anyOf": [{"const": 1}, {"type": "array", "items": {"$ref": "#/$defs/value"}}, {"$ref": "#/$defs/keys"}]}
    keys = {
        "type": "object",
        "patternProperties": {"^(a[b-e]|f)$": {"$ref": "#/$defs/value"}},
        "additionalProperties": False,
    }
    grammar = constrain.Grammar.from_json_schema(
        json.dumps({"$defs": {"value": value, "keys": keys}, "$ref": "#/$defs/value"}), whitespace="compact"
    )
    tokens = [bytes((byte,)) for byte in b'{}[]":,1abcdef\\u06'] + [b'{"', b'":', b'":1,"', b',"', b'":{"', b'":[{"']
    vocabulary = constrain.Vocabulary([*tokens, b"</s>"], eos_ids=[len(tokens)])
    keeps = CompiledGrammar(grammar.ir, vocabulary)
    monkeypatch.setattr(tables_module, "_COLLECT_BYTES", 0)
    forgets = CompiledGrammar(grammar.ir, vocabulary)
    rng = random.Random(1)
    masks = constrain.allocate_token_bitmask(2, vocabulary.size)
    for _ in range(12):
        left, right = constrain.Matcher(keeps), constrain.Matcher(forgets)
        for step in range(250):
            left.fill_next_token_bitmask(masks, 0)
            right.fill_next_token_bitmask(masks, 1)
            assert masks[0].tolist() == masks[1].tolist()
            allowed = [i for i in range(len(tokens)) if int(masks[0, i >> 5]) >> (i & 31) & 1]
            # Rather deeper than to an end.
            deeper = [i for i in allowed if tokens[i] not in (b"}", b"]") and not tokens[i].endswith(b'1,"')]
            if not allowed:
                break
            token = rng.choice(deeper if deeper and step % 5 else allowed)
            assert left.accept_token(token)
            assert right.accept_token(token)
    assert forgets.generation > 0


def test_texts_that_decide_about_rules_are_not_read_for_keys() -> None:
    tokens = [b'["', b"a", b"ab", b'",', b' "', b'"]']
    vocabulary = constrain.Vocabulary([*tokens, b"</s>"], eos_ids=[len(tokens)])
    grammar = constrain.Grammar.from_json_schema('{"type": "array", "items": {"type": "string"}, "uniqueItems": true}')
    matcher = constrain.Matcher(constrain.GrammarCompiler(vocabulary).compile(grammar))
    for token in (0, 1, 3, 4, 2, 3, 4, 2):
        assert matcher.accept_token(token)
    assert not matcher._conditions
    assert not matcher.accept_token(5)


@pytest.mark.parametrize("lengths", [range(20, 40), range(240, 270)])
def test_keys_with_escaped_quotes_of_all_lengths_come_once(lengths: range) -> None:
    """Keys are looked for in the last bytes of a text, the first of which may be a quote after a backslash."""
    grammar = constrain.Grammar.from_lark('start: "x"? value\nvalue: %json {"minProperties": 2, "type": "object"}')
    compiled = constrain.GrammarCompiler(BYTES).compile(grammar)
    for length in lengths:
        matcher = constrain.Matcher(compiled)
        key = b'"B\\"' + b"A" * length
        for byte in b"{" + key + b'":1,' + key:
            assert matcher.accept_token(byte)
        assert not matcher.accept_token(ord('"'))
