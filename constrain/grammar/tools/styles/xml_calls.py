"""Styles in which arguments are elements of XML, or something like it."""

from __future__ import annotations

from dataclasses import replace

from constrain.grammar.tools.style import Reasoning, Section, ToolStyle

# Qwen 3 Coder and Qwen 3.5: XML.
QWEN3_CODER = ToolStyle(
    name="qwen3_coder",
    # Qwen 3 Coder often leaves out the first mark, and writes the last one all the same.
    forms=(("<tool_call>\n<function=", ">\n"), ("<function=", ">\n")),
    ends=("</function>\n</tool_call>",),
    arguments="qwen_xml",
    trigger="<tool_call>",
    also_triggers=("<function=",),
    reasoning=Reasoning("<think>\n", "</think>", "\n\n"),
    notes="Qwen 3 Coder, Qwen 3.5",
)

# DeepSeek V3.2: XML of its own.
DEEPSEEK_V3_2 = ToolStyle(
    name="deepseek_v3.2",
    forms=(('<｜DSML｜invoke name="', '">\n'),),
    ends=("</｜DSML｜invoke>\n",),
    arguments="deepseek_xml",
    trigger="<｜DSML｜function_calls>",
    section=Section("<｜DSML｜function_calls>\n", "", "</｜DSML｜function_calls>"),
    before_calls="\n\n",
    reasoning=Reasoning("<think>", "</think>"),
    notes="DeepSeek V3.2",
)

# GLM 4.5: XML of keys and values.
GLM4_5 = ToolStyle(
    name="glm4.5",
    forms=(("<tool_call>", ""),),
    ends=("</tool_call>",),
    arguments="glm_xml",
    trigger="<tool_call>",
    before_calls="\n",
    reasoning=Reasoning("<think>", "</think>", "\n", before="\n"),
    excludes=("</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
    notes="GLM 4.5, 4.6, 4.7 and 5",
)

# MiniMax M2: XML.
MINIMAX_M2 = ToolStyle(
    name="minimax_m2",
    forms=(('<invoke name="', '">\n'),),
    ends=("</invoke>\n",),
    arguments="minimax_xml",
    trigger="<minimax:tool_call>",
    section=Section("<minimax:tool_call>\n", "", "</minimax:tool_call>"),
    before_calls="\n",
    reasoning=Reasoning("<think>\n", "</think>", "\n\n", is_open=True),
    excludes=("</minimax:tool_call>", "</invoke>"),
    notes="MiniMax M2",
)

# Seed-OSS: XML.
SEED_OSS = ToolStyle(
    name="seed_oss",
    forms=(("<seed:tool_call>\n<function=", ">\n"),),
    ends=("</function>\n</seed:tool_call>",),
    arguments="seed_xml",
    trigger="<seed:tool_call>",
    reasoning=Reasoning("<seed:think>", "</seed:think>", "\n"),
    notes="Seed-OSS",
)

# DeepSeek V4: the XML of V3.2 in a section of another name.
DEEPSEEK_V4 = ToolStyle(
    name="deepseek_v4",
    forms=(('<｜DSML｜invoke name="', '">\n'),),
    ends=("</｜DSML｜invoke>\n",),
    arguments="deepseek_xml",
    trigger="<｜DSML｜tool_calls>",
    section=Section("<｜DSML｜tool_calls>\n", "", "</｜DSML｜tool_calls>"),
    before_calls="\n\n",
    reasoning=Reasoning("<think>", "</think>", "\n\n"),
    notes="DeepSeek V4",
)

# Hy3: XML of keys and values, in a section.
HY3 = ToolStyle(
    name="hy3",
    forms=(("<tool_call>", "<tool_sep>"),),
    ends=("</tool_call>",),
    arguments="glm_xml",
    trigger="<tool_calls>",
    section=Section("<tool_calls>\n", "\n", "\n</tool_calls>"),
    reasoning=Reasoning("<think>", "</think>"),
    notes="Hy3 (Hunyuan)",
)

# MiMo: the XML of Qwen 3 Coder on one line.
MIMO = ToolStyle(
    name="mimo",
    forms=(("<tool_call><function=", ">"),),
    ends=("</function></tool_call>",),
    arguments="seed_xml",
    trigger="<tool_call>",
    separator="",
    reasoning=Reasoning("<think>", "</think>"),
    excludes=("</tool_call>", "<function="),
    notes="MiMo V2.6",
)

# DeepSeek V4.1: the XML of V4 with a blank before each name of a tag.
DEEPSEEK_V4_1 = ToolStyle(
    name="deepseek_v4.1",
    forms=(('<｜DSML｜ invoke name="', '">\n'),),
    ends=("</｜DSML｜ invoke>\n",),
    arguments="deepseek_v4_1_xml",
    trigger="<｜DSML｜ calls>",
    section=Section("<｜DSML｜ calls>\n", "", "</｜DSML｜ calls>"),
    before_calls="\n\n",
    reasoning=Reasoning("<think>", "</think>", "\n\n"),
    notes="DeepSeek V4.1",
)

# MiniMax M3: XML in which the names of arguments are those of elements, each tag behind a mark of its own.
_MINIMAX_M3_MARK = "]<]minimax[>["

MINIMAX_M3 = ToolStyle(
    name="minimax_m3",
    forms=((f'{_MINIMAX_M3_MARK}<invoke name="', '">'),),
    ends=(f"{_MINIMAX_M3_MARK}</invoke>\n",),
    arguments="minimax_m3_xml",
    trigger=f"{_MINIMAX_M3_MARK}<tool_call>",
    section=Section(f"{_MINIMAX_M3_MARK}<tool_call>\n", "", f"{_MINIMAX_M3_MARK}</tool_call>"),
    reasoning=Reasoning("<mm:think>", "</mm:think>", end_alone=True),
    excludes=(f"{_MINIMAX_M3_MARK}</tool_call>", f"{_MINIMAX_M3_MARK}<invoke", f"{_MINIMAX_M3_MARK}</invoke>"),
    notes="MiniMax M3",
)

# Command models that call in XML: each value says its kind, objects and arrays are XML too.
COHERE_XML = ToolStyle(
    name="cohere_xml",
    forms=(('<cofl:tool_call id="{number}" name="', '">'),),
    ends=("</cofl:tool_call>",),
    arguments="cohere_xml",
    trigger="<cofl:tool_calls>",
    section=Section("<cofl:tool_calls>", "", "</cofl:tool_calls>"),
    reasoning=Reasoning("<|START_THINKING|>", "<|END_THINKING|>"),
    notes="Command models with calls in XML",
)

# Kimi K3: a text between marks, numbered calls in XML of special tokens behind it, and the end of the message.
KIMI_K3 = ToolStyle(
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

# Hy3 as it was released: a suffix in each mark.
_HY3_OPENSOURCE_SUFFIX = ":opensource"

HY3_OPENSOURCE = ToolStyle(
    name="hy3_opensource",
    forms=((f"<tool_call{_HY3_OPENSOURCE_SUFFIX}>", f"<tool_sep{_HY3_OPENSOURCE_SUFFIX}>"),),
    ends=(f"</tool_call{_HY3_OPENSOURCE_SUFFIX}>",),
    arguments="hy3_opensource_xml",
    trigger=f"<tool_calls{_HY3_OPENSOURCE_SUFFIX}>",
    section=Section(f"<tool_calls{_HY3_OPENSOURCE_SUFFIX}>\n", "\n", f"\n</tool_calls{_HY3_OPENSOURCE_SUFFIX}>"),
    reasoning=Reasoning(f"<think{_HY3_OPENSOURCE_SUFFIX}>", f"</think{_HY3_OPENSOURCE_SUFFIX}>"),
    notes="Hy3, whose tokens have a suffix",
)

# Step 3: XML of its own, in the marks of DeepSeek V3.
STEP3 = ToolStyle(
    name="step3",
    forms=(('<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="', '">\n'),),
    ends=("</steptml:invoke><｜tool_call_end｜>\n",),
    arguments="step3_xml",
    trigger="<｜tool_calls_begin｜>",
    section=Section("<｜tool_calls_begin｜>\n", "", "<｜tool_calls_end｜>"),
    reasoning=Reasoning("<think>\n", "</think>", "\n", is_open=True),
    notes="Step 3",
)

# Solar Open 2: arguments between tokens, one a line.
SOLAR_OPEN2 = ToolStyle(
    name="solar_open2",
    forms=(("<|tool_call:start|>", "\n"),),
    ends=("<|tool_call:end|>",),
    arguments="solar_xml",
    trigger="<|tool_call:start|>",
    reasoning=Reasoning("<|think:start|>", "<|think:end|>"),
    notes="Solar Open 2",
)

# GigaChat 3.5: XML of its own, as that of DeepSeek V4.
GIGACHAT3_5 = ToolStyle(
    name="gigachat3.5",
    forms=(('<｜GCML｜invoke name="', '">\n'),),
    ends=("</｜GCML｜invoke>\n",),
    arguments="gigachat_xml",
    trigger="<｜GCML｜tool_calls>",
    section=Section("<｜GCML｜tool_calls>\n", "", "</｜GCML｜tool_calls>"),
    reasoning=Reasoning("<think>", "</think>", "\n\n"),
    notes="GigaChat 3.5",
)

# Dots: the XML of MiniMax M2 in a section of another name.
DOTS = replace(
    MINIMAX_M2,
    name="dots",
    trigger="<dots_function_call>",
    section=Section("<dots_function_call>\n", "", "</dots_function_call>"),
    before_calls="",
    reasoning=None,
    excludes=("</dots_function_call>", "</invoke>"),
    notes="Dots",
)
