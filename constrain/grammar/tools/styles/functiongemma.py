"""FunctionGemma: objects with bare names, and strings between two tokens, as in Gemma 4."""

from constrain.grammar.tools.style import ToolStyle

STYLE = ToolStyle(
    name="functiongemma",
    forms=(("<start_function_call>call:", ""),),
    ends=("<end_function_call>",),
    arguments="functiongemma",
    trigger="<start_function_call>",
    separator="",
    excludes=("<end_function_call>", "<start_function_response>"),
    notes="FunctionGemma; <start_function_response> ends the turn",
)
