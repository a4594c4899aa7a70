"""The first few values of a schema: all of them, if there are no more than that.

Whether a schema allows anything but some given values is answered by one value more than those.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal, localcontext
from functools import lru_cache
from itertools import count, islice, product
from math import prod

from constrain.errors import LimitError
from constrain.grammar.json_schema.document.places import Handle
from constrain.grammar.json_schema.lexical import texts
from constrain.grammar.json_schema.lexical.multiples import decimal_places, is_multiple, least_common_multiple
from constrain.grammar.json_schema.lexical.numbers import NumberForm
from constrain.grammar.json_schema.normal import nodes as n
from constrain.grammar.json_schema.normal.instances import Instance, number
from constrain.grammar.json_schema.normal.intersect import element, member, number_fits
from constrain.grammar.json_schema.normal.word_search import find_words
from constrain.grammar.languages.derivatives import Automaton
from constrain.limits import spend

_MOST_STEPS = 200_000
_MOST_DEPTH = 40

# Of the search for short words before that for any, and of that one.
_FEW_STEPS, _SHORT_LOOK = 100, 3000
_FEW_WORDS = 100

Classes = Callable[[n.ObjectNode], list[tuple[texts.Text, Handle]]]
"""The classes of keys that an object does not name, each with the schema of its members."""


class FewValues:
    """Looks for values.  Every method gives as many different ones as asked for, or all there are.

    Parameters
    ----------
    normal : callable
        The normal form of a handle.
    other_keys : Classes
    """

    def __init__(self, normal: Callable[[Handle], n.Normal], other_keys: Classes) -> None:
        self.normal = normal
        self._other_keys = other_keys
        self._known: dict[tuple[Handle, int], list[Instance]] = {}
        # What there is of a part to a depth, and whether it was cut off there: recursion asks for it again and again.
        self._known_to: dict[tuple[Handle, int, int], tuple[list[Instance], bool]] = {}
        self._was_cut = False

    def of(self, handle: Handle, most: int) -> list[Instance]:
        """Values of a schema."""
        key = handle, most
        if key not in self._known:
            self._known[key] = self._deepening(lambda depth: self._of_handle(handle, most, depth), most)
        return self._known[key]

    def of_node(self, node: n.Node, most: int) -> list[Instance]:
        """Values of one node."""
        return self._deepening(lambda depth: self._of_node(node, most, depth), most)

    def of_members(
        self,
        named: list[tuple[str, Handle, bool]],
        others: list[tuple[texts.Text, Handle]],
        excluded: frozenset[str],
        low: int,
        high: int | None,
        most: int,
    ) -> list[Instance]:
        """Objects out of members: (name, schema, whether it is required), and others but for some names."""
        return self._deepening(lambda depth: self._of_members(named, others, excluded, low, high, most, depth), most)

    def of_items(self, node: n.ArrayNode, items: tuple[Instance, ...], most: int, begin: int) -> list[Instance]:
        """What may follow the first ``begin`` items of an array, as arrays; these are ``items``, if that matters."""
        return self._deepening(lambda depth: self._of_items(node, begin, most, depth, items), most)

    def _deepening(self, search: Callable[[int], list[Instance]], most: int) -> list[Instance]:
        """Search to greater depths until nothing is cut off, or there is enough."""
        for depth in (3, 8, _MOST_DEPTH):
            self._was_cut = False
            found = search(depth)
            if len(found) >= most or not self._was_cut:
                return found
        raise LimitError(f"whether there are enough different values is not clear after {_MOST_DEPTH} levels")

    def _of_handle(self, handle: Handle, most: int, depth: int) -> list[Instance]:
        key = handle, most, depth
        if key not in self._known_to:
            outer, self._was_cut = self._was_cut, False
            values = self._of_nodes(handle, most, depth)
            self._known_to[key] = values, self._was_cut
            self._was_cut |= outer
        values, was_cut = self._known_to[key]
        self._was_cut |= was_cut
        return values

    def _of_nodes(self, handle: Handle, most: int, depth: int) -> list[Instance]:
        found: dict[Instance, None] = {}
        for node in self.normal(handle).nodes:
            found.update(dict.fromkeys(self._of_node(node, most, depth)))
            if len(found) >= most:
                break
        return list(islice(found, most))

    def _of_node(self, node: n.Node, most: int, depth: int) -> list[Instance]:
        if isinstance(node, n.NullNode):
            return [Instance("null", None)]
        if isinstance(node, n.BooleanNode):
            return [Instance("boolean", value) for value in node.values]
        if isinstance(node, n.StringNode):
            if node.values is not None:
                words: list[str] = sorted(n.text_of(node).values)  # type: ignore[attr-defined]
                words = words[:most]
            else:
                words = few_words(n.text_of(node), most)
            return [Instance("string", word) for word in words]
        if isinstance(node, n.NumberNode):
            return _numbers(node, most)
        if depth == 0:
            self._was_cut = True
            return []
        if isinstance(node, n.ArrayNode):
            return self._of_items(node, 0, most, depth)
        assert isinstance(node, n.ObjectNode)
        named = [(name, handle, name in node.required) for name, handle in members_of(node)]
        return self._of_members(named, self._other_keys(node), frozenset(), *n.size_range(node), most, depth)

    def _of_items(
        self, node: n.ArrayNode, begin: int, most: int, depth: int, items: tuple[Instance, ...] = ()
    ) -> list[Instance]:
        low, high = n.size_range(node)
        low = max(low - begin, 0)
        last = low + most + len(node.prefix) if high is None else high - begin
        lists: list[list[Instance]] = []
        known: dict[tuple[Handle, int], list[Instance]] = {}
        alike: Counter[Handle] = Counter()
        found: list[Instance] = []
        for length in range(last + 1):
            if length >= low:
                if node.unique is None:
                    rows: Iterator[tuple[Instance, ...]] = product(*lists)
                else:
                    rows = _all_different(lists, items)
                found += [Instance("array", row) for row in islice(rows, most - len(found))]
                if len(found) >= most:
                    break
            # Of values that must be new, so many more that there is one in any case.
            wanted = most if node.unique is None else most + begin + length
            key = element(node, begin + length), wanted
            if key not in known:
                known[key] = self._of_handle(*key, depth - 1)
            lists.append(known[key])
            if not lists[-1]:
                break
            if node.unique is not None:
                # There are no more items of a schema than different values.
                alike[key[0]] += 1
                if sum(each not in items for each in lists[-1]) < alike[key[0]]:
                    break
        return found

    def _of_members(
        self,
        named: list[tuple[str, Handle, bool]],
        others: list[tuple[texts.Text, Handle]],
        excluded: frozenset[str],
        low: int,
        high: int | None,
        most: int,
        depth: int,
    ) -> list[Instance]:
        choices: list[list[tuple[str, Instance] | None]] = []
        fewest = sum(required for _, _, required in named)

        def suffice() -> bool:
            """Whether there are enough objects without any further member: some with all of these, or with any."""
            if high is not None and high <= fewest:
                return True  # none may be there
            if high is not None and len(choices) > high:
                return False
            if low <= fewest and prod(map(len, choices)) >= most:
                return True
            return low <= len(choices) and prod(len(choice) - (None in choice[-1:]) for choice in choices) >= most

        for name, handle, required in sorted(named, key=lambda each: not each[2]):
            if not required and suffice():
                break
            present = [(name, value) for value in self._of_handle(handle, most, depth - 1)]
            if present or required:
                choices.append([*present] if required else [*present, None])
        taken = excluded.union(name for name, _, _ in named)
        for keys, handle in others:
            if suffice():
                break
            values = self._of_handle(handle, most, depth - 1)
            if values:
                wanted = most + low
                for name in few_words(keys, wanted + len(taken)):
                    if len(choices) >= wanted + len(named) or suffice():
                        break
                    if name not in taken:
                        choices.append([*[(name, value) for value in values], None])
        if high is not None and high < len(choices):
            # What may be absent is absent first.
            choices = [choice[::-1] if None in choice[-1:] else choice for choice in choices]
        rows = _of_some_length(choices, low, high)
        return [Instance("object", frozenset(members)) for members in islice(rows, most)]


def _all_different(lists: list[list[Instance]], items: tuple[Instance, ...]) -> Iterator[tuple[Instance, ...]]:
    """One value out of each list, all different from each other and from ``items``."""
    taken = set(items)
    chosen: list[Instance] = []
    ways = [iter(lists[0])] if lists else []
    if not lists:
        yield ()
    for _ in range(_MOST_STEPS):
        spend()
        if not ways:
            return
        value = next((one for one in ways[-1] if one not in taken), None)
        if value is None:
            ways.pop()
            if chosen:
                taken.remove(chosen.pop())
        elif len(ways) == len(lists):
            yield (*chosen, value)
        else:
            chosen.append(value)
            taken.add(value)
            ways.append(iter(lists[len(ways)]))
    raise LimitError("whether there are enough different arrays is not clear")


def _of_some_length(
    choices: list[list[tuple[str, Instance] | None]], low: int, high: int | None
) -> Iterator[list[tuple[str, Instance]]]:
    """One of each choice, without None, where that makes ``low`` to ``high`` of them; in the order of a product.

    What is chosen so far can always be completed, so nothing is tried in vain.
    """
    # How many of the choices from each place on may be something, and how many must.
    may, must = [0], [0]
    for choice in reversed(choices):
        may.append(may[-1] + any(each is not None for each in choice))
        must.append(must[-1] + (None not in choice))
    may.reverse()
    must.reverse()

    def fits(size: int, place: int) -> bool:
        return size + may[place] >= low and (high is None or size + must[place] <= high)

    chosen: list[tuple[str, Instance] | None] = []
    sizes = [0]
    ways = [iter(choices[0])] if choices else []
    if not choices and low <= 0:
        yield []
    while ways and fits(0, 0):
        spend()
        place = len(ways) - 1
        for each in ways[-1]:
            size = sizes[-1] + (each is not None)
            if fits(size, place + 1):
                break
        else:
            ways.pop()
            if chosen:
                chosen.pop()
                sizes.pop()
            continue
        if len(ways) == len(choices):
            yield [one for one in (*chosen, each) if one is not None]
        else:
            chosen.append(each)
            sizes.append(size)
            ways.append(iter(choices[len(ways)]))


def members_of(node: n.ObjectNode) -> Iterator[tuple[str, Handle]]:
    """All names that are treated alone, in order: those with a schema, then those that are just required."""
    yield from node.properties.items()
    for name in node.required:
        if name not in node.properties:
            yield name, member(node, name)


# Some strings of sets whose automata are large.
_EASIER: dict[texts.Text, texts.Text] = {
    texts.Format("time"): texts.Pattern("^(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z$"),
    texts.Format("date-time"): texts.Pattern("^[0-9]{4}-01-01T00:00:00Z$"),
    texts.Format("idn-hostname"): texts.HOST_NAME,
}


@lru_cache(maxsize=1024)
def few_words(text: texts.Text, most: int, steps: int = _MOST_STEPS) -> list[str]:
    """Strings of a set, as many as asked for or all there are; short ones where these are found soon.

    Raises LimitError if that takes more than about so many steps.
    """
    excluded = _words_excluded(text)
    if excluded is not None:
        others = (word for number in count() if (word := _letters(number)) not in excluded)
        return list(islice(others, most))
    easier = _EASIER.get(text, text)
    if isinstance(text, texts.Every):
        easier = texts.every(*(_EASIER.get(item, item) for item in text.items))
    if easier is not text and easier != text:
        some = few_words(easier, most, steps)
        if len(some) == most:
            return some
    language = texts.plain(_regular(text))
    found = Automaton(language).first_words(most, _FEW_STEPS)
    if found is None and most <= _FEW_WORDS:
        found = find_words(language, most, _SHORT_LOOK)
    if found is None:
        found = Automaton(language).first_words(most, steps)
    if found is None:
        raise LimitError(f"whether there are {most} different strings with {text} is not clear")
    return [word.decode() for word in found]


def _regular(text: texts.Text) -> texts.Text:
    """The same set, or a larger one: what is not regular is enforced alone, or not at all."""
    if texts.is_regular(text):
        return text
    return texts.every(*filter(texts.is_regular, text.items)) if isinstance(text, texts.Every) else texts.ALL_TEXTS


def _letters(number: int) -> str:
    """A word for each number from 0 up, shorter ones first."""
    word = ""
    while number:
        number, letter = divmod(number - 1, 26)
        word = chr(97 + letter) + word
    return word


def _words_excluded(text: texts.Text) -> frozenset[str] | None:
    """Of a set that is any string but some words, as the keys are that an object does not name, these words."""
    excluded: frozenset[str] = frozenset()
    for item in text.items if isinstance(text, texts.Every) else (text,):
        if not isinstance(item, texts.Without) or not isinstance(item.item, (texts.Words, texts.GrowingWords)):
            return None
        excluded = excluded.union(item.item.values if isinstance(item.item, texts.Words) else item.item.tree)
    return excluded


def _numbers(node: n.NumberNode, most: int) -> list[Instance]:
    found: list[Instance] = []
    # What comes into question is a multiple of all that it must be.
    others = replace(node, divisors=())
    for tried, value in enumerate(_candidates(node)):
        spend(2)
        if number_fits(value, others):
            found.append(Instance("number", number(format(value, "f"))))
            if len(found) >= most:
                break
        if tried > _MOST_STEPS:
            raise LimitError(f"whether there are {most} different numbers is not clear", node.pointer)
    return found


def _candidates(node: n.NumberNode) -> Iterator[Decimal]:
    """Numbers that come into question: all of them, or endlessly many, of which many fit."""
    if node.values is not None:
        yield from dict.fromkeys(node.values)
        return
    low = None if node.low is None else node.low.value
    high = None if node.high is None else node.high.value
    with localcontext() as context:
        context.prec = 10_000
        divisors = [each.value for each in node.divisors]
        if node.form is not NumberForm.ANY:
            divisors.append(Decimal(1))
        step = least_common_multiple(divisors, node.pointer) if divisors else None
        if step is not None and any(is_multiple(step, each.value) for each in node.not_divisors):
            return
        if step is None and low is not None and high is not None:
            yield from dict.fromkeys((low, high))
            part = high - low
            while part:
                part /= 2
                yield low + part
            return
        if step is None:
            # With a digit more than any multiple of what does not divide them, nine of ten fit.
            step = Decimal("0.5")
            if node.not_divisors:
                step = Decimal(1).scaleb(-1 - max(decimal_places(each.value) for each in node.not_divisors))
        if low is not None:
            first = (low / step).to_integral_value(rounding="ROUND_FLOOR")
            for index in count():
                value = (first + index) * step
                if high is not None and value > high:
                    return
                yield value
        if high is not None:
            first = (high / step).to_integral_value(rounding="ROUND_CEILING")
            for index in count():
                yield (first - index) * step
        yield Decimal(0)
        for index in count(1):
            yield index * step
            yield -index * step
