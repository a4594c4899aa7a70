"""Any GGUF model, by way of ``llama-cpp-python``."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from constrain.backends.base import RememberingBackend, common_prefix
from constrain.backends.options import BackendOptions
from constrain.backends.window import window_of
from constrain.errors import ConstrainError, TokenizerError
from constrain.extras import how_to_install
from constrain.tokenizers import load_tokenizer
from constrain.tokenizers.base import Tokenizer
from constrain.tokenizers.formats.gguf_metadata import read_gguf_metadata

DEFAULT_MAX_SEQ_LEN = 8192
"""llama.cpp reserves memory for the whole context, and models are trained for up to a million tokens."""

_HOW_TO_INSTALL = f"the llama-cpp backend needs llama-cpp-python: {how_to_install('llama-cpp')}"
# Of ggml.h; these numbers are in files, so they do not change.
_GGML_TYPES = {"f32": 0, "f16": 1, "q8": 8, "q4": 2}


class LlamaCppBackend(RememberingBackend):
    """A GGUF model.

    Keys and values of the tokens so far are kept; when a context differs from the last one from some token on, they are
    cut there.  A sliding window is llama.cpp's context shift: what is forgotten is taken out of the
    cache, and the positions of what follows move down, so that nothing is computed again.

    Parameters
    ----------
    path : path
        A GGUF file.
    options : BackendOptions, optional
        ``kv_type``: "f16" by default; "q8" and "q4" switch on flash attention, which quantized values need.
        ``max_seq_len``: the model's own limit by default, but at most 8,192.
    gpu_layers : int, optional
        How many layers run on a GPU; all of them by default, where llama-cpp-python was built for one.
    threads : int, optional
        llama.cpp's own choice by default.

    Raises
    ------
    ConstrainError
        llama-cpp-python is not installed, the file cannot be read, or an option is out of range.
    """

    name = "llama-cpp"

    def __init__(
        self,
        path: str | PathLike[str],
        options: BackendOptions | None = None,
        *,
        gpu_layers: int | None = None,
        threads: int | None = None,
    ) -> None:
        super().__init__()
        options = options or BackendOptions()
        place = Path(fspath(path))
        native, refusal = _native_tokenizer(place)
        try:
            import llama_cpp
        except ImportError as error:
            raise ConstrainError(_HOW_TO_INSTALL) from error
        if not hasattr(llama_cpp, "llama_memory_seq_rm"):
            raise ConstrainError("this llama-cpp-python is too old: pip install -U llama-cpp-python")
        self._library: Any = llama_cpp
        kept_as = options.kv_type or "f16"
        if gpu_layers is None:
            gpu_layers = -1 if llama_cpp.llama_supports_gpu_offload() else 0
        trained = _trained_length(place)
        if options.max_seq_len is not None and options.max_seq_len > trained:
            raise ConstrainError(
                f"max_seq_len is {options.max_seq_len}, but the model was made for at most {trained} tokens"
            )
        limit = options.max_seq_len or min(trained, DEFAULT_MAX_SEQ_LEN)
        if options.eviction_policy == "attention":
            raise ConstrainError("the llama-cpp backend has no eviction_policy 'attention'; transformers has")
        self._window = window_of(options, limit)
        try:
            self._llama: Any = llama_cpp.Llama(
                str(place),
                n_ctx=limit,
                n_batch=min(limit, 512),
                n_gpu_layers=gpu_layers,
                n_threads=threads,
                n_threads_batch=threads,
                type_k=_GGML_TYPES[kept_as],
                type_v=_GGML_TYPES[kept_as],
                flash_attn=kept_as.startswith("q"),
                verbose=False,
            )
        except (ValueError, RuntimeError, AssertionError) as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            hint = ""
            if kept_as.startswith("q"):
                hint = f" (kv_type {kept_as} needs a model whose heads have a multiple of 32 numbers)"
            raise ConstrainError(f"{place}: {lines[0]}{hint}") from error
        self._limit = limit
        self.max_seq_len = None if self._window else limit
        self.tokenizer = native or _adapted_tokenizer(self._llama, refusal)
        self.vocab_size = int(self._llama.n_vocab())
        self._memory: Any = llama_cpp.llama_get_memory(self._llama.ctx)
        self._cached: list[int] = []
        self._is_closed = False
        self._evicted = 0
        start = self.tokenizer.special_tokens.bos
        self.start_id = start if start is not None else next(iter(self.tokenizer.eos_ids), None)

    def logits(self, ids: Sequence[int]) -> Any:
        if not ids:
            if self.start_id is None:
                raise ConstrainError("the model needs a prompt: its tokenizer has no token that begins a text")
            ids = [self.start_id]
        with self._turn:
            return self._logits(ids)

    def _logits(self, ids: Sequence[int]) -> Any:
        if self._is_closed:
            raise ConstrainError("the model is closed: load it again")
        context = list(ids)
        if self._window is not None:
            context = list(self._window.visible(ids))
            self._shift(context, self._window.evicted(len(ids)))
        if len(context) > self._limit:
            raise ConstrainError(f"{len(context)} tokens do not fit into the model's context of {self._limit}")
        # The answer itself is not kept, so the last token is always computed.
        kept = min(common_prefix(self._cached, context), len(context) - 1)
        if kept < len(self._cached) and not self._library.llama_memory_seq_rm(self._memory, 0, kept, -1):
            # A recurrent state cannot be cut.
            self._library.llama_memory_clear(self._memory, True)
            kept = 0
        self._cached = []
        self._llama.n_tokens = kept
        try:
            self._llama.eval(context[kept:])
        except (RuntimeError, OverflowError) as error:
            self._library.llama_memory_clear(self._memory, True)
            raise ConstrainError(f"llama.cpp cannot go on: {error}") from error
        self._cached = context
        row = self._library.llama_get_logits_ith(self._llama.ctx, -1)
        # llama.cpp writes over its own with the next call, which may be another thread's.
        return np.ctypeslib.as_array(row, shape=(self.vocab_size,)).copy()

    def close(self) -> None:
        with self._turn:
            self._is_closed = True
            self._let_go()
            self._llama.close()

    def _let_go(self) -> None:
        self._cached = []

    def _shift(self, context: list[int], evicted: int) -> None:
        """Take what is forgotten from now on out of the cache."""
        assert self._window is not None
        lost, self._evicted = evicted - self._evicted, evicted
        begin = self._window.protected
        if lost <= 0 or len(self._cached) < begin + lost:
            return
        left = self._cached[:begin] + self._cached[begin + lost :]
        if context[: len(left)] != left or not self._library.llama_memory_can_shift(self._memory):
            return
        if self._library.llama_memory_seq_rm(self._memory, 0, begin, begin + lost):
            self._library.llama_memory_seq_add(self._memory, 0, begin + lost, -1, -lost)
            self._cached = left


def _native_tokenizer(place: Path) -> tuple[Tokenizer | None, TokenizerError | None]:
    """This library's own reading of the file, or why it has none; a file that is no GGUF is an error."""
    try:
        with place.open("rb") as file:
            head = file.read(4)
    except OSError as error:
        raise ConstrainError(f"{place}: {error.strerror}") from error
    if head != b"GGUF":
        raise ConstrainError(f"{place}: not a GGUF file, which the llama-cpp backend needs")
    try:
        return load_tokenizer(place), None
    except TokenizerError as error:
        return None, error


def _adapted_tokenizer(llama: Any, refusal: TokenizerError | None) -> Tokenizer:
    from constrain.tokenizers.adapters.llama_cpp_model import LlamaCppTokenizer

    try:
        return LlamaCppTokenizer(llama)
    except TokenizerError as error:
        raise (refusal or error) from error


def _trained_length(place: Path) -> int:
    """How many tokens the model was trained for, from the file's metadata."""
    metadata = read_gguf_metadata(place, lambda key: key == "general.architecture" or key.endswith(".context_length"))
    architecture = metadata.get("general.architecture", b"")
    name = architecture.decode("utf-8", "replace") if isinstance(architecture, bytes) else architecture
    length = metadata.get(f"{name}.context_length")
    if not isinstance(length, int) or length < 1:
        raise ConstrainError(f"{place}: the file does not say how long a context its model was made for")
    return length
