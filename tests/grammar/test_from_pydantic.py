"""The pydantic front-end, compared with pydantic's own validation."""

from __future__ import annotations

import builtins
import dataclasses
import enum
import json
from typing import Annotated, Any, Literal, NamedTuple, Optional, Union

import pydantic
import pydantic.json_schema
import pytest
from naive import NaiveRecognizer
from typing_extensions import TypedDict

import constrain
from constrain.errors import ConstrainError, GrammarError
from constrain.grammar.json_schema import from_json_schema
from constrain.grammar.json_schema.document.drafts import PYDANTIC_URI


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(pydantic.BaseModel):
    x: int
    y: int = 0


class Shape(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    name: Annotated[str, pydantic.Field(min_length=1, pattern="^[a-z]+$")]
    colour: Colour
    kind: Literal["a", 1]
    points: Annotated[list[Point], pydantic.Field(max_length=2)] = pydantic.Field(alias="pts")
    weight: Optional[Annotated[float, pydantic.Field(gt=0, le=2.5)]] = None  # noqa: UP045
    parts: list[Shape] = pydantic.Field(default_factory=list)


@dataclasses.dataclass
class Pair:
    left: int
    right: Union[str, None] = None  # noqa: UP007


class Movie(TypedDict):
    title: str
    year: int


SHAPE: dict[str, Any] = {"name": "ab", "colour": "red", "kind": 1, "pts": [{"x": 1, "y": 2}], "weight": 0.5}
CASES: list[tuple[Any, list[Any], list[Any]]] = [
    (
        Shape,
        [SHAPE, {**SHAPE, "weight": None}, {**SHAPE, "parts": [SHAPE, SHAPE]}],
        [
            {**SHAPE, "name": ""},
            {**SHAPE, "colour": "green"},
            {**SHAPE, "kind": "b"},
            {**SHAPE, "pts": [{"x": 1}] * 3},
            {**SHAPE, "weight": 0},
            {**SHAPE, "extra": 1},
            {},
        ],
    ),
    (Pair, [{"left": 1}, {"left": 1, "right": "a"}], [{"right": "a"}, {"left": None}]),
    (Movie, [{"title": "t", "year": 1999}], [{"title": "t"}]),
    (list[int], [[], [1, 2]], [["a"], 1]),
    (dict[str, bool], [{}, {"a": True}], [{"a": None}]),
    (tuple[int, str], [[1, "a"]], [[1], [1, "a", 2]]),
    (pydantic.TypeAdapter(Optional[Point]), [None, {"x": 1}], [1]),  # noqa: UP045
    (Literal["a", "b"], ["a"], ["c"]),
    (Colour, ["blue"], ["RED"]),
]


@pytest.mark.parametrize(("model", "valid", "invalid"), CASES)
def test_models(model: Any, valid: list[Any], invalid: list[Any]) -> None:
    adapter = model if isinstance(model, pydantic.TypeAdapter) else pydantic.TypeAdapter(model)
    recognizer = NaiveRecognizer(constrain.Grammar.from_pydantic(model).ir)
    for instance in valid:
        adapter.validate_json(json.dumps(instance))
        assert recognizer.accepts(json.dumps(instance).encode()), instance
    for instance in invalid:
        with pytest.raises(pydantic.ValidationError):
            adapter.validate_json(json.dumps(instance))
        assert not recognizer.accepts(json.dumps(instance).encode()), instance


def test_options_are_those_of_json_schema() -> None:
    # In the dialect that has integers as pydantic reads them.
    schema = {"$schema": PYDANTIC_URI, **Point.model_json_schema()}
    assert constrain.Grammar.from_pydantic(Point, whitespace="compact").ir == from_json_schema(
        schema, whitespace="compact"
    )


def test_a_set_holds_each_value_once() -> None:
    vocabulary = constrain.Vocabulary([bytes([byte]) for byte in range(256)])
    compiled = constrain.GrammarCompiler(vocabulary).compile(constrain.Grammar.from_pydantic(set[int]))
    assert constrain.Matcher(compiled).accept_bytes(b"[1,2,10]")
    assert not constrain.Matcher(compiled).accept_bytes(b"[1,2,1]")


def book(city: str, nights: Annotated[int, pydantic.Field(gt=0)], breakfast: bool = False) -> None: ...


class Desk:
    def book(self, city: str) -> None: ...


class Pixel(NamedTuple):
    x: int
    name: str


@pytest.mark.parametrize(
    ("given", "valid", "invalid"),
    [
        (
            book,
            [{"city": "Oslo", "nights": 2}, {"city": "", "nights": 1, "breakfast": True}],
            [{"city": "Oslo"}, {"city": "Oslo", "nights": 0}, {"city": "Oslo", "nights": 2, "x": 1}, ["Oslo", 2]],
        ),
        (Desk().book, [{"city": "Oslo"}], [{}, {"self": None, "city": "Oslo"}]),
        (lambda a, *, b: None, [{"a": None, "b": [1]}], [{"a": 1}, []]),
        (eval("lambda a, b, /: None"), [[1, {}]], [[1], {"a": 1, "b": 2}]),
        (Pixel, [[1, "a"]], [[1], ["a", 1], [1, "a", 2]]),
        (int | None, [1, None], ["1", 1.5]),
        (list[int] | dict[str, bool], [[], [1], {"a": True}], [["a"], {"a": 1}]),
        (Literal["a", 1, None], ["a", 1, None], ["b", 2]),
        (Colour, ["red"], ["green", 1]),
        (Annotated[str, pydantic.Field(max_length=2)], ["ab"], ["abc"]),
        (None, [None], [0]),
    ],
)
def test_types_and_functions(given: Any, valid: list[Any], invalid: list[Any]) -> None:
    recognizer = NaiveRecognizer(constrain.Grammar.from_pydantic(given).ir)
    for instance in valid:
        assert recognizer.accepts(json.dumps(instance).encode()), instance
    for instance in invalid:
        assert not recognizer.accepts(json.dumps(instance).encode()), instance


@pytest.mark.parametrize("given", [{}, {"type": "object"}])
def test_a_schema_is_no_type(given: Any) -> None:
    with pytest.raises(GrammarError, match=r"not a dict: for a JSON Schema there is Grammar\.from_json_schema"):
        constrain.Grammar.from_pydantic(given)


def test_errors_are_one_line() -> None:
    def mixed(*args: int, **kwargs: str) -> None: ...

    class Lines:
        def __repr__(self) -> str:
            return "two\nlines"

    for given in (mixed, len, Lines()):
        with pytest.raises(GrammarError, match=r"^pydantic has no JSON Schema for [^\n]*$"):
            constrain.Grammar.from_pydantic(given)


class Opaque:
    pass


@pytest.mark.parametrize("model", [Opaque, 5, "NoSuchType"])
def test_types_that_pydantic_does_not_know(model: Any) -> None:
    with pytest.raises(GrammarError, match="pydantic has no JSON Schema"):
        constrain.Grammar.from_pydantic(model)


@pytest.mark.parametrize("model", [pydantic.BaseModel, Annotated[int, pydantic.json_schema.SkipJsonSchema()]])
def test_types_that_pydantic_knows_and_writes_no_schema_for(model: Any) -> None:
    with pytest.raises(GrammarError, match=r"^pydantic has no JSON Schema for [^\n]*: (give|SkipJsonSchema)"):
        constrain.Grammar.from_pydantic(model)


def test_a_type_without_json() -> None:
    class Callback(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
        value: Opaque

    with pytest.raises(GrammarError, match="Opaque"):
        constrain.Grammar.from_pydantic(Callback)


def test_without_pydantic_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any, **keywords: Any) -> Any:
        if name.partition(".")[0] == "pydantic":
            raise ModuleNotFoundError(name)
        return real(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConstrainError, match=r"pip install 'constrain-llm\[pydantic\]'"):
        constrain.Grammar.from_pydantic(Point)
