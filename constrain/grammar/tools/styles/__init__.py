"""The styles, one file each."""

from __future__ import annotations

from constrain.grammar.tools.style import ToolStyle
from constrain.grammar.tools.styles import (
    apertus,
    apriel,
    command_r7b,
    deepseek_r1,
    deepseek_v3,
    deepseek_v3_1,
    deepseek_v3_2,
    deepseek_v4,
    firefunction,
    functionary_v3_1,
    gemma3,
    gemma4,
    gigachat3_1,
    glm4_5,
    granite3,
    hermes,
    kimi_k2,
    llama3,
    llama3_python_tag,
    minimax_m1,
    minimax_m2,
    mistral,
    mistral_args,
    nemotron_nano_v2,
    openai_harmony,
    phi4,
    qwen3,
    qwen3_coder,
    seed_oss,
)

_MODULES = (
    llama3,
    llama3_python_tag,
    qwen3,
    qwen3_coder,
    hermes,
    deepseek_r1,
    deepseek_v3,
    deepseek_v3_1,
    deepseek_v3_2,
    mistral,
    mistral_args,
    kimi_k2,
    glm4_5,
    openai_harmony,
    gemma3,
    gemma4,
    minimax_m2,
    phi4,
    seed_oss,
    deepseek_v4,
    nemotron_nano_v2,
    apriel,
    minimax_m1,
    granite3,
    apertus,
    functionary_v3_1,
    firefunction,
    command_r7b,
    gigachat3_1,
)

STYLES: dict[str, ToolStyle] = {module.STYLE.name: module.STYLE for module in _MODULES}
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
    "phi4-mini": "phi4",
    "granite4": "hermes",
    "nemotron3": "qwen3_coder",
}
"""Other names of some of them."""
