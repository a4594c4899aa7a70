"""Sets of characters that have a name: ``\\d``, ``\\w``, ``\\p{Lu}``; and which characters differ only in case.

``\\d``, ``\\w``, ``\\s`` and case are worked out from the Unicode data of the running Python, the first time they are
asked for, and kept.  So ``\\w`` here and ``\\w`` in :mod:`re` agree in every version of Python.  General categories
and scripts are those of one version of Unicode (:mod:`constrain.unicode_categories`, :mod:`constrain.unicode_scripts`).
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import lru_cache

import numpy as np

from constrain.grammar.languages.utf8 import ALL, LAST, CodePoints, common, negate, normalize
from constrain.unicode_categories import CATEGORIES, SPACES, category_table, spans_by_value
from constrain.unicode_scripts import SCRIPTS, script_table

DIGIT: CodePoints = ((0x30, 0x39),)
WORD: CodePoints = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
SPACE: CodePoints = ((0x09, 0x0D), (0x20, 0x20))
"""What ``\\d``, ``\\w`` and ``\\s`` mean to Python's ``re`` under the flag ``a``."""

ECMA_SPACE: CodePoints = (
    (0x09, 0x0D),
    (0x20, 0x20),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
)
"""ECMAScript's WhiteSpace and LineTerminator."""

NEWLINE: CodePoints = ((0x0A, 0x0A),)
ECMA_NEWLINE: CodePoints = ((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029))

_ASCII: CodePoints = ((0, 0x7F),)

_LONG_NAMES = {
    "Cased_Letter": "LC",
    "Letter": "L",
    "Uppercase_Letter": "Lu",
    "Lowercase_Letter": "Ll",
    "Titlecase_Letter": "Lt",
    "Modifier_Letter": "Lm",
    "Other_Letter": "Lo",
    "Mark": "M",
    "Combining_Mark": "M",
    "Nonspacing_Mark": "Mn",
    "Spacing_Mark": "Mc",
    "Enclosing_Mark": "Me",
    "Number": "N",
    "Decimal_Number": "Nd",
    "digit": "Nd",
    "Letter_Number": "Nl",
    "Other_Number": "No",
    "Punctuation": "P",
    "punct": "P",
    "Connector_Punctuation": "Pc",
    "Dash_Punctuation": "Pd",
    "Open_Punctuation": "Ps",
    "Close_Punctuation": "Pe",
    "Initial_Punctuation": "Pi",
    "Final_Punctuation": "Pf",
    "Other_Punctuation": "Po",
    "Symbol": "S",
    "Math_Symbol": "Sm",
    "Currency_Symbol": "Sc",
    "Modifier_Symbol": "Sk",
    "Other_Symbol": "So",
    "Separator": "Z",
    "Space_Separator": "Zs",
    "Line_Separator": "Zl",
    "Paragraph_Separator": "Zp",
    "Other": "C",
    "Control": "Cc",
    "cntrl": "Cc",
    "Format": "Cf",
    "Surrogate": "Cs",
    "Private_Use": "Co",
    "Unassigned": "Cn",
}


@lru_cache(maxsize=8)
def perl_class(letter: str) -> CodePoints:
    """The Unicode meaning of ``\\d``, ``\\w`` or ``\\s`` in Python's ``re``, for ``letter`` in ``"dws"``."""
    # re itself is the fastest way through a million code points, and by definition the right one.  What lies between
    # two ranges is a part of a match: a long match takes a third of the time of as many searches.
    ranges = re.finditer(rf"(\{letter}+)\{letter.upper()}*", _every_code_point())
    return tuple((match.start(1), match.end(1) - 1) for match in ranges)


# Other_Alphabetic, beside marks: letters in circles and squares.
_ALPHABETIC_SYMBOLS: CodePoints = ((0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189))
_JOIN_CONTROL: CodePoints = ((0x200C, 0x200D),)


@lru_cache(maxsize=8)
def rust_class(letter: str) -> CodePoints:
    """The meaning of ``\\d``, ``\\w`` or ``\\s`` in Rust's ``regex``, for ``letter`` in ``"dws"``.

    ``\\s`` is White_Space, and ``\\w`` what Unicode Technical Standard 18 calls a word character: Alphabetic, marks,
    decimal digits, connecting punctuation and Join_Control.
    """
    if letter == "s":
        return SPACES
    if letter == "d":
        return _category("Nd")
    categories = (span for name in ("L", "Nl", "M", "Nd", "Pc") for span in _category(name))
    return normalize((*categories, *_ALPHABETIC_SYMBOLS, *_JOIN_CONTROL))


def _every_code_point() -> str:
    return np.arange(LAST + 1, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")


def property_class(name: str) -> CodePoints:
    """The code points with a Unicode property, as it stands between the braces of ``\\p{...}``.

    General categories by short or long name, alone or after ``gc=`` or ``General_Category=``, scripts, alone or after
    ``sc=`` or ``Script=``, and ``Any``, ``ASCII``, ``Assigned``, ``ID_Start``, ``ID_Continue``, ``XID_Start`` and
    ``XID_Continue``.  Case, spaces, ``-`` and ``_`` do not matter.

    Raises
    ------
    KeyError
        The property is not one of these.  The argument says so in words.
    """
    key, equals, value = name.partition("=")
    if equals:
        if _loose(key) in ("scriptextensions", "scx"):
            raise KeyError(f"\\p{{{name}}}: Script_Extensions are not known; write \\p{{Script={value.strip()}}}")
        if _loose(key) in ("script", "sc"):
            return _script(value)
        if _loose(key) not in ("generalcategory", "gc"):
            raise KeyError(f"unknown property '{key}' in \\p{{{name}}}; general categories such as \\p{{Lu}} are known")
        key = value
    loose = _loose(key)
    if not equals:
        if loose == "any":
            return ALL
        if loose == "ascii":
            return _ASCII
        if loose == "assigned":
            return negate(_category("Cn"))
        if loose in _OF_IDENTIFIERS:
            return _OF_IDENTIFIERS[loose]()
    short = _SHORT_NAMES.get(loose)
    if short is None:
        if loose in SCRIPTS and not equals:
            return _script(name)
        raise KeyError(_unknown(name))
    return _category(short)


def _loose(name: str) -> str:
    return name.strip().lower().replace("_", "").replace(" ", "").replace("-", "")


_SHORT_NAMES = {_loose(name): short for long, short in _LONG_NAMES.items() for name in (long, short)}


def _unknown(name: str) -> str:
    return (
        f"unknown property \\p{{{name}}}: general categories (L, Lu, Nd, ...), scripts (Greek, Latin, ...), Any, "
        "ASCII, Assigned, ID_Start, ID_Continue, XID_Start and XID_Continue are known; for another one write its "
        "ranges, such as [\\u0370-\\u03ff]"
    )


def _script(name: str) -> CodePoints:
    number = SCRIPTS.get(_loose(name))
    if number is None:
        near = get_close_matches(_loose(name), SCRIPTS, n=1)
        raise KeyError(f"unknown script {name.strip()!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    return _scripts()[number]


@lru_cache(maxsize=1)
def _scripts() -> dict[int, CodePoints]:
    return spans_by_value(script_table())


# Of identifiers (Unicode Standard Annex 31, section 2.3): the properties Other_ID_Start and Other_ID_Continue; the one
# letter that is a part of syntax; and what leaves the set of identifiers in normal form NFKC (section 5.1).
_OTHER_START = ((0x1885, 0x1886), (0x2118, 0x2118), (0x212E, 0x212E), (0x309B, 0x309C))
_OTHER_CONTINUE = (
    *((0xB7, 0xB7), (0x387, 0x387), (0x1369, 0x1371), (0x19DA, 0x19DA)),
    *((0x200C, 0x200D), (0x30FB, 0x30FB), (0xFF65, 0xFF65)),
)
_SYNTAX = ((0x2E2F, 0x2E2F),)
_UNSTABLE = (
    *((0x37A, 0x37A), (0x309B, 0x309C), (0xFC5E, 0xFC63), (0xFDFA, 0xFDFB)),
    *((point, point) for point in range(0xFE70, 0xFE80, 2)),
)
_UNSTABLE_START = ((0xE33, 0xE33), (0xEB3, 0xEB3), (0xFF9E, 0xFF9F))


@lru_cache(maxsize=1)
def _id_start() -> CodePoints:
    return _without(normalize((*_category("L"), *_category("Nl"), *_OTHER_START)), _SYNTAX)


@lru_cache(maxsize=1)
def _id_continue() -> CodePoints:
    others = [span for short in ("Mn", "Mc", "Nd", "Pc") for span in _category(short)]
    return normalize((*_id_start(), *others, *_OTHER_CONTINUE))


@lru_cache(maxsize=1)
def _xid_start() -> CodePoints:
    return _without(_id_start(), (*_UNSTABLE, *_UNSTABLE_START))


@lru_cache(maxsize=1)
def _xid_continue() -> CodePoints:
    return _without(_id_continue(), _UNSTABLE)


_OF_IDENTIFIERS = {
    **dict.fromkeys(("idstart", "ids"), _id_start),
    **dict.fromkeys(("idcontinue", "idc"), _id_continue),
    **dict.fromkeys(("xidstart", "xids"), _xid_start),
    **dict.fromkeys(("xidcontinue", "xidc"), _xid_continue),
}


def _without(points: CodePoints, others: CodePoints) -> CodePoints:
    return common(points, negate(normalize(others)))


@lru_cache(maxsize=64)
def _category(short: str) -> CodePoints:
    if short == "LC":
        return normalize(_categories()["Lu"] + _categories()["Ll"] + _categories()["Lt"])
    return normalize(span for category, spans in _categories().items() if category.startswith(short) for span in spans)


@lru_cache(maxsize=1)
def _categories() -> dict[str, CodePoints]:
    spans = spans_by_value(category_table())
    return {category: spans.get(number, ()) for number, category in enumerate(CATEGORIES)}


TURKIC = frozenset((0x130, 0x131))
"""The I with a dot and the i without: letters with a case to Python, and with none to ECMAScript and Rust."""


def fold(points: CodePoints, ascii_only: bool = False, without: frozenset[int] = frozenset()) -> CodePoints:
    """``points`` and every code point that differs from one of them only in case.

    Two code points differ only in case if their simple lower cases are equal, or their upper cases
    are (so ``s`` and U+017F, ``k`` and the Kelvin sign).  That is the rule of Python's ``re``; without :data:`TURKIC`
    it is that of simple case folding (Unicode's CaseFolding.txt).  With ``ascii_only``, only the letters a to z have a
    case; those of ``without`` have none.
    """
    if ascii_only:
        lower = common(points, ((0x61, 0x7A),))
        upper = common(points, ((0x41, 0x5A),))
        return normalize(
            (
                *points,
                *((first - 32, last - 32) for first, last in lower),
                *((first + 32, last + 32) for first, last in upper),
            )
        )
    variants, cased = _case_variants()
    extra = [
        (other, other)
        for first, last in common(points, cased)
        for point in range(first, last + 1)
        if point not in without
        for other in variants[point]
        if other not in without
    ]
    return normalize((*points, *extra)) if extra else points


@lru_cache(maxsize=1)
def _case_variants() -> tuple[dict[int, tuple[int, ...]], CodePoints]:
    """For each code point with a case its class under :func:`fold`; and all of these code points as a set."""
    same_lower: dict[str, set[str]] = {}
    same_upper: dict[str, set[str]] = {}
    every = _every_code_point()
    for begin in range(0, len(every), 256):
        block = every[begin : begin + 256]
        if block.lower() == block == block.upper():
            continue
        for char in block:
            if char.lower() != char or char.upper() != char:
                same_lower.setdefault(_simple_lower(char), set()).add(char)
                same_upper.setdefault(char.upper(), set()).add(char)
    variants: dict[str, set[str]] = {}
    for group in (*same_lower.values(), *same_upper.values()):
        joined = set(group)
        for char in group:
            joined |= variants.get(char, set())
        for char in joined:
            variants[char] = joined
    classes = {ord(char): tuple(sorted(map(ord, joined))) for char, joined in variants.items()}
    return classes, normalize((point, point) for point in classes)


def _simple_lower(char: str) -> str:
    # U+0130 is the only code point whose lower case is longer than itself; its simple lower case is "i".
    lower = char.lower()
    return lower if len(lower) == 1 else lower[0]
