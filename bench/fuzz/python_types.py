"""Kind "python_types": random Python types; pydantic judges the texts of walks through the masks of each.

Models with aliases and options, nested unions with and without a discriminator, keys of other types than ``str``,
sets, numbers with bounds far beyond what a double holds: each text that masks lead to must be read, unless the warnings
of the grammar name something that is not enforced.
"""

from __future__ import annotations

import collections
import datetime
import enum
import itertools
import random
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal

import constrain
from bench.fuzz import vocabularies
from bench.fuzz.protocol import Budget, Counts, Difference, Kind, isolated
from bench.walks import Walker

try:
    import pydantic
    from typing_extensions import NotRequired, Required, TypedDict
except ImportError:
    pydantic = None  # type: ignore[assignment]

_WALKS = 8
# Names that fields are read from, and many digits.
_PIECES = ('"f0":', '"f1":', '"al0":', '"c0":', '"d0":', '"p":', "99999999", "00000000", "123456789", "5e-1")
_PATTERNS = (r"^[a-c]+$", r"\d{2}", "^a|b$", "^(x|yy)*$")


class Mixed(enum.Enum):
    RED = "r"
    BLUE = "b"
    THREE = 3


class Number(enum.IntEnum):
    ONE = 1
    TWENTY = 20


class Maker:
    """Makes types."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._names = itertools.count()

    def _with(self, given: Any, **options: Any) -> Any:
        return Annotated[given, pydantic.Field(**options)]

    def type(self, depth: int) -> Any:
        """A type with at most so many levels."""
        if depth <= 0 or self._rng.random() < 0.25:
            return self._plain()
        inner = [self.type(depth - 1) for _ in range(2)]
        key, member = self._key(), self._member()
        mode = self._rng.choice(("smart", "left_to_right"))
        makes: tuple[Callable[[], Any], ...] = (
            lambda: self._long(list[inner[0]]),  # type: ignore[valid-type]
            lambda: self._long(collections.deque[inner[0]]),  # type: ignore[valid-type]
            lambda: self._long(tuple[inner[0], ...]),  # type: ignore[valid-type]
            lambda: self._long(self._rng.choice((set, frozenset))[member]),
            lambda: self._long(self._rng.choice((dict, Mapping))[key, inner[0]]),
            lambda: tuple[inner[0], inner[1]],  # type: ignore[valid-type]
            lambda: inner[0] | None,
            lambda: self._with(inner[0] | inner[1], union_mode=mode),
            lambda: self._model(depth),
            lambda: self._tagged(depth),
        )
        return self._rng.choice(makes)()

    def _plain(self) -> Any:
        rng, given = self._rng, self._with
        makes: tuple[Callable[[], Any], ...] = (
            lambda: rng.choice((int, str, bool, float, type(None), Mixed, Number, Any, bytes)),
            lambda: rng.choice((datetime.date, uuid.UUID, pydantic.StrictInt, pydantic.StrictFloat)),
            lambda: rng.choice((Literal["a", "b"], Literal[1, "1", True], Literal[None, 0])),
            lambda: given(int, ge=-3, le=rng.randint(-2, 40)),
            lambda: given(int | float, **{rng.choice(("ge", "gt")): rng.choice((0, 2, 0.3))}),
            lambda: given(float, gt=rng.choice((-1.5, 0, 0.1)), lt=rng.choice((1, 2.5))),
            self._decimal,
            lambda: self._long(str),
            lambda: given(str, pattern=rng.choice(_PATTERNS)),
            lambda: Annotated[str, pydantic.StringConstraints(strip_whitespace=True, min_length=1, max_length=3)],
            lambda: Annotated[str, pydantic.StringConstraints(to_lower=True, pattern="^[a-z]$")],
        )
        return rng.choice(makes)()

    def _decimal(self) -> Any:
        rng = self._rng
        low, high = sorted(Decimal(rng.randint(-(10**22), 10**22)).scaleb(-rng.randint(0, 25)) for _ in range(2))
        options: dict[str, Any] = {rng.choice(("ge", "gt")): low} if rng.random() < 0.5 else {}
        options |= {rng.choice(("le", "lt")): high} if rng.random() < 0.5 else {}
        options |= {"multiple_of": rng.choice((3, Decimal("0.05"), Decimal(1000)))} if rng.random() < 0.3 else {}
        options |= {"max_digits": rng.choice((2, 15, 16, 20))} if rng.random() < 0.3 else {}
        options |= {"decimal_places": rng.choice((0, 1, 2))} if rng.random() < 0.3 else {}
        return self._with(Decimal, **options)

    def _member(self) -> Any:
        """Of a set."""
        few = self._with(int, ge=0, le=3)
        return self._rng.choice((int, str, bool, Mixed, Number, Literal["a", 2], few, tuple[int, bool], int | bool))

    def _key(self) -> Any:
        names = (self._with(str, min_length=1, max_length=2), self._with(str, pattern="^[ab]{1,2}$"))
        others = (int, Mixed, Number, Literal["a", "b"], bool, uuid.UUID, datetime.date, int | Literal["k"])
        return self._rng.choice((str, *names, *others, str | None, pydantic.PositiveInt))

    def _long(self, given: Any) -> Any:
        options = {"min_length": self._rng.randint(0, 2), "max_length": self._rng.randint(2, 4)}
        return self._with(given, **{key: value for key, value in options.items() if self._rng.random() < 0.4})

    def _model(self, depth: int, tag: tuple[str, str] | None = None) -> Any:
        """A model, a ``TypedDict`` or a model of one value; with a ``tag`` a model that has such a field."""
        rng, name = self._rng, f"M{next(self._names)}"
        options: Any = {"extra": rng.choice(("forbid", "ignore", "allow"))} if rng.random() < 0.6 else {}
        flags = ("strict", "populate_by_name", "str_strip_whitespace", "use_enum_values", "coerce_numbers_to_str")
        options |= {flag: True for flag in flags if rng.random() < 0.15}
        fields: dict[str, Any] = {}
        if tag is not None:
            fields[tag[0]] = (Literal[tag[1]], ... if rng.random() < 0.8 else tag[1])
        for index in range(rng.randint(0, 3)):
            choices = pydantic.AliasChoices(f"c{index}", f"d{index}", pydantic.AliasPath("p", 0))
            names = ({"alias": f"al{index}"}, {"validation_alias": f"va{index}"}, {"validation_alias": choices})
            aliases: dict[str, Any] = rng.choice(({}, *names))
            default: dict[str, Any] = rng.choice(({}, {"default": None}))
            fields[f"f{index}"] = (self.type(depth - 1), pydantic.Field(**aliases, **default))
        shape = "model" if tag is not None else rng.choice(("model", "model", "typed dict", "root"))
        if shape == "root":
            return pydantic.RootModel[self.type(depth - 1)]  # type: ignore[misc]
        if shape == "typed dict":
            members = {key: rng.choice((NotRequired, Required))[given] for key, (given, _) in fields.items()}
            return TypedDict(name, members, total=rng.random() < 0.7)  # type: ignore[operator]
        return pydantic.create_model(name, __config__=options, **fields)

    def _tagged(self, depth: int) -> Any:
        models = [self._model(depth - 1, ("kind", value)) for value in self._rng.sample(("x", "y", "z"), 2)]
        return self._with(models[0] | models[1], discriminator="kind")


def _vocabulary() -> constrain.Vocabulary:
    tokens = [*(piece.encode() for piece in _PIECES), *vocabularies.small().tokens]
    return constrain.Vocabulary(tokens, eos_ids=[len(tokens) - 1])


def _check(given: Any, options: dict[str, Any], seed: int, counts: Counts) -> str:
    adapter = pydantic.TypeAdapter(given)
    vocabulary, rng = _vocabulary(), random.Random(seed)
    try:
        grammar = constrain.Grammar.from_pydantic(adapter, **options)
        compiled = constrain.CompiledGrammar(grammar.ir, vocabulary)
    except constrain.ConstrainError:
        counts["refused"] += 1
        return ""
    counts["types"] += 1
    walker = Walker(vocabulary, rng, free=30, limit=300)
    for _ in range(_WALKS):
        counts["walks"] += 1
        walk = walker.walk(compiled)
        if walk.end == "stuck":
            return f"nothing goes on after {walk.text!r}"
        if walk.end == "long" or grammar.warnings:
            continue
        try:
            adapter.validate_json(walk.text)
        except pydantic.ValidationError as error:
            return f"the text {walk.text.decode()!r} is allowed, and is not read: {' '.join(str(error).split())}"
    return ""


def run(rng: random.Random, budget: Budget) -> Counts:
    counts: Counts = Counts()
    try:
        given = Maker(rng).type(rng.randint(1, 3))
        pydantic.TypeAdapter(given)
    except (RuntimeError, TypeError, pydantic.errors.PydanticUserError):
        counts["types that pydantic does not know"] += 1
        return counts
    options = {"property_order": "any"} if rng.random() < 0.5 else {}
    seed = rng.randrange(1 << 30)
    wrong = isolated(lambda: _check(given, options, seed, counts))
    if wrong:
        raise Difference(wrong, f"type = {given!r}\nschema = {pydantic.TypeAdapter(given).json_schema()}\n{options}")
    return counts


KIND = Kind(
    *("python_types", "texts of walks by pydantic", run, 60, {"types": 55, "walks": 400}),
    lambda: "" if pydantic is not None else "it needs pydantic",
)
