"""The exceptions that constrain raises on purpose.

Every one of them derives from :class:`ConstrainError`, so ``except ConstrainError`` catches all
that a user's input can cause.  Each message is one line: what is wrong, where, and where it can
be said, what to do.
"""

from __future__ import annotations

from typing import Any

_LONGEST = 2000


class ConstrainError(ValueError):
    """Base class of every error that a grammar, a schema, a tokenizer file or an argument can cause."""

    def __str__(self) -> str:
        """The message; of one that quotes a very long name or string, its beginning and its end."""
        text = super().__str__()
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 4 :]}"


class GrammarError(ConstrainError):
    """A regex, a Lark or GBNF grammar, or a set of choices that cannot be used.

    Attributes
    ----------
    reason : str
        What is wrong, without the place.
    line, column : int or None
        Place in the source text, both counted from 1; ``None`` where there is no source text.
    """

    def __init__(self, reason: str, *, line: int | None = None, column: int | None = None) -> None:
        self.reason = reason
        self.line = line
        self.column = column
        place = "" if line is None else f"line {line}, column {column}: "
        super().__init__(place + reason)


class SchemaError(GrammarError):
    """A JSON Schema that is invalid, unsatisfiable, or uses a keyword that is not enforced.

    Attributes
    ----------
    pointer : str
        JSON pointer (RFC 6901, in URI fragment form: ``#/properties/name``) to the part at fault.
    """

    def __init__(self, reason: str, pointer: str = "#") -> None:
        super().__init__(reason)
        self.pointer = pointer
        self.args = (f"at {pointer}: {reason}",)

    def __reduce__(self) -> Any:
        # Made of its args it would name its place twice.
        return type(self), (self.reason, self.pointer), vars(self)


class TokenizerError(ConstrainError):
    """A tokenizer or vocabulary file that cannot be read, or a vocabulary that makes no sense."""


class LimitError(ConstrainError):
    """A limit on time or memory was reached; the message names the limit and how to raise it.

    Attributes
    ----------
    pointer : str or None
        As that of :class:`SchemaError`; ``None`` where no one part of a schema is at fault.
    """

    def __init__(self, reason: str, pointer: str | None = None) -> None:
        super().__init__(reason if pointer is None else f"at {pointer}: {reason}")
        self.pointer = pointer
