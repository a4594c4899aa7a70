"""Asks a server over HTTP, many requests at a time, with the ``openai`` client."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from openai import APIError, APIStatusError, AsyncOpenAI

from bench.servers.requests import MAX_TOKENS, Request, calls_as_text
from bench.servers.server import NAME


@dataclass
class Answer:
    """What came of one request.

    Attributes
    ----------
    request : Request
    texts : list of str
        One for each choice; of one that calls tools, the calls as JSON (:func:`bench.servers.requests.calls_as_text`).
    finished : list of str
        Why each ended: ``stop``, ``tool_calls`` or ``length``.
    error : str
        What the server said instead; "" if it answered.
    first : float
        Seconds to the first piece of a text, where it was streamed.
    seconds : float
        To the end.
    tokens : int
        Of all texts.
    """

    request: Request
    texts: list[str] = field(default_factory=list)
    finished: list[str] = field(default_factory=list)
    error: str = ""
    first: float | None = None
    seconds: float = 0.0
    tokens: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether each text came to an end by itself."""
        return not self.error and all(reason in ("stop", "tool_calls") for reason in self.finished)

    def faults(self) -> list[str]:
        """What is wrong with the texts; nothing if all are what was asked for."""
        if self.error:
            return [self.error]
        return [fault for text in self.texts if (fault := self.request.judge(text))]


async def ask(client: AsyncOpenAI, request: Request, number: int, *, streams: bool, **more: Any) -> Answer:
    """Ask once; ``number`` is the seed of the sampler.  ``more`` goes into the request."""
    answer = Answer(request)
    begin = time.perf_counter()
    body: dict[str, Any] = {
        "model": NAME,
        "messages": [{"role": "user", "content": f"Question {number}: {request.name}?"}],
        "max_tokens": MAX_TOKENS,
        "temperature": 1.0,
        "seed": number,
        **request.body,
        **more,
    }
    try:
        if streams:
            await _read_stream(client, body, answer, begin)
        else:
            found = await client.chat.completions.create(**body)
            answer.texts = [_said(choice.message) for choice in found.choices]
            answer.finished = [choice.finish_reason for choice in found.choices]
            answer.tokens = found.usage.completion_tokens
    except APIStatusError as error:
        answer.error = f"{error.status_code}: {error.message}"
    except APIError as error:
        # What is refused after a stream has begun comes as a part of it.
        answer.error = error.message
    answer.seconds = time.perf_counter() - begin
    return answer


def _said(message: Any) -> str:
    calls = [(call.function.name, call.function.arguments) for call in message.tool_calls or ()]
    return calls_as_text(calls) if calls else message.content or ""


async def _read_stream(client: AsyncOpenAI, body: dict[str, Any], answer: Answer, begin: float) -> None:
    count = body.get("n", 1)
    texts, finished = [""] * count, [""] * count
    calls: list[dict[int, list[str]]] = [{} for _ in range(count)]
    stream = await client.chat.completions.create(**body, stream=True, stream_options={"include_usage": True})
    async for chunk in stream:
        if chunk.usage is not None:
            answer.tokens = chunk.usage.completion_tokens
        for choice in chunk.choices:
            if answer.first is None and (choice.delta.content or choice.delta.tool_calls):
                answer.first = time.perf_counter() - begin
            texts[choice.index] += choice.delta.content or ""
            for call in choice.delta.tool_calls or ():
                said = calls[choice.index].setdefault(call.index, ["", ""])
                said[0] += call.function.name or ""
                said[1] += call.function.arguments or ""
            if choice.finish_reason:
                finished[choice.index] = choice.finish_reason
    answer.texts = [
        calls_as_text([(name, arguments) for name, arguments in those.values()]) if those else text
        for text, those in zip(texts, calls, strict=True)
    ]
    answer.finished = finished


def ask_all(address: str, requests: Sequence[Request], *, at_once: int, **more: Any) -> list[Answer]:
    """Ask all requests as streams, ``at_once`` of them at a time; in their order."""

    async def run() -> list[Answer]:
        places = asyncio.Semaphore(at_once)

        async def one(number: int, request: Request) -> Answer:
            async with places:
                return await ask(client, request, number, streams=True, **more)

        async with AsyncOpenAI(base_url=address, api_key="none", max_retries=0, timeout=300) as client:
            return await asyncio.gather(*(one(number, request) for number, request in enumerate(requests)))

    return asyncio.run(run())
