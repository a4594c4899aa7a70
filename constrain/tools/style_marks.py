"""The marks of a style that a parser of turns looks for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from constrain.grammar.structural_tags.styles import JSON
from constrain.grammar.tools.style import ToolStyle, pieces
from constrain.tools.marks import Mark

_NAME_KEY = '"name": "'


class StyleMarks:
    """Marks: what begins calls stands as it is, in the rest white space may be another.

    Parameters
    ----------
    style : ToolStyle

    Attributes
    ----------
    starts : tuple of str
        What calls, or a section of them, begin with as it is.
    start : re.Pattern
        Any of these.
    openings : list of Mark
        What calls, or a section of them, begin with, as a whole.
    heads : list of Mark
        What a call is up to its arguments; those without a name have it behind the arguments.
    ends : list of Mark
        What stands behind the arguments.
    named_ends : list of Mark
        The same with the name, where it comes there.
    section_begins, section_ends : list of Mark
        None where calls stand in no section.
    behind_call : list of Mark
        What follows a call in a section.
    separators : list of Mark
        A separator, with the start of the next call.
    messages : list of Mark
        In a style whose texts stand between marks: what these, preambles and calls begin with.
    thoughts, thoughts_end : list of Mark
        What shows at the beginning of a turn whether there are thoughts; and what they end with.
    """

    def __init__(self, style: ToolStyle) -> None:
        section, trigger, forms = style.section, style.trigger, style.read_forms
        around = [] if section is None else [(section.begin, section.end), *section.also_read]
        heads = forms if section is None or section.is_left_out else ()
        # A message that begins with a name is told by its place.
        named_first = [Mark(*form) for form in heads if not form[0]]
        heads = tuple(form for form in heads if form[0])
        begins = [*(begin for begin, _ in around), *(before for before, _ in heads)]
        exact = [_exact_length(begin, trigger) for begin in begins]
        self.starts = tuple(dict.fromkeys(begin[:length] for begin, length in zip(begins, exact, strict=True)))
        self.start = re.compile("|".join(map(re.escape, self.starts)) if self.starts else "(?!)")
        self.thoughts: list[Mark] = []
        self.thoughts_end: list[Mark] = []
        if style.reasoning is not None:
            self.thoughts = [Mark(style.reasoning.begin.strip(), is_inside=True, is_last=True)]
            self.thoughts_end = [Mark(style.reasoning.end, is_inside=True, is_last=True)]
            if style.reasoning.end_alone:
                self.thoughts += self.thoughts_end
        # Before texts between marks, and calls in their place, there may be white space.
        messages = () if style.text is None else (style.text[0], *style.also_text, *(style.preamble or ())[:1])
        self.messages = [
            Mark(begin, exact=len(begin), is_inside=True, is_last=True)
            for begin in (*messages, *(start for start in self.starts if messages and not start[0].isspace()))
        ]
        self.separators = list(_separators(style, self.starts))
        turned = list(_turned_forms(style))
        self.section_begins = [Mark(begin, exact=exact[at]) for at, (begin, _) in enumerate(around)]
        self.section_ends = [Mark(end, is_inside=True, is_last=True) for _, end in around]
        self.behind_call: list[Mark] = []
        begun = [Mark(*form, exact=length) for form, length in zip(heads, exact[len(around) :], strict=True)]
        self.openings = [*self.section_begins, *begun]
        if section is None:
            self.openings += [Mark(before, exact=len(trigger)) for before in turned]
            self.heads = [*self.openings, *named_first]
            self.ends = [Mark(end, is_last=True) for end in style.ends]
        else:
            self.heads = [Mark(*form, is_inside=True) for form in forms]
            self.heads += [Mark(before, is_inside=True) for before in turned]
            self.ends = [Mark(end.rstrip(), is_inside=bool(end), is_last=True) for end in style.ends]
            self.behind_call = [*self.section_ends, Mark(section.separator, is_inside=True)]
        self.named_ends = [
            Mark(f", {_NAME_KEY}", f'"{end}', is_inside=True, is_last=True) for end in style.ends if turned
        ]


def _exact_length(begin: str, trigger: str) -> int:
    """How many characters at the beginning of what a call begins with stand as they are.

    They are the trigger.  Where it stands further behind it is a part of the rest; where it is not there, they go up to
    the first part that may be different texts.
    """
    place = begin.find(trigger)
    if place < 0:
        return len(pieces(begin)[0][1])
    return place or len(trigger)


def _separators(style: ToolStyle, starts: tuple[str, ...]) -> Iterator[Mark]:
    """One of white space alone stands as it is: other white space between calls is text."""
    separator = style.separator
    for start in starts if separator else ():
        if separator.strip():
            yield Mark(f"{separator.strip()} {start}", is_inside=True, is_last=True)
        else:
            yield Mark(separator + start, exact=len(separator) + len(start), is_last=True)


def _turned_forms(style: ToolStyle) -> Iterator[str]:
    """What stands before the arguments where a call is an object in which they come first, and the name behind them."""
    for before, behind in style.forms if style.arguments == JSON else ():
        if before.endswith(_NAME_KEY) and behind.startswith('", "'):
            turned = before.removesuffix(_NAME_KEY) + behind.removeprefix('", ')
            if style.section is not None or turned.startswith(style.trigger):
                yield turned
