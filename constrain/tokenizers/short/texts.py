"""Encodes short texts in one kernel call.

Most texts are short, and for these the work around the kernel takes longer than the kernel: to make an array, or to
pass it on, costs as much as some words.  So each thread keeps the arrays, and a frame (short/frames.py) that is passed
in place of them.

Where kernels come from a library (kernels/library.py), texts of up to 1,024 bytes do without Python between the text
and the list of its ids, which takes as long as the kernel.  Python's lock is held meanwhile, so that threads share the
arrays.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from constrain.errors import TokenizerError
from constrain.kernels.library import loaded
from constrain.tokenizers.added_tokens import AddedToken, any_finder
from constrain.tokenizers.arguments import check_flags, checked_text
from constrain.tokenizers.base import Encoding, Tokenizer
from constrain.tokenizers.further_tokens import further_tokens, with_additional
from constrain.tokenizers.packed_strings import PackedStrings, packed
from constrain.tokenizers.special_text import Disallowed, Reading, Special

if TYPE_CHECKING:
    from typing_extensions import Self

_COPIES = 4
"""Copies of a tokenizer that lack some tokens."""

SHORT_LENGTH = 2048
"""Characters of a short text.  The buffers are virtual memory until a text has used them."""

ShortKernel = tuple[memoryview, Callable[[Any, int], int], Any, memoryview]
"""The buffer for the text, the kernel, its frame, and the buffer of the ids.

The kernel is called with the frame and the number of bytes of the text.  It returns the number of ids, or a negative
number if the text has to be encoded as a long one."""


class ShortTextTokenizer(Tokenizer):
    """A tokenizer that is read from files, and encodes short texts without added tokens in one kernel call.

    Attributes
    ----------
    around : (tuple of int, tuple of int)
        The ids that ``add_special_tokens=True`` puts around a text.
    """

    lets_threads_run = True

    around: tuple[tuple[int, ...], tuple[int, ...]]
    added_tokens: tuple[AddedToken, ...]

    _bytes: list[bytes | None]
    # What token_to_id looks up, in each class something else; made when first asked for, since encoding needs it not.
    _known_ids: dict[Any, int]

    only_ascii: bool = False
    """Whether other texts than those in ASCII are for :meth:`_encode_long`, since they may have to be normalized."""

    silent_tokens: tuple[AddedToken, ...] = ()
    """Special tokens that are found in a text only where the caller asks for special tokens."""

    def _prepare_short(self, possible: bool) -> None:
        """To be called when everything else is there, and again after unpickling."""
        self._local = threading.local()
        self._common, self._find_any = any_finder(self.added_tokens)
        self._short_length = SHORT_LENGTH if possible else -1

    @abstractmethod
    def _short_kernel(self) -> tuple[Sequence[Any], ShortKernel]:
        """For one thread: the arrays to keep alive, and the kernel."""

    @abstractmethod
    def _encode_long(self, text: str, add_special_tokens: bool, reading: Reading | None = None) -> Encoding:
        """The encoding of any text; without ``reading`` all added tokens are read."""

    @property
    @abstractmethod
    def _reads_normalized(self) -> bool:
        """Whether added tokens can be looked for in normalized text."""

    @abstractmethod
    def _make_finders(self) -> None:
        """Make what finds the added tokens in a text, as ``_find_...``; it is not pickled."""

    @abstractmethod
    def _take_further(self, new: Sequence[AddedToken], old_size: int) -> None:
        """Complete a copy that has got ``new`` among its added tokens; ids from ``old_size`` on are new."""

    @abstractmethod
    def _remove_tokens(self, ids: frozenset[int]) -> None:
        """Make the model as if it had never had these tokens."""

    def _without(self, ids: frozenset[int]) -> Any:
        """A copy of the tokenizer whose model never makes these tokens; the last few are kept."""
        kept: dict[frozenset[int], Any] = self.__dict__.setdefault("_copies", {})
        found = kept.get(ids)
        if found is None:
            found = copy(self)
            found._remove_tokens(ids)
            if len(kept) >= _COPIES:
                kept.clear()
            kept[ids] = found
        return found

    def spelled_special_tokens(self) -> Mapping[str, int]:
        names: dict[str, int] | None = self.__dict__.get("_spelled_special")
        if names is None:
            tokens = (*self.added_tokens, *self.silent_tokens)
            names = {token.content: token.id for token in tokens if token.id in self.special_ids and token.content}
            self.__dict__["_spelled_special"] = names
        return names

    def spelled_added_tokens(self) -> Mapping[str, int]:
        tokens = (*self.added_tokens, *self.silent_tokens)
        return {token.content: token.id for token in tokens if token.content}

    def read_text(self, text: str, add_special_tokens: bool, reading: Reading) -> Encoding:
        checked_text(text)
        if len(text) <= self._short_length and not self._holds_tokens(text):
            ids = self._short_ids(text)
            if ids is not None and reading.unreachable.isdisjoint(ids):
                if add_special_tokens:
                    ids = [*self.around[0], *ids, *self.around[1]]
                return Encoding(ids, self, text, add_special_tokens)
        return self._encode_long(text, add_special_tokens, reading)

    def _holds_tokens(self, text: str) -> bool:
        """Whether a text may have an added token."""
        if self._common in text and self._find_any(text):
            return True
        return any(token.content in text for token in self.silent_tokens)

    def tokens_as_bytes(self) -> list[bytes | None]:
        return list(self._bytes)

    def packed_tokens(self) -> PackedStrings[bytes]:
        """What :meth:`tokens_as_bytes` gives, in one piece of memory, as the cache on disk has it."""
        return packed(self._bytes, bytes)

    def token_bytes(self, token_id: int) -> bytes | None:
        self._check_id(token_id)
        return self._bytes[token_id]

    def with_added_tokens(
        self,
        texts: Iterable[str],
        *,
        special: bool = False,
        lstrip: bool = False,
        rstrip: bool = False,
        single_word: bool = False,
        normalized: bool | None = None,
    ) -> Self:
        check_flags(special=special, lstrip=lstrip, rstrip=rstrip, single_word=single_word)
        if normalized is not None:
            check_flags(normalized=normalized)
        if normalized and not self._reads_normalized:
            raise TokenizerError("tokens are looked for in normalized text only by what is read from a tokenizer.json")
        if normalized is None:
            normalized = not special and self._reads_normalized
        flags = AddedToken(-1, "", special, lstrip, rstrip, single_word, normalized)
        new, size = further_tokens(self, self.added_tokens, texts, flags)
        # The model is the same, and what is made when it is first asked for is made anew.
        other = object.__new__(type(self))
        other.__dict__.update(self.__getstate__())
        other.__dict__.pop("_known_ids", None)
        other.added_tokens = (*self.added_tokens, *new)
        other.special_ids = self.special_ids | {token.id for token in new if token.special}
        other.special_tokens = with_additional(self.special_tokens, new)
        other.vocab_size = size
        other._bytes = [*self._bytes, *[None] * (size - self.vocab_size)]
        other._take_further(new, self.vocab_size)
        return other

    def __getstate__(self) -> dict[str, Any]:
        # What belongs to a thread, or can be made anew, stays here.
        left_out = {"_local", "_quick_ids", "_copies", "_spelled_special"}
        left_out |= {"_outputs", "_flat", "_kept_texts", "_kept_full_texts"}
        items = self.__dict__.items()
        return {key: value for key, value in items if key not in left_out and not key.startswith("_find_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare_short(self._short_length > 0)
        self._make_finders()

    def encode(
        self,
        text: str,
        add_special_tokens: bool = False,
        *,
        special: Special = None,
        disallowed: Disallowed = "text",
    ) -> Encoding:
        # Every 0.1 us counts here.
        if special is not None or disallowed != "text":
            reading = self._reading(text, special, disallowed)
            if reading is not None:
                return self.read_text(text, add_special_tokens, reading)
        ids = self._quick_ids(text)
        if ids is None:
            checked_text(text)
            if len(text) <= self._short_length and (self._common not in text or not self._find_any(text)):
                ids = self._short_ids(text)
            if ids is None:
                return self._encode_long(text, add_special_tokens)
        if add_special_tokens:
            ids = [*self.around[0], *ids, *self.around[1]]
        return Encoding(ids, self, text, add_special_tokens)

    def _quick_ids(self, text: str) -> list[int] | None:
        """The ids of a short text without added tokens; None if the text is something else, or takes another way.

        The first call puts a function into the place of this method.
        """
        quick: Callable[[str], list[int] | None] = _no_ids
        if loaded is not None and self._short_length > 0:
            kept, (text_view, kernel, frame, ids_view) = self._short_kernel()
            arrays = frame, np.asarray(text_view), np.asarray(ids_view)
            contents = [token.content.encode("utf-8", "surrogatepass") for token in self.added_tokens if token.content]
            first = bytes({content[0] for content in contents})
            common = self._common.encode("utf-8", "surrogatepass") if contents else b""
            quick = loaded.on_short_texts(kernel, *arrays, common, first, self.only_ascii, kept)
        self.__dict__["_quick_ids"] = quick
        return quick(text)

    def _short_ids(self, text: str) -> list[int] | None:
        """The ids of a stretch without added tokens; None if it has to be encoded as a long text, or cannot be."""
        if len(text) > self._short_length or (self.only_ascii and not text.isascii()):
            return None
        try:
            data = text.encode()
            view, kernel, context, out = self._local.short
        except UnicodeEncodeError:
            return None
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


def _no_ids(text: str) -> None:
    """In place of a function that takes short texts, where there is none."""
