"""The words of JSON Schema: which draft knows which keyword, and what a draft does differently.

This is the one list of them.  A word that is in no draft is an annotation, as the specification says, and so is
a word that the declared draft does not know; both are noted as warnings.  What this front-end does with a known
word is said in :mod:`constrain.grammar.json_schema.normal.keywords`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from constrain.grammar.json_schema.lexical.numbers import NumberForm


def words_of(text: str) -> frozenset[str]:
    """Words with white space between them, as a set."""
    return frozenset(text.split())


_DRAFT_4 = words_of("""$schema $ref id title description default definitions type enum allOf anyOf oneOf not format
    multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern
    items additionalItems maxItems minItems uniqueItems
    properties required additionalProperties patternProperties maxProperties minProperties dependencies""")
_DRAFT_6 = (_DRAFT_4 | {"$id", "const", "contains", "examples", "propertyNames"}) - {"id"}
_DRAFT_7 = _DRAFT_6 | words_of("$comment if then else readOnly writeOnly contentMediaType contentEncoding")
_DRAFT_2019 = _DRAFT_7 | words_of(
    """$anchor $defs $recursiveRef $recursiveAnchor $vocabulary dependentSchemas dependentRequired deprecated
    minContains maxContains unevaluatedItems unevaluatedProperties contentSchema"""
)
_DRAFT_2020 = (_DRAFT_2019 | {"prefixItems", "$dynamicRef", "$dynamicAnchor"}) - {
    "additionalItems",
    "$recursiveRef",
    "$recursiveAnchor",
}

# Not a word of any draft, but of OpenAPI's schemas, where it changes what is valid.
_OPENAPI = frozenset({"nullable"})

ALL_WORDS = _DRAFT_4 | _DRAFT_2019 | _DRAFT_2020 | _OPENAPI
"""Every keyword that some draft knows."""

ANNOTATIONS = words_of("""$schema $id id $comment title description default examples deprecated readOnly writeOnly
    $defs definitions $anchor $dynamicAnchor $recursiveAnchor $vocabulary discriminator""")
"""Keywords that never make an instance invalid; OpenAPI's ``discriminator``, which pydantic writes, is a hint."""

CONTENT = words_of("contentMediaType contentEncoding contentSchema")
"""Keywords about what a string holds; no draft asserts them."""

ONE, SEVERAL, ONE_OR_SEVERAL = "a schema", "an array of schemas", "a schema or an array of schemas"
NAMED, NAMED_OR_NAMES = "schemas by name", "schemas or arrays of names by name"

SUBSCHEMAS = {
    **dict.fromkeys(("additionalProperties", "additionalItems", "contains", "not", "if", "then", "else"), ONE),
    **dict.fromkeys(("propertyNames", "unevaluatedProperties", "unevaluatedItems", "contentSchema"), ONE),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), SEVERAL),
    **dict.fromkeys(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"), NAMED),
    "items": ONE_OR_SEVERAL,
    "dependencies": NAMED_OR_NAMES,
}
"""The keywords that hold schemas, and how."""


@dataclass(frozen=True, eq=False)
class Dialect:
    """One draft, as far as it changes what a schema means.

    Attributes
    ----------
    name : str
        For messages.
    words : frozenset of str
        The keywords it knows.
    id_keyword : str
        The keyword that gives a schema its URI.
    ref_hides_siblings : bool
        Whether everything beside ``$ref`` is ignored.
    boolean_exclusive : bool
        Whether ``exclusiveMinimum`` is a boolean beside ``minimum`` (and the same for the maximum).
    array_items : bool
        Whether ``items`` may be an array of schemas, with ``additionalItems`` for what follows.
    contains_evaluates : bool
        Whether items that ``contains`` matches count as evaluated.
    integer : NumberForm
        What ``"type": "integer"`` means.
    asserts_formats : bool
        Whether ``format`` is enforced whatever the caller says.
    unenforced : mapping of str to str
        Words that stand for what cannot be enforced, each with what that is, for warnings.
    """

    name: str
    words: frozenset[str]
    id_keyword: str = "$id"
    ref_hides_siblings: bool = False
    boolean_exclusive: bool = False
    array_items: bool = True
    contains_evaluates: bool = False
    integer: NumberForm = NumberForm.INTEGRAL
    asserts_formats: bool = False
    unenforced: Mapping[str, str] = field(default_factory=dict)


DRAFT_4 = Dialect(
    "draft 4",
    _DRAFT_4,
    id_keyword="id",
    ref_hides_siblings=True,
    boolean_exclusive=True,
    integer=NumberForm.NO_FRACTION,
)
DRAFT_6 = Dialect("draft 6", _DRAFT_6, ref_hides_siblings=True)
DRAFT_7 = Dialect("draft 7", _DRAFT_7, ref_hides_siblings=True)
DRAFT_2019 = Dialect("draft 2019-09", _DRAFT_2019)
DRAFT_2020 = Dialect("draft 2020-12", _DRAFT_2020, array_items=False, contains_evaluates=True)
UNDECLARED = Dialect(
    "draft 2020-12 (no $schema)", _DRAFT_2020 | {"additionalItems"} | _OPENAPI, contains_evaluates=True
)
"""A schema without ``$schema``: 2020-12, and ``items`` in the array form, which can only be meant one way."""

PYDANTIC = replace(
    UNDECLARED,
    name="draft 2020-12, as pydantic reads it",
    integer=NumberForm.NO_FRACTION,
    unenforced={
        **{bound: f"the bound {bound!r}" for bound in ("ge", "gt", "le", "lt")},
        "now_op": "whether a time is past or future",
        "min_length_of_values": "min_length, which counts items that differ when they have been read,",
        "rounded_multiple_of": "multiple_of, by a number that is rounded when it is read,",
        "python_regex": "that a regular expression is one of Python, not of ECMA-262,",
        "discriminator_function": "a discriminator that is a function",
        "python_validator": "the Python code in {}",
    },
)
"""What pydantic writes, with integers as its validators read them: none from ``1e30``, and another one from
``9007199254740993.0``."""

PYDANTIC_URI = "constrain://pydantic"


def name_of_dialect(declared: str) -> str:
    """What :data:`DIALECTS` has for a ``$schema``, if it is one of them: its URI without scheme and empty fragment."""
    return declared.partition("://")[2].rstrip("#")


DIALECTS = {
    name_of_dialect(PYDANTIC_URI): PYDANTIC,
    "json-schema.org/draft-04/schema": DRAFT_4,
    "json-schema.org/draft-04/hyper-schema": DRAFT_4,
    "json-schema.org/draft-06/schema": DRAFT_6,
    "json-schema.org/draft-06/hyper-schema": DRAFT_6,
    "json-schema.org/draft-07/schema": DRAFT_7,
    "json-schema.org/draft-07/hyper-schema": DRAFT_7,
    "json-schema.org/draft/2019-09/schema": DRAFT_2019,
    "json-schema.org/draft/2020-12/schema": DRAFT_2020,
    "json-schema.org/schema": UNDECLARED,
}
"""By the URI in ``$schema``, without scheme and empty fragment."""

UNSUPPORTED_DIALECTS = frozenset(
    {"json-schema.org/draft-00/schema", "json-schema.org/draft-01/schema"}
    | {"json-schema.org/draft-02/schema", "json-schema.org/draft-03/schema"}
)
"""Drafts in which the same words mean something else, such as a boolean ``required``."""


# -- metaschemas of one's own: which keywords count follows from the vocabularies that they name ---------

# A vocabulary is a set of keywords with a URI (2019-09 and later).  A metaschema lists those that its schemas are
# written in, each with whether whoever reads them must know it.

_VALIDATION = words_of(
    """type enum const multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern
    maxItems minItems uniqueItems maxContains minContains maxProperties minProperties required dependentRequired"""
)
_UNEVALUATED = words_of("unevaluatedItems unevaluatedProperties")
_APPLICATOR = words_of(
    """prefixItems items additionalItems contains additionalProperties properties patternProperties dependentSchemas
    propertyNames if then else allOf anyOf oneOf not"""
)
_META_DATA = words_of("title description default deprecated readOnly writeOnly examples")
_CONTENT = words_of("contentMediaType contentEncoding contentSchema")
_FORMAT = words_of("format")

_WORDS = {
    "validation": _VALIDATION,
    "applicator": _APPLICATOR,
    "unevaluated": _UNEVALUATED,
    "meta-data": _META_DATA,
    "content": _CONTENT,
    "format": _FORMAT,
    "format-annotation": _FORMAT,
    "format-assertion": _FORMAT,
}

_PREFIXES = {
    "https://json-schema.org/draft/2019-09/vocab/": DRAFT_2019,
    "https://json-schema.org/draft/2020-12/vocab/": DRAFT_2020,
}


class UnknownVocabulary(Exception):
    """A vocabulary that must be known is not; the argument is its URI."""


def dialect_of(metaschema: Any, default: Dialect) -> Dialect:
    """The draft that a metaschema describes, with the keywords of the vocabularies that it names.

    Raises UnknownVocabulary.
    """
    listed = metaschema.get("$vocabulary") if isinstance(metaschema, Mapping) else None
    if not isinstance(listed, Mapping):
        return default
    names: set[str] = set()
    base = None
    for uri, is_required in listed.items():
        prefix, _, name = str(uri).rpartition("/")
        draft = _PREFIXES.get(prefix + "/")
        if draft is None or (name not in _WORDS and name != "core"):
            if is_required is True:
                raise UnknownVocabulary(uri)
            continue
        base = base or draft
        # In 2019-09 the keywords for what is unevaluated belong to the applicators.
        names |= {name, "unevaluated"} if name == "applicator" and draft is DRAFT_2019 else {name}
    return default if base is None else _limited(base, frozenset(names))


@lru_cache(maxsize=64)
def _limited(base: Dialect, names: frozenset[str]) -> Dialect:
    others = frozenset(_WORDS) - names
    kept = frozenset(word for name in names for word in _WORDS.get(name, ()))
    gone = frozenset(word for name in others for word in _WORDS[name]) - kept
    return replace(
        base,
        name=f"{base.name} with the vocabularies {', '.join(sorted(names))}",
        words=base.words - gone,
        asserts_formats="format-assertion" in names,
    )
