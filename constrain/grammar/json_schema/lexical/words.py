"""What the lexemes of a JSON Schema are called in front of a person: property names, strings, numbers.

A lexeme is one token of JSON with the white space, and for a key the comma, in front of it.  A person thinks of these
as several things, so which one is named depends on what comes next.
"""

from __future__ import annotations

import contextlib
import json
import re
from functools import cache

from constrain.grammar.json_schema.lexical.notation import all_notations
from constrain.grammar.json_schema.lexical.numbers import NumberForm
from constrain.grammar.json_schema.lexical.python_literals import PythonNotation
from constrain.grammar.languages import regular as r
from constrain.grammar.words import Progress, Words, few_strings, next_words

_BLANKS = sum(1 << byte for byte in b" \t\n\r")
_PUNCTUATION = ("{", "}", "[", "]", ",", ":")
_QUOTE, _COMMA, _COLON, _ESCAPE = (1 << byte for byte in b'",:\\')
_POINT = r.literal(".")
_PLACE = re.compile(r" \(at #[^)]*\)")
# How deep an expression is looked into, and how much is shown of a long value.
_DEPTH, _SHOWN = 40, 60


def describe(progress: Progress) -> Words:
    """The words for a lexeme of a JSON Schema."""
    first = progress.first & ~_BLANKS or progress.first
    if first in (_COMMA, _COLON):
        return Words("", (repr(chr(first.bit_length() - 1)),))
    plain = _Plain()
    whole = plain.of(progress.lexeme)
    rest = None if progress.rest is None else plain.of(progress.rest)
    # An escape is another spelling of something else, which is the one to name.
    progress = progress._replace(rest=rest, first=first & ~_ESCAPE or first)
    if _last_bytes(whole).rstrip().endswith(b":"):
        return _key(progress, whole)
    values = few_strings(whole)
    if not values:
        return _scalar(progress, whole)
    if not progress.begun:
        return Words("", tuple(map(_value, values)))
    ends = tuple(few_strings(rest) if rest else ()) or b""
    return Words("the rest of", tuple(_value(value) for value in values if value.endswith(ends)))


def _key(progress: Progress, whole: r.Regular) -> Words:
    kind = "a property name"
    names = few_strings(whole, 1)
    if not names:
        # The comma in front of a later key is part of its lexeme, and the quote is where the name begins.
        if progress.first != _QUOTE:
            return Words(f"the rest of {kind}", ())
        return Words(kind, ("another one" if progress.name in ("key", "") else f"like {progress.name}",))
    name = names[0][names[0].index(b'"') : names[0].rindex(b'"') + 1]
    rest = few_strings(progress.rest, 1) if progress.rest else []
    if rest and not rest[0].lstrip(b", \n").startswith(name):
        kind = f"the rest of {kind}"
    return Words(kind, (_value(name),))


def _scalar(progress: Progress, whole: r.Regular) -> Words:
    parts = progress.lexeme.parts if isinstance(progress.lexeme, r.Concat) else (progress.lexeme,)
    core = r.concat(*parts[1:]) if _is_gap(parts[0]) else progress.lexeme
    is_string = _ends_in_quote(whole)
    name = _kinds().get(core, "")
    if not name and progress.name.startswith("a string with"):
        # What the name quotes it has escaped, which makes patterns hard to read.
        name = _PLACE.sub("", progress.name).replace("\\\\", "\\")
    elif not name and progress.name.startswith("a value listed"):
        name = progress.name
    elif not name:
        name = ("a string" if is_string else "a number") + f" as {progress.name} says" * progress.name.startswith("#")
    if not progress.begun:
        return Words("", (name,))
    end = b"" if progress.rest is None else _last_bytes(progress.rest)[-1:]
    if is_string and end and progress.first & 1 << end[0]:
        mark = repr(end.decode())
        return Words("", (mark,) if progress.first == 1 << end[0] else (f"more of {name}", mark))
    if core in _kinds():
        return Words("", (f"more of {name}",))
    return Words("", (f"{next_words(progress)} (more of {name})",))


@cache
def _kinds() -> dict[r.Regular, str]:
    """What the languages of scalars are called of which nothing more is demanded."""
    every = all_notations()
    return {
        **{each.numbers[form]: "an integer" for each in every for form in NumberForm},
        **{each.numbers[NumberForm.ANY]: "a number" for each in every},
        **{each.string: "a string" for each in (*every, PythonNotation(("None", "True", "False")))},
    }


def _value(data: bytes) -> str:
    """A value as JSON writes it, and as it can be printed."""
    text = data.decode("utf-8", "backslashreplace")
    if text in _PUNCTUATION:
        return repr(text)
    with contextlib.suppress(ValueError):
        text = json.dumps(json.loads(text), ensure_ascii=False) if text.startswith('"') else text
    if len(text) > _SHOWN:
        text = text[: _SHOWN - 3] + "..."
    return text


def _last_bytes(whole: r.Regular) -> bytes:
    """The literal that a language ends with."""
    end = whole.parts[-1] if isinstance(whole, r.Concat) else whole
    return end.data if isinstance(end, r.Literal) else b""


def _ends_in_quote(whole: r.Regular) -> bool:
    """Whether all texts of a language end in a quote, of one kind or another."""
    end = whole.parts[-1] if isinstance(whole, r.Concat) else whole
    if isinstance(end, r.Union):
        return all(map(_ends_in_quote, end.parts))
    return isinstance(end, r.Literal) and end.data.endswith((b'"', b"'"))


def _is_gap(part: r.Regular) -> bool:
    """Whether a part is optional white space."""
    if isinstance(part, r.Union):
        return any(map(_is_gap, part.parts)) and all(map(_is_blank, part.parts))
    return isinstance(part, r.Repeat) and part.low == 0 and _is_blank(part)


def _is_blank(part: r.Regular) -> bool:
    if isinstance(part, (r.Concat, r.Union)):
        return all(map(_is_blank, part.parts))
    if isinstance(part, r.Repeat):
        return _is_blank(part.item)
    if isinstance(part, r.Literal):
        return not part.data.strip(b" \t\n\r")
    return part is r.EPSILON or (isinstance(part, r.ByteSet) and not part.bits & ~_BLANKS)


def _is_zero_fraction(part: r.Repeat) -> bool:
    """Whether it is the ``.0`` that may follow a whole number."""
    item = part.item
    return part.low == 0 and isinstance(item, r.Concat) and item.parts[0] == _POINT and len(item.parts) == 2


class _Plain:
    """Languages without white space between tokens, and without second spellings: escapes, fractions of zero."""

    def __init__(self) -> None:
        self._done: dict[int, r.Regular] = {}

    def of(self, language: r.Regular, depth: int = _DEPTH) -> r.Regular:
        # Expressions share parts, and each is looked at once; ids are those of parts that the lexeme keeps alive.
        done = self._done.get(id(language))
        if done is None and depth:
            done = self._done[id(language)] = self._new(language, depth - 1)
        return done or language

    def _new(self, language: r.Regular, depth: int) -> r.Regular:
        if isinstance(language, r.Concat):
            return r.concat(*(self.of(part, depth) for part in language.parts))
        if isinstance(language, r.Union):
            if _is_gap(language):
                return r.EPSILON
            raw = [part for part in language.parts if not _is_escape(part)]
            return r.union(*(self.of(part, depth) for part in raw or language.parts))
        if isinstance(language, r.Repeat):
            item = self.of(language.item, depth)
            dispensable = _is_gap(language) or _is_zero_fraction(language)
            return r.EPSILON if dispensable else r.repeat(item, language.low, language.high)
        return language


def _is_escape(part: r.Regular) -> bool:
    head = part.parts[0] if isinstance(part, r.Concat) else part
    return isinstance(head, r.Literal) and head.data.startswith(b"\\")
