"""How models write the arguments of a call in XML: one table, a style a row.

An argument is ``before_key``, its name, ``after_key``, what says the kind of its value, the value, and ``end``:
``<parameter=`` ``city`` ``>`` `` `` ``Oslo`` ``</parameter>``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

KINDS = ("string", "number", "boolean", "null", "object", "array")


@dataclass(frozen=True)
class XmlStyle:
    """A style.

    Attributes
    ----------
    before_key, after_key : str
        What stands around the name of an argument.  There may be white space before the former.
    openings : dict of str to str
        What stands between that and a value, by the kind of the value.
    end : str
        What stands behind a value.
    gap_at : str
        Where there may be white space within ``after_key``: before this part of it.
    string_lines : bool
        Whether a line end behind the opening, and one before the end, are no part of a string.
    escapes : dict of str to str
        How characters of a name are written that have a meaning otherwise.
    before_item : str
        What stands before the opening of an item of an array, where arrays and objects are written in XML too; empty
        where they are JSON.
    free_integer : str
        An opening that integers may have too where the schema says nothing about a value.
    """

    before_key: str
    after_key: str
    openings: Mapping[str, str]
    end: str
    gap_at: str = ""
    string_lines: bool = False
    escapes: Mapping[str, str] = field(default_factory=dict)
    before_item: str = ""
    free_integer: str = ""


def _same(opening: str) -> dict[str, str]:
    return dict.fromkeys(KINDS, opening)


def _named(names: Mapping[str, str], after: str) -> dict[str, str]:
    return {kind: name + after for kind, name in names.items()}


_IS_STRING = {**_same("false"), "string": "true"}
_OWN_NAMES = {kind: kind for kind in KINDS}
_COHERE = {"string": "raw", "number": "json", "boolean": "json", "null": "json", "object": "dict", "array": "list"}

STYLES: dict[str, XmlStyle] = {
    "qwen_xml": XmlStyle("<parameter=", ">", _same(""), "</parameter>", string_lines=True),
    "minimax_xml": XmlStyle('<parameter name="', '">', _same(""), "</parameter>"),
    "deepseek_xml": XmlStyle(
        '<｜DSML｜parameter name="', '" string="', _named(_IS_STRING, '">'), "</｜DSML｜parameter>"
    ),
    "deepseek_v4_1_xml": XmlStyle(
        '<｜DSML｜ parameter name="', '" string="', _named(_IS_STRING, '">'), "</｜DSML｜ parameter>"
    ),
    "glm_xml": XmlStyle("<arg_key>", "</arg_key><arg_value>", _same(""), "</arg_value>", gap_at="<arg_value>"),
    "kimi_k3_xml": XmlStyle(
        '<|open|>argument key="',
        '" type="',
        _named(_OWN_NAMES, '"<|sep|>'),
        "<|close|>argument<|sep|>",
        free_integer='integer"<|sep|>',
    ),
    "cohere_xml": XmlStyle(
        '<cofl:value name="',
        '" type="',
        _named(_COHERE, '">'),
        "</cofl:value>",
        escapes={"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"},
        before_item='<cofl:value type="',
    ),
}
"""Styles by the name that structural tags use."""
