"""How models write the arguments of a call where they are not JSON: one table, a style a row.

An argument is ``before_key``, its name, ``after_key``, what says the kind of its value, the value, and its end:
``<parameter=`` ``city`` ``>`` `` `` ``Oslo`` ``</parameter>``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

JSON, PYTHON, PYTHON_LINE = "json", "python", "python_line"
CALLS = (PYTHON, PYTHON_LINE)
"""Arguments that are what stands in the parentheses of a call in Python; or the same on one line, with JSON's words."""

KINDS = ("string", "number", "boolean", "null", "object", "array")


@dataclass(frozen=True)
class ArgumentStyle:
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
    quotes : (str, str)
        What may stand around a string, and has to where it holds one of ``quoted``.
    quoted : str
    escapes : dict of str to str
        How characters of a name are written that have a meaning otherwise.
    any_name : bool
        Whether a member that the schema does not name has any name, of at least one character; otherwise an identifier.
    before_item : str
        What stands before the opening of an item of an array.
    free_integer : str
        An opening that integers may have too where the schema says nothing about a value.
    after_item : str
        What stands behind the end of an item of an array.
    after_end : str
        With it the name stands behind the end of a value once more, and this behind that; then all members have names
        that the schema says.
    nests : bool
        Whether arrays and objects are written in the style too; otherwise they are JSON.
    ends : dict of str to str
        What stands behind values of some kinds instead.
    mark : str
        What each tag, and so the end of a value, begins with; in ASCII.  It stands in no string.
    separator : str
        What stands between two members, or two items.  With it the arguments are an object as any other of the style,
        with what stands around one, and there is no white space anywhere.
    like_json : bool
        With a separator: whether white space may stand where it may in JSON, and all of it may be any value.
    """

    before_key: str
    after_key: str
    openings: Mapping[str, str]
    end: str
    gap_at: str = ""
    string_lines: bool = False
    quotes: tuple[str, str] = ("", "")
    quoted: str = ""
    escapes: Mapping[str, str] = field(default_factory=dict)
    any_name: bool = False
    before_item: str = ""
    free_integer: str = ""
    after_item: str = ""
    after_end: str = ""
    nests: bool = False
    ends: Mapping[str, str] = field(default_factory=dict)
    mark: str = ""
    separator: str = ""
    like_json: bool = False

    def end_of(self, kind: str) -> str:
        """What stands behind a value of a kind."""
        return self.ends.get(kind, self.end)

    def write_name(self, name: str) -> str:
        """A name as it is written."""
        return "".join(self.escapes.get(character, character) for character in name)

    def can_write_name(self, name: str) -> bool:
        """Whether a reader finds a name that is written: it ends where its end stands, and begins no end of a value."""
        written = self.write_name(name)
        end = self.after_key.partition(self.gap_at)[0] if self.gap_at else self.after_key
        if (written + end).find(end) < len(written) or (self.before_key + written).startswith(self.end):
            return False
        # Without a mark before it, a name is what stands between white space.
        is_found = bool(self.before_key) or written == written.strip() != ""
        return is_found and not any(character in written for character in self.reserved)

    def read_name(self, text: str) -> str:
        """The name that is written so."""
        back = {escape: character for character, escape in self.escapes.items()}
        return re.sub("|".join(map(re.escape, back)), lambda found: back[found.group()], text) if back else text

    @property
    def reserved(self) -> str:
        """Characters that would end a name, or begin one: no name holds them as they are."""
        if not self.separator:
            return "<" if self.nests else ""
        containers = ("object", "array")
        return self.separator + self.after_key + "".join(self.openings[kind] + self.ends[kind] for kind in containers)

    def around_values(self) -> list[str]:
        """The strings that stand before values, and behind them."""
        ends = [self.end_of(kind) for kind in KINDS]
        return [*self.openings.values(), *ends, self.free_integer, self.before_item, self.after_item, self.after_end]


def _same(opening: str) -> dict[str, str]:
    return dict.fromkeys(KINDS, opening)


def _named(names: Mapping[str, str], after: str) -> dict[str, str]:
    return {kind: name + after for kind, name in names.items()}


_IS_STRING = {**_same("false"), "string": "true"}
_OWN_NAMES = {kind: kind for kind in KINDS}
_MINIMAX = "]<]minimax[>["
_COHERE = {"string": "raw", "number": "json", "boolean": "json", "null": "json", "object": "dict", "array": "list"}


def _bare_objects(quote: str, *, like_json: bool = False) -> ArgumentStyle:
    """Objects with bare names, in which strings stand as they are between two marks."""
    return ArgumentStyle(
        "",
        ":",
        {**_same(""), "string": quote, "object": "{", "array": "["},
        quote,
        nests=True,
        ends={**_same(""), "string": quote, "object": "}", "array": "]"},
        separator=",",
        like_json=like_json,
    )


def _keys_and_values(prefix: str = "", suffix: str = "") -> ArgumentStyle:
    """Elements for names and for values; there may be white space between the two."""
    key, value = f"{prefix}arg_key{suffix}>", f"{prefix}arg_value{suffix}>"
    return ArgumentStyle(f"<{key}", f"</{key}<{value}", _same(""), f"</{value}", gap_at=f"<{value}")


def _marked_strings(tag: str) -> ArgumentStyle:
    """Elements that say whether their value is a string."""
    return ArgumentStyle(f'<{tag} name="', '" string="', _named(_IS_STRING, '">'), f"</{tag}>")


STYLES: dict[str, ArgumentStyle] = {
    "qwen_xml": ArgumentStyle("<parameter=", ">", _same(""), "</parameter>", string_lines=True),
    # The same tags, in models that write no line ends around a value.
    "seed_xml": ArgumentStyle("<parameter=", ">", _same(""), "</parameter>"),
    "minimax_xml": ArgumentStyle('<parameter name="', '">', _same(""), "</parameter>"),
    "deepseek_xml": _marked_strings("｜DSML｜parameter"),
    "deepseek_v4_1_xml": _marked_strings("｜DSML｜ parameter"),
    "gigachat_xml": _marked_strings("｜GCML｜parameter"),
    "glm_xml": _keys_and_values(),
    "hy3_opensource_xml": _keys_and_values(suffix=":opensource"),
    "k2_horizon_xml": _keys_and_values("ifm|"),
    "longcat_xml": _keys_and_values("longcat_"),
    "solar_xml": ArgumentStyle("<|tool_arg:start|>", "<|tool_arg:value|>", _same(""), "<|tool_arg:end|>"),
    "atem_xml": ArgumentStyle('<atem:parameter name="', '">', _same(""), "</atem:parameter>"),
    # Strings with a sign that XML knows, or of several lines, stand in a section of their own.
    "minicpm_xml": ArgumentStyle(
        '<param name="', '">', _same(""), "</param>", quotes=("<![CDATA[", "]]>"), quoted="<&\n"
    ),
    "step3_xml": ArgumentStyle('<steptml:parameter name="', '">', _same(""), "</steptml:parameter>"),
    "kimi_k3_xml": ArgumentStyle(
        '<|open|>argument key="',
        '" type="',
        _named(_OWN_NAMES, '"<|sep|>'),
        "<|close|>argument<|sep|>",
        escapes={"&": "&amp;", '"': "&quot;"},
        free_integer='integer"<|sep|>',
    ),
    "cohere_xml": ArgumentStyle(
        '<cofl:value name="',
        '" type="',
        _named(_COHERE, '">'),
        "</cofl:value>",
        escapes={"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"},
        any_name=True,
        before_item='<cofl:value type="',
        nests=True,
    ),
    "minimax_m3_xml": ArgumentStyle(
        f"{_MINIMAX}<",
        ">",
        _same(""),
        f"{_MINIMAX}</",
        before_item=f"{_MINIMAX}<item>",
        after_item="item>",
        after_end=">",
        nests=True,
        mark=_MINIMAX,
    ),
    # What the model writes, and what XGrammar's format takes.
    "gemma4": _bare_objects('<|"|>'),
    "gemma": _bare_objects('<|"|>', like_json=True),
    "functiongemma": _bare_objects("<escape>"),
}
"""Styles by the name that structural tags use."""
