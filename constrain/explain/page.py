"""A trace as one HTML page that stands on its own: nothing is loaded, and whatever the text holds is only shown.

The page is a fixed template, script and style; the trace is JSON in an element that no browser runs, and the script
writes it with ``textContent`` alone.  A content security policy with the script's own hash says the same once more.
"""

from __future__ import annotations

import json
from base64 import b64encode
from functools import lru_cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from constrain.engine.vocabulary.vocabulary import Vocabulary
from constrain.explain.token_text import visible
from constrain.explain.trace import Place, Step, Trace

# Enough of a text that follows the last step.
_UNREAD_SHOWN = 20_000
_EXACT_BELOW = 100


def page(trace: Trace, vocabulary: Vocabulary, *, title: str, verdict: str, facts: str, rules_name: str) -> str:
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
    """
    script, style = _part("page.js"), _part("page.css")
    content = _content(trace, vocabulary)
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


def _content(trace: Trace, vocabulary: Vocabulary) -> dict[str, Any]:
    phrases: dict[str, int] = {}

    def phrase(text: str) -> int:
        return phrases.setdefault(text, len(phrases))

    def place(each: Place) -> dict[str, Any]:
        microseconds = 1e6 * each.mask_seconds
        return {
            "allowed": each.allowed,
            "mask_us": round(microseconds, 1 if microseconds < _EXACT_BELOW else None),
            "complete": each.complete,
            "expected": phrase(each.expected),
            "rules": phrase("\n".join(each.rules)) if each.rules else None,
            "forced": visible(each.forced),
            "best": [(one.id, _name(vocabulary, one.id), one.probability) for one in each.best],
        }

    def step(each: Step, text: list[tuple[str, bool]]) -> dict[str, Any]:
        shown = sum(len(one.data) for one in trace.steps[:-1])
        return {
            "text": text,
            "shown": visible(each.data),
            "token": each.token,
            "bytes": each.data.hex(" "),
            "accepted": each.accepted,
            "forced": each.forced,
            "readable": "" if each.accepted else visible(each.data[: trace.read - shown]),
            "probability": each.probability,
            "before": place(each.before),
        }

    assert trace.end is not None
    return {
        "steps": [step(*pair) for pair in zip(trace.steps, _texts(trace.steps), strict=True)],
        "end": place(trace.end),
        "refused": trace.refused,
        "valid": trace.valid,
        "model": any(one.probability is not None for one in trace.end.best)
        or any(one.probability is not None for each in trace.steps for one in each.before.best),
        "vocabulary": vocabulary.size,
        "unread": _pieces(trace.unread[:_UNREAD_SHOWN]),
        "phrases": list(phrases),
    }


def _name(vocabulary: Vocabulary, token: int) -> str:
    return "end of text" if token in vocabulary.eos_ids else visible(vocabulary.tokens[token])


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
