"""What a grammar was made from, as bytes: the front-end and its arguments, to make the same grammar elsewhere.

A source is no more than what somebody could write by hand: a schema, a pattern, the text of a grammar, and options.  So
to read one from bytes of any origin is what it is to read a schema of any origin.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable
from typing import Any

from constrain.errors import ConstrainError, GrammarError
from constrain.grammar.grammar import Grammar
from constrain.grammar.schema_options import SchemaOptions
from constrain.limits import Deadline

_AS_THEY_ARE = (str, bool, int, type(None))


def _choices(*values: Any, time_limit: Any) -> Grammar:
    return Grammar.from_choices(list(values), time_limit=time_limit)


def _schema(schema: Any, *options: Any, time_limit: Any) -> Grammar:
    if not isinstance(schema, (str, bytes)):
        raise GrammarError("a schema that is no JSON text")
    named = dict(zip(SchemaOptions.__annotations__, options, strict=True))
    return Grammar.from_json_schema(schema, time_limit=time_limit, **named)


def _structural_tag(tag: Any, lenient: Any, *, time_limit: Any) -> Grammar:
    return Grammar.from_structural_tag(tag, lenient=lenient, time_limit=time_limit)


def _tools(tools: Any, *options: Any, time_limit: Any) -> Grammar:
    names = "style tool_choice parallel reasoning reasoning_begun property_order closed lenient special_tokens allowed"
    named = dict(zip(names.split(), options, strict=True))
    allowed = named.pop("allowed")
    if allowed is not None:
        refs = [{"type": "function", "name": name} for name in allowed]
        named["tool_choice"] = {"type": "allowed_tools", "mode": named["tool_choice"], "tools": refs}
    if isinstance(named["reasoning"], str):
        named["reasoning"] = int(named["reasoning"])
    return Grammar.from_tools(json.loads(tools), time_limit=time_limit, **named)


def _regex(pattern: Any, flags: Any, dialect: Any, *, time_limit: Any) -> Grammar:
    return Grammar.from_regex(pattern, flags, dialect=dialect, time_limit=time_limit)


def _lark(
    text: Any, start: Any, lexing: Any, case: Any, initial_ignore: Any, named: Any, complete: Any, *, time_limit: Any
) -> Grammar:
    parts = {name: _grammar_of(key, time_limit) for name, key in complete}
    return Grammar.from_lark(
        text,
        start=start,
        lexing=lexing,
        case=case,
        initial_ignore=initial_ignore,
        named_grammars={**json.loads(named), **parts},
        time_limit=time_limit,
    )


def _llguidance(text: Any, *, time_limit: Any) -> Grammar:
    return Grammar.from_llguidance(text, time_limit=time_limit)


def _gbnf(text: Any, start: Any, *, time_limit: Any) -> Grammar:
    return Grammar.from_gbnf(text, start=start, time_limit=time_limit)


def _ebnf(text: Any, start: Any, *, time_limit: Any) -> Grammar:
    return Grammar.from_ebnf(text, start=start, time_limit=time_limit)


# By what keys begin with; each takes what follows there (Grammar.key).
_READERS: dict[str, Callable[..., Grammar]] = {
    "json_schema": _schema,
    "regex": _regex,
    "lark": _lark,
    "llguidance": _llguidance,
    "gbnf": _gbnf,
    "ebnf": _ebnf,
    "choices": _choices,
    "structural_tag": _structural_tag,
    "tools": _tools,
}


def write_source(key: Hashable) -> str:
    """The source of the grammar with a key (:attr:`Grammar.key`), as JSON in ASCII.

    Raises
    ------
    ConstrainError
        If the grammar cannot be made again from its key.
    """
    if not isinstance(key, tuple) or not key or key[0] not in _READERS:
        raise ConstrainError(
            "the source of this grammar is not known, so it cannot be made elsewhere: its rules come from a registry, "
            "from files beside it, from Python objects, or it was compiled without a GrammarCompiler"
        )
    return json.dumps([key[0], *map(_written, key[1:])])


def _written(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"bytes": value.decode("latin-1")}
    if isinstance(value, tuple):
        return [_written(each) for each in value]
    if not isinstance(value, _AS_THEY_ARE):
        raise ConstrainError(f"the source of this grammar cannot be written: it has a {type(value).__name__} in it")
    return value


def _read(value: Any) -> Any:
    if isinstance(value, dict) and set(value) == {"bytes"} and isinstance(value["bytes"], str):
        return value["bytes"].encode("latin-1")
    if isinstance(value, list):
        return tuple(map(_read, value))
    if not isinstance(value, _AS_THEY_ARE):
        raise GrammarError("a value of an unknown kind")
    return value


def _grammar_of(key: Any, time_limit: Any) -> Grammar:
    kind, *arguments = key
    return _READERS[kind](*arguments, time_limit=time_limit)


def read_source(text: str | bytes, time_limit: float | Deadline | None = None) -> Grammar:
    """The grammar that :func:`write_source` has written the source of.

    Raises
    ------
    ConstrainError
        If the text is no source, or the front-end's own error.
    LimitError
        If reading it takes too long, or makes too much.
    """
    try:
        return _grammar_of(_read(json.loads(text)), time_limit)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        reason = str(error) or type(error).__name__
        raise GrammarError(f"this is not the source of a grammar: {reason}") from None
