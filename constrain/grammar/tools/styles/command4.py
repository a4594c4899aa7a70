"""Command 4: as Command R7B, with other marks around text, and thoughts that the prompt has begun."""

from dataclasses import replace

from constrain.grammar.tools.style import Reasoning
from constrain.grammar.tools.styles.command_r7b import STYLE as COMMAND_R7B

STYLE = replace(
    COMMAND_R7B,
    name="command4",
    reasoning=Reasoning("<|START_THINKING|>", "<|END_THINKING|>", is_open=True),
    text=("<|START_TEXT|>", "<|END_TEXT|>"),
    notes="Command A Vision and Command A Plus",
)
