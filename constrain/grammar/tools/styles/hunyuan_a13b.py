"""Hunyuan A13B: a list of JSON objects, as its prompts ask for."""

from dataclasses import replace

from constrain.grammar.tools.style import Reasoning
from constrain.grammar.tools.styles.apriel import STYLE as APRIEL

STYLE = replace(
    APRIEL,
    name="hunyuan_a13b",
    before_calls="",
    reasoning=Reasoning("<think>\n", "</think>", "\n"),
    notes="Hunyuan A13B Instruct",
)
