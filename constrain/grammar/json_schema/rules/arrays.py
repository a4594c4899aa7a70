"""Arrays as rules."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import cache

from constrain.errors import LimitError
from constrain.grammar.ir import Symbol
from constrain.grammar.json_schema.document.places import Handle
from constrain.grammar.json_schema.lexical.numbers import NumberForm
from constrain.grammar.json_schema.normal import nodes as n
from constrain.grammar.json_schema.normal.counted_items import NextItems, kinds_of_items
from constrain.grammar.json_schema.normal.few_values import FewValues, members_of
from constrain.grammar.json_schema.normal.intersect import number_fits
from constrain.grammar.json_schema.normal.key_classes import other_classes
from constrain.grammar.json_schema.text_dependent.membership import Membership
from constrain.grammar.json_schema.text_dependent.repeated_items import RepeatedItems
from constrain.grammar.json_schema.text_dependent.scarce_items import (
    MAX_SCARCE,
    MOST_PLACES,
    ScarceItems,
    scarce_values,
)
from constrain.grammar.json_schema.text_dependent.unique_items import (
    ScarceUniqueItems,
    UniqueItems,
    can_be_different,
)
from constrain.grammar.json_schema.writing.context import Context, Right, Symbols, nothing
from constrain.grammar.json_schema.writing.scalars import is_regular_number
from constrain.limits import spend

MAX_UNIQUE = 64
"""How many values an item may have where ``uniqueItems`` is enforced one by one."""


MAX_DIFFERENT = 10_000
"""The greatest ``minItems`` beside ``uniqueItems``: an item more than is there must be known to exist."""


def array_tails(context: Context, node: n.ArrayNode) -> list[Right] | n.Conflict:
    """All that may follow the opening bracket."""
    unique = node.unique is not None and (node.high is None or node.high.value > 1)
    if node.repeated is not None:
        return _repeating_tails(context, node)
    if node.contains or unique:
        return _counting_tails(context, node, unique)
    return _plain_tails(context, node)


def _plain_tails(context: Context, node: n.ArrayNode) -> list[Right] | n.Conflict:
    builder = context.builder
    comma = builder.lexeme(context.layout.comma, "','")
    close = builder.lexeme(context.layout.close_array, "']'")
    low, high = n.size_range(node)
    elements: list[Symbol] = []
    item: Symbol | None = None
    for index, handle in enumerate((*node.prefix, node.items)):
        if high is not None and index >= high:
            break
        symbol = context.value(handle)
        if symbol is None:
            # Nothing can stand here: the array ends before it at the latest.
            high = index
            if low > high:
                assert node.low is not None
                who = f"item {index}, which must be there (at {node.low.pointer}),"
                return nothing(who, context.why_nothing(handle))
            break
        if index < len(node.prefix):
            elements.append(symbol)
        else:
            item = symbol
    tails: list[Right] = [(close,)] if low == 0 else []
    members: Right = ()
    for count, one in enumerate(elements, 1):
        members = (*members, comma, one) if members else (one,)
        if count >= low:
            if len(members) > 1:
                whole = builder.nonterminal(node.pointer)
                builder.add(whole, members)
                members = (whole,)
            tails.append((*members, close))
    if item is None:
        return tails
    fixed = len(elements)
    most = None if high is None else high - fixed
    if fixed == 0 and low <= 1 and most is None:
        several = builder.nonterminal(node.pointer)
        builder.add(several, (item,))
        builder.add(several, (several, comma, item))
        tails.append((several, close))
        return tails
    least = max(low - fixed, 1)
    if fixed == 0:
        members, least, most = (item,), least - 1, None if most is None else most - 1
    if most != 0:
        pair = builder.sequence((comma, item))
        members = (*members, builder.repeat(pair, least, most))
    tails.append((*members, close))
    return tails


# -- with contains and uniqueItems --------------------------------------------------------------


State = tuple[int, tuple[int, ...], frozenset[Hashable]]
"""How many items there are (up to where that matters), how often each ``contains`` was met, and the values used."""

# In place of the values, once one of them was there twice.
_REPEATED: frozenset[Hashable] = frozenset(("repeated",))


def _counting_tails(context: Context, node: n.ArrayNode, unique: bool) -> list[Right] | n.Conflict:
    """A state for all that decides how the array may go on."""
    builder = context.builder
    comma = builder.lexeme(context.layout.comma, "','")
    close = builder.lexeme(context.layout.close_array, "']'")
    low, high = n.size_range(node)
    enough = max([low, len(node.prefix), *(each.start for each in node.contains)])
    states = Symbols(builder, node.pointer, "uniqueItems" if unique or node.repeated else "contains")
    tails: list[Right] = []
    if unique and not _is_finite(context, node):
        return _unique_tails(context, node)
    one_by_one = unique or node.repeated is not None
    if one_by_one:
        # Where the array itself must be different from others, there are rules for all values together.
        context.value(node.items)
    start: State = (0, (0,) * len(node.contains), frozenset())
    seen = {start}
    todo = deque([start])
    next_items = NextItems(node, context.normal)
    values_of = cache(lambda handle: list(_values(context, handle, one_by_one)))
    while todo:
        spend()
        state = todo.popleft()
        index, counts, used = state
        done = all(count >= each.low for count, each in zip(counts, node.contains, strict=True))
        if index >= low and done and (node.repeated is None or used is _REPEATED):
            tails.append((states.symbol(state), close) if index else (close,))
        if high is not None and index >= high:
            continue
        for handle, then_counts in next_items.of(index, counts):
            for key, symbol in values_of(handle):
                then_used = used
                if unique:
                    if key in used:
                        continue
                    then_used = used | {key}
                elif node.repeated is not None and used is not _REPEATED:
                    then_used = _REPEATED if key in used else used | {key}
                then_index = index + 1 if high is not None else min(index + 1, max(enough, 1))
                then: State = (then_index, then_counts, then_used)
                right = (states.symbol(state), comma, symbol) if index else (symbol,)
                builder.add(states.symbol(then), right)
                if then not in seen:
                    seen.add(then)
                    todo.append(then)
    if not tails:
        return _unsatisfiable(node)
    return tails


def _unsatisfiable(node: n.ArrayNode) -> n.Conflict:
    where = node.contains[0].pointer if node.contains else node.unique or node.pointer
    return n.Conflict(f"no array has all that is demanded together: {', '.join(_demands(node))}", where)


def _demands(node: n.ArrayNode) -> list[str]:
    """All that an array demands, with the pointers."""
    found = _schemas_of_items(node)
    for each in node.contains:
        count = f"at least {each.low}" if each.high is None else f"{each.low} to {each.high}"
        found.append(f"contains {count} (at {each.pointer})")
    found += [str(limit) for limit in (node.low, node.high) if limit is not None]
    if node.unique is not None:
        found.append(f"uniqueItems (at {node.unique})")
    if node.repeated is not None:
        found.append(f"items that are repeated (not {node.repeated})")
    return found


def _schemas_of_items(node: n.ArrayNode) -> list[str]:
    return [f"items (at {place.pointer})" for place in dict.fromkeys(sum((*node.prefix, node.items), ()))]


def _unique_tails(context: Context, node: n.ArrayNode) -> list[Right] | n.Conflict:
    """All different, where the items may have many values."""
    assert node.unique is not None
    tails = _counting_tails(context, node, False) if node.contains else _plain_tails(context, node)
    if isinstance(tails, n.Conflict):
        return tails
    low = n.size_range(node)[0]
    if low > MAX_DIFFERENT:
        raise LimitError(f"{node.low} beside uniqueItems: it can be at most {MAX_DIFFERENT}", node.unique)
    unsupported = _first_unsupported(context, node)
    if unsupported is not None:
        context.refuse(
            f"uniqueItems is not supported for items that have {unsupported[0]} (at {unsupported[1]})", node.unique
        )
        return tails
    few = FewValues(context.normal, other_classes)
    scarce = scarce_values(node, few) if _may_run_out(node, few) else []
    if scarce:
        ways = ScarceItems(node, scarce, few, Membership(context, few).has)
        if ways.places > MOST_PLACES:
            beside = "contains" if node.contains else "prefixItems"
            context.refuse(f"uniqueItems is not supported beside {beside} and so many items of few values", node.unique)
            return tails
        if not ways.ways(ways.start):
            return [tail for tail in tails if len(tail) == 1] or _unsatisfiable(node)
        items, empty = _unfolded(context, ScarceUniqueItems(context, node, context.layout, scarce), tails)
        return [*empty, (items,)]
    too_few = low > 0 and not node.prefix and len(few.of(node.items, low)) < low
    if too_few or not can_be_different(node, few, 0, low, frozenset()):
        assert node.low is not None
        schemas = " and ".join(_schemas_of_items(node)) or "the items"
        reason = f"there are not as many different values of {schemas} as {node.low} demands"
        return n.Conflict(f"{reason} with uniqueItems (at {node.unique})", node.low.pointer)
    items, empty = _unfolded(context, UniqueItems(context, node, context.layout), tails)
    return [*empty, (items,)]


def _may_run_out(node: n.ArrayNode, few: FewValues) -> bool:
    """Whether it may matter how many values are left of some kind of item, for others that must still come.

    Without ``contains``, values of a short prefix are looked after otherwise (see ``can_be_different``).
    """
    if node.contains:
        return True
    high = n.size_range(node)[1]
    later = [node.items] if node.prefix and (high is None or high > len(node.prefix)) else []
    if len(node.prefix) > MAX_UNIQUE:
        later += node.prefix
    enough = MAX_SCARCE if high is None else min(high, MAX_SCARCE)
    return any(0 < len(few.of(handle, enough)) < enough for handle in later)


def _repeating_tails(context: Context, node: n.ArrayNode) -> list[Right] | n.Conflict:
    """Some item twice: what ``not`` makes of ``uniqueItems``."""
    assert node.repeated is not None
    if node.high is not None and node.high.value < 2:
        return n.Conflict(
            f"no item comes twice (as it must, since not {node.repeated}) with {node.high}", node.repeated
        )
    if _is_finite(context, node):
        return _counting_tails(context, node, False)
    plain = replace(node, repeated=None)
    tails = _counting_tails(context, plain, False) if node.contains else _plain_tails(context, plain)
    if isinstance(tails, n.Conflict):
        return tails
    what = "prefixItems" if node.prefix else "contains" if node.contains else None
    if what is not None:
        context.refuse(f"the complement of uniqueItems is not supported beside {what}", node.repeated)
        return tails
    unsupported = _first_unsupported(context, node)
    if unsupported is not None:
        reason = f"the complement of uniqueItems is not supported for items that have {unsupported[0]}"
        context.refuse(f"{reason} (at {unsupported[1]})", node.repeated)
        return tails
    if context.value(node.items) is None:
        who = f"an item that comes twice (since not {node.repeated})"
        return nothing(who, context.why_nothing(node.items))
    items, _ = _unfolded(context, RepeatedItems(context, node, context.layout), tails)
    return [(items,)]


def _unfolded(
    context: Context, template: UniqueItems | ScarceUniqueItems | RepeatedItems, tails: list[Right]
) -> tuple[Symbol, list[Right]]:
    """A rule of all tails that have items, whose values are told apart; and the tails without any."""
    context.makes_lexemes = True
    items = context.unfolded(template, template.node.pointer)
    close = (context.builder.lexeme(context.layout.close_array, "']'"),)
    for tail in tails:
        if tail != close:
            context.builder.add(items, tail)
    return items, [tail for tail in tails if tail == close]


def _first_unsupported(context: Context, node: n.ArrayNode) -> tuple[str, str] | None:
    """What in the items rules cannot be made for, that tell different values apart; and where."""
    if not context.layout.tells_values:
        return "endlessly many values, in arguments that are not JSON", node.pointer
    known = context.told_apart
    todo = [handle for handle in kinds_of_items(node) if handle not in known]
    seen = set(todo)
    for handle in todo:
        for one in context.normal(handle).nodes:
            found: list[Handle] = []
            if isinstance(one, n.StringNode):
                irregular = n.irregular_term(one)
                if irregular is not None:
                    return str(irregular.text), irregular.pointer
            if isinstance(one, n.NumberNode) and not is_regular_number(one):
                divisor = next(iter((*one.divisors, *one.not_divisors)))
                return f"multipleOf {divisor.value}", divisor.pointer
            if isinstance(one, n.ArrayNode):
                if one.repeated is not None:
                    return "the complement of uniqueItems", one.pointer
                if one.contains:
                    return "contains", one.pointer
                if one.prefix and one.unique is not None:
                    return "uniqueItems beside prefixItems", one.pointer
                found = [*one.prefix, one.items]
            elif isinstance(one, n.ObjectNode):
                if one.some:
                    return "conditions on members without a name", one.pointer
                if context.is_part and any(context.normal(handle).nodes for _, handle in other_classes(one)):
                    return "members without a name, within a text", one.pointer
                found = [handle for _, handle in members_of(one)]
                found += [handle for _, handle in other_classes(one)]
            for part in found:
                if part not in seen and part not in known:
                    seen.add(part)
                    todo.append(part)
    known |= seen
    return None


def _values(context: Context, handle: Handle, unique: bool) -> Iterator[tuple[Hashable, Symbol]]:
    if not unique:
        symbol = context.value(handle)
        if symbol is not None:
            yield None, symbol
        return
    for node in context.normal(handle).nodes:
        singles = _singles(node)
        assert singles is not None  # as of the items themselves
        for key, one in singles:
            symbol = context.scalar(one)
            if symbol is not None:
                yield key, symbol


def _is_finite(context: Context, node: n.ArrayNode) -> bool:
    """Whether all items are out of few scalar values, and there are not too many ways to choose some of them."""
    keys: set[Hashable] = set()
    for handle in (*node.prefix, node.items):
        for one in context.normal(handle).nodes:
            singles = _singles(one)
            if singles is None:
                return False
            keys.update(key for key, _ in singles)
    high = len(keys) if node.high is None else min(node.high.value, len(keys))
    count = total = 1
    for chosen in range(1, high + 1):
        count = count * (len(keys) - chosen + 1) // chosen
        total += count
    return total <= _MAX_SUBSETS


_MAX_SUBSETS = 600


def _singles(node: n.Node) -> list[tuple[Hashable, n.Node]] | None:
    """The values of a node, each as a node of its own; None if there are many."""
    if isinstance(node, n.NullNode):
        return [(None, node)]
    if isinstance(node, n.BooleanNode):
        return [(("boolean", value), n.BooleanNode(node.pointer, (value,))) for value in node.values]
    if isinstance(node, n.StringNode) and node.values is not None and len(node.values) <= MAX_UNIQUE:
        return [(value, n.StringNode(node.pointer, values=(value,))) for value in node.values]
    if isinstance(node, n.NumberNode):
        values = node.values
        if values is None and node.form is not NumberForm.ANY and node.low is not None and node.high is not None:
            first = int(node.low.value.to_integral_value(ROUND_CEILING))
            last = int(node.high.value.to_integral_value(ROUND_FLOOR))
            if last - first > MAX_UNIQUE:
                return None
            values = tuple(value for value in map(Decimal, range(first, last + 1)) if number_fits(value, node))
        if values is not None and len(values) <= MAX_UNIQUE:
            return [(("number", value.normalize()), n.single_number(node, value)) for value in values]
    return None
