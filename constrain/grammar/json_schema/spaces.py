"""The options for white space, and the layout that they ask for."""

from __future__ import annotations

from typing import Any

from constrain.errors import ConstrainError, GrammarError
from constrain.grammar.json_schema.lexical import layout as layouts
from constrain.grammar.json_schema.lexical.notation import Notation
from constrain.grammar.json_schema.normal.nodes import describe
from constrain.grammar.languages.regular import EPSILON, Regular


def layout_of_options(
    notation: Notation,
    whitespace: Any,
    max_whitespace: Any,
    indent: Any,
    separators: Any,
    whitespace_pattern: Any,
    separator_patterns: Any,
) -> layouts.Layout:
    """The layout that the options of the same names ask for.

    Raises ConstrainError for a value that one cannot have, or that exclude each other.
    """
    pair = _pair("separators", separators)
    for value in (max_whitespace, indent, *(pair or ())):
        # What is no plain value cannot be the value of any option, and not even be compared with those that can.
        if value is not None and not isinstance(value, (str, int, float)):
            raise ConstrainError(f"no option for a schema can be {describe(value)}")
    patterns = _pair("separator_patterns", separator_patterns)
    if whitespace_pattern is None and patterns is None:
        return layouts.layout_for(whitespace, max_whitespace, indent, pair, notation)
    name = "separator_patterns" if whitespace_pattern is None else "whitespace_pattern"
    is_alone = max_whitespace is None and indent is None and pair is None
    if not is_alone or whitespace == "compact":
        others = "whitespace='compact', max_whitespace, indent and separators"
        raise ConstrainError(f"{name} says what white space there is: it does not go with {others}")
    gap = EPSILON
    if whitespace_pattern is not None:
        gap = _matching("whitespace_pattern", whitespace_pattern)
    if patterns is None:
        return layouts.layout_of_patterns(gap, layouts.MARKS, notation)
    comma, colon = (_matching("separator_patterns", *each) for each in zip(patterns, ",:", strict=True))
    return layouts.layout_of_patterns(gap, (comma, colon), notation)


def space_around(layout: layouts.Layout) -> Regular:
    """The white space that may stand before and behind a whole text, if any may."""
    return layouts.USUAL_GAP if layout.gap is EPSILON else layout.gap


def _pair(name: str, value: Any) -> tuple[Any, Any] | None:
    if value is None:
        return None
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise ConstrainError(f"{name} must be two strings, not {value!r}")
    return value[0], value[1]


def _matching(name: str, pattern: Any, mark: str = "") -> Regular:
    if not isinstance(pattern, str):
        raise ConstrainError(f"{name} must hold patterns, which {describe(pattern)} is not")
    try:
        return layouts.separator_matching(pattern, mark) if mark else layouts.space_matching(pattern)
    except GrammarError as error:
        raise ConstrainError(f"{name}: {pattern!r}: {error}") from None
