"""Deciding questions about a regular language while a grammar is made: is a string in it, is there any?

Brzozowski derivatives, as in the engine, but in Python and only as far as one question needs: the strings are
property names, and the searches are short.
"""

from __future__ import annotations

from constrain.grammar.regular import (
    EMPTY,
    EPSILON,
    ByteSet,
    Complement,
    Concat,
    Empty,
    Intersect,
    Literal,
    Regular,
    Repeat,
    Union,
    complement,
    concat,
    intersect,
    literal,
    repeat,
    union,
)


def has_empty_string(language: Regular) -> bool:
    """Whether the empty string is in a language."""
    if isinstance(language, Literal):
        return not language.data
    if isinstance(language, (Concat, Intersect)):
        return all(map(has_empty_string, language.parts))
    if isinstance(language, Union):
        return any(map(has_empty_string, language.parts))
    if isinstance(language, Repeat):
        return language.low == 0 or has_empty_string(language.item)
    return isinstance(language, Complement) and not has_empty_string(language.item)


class Automaton:
    """The derivatives of one language, made as they are asked for."""

    def __init__(self, language: Regular) -> None:
        self.language = language
        self._steps: dict[tuple[Regular, int], Regular] = {}
        self._bytes: list[int] | None = None

    def step(self, language: Regular, byte: int) -> Regular:
        """What may follow ``byte`` in ``language``."""
        key = (language, byte)
        known = self._steps.get(key)
        if known is None:
            known = self._steps[key] = self._derive(language, byte)
        return known

    def _derive(self, language: Regular, byte: int) -> Regular:
        if isinstance(language, Literal):
            return literal(language.data[1:]) if language.data[:1] == bytes((byte,)) else EMPTY
        if isinstance(language, ByteSet):
            return EPSILON if language.bits >> byte & 1 else EMPTY
        if isinstance(language, Concat):
            found: list[Regular] = []
            for index, part in enumerate(language.parts):
                found.append(concat(self.step(part, byte), *language.parts[index + 1 :]))
                if not has_empty_string(part):
                    break
            return union(*found)
        if isinstance(language, Union):
            return union(*[self.step(part, byte) for part in language.parts])
        if isinstance(language, Intersect):
            return intersect(*[self.step(part, byte) for part in language.parts])
        if isinstance(language, Repeat):
            low = max(language.low - 1, 0)
            high = None if language.high is None else language.high - 1
            return concat(self.step(language.item, byte), repeat(language.item, low, high))
        if isinstance(language, Complement):
            return complement(self.step(language.item, byte))
        return EMPTY

    def matches(self, data: bytes) -> bool:
        """Whether ``data`` is in the language."""
        language = self.language
        for byte in data:
            language = self.step(language, byte)
            if isinstance(language, Empty):
                return False
        return has_empty_string(language)

    def is_empty(self, limit: int) -> bool | None:
        """Whether nothing is in the language; None if that is not clear after ``limit`` steps."""
        if self._bytes is None:
            self._bytes = _representatives(self.language)
        seen = {self.language}
        todo = [self.language]
        for language in todo:
            if has_empty_string(language):
                return False
            for byte in self._bytes:
                then = self.step(language, byte)
                if then not in seen and not isinstance(then, Empty):
                    seen.add(then)
                    todo.append(then)
            limit -= len(self._bytes)
            if limit <= 0:
                return None
        return True


def _representatives(language: Regular) -> list[int]:
    """One byte for each class of bytes that no part of the language tells apart."""
    masks: set[int] = set()
    known: set[Regular] = set()
    todo = [language]
    for part in todo:
        if part in known:
            continue
        known.add(part)
        if isinstance(part, Literal):
            masks.update(1 << byte for byte in part.data)
        elif isinstance(part, ByteSet):
            masks.add(part.bits)
        elif isinstance(part, (Concat, Union, Intersect)):
            todo += part.parts
        elif isinstance(part, (Repeat, Complement)):
            todo.append(part.item)
    classes: dict[int, int] = {}
    columns = list(masks)
    for byte in range(256):
        signature = 0
        for index, mask in enumerate(columns):
            signature |= (mask >> byte & 1) << index
        classes.setdefault(signature, byte)
    return list(classes.values())
