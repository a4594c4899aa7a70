"""The requests to servers, and their judges: what is right is told from what is not."""

from __future__ import annotations

import gzip
import json

import pytest

pytest.importorskip("jsonschema_rs", reason="jsonschema-rs is not installed")

from bench.servers.requests import calls_as_text, maskbench_requests, small_requests

RIGHT_AND_WRONG = {
    "schema person": ('{"name": "Mae", "age": 3}', '{"name": "Mae"}'),
    "schema tags": ('["a", "b"]', '["a", "a"]'),
    "schema line": ('{"unit": "kg", "value": -1e999}', '{"unit": "kg", "value": "1"}'),
    "schema tree": ('{"label": "a", "children": []}', '{"label": "a", "children": [{}]}'),
    "regex [a-z]{3,9}@[a-z]{2,9}\\.(com|org)": ("abc@de.com", "abc@de.com "),
    "regex 20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9])": ("2031-12-09", "2031-13-09"),
    "regex (ab|ba)+c": ("abbac", "abbc"),
    "regex [A-Z][a-z ]*[.!?]": ("So it is.", "So it is"),
    "choice": ("positive", "neutral"),
    "EBNF": ("(())", "(()"),
    "Lark": ("()", ""),
    "JSON object": ('{"a": 1, "a": 2}', "[1]"),
    "tools auto": (calls_as_text([("look", '{"where": 3}')]), calls_as_text([("look", '{"where": 4}')])),
    "tools required": (calls_as_text([("look", '{"where": 3}'), ("wait", '{"how_long": "a"}')]), "nothing"),
    "tools wait": (calls_as_text([("wait", '{"how_long": "a"}')]), calls_as_text([("look", '{"where": 3}')])),
}


def test_each_small_request_has_a_judge_that_tells():
    requests = small_requests()
    assert [request.name for request in requests] == list(RIGHT_AND_WRONG)
    for request in requests:
        right, wrong = RIGHT_AND_WRONG[request.name]
        assert request.judge(right) == ""
        assert request.judge(wrong) != ""
        # Cut by a limit.
        assert request.judge(right[:-1]) != ""


def test_schemas_are_those_whose_data_the_judge_agrees_with(tmp_path):
    """One with a long instance is left out, and one that is judged otherwise than the data says."""
    entries = [
        {"id": "long", "schema": True, "tests": [{"valid": True, "data": "a" * 400}]},
        {"id": "wrong", "schema": {"type": "string"}, "tests": [{"valid": True, "data": 1}]},
        {"id": "first", "schema": {"type": "string"}, "tests": [{"valid": True, "data": "a"}]},
        {
            "id": "second",
            "schema": {"type": "null"},
            "tests": [{"valid": True, "data": None}, {"valid": False, "data": 1}],
        },
    ]
    with gzip.open(tmp_path / "maskbench-dev.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(entry) + "\n" for entry in entries)
    (request,) = maskbench_requests(tmp_path, 1)
    assert request.name == "schema first"
    assert request.body["response_format"]["json_schema"]["schema"] == {"type": "string"}
    assert request.judge('"a"') == ""
    assert request.judge("1") != ""
