"""llguidance's lists of grammars: ``{"grammars": [{"lark_grammar": "..."}, {"name": "a", "json_schema": {...}}]}``."""

from __future__ import annotations

from typing import Any

from constrain.errors import GrammarError
from constrain.grammar.ir import GrammarIR
from constrain.grammar.json_schema.document.document import parse
from constrain.grammar.json_schema.front_end import from_json_schema
from constrain.grammar.lark.rules import from_lark

_KINDS = ("lark_grammar", "json_schema")

# What says nothing about the texts.
_WITHOUT_EFFECT = ("test_trace",)


def from_list(grammar: str | dict[str, Any]) -> GrammarIR:
    """The IR of a list of grammars, a dict or its JSON text; any other text is a Lark grammar itself.

    Raises
    ------
    GrammarError
        For anything that is not of that form, and for faults of the grammars.
    SchemaError
        For faults of the first one, if it is a schema.
    """
    first, named = _read_list(grammar)
    if isinstance(first, str):
        return from_lark(first, named=named, initial_ignore=False, json_strings=True, dialect="rust")
    return from_json_schema(first, whitespace_pattern=r"[ \t\n\r]*")


def _read_list(grammar: Any) -> tuple[str | dict[str, Any] | bool, dict[str, Any]]:
    """The first grammar of the list, and all that have names: each the text of a Lark grammar, or a schema."""
    if isinstance(grammar, str):
        if not grammar.lstrip().startswith("{"):
            return grammar, {}
        grammar = parse(grammar)
    if not isinstance(grammar, dict):
        raise GrammarError(f"a grammar must be a dict, its JSON text or a Lark grammar, not {type(grammar).__name__}")
    if grammar.get("max_tokens") is not None:
        raise GrammarError("max_tokens beside the list of grammars is not supported: give it to the Matcher")
    listed = grammar.get("grammars")
    if not isinstance(listed, list) or not listed:
        raise GrammarError('a list of grammars looks like {"grammars": [{"lark_grammar": "start: ..."}]}')
    _check_names(grammar, ("grammars", "max_tokens", *_WITHOUT_EFFECT), "the object with the list of grammars")
    contents = [_content(each, index) for index, each in enumerate(listed)]
    named: dict[str, Any] = {}
    for index, (each, content) in enumerate(zip(listed, contents, strict=True)):
        name = each.get("name")
        if name is None:
            continue
        if not isinstance(name, str):
            raise GrammarError(f"the name of grammars[{index}] is no string")
        if name in named:
            raise GrammarError(f"two of the grammars have the name {name!r}")
        named[name] = content
    return contents[0], named


def _content(each: Any, index: int) -> str | dict[str, Any] | bool:
    place = f"grammars[{index}]"
    if not isinstance(each, dict):
        raise GrammarError(f"{place} is no object")
    _check_names(each, ("name", *_KINDS), place)
    found = [name for name in _KINDS if each.get(name) is not None]
    if len(found) != 1:
        raise GrammarError(f"{place} needs one of lark_grammar and json_schema")
    kinds: type | tuple[type, ...] = str if found == ["lark_grammar"] else (dict, bool)
    content: str | dict[str, Any] | bool = each[found[0]]
    if not isinstance(content, kinds):
        raise GrammarError(f"{place}: {found[0]} cannot be {type(content).__name__}")
    return content


def _check_names(found: dict[str, Any], known: tuple[str, ...], place: str) -> None:
    for name in found:
        if name not in known:
            raise GrammarError(f"{name!r} in {place} is not supported")
