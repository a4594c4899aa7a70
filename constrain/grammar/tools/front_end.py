"""``from_tools``: tools and a style in, the grammar of a whole turn out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, NamedTuple, get_args

from constrain.collection import without_collection
from constrain.errors import ConstrainError, SchemaError
from constrain.grammar.ir import FirstRegion, GrammarIR
from constrain.grammar.languages.prefix_tree import common_length
from constrain.grammar.schema_options import PropertyOrder, check_choice
from constrain.grammar.structural_tags import formats as f
from constrain.grammar.structural_tags.python_calls import is_argument_name
from constrain.grammar.structural_tags.styles import CALLS
from constrain.grammar.structural_tags.styles import STYLES as ARGUMENT_STYLES
from constrain.grammar.structural_tags.writer import grammar_of
from constrain.grammar.tools.definitions import Tool, read_tools
from constrain.grammar.tools.special_marks import SpecialMarks
from constrain.grammar.tools.style import NAME, Reasoning, ToolStyle, pieces
from constrain.grammar.tools.styles import ALIASES, STYLES

_SAYS_NOTHING = {"type", "$schema", "title", "description"}
_NAMES_SHOWN = 20
"""Words of a schema that say nothing of the arguments of a tool."""


@without_collection
def from_tools(
    tools: Iterable[Any],
    *,
    style: str | ToolStyle,
    tool_choice: str = "auto",
    parallel: bool = True,
    reasoning: bool | int = True,
    reasoning_begun: bool | None = None,
    property_order: PropertyOrder = "schema",
    closed: bool = True,
    lenient: bool = False,
    special_tokens: Iterable[str] = (),
    allowed: tuple[str, ...] | None = None,
) -> GrammarIR:
    """The grammar of a turn in which a model may call tools; see :meth:`constrain.Grammar.from_tools`."""
    chosen = style_named(style, reasoning_begun)
    check_choice("property_order", get_args(PropertyOrder), property_order)
    for name, value in (("parallel", parallel), ("closed", closed), ("lenient", lenient)):
        if not isinstance(value, bool):
            raise ConstrainError(f"{name} must be a boolean, not {value!r}")
    if not isinstance(reasoning, int) or (reasoning is not True and reasoning < 0):
        raise ConstrainError(f"reasoning must be a boolean or a number of tokens, not {reasoning!r}")
    has_budget = not isinstance(reasoning, bool) and reasoning > 0 and chosen.reasoning is not None
    found = _allowed(read_tools(tools), allowed)
    names = _names_of_tokens(special_tokens, chosen, found)
    try:
        writer = _Turn(chosen, property_order == "any", closed, names)
        # A budget of thoughts is one of the first.
        turn = writer.format(found, tool_choice, parallel, bool(reasoning), repeats=not has_budget)
        region = writer.thoughts_first(reasoning, turn) if has_budget else None
        if region is not None and names:
            raise ConstrainError(f"reasoning={reasoning}: a number of tokens does not go with special_tokens")
        if names:
            turn = SpecialMarks(names).rewrite(turn)
        ir = grammar_of(turn, is_lenient=lenient)
        return ir if region is None else replace(ir, first_region=region)
    except RecursionError:
        raise SchemaError("the schema of a tool is nested too deeply") from None


def style_named(style: str | ToolStyle, reasoning_begun: bool | None = None) -> ToolStyle:
    """The style with a name, for prompts that have begun the thoughts, or have not; None: as they usually do.

    Raises ConstrainError if there is no such style, or no thoughts in it that a prompt could have begun.
    """
    known = style if isinstance(style, ToolStyle) else None
    if isinstance(style, str):
        known = STYLES.get(ALIASES.get(style, style))
    if known is None:
        known_names = sorted({*STYLES, *ALIASES})
        nearest = _nearest(style, known_names) if isinstance(style, str) else None
        others = "there are" if nearest is None else f"did you mean {nearest!r}? There are"
        raise ConstrainError(f"there is no style {style!r}; {others} {', '.join(known_names)}")
    if reasoning_begun is None:
        return known
    if not isinstance(reasoning_begun, bool):
        raise ConstrainError(f"reasoning_begun must be a boolean or None, not {reasoning_begun!r}")
    if known.reasoning is None:
        if reasoning_begun:
            raise ConstrainError(f"reasoning_begun: there are no thoughts in the style {known.name}")
        return known
    return replace(known, reasoning=replace(known.reasoning, is_open=reasoning_begun))


def _nearest(name: str, names: list[str]) -> str | None:
    """The name that was meant: servers write minimax-m2 or deepseekv31 for minimax_m2 and deepseek_v3.1."""
    letters = _letters(name)
    # The same letters first: glm47 is as near to glm4.5 as a typing error.
    same = [other for other in names if _letters(other) == letters]
    near = same or get_close_matches(name, names, n=1, cutoff=0.75)
    return near[0] if near else None


def _letters(name: str) -> str:
    """The letters and digits of a name."""
    return "".join(filter(str.isalnum, name)).lower()


def _allowed(tools: list[Tool], names: tuple[str, ...] | None) -> list[Tool]:
    """The tools that may be called; None: all."""
    if names is None:
        return tools
    for name in names:
        if name not in [tool.name for tool in tools]:
            raise ConstrainError(f"tool_choice allows {name!r}, which is none of the tools")
    return [tool for tool in tools if tool.name in names]


def _names_of_tokens(names: Iterable[str], style: ToolStyle, tools: list[Tool]) -> tuple[str, ...]:
    """The tokens among the marks of a style, checked."""
    is_list = isinstance(names, Iterable) and not isinstance(names, str)
    found = tuple(names) if is_list else ()
    if not is_list or not all(isinstance(name, str) and name for name in found):
        raise ConstrainError(f"special_tokens must be names of tokens, not {names!r}")
    found = tuple(dict.fromkeys(found))
    marks = style.marks()
    for name in found:
        if not any(name in mark for mark in marks):
            raise ConstrainError(f"special_tokens: there is no {name!r} in a turn of the style {style.name}")
        for tool in tools:
            if name in tool.name:
                raise SchemaError(f"the name of a tool holds {name!r}, which is one of special_tokens", tool.pointer)
    return found


_MODES = ("auto", "required", "none")


class Choice(NamedTuple):
    """What a request says about calls.

    Attributes
    ----------
    mode : str
        ``auto``, ``required`` or ``none``, or the name of a tool; not checked.
    allowed : tuple of str, optional
        The names of the tools that are allowed, if not all are.
    is_single : bool
        Whether there may be one call only.
    """

    mode: Any
    allowed: tuple[str, ...] | None = None
    is_single: bool = False


def choice_of(tool_choice: Any) -> Choice:
    """What was chosen, without the object that requests in OpenAI's and Anthropic's JSON have around it."""
    if not isinstance(tool_choice, Mapping):
        return Choice(tool_choice)
    is_single = tool_choice.get("disable_parallel_tool_use", False)
    if not isinstance(is_single, bool):
        raise ConstrainError(f"disable_parallel_tool_use must be a boolean, not {is_single!r}")
    match tool_choice:
        case {
            "type": "allowed_tools",
            "allowed_tools": {"mode": "auto" | "required" as mode, "tools": list() as tools},
        } | {"type": "allowed_tools", "mode": "auto" | "required" as mode, "tools": list() as tools}:
            names = [tool if isinstance(tool, str) else _name_in(tool) for tool in tools]
            if all(isinstance(name, str) for name in names):
                return Choice(mode, tuple(names), is_single)
        case {"type": "any"}:
            return Choice("required", None, is_single)
        case {"type": "auto" | "none" as mode}:
            return Choice(mode, None, is_single)
    name = _name_in(tool_choice)
    if name in _MODES:
        # A tool that is called like this.
        return Choice("required", (name,), True)
    return Choice(tool_choice if name is None else name, None, is_single)


def _name_in(tool_choice: Any) -> Any:
    """The name of the tool that an object chooses; None if it chooses none."""
    match tool_choice:
        case {"type": "function", "function": {"name": name}} | {"type": "function" | "tool", "name": name}:
            return name
    return None


class _Turn:
    """Writes a turn as a structural tag."""

    def __init__(self, style: ToolStyle, any_order: bool, closed: bool, tokens: tuple[str, ...]) -> None:
        self._style = style
        self._tokens = tokens
        self._any_order = any_order
        self._closed = closed
        thoughts = style.reasoning
        # Marks of thoughts have no place elsewhere, nor have those of calls that are not where they belong.
        self._marks = () if thoughts is None else tuple(dict.fromkeys((thoughts.begin.strip(), thoughts.end)))

    def format(self, tools: list[Tool], choice: str, parallel: bool, reasoning: bool, repeats: bool) -> f.Format:
        """The whole turn; with ``repeats`` thoughts may come again in a turn of several messages."""
        if choice not in ("auto", "required", "none"):
            if not isinstance(choice, str) or choice not in [tool.name for tool in tools]:
                names = ", ".join(tool.name for tool in tools[:_NAMES_SHOWN]) + ", ..." * (len(tools) > _NAMES_SHOWN)
                raise ConstrainError(
                    f"tool_choice is auto, required, none or the name of a tool, not {choice!r}; there are: {names}"
                )
            tools = [tool for tool in tools if tool.name == choice]
            choice, parallel = "required", False
        if choice == "required" and not tools:
            raise ConstrainError("tool_choice='required' needs tools")
        thoughts = self._style.reasoning if reasoning else None
        if self._style.text_first:
            body = self._text_before_calls(tools if choice != "none" else [], choice == "required", parallel, thoughts)
        elif choice == "none" or not tools:
            body = self._text()
        elif choice == "required":
            body = self._calls_alone(tools, parallel)
            if thoughts is not None and thoughts.after == self._style.before_calls:
                thoughts = replace(thoughts, after="")
        else:
            body = self._text_and_calls(tools, parallel)
        if self._style.preamble is not None:
            body = self._messages(thoughts if repeats else None, choice != "required", body)
        return body if thoughts is None else f.Sequence("#", (self._thoughts(thoughts), body))

    def _thoughts(self, thoughts: Reasoning) -> f.Format:
        begin, text = self._thoughts_only(thoughts)
        after = f.Repeated("#", f.ConstString("#", thoughts.after), 0, 1)
        turn: f.Format = f.Sequence("#", (begin, text, after))
        if thoughts.is_open:
            return turn
        return f.Repeated(
            "#", f.Or("#", (turn, f.ConstString("#", thoughts.end))) if thoughts.end_alone else turn, 0, 1
        )

    def _messages(self, thoughts: Reasoning | None, has_text: bool, body: f.Format) -> f.Format:
        """A body behind further thoughts, if there may be any, and behind preambles, if there may be text."""
        style = self._style
        assert style.preamble is not None
        before: list[f.Format] = []
        if thoughts is not None:
            begin, text = self._thoughts_only(replace(thoughts, is_open=False))
            before.append(f.Sequence("#", (begin, text)))
        if has_text:
            before.append(f.Tag("#", style.preamble[0], self._free_text(), (style.preamble[1],)))
        if not before:
            return body
        message: f.Format = f.Or("#", tuple(before))
        if style.separator:
            separator = f.Repeated("#", f.ConstString("#", style.separator), 0, 1)
            message = f.Sequence("#", (message, separator))
        return f.Sequence("#", (f.Repeated("#", message, 0, None), body))

    def thoughts_first(self, tokens: int, turn: f.Format) -> FirstRegion:
        """The budget of the thoughts of a turn: with their marks, or with what shows that there are none."""
        thoughts = self._style.reasoning
        assert thoughts is not None
        rest = f.AnyText("#")
        begin, text = self._thoughts_only(thoughts)
        ways: list[f.Format] = [f.Sequence("#", (begin, text, rest))]
        if not thoughts.is_open:
            assert isinstance(turn, f.Sequence)
            ways.append(f.Sequence("#", (self._without_thoughts(thoughts.openings(), turn.elements[1]), rest)))
            if thoughts.end_alone:
                ways.append(f.Sequence("#", (f.ConstString("#", thoughts.end), rest)))
        grammar = grammar_of(f.Or("#", tuple(ways)))
        shortest = thoughts.end if thoughts.is_open else thoughts.begin + thoughts.end
        return FirstRegion(grammar, tokens, shortest.encode(), f"reasoning={tokens}")

    def _without_thoughts(self, openings: list[str], body: f.Format) -> f.Format:
        """The shortest beginnings of a body that show that thoughts do not begin there."""
        begins = _beginnings(body)
        if begins is None or any(mark.startswith(each) for mark in openings for each in begins):
            excluded = (*self._style.triggers, *self._marks, *self._style.excludes)
            # What a body cannot hold shows that it is none: the rest of a mark behind it decides nothing.
            ends = [min(mark.find(each) + len(each) for each in excluded if each in mark) for mark in openings]
            return f.Regex("#", _other_beginnings([mark[:end] for mark, end in zip(openings, ends, strict=True)]))
        signs = (each[: max(common_length(each, mark, 0) for mark in openings) + 1] for each in begins)
        return f.Or("#", tuple(f.ConstString("#", each) for each in dict.fromkeys(signs)))

    def _thoughts_only(self, thoughts: Reasoning) -> tuple[f.Format, f.Format]:
        """What thoughts begin with, and the rest of them with their end."""
        begin: f.Format = f.Or("#", tuple(f.ConstString("#", each) for each in thoughts.openings()))
        # What is thought holds no call.
        text = f.Tag("#", "", f.AnyText("#", (*self._style.triggers, *self._style.excludes)), (thoughts.end,))
        return f.Repeated("#", begin, 0, 1) if thoughts.is_open else begin, text

    def _text(self) -> f.Format:
        style = self._style
        if not style.is_whole:
            return self._framed(self._free_text())
        begin = f.Regex("#", _other_beginnings([style.trigger]))
        rest = f.AnyText("#", (*self._marks, *style.excludes))
        return f.Repeated("#", f.Sequence("#", (begin, rest)), 0, 1)

    def _free_text(self) -> f.AnyText:
        """Text that holds no mark of calls or thoughts."""
        return f.AnyText("#", tuple(dict.fromkeys((*self._style.triggers, *self._marks, *self._style.excludes))))

    def _framed(self, text: f.Format) -> f.Format:
        """Free text with what has to stand around it; what ends the turn may be left to the token that does."""
        if self._style.text is None:
            return text
        before, after = self._style.text
        framed = f.Tag("#", before, text, tuple(dict.fromkeys(("", after))))
        if self._style.preamble is None or self._style.end in ("", after):
            return framed
        return f.Sequence("#", (framed, f.Repeated("#", f.ConstString("#", self._style.end), 0, 1)))

    def _text_before_calls(
        self, tools: list[Tool], are_required: bool, parallel: bool, thoughts: Reasoning | None
    ) -> f.Format:
        """A text, calls behind it, and the end of the turn."""
        style = self._style
        assert style.text is not None
        before, after = style.text
        begin: f.Format = f.ConstString("#", before)
        # A prompt that does not begin the thoughts begins the text.
        parts = [begin if thoughts is not None else f.Repeated("#", begin, 0, 1)]
        parts.append(f.Tag("#", "", self._free_text(), (after,)))
        if tools:
            calls = self._calls(tools, parallel)
            parts.append(calls if are_required else f.Repeated("#", calls, 0, 1))
        parts.append(f.Repeated("#", f.ConstString("#", style.end), 0, 1))
        return f.Sequence("#", tuple(parts))

    def _text_and_calls(self, tools: list[Tool], parallel: bool) -> f.Format:
        style = self._style
        if style.text is not None or style.is_whole:
            return f.Or("#", (self._text(), self._calls_alone(tools, parallel)))
        tags = self._tags(tools)
        if style.section is not None:
            tags = [self._section(tags, parallel)]
        stop = not parallel or (style.section is not None and style.section.is_last)
        return f.TriggeredTags("#", style.triggers, tuple(tags), False, stop, (*self._marks, *style.excludes))

    def _calls(self, tools: list[Tool], parallel: bool) -> f.Format:
        style = self._style
        tags = self._tags(tools)
        if style.section is not None:
            return self._section(tags, parallel)
        one = not parallel or (style.text is not None and style.further is None)
        return f.TagsWithSeparator("#", tuple(tags), style.between_calls, True, one)

    def _calls_alone(self, tools: list[Tool], parallel: bool) -> f.Format:
        """Calls where there is no text before them."""
        parts = [self._calls(tools, parallel)]
        if self._style.before_calls:
            parts.insert(0, f.Repeated("#", f.ConstString("#", self._style.before_calls), 0, 1))
        if self._style.preamble is not None and self._style.end:
            parts.append(f.Repeated("#", f.ConstString("#", self._style.end), 0, 1))
        return parts[0] if len(parts) == 1 else f.Sequence("#", tuple(parts))

    def _section(self, tags: list[f.Tag], parallel: bool) -> f.Tag:
        section = self._style.section
        assert section is not None
        calls = f.TagsWithSeparator("#", tuple(tags), section.separator, True, not parallel)
        return f.Tag("#", section.begin, calls, (section.end,))

    def _tags(self, tools: list[Tool]) -> list[f.Tag]:
        return [self._tag(tool, *form) for tool in tools for form in self._style.forms]

    def _tag(self, tool: Tool, before: str, between: str) -> f.Tag:
        """A call."""
        style, pointer = self._style, f"{tool.pointer}/{tool.keyword}"
        if style.arguments in CALLS and not all(map(is_argument_name, tool.name.split("."))):
            reason = f"a tool is called by an identifier of Python in the style {style.name}, not {tool.name!r}"
            raise SchemaError(reason, f"{tool.pointer}/name")
        # A tag begins with text, up to the first pattern.
        written = before + tool.name + between.replace(NAME, tool.name)
        if any(map(written.startswith, self._messages_begin())):
            reason = f"a tool with the name {tool.name!r} cannot be told from a text in the style {style.name}"
            raise SchemaError(reason, f"{tool.pointer}/name")
        (_, begin), *rest = pieces(written)
        value = f.JsonSchema(
            pointer,
            self._parameters(tool),
            style.arguments,
            self._any_order,
            excludes=style.string_excludes,
            is_closed=self._closed,
            is_flexible=True,
            keyword="",
            tool=tool.name,
        )
        content: f.Format = f.Sequence(pointer, (*_parts(rest, pointer), value)) if rest else value
        plain = tuple(end for end in style.ends if not any(is_pattern for is_pattern, _ in pieces(end)))
        others = [end for end in style.ends if end not in plain]
        if not others:
            return f.Tag(pointer, begin, content, plain)
        ends: list[f.Format] = [f.ConstString(pointer, end) for end in plain]
        ends += [f.Sequence(pointer, _parts(pieces(end), pointer)) for end in others]
        return f.Tag(pointer, begin, f.Sequence(pointer, (content, f.Or(pointer, tuple(ends)))), ("",))

    def _messages_begin(self) -> tuple[str, ...]:
        """What thoughts, preambles and texts begin with in a turn of several messages."""
        style = self._style
        if style.preamble is None or style.text is None:
            return ()
        thoughts = () if style.reasoning is None else (style.reasoning.begin,)
        return (*thoughts, style.preamble[0], style.text[0])

    def _parameters(self, tool: Tool) -> Any:
        """The schema of the arguments of a tool: it names all of them where no others can be written."""
        arguments, schema = ARGUMENT_STYLES.get(self._style.arguments), tool.parameters
        if not self._closed or arguments is None or not isinstance(schema, dict) or not set(schema) <= _SAYS_NOTHING:
            return schema
        around = arguments.before_key + arguments.after_key
        is_limited = bool(arguments.after_end) or any(token in around for token in self._tokens)
        return {**schema, "properties": {}} if is_limited else schema


def _beginnings(body: f.Format) -> list[str] | None:
    """What a body begins with; None if it may begin with any text."""
    if isinstance(body, f.Sequence):
        first, *rest = body.elements
        if not isinstance(first, f.Repeated):
            return _beginnings(first)
        # A text that may be left out.
        found = _beginnings(rest[0])
        if isinstance(first.content, f.ConstString):
            begins = found and [first.content.value + each for each in found]
        else:
            begins = _beginnings(first.content)
        return None if found is None or begins is None else [*found, *begins]
    if isinstance(body, f.ConstString):
        return [body.value]
    if isinstance(body, f.Or):
        parts: tuple[f.Format, ...] = body.elements
    elif isinstance(body, f.TagsWithSeparator):
        parts = body.tags
    else:
        return [body.begin] if isinstance(body, f.Tag) and isinstance(body.begin, str) else None
    every = [_beginnings(part) for part in parts]
    return None if None in every else [text for texts in every if texts for text in texts]


def _other_beginnings(marks: list[str]) -> str:
    """A regex of the shortest texts that show that what begins is none of some marks: ``[^<]|<[^a]`` for ``<a``."""
    following: dict[str, str] = {}
    for mark in marks:
        for place, sign in enumerate(mark):
            following[mark[:place]] = following.get(mark[:place], "") + _written(sign)
    return "|".join(f"{''.join(map(_written, begin))}[^{signs}]" for begin, signs in following.items())


def _written(sign: str) -> str:
    """A character in a regex."""
    return re.escape(sign) if sign.isprintable() else f"\\x{ord(sign):02x}"


def _parts(parts: list[tuple[bool, str]], pointer: str) -> tuple[f.Format, ...]:
    """The formats of the pieces of a string of a style."""
    return tuple(f.Regex(pointer, part) if is_pattern else f.ConstString(pointer, part) for is_pattern, part in parts)
