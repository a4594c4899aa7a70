"""Which limited rules a state is in, and the state in which some of them are closed.

An *instance* of a limited rule is where it begins: a pair of the rule and the Earley set that predicts it.  All that a
limited rule is made of is its own (grammar/token_limits.py), so an item of the parser tells which rules it is in: the
items that wait for it, and for these in turn, lead to the Earley sets in which the rules began.

A rule is closed at a place by leaving out of the state what is in it: its items of each Earley set, and its lexemes of
each lexer state.  What is left is every other way to read the text, among them the ways on which the rule has just come
to its end.  Worked example: ``start: thought "</t>"`` with ``thought: /(.|\\n)*/``, behind ``ab <``.  The state has
the Earley set in which ``thought`` began, with its lexeme under way, and those behind it, where ``"</t>"`` begins, or
began with the ``<``.  Without the former ``<`` and ``/`` may follow, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from constrain.engine.grammar_tables import GrammarTables
from constrain.engine.history import Link
from constrain.engine.parser.configurations import push_byte, set_behind_lexemes
from constrain.engine.parser.rules import BRANCH, END
from constrain.engine.parser.transplant import EARLEY_SET, LEXER_STATE, STATE, plant
from constrain.engine.storage import schemas as t
from constrain.engine.storage.header import CLASSES, START_NT
from constrain.engine.storage.statuses import STOPPED
from constrain.engine.traveller import Traveller
from constrain.engine.waiting import Waiting, waiting_items

_MOST_KNOWN = 1 << 15

Member = tuple[int, int]
"""A part of a lexer state: a lexeme, and the expression for what may be left of it."""

Instance = tuple[int, int]
"""A limited rule, by its place in the grammar's list, and the Earley set that predicts it."""


class RenumberedError(Exception):
    """Earley sets have got other numbers in between."""


class Steps(NamedTuple):
    """What a step of a text begins: for each of its bytes, and behind it, the Earley sets that begin there."""

    within: dict[int, frozenset[int]]
    """Those that begin behind one of its bytes but the last, each with how many bytes stand before it."""
    behind: frozenset[int]
    """Those that begin behind it."""
    state: int
    """The state that it leads to."""


class OpenRules:
    """What the states of a compiled grammar say of limited rules; for :meth:`GrammarTables.kept`.

    The caller of all methods holds the lock of the grammar.
    """

    def __init__(self, compiled: GrammarTables) -> None:
        self._compiled = compiled
        ir = compiled.ir
        self.limits = ir.token_limits
        self._of_symbol = {limit.symbol: index for index, limit in enumerate(self.limits)}
        self._rules = {rule for limit in self.limits for rule in (limit.symbol, *limit.nonterminals)}
        self._lexemes = {lexeme for limit in self.limits for lexeme in limit.lexemes}
        self._ignored = set(ir.ignore)
        # Rules made on demand are in a limited rule or not by what they are made for.
        self._looks_everywhere = ir.make_unfolding is not None
        self._renew()

    def _renew(self) -> None:
        """Forget what is known of other tables, in which all has other numbers."""
        compiled = self._compiled
        self.key = compiled.generation, compiled.tables_made
        self.last_read: Any = None
        """What is known at the end of the text that was read again last: for its forks, and what it goes on with."""
        self._waiting: dict[int, Waiting] = {}
        self._configurations: dict[int, list[tuple[int, int]]] = {}
        self._members: dict[int, list[Member]] = {}
        self._instances: dict[int, frozenset[Instance]] = {}
        self._steps: dict[tuple[int, int | bytes], Steps] = {}
        self._seams: dict[tuple[int, int, int], frozenset[int]] = {}

    def check(self) -> None:
        """Be ready for the tables there are."""
        compiled = self._compiled
        known = len(self._waiting) + len(self._configurations) + len(self._members)
        known += len(self._instances) + len(self._steps) + len(self._seams)
        if self.key != (compiled.generation, compiled.tables_made) or known > _MOST_KNOWN:
            self._renew()

    def confirm(self) -> None:
        """Raise RenumberedError if the tables are others than those that this is ready for."""
        if self.key != (self._compiled.generation, self._compiled.tables_made):
            raise RenumberedError

    # -- tables ------------------------------------------------------------------------------------

    def _get(self, slot: int) -> Any:
        return self._compiled._tables.get(slot)

    def _pairs(self, slot: int, owner: Any) -> list[tuple[int, int]]:
        return [(first, second) for first, second in self._get(slot)[owner["offset"] :][: owner["count"]].tolist()]

    def configurations(self, state: int) -> list[tuple[int, int]]:
        """The pairs (Earley set, lexer state) of a state; not to be changed."""
        found = self._configurations.get(state)
        if found is None:
            found = self._configurations[state] = self._pairs(t.CONFIGURATIONS, self._get(t.STATES)[state])
        return found

    def members(self, lexer_state: int) -> list[Member]:
        """The parts of a lexer state; not to be changed."""
        found = self._members.get(lexer_state)
        if found is None:
            record = self._get(t.LEXER_STATES)[lexer_state]
            members = self._get(t.LEXER_MEMBERS)[record["offset"] :][: 2 * record["count"]]
            found = [(lexeme, expression) for lexeme, expression in members.reshape(-1, 2).tolist()]
            self._members[lexer_state] = found
        return found

    def initial(self, earley_set: int) -> int:
        """The lexer state in which an Earley set begins."""
        return int(self._get(t.CORES)[self._get(t.EARLEY_SETS)[earley_set]["core"]]["initial"])

    def waiting(self, earley_set: int) -> Waiting:
        """What an Earley set waits for."""
        if earley_set not in self._waiting:
            self._waiting[earley_set] = waiting_items(self._compiled._tables, earley_set)
        return self._waiting[earley_set]

    def around(self, item: tuple[int, int]) -> frozenset[Instance]:
        """The instances that an item (a dot, an origin) may be in."""
        return self._around(item)[0]

    def plant(self, kind: int, accepts: int, parts: Iterable[tuple[int, int]]) -> int:
        """The number of a lexer state, an Earley set or a state that is made of pairs (parser/transplant.py)."""
        return self._with_pairs(lambda pairs: plant(self._compiled.ctx, kind, accepts, pairs), parts)

    def _with_pairs(self, kernel: Callable[[Any], Any], parts: Iterable[tuple[int, int]]) -> int:
        """What a kernel gives for pairs of numbers."""
        pairs = np.array([first << 32 | second for first, second in parts], np.int64)

        def attempt() -> int:
            # Making room may have given all that the pairs name other numbers.
            self.confirm()
            return int(kernel(pairs))

        return self._compiled._repeat(attempt)

    # -- instances -----------------------------------------------------------------------------------

    def predicted(self, earley_set: int) -> list[Instance]:
        """The limited rules that an Earley set predicts."""
        waiting = self.waiting(earley_set)
        return [(index, earley_set) for symbol, index in self._of_symbol.items() if symbol in waiting]

    def _around(self, item: tuple[int, int]) -> tuple[frozenset[Instance], bool]:
        """The instances that an item (a dot, an origin) may be in, and whether it may be in none."""
        left = self._get(t.DOT_LEFT)
        found: set[Instance] = set()
        is_free = False
        todo = [(int(left[item[0]]), item[1], True)]
        seen = set(todo)
        while todo:
            rule, origin, is_bare = todo.pop()
            if rule in self._of_symbol:
                found.add((self._of_symbol[rule], origin))
                is_bare = False
            elif not self._looks_everywhere and rule not in self._rules:
                # From here up there is no limited rule: those are made of rules of their own.
                is_free |= is_bare
                continue
            above = self.waiting(origin).get(rule, ())
            # Only what a text begins with is waited for by nothing.
            is_free |= is_bare and not above
            for dot, began in above:
                parent = int(left[dot]), began, is_bare
                if parent not in seen:
                    seen.add(parent)
                    todo.append(parent)
        return frozenset(found), is_free

    def _is_closed(self, item: tuple[int, int], is_over: Callable[[Instance], bool]) -> bool:
        """Whether an item is closed with the instances that are over: all those of one rule that it may be in are."""
        instances, is_free = self._around(item)
        by_rule: dict[int, bool] = {}
        for instance in instances:
            by_rule[instance[0]] = by_rule.get(instance[0], True) and is_over(instance)
        return not is_free and any(by_rule.values())

    def items_for(self, earley_set: int, lexeme: int) -> list[tuple[int, int]]:
        """The items that wait for a lexeme in an Earley set; none if no limited rule is made of it."""
        if self._looks_everywhere or lexeme in self._lexemes:
            return self.waiting(earley_set).get(~lexeme, [])
        return []

    def instances(self, state: int) -> frozenset[Instance]:
        """All that a state may be in, those that begin there too."""
        if state not in self._instances:
            found: set[Instance] = set()
            for earley_set, lexer_state in self.configurations(state):
                items = set(self._pairs(t.EARLEY_ITEMS, self._get(t.EARLEY_SETS)[earley_set]))
                for lexeme, _ in self.members(lexer_state):
                    items.update(self.items_for(earley_set, lexeme))
                for item in items:
                    found |= self.around(item)
            self._instances[state] = frozenset(found)
        return self._instances[state]

    # -- steps -----------------------------------------------------------------------------------------

    def sets_of(self, state: int) -> frozenset[int]:
        """The Earley sets of a state; at the beginning of a text they begin there."""
        return frozenset(earley_set for earley_set, _ in self.configurations(state))

    def step(self, state: int, parent: Link | None, step: int | bytes) -> Steps:
        """Which Earley sets begin in a step, and where it leads.

        Raises
        ------
        RenumberedError
            If they have got other numbers meanwhile.
        """
        known = self._steps.get((state, step))
        if known is not None:
            return known
        compiled = self._compiled
        data = bytes(step) if isinstance(step, bytes) else compiled.vocabulary.tokens[step]
        place = Traveller(compiled, state, parent)
        within: dict[int, frozenset[int]] = {}
        behind: frozenset[int] = frozenset()
        depends_on_text = False
        for index, byte in enumerate(data):
            for earley_set in behind:
                within[earley_set] = within.get(earley_set, frozenset()) | {index}
            before = place._state
            then = compiled.run_at(place, push_byte, byte)
            if then == STOPPED:
                depends_on_text = True
                place._parent = (compiled.generation, state, data[:index], parent)
                place.read(data[index : index + 1])
            else:
                place._state = then
            self.confirm()
            seam = before, byte, place._state
            if seam not in self._seams:
                self._seams[seam] = self._new_sets(*seam)
            behind = self._seams[seam]
        found = Steps(within, behind, place._state)
        if not depends_on_text:
            self._steps[state, step] = found
        return found

    def _new_sets(self, before: int, byte: int, behind: int) -> frozenset[int]:
        """The Earley sets that begin with a byte: lexemes end with it, and other ones may begin."""
        compiled = self._compiled
        transitions, lexer_states = self._get(t.LEXER_TRANSITIONS), self._get(t.LEXER_STATES)
        classes, byte_class = int(compiled.ctx[CLASSES]), int(compiled._tables.array(t.BYTE_CLASSES)[byte])
        went_on, ended = set(), []
        for earley_set, lexer_state in self.configurations(before):
            then = int(transitions[lexer_state * classes + byte_class])
            if then > 0:
                went_on.add((earley_set, then))
                if lexer_states[then]["accept"]:
                    ended.append((earley_set, int(lexer_states[then]["accept"])))
        if not ended:
            return frozenset()
        new = self.behind_lexemes(ended)
        at_start = {pair for pair in self.configurations(behind) if pair[1] == self.initial(pair[0])}
        if (new, self.initial(new)) in at_start:
            return frozenset((new,))
        # No lexeme begins there; or another set took its place, which depends on the text.
        return frozenset(earley_set for earley_set, _ in at_start - went_on)

    def behind_lexemes(self, ended: Iterable[tuple[int, int]]) -> int:
        """The Earley set that begins where lexemes end: for some Earley sets the lexemes, as a set of them."""
        return self._with_pairs(lambda pairs: set_behind_lexemes(self._compiled.ctx, pairs), ended)

    # -- closing ---------------------------------------------------------------------------------------

    def closed(
        self,
        state: int,
        is_over: Callable[[Instance], bool],
        cut: Iterable[Instance],
    ) -> tuple[int, dict[int, int]]:
        """The state in which some instances are closed, and the Earley sets in it that take the place of others.

        It is the same state if nothing else than these instances could go on.

        Parameters
        ----------
        state : int
        is_over : callable (Instance) -> bool
            Which instances are closed.
        cut : iterable of Instance
            Those that may end here, although by their rules they do not.

        Raises
        ------
        RenumberedError
            If making room gave Earley sets other numbers.
        """
        accepts = self.accepts(state)
        kept, replaced = self._left(state, is_over)
        behind, ends = self._behind_all(cut, is_over)
        if not (kept or accepts or behind or ends):
            # The rule around one that is cut cannot end there.
            behind, ends = self._behind_all(cut, lambda instance: False)
        accepts |= ends
        kept += behind
        if not kept and not accepts:
            return state, {}
        return self.plant_beside(state, accepts, kept), replaced

    def accepts(self, state: int) -> int:
        """1 if a text may end in a state, else 0."""
        return int(self._get(t.STATES)[state]["accepts"])

    def plant_beside(self, state: int, accepts: int, configurations: Iterable[tuple[int, int]]) -> int:
        """The state of some configurations, with the marks of another one, in the place of which it comes."""
        marks = int(self._get(t.STATE_MARKS)[state])
        found = self.plant(STATE, accepts, configurations)
        self._compiled._tables.array(t.STATE_MARKS)[found] |= marks
        return found

    def _left(self, state: int, is_over: Callable[[Instance], bool]) -> tuple[list[tuple[int, int]], dict[int, int]]:
        """The configurations of a state without what is in closed instances, and the Earley sets that take the place
        of others in them."""
        replaced: dict[int, int] = {}
        kept: list[tuple[int, int]] = []
        for earley_set, lexer_state in self.configurations(state):
            other = replaced.get(earley_set)
            if other is None:
                other = replaced[earley_set] = self._without(earley_set, is_over)
            if other >= 0 and (lexer := self._lexer_without(earley_set, other, lexer_state, is_over)) != 0:
                kept.append((other, lexer))
        return kept, {old: new for old, new in replaced.items() if new >= 0}

    def _without(self, earley_set: int, is_over: Callable[[Instance], bool]) -> int:
        """An Earley set without what is in closed instances; -1 if nothing is left."""
        record = self._get(t.EARLEY_SETS)[earley_set]
        items = self._pairs(t.EARLEY_ITEMS, record)
        left = [item for item in items if not self._is_closed(item, is_over)]
        if len(left) == len(items):
            return earley_set
        return self.plant(EARLEY_SET, int(record["accepts"]), left) if left else -1

    def _lexer_without(self, earley_set: int, other: int, lexer_state: int, is_over: Callable[[Instance], bool]) -> int:
        """A lexer state without the lexemes of closed instances; 0 if no lexeme is left of some."""
        members = self.members(lexer_state)
        wanted = self.waiting(other)

        def goes_on(lexeme: int) -> bool:
            items = self.items_for(earley_set, lexeme)
            return not items or not all(self._is_closed(item, is_over) for item in items)

        left = [
            (lexeme, expression)
            for lexeme, expression in members
            if lexeme in self._ignored or (~lexeme in wanted and goes_on(lexeme))
        ]
        if len(left) == len(members):
            return lexer_state
        return self.plant(LEXER_STATE, 0, left) if left else 0

    def _behind_all(
        self, cut: Iterable[Instance], is_over: Callable[[Instance], bool]
    ) -> tuple[list[tuple[int, int]], int]:
        """The configurations behind instances that end here, but for what is closed, and whether the text may end."""
        found: list[tuple[int, int]] = []
        accepts = 0
        for instance in cut:
            behind, ends = self._behind(instance, is_over)
            found += behind
            accepts |= ends
        return found, accepts

    def _behind(self, instance: Instance, is_over: Callable[[Instance], bool]) -> tuple[list[tuple[int, int]], int]:
        """The same for one instance; nothing where it is not known."""
        symbols, left, nullable_rest = self._get(t.SYMBOLS), self._get(t.DOT_LEFT), self._get(t.NULLABLE_REST)
        index, origin = instance
        todo = [(self.limits[index].symbol, origin)]
        seen = set(todo)
        items: set[tuple[int, int]] = set()
        accepts = 0
        while todo:
            rule, began = todo.pop()
            accepts |= int(rule == int(self._compiled.ctx[START_NT]))
            for dot, above in self.waiting(began).get(rule, ()):
                symbol = int(symbols[dot + 1])
                if BRANCH <= symbol < END:
                    return [], 0
                if symbol != END and not self._is_closed((dot + 1, above), is_over):
                    items.add((dot + 1, above))
                parent = int(left[dot]), above
                if nullable_rest[dot + 1] and parent not in seen:
                    seen.add(parent)
                    todo.append(parent)
        if not items:
            return [], accepts
        earley_set = self.plant(EARLEY_SET, accepts, sorted(items))
        initial = self.initial(earley_set)
        return [(earley_set, initial)] if initial else [], accepts
