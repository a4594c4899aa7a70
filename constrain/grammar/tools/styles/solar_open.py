"""Solar Open: messages of thoughts, text, and calls with an identifier each."""

from constrain.grammar.tools.style import Reasoning, Section, ToolStyle

STYLE = ToolStyle(
    name="solar_open",
    forms=(("<|tool_call:begin|>{word}<|tool_call:name|>", "<|tool_call:args|>"),),
    ends=("<|tool_call:end|>",),
    ends_turn=True,
    trigger="<|tool_calls|>",
    section=Section("<|tool_calls|>", "", "<|calls|>"),
    reasoning=Reasoning("<|think|>", "<|end|>", "<|begin|>assistant"),
    text=("<|content|>", "<|end|>"),
    preamble=("<|content|>", "<|end|>"),
    separator="<|begin|>assistant",
    excludes=("<|begin|>", "<|content|>", "<|calls|>"),
    notes="Solar Open 100B; the prompt ends with <|begin|>assistant",
)
