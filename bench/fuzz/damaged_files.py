"""Kind "damaged_files": ``tokenizer.json`` with members that are wrong, missing, huge or there twice.

Whoever opens a file from a stranger expects a tokenizer, or a :class:`TokenizerError` of one line, and both soon.  A
tokenizer that was opened must encode and decode what it makes, or say in the same way why it cannot.
"""

from __future__ import annotations

import copy
import json
import random
import time
from typing import Any

from bench.fuzz.protocol import Budget, Counts, Difference, Kind
from bench.fuzz.tokenizer_parts import random_plan, random_texts
from constrain.errors import TokenizerError
from constrain.tokenizers.formats.json_writer import tokenizer_json_of
from constrain.tokenizers.formats.tokenizer_json import parse_tokenizer_json
from constrain.tokenizers.state_arrays import from_arrays, to_arrays

_FILES = 100
_TEXTS = 4
_SECONDS = 10.0
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 3, 256, 2**31, 2**40, 2**64, 10**400, 0.5, 1e308, float("nan"), float("inf")),
    *("", " ", "\0", "\ud800", "a\n", "##", "a" * 3000, "<unk>", "always", "first", [], [[]], [None], {}, {"a": 1}),
    *({"type": "Sequence"}, {"type": "Fuse"}, {"type": "ByteLevel"}, {"type": "a\n"}),
)
_MOST_MEMBERS = 40


def _places(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all members, but of few in a vocabulary."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    if len(keys) > _MOST_MEMBERS:
        keys = [*keys[:3], *keys[-2:]]
    inner = [path for key in keys for path in _places(value[key], (*above, key))]
    return [*((*above, key) for key in keys), *inner]


def _member(content: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        content = content[key]
    return content


def _damage(rng: random.Random, content: dict[str, Any]) -> None:
    for _ in range(rng.choice((1, 1, 2, 3))):
        places = _places(content)
        path = rng.choice(places)
        parent, key = _member(content, path[:-1]), path[-1]
        kind = rng.random()
        if kind < 0.6:
            parent[key] = copy.deepcopy(rng.choice(_VALUES))
        elif kind < 0.75:
            del parent[key]
        elif kind < 0.9:
            parent[key] = copy.deepcopy(_member(content, rng.choice(places)))
        elif isinstance(parent, list):
            parent.append(copy.deepcopy(parent[key]))
        else:
            parent[rng.choice(("type", "\ud800", "<unk>", ""))] = copy.deepcopy(parent[key])


def _use(data: bytes, texts: list[str], counts: Counts) -> None:
    """Open, encode, decode, keep and write; only a :class:`TokenizerError` comes out of it."""
    tokenizer = parse_tokenizer_json(data)
    counts["files that open"] += 1
    for text in texts:
        ids = tokenizer.encode(text, True).ids
        for skip in (False, True):
            tokenizer.decode(ids, skip)
    from_arrays(to_arrays(tokenizer))
    tokenizer_json_of(tokenizer)


def _wrong(data: bytes, texts: list[str], counts: Counts) -> str:
    begin = time.process_time()
    try:
        _use(data, texts, counts)
    except TokenizerError as error:
        counts["errors"] += 1
        if "\n" in str(error):
            return f"an error of several lines: {str(error)!r}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    seconds = time.process_time() - begin
    return f"it takes {seconds:.0f} s" if seconds > _SECONDS else ""


def run(rng: random.Random, budget: Budget) -> Counts:
    counts: Counts = Counts()
    for _ in range(_FILES):
        plan = random_plan(rng)
        texts = random_texts(rng, plan, _TEXTS)
        content = copy.deepcopy(plan.content())
        _damage(rng, content)
        data = json.dumps(content).encode()
        counts["damaged files"] += 1
        wrong = _wrong(data, texts, counts)
        if wrong:
            raise Difference(wrong, f"data = {data!r}\ntexts = {texts!r}")
        if budget.is_over():
            break
    return counts


KIND = Kind(
    "damaged_files",
    "opening and using damaged tokenizer.json files: an error of one line, or a tokenizer, soon",
    run,
    4,
    {"damaged files": 400, "errors": 200},
)
