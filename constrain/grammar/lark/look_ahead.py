"""Terminals whose match depends on what follows, among those that a lexer tries in order.

Python's strings are an example: two quotes are one, if no third quote follows.  Here the language of such a terminal
has all its texts, also where something follows that must not, and a lexeme beside it is those texts *with* it
(``refused`` of :class:`.first_match.FirstMatch`), which no parser takes.  So a text of the terminal ends only where
nothing of the kind follows.  Where it does, the lexer tries the terminals that come later in its order, such as strings
in three quotes.  So those are put before the terminal, or it is put behind them, if no text begins with a match of two
terminals that change places.  What is not certain otherwise is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lark.lexer import TerminalDef

from constrain.errors import GrammarError
from constrain.grammar.lark.first_match import Automaton
from constrain.limits import spend


def ordered(
    terminals: Sequence[TerminalDef],
    automata: Mapping[str, Automaton],
    contexts: Sequence[frozenset[str]],
    shifts: Mapping[str, set[int]],
    inside: Mapping[str, list[TerminalDef]],
) -> list[TerminalDef]:
    """The terminals in an order in which those with look-ahead can be read.

    Parameters
    ----------
    terminals : sequence of TerminalDef
        In the lexer's order.
    automata : mapping of str to Automaton
        All over one partition of the characters.
    contexts : sequence of frozenset of str
        By state of the parser: the terminals that the lexer looks for.
    shifts : mapping of str to set of int
        By terminal: the states behind it.
    inside : mapping of str to list of TerminalDef
        By regex: the strings that it matches as a whole, as which its texts are read.

    Raises
    ------
    GrammarError
        If something depends on look-ahead that cannot be followed; it names the terminal.
    """
    found = list(terminals)
    for terminal in terminals:
        name = terminal.name
        automaton = automata[name]
        if not automaton.looks_ahead:
            continue
        rivals = _rivals(name, contexts)
        at = place = next(i for i, each in enumerate(found) if each.name == name)
        for i in range(at + 1, len(found)):
            rival = found[i].name
            if rival not in rivals or not _goes_on_instead(automaton, automata[rival]):
                continue
            between = {each.name for each in found[at:i]} & _rivals(rival, contexts)
            if not any(_both_match(automata[rival], automata[each]) for each in between):
                # Neither this one nor those between are read where the other one is.
                found.insert(at, found.pop(i))
                at = place = at + 1
            else:
                place = i
        for passed in found[at + 1 : place + 1]:
            if passed.name in rivals and _both_match(automaton, automata[passed.name]):
                raise GrammarError(f'"{name}": its look-ahead, beside "{passed.name}", cannot be followed exactly')
        found.insert(place, found.pop(at))
        for other in [found[place], *(each for each in found[place + 1 :] if each.name in rivals)]:
            begins = _behind_shorter(automaton, automata[other.name])
            if not begins:
                continue
            # A string that the other one matches counts if the guarded text begins with it.
            read_as = [each.name for each in inside[other.name] if automaton.after(each.pattern.value) is not None]
            states = shifts.get(other.name, set()).union(*(shifts.get(each, ()) for each in read_as))
            readable = set().union(*(contexts[state] for state in states))
            if not states or any(begins & automata[each].firsts() for each in readable):
                raise GrammarError(f'"{name}": its look-ahead, beside "{other.name}", cannot be followed exactly')
    return found


def _rivals(name: str, contexts: Sequence[frozenset[str]]) -> set[str]:
    """The terminals that the lexer looks for together with one."""
    return set().union(*(context for context in contexts if name in context))


def _goes_on_instead(automaton: Automaton, other: Automaton) -> bool:
    """Whether another terminal can be read where one has matched and what follows must not."""
    for here, there in automaton.beside(other):
        guard = automaton.guard(here) if here.matches else frozenset()
        for symbol in guard:
            # Where the text goes on with what must not follow: the other one matches it, or a longer text that this one
            # does not match.
            if there.matches and symbol not in other.guard(there):
                return True
            if symbol in other.steps(there) and _matches_alone(automaton, here, other, there, symbol):
                return True
    return False


def _matches_alone(automaton: Automaton, here: Any, other: Automaton, there: Any, symbol: int) -> bool:
    """Whether another terminal matches a text that begins with a character, before this one matches at all."""
    first = automaton.steps(here).get(symbol), other.steps(there)[symbol]
    todo: list[tuple[Any, Any]] = [first]
    seen = {first}
    while todo:
        spend()
        here, there = todo.pop()
        if here is not None and here.matches:
            # What must not follow this text is looked at where it ends.
            continue
        if there.matches:
            return True
        for symbol, after in other.steps(there).items():
            pair = None if here is None else automaton.steps(here).get(symbol), after
            if pair not in seen:
                seen.add(pair)
                todo.append(pair)
    return False


def _both_match(automaton: Automaton, other: Automaton) -> bool:
    """Whether some text begins with a match of both terminals."""
    # Behind a match of one, only the other is followed.
    todo: list[tuple[Any, Any]] = [(automaton.start, other.start)]
    seen = set(todo)
    while todo:
        spend()
        here, there = todo.pop()
        if here is not None and here.matches and (there is None or there.matches):
            return True
        if there is not None and there.matches and here is None:
            return True
        symbols = set(automaton.steps(here) if here is not None else other.steps(there))
        if here is not None and there is not None:
            symbols |= set(other.steps(there))
        for symbol in symbols:
            has_matched = here is None or (here.matches and symbol not in automaton.guard(here))
            other_has = there is None or (there.matches and symbol not in other.guard(there))
            after = None if has_matched else automaton.steps(here).get(symbol)
            behind = None if other_has else other.steps(there).get(symbol)
            # None stands for a terminal that has matched; one that cannot match any more ends the search.
            if (after is None and not has_matched) or (behind is None and not other_has):
                continue
            if (after, behind) not in seen:
                seen.add((after, behind))
                todo.append((after, behind))
    return False


def _behind_shorter(automaton: Automaton, other: Automaton) -> set[int]:
    """What may come first behind a text of another terminal, within a longer text of this one that has a guard."""
    guarded = automaton.leading_to(lambda state: state.matches and bool(automaton.guard(state)))
    found: set[int] = set()
    for here, there in automaton.beside(other):
        if there.matches:
            for symbol in automaton.steps(here).keys() - other.guard(there):
                after = automaton.steps(here)[symbol]
                longer = other.steps(there).get(symbol)
                # Where the other terminal matches one more character, that is its text.
                is_longer = longer is not None and longer.matches and not other.guard(longer)
                if after in guarded and not is_longer:
                    found.add(symbol)
    return found
