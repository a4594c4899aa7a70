"""What each table of a compiled grammar holds, field by field.

A table has a number, its *slot*, by which it is made larger and asked how much of it is in use (access.py), and a
*view*, through which kernels read and write it (records.py).  Both are declared together here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from constrain.engine.storage.header import HEADER
from constrain.engine.storage.records import view_at, view_of

NAMES: list[str] = []
"""What errors call each table."""

SPECS: list[tuple[Any, int, int]] = []
"""For each table: the type of its numbers, how many fit in at first, and for buckets the slot of the hash codes."""

NUMBERS_IN: list[int] = []
"""How many numbers an element of each table has: tables grow, and are asked what is in use, in numbers."""


def _table(
    name: str, capacity: int, element: Any, *, columns: int = 0, hashes: int = -1
) -> tuple[int, Callable[..., Any]]:
    """Declare a table: its slot and its view.

    Parameters
    ----------
    name : str
        What errors call it.
    capacity : int
        How many elements fit in at first.
    element : numpy dtype
        A number, or a record of numbers of one type.
    columns : int
        The numbers in an element, if it is an array of them.
    hashes : int
        For buckets: the slot of the hash codes of what they index.
    """
    dtype = np.dtype((element, (columns,))) if columns else np.dtype(element)
    base = dtype.base if dtype.names is None else dtype[dtype.names[-1]]
    slot = len(NAMES)
    NAMES.append(name)
    SPECS.append((base.type, capacity * dtype.itemsize // base.itemsize, hashes))
    NUMBERS_IN.append(dtype.itemsize // base.itemsize)
    return slot, view_of(name, slot, dtype, HEADER)


def _record(fields: str, number: Any = np.int32) -> np.dtype[Any]:
    """A record of numbers of one type with these names."""
    return np.dtype([(field, number) for field in fields.split()])


# ``kind`` is the low byte of ``flags``.
_EXPRESSION = np.dtype(
    {
        "names": ["kind", "flags", "first", "second", "third"],
        "formats": [np.uint8, *[np.int32] * 4],
        "offsets": [0, 0, 4, 8, 12],
        "itemsize": 16,
    }
)

# A way that a best-first search found (conditions/budget/best_first.py).
_WAY = _record("reached cost before step")

NEW_EXPRESSIONS = 2048
"""How many expressions fit into new tables."""
EXPRESSIONS, expressions = _table("expressions", NEW_EXPRESSIONS, _EXPRESSION)
EXPRESSION_PRINTS, expression_prints = _table("node fingerprints", 2048, np.int64, columns=2)
HASHED_WORDS, hashed_words = _table("words to hash", 64, np.int64)
FIRST_BYTES, first_bytes = _table("node first bytes", 2048, np.int64, columns=4)
LAST_BYTES, last_bytes = _table("node last bytes", 2048, np.int64, columns=4)
NECESSARY_BYTES, necessary_bytes = _table("node necessary bytes", 2048, np.int64, columns=4)
SHORTEST_LENGTHS, shortest_lengths = _table("node shortest lengths", 2048, np.int32)
END_LENGTHS, end_lengths = _table("node lengths to an end", 2048, np.int32)
LIVENESS, liveness = _table("node liveness", 2048, np.uint8)
EXPRESSION_HASHES, expression_hashes = _table("node hashes", 2048, np.int32)
EXPRESSION_BUCKETS, expression_buckets = _table("node buckets", 8192, np.int32, hashes=EXPRESSION_HASHES)
CHILDREN, children = _table("node children", 2048, np.int32)
LITERAL_BYTES, literal_bytes = _table("literal bytes", 4096, np.uint8)
BYTE_SETS, byte_sets = _table("byte sets", 128, np.int64, columns=4)
DERIVATIVE_KEYS, derivative_keys = _table("derivative keys", 8192, np.int64)
DERIVATIVE_VALUES, derivative_values = _table("derivative values", 8192, np.int32)
SUBSUMED, subsumed = _table("counted parts", 64, np.int64)
WORK_STACK, work_stack = _table("work stack", 1024, np.int32)
LIVENESS_STACK, liveness_stack = _table("liveness stack", 64, np.int32)
BYTE_CLASSES, byte_classes = _table("byte classes", 256, np.uint8)
CLASS_BYTES, class_bytes = _table("class representatives", 256, np.uint8)
CLASS_SIZES, class_sizes = _table("class sizes", 256, np.int32)
CLASS_GROUPS, class_groups = _table("byte groups of classes, as sets", 256, np.int64)

# Lexer states (automata/lexer_states.py).
LEXEMES, lexemes = _table("lexemes", 64, _record("expression is_nullable consumes"))
LEXER_STATES, lexer_states = _table("lexer states", 512, _record("offset count accept goes_on"))
LEXER_MEMBERS, lexer_members = _table("lexer state members", 8192, np.int32)
LEXER_STATE_HASHES, lexer_state_hashes = _table("lexer state hashes", 512, np.int32)
LEXER_STATE_BUCKETS, lexer_state_buckets = _table("lexer state buckets", 4096, np.int32, hashes=LEXER_STATE_HASHES)
AGREEMENTS, agreements = _table("lexer states compared", 0, np.int32, columns=2)
LEXER_TWINS, lexer_twins = _table("lexer state twins", 512, np.int32)
LEXER_FIRST_BYTES, lexer_first_bytes = _table("lexer state first bytes", 512, np.int64, columns=4)
LEXER_TRANSITIONS, lexer_transitions = _table("lexer transitions", 32768, np.int32)
ACCEPT_SETS, accept_sets = _table("accept sets", 128, _record("offset count"))
ACCEPT_MEMBERS, accept_members = _table("accept set members", 256, np.int32)
ACCEPT_SET_HASHES, accept_set_hashes = _table("accept set hashes", 128, np.int32)
ACCEPT_SET_BUCKETS, accept_set_buckets = _table("accept set buckets", 256, np.int32, hashes=ACCEPT_SET_HASHES)

# The grammar, flattened (automata/programs.py).
SYMBOLS, symbols = _table("symbols", 512, np.int32)
DOT_LEFT, dot_left = _table("left-hand sides", 512, np.int32)
NULLABLE_REST, nullable_rest = _table("nullable remainders", 512, np.uint8)
RULES, rules = _table("rules", 256, np.int32)
RULE_STARTS, rule_starts = _table("rule starts", 256, np.int32)
NULLABLE, nullable = _table("nullable nonterminals", 256, np.uint8)
IGNORED, ignored = _table("ignored lexemes", 4, np.int32)
BRANCHES, branches = _table("branches", 16, _record("first count left kind"))
BRANCH_DOTS, branch_dots = _table("rules of branches", 64, np.int32)

# Earley rows (parser/earley_sets.py).
CORES, cores = _table("cores", 256, _record("offset count initial scans scan_count groups group_count"))
CORE_DOTS, core_dots = _table("core dots", 1024, np.int32)
CORE_KINDS, core_kinds = _table("core kinds", 256, np.uint8)
CORE_HASHES, core_hashes = _table("core hashes", 256, np.int32)
CORE_BUCKETS, core_buckets = _table("core buckets", 512, np.int32, hashes=CORE_HASHES)
CORE_SCANS, core_scans = _table("core scans", 1024, _record("lexeme dot source"))
CORE_GROUPS, core_groups = _table("core groups", 512, _record("symbol waits count"))
CORE_WAITS, core_waits = _table("core waits", 512, _record("dot source"))
PREDICTED, predicted = _table("prediction marks", 256, np.int32)
EARLEY_SETS, earley_sets = _table("rows", 128, _record("core offset count accepts completions"))
EARLEY_ITEMS, earley_items = _table("row items", 512, _record("dot origin"))
EARLEY_SET_HASHES, earley_set_hashes = _table("row hashes", 128, np.int32)
EARLEY_SET_BUCKETS, earley_set_buckets = _table("row buckets", 256, np.int32, hashes=EARLEY_SET_HASHES)
ORIGIN_SETS_AT, origin_sets_at = _table("origin sets of rows", 128, np.int32)
ORIGIN_SETS, origin_sets = _table("origin sets", 0, np.int64)
COMPLETION_STAMPS, completion_stamps = _table("completion marks", 1024, np.int32)
COMPLETION_MEMO, completion_memo = _table("completion memo", 1024, np.int32)
COMPLETION_ITEMS, completion_items = _table("completion items", 1024, np.int32)
SCAN_KEYS, scan_keys = _table("scan keys", 1024, np.int64)
SCAN_VALUES, scan_values = _table("scan values", 1024, np.int32)
TOKEN_STEP_KEYS, token_step_keys = _table("leap keys", 512, np.int64)
TOKEN_STEP_VALUES, token_step_values = _table("leap values", 512, np.int32)
KERNEL_ITEMS, kernel_items = _table("kernel items", 1024, np.int64)
KERNEL_SLOTS, kernel_slots = _table("kernel item slots", 2048, np.int32)
KERNEL_PLACES, kernel_places = _table("kernel item places", 1024, np.int32)
NEW_SETS, new_sets = _table("origin sets of a new row", 0, np.int64)
NEW_WORDS, new_words = _table("words of the origin sets of a new row", 0, np.int64)
SET_OF_DOT, set_of_dot = _table("origin sets of a new row, by dot", 0, np.int32)
WORK_LIST, work_list = _table("completion work list", 256, np.int32)
UNMADE_BRANCHES, unmade_branches = _table("branches without rules", 64, np.int32)
OPEN_NODES, open_nodes = _table("trie nodes at open states", 64, np.int32)

# Recognizer states (parser/configurations.py).
STATES, states = _table("states", 512, _record("offset count accepts"))
CONFIGURATIONS, configurations = _table("threads", 1024, _record("earley_set lexer_state"))
STATE_HASHES, state_hashes = _table("state hashes", 512, np.int32)
STATE_BUCKETS, state_buckets = _table("state buckets", 4096, np.int32, hashes=STATE_HASHES)
TRANSITIONS, transitions = _table("state transitions", 32768, np.int32)
STATE_KEYS, state_keys = _table("states in keys and at their ends", 512, np.uint8)
STATE_WORK, state_work = _table("thread work list", 64, np.int64)

# Masks (masks/state_masks.py).
LEXER_MASKS, lexer_masks = _table("token splits", 512, _record("dense tokens token_count boundaries boundary_count"))
BOUNDARIES, boundaries = _table("crossings", 1024, _record("node accept"))
CLOSURE_BYTES, closure_bytes = _table("bytes looked for in closures", 64, np.int32)
CLOSURE_NODES, closure_nodes = _table("trie nodes with a byte in a closure", 4096, np.int32)
STATE_MASKS, state_masks = _table("state masks", 512, _record("dense tokens token_count inside inside_count"))
TOKEN_LISTS, token_lists = _table("token lists", 16384, np.int32)
DENSE_MASKS, dense_masks = _table("dense masks", 0, np.int32)
SCRATCH_MASK, scratch_mask = _table("scratch mask", 0, np.int32)
WALK_STACK, walk_stack = _table("walk stack", 0, np.int32)
WIDE_STACK, wide_stack = _table("walk stack of wide nodes", 0, np.int32)
TRIE_HEIGHT, trie_height = _table("height of trie nodes", 0, np.int32)
FOLLOWS, follows = _table("states after lexemes", 64, _record("key state groups", np.int64))
# The place that masks/boundary_walks.py is at: a configuration, the last of them; a boundary, and where those of the
# lexer mask stop; what the boundary stands for, and a trie node of that; and what begins behind its accept set: a
# state, its groups of bytes, and the kinds of its branches.
BOUNDARY_CURSOR, boundary_cursor = _table(
    "place among boundaries",
    1,
    _record("configuration last boundary stop top node accept after groups kinds", np.int64),
)
dense_words = view_at("dense masks", np.int32, HEADER)
FOUND_TOKENS, found_tokens = _table("tokens found by a walk", 0, np.int32)
SELF_LOOPS, self_loops = _table("bytes that lead back to a state", 5, np.int64)

# Shortest completions (conditions/budget); empty until a matcher asks for one.
# Of an expression: the cost of its cheapest string; of its cheapest string that is not empty, and the byte that begins
# it; the most that finishing costs after any beginning of a string; and a lower bound of the first.
EXPRESSION_COSTS, expression_costs = _table("expression costs", 0, _record("least least_on worst next_byte bound"))
BYTE_COSTS, byte_costs = _table("byte costs", 0, _record("cost rank token"))
# The preferred byte of each byte class.
CLASS_COSTS, class_costs = _table("preferred bytes of classes", 0, np.int32)
TOKEN_WEIGHTS, token_weights = _table("what tokens cost", 0, _record("heaviest has_all_bytes"))
BYTE_SUMS, byte_sums = _table("sums of literal costs", 0, np.int64)
REST_COSTS, rest_costs = _table("costs behind dots", 0, np.int32)
EARLEY_SET_COSTS, earley_set_costs = _table("row costs", 0, _record("least after"))
UP_COSTS, up_costs = _table("costs behind completions", 0, np.int32)
AFTER_COSTS, after_costs = _table("costs behind lexemes", 0, np.int32)
# Of a state: the least cost of finishing, and the byte that begins that; the most that finishing costs after any bytes
# that stay within the lexemes, or NEVER; how many tokens the completion takes, and the first of them.
STATE_COSTS, state_costs = _table("state costs", 0, _record("least byte worst tokens token"))
COST_RESULT, cost_result = _table("cost of a thread", 0, _record("least byte worst", np.int64))
COST_STACK, cost_stack = _table("cost stack", 0, np.int32)
SEARCH_HEAP, search_heap = _table("search heap", 0, np.int64)
SEARCH_PLACES, search_places = _table("search places", 0, np.int32)
SEARCH_WAYS, search_ways = _table("search records", 0, _WAY)
TOKEN_COSTS, token_costs = _table("tokens and their costs", 0, _record("token count"))
LEFT_OUT, left_out = _table("parts of the trie left out", 0, _record("begin end"))
# The walk of budget/masks.py: the budget, how many tokens are noted, what those that are left out need at most; after
# how many visits to give up, and how many there were; whether parts may be left out, and from which depth on a lexeme
# has ended; the part of the trie in which the text decides; and what finishing takes behind the last lexeme asked for.
COST_WALK, cost_walk = _table(
    "walk for costs",
    1,
    _record(
        "budget count needed patience visited may_skip ended open_node open_end earley_set lexeme behind", np.int64
    ),
)
PATH_HEAP, path_heap = _table("token search heap", 0, np.int64)
PATH_PLACES, path_places = _table("token search places", 0, np.int32)
PATH_WAYS, path_ways = _table("token search records", 0, _WAY)
PATH_SEARCH, path_search = _table("token search", 1, _record("way spent best best_way", np.int64))
heap_keys = view_at("search heaps", np.int64, HEADER)
way_places = view_at("search places", np.int32, HEADER)
ways = view_at("search records", _WAY, HEADER)

# The vocabulary (vocabulary/vocabulary.py); shared by every grammar.  Kernels only read it, except publish_split.
TRIE_NODES, trie_nodes = _table("trie bytes and depths", 0, np.int32)
SUBTREE_SIZES, subtree_sizes = _table("trie subtree sizes", 0, np.int32)
BYTE_GROUP, byte_group = _table("byte groups", 0, np.uint8)
CHILD_GROUPS, child_groups = _table("trie children", 0, np.int64)
NODE_TOKENS, node_tokens = _table("trie tokens", 0, np.int32)
SUBTREES, subtrees = _table("large subtrees of the trie", 0, np.int64, columns=4)
TOKENS_IN_ORDER, tokens_in_order = _table("tokens in the order of the trie", 0, np.int32)
NODES_BY_BYTE, nodes_by_byte = _table("trie nodes by byte", 0, np.int32)
BYTE_STARTS, byte_starts = _table("where the trie nodes of a byte begin", 0, np.int32)
TOKENS_BY_LENGTH, tokens_by_length = _table("tokens, longest first", 0, np.int32)
WIDE_NODES, wide_nodes = _table("wide and large trie nodes", 0, np.int32)
WIDE_MASKS, wide_masks = _table("children of wide nodes, as sets", 0, np.int64, columns=4)
WIDE_ENDS, wide_ends = _table("ends of wide nodes", 0, np.int32)
WIDE_FIRST, wide_first = _table("first children of wide nodes", 0, np.int32)
WIDE_CHILD, wide_child = _table("children of wide nodes", 0, np.int32)
TOKEN_STARTS, token_starts = _table("token offsets", 0, np.int64)
TOKEN_BYTES, token_bytes = _table("token bytes", 0, np.uint8)
SAME_BYTES, same_bytes = _table("tokens with the same bytes", 0, np.int32)
EMPTY_TOKENS, empty_tokens = _table("empty tokens", 0, np.int32)
EOS_TOKENS, eos_tokens = _table("end tokens", 0, np.int32)
SHARED_COUNTS, shared_counts = _table("shared split counts", 0, np.int64)
SHARED_PRINTS, shared_prints = _table("shared split fingerprints", 0, np.int64, columns=2)
SHARED_HINTS, shared_hints = _table("shared split hints", 0, np.int64)
SHARED_MASKS, shared_masks = _table("shared splits", 0, _record("boundaries boundary_count"))
SHARED_DENSE, shared_dense = _table("shared dense masks", 0, np.int32)
SHARED_BOUNDARIES, shared_boundaries = _table("shared crossings", 0, _record("node accept"))
SHARED_COUNTED, shared_counted = _table("places of counted closures", 0, np.int32)
SHARED_BY_REPETITIONS, shared_by_repetitions = _table("tokens by repetitions", 0, np.int32)
SHARED_MORE_THAN, shared_more_than = _table("how many tokens have more repetitions", 0, np.int32)

N_SLOTS = len(NAMES)
MAPS = {DERIVATIVE_KEYS: DERIVATIVE_VALUES, SCAN_KEYS: SCAN_VALUES, TOKEN_STEP_KEYS: TOKEN_STEP_VALUES}
# Tables that fill up together.
SIBLINGS = {
    slot: group
    for group in (
        (SYMBOLS, DOT_LEFT, NULLABLE_REST, BRANCH_DOTS),
        (
            EXPRESSIONS,
            EXPRESSION_PRINTS,
            FIRST_BYTES,
            LAST_BYTES,
            NECESSARY_BYTES,
            SHORTEST_LENGTHS,
            END_LENGTHS,
            LIVENESS,
            EXPRESSION_HASHES,
            EXPRESSION_BUCKETS,
            CHILDREN,
        ),
        (
            LEXER_STATES,
            LEXER_MEMBERS,
            LEXER_STATE_HASHES,
            LEXER_STATE_BUCKETS,
            LEXER_TWINS,
            LEXER_FIRST_BYTES,
            LEXER_TRANSITIONS,
            LEXER_MASKS,
        ),
        (CORES, CORE_KINDS, CORE_DOTS, CORE_HASHES, CORE_BUCKETS, CORE_SCANS, CORE_GROUPS, CORE_WAITS),
        (
            EARLEY_SETS,
            EARLEY_ITEMS,
            EARLEY_SET_HASHES,
            EARLEY_SET_BUCKETS,
            ORIGIN_SETS_AT,
            COMPLETION_STAMPS,
            COMPLETION_MEMO,
            COMPLETION_ITEMS,
        ),
        (STATES, CONFIGURATIONS, STATE_HASHES, STATE_BUCKETS, TRANSITIONS, STATE_KEYS, STATE_MASKS),
    )
    for slot in group
}
MAP_VALUES = {values: keys for keys, values in MAPS.items()}

BY_ROW_OR_STATE = (
    *(
        EARLEY_SETS,
        EARLEY_ITEMS,
        EARLEY_SET_HASHES,
        EARLEY_SET_BUCKETS,
        ORIGIN_SETS_AT,
        ORIGIN_SETS,
        COMPLETION_STAMPS,
        COMPLETION_MEMO,
        COMPLETION_ITEMS,
    ),
    *(SCAN_KEYS, SCAN_VALUES),
    *(
        STATES,
        CONFIGURATIONS,
        STATE_HASHES,
        STATE_BUCKETS,
        TRANSITIONS,
        STATE_KEYS,
        STATE_MASKS,
        TOKEN_STEP_KEYS,
        TOKEN_STEP_VALUES,
    ),
    *(EARLEY_SET_COSTS, UP_COSTS, AFTER_COSTS, STATE_COSTS),
)
"""Tables numbered by row or state, or that hold such numbers between kernel calls: what compaction.py has to change."""
CONTEXT_SIZE = HEADER + 3 * N_SLOTS
