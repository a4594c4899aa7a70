"""A JSON Schema that says what pydantic's validators read, where the one that pydantic writes says less.

Pydantic writes ``{"type": "string", "format": "uuid4"}`` for a UUID of version 4, which no draft knows, and a plain
string for the digits of a ``Decimal``: a text that is valid for such a schema fails in ``model_validate_json``.
Everything here narrows what pydantic writes to texts that its validators take.  Where they take several spellings of
one value it is the usual one: ``2001:db8::/32``, ``"12.50"``, and no ``" 1_2.5e1 "``.
"""

from __future__ import annotations

import datetime
import decimal
import inspect
import json
import math
import re
import sys
from collections.abc import Callable, Hashable, Iterable
from decimal import Decimal
from functools import partial
from typing import Any

from pydantic import ByteSize
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import SchemaValidator, ValidationError, core_schema

from constrain.grammar.pydantic.compiled_patterns import with_flags
from constrain.grammar.pydantic.patterns import (
    ASCII,
    BASE64URL,
    BYTE_SIZE,
    COMPLEX,
    DECIMAL,
    DURATION,
    FORMATS,
    FRACTION,
    HEX,
    HOST,
    HOSTS,
    INTEGER,
    NAIVE_DATETIME,
    NUMBER,
    SECOND,
    TRIMMED,
    decimal_of,
    from_day,
    up_to_day,
)
from constrain.grammar.pydantic.rust_regex import as_ecma

_Schema = dict[str, Any]

_MOST = 1e308
_DIGITS_OF_DOUBLES = sys.float_info.dig

_SCALARS: _Schema = {"type": ["null", "boolean", "number", "string"]}

_UNENFORCED = ("ge", "gt", "le", "lt", "now_op")
"""Assertions about times for which there is no keyword: ``Grammar.warnings`` says that they have no effect."""


_FUNCTIONS = ("function-before", "function-after", "function-wrap", "function-plain")

_LIKE_OWN_CODE = {
    "apply_known_metadata.<locals>.val_func": "a predicate",
    **{name: name for name in ("PathType.validate_new", "PathType.validate_socket", "import_string")},
}
"""Those of pydantic's own functions that nothing else in the schema makes up for, as messages name them."""


class ValidatorJsonSchema(GenerateJsonSchema):
    """Pydantic's generator of JSON Schemas, with what its validators ask for beyond what it writes."""

    def generate_inner(self, schema: Any) -> _Schema:
        """Any type: the formats that only pydantic knows become assertions."""
        written = super().generate_inner(schema)
        if schema["type"] == "function-after":
            written = _with_later_bounds(written, schema)
        if schema["type"] in _FUNCTIONS:
            name = _own_code(schema["function"]["function"])
            written = _with_validator(written, name) if name else written
        if written.get("format") == "regex":
            # The format is that of ECMA-262.
            return {**written, "python_regex": True}
        known = FORMATS.get(written.get("format", ""))
        if known is not None and written.get("format") in ("base64", "base64url") and _innermost(schema) == "str":
            # Annotations are not enforced, and the warnings say so.
            known = {**known, "contentMediaType": "text/plain; charset=utf-8"}
        if known is None or written.get("type") != "string":
            return written
        return _both({key: value for key, value in written.items() if key != "format"}, known)

    def float_schema(self, schema: Any) -> _Schema:
        """Bounds hold for the double that is read, which is 0.3 for 0.29999999999999999999."""
        written = _of_doubles(super().float_schema(schema))
        if schema.get("allow_inf_nan", self._config.config_dict.get("allow_inf_nan", True)):
            return written
        return {"minimum": -sys.float_info.max, "maximum": sys.float_info.max, **written}

    def enum_schema(self, schema: Any) -> _Schema:
        """Values that are read from JSON: bytes and dates are not."""
        return _read_from_json(super().enum_schema(schema), schema)

    def literal_schema(self, schema: Any) -> _Schema:
        """Values that are read from JSON."""
        return _read_from_json(super().literal_schema(schema), schema)

    def set_schema(self, schema: Any) -> _Schema:
        """Items that can be members of a set."""
        return _hashable(super().set_schema(schema), schema)

    def frozenset_schema(self, schema: Any) -> _Schema:
        """Items that can be members of a set."""
        return _hashable(super().frozenset_schema(schema), schema)

    def chain_schema(self, schema: Any) -> _Schema:
        """``Hashable`` is read as anything, and then looked at."""
        if schema["steps"][-1].get("cls") is Hashable:
            return _SCALARS
        return super().chain_schema(schema)

    def is_subclass_schema(self, schema: Any) -> _Schema:
        """No JSON is a class, though pydantic writes a schema for which all of it is valid."""
        return self.handle_invalid_for_json_schema(schema, "core_schema.IsSubclassSchema")

    def str_schema(self, schema: Any) -> _Schema:
        """A string that is stripped before it is looked at has nothing to strip, so that its length stays."""
        written = super().str_schema(schema)
        engine = schema.get("regex_engine", self._config.config_dict.get("regex_engine"))
        if isinstance(schema.get("pattern"), str) and engine != "python-re":
            written["pattern"] = as_ecma(schema["pattern"])
        elif isinstance(schema.get("pattern"), re.Pattern):
            written["pattern"] = with_flags(schema["pattern"])
        if schema.get("pattern") == ByteSize.byte_string_pattern:
            written["pattern"] = BYTE_SIZE
        if schema.get("ascii_only"):
            written = _both(written, {"pattern": ASCII})
        strips = schema.get("strip_whitespace", self._config.str_strip_whitespace)
        asserts = {"minLength", "pattern"} & written.keys()
        return _both(written, {"pattern": TRIMMED}) if strips and asserts else written

    def bytes_schema(self, schema: Any) -> _Schema:
        """Bytes are written as text, in base 64 or as hexadecimal digits; their lengths count bytes."""
        encoding = self._config.config_dict.get("val_json_bytes", "utf8")
        if encoding == "hex":
            doubled = {key: 2 * schema[key] for key in ("min_length", "max_length") if key in schema}
            written = {"type": "string", "pattern": HEX}
            self.update_with_validations(written, {**schema, **doubled}, self.ValidationsMapping.bytes)
            return written
        written = super().bytes_schema(schema)
        written.pop("format", None)
        if encoding == "base64":
            words = {"minLength": "min_length", "maxLength": "max_length"}
            return {words.get(key, key): value for key, value in written.items()} | {"pattern": BASE64URL}
        return _both(written, {"pattern": ASCII}) if "maxLength" in written else written

    def date_schema(self, schema: Any) -> _Schema:
        """Bounds of dates are patterns, as dates are written with a fixed number of digits."""
        written = _both(super().date_schema(schema), {"pattern": "^(?!0000)"})
        day = datetime.timedelta(1)
        try:
            first = [schema[key] + more for key, more in (("ge", 0 * day), ("gt", day)) if key in schema]
            last = [schema[key] - less for key, less in (("le", 0 * day), ("lt", day)) if key in schema]
        except OverflowError:
            raise PydanticInvalidForJsonSchema("no date lies within its bounds") from None
        for pattern in [*map(from_day, first), *map(up_to_day, last)]:
            written = _both(written, {"pattern": pattern})
        return _both(written, _unenforced({key: schema[key] for key in ("now_op",) if key in schema}))

    def datetime_schema(self, schema: Any) -> _Schema:
        """No year 0 and no leap second; without an offset where the validator wants none."""
        written = super().datetime_schema(schema)
        if schema.get("tz_constraint") == "naive":
            written.pop("format", None)
            written = _both(written, {"pattern": NAIVE_DATETIME})
        else:
            written = _both(written, {"pattern": f"^(?!0000){SECOND}"})
        return _both(written, _unenforced(schema))

    def time_schema(self, schema: Any) -> _Schema:
        """No leap second."""
        return _both(super().time_schema(schema), {"pattern": f"^{SECOND}", **_unenforced(schema)})

    def timedelta_schema(self, schema: Any) -> _Schema:
        """At most 999,999,999 days."""
        written = {key: value for key, value in super().timedelta_schema(schema).items() if key != "format"}
        return _both(written, {"pattern": DURATION, **_unenforced(schema)})

    def decimal_schema(self, schema: Any) -> _Schema:
        """A number, or its digits in a string; a string only where no bound has to hold for it."""
        numbers = _decimal_numbers(schema)
        digits, places = schema.get("max_digits"), schema.get("decimal_places")
        bounded = any(schema.get(key) is not None for key in ("ge", "gt", "le", "lt", "multiple_of"))
        if digits is None and places is None:
            cases, patterns = numbers, [DECIMAL]
        else:
            places = digits if places is None else places if digits is None else min(places, digits)
            # Digits before the point, and behind it: with max_digits alone their sum is bounded; each split is a case.
            whole = None if digits is None else max(digits - schema.get("decimal_places", 0), 0)
            splits = [(whole, places)]
            if schema.get("decimal_places") is None:
                splits = [(digits - behind, behind) for behind in range(digits + 1)]
            cases = [_digits_of(number, before, behind) for before, behind in splits for number in numbers]
            patterns = [decimal_of(before, behind) for before, behind in splits]
        if not bounded:
            cases += [{"type": "string", "pattern": pattern} for pattern in patterns]
        return cases[0] if len(cases) == 1 else {"anyOf": cases}

    def fraction_schema(self, schema: Any) -> _Schema:
        """A number, or a fraction with digits on both sides of its stroke."""
        number = {"type": "number", "minimum": -_MOST, "maximum": _MOST}
        return {"anyOf": [number, {"type": "string", "pattern": FRACTION}]}

    def complex_schema(self, schema: Any) -> _Schema:
        """``1.5-2j``."""
        return {"type": "string", "pattern": COMPLEX}

    def url_schema(self, schema: Any) -> _Schema:
        """A URL of one of the schemes, with a host of letters and digits or an address."""
        written = super().url_schema(schema)
        schemes = schema.get("allowed_schemes")
        if not schemes:
            return written
        # The host of a file may be left out, and is.
        return _both(written, {"pattern": f"^(?:{_any_of(schemes)})://{'/' if schemes == ['file'] else HOST}"})

    def multi_host_url_schema(self, schema: Any) -> _Schema:
        """Hosts behind one of the schemes."""
        written = super().multi_host_url_schema(schema)
        written.pop("format", None)
        schemes = schema.get("allowed_schemes")
        return _both(written, {"pattern": f"^{f'(?:{_any_of(schemes)})' if schemes else '[a-z]+'}://{HOSTS}"})

    def dict_schema(self, schema: Any) -> _Schema:
        """Keys of another type than ``str`` are that type's text."""
        written = super().dict_schema(schema)
        if "patternProperties" in written:
            written.setdefault("additionalProperties", False)
        keys = schema.get("keys_schema", {"type": "any"})
        if keys["type"] == "enum":
            written["propertyNames"] = {"enum": _names_read(keys)}
        elif "patternProperties" not in written and "propertyNames" not in written and keys["type"] != "any":
            names = _names(self.generate_inner(keys))
            return written if names == {} else {**written, "propertyNames": names}
        return written

    def union_schema(self, schema: Any) -> _Schema:
        """At least one alternative that can be read from JSON."""
        written = super().union_schema(schema)
        if written.get("anyOf") == []:
            raise PydanticInvalidForJsonSchema("no alternative of a union is read from JSON")
        return written

    def nullable_schema(self, schema: Any) -> _Schema:
        """``null`` alone where nothing else is read from JSON, as unions leave out such alternatives."""
        try:
            return super().nullable_schema(schema)
        except PydanticInvalidForJsonSchema as error:
            self.emit_warning("skipped-choice", error.message)
            return {"type": "null"}

    def model_schema(self, schema: Any) -> _Schema:
        """A class that has objects, as its own ``__init__`` makes them where it has one."""
        if inspect.isabstract(schema["cls"]):
            raise PydanticInvalidForJsonSchema(f"{schema['cls'].__name__} is abstract: nothing is read as one")
        written = super().model_schema(schema)
        return _with_validator(written, schema["cls"].__init__.__qualname__) if schema.get("custom_init") else written

    def tagged_union_schema(self, schema: Any) -> _Schema:
        """The tag decides which type it is, so that it is required also where the type has a default for it."""
        written = super().tagged_union_schema(schema)
        tag = written.get("discriminator", {}).get("propertyName")
        if callable(schema["discriminator"]):
            return {**written, "discriminator_function": True}
        is_name = tag is not None and isinstance(schema["discriminator"], str)
        return {**written, "required": [tag]} if is_name else written

    def model_fields_schema(self, schema: Any) -> _Schema:
        """Fields, and no member that one of them would be read from beside its property."""
        return self._without_others(super().model_fields_schema(schema), schema["fields"].items())

    def typed_dict_schema(self, schema: Any) -> _Schema:
        """The same of a ``TypedDict``."""
        return self._without_others(super().typed_dict_schema(schema), schema["fields"].items())

    def dataclass_args_schema(self, schema: Any) -> _Schema:
        """The same of a dataclass."""
        fields = [(field["name"], field) for field in schema["fields"]]
        return self._without_others(super().dataclass_args_schema(schema), fields)

    def arguments_schema(self, schema: Any) -> _Schema:
        """Arguments of which some stand in a ``TypedDict`` (``**options: Unpack[Options]``) are members like others.

        Pydantic writes that each further member is such a dictionary.
        """
        others = schema.get("var_kwargs_schema")
        if others is None or schema.get("var_kwargs_mode") != "unpacked-typed-dict":
            return super().arguments_schema(schema)
        by_name: Any = {key: value for key, value in schema.items() if key != "var_kwargs_schema"}
        written, further = super().arguments_schema(by_name), self.generate_inner(others)
        if written["type"] != "object":
            return super().arguments_schema(schema)
        if "$ref" in further:
            further = self.get_schema_from_definitions(further["$ref"]) or {}
        properties = {**written["properties"], **further["properties"]}
        required = [*written.get("required", ()), *further.get("required", ())]
        return {**written, "properties": properties, "required": required}

    def get_argument_name(self, argument: Any) -> str:
        """The name that an argument is read by; pydantic writes the parameter's where there are several."""
        aliases = argument.get("alias")
        if not isinstance(aliases, list) or not self.by_alias:
            return super().get_argument_name(argument)
        paths = aliases if isinstance(aliases[0], list) else [aliases]
        names = [path[0] for path in paths if len(path) == 1]
        if names:
            return str(names[0])
        raise PydanticInvalidForJsonSchema(
            f"an argument is read from the path {paths[0]} (AliasPath): give it an alias that is one name"
        )

    def _without_others(self, written: _Schema, fields: Iterable[tuple[str, Any]]) -> _Schema:
        if written.get("additionalProperties") is False or "properties" not in written:
            return written
        names: list[str] = []
        for name, field in fields:
            aliases = field.get("validation_alias", name)
            paths = aliases if isinstance(aliases, list) and isinstance(aliases[0], list) else [aliases]
            if self._config.config_dict.get("validate_by_alias", True):
                names += [path if isinstance(path, str) else path[0] for path in paths]
            names += [name] if self._is_by_name() else []
        others: _Schema = {name: {"not": {}} for name in names if name not in written["properties"]}
        return {**written, "properties": {**written["properties"], **others}} if others else written

    def _is_by_name(self) -> bool:
        """Whether fields are read from members with their names, whatever their aliases are."""
        return any(self._config.config_dict.get(key) for key in ("validate_by_name", "populate_by_name"))

    def model_field_schema(self, schema: Any) -> _Schema:
        """A field that has a property."""
        self._check_alias(schema)
        return super().model_field_schema(schema)

    def dataclass_field_schema(self, schema: Any) -> _Schema:
        """A field that has a property."""
        self._check_alias(schema)
        return super().dataclass_field_schema(schema)

    def typed_dict_field_schema(self, schema: Any) -> _Schema:
        """A field that has a property."""
        self._check_alias(schema)
        return super().typed_dict_field_schema(schema)

    def _check_alias(self, field: Any) -> None:
        """Refuse a field that is read from within another: pydantic writes a property that it does not read."""
        aliases = field.get("validation_alias", "")
        paths = aliases if isinstance(aliases, list) and isinstance(aliases[0], list) else [aliases]
        if not self._is_by_name() and all(isinstance(path, list) and len(path) > 1 for path in paths):
            raise PydanticInvalidForJsonSchema(
                f"a field is read from the path {paths[0]} (AliasPath): give it an alias that is one name"
            )


def _innermost(schema: Any) -> str:
    """What a value is before functions look at it."""
    while schema["type"].startswith("function-") and "schema" in schema:
        schema = schema["schema"]
    return str(schema["type"])


def _exact_multiples(unit: float) -> _Schema:
    """Where the double that is read of a multiple is one; for most fractions it is not, and the warnings name it."""
    if Decimal(repr(unit)) != Decimal(unit):
        return {"rounded_multiple_of": unit}
    numerator, denominator = float(unit).as_integer_ratio()
    most = 2.0**53 * (numerator & -numerator) / denominator
    return {"minimum": -most, "maximum": most}


def _both(first: _Schema, second: _Schema) -> _Schema:
    """A schema for what is valid for two of them."""
    if first.keys().isdisjoint(second):
        return {**first, **second}
    return {**first, "allOf": [*first.get("allOf", []), second]}


def _read_from_json(written: _Schema, schema: Any) -> _Schema:
    """An enumeration with those of its values that its validator takes."""
    if schema.get("members") == []:
        raise PydanticInvalidForJsonSchema(f"{schema['cls'].__name__} has no members")
    values = [written["const"]] if "const" in written else written["enum"]
    read = list(filter(_reads(schema), values))
    if not read:
        raise PydanticInvalidForJsonSchema(f"none of its values is read from JSON: {', '.join(map(repr, values))}")
    return written if len(read) == len(values) else {**written, "enum": read}


def _names_read(keys: Any) -> list[str]:
    """The names of members that are read as the values of an enumeration."""
    is_read = _reads(core_schema.dict_schema(keys))
    return [name for member in keys["members"] if is_read({(name := str(member.value)): None})]


def _reads(schema: Any) -> Callable[[Any], bool]:
    """Whether the validator of a schema takes a value that is read from JSON."""
    validator = SchemaValidator(schema)

    def is_read(value: Any) -> bool:
        try:
            validator.validate_json(json.dumps(value))
        except ValidationError:
            return False
        return True

    return is_read


def _hashable(written: _Schema, schema: Any) -> _Schema:
    """Without arrays and objects, where items may be anything."""
    if schema.get("min_length", 0) > 1 and not _are_told_apart([schema.get("items_schema", {"type": "any"})]):
        written = {**written, "min_length_of_values": schema["min_length"]}
    return written if written["items"] else {**written, "items": _SCALARS}


def _are_told_apart(schemas: Iterable[Any]) -> bool:
    """Whether values that differ in JSON are read as values that differ: True is 1, and dates have many spellings."""
    flat = list(schemas)
    for each in flat:
        flat += each.get("choices", ()) if each["type"] == "union" else ()
        flat += (each["schema"],) if each["type"] == "nullable" else ()
    kinds = {each["type"] for each in flat} - {"union", "nullable"}
    changed = any(each.get(key) for each in flat for key in ("to_lower", "to_upper"))
    return kinds <= {"str", "int", "bool", "none", "enum", "literal"} and not kinds >= {"int", "bool"} and not changed


def _with_later_bounds(written: _Schema, schema: Any) -> _Schema:
    """Bounds of a union or an enumeration, which are looked at when a value has been read."""
    updates, inner = schema.get("metadata", {}).get("pydantic_js_updates", {}), schema
    while inner["type"] == "function-after" and "pydantic_js_updates" in inner.get("metadata", {}):
        inner = inner["schema"]
    if inner["type"].startswith("function-"):
        # What has been read may have become something else.
        return written
    more: _Schema = {}
    for word, others in (("minLength", ("minItems", "minProperties")), ("maxLength", ("maxItems", "maxProperties"))):
        more |= {other: updates[word] for other in others if word in updates}
    if not _is_number(inner):
        return _both(written, more)
    for key, word in _LATER.items():
        if key in updates:
            del written[key]
            more[word] = updates[key]
    if _is_number(inner, floats=False):
        return _both(written, more)
    return _both(written, _of_doubles(more))


_LATER = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}


def _is_number(schema: Any, floats: bool = True) -> bool:
    """Whether all that is read is an integer, or such a double."""
    if schema["type"] == "union":
        return all(_is_number(each, floats) for each in schema["choices"] if isinstance(each, dict))
    if schema["type"] == "literal":
        return all(type(value) is int for value in schema["expected"])
    kind = schema.get("sub_type") if schema["type"] == "enum" else schema["type"]
    return kind == "int" or (floats and kind == "float")


def _of_doubles(written: _Schema) -> _Schema:
    """Bounds that hold for the double that is read, which is 0.3 for 0.29999999999999999999."""
    for word, other, end in (("exclusiveMinimum", "minimum", math.inf), ("exclusiveMaximum", "maximum", -math.inf)):
        if word in written:
            written = _both(written, {other: math.nextafter(written.pop(word), end)})
    return _both(written, _exact_multiples(written["multipleOf"])) if "multipleOf" in written else written


def _own_code(function: Any) -> str:
    """How a message names a validator that is a function; empty for those that the schema makes up for."""
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__qualname__", type(function).__qualname__)
    if (getattr(function, "__module__", None) or "").partition(".")[0] == "pydantic":
        return _LIKE_OWN_CODE.get(name, "")
    return str(name)


def _with_validator(written: _Schema, name: str) -> _Schema:
    """With one more function that looks at a value, for a warning."""
    known = written.get("python_validator")
    return {**written, "python_validator": name if known is None else f"{known}, {name}"}


def _unenforced(schema: Any) -> _Schema:
    return {key: str(schema[key]) for key in _UNENFORCED if schema.get(key) is not None}


def _any_of(words: list[str]) -> str:
    return "|".join(re.escape(word) for word in words)


def _decimal_numbers(schema: Any) -> list[_Schema]:
    """What numbers are read as a decimal within its bounds.

    An integer is read as it is.  Other numbers become a double first, and the decimal is what ``repr`` writes of that:
    12345678901234567890.5 is read as 12345678901234567000.
    """
    low, high = _bound(schema, "ge", "gt"), _bound(_negated(schema), "ge", "gt")
    unit, is_finite = schema.get("multiple_of"), schema.get("allow_inf_nan") is not True
    others: _Schema = {}
    if unit is not None:
        # With 15 digits a number is what is read of it.
        places = -int(Decimal(str(unit)).as_tuple().exponent)
        most = min(10.0 ** (_DIGITS_OF_DOUBLES - max(places, 0)), _MOST)
        others = {"multipleOf": float(unit), "minimum": -most, "maximum": most}
    elif is_finite:
        # A number with an exponent of a million digits would be read as infinity.
        others = {"minimum": -_MOST, "maximum": _MOST}
    numbers: list[_Schema] = []
    least, greatest = _first_double(*low) if low else -math.inf, -_first_double(*high) if high else math.inf
    if least <= greatest and math.inf not in (least, -greatest):
        bounds = {"minimum": least} if low else {}
        numbers.append(_both({"type": "number", **bounds, **({"maximum": greatest} if high else {})}, others))
    large = [bound for bound, _ in filter(None, (low, high)) if abs(bound) > 10**_DIGITS_OF_DOUBLES]
    if large or unit is not None or schema.get("max_digits", 0) > _DIGITS_OF_DOUBLES:
        first, last = _first_integer(*low) if low else -math.inf, -_first_integer(*high) if high else math.inf
        bounds = {"minimum": first} if low else {}
        written: _Schema = {"type": "integer", **bounds, **({"maximum": last} if high else {})}
        if unit is not None:
            # The quotient has to fit into the digits that decimals are computed with.
            most = min(float(unit) * 10.0 ** (decimal.getcontext().prec - 1), _MOST)
            written = _both(written, {"multipleOf": float(unit), "minimum": -most, "maximum": most})
        numbers += [written] if first <= last else []
    if not numbers:
        raise PydanticInvalidForJsonSchema("no number lies within its bounds")
    return numbers


def _negated(schema: Any) -> dict[str, Decimal]:
    """The upper bounds as lower bounds of the negative number."""
    return {
        key: -Decimal(str(schema[other]))
        for key, other in (("ge", "le"), ("gt", "lt"))
        if schema.get(other) is not None
    }


def _bound(schema: Any, least: str, above: str) -> tuple[Decimal, bool] | None:
    """The stricter of two lower bounds, and whether it is excluded."""
    found = [(Decimal(str(schema[key])), key == above) for key in (least, above) if schema.get(key) is not None]
    return max(found, default=None)


def _first_integer(bound: Decimal, is_excluded: bool) -> int:
    return math.floor(bound) + 1 if is_excluded else math.ceil(bound)


def _first_double(bound: Decimal, is_excluded: bool) -> float:
    """The least double whose decimal is no less than a bound, or greater."""

    def lies_within(value: float) -> bool:
        read = Decimal(repr(value))
        return read > bound or (read == bound and not is_excluded)

    value = math.nextafter(float(bound), -math.inf)
    while not lies_within(value):
        value = math.nextafter(value, math.inf)
    return value


def _digits_of(number: _Schema, before: int | None, behind: int) -> _Schema:
    """A number with at most so many digits before its point and behind it."""
    is_integer = number["type"] == "integer"
    written = number if is_integer else _both(number, {"multipleOf": _power_of_ten(-behind)})
    if before is None:
        return written
    if before == 0:
        # That 0 is a digit before the point.
        written = _both(written, {"not": {"const": 0}})
    most = 10**before - 1 if is_integer else -_first_double(Decimal(-(10**before)), True)
    return _both(written, {"minimum": -most, "maximum": most})


def _power_of_ten(exponent: int) -> int | float:
    return 10**exponent if exponent >= 0 else float(f"1e{exponent}")


def _names(keys: _Schema) -> _Schema | bool:
    """A schema for the names of members that are read as values of ``keys``."""
    if "anyOf" in keys:
        return {"anyOf": [_names(each) for each in keys["anyOf"]]}
    listed = [keys["const"]] if "const" in keys else keys.get("enum")
    if listed is not None:
        return {"enum": [value for value in listed if isinstance(value, str)]} if str in map(type, listed) else False
    kind = keys.get("type")
    if kind in ("null", "array", "object"):
        return False
    if kind == "boolean":
        return {"enum": ["true", "false"]}
    if kind not in ("integer", "number"):
        return {key: value for key, value in keys.items() if key != "type"}
    pattern = INTEGER if kind == "integer" else NUMBER
    least, above = keys.get("minimum"), keys.get("exclusiveMinimum")
    if (above if least is None else least) == 0:
        pattern = pattern.replace("-?", "")
    if kind == "integer" and above == 0:
        pattern = pattern.replace("0|", "")
    # Other bounds are words without an effect, so that the warnings name them.
    others = {"minimum": "ge", "exclusiveMinimum": "gt", "maximum": "le", "exclusiveMaximum": "lt"}
    named = {word: keys[key] for key, word in others.items() if keys.get(key) and abs(keys[key]) < _MOST}
    return {"pattern": pattern, **named}
