"""Lexemes of the IR as programs that build expressions (operations.py)."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from constrain.engine.automata import operations as op
from constrain.engine.automata.quoted_texts import QuotedTexts
from constrain.engine.storage.schemas import BYTE_SETS, LITERAL_BYTES, NUMBERS_IN
from constrain.engine.storage.tables import Tables
from constrain.errors import LimitError
from constrain.grammar.languages import regular as r
from constrain.grammar.languages.quotation import Quotation
from constrain.kernels.language import int32

Int32Array = np.ndarray[Any, np.dtype[np.int32]]


I32 = int32[::1]


_N_ARY: dict[type[r.Regular], int] = {
    r.Concat: op.OP_CONCAT,
    r.Word: op.OP_CONCAT,
    r.Union: op.OP_UNION,
    r.Intersect: op.OP_INTERSECT,
}


def as_int32(numbers: array[int]) -> Int32Array:
    """The same memory as a numpy array."""
    return np.frombuffer(numbers, np.int32) if numbers else np.empty(0, np.int32)


class LexemeProgram:
    """The lexemes of a grammar as a postfix program for :func:`constrain.engine.automata.operations.build_expressions`.

    Attributes
    ----------
    code : int32[n]
    literals : uint8[n]
        The bytes that LITERAL operations point into.
    sets : int64[4 * n]
        Byte sets, 256 bits each.
    registers : int
        How many registers the program uses; lexeme ``i`` ends in register ``first + i``.
    first : int

    Parameters
    ----------
    lexemes : sequence of Regular
        A word without letters among them has the expressions of its alphabet made, for words of later programs.
    before : LexemeProgram, optional
        A program that will have been run.  This one goes on with its registers, literals and sets.
    """

    def __init__(self, lexemes: Sequence[r.Regular], before: LexemeProgram | None = None) -> None:
        self._bytes: bytearray = bytearray() if before is None else before._bytes[:]
        self._sets: dict[int, int] = {} if before is None else before._sets.copy()
        self._set_bytes: bytes = b"" if before is None else before._set_bytes
        # By the identity of a node: the instruction that loads it.  They are held, so that no other takes its place.
        self._shared: dict[int, int] = {} if before is None else before._shared.copy()
        # By the identity of an alphabet: the register of the byte 0, if it had one.
        self._alphabets: dict[int, int] = {} if before is None else before._alphabets.copy()
        # A word and the instruction that loads what is behind it: the instruction that loads both.
        self._ends: dict[tuple[int, int], int] = {}
        self._held: list[Any] = [before]
        self._quoted: QuotedTexts = QuotedTexts() if before is None else before._quoted.copy()
        self.registers: int = 0 if before is None else before.registers
        self.first = self.extend(lexemes)

    def extend(self, lexemes: Sequence[r.Regular]) -> int:
        """Make a program of further lexemes, the first of which ends in the register that is returned.

        It goes on with the registers as they were left; ``literals`` and ``sets`` hold those of all programs.
        """
        self._held.append(lexemes)
        self._code: list[int] = []
        first = self.registers
        self.registers += len(lexemes)
        code, load, write = self._code, self._shared.get, self._write
        alphabets, ends, data = self._alphabets, self._ends, self._bytes
        for index, lexeme in enumerate(lexemes, first):
            known = load(id(lexeme))
            if known is not None:
                code += (known, op.OP_STORE, index)
                continue
            if type(lexeme) is r.Concat and len(lexeme.parts) == 3:
                # Something between two known parts: a key of an object.
                before, item, after = lexeme.parts
                opening, closing = load(id(before)), load(id(after))
                if opening is not None and closing is not None:
                    if type(item) is r.Word and id(item.alphabet) in alphabets:
                        # Of the two keys of a name, first and later, all but the beginning is the same.
                        end = ends.get((id(item), closing))
                        if end is None:
                            register = self.registers
                            self.registers = register + 1
                            ends[id(item), closing] = ~register
                            letters = item.data
                            code += (
                                opening,
                                closing,
                                op.OP_WORD,
                                alphabets[id(item.alphabet)],
                                len(data),
                                len(letters),
                            )
                            code += (op.OP_KEEP, register, op.OP_CONCAT, 2, op.OP_STORE, index)
                            data += letters
                        else:
                            code += (opening, end, op.OP_CONCAT, 2, op.OP_STORE, index)
                        continue
                    code.append(opening)
                    known = load(id(item))
                    if known is None:
                        write(item)
                    else:
                        code.append(known)
                    code += (closing, op.OP_CONCAT, 3, op.OP_STORE, index)
                    continue
            write(lexeme)
            code += (op.OP_STORE, index)
        try:
            self.code = as_int32(array("i", self._code))
        except OverflowError:
            raise LimitError("something is counted up to 2,147,483,648 or more; the most is 2,147,483,647") from None
        self.literals = np.frombuffer(bytes(self._bytes), np.uint8)
        new_sets = islice(self._sets, len(self._set_bytes) // 32, None)
        self._set_bytes += b"".join([bits.to_bytes(32, "little") for bits in new_sets])
        self.sets = np.frombuffer(self._set_bytes, "<i8")
        return first

    def put_data(self, tables: Tables) -> None:
        """Have in the tables what the operations of all programs point into."""
        for slot, numbers in ((LITERAL_BYTES, self.literals), (BYTE_SETS, self.sets)):
            new = numbers[tables.used(slot) * NUMBERS_IN[slot] :]
            if len(new):
                tables.append(slot, new)
        self._quoted.append_to(tables)

    def _write(self, root: r.Regular) -> None:
        # Depth first with a stack of our own: an expression may be nested deeper than Python recurses.
        # This loop is a good part of the time that compiling takes, hence no calls for leaves, and what is
        # known is looked for first: most parts are characters that occurred before.
        code, data, sets = self._code, self._bytes, self._sets
        shared, n_ary, alphabets = self._shared, _N_ARY.get, self._alphabets
        load = shared.get
        stack: list[Any] = []
        node: Any = root
        while True:
            kind = type(node)
            operation = n_ary(kind)
            if kind is r.Word and (id(node.alphabet) in alphabets or not node.data):
                if not node.data:
                    self._write_alphabet(node.alphabet)
                register = self.registers
                self.registers = register + 1
                shared[id(node)] = ~register
                code += (op.OP_LITERAL, 0, 0, op.OP_WORD, alphabets[id(node.alphabet)], len(data), len(node.data))
                code += (op.OP_KEEP, register)
                data += node.data
            elif operation is not None:
                # The same object often stands in many lexemes (any character, a JSON string).
                register = self.registers
                self.registers = register + 1
                shared[id(node)] = ~register
                if kind is r.Intersect and node.fits:
                    operation = op.OP_FIT
                parts = node.parts
                loads: list[Any] = [load(id(part)) for part in parts]
                if None in loads:
                    loaded = loads.index(None)
                    code += loads[:loaded]
                    stack.append((operation, len(parts), op.OP_KEEP, register))
                    stack += parts[: loaded - 1 : -1] if loaded else parts[::-1]
                else:
                    code += loads
                    code += (operation, len(parts), op.OP_KEEP, register)
            elif kind is r.Literal:
                code += (op.OP_LITERAL, len(data), len(node.data))
                data += node.data
            elif kind is r.ByteSet:
                code += (op.OP_SET, sets.setdefault(node.bits, len(sets)))
            elif kind is Quotation:
                low, high, begin = self._quoted.add(node)
                if node.places is None:
                    code += (op.OP_QUOTATION, low, high, 0)
                else:
                    for place in node.places:
                        code += (op.OP_QUOTATION, begin + place, 0, -1)
                    code += (op.OP_UNION, len(node.places))
            elif kind is r.Empty:
                code.append(op.OP_EMPTY)
            else:
                register = self.registers
                self.registers = register + 1
                shared[id(node)] = ~register
                if kind is r.Repeat:
                    operation = op.OP_COUNT if node.counts else op.OP_REPEAT
                    stack.append((operation, node.low, -1 if node.high is None else node.high, op.OP_KEEP, register))
                else:
                    stack.append((op.OP_NOT, op.OP_KEEP, register))
                stack.append(node.item)
            while stack:
                node = stack.pop()
                if type(node) is tuple:
                    code += node
                    continue
                known = load(id(node))
                if known is None:
                    break
                code.append(known)
            else:
                return

    def _write_alphabet(self, alphabet: tuple[r.Regular, ...]) -> None:
        """Have the expressions of an alphabet in registers one behind the other."""
        first = self.registers
        self.registers += len(alphabet)
        self._held.append(alphabet)
        self._alphabets[id(alphabet)] = first - r.FIRST_LETTER
        for register, letter in enumerate(alphabet, first):
            known = self._shared.get(id(letter))
            if known is None:
                self._write(letter)
            else:
                self._code.append(known)
            self._code += (op.OP_STORE, register)
