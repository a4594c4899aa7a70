"""Functionary v3.1: JSON between tags with the name."""

from constrain.grammar.tools.style import ToolStyle

STYLE = ToolStyle(
    name="functionary_v3.1",
    forms=(("<function=", ">"),),
    ends=("</function>",),
    trigger="<function=",
    separator="",
    notes="Functionary v3.1",
)
