"""Styles in which the calls of a turn are a list of JSON objects."""

from __future__ import annotations

from dataclasses import replace

from constrain.grammar.tools.style import Reasoning, Section, ToolStyle

# Mistral: a list of JSON objects.
MISTRAL = ToolStyle(
    name="mistral",
    forms=(('{"name": "', '", "arguments": '),),
    ends=("}", ', "id": "{id}"}'),
    trigger="[TOOL_CALLS]",
    section=Section("[TOOL_CALLS][", ", ", "]"),
    notes="Mistral 7B v0.3, Nemo, Small and Large to version 7 of the tokenizer",
)

# Phi 4 mini: a list of JSON objects.
PHI4 = ToolStyle(
    name="phi4",
    forms=(('{"name": "', '", "arguments": '),),
    ends=("}",),
    trigger="<|tool_call|>",
    section=Section("<|tool_call|>[", ", ", "]<|/tool_call|>"),
    notes="Phi 4 mini",
)

# Nemotron Nano v2: a list of JSON objects.
NEMOTRON_NANO_V2 = ToolStyle(
    name="nemotron_nano_v2",
    forms=(('{"name": "', '", "arguments": '),),
    ends=("}",),
    trigger="<TOOLCALL>",
    section=Section("<TOOLCALL>[", ", ", "]</TOOLCALL>"),
    reasoning=Reasoning("<think>\n", "</think>", "\n\n", is_open=True),
    notes="Nemotron Nano v2",
)

# Apriel: a list of JSON objects.
APRIEL = ToolStyle(
    name="apriel",
    forms=(('{"name": "', '", "arguments": '),),
    ends=("}",),
    trigger="<tool_calls>",
    section=Section("<tool_calls>[", ", ", "]</tool_calls>"),
    reasoning=Reasoning("Here are my reasoning steps:\n", "[BEGIN FINAL RESPONSE]", "\n", is_open=True),
    notes="Apriel 1.5 and 1.6",
)

# MiniMax M1: JSON objects, one a line.
MINIMAX_M1 = ToolStyle(
    name="minimax_m1",
    forms=(('{"name": "', '", "arguments": '),),
    ends=("}\n",),
    trigger="<tool_calls>",
    section=Section("<tool_calls>\n", "", "</tool_calls>"),
    reasoning=Reasoning("<think>", "</think>", "\n\n"),
    notes="MiniMax M1",
)

# Granite 3: a list of JSON objects, as its prompts ask for.
GRANITE3 = ToolStyle(
    name="granite3",
    forms=(('{"name": "', '", "arguments": '),),
    ends=("}",),
    trigger="<|tool_call|>",
    section=Section("<|tool_call|>[", ", ", "]"),
    notes="Granite 3.0 to 3.3",
)

# Granite 3.3 with thoughts: what Granite 3 writes, and a text between marks.
GRANITE3_3 = replace(
    GRANITE3,
    name="granite3.3",
    reasoning=Reasoning("<think>", "</think>"),
    text=("<response>", "</response>"),
    notes="Granite 3.3, where the prompt asks for thoughts",
)

# Apertus: a list of JSON objects with the name for a key.
APERTUS = ToolStyle(
    name="apertus",
    forms=(('{"', '": '),),
    ends=("}",),
    trigger="<|tools_prefix|>",
    section=Section("<|tools_prefix|>[", ", ", "]<|tools_suffix|>"),
    reasoning=Reasoning("<|inner_prefix|>", "<|inner_suffix|>"),
    notes="Apertus",
)

# FireFunction v2: a list of JSON objects.
FIREFUNCTION = ToolStyle(
    name="firefunction",
    forms=(('{"name": "', '", "arguments": '),),
    ends=("}",),
    trigger="functools[",
    section=Section("functools[", ", ", "]"),
    notes="FireFunction v2",
)

# Command R7B: a numbered list of JSON objects, or a text between marks.
COMMAND_R7B = ToolStyle(
    name="command_r7b",
    forms=(('{"tool_call_id": "{number}", "tool_name": "', '", "parameters": '),),
    ends=("}",),
    trigger="<|START_ACTION|>",
    section=Section("<|START_ACTION|>[\n    ", ",\n    ", "\n]<|END_ACTION|>"),
    reasoning=Reasoning("<|START_THINKING|>", "<|END_THINKING|>"),
    text=("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    notes="Command R7B",
)

# Command 4: as Command R7B, with other marks around text, and thoughts that the prompt has begun.
COMMAND4 = replace(
    COMMAND_R7B,
    name="command4",
    reasoning=Reasoning("<|START_THINKING|>", "<|END_THINKING|>", is_open=True),
    text=("<|START_TEXT|>", "<|END_TEXT|>"),
    notes="Command A Vision and Command A Plus",
)

# Hunyuan A13B: a list of JSON objects, as its prompts ask for.
HUNYUAN_A13B = replace(
    APRIEL,
    name="hunyuan_a13b",
    reasoning=Reasoning("<think>\n", "</think>", "\n"),
    notes="Hunyuan A13B Instruct",
)

# Jamba: a list of JSON objects, one a line.
JAMBA = ToolStyle(
    name="jamba",
    forms=(('{"name": "', '", "arguments": '),),
    ends=("}",),
    trigger="<tool_calls>",
    section=Section("<tool_calls>[\n    ", ",\n    ", "\n]</tool_calls>"),
    notes="Jamba 1.5 and 1.6",
)

# xLAM: a list of JSON objects, which is the whole turn.
XLAM = ToolStyle(
    name="xlam",
    forms=(('{"name": "', '", "arguments": '),),
    ends=("}",),
    trigger="[",
    is_whole=True,
    section=Section("[", ", ", "]"),
    notes="xLAM 2",
)

# Command R and R+: a list of JSON objects in a block of code.
COMMAND_R = ToolStyle(
    name="command_r",
    forms=(('{\n        "tool_name": "', '",\n        "parameters": '),),
    ends=("\n    }",),
    trigger="Action:\n```json",
    section=Section("Action:\n```json\n[\n    ", ",\n    ", "\n]```"),
    before_calls="\n",
    notes="Command R and R+",
)
