"""Calls of kernels through pointers in the header.

Imports show the other calls.  These are shown by one list, ``LINKS``: for each pointer the kernel behind it, what it
takes and what it gives.  A kernel takes its place with :func:`far_entry`, which refuses any other.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from constrain.engine.storage.access import i64, u8
from constrain.engine.storage.header import CTX, FIRST_LINK, HEADER
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.schemas import TOKEN_BYTES, TOKEN_STARTS
from constrain.engine.storage.statuses import NOT_MINE
from constrain.kernels.jit import address_of, call_by_address
from constrain.kernels.language import int64, intrinsic, types, uint8

Int64Array = np.ndarray[Any, np.dtype[np.int64]]

_intrinsic: Any = intrinsic  # called with fewer arguments than it is defined with


class Link(NamedTuple):
    """A kernel that others call through a pointer in the header, of signature int64(CTX, int64, int64)."""

    providers: tuple[str, ...]
    """The kernels that may stand here, as paths below ``constrain.engine``."""
    takes: str
    gives: str
    """What the two arguments are, and the result.  A result may also be a status (statuses.py)."""


LINKS: list[Link] = []


def _link(providers: str, takes: str, gives: str) -> int:
    LINKS.append(Link(tuple(providers.split()), takes, gives))
    return len(LINKS) - 1


def _accelerator(provider: str, takes: str, gives: str) -> int:
    return _link(f"{provider} storage.links.not_mine", takes, f"{gives}, or NOT_MINE")


# Calls within a folder, and of a lower one.  They keep kernels small: see far_call.
F_DERIVATIVE = _link("automata.derivatives.derivative", "expression, byte", "expression")
F_QUOTATION_DERIVATIVE = _link("automata.quotations.quotation_derivative", "expression, byte", "expression")
F_SET_OPERATION = _link(
    "automata.set_operations.make_set_operation", "kind, place on WORK_STACK from which on the parts are", "expression"
)
F_LIVE = _link("automata.liveness.search_live", "expression", "whether it has a string")
F_LEXER_STEP = _link("automata.lexer_states.lexer_step", "lexer state, byte class", "lexer state")
F_LEXER_STATE = _link(
    "automata.lexer_states.intern_lexer_state", "place of the staged members, how many", "lexer state"
)
F_CORE = _link("parser.cores.make_core", "place of the staged dots, how many", "core")
F_EARLEY_SET = _link("parser.earley_sets.make_set", "how many KERNEL_ITEMS, whether it accepts", "Earley set")
F_SCAN = _link("parser.scan.scan", "place of the pairs in STATE_WORK, how many", "Earley set")
F_STEP = _link("parser.configurations.step", "state, byte class", "state, with OPEN added if it is an open one")
F_LEXER_MASK = _link("masks.accelerators.lexer_mask", "lexer state", "0")
F_ACCEPT_SET = _link("automata.lexer_states.intern_accept_set", "place of the staged lexemes, how many", "accept set")
F_MASK = _link("masks.state_masks.compute_mask", "state", "0")
F_REPETITION = _link(
    "masks.fast.leading_repetitions._loop_of", "lexer state", "(star << 32 | most repetitions), or -1 if it has none"
)
F_FIND_CLOSURE = _link("masks.fast.closures._closure_of", "expression of a star", "lexer state of its closure")
F_FILL = _link("masks.fast.excluded_texts._fill_transitions", "lexer state", "lexer state of any key, or 0")
F_ENDS = _link("masks.fast.inside_closures._ends_inside", "lexer state, closure", "0")
F_DESCRIBE = _link("automata.summaries.describe", "expression", "0")
F_SUBSUME = _link("automata.set_operations.subsume", "place of the parts on WORK_STACK, how many", "how many are left")
F_FORBID = _link("masks.fast.excluded_texts._forbid", "lexer state, closure", "0, or 1 if it takes too long")
F_NODE_COST = _link("conditions.budget.expression_costs.expression_cost", "expression", "0")
F_STATE_COST = _link("conditions.budget.costs.state_cost", "state", "0")
F_TOKENS = _link("conditions.budget.completions.tokens_to_finish", "state", "tokens of its completion, or NEVER")
F_READ_ALONG = _link(
    "conditions.unique_keys.reading.read_along", "not as others: see read_along", "what a companion makes of a token"
)
F_INSIDE = _link("masks.boundaries._next_inside", "trie node on top, trie node", "trie node, or -1")
F_RELAX = _link(
    "masks.fast.relaxations._relaxed", "expression, (bytes << 8 | depth << 1 | behind a line end)", "its relaxation"
)
F_BORDER = _link("masks.fast.relative_masks.border_tokens", "lexer state, closure", "tokens found")
F_LIST = _link("masks.state_masks._list_tokens", "first configuration, (how many << 1 | listed only)", "0")
F_STATE_OF_SET = _link("parser.configurations.state_of_set", "Earley set, lexer state", "state")
F_HASH = _link("automata.fingerprints._hash_form", "how many HASHED_WORDS", "0")
F_PRINT = _link("automata.fingerprints._print_expression", "expression", "0")
# For grammars that are read as Lark's LALR parser reads them.
F_SETTLE = _link("automata.longest_match.settle", "place of the staged members, how many", "how many are left")
F_LEXER_LIVES = _link("automata.longest_match.search_end", "lexer state", "whether a lexeme can end")
F_GUARDED = _link("automata.longest_match.guarded", "initial lexer state, accept set", "lexer state")
F_SHIFT = _link("parser.lr_stacks.shift", "Earley set, accept set", "Earley set")
F_CONTEXT_STATE = _link("parser.lr_stacks.context_state", "place of the staged dots, how many", "lexer state")
# What walk_tokens calls at each trie node that leads to a state.
F_COST_NODE = _link(
    "conditions.budget.masks._visit", "trie node, state, with OPEN added if it is an open one", "nodes to go on"
)
F_REACHED_NODE = _link("conditions.budget.reached_states._visit", "trie node, state", "nodes to go on")
F_PATH_NODE = _link(
    "conditions.budget.search._visit", "trie node, state, with OPEN added if it is an open one", "nodes to go on"
)

# Accelerators (masks/accelerators.py).  First those that give a whole lexer mask, in the order in which they are asked.
_FAST = "masks.fast"
F_SHARED_MASK = _accelerator(f"{_FAST}.shared_masks.import_mask", "lexer state", "0 or more")
F_RELATIVE = _accelerator(f"{_FAST}.relative_masks.relative_mask", "lexer state", "0 or more")
F_STAR_CLOSURE = _accelerator(f"{_FAST}.star_closures.closure_mask", "lexer state", "0 or more")
F_NEIGHBOUR = _accelerator(f"{_FAST}.neighbours.neighbour_mask", "lexer state", "0 or more")
F_BOUNDED = _accelerator(f"{_FAST}.relative_masks.bounded_mask", "lexer state", "0 or more")
F_ALONG_WORDS = _accelerator(
    f"{_FAST}.relative_masks.mask_along_words", "lexer state, (closure << 32 | base)", "0 or more"
)
F_BESIDE = _accelerator(f"{_FAST}.relative_masks.mask_beside", "lexer state, base", "0 or more")
F_OFFER = _accelerator(
    f"{_FAST}.shared_masks.offer", "lexer state, 1 if it replaces what was noted before", "0 or more"
)
F_SELF_LOOP = _accelerator(
    f"{_FAST}.self_loops._take_subtree", "(lexer state << 32 | large subtree), tokens found", "tokens found"
)
F_MASK_BY_CORE = _accelerator(f"{_FAST}.core_masks.mask_by_core", "state, 0 or what walks for it cost", "0")
FIRST_MASK_LINK, END_MASK_LINKS = F_SHARED_MASK, F_NEIGHBOUR + 1
FIRST_ACCELERATOR, END_ACCELERATORS = F_SHARED_MASK, F_MASK_BY_CORE + 1

addresses: Int64Array = np.zeros(HEADER - FIRST_LINK, np.int64)


def far_entry(index: int, kernel: Any) -> None:
    """Make ``kernel``, of signature int64(CTX, int64, int64), callable as ``far_call(ctx, index, ...)``.

    Raises
    ------
    ValueError
        If ``LINKS`` declares another kernel there.
    """
    function = getattr(kernel, "py_func", kernel)
    name = f"{function.__module__}.{function.__qualname__}".removeprefix("constrain.engine.")
    if name not in LINKS[index].providers:
        raise ValueError(f"{name} stands in for {' or '.join(LINKS[index].providers)}; links.py does not say so")
    call_by_address(kernel)
    addresses[index] = address_of(kernel)


@njit_inner(int64(CTX, int64, int64))
def not_mine(_ctx, _a, _b):
    """What stands in for an accelerator that is switched off, or that nothing has loaded."""
    return int64(NOT_MINE)


for _index in range(FIRST_ACCELERATOR, END_ACCELERATORS):
    far_entry(_index, not_mine)


def addresses_without(links: Sequence[int]) -> Int64Array:
    """The addresses of all kernels (int64[n]), with :func:`not_mine` in place of some accelerators' links."""
    if not links:
        return addresses
    result: Int64Array = addresses.copy()
    result[list(links)] = address_of(not_mine)
    return result


def _caller_of(*kinds: Any) -> Any:
    """A function of an address and a tuple of arguments of these types: it calls a kernel that returns an int64."""

    @_intrinsic
    def call(_typing: Any, address: Any, args: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            convention = context.call_conv
            pointer = builder.inttoptr(values[0], convention.get_function_type(types.int64, kinds).as_pointer())
            arguments = [builder.extract_value(values[1], i) for i in range(len(kinds))]
            _status, result = convention.call_function(builder, pointer, types.int64, kinds, arguments)
            return result

        return types.int64(types.int64, args), codegen

    return call


_call_address = _caller_of(CTX, int64, int64)

_call_reader = _caller_of(CTX, types.Array(uint8, 1, "C", readonly=True), CTX, int64, int64)


@njit_inner(int64(CTX, int64, int64, int64))
def far_call(ctx, index, a, b):
    """Call the kernel registered under ``index``.

    An ordinary call makes numba link the callee, and all that it calls, into the caller and
    optimise it again; with calls ten deep that is most of the compile time.  These calls happen
    where something is computed for the first time, so an indirect jump costs nothing that matters.
    """
    return _call_address(ctx[FIRST_LINK + index], (ctx, a, b))


@njit_inner(int64(CTX, int64, CTX, int64, int64))
def read_along(ctx, address, memory, token, marks):
    """Let the kernel at an address, that of a companion (parser/companions.py), read a token of the vocabulary."""
    return _call_reader(address, (memory, u8(ctx, TOKEN_BYTES), i64(ctx, TOKEN_STARTS), token, marks))
