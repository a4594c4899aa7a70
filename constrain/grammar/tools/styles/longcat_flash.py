"""LongCat Flash: as Hermes, with marks of its own and nothing between two calls."""

from constrain.grammar.tools.style import ToolStyle

STYLE = ToolStyle(
    name="longcat_flash",
    forms=(('<longcat_tool_call>\n{"name": "', '", "arguments": '),),
    ends=("}\n</longcat_tool_call>",),
    trigger="<longcat_tool_call>",
    separator="",
    notes="LongCat Flash Chat",
)
