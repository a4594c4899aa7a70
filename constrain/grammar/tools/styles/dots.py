"""Dots: the XML of MiniMax M2 in a section of another name."""

from dataclasses import replace

from constrain.grammar.tools.style import Section
from constrain.grammar.tools.styles.minimax_m2 import STYLE as MINIMAX_M2

STYLE = replace(
    MINIMAX_M2,
    name="dots",
    trigger="<dots_function_call>",
    section=Section("<dots_function_call>\n", "", "</dots_function_call>"),
    before_calls="",
    reasoning=None,
    excludes=("</dots_function_call>", "</invoke>"),
    notes="Dots",
)
