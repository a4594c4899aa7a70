"""gpt-oss: channels of the harmony format."""

from constrain.grammar.tools.style import Reasoning, ToolStyle

STYLE = ToolStyle(
    name="harmony",
    forms=(
        ("<|channel|>commentary to=functions.", " <|constrain|>json<|message|>"),
        (" to=functions.", "<|channel|>commentary json<|message|>"),
        (" to=functions.", "<|channel|>commentary <|constrain|>json<|message|>"),
    ),
    ends=("<|call|>",),
    trigger="<|channel|>commentary to=",
    reasoning=Reasoning("<|channel|>analysis<|message|>", "<|end|>", "<|start|>assistant"),
    text=("<|channel|>final<|message|>", "<|return|>"),
    notes="gpt-oss; the prompt ends with <|start|>assistant",
)
