"""Reka Edge: as Qwen 3, with nothing between two calls."""

from dataclasses import replace

from constrain.grammar.tools.styles.qwen3 import STYLE as QWEN3

STYLE = replace(
    QWEN3, name="reka_edge", before_calls=" ", separator="", notes="Reka Edge; the prompt ends with assistant:"
)
