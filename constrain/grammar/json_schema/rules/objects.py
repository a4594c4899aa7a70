"""Objects as rules."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import NamedTuple

from constrain.grammar.ir import Symbol
from constrain.grammar.json_schema.document.places import Handle, conjunction
from constrain.grammar.json_schema.lexical.layout import named_keys, other_keys
from constrain.grammar.json_schema.lexical.strings import is_text
from constrain.grammar.json_schema.lexical.texts import Every, Text, Without, Words, contains, every, spelled, without
from constrain.grammar.json_schema.normal.count_texts import few_strings, runs_short
from constrain.grammar.json_schema.normal.few_values import members_of
from constrain.grammar.json_schema.normal.key_classes import (
    FEW_KEYS,
    KeyClass,
    count_keys,
    is_inexhaustible,
    key_classes,
)
from constrain.grammar.json_schema.normal.nodes import Conflict, ObjectNode, size_range
from constrain.grammar.json_schema.normal.satisfiable import may_have_value
from constrain.grammar.json_schema.text_dependent.any_order import AnyOrder
from constrain.grammar.json_schema.text_dependent.many_members import MANY_MEMBERS, ManyMembers, Member
from constrain.grammar.json_schema.text_dependent.unique_members import MOST_COUNTED, KeysOfClass, UniqueMembers
from constrain.grammar.json_schema.writing.context import MAX_PLACES, Context, Right, Symbols, nothing
from constrain.grammar.languages.regular import EPSILON


def object_tails(context: Context, node: ObjectNode) -> list[Right] | Conflict:
    """All that may follow the opening brace."""
    is_counted = bool(node.some) or node.low is not None or node.high is not None
    # Names come first, as in the schema: messages list them in this order.
    names = _named_members(context, node) if is_counted or context.any_order else []
    if isinstance(names, Conflict):
        return names
    tails = _counting_tails(context, node, names) if is_counted else _plain_tails(context, node)
    if context.any_order and not isinstance(tails, Conflict):
        return _tails_in_any_order(context, node, names, tails)
    return tails


def _close(context: Context) -> Symbol:
    """The closing brace."""
    layout = context.layout
    return context.builder.lexeme(layout.close_object, layout.object_brackets[1])


def _many_tails(context: Context, node: ObjectNode) -> list[Right] | Conflict:
    """The members of an object that has thousands of names, and no others."""
    builder = context.builder
    members: dict[str, Member] = {}
    for name, handle in members_of(node):
        value = context.value(handle) if is_text(name) else None
        if value is not None:
            members[name] = Member(value, name in node.required)
        elif name in node.required:
            return _missing(context, node, name, handle)
    close = _close(context)
    tails: list[Right] = [] if node.required else [(close,)]
    if members:
        symbol = context.unfolded(ManyMembers(builder, context.layout, members, close), node.pointer)
        # What it derives at least, which tells whether it derives anything.
        required = [member.value for member in members.values() if member.is_required]
        for least in [required] if required else [[member.value] for member in members.values()]:
            builder.add(symbol, (*least, close))
        tails.append((symbol,))
    return tails


def _plain_tails(context: Context, node: ObjectNode) -> list[Right] | Conflict:
    """Where the members so far only decide whether there is a comma before the next one."""
    many = len(node.properties) >= MANY_MEMBERS and context.layout.has_pieces_of_keys and not node.rules
    if many and not context.any_order and context.value(node.additional) is None:
        return _many_tails(context, node)
    # This loop goes over every property there is.
    builder, layout, pointer, required_names = context.builder, context.layout, node.pointer, node.required
    add, nonterminal, value_of = builder.add, builder.nonterminal, context.member
    # A name's two languages are the same two objects every time.
    key_of = context.key
    close = _close(context)
    begun = context.begun_members
    members: Right = ()
    # Whether no member at all is possible so far.
    may_be_empty = True
    for name, handle in members_of(node):
        value = value_of(name, handle) if name.isascii() or is_text(name) else None
        required = name in required_names
        if value is None:
            if not required:
                continue
            return _missing(context, node, name, handle)
        # Alternatives that begin alike share the rules of what they begin with.
        step = members, may_be_empty, name, value, required
        known = begun.get(step)
        if known is not None:
            members, may_be_empty = known
            continue
        first_key, next_key = named_keys(layout, name)
        if required:
            ways: list[Right] = [(*members, key_of(next_key, name), value)] if members else []
        elif members:
            if len(members) > 1:
                # One symbol for what is used more than once.
                whole = nonterminal(pointer)
                add(whole, members)
                members = (whole,)
            ways = [members, (*members, key_of(next_key, name), value)]
        else:
            ways = []
        if may_be_empty:
            ways.append((key_of(first_key, name), value))
            may_be_empty = not required
        if len(ways) == 1:
            members = ways[0]
        else:
            several = nonterminal(pointer)
            for way in ways:
                add(several, way)
            members = (several,)
        begun[step] = members, may_be_empty
    others: list[tuple[Symbol | None, Symbol, Symbol]] = []
    if node.rules or (context.is_part and _has_others(context, node)):
        classes, _, keys = _other_members(context, node)
        if keys is not None and not context.any_order:
            before: list[tuple[_State, Right]] = []
            for is_possible, right in ((may_be_empty, ()), (bool(members), members)):
                if is_possible:
                    before.append((_State(0, frozenset(), (0,) * len(classes), not right), right))
            return _unique_tails(context, node, _Steps(context, node, classes, 0, None), before, keys)
        for one in classes:
            value = context.value(one.handle)
            assert value is not None
            others.append((one.first_key if may_be_empty else None, one.next_key, value))
    else:
        value = context.value(node.additional)
        if value is not None:
            first, following = other_keys(layout, filter(is_text, {**node.properties, **node.required}))
            first_symbol = builder.own_distinct_key(first, "key") if may_be_empty else None
            others.append((first_symbol, builder.own_distinct_key(following, "key"), value))
    if others:
        several = nonterminal(pointer)
        if members:
            add(several, members)
        for first_symbol, next_symbol, value in others:
            if first_symbol is not None:
                add(several, (first_symbol, value))
            add(several, (several, next_symbol, value))
        members = (several,)
    tails: list[Right] = []
    if members:
        tails.append((*members, close))
    if may_be_empty:
        tails.append((close,))
    return tails


def _missing(context: Context, node: ObjectNode, name: str, handle: Handle) -> Conflict:
    if not is_text(name):
        return Conflict("a required name holds a lone surrogate, which no UTF-8 text can", node.required[name])
    who = f"property {name!r}, which is required (at {node.required[name]}),"
    return nothing(who, context.why_nothing(handle))


# -- with numbers of members, patterns of keys, or in any order -------------------------------------


class _Member(NamedTuple):
    """Members with the same schema: one name, or a set of other keys."""

    first_key: Symbol
    next_key: Symbol
    handle: Handle
    meets: tuple[int, ...]
    """The rules of ``some`` that speak of it."""
    required: bool
    most: int | None
    """How many there can be in one object: None where that is without end, or does not matter."""
    name: str | None = None
    """The one name."""


class _State(NamedTuple):
    members: int
    """How many members there are, up to where that matters."""
    pending: frozenset[int]
    """The rules of ``some`` that are not met yet."""
    used: tuple[int, ...]
    """How many keys were used of each set that may run out before its rules of ``some`` are met."""
    is_empty: bool


def _named_members(context: Context, node: ObjectNode) -> list[_Member] | Conflict:
    """The names that may come, each alone."""
    layout = context.layout
    names: list[_Member] = []
    for name, handle in members_of(node):
        required = name in node.required
        if not is_text(name) or context.value(handle) is None:
            if required:
                return _missing(context, node, name, handle)
            continue
        first, following = named_keys(layout, name)
        meets = tuple(index for index, rule in enumerate(node.some) if contains(rule.keys, name))
        names.append(_Member(context.key(first, name), context.key(following, name), handle, meets, required, 1, name))
    return names


def _counting_tails(context: Context, node: ObjectNode, names: list[_Member]) -> list[Right] | Conflict:
    """A state for all that decides how the object may go on."""
    builder = context.builder
    others, further, keys = _other_members(context, node)
    low, high = size_range(node)
    if not others and high is not None and len(names) <= high:
        high = None
    if len(names) + further < low:
        assert node.low is not None
        return Conflict(f"there are only {len(names) + further} names for {node.low}", node.low.pointer)
    if others and not context.is_part and (low - len(node.required) > 1 or any(one.meets for one in others)):
        builder.needs_distinct_keys = True
    # Names that are still to come never are a reason to stop: with a maximum, every state knows its count.
    steps = _Steps(context, node, others, low, high)
    states = [_State(0, frozenset(range(len(node.some))), (0,) * len(others), True)]
    for position, one in enumerate(names):
        states = steps.named(states, position, one)
    # A name that was passed by does not come any more: the other keys have to be enough.
    states = [state for state in states if state.members + further >= low]
    tails: list[Right] = []
    close = _close(context)
    position = len(names)
    todo = deque(states)
    if others and keys is not None and not context.any_order:
        tails = _unique_tails(context, node, steps, [(each, steps.before(position, each)) for each in states], keys)
        todo.clear()
    elif others and high is not None and not node.some:
        tails = _repeated_tails(
            context, others, [(state, steps.symbol(position, state)) for state in states], low, high
        )
        todo.clear()
    seen = set(states)
    while todo:
        state = todo.popleft()
        if steps.may_end(state):
            tails.append((*steps.before(position, state), close))
        for place, one in enumerate(others):
            for then, right in steps.ways(state, one, place):
                builder.add(steps.symbol(position, then), (*steps.before(position, state), *right))
                if then not in seen:
                    seen.add(then)
                    todo.append(then)
    if not tails:
        where = node.some[0].value[0].pointer if node.some and node.some[0].value else node.pointer
        return Conflict("no object has the members that are demanded", where)
    return tails


def _repeated_tails(
    context: Context, others: list[_Member], ways: list[tuple[_State, Symbol]], low: int, high: int
) -> list[Right]:
    """Where only the number of further members matters: a repetition, whose rules are few however great the number."""
    builder = context.builder
    close = _close(context)
    pairs = [(one, context.value(one.handle)) for one in others]
    first = builder.choice([(one.first_key, value) for one, value in pairs if value is not None])
    following = builder.choice([(one.next_key, value) for one, value in pairs if value is not None])
    tails: list[Right] = []
    for state, symbol in ways:
        if not state.is_empty:
            left = high - state.members
            tails.append((symbol, builder.repeat(following, max(low - state.members, 0), left), close))
            continue
        if low == 0:
            tails.append((close,))
        if high > 0:
            tails.append((first, builder.repeat(following, max(low - 1, 0), high - 1), close))
    return tails


class _Steps:
    """The rules for one more member."""

    def __init__(self, context: Context, node: ObjectNode, others: list[_Member], low: int, high: int | None) -> None:
        self._context = context
        self._some = node.some
        self._others = others
        self._low = low
        self._high = high
        self._symbols = Symbols(context.builder, node.pointer, "the number and the patterns of members", MAX_PLACES)
        # Of which states it is written what follows on them behind all names.
        self._written: set[_State | None] = set()

    def symbol(self, position: int, state: _State) -> Symbol:
        """What leads to a state, before the name at ``position``."""
        return self._symbols.symbol((position, state))

    def named(self, states: list[_State], position: int, one: _Member) -> list[_State]:
        """From the states before a name to those after it."""
        after: dict[_State, None] = {}
        for state in states:
            if not one.required:
                after[state] = None
                if not state.is_empty:
                    self._context.builder.add(self.symbol(position + 1, state), (self.symbol(position, state),))
            for then, right in self.ways(state, one):
                after[then] = None
                self._context.builder.add(self.symbol(position + 1, then), (*self.before(position, state), *right))
        return list(after)

    def before(self, position: int, state: _State) -> Right:
        """What leads to a state, before the name at ``position``: nothing if there is no member yet."""
        return () if state.is_empty else (self.symbol(position, state),)

    def may_end(self, state: _State) -> bool:
        """Whether the members may be all."""
        return state.members >= self._low and not state.pending

    def behind(self, state: _State, close: Symbol) -> list[Right]:
        """One more member behind all names, and what must still come, from left to right."""
        symbols = self._symbols
        rights: list[Right] = []
        # None stands for the state itself, which the others may lead back to.
        todo: list[_State | None] = [None]
        seen: set[_State] = set()
        has_end = False
        for each in todo:
            ways = [way for place, one in enumerate(self._others) for way in self.ways(each or state, one, place)]
            if not self._some:
                # What is needed besides is more of the same.
                return [(*right, close) for _, right in ways]
            is_new = each is not None and each not in self._written
            for then, right in ways:
                whole = (*right, symbols.symbol((-1, then)))
                if each is None:
                    rights.append(whole)
                elif is_new:
                    self._context.builder.add(symbols.symbol((-1, each)), whole)
                if then not in seen:
                    seen.add(then)
                    todo.append(then)
            if each is not None and self.may_end(each):
                has_end = True
                if is_new:
                    self._context.builder.add(symbols.symbol((-1, each)), (close,))
            self._written.add(each)
        return rights if has_end else []

    def ways(self, state: _State, one: _Member, place: int = -1) -> Iterator[tuple[_State, Right]]:
        """The states after a member, and what it is; ``place``: of those without a name, which it is."""
        if self._high is not None and state.members >= self._high:
            return
        used = state.used
        if place >= 0 and one.most is not None:
            if used[place] >= one.most:
                return
            used = (*used[:place], used[place] + 1, *used[place + 1 :])
        count = state.members + 1 if self._high is not None else min(state.members + 1, self._low)
        key = one.first_key if state.is_empty else one.next_key
        meets = [index for index in one.meets if index in state.pending]
        # What every such member meets is met, and no choice.
        met_by_all = [index for index in meets if conjunction(one.handle, self._some[index].value) == one.handle]
        meets = [index for index in meets if index not in met_by_all]
        for size in range(len(meets) + 1):
            for met in combinations(meets, size):
                handle = one.handle
                for index in met:
                    handle = conjunction(handle, self._some[index].value)
                value = self._context.member(one.name, handle)
                if value is not None:
                    pending = state.pending.difference(met, met_by_all)
                    then = _State(count, pending, self._still_counted(used, pending), False)
                    yield then, (key, value)

    def _still_counted(self, used: tuple[int, ...], pending: frozenset[int]) -> tuple[int, ...]:
        """The numbers of keys that were used, where they still matter."""
        if not any(used):
            return used
        pairs = zip(used, self._others, strict=True)
        return tuple(0 if pending.isdisjoint(one.meets) else count for count, one in pairs)


_Unique = list[tuple[_Member, KeysOfClass | None]]
"""Members whose keys the rules keep unique: each with what they need to know of its keys; None if that is nothing."""


def _other_members(context: Context, node: ObjectNode) -> tuple[list[_Member], int, _Unique | None]:
    """The keys without a name in the schema, class by class; and how many there are, up to where that matters.

    Where rules have to keep them unique, these members once more, with those of small classes one by one.
    """
    names = frozenset(filter(is_text, {**node.properties, **node.required}))
    layout, builder = context.layout, context.builder
    classes = key_classes(node)
    possible = [each for each in classes if _has_value(context, each[1])]
    further = _count_further(possible, size_range(node)[0] - len(node.required))
    counts = _counts_that_matter(context, node, possible)
    endless = [is_inexhaustible(keys) for keys, _, _ in possible]
    # Where a key of any kind may come, there is always another one; but at times there may only be keys of one class.
    may_be_of_one_class = node.some and (node.high is not None or any(most is not None for most in counts))
    is_limited = not all(endless) and bool(may_be_of_one_class or len(possible) < len(classes))
    rest = without(Words(names)) if names else every()
    members: list[_Member] = []
    unique: _Unique = []
    for (keys, handle, meets), most, is_endless in zip(possible, counts, endless, strict=True):
        if most == 0:
            continue
        words = few_strings(keys, FEW_KEYS) if is_limited and not context.is_part and not is_endless else None
        lexeme = builder.lexeme if context.is_part or words is not None else builder.distinct_key
        if keys == rest:
            first, following = other_keys(layout, sorted(names))
        else:
            first, following = layout.keys(partial(spelled, keys))
        members.append(_Member(lexeme(first, "key"), lexeme(following, "key"), handle, meets, False, most))
        if words is None:
            # Of endlessly many keys the engine sees to it that none comes twice, and that is all.
            is_free = is_endless and not context.is_part
            unique.append((members[-1], None if is_free else KeysOfClass(keys, not context.is_part, is_endless)))
        for word in sorted(filter(is_text, words or ())):
            first, following = named_keys(layout, word)
            one = _Member(
                builder.own_lexeme(first, word), builder.own_lexeme(following, word), handle, meets, False, 1, word
            )
            unique.append((one, None))
        if context.is_part or words is not None:
            continue
        if keys != rest:
            builder.run_short_of_keys(_AreScarce(_without_words(keys)))
    return members, further, unique if is_limited or context.is_part else None


@dataclass(frozen=True)
class _AreScarce:
    """Whether some keys are scarce."""

    keys: Text

    def __call__(self) -> bool:
        return runs_short(self.keys)


def _without_words(keys: Text) -> Text:
    """The same keys and some more: without so many names endlessly many are still endlessly many."""
    if not isinstance(keys, Every):
        return keys
    return every(*[item for item in keys.items if not (isinstance(item, Without) and isinstance(item.item, Words))])


def _has_value(context: Context, handle: Handle) -> bool:
    return context.value(handle) is not None and may_have_value(context.normal, handle, context.satisfiable)


def _count_further(classes: list[KeyClass], most: int) -> int:
    """How many keys there are in some classes, or ``most`` if there are more."""
    found = 0
    for keys, _, _ in sorted(classes, key=lambda each: not is_inexhaustible(each[0])) if most > 0 else ():
        found += count_keys(keys, most - found)
    return found


def _counts_that_matter(context: Context, node: ObjectNode, classes: list[KeyClass]) -> list[int | None]:
    """For each class how many keys there are, if a rule of ``some`` may be left without any; else None."""
    if not node.some:
        return [None] * len(classes)
    enough = MOST_COUNTED if node.high is None else min(node.high.value, MOST_COUNTED)
    counts: list[int | None] = [None] * len(classes)
    # The rules that some class can always meet.
    always: set[int] = set()
    # Those first of which there are likely to be many: the others may need no count then.
    for place in sorted(range(len(classes)), key=lambda each: len(classes[each][2])):
        keys, handle, meets = classes[place]
        if not meets or (node.high is None and always.issuperset(meets)):
            continue
        count = count_keys(keys, enough)
        if count < enough:
            counts[place] = count
        else:
            always.update(index for index in meets if _has_value(context, conjunction(handle, node.some[index].value)))
    if node.high is None:
        counts = [
            None if always.issuperset(meets) else count for (_, _, meets), count in zip(classes, counts, strict=True)
        ]
    return counts


# -- in any order --------------------------------------------------------------------------------


def _tails_in_any_order(context: Context, node: ObjectNode, names: list[_Member], tails: list[Right]) -> list[Right]:
    """The same members in every order; whether there are any at all does not depend on the order."""
    others, _, keys = _other_members(context, node)
    if keys is None and (not names or (len(names) == 1 and not others)):
        return tails
    order = _any_order(context, node, [*names, *others] if keys is None else [*names, *(one for one, _ in keys)])
    members = context.unfolded(order if keys is None else _unique(context, order, keys), node.pointer)
    nothing_inside = (context.builder.lexeme(context.layout.close_object),)
    for tail in tails:
        if tail != nothing_inside:
            context.builder.add(members, tail)
    return [*(tail for tail in tails if tail == nothing_inside), (members,)]


def _any_order(context: Context, node: ObjectNode, members: list[_Member], before: int = 0) -> AnyOrder:
    """Some members, before which there may be ``before`` others."""
    low, high = size_range(node)
    if high is not None and before + len(members) <= high and all(one.name is not None for one in members):
        high = None
    close = None if context.layout.close_object is EPSILON else _close(context)
    order = AnyOrder(close, low, high, len(node.some))
    for one in members:
        for size in range(len(one.meets) + 1):
            for met in combinations(one.meets, size):
                handle = one.handle
                for index in met:
                    handle = conjunction(handle, node.some[index].value)
                value = context.member(one.name, handle)
                if value is not None:
                    order.add_way(one.first_key, one.next_key, value, met)
        order.end_member(named=one.name is not None, required=one.required, most=one.most)
    return order


# -- within a longer text --------------------------------------------------------------------------


def _has_others(context: Context, node: ObjectNode) -> bool:
    """Whether there may be members without a name."""
    if not node.rules and not node.some:
        return _has_value(context, node.additional)
    return any(_has_value(context, handle) for _, handle, _ in key_classes(node))


def _unique(context: Context, order: AnyOrder, keys: _Unique) -> AnyOrder | UniqueMembers:
    """Members in any order whose keys are unique; ``keys`` are those of the last of them."""
    first = len(order.named) - len(keys)
    classes = {place: each for place, (_, each) in enumerate(keys, first) if each is not None}
    if not classes:
        return order
    context.makes_lexemes = True
    return UniqueMembers(order, classes, context.layout)


def _unique_tails(
    context: Context, node: ObjectNode, steps: _Steps, before: list[tuple[_State, Right]], keys: _Unique
) -> list[Right]:
    """Members behind those with a name, whose rules see to it that no key comes twice."""
    builder, close = context.builder, _close(context)
    template = _unique(
        context, _any_order(context, node, [one for one, _ in keys], len({**node.properties, **node.required})), keys
    )
    is_closed = context.layout.close_object is not EPSILON
    tails: list[Right] = []
    for state, right in before:
        # They are not followed, but tell whether anything is derived.
        least = steps.behind(state, close)
        if steps.may_end(state) and (state.is_empty or not is_closed):
            tails.append((*right, close))
        elif steps.may_end(state):
            least.append((close,))
        if least:
            known = state.members, sum(1 << index for index in state.pending), state.is_empty
            members = context.unfolded(template.behind(known), node.pointer)
            tails.append((*right, members))
            for each in least:
                builder.add(members, each)
    return tails
