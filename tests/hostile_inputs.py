"""Small inputs that are hard for a front-end, and a child process with little memory that reads them.

Every input is one of three things to a front-end: a grammar, a limit that it names, or an error.  It is never a
crash, an exception of Python's, or a wait.
"""

from __future__ import annotations

import contextlib
import gc
import json
import pickle
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

Case = tuple[str, str, Any]
"""A name, the front-end ("schema", "regex", "lark", "gbnf"), and what it is given."""

MEMORY = 2 << 30
"""Bytes of address space of the child process, kernels included."""

SECONDS = 30
"""Processor seconds that one input may take."""

Schema = dict[str, Any]


def _letters(n: int) -> tuple[str, str]:
    return chr(97 + n % 26), chr(98 + n % 24)


def _doubling(n: int, link: Any, last: Schema) -> Schema:
    """Definitions each of which mentions the next several times: as a tree there would be 2 to the ``n``."""
    definitions = {f"d{i}": link({"$ref": f"#/$defs/d{i + 1}"}, i) for i in range(n)}
    return {"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{n}": last}}


def nested_schemas(depth: int) -> list[Case]:
    """Texts of schemas and values that are ``depth`` levels deep."""
    texts = {
        **{
            key: f'{{"{key}":[{{"type":"string"}},' * depth + "true" + "]}" * depth
            for key in ("anyOf", "allOf", "oneOf")
        },
        "not": '{"not":' * depth + '{"type":"string"}' + "}" * depth,
        "if": '{"if":{"minLength":3},"then":' * depth + "true" + ',"else":{"maxLength":9}}' * depth,
        "items": '{"items":' * depth + "true" + "}" * depth,
        "properties": '{"properties":{"a":' * depth + "true" + "}}" * depth,
        "additionalProperties": '{"additionalProperties":' * depth + "true" + "}" * depth,
        "const array": '{"const":' + "[" * depth + "]" * depth + "}",
        "const object": '{"const":' + '{"a":' * depth + "1" + "}" * depth + "}",
        "enum": '{"enum":[1,' + "[" * depth + "]" * depth + "]}",
        "many in enum": '{"enum":[' + ",".join(["[" * min(depth, 500) + "]" * min(depth, 500)] * 20) + "]}",
        "default": '{"default":' + "[" * depth + "]" * depth + "}",
        "an unknown word": '{"foo":' + "[" * depth + "]" * depth + "}",
    }
    return [(f"{name}, {depth} deep", "schema", text) for name, text in texts.items()]


def doubled_schemas(n: int) -> list[Case]:
    """``$ref`` to the next definition, twice."""
    one_of_four = {"enum": [1, 2, 3, 4]}
    schemas = {
        "allOf": _doubling(n, lambda ref, i: {"allOf": [ref, ref]}, {"type": "string"}),
        "anyOf": _doubling(n, lambda ref, i: {"anyOf": [ref, ref]}, {"type": "string"}),
        "oneOf": _doubling(n, lambda ref, i: {"oneOf": [ref, {"minLength": i}]}, {"type": "string"}),
        "properties": _doubling(
            n, lambda ref, i: {"properties": {"a": ref, "b": ref}, "required": ["a", "b"]}, {"type": "string"}
        ),
        "prefixItems": _doubling(
            n, lambda ref, i: {"type": "array", "prefixItems": [ref, ref], "minItems": 2, "items": False}, {"const": 1}
        ),
        "allOf and properties": _doubling(
            n, lambda ref, i: {"allOf": [ref, {"properties": {f"p{i}": ref}}]}, {"type": "object"}
        ),
        "not": _doubling(n, lambda ref, i: {"not": ref}, {"properties": {"a": {"const": 1}}, "required": ["a"]}),
        "uniqueItems": _doubling(
            n, lambda ref, i: {"type": "array", "uniqueItems": True, "minItems": 2, "items": ref}, one_of_four
        ),
        "uniqueItems of objects": _doubling(
            n,
            lambda ref, i: {"uniqueItems": True, "minItems": 2, "items": {"properties": {"a": ref, "b": ref}}},
            one_of_four,
        ),
    }
    return [(f"{name}, doubled {n} times", "schema", schema) for name, schema in schemas.items()]


def combined_schemas(n: int) -> list[Case]:
    """Keywords whose combinations are many."""
    numbers = range(n)
    patterns = [f"{_letters(i)[0]}.{{{i}}}{_letters(i)[1]}" for i in numbers]
    schemas: dict[str, Schema] = {
        "contains, maxContains": {"allOf": [{"contains": {"required": [f"a{i}"]}, "maxContains": 2} for i in numbers]},
        "contains, minContains": {"allOf": [{"contains": {"multipleOf": i + 2}, "minContains": 3} for i in numbers]},
        "contains, pattern": {"allOf": [{"contains": {"pattern": one}, "minContains": 2} for one in patterns]},
        "contains, uniqueItems": {
            "uniqueItems": True,
            "allOf": [{"contains": {"const": i}, "maxContains": 3} for i in numbers],
        },
        "patternProperties": {"patternProperties": {one: {"minimum": i} for i, one in enumerate(patterns)}},
        "patternProperties, minProperties": {
            "patternProperties": {f"a.{{{i}}}b": {"type": "string"} for i in numbers},
            "minProperties": 3,
        },
        "dependentSchemas": {
            "dependentSchemas": {f"a{i}": {"required": [f"a{i + 1}"], "properties": {f"b{i}": {}}} for i in numbers}
        },
        "dependentRequired": {"dependentRequired": {f"a{i}": [f"a{i + 1}", f"c{i}"] for i in numbers}},
        "oneOf": {"oneOf": [{"properties": {f"a{i}": {"type": "string"}}} for i in numbers]},
        "allOf, anyOf": {"allOf": [{"anyOf": [{"required": [f"a{i}"]}, {"required": [f"b{i}"]}]} for i in numbers]},
        "allOf, oneOf": {"allOf": [{"oneOf": [{"required": [f"a{i}"]}, {"required": [f"b{i}"]}]} for i in numbers]},
        "allOf, if": {
            "allOf": [
                {"if": {"properties": {f"a{i}": {"const": 1}}, "required": [f"a{i}"]}, "then": {"required": [f"b{i}"]}}
                for i in numbers
            ]
        },
        "allOf, pattern": {"type": "string", "allOf": [{"pattern": one} for one in patterns]},
        "not, anyOf, pattern": {"type": "string", "not": {"anyOf": [{"pattern": one} for one in patterns]}},
        "not, pattern, lengths": {
            "type": "string",
            "minLength": n,
            "maxLength": 1000,
            "allOf": [{"not": {"pattern": f"(a|b).{{{i}}}c"}} for i in numbers],
        },
        "unevaluatedProperties": {
            "anyOf": [{"properties": {f"a{i}": {"type": "integer"}}} for i in numbers],
            "unevaluatedProperties": False,
        },
        "unevaluatedItems": {
            "anyOf": [{"prefixItems": [{"const": i}] * i} for i in numbers if i],
            "unevaluatedItems": False,
        },
        "unevaluatedItems, contains": {
            "type": "array",
            "anyOf": [{"contains": {"const": i}} for i in numbers],
            "unevaluatedItems": False,
        },
        "propertyNames": {"propertyNames": {"allOf": [{"pattern": one} for one in patterns]}},
        "format": {"type": "string", "allOf": [{"format": one} for one in _FORMATS[:n]]},
        "not, format": {"type": "string", "allOf": [{"not": {"format": one}} for one in _FORMATS[:n]]},
        "multipleOf": {"allOf": [{"multipleOf": i + 3} for i in numbers]},
        "not, multipleOf": {"type": "integer", "allOf": [{"not": {"multipleOf": i + 3}} for i in numbers]},
        "definitions in a ring": {
            "$defs": {
                f"n{i}": {
                    "properties": {"a": {"$ref": f"#/$defs/n{(i + 1) % n}"}, "b": {"$ref": f"#/$defs/n{7 * i % n}"}}
                }
                for i in numbers
            },
            "allOf": [{"$ref": f"#/$defs/n{i}"} for i in numbers],
        },
        "$dynamicRef": {
            "$id": "http://x/",
            "$dynamicAnchor": "n",
            "properties": {f"a{i}": {"$dynamicRef": "#n"} for i in numbers},
            "anyOf": [
                {"$id": f"y{i}", "$dynamicAnchor": "n", "properties": {"z": {"$dynamicRef": "#n"}}} for i in numbers
            ],
        },
    }
    return [(f"{name}, {n} of them", "schema", schema) for name, schema in schemas.items()]


_FORMATS = (
    *(
        "date-time",
        "email",
        "uri",
        "ipv6",
        "hostname",
        "iri",
        "uuid",
        "json-pointer",
        "uri-template",
        "duration",
        "time",
    ),
    *("date", "ipv4", "relative-json-pointer", "idn-email", "uri-reference"),
)

_COUNTS = ("Length", "Items", "Properties", "Contains")


def numbered_schemas(number: str) -> list[Case]:
    """A number of JSON in every keyword that takes one."""
    texts = {
        "multipleOf": f'{{"multipleOf":{number}}}',
        "multipleOf within bounds": f'{{"type":"integer","multipleOf":{number},"minimum":-5,"maximum":1e15}}',
        "not multipleOf": f'{{"not":{{"multipleOf":{number}}}}}',
        "bounds": f'{{"minimum":-{number},"maximum":{number}}}',
        "open bounds": f'{{"type":"integer","exclusiveMinimum":-{number},"exclusiveMaximum":{number}}}',
        "const": f'{{"const":{number}}}',
        **{f"min{each}": f'{{"contains":{{"const":1}},"min{each}":{number}}}' for each in _COUNTS},
        **{f"max{each}": f'{{"contains":{{"const":1}},"max{each}":{number}}}' for each in _COUNTS},
        "not maxLength": f'{{"not":{{"maxLength":{number}}}}}',
        "minItems and uniqueItems": f'{{"type":"array","uniqueItems":true,"minItems":{number}}}',
        "maxItems and uniqueItems": f'{{"type":"array","uniqueItems":true,"maxItems":{number}}}',
        "maxLength and pattern": f'{{"type":"string","maxLength":{number},"pattern":"^(ab|c)*$"}}',
    }
    return [(f"{name} {number}", "schema", text) for name, text in texts.items()]


def long_schemas(n: int) -> list[Case]:
    """Lists of ``n`` things."""
    numbers = range(n)
    objects = [{"a": i} for i in numbers]
    schemas: dict[str, Schema] = {
        "numbers": {"enum": [i / 7 for i in numbers]},
        "small numbers": {"enum": [(i + 1) * 1e-9 for i in numbers]},
        "objects": {"enum": objects},
        "objects, typed": {"type": "object", "required": ["a"], "enum": objects},
        "objects, with properties": {"properties": {"a": {"type": "integer", "minimum": 3}}, "enum": objects},
        "objects, twice": {"allOf": [{"enum": objects}, {"enum": objects[::2]}]},
        "strings, twice": {"allOf": [{"enum": list(map(str, numbers))}, {"enum": list(map(str, range(0, 2 * n, 2)))}]},
        "numbers, twice": {"allOf": [{"enum": list(numbers)}, {"enum": list(range(0, 2 * n, 2))}]},
        "anyOf const": {"anyOf": [{"const": i} for i in numbers]},
        "anyOf const objects": {"anyOf": [{"const": each} for each in objects]},
        "oneOf const": {"oneOf": [{"const": i} for i in numbers]},
        "oneOf const objects": {"oneOf": [{"const": each} for each in objects]},
        "not numbers": {"not": {"enum": list(numbers)}},
        "not objects": {"not": {"enum": objects}},
        "allOf not const": {"allOf": [{"not": {"const": f"w{i}"}} for i in numbers]},
        "unique strings": {"uniqueItems": True, "items": {"enum": list(map(str, numbers))}},
        "unique objects": {"uniqueItems": True, "items": {"enum": objects}, "minItems": 3},
        "unique numbers": {"uniqueItems": True, "items": {"enum": list(numbers)}, "minItems": n},
        "unique multiples": {
            "uniqueItems": True,
            "items": {"type": "number", "allOf": [{"multipleOf": i + 1} for i in numbers]},
            "minItems": 3,
        },
        "unique objects of many members": {
            "uniqueItems": True,
            "items": {"type": "object", "required": [f"p{i}" for i in numbers]},
            "minItems": 3,
        },
        "large divisors": {"type": "number", "allOf": [{"multipleOf": 10**90 + i} for i in numbers]},
        "properties": {"properties": {f"p{i}": {"type": "string"} for i in numbers}},
        "required": {"required": [f"p{i}" for i in numbers]},
        "allOf properties": {"allOf": [{"properties": {f"p{i}": {"type": "string"}}} for i in numbers]},
        "anyOf properties": {"anyOf": [{"type": "object", "required": [f"p{i}"]} for i in numbers]},
        "anyOf minLength": {"anyOf": [{"type": "string", "minLength": i} for i in numbers]},
        "anyOf pattern": {"anyOf": [{"type": "string", "pattern": f"^x{i}y*$"} for i in numbers]},
        "alternatives in a pattern": {
            "type": "string",
            "pattern": "^(" + "|".join(f"w{i}[0-9]" for i in numbers) + ")$",
        },
        "patternProperties": {"patternProperties": {f"^w{i}$": {"const": i} for i in numbers}},
        "prefixItems": {"prefixItems": [{"const": i} for i in numbers]},
        "not prefixItems": {"not": {"prefixItems": [{"const": i} for i in numbers]}},
        "a chain of $ref": _doubling(n, lambda ref, i: ref, {"type": "string"}),
        "a chain of properties": _doubling(
            n, lambda ref, i: {"properties": {"a": ref}, "required": ["a"]}, {"const": 1}
        ),
        "a chain of allOf": _doubling(n, lambda ref, i: {"allOf": [ref, {"minLength": i}]}, {"type": "string"}),
        "a chain of dependentRequired": {"dependentRequired": {f"a{i}": [f"a{i + 1}"] for i in numbers}},
        "a long pattern": {"type": "string", "pattern": "a?" * n + "a" * n},
        "a long string": {"const": "é\n" * n * 10},
        "a long key": {"properties": {"k" * n * 10: {}}, "required": ["k" * n * 10]},
    }
    return [(f"{name}: {n}", "schema", schema) for name, schema in schemas.items()]


def regexes(n: int) -> list[Case]:
    """Patterns with counts in counts, look-arounds and large sets; ``n`` (up to 10,000) says how long they are."""
    some = range(min(n // 50, 100) + 1)
    deep = min(n, 99)
    texts = {
        "counts in counts": "(((a{99}){99}){99})",
        "ranges in ranges": "((((a|b){2,50}){2,50}){2,50}){2,50}",
        "counts, deep": "(" * deep + "a" + "){1,3}" * deep,
        "stars, deep": "(" * deep + "a*" + ")*" * deep,
        "a great count": "(ab?){0,1000000}b.{100000}x",
        "groups": "(" * n + "a" + ")" * n,
        "open groups": "(" * n,
        "a back-reference": r"(a+)\1",
        "back-references": r"([\x00-\xfe])" + r"x\1" * n,
        "a back-reference far away": "(a|b)" + "x" * n + r"\1" * n,
        "back-references to long texts": r"([a-p]{2}x{254})" + r"\1" * n,
        "a back-reference behind a long part": r"([\x00-\xfe])(?:" + "x" * 10 * n + r")\1",
        "a back-reference behind many parts": r"([\x00-\xfe])(?:" + "xy|" * n + r"y)\1",
        "a back-reference to nothing": r"((?:|){0,1000000})\1",
        "back-references to many groups": "".join(rf"(a|a)\{i}" for i in range(1, min(n, 100))),
        "a long look-behind": "(?<=a{3,9})b(?<=.{30})a",
        "a set": "[" + "".join(chr(0x4E00 + 2 * i) for i in range(n)) + "]",
        "sets": "".join(f"[{chr(0x100 + 3 * i)}-{chr(0x10000 + 7 * i)}]" for i in range(n)),
        "case": "(?i)" + "straßeſK" * n,
        "case of a set": r"(?i)[\u0000-\uffff]{50}",
        "words": r"\b\w+\b " * len(some),
        "words, counted": r"(?:\b\w*\b\W*){50}",
        "look-aheads": "(?=.*a)" * len(some) + ".*",
        "negative look-aheads": "".join(f"(?!.*{_letters(i)[0]}.{{{i}}}x)" for i in some) + ".*",
        "nested look-aheads": "(?!a" * deep + ")" * deep + ".*",
        "edges in a loop": "(?:(?<![a-c])x|y(?!z)){2,60}(?:(?<!q)w)*",
        "guarded loops": "".join(f"(?:(?!{_letters(i)[0]}{_letters(i)[1]}).)*" for i in some),
        "alternatives": "|".join(f"w{i}" for i in range(n)),
        "alternatives, deep": "(a|" * deep + "b" + ")" * deep,
        "nothing or something": "a?" * n + "a*" * n,
        "anchors": "^" * n + "a" + "$" * n,
        "lines": "(?m)" + "(^a$\n)" * len(some),
        "counters within counters": "(" * 20 + "a" + "{0,1000000})" * 20,
        "primes": "".join(f"(?=(?:.{{{p}}})*$)" for p in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)) + ".*",
        "loops in loops": "(a+)+$" * n,
        "a far look-ahead in a loop": "(?:a(?=.{20}b).)*",
        "names": "".join(f"(?P<n{i}>a)" for i in range(n)),
        "a surrogate": "\ud800",
    }
    return [(f"{name}, {n}", "regex", text) for name, text in texts.items()]


def larks(n: int) -> list[Case]:
    """Grammars in Lark's notation; ``n`` says how long they are."""
    texts = {
        "groups": "start: " + "(" * n + '"a"' + ")" * n,
        "options": "start: " + "[" * n + '"a"' + "]" * n,
        "stars": "start: " + "(" * n + '"a"' + ")*" * n,
        "a deep terminal": "start: A\nA: " + "(" * n + '"a"' + ")*" * n,
        "rules": "start: r0\n" + "".join(f'r{i}: r{i + 1} | "a{i}"\n' for i in range(n)) + f'r{n}: "x"\n',
        "terminals": "start: T0\n" + "".join(f'T{i}: T{i + 1} "a"\n' for i in range(n)) + f'T{n}: "x"\n',
        "doubled terminals": "start: T0\n" + "".join(f"T{i}: T{i + 1} T{i + 1}\n" for i in range(60)) + 'T60: "x"\n',
        "doubled rules": "start: r0\n" + "".join(f"r{i}: r{i + 1} r{i + 1}\n" for i in range(60)) + 'r60: "x"\n',
        "templates in a ring": 'start: a{"x"}\na{p}: a{p} | b{p}\nb{q}: a{q}\n',
        "a growing template": 'start: a{"x"}\na{p}: p | a{b{p}}\nb{q}: q q\n',
        "a doubling template": 'start: a{"x"}\na{p}: p | a{b{p,p}}\nb{q,r}: q r | a{r}\n',
        "a great count": 'start: ("a" | "b" "c")~0..1000000',
        "counts in counts": "start: " + "(" * 20 + '"a"' + "~50)" * 20,
        "counts in counts of a terminal": "start: A\nA: " + "(" * 20 + '"a"' + "~50)" * 20,
        "a recursive terminal": "start: A\nA: B\nB: A\n",
        "look-around": "start: A\nA: /(?=.*a)(?!b)[a-z]{1,1000}/ B\nB: /(?<=x)y/",
        "alternatives": "start: " + " | ".join(f'"w{i}"' for i in range(n)),
        "empty rules": "start: a*\na: b* c*\nb:\nc: b c | ",
        "recursion on all sides": 'start: start start | start start start | "a" |',
        "hidden recursion": 'start: a start a | "x"\na:\n',
        "optional names": "start: " + "a? " * n + '\na: "x"?\n',
        "a long name": "a" * n + ': "a"\nstart: ' + "a" * n,
        "blank lines": "\n" * n + 'start: "a"',
        "nothing": "\0",
    }
    return [(f"{name}, {n}", "lark", text) for name, text in texts.items()]


def gbnfs(n: int) -> list[Case]:
    """Grammars in GBNF; ``n`` says how long they are."""
    texts = {
        "groups": "root ::= " + "(" * n + '"a"' + ")" * n,
        "stars": "root ::= " + "(" * n + '"a"' + ")*" * n,
        "stars of a rule": "root ::= " + "(" * n + "r" + ")*" * n + '\nr ::= "x"',
        "rules": "root ::= r0\n" + "".join(f'r{i} ::= r{i + 1} | "a"\n' for i in range(n)) + f'r{n} ::= "x"\n',
        "doubled rules": "root ::= r0\n"
        + "".join(f"r{i} ::= r{i + 1} r{i + 1}\n" for i in range(60))
        + 'r60 ::= "x"\n',
        "counts in counts": "root ::= " + "(" * 20 + '"a"' + "{50})" * 20,
        "counts in counts of a rule": "root ::= " + "(" * 20 + "r" + "{50})" * 20 + '\nr ::= "x"',
        "ranges in ranges": "root ::= " + "(" * 8 + "[a-z]" + "{2,999})" * 8,
        "a set": "root ::= [" + "".join(chr(0x4E00 + 2 * i) for i in range(n)) + "]",
        "sets": "root ::= " + "[^a]" * n,
        "alternatives": "root ::= " + " | ".join(f'"w{i}"' for i in range(n)),
        "recursion on all sides": 'root ::= root root | root root root | "a" |',
        "itself": "root ::= root",
        "nothing": "",
        "open groups": "root ::= " + "(" * n,
        "a long literal": 'root ::= "' + "ab" * n + '"',
        "optional names": "root ::= " + "a? " * n + '\na ::= "x"?',
    }
    return [(f"{name}, {n}", "gbnf", text) for name, text in texts.items()]


def _forget_peak() -> None:
    """Let the most memory that this process had be counted from now on, where the system can."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_megabytes() -> int:
    """The most resident memory that this process had, since :func:`_forget_peak` on Linux."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) >> 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def judge(cases: list[Case], timeout: float) -> list[str]:
    """What is wrong with how the front-ends treat some inputs, each read and used in a child process.

    An input that ends the process ends the list: the last line names it.  The inputs that took the most processor
    time and the most memory are printed.
    """
    child = subprocess.run(
        [sys.executable, "-c", "import hostile_inputs; hostile_inputs.main()"],
        input=pickle.dumps(cases),
        capture_output=True,
        timeout=timeout,
        check=False,
    )
    lines = child.stdout.decode().splitlines()
    wrong = [line for line in lines if not line.startswith(("begin ", "took "))]
    took = [line.removeprefix("took ").split(" ", 2) for line in lines if line.startswith("took ")]
    assert len(took) == len(cases) or child.returncode, f"{len(took)} of {len(cases)} inputs were judged"
    for seconds, megabytes, name in sorted(took, key=lambda each: float(each[0]))[:-4:-1]:
        print(f"{float(seconds):6.2f} s {megabytes:>5} MB  {name}")
    for seconds, megabytes, name in sorted(took, key=lambda each: int(each[1]))[:-3:-1]:
        print(f"{float(seconds):6.2f} s {megabytes:>5} MB  {name} (memory)")
    if child.returncode:
        last = [line for line in lines if line.startswith("begin ")][-1:]
        wrong.append(f"the process ended with {child.returncode}: {last} {child.stderr.decode()[-500:]}")
    return wrong


def main() -> None:
    """The child process: cases on the standard input, what is wrong on the standard output."""
    import numpy as np

    import constrain

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    tokens = [bytes([byte]) for byte in range(256)] + [b"</s>", b'{"', b'"a":', b"aaaa", b"    "]
    compiler = constrain.GrammarCompiler(constrain.Vocabulary(tokens, eos_ids=[256]), cache_limit_bytes=0)
    mask = constrain.allocate_token_bitmask(1, len(tokens))
    make = {
        "schema": constrain.Grammar.from_json_schema,
        "regex": constrain.Grammar.from_regex,
        "lark": constrain.Grammar.from_lark,
        "gbnf": constrain.Grammar.from_gbnf,
    }

    def use(kind: str, given: Any) -> str | None:
        try:
            compiled = compiler.compile(make[kind](given))
            matcher = constrain.Matcher(compiled)
            for _ in range(6):
                matcher.fill_next_token_bitmask(mask)
                allowed = np.flatnonzero(np.unpackbits(mask[0].view(np.uint8), bitorder="little")[: len(tokens)])
                if not len(allowed):
                    return "a mask without tokens"
                matcher.accept_token(int(allowed[len(allowed) // 2]))
                if matcher.is_terminated():
                    break
            constrain.Matcher(compiled, max_tokens=300).fill_next_token_bitmask(mask)
        except constrain.ConstrainError as error:
            text = str(error)
            return f"a message of {len(text)} characters" if "\n" in text or len(text) > 3000 else None
        except Exception as error:
            return f"{type(error).__name__}: {error}"[:300]
        return None

    for name, kind, given in pickle.load(sys.stdin.buffer):
        print(f"begin {kind} {name}", flush=True)
        _forget_peak()
        begin = time.process_time()
        wrong = use(kind, json.dumps(given) if isinstance(given, dict) else given)
        # A compiled grammar holds address space until it is collected.
        gc.collect()
        seconds = time.process_time() - begin
        print(f"took {seconds:.3f} {_peak_megabytes()} {kind} {name}", flush=True)
        if wrong is None and seconds > SECONDS:
            wrong = f"{seconds:.1f} s"
        if wrong is not None:
            print(f"{kind} {name}: {wrong}", flush=True)
