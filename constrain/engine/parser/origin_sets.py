"""Origin sets: the origins of a dot in an Earley set as a set of bits, where they are many.

In an ambiguous grammar an Earley set may have an item for each earlier one, and a completion in each of those adds as
many: the cube of the text's length.  With sets completions add 64 origins at a time, and none where all between the
least and the greatest are there already, as they are when every part of a text can be read as the same thing.  A rule
that ends is completed for 64 origins at a time too (completion.py).
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.parser.cores import SELF
from constrain.engine.parser.kernel_items import drop_repeated
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import i64, room, set_used, take, used
from constrain.engine.storage.bits import count_bits, lowest_bit
from constrain.engine.storage.hashing import sort_keys
from constrain.engine.storage.header import CTX, RESULT1, RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.statuses import FAIL
from constrain.kernels.language import int64

_MANY_ORIGINS = 16
"""From so many origins on those of a dot may be kept as a set, if it has no more words than origins."""


@njit_inner(int64(CTX, int64, int64, int64))
def make_origin_sets(ctx, offset, count, dots):
    """The place in ORIGIN_SETS of the sets of an Earley set with the sorted items ``EARLEY_ITEMS[offset:][:count]``.

    ``dots`` is how many different ones they have.  Returns -1 if no dot has many origins; FAIL if there is no room.
    """
    if count < _MANY_ORIGINS:
        return int64(-1)
    pool = t.earley_items(ctx)
    place, begin = used(ctx, t.ORIGIN_SETS), used(ctx, t.ORIGIN_WORDS)
    for fills in range(2):
        total = int64(0)
        i = offset
        for source in range(dots):
            first = i
            while i < offset + count and pool[i].dot == pool[first].dot:
                i += 1
            least, greatest = pool[first].origin, pool[i - 1].origin
            words = (greatest >> 6) - (least >> 6) + 1
            if i - first < _MANY_ORIGINS or words > i - first:
                words = int64(0)
            if fills:
                at, is_full = begin + total, int64(greatest - least + 1 == i - first)
                t.origin_sets(ctx)[place + source] = at, words, least >> 6, least, greatest, is_full, first, i - first
                kept = t.origin_words(ctx)
                for j in range(at, at + words):
                    kept[j] = 0
                for j in range(first, i if words else first):
                    origin = pool[j].origin
                    kept[at + (origin >> 6) - (least >> 6)] |= int64(1) << (origin & 63)
            total += words
        if total == 0:
            return int64(-1)
        if not room(ctx, t.ORIGIN_SETS, dots) or not room(ctx, t.ORIGIN_WORDS, total):
            return int64(FAIL)
        if fills:
            set_used(ctx, t.ORIGIN_SETS, place + dots)
            set_used(ctx, t.ORIGIN_WORDS, begin + total)
    return place


@njit_inner(RESULT2)
def origin_set_of(ctx, earley_set, source):
    """The place in ORIGIN_SETS of the record of the origins that (Earley set, source) stands for, or -1."""
    if source == SELF:
        return int64(-1)
    place = t.origin_sets_at(ctx)[earley_set]
    if place < 0:
        return int64(-1)
    return place + source if t.origin_sets(ctx)[place + source].words else int64(-1)


@njit_inner(RESULT2)
def new_set_of(ctx, dot, may_make):
    """The place in NEW_SETS of a dot's origins in the Earley set under way; FAIL if there is no room.

    If there is none, it is made, or without ``may_make`` -1.  SET_OF_DOT needs no clearing (sparse sets, as in
    drop_repeated).
    """
    if not room(ctx, t.SET_OF_DOT, used(ctx, t.SYMBOLS) + used(ctx, t.RULES)):
        return int64(FAIL)
    records = t.new_sets(ctx)
    end = used(ctx, t.NEW_SETS)
    known = t.set_of_dot(ctx)[dot]
    if 0 <= known < end and records[known].dot == dot:
        return known
    if not may_make:
        return int64(-1)
    words = (used(ctx, t.EARLEY_SET_HASHES) >> 6) + 1
    if not room(ctx, t.NEW_SETS, 1) or not room(ctx, t.NEW_WORDS, words):
        return int64(FAIL)
    begin = take(ctx, t.NEW_WORDS, words)
    new = t.new_words(ctx)
    for i in range(begin, begin + words):
        new[i] = 0
    records[end] = dot, begin, words, 0, 1, 0
    set_used(ctx, t.NEW_SETS, end + 1)
    t.set_of_dot(ctx)[dot] = end
    return end


@njit_inner(int64(CTX, int64, int64, int64))
def add_word(ctx, new_set, word, bits):
    """Add the origins ``bits``, the lowest of which is Earley set ``64 * word``, to NEW_SETS[new_set].

    Returns those that were not in it.
    """
    record, words = t.new_sets(ctx)[new_set], t.new_words(ctx)
    place = record.begin + word
    bits &= ~words[place]
    words[place] |= bits
    record.low, record.high = min(record.low, word), max(record.high, word + 1)
    return bits


@njit_inner(RESULT1)
def gather_sets(ctx, items):
    """Put the items of NEW_SETS among those in KERNEL_ITEMS[:items], all of them in order; returns how many, or FAIL.

    As long as that takes no more than a few words for each item, items become sets, which need not be sorted.
    """
    keys = i64(ctx, t.KERNEL_ITEMS)
    records = t.new_sets(ctx)
    words = t.new_words(ctx)
    spare = used(ctx, t.NEW_WORDS) + 4 * items - (used(ctx, t.EARLEY_SET_HASHES) >> 6)
    rest = int64(0)
    for i in range(items):
        dot, origin = keys[i] >> 32, keys[i] & 0x7FFFFFFF
        known = new_set_of(ctx, dot, used(ctx, t.NEW_WORDS) < spare)
        if known == FAIL:
            return known
        if known >= 0:
            add_word(ctx, known, origin >> 6, int64(1) << (origin & 63))
        else:
            keys[rest] = keys[i]
            rest += 1
    end = used(ctx, t.NEW_SETS)
    rest = drop_repeated(ctx, int64(0), rest)
    if rest < 0:
        return rest
    sort_keys(keys, rest)
    count = int64(rest)
    dots = int64(0)
    set_used(ctx, t.KERNEL_ITEMS, rest)
    if not room(ctx, t.KERNEL_ITEMS, end):
        return int64(FAIL)
    for place in range(end):
        record = records[place]
        if record.dot < used(ctx, t.SYMBOLS):
            keys[rest + dots] = record.dot << 32 | place
            dots += 1
            for word in range(record.begin + record.low, record.begin + record.high):
                count += count_bits(words[word])
    sort_keys(keys[rest:], dots)
    # The result is made behind what there is, and then moved.
    out = rest + dots
    if not room(ctx, t.KERNEL_ITEMS, dots + count):
        return int64(FAIL)
    taken = int64(0)
    for j in range(dots):
        dot, record = keys[rest + j] >> 32, records[keys[rest + j] & 0x7FFFFFFF]
        while taken < rest and keys[taken] >> 32 < dot:
            keys[out] = keys[taken]
            out += 1
            taken += 1
        for word in range(record.low, record.high):
            bits = words[record.begin + word]
            key = dot << 32 | 64 * word
            while bits:
                bit = lowest_bit(bits)
                keys[out] = key + bit
                out += 1
                bits ^= int64(1) << bit
    while taken < rest:
        keys[out] = keys[taken]
        out += 1
        taken += 1
    for i in range(count):
        keys[i] = keys[rest + dots + i]
    set_used(ctx, t.KERNEL_ITEMS, count)
    return count
