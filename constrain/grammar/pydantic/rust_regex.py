"""Patterns of pydantic's own engine of regular expressions, Rust's ``regex``, in the syntax of a schema's ``pattern``.

Pydantic hands a pattern over as it is, but ECMA-262 means something else by some of it.  There ``\\S`` matches U+0085,
which is white space to Rust; ``\\D`` and ``\\W`` match ``\u0663`` and ``\u00e9``, a digit and a letter to Rust; and
``\\b`` is between ``x`` and ``\u00e9``.  Here they are written out.  ``\\d`` and ``\\w`` stay ASCII, which both take.
"""

from __future__ import annotations

import re

from pydantic.errors import PydanticInvalidForJsonSchema

_UNKNOWN = "\\p{Cn}"
"""What another version of Unicode may call a digit or a letter."""

_SPACE = "\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"
_DIGIT = f"\\p{{Nd}}{_UNKNOWN}"
_WORD = "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\u200c\\u200d\\u24b6-\\u24e9"
_WORD += "\\u{1f130}-\\u{1f149}\\u{1f150}-\\u{1f169}\\u{1f170}-\\u{1f189}"
"""Alphabetic, marks, decimal digits, connectors, and the two joiners."""

_IN, _OUT = f"[{_WORD}]", f"[{_WORD}{_UNKNOWN}]"

_OUTSIDE = {
    "\\s": f"[{_SPACE}]",
    "\\S": f"[^{_SPACE}]",
    "\\D": f"[^{_DIGIT}]",
    "\\W": f"[^{_WORD}{_UNKNOWN}]",
    "\\b": f"(?:(?<={_IN})(?!{_OUT})|(?<!{_OUT})(?={_IN}))",
    "\\B": f"(?:(?<={_IN})(?={_IN})|(?<!{_OUT})(?!{_OUT}))",
}
OF_LINES = {"^": "(?:^|(?<=\\n))", "$": "(?:$|(?=\\n))"}
"""With the flag ``m``, for which ECMA-262 has more ends of lines than the line feed."""

# Within a set, and within one that is negated, where what is named must be all that Rust takes.
_IN_SET = {"\\s": _SPACE}
_IN_NEGATED = {"\\s": _SPACE, "\\d": _DIGIT, "\\w": _WORD + _UNKNOWN, "\\S": "\\S\\ufeff"}
_COMPLEMENTS = {name: _OUTSIDE[name] for name in ("\\S", "\\D", "\\W")}

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7f",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-\\/:-@\\[-`{-~",
    "space": "\\t-\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_PART = re.compile(r"\\(?:[pPxuU]\{[^}]*\}|.)|\[:[a-z]+:\]|\[\^?|&&|--|~~|.", re.DOTALL)
_FLAGS = re.compile(r"\(\?([a-z]*m[a-z]*)\)")


def as_ecma(pattern: str) -> str:
    """The same texts, or some of them, for ECMA-262.

    Raises PydanticInvalidForJsonSchema for sets within sets and for what Rust has to combine them.
    """
    meanings = _OUTSIDE
    if found := _FLAGS.match(pattern):
        meanings = _OUTSIDE | OF_LINES
        others = found[1].replace("m", "")
        pattern = (f"(?{others})" if others else "") + pattern[found.end() :]
    parts = [found[0] for found in _PART.finditer(pattern)]
    written, place = [], 0
    while place < len(parts):
        if parts[place] in ("[", "[^"):
            text, place = _set(pattern, parts, place)
            written.append(text)
        else:
            written.append(meanings.get(parts[place], parts[place]))
            place += 1
    return "".join(written)


def _set(pattern: str, parts: list[str], place: int) -> tuple[str, int]:
    """The set that begins at a place, and the place behind it."""
    is_negated = parts[place] == "[^"
    meanings, members, beside = _IN_NEGATED if is_negated else _IN_SET, [], []
    begin = place = place + 1
    while place < len(parts) and (parts[place] != "]" or place == begin):
        part = parts[place]
        if part in ("[", "[^", "&&", "~~") or (part == "--" and place > begin):
            raise PydanticInvalidForJsonSchema(f"the pattern {pattern!r} has a set within a set, or {part!r} in one")
        if part.startswith("[:"):
            if part[2:-2] not in _POSIX:
                raise PydanticInvalidForJsonSchema(f"the pattern {pattern!r} has the unknown class {part}")
            members.append(_POSIX[part[2:-2]])
        elif part in _COMPLEMENTS and not is_negated:
            beside.append(_COMPLEMENTS[part])
        else:
            members.append("\\]" if part == "]" else meanings.get(part, part))
        place += 1
    text = f"[{'^' if is_negated else ''}{''.join(members)}]"
    if beside:
        text = f"(?:{'|'.join([text] * bool(members) + beside)})"
    return text, place + 1
