"""Structural tags with tokens: masks against every short sequence of tokens, and errors."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import pytest
from masks import mask_of

import constrain
from constrain.errors import SchemaError

# "ab" is an ordinary token, which stands for itself where a format names it; then it is written W here.
TOKENS = ["a", "b", "ab", "T", "U", "V"]
EOS = len(TOKENS)
SPECIAL = {3: "<t>", 4: "<u>", 5: "<v>"}
VOCABULARY = constrain.Vocabulary(
    [b"a", b"b", b"ab", b"", b"", b"", b"</s>"], special_ids=list(SPECIAL), eos_ids=[EOS], names=SPECIAL
)
LONGEST = 6


def token(which: int | str) -> dict[str, Any]:
    return {"type": "token", "token": which}


def tag(begin: Any, content: Any, end: Any) -> dict[str, Any]:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def const(value: str) -> dict[str, Any]:
    return {"type": "const_string", "value": value}


def triggered(triggers: list[int | str], tags: list[Any], **options: Any) -> dict[str, Any]:
    return {"type": "token_triggered_tags", "trigger_tokens": triggers, "tags": tags, **options}


def dispatch(rules: list[Any], **options: Any) -> dict[str, Any]:
    return {"type": "token_dispatch", "rules": rules, **options}


TEXT = {"type": "any_text"}
ANY = {"type": "any_tokens"}
NOT_U = {"type": "exclude_token", "exclude_tokens": ["<u>"]}
TAGS = [tag(token("<t>"), const("a"), token(5)), tag(token("<t>"), const("b"), "a")]
IN_TEXT = {"type": "triggered_tags", "triggers": ["b"], "tags": [tag("b", const(""), token("<u>"))]}

CASES: list[tuple[Any, str]] = [
    (token(3), "T"),
    (token("<t>"), "T"),
    (token("ab"), "W"),
    (tag(token(3), const("ab"), token("<u>")), "TabU"),
    (tag(token(3), TEXT, "b"), "Ta*b"),
    (tag("a", TEXT, token(3)), "a[ab]*T"),
    (tag("a", {"type": "any_text", "max_tokens": 0}, token(3)), "aT"),
    (tag("a", {"type": "any_text", "excludes": ["bb"]}, token(3)), "a(?:(?!bb)[ab])*T"),
    (ANY, "[abTUV]*"),
    ({"type": "any_tokens", "exclude_tokens": [2, "<t>"]}, "[abUV]*"),
    ({"type": "any_tokens", "max_tokens": 0, "exclude_tokens": ["<t>"]}, ""),
    # The token that ends a tag is excluded everywhere in it, but for tags within.
    (tag("a", ANY, token(3)), "a[abUV]*T"),
    (tag("a", {"type": "any_tokens", "exclude_tokens": [4]}, token(3)), "a[abV]*T"),
    (tag("a", {"type": "sequence", "elements": [const("b"), ANY]}, token(3)), "ab[abUV]*T"),
    (tag("a", {"type": "sequence", "elements": [ANY, token(4), ANY]}, token(3)), "a[abUV]*U[abUV]*T"),
    (tag("a", {"type": "optional", "content": ANY}, token(3)), "a[abUV]*T"),
    (tag("a", tag(token(4), ANY, ""), token(3)), "aU[abTUV]*T"),
    (tag("a", tag(token(4), ANY, token(5)), token(3)), "aU[abTU]*VT"),
    (tag("a", {"type": "or", "elements": [token(5), ANY]}, token(3)), "a[abUV]*T"),
    # A string that ends a tag is not: it may be among the tokens.
    (tag(token(3), ANY, "b"), "T[abTUV]*b"),
    (tag(token(3), {"type": "any_tokens", "exclude_tokens": ["<t>"]}, ""), "T[abUV]*"),
    ({"type": "star", "content": NOT_U}, "[abTV]*"),
    ({"type": "plus", "content": NOT_U}, "[abTV]+"),
    ({"type": "repeat", "min": 1, "max": -1, "content": NOT_U}, "[abTV]+"),
    (tag(token(3), {"type": "plus", "content": NOT_U}, token(5)), "T[abT]+V"),
    (triggered([3, "<t>", "<u>"], TAGS), "(?:[abV]*(?:TaV|Tba))*[abV]*"),
    (triggered(["<t>"], TAGS, exclude_tokens=["ab", 5]), "(?:[abU]*(?:TaV|Tba))*[abU]*"),
    (triggered(["<t>"], TAGS, at_least_one=True), "(?:TaV|Tba)(?:[abUV]*(?:TaV|Tba))*[abUV]*"),
    (triggered(["<t>"], TAGS, stop_after_first=True), "[abUV]*(?:TaV|Tba)?"),
    (triggered(["<t>"], TAGS, at_least_one=True, stop_after_first=True), "TaV|Tba"),
    (tag("b", triggered(["<t>"], TAGS), token(4)), "b(?:[abV]*(?:TaV|Tba))*[abV]*U"),
    (tag("b", triggered(["<t>"], TAGS), "b"), "b(?:[abUV]*(?:TaV|Tba))*[abUV]*b"),
    (dispatch([[3, const("a")], ["<u>", token(3)]]), "(?:[abV]*(?:Ta|UT))*[abV]*"),
    (dispatch([[3, const("a")], [3, const("b")]], loop=False), "[abUV]*(?:T[ab])?"),
    (dispatch([["ab", const("a")]], exclude_tokens=[4]), "(?:[abTV]*Wa)*[abTV]*"),
    (tag("b", dispatch([[3, const("a")]]), token("<v>")), "b(?:[abU]*Ta)*[abU]*V"),
    ({"type": "tags_with_separator", "tags": TAGS, "separator": "b"}, "(?:(?:TaV|Tba)(?:b(?:TaV|Tba))*)?"),
    (IN_TEXT, "(?:a*bU)*a*"),
    (tag(token(3), IN_TEXT, token(5)), "T(?:a*bU)*a*V"),
    ({"type": "sequence", "elements": [TEXT, token(4), TEXT]}, "[ab]*U[ab]*"),
    ({"type": "or", "elements": [token(3), const("ab")]}, "T|ab"),
]


@lru_cache(maxsize=2)
def _sequences(is_named: bool) -> list[tuple[tuple[int, ...], str]]:
    """Every sequence of tokens, and what it is written like."""
    letters = [letter if letter != "ab" or not is_named else "W" for letter in TOKENS]
    return [
        (sequence, "".join(letters[each] for each in sequence))
        for length in range(LONGEST + 1)
        for sequence in itertools.product(range(len(TOKENS)), repeat=length)
    ]


@pytest.mark.parametrize(("format", "pattern"), CASES, ids=[pattern for _, pattern in CASES])
def test_masks_are_those_of_all_sequences_of_tokens(format: Any, pattern: str) -> None:
    # Where "ab" is named the letter is W, also where a pattern has it nowhere.
    is_named = "W" in pattern or "[2, " in str(format) or "['ab', " in str(format)
    matches = re.compile(pattern).fullmatch
    whole = {sequence for sequence, text in _sequences(is_named) if matches(text)}
    viable = {sequence[:length] for sequence in whole for length in range(len(sequence) + 1)}
    compiled = constrain.CompiledGrammar(constrain.Grammar.from_structural_tag(format).ir, VOCABULARY)
    assert whole
    for prefix in sorted(each for each in viable if len(each) <= 2):
        matcher = constrain.Matcher(compiled)
        assert all(map(matcher.accept_token, prefix)), prefix
        expected = {each for each in range(EOS) if (*prefix, each) in viable}
        assert mask_of(matcher) == expected | ({EOS} if prefix in whole else set()), prefix
        assert matcher.is_accepting() == (prefix in whole), prefix


# -- with schemas ----------------------------------------------------------------------------------

CALL, END = 257, 258
BYTES = constrain.Vocabulary(
    [*(bytes((byte,)) for byte in range(256)), b"</s>", b"", b""],
    special_ids=[CALL, END],
    eos_ids=[256],
    names={CALL: "<|call|>", END: "<|end|>"},
)


def _reads(compiled: constrain.CompiledGrammar, parts: Iterable[str | int]) -> bool:
    matcher = constrain.Matcher(compiled)
    taken = all(
        matcher.accept_token(part) if isinstance(part, int) else matcher.accept_bytes(part.encode()) for part in parts
    )
    return taken and matcher.is_accepting()


@pytest.mark.parametrize("any_order", [False, True])
@pytest.mark.parametrize("style", ["json", "qwen_xml"])
def test_schemas_between_tokens(style: str, any_order: bool) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": {"type": "integer"},
    }
    value = {"type": "json_schema", "json_schema": schema, "style": style, "any_order": any_order}
    format = triggered([CALL], [tag(token(CALL), value, token("<|end|>"))])
    compiled = constrain.CompiledGrammar(constrain.Grammar.from_structural_tag(format).ir, BYTES)

    def members(**values: int | str) -> str:
        if style == "json":
            return json.dumps(values)
        return "".join(f"<parameter={name}>{value}</parameter>" for name, value in values.items())

    good = members(a=1, b="x", c=3)
    assert _reads(compiled, ["text <|call|>", CALL, good, END, " and ", CALL, members(a=2), END])
    assert _reads(compiled, [good])
    assert _reads(compiled, [CALL, members(b="x", a=1), END]) == any_order
    assert not _reads(compiled, [CALL, good])
    assert not _reads(compiled, [CALL, good, "<|end|>"])
    assert not _reads(compiled, [CALL, members(b="x"), END])
    assert not _reads(compiled, [CALL, good, CALL, good, END])
    assert not _reads(compiled, [CALL, members(a=1, c="x"), END])


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("format", "message"),
    [
        ({"type": "repeat", "min": 2, "max": 2, "content": NOT_U}, "at #/content: exclude_token: at least 2 tokens"),
        (token("<x>"), 'at #/token: the vocabulary has no token "<x>"'),
        (token(7), "at #/token: there is no token 7: the vocabulary has 7 tokens"),
        (token(1 << 24), "at #/token: there is no token 16777216"),
        (tag(token("<x>"), TEXT, token(3)), 'at #/begin/token: the vocabulary has no token "<x>"'),
        (tag("a", TEXT, token("<x>")), 'at #/end/token: the vocabulary has no token "<x>"'),
        (tag("a", {"type": "any_tokens", "exclude_tokens": ["<x>"]}, token(3)), "at #/content/exclude_tokens: the voc"),
        ({"type": "star", "content": {**NOT_U, "exclude_tokens": [9]}}, "at #/content/exclude_tokens: there is no"),
        (triggered(["<u>"], TAGS), "at #/tags/0/begin/token: '<t>' is none of the triggers"),
        (triggered([3], TAGS), "at #/tags/0/begin/token: '<t>' is none of the triggers"),
        (triggered(["<t>"], TAGS, exclude_tokens=[5, "<t>"]), "at #/exclude_tokens/1: '<t>' is a trigger and excluded"),
        (triggered(["<t>"], [tag("a", TEXT, token(3))]), "at #/tags/0/begin: begin must be a token"),
        (dispatch([["<x>", TEXT]]), 'at #/rules/0/0: the vocabulary has no token "<x>"'),
        (dispatch([[3, TEXT]], exclude_tokens=[3]), "at #/exclude_tokens/0: 3 is a trigger and excluded"),
        (token(True), "at #/token: a token is an id or a string"),
    ],
)
def test_errors_with_tokens_say_where(format: Any, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        constrain.CompiledGrammar(constrain.Grammar.from_structural_tag(format).ir, VOCABULARY)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
