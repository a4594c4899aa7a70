"""The formats of the specification, each as a regular expression or a combination of several.

Where a specification is ambiguous or stricter than any grammar of it (what a registry allows, what a
host name's Punycode decodes to), its grammar counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache, lru_cache, partial

from constrain.grammar.json_schema.lexical.formats.ecma_regex import regex_format
from constrain.grammar.languages.regular import Regular, concat, counted, intersect, union
from constrain.grammar.languages.utf8 import CodePoints
from constrain.grammar.regex import regex_code_points

Spell = Callable[[str], Regular]
"""Gives the language of a regular expression that matches as a whole."""


def _only(pattern: str) -> Callable[[Spell], Regular]:
    return lambda spell: spell(pattern)


# -- dates and times: RFC 3339 --------------------------------------------------------------------

_LEAP_YEAR = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
DATE = (
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    f"|02-(?:0[1-9]|1[0-9]|2[0-8]))|{_LEAP_YEAR}-02-29)"
)
_HOUR = "(?:[01][0-9]|2[0-3])"
_MINUTE = "[0-5][0-9]"
_FRACTION = "(?:\\.[0-9]+)?"


def _time(spell: Spell) -> Regular:
    """``full-time``; a leap second is the last one of a day in UTC, whatever the offset.

    So a local time with second 60 decides the offset: ahead of UTC, 23:59 plus the offset is the local time (an
    hour and a minute later, or the same hour); behind, 23:59 minus the offset.  Each digit of the offset follows
    from one or two of the time, and each such rule is a union of few alternatives; all offsets in a row would be
    1,440 of them.
    """
    gap = f":60{_FRACTION}"
    ahead, behind = f"{gap}\\+", f"{gap}-"
    # The rules are made of few different characters.
    part = cache(spell)

    def word(text: str) -> Iterable[Regular]:
        return map(part, re.findall(r"\[.*?\]|.", text))

    def rule(pairs: Iterable[tuple[str, str]], between: str) -> Regular:
        return union(*(concat(*word(before), part(between), *word(after)) for before, after in pairs))

    digits = range(10)
    next_minute = (
        rule(((f"..:.{u}", f"..:.{(u + 1) % 10}") for u in digits), ahead),
        rule(
            (
                *((f"..:{t}[0-8]", f"..:{t}.") for t in range(6)),
                *((f"..:{t}9", f"..:{t + 1}.") for t in range(5)),
            ),
            ahead,
        ),
    )
    same_hour = (
        rule(((f".{u}:..", f".{u}:..") for u in digits), ahead),
        rule(((f"{t}.:..", f"{t}.:..") for t in range(3)), ahead),
    )
    next_hour = rule(((f"{hour:02}:59", f"{(hour + 1) % 24:02}:00") for hour in range(24)), ahead)
    mirrored = (
        rule(((f"..:.{u}", f"..:.{9 - u}") for u in digits), behind),
        rule(((f"..:{t}.", f"..:{5 - t}.") for t in range(6)), behind),
        rule(((f".{u}:..", f".{(3 - u) % 10}:..") for u in digits), behind),
        rule(
            (
                *((f"{t}[0-3]:..", f"{2 - t}.:..") for t in range(3)),
                *((f"{t}[4-9]:..", f"{1 - t}.:..") for t in range(2)),
            ),
            behind,
        ),
    )
    form = f"{_HOUR}:{_MINUTE}"
    leaps = (
        spell(f"23:59{gap}[zZ]"),
        intersect(spell(f"{form}{ahead}{form}"), *same_hour, *next_minute),
        next_hour,
        intersect(spell(f"{form}{behind}{form}"), *mirrored),
    )
    return union(spell(f"{form}:{_MINUTE}{_FRACTION}(?:[zZ]|[+-]{form})"), *leaps)


def _date_time(spell: Spell) -> Regular:
    return concat(spell(DATE + "[tT]"), _time(spell))


MAX_DURATION_DIGITS = 12
"""How many digits a number of a duration may have: seconds for 30,000 years."""

_N = f"[0-9]{{1,{MAX_DURATION_DIGITS}}}"
# A unit may only be followed by the next smaller one (RFC 3339, appendix A).
_CLOCK = f"{_N}H(?:{_N}M(?:{_N}S)?)?|{_N}M(?:{_N}S)?|{_N}S"
_DURATION = f"P(?:(?:{_N}D|{_N}M(?:{_N}D)?|{_N}Y(?:{_N}M(?:{_N}D)?)?)(?:T(?:{_CLOCK}))?|T(?:{_CLOCK})|{_N}W)"

# -- hosts ----------------------------------------------------------------------------------------

_BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
IPV4 = f"{_BYTE}(?:\\.{_BYTE}){{3}}"
_H16 = "[0-9A-Fa-f]{1,4}"
_LS32 = f"(?:{_H16}:{_H16}|{IPV4})"
IPV6 = (
    f"(?:(?:{_H16}:){{6}}{_LS32}|::(?:{_H16}:){{5}}{_LS32}|(?:{_H16})?::(?:{_H16}:){{4}}{_LS32}"
    f"|(?:(?:{_H16}:){{0,1}}{_H16})?::(?:{_H16}:){{3}}{_LS32}|(?:(?:{_H16}:){{0,2}}{_H16})?::(?:{_H16}:){{2}}{_LS32}"
    f"|(?:(?:{_H16}:){{0,3}}{_H16})?::{_H16}:{_LS32}|(?:(?:{_H16}:){{0,4}}{_H16})?::{_LS32}"
    f"|(?:(?:{_H16}:){{0,5}}{_H16})?::{_H16}|(?:(?:{_H16}:){{0,6}}{_H16})?::)"
)
_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOSTNAME = f"{_LABEL}(?:\\.{_LABEL})*"


def _hostname(spell: Spell) -> Regular:
    """RFC 1123; two hyphens after two characters are kept for A-labels (RFC 5890, section 2.3.1)."""
    end, inner = "[A-Za-z0-9]", "[A-Za-z0-9-]"
    label = (
        f"(?:{end}{{1,2}}|{end}{inner}{end}(?:{inner}{{0,59}}{end})?|{end}{inner}-{end}(?:{inner}{{0,58}}{end})?"
        f"|[xX][nN]--{inner}{{1,58}}{end})"
    )
    return counted(spell(f"{label}(?:\\.{label})*"), spell("(?s:.)"), 1, 253)


# -- international names -----------------------------------------------------------------------------

_UCS = "\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef" + "".join(
    f"{chr(0x10000 * plane + (0x1000 if plane == 14 else 0))}-{chr(0x10000 * plane + 0xFFFD)}" for plane in range(1, 15)
)
_PRIVATE = "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"

# Letters, digits and marks of every script; what the tables of RFC 5892 disallow among them is not told apart.
_LETTERS = (
    "\u00b7\u00df-\u00f6\u00f8-\u02c1\u0300-\u033f\u0346-\u200b\u200c-\u200d\u2c30-\u3001\u3005-\u3007\u302a-\u302d"
    "\u3031-\u3035\u303c\u3041-\u30fe\u3105-\ud7ff\uf900-\ufdcf\ufe20-\ufe2f\ufe73\U00010000-\U0003fffd"
)

# -- mail: RFC 5321 and RFC 6531 --------------------------------------------------------------------


def _email(text: str, domain: str) -> Callable[[Spell], Regular]:
    atom = f"[A-Za-z0-9!#$%&'*+/=?^_`{{|}}~{text}-]+"
    quoted = f'"(?:[ !#-\\[\\]-~{text}]|\\\\[ -~])*"'
    literal = f"\\[(?:{IPV4}|IPv6:{IPV6})\\]"
    return _only(f"(?:{atom}(?:\\.{atom})*|{quoted})@(?:{domain}|{literal})")


# -- URIs: RFC 3986, RFC 3987, RFC 6570 ------------------------------------------------------------


def _uri(is_reference: bool, is_international: bool) -> Callable[[Spell], Regular]:
    wide = _UCS if is_international else ""
    private = _PRIVATE if is_international else ""
    escaped = "%[0-9A-Fa-f]{2}"
    plain = f"A-Za-z0-9._~!$&'()*+,;={wide}\\-"
    segment = f"(?:[{plain}:@]|{escaped})"
    user = f"(?:(?:[{plain}:]|{escaped})*@)?"
    ip = f"\\[(?:{IPV6}|[vV][0-9A-Fa-f]+\\.[A-Za-z0-9._~!$&'()*+,;=:-]+)\\]"
    host = f"(?:{ip}|(?:[{plain}]|{escaped})*)"
    authority = f"{user}{host}(?::[0-9]*)?"
    absolute = f"/(?:{segment}+(?:/{segment}*)*)?"
    after_authority = f"//{authority}(?:/{segment}*)*"
    rootless = f"{segment}+(?:/{segment}*)*"
    no_scheme = f"(?:[{plain}@]|{escaped})+(?:/{segment}*)*"
    tail = f"(?:\\?(?:[{plain}:@/?{private}]|{escaped})*)?(?:#(?:[{plain}:@/?]|{escaped})*)?"
    full = f"[A-Za-z][A-Za-z0-9+.-]*:(?:{after_authority}|{absolute}|{rootless}|)"
    relative = f"(?:{after_authority}|{absolute}|{no_scheme}|)"
    return _only(f"(?:{full}|{relative}){tail}" if is_reference else f"{full}{tail}")


_NAME = "(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})(?:\\.?(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2}))*(?::[1-9][0-9]{0,3}|\\*)?"
_URI_TEMPLATE = (
    f"(?:[!#$&-;=?-\\[\\]_a-z~{_UCS}{_PRIVATE}]|%[0-9A-Fa-f]{{2}}|\\{{[+#./;?&=,!@|]?{_NAME}(?:,{_NAME})*\\}})*"
)

# -- the rest -------------------------------------------------------------------------------------

_POINTER = "(?:/(?:[^/~]|~[01])*)*"
_UUID = "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"

FORMATS: dict[str, Callable[[Spell], Regular]] = {
    "date-time": _date_time,
    "date": _only(DATE),
    "time": _time,
    "duration": _only(_DURATION),
    "email": _email("", _HOSTNAME),
    "idn-email": _email("\x80-\U0010ffff", f"[A-Za-z0-9{_LETTERS}](?:[A-Za-z0-9{_LETTERS}.-]*[A-Za-z0-9{_LETTERS}])?"),
    "hostname": _hostname,
    "ipv4": _only(IPV4),
    "ipv6": _only(IPV6),
    "uri": _uri(False, False),
    "uri-reference": _uri(True, False),
    "iri": _uri(False, True),
    "iri-reference": _uri(True, True),
    "uri-template": _only(_URI_TEMPLATE),
    "uuid": _only(_UUID),
    "json-pointer": _only(_POINTER),
    "regex": regex_format,
    "relative-json-pointer": _only(f"(?:0|[1-9][0-9]*)(?:#|{_POINTER})"),
}
"""How each format is made from regular expressions."""


@lru_cache(maxsize=128)
def format_language(name: str, encode_char: Callable[[CodePoints], Regular]) -> Regular:
    """The strings of a format, with the characters written as ``encode_char`` says."""
    return FORMATS[name](partial(regex_code_points, encode_char=encode_char))
