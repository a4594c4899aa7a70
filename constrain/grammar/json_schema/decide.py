"""Deciding questions about a regular language while a grammar is made: is a string in it, is there any?

Brzozowski derivatives, as in the engine, but in Python and only as far as one question needs: the strings are
property names, and the searches are short.
"""

from __future__ import annotations

from itertools import islice

from constrain.grammar.regular import (
    EMPTY,
    EPSILON,
    ByteSet,
    Complement,
    Concat,
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
        self._derivatives: dict[tuple[Regular, int], Regular] = {}
        # States are derivatives of the whole language; state 0 is the language itself.
        self._numbers: dict[Regular, int] = {language: 0}
        self._states: list[Regular] = [language]
        self._rows: list[dict[int, int]] = [{}]
        self._ends: list[bool] = [has_empty_string(language)]

    def _step(self, state: int, byte: int) -> int:
        """The state after ``byte``."""
        then = self._rows[state].get(byte)
        if then is None:
            language = self._derivative(self._states[state], byte)
            then = self._numbers.get(language)
            if then is None:
                then = self._numbers[language] = len(self._states)
                self._states.append(language)
                self._rows.append({})
                self._ends.append(has_empty_string(language))
            self._rows[state][byte] = then
        return then

    def _derivative(self, language: Regular, byte: int) -> Regular:
        """What may follow ``byte`` in ``language``."""
        key = (language, byte)
        known = self._derivatives.get(key)
        if known is None:
            known = self._derivatives[key] = self._derive(language, byte)
        return known

    def _derive(self, language: Regular, byte: int) -> Regular:
        if isinstance(language, Literal):
            return literal(language.data[1:]) if language.data[:1] == bytes((byte,)) else EMPTY
        if isinstance(language, ByteSet):
            return EPSILON if language.bits >> byte & 1 else EMPTY
        if isinstance(language, Concat):
            found: list[Regular] = []
            for index, part in enumerate(language.parts):
                found.append(concat(self._derivative(part, byte), *language.parts[index + 1 :]))
                if not has_empty_string(part):
                    break
            return union(*found)
        if isinstance(language, Union):
            return union(*[self._derivative(part, byte) for part in language.parts])
        if isinstance(language, Intersect):
            return intersect(*[self._derivative(part, byte) for part in language.parts])
        if isinstance(language, Repeat):
            low = max(language.low - 1, 0)
            high = None if language.high is None else language.high - 1
            return concat(self._derivative(language.item, byte), repeat(language.item, low, high))
        if isinstance(language, Complement):
            return complement(self._derivative(language.item, byte))
        return EMPTY

    def matches(self, data: bytes) -> bool:
        """Whether ``data`` is in the language."""
        state, rows = 0, self._rows
        for byte in data:
            then = rows[state].get(byte)
            state = self._step(state, byte) if then is None else then
            if self._states[state] is EMPTY:
                return False
        return self._ends[state]

    def is_empty(self, limit: int) -> bool | None:
        """Whether nothing is in the language; None if that is not clear after ``limit`` steps."""
        representatives = [members[0] for members in _byte_classes(self.language)]
        seen = {0}
        todo = [0]
        for state in todo:
            if self._ends[state]:
                return False
            for byte in representatives:
                then = self._step(state, byte)
                if then not in seen and self._states[then] is not EMPTY:
                    seen.add(then)
                    todo.append(then)
            limit -= len(representatives)
            if limit <= 0:
                return None
        return True

    def first_words(self, most: int, limit: int) -> list[bytes] | None:
        """The shortest strings, ``most`` of them or all there are; None if that is not clear after ``limit`` steps."""
        classes = _byte_classes(self.language)
        found: list[bytes] = []
        # For each state some words that lead to it.  More than are asked for are of no use: all go on in the same way.
        layer: dict[int, list[bytes]] = {0: [b""]}
        while layer:
            following: dict[int, list[bytes]] = {}
            for state, words in layer.items():
                if self._ends[state]:
                    found += words
                    if len(found) >= most:
                        return found[:most]
                limit -= len(words)
                if limit <= 0:
                    return None
                for members in classes:
                    then = self._step(state, members[0])
                    if self._states[then] is not EMPTY:
                        known = following.setdefault(then, [])
                        longer = (word + members[place : place + 1] for word in words for place in range(len(members)))
                        known += islice(longer, most - len(known))
            layer = following
        return found


def _byte_classes(language: Regular) -> list[bytes]:
    """The bytes, in classes that no part of the language tells apart."""
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
    classes = [(1 << 256) - 1]
    for mask in masks:
        inside = [both for one in classes if (both := one & mask)]
        classes = inside + [rest for one in classes if (rest := one & ~mask)]
    return sorted(bytes(byte for byte in range(256) if one >> byte & 1) for one in classes)
