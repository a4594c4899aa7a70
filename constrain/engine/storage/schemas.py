"""What each table of a compiled grammar holds, field by field.

Places and sizes count elements: numbers, sets of 256 bits, or records with the named fields.  A field that is called as
a thing is the number of that thing; ``offset`` and ``count`` are a part of the table that the line names.  *Scratch* is
of no meaning between two calls of kernels.

A table has a number, its *slot*, by which it is made larger and asked how much of it is in use (access.py), and a
*view*, through which kernels read and write it (records.py).  Both are declared together here.

Files that need many of them import this one as ``t``, for tables: ``t.STATES`` is a slot, ``t.states(ctx)`` its view.
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
"""For each table: the type of its numbers, the elements that fit in at first, and for buckets the slot of the codes."""

ELEMENTS: list[np.dtype[Any]] = []
"""For each table: what an element of it is.  All sizes and places count elements."""

NUMBERS_IN: list[int] = []
"""How many numbers an element of each table has."""


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
    SPECS.append((base.type, capacity, hashes))
    ELEMENTS.append(dtype)
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

# A way that a best-first search found (storage/best_first.py).
_WAY = _record("reached cost before step")

NEW_EXPRESSIONS = 2048
"""How many expressions fit into new tables."""
EXPRESSIONS, expressions = _table("expressions", NEW_EXPRESSIONS, _EXPRESSION)
"""By expression.  ``kind`` is the low byte of ``flags``; it decides what the others are (automata/expressions.py)."""
EXPRESSION_PRINTS, expression_prints = _table("expression fingerprints", 2048, np.int64, columns=2)
"""By expression: its fingerprint, 128 bits; zeros until it is asked for."""
HASHED_WORDS, hashed_words = _table("words to hash", 64, np.int64)
"""Scratch: the words of which a fingerprint is made; then the two that it is."""
FIRST_BYTES, first_bytes = _table("first bytes of expressions", 2048, np.int32)
"""By expression: the bytes that its strings may begin with, a set in SUMMARY_SETS; possibly more than do."""
LAST_BYTES, last_bytes = _table("last bytes of expressions", 2048, np.int32)
"""The same for the bytes that they may end with."""
NECESSARY_BYTES, necessary_bytes = _table("necessary bytes of expressions", 2048, np.int32)
"""By expression: bytes that each of its strings has, a set in SUMMARY_SETS; possibly fewer than there are."""
SUMMARY_SETS, summary_sets = _table("sets of bytes of expressions", 1024, np.int64, columns=4)
"""By number: a set of bytes, 256 bits; each once, since few are different."""
SUMMARY_SET_HASHES, summary_set_hashes = _table("hash codes of sets of bytes", 1024, np.int32)
SUMMARY_SET_BUCKETS, summary_set_buckets = _table("buckets of sets of bytes", 2048, np.int32, hashes=SUMMARY_SET_HASHES)
SHORTEST_LENGTHS, shortest_lengths = _table("shortest lengths of expressions", 2048, np.int32)
"""By expression, in bytes: no string of it is shorter."""
END_LENGTHS, end_lengths = _table("lengths to an end of expressions", 2048, np.int32)
"""By expression, in bytes: so many complete any beginning of a string of it; LONG if unknown."""
LIVENESS, liveness = _table("liveness of expressions", 2048, np.uint8)
"""By expression: UNKNOWN, ALIVE or DEAD (automata/expressions.py)."""
LIFE_LENGTHS, life_lengths = _table("lengths of found strings", 2048, np.int32)
"""By expression: of one that was searched for and is ALIVE, how many bytes the string that was found has, or LONG."""
EXPRESSION_HASHES, expression_hashes = _table("hash codes of expressions", 2048, np.int32)
"""By expression: the hash code that it is interned by.  All tables of codes and buckets are alike (hashing.py)."""
EXPRESSION_BUCKETS, expression_buckets = _table("expression buckets", 4096, np.int32, hashes=EXPRESSION_HASHES)
CHILDREN, children = _table("parts of expressions", 2048, np.int32)
"""The parts of unions and intersections: expressions."""
LITERAL_BYTES, literal_bytes = _table("literal bytes", 4096, np.uint8)
"""The bytes of literals."""
BYTE_SETS, byte_sets = _table("byte sets", 128, np.int64, columns=4)
"""By number: a set of bytes, 256 bits."""
QUOTED_BYTES, quoted_bytes = _table("bytes to be quoted", 0, np.uint8)
"""The texts that are quoted from (automata/quotations.py), each with a place more for its end."""
QUOTED_CUTS, quoted_cuts = _table("cuts of texts to be quoted", 0, np.uint8)
"""By place in QUOTED_BYTES: whether a piece begins there, or the text ends."""
QUOTED_ORDER, quoted_order = _table("order of texts to be quoted", 0, np.int32)
"""The places where pieces begin, text by text, in the order of what the text is from there on."""
DERIVATIVE_KEYS, derivative_keys = _table("derivative keys", 2048, np.int64)
"""Map: ``(expression << 8 | byte) + 1``"""
DERIVATIVE_VALUES, derivative_values = _table("derivative values", 2048, np.int32)
"""... to the derivative, an expression."""
DEAD_LENGTH_KEYS, dead_length_keys = _table("dead length keys", 64, np.int64)
"""Map: ``(a pattern << 31 | what a counter beside it counts) + 1``, both expressions"""
DEAD_LENGTHS, dead_lengths = _table("dead lengths", 64, np.int32)
"""... to the greatest bound of that counter with which there is no string, as far as known (automata/liveness.py)."""
LIFE_HEAP, life_heap = _table("liveness search heap", 128, np.int64)
"""Scratch: the heap, the places and the ways of a search for a string of an expression."""
LIFE_PLACES, life_places = _table("liveness search places", 2048, np.int32)
LIFE_WAYS, life_ways = _table("liveness search records", 64, _WAY)
SUBSUMED, subsumed = _table("counted parts", 64, np.int64)
"""Scratch: the counted parts of a union, ``what follows << 32 | place``."""
WORK_STACK, work_stack = _table("work stack", 4096, np.int32)
"""Scratch: expressions under way; and *staged* contents, which are about to be interned."""
LIVENESS_STACK, liveness_stack = _table("liveness stack", 64, np.int32)
"""Scratch: the path of a search for the end of a lexeme, pairs (lexer state, next byte class)."""
BYTE_CLASSES, byte_classes = _table("byte classes", 256, np.uint8)
"""By byte: its class."""
CLASS_BYTES, class_bytes = _table("class representatives", 256, np.uint8)
"""By byte class: one of its bytes."""
CLASS_SIZES, class_sizes = _table("class sizes", 256, np.int32)
"""By byte class: how many bytes it has."""
CLASS_GROUPS, class_groups = _table("byte groups of classes, as sets", 256, np.int64)
"""By byte class: the groups of its bytes (vocabulary/trie.py), a bit for each."""

# Lexer states (automata/lexer_states.py).
LEXEMES, lexemes = _table("lexemes", 64, _record("expression is_nullable consumes"))
"""By lexeme: its expression; 1 if that matches the empty string; 1 if it matches more, and with that its marks
(automata/lexemes.py).
"""
LEXER_STATES, lexer_states = _table("lexer states", 512, _record("offset count accept goes_on"))
"""By lexer state: its members, ``LEXER_MEMBERS[offset:][:2 * count]``; the accept set of the lexemes that can end
here; 1 if one can go on.
"""
LEXER_MEMBERS, lexer_members = _table("lexer state members", 8192, np.int32)
"""The members of lexer states, sorted: a lexeme and, behind it, what is left of it, an expression."""
LEXER_STATE_HASHES, lexer_state_hashes = _table("lexer state hashes", 512, np.int32)
LEXER_STATE_BUCKETS, lexer_state_buckets = _table("lexer state buckets", 1024, np.int32, hashes=LEXER_STATE_HASHES)
LEXER_FIRST_BYTES, lexer_first_bytes = _table("lexer state first bytes", 512, np.int64, columns=4)
"""By lexer state: the bytes with which a member may go on, a set of 256 bits."""
LEXER_TRANSITIONS, lexer_transitions = _table("lexer transitions", 32768, np.int32)
"""By lexer state and byte class, ``state * classes + class``: the next lexer state (0: dead); -1: unknown; LEADS_ON."""
ACCEPT_SETS, accept_sets = _table("accept sets", 128, _record("offset count"))
"""By accept set: its lexemes, ``ACCEPT_MEMBERS[offset:][:count]``."""
ACCEPT_MEMBERS, accept_members = _table("accept set members", 256, np.int32)
"""The lexemes of accept sets, sorted.  Behind them, with GUARD_BIT, what may not follow (automata/longest_match.py)."""
ACCEPT_SET_HASHES, accept_set_hashes = _table("accept set hashes", 128, np.int32)
ACCEPT_SET_BUCKETS, accept_set_buckets = _table("accept set buckets", 256, np.int32, hashes=ACCEPT_SET_HASHES)

# Of a grammar that is read as Lark's LALR parser reads it (parser/lr_stacks.py, automata/longest_match.py); else empty.
LEXEME_ROLES, lexeme_roles = _table("lexeme roles", 0, _record("rank column line"))
"""By lexeme: its place in the lexer's order; the column of its terminal in PARSE_ACTIONS, -1 if it is ignored; what it
is to the indenter (parser/indentations.py)."""
LEXER_LIVES, lexer_lives = _table("liveness of lexer states", 0, np.uint8)
"""By lexer state: UNKNOWN, ALIVE, DEAD or VISITED: whether a lexeme can still end (automata/longest_match.py)."""
PARSE_CONTEXTS, parse_contexts = _table("lexemes of parser states", 0, _record("first count"))
"""By state of the LALR parser: what its lexer looks for, ``CONTEXT_LEXEMES[first:][:count]``."""
CONTEXT_LEXEMES, context_lexemes = _table("lexemes that lexers look for", 0, np.int32)
"""The lexemes that a lexer looks for, sorted."""
PARSE_ACTIONS, parse_actions = _table("parser actions", 0, np.int32)
"""By parser state and terminal (the end of the text is last): ``state + 1`` to shift; ``-1 - rule``; 0: an error."""
PARSE_GOTOS, parse_gotos = _table("parser gotos", 0, np.int32)
"""By parser state and nonterminal: the state behind it."""
PARSE_RULES, parse_rules = _table("parser rules", 0, _record("left length"))
"""By rule of the parser: its nonterminal, and how many symbols it has."""
PARSE_ENDS, parse_ends = _table("first and last parser state", 0, np.int32)
"""The parser state in which a text begins, and that in which it has ended; the columns of what the indenter makes of a
line that is deeper, and of each level that is closed."""

# The grammar, flattened (parser/rules.py).
SYMBOLS, symbols = _table("symbols", 512, np.int32)
"""By dot: the symbol behind it: a nonterminal (>= 0), ``~lexeme`` (< 0), BRANCH + a branch, or END."""
DOT_LEFT, dot_left = _table("left-hand sides", 512, np.int32)
"""By dot: the nonterminal whose production it is in."""
NULLABLE_REST, nullable_rest = _table("nullable remainders", 512, np.uint8)
"""By dot: 1 if what is behind it derives the empty string."""
RULES, rules = _table("rules", 256, np.int32)
"""By nonterminal: where its productions begin in RULE_STARTS; one more for the end of the last."""
RULE_STARTS, rule_starts = _table("rule starts", 256, np.int32)
"""By production: its first dot."""
NULLABLE, nullable = _table("nullable nonterminals", 256, np.uint8)
"""By nonterminal: 1 if it derives the empty string."""
FOLLOWED, followed = _table("symbols that anything follows", 0, np.uint8)
"""By lexeme, and then by nonterminal: whether anything may follow it; empty as long as nobody has asked."""
IGNORED, ignored = _table("ignored lexemes", 4, np.int32)
"""The lexemes that may stand anywhere, sorted."""
BRANCHES, branches = _table("branches", 16, _record("first count left kind"))
"""By branch: its productions, ``BRANCH_DOTS[first:][:count]`` (count -1: not made yet); the nonterminal that it is
part of; the bits of its kind (parser/configurations.py).
"""
BRANCH_DOTS, branch_dots = _table("rules of branches", 64, np.int32)
"""The first dots of the productions of branches."""

# Earley sets (parser/earley_sets.py).
CORES, cores = _table("cores", 64, _record("offset count initial scans scan_count groups group_count"))
"""By core: its dots, ``CORE_DOTS[offset:][:count]``; the lexer state of the lexemes that may begin; its places in
CORE_SCANS and CORE_GROUPS, and how many there are.
"""
CORE_DOTS, core_dots = _table("core dots", 256, np.int32)
"""The dots of cores, sorted."""
CORE_KINDS, core_kinds = _table("core kinds", 64, np.uint8)
"""By core: the kinds of the branches in it, and the marks of lexemes that end where it begins (parser/cores.py)."""
CORE_HASHES, core_hashes = _table("core hashes", 64, np.int32)
CORE_BUCKETS, core_buckets = _table("core buckets", 256, np.int32, hashes=CORE_HASHES)
CORE_SCANS, core_scans = _table("core scans", 256, _record("lexeme dot source"))
"""An item that waits for a lexeme: the dot behind the lexeme, and where the item comes from: the position of its dot
in the core, or SELF.  In each core sorted downwards by lexeme.
"""
CORE_GROUPS, core_groups = _table("core groups", 256, _record("symbol waits count"))
"""The items of a core that wait for a nonterminal (``symbol``): ``CORE_WAITS[waits:][:count]``.  Sorted by symbol."""
CORE_WAITS, core_waits = _table("core waits", 256, _record("dot source"))
"""An item that waits: the dot behind the nonterminal, and its source as in CORE_SCANS."""
PREDICTED, predicted = _table("prediction marks", 256, np.int32)
"""By nonterminal: the epoch in which it was last predicted."""
EARLEY_SETS, earley_sets = _table("Earley sets", 128, _record("core offset count accepts completions"))
"""By Earley set: its core; its items, ``EARLEY_ITEMS[offset:][:count]``; 1 if the text may end; its places in the
tables of completions, one for each group of the core, or -1.
"""
EARLEY_ITEMS, earley_items = _table("Earley set items", 256, _record("dot origin"))
"""The kernel items of Earley sets, sorted: a dot, and the Earley set in which its production began."""
EARLEY_SET_HASHES, earley_set_hashes = _table("hash codes of Earley sets", 128, np.int32)
EARLEY_SET_BUCKETS, earley_set_buckets = _table("Earley set buckets", 256, np.int32, hashes=EARLEY_SET_HASHES)
ORIGIN_SETS_AT, origin_sets_at = _table("places of origin sets", 128, np.int32)
"""By Earley set: its first record in ORIGIN_SETS, -1 if it has none."""
ORIGIN_SETS, origin_sets = _table(
    "origin sets", 0, _record("begin words first least greatest is_full items count", np.int64)
)
"""By dot of a core, a cache line each: the set of its origins, ``ORIGIN_WORDS[begin:][:words]`` (no words: not kept);
the word of the 64 lowest ones; the least and the greatest origin; whether all between are in it; and the items with
this dot, ``EARLEY_ITEMS[items:][:count]``.
"""
ORIGIN_WORDS, origin_words = _table("words of origin sets", 0, np.int64)
COMPLETION_STAMPS, completion_stamps = _table("completion marks", 256, np.int32)
"""By completion of an Earley set: the epoch in which it was last asked for."""
COMPLETION_MEMO, completion_memo = _table("completion memo", 256, np.int32)
"""By completion of an Earley set: its place in COMPLETION_ITEMS, -1 if unknown, -2 if it is too large."""
COMPLETION_ITEMS, completion_items = _table("completion items", 256, np.int32)
"""What completions come to: how many items; whether the text may end; then the dot and the origin of each."""
SCAN_KEYS, scan_keys = _table("scan keys", 512, np.int64)
"""Map: ``Earley set << 32 | accept set``"""
SCAN_VALUES, scan_values = _table("scan values", 512, np.int32)
"""... to the Earley set behind the lexeme."""
KERNEL_ITEMS, kernel_items = _table("kernel items", 256, np.int64)
"""Scratch: the items of an Earley set under way, ``dot << 32 | origin``; of a core, ``symbol + END << 32 | place``."""
KERNEL_SLOTS, kernel_slots = _table("kernel item slots", 512, np.int32)
"""Scratch of drop_repeated: by hash code, the item there."""
KERNEL_PLACES, kernel_places = _table("kernel item places", 256, np.int32)
"""Scratch of drop_repeated: by item, its place in KERNEL_SLOTS."""
NEW_SETS, new_sets = _table("origin sets under way", 0, _record("dot begin low high full_from full_to", np.int64))
"""Scratch: origin sets of the Earley set under way: the dot, or behind all dots the rule that ended with these origins;
where the words begin in NEW_WORDS, the first of which is that of Earley set 0; the first of them that is used, and
behind the last; origins between which all are in it.
"""
NEW_WORDS, new_words = _table("words of origin sets under way", 0, np.int64)
SET_OF_DOT, set_of_dot = _table("origin sets under way, by dot", 0, np.int32)
"""Scratch: by dot, and behind the dots by rule, its place in NEW_SETS."""
WORK_LIST, work_list = _table("completion work list", 128, np.int64)
"""Scratch: completions that are asked for, (origin, group, completion); in a core, nonterminals to be predicted."""
UNMADE_BRANCHES, unmade_branches = _table("branches without rules", 64, np.int32)
"""The branches without rules that a kernel came upon."""
OPEN_NODES, open_nodes = _table("trie nodes at open states", 64, np.int32)
"""The trie nodes at which a mask depends on the text."""

# Recognizer states (parser/configurations.py).
STATES, states = _table("states", 512, _record("offset count accepts"))
"""By state: its configurations, ``CONFIGURATIONS[offset:][:count]``; 1 if the text may end."""
CONFIGURATIONS, configurations = _table("configurations", 512, _record("earley_set lexer_state"))
"""The configurations of states, sorted."""
STATE_HASHES, state_hashes = _table("state hashes", 512, np.int32)
STATE_BUCKETS, state_buckets = _table("state buckets", 1024, np.int32, hashes=STATE_HASHES)
TRANSITIONS, transitions = _table("state transitions", 32768, np.int32)
"""By state and byte class, ``state * classes + class``: the next state (0: dead); -1: unknown; ``-2 - state``: open."""
STATE_MARKS, state_marks = _table("marks of lexemes that end", 512, np.uint8)
"""By state: the marks of lexemes that end there."""
STATE_WORK, state_work = _table("configurations under way", 64, np.int64)
"""Scratch: configurations under way, ``Earley set << 32 | lexer state``; ends of lexemes with an accept set instead."""

# Masks (masks/state_masks.py).
LEXER_MASKS, lexer_masks = _table("lexer masks", 512, _record("dense tokens token_count boundaries boundary_count"))
BOUNDARIES, boundaries = _table("boundaries", 1024, _record("node accept"))
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

# Masks by core (parser/stand_ins.py, masks/fast/core_masks.py).
UNKNOWN_SETS, unknown_sets = _table("unknown sets", 0, np.int32)
"""The Earley sets that stand for what the items of a core began in, by the place of the dot."""
SOURCES, sources = _table("sources", 64, _record("nodes entries count depth"))
"""By source, the children of trie nodes at which lexemes end: ``SOURCE_NODES[3 * nodes:][:3 * entries]``; how many
nodes; and the least depth of their parents.
"""
SOURCE_NODES, source_nodes = _table("trie nodes of sources", 256, np.int32)
"""Three numbers an entry, in the order of the trie: ``i``; and which of the 64 nodes from ``64 * i`` on, as bits."""
NODES_BY_GROUP, nodes_by_group = _table("trie nodes by group", 0, np.int64)
"""By group of bytes (vocabulary/trie.py), and by 64 trie nodes: which of them have such a byte, as bits."""
SOURCE_HASHES, source_hashes = _table("hash codes of sources", 64, np.int32)
SOURCE_BUCKETS, source_buckets = _table("source buckets", 128, np.int32, hashes=SOURCE_HASHES)
RUNS, runs = _table("lexical runs", 64, _record("dense tokens token_count ends end_count"))
"""By run: a dense mask; further tokens, ``TOKEN_LISTS[tokens:][:token_count]``; ``RUN_ENDS[ends:][:end_count]``."""
RUN_ENDS, run_ends = _table("ends of lexical runs", 64, _record("accept source"))
"""The sources at which the lexemes of a run end, by accept set."""
RUN_KEYS, run_keys = _table("keys of lexical runs", 64, np.int64)
"""Map: ``source + 1 << 32 | lexer state``; from the top of the trie, the lexer state"""
RUN_VALUES, run_values = _table("values of lexical runs", 64, np.int32)
"""... to the run."""
RUN_STATES, run_states = _table("run states", 16, _record("members count accept goes_on"))
"""By run state, the lexer states ``RUN_STATE_MEMBERS[members:][:count]``, sorted; what may end in them; and whether any
goes on.
"""
RUN_STATE_MEMBERS, run_state_members = _table("lexer states of run states", 64, np.int32)
RUN_STATE_HASHES, run_state_hashes = _table("hash codes of run states", 16, np.int32)
RUN_STATE_BUCKETS, run_state_buckets = _table("run state buckets", 32, np.int32, hashes=RUN_STATE_HASHES)
RUN_STEPS, run_steps = _table("steps of run states", 64, np.int32)
"""By run state and class of bytes, the run state after it; -1 if that is not known."""
_EXIT = _record("item rule source")
EXITS, exits = _table("exits", 64, _EXIT)
"""By exit: the place of the dot in the core in whose origin a rule ends; that rule; the source at which it ends."""
ROOTS, roots = _table("roots", 16, _record("dense tokens token_count runs run_count exits exit_count"))
"""By root: a dense mask; tokens, ``TOKEN_LISTS[tokens:][:token_count]``; runs, the same way; and its exits in EXITS."""
ROOT_KEYS, root_keys = _table("root keys", 64, np.int64)
"""Map: ``core << 32 | lexer state``, or a source in place of that,"""
ROOT_VALUES, root_values = _table("root values", 64, np.int32)
"""... to the root."""
ENDS_FOUND, ends_found = _table("ends found by a run", 64, np.int64)
"""Scratch: ``accept set << 32 | trie node``."""
CHILDREN_FOUND, children_found = _table("children of ends found", 0, np.int64)
"""Scratch, 0 between calls: trie nodes, as bits; behind them, which of these numbers are not 0."""
RUN_REGIONS, run_regions = _table("regions of a run", 64, np.int32)
"""Scratch: subtrees that a run goes through from one node of its source to the next (lexical_runs.py)."""
RUNS_FOUND, runs_found = _table("runs found", 64, np.int32)
"""Scratch: the runs of the root under way."""
EXITS_FOUND, exits_found = _table("exits found", 64, _EXIT)
"""Scratch: the exits of the root under way."""
ARRIVALS, arrivals = _table("arrivals at sources", 64, _record("earley_set accept"))
"""Scratch: which lexemes end at a source of the root under way, and in which Earley set they began."""
ARRIVAL_QUEUE, arrival_queue = _table("queue of arrivals", 64, np.int64)
"""Scratch: heap of ``(depth << 31 | source) << 16 | arrival``."""
ASKED, asked = _table("sets asked for", 64, _record("earley_set source"))
"""Scratch: what the mask under way asks for: what follows an Earley set, at a source."""
ROOTS_FOUND, roots_found = _table("roots found", 64, np.int32)
"""Scratch: the roots of the mask under way."""

# Shortest completions (conditions/budget); empty until a matcher asks for one.
# Of an expression: the cost of its cheapest string; of its cheapest string that is not empty, and the byte that begins
# it; the most that finishing costs after any beginning of a string; a lower bound of the first; and the most that any
# string costs, or NEVER.
EXPRESSION_COSTS, expression_costs = _table("expression costs", 0, _record("least least_on worst next_byte bound most"))
BYTE_COSTS, byte_costs = _table("byte costs", 0, _record("cost rank token"))
# The preferred byte of each byte class.
CLASS_COSTS, class_costs = _table("preferred bytes of classes", 0, np.int32)
TOKEN_WEIGHTS, token_weights = _table("what tokens cost", 0, _record("heaviest has_all_bytes"))
BYTE_SUMS, byte_sums = _table("sums of literal costs", 0, np.int64)
REST_COSTS, rest_costs = _table("costs behind dots", 0, np.int32)
EARLEY_SET_COSTS, earley_set_costs = _table("Earley set costs", 0, _record("least after"))
UP_COSTS, up_costs = _table("costs behind completions", 0, np.int32)
AFTER_COSTS, after_costs = _table("costs behind lexemes", 0, np.int32)
# Of a state: the least cost of finishing, and the byte that begins that; the most that finishing costs after any bytes
# that stay within the lexemes, or NEVER; how many tokens the completion takes, and the first of them.
STATE_COSTS, state_costs = _table("state costs", 0, _record("least byte worst tokens token"))
COST_RESULT, cost_result = _table("cost of a configuration", 0, _record("least byte worst", np.int64))
COST_STACK, cost_stack = _table("cost stack", 0, np.int32)
SEARCH_HEAP, search_heap = _table("search heap", 0, np.int64)
SEARCH_PLACES, search_places = _table("search places", 0, np.int32)
SEARCH_WAYS, search_ways = _table("search records", 0, _WAY)
TOKEN_COSTS, token_costs = _table("tokens and their costs", 0, _record("token count"))
LEFT_OUT, left_out = _table("parts of the trie left out", 0, _record("begin end"))
# The walk of budget/masks.py: the budget, and that where the text decides; how many tokens are noted, what those that
# are left out need at most; after how many visits to give up, and how many there were; whether parts may be left out,
# and from which depth on a lexeme has ended; the part of the trie in which the text decides; and what finishing takes
# behind the last lexeme asked for.
COST_WALK, cost_walk = _table(
    "walk for costs",
    1,
    _record(
        "budget open_budget count needed patience visited may_skip ended open_node open_end earley_set lexeme behind",
        np.int64,
    ),
)
PATH_HEAP, path_heap = _table("token search heap", 0, np.int64)
PATH_PLACES, path_places = _table("token search places", 0, np.int32)
PATH_WAYS, path_ways = _table("token search records", 0, _WAY)
PATH_SEARCH, path_search = _table("token search", 1, _record("way spent best best_way", np.int64))
heap_keys = view_at("search heaps", np.int64, HEADER)
way_places = view_at("search places", np.int32, HEADER)
ways = view_at("search records", _WAY, HEADER)

# The vocabulary (vocabulary/vocabulary.py); shared by every grammar.  Kernels only read it, except write_shared_mask
# and count_repetitions.
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
# What grammars have in common (vocabulary/shared_masks.py).
MOST_SHARED, MOST_SHARED_BOUNDARIES = 512, 1 << 17
"""How many lexer masks a vocabulary keeps, and boundaries in all of them."""
COUNTED_CLOSURES = 8
"""How many star closures a vocabulary sorts the tokens of."""
COUNTED_PLACES = 256
"""Numbers of repetitions that are told apart; larger ones count as the last of them."""
SHARED_COUNTS, shared_counts = _table("shared lexer mask counts", 0, np.int64)
SHARED_PRINTS, shared_prints = _table("shared lexer mask fingerprints", 0, np.int64, columns=2)
SHARED_HINTS, shared_hints = _table("shared lexer mask hints", 0, np.int64)
SHARED_MASKS, shared_masks = _table("shared lexer masks", 0, _record("boundaries boundary_count"))
SHARED_DENSE, shared_dense = _table("shared dense masks", 0, np.int32)
SHARED_BOUNDARIES, shared_boundaries = _table("shared boundaries", 0, _record("node accept"))
SHARED_COUNTED, shared_counted = _table("places of counted closures", 0, np.int32)
SHARED_BY_REPETITIONS, shared_by_repetitions = _table("tokens by repetitions", 0, np.int32)
SHARED_MORE_THAN, shared_more_than = _table("how many tokens have more repetitions", 0, np.int32)

N_SLOTS = len(NAMES)
MAPS = {
    DERIVATIVE_KEYS: DERIVATIVE_VALUES,
    DEAD_LENGTH_KEYS: DEAD_LENGTHS,
    SCAN_KEYS: SCAN_VALUES,
    RUN_KEYS: RUN_VALUES,
    ROOT_KEYS: ROOT_VALUES,
}
# With an element for each expression.
EXPRESSION_TABLES = (
    EXPRESSIONS,
    EXPRESSION_PRINTS,
    FIRST_BYTES,
    LAST_BYTES,
    NECESSARY_BYTES,
    SHORTEST_LENGTHS,
    END_LENGTHS,
    LIVENESS,
    LIFE_LENGTHS,
    EXPRESSION_HASHES,
)
# Tables that fill up together.
SIBLINGS = {
    slot: group
    for group in (
        (SYMBOLS, DOT_LEFT, NULLABLE_REST, BRANCH_DOTS),
        # New lexer states have new expressions.
        (
            *(*EXPRESSION_TABLES, EXPRESSION_BUCKETS, CHILDREN, DERIVATIVE_KEYS, LIFE_PLACES),
            *(SUMMARY_SETS, SUMMARY_SET_HASHES, SUMMARY_SET_BUCKETS),
            LEXER_STATES,
            LEXER_MEMBERS,
            LEXER_STATE_HASHES,
            LEXER_STATE_BUCKETS,
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
        (STATES, CONFIGURATIONS, STATE_HASHES, STATE_BUCKETS, TRANSITIONS, STATE_MARKS, STATE_MASKS),
    )
    for slot in group
}
MAP_VALUES = {values: keys for keys, values in MAPS.items()}

BY_SET_OR_STATE = (
    *(
        EARLEY_SETS,
        EARLEY_ITEMS,
        EARLEY_SET_HASHES,
        EARLEY_SET_BUCKETS,
        ORIGIN_SETS_AT,
        ORIGIN_SETS,
        ORIGIN_WORDS,
        COMPLETION_STAMPS,
        COMPLETION_MEMO,
        COMPLETION_ITEMS,
    ),
    *(SCAN_KEYS, SCAN_VALUES, UNKNOWN_SETS),
    *(
        STATES,
        CONFIGURATIONS,
        STATE_HASHES,
        STATE_BUCKETS,
        TRANSITIONS,
        STATE_MARKS,
        STATE_MASKS,
    ),
    *(EARLEY_SET_COSTS, UP_COSTS, AFTER_COSTS, STATE_COSTS),
)
"""Tables numbered by Earley set or state, or that hold such numbers between calls: what compaction.py has to change."""
CONTEXT_SIZE = HEADER + 3 * N_SLOTS
