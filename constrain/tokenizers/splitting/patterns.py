"""The split patterns that are known, by name and by the regex that a ``tokenizer.json`` spells out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from constrain.errors import TokenizerError
from constrain.tokenizers.splitting.unicode_classes import class_table

_CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_LLAMA3 = _CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_CL100K = _LLAMA3.replace(r"|\s*[", r"|\s+\z|\s*[")
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_O200K = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_CONTRACTION}?|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_CONTRACTION}?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

_MODULES = {
    "gpt2": ("gpt2", 0),
    "llama3": ("cl100k", 3),
    "qwen2": ("cl100k", 1),
    "cl100k": ("cl100k", 3 + 16),
    "o200k": ("o200k", 0),
}

_NAMES = {
    _GPT2: "gpt2",
    _LLAMA3: "llama3",
    _LLAMA3.replace("{1,3}", ""): "qwen2",
    _O200K: "o200k",
    _CL100K: "cl100k",
}


@dataclass(frozen=True)
class SplitPattern:
    """How text is cut into pieces before merging; ``name`` is one of :func:`names`."""

    name: str

    def ends(self, data: npt.NDArray[np.uint8]) -> npt.NDArray[np.int32]:
        """The end of each piece in ``data``, well-formed UTF-8 as uint8[n], in bytes."""
        split, option = self.scanner()
        ends = np.empty(len(data), dtype=np.int32)
        count = split(data, class_table(), option, ends)
        return ends[:count]

    def scanner(self) -> tuple[Callable[..., int], int]:
        """The kernel, see :mod:`constrain.tokenizers.splitting.common`, and its option for this pattern."""
        return _scanner(self.name)


@cache
def _scanner(name: str) -> tuple[Callable[..., int], int]:
    # A tokenizer needs one scanner, and only when it encodes.  A scanner takes 10 ms to load and 0.4 to 0.9 s to
    # compile (measured).
    module, option = _MODULES[name]
    scanner: Any = import_module(f"constrain.tokenizers.splitting.{module}")
    return scanner.split, option


def names() -> tuple[str, ...]:
    """The names of all known split patterns."""
    return tuple(_MODULES)


def by_name(name: str) -> SplitPattern:
    """A pattern by its name."""
    if name not in _MODULES:
        raise TokenizerError(f"unknown split pattern {name!r}; known ones: {', '.join(_MODULES)}")
    return SplitPattern(name)


def regex_of(pattern: SplitPattern) -> str:
    """The regex of a pattern, as a ``tokenizer.json`` spells it."""
    return next(regex for regex, name in _NAMES.items() if name == pattern.name)


def find_regex(regex: str) -> SplitPattern | None:
    """The pattern that a regex means, compared as text; None if there is no scanner for it."""
    name = _NAMES.get(regex)
    return None if name is None else SplitPattern(name)
