"""Random turns in every style of tools, each of which is read back.

    python -m bench.tool_turns [--count 10000] [--seed 1] [--style NAME]

A turn is a walk over tokens that the mask allows, at random, with a budget, and in some grammars another one for its
thoughts.  It must be complete, its calls must be valid for their schemas (as jsonschema says), and reading it piece by
piece must give the same as reading it at once.  Calls in Python must be what Python's own parser reads.
"""

from __future__ import annotations

import argparse
import ast
import math
import random
import re
import sys
import time
from collections import Counter
from typing import Any

import jsonschema
import numpy as np

import constrain
from constrain.grammar.structural_tags.styles import CALLS
from constrain.grammar.structural_tags.styles import STYLES as ARGUMENT_STYLES
from constrain.grammar.tools.style import ID, NAME, NUMBER, WORD, ToolStyle
from constrain.grammar.tools.styles import STYLES
from constrain.tools import Call, Turn, TurnParser, parse

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "days": {"type": "integer", "minimum": 1, "maximum": 14},
                    "unit": {"enum": ["C", "F"]},
                    "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
                },
                "required": ["city"],
            },
        },
    },
    {
        "name": "search",
        "parameters": {
            "type": "object",
            "properties": {
                "q": {"type": "string", "minLength": 1, "maxLength": 6},
                "deep": {"type": ["boolean", "null"]},
                "where": {"$ref": "#/$defs/place"},
                "code": {"type": "string", "pattern": "^[a-c]{2}$"},
                "either": {"anyOf": [{"type": "integer"}, {"const": "x"}]},
                "kinds": {"type": "array", "items": {"enum": ["a", "b", True, None, 1]}, "uniqueItems": True},
            },
            "required": ["q", "where"],
            "$defs": {
                "place": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
            },
        },
    },
    {"name": "search_more", "parameters": {"type": "object", "additionalProperties": {"type": "integer"}}},
    {"name": "stop"},
]

MAX_TOKENS = 90
THOUGHTS = 25
WORDS = [
    "get_",
    "weather",
    "search",
    "_more",
    "city",
    "days",
    "null",
    "true",
    "Oslo",
    "name",
    "hello",
    "world",
    "<",
    "</",
    "a",
    "12",
    "é",
]
WORDS += ["(", "='", "True", "None", '["', "\\x41", "\\'", "'", "\\u0041", "\\U0001f600", "=", '("']
WORDS += ["\\", "\\n", "\\u00e9", '"', '{"', "}}", '"}', '": ', '", "', ", ", " ", "\n", "\n</"]


def schemas() -> dict[str, Any]:
    """The schema of the arguments of each tool, closed as the grammar takes it."""
    found = {}
    for tool in TOOLS:
        inner = tool.get("function", tool)
        schema = dict(inner.get("parameters", {"type": "object", "properties": {}}))
        if "properties" in schema:
            schema["additionalProperties"] = False
        found[inner["name"]] = schema
    return found


def tools_for(style: ToolStyle) -> list[dict[str, Any]]:
    """The tools that a style can call: one that repeats names behind values has to know them."""
    arguments = ARGUMENT_STYLES.get(style.arguments)
    needs_names = arguments is not None and bool(arguments.after_end)
    return [tool for tool in TOOLS if not needs_names or tool.get("name") != "search_more"]


def vocabulary_for(style: ToolStyle, rng: random.Random) -> constrain.Vocabulary:
    """Characters, words, and the marks of a style, whole and in pieces."""
    marks = [part for form in style.forms for part in form] + [*style.ends, style.trigger, style.end]
    if style.section is not None:
        marks += [style.section.begin, style.section.separator, style.section.end]
    if style.reasoning is not None:
        marks += [style.reasoning.begin, style.reasoning.end, style.reasoning.after]
    marks += [*(style.text or ()), *(style.preamble or ()), style.separator, style.further or ""]
    arguments = ARGUMENT_STYLES.get(style.arguments)
    if arguments is not None:
        marks += [arguments.before_key, arguments.after_key, *arguments.around_values()]
    pieces = set(WORDS)
    for mark in marks:
        for part in re.split("|".join(map(re.escape, (NUMBER, ID, WORD, NAME))), mark):
            if part:
                place = rng.randrange(len(part))
                pieces |= {part, part[:place], part[place:]}
    tokens = {bytes((byte,)) for byte in (*range(0x20, 0x7F), 0x0A, 0x09)} | {each.encode() for each in pieces if each}
    # A budget counts on tokens for single bytes.
    tokens |= {bytes((byte,)) for mark in marks for byte in mark.encode()}
    ordered = sorted(tokens)
    return constrain.Vocabulary([*ordered, b"</s>"], eos_ids=[len(ordered)])


def random_turn(compiled: constrain.CompiledGrammar, rng: random.Random) -> str | None:
    """The text of a walk; None if it did not come to its end, which a budget sees to."""
    vocabulary = compiled.vocabulary
    tokens, eos = vocabulary.tokens, vocabulary.size - 1
    matcher = constrain.Matcher(compiled, max_tokens=MAX_TOKENS)
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    data = b""
    for _ in range(MAX_TOKENS + 1):
        matcher.fill_next_token_bitmask(mask)
        allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")[: vocabulary.size])
        if len(allowed) == 0:
            return None
        # Long tokens lead somewhere.
        weights = [1 + 3 * len(tokens[token]) if token != eos else 2 for token in allowed]
        token = int(rng.choices(allowed.tolist(), weights)[0])
        if not matcher.accept_token(token):
            return None
        if token == eos:
            return data.decode()
        data += tokens[token]
    return None


def streamed(text: str, style: ToolStyle, rng: random.Random) -> tuple[Turn, list[Any]]:
    """A turn that is read in random pieces, and the arguments of its calls as they have come in events."""
    parser = TurnParser(style, TOOLS, arguments=True)
    place = 0
    arguments = []
    while place < len(text):
        size = rng.choice((1, 1, 2, 5, 20))
        for event in parser.feed(text[place : place + size]):
            part = event.argument
            if part is not None and part.is_complete and part.pointer == "":
                arguments.append(part.value)
        place += size
    parser.finish()
    return parser.turn, arguments


class _Words(ast.NodeTransformer):
    """The words of JSON in a style that writes these."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        known = {"true": True, "false": False, "null": None}
        return ast.Constant(known[node.id]) if node.id in known else node


def calls_as_python_reads_them(text: str, style: ToolStyle) -> list[Call]:
    """The calls of a turn in Python; sections end where Python can read them."""
    section = style.section
    assert section is not None
    found: list[Call] = []
    begin = text.find(section.begin)
    while begin == 0 or (begin > 0 and not style.is_whole):
        begin = end = begin + len(section.begin)
        lines: ast.Module | None = None
        while lines is None:
            end = text.index(section.end, end)
            # A list of calls, or one in each line.
            written = text[begin:end] if section.separator == "\n" else f"[{text[begin:end]}]"
            try:
                lines = ast.parse(written)
            except SyntaxError:
                end += 1
        body = [line.value for line in lines.body if isinstance(line, ast.Expr)]
        for call in body[0].elts if isinstance(body[0], ast.List) else body:
            assert isinstance(call, ast.Call)
            assert not call.args
            values = {each.arg: ast.literal_eval(_Words().visit(each.value)) for each in call.keywords if each.arg}
            assert len(values) == len(call.keywords)
            found.append(Call(ast.unparse(call.func), values))
        begin = text.find(section.begin, end)
    return found


def with_infinities(value: Any) -> Any:
    """A value with infinity for each integer beyond a float: Python reads ``1e400`` so."""
    if isinstance(value, list):
        return [with_infinities(item) for item in value]
    if isinstance(value, dict):
        return {name: with_infinities(member) for name, member in value.items()}
    if isinstance(value, int) and abs(value) > sys.float_info.max:
        return math.copysign(math.inf, value > 0 or -1)
    return value


def faults(text: str | None, style: ToolStyle, choice: str, rng: random.Random) -> list[str]:
    """What is wrong with a turn."""
    if text is None:
        return ["cut"]
    found = []
    turn = parse(text, style, TOOLS)
    if not turn.is_complete:
        found.append("not complete")
    again, arguments = streamed(text, style, rng)
    if again != turn:
        found.append("reads differently in pieces")
    if style.arguments == "json" and arguments != [call.arguments for call in turn.calls]:
        found.append("its events give other arguments")
    read = [Call(call.name, with_infinities(call.arguments)) for call in turn.calls]
    if style.arguments in CALLS and calls_as_python_reads_them(text, style) != read:
        found.append("Python reads other calls")
    known = schemas()
    for call in turn.calls:
        try:
            jsonschema.validate(call.arguments, known[call.name])
        except (jsonschema.ValidationError, KeyError) as error:
            found.append(f"not valid: {error!r:.80}")
    names = [call.name for call in turn.calls]
    if (choice == "none" and names) or (choice == "required" and not names):
        found.append("calls are not as tool_choice says")
    if choice not in ("none", "auto", "required") and names != [choice]:
        found.append("the call is not the one that was asked for")
    if choice in ("required", "search") and turn.text.strip() and not style.text_first:
        found.append("text beside a call that is required")
    return found


def walk(style: ToolStyle, count: int, seed: int) -> tuple[Counter[str], list[tuple[str, str | None]]]:
    """``count`` turns of a style: how many of what, and those with faults."""
    rng = random.Random(seed)
    vocabulary = vocabulary_for(style, rng)
    tools = tools_for(style)
    grammars = {}
    for choice in ("auto", "required", "none", "search"):
        for parallel in (True, False):
            for order in ("schema", "any"):
                grammar = constrain.Grammar.from_tools(
                    tools, style=style, tool_choice=choice, parallel=parallel, property_order=order
                )
                grammars[choice, parallel, order] = constrain.CompiledGrammar(grammar.ir, vocabulary)
        if style.reasoning is not None:
            grammar = constrain.Grammar.from_tools(tools, style=style, tool_choice=choice, reasoning=THOUGHTS)
            grammars[choice, True, "thoughts"] = constrain.CompiledGrammar(grammar.ir, vocabulary)
    seen: Counter[str] = Counter()
    bad: list[tuple[str, str | None]] = []
    for _ in range(count):
        key = rng.choice([*grammars, *(key for key in grammars if key[0] == "auto")])
        text = random_turn(grammars[key], rng)
        wrong = faults(text, style, key[0], rng)
        seen["turns"] += 1
        if text is not None:
            turn = parse(text, style, TOOLS)
            seen["calls"] += len(turn.calls)
            seen["with thoughts"] += bool(turn.reasoning)
        if wrong:
            bad.append((f"{key}: {'; '.join(wrong)}", text))
    return seen, bad


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000, help="turns of each style")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--style", choices=sorted(STYLES))
    options = parser.parse_args()
    for name, style in STYLES.items():
        if options.style in (None, name):
            begin = time.perf_counter()
            seen, bad = walk(style, options.count, options.seed)
            seconds = time.perf_counter() - begin
            print(f"{name:18} {dict(seen)}, {len(bad)} with faults, {seconds:.0f} s", flush=True)
            for why, text in bad[:3]:
                print(f"    {why}\n    {text!r}")


if __name__ == "__main__":
    main()
