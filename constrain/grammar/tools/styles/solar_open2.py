"""Solar Open 2: arguments between tokens, one a line."""

from constrain.grammar.tools.style import Reasoning, ToolStyle

STYLE = ToolStyle(
    name="solar_open2",
    forms=(("<|tool_call:start|>", "\n"),),
    ends=("<|tool_call:end|>",),
    arguments="solar_xml",
    trigger="<|tool_call:start|>",
    reasoning=Reasoning("<|think:start|>", "<|think:end|>"),
    notes="Solar Open 2",
)
