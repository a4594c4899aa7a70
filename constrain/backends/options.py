"""What can be asked of a backend's memory, and the refusal of what a backend cannot do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from constrain.errors import ConstrainError

KV_TYPES = ("f32", "f16", "q8", "q4")
EVICTION_POLICIES = ("none", "sliding", "attention")

_ABLE = {
    "kv_type": ("transformers", "llama-cpp"),
    "max_seq_len": ("transformers", "llama-cpp", "callable"),
    "eviction_policy": ("transformers", "llama-cpp"),
}


@dataclass(frozen=True)
class BackendOptions:
    """Options of a backend; None leaves the choice to it.

    Attributes
    ----------
    kv_type : "f32", "f16", "q8", "q4" or None
        What keys and values of earlier tokens are kept as: numbers of 32 or 16 bits, or quantized to 8 or 4.
    max_seq_len : int or None
        The most tokens that the model looks at.
    eviction_policy : "none", "sliding" or "attention"
        What happens when there are more.  "none": the generation ends.  "sliding": the oldest tokens behind a protected
        prefix are forgotten (:class:`constrain.backends.window.Window`).  "attention": when there are more than
        ``max_kv_size``, those that the last tokens look at least (SnapKV); the text still ends at ``max_seq_len``.
    eviction_window : int or None
        For "sliding": how many tokens behind the prefix are remembered; by default as many as ``max_seq_len`` has
        room for.
    max_kv_size : int or None
        For "sliding" and "attention": how many tokens have keys and values, the protected ones included.
    max_kv_bytes : int or None
        The same as memory of the keys and values of one text.
    protected_prefix : int
        For "sliding" and "attention": how many tokens at the beginning are never forgotten.

    Raises
    ------
    ConstrainError
        A value is out of range, or they contradict each other.
    """

    kv_type: str | None = None
    max_seq_len: int | None = None
    eviction_policy: str = "none"
    eviction_window: int | None = None
    protected_prefix: int = 0
    max_kv_size: int | None = None
    max_kv_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.kv_type is not None and self.kv_type not in KV_TYPES:
            raise ConstrainError(f"kv_type must be one of {', '.join(KV_TYPES)}, not {self.kv_type!r}")
        if self.max_seq_len is not None and self.max_seq_len < 2:
            raise ConstrainError(f"max_seq_len must be at least 2, not {self.max_seq_len}")
        if self.eviction_policy not in EVICTION_POLICIES:
            raise ConstrainError(
                f"eviction_policy must be one of {', '.join(EVICTION_POLICIES)}, not {self.eviction_policy!r}"
            )
        if self.eviction_window is not None and self.eviction_window < 2:
            raise ConstrainError(f"eviction_window must be at least 2, not {self.eviction_window}")
        if self.protected_prefix < 0:
            raise ConstrainError(f"protected_prefix must be 0 or more, not {self.protected_prefix}")
        for name in ("max_kv_size", "max_kv_bytes"):
            value = getattr(self, name)
            if value is not None and value < 2:
                raise ConstrainError(f"{name} must be at least 2, not {value}")
        if self.max_kv_size is not None and self.max_kv_bytes is not None:
            raise ConstrainError("max_kv_size and max_kv_bytes exclude each other")
        limited = self.max_kv_size is not None or self.max_kv_bytes is not None
        if self.eviction_policy == "none":
            for name in ("eviction_window", "protected_prefix"):
                if getattr(self, name):
                    raise ConstrainError(f"{name} is for eviction_policy 'sliding'")
            if limited:
                raise ConstrainError("max_kv_size is for eviction_policy 'sliding' and 'attention'")
        elif limited and self.eviction_window is not None:
            raise ConstrainError("eviction_window and max_kv_size exclude each other")
        if self.eviction_policy == "attention":
            if self.eviction_window is not None:
                raise ConstrainError("eviction_window is for eviction_policy 'sliding'")
            if not limited:
                raise ConstrainError("eviction_policy 'attention' needs a max_kv_size")

    def most_tokens(self, bytes_per_token: float | None) -> int | None:
        """The tokens that :attr:`max_kv_size` or :attr:`max_kv_bytes` has room for; None without these.

        Raises :class:`ConstrainError` where a token's size is not known.
        """
        if self.max_kv_bytes is None:
            return self.max_kv_size
        if bytes_per_token is None:
            raise ConstrainError(
                "max_kv_bytes: it is not known how large a token's keys and values are; give max_kv_size"
            )
        return int(self.max_kv_bytes // bytes_per_token)


def refuse(backend: str, options: BackendOptions, able: Sequence[str] = ()) -> None:
    """Raise an error if an option is set that this backend has not, naming those that have it.

    ``able``: the options that it has.
    """
    for name, default in (("kv_type", None), ("max_seq_len", None), ("eviction_policy", "none")):
        if name not in able and getattr(options, name) != default:
            *most, last = _ABLE[name]
            others = f"{', '.join(most)} and {last}" if most else last
            raise ConstrainError(f"the {backend} backend has no {name}; {others} have")
