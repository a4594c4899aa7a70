"""A trace as one HTML page that stands on its own: nothing is loaded, and whatever the text holds is only shown.

The page is a fixed template, script and style; the trace is JSON in an element that no browser runs, and the script
writes it with ``textContent`` alone.  A content security policy with the script's own hash says the same once more.
"""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from constrain.engine.vocabulary.vocabulary import Vocabulary
from constrain.explain.schema_lines import Span, lines_of, spans_of
from constrain.explain.token_text import visible
from constrain.explain.trace import Place, Step, Trace

# Enough of a text that follows the last step.
_UNREAD_SHOWN = 20_000
_EXACT_BELOW = 100
# And of a grammar, in characters.
_GRAMMAR_SHOWN = 200_000


@dataclass(frozen=True)
class Source:
    """The grammar as its author wrote it, to be shown beside the text.

    Attributes
    ----------
    name : str
        Where it is from.
    text : str
    is_schema : bool
        Whether it is a JSON Schema, whose lines can be told.
    """

    name: str
    text: str
    is_schema: bool = False


def page(
    trace: Trace,
    vocabulary: Vocabulary,
    *,
    title: str,
    verdict: str,
    facts: str,
    rules_name: str,
    source: Source | None = None,
) -> str:
    """The page.

    Parameters
    ----------
    trace : Trace
    vocabulary : Vocabulary
        That the trace was made with.
    title, verdict, facts : str
        What stands above the text: what was looked at, what came of it, and how.
    rules_name : str
        What ``Place.rules`` are called in this kind of grammar.
    source : Source, optional
        The grammar, to be shown beside the text.  Of a schema, the lines that speak of the chosen token are marked.
    """
    script, style = _part("page.js"), _part("page.css")
    content = _content(trace, vocabulary, source)
    content |= {"title": title, "verdict": verdict, "facts": facts, "rules_name": rules_name}
    return Template(_part("page.html")).substitute(
        POLICY=f"default-src 'none'; style-src {_hash_of(style)}; script-src {_hash_of(script)}; base-uri 'none'",
        TITLE=escape(title),
        STYLE=style,
        DATA=_inert(json.dumps(content, ensure_ascii=True, separators=(",", ":"))),
        SCRIPT=script,
    )


@lru_cache(maxsize=3)
def _part(name: str) -> str:
    return (files("constrain.explain") / name).read_text("utf-8")


def _hash_of(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _inert(text: str) -> str:
    """JSON that cannot end the element it is in, nor begin a comment there."""
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _content(trace: Trace, vocabulary: Vocabulary, source: Source | None) -> dict[str, Any]:
    lines = _marked_lines(trace, source)
    phrases: dict[str, int] = {}

    def phrase(text: str) -> int:
        return phrases.setdefault(text, len(phrases))

    def place(each: Place, index: int) -> dict[str, Any]:
        microseconds = 1e6 * each.mask_seconds
        return {
            "allowed": each.allowed,
            "mask_us": round(microseconds, 1 if microseconds < _EXACT_BELOW else None),
            "complete": each.complete,
            "expected": phrase(each.expected),
            "rules": phrase("\n".join(each.rules)) if each.rules else None,
            "forced": visible(each.forced),
            "lines": lines[index],
            "best": [(one.id, _name(vocabulary, one.id), one.probability) for one in each.best],
        }

    def step(index: int, each: Step, text: list[tuple[str, bool]]) -> dict[str, Any]:
        shown = sum(len(one.data) for one in trace.steps[:-1])
        return {
            "text": text,
            "shown": visible(each.data),
            "token": each.token,
            "bytes": each.data.hex(" "),
            "accepted": each.accepted,
            "forced": each.forced,
            "readable": "" if each.accepted else visible(each.data[: trace.read - shown]),
            "why": phrase(_why(each)),
            "probability": each.probability,
            "before": place(each.before, index),
        }

    assert trace.end is not None
    return {
        "steps": [step(index, *pair) for index, pair in enumerate(zip(trace.steps, _texts(trace.steps), strict=True))],
        "end": place(trace.end, len(trace.steps)),
        "grammar": None if source is None else {"name": source.name, "lines": _lines(source.text)},
        "refused": trace.refused,
        "valid": trace.valid,
        "model": any(one.probability is not None for one in trace.end.best)
        or any(one.probability is not None for each in trace.steps for one in each.before.best),
        "vocabulary": vocabulary.size,
        "unread": _pieces(trace.unread[:_UNREAD_SHOWN]),
        "phrases": list(phrases),
    }


def _why(step: Step) -> str:
    """Why a token was the only one, one of several, or none that could stand in its place."""
    before = step.before
    certain = f"\u201c{visible(before.forced)}\u201d"
    if not step.accepted:
        return f"no text that fits goes on so: here comes {before.expected}"
    if step.forced and before.allowed == 1:
        return f"of all tokens only this one begins what must come here: {before.expected}"
    if step.forced:
        return f"every text that fits goes on with {certain}, and all tokens that are allowed are pieces of it"
    reason = f"{before.allowed:,} tokens begin, or go on with, something that fits here: {before.expected}"
    if before.complete:
        return f"{reason}; and the text could end"
    if before.forced:
        return f"only {certain} is certain, and this token goes beyond it, where there is a choice"
    return reason


def _lines(text: str) -> list[str]:
    """The lines of a grammar; what cannot be shown is escaped."""
    return [
        "".join(shown for shown, _ in _pieces(line.encode("utf-8", "surrogatepass")))
        for line in text[:_GRAMMAR_SHOWN].split("\n")
    ]


def _marked_lines(trace: Trace, source: Source | None) -> list[tuple[int, int] | None]:
    """The first and last line of the schema that speak of each token, and of the end."""
    none: list[tuple[int, int] | None] = [None] * (len(trace.steps) + 1)
    if source is None or not source.is_schema:
        return none
    lines = lines_of(source.text)
    spans = spans_of(source.text, b"".join(each.data for each in trace.steps) + trace.unread)
    at = following = 0
    inside: list[Span] = []
    for index, each in enumerate([*(each.data for each in trace.steps), b""]):
        # Blanks, commas and colons in front of something belong to it, for a person.
        begin = at + len(each) - len(each.lstrip(b" \t\r\n,:"))
        while following < len(spans) and spans[following].begin <= begin:
            inside.append(spans[following])
            following += 1
        while inside and inside[-1].end <= begin:
            inside.pop()
        none[index] = lines.get(inside[-1].pointer if inside else "#")
        at += len(each)
    return none


def _name(vocabulary: Vocabulary, token: int) -> str:
    return "end of text" if token in vocabulary.eos_ids else visible(vocabulary.shown(token))


def _texts(steps: list[Step]) -> list[list[tuple[str, bool]]]:
    """What each token shows in the text: a character of several tokens stands in the last of them."""
    texts = []
    held = b""
    for index, each in enumerate(steps):
        data = held + each.data
        held = b"" if index == len(steps) - 1 else _unfinished(data)
        texts.append(_pieces(data[: len(data) - len(held)]) or [("\u00b7", True)])
    return texts


def _unfinished(data: bytes) -> bytes:
    """The beginning of a character at the end of some bytes."""
    for length in (1, 2, 3):
        tail = data[-length:]
        if len(tail) == length and tail[0] >= 0xC0:
            needed = 2 if tail[0] < 0xE0 else 3 if tail[0] < 0xF0 else 4
            return tail if length < needed else b""
    return b""


def _pieces(data: bytes) -> list[tuple[str, bool]]:
    """A text in pieces that are shown as they are, and pieces that are escapes for what cannot be shown."""
    pieces: list[tuple[str, bool]] = []
    for character in data.decode("utf-8", "surrogateescape"):
        plain = character.isprintable() or character in "\n\t"
        shown = character if plain else visible(character.encode("utf-8", "surrogateescape"))
        if pieces and pieces[-1][1] is not plain:
            pieces[-1] = (pieces[-1][0] + shown, not plain)
        else:
            pieces.append((shown, not plain))
    return pieces
