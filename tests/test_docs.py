"""Every code block in the documentation runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(
    r"(?P<note><!--[^>]*-->\n)?^(?P<indent> *)```(?P<language>\w*)\n(?P<code>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)


def blocks(page: Path, language: str) -> list[str]:
    """The blocks of one language, without those marked as set-up."""
    return [
        textwrap.dedent(match["code"])
        for match in _BLOCK.finditer(page.read_text())
        if match["language"] == language and not re.search("not run|test command", match["note"] or "")
    ]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_every_block_has_a_language_that_is_known() -> None:
    languages = {match["language"] for page in PAGES for match in _BLOCK.finditer(page.read_text())}
    assert languages <= {"python", "sh", "text", "json", "lark", "ebnf"}


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name)
def test_python_blocks(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "import torch" in page.read_text():
        pytest.importorskip("torch", reason="PyTorch is not installed")
    monkeypatch.chdir(ROOT)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page, "python"):
        exec(compile(block, name(page), "exec", dont_inherit=True), namespace)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "sh")], ids=name)
def test_shell_blocks(page: Path, tmp_path: Path) -> None:
    shim = tmp_path / "constrain"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m constrain "$@"\n')
    shim.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    for block in blocks(page, "sh"):
        subprocess.run(["sh", "-e", "-c", block], check=True, cwd=ROOT, env={**os.environ, "PATH": path})


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        prose = re.sub(r"`[^`]*`", "", _BLOCK.sub("", page.read_text()))
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", prose):
            assert (page.parent / target).exists(), f"{name(page)}: {target}"
