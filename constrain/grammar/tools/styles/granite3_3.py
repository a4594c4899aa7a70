"""Granite 3.3 with thoughts: what Granite 3 writes, and a text between marks."""

from dataclasses import replace

from constrain.grammar.tools.style import Reasoning
from constrain.grammar.tools.styles.granite3 import STYLE as GRANITE3

STYLE = replace(
    GRANITE3,
    name="granite3.3",
    reasoning=Reasoning("<think>", "</think>"),
    text=("<response>", "</response>"),
    notes="Granite 3.3, where the prompt asks for thoughts",
)
