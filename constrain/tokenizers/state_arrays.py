"""Tokenizers as JSON and arrays of integers, and back: what a cache on disk holds of them.

Nothing is run that a file names: the only classes are those of :data:`_MODULES`, whose members are set as they were.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from constrain.tokenizers.added_tokens import AddedToken
from constrain.tokenizers.packed_strings import PackedStrings, packed

Array = npt.NDArray[Any]


class UnknownStateError(Exception):
    """Something that these files do not hold."""


# By module, which is loaded when a state names one of its classes: few tokenizers have many of them.
_MODULES = {
    "added_tokens": ("AddedToken",),
    "formats.json_shortcuts": ("MarkedBlanks",),
    "models.byte_level_bpe": ("ByteLevelBPE", "ByteLevelOptions"),
    "models.piece_tokenizer": ("PieceOptions", "PieceTokenizer"),
    "models.spelled_bpe": ("SpelledBPE",),
    "models.symbol_bpe": ("SymbolBPE",),
    "models.unigram": ("Unigram",),
    "models.word_level": ("WordLevel",),
    "models.wordpiece": ("WordPiece",),
    "normalizing.bert_text": ("BertText", "Lowercase", "StripAccents"),
    "normalizing.charsmap": ("Charsmap", "SpaceOptions"),
    "normalizing.nmt_text": ("NmtText",),
    "normalizing.precompiled": ("Precompiled",),
    "normalizing.text_steps": (
        *("ByteAlphabet", "Form", "MarkWords", "Prepend", "Replace", "ReplaceRegex", "Steps", "Strip"),
    ),
    "special_tokens": ("SpecialTokens",),
    "splitting.patterns": ("SplitPattern",),
    "splitting.stages": ("ByteAlphabetStage", "LengthStage", "PrefixStage", "RegexStage", "RewriteStage"),
}
_CLASSES = {name: module for module, names in _MODULES.items() for name in names}


def class_of(name: str) -> Any:
    """The class that states call so.  Raises :class:`UnknownStateError` for any that they may not name."""
    module = _CLASSES.get(name)
    if module is None:
        raise UnknownStateError(f"a {name}")
    return getattr(import_module(f"constrain.tokenizers.{module}"), name)


_MANY = 256
"""Strings from which on they are packed."""

_STRUCTURE = "structure"
_KINDS: dict[str, Any] = {"str": str, "bytes": bytes}


def to_arrays(value: Any) -> dict[str, Array]:
    """An object as one-dimensional arrays of integers.

    Raises :class:`UnknownStateError` for what cannot be written, such as a class that is not known here.
    """
    arrays: dict[str, Array] = {}
    structure = json.dumps(_written(value, arrays)).encode()
    return {_STRUCTURE: np.frombuffer(structure, dtype=np.uint8), **arrays}


def from_arrays(arrays: Mapping[str, Array]) -> Any:
    """The object that :func:`to_arrays` wrote.

    Raises :class:`UnknownStateError` for arrays that were written by something else.
    """
    try:
        return _read(json.loads(arrays[_STRUCTURE].tobytes()), arrays)
    except Exception as error:  # whatever a wrong state may raise where it is set
        raise UnknownStateError(str(error)) from None


def _kept(array: Array, arrays: dict[str, Array]) -> str:
    name = f"a{len(arrays)}"
    arrays[name] = array
    return name


def _written(value: Any, arrays: dict[str, Array]) -> Any:
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is bytes:
        return {"bytes": value.decode("latin-1")}
    if isinstance(value, np.generic):
        return _written(value.item(), arrays)
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "iuf":
            raise UnknownStateError(f"an array of {value.dtype}")
        flat = np.ascontiguousarray(value).reshape(-1)
        integers = flat.view(f"i{flat.dtype.itemsize}") if flat.dtype.kind == "f" else flat
        return {"array": _kept(integers, arrays), "dtype": value.dtype.str, "shape": list(value.shape)}
    if isinstance(value, list | PackedStrings) and len(value) >= _MANY:
        kinds = set(map(type, value)) - {type(None)}
        if kinds in ({str}, {bytes}):
            return _packed_node(value, kinds.pop(), arrays)
    if type(value) is list and len(value) >= _MANY and set(map(type, value)) == {int}:
        return {"integers": _kept(np.array(value, dtype=np.int64), arrays)}
    if type(value) is tuple and value and set(map(type, value)) == {AddedToken}:
        columns = zip(*((token.id, token.content, *_flags_of(token)) for token in value), strict=True)
        return {"added": [list(column) for column in columns]}
    if type(value) in (list, tuple, frozenset):
        return {type(value).__name__: [_written(item, arrays) for item in value]}
    if type(value) is dict:
        return {"dict": [_written(list(value.keys()), arrays), _written(list(value.values()), arrays)]}
    name = type(value).__name__
    if class_of(name) is not type(value):
        raise UnknownStateError(f"a {name}")
    if "__reduce__" in _members(type(value)):
        made_by, arguments = value.__reduce__()
        if made_by is not type(value):
            raise UnknownStateError(f"a {name} that is made by something else")
        return {"made": name, "of": _written(tuple(arguments), arrays)}
    state = value.__getstate__() if "__getstate__" in _members(type(value)) else dict(vars(value))
    return {"object": name, "with": _written(state, arrays)}


def _flags_of(token: AddedToken) -> tuple[bool, ...]:
    return tuple(getattr(token, field.name) for field in fields(AddedToken)[2:])


def _members(kind: type) -> set[str]:
    return {key for base in kind.__mro__[:-1] for key in vars(base)}


def _packed_node(value: Any, kind: type, arrays: dict[str, Array]) -> dict[str, Any]:
    try:
        blob, lengths = packed(value, kind).arrays()
    except UnicodeEncodeError:
        raise UnknownStateError("a lone surrogate") from None
    return {"packed": kind.__name__, "blob": _kept(blob, arrays), "lengths": _kept(lengths, arrays)}


def _read(node: Any, arrays: Mapping[str, Array]) -> Any:
    if not isinstance(node, dict):
        if isinstance(node, list):
            raise ValueError("a list without a type")
        return node
    kind, content = next(iter(node.items()))
    if kind == "bytes":
        return content.encode("latin-1")
    if kind == "array":
        array = arrays[content].view(np.dtype(node["dtype"])).reshape(node["shape"])
        return np.ascontiguousarray(array)
    if kind == "packed":
        return PackedStrings(arrays[node["blob"]], arrays[node["lengths"]], _KINDS[content])
    if kind == "integers":
        return arrays[content].tolist()
    if kind == "added":
        return tuple(AddedToken(*fields) for fields in zip(*content, strict=True))
    if kind in ("list", "tuple", "frozenset"):
        items = [_read(item, arrays) for item in content]
        return items if kind == "list" else tuple(items) if kind == "tuple" else frozenset(items)
    if kind == "dict":
        keys, values = (_read(part, arrays) for part in content)
        return dict(zip(keys, values, strict=True))
    made = class_of(content)
    if kind == "made":
        return made(*_read(node["of"], arrays))
    state = _read(node["with"], arrays)
    found = object.__new__(made)
    if "__setstate__" in _members(made):
        found.__setstate__(state)
    else:
        vars(found).update(state)
    return found
