"""Gemma 4: objects with bare names, and strings between tokens."""

from constrain.grammar.tools.style import Reasoning, ToolStyle

STYLE = ToolStyle(
    name="gemma4",
    forms=(("<|tool_call>call:", ""),),
    ends=("<tool_call|>",),
    # Now and then the model ends its turn instead.
    ends_turn=True,
    arguments="gemma4",
    trigger="<|tool_call>",
    separator="",
    reasoning=Reasoning("<|channel>thought\n", "<channel|>"),
    excludes=("<|channel>", "<|tool_response>", "<|turn>"),
    notes="Gemma 4; the prompt ends with <|turn>model",
)
