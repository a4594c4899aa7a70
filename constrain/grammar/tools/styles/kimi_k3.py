"""Kimi K3: a text between marks, numbered calls in XML of special tokens behind it, and the end of the message."""

from constrain.grammar.tools.style import Reasoning, Section, ToolStyle

STYLE = ToolStyle(
    name="kimi_k3",
    forms=(('<|open|>call tool="', '" index="{number}"<|sep|>'),),
    ends=("<|close|>call<|sep|>",),
    arguments="kimi_k3_xml",
    trigger="<|open|>tools<|sep|>",
    section=Section("<|open|>tools<|sep|>", "", "<|close|>tools<|sep|>"),
    reasoning=Reasoning("<|open|>think<|sep|>", "<|close|>think<|sep|>", is_open=True),
    text=("<|open|>response<|sep|>", "<|close|>response<|sep|>"),
    text_first=True,
    end="<|close|>message<|sep|>",
    excludes=("<|open|>", "<|close|>"),
    string_excludes=("<|open|>", "<|close|>", "<|sep|>"),
    notes="Kimi K3",
)
