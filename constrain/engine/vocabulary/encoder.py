"""What the engine asks of a tokenizer, beside its tokens."""

from __future__ import annotations

from typing import Any, Protocol


class Encoder(Protocol):
    """The one method of a tokenizer that is needed to spell text as a model would."""

    def encode(self, text: str) -> Any:
        """The text's tokens; the result has them as ``.ids``."""
        ...
