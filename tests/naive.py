"""The specification as slow, obvious code: what the engine is compared with.

:class:`NaiveRecognizer` is a textbook Earley recogniser without a scanner: it reads the IR's
lexemes byte by byte with Brzozowski derivatives and keeps every way of splitting the input.
:func:`naive_mask` is the contract of a mask, one token at a time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from naive_regular import derivative, is_viable_prefix, nullable

from constrain.grammar.ir import BRANCH, GrammarIR
from constrain.grammar.languages.regular import Regular

Item = tuple[int, int, "Row", "Regular | None"]
"""(production, dot, row where it began, what is left of the lexeme at the dot or None if that is not a lexeme)."""


class Row:
    """All Earley items after one input; ``after`` remembers the row behind each byte (None: no such string)."""

    def __init__(self) -> None:
        self.items: set[Item] = set()
        self.waiting: dict[int, list[Item]] = {}  # by the nonterminal after the dot
        self.nullable: set[int] = set()  # nonterminals known to derive the empty string here
        self.after: dict[int, Row | None] = {}


class NaiveRecognizer:
    """Recognises byte strings of a grammar.

    ``is_viable`` tells whether what was pushed is a prefix of some string in the language: it is
    False at the start only if the language is empty.

    ``lexemes``, ``productions`` and ``start`` are the grammar that is recognised: the IR's with
    ``ignore`` written out and what derives nothing left out.  ``rows`` has one row per byte pushed and the first.
    """

    def __init__(self, ir: GrammarIR) -> None:
        if ir.unfolded:
            ir = written_out(ir)
        self.lexemes = ir.lexemes
        self.start, self.productions = self._trimmed(*self._with_ignore(ir))
        self._by_left: dict[int, list[int]] = {}
        for index, (left, _) in enumerate(self.productions):
            self._by_left.setdefault(left, []).append(index)
        first = Row()
        self._close(first, [(index, 0, first, None) for index in self._by_left.get(self.start, ())])
        self.rows = [first]

    @property
    def is_viable(self) -> bool:
        """Whether the bytes pushed so far are a prefix of some string in the language."""
        return bool(self.rows[-1].items)

    def push(self, byte: int) -> bool:
        """Take one byte more; False (and nothing changes) if no string of the language goes on like that."""
        row = self.rows[-1]
        if byte not in row.after:
            row.after[byte] = self._scan(row, byte)
        following = row.after[byte]
        if following is None:
            return False
        self.rows.append(following)
        return True

    def pop(self, count: int) -> None:
        """Take the last ``count`` bytes back."""
        if count >= len(self.rows):
            raise ValueError("more pops than pushes")
        del self.rows[len(self.rows) - count :]

    def push_bytes(self, data: bytes) -> bool:
        """Take all of ``data``, or nothing."""
        for done, byte in enumerate(data):
            if not self.push(byte):
                self.pop(done)
                return False
        return self.is_viable

    def is_accepting(self) -> bool:
        """Whether the bytes pushed so far are a string of the language."""
        first = self.rows[0]
        return any(
            origin is first and self.productions[index] == (self.start, right)
            for index, dot, origin, _ in self.rows[-1].items
            if dot == len(right := self.productions[index][1])
        )

    def accepts(self, data: bytes) -> bool:
        """Whether the bytes pushed so far and then ``data`` are a string of the language."""
        if not self.push_bytes(data):
            return False
        accepting = self.is_accepting()
        self.pop(len(data))
        return accepting

    def is_viable_prefix(self, data: bytes) -> bool:
        """Whether the bytes pushed so far and then ``data`` are a prefix of some string of the language."""
        if not self.push_bytes(data):
            return False
        self.pop(len(data))
        return True

    def next_bytes(self) -> list[int]:
        """Every byte that may come next."""
        return [byte for byte in range(256) if self.is_viable_prefix(bytes((byte,)))]

    @staticmethod
    def _with_ignore(ir: GrammarIR) -> tuple[int, list[tuple[int, tuple[int, ...]]]]:
        """Start and productions of the same language without ``ignore``, and a start that no right-hand side uses."""
        skip = len(ir.nonterminal_names)
        productions: list[tuple[int, tuple[int, ...]]] = [
            (skip, ()),
            *((skip, (skip, ~lexeme)) for lexeme in ir.ignore),
        ]
        for left, right in ir.productions:
            spaced: list[int] = []
            for symbol in right:
                spaced += [symbol] if symbol >= 0 else [symbol, skip]
            productions.append((left, tuple(spaced)))
        start = skip + 1
        productions.append((start, (skip, ir.start)))
        return start, productions

    def _trimmed(
        self, start: int, productions: Sequence[tuple[int, tuple[int, ...]]]
    ) -> tuple[int, list[tuple[int, tuple[int, ...]]]]:
        """Only the productions that derive some string; without this a live row could be a dead end."""
        alive = {~index for index, lexeme in enumerate(self.lexemes) if is_viable_prefix(lexeme, b"")}
        while True:
            more = {left for left, right in productions if alive.issuperset(right)} - alive
            if not more:
                return start, [production for production in productions if alive.issuperset(production[1])]
            alive |= more

    def _scan(self, row: Row, byte: int) -> Row | None:
        kernel = []
        for index, dot, origin, rest in row.items:
            if rest is not None:
                rest = derivative(rest, byte)
                if is_viable_prefix(rest, b""):
                    kernel.append((index, dot, origin, rest))
        if not kernel:
            return None
        following = Row()
        self._close(following, kernel)
        return following

    def _close(self, row: Row, kernel: Iterable[Item]) -> None:
        """Predict and complete until nothing new appears."""
        todo = list(kernel)
        while todo:
            item = todo.pop()
            if item in row.items:
                continue
            row.items.add(item)
            index, dot, origin, rest = item
            left, right = self.productions[index]
            if rest is not None:
                if nullable(rest):
                    todo.append((index, dot + 1, origin, None))
            elif dot == len(right):
                todo += [(i, d + 1, o, None) for i, d, o, _ in origin.waiting.get(left, ())]
                if origin is row:
                    row.nullable.add(left)
            elif right[dot] < 0:
                todo.append((index, dot, origin, self.lexemes[~right[dot]]))
            else:
                row.waiting.setdefault(right[dot], []).append(item)
                todo += [(predicted, 0, row, None) for predicted in self._by_left[right[dot]]]
                if right[dot] in row.nullable:
                    todo.append((index, dot + 1, origin, None))


# -- masks -------------------------------------------------------------------------------------


class VocabularyLike(Protocol):
    """What the contract needs to know of a vocabulary."""

    @property
    def tokens(self) -> Sequence[bytes]: ...
    @property
    def eos_ids(self) -> Iterable[int]: ...
    @property
    def special_ids(self) -> Iterable[int]: ...


def written_out(ir: GrammarIR, limit: int = 5000) -> GrammarIR:
    """The same grammar without unfolding: every branch is a nonterminal with all of its rules."""
    assert ir.make_unfolding is not None
    alive = {~index for index, lexeme in enumerate(ir.lexemes) if is_viable_prefix(lexeme, b"")}
    while more := {left for left, right in ir.productions if alive.issuperset(right)} - alive:
        alive |= more
    unfolding = ir.make_unfolding(lambda symbol: symbol in alive, lambda byte: 1 << 30)
    productions = [production for production in ir.productions if production[0] not in ir.unfolded]
    names = [*ir.nonterminal_names]
    symbols = list(ir.unfolded)
    for branch, symbol in enumerate(symbols):
        if branch < len(ir.unfolded) and symbol not in alive:
            continue
        rights = unfolding.unfold(branch)
        if isinstance(rights, int):
            productions.append((symbol, (symbols[rights],)))
            continue
        assert rights
        for right in rights:
            if right[-1] >= BRANCH:
                assert right[-1] == BRANCH + len(symbols)
                symbols.append(len(names))
                names.append("")
                right = (*right[:-1], symbols[-1])
            assert alive.issuperset(right[:-1])
            productions.append((symbol, right))
        assert len(symbols) < limit
    return dataclasses.replace(
        ir, nonterminal_names=tuple(names), productions=tuple(productions), unfolded=(), make_unfolding=None
    )


def allowed_tokens(
    recognizer: NaiveRecognizer, vocabulary: VocabularyLike, ids: Iterable[int] | None = None
) -> set[int]:
    """The tokens (of ``ids``, or all) that the contract allows where the recogniser stands."""
    eos, special = set(vocabulary.eos_ids), set(vocabulary.special_ids)
    allowed = set()
    for token in range(len(vocabulary.tokens)) if ids is None else ids:
        if token in eos:
            fits = recognizer.is_accepting()
        elif token in special:
            fits = False
        else:
            fits = recognizer.is_viable_prefix(vocabulary.tokens[token])
        if fits:
            allowed.add(token)
    return allowed


def naive_mask(ir: GrammarIR, prefix: bytes, vocabulary: VocabularyLike) -> set[int]:
    """The contract: token ``w`` is allowed after ``prefix`` iff ``prefix + w`` is a prefix of a string of the language.

    EOS tokens are allowed iff ``prefix`` itself is such a string, other special tokens never.
    Raises ValueError if ``prefix`` is not viable.
    """
    recognizer = NaiveRecognizer(ir)
    if not recognizer.push_bytes(prefix):
        raise ValueError(f"{prefix!r} is not a prefix of any string of the language")
    return allowed_tokens(recognizer, vocabulary)


def tokens_of(row: Any, size: int) -> set[int]:
    """The token ids whose bit is set in one row of a bitmask (int32 words, bit ``i % 32`` of word ``i // 32``)."""
    return {token for token in range(size) if (int(row[token // 32]) >> (token % 32)) & 1}


def forced_bytes(recognizer: NaiveRecognizer) -> bytes:
    """The longest byte string that every continuation starts with; empty where the end is one continuation."""
    forced = bytearray()
    while not recognizer.is_accepting() and len(following := recognizer.next_bytes()) == 1:
        forced += bytes(following)
        recognizer.push(following[0])
    recognizer.pop(len(forced))
    return bytes(forced)
