"""Compiles split patterns to :mod:`constrain.tokenizers.splitting.instructions`.

Every set of characters in a pattern is worked out for all code points, and the code points are then divided
into classes that the pattern cannot tell apart: a step of the matcher is one look-up and one test of a bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from constrain.errors import TokenizerError
from constrain.tokenizers.splitting import instructions as vm
from constrain.tokenizers.splitting.character_properties import word_members
from constrain.tokenizers.splitting.regex import Members, Node, may_be_empty, parse_split

_MOST_CLASSES = 64
_MOST_SETS = 64
_MOST_INSTRUCTIONS = 20_000


class SplitProgram(NamedTuple):
    """A compiled pattern.

    Attributes
    ----------
    regex : str
        Its source.
    classes : uint8[0x110000]
        The class of each code point.
    code : int32[n, 4]
        Instructions, see :mod:`constrain.tokenizers.splitting.instructions`.
    sets : uint64[s]
        For each set of characters a bit for each class in it.
    """

    regex: str
    classes: npt.NDArray[np.uint8]
    code: npt.NDArray[np.int32]
    sets: npt.NDArray[np.uint64]

    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """What decides which texts it matches."""
        return self.classes, self.code, self.sets


def compile_split(regex: str, oniguruma: bool = False) -> SplitProgram:
    """Compile a pattern; ``oniguruma``: see :mod:`constrain.tokenizers.splitting.regex`."""
    return _Compiler(regex, parse_split(regex, oniguruma)).finish()


class _Compiler:
    def __init__(self, regex: str, node: Node) -> None:
        self.regex, self.node = regex, node
        self.code: list[list[int]] = []
        self.members: list[Members] = []
        self.known: dict[bytes, int] = {}

    def finish(self) -> SplitProgram:
        self._emit(self.node)
        self._add(vm.MATCH)
        classes, masks = self._divide()
        return SplitProgram(self.regex, classes, np.array(self.code, dtype=np.int32), masks)

    def _add(self, op: int, a: int = 0, b: int = 0, c: int = 0) -> int:
        if len(self.code) >= _MOST_INSTRUCTIONS:
            raise TokenizerError(f"split pattern {self.regex[:200]!r} is too large")
        self.code.append([op, a, b, c])
        return len(self.code) - 1

    def _set(self, members: Members) -> int:
        key = np.packbits(members).tobytes()
        if key not in self.known:
            self.known[key] = len(self.members)
            self.members.append(members)
        return self.known[key]

    def _divide(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint64]]:
        """Classes of code points that no set tells apart, and the sets as bits over them."""
        sets = (*self.members, word_members())
        if len(sets) > _MOST_SETS:
            raise TokenizerError(f"split pattern {self.regex[:200]!r} has too many sets of characters")
        # One bit for each set makes a signature; equal neighbours go through the sorting as one.
        signature = np.zeros(0x110000, dtype=np.uint64)
        for number, members in enumerate(sets):
            signature |= members.astype(np.uint64) << np.uint64(number)
        begins = np.flatnonzero(np.concatenate(([True], signature[1:] != signature[:-1])))
        kinds, of_run = np.unique(signature[begins], return_inverse=True)
        if len(kinds) > _MOST_CLASSES:
            raise TokenizerError(f"split pattern {self.regex[:200]!r} tells too many classes of characters apart")
        classes = np.repeat(of_run.astype(np.uint8), np.diff(np.append(begins, 0x110000)))
        bits = [[int(kind) >> number & 1 for kind in kinds] for number in range(len(sets))]
        masks = [sum(bit << place for place, bit in enumerate(row)) for row in bits]
        return classes, np.array(masks, dtype=np.uint64)

    def _emit(self, node: Node) -> None:
        kind = node[0]
        if kind == "set":
            self._add(vm.SET, self._set(node[1]))
        elif kind == "seq":
            for part in node[1]:
                self._emit(part)
        elif kind == "alt":
            self._emit_alternatives(node[1])
        elif kind == "repeat":
            self._emit_repeat(*node[1:])
        elif kind == "at":
            self._add(vm.AT, node[1])
        elif kind == "atomic":
            enter = self._add(vm.ATOMIC)
            self._emit(node[1])
            self._add(vm.END_ATOMIC)
            self.code[enter][1] = len(self.code)
        elif not node[2]:
            self._add(vm.BEHIND, self._set(node[1][1]), int(node[3]))
        else:
            enter = self._add(vm.LOOK, 0, int(node[3]))
            self._emit(node[1])
            self._add(vm.END_LOOK)
            self.code[enter][1] = len(self.code)

    def _emit_alternatives(self, branches: list[Node]) -> None:
        exits = []
        for branch in branches[:-1]:
            fork = self._fork(branch)
            self._emit(branch)
            exits.append(self._add(vm.JUMP))
            self.code[fork][2] = len(self.code)
        self._emit(branches[-1])
        for place in exits:
            self.code[place][1] = len(self.code)

    def _fork(self, branch: Node) -> int:
        """Try what follows; if it fails go on at operand 2, to be filled in.  Operand 3: what it can begin with."""
        first = _first(branch)
        return self._add(vm.FORK, 0, 0, -1 if first is None else self._set(first))

    def _emit_repeat(self, node: Node, least: int, most: int, kind: str) -> None:
        if kind == "possessive":
            self._emit(("atomic", ("repeat", node, least, most, "greedy")))
            return
        if node[0] == "set" and kind == "greedy":
            self._add(vm.RUN, self._set(node[1]), least, most)
            return
        for _ in range(least):
            self._emit(node)
        if most < 0:
            begin = len(self.code)
            fork = self._add(vm.FORK_LAZY) if kind == "lazy" else self._fork(node)
            self._emit(node)
            self._add(vm.JUMP, begin)
            self.code[fork][2] = len(self.code)
            return
        forks = []
        for _ in range(most - least):
            forks.append(self._add(vm.FORK_LAZY) if kind == "lazy" else self._fork(node))
            self._emit(node)
        for fork in forks:
            self.code[fork][2] = len(self.code)


def _first(node: Node) -> Members | None:
    """The characters that a match can begin with; None if it may be empty or is not worked out."""
    kind = node[0]
    if kind == "set":
        members: Members = node[1]
        return members
    if kind == "seq":
        union: Members | None = None
        for part in node[1]:
            if part[0] == "repeat" and part[2] == 0 and not may_be_empty(part[1]):
                first = _first(part[1])
            elif may_be_empty(part):
                return None
            else:
                first = _first(part)
            if first is None:
                return None
            union = first if union is None else union | first
            if not may_be_empty(part):
                return union
        return None
    if kind == "alt":
        total = np.zeros(0x110000, dtype=np.bool_)
        for branch in node[1]:
            first = _first(branch)
            if first is None:
                return None
            total |= first
        return total
    if kind == "repeat":
        return None if node[2] == 0 else _first(node[1])
    return _first(node[1]) if kind == "atomic" else None
