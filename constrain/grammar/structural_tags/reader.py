"""From the JSON of a structural tag to formats: every field is checked, and every error has a JSON pointer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from constrain.errors import SchemaError
from constrain.grammar.json_schema.document.document import parse
from constrain.grammar.json_schema.lexical.strings import is_text
from constrain.grammar.json_schema.normal.nodes import describe
from constrain.grammar.structural_tags import formats as f
from constrain.grammar.structural_tags.styles import STYLES
from constrain.limits import spend

MAX_COUNT = (1 << 31) - 1
"""The greatest bound on tokens or characters."""


def read_structural_tag(tag: Any) -> f.Format:
    """The format of a structural tag.

    Parameters
    ----------
    tag : str, bytes, dict or pydantic model
        ``{"type": "structural_tag", "format": ...}``, a format alone, or the older form with ``structures`` and
        ``triggers``.

    Raises
    ------
    SchemaError
        With the JSON pointer of what is wrong.
    """
    if isinstance(tag, (str, bytes)):
        tag = _json(tag, "the structural tag", "#")
    tag = _plain(tag)
    if not isinstance(tag, dict):
        raise SchemaError(f"a structural tag must be an object, not {describe(tag)}")
    if "structures" in tag or ("triggers" in tag and "type" not in tag):
        return _read_legacy(_Fields(tag, "#"))
    if "format" in tag or tag.get("type") == "structural_tag":
        fields = _Fields(tag, "#")
        kind = fields.take("type", "structural_tag")
        if kind != "structural_tag":
            fields.fail('must be "structural_tag"', "type")
        result = read_format(fields.take("format"), "#/format")
        fields.finish()
        return result
    return read_format(tag, "#")


def read_format(value: Any, pointer: str) -> f.Format:
    """The format that stands at a place."""
    spend()
    value = _plain(value)
    if not isinstance(value, dict):
        raise SchemaError(f"a format must be an object, not {describe(value)}", pointer)
    kind = value.get("type")
    if not isinstance(kind, str):
        raise SchemaError("a format must have a type, which is a string", pointer)
    read = _READERS.get(kind)
    if read is None:
        raise SchemaError(f"there is no format {kind!r}; there are {', '.join(sorted(_READERS))}", f"{pointer}/type")
    fields = _Fields(value, pointer)
    fields.take("type")
    result = read(fields)
    fields.finish()
    return result


class _Fields:
    """The fields of an object, which are taken one by one."""

    def __init__(self, value: dict[str, Any], pointer: str) -> None:
        self._value = dict(value)
        self.pointer = pointer

    def fail(self, reason: str, name: str) -> NoReturn:
        raise SchemaError(f"{name} {reason}", f"{self.pointer}/{name}")

    def take(self, name: str, *default: Any) -> Any:
        if name not in self._value:
            if default:
                return default[0]
            raise SchemaError(f"{name} is missing", self.pointer)
        return _plain(self._value.pop(name))

    def finish(self) -> None:
        """Raise if a field is left that nobody knows."""
        for name in self._value:
            raise SchemaError(f"there is no field {name!r} here", f"{self.pointer}/{name}")

    def text(self, name: str) -> str:
        value = self.take(name)
        if isinstance(value, str) and _is_text(value):
            return value
        return self.fail("must be a string of text", name)

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.take(name, default)
        return value if isinstance(value, bool) else self.fail("must be a boolean", name)

    def count(self, name: str) -> int | None:
        value = self.take(name, None)
        if value is None or (type(value) is int and 0 <= value <= MAX_COUNT):
            return value
        return self.fail(f"must be an integer from 0 to {MAX_COUNT}, or null", name)

    def list(self, name: str, *default: Any) -> list[Any]:
        value = self.take(name, *default)
        return list(value) if isinstance(value, (list, tuple)) else self.fail("must be a list", name)

    def texts(self, name: str, *default: Any) -> tuple[str, ...]:
        """A list of strings of which none is empty."""
        values = self.list(name, *default)
        for index, value in enumerate(values):
            if not _is_text(value) or not value:
                raise SchemaError(
                    f"{name} must be strings of text that are not empty", f"{self.pointer}/{name}/{index}"
                )
        return tuple(values)

    def tokens(self, name: str, *default: Any) -> tuple[f.Token, ...]:
        return tuple(
            _token(value, f"{self.pointer}/{name}/{index}") for index, value in enumerate(self.list(name, *default))
        )

    def formats(self, name: str) -> tuple[f.Format, ...]:
        return tuple(
            read_format(value, f"{self.pointer}/{name}/{index}") for index, value in enumerate(self.list(name))
        )

    def tags(self, name: str = "tags") -> tuple[f.Tag, ...]:
        tags = tuple(_tag_at(value, f"{self.pointer}/{name}/{index}") for index, value in enumerate(self.list(name)))
        return tags if tags else self.fail("must not be empty", name)

    def content(self, name: str = "content") -> f.Format:
        return read_format(self.take(name), f"{self.pointer}/{name}")


def _json(text: str | bytes, what: str, pointer: str) -> Any:
    """The value of a JSON text, whose numbers are exact."""
    try:
        return parse(text)
    except SchemaError as error:
        raise SchemaError(f"{what}: {error.reason}", pointer) from None


def _plain(value: Any) -> Any:
    """A pydantic model as plain data."""
    dump = getattr(value, "model_dump", None)
    return dump(by_alias=True) if dump is not None and not isinstance(value, type) else value


def _is_text(value: Any) -> bool:
    """Whether a value is a string that UTF-8 can write."""
    return isinstance(value, str) and is_text(value)


def _token(value: Any, pointer: str) -> f.Token:
    if (type(value) is int and value >= 0) or (isinstance(value, str) and value):
        return value
    raise SchemaError(f"a token is an id or a string, not {describe(value)}", pointer)


def _schema(fields: _Fields, name: str) -> dict[str, Any] | bool:
    value = fields.take(name)
    return value if isinstance(value, (dict, bool)) else fields.fail("must be an object or a boolean", name)


# -- formats ---------------------------------------------------------------------------------------


def _json_schema(fields: _Fields) -> f.Format:
    schema = _schema(fields, "json_schema")
    style = fields.take("style", "json")
    if style != "json" and style not in STYLES:
        fields.fail(f"must be json or one of {', '.join(STYLES)}, not {describe(style)}", "style")
    any_order = fields.flag("any_order")
    return f.JsonSchema(
        fields.pointer, schema, style, any_order, fields.count("max_whitespace_cnt"), fields.texts("excludes", ())
    )


def _grammar(fields: _Fields) -> f.Format:
    text, syntax = fields.text("grammar"), fields.take("syntax", "ebnf")
    if syntax not in ("ebnf", "lark"):
        fields.fail(f"must be ebnf or lark, not {describe(syntax)}", "syntax")
    return f.GrammarText(fields.pointer, text, syntax)


def _or(fields: _Fields) -> f.Format:
    elements = fields.formats("elements")
    return f.Or(fields.pointer, elements) if elements else fields.fail("must not be empty", "elements")


def _repeat(fields: _Fields) -> f.Format:
    low, high = fields.take("min"), fields.take("max")
    if type(low) is not int or low < 0:
        fields.fail("must be an integer, 0 or more", "min")
    if type(high) is not int or (high < low and high != -1):
        fields.fail("must be an integer that is not less than min, or -1 for no bound", "max")
    return f.Repeated(fields.pointer, fields.content(), low, None if high == -1 else high)


def _edge_token(value: Any, pointer: str) -> f.TokenOnce:
    result = read_format(value, pointer)
    if not isinstance(result, f.TokenOnce):
        raise SchemaError("the edge of a tag is a string or a token", pointer)
    return result


def _tag(fields: _Fields) -> f.Tag:
    begin, end = fields.take("begin"), fields.take("end")
    first: str | f.TokenOnce
    last: tuple[str, ...] | f.TokenOnce
    if isinstance(begin, dict):
        first = _edge_token(begin, f"{fields.pointer}/begin")
    else:
        first = begin if _is_text(begin) else fields.fail("must be a string or a token", "begin")
    if isinstance(end, dict):
        last = _edge_token(end, f"{fields.pointer}/end")
    else:
        ends = (end,) if isinstance(end, str) else end
        if not isinstance(ends, (list, tuple)) or not ends or not all(map(_is_text, ends)):
            fields.fail("must be a string, a list of strings that is not empty, or a token", "end")
        last = tuple(dict.fromkeys(ends))
    return f.Tag(fields.pointer, first, fields.content(), last)


def _tag_at(value: Any, pointer: str) -> f.Tag:
    """A tag in a list of tags, where its type goes without saying."""
    value = _plain(value)
    if not isinstance(value, dict):
        raise SchemaError(f"a tag must be an object, not {describe(value)}", pointer)
    result = read_format({"type": "tag", **value}, pointer)
    if not isinstance(result, f.Tag):
        raise SchemaError("only tags may stand here", pointer)
    return result


def _triggered_tags(fields: _Fields) -> f.Format:
    triggers, tags = fields.texts("triggers"), fields.tags()
    if not triggers:
        fields.fail("must not be empty", "triggers")
    for tag in tags:
        if not isinstance(tag.begin, str):
            raise SchemaError("begin must be a string: tokens are for token_triggered_tags", f"{tag.pointer}/begin")
    flags = fields.flag("at_least_one"), fields.flag("stop_after_first")
    return f.TriggeredTags(fields.pointer, tuple(dict.fromkeys(triggers)), tags, *flags, fields.texts("excludes", ()))


def _token_triggered_tags(fields: _Fields) -> f.Format:
    triggers, tags = fields.tokens("trigger_tokens"), fields.tags()
    if not triggers:
        fields.fail("must not be empty", "trigger_tokens")
    for tag in tags:
        if isinstance(tag.begin, str):
            raise SchemaError("begin must be a token: strings are for triggered_tags", f"{tag.pointer}/begin")
    exclude = fields.tokens("exclude_tokens", ())
    flags = fields.flag("at_least_one"), fields.flag("stop_after_first")
    return f.TokenTriggeredTags(fields.pointer, triggers, tags, exclude, *flags)


def _tags_with_separator(fields: _Fields) -> f.Format:
    tags, separator = fields.tags(), fields.text("separator")
    flags = fields.flag("at_least_one"), fields.flag("stop_after_first")
    return f.TagsWithSeparator(fields.pointer, tags, separator, *flags)


def _rules(fields: _Fields) -> list[tuple[Any, f.Format, str]]:
    """The pairs of a dispatch, each with its pointer."""
    found = []
    for index, pair in enumerate(fields.list("rules")):
        pointer = f"{fields.pointer}/rules/{index}"
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise SchemaError("a rule is a pattern and a format", pointer)
        found.append((pair[0], read_format(pair[1], f"{pointer}/1"), pointer))
    return found if found else fields.fail("must not be empty", "rules")


def _dispatch(fields: _Fields) -> f.Format:
    rules = _rules(fields)
    for pattern, _, pointer in rules:
        if not _is_text(pattern) or not pattern:
            raise SchemaError("a pattern must be a string that is not empty", f"{pointer}/0")
    pairs = tuple((pattern, each) for pattern, each, _ in rules)
    return f.Dispatch(fields.pointer, pairs, fields.flag("loop", True), fields.texts("excludes", ()))


def _token_dispatch(fields: _Fields) -> f.Format:
    rules = tuple((_token(pattern, f"{pointer}/0"), each) for pattern, each, pointer in _rules(fields))
    return f.TokenDispatch(fields.pointer, rules, fields.flag("loop", True), fields.tokens("exclude_tokens", ()))


_READERS: dict[str, Callable[[_Fields], f.Format]] = {
    "const_string": lambda fields: f.ConstString(fields.pointer, fields.text("value")),
    "json_schema": _json_schema,
    "qwen_xml_parameter": lambda fields: f.JsonSchema(fields.pointer, _schema(fields, "json_schema"), "qwen_xml"),
    "any_text": lambda fields: f.AnyText(
        fields.pointer, fields.texts("excludes", ()), fields.count("max_tokens"), fields.count("max_chars")
    ),
    "grammar": _grammar,
    "regex": lambda fields: f.Regex(fields.pointer, fields.text("pattern")),
    "sequence": lambda fields: f.Sequence(fields.pointer, fields.formats("elements")),
    "or": _or,
    "optional": lambda fields: f.Repeated(fields.pointer, fields.content(), 0, 1),
    "plus": lambda fields: f.Repeated(fields.pointer, fields.content(), 1, None),
    "star": lambda fields: f.Repeated(fields.pointer, fields.content(), 0, None),
    "repeat": _repeat,
    "tag": _tag,
    "triggered_tags": _triggered_tags,
    "tags_with_separator": _tags_with_separator,
    "dispatch": _dispatch,
    "token": lambda fields: f.TokenOnce(fields.pointer, _token(fields.take("token"), f"{fields.pointer}/token")),
    "exclude_token": lambda fields: f.ExcludeToken(fields.pointer, fields.tokens("exclude_tokens", ())),
    "any_tokens": lambda fields: f.AnyTokens(
        fields.pointer, fields.tokens("exclude_tokens", ()), fields.count("max_tokens")
    ),
    "token_triggered_tags": _token_triggered_tags,
    "token_dispatch": _token_dispatch,
}


# -- the older form --------------------------------------------------------------------------------


def _read_legacy(fields: _Fields) -> f.Format:
    """``structures``, each with ``begin``, ``schema`` and ``end``; ``triggers``; in SGLang also ``at_least_one``."""
    fields.take("type", None)
    is_required = fields.flag("at_least_one")
    triggers = fields.texts("triggers")
    name = "structures"
    tags = []
    for index, value in enumerate(fields.list(name)):
        value = _plain(value)
        pointer = f"#/{name}/{index}"
        if not isinstance(value, dict):
            raise SchemaError(f"a structure must be an object, not {describe(value)}", pointer)
        inner = _Fields(value, pointer)
        begin, end, schema = inner.text("begin"), inner.text("end"), inner.take("schema")
        inner.finish()
        if isinstance(schema, str):
            schema = _json(schema, "the schema", f"{pointer}/schema")
        write = getattr(schema, "model_json_schema", None)
        if write is not None:
            schema = write()
        if not isinstance(schema, (dict, bool)):
            raise SchemaError("a schema is an object or a boolean", f"{pointer}/schema")
        tags.append(f.Tag(pointer, begin, f.JsonSchema(f"{pointer}/schema", schema, keyword=""), (end,)))
    fields.finish()
    if not triggers or not tags:
        fields.fail("must not be empty", name if triggers else "triggers")
    return f.TriggeredTags("#", tuple(dict.fromkeys(triggers)), tuple(tags), is_required)
