"""Marks of a turn that are special tokens: they stand for themselves, and the text around them holds none.

The rest of a turn is written as if all its marks were text.  Here those that are not are cut out of its strings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence as SequenceOf
from dataclasses import replace

from constrain.errors import ConstrainError
from constrain.grammar.structural_tags import formats as f
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

    def rewrite(self, format: f.Format) -> f.Format:
        """A format of a turn in which the marks are tokens.

        Raises ConstrainError where free text would end with text that has a token behind it.
        """
        if isinstance(format, f.ConstString):
            return f.Sequence(format.pointer, self._parts(format.value, format.pointer))
        if isinstance(format, f.JsonSchema):
            return self._arguments(format)
        if isinstance(format, f.AnyText):
            return replace(format, excludes=self._spelled(format.excludes))
        if isinstance(format, (f.Sequence, f.Or)):
            return replace(format, elements=tuple(map(self.rewrite, format.elements)))
        if isinstance(format, f.Repeated):
            return replace(format, content=self.rewrite(format.content))
        if isinstance(format, f.Tag):
            return self._tag(format)
        if isinstance(format, f.TagsWithSeparator):
            return self._tags_with_separator(format)
        return self._triggered_tags(format) if isinstance(format, f.TriggeredTags) else format

    def _arguments(self, format: f.JsonSchema) -> f.Format:
        style = ARGUMENT_STYLES.get(format.style)
        if style is None:
            return format
        marks = (style.before_key, style.after_key, *style.around_values())
        found = (place for mark in marks for place in self._pattern.findall(mark))
        return replace(format, tokens=tuple(dict.fromkeys(found)))

    def _holds(self, text: str) -> bool:
        return self._pattern.search(text) is not None

    def _begins(self, text: str) -> bool:
        return self._pattern.match(text) is not None

    def _spelled(self, excludes: tuple[str, ...]) -> tuple[str, ...]:
        """Text holds no token, and so no excluded string with one."""
        return tuple(each for each in excludes if not self._holds(each))

    def _parts(self, text: str, pointer: str) -> tuple[f.Format, ...]:
        found: list[f.Format] = []
        last = 0
        for place in self._pattern.finditer(text):
            if place.start() > last:
                found.append(f.ConstString(pointer, text[last : place.start()]))
            found.append(f.TokenOnce(pointer, place.group()))
            last = place.end()
        if last < len(text):
            found.append(f.ConstString(pointer, text[last:]))
        return tuple(found)

    def _tag(self, tag: f.Tag) -> f.Format:
        assert isinstance(tag.begin, str)
        return f.Sequence(tag.pointer, (*self._parts(tag.begin, tag.pointer), self._behind(tag)))

    def _behind(self, tag: f.Tag) -> f.Format:
        """A tag without its beginning."""
        assert isinstance(tag.ends, tuple)
        content = self.rewrite(tag.content)
        if not any(map(self._holds, tag.ends)):
            return f.Tag(tag.pointer, "", content, tag.ends)
        for end in tag.ends if isinstance(tag.content, f.AnyText) else ():
            if end and not self._begins(end):
                raise ConstrainError(f"the end {end!r} of free text is text beside ends that are tokens, or before one")
        ends = tuple(f.Sequence(tag.pointer, self._parts(end, tag.pointer)) for end in tag.ends)
        return f.Sequence(tag.pointer, (content, f.Or(tag.pointer, ends)))

    def _tags_with_separator(self, format: f.TagsWithSeparator) -> f.Format:
        at = format.pointer
        one: f.Format = f.Or(at, tuple(map(self.rewrite, format.tags)))
        if not format.stop_after_first:
            further = f.Sequence(at, (*self._parts(format.separator, at), one))
            one = f.Sequence(at, (one, f.Repeated(at, further, 0, None)))
        return one if format.at_least_one else f.Repeated(at, one, 0, 1)

    def _triggered_tags(self, format: f.TriggeredTags) -> f.Format:
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
        text: f.Format = replace(format, triggers=words, tags=tuple(in_text), excludes=excludes)
        if not marks:
            return text
        plain = f.AnyText(at, (*words, *excludes))
        text = text if in_text else plain
        if format.stop_after_first:
            return f.Or(at, (text, f.Sequence(at, (plain, f.Or(at, tuple(first))))))
        return f.Sequence(at, (f.Repeated(at, f.Sequence(at, (text, f.Or(at, tuple(first)))), 0, None), text))

    def _split(self, tag: f.Tag, triggers: tuple[str, ...]) -> f.Tag:
        """A tag that begins with text."""
        assert isinstance(tag.begin, str)
        parts = self._parts(tag.begin, tag.pointer)
        first = parts[0]
        if not isinstance(first, f.ConstString) or not first.value.startswith(triggers):
            listed = " or ".join(map(repr, triggers))
            raise ConstrainError(f"the call {tag.begin!r} does not begin with {listed} as text")
        return f.Tag(tag.pointer, first.value, f.Sequence(tag.pointer, (*parts[1:], self._behind(tag))), ("",))
