"""What docs/command-line.md shows as output is what the commands print."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "command-line.md").read_text()


def shown(heading: str) -> str:
    section = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ")[0]
    found = re.search(r"^```text\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_check(run) -> None:
    schema = ROOT / "grammars" / "person.schema.json"
    status, out, _ = run("check", "--schema", schema, stdin=b'{"name": "Ada Lovelace", "age": "36"}')
    assert (status, out) == (1, shown("constrain check"))


def test_mask(run) -> None:
    _, out, _ = run("mask", "--regex", r"the (cat|dog) (sat|ran)\.", "--prefix", "the cat ")
    assert out == shown("constrain mask")


def test_explain(run) -> None:
    _, out, _ = run("explain", "--regex", "(yes|no)!", "--text", "yes!")

    def without_times(text: str) -> str:
        return re.sub(r" +[\d,]+\.\d ", " TIME ", text)

    assert without_times(out) == without_times(shown("constrain explain"))
