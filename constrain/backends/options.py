"""What can be asked of a backend's memory, and the refusal of what a backend cannot do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from constrain.errors import ConstrainError

KV_TYPES = ("f32", "f16", "q8", "q4")
EVICTION_POLICIES = ("none", "sliding")

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
    eviction_policy : "none" or "sliding"
        What happens when there are more.  "none": the generation ends.  "sliding": the oldest tokens behind a protected
        prefix are forgotten (:class:`constrain.backends.window.Window`).
    eviction_window : int or None
        For "sliding": how many tokens behind the prefix are remembered; by default as many as ``max_seq_len`` has
        room for.
    protected_prefix : int
        For "sliding": how many tokens at the beginning are never forgotten.

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
        if self.eviction_policy == "none":
            for name in ("eviction_window", "protected_prefix"):
                if getattr(self, name):
                    raise ConstrainError(f"{name} is for eviction_policy 'sliding'")


def refuse(backend: str, options: BackendOptions, able: Sequence[str] = ()) -> None:
    """Raise an error if an option is set that this backend has not, naming those that have it.

    ``able``: the options that it has.
    """
    for name, default in (("kv_type", None), ("max_seq_len", None), ("eviction_policy", "none")):
        if name not in able and getattr(options, name) != default:
            others = " and ".join(_ABLE[name])
            raise ConstrainError(f"the {backend} backend has no {name}; {others} have")
