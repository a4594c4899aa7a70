"""The format ``regex``: regular expressions of ECMA-262 with the ``u`` flag.

They nest, so all of them are no regular language.  These are those with groups up to a certain depth and with property
classes out of a short list.  Names of groups must differ and back-references need a group of that name or number, so
one group may have a name, and if that is a single letter, ``\\k`` may refer to it further on in the outermost level.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from string import ascii_letters

from constrain.grammar.regular import EMPTY, EPSILON, Regular, concat, optional, repeat, union

Spell = Callable[[str], Regular]

MAX_GROUPS = 4
"""How deep groups may be nested."""

_PROPERTIES = [
    "L",
    "Lu",
    "Ll",
    "Lt",
    "Lm",
    "Lo",
    "M",
    "Mn",
    "Mc",
    "Me",
    "N",
    "Nd",
    "Nl",
    "No",
    "P",
    "Pc",
    "Pd",
    "Ps",
    "Pe",
    "Pi",
    "Pf",
    "Po",
    "S",
    "Sm",
    "Sc",
    "Sk",
    "So",
    "Z",
    "Zs",
    "Zl",
    "Zp",
    "C",
    "Cc",
    "Cf",
    "Cs",
    "Co",
    "Cn",
    "Letter",
    "Mark",
    "Number",
    "Punctuation",
    "Symbol",
    "Separator",
    "Other",
    "Any",
    "ASCII",
    "Alphabetic",
    "Lowercase",
    "Uppercase",
    "White_Space",
]


def regex_format(spell: Spell) -> Regular:
    """The expressions that are taken."""
    hexadecimal = "[0-9A-Fa-f]"
    names = "|".join(_PROPERTIES)
    escape = (
        f"\\\\(?:[dDsSwWfnrtv]|c[A-Za-z]|x{hexadecimal}{{2}}|u(?:{hexadecimal}{{4}}|\\{{(?:{hexadecimal}{{1,5}}"
        f"|10{hexadecimal}{{4}})\\}})|[pP]\\{{(?:{names})\\}}|[\\^$\\\\.*+?()\\[\\]{{}}|/])"
    )
    # A range must not go backwards: here both ends are digits, small letters or capitals.
    ranges = "|".join(
        f"{chr(first)}-[{chr(first)}-{last}]"
        for begin, last in (("0", "9"), ("a", "z"), ("A", "Z"))
        for first in range(ord(begin), ord(last) + 1)
    )
    member = f"(?:{ranges}|[^\\]\\\\^-]|{escape}|\\\\[b-])"
    classes = spell(f"\\[\\^?(?:-?{member}(?:{member}|\\^)*-?|-)?\\]")
    plain = spell(f"[^\\^$\\\\.*+?()\\[\\]{{}}|]|\\.|{escape}")
    part = cache(spell)
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


def _at_least(spell: Spell, low: int) -> Regular:
    """Decimal numbers of up to four digits, not below a number of one or two."""
    if low < 10:
        return union(spell(f"[{low}-9]"), spell("[1-9][0-9]{1,3}"))
    tens, ones = divmod(low, 10)
    above = spell(f"[{tens + 1}-9][0-9]") if tens < 9 else EMPTY
    return union(concat(spell(f"{tens}"), spell(f"[{ones}-9]")), above, spell("[1-9][0-9]{2,3}"))
