"""Requests with grammars in the continuous batching of transformers, with a real model class of random weights."""

from __future__ import annotations

import re
import time

import pytest

torch = pytest.importorskip("torch", reason="the extra 'transformers' is not installed")
transformers = pytest.importorskip("transformers", reason="the extra 'transformers' is not installed")
pytest.importorskip(
    "transformers.generation.continuous_batching.cb_logits_processors", reason="transformers has no such processors"
)

from tiny_models import small_llama  # noqa: E402
from transformers import CompileConfig, ContinuousBatchingConfig, GenerationConfig  # noqa: E402
from transformers.generation.continuous_batching.requests import RequestState  # noqa: E402

from constrain import Grammar, GrammarCompiler, Vocabulary  # noqa: E402
from constrain.errors import ConstrainError, LimitError  # noqa: E402
from constrain.integrations import transformers_batching  # noqa: E402
from constrain.integrations.transformers_batching import ConstrainedRequests  # noqa: E402

PAD, EOS, WIDTH = 0, 1, 160
TOKENS = [b"<pad>", b"</s>"] + [bytes([byte]) for byte in range(32, 127)] + [b"ab", b'": ', b"true", b"10"]
COMPILER = GrammarCompiler(Vocabulary(TOKENS, eos_ids=[EOS], special_ids=[PAD, EOS]))
PATTERNS = ["(ab|ba){1,9}c", "[0-9]{2}-[0-9]{1,9}", "\\{(true|[1-9][0-9]*)\\}", "x*y"]
PROMPT = list(range(40, 60))


def compiled(pattern):
    return COMPILER.compile(Grammar.from_regex(pattern))


@pytest.fixture(scope="module")
def model():
    return small_llama(WIDTH, pad=PAD, eos=EOS)


def make_manager(model, *, blocks=64, batch_tokens=64, config=None, **settings):
    settings = {"do_sample": True, "max_new_tokens": 20, "eos_token_id": EOS, "pad_token_id": PAD, **settings}
    sizes = {"page_size": 16, "num_blocks": blocks, "max_batch_tokens": batch_tokens}
    return model.init_continuous_batching(
        generation_config=GenerationConfig(**settings),
        continuous_batching_config=ContinuousBatchingConfig(**sizes, **(config or {})),
    )


def outputs(manager, count):
    found = {}
    until = time.monotonic() + 60
    while len(found) < count and time.monotonic() < until:
        output = manager.get_result(timeout=1)
        if output is not None and output.is_finished():
            found[output.request_id] = output
    assert len(found) == count
    return found


def text_of(output):
    ended = output.generated_tokens[-1:] == [EOS]
    said = output.generated_tokens[: -1 if ended else None]
    return b"".join(TOKENS[token] for token in said).decode()


@pytest.fixture
def started():
    """Starts managers, which are stopped in the end."""
    managers = []

    def start(manager):
        managers.append(manager)
        manager.start()
        return manager

    yield start
    for manager in managers:
        manager.stop(block=True)


@pytest.mark.parametrize(
    ("blocks", "more"),
    [(64, {}), (64, {"temperature": 3.0, "top_k": 2, "top_p": 0.9}), (64, {"do_sample": False}), (6, {})],
    ids=["sampling", "narrow sampling", "greedy", "few blocks"],
)
def test_each_text_is_of_its_grammar_and_complete_in_time(model, started, monkeypatch, blocks, more):
    """Prompts begin the same, some are longer than a batch; with few blocks some are put off and begun anew."""
    begun_anew = []
    begin_anew = RequestState.create_equivalent_initial_request
    monkeypatch.setattr(
        RequestState,
        "create_equivalent_initial_request",
        lambda state: begun_anew.append(len(state.generated_tokens)) or begin_anew(state),
    )
    manager = make_manager(model, blocks=blocks, batch_tokens=16, **more)
    requests = ConstrainedRequests(manager)
    started(manager)
    asked = {}
    for number in range(24):
        pattern, most = PATTERNS[number % 4], 5 + number
        prompt = [*PROMPT[: 4 + 4 * (number % 5)], 60 + number]
        asked[requests.add_request(prompt, compiled(pattern), max_new_tokens=most)] = pattern, most
    free = manager.add_request(PROMPT, max_new_tokens=30, eos_token_id=-1)
    found = outputs(manager, 25)
    assert len(found.pop(free).generated_tokens) == 30
    for name, (pattern, most) in asked.items():
        assert found[name].error is None
        assert len(found[name].generated_tokens) <= most
        assert re.fullmatch(pattern, text_of(found[name])), (pattern, text_of(found[name]))
    assert any(begun_anew) == (blocks < 64)


def test_several_texts_of_a_request(model, started):
    manager = make_manager(model, num_return_sequences=3)
    requests = ConstrainedRequests(manager)
    started(manager)
    for pattern in PATTERNS:
        requests.add_request(PROMPT, compiled(pattern))
    texts = {name: text_of(output) for name, output in outputs(manager, 12).items()}
    for name, text in texts.items():
        assert re.fullmatch(PATTERNS[int(re.match(r"req_([0-9]+)", name)[1])], text), (name, text)


def test_requests_that_are_cancelled_and_names_that_come_again(model, started):
    manager = make_manager(model)
    requests = ConstrainedRequests(manager)
    started(manager)
    requests.add_request(PROMPT, compiled("x{100}"), request_id="a", max_new_tokens=150, streaming=True)
    assert manager.get_result(timeout=60) is not None
    manager.cancel_request("a")
    while (last := manager.get_result(timeout=1)) is not None:
        assert set(last.generated_tokens) == {TOKENS.index(b"x")}
    for pattern in PATTERNS:
        requests.add_request(PROMPT, compiled(pattern), request_id="a")
        assert re.fullmatch(pattern, text_of(outputs(manager, 1)["a"]))


def test_places_that_are_not_kept_are_found_again(model, started, monkeypatch):
    monkeypatch.setattr(transformers_batching, "_MOST_KEPT", 0)
    manager = make_manager(model, batch_tokens=2)
    requests = ConstrainedRequests(manager)
    started(manager)
    for pattern in PATTERNS * 2:
        requests.add_request(PROMPT[:1], compiled(pattern))
    for number, output in enumerate(outputs(manager, 8).values()):
        assert output.error is None, number
        assert any(re.fullmatch(pattern, text_of(output)) for pattern in PATTERNS)


@pytest.mark.parametrize("called", ["mask", "token"])
def test_a_grammar_that_takes_too_much_ends_its_own_request_alone(model, started, monkeypatch, called):
    manager = make_manager(model)
    requests = ConstrainedRequests(manager)
    hard = compiled(f"[ab]{{9}}{called}")
    original = transformers_batching.Matcher

    class Matcher(original):
        def fill_next_token_bitmask(self, mask, index=0):
            if called == "mask" and self.compiled is hard and self.steps == 2:
                raise LimitError("too much")
            super().fill_next_token_bitmask(mask, index)

        def accept_token(self, token):
            if called == "token" and self.compiled is hard and self.steps == 1:
                raise LimitError("too much")
            return super().accept_token(token)

    def fill(matchers, mask, *, indices):
        for matcher, row in zip(matchers, indices, strict=True):
            matcher.fill_next_token_bitmask(mask, row)

    monkeypatch.setattr(transformers_batching, "Matcher", Matcher)
    monkeypatch.setattr(transformers_batching, "fill_next_token_bitmask_batch", fill)
    started(manager)
    names = [requests.add_request(PROMPT, grammar) for grammar in (compiled("x{3}y"), hard, compiled("[0-9]{5}"))]
    found = outputs(manager, 3)
    assert [found[name].error for name in names] == [None, "too much", None]
    assert [text_of(found[name]) for name in (names[0],)] == ["xxxy"]
    assert len(text_of(found[names[1]])) == 2
    assert re.fullmatch("[0-9]{5}", text_of(found[names[2]]))


def test_what_cannot_be_is_told_to_who_asks(model, started):
    manager = make_manager(model)
    requests = ConstrainedRequests(manager)
    endless = GrammarCompiler(Vocabulary(TOKENS)).compile(Grammar.from_regex("a"))
    other = GrammarCompiler(Vocabulary([*TOKENS, b"?"], eos_ids=[EOS])).compile(Grammar.from_regex("a"))
    wide = GrammarCompiler(Vocabulary([*TOKENS, *[b"?"] * 99], eos_ids=[EOS])).compile(Grammar.from_regex("a"))
    requests.add_request(PROMPT, compiled("x*y"))
    for grammar, options, message in (
        (compiled("x{8}y"), {"max_new_tokens": 8}, "max_tokens is 8, but the shortest text"),
        (compiled("x{21}y"), {}, "max_tokens is 20, but the shortest text"),
        (endless, {}, "no end token"),
        (other, {}, "sizes 101, 102"),
        (wide, {}, "logits for 160 tokens, but the vocabulary has 200"),
        (compiled("x*y"), {"eos_token_id": 5}, "leave eos_token_id away"),
    ):
        with pytest.raises(ConstrainError, match=message):
            requests.add_request(PROMPT, grammar, **options)
    with pytest.raises(TypeError, match=r"add_request\(\) takes"):
        requests.add_request(PROMPT, "x*y")
    started(manager)
    assert re.fullmatch("x*y", text_of(outputs(manager, 1)["req_0"]))
    with pytest.raises(ConstrainError, match="has been started"):
        ConstrainedRequests(manager)


@pytest.mark.parametrize(
    "config",
    [{"use_async_batching": True}, {"use_cuda_graph": (False, True)}, {"varlen_compile_config": CompileConfig()}],
)
def test_managers_whose_masks_could_not_be_made(model, config):
    manager = make_manager(model)
    for name, value in config.items():
        setattr(manager.continuous_batching_config, name, value)
    with pytest.raises(ConstrainError, match="masks are made"):
        ConstrainedRequests(manager)
