"""Nemotron 3: the XML of Qwen 3 Coder, behind one line end, and thoughts that the prompt has begun."""

from dataclasses import replace

from constrain.grammar.tools.style import Reasoning
from constrain.grammar.tools.styles.qwen3_coder import STYLE as QWEN3_CODER

STYLE = replace(
    QWEN3_CODER,
    name="nemotron3",
    before_calls="\n",
    reasoning=Reasoning("<think>\n", "</think>", "\n", is_open=True),
    notes="Nemotron 3 Nano",
)
