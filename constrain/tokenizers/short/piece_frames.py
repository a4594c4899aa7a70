"""Makes the frames of short/pieces.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from constrain.tokenizers.normalizing.charsmap import Charsmap
from constrain.tokenizers.normalizing.charsmap_kernels import normalize_spaces
from constrain.tokenizers.short.frames import words_of
from constrain.tokenizers.short.pieces import end_piece, take_ids
from constrain.tokenizers.short.texts import SHORT_LENGTH, ShortKernel

_GROWTH = 8
"""A short text may become so many times as long; one that becomes longer is encoded as a long text."""


def piece_kernel(
    step: Charsmap,
    encode_short: Callable[[Any, int], int],
    model: Any,
    arguments: Callable[[int], Mapping[str, Any]],
) -> tuple[Sequence[Any], ShortKernel]:
    """The arrays of one thread, which have to be kept alive, and the kernel with its frame.

    Parameters
    ----------
    step : Charsmap
        The whole normalization.
    encode_short : kernel
        Is called with the frame.
    model : kernel
        Encodes a piece; it takes ``data``, ``ends`` and ``out``.
    arguments : function
        The other arguments of ``model`` by name, for a piece of so many bytes at most.
    """
    room = _GROWTH * 4 * SHORT_LENGTH
    text, normal = np.zeros(4 * SHORT_LENGTH, dtype=np.uint8), np.zeros(room, dtype=np.uint8)
    ends, out = np.zeros(1, dtype=np.int32), np.zeros((room, 3), dtype=np.int32)
    ids = np.zeros(room, dtype=np.int32)
    plain, rules, blob, fixed = step.tables()
    steps: list[tuple[Any, dict[str, Any]]] = [
        (
            normalize_spaces,
            {
                "data": text,
                "plain": plain,
                "rules": rules,
                "blob": blob,
                "fixed": fixed,
                "flags": step.flags,
                "out": normal,
                "origins": np.zeros((0, 2), dtype=np.int32),
                "with_origins": False,
            },
        ),
        (end_piece, {"length": 0, "ends": ends}),
        (take_ids, {"count": 0, "out": out, "ids": ids}),
        (model, {"data": normal, "ends": ends, "out": out, **arguments(room)}),
    ]
    frame = np.array([word for kernel, given in steps for word in words_of(kernel, given)], dtype=np.int64)
    kept = [value for _, given in steps for value in given.values()]
    return kept, (memoryview(text.data), encode_short, frame, memoryview(ids.data))
