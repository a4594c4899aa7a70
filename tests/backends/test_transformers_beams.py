"""Beam search, and the log-probabilities of a prompt, against transformers' own."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="the extra 'transformers' is not installed")
transformers = pytest.importorskip("transformers", reason="the extra 'transformers' is not installed")

from tiny_models import EOS, write_folder  # noqa: E402

from constrain import Grammar, GrammarCompiler  # noqa: E402
from constrain.backends import load_backend  # noqa: E402
from constrain.generation import beam_search, prompt_log_probabilities  # noqa: E402
from constrain.integrations.transformers import ConstrainLogitsProcessor  # noqa: E402

PROMPT = [1, 260, 261, 262, 263]


@pytest.fixture(scope="module")
def backend(tmp_path_factory):
    torch.set_num_threads(1)
    return load_backend(write_folder(tmp_path_factory.mktemp("model")))


@pytest.mark.parametrize(
    ("beams", "penalty", "early"),
    [(3, 1.0, False), (4, 0.0, "never"), (4, 2.0, "never"), (3, 1.0, True), (1, 1.0, False)],
)
@pytest.mark.parametrize("pattern", ["[a-e ]{1,6}", "(name|yes|no)(, (name|yes|no))*"])
def test_beams_are_those_of_transformers(backend, pattern, beams, penalty, early):
    compiled = GrammarCompiler(backend.vocabulary).compile(Grammar.from_regex(pattern))
    found = beam_search(
        backend,
        backend.tokenizer,
        compiled,
        prompt=PROMPT,
        beams=beams,
        max_tokens=12,
        length_penalty=penalty,
        early_stopping=early,
    )
    output = backend._model.generate(
        torch.tensor([PROMPT], device=backend._model.device),
        num_beams=beams,
        num_return_sequences=beams,
        max_new_tokens=12,
        do_sample=False,
        length_penalty=penalty if beams > 1 else 1.0,
        early_stopping=early if beams > 1 else False,
        logits_processor=[ConstrainLogitsProcessor(compiled, max_new_tokens=12)],
        return_dict_in_generate=True,
        output_scores=True,
    )
    rows = [row[len(PROMPT) :].tolist() for row in output.sequences]
    expected = [tuple(row[: row.index(EOS)] if EOS in row else row) for row in rows]
    assert [beam.token_ids for beam in found] == expected
    if beams > 1:
        assert [beam.score for beam in found] == pytest.approx(output.sequences_scores.tolist(), abs=1e-4)


def test_prompts_are_scored_in_one_go(backend):
    found = prompt_log_probabilities(backend, backend.tokenizer, PROMPT, top=1)
    with torch.inference_mode():
        values = torch.log_softmax(
            backend._model(torch.tensor([PROMPT], device=backend._model.device)).logits[0].float(), dim=-1
        )
    expected = [float(values[place, token]) for place, token in enumerate(PROMPT[1:])]
    assert [token.log_probability for token in found[1:]] == pytest.approx(expected, abs=1e-4)
    assert [token.top[0][0] for token in found[1:]] == values[:-1].argmax(dim=-1).tolist()
