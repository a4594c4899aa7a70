"""MiniMax M2: XML."""

from constrain.grammar.tools.style import Reasoning, Section, ToolStyle

STYLE = ToolStyle(
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
