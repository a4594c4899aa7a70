"""ERNIE 4.5 with thoughts: as Hermes, with blank lines around, and a text between marks."""

from constrain.grammar.tools.style import Reasoning, ToolStyle

STYLE = ToolStyle(
    name="ernie4.5",
    forms=(('<tool_call>\n{"name": "', '", "arguments": '),),
    ends=("}\n</tool_call>\n", "}\n</tool_call>"),
    trigger="<tool_call>",
    before_calls="\n\n",
    reasoning=Reasoning("<think>\n", "</think>", "\n", is_open=True),
    text=("<response>\n", "\n</response>\n"),
    preamble=("<response>\n", "\n</response>\n"),
    separator="\n\n",
    further="",
    excludes=("<response>", "</response>", "</tool_call>"),
    notes="ERNIE 4.5 21B A3B Thinking",
)
