"""xLAM: a list of JSON objects, which is the whole turn."""

from constrain.grammar.tools.style import Section, ToolStyle

STYLE = ToolStyle(
    name="xlam",
    forms=(('{"name": "', '", "arguments": '),),
    ends=("}",),
    trigger="[",
    is_whole=True,
    section=Section("[", ", ", "]"),
    notes="xLAM 2",
)
