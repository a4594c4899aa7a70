"""The text that is encoded: prose, code, JSON and several scripts, the same on every machine."""

from __future__ import annotations

import json
import random
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SHORT = "The quick brown fox jumps over"
"""30 characters."""

_LINES = (
    "人工智能正在改变我们的生活方式，也带来了新的问题。",
    "日本語の文章には漢字とかなが混ざっています。",
    "الذكاء الاصطناعي يغير العالم بسرعة كبيرة",
    "नमस्ते दुनिया, यह एक परीक्षण है।",
    "Сегодня хорошая погода, и мы идём гулять.",
    "👩\u200d💻 writes 🚀 code 🇩🇪🇫🇷 every day 😀",
    "        \t  indented\n\n\n   trailing   ",
    "Élève naïve, garçon, Straße, œuvre, 12345 + 67.89 = 12412.89",
)


def english_and_code(size: int) -> str:
    """``size`` characters of the repository's documentation and sources."""
    files = [*sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "constrain").rglob("*.py"))]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    return (text * (size // len(text) + 1))[:size]


def mixed(size: int) -> str:
    """``size`` characters: mostly the above, with JSON, several scripts, emoji and white space."""
    rng = random.Random(7)
    source = english_and_code(200_000).split("\n")
    parts: list[str] = []
    length = 0
    while length < size:
        kind = rng.random()
        if kind < 0.6:
            part = rng.choice(source)
        elif kind < 0.75:
            record = {"id": rng.randrange(10**6), "name": rng.choice(_LINES[:6]), "tags": [rng.random(), None, True]}
            part = json.dumps(record, ensure_ascii=False)
        else:
            part = rng.choice(_LINES)
        parts.append(part)
        length += len(part) + 1
    return "\n".join(parts)[:size]
