"""SentencePiece's normalization: compiled rules, and what it does with spaces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from constrain.errors import TokenizerError
from constrain.tokenizers.normalizing import charsmap_kernels as kernels
from constrain.tokenizers.normalizing.normal_forms import Spans
from constrain.tokenizers.normalizing.text_steps import TextStep
from constrain.tokenizers.scratch import scratch
from constrain.tokenizers.trie_kernels import trie_of

_LARGEST_GROWTH = 64
"""A text may become this many times as long; rules that make it longer are taken for hostile."""


@dataclass(frozen=True)
class SpaceOptions:
    """What becomes of spaces: one is put in front (or behind), extra ones are removed, all are written U+2581."""

    add_dummy_prefix: bool = True
    remove_extra: bool = True
    escape: bool = True
    as_suffix: bool = False


class Charsmap(TextStep):
    """The whole normalization of a SentencePiece model.

    Parameters
    ----------
    compiled : bytes
        ``precompiled_charsmap``: the size of the trie in bytes (uint32), the trie, the replacements.  May be empty.
    spaces : SpaceOptions
    fixed : sequence of str
        User-defined symbols, which the rules do not touch.

    Raises :class:`TokenizerError` if the rules are cut off; damage that shows only in use is found then.
    """

    def __init__(self, compiled: bytes, spaces: SpaceOptions, fixed: tuple[str, ...] = ()) -> None:
        self._arguments = (compiled, spaces, fixed)
        self._rules = np.empty(0, dtype=np.uint32)
        self._blob = np.empty(0, dtype=np.uint8)
        if compiled:
            size = int.from_bytes(compiled[:4], "little")
            if len(compiled) < 8 or size % 4 or not 4 <= size < len(compiled) - 4 or compiled[-1]:
                raise TokenizerError("precompiled_charsmap is damaged: its sizes do not fit")
            self._rules = np.frombuffer(bytearray(compiled[4 : 4 + size]), dtype="<u4").astype(np.uint32)
            self._blob = np.frombuffer(bytearray(compiled[4 + size :]), dtype=np.uint8)
        self._fixed = np.empty((0, 4), dtype=np.int32)
        if fixed:
            self._fixed = trie_of((text.encode(), place) for place, text in enumerate(fixed))
        try:
            self._blob.tobytes().decode()
        except UnicodeDecodeError:
            raise TokenizerError("precompiled_charsmap is damaged: its replacements are not UTF-8") from None
        self._plain = np.zeros(256, dtype=np.uint8)
        kernels.find_plain(self._rules, self._fixed, self._plain)
        self._flags = (
            kernels.DUMMY_PREFIX * spaces.add_dummy_prefix
            + kernels.REMOVE_EXTRA * spaces.remove_extra
            + kernels.ESCAPE * spaces.escape
            + kernels.AS_SUFFIX * spaces.as_suffix
        )

    def apply(self, text: str, first: bool) -> str:
        return self._run(text, False)[0].tobytes().decode("utf-8", "replace")

    def normalized(self, text: str) -> npt.NDArray[np.uint8]:
        """The result as UTF-8, until this thread calls it again."""
        return self._run(text, False)[0]

    def align(self, text: str, first: bool) -> tuple[str, Spans]:
        out, origins = self._run(text, True)
        data = np.frombuffer(text.encode("utf-8"), dtype=np.uint8)
        place = np.append(np.cumsum((data & 0xC0) != 0x80) - 1, len(text))
        starts = np.flatnonzero((out & 0xC0) != 0x80)
        begins, ends = origins[starts, 0], origins[starts, 1]
        last = np.where(ends > begins, place[np.maximum(ends - 1, 0)] + 1, place[begins])
        normal = out.tobytes().decode("utf-8", "replace")
        return normal, list(zip(place[begins].tolist(), last.tolist(), strict=True))

    def _run(self, text: str, with_origins: bool) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
        source = text.encode("utf-8")
        data = scratch("text", len(source), np.uint8)
        data[:] = np.frombuffer(source, dtype=np.uint8)
        room = 3 * len(data) + 64
        while True:
            out = scratch("normalized", room, np.uint8)
            origins = np.empty((room if with_origins else 0, 2), dtype=np.int32)
            size = kernels.normalize_spaces(
                data, self._plain, self._rules, self._blob, self._fixed, self._flags, out, origins, with_origins
            )
            if size >= 0:
                return out[:size], origins[:size]
            if size == kernels.DAMAGED or room > _LARGEST_GROWTH * (len(data) + 64):
                raise TokenizerError("precompiled_charsmap is damaged: its rules lead nowhere")
            room *= 4

    def tables(self) -> tuple[npt.NDArray[Any], ...]:
        """The arguments ``plain`` to ``fixed`` of ``normalize_spaces`` in charsmap_kernels.py."""
        return self._plain, self._rules, self._blob, self._fixed

    @property
    def flags(self) -> int:
        """The argument ``flags`` of ``normalize_spaces`` in charsmap_kernels.py."""
        return self._flags

    def __reduce__(self) -> tuple[type[Charsmap], tuple[object, ...]]:
        return Charsmap, self._arguments
