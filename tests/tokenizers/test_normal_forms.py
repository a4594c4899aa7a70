"""The normalization forms against ``tokenizers``: every code point, combining sequences, and offsets."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from processor_time import processor_time
from tokenizer_json_files import byte_level, llama_like, split
from tokenizers import models, normalizers, pre_tokenizers

from constrain.errors import TokenizerError
from constrain.tokenizers.formats.json_normalizers import steps_of_normalizer
from constrain.tokenizers.formats.tokenizer_json import parse_tokenizer_json
from constrain.tokenizers.normalizing import text_steps
from constrain.tokenizers.normalizing.normal_forms import FORMS, NormalFormTable, normalize, normalize_aligned
from constrain.tokenizers.normalizing.text_steps import Replace, ReplaceRegex, TextStep, align_steps, apply_steps

CODES = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
JAMO = "\u1100\u1112\u1161\u1175\u11a7\u11a8\u11c2\uac00\uac01\ud7a3\ud788\ud55c\u3131\uffa1"
MARKS = "\u0301\u0300\u0308\u0323\u0327\u0328\u0345\u0334\u031b\u093c\u094d\u3099\u309a\u05b7\u0f71\u0f72\u0344\u0341"
BASES = "aAeo\u00e9\u00c5\u212b\u1e69\u1ea5\u0915\u0958\u30ab\u30ac\ufb01\ufb03\u00bd\u2460\ufdfa\u0dd9\u0dcf\u0dca"
NEWER = "\U0001d15e\u32ff\ua7f2\U00011938\U00011935\U00011930\U00010781\U0001fbf5\U00016d67\U000105c9\u0897"
TEXTS = st.one_of(
    st.text(st.sampled_from(JAMO + MARKS + BASES + NEWER + " b\n"), max_size=12),
    st.text(max_size=10),
    st.text(st.characters(categories=["Mn", "Mc", "Lo"]), max_size=10),
)


@pytest.fixture(scope="module", params=FORMS)
def form(request):
    return request.param


@pytest.fixture(scope="module")
def by_character(form):
    """A tokenizer of the library that makes a token of each character, with its offsets."""
    reference = tokenizers.Tokenizer(models.WordLevel({"x": 0}, unk_token="x"))
    reference.normalizer = getattr(normalizers, form)()
    reference.pre_tokenizer = pre_tokenizers.Split(tokenizers.Regex(r"[\s\S]"), "isolated")
    return reference


def test_every_code_point(form):
    reference, table = getattr(normalizers, form)(), NormalFormTable(form)
    # In texts of many lines: a line end neither decomposes nor composes.
    for begin in range(0, len(CODES), 4096):
        text = "\n".join(map(chr, CODES[begin : begin + 4096]))
        expected = reference.normalize_str(text)
        assert table.normalize(text) == expected
        assert normalize(form, text) == expected


def test_every_code_point_that_does_something_among_others(form):
    reference, table = getattr(normalizers, form)(), NormalFormTable(form)
    codes = [code for code in CODES if unicodedata.combining(chr(code)) or table._run.fullmatch(chr(code))]
    codes += [code for code in CODES if unicodedata.decomposition(chr(code)) or chr(code) in NEWER]
    assert len(codes) > 5000
    for around in ("e{}\u0323\u0301o", "\u0345\u0334{}\u0334\u0345", "\u1112{}\u11a8"):
        text = "\n".join(around.format(chr(code)) for code in codes)
        assert table.normalize(text) == reference.normalize_str(text)


def test_python_needs_no_newer_tables():
    differing = [code for code in CODES if normalize("NFKC", chr(code)) != unicodedata.normalize("NFKC", chr(code))]
    assert len(differing) >= 72
    assert "\u32ff" in map(chr, differing)


def test_texts_and_offsets(form, by_character):
    table = NormalFormTable(form)

    @settings(max_examples=500)
    @given(TEXTS)
    def check(text):
        expected = by_character.normalizer.normalize_str(text)
        assert table.normalize(text) == normalize(form, text) == expected
        offsets = [tuple(span) for span in by_character.encode(text).offsets]
        for aligned in (table.normalize_aligned(text), normalize_aligned(form, text)):
            assert aligned[0] == expected
            assert aligned[1] == offsets

    check()


@pytest.mark.parametrize("kind", ["bytes", "pieces"])
def test_files_with_a_form(form, kind):
    """Ids and offsets."""
    if kind == "bytes":
        content = byte_level(split(r"\p{N}"))
        content["normalizer"] = {"type": form}
    else:
        content = llama_like()
        content["normalizer"] = {"type": "Sequence", "normalizers": [{"type": form}, content["normalizer"]]}
    place = max(content["model"]["vocab"].values()) + 1
    flags = {"special": False, "lstrip": False, "rstrip": False, "single_word": False}
    content["added_tokens"] += [
        {"id": place, "content": "<\u00e9>", "normalized": True, **flags},
        {"id": place + 1, "content": "<|x|>", "normalized": False, **flags},
    ]
    text = json.dumps(content)
    reference, ours = tokenizers.Tokenizer.from_str(text), parse_tokenizer_json(text.encode())

    @settings(max_examples=120)
    @given(st.lists(st.one_of(TEXTS, st.sampled_from(["<\u00e9>", "<e\u0301>", "<|x|>", "the "]))).map("".join))
    def check(text):
        expected, got = reference.encode(text, add_special_tokens=False), ours.encode(text)
        assert got.ids == expected.ids
        assert got.offsets == expected.offsets

    check()


def test_long_runs(form):
    table, reference = NormalFormTable(form), getattr(normalizers, form)()
    for text in ("a" + "\u0301\u0323" * 50_000, "\u1112\u1161\u11ab" * 50_000, "e\u0301 " * 50_000):
        with processor_time() as spent:
            assert table.normalize(text) == reference.normalize_str(text)
        assert spent.seconds < 5
    assert len(table._known) <= 10_000


@pytest.mark.parametrize("run", [apply_steps, align_steps])
def test_steps_that_double_a_text_are_refused(run: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_steps, "_FREE", 1000)
    run([Replace("a", "aa")] * 7, "ab", True)
    with pytest.raises(TokenizerError, match="normalizer"):
        run([Replace("a", "aa")] * 20, "ab", True)
    with pytest.raises(TokenizerError, match="normalizer"):
        run([Replace("c", "cc")] * 2000, "ab", True)


def test_one_step_that_makes_too_much_is_refused_before() -> None:
    with pytest.raises(TokenizerError, match="normalizer"):
        Replace("a", "b" * 100_000).apply("a" * 100_000, True)
    for run in (ReplaceRegex("a", "b" * 100_000).apply, ReplaceRegex("a", "b" * 100_000).align):
        with pytest.raises(TokenizerError, match="normalizer"):
            run("a" * 100_000, True)


def test_more_steps_and_longer_prefixes_than_any_file_has_are_refused() -> None:
    def read(*steps: dict[str, str]) -> tuple[TextStep, ...]:
        return steps_of_normalizer({"type": "Sequence", "normalizers": list(steps)})

    assert len(read(*[{"type": "NFC"}, {"type": "NFD"}] * 32)) == 64
    with pytest.raises(TokenizerError, match=r'"normalizers" has 65 parts; the limit is 64'):
        read(*[{"type": "Lowercase"}] * 65)
    assert read({"type": "Prepend", "prepend": "x" * 1_000})
    with pytest.raises(TokenizerError, match="Prepend: 1,001 characters"):
        read({"type": "Prepend", "prepend": "x" * 1_001})
