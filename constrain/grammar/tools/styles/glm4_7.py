"""GLM 4.7 and 5: the XML of GLM 4.5 with no line ends around, and thoughts that the prompt has begun."""

from dataclasses import replace

from constrain.grammar.tools.style import Reasoning
from constrain.grammar.tools.styles.glm4_5 import STYLE as GLM4_5

STYLE = replace(
    GLM4_5,
    name="glm4.7",
    before_calls="",
    separator="",
    reasoning=Reasoning("<think>", "</think>", is_open=True),
    notes="GLM 4.7 and 5, Laguna S, Spark 2.5",
)
