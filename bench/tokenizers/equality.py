"""Not a measurement: are our ids those of the reference, on megabytes of text and on thousands of odd strings?"""

from __future__ import annotations

import random
from collections.abc import Iterator

import click

from bench.tokenizers.subjects import Subject
from bench.tokenizers.texts import mixed

_CHUNK = 1_000_000
_ODD = (
    *(
        "the",
        " The",
        "HELLO",
        "'s",
        "'LL",
        "can't",
        "0",
        " 12345",
        "3.14",
        " ",
        "  ",
        "\t",
        "\n",
        "\r\n",
        "\n\n  ",
        "\u00a0",
    ),
    *("\u2003", "\u0085", "\x00", "\x1c", "\x7f", "{", '":', "},\n", "//", "...", "中文", "日本語A", "한국", "नमस्ते"),
    *(
        "مر",
        "e\u0301",
        "\u0301",
        "ǅ",
        "ʰ",
        "ª",
        "camelCase",
        "İ",
        "😀",
        "👩\u200d💻",
        "🇩🇪",
        "\ufeff",
        "\ufffd",
        "▁",
        "_",
        "$",
    ),
    *("\U0010ffff", "\u1e9b\u0323", "ﬁ", "①", "ｶﾞ", "\u0958", "\u2126"),
)


def equality(subjects: list[Subject], megabytes: int, strings: int) -> None:
    """Compares the ids of each of our tokenizers with those of its reference, and what byte-level ones decode with the
    text; exits with 1 if anything differs."""
    differences = 0
    click.echo(f"equality: {megabytes} MB of mixed text, {strings:,} strings")
    for ours, reference in zip(subjects[::2], subjects[1::2], strict=True):
        wrong_chunks = sum(_differ(ours, reference, text) for text in _chunks(megabytes))
        wrong_strings = _odd_strings(ours, reference, strings)
        differences += wrong_chunks + len(wrong_strings)
        click.echo(
            f"{ours.kind:14s}{reference.name:16s}{wrong_chunks} of {megabytes} chunks and"
            f" {len(wrong_strings)} of {strings:,} strings differ {wrong_strings[:3] or ''}"
        )
    if differences:
        raise SystemExit(1)


def _differ(ours: Subject, reference: Subject, text: str) -> bool:
    ids = list(ours.encode(text))
    # An unknown character is lost, and what a form changes stays changed; then the reference says what the text is.
    back = ours.decode(ids)
    lost = reference.name != "sentencepiece" and back != text and back != reference.decode(ids)
    return lost or ids != list(reference.encode(text))


def _odd_strings(ours: Subject, reference: Subject, count: int) -> list[str]:
    try:
        from hypothesis import HealthCheck, given, settings
        from hypothesis import strategies as st
    except ImportError:
        raise click.ClickException("hypothesis makes the strings: pip install hypothesis") from None

    found: list[str] = []
    seen = 0
    texts = st.lists(st.one_of(st.sampled_from(_ODD), st.text(max_size=6)), max_size=30).map("".join)

    @settings(
        max_examples=count, database=None, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    @given(texts)
    def check(text: str) -> None:
        nonlocal seen
        seen += 1
        text = _without_special(text)
        if list(ours.encode(text)) != list(reference.encode(text)):
            found.append(text)

    check()
    assert seen >= count, f"only {seen} strings"
    return found


def _chunks(megabytes: int) -> Iterator[str]:
    """Prose, code, JSON, several scripts, emoji, white space, controls, and what is left of broken UTF-8."""
    rng = random.Random(11)
    source = mixed(2_000_000)
    for _ in range(megabytes):
        parts = []
        size = 0
        while size < _CHUNK:
            kind = rng.random()
            if kind < 0.7:
                begin = rng.randrange(len(source) - 4000)
                part = source[begin : begin + rng.randrange(1, 4000)]
            elif kind < 0.8:
                part = rng.choice(" \t\n\r") * rng.randrange(1, 300)
            elif kind < 0.9:
                part = "".join(chr(rng.choice((rng.randrange(32), rng.randrange(127, 160)))) for _ in range(20))
            else:
                begin = rng.randrange(len(source) - 400)
                data = bytearray(source[begin : begin + 400].encode())
                for _ in range(20):
                    data[rng.randrange(len(data))] = rng.randrange(256)
                part = data.decode("utf-8", "replace")
            parts.append(part)
            size += len(part.encode())
        yield _without_special("".join(parts))


def _without_special(text: str) -> str:
    """The reference libraries are asked for plain text, and we find special tokens in it."""
    return text.replace("<|", "<")
