"""Forgetting rows and states changes no result, whenever it happens and whoever is in the middle of something."""

from __future__ import annotations

import itertools
import random
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import constrain
from constrain.engine import grammar_tables as tables_module
from constrain.engine import history
from constrain.engine.parser import configurations
from constrain.engine.storage import schemas
from constrain.grammar.ir import GrammarBuilder, GrammarIR
from constrain.grammar.languages.regular import byte_range, literal, repeat

TOKENS = [bytes((byte,)) for byte in range(256)] + [b"[[", b"]]", b"{(", b"12", b"],[", b")}", b"</s>"]
EOS = len(TOKENS) - 1


def brackets() -> GrammarIR:
    """Three kinds of brackets in any order: each depth has new stacks, so a text never stops finding new rows."""
    builder = GrammarBuilder()
    value = builder.nonterminal("value")
    builder.add(value, (builder.lexeme(repeat(byte_range(0x30, 0x39), 1, 3)),))
    comma = builder.lexeme(literal(","))
    for left, right in ("[]", "{}", "()"):
        items = builder.sequence((value, builder.star(builder.sequence((comma, value)))))
        builder.add(value, (builder.lexeme(literal(left)), builder.optional(items), builder.lexeme(literal(right))))
    # Right recursion too, whose completions are remembered.
    chain = builder.nonterminal("chain")
    builder.add(chain, (builder.lexeme(literal("x")),))
    builder.add(chain, (builder.lexeme(literal("x")), builder.lexeme(literal(";")), chain))
    builder.add(value, (chain,))
    return builder.finish(value)


@pytest.fixture(scope="module")
def vocabulary() -> constrain.Vocabulary:
    return constrain.Vocabulary(TOKENS, eos_ids=[EOS])


@pytest.fixture
def no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Collect whenever a table of rows or states would grow."""
    monkeypatch.setattr(tables_module, "_COLLECT_BYTES", 0)
    monkeypatch.setattr(tables_module, "STEPS_KEPT", 4)
    monkeypatch.setattr(history, "STEPS_KEPT", 4)


def random_text(choose: random.Random, length: int, depth: int = 12) -> bytes:
    """A text of the grammar of about so many bytes, as deep as asked for."""
    text, stack, value_next = bytearray(), bytearray(), True
    while len(text) < length or stack:
        if value_next and len(text) < length and len(stack) < depth and (not stack or choose.random() < 0.6):
            left, right = choose.choice(["[]", "{}", "()"])
            text += left.encode()
            stack += right.encode()
        elif value_next:
            text += choose.choice([b"7", b"12", b"345", b"x;x;x", b"x"])
            value_next = False
        elif stack and (len(text) >= length or (len(stack) > 1 and choose.random() < 0.4)):
            text.append(stack.pop())
        elif stack:
            text += b","
            value_next = True
        else:
            break
    return bytes(text)


def mask_of(matcher: constrain.Matcher) -> bytes:
    mask = constrain.allocate_token_bitmask(1, len(TOKENS))
    matcher.fill_next_token_bitmask(mask)
    return mask.tobytes()


WITHIN_A_CALL = """
KERNEL_ITEMS KERNEL_SLOTS KERNEL_PLACES NEW_SETS NEW_WORDS SET_OF_DOT WORK_LIST STATE_WORK WALK_STACK WIDE_STACK
FOLLOWS WORK_STACK LIVENESS_STACK LIFE_HEAP LIFE_PLACES LIFE_WAYS
SUBSUMED HASHED_WORDS FOUND_TOKENS SELF_LOOPS SCRATCH_MASK UNMADE_BRANCHES
OPEN_NODES COST_STACK SEARCH_HEAP SEARCH_PLACES SEARCH_WAYS PATH_HEAP PATH_PLACES PATH_WAYS TOKEN_COSTS
LEFT_OUT COST_RESULT BOUNDARY_CURSOR COST_WALK PATH_SEARCH RUN_REGIONS ENDS_FOUND CHILDREN_FOUND RUNS_FOUND
EXITS_FOUND ROOTS_FOUND ARRIVALS ARRIVAL_QUEUE ASKED
"""
OF_THE_GRAMMAR = """
EXPRESSIONS EXPRESSION_PRINTS FIRST_BYTES LAST_BYTES NECESSARY_BYTES SHORTEST_LENGTHS END_LENGTHS LIVENESS LIFE_LENGTHS
SUMMARY_SETS SUMMARY_SET_HASHES SUMMARY_SET_BUCKETS
EXPRESSION_HASHES EXPRESSION_BUCKETS CHILDREN LITERAL_BYTES BYTE_SETS DERIVATIVE_KEYS DERIVATIVE_VALUES BYTE_CLASSES
QUOTED_BYTES QUOTED_CUTS QUOTED_ORDER
DEAD_LENGTH_KEYS DEAD_LENGTHS
CLASS_BYTES CLASS_SIZES CLASS_GROUPS LEXEMES LEXER_STATES LEXER_MEMBERS LEXER_STATE_HASHES LEXER_STATE_BUCKETS
LEXER_FIRST_BYTES LEXER_TRANSITIONS ACCEPT_SETS ACCEPT_MEMBERS ACCEPT_SET_HASHES
ACCEPT_SET_BUCKETS SYMBOLS DOT_LEFT NULLABLE_REST RULES RULE_STARTS NULLABLE FOLLOWED IGNORED CORES CORE_KINDS CORE_DOTS
CORE_HASHES CORE_BUCKETS CORE_SCANS CORE_GROUPS CORE_WAITS PREDICTED BRANCHES BRANCH_DOTS LEXER_MASKS BOUNDARIES
CLOSURE_BYTES CLOSURE_NODES TOKEN_LISTS DENSE_MASKS TRIE_HEIGHT EXPRESSION_COSTS BYTE_COSTS CLASS_COSTS
TOKEN_WEIGHTS BYTE_SUMS REST_COSTS SOURCES SOURCE_NODES NODES_BY_GROUP SOURCE_HASHES SOURCE_BUCKETS RUNS RUN_ENDS
RUN_KEYS RUN_VALUES RUN_STATES RUN_STATE_MEMBERS RUN_STATE_HASHES RUN_STATE_BUCKETS RUN_STEPS
EXITS ROOTS ROOT_KEYS ROOT_VALUES LEXEME_ROLES LEXER_LIVES PARSE_CONTEXTS CONTEXT_LEXEMES
PARSE_ACTIONS PARSE_GOTOS PARSE_RULES PARSE_ENDS
"""
OF_THE_VOCABULARY = """
TRIE_NODES SUBTREE_SIZES BYTE_GROUP CHILD_GROUPS NODE_TOKENS SUBTREES TOKENS_IN_ORDER NODES_BY_BYTE BYTE_STARTS
TOKENS_BY_LENGTH WIDE_NODES WIDE_MASKS WIDE_ENDS WIDE_FIRST WIDE_CHILD TOKEN_STARTS TOKEN_BYTES SAME_BYTES
EMPTY_TOKENS EOS_TOKENS SHARED_COUNTS SHARED_PRINTS SHARED_HINTS SHARED_MASKS SHARED_DENSE SHARED_BOUNDARIES
SHARED_COUNTED SHARED_BY_REPETITIONS SHARED_MORE_THAN
"""


def test_every_table_is_known_to_hold_rows_and_states_or_not() -> None:
    """A new table has to be looked at: if it holds either from one call to the next, compaction.py must change it."""
    listed = {getattr(schemas, name) for name in (WITHIN_A_CALL + OF_THE_GRAMMAR + OF_THE_VOCABULARY).split()}
    listed |= set(schemas.BY_SET_OR_STATE)
    assert not [name for slot, name in enumerate(schemas.NAMES) if slot not in listed]


@pytest.mark.usefixtures("no_memory")
def test_masks_are_the_same_all_along(vocabulary: constrain.Vocabulary) -> None:
    tight = constrain.Matcher(constrain.CompiledGrammar(brackets(), vocabulary))
    roomy = constrain.Matcher(constrain.CompiledGrammar(brackets(), vocabulary))
    roomy.compiled._collect_above = 1 << 40
    for byte in random_text(random.Random(1), 6_000):
        assert mask_of(tight) == mask_of(roomy)
        assert tight.is_accepting() == roomy.is_accepting()
        assert tight.accept_token(byte)
        assert roomy.accept_token(byte)
    assert tight.is_accepting()
    assert tight.compiled.generation > 10
    assert roomy.compiled.generation == 0
    assert 4 * tight.compiled.statistics()["rows"] < roomy.compiled.statistics()["rows"]
    # Back to the very beginning, by way of states that were forgotten long ago.
    for back in (1, 3, 10, 500, 2000, 1, 1, tight.steps - 2517, 1):
        tight.rollback(back)
        roomy.rollback(back)
        assert mask_of(tight) == mask_of(roomy)
    assert tight.steps == roomy.steps == 0


@pytest.mark.usefixtures("no_memory")
@settings(max_examples=40)
@given(st.data())
def test_any_order_of_calls(vocabulary: constrain.Vocabulary, data: st.DataObject) -> None:
    """Several matchers and recognizers of one grammar, each against one that never forgets."""
    tight = constrain.CompiledGrammar(brackets(), vocabulary)
    roomy = constrain.CompiledGrammar(brackets(), vocabulary)
    roomy._collect_above = 1 << 40
    pairs = [(constrain.Matcher(tight), constrain.Matcher(roomy))]
    readers = [(tight.recognizer(), roomy.recognizer())]
    choose = random.Random(data.draw(st.integers(0, 2**32)))
    for _ in range(data.draw(st.integers(20, 60))):
        place = choose.randrange(len(pairs))
        action = choose.choice(["text", "text", "text", "back", "fork", "reset", "end", "read", "collect", "bytes"])
        left, right = pairs[place]
        if action == "text":
            for _ in range(choose.randrange(1, 60)):
                allowed = np.flatnonzero(np.unpackbits(np.frombuffer(mask_of(right), np.uint8), bitorder="little"))
                tokens = [token for token in allowed.tolist() if token != EOS]
                if tokens:
                    token = choose.choice(tokens)
                    assert left.accept_token(token)
                    assert right.accept_token(token)
        elif action == "bytes":
            piece = bytes(choose.choices(b"[]{}(),1x;", k=choose.randrange(4)))
            assert left.accept_bytes(piece) == right.accept_bytes(piece)
        elif action == "back":
            count = choose.randrange(left.steps + 1)
            left.rollback(count)
            right.rollback(count)
        elif action == "fork":
            pairs.append((left.fork(), right.fork()))
        elif action == "reset":
            left.reset()
            right.reset()
        elif action == "end":
            assert left.accept_token(EOS) == right.accept_token(EOS)
        elif action == "read":
            reader, twin = readers[0]
            for byte in random_text(choose, 30):
                assert reader.try_push_byte(byte) == twin.try_push_byte(byte)
            back = choose.randrange(reader._steps + 1)
            reader.pop_bytes(back)
            twin.pop_bytes(back)
            assert reader.is_accepting() == twin.is_accepting()
        else:
            with tight.lock:
                tight._collect(choose.choice([0, 1, 4]))
        for one, other in pairs:
            assert one.steps == other.steps
            assert one.is_terminated() == other.is_terminated()
            assert mask_of(one) == mask_of(other)
            assert one.forced_bytes() == other.forced_bytes()


def test_memory_of_a_long_text_stays_within_its_limit(vocabulary: constrain.Vocabulary) -> None:
    """Without collecting, this text takes several times the limit."""
    limit = 4 << 20
    compiled = constrain.CompiledGrammar(brackets(), vocabulary, limit_bytes=limit, mask_limit_bytes=1 << 20)
    free = constrain.CompiledGrammar(brackets(), vocabulary)
    for seed in range(6):
        matcher, other = constrain.Matcher(compiled), constrain.Matcher(free)
        for byte in random_text(random.Random(seed), 20_000, depth=40):
            assert matcher.accept_token(byte)
            assert other.accept_token(byte)
            assert compiled.nbytes <= limit
        assert matcher.is_accepting()
        matcher.rollback(matcher.steps // 2)
        other.rollback(other.steps // 2)
        assert mask_of(matcher) == mask_of(other)
    assert free.nbytes > 2 * limit


def test_live_states_that_do_not_fit_are_an_error_and_nothing_is_lost(vocabulary: constrain.Vocabulary) -> None:
    compiled = constrain.CompiledGrammar(brackets(), vocabulary, limit_bytes=2 << 20)
    matcher = constrain.Matcher(compiled)

    def go_deeper_for_ever() -> None:
        while matcher.accept_token(ord("[")):  # every level stays live
            pass

    with pytest.raises(constrain.LimitError, match="limit_bytes"):
        go_deeper_for_ever()
    depth = matcher.steps
    assert depth > 100
    assert matcher.text(depth) == b"[" * depth
    with pytest.raises(constrain.LimitError, match="limit_bytes"):
        matcher.accept_token(ord("["))
    matcher.rollback(1)
    assert matcher.accept_token(ord("1"))
    matcher.rollback(depth - 10)
    for _ in range(10):
        assert matcher.accept_token(ord("]")) or matcher.accept_token(ord("1"))


@pytest.mark.usefixtures("no_memory")
def test_in_many_threads(vocabulary: constrain.Vocabulary) -> None:
    """Every thread's steps renumber the states of all the others."""
    shared = constrain.CompiledGrammar(brackets(), vocabulary)
    alone = constrain.CompiledGrammar(brackets(), vocabulary)
    alone._collect_above = 1 << 40

    def walk(compiled: constrain.CompiledGrammar, seed: int) -> Iterator[bytes]:
        choose = random.Random(seed)
        for _ in range(4):
            matcher = constrain.Matcher(compiled)
            for byte in random_text(choose, 200):
                assert matcher.accept_token(byte)
                yield mask_of(matcher)
                if choose.random() < 0.1:
                    matcher = matcher.fork()
            while matcher.steps:
                matcher.rollback(choose.randrange(1, 1 + min(matcher.steps, 40)))
                yield mask_of(matcher)

    expected = [list(walk(alone, seed)) for seed in range(6)]
    found: dict[int, list[bytes]] = {}

    def work(seed: int) -> None:
        found[seed] = list(walk(shared, seed))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert [found[seed] for seed in range(6)] == expected
    assert shared.generation > 3


def test_what_nobody_holds_is_forgotten(vocabulary: constrain.Vocabulary) -> None:
    compiled = constrain.CompiledGrammar(brackets(), vocabulary)
    start = compiled.statistics()
    matchers: list[Any] = []
    for seed in range(20):
        matcher = constrain.Matcher(compiled)
        for byte in random_text(random.Random(seed), 200):
            assert matcher.accept_token(byte)
        matchers.append(matcher)
    many = compiled.statistics()
    with compiled.lock:
        compiled._collect(0)
    held = compiled.statistics()
    matchers.clear()
    del matcher
    with compiled.lock:
        compiled._collect(0)
    assert many["states"] > 10 * held["states"] > 0
    left = compiled.statistics()
    assert (left["rows"], left["states"]) == (start["rows"], start["states"])
    assert np.count_nonzero(compiled._tables.get(schemas.TRANSITIONS) > 0) == 0


@pytest.mark.usefixtures("no_memory")
def test_a_long_text_as_one_step(vocabulary: constrain.Vocabulary) -> None:
    """More than fits, in one call: collected on the way, and nothing happens if the end does not fit the grammar."""
    text = random_text(random.Random(3), 60_000, depth=40)
    compiled = constrain.CompiledGrammar(brackets(), vocabulary, limit_bytes=4 << 20)
    matcher = constrain.Matcher(compiled)
    assert not matcher.accept_bytes(text + b"]")
    assert matcher.steps == 0
    assert matcher.accept_bytes(text[:50_000])
    assert matcher.accept_bytes(text[50_000:])
    assert matcher.is_accepting()
    assert compiled.generation > 2
    for _ in range(2):
        matcher.rollback(1)
        with compiled.lock:
            compiled._collect(0)
    assert matcher.accept_bytes(text)


def test_where_memory_is_scarce_no_table_takes_all_of_it() -> None:
    """A table that is made anew for what is live is not made as large as it was with what has been forgotten.

    Others need room too; within a few limits there was none left for them.
    """
    vocabulary = constrain.Vocabulary([bytes((byte,)) for byte in range(256)])
    ir = constrain.Grammar.from_json_schema({}).ir
    nested = (b'{"a":' * depth + b'[1,2,{"b":[' + b"1," * 20 + b"2]}]" + b"}" * depth for depth in range(23))
    text = b"[" + b",".join(nested) + b"]"
    least = constrain.CompiledGrammar(ir, vocabulary)._tables.nbytes
    for spare in range(1 << 10, 4 << 10, 1 << 7):
        matcher = constrain.Matcher(constrain.CompiledGrammar(ir, vocabulary, limit_bytes=least + spare))
        for byte in text:
            assert matcher.accept_token(byte)


def test_what_is_all_needed_is_seldom_collected() -> None:
    """In an ambiguous text every place holds all those before it: that is found out now and then, not at each byte."""
    vocabulary = constrain.Vocabulary([bytes((byte,)) for byte in range(256)], eos_ids=[0])
    grammar = constrain.Grammar.from_lark('start: s\ns: s s s | s s | "a"')
    compiled = constrain.CompiledGrammar(grammar.ir, vocabulary)
    recognizer = compiled.recognizer()
    for _ in range(2_600):
        assert recognizer.try_push_byte(ord("a"))
    assert 0 < compiled.generation < 12


def test_masks_of_stacks_are_kept() -> None:
    # The stacks of an LALR parser come back, and their masks are what takes time.  A mask looks at many stacks that no
    # text takes: those behind the tokens of brackets here.
    brackets = ["".join(each) for n in range(2, 7) for each in itertools.product("[({", repeat=n)]
    tokens = [bytes((byte,)) for byte in range(128)] + [each.encode() for each in brackets] + [b"</s>"]
    vocabulary = constrain.Vocabulary(tokens, eos_ids=[len(tokens) - 1])
    grammar = constrain.Grammar.from_lark(
        """
        start: (value ";")*
        value: /[0-9]+/ | "[" items "]" | "(" items ")" | "{" items "}"
        items: value ("," value)*
        """,
        lexing="longest",
    )
    compiled = constrain.CompiledGrammar(grammar.ir, vocabulary)
    compiled._collect_above = 1 << 21
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    pairs = [b"[]", b"()", b"{}"]
    text = b"".join(
        b"".join(pair[:1] for pair in inside) + b"1,2" + b"".join(pair[1:] for pair in inside[::-1]) + b";"
        for inside in itertools.product(pairs, repeat=4)
    )
    unknown = []
    for _ in range(2):
        generation, count = compiled.generation, 0
        matcher = constrain.Matcher(compiled)
        for byte in text:
            known = compiled._tables.array(schemas.STATE_MASKS)["dense"][matcher._state]
            count += int(known == configurations.NO_MASK)
            matcher.fill_next_token_bitmask(mask)
            assert matcher.accept_token(byte)
        unknown.append((count, compiled.generation - generation))
    made, forgotten = unknown[0]
    assert made > 300
    assert forgotten > 1
    assert unknown[1] == (0, 0)
