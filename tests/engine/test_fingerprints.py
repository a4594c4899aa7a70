"""Fingerprints of expressions: equal for equal expressions in any grammar, and for no others.

The engine finds the splits that grammars share by them alone.  The judge here is ``hashlib``: it hashes the canonical
form that is written down in automata/fingerprints.py.
"""

from __future__ import annotations

import hashlib
import itertools
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import regulars

import constrain
from constrain import cache_folder
from constrain.engine.automata.expressions import COMPLEX_FLAG, CONCAT, LITERAL, QUOTES_FLAG, REPEAT, SET, UNION
from constrain.engine.automata.fingerprints import print_expressions
from constrain.engine.automata.operations import build_expressions
from constrain.engine.automata.programs import LexemeProgram
from constrain.engine.masks.lexer_masks import FIRST_SHARED
from constrain.engine.storage.header import BUDGET, LONGEST
from constrain.engine.storage.schemas import (
    BYTE_SETS,
    CHILDREN,
    EXPRESSION_PRINTS,
    EXPRESSIONS,
    LEXER_MASKS,
    LITERAL_BYTES,
)
from constrain.engine.storage.statuses import FAIL
from constrain.engine.storage.tables import Tables
from constrain.engine.vocabulary import files as vocabulary_files
from constrain.engine.vocabulary.files import VocabularyFiles
from constrain.grammar.ir import GrammarBuilder
from constrain.grammar.languages.regular import ByteSet, Regular, concat, literal, repeat, union

LONGEST_TOKEN = 30


def tables_of(expressions: Sequence[Regular], longest: int = LONGEST_TOKEN) -> Tables:
    """The nodes of some expressions, all with their fingerprints."""
    program = LexemeProgram(tuple(expressions))
    tables = Tables(1 << 30)
    tables.ctx[LONGEST], tables.ctx[BUDGET] = longest, 1_000_000
    tables.put(LITERAL_BYTES, program.literals)
    tables.put(BYTE_SETS, program.sets)
    registers = np.zeros(program.registers, np.int32)
    while (result := build_expressions(tables.ctx, program.code, registers)) == FAIL:
        tables.grow()
    assert result == 0
    while print_expressions(tables.ctx) == FAIL:
        tables.grow()
    return tables


class Naive:
    """Forms and fingerprints by the book, node by node: a node is made after its parts."""

    def __init__(self, tables: Tables) -> None:
        records = [record[1:] for record in tables.get(EXPRESSIONS).tolist()]
        pool, data = tables.array(CHILDREN), tables.array(LITERAL_BYTES).tobytes()
        sets = tables.array(BYTE_SETS).tobytes()
        longest = int(tables.ctx[LONGEST])
        self.forms: list[Any] = []
        self.prints: list[bytes | None] = []
        for head, a, b, c in records:
            kind = head & 255
            if head & (COMPLEX_FLAG | QUOTES_FLAG):
                self.forms.append(None)
                self.prints.append(None)
                continue
            if kind == LITERAL:
                spelled = data[a : a + b]
                form: Any = (kind, spelled)
                text = self._words(kind | b << 8) + spelled.ljust(-(-b // 8) * 8, b"\0")
            elif kind == SET:
                form = (kind, sets[32 * a : 32 * a + 32])
                text = self._words(kind) + form[1]
            elif kind == CONCAT:
                form = (kind, self.forms[a], self.forms[b])
                text = self._words(kind) + self.print_of(a) + self.print_of(b)
            elif kind == REPEAT:
                counts = min(b, longest + 1), min(c, longest + 1)
                form = (kind, self.forms[a], *counts)
                text = self._words(kind) + self.print_of(a) + self._words(*counts)
            elif kind == UNION:
                parts = [int(part) for part in pool[a : a + b]]
                form = (kind, tuple(sorted(repr(self.forms[part]) for part in parts)))
                prints = sorted(map(self.print_of, parts), key=lambda each: struct.unpack("<qq", each))
                text = self._words(kind | b << 8) + b"".join(prints)
            else:
                form = (kind,)
                text = self._words(kind)
            self.forms.append(form)
            self.prints.append(hashlib.blake2b(text, digest_size=16).digest())

    @staticmethod
    def _words(*numbers: int) -> bytes:
        return struct.pack(f"<{len(numbers)}q", *numbers)

    def print_of(self, node: int) -> bytes:
        found = self.prints[node]
        assert found is not None
        return found


def prints_in(tables: Tables) -> list[bytes]:
    data = tables.get(EXPRESSION_PRINTS).tobytes()
    return [data[16 * node : 16 * node + 16] for node in range(len(data) // 16)]


@settings(max_examples=150)
@given(st.lists(regulars(), min_size=1, max_size=4), st.lists(regulars(), max_size=2))
def test_equal_expressions_and_no_others_have_equal_fingerprints(
    expressions: list[Regular], others: list[Regular]
) -> None:
    """Two grammars with expressions in common, among others: whatever is the same in both, and nothing else."""
    here, there = tables_of(expressions), tables_of([*others, *reversed(expressions)])
    by_form: dict[Any, bytes] = {}
    by_print: dict[bytes, Any] = {}
    for tables in (here, there):
        naive = Naive(tables)
        found = prints_in(tables)
        assert len(found) == len(naive.forms)
        for form, expected, own in zip(naive.forms, naive.prints, found, strict=True):
            assert own == (bytes(16) if expected is None else expected)
            if form is not None:
                assert by_form.setdefault(form, own) == own
                assert by_print.setdefault(own, form) == form


def test_long_forms() -> None:
    """Literals and unions around the ends of blocks, which are 128 bytes, and words."""
    letters = bytes(range(1, 256)) * 3
    literals = [literal(letters[:length]) for length in (*range(1, 40), *range(110, 150), 255, 256, 600)]
    zeros = [literal(bytes(length)) for length in range(1, 40)]
    unions = [union(*literals[:count]) for count in (2, 3, 7, 8, 9, 15, 16, 17, 31, 40)]
    tables = tables_of([*literals, *zeros, *unions])
    naive = Naive(tables)
    assert prints_in(tables) == naive.prints
    # The same bytes in two places are two nodes.
    assert len(set(naive.prints)) == len(set(naive.forms))


def test_an_expression_may_be_nested_to_any_depth() -> None:
    expression = literal("a")
    for depth in range(20_000):
        expression = concat(ByteSet(3 << depth % 250), expression)
    tables = tables_of([expression])
    assert prints_in(tables) == Naive(tables).prints


# -- pairs that a weak hash takes for one another ----------------------------------------------

TOKENS = [bytes([byte]) for byte in range(256)]
TOKENS += [bytes([a, b]) for a in b"?\x7f\xbf\xffab" for b in b"?\x7f\xbf\xffab"]
TOKENS += [b"a" * length for length in range(3, 13)] + [b"ab" * 4, b"ba" * 4, b"</s>"]
END = len(TOKENS) - 1

WORDS = (0x0123456789ABCDEF, 0xFEDCBA9876543210, 0x00FF00FF00FF00FF, 0x0F0F0F0F0F0F0F0F)


def byte_set_of(words: Sequence[int]) -> Regular:
    return ByteSet(sum(word << 64 * place for place, word in enumerate(words)))


def with_flipped_tops() -> list[Regular]:
    """One set, and those with the top bits of one to four of its words flipped."""
    return [
        repeat(byte_set_of([word ^ (flip << 63) for word, flip in zip(WORDS, flips, strict=True)]))
        for flips in itertools.product((0, 1), repeat=4)
    ]


def with_words_in_any_order() -> list[Regular]:
    return [repeat(byte_set_of(words)) for words in itertools.permutations(WORDS)]


def with_swapped_parts() -> list[Regular]:
    left, right = byte_set_of(WORDS), byte_set_of(WORDS[::-1])
    return [
        concat(repeat(left), repeat(right)),
        concat(repeat(right), repeat(left)),
        concat(repeat(left), repeat(left)),
        repeat(concat(left, right)),
        repeat(concat(right, left)),
        concat(repeat(union(left, right)), left),
        concat(repeat(union(left, right)), right),
    ]


def with_other_counts() -> list[Regular]:
    """Around the length of the longest token, which is 12: beyond it no token can tell counts apart."""
    item = ByteSet((1 << 256) - 1 - (1 << ord("b")))
    highs: list[int | None] = [1, 2, 3, 11, 12, 13, 14, 40, None]
    return [
        concat(repeat(item, low, high), literal("b"))
        for low in (0, 1, 2, 11, 12, 13, 14, 30)
        for high in highs
        if high is None or low <= high
    ]


def with_unlike_lengths() -> list[Regular]:
    """Literals whose last word is filled up with zeros, or is that already."""
    some = byte_set_of(WORDS)
    tails = [bytes(length) for length in range(1, 12)] + [b"a" * 8, b"a" * 8 + b"\0", b"a" * 7 + b"\0"]
    return [concat(repeat(some), literal(b"b"), literal(tail)) for tail in tails]


def masks_are_exact(vocabulary: constrain.Vocabulary, expression: Regular, masks_compared: Any) -> None:
    builder = GrammarBuilder()
    text = builder.nonterminal("text")
    # Behind a lexeme that nothing follows, boundaries may be left out; such a mask is not shared.
    builder.add(text, (builder.lexeme(expression), builder.lexeme(literal("a"))))
    compiled = constrain.CompiledGrammar(builder.finish(text), vocabulary)
    matcher = constrain.Matcher(compiled)
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    # A grammar publishes one split at a time: again, for the one behind the first byte.
    for _ in range(2):
        matcher.fill_next_token_bitmask(mask)
        allowed = {token for token in range(END) if mask[0, token >> 5] >> (token & 31) & 1}
        expected = {token for token in range(END) if matcher.fork().accept_token(token)}
        assert allowed == expected
        masks_compared.add()
        if not expected or not matcher.accept_token(min(expected)):
            break


@pytest.mark.parametrize(
    "family",
    [with_flipped_tops, with_words_in_any_order, with_swapped_parts, with_other_counts, with_unlike_lengths],
    ids=lambda family: family.__name__,
)
def test_masks_are_those_of_the_expression_itself(family: Any, masks_compared: Any) -> None:
    """One vocabulary for all: each expression comes upon the splits of those before it."""
    vocabulary = constrain.Vocabulary(TOKENS, eos_ids=[END])
    expressions = family()
    for expression in [*expressions, *reversed(expressions)]:
        masks_are_exact(vocabulary, expression, masks_compared)
    assert len(vocabulary.shared) >= min(8, len(expressions))


@pytest.mark.parametrize("counts", [(13, None), (14, None), (30, 50), (40, 4000)])
def test_expressions_that_no_token_can_tell_apart_share_a_split(counts: tuple[int, int | None]) -> None:
    vocabulary = constrain.Vocabulary(TOKENS, eos_ids=[END])
    item = ByteSet((1 << 256) - 1 - (1 << ord("b")))

    def known_after(low: int, high: int | None) -> tuple[int, int]:
        builder = GrammarBuilder()
        text = builder.nonterminal("text")
        builder.add(text, (builder.lexeme(concat(repeat(item, low, high), literal("b"))),))
        compiled = constrain.CompiledGrammar(builder.finish(text), vocabulary)
        mask = constrain.allocate_token_bitmask(1, vocabulary.size)
        constrain.Matcher(compiled).fill_next_token_bitmask(mask)
        dense = compiled._tables.get(LEXER_MASKS)["dense"]
        return len(vocabulary.shared), int((dense <= FIRST_SHARED).sum())

    # A grammar publishes one split at a time.
    while (before := len(vocabulary.shared)) < known_after(13, 20)[0]:
        pass
    known, shared = known_after(*counts)
    assert known == before
    assert shared


@pytest.mark.parametrize(
    "pair",
    [(r"[^b]*", r"[^?\x7f]*"), (r"[?ac-z]*", r"[a-z\x7f]*"), (r"[a-z\x7f]*", r"[?ac-z]*")],
)
def test_two_patterns_with_one_vocabulary(pair: tuple[str, str]) -> None:
    tokens = [bytes([byte]) for byte in range(32, 128)] + [bytes([a, b]) for a in b"?abc" for b in b"?abc"] + [b"</s>"]
    vocabulary = constrain.Vocabulary(tokens, eos_ids=[len(tokens) - 1])
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    for pattern in pair:
        matcher = constrain.Matcher(
            constrain.GrammarCompiler(vocabulary).compile(constrain.Grammar.from_regex(pattern))
        )
        matcher.fill_next_token_bitmask(mask)
        allowed = {token for token in range(vocabulary.size) if mask[0, token >> 5] >> (token & 31) & 1}
        assert allowed == {token for token in range(vocabulary.size) if matcher.fork().accept_token(token)}


# -- files -------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(cache_folder, "cache_folders", lambda: [tmp_path])
    monkeypatch.setattr(vocabulary_files, "_SMALLEST", 0)
    return tmp_path


def names(files: VocabularyFiles) -> set[str]:
    assert set(files._names) == {"trie", "masks"}
    return set(files._names.values())


@pytest.mark.usefixtures("folder")
def test_files_of_another_format_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = np.frombuffer(b"ab", np.uint8), np.array([0, 1, 2]), np.zeros(2, np.uint8)
    now = names(VocabularyFiles(*arrays))
    assert now == names(VocabularyFiles(*arrays))
    monkeypatch.setattr(vocabulary_files, "_FORMAT", b"1")
    before = names(VocabularyFiles(*arrays))
    assert not now & before


@pytest.mark.usefixtures("folder")
def test_vocabularies_whose_arrays_are_the_same_bytes_end_to_end_have_files_of_their_own() -> None:
    """The last start of one is written as the first bytes of the other."""
    size = 20
    short = np.frombuffer(struct.pack("<q", size) + bytes(size) + b"\0", np.uint8)
    starts = np.array([0, len(short)])
    other_starts = np.array([0, len(short), size])
    kinds, other_kinds = np.zeros(1, np.uint8), np.zeros(2, np.uint8)
    other = short[8 : 8 + size]
    assert b"".join(map(bytes, (starts, short, kinds))) == b"".join(map(bytes, (other_starts, other, other_kinds)))
    assert not names(VocabularyFiles(short, starts, kinds)) & names(VocabularyFiles(other, other_starts, other_kinds))
