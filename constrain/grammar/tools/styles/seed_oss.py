"""Seed-OSS: XML."""

from constrain.grammar.tools.style import Reasoning, ToolStyle

STYLE = ToolStyle(
    name="seed_oss",
    forms=(("<seed:tool_call>\n<function=", ">\n"),),
    ends=("</function>\n</seed:tool_call>",),
    arguments="seed_xml",
    trigger="<seed:tool_call>",
    reasoning=Reasoning("<seed:think>", "</seed:think>", "\n"),
    notes="Seed-OSS",
)
