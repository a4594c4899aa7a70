"""The format ``regex``: regular expressions of ECMA-262 with the ``u`` flag.

They nest, so all of them are no regular language.  These are those with groups up to a certain depth and with property
classes out of a short list.  Names of groups must differ and back-references need a group of that name or number, so
one group may have a name, and if that is a single letter, ``\\k`` may refer to it further on in the outermost level.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from string import ascii_letters

from constrain.grammar.languages.regular import EMPTY, EPSILON, Regular, concat, optional, repeat, union
from constrain.unicode_categories import CATEGORIES

Spell = Callable[[str], Regular]

_DIGITS = "0123456789abcdef"
_HEXADECIMAL = "[0-9A-Fa-f]"

MAX_GROUPS = 4
"""How deep groups may be nested."""

_PROPERTIES = dict.fromkeys(
    [name for category in CATEGORIES for name in (category[0], category)]
    + ["Letter", "Mark", "Number", "Punctuation", "Symbol", "Separator", "Other"]
    + ["Any", "ASCII", "Alphabetic", "Lowercase", "Uppercase", "White_Space"]
)


def regex_format(spell: Spell) -> Regular:
    """The expressions that are taken."""
    names = "|".join(_PROPERTIES)
    escape = (
        f"\\\\(?:[dDsSwWfnrtv]|c[A-Za-z]|x{_HEXADECIMAL}{{2}}|u(?:{_HEXADECIMAL}{{4}}|\\{{(?:{_HEXADECIMAL}{{1,5}}"
        f"|10{_HEXADECIMAL}{{4}})\\}})|[pP]\\{{(?:{names})\\}}|[\\^$\\\\.*+?()\\[\\]{{}}|/])"
    )
    part = cache(spell)
    one = spell(f"[^\\]\\\\^-]|{escape}|\\\\[b-]")
    hyphen, circumflex = optional(part("-")), part("\\^")
    # Behind a range a hyphen is a character, and what comes then may begin another range (ClassRanges in the
    # specification); behind anything else it would make one.
    member = union(one, concat(union(*_ranges(part)), hyphen))
    others = concat(repeat(union(member, circumflex)), hyphen)
    inside = optional(concat(union(member, part("-")), others))
    classes = concat(
        part("\\["), union(inside, concat(circumflex, union(inside, concat(circumflex, others)))), part("\\]")
    )
    plain = spell(f"[^\\^$\\\\.*+?()\\[\\]{{}}|]|\\.|{escape}")
    counts = [concat(*map(part, f"{low},"), _at_least(part, low)) for low in range(65)]
    count = concat(spell("\\{"), union(spell("[0-9]{1,4},?"), *counts), spell("\\}"))
    quantifier = optional(concat(union(spell("[*+?]"), count), spell("\\??")))
    anchor = spell("[\\^$]|\\\\[bB]")
    bar = spell("\\|")
    close = spell("\\)")
    group, look = spell("\\((?:\\?:)?"), spell("\\(\\?<?[=!]")
    atom = union(plain, classes)
    begin_name = spell("\\(\\?<[A-Za-z$_][A-Za-z0-9$_]*>")
    # Without names, and with just one, as deep as groups go.
    whole: Regular = EPSILON
    with_name: Regular = EMPTY
    inner = whole
    for depth in range(MAX_GROUPS + 1):
        atoms = atom if depth == 0 else union(atom, concat(group, whole, close))
        terms = [concat(atoms, quantifier), anchor]
        named: list[Regular] = []
        if depth:
            terms.append(concat(look, whole, close))
            named.append(concat(union(concat(begin_name, whole), concat(group, with_name)), close, quantifier))
            named.append(concat(look, with_name, close))
        inner, whole = whole, repeat(union(*terms, bar))
        with_name = concat(whole, union(*named), whole)
    free = union(*terms, bar)
    referring = [
        concat(
            *(spell(f"\\(\\?<{name}>"), inner, close, quantifier),
            repeat(union(free, concat(spell(f"\\\\k<{name}>"), quantifier))),
        )
        for name in ascii_letters
    ]
    return union(whole, concat(whole, union(*named, *referring), whole))


def _ranges(part: Spell) -> list[Regular]:
    """Ranges of a class that do not go backwards.

    Both ends are characters of ASCII, or both are escapes with hexadecimal digits, of which the first or the second
    differs, or the third behind two zeros.
    """
    found = []
    for first in range(0x20, 0x7F):
        if first not in b"\\]-^":
            # Neither a backslash nor a closing bracket.
            lasts = f"\\x{first:02x}-\\x7e" if first > 0x5D else f"\\x{first:02x}-\\x5b\\x5e-\\x7e"
            found.append(part(f"{re.escape(chr(first))}-[{lasts}]"))
    return [*found, _escaped_range(part, "x", 2), _escaped_range(part, "u", 4)]


def _escaped_range(part: Spell, letter: str, digits: int) -> Regular:
    """A range between escapes of so many digits, of which the first differs, the second, or the third behind zeros."""
    again, each = part(f"-\\\\{letter}"), [part(f"[{digit}{digit.upper()}]") for digit in _DIGITS]
    above = [part(f"[{_DIGITS[value:]}{_DIGITS[value:].upper()}]") for value in range(1, 16)]

    def from_here(before: Regular, left: int) -> list[Regular]:
        """The digit after ``before`` differs, and ``left`` digits come behind it; by the lower of the two."""
        rest = repeat(part(_HEXADECIMAL), left, left)
        return [concat(each[value], rest, again, before, above[value], rest) for value in range(15)]

    ways = from_here(EPSILON, digits - 1) + [concat(digit, union(*from_here(digit, digits - 2))) for digit in each]
    if letter == "u":
        # With the escape before it, one from D800 on may be a single character beyond FFFF, where the range begins.
        ways = [way for value, way in enumerate(ways) if value not in (0xD, 15 + 0xD)]
    if digits > 2:
        before = concat(each[0], each[0])
        ways.append(concat(before, union(*from_here(before, digits - 3))))
    return concat(part(f"\\\\{letter}"), union(*ways))


def _at_least(spell: Spell, low: int) -> Regular:
    """Decimal numbers of up to four digits, not below a number of one or two."""
    if low < 10:
        return union(spell(f"[{low}-9]"), spell("[1-9][0-9]{1,3}"))
    tens, ones = divmod(low, 10)
    above = spell(f"[{tens + 1}-9][0-9]") if tens < 9 else EMPTY
    return union(concat(spell(f"{tens}"), spell(f"[{ones}-9]")), above, spell("[1-9][0-9]{2,3}"))
