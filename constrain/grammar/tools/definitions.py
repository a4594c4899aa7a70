"""Tools as people have them: OpenAI's JSON, pydantic models, Python functions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, NamedTuple

from constrain.errors import SchemaError
from constrain.grammar.json_schema.document.document import cut
from constrain.grammar.json_schema.normal.assertions import TYPES
from constrain.grammar.json_schema.normal.keywords import no_type
from constrain.grammar.pydantic.front_end import schema_of

# OpenAI allows letters, digits, underscores and dashes; servers of others dots and colons too.
_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,256}")


# As OpenAI, Anthropic and MCP name them.
_PARAMETERS = ("parameters", "input_schema", "inputSchema")

# As others do.  What stands there is a schema of another kind, or what it says is not known.
_NAMES_OF_OTHERS = frozenset(
    ("parametersJsonSchema", "parameters_json_schema", "parameter_definitions", "args_schema", "schema")
) | {"inputs", "input", "params", "args", "arguments"}

# So near is a slip of the pen; ``output_schema`` is at 0.8.
_SLIP = 0.85

# What some interfaces put around one function or several.
_WRAPPERS = ("toolSpec", "functionDeclarations", "function_declarations", "tools")


class Tool(NamedTuple):
    """A tool, and the schema of its arguments, which stands under ``keyword``."""

    name: str
    parameters: dict[str, Any] | bool
    pointer: str
    keyword: str = _PARAMETERS[0]


def read_tools(tools: Iterable[Any]) -> list[Tool]:
    """The tools of a list.

    Parameters
    ----------
    tools : iterable of dict, type or function
        ``{"type": "function", "function": {"name": ..., "parameters": ...}}``, the inner object alone (also with
        Anthropic's ``input_schema`` or MCP's ``inputSchema``), a pydantic model (its fields are the arguments), or a
        function.

    Raises
    ------
    SchemaError
        With the JSON pointer of what is wrong, as in the list.
    """
    if isinstance(tools, dict):
        _refuse_wrapper(tools, "#")
    if isinstance(tools, (str, bytes, dict)) or not isinstance(tools, Iterable):
        hint = ": of JSON text, json.loads(text)" if isinstance(tools, (str, bytes)) else ""
        raise SchemaError(f"tools must be a list, not {type(tools).__name__}{hint}")
    found = [_read(tool, f"#/{index}") for index, tool in enumerate(tools)]
    seen: set[str] = set()
    for tool in found:
        if tool.name in seen:
            raise SchemaError(f"there are two tools named {tool.name!r}", tool.pointer)
        seen.add(tool.name)
    return found


def _read(tool: Any, pointer: str) -> Tool:
    if not isinstance(tool, dict):
        dump = getattr(tool, "model_dump", None)
        if dump is not None and not isinstance(tool, type):
            return _read(dump(exclude_none=True), pointer)
        if not callable(tool) or not hasattr(tool, "__name__"):
            kind = type(tool).__name__
            raise SchemaError(f"a tool is an object, a pydantic model or a function, not {kind}", pointer)
        first = next(iter(inspect.signature(tool).parameters), None) if inspect.isfunction(tool) else None
        owner = getattr(tool, "__qualname__", "").rpartition(".")[0]
        if first in ("self", "cls") and owner and not owner.endswith("<locals>"):
            reason = (
                f"{tool.__qualname__} is a method, and {first!r} would be an argument: give the method of an object"
            )
            raise SchemaError(reason, pointer)
        parameters = schema_of(tool)
        if parameters.get("type", "object") != "object":
            reason = f"the arguments of {tool.__name__} have no names, as those of a tool do: no *args and no / there"
            raise SchemaError(reason, pointer)
        return _named(tool.__name__, parameters, pointer)
    inner, where = tool, pointer
    if "function" in tool:
        if tool.get("type", "function") != "function":
            raise SchemaError("only tools of type function are supported", f"{pointer}/type")
        inner, where = tool["function"], f"{pointer}/function"
        if not isinstance(inner, dict):
            raise SchemaError("a function is an object", where)
    elif not (tool.get("type", "function") == "function" or (tool["type"] == "custom" and "input_schema" in tool)):
        # What another kind of tool takes is said in other ways, or known to the server alone.
        raise SchemaError(f"only tools of type function are supported, not {tool['type']!r}", f"{pointer}/type")
    if "name" not in inner:
        _refuse_wrapper(inner, where)
        raise SchemaError("a function must have a name", where)
    name = next((name for name in _PARAMETERS if inner.get(name) is not None), None)
    if name is None:
        _refuse_other_names(inner, where)
    # Without parameters there is nothing to give.
    parameters = {"type": "object", "properties": {}} if name is None else inner[name]
    if not isinstance(parameters, (dict, bool)):
        raise SchemaError(f"{name} must be a schema", f"{where}/{name}")
    if isinstance(parameters, dict) and list(parameters) == ["json"]:
        reason = "the schema of the arguments stands one level too deep: give what 'json' holds"
        raise SchemaError(reason, f"{where}/{name}/json")
    return _named(inner["name"], parameters, where, name or _PARAMETERS[0])


def _refuse_wrapper(tool: dict[str, Any], pointer: str) -> None:
    """Raise SchemaError if this is what an interface puts around functions."""
    for name in _WRAPPERS:
        if name in tool:
            raise SchemaError(f"what is in {name!r} is to be given without it", f"{pointer}/{name}")


def _refuse_other_names(tool: dict[str, Any], pointer: str) -> None:
    """Raise SchemaError if a tool that seems to have no arguments has them under another name."""
    for name, value in tool.items():
        is_slip = isinstance(name, str) and bool(get_close_matches(name, _PARAMETERS, 1, _SLIP))
        if value is not None and name not in _PARAMETERS and (name in _NAMES_OF_OTHERS or is_slip):
            known = "'parameters', 'input_schema' or 'inputSchema'"
            raise SchemaError(f"the arguments of a tool stand under {known}, not under {name!r}", f"{pointer}/{name}")


def _named(name: Any, parameters: dict[str, Any] | bool, pointer: str, keyword: str = _PARAMETERS[0]) -> Tool:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        reason = f"the name of a tool is of 1 to 256 letters, digits and _.:/-, not {cut(repr(name))}"
        raise SchemaError(reason, f"{pointer}/name")
    if parameters is True:
        parameters = {"type": "object"}
    elif isinstance(parameters, dict) and "type" not in parameters:
        # Arguments have names.
        parameters = {"type": "object", **parameters}
    elif isinstance(parameters, dict) and isinstance(parameters["type"], str) and parameters["type"] != "object":
        if parameters["type"] not in TYPES:
            raise SchemaError(no_type(parameters["type"]), f"{pointer}/{keyword}/type")
        reason = f"the arguments of a tool are an object, not of the type {cut(repr(parameters['type']))}"
        raise SchemaError(reason, f"{pointer}/{keyword}/type")
    return Tool(name, parameters, pointer, keyword)
