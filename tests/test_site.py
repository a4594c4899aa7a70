"""The documentation as a site: it builds without a warning, and every page is in the navigation."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[1]

needs_mkdocs = pytest.mark.skipif(find_spec("mkdocs") is None, reason="MkDocs is not installed (the extra 'docs')")


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    named = re.findall(r": ([\w-]+\.md)$", navigation, re.MULTILINE)
    assert sorted(named) == sorted(page.name for page in (ROOT / "docs").glob("*.md"))


def test_no_page_links_out_of_the_site() -> None:
    """What MkDocs would refuse, where it is not installed too."""
    for page in (ROOT / "docs").glob("*.md"):
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            assert urlsplit(target).scheme or not target.startswith(".."), f"{page.name}: {target}"


class Page(HTMLParser):
    """The links of a page, what it loads, and the places that can be linked to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.names: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.names.update(values[key] for key in ("id", "name") if key in values)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag in ("script", "img") and "src" in values:
            self.loads.append(values["src"])
        elif tag == "link" and "href" in values and values.get("rel") != "canonical":
            self.loads.append(values["href"])


@needs_mkdocs
def test_the_site(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = {path.resolve(): Page(path) for path in tmp_path.glob("*.html")}
    assert len(pages) > 10
    for path, page in pages.items():
        for target in page.loads + page.links:
            parts = urlsplit(target)
            if path.name == "404.html" or (parts.scheme and target in page.links):
                continue
            # Nothing is fetched from elsewhere; and what is linked to is there, down to the heading.
            assert not parts.scheme, f"{path.name}: {target}"
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert file.exists(), f"{path.name}: {target}"
            if parts.fragment and file in pages:
                assert parts.fragment in pages[file].names, f"{path.name}: {target}"
