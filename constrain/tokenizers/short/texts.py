"""Encodes short texts in one kernel call.

Most texts are short, and for these the work around the kernel takes longer than the kernel: to make an array, or to
pass it on, costs as much as some words.  So each thread keeps the arrays, and a frame (short/frames.py) that is passed
in place of them.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from constrain.tokenizers.added_tokens import AddedToken, any_finder
from constrain.tokenizers.arguments import checked_text
from constrain.tokenizers.base import Encoding, Tokenizer

SHORT_LENGTH = 2048
"""Characters of a short text.  The buffers are virtual memory until a text has used them."""

ShortKernel = tuple[memoryview, Callable[[Any, int], int], Any, memoryview]
"""The buffer for the text, the kernel, its frame, and the buffer of the ids.

The kernel is called with the frame and the number of bytes of the text.  It returns the number of ids, or a negative
number if the text has to be encoded as a long one."""


class ShortTextTokenizer(Tokenizer):
    """A tokenizer that encodes short texts without added tokens in one kernel call.

    Attributes
    ----------
    around : (tuple of int, tuple of int)
        The ids that ``add_special_tokens=True`` puts around a text.
    """

    around: tuple[tuple[int, ...], tuple[int, ...]]
    added_tokens: tuple[AddedToken, ...]

    def _prepare_short(self, possible: bool) -> None:
        """To be called when everything else is there, and again after unpickling."""
        self._local = threading.local()
        self._common, self._find_any = any_finder(self.added_tokens)
        self._short_length = SHORT_LENGTH if possible else -1

    @abstractmethod
    def _short_kernel(self) -> tuple[Sequence[Any], ShortKernel]:
        """For one thread: the arrays to keep alive, and the kernel."""

    @abstractmethod
    def _encode_long(self, text: str, add_special_tokens: bool) -> Encoding:
        """The encoding of any text."""

    def __getstate__(self) -> dict[str, Any]:
        # What belongs to a thread, or can be made anew, stays here.
        left_out = ("_local", "_find_any", "_outputs", "_flat")
        return {key: value for key, value in self.__dict__.items() if key not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare_short(self._short_length > 0)

    def encode(self, text: str, add_special_tokens: bool = False) -> Encoding:
        # Every 0.1 us counts here.
        if type(text) is not str:
            checked_text(text)
        if len(text) <= self._short_length and (self._common not in text or not self._find_any(text)):
            try:
                data = text.encode()
                view, kernel, context, out = self._local.short
            except UnicodeEncodeError:
                return self._encode_long(text, add_special_tokens)
            except AttributeError:
                view, kernel, context, out = self._keep_kernel()
            size = len(data)
            view[:size] = data
            count = kernel(context, size)
            if count >= 0:
                ids = out[:count].tolist()
                if add_special_tokens:
                    ids = [*self.around[0], *ids, *self.around[1]]
                return Encoding(ids, (self, text, add_special_tokens))
        return self._encode_long(text, add_special_tokens)

    def _short_ids(self, text: str) -> list[int] | None:
        """The ids of a stretch without added tokens; None if it has to be encoded as a long text.

        Raises :class:`UnicodeEncodeError` for a lone surrogate.
        """
        if len(text) > self._short_length:
            return None
        data = text.encode()
        try:
            view, kernel, context, out = self._local.short
        except AttributeError:
            view, kernel, context, out = self._keep_kernel()
        view[: len(data)] = data
        count = kernel(context, len(data))
        return None if count < 0 else out[:count].tolist()

    def _keep_kernel(self) -> ShortKernel:
        # The frame has only the addresses of the arrays, so the thread keeps the arrays too.
        self._local.kept, self._local.short = self._short_kernel()
        kernel: ShortKernel = self._local.short
        return kernel
