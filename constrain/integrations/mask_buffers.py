"""Masks for a model whose logits are on a GPU: filled and copied there while the model runs."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from constrain.engine.accepting import accept_token_batch
from constrain.engine.masks.batches import fill_next_token_bitmask_batch
from constrain.engine.vocabulary.bitmasks import words_for
from constrain.engine.vocabulary.device_masks import apply_to_tensor
from constrain.errors import ConstrainError
from constrain.forking import renew_in_child

if TYPE_CHECKING:
    from constrain.engine.matcher import Matcher


@dataclass
class _Buffer:
    """The masks of one step, in the machine's memory and on the device; rows beyond ``height`` are of earlier steps."""

    host: Any
    """int32[batch, words], pinned where the device is a GPU."""
    device: Any
    """The same there; ``host`` itself where the device is the processor."""
    row_numbers: Any
    """int64[batch], pinned; which rows of the logits have a mask."""
    device_row_numbers: Any
    copied: Any = None
    """The event behind the copy, on the stream of copies."""
    applied: Any = None
    """The event behind the last use of what is on the device, on the stream that used it."""
    count: int = 0
    """How many rows of the logits have a mask."""
    height: int = 0
    """The rows that were copied: one more than the last that has a mask."""


class MaskBuffers:
    """The masks of a batch, step after step, for logits in a torch tensor.

    :meth:`fill` returns at once: a thread fills the masks in pinned memory and starts their copy to the device on a
    stream of its own, while the model runs.  :meth:`apply` waits for the thread, and has the stream of the logits wait
    for the copy.  There are two buffers, so that a step may be filled while the device still works on the one before.

    :meth:`fill` is best called when the model's work has been queued: before that, the thread takes turns with the
    model's own Python, and the device waits for both.

    Parameters
    ----------
    batch : int
        The most rows that the logits have.
    vocab_size : int
        Bits of a mask; logits may have more columns, which are forbidden.
    device : torch.device or str
        Where the logits are.  On the processor nothing is copied; beside it and CUDA, the thread waits for its copies.
    threads : int
        How many threads may fill masks, as in :func:`constrain.fill_next_token_bitmask_batch`.

    Raises
    ------
    ConstrainError
        If torch is not installed, or a size is below 1.

    Notes
    -----
    For one thread at a time.  Between :meth:`fill` and :meth:`apply` the matchers are in use by the thread, and nothing
    else may be done with them; :meth:`settle` ends that time without an ``apply``.
    """

    def __init__(self, batch: int, vocab_size: int, device: Any, *, threads: int = 1) -> None:
        try:
            self._torch: Any = import_module("torch")
        except ImportError as error:
            raise ConstrainError("MaskBuffers needs torch, which is not installed") from error
        if batch < 1 or vocab_size < 1 or threads < 1:
            raise ConstrainError(f"batch {batch}, vocab_size {vocab_size} and threads {threads} must be at least 1")
        self._device = self._torch.device(device)
        self._has_streams = self._device.type == "cuda"
        self._batch, self._threads = batch, threads
        self._buffers = [self._make_buffer(words_for(vocab_size)) for _ in range(2)]
        self._copies = self._torch.cuda.Stream(self._device) if self._has_streams else None
        self._filling: Future[_Buffer] | None
        self._may_be_filling: bool
        self._is_closed = False
        self._renew_after_fork()
        renew_in_child(self)

    def _renew_after_fork(self) -> None:
        # What the parent's thread was filling is never done here.
        self._filling, self._may_be_filling = None, False
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="constrain-mask")

    def _make_buffer(self, words: int) -> _Buffer:
        torch, pinned = self._torch, self._has_streams
        host = torch.zeros((self._batch, words), dtype=torch.int32, pin_memory=pinned)
        numbers = torch.zeros(self._batch, dtype=torch.int64, pin_memory=pinned)
        if self._device.type == "cpu":
            return _Buffer(host, host, numbers, numbers)
        return _Buffer(host, host.to(self._device), numbers, numbers.to(self._device))

    def fill(
        self,
        matchers: Sequence[Matcher],
        *,
        tokens: Sequence[int | None] | None = None,
        indices: Sequence[int] | None = None,
    ) -> None:
        """Begin to fill the masks of a step.

        Parameters
        ----------
        matchers : sequence of Matcher
            One for each row that has a grammar.
        tokens : sequence of int or None, optional
            What was chosen last for each of them, to be accepted first, beside the model too; None for one that is new.
        indices : sequence of int, optional
            The row of each matcher; by default its position.  Logits of other rows are left alone.

        Raises
        ------
        ConstrainError
            If there is not one token and one row for each matcher, a row is out of range or there twice, the buffers
            are closed, or no thread can be started.  What else is wrong with matchers and tokens is raised by
            :meth:`apply`.
        """
        if self._is_closed:
            raise ConstrainError("these buffers are closed")
        self.settle()
        chosen = list(matchers)
        rows = list(range(len(chosen)) if indices is None else indices)
        if len(rows) != len(chosen):
            raise ConstrainError(f"{len(chosen)} matchers and {len(rows)} rows do not fit together")
        if len(set(rows)) < len(rows):
            raise ConstrainError("indices names a row twice")
        for row in rows:
            if not 0 <= row < self._batch:
                raise ConstrainError(f"row {row} is out of range, the buffers have {self._batch} rows")
        last: list[int | None] = [None] * len(chosen) if tokens is None else list(tokens)
        if len(last) != len(chosen):
            raise ConstrainError(f"there are {len(last)} tokens for {len(chosen)} matchers")
        # The buffer that was used last may still be read by the device.
        self._buffers.reverse()
        # An interrupt may come when the thread has begun, and before that is kept.
        self._may_be_filling = True
        try:
            self._filling = self._pool.submit(self._fill, self._buffers[0], chosen, last, rows)
        except RuntimeError as error:
            # No thread can be started.  What waits for one would be done later.
            self._pool.shutdown(cancel_futures=True)
            self._renew_after_fork()
            raise ConstrainError(f"masks cannot be filled: {error}") from error

    def _fill(self, buffer: _Buffer, matchers: list[Matcher], tokens: list[int | None], rows: list[int]) -> _Buffer:
        """Accept tokens, fill a buffer and start its copy, in the thread; after an error the matchers are as before."""
        if buffer.copied is not None:
            buffer.copied.synchronize()  # what is copied must not change meanwhile
        buffer.count, buffer.height = len(rows), max(rows, default=-1) + 1
        steps = [
            (row, matcher, token)
            for row, matcher, token in zip(rows, matchers, tokens, strict=True)
            if token is not None
        ]
        taken = accept_token_batch([matcher for _, matcher, _ in steps], [token for _, _, token in steps])
        try:
            for (row, _, token), is_taken in zip(steps, taken, strict=True):
                if not is_taken:
                    raise ConstrainError(f"row {row}: the grammar does not allow token {token} there")
            fill_next_token_bitmask_batch(matchers, buffer.host, indices=rows, threads=self._threads)
        except BaseException:
            for (_, matcher, _), is_taken in zip(steps, taken, strict=True):
                if is_taken:
                    matcher.rollback(1)
            raise
        buffer.row_numbers[: buffer.count] = self._torch.from_numpy(np.array(rows, np.int64))
        if self._copies is not None:
            with self._torch.cuda.stream(self._copies):
                if buffer.applied is not None:
                    self._copies.wait_event(buffer.applied)
                self._copy(buffer)
                buffer.copied = self._copies.record_event(buffer.copied)
        elif buffer.device is not buffer.host:
            self._copy(buffer)
        return buffer

    def _copy(self, buffer: _Buffer) -> None:
        height, count = buffer.height, buffer.count
        buffer.device[:height].copy_(buffer.host[:height], non_blocking=self._has_streams)
        buffer.device_row_numbers[:count].copy_(buffer.row_numbers[:count], non_blocking=self._has_streams)

    def apply(self, logits: Any) -> None:
        """Set what the masks of the last :meth:`fill` forbid to minus infinity, in place.

        Parameters
        ----------
        logits : torch tensor on the device, float[vocab] or float[rows, vocab]
            As for :func:`constrain.apply_token_bitmask_inplace`.  On a GPU the work is queued on the current stream.

        Raises
        ------
        ConstrainError
            If nothing was filled since the last call, logits do not fit, or a token was not allowed.
        LimitError
            As :func:`constrain.fill_next_token_bitmask_batch`.  After any error the logits are as they were, and the
            matchers are where they were before :meth:`fill`; but logits that do not fit leave tokens accepted and masks
            filled, for another ``apply``.
        """
        if self._filling is None:
            raise ConstrainError("no masks were filled for these logits: call fill before apply")
        try:
            buffer = self._filling.result()
        finally:
            # After an interrupt the thread may still be at work.
            if self._filling.done() and self._filling.exception() is not None:
                self._filling = None
        height = 1 if logits.ndim == 1 else logits.shape[0]
        if logits.device != buffer.device.device:
            raise ConstrainError(f"the logits are on {logits.device}, the masks on {buffer.device.device}")
        if not buffer.height <= height <= self._batch:
            raise ConstrainError(
                f"logits of {height} rows do not fit masks of {buffer.height} rows in buffers of {self._batch}"
            )
        if self._copies is not None:
            self._torch.cuda.current_stream(self._device).wait_event(buffer.copied)
        numbers = None if buffer.count == height else buffer.device_row_numbers[: buffer.count]
        apply_to_tensor(logits, buffer.device[:height], numbers)
        if self._copies is not None:
            buffer.applied = self._torch.cuda.current_stream(self._device).record_event(buffer.applied)
        self._filling, self._may_be_filling = None, False

    def settle(self) -> None:
        """Wait for masks that are being filled, and drop them; the matchers are the caller's again.

        After an interrupt, of this call too, another one waits for what is left.
        """
        if self._may_be_filling:
            # The thread does one thing after the other.
            wait([self._pool.submit(int)])
        self._filling, self._may_be_filling = None, False

    def close(self) -> None:
        """End the thread; nothing can be filled any more."""
        if not self._is_closed:
            self.settle()
            self._pool.shutdown()
            self._is_closed = True

    def __enter__(self) -> MaskBuffers:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
