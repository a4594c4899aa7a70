"""Scripts: what is done with the matchers of one grammar, and what each of them should be at after each step.

A script is made beforehand, with every token and every byte in it, so it is the same in each run: with and without
faults.  What is expected comes from :class:`Reference`: another compiled grammar, of the usual limits, and for each
question a fresh matcher that reads the same steps.
"""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import constrain
from bench.fuzz import seams, vocabularies
from bench.fuzz.protocol import Difference

Step = tuple[Any, ...]
"""(what to do, which matcher, with what); see :meth:`Run.prepare`.  A step that does not apply is left out."""

_PLAIN = {"whitespace": "compact"}
_MANY = [f"k{i}" for i in range(12)]
_CODE = r"""
start: statement*
statement: "if " expr block | NAME "=" expr ";" | expr ";"
block: "{" statement* "}"
expr: term (("+" | "*" | "==") term)*
term: NAME | NUMBER | STRING | "(" expr ")" | NAME "(" [expr ("," expr)*] ")" | "[" [expr ("," expr)*] "]"
NAME: /[a-z_][a-z0-9_]*/
NUMBER: /[0-9]+(\.[0-9]+)?/
STRING: /"[^"\n]{0,20}"/
WS: /[ \n]+/
%ignore WS
"""


@dataclass(frozen=True)
class Source:
    """A grammar as a line of Python says it."""

    how: str
    what: Any
    options: dict[str, Any] = field(default_factory=dict)

    def grammar(self) -> constrain.Grammar:
        made: constrain.Grammar = getattr(constrain.Grammar, f"from_{self.how}")(self.what, **self.options)
        return made

    def __str__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"constrain.Grammar.from_{self.how}({self.what!r}{options})"


def _schema(schema: Any, **options: Any) -> Source:
    return Source("json_schema", schema, {**_PLAIN, **options})


_LIMITED = """
start: (thought "," note call)+
thought[max_tokens=3]: /(.|\\n)*/
note[max_tokens=2, suffix=";"]: /[a-z"]*/
call[max_tokens=4]: name ("," name)*
name[capture, max_tokens=2]: /[a-z"]+/
"""

SOURCES = (
    _schema({}),
    _schema({"type": "object", "minProperties": 1}),
    _schema({"type": "array", "uniqueItems": True}),
    _schema({"type": "array", "uniqueItems": True, "items": {"type": ["string", "number"]}, "minItems": 2}),
    _schema({"type": "array", "uniqueItems": True, "items": {"enum": [1, 2, "a", "b", None, [1], {"a": 1}]}}),
    _schema({"properties": {key: {} for key in "abc"}}, property_order="any"),
    _schema(
        {"properties": {key: {"type": ["integer", "array"]} for key in _MANY}, "required": _MANY[:6]},
        property_order="any",
    ),
    _schema({"type": "object", "propertyNames": {"pattern": "^[ab]{1,2}$"}, "additionalProperties": {"type": "null"}}),
    _schema({"type": "object", "patternProperties": {"^k[0-9]$": {}}, "additionalProperties": False}),
    _schema({"type": "array", "items": {"enum": [f"name{i}" for i in range(60)]}}, whitespace="flexible"),
    _schema(
        {
            "type": "object",
            "properties": {
                "a": {"type": "string", "maxLength": 7},
                "b": {"type": "number", "multipleOf": 0.5},
                "c": {"type": "array", "items": {"$ref": "#"}, "maxItems": 3},
                "d": {"type": "string", "pattern": "^(a|b)+c?$"},
                "e": {"type": "string", "format": "date-time"},
            },
            "required": ["a", "c"],
        }
    ),
    Source("regex", r"(\w{1,8} ){0,12}\w{1,8}\.?"),
    Source("regex", r"([a-z]+@[a-z]+\.(com|org)[,;] ?){2,30}"),
    Source("lark", _CODE),
    Source("lark", 'start: "a" start "b" | start start | "ab" | "(" start ")"'),
    Source("lark", _LIMITED),
)

VOCABULARIES = {"small": vocabularies.small, "large": vocabularies.large, "odd": vocabularies.odd}


@dataclass(frozen=True)
class Case:
    """A grammar, a vocabulary and what is done.

    Attributes
    ----------
    limits : dict
        ``limit_bytes`` and ``mask_limit_bytes`` of the compiled grammar; those of the reference are the usual ones.
    """

    source: Source
    vocabulary: str
    steps: tuple[Step, ...]
    limits: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"grammar = {self.source}", f"vocabulary = bench.fuzz.vocabularies.{self.vocabulary}()"]
        lines += [f"limits = {self.limits}"] if self.limits else []
        tokens = VOCABULARIES[self.vocabulary]().tokens
        lines.append("steps = [")
        for step in self.steps:
            lines.append(f"    {step!r},{'  # ' + repr(tokens[step[2]]) if step[0] == 'token' else ''}")
        return "\n".join([*lines, "]"])

    def with_steps(self, steps: list[Step]) -> Case:
        return replace(self, steps=tuple(steps))


@dataclass(frozen=True)
class Seen:
    """What can be seen of a matcher.  ``mask`` is None after an end token, where it is known to be empty."""

    text: bytes
    steps: int
    accepting: bool
    terminated: bool
    left: int | None
    mask: bytes | None


@dataclass(frozen=True)
class Place:
    """Where a matcher should be: its budget, and the tokens (int) and bytes that it has taken."""

    most: int | None
    path: tuple[int | bytes, ...] = ()


def see(matcher: constrain.Matcher, mask: Any) -> Seen:
    """What can be seen of a matcher; ``mask`` is where its mask is written."""
    mask.fill(-1)
    matcher.fill_next_token_bitmask(mask)
    steps = matcher.steps
    ended = matcher.is_terminated()
    text = matcher.text(steps)
    return Seen(text, steps, matcher.is_accepting(), ended, matcher.tokens_left, None if ended else mask.tobytes())


QUESTIONS = ("forced", "captures", "validate", "draft")
"""Steps that ask a matcher, which stays where it is, and that have one right answer."""


def ask(matcher: constrain.Matcher, what: str, tokens: tuple[int, ...] = ()) -> Any:
    """The answer to a question."""
    if what == "forced":
        return matcher.forced_bytes()
    if what == "captures":
        return matcher.captures() if matcher.compiled.ir.captures else None
    if what == "validate":
        return matcher.validate_tokens(tokens)
    masks = constrain.allocate_token_bitmask(len(tokens) + 1, matcher.compiled.vocabulary.size)
    legal = constrain.fill_draft_bitmasks([matcher], [tokens], None, masks)
    return legal, masks.tobytes()


class Reference:
    """What a matcher should be at a place, from a grammar that nothing happens to; by default with all accelerators."""

    def __init__(
        self, source: Source, vocabulary: constrain.Vocabulary, accelerators: Sequence[str] | None = None
    ) -> None:
        self.ir = source.grammar().ir
        self.vocabulary = vocabulary
        self._compiled = constrain.CompiledGrammar(self.ir, vocabulary, accelerators=accelerators)
        self._mask = constrain.allocate_token_bitmask(1, vocabulary.size)
        self._seen: dict[Place, Seen] = {}
        self._takes: dict[tuple[Place, int | bytes], bool] = {}
        self._has_budget: dict[int, bool] = {}
        self._answers: dict[tuple[Place, Step], Any] = {}

    def matcher(self, place: Place) -> constrain.Matcher:
        """A fresh matcher at a place."""
        matcher = constrain.Matcher(self._compiled, max_tokens=place.most)
        for step in place.path:
            taken = matcher.accept_bytes(step) if isinstance(step, bytes) else matcher.accept_token(step)
            if not taken:
                raise Difference("a fresh matcher refuses a step that was taken before", f"{place}: {step!r}")
        return matcher

    def has_budget(self, most: int | None) -> bool:
        """Whether a matcher can have this budget."""
        if most is None:
            return True
        if most not in self._has_budget:
            try:
                constrain.Matcher(self._compiled, max_tokens=most)
                self._has_budget[most] = True
            except constrain.ConstrainError:
                self._has_budget[most] = False
        return self._has_budget[most]

    def seen(self, place: Place) -> Seen:
        if place not in self._seen:
            self._seen[place] = see(self.matcher(place), self._mask)
        return self._seen[place]

    def can_follow(self, place: Place) -> bool:
        """Whether the text of a place is within the engine's limits, of which some are stated for single texts."""
        try:
            self.seen(place)
        except constrain.LimitError:
            return False
        return True

    def takes(self, place: Place, step: int | bytes) -> bool:
        """Whether a token or some bytes can follow."""
        key = place, step
        if key not in self._takes:
            matcher = self.matcher(place)
            self._takes[key] = matcher.accept_bytes(step) if isinstance(step, bytes) else matcher.accept_token(step)
        return self._takes[key]

    def answer(self, place: Place, step: Step) -> Any:
        """What a question has for an answer at a place."""
        key = place, (step[0], *step[2:])
        if key not in self._answers:
            self._answers[key] = ask(self.matcher(place), *key[1])
        return self._answers[key]

    def allowed(self, place: Place) -> list[int]:
        """The tokens of the mask at a place."""
        mask = self.seen(place).mask
        if mask is None:
            return []
        bits = np.unpackbits(np.frombuffer(mask, np.uint8), bitorder="little")
        found: list[int] = np.flatnonzero(bits).tolist()
        return found


COPIES = ("fork", "copy", "pickle")
"""Steps that make another matcher at the same place; the last one in a compiled grammar of its own."""


def random_case(
    rng: random.Random,
    reference: Reference,
    source: Source,
    vocabulary: str,
    count: int,
    copies: Sequence[str] = ("fork", "fork", "fork", "copy"),
) -> Case:
    """A script of ``count`` steps.  It knows where each matcher is, and mostly takes tokens that are allowed."""
    tokens = reference.vocabulary.tokens
    steps: list[Step] = []
    places: list[Place | None] = []

    def begin() -> None:
        most = rng.choice((None, None, 12, 60, 300))
        most = most if reference.has_budget(most) else None
        steps.append(("begin", most))
        places.append(Place(most))

    begin()
    while len(steps) < count:
        which = rng.randrange(len(places))
        place = places[which]
        what = rng.choices(
            (
                *("token", "tokens", "bytes", "fill", "batch", "rollback", "reset", "another", "begin", "drop"),
                *("completion", "expected", *QUESTIONS),
            ),
            (30, 10, 6, 12, 3, 8, 1, 4, 2, 1, 2, 1, 2, 1, 2, 2),
        )[0]
        if place is None or (what in ("another", "begin") and len(places) > 4):
            continue
        if what == "begin":
            begin()
        elif what == "drop":
            if sum(each is not None for each in places) > 1:
                places[which] = None
                steps.append(("drop", which))
        elif what == "another":
            places.append(place)
            steps.append((rng.choice(copies), which))
        elif what == "rollback":
            back = rng.randint(0, min(len(place.path), rng.choice((1, 3, 70))))
            steps.append(("rollback", which, back))
            places[which] = replace(place, path=place.path[: len(place.path) - back])
        elif what == "reset":
            places[which] = replace(place, path=())
            steps.append(("reset", which))
        elif what in ("fill", "batch", "completion", "expected", "forced", "captures"):
            steps.append((what, which))
        elif what in QUESTIONS:
            steps.append((what, which, _draft(rng, reference, place)))
        else:
            for _ in range(1 if what != "tokens" else rng.randint(2, 6)):
                allowed = reference.allowed(place)
                onward = [token for token in allowed if token not in reference.vocabulary.eos_ids] or allowed
                if not onward and not place.path:
                    raise Difference("nothing is allowed at the start", f"{source}, {place}")
                token = rng.randrange(len(tokens)) if rng.random() < 0.1 or not onward else rng.choice(onward)
                if rng.random() < 0.02 and len(allowed) > len(onward):
                    token = rng.choice(allowed)
                taken: int | bytes = token
                if what == "bytes":
                    taken = tokens[token]
                    if rng.random() < 0.3 and len(place.path) > 1:
                        taken += rng.choice((b"]", b"}", b'"', b"a", b" "))
                steps.append((what.removesuffix("s") if what == "tokens" else what, which, taken))
                if reference.takes(place, taken):
                    beyond = replace(place, path=(*place.path, taken))
                    if not reference.can_follow(beyond):
                        steps.pop()
                        continue
                    place = places[which] = beyond
    return Case(source, vocabulary, tuple(steps))


def _draft(rng: random.Random, reference: Reference, place: Place) -> tuple[int, ...]:
    """Tokens of which the first few are mostly allowed."""
    found: list[int] = []
    for _ in range(rng.randint(0, 5)):
        allowed = reference.allowed(place)
        token = rng.choice(allowed) if allowed and rng.random() < 0.9 else rng.randrange(reference.vocabulary.size)
        found.append(token)
        if not reference.takes(place, token):
            break
        beyond = replace(place, path=(*place.path, token))
        if not reference.can_follow(beyond):
            found.pop()
            break
        place = beyond
    return tuple(found)


class Run:
    """Plays a script in a compiled grammar of its own.

    Attributes
    ----------
    compiled : CompiledGrammar or None
        None until :meth:`compile`.
    matchers, places : list
        The matchers, and where each should be; None for those that were dropped.
    masks : int
        How many masks were compared.
    """

    def __init__(self, case: Case, reference: Reference) -> None:
        self.case = case
        self.reference = reference
        self.compiled: constrain.CompiledGrammar | None = None
        self.matchers: list[constrain.Matcher | None] = []
        self.places: list[Place | None] = []
        self.masks = 0
        self._mask = constrain.allocate_token_bitmask(1, reference.vocabulary.size)
        self._batch: Any = None

    def compile(self) -> None:
        """The first call of all."""
        self.compiled = constrain.CompiledGrammar(self.reference.ir, self.reference.vocabulary, **self.case.limits)
        if self.case.source.how == "lark":
            seams.make_masks_by_core(self.compiled)

    def prepare(self, step: Step) -> tuple[Any, tuple[Any, ...]] | None:
        """The call that a step is: a function and its arguments; None if it does not apply here."""
        what = step[0]
        if what == "begin":
            return constrain.Matcher, (self.compiled, step[1])
        if step[1] >= len(self.matchers) or self.matchers[step[1]] is None:
            return None
        matcher = self.matchers[step[1]]
        assert matcher is not None
        if what == "fill":
            return matcher.fill_next_token_bitmask, (self._mask,)
        if what == "token":
            return matcher.accept_token, (step[2],)
        if what == "bytes":
            return matcher.accept_bytes, (step[2],)
        if what == "rollback":
            return (matcher.rollback, (step[2],)) if step[2] <= matcher.steps else None
        if what == "reset":
            return matcher.reset, ()
        if what == "fork":
            return matcher.fork, ()
        if what == "copy":
            return copy.copy, (matcher,)
        if what == "pickle":
            return _pickled, (matcher,)
        if what == "batch":
            live = [each for each in self.matchers if each is not None]
            self._batch = constrain.allocate_token_bitmask(len(live), self.reference.vocabulary.size)
            return constrain.fill_next_token_bitmask_batch, (live, self._batch)
        if what in QUESTIONS:
            return ask, (matcher, what, *step[2:])
        if what == "expected":
            return matcher.expected, ()
        if what == "completion":
            return _completion, (matcher,)
        assert what == "drop"
        return self._drop, (step[1],)

    def _drop(self, which: int) -> None:
        self.matchers[which] = None

    def finish(self, step: Step, result: Any) -> str:
        """Note what a step did that went through, and say what is wrong with its result; an empty string if nothing."""
        what = step[0]
        if what == "begin":
            self.matchers.append(result)
            self.places.append(Place(step[1]))
            return ""
        place = self.places[step[1]]
        assert place is not None
        if what == "drop":
            self.places[step[1]] = None
        elif what in COPIES:
            self.matchers.append(result)
            self.places.append(place)
        elif what == "rollback":
            self.places[step[1]] = replace(place, path=place.path[: len(place.path) - step[2]])
        elif what == "reset":
            self.places[step[1]] = replace(place, path=())
        elif what in QUESTIONS:
            if result != self.reference.answer(place, step):
                subject = "count and the masks of the draft are" if what == "draft" else "answer is"
                return f"the {subject} {result!r}, and should be {self.reference.answer(place, step)!r}"
        elif what == "fill":
            self.masks += 1
            mask = self.reference.seen(place).mask
            if self._mask.tobytes() != (mask or bytes(self._mask.nbytes)):
                return "the mask is not that of a fresh matcher" + _difference(
                    self.reference.vocabulary, self._mask.tobytes(), mask or bytes(self._mask.nbytes)
                )
        elif what == "batch":
            live = [each for each in self.places if each is not None]
            for row, each in enumerate(live):
                self.masks += 1
                mask = self.reference.seen(each).mask or bytes(self._mask.nbytes)
                if self._batch[row].tobytes() != mask:
                    return f"row {row} of the batch is not the mask of a fresh matcher" + _difference(
                        self.reference.vocabulary, self._batch[row].tobytes(), mask
                    )
        elif what == "expected":
            pass  # what it says in words has tests of its own
        elif what == "completion":
            if result is not None:
                return _wrong_completion(self.reference, place, result)
        else:
            expected = self.reference.takes(place, step[2])
            if result != expected:
                return f"{result} for {step[2]!r}, where a fresh matcher says {expected}"
            if result:
                self.places[step[1]] = replace(place, path=(*place.path, step[2]))
        return ""

    def wrong(self) -> str:
        """What is wrong with any matcher, compared with fresh ones; an empty string if nothing is."""
        for index, (matcher, place) in enumerate(zip(self.matchers, self.places, strict=True)):
            if matcher is None or place is None:
                continue
            expected = self.reference.seen(place)
            try:
                found = see(matcher, self._mask)
            except Exception as error:
                return f"matcher {index}: {type(error).__name__}: {error}, at {expected.text!r}"
            self.masks += 1
            if found != expected:
                return f"matcher {index}: " + _wrong_fields(self.reference.vocabulary, found, expected)
        return ""


def _pickled(matcher: constrain.Matcher) -> constrain.Matcher:
    twin: constrain.Matcher = pickle.loads(pickle.dumps(matcher))
    return twin


def _completion(matcher: constrain.Matcher) -> list[int] | None:
    """A completion; None where the grammar does not support them, or the vocabulary spells none."""
    try:
        return matcher.completion()
    except constrain.LimitError:
        raise
    except constrain.ConstrainError:
        return None


def _wrong_completion(reference: Reference, place: Place, tokens: list[int]) -> str:
    matcher = reference.matcher(place)
    for token in tokens:
        if not matcher.accept_token(token):
            return f"completion() is {tokens}, of which {token} is refused"
    if place.path and reference.seen(place).terminated:
        return "" if not tokens else "completion() is not empty after an end token"
    return "" if matcher.is_accepting() else f"completion() is {tokens}, behind which the text is not complete"


def _wrong_fields(vocabulary: constrain.Vocabulary, found: Seen, expected: Seen) -> str:
    parts = [
        f"{name} {getattr(found, name)!r} instead of {getattr(expected, name)!r}"
        for name in ("text", "steps", "accepting", "terminated", "left")
        if getattr(found, name) != getattr(expected, name)
    ]
    if found.mask != expected.mask:
        parts.append("mask" + _difference(vocabulary, found.mask or b"", expected.mask or b""))
    return "; ".join(parts) + f" (expected at {expected.text!r})"


def _difference(vocabulary: constrain.Vocabulary, found: bytes, expected: bytes) -> str:
    if len(found) != len(expected):
        return ": one of them is that after an end token"
    ours, theirs = (np.unpackbits(np.frombuffer(each, np.uint8), bitorder="little") for each in (found, expected))
    more = [vocabulary.tokens[i] for i in np.flatnonzero(ours & ~theirs & 1)[:4]]
    less = [vocabulary.tokens[i] for i in np.flatnonzero(theirs & ~ours & 1)[:4]]
    return f": allows {more} ({np.sum(ours > theirs)} tokens) wrongly, forbids {less} ({np.sum(theirs > ours)})"
