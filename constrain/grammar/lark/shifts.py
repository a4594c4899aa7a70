"""Where an LALR parser shifts a terminal that is read in one of its states, after the reductions before it.

The stack below a state is not known.  So a rule that is reduced may have begun in any state that leads to its end.
"""

from __future__ import annotations

from typing import Any

from constrain.limits import spend


class Shifts:
    """What the states of a table say of all stacks.

    Parameters
    ----------
    states : dict
        Of Lark's table: by set of items, the actions by name.
    """

    def __init__(self, states: dict[Any, dict[str, Any]]) -> None:
        self._states = states
        self._origins: dict[tuple[Any, Any, int], set[Any]] = {}
        # By state, and by the rule, an object of the table: the states behind the rule that is reduced.
        self._reduced: dict[Any, dict[int, set[Any]]] = {}
        # By state and terminal: what `of` returns.
        self._known: dict[tuple[Any, str], tuple[set[Any], bool]] = {}
        for origin in states:
            for item in origin:
                if item.index == 0:
                    state = origin
                    for index, symbol in enumerate(item.rule.expansion):
                        spend()
                        self._origins.setdefault((state, item.rule, index), set()).add(origin)
                        state = states[state][symbol.name][1]
                    self._origins.setdefault((state, item.rule, len(item.rule.expansion)), set()).add(origin)

    def origins(self, state: Any, rule: Any, index: int) -> set[Any]:
        """The states in which a rule can have begun that has come to an index in a state."""
        return self._origins[state, rule, index]

    def of(self, state: Any, name: str) -> tuple[set[Any], bool]:
        """The states from which a terminal is shifted that is read in a state, and whether it is for any stack."""
        key = state, name
        if key not in self._known:
            sources: set[Any] = set()
            is_certain = True
            seen, todo = {state}, [state]
            while todo:
                spend()
                here = todo.pop()
                action, rule = self._states[here].get(name, (None, None))
                if str(action) == "Shift":
                    sources.add(here)
                elif action is None:
                    is_certain = False
                else:
                    new = self._behind_reduction(here, rule) - seen
                    seen |= new
                    todo += new
            self._known[key] = sources, is_certain
        return self._known[key]

    def _behind_reduction(self, state: Any, rule: Any) -> set[Any]:
        """The states behind a rule that is reduced in a state."""
        known = self._reduced.setdefault(state, {}).get(id(rule))
        if known is None:
            origins = self._origins[state, rule, len(rule.expansion)]
            known = self._reduced[state][id(rule)] = {self._states[origin][rule.origin.name][1] for origin in origins}
        return known

    def behind(self, state: Any, name: str) -> set[Any]:
        """The states behind a terminal that is read in a state."""
        return {self._states[source][name][1] for source in self.of(state, name)[0]}
