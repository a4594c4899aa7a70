"""Reading the keywords of one schema object: checks what they hold, and collects what they assert.

:data:`KEYWORDS` is the table of all that is enforced: to support a keyword is to write its reader here and to give
what it asserts a meaning in :mod:`constrain.grammar.json_schema.normal.normalize`.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from constrain.errors import GrammarError
from constrain.grammar.json_schema.document.document import Location, escape, type_name
from constrain.grammar.json_schema.document.drafts import ALL_WORDS, ANNOTATIONS, CONTENT, Dialect
from constrain.grammar.json_schema.document.places import Handle
from constrain.grammar.json_schema.lexical.formats.patterns import FORMATS
from constrain.grammar.json_schema.lexical.idn.hostnames import IDN_HOSTNAME
from constrain.grammar.json_schema.lexical.texts import ALL_TEXTS, Format, Text, Words, every, pattern_text, without
from constrain.grammar.json_schema.normal.assertions import (
    TYPES,
    Assertions,
    check_names,
    check_values,
    to_array,
    to_count,
    to_decimal,
)
from constrain.grammar.json_schema.normal.nodes import Bound, Divisor, KeyRule, Term, describe, higher, lower
from constrain.grammar.regex.charsets import find_posix_class

Reader = Callable[[Assertions, Any, Location, str], None]


def read(location: Location) -> Assertions:
    """What the schema object at ``location`` asserts.

    Raises SchemaError for a keyword that is not enforced, or that does not hold what it must.
    """
    schema = location.schema
    assert isinstance(schema, dict)
    assertions = Assertions()
    readers = _readers(location.resource.dialect)
    for keyword, value in schema.items():
        reader = readers.get(keyword, _unknown)
        if reader is not None:
            reader(assertions, value, location, keyword)
    return assertions


def _schema(attribute: str) -> Reader:
    """The reader of a keyword that holds one schema, which is that attribute of the assertions."""

    def read_schema(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
        setattr(assertions, attribute, location.child(value, keyword))

    return read_schema


def _count(attribute: str) -> Reader:
    """The reader of a keyword that holds a number of things."""

    def read_count(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
        setattr(assertions, attribute, to_count(value, location, keyword))

    return read_count


def _schemas(value: Any, location: Location, keyword: str) -> tuple[Handle, ...]:
    array = to_array(value, location, keyword, "schemas")
    return tuple(location.child(schema, keyword, str(index)) for index, schema in enumerate(array))


# -- any type ------------------------------------------------------------------------------------


_TYPE_SETS = {name: frozenset((name,)) for name in TYPES}


# What languages and other notations call them.
_MEANT = {
    **dict.fromkeys(("dict", "map", "record", "struct"), "object"),
    **dict.fromkeys(("list", "tuple", "set"), "array"),
    **dict.fromkeys(("str", "text", "char", "date", "datetime"), "string"),
    **dict.fromkeys(("float", "double", "decimal"), "number"),
    **dict.fromkeys(("int", "long", "bigint"), "integer"),
    **dict.fromkeys(("none", "nil"), "null"),
    "bool": "boolean",
}


def no_type(name: Any) -> str:
    """The message about what is given as a type and is none."""
    hint = ""
    if isinstance(name, str) and len(name) <= _LONGEST_SLIP:
        word = name.lower()
        meant = _MEANT.get(word) or next(iter(get_close_matches(word, sorted(TYPES), 1, 0.8)), None)
        hint = f"; did you mean {meant!r}?" if meant else ""
    return f"{describe(name)} is not a type: it must be one of {', '.join(sorted(TYPES))}{hint}"


def _read_type(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    known = _TYPE_SETS.get(value) if isinstance(value, str) else None
    if known is not None:
        assertions.types = known
        return
    names = value if isinstance(value, (list, tuple)) else (value,)
    if not names:
        location.fail("type is an empty array: no value has none of the types", keyword)
    for name in names:
        if not isinstance(name, str) or name not in TYPES:
            if name == "json_schema":
                location.fail("a response_format is no schema: give 'schema' of its 'json_schema'", keyword)
            location.fail(no_type(name), keyword)
    assertions.types = frozenset(names)


def _read_enum(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    values = to_array(value, location, keyword, "values")
    check_values(values, f"{location.pointer}/{keyword}")
    assertions.enum = tuple(values)


def _read_const(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    check_values((value,), f"{location.pointer}/{keyword}")
    assertions.const = (value,)


def _read_branches(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    branches = _schemas(value, location, keyword)
    if not branches:
        location.fail(f"{keyword} must hold at least one schema", keyword)
    setattr(assertions, {"anyOf": "any_of", "allOf": "all_of", "oneOf": "one_of"}[keyword], branches)


def _read_nullable(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    if type(value) is not bool:
        location.fail(f"nullable must be a boolean, not {type_name(value)}", keyword)
    assertions.nullable = value


def _read_ref(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    assertions.ref = location.resource.document.references.resolve(location)


def _read_dynamic_ref(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    references = location.resource.document.references
    resolve = references.resolve_dynamic if keyword == "$dynamicRef" else references.resolve_recursive
    assertions.dynamic_ref = resolve(location)


# -- numbers -------------------------------------------------------------------------------------


def _read_minimum(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    assertions.low = higher(assertions.low, _bound(value, location, keyword, keyword == "exclusiveMinimum"))


def _read_maximum(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    assertions.high = lower(assertions.high, _bound(value, location, keyword, keyword == "exclusiveMaximum"))


def _bound(value: Any, location: Location, keyword: str, is_open: bool) -> Bound:
    if is_open and isinstance(value, bool):
        # OpenAPI 3.0 has it as draft 4 does.
        location.fail(f"{keyword} must be a number, not a boolean (it is one in draft 4, if $schema says so)", keyword)
    pointer = f"{location.pointer}/{keyword}"
    return Bound(to_decimal(value, pointer), is_open, pointer)


def _read_multiple_of(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    pointer = f"{location.pointer}/{keyword}"
    divisor = to_decimal(value, pointer)
    if divisor <= 0:
        location.fail(f"multipleOf must be greater than 0, not {divisor}", keyword)
    assertions.divisors += (Divisor(divisor, pointer),)


def _read_boolean_exclusive(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    if type(value) is not bool:
        location.fail(f"{keyword} must be a boolean in draft 4, not {type_name(value)}", keyword)
    if keyword == "exclusiveMinimum":
        assertions.low_is_open = value
    else:
        assertions.high_is_open = value


# -- strings -------------------------------------------------------------------------------------


def _read_pattern(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    if not isinstance(value, str):
        location.fail(f"pattern must be a string, not {type_name(value)}", keyword)
    text = _pattern(value, location, keyword)
    if text is None:
        assertions.is_loose = True
    elif isinstance(text, Words):
        assertions.words = tuple(sorted(text.values))
    elif text != ALL_TEXTS:
        assertions.terms += (Term(text, f"{location.pointer}/{keyword}"),)


def _pattern(source: str, location: Location, *path: str) -> Text | None:
    """The strings in which a pattern is found; None if it cannot be enforced, and the caller is lenient."""
    document = location.resource.document
    options = document.options
    try:
        text = pattern_text(source)
        if options.matches_in_full:
            text = pattern_text(f"^(?:{source})$")
        if options.unwritable and text != ALL_TEXTS:
            text = every(text, without(pattern_text(_one_of(options.unwritable))))
    except GrammarError as error:
        document.leave_out(f"pattern {describe(source)}: {error}", location.pointer_to(*path))
        return None
    reason = find_posix_class(source)
    if reason is not None:
        # It is valid ECMAScript, so it is not refused.
        document.note(f"pattern {describe(source)}: {reason}", location.pointer_to(*path))
    return text


def _one_of(characters: str) -> str:
    """A pattern that finds one of some ASCII characters."""
    return "[" + "".join(rf"\x{ord(character):02x}" for character in characters) + "]"


def _read_format(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    if not isinstance(value, str):
        location.fail(f"format must be a string, not {type_name(value)}", keyword)
    document = location.resource.document
    if not document.options.asserts_formats and not location.resource.dialect.asserts_formats:
        return
    if value in FORMATS or value == IDN_HOSTNAME:
        assertions.terms += (Term(Format(value), f"{location.pointer}/{keyword}"),)
    else:
        reason = f"the format {describe(value)} is unknown: it has no effect"
        document.warnings.append(f"at {location.pointer}/{keyword}: {reason}")


# -- arrays --------------------------------------------------------------------------------------


def _read_items(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    if isinstance(value, (list, tuple)):
        if not location.resource.dialect.array_items or "prefixItems" in (location.schema or ()):  # type: ignore[operator]
            location.fail("items must be a schema, not an array (prefixItems takes one)", keyword)
        assertions.items_is_array = True
        assertions.prefix = _schemas(value, location, keyword)
    else:
        assertions.items = location.child(value, keyword)


def _read_prefix_items(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    assertions.prefix = _schemas(value, location, keyword)


def _read_unique_items(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    if type(value) is not bool:
        location.fail(f"uniqueItems must be a boolean, not {type_name(value)}", keyword)
    if value:
        assertions.unique = f"{location.pointer}/{keyword}"


# -- objects -------------------------------------------------------------------------------------


def _read_properties(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    if not isinstance(value, dict):
        location.fail(f"properties must be an object of schemas, not {type_name(value)}", keyword)
    check_names(value, f"{location.pointer}/{keyword}")
    assertions.properties = location.children(value, keyword)


def _read_required(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    pointer = f"{location.pointer}/{keyword}"
    required = {}
    for name in to_array(value, location, keyword, "strings"):
        if not isinstance(name, str):
            location.fail(f"required must be an array of strings, but holds {type_name(name)}", keyword)
        required[name] = pointer
    assertions.required = required


def _read_pattern_properties(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    if not isinstance(value, dict):
        location.fail(f"patternProperties must be an object of schemas, not {type_name(value)}", keyword)
    check_names(value, f"{location.pointer}/{keyword}")
    for source, schema in value.items():
        keys, handle = _pattern(source, location, keyword, source), location.child(schema, keyword, source)
        if keys is None:
            # Any member may be one of these, which is then not an additional one.
            assertions.is_loose = True
            keys, handle = ALL_TEXTS, ()
        assertions.patterns += (KeyRule(keys, handle),)


def _read_dependencies(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    """All three keywords: what depends is an array of names, a schema, or (in ``dependencies``) either."""
    if not isinstance(value, dict):
        location.fail(f"{keyword} must be an object, not {type_name(value)}", keyword)
    check_names(value, f"{location.pointer}/{keyword}")
    for name, what in value.items():
        if keyword == "dependentSchemas" or (keyword == "dependencies" and isinstance(what, (dict, bool))):
            assertions.dependencies += ((name, location.child(what, keyword, name)),)
            continue
        pointer = location.pointer_to(keyword, name)
        if keyword == "dependencies" and isinstance(what, str):
            # Draft 3 took a single name, and schemas of later drafts are often written so.
            location.fail("dependencies must hold schemas or arrays of names, not a string", keyword, name)
        if not isinstance(what, (list, tuple)) or not all(isinstance(other, str) for other in what):
            location.fail(f"{keyword} must hold arrays of names", keyword, name)
        assertions.dependencies += ((name, dict.fromkeys(what, pointer)),)


_LONGEST_SLIP = 30
"""Letters of an unknown keyword that is compared with those that there are."""

# -- the table -----------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _near(keyword: str) -> str:
    """What an unknown keyword may be a slip of the pen for, in words; empty if nothing is near."""
    words = get_close_matches(keyword, KEYWORDS, 1, 0.8) if len(keyword) <= _LONGEST_SLIP else []
    return f"; did you mean {words[0]!r}?" if words else ""


def _unknown(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    if not isinstance(keyword, str):
        location.fail(f"a schema's keys must be strings, not {type_name(keyword)}")
    document = location.resource.document
    if keyword in CONTENT:
        reason = f"{keyword!r} is an annotation and is not enforced"
    elif keyword == "schema" and isinstance(value, dict):
        reason = "unknown keyword 'schema' has no effect; if that is the schema, give it alone"
    elif keyword in location.resource.dialect.unenforced:
        reason = f"{location.resource.dialect.unenforced[keyword].format(value)} is not enforced"
    elif keyword in ALL_WORDS:
        reason = f"{location.resource.dialect.name} has no keyword {keyword!r}: it has no effect"
    else:
        reason = f"unknown keyword {keyword!r} has no effect{_near(keyword)}"
    document.warnings.append(f"at {location.pointer}/{escape(keyword)}: {reason}")


KEYWORDS: dict[str, Reader] = {
    "$ref": _read_ref,
    "$dynamicRef": _read_dynamic_ref,
    "$recursiveRef": _read_dynamic_ref,
    "type": _read_type,
    "enum": _read_enum,
    "const": _read_const,
    "allOf": _read_branches,
    "anyOf": _read_branches,
    "oneOf": _read_branches,
    "not": _schema("excluded"),
    "if": _schema("condition"),
    "then": _schema("then"),
    "else": _schema("otherwise"),
    "nullable": _read_nullable,
    "minimum": _read_minimum,
    "maximum": _read_maximum,
    "exclusiveMinimum": _read_minimum,
    "exclusiveMaximum": _read_maximum,
    "minLength": _count("min_length"),
    "maxLength": _count("max_length"),
    "multipleOf": _read_multiple_of,
    "pattern": _read_pattern,
    "format": _read_format,
    "items": _read_items,
    "additionalItems": _schema("additional_items"),
    "prefixItems": _read_prefix_items,
    "minItems": _count("min_items"),
    "maxItems": _count("max_items"),
    "uniqueItems": _read_unique_items,
    "contains": _schema("contains"),
    "minContains": _count("min_contains"),
    "maxContains": _count("max_contains"),
    "unevaluatedItems": _schema("unevaluated_items"),
    "properties": _read_properties,
    "required": _read_required,
    "additionalProperties": _schema("additional"),
    "patternProperties": _read_pattern_properties,
    "propertyNames": _schema("property_names"),
    "minProperties": _count("min_properties"),
    "maxProperties": _count("max_properties"),
    "dependencies": _read_dependencies,
    "dependentRequired": _read_dependencies,
    "dependentSchemas": _read_dependencies,
    "unevaluatedProperties": _schema("unevaluated_properties"),
}
"""Keyword to reader."""

_READERS: dict[Dialect, dict[str, Reader | None]] = {}


def _readers(dialect: Dialect) -> dict[str, Reader | None]:
    """The table for one draft; None is an annotation."""
    table = _READERS.get(dialect)
    if table is None:
        table = {word: KEYWORDS[word] for word in dialect.words - CONTENT - ANNOTATIONS}
        table |= dict.fromkeys(ANNOTATIONS)
        if dialect.boolean_exclusive:
            table["exclusiveMinimum"] = table["exclusiveMaximum"] = _read_boolean_exclusive
        _READERS[dialect] = table
    return table
