"""Metrics of the engine count what happens while they are on, and leave no trace when they are off."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import constrain
from constrain import metrics
from constrain.demo import load
from constrain.engine.masks import batches, drafts
from constrain.engine.vocabulary import applying

prometheus_client = pytest.importorskip("prometheus_client")
multiprocess = pytest.importorskip("prometheus_client.multiprocess")

DOCS = Path(__file__).resolve().parents[1] / "docs"
TOKENS = [b"a", b"b", b"ab", b"c", b"</s>"]
VOCABULARY = constrain.Vocabulary(TOKENS, eos_ids=[4])


@pytest.fixture
def registry():
    registry = prometheus_client.CollectorRegistry()
    metrics.enable(registry, kept_mass=True)
    yield registry
    metrics.disable()


def value(registry, name, **labels):
    return registry.get_sample_value(f"constrain_{name}", labels) or 0


def test_grammars(registry):
    compiler = constrain.GrammarCompiler(VOCABULARY)
    grammar = constrain.Grammar.from_regex("(ab|c)+")
    for _ in range(3):
        compiled = compiler.compile(grammar)
    assert compiler.submit(grammar).result() is compiled
    other = constrain.Grammar.from_choices(["abc", "c"])
    compiler.submit(other).result()
    constrain.GrammarCompiler(VOCABULARY).load(compiled.to_bytes())
    assert value(registry, "read_seconds_count", kind="regex") == 2, "loading reads it once more"
    assert value(registry, "read_seconds_count", kind="choices") == 1
    assert value(registry, "compile_seconds_count") == 2
    assert value(registry, "compile_seconds_sum") > 0
    assert value(registry, "grammar_lookups_total", result="compiled") == 2
    assert value(registry, "grammar_lookups_total", result="kept") == 3
    assert value(registry, "grammar_lookups_total", result="loaded") == 1
    assert value(registry, "grammars_kept") >= 2
    assert value(registry, "grammars_kept_bytes") >= compiled.nbytes


def test_what_calls_another_counts_once(registry):
    pytest.importorskip("pydantic")
    constrain.Grammar.from_pydantic(list[int])
    assert value(registry, "read_seconds_count", kind="pydantic") == 1
    assert value(registry, "read_seconds_count", kind="json_schema") == 0


def test_errors(registry):
    for wrong in ("a(", "["):
        with pytest.raises(constrain.GrammarError):
            constrain.Grammar.from_regex(wrong)
    compiler = constrain.GrammarCompiler(VOCABULARY)
    with pytest.raises(constrain.LimitError):
        compiler.compile(constrain.Grammar.from_regex("(ab|c)+"), time_limit=1e-9)
    with pytest.raises(constrain.ConstrainError):
        compiler.load(b"nothing")
    assert value(registry, "grammar_errors_total", operation="read", error="GrammarError") == 2
    assert value(registry, "grammar_errors_total", operation="compile", error="LimitError") == 1
    assert value(registry, "grammar_errors_total", operation="load", error="ConstrainError") == 1
    assert value(registry, "grammar_lookups_total", result="compiled") == 0


@pytest.mark.parametrize("threads", [1, 2])
def test_masks_batches_and_drafts(registry, threads):
    compiler = constrain.GrammarCompiler(VOCABULARY)
    matchers = [
        constrain.Matcher(compiler.compile(constrain.Grammar.from_regex(pattern))) for pattern in ("(ab|c)+", "a*b") * 2
    ]
    mask = constrain.allocate_token_bitmask(12, VOCABULARY.size)
    matchers[0].fill_next_token_bitmask(mask)
    assert value(registry, "mask_seconds_count") == 1
    for _ in range(2):
        constrain.fill_next_token_bitmask_batch(matchers, mask, threads=threads)
    assert value(registry, "batch_seconds_count") == 2
    assert value(registry, "batch_size_sum") == 8
    # The one that was asked for alone is known to the other matcher of its grammar too.
    assert value(registry, "batch_masks_total", state="new") == 2
    assert value(registry, "batch_masks_total", state="known") == 6
    assert value(registry, "mask_seconds_count") == 1
    assert constrain.fill_draft_bitmasks(matchers[:2], [[0, 1, 0], [0, 3]], None, mask, threads=threads) == [3, 1]
    assert value(registry, "draft_seconds_count") == 1
    assert value(registry, "draft_tokens_total", legal="yes") == 4
    assert value(registry, "draft_tokens_total", legal="no") == 1
    assert value(registry, "mask_seconds_count") == 1


def test_what_is_forced(registry):
    tokenizer, _ = load()
    vocabulary = constrain.Vocabulary.from_tokenizer(tokenizer)
    matcher = constrain.Matcher(
        constrain.GrammarCompiler(vocabulary).compile(constrain.Grammar.from_regex("The weather is (good|bad)"))
    )
    tokens = matcher.forced_tokens()
    assert len(tokens) > 1
    assert value(registry, "forced_tokens_total") == len(tokens)
    assert value(registry, "forced_bytes_total") == 0
    assert matcher.forced_bytes() == b"The weather is "
    assert value(registry, "forced_bytes_total") == 15


def kept(registry):
    return value(registry, "kept_mass_count"), value(registry, "kept_mass_sum")


@pytest.mark.parametrize("make", ["float32", "float64", "float16", "torch", "bfloat16"])
def test_kept_mass(registry, make):
    numbers = np.log(np.array([[0.5, 0.25, 0.125, 0.0625, 0.0625], [0.2] * 5]))
    if make in ("torch", "bfloat16"):
        torch = pytest.importorskip("torch")
        logits = torch.tensor(numbers, dtype=torch.bfloat16 if make == "bfloat16" else torch.float32)
    else:
        logits = numbers.astype(make)
    mask = np.array([[0b10001], [0b111]], np.int32)
    constrain.apply_token_bitmask_inplace(logits, mask)
    assert np.isneginf(np.array(logits.tolist())).sum() == 5
    count, total = kept(registry)
    assert count == 2
    assert total == pytest.approx(0.5625 + 0.6, rel=0.01)
    constrain.apply_token_bitmask_inplace(logits[1], mask[1])
    assert kept(registry)[0] == 3
    # Nothing can be said of these.
    logits[:] = -math.inf
    constrain.apply_token_bitmask_inplace(logits, mask)
    assert kept(registry)[0] == 3


def functions():
    return [
        *(vars(constrain.Grammar)[f"from_{kind}"] for kind in metrics._KINDS),
        *(vars(constrain.GrammarCompiler)[name] for name in ("compile", "submit", "load", "_keep")),
        *(vars(constrain.Matcher)[name] for name in ("fill_next_token_bitmask", "forced_tokens", "forced_bytes")),
        *(batches._write, batches._fill_known, batches._fill, applying._apply_mask),
        *(drafts._Drafts.fill, drafts._Drafts._follow),
    ]


def test_off_is_as_if_it_had_never_been_on():
    before, registry = functions(), prometheus_client.CollectorRegistry()
    metrics.enable(registry)
    metrics.enable(registry)
    assert sum(old is not new for old, new in zip(before, functions(), strict=True)) == len(before) - 1
    assert applying._apply_mask in before, "the kept mass is measured if it is asked for"
    with pytest.raises(constrain.ConstrainError, match="another registry"):
        metrics.enable(prometheus_client.CollectorRegistry())
    metrics.disable()
    metrics.disable()
    assert functions() == before
    assert list(registry.collect()) == []


def test_all_constructors_of_grammars_are_measured():
    assert {name for name in vars(constrain.Grammar) if name.startswith("from_")} == {
        f"from_{kind}" for kind in metrics._KINDS
    }


def names(registry):
    """The metrics as they are written on a page: counters with their ending."""
    return {family.name + "_total" * (family.type == "counter") for family in registry.collect()}


def test_the_dashboard_and_the_page_show_every_metric(registry):
    dashboard = json.loads((DOCS / "dashboard.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    shown = {name for expression in asked for name in re.findall(r"constrain_\w+", expression)}
    assert {re.sub("_(bucket|sum|count)$", "", name) for name in shown} == names(registry)
    page = (DOCS / "serving.md").read_text().split("## Metrics", 1)[1].split("\n## ")[0]
    assert set(re.findall(r"`(constrain_\w+)`", page)) == names(registry)
    places = [tuple(panel["gridPos"][key] for key in "xy") for panel in dashboard["panels"]]
    assert len(set(places)) == len(places)
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(places)


def test_one_process_shows_what_others_have_counted(tmp_path):
    """As vLLM does it: the engine counts, and the server has the page."""
    code = (
        "import constrain; from constrain import metrics; metrics.enable();"
        "compiler = constrain.GrammarCompiler(constrain.Vocabulary([b'a', b'b'], eos_ids=[1]));"
        "compiler.compile(constrain.Grammar.from_choices(['a']))"
    )
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    for _ in range(2):
        subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    registry = prometheus_client.CollectorRegistry()
    multiprocess.MultiProcessCollector(registry, str(tmp_path))
    assert value(registry, "compile_seconds_count") == 2
    assert value(registry, "grammar_lookups_total", result="compiled") == 2
    assert value(registry, "grammars_kept") == 2


def test_without_the_library_it_says_what_to_install():
    code = "import sys; sys.modules['prometheus_client'] = None; from constrain.metrics import enable; enable()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'constrain-llm[metrics]'" in done.stderr.splitlines()[-1]
