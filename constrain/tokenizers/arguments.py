"""Checks what callers hand over: a wrong type is a :class:`TokenizerError` of one line."""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Collection, Iterable, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from constrain.errors import TokenizerError

LARGEST_ID = 2**22 - 1
"""Of a token.  A vocabulary takes some 250 bytes for each id up to the last one, whether it has a token or not: a small
file with one huge id must not take gigabytes.  Real vocabularies go up to 2**18."""


def checked_text(text: Any, what: str = "a text") -> str:
    """The text, if it is one."""
    if not isinstance(text, str):
        raise TokenizerError(f"{what} must be a str, not {_named(text)}")
    return text


def utf8_of(text: Any, offset: int = 0) -> bytes:
    """A text in UTF-8; an error names the lone surrogate, whose place counts from ``-offset``."""
    try:
        return checked_text(text).encode("utf-8")
    except UnicodeEncodeError as error:
        raise TokenizerError(
            f"the text has a lone surrogate at character {offset + error.start}, which has no UTF-8"
        ) from None


def checked_texts(texts: Any, what: str = "texts") -> list[str]:
    """Several texts as a list.  A single str is an error: nobody means its characters."""
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise TokenizerError(f"{what} must be a list of str, not {_named(texts)}")
    listed = list(texts)
    if not {*map(type, listed)} <= {str}:
        for text in listed:
            checked_text(text, f"{what}: each")
    return listed


def check_flags(**flags: Any) -> None:
    """An error for a flag that is neither True nor False."""
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise TokenizerError(f"{name} must be True or False, not {_named(flag)}")


def checked_id(token_id: Any) -> int:
    """The id as an int; a float or a str is no id, whatever its value."""
    try:
        return operator.index(token_id)
    except TypeError:
        raise TokenizerError(f"a token id must be an integer, not {_named(token_id)}") from None


def listed_ids(ids: Any) -> Sequence[Any] | npt.NDArray[Any]:
    """The ids as something with a length.  The ids themselves are not checked."""
    if isinstance(ids, list | tuple):
        return ids
    if isinstance(ids, np.ndarray) and ids.ndim == 1:
        return ids
    if isinstance(ids, str | np.ndarray) or not isinstance(ids, Iterable):
        raise TokenizerError(f"token ids must be a list of integers, not {_named(ids)}")
    try:
        return list(ids)
    except TypeError:  # a tensor without dimensions says that it can be iterated
        raise TokenizerError(f"token ids must be a list of integers, not {_named(ids)}") from None


def checked_ids(ids: Any) -> list[int]:
    """Ids as a list of int."""
    return [checked_id(token_id) for token_id in listed_ids(ids)]


def check_token_ids(ids: Collection[int]) -> None:
    """An error if a vocabulary has no ids, a negative one, or one above :data:`LARGEST_ID`."""
    if not ids:
        raise TokenizerError("the vocabulary is empty")
    if min(ids) < 0 or max(ids) > LARGEST_ID:
        raise TokenizerError(f"token ids must lie between 0 and {LARGEST_ID}")


def checked_path(path: Any, what: str = "a path") -> Path:
    """A path of the file system, given as text or as an object."""
    if isinstance(path, str | PathLike) and isinstance(fspath(path), str):
        return Path(path)
    raise TokenizerError(f"{what} must be a str or a path, not {_named(path)}")


def checked_tokenizer(tokenizer: Any) -> Any:
    """Something that a stream can decode with."""
    if not hasattr(tokenizer, "special_ids"):
        raise TokenizerError(f"a stream needs a tokenizer of constrain.load_tokenizer, not {_named(tokenizer)}")
    return tokenizer


def _named(value: Any) -> str:
    return "None" if value is None else f"{type(value).__name__} {reprlib.repr(value)}".replace("\n", " ")
