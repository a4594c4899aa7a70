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
from constrain.engine.storage.header import CLASSES, CTX
from constrain.engine.storage.jit import njit_allocating
from constrain.kernels.language import int64, types


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
    # Groups of bytes that stay together so far, numbered by their first byte.
    group = np.empty(256, np.int64)
    count, others = 0, -1
    for byte in range(256):
        if single[byte] or apart:
            group[byte] = count
            count += 1
            continue
        if others < 0:
            others = count
            count += 1
        group[byte] = others
    # What becomes of a group's bytes outside a set, and of those in it.
    parts = np.empty((256, 2), np.int64)
    for k in range(len(needed)):
        if not needed[k]:
            continue
        parts[:] = -1
        count = 0
        for byte in range(256):
            inside = (sets[k, byte >> 6] >> (byte & 63)) & 1
            if parts[group[byte], inside] < 0:
                parts[group[byte], inside] = count
                count += 1
            group[byte] = parts[group[byte], inside]
    ctx[CLASSES] = count
    size, groups = t.class_sizes(ctx), t.class_groups(ctx)
    for i in range(count):
        size[i] = groups[i] = 0
    for byte in range(255, -1, -1):
        class_of[byte] = group[byte]
        t.class_bytes(ctx)[group[byte]] = byte
        size[group[byte]] += 1
        groups[group[byte]] |= int64(1) << t.byte_group(ctx)[byte]
