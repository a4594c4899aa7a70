"""Whether a schema has a value, as far as a short look shows.

The engine finds out about all rules that derive nothing.  Here it is asked earlier, where keys are counted: a key whose
value there can never be is none.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from constrain.errors import LimitError
from constrain.grammar.json_schema.document.places import Handle
from constrain.grammar.json_schema.lexical.texts import Text, has_example
from constrain.grammar.json_schema.normal.few_values import few_words
from constrain.grammar.json_schema.normal.intersect import element, member
from constrain.grammar.json_schema.normal.nodes import ArrayNode, Node, Normal, ObjectNode, StringNode, text_of

_MOST_ITEMS = 100
_SHORT_LOOK = 4_000


def may_have_value(normal: Callable[[Handle], Normal], handle: Handle) -> bool:
    """False if certainly nothing is valid for a handle; ``normal`` gives normal forms."""
    return _may_have_value(normal, handle, set())


def _may_have_value(normal: Callable[[Handle], Normal], handle: Handle, seen: set[Handle]) -> bool:
    if not handle or handle in seen:
        return True
    seen.add(handle)
    return any(_may_hold(normal, node, seen) for node in normal(handle).nodes)


def _may_hold(normal: Callable[[Handle], Normal], node: Node, seen: set[Handle]) -> bool:
    if isinstance(node, StringNode) and node.values is None:
        if not node.terms:
            return True
        return _may_have_word(text_of(node))
    if isinstance(node, ObjectNode):
        return all(_may_have_value(normal, member(node, name), seen) for name in node.required)
    if isinstance(node, ArrayNode) and node.low is not None:
        count = min(node.low.value, len(node.prefix) + 1, _MOST_ITEMS)
        return all(_may_have_value(normal, element(node, index), seen) for index in range(count))
    return True


@lru_cache(maxsize=1024)
def _may_have_word(text: Text) -> bool:
    # Where it is not clear, that is kept too: the same is asked for each key.
    try:
        return has_example(text) or bool(few_words(text, 1, _SHORT_LOOK))
    except LimitError:
        return True
