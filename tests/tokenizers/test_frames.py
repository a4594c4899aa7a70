"""Frames hand over every kind of argument as it is, and refuse what the kernel does not take."""

from __future__ import annotations

import numpy as np
import pytest

from constrain.kernels.jit import ENTRY, loaded, njit
from constrain.tokenizers.short.frames import caller_of, place_of, size_of, words_of

if loaded is not None:
    pytest.skip("kernels of tests need the compiler: CONSTRAIN_KERNELS=jit", allow_module_level=True)


@njit("float64(uint8[::1], boolean, int32[:, ::1], int64, float64, int32[::1])", **ENTRY)
def reads_all(data, flag, table, number, weight, out):
    if data.size == 0:
        raise MemoryError
    out[0] = data.size
    out[1] = 1 if flag else 0
    out[2] = table[1, 2]
    out[3] = number
    return weight * table.shape[0] + data[data.size - 1]


call = caller_of(reads_all)
SIZE = place_of(reads_all, "data") + 1


@njit("float64(int64[::1], int64, int64)", **ENTRY)
def entry(frame, place, size):
    frame[place + SIZE] = size
    return call(frame, place)


@pytest.fixture
def arguments():
    return {
        "data": np.arange(10, 20, dtype=np.uint8),
        "flag": True,
        "table": np.arange(12, dtype=np.int32).reshape(3, 4),
        "number": -5,
        "weight": 0.25,
        "out": np.zeros(4, dtype=np.int32),
    }


@pytest.mark.parametrize("flag", [False, True])
@pytest.mark.parametrize("before", [0, 3])
def test_arguments_arrive(arguments, flag, before):
    words = words_of(reads_all, arguments | {"flag": flag})
    assert len(words) == size_of(reads_all)
    frame = np.array([7] * before + words, dtype=np.int64)
    assert entry(frame, before, 4) == 0.75 + 13
    assert arguments["out"].tolist() == [4, flag, 6, -5]
    assert entry(frame, before, 10) == 0.75 + 19


def test_an_error_within_the_kernel_is_raised(arguments):
    with pytest.raises(MemoryError):
        entry(np.array(words_of(reads_all, arguments), dtype=np.int64), 0, 0)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("data", np.zeros(3, dtype=np.int32)),
        ("table", np.zeros(12, dtype=np.int32)),
        ("table", np.zeros((4, 6), dtype=np.int32)[:, ::2]),
        ("more", 1),
    ],
)
def test_what_the_kernel_does_not_take(arguments, name, wrong):
    with pytest.raises(AssertionError, match=name):
        words_of(reads_all, arguments | {name: wrong})
