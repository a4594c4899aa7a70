"""What may come next, for a person: the lexemes that may begin or go on in a state, and the end of the text.

A mask says which tokens may come next; this says why.  Nothing here is on the way to a mask: the tables of the
compiled grammar are read as they are, by Python, in a few tenths of a millisecond.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from constrain.engine.automata import expressions as e
from constrain.engine.grammar_tables import GrammarTables
from constrain.engine.history import Place
from constrain.engine.parser import configurations as states
from constrain.engine.storage import schemas as t
from constrain.engine.storage.header import CLASSES
from constrain.engine.storage.tables import Tables
from constrain.grammar.languages import regular as r
from constrain.grammar.words import Progress, Words, by_name, either, printable

DEFAULT_LIMIT = 64
"""How many expectations are worked out unless more are asked for."""

# An expression with more nodes than this, or nested deeper, is not put in words.
_NODES, _DEPTH = 3000, 60
_BLANKS = sum(1 << byte for byte in b" \t\n\r")


@dataclass(frozen=True)
class Expectation:
    """Something that may come next.

    Attributes
    ----------
    kind : str
        What it is one of, such as ``a property name``; empty if there is no such word.
    texts : tuple of str
        Which one, or which ones; may be empty if the kind says it all.
    lexeme : int or None
        Its position in ``compiled.ir.lexemes``; None for the end of the text.
    rules : tuple of str
        The named rules (JSON Schema: the places in the schema) in which it is expected; sorted.
    next_bytes : bytes
        The bytes that it may go on with, in increasing order; empty for the end of the text.
    """

    kind: str
    texts: tuple[str, ...]
    lexeme: int | None = None
    rules: tuple[str, ...] = ()
    next_bytes: bytes = b""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.kind, either(self.texts))))


END_OF_TEXT = Expectation("", ("end of text",))
_IGNORED = "what is ignored"


def in_words(expectations: list[Expectation], most: int = 8, limit: int = DEFAULT_LIMIT) -> str:
    """One phrase for all of them, alternatives of one kind together: ``a property name ("a" or "b") or '}'``.

    Of each kind, and of what has no kind, ``most`` are named; how many more there are is said, unless these are only
    the first ``limit`` that were asked for.
    """
    cut = len(expectations) - (END_OF_TEXT in expectations) >= limit
    groups: dict[str, dict[str, None]] = {}
    for each in expectations:
        if each != END_OF_TEXT and each.texts != (_IGNORED,):
            groups.setdefault(each.kind, {}).update(dict.fromkeys(each.texts))
    parts = []
    for kind, texts in groups.items():
        named = list(texts)[:most]
        if len(texts) > most:
            named.append("more" if cut else f"{len(texts) - most} more")
        if not kind:
            parts += named
        elif named:
            parts.append(f"{kind} {either(named)}" if kind.endswith(" of") else f"{kind} ({either(named)})")
        else:
            parts.append(kind)
    if END_OF_TEXT in expectations:
        parts += END_OF_TEXT.texts
    return either(parts) or either(text for each in expectations for text in each.texts)


def expected_at(compiled: GrammarTables, tables: Tables, cursor: Place, limit: int) -> list[Expectation]:
    """What may come next at a cursor, what is under way first and the end of the text last.

    ``tables`` are those of the compiled grammar.  The caller holds its lock.
    """
    allowed = _next_bytes(compiled, tables, cursor)
    # No kernel runs from here on, so the numbers of states and Earley sets stay what they are.
    return _Reader(compiled, tables).at(cursor._state, allowed, limit)


def _next_bytes(compiled: GrammarTables, tables: Tables, cursor: Place) -> int:
    """The bytes that may come next, a set of 256 bits."""
    alive = 0
    for byte_class in range(int(tables.ctx[CLASSES])):
        if compiled.run_at(cursor, states.push_byte, int(tables.array(t.CLASS_BYTES)[byte_class])):
            alive |= 1 << byte_class
    class_of = tables.array(t.BYTE_CLASSES).tolist()
    return sum(1 << byte for byte in range(256) if alive >> class_of[byte] & 1)


class _Reader:
    """Reads the tables of a compiled grammar.  Its lock is held for as long as this is used."""

    def __init__(self, compiled: GrammarTables, tables: Tables) -> None:
        self._ir = compiled.ir
        self._lexeme = compiled.lexeme
        self._tokens = frozenset(compiled.ir.token_lexemes)
        self._get = tables.get
        self._left = tables.array(t.DOT_LEFT)
        self._nodes = tables.get(t.EXPRESSIONS)
        self._known: dict[int, r.Regular] = {}

    def at(self, state: int, allowed: int, limit: int) -> list[Expectation]:
        record = self._get(t.STATES)[state]
        configurations = self._get(t.CONFIGURATIONS)[record["offset"] :][: record["count"]]
        # (lexeme, node) -> the cores of the Earley sets in which it is expected.
        places: dict[tuple[int, int], list[int]] = {}
        for earley_set, lexer_state in configurations.tolist():
            core = int(self._get(t.EARLEY_SETS)[earley_set]["core"])
            lex = self._get(t.LEXER_STATES)[lexer_state]
            members = self._get(t.LEXER_MEMBERS)[lex["offset"] :][: 2 * lex["count"]].reshape(-1, 2)
            for lexeme, node in members.tolist():
                if self._ir.parse_table is not None and not self._ir.parse_table.is_read(lexeme):
                    continue
                places.setdefault((lexeme, node), []).append(core)
        begun: list[Expectation] = []
        fresh: list[Expectation] = []
        ignored: list[Expectation] = []
        for (lexeme, node), cores in places.items():
            if len(begun) + len(fresh) + len(ignored) == limit:
                break
            first = self._bits(t.SUMMARY_SETS, int(self._get(t.FIRST_BYTES)[node])) & allowed
            if not first:
                continue
            started = self._has_begun(lexeme, node)
            found = self._expectation(lexeme, node, started, first, cores)
            (ignored if lexeme in self._ir.ignore else begun if started else fresh).append(found)
        end = [END_OF_TEXT] if record["accepts"] else []
        return [*begun, *fresh, *ignored, *end]

    def _expectation(self, lexeme: int, node: int, begun: bool, first: int, cores: list[int]) -> Expectation:
        ir = self._ir
        name, language = self._lexeme(lexeme)
        if lexeme in ir.ignore:
            # What may be over is not worth a word.
            under_way = begun and not self._nodes[node]["flags"] & e.NULLABLE_FLAG
            words = by_name(Progress(_IGNORED, language, self._regular(node), under_way, first))
        elif lexeme in self._tokens:
            words = Words("", (name,))
        else:
            words = ir.describe(Progress(name, language, self._regular(node), begun, first))
        rules = sorted({printable(name) for core in cores for name in self._rules(core, lexeme)})
        texts = tuple(map(printable, words.texts))
        following = bytes(byte for byte in range(256) if first >> byte & 1)
        return Expectation(words.kind, texts, lexeme, tuple(rules), following)

    def _rules(self, core: int, lexeme: int) -> list[str]:
        """The names of the rules in which a core expects a lexeme."""
        fields = self._get(t.CORES)[core]
        scans = self._get(t.CORE_SCANS)[fields["scans"] :][: fields["scan_count"]]
        names = self._ir.nonterminal_names
        left = self._left[scans["dot"][scans["lexeme"] == lexeme]]
        # The rule that the engine adds around the start rule has no name.
        return [names[rule] for rule in np.unique(left).tolist() if rule < len(names) and names[rule]]

    def _has_begun(self, lexeme: int, node: int) -> bool:
        """Whether more of a lexeme has been read than blanks in front of it."""
        start = int(self._get(t.LEXEMES)[lexeme]["expression"])
        if node == start:
            return False
        rest = self._behind_blanks(start)
        return rest == start or self._behind_blanks(node) != rest

    def _behind_blanks(self, node: int) -> int:
        """What follows the blanks that an expression begins with; the expression itself if there are none."""
        nodes = self._nodes
        while nodes[node]["kind"] == e.CONCAT and self._is_blank(int(nodes[node]["first"]), _DEPTH):
            node = int(nodes[node]["second"])
        return node

    def _is_blank(self, node: int, depth: int) -> bool:
        """Whether an expression has strings of blanks alone; False if it is too large to be looked at."""
        kind, _, a, b, _ = self._nodes[node].tolist()
        if kind == e.SET:
            return not self._bits(t.BYTE_SETS, a) & ~_BLANKS
        if kind == e.LITERAL:
            return not self._get(t.LITERAL_BYTES)[a : a + b].tobytes().strip(b" \t\n\r")
        if depth == 0 or kind not in (e.REPEAT, e.UNION, e.CONCAT):
            return bool(kind == e.EPSILON)
        children: Any = (
            [a] if kind == e.REPEAT else [a, b] if kind == e.CONCAT else self._get(t.CHILDREN)[a : a + b].tolist()
        )
        return all(self._is_blank(child, depth - 1) for child in children)

    def _bits(self, slot: int, index: int) -> int:
        """One of the sets of bytes in a table, 256 bits."""
        return int.from_bytes(self._get(slot)[index].astype("<i8").tobytes(), "little")

    # -- expressions -------------------------------------------------------------------------

    def _regular(self, node: int) -> r.Regular | None:
        """The expression that a node stands for; None if it is too large to be of use in a message."""
        try:
            return self._read(node, _DEPTH)
        except _TooLarge:
            return None

    def _read(self, node: int, depth: int) -> r.Regular:
        known = self._known.get(node)
        if known is None:
            if depth == 0 or len(self._known) == _NODES:
                raise _TooLarge
            self._known[node] = r.EMPTY  # counts; nodes have no cycles
            known = self._known[node] = self._read_new(node, depth - 1)
        return known

    def _read_new(self, node: int, depth: int) -> r.Regular:
        kind, _, a, b, c = self._nodes[node].tolist()
        if kind == e.EPSILON:
            return r.Literal(b"")
        if kind == e.ALL:
            return r.ANY_BYTES
        if kind == e.QUOTATION:
            raise _TooLarge
        if kind == e.LITERAL:
            return r.Literal(self._get(t.LITERAL_BYTES)[a : a + b].tobytes())
        if kind == e.SET:
            return r.ByteSet(self._bits(t.BYTE_SETS, a))
        if kind == e.CONCAT:
            parts = [self._read(a, depth)]
            while self._nodes[b]["kind"] == e.CONCAT:
                if len(parts) == _NODES:
                    raise _TooLarge
                parts.append(self._read(int(self._nodes[b]["first"]), depth))
                b = int(self._nodes[b]["second"])
            return r.concat(*parts, self._read(b, depth))
        if kind == e.REPEAT:
            return r.repeat(self._read(a, depth), b, None if c < 0 else c)
        if kind == e.NOT:
            return r.complement(self._read(a, depth))
        if kind in (e.UNION, e.INTERSECT):
            children: Any = self._get(t.CHILDREN)[a : a + b].tolist()
            parts = [self._read(child, depth) for child in children]
            return r.union(*parts) if kind == e.UNION else r.intersect(*parts)
        return r.EMPTY


class _TooLarge(Exception):
    """An expression has too many parts."""
