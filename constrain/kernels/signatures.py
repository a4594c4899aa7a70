"""What kernels take and return, in words that the compiler, the library and Python have in common."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

# numpy's names of dtypes, and the letters of them that library.c knows.
LETTERS = {
    "bool": "?",
    "int8": "b",
    "uint8": "B",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "float32": "f",
    "float64": "d",
}
NAMES = {letter: name for name, letter in LETTERS.items()}


class Kind(NamedTuple):
    """An argument: a number, or an array in C order."""

    dtype: str
    dimensions: int
    is_written: bool
    """Whether the array has to be one that can be written."""

    @property
    def words(self) -> int:
        """How many words of 8 bytes pass it on: a number itself; of an array the address and the shape."""
        return 1 + self.dimensions

    @property
    def code(self) -> str:
        """Three letters: dtype, dimensions, whether it is written."""
        return f"{LETTERS[self.dtype]}{self.dimensions}{'w' if self.is_written else 'r'}"


class Signature(NamedTuple):
    """What a kernel takes, by name, and what it returns."""

    arguments: Mapping[str, Kind]
    result: str
    """Letters of dtypes: none, one, several for a tuple; for an array its dtype's and the number of dimensions."""

    @property
    def code(self) -> str:
        """The kinds of the arguments, one behind the other."""
        return "".join(kind.code for kind in self.arguments.values())


def parse_signature(names: tuple[str, ...], arguments: str, result: str) -> Signature:
    """The signature that was written as :attr:`Signature.code`."""
    codes = [arguments[i : i + 3] for i in range(0, len(arguments), 3)]
    kinds = [Kind(NAMES[code[0]], int(code[1]), code[2] == "w") for code in codes]
    return Signature(dict(zip(names, kinds, strict=True)), result)


def read_signature(text: str) -> Signature:
    """The signature that a text such as ``int64(uint8[::1], int64)`` says; the arguments are called 0, 1 and so on."""
    result, arguments = text.rstrip(")").split("(")
    kinds = []
    for name, index in re.findall(r"(\w+)(\[[^]]*\])?", arguments):
        kinds.append(Kind(name, index.count(",") + 1 if index else 0, True))
    return Signature({str(i): kind for i, kind in enumerate(kinds)}, "" if result == "void" else LETTERS[result])


def signature_of_types(names: tuple[str, ...], arguments: Any, result: Any) -> Signature:
    """The signature of numba's types."""
    return Signature(dict(zip(names, map(_kind, arguments), strict=True)), _result(result))


def _kind(kind: Any) -> Kind:
    if hasattr(kind, "ndim"):
        assert kind.layout == "C", kind
        return Kind(str(kind.dtype), kind.ndim, kind.mutable)
    return Kind(str(kind), 0, True)


def _result(kind: Any) -> str:
    if hasattr(kind, "ndim"):
        return f"{LETTERS[str(kind.dtype)]}{kind.ndim}"
    if hasattr(kind, "types"):
        return "".join(LETTERS[str(each)] for each in kind.types)
    return "" if str(kind) == "none" else LETTERS[str(kind)]
