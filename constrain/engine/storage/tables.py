"""The memory of a compiled grammar: flat growable tables, reached through one array.

A kernel needs some forty arrays.  Handing forty arrays to a jitted function costs more than the work it does, so a
kernel gets one: ``ctx`` (header.py), which holds for each table the address of its data, its capacity and how much of
it is in use.

Who owns what: a :class:`Tables` object owns the arrays and is the only one that replaces them.  A kernel that runs out
of room calls :func:`~constrain.engine.storage.access.room`, which notes the table in ``ctx``, and returns ``FAIL``;
the caller (Python) then calls :meth:`Tables.grow` and runs the kernel again from the start.  Kernels therefore only
ever *add* finished entries, so that running one twice is harmless.

Locking: everything here is guarded by the lock of the compiled grammar
(:class:`constrain.engine.compiled_grammar.CompiledGrammar`); no kernel runs on a ``ctx`` without it.
"""

from __future__ import annotations

import contextlib
import mmap
import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from constrain.engine.storage import links
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import set_used
from constrain.engine.storage.hashing import rehash, rehash_map
from constrain.engine.storage.header import CTX, FIRST_LINK, HEADER, MOST_ELEMENTS, NEED_SIZE, NEED_SLOT, NEW_MASK
from constrain.engine.storage.jit import njit_entry
from constrain.errors import LimitError
from constrain.kernels.language import int64, uint64

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
    for slot in range(t.N_SLOTS):
        ctx[HEADER + 3 * slot] += address
    for i in range(len(far)):
        ctx[FIRST_LINK + i] = far[i]
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


_ITEM_BYTES = [element.itemsize for element in t.ELEMENTS]

_COUNTED_BYTES = np.array(
    [
        size if hashes < 0 and slot not in t.MAPS and slot not in t.MAP_VALUES else 0
        for slot, (size, (_, _, hashes)) in enumerate(zip(_ITEM_BYTES, t.SPECS, strict=True))
    ]
)
"""Bytes of an element of tables that are written to from the beginning on, as far as they are in use; 0 for others."""

_NEVER_EMPTIED = np.zeros(t.N_SLOTS, np.int64)


@njit_entry(int64(CTX, _I64, _I64))
def _untouched_bytes(ctx, touched, sizes):  # type: ignore[no-untyped-def]
    """How many bytes of tables nobody has written to.

    A kernel, since numpy takes 30 us for the same where it was not called recently.

    Parameters
    ----------
    ctx : int64[...]
    touched : int64[N_SLOTS]
        How many elements of tables that were emptied have been written to.
    sizes : int64[N_SLOTS]
        Bytes of an element; 0 for tables that do not count.
    """
    untouched = int64(0)
    for slot in range(t.N_SLOTS):
        room = ctx[HEADER + 3 * slot + 1]
        written = max(ctx[HEADER + 3 * slot + 2], touched[slot])
        if 0 < written < room:
            untouched += (room - written) * sizes[slot]
    return untouched


_BUCKETS = [slot for slot, spec in enumerate(t.SPECS) if spec[2] >= 0]
_HASHED = frozenset((*_BUCKETS, *t.MAPS))
"""Buckets, and the keys of maps."""


class _Layout(NamedTuple):
    """Where the tables are in the one buffer that a new Tables allocates; in bytes, but for ``most``."""

    offsets: list[int]
    """Where each table begins."""
    rooms: list[int]
    """Where its room is that it gets when it grows."""
    most: list[int]
    """How many elements there are addresses for."""
    minus_one_end: int
    """The end of the part to fill with -1."""
    zero_end: int
    """And of the part to fill with 0."""
    small_end: int
    """The end of the tables that are small at first."""
    size: int


def _lay_out() -> _Layout:
    hashed = {*_BUCKETS, *t.MAPS, *t.MAP_VALUES}
    large = [slot for slot in range(t.N_SLOTS) if slot not in hashed and _initial_bytes(slot) >= _LARGE_AT_FIRST]
    large += _LEAST_ROOM
    rest = [slot for slot in range(t.N_SLOTS) if slot not in _HASHED and slot not in large]
    roomy = [slot for slot in rest if slot not in hashed and _initial_bytes(slot) >= _ROOMY_AT_FIRST]
    offsets = [0] * t.N_SLOTS
    most = [capacity for _, capacity, _ in t.SPECS]
    ends = []
    end = 0
    # Small ones side by side, so that a small grammar touches few pages.
    for slots in (_BUCKETS, list(t.MAPS), rest):
        for slot in slots:
            offsets[slot] = end
            end += -(-_initial_bytes(slot) // 64) * 64
        ends.append(end)
    rooms = offsets.copy()
    for slot in (*large, *roomy):
        end = -(-end // mmap.PAGESIZE) * mmap.PAGESIZE
        rooms[slot] = end
        most[slot] = max(_ROOM * most[slot], _LEAST_ROOM.get(slot, 0))
        end += most[slot] * _ITEM_BYTES[slot]
    for slot in large:
        offsets[slot] = rooms[slot]
    minus_one_end, zero_end, small_end = ends
    return _Layout(offsets, rooms, most, minus_one_end, zero_end, small_end, -(-end // 64) * 64)


def _initial_bytes(slot: int) -> int:
    return int(t.SPECS[slot][1] * _ITEM_BYTES[slot])


# A table that begins with so many bytes has addresses to become so many times as large: it is there from the beginning
# if it is large, and moves there when it grows if it is not.
_LARGE_AT_FIRST, _ROOMY_AT_FIRST, _ROOM = 1 << 12, 1 << 9, 16


# Tables that are as large as the vocabulary, or its tokens; these are elements.
_LEAST_ROOM = {t.DENSE_MASKS: 1 << 18, t.SCRATCH_MASK: 1 << 14, t.WALK_STACK: 1 << 10, t.WIDE_STACK: 1 << 10}


_LAYOUT = _lay_out()


_INITIAL_BYTES = sum(map(_initial_bytes, range(t.N_SLOTS)))
_TEMPLATE = np.zeros(t.CONTEXT_SIZE, np.int64)
_TEMPLATE[NEW_MASK] = -1
_TEMPLATE[HEADER::3] = _LAYOUT.offsets
_TEMPLATE[HEADER + 1 :: 3] = [capacity for _, capacity, _ in t.SPECS]


def array_address(array: np.ndarray[Any, Any]) -> int:
    """Where an array is in memory."""
    return int(array.__array_interface__["data"][0])


def sharing(arrays: dict[int, np.ndarray[Any, Any]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The ``shared`` of :class:`Tables`: memory of others, by slot."""
    tables = [(slot, array_address(array), array.nbytes // _ITEM_BYTES[slot]) for slot, array in arrays.items()]
    return np.array(tables, np.int64).reshape(-1)


def _round_up(size: int) -> int:
    return 1 << max(4, (size - 1).bit_length())


# One of this size, or a thousandth of the limit, grows faster: a growth takes some 30 us.
_SMALL_BYTES = 1 << 14


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


def _advise(addresses: np.ndarray[Any, Any], advice: int, begin: int, end: int) -> None:
    """Advise the system on the pages of an array from :func:`_addresses` between two places, in bytes."""
    memory: Any = getattr(addresses.base, "obj", None)
    # Elsewhere the advice means something else, or is not to be had.
    if sys.platform != "linux" or not hasattr(memory, "madvise"):
        return
    begin = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE
    if begin < end:
        with contextlib.suppress(OSError):
            memory.madvise(advice, begin, end - begin)


def _release(addresses: np.ndarray[Any, Any], begin: int) -> None:
    """Give back the memory of an array from :func:`_addresses` behind its first ``begin`` bytes; the addresses stay."""
    _advise(addresses, getattr(mmap, "MADV_DONTNEED", 4), begin, addresses.nbytes)


# Buffers of grammars that are gone.  To touch a page of memory for the first time takes as long as making a few lexer
# states; with a buffer that was used before it has been done.
_spare_buffers: list[np.ndarray[Any, Any]] = []
_MOST_SPARE = 2


# The number of MADV_POPULATE_WRITE, which the module does not name before Python 3.14 and Linux not know before 5.14.
_POPULATE_WRITE = 23


def _take_buffer() -> np.ndarray[Any, Any]:
    try:
        return _spare_buffers.pop()
    except IndexError:
        buffer = _addresses(_LAYOUT.size, np.dtype(np.uint8))
        _advise(buffer, _POPULATE_WRITE, 0, _LAYOUT.small_end)
        return buffer


NO_TABLES = np.zeros(t.CONTEXT_SIZE, np.int64)
"""The context of a compiled grammar whose tables have been dropped: no state is known in it.

Kernels look at it, and write nothing to it.
"""


def _numbers_of(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The numbers of elements, one after the other."""
    names = values.dtype.names
    return values.reshape(-1) if names is None else values.view(values.dtype[names[-1]])


class TablesFullError(LimitError):
    """The tables of a compiled grammar have reached their limit."""


class TextTooLargeError(TablesFullError):
    """They have, and hold nothing that the text does not need, so that there is no use in beginning anew."""


def _too_many_elements(slot: int) -> TablesFullError:
    return TablesFullError(
        f"the grammar needs a table of more than {MOST_ELEMENTS:,} entries (the {t.NAMES[slot]} table is full); "
        "simplify the grammar"
    )


class Snapshot(NamedTuple):
    """Copies of tables, to begin others with."""

    pieces: np.ndarray[Any, np.dtype[np.int64]]
    data: np.ndarray[Any, np.dtype[np.int64]]
    """What fits into new tables, as in :func:`_begin_tables`."""
    larger: list[tuple[int, np.ndarray[Any, Any], int]]
    """What does not: slot, contents, and how many elements are in use."""


class Beginning(NamedTuple):
    """What new tables are like where that is the same for all grammars of a vocabulary."""

    context: np.ndarray[Any, np.dtype[np.int64]]
    """With the offsets of the tables instead of their addresses."""
    nbytes: int
    larger: list[tuple[int, int]]
    """What does not fit into the buffer: slot, capacity."""


@lru_cache(maxsize=64)
def beginning(capacities: tuple[tuple[int, int], ...] = (), header: tuple[tuple[int, int], ...] = ()) -> Beginning:
    """Tables with room for so many elements (slot, capacity), and with these numbers in the header (place, number)."""
    context, nbytes, larger = _TEMPLATE.copy(), _INITIAL_BYTES, []
    for slot, capacity in capacities:
        least = t.SPECS[slot][1]
        if capacity > _LAYOUT.most[slot]:
            larger.append((slot, capacity))
        elif capacity > least:
            context[HEADER + 3 * slot] = _LAYOUT.rooms[slot]
            context[HEADER + 3 * slot + 1] = capacity
            nbytes += (capacity - least) * _ITEM_BYTES[slot]
    for place, number in header:
        context[place] = number
    return Beginning(context, nbytes, larger)


_NO_NUMBERS = np.empty(0, np.int64)


EMPTY = Snapshot(_NO_NUMBERS, _NO_NUMBERS, [])
"""Copies of no tables."""


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
    without : sequence of int
        Links of accelerators (links.py) that are switched off.
    begin : Beginning, optional
        From :func:`beginning`.

    Attributes
    ----------
    nbytes : int
        What the tables have room for, which is what ``limit_bytes`` bounds; :attr:`bytes_in_memory` is mostly less.
    """

    def __init__(
        self,
        limit_bytes: int,
        shared: np.ndarray[Any, np.dtype[np.int64]] = _NO_NUMBERS,
        snapshot: Snapshot = EMPTY,
        without: Sequence[int] = (),
        begin: Beginning | None = None,
    ) -> None:
        begin = beginning() if begin is None else begin
        self.limit_bytes = limit_bytes
        self._without = without
        # One buffer for all, since fifty allocations take longer than compiling a small grammar.
        # A table that grows beyond its room moves out of it.
        self._buffer = _take_buffer()
        self._buffer_address = array_address(self._buffer)
        self._moved: dict[int, np.ndarray[Any, Any]] = {}
        self._reserves: dict[int, np.ndarray[Any, Any]] = {}
        # How many elements of tables that were emptied have been written to.
        self._touched = _NEVER_EMPTIED
        self.nbytes = begin.nbytes
        self.ctx = begin.context.copy()
        self.context_address: int = _begin_tables(
            *(
                self.ctx,
                links.addresses_without(without),
                self._buffer.view(np.int64),
                _LAYOUT.minus_one_end // 8,
                _LAYOUT.zero_end // 8,
            ),
            *(shared, snapshot.pieces, snapshot.data),
        )
        for slot, array, in_use in snapshot.larger:
            self.put(slot, array)
            self.ctx[HEADER + 3 * slot + 2] = in_use
        for slot, capacity in begin.larger:
            self.allocate(slot, capacity)

    def __del__(
        self,
        spare: list[np.ndarray[Any, Any]] = _spare_buffers,
        most: int = _MOST_SPARE,
        references: Any = sys.getrefcount,
    ) -> None:
        own = self.__dict__
        # Two references are the attribute and the argument of the call; more would be views that someone still has.  A
        # variable may count or not, by the version of Python.
        if "_buffer" in own and len(spare) < most and references(own["_buffer"]) == 2:
            spare.append(own.pop("_buffer"))

    def link(self) -> None:
        """Make the kernels callable that have registered with links.far_entry by now."""
        self.ctx[FIRST_LINK:HEADER] = links.addresses_without(self._without)

    def _install(self, slot: int, array: np.ndarray[Any, Any]) -> None:
        old = self._moved.get(slot)
        self._reserves.pop(slot, None)
        self.nbytes += array.nbytes - (0 if old is None else old.nbytes)
        self._moved[slot] = array
        place = HEADER + 3 * slot
        self.ctx[place] = array_address(array)
        self.ctx[place + 1] = array.shape[0] // t.NUMBERS_IN[slot]

    def _resize(self, slot: int, capacity: int) -> None:
        """Let a table in the buffer have more or fewer of the addresses there."""
        old = self._numbers(slot)
        self.nbytes += (capacity - self.capacity(slot)) * _ITEM_BYTES[slot]
        self.ctx[HEADER + 3 * slot + 1] = capacity
        if capacity > t.SPECS[slot][1]:
            address = self._buffer_address + _LAYOUT.rooms[slot]
            if self.ctx[HEADER + 3 * slot] != address:
                self.ctx[HEADER + 3 * slot] = address
                self._numbers(slot)[: len(old)] = old

    def capacity(self, slot: int) -> int:
        """How many elements a table has room for."""
        return int(self.ctx[HEADER + 3 * slot + 1])

    def array(self, slot: int) -> np.ndarray[Any, Any]:
        """A whole table (a view): numbers, rows of numbers, or records with the names of their fields."""
        element = t.ELEMENTS[slot]
        numbers = self._numbers(slot)
        if element.names is not None:
            return numbers.view(element)
        return numbers.reshape(-1, *element.shape) if element.shape else numbers

    def _numbers(self, slot: int) -> np.ndarray[Any, Any]:
        """The numbers of a whole table (a view)."""
        moved = self._moved.get(slot)
        if moved is not None:
            return moved
        offset = int(self.ctx[HEADER + 3 * slot]) - self._buffer_address
        return self._buffer[offset : offset + self.capacity(slot) * _ITEM_BYTES[slot]].view(t.SPECS[slot][0])

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
        """Fill a table with ``values``: elements, or their numbers one after the other."""
        self.allocate(slot, len(_numbers_of(values)) // t.NUMBERS_IN[slot])
        self.append(slot, values)

    def snapshot(self, slots: Iterable[int], whole: Iterable[int]) -> Snapshot:
        """A copy of what is in use of some tables, and of all of others, which are hashed, to begin new tables with."""
        arrays = [(slot, self.get(slot)) for slot in slots] + [(slot, self.array(slot)) for slot in whole]
        pieces: list[int] = []
        data = b""
        larger = []
        for slot, array in arrays:
            if len(array) > t.SPECS[slot][1]:
                larger.append((slot, array.copy(), self.used(slot)))
            else:
                # Every table begins at a multiple of 64, so there is room up to one of 8.
                words = -(-array.nbytes // 8)
                pieces += (slot, _LAYOUT.offsets[slot] // 8, len(data) // 8, words, self.used(slot))
                data += array.tobytes().ljust(8 * words, b"\0")
        return Snapshot(np.array(pieces, np.int64), np.frombuffer(data, np.int64).copy(), larger)

    def allocate(self, slot: int, capacity: int) -> None:
        """Give a table room for ``capacity`` elements, not initialised; none is in use.

        Raises
        ------
        TablesFullError
            If the tables would take more than they may, and more than they do.
        """
        if capacity > MOST_ELEMENTS:
            raise _too_many_elements(slot)
        moved = self._moved.get(slot)
        stays = moved is None and capacity <= _LAYOUT.most[slot]
        if stays:
            capacity = max(t.SPECS[slot][1], capacity)
            extra = (capacity - self.capacity(slot)) * _ITEM_BYTES[slot]
        else:
            extra = capacity * _ITEM_BYTES[slot] - (0 if moved is None else moved.nbytes)
        if extra > 0 and self.nbytes + extra > self.limit_bytes:
            raise self._too_many_bytes(slot)
        if stays:
            self._resize(slot, capacity)
        else:
            self._install(slot, np.empty(capacity * t.NUMBERS_IN[slot], t.SPECS[slot][0]))
        self.ctx[HEADER + 3 * slot + 2] = 0

    def make_room(self, slot: int, capacity: int) -> None:
        """The same for a table in which nothing has been yet; there is nothing to do if it is to be small."""
        if capacity > t.SPECS[slot][1]:
            self.allocate(slot, capacity)

    def reserve(self, slot: int, size: int) -> None:
        """Enlarge a table, unless it has room for ``size`` elements."""
        if size > self.capacity(slot):
            self.ctx[NEED_SLOT], self.ctx[NEED_SIZE] = slot, size
            self.grow()

    def append(self, slot: int, values: np.ndarray[Any, Any]) -> None:
        """Add ``values``, as for :meth:`put`, to a table, enlarging it as needed."""
        begin, numbers = self.used(slot), t.NUMBERS_IN[slot]
        flat = _numbers_of(values)
        end = begin + len(flat) // numbers
        self.reserve(slot, end)
        self._numbers(slot)[begin * numbers : end * numbers] = flat
        self.ctx[HEADER + 3 * slot + 2] = end

    def wanted(self) -> tuple[int, int]:
        """The table that the last kernel found too small, and by how many elements it wanted to extend it."""
        slot = int(self.ctx[NEED_SLOT])
        return slot, 1 if slot in _HASHED else int(self.ctx[NEED_SIZE]) - self.used(slot)

    def _entries(self, slot: int) -> int:
        """How many elements of a table are in use; of buckets, how many of the codes that they are for."""
        hashes = t.SPECS[slot][2]
        return self.used(hashes if hashes >= 0 else slot)

    def want(self, slot: int, extra: int) -> None:
        """Have :meth:`grow` make room in a table for ``extra`` elements, as :meth:`wanted` gave them, from here on."""
        size = self._entries(slot) + extra
        self.ctx[NEED_SLOT], self.ctx[NEED_SIZE] = slot, 4 * size if slot in _HASHED else size

    def is_crowded(self, slot: int, extra: int) -> bool:
        """Whether a table would not be comfortably large with ``extra`` more elements."""
        size, capacity = self._entries(slot) + extra, self.capacity(slot)
        if t.SPECS[slot][2] >= 0:
            return 3 * size > capacity
        return 4 * size > (1 if slot in t.MAPS else 3) * capacity

    def bytes_of(self, slots: Iterable[int]) -> int:
        """Memory of some tables."""
        return sum(self.capacity(slot) * _ITEM_BYTES[slot] for slot in slots)

    @property
    def bytes_in_memory(self) -> int:
        """Memory that the tables take, in bytes: without room that is mere addresses, which nobody has touched."""
        return int(self.nbytes - _untouched_bytes(self.ctx, self._touched, _COUNTED_BYTES))

    def bytes_used(self, slots: Iterable[int]) -> int:
        """Memory of what is in use of some tables, not counting buckets and maps."""
        return sum(self.get(slot).nbytes for slot in slots if slot not in t.MAPS and slot not in t.MAP_VALUES)

    def shrink(self, slots: Iterable[int], spare: int) -> None:
        """Give back what some tables do not use, but for one in ``spare`` elements; maps among them are empty."""
        for slot in slots:
            dtype, least, hashes = t.SPECS[slot]
            if slot in t.MAP_VALUES:
                continue
            if slot not in self._moved:
                if slot not in _HASHED:
                    self._resize(slot, min(self.capacity(slot), max(least, self.used(slot) + self.used(slot) // spare)))
                continue
            if hashes >= 0:
                # Buckets that were half full in a table of the greatest size are not made larger.
                size = min(_round_up(4 * (self.used(hashes) + 1)), len(self.array(slot)))
                new = np.empty(max(least, size), dtype)
                rehash(self.array(hashes), self.used(hashes), new)
            elif slot in t.MAPS:
                new = np.zeros(least, dtype)
                self._install(t.MAPS[slot], np.empty(least, np.int32))
            else:
                size = max(least, self.used(slot) + self.used(slot) // spare)
                new = self._numbers(slot)[: size * t.NUMBERS_IN[slot]].copy()
            self._install(slot, new)

    def keep_room(self, sizes: dict[int, int]) -> None:
        """Leave tables room for so many elements, as they had before they were emptied; give back what is behind that.

        What they have room for once is written to again and again, and growing without moving costs little.
        """
        self._touched = self._touched.copy()
        for slot, size in sizes.items():
            if slot in _HASHED or slot in t.MAP_VALUES:
                continue
            self._touched[slot] = size = max(size, self.used(slot))
            reserve = self._reserves.get(slot)
            if reserve is None or size >= self.capacity(slot):
                continue
            numbers = size * t.NUMBERS_IN[slot]
            self._install(slot, reserve[:numbers])
            self._reserves[slot] = reserve
            _release(reserve, numbers * reserve.itemsize)

    def grow(self) -> None:
        """Enlarge the table that the last kernel found too small, and those that would soon follow.

        A kernel that finds a table too small is run again from its start, so one such failure for all is cheaper.
        """
        slot, wanted = int(self.ctx[NEED_SLOT]), int(self.ctx[NEED_SIZE])
        slot = t.MAP_VALUES.get(slot, slot)
        self._enlarge(slot, wanted)
        for sibling in t.SIBLINGS.get(slot, ()):
            # What is hashed is full when half of it is in use.
            used = self._entries(sibling) * (2 if sibling in _HASHED else 1)
            if sibling != slot and 3 * used > 2 * self.capacity(sibling):
                # It may never be too small.  But when memory ends, half of a map may have moved.
                with contextlib.suppress(TablesFullError, *(() if sibling in t.MAPS else (MemoryError,))):
                    self._enlarge(sibling, 0)

    def _enlarge(self, slot: int, wanted: int) -> None:
        """Enlarge a table to at least ``wanted`` elements, and to twice its size where there is room for that."""
        dtype, _, hashes = t.SPECS[slot]
        hashed = slot in _HASHED
        capacity = self.capacity(slot)
        is_small = capacity * _ITEM_BYTES[slot] <= min(_SMALL_BYTES, self.limit_bytes >> 10)
        size = max(wanted, (4 if is_small else 2) * capacity, 64)
        if hashed:
            size, most = _round_up(size), 1 << (MOST_ELEMENTS.bit_length() - 1)
        else:
            most = MOST_ELEMENTS
        if size > most:
            size = most
            if wanted > most or capacity >= most:
                raise _too_many_elements(slot)
        if not hashed and self.nbytes + self._extra_bytes(slot, size) > self.limit_bytes:
            size = min(max(wanted, capacity + capacity // 8), most)
        if self.nbytes + self._extra_bytes(slot, size) > self.limit_bytes:
            raise self._too_many_bytes(slot)
        if not hashed and slot not in self._moved and size <= _LAYOUT.most[slot]:
            self._resize(slot, size)
            return
        old = self._numbers(slot)
        if hashes >= 0:
            new = np.empty(size, dtype)
            rehash(self.array(hashes), self.ctx[HEADER + 3 * hashes + 2], new)
        elif slot in t.MAPS:
            new = np.empty(size, dtype)
            values_slot = t.MAPS[slot]
            values = np.empty(size, np.int32)
            rehash_map(old, self.array(values_slot), new, values)
            self._install(values_slot, values)
        else:
            self._extend(slot, old, size * t.NUMBERS_IN[slot])
            return
        self._install(slot, new)

    def _too_many_bytes(self, slot: int) -> TablesFullError:
        return TablesFullError(
            f"the grammar needs more than {self.limit_bytes:,} bytes of tables (the {t.NAMES[slot]} table is full); "
            "raise limit_bytes or simplify the grammar"
        )

    def _extra_bytes(self, slot: int, size: int) -> int:
        """How much more memory the tables take while one of them is enlarged to ``size`` elements."""
        addresses = (
            len(self._reserves.get(slot, ())) // t.NUMBERS_IN[slot] if slot in self._moved else _LAYOUT.most[slot]
        )
        if slot not in _HASHED and size <= addresses:
            return int((size - self.capacity(slot)) * _ITEM_BYTES[slot])
        return int(size * (_ITEM_BYTES[slot] + (_ITEM_BYTES[t.MAPS[slot]] if slot in t.MAPS else 0)))

    def _extend(self, slot: int, old: np.ndarray[Any, Any], size: int) -> None:
        """Enlarge a table to ``size`` numbers; the first of them are those of ``old``."""
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
