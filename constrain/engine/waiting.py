"""What an Earley set waits for, read from Python: for those that ask which rules a text is in."""

from __future__ import annotations

from constrain.engine.parser.rules import BRANCH, END
from constrain.engine.storage import schemas as t
from constrain.engine.storage.tables import Tables

Waiting = dict[int, list[tuple[int, int]]]
"""By symbol, the items that wait for it: a dot, and the Earley set in which its production began."""


def waiting_items(tables: Tables, earley_set: int) -> Waiting:
    """The items of an Earley set and of all that they predict, by what they wait for.  The caller holds the lock."""
    get = tables.get
    record = get(t.EARLEY_SETS)[earley_set]
    items = get(t.EARLEY_ITEMS)[record["offset"] :][: record["count"]].tolist()
    symbols, nullable = get(t.SYMBOLS), get(t.NULLABLE)
    rules, starts = get(t.RULES), get(t.RULE_STARTS)
    todo: list[tuple[int, int]] = [(dot, origin) for dot, origin in items] or [(0, earley_set)]
    seen = set(todo)
    found: Waiting = {}

    def add(dot: int, origin: int) -> None:
        if (dot, origin) not in seen:
            seen.add((dot, origin))
            todo.append((dot, origin))

    while todo:
        dot, origin = todo.pop()
        symbol = int(symbols[dot])
        if symbol == END:
            continue
        if symbol >= BRANCH:
            # What the rest of the right-hand side is, made on demand.
            branch = get(t.BRANCHES)[symbol - BRANCH]
            for place in range(int(branch["first"]), int(branch["first"]) + max(0, int(branch["count"]))):
                add(int(get(t.BRANCH_DOTS)[place]), origin)
            continue
        found.setdefault(symbol, []).append((dot, origin))
        if symbol < 0:
            if get(t.LEXEMES)[~symbol]["is_nullable"]:
                add(dot + 1, origin)
            continue
        for place in range(int(rules[symbol]), int(rules[symbol + 1])):
            add(int(starts[place]), earley_set)
        if nullable[symbol]:
            add(dot + 1, origin)
    return found
