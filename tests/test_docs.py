"""Every code block in the documentation runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from constrain import demo

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
    # The demonstration's tokenizer is shared; a page may give it a chat template.
    tokenizer = demo.load()[0]
    monkeypatch.setattr(tokenizer, "chat_template", tokenizer.chat_template)
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


def test_the_readme_shows_what_its_example_prints(capsys: pytest.CaptureFixture[str]) -> None:
    readme = (ROOT / "README.md").read_text()
    (shown,) = re.findall(
        r"<!-- the output of the block above -->\n```json\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL
    )
    exec(
        compile(blocks(ROOT / "README.md", "python")[0], "README.md", "exec", dont_inherit=True),
        {"__name__": "__main__"},
    )
    assert capsys.readouterr().out + "\n" == shown
    assert json.dumps(json.loads(shown), indent=2) + "\n" == shown


# What a page has to name if its examples import these.
_EXTRAS = {
    **dict.fromkeys(("torch", "transformers"), "constrain-llm[transformers]"),
    **{name: f"constrain-llm[{name}]" for name in ("pydantic", "tiktoken", "tokenizers", "sentencepiece")},
    "llama_cpp": "constrain-llm[llama-cpp]",
    "mlx": "mlx-lm",
    "openai": "`openai`",
    "prometheus_client": "constrain-llm[metrics]",
    "mlx_lm": "mlx-lm",
    "vllm": "vLLM",
    "sglang": "SGLang",
    "referencing": "pip install referencing",
    "interegular": "pip install interegular",
    "bench": "checkout of the source",
    "pytest": "[test]",
}
_OF_THE_PACKAGE = {"constrain", "lark", "numpy", *sys.stdlib_module_names}


@pytest.mark.parametrize("page", PAGES[1:], ids=name)
def test_pages_say_what_their_examples_need(page: Path) -> None:
    text = page.read_text()
    code = [match["code"] for match in _BLOCK.finditer(text) if match["language"] in ("python", "sh")]
    said = re.findall(r"^\*Examples on this page need\* (.*?)\.\n\n", text, re.MULTILINE | re.DOTALL)
    assert len(said) == bool(code)
    if not code:
        return
    assert text.index("*Examples on this page need*") < 400
    needs = " ".join(said[0].split())
    imported = {module for block in code for module in re.findall(r"^ *(?:from|import) (\w+)", block, re.MULTILINE)}
    imported |= {module for block in code for module in re.findall(r"python -m (\w+)", block)}
    for module in imported - _OF_THE_PACKAGE - {"tools"}:
        assert _EXTRAS[module] in needs, module
    if "'.[" in "".join(code):
        assert "checkout" in needs


def test_pictures_of_the_readme_are_there() -> None:
    found = re.findall(r'(?:srcset|src)="([^"]+)"', (ROOT / "README.md").read_text())
    assert found == ["docs/masks-dark.svg", "docs/masks-light.svg"]
    assert all((ROOT / path).is_file() for path in found)


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        prose = re.sub(r"`[^`]*`", "", _BLOCK.sub("", page.read_text()))
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", prose):
            assert (page.parent / target).exists(), f"{name(page)}: {target}"


def slug(heading: str) -> str:
    """The anchor of a heading, as Python-Markdown makes it."""
    words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", words).strip().lower())


def anchors(page: Path) -> set[str]:
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", _BLOCK.sub("", page.read_text()), re.MULTILINE)}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "bench" / "README.md"], ids=name)
def test_links_lead_to_a_heading(page: Path) -> None:
    prose = re.sub(r"`[^`]*`", "", _BLOCK.sub("", page.read_text()))
    links = re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", prose)
    assert not [
        f"{path}#{anchor}" for path, anchor in links if anchor not in anchors((page.parent / path) if path else page)
    ]


def test_what_an_anchor_is() -> None:
    assert slug("Lexer masks (`masks/lexer_masks.py`)") == "lexer-masks-maskslexer_maskspy"
    assert slug("JSON Schema: `pattern`") == "json-schema-pattern"
    assert "tools" in anchors(ROOT / "docs" / "tools.md")
    assert "tool" not in anchors(ROOT / "docs" / "tools.md")
