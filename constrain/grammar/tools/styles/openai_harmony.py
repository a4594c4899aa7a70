"""gpt-oss: channels of the harmony format."""

from constrain.grammar.tools.style import Reasoning, ToolStyle

STYLE = ToolStyle(
    name="harmony",
    forms=(
        ("<|channel|>commentary to=functions.", " <|constrain|>json<|message|>"),
        ("<|channel|>commentary to=functions.", "<|constrain|>json<|message|>"),
        (" to=functions.", "<|channel|>commentary json<|message|>"),
        (" to=functions.", "<|channel|>commentary <|constrain|>json<|message|>"),
    ),
    ends=("<|call|>",),
    trigger="<|channel|>commentary to=",
    reasoning=Reasoning("<|channel|>analysis<|message|>", "<|end|>", "<|start|>assistant"),
    text=("<|channel|>final<|message|>", "<|return|>"),
    # Where the prompt asks for JSON.
    also_text=("<|channel|>final <|constrain|>json<|message|>", "<|channel|>final json<|message|>"),
    preamble=("<|channel|>commentary<|message|>", "<|end|>"),
    separator="<|start|>assistant",
    excludes=("<|channel|>", "<|message|>", "<|start|>", "<|constrain|>", "<|call|>", "<|end|>"),
    also_read=(
        ("<|channel|>commentary to=functions.", "<|message|>"),
        ("<|channel|>commentary to=functions.", " json<|message|>"),
        ("<|channel|>commentary to=functions.", " code<|message|>"),
        ("<|channel|>analysis to=functions.", " json<|message|>"),
        ("<|channel|>analysis to=functions.", " code<|message|>"),
        ("<|channel|>analysis to=functions.", " <|constrain|>json<|message|>"),
        ("<|channel|>analysis to=functions.", "<|message|>"),
        (" to=functions.", "<|channel|>commentary<|message|>"),
        (" to=functions.", "<|channel|>analysis <|constrain|>json<|message|>"),
        (" to=functions.", "<|channel|>analysis<|message|>"),
    ),
    ends_turn=True,
    notes="gpt-oss; the prompt ends with <|start|>assistant",
)
