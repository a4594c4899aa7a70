"""Sets of strings, as expressions: what ``pattern``, ``format``, lengths and values say about a string or a key.

They are closed under complement, intersection and union, and can be looked at in three ways: :func:`spelled` is the
language of what stands between the quotes of a JSON string, :func:`plain` the same without JSON's escapes, and
:func:`contains` says whether one string is in the set.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, permutations

from constrain.grammar.json_schema.lexical.formats.patterns import format_language
from constrain.grammar.json_schema.lexical.formats.relations import exclude_each_other, is_part
from constrain.grammar.json_schema.lexical.idn.a_labels import has_valid_a_labels
from constrain.grammar.json_schema.lexical.idn.hostnames import IDN_HOSTNAME, is_idn_hostname
from constrain.grammar.json_schema.lexical.strings import EVERY_WAY, Spelling
from constrain.grammar.languages import utf8
from constrain.grammar.languages.derivatives import Automaton, example, fixed_end
from constrain.grammar.languages.growing_tree import GrowingTree
from constrain.grammar.languages.prefix_tree import prefix_tree
from constrain.grammar.languages.regular import EMPTY, Regular, complement, counted, intersect, repeat, union
from constrain.grammar.languages.unbounded import without_bounds
from constrain.grammar.regex import least_length, regex_code_points, regex_of_length

# How many steps the search for a common string takes before it gives up.
_SEARCH_LIMIT = 1000


# Nothing writes to these.  Frozen ones, each with a ``repr``, would be twice the code that every start compiles.
class Text:
    """A set of strings; one of the classes below.  Equal expressions are equal."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{self}>"


@dataclass(unsafe_hash=True, repr=False)
class Pattern(Text):
    """Strings in which an ECMA-262 regular expression matches somewhere."""

    source: str

    def __str__(self) -> str:
        return f"pattern {self.source!r}"


@dataclass(unsafe_hash=True, repr=False)
class Format(Text):
    """Strings of one of the formats of the specification."""

    name: str

    def __str__(self) -> str:
        return f"format {self.name!r}"


@dataclass(unsafe_hash=True, repr=False)
class Words(Text):
    """Just these strings."""

    values: frozenset[str]

    def __str__(self) -> str:
        return f"{len(self.values)} values"


@dataclass(unsafe_hash=True, repr=False)
class GrowingWords(Text):
    """Just the strings of a tree, which spells them in one way."""

    tree: GrowingTree
    spelling: Spelling

    def __str__(self) -> str:
        return f"{self.tree.size} values"


@dataclass(unsafe_hash=True, repr=False)
class Length(Text):
    """Strings of ``low`` to ``high`` characters."""

    low: int
    high: int | None

    def __str__(self) -> str:
        return f"a length of {self.low} to {'any' if self.high is None else self.high}"


@dataclass(unsafe_hash=True, repr=False)
class Without(Text):
    """Every string that is not in ``item``."""

    item: Text

    def __str__(self) -> str:
        return f"not {self.item}"


@dataclass(unsafe_hash=True, repr=False)
class NoRegex(Text):
    """Strings that are certainly not of the format ``regex``, of which a regular language tells only a part."""

    def __str__(self) -> str:
        return "not format 'regex'"


@dataclass(unsafe_hash=True, repr=False)
class Every(Text):
    """Strings that are in all of ``items``; all strings if there are none."""

    items: tuple[Text, ...]

    def __str__(self) -> str:
        return " and ".join(map(str, self.items)) or "any string"


@dataclass(unsafe_hash=True, repr=False)
class Some(Text):
    """Strings that are in any of ``items``; none if there are none."""

    items: tuple[Text, ...]

    def __str__(self) -> str:
        return " or ".join(f"({item})" for item in self.items) or "no string"


HOST_NAME = Format("hostname")
"""Its language is regular but for what Punycode stands for."""

REGEX = Format("regex")
NO_REGEX = NoRegex()
# What must not stand at the beginning.
_NO_REGEX = Pattern("^[*+?)]")

ALL_TEXTS: Text = Every(())
NO_TEXTS: Text = Some(())

# One or more characters that mean themselves: all of printable ASCII but the syntax characters, and these escaped.
_LITERAL = r"(?:[ !-#%-',\-/-9:->@-Z_`a-z~]|\\[\^$\\.*+?()\[\]{}|/])+"

# ^word$ and ^(one|two)$.
_PLAIN_WORDS = re.compile(rf"\^(?:({_LITERAL})|\((?:\?:)?({_LITERAL}(?:\|{_LITERAL})*)\))\$")

_MATCH_ALL = frozenset(("", ".*", "^.*", ".*$", "^", "$", "^[\\s\\S]*$", "^[^]*$"))


def pattern_text(source: str) -> Text:
    """The set of a ``pattern``.  Raises GrammarError if it is invalid or cannot be expressed."""
    if source in _MATCH_ALL:
        return ALL_TEXTS
    words = _PLAIN_WORDS.fullmatch(source)
    if words is not None:
        literals = re.findall(_LITERAL, words[1] or words[2])
        return Words(frozenset(re.sub(r"\\(.)", r"\1", literal) for literal in literals))
    _spelled_pattern(source, EVERY_WAY)
    return Pattern(source)


def without(text: Text) -> Text:
    """The complement."""
    if isinstance(text, Without):
        return text.item
    if text == ALL_TEXTS:
        return NO_TEXTS
    is_empty = text == NO_TEXTS or (isinstance(text, Words) and not text.values)
    return ALL_TEXTS if is_empty else Without(text)


def certainly_not(text: Text) -> Text:
    """The complement, but for what may be of the format ``regex``: only what is certainly not of it is in there."""
    if _is_told(text):
        return without(text)
    if text == REGEX:
        return NO_REGEX
    if text == NO_REGEX:
        return REGEX
    assert isinstance(text, (Every, Some))
    return (some if isinstance(text, Every) else every)(*map(certainly_not, text.items))


def _is_told(text: Text) -> bool:
    return all(map(_is_told, text.items)) if isinstance(text, (Every, Some)) else text not in (REGEX, NO_REGEX)


def includes(outer: Text, inner: Text) -> bool:
    """Whether a set is seen at once to hold all strings of another one; what formats have in common is known."""
    if outer == inner:
        return True
    if isinstance(outer, Without):
        if isinstance(inner, Without):
            return includes(inner.item, outer.item)
        outer = outer.item
        return isinstance(outer, Format) and isinstance(inner, Format) and exclude_each_other(outer.name, inner.name)
    return isinstance(outer, Format) and isinstance(inner, Format) and is_part(inner.name, outer.name)


def is_of_format(text: Text) -> bool:
    """Whether a set is a format or the complement of one."""
    return isinstance(text.item if isinstance(text, Without) else text, Format)


def every(*texts: Text) -> Text:
    """The intersection."""
    flat: dict[Text, None] = {}
    for text in texts:
        flat.update(dict.fromkeys(text.items if isinstance(text, Every) else (text,)))
    for one, other in permutations(filter(is_of_format, flat), 2):
        if includes(without(one), other):
            return NO_TEXTS
        if includes(one, other):
            flat.pop(one, None)
    if NO_TEXTS in flat:
        return NO_TEXTS
    for text in [text for text in flat if isinstance(text, Some)]:
        # A union says nothing beside one of its parts.
        if not flat.keys().isdisjoint(text.items):
            del flat[text]
    return next(iter(flat)) if len(flat) == 1 else Every(tuple(flat))


def some(*texts: Text) -> Text:
    """The union."""
    flat: dict[Text, None] = {}
    for text in texts:
        flat.update(dict.fromkeys(text.items if isinstance(text, Some) else (text,)))
    for one, other in permutations(filter(is_of_format, flat), 2):
        if includes(other, without(one)):
            return ALL_TEXTS
        if includes(other, one):
            flat.pop(one, None)
    if ALL_TEXTS in flat:
        return ALL_TEXTS
    return next(iter(flat)) if len(flat) == 1 else Some(tuple(flat))


# -- the three ways to look at a set -------------------------------------------------------------


@lru_cache(maxsize=512)
def _spelled_pattern(source: str, spelling: Spelling) -> Regular:
    return regex_code_points(source, anchored=False, dialect="ecma", encode_char=spelling.points)


def spelled(text: Text, spelling: Spelling) -> Regular:
    """The strings of the set as they may be written, without the quotes."""
    return spelling.kept(_spelled(text, spelling))


@lru_cache(maxsize=1024)
def _spelled(text: Text, spelling: Spelling) -> Regular:
    if isinstance(text, Pattern):
        return _spelled_pattern(text.source, spelling)
    if isinstance(text, Format):
        return format_language(text.name, spelling.points)
    if isinstance(text, NoRegex):
        return _spelled(_NO_REGEX, spelling)
    if isinstance(text, Words):
        if len(text.values) <= 8:
            return union(*map(spelling.text, sorted(text.values)))
        return spelling.any_of(tuple(sorted(text.values)))
    if isinstance(text, GrowingWords):
        return text.tree.language if text.spelling is spelling else spelling.any_of(tuple(text.tree))
    if isinstance(text, Length):
        return repeat(spelling.character, text.low, text.high)
    if isinstance(text, Without):
        return intersect(spelling.body, complement(_spelled(text.item, spelling)))
    if isinstance(text, Every):
        parts = [part for part in _spelled_together(text.items, spelling) if part is not spelling.body]
        return intersect(*parts) if parts else spelling.body
    assert isinstance(text, Some)
    return union(*(_spelled(item, spelling) for item in text.items))


def _spelled_together(items: tuple[Text, ...], spelling: Spelling) -> list[Regular]:
    """Expressions whose intersection is that of all items; a pattern takes up the lengths, if it can."""
    lengths = [item for item in items if isinstance(item, Length)]
    if lengths:
        low, high = _bounds(lengths)
        for item in items:
            if spelling.excludes or not isinstance(item, Pattern):
                continue  # beside what is excluded a counter of its own is cheaper
            bounded = _pattern_of_length(item.source, low, high, spelling)
            if bounded is not None:
                others = [each for each in items if each is not item and each not in lengths]
                return [bounded, *(_spelled_beside(each, items, spelling) for each in others)]
        if any(isinstance(item, Pattern) and _least_length(item.source) >= low for item in items):
            low = 0  # it says nothing that the pattern does not
        parts = [_spelled_beside(item, items, spelling) for item in items if item not in lengths]
        parts = [part for part in parts if part is not spelling.body]
        if parts:
            return [counted(intersect(*parts), spelling.character, low, high)]
    return [_spelled_beside(item, items, spelling) for item in items]


def _spelled_beside(text: Text, items: tuple[Text, ...], spelling: Spelling) -> Regular:
    """One of several sets whose intersection is looked for."""
    if isinstance(text, Without) and not spelling.is_body_all:
        # Something is said of the texts but what they are not.
        if not all(isinstance(item, Without) for item in items):
            return complement(_spelled(text.item, spelling))
    return _spelled(text, spelling)


def _bounds(lengths: list[Length]) -> tuple[int, int | None]:
    return max(each.low for each in lengths), min(
        (each.high for each in lengths if each.high is not None), default=None
    )


@lru_cache(maxsize=512)
def _least_length(source: str) -> int:
    return least_length(source)


@lru_cache(maxsize=512)
def _pattern_of_length(source: str, low: int, high: int | None, spelling: Spelling) -> Regular | None:
    return regex_of_length(source, low, high, spelling.points)


@lru_cache(maxsize=1024)
def plain(text: Text) -> Regular:
    """The strings of the set as UTF-8."""
    if isinstance(text, Pattern):
        return regex_code_points(text.source, anchored=False, dialect="ecma")
    if isinstance(text, Format):
        return format_language(text.name, utf8.encode)
    if isinstance(text, NoRegex):
        return plain(_NO_REGEX)
    if isinstance(text, Words):
        return prefix_tree(text.values)
    if isinstance(text, GrowingWords):
        return prefix_tree(text.tree)
    if isinstance(text, Length):
        return repeat(utf8.ANY_CHAR, text.low, text.high)
    if isinstance(text, Without):
        return intersect(utf8.ANY_TEXT, complement(plain(text.item)))
    if isinstance(text, Every):
        lengths = [item for item in text.items if isinstance(item, Length)]
        others = [plain(item) for item in text.items if not isinstance(item, Length)]
        if lengths:
            return counted(intersect(*others) if others else utf8.ANY_TEXT, utf8.ANY_CHAR, *_bounds(lengths))
        return intersect(*others) if others else utf8.ANY_TEXT
    assert isinstance(text, Some)
    return union(*map(plain, text.items)) if text.items else EMPTY


def is_regular(text: Text) -> bool:
    """Whether a set has a regular language; ``idn-hostname`` has not."""
    if isinstance(text, Format):
        return text.name != IDN_HOSTNAME
    if isinstance(text, Without):
        return is_regular(text.item)
    return not isinstance(text, (Every, Some)) or all(map(is_regular, text.items))


@lru_cache(maxsize=256)
def automaton(text: Text) -> Automaton:
    """The derivatives of the strings of a set, as UTF-8."""
    return Automaton(plain(text))


def contains(text: Text, value: str) -> bool:
    """Whether a string (without lone surrogates) is in the set."""
    if isinstance(text, Pattern):
        return _matches(text, value)
    if isinstance(text, Words):
        return value in text.values
    if isinstance(text, GrowingWords):
        return value in text.tree
    if isinstance(text, Length):
        return text.low <= len(value) and (text.high is None or len(value) <= text.high)
    if isinstance(text, Without):
        return not contains(text.item, value)
    if isinstance(text, NoRegex):
        return not contains(REGEX, value)
    if isinstance(text, Every):
        return all(contains(item, value) for item in text.items)
    if isinstance(text, Some):
        return any(contains(item, value) for item in text.items)
    if isinstance(text, Format) and text.name == IDN_HOSTNAME:
        return is_idn_hostname(value)
    return _matches(text, value) and (text != HOST_NAME or has_valid_a_labels(value))


@lru_cache(maxsize=4096)
def _matches(text: Text, value: str) -> bool:
    # Wherever schemas of objects are put together, the same names are compared with the same patterns.
    return automaton(text).matches(value.encode())


def members(text: Text, values: tuple[str, ...]) -> tuple[str, ...]:
    """Those of ``values`` (without lone surrogates) that are in the set."""
    if isinstance(text, Without) and isinstance(text.item, Words):
        words = text.item.values
        return tuple([value for value in values if value not in words])
    if isinstance(text, (Pattern, Format)) and is_regular(text) and text != HOST_NAME:
        matches = automaton(text).matches
        return tuple([value for value in values if matches(value.encode())])
    return tuple([value for value in values if contains(text, value)])


@lru_cache(maxsize=1024)
def has_example(text: Text) -> bool:
    """Whether a string of the set is seen at once.  False also where it takes a search to find one."""
    word = example(plain(text)) if isinstance(text, (Pattern, Format)) and is_regular(text) else None
    return word is not None and contains(text, word.decode())


@lru_cache(maxsize=1024)
def is_surely_empty(text: Text) -> bool:
    """Whether there is no string in the set.  False where a short search could not tell."""
    if isinstance(text, Some):
        return all(map(is_surely_empty, text.items))
    if isinstance(text, Words):
        return not text.values
    if not isinstance(text, Every):
        return False
    for item in text.items:
        if isinstance(item, Words):
            return not any(contains(text, value) for value in item.values)
    excluded: dict[Text, None] = {}
    for item in text.items:
        if isinstance(item, Without):
            excluded.update(dict.fromkeys(item.item.items if isinstance(item.item, Some) else (item.item,)))
    wanted = [item for item in text.items if not isinstance(item, Without)]
    if any(_is_part_of_one(item, excluded) for item in wanted):
        return True
    return any(_exclude_each_other(*pair) for pair in combinations(filter(is_regular, wanted), 2))


def _is_part_of_one(text: Text, others: dict[Text, None]) -> bool:
    """Whether a set is plainly a part of one of some others."""
    if isinstance(text, Some):
        return all(_is_part_of_one(item, others) for item in text.items)
    if isinstance(text, Words):
        return any(isinstance(other, Words) and text.values <= other.values for other in others)
    return text in others


@lru_cache(maxsize=4096)
def _exclude_each_other(left: Text, right: Text) -> bool:
    ends = fixed_end(plain(left)), fixed_end(plain(right))
    if not (ends[0].endswith(ends[1]) or ends[1].endswith(ends[0])):
        return True
    # Two patterns that may match anywhere are both found in a string of one and a string of the other.
    one, other = example(plain(left)), example(plain(right))
    if one is not None and other is not None:
        first, second = automaton(left), automaton(right)
        if any(first.matches(word) and second.matches(word) for word in (one, other, one + other, other + one)):
            return False
    is_empty = Automaton(intersect(plain(left), plain(right))).is_empty(_SEARCH_LIMIT)
    if is_empty is None:
        # Without counts there are fewer states, and mostly it is the characters that exclude each other.
        unbounded = intersect(without_bounds(plain(left)), without_bounds(plain(right)))
        is_empty = Automaton(unbounded).is_empty(_SEARCH_LIMIT)
    return is_empty is True
