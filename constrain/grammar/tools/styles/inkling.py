"""Inkling: messages of thoughts, text, and calls, which say the name of their tool before their kind."""

from constrain.grammar.tools.style import Reasoning, ToolStyle

STYLE = ToolStyle(
    name="inkling",
    forms=(("", '<|content_invoke_tool_json|>{"name":"{name}","args":'),),
    ends=("}<|end_message|>",),
    trigger="<|content_invoke_tool_json|>",
    reasoning=Reasoning("<|content_thinking|>", "<|end_message|>", "<|message_model|>"),
    text=("<|content_text|>", "<|end_message|>"),
    preamble=("<|content_text|>", "<|end_message|>"),
    separator="<|message_model|>",
    further="",
    end="<|content_model_end_sampling|>",
    also_read=(('<|content_invoke_tool_json|>{"name":"', '","args":'),),
    excludes=("<|message_model|>", "<|content_text|>", "<|content_model_end_sampling|>"),
    notes="Inkling; the prompt ends with <|message_model|>",
)
