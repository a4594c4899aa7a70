"""Styles in which arguments are those of a call in Python, or objects with bare names."""

from __future__ import annotations

from constrain.grammar.tools.style import Reasoning, Section, ToolStyle

# Gemma 4: objects with bare names, and strings between tokens.
GEMMA4 = ToolStyle(
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

# Llama 4, and Llama 3.2 and ToolACE as their prompts ask for: a list of calls in Python, which is the whole turn.
LLAMA4_PYTHONIC = ToolStyle(
    name="llama4_pythonic",
    forms=(("", ""),),
    ends=("",),
    arguments="python",
    trigger="[",
    section=Section("[", ", ", "]"),
    is_whole=True,
    notes="Llama 4, Llama 3.2, ToolACE",
)

# Llama 4: a list of calls in Python between the tags for code.
LLAMA4_PYTHON_START = ToolStyle(
    name="llama4_python_start",
    forms=(("", ""),),
    ends=("",),
    arguments="python",
    trigger="<|python_start|>",
    section=Section("<|python_start|>[", ", ", "]<|python_end|>"),
    notes="Llama 4",
)

# LFM 2 and 2.5: a list of calls in Python between two tags, with text before and behind it.
LFM2 = ToolStyle(
    name="lfm2",
    forms=(("", ""),),
    ends=("",),
    arguments="python",
    trigger="<|tool_call_start|>",
    section=Section("<|tool_call_start|>[", ", ", "]<|tool_call_end|>", is_last=False),
    reasoning=Reasoning("<think>", "</think>", "\n"),
    notes="LFM2, LFM2.5",
)

# Olmo 3: calls in Python with JSON's words, a line each.
OLMO3 = ToolStyle(
    name="olmo3",
    forms=(("", ""),),
    ends=("",),
    arguments="python_line",
    trigger="<function_calls>",
    section=Section("<function_calls>", "\n", "</function_calls>"),
    reasoning=Reasoning("<think>", "</think>", "\n\n"),
    notes="Olmo 3 Instruct and Think",
)

# FunctionGemma: objects with bare names, and strings between two tokens, as in Gemma 4.
FUNCTIONGEMMA = ToolStyle(
    name="functiongemma",
    forms=(("<start_function_call>call:", ""),),
    ends=("<end_function_call>",),
    arguments="functiongemma",
    trigger="<start_function_call>",
    separator="",
    excludes=("<end_function_call>", "<start_function_response>"),
    notes="FunctionGemma; <start_function_response> ends the turn",
)
