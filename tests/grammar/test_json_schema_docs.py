"""The examples in docs/json-schema.md run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "json-schema.md"


def test_the_examples_run() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 6
    names: dict[str, Any] = {"__name__": "json_schema_examples"}
    for block in blocks:
        exec(compile(block, str(DOCUMENT), "exec", dont_inherit=True), names)
