"""What Python's ``re`` matches of a terminal: the first match in its order, and not always the longest.

A regex tries its alternatives from left to right, and a lazy quantifier tries to stop first.  So ``a|ab`` never
matches ``ab`` as a whole, and ``/\\*.*?\\*/`` ends with the first ``*/``.  The regex is run as a list of threads in the
order of preference (Pike's machine; Cox, "Regular Expression Matching: the Virtual Machine Approach", 2009): when a
thread matches, those behind it are cut.  The lists are the states of a finite automaton, and the first match of the
regex is the longest text that this automaton accepts.  So the lexer can take the longest match of every terminal, if
its language is that of the automaton.

What must not follow, ``(?!...)`` with some characters in a row, is *pending* in the threads that have passed it.  A
match with something pending counts only if the next character is none of its *guard*; those behind it are cut if so.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple, cast

from constrain.errors import GrammarError
from constrain.grammar.languages.elimination import eliminate
from constrain.grammar.languages.regular import EMPTY, EPSILON, Regular, concat, repeat, union
from constrain.grammar.languages.utf8 import CodePoints, classes_of, common, encode, holds, negate, normalize
from constrain.grammar.lark.regex_package import code_points, without_properties
from constrain.grammar.regex import regex_language
from constrain.grammar.regex.nodes import Chars
from constrain.grammar.regex.parser import parse
from constrain.limits import spend

_MAX_CODE = 20_000
_MAX_STATES = 3_000
_MAX_ELIMINATED = 150
_MAX_PAIRS = 20_000
# Texts that lead to one state and are looked at, in the search for short ones.
_MOST_VISITS = 4

_sre: Any = cast(Any, re)._parser
_FLAGS = {re.IGNORECASE: "i", re.DOTALL: "s", re.MULTILINE: "m", re.ASCII: "a"}

# Instructions: (CHAR, set), (SPLIT, preferred, other), (JUMP, to), (BEHIND, set, negated), (MATCH,), (NOT_AHEAD, sets).
_CHAR, _SPLIT, _JUMP, _BEHIND, _MATCH, _NOT_AHEAD = range(6)

# The place of a thread that has matched.
_DONE = -1

# What must not follow: words, as the sets of their characters, and how much of each has come.
_Pending = frozenset[tuple[tuple[int, ...], int]]
_Thread = tuple[int, _Pending]
_NOTHING: _Pending = frozenset()

_AT_START = -1


class _NotFollowed(Exception):
    """The regex has something that threads cannot follow; the argument names it."""

    def __init__(self, what: str, instead: str = "") -> None:
        super().__init__(f"{what} cannot be followed exactly by a lexer{instead and f'; {instead}'}")


class FirstMatch(NamedTuple):
    """What ``re.match`` matches of a pattern.

    Attributes
    ----------
    language : Regular
        The longest text of it is the match, if there is one.
    refused : Regular
        The texts of the language behind which something must not follow, with the characters that must not.
    """

    language: Regular
    refused: Regular


@lru_cache(maxsize=4096)
def first_match(pattern: str, by_package: bool = False) -> FirstMatch:
    """The language of which the longest match is what ``re.match`` matches of a pattern, if it matches at all.

    Parameters
    ----------
    pattern : str
    by_package : bool
        Whether it is read by the package ``regex`` (:mod:`.regex_package`).

    Raises
    ------
    GrammarError
        If the regex is not supported; the reason names what in it is not.
    """
    try:
        tree, points_of = _parsed(pattern, by_package)
        code, points = _compile(tree, points_of)
    except _NotFollowed as reason:
        raise GrammarError(str(reason)) from None
    classes = classes_of(points)
    members = [
        frozenset(i for i, each in enumerate(classes) if holds(points[p], each[0][0])) for p in range(len(points))
    ]
    machine = _Machine(code, members, len(classes))
    if not machine.looks_around and machine.takes_the_longest():
        language = _language(tree, tree.state.flags, points_of) if by_package else regex_language(pattern)
        return FirstMatch(language, EMPTY)
    return machine.language([encode(each) for each in classes])


# -- from Python's tree to instructions ------------------------------------------------------------


_PointsOf = Callable[[str, Any, int], CodePoints]
"""The code points that a node of Python's tree matches: its operation, its argument, and flags."""


def _parsed(pattern: str, by_package: bool) -> tuple[Any, _PointsOf]:
    """A pattern as Python's tree, and what its nodes for one character match."""
    if not by_package:
        return _sre.parse(pattern), partial(_points_of, _set_of, {})
    try:
        pattern, properties = without_properties(pattern)
        tree = _sre.parse(pattern)
    except (ValueError, re.error) as error:
        raise _NotFollowed(str(error)) from None
    return tree, partial(_points_of, code_points, properties)


def _language(items: Any, flags: int, points_of: _PointsOf) -> Regular:
    """The texts that a tree without look-around matches as a whole."""
    parts = []
    for operation, argument in items:
        spend()
        name = str(operation)
        if name == "BRANCH":
            parts.append(union(*(_language(each, flags, points_of) for each in argument[1])))
        elif name == "SUBPATTERN":
            _, on, off, inner = argument
            parts.append(_language(inner, (flags | on) & ~off, points_of))
        elif name in _REPEATS:
            low, high, inner = argument
            parts.append(repeat(_language(inner, flags, points_of), int(low), _most(high)))
        else:
            parts.append(encode(points_of(name, argument, flags)))
    return concat(*parts)


_REPEATS = ("MAX_REPEAT", "MIN_REPEAT")


def _most(high: Any) -> int | None:
    return None if str(high) == "MAXREPEAT" else int(high)


def _compile(tree: Any, points_of: _PointsOf) -> tuple[list[tuple[Any, ...]], list[CodePoints]]:
    code: list[tuple[Any, ...]] = []
    points: list[CodePoints] = []
    numbers: dict[CodePoints, int] = {}

    def number(some: CodePoints) -> int:
        if some not in numbers:
            numbers[some] = len(points)
            points.append(some)
        return numbers[some]

    def emit(*instruction: Any) -> int:
        spend()
        if len(code) >= _MAX_CODE:
            raise _NotFollowed("a regex with so many repetitions")
        code.append(instruction)
        return len(code) - 1

    def repetition(low: int, high: int | None, items: Any, flags: int, lazy: bool) -> None:
        for _ in range(low):
            sequence(items, flags)
        if high is None:
            split = emit(_SPLIT, 0, 0)
            sequence(items, flags)
            emit(_JUMP, split)
            ways = (split + 1, len(code))
            code[split] = (_SPLIT, *(ways[::-1] if lazy else ways))
            return
        splits = []
        for _ in range(high - low):
            splits.append(emit(_SPLIT, 0, 0))
            sequence(items, flags)
        for split in splits:
            ways = (split + 1, len(code))
            code[split] = (_SPLIT, *(ways[::-1] if lazy else ways))

    def boundary(before: Any, flags: int) -> None:
        # Behind a word character it says that no other one follows.
        word = points_of("IN", _WORD, flags)
        last, is_empty = _last_characters(before, flags, points_of)
        if is_empty or common(normalize(last), negate(word)):
            raise _NotFollowed(r"the boundary \b, but behind a letter, digit or _,")
        emit(_NOT_AHEAD, (number(word),))

    def sequence(items: Any, flags: int) -> None:
        for place, (operation, argument) in enumerate(items):
            name = str(operation)
            if name in ("LITERAL", "NOT_LITERAL", "IN", "ANY"):
                emit(_CHAR, number(points_of(name, argument, flags)))
            elif name == "BRANCH":
                jumps = []
                alternatives = argument[1]
                for i, alternative in enumerate(alternatives):
                    if i < len(alternatives) - 1:
                        split = emit(_SPLIT, 0, 0)
                        sequence(alternative, flags)
                        jumps.append(emit(_JUMP, 0))
                        code[split] = (_SPLIT, split + 1, len(code))
                    else:
                        sequence(alternative, flags)
                for jump in jumps:
                    code[jump] = (_JUMP, len(code))
            elif name == "SUBPATTERN":
                _, on, off, inner = argument
                sequence(inner, (flags | on) & ~off)
            elif name in _REPEATS:
                low, high, inner = argument
                repetition(int(low), _most(high), inner, flags, name == "MIN_REPEAT")
            elif name in ("ASSERT", "ASSERT_NOT") and argument[0] < 0 and _is_one_character(argument[1]):
                ((inner_name, inner_argument),) = argument[1]
                seen = points_of(str(inner_name), inner_argument, flags)
                emit(_BEHIND, number(seen), name == "ASSERT_NOT")
            elif name == "ASSERT_NOT" and argument[1] and all(map(_is_one_character, [[each] for each in argument[1]])):
                word = tuple(number(points_of(str(what), which, flags)) for what, which in argument[1])
                emit(_NOT_AHEAD, word)
            elif name == "ASSERT" and (follows := _character_or_end(argument, flags, points_of)) is not None:
                emit(_NOT_AHEAD, (number(negate(follows)),))
            elif name == "ASSERT" and argument[0] > 0 and _is_one_character(argument[1]):
                raise _NotFollowed("look-ahead", "write (?![^x]) for (?=x), which holds at the end of the text too")
            elif name in ("ASSERT", "ASSERT_NOT"):
                raise _NotFollowed(f"look-{'ahead' if argument[0] > 0 else 'behind of several characters'}")
            elif name == "AT" and str(argument) == "AT_BOUNDARY":
                boundary(items[:place], flags)
            elif name == "AT":
                raise _NotFollowed(f"the anchor or boundary {str(argument).removeprefix('AT_').lower()}")
            elif name == "GROUPREF" or name.startswith("GROUPREF"):
                raise _NotFollowed("a back-reference")
            else:
                raise _NotFollowed("an atomic group or possessive quantifier")

    sequence(tree, tree.state.flags)
    emit(_MATCH)
    return code, points


def _last_characters(items: Any, flags: int, points_of: _PointsOf) -> tuple[list[tuple[int, int]], bool]:
    """The characters that the texts of a tree end with, as ranges, and whether one of the texts may be empty."""
    found: list[tuple[int, int]] = []
    for operation, argument in reversed(items):
        name = str(operation)
        if name == "BRANCH":
            parts = [_last_characters(each, flags, points_of) for each in argument[1]]
        elif name == "SUBPATTERN":
            _, on, off, inner = argument
            parts = [_last_characters(inner, (flags | on) & ~off, points_of)]
        elif name in _REPEATS:
            points, is_empty = _last_characters(argument[2], flags, points_of)
            parts = [(points, is_empty or not argument[0])]
        elif _is_one_character([(operation, argument)]):
            parts = [(list(points_of(name, argument, flags)), False)]
        else:
            # Look-around and boundaries.
            continue
        for points, _ in parts:
            found += points
        if not any(is_empty for _, is_empty in parts):
            return found, False
    return found, True


def _character_or_end(argument: Any, flags: int, points_of: _PointsOf) -> CodePoints | None:
    """The characters of ``(?=[...]|$)``, with a line end among them; None for any other look-around."""
    direction, ((what, branches), *others) = argument
    if direction < 0 or others or str(what) != "BRANCH":
        return None
    ends = [branch for branch in branches[1] if [str(each) for _, each in branch] in (["AT_END"], ["AT_END_STRING"])]
    rest = [branch for branch in branches[1] if branch not in ends]
    if not ends or not all(map(_is_one_character, rest)):
        return None
    points = normalize([each for ((name, which),) in rest for each in points_of(str(name), which, flags)])
    # Otherwise ``$`` would say that a line end may follow, but nothing behind that.
    return points if holds(points, ord("\n")) else None


def _is_one_character(items: Any) -> bool:
    return len(items) == 1 and str(items[0][0]) in ("LITERAL", "NOT_LITERAL", "IN", "ANY")


def _points_of(
    set_of: Callable[[str, str], CodePoints], properties: dict[int, str], name: str, argument: Any, flags: int
) -> CodePoints:
    """The code points that a node of Python's tree matches.

    ``set_of`` tells those of a regex for one character, and ``properties`` what some characters stand for.
    """

    def escape(point: int) -> str:
        return properties.get(point) or f"\\U{point:08x}"

    if flags & re.IGNORECASE and set_of is code_points:
        raise _NotFollowed(r"the flag i beside \p{...}, which the package regex reads by what stands near it,")
    letters = "".join(letter for flag, letter in _FLAGS.items() if flags & flag)
    if name == "ANY":
        return set_of(".", letters)
    if name == "LITERAL":
        return set_of(f"[{escape(argument)}]", letters)
    if name == "NOT_LITERAL":
        return set_of(f"[^{escape(argument)}]", letters)
    text = ""
    negated = False
    for kind, value in argument:
        what = str(kind)
        if what == "NEGATE":
            negated = True
        elif what == "LITERAL":
            text += escape(value)
        elif what == "RANGE":
            if properties.keys() & value:
                raise _NotFollowed(r"a range that ends in \p{...}")
            text += f"{escape(value[0])}-{escape(value[1])}"
        else:
            text += _CATEGORIES[str(value)]
    return set_of(f"[{'^' * negated}{text}]", letters)


_CATEGORIES = {
    f"CATEGORY_{negation}{word}": letter.upper() if negation else letter
    for word, letter in (("DIGIT", "d"), ("SPACE", "s"), ("WORD", "w"))
    for negation in ("", "NOT_")
}
_CATEGORIES = {name: "\\" + letter for name, letter in _CATEGORIES.items()}


@lru_cache(maxsize=4096)
def _set_of(text: str, letters: str) -> CodePoints:
    if text.startswith("[^"):
        # Python folds case before it negates, so that is done by hand.
        return negate(_set_of(f"[{text[2:]}", letters))
    node = parse(text, letters, "python")
    return node.points if isinstance(node, Chars) else ()


_WORD = [("CATEGORY", "CATEGORY_WORD")]


# -- running them -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _List:
    """The threads that wait for a character or have matched, the preferred first; without those that are cut."""

    threads: tuple[_Thread, ...]

    @property
    def matches(self) -> bool:
        """Whether one has matched."""
        return any(place == _DONE for place, _ in self.threads)


class Automaton:
    """The automaton of one pattern, over a partition of the characters that several patterns share.

    Attributes
    ----------
    start
        The first state.
    looks_ahead : bool
        Whether something must not follow some texts.
    """

    def __init__(self, machine: _Machine, classes: list[CodePoints]) -> None:
        self._machine = machine
        self._classes = classes
        self._after: dict[_List, dict[int, _List]] = {}
        self._class_of: dict[str, int] = {}
        self._ending: dict[frozenset[int], set[_List]] = {}
        self.start = machine.start()
        self.looks_ahead = machine.looks_ahead

    def steps(self, state: _List) -> dict[int, _List]:
        """By class of characters: the next state, if there is one."""
        known = self._after.get(state)
        if known is None:
            known = {}
            for symbol in self._machine.symbols(state):
                after = self._machine.step(state, symbol)
                if after.threads:
                    known[symbol] = after
            self._after[state] = known
        return known

    def beside(self, other: Automaton, *, until_match: bool = False) -> Iterator[tuple[_List, _List]]:
        """The states of this automaton and of another one behind each text that may be a beginning for both.

        ``until_match``: no texts that begin with a match of the other one, whatever follows that.
        """
        start = self.start, other.start
        seen, todo = {start}, [start]
        while todo:
            spend()
            here, there = todo.pop()
            if until_match and there.matches and not other.guard(there):
                continue
            yield here, there
            own, others = self.steps(here), other.steps(there)
            for symbol in own.keys() & others.keys():
                pair = own[symbol], others[symbol]
                if pair not in seen:
                    seen.add(pair)
                    todo.append(pair)

    def class_of(self, char: str) -> int:
        """The class of a character."""
        if char not in self._class_of:
            self._class_of[char] = next(i for i, points in enumerate(self._classes) if holds(points, ord(char)))
        return self._class_of[char]

    def guard(self, state: _List) -> frozenset[int]:
        """The classes of characters that must not follow if a text ends in a state, where one can."""
        return self._machine.guard(state)

    def after(self, text: str) -> _List | None:
        """The state behind a text; None if nothing begins so."""
        state: _List | None = self.start
        for char in text:
            state = None if state is None else self.steps(state).get(self.class_of(char))
        return state

    def goes_on(self, state: _List | None) -> set[int]:
        """The classes of characters with which a state goes on."""
        return set() if state is None else set(self.steps(state))

    def ends(self) -> list[set[int]]:
        """By state in which a text may end: the classes of characters with which it goes on."""
        found: list[set[int]] = []
        seen, todo = {self.start}, [self.start]
        while todo:
            spend()
            state = todo.pop()
            steps = self.steps(state)
            if state.matches:
                found.append(set(steps))
            new = set(steps.values()) - seen
            if len(seen) + len(new) > _MAX_STATES:
                raise GrammarError("it has too many states to be followed exactly by a lexer")
            seen |= new
            todo += new
        return found

    def begins_all(self, other: Automaton) -> bool:
        """Whether each text of another automaton begins with a text of this one, or is one."""
        start = self.start, other.start
        seen, todo = {start}, [start]
        while todo:
            spend()
            here, there = todo.pop()
            if here.matches:
                continue
            if there.matches:
                return False
            own = self.steps(here)
            for symbol, after in other.steps(there).items():
                if symbol not in own:
                    return False
                pair = own[symbol], after
                if pair not in seen:
                    seen.add(pair)
                    todo.append(pair)
        return True

    @property
    def class_count(self) -> int:
        """How many classes of characters there are."""
        return len(self._classes)

    def firsts(self) -> set[int]:
        """The classes of characters with which a text begins."""
        return set(self.steps(self.start))

    def continuations(
        self, other: Automaton, *, is_first: bool = False, alphabet: frozenset[int] | None = None
    ) -> set[int]:
        """The classes of characters behind a text of this automaton with which a text of another one goes on.

        Parameters
        ----------
        other : Automaton
        is_first : bool
            Whether the lexer tries the other one first, so that no text of this one is read that begins with its match.
        alphabet : frozenset of int, optional
            The classes that all that follows is made of.
        """
        found: set[int] = set()
        for count, (here, there) in enumerate(self.beside(other, until_match=is_first)):
            if count >= _MAX_PAIRS:
                raise GrammarError("it has too many states to be followed exactly by a lexer")
            if here.matches:
                found |= other.ending(there, alphabet)
                found |= self.guard(here)
        return found if alphabet is None else found & alphabet

    def ending(self, state: _List, alphabet: frozenset[int] | None) -> set[int]:
        """The classes of an alphabet (None: of all characters) with which a text goes on that ends within it."""
        steps = self.steps(state)
        if alphabet is None:
            return set(steps)
        if alphabet not in self._ending:
            self._ending[alphabet] = self.leading_to(lambda state: state.matches, alphabet)
        return {symbol for symbol in alphabet & steps.keys() if steps[symbol] in self._ending[alphabet]}

    def leading_to(self, is_one: Callable[[_List], bool], alphabet: frozenset[int] | None = None) -> set[_List]:
        """Some states, and those that lead to them with characters of some classes (None: with any)."""
        before: dict[_List, set[_List]] = {}
        seen, todo = {self.start}, [self.start]
        while todo:
            spend()
            state = todo.pop()
            for symbol, after in self.steps(state).items():
                if alphabet is None or symbol in alphabet:
                    before.setdefault(after, set()).add(state)
                if after not in seen:
                    seen.add(after)
                    todo.append(after)
            if len(seen) > _MAX_STATES:
                raise GrammarError("it has too many states to be followed exactly by a lexer")
        found = {state for state in seen if is_one(state)}
        reached = list(found)
        while reached:
            new = before.get(reached.pop(), set()) - found
            found |= new
            reached += new
        return found

    def shortest(self, count: int, alphabet: frozenset[int] | None = None) -> list[str]:
        """Some of the shortest texts, at most ``count``, of characters of some classes (None: of any)."""
        found: list[str] = []
        todo = deque([("", self.start)])
        visits: dict[_List, int] = {}
        while todo and len(found) < count:
            spend()
            text, state = todo.popleft()
            visits[state] = visits.get(state, 0) + 1
            if visits[state] > _MOST_VISITS:
                continue
            if state.matches and text:
                found.append(text)
            todo += [
                (text + _sample(self._classes[symbol]), after)
                for symbol, after in self.steps(state).items()
                if alphabet is None or symbol in alphabet
            ]
        return found


def _sample(points: CodePoints) -> str:
    """A character of a class, one that is easy to read if there is one."""
    for char in "a0A _-.,;:'\"/x1":
        if holds(points, ord(char)):
            return char
    return next((chr(first) for first, last in points if not 0xD800 <= first <= 0xDFFF), "\0")


def automata(patterns: dict[str, str], by_package: bool = False) -> dict[str, Automaton]:
    """The automata of some patterns by name, over one partition of the characters; as :func:`first_match`.

    Raises
    ------
    GrammarError
        If one cannot be followed.
    """
    compiled = {}
    for name, pattern in patterns.items():
        try:
            compiled[name] = _compile(*_parsed(pattern, by_package))
        except _NotFollowed as reason:
            raise GrammarError(f'"{name}": {reason}') from None
    sets = list(dict.fromkeys(points for _, some in compiled.values() for points in some))
    classes = classes_of(sets)
    members = {points: frozenset(i for i, each in enumerate(classes) if holds(points, each[0][0])) for points in sets}
    return {
        name: Automaton(_Machine(code, [members[points] for points in some], len(classes)), classes)
        for name, (code, some) in compiled.items()
    }


def _place(thread: _Thread) -> int:
    return thread[0]


class _Machine:
    def __init__(self, code: list[tuple[Any, ...]], members: list[frozenset[int]], classes: int) -> None:
        self._code = code
        self._members = members
        self._classes = classes
        kinds = {instruction[0] for instruction in code}
        self.looks_ahead = _NOT_AHEAD in kinds
        self.looks_around = self.looks_ahead or _BEHIND in kinds

    def _close(self, threads: list[_Thread], last: int, cut: bool) -> _List:
        """The threads behind a character of class ``last``."""
        code = self._code
        found: list[_Thread] = []
        seen: set[_Thread] = set()
        todo = threads[::-1]
        while todo:
            spend()
            thread = todo.pop()
            if thread in seen:
                continue
            seen.add(thread)
            place, pending = thread
            kind = code[place][0]
            if kind == _CHAR:
                found.append(thread)
            elif kind == _SPLIT:
                todo += ((code[place][2], pending), (code[place][1], pending))
            elif kind == _JUMP:
                todo.append((code[place][1], pending))
            elif kind == _BEHIND:
                if last == _AT_START:
                    raise GrammarError("looking behind its beginning cannot be followed exactly by a lexer")
                if (last in self._members[code[place][1]]) != code[place][2]:
                    todo.append((place + 1, pending))
            elif kind == _NOT_AHEAD:
                todo.append((place + 1, pending | {(code[place][1], 0)}))
            else:
                found.append((_DONE, pending))
                if cut and not pending:
                    break
        return _List(tuple(found))

    def _guard_of(self, pending: _Pending) -> frozenset[int]:
        return frozenset().union(*(self._members[word[at]] for word, at in pending))

    def guard(self, state: _List) -> frozenset[int]:
        """The classes that must not follow if a text ends in a state: those that none of its matches allows."""
        guards = [self._guard_of(pending) for place, pending in state.threads if place == _DONE]
        return guards[0].intersection(*guards[1:])

    def _step(self, state: _List, symbol: int, cut: bool) -> _List:
        threads: list[_Thread] = []
        for place, pending in state.threads:
            if place == _DONE:
                if cut and symbol not in self._guard_of(pending):
                    break
            elif symbol in self._members[self._code[place][1]]:
                come = [(word, at) for word, at in pending if symbol in self._members[word[at]]]
                if all(at + 1 < len(word) for word, at in come):
                    threads.append((place + 1, frozenset((word, at + 1) for word, at in come) if come else _NOTHING))
        return self._close(threads, symbol, cut)

    def start(self) -> _List:
        """The first state of the automaton."""
        return self._checked(self._close([(0, _NOTHING)], _AT_START, True))

    def step(self, state: _List, symbol: int) -> _List:
        """The state behind a character."""
        return self._checked(self._step(state, symbol, True))

    def _checked(self, state: _List) -> _List:
        """A state of whose matches it is known by the next character whether they count.

        Behind a match, the first character of a word that must not follow can be refused at once if a thread that is
        preferred matches it, too, and what must not follow then is the rest of the word.  ``--(?!\\[\\[).*`` matches
        ``--``; if a ``[`` comes next, either ``--[`` is the match, or another ``[`` follows, and there is none.
        """
        for number, (place, pending) in enumerate(state.threads):
            for word, at in pending if place == _DONE else ():
                if at + 1 == len(word):
                    continue
                for symbol in self._members[word[at]]:
                    rest = {(each, come + 1) for each, come in pending if symbol in self._members[each[come]]}
                    after = self._step(_List(state.threads[:number]), symbol, True).threads
                    if not any(place == _DONE and behind <= rest for place, behind in after):
                        raise GrammarError(
                            "look-ahead over several characters behind its end cannot be followed exactly"
                        )
        return state

    def symbols(self, state: _List) -> set[int]:
        """The classes with which a state may go on."""
        return set().union(*(self._members[self._code[place][1]] for place, _ in state.threads if place != _DONE))

    def takes_the_longest(self) -> bool:
        """Whether the first match is always the longest."""
        begin = [(0, _NOTHING)]
        first = self._close(begin, _AT_START, True)
        start = (first, frozenset(self._close(begin, _AT_START, False).threads))
        seen = {start}
        todo = [start]
        while todo:
            cut, threads = todo.pop()
            for symbol in range(self._classes):
                everything = self._step(_List(tuple(sorted(threads, key=_place))), symbol, False)
                if not everything.threads:
                    continue
                some = self._step(cut, symbol, True)
                if everything.matches and not some.matches:
                    return False
                pair = (some, frozenset(everything.threads))
                if pair not in seen:
                    if len(seen) >= _MAX_STATES:
                        raise GrammarError("it has too many states to be followed exactly by a lexer")
                    seen.add(pair)
                    todo.append(pair)
        return True

    def language(self, classes: list[Regular]) -> FirstMatch:
        """The language of the automaton of thread lists, by elimination of its states."""
        start = self.start()
        numbers = {start: 0}
        order = [start]
        rows: list[dict[int, Regular]] = []
        for state in order:
            row: dict[int, Regular] = {}
            rows.append(row)
            for symbol in range(len(classes)):
                after = self.step(state, symbol)
                if not after.threads:
                    continue
                if after not in numbers:
                    if len(order) >= _MAX_ELIMINATED:
                        raise GrammarError("its first match has too many states to be followed exactly by a lexer")
                    numbers[after] = len(order)
                    order.append(after)
                target = numbers[after]
                row[target] = union(row.get(target, EMPTY), classes[symbol])
        ends = [at for at, state in enumerate(order) if state.matches]
        language = _paths(rows, dict.fromkeys(ends, EPSILON))
        refused: dict[int, Regular] = {}
        for at in ends:
            if guard := self.guard(order[at]):
                refused[at] = union(*(classes[symbol] for symbol in sorted(guard)))
        return FirstMatch(language, _paths(rows, refused) if refused else EMPTY)


def _paths(rows: list[dict[int, Regular]], last: dict[int, Regular]) -> Regular:
    """The ways from state 0 to some states, with something behind each."""
    end = len(rows)
    edges = {at: {**row, end: last[at]} if at in last else dict(row) for at, row in enumerate(rows)}
    # The states that are left last have the most edges.
    left = list(range(1, end))
    while left:
        spend(10)
        degree = dict.fromkeys(left, 0)
        for source, row in edges.items():
            for target in row:
                for number in {source, target} & degree.keys():
                    degree[number] += 1
        number = min(left, key=degree.__getitem__)
        left.remove(number)
        eliminate(edges, number)
    return concat(repeat(edges[0].get(0, EMPTY)), edges[0].get(end, EMPTY))
