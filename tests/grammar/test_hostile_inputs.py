"""Small inputs that are hard: each is a grammar, or an error of ours, within little memory and time."""

from __future__ import annotations

import os
from pathlib import Path

import hostile_inputs as hostile
import pytest

# All of it takes minutes: `CONSTRAIN_HOSTILE=all python -m pytest tests/grammar/test_hostile_inputs.py`.
_ALL = os.environ.get("CONSTRAIN_HOSTILE") == "all"

_NUMBERS = ("1e400", "1e-400", "1e300", "1e-300", "123456789123456789", "1e999999999", "1e-999999999", "97", "1009")

_GROUPS = {
    "nested schemas": [case for depth in (400, 3000, 100_000) for case in hostile.nested_schemas(depth)],
    "doubled schemas": [case for n in (10, 30, 300) for case in hostile.doubled_schemas(n)],
    "combined schemas": [case for n in (3, 12, 60) for case in hostile.combined_schemas(n)],
    "schemas with numbers": [case for number in _NUMBERS for case in hostile.numbered_schemas(number)],
    "schemas with counts": [case for n in (10**4, 10**6, 10**30) for case in hostile.numbered_schemas(str(n))],
    "long schemas": [case for n in (1000, 20_000) for case in hostile.long_schemas(n)],
    "regexes": [case for n in (200, 10_000) for case in hostile.regexes(n)],
    "Lark": [case for n in (200, 10_000) for case in hostile.larks(n)],
    "GBNF": [case for n in (200, 20_000) for case in hostile.gbnfs(n)],
}

_FEW = {
    "nested schemas": [case for depth in (100, 100_000) for case in hostile.nested_schemas(depth)],
    "doubled schemas": hostile.doubled_schemas(14),
    "combined schemas": hostile.combined_schemas(5),
    "schemas with numbers": [case for number in ("1e-400", "1e300") for case in hostile.numbered_schemas(number)],
    "schemas with counts": hostile.numbered_schemas(str(10**30)),
    "long schemas": hostile.long_schemas(600),
    "regexes": hostile.regexes(200),
    "Lark": hostile.larks(300),
    "GBNF": hostile.gbnfs(300),
}


@pytest.mark.parametrize("group", _GROUPS)
def test_hard_inputs(group: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tests = Path(hostile.__file__).parent
    paths = [str(tests), str(tests.parent), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    cases = _GROUPS[group] if _ALL else _FEW[group]
    assert len(cases) >= 9
    assert hostile.judge(cases, timeout=3600) == []
