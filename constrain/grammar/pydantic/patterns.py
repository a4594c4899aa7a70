"""Regular expressions of what pydantic's validators read, in the syntax of a schema's ``pattern``."""

from __future__ import annotations

import datetime
from typing import Any

from pydantic import ByteSize

from constrain.grammar.json_schema.lexical.formats.patterns import DATE, IPV4, IPV6

INTEGER = "^(?:0|-?[1-9][0-9]*)$"
NUMBER = "^-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?$"
DECIMAL = "^-?[0-9]+(?:\\.[0-9]+)?$"
FRACTION = "^-?[0-9]+(?:/0*[1-9][0-9]*|\\.[0-9]+)?$"
COMPLEX = "^-?[0-9]+(?:\\.[0-9]+)?(?:[+-][0-9]+(?:\\.[0-9]+)?j)?$"
HEX = "^(?:[0-9A-Fa-f]{2})*$"

TRIMMED = "^(?:[^\\s\\x85](?:[^]*[^\\s\\x85])?)?$"
"""A string that stripping leaves as it is: U+0085 is white space to pydantic and none to ECMA-262."""

ASCII = "^[\x00-\x7f]*$"

SECOND = "(?:[^:]*:){2}[0-5]"
"""Of a time: no leap second."""


def _units() -> str:
    """``KiB`` and the others, in any case."""
    return "|".join("".join(f"[{letter}{letter.upper()}]" for letter in unit) for unit in ByteSize.byte_sizes)


_CLOCK = "(?:[0-9]{1,5}H)?(?:[0-9]{1,7}M)?(?:[0-9]{1,8}(?:\\.[0-9]{1,6})?S)?"
DURATION = f"^-?P(?=[0-9T])(?:[0-9]{{1,6}}Y)?(?:[0-9]{{1,7}}M)?(?:[0-9]{{1,8}}[WD])?(?:T(?=[0-9]){_CLOCK})?$"
"""A duration of which no unit is so long that the sum is beyond 999,999,999 days, or its seconds beyond 32 bits.  The
format of JSON Schema would not do: it wants minutes between hours and seconds, which pydantic leaves out."""

BYTE_SIZE = f"^[0-9]{{1,15}}(?:[.][0-9]{{1,6}})? ?(?:{_units()})?$"
"""A number of bytes with its unit, which pydantic's own pattern has as any word."""

NAIVE_DATETIME = f"^(?!0000){DATE}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{{1,6}})?$"


def decimal_of(before: int | None, behind: int) -> str:
    """Decimal numbers with at most ``before`` digits before the point, but for a 0, and ``behind`` digits behind it."""
    more = "*" if before is None else f"{{0,{before - 1}}}"
    whole = "0" if before == 0 else f"(?:0|[1-9][0-9]{more})"
    # The 0 of "0" counts as a digit before the point, and that of "0.5" does not.
    fraction = f"(?:[.][0-9]{{1,{behind}}})" + "?" * (before != 0)
    return f"^-?{whole}{fraction if behind else ''}$"


def from_day(day: datetime.date) -> str:
    """Dates from ``day`` on: those with a greater digit where they first differ."""
    return _beside(day.isoformat(), lambda digit: f"[{int(digit) + 1}-9]" if digit != "9" else "")


def up_to_day(day: datetime.date) -> str:
    """Dates up to ``day``."""
    return _beside(day.isoformat(), lambda digit: f"[0-{int(digit) - 1}]" if digit != "0" else "")


def _beside(text: str, others: Any) -> str:
    """``text``, and what has one of the other digits in some place and the same before it."""
    cases = [text[:at] + others(digit) for at, digit in enumerate(text) if digit != "-" and others(digit)]
    return f"^(?:{'|'.join([*cases, text])})"


# -- networks -------------------------------------------------------------------------------------

_V4_LENGTH = "(?:3[0-2]|[12]?[0-9])"
_V6_LENGTH = "(?:12[0-8]|1[01][0-9]|[1-9]?[0-9])"


def _v4_networks() -> str:
    """Addresses with a length of their prefix, behind which all bits are 0.

    ``10.32.0.0/11``: one octet, one with its last five bits 0, two that are 0.
    """
    octet = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
    cases = []
    for length in range(33):
        whole, bits = divmod(length, 8)
        parts = [octet] * whole
        if bits:
            parts.append(f"(?:{'|'.join(str(value) for value in range(0, 256, 1 << (8 - bits)))})")
        cases.append("\\.".join(parts + ["0"] * (4 - len(parts))) + f"/{length}")
    return f"^(?:{'|'.join(cases)})$"


def _v6_networks() -> str:
    """Addresses that end in ``::`` with a length of their prefix, behind which all bits are 0: ``2001:db8::/29``."""
    cases = [f"::/{_V6_LENGTH}"]
    for length in range(1, 113):
        whole, bits = divmod(length, 16)
        groups = ["[0-9A-Fa-f]{1,4}"] * whole
        if bits:
            # A group whose last bits are 0: a digit in which some are, with digits before it and zeros behind it.
            zeros, some = divmod(16 - bits, 4)
            digits = "".join(f"{value:x}" for value in range(0, 16, 1 << some))
            digits += "".join(digit.upper() for digit in digits if digit.isalpha())
            groups.append(f"(?:0|[0-9A-Fa-f]{{0,{3 - zeros}}}[{digits}]0{{{zeros}}})")
        cases.append(":".join(groups) + f"::/{length}")
    return f"^(?:{'|'.join(cases)})$"


_ADDRESS = {"anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]}
_V4_INTERFACE = {"pattern": f"^{IPV4}(?:/{_V4_LENGTH})?$"}
_V6_INTERFACE = {"pattern": f"^{IPV6}(?:/{_V6_LENGTH})?$"}
_V4_NETWORK = {"anyOf": [{"format": "ipv4"}, {"pattern": _v4_networks()}]}
_V6_NETWORK = {"anyOf": [{"pattern": f"^{IPV6}(?:/128)?$"}, {"pattern": _v6_networks()}]}

# -- addresses of the web -------------------------------------------------------------------------

# Without two hyphens beside each other, as in an A-label (xn--), which may be none.  A last label that begins with a
# digit would be read as a number.
_LABEL = "[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*"
_NAME = f"(?:{_LABEL}\\.)*[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*"
_PORT = "(?::(?:6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5]?[0-9]{1,4}))?"
_USER = "(?:[A-Za-z0-9._~-]+(?::[A-Za-z0-9._~-]*)?@)?"
_HOST = f"(?:{_NAME}|{IPV4}|\\[{IPV6}\\]){_PORT}"

HOST = f"{_USER}{_HOST}(?:[/?#]|$)"
"""What follows ``https://``, to where the path begins."""

HOSTS = f"{_USER}{_HOST}(?:,{_HOST})*(?:/[A-Za-z0-9._~-]*)?(?:\\?[A-Za-z0-9._~=&-]*)?$"
"""What follows ``postgres://``, to its end."""

# -- formats --------------------------------------------------------------------------------------


def _base64(more: str) -> str:
    return f"^(?:[A-Za-z0-9{more}]{{4}})*(?:[A-Za-z0-9{more}][AQgw]==|[A-Za-z0-9{more}]{{2}}[AEIMQUYcgkosw048]=)?$"


BASE64URL = _base64("_-")

FORMATS: dict[str, dict[str, Any]] = {
    **{f"uuid{n}": {"format": "uuid", "pattern": f"^.{{14}}{n}.{{4}}[89abAB]"} for n in range(1, 9)},
    "ipvanyaddress": _ADDRESS,
    "ipv4interface": _V4_INTERFACE,
    "ipv6interface": _V6_INTERFACE,
    "ipvanyinterface": {"anyOf": [_V4_INTERFACE, _V6_INTERFACE]},
    "ipv4network": _V4_NETWORK,
    "ipv6network": _V6_NETWORK,
    "ipvanynetwork": {"anyOf": [_V4_NETWORK, _V6_NETWORK]},
    "base64": {"pattern": _base64("+/")},
    "base64url": {"pattern": BASE64URL},
    # Any string is one.
    "path": {},
    "password": {},
    "binary": {},
}
"""The formats that pydantic has and no draft knows, as assertions."""
