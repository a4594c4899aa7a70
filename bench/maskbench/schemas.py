"""MaskBench's schemas as jobs, and the folder where the data lies."""

from __future__ import annotations

import gzip
import json
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.maskbench.jobs import Instance, Job, Kind
from bench.maskbench.token_list import TokenList
from bench.maskbench.vocabulary import TokenTable

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = "maskbench-dev.jsonl.gz"
VOCABULARY = Path("vocab", "llama3.tiktoken")


class NoData(Exception):
    """The data is not there; the message says where it was looked for."""


def data_folder(vocabulary: bool = True) -> Path:
    """The folder of schemas and vocabularies: named by ``CONSTRAIN_TEST_DATA``, or beside the checkout.

    Raises
    ------
    NoData
        If it lacks a file that the benchmark needs, of which the vocabulary need not be one.
    """
    folder = _folder()
    for needed in (folder / SCHEMAS, *([folder / VOCABULARY] if vocabulary else [])):
        if not needed.is_file():
            raise NoData(f"no {needed}: let CONSTRAIN_TEST_DATA name the folder that holds {SCHEMAS} and vocab/")
    return folder


def vocabulary_file() -> Path:
    """Llama-3's rank file, in the same folder.

    Raises
    ------
    NoData
        If it is not there.
    """
    file = _folder() / VOCABULARY
    if not file.is_file():
        raise NoData(f"no {file}: let CONSTRAIN_TEST_DATA name the folder that holds vocab/")
    return file


def _folder() -> Path:
    return Path(os.environ.get("CONSTRAIN_TEST_DATA") or ROOT.parent / "shared" / "data")


@dataclass
class SchemaJobs:
    """Jobs from MaskBench's file, in an order that depends on the seed alone; tokenized when iterated over.

    Parameters
    ----------
    path : Path
        Lines of JSON, compressed: ``id``, ``schema``, ``tests``.
    count : int or None
        How many schemas; None for all.
    has_instances : bool
        Whether the jobs have the schemas' instances.

    Attributes
    ----------
    skipped : int
        Instances without a UTF-8 form, or that the tokenizer changes, so far.
    """

    path: Path
    table: TokenTable | TokenList
    seed: int
    count: int | None = None
    has_instances: bool = True

    def __post_init__(self) -> None:
        with gzip.open(self.path, "rb") as file:
            self._lines = file.read().splitlines()
        # A run that is cut short has then seen a fair sample.
        random.Random(self.seed).shuffle(self._lines)
        self._lines = self._lines[: self.count]
        self.skipped = 0

    def __len__(self) -> int:
        return len(self._lines)

    def __iter__(self) -> Iterator[Job]:
        for line in self._lines:
            entry = json.loads(line.decode(errors="surrogatepass"))
            instances = []
            for test in entry["tests"] if self.has_instances else ():
                try:
                    tokens = self.table.encode(json.dumps(test["data"], ensure_ascii=False))
                except ValueError:
                    self.skipped += 1
                    continue
                instances.append(Instance(tokens, test["valid"]))
            yield Job(entry["id"], Kind.JSON_SCHEMA, json.dumps(entry["schema"]), instances)
