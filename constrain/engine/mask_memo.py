"""Masks of a grammar's states: written from what is known, made where they are not, and shared with other grammars."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from constrain.engine.grammar_tables import MASK_SLOTS, GrammarTables
from constrain.engine.history import Place
from constrain.engine.masks import accelerators as fast
from constrain.engine.masks import state_masks as masks
from constrain.engine.storage.header import NEED_SLOT, NEW_MASK
from constrain.engine.storage.schemas import OPEN_NODES
from constrain.engine.storage.statuses import FAIL
from constrain.engine.traveller import place_behind
from constrain.engine.vocabulary.bitmasks import Bitmask, allow
from constrain.engine.vocabulary.trie import DEPTH_SHIFT
from constrain.kernels.jit import without_dispatch

# A call that every token takes.
write_mask_unchecked = without_dispatch(masks.write_mask)


def write_mask(compiled: GrammarTables, place: Place, out: Bitmask, index: int) -> None:
    """Write the mask of a place's state into row ``index`` of ``out``, computing it if it is not known.

    Nothing is checked here: ``out`` is a mask that kernels can write to, and ``index`` an int.  The caller holds
    the lock.
    """
    compiled.share_scratch()
    result = write_mask_unchecked(compiled.ctx, place._state, out, index)
    if result:
        finish_mask(compiled, result, place, out, index)


def finish_mask(compiled: GrammarTables, result: int, place: Place, out: Bitmask, index: int) -> None:
    """Do what is left to do when the kernel write_mask has not written all of a mask; it returned ``result``.

    The caller holds the lock.
    """
    if result < 0:
        slot = int(compiled.ctx[NEED_SLOT])
        if (
            result == FAIL
            and slot in MASK_SLOTS
            and compiled.mask_bytes + compiled._tables.array(slot).nbytes > compiled.mask_limit_bytes
        ):
            masks.forget_masks(compiled.ctx)
            compiled._allocate_masks()
        result = compiled.run_at(place, masks.write_mask, out, index)
    open_nodes = compiled._tables.get(OPEN_NODES).tolist() if result & 2 else []
    if result & 1:
        publish_new(compiled)
    if open_nodes:
        _add_open_tokens(compiled, place, open_nodes, out, index)


def publish_new(compiled: GrammarTables) -> None:
    """Share the lexer mask that kernels have noted as worth it, if there is one.  The caller holds the lock."""
    lexer_state = int(compiled.ctx[NEW_MASK])
    if lexer_state >= 0:
        fast.publish(compiled.vocabulary, compiled._run, lexer_state)
        compiled.ctx[NEW_MASK] = -1


def _add_open_tokens(compiled: GrammarTables, place: Place, nodes: list[int], out: Bitmask, index: int) -> None:
    """Add the tokens to a mask that depend on the text: those at or below some trie nodes."""
    trie, todo = compiled.vocabulary.trie, sorted(nodes)
    for node, ahead in places_at(compiled, place, todo):
        if ahead._state == 0:
            continue
        for token in trie.same_as(int(trie.token[node])):
            allow(out[index], token)
        if trie.size[node] > 1:
            compiled.run_at(ahead, masks.add_below, node, out, index)
            for further in compiled._tables.get(OPEN_NODES).tolist():
                heappush(todo, further)


def places_at(compiled: GrammarTables, place: Place, todo: list[int]) -> Iterator[tuple[int, Place]]:
    """The trie nodes of a heap, each with the place that it leads to.

    Further ones, below those that came, may be added meanwhile.
    """
    vocabulary, trie = compiled.vocabulary, compiled.vocabulary.trie
    last = -1
    # The nodes on the way to the present one, which come before it: where each one's subtree ends, how many bytes lead
    # to it, and the place behind them.  So no byte is read twice, however many nodes of a long run of blanks are open.
    way: list[tuple[int, int, Place]] = []
    while todo:
        node = heappop(todo)
        if node == last:
            # Two walks have come to it.
            continue
        last = node
        while way and way[-1][0] <= node:
            way.pop()
        done, before = way[-1][1:] if way else (0, place)
        place_of_leaf = node
        while trie.token[place_of_leaf] < 0:
            place_of_leaf += 1
        count = (int(trie.node[node]) >> DEPTH_SHIFT) + 1
        ahead = place_behind(compiled, before, vocabulary.tokens[int(trie.token[place_of_leaf])][done:count])
        way.append((node + int(trie.size[node]), count, ahead))
        yield node, ahead
