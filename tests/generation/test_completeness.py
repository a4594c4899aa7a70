"""Whatever the budget, a text is complete and valid: real schemas, the demonstration model, the jsonschema package."""

from __future__ import annotations

import pytest

pytest.importorskip("jsonschema", reason="the package 'jsonschema' is not installed")

from bench.budgets import outcomes


def test_generations_within_budgets(data_folder, monkeypatch):
    if not (data_folder / "maskbench-dev.jsonl.gz").is_file():
        pytest.skip(f"no MaskBench schemas in {data_folder}")
    monkeypatch.setenv("CONSTRAIN_TEST_DATA", str(data_folder))
    found = [outcome for outcome in outcomes(20, seed=3, temperature=1.5) if not outcome.kind.startswith("schema")]
    assert len(found) == 20
    for outcome in found:
        assert outcome.kind in ("valid", "not judged"), outcome
        assert 0 < outcome.tokens <= outcome.most
    assert sum(outcome.kind == "valid" for outcome in found) >= 18
    assert len({outcome.most for outcome in found}) > 5
