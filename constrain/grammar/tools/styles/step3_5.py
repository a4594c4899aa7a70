"""Step 3.5 and 3.7: the XML of Qwen 3 Coder with nothing between two calls."""

from dataclasses import replace

from constrain.grammar.tools.style import Reasoning
from constrain.grammar.tools.styles.qwen3_coder import STYLE as QWEN3_CODER

STYLE = replace(
    QWEN3_CODER,
    name="step3.5",
    separator="",
    reasoning=Reasoning("<think>\n", "</think>", "\n", is_open=True),
    notes="Step 3.5 Flash, Step 3.7 Flash",
)
