"""InternLM 2 and Intern-S1: a JSON object between two tokens and a third."""

from constrain.grammar.tools.style import Reasoning, ToolStyle

STYLE = ToolStyle(
    name="internlm2",
    forms=(
        ('<|action_start|><|plugin|>\n{"name": "', '", "parameters": '),
        ('<|action_start|><|plugin|>\n{"name": "', '", "arguments": '),
        ('<|action_start|> <|plugin|>\n{"name": "', '", "parameters": '),
    ),
    ends=("}<|action_end|>",),
    trigger="<|action_start|>",
    separator="",
    reasoning=Reasoning("<think>", "</think>", "\n"),
    notes="InternLM 2.5 and 3, Intern-S1",
)
