"""The specification as slow, obvious code: what the engine is compared with.

:class:`NaiveRecognizer` is a textbook Earley recogniser without a scanner: it reads the IR's
lexemes byte by byte with Brzozowski derivatives and keeps every way of splitting the input.
:func:`naive_mask` is the contract of a mask, one token at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from constrain.grammar.ir import GrammarIR
from constrain.grammar.regular import (
    ByteSet,
    Complement,
    Concat,
    Empty,
    Intersect,
    Literal,
    Regular,
    Repeat,
    Union,
)

# -- regular languages: derivatives over hash-consed nodes ---------------------------------------


class Derivatives:
    """Brzozowski derivatives of :class:`Regular` trees; a language is an int, the same int for an equal node.

    Unions and intersections are sets of nodes, so there are finitely many derivatives of any tree
    and exploring them all (which :meth:`is_alive` needs below a complement) comes to an end.
    """

    def __init__(self) -> None:
        self._nodes: list[tuple[Any, ...]] = []
        self._ids: dict[tuple[Any, ...], int] = {}
        self._derived: dict[tuple[int, int], int] = {}
        self._nullable: dict[int, bool] = {}
        self._alive: dict[int, bool] = {}
        self.empty = self._intern(("empty",))
        self.epsilon = self._intern(("literal", b""))

    def _intern(self, node: tuple[Any, ...]) -> int:
        if node not in self._ids:
            self._ids[node] = len(self._nodes)
            self._nodes.append(node)
        return self._ids[node]

    def node(self, language: Regular) -> int:
        """The node of a tree."""
        if isinstance(language, Empty):
            return self.empty
        if isinstance(language, Literal):
            return self._intern(("literal", language.data))
        if isinstance(language, ByteSet):
            return self._intern(("bytes", language.bits)) if language.bits else self.empty
        if isinstance(language, Concat):
            node = self.epsilon
            for part in reversed(language.parts):
                node = self._concat(self.node(part), node)
            return node
        if isinstance(language, Union):
            return self._union(self.node(part) for part in language.parts)
        if isinstance(language, Intersect):
            return self._intersect(self.node(part) for part in language.parts)
        if isinstance(language, Repeat):
            return self._repeat(self.node(language.item), language.low, language.high)
        if isinstance(language, Complement):
            return self._complement(self.node(language.item))
        raise TypeError(language)

    def _concat(self, left: int, right: int) -> int:
        if self.empty in (left, right):
            return self.empty
        if left == self.epsilon:
            return right
        if right == self.epsilon:
            return left
        kind, *arguments = self._nodes[left]
        if kind == "concat":
            first, rest = arguments
            return self._intern(("concat", first, self._concat(rest, right)))
        return self._intern(("concat", left, right))

    def _union(self, parts: Iterable[int]) -> int:
        flat: set[int] = set()
        for part in parts:
            kind, *arguments = self._nodes[part]
            flat |= arguments[0] if kind == "union" else {part}
        flat.discard(self.empty)
        if len(flat) <= 1:
            return flat.pop() if flat else self.empty
        return self._intern(("union", frozenset(flat)))

    def _intersect(self, parts: Iterable[int]) -> int:
        flat: set[int] = set()
        for part in parts:
            kind, *arguments = self._nodes[part]
            flat |= arguments[0] if kind == "intersect" else {part}
        if self.empty in flat:
            return self.empty
        return flat.pop() if len(flat) == 1 else self._intern(("intersect", frozenset(flat)))

    def _repeat(self, item: int, low: int, high: int | None) -> int:
        if high is not None and high < low:
            return self.empty
        if high == 0:
            return self.epsilon
        return self._intern(("repeat", item, low, high))

    def _complement(self, item: int) -> int:
        return self._intern(("complement", item))

    def is_nullable(self, node: int) -> bool:
        """Whether the empty string is in the language."""
        if node not in self._nullable:
            kind, *arguments = self._nodes[node]
            if kind == "literal":
                result = arguments[0] == b""
            elif kind == "concat":
                result = all(map(self.is_nullable, arguments))
            elif kind == "union":
                result = any(map(self.is_nullable, arguments[0]))
            elif kind == "intersect":
                result = all(map(self.is_nullable, arguments[0]))
            elif kind == "repeat":
                result = arguments[1] == 0 or self.is_nullable(arguments[0])
            elif kind == "complement":
                result = not self.is_nullable(arguments[0])
            else:
                result = False
            self._nullable[node] = result
        return self._nullable[node]

    def step(self, node: int, byte: int) -> int:
        """What may follow ``byte``: the derivative."""
        key = (node, byte)
        if key not in self._derived:
            self._derived[key] = self._step(node, byte)
        return self._derived[key]

    def _step(self, node: int, byte: int) -> int:
        kind, *arguments = self._nodes[node]
        if kind == "literal":
            data = arguments[0]
            return self._intern(("literal", data[1:])) if data[:1] == bytes((byte,)) else self.empty
        if kind == "bytes":
            return self.epsilon if arguments[0] >> byte & 1 else self.empty
        if kind == "concat":
            left, right = arguments
            stepped = self._concat(self.step(left, byte), right)
            return self._union((stepped, self.step(right, byte))) if self.is_nullable(left) else stepped
        if kind == "union":
            return self._union(self.step(part, byte) for part in arguments[0])
        if kind == "intersect":
            return self._intersect(self.step(part, byte) for part in arguments[0])
        if kind == "repeat":
            # Right for a nullable item too: x{m,n} with x nullable is x{0,n}, and x{0,n-1} covers every shorter split.
            item, low, high = arguments
            rest = self._repeat(item, max(low - 1, 0), None if high is None else high - 1)
            return self._concat(self.step(item, byte), rest)
        if kind == "complement":
            return self._complement(self.step(arguments[0], byte))
        return self.empty

    def is_alive(self, node: int) -> bool:
        """Whether there is any string in the language."""
        if node not in self._alive:
            kind, *arguments = self._nodes[node]
            if kind == "empty":
                result = False
            elif kind in ("literal", "bytes"):
                result = True
            elif kind == "concat":
                result = all(map(self.is_alive, arguments))
            elif kind == "union":
                result = any(map(self.is_alive, arguments[0]))
            elif kind == "repeat":
                result = arguments[1] == 0 or self.is_alive(arguments[0])
            else:
                result = self._reaches_nullable(node)
            self._alive[node] = result
        return self._alive[node]

    def _reaches_nullable(self, node: int) -> bool:
        alphabet = self._representatives(node)
        seen = {node}
        todo = [node]
        while todo:
            current = todo.pop()
            if self.is_nullable(current):
                return True
            for byte in alphabet:
                stepped = self.step(current, byte)
                if stepped not in seen:
                    seen.add(stepped)
                    todo.append(stepped)
        return False

    def _representatives(self, node: int) -> list[int]:
        """One byte of every class that the tree cannot tell apart (derivatives have no new classes)."""
        sets: set[int] = set()
        todo = [node]
        while todo:
            kind, *arguments = self._nodes[todo.pop()]
            if kind == "literal":
                sets |= {1 << byte for byte in arguments[0]}
            elif kind == "bytes":
                sets.add(arguments[0])
            elif kind in ("union", "intersect"):
                todo.extend(arguments[0])
            elif kind == "concat":
                todo.extend(arguments)
            elif kind != "empty":
                todo.append(arguments[0])
        classes: dict[tuple[int, ...], int] = {}
        for byte in range(256):
            classes.setdefault(tuple(bits >> byte & 1 for bits in sets), byte)
        return list(classes.values())


# -- grammars: Earley over bytes -----------------------------------------------------------------

Item = tuple[int, int, "Row", "int | None"]
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
    """

    def __init__(self, ir: GrammarIR) -> None:
        self._languages = Derivatives()
        self._lexemes = [self._languages.node(lexeme) for lexeme in ir.lexemes]
        self._start, self._productions = self._trimmed(*self._with_ignore(ir))
        self._by_left: dict[int, list[int]] = {}
        for index, (left, _) in enumerate(self._productions):
            self._by_left.setdefault(left, []).append(index)
        first = Row()
        self._close(first, [(index, 0, first, None) for index in self._by_left.get(self._start, ())])
        self._rows = [first]

    @property
    def is_viable(self) -> bool:
        """Whether the bytes pushed so far are a prefix of some string in the language."""
        return bool(self._rows[-1].items)

    def push(self, byte: int) -> bool:
        """Take one byte more; False (and nothing changes) if no string of the language goes on like that."""
        row = self._rows[-1]
        if byte not in row.after:
            row.after[byte] = self._scan(row, byte)
        following = row.after[byte]
        if following is None:
            return False
        self._rows.append(following)
        return True

    def pop(self, count: int) -> None:
        """Take the last ``count`` bytes back."""
        if count >= len(self._rows):
            raise ValueError("more pops than pushes")
        del self._rows[len(self._rows) - count :]

    def push_bytes(self, data: bytes) -> bool:
        """Take all of ``data``, or nothing."""
        for done, byte in enumerate(data):
            if not self.push(byte):
                self.pop(done)
                return False
        return self.is_viable

    def is_accepting(self) -> bool:
        """Whether the bytes pushed so far are a string of the language."""
        first = self._rows[0]
        return any(
            origin is first and self._productions[index] == (self._start, right)
            for index, dot, origin, _ in self._rows[-1].items
            if dot == len(right := self._productions[index][1])
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
        alive = {~index for index, lexeme in enumerate(self._lexemes) if self._languages.is_alive(lexeme)}
        while True:
            more = {left for left, right in productions if alive.issuperset(right)} - alive
            if not more:
                return start, [production for production in productions if alive.issuperset(production[1])]
            alive |= more

    def _scan(self, row: Row, byte: int) -> Row | None:
        kernel = []
        for index, dot, origin, rest in row.items:
            if rest is not None:
                rest = self._languages.step(rest, byte)
                if self._languages.is_alive(rest):
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
            left, right = self._productions[index]
            if rest is not None:
                if self._languages.is_nullable(rest):
                    todo.append((index, dot + 1, origin, None))
            elif dot == len(right):
                todo += [(i, d + 1, o, None) for i, d, o, _ in origin.waiting.get(left, ())]
                if origin is row:
                    row.nullable.add(left)
            elif right[dot] < 0:
                todo.append((index, dot, origin, self._lexemes[~right[dot]]))
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
