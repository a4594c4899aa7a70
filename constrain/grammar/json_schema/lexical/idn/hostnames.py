"""The format ``idn-hostname``: names by IDNA 2008, as rules over the lexemes of single characters.

A name is labels with dots between them, which may be those of other scripts.  A label is ASCII letters, digits and
hyphens, or a U-label (:mod:`~.labels`); if one label has letters from right to left, the Bidi rule binds all
(RFC 5893).  Labels in Punycode are taken in names that are ASCII throughout (:mod:`~.a_labels`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

from constrain.grammar.ir import GrammarBuilder, Symbol
from constrain.grammar.json_schema.lexical.idn.a_labels import LABEL, MAX_NAME, has_valid_a_labels
from constrain.grammar.json_schema.lexical.idn.labels import Automaton, Kind, is_u_label, kinds, label_automaton
from constrain.grammar.json_schema.lexical.idn.punycode import PREFIX
from constrain.grammar.json_schema.lexical.strings import Spelling
from constrain.grammar.languages.regular import Regular, concat, intersect, literal
from constrain.grammar.regex import regex_code_points

IDN_HOSTNAME = "idn-hostname"
"""The name of the format."""

_DOTS = "[.\u3002\uff0e\uff61]"


def may_be_in_name(text: str) -> bool:
    """Whether a host name may hold a text as it is written: with a backslash it may be an escape."""
    return text != "" and all(character.isalnum() or character in "-.\\" or character >= "\x80" for character in text)


@lru_cache(maxsize=4)
def _texts(spelling: Spelling) -> tuple[Regular, Regular, Regular, Regular]:
    """Names of ASCII labels alone; such a label; one that the Bidi rule takes; a dot."""
    spell = partial(regex_code_points, encode_char=spelling.points)
    name = intersect(spell(f"{LABEL}(?:{_DOTS}{LABEL})*"), spell("(?s:.{1,253})"))
    return name, spell(LABEL), intersect(spell(LABEL), spell("[A-Za-z](?s:.*)")), spell(_DOTS)


def idn_hostname(builder: GrammarBuilder, opened: Callable[[Regular], Regular], spelling: Spelling) -> Symbol:
    """The symbol of a JSON string that is such a name; ``opened`` puts before a token what may stand before it."""
    quote = literal('"')
    name, label, bidi_label, dot = _texts(spelling)
    result = builder.nonterminal(IDN_HOSTNAME)
    builder.add(result, (builder.lexeme(opened(concat(quote, name, quote)), IDN_HOSTNAME),))
    opening, closing = builder.lexeme(opened(quote), "'\"'"), builder.lexeme(quote, "'\"'")
    separator = builder.lexeme(dot, "a dot")
    characters = {kind: builder.lexeme(spelling.points(points), "a character") for kind, points in kinds().items()}
    for bidi, ascii_label in ((False, label), (True, bidi_label)):
        wide = _label_rules(builder, label_automaton(bidi), characters)
        plain = builder.lexeme(ascii_label, "a label")
        # Left-recursive: labels so far, all of them ASCII, or not.
        narrow, some_wide = builder.nonterminal("labels"), builder.nonterminal("labels")
        builder.add(narrow, (plain,))
        builder.add(narrow, (narrow, separator, plain))
        builder.add(some_wide, (wide,))
        builder.add(some_wide, (narrow, separator, wide))
        builder.add(some_wide, (some_wide, separator, wide))
        builder.add(some_wide, (some_wide, separator, plain))
        builder.add(result, (opening, some_wide, closing))
    return result


def _label_rules(builder: GrammarBuilder, automaton: Automaton, characters: dict[Kind, Symbol]) -> Symbol:
    """The nonterminal of what an automaton takes: one for each state, of what leads to it."""
    states = [builder.nonterminal("a label") for _ in automaton.steps]
    for state, steps in enumerate(automaton.steps):
        for kind, after in steps.items():
            builder.add(states[after], (characters[kind],) if state == 0 else (states[state], characters[kind]))
    whole = builder.nonterminal("a label")
    for state in sorted(automaton.finals):
        builder.add(whole, (states[state],))
    return whole


def is_idn_hostname(text: str) -> bool:
    """Whether a text is such a name."""
    if text.isascii():
        labels = text.lower().split(".")
        return len(text) <= MAX_NAME and has_valid_a_labels(text) and all(map(_is_ascii, labels))
    for dot in _DOTS[2:-1]:
        text = text.replace(dot, ".")
    labels = text.split(".")
    if text.isascii():
        return len(text) <= 253 and all(map(_is_plain, labels))
    return any(all(_is_plain(label, bidi) or is_u_label(label, bidi) for label in labels) for bidi in (False, True))


def _is_ascii(label: str) -> bool:
    return _is_plain(label) or label.startswith(PREFIX)


def _is_plain(label: str, bidi: bool = False) -> bool:
    if not label.isascii() or not 1 <= len(label) <= 63 or "-" in (label[0], label[-1]) or label[2:4] == "--":
        return False
    return label.replace("-", "a").isalnum() and (label[0].isalpha() or not bidi)
