"""The styles, those of a kind in one file."""

from __future__ import annotations

from constrain.grammar.tools.style import ToolStyle
from constrain.grammar.tools.styles import json_calls, json_lists, python_calls, xml_calls

STYLES: dict[str, ToolStyle] = {
    style.name: style
    for family in (json_calls, json_lists, xml_calls, python_calls)
    for style in vars(family).values()
    if isinstance(style, ToolStyle)
}
"""Styles by name."""

ALIASES: dict[str, str] = {
    "llama3.1": "llama3",
    "llama3.2": "llama3",
    "llama3.3": "llama3",
    "llama4": "llama3",
    "qwen2.5": "hermes",
    "gpt-oss": "harmony",
    "gemma": "gemma3",
    "minimax": "minimax_m2",
    "glm4.6": "glm4.5",
    "glm4.7": "glm4.5",
    "glm5": "glm4.5",
    "phi4-mini": "phi4",
    "granite4": "hermes",
    "nemotron3": "qwen3_coder",
    "hunyuan": "hy3",
    "pythonic": "llama4_pythonic",
    "lfm2.5": "lfm2",
    "internlm": "internlm2",
    "intern-s1": "internlm2",
}
"""Other names of some of them."""
