"""The code in docs/regex.md runs, in the order in which it stands there."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "regex.md"


def test_the_code_in_the_documentation_runs() -> None:
    text = PAGE.read_text(encoding="utf-8")
    blocks = list(re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    assert len(blocks) == text.count("```") // 2
    names: dict[str, object] = {}
    for block in blocks:
        # The line numbers in a traceback are then those of the page.
        lines_before = "\n" * text.count("\n", 0, block.start(1))
        exec(compile(lines_before + block[1], str(PAGE), "exec"), names)
