"""Turns read back, whole or while they stream."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from constrain.errors import ConstrainError
from constrain.grammar.events import Event as PartEvent
from constrain.grammar.json_events import JsonReader
from constrain.grammar.structural_tags.styles import CALLS
from constrain.grammar.structural_tags.styles import STYLES as ARGUMENT_STYLES
from constrain.grammar.tools.definitions import read_tools
from constrain.grammar.tools.front_end import style_named
from constrain.grammar.tools.style import ToolStyle
from constrain.tools.argument_schema import ANY_ARGUMENTS, ArgumentSchema
from constrain.tools.bare_objects import read_bare_object
from constrain.tools.bracket_scanner import JSON, PYTHON, Brackets, BracketScanner
from constrain.tools.json_values import read_json_arguments
from constrain.tools.marks import SPACE_SIGNS, Mark, MarkSearch
from constrain.tools.python_calls import read_call
from constrain.tools.style_marks import StyleMarks
from constrain.tools.xml_arguments import ArgumentReader, NotYet


@dataclass(frozen=True)
class Call:
    """A call of a tool.

    Attributes
    ----------
    name : str
    arguments : JSON value
    id : str, optional
        What the model calls it, if it does: Kimi K2's templates want it again in past calls.  It does not count where
        calls are compared.
    """

    name: str
    arguments: Any
    id: str | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Event:
    """What a piece of a turn brought.

    Attributes
    ----------
    kind : str
        ``"reasoning"`` or ``"text"``, of which ``text`` is more; ``"begin"``, a call of the tool ``text`` has begun;
        ``"argument"``, more of its arguments has come; ``"call"``, it is complete.
    text : str
    call : Call, optional
    argument : constrain.grammar.events.Event, optional
        Which part of the arguments, as a JSON pointer into them, its value so far, and whether it is complete.
    """

    kind: str
    text: str = ""
    call: Call | None = None
    argument: PartEvent | None = None


@dataclass
class Turn:
    """What was said in a turn.

    Attributes
    ----------
    text, reasoning : str
    calls : list of Call
        Those that are complete.
    is_complete : bool
        Whether neither a call nor thoughts were cut off.
    """

    text: str = ""
    reasoning: str = ""
    calls: list[Call] = field(default_factory=list)
    is_complete: bool = True


def parse(
    text: str,
    style: str | ToolStyle,
    tools: Iterable[Any] | None = None,
    *,
    reasoning: bool = True,
    reasoning_begun: bool | None = None,
) -> Turn:
    """The parts of a turn.

    Parameters
    ----------
    text : str
        What the model wrote, without the token that ended it.
    style : str or ToolStyle
        As for :meth:`constrain.Grammar.from_tools`.
    tools : iterable, optional
        Likewise.  In XML that does not say what kind a value is, their schemas do; without them ``3`` is a number.
    reasoning : bool
        Whether a turn begins with thoughts in a style whose prompts have begun them.
    reasoning_begun : bool, optional
        Whether the prompt has, as for :meth:`constrain.Grammar.from_tools`.

    Returns
    -------
    Turn
        What is no call as the style writes it is text.

    Raises
    ------
    ConstrainError
        If there is no such style, or a tool is not valid.
    """
    parser = TurnParser(style, tools, reasoning=reasoning, reasoning_begun=reasoning_begun)
    parser.feed(text)
    parser.finish()
    return parser.turn


class TurnParser:
    """Reads a turn piece by piece.

    Text comes as soon as it cannot be the beginning of a mark any more; a call when it is complete.

    Parameters
    ----------
    style, tools, reasoning, reasoning_begun
        As for :func:`parse`.
    arguments : bool
        Whether arguments are told of as they come, with events of the kind ``"argument"``: in styles that write them as
        JSON.  Those of the others come when the call is complete.

    Attributes
    ----------
    turn : Turn
        All that was read.
    """

    def __init__(
        self,
        style: str | ToolStyle,
        tools: Iterable[Any] | None = None,
        *,
        reasoning: bool = True,
        reasoning_begun: bool | None = None,
        arguments: bool = False,
    ) -> None:
        self._reasoning = reasoning
        self._reader = JsonReader()
        # Where the reader is; None where there is nothing more to tell.
        self._place: Any = None
        self._told = 0
        self._style = style_named(style, reasoning_begun)
        self._brackets = JSON
        self._read_value: Callable[[str], Any] = read_json_arguments
        self._xml = ARGUMENT_STYLES.get(self._style.arguments)
        if self._style.arguments in CALLS:
            self._brackets, self._read_value = PYTHON, read_call
        elif self._xml is not None and self._xml.separator:
            self._brackets = Brackets("{[", (self._xml.end,), has_escapes=False)
            self._read_value, self._xml = partial(read_bare_object, style=self._xml), None
        self._tells_arguments = arguments and self._brackets is JSON
        known = read_tools(tools) if tools is not None else []
        self._schemas = {tool.name: ArgumentSchema(tool.parameters) for tool in known}
        self.turn = Turn(is_complete=True)
        self._buffer = ""
        self._events: list[Event] = []
        self._is_last = False
        self._step = self._begin
        # What comes when a section of calls has ended.
        behind = self._behind_text if self._style.text_first else self._read_text
        behind = behind if self._style.preamble is None else self._behind_calls_of_message
        self._behind_calls = self._rest if self._style.is_whole else behind
        self._in_section = False
        # Whether a call has ended the thoughts, whose mark may come yet; and what comes behind that.
        self._in_thoughts = False
        self._behind_thoughts = self._behind_calls
        # The mark that calls begin with.
        self._opening: re.Match[str] | None = None
        # What was read of a call that is not complete, or of the section before its first call.
        self._unfinished = ""
        self._scanner: BracketScanner | None = None
        self._reading: ArgumentReader | None = None
        self._name = ""
        self._id: str | None = None
        # While a mark may stand where the step under way looks for it.
        self._search: MarkSearch | None = None
        self._marks = StyleMarks(self._style)

    def feed(self, piece: str) -> list[Event]:
        """Read on; what the piece brought.

        Raises
        ------
        ConstrainError
            If :meth:`finish` has said that there is no more.
        """
        if not isinstance(piece, str):
            raise ConstrainError(f"the text of a turn must be a str, not {type(piece).__name__}")
        if self._is_last:
            raise ConstrainError("finish() has ended the turn; another one takes another TurnParser")
        self._buffer += piece
        self._run()
        events, self._events = self._events, []
        return events

    def finish(self) -> list[Event]:
        """There is no more; what was held back."""
        self._is_last = True
        self._run()
        events, self._events = self._events, []
        return events

    def _run(self) -> None:
        while self._step():
            pass

    # -- parts of a turn; each says whether to go on ---------------------------------------------

    def _may_begin(self, mark: str) -> bool:
        """Whether what is there may be the beginning of a mark that is not all there."""
        return not self._is_last and len(self._buffer) < len(mark) and mark.startswith(self._buffer)

    def _go_on(self, length: int) -> None:
        """Read a part of what may become a call."""
        self._unfinished, self._buffer = self._unfinished + self._buffer[:length], self._buffer[length:]

    def _first(self, marks: Sequence[Mark], at: int = 0) -> tuple[re.Match[str] | None, bool]:
        """Of some marks the first that stands at a place in the buffer; or whether one may, when there is more."""
        if self._search is None or self._search.marks is not marks:
            self._search = MarkSearch(marks)
        found, must_wait = self._search.look(self._buffer, at, is_whole=self._is_last)
        if not must_wait:
            self._search = None
        return found, must_wait

    def _take(self, mark: str) -> bool:
        if self._buffer.startswith(mark):
            self._buffer = self._buffer[len(mark) :]
            return True
        return False

    def _begin(self) -> bool:
        thoughts = self._style.reasoning
        if thoughts is None:
            self._step = self._begin_text
            return True
        opening, must_wait = self._first(self._marks.thoughts)
        if must_wait:
            return False
        if opening is not None:
            self._buffer = self._buffer[opening.end() :]
        self._step = self._begin_text
        if opening is not None and opening.re in [mark.pattern for mark in self._marks.thoughts_end]:
            self._step = self._after_thoughts
        elif opening is not None or (thoughts.is_open and self._reasoning):
            self.turn.is_complete = self._reasoning = False
            self._step = self._think if opening is None else self._begin_thoughts
        return True

    def _begin_thoughts(self) -> bool:
        """The white space that the beginning of thoughts ends with is none of them."""
        assert self._style.reasoning is not None
        begin = self._style.reasoning.begin
        space = begin[len(begin.rstrip()) :]
        if self._may_begin(space):
            return False
        self._take(space)
        self._step = self._think
        return True

    def _think(self) -> bool:
        thoughts = self._style.reasoning
        assert thoughts is not None
        if self._search is not None and self._first(self._marks.openings)[1]:
            # A mark that calls begin with is still under way.
            return False
        end = self._buffer.find(thoughts.end)
        # A grammar has no call in thoughts, so one that begins there ends them.
        calls, is_whole = self._find_opening(len(self._buffer) if end < 0 else end)
        if calls is not None:
            self._say("reasoning", calls)
            if is_whole:
                self.turn.is_complete = self._in_thoughts = True
                self._step = self._read_text if self._style.text_first else self._begin_text
            return is_whole
        if end >= 0:
            self._say("reasoning", end)
            self._take(thoughts.end)
            self.turn.is_complete = True
            self._step = self._after_thoughts
            return True
        self._say("reasoning", len(self._buffer) - self._held((thoughts.end, *self._marks.starts)))
        return False

    def _end_thoughts(self) -> bool:
        """Behind a call that ended thoughts: their mark, if it comes then, is no text."""
        end, must_wait = self._first(self._marks.thoughts_end)
        if must_wait:
            return False
        self._step = self._behind_thoughts
        if end is not None:
            self._buffer = self._buffer[end.end() :]
            self._in_thoughts, self._step = False, self._after_thoughts
        return True

    def _after_thoughts(self) -> bool:
        thoughts = self._style.reasoning
        assert thoughts is not None
        if self._may_begin(thoughts.after):
            return False
        self._take(thoughts.after)
        self._step = self._begin_text if self._style.preamble is None else self._begin
        return True

    def _begin_text(self) -> bool:
        self._step = self._read_text
        if self._style.is_whole:
            if not self._buffer:
                self._step = self._begin_text
                return False
            if not self._buffer.startswith(self._style.trigger):
                self._step = self._rest
            return True
        if self._style.text is not None:
            found, must_wait = self._first(self._marks.messages)
            if must_wait:
                self._step = self._begin_text
                return False
            if found is not None:
                self._buffer = self._buffer.lstrip(SPACE_SIGNS)
            # Either a text or a call (or a section); or a text that the prompt may have begun.
            calls = self._begin_call if self._style.section is None else self._read_text
            self._step = self._begun_text() or (self._read_framed if self._style.text_first else calls)
        return True

    def _begun_text(self) -> Callable[[], bool] | None:
        """How to read the text between marks that begins here, if one does; what it begins with is taken."""
        begin, preamble = self._style.text or ("", ""), self._style.preamble
        for opening in (*(preamble or ())[:1], begin[0], *self._style.also_text):
            if self._take(opening.lstrip(SPACE_SIGNS)):
                is_preamble = preamble is not None and opening == preamble[0]
                return self._read_preamble if is_preamble else self._read_framed
        return None

    def _begin_call(self) -> bool:
        if not self._buffer:
            return False
        self._step = self._read_head
        return True

    def _read_framed(self) -> bool:
        """Text to its own end."""
        assert self._style.text is not None
        behind = self._rest if self._style.preamble is None else self._behind_last_text
        return self._read_to({self._style.text[1]: self._behind_text if self._style.text_first else behind})

    def _read_preamble(self) -> bool:
        """A preamble; or the last text, where that begins in the same way."""
        text, preamble = self._style.text, self._style.preamble
        assert text is not None
        assert preamble is not None
        ends = {preamble[1]: self._next_message}
        if text[0] == preamble[0]:
            ends.update({end: self._behind_last_text for end in (text[1], self._style.end) if end not in ("", *ends)})
        return self._read_to(ends)

    def _read_to(self, steps: dict[str, Callable[[], bool]]) -> bool:
        """Text to the first of some ends, which is taken, and what comes then."""
        places = {end: self._buffer.find(end) for end in steps}
        found = min((end for end in places if places[end] >= 0), key=lambda end: places[end], default=None)
        if found is not None:
            self._say("text", places[found])
            self._take(found)
            self._step = steps[found]
            return True
        self._say("text", len(self._buffer) - self._held(steps))
        return False

    def _behind_last_text(self) -> bool:
        """The end of the turn."""
        if self._may_begin(self._style.end):
            return False
        self._take(self._style.end)
        self._step = self._rest
        return True

    def _next_message(self) -> bool:
        """Behind a preamble."""
        if self._may_begin(self._style.separator) or self._may_begin(self._style.end):
            return False
        self._step = self._begin
        if not self._take(self._style.separator) and self._style.end and self._take(self._style.end):
            self._step = self._rest
        return True

    def _behind_calls_of_message(self) -> bool:
        """Behind a call, or a section of them, in a turn of several messages."""
        separators = (self._style.between_calls, self._style.separator)
        if any(map(self._may_begin, (*separators, self._style.end))):
            return False
        if any(map(self._take, filter(None, separators))):
            self._step = self._begin
        elif self._style.end and self._take(self._style.end):
            self._step = self._rest
        else:
            found, must_wait = self._first(self._marks.messages)
            if must_wait:
                return False
            self._step = self._read_text if found is None else self._begin
        return True

    def _behind_text(self) -> bool:
        """Calls, or the end of a turn in which a text comes first."""
        end, section = self._style.end, self._style.section
        assert section is not None
        if self._may_begin(section.begin) or self._may_begin(end):
            return False
        self._step = self._rest if end and self._take(end) else self._read_text
        return True

    def _find_opening(self, end: int) -> tuple[int | None, bool]:
        """Where calls begin before a place in the buffer, if they do; and whether that is certain."""
        at = 0
        while (start := self._marks.start.search(self._buffer, at, end)) is not None:
            opening, must_wait = self._first(self._marks.openings, start.start())
            if opening is not None or must_wait:
                self._opening = opening
                return start.start(), not must_wait
            # If this is no call as the style writes it, one may begin behind it.
            at = start.start() + 1
        return None, True

    def _read_text(self) -> bool:
        before = self._style.before_calls
        place, is_whole = self._find_opening(len(self._buffer))
        if place is None:
            # What a turn without text has before its calls is no text.
            if self._has_said() or not any(self._may_begin(before + start) for start in self._marks.starts):
                self._say("text", len(self._buffer) - self._held(self._marks.starts))
            return False
        if self._has_said() or self._buffer[:place] != before:
            self._say("text", place)
            place = 0
        if not is_whole:
            return False
        self._go_on(place)
        assert self._opening is not None
        if self._opening.re in [mark.pattern for mark in self._marks.section_begins]:
            self._go_on(self._opening.end() - self._opening.start())
            self._in_section, self.turn.is_complete = True, False
        self._step = self._read_head
        return True

    def _has_said(self) -> bool:
        """Whether there was a text or a call before what is there."""
        return bool(self.turn.text or self.turn.calls)

    def _read_head(self) -> bool:
        head, must_wait = self._first(self._marks.heads)
        if head is None:
            return False if must_wait else self._give_up()
        found = head.groupdict()
        self._name, self._id = found.get("name", ""), found.get("id")
        self._go_on(head.end())
        if self._name:
            self._events.append(Event("begin", self._name))
        self.turn.is_complete = False
        self._scanner = self._reading = None
        self._step = self._read_arguments
        return True

    def _give_up(self) -> bool:
        """What stands here is no call: it is text, with what was read of it."""
        self._buffer, self._unfinished = self._unfinished + self._buffer, ""
        self._in_section = False
        self.turn.is_complete = False
        self._step = self._rest
        return True

    def _rest(self) -> bool:
        self._say("text", len(self._buffer))
        return False

    def _read_arguments(self) -> bool:
        if self._xml is not None:
            self._reading = self._reading or ArgumentReader(self._xml, self._style.ends[0].split()[0])
            try:
                written, at = self._reading.read(self._buffer, is_whole=self._is_last)
                arguments = self._schemas.get(self._name, ANY_ARGUMENTS).values(written)
            except NotYet:
                return False
            except (ValueError, RecursionError):
                return self._give_up()
            return self._end_call(arguments, at)
        if self._scanner is None:
            start = re.match(r"[ \t\r\n]*", self._buffer)
            assert start is not None
            self._go_on(start.end())
            if not self._buffer:
                return False
            if self._buffer[0] not in self._brackets.opening:
                return self._give_up()
            self._scanner = BracketScanner(0, self._brackets)
            is_told = self._tells_arguments and self._name and self._buffer[0] != '"'
            self._place, self._told = (self._reader.start if is_told else None), 0
        stop = self._scanner.end(self._buffer)
        if self._place is not None:
            self._tell_arguments(len(self._buffer) if stop < 0 else stop)
        if stop < 0:
            return False
        try:
            arguments = self._read_value(self._buffer[:stop])
        except ValueError:
            return self._give_up()
        return self._end_call(arguments, stop)

    def _tell_arguments(self, end: int) -> None:
        """Tell of the arguments up to a place in the buffer."""
        parts: list[PartEvent] = []
        try:
            data = self._buffer[self._told : end].encode()
            self._place = self._reader.read(self._place, data, None, parts)
        except ValueError:
            # They are no JSON, which is said at their end.
            self._place = None
        self._told = end
        self._events += [Event("argument", self._name, argument=part) for part in parts]

    def _end_call(self, arguments: Any, at: int) -> bool:
        self._arguments = arguments
        self._go_on(at)
        self._step = self._read_end
        return True

    def _read_end(self) -> bool:
        end, must_wait = self._first(self._marks.ends if self._name else self._marks.named_ends)
        if end is None:
            if self._is_last and not self._buffer and self._style.ends_turn:
                return self._add_call(0)
            return False if must_wait or not self._buffer else self._give_up()
        found = end.groupdict()
        self._id = found.get("id") or self._id
        if not self._name:
            self._name = found["name"]
            self._events.append(Event("begin", self._name))
        return self._add_call(end.end())

    def _add_call(self, at: int) -> bool:
        """A call has come to its end at a place in the buffer."""
        self._buffer, self._unfinished = self._buffer[at:], ""
        written = self._id and self._style.call_id.replace("{name}", self._name).replace("{id}", self._id)
        call = Call(self._name, self._arguments, written)
        self.turn.calls.append(call)
        self._events.append(Event("call", self._name, call))
        self.turn.is_complete = not self._in_section
        if self._in_section:
            self._step = self._after_call
        else:
            self._go_behind(self._between_calls if self._style.preamble is None else self._behind_calls)
        return True

    def _go_behind(self, step: Callable[[], bool]) -> None:
        """Go on behind a call, or a section."""
        self._step = self._end_thoughts if self._in_thoughts else step
        self._behind_thoughts = step

    def _after_call(self) -> bool:
        if not self._buffer:
            # The token that ends the section may be the one that ends the turn.
            self.turn.is_complete = self._is_last and self._style.ends_turn
            return False
        found, must_wait = self._first(self._marks.behind_call)
        if found is None:
            return False if must_wait else self._give_up()
        if found.re in [mark.pattern for mark in self._marks.section_ends]:
            self._buffer = self._buffer[found.end() :]
            self._in_section, self.turn.is_complete = False, True
            self._go_behind(self._behind_calls)
            return True
        self._go_on(found.end())
        self._step = self._read_head
        return True

    def _between_calls(self) -> bool:
        """What only separates two calls is no text."""
        if self._marks.separators:
            found, must_wait = self._first(self._marks.separators)
            if must_wait:
                return False
            start = next(
                (start for start in self._marks.starts if found is not None and found.group().endswith(start)), ""
            )
            if found is not None and start:
                self._buffer = self._buffer[found.end() - len(start) :]
        self._step = self._read_text
        return True

    # -- text --------------------------------------------------------------------------------------

    def _held(self, marks: Iterable[str]) -> int:
        """How many characters at the end may be the beginning of a mark."""
        if self._is_last:
            return 0
        longest = 0
        for mark in marks:
            for length in range(min(len(mark) - 1, len(self._buffer)), longest, -1):
                if mark.startswith(self._buffer[-length:]):
                    longest = length
                    break
        return longest

    def _say(self, kind: str, length: int) -> None:
        if length <= 0:
            return
        text, self._buffer = self._buffer[:length], self._buffer[length:]
        if kind == "text":
            self.turn.text += text
        else:
            self.turn.reasoning += text
        self._events.append(Event(kind, text))
