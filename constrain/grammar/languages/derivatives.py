"""Deciding questions about a regular language while a grammar is made: is a string in it, is there any?

Brzozowski derivatives, as in the engine, but in Python and only as far as one question needs: the strings are
property names, and the searches are short.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import lru_cache, reduce
from itertools import islice
from operator import and_, or_
from typing import TypeGuard

from constrain.grammar.languages import regular as r
from constrain.grammar.languages.quotation import Quotation
from constrain.limits import spend

_EASY = b"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ _-.,:;!?()[]{}<>=+*/#$%&@^`|~'"
_RANKS = {byte: rank for rank, byte in enumerate(dict.fromkeys([*_EASY, *range(256)]))}
_ALL_BYTES = (1 << 256) - 1


def has_empty_string(language: r.Regular) -> bool:
    """Whether the empty string is in a language."""
    if isinstance(language, r.Literal):
        return not language.data
    if isinstance(language, (r.Concat, r.Intersect)):
        return all(map(has_empty_string, language.parts))
    if isinstance(language, Quotation):
        return language.may_end()
    if isinstance(language, r.Union):
        return any(map(has_empty_string, language.parts))
    if isinstance(language, r.Repeat):
        return language.low == 0 or has_empty_string(language.item)
    return isinstance(language, r.Complement) and not has_empty_string(language.item)


def always_has(language: r.Regular, byte: int) -> bool:
    """Whether each string of a language has a byte; False also where intersections or complements say so."""
    if isinstance(language, r.Literal):
        return byte in language.data
    if isinstance(language, r.ByteSet):
        return language.bits == 1 << byte
    if isinstance(language, r.Concat):
        return any(always_has(part, byte) for part in language.parts)
    if isinstance(language, r.Union):
        return all(always_has(part, byte) for part in language.parts)
    return isinstance(language, r.Repeat) and language.low > 0 and always_has(language.item, byte)


def bytes_in(language: r.Regular, known: dict[int, int] | None = None) -> int:
    """The bytes that strings of a language may have, as a set of bits; it may be more than these.

    ``known`` holds what is known of parts, by their identity, for languages that share parts and stay alive.
    """
    known = {} if known is None else known
    todo = [language]
    while todo:
        node = todo[-1]
        missing = [part for part in node.inner if id(part) not in known]
        if missing and not isinstance(node, r.Complement):
            todo += missing
            continue
        todo.pop()
        if isinstance(node, r.Literal):
            found = _bits(node.data)
        elif isinstance(node, Quotation):
            found = _bits(node.text[min(node.places or (0,)) :])
        elif isinstance(node, r.ByteSet):
            found = node.bits
        elif isinstance(node, r.Complement):
            found = _ALL_BYTES
        elif isinstance(node, r.Intersect):
            found = reduce(and_, [known[id(part)] for part in node.parts])
        else:
            found = reduce(or_, [known[id(part)] for part in node.inner], 0)
        known[id(node)] = found
    return known[id(language)]


def _bits(data: bytes) -> int:
    return sum(1 << byte for byte in set(data))


def example(language: r.Regular) -> bytes | None:
    """A short string of a language; None where intersections or complements say what is in it, or nothing is."""
    if isinstance(language, r.Literal):
        return language.data
    if isinstance(language, r.ByteSet):
        return _members(language.bits)[:1]
    if isinstance(language, r.Concat):
        parts = [example(part) for part in language.parts]
        return None if None in parts else b"".join(filter(None, parts))
    if isinstance(language, Quotation):
        return language.shortest()
    if isinstance(language, r.Union):
        return min(filter(_is_known, map(example, language.parts)), key=len, default=None)
    if isinstance(language, r.Repeat):
        item = example(language.item) if language.low else b""
        return None if item is None else item * language.low
    return None


def fixed_end(language: r.Regular) -> bytes:
    """What all strings of a language end with, as far as that is plain to see."""
    if isinstance(language, r.Literal):
        return language.data
    if isinstance(language, r.Concat):
        end = b""
        for part in reversed(language.parts):
            end = fixed_end(part) + end
            if not isinstance(part, r.Literal):
                break
        return end
    if isinstance(language, r.Repeat) and language.low:
        return fixed_end(language.item)
    return b""


def _is_known(word: bytes | None) -> TypeGuard[bytes]:
    return word is not None


class Automaton:
    """The derivatives of one language, made as they are asked for."""

    def __init__(self, language: r.Regular) -> None:
        self.language = language
        self._derivatives: dict[tuple[r.Regular, int], r.Regular] = {}
        self._begins: dict[r.Regular, int] = {}
        self._same: dict[r.Regular, r.Regular] = {}
        # States are derivatives of the whole language; state 0 is the language itself.
        self._numbers: dict[r.Regular, int] = {language: 0}
        self._states: list[r.Regular] = [language]
        self._rows: list[dict[int, int]] = [{}]
        self._ends: list[bool] = [has_empty_string(language)]
        self._alike: bytes | None = None

    def step(self, state: int, byte: int) -> int:
        """The state after ``byte``."""
        then = self._rows[state].get(byte)
        if then is None:
            language = self._derivative(self._states[state], byte)
            then = self._numbers.get(language)
            if then is None:
                # Automata are kept: what may raise comes before the state is there.
                ends = has_empty_string(language)
                then = len(self._states)
                self._states.append(language)
                self._rows.append({})
                self._ends.append(ends)
                self._numbers[language] = then
            self._rows[state][byte] = then
        return then

    def steps(self, state: int, data: bytes) -> list[int]:
        """The state after each of some bytes; of those that the language does not tell apart one is looked at."""
        if self._alike is None:
            table = bytearray(range(256))
            for members in byte_classes(self.language):
                for byte in members:
                    table[byte] = members[0]
            self._alike = bytes(table)
        alike = data.translate(self._alike)
        states = {byte: self.step(state, byte) for byte in set(alike)}
        return [states[byte] for byte in alike]

    def is_end(self, state: int) -> bool:
        """Whether what leads to a state is in the language."""
        return self._ends[state]

    def rest(self, state: int) -> r.Regular:
        """What may follow what leads to a state."""
        return self._states[state]

    def is_dead(self, state: int) -> bool:
        """Whether a state is known to lead to no end.  One that is not dead may lead to none either."""
        return self._states[state] is r.EMPTY

    def _begin(self, language: r.Regular) -> int:
        """The bytes that strings of ``language`` may begin with, as bits; possibly more than do."""
        known = self._begins.get(language)
        if known is not None:
            return known
        bits = 0
        if isinstance(language, r.Literal):
            bits = 1 << language.data[0] if language.data else 0
        elif isinstance(language, r.ByteSet):
            bits = language.bits
        elif isinstance(language, r.Concat):
            for part in language.parts:
                bits |= self._begin(part)
                if not has_empty_string(part):
                    break
        elif isinstance(language, Quotation):
            bits = language.first_bytes()
        elif isinstance(language, r.Union):
            for part in language.parts:
                bits |= self._begin(part)
        elif isinstance(language, r.Intersect):
            bits = _ALL_BYTES
            for part in language.parts:
                bits &= self._begin(part)
        elif isinstance(language, r.Repeat):
            bits = self._begin(language.item)
        elif isinstance(language, r.Complement):
            bits = _ALL_BYTES
        self._begins[language] = bits
        return bits

    def _successors(self, state: int, classes: list[bytes]) -> Iterator[tuple[int, bytes]]:
        """The states that a state leads to, each with a class of bytes that it does so by."""
        begin = self._begin(self._states[state])
        for members in classes:
            if begin >> members[0] & 1:
                then = self.step(state, members[0])
                if self._states[then] is not r.EMPTY:
                    yield then, members

    def _derivative(self, language: r.Regular, byte: int) -> r.Regular:
        """What may follow ``byte`` in ``language``."""
        # Most parts begin with few bytes, as the names of properties do.
        if not self._begin(language) >> byte & 1:
            return r.EMPTY
        key = (language, byte)
        known = self._derivatives.get(key)
        if known is None:
            parts = () if isinstance(language, Quotation) else getattr(language, "parts", ())
            spend(10 + len(parts) // 2)
            known = self._derive(language, byte)
            # One object for all that are equal: comparing two takes as long as they are deep.
            known = self._derivatives[key] = self._same.setdefault(known, known)
        return known

    def _derive(self, language: r.Regular, byte: int) -> r.Regular:
        if isinstance(language, r.Literal):
            return r.literal(language.data[1:])
        if isinstance(language, r.ByteSet):
            return r.EPSILON
        if isinstance(language, r.Concat):
            found: list[r.Regular] = []
            for index, part in enumerate(language.parts):
                found.append(r.concat(self._derivative(part, byte), *language.parts[index + 1 :]))
                if not has_empty_string(part):
                    break
            return r.union(*found)
        if isinstance(language, Quotation):
            return language.after(byte)
        if isinstance(language, r.Union):
            return r.union(*[self._derivative(part, byte) for part in language.parts])
        if isinstance(language, r.Intersect):
            return r.intersect(*[self._derivative(part, byte) for part in language.parts])
        if isinstance(language, r.Repeat):
            low = max(language.low - 1, 0)
            high = None if language.high is None else language.high - 1
            return r.concat(self._derivative(language.item, byte), r.repeat(language.item, low, high))
        if isinstance(language, r.Complement):
            return r.complement(self._derivative(language.item, byte))
        return r.EMPTY

    def matches(self, data: bytes) -> bool:
        """Whether ``data`` is in the language."""
        state, rows = 0, self._rows
        spend(1 + len(data) // 8)
        for byte in data:
            then = rows[state].get(byte)
            state = self.step(state, byte) if then is None else then
            if self._states[state] is r.EMPTY:
                return False
        return self._ends[state]

    def is_empty(self, limit: int) -> bool | None:
        """Whether nothing is in the language; None if that is not clear after ``limit`` steps."""
        if self._ends[0]:
            return False
        classes = byte_classes(self.language)
        seen = {0}
        # In turn one step depth first and one breadth first: a long string is found by going on with one, whatever
        # other ways its states have, and a short one beside a long one by leaving that.
        deep = [self._successors(0, classes)]
        wide = deque(deep)
        limit -= len(classes)
        is_deep = False
        while wide:
            if limit <= 0:
                return None
            is_deep = not is_deep and bool(deep)
            found = next(deep[-1] if is_deep else wide[0], None)
            if found is None:
                _ = deep.pop() if is_deep else wide.popleft()
                continue
            then = found[0]
            if self._ends[then]:
                return False
            if then not in seen:
                seen.add(then)
                successors = self._successors(then, classes)
                wide.append(successors)
                if is_deep:
                    deep.append(successors)
                limit -= len(classes)
        return True

    def first_words(self, most: int, limit: int) -> list[bytes] | None:
        """The shortest strings, ``most`` of them or all there are; None if that is not clear after ``limit`` steps."""
        classes = byte_classes(self.language)
        found: list[bytes] = []
        # For each state some words that lead to it.  More than are asked for are of no use: all go on in the same way.
        layer: dict[int, list[bytes]] = {0: [b""]}
        seen: set[int] = set()
        alive: set[int] | None = None
        while layer:
            if alive is None and layer.keys() <= seen:
                # There are no further states, and from some there may be no way to an end.
                alive = self._alive(seen, classes)
            seen.update(layer)
            # Before any step is made: those of the last layer would be for nothing.
            for state, words in layer.items():
                if self._ends[state]:
                    found += words
                    if len(found) >= most:
                        return found[:most]
            following: dict[int, list[bytes]] = {}
            for state, words in layer.items():
                limit -= len(words)
                if limit <= 0:
                    return None
                for then, members in self._successors(state, classes):
                    if alive is not None and then not in alive:
                        continue
                    known = following.setdefault(then, [])
                    longer = (word + members[place : place + 1] for word in words for place in range(len(members)))
                    known += islice(longer, most - len(known))
                    # All that are made here are as long, and a character of Unicode has many steps.
                    if self._ends[then] and len(known) + len(found) >= most:
                        return (found + known)[:most]
            layer = following
        return found

    def _alive(self, states: set[int], classes: list[bytes]) -> set[int]:
        """Those of some states, which lead to no others, from which there is a way to an end."""
        before: dict[int, list[int]] = {}
        for state in states:
            for then, _ in self._successors(state, classes):
                before.setdefault(then, []).append(state)
        todo = [state for state in states if self._ends[state]]
        found = set(todo)
        for state in todo:
            new = set(before.get(state, ())) - found
            found |= new
            todo += new
        return found


def byte_classes(language: r.Regular) -> list[bytes]:
    """The bytes, in classes that no part of the language tells apart; first those that nothing has to escape."""
    masks: set[int] = set()
    # Bytes of literals are classes of their own.
    single = 0
    known: set[r.Regular] = set()
    todo = [language]
    for part in todo:
        if part in known:
            continue
        known.add(part)
        if isinstance(part, r.Literal):
            for byte in part.data:
                single |= 1 << byte
        elif isinstance(part, r.ByteSet):
            masks.add(part.bits)
        elif isinstance(part, Quotation):
            for byte in set(part.text):
                single |= 1 << byte
        elif isinstance(part, (r.Concat, r.Union, r.Intersect)):
            todo += part.parts
        elif isinstance(part, (r.Repeat, r.Complement)):
            todo.append(part.item)
    classes = [_ALL_BYTES & ~single] if single != _ALL_BYTES else []
    for mask in masks:
        inside = [both for one in classes if (both := one & mask)]
        classes = inside + [rest for one in classes if (rest := one & ~mask)]
    found = [bytes((byte,)) for byte in _members(single)] + [_members(one) for one in classes]
    return sorted(found, key=lambda members: _RANKS[members[0]])


@lru_cache(maxsize=4096)
def _members(bits: int) -> bytes:
    """The bytes of a set: letters and digits, what else can be seen in ASCII, and all others."""
    members = [byte for byte, digit in enumerate(reversed(f"{bits:b}")) if digit == "1"]
    return bytes(sorted(members, key=_RANKS.__getitem__))
