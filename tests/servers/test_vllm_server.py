"""A real vLLM on this machine's processor, a model of random weights, over HTTP: every text is complete and valid.

Two servers are started, each in some 40 seconds: one as operators do, one with thinking and with drafts from n-grams.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed")
pytest.importorskip("openai", reason="the openai client is not installed")
pytest.importorskip("jsonschema_rs", reason="jsonschema-rs is not installed")

from openai import AsyncOpenAI, BadRequestError, OpenAI
from transformers import AutoTokenizer

from bench.servers.asking import Answer, ask
from bench.servers.model import write_model
from bench.servers.requests import TOOLS, Request, maskbench_requests, small_requests
from bench.servers.server import NAME, TOOL_OPTIONS, vllm_server

DATA = Path(os.environ.get("CONSTRAIN_TEST_DATA", ""))
MASKBENCH = 20

# Requests differ in how they are asked, one after the other.
WAYS = [{"streams": False}, {"streams": True}, {"streams": False, "n": 4}, {"streams": True, "n": 2}]
WAYS += [{"streams": False, "logprobs": True, "top_logprobs": 3}, {"streams": True, "temperature": 0.0}]
# With drafts, vLLM 0.32 on the CPU divides logits by memory that nobody has written, unless all requests are greedy:
# its _expand_kernel_impl writes temperatures to a copy.  A greedy request has one choice.
GREEDY = [{**way, "temperature": 0.0, "n": 1} for way in WAYS]


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    if not (DATA / "vocab").is_dir():
        pytest.skip("CONSTRAIN_TEST_DATA does not name a folder with vocab/")
    return write_model(tmp_path_factory.mktemp("model"), DATA)


@pytest.fixture(scope="module")
def address(model, tmp_path_factory):
    log = tmp_path_factory.mktemp("log") / "vllm.log"
    with vllm_server(model, log, options=TOOL_OPTIONS, environment={"CONSTRAIN_VLLM": "1"}) as address:
        # Else another installation of the package, or none, is what vLLM has found.
        assert "makes the structured outputs" in log.read_text()
        yield address


@pytest.fixture(scope="module")
def thinking_address(model, tmp_path_factory):
    log = tmp_path_factory.mktemp("log") / "vllm.log"
    drafts = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 3, "prompt_lookup_min": 1}
    options = [*TOOL_OPTIONS, "--reasoning-parser", "deepseek_r1", "--speculative-config", json.dumps(drafts)]
    # Here a JSON Schema is asked for where tools are required, and no structural tag.
    environment = {"CONSTRAIN_VLLM": "1", "VLLM_ENFORCE_STRICT_TOOL_CALLING": "0"}
    with vllm_server(model, log, options=options, environment=environment) as address:
        yield address


def ask_all(address: str, requests: list[Request], ways: list[dict], at_once: int = 16) -> list[Answer]:
    async def run() -> list[Answer]:
        places = asyncio.Semaphore(at_once)

        async def one(number: int, request: Request) -> Answer:
            async with places:
                return await ask(client, request, number, **ways[number % len(ways)])

        async with AsyncOpenAI(base_url=address, api_key="none", max_retries=0, timeout=300) as client:
            return await asyncio.gather(*(one(number, request) for number, request in enumerate(requests)))

    return asyncio.run(run())


def check(answers: list[Answer], ways: list[dict]) -> None:
    faults = {answer.request.name: fault for answer in answers for fault in answer.faults()}
    assert faults == {}
    assert [answer.request.name for answer in answers if not answer.is_complete] == []
    for number, answer in enumerate(answers):
        assert len(answer.texts) == ways[number % len(ways)].get("n", 1)
        assert all(answer.texts), answer.request.name


def test_every_text_is_complete_and_valid(address):
    # Six of each of the small ones, which differ in seed and way.
    requests = [*small_requests() * 6, *maskbench_requests(DATA, MASKBENCH)]
    assert len(requests) > 100
    check(ask_all(address, requests, WAYS), WAYS)


def test_thinking_and_drafts(thinking_address):
    # Without structural tags nothing is asked of a text that may call tools.
    small = [request for request in small_requests() if request.name != "tools auto"]
    requests = [*small * 2, *maskbench_requests(DATA, 4)]
    check(ask_all(thinking_address, requests, GREEDY), GREEDY)
    with OpenAI(base_url=thinking_address, api_key="none", timeout=300) as client:
        found = client.chat.completions.create(
            model=NAME,
            messages=[{"role": "user", "content": "Yes?"}],
            max_tokens=30,
            temperature=0.0,
            extra_body={"structured_outputs": {"choice": ["yes", "no"]}},
        )
        (choice,) = found.choices
        assert choice.message.content in ("yes", "no")
        assert choice.finish_reason == "stop"
        # Random weights think until they are stopped.
        assert found.usage.completion_tokens > 20
        metrics = client._client.get(thinking_address.removesuffix("/v1") + "/metrics").text
    drafted = [line for line in metrics.splitlines() if line.startswith("vllm:spec_decode_num_draft_tokens_total")]
    assert sum(float(line.rsplit(" ", 1)[1]) for line in drafted) > 0


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"json": {"type": "strin"}}, "'strin' is not a type"),
        ({"regex": "a("}, "line 1, column 2"),
        ({"regex": "[bcd]{999}"}, "max_tokens is 16"),
    ],
)
def test_what_cannot_be_met_is_refused_with_the_reason(address, asked, message):
    with OpenAI(base_url=address, api_key="none", max_retries=0) as client, pytest.raises(BadRequestError) as refused:
        client.chat.completions.create(
            model=NAME,
            messages=[{"role": "user", "content": "?"}],
            max_tokens=16,
            extra_body={"structured_outputs": asked},
        )
    assert refused.value.status_code == 400
    assert message in refused.value.message


def test_a_model_that_may_call_tools_calls_them_right(address, model):
    """Where each token of ``<tool_call>`` is likely, most texts come to it sooner or later."""
    mark = AutoTokenizer.from_pretrained(model).encode("<tool_call>", add_special_tokens=False)
    found = 0
    with OpenAI(base_url=address, api_key="none", timeout=300) as client:
        for seed in range(3):
            answer = client.chat.completions.create(
                model=NAME,
                messages=[{"role": "user", "content": "?"}],
                tools=TOOLS,
                tool_choice="auto",
                max_tokens=256,
                seed=seed,
                n=4,
                logit_bias={str(token): 50 for token in mark},
            )
            for choice in answer.choices:
                assert choice.finish_reason in ("stop", "tool_calls")
                for call in choice.message.tool_calls or ():
                    ((argument, value),) = json.loads(call.function.arguments).items()
                    assert argument == {"look": "where", "wait": "how_long"}[call.function.name]
                    assert value in ("a", "b", 3)
                    found += 1
    assert found


def test_a_request_without_a_grammar_is_left_alone(address):
    with OpenAI(base_url=address, api_key="none") as client:
        found = client.chat.completions.create(
            model=NAME, messages=[{"role": "user", "content": "?"}], max_tokens=12, seed=1
        )
    assert found.usage.completion_tokens == 12
