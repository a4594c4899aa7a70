"""The back end of outlines with its own models and generators: transformers, and llama.cpp's interface."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

outlines = pytest.importorskip("outlines", reason="outlines is not installed")
transformers = pytest.importorskip("transformers", reason="the extra 'transformers' is not installed")
pytest.importorskip("torch", reason="the extra 'transformers' is not installed")

from tiny_models import write_folder  # noqa: E402

from constrain import Grammar, GrammarCompiler, Vocabulary  # noqa: E402
from constrain.errors import ConstrainError  # noqa: E402
from constrain.integrations.outlines import ConstrainBackend, ConstrainProcessor  # noqa: E402


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = write_folder(tmp_path_factory.mktemp("model"))
    loaded = transformers.AutoModelForCausalLM.from_pretrained(folder)
    return outlines.from_transformers(loaded, transformers.AutoTokenizer.from_pretrained(folder))


def test_generators(model):
    backend = ConstrainBackend(model, max_tokens=30)
    schema = {"type": "array", "items": {"type": "integer"}, "minItems": 1}
    json_generator = outlines.Generator(model, processor=backend.get_json_schema_logits_processor(json.dumps(schema)))
    regex_generator = outlines.Generator(model, processor=backend.get_regex_logits_processor("[bcd]{2,}!"))
    lark_generator = outlines.Generator(model, processor=backend.get_cfg_logits_processor('start: "(" start ")" | "x"'))
    for _ in range(4):
        assert json.loads(json_generator("Which? ", max_new_tokens=30, do_sample=True))
        assert re.fullmatch("[bcd]{2,}!", regex_generator("Which? ", max_new_tokens=30, do_sample=True))
        assert re.fullmatch(r"\(*x\)*", lark_generator("Which? ", max_new_tokens=30, do_sample=True))
    many = regex_generator.batch(["Which? ", "Who? "], max_new_tokens=30, do_sample=True)
    assert all(re.fullmatch("[bcd]{2,}!", text) for text in many)


def test_the_end_tokens_that_the_model_names(model, monkeypatch):
    """A generation ends with those; with the tokenizer's it would go on, with padding."""
    other = model.hf_tokenizer.convert_tokens_to_ids("<s>")
    for named in (other, [other, 10**6]):
        monkeypatch.setattr(model.model.generation_config, "eos_token_id", named)
        processor = ConstrainBackend(model, max_tokens=30).get_regex_logits_processor("bcd")
        inputs = model.hf_tokenizer(["Which? "], return_tensors="pt")
        (row,) = model.model.generate(**inputs, logits_processor=[processor], max_new_tokens=30)
        assert len(row) <= inputs["input_ids"].shape[1] + 4
        assert row[-1] == other


def test_whitespace_pattern(model):
    backend = ConstrainBackend(model, max_tokens=30)
    schema = {"type": "array", "items": {"type": "null"}, "minItems": 2, "maxItems": 2}
    processor = backend.get_json_schema_logits_processor(json.dumps(schema), whitespace_pattern=r"\n")
    generator = outlines.Generator(model, processor=processor)
    assert generator("Which? ", max_new_tokens=30, do_sample=True) == "[\nnull\n,\nnull\n]"


def test_arrays():
    """What llama.cpp hands over: ids with the prompt, and a row of logits."""
    vocabulary = Vocabulary([b"</s>", b"a", b"b", b"!"], eos_ids=[0])
    compiled = GrammarCompiler(vocabulary).compile(Grammar.from_regex("[ab]+!"))
    processor = ConstrainProcessor(compiled, max_tokens=3)
    for _ in range(2):
        processor.reset()
        ids, found = np.array([1, 3, 3]), []
        for token in (2, 1, 3):
            found.append(np.isfinite(processor(ids, np.zeros(4, np.single))).tolist())
            ids = np.append(ids, token)
        assert found == [[False, True, True, False], [False, True, True, True], [False, False, False, True]]


def test_too_few_tokens_are_told_before_the_generation():
    """Within it, llama-cpp-python prints what a processor raises, and goes on."""
    vocabulary = Vocabulary([b"</s>", b"a"], eos_ids=[0])
    compiled = GrammarCompiler(vocabulary).compile(Grammar.from_regex("a{3}"))
    with pytest.raises(ConstrainError, match="max_tokens is 2, but the shortest text"):
        ConstrainProcessor(compiled, max_tokens=2)


def test_what_it_cannot_do(model):
    backend = ConstrainBackend(model)
    with pytest.raises(ConstrainError, match="whitespace_pattern"):
        backend.get_json_schema_logits_processor("{}", whitespace_pattern="x")
    with pytest.raises(ConstrainError, match="invalid JSON"):
        backend.get_json_schema_logits_processor("{")
    with pytest.raises(ConstrainError, match="not object"):
        ConstrainBackend(object())
