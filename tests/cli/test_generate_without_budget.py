"""Grammars that no budget can be kept for: the command says when a text is not complete."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(("tokens", "code"), [(256, 0), (12, 3)])
def test_unique_items_over_free_values(tmp_path: Path, tokens: int, code: int) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text(
        json.dumps({"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": 2, "maxItems": 3})
    )
    command = [sys.executable, "-m", "constrain", "generate", "--schema", str(schema), "--seed", "1", "-n", str(tokens)]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == code
    if code == 0:
        items = json.loads(done.stdout)
        assert len(set(items)) == len(items) >= 2
    else:
        assert b"the text is not complete" in done.stderr.splitlines()[-1]
