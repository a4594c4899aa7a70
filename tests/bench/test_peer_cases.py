"""The cases of other engines: how verdicts are compared, and what the table says."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from bench import peer_cases


def verdict(**case: Any) -> tuple[str, str]:
    return peer_cases.Judge().run({"id": "x-1", "suite": "x/y", **case})


def test_texts_and_their_fields() -> None:
    fields = {
        "accept": ["ab"],
        "reject": ["a", "b"],
        "incomplete": ["a"],
        "dead": ["b"],
        "prefix": ["a", {"hex": "6162"}],
    }
    assert verdict(kind="regex", source="ab", **fields) == ("agree", "")
    status, reason = verdict(kind="regex", source="ab", accept=["a"])
    assert status == "differs"
    assert reason == "accept: 'a': 1 of 1 bytes, incomplete"
    for field, text in (("reject", "ab"), ("incomplete", "ab"), ("dead", "a"), ("prefix", "b")):
        assert verdict(kind="regex", source="ab", **{field: [text]})[0] == "differs"


def test_sources_that_are_refused() -> None:
    assert verdict(kind="regex", source="(", expect="error")[0] == "agree"
    assert verdict(kind="regex", source="a", expect="error") == ("differs", "the peer refuses the source")
    assert verdict(kind="regex", source="(", accept=["a"])[0] == "refused"
    assert verdict(kind="regex", source="a", expect="compile")[0] == "agree"
    assert verdict(kind="json_schema", source=False, dead=["1"])[0] == "agree"
    assert verdict(kind="smoke signals", source="")[0] == "no front-end"


def test_conventions_of_json_schema() -> None:
    schema = {"type": "object", "properties": {"a": {}, "b": {}}}
    case = {"kind": "json_schema", "source": schema}
    assert verdict(**case, accept=['{"b": 1, "a": 2}']) == ("agree", "with a convention: any order of keys")
    assert verdict(**case, dead=['{"c":1}']) == ("agree", "with a convention: objects closed")
    assert verdict(**case, dead=['{"a":1}'])[0] == "differs"


def test_conventions_of_other_notations() -> None:
    lark = {"kind": "lark", "source": 'start: /k/i "a"\n%ignore " "'}
    assert verdict(**lark, accept=["Ka"], dead=["\u212aa"]) == ("agree", "with a convention: case of ASCII alone")
    assert verdict(**lark, dead=[" ka"])[1] == "with a convention: nothing ignored before the first terminal"
    assert verdict(kind="regex", source=r"[^]x", accept=["\nx"]) == ("agree", "with a convention: ECMAScript's syntax")
    empty = {"kind": "lark", "source": 'start: ""', "expect": "error"}
    assert verdict(**empty)[0] == "differs"
    assert verdict(**{**empty, "suite": "lark/grammar"}) == ("agree", "with a convention: Lark's own lexer")


def test_tokens_that_a_case_names() -> None:
    case = {"kind": "lark", "source": 'start: <|call|> "x"'}
    assert verdict(**case, accept=["<|call|>x"], incomplete=["<|call|>"], dead=["x", "<|call|>y"]) == ("agree", "")
    assert verdict(**case, accept=["x"])[0] == "differs"
    assert verdict(**case, expect="error")[0] == "agree"
    assert verdict(kind="lark", source="start: <[5431]>", expect="compile") == ("agree", "")


def test_judged_cases_have_one_verdict() -> None:
    judged = json.loads(peer_cases.JUDGED.read_text(encoding="utf-8"))
    assert judged.keys() == {"peer", "case", "convention"}
    ids = [case for reasons in judged.values() for cases in reasons.values() for case in cases]
    assert len(ids) == len(set(ids))


def test_calls_whose_style_is_not_said() -> None:
    case = {"kind": "xml_tool_call", "source": {"properties": {"a": {"type": "integer"}}, "required": ["a"]}}
    good = ["<parameter=a>1</parameter>", "<arg_key>a</arg_key><arg_value>1</arg_value>"]
    assert verdict(**case, accept=good, reject=[""], dead=["<parameter=a>x</parameter>"]) == ("agree", "")
    assert verdict(**case, accept=["<a>1</a>"])[0] == "differs"
    assert verdict(**case, dead=good[:1])[0] == "differs"


def test_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    cases = [
        {"id": "x-1", "suite": "x/y", "kind": "regex", "source": "a", "accept": ["a"]},
        {"id": "x-2", "suite": "x/y", "kind": "regex", "source": "a", "accept": ["b"]},
        {"id": "x-3", "suite": "x/y", "kind": "regex", "source": "(", "accept": ["b"]},
        {"id": "z-1", "suite": "z/y", "kind": "regex", "source": "a", "accept": ["b"]},
    ]
    with gzip.open(tmp_path / "x.jsonl.gz", "wt") as file:
        file.write("\n".join(map(json.dumps, cases)))
    (tmp_path / "verdicts.jsonl").write_text(json.dumps({"id": "x-2", "verdict": "peer", "why": "it errs"}) + "\n")
    results = tmp_path / "out.jsonl"
    arguments = ["peer_cases", "--data", str(tmp_path), "--suite", "x", "--left", "--json", str(results)]
    monkeypatch.setattr("sys.argv", arguments)
    peer_cases.main()
    out = capsys.readouterr().out
    assert "x-2 x/y: judged: peer: it errs" in out
    assert "x-3 x/y: refused: " in out
    assert "66.7 %" in out
    assert "z/y" not in out
    assert [json.loads(line)["status"] for line in results.read_text().splitlines()] == [
        "agree",
        "judged: peer",
        "refused",
    ]
