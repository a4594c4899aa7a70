"""Which formats have no string in common, and which ones are part of others.

An automaton of two formats together tells the same (the tests compare), but host names alone have some 15,000 states.
``oneOf`` of formats asks about each pair.
"""

from __future__ import annotations

# Each of these has nothing in common with the others.
_APART = ("date-time", "time", "date", "duration", "ipv4", "uuid", "json-pointer", "relative-json-pointer")

_NAMES = ("hostname", "idn-hostname")
_MAIL = ("email", "idn-email")

_EXCLUDE_EACH_OTHER = frozenset(
    frozenset((one, other))
    for ones, others in (
        (("uri", "iri"), (*_APART, *_MAIL, *_NAMES)),
        (_MAIL, (*_APART[:6], *_NAMES, "ipv6")),
        (_NAMES, ("date-time", "time", "ipv6", "json-pointer")),
        (("uri-reference", "iri-reference"), ("date-time", "time")),
        ((*_APART, "ipv6"), _APART),
    )
    for one in ones
    for other in others
    if one != other
)

_REFERENCES = ("uri-reference", "iri-reference", "uri-template")
_IS_PART_OF = {
    "date-time": ("uri-template",),
    "time": ("uri-template",),
    "date": ("hostname", *_REFERENCES),
    "duration": _REFERENCES,
    "email": ("idn-email",),
    "hostname": _REFERENCES,
    "ipv4": ("hostname", *_REFERENCES),
    "ipv6": ("uri-template",),
    "uri": ("iri", *_REFERENCES),
    "uri-reference": ("iri-reference", "uri-template"),
    "iri": ("iri-reference", "uri-template"),
    "iri-reference": ("uri-template",),
    "uuid": ("hostname", *_REFERENCES),
}


def exclude_each_other(one: str, other: str) -> bool:
    """Whether no string is of both formats."""
    return frozenset((one, other)) in _EXCLUDE_EACH_OTHER


def is_part(inner: str, outer: str) -> bool:
    """Whether each string of a format is of another one, too."""
    return outer in _IS_PART_OF.get(inner, ())
