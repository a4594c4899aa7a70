"""Reads the values that several parts of ``tokenizer.json`` have: types, sequences, strings, flags, patterns."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from constrain.errors import TokenizerError

FILE_PARTS = ("normalizer", "pre_tokenizer", "post_processor", "decoder")
"""What changes text or ids, beside the model."""

MODELS = "BPE, Unigram, WordPiece and WordLevel"
"""Those that are supported."""


MOST_PARTS = 64
"""The most members of a ``Sequence``.  Real files have up to twenty; each goes through every text."""

_VOCABULARY = ("vocab", "merges")


def parts_of_file(content: dict[str, Any], outside: Iterable[int]) -> str:
    """What a file has beside tokens and merges, as JSON; ``outside``: the ids of added tokens that its model lacks."""
    parts: dict[str, Any] = {key: content.get(key) for key in FILE_PARTS}
    parts["model"] = {key: value for key, value in content["model"].items() if key not in _VOCABULARY}
    parts["outside"] = list(outside)
    return json.dumps(parts)


def type_of(entry: Any) -> str:
    """The name of a component, for messages too."""
    if not isinstance(entry, dict):
        return "null" if entry is None else repr(entry)[:100]
    kind = entry.get("type")
    # What is no name of a component may be of several lines.
    return kind if isinstance(kind, str) and kind.isidentifier() else repr(kind)[:100]


def parts_of(entry: Any, key: str) -> list[Any]:
    """The members of a ``Sequence``, those of sequences within it too; or the entry alone; nothing for null."""
    if entry is None:
        return []
    if type_of(entry) != "Sequence":
        return [entry]
    parts = entry.get(key)
    if not isinstance(parts, list):
        raise TokenizerError(f'a Sequence without "{key}"')
    # json.loads limits the depth.
    found = [part for inner in parts for part in parts_of(inner, key)]
    if len(found) > MOST_PARTS:
        raise TokenizerError(f'"{key}" has {len(found):,} parts; the limit is {MOST_PARTS}')
    return found


def text_of(entry: dict[str, Any], key: str) -> str:
    """A string of a component."""
    value = entry.get(key)
    if not isinstance(value, str):
        raise TokenizerError(f'{type_of(entry)}: "{key}" must be a string')
    try:
        value.encode()
    except UnicodeEncodeError:
        raise TokenizerError(f'{type_of(entry)}: "{key}" has a lone surrogate, which has no UTF-8') from None
    return value


def flag_of(entry: dict[str, Any], key: str, default: bool) -> bool:
    """A boolean of a component."""
    value = entry.get(key, default)
    if not isinstance(value, bool):
        raise TokenizerError(f'{type_of(entry)}: "{key}" must be a boolean')
    return value


def pattern_of(entry: dict[str, Any]) -> tuple[str, bool]:
    """The ``pattern`` of a component, and whether it is a regex."""
    pattern = entry.get("pattern")
    if isinstance(pattern, dict):
        for kind in ("Regex", "String"):
            if isinstance(pattern.get(kind), str):
                if not pattern[kind]:
                    raise TokenizerError(
                        f"{type_of(entry)}: an empty pattern, which is between all characters, is not supported"
                    )
                return pattern[kind], kind == "Regex"
    raise TokenizerError(f"{type_of(entry)}: its pattern is neither a regex nor a string")
