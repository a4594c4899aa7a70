"""Styles in which each call is a JSON object, or has its arguments in one."""

from __future__ import annotations

from constrain.grammar.tools.style import Reasoning, Section, ToolStyle

# Llama 3.1 to 4: a JSON object as it is.
LLAMA3 = ToolStyle(
    name="llama3",
    forms=(('{"name": "', '", "parameters": '),),
    ends=("}",),
    trigger='{"name": ',
    separator="; ",
    also_read=(
        ('{"name": "', '", "arguments": '),
        ('<|python_tag|>{"name": "', '", "parameters": '),
        ('<|python_tag|>{"name": "', '", "arguments": '),
    ),
    notes="Llama 3.1, 3.2, 3.3 and 4",
)

# Llama 3.1 to 3.3: a JSON object behind the tag for code.
LLAMA3_PYTHON_TAG = ToolStyle(
    name="llama3_python_tag",
    forms=(('<|python_tag|>{"name": "', '", "parameters": '),),
    ends=("}",),
    trigger="<|python_tag|>",
    separator="",
    also_read=(('<|python_tag|>{"name": "', '", "arguments": '),),
    notes="Llama 3.1, 3.2 and 3.3",
)

# Qwen 3: as Hermes, with thoughts.
QWEN3 = ToolStyle(
    name="qwen3",
    forms=(('<tool_call>\n{"name": "', '", "arguments": '),),
    ends=("}\n</tool_call>", "}</tool_call>"),
    trigger="<tool_call>",
    reasoning=Reasoning("<think>\n", "</think>", "\n\n"),
    notes="Qwen 3 (with its thoughts), QwQ",
)

# Hermes and Qwen 2.5: JSON between tags.
HERMES = ToolStyle(
    name="hermes",
    forms=(('<tool_call>\n{"name": "', '", "arguments": '),),
    ends=("}\n</tool_call>", "}</tool_call>"),
    trigger="<tool_call>",
    notes="Hermes 2 Pro and 3, Qwen 2.5",
)

# DeepSeek R1: JSON in a block of code, with thoughts that the prompt has begun.
DEEPSEEK_R1 = ToolStyle(
    name="deepseek_r1",
    forms=(("<｜tool▁call▁begin｜>function<｜tool▁sep｜>", "\n```json\n"),),
    ends=("\n```<｜tool▁call▁end｜>",),
    trigger="<｜tool▁calls▁begin｜>",
    section=Section("<｜tool▁calls▁begin｜>", "\n", "<｜tool▁calls▁end｜>"),
    reasoning=Reasoning("<think>\n", "</think>", "\n\n", is_open=True),
    notes="DeepSeek R1",
)

# DeepSeek V3: JSON in a block of code.
DEEPSEEK_V3 = ToolStyle(
    name="deepseek_v3",
    forms=(("<｜tool▁call▁begin｜>function<｜tool▁sep｜>", "\n```json\n"),),
    ends=("\n```<｜tool▁call▁end｜>",),
    trigger="<｜tool▁calls▁begin｜>",
    section=Section("<｜tool▁calls▁begin｜>", "\n", "<｜tool▁calls▁end｜>"),
    notes="DeepSeek V3",
)

# DeepSeek V3.1: JSON behind the name.
DEEPSEEK_V3_1 = ToolStyle(
    name="deepseek_v3.1",
    forms=(("<｜tool▁call▁begin｜>", "<｜tool▁sep｜>"),),
    ends=("<｜tool▁call▁end｜>",),
    trigger="<｜tool▁calls▁begin｜>",
    section=Section("<｜tool▁calls▁begin｜>", "", "<｜tool▁calls▁end｜>"),
    reasoning=Reasoning("<think>", "</think>"),
    notes="DeepSeek V3.1 and V3.2 Exp",
)

# Mistral, from version 11 of the tokenizer: name and arguments.
MISTRAL_ARGS = ToolStyle(
    name="mistral_args",
    forms=(("[TOOL_CALLS]", "[ARGS]"), ("[TOOL_CALLS]", "[CALL_ID]{id}[ARGS]")),
    ends=("",),
    trigger="[TOOL_CALLS]",
    separator="",
    reasoning=Reasoning("[THINK]", "[/THINK]"),
    also_read=(("[TOOL_CALLS]", ""),),
    notes="Mistral Small 3.2, Medium 3, Magistral, Devstral",
)

# Kimi K2: numbered calls.
KIMI_K2 = ToolStyle(
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

# gpt-oss: channels of the harmony format.
OPENAI_HARMONY = ToolStyle(
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

# Gemma 3: a JSON object in a block of code, as its prompts ask for.
GEMMA3 = ToolStyle(
    name="gemma3",
    forms=(('```json\n{"name": "', '", "parameters": '),),
    ends=("}\n```",),
    trigger="```json\n{",
    notes="Gemma 3",
)

# Functionary v3.1: JSON between tags with the name.
FUNCTIONARY_V3_1 = ToolStyle(
    name="functionary_v3.1",
    forms=(("<function=", ">"),),
    ends=("</function>",),
    trigger="<function=",
    separator="",
    notes="Functionary v3.1",
)

# GigaChat 3.1: a JSON object behind a mark.
GIGACHAT3_1 = ToolStyle(
    name="gigachat3.1",
    forms=(('<|function_call|>{"name": "', '", "arguments": '),),
    ends=("}",),
    trigger="<|function_call|>",
    separator="",
    notes="GigaChat 3.1, which writes one call a turn",
)

# LongCat Flash: as Hermes, with marks of its own and nothing between two calls.
LONGCAT_FLASH = ToolStyle(
    name="longcat_flash",
    forms=(('<longcat_tool_call>\n{"name": "', '", "arguments": '),),
    ends=("}\n</longcat_tool_call>",),
    trigger="<longcat_tool_call>",
    separator="",
    notes="LongCat Flash Chat",
)

# LFM2 with calls in JSON, where the prompt asks for them.
LFM2_JSON = ToolStyle(
    name="lfm2_json",
    forms=(('{"name": "', '", "arguments": '),),
    ends=("}",),
    trigger="<|tool_call_start|>",
    section=Section("<|tool_call_start|>[", ", ", "]<|tool_call_end|>", is_last=False),
    reasoning=Reasoning("<think>", "</think>", "\n"),
    notes="LFM2, LFM2.5, whose prompt says that calls are JSON",
)

# EXAONE 4: JSON between tags.
EXAONE4 = ToolStyle(
    name="exaone4",
    forms=(('<tool_call>{"name": "', '", "arguments": '),),
    ends=("}</tool_call>",),
    trigger="<tool_call>",
    reasoning=Reasoning("<think>", "</think>", "\n\n"),
    notes="EXAONE 4.0",
)

# InternLM 2 and Intern-S1: a JSON object between two tokens and a third.
INTERNLM2 = ToolStyle(
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

# GigaChat 3: a JSON object in a message of its own.
GIGACHAT3 = ToolStyle(
    name="gigachat3",
    forms=(('<|message_sep|>\n\nfunction call<|role_sep|>\n{"name": "', '", "arguments": '),),
    ends=("}",),
    trigger="<|message_sep|>",
    separator="",
    notes="GigaChat 3, which writes one call a turn",
)

# Granite 20B function calling: JSON objects behind a mark.
GRANITE_20B = ToolStyle(
    name="granite_20b",
    forms=(('<function_call> {"name": "', '", "arguments": '),),
    ends=("}",),
    trigger="<function_call>",
    separator="",
    notes="Granite 20B function calling",
)
