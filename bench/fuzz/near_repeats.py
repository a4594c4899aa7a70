"""Kind "near_repeats": walks that write again what stands before, in grammars of schemas of things that must differ.

Where things must differ, what is wrong shows behind a beginning of what was there: a random walk seldom writes one.
These walks copy earlier pieces of the text for some bytes and then go on at random.  Behind each token now and then
each next one is tried, whether something goes on behind it.  Validators judge the texts, and instances made of them: an
item or a member less, once more, or in another place.
"""

from __future__ import annotations

import copy
import json
import random
from dataclasses import dataclass
from functools import cache
from typing import Any

import constrain
from bench.fuzz import unique_made, vocabularies
from bench.fuzz.protocol import Budget, Counts, Difference, Kind
from bench.fuzz.schemas import Judges
from bench.judge import NoVerdict
from constrain.engine.vocabulary.bitmasks import ids_in_mask
from constrain.grammar.tools.styles import STYLES

_LONGEST = 300
_CLOSING = b'"}],:0123456789'


class _Walk:
    """One walk."""

    def __init__(self, compiled: constrain.CompiledGrammar, rng: random.Random, most: int | None) -> None:
        self._rng = rng
        self._tokens = compiled.vocabulary.tokens
        self._eos = set(compiled.vocabulary.eos_ids)
        self._mask = constrain.allocate_token_bitmask(1, compiled.vocabulary.size)
        self._most = most
        self.matcher = constrain.Matcher(compiled, max_tokens=most)
        self.text = b""

    def allowed(self, matcher: constrain.Matcher) -> list[int]:
        matcher.fill_next_token_bitmask(self._mask)
        return ids_in_mask(self._mask[0]).tolist()  # type: ignore[no-any-return]

    def run(self, counts: Counts) -> str:
        """What is wrong; "" if nothing is, and the text is whole."""
        rng = self._rng
        free = rng.randrange(20, 60)
        copying = rng.choice((0.2, 0.5, 0.9))
        for step in range(_LONGEST):
            found = self.allowed(self.matcher)
            counts["masks"] += 1
            if not found:
                return f"nothing goes on behind {self.text!r}"
            ends = [token for token in found if token in self._eos]
            if bool(ends) != self.matcher.is_accepting():
                return f"is_accepting() is not what the mask says behind {self.text!r}"
            rest = [token for token in found if token not in self._eos and self._tokens[token]]
            if ends and (not rest or step > free or rng.random() < 0.05):
                return ""
            if not rest:
                return f"nothing goes on behind {self.text!r} but tokens without a text"
            if rng.random() < 0.08:
                for token in rng.sample(rest, min(len(rest), 300)):
                    ahead = self.matcher.fork()
                    if not ahead.accept_token(token):
                        return f"behind {self.text!r}: {self._tokens[token]!r} is in the mask, and refused"
                    if not self.allowed(ahead):
                        return f"nothing goes on behind {self.text + self._tokens[token]!r}"
                counts["steps ahead"] += len(rest)
            token = self._next(rest, step > free, copying)
            if not self.matcher.accept_token(token):
                return f"behind {self.text!r}: {self._tokens[token]!r} is in the mask, and refused"
            self.text += self._tokens[token]
        counts["walks without an end"] += 1
        return "long"

    def _next(self, rest: list[int], is_late: bool, copying: float) -> int:
        rng = self._rng
        if rng.random() < copying and self.text:
            # Go on as somewhere before behind the same byte.
            places = [at + 1 for at in range(len(self.text) - 1) if self.text[at] == self.text[-1]]
            if places:
                place = rng.choice(places[-40:])
                good = [token for token in rest if self.text.startswith(self._tokens[token], place)]
                if good:
                    return rng.choice(good)
        if is_late:
            good = [token for token in rest if self._tokens[token][0] in b'"}]']
            good = good or [token for token in rest if self._tokens[token][0] in _CLOSING]
            if good and rng.random() < 0.8:
                return rng.choice(good)
        if rng.random() < 0.5:
            # Structure rather than what stands in strings.
            good = [token for token in rest if self._tokens[token][0] in b'"{}[],:tfn1']
            if good:
                return rng.choice(good)
        return rng.choice(rest)


def _changed(value: Any, rng: random.Random) -> Any:
    """A value with an item or a member less, once more, or in another place, somewhere."""
    value = copy.deepcopy(value)
    inner: list[Any] = []

    def collect(part: Any) -> None:
        if isinstance(part, (list, dict)) and part:
            inner.append(part)
            for each in part if isinstance(part, list) else part.values():
                collect(each)

    collect(value)
    if not inner:
        return value
    for _ in range(rng.randint(1, 2)):
        part, other = rng.choice(inner), rng.choice(inner)
        if isinstance(part, list):
            what = rng.randrange(4)
            if what == 0 and part:
                del part[rng.randrange(len(part))]
            elif what == 1 and part:
                part.append(copy.deepcopy(rng.choice(part)))
            elif what == 2:
                rng.shuffle(part)
            elif isinstance(other, list) and other:
                part.append(copy.deepcopy(rng.choice(other)))
        elif part:
            key = rng.choice([*part])
            what = rng.randrange(4)
            if what == 0:
                del part[key]
            elif what == 1:
                part[rng.choice(("a", "b", "ab", "k1"))] = copy.deepcopy(part[key])
            elif isinstance(other, dict) and other:
                part[rng.choice([*other])] = copy.deepcopy(rng.choice([*other.values()]))
    return value


def _instances(
    compiled: constrain.CompiledGrammar, text: bytes, case: _Case, rng: random.Random, counts: Counts
) -> str:
    """What is wrong with the verdicts on values much like that of a text."""
    try:
        value = json.loads(text)
    except (ValueError, OverflowError):
        # Numbers beyond Python's limits.
        return ""
    for _ in range(3):
        changed = json.dumps(_changed(value, rng), ensure_ascii=False, separators=(",", ":"))
        valid, reason = case.ways[0][0].verdict(changed, counts)
        if valid is None or "e+" in changed or "e-" in changed or "Infinity" in changed:
            continue
        counts["instances"] += 1
        matcher = constrain.Matcher(compiled)
        try:
            accepted = matcher.accept_bytes(changed.encode()) and matcher.is_accepting()
        except constrain.LimitError:
            continue
        if accepted and not valid:
            return f"the instance {changed!r} is accepted, and is not valid: {reason}"
        if valid and not accepted and case.takes_all:
            return f"the instance {changed!r} is valid, and refused"
    return ""


def _options(rng: random.Random) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if rng.random() < 0.6:
        options["property_order"] = "any"
    return options | rng.choice((*_PLAIN_LAYOUTS, *_PLAIN_LAYOUTS, *_OTHER_LAYOUTS))


# In these each value has a text that json.dumps writes without white space.
_PLAIN_LAYOUTS: tuple[dict[str, Any], ...] = ({"whitespace": "compact"}, {}, {"separators": (",", ":")})
_OTHER_LAYOUTS: tuple[dict[str, Any], ...] = (
    {"spelling": "canonical", "whitespace": "compact"},
    {"numbers": "plain", "max_whitespace": 2},
    {"indent": 2},
    {"ensure_ascii": True},
)


_large = cache(vocabularies.large)


def _vocabulary(rng: random.Random) -> constrain.Vocabulary:
    what = rng.randrange(4)
    if what == 0:
        return vocabularies.odd() if rng.random() < 0.7 else _large()
    if what == 1:
        return vocabularies.small()
    pieces = {
        b'","',
        b'"},{"',
        b'"],["',
        b'":',
        b'"a":',
        b'":1,"',
        b"1,1",
        b"],[",
        b"},{",
        b'":{"',
        b"\xa9",
        b"\xc3\xa9\xc3",
    }
    alphabet = 'ab",:[]{}1é0.e\\u6 '
    for _ in range(rng.choice((0, 40))):
        pieces.add("".join(rng.choices(alphabet, k=rng.randint(2, 6))).encode())
    tokens = [*(bytes([byte]) for byte in range(256)), *sorted(pieces), b"</s>"]
    return constrain.Vocabulary(tokens, eos_ids=[len(tokens) - 1])


@dataclass
class _Case:
    """A grammar, and who judges its texts.

    Attributes
    ----------
    ways : list of lists
        What a text is made of, one behind the other: marks, and the judges of values.  No way: nobody judges.
    takes_all : bool or None
        Whether each valid value has a text without white space, in any order; None if instances are not tried.
    """

    grammar: constrain.Grammar
    told: str
    ways: list[list[bytes | Judges]]
    takes_all: bool | None = None

    def judged(self, text: bytes, counts: Counts) -> str:
        """What is wrong with a text."""
        if self.grammar.warnings or not self.ways:
            counts["texts that nobody judges"] += 1
            return ""
        try:
            said = text.decode()
        except UnicodeDecodeError:
            return f"{text!r} is allowed, and is no UTF-8"
        reasons = []
        for way in self.ways:
            verdict = _reason(way, said, counts)
            if not verdict:
                return ""
            reasons.append(verdict)
        return f"{said!r} is allowed, and is not valid: {'; '.join(reasons)}"


def _reason(way: list[bytes | Judges], text: str, counts: Counts) -> str:
    place = 0
    for part in way:
        if isinstance(part, bytes):
            if not text.startswith(part.decode(), place):
                return f"no {part!r} at {place}"
            place += len(part.decode())
            continue
        try:
            _, end = json.JSONDecoder(parse_int=str).raw_decode(text, place)
        except ValueError:
            return f"no value at {place}"
        valid, reason = part.verdict(text[place:end], counts)
        if valid is None:
            counts["without a verdict"] += 1
        elif not valid:
            return reason
        place = end
    return "" if place == len(text) else f"something behind the end at {place}"


def _of_one(rng: random.Random) -> _Case:
    schema, options = unique_made.schema(rng), _options(rng)
    told = f"schema = {schema!r}\noptions = {options!r}"
    ways: list[list[bytes | Judges]] = [[Judges(copy.deepcopy(schema))]]
    takes_all = any(options == {"property_order": "any", **layout} for layout in _PLAIN_LAYOUTS)
    return _Case(constrain.Grammar.from_json_schema(schema, **options), told, ways, takes_all)


def _of_several(rng: random.Random) -> _Case:
    """Values behind each other, or in the place of each other, in a Lark grammar or a structural tag."""
    is_lark, any_order = rng.random() < 0.5, rng.random() < 0.5
    schemas = [unique_made.schema(rng) for _ in range(rng.choice((2, 2, 3)))]
    if rng.random() < 0.6:
        schemas = [{**schema, "x-guidance": {"whitespace_flexible": False}} for schema in schemas]
    judges = [
        Judges({key: value for key, value in copy.deepcopy(each).items() if key != "x-guidance"}) for each in schemas
    ]
    ways: list[list[bytes | int]] = [
        [rng.choice((b"", b"[", b'"')), place, rng.choice((b";", b"]x", b'";'))] for place in range(len(schemas))
    ]
    if rng.random() < 0.4:
        ways.append([0, b"!"])
    if rng.random() < 0.7:
        ways = [[each for way in ways for each in way]]
    ways = [[each for each in way if each != b""] for way in ways]
    judged: list[list[bytes | Judges]] = [
        [each if isinstance(each, bytes) else judges[each] for each in way] for way in ways
    ]
    if is_lark:
        start = " | ".join(
            " ".join(json.dumps(e.decode()) if isinstance(e, bytes) else f"v{e}" for e in way) for way in ways
        )
        lark = "\n".join(
            [f"start: {start}", *(f"v{index}: %json {json.dumps(each)}" for index, each in enumerate(schemas))]
        )
        return _Case(constrain.Grammar.from_lark(lark), f"lark = {lark!r}", judged)
    elements = [
        {
            "type": "sequence",
            "elements": [
                {"type": "const_string", "value": each.decode()}
                if isinstance(each, bytes)
                else {"type": "json_schema", "json_schema": schemas[each], "any_order": any_order}
                for each in way
            ],
        }
        for way in ways
    ]
    tag = {"type": "structural_tag", "format": {"type": "or", "elements": elements}}
    return _Case(constrain.Grammar.from_structural_tag(tag), f"tag = {tag!r}", judged)


def _of_limited(rng: random.Random) -> _Case:
    """A value of which only so many tokens may come, between others; it may be cut off."""
    schemas = [unique_made.schema(rng) for _ in range(2)]
    names = [f"v{index}" + rng.choice(("", f"[max_tokens={rng.choice((1, 3, 10, 30))}]")) for index in range(2)]
    rules = [f"{name}: %json {json.dumps(each)}" for name, each in zip(names, schemas, strict=True)]
    lark = "\n".join([f'start: v0 ";" v1 {rng.choice(("v0", ""))}', *rules])
    return _Case(constrain.Grammar.from_lark(lark), f"lark = {lark!r}", [])


def _of_tools(rng: random.Random) -> _Case:
    tools = [
        {
            "type": "function",
            "function": {"name": f"f{index}", "parameters": {**unique_made.arguments(rng), "type": "object"}},
        }
        for index in range(rng.choice((1, 2)))
    ]
    options = {
        "style": rng.choice([*STYLES]),
        "tool_choice": rng.choice(("required", "required", "auto", "f0")),
        "parallel": rng.random() < 0.5,
        "reasoning": rng.random() < 0.3,
        "property_order": rng.choice(("schema", "any")),
        "closed": rng.random() < 0.6,
    }
    return _Case(constrain.Grammar.from_tools(tools, **options), f"tools = {tools!r}\noptions = {options!r}", [])


def run(rng: random.Random, budget: Budget) -> Counts:
    counts: Counts = Counts()
    make = rng.choices((_of_one, _of_several, _of_limited, _of_tools), (5, 3, 1, 2))[0]
    for _ in range(6):
        try:
            case = make(rng)
            compiled = constrain.GrammarCompiler(_vocabulary(rng), cache_limit_bytes=0).compile(case.grammar)
            break
        except (NoVerdict, constrain.ConstrainError, ValueError):
            counts["refused"] += 1
    else:
        return counts
    counts["grammars" + make.__name__.replace("_", " ")] += 1
    for _ in range(6):
        most = None
        if rng.random() < 0.4:
            try:
                most = len(constrain.Matcher(compiled).completion()) + rng.choice((0, 1, 2, 5, 20, 60))
                constrain.Matcher(compiled, max_tokens=most)
            except constrain.ConstrainError:
                counts["refused budgets"] += 1
                most = None
        walk = _Walk(compiled, rng, most)
        try:
            wrong = walk.run(counts)
        except constrain.LimitError:
            counts["walks beyond a limit"] += 1
            continue
        if wrong == "long":
            continue
        wrong = wrong or case.judged(walk.text, counts)
        counts["texts"] += 1
        if not wrong and case.takes_all is not None:
            wrong = _instances(compiled, walk.text, case, rng, counts)
        if wrong:
            raise Difference(wrong, f"{case.told}\nmax_tokens = {most}, tokens = {compiled.vocabulary.tokens[256:]}")
    return counts


KIND = Kind(
    "near_repeats",
    "texts of walks that copy, and instances made of them, by jsonschema, and by jsonschema-rs where it is installed",
    run,
    24,
    {"texts": 100, "steps ahead": 5000, "instances": 100},
)
