"""Where a matcher stands with its budget: how many tokens are left, and what is planned."""

from __future__ import annotations

from typing import Any, NamedTuple

# Something that holds from a number of steps on, and what held before.
Since = tuple[int, Any, Any]


class Account(NamedTuple):
    """Where a matcher stands with its budget: a value that is replaced as a whole, never changed."""

    left: int
    """How many more tokens there may be."""
    plans: Since | None = None
    """Plans by the step from which they hold: tokens, or none where none is needed."""
    byte_steps: Since | None = None
    """Steps of bytes, which may be any number of tokens."""
    steps: int = 0
    """How many steps took tokens."""

    def plan(self, steps: int) -> list[int] | None:
        """What is left of the plan after so many steps; None where none is needed."""
        if self.plans is None or not self.plans[1]:
            return None
        return self.plans[1][steps - self.plans[0] :]  # type: ignore[no-any-return]

    def planned(self, steps: int) -> int:
        """The next token of the plan, or -1."""
        if self.plans is None:
            return -1
        place = steps - self.plans[0]
        return self.plans[1][place] if place < len(self.plans[1]) else -1

    def with_plan(self, steps: int, plan: list[int]) -> Account:
        """The same with a plan from a step on, in place of what was planned from that step on."""
        plans = self.plans
        while plans is not None and plans[0] >= steps:
            plans = plans[2]
        if not plan and (plans is None or not plans[1]):
            return self if plans is self.plans else self._replace(plans=plans)
        return self._replace(plans=(steps, plan, plans))

    def spend(self, tokens: int) -> Account:
        """The same after one more step, with so many tokens less."""
        # Every token takes this; _replace would take three times as long.
        left, plans, byte_steps, steps = self
        return Account(left - tokens, plans, byte_steps, steps + 1)

    def prices(self) -> dict[int, int]:
        """How many tokens each step of bytes took, by its place."""
        prices = {}
        byte_steps = self.byte_steps
        while byte_steps is not None:
            prices[byte_steps[0]] = byte_steps[1]
            byte_steps = byte_steps[2]
        return prices

    def at(self, steps: int) -> Account:
        """The account after so many steps: as it was, or with one token less for each step since then."""
        left, plans, byte_steps = self.left + self.steps - steps, self.plans, self.byte_steps
        while byte_steps is not None and byte_steps[0] >= steps:
            left += byte_steps[1] - 1
            byte_steps = byte_steps[2]
        while plans is not None and plans[0] > steps:
            plans = plans[2]
        return Account(left, plans, byte_steps, steps)
