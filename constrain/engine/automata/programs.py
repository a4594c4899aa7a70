"""From the IR to the engine's tables: lexemes as expression nodes, rules as dotted symbols.

This is the only place in the engine that reads the IR.  What can never be part of a sentence is
removed here: lexemes that match nothing, and productions that contain such a lexeme or a
nonterminal that derives nothing.  So whatever the recognizer reaches can be completed.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate, chain, islice
from typing import Any

import numpy as np
from numba import int32, int64, types, uint8, uint64

from constrain.engine.automata.expressions import (
    ALL,
    COMPLEX_FLAG,
    CONCAT,
    EPSILON,
    INTERSECT,
    LITERAL,
    OP_CONCAT,
    OP_EMPTY,
    OP_FIT,
    OP_INTERSECT,
    OP_KEEP,
    OP_LITERAL,
    OP_NOT,
    OP_REPEAT,
    OP_SET,
    OP_STORE,
    OP_UNION,
    SET,
    UNION,
    is_live,
    is_nullable,
)
from constrain.engine.parser.earley_sets import BRANCH, END
from constrain.engine.storage.access import room, set_used, u8, used
from constrain.engine.storage.hashing import finish_hash, mix
from constrain.engine.storage.header import CLASSES, CTX, START_NT
from constrain.engine.storage.jit import njit_allocating, njit_entry, njit_inner
from constrain.engine.storage.links import F_DERIVATIVE, far_call
from constrain.engine.storage.schemas import (
    BRANCH_DOTS,
    BRANCHES,
    BYTE_SETS,
    DOT_LEFT,
    EXPRESSION_HASHES,
    LEXEMES,
    LIVENESS_STACK,
    NULLABLE,
    NULLABLE_REST,
    PREDICTED,
    RULE_STARTS,
    RULES,
    SYMBOLS,
    WORK_STACK,
    branch_dots,
    branches,
    byte_classes,
    byte_group,
    byte_sets,
    children,
    class_bytes,
    class_groups,
    class_sizes,
    dot_left,
    expressions,
    lexemes,
    literal_bytes,
    nullable,
    nullable_rest,
    predicted,
    rule_starts,
    rules,
    symbols,
)
from constrain.engine.storage.statuses import FAIL
from constrain.errors import LimitError
from constrain.grammar import ir as ir_module
from constrain.grammar.ir import GrammarIR
from constrain.grammar.regular import ByteSet, Concat, Empty, Intersect, Literal, Regular, Repeat, Union

Int32Array = np.ndarray[Any, np.dtype[np.int32]]
I32 = int32[::1]

assert BRANCH == ir_module.BRANCH

# How far a message about an empty grammar is followed into the rules.
_EXPLAIN_DEPTH, _EXPLAIN_WIDTH = 100, 4

# What may be repeated less often is not worth counting.
_MANY = 4
_N_ARY: dict[type[Regular], int] = {Concat: OP_CONCAT, Union: OP_UNION, Intersect: OP_INTERSECT}


class LexemeProgram:
    """The lexemes of a grammar as a postfix program for :func:`constrain.engine.automata.expressions.build_nodes`.

    Attributes
    ----------
    code : int32[n]
    literals : uint8[n]
        The bytes that LITERAL operations point into.
    sets : int64[4 * n]
        Byte sets, 256 bits each.
    registers : int
        How many registers the program uses; lexeme ``i`` ends in register ``first + i``.
    first : int
    counts : bool
        Whether it has something that fast/counted_masks.py is for.

    Parameters
    ----------
    lexemes : sequence of Regular
    before : LexemeProgram, optional
        A program that will have been run.  This one goes on with its registers, literals and sets.
    """

    def __init__(self, lexemes: Sequence[Regular], before: LexemeProgram | None = None) -> None:
        self._bytes: bytearray = bytearray() if before is None else before._bytes[:]
        self._sets: dict[int, int] = {} if before is None else before._sets.copy()
        self._set_bytes: bytes = b"" if before is None else before._set_bytes
        # By the identity of a node: the instruction that loads it.  They are held, so that no other takes its place.
        self._shared: dict[int, int] = {} if before is None else before._shared.copy()
        self._held: list[Any] = [before]
        self.registers: int = 0 if before is None else before.registers
        self.counts = False
        self.first = self.extend(lexemes)

    def extend(self, lexemes: Sequence[Regular]) -> int:
        """Make a program of further lexemes, the first of which ends in the register that is returned.

        It goes on with the registers as they were left; ``literals`` and ``sets`` hold those of all programs.
        """
        self._held.append(lexemes)
        self._code: list[int] = []
        first = self.registers
        self.registers += len(lexemes)
        code, load, write = self._code, self._shared.get, self._write
        for index, lexeme in enumerate(lexemes, first):
            known = load(id(lexeme))
            if known is not None:
                code += (known, OP_STORE, index)
                continue
            if type(lexeme) is Concat and len(lexeme.parts) == 3:
                # Something between two known parts: a key of an object.
                before, item, after = lexeme.parts
                opening, closing = load(id(before)), load(id(after))
                if opening is not None and closing is not None:
                    code.append(opening)
                    known = load(id(item))
                    if known is None:
                        write(item)
                    else:
                        code.append(known)
                    code += (closing, OP_CONCAT, 3, OP_STORE, index)
                    continue
            write(lexeme)
            code += (OP_STORE, index)
        try:
            self.code = as_int32(array("i", self._code))
        except OverflowError:
            raise LimitError("something is counted up to 2,147,483,648 or more; the most is 2,147,483,647") from None
        self.literals = np.frombuffer(bytes(self._bytes), np.uint8)
        new_sets = islice(self._sets, len(self._set_bytes) // 32, None)
        self._set_bytes += b"".join([bits.to_bytes(32, "little") for bits in new_sets])
        self.sets = np.frombuffer(self._set_bytes, "<i8")
        return first

    def _write(self, root: Regular) -> None:
        # Depth first with a stack of our own: an expression may be nested deeper than Python recurses.
        # This loop is a good part of the time that compiling takes, hence no calls for leaves, and what is
        # known is looked for first: most parts are characters that occurred before.
        code, data, sets = self._code, self._bytes, self._sets
        shared, n_ary = self._shared, _N_ARY.get
        load = shared.get
        stack: list[Any] = []
        node: Any = root
        while True:
            kind = type(node)
            operation = n_ary(kind)
            if operation is not None:
                # The same object often stands in many lexemes (any character, a JSON string).
                register = self.registers
                self.registers = register + 1
                shared[id(node)] = ~register
                if kind is Intersect and node.fits:
                    operation = OP_FIT
                    self.counts = True
                parts = node.parts
                loads: list[Any] = [load(id(part)) for part in parts]
                if None in loads:
                    loaded = loads.index(None)
                    code += loads[:loaded]
                    stack.append((operation, len(parts), OP_KEEP, register))
                    stack += parts[: loaded - 1 : -1] if loaded else parts[::-1]
                else:
                    code += loads
                    code += (operation, len(parts), OP_KEEP, register)
            elif kind is Literal:
                code += (OP_LITERAL, len(data), len(node.data))
                data += node.data
            elif kind is ByteSet:
                code += (OP_SET, sets.setdefault(node.bits, len(sets)))
            elif kind is Empty:
                code.append(OP_EMPTY)
            else:
                register = self.registers
                self.registers = register + 1
                shared[id(node)] = ~register
                if kind is Repeat:
                    if node.high is not None and node.high >= _MANY and type(node.item) is Concat:
                        self.counts = True
                    stack.append((OP_REPEAT, node.low, -1 if node.high is None else node.high, OP_KEEP, register))
                else:
                    stack.append((OP_NOT, OP_KEEP, register))
                stack.append(node.item)
            while stack:
                node = stack.pop()
                if type(node) is tuple:
                    code += node
                    continue
                known = load(id(node))
                if known is None:
                    break
                code.append(known)
            else:
                return


@njit_allocating(types.void(CTX, I32, int64))
def make_byte_classes(ctx, registers, apart):  # type: ignore[no-untyped-def]
    """Partition the 256 bytes so that no literal and no set in some nodes tells two bytes of a class apart.

    ``registers`` (int32[n]) are the nodes.  With ``apart`` each byte is a class of its own, whatever lexemes may come
    later.
    """
    class_of = byte_classes(ctx)
    sets = byte_sets(ctx)
    single = np.zeros(256, np.uint8)
    needed = np.zeros(used(ctx, BYTE_SETS) // 4, np.uint8)
    data = literal_bytes(ctx)
    nodes = expressions(ctx)
    pool = children(ctx)
    # There may be nodes that these do not lead to.  A node is made after its parts, so one pass down finds all.
    marks = np.zeros(used(ctx, EXPRESSION_HASHES), np.uint8)
    for i in range(len(registers)):
        marks[registers[i]] = 1
    for node in range(len(marks) - 1, -1, -1):
        if not marks[node]:
            continue
        kind = nodes[node].kind
        a, b = nodes[node].first, nodes[node].second
        if kind == LITERAL:
            for i in range(a, a + b):
                single[data[i]] = 1
        elif kind == SET:
            needed[a] = 1
        elif kind == UNION or kind == INTERSECT:
            for i in range(a, a + b):
                marks[pool[i]] = 1
        elif kind > ALL:
            marks[a] = 1
            if kind == CONCAT:
                marks[b] = 1
    group = np.zeros(256, np.int64)
    for byte in range(256):
        if single[byte] or apart:
            group[byte] = byte + 1
    # Sets are looked at 64 at a time: which of them hold a byte is then one number.
    inside = np.empty(256, np.uint64)
    slots = np.empty(1024, np.int64)
    first = np.empty(256, np.int64)
    k = 0
    while True:
        for byte in range(256):
            inside[byte] = 0
        bit = 0
        while k < len(needed) and bit < 64:
            if needed[k]:
                for word in range(4):
                    bits = uint64(sets[k, word])
                    for i in range(64):
                        inside[64 * word + i] |= ((bits >> uint64(i)) & uint64(1)) << uint64(bit)
                bit += 1
            k += 1
        # Bytes of a group stay together if the same sets hold them; groups are numbered by their first byte.
        for i in range(len(slots)):
            slots[i] = -1
        for byte in range(256):
            i = finish_hash(mix(mix(0, group[byte]), int64(inside[byte]))) & 1023
            while slots[i] >= 0:
                other = slots[i]
                if inside[other] == inside[byte] and group[other] == group[byte]:
                    break
                i = (i + 1) & 1023
            if slots[i] < 0:
                slots[i] = byte
            first[byte] = slots[i]
        for byte in range(256):
            group[byte] = first[byte]
        if k == len(needed):
            break
    count = 0
    size = class_sizes(ctx)
    groups = class_groups(ctx)
    for byte in range(256):
        if group[byte] == byte:
            size[count] = 0
            groups[count] = 0
            class_bytes(ctx)[count] = byte
            class_of[byte] = count
            count += 1
        else:
            class_of[byte] = class_of[group[byte]]
        size[class_of[byte]] += 1
        groups[class_of[byte]] |= int64(1) << byte_group(ctx)[byte]
    ctx[CLASSES] = count


@njit_entry(int64(CTX, I32, int64))
def describe_lexemes(ctx, registers, first):  # type: ignore[no-untyped-def]
    """Fill the LEXEMES table from ``first`` on (node, matches the empty string, matches anything else).

    ``registers`` (int32[n]) are the nodes.  Returns 0, FAIL or LIMIT.
    """
    set_used(ctx, WORK_STACK, 0)
    set_used(ctx, LIVENESS_STACK, 0)
    all_lexemes = lexemes(ctx)
    for lexeme in range(first, first + len(registers)):
        node = int64(registers[lexeme - first])
        nullable = is_nullable(ctx, node)
        consumes = int64(node != EPSILON)
        if not nullable:
            consumes = is_live(ctx, node)
            if consumes < 0:
                return consumes
        elif expressions(ctx)[node].flags & COMPLEX_FLAG:
            consumes = int64(0)
            for k in range(ctx[CLASSES]):
                after = far_call(ctx, F_DERIVATIVE, node, class_bytes(ctx)[k])
                if after < 0:
                    return after
                consumes = is_live(ctx, after)
                if consumes != 0:
                    break
            if consumes < 0:
                return consumes
        all_lexemes[lexeme].expression = node
        all_lexemes[lexeme].is_nullable = nullable
        all_lexemes[lexeme].consumes = consumes
    return int64(0)


@njit_allocating(types.void(I32, I32, I32, uint8[::1], uint8[::1]), inner=True)
def _least_fixpoint(left, offsets, symbols, lexeme_has, has):  # type: ignore[no-untyped-def]
    """Mark the nonterminals with a production all of whose symbols have the property.

    Parameters
    ----------
    left : int32[P]
        Left-hand side of each production.
    offsets, symbols : int32[P + 1], int32[n]
        Right-hand sides.
    lexeme_has : uint8[L]
        Which lexemes have the property.
    has : uint8[N]
        Output, zeroed: which nonterminals have it.  Linear time: a production is looked at once
        per symbol (Dowling and Gallier, 1984).
    """
    n_productions = len(left)
    missing = np.zeros(n_productions, np.int32)
    heads = np.zeros(len(has) + 1, np.int32)
    for p in range(n_productions):
        for i in range(offsets[p], offsets[p + 1]):
            if symbols[i] >= 0:
                heads[symbols[i] + 1] += 1
                missing[p] += 1
            elif not lexeme_has[~symbols[i]]:
                missing[p] = -1 << 30
    for k in range(len(has)):
        heads[k + 1] += heads[k]
    where = np.empty(max(1, heads[len(has)]), np.int32)
    fill = heads.copy()
    for p in range(n_productions):
        for i in range(offsets[p], offsets[p + 1]):
            if symbols[i] >= 0:
                where[fill[symbols[i]]] = p
                fill[symbols[i]] += 1
    queue = np.empty(max(1, len(has)), np.int32)
    n = 0
    for p in range(n_productions):
        if missing[p] == 0 and not has[left[p]]:
            has[left[p]] = 1
            queue[n] = left[p]
            n += 1
    while n > 0:
        n -= 1
        symbol = queue[n]
        for k in range(heads[symbol], heads[symbol + 1]):
            p = where[k]
            missing[p] -= 1
            if missing[p] == 0 and not has[left[p]]:
                has[left[p]] = 1
                queue[n] = left[p]
                n += 1


@njit_inner(types.void(CTX, int64))
def _mark_nullable_rests(ctx, first):  # type: ignore[no-untyped-def]
    """Fill NULLABLE_REST from dot ``first`` on; no branch derives the empty string."""
    all_symbols = symbols(ctx)
    rest = nullable_rest(ctx)
    for dot in range(used(ctx, SYMBOLS) - 1, first - 1, -1):
        symbol = all_symbols[dot]
        if symbol == END:
            rest[dot] = 1
        elif symbol >= BRANCH:
            rest[dot] = 0
        elif symbol >= 0:
            rest[dot] = rest[dot + 1] and nullable(ctx)[symbol]
        else:
            rest[dot] = rest[dot + 1] and lexemes(ctx)[~symbol].is_nullable


@njit_allocating(int64(CTX, I32, I32, I32, uint8[::1], int64, I32))
def flatten_rules(ctx, left, offsets, all_symbols, productive, start, unfolded):  # type: ignore[no-untyped-def]
    """Write the productive productions to the rule tables, which are large enough; returns 1 if start is productive.

    Dot 0 begins the added production of the start rule, whose nonterminal is ``len(productive)``.  The rules of
    ``unfolded[i]`` say whether it derives anything; instead of them it gets the one that is branch ``i``, to be made.
    """
    all_lexemes = lexemes(ctx)
    n_lexemes = used(ctx, LEXEMES) // 3
    n_rules = len(productive)
    has = np.zeros(n_lexemes, np.uint8)
    for i in range(n_lexemes):
        has[i] = all_lexemes[i].is_nullable or all_lexemes[i].consumes
    _least_fixpoint(left, offsets, all_symbols, has, productive)
    if not productive[start]:
        return int64(0)
    all_nullable = u8(ctx, NULLABLE)
    for i in range(n_rules + 1):
        all_nullable[i] = 0
    for i in range(n_lexemes):
        has[i] = all_lexemes[i].is_nullable
    _least_fixpoint(left, offsets, all_symbols, has, all_nullable[:n_rules])
    all_nullable[n_rules] = all_nullable[start]
    ctx[START_NT] = n_rules

    out = symbols(ctx)
    all_dot_left = dot_left(ctx)
    out[0], out[1] = start, END
    all_dot_left[0] = all_dot_left[1] = n_rules
    all_rules = rules(ctx)
    starts = rule_starts(ctx)
    marks = predicted(ctx)
    for rule in range(n_rules + 2):
        all_rules[rule] = 0
    for rule in range(n_rules + 1):
        marks[rule] = 0
    keep = np.zeros(len(left), np.uint8)
    branch_of = np.empty(n_rules, np.int32)
    for rule in range(n_rules):
        branch_of[rule] = -1
    all_branches = branches(ctx)
    for i in range(len(unfolded)):
        branch_of[unfolded[i]] = i
        all_branches[i].first = 0
        all_branches[i].count = -1
        all_branches[i].left = unfolded[i]
        all_branches[i].kind = 0
    set_used(ctx, BRANCHES, 4 * len(unfolded))
    for p in range(len(left)):
        if branch_of[left[p]] >= 0:
            continue
        usable = True
        for i in range(offsets[p], offsets[p + 1]):
            symbol = all_symbols[i]
            if symbol >= 0:
                usable = usable and productive[symbol] != 0
            else:
                usable = usable and (all_lexemes[~symbol].is_nullable or all_lexemes[~symbol].consumes)
        if usable:
            keep[p] = 1
            all_rules[left[p] + 1] += 1
    for i in range(len(unfolded)):
        all_rules[unfolded[i] + 1] += productive[unfolded[i]]
    for rule in range(n_rules + 1):
        all_rules[rule + 1] += all_rules[rule]
    fill = np.empty(n_rules + 1, np.int32)
    for rule in range(n_rules + 1):
        fill[rule] = all_rules[rule]
    n = 2
    for p in range(len(left)):
        if keep[p]:
            starts[fill[left[p]]] = n
            fill[left[p]] += 1
            for i in range(offsets[p], offsets[p + 1]):
                out[n] = all_symbols[i]
                all_dot_left[n] = left[p]
                n += 1
            out[n] = END
            all_dot_left[n] = left[p]
            n += 1
    for i in range(len(unfolded)):
        if productive[unfolded[i]]:
            starts[all_rules[unfolded[i]]] = n
            out[n] = BRANCH + i
            out[n + 1] = END
            all_dot_left[n] = all_dot_left[n + 1] = unfolded[i]
            n += 2
    for slot in (SYMBOLS, DOT_LEFT, NULLABLE_REST):
        set_used(ctx, slot, n)
    set_used(ctx, RULES, n_rules + 2)
    set_used(ctx, RULE_STARTS, all_rules[n_rules + 1])
    set_used(ctx, NULLABLE, n_rules + 1)
    set_used(ctx, PREDICTED, n_rules + 1)
    _mark_nullable_rests(ctx, int64(0))
    return int64(1)


@njit_entry(int64(CTX, int64, I32))
def add_branch(ctx, branch, all_symbols):  # type: ignore[no-untyped-def]
    """Give a branch its rules.

    Parameters
    ----------
    ctx : int64[...]
    branch : int
        One that has no rules yet.
    symbols : int32[n]
        The right-hand sides as in SYMBOLS, each with END behind it.

    Returns
    -------
    0, or FAIL
    """
    n = len(all_symbols)
    count = 0
    for i in range(n):
        count += all_symbols[i] == END
    if not room(ctx, SYMBOLS, n) or not room(ctx, DOT_LEFT, n) or not room(ctx, NULLABLE_REST, n):
        return int64(FAIL)
    if not room(ctx, BRANCH_DOTS, count):
        return int64(FAIL)
    records = branches(ctx)
    left = records[branch].left
    first_dot = used(ctx, SYMBOLS)
    first = used(ctx, BRANCH_DOTS)
    dots = branch_dots(ctx)
    begins = True
    k = first
    for i in range(n):
        symbols(ctx)[first_dot + i] = all_symbols[i]
        dot_left(ctx)[first_dot + i] = left
        if begins:
            dots[k] = first_dot + i
            k += 1
        begins = all_symbols[i] == END
    for slot in (SYMBOLS, DOT_LEFT, NULLABLE_REST):
        set_used(ctx, slot, first_dot + n)
    set_used(ctx, BRANCH_DOTS, first + count)
    _mark_nullable_rests(ctx, first_dot)
    records[branch].first = first
    records[branch].count = count
    return int64(0)


def rule_arrays(ir: GrammarIR) -> tuple[Int32Array, Int32Array, Int32Array]:
    """The productions as flat arrays: left-hand sides, offsets, symbols."""
    # An array() is filled in a third of the time that numpy takes, and numpy reads it where it is.
    productions = ir.productions
    left, right = zip(*productions, strict=True) if productions else ((), ())
    offsets = array("i", accumulate(map(len, right), initial=0))
    symbols = array("i", chain.from_iterable(right))
    return as_int32(array("i", left)), as_int32(offsets), as_int32(symbols)


def as_int32(numbers: array[int]) -> Int32Array:
    """The same memory as a numpy array."""
    return np.frombuffer(numbers, np.int32) if numbers else np.empty(0, np.int32)


def explain_empty(
    ir: GrammarIR, productive: np.ndarray[Any, np.dtype[np.uint8]], usable: list[bool]
) -> tuple[str, str]:
    """Why the start rule derives nothing: (reason, name of the innermost named rule at fault)."""
    rules: dict[int, list[tuple[int, ...]]] = {}
    for left, right in ir.productions:
        rules.setdefault(left, []).append(right)

    # None while a symbol is being explained: that it leads back to itself is not what is wrong with it.
    known: dict[int, tuple[str, str] | None] = {}

    def explain(symbol: int, place: str, depth: int) -> tuple[str, str] | None:
        if symbol < 0:
            name = ir.lexeme_names[~symbol]
            return (f"{name} matches no text" if name else "a part of it matches no text"), place
        place = ir.nonterminal_names[symbol] or place
        if symbol in known:
            return known[symbol]
        known[symbol] = None
        if depth == 0:
            return "nothing can match", place
        alternatives = rules.get(symbol, [])
        if not alternatives:
            return "it has no production", place
        # Each alternative has a first symbol that nothing can match.  If all faults are one, that is it.
        faults = {
            explain(next(s for s in right if (not productive[s] if s >= 0 else not usable[~s])), place, depth - 1)
            for right in alternatives[:_EXPLAIN_WIDTH]
        } - {None}
        if not faults:
            known[symbol] = "it can only repeat itself for ever", place
        elif len(faults) == 1 and len(alternatives) <= _EXPLAIN_WIDTH:
            known[symbol] = faults.pop()
        else:
            known[symbol] = "none of its alternatives can match", place
        return known[symbol]

    return explain(ir.start, "", _EXPLAIN_DEPTH) or ("nothing can match", "")
