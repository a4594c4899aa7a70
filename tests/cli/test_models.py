"""``--model`` of ``constrain mask`` and ``constrain explain``: models of other libraries rank the tokens."""

from __future__ import annotations

import json

import pytest
import tiny_models

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_models.write_folder(tmp_path_factory.mktemp("model"))


def test_mask(run, folder):
    status, out, err = run("mask", "--choices", "yes,no", "--prefix", "", "--model", folder, "--json", "--limit", "0")
    assert status == 0, err
    answer = json.loads(out)
    assert answer["vocabulary"] == len(tiny_models.PIECES)
    shares = [token["probability"] for token in answer["tokens"]]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1)
    assert {token["text"] for token in answer["tokens"]} == {"y", "ye", "yes", "n", "no"}


def test_explain(run, folder, tmp_path):
    page = tmp_path / "page.html"
    status, _, err = run("explain", "--choices", "yes,no", "--text", "yes", "--model", folder, "--html", page)
    assert status == 0, err
    content = json.loads(page.read_text().split('id="data">')[1].split("</script>")[0])
    assert content["model"] is True
    assert all(0 < step["probability"] <= 1 for step in content["steps"])
    assert str(folder) in content["facts"]


def test_what_is_no_model(run, tmp_path):
    for path in (tmp_path / "missing", tmp_path):
        status, out, err = run("mask", "--choices", "a", "--model", path)
        assert (status, out) == (1, "")
        assert err.startswith(f"constrain: {path}")
        assert err.count("\n") == 1
