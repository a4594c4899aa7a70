"""Whether a schema has a value, as far as a short look shows.

The engine finds out about all rules that derive nothing.  Here it is asked earlier, where keys are counted: a key whose
value there can never be is none.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from constrain.errors import LimitError
from constrain.grammar.json_schema.document.places import Handle, conjunction
from constrain.grammar.json_schema.lexical.texts import Text, has_example
from constrain.grammar.json_schema.normal.few_values import few_words
from constrain.grammar.json_schema.normal.intersect import element, member
from constrain.grammar.json_schema.normal.key_classes import count_keys, key_classes
from constrain.grammar.json_schema.normal.nodes import (
    ArrayNode,
    Contains,
    Node,
    Normal,
    ObjectNode,
    StringNode,
    text_of,
)

_MOST_ITEMS = 100
_MOST_HANDLES = 500
_SHORT_LOOK = 4_000


def may_have_value(normal: Callable[[Handle], Normal], handle: Handle) -> bool:
    """False if certainly nothing is valid for a handle; ``normal`` gives normal forms.

    Values are finite: what needs a value of its own kind within itself has none.  So handles have none until it is
    shown what they are made of, round by round.
    """
    found: set[Handle] = set()
    grew = True
    while grew and handle and handle not in found:
        grew = False
        seen, todo = {handle}, [handle]
        while todo:
            missing: list[Handle] = []

            def has(part: Handle, missing: list[Handle] = missing) -> bool:
                if not part or part in found:
                    return True
                missing.append(part)
                return False

            if any(_holds(node, has) for node in normal(todo[-1]).nodes):
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


def _holds(node: Node, has: Callable[[Handle], bool]) -> bool:
    """Whether a node has a value, given which handles have one."""
    if isinstance(node, StringNode) and node.values is None:
        return not node.terms or _may_have_word(text_of(node))
    if isinstance(node, ObjectNode):
        return all(has(member(node, name)) for name in node.required) and _has_enough_keys(node, has)
    if isinstance(node, ArrayNode):
        count = 0 if node.low is None else min(node.low.value, len(node.prefix) + 1, _MOST_ITEMS)
        return all(has(element(node, index)) for index in range(count)) and all(
            _has_item(node, each, has) for each in node.contains if each.low > 0
        )
    return True


def _has_item(node: ArrayNode, each: Contains, has: Callable[[Handle], bool]) -> bool:
    """Whether some item can be what the array must contain."""
    rest = max(len(node.prefix), each.start)
    places = [place for place in range(each.start, rest + 1) if node.high is None or place < node.high.value]
    return any(has(conjunction(element(node, place), each.item)) for place in places)


def _has_enough_keys(node: ObjectNode, has: Callable[[Handle], bool]) -> bool:
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
