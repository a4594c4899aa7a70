"""GLM 4.5: XML of keys and values."""

from constrain.grammar.tools.style import Reasoning, ToolStyle

STYLE = ToolStyle(
    name="glm4.5",
    forms=(("<tool_call>", ""),),
    ends=("</tool_call>",),
    arguments="glm_xml",
    trigger="<tool_call>",
    before_calls="\n",
    reasoning=Reasoning("<think>", "</think>", "\n", before="\n"),
    excludes=("</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
    notes="GLM 4.5 and 4.6, Ling 3.0, Laguna XS",
)
