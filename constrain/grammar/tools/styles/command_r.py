"""Command R and R+: a list of JSON objects in a block of code."""

from constrain.grammar.tools.style import Section, ToolStyle

STYLE = ToolStyle(
    name="command_r",
    forms=(('{\n        "tool_name": "', '",\n        "parameters": '),),
    ends=("\n    }",),
    trigger="Action:\n```json",
    section=Section("Action:\n```json\n[\n    ", ",\n    ", "\n]```"),
    before_calls="\n",
    notes="Command R and R+",
)
