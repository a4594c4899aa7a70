"""Any causal language model of Hugging Face ``transformers``: a folder with its configuration and weights."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator, Sequence
from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from constrain.backends.base import RememberingBackend, common_prefix
from constrain.backends.kv_statistics import KVStatistics
from constrain.backends.options import BackendOptions
from constrain.backends.transformers_batch import BatchCache
from constrain.backends.transformers_cache import CacheMaker
from constrain.backends.window import window_of
from constrain.errors import ConstrainError
from constrain.extras import how_to_install
from constrain.tokenizers import load_tokenizer
from constrain.tokenizers.base import Tokenizer

_LEAST_ROOM = 8
"""Tokens behind the protected ones that a cache must have room for."""

_CACHE_ARGUMENTS = ("past_key_values", "cache")
"""What models call the keys and values so far, before version 5.24 of transformers and since."""

_HOW_TO_INSTALL = f"the transformers backend needs torch and transformers: {how_to_install('transformers')}"


class TransformersBackend(RememberingBackend):
    """A model object of ``transformers`` and its tokenizer.

    Keys and values of the tokens so far are kept.  When a context differs from the last one from some token on, they
    are cut there and only the rest is computed; where the kind of cache cannot be cut (quantized ones, and models with
    a recurrent state), everything is computed again.  Models whose state is not a cache of transformers' usual kind
    (Mamba before transformers 5.24) compute everything for each token.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        A causal language model; it runs where it is, on a CPU or a GPU.
    tokenizer : Tokenizer, or one of transformers
    options : BackendOptions, optional
        ``kv_type``: "f32" and "f16" are kept in that type, whatever the model computes in; "q8" and "q4" are
        transformers' ``QuantizedCache``, which needs ``optimum-quanto`` or ``hqq``.  ``max_seq_len``: the model's own
        limit by default, and at most that.  ``eviction_policy``: "attention" needs a model whose layers all look at
        the whole text (transformers_eviction.py); rows of a batch are then made one after the other.

    Raises
    ------
    ConstrainError
        torch or what a ``kv_type`` needs is not installed, or an option is out of range.
    """

    name = "transformers"

    def __init__(self, model: Any, tokenizer: Tokenizer | Any, options: BackendOptions | None = None) -> None:
        super().__init__()
        torch: Any = import_module("torch")
        if not isinstance(model, torch.nn.Module):
            raise ConstrainError(f"model must be a transformers model, not {type(model).__name__}: load_backend(path)")
        if not isinstance(tokenizer, Tokenizer):
            tokenizer = load_tokenizer(tokenizer)
        options = options or BackendOptions()
        self._torch = torch
        self._model = model.eval()
        self.tokenizer = tokenizer
        config = model.config.get_text_config(decoder=True)
        output = model.get_output_embeddings()
        self.vocab_size = int(config.vocab_size if output is None else output.weight.shape[0])
        if self.vocab_size < tokenizer.vocab_size:
            raise ConstrainError(
                f"the model has logits for {self.vocab_size} tokens, but the tokenizer has {tokenizer.vocab_size}"
            )
        own_limit = getattr(config, "max_position_embeddings", None)
        limit = options.max_seq_len or own_limit
        if own_limit is not None and limit > own_limit:
            raise ConstrainError(f"max_seq_len is {limit}, but the model was made for at most {own_limit} tokens")
        self._token_size = _bytes_per_token(torch, config, options, model.dtype)
        self._window = window_of(options, limit, self._token_size)
        self._limit = limit
        self.max_seq_len = None if self._window else limit
        self._caches = CacheMaker(model.config, options.kv_type, model.dtype)
        accepted = inspect.signature(model.forward).parameters
        # Without this, a long prompt has logits at every position.
        self._last_only = {"logits_to_keep": 1} if "logits_to_keep" in accepted else {}
        self._all = {"logits_to_keep": 0} if self._last_only else {}
        # Some models with a recurrent state only have it elsewhere; they compute everything each time.
        self._cache_argument = next((name for name in _CACHE_ARGUMENTS if name in accepted), None)
        self.can_batch = self._cache_argument is not None and self._caches.can_batch and "position_ids" in accepted
        self._room = self._room_of(options, "position_ids" in accepted)
        self.can_batch = self.can_batch and self._room is None
        embeddings = model.get_input_embeddings()
        self._known_tokens = self.vocab_size if embeddings is None else int(embeddings.weight.shape[0])
        self._batch = BatchCache(self._caches, self._check_tokens)
        self._told, self._dropped, self._evictions, self._largest, self._floor = 0, 0, 0, 0, 0
        self._cache: Any = None
        self._cached: list[int] = []
        starts = (tokenizer.special_tokens.bos, getattr(config, "bos_token_id", None), *tokenizer.eos_ids)
        self.start_id = next((start for start in starts if isinstance(start, int)), None)

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        options: BackendOptions | None = None,
        *,
        device: str | None = None,
        tokenizer: Tokenizer | None = None,
    ) -> TransformersBackend:
        """Open a model folder; nothing is downloaded, and no code from the folder is run.

        Parameters
        ----------
        path : path
            A folder with ``config.json``, weights and, unless ``tokenizer`` is given, a tokenizer.
        options : BackendOptions, optional
        device : str, optional
            As torch names it; the first GPU by default, else the CPU.
        tokenizer : Tokenizer, optional

        Raises
        ------
        ConstrainError
            torch or transformers is not installed, or the folder cannot be read as a causal language model; with the
            path.
        TokenizerError
            The tokenizer cannot be read.
        """
        place = Path(fspath(path))
        if not (place / "config.json").is_file():
            reason = "no config.json in this folder" if place.is_dir() else "not a model folder"
            raise ConstrainError(f"{place}: {reason}: the transformers backend needs a folder with a model's files")
        if tokenizer is None:
            tokenizer = load_tokenizer(place)
        try:
            torch: Any = import_module("torch")
            transformers: Any = import_module("transformers")
        except ImportError as error:
            raise ConstrainError(_HOW_TO_INSTALL) from error
        if device is None:
            device = "cuda" if torch.cuda.is_available() else "cpu"
        # The weights' own type; the option's name changed with version 5.
        dtype = "dtype" if int(transformers.__version__.split(".")[0]) >= 5 else "torch_dtype"
        with _quiet(transformers), _errors_of(place):
            model, found = transformers.AutoModelForCausalLM.from_pretrained(
                place, local_files_only=True, trust_remote_code=False, output_loading_info=True, **{dtype: "auto"}
            )
            missing = sorted(found["missing_keys"])
            if missing:
                raise ConstrainError(f"the folder has no weights for {missing[0]} ({len(missing)} such)")
            model = model.to(device)
        return cls(model, tokenizer, options)

    def logits(self, ids: Sequence[int]) -> Any:
        with self._turn:
            return self._logits(ids)

    def _logits(self, ids: Sequence[int]) -> Any:
        context = self._context(ids)
        if self._window is not None:
            self._say_window(len(ids))
        if self._room is not None:
            return self._logits_with_room(context, self._room)
        if self._cache_argument is None:
            return self._numpy(self._forward(input_ids=self._tensor([context]), use_cache=False).logits[0, -1])
        kept = common_prefix(self._cached, context)
        # The answer itself is not kept, so the last token is always computed.
        kept = min(kept, len(context) - 1)
        if self._cache is None or not self._caches.crop(self._cache, len(self._cached), kept):
            self._cache, kept = self._caches.make(), 0
        new = context[kept:]
        # Where there is a state already, many recurrent layers take one token only.
        parts = [[token] for token in new] if kept and self._caches.is_recurrent else [new]
        self._cached = []  # until the model has answered, nothing is known about the cache
        try:
            for part in parts:
                output = self._forward_cached(self._cache, input_ids=self._tensor([part]))
        except BaseException:
            self._cache = None
            raise
        self._cached = list(context)
        return self._numpy(output.logits[0, -1])

    def _room_of(self, options: BackendOptions, takes_positions: bool) -> Any:
        """What the cache may hold where the rest is forgotten by attention; None where nothing is."""
        if options.eviction_policy != "attention":
            return None
        most, protected = options.most_tokens(self._token_size), options.protected_prefix
        if not self.can_batch or not takes_positions:
            raise ConstrainError(
                "eviction_policy 'attention' is for models whose layers all look at the whole text, and for a kv_type"
                " of f32 or f16"
            )
        assert most is not None
        if most < protected + _LEAST_ROOM:
            raise ConstrainError(
                f"max_kv_size has room for {most} tokens; with a protected prefix of {protected} at least"
                f" {protected + _LEAST_ROOM} are needed"
            )
        from constrain.backends.transformers_eviction import Room

        return Room(most, max(protected + _LEAST_ROOM // 2, most * 3 // 4), protected)

    def _logits_with_room(self, context: list[int], room: Any) -> Any:
        # What was forgotten does not come back: before that the text can be cut no more.
        kept = min(common_prefix(self._cached, context), len(context) - 1)
        if self._cache is None or kept < self._floor:
            self._cache, kept = self._caches.make(), 0
            self._dropped, self._evictions, self._largest, self._floor = 0, 0, 0, 0
        elif kept < len(self._cached):
            self._cache.crop(kept - len(self._cached))
        self._cached = []
        try:
            output = self._read(context[kept:], kept)
            if self._cache.get_seq_length() > room.most:
                self._forget(context, room)
        except BaseException:
            self._cache = None
            raise
        self._cached = list(context)
        self._largest = max(self._largest, self._size_of_cache())
        self._told = len(context)
        return self._numpy(output.logits[0, -1])

    def _read(self, tokens: list[int], place: int, **arguments: Any) -> Any:
        """The answer for tokens that stand at ``place`` of the text; their keys and values go into the cache."""
        positions = self._torch.arange(place, place + len(tokens), device=self._model.device)[None]
        ids = self._tensor([tokens])
        return self._forward_cached(self._cache, input_ids=ids, position_ids=positions, **arguments)

    def _forget(self, context: list[int], room: Any) -> None:
        """Have the last tokens read once more, for what they look at, and forget what is not looked at."""
        from constrain.backends.transformers_eviction import forget

        held = self._cache.get_seq_length()
        self._largest = max(self._largest, self._size_of_cache())
        again = room.observed
        self._cache.crop(-again)
        usual = self._model.config._attn_implementation
        self._model.set_attn_implementation("eager")  # the others do not say what is looked at
        try:
            output = self._read(context[-again:], len(context) - again, output_attentions=True)
        finally:
            self._model.set_attn_implementation(usual)
        with self._torch.inference_mode():
            forget(self._cache, output.attentions, room)
        self._dropped += held - room.left
        self._evictions += 1
        self._floor = len(context)

    def _size_of_cache(self) -> int:
        layers = [] if self._cache is None else getattr(self._cache, "layers", [])
        tensors = [getattr(layer, name, None) for layer in layers for name in ("keys", "values")]
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors if tensor is not None)

    def _say_window(self, length: int) -> None:
        assert self._window is not None
        dropped = self._window.evicted(length)
        if length <= self._told:
            self._evictions = 0
        self._evictions += int(dropped > self._dropped)
        self._told, self._dropped = length, dropped

    def kv_statistics(self) -> KVStatistics | None:
        if self._window is None and self._room is None:
            return None
        size = self._size_of_cache()
        kept = self._told - self._dropped
        return KVStatistics(self._told, kept, self._dropped, self._evictions, size, max(size, self._largest))

    def prompt_logits(self, ids: Sequence[int]) -> Any:
        """float32[len(ids), vocab_size]: the logits behind each of these tokens, in one go and without a cache."""
        context = self._context(ids)
        if len(context) != len(ids):
            raise ConstrainError(f"{len(ids)} tokens do not fit into the window that slides")
        with self._turn:
            return self._numpy(self._forward(input_ids=self._tensor([context]), use_cache=False, **self._all).logits[0])

    def logits_batch(self, contexts: Sequence[Sequence[int] | None]) -> Any:
        if not self.can_batch:
            return super().logits_batch(contexts)
        result = np.zeros((len(contexts), self.vocab_size), np.float32)
        running = {row: list(self._context(ids)) for row, ids in enumerate(contexts) if ids is not None}
        if running:
            with self._turn:
                arguments = self._batch.prepare(running, self._torch, self._model.device)
                try:
                    output = self._forward_cached(self._batch.cache, **arguments)
                except BaseException:
                    self._batch.forget()
                    raise
            result[list(running)] = self._numpy(output.logits[:, -1])
        return result

    def close(self) -> None:
        with self._turn:
            self._let_go()

    def _let_go(self) -> None:
        self._cache = None
        self._cached = []
        self._batch.forget()

    def _context(self, ids: Sequence[int]) -> list[int]:
        """What the model sees of the tokens so far."""
        if not ids:
            if self.start_id is None:
                raise ConstrainError("the model needs a prompt: its tokenizer has no token that begins a text")
            ids = [self.start_id]
        if self._window is not None:
            ids = self._window.visible(ids)
        if self._limit is not None and len(ids) > self._limit:
            raise ConstrainError(f"{len(ids)} tokens do not fit into the model's context of {self._limit}")
        return list(ids)

    def _forward_cached(self, cache: Any, **arguments: Any) -> Any:
        """The model's answer; keys and values of the new tokens go into ``cache``."""
        assert self._cache_argument is not None
        return self._forward(**arguments, **{self._cache_argument: cache}, use_cache=True)

    def _forward(self, **arguments: Any) -> Any:
        try:
            with self._torch.inference_mode():
                return self._model(**{**self._last_only, **arguments})
        except (RuntimeError, IndexError) as error:  # no memory
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise ConstrainError(f"the model cannot go on: {lines[0]}") from error

    def _check_tokens(self, tokens: list[int]) -> None:
        """Raise for a token that the model has not: on a GPU, asking for it makes the device useless to the process."""
        if min(tokens) < 0 or max(tokens) >= self._known_tokens:
            unknown = next(token for token in tokens if not 0 <= token < self._known_tokens)
            raise ConstrainError(f"the model cannot go on: of its {self._known_tokens} tokens none has id {unknown}")

    def _tensor(self, rows: list[list[int]]) -> Any:
        for row in rows:
            self._check_tokens(row)
        return self._torch.tensor(rows, dtype=self._torch.long, device=self._model.device)

    @staticmethod
    def _numpy(tensor: Any) -> Any:
        return tensor.float().cpu().numpy()


def _bytes_per_token(torch: Any, config: Any, options: BackendOptions, dtype: Any) -> float | None:
    """The size of a token's keys and values, where the configuration says it and nothing is quantized."""
    if options.kv_type in ("q8", "q4"):
        return None
    kept = {"f32": torch.float32, "f16": torch.float16}.get(options.kv_type or "", dtype)
    layers, heads = getattr(config, "num_hidden_layers", None), getattr(config, "num_attention_heads", None)
    shared = getattr(config, "num_key_value_heads", None) or heads
    size = getattr(config, "head_dim", None)
    if size is None and heads and getattr(config, "hidden_size", None):
        size = config.hidden_size // heads
    if not (layers and shared and size):
        return None
    return float(2 * layers * shared * size * torch.empty(0, dtype=kept).element_size())


@contextlib.contextmanager
def _errors_of(place: Path) -> Iterator[None]:
    """Whatever a reader of model files raises, which may be anything, as one error with the path."""
    try:
        yield
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise ConstrainError(f"{place}: {lines[0]}") from error


@contextlib.contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """No progress bars and warnings while a model is loaded; what is wrong is an error."""
    logging = transformers.utils.logging
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
