"""Rules that take so many tokens: ``[max_tokens]`` and ``[min_tokens]``.

Each token that holds a part of a limited rule counts.  Behind the last one that the rule may take, it is closed: what
follows is what follows the rule.  Where the rule cannot end there, since no other way to read the text is left, it goes
on until it can, so a text is always one of the grammar's.  A rule that names its end (``[suffix]``, ``[stop]``) may end
without it then.

Where a text can be read in several ways, a rule counts from the last place where it can have begun.

A rule that takes so many at least is written with gates, which its tokens open (grammar/least_tokens.py).

The condition needs no mask of its own, but for the token of gates, which is left out.  In the place of the state behind
a token comes one that lacks what is in a rule that is over (open_rules.py), or in which gates are open (gates.py), and
masks, steps and budgets go on from there.  The step is kept as one that closed rules or opened gates, so that it does
so again where a text is read once more.

A budget goes first: where it does not suffice for what follows the rule, the rule goes on.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from itertools import compress
from typing import Any, NamedTuple

from constrain.engine.conditions.budget.budget import Budget
from constrain.engine.conditions.budget.known_completions import fewest_tokens, tokens_from
from constrain.engine.conditions.limited_rules.gates import Begun, Gates
from constrain.engine.conditions.limited_rules.open_rules import Instance, OpenRules, RenumberedError, Steps
from constrain.engine.conditions.protocol import Walk, condition_of
from constrain.engine.grammar_tables import GrammarTables
from constrain.engine.history import BEFORE, GENERATION, STATE, STEP, Link, Place
from constrain.engine.parser.companions import ALWAYS_ASKS, Int64Array
from constrain.engine.traveller import Traveller, bytes_of
from constrain.engine.vocabulary.bitmasks import Bitmask, forbid
from constrain.errors import LimitError
from constrain.grammar.languages.derivatives import Automaton

_AT_ONCE = frozenset((0,))

_MOST_FORCED = 4096
"""So many forced bytes are looked through."""

_MOST_BEGINS = 256
"""So many places a rule with gates can have begun at."""

_MOST_TRIES = 8
"""So often an Earley set may get another number while a step is read."""


class _Begin(NamedTuple):
    """Where an instance began."""

    tokens: int
    """How many tokens there were before the one that it begins in."""
    steps: int
    """How many steps there were before that."""
    skipped: frozenset[int]
    """How many bytes of that step may stand before it."""


class _Record(NamedTuple):
    """What is known behind a step."""

    key: tuple[int, int]
    """Of which tables the numbers are."""
    state: int
    """The state whose Earley sets this names.  It allows the same as the cursor's, but a text that is read again may
    come to others: which of two configurations that allow the same is dropped goes by the numbers of their sets."""
    steps: int
    tokens: int
    begun: dict[Instance, _Begin]
    """The instances that the text may be in."""
    behind: frozenset[int]
    """The Earley sets that begin here."""
    gated: dict[Instance, tuple[_Begin, ...]]
    """Those with gates before them that have begun: the places where they can have, each in one place of a step."""
    before: Any
    """The record before; None at the beginning."""


class ClosingStep:
    """A step behind which limited rules were closed, or gates opened."""

    rules: frozenset[int]
    """Which were closed, by their places in :attr:`constrain.grammar.ir.GrammarIR.token_limits`."""

    def settle(self, compiled: GrammarTables, place: Place) -> int:
        """The state of a place whose last step is this one."""
        return _read_again(compiled, place._parent).state


class ClosingToken(ClosingStep, int):
    """Such a step that is a token."""


class ClosingBytes(ClosingStep, bytes):
    """Such a step of bytes."""


class LimitedRules:
    """The condition (conditions/protocol.py) that limited rules end in time, and not before.

    Parameters
    ----------
    compiled : GrammarTables
        Whose lock the caller holds.
    """

    asks_always = True
    companion: Int64Array = ALWAYS_ASKS

    def __init__(self, compiled: GrammarTables) -> None:
        self._rules, self._gates = compiled.kept(OpenRules), compiled.kept(Gates)
        self._record = _first(compiled, self._rules)
        self.note = int(self._gates.are_there)

    def push(self, cursor: Walk, step: int | bytes, behind: Place, word: int) -> bool:
        """Close what is over behind the step, and open gates; False for a step with a gate in it."""
        if self._gates.are_in(step):
            return False
        compiled = cursor.compiled
        try:
            self._push(cursor, step, behind)
            return True
        except RenumberedError:
            pass
        for _ in range(_MOST_TRIES):
            with compiled.keeping_numbers(), suppress(RenumberedError):
                self._push(cursor, step, behind)
                return True
        raise LimitError("the grammar needs more memory than it may have for a step")

    def _push(self, cursor: Walk, step: int | bytes, behind: Place) -> None:
        """The same, unless Earley sets get other numbers meanwhile."""
        compiled, rules = cursor.compiled, self._rules
        rules.check()
        record = self._record
        if record.key != rules.key:
            record = _read_again(compiled, cursor._parent)
            if record.key != rules.key:
                raise RenumberedError
        then = rules.step(record.state, cursor._parent, step)
        record = _after(compiled, rules, record, then, step)
        opening = _opened(compiled, rules, record, behind._parent)
        if opening is not record:
            record = opening
            behind._parent = _marked(behind._parent, frozenset())
        closing, closed = _closed(compiled, rules, record, behind._parent)
        behind._state = record.state
        # A place, since its state may get another number while the budget is asked.
        there = Traveller(compiled, closing.state, behind._parent)
        if closed and self._may_close(cursor, there):
            record = closing
            behind._state = there._state
            behind._parent = _marked(behind._parent, closed)
        self._record = record

    @staticmethod
    def _may_close(cursor: Walk, there: Place) -> bool:
        """Whether the budget suffices for what follows at the place that closing leads to."""
        budget = condition_of(cursor, Budget)
        if budget is None:
            return True
        compiled = cursor.compiled
        steps = cursor._steps + 1
        if budget.account.plan(steps):
            return False
        if compiled.ir.distinct_keys:
            return budget.is_ample(compiled, there._state, steps)
        return tokens_from(compiled, there) <= budget.settle(steps).left

    def certain(self, cursor: Walk, data: bytes) -> tuple[bytes, bool]:
        """How much of some bytes is forced wherever tokens end in them, and whether what follows is known there too.

        ``data`` is what the grammar forces.  A rule that names its end may end without it behind a token, so a text
        need not be one of the grammar's: with ``rule[suffix=";;", max_tokens=2]: /a;?/`` the grammar forces ``;;``
        behind ``a``, but the text may be over behind ``a;``.  So only one byte is certain where such a rule is open.
        The caller holds the lock.
        """
        rules, compiled = self._rules, cursor.compiled
        cut = {index for index, limit in enumerate(rules.limits) if limit.body is not None or limit.least > 1}
        if not cut:
            return data, True
        data = data[:_MOST_FORCED]
        place = Traveller(compiled, cursor._state, cursor._parent)
        for index in range(len(data)):
            place.read(data[index : index + 1])
            rules.check()
            if any(rule in cut for rule, _ in rules.instances(place._state)):
                return data[: index + 1], False
        return data, True

    def restrict(self, cursor: Any, out: Bitmask, index: int) -> None:
        """Leave out the token of gates; the state says all the rest."""
        for token in self._gates.tokens:
            forbid(out[index], token)

    def rewind(self, steps: int) -> None:
        """Be as after the first ``steps`` steps."""
        while self._record.steps > steps:
            self._record = self._record.before

    def copy(self) -> LimitedRules:
        """One that goes its own way from here on."""
        twin = LimitedRules.__new__(LimitedRules)
        twin.__dict__.update(self.__dict__)
        return twin


def _marked(link: Any, rules: frozenset[int]) -> Link:
    """A link whose step is noted as one that closed rules."""
    step = link[STEP]
    closing: ClosingBytes | ClosingToken = ClosingBytes(step) if isinstance(step, bytes) else ClosingToken(step)
    closing.rules = rules
    return link[GENERATION], link[STATE], closing, link[BEFORE]


def _first(compiled: GrammarTables, rules: OpenRules) -> _Record:
    """What is known at the beginning of a text."""
    rules.check()
    state = compiled.start_state
    behind = rules.sets_of(state)
    begin = _Begin(0, 0, _AT_ONCE)
    begun = {instance: begin for earley_set in behind for instance in rules.predicted(earley_set)}
    return _Record(rules.key, state, 0, 0, begun, behind, {}, None)


def _after(compiled: GrammarTables, rules: OpenRules, record: _Record, then: Steps, step: int | bytes) -> _Record:
    """What is known behind a step, before anything is closed."""
    tokens = 1
    if isinstance(step, bytes):
        spelled = fewest_tokens(compiled, step) if step else []
        tokens = len(step) if spelled is None else len(spelled)
    behind = then.behind
    if not (step if isinstance(step, bytes) else compiled.vocabulary.tokens[step]):
        # Where the text is, what began behind the step before begins behind this one too.
        behind = record.behind
    end = _Begin(record.tokens + tokens, record.steps + 1, _AT_ONCE)
    begun: dict[Instance, _Begin] = {}
    gated: dict[Instance, tuple[_Begin, ...]] = {}
    with_gates = compiled.kept(Gates).under_way(then.state)
    for instance in rules.instances(then.state):
        _, earley_set = instance
        skipped = then.within.get(earley_set, frozenset()) | (_AT_ONCE if earley_set in record.behind else frozenset())
        if instance in with_gates:
            new = (_Begin(record.tokens, record.steps, frozenset((each,))) for each in sorted(skipped))
            gated[instance] = (*record.gated.get(instance, ()), *new)
        if earley_set in behind:
            begun[instance] = end
            continue
        begin = _Begin(record.tokens, record.steps, skipped)
        begun[instance] = begin if skipped else record.begun.get(instance, begin)
    return _Record(record.key, then.state, end.steps, end.tokens, begun, behind, gated, record)


def _closed(
    compiled: GrammarTables, rules: OpenRules, record: _Record, link: Link | None
) -> tuple[_Record, frozenset[int]]:
    """What is known where what is over is closed, and which rules are; the same record if none is."""

    def is_over(instance: Instance) -> bool:
        begin, most = record.begun.get(instance), rules.limits[instance[0]].tokens
        return begin is not None and most is not None and record.tokens - begin.tokens >= most

    over = [instance for instance in record.begun if is_over(instance)]
    if not over:
        return record, frozenset()
    cut = [instance for instance in over if _may_be_cut(compiled, rules, record, instance, link)]
    found, replaced = rules.closed(record.state, is_over, cut)
    if found == record.state:
        return record, frozenset()
    begun, gated = {}, {}
    for index, earley_set in rules.instances(found):
        # Only sets that the state is in are replaced: those in which rules began are the same ones.
        olds = [old for rule, old in record.begun if rule == index and earley_set in (old, replaced.get(old))]
        # What is there and was not, begins here: it follows a rule that was cut.
        here = _Begin(record.tokens, record.steps, _AT_ONCE)
        begun[index, earley_set] = _last([record.begun[index, old] for old in olds] or [here])
        places = tuple(dict.fromkeys(place for old in olds for place in record.gated.get((index, old), ())))
        if places:
            gated[index, earley_set] = places
    behind = frozenset(replaced.get(each, each) for each in record.behind)
    behind |= rules.sets_of(found) - rules.sets_of(record.state) - set(replaced.values())
    found_record = record._replace(state=found, begun=begun, behind=behind, gated=gated)
    return found_record, frozenset(index for index, _ in over)


def _last(begins: list[_Begin]) -> _Begin:
    """The last of some beginnings; where they are in one step, with all places in it."""
    last = max(begin[:2] for begin in begins)
    return _Begin(*last, frozenset().union(*(begin.skipped for begin in begins if begin[:2] == last)))


def _opened(compiled: GrammarTables, rules: OpenRules, record: _Record, link: Link | None) -> _Record:
    """What is known where the gates are open that tokens have opened; the same record if there are none."""
    gates = compiled.kept(Gates)
    if not any(record.gated.values()):
        return record
    step = record.tokens - record.before.tokens
    begun = {
        instance: [
            Begun(
                record.tokens - step - place.tokens,
                record.tokens - place.tokens,
                partial(_text, compiled, record, place, link),
            )
            for place in places
        ]
        for instance, places in record.gated.items()
        if places
    }
    found = gates.opened(record.state, begun)
    gated = {}
    for instance, places in record.gated.items():
        if len(places) > 1:
            places = tuple(compress(places, gates.alive(found, instance, begun[instance])))
            if len(places) > _MOST_BEGINS:
                raise LimitError(f"a rule with [min_tokens] can have begun at more than {_MOST_BEGINS} places")
        # Behind the last gate nothing more is to be done.
        least = gates.least(instance)
        gated[instance] = tuple(place for place in places if record.tokens - place.tokens + 1 < least)
    # What is there and was not, begins here: it follows a rule whose gates were all opened at once.
    here = _Begin(record.tokens, record.steps, _AT_ONCE)
    known = {instance: record.begun.get(instance, here) for instance in rules.instances(found)}
    behind = record.behind | rules.sets_of(found) - rules.sets_of(record.state)
    return record._replace(state=found, begun=known, behind=behind, gated=gated)


def _texts(compiled: GrammarTables, record: _Record, begin: _Begin, link: Link | None) -> list[bytes]:
    """The texts of what began in a step, one for each place in it."""
    pieces = []
    for _ in range(record.steps - begin.steps):
        assert link is not None
        pieces.append(bytes_of(compiled, link))
        link = link[BEFORE]
    text = b"".join(reversed(pieces))
    return [text[skipped:] for skipped in begin.skipped]


def _text(compiled: GrammarTables, record: _Record, begin: _Begin, link: Link | None) -> bytes:
    """The text of what began in one place of a step."""
    (text,) = _texts(compiled, record, begin, link)
    return text


def _may_be_cut(
    compiled: GrammarTables, rules: OpenRules, record: _Record, instance: Instance, link: Link | None
) -> bool:
    """Whether a rule that names its end is complete but for that end."""
    body = rules.limits[instance[0]].body
    if body is None:
        return False
    automaton = Automaton(body)
    return any(map(automaton.matches, _texts(compiled, record, record.begun[instance], link)))


class _Read(NamedTuple):
    """A text that was read again."""

    link: Link
    record: _Record

    def ends_at(self, link: Link) -> bool:
        """Whether this is the text that a link ends: links are made anew, with the same link before them."""
        return link[BEFORE] is self.link[BEFORE] and link[STEP] is self.link[STEP]


def _read_again(compiled: GrammarTables, link: Link | None) -> _Record:
    """What is known at the end of a text, by taking again the steps that are not known."""
    rules = compiled.kept(OpenRules)
    for _ in range(_MOST_TRIES):
        rules.check()
        known: _Read | None = rules.last_read
        way = []
        here = link
        while here is not None and not (known is not None and known.ends_at(here)):
            way.append(here)
            here = here[BEFORE]
        try:
            with compiled.keeping_numbers():
                record = _follow(compiled, rules, way, None if here is None else known)
        except RenumberedError:
            continue
        if link is not None:
            rules.last_read = _Read(link, record)
        return record
    raise LimitError("the grammar needs more memory than it may have for a text")


def _follow(compiled: GrammarTables, rules: OpenRules, way: list[Link], known: _Read | None) -> _Record:
    """The same, for links of which the last one is the first step behind what is known."""
    record = _first(compiled, rules) if known is None else known.record
    parent = None if known is None else known.link
    for link in reversed(way):
        step = link[STEP]
        plain = bytes(step) if isinstance(step, bytes) else int(step)
        then = rules.step(record.state, parent, plain)
        parent = compiled.generation, record.state, step, parent
        record = _after(compiled, rules, record, then, plain)
        if isinstance(step, ClosingStep):
            record = _opened(compiled, rules, record, parent)
            if step.rules:
                record, _ = _closed(compiled, rules, record, parent)
        if record.key != (compiled.generation, compiled.tables_made):
            raise RenumberedError
    return record
