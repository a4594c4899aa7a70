"""How many strings there are in a set.

The derivatives of patterns and their like are made once, and those of all sets that are made of them are read off
those: a state is one of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from constrain.errors import LimitError
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
from constrain.grammar.languages import utf8
from constrain.grammar.languages.derivatives import Automaton, byte_classes
from constrain.grammar.languages.endless import is_finite
from constrain.grammar.languages.prefix_tree import common_length
from constrain.grammar.languages.regular import union

# How many steps counting may take: about a second.
_MOST_STEPS = 400_000

# The same for finding out whether they run short, a tenth of that at most: if it is not clear, budgets take more care.
_FEW_STEPS = 5_000

_MANY_WAYS, _STEPS_TO_MANY_WAYS = 10, 8
"""Where so many plain bytes go on, so near to any beginning, there is always a short string that is not there yet."""

_PLAIN_BYTES = frozenset(range(0x20, 0x7F)) - {ord('"'), ord("\\")}
"""Those that stand for themselves in a string of JSON, and are in nearly all vocabularies."""

# And for one beginning, while a text is read.
_STEPS_AHEAD = 500
_COMMON_CLASSES = 4

# So many strings of a part are looked through for those of the whole.
_MOST_INSIDE = 1_000

_State = tuple[int, ...]

# A state that no string is left of.
_DEAD = -1

_Step = tuple[_State, int, int]
"""A state, by how many bytes another one leads there, and the places of those that no string is left of, as bits."""

_any_text = Automaton(utf8.ANY_TEXT)


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

    Where it is false, each beginning has, within :data:`_STEPS_TO_MANY_WAYS` bytes, one with :data:`_MANY_WAYS` of
    :data:`_PLAIN_BYTES` to go on.
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


class _Product:
    """The automata of some sets side by side: a state is one of each.  It is the same for all that is made of them."""

    def __init__(self, texts: tuple[Text, ...]) -> None:
        # The first one sees to it that everything is UTF-8, complements as well.
        self._automata = [_any_text, *map(automaton, texts)]
        self.start: _State = (0,) * len(self._automata)
        self.classes = byte_classes(union(utf8.ANY_TEXT, *map(plain, texts)))
        self._bytes = bytes([alike[0] for alike in self.classes])
        common = sorted((each for each in self.classes if each[0] < 0x80), key=len, reverse=True)
        self.common = common[:_COMMON_CLASSES]
        self._rows: list[dict[int, list[int]]] = [{_DEAD: [_DEAD] * len(self._bytes)} for _ in self._automata]
        # Most states are reached by strings of many lengths.
        self._after: dict[_State, list[_Step]] = {}
        self._after_common: dict[_State, list[_Step]] = {}

    def successors(self, state: _State) -> list[_Step]:
        """The states that a state leads to."""
        known = self._after.get(state)
        if known is None:
            ways: dict[_State, int] = {}
            # Of all classes of bytes only few lead to different states.
            for then, alike in zip(self.rows(state), self.classes, strict=True):
                ways[then] = ways.get(then, 0) + len(alike)
            known = self._after[state] = self._steps(ways.items())
        return known

    def successors_by_common(self, state: _State) -> list[_Step]:
        """The same by common bytes only."""
        known = self._after_common.get(state)
        if known is None:
            known = self._steps([(self.step(state, alike[0]), len(alike)) for alike in self.common])
            self._after_common[state] = known
        return known

    def _steps(self, ways: Iterable[tuple[_State, int]]) -> list[_Step]:
        steps = []
        for then, number in ways:
            dead = 0
            if _DEAD in then:
                if then[0] == _DEAD:
                    # What is not UTF-8 is in no set.
                    continue
                for place, each in enumerate(then):
                    if each == _DEAD:
                        dead |= 1 << place
            steps.append((then, number, dead))
        return steps

    def rows(self, state: _State) -> Iterable[_State]:
        """The states after each class of bytes."""
        return zip(
            *[self._rows[place].get(each) or self._row(place, each) for place, each in enumerate(state)], strict=True
        )

    def _row(self, place: int, state: int) -> list[int]:
        derivatives = self._automata[place]
        row = [_DEAD if derivatives.is_dead(then) else then for then in derivatives.steps(state, self._bytes)]
        self._rows[place][state] = row
        return row

    def is_end(self, place: int, state: _State) -> bool:
        """Whether what leads to a state is in one of the sets; at 0, whether it is UTF-8."""
        return state[place] != _DEAD and self._automata[place].is_end(state[place])

    def step(self, state: _State, byte: int) -> _State:
        """The state after a byte."""
        return tuple([self._step(place, each, byte) for place, each in enumerate(state)])

    def _step(self, place: int, state: int, byte: int) -> int:
        then = state if state == _DEAD else self._automata[place].step(state, byte)
        return _DEAD if then == _DEAD or self._automata[place].is_dead(then) else then


# The sets of one schema come one after the other, and each product may hold thousands of states.
_product = lru_cache(maxsize=8)(_Product)


class _Combination:
    """The strings of a set, by way of the automata of the sets that it is made of."""

    def __init__(self, text: Text) -> None:
        # What is left is seen to go on in no string only if it is said without complements of combinations.
        self._text = text = _complements_inside(text)
        self._places: dict[Text, int] = {}
        self._add(text)
        self._product = product = _product(tuple(self._places))
        self._classes = product.classes
        self.start = product.start
        self._is_end: dict[_State, bool] = {}
        # Of the beginning that was asked for last.
        self._last_path: tuple[bytes, list[_State]] = b"", [self.start]
        # The string is in all of some sets, which are bits, and in what is made of others.
        self._needed, self._choices = 0, list[Text]()
        self._demand(text)

    def _add(self, text: Text) -> None:
        if isinstance(text, Without):
            self._add(text.item)
        elif isinstance(text, (Every, Some)):
            for item in text.items:
                self._add(item)
        else:
            self._places.setdefault(text, len(self._places) + 1)

    def _demand(self, text: Text) -> None:
        if isinstance(text, Every):
            for item in text.items:
                self._demand(item)
        elif isinstance(text, Some):
            self._choices.append(text)
        elif not isinstance(text, Without):
            self._needed |= 1 << self._places[text]

    def _is_in(self, text: Text, state: _State) -> bool:
        """Whether what leads to a state is in a set."""
        if isinstance(text, Without):
            return not self._is_in(text.item, state)
        if isinstance(text, Every):
            return all(self._is_in(item, state) for item in text.items)
        if isinstance(text, Some):
            return any(self._is_in(item, state) for item in text.items)
        return self._product.is_end(self._places[text], state)

    def _goes_on(self, text: Text, state: _State) -> bool:
        """Whether what leads to a state may be the beginning of a string in a set."""
        if isinstance(text, Every):
            return all(self._goes_on(item, state) for item in text.items)
        if isinstance(text, Some):
            return any(self._goes_on(item, state) for item in text.items)
        if isinstance(text, Without):
            return True
        return state[self._places[text]] != _DEAD

    def _ends(self, state: _State) -> bool:
        known = self._is_end.get(state)
        if known is None:
            known = self._product.is_end(0, state) and self._is_in(self._text, state)
            self._is_end[state] = known
        return known

    def _successors(self, state: _State) -> list[tuple[_State, int]]:
        """The states that a state leads to, each with the number of bytes by which it does so."""
        return self._living(self._product.successors(state))

    def _successors_by_common(self, state: _State) -> list[tuple[_State, int]]:
        """The same by common bytes only."""
        return self._living(self._product.successors_by_common(state))

    def _living(self, steps: list[_Step]) -> list[tuple[_State, int]]:
        needed, choices = self._needed, self._choices
        return [
            (then, number)
            for then, number, dead in steps
            if not dead & needed and (not choices or all(self._goes_on(text, then) for text in choices))
        ]

    def path(self, beginning: str) -> list[_State]:
        """The states to the end of a beginning."""
        data = beginning.encode()
        # A mask asks for the same key with many ends.
        before, path = self._last_path
        shared = common_length(before, data, 0)
        path = path[: shared + 1]
        for byte in data[shared:]:
            path.append(self._product.step(path[-1], byte))
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
        price = len(self._product.common)
        return _count(state, most, limit, price, self._ends, self._successors_by_common) == most

    def runs_short(self, limit: int) -> bool:
        """See the function; True if ``limit`` steps do not tell."""
        alive = self._alive(limit)
        if alive is None:
            return True
        after = {state: self._successors(state) for state in alive}
        near = {state for state in alive if self._plain_ways(state, alive) >= _MANY_WAYS}
        for _ in range(_STEPS_TO_MANY_WAYS):
            near |= {state for state in alive - near if any(then in near for then, _ in after[state])}
        return near != alive

    def _plain_ways(self, state: _State, alive: set[_State]) -> int:
        """By how many of _PLAIN_BYTES a state goes on to others."""
        return sum(
            len(_PLAIN_BYTES.intersection(alike))
            for then, alike in zip(self._product.rows(state), self._classes, strict=True)
            if then in alive and _PLAIN_BYTES.intersection(alike)
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
