"""Metaschemas of one's own: which keywords count follows from the vocabularies that they name.

A vocabulary is a set of keywords with a URI (2019-09 and later).  A metaschema lists those that its schemas are written
in, each with whether whoever reads them must know it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from constrain.grammar.json_schema.document.drafts import DRAFT_2019, DRAFT_2020, Dialect, words_of

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
