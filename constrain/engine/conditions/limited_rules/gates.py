"""Rules with gates, which take so many tokens at least: the state in which some of their gates are open.

How such a rule is written is told in grammar/least_tokens.py.  An instance of it that is under way is a configuration
whose lexer state has a guarded lexeme; with gates open, it is one whose Earley set holds nothing but the item before a
later lexeme of the rule, with the lexer state in which that lexeme has read the text of the rule so far.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from constrain.engine.conditions.limited_rules.open_rules import Instance, Member, OpenRules
from constrain.engine.grammar_tables import GrammarTables
from constrain.engine.parser.rules import END
from constrain.engine.parser.transplant import EARLEY_SET, LEXER_STATE, STATE
from constrain.engine.storage import schemas as t
from constrain.engine.traveller import Traveller
from constrain.grammar.tokens import GATE

_GATE = bytes((GATE,))

_Members = set[Member]


class Begun(NamedTuple):
    """A place where an instance may have begun, seen from behind a step."""

    before: int
    """How many tokens it had taken before the step."""
    now: int
    """How many it has taken with the step, at least one."""
    text: Callable[[], bytes]
    """Gives its text so far, which is seldom wanted, and long."""


class Gates:
    """The gates of a compiled grammar's rules; for :meth:`GrammarTables.kept`.

    The caller of all methods holds the lock of the grammar, and :class:`OpenRules` is ready for its tables.

    Attributes
    ----------
    tokens : tuple of int
        The tokens that are a gate and nothing else, which are never allowed; without any there are no gates, or no
        token spells one.
    are_there : bool
        Whether there are gates.
    have_costs : bool
        Whether a budget can count them.
    """

    def __init__(self, compiled: GrammarTables) -> None:
        self._compiled, self._rules = compiled, compiled.kept(OpenRules)
        gated = [limit for limit in self._rules.limits if limit.least > 1]
        # The text of such a rule holds no tokens.
        self._lexemes = {lexeme for limit in gated for lexeme in limit.lexemes}.intersection(compiled.ir.token_lexemes)
        self._known_dots: dict[int, tuple[int, int]] = {}
        self.are_there = bool(gated)
        tokens = compiled.vocabulary.tokens if gated else ()
        self.tokens = tuple(token for token, data in enumerate(tokens) if data == _GATE)
        self.have_costs = bool(self.tokens) or not gated

    def are_in(self, step: int | bytes) -> bool:
        """Whether a step holds a gate, so that no text has it."""
        return self.are_there and (_GATE in step if isinstance(step, bytes) else step in self.tokens)

    def least(self, instance: Instance) -> int:
        """How many tokens an instance takes at least; 1 if it has no gates."""
        return max(1, self._rules.limits[instance[0]].least)

    def under_way(self, state: int) -> dict[Instance, dict[int, _Members]]:
        """The instances with gates before them that have begun: by how many are open, their parts of lexer states."""
        if not self.are_there:
            return {}
        found: dict[Instance, dict[int, _Members]] = {}
        for earley_set, lexer_state in self._rules.configurations(state):
            for member in self._rules.members(lexer_state):
                for instance, opened in self._gated_by(earley_set, member).items():
                    found.setdefault(instance, {}).setdefault(opened, set()).add(member)
        return found

    def _gated_by(self, earley_set: int, member: Member) -> dict[Instance, int]:
        """The instances that a part of a lexer state is the guarded text of, and how many of their gates are open.

        None of an instance of which nothing has been read.
        """
        if member[0] not in self._lexemes:
            return {}
        rules = self._rules
        found = {}
        for dot, origin in rules.items_for(earley_set, member[0]):
            for instance in rules.around((dot, origin)):
                if rules.limits[instance[0]].least > 1:
                    found[instance] = dot - self._dots(instance[0])[0]
        if any(origin == earley_set for _, origin in found) and member in rules.members(rules.initial(earley_set)):
            return {}
        return found

    def opened(self, state: int, begun: dict[Instance, list[Begun]]) -> int:
        """The state in which the gates of some instances are open.

        Parameters
        ----------
        state : int
        begun : dict of Instance to list of Begun
            Instances of :meth:`under_way`, each with the places where it may have begun, before the last step's end.

        Raises
        ------
        RenumberedError
            If making room gave Earley sets other numbers.
        """
        rules = self._rules
        under_way = self.under_way(state)
        kept = []
        for earley_set, lexer_state in rules.configurations(state):
            members = rules.members(lexer_state)
            left = [member for member in members if begun.keys().isdisjoint(self._gated_by(earley_set, member))]
            if len(left) < len(members):
                lexer_state = rules.plant(LEXER_STATE, 0, left) if left else 0
            if lexer_state:
                kept.append((earley_set, lexer_state))
        accepts = rules.accepts(state)
        for instance, places in begun.items():
            for place in places:
                is_alone = sum(place.before == other.before for other in places) == 1
                ways = under_way.get(instance, {}).get(place.before, set())
                if not is_alone:
                    ways = ways & self._members_behind(instance, place.before, place.text())
                if ways:
                    found, ends = self._behind(instance, place, ways)
                    kept += found
                    accepts |= ends
        return rules.plant_beside(state, accepts, dict.fromkeys(kept))

    def alive(self, state: int, instance: Instance, places: list[Begun]) -> list[bool]:
        """Which of several places an instance may have begun at, in a state in which their gates are open."""
        under_way = self.under_way(state).get(instance, {})
        return [
            not under_way.get(place.now, set()).isdisjoint(self._members_behind(instance, place.now, place.text()))
            for place in places
        ]

    def _dots(self, index: int) -> tuple[int, int]:
        """The dots at the beginning of a rule, and before its text."""
        if index not in self._known_dots:
            get: Any = self._compiled._tables.get
            rules, symbols = get(t.RULES), get(t.SYMBOLS)
            rule = self._rules.limits[index].symbol
            begin = text = -1
            for dot in get(t.RULE_STARTS)[rules[rule] : rules[rule + 1]].tolist():
                last = dot
                while symbols[last + 1] != END:
                    last += 1
                if ~int(symbols[last]) in self._lexemes:
                    begin = dot
                else:
                    text = last
            self._known_dots[index] = begin, text
        return self._known_dots[index]

    def _behind(self, instance: Instance, place: Begun, ways: _Members) -> tuple[list[tuple[int, int]], int]:
        """The configurations in which an instance goes on behind a place's tokens, and whether the text may end.

        It may end itself only if it has taken enough tokens.
        """
        rules, get = self._rules, self._compiled._tables.get
        begin, text_dot = self._dots(instance[0])
        dot = begin + place.now if place.now + 1 < self.least(instance) else text_dot
        earley_set = rules.plant(EARLEY_SET, 0, [(dot, instance[1])])
        lexeme = ~int(get(t.SYMBOLS)[dot])
        # Where the lexeme is the same as before, it need not read the text again.
        if any(member[0] != lexeme for member in ways):
            ways = self._members_at(instance, dot, place.text())
        found, accepts = [], 0
        for member in sorted(ways):
            lexer_state = rules.plant(LEXER_STATE, 0, [member])
            found.append((earley_set, lexer_state))
            ended = int(get(t.LEXER_STATES)[lexer_state]["accept"])
            if ended and place.now >= self.least(instance):
                behind = rules.behind_lexemes([(earley_set, ended)])
                accepts |= int(get(t.EARLEY_SETS)[behind]["accepts"])
                if initial := rules.initial(behind):
                    found.append((behind, initial))
        return found, accepts

    def _members_behind(self, instance: Instance, opened: int, text: bytes) -> _Members:
        return self._members_at(instance, self._dots(instance[0])[0] + opened, text)

    def _members_at(self, instance: Instance, dot: int, text: bytes) -> _Members:
        """What the lexeme at a dot is behind a text."""
        rules = self._rules
        earley_set = rules.plant(EARLEY_SET, 0, [(dot, instance[1])])
        lexeme = ~int(self._compiled._tables.get(t.SYMBOLS)[dot])
        place = Traveller(self._compiled, rules.plant(STATE, 0, [(earley_set, rules.initial(earley_set))]), None)
        place.read(text)
        rules.confirm()
        return {
            member
            for there, lexer_state in rules.configurations(place._state)
            if there == earley_set
            for member in rules.members(lexer_state)
            if member[0] == lexeme
        }
