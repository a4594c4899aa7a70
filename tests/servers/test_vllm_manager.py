"""Requests in vLLM's own manager of structured outputs: complete within max_tokens, whatever is drafted and thought."""

from __future__ import annotations

import json
import re
from random import Random

import numpy as np
import prometheus_client
import pytest

pytest.importorskip("vllm", reason="vLLM is not installed")

from servers.vllm_engine import (
    MODEL,
    PROPOSED,
    TOKENIZER,
    VOCABULARY,
    compile_request,
    config,
    id_of,
    make_manager,
    make_request,
    run,
    text_of,
)
from tiny_models import ROWS
from vllm.config import StructuredOutputsConfig
from vllm.exceptions import VLLMValidationError
from vllm.reasoning.deepseek_r1_reasoning_parser import DeepSeekR1ReasoningParser
from vllm.v1.request import RequestStatus
from vllm.v1.structured_output.backend_types import StructuredOutputOptions

from constrain import metrics
from constrain.errors import ConstrainError, LimitError
from constrain.integrations.vllm import backend as vllm_backend
from constrain.integrations.vllm import places, read_ahead, versions
from constrain.integrations.vllm.backend import ConstrainBackend
from constrain.integrations.vllm.plugin import SWITCH, register
from constrain.integrations.vllm.requests import JsonOptions
from constrain.limits import Deadline

END, END_OF_THINKING, OTHER_END = id_of("</s>"), id_of("</think>"), id_of("<|eot_id|>")

KINDS = {
    "json": ({"json": {"type": "array", "items": {"enum": ["a", "no"]}, "minItems": 1}}, lambda text: json.loads(text)),
    "json text": ({"json": '{"type": "boolean"}'}, lambda text: text.strip() in ("true", "false")),
    "json object": ({"json_object": True}, lambda text: type(json.loads(text)) is dict),
    "regex": ({"regex": "[abc]+!"}, lambda text: re.fullmatch("[abc]+!", text)),
    "choice": ({"choice": ["yes", "no", "neither"]}, lambda text: text in ("yes", "no", "neither")),
    "ebnf": ({"grammar": 'root ::= "(" root ")" | "x"'}, lambda text: re.fullmatch(r"\(*x\)*", text)),
    "lark": ({"grammar": 'start: "(" start ")" | "x"'}, lambda text: re.fullmatch(r"\(*x\)*", text)),
}


@pytest.fixture(scope="module", autouse=True)
def _constrain_is_in_its_place():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SWITCH, "1")
        register()


@pytest.mark.parametrize("drafts", [0, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_texts_are_complete_within_max_tokens(monkeypatch, kind, drafts):
    asked, is_right = KINDS[kind]
    manager = make_manager(monkeypatch, config(drafts=drafts))
    for seed in range(12):
        random = Random(seed)
        # The end token is one of them.
        request = make_request(random.randrange(9, 40), **asked)
        assert isinstance(compile_request(manager, request), places.in_time.ConstrainGrammar)
        tokens = run(manager, request, random, drafts=drafts)
        assert request.status == RequestStatus.FINISHED_STOPPED
        assert tokens[-1] == END
        assert is_right(text_of(tokens[:-1])), text_of(tokens[:-1])
    assert isinstance(manager.backend, ConstrainBackend)


@pytest.mark.parametrize("drafts", [0, 4])
def test_thinking_ends_in_time(monkeypatch, drafts):
    manager = make_manager(monkeypatch, config(drafts=drafts), DeepSeekR1ReasoningParser)
    forced = 0
    for seed in range(30):
        random = Random(seed)
        most = random.randrange(9, 60)
        request = make_request(most, regex="[bcd]{5,}!")
        compile_request(manager, request)
        tokens = run(manager, request, random, drafts=drafts)
        assert request.status == RequestStatus.FINISHED_STOPPED
        assert len(tokens) <= most
        end = tokens.index(END_OF_THINKING)
        forced += end == most - 8
        assert re.fullmatch("[bcd]{5,}!", text_of(tokens[end + 1 : -1]))
    assert forced


def test_thinking_that_the_prompt_has_ended(monkeypatch):
    manager = make_manager(monkeypatch, config(), DeepSeekR1ReasoningParser)
    request = make_request(6, choice=["yes"])
    request.prompt_token_ids[-1] = END_OF_THINKING
    compile_request(manager, request)
    assert text_of(run(manager, request, Random(1))[:-1]) == "yes"


def test_the_context_is_a_limit_too(monkeypatch):
    manager = make_manager(monkeypatch, config())
    request = make_request(1000, prompt=MODEL.max_model_len - 8, regex="a[abc]*!")
    compile_request(manager, request)
    tokens = run(manager, request, Random(3))
    assert len(tokens) <= 8
    assert tokens[-1] == END


def test_a_text_that_takes_all_tokens_is_complete_without_its_end_token(monkeypatch):
    manager = make_manager(monkeypatch, config())
    request = make_request(4, regex="[bcd]{4}")
    compile_request(manager, request)
    assert len(text_of(run(manager, request, Random(1)))) == 4
    assert request.status == RequestStatus.FINISHED_LENGTH_CAPPED


@pytest.mark.parametrize(("reasoner", "most"), [(None, 3), (DeepSeekR1ReasoningParser, 4)])
def test_too_few_tokens_are_an_error_of_the_request(monkeypatch, reasoner, most):
    manager = make_manager(monkeypatch, config(), reasoner)
    error = compile_request(manager, make_request(most, regex="[bcd]{4}"))
    assert isinstance(error, ConstrainError)
    assert f"{most + 1} tokens" in str(error)


def test_an_engine_that_only_prefills_is_not_limited(monkeypatch):
    manager = make_manager(monkeypatch, config())
    request = make_request(1, regex="[abc]{4}")
    request.kv_transfer_params = {"do_remote_decode": True}
    grammar = compile_request(manager, request)
    assert grammar.limit is None
    mask = manager.grammar_bitmask({"r": request}, ["r"], {})
    assert mask.any()


@pytest.mark.parametrize(
    "stops", [(OTHER_END,), (VOCABULARY.tokens.index(b"c"),), (OTHER_END, VOCABULARY.tokens.index(b"c"))]
)
def test_stop_tokens(monkeypatch, stops):
    """They end a text where it is complete, and are nowhere else, be they special or not."""
    manager = make_manager(monkeypatch, config())
    ended = set()
    for seed in range(20):
        request = make_request(12, stops=stops, regex="[abc]{2,}")
        compile_request(manager, request)
        tokens = run(manager, request, Random(seed))
        assert request.status == RequestStatus.FINISHED_STOPPED
        ended.add(tokens[-1])
        assert not {*stops, END} & set(tokens[:-1])
        assert re.fullmatch("[abc]{2,}", text_of(tokens[:-1]))
    assert ended == {END, *stops}


def test_grammars_go_back_and_are_begun_anew(monkeypatch):
    manager = make_manager(monkeypatch, config())
    grammar = compile_request(manager, make_request(20, regex="ab*!"))
    a, b, mark = (VOCABULARY.tokens.index(each) for each in (b"a", b"b", b"!"))
    assert grammar.validate_tokens([a, b, b, a]) == [a, b, b]
    assert grammar.validate_tokens([b]) == []
    assert grammar.accept_tokens("r", [a, b, mark, END])
    assert grammar.is_terminated()
    assert grammar.accept_tokens("r", [a])
    assert grammar.validate_tokens([a]) == []
    grammar.rollback(2)
    assert not grammar.is_terminated()
    assert not grammar.accept_tokens("r", [a])
    assert grammar.validate_tokens([b, mark, END, b]) == [b, mark, END]
    grammar.reset()
    assert grammar.validate_tokens([a]) == [a]
    assert grammar.validate_tokens([len(VOCABULARY.tokens)]) == []


@pytest.mark.parametrize("reasoner", [None, DeepSeekR1ReasoningParser])
def test_drafts_of_several_requests_are_masked_in_one_call(monkeypatch, reasoner):
    """The masks are those of vLLM's own way through the drafts, one token at a time."""
    manager = make_manager(monkeypatch, config(drafts=5), reasoner)
    together = []
    fill = read_ahead.fill_draft_bitmasks
    monkeypatch.setattr(read_ahead, "fill_draft_bitmasks", lambda *args: together.append(len(args[0])) or fill(*args))
    for seed in range(40):
        random = Random(seed)
        requests, drafts = {}, {}
        for number in range(random.randrange(1, 6)):
            name = f"r{number}"
            stops = random.choice([(), (OTHER_END,)])
            asked, _ = KINDS[random.choice(list(KINDS))]
            requests[name] = request = make_request(random.choice([30, 180]), stops=stops, **asked)
            request.request_id = name
            compile_request(manager, request)
            request.structured_output_request.reasoning_ended = random.random() < 0.7
            draft = [random.choice(PROPOSED) for _ in range(random.randrange(6))]
            if random.random() < 0.8:
                draft = manager.validate_tokens(request, draft)
            if random.random() < 0.3:
                draft = [*draft, -1]
            if draft:
                drafts[name] = draft[:5]
        ids = list(requests)
        with monkeypatch.context() as patch:
            patch.setattr(places.in_time, "read_drafts_ahead", lambda *args: [])
            expected = manager.grammar_bitmask(requests, ids, drafts).copy()
        for _ in range(2):
            np.testing.assert_array_equal(manager.grammar_bitmask(requests, ids, drafts), expected)
        assert all(request.structured_output_request.grammar.ahead is None for request in requests.values())
    assert max(together) > 1


def test_the_end_tokens_that_a_model_names_are_those_of_its_vocabulary(monkeypatch):
    ends = {"eos_token_id": [OTHER_END, VOCABULARY.tokens.index(b"c"), ROWS + 5]}
    monkeypatch.setattr(MODEL, "try_get_generation_config", lambda: ends)
    monkeypatch.setattr(vllm_backend, "_known", [])
    manager = make_manager(monkeypatch, config())
    grammar = compile_request(manager, make_request(12, stops=(OTHER_END,), regex="[abc]{2,}"))
    # What is no special token would not be in a text then.
    assert set(grammar.compiled.grammar.vocabulary.eos_ids) == {END, OTHER_END}
    assert grammar.compiled.ends is None
    assert compile_request(manager, make_request(12, regex="[abc]{2,}")).compiled.ends == (END,)


def test_two_requests_and_one_of_no_grammar(monkeypatch):
    """Each request has its own rows, also between others whose drafts are fewer."""
    manager = make_manager(monkeypatch, config(drafts=2), DeepSeekR1ReasoningParser)
    thinking, saying = make_request(7, regex="aaa"), make_request(7, choice=["yes"])
    saying.request_id = "s"
    for request in (thinking, saying):
        compile_request(manager, request)
    saying.structured_output_request.reasoning_ended = True
    yes = VOCABULARY.tokens.index(b"yes")
    both = {"r": thinking, "s": saying}
    think = 10
    thinking.append_output_token_ids([think, think])
    mask = manager.grammar_bitmask(both, ["r", "s"], {"r": [think]})
    begins = versions.first_rows(len(mask), ["r", "s"], {"r": [think]}, 2)
    rows = np.unpackbits(mask.view(np.uint8), axis=1, bitorder="little")
    # Of seven tokens two are used: one for the end of thinking, three for the text and one for its end are left.
    assert rows[begins[0]].nonzero()[0].tolist() == [END_OF_THINKING]
    assert yes in rows[begins[1]].nonzero()[0]


@pytest.mark.parametrize("drafts", [0, 6])
@pytest.mark.parametrize("called", ["mask", "drafts", "tokens"])
def test_a_grammar_that_takes_too_much_ends_its_own_request_alone(monkeypatch, called, drafts):
    """vLLM ends a request whose tokens are not accepted; an exception would end its engine."""
    manager = make_manager(monkeypatch, config(drafts=6))
    # Each case has a grammar of its own, of which nothing is known yet.
    hard = make_request(190, regex=f"a(?=.*b)(?:[ab]{{0,20}}a){{0,20}}(?:{called}{drafts})")
    easy = make_request(7, choice=["yes"])
    easy.request_id = "s"
    for request in (hard, easy):
        compile_request(manager, request)
    a, yes = VOCABULARY.tokens.index(b"a"), VOCABULARY.tokens.index(b"yes")
    hard.append_output_token_ids([a])
    assert manager.accept_tokens(hard, [a])
    compiled = hard.structured_output_request.grammar.compiled.grammar

    def take_too_much(*_args):
        raise LimitError("too much")

    monkeypatch.setattr(compiled, "_repeat", take_too_much)
    letters = [a, VOCABULARY.tokens.index(b"b")] * 20
    if called == "drafts":
        assert manager.validate_tokens(hard, letters) == []
    if called == "tokens":
        assert not manager.accept_tokens(hard, letters)
    both, proposed = {"r": hard, "s": easy}, {"r": letters[:drafts]} if drafts else {}
    mask = manager.grammar_bitmask(both, ["r", "s"], proposed)
    begins = versions.first_rows(len(mask), ["r", "s"], proposed, 6)
    rows = np.unpackbits(mask.view(np.uint8), axis=1, bitorder="little")
    assert rows[begins[0] + drafts].all()
    assert yes in rows[begins[1]].nonzero()[0]
    assert a not in rows[begins[1]].nonzero()[0]
    assert manager.validate_tokens(hard, [a]) == []
    assert not manager.accept_tokens(hard, [a])
    assert manager.accept_tokens(easy, [yes])


def test_rows():
    assert versions.first_rows(6, ["a", "b"], {"a": [1]}, 2) == [0, 3]
    assert versions.first_rows(3, ["a", "b"], {"a": [1]}, 2) == [0, 2]
    assert versions.first_rows(2, ["a", "b"], {}, 0) == [0, 1]


def validate(**asked):
    """What a server does with a request before its engine sees it."""
    more = asked.pop("more", {})
    request = make_request(20, **asked)
    params = request.sampling_params
    params.structured_outputs._backend = None
    for name, value in more.items():
        setattr(params, name, value)
    params._validate_structured_outputs(MODEL, StructuredOutputsConfig(), TOKENIZER)
    return params


@pytest.mark.parametrize("kind", KINDS)
def test_requests_that_can_be_met_are_left_as_they_are(kind):
    params = validate(**KINDS[kind][0])
    assert params.structured_outputs._backend == "xgrammar"
    assert all(getattr(params.structured_outputs, name) == value for name, value in KINDS[kind][0].items())


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"json": {"type": "strin"}}, "at #/type: 'strin' is not a type"),
        ({"json": {"type": "string", "pattern": "("}}, "at #/pattern"),
        ({"json": {"type": "integer", "minimum": 3, "maximum": 2}}, "no"),
        ({"json": "{"}, "invalid JSON"),
        ({"regex": "a("}, "line 1, column 2"),
        ({"grammar": "start: nothing"}, "nothing"),
        ({"grammar": "root ::= nothing"}, "nothing"),
        ({"structural_tag": '{"type": "structural_tag"}'}, "at #: format is missing"),
        ({"regex": "[bcd]{40}"}, "max_tokens is 20, but the shortest text"),
        ({"regex": "a", "more": {"min_tokens": 2}}, "min_tokens"),
        ({"regex": "a", "more": {"ignore_eos": True}}, "ignore_eos"),
        ({"regex": "a", "more": {"allowed_token_ids": [1]}}, "allowed_token_ids"),
        ({"regex": "a", "more": {"bad_words": ["a"]}}, "bad_words"),
        ({"regex": "a", "stops": (10_000,)}, "stop token ids"),
    ],
)
def test_requests_that_cannot_be_met_are_refused(asked, message):
    with pytest.raises(VLLMValidationError, match=re.escape(message)):
        validate(**asked)


def test_a_grammar_is_read_and_compiled_once(monkeypatch):
    manager = make_manager(monkeypatch, config())
    found = [compile_request(manager, make_request(20, regex="[ad]+!")) for _ in range(3)]
    assert len({id(grammar.compiled.grammar) for grammar in found}) == 1
    compilers = manager.backend._compilers
    deadline = Deadline()
    for count in range(200):
        compilers.read("REGEX", f"a{{{count}}}", options=JsonOptions(), deadline=deadline)
    assert len(compilers._grammars) == 128
    first, again = (compilers.read("REGEX", "a{199}", options=JsonOptions(), deadline=deadline) for _ in range(2))
    assert first is again
    long = "|".join("abc" for _ in range(20_000))
    assert compilers.read("REGEX", long, options=JsonOptions(), deadline=deadline)
    assert not any(spec == long for _, spec, _ in compilers._grammars)


def test_compact_json(monkeypatch):
    manager = make_manager(monkeypatch, config("xgrammar", disable_any_whitespace=True))
    for seed in range(5):
        request = make_request(60, json={"type": "array", "items": {"type": "boolean"}, "minItems": 3})
        compile_request(manager, request)
        assert not re.search(r"\s", text_of(run(manager, request, Random(seed))[:-1]))


ARRAY = {"type": "array", "items": {"enum": [10]}, "minItems": 3, "maxItems": 3}
OBJECT = {"type": "object", "properties": {"a": {"enum": [10]}}}


@pytest.mark.parametrize(
    ("asked", "pattern"),
    [
        ({"json": ARRAY, "disable_any_whitespace": True}, r"\S+"),
        ({"json": ARRAY, "whitespace_pattern": "[ ]"}, r"\[( \S+){6}"),
        ({"json": OBJECT, "disable_additional_properties": True}, r"\{(\s*\"a\"\s*:\s*\S+)?\s*\}"),
    ],
)
def test_options_of_a_request_for_its_json(monkeypatch, asked, pattern):
    validate(**asked)
    manager = make_manager(monkeypatch, config())
    plain = {"json": asked["json"]}
    for wanted, is_asked in ((asked, True), (plain, False)):
        found = []
        for seed in range(20):
            request = make_request(60, **wanted)
            compile_request(manager, request)
            text = text_of(run(manager, request, Random(seed))[:-1])
            # The key, where it is spelled with escapes.
            found.append(re.fullmatch(pattern, text.replace("\\u0061", "a")) is not None)
        assert all(found) == is_asked


@pytest.mark.parametrize(
    "asked",
    [
        {"regex": "a", "whitespace_pattern": " "},
        {"grammar": 'root ::= "a"', "disable_additional_properties": True},
        {"json": {}, "whitespace_pattern": " ", "disable_any_whitespace": True},
    ],
)
def test_options_for_json_that_say_nothing_are_refused(asked):
    with pytest.raises(VLLMValidationError, match="whitespace"):
        validate(**asked)


def test_another_back_end_is_not_put_aside_in_silence(monkeypatch):
    with pytest.raises(ConstrainError, match="started with 'guidance'"):
        make_manager(monkeypatch, config("guidance"))


def test_an_unknown_kind_and_bitmasks(monkeypatch):
    backend = ConstrainBackend(config(), TOKENIZER, len(VOCABULARY.tokens))
    mask = backend.allocate_token_bitmask(3)
    assert mask.shape == (3, -(-len(VOCABULARY.tokens) // 32))
    assert (mask == -1).all()
    grammar = backend.compile_grammar(StructuredOutputOptions.CHOICE, '["ab"]')
    grammar.fill_bitmask(mask, 1)
    rows = np.unpackbits(mask.numpy().view(np.uint8), axis=1, bitorder="little")
    assert sorted(VOCABULARY.tokens[token] for token in rows[1].nonzero()[0]) == [b"a", b"a", b"ab"]
    assert rows[0].all()
    assert rows[2].all()
    backend.destroy()


@pytest.mark.parametrize("value", ["yes", "2"])
def test_the_switch_has_two_positions(monkeypatch, value):
    monkeypatch.setenv(SWITCH, value)
    with pytest.raises(ConstrainError, match=f"{SWITCH} must be 1 or 0, not '{value}'"):
        register()


def test_metrics_are_switched_on(monkeypatch):
    monkeypatch.setenv(SWITCH, "1")
    monkeypatch.setenv("CONSTRAIN_METRICS", "1")
    register()
    try:
        manager = make_manager(monkeypatch, config(drafts=4))
        for seed in range(3):
            # No other test has it: what a process has compiled once it keeps.
            request = make_request(30, regex="[abc]+!?!")
            compile_request(manager, request)
            run(manager, request, Random(seed), drafts=4)
        page = prometheus_client.generate_latest().decode()
    finally:
        metrics.disable()
    for name in ("read_seconds_count", "compile_seconds_count", "mask_seconds_count", "draft_seconds_count"):
        assert re.search(rf"^constrain_{name}\S* [1-9]", page, re.MULTILINE), name
    monkeypatch.setenv("CONSTRAIN_METRICS", "on")
    with pytest.raises(ConstrainError, match="CONSTRAIN_METRICS must be 1 or 0"):
        register()


def test_an_unknown_version_is_refused(monkeypatch):
    monkeypatch.delattr(places.Places().manager, "validate_tokens")
    with pytest.raises(ConstrainError, match=r"version of vLLM, .*: StructuredOutputManager has no validate_tokens"):
        versions.Places()
    monkeypatch.setattr(versions.import_module("vllm.v1.structured_output"), "__name__", "vllm")
    monkeypatch.delattr("vllm.v1.structured_output.XgrammarBackend")
    with pytest.raises(ConstrainError, match="vllm has no XgrammarBackend"):
        versions.Places()
