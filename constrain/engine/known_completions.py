"""The completions that completions.py knows, for Python.  The caller holds the lock of the compiled grammar."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from constrain.engine import completions
from constrain.engine.node_costs import NEVER

if TYPE_CHECKING:
    from constrain.engine.compiled import CompiledGrammar
    from constrain.engine.history import Place


def tokens_from(compiled: CompiledGrammar, place: Place) -> int:
    """How many tokens the known completion of a place takes; NEVER if there is none."""
    return compiled.run_at(place, completions.tokens_from)


def completion(compiled: CompiledGrammar, place: Place) -> list[int]:
    """The tokens of the known completion of a place, which has one."""
    out = np.empty(tokens_from(compiled, place), np.int32)
    count = compiled.run_at(place, completions.completion, out)
    assert count == len(out)
    return out.tolist()  # type: ignore[no-any-return]


def fewest_tokens(compiled: CompiledGrammar, data: bytes) -> list[int] | None:
    """The fewest tokens that spell some bytes; None if no tokens do."""
    out = np.empty(len(data), np.int32)
    count = int(completions.fewest_tokens(compiled._tables.ctx, np.frombuffer(data, np.uint8), out))
    return None if count == NEVER else out[:count].tolist()
