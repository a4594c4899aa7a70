"""Real schemas with their instances: those of MaskBench, through the engine."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from byte_tokens import BYTES

import constrain

SCHEMAS = 600


def records_of(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8", errors="surrogatepass") as lines:
        for line in lines:
            record = json.loads(line)
            if record["tests"]:
                yield record


def ordered(value: Any, rank: dict[str, int]) -> Any:
    """The value with every object's keys in the order in which the schema first names them."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: rank.get(name, len(rank)))
        return {name: ordered(value[name], rank) for name in names}
    return [ordered(item, rank) for item in value] if isinstance(value, list) else value


def property_names(schema: Any) -> Iterator[str]:
    todo = [schema]
    while todo:
        part = todo.pop(0)
        if isinstance(part, dict):
            if isinstance(part.get("properties"), dict):
                yield from part["properties"]
            todo += part.values()
        elif isinstance(part, list):
            todo += part


def encode(value: Any) -> bytes | None:
    """As the benchmark writes instances; None for a lone surrogate."""
    try:
        return json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return None


def test_every_instance_is_judged_right(data_folder: Path) -> None:
    path = data_folder / "maskbench-dev.jsonl.gz"
    if not path.exists():
        pytest.skip(f"no {path}")
    records = list(records_of(path))
    # Spread over the file, which is sorted by where the schemas come from.
    records = records[:: max(len(records) // SCHEMAS, 1)][:SCHEMAS]
    assert len(records) == SCHEMAS
    compiler = constrain.GrammarCompiler(BYTES)
    wrong: list[str] = []
    refused: list[str] = []
    instances = reordered = 0

    def accepts(text: bytes, compiled: constrain.CompiledGrammar) -> bool:
        matcher = constrain.Matcher(compiled)
        return matcher.accept_bytes(text) and matcher.is_accepting()

    for record in records:
        schema = json.dumps(record["schema"])
        try:
            compiled = compiler.compile(constrain.Grammar.from_json_schema(schema))
        except constrain.ConstrainError as error:
            refused.append(str(error))
            continue

        for number, test in enumerate(record["tests"]):
            text = encode(test["data"])
            if text is None:
                continue
            instances += 1
            if accepts(text, compiled) == test["valid"]:
                continue
            rank = {name: index for index, name in enumerate(dict.fromkeys(property_names(record["schema"])))}
            other = encode(ordered(test["data"], rank))
            if test["valid"] and other is not None:
                # Objects may name the same things in different orders: then no order is the right one for all.
                free = constrain.Grammar.from_json_schema(schema, property_order="any")
                if accepts(other, compiled) or accepts(text, compiler.compile(free)):
                    reordered += 1
                    continue
            wrong.append(f"{record['id']} instance {number}, which is {'' if test['valid'] else 'in'}valid")
    print(f"{len(records)} schemas, {instances} instances, {reordered} accepted only in the schema's order of keys")
    assert not wrong
    assert len(refused) < SCHEMAS // 50, refused
    assert instances > 2 * SCHEMAS
    assert reordered < instances // 40
