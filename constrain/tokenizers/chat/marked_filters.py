"""What Jinja's filters and formats make of text with marks.

Most filters call methods of strings, which keep the marks.  Those here would lose them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jinja2.filters
import markupsafe

from constrain.tokenizers.chat.marked_text import (
    CONTENT,
    TEMPLATE,
    MarkedText,
    common_mark,
    marks_of,
    origins_of,
    plain,
)


class MarkedMarkup(markupsafe.Markup):
    """What the filters ``safe`` and ``escape`` make of text; its methods lose the marks."""

    __slots__ = ("_marks",)
    _marks: bytes

    def __new__(cls, text: Any = "", marks: bytes | None = None) -> MarkedMarkup:
        made = super().__new__(cls, text)
        made._marks = bytes(len(made)) if marks is None else marks
        return made


def marked(value: Any) -> Any:
    """What a value is where text is wanted, with its marks; what is neither text, a number nor a container stays."""
    if isinstance(value, MarkedText):
        return value
    if isinstance(value, MarkedMarkup):
        return MarkedText(plain(value), value._marks)
    if value is None or isinstance(value, bool | int | float):
        return MarkedText(str(value), TEMPLATE)
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        # A representation of text from messages and of the template's own counts as from a message.
        return MarkedText(str(value), CONTENT if CONTENT in origins_of(value) else common_mark(value))
    return value


def with_marks_of(result: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A string that a filter made, with the mark that its arguments have in common."""
    mark = common_mark((*args, *kwargs.values()))
    if isinstance(result, markupsafe.Markup):
        same = bool(args) and isinstance(args[0], str) and plain(args[0]) == plain(result)
        return MarkedMarkup(result, marks_of(args[0]) if same else bytes((mark,)) * len(result))
    return MarkedText(result, mark)


def marked_format(formatter: Any, text: MarkedText, args: Any, kwargs: Any, result: str) -> MarkedText:
    """``text.format(*args, **kwargs)``, which is ``result``, with marks."""
    pieces: list[MarkedText] = []
    count = 0
    own = common_mark(text)
    for literal, field, spec, conversion in formatter.parse(text):
        pieces.append(MarkedText(literal, own))
        if field is None:
            continue
        if not field or field[0] in ".[":
            field = f"{count}{field}"
            count += 1
        one = "{" + field + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "") + "}"
        shown = formatter.vformat(one, args, kwargs)
        value, _ = formatter.get_field(field, args, kwargs)
        same = isinstance(value, MarkedText) and value == shown
        pieces.append(value if same else MarkedText(shown, common_mark((value,))))
    if "".join(pieces) != result:
        return MarkedText(result, common_mark((text, args, kwargs)))
    return MarkedText(result, b"".join(map(marks_of, pieces)))


@jinja2.pass_environment
def _join(environment: Any, value: Iterable[Any], d: Any = "", attribute: Any = None) -> MarkedText:
    if attribute is not None:
        value = map(jinja2.filters.make_attrgetter(environment, attribute), value)
    return _text(d).join(map(_text, value))


def _text(value: Any) -> MarkedText:
    text = marked(value)
    text = text if isinstance(text, str) else str(text)
    return text if isinstance(text, MarkedText) else MarkedText(plain(text))


def _indent(s: Any, width: Any = 4, first: bool = False, blank: bool = False) -> MarkedText:
    newline = MarkedText("\n", TEMPLATE)
    indention = _text(width) if isinstance(width, str) else MarkedText(" " * width, TEMPLATE)
    text = _text(s) if isinstance(s, str) else s
    lines = (text + newline).splitlines()
    if blank:
        result = (newline + indention).join(lines)
    else:
        result = newline.join([lines[0], *[indention + line if line else line for line in lines[1:]]])
    return indention + result if first else result


def _title(s: Any) -> MarkedText:
    text = _text(s)
    result = jinja2.filters.do_title(plain(text))
    return MarkedText(result, marks_of(text) if len(result) == len(text) else common_mark(text))


def _string(value: Any) -> str:
    return value if isinstance(value, str) else _text(value)


FILTERS: dict[str, Callable[..., Any]] = {"join": _join, "indent": _indent, "string": _string, "title": _title}
"""In place of Jinja's."""
