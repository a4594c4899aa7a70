"""How the values of scalar nodes are written, each kind as one regular language."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import lru_cache
from typing import Any

from constrain.grammar.ir import PlacedName
from constrain.grammar.json_schema.document.document import Location
from constrain.grammar.json_schema.document.places import Handle
from constrain.grammar.json_schema.lexical.multiples import multiples
from constrain.grammar.json_schema.lexical.notation import Notation
from constrain.grammar.json_schema.lexical.numbers import (
    MODERATE_NUMBER,
    PLAIN_INTEGER,
    PLAIN_NUMBER,
    TINY_NUMBER,
    NumberForm,
    is_integral,
    number_language,
)
from constrain.grammar.json_schema.lexical.strings import is_text
from constrain.grammar.json_schema.lexical.texts import Length, every, spelled
from constrain.grammar.json_schema.normal import nodes as n
from constrain.grammar.languages.prefix_tree import tree_of
from constrain.grammar.languages.regular import Empty, Regular, complement, intersect, literal, union, union_of_distinct

Refuse = Callable[[str, str], None]

MAX_MULTIPLES = 2000
"""How many multiples of a number are written one by one where no small automaton has them."""


# Keywords of every draft that say nothing about the value.
_PLAIN_WORDS = frozenset(("type", "enum", "title", "description", "default"))


def plain_scalar(handle: Handle, notation: Notation) -> Regular | None:
    """The language of a schema that gives a scalar type or a list of strings and nothing more; None for any other.

    Most schemas of real documents are such: this spares them the way through the normal form.
    """
    if len(handle) != 1:
        return None
    place = handle[0]
    if type(place) is not Location:
        return None
    schema = place.schema
    if type(schema) is not dict or not schema.keys() <= _PLAIN_WORDS:
        return None
    kind = schema.get("type")
    listed = schema.get("enum")
    if listed is not None:
        return _plain_words(listed, notation) if kind is None or kind == "string" else None
    if type(kind) is not str:
        return None
    if kind == "string":
        return notation.string
    if kind == "integer":
        return notation.numbers[place.resource.dialect.integer]
    if kind == "number":
        return notation.numbers[NumberForm.ANY]
    if kind == "boolean":
        return notation.boolean
    return notation.null if kind == "null" else None


def _plain_words(values: Any, notation: Notation) -> Regular | None:
    if type(values) is not list or not values:
        return None
    for value in values:
        if type(value) is not str or not is_text(value):
            return None
    return _words(tuple(values), notation)


@lru_cache(maxsize=1024)
def _words(values: tuple[str, ...], notation: Notation) -> Regular:
    """One of these strings."""
    return notation.strings(lambda spelling: spelling.any_of(values))


@lru_cache(maxsize=1024)
def _of_length(low: int, high: int | None, notation: Notation) -> Regular:
    """Strings of so many characters."""
    return notation.strings(lambda spelling: spelling.of_length(low, high))


def scalar(node: n.Node, refuse: Refuse, notation: Notation) -> Regular | n.Conflict:
    """The language of a scalar node, without white space before it."""
    if isinstance(node, n.StringNode):
        return _string(node, notation)
    if isinstance(node, n.NumberNode):
        return _number(node, refuse, notation)
    if isinstance(node, n.BooleanNode):
        if len(node.values) == 2:
            return notation.boolean
        return notation.true if node.values[0] else notation.false
    assert isinstance(node, n.NullNode)
    return notation.null


def scalar_name(node: n.Node) -> PlacedName:
    """What the engine calls the lexeme of a scalar: where it comes from, and all that could make it empty."""
    return PlacedName(_scalar_name(node), node.pointer)


def _scalar_name(node: n.Node) -> str:
    if isinstance(node, n.NumberNode) and (node.divisors or node.not_divisors):
        numbers = [f"multipleOf {each.value} (at {each.pointer})" for each in node.divisors]
        numbers += [f"no multipleOf {each.value} (at {each.pointer})" for each in node.not_divisors]
        numbers += [str(bound) for bound in (node.low, node.high) if bound is not None]
        return f"{'a number' if node.form is NumberForm.ANY else 'an integer'} with " + " and ".join(numbers)
    if not isinstance(node, n.StringNode) or not node.terms:
        return node.pointer
    parts = [str(term) for term in node.terms]
    parts += [str(count) for count in (node.low, node.high) if count is not None]
    return "a string with " + " and ".join(parts)


def _string(node: n.StringNode, notation: Notation) -> Regular:
    if node.values is not None:
        return _words(node.values, notation)
    texts = [term.text for term in node.terms]
    if node.low is not None or node.high is not None:
        size = n.size_range(node)
        if not texts:
            return _of_length(*size, notation)
        texts.append(Length(*size))
    return notation.strings(lambda spelling: spelled(every(*texts), spelling)) if texts else notation.string


# -- numbers -------------------------------------------------------------------------------------


def is_regular_number(node: n.NumberNode) -> bool:
    """Whether the numbers of a node have a regular language of reasonable size."""
    if any(multiples(each.value) is None for each in node.not_divisors):
        return False
    return all(
        multiples(each.value) is not None or _one_by_one(each.value, node.low, node.high) is not None
        for each in node.divisors
    )


def _number(node: n.NumberNode, refuse: Refuse, notation: Notation) -> Regular | n.Conflict:
    low, high, form = node.low, node.high, _form_in(node, notation)
    if node.values is not None:
        numbers = [constant(value, form, node.has_fraction, notation) for value in dict.fromkeys(node.values)]
        language = union_of_distinct(numbers) if len(numbers) < _MANY_NUMBERS else tree_of(numbers)
    elif low is None and high is None and not node.excluded:
        language = notation.numbers[form]
    else:
        language = _between(node, form, notation.is_plain)
        if isinstance(language, Empty):
            if low is None or high is None or node.excluded:
                return n.Conflict(f"every number (at {node.pointer}) is excluded", node.pointer)
            return n.Conflict(
                f"no integer lies between {low.value} (at {low.pointer}) and {high.value} (at {high.pointer})",
                low.pointer,
            )
    return intersect(language, *_demands(node, refuse))


def _form_in(node: n.NumberNode, notation: Notation) -> NumberForm:
    if notation.is_plain and not node.has_fraction and any(is_integral(each.value) for each in node.divisors):
        # Multiples of integers are integers.
        return max(node.form, NumberForm.INTEGRAL)
    return node.form


def _demands(node: n.NumberNode, refuse: Refuse) -> list[Regular]:
    """What the numbers of a node must be in beside their bounds."""
    parts: list[Regular] = []
    for divisor in node.divisors:
        found = multiples(divisor.value)
        if found is None:
            found = _one_by_one(divisor.value, node.low, node.high)
        if found is None:
            refuse(f"multipleOf {divisor.value} is not supported without narrow bounds", divisor.pointer)
        else:
            parts.append(found)
    if node.not_divisors:
        # Complements of multiples are made within the notations in which all multiples can be told.
        small = all(each.value >= 1 for each in node.not_divisors)
        parts.append(union(PLAIN_NUMBER, TINY_NUMBER) if small else PLAIN_NUMBER)
        for divisor in node.not_divisors:
            found = multiples(divisor.value)
            if found is None:
                refuse(f"the complement of multipleOf {divisor.value} is not supported", divisor.pointer)
            else:
                parts.append(complement(found))
    if node.has_fraction:
        parts.append(complement(PLAIN_INTEGER))
    if node.is_moderate:
        parts.append(MODERATE_NUMBER)
    return parts


def numbers_to_exclude_from(node: n.NumberNode, refuse: Refuse, notation: Notation) -> Regular:
    """The numbers of a node without ``values``, in those notations in which each has finitely many spellings.

    Numbers are excluded from these by the languages of :func:`excluded_number`.  For a node with bounds these are all
    of its notations.
    """
    form = _form_in(node, notation)
    if node.low is None and node.high is None and not node.excluded:
        zero, is_plain = Decimal(0), notation.is_plain
        negative = number_language(form, None, False, zero, True, is_plain=is_plain)
        language = union(negative, number_language(form, zero, False, None, False, is_plain=is_plain))
    else:
        language = _between(node, form, notation.is_plain)
    return intersect(language, *_demands(node, refuse))


def excluded_number(node: n.NumberNode, value: Decimal, notation: Notation) -> Regular:
    """All spellings of one number in the language of :func:`numbers_to_exclude_from`, and maybe others."""
    return number_language(_form_in(node, notation), value, False, value, False, is_plain=notation.is_plain)


def any_of_numbers(node: n.NumberNode, languages: Regular, refuse: Refuse) -> Regular:
    """Of some numbers that a node allows, given by languages of single numbers, the spellings that it allows."""
    return intersect(languages, *_demands(node, refuse))


# From so many on, numbers are written as a tree, which the engine follows faster than it takes to make.
_MANY_NUMBERS = 2048

# More gaps between numbers are told by a list of what is left out.
_MAX_PIECES = 64


def _between(node: n.NumberNode, form: NumberForm, is_plain: bool) -> Regular:
    """The numbers within the bounds, but for the excluded ones."""
    low, high = node.low, node.high
    start: tuple[Decimal | None, bool] = (None, False) if low is None else (low.value, low.is_open)
    pieces: list[Regular] = []
    inside = [
        value
        for value in sorted(set(node.excluded))
        if (low is None or value > low.value or (value == low.value and not low.is_open))
        and (high is None or value < high.value or (value == high.value and not high.is_open))
    ]
    many: Regular | None = None
    if len(inside) > _MAX_PIECES:
        # One of them as a gap brings the notations that the others are looked for in.
        many = complement(
            tree_of(number_language(form, value, False, value, False, is_plain=is_plain) for value in inside[1:])
        )
        inside = inside[:1]
    for value in inside:
        pieces.append(number_language(form, *start, value, True, is_plain=is_plain))
        start = (value, True)
    end: tuple[Decimal | None, bool] = (None, False) if high is None else (high.value, high.is_open)
    pieces.append(number_language(form, *start, *end, is_plain=is_plain))
    separate = union_of_distinct(pieces)
    return separate if many is None else intersect(separate, many)


@lru_cache(maxsize=64)
def _one_by_one(divisor: Decimal, low: n.Bound | None, high: n.Bound | None) -> Regular | None:
    if low is None or high is None:
        return None
    first = int((low.value / divisor).to_integral_value(ROUND_CEILING)) - 1
    last = int((high.value / divisor).to_integral_value(ROUND_FLOOR)) + 1
    if last - first > MAX_MULTIPLES:
        return None
    values = [divisor * count for count in range(first, last + 1)]
    return union(*(number_language(NumberForm.ANY, value, False, value, False) for value in values))


# -- the numbers of enum and const, where they are not written in every notation ---------------------------


def constant(value: Decimal, form: NumberForm, has_fraction: bool, notation: Notation) -> Regular:
    """The language of one number of the schema, which is kept as it stands there: ``1.0`` and ``1`` are not the same.

    Canonical is what ``json.dumps`` writes for it.  Plain numbers have no exponent, and one spelling; only what is an
    integer by its value, and no integer as it stands there, may be written either way.
    """
    if not notation.is_canonical and not notation.is_plain:
        return number_language(form, value, False, value, False)
    is_whole = is_integral(value)
    as_float = has_fraction or value.as_tuple().exponent != 0
    if is_whole and (form is NumberForm.NO_FRACTION or (notation.is_plain and form is NumberForm.INTEGRAL)):
        as_float = has_fraction
    if not as_float:
        return literal(str(int(value)))
    text = _float_text(value)
    if notation.is_canonical and not (notation.is_plain and "e" in text):
        return literal(text)
    digits = _digits(value)
    if not is_whole:
        return literal(digits)
    if has_fraction:
        return literal(digits + ".0")
    return literal(digits) if notation.is_canonical else union(literal(digits), literal(digits + ".0"))


def _digits(value: Decimal) -> str:
    """A number without an exponent, and without zeros at its end."""
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _float_text(value: Decimal) -> str:
    """A number as Python prints it as a float, with all of its digits if it has more than a float."""
    number = float(value)
    if math.isfinite(number) and Decimal(repr(number)) == value:
        return repr(number)
    exponent = value.adjusted()
    if -5 < exponent < 16:
        text = _digits(value)
        return text if "." in text else text + ".0"
    digits = "".join(map(str, value.as_tuple().digits)).rstrip("0")
    fraction = "." + digits[1:] if digits[1:] else ""
    return f"{'-' * value.is_signed()}{digits[0]}{fraction}e{exponent:+03d}"
