"""The page of ``constrain explain --html`` in a real browser: clicked, walked with the keyboard, attacked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from webdriver import Browser, browser_and_driver, open_browser

from constrain.cli.main import main

PROGRAMS = browser_and_driver()
pytestmark = pytest.mark.skipif(PROGRAMS is None, reason="Chromium and ChromeDriver are not both on this machine")

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "maximum": 99}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
HOSTILE = [
    "</script><script>document.title = 'broken'</script>",
    "<!-- <script> ",
    "<img src=x onerror=\"document.title = 'broken'\">",
    "\u202e\u2028\u2029\x7f\u200b $DATA ${DATA} $$",
    "]]>&amp;&lt;\\u003c",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert PROGRAMS is not None
    with open_browser(*PROGRAMS) as found:
        yield found


def explain(folder: Path, text: bytes, *options: str) -> str:
    """Make a page; returns its address."""
    (folder / "schema.json").write_text(json.dumps(SCHEMA))
    (folder / "text.json").write_bytes(text)
    page = folder / "page.html"
    grammar = options or ("--schema", str(folder / "schema.json"))
    main(["explain", *grammar, str(folder / "text.json"), "--html", str(page)])
    return page.as_uri()


def test_a_person_can_walk_through_a_text(browser: Browser, tmp_path: Path) -> None:
    browser.open(explain(tmp_path, '{"name": "Zoë 😀", "age": 41}'.encode()))
    assert browser.text("#verdict") == "valid"
    assert browser.text("#title").endswith("text.json")
    assert browser.text("#where").startswith("Token 1 of")
    count = int(browser.run("return document.querySelectorAll('#text [data-index]').length"))
    assert (
        browser.run("return document.querySelector('#text').innerText").replace("\u00b7", "").replace("end", "")
        == '{"name": "Zoë 😀", "age": 41}'
    )
    first = browser.text("#details")
    assert "forced" in first
    assert "'{'" in first

    browser.click('#text [data-index="3"]')
    assert browser.text("#where").startswith("Token 4 of")
    assert browser.text("#details") != first
    assert browser.run("return document.querySelector('.here').dataset.index") == "3"
    browser.press("Right")
    assert browser.text("#where").startswith("Token 5 of")
    browser.press("Left")
    browser.press("Left")
    assert browser.text("#where").startswith("Token 3 of")
    browser.press("End")
    assert browser.text("#where") == "The end of the text"
    assert "complete" in browser.text("#details")
    browser.press("Right")
    assert browser.text("#where") == "The end of the text"
    browser.press("Home")
    browser.click("#forward")
    assert browser.text("#where").startswith("Token 2 of")
    browser.click("#last")
    assert browser.text("#where") == "The end of the text"
    browser.click("#chart")
    assert browser.run("return Number(document.querySelector('.here').dataset.index)") == pytest.approx(
        count / 2, abs=1
    )
    assert browser.complaints() == []


def test_title_axes_and_the_schema_beside_the_text(browser: Browser, tmp_path: Path) -> None:
    schema = json.dumps(SCHEMA, indent=1)
    (tmp_path / "indented.json").write_text(schema)
    page = explain(tmp_path, '{"name": "Zoë", "age": 41}'.encode(), "--schema", str(tmp_path / "indented.json"))
    browser.open(page)
    assert browser.text("#title") == f"Token by token: {tmp_path / 'text.json'}" == browser.run("return document.title")
    assert "log scale" in browser.text(".y-title")
    assert browser.text(".x-title") == "place in the text, counted in tokens"
    labels = "return [...document.querySelectorAll('#{} span')].map(each => each.textContent)"
    assert browser.run(labels.format("y-axis")) == ["1", "10", "100", "1,000", "10,000"]
    assert browser.run(labels.format("x-axis"))[0] == "1"
    # A label stands at the height of its line.
    middle = "const box = document.querySelector('{}').getBoundingClientRect(); return (box.top + box.bottom) / 2"
    label = browser.run(middle.format("#y-axis span:nth-child(3)"))
    assert label == pytest.approx(browser.run(middle.format("#chart line:nth-of-type(3)")), abs=2)

    assert browser.text("#grammar-name").endswith("indented.json")
    assert browser.run("return [...document.querySelectorAll('#grammar div')].map(each => each.textContent)") == [
        line or " " for line in schema.split("\n")
    ]
    marked = "return [...document.querySelectorAll('#grammar .marked')].map(each => each.textContent.trim())"
    assert browser.run(marked)[0] == "{"
    spoken = set()
    for _ in range(int(browser.run("return document.querySelectorAll('#text [data-index]').length"))):
        spoken.add(browser.run(marked)[0])
        browser.press("Right")
    assert {'"name": {', '"age": {'} <= spoken
    assert browser.complaints() == []


def test_why_a_place_is_forced_or_free(browser: Browser, tmp_path: Path) -> None:
    browser.open(explain(tmp_path, b"yes!", "--regex", "(yes|no)!"))
    assert "free: 4 tokens begin, or go on with, something that fits here: 'yes!' or 'no!'" in browser.text("#details")
    browser.press("Right")
    assert "forced: every text that fits goes on with" in browser.text("#details")
    browser.press("Right")
    assert "forced: of all tokens only this one begins what must come here: '!'" in browser.text("#details")
    assert browser.text("#grammar") == "(yes|no)!"
    browser.open(explain(tmp_path, b"yet", "--regex", "(yes|no)!"))
    browser.press("End")
    browser.press("Left")
    assert "refused: no text that fits goes on so: here comes" in browser.text("#details")
    assert browser.complaints() == []


def test_a_hostile_schema_is_only_shown(browser: Browser, tmp_path: Path) -> None:
    schema = {"description": "</script><script>document.title = 'broken'</script><img src=x>", "type": "string"}
    (tmp_path / "hostile.json").write_text(json.dumps(schema))
    browser.open(explain(tmp_path, b'"a"', "--schema", str(tmp_path / "hostile.json")))
    assert "<script>document.title" in browser.text("#grammar")
    assert browser.run("return document.title").endswith("text.json")
    assert browser.run("return document.querySelectorAll('img').length") == 0
    assert browser.complaints() == []


def test_nothing_is_loaded(browser: Browser, tmp_path: Path) -> None:
    browser.open(explain(tmp_path, b'{"name": "", "age": 1}'))
    assert browser.run("return performance.getEntriesByType('resource').map(entry => entry.name)") == []
    # The policy holds: a script that somebody smuggled in would not run.
    browser.run(
        "const s = document.createElement('script'); s.textContent = 'document.title=1'; document.body.append(s)"
    )
    assert browser.run("return document.title").endswith("text.json")


def test_a_text_that_breaks_the_grammar(browser: Browser, tmp_path: Path) -> None:
    browser.open(explain(tmp_path, b'{"name": "A", "age": 100, "more'))
    assert browser.text("#verdict") == "not valid from line 1, column 24 on"
    assert "refused" in browser.text("#details")
    assert len(browser.run("return [...document.querySelectorAll('#text .refused')]")) == 2
    assert browser.text("#text .unread").endswith('"more')
    browser.press("End")
    assert browser.text("#where") == "Where the text breaks the grammar"
    assert "'}'" in browser.text("#details")
    assert browser.complaints() == []


@pytest.mark.parametrize("text", [b"", b'{"name": "A'], ids=["nothing", "half"])
def test_a_text_that_is_not_finished(browser: Browser, tmp_path: Path, text: bytes) -> None:
    browser.open(explain(tmp_path, text))
    assert browser.text("#verdict") == "incomplete: it ends before it is valid"
    browser.press("End")
    assert "more is needed" in browser.text("#details")
    assert browser.complaints() == []


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_are_only_shown(browser: Browser, tmp_path: Path, text: str) -> None:
    browser.open(explain(tmp_path, text.encode() + b"\xff\x00\x1b[2J", "--regex", r"[\s\S]*"))
    count = int(browser.run("return document.querySelectorAll('#text [data-index]').length"))
    for _ in range(min(count, 12)):
        browser.press("Right")
    assert browser.run("return document.title").endswith("text.json")
    assert browser.run("return document.querySelectorAll('script').length") == 2
    assert browser.run("return document.querySelectorAll('img').length") == 0
    shown = browser.run("return document.querySelector('#text').textContent")
    if text.isprintable():
        assert shown.startswith(text)
    assert browser.complaints() == []


def test_a_hostile_name_is_only_shown(browser: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "<b onclick=alert(1)>&quot;"
    folder.mkdir()
    browser.open(explain(folder, b'{"name": "", "age": 1}'))
    assert "<b onclick=alert(1)>&quot;" in browser.text("#title")
    assert browser.run("return document.querySelectorAll('b').length") == 0


def test_a_link_to_a_token(browser: Browser, tmp_path: Path) -> None:
    browser.open(explain(tmp_path, b'{"name": "", "age": 1}') + "#2")
    assert browser.text("#where").startswith("Token 3 of")
