"""The arguments of a call as Python writes them: ``(city="Oslo", days=3, tags=["a"], deep=None)``.

They are an object in parentheses whose keys are names of arguments; what stands in it are Python's literals.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from functools import lru_cache
from keyword import iskeyword, kwlist

from constrain.grammar.ir import Symbol
from constrain.grammar.json_schema.document.places import Never
from constrain.grammar.json_schema.lexical.layout import USUAL_GAP, USUAL_GAP_BEFORE_MARK, Layout
from constrain.grammar.json_schema.lexical.notation import Spell
from constrain.grammar.json_schema.lexical.python_literals import PythonLayout, PythonNotation
from constrain.grammar.json_schema.lexical.strings import Spelling
from constrain.grammar.json_schema.lexical.texts import Pattern, Text, Words, every, without
from constrain.grammar.json_schema.normal.few_values import members_of
from constrain.grammar.json_schema.normal.key_classes import other_classes
from constrain.grammar.json_schema.normal.nodes import KeyRule, Node, ObjectNode
from constrain.grammar.json_schema.rules.rules import RuleWriter
from constrain.grammar.languages.regular import Regular, concat, literal, repeat
from constrain.grammar.structural_tags.argument_values import Names, objects_of_root, without_members
from constrain.grammar.structural_tags.styles import CALLS, PYTHON, ArgumentStyle

_NAME = Names(ArgumentStyle(before_key="", after_key="=", openings={}, end=""))
_LAST_NAME = re.compile(rb"([^\s(,=]+)\s*=$")
# Arguments that the schema does not name have ASCII names: Python takes some others for the same.
_NO_NAME: Text = without(every(Pattern("^[A-Za-z_][A-Za-z0-9_]*$"), without(Words(frozenset(kwlist)))))


def is_argument_name(name: str) -> bool:
    """Whether Python reads a text as a name, and as that name."""
    return name.isidentifier() and not iskeyword(name) and unicodedata.normalize("NFKC", name) == name


class CallLayout(PythonLayout):
    """How the arguments of a call stand one after the other.

    There is no white space before the first of them, around their equals signs and between empty parentheses: Python
    reads it there, but the parsers of vLLM and SGLang take a turn with it for plain text.

    Parameters
    ----------
    gap : Regular
        White space before each token.
    notation : PythonNotation
    """

    def __init__(self, gap: Regular, notation: PythonNotation) -> None:
        comma, colon = (concat(USUAL_GAP_BEFORE_MARK, literal(mark)) for mark in ",:")
        super().__init__(gap, comma, literal("="), notation)
        self.first_object = self.open_object = literal("(")
        self.close_object = concat(gap, literal(")"))
        self.empty_object = literal("()")
        self.inner = PythonLayout(gap, comma, colon, notation)

    has_pieces_of_keys = False
    object_brackets = ("'('", "')'")

    @property
    def key_spelling(self) -> Spelling:
        """How names are written."""
        return _NAME

    def keys(self, spell: Spell) -> tuple[Regular, Regular]:
        """Names with the equals sign behind them; and the same behind another argument."""
        key = concat(spell(_NAME), self.colon)
        return key, concat(self.comma, self.gap, key)

    def _key_at_end(self, data: bytes) -> str | None:
        found = _LAST_NAME.search(data)
        return None if found is None or found.start() == 0 else found.group(1).decode()


@lru_cache(maxsize=len(CALLS))
def call_layout(style: str) -> Layout:
    """The one layout of a style of :data:`~.styles.CALLS`, made when it is first asked for."""
    if style == PYTHON:
        return CallLayout(USUAL_GAP, PythonNotation(("None", "True", "False")))
    return CallLayout(repeat(literal(" "), 0, 2), PythonNotation(("null", "true", "false")))


def write_call(writer: RuleWriter, tool: str) -> Symbol:
    """The symbol of the arguments of a tool that are valid for the document's root, with their parentheses."""
    return writer.write_nodes(tuple(_named(writer, node, tool) for node in objects_of_root(writer)), None)


def _named(writer: RuleWriter, node: ObjectNode, tool: str) -> Node:
    """An alternative whose members are arguments; those without a name in the schema have names of Python."""
    unwritable = {
        name: handle
        for name, handle in members_of(node)
        if not is_argument_name(name) and (name in node.required or writer.normal(handle).nodes)
    }
    node = without_members(
        writer,
        node,
        unwritable,
        lambda name: f"the property {name!r} of {tool!r} cannot be an argument: it is no name in Python",
    )
    if not any(writer.normal(handle).nodes for _, handle in other_classes(node)):
        return node
    never = Never(node.pointer, "an argument has a name of Python").handle
    return replace(node, rules=(*node.rules, KeyRule(_NO_NAME, never)))
