"""Mistral, from version 11 of the tokenizer: name and arguments."""

from constrain.grammar.tools.style import Reasoning, ToolStyle

STYLE = ToolStyle(
    name="mistral_args",
    forms=(("[TOOL_CALLS]", "[ARGS]"), ("[TOOL_CALLS]", "[CALL_ID]{id}[ARGS]")),
    ends=("",),
    trigger="[TOOL_CALLS]",
    separator="",
    reasoning=Reasoning("[THINK]", "[/THINK]"),
    also_read=(("[TOOL_CALLS]", ""),),
    notes="Mistral Small 3.2, Medium 3, Magistral, Devstral",
)
