"""Recognizer: where we are in the text, byte by byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.engine import states
from constrain.errors import ConstrainError

if TYPE_CHECKING:
    from constrain.engine.compiled import CompiledGrammar


class Recognizer:
    """A stack of states over the bytes read so far.  Not for use from several threads at once."""

    def __init__(self, compiled: CompiledGrammar) -> None:
        self.compiled = compiled
        self._states = [compiled.start_state]

    def try_push_byte(self, byte: int) -> bool:
        """Read one byte.  False, and nothing changes, if no sentence goes on with it."""
        if not 0 <= byte <= 255:
            raise ConstrainError(f"{byte} is not a byte")
        state = self.compiled.run(states.push_byte, self._states[-1], byte)
        if state == 0:
            return False
        self._states.append(state)
        return True

    def pop_bytes(self, count: int) -> None:
        """Take back the last ``count`` bytes."""
        if not 0 <= count < len(self._states):
            raise ConstrainError(f"cannot take back {count} bytes, {len(self._states) - 1} were read")
        if count:
            del self._states[-count:]

    def is_accepting(self) -> bool:
        """Whether the bytes read are a complete sentence."""
        return bool(self.compiled.run(states.accepts, self._states[-1]))

    @property
    def state(self) -> int:
        """The id of the current state; equal ids allow exactly the same continuations."""
        return self._states[-1]
