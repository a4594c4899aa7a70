"""Whether a document is a schema at all: what the metaschemas say, for the parts that nothing leads to as well.

A grammar is made of what the root leads to, and reading that checks it.  The rest is gone through here once, without
making anything of it: each keyword of the draft must hold what the draft's metaschema says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import lru_cache
from typing import Any, NoReturn

from constrain.errors import SchemaError
from constrain.grammar.json_schema.document import drafts
from constrain.grammar.json_schema.document.document import Document, Resource, escape, type_name
from constrain.grammar.json_schema.normal.assertions import TYPES, check_values
from constrain.grammar.json_schema.normal.nodes import describe
from constrain.limits import spend

Link = tuple["Link | None", tuple[str, ...]]
"""Where a schema is: the one around it, and the way from there.  Pointers are only written for messages."""

Check = Callable[[Any], "str | None"]
"""What is wrong with the value of a keyword, to be put after the keyword's name; None if nothing is."""


def check_document(document: Document) -> None:
    """Raise SchemaError for the first keyword that holds what it must not, in any subschema of the document."""
    root = document.root
    if isinstance(root.schema, bool) and root.resource.dialect is drafts.DRAFT_4:
        raise SchemaError("draft 4 has no boolean schemas", root.pointer)
    todo: list[tuple[Any, Link, Resource]] = [(root.schema, (None, (root.resource.pointer,)), root.resource)]
    tables: dict[drafts.Dialect, dict[str, Any]] = {}
    seen: set[int] = set()
    located = document.locations
    while todo:
        spend()
        schema, link, resource = todo.pop()
        if type(schema) is bool:
            if resource.dialect is drafts.DRAFT_4:
                _fail("draft 4 has no boolean schemas", link)
            continue
        if not isinstance(schema, dict):
            _fail(f"a schema must be an object or a boolean, not {type_name(schema)}", link)
        location = located.get(id(schema))
        if location is not None:
            schema = location.schema  # of copies the first one
        if id(schema) in seen:
            continue
        seen.add(id(schema))
        if "$schema" in schema or resource.dialect.id_keyword in schema:
            resource = document.own_resource(schema, _pointer(link), resource)
        dialect = resource.dialect
        table = tables.get(dialect)
        if table is None:
            table = tables[dialect] = _table(dialect)
        for keyword, value in schema.items():
            entry = table.get(keyword)
            if entry is None:
                continue
            if entry is str:
                if type(value) is not str and not isinstance(value, str):
                    _fail(f"{keyword} must be a string, not {type_name(value)}", link, keyword)
            elif entry is drafts.ONE:
                if value is not True and value is not False:
                    todo.append((value, (link, (keyword,)), resource))
                elif dialect is drafts.DRAFT_4 and keyword not in _DRAFT_4_BOOLEANS:
                    _fail("draft 4 has no boolean schemas", link, keyword)
            elif entry is drafts.NAMED or entry is drafts.NAMED_OR_NAMES:
                if not isinstance(value, dict):
                    _fail(f"{keyword} must be an object, not {type_name(value)}", link, keyword)
                for name, one in value.items():
                    if not isinstance(name, str):
                        _fail(f"an object's keys must be strings, not {type_name(name)}", link, keyword)
                    if entry is drafts.NAMED_OR_NAMES and not isinstance(one, (dict, bool)):
                        wrong = (_names_of_draft_4 if dialect is drafts.DRAFT_4 else _names)(one)
                        if wrong is not None:
                            _fail(f"what depends on a name {wrong}", link, keyword, name)
                    elif one is not True or dialect is drafts.DRAFT_4:
                        todo.append((one, (link, (keyword, name)), resource))
            elif entry is drafts.SEVERAL or (entry is drafts.ONE_OR_SEVERAL and isinstance(value, (list, tuple))):
                if not isinstance(value, (list, tuple)):
                    _fail(f"{keyword} must be an array of schemas, not {type_name(value)}", link, keyword)
                if not value:
                    _fail(f"{keyword} must hold at least one schema", link, keyword)
                todo += [(one, (link, (keyword, str(index))), resource) for index, one in enumerate(value)]
            elif entry is drafts.ONE_OR_SEVERAL:
                if not (dialect is drafts.DRAFT_4 and type(value) is bool):
                    todo.append((value, (link, (keyword,)), resource))
                else:
                    _fail("draft 4 has no boolean schemas", link, keyword)
            else:
                wrong = entry(value)
                if wrong is not None:
                    if wrong in _HARMLESS:
                        document.refuse(f"{keyword} {wrong}", _pointer(link, keyword))
                    else:
                        _fail(f"{keyword} {wrong}", link, keyword)
        if dialect is drafts.DRAFT_4:
            for exclusive, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
                if exclusive in schema and limit not in schema:
                    _fail(f"{exclusive} of draft 4 must stand beside {limit}", link, exclusive)


def _fail(reason: str, link: Link, *path: str) -> NoReturn:
    raise SchemaError(reason, _pointer(link, *path))


def _pointer(link: Link, *path: str) -> str:
    steps: list[str] = []
    parent: Link | None = link
    first = ""
    while parent is not None:
        parent, own = parent
        if parent is None:
            first = own[0]
        else:
            steps += reversed(own)
    return "/".join([first, *map(escape, reversed(steps)), *map(escape, path)])


# -- what a keyword may hold ----------------------------------------------------------------------

_DRAFT_4_BOOLEANS = frozenset(("additionalItems", "additionalProperties"))

_REPEATED_NAMES = "names something twice"
_REPEATED_VALUES = "holds the same value twice, which this draft forbids"
_NO_NAMES = "must hold at least one name in draft 4"

# What changes nothing about which values are valid: a lenient caller takes it.
_HARMLESS = frozenset((_REPEATED_NAMES, _REPEATED_VALUES, _NO_NAMES))


def _boolean(value: Any) -> str | None:
    return None if type(value) is bool else f"must be a boolean, not {type_name(value)}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and type(value) is not bool


def _number(value: Any) -> str | None:
    return None if _is_number(value) else f"must be a number, not {type_name(value)}"


def _positive(value: Any) -> str | None:
    if not _is_number(value):
        return f"must be a number, not {type_name(value)}"
    return None if value > 0 else f"must be greater than 0, not {describe(value)}"


def _count(value: Any) -> str | None:
    if type(value) is int and value >= 0:
        return None
    # By the remainder, since a Decimal may have too large an exponent to be written as an integer.
    if _is_number(value) and value >= 0 and (isinstance(value, int) or _is_whole(value)):
        return None
    return f"must be a non-negative integer, not {describe(value) if _is_number(value) else type_name(value)}"


def _is_whole(value: float | Decimal) -> bool:
    if isinstance(value, float):
        return value.is_integer()
    return value.is_finite() and value == value.to_integral_value()


def _array(value: Any) -> str | None:
    return None if isinstance(value, (list, tuple)) else f"must be an array, not {type_name(value)}"


def _names(value: Any) -> str | None:
    wrong = _array(value)
    if wrong is not None:
        return wrong
    for name in value:
        if not isinstance(name, str):
            return f"must be an array of strings, but holds {type_name(name)}"
    return _REPEATED_NAMES if len(set(value)) < len(value) else None


def _names_of_draft_4(value: Any) -> str | None:
    wrong = _names(value)
    return _NO_NAMES if wrong is None and not value else wrong


def _values(value: Any) -> str | None:
    wrong = _array(value)
    if wrong is not None:
        return wrong
    if not value:
        return "must hold at least one value"
    check_values(value, "#")
    return _REPEATED_VALUES if _repeats(value) else None


def _repeats(values: Iterable[Any]) -> bool:
    known: set[Any] = set()
    for value in values:
        key = _key(value)
        if key in known:
            return True
        known.add(key)
    return False


def _key(value: Any) -> Any:
    """Something hashable that is equal for equal JSON values."""
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, dict):
        return ("object", frozenset((name, _key(one)) for name, one in value.items()))
    if isinstance(value, (list, tuple)):
        return ("array", tuple(map(_key, value)))
    return value if isinstance(value, (str, int, float, Decimal, type(None))) else id(value)


def _types(value: Any) -> str | None:
    if type(value) is str:
        return None if value in TYPES else f"{describe(value)} is none of {', '.join(sorted(TYPES))}"
    if not isinstance(value, (list, tuple)):
        return f"must be a string or an array of strings, not {type_name(value)}"
    if not value:
        return "must hold at least one type"
    for name in value:
        if not isinstance(name, str) or name not in TYPES:
            return f"holds {describe(name)}, which is none of {', '.join(sorted(TYPES))}"
    return _REPEATED_NAMES if len(set(value)) < len(value) else None


def _dependent_names(value: Any) -> str | None:
    if not isinstance(value, dict):
        return f"must be an object, not {type_name(value)}"
    for name, needed in value.items():
        if not isinstance(name, str):
            return f"must have strings for keys, not {type_name(name)}"
        wrong = _names(needed)
        if wrong is not None:
            return wrong if wrong in _HARMLESS else f"of {describe(name)} {wrong}"
    return None


def _vocabularies(value: Any) -> str | None:
    if not isinstance(value, dict):
        return f"must be an object, not {type_name(value)}"
    wrong = next((one for one in value.values() if type(one) is not bool), None)
    return None if wrong is None else f"must hold booleans, not {type_name(wrong)}"


_ANCHORS = {
    drafts.DRAFT_2019: re.compile(r"[A-Za-z][-A-Za-z0-9.:_]*"),
    drafts.DRAFT_2020: re.compile(r"[A-Za-z_][-A-Za-z0-9._]*"),
}


def _anchor(dialect: drafts.Dialect) -> Check:
    names = _ANCHORS.get(dialect, _ANCHORS[drafts.DRAFT_2020])

    def check(value: Any) -> str | None:
        if not isinstance(value, str):
            return f"must be a string, not {type_name(value)}"
        return None if names.fullmatch(value) else f"cannot be {describe(value)}: a letter, then letters, digits, -._"

    return check


def _identifier(value: Any) -> str | None:
    if not isinstance(value, str):
        return f"must be a string, not {type_name(value)}"
    # "#" alone at the end is what older schemas have.
    return None if "#" not in value[:-1] else f"must be a URI without a fragment, not {describe(value)}"


_ENTRIES: dict[str, Any] = {
    "title": str,
    "description": str,
    "$comment": str,
    "$schema": str,
    "$ref": str,
    "$dynamicRef": str,
    "$recursiveRef": str,
    "id": str,
    "$id": str,
    "pattern": str,
    "format": str,
    "contentMediaType": str,
    "contentEncoding": str,
    "$recursiveAnchor": _boolean,
    "deprecated": _boolean,
    "readOnly": _boolean,
    "writeOnly": _boolean,
    "uniqueItems": _boolean,
    "nullable": _boolean,
    "minimum": _number,
    "maximum": _number,
    "exclusiveMinimum": _number,
    "exclusiveMaximum": _number,
    "multipleOf": _positive,
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minContains", "maxContains"), _count),
    **dict.fromkeys(("minProperties", "maxProperties"), _count),
    "type": _types,
    "enum": _array,
    "required": _names,
    "examples": _array,
    "dependentRequired": _dependent_names,
    "$vocabulary": _vocabularies,
    **drafts.SUBSCHEMAS,
}


@lru_cache(maxsize=64)
def _table(dialect: drafts.Dialect) -> dict[str, Any]:
    """What each keyword of a draft may hold."""
    table = {keyword: entry for keyword, entry in _ENTRIES.items() if keyword in dialect.words}
    if "$anchor" in dialect.words:
        table["$anchor"] = table["$dynamicAnchor"] = _anchor(dialect)
        table["$id"] = _identifier
    if "$dynamicAnchor" not in dialect.words:
        table.pop("$dynamicAnchor", None)
    if not dialect.array_items:
        table["items"] = drafts.ONE
    if dialect is drafts.DRAFT_4:
        table["enum"] = _values
        table["exclusiveMinimum"] = table["exclusiveMaximum"] = _boolean
        table["required"] = _names_of_draft_4
    return table
