"""Muse Glimmer: messages, each to a recipient, and calls in XML."""

from constrain.grammar.tools.style import Reasoning, ToolStyle

STYLE = ToolStyle(
    name="muse_glimmer",
    forms=((" to=", '<|message|><atem:function_calls>\n<atem:invoke name="{name}">\n'),),
    ends=("</atem:invoke>\n</atem:function_calls>",),
    arguments="atem_xml",
    # An answer may quote a call.
    trigger="<|message|><atem:function_calls>",
    reasoning=Reasoning(" to=self<|message|>", "<|eom|>", "<|start|>assistant"),
    text=(" to=user<|message|>", "<|eot|>"),
    preamble=(" to=user<|message|>", "<|eom|>"),
    separator="<|start|>assistant",
    further="<|eom|>",
    end="<|eot|>",
    also_read=(('<|message|><atem:function_calls>\n<atem:invoke name="', '">\n'),),
    excludes=("<|start|>", "<|message|>", "<|eom|>", "<|eot|>"),
    notes="Muse Glimmer; the prompt ends with <|start|>assistant",
)
