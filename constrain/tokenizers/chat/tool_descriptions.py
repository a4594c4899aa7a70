"""Describes functions and Pydantic models as the JSON that chat templates show to a model as tools.

The description of a function is that of transformers' ``get_json_schema``, which models were trained on: types come
from its annotations, words from its docstring in Google's style.  Unlike there, words may be missing.
"""

from __future__ import annotations

import inspect
import json
import re
import types
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from constrain.errors import TokenizerError

_BASIC: dict[Any, dict[str, Any]] = {
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    list: {"type": "array"},
    tuple: {"type": "array"},
    dict: {"type": "object"},
    Any: {},
}
_SECTION = re.compile(r"\n\s*(Args|Returns|Raises):[ \t]*(?:\n|$)")
_ARGUMENT = re.compile(r"(?:^|\n)([ \t]*)(\w+):\s*(.*?)\s*(?=\n(?!\1[ \t])[ \t]*\w+:|\Z)", re.DOTALL)
_CHOICES = re.compile(r"\(choices:\s*(.*?)\)\s*$", re.IGNORECASE)


def described_tools(tools: Any) -> Any:
    """The tools with descriptions in place of functions and models; what is something else is left as it is.

    Raises :class:`TokenizerError` if a type of a function's argument has no JSON Schema here.
    """
    if isinstance(tools, str | bytes | Mapping) or not isinstance(tools, Iterable):
        return tools
    return [_described(tool) for tool in tools]


def _described(tool: Any) -> Any:
    if isinstance(tool, type) and callable(getattr(tool, "model_json_schema", None)):
        schema = dict(tool.model_json_schema())  # type: ignore[attr-defined]
        name, words = schema.pop("title", tool.__name__), schema.pop("description", None)
        return _function(str(name), words, schema)
    if callable(tool) and not isinstance(tool, Mapping | type):
        return describe_function(tool)
    return tool


def _function(name: str, words: str | None, parameters: dict[str, Any], returns: Any = None) -> dict[str, Any]:
    description = {"name": name, "description": words, "parameters": parameters, "return": returns}
    return {"type": "function", "function": {key: value for key, value in description.items() if value is not None}}


def describe_function(function: Callable[..., Any]) -> dict[str, Any]:
    """The description of a function, as a chat template takes it.

    Raises :class:`TokenizerError` for an argument without an annotation, or with one that is neither a basic type, an
    ``Enum``, a ``Literal``, nor a list, tuple, dict or union of such.
    """
    name = getattr(function, "__name__", "operation")
    try:
        hints = get_type_hints(function)
    except (NameError, TypeError) as error:
        raise TokenizerError(f"the tool {name}: {error}") from None
    words, described, returned = _sections(inspect.getdoc(function) or "")
    properties: dict[str, Any] = {}
    required: list[str] = []
    for place, parameter in enumerate(inspect.signature(function).parameters.values()):
        if parameter.name not in hints:
            if place == 0 and parameter.name in ("self", "cls"):
                continue
            raise TokenizerError(f"the tool {name}: argument {parameter.name} has no type")
        if parameter.default is inspect.Parameter.empty:
            required.append(parameter.name)
        schema = _schema(hints[parameter.name], f"the tool {name}: argument {parameter.name}")
        if parameter.name in described:
            text = described[parameter.name]
            choices = _CHOICES.search(text)
            if choices:
                schema["enum"] = _choices(choices[1], f"the tool {name}: the choices of {parameter.name}")
                text = text[: choices.start()].strip()
            schema["description"] = text
        properties[parameter.name] = schema
    parameters: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        parameters["required"] = required
    returns = None
    if "return" in hints:
        try:
            returns = _schema(hints["return"], "the result")
        except TokenizerError:  # no model generates it
            returns = None
        if returns is not None and returned is not None:
            returns["description"] = returned
    return _function(name, words, parameters, returns)


def _sections(doc: str) -> tuple[str | None, dict[str, str], str | None]:
    """What a docstring says of the function, of its arguments, and of its result."""
    parts = _SECTION.split("\n" + doc.strip())
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    lines = [line for line in sections.get("Args", "").split("\n") if line.strip()]
    arguments = {
        match[2]: re.sub(r"\s*\n+\s*", " ", match[3].strip()) for match in _ARGUMENT.finditer("\n".join(lines))
    }
    returns = sections.get("Returns")
    return parts[0].strip() or None, arguments, None if returns is None else returns.strip()


def _choices(text: str, where: str) -> list[Any]:
    try:
        values = json.loads(text)
    except ValueError:
        values = None
    if not isinstance(values, list):
        raise TokenizerError(f"{where} are no JSON list")
    return [value.strip() if isinstance(value, str) else value for value in values]


def _schema(hint: Any, where: str) -> dict[str, Any]:
    origin, args = get_origin(hint), get_args(hint)
    if origin is None and isinstance(hint, type) and issubclass(hint, Enum):
        return _enumeration([member.value for member in hint], where)
    if origin is None and hint in _BASIC:
        return dict(_BASIC[hint])
    if origin is Literal:
        return _enumeration(list(args), where)
    if origin is Union or origin is types.UnionType:
        return _union([_schema(arg, where) for arg in args if arg is not type(None)], type(None) in args)
    if origin is list:
        return {"type": "array", "items": _schema(args[0], where)}
    if origin is tuple and args and ... not in args:
        return {"type": "array", "prefixItems": [_schema(arg, where) for arg in args]}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(args[1], where)}
    raise TokenizerError(f"{where}: {hint!r} has no JSON Schema here; describe the tool by a JSON Schema of your own")


def _union(kinds: list[dict[str, Any]], nullable: bool) -> dict[str, Any]:
    if len(kinds) == 1:
        union = kinds[0]
    elif all(list(kind) == ["type"] for kind in kinds):
        names = sorted({kind["type"] for kind in kinds})
        union = {"type": names[0] if len(names) == 1 else names}
    else:
        union = {"anyOf": kinds}
    return {**union, "nullable": True} if nullable else union


def _enumeration(values: list[Any], where: str) -> dict[str, Any]:
    if not values or any(type(value) not in _BASIC or isinstance(value, list | tuple | dict) for value in values):
        raise TokenizerError(f"{where}: {values!r} are no values of JSON")
    names = list(dict.fromkeys(_BASIC[type(value)]["type"] for value in values))
    return {"type": names[0] if len(names) == 1 else names, "enum": values}
