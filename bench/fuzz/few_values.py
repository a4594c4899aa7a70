"""Kind "few_values": schemas with so few values that all texts are written down; each mask is judged by the list.

A grammar holds one schema, or several behind each other, or alternatives.  The values are those of the candidates that
validators call valid; the texts are those of them that the engine accepts, byte by byte, in a grammar of that schema
alone; each value must have one.  Then masks must allow a token exactly if some text goes on with it.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import constrain
from bench.fuzz import budgets, few_values_made, vocabularies
from bench.fuzz.finite_texts import Texts
from bench.fuzz.protocol import Budget, Counts, Difference, Kind
from bench.fuzz.schemas import Judges
from constrain.engine.vocabulary.bitmasks import ids_in_mask

_MOST_TEXTS = 4000
_BYTES = constrain.Vocabulary([*(bytes([byte]) for byte in range(256)), b"</s>"], eos_ids=[256])


Parts = Sequence[Texts]
"""Languages that stand one behind the other."""


def _begins(parts: Parts, text: bytes, first: int = 0) -> bool:
    """Whether ``text`` is the beginning of a text of these parts, from one on."""
    if first == len(parts):
        return not text
    return parts[first].is_viable(text) or any(_begins(parts, text[n:], first + 1) for n in parts[first].heads(text))


def _following(parts: Parts, text: bytes, first: int = 0) -> set[int]:
    """The bytes that may follow the beginning of a text of these parts."""
    if first == len(parts):
        return set()
    behind = (_following(parts, text[n:], first + 1) for n in parts[first].heads(text))
    return parts[first].following(text).union(*behind)


def _is_whole(parts: Parts, text: bytes, first: int = 0) -> bool:
    if first == len(parts):
        return not text
    return any(_is_whole(parts, text[n:], first + 1) for n in parts[first].heads(text))


@dataclass
class Case:
    """A grammar, and the alternatives of which each is a sequence of languages."""

    source: str
    grammar: constrain.Grammar
    ways: list[Parts]
    is_open: bool = False
    _known: dict[bytes, frozenset[int]] = field(default_factory=dict)

    def onward(self, text: bytes, tokens: Sequence[bytes]) -> frozenset[int]:
        """The tokens after which a text can still be completed, out of those of one vocabulary."""
        if text not in self._known:
            first = set().union(*(_following(parts, text) for parts in self.ways))
            self._known[text] = frozenset(
                token
                for token, data in enumerate(tokens)
                if data and data[0] in first and (len(data) == 1 or self.begins(text + data))
            )
        return self._known[text]

    def begins(self, text: bytes) -> bool:
        return any(_begins(parts, text) for parts in self.ways)

    def is_whole(self, text: bytes) -> bool:
        return any(_is_whole(parts, text) for parts in self.ways)

    def text(self, rng: random.Random) -> bytes:
        return b"".join(rng.choice(part.sorted) for part in rng.choice(self.ways))


def _written(value: Any, options: dict[str, Any]) -> bytes:
    if "indent" in options:
        return json.dumps(value, ensure_ascii=False, indent=options["indent"]).encode()
    separators = options.get("separators", (",", ":"))
    return json.dumps(value, ensure_ascii=False, separators=separators).encode()


def _identity(value: Any) -> str:
    """What equal values have in common."""
    return json.dumps(json.loads(json.dumps(value), parse_float=lambda text: int(float(text))), sort_keys=True)


def _options(rng: random.Random) -> dict[str, Any]:
    layout = rng.choice(
        ({"whitespace": "compact"}, {"whitespace": "compact"}, {"indent": 1}, {"separators": (", ", ": ")})
    )
    order = {"property_order": "any"} if rng.random() < 0.7 else {}
    return {"spelling": "canonical", "numbers": "plain", **layout, **order}


# In longer texts, values have one spelling but for numbers, and no white space.
_ONE_SPELLING = {"x-guidance": {"whitespace_flexible": False, "json_allowed_escapes": '\\"'}}
_OTHER_NUMBERS = re.compile(rb"[0-9][.eE]")


def _json_in_lark(schema: Any) -> str:
    return f"%json {json.dumps({**schema, **_ONE_SPELLING})}"


def _format(schema: Any, any_order: bool) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {**schema, **_ONE_SPELLING}, "any_order": any_order}


def texts_of(schema: Any, candidates: list[Any], read: Reader, counts: Counts) -> Texts | None:
    """The texts of a schema; None if it is not read, or has none, or too many.  Raises Difference."""
    judges = Judges(schema)
    valid = []
    for value in candidates:
        verdict, _ = judges.verdict(json.dumps(value), counts)
        if verdict is None:
            return None
        if verdict:
            valid.append(value)
    counts["schemas"] += 1
    try:
        compiled = constrain.GrammarCompiler(_BYTES).compile(read.alone(schema))
    except constrain.LimitError:
        counts["refused by a limit"] += 1
        return None
    except constrain.ConstrainError as error:
        if "not supported" in str(error):
            counts["refused as not supported"] += 1
        elif valid and read.is_judged:
            raise Difference(f"refused: {error}, and {valid[0]!r} is valid", read.told(schema)) from None
        return None
    found = []
    tries = 0
    # By what it is: 1 may have to be written 1.0, which is another candidate.
    accepted = {_identity(value): False for value in valid}
    for value in valid:
        for ordered in few_values_made.orders(value):
            tries += 1
            if tries > _MOST_TEXTS:
                return None
            text = _written(ordered, read.options)
            matcher = constrain.Matcher(compiled)
            if matcher.accept_bytes(text) and matcher.is_accepting():
                found.append(text)
                accepted[_identity(value)] = True
    refused = [value for value in valid if not accepted[_identity(value)]]
    if refused and read.is_judged:
        raise Difference(f"{refused[0]!r} is valid, and no text of it is accepted", read.told(schema))
    counts["values"] += len(valid)
    return Texts(found) if found else None


@dataclass
class Reader:
    """How schemas are read: by themselves, or in another grammar.

    Attributes
    ----------
    kind : {"schema", "lark", "tag"}
    """

    kind: str
    options: dict[str, Any]
    any_order: bool = False

    @property
    def is_judged(self) -> bool:
        # Structural tags have their own idea of what a schema means that names members.
        return self.kind != "tag"

    def told(self, schema: Any) -> str:
        return f"schema = {schema!r}\nread as {self.kind}, options = {self.options!r}, any_order = {self.any_order}"

    def alone(self, schema: Any) -> constrain.Grammar:
        if self.kind == "schema":
            return constrain.Grammar.from_json_schema(schema, **self.options)
        if self.kind == "lark":
            return constrain.Grammar.from_lark(f"start: {_json_in_lark(schema)}")
        return constrain.Grammar.from_structural_tag(
            {"type": "structural_tag", "format": _format(schema, self.any_order)}
        )


def _case(rng: random.Random, counts: Counts) -> Case | None:
    many = rng.choice((1, 1, 2, 2, 3))
    if many == 1:
        read = Reader("schema", _options(rng))
    else:
        read = Reader(rng.choice(("lark", "tag")), {}, rng.random() < 0.5)
    schemas: list[Any] = []
    languages: list[Texts] = []
    for _ in range(12):
        schema, candidates = few_values_made.schema(rng, rng.choice((1, 2, 2, 3)) if many == 1 else rng.choice((1, 2)))
        if len(candidates) > 400 and many > 1:
            continue
        texts = texts_of(schema, candidates, read, counts)
        if texts is not None:
            schemas.append(schema)
            languages.append(texts)
        if len(schemas) == many:
            break
    else:
        return None
    if many == 1:
        return Case(read.told(schemas[0]), read.alone(schemas[0]), [languages])
    return _several(rng, schemas, languages, read)


def _several(rng: random.Random, schemas: list[Any], languages: list[Texts], read: Reader) -> Case:
    """Several schemas in one grammar, behind each other or in the place of each other."""
    places = list(range(len(schemas)))
    if rng.random() < 0.3:
        # One of them once more.
        places.append(rng.choice(places))
    is_choice = rng.random() < 0.4
    ways: list[list[int | str]] = []
    for place in places:
        way: list[int | str] = [place]
        for mark in (rng.choice(("", "", ";", "]", '"', "x", ",")) for _ in range(2)):
            if mark and rng.random() < 0.5:
                way.insert(rng.choice((0, len(way))), mark)
        ways.append(way)
    if not is_choice:
        ways = [[each for way in ways for each in way]]
    parts: list[Parts] = [
        [languages[each] if isinstance(each, int) else Texts([each.encode()]) for each in way] for way in ways
    ]
    if read.kind == "lark":
        rules = [f"v{index}: {_json_in_lark(schema)}" for index, schema in enumerate(schemas)]
        start = " | ".join(" ".join(f"v{e}" if isinstance(e, int) else json.dumps(e) for e in way) for way in ways)
        lark = "\n".join([f"start: {start}", *rules])
        return Case(f"lark = {lark!r}", constrain.Grammar.from_lark(lark), parts, is_open=True)

    def element(each: int | str) -> dict[str, Any]:
        if isinstance(each, int):
            return _format(schemas[each], read.any_order)
        return {"type": "const_string", "value": each}

    sequences = [{"type": "sequence", "elements": list(map(element, way))} for way in ways]
    tag = {"type": "structural_tag", "format": {"type": "or", "elements": sequences}}
    return Case(f"tag = {tag!r}", constrain.Grammar.from_structural_tag(tag), parts, is_open=True)


def _vocabulary(rng: random.Random, case: Case) -> constrain.Vocabulary:
    """All bytes, and nothing more; or pieces of JSON; or pieces of the texts themselves, wherever they are cut."""
    what = rng.randrange(4)
    if what == 0:
        return _BYTES
    if what == 1:
        return vocabularies.small()
    pieces = []
    for _ in range(rng.choice((20, 80))):
        text = case.text(rng)
        begin = rng.randrange(len(text))
        pieces.append(text[begin : begin + rng.choice((2, 3, 5, 9, 20))])
    tokens = [*(bytes([byte]) for byte in range(256)), *sorted(set(pieces)), b"</s>"]
    return constrain.Vocabulary(tokens, eos_ids=[len(tokens) - 1])


class _Walk:
    """A walk through masks, some of which lead to one of the texts; now and then it goes back."""

    def __init__(self, compiled: constrain.CompiledGrammar, case: Case, rng: random.Random, counts: Counts) -> None:
        self._case, self._rng, self._counts = case, rng, counts
        self._tokens = compiled.vocabulary.tokens
        self._ends = set(compiled.vocabulary.eos_ids)
        stops = None
        if len(self._tokens) > 258 and rng.random() < 0.2:
            # A token with a text ends texts: what it spells can be spelled by others.
            stops = [rng.randrange(256, len(self._tokens) - 1)]
            self._not_text = {*self._ends, *stops}
            self._ends = {*stops}
        else:
            self._not_text = self._ends
        self._matcher = constrain.Matcher(compiled, stop_token_ids=stops)
        self._mask = constrain.allocate_token_bitmask(1, compiled.vocabulary.size)
        self._goal = case.text(rng) if rng.random() < 0.5 else b""

    def _wrong(self, row: Any, prefix: bytes) -> str:
        """What is wrong with a mask."""
        case, tokens = self._case, self._tokens
        found = set(ids_in_mask(row).tolist())
        expected = set(case.onward(prefix, tokens) - self._not_text)
        if case.is_whole(prefix):
            expected |= self._ends
        if case.is_open:
            # Not all spellings of numbers are texts of the list.
            beyond = {token for token in found | expected if _OTHER_NUMBERS.search(prefix + tokens[token])}
            found, expected = found - beyond, expected - beyond
        self._counts["masks"] += 1
        if found == expected:
            return ""
        more, less = (sorted(tokens[token] for token in each)[:9] for each in (found - expected, expected - found))
        return f"behind {prefix!r}: allowed, and leads nowhere: {more}; not allowed, and right: {less}"

    def _next(self, prefix: bytes) -> list[int]:
        onward = sorted(self._case.onward(prefix, self._tokens) - self._not_text)
        return [token for token in onward if not self._goal or self._goal.startswith(prefix + self._tokens[token])]

    def run(self) -> str:
        """What is wrong; "" if nothing is."""
        prefixes = [b""]
        backs = self._rng.choice((0, 0, 3))
        while True:
            prefix = prefixes[-1]
            self._matcher.fill_next_token_bitmask(self._mask)
            wrong = self._wrong(self._mask[0], prefix) or (self._of_draft(prefix) if self._rng.random() < 0.1 else "")
            if wrong:
                return wrong
            onward = self._next(prefix)
            if backs and len(prefixes) > 1 and (not onward or self._rng.random() < 0.1):
                backs -= 1
                count = self._rng.randrange(1, len(prefixes))
                self._matcher.rollback(count)
                del prefixes[-count:]
                self._goal = b""
                continue
            if not onward:
                return ""
            token = self._rng.choice(onward)
            if not self._matcher.accept_token(token):
                return f"behind {prefix!r}: {self._tokens[token]!r} is in the mask, and refused"
            prefixes.append(prefix + self._tokens[token])

    def _of_draft(self, prefix: bytes) -> str:
        """What is wrong with the masks along a few tokens that are only proposed."""
        draft: list[int] = []
        prefixes = [prefix]
        while len(draft) < 6 and (onward := self._next(prefixes[-1])):
            draft.append(self._rng.choice(onward))
            prefixes.append(prefixes[-1] + self._tokens[draft[-1]])
        if not draft:
            return ""
        mask = constrain.allocate_token_bitmask(len(draft) + 1, len(self._tokens))
        constrain.fill_draft_bitmasks([self._matcher], [draft], [list(range(-1, len(draft) - 1))], mask)
        self._counts["masks of drafts"] += len(draft)
        return next(
            (f"in a draft, {w}" for row, each in zip(mask, prefixes, strict=True) if (w := self._wrong(row, each))), ""
        )


def run(rng: random.Random, budget: Budget) -> Counts:
    counts: Counts = Counts()
    case = _case(rng, counts)
    if case is None:
        counts["no case"] += 1
        return counts
    counts["grammars of several" if case.is_open else "grammars of one"] += 1
    vocabulary = _vocabulary(rng, case)
    compiled = constrain.GrammarCompiler(vocabulary, cache_limit_bytes=0).compile(case.grammar)
    told = f"{case.source}\ntokens beside bytes = {vocabulary.tokens[256:]!r}"
    for _ in range(6):
        wrong = _Walk(compiled, case, rng, counts).run()
        if wrong:
            raise Difference(wrong, told)
    try:
        shortest = len(constrain.Matcher(compiled).completion())
        constrain.Matcher(compiled, max_tokens=shortest)
    except constrain.ConstrainError:
        counts["refused budgets"] += 1
        return counts
    for more in (0, rng.randrange(1, 9)):
        wrong = budgets.walk(compiled, shortest + more, rng, counts)
        if wrong:
            raise Difference(wrong, told)
    return counts


KIND = Kind(
    "few_values",
    "masks by the list of all texts, which validators and the grammar of each schema alone have made",
    run,
    24,
    {"masks": 2500, "values": 500, "masks of drafts": 500},
)
