"""Compiled patterns, which pydantic matches with Python's ``re``, in the syntax of a schema's ``pattern``.

Pydantic writes the text of ``re.compile("^a + b$", re.VERBOSE)`` alone, in which the blanks are blanks.  Here its flags
stand in front: ``(?x)^a + b$``.  With ``re.MULTILINE`` the places ``^`` and ``$`` are written out, as ECMA-262 has more
ends of lines than the line feed.  A bracket that closes no set is written with a backslash: in ECMA-262, ``[]a]`` is a
set of nothing before ``a]``.
"""

from __future__ import annotations

import re

from constrain.grammar.pydantic.rust_regex import OF_LINES

_PART = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)
_PART_OR_COMMENT = re.compile(rf"#[^\n]*|{_PART.pattern}", re.DOTALL)
_BRACKET_FIRST = re.compile(r"\[\^?(?=\])")
_OWN_FLAGS = re.compile(r"\s*\(\?[aimsux]+\)")


def with_flags(pattern: re.Pattern[str]) -> str:
    """The text of a compiled pattern with what its flags say."""
    letters = "".join(letter for letter in "aisx" if pattern.flags & re.RegexFlag[letter.upper()])
    own = _OWN_FLAGS.match(pattern.pattern)
    text = pattern.pattern[own.end() :] if own else pattern.pattern
    parts = (_PART_OR_COMMENT if pattern.flags & re.VERBOSE else _PART).findall(text)
    if pattern.flags & re.MULTILINE:
        parts = [OF_LINES.get(part, part) for part in parts]
    text = "".join(_BRACKET_FIRST.sub(r"\g<0>\\", part, count=1) if part[0] == "[" else part for part in parts)
    return (f"(?{letters})" if letters else "") + text
