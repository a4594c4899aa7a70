"""The benchmark's own arithmetic and machinery: a figure is only worth what this is."""

from __future__ import annotations

import base64
import gzip
import json
import os
import subprocess
import sys
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

import maskbench_workers
import numpy as np
import pytest

import constrain
from bench.maskbench import engines, figures, picture, result, runner, subjects, tables, walk, worker
from bench.maskbench.engines.base import Session
from bench.maskbench.figures import Pair
from bench.maskbench.jobs import Instance, Job, Kind, Outcome, Run, Status
from bench.maskbench.schemas import SchemaJobs
from bench.maskbench.token_list import SUFFIX, TokenList, read_table
from bench.maskbench.vocabulary import TokenTable
from constrain.cli import bench as bench_command
from constrain.cli.main import main

MERGES = [b"th", b"the", b'":', b'": ', b'{"', b'"}', b"12", b"tr", b"true", b" a", b"  ", b'", "']


def ranks() -> dict[bytes, int]:
    return {token: rank for rank, token in enumerate([*(bytes([i]) for i in range(256)), *MERGES])}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a vocabulary of 268 tokens and four schemas."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "vocab").mkdir()
    lines = (b"%s %d\n" % (base64.b64encode(token), rank) for token, rank in ranks().items())
    (folder / "vocab" / "llama3.tiktoken").write_bytes(b"".join(lines))
    a_string = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    entries = [
        {"id": "right", "schema": a_string, "tests": [(True, {"a": "the"}), (False, {"a": 1})]},
        {"id": "wrong labels", "schema": a_string, "tests": [(False, {"a": "the"}), (True, {"a": 12}), (True, {})]},
        {"id": "surrogate", "schema": {"type": "string"}, "tests": [(True, "\ud800"), (True, "the end")]},
        {"id": "no schema", "schema": {"type": "no such type"}, "tests": [(True, 1)]},
    ]
    with gzip.open(folder / "maskbench-dev.jsonl.gz", "wt", encoding="utf-8", errors="surrogatepass") as file:
        for entry in entries:
            entry["tests"] = [{"valid": valid, "data": data} for valid, data in entry["tests"]]
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")
    return folder


@pytest.fixture(scope="module")
def table(folder: Path) -> TokenTable:
    return TokenTable.read(folder / "vocab" / "llama3.tiktoken")


# -- the vocabulary and the jobs --------------------------------------------------------------------


def test_special_tokens_follow_the_ranks(table: TokenTable) -> None:
    assert table.size == 268 + 256
    assert table.end_ids == [269, 277]
    assert len(table.tokens) == table.size
    assert table.tokens[257] == b"the"
    assert table.tokens[268] == b""


@pytest.fixture(scope="module")
def own_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer.json: a blank is a character of its own, and byte tokens have the bytes of characters."""
    kinds = ["<pad>", "<end>", "<unk>"]
    pieces = [*kinds, *(f"<0x{i:02X}>" for i in range(256)), "▁", *map(chr, range(33, 127)), "the", '":', "true"]
    added = [{"id": i, "content": kind, "special": True, "normalized": False} for i, kind in enumerate(kinds)]
    for entry in added:
        entry |= {"single_word": False, "lstrip": False, "rstrip": False}
    content = {
        "version": "1.0",
        "added_tokens": added,
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
            ],
        },
        "model": {"type": "Unigram", "unk_id": 2, "byte_fallback": True, "vocab": [[each, -1.0] for each in pieces]},
    }
    folder = tmp_path_factory.mktemp("own")
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text('{"eos_token": "<end>"}')
    return folder


def test_the_tokens_of_any_tokenizer(own_file: Path, tmp_path: Path) -> None:
    own = TokenList.of_tokenizer(own_file)
    own.save(tmp_path / f"a{SUFFIX}")
    table = read_table(tmp_path / f"a{SUFFIX}")
    assert (table.size, table.end_ids, list(table.special_ids)) == (357, [1], [0, 1, 2])
    assert table.tokens[3 + ord(" ")] == table.tokens[259] == b" "
    assert b"".join(table.tokens[i] for i in own.encode('{"ä": the}')) == '{"ä": the}'.encode()


def test_a_text_has_the_bytes_of_its_tokens(own_file: Path, tmp_path: Path) -> None:
    content = json.loads((own_file / "tokenizer.json").read_text(encoding="utf-8"))
    blank = content["normalizer"]
    content["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, blank]}
    content["model"]["vocab"].append(["▁th", -0.1])
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": "<end>"}')
    own = TokenList.of_tokenizer(tmp_path)
    for text in ("this", "the end", '"a"', " b", ""):
        assert b"".join(own.tokens[i] for i in own.encode(text)) == text.encode()

    content["normalizer"] = {"type": "Lowercase"}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match="changes the text 'The'"):
        TokenList.of_tokenizer(tmp_path).encode("The")


def test_schemas_become_jobs_in_an_order_of_the_seed(folder: Path, table: TokenTable) -> None:
    pytest.importorskip("tiktoken")
    path = folder / "maskbench-dev.jsonl.gz"
    orders = {tuple(job.id for job in SchemaJobs(path, table, seed)) for seed in range(8)}
    assert len(orders) > 1
    jobs = SchemaJobs(path, table, 3)
    by_id = {job.id: job for job in jobs}
    assert tuple(by_id) in orders
    assert [job.id for job in SchemaJobs(path, table, 3, 2)] == list(by_id)[:2]
    assert jobs.skipped == 1
    (instance,) = by_id["surrogate"].instances
    assert b"".join(table.tokens[i] for i in instance.tokens) == b'"the end"'


def test_texts_of_the_subjects_belong_to_their_grammars(table: TokenTable) -> None:
    pytest.importorskip("tiktoken")
    compiler = constrain.GrammarCompiler(constrain.Vocabulary(table.tokens, eos_ids=table.end_ids))
    for job in subjects.subject_jobs(table):
        parse = constrain.Grammar.from_lark if job.kind is Kind.LARK else constrain.Grammar.from_regex
        compiled = compiler.compile(parse(job.grammar))
        assert job.instances
        for instance in job.instances:
            matcher = constrain.Matcher(compiled)
            text = b"".join(table.tokens[i] for i in instance.tokens)
            assert matcher.accept_bytes(text), job.id
            assert matcher.is_accepting(), job.id


# -- one step, one instance, one job ----------------------------------------------------------------


class Letters(Session):
    """Allows token 1 twice and then token 40; a place is how many tokens were accepted."""

    def __init__(self, words: memoryview, fails_at: int | None = None, refuses: bool = False) -> None:
        self.words, self.fails_at, self.refuses = words, fails_at, refuses
        self.fill, self.accept, self.mark = self._fill, self._accept, lambda: self.place
        self.place = 0

    def _fill(self) -> None:
        if self.place == self.fails_at:
            raise RuntimeError("too  large\nfor me")
        self.words[0] = 2 if self.place < 2 else 0
        self.words[1] = 1 << 8 if self.place == 2 else 0

    def _accept(self, token: int) -> bool:
        self.place += not self.refuses
        return not self.refuses

    def restart(self) -> None:
        self.place = 0

    def can_end(self) -> bool:
        return self.place == 3


@pytest.fixture
def words() -> memoryview:
    return memoryview(array("i", [0, 0]))


def test_a_text_is_accepted_if_every_token_is_in_its_mask_and_it_may_end(words: memoryview) -> None:
    def taken(*tokens: int) -> tuple[bool, int]:
        run = worker.run(words, Letters(words), Instance(list(tokens), True), set())
        return run.accepted, len(run.steps)

    assert taken(1, 1, 40) == (True, 3)
    assert taken(1, 1) == (False, 2)
    assert taken(1, 40, 1) == (False, 2)
    assert taken(1, 1, 40, 1) == (False, 4)
    assert taken(1, 33) == (False, 2)
    assert taken() == (False, 0)


def test_a_token_that_the_mask_allows_and_the_matcher_does_not_is_rejected(words: memoryview) -> None:
    run = worker.run(words, Letters(words, refuses=True), Instance([1, 1], True), set())
    assert (run.accepted, len(run.steps)) == (False, 1)


def test_an_exception_is_a_rejection_with_an_error(words: memoryview) -> None:
    run = worker.run(words, Letters(words, fails_at=1), Instance([1, 1, 40], True), set())
    assert (run.accepted, len(run.steps), run.error) == (False, 1, "RuntimeError: too large for me")
    assert run.first is not None
    assert len(run.first) == len(run.interrupted) == 1


def test_a_place_is_visited_first_once(words: memoryview) -> None:
    seen = {0}
    firsts = []
    for tokens in ([1, 1], [1, 1, 40], [1, 1, 40]):
        run = worker.run(words, Letters(words), Instance(tokens, True), seen)
        assert run.first is not None
        firsts.append(run.first.tolist())
    assert firsts == [[False, True], [False, False, True], [False, False, False]]


def test_no_step_is_begun_after_the_deadline(words: memoryview) -> None:
    run = worker.run(words, Letters(words), Instance([1, 1, 40], True), set(), deadline=0)
    assert (run.accepted, len(run.steps)) == (False, 1)


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("name", engines.NAMES)
def test_every_engine_judges_a_schema(name: str, own: bool, table: TokenTable | TokenList, own_file: Path) -> None:
    if not engines.installed(name):
        pytest.skip(f"{name} is not installed")
    engine = engines.make(name)
    if own:
        table = TokenList.of_tokenizer(own_file)
    engine.load(table)
    schema = {
        "type": "object",
        "properties": {"a": {"enum": ["the", "end"]}, "b": {"type": "boolean"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    texts = {'{"a": "the", "b": true}': True, '{"a": "th", "b": true}': False, '{"a": "the"}': False, '{"a"': False}
    instances = [Instance(table.encode(text), valid) for text, valid in texts.items()]
    job = Job("a", Kind.JSON_SCHEMA, json.dumps(schema), instances)
    # Twice: what one job leaves behind must not show in the next.
    for _ in range(2):
        outcome = worker.measure(engine, job)
        assert outcome.status is Status.MEASURED, outcome.message
        assert [run.accepted for run in outcome.runs] == list(texts.values())
        assert outcome.compile > 0
        assert outcome.peak_memory > 1 << 20
        assert all((run.steps > 0).all() for run in outcome.runs)
        assert len(outcome.runs[0].steps) == len(instances[0].tokens)
        assert (outcome.runs[0].first is None) == (name != engines.OURS)
    for kind, text in ((Kind.JSON_SCHEMA, '{"type": "no such type"}'), (Kind.REGEX, "(a")):
        refused = worker.measure(engine, Job("b", kind, text, []))
        assert refused.status is Status.COMPILE_ERROR
        assert refused.message


def test_a_job_that_takes_too_long_keeps_what_was_measured(table: TokenTable) -> None:
    engine = engines.make(engines.OURS)
    engine.load(table)
    job = Job("a", Kind.REGEX, "[a-z]*", [Instance([97] * 50, True)] * 3)
    outcome = worker.measure(engine, job, limit=0.0)
    assert outcome.status is Status.TIMEOUT
    assert [len(run.steps) for run in outcome.runs] == [1]


def test_what_the_benchmark_adds_to_a_step_is_little() -> None:
    assert 20 < worker.overhead() < 20_000


def test_memory_is_that_of_the_process() -> None:
    """In a process of its own: the peak of this one may lie behind it."""
    program = """
import numpy as np
from bench.maskbench import memory
before = memory.peak()
block = np.ones(8 << 20)
assert memory.peak() - before > 32 << 20
assert block.sum() == len(block)
"""
    root = str(Path(__file__).parents[2])
    subprocess.run([sys.executable, "-c", program], check=True, cwd=root, env={**os.environ, "PYTHONPATH": root})


# -- workers ----------------------------------------------------------------------------------------


@contextmanager
def team(*names: str) -> Iterator[list[runner.Worker]]:
    workers = [runner.Worker(name, Path("none"), maskbench_workers.obedient) for name in names]
    try:
        yield workers
    finally:
        for each in workers:
            each.kill()


def job(name: str, grammar: str = "") -> Job:
    return Job(name, Kind.REGEX, grammar, [])


def test_a_worker_that_hangs_or_dies_costs_its_limit_and_not_the_run() -> None:
    with team("one") as (one,):
        first = one.run(job("a"), 10)
        assert one.run(job("b"), 10).message == first.message
        began = perf_counter()
        assert one.run(job("c", "hang"), 0.1).status is Status.TIMEOUT
        assert perf_counter() - began < 5
        second = one.run(job("d"), 10)
        assert second.status is Status.MEASURED
        crash = one.run(job("e", "die"), 10)
        assert crash.status is Status.CRASH
        assert "exit code 7" in crash.message
        third = one.run(job("f"), 10)
        assert len({first.message, second.message, third.message}) == 3
        assert one.starts == 3


def test_engines_take_turns_at_going_first() -> None:
    asked: list[tuple[str, str]] = []
    with team("one", "two", "three") as workers:
        jobs = [job(name) for name in "abcd"]
        outcomes = runner.alternate(workers, jobs, 10, progress=lambda job, name: asked.append((job.id, name)))
    assert list(outcomes) == list("abcd")
    assert all(list(of_job) == ["one", "two", "three"] for of_job in outcomes.values())
    assert [name for id, name in asked[::3]] == ["one", "two", "three", "one"]
    assert sorted(asked) == sorted((id, name) for id in "abcd" for name in ("one", "two", "three"))


def test_an_engine_without_time_left_is_left_out() -> None:
    with team("one") as workers:
        jobs = [job("a", "linger"), job("b"), job("c")]
        assert list(runner.alternate(workers, jobs, 10, budget=0.1)) == ["a"]
        # Counted anew in each call.
        assert list(runner.alternate(workers, jobs[1:], 10, budget=0.1)) == ["b", "c"]
        assert not runner.alternate(workers, jobs, 10, deadline=perf_counter())


def test_an_engine_that_does_not_start_says_why() -> None:
    reasons = {maskbench_workers.stillborn: "exit code 3", maskbench_workers.refusing: "no such engine"}
    for target, reason in reasons.items():
        failing = runner.Worker("one", Path("none"), target)
        with pytest.raises(runner.WorkerFailed, match=f"one did not start.*{reason}"):
            failing.wait()
        failing.kill()


# -- figures ----------------------------------------------------------------------------------------


def measured(compile_ns: int, *runs: tuple[list[int], bool]) -> Outcome:
    made = [
        Run(np.array(steps, np.int64), np.zeros(len(steps), bool), np.array([True] * len(steps), bool), accepted)
        for steps, accepted in runs
    ]
    return Outcome(Status.MEASURED, compile_ns, made)


def schema_job(name: str, *valid: bool) -> Job:
    return Job(name, Kind.JSON_SCHEMA, "{}", [Instance([1, 2, 3], each) for each in valid])


def test_a_distribution_is_in_microseconds() -> None:
    values = figures.distribution(np.arange(1, 1001) * 1000)
    assert values["mean"] == 500.5
    assert values["max"] == 1000
    assert values["p50"] == 500.5
    assert values["p99"] == pytest.approx(990.01)
    assert tuple(values) == figures.LABELS
    assert figures.distribution(np.zeros(0, np.int64)) == {}


def test_verdicts() -> None:
    pairs: list[Pair] = [
        (schema_job("a", True, False), measured(1, ([1], True), ([1], False))),
        (schema_job("b", True, False, False), measured(1, ([1], False), ([1], True), ([1], True))),
        (schema_job("c", True), Outcome(Status.COMPILE_ERROR)),
        (schema_job("d", True), Outcome(Status.TIMEOUT)),
        (schema_job("e", True), Outcome(Status.CRASH)),
        (schema_job("f"), measured(1)),
    ]
    found = figures.verdicts(pairs)
    assert (found.schemas, found.measured, found.passing) == (6, 3, 2)
    assert (found.compile_errors, found.timeouts, found.crashes) == (1, 1, 1)
    assert (found.instances, found.wrongly_rejected, found.wrongly_accepted) == (5, 1, 2)


def test_only_what_both_did_is_compared() -> None:
    ours: list[Pair] = [
        (schema_job("a", True, True), measured(2000, ([1000, 3000], True), ([5000], False))),
        (schema_job("b", True), measured(9_000_000, ([9_000_000], True))),
        (schema_job("c", True), measured(9_000_000, ([9_000_000], True))),
        (schema_job("only ours", True), measured(9_000_000, ([9_000_000], True))),
    ]
    theirs: list[Pair] = [
        (schema_job("c", True), Outcome(Status.COMPILE_ERROR)),
        (schema_job("a", True, True), measured(4000, ([4000], False), ([8000, 70_000], True))),
        (schema_job("b", True), Outcome(Status.TIMEOUT, 1, measured(1, ([1], False)).runs)),
        (schema_job("only theirs", True), measured(1, ([1], True))),
    ]
    found = figures.compare(ours, theirs)
    assert (found.schemas, found.steps) == (1, 2)
    assert (found.ours["mask"]["mean"], found.theirs["mask"]["mean"]) == (3.0, 6.0)
    assert found.ratios["mask"]["mean"] == 0.5
    assert found.ratios["compile"] == pytest.approx(dict.fromkeys(figures.LABELS, 0.5))
    nothing = figures.compare(ours, [])
    assert (nothing.schemas, nothing.steps, nothing.ratios) == (0, 0, {"mask": {}, "compile": {}})


def test_first_visits_interruptions_and_the_slowest() -> None:
    flags = np.array([True, False, True])
    run = Run(np.array([10, 20, 900]), np.array([False, False, True]), flags, True)
    silent = Run(np.array([5]), np.array([False]), None, True)
    pairs: list[Pair] = [(schema_job("a", True, True), Outcome(Status.MEASURED, 1, [run, silent]))]
    first, repeated = figures.by_visit(pairs)
    assert (first.tolist(), repeated.tolist()) == ([10, 900], [20])
    assert figures.undisturbed_times(pairs).tolist() == [10, 20, 5]
    top, second = figures.slowest(pairs, 2)
    assert top == {"microseconds": 0.9, "id": "a", "instance": 0, "step": 2, "interrupted": True}
    assert second["microseconds"] == 0.02


# -- the walk ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("pattern", "before"), [("[a-t]*", b""), ("the?re|tz", b""), ('"[^"]*"x', b'"'), ("th", b"t")])
def test_nodes_are_counted_as_the_prefixes_whose_parents_are_alive(pattern: str, before: bytes) -> None:
    tokens = sorted([*ranks(), b"thz", b"there", b"therefore", b'th"x', b'th"xy', b'th"yy', b"hat"])
    vocabulary = constrain.Vocabulary(tokens)
    compiled = constrain.GrammarCompiler(vocabulary).compile(constrain.Grammar.from_regex(pattern))

    def lives(text: bytes) -> bool:
        return constrain.Matcher(compiled).accept_bytes(before + text)

    prefixes = {token[:n] for token in tokens for n in range(1, len(token) + 1)}
    looked = sum(lives(prefix[:-1]) for prefix in prefixes)
    alive = sum(lives(prefix) for prefix in prefixes)
    assert 0 < alive < looked
    assert walk.count_nodes(tokens, compiled, before) == (looked, alive)


def test_the_walk_is_measured_in_every_case(folder: Path) -> None:
    walks, clock = walk.measure(folder / "vocab" / "llama3.tiktoken", runs=2)
    assert [each.name for each in walks] == list(walk.CASES)
    for each in walks:
        assert each.nodes >= each.alive > 20
        assert each.nanoseconds > 0
    if clock is None:
        assert all(each.cycles is None for each in walks)
    else:
        assert 0.3 < clock < 10
        assert all(each.cycles == pytest.approx(clock * each.nanoseconds) for each in walks)


# -- tables, picture, command -----------------------------------------------------------------------


def test_tables_are_aligned_markdown() -> None:
    text = tables.table(("", "a", "bb"), [("x", "1", "22"), ("long", "333", "4")])
    assert text.splitlines() == [
        "|      |   a | bb |",
        "|------|----:|---:|",
        "| x    |   1 | 22 |",
        "| long | 333 |  4 |",
    ]
    assert [tables.microseconds(value) for value in (1.234, 12.34, 1234.5, None)] == ["1.23", "12.3", "1,234", "-"]


def test_curves_end_where_there_is_less_than_one_measurement() -> None:
    nines, times = picture.curve(np.arange(1, 1001) * 1000)
    assert nines[0] == 0
    assert nines[-1] == pytest.approx(3)
    assert times[0] == 1
    assert times[-1] == pytest.approx(999, abs=1)
    assert (np.diff(times) >= 0).all()


def test_the_whole_run(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tiktoken")
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("CONSTRAIN_TEST_DATA", str(folder))
    output = tmp_path / "new" / "folder"
    arguments = ["bench", "mask", "--engine", "constrain", "--no-grammars", "--output", str(output)]
    assert main(arguments) == 0
    found = json.loads((output / "maskbench.json").read_text())
    verdicts = found["engines"]["constrain"]["verdicts"]
    assert (verdicts["schemas"], verdicts["measured"], verdicts["compile_errors"]) == (4, 3, 1)
    assert (verdicts["instances"], verdicts["wrongly_rejected"], verdicts["wrongly_accepted"]) == (6, 2, 1)
    assert verdicts["passing"] == 2
    assert found["skipped_instances"] == 1
    engine = found["engines"]["constrain"]
    assert engine["first_count"] > 0
    assert engine["steps"] > engine["first_count"]
    assert engine["mask"]["p50"] > engine["ready"]["overhead"] / 1e3 > 0
    assert engine["peak_memory"] >= engine["ready"]["loaded"] >= engine["ready"]["imported"] > 0
    assert {record["id"] for record in found["records"]} == {"right", "wrong labels", "surrogate", "no schema"}
    printed = capsys.readouterr().out
    assert printed == (output / "maskbench.md").read_text()
    assert "| wrongly rejected" in printed
    assert "<svg" in (output / "maskbench.svg").read_text()


def test_a_run_with_cold_caches_compiles_only(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tiktoken")
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("CONSTRAIN_TEST_DATA", str(folder))
    assert main(["bench", "mask", "--cold", "--engine", "constrain", "--output", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "maskbench.json").read_text())
    engine = found["engines"]["constrain"]
    assert found["settings"]["cold"] is True
    assert (engine["verdicts"]["measured"], engine["verdicts"]["instances"], engine["steps"]) == (3, 0, 0)
    assert engine["compile"]["p50"] > 0
    assert not found["subjects"]
    assert "compile + first mask, p50" in capsys.readouterr().out


def test_jobs_begin_with_cold_caches() -> None:
    elsewhere = worker.Elsewhere()
    elsewhere.touch()
    elsewhere.touch()
    assert elsewhere._memory.nbytes == 64 << 20
    assert (elsewhere._memory == 2).all()


def test_what_was_only_compiled_is_compared() -> None:
    pairs: dict[str, list[Pair]] = {
        "constrain": [(schema_job("a", True), measured(1000))],
        "llguidance": [(schema_job("a", True), measured(4000))],
    }
    [found] = result.comparisons(pairs).values()
    assert (found.schemas, found.steps) == (1, 0)
    assert found.ratios["mask"] == {}
    assert found.ratios["compile"]["p50"] == 0.25


def test_a_run_over_the_tokens_of_a_file(
    folder: Path, own_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tiktoken")
    pytest.importorskip("matplotlib")
    data = tmp_path / "data"
    data.mkdir()
    (data / "maskbench-dev.jsonl.gz").write_bytes((folder / "maskbench-dev.jsonl.gz").read_bytes())
    monkeypatch.setenv("CONSTRAIN_TEST_DATA", str(data))  # in which there is no vocabulary
    arguments = ["bench", "mask", "--engine", "constrain", "--no-grammars", "--output", str(tmp_path)]
    assert main([*arguments, "--vocabulary", str(own_file)]) == 0
    found = json.loads((tmp_path / "maskbench.json").read_text())
    assert (found["settings"]["vocabulary"], found["settings"]["vocabulary_size"]) == (str(own_file), 357)
    assert found["engines"]["constrain"]["verdicts"]["passing"] == 2


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.json", None, "missing.json: no such file"),
        ("tokenizer.json", '{"model": 1}', "tokenizer.json: "),
    ],
)
def test_a_vocabulary_that_cannot_be_read(
    name: str,
    content: str | None,
    message: str,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CONSTRAIN_TEST_DATA", str(folder))
    monkeypatch.setattr("bench.maskbench.command.find_spec", lambda package: object())
    if content is not None:
        (tmp_path / name).write_text(content)
    assert main(["bench", "mask", "--engine", "constrain", "--vocabulary", str(tmp_path / name)]) == 1
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_a_report_has_a_ratio_for_each_other_engine() -> None:
    pairs: dict[str, list[Pair]] = {
        "constrain": [(schema_job("a", True), measured(1000, ([1000], True)))],
        "llguidance": [(schema_job("a", True), measured(4000, ([4000], True)))],
        "xgrammar": [(schema_job("a", True), Outcome(Status.COMPILE_ERROR))],
    }
    found = result.Result(
        machine={"cpu": "a processor", "cores": 2, "load_before": 0.1, "load_after": 0.2, "python": "3"},
        settings={"limit_seconds": 10.0, "budget_seconds": 60.0, "seed": 1, "vocabulary_size": 268},
        absent=["outlines-core"],
        available=9,
        selected=1,
        engines={
            name: result.engine_result(of_engine, worker.Ready(version="1"), 1) for name, of_engine in pairs.items()
        },
        comparisons=result.comparisons(pairs),
        records=result.records(pairs),
    )
    text = tables.report(found)
    assert "Not installed, so not measured: outlines-core" in text
    assert "constrain and llguidance on the 1 schemas that both compile and run to the end, 1 steps" in text
    assert text.count("0.25") == 2 * len(figures.LABELS)
    assert "nothing in common" in text
    json.dumps(found.to_json())


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--engine", "nonesuch"], 2, "nonesuch"),
        (["--nonesuch"], 2, "--nonesuch"),
        (["--engine", "constrain"], 1, "CONSTRAIN_TEST_DATA"),
    ],
)
def test_what_is_wrong_is_one_line(
    arguments: list[str],
    status: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CONSTRAIN_TEST_DATA", str(tmp_path))
    monkeypatch.setattr("bench.maskbench.command.find_spec", lambda package: object())
    assert main(["bench", "mask", *arguments]) == status
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert message in printed.err


def test_an_engine_that_was_asked_for_must_be_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bench.maskbench.command.installed", lambda name: name == "constrain")
    assert main(["bench", "mask", "--engine", "constrain", "--engine", "xgrammar"]) == 1
    assert capsys.readouterr().err == "constrain: xgrammar: not installed: pip install -e '.[bench]'\n"


def test_without_a_checkout_the_command_says_where_it_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench_command, "_ROOT", tmp_path)
    assert main(["bench", "mask", "--quick"]) == 1
    error = capsys.readouterr().err
    assert "run it in a checkout" in error
    assert error.count("\n") == 1
    assert main(["bench", "--help"]) == 0
