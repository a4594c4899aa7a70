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
from constrain.engine.storage.access import i64, room, set_used, used
from constrain.engine.storage.bits import count_bits, lowest_bit
from constrain.engine.storage.hashing import sort_keys
from constrain.engine.storage.header import CTX, RESULT1, RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.statuses import FAIL
from constrain.kernels.language import int64

_MANY_ORIGINS = 16
"""From so many origins on those of a dot may be kept as a set, if it has no more words than origins."""


# Fields of a record in ORIGIN_SETS, one for each dot of the Earley set's core, and of the size of a cache line: where
# its words begin; how many there are (0: no set is kept); the word of the 64 lowest origins; the least and the greatest
# origin; whether all between are in it; where the items with this dot begin, and how many there are.
SET_BEGIN, SET_WORDS, SET_FIRST, SET_LEAST, SET_GREATEST, SET_IS_FULL, SET_ITEMS, SET_COUNT = range(8)


SET_FIELDS = 8


# Fields of the record of a set that is under way, in NEW_SETS: its dot, or behind all dots the rule that ended with
# these origins; where its words begin in NEW_WORDS, the first of which is that of Earley set 0; the first of them that
# is used, and behind the last; origins between which all are in it.
NEW_DOT, NEW_BEGIN, NEW_LOW, NEW_HIGH, NEW_FULL_FROM, NEW_FULL_TO = range(6)


@njit_inner(int64(CTX, int64, int64, int64))
def make_origin_sets(ctx, offset, count, dots):
    """The place in ORIGIN_SETS of the sets of an Earley set with the sorted items ``EARLEY_ITEMS[offset:][:count]``.

    ``dots`` is how many different ones they have.  Returns -1 if no dot has many origins; FAIL if there is no room.
    """
    if count < _MANY_ORIGINS:
        return int64(-1)
    pool = t.earley_items(ctx)
    place = used(ctx, t.ORIGIN_SETS)
    begin = place + SET_FIELDS * dots
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
                sets = t.origin_sets(ctx)
                record = place + SET_FIELDS * source
                sets[record + SET_BEGIN] = begin + total
                sets[record + SET_WORDS] = words
                sets[record + SET_FIRST] = least >> 6
                sets[record + SET_LEAST] = least
                sets[record + SET_GREATEST] = greatest
                sets[record + SET_IS_FULL] = int64(greatest - least + 1 == i - first)
                sets[record + SET_ITEMS] = first
                sets[record + SET_COUNT] = i - first
                for j in range(begin + total, begin + total + words):
                    sets[j] = 0
                if words:
                    shift = begin + total - (least >> 6)
                    for j in range(first, i):
                        origin = pool[j].origin
                        sets[shift + (origin >> 6)] |= int64(1) << (origin & 63)
            total += words
        if total == 0:
            return int64(-1)
        total = (total + SET_FIELDS - 1) // SET_FIELDS * SET_FIELDS
        if not room(ctx, t.ORIGIN_SETS, SET_FIELDS * dots + total):
            return int64(FAIL)
        if fills:
            set_used(ctx, t.ORIGIN_SETS, begin + total)
    return place


@njit_inner(RESULT2)
def origin_set_of(ctx, earley_set, source):
    """The place in ORIGIN_SETS of the record of the origins that (Earley set, source) stands for, or -1."""
    if source == SELF:
        return int64(-1)
    place = t.origin_sets_at(ctx)[earley_set]
    if place < 0:
        return int64(-1)
    place += SET_FIELDS * source
    return place if t.origin_sets(ctx)[place + SET_WORDS] else int64(-1)


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
    if 0 <= known < end and known % 6 == 0 and records[known + NEW_DOT] == dot:
        return known
    if not may_make:
        return int64(-1)
    words = (used(ctx, t.EARLEY_SET_HASHES) >> 6) + 1
    if not room(ctx, t.NEW_SETS, 6) or not room(ctx, t.NEW_WORDS, words):
        return int64(FAIL)
    begin = used(ctx, t.NEW_WORDS)
    new = t.new_words(ctx)
    for i in range(begin, begin + words):
        new[i] = 0
    set_used(ctx, t.NEW_WORDS, begin + words)
    records[end + NEW_DOT] = dot
    records[end + NEW_BEGIN] = begin
    records[end + NEW_LOW] = words
    records[end + NEW_HIGH] = 0
    records[end + NEW_FULL_FROM] = 1
    records[end + NEW_FULL_TO] = 0
    set_used(ctx, t.NEW_SETS, end + 6)
    t.set_of_dot(ctx)[dot] = end
    return end


@njit_inner(int64(CTX, int64, int64, int64))
def add_word(ctx, new_set, word, bits):
    """Add the origins ``bits``, the lowest of which is Earley set ``64 * word``, to NEW_SETS[new_set:].

    Returns those that were not in it.
    """
    records = t.new_sets(ctx)
    words = t.new_words(ctx)
    place = records[new_set + NEW_BEGIN] + word
    bits &= ~words[place]
    words[place] |= bits
    records[new_set + NEW_LOW] = min(records[new_set + NEW_LOW], word)
    records[new_set + NEW_HIGH] = max(records[new_set + NEW_HIGH], word + 1)
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
            word = origin >> 6
            words[records[known + NEW_BEGIN] + word] |= int64(1) << (origin & 63)
            records[known + NEW_LOW] = min(records[known + NEW_LOW], word)
            records[known + NEW_HIGH] = max(records[known + NEW_HIGH], word + 1)
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
    if not room(ctx, t.KERNEL_ITEMS, end // 6):
        return int64(FAIL)
    for record in range(0, end, 6):
        dot = records[record + NEW_DOT]
        if dot < used(ctx, t.SYMBOLS):
            keys[rest + dots] = dot << 32 | record
            dots += 1
            begin = records[record + NEW_BEGIN]
            for word in range(begin + records[record + NEW_LOW], begin + records[record + NEW_HIGH]):
                count += count_bits(words[word])
    sort_keys(keys[rest:], dots)
    # The result is made behind what there is, and then moved.
    out = rest + dots
    if not room(ctx, t.KERNEL_ITEMS, dots + count):
        return int64(FAIL)
    taken = int64(0)
    for j in range(dots):
        dot, record = keys[rest + j] >> 32, keys[rest + j] & 0x7FFFFFFF
        while taken < rest and keys[taken] >> 32 < dot:
            keys[out] = keys[taken]
            out += 1
            taken += 1
        begin = records[record + NEW_BEGIN]
        for word in range(records[record + NEW_LOW], records[record + NEW_HIGH]):
            bits = words[begin + word]
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
