"""Whether a schema has a value, as far as a short look shows.

The engine finds out about all rules that derive nothing.  Here it is asked earlier, where keys are counted: a key whose
value there can never be is none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from constrain.errors import LimitError
from constrain.grammar.json_schema.document.places import Handle, conjunction
from constrain.grammar.json_schema.lexical.strings import is_text
from constrain.grammar.json_schema.lexical.texts import Text, contains, has_example
from constrain.grammar.json_schema.normal import nodes as n
from constrain.grammar.json_schema.normal.counted_items import NextItems
from constrain.grammar.json_schema.normal.few_values import FewValues, few_words
from constrain.grammar.json_schema.normal.intersect import element, member
from constrain.grammar.json_schema.normal.key_classes import count_keys, key_classes, other_classes

_MOST_ITEMS = 100
_MOST_STATES = 500
_MOST_HANDLES = 500
_SHORT_LOOK = 4_000


def may_have_value(normal: Callable[[Handle], n.Normal], handle: Handle, found: set[Handle] | None = None) -> bool:
    """False if certainly nothing is valid for a handle; ``normal`` gives normal forms.

    Those that are shown to have a value are added to ``found``, and need not be looked at again.

    Values are finite: what needs a value of its own kind within itself has none.  So handles have none until it is
    shown what they are made of, round by round.
    """
    found = set() if found is None else found
    few = FewValues(normal, other_classes)
    grew = True
    while grew and handle and handle not in found:
        grew = False
        seen, todo = {handle}, [handle]
        while todo:
            missing: list[Handle] = []

            def has(part: Handle, missing: list[Handle] = missing) -> bool:
                if not part or part in found:
                    return True
                if part[0].negation == ():
                    # Nothing: each one is a place of its own.
                    return False
                missing.append(part)
                return False

            if any(_holds(node, has, few) for node in normal(todo[-1]).nodes):
                found.add(todo.pop())
                grew = True
                continue
            further = [part for part in dict.fromkeys(missing) if part not in seen]
            seen.update(further)
            todo += further
            if not further:
                todo.pop()
            if len(seen) > _MOST_HANDLES:
                return True
    return not handle or handle in found


def _holds(node: n.Node, has: Callable[[Handle], bool], few: FewValues) -> bool:
    """Whether a node has a value, given which handles have one."""
    if isinstance(node, n.StringNode) and node.values is None:
        return not node.terms or _may_have_word(n.text_of(node))
    if isinstance(node, n.NumberNode):
        return _may_have_values(few, node, 1)
    if isinstance(node, n.ObjectNode):
        return (
            all(has(member(node, name)) for name in node.required)
            and _has_enough_keys(node, has)
            and all(_has_member(node, rule, index, has) for index, rule in enumerate(node.some))
        )
    if isinstance(node, n.ArrayNode):
        return _has_items(node, has, few) and _has_repeated_item(node, has) and _has_different_items(node, few)
    return True


def _has_items(node: n.ArrayNode, has: Callable[[Handle], bool], few: FewValues) -> bool:
    """Whether there are as many items as an array must have, also of those that it must contain."""
    low = 0 if node.low is None else min(node.low.value, _MOST_ITEMS)
    counted = replace(node, contains=tuple(each for each in node.contains if each.low > 0 or each.high is not None))
    # From there on all items are alike, and one more is no nearer to the end.
    enough = max(low, len(node.prefix) + 1, *(each.start + 1 for each in counted.contains), 0)
    start = 0, (0,) * len(counted.contains)
    todo, seen = [start], {start}
    next_items = NextItems(counted, few.normal)
    for index, counts in todo:
        if index >= low and all(count >= each.low for count, each in zip(counts, counted.contains, strict=True)):
            return True
        if node.high is not None and index >= node.high.value:
            continue
        for handle, after in next_items.of(index, counts):
            then = (index + 1 if node.high is not None else min(index + 1, enough), after)
            if then not in seen and has(handle):
                seen.add(then)
                todo.append(then)
        if len(seen) > _MOST_STATES:
            return True
    return False


def _has_repeated_item(node: n.ArrayNode, has: Callable[[Handle], bool]) -> bool:
    """Whether two items can be the same, if they must."""
    if node.repeated is None:
        return True
    # All items behind the prefix are alike, and there may be two of these.
    last = len(node.prefix) + 2 if node.high is None else min(node.high.value, len(node.prefix) + 2)
    return any(has(conjunction(element(node, one), element(node, two))) for two in range(last) for one in range(two))


def _has_different_items(node: n.ArrayNode, few: FewValues) -> bool:
    """Whether there are as many different items as an array must have, if they must be different."""
    if node.unique is None or node.low is None or node.low.value < 2:
        return True
    if node.prefix and node.low.value <= _MOST_ITEMS:
        return _may_have_values(few, node, 1)
    return _may_have_values(few, node.items, node.low.value - len(node.prefix))


def _may_have_values(few: FewValues, whole: Handle | n.Node, count: int) -> bool:
    """Whether there are so many different values; True where that is not clear."""
    try:
        return len(few.of_node(whole, count) if isinstance(whole, n.Node) else few.of(whole, count)) >= count
    except LimitError:
        return True


def _has_member(node: n.ObjectNode, rule: n.KeyRule, index: int, has: Callable[[Handle], bool]) -> bool:
    """Whether some member can be what a rule of ``some`` demands; True where that is not clear."""
    is_full = node.high is not None and node.high.value <= len(node.required)
    names = node.required if is_full else {**node.properties, **node.required}
    named = (name for name in names if is_text(name) and contains(rule.keys, name))
    if any(has(conjunction(member(node, name), rule.value)) for name in named):
        return True
    try:
        return not is_full and any(
            index in meets and has(conjunction(handle, rule.value)) and count_keys(keys, 1) > 0
            for keys, handle, meets in key_classes(node)
        )
    except LimitError:
        return True


def _has_enough_keys(node: n.ObjectNode, has: Callable[[Handle], bool]) -> bool:
    """Whether there are as many keys as an object must have members; True where that is not clear."""
    needed = 0 if node.low is None else node.low.value - len(node.required)
    if needed <= 0:
        return True
    needed -= sum(has(member(node, name)) for name in node.properties if name not in node.required)
    try:
        for keys, handle, _ in key_classes(node):
            if needed > 0 and has(handle):
                needed -= count_keys(keys, needed)
    except LimitError:
        return True
    return needed <= 0


@lru_cache(maxsize=1024)
def _may_have_word(text: Text) -> bool:
    # Where it is not clear, that is kept too: the same is asked for each key.
    try:
        return has_example(text) or bool(few_words(text, 1, _SHORT_LOOK))
    except LimitError:
        return True
