"""What a grammar says about the parts of a text that a caller wants to have: rules whose texts are captured."""

from __future__ import annotations

from typing import NamedTuple

from constrain.grammar.languages.regular import Regular


class CaptureRule(NamedTuple):
    """A rule whose text is wanted.

    Attributes
    ----------
    name : str or None
        What the text is called; None if only that of its end is wanted.
    body, end : Regular or None
        For a rule that ends with something which is no part of what is wanted: what stands before it, and that.
    end_name : str or None
        What the text of the end is called, if it is wanted too.
    """

    name: str | None
    body: Regular | None = None
    end: Regular | None = None
    end_name: str | None = None
