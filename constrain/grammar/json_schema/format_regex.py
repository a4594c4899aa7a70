"""The format ``regex``: regular expressions of ECMA-262 with the ``u`` flag.

They nest, so all of them are no regular language.  These are those with groups up to a certain depth, without
names and back-references (which only mean something if a group of that name or number exists), and with property
classes out of a short list.
"""

from __future__ import annotations

from collections.abc import Callable

from constrain.grammar.regular import EPSILON, Regular, concat, optional, repeat, union

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
    counts = [concat(spell(f"{low},"), _at_least(spell, low)) for low in range(65)]
    count = concat(spell("\\{"), union(spell("[0-9]{1,4},?"), *counts), spell("\\}"))
    quantifier = optional(concat(union(spell("[*+?]"), count), spell("\\??")))
    anchor = spell("[\\^$]|\\\\[bB]")
    bar = spell("\\|")
    close = spell("\\)")
    group, look = spell("\\((?:\\?:)?"), spell("\\(\\?<?[=!]")
    atom = union(plain, classes)
    whole = EPSILON
    for depth in range(MAX_GROUPS + 1):
        atoms = atom if depth == 0 else union(atom, concat(group, whole, close))
        terms = [concat(atoms, quantifier), anchor]
        if depth:
            terms.append(concat(look, whole, close))
        term = union(*terms)
        whole = concat(repeat(term), repeat(concat(bar, repeat(term))))
    return whole


def _at_least(spell: Spell, low: int) -> Regular:
    """Decimal numbers of up to four digits, not below a number of one or two."""
    if low < 10:
        return spell(f"[{low}-9]|[1-9][0-9]{{1,3}}")
    tens, ones = divmod(low, 10)
    above = f"|[{tens + 1}-9][0-9]" if tens < 9 else ""
    return spell(f"{tens}[{ones}-9]{above}|[1-9][0-9]{{2,3}}")
