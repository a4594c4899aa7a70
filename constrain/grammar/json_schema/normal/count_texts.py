"""How many strings there are in a set.

The derivatives of patterns and their like are made once, and those of all sets that are made of them are read off
those: a state is one of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from constrain.errors import LimitError
from constrain.grammar import utf8
from constrain.grammar.derivatives import Automaton, byte_classes
from constrain.grammar.endless import is_finite
from constrain.grammar.json_schema.lexical.texts import (
    Every,
    Pattern,
    Some,
    Text,
    Without,
    Words,
    automaton,
    every,
    members,
    plain,
    some,
    without,
)
from constrain.grammar.json_schema.normal.few_values import few_words
from constrain.grammar.prefix_tree import common_length

# How many steps counting may take: about a second.
_MOST_STEPS = 400_000

# The same for finding out whether they run short, a tenth of that at most: if it is not clear, budgets take more care.
_FEW_STEPS = 5_000

MANY_WAYS, STEPS_TO_MANY_WAYS = 10, 8
"""Where so many plain bytes go on, so near to any beginning, there is always a short string that is not there yet."""

PLAIN_BYTES = frozenset(range(0x20, 0x7F)) - {ord('"'), ord("\\")}
"""Those that stand for themselves in a string of JSON, and are in nearly all vocabularies."""

# And for one beginning, while a text is read.
_STEPS_AHEAD = 500
_COMMON_CLASSES = 4

# So many strings of a part are looked through for those of the whole.
_MOST_INSIDE = 1_000

_State = tuple[int, ...]

_any_text = Automaton(utf8.ANY_TEXT)

# A state of a part that no string of the whole leads through.
_DEAD = -1


@lru_cache(maxsize=1024)
def count_texts(text: Text, most: int) -> int:
    """How many strings there are, or ``most`` if there are more.  Raises LimitError if that is not clear."""
    if most <= 0:
        return 0
    words = _words(text)
    if words is not None:
        return min(len(words), most)
    found = _Combination(text).count(most, _MOST_STEPS)
    # Of some formats it is known how to get at short strings.
    return len(few_words(text, most)) if found is None else found


@lru_cache(maxsize=1024)
def runs_short(text: Text) -> bool:
    """Whether some beginning goes on in only so many ways, or in few short ones; True also where that is not clear.

    Where it is false, each beginning has, within :data:`STEPS_TO_MANY_WAYS` bytes, one with :data:`MANY_WAYS` of
    :data:`PLAIN_BYTES` to go on.
    """
    if _words(text) is not None:
        return True
    try:
        return _Combination(text).runs_short(_FEW_STEPS)
    except LimitError:
        return True


def few_strings(text: Text, most: int) -> frozenset[str] | None:
    """All strings, if it is easily found that there are ``most`` at most."""
    found: frozenset[str] | None = None
    if isinstance(text, Words):
        found = text.values
    elif isinstance(text, Pattern) and is_finite(plain(text)):
        found = _first_words(text, most + 1)
    elif isinstance(text, Every):
        # Many of them may be left out by the other parts.
        for item in text.items:
            inside = few_strings(item, _MOST_INSIDE)
            if inside is not None:
                found = frozenset(members(text, tuple(inside)))
                break
    elif isinstance(text, Some):
        parts = [few_strings(item, most) for item in text.items]
        known = [part for part in parts if part is not None]
        found = frozenset().union(*known) if len(known) == len(parts) else None
    return found if found is not None and len(found) <= most else None


@lru_cache(maxsize=1024)
def _first_words(text: Text, most: int) -> frozenset[str] | None:
    """All strings if they are fewer than ``most``; None if there are more, or if that is not easily found."""
    try:
        # To count them takes less time than to write them down.
        if _Combination(text).count(most, 8 * _FEW_STEPS) == most:
            return None
        return frozenset(few_words(text, most, _FEW_STEPS))
    except LimitError:
        return None


def _words(text: Text) -> frozenset[str] | None:
    """All strings, if they are listed."""
    if isinstance(text, Words):
        return text.values
    if isinstance(text, Every):
        for item in text.items:
            inside = _words(item)
            if inside is not None:
                return frozenset(members(text, tuple(inside)))
    if isinstance(text, Some):
        parts = [_words(item) for item in text.items]
        found = [part for part in parts if part is not None]
        return frozenset().union(*found) if len(found) == len(parts) else None
    return None


class Beginnings:
    """How the beginnings of the strings of a set go on."""

    def __init__(self, text: Text) -> None:
        self._words = _words(text)
        self._combination = _Combination(text if self._words is None else Words(self._words))
        self._known: dict[tuple[_State, int], bool] = {}

    def has_more_than(self, count: int) -> bool:
        """Whether there are more strings; True also where that is not clear."""
        if self._words is not None:
            return len(self._words) > count
        return self._combination.count(count + 1, _MOST_STEPS) != count

    def goes_on_in_few(self, beginning: str, most: int) -> bool:
        """Whether fewer than ``most`` strings begin so; True also where that is not clear."""
        if self._words is not None:
            return True
        *before, state = self._combination.path(beginning)
        found = self._known.get((state, most))
        if found is None:
            found = self._known[state, most] = not self._combination.has_many(state, most, _STEPS_AHEAD)
            if not found:
                # More strings have a shorter beginning.
                self._known.update(dict.fromkeys([(each, most) for each in before], False))
        return found


def _complements_inside(text: Text, *, is_outside: bool = False) -> Text:
    """The same set, or its complement, with complements of nothing that is made of other sets."""
    if isinstance(text, Without):
        return _complements_inside(text.item, is_outside=not is_outside)
    if isinstance(text, (Every, Some)):
        parts = [_complements_inside(item, is_outside=is_outside) for item in text.items]
        return some(*parts) if isinstance(text, Some) != is_outside else every(*parts)
    return without(text) if is_outside else text


class _Combination:
    """The strings of a set, by way of the automata of the sets that it is made of."""

    def __init__(self, text: Text) -> None:
        self._classes = byte_classes(plain(text))
        # What is left is seen to go on in no string only if it is said without complements of combinations.
        self._text = text = _complements_inside(text)
        self._bytes = bytes([alike[0] for alike in self._classes])
        self._places: dict[Text, int] = {}
        common = sorted((each for each in self._classes if each[0] < 0x80), key=len, reverse=True)
        self._common = common[:_COMMON_CLASSES]
        # The first one sees to it that everything is UTF-8, complements as well.
        self._automata = [_any_text]
        # Most states are reached by strings of many lengths.
        self._after: dict[_State, list[tuple[_State, int]]] = {}
        self._after_common: dict[_State, list[tuple[_State, int]]] = {}
        self._is_end: dict[_State, bool] = {}
        self._add(text)
        self.start: _State = (0,) * len(self._automata)
        # Of the beginning that was asked for last.
        self._last_path: tuple[bytes, list[_State]] = b"", [self.start]
        self._rows: list[dict[int, list[int]]] = [{} for _ in self._automata]
        # The string is in all of some sets, and in what is made of others.
        self._needed, self._choices = {0}, list[Text]()
        self._demand(text)

    def _add(self, text: Text) -> None:
        if isinstance(text, Without):
            self._add(text.item)
        elif isinstance(text, (Every, Some)):
            for item in text.items:
                self._add(item)
        elif text not in self._places:
            self._places[text] = len(self._automata)
            self._automata.append(automaton(text))

    def _demand(self, text: Text) -> None:
        if isinstance(text, Every):
            for item in text.items:
                self._demand(item)
        elif isinstance(text, Some):
            self._choices.append(text)
        elif not isinstance(text, Without):
            self._needed.add(self._places[text])

    def _is_in(self, text: Text, state: _State) -> bool:
        """Whether what leads to a state is in a set."""
        if isinstance(text, Without):
            return not self._is_in(text.item, state)
        if isinstance(text, Every):
            return all(self._is_in(item, state) for item in text.items)
        if isinstance(text, Some):
            return any(self._is_in(item, state) for item in text.items)
        place = self._places[text]
        return self._automata[place].is_end(state[place])

    def _goes_on(self, text: Text, state: _State) -> bool:
        """Whether what leads to a state may be the beginning of a string in a set."""
        if isinstance(text, Every):
            return all(self._goes_on(item, state) for item in text.items)
        if isinstance(text, Some):
            return any(self._goes_on(item, state) for item in text.items)
        if isinstance(text, Without):
            return True
        place = self._places[text]
        return not self._automata[place].is_dead(state[place])

    def _ends(self, state: _State) -> bool:
        known = self._is_end.get(state)
        if known is None:
            known = self._automata[0].is_end(state[0]) and self._is_in(self._text, state)
            self._is_end[state] = known
        return known

    def _successors(self, state: _State) -> list[tuple[_State, int]]:
        """The states that a state leads to, each with the number of bytes by which it does so."""
        known = self._after.get(state)
        if known is None:
            ways: dict[_State, int] = {}
            # Of all classes of bytes only few lead to different states.
            rows = [self._row(place, each) for place, each in enumerate(state)]
            for then, alike in zip(zip(*rows, strict=True), self._classes, strict=True):
                ways[then] = ways.get(then, 0) + len(alike)
            known = self._after[state] = [(then, number) for then, number in ways.items() if self._is_alive(then)]
        return known

    def _row(self, place: int, state: int) -> list[int]:
        """The states that one of an automaton leads to, by class of bytes; _DEAD where no string is left by that."""
        row = self._rows[place].get(state)
        if row is None:
            automaton = self._automata[place]
            row = automaton.steps(state, self._bytes)
            if place in self._needed:
                row = [_DEAD if automaton.is_dead(then) else then for then in row]
            self._rows[place][state] = row
        return row

    def _is_alive(self, state: _State) -> bool:
        return _DEAD not in state and all(self._goes_on(text, state) for text in self._choices)

    def _successors_by_common(self, state: _State) -> list[tuple[_State, int]]:
        """The same by common bytes only."""
        known = self._after_common.get(state)
        if known is None:
            known = self._after_common[state] = []
            for alike in self._common:
                byte = alike[0]
                first = self._automata[0].step(state[0], byte)
                if self._automata[0].is_dead(first):
                    continue
                pairs = zip(self._automata, state, strict=True)
                then = tuple([automaton.step(each, byte) for automaton, each in pairs])
                if self._goes_on(self._text, then):
                    known.append((then, len(alike)))
        return known

    def path(self, beginning: str) -> list[_State]:
        """The states to the end of a beginning."""
        data = beginning.encode()
        # A mask asks for the same key with many ends.
        before, path = self._last_path
        shared = common_length(before, data, 0)
        path = path[: shared + 1]
        for byte in data[shared:]:
            pairs = zip(self._automata, path[-1], strict=True)
            path.append(tuple([automaton.step(each, byte) for automaton, each in pairs]))
        self._last_path = data, path
        return path

    def count(self, most: int, limit: int) -> int | None:
        """How many strings there are, or ``most`` if there are more; None if ``limit`` steps do not tell."""
        # Mostly there are so many that a few lengths are enough, and even those of common characters.
        if self.has_many(self.start, most, limit // 400):
            return most
        # Or behind one uncommon character: what is not of a format may have to break its rules.
        if any(self.has_many(then, most, limit // 4000) for then, _ in self._successors(self.start)):
            return most
        price = len(self._classes)
        found = _count(self.start, most, limit // 8, price, self._ends, self._successors)
        if found is not None:
            return found
        alive = self._alive(limit // 2)

        def living(state: _State) -> Iterable[tuple[_State, int]]:
            return [each for each in self._successors(state) if alive is None or each[0] in alive]

        return _count(self.start, most, limit // 2, price, self._ends, living)

    def has_many(self, state: _State, most: int, limit: int) -> bool:
        """Whether ``most`` strings go on from a state by common bytes; False if ``limit`` steps do not tell."""
        return _count(state, most, limit, len(self._common), self._ends, self._successors_by_common) == most

    def runs_short(self, limit: int) -> bool:
        """See the function; True if ``limit`` steps do not tell."""
        alive = self._alive(limit)
        if alive is None:
            return True
        after = {state: self._successors(state) for state in alive}
        near = {state for state in alive if self._plain_ways(state, alive) >= MANY_WAYS}
        for _ in range(STEPS_TO_MANY_WAYS):
            near |= {state for state in alive - near if any(then in near for then, _ in after[state])}
        return near != alive

    def _plain_ways(self, state: _State, alive: set[_State]) -> int:
        """By how many of PLAIN_BYTES a state goes on to others."""
        rows = zip(*[self._row(place, each) for place, each in enumerate(state)], strict=True)
        return sum(
            len(PLAIN_BYTES.intersection(alike))
            for then, alike in zip(rows, self._classes, strict=True)
            if then in alive and PLAIN_BYTES.intersection(alike)
        )

    def _alive(self, limit: int) -> set[_State] | None:
        """The states from which a string can be ended; None if there are more than can be seen in ``limit`` steps."""
        before: dict[_State, list[_State]] = {self.start: []}
        todo = [self.start]
        for state in todo:
            limit -= len(self._classes)
            if limit <= 0:
                return None
            for then, _ in self._successors(state):
                if then not in before:
                    before[then] = []
                    todo.append(then)
                before[then].append(state)
        ending = [state for state in todo if self._ends(state)]
        alive = set(ending)
        for state in ending:
            for previous in before[state]:
                if previous not in alive:
                    alive.add(previous)
                    ending.append(previous)
        return alive


def _count(
    start: _State,
    most: int,
    limit: int,
    price: int,
    ends: Callable[[_State], bool],
    successors: Callable[[_State], Iterable[tuple[_State, int]]],
) -> int | None:
    """How many strings go on from a state, or ``most`` if there are more; None if ``limit`` steps do not tell.

    To go on from a state takes ``price`` steps.
    """
    found = 0
    # For each state how many strings lead to it, one length after the other.
    layer = {start: 1}
    while layer:
        found += sum(number for state, number in layer.items() if ends(state))
        if found >= most:
            return most
        following: dict[_State, int] = {}
        for state, number in layer.items():
            limit -= price
            if limit <= 0:
                return None
            for then, ways in successors(state):
                following[then] = following.get(then, 0) + number * ways
        layer = following
    return found
