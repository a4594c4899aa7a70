"""MiniMax M3: XML in which the names of arguments are those of elements, each tag behind a mark of its own."""

from constrain.grammar.tools.style import Reasoning, Section, ToolStyle

_MARK = "]<]minimax[>["

STYLE = ToolStyle(
    name="minimax_m3",
    forms=((f'{_MARK}<invoke name="', '">'),),
    ends=(f"{_MARK}</invoke>\n",),
    arguments="minimax_m3_xml",
    trigger=f"{_MARK}<tool_call>",
    section=Section(f"{_MARK}<tool_call>\n", "", f"{_MARK}</tool_call>"),
    reasoning=Reasoning("<mm:think>", "</mm:think>", end_alone=True),
    excludes=(f"{_MARK}</tool_call>", f"{_MARK}<invoke", f"{_MARK}</invoke>"),
    notes="MiniMax M3",
)
