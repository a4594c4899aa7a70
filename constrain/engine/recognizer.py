"""Recognizer: where we are in the text, byte by byte."""

from __future__ import annotations

from typing import Any

import numpy as np

from constrain.arguments import check_integer
from constrain.engine.cursor import Cursor
from constrain.engine.grammar_tables import GrammarTables
from constrain.engine.transaction import transact
from constrain.errors import ConstrainError

_BYTES = [bytes((byte,)) for byte in range(256)]


class Recognizer(Cursor):
    """A stack of states over the bytes read so far.  Not for use from several threads at once."""

    def try_push_byte(self, byte: int) -> bool:
        """Read one byte.  False, and nothing changes, if no sentence goes on with it."""
        if not isinstance(byte, (int, np.integer)) or not 0 <= byte <= 255:
            raise ConstrainError(f"{byte!r} is not a byte: an integer from 0 to 255")
        return self._is_text(_BYTES[byte]) and transact(self, self._read_step, _BYTES[byte])

    def pop_bytes(self, count: int) -> None:
        """Take back the last ``count`` bytes."""
        count = check_integer("the count of bytes", count)
        if not 0 <= count <= self._steps:
            raise ConstrainError(f"cannot take back {count} bytes, {self._steps} were read")
        transact(self, self._go_back, count, finds=False)

    def __reduce__(self) -> Any:
        # The text says it all.
        return _recognizer_behind, (self.compiled, self.text(self._steps))

    def is_accepting(self) -> bool:
        """Whether the bytes read are a complete sentence."""
        return transact(self, self.compiled.accepts, self)


def _recognizer_behind(compiled: GrammarTables, text: bytes) -> Recognizer:
    """A recognizer that has read a text."""
    recognizer = Recognizer(compiled)
    for byte in text:
        if not recognizer.try_push_byte(byte):
            raise ConstrainError("the pickled text of a recognizer is none that its grammar goes on with")
    return recognizer
