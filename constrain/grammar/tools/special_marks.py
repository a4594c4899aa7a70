"""Marks of a turn that are special tokens: they stand for themselves, and the text around them holds none.

The rest of a turn is written as if all its marks were text.  Here those that are not are cut out of its strings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence as SequenceOf
from dataclasses import replace

from constrain.errors import ConstrainError
from constrain.grammar.structural_tags.formats import (
    AnyText,
    ConstString,
    Format,
    JsonSchema,
    Or,
    Repeated,
    Sequence,
    Tag,
    TagsWithSeparator,
    TokenOnce,
    TriggeredTags,
)
from constrain.grammar.structural_tags.styles import STYLES as ARGUMENT_STYLES


class SpecialMarks:
    """Writes some marks as tokens.

    Parameters
    ----------
    names : sequence of str
        The tokens.
    """

    def __init__(self, names: SequenceOf[str]) -> None:
        self._pattern = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))))

    def rewrite(self, format: Format) -> Format:
        """A format of a turn in which the marks are tokens.

        Raises ConstrainError where free text would end with text that has a token behind it.
        """
        if isinstance(format, ConstString):
            return Sequence(format.pointer, self._parts(format.value, format.pointer))
        if isinstance(format, JsonSchema):
            return self._arguments(format)
        if isinstance(format, AnyText):
            return replace(format, excludes=self._spelled(format.excludes))
        if isinstance(format, (Sequence, Or)):
            return replace(format, elements=tuple(map(self.rewrite, format.elements)))
        if isinstance(format, Repeated):
            return replace(format, content=self.rewrite(format.content))
        if isinstance(format, Tag):
            return self._tag(format)
        if isinstance(format, TagsWithSeparator):
            return self._tags_with_separator(format)
        return self._triggered_tags(format) if isinstance(format, TriggeredTags) else format

    def _arguments(self, format: JsonSchema) -> Format:
        style = ARGUMENT_STYLES.get(format.style)
        if style is None:
            return format
        if self._holds(style.before_key + style.after_key) or self._holds(style.after_end):
            raise ConstrainError(f"special tokens around the names of arguments are not supported ({format.style})")
        found = (place for mark in style.around_values() for place in self._pattern.findall(mark))
        return replace(format, tokens=tuple(dict.fromkeys(found)))

    def _holds(self, text: str) -> bool:
        return self._pattern.search(text) is not None

    def _begins(self, text: str) -> bool:
        return self._pattern.match(text) is not None

    def _spelled(self, excludes: tuple[str, ...]) -> tuple[str, ...]:
        """Text holds no token, and so no excluded string with one."""
        return tuple(each for each in excludes if not self._holds(each))

    def _parts(self, text: str, pointer: str) -> tuple[Format, ...]:
        found: list[Format] = []
        last = 0
        for place in self._pattern.finditer(text):
            if place.start() > last:
                found.append(ConstString(pointer, text[last : place.start()]))
            found.append(TokenOnce(pointer, place.group()))
            last = place.end()
        if last < len(text):
            found.append(ConstString(pointer, text[last:]))
        return tuple(found)

    def _tag(self, tag: Tag) -> Format:
        assert isinstance(tag.begin, str)
        return Sequence(tag.pointer, (*self._parts(tag.begin, tag.pointer), self._behind(tag)))

    def _behind(self, tag: Tag) -> Format:
        """A tag without its beginning."""
        assert isinstance(tag.ends, tuple)
        content = self.rewrite(tag.content)
        if not any(map(self._holds, tag.ends)):
            return Tag(tag.pointer, "", content, tag.ends)
        for end in tag.ends if isinstance(tag.content, AnyText) else ():
            if end and not self._begins(end):
                raise ConstrainError(f"the end {end!r} of free text is text beside ends that are tokens, or before one")
        ends = tuple(Sequence(tag.pointer, self._parts(end, tag.pointer)) for end in tag.ends)
        return Sequence(tag.pointer, (content, Or(tag.pointer, ends)))

    def _tags_with_separator(self, format: TagsWithSeparator) -> Format:
        at = format.pointer
        one: Format = Or(at, tuple(map(self.rewrite, format.tags)))
        if not format.stop_after_first:
            further = Sequence(at, (*self._parts(format.separator, at), one))
            one = Sequence(at, (one, Repeated(at, further, 0, None)))
        return one if format.at_least_one else Repeated(at, one, 0, 1)

    def _triggered_tags(self, format: TriggeredTags) -> Format:
        """Text up to a trigger, behind which one of the tags goes on."""
        at = format.pointer
        assert not format.at_least_one
        words = tuple(trigger for trigger in format.triggers if not self._begins(trigger))
        marks = tuple(trigger for trigger in format.triggers if trigger not in words)
        excludes = self._spelled(format.excludes)
        first, in_text = [], []
        for tag in format.tags:
            assert isinstance(tag.begin, str)
            if marks and tag.begin.startswith(marks):
                first.append(self.rewrite(tag))
            elif words:
                in_text.append(self._split(tag, words))
            else:
                raise ConstrainError(f"the call {tag.begin!r} does not begin with {' or '.join(map(repr, marks))}")
        text: Format = replace(format, triggers=words, tags=tuple(in_text), excludes=excludes)
        if not marks:
            return text
        plain = AnyText(at, (*words, *excludes))
        text = text if in_text else plain
        if format.stop_after_first:
            return Or(at, (text, Sequence(at, (plain, Or(at, tuple(first))))))
        return Sequence(at, (Repeated(at, Sequence(at, (text, Or(at, tuple(first)))), 0, None), text))

    def _split(self, tag: Tag, triggers: tuple[str, ...]) -> Tag:
        """A tag that begins with text."""
        assert isinstance(tag.begin, str)
        parts = self._parts(tag.begin, tag.pointer)
        first = parts[0]
        if not isinstance(first, ConstString) or not first.value.startswith(triggers):
            listed = " or ".join(map(repr, triggers))
            raise ConstrainError(f"the call {tag.begin!r} does not begin with {listed} as text")
        return Tag(tag.pointer, first.value, Sequence(tag.pointer, (*parts[1:], self._behind(tag))), ("",))
