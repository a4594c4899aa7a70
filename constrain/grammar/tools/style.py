"""What tells the syntax of one model's turns from that of another: data, which a grammar and a parser are made from."""

from __future__ import annotations

import re
from dataclasses import dataclass

from constrain.errors import ConstrainError
from constrain.grammar.structural_tags.styles import CALLS, JSON
from constrain.grammar.structural_tags.styles import STYLES as ARGUMENT_STYLES

NUMBER, ID, WORD = "{number}", "{id}", "{word}"
"""In the strings of a style: any digits, nine letters and digits, and any number of those, ``-`` and ``_``."""
NAME = "{name}"
"""In what stands behind a name: the name once more."""

_PATTERNS = {NUMBER: "[0-9]+", ID: "[a-zA-Z0-9]{9}", WORD: "[a-zA-Z0-9_-]+"}
_PLACES = re.compile("|".join(map(re.escape, _PATTERNS)))


@dataclass(frozen=True)
class Reasoning:
    """What stands around the thoughts of a model, at the beginning of its turn.

    Attributes
    ----------
    begin, end : str
    after : str
        What stands between thoughts and the rest, if anything does.
    is_open : bool
        Whether the prompt holds ``begin`` already, so that each turn begins with thoughts.
    before : str
        What a turn may begin with before ``begin``.
    end_alone : bool
        Whether a turn without thoughts may begin with their end.
    """

    begin: str
    end: str
    after: str = ""
    is_open: bool = False
    before: str = ""
    end_alone: bool = False

    def openings(self) -> list[str]:
        """The ways in which thoughts begin."""
        return list(dict.fromkeys((self.begin, self.before + self.begin)))


@dataclass(frozen=True)
class Section:
    """What stands around all calls of a turn, and between two of them.

    Attributes
    ----------
    begin, separator, end : str
    is_last : bool
        Whether the turn ends with it; otherwise text may follow, and further sections.
    also_read : tuple of (str, str)
        What stands around the calls now and then: a parser reads it, a grammar does not allow it.
    is_left_out : bool
        Whether models leave out what stands around the calls: a parser reads them then, a grammar does not allow it.
    """

    begin: str
    separator: str
    end: str
    is_last: bool = True
    also_read: tuple[tuple[str, str], ...] = ()
    is_left_out: bool = False


@dataclass(frozen=True)
class ToolStyle:
    """The syntax of a turn.

    A call is what stands before its name, the name, what stands between, the arguments, and an end.  ``{number}``,
    ``{id}`` and ``{word}`` stand for what the model chooses, and ``{name}`` behind the name for that name.

    Attributes
    ----------
    name : str
    forms : tuple of (str, str)
        What stands before the name of a tool, and between it and the arguments; in one or several ways, of which the
        first is the usual one.  With a preamble a message may begin with the name.
    ends : tuple of str
        What stands behind the arguments.
    also_read : tuple of (str, str)
        Further forms that models write now and then: a parser reads them, a grammar does not allow them.
    call_id : str
        The identifier of a call that is read back: of its ``{name}``, and of ``{id}``, which is what stands for
        ``{number}``, ``{id}`` or ``{word}`` there.
    ends_turn : bool
        Whether a turn that is read back may lack the end of its last call, or of its section: that is the token that
        ends the turn, or models write that token in its place.
    arguments : str
        ``"json"``, or a style of structural_tags/styles.py: ``"python"`` and ``"python_line"`` for calls in Python.
    trigger : str
        What never stands in free text, but begins the calls (or their section).
    also_triggers : tuple of str
        Further strings that never stand in free text, but begin calls: those of other forms.
    is_whole : bool
        Whether a turn is either text or calls, as its beginning says: text only does not begin with the trigger then.
    section : Section, optional
        Without it each call stands alone in the text.
    separator : str
        Without a section: what stands between calls where there is no text.  With a preamble: between two messages.
    before_calls : str
        What a turn without text may begin with before its calls, behind thoughts if there are any: white space.
    reasoning : Reasoning, optional
    text : (str, str)
        What stands around free text that is not alone in the turn.  With it a turn is a text or a call (or a section).
    also_text : tuple of str
        What stands before such a text now and then: a parser reads it, a grammar does not allow it.
    preamble : (str, str), optional
        What stands around a text before the text or call of such a turn.  A turn is several messages then: any number
        of thoughts and preambles, and that text or call, or a section of calls.
    further : str, optional
        With a preamble and without a section: what stands behind a call, before the separator, where another call
        follows.  Without it a turn has one call.
    text_first : bool
        Whether such a text comes first in each turn, and a section of calls, if there is one, behind it.
    end : str
        What a turn may end with, behind all else, if a text comes first, or there is a preamble.
    excludes : tuple of str
        What stands neither in free text nor in thoughts, beside the trigger and the marks of thoughts.
    string_excludes : tuple of str
        What stands in no string of the arguments that no pattern describes, beside the end of a value.
    notes : str
        Which models it is the syntax of.

    Raises
    ------
    ConstrainError
        If a part is missing without which no turn can be told from another: what a call begins with, a trigger, an end
        of thoughts; or there is no such way to write arguments.
    """

    name: str
    forms: tuple[tuple[str, str], ...]
    ends: tuple[str, ...]
    trigger: str
    also_triggers: tuple[str, ...] = ()
    is_whole: bool = False
    arguments: str = JSON
    section: Section | None = None
    separator: str = "\n"
    before_calls: str = ""
    reasoning: Reasoning | None = None
    text: tuple[str, str] | None = None
    also_text: tuple[str, ...] = ()
    preamble: tuple[str, str] | None = None
    further: str | None = None
    text_first: bool = False
    end: str = ""
    also_read: tuple[tuple[str, str], ...] = ()
    call_id: str = "{id}"
    ends_turn: bool = False
    excludes: tuple[str, ...] = ()
    string_excludes: tuple[str, ...] = ()
    notes: str = ""

    def __post_init__(self) -> None:
        if not self.forms or not self.ends:
            raise ConstrainError(f"the style {self.name!r} has no {'ends' if self.forms else 'forms'} of calls")
        needed = {"trigger": [self.trigger]}
        if self.section is None and self.preamble is None:
            needed["what stands before a name"] = [before for before, _ in self.read_forms]
        if self.reasoning is not None:
            needed["the end of thoughts"] = [self.reasoning.end]
            needed["the beginning of thoughts"] = [self.reasoning.begin]
        if self.section is not None:
            around = ((self.section.begin, self.section.end), *self.section.also_read)
            needed["the beginning of a section"] = [begin for begin, _ in around]
            needed["the end of a section"] = [end for _, end in around]
        if self.arguments in ARGUMENT_STYLES:
            # Most styles are a list of arguments that goes on until its end.
            needed["the end of a call"] = [end.strip() for end in self.ends]
        for before, _ in self.read_forms:
            if before.startswith(tuple(_PATTERNS)):
                raise ConstrainError(f"the style {self.name!r}: what stands before a name must begin with text")
        for what, texts in needed.items():
            if not all(texts):
                raise ConstrainError(f"the style {self.name!r}: {what} is empty")
        if self.also_triggers and (self.section is not None or not all(self.also_triggers)):
            raise ConstrainError(f"the style {self.name!r}: further triggers are not empty, and go without a section")
        if self.is_whole and (self.section is None or not self.section.begin.startswith(self.trigger)):
            reason = "calls that are the whole turn stand in a section that begins with the trigger"
            raise ConstrainError(f"the style {self.name!r}: {reason}")
        if self.is_whole and self.text is not None:
            raise ConstrainError(f"the style {self.name!r}: nothing stands around text where calls are the whole turn")
        if self.text_first and not (self.text is not None and all(self.text) and self.section is not None):
            reason = "what stands around a text that comes first, and around the calls behind it, must be said"
            raise ConstrainError(f"the style {self.name!r}: {reason}")
        if self.preamble is not None:
            if self.text is None or self.text_first:
                reason = "a preamble stands before a text or call, in a turn of several messages"
                raise ConstrainError(f"the style {self.name!r}: {reason}")
            if not all(self.preamble):
                raise ConstrainError(f"the style {self.name!r}: what stands around a preamble is empty")
        if self.further is not None and (self.preamble is None or not self.further + self.separator):
            reason = "calls that follow another need a separator, in a turn of several messages"
            raise ConstrainError(f"the style {self.name!r}: {reason}")
        if self.end and not self.text_first and self.preamble is None:
            raise ConstrainError(
                f"the style {self.name!r}: only a turn of several messages, or with a text first, ends"
            )
        if self.arguments not in (JSON, *CALLS, *ARGUMENT_STYLES):
            known = ", ".join((JSON, *CALLS, *ARGUMENT_STYLES))
            raise ConstrainError(f"the style {self.name!r}: arguments must be one of {known}, not {self.arguments!r}")

    @property
    def read_forms(self) -> tuple[tuple[str, str], ...]:
        """The forms of a call that a parser reads."""
        return (*self.forms, *self.also_read)

    @property
    def triggers(self) -> tuple[str, ...]:
        """All strings that begin calls in text."""
        return (self.trigger, *self.also_triggers)

    def marks(self) -> list[str]:
        """Every string that a turn may hold as it is, but names, arguments and text."""
        found = [*(text for form in self.forms for text in form), *self.ends, *self.triggers, self.separator, self.end]
        if self.section is not None:
            found += [self.section.begin, self.section.separator, self.section.end]
        if self.reasoning is not None:
            found += [*self.reasoning.openings(), self.reasoning.end, self.reasoning.after]
        arguments = ARGUMENT_STYLES.get(self.arguments)
        if arguments is not None:
            found += [arguments.before_key, arguments.after_key, *arguments.around_values()]
        return [*found, *(self.text or ()), *(self.preamble or ()), self.further or ""]

    @property
    def between_calls(self) -> str:
        """What stands between two calls that are no section."""
        return self.separator if self.preamble is None else (self.further or "") + self.separator


def pieces(text: str) -> list[tuple[bool, str]]:
    """The parts of a string of a style: (False, text as it is), or (True, a pattern)."""
    found: list[tuple[bool, str]] = []
    last = 0
    for place in _PLACES.finditer(text):
        if place.start() > last:
            found.append((False, text[last : place.start()]))
        found.append((True, _PATTERNS[place.group()]))
        last = place.end()
    if last < len(text):
        found.append((False, text[last:]))
    return found
