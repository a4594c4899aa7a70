"""The metaschemas of the drafts that are read, as the specification gives them, without their annotations.

Schemas of schemas refer to them, as those of OpenAPI 2.0 and of Arazzo do.  Each is made of a table: keywords and, for
all keywords of a row, what they hold.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

Schema = dict[str, Any]

_TYPES = ["array", "boolean", "integer", "null", "number", "object", "string"]
_TEXT: Schema = {"type": "string"}
_FLAG: Schema = {"type": "boolean"}
_NUMBER: Schema = {"type": "number"}
_REGEX: Schema = {"type": "string", "format": "regex"}
_URI: Schema = {"type": "string", "format": "uri"}
_REFERENCE: Schema = {"type": "string", "format": "uri-reference"}
_VALUES: Schema = {"type": "array", "items": True}
_POSITIVE: Schema = {"type": "number", "exclusiveMinimum": 0}
_NO_FRAGMENT = "^[^#]*#?$"


class _Parts:
    """What keywords hold, where ``schema`` is how a subschema is referred to, and definitions are under ``where``."""

    def __init__(self, schema: Schema, where: str, count: str = "nonNegativeInteger") -> None:
        self.schema = schema
        self.schemas = {"$ref": f"#/{where}/schemaArray"}
        self.named = {"type": "object", "additionalProperties": schema}
        self.by_pattern = {**self.named, "propertyNames": {"format": "regex"}}
        self.count = {"$ref": f"#/{where}/{count}"}
        self.count_from_0 = {"$ref": f"#/{where}/{count}Default0"}
        self.names = {"$ref": f"#/{where}/stringArray"}
        one = {"$ref": f"#/{where}/simpleTypes"}
        self.types = {"anyOf": [one, {"type": "array", "items": one, "minItems": 1, "uniqueItems": True}]}
        self.items = {"anyOf": [schema, self.schemas]}
        self.dependencies = {"type": "object", "additionalProperties": {"anyOf": [schema, self.names]}}
        self.array_of_schemas = {"type": "array", "minItems": 1, "items": schema}
        self.definitions: Schema = {
            count: {"type": "integer", "minimum": 0},
            f"{count}Default0": self.count,
            "simpleTypes": {"enum": _TYPES},
            "stringArray": {"type": "array", "items": _TEXT, "uniqueItems": True},
        }


# Members are written in the order of a schema, so it is part of what a metaschema says.
_WORDS = """id $id $schema $anchor $ref $dynamicRef $dynamicAnchor $recursiveRef $recursiveAnchor $vocabulary $comment
    $defs title description default deprecated readOnly writeOnly examples
    multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern
    prefixItems additionalItems unevaluatedItems items maxItems minItems uniqueItems contains maxContains minContains
    maxProperties minProperties required dependentRequired additionalProperties unevaluatedProperties definitions
    properties patternProperties dependentSchemas dependencies propertyNames const enum type format
    contentMediaType contentEncoding contentSchema if then else allOf anyOf oneOf not"""
_ORDER = {keyword: place for place, keyword in enumerate(_WORDS.split())}


def _keywords(*rows: tuple[str, Any]) -> Schema:
    """By keyword, in order, what the rows say."""
    return _in_order({keyword: holds for words, holds in rows for keyword in words.split()})


def _in_order(properties: Schema) -> Schema:
    return dict(sorted(properties.items(), key=lambda each: _ORDER[each[0]]))


def _draft_4(uri: str) -> Schema:
    parts = _Parts({"$ref": "#"}, "definitions", "positiveInteger")
    more = {"anyOf": [_FLAG, parts.schema]}
    names = {**parts.definitions["stringArray"], "minItems": 1}
    count = {"positiveIntegerDefault0": {"allOf": [parts.count, {}]}}
    return {
        "id": uri,
        "$schema": uri,
        "definitions": {"schemaArray": parts.array_of_schemas, **parts.definitions, **count, "stringArray": names},
        "type": "object",
        "properties": _keywords(
            ("id $schema title description format", _TEXT),
            ("default", {}),
            ("multipleOf", {"type": "number", "minimum": 0, "exclusiveMinimum": True}),
            ("maximum minimum", _NUMBER),
            ("exclusiveMaximum exclusiveMinimum uniqueItems", _FLAG),
            ("maxLength maxItems maxProperties", parts.count),
            ("minLength minItems minProperties", parts.count_from_0),
            ("pattern", _REGEX),
            ("additionalItems additionalProperties", more),
            ("items", parts.items),
            ("required", parts.names),
            ("definitions properties patternProperties", parts.named),
            ("dependencies", parts.dependencies),
            ("enum", {"type": "array", "minItems": 1, "uniqueItems": True}),
            ("type", parts.types),
            ("allOf anyOf oneOf", parts.schemas),
            ("not", parts.schema),
        ),
        "dependencies": {"exclusiveMaximum": ["maximum"], "exclusiveMinimum": ["minimum"]},
    }


def _draft_6_or_7(uri: str) -> Schema:
    parts = _Parts({"$ref": "#"}, "definitions")
    anything: Any = {} if "06" in uri else True
    count = {"nonNegativeIntegerDefault0": {"allOf": [parts.count, {}]}}
    properties = _keywords(
        ("$id $ref", _REFERENCE),
        ("$schema", _URI),
        ("title description format", _TEXT),
        ("default const", anything),
        ("examples", {"type": "array", "items": anything}),
        ("multipleOf", _POSITIVE),
        ("maximum exclusiveMaximum minimum exclusiveMinimum", _NUMBER),
        ("maxLength maxItems maxProperties", parts.count),
        ("minLength minItems minProperties", parts.count_from_0),
        ("pattern", _REGEX),
        ("additionalItems contains additionalProperties propertyNames not", parts.schema),
        ("items", parts.items),
        ("uniqueItems", _FLAG),
        ("required", parts.names),
        ("definitions properties", parts.named),
        ("patternProperties", parts.by_pattern),
        ("dependencies", parts.dependencies),
        ("enum", {"type": "array"} if "06" in uri else _VALUES),
        ("type", parts.types),
        ("allOf anyOf oneOf", parts.schemas),
    )
    if "07" in uri:
        properties |= _keywords(
            ("$comment contentMediaType contentEncoding", _TEXT),
            ("readOnly", _FLAG),
            ("if then else", parts.schema),
        )
    return {
        "$schema": uri,
        "$id": uri,
        "definitions": {"schemaArray": parts.array_of_schemas, **parts.definitions, **count},
        "type": ["object", "boolean"],
        "properties": _in_order(properties),
    }


_CORE_2019 = _keywords(
    ("$id", {**_REFERENCE, "pattern": _NO_FRAGMENT}),
    ("$schema", _URI),
    ("$anchor", {"type": "string", "pattern": "^[A-Za-z][-A-Za-z0-9.:_]*$"}),
    ("$ref $recursiveRef", _REFERENCE),
    ("$recursiveAnchor", _FLAG),
    ("$vocabulary", {"type": "object", "propertyNames": _URI, "additionalProperties": _FLAG}),
    ("$comment", _TEXT),
)
_NAMES_2020 = {
    "anchorString": {"type": "string", "pattern": "^[A-Za-z_][-A-Za-z0-9._]*$"},
    "uriString": _URI,
    "uriReferenceString": _REFERENCE,
}
_A_URI, _ANCHOR = {"$ref": "#/$defs/uriString"}, {"$ref": "#/$defs/anchorString"}
_A_REFERENCE = {"$ref": "#/$defs/uriReferenceString"}
_CORE_2020 = _keywords(
    ("$id", {**_A_REFERENCE, "pattern": _NO_FRAGMENT}),
    ("$schema", _A_URI),
    ("$ref $dynamicRef", _A_REFERENCE),
    ("$anchor $dynamicAnchor", _ANCHOR),
    ("$vocabulary", {"type": "object", "propertyNames": _A_URI, "additionalProperties": _FLAG}),
    ("$comment", _TEXT),
)


def _vocabularies(parts: _Parts, is_2019: bool) -> dict[str, tuple[Schema, Schema]]:
    """For each vocabulary its keywords and its definitions."""
    unevaluated = _keywords(("unevaluatedItems unevaluatedProperties", parts.schema))
    array = {"additionalItems": parts.schema, "items": parts.items, **unevaluated}
    applicator = _keywords(
        ("contains additionalProperties propertyNames if then else not", parts.schema),
        ("properties dependentSchemas", parts.named),
        ("patternProperties", parts.by_pattern),
        ("allOf anyOf oneOf", parts.schemas),
    )
    validation = _keywords(
        ("multipleOf", _POSITIVE),
        ("maximum exclusiveMaximum minimum exclusiveMinimum", _NUMBER),
        ("maxLength maxItems maxContains minContains maxProperties", parts.count),
        ("minLength minItems minProperties", parts.count_from_0),
        ("pattern", _REGEX),
        ("uniqueItems", _FLAG),
        ("required", parts.names),
        ("dependentRequired", {"type": "object", "additionalProperties": parts.names}),
        ("const", True),
        ("enum", _VALUES),
        ("type", parts.types),
    )
    about = _keywords(
        *(("title description", _TEXT), ("default", True), ("deprecated readOnly writeOnly", _FLAG)),
        ("examples", _VALUES),
    )
    content = _keywords(("contentMediaType contentEncoding", _TEXT), ("contentSchema", parts.schema))
    core, names = (_CORE_2019, {}) if is_2019 else (_CORE_2020, _NAMES_2020)
    more = array if is_2019 else {"prefixItems": parts.schemas, "items": parts.schema}
    if not is_2019:
        # This draft has them in another order.
        validation = {keyword: validation[keyword] for keyword in ("type", "const", "enum")} | validation
        content = {"contentEncoding": _TEXT} | content
    return {
        "core": (_in_order({**core, "$defs": parts.named}), names),
        "applicator": (_in_order({**applicator, **more}), {"schemaArray": parts.array_of_schemas}),
        **({} if is_2019 else {"unevaluated": (unevaluated, {})}),
        "validation": (validation, parts.definitions),
        "meta-data": (about, {}),
        "format" if is_2019 else "format-annotation": ({"format": _TEXT}, {}),
        "content": (content, {}),
    }


def _with_vocabularies(folder: str, name: str) -> Schema | None:
    """A document of 2019-09 or 2020-12: the metaschema, or that of a vocabulary."""
    is_2019 = "2019" in folder
    schema = {"$recursiveRef": "#"} if is_2019 else {"$dynamicRef": "#meta"}
    anchor = {"$recursiveAnchor": True} if is_2019 else {"$dynamicAnchor": "meta"}
    parts = _Parts(schema, "$defs")
    found = _vocabularies(parts, is_2019)
    head = {"$schema": f"{folder}/schema", "$id": f"{folder}/{name}", **anchor, "type": ["object", "boolean"]}
    if name == "schema":
        names = {"$ref": "meta/validation#/$defs/stringArray"}
        properties = {
            "definitions": parts.named,
            "dependencies": {"type": "object", "additionalProperties": {"anyOf": [schema, names]}},
        }
        if not is_2019:
            properties["$recursiveAnchor"] = {"$ref": f"meta/core{_ANCHOR['$ref']}"}
            properties["$recursiveRef"] = {"$ref": f"meta/core{_A_REFERENCE['$ref']}"}
        vocabularies = {f"{folder}/vocab/{each}": each != "format" for each in found}
        every = [{"$ref": f"meta/{each}"} for each in found]
        return {**head, "$vocabulary": vocabularies, "allOf": every, "properties": properties}
    vocabulary = name.removeprefix("meta/")
    if vocabulary == name or vocabulary not in found:
        return None
    properties, definitions = found[vocabulary]
    return {
        **head,
        "$vocabulary": {f"{folder}/vocab/{vocabulary}": True},
        "properties": properties,
        **({"$defs": definitions} if definitions else {}),
    }


@lru_cache(maxsize=32)
def metaschema(uri: str) -> Schema | None:
    """The document of a draft with this URI (without fragment); None if it has none."""
    made = None
    scheme, _, name = uri.partition("://json-schema.org/")
    if name in ("draft-04/schema", "draft-06/schema", "draft-07/schema") and scheme in ("http", "https"):
        make = _draft_4 if "04" in name else _draft_6_or_7
        made = make(f"http://json-schema.org/{name}#")
    elif scheme == "https" and name.startswith(("draft/2019-09/", "draft/2020-12/")):
        folder = uri[: -len(name)] + name[: len("draft/2019-09")]
        made = _with_vocabularies(folder, uri.removeprefix(f"{folder}/"))
    # Places are told apart by their objects, so no part may be in two of them.
    return None if made is None else json.loads(json.dumps(made))
