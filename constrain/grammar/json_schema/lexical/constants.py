"""How the numbers of ``enum`` and ``const`` are written, where not in every notation."""

from __future__ import annotations

import math
from decimal import Decimal

from constrain.grammar.json_schema.lexical.notation import Notation
from constrain.grammar.json_schema.lexical.numbers import NumberForm, is_integral, number_language
from constrain.grammar.regular import Regular, literal, union


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
