"""Grammars for the vocabulary :func:`~bench.fuzz.vocabularies.odd`: front-ends' features beside each other.

Special tokens and complements of them, first ends, limits of tokens and characters, captures, free text with tags, the
styles of arguments, tools with a budget for thoughts.
"""

from __future__ import annotations

import re
from typing import Any

from bench.fuzz import vocabularies
from bench.fuzz.scripts import Source

_CALL, _END, *_ = vocabularies.odd().special_ids

_ARGUMENTS = {
    "type": "object",
    "properties": {"a": {"type": "string", "minLength": 1, "maxLength": 9}, "b": {"type": "integer", "minimum": 3}},
    "required": ["a"],
}
_CHOICE = {
    "type": "object",
    "properties": {
        "x": {"enum": ["a", "</a>", "ab"]},
        "y": {"type": "array", "items": {"type": "boolean"}, "minItems": 2},
    },
    "required": ["x"],
}
_LISTS = {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}, "maxItems": 2}}
_TOOLS = [{"name": "f", "parameters": _ARGUMENTS}, {"name": "fab", "parameters": _CHOICE}]


def _tag(begin: Any, content: dict[str, Any], end: Any) -> dict[str, Any]:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def _token(name: str) -> dict[str, Any]:
    return {"type": "token", "token": name}


def _styled(schema: Any, style: str) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": schema, "style": style}


_TOKEN_CALL = _tag(_token("<|call|>"), _styled(_ARGUMENTS, "json"), _token("<|end|>"))

_LARK = (
    r"start: /(.|\n)*/ (<|call|> /[a-z]+/ <|end|>)*",
    f'start: (<[*]>)* <|call|> x? <[^{_CALL}-{_END}]>{{0,3}} <|end|>\nx: <[*]> "a"',
    f"start: (<[^{_CALL}]>)+ <[{_CALL}]> /a*b/",
    "start: t <|x|> t\nt[lazy]: /[a-z]*/ <|call|>",
    r"""
    start: (w | c)* /(.|\n)*/
    w: w_head %json {"type": "object", "properties": {"a": {"type": "integer"}}} "</a>"
    w_head[suffix="<b>"]: /(.|\n)*/
    c[suffix="</a"]: /[ab]*/
    """,
    r"""
    start: a "," b
    a[max_tokens=3, capture]: /[^,]*/
    b[suffix=";", max_tokens=4, capture="q"]: /(.|\n)*/
    """,
    'start: o+\no[max_tokens=6]: "{" i* "}"\ni[max_tokens=2, capture]: /[^}]*/ ";"',
    'start: a b\na[max_chars=5, capture]: /[^;]*/ ";"\nb[max_tokens=2]: (<[*]>)*',
    'start: T+\nT: (/[a-z]+/ & ~("ab" | /.*aba.*/s)) ";"',
    r"""
    start: each::0
    each::_: ""                    %if is_ones([0:2])
           | "a" each::set_bit(0)  %if bit_clear(0)
           | "ab" each::set_bit(1) %if bit_clear(1)
    """,
    r"""
    start: q "," r
    q: %regex {"substring_words": "a ab </a> aba ab;b"}
    r: %lark {
        start: X (","? X)*
        X: /[a-c]{1,40}/
        %ignore " "
    }
    """,
    'start: n (";" n)*\nn[capture]: /a{1,45}/ | /a{3,}b/\n%ignore /  /',
)
_EBNF = (
    r"""
    root ::= TagDispatch(("<a>", body), ("</a>", other), excludes=("aba"), loop_after_dispatch=true)
    body ::= Regex("[a-c]{1,3}") ("," body)?
    other[max_tokens=2] ::= [a-z]* ";"
    """,
    f'root ::= ExcludeToken({_CALL})* Token({_CALL}) x\nx[lazy] ::= [ab]* "b"',
    f'root ::= TokenTagDispatch(({_CALL}, x), excludes=({_END}))\nx[capture="c"] ::= Substring("a", "b", "</a>")',
)
_FORMATS: tuple[dict[str, Any], ...] = (
    {"type": "token_triggered_tags", "trigger_tokens": ["<|call|>"], "tags": [_TOKEN_CALL]},
    {
        "type": "triggered_tags",
        "triggers": ["<b"],
        "tags": [
            _tag("<b>", _styled(_ARGUMENTS, "qwen_xml"), "</a>"),
            _tag("<b2>", {"type": "any_text", "max_tokens": 3}, ["</a>", "</"]),
        ],
    },
    _tag(
        "<b>",
        {
            "type": "sequence",
            "elements": [
                {"type": "any_text", "excludes": ["ab"], "max_chars": 45},
                _styled(_ARGUMENTS, "gemma4"),
            ],
        },
        "</a>",
    ),
    _tag("", _styled({**_LISTS, "minProperties": 1}, "cohere_xml"), _token("<|end|>")),
    _tag(_token("<|x|>"), {"type": "any_tokens", "max_tokens": 4}, _token("<|y|>")),
    {
        "type": "sequence",
        "elements": [
            {"type": "star", "content": {"type": "exclude_token", "exclude_tokens": ["<|call|>"]}},
            {"type": "optional", "content": _TOKEN_CALL},
        ],
    },
)
_SCHEMAS: tuple[tuple[Any, dict[str, Any]], ...] = (
    (_ARGUMENTS, {"unicode_escapes": "never", "numbers": "plain", "spelling": "canonical"}),
    ({"type": "array", "prefixItems": [{"const": "ab"}, {}], "items": {"type": "string"}, "uniqueItems": True}, {}),
    (
        {
            "patternProperties": {"^a{40,64}$": {"const": 1}, "^ab?c?$": {"type": "string", "format": "date"}},
            "type": "object",
            "additionalProperties": False,
            "minProperties": 2,
        },
        {"property_order": "any", "ensure_ascii": True},
    ),
    ({"type": "array", "items": {"type": "string", "pattern": "^[^a]{0,50}é{20,30}$"}, "minItems": 1}, {}),
    (
        {
            "properties": {"a": {"multipleOf": 0.5}},
            "type": "object",
            "required": ["k1"],
            "dependentRequired": {"a": ["b"]},
        },
        {"indent": 2, "property_order": "any"},
    ),
)


def _names(text: str) -> list[str]:
    """Names that have been written, and some that may always be."""
    return [*re.findall("[ab]+", text)[-2:], "a", "ab</a>"]


_NARROWED = r"""
start: (pair ";")+
pair: NAME "=" (WORD | sum)
sum: NAME | sum "," NAME
NAME: /[ab]{1,4}/
WORD: /[a-c<>"]{1,6}/
%ignore " "
"""

SOURCES = (
    *(Source("lark", text) for text in _LARK),
    Source("lark", _NARROWED, {"narrow": {"NAME": _names}}),
    *(Source("ebnf", text) for text in _EBNF),
    Source("gbnf", f'root ::= (!<[{_CALL}]>)* <[{_CALL}]> [a-c]+ ("=" root)?'),
    *(Source("structural_tag", {"type": "structural_tag", "format": each}) for each in _FORMATS),
    Source("tools", _TOOLS, {"style": "qwen3", "reasoning": 20}),
    Source("tools", _TOOLS, {"style": "hermes", "tool_choice": "required", "property_order": "any"}),
    Source("tools", _TOOLS, {"style": "gemma4"}),
    *(Source("json_schema", schema, options) for schema, options in _SCHEMAS),
    Source("regex", r"(a{2,41}|é{3,30}|\s{0,50}b)*c"),
    Source("regex", r"((?!aba)[a-c]){0,60}(?<!a);"),
)
