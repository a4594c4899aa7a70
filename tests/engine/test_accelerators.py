"""Accelerators: each can be switched off, none changes a mask, and the plain engine needs none of them."""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import link_callbacks
import numpy as np
import pytest

import constrain
from constrain.engine.masks import accelerators, fast
from constrain.engine.masks.accelerators import ACCELERATORS, NAMES, PLAIN_VARIABLE
from constrain.engine.storage import links
from constrain.engine.storage.header import FIRST_LINK, HEADER

LINKS = [(one.name, link) for one in ACCELERATORS for link in one.links]
# Of core_masks, relative_masks and star_closures, which ask them.
PARTS = {
    "bounded_closures",
    "closures",
    "excluded_texts",
    "inside_closures",
    "leading_repetitions",
    "lexical_runs",
    "relaxations",
    "repetitions",
    "run_states",
}

WORDS = {"type": "string", "pattern": r"^(?:\S+\s+){0,9}\S+$"}
OBJECT = {
    "type": "object",
    "properties": {name: {"type": "integer"} for name in ("name", "names", "note", "é")},
    "required": ["note"],
}
WITHOUT_NOTES = r"""
start: TEXT
TEXT: /(?s:.)*/ & ~/(?s:.)*(note|oa)(?s:.)*/
"""
WITHOUT_WORDS = r"""
start: TEXT " end"
TEXT: /(?s:.)*/ & ~/(?s:.)*(nano|anoa|oai|isno|sis|eno|oono|a name|s note|\\u006e\w|noo|saa|sno|no a|is a)(?s:.)*/
"""
CASES: list[tuple[Any, bytes]] = [
    (OBJECT, b'{\n    "names": 1, "no'),
    ({**OBJECT, "additionalProperties": False}, b'{"name'),
    ({"type": "object", "properties": {"name": {}, "note": {}}}, b'{"na'),
    ({"type": "string", "minLength": 2}, b'"no'),
    ({"type": "string", "maxLength": 12}, b'"note: '),
    ({"type": "array", "items": {"type": "string", "pattern": "no+t"}}, b'["anoot",\n      "'),
    ({"type": "string", "maxLength": 400}, b'"no'),
    (WORDS, b'"note is a na'),
    ({"type": "array", "items": {}, "uniqueItems": True, "minItems": 1}, b'[{"a":'),
    ({"type": "string", "not": {"pattern": "note"}}, b'"a no'),
    (WITHOUT_NOTES, b"a na no"),
    (WITHOUT_WORDS, b"a na no so"),
    ({"type": "string", "pattern": "^[^x]{0,40}$"}, b'"no note'),
]


def tokens() -> list[bytes]:
    """All ASCII bytes; pieces of texts, with quotes, blanks and line breaks at all places; some tokens twice."""
    rng = np.random.default_rng(3)
    pieces = ["note", "name", "no", "s", "o", " ", "a", "is ", "é", '"', '":', '",', "7", "\\n", "[", "}", "\\u006e"]
    found = [bytes([byte]) for byte in range(128)]
    found += ["".join(rng.choice(pieces, int(rng.integers(2, 7)))).encode() for _ in range(1500)]
    # Many with the same beginning make wide nodes of the trie, and large subtrees.
    found += [b"n" + bytes([first, second]) for first in b"abcdefghijklmnopqrst" for second in b'aeiou" \\']
    found += [b"a " * count for count in range(2, 20)] + [b"o" * count for count in range(2, 20)]
    found += [before + b" " * count for before in (b"", b"\n", b",\n") for count in (1, 2, 3, 4, 6, 8, 16, 30, 96, 100)]
    return [*found, *found[200:210], b"</s>"]


TOKENS = tokens()


def longest_token(text: bytes) -> int:
    """The longest token that a text begins with."""
    return max(
        (token for token in range(len(TOKENS) - 1) if text.startswith(TOKENS[token])), key=lambda i: len(TOKENS[i])
    )


def masks_along(compiled: constrain.CompiledGrammar, text: bytes, max_tokens: int | None) -> list[Any]:
    """The masks behind each token of a text; then those in front of each byte of it, and at its end."""
    mask = constrain.allocate_token_bitmask(1, compiled.vocabulary.size)
    found = []
    matcher = constrain.Matcher(compiled, max_tokens)
    rest = text
    while rest:
        token = longest_token(rest)
        assert matcher.accept_token(token)
        matcher.fill_next_token_bitmask(mask)
        found.append(mask.copy())
        rest = rest[len(TOKENS[token]) :]
    matcher = constrain.Matcher(compiled, max_tokens)
    for place in range(len(text) + 1):
        matcher.fill_next_token_bitmask(mask)
        found.append(mask.copy())
        assert place == len(text) or matcher.accept_bytes(text[place : place + 1])
    return found


def all_masks(names: Collection[str] | None, max_tokens: int | None = None) -> list[Any]:
    """The masks of all cases, of each twice, as grammars share masks."""
    vocabulary = constrain.Vocabulary(TOKENS, eos_ids=[len(TOKENS) - 1])
    assert len(vocabulary.shared) == 0  # too small for the disk
    found: list[Any] = []
    for source, text in CASES:
        is_lark = isinstance(source, str)
        for _ in range(2):
            grammar = constrain.Grammar.from_lark(source) if is_lark else constrain.Grammar.from_json_schema(source)
            compiled = constrain.CompiledGrammar(grammar.ir, vocabulary, accelerators=names)
            found += masks_along(compiled, text, max_tokens)
    return found


def test_a_mask_made_where_nothing_follows_serves_where_something_does() -> None:
    """Of the first grammars with a star closure one shares the closure, and the next one a mask that is made of it."""

    def masks(names: Collection[str] | None) -> list[Any]:
        vocabulary = constrain.Vocabulary(TOKENS, eos_ids=[len(TOKENS) - 1])
        found: list[Any] = []
        for source in ("/[a-z ]*v/", "/[a-z ]*e/", "/[a-z ]*e/ /[^a-z ]+/"):
            grammar = constrain.Grammar.from_lark(f"start: {source}")
            found += masks_along(
                constrain.CompiledGrammar(grammar.ir, vocabulary, accelerators=names), b"a na no", None
            )
        return found

    assert all((one == other).all() for one, other in zip(masks(None), masks(()), strict=True))


def same(masks: list[Any], others: list[Any]) -> bool:
    return all((one == other).all() for one, other in zip(masks, others, strict=True))


@pytest.fixture(scope="module")
def expected() -> list[Any]:
    return all_masks(())


@pytest.fixture(scope="module")
def with_budgets() -> list[Any]:
    return all_masks(NAMES, 40)


@contextlib.contextmanager
def counted(link: int) -> Iterator[list[int]]:
    """What a link's kernel answers within tables that are made meanwhile, without NOT_MINE and what stopped it."""
    accelerators.load(*NAMES)
    answers: list[int] = []

    def count(kernel: Callable[[], int], _a: int, _b: int) -> int:
        result = kernel()
        if result >= 0:
            answers.append(result)
        return result

    with link_callbacks.replaced(link, count):
        yield answers


def test_every_file_is_an_accelerator_and_every_link_belongs_to_one() -> None:
    files = {path.stem for path in Path(str(fast.__file__)).parent.glob("*.py")} - {"__init__"}
    assert files == set(NAMES) | PARTS
    assert sorted(link for _, link in LINKS) == list(range(links.FIRST_ACCELERATOR, links.END_ACCELERATORS))
    in_order = [link for one in ACCELERATORS for link in one.links if link < links.END_MASK_LINKS]
    assert in_order == list(range(links.FIRST_MASK_LINK, links.END_MASK_LINKS))


def test_all_of_them_change_no_mask(expected: list[Any]) -> None:
    found = all_masks(NAMES)
    assert len(found) == len(expected) > 200
    assert same(found, expected)


@pytest.mark.parametrize("name", NAMES)
def test_masks_without_an_accelerator_and_with_it_alone_are_the_same(name: str, expected: list[Any]) -> None:
    for names in ({name}, set(NAMES) - {name}):
        assert same(all_masks(names), expected)


@pytest.mark.parametrize("name", ["", *NAMES])
def test_budgets_are_kept_without_accelerators(name: str, with_budgets: list[Any]) -> None:
    names = set(NAMES) - {name} if name else ()
    assert same(all_masks(names, 40), with_budgets)


@pytest.mark.parametrize(("name", "link"), LINKS)
def test_an_accelerator_answers_unless_it_is_switched_off(name: str, link: int) -> None:
    with counted(link) as answers:
        all_masks(NAMES)
        assert answers
        answers.clear()
        for names in ((), set(NAMES) - {name}):
            all_masks(names)
        assert not answers


def test_unknown_names_are_refused_with_those_that_are_known() -> None:
    vocabulary = constrain.Vocabulary([b"a"])
    with pytest.raises(constrain.ConstrainError, match=r"unknown accelerators: leaps, loops; there are .*core_masks"):
        constrain.GrammarCompiler(vocabulary, accelerators=["loops", "core_masks", "leaps"])
    with pytest.raises(constrain.ConstrainError, match="not the string 'core_masks'"):
        constrain.CompiledGrammar(constrain.Grammar.from_regex("a").ir, vocabulary, accelerators="core_masks")


def test_a_compiler_hands_them_on() -> None:
    compiler = constrain.GrammarCompiler(constrain.Vocabulary([b"a"]), accelerators=["core_masks", "self_loops"])
    for one in (compiler, pickle.loads(pickle.dumps(compiler))):
        assert one.compile(constrain.Grammar.from_regex("a*")).accelerators == ("self_loops", "core_masks")


def test_new_tables_do_without_them_too() -> None:
    vocabulary = constrain.Vocabulary(TOKENS, eos_ids=[len(TOKENS) - 1])
    compiled = constrain.CompiledGrammar(constrain.Grammar.from_json_schema(WORDS).ir, vocabulary, accelerators=())
    plain = compiled.ctx[FIRST_LINK:HEADER].copy()
    compiled.begin()
    compiled._tables.link()
    assert (compiled.ctx[FIRST_LINK:HEADER] == plain).all()
    assert len({int(plain[link]) for _, link in LINKS}) == 1


def test_the_plain_engine_imports_none_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    code = """
import sys, numpy as np, constrain
# Enough tokens within a string for a star closure, and one that leaves it.
vocabulary = constrain.Vocabulary([b'"', b'a', b'a"', b'b', b'ab', b'</s>'], eos_ids=[5])
def mask(**options):
    compiler = constrain.GrammarCompiler(vocabulary, **options)
    matcher = constrain.Matcher(compiler.compile(constrain.Grammar.from_json_schema({"type": "string"})), max_tokens=9)
    assert matcher.accept_token(0)
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    matcher.fill_next_token_bitmask(mask)
    return compiler.accelerators, int(mask[0, 0])
assert mask() == ((), 0b11111), mask()
assert not [name for name in sys.modules if name.startswith("constrain.engine.masks.fast")]
assert mask(accelerators=["star_closures"]) == (("star_closures",), 0b11111)
assert "constrain.engine.masks.fast.star_closures" in sys.modules
"""
    environment = {**os.environ, PLAIN_VARIABLE: "1"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, timeout=600)
    monkeypatch.setenv(PLAIN_VARIABLE, "0")
    assert accelerators.names_in_use(None) == NAMES
