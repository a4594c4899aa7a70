"""What ``docs/grammars.md`` says about languages is true."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent
from typing import Any

from naive import NaiveRecognizer

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "grammars.md"
BLOCKS = re.findall(r"^([ ]*)```python\n(.*?)^\1```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def run(block: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(dedent(block), str(DOCUMENT), "exec"), names)
    return names


def test_words_that_run_into_each_other() -> None:
    (names,) = (run(block) for _, block in BLOCKS if "glued" in block)
    glued, apart = NaiveRecognizer(names["glued"].ir), NaiveRecognizer(names["apart"].ir)
    assert [glued.accepts(text) for text in (b"return x", b"returnx")] == [True, True]
    assert [apart.accepts(text) for text in (b"return x", b"returnx")] == [True, False]
