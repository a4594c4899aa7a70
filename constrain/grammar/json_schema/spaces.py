"""The options for white space, and the layout that they ask for."""

from __future__ import annotations

from typing import Any, NamedTuple

from constrain.errors import ConstrainError, GrammarError
from constrain.grammar.json_schema.lexical import layout as layouts
from constrain.grammar.json_schema.lexical.notation import Notation
from constrain.grammar.json_schema.normal.nodes import describe
from constrain.grammar.regular import EPSILON, Regular


class Spaces(NamedTuple):
    """The options of the same names of ``from_json_schema``, as they were given."""

    whitespace: Any
    max_whitespace: Any
    indent: Any
    separators: Any
    whitespace_pattern: Any
    separator_patterns: Any

    def layout(self, notation: Notation) -> layouts.Layout:
        """The layout that they ask for.  Raises ConstrainError for a value that one cannot have, or that exclude each
        other."""
        pair = _pair("separators", self.separators)
        for value in (self.max_whitespace, self.indent, *(pair or ())):
            # What is no plain value cannot be the value of any option, and not even be compared with those that can.
            if value is not None and not isinstance(value, (str, int, float)):
                raise ConstrainError(f"no option for a schema can be {describe(value)}")
        patterns = _pair("separator_patterns", self.separator_patterns)
        if self.whitespace_pattern is None and patterns is None:
            return layouts.layout_for(self.whitespace, self.max_whitespace, self.indent, pair, notation)
        name = "separator_patterns" if self.whitespace_pattern is None else "whitespace_pattern"
        is_alone = self.max_whitespace is None and self.indent is None and pair is None
        if not is_alone or self.whitespace == "compact":
            others = "whitespace='compact', max_whitespace, indent and separators"
            raise ConstrainError(f"{name} says what white space there is: it does not go with {others}")
        gap = EPSILON
        if self.whitespace_pattern is not None:
            gap = _matching("whitespace_pattern", self.whitespace_pattern)
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
