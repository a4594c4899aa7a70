"""Kimi K2: numbered calls."""

from constrain.grammar.tools.style import Reasoning, Section, ToolStyle

STYLE = ToolStyle(
    name="kimi_k2",
    forms=(("<|tool_call_begin|>functions.", ":{number}<|tool_call_argument_begin|>"),),
    ends=("<|tool_call_end|>",),
    call_id="functions.{name}:{id}",
    trigger="<|tool_calls_section_begin|>",
    section=Section(
        "<|tool_calls_section_begin|>",
        "",
        "<|tool_calls_section_end|>",
        also_read=(("<|tool_call_section_begin|>", "<|tool_call_section_end|>"),),
        is_left_out=True,
    ),
    reasoning=Reasoning("<think>", "</think>"),
    also_read=(("<|tool_call_begin|>", ":{number}<|tool_call_argument_begin|>"),),
    excludes=("<|tool_call_begin|>",),
    notes="Kimi K2",
)
