"""FireFunction v2: a list of JSON objects."""

from constrain.grammar.tools.style import Section, ToolStyle

STYLE = ToolStyle(
    name="firefunction",
    forms=(('{"name": "', '", "arguments": '),),
    ends=("}",),
    trigger="functools[",
    before_calls=" ",
    section=Section("functools[", ", ", "]"),
    notes="FireFunction v2",
)
