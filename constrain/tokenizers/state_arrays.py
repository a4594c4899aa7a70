"""Tokenizers as JSON and arrays of integers, and back: what a cache on disk holds of them.

Nothing is run that a file names: the only classes are those of :data:`_CLASSES`, whose members are set as they were.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from constrain.tokenizers import models
from constrain.tokenizers.added_tokens import AddedToken
from constrain.tokenizers.formats.json_shortcuts import MarkedBlanks
from constrain.tokenizers.models.byte_level_bpe import ByteLevelBPE, ByteLevelOptions
from constrain.tokenizers.models.piece_tokenizer import PieceOptions, PieceTokenizer
from constrain.tokenizers.normalizing import bert_text, nmt_text, precompiled, text_steps
from constrain.tokenizers.normalizing.charsmap import Charsmap, SpaceOptions
from constrain.tokenizers.packed_strings import PackedStrings, packed
from constrain.tokenizers.special_tokens import SpecialTokens
from constrain.tokenizers.splitting.patterns import SplitPattern
from constrain.tokenizers.splitting.stages import ByteAlphabetStage, LengthStage, RegexStage, RewriteStage

Array = npt.NDArray[Any]

_CLASSES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(ByteLevelBPE, ByteLevelOptions, PieceTokenizer, PieceOptions, AddedToken, SpecialTokens),
        *(models.SymbolBPE, models.Unigram, models.WordPiece, models.WordLevel, models.SpelledBPE),
        *(
            SplitPattern,
            RegexStage,
            ByteAlphabetStage,
            RewriteStage,
            LengthStage,
            Charsmap,
            SpaceOptions,
            precompiled.Precompiled,
        ),
        *(text_steps.Form, text_steps.Prepend, text_steps.Replace, text_steps.ReplaceRegex, text_steps.Strip),
        *(
            text_steps.MarkWords,
            text_steps.ByteAlphabet,
            text_steps.Steps,
            MarkedBlanks,
            bert_text.BertText,
            bert_text.StripAccents,
            bert_text.Lowercase,
            nmt_text.NmtText,
        ),
    )
}
_MANY = 256
"""Strings from which on they are packed."""

_STRUCTURE = "structure"
_KINDS: dict[str, Any] = {"str": str, "bytes": bytes}


class UnknownStateError(Exception):
    """Something that these files do not hold."""


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
    if _CLASSES.get(name) is not type(value):
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
    made = _CLASSES[content]
    if kind == "made":
        return made(*_read(node["of"], arrays))
    state = _read(node["with"], arrays)
    found = object.__new__(made)
    if "__setstate__" in _members(made):
        found.__setstate__(state)
    else:
        vars(found).update(state)
    return found
