"""What is written for pydantic's own types is what its validators read, and what it writes itself may be written."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import inspect
import ipaddress
import json
import pathlib
import random
import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Hashable
from functools import partial
from typing import Annotated, Any, Literal, Union

import annotated_types
import pydantic
import pytest
from byte_tokens import fits
from masks import mask_of
from typing_extensions import Required, TypedDict, Unpack

import constrain
from constrain.errors import GrammarError

END = 256
TOKENS = [bytes([byte]) for byte in range(END)] + [b"</s>", b"-01", b"00:", b"://", b'": ', b"T0"]
COMPILER = constrain.GrammarCompiler(constrain.Vocabulary(TOKENS, eos_ids=[END], special_ids=[END]))


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Cat(pydantic.BaseModel, extra="forbid"):
    lives: int
    kind: Literal["cat"] = "cat"


class Dog(pydantic.BaseModel, extra="forbid"):
    name: str
    kind: Literal["dog"]


class Shape(pydantic.BaseModel, ABC):
    @abstractmethod
    def area(self) -> float: ...


class Square(Shape):
    side: int

    def area(self) -> float:
        return self.side**2


class Owner(pydantic.BaseModel, extra="forbid"):
    pet: Union[Cat, Dog] = pydantic.Field(discriminator="kind")  # noqa: UP007


class Stripped(pydantic.BaseModel, extra="forbid", str_strip_whitespace=True):
    text: Annotated[str, pydantic.Field(min_length=2)]


class Hexadecimal(pydantic.BaseModel, extra="forbid", val_json_bytes="hex", ser_json_bytes="hex"):
    data: Annotated[bytes, pydantic.Field(min_length=1, max_length=3)]


class Base64(pydantic.BaseModel, extra="forbid", val_json_bytes="base64"):
    data: bytes


class Mixed(enum.Enum):
    TEXT = "a"
    NOTHING = None
    BYTES = b"b"
    DAY = datetime.date(2024, 2, 29)


class Finite(pydantic.BaseModel, extra="forbid", allow_inf_nan=False):
    number: float


TYPES: dict[str, tuple[Any, list[Any]]] = {
    "enum": (Mixed, [Mixed.TEXT, Mixed.NOTHING]),
    "literal": (Literal["a", b"b"], ["a"]),
    "keys of a mixed enum": (dict[Mixed, bool], [{Mixed.TEXT: True}]),
    "set of anything": (set, [set(), {"a"}]),
    "frozenset of anything": (frozenset[Any], [frozenset({None, 1})]),
    "byte size": (pydantic.ByteSize, [5]),
    "keys that are byte sizes": (dict[pydantic.ByteSize, bool], []),
    "multiples": (Annotated[float, pydantic.Field(multiple_of=0.75)], [-1.5, 0.0]),
    "decimal multiples": (Annotated[decimal.Decimal, pydantic.Field(multiple_of=decimal.Decimal("0.05"))], []),
    "digits behind the point alone": (Annotated[decimal.Decimal, pydantic.Field(max_digits=2, decimal_places=4)], []),
    "as many digits as places": (
        Annotated[decimal.Decimal, pydantic.Field(max_digits=2, decimal_places=2)],
        [decimal.Decimal("0.25"), decimal.Decimal("-0.05")],
    ),
    "integers": (list[int], [[10**30, -7]]),
    "strict integer": (pydantic.StrictInt, [10**17]),
    "finite": (Finite, [Finite(number=-1e10), Finite(number=0.5)]),
    "not space": (Annotated[str, pydantic.Field(pattern=r"^\S+@[\S]$")], ["a@b", "\u00e9\ufeff@x"]),
    "space": (Annotated[str, pydantic.Field(pattern=r"^\s[^\S]$")], ["\x85\u2003"]),
    "no word": (Annotated[str, pydantic.Field(pattern=r"^[^\w][\W_][\D]\W$")], ["-_--"]),
    "border": (Annotated[str, pydantic.Field(pattern=r"^.\bx\b.\B.$")], ["-x--"]),
    "lines": (Annotated[str, pydantic.Field(pattern=r"(?m)^a$")], ["b\na\nc"]),
    "any case": (Annotated[str, pydantic.Field(pattern=r"^(?i:[a-k]\x6b[^i])$")], ["I\u212a\u0131", "ik\u0130"]),
    "class of POSIX": (Annotated[str, pydantic.Field(pattern=r"^[[:alpha:]_][]a]$")], ["Z]", "_a"]),
    "uuid1": (pydantic.UUID1, [uuid.UUID("12345678-1234-1234-8234-123456789012")]),
    "uuid4": (pydantic.UUID4, [uuid.UUID("12345678-1234-4234-b234-123456789012")]),
    "datetime": (datetime.datetime, [datetime.datetime(2024, 2, 29, 1, 2, 3, 4, datetime.timezone.utc)]),
    "naive": (pydantic.NaiveDatetime, [datetime.datetime(2024, 2, 29, 1, 2, 3, 4)]),
    "date": (datetime.date, [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]),
    "from": (
        Annotated[datetime.date, pydantic.Field(gt=datetime.date(2019, 12, 31))],
        [datetime.date(2020, 1, 1), datetime.date(2020, 10, 9), datetime.date(3000, 1, 1)],
    ),
    "between": (
        Annotated[datetime.date, pydantic.Field(ge=datetime.date(2020, 2, 28), lt=datetime.date(2020, 3, 1))],
        [datetime.date(2020, 2, 28), datetime.date(2020, 2, 29)],
    ),
    "time": (datetime.time, [datetime.time(23, 59, 59, tzinfo=datetime.timezone.utc)]),
    "duration": (
        datetime.timedelta,
        [datetime.timedelta(3, 14401), datetime.timedelta(0), datetime.timedelta(-1, 0, 5)],
    ),
    "decimal": (decimal.Decimal, [decimal.Decimal("-1.50")]),
    "digits": (
        Annotated[decimal.Decimal, pydantic.Field(max_digits=4, decimal_places=2)],
        [decimal.Decimal("99.99"), decimal.Decimal("-0.01"), decimal.Decimal(12)],
    ),
    "all digits": (
        Annotated[decimal.Decimal, pydantic.Field(max_digits=3)],
        [decimal.Decimal("0.123"), decimal.Decimal("999"), decimal.Decimal("-1.23")],
    ),
    "places": (Annotated[decimal.Decimal, pydantic.Field(decimal_places=1)], [decimal.Decimal("12345.6")]),
    "bounded": (Annotated[decimal.Decimal, pydantic.Field(gt=0, le=decimal.Decimal("0.3"))], []),
    "fraction": (fractions.Fraction, []),
    "complex": (complex, [1.5 - 2j]),
    "ipv4network": (
        ipaddress.IPv4Network,
        [ipaddress.ip_network("10.32.0.0/11"), ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("1.2.3.4")],
    ),
    "ipv6network": (
        ipaddress.IPv6Network,
        [ipaddress.ip_network(each) for each in ("2001:db8::/29", "::/0", "2001:db8:8000::/33", "fe80::1/128")],
    ),
    "ipv4interface": (ipaddress.IPv4Interface, [ipaddress.ip_interface("1.2.3.4/24")]),
    "ipv6interface": (ipaddress.IPv6Interface, [ipaddress.ip_interface("::1/24")]),
    "ipvanyaddress": (pydantic.IPvAnyAddress, [ipaddress.ip_address("::1"), ipaddress.ip_address("1.2.3.4")]),
    "http": (pydantic.HttpUrl, [pydantic.HttpUrl("https://u:p@my-host.example.co.uk:8080/x?y=z#w")]),
    "websocket": (pydantic.WebsocketUrl, [pydantic.WebsocketUrl("wss://[::1]/")]),
    "file": (pydantic.FileUrl, [pydantic.FileUrl("file:///etc/passwd")]),
    "postgres": (pydantic.PostgresDsn, [pydantic.PostgresDsn("postgresql://user:pw@a:5432,b/db?sslmode=require")]),
    "base 64": (pydantic.Base64Bytes, [b"YWJj", b"YQ=="]),
    "bytes in hex": (Hexadecimal, [Hexadecimal(data=b"\x01\xff")]),
    "bytes in base 64": (Base64, []),
    "short bytes": (Annotated[bytes, pydantic.Field(max_length=2)], [b"ab"]),
    "stripped": (Stripped, [Stripped(text="a b")]),
    "keys of int": (dict[int, str], [{0: "", -5: "", 12: ""}]),
    "positive keys": (dict[pydantic.PositiveInt, str], [{1: ""}]),
    "keys of float": (dict[float, str], [{0.5: ""}]),
    "keys of bool": (dict[bool, str], [{True: ""}]),
    "keys of an enum": (dict[Colour, str], [{Colour.RED: ""}]),
    "keys of an IntEnum": (dict[Level, str], [{Level.LOW: ""}]),
    "keys of a UUID": (dict[uuid.UUID, bool], [{uuid.UUID(int=7): True}]),
    "keys of two types": (dict[Union[int, datetime.date], str], [{1: ""}]),  # noqa: UP007
    "keys with a pattern": (dict[Annotated[str, pydantic.Field(pattern="^a+$")], int], [{"a": 1}]),
    "tagged union": (Owner, [Owner(pet=Cat(lives=9)), Owner(pet=Dog(name="", kind="dog"))]),
}


def compiled_for(given: Any) -> constrain.CompiledGrammar:
    return COMPILER.compile(constrain.Grammar.from_pydantic(given))


def random_text(compiled: constrain.CompiledGrammar, source: random.Random) -> bytes:
    """Mostly printable, and complete within 90 tokens."""
    matcher = constrain.Matcher(compiled, 90)
    text = b""
    while not matcher.is_terminated():
        allowed = sorted(mask_of(matcher))
        usual = [token for token in allowed if (33 <= token < 127 and token != ord("\\")) or token >= END]
        token = source.choice(usual if usual and source.random() < 0.95 else allowed)
        assert matcher.accept_token(token)
        text += b"" if token == END else TOKENS[token]
    return text


@pytest.mark.parametrize("name", TYPES)
def test_what_is_written_is_read(name: str) -> None:
    given, _ = TYPES[name]
    adapter, compiled, source = pydantic.TypeAdapter(given), compiled_for(given), random.Random(name)
    for _ in range(25):
        adapter.validate_json(random_text(compiled, source))


@pytest.mark.parametrize("name", TYPES)
def test_what_pydantic_writes_can_be_written(name: str) -> None:
    given, values = TYPES[name]
    for value in values:
        text = pydantic.TypeAdapter(given).dump_json(value)
        matcher = constrain.Matcher(compiled_for(given))
        assert matcher.accept_bytes(text), text
        assert matcher.is_accepting(), text


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (pydantic.UUID4, '"12345678-1234-1234-8234-123456789012"'),
        (ipaddress.IPv4Network, '"10.32.0.1/11"'),
        (pydantic.HttpUrl, '"ftp://example.com/"'),
        (dict[int, str], '{"a": ""}'),
        (dict[str, int] | dict[None, int], '{"a": ""}'),
        (Annotated[decimal.Decimal, pydantic.Field(max_digits=3)], "12.34"),
        (Annotated[decimal.Decimal, pydantic.Field(gt=0)], '"-1"'),
        (Owner, '{"pet": {"lives": 9}}'),
        (Mixed, '"b"'),
        (Mixed, '"2024-02-29"'),
        (Literal["a", b"b"], '"b"'),
        (dict[Mixed, bool], '{"None": true}'),
        (set, "[[]]"),
        (Annotated[float, pydantic.Field(lt=0.3)], "0.29999999999999999999"),
        (Annotated[float, pydantic.Field(gt=0.3)], "0.30000000000000000001"),
        (pydantic.FiniteFloat, "1e400"),
        (Finite, '{"number": -2e308}'),
        (decimal.Decimal, "1e99999999999999999999"),
        (Annotated[str, pydantic.Field(pattern=r"^\S$")], '"\x85"'),
        (int, "1e30"),
        (pydantic.StrictInt, "12.0"),
        (Annotated[int, pydantic.Field(ge=10**40)], "10000000000000000000000000000000000000000.0"),
        (Annotated[float, pydantic.Field(multiple_of=3)], "1102993794039813198"),
        (pydantic.ByteSize, '"3 rb"'),
        (fractions.Fraction, "1e4025360"),
        (Annotated[decimal.Decimal, pydantic.Field(multiple_of=decimal.Decimal("0.05"))], "7e87"),
        (Annotated[decimal.Decimal, pydantic.Field(gt=18446744073709552000)], "18446744073709552001.5"),
        (Annotated[decimal.Decimal, pydantic.Field(multiple_of=3)], "1102993794039813198.0"),
        (Annotated[int | float, pydantic.Field(ge=1, lt=0.3 + 2)], "0.5"),
        (Annotated[int | float, pydantic.Field(lt=0.3)], "0.29999999999999999999"),
        (Annotated[Literal[1, 2], pydantic.Field(gt=1)], "1"),
        (Annotated[list[int] | str, pydantic.Field(min_length=2)], "[1]"),
        (Hashable, "[]"),
        (Annotated[decimal.Decimal, pydantic.Field(max_digits=20)], "99999999999999999999.0"),
        (Annotated[decimal.Decimal, pydantic.Field(max_digits=2, decimal_places=2)], "0"),
        (Annotated[decimal.Decimal, pydantic.Field(max_digits=2, decimal_places=2)], '"0"'),
        (Annotated[str, pydantic.Field(pattern=r"^\s$")], '"\ufeff"'),
        (Annotated[str, pydantic.Field(pattern=r"^\D$")], '"\u0663"'),
        (Annotated[str, pydantic.Field(pattern=r"^[\W]$")], '"\u00e9"'),
        (Annotated[str, pydantic.Field(pattern=r"\bx\b")], '"x\u00e9"'),
        (Annotated[str, pydantic.Field(pattern=r"(?m)^a$")], '"\u2028a"'),
        (Annotated[str, pydantic.Field(pattern=r"^[[:alpha:]]$")], '":]"'),
        (Annotated[str, pydantic.Field(pattern="(?i)^[a-k]$")], '"\u0131"'),
        (Annotated[str, pydantic.Field(pattern="(?i)^\u0131$")], '"i"'),
        (Annotated[str, pydantic.Field(pattern=re.compile("^a + b$", re.VERBOSE))], '"a  b"'),
        (Annotated[str, pydantic.Field(pattern=re.compile("^a$", re.MULTILINE))], '"a\u2028"'),
        (Annotated[str, pydantic.Field(pattern=re.compile("^[^]a]$"))], '"xa]"'),
    ],
)
def test_what_is_not_read_is_not_written(given: Any, text: str) -> None:
    with pytest.raises(pydantic.ValidationError):
        pydantic.TypeAdapter(given).validate_json(text)
    matcher = constrain.Matcher(COMPILER.compile(constrain.Grammar.from_pydantic(given)))
    assert not (matcher.accept_bytes(text.encode()) and matcher.is_accepting())


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (re.compile("^ a + b $  # several", re.VERBOSE), "aab"),
        (re.compile("^a$", re.IGNORECASE), "A"),
        (re.compile("^[]a]$"), "]"),
        (re.compile("^[^]^]$"), "a"),
        (re.compile("^a  # [\n$  # ]", re.VERBOSE | re.MULTILINE), "a\nb"),
        (re.compile("^a.b$", re.DOTALL), "a\nb"),
        (re.compile("^[$^]a$", re.MULTILINE), "x\n^a\ny"),
        (re.compile("(?i)^\\$a$", re.MULTILINE | re.VERBOSE), "\n$A"),
        (re.compile("^k$", re.IGNORECASE | re.ASCII), "K"),
    ],
)
def test_flags_of_compiled_patterns(pattern: re.Pattern[str], text: str) -> None:
    given = Annotated[str, pydantic.Field(pattern=pattern)]
    assert pydantic.TypeAdapter(given).validate_python(text) == text
    matcher = constrain.Matcher(COMPILER.compile(constrain.Grammar.from_pydantic(given)))
    assert matcher.accept_bytes(json.dumps(text).encode())
    assert matcher.is_accepting()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (Annotated[decimal.Decimal, pydantic.Field(gt=2**64 + 2, lt=2**64 + 4)], str(2**64 + 3)),
        (Annotated[decimal.Decimal, pydantic.Field(multiple_of=3)], "1102993794039813198"),
        (Annotated[decimal.Decimal, pydantic.Field(max_digits=20)], "99999999999999999999"),
        (Annotated[decimal.Decimal, pydantic.Field(gt=0, lt=0.3)], "5e-324"),
    ],
)
def test_integers_of_decimals_are_read_as_they_are_and_others_as_doubles(given: Any, text: str) -> None:
    pydantic.TypeAdapter(given).validate_json(text)
    matcher = constrain.Matcher(COMPILER.compile(constrain.Grammar.from_pydantic(given)))
    assert matcher.accept_bytes(text.encode())
    assert matcher.is_accepting()


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (
            Annotated[decimal.Decimal, pydantic.Field(gt=0.1, lt=decimal.Decimal("0.1000000000000000000001"))],
            "no number",
        ),
        (enum.Enum, "Enum has no members"),
        (type[int] | type[str], "no alternative of a union is read from JSON"),
        (Shape, "Shape is abstract: nothing is read as one"),
        (Literal[b"b"], "none of its values is read from JSON: 'b'"),
        (type[int], "IsSubclassSchema"),
        (Annotated[str, pydantic.Field(pattern="[a-z&&[^x]]")], "'&&' in one"),
        (Annotated[int, pydantic.Field(ge=1e30)], r"no validator for .*'ge' must be coercible to an integer"),
        (Annotated[int, pydantic.Field(multiple_of=2.5)], "'multiple_of' must be coercible to an integer"),
    ],
)
def test_what_nothing_would_be_read_for_is_refused(given: Any, reason: str) -> None:
    with pytest.raises(GrammarError, match=reason):
        constrain.Grammar.from_pydantic(given)


def test_bounds_that_are_not_enforced_are_named() -> None:
    grammar = constrain.Grammar.from_pydantic(Annotated[datetime.timedelta, pydantic.Field(gt=datetime.timedelta(1))])
    assert grammar.warnings == ("at #/gt: the bound 'gt' is not enforced",)
    keys = Annotated[int, pydantic.Field(gt=0, lt=7)]
    assert constrain.Grammar.from_pydantic(dict[keys, str]).warnings == (
        "at #/propertyNames/lt: the bound 'lt' is not enforced",
    )
    assert constrain.Grammar.from_pydantic(pydantic.PastDate).warnings == (
        "at #/now_op: whether a time is past or future is not enforced",
    )


def kind_of(value: Any) -> str:
    return "i" if isinstance(value, int) else "s"


def test_what_else_is_not_enforced_is_named() -> None:
    for given, word in (
        (Annotated[float, pydantic.Field(multiple_of=0.1)], "rounded_multiple_of"),
        (pydantic.Base64Str, "contentMediaType"),
        (pydantic.Json[int], "contentSchema"),
        (re.Pattern, "python_regex"),
        (Annotated[int | str, pydantic.Field(ge=2)], "ge"),
        (Annotated[set[int | bool], pydantic.Field(min_length=2)], "min_length_of_values"),
        (Annotated[frozenset[datetime.date], pydantic.Field(min_length=2)], "min_length_of_values"),
        (
            Annotated[
                Annotated[int, pydantic.Tag("i")] | Annotated[str, pydantic.Tag("s")], pydantic.Discriminator(kind_of)
            ],
            "discriminator_function",
        ),
    ):
        warnings = constrain.Grammar.from_pydantic(given).warnings
        assert any(word in each for each in warnings)
        assert all(each.endswith(" is not enforced") for each in warnings)
    # Values that differ are read as such.
    assert constrain.Grammar.from_pydantic(Annotated[set[int | str], pydantic.Field(min_length=2)]).warnings == ()
    # Bounds that are those of all numbers are none.
    assert constrain.Grammar.from_pydantic(dict[decimal.Decimal, int]).warnings == ()
    assert constrain.Grammar.from_pydantic(pydantic.Base64Bytes).warnings == ()


@pytest.mark.skipif(
    "ascii_only" not in inspect.signature(pydantic.StringConstraints).parameters, reason="pydantic before 2.13"
)
def test_ascii_only() -> None:
    ascii_only = Annotated[str, pydantic.StringConstraints(ascii_only=True)]
    matcher = constrain.Matcher(compiled_for(ascii_only))
    assert not matcher.accept_bytes('"\u00e9'.encode())
    assert matcher.accept_bytes(b'"e"')


def test_formats_that_any_string_has_are_no_warnings() -> None:
    for given in (bytes, pydantic.SecretStr):
        assert constrain.Grammar.from_pydantic(given).warnings == ()


class ByName(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(populate_by_name=True)
    first: int = pydantic.Field(0, alias="one")


class NoAlias(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(validate_by_name=True, validate_by_alias=False)
    first: int = pydantic.Field(0, alias="one")


class Choices(pydantic.BaseModel):
    first: int = pydantic.Field(0, validation_alias=pydantic.AliasChoices("one", "two", pydantic.AliasPath("path", 0)))


class Typed(TypedDict, total=False):
    first: Annotated[int, pydantic.Field(validation_alias=pydantic.AliasChoices("one", "two"))]


@pytest.mark.parametrize(
    ("given", "read", "not_read"),
    [
        (ByName, ["one"], ["first"]),
        (NoAlias, ["first"], []),
        (Choices, ["one"], ["two", "path"]),
        (Typed, ["one"], ["two"]),
    ],
)
def test_no_other_member_has_a_name_that_a_field_is_read_from(given: Any, read: list[str], not_read: list[str]) -> None:
    for name in (*read, *not_read):
        with pytest.raises(pydantic.ValidationError):
            pydantic.TypeAdapter(given).validate_json(f'{{"{name}": ["a"]}}')
        assert not constrain.Matcher(compiled_for(given)).accept_bytes(f'{{"{name}": ["a"'.encode())
    for name in {"first", "one", "two", "path", "other"} - {*read, *not_read}:
        pydantic.TypeAdapter(given).validate_json(f'{{"{name}": ["a"]}}')
        assert constrain.Matcher(compiled_for(given)).accept_bytes(f'{{"{name}": ["a"]}}'.encode())


@pytest.mark.parametrize("alias", [pydantic.AliasPath("x", 0), pydantic.AliasChoices(pydantic.AliasPath("x", "y"))])
def test_a_field_within_another_is_refused(alias: Any) -> None:
    class Inside(pydantic.BaseModel):
        first: int = pydantic.Field(validation_alias=alias)

    with pytest.raises(GrammarError, match=r"a field is read from the path \['x', .*give it an alias"):
        constrain.Grammar.from_pydantic(Inside)


class Options(TypedDict, total=False):
    first: Required[int]
    others: list[Options]


def with_options(name: str = "", **options: Unpack[Options]) -> None: ...


def with_choices(one: Annotated[int, pydantic.Field(validation_alias=pydantic.AliasChoices("a", "b"))]) -> None: ...


@pytest.mark.parametrize(
    ("given", "text", "is_read"),
    [
        (with_options, '{"first":1}', True),
        (with_options, '{"name":"x","first":1,"others":[{"first":2}]}', True),
        (with_options, '{"name":"x"}', False),
        (with_options, '{"first":1,"x":{"first":1}}', False),
        (with_options, '{"x":{"first":1}}', False),
        (with_choices, '{"a":1}', True),
        (with_choices, '{"one":1}', False),
    ],
)
def test_arguments_that_pydantic_writes_as_others(given: Any, text: str, is_read: bool) -> None:
    matcher = constrain.Matcher(compiled_for(given))
    assert (matcher.accept_bytes(text.encode()) and matcher.is_accepting()) is is_read


def test_an_argument_within_another_is_refused() -> None:
    def inside(first: Annotated[int, pydantic.Field(validation_alias=pydantic.AliasPath("x", 0))]) -> None: ...

    with pytest.raises(GrammarError, match=r"an argument is read from the path \['x', 0\] .*give it an alias"):
        constrain.Grammar.from_pydantic(inside)


def test_no_date_within_its_bounds() -> None:
    with pytest.raises(GrammarError, match="no date lies within its bounds"):
        constrain.Grammar.from_pydantic(Annotated[datetime.date, pydantic.Field(gt=datetime.date.max)])


class Dated(pydantic.BaseModel):
    kind: Literal["dated"]
    year: int = 0

    @pydantic.model_validator(mode="after")
    def _in_order(self) -> Dated:
        return self


class Named(pydantic.BaseModel):
    kind: Literal["named"]
    inner: Annotated[Dated | Named, pydantic.Field(discriminator="kind")]

    @pydantic.field_validator("inner")
    @classmethod
    def _known(cls, value: Any) -> Any:
        return value

    @pydantic.model_validator(mode="before")
    @classmethod
    def _whole(cls, value: Any) -> Any:
        return value


def test_warnings_name_validators_in_python() -> None:
    grammar = constrain.Grammar.from_pydantic(Named)
    named = {
        name
        for warning in grammar.warnings
        for name in re.findall("python_validator: the Python code in (.*) is not enforced$", warning)
    }
    assert named == {"Dated._in_order", "Named._known", "Named._whole"}
    # Models are told apart as without validators.
    compiled = COMPILER.compile(grammar)
    assert fits(compiled, '{"kind": "named", "inner": {"kind": "dated", "year": 1}}')
    assert not fits(compiled, '{"kind": "dated", "year": 1}')
    assert not fits(compiled, '{"kind": "named", "inner": {"kind": "dated", "year": []}}')


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (Annotated[int, pydantic.AfterValidator(abs)], "abs"),
        (Annotated[int, pydantic.BeforeValidator(int)], "int"),
        (Annotated[int, pydantic.PlainValidator(partial(partial(int), base=8))], "int"),
        (Annotated[str, annotated_types.Predicate(str.isupper)], "a predicate"),
        (Annotated[int, pydantic.AfterValidator(abs), pydantic.BeforeValidator(int)], "abs, int"),
        (pydantic.NewPath, "PathType.validate_new"),
        (pydantic.ImportString, "import_string"),
    ],
)
def test_functions_that_look_at_a_value(given: Any, said: str) -> None:
    (warning,) = constrain.Grammar.from_pydantic(given).warnings
    assert warning == f"at #/python_validator: the Python code in {said} is not enforced"


def test_an_init_of_its_own() -> None:
    class Made(pydantic.BaseModel):
        a: int

        def __init__(self, **given: Any) -> None:
            super().__init__(**given)

    (warning,) = constrain.Grammar.from_pydantic(Made).warnings
    assert warning.endswith("Made.__init__ is not enforced")


def test_functions_of_pydantic_that_the_schema_makes_up_for() -> None:
    for given in (pathlib.Path, pydantic.HttpUrl, pydantic.IPvAnyAddress, pydantic.ByteSize, pydantic.Base64Bytes):
        assert constrain.Grammar.from_pydantic(given).warnings == ()
    bounded = Annotated[int | float, pydantic.Field(gt=1)]
    assert constrain.Grammar.from_pydantic(bounded).warnings == ()


def test_tools_that_are_models_say_what_is_not_enforced() -> None:
    (warning,) = constrain.Grammar.from_tools([Dated], style="qwen3").warnings
    assert warning == ("at #/0/parameters/python_validator: the Python code in Dated._in_order is not enforced")


def test_alternatives_that_nothing_is_read_as_are_left_out() -> None:
    compiled = compiled_for(list[Shape | Square | enum.Enum | type[int]])
    assert fits(compiled, '[{"side": 2}]')
    assert not fits(compiled, "[{}]")
    compiled = compiled_for(list[Shape | None])
    assert fits(compiled, "[null]")
    assert not fits(compiled, "[{}]")
    assert fits(compiled_for(list[type[int] | type[str] | None]), "[null]")
