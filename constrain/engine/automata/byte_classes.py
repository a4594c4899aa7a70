"""Byte classes: bytes that no lexeme tells apart.

A step is computed once per class instead of once per byte.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np

from constrain.engine.automata.expressions import ALL, CONCAT, INTERSECT, LITERAL, QUOTATION, SET, UNION
from constrain.engine.automata.programs import I32
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import used
from constrain.engine.storage.hashing import finish_hash, mix
from constrain.engine.storage.header import CLASSES, CTX
from constrain.engine.storage.jit import njit_allocating
from constrain.kernels.language import int64, types, uint64


@njit_allocating(types.void(CTX, I32, int64))
def make_byte_classes(ctx, registers, apart):
    """Partition the 256 bytes so that no literal and no set in some expressions tells two bytes of a class apart.

    ``registers`` (int32[n]) are the expressions.  With ``apart`` each byte is a class of its own, whatever lexemes may
    come later.
    """
    class_of = t.byte_classes(ctx)
    sets = t.byte_sets(ctx)
    single = np.zeros(256, np.uint8)
    needed = np.zeros(used(ctx, t.BYTE_SETS), np.uint8)
    data = t.literal_bytes(ctx)
    records = t.expressions(ctx)
    pool = t.children(ctx)
    # Other expressions may be there too.  An expression is made after its parts, so one pass down finds all.
    marks = np.zeros(used(ctx, t.EXPRESSION_HASHES), np.uint8)
    for i in range(len(registers)):
        marks[registers[i]] = 1
    quotes = False
    for expression in range(len(marks) - 1, -1, -1):
        if not marks[expression]:
            continue
        kind = records[expression].kind
        a, b = records[expression].first, records[expression].second
        if kind == LITERAL:
            for i in range(a, a + b):
                single[data[i]] = 1
        elif kind == SET:
            needed[a] = 1
        elif kind == QUOTATION:
            quotes = True
        elif kind == UNION or kind == INTERSECT:
            for i in range(a, a + b):
                marks[pool[i]] = 1
        elif kind > ALL:
            marks[a] = 1
            if kind == CONCAT:
                marks[b] = 1
    if quotes:
        for i in range(used(ctx, t.QUOTED_BYTES)):
            single[t.quoted_bytes(ctx)[i]] = 1
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
    size = t.class_sizes(ctx)
    groups = t.class_groups(ctx)
    for byte in range(256):
        if group[byte] == byte:
            size[count] = 0
            groups[count] = 0
            t.class_bytes(ctx)[count] = byte
            class_of[byte] = count
            count += 1
        else:
            class_of[byte] = class_of[group[byte]]
        size[class_of[byte]] += 1
        groups[class_of[byte]] |= int64(1) << t.byte_group(ctx)[byte]
    ctx[CLASSES] = count
