"""Attributes of rules: ``name[lazy, suffix="<end>"]: ...``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from constrain.errors import GrammarError
from constrain.grammar.captures import CaptureRule
from constrain.grammar.ir import GrammarBuilder, Symbol
from constrain.grammar.languages.regular import Regular
from constrain.grammar.lark.literals import read_pattern, token_place
from constrain.grammar.lark.source import Source
from constrain.grammar.lark.tree import Token

_ITEM = re.compile(
    r"""[ \t]*(?P<name>[a-z_]+)[ \t]*
        (?:=[ \t]*(?:(?P<string>"(?:\\.|[^"\\])*"i?)|(?P<regex>/(?:\\.|[^/\\])+/[imslux]*)
        |(?P<number>[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<terminal>_?[A-Z][_A-Z0-9-]*)))?[ \t]*(?:,|$)""",
    re.VERBOSE,
)

_ENDS = ("lazy", "stop", "suffix", "max_chars")

_OTHERS = ("capture", "stop_capture", "temperature", "max_tokens", "min_tokens")

COUNTS = {"max_chars": "characters", "max_tokens": "tokens", "min_tokens": "tokens"}


@dataclass(frozen=True)
class Attribute:
    """One attribute.

    Attributes
    ----------
    name : str
        ``lazy``, ``stop``, ``suffix``, ``max_chars``, ``capture``, ``stop_capture``, ``temperature``, ``max_tokens``
        or ``min_tokens``.
    value : Token or None
        Of the type STRING, REGEXP, TERMINAL or NUMBER; None for ``lazy``, and for ``capture`` without a name. The name
        of a capture is a STRING without its quotes and escapes.
    """

    name: str
    value: Token | None


def read_attributes(token: Token, source: Source, counts: Mapping[str, str] = COUNTS) -> tuple[Attribute, ...]:
    """The attributes of a rule; ``counts`` are those that take a number, and what they count.

    Raises
    ------
    GrammarError
        For an attribute that is unknown, there twice, not supported, or has no fitting value.
    """
    text = str(token)
    found: dict[str, Attribute] = {}
    at, end = 1, len(text) - 1
    while at < end:
        item = _ITEM.match(text, at, end)
        if item is None:
            raise source.error(f"an attribute cannot be read: {text[at:end].strip()!r}", token_place(token, at))
        place = token_place(token, item.start("name"))
        name = item["name"]
        if name in found:
            raise source.error(f"[{name}] is there twice", place)
        if name not in _ENDS and name not in _OTHERS and name not in counts:
            known = ", ".join(dict.fromkeys((*_ENDS, *_OTHERS, *counts)))
            raise source.error(f"[{name}]: there is no such attribute (there are {known})", place)
        value = _value(item, token)
        if name == "lazy" and value is not None:
            raise source.error("[lazy] takes no value", place)
        if name in ("stop", "suffix") and (value is None or value.type == "NUMBER"):
            raise source.error(f'[{name}] takes a string, a regex or a terminal, as in [{name}="<end>"]', place)
        if name == "suffix" and value == '""':
            raise source.error("[suffix] cannot be empty", place)
        if name in counts and (value is None or not value.isdigit() or value.type != "NUMBER"):
            raise source.error(f"[{name}] takes a number of {counts[name]}, as in [{name}=80]", place)
        if name == "temperature" and not _is_temperature(value):
            raise source.error("[temperature] takes a number of at least 0, as in [temperature=0.7]", place)
        if name in ("capture", "stop_capture") and (value is not None or name == "stop_capture"):
            value = _captured_as(value, source)
            if not value:
                raise source.error(f'[{name}] takes a name in quotes, as in [{name}="word"]', place)
        found[name] = Attribute(name, value)
        at = item.end()
    if "stop_capture" in found and not any(
        name in ("stop", "suffix") or name.startswith("capture_hidden_") for name in found
    ):
        raise source.error("[stop_capture] needs [stop] or [suffix] beside it", token)
    if "stop" in found and "suffix" in found:
        raise source.error("[stop] and [suffix] cannot stand on one rule", token)
    attributes = tuple(found.values())
    least, most = least_tokens(attributes), number_of(attributes, "max_tokens")
    if least and most is not None and most < least:
        raise source.error("[max_tokens] is less than [min_tokens]", token)
    return tuple(found[name] for name in dict.fromkeys((*_ENDS, *_OTHERS, *counts)) if name in found)


def says_where_it_ends(attributes: tuple[Attribute, ...]) -> bool:
    """Whether there is one of ``lazy``, ``stop``, ``suffix`` and ``max_chars``."""
    return any(each.name in _ENDS for each in attributes)


def number_of(attributes: tuple[Attribute, ...], name: str) -> int | None:
    """The number that an attribute gives."""
    return next((int(str(each.value)) for each in attributes if each.name == name), None)


def most_characters(attributes: tuple[Attribute, ...]) -> int | None:
    """The number that ``max_chars`` gives."""
    return number_of(attributes, "max_chars")


def least_tokens(attributes: tuple[Attribute, ...]) -> int:
    """The number that ``min_tokens`` gives; 0 if it gives none."""
    return number_of(attributes, "min_tokens") or 0


def note_attributes(
    builder: GrammarBuilder,
    left: Symbol,
    attributes: tuple[Attribute, ...],
    name: str,
    make_error: Callable[[str], GrammarError],
    body: Regular | None = None,
    end: Regular | None = None,
) -> None:
    """Note what is said of a rule's texts: whether they are wanted, how drawn, how many tokens they take.

    A rule with :func:`least_tokens` is then written by :func:`constrain.grammar.least_tokens.write_least`.

    Parameters
    ----------
    builder : GrammarBuilder
    left : Symbol
        The nonterminal of the rule.
    attributes : tuple of Attribute
    name : str
        Of the rule, which is that of a capture without one.
    make_error : callable (reason) -> GrammarError
        Makes the error at the place of the rule.
    body, end : Regular, optional
        Of a rule that names its end: what stands before it, and that.
    """
    named = {each.name: each.value for each in attributes}
    if "temperature" in named:
        builder.warm(left, float(str(named["temperature"])))
    most, least = number_of(attributes, "max_tokens"), least_tokens(attributes)
    if most is not None or least > 1:
        limited = None if end is None or most is None else body
        shown = "max_tokens" if least < 2 else "min_tokens"
        builder.limit_tokens(left, most, lambda reason: make_error(f"[{shown}]: {reason}"), limited, least)
    wanted = str(named["capture"] or name) if "capture" in named else None
    wanted_end = str(named["stop_capture"]) if "stop_capture" in named else None
    if wanted is not None or wanted_end is not None:
        builder.capture(left, CaptureRule(wanted, body, end, wanted_end))


def _is_temperature(value: Token | None) -> bool:
    return value is not None and value.type == "NUMBER" and 0 <= float(value) < float("inf")


def _captured_as(value: Token | None, source: Source) -> Token | None:
    """The name that a string says; None: it is no string, or one with a flag."""
    if value is None or value.type != "STRING" or not value.endswith('"'):
        return None
    return Token("STRING", read_pattern(value, source, is_json=True).text)


def _value(item: re.Match[str], token: Token) -> Token | None:
    for group, kind in (("string", "STRING"), ("regex", "REGEXP"), ("number", "NUMBER"), ("terminal", "TERMINAL")):
        if item[group] is not None:
            return token.part(kind, item.start(group), item.end(group))
    return None
