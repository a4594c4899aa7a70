"""Tools as people have them: OpenAI's JSON, pydantic models, Python functions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from constrain.errors import SchemaError
from constrain.grammar.json_schema.document.document import cut
from constrain.grammar.pydantic import schema_of

# OpenAI allows letters, digits, underscores and dashes; servers of others dots and colons too.
_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,256}")


# As OpenAI, Anthropic and MCP name them.
_PARAMETERS = ("parameters", "input_schema", "inputSchema")


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
        raise SchemaError("a function must have a name", where)
    name = next((name for name in _PARAMETERS if inner.get(name) is not None), None)
    # Without parameters there is nothing to give.
    parameters = {"type": "object", "properties": {}} if name is None else inner[name]
    if not isinstance(parameters, (dict, bool)):
        raise SchemaError(f"{name} must be a schema", f"{where}/{name}")
    return _named(inner["name"], parameters, where, name or _PARAMETERS[0])


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
        reason = f"the arguments of a tool are an object, not of the type {cut(repr(parameters['type']))}"
        raise SchemaError(reason, f"{pointer}/{keyword}/type")
    return Tool(name, parameters, pointer, keyword)
