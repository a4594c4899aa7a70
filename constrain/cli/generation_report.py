"""What ``constrain generate`` says about a generation."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from constrain.backends.kv_statistics import KVStatistics
    from constrain.generation import Statistics


def summary(statistics: Statistics, memory: KVStatistics | None = None) -> str:
    """The statistics in a line for a person; ``memory``: of keys and values, where some may be forgotten."""
    parts = [f"{statistics.tokens} token" + "s" * (statistics.tokens != 1)]
    if statistics.forced_tokens:
        parts[0] += f" ({100 * statistics.forced_share:.0f} % forced)"
    first = statistics.seconds_to_first_token
    if first is not None:
        parts.append(f"first after {1e3 * first:.1f} ms")
    mean, p99 = statistics.mean_seconds_between_tokens, statistics.p99_seconds_between_tokens
    if mean is not None and p99 is not None:
        parts.append(f"then {1e3 * mean:.2f} ms a token (p99 {1e3 * p99:.2f} ms)")
    parts.append(f"masks {1e3 * statistics.mask_seconds:.1f} ms ({100 * statistics.mask_share:.0f} % of the time)")
    if memory is not None:
        parts.append(f"keys and values of {memory.kept} tokens, {memory.dropped} forgotten")
    return ", ".join(parts)


def as_json(statistics: Statistics, backend: str, seed: int, memory: KVStatistics | None = None) -> str:
    """The statistics in a line for a program."""
    kv = {} if memory is None else {"kv": memory.as_dict()}
    return json.dumps({"backend": backend, "seed": seed, **statistics.as_dict(), **kv})
