"""Numbers that have a width: marks of epochs, places in tables, and what is packed into one number."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import constrain
import constrain.engine
from constrain.engine.parser.cores import LAST_EPOCH
from constrain.engine.storage import header, schemas, tables
from constrain.engine.storage.header import EPOCH, HEADER
from constrain.engine.storage.schemas import (
    BOUNDARIES,
    COMPLETION_STAMPS,
    DENSE_MASKS,
    EARLEY_ITEMS,
    EXPRESSION_BUCKETS,
    PREDICTED,
    SCAN_KEYS,
    SCAN_VALUES,
    TOKEN_LISTS,
)
from constrain.engine.storage.tables import Tables
from constrain.grammar.ir import GrammarBuilder
from constrain.grammar.languages.regular import byte_range, repeat
from tests.masks import mask_of

TOKENS = [bytes([byte]) for byte in range(128)]
TOKENS += [bytes([a, b]) for a in b"ab(),1+ " for b in b"ab(),1+ "] + [b"1+1", b"((", b"))", b"aaaa", b"</s>"]
END = len(TOKENS) - 1
VOCABULARY = constrain.Vocabulary(TOKENS, eos_ids=[END])

RECURSIVE = {
    "left": 'start: expr\nexpr: expr "+" term | term\nterm: "(" expr ")" | /[0-9]/\n',
    "right": 'start: item "," start | item\nitem: /[ab1]+/ | "(" start ")"\n',
    "ambiguous": 'start: e\ne: e e | "a" | "b" e | "(" e ")" | "1" e "1"\n',
    "over nothing": 'start: (a b)* c\na: "a"? | a "(" a ")"\nb: "b"* | b a\nc: "1"? | c "+"\n',
}


def walk(seed: int, matcher: constrain.Matcher, *others: constrain.Matcher, steps: int = 25) -> int:
    """Go along a random text; all matchers must agree at each step.  Returns the masks compared."""
    choose = random.Random(seed)
    for count in range(steps):
        allowed = mask_of(matcher)
        for other in others:
            assert mask_of(other) == allowed
        allowed.discard(END)
        if not allowed:
            return count + 1
        token = choose.choice(sorted(allowed))
        assert matcher.accept_token(token)
        assert all(other.accept_token(token) for other in others)
    return steps


# -- epochs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECURSIVE)
def test_marks_are_void_when_numbers_of_epochs_are_used_again(name: str, masks_compared: Any) -> None:
    ir = constrain.Grammar.from_lark(RECURSIVE[name]).ir
    judge = constrain.CompiledGrammar(ir, VOCABULARY)
    for before in range(8):
        compiled = constrain.CompiledGrammar(ir, VOCABULARY)
        # Marks of the first epochs, which have the numbers that come again.
        masks_compared.add(walk(before, constrain.Matcher(compiled), constrain.Matcher(judge), steps=6))
        compiled.ctx[EPOCH] = LAST_EPOCH - before
        for seed in range(10, 14):
            masks_compared.add(walk(seed, constrain.Matcher(compiled), constrain.Matcher(judge)))
        assert 0 < compiled.ctx[EPOCH] < 1 << 20
        for slot in (PREDICTED, COMPLETION_STAMPS):
            assert compiled._tables.get(slot).max(initial=0) <= compiled.ctx[EPOCH]


@pytest.mark.parametrize("epoch", [LAST_EPOCH + 1, 1 << 31, (1 << 31) + 7, 1 << 40])
def test_an_epoch_beyond_the_last_begins_again(epoch: int) -> None:
    compiled = constrain.CompiledGrammar(constrain.Grammar.from_lark(RECURSIVE["left"]).ir, VOCABULARY)
    compiled.ctx[EPOCH] = epoch
    assert constrain.Matcher(compiled).accept_bytes(b"1+(2+(3+4))+5+(1)")


def test_every_counter_of_the_kernels_is_known() -> None:
    """A new counter has to be looked at: what holds its numbers, and what happens when they do not fit any more.

    EPOCH begins again, and BUDGET counts down to 0.  The others are 64 bits wide and count what takes longer than a
    nanosecond each: walks of the trie, and the nodes in them.
    """
    folder = Path(constrain.engine.__file__).parent
    found = {name for path in folder.rglob("*.py") for name in re.findall(r"ctx\[(\w+)\] [-+]= ", path.read_text())}
    assert found == {"EPOCH", "BUDGET", "WALKS", "LONG_WALKS", "NODES_WALKED"}


# -- places in tables --------------------------------------------------------------------------


def test_no_table_grows_beyond_what_its_places_fit_into(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 1_000_000
    monkeypatch.setattr(tables, "MOST_ELEMENTS", most)
    of = Tables(1 << 40)
    of.reserve(EARLEY_ITEMS, most // 2 + 1)
    of.reserve(EARLEY_ITEMS, most)
    assert of.capacity(EARLEY_ITEMS) == most
    with pytest.raises(
        constrain.LimitError, match=r"more than 1,000,000 entries \(the Earley set items table is full\)"
    ):
        of.reserve(EARLEY_ITEMS, most + 1)
    with pytest.raises(constrain.LimitError, match="entries"):
        of.allocate(EARLEY_ITEMS, most + 1)
    # Hashed tables are powers of two.
    for slot in (EXPRESSION_BUCKETS, SCAN_KEYS):
        of.reserve(slot, 1 << 19)
        assert of.capacity(slot) == 1 << 19
        with pytest.raises(constrain.LimitError, match="entries"):
            of.reserve(slot, (1 << 19) + 1)
    assert of.capacity(SCAN_VALUES) == 1 << 19
    # A table that is as large as can be is no reason for others not to grow.
    of.ctx[HEADER + 3 * EARLEY_ITEMS + 2] = most
    of.reserve(schemas.EARLEY_SETS, 2000)
    assert of.capacity(schemas.EARLEY_SETS) >= 2000


def test_a_grammar_that_does_not_fit_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_ELEMENTS", 1 << 15)
    nested = constrain.Grammar.from_gbnf('root ::= ("a" root "b")?')
    compiled = constrain.CompiledGrammar(nested.ir, VOCABULARY)
    with pytest.raises(constrain.LimitError, match="more than 32,768 entries"):
        constrain.Matcher(compiled).accept_bytes(b"a" * 100_000)


def test_masks_may_not_take_more_than_their_places_fit_into() -> None:
    ir = constrain.Grammar.from_regex("a*").ir
    compiled = constrain.CompiledGrammar(ir, VOCABULARY, mask_limit_bytes=1 << 50)
    assert compiled.mask_limit_bytes == 4 * header.MOST_ELEMENTS


@pytest.mark.parametrize("slot", [DENSE_MASKS, TOKEN_LISTS, BOUNDARIES], ids=["dense", "lists", "crossings"])
def test_masks_at_the_end_of_the_largest_table(slot: int, masks_compared: Any) -> None:
    """A table of 8 GiB or more, of which only the last pages are touched: places are just below 2**31, then none."""
    grammars = [constrain.Grammar.from_lark(RECURSIVE[name]) for name in ("left", "ambiguous", "over nothing")]
    grammars.append(constrain.Grammar.from_regex(r'("[^"]*[ab]{1,30}",)+|(\([^)]{3,}\) ?)*'))
    written = forgotten = 0
    for grammar in grammars:
        judge = constrain.CompiledGrammar(grammar.ir, VOCABULARY)
        compiled = constrain.CompiledGrammar(grammar.ir, VOCABULARY, limit_bytes=1 << 50, mask_limit_bytes=1 << 50)
        try:
            large = tables._addresses(header.MOST_ELEMENTS * schemas.NUMBERS_IN[slot], np.dtype(np.int32))
        except (MemoryError, OSError):
            pytest.skip("no address space for a table of 8 GiB")
        compiled._tables._install(slot, large)
        words = len(TOKENS) // 32 + 1
        begin = header.MOST_ELEMENTS - 12 * words
        compiled.ctx[HEADER + 3 * slot + 2] = begin
        for seed in range(12):
            steps = 2 if seed < 6 else 25
            masks_compared.add(walk(seed, constrain.Matcher(compiled), constrain.Matcher(judge), steps=steps))
            written += compiled._tables.used(slot) > begin
            forgotten += compiled._tables.used(slot) < begin
        # Masks were forgotten when the table was full, and it was not made larger.
        assert compiled._tables.capacity(slot) <= header.MOST_ELEMENTS
    assert written
    assert forgotten


def test_counts_that_do_not_fit_are_refused() -> None:
    most = (1 << 31) - 1
    for low, high, fits in ((0, most, True), (most, None, True), (0, most + 1, False), (1 << 40, None, False)):
        builder = GrammarBuilder()
        text = builder.nonterminal("text")
        builder.add(text, (builder.lexeme(repeat(byte_range(0x61, 0x63), low, high)),))
        ir = builder.finish(text)
        if fits:
            assert constrain.Matcher(constrain.CompiledGrammar(ir, VOCABULARY)).accept_bytes(b"aabbcc")
        else:
            with pytest.raises(constrain.LimitError, match="the most is 2,147,483,647"):
                constrain.CompiledGrammar(ir, VOCABULARY)


@pytest.mark.parametrize("most", [1 << 30, 1 << 31, 1 << 63, (1 << 64) - 1, 10**30])
def test_budgets_of_any_size(most: int) -> None:
    ir = constrain.Grammar.from_json_schema({"type": "array", "items": {"type": "string"}}).ir
    plain = constrain.Matcher(constrain.CompiledGrammar(ir, VOCABULARY))
    matcher = constrain.Matcher(constrain.CompiledGrammar(ir, VOCABULARY), max_tokens=most)
    for byte in b'[ "ab", "':
        assert mask_of(matcher) == mask_of(plain)
        assert matcher.accept_token(byte)
        assert plain.accept_token(byte)
    assert matcher.tokens_left == most - plain.steps
    assert mask_of(matcher) == mask_of(plain)


def test_more_nodes_than_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_ELEMENTS", 1 << 15)
    words = [f"word {number}" for number in range(9000)]
    with pytest.raises(constrain.LimitError, match="entries"):
        constrain.CompiledGrammar(constrain.Grammar.from_choices(words).ir, VOCABULARY)
