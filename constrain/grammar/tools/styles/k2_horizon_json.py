"""K2 Horizon with calls in JSON."""

from dataclasses import replace

from constrain.grammar.structural_tags.styles import JSON
from constrain.grammar.tools.styles.k2_horizon import STYLE as K2_HORIZON

STYLE = replace(
    K2_HORIZON,
    name="k2_horizon_json",
    forms=(('<ifm|tool_call>{"name": "', '", "arguments": '),),
    ends=("}</ifm|tool_call>",),
    arguments=JSON,
    notes="K2 Horizon, whose prompt asks for calls in JSON (tool_call_format=json)",
)
