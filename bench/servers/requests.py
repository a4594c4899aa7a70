"""What is asked of a server: schemas, patterns, choices and grammars, each with a judge that knows no engine."""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema_rs

from bench.judge import Judge, NoVerdict, RepeatedKey

MAX_TOKENS = 128


@dataclass(frozen=True)
class Request:
    """One request.

    Attributes
    ----------
    name : str
    body : dict
        What goes into the request besides model, prompt and sampling.
    judge : callable
        Why a text is not what was asked for; "" if it is.
    """

    name: str
    body: dict[str, Any]
    judge: Callable[[str], str]


def _judge_of(schema: Any) -> Callable[[str], str]:
    """What says why a text is not valid for a schema."""
    judge = Judge(schema)
    second = jsonschema_rs.validator_for(schema, validate_formats=True)

    def verdict(text: str) -> str:
        try:
            return judge.verdict(text)
        except (NoVerdict, RepeatedKey):
            # Numbers of thousands of digits, and keys that come twice, of which a schema says nothing.
            error = next(second.iter_errors(json.loads(text, parse_float=_finite)), None)
            return "" if error is None else error.message[:200]

    return verdict


def _schema_request(name: str, schema: Any) -> Request:
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    return Request(f"schema {name}", {"response_format": form}, _judge_of(schema))


def _finite(text: str) -> float:
    """A float; the greatest there is for one that is too large to be one, whose type is right at least."""
    return max(min(float(text), sys.float_info.max), -sys.float_info.max)


def _structured(name: str, judge: Callable[[str], str], **asked: Any) -> Request:
    return Request(name, {"extra_body": {"structured_outputs": asked}}, judge)


def _regex_request(pattern: str) -> Request:
    return _structured(
        f"regex {pattern}", lambda text: "" if re.fullmatch(pattern, text) else "no match", regex=pattern
    )


def _is_nested(text: str) -> str:
    half = len(text) // 2
    return "" if half and text == "(" * half + ")" * half else "not as many brackets closed as opened"


SMALL_SCHEMAS: dict[str, Any] = {
    "person": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0, "maximum": 130}},
        "required": ["name", "age"],
        "additionalProperties": False,
    },
    "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 5, "uniqueItems": True},
    "line": {
        "type": "object",
        "properties": {"unit": {"enum": ["kg", "m", "s"]}, "value": {"type": "number"}, "exact": {"type": "boolean"}},
        "required": ["unit", "value"],
    },
    "tree": {
        "$defs": {
            "node": {
                "type": "object",
                "properties": {
                    "label": {"type": "string", "maxLength": 12},
                    "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                },
                "required": ["label", "children"],
                "additionalProperties": False,
            }
        },
        "$ref": "#/$defs/node",
    },
}
PATTERNS = [
    "[a-z]{3,9}@[a-z]{2,9}\\.(com|org)",
    "20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9])",
    "(ab|ba)+c",
    "[A-Z][a-z ]*[.!?]",
]
CHOICES = ["positive", "negative", "neither of the two"]
EBNF = 'root ::= "(" root ")" | "()"'
LARK = 'start: "(" start ")" | "()"'


TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": name,
            "strict": True,
            "parameters": {
                "type": "object",
                "properties": {argument: {"enum": ["a", "b", 3]}},
                "required": [argument],
                "additionalProperties": False,
            },
        },
    }
    for name, argument in (("look", "where"), ("wait", "how_long"))
]


def calls_as_text(calls: Sequence[tuple[str, str]]) -> str:
    """Calls of tools, each a name and JSON text of arguments, as a JSON array."""
    return json.dumps([{"name": name, "arguments": arguments} for name, arguments in calls])


def _tools_request(choice: Any, label: str) -> Request:
    judges = {
        tool["function"]["name"]: _judge_of(tool["function"]["parameters"])
        for tool in TOOLS
        if choice in ("auto", "required") or choice["function"]["name"] == tool["function"]["name"]
    }

    def verdict(text: str) -> str:
        if not text.startswith('[{"name": '):
            return "" if choice == "auto" else "no call of a tool"
        try:
            calls = json.loads(text)
        except ValueError:
            return "no calls"
        for call in calls:
            if call["name"] not in judges:
                return f"no tool {call['name']!r} may be called"
            if fault := judges[call["name"]](call["arguments"]):
                return fault
        return ""

    return Request(f"tools {label}", {"tools": TOOLS, "tool_choice": choice}, verdict)


def small_requests() -> list[Request]:
    """Requests that need no data."""
    requests = [_schema_request(name, schema) for name, schema in SMALL_SCHEMAS.items()]
    requests += [_regex_request(pattern) for pattern in PATTERNS]
    requests.append(_structured("choice", lambda text: "" if text in CHOICES else "no choice", choice=CHOICES))
    requests.append(_structured("EBNF", _is_nested, grammar=EBNF))
    requests.append(_structured("Lark", _is_nested, grammar=LARK))
    any_object = {"response_format": {"type": "json_object"}}
    requests.append(Request("JSON object", any_object, _judge_of({"type": "object"})))
    for choice in ("auto", "required", {"type": "function", "function": {"name": "wait"}}):
        requests.append(_tools_request(choice, choice if isinstance(choice, str) else "wait"))
    return requests


def maskbench_requests(data: Path, count: int, *, longest: int = 300) -> Iterator[Request]:
    """Schemas of MaskBench, evenly from all of its parts, that have a valid instance of at most so many bytes.

    So a text fits into ``MAX_TOKENS``, by an instance that no engine has had to do with.
    """
    with gzip.open(data / "maskbench-dev.jsonl.gz", "rt", encoding="utf-8", errors="surrogatepass") as lines:
        entries = [json.loads(line) for line in lines]
    suited = [entry for entry in entries if _shortest(entry) <= longest]
    for number in range(count):
        part = suited[number * len(suited) // count : (number + 1) * len(suited) // count]
        entry = next(entry for entry in part if _is_judged(entry))
        yield _schema_request(entry["id"], entry["schema"])


def _shortest(entry: dict[str, Any]) -> float:
    texts = (json.dumps(test["data"]) for test in entry["tests"] if test["valid"])
    return min(map(len, texts), default=float("inf"))


def _is_judged(entry: dict[str, Any]) -> bool:
    """Whether the judge says of all instances what the data says."""
    try:
        judge = Judge(entry["schema"])
        return all((not judge.verdict(json.dumps(test["data"]))) == test["valid"] for test in entry["tests"])
    except (NoVerdict, RepeatedKey, RecursionError, UnicodeEncodeError):
        return False
