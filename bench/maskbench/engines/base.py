"""What the benchmark asks of an engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from bench.maskbench.jobs import Kind
from bench.maskbench.token_list import TokenList
from bench.maskbench.vocabulary import TokenTable


class NotCompiled(Exception):
    """The engine does not take this grammar; the message is the engine's own."""


class Session(ABC):
    """A compiled grammar and one matcher.

    ``fill`` and ``accept`` are called in the timed loop: they are attributes rather than methods, so
    that an engine can put its own bound function there, with nothing in between.

    Attributes
    ----------
    fill : () -> object
        Writes the mask of the next token into the engine's ``words``.
    accept : int -> bool
        Goes on with a token.
    mark : () -> int, or None
        Called before each step, outside the timed part: an id of the place, such that a place that
        was marked before has its mask already.
    """

    fill: Callable[[], Any]
    accept: Callable[[int], Any]
    mark: Callable[[], int] | None = None

    @abstractmethod
    def restart(self) -> None:
        """Back to the beginning of the text.  May put other functions into the attributes."""

    @abstractmethod
    def can_end(self) -> bool:
        """Whether the text so far is complete."""

    def fault(self) -> str:
        """What the engine says of a token that it does not allow: of a limit, for example; empty if nothing."""
        return ""

    def table_bytes(self) -> int | None:
        """What the compiled grammar takes by now, the vocabulary not counted; None where the engine does not say."""
        return None


class Engine(ABC):
    """An engine with a vocabulary.

    Attributes
    ----------
    words : memoryview of int32
        The bitmask that sessions fill; token ``i`` is bit ``i % 32`` of word ``i // 32``.
    """

    words: memoryview

    @property
    @abstractmethod
    def version(self) -> str:
        """Of the engine's package."""

    @abstractmethod
    def load(self, table: TokenTable | TokenList) -> None:
        """Take the vocabulary.  Not timed."""

    @abstractmethod
    def compile(self, kind: Kind, grammar: str) -> Session:
        """Compile a grammar.  Timed, together with one call of the session's ``fill``.

        Raises
        ------
        NotCompiled
            Or any other exception: the engine does not take the grammar.
        """
