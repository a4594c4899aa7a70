"""Kind "schemas": random JSON Schemas; texts of random walks, and random instances, are judged by other validators.

Each text that masks lead to must be valid, and each valid instance must be accepted in some spelling.  The validators
are ``jsonschema``, made exact (bench/judge.py), and ``jsonschema-rs`` where it is installed.  Where they disagree there
is no verdict; how often is counted.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

import constrain
from bench.fuzz import protocol, schemas_made, vocabularies
from bench.fuzz.protocol import Budget, Counts, Difference, Kind, isolated
from bench.judge import Judge, NoVerdict, RepeatedKey
from bench.walks import Walker

try:
    import jsonschema_rs
except ImportError:
    jsonschema_rs = None

_WALKS = 10
_INSTANCES = 12


class Judges:
    """All validators of one schema."""

    def __init__(self, schema: Any) -> None:
        self._python = Judge(schema)
        self._rust = None
        if jsonschema_rs is not None:
            self._rust = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)

    def verdict(self, text: str, counts: Counts) -> tuple[bool | None, str]:
        """Whether a text is valid, by all; None where they disagree, or one cannot say; and why it is not."""
        try:
            reason = self._python.verdict(text)
        except NoVerdict:
            return None, ""
        except RepeatedKey as error:
            return False, f"the key {error} stands twice"
        if self._rust is not None:
            counts["verdicts of two"] += 1
            try:
                other = self._rust.is_valid(json.loads(text))
            except ValueError:
                return None, ""
            if other != (not reason):
                counts["validators disagree"] += 1
                return None, reason
        return not reason, reason


def _spellings(instance: Any, rng: random.Random) -> list[str]:
    """The same value in several spellings; one of them must be accepted."""
    found = [json.dumps(instance, ensure_ascii=ascii_only) for ascii_only in (False, True)]
    # Multiples have no exponents.
    return [
        *found,
        *(json.dumps(each, separators=(",", ":"), ensure_ascii=False) for each in (instance, _plain(instance))),
    ]


def _plain(value: Any) -> Any:
    """The same value, in which what is an integer is written as one."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _check(schema: Any, options: dict[str, Any], seed: int, counts: Counts) -> str:
    rng = random.Random(seed)
    try:
        judges = Judges(schema)
    except (NoVerdict, ValueError):
        counts["schemas that a validator does not read"] += 1
        return ""
    vocabulary = vocabularies.small()
    compiled: constrain.CompiledGrammar | None = None
    counts["schemas"] += 1
    try:
        grammar = constrain.Grammar.from_json_schema(schema, **options)
        compiled = constrain.CompiledGrammar(grammar.ir, vocabulary)
        if grammar.warnings:
            counts["schemas with warnings"] += 1
    except constrain.LimitError:
        counts["refused by a limit"] += 1
        return ""
    except constrain.SchemaError as error:
        if "not supported" in str(error):
            counts["refused as not supported"] += 1
            return ""
        counts["refused as empty"] += 1
    if compiled is not None:
        walker = Walker(vocabulary, rng, free=30, limit=400)
        for _ in range(_WALKS):
            counts["walks"] += 1
            try:
                walk = walker.walk(compiled)
            except constrain.LimitError:
                # Of single texts some are beyond a limit that is stated, such as numbers of very many digits.
                counts["walks beyond a limit"] += 1
                continue
            if walk.end == "long":
                counts["walks without an end"] += 1
                continue
            if walk.end == "stuck":
                return f"nothing goes on after {walk.text!r}"
            valid, reason = judges.verdict(walk.text.decode(), counts)
            if valid is None:
                counts["walks without a verdict"] += 1
            elif not valid and not grammar.warnings:
                return f"the text {walk.text.decode()!r} is allowed, and is not valid: {reason}"
    for _ in range(_INSTANCES):
        instance = schemas_made.instance(rng, schema)
        texts = _spellings(instance, rng)
        valid, reason = judges.verdict(texts[0], counts)
        if not valid:
            # All spellings of an invalid one must be refused.
            if valid is False and compiled is not None and not grammar.warnings:
                counts["invalid instances"] += 1
                for text in texts:
                    if accepts(compiled, text):
                        return f"the instance {text!r} is accepted, and is not valid: {reason}"
            continue
        counts["valid instances"] += 1
        if compiled is None:
            return f"refused as empty, and {texts[0]!r} is valid"
        if options.get("property_order") != "any" and _has_several_keys(instance):
            continue
        if not any(accepts(compiled, text) for text in texts):
            return f"the instance {texts[0]!r} is valid, and refused"
    return ""


def accepts(compiled: constrain.CompiledGrammar, text: str) -> bool:
    """Whether a text is one of a grammar."""
    matcher = constrain.Matcher(compiled)
    return matcher.accept_bytes(text.encode()) and matcher.is_accepting()


def _has_several_keys(value: Any) -> bool:
    if isinstance(value, dict):
        return len(value) > 1 or any(map(_has_several_keys, value.values()))
    return isinstance(value, list) and any(map(_has_several_keys, value))


def _simpler(schema: Any) -> list[Any]:
    """Schemas with one thing less."""
    found: list[Any] = []
    if isinstance(schema, dict):
        for key, value in schema.items():
            rest = {name: each for name, each in schema.items() if name != key}
            found.append(rest)
            found += [{**schema, key: less} for less in _simpler(value)]
    elif isinstance(schema, list):
        found += [schema[:i] + schema[i + 1 :] for i in range(len(schema)) if len(schema) > 1]
        found += [[*schema[:i], less, *schema[i + 1 :]] for i, each in enumerate(schema) for less in _simpler(each)]
    return found


def judge(schema: Any, check: Callable[[Any, Counts], str], counts: Counts, tries: int, options: str) -> None:
    """Raise Difference if ``check`` says that something is wrong with a schema; in a careful run with a simpler one.

    Of simpler schemas up to ``tries`` are checked.  ``options`` stands behind the schema in the case.
    """

    def said(made: Any, counts: Counts) -> str:
        # A validator may change what it is given.
        return isolated(lambda: check(copy.deepcopy(made), counts))

    wrong = said(schema, counts)
    if not wrong:
        return
    left = tries if protocol.is_careful else 0
    todo = _simpler(schema)
    while todo and left > 0:
        left -= 1
        less = todo.pop(0)
        what = said(less, Counts())
        if what and not what.startswith("Traceback"):
            schema, wrong, todo = less, what, _simpler(less)
    raise Difference(wrong, f"schema = {schema!r}\n{options}")


def run(rng: random.Random, budget: Budget) -> Counts:
    counts: Counts = Counts()
    schema = schemas_made.schema(rng)
    options: dict[str, Any] = {"property_order": "any"} if rng.random() < 0.6 else {}
    if rng.random() < 0.3:
        options["whitespace"] = rng.choice(("compact", "flexible"))
    seed = rng.randrange(1 << 30)
    judge(schema, lambda made, found: _check(made, options, seed, found), counts, 250, f"options = {options}")
    return counts


KIND = Kind(
    "schemas",
    "texts of walks and random instances by jsonschema, and by jsonschema-rs where it is installed",
    run,
    60,
    {"schemas": 55, "walks": 400, "valid instances": 100},
    lambda: "",
)
