"""What is wrong with a JSON text in the terms of its schema: what is missing, of another type, too long.

The engine says whether a text is valid, and at which byte it stops being so.  A person thinks of members and keywords,
and wants all of them named.  So the text is read as JSON, and each value held against the keywords of its schema.

Nothing here decides: every keyword that is not a matter of names is judged by the engine, with a schema of this keyword
alone and the value's own text.  A keyword that cannot be judged so is passed over, since no word is better than a wrong
one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from typing import Any

from constrain.engine.compiled_grammar import CompiledGrammar
from constrain.engine.compiler import GrammarCompiler
from constrain.engine.matcher import Matcher
from constrain.engine.vocabulary.vocabulary import Vocabulary
from constrain.errors import ConstrainError
from constrain.explain.json_places import Value, read_json
from constrain.grammar.grammar import Grammar
from constrain.grammar.schema_options import PropertyOrder
from constrain.grammar.words import either, printable
from constrain.limits import Deadline

_SECONDS = 2.0
_JUDGEMENTS = 500
_MOST_BYTES = 1 << 20
_MOST_FAULTS = 500
_SHOWN = 80
_NAMED = 8

# Keywords that only mean something together, by the first of them that a schema has.
_GROUPS = (
    ("minimum", "exclusiveMinimum"),
    ("maximum", "exclusiveMaximum"),
    ("contains", "minContains", "maxContains"),
    ("if", "then", "else"),
)
_JUDGED = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("multipleOf",),
    "array": ("minItems", "maxItems", "uniqueItems"),
    "object": (
        "minProperties",
        "maxProperties",
        "propertyNames",
        "dependentRequired",
        "dependentSchemas",
        "dependencies",
    ),
}
_GROUPED = {"string": (), "number": _GROUPS[:2], "array": (_GROUPS[2],), "object": ()}
_PHRASES = {
    "minLength": "is shorter than {} characters",
    "maxLength": "is longer than {} characters",
    "pattern": "does not match the pattern {}",
    "format": "does not have the format {}",
    "minimum": "is less than {}",
    "exclusiveMinimum": "is not more than {}",
    "maximum": "is more than {}",
    "exclusiveMaximum": "is not less than {}",
    "multipleOf": "is no multiple of {}",
    "minItems": "has fewer than {} items",
    "maxItems": "has more than {} items",
    "minProperties": "has fewer than {} members",
    "maxProperties": "has more than {} members",
    "contains": "has too few or too many items that fit {}",
    "const": "is not {}",
    "not": "is what it must not be: {}",
}


@dataclass(frozen=True)
class Fault:
    """Something that is wrong with a value.

    Attributes
    ----------
    offset : int
        Where in the text it is, in bytes.
    place : str
        Which value, as a JSON pointer (``/hobbies/0``; empty for the whole text).
    message : str
        What is wrong, such as ``missing: "email" and "role"``.
    schema_place : str
        Which keyword says so, as a JSON pointer in URI fragment form.
    """

    offset: int
    place: str
    message: str
    schema_place: str


def find_faults(schema_text: str, data: bytes) -> list[Fault]:
    """What is wrong with a text in the terms of a schema, in the order of the text.

    Parameters
    ----------
    schema_text : str
        The schema as JSON.
    data : bytes
        The text; of one that breaks off, what is there is looked at, and what is still to come is said.

    Notes
    -----
    There may be none although the text is not valid: it is no JSON, it has more than 1 MiB, or what it breaks refers to
    another document.  Of a text that fulfils every keyword, what may be wrong is how it is written.  At most 500 are
    found, in two seconds.
    """
    if len(data) > _MOST_BYTES:
        return []
    try:
        text = data.decode()
        schema = json.loads(schema_text)
    except (ValueError, RecursionError):
        return []
    document = read_json(text)
    if document.value is None:
        return []
    judge = _Judge(schema, goes_on=document.ends)
    try:
        faults = list(dict.fromkeys(islice(judge.faults(schema, document.value, "", "#", 0), _MOST_FAULTS)))
    except RecursionError:
        return []
    if not faults and document.value.is_whole and document.ends:
        faults = judge.notation(document.value)
    faults.sort(key=lambda fault: fault.offset)
    found = []
    place = offset = 0
    for each in faults:
        offset += len(text[place : each.offset].encode())
        place = each.offset
        found.append(replace(each, offset=offset))
    return found


class _Unknown(Exception):
    """A schema cannot be judged."""


class _Judge:
    """Holds values against the parts of one schema."""

    def __init__(self, root: Any, goes_on: bool) -> None:
        self._root = root
        # Whether members that are not there may still come: the text breaks off, and is not broken.
        self._goes_on = goes_on
        self._dialect = root.get("$schema") if isinstance(root, dict) else None
        self._is_old = isinstance(self._dialect, str) and any(f"draft-0{n}" in self._dialect for n in (3, 4, 6, 7))
        self._compiler = GrammarCompiler(Vocabulary([bytes((byte,)) for byte in range(256)]))
        self._compiled: dict[tuple[str, str], CompiledGrammar] = {}
        self._deadline = Deadline(_SECONDS)
        self._left = _JUDGEMENTS

    def faults(self, schema: Any, value: Value, place: str, pointer: str, depth: int) -> Iterator[Fault]:
        """What is wrong with a value; ``pointer`` is the schema's own place."""
        if schema is False:
            yield Fault(value.begin, place, f"nothing may stand here, but {_shown(value)} does", pointer)
        if not isinstance(schema, dict) or depth > _SHOWN:
            return
        if depth and ("$id" in schema or ("id" in schema and self._is_old)):
            return  # references in it mean other places
        if isinstance(schema.get("$ref"), str):
            target = self._resolve(schema["$ref"])
            if target is not None:
                yield from self.faults(target, value, place, schema["$ref"], depth + 1)
            if self._is_old:
                return
        wrong = list(self._of_type(schema, value, place, pointer))
        if wrong:
            yield from wrong
            return
        if value.kind == "object":
            yield from self._of_object(schema, value, place, pointer, depth)
        if value.kind == "array":
            yield from self._of_array(schema, value, place, pointer, depth)
        if value.is_whole:
            yield from self._of_keywords(schema, value, place, pointer)
        yield from self._of_parts(schema, value, place, pointer, depth)

    def notation(self, value: Value) -> list[Fault]:
        """Why a text that breaks no keyword may be refused all the same: its order, or how it is written."""
        fulfilled = "every keyword is fulfilled, but "
        reasons: tuple[tuple[PropertyOrder, str], ...] = (
            ("schema", fulfilled + "the text is written otherwise: white space, numbers or escapes"),
            ("any", fulfilled + "members stand in another order than in the schema"),
        )
        for order, message in reasons:
            try:
                if self._reads_schema(self._root, value.text, order):
                    return [Fault(value.begin, "", message, "#")]
            except _Unknown:
                return []
        return []

    # -- keyword by keyword ----------------------------------------------------------------------

    def _of_type(self, schema: dict[str, Any], value: Value, place: str, pointer: str) -> Iterator[Fault]:
        wanted = schema.get("type")
        types = [wanted] if isinstance(wanted, str) else wanted if isinstance(wanted, list) else None
        if types and all(isinstance(each, str) for each in types) and not any(_is_a(value, each) for each in types):
            names = either(
                f"{'an' if each[:1] in 'aeiou' else 'a'} {each}" if each != "null" else each for each in types
            )
            yield Fault(value.begin, place, f"{_shown(value)} is not {names}", f"{pointer}/type")
            return
        if not value.is_whole:
            return
        if isinstance(schema.get("enum"), list) and self._refuses({"enum": schema["enum"]}, value):
            listed = [_cut(json.dumps(each, ensure_ascii=False)) for each in schema["enum"]]
            more = [f"{len(listed) - _NAMED} more"] if len(listed) > _NAMED else []
            message = f"{_shown(value)} is not {either([*listed[:_NAMED], *more])}"
            yield Fault(value.begin, place, message, f"{pointer}/enum")
        if "const" in schema and self._refuses({"const": schema["const"]}, value):
            yield self._say("const", schema, value, place, pointer)

    def _of_object(self, schema: dict[str, Any], value: Value, place: str, pointer: str, depth: int) -> Iterator[Fault]:
        names = [name for name, _, _ in value.members]
        required = schema.get("required")
        if isinstance(required, list):
            # In a text that is broken within the object, they may stand behind the break.
            missing = [name for name in required if isinstance(name, str) and name not in names]
            if missing and (value.is_whole or self._goes_on):
                message = f"missing: {_listed(missing)}" if value.is_whole else f"still to come: {_listed(missing)}"
                yield Fault(value.begin, place, message, f"{pointer}/required")
        seen: set[str] = set()
        properties = schema.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        patterns = schema.get("patternProperties")
        patterns = patterns if isinstance(patterns, dict) else {}
        for name, offset, inner in value.members:
            below = f"{place}/{_token(name)}"
            if name in seen:
                yield Fault(offset, place, f"{_quoted(name)} is there twice", pointer)
            seen.add(name)
            parts = [(properties[name], f"{pointer}/properties/{_token(name)}")] if name in properties else []
            matches = [self._matches(pattern, name) for pattern in patterns]
            for (pattern, part), matched in zip(patterns.items(), matches, strict=True):
                if matched:
                    parts.append((part, f"{pointer}/patternProperties/{_token(pattern)}"))
            if "additionalProperties" in schema and not parts and None not in matches:
                if schema["additionalProperties"] is False:
                    known = f"; there may be {_listed(properties)}" if properties else ""
                    message = f"there is no property {_quoted(name)}{known}"
                    yield Fault(offset, place, message, f"{pointer}/additionalProperties")
                    continue
                parts.append((schema["additionalProperties"], f"{pointer}/additionalProperties"))
            for part, part_pointer in parts:
                yield from self.faults(part, inner, below, part_pointer, depth + 1)

    def _of_array(self, schema: dict[str, Any], value: Value, place: str, pointer: str, depth: int) -> Iterator[Fault]:
        items = schema.get("items")
        if isinstance(items, list):
            first, first_name, rest, rest_name = items, "items", schema.get("additionalItems"), "additionalItems"
        else:
            prefix = schema.get("prefixItems")
            first, first_name, rest, rest_name = (
                prefix if isinstance(prefix, list) else [],
                "prefixItems",
                items,
                "items",
            )
        for index, inner in enumerate(value.items):
            below = f"{place}/{index}"
            if index < len(first):
                yield from self.faults(first[index], inner, below, f"{pointer}/{first_name}/{index}", depth + 1)
            elif rest is not None:
                yield from self.faults(rest, inner, below, f"{pointer}/{rest_name}", depth + 1)

    def _of_keywords(self, schema: dict[str, Any], value: Value, place: str, pointer: str) -> Iterator[Fault]:
        for group in (*_GROUPED.get(value.kind, ()), _GROUPS[3]):
            part = {keyword: schema[keyword] for keyword in group if keyword in schema}
            if part and self._refuses(part, value):
                # In draft 4 exclusiveMinimum says no number, but whether that of minimum is left out.
                alone = next((each for each in part if self._refuses({each: part[each]}, value)), "")
                phrase = group[1] if isinstance(part.get(group[1]), bool) and not alone else alone or group[0]
                yield self._say(alone or group[0], schema, value, place, pointer, phrase)
        for keyword in (*_JUDGED.get(value.kind, ()), "not"):
            if keyword in schema and self._refuses({keyword: schema[keyword]}, value):
                if keyword == "uniqueItems":
                    yield Fault(value.begin, place, "two of its items are equal", f"{pointer}/{keyword}")
                else:
                    yield self._say(keyword, schema, value, place, pointer)

    def _of_parts(self, schema: dict[str, Any], value: Value, place: str, pointer: str, depth: int) -> Iterator[Fault]:
        for index, part in enumerate(schema["allOf"] if isinstance(schema.get("allOf"), list) else []):
            yield from self.faults(part, value, place, f"{pointer}/allOf/{index}", depth + 1)
        for keyword in ("anyOf", "oneOf"):
            parts = schema.get(keyword)
            if not isinstance(parts, list) or not value.is_whole or not self._refuses({keyword: parts}, value):
                continue
            found = [
                list(self.faults(part, value, place, f"{pointer}/{keyword}/{index}", depth + 1))
                for index, part in enumerate(parts)
            ]
            # The alternatives of the value's own type; of the others it would only be said that it is of another.
            near = [faults for faults in found if not any(each.place == place and _is_of_type(each) for each in faults)]
            if len(near) == 1 and near[0]:
                yield from near[0]
            else:
                fits = sum(not faults for faults in found)
                several = keyword == "oneOf" and fits > 1
                message = (
                    f"{_shown(value)} fits {'more than one' if several else 'none'} of the {len(parts)} alternatives"
                )
                yield Fault(value.begin, place, message, f"{pointer}/{keyword}")

    def _say(
        self, keyword: str, schema: dict[str, Any], value: Value, place: str, pointer: str, phrased_as: str = ""
    ) -> Fault:
        what = _cut(json.dumps(schema[keyword], ensure_ascii=False))
        phrase = _PHRASES.get(phrased_as or keyword, f"does not fit {keyword} {{}}").replace("{}", what)
        return Fault(value.begin, place, f"{_shown(value)} {phrase}", f"{pointer}/{keyword}")

    # -- judgements ------------------------------------------------------------------------------

    def _refuses(self, part: dict[str, Any], value: Value) -> bool:
        """Whether a value is not valid for some keywords; False if that cannot be told."""
        try:
            return not self._accepts(part, value.text)
        except _Unknown:
            return False

    def _matches(self, pattern: str, name: str) -> bool | None:
        """Whether a name matches a pattern; None if that cannot be told."""
        try:
            return self._accepts({"type": "string", "pattern": pattern}, json.dumps(name))
        except _Unknown:
            return None

    def _accepts(self, part: dict[str, Any], text: str) -> bool:
        """What the engine says of a text without white space, and a schema."""
        if self._left == 0:
            raise _Unknown
        self._left -= 1
        schema = {**self._definitions(part), **part}
        if isinstance(self._dialect, str):
            schema["$schema"] = self._dialect
        return self._reads_schema(schema, text, "any")

    def _reads_schema(self, schema: Any, text: str, order: PropertyOrder) -> bool:
        """Whether a text without white space is valid for a whole schema."""
        key = order, json.dumps(schema)
        try:
            compiled = self._compiled.get(key)
            if compiled is None:
                self._deadline.check()
                grammar = Grammar.from_json_schema(
                    schema, time_limit=self._deadline, whitespace="compact", property_order=order
                )
                compiled = self._compiled[key] = self._compiler.compile(grammar)
            return _reads(Matcher(compiled), text)
        except ConstrainError as error:
            if "nothing is valid for this schema" in str(error):
                return False
            raise _Unknown from None

    def _definitions(self, part: Any) -> dict[str, Any]:
        """What the references in some keywords need."""
        kept = {
            key: self._root[key]
            for key in ("$defs", "definitions")
            if isinstance(self._root, dict) and key in self._root
        }
        references = set(_references(part))
        if not references:
            return {}
        if not all(each.startswith(("#/$defs/", "#/definitions/")) for each in references | set(_references(kept))):
            raise _Unknown
        return kept

    def _resolve(self, reference: str) -> Any:
        """What a reference within the schema leads to; None if it leads elsewhere."""
        if reference == "#":
            return self._root
        if not reference.startswith("#/") or "%" in reference:
            return None
        found: Any = self._root
        for token in reference[2:].split("/"):
            name = token.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict):
                found = found.get(name)
            elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
                found = found[int(name)]
            else:
                return None
        return found


def _reads(matcher: Matcher, text: str) -> bool:
    return matcher.accept_bytes(text.encode("utf-8", "surrogatepass")) and matcher.is_accepting()


def _references(part: Any) -> Iterator[str]:
    """All references in a part of a schema; what cannot be one counts as one that leads elsewhere."""
    if isinstance(part, dict):
        for key, value in part.items():
            if key in ("$ref", "$dynamicRef", "$recursiveRef", "$id", "$anchor", "$dynamicAnchor"):
                yield value if key == "$ref" and isinstance(value, str) else ""
            yield from _references(value)
    elif isinstance(part, list):
        for each in part:
            yield from _references(each)


def _is_a(value: Value, kind: str) -> bool:
    """Whether a value is of a type of JSON Schema."""
    if kind == "integer" and value.kind == "number":
        mantissa, _, exponent = value.text.lower().partition("e")
        # An exponent may be larger than any number that could be written out.
        return len(exponent) > 5 or (Fraction(mantissa) * Fraction(10) ** int(exponent or 0)).denominator == 1
    return value.kind == kind


def _is_of_type(fault: Fault) -> bool:
    return fault.schema_place.endswith(("/type", "/const", "/enum"))


def _shown(value: Value) -> str:
    if value.kind in ("object", "array"):
        return f"this {value.kind}"
    return _cut(value.text)


def _cut(text: str) -> str:
    text = printable(text)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _quoted(name: str) -> str:
    return _cut(json.dumps(name, ensure_ascii=False))


def _listed(names: Any) -> str:
    """``"a", "b" and "c"``; the first few of many."""
    words = [_quoted(name) for name in names]
    if len(words) > _NAMED:
        words = [*words[:_NAMED], f"{len(words) - _NAMED} more"]
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _token(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
