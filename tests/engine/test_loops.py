"""Subtrees of the trie that a walk takes at once: what is known of them, and that it changes no split."""

from __future__ import annotations

import codecs
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import constrain
from constrain.engine.automata.lexer_states import CLOSURE, NOT_SPLIT
from constrain.engine.masks.lexer_masks import FIRST_SHARED
from constrain.engine.storage import schemas
from constrain.engine.vocabulary import subtree_classes as subtree_bytes
from constrain.engine.vocabulary.trie import DEPTH_SHIFT, LARGE

CHARACTERS = ["a", "b", "x", "Z", " ", "\n", "\t", "\x01", '"', "\\", "7", "\x7f", "é", "ж", "߿", "ࠀ", "€", "漢", "한"]
CHARACTERS += ["\ud7ff", "\ue001", "\uffff", "𐍈", "😀", "\U0010ffff"]
# Parts of characters, and bytes that are none: overlong, surrogates, beyond the last character, on their own.
PARTS = [b"\xc3", b"\x80", b"\xbf", b"\xe0", b"\xe0\x9f\xbf", b"\xed\xa0\x80", b"\xf0\x8f\xbf\xbf", b"\xf4\x90\x80\x80"]
PARTS += [b"\xc0\x80", b"\xf5", b"\xff", b"\xe2\x82", b"\xf0\x9f\x98", b"\xe2a", b"\xf0\x9fa", b"\xc3\xc3\xa9"]
PIECES = [character.encode() for character in CHARACTERS] + PARTS


def bits_of(texts: set[bytes]) -> set[int]:
    """The bits for texts that begin with a new character."""
    bits = set()
    for text in texts:
        try:
            characters = codecs.getincrementaldecoder("utf-8")().decode(text)
        except UnicodeDecodeError:
            return {subtree_bytes.ILL_FORMED}
        rest = text[len(characters.encode()) :][:1]
        firsts = [character.encode()[0] for character in characters] + list(rest)
        bits |= {int(subtree_bytes.BIT_OF_BYTE[byte]) for byte in firsts}
    return bits


@given(st.lists(st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map(b"".join), min_size=1, max_size=60))
def test_sets_hold_what_stands_below_a_node(tokens: list[bytes]) -> None:
    trie = constrain.Vocabulary(tokens).trie
    count = len(trie.node)
    sets = subtree_bytes.describe_subtrees(
        trie.node, DEPTH_SHIFT, trie.depth, np.arange(count, dtype=np.int32), count, trie.token, trie.children
    ).reshape(-1, 4)
    path = bytearray()
    for p, node in enumerate(trie.node.tolist()):
        del path[node >> DEPTH_SHIFT :]
        path.append(node & 255)
        lead = bytes(path[-1:]) if path[-1] >= 0xC0 else b""
        expected = bits_of({lead + token[len(path) :] for token in tokens if token.startswith(bytes(path))})
        found = {bit for bit in range(128) if int(sets[p, bit >> 6]) >> (bit & 63) & 1}
        # Beside the mark for what is no text, other bits say nothing.
        assert found == expected or subtree_bytes.ILL_FORMED in found & expected
        below = range(p + 1, p + int(trie.size[p]))
        inside = [int(trie.token[q]) for q in below if trie.token[q] >= 0]
        begin = int(sets[p, 2]) & 0x7FFFFFFF
        assert trie.in_order[begin : begin + (int(sets[p, 2]) >> 32)].tolist() == inside
        assert int(sets[p, 3]) == int(np.bitwise_or.reduce(trie.children[p : p + int(trie.size[p])]))


def vocabulary() -> constrain.Vocabulary:
    """Every byte, some thousand short texts of :data:`PIECES`, some of them twice, and one without bytes."""
    rng = np.random.default_rng(11)
    # Most are text, so that there are large subtrees with nothing else.
    weights = np.array([8.0] * 5 + [1.0] * (len(CHARACTERS) - 5) + [0.05] * len(PARTS))
    tokens = [bytes([byte]) for byte in range(256)]
    for _ in range(6000):
        picked = rng.choice(len(PIECES), int(rng.integers(2, 8)), p=weights / weights.sum())
        tokens.append(b"".join(PIECES[i] for i in picked))
    # Below these letters nothing but one alphabet, and one whole character.
    tokens += [letter + b"".join([b"\xe6\xbc\xa2", b"q", b"\xf0\x9f\x98\x80"][i] for i in rng.integers(0, 3, 5))
               for letter in (b"q", b"w", b"\xe6\xbc\xa2") for _ in range(200)]  # fmt: skip
    return constrain.Vocabulary([*tokens, *tokens[300:400], b""])


VOCABULARY = vocabulary()


@pytest.fixture(scope="module")
def node_by_node() -> constrain.Vocabulary:
    """The vocabulary in which no subtree is known to be large, so that all are walked node by node."""
    same = vocabulary()
    assert np.count_nonzero(same.trie.node & LARGE) > 100
    same.trie.node &= ~np.int32(LARGE)
    return same


def ends(vocabulary: constrain.Vocabulary, node: int, accept: int) -> list[tuple[int, int]]:
    """The crossings that one stands for: at each node of a subtree that ends a character and has children."""
    trie = vocabulary.trie
    if node >= 0:
        return [(node, accept)]
    inner = range(~node, ~node + int(trie.size[~node]))
    return [(p, accept) for p in inner if trie.size[p] > 1 and not 0x80 <= trie.node[p + 1] & 255 < 0xC0]


def splits_of(grammar: constrain.Grammar, vocabulary: constrain.Vocabulary, text: bytes) -> tuple[bytes, list[Any]]:
    """The masks along a text, and the splits that were made for them: of lexer states and of closures."""
    compiled = constrain.CompiledGrammar(grammar.ir, vocabulary)
    matcher = constrain.Matcher(compiled)
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    masks = b""
    for place in range(len(text) + 1):
        matcher.fill_next_token_bitmask(mask)
        masks += mask.tobytes()
        if place < len(text) and not matcher.accept_bytes(text[place : place + 1]):
            break
    of = compiled._tables
    words = (vocabulary.size + 31) // 32
    splits = []
    for state, record in enumerate(of.get(schemas.LEXER_MASKS)):
        dense = int(record["dense"])
        if dense == NOT_SPLIT:
            continue
        pool, crossings = of.get(schemas.DENSE_MASKS), of.get(schemas.BOUNDARIES)
        if dense <= FIRST_SHARED:
            pool, dense = vocabulary._tables[schemas.SHARED_DENSE], (FIRST_SHARED - dense) * words
            if of.get(schemas.LEXER_MEMBERS)[of.get(schemas.LEXER_STATES)["offset"][state]] == CLOSURE:
                crossings = vocabulary._tables[schemas.SHARED_BOUNDARIES]
        first, count = record["tokens"], record["token_count"]
        tokens = of.get(schemas.TOKEN_LISTS)[first : first + count].tolist()
        bits = pool[dense : dense + words].tolist() if dense >= 0 else []
        first, count = record["boundaries"], record["boundary_count"]
        pairs = crossings.view(np.int32)[2 * first : 2 * (first + count)].reshape(-1, 2).tolist()
        splits.append(
            (state, bits, tokens, [pair for node, accept in pairs for pair in ends(vocabulary, node, accept)])
        )
    return masks, splits


SETS = ["[^x]", "[a-z]", "[a-zA-Z_ ]", ".", "[^é]", "[^\\ue000-\\uf8ff]", "[\\u0020-\\uffff]", '[^\\x00-\\x1f"\\\\]']
SETS += ["[ab ]", "[^\\U0001f600]", "[qw漢😀]", "(?:q|漢)", "(?:é|[a-z ])", "[^q]"]
repeated = st.tuples(st.sampled_from(SETS), st.sampled_from(["+", "*", "{1,500}", "{0,3}", "{2,}"])).map("".join)
patterns = st.lists(
    repeated | st.sampled_from(["a", "x", "é", " ", '"', "q?", "(?:7|a+)"]), min_size=1, max_size=4
).map("".join)


@given(patterns, st.booleans(), st.sampled_from(["", "a", "aa ", "é", "q漢", "x"]))
def test_splits_are_the_same_as_node_by_node(
    node_by_node: constrain.Vocabulary, pattern: str, alternate: bool, text: str
) -> None:
    grammar = constrain.Grammar.from_regex(f"(?:{pattern}|ab[^a]*)" if alternate else pattern)
    for vocabulary in (VOCABULARY, node_by_node):
        # A split that is imported from an earlier example has not been walked.
        vocabulary.shared.clear()
    assert splits_of(grammar, VOCABULARY, text.encode()) == splits_of(grammar, node_by_node, text.encode())
