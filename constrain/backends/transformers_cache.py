"""Caches of keys and values for the ``transformers`` backend, by the type that they are kept in."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from constrain.errors import ConstrainError

_BITS = {"q8": 8, "q4": 4}
_PLAIN_LAYERS = {"full_attention", "sliding_attention", "chunked_attention"}


class CacheMaker:
    """Makes empty caches for a model, and cuts them.

    Parameters
    ----------
    config : transformers.PretrainedConfig
    kv_type : str or None
        As in :class:`constrain.backends.options.BackendOptions`; None: the type that the model computes in.
    dtype : torch.dtype
        That type.

    Raises
    ------
    ConstrainError
        What a quantized cache needs is not installed, or the model cannot have one.
    """

    def __init__(self, config: Any, kv_type: str | None, dtype: Any) -> None:
        self._config = config
        text = config.get_text_config(decoder=True)
        kinds = set(getattr(text, "layer_types", None) or ["full_attention"])
        self.is_recurrent = not kinds <= _PLAIN_LAYERS or "mamba" in str(getattr(text, "model_type", ""))
        sliding = kinds != {"full_attention"} or getattr(text, "sliding_window", None) is not None
        self._quantizer = self._choose_quantizer(kv_type) if kv_type in _BITS else None
        self._bits = _BITS.get(kv_type or "", 0)
        self._stored = None if self._quantizer else _storage_type(kv_type, dtype)
        self._full = not self.is_recurrent and self._quantizer is None
        self.can_batch = self._full and not sliding
        if self._stored is not None and self.is_recurrent:
            raise ConstrainError(f"kv_type {kv_type} is for models with attention only, not for {text.model_type}")
        if self._quantizer is not None:
            heads = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
            # Groups of 64 numbers by default, which divide most sizes.
            self._group = next(size for size in (64, 32, 16, 8, 4, 2, 1) if heads % size == 0)
            self.make()

    def make(self) -> Any:
        """An empty cache."""
        from transformers import DynamicCache

        if self._quantizer is not None:
            from transformers import QuantizedCache

            try:
                return QuantizedCache(self._quantizer, self._config, nbits=self._bits, q_group_size=self._group)
            except (ValueError, ImportError) as error:
                raise ConstrainError(f"this model cannot have a quantized cache: {error}") from error
        if self._stored is not None:
            from constrain.backends.transformers_layer import cast_cache

            return cast_cache(self._stored)
        # Without the configuration every layer keeps all tokens, also where it looks at a window of them
        # only, so that a cache can be cut anywhere.
        return DynamicCache() if self._full else DynamicCache(config=self._config)

    def crop(self, cache: Any, length: int, kept: int) -> bool:
        """Cut a cache of ``length`` tokens after the first ``kept``; False where that cannot be done."""
        if kept == length:
            return True
        if not self._full or kept == 0:
            return False
        cache.crop(kept - length)
        return int(cache.get_seq_length()) == kept

    @staticmethod
    def _choose_quantizer(kv_type: str | None) -> str:
        utils: Any = import_module("transformers.utils")
        if utils.is_hqq_available():
            return "hqq"
        # It has no 8 bits.
        if kv_type == "q4" and utils.is_optimum_quanto_available():
            return "quanto"
        raise ConstrainError(
            f"kv_type {kv_type} of the transformers backend needs a quantizer: pip install hqq; the llama-cpp backend"
            " needs none"
        )


def _storage_type(kv_type: str | None, dtype: Any) -> Any:
    """The torch type to keep keys and values in, or None for the model's own."""
    import torch

    wanted = {"f32": torch.float32, "f16": torch.float16}.get(kv_type or "")
    return None if wanted is None or wanted == dtype else wanted
