"""The memory of a compiled grammar: flat growable tables, reached through one array.

A kernel needs some forty arrays.  Handing forty arrays to a jitted function costs more than the
work it does, so a kernel gets one: ``ctx``, an int64 array that holds, for each table, the address
of its data, its capacity and how much of it is in use.  Inside a kernel ``i32(ctx, SLOT)`` is a
view of that table and costs two loads.

Who owns what: a :class:`Tables` object owns the arrays and is the only one that replaces them.  A
kernel that runs out of room calls :func:`room`, which notes the table in ``ctx``, and returns
``FAIL``; the caller (Python) then calls :meth:`Tables.grow` and runs the kernel again from the
start.  Kernels therefore only ever *add* finished entries, so that running one twice is harmless.

Locking: everything here is guarded by the lock of the compiled grammar
(:class:`constrain.engine.compiled_grammar.CompiledGrammar`); no kernel runs on a ``ctx`` without it.
"""

from __future__ import annotations

import contextlib
import mmap
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numba import int32, int64, types, uint8, uint64
from numba.core.cgutils import true_bit
from numba.extending import intrinsic
from numba.np import arrayobj

from constrain.engine.storage.jit import compile_inner, njit_entry, njit_inner, put_off
from constrain.engine.storage.statuses import BAD_MASK as BAD_MASK
from constrain.engine.storage.statuses import FAIL as FAIL
from constrain.engine.storage.statuses import LIMIT as LIMIT
from constrain.engine.storage.statuses import NO_LEAP as NO_LEAP
from constrain.engine.storage.statuses import NO_STATE as NO_STATE
from constrain.engine.storage.statuses import REPEATED_KEY as REPEATED_KEY
from constrain.engine.storage.statuses import STOPPED as STOPPED
from constrain.engine.storage.statuses import UNMADE as UNMADE
from constrain.errors import LimitError

OPEN = 1 << 40
"""Added to a state that a step leads to, if how it goes on depends on the text (see parser/configurations.py)."""

STATUS_SHIFT = 32
"""What keys read beside the states (unique_keys/reading.py) come to, as bits above the state after a token."""

KEYS_SHIFT, KEY_ENDED, LIMITED_KEY_ENDED, KEYS_UNREAD, KEYS_MAY_RUN_OUT = 41, 1 << 42, 1 << 43, 1 << 44, 1 << 45
"""Added to the state after a token or some bytes: a key ended in them that must not come again; it was one of those
that may run out (see configurations.py); keys are followed, but these have yet to be read; they have been read, and it
has to be looked whether one is left.
"""

STATE_BITS = (1 << STATUS_SHIFT) - 1
"""The state without all of those."""

LEAP_SHIFT = 32
"""In the result of fast/token_steps.py: the bytes of a leap, above the state behind it."""

MOST_ELEMENTS = (1 << 31) - 1
"""No table may have more: records and packed results hold places in tables as 31 bits."""

HEADER = 64
_FAR = 16
# Scalars that kernels share, by position in the header.
(
    NEED_SLOT,
    NEED_SIZE,
    CLASSES,
    EPOCH,
    START_NT,
    N_IGNORE,
    N_WORDS,
    LIST_END,
    LIST_LIMIT,
    NEW_SPLIT,
    LONGEST,
    BUDGET,
    OPEN_STATE,
    OPEN_AT,
    INNER_BLANKS,
) = range(15)

_NAMES: list[str] = []
_SPECS: list[tuple[Any, int, int]] = []


def _slot(name: str, dtype: Any, capacity: int, hashes: int = -1) -> int:
    """Register a table; ``hashes`` is the slot of the hash codes that a bucket table indexes."""
    _NAMES.append(name)
    _SPECS.append((dtype, capacity, hashes))
    return len(_NAMES) - 1


# Expressions (automata/expressions.py).
NEW_NODES = 2048
"""How many expressions fit into new tables."""
NODES = _slot("nodes", np.int32, 4 * NEW_NODES)
NODE_PRINTS = _slot("node fingerprints", np.int64, 2 * 2048)
FORM = _slot("words to hash", np.int64, 64)
NODE_FIRST = _slot("node first bytes", np.int64, 4 * 2048)
NODE_LAST = _slot("node last bytes", np.int64, 4 * 2048)
NODE_MUST = _slot("node necessary bytes", np.int64, 4 * 2048)
NODE_SHORTEST = _slot("node shortest lengths", np.int32, 2048)
NODE_REACH = _slot("node lengths to an end", np.int32, 2048)
NODE_LIVE = _slot("node liveness", np.uint8, 2048)
NODE_HASH = _slot("node hashes", np.int32, 2048)
NODE_BUCKETS = _slot("node buckets", np.int32, 8192, NODE_HASH)
POOL = _slot("node children", np.int32, 2048)
BYTES = _slot("literal bytes", np.uint8, 4096)
SETS = _slot("byte sets", np.int64, 4 * 128)
MEMO_KEYS = _slot("derivative keys", np.int64, 8192)
MEMO_VALUES = _slot("derivative values", np.int32, 8192)
SUBSUMED = _slot("counted parts", np.int64, 64)
TMP = _slot("work stack", np.int32, 1024)
LIVE_STACK = _slot("liveness stack", np.int32, 64)
CLASS_OF = _slot("byte classes", np.uint8, 256)
CLASS_BYTE = _slot("class representatives", np.uint8, 256)
CLASS_SIZE = _slot("class sizes", np.int32, 256)
CLASS_GROUPS = _slot("byte groups of classes, as sets", np.int64, 256)

# Lexer states (automata/lexer_states.py).
LEXEMES = _slot("lexemes", np.int32, 3 * 64)
LEX = _slot("lexer states", np.int32, 4 * 512)
LEX_POOL = _slot("lexer state members", np.int32, 8192)
LEX_HASH = _slot("lexer state hashes", np.int32, 512)
LEX_BUCKETS = _slot("lexer state buckets", np.int32, 4096, LEX_HASH)
LEX_AGREED = _slot("lexer states compared", np.int32, 0)
LEX_TWIN = _slot("lexer state twins", np.int32, 512)
LEX_FIRST = _slot("lexer state first bytes", np.int64, 4 * 512)
LEX_TRANS = _slot("lexer transitions", np.int32, 512 * 64)
ACCEPTS = _slot("accept sets", np.int32, 2 * 128)
ACCEPT_POOL = _slot("accept set members", np.int32, 256)
ACCEPT_HASH = _slot("accept set hashes", np.int32, 128)
ACCEPT_BUCKETS = _slot("accept set buckets", np.int32, 256, ACCEPT_HASH)

# The grammar, flattened (automata/programs.py).
SYMBOLS = _slot("symbols", np.int32, 512)
DOT_LEFT = _slot("left-hand sides", np.int32, 512)
NULLABLE_REST = _slot("nullable remainders", np.uint8, 512)
RULES = _slot("rules", np.int32, 256)
RULE_STARTS = _slot("rule starts", np.int32, 256)
NULLABLE = _slot("nullable nonterminals", np.uint8, 256)
IGNORE = _slot("ignored lexemes", np.int32, 4)
BRANCHES = _slot("branches", np.int32, 4 * 16)
BRANCH_DOTS = _slot("rules of branches", np.int32, 64)

# Earley rows (parser/earley_sets.py).
CORES = _slot("cores", np.int32, 7 * 256)
CORE_DOTS = _slot("core dots", np.int32, 1024)
CORE_KINDS = _slot("core kinds", np.uint8, 256)
CORE_HASH = _slot("core hashes", np.int32, 256)
CORE_BUCKETS = _slot("core buckets", np.int32, 512, CORE_HASH)
CORE_SCANS = _slot("core scans", np.int32, 3 * 1024)
CORE_GROUPS = _slot("core groups", np.int32, 3 * 512)
CORE_WAITS = _slot("core waits", np.int32, 2 * 512)
PREDICTED = _slot("prediction marks", np.int32, 256)
ROWS = _slot("rows", np.int32, 5 * 128)
ROW_ITEMS = _slot("row items", np.int32, 2 * 512)
ROW_HASH = _slot("row hashes", np.int32, 128)
ROW_BUCKETS = _slot("row buckets", np.int32, 256, ROW_HASH)
ROW_SETS = _slot("origin sets of rows", np.int32, 128)
ORIGIN_SETS = _slot("origin sets", np.int64, 0)
DONE_STAMP = _slot("completion marks", np.int32, 1024)
DONE_MEMO = _slot("completion memo", np.int32, 1024)
DONE_ITEMS = _slot("completion items", np.int32, 1024)
SCAN_KEYS = _slot("scan keys", np.int64, 1024)
SCAN_VALUES = _slot("scan values", np.int32, 1024)
LEAP_KEYS = _slot("leap keys", np.int64, 512)
LEAP_VALUES = _slot("leap values", np.int32, 512)
KERNEL = _slot("kernel items", np.int64, 1024)
KERNEL_SLOTS = _slot("kernel item slots", np.int32, 2048)
KERNEL_PLACES = _slot("kernel item places", np.int32, 1024)
NEW_SETS = _slot("origin sets of a new row", np.int64, 0)
NEW_WORDS = _slot("words of the origin sets of a new row", np.int64, 0)
SET_OF_DOT = _slot("origin sets of a new row, by dot", np.int32, 0)
WORK = _slot("completion work list", np.int32, 256)
UNMADE_BRANCHES = _slot("branches without rules", np.int32, 64)
OPEN_NODES = _slot("trie nodes at open states", np.int32, 64)

# Recognizer states (parser/configurations.py).
STATES = _slot("states", np.int32, 3 * 512)
THREADS = _slot("threads", np.int32, 2 * 1024)
STATE_HASH = _slot("state hashes", np.int32, 512)
STATE_BUCKETS = _slot("state buckets", np.int32, 4096, STATE_HASH)
STATE_TRANS = _slot("state transitions", np.int32, 512 * 64)
STATE_KEYS = _slot("states in keys and at their ends", np.uint8, 512)
STATE_WORK = _slot("thread work list", np.int64, 64)

# Masks (masks/state_masks.py).
SPLITS = _slot("token splits", np.int32, 5 * 512)
CROSSINGS = _slot("crossings", np.int32, 2 * 1024)
INSIDE = _slot("bytes looked for in closures", np.int32, 4 * 16)
INSIDE_NODES = _slot("trie nodes with a byte in a closure", np.int32, 4096)
STATE_MASKS = _slot("state masks", np.int32, 5 * 512)
TOKEN_LISTS = _slot("token lists", np.int32, 16384)
DENSE = _slot("dense masks", np.int32, 0)
SCRATCH = _slot("scratch mask", np.int32, 0)
STACK = _slot("walk stack", np.int32, 0)
WIDE_STACK = _slot("walk stack of wide nodes", np.int32, 0)
TRIE_HEIGHT = _slot("height of trie nodes", np.int32, 0)
FOLLOWS = _slot("states after lexemes", np.int64, 3 * 64)
FOUND = _slot("tokens found by a walk", np.int32, 0)
LOOPS = _slot("bytes that lead back to a state", np.int64, 5)

# Shortest completions (expression_costs.py, costs.py, completions.py); empty until a matcher asks for one.
NODE_COSTS = _slot("expression costs", np.int32, 0)
BYTE_COSTS = _slot("byte costs", np.int32, 0)
BYTE_SUMS = _slot("sums of literal costs", np.int64, 0)
REST_COSTS = _slot("costs behind dots", np.int32, 0)
ROW_COSTS = _slot("row costs", np.int32, 0)
UP_COSTS = _slot("costs behind completions", np.int32, 0)
AFTER_COSTS = _slot("costs behind lexemes", np.int32, 0)
STATE_COSTS = _slot("state costs", np.int32, 0)
COST_RESULT = _slot("cost of a thread", np.int64, 0)
COST_STACK = _slot("cost stack", np.int32, 0)
SEARCH_HEAP = _slot("search heap", np.int64, 0)
SEARCH_PLACES = _slot("search places", np.int32, 0)
SEARCH_RECORDS = _slot("search records", np.int32, 0)
TOKEN_COSTS = _slot("tokens and their costs", np.int32, 0)
PATH_HEAP = _slot("token search heap", np.int64, 0)
PATH_PLACES = _slot("token search places", np.int32, 0)
PATH_RECORDS = _slot("token search records", np.int32, 0)

# The vocabulary (vocabulary/vocabulary.py); shared by every grammar.  Kernels only read it, except publish_split.
TRIE_NODE = _slot("trie bytes and depths", np.int32, 0)
TRIE_SIZE = _slot("trie subtree sizes", np.int32, 0)
BYTE_GROUP = _slot("byte groups", np.uint8, 0)
TRIE_CHILDREN = _slot("trie children", np.int64, 0)
TRIE_TOKEN = _slot("trie tokens", np.int32, 0)
SUBTREES = _slot("large subtrees of the trie", np.int64, 0)
TOKENS_IN_ORDER = _slot("tokens in the order of the trie", np.int32, 0)
TRIE_BY_BYTE = _slot("trie nodes by byte", np.int32, 0)
BYTE_STARTS = _slot("where the trie nodes of a byte begin", np.int32, 0)
TOKENS_BY_LENGTH = _slot("tokens, longest first", np.int32, 0)
TRIE_WIDE = _slot("wide and large trie nodes", np.int32, 0)
WIDE_MASKS = _slot("children of wide nodes, as sets", np.int64, 0)
WIDE_ENDS = _slot("ends of wide nodes", np.int32, 0)
WIDE_FIRST = _slot("first children of wide nodes", np.int32, 0)
WIDE_CHILD = _slot("children of wide nodes", np.int32, 0)
TOKEN_START = _slot("token offsets", np.int64, 0)
TOKEN_BYTES = _slot("token bytes", np.uint8, 0)
SAME_BYTES = _slot("tokens with the same bytes", np.int32, 0)
EMPTY_TOKENS = _slot("empty tokens", np.int32, 0)
EOS_TOKENS = _slot("end tokens", np.int32, 0)
SHARED_COUNTS = _slot("shared split counts", np.int64, 0)
SHARED_PRINTS = _slot("shared split fingerprints", np.int64, 0)
SHARED_HINTS = _slot("shared split hints", np.int64, 0)
SHARED_RECORDS = _slot("shared splits", np.int32, 0)
SHARED_DENSE = _slot("shared dense masks", np.int32, 0)
SHARED_CROSSINGS = _slot("shared crossings", np.int32, 0)
SHARED_COUNTED = _slot("places of counted closures", np.int32, 0)
SHARED_BY_REPETITIONS = _slot("tokens by repetitions", np.int32, 0)
SHARED_MORE_THAN = _slot("how many tokens have more repetitions", np.int32, 0)

N_SLOTS = len(_NAMES)
_CONTEXT_SIZE = HEADER + 3 * N_SLOTS
_MAPS = {MEMO_KEYS: MEMO_VALUES, SCAN_KEYS: SCAN_VALUES, LEAP_KEYS: LEAP_VALUES}
# Tables that fill up together.
_SIBLINGS = {
    slot: group
    for group in (
        (SYMBOLS, DOT_LEFT, NULLABLE_REST, BRANCH_DOTS),
        (
            NODES,
            NODE_PRINTS,
            NODE_FIRST,
            NODE_LAST,
            NODE_MUST,
            NODE_SHORTEST,
            NODE_REACH,
            NODE_LIVE,
            NODE_HASH,
            NODE_BUCKETS,
            POOL,
        ),
        (LEX, LEX_POOL, LEX_HASH, LEX_BUCKETS, LEX_TWIN, LEX_FIRST, LEX_TRANS, SPLITS),
        (CORES, CORE_KINDS, CORE_DOTS, CORE_HASH, CORE_BUCKETS, CORE_SCANS, CORE_GROUPS, CORE_WAITS),
        (ROWS, ROW_ITEMS, ROW_HASH, ROW_BUCKETS, ROW_SETS, DONE_STAMP, DONE_MEMO, DONE_ITEMS),
        (STATES, THREADS, STATE_HASH, STATE_BUCKETS, STATE_TRANS, STATE_KEYS, STATE_MASKS),
    )
    for slot in group
}
_MAP_VALUES = {values: keys for keys, values in _MAPS.items()}

BY_ROW_OR_STATE = (
    *(ROWS, ROW_ITEMS, ROW_HASH, ROW_BUCKETS, ROW_SETS, ORIGIN_SETS, DONE_STAMP, DONE_MEMO, DONE_ITEMS),
    *(SCAN_KEYS, SCAN_VALUES),
    *(STATES, THREADS, STATE_HASH, STATE_BUCKETS, STATE_TRANS, STATE_KEYS, STATE_MASKS, LEAP_KEYS, LEAP_VALUES),
    *(ROW_COSTS, UP_COSTS, AFTER_COSTS, STATE_COSTS),
)
"""Tables numbered by row or state, or that hold such numbers between kernel calls: what compaction.py has to change."""

CTX = int64[::1]


_intrinsic: Any = intrinsic  # called with fewer arguments than it is defined with
_arrays: Any = arrayobj  # has no types


# Kernels that others reach through a pointer in the header (see far_call).
(
    F_DERIVATIVE,
    F_SET_OPERATION,
    F_LIVE,
    F_LEXER_STEP,
    F_LEXER_STATE,
    F_CORE,
    F_ROW,
    F_SCAN,
    F_STEP,
    F_SPLIT,
    F_ACCEPT_SET,
    F_TWIN,
    F_MASK,
    F_CLOSURE,
    F_LOOP,
    F_FIND_CLOSURE,
    F_FILL,
    F_ENDS,
    F_DESCRIBE,
    F_SUBSUME,
    F_FORBID,
    F_NODE_COST,
    F_STATE_COST,
    F_TOKENS,
    F_NEAR,
    F_PLAIN,
    F_READ_KEYS,
    F_LEAP,
    F_LOOPS,
    F_INSIDE,
    F_FREE,
    F_AGREE,
    F_COUNTED,
    F_LIST,
    F_STATE_OF_ROW,
    F_HASH,
    F_PRINT,
    F_WITHOUT_INDENTS,
    F_INDENTS,
) = range(39)
_far_addresses = np.zeros(HEADER - _FAR, np.int64)


def far_entry(index: int, kernel: Any) -> None:
    """Make ``kernel``, of signature int64(CTX, int64, int64), callable as ``far_call(ctx, index, ...)``."""
    if put_off(kernel):
        return
    compiled = compile_inner(kernel)
    _far_addresses[index] = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)


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
_call_reader = _caller_of(CTX, types.Array(uint8, 1, "C", readonly=True), CTX, int64)


@njit_inner(int64(CTX, int64, int64, int64))
def far_call(ctx, index, a, b):  # type: ignore[no-untyped-def]
    """Call the kernel registered under ``index``.

    An ordinary call makes numba link the callee, and all that it calls, into the caller and
    optimise it again; with calls ten deep that is most of the compile time.  These calls happen
    where something is computed for the first time, so an indirect jump costs nothing that matters.
    """
    return _call_address(ctx[_FAR + index], (ctx, a, b))


@_intrinsic
def context_at(_typing: Any, address: Any) -> Any:
    """The ``ctx`` at an address, for kernels that work on several compiled grammars."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _make_view(context, builder, signature.return_type, args[0], args[0].type(_CONTEXT_SIZE))

    return CTX(types.int64), codegen


@_intrinsic
def lowest_bit(_typing: Any, word: Any) -> Any:
    """The position of the lowest bit that is set in an int64 other than 0."""

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], true_bit)

    return types.int64(types.int64), codegen


@_intrinsic
def count_bits(_typing: Any, word: Any) -> Any:
    """How many bits are set in an int64."""

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.int64), codegen


def _make_view(context: Any, builder: Any, kind: Any, address: Any, length: Any) -> Any:
    """Generate the code for an array of type ``kind`` over memory that is there already."""
    array = _arrays.make_array(kind)(context, builder)
    width = length.type(context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    _arrays.populate_array(
        array,
        data=builder.inttoptr(address, array.data.type),
        shape=[length],
        strides=[width],
        itemsize=width,
        meminfo=None,
    )
    return array._getvalue()


def _view_of(dtype: Any) -> Any:
    """A function of ``(ctx, slot)``: the view of a table with elements of type ``dtype``.

    It is made in place instead of with ``carray``: kernels are compiled without reference counts, and
    numba lets no function return an array then.
    """

    @_intrinsic
    def view(_typing: Any, ctx: Any, slot: Any) -> Any:
        result = types.Array(dtype, 1, "C")

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            header = _arrays.make_array(signature.args[0])(context, builder, args[0])
            place = builder.add(builder.mul(args[1], args[1].type(3)), args[1].type(HEADER))
            address = builder.load(builder.gep(header.data, [place]))
            length = builder.load(builder.gep(header.data, [builder.add(place, args[1].type(1))]))
            return _make_view(context, builder, signature.return_type, address, length)

        return result(ctx, types.int64), codegen

    return view


i32, i64, u8 = _view_of(int32), _view_of(int64), _view_of(uint8)


@njit_inner(int64(CTX, CTX, int64))
def read_token(ctx, memory, token):  # type: ignore[no-untyped-def]
    """Let the kernel F_READ_KEYS (unique_keys/reading.py) read a token of the vocabulary."""
    return _call_reader(ctx[_FAR + F_READ_KEYS], (memory, u8(ctx, TOKEN_BYTES), i64(ctx, TOKEN_START), token))


@njit_inner(int64(CTX, int64))
def used(ctx, slot):  # type: ignore[no-untyped-def]
    """How many elements of a table are in use."""
    return ctx[HEADER + 3 * slot + 2]


@njit_inner(types.void(CTX, int64, int64))
def set_used(ctx, slot, n):  # type: ignore[no-untyped-def]
    """Set how many elements of a table are in use."""
    ctx[HEADER + 3 * slot + 2] = n


@njit_inner(types.boolean(CTX, int64, int64))
def room(ctx, slot, n):  # type: ignore[no-untyped-def]
    """Whether ``n`` more elements fit into a table; if not, note that it has to grow."""
    wanted = ctx[HEADER + 3 * slot + 2] + n
    if wanted <= ctx[HEADER + 3 * slot + 1]:
        return True
    ctx[NEED_SLOT] = slot
    ctx[NEED_SIZE] = wanted
    return False


@njit_inner(types.boolean(CTX, int64, int64))
def bucket_room(ctx, slot, count):  # type: ignore[no-untyped-def]
    """Whether a bucket table of ``count`` entries stays at most half full with one more."""
    if 2 * (count + 1) <= ctx[HEADER + 3 * slot + 1]:
        return True
    ctx[NEED_SLOT] = slot
    ctx[NEED_SIZE] = 4 * (count + 1)
    return False


@njit_inner(int64(int64, int64))
def mix(code, value):  # type: ignore[no-untyped-def]
    """One step of a multiplicative hash (Fibonacci hashing; Knuth, TAOCP 3, section 6.4)."""
    # Unsigned, since the compiler takes it that signed numbers do not overflow, and for their product is free to
    # put whatever it likes where it can tell that they do.
    code = int64(uint64(code ^ value) * uint64(0x9E3779B97F4A7C15))
    return code ^ ((code >> 29) & 0x7FFFFFFFF)


@njit_inner(int64(int64))
def finish_hash(code):  # type: ignore[no-untyped-def]
    """A hash code as a non-negative 31-bit number."""
    return (code ^ (code >> 32)) & 0x7FFFFFFF


@njit_entry(types.void(int32[::1], int64, int32[::1]))
def _rehash(hashes, count, buckets):  # type: ignore[no-untyped-def]
    for i in range(len(buckets)):
        buckets[i] = -1
    mask = len(buckets) - 1
    for entry in range(count):
        i = hashes[entry] & mask
        while buckets[i] >= 0:
            i = (i + 1) & mask
        buckets[i] = entry


@njit_entry(types.void(int64[::1], int32[::1], int64[::1], int32[::1]))
def _rehash_map(keys, values, new_keys, new_values):  # type: ignore[no-untyped-def]
    for j in range(len(new_keys)):
        new_keys[j] = 0
    mask = len(new_keys) - 1
    for i in range(len(keys)):
        if keys[i] != 0:
            j = finish_hash(mix(0, keys[i])) & mask
            while new_keys[j] != 0:
                j = (j + 1) & mask
            new_keys[j] = keys[i]
            new_values[j] = values[i]


@njit_inner(int64(CTX, int64, int64, int64))
def map_get(ctx, keys_slot, values_slot, key):  # type: ignore[no-untyped-def]
    """The value stored under ``key`` (> 0) in a map, or -1."""
    keys = i64(ctx, keys_slot)
    mask = len(keys) - 1
    i = finish_hash(mix(0, key)) & mask
    while keys[i] != 0:
        if keys[i] == key:
            return int64(i32(ctx, values_slot)[i])
        i = (i + 1) & mask
    return int64(-1)


@njit_inner(int64(CTX, int64, int64, int64, int64))
def map_put(ctx, keys_slot, values_slot, key, value):  # type: ignore[no-untyped-def]
    """Store ``value`` under ``key``; returns 0 or ``FAIL``."""
    count = used(ctx, keys_slot)
    if not bucket_room(ctx, keys_slot, count):
        return int64(FAIL)
    keys = i64(ctx, keys_slot)
    mask = len(keys) - 1
    i = finish_hash(mix(0, key)) & mask
    while keys[i] != 0 and keys[i] != key:
        i = (i + 1) & mask
    if keys[i] == 0:
        set_used(ctx, keys_slot, count + 1)
        keys[i] = key
    i32(ctx, values_slot)[i] = value
    return int64(0)


@njit_inner(types.void(int64[::1], int64))
def sort_keys(keys, count):  # type: ignore[no-untyped-def]
    """Sort the first ``count`` keys in place (Shell sort with the gaps of Ciura, 2001, continued by 2.25)."""
    sorted_to = 1
    while sorted_to < count and keys[sorted_to - 1] <= keys[sorted_to]:
        sorted_to += 1
    if sorted_to >= count:
        return
    gap = 1
    while gap < count // 2:
        gap = gap * 9 // 4 + 1
    while gap > 0:
        for i in range(gap, count):
            key = keys[i]
            j = i
            while j >= gap and keys[j - gap] > key:
                keys[j] = keys[j - gap]
                j -= gap
            keys[j] = key
        gap = gap * 4 // 9


_I64 = int64[::1]


@njit_entry(int64(CTX, _I64, _I64, uint64, uint64, _I64, _I64, _I64))
def _begin_tables(ctx, far, buffer, minus_one_end, zero_end, shared, pieces, data):  # type: ignore[no-untyped-def]
    """Make a new buffer and its context ready; returns the address of the context.

    One call, since a dozen by numpy take 100 us where none of them was called recently.

    Parameters
    ----------
    ctx : int64[...]
        With the offsets of the tables instead of their addresses.
    far : int64[n]
        Addresses of the kernels in the header.
    buffer : int64[n]
        What it begins with is filled with -1 up to ``minus_one_end``, and with 0 up to ``zero_end``.
    shared : int64[3 * n]
        Tables that are memory of others: slot, address, length.
    pieces, data : int64[5 * n], int64[m]
        Tables that begin with something in them: slot, place in the buffer, place in ``data``, length of that, and how
        many elements are in use.
    """
    address = int64(buffer.ctypes.data)
    for slot in range(N_SLOTS):
        ctx[HEADER + 3 * slot] += address
    for i in range(len(far)):
        ctx[_FAR + i] = far[i]
    # Unsigned, since a negative index would have to be told from others.
    for k in range(minus_one_end):
        buffer[k] = -1
    for k in range(minus_one_end, zero_end):
        buffer[k] = 0
    for i in range(0, len(shared), 3):
        place = HEADER + 3 * shared[i]
        ctx[place] = shared[i + 1]
        ctx[place + 1] = ctx[place + 2] = shared[i + 2]
    for i in range(0, len(pieces), 5):
        to, begin, size = uint64(pieces[i + 1]), uint64(pieces[i + 2]), uint64(pieces[i + 3])
        for k in range(size):
            buffer[to + k] = data[begin + k]
        set_used(ctx, pieces[i], pieces[i + 4])
    return int64(ctx.ctypes.data)


_ITEM_BYTES = [np.dtype(spec[0]).itemsize for spec in _SPECS]


def _lay_out() -> tuple[list[int], list[int], int, int, int]:
    """Where each table begins in the one buffer that a new Tables allocates.

    Returns the offsets in bytes, the elements that there are addresses for, the end of the part to fill with -1, the
    end of the part to fill with 0, and the size.
    """
    buckets = [slot for slot, spec in enumerate(_SPECS) if spec[2] >= 0]
    hashed = {*buckets, *_MAPS, *_MAP_VALUES}
    large = [slot for slot in range(N_SLOTS) if slot not in hashed and _initial_bytes(slot) >= _ROOMY_BYTES]
    large.append(DENSE)
    rest = [slot for slot in range(N_SLOTS) if slot not in buckets and slot not in _MAPS and slot not in large]
    offsets = [0] * N_SLOTS
    most = [capacity for _, capacity, _ in _SPECS]
    ends = []
    end = 0
    for part in (buckets, list(_MAPS), rest, large):
        for slot in part:
            offsets[slot] = end
            if part is large:
                most[slot] = max(_ROOM * _SPECS[slot][1], _DENSE_ROOM if slot == DENSE else 0)
            end += -(-most[slot] * _ITEM_BYTES[slot] // 64) * 64
        ends.append(end)
    return offsets, most, ends[0], ends[1], end


def _initial_bytes(slot: int) -> int:
    return int(_SPECS[slot][1] * _ITEM_BYTES[slot])


# A table of this size, at first, has addresses to become so many times as large without moving.
_ROOMY_BYTES, _ROOM = 1 << 11, 16
# Dense masks are as large as the vocabulary; these are elements.
_DENSE_ROOM = 1 << 18

_OFFSETS, _MOST, _MINUS_ONE_END, _ZERO_END, _BUFFER_BYTES = _lay_out()
_INITIAL_BYTES = sum(map(_initial_bytes, range(N_SLOTS)))
_TEMPLATE = np.zeros(_CONTEXT_SIZE, np.int64)
_TEMPLATE[NEW_SPLIT] = -1
_TEMPLATE[HEADER::3] = _OFFSETS
_TEMPLATE[HEADER + 1 :: 3] = [capacity for _, capacity, _ in _SPECS]


def _address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])


def sharing(arrays: dict[int, np.ndarray[Any, Any]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The ``shared`` of :class:`Tables`: memory of others, by slot."""
    flat = [number for slot, array in arrays.items() for number in (slot, _address(array), len(array))]
    return np.array(flat, np.int64)


def _round_up(size: int) -> int:
    return 1 << max(4, (size - 1).bit_length())


# A table of this size gets more addresses than it needs, up to so many bytes more.
_LARGE_BYTES, _RESERVE_BYTES = 1 << 18, 1 << 27


def _addresses(size: int, dtype: Any) -> np.ndarray[Any, Any]:
    """An array of which only what is used takes memory, page by page.

    numpy would ask for large pages, and whoever touches one first waits until all of it is cleared.
    """
    if not hasattr(mmap, "MAP_ANONYMOUS"):
        return np.empty(size, dtype)
    try:
        memory = mmap.mmap(-1, size * dtype.itemsize, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"no addresses for {size * dtype.itemsize:,} bytes of tables") from error
    return np.frombuffer(memory, dtype)


# Buffers of grammars that are gone.  To touch a page of memory for the first time takes as long as making a few lexer
# states; with a buffer that was used before it has been done.
_spare_buffers: list[np.ndarray[Any, Any]] = []
_MOST_SPARE = 2


def _take_buffer() -> np.ndarray[Any, Any]:
    try:
        return _spare_buffers.pop()
    except IndexError:
        return _addresses(_BUFFER_BYTES, np.dtype(np.uint8))


NO_TABLES = np.zeros(_CONTEXT_SIZE, np.int64)
"""The context of a compiled grammar whose tables have been dropped: no state is known in it."""
NO_TABLES.flags.writeable = False


class TablesFullError(LimitError):
    """The tables of a compiled grammar have reached their limit."""


def _too_many_elements(slot: int) -> TablesFullError:
    return TablesFullError(
        f"the grammar needs a table of more than {MOST_ELEMENTS:,} entries (the {_NAMES[slot]} table is full); "
        "simplify the grammar"
    )


class Snapshot(NamedTuple):
    """Copies of tables, to begin others with."""

    pieces: np.ndarray[Any, np.dtype[np.int64]]
    data: np.ndarray[Any, np.dtype[np.int64]]
    """What fits into new tables, as in :func:`_begin_tables`."""
    larger: list[tuple[int, np.ndarray[Any, Any], int]]
    """What does not: slot, contents, and how many elements are in use."""


_NO_NUMBERS = np.empty(0, np.int64)
_NOTHING = Snapshot(_NO_NUMBERS, _NO_NUMBERS, [])


class Tables:
    """The tables of one compiled grammar.

    Parameters
    ----------
    limit_bytes : int
        :class:`LimitError` is raised instead of growing past this many bytes.
    shared : int64[3 * n]
        Tables that are memory of others, who keep it alive (see :func:`sharing`).
    snapshot : Snapshot
        What some tables begin with.
    """

    def __init__(
        self,
        limit_bytes: int,
        shared: np.ndarray[Any, np.dtype[np.int64]] = _NO_NUMBERS,
        snapshot: Snapshot = _NOTHING,
    ) -> None:
        self.limit_bytes = limit_bytes
        # One buffer for all, since fifty allocations take longer than compiling a small grammar.
        # A table that grows moves out of it.
        self._buffer = _take_buffer()
        self._moved: dict[int, np.ndarray[Any, Any]] = {}
        self._reserves: dict[int, np.ndarray[Any, Any]] = {}
        self.nbytes = _INITIAL_BYTES
        self.ctx = _TEMPLATE.copy()
        self.context_address: int = _begin_tables(
            *(self.ctx, _far_addresses, self._buffer.view(np.int64), _MINUS_ONE_END // 8, _ZERO_END // 8),
            *(shared, snapshot.pieces, snapshot.data),
        )
        for slot, array, in_use in snapshot.larger:
            self.put(slot, array)
            self.ctx[HEADER + 3 * slot + 2] = in_use

    def __del__(
        self,
        spare: list[np.ndarray[Any, Any]] = _spare_buffers,
        most: int = _MOST_SPARE,
        references: Any = sys.getrefcount,
    ) -> None:
        buffer = self.__dict__.pop("_buffer", None)
        # Two references are the variable and the argument of the call; more would be views that someone still has.
        if buffer is not None and len(spare) < most and references(buffer) == 2:
            spare.append(buffer)

    def link(self) -> None:
        """Make the kernels callable that have registered with :func:`far_entry` by now."""
        self.ctx[_FAR:HEADER] = _far_addresses

    def _install(self, slot: int, array: np.ndarray[Any, Any]) -> None:
        old = self._moved.get(slot)
        self._reserves.pop(slot, None)
        self.nbytes += array.nbytes - (0 if old is None else old.nbytes)
        self._moved[slot] = array
        place = HEADER + 3 * slot
        self.ctx[place] = _address(array)
        self.ctx[place + 1] = array.shape[0]

    def _resize(self, slot: int, capacity: int) -> None:
        """Let a table that is where it was at first have more or fewer of the addresses behind it."""
        self.nbytes += (capacity - self.capacity(slot)) * _ITEM_BYTES[slot]
        self.ctx[HEADER + 3 * slot + 1] = capacity

    def capacity(self, slot: int) -> int:
        """How many elements a table has room for."""
        return int(self.ctx[HEADER + 3 * slot + 1])

    def array(self, slot: int) -> np.ndarray[Any, Any]:
        """A whole table (a view)."""
        moved = self._moved.get(slot)
        if moved is not None:
            return moved
        offset = _OFFSETS[slot]
        return self._buffer[offset : offset + self.capacity(slot) * _ITEM_BYTES[slot]].view(_SPECS[slot][0])

    def get(self, slot: int) -> np.ndarray[Any, Any]:
        """The part of a table that is in use (a view)."""
        return self.array(slot)[: self.ctx[HEADER + 3 * slot + 2]]

    def used(self, slot: int) -> int:
        """How many elements of a table are in use."""
        return int(self.ctx[HEADER + 3 * slot + 2])

    def share(self, slot: int, address: int, size: int) -> None:
        """Let a table be memory that others own and keep alive; it does not count as this grammar's."""
        place = HEADER + 3 * slot
        self.ctx[place] = address
        self.ctx[place + 1] = self.ctx[place + 2] = size

    def put(self, slot: int, values: np.ndarray[Any, Any]) -> None:
        """Fill a table with ``values``."""
        self.allocate(slot, len(values))
        self.array(slot)[: len(values)] = values
        self.ctx[HEADER + 3 * slot + 2] = len(values)

    def snapshot(self, slots: Iterable[int], whole: Iterable[int]) -> Snapshot:
        """A copy of what is in use of some tables, and of all of others, which are hashed, to begin new tables with."""
        arrays = [(slot, self.get(slot)) for slot in slots] + [(slot, self.array(slot)) for slot in whole]
        pieces: list[int] = []
        data = b""
        larger = []
        for slot, array in arrays:
            if len(array) > _SPECS[slot][1]:
                larger.append((slot, array.copy(), self.used(slot)))
            else:
                # Every table begins at a multiple of 64, so there is room up to one of 8.
                words = -(-array.nbytes // 8)
                pieces += (slot, _OFFSETS[slot] // 8, len(data) // 8, words, self.used(slot))
                data += array.tobytes().ljust(8 * words, b"\0")
        return Snapshot(np.array(pieces, np.int64), np.frombuffer(data, np.int64).copy(), larger)

    def allocate(self, slot: int, capacity: int, used: int = 0) -> None:
        """Give a table room for ``capacity`` elements, not initialised, of which ``used`` are in use."""
        if capacity > MOST_ELEMENTS:
            raise _too_many_elements(slot)
        if slot not in self._moved and capacity <= _MOST[slot]:
            self._resize(slot, max(_SPECS[slot][1], capacity))
        else:
            self._install(slot, np.empty(capacity, _SPECS[slot][0]))
        self.ctx[HEADER + 3 * slot + 2] = used

    def reserve(self, slot: int, size: int) -> None:
        """Enlarge a table, unless it has room for ``size`` elements."""
        if size > self.capacity(slot):
            self.ctx[NEED_SLOT], self.ctx[NEED_SIZE] = slot, size
            self.grow()

    def append(self, slot: int, values: np.ndarray[Any, Any]) -> None:
        """Add ``values`` to a table, enlarging it as needed."""
        begin = self.used(slot)
        self.reserve(slot, begin + len(values))
        self.array(slot)[begin : begin + len(values)] = values
        self.ctx[HEADER + 3 * slot + 2] = begin + len(values)

    def wanted(self) -> tuple[int, int]:
        """The table that the last kernel found too small, and by how many elements it wanted to extend it."""
        slot = int(self.ctx[NEED_SLOT])
        return slot, 1 if _SPECS[slot][2] >= 0 or slot in _MAPS else int(self.ctx[NEED_SIZE]) - self.used(slot)

    def is_crowded(self, slot: int, extra: int) -> bool:
        """Whether a table would not be comfortably large with ``extra`` more elements."""
        hashes = _SPECS[slot][2]
        if hashes >= 0:
            return bool(3 * (self.used(hashes) + extra) > self.array(slot).shape[0])
        return bool(4 * (self.used(slot) + extra) > (1 if slot in _MAPS else 3) * self.array(slot).shape[0])

    def bytes_of(self, slots: Iterable[int]) -> int:
        """Memory of some tables."""
        return sum(self.array(slot).nbytes for slot in slots)

    def bytes_used(self, slots: Iterable[int]) -> int:
        """Memory of what is in use of some tables, not counting buckets and maps."""
        return sum(self.get(slot).nbytes for slot in slots if slot not in _MAPS and slot not in _MAP_VALUES)

    def shrink(self, slots: Iterable[int], spare: int) -> None:
        """Give back what some tables do not use, but for one in ``spare`` elements; maps among them are empty."""
        for slot in slots:
            dtype, least, hashes = _SPECS[slot]
            if slot in _MAP_VALUES:
                continue
            if slot not in self._moved:
                if hashes < 0 and slot not in _MAPS:
                    self._resize(slot, min(self.capacity(slot), max(least, self.used(slot) + self.used(slot) // spare)))
                continue
            if hashes >= 0:
                # Buckets that were half full in a table of the greatest size are not made larger.
                size = min(_round_up(4 * (self.used(hashes) + 1)), len(self.array(slot)))
                new = np.empty(max(least, size), dtype)
                _rehash(self.array(hashes), self.used(hashes), new)
            elif slot in _MAPS:
                new = np.zeros(least, dtype)
                self._install(_MAPS[slot], np.empty(least, np.int32))
            else:
                new = self.array(slot)[: max(least, self.used(slot) + self.used(slot) // spare)].copy()
            self._install(slot, new)

    def grow(self) -> None:
        """Enlarge the table that the last kernel found too small, and those that would soon follow.

        A kernel that finds a table too small is run again from its start, so one such failure for all is cheaper.
        """
        slot, wanted = int(self.ctx[NEED_SLOT]), int(self.ctx[NEED_SIZE])
        slot = _MAP_VALUES.get(slot, slot)
        self._enlarge(slot, wanted)
        for sibling in _SIBLINGS.get(slot, ()):
            hashes = _SPECS[sibling][2]
            used = 2 * self.used(hashes) if hashes >= 0 else self.used(sibling)
            if sibling != slot and 3 * used > 2 * self.capacity(sibling):
                with contextlib.suppress(TablesFullError, MemoryError):  # it may never be too small
                    self._enlarge(sibling, 0)

    def _enlarge(self, slot: int, wanted: int) -> None:
        """Enlarge a table to at least ``wanted`` elements, and to twice its size where there is room for that."""
        dtype, _, hashes = _SPECS[slot]
        hashed = hashes >= 0 or slot in _MAPS
        capacity = self.capacity(slot)
        if hashed:
            size, most = _round_up(max(wanted, 2 * capacity)), 1 << (MOST_ELEMENTS.bit_length() - 1)
        else:
            size, most = max(wanted, 2 * capacity, 16), MOST_ELEMENTS
        if size > most:
            size = most
            if wanted > most or capacity >= most:
                raise _too_many_elements(slot)
        if not hashed and self.nbytes + self._extra_bytes(slot, size) > self.limit_bytes:
            size = min(max(wanted, capacity + capacity // 8), most)
        if self.nbytes + self._extra_bytes(slot, size) > self.limit_bytes:
            raise TablesFullError(
                f"the grammar needs more than {self.limit_bytes:,} bytes of tables (the {_NAMES[slot]} table "
                "is full); raise limit_bytes or simplify the grammar"
            )
        if not hashed and slot not in self._moved and size <= _MOST[slot]:
            self._resize(slot, size)
            return
        old = self.array(slot)
        if hashes >= 0:
            new = np.empty(size, dtype)
            _rehash(self.array(hashes), self.ctx[HEADER + 3 * hashes + 2], new)
        elif slot in _MAPS:
            new = np.empty(size, dtype)
            values_slot = _MAPS[slot]
            values = np.empty(size, np.int32)
            _rehash_map(old, self.array(values_slot), new, values)
            self._install(values_slot, values)
        else:
            self._extend(slot, old, size)
            return
        self._install(slot, new)

    def _extra_bytes(self, slot: int, size: int) -> int:
        """How much more memory the tables take while one of them is enlarged to ``size`` elements."""
        hashed = _SPECS[slot][2] >= 0 or slot in _MAPS
        addresses = len(self._reserves.get(slot, ())) if slot in self._moved else _MOST[slot]
        if not hashed and size <= addresses:
            return int((size - self.capacity(slot)) * _ITEM_BYTES[slot])
        return int(size * (_ITEM_BYTES[slot] + (_ITEM_BYTES[_MAPS[slot]] if slot in _MAPS else 0)))

    def _extend(self, slot: int, old: np.ndarray[Any, Any], size: int) -> None:
        """Enlarge a table to ``size`` elements; the first of them are those of ``old``."""
        reserve = self._reserves.get(slot)
        if reserve is None or reserve.shape[0] < size:
            # To copy a large table takes long, mostly to touch new pages for the first time, and one
            # step of one sequence has to wait for it.  Addresses are free until they are touched.
            spare = min(127 * size, _RESERVE_BYTES // old.itemsize) if size * old.itemsize >= _LARGE_BYTES else 0
            try:
                reserve = _addresses(size + spare, old.dtype) if spare else np.empty(size, old.dtype)
            except MemoryError:
                reserve = np.empty(size, old.dtype)  # there may be room for what is needed
            reserve[: old.shape[0]] = old
        self._install(slot, reserve[:size])
        self._reserves[slot] = reserve
