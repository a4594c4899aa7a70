"""The distribution's name: one, everywhere, and not the one that is somebody else's on the public index."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from constrain.extras import how_to_install
from constrain.version import DISTRIBUTION

ROOT = Path(__file__).resolve().parents[1]

# A command that installs `constrain` itself or its extras; `constrain-llm` and `constrain.cli` are something else.
_INSTALLS = re.compile(
    r"""(?:pip3?|pipx|uvx?)\s+(?:pip\s+)?(?:install|add|run|download)\b[^\n`&|;]*?[ '"]constrain(?![\w.-])"""
    r"""|(?<![\w.-])constrain\\?\[[a-z]""",
)


def installs_a_stranger(text: str) -> list[str]:
    """The places of a text at which the name on the index is the old one."""
    return [found[0] for found in _INSTALLS.finditer(text)]


def _texts() -> dict[str, str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    found = {}
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if path.is_file() and path != Path(__file__):
            try:
                found[name] = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
    return found


def test_nothing_installs_the_package_of_that_name_on_the_index() -> None:
    texts = _texts()
    assert {"README.md", "pyproject.toml", ".ci/run", "constrain/grammar/pydantic/front_end.py"} <= texts.keys()
    assert {name: found for name, text in texts.items() if (found := installs_a_stranger(text))} == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("pip install constrain", True),
        ("pip install -U 'constrain[hub]'", True),
        ("uv pip install constrain==0.1", True),
        ("uv add constrain", True),
        ('dev = ["constrain[test]"]', True),
        ("needs `constrain[transformers]`", True),
        (r"match=r'constrain\[hub\]'", True),
        ("pip install constrain-llm", False),
        ("pip install 'constrain-llm[hub]'", False),
        ("pip install -e '.[test]' && constrain generate", False),
        ("pip install . \n constrain generate", False),
        ("import constrain", False),
    ],
)
def test_what_is_found(text: str, found: bool) -> None:
    assert bool(installs_a_stranger(text)) is found


def test_the_name_is_the_project_s() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    assert re.search(r'^name = "(.*)"$', project, re.MULTILINE)[1] == DISTRIBUTION  # type: ignore[index]
    assert DISTRIBUTION != "constrain"


def test_every_extra_that_is_named_is_there() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    section = project.split("[project.optional-dependencies]", 1)[1].split("\n[", 1)[0]
    extras = set(re.findall(r"^([a-z-]+) = ", section, re.MULTILINE))
    named = {
        extra
        for text in _texts().values()
        for pattern in (
            rf"{DISTRIBUTION}\[([a-z-]+)\]",
            r"how_to_install\([\"\']([a-z-]+)[\"\']\)",
            r"-e '\.\[([a-z-]+)\]'",
        )
        for extra in re.findall(pattern, text)
    }
    assert {"pydantic", "transformers", "hub", "test"} <= named <= extras


def test_the_command() -> None:
    assert how_to_install("hub") == "pip install 'constrain-llm[hub]'"
