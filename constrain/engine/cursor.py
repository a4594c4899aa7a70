"""Cursor: a place in a compiled grammar, the way back from it, and the conditions that its text keeps."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

from constrain.arguments import check_integer
from constrain.engine.conditions.of_grammar import conditions_of
from constrain.engine.conditions.protocol import Condition
from constrain.engine.expectations import Expectation, expected_at
from constrain.engine.grammar_tables import GrammarTables
from constrain.engine.history import BEFORE, GENERATION, STATE, STEP, Link
from constrain.engine.parser.companions import ALWAYS_ASKS, ASKS, NO_COMPANION, UNREAD, Int64Array, pack, unpack
from constrain.engine.parser.configurations import ENDED, LOST
from constrain.engine.reentry import ReentryError
from constrain.engine.storage.tables import array_address
from constrain.engine.transaction import transact
from constrain.engine.traveller import Traveller, bytes_of, push_bytes, read_again
from constrain.engine.vocabulary.bitmasks import Bitmask
from constrain.errors import ConstrainError
from constrain.grammar.tokens import MARK_BYTE
from constrain.kernels.untracking import untrack

NO_COMPANION_AT, ALWAYS_ASKS_AT = array_address(NO_COMPANION), array_address(ALWAYS_ASKS)
"""The addresses of what stands for no companion, and for conditions that have to be asked about each token."""


class Saved(NamedTuple):
    """What a cursor knows beside its grammar's tables, to be put back after an exception."""

    has_ended: bool
    parent: Link | None
    steps: int
    conditions: tuple[Condition, ...]
    """Copies; or those of the cursor itself, which :meth:`Condition.rewind` then leads back."""


class Cursor:
    """What a matcher and a recognizer have in common: a place in a compiled grammar, and the way back from it.

    Attributes
    ----------
    compiled : CompiledGrammar
    """

    # What reads tokens along, and its address; and what it is where those that always ask need not be asked.
    _companion: Int64Array
    _companion_at: int
    _unasked_companion: Int64Array
    _unasked_companion_at: int

    def __init__(self, compiled: GrammarTables) -> None:
        self.compiled = compiled
        self._companion, self._companion_at = NO_COMPANION, NO_COMPANION_AT
        self._unasked_companion, self._unasked_companion_at = NO_COMPANION, NO_COMPANION_AT
        self._state = LOST
        self._parent: Link | None = None
        self._steps = 0
        self._conditions: tuple[Condition, ...] = ()
        self._heed()
        transact(self, self._begin)

    def _begin(self) -> None:
        self.compiled.cursors.add(self)
        self._conditions = conditions_of(self.compiled)
        self._heed()

    def _save(self) -> Saved:
        """What :meth:`_restore` puts back."""
        copies = tuple([condition.copy() for condition in self._conditions])
        return Saved(self._state == ENDED, self._parent, self._steps, copies)

    def _restore(self, saved: Saved) -> None:
        """Be where the cursor was, after an exception that may have come from anywhere."""
        # Nothing was done by a call that is refused.
        with contextlib.suppress(ReentryError), self.compiled.lock:
            for condition in saved.conditions:
                condition.rewind(saved.steps)
            state = ENDED if saved.has_ended else LOST
            self._parent, self._steps, self._conditions = saved[1:]
            self._heed()
            self._state = state

    def expected(self, limit: int = 64) -> list[Expectation]:
        """What may come next, in words, for a message: what is under way, what may begin, the end of the text.

        Empty after an end token.  At most ``limit`` lexemes are worked out.

        >>> import constrain
        >>> vocabulary = constrain.Vocabulary([b"a"])
        >>> grammar = constrain.Grammar.from_json_schema({"properties": {"age": {"type": "integer"}}})
        >>> place = constrain.GrammarCompiler(vocabulary).compile(grammar).recognizer()
        >>> place.try_push_byte(ord("["))
        True
        >>> [str(each) for each in place.expected()]
        ['a string', 'a number', "'{'", "'['", 'true or false', 'null', "']'"]
        """
        if self._state == ENDED:
            return []
        return transact(self, lambda: expected_at(self.compiled, self.compiled._tables, self, limit))

    def fork(self) -> Any:
        """An independent one at the same place, with the same history; constant time."""
        twin = type(self).__new__(type(self))
        with self.compiled.lock:
            twin.__dict__.update(self.__dict__)
            if self._conditions:
                twin._conditions = tuple([condition.copy() for condition in self._conditions])
                twin._heed()
            self.compiled.cursors.add(twin)
        return twin

    def __copy__(self) -> Any:
        return self.fork()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        # The compiled grammar is shared by all, and what is in it belongs to nobody.
        return self.fork()

    def __reduce__(self) -> Any:
        raise NotImplementedError

    def _steps_taken(self) -> list[int | bytes]:
        """All steps: tokens, and bytes that were read as one."""
        steps = []
        link = self._parent
        while link is not None:
            step = link[STEP]
            steps.append(bytes(step) if isinstance(step, bytes) else int(step))
            link = link[BEFORE]
        return steps[::-1]

    def text(self, steps: int) -> bytes:
        """The bytes of the last ``steps`` steps.

        Raises
        ------
        ConstrainError
            If there were fewer steps, or ``steps`` is no integer.
        """
        if not 0 <= check_integer("steps", steps) <= self._steps:
            raise ConstrainError(f"there is no text of {steps} steps, there were {self._steps}")
        pieces = []
        link = self._parent
        for _ in range(steps):
            assert link is not None
            pieces.append(bytes_of(self.compiled, link))
            link = link[BEFORE]
        return b"".join(reversed(pieces))

    def _is_text(self, data: bytes) -> bool:
        """Whether some bytes can be text here: where special tokens are spelled, no bytes from outside spell one."""
        return not self.compiled.spelled_ids or MARK_BYTE not in data

    # -- conditions ----------------------------------------------------------------------------

    def _heed(self) -> None:
        """Keep what calls that are made for every token need to know of the conditions."""
        note, asking, companion = 0, 0, NO_COMPANION
        for condition in self._conditions:
            note |= condition.note
            asking += condition.asks_always
            brought = condition.companion
            if brought is not NO_COMPANION:
                companion = brought
        if companion is not self._unasked_companion:
            self._unasked_companion, self._unasked_companion_at = companion, array_address(companion)
        self._note, self._asking = note, asking
        if asking:
            self._companion, self._companion_at = ALWAYS_ASKS, ALWAYS_ASKS_AT
        else:
            self._companion, self._companion_at = companion, self._unasked_companion_at

    def _restrict(self, out: Bitmask, index: int) -> None:
        """Make a mask of the grammar the one under all conditions."""
        for condition in self._conditions:
            condition.restrict(self, out, index)

    def _rewind(self) -> None:
        """Let the conditions be as after the steps that there are."""
        if self._conditions:
            for condition in self._conditions:
                condition.rewind(self._steps)
            self._heed()

    # -- steps -----------------------------------------------------------------------------------

    def _advance(self, step: int | bytes, result: int) -> bool:
        """Take a step to where a kernel says; False, and nothing changes, if the grammar or a condition forbids it."""
        compiled = self.compiled
        state, word = unpack(result)
        if state == 0:
            return False
        if word < ASKS:
            self._go_to(state, step)
            if self._companion is not NO_COMPANION:
                self._note = word
            return True
        # What conditions do may give states other numbers.
        behind = Traveller(compiled, state, (compiled.generation, self._state, step, self._parent))
        for condition in self._conditions:
            if not condition.push(self, step, behind, word):
                self._rewind()
                return False
        assert behind._parent is not None
        self._go_to(behind._state, behind._parent[STEP])
        self._heed()
        return True

    def _go_to(self, state: int, step: int | bytes) -> None:
        """Note that a step led to ``state``.  The caller holds the lock."""
        link = (self.compiled.generation, self._state, step, self._parent)
        untrack(link)
        self._parent, self._state, self._steps = link, state, self._steps + 1

    def _read_step(self, data: bytes) -> bool:
        """Go on with some bytes as one step; False, and nothing changes, if they cannot follow."""
        state, word = unpack(push_bytes(self.compiled, self, data))
        return self._advance(data, pack(state, word if self._companion is NO_COMPANION else word | UNREAD))

    def _go_back(self, count: int) -> None:
        """Take back ``count`` steps; there are as many."""
        if count == 0:
            return
        link = self._parent
        for _ in range(count - 1):
            assert link is not None
            link = link[BEFORE]
        assert link is not None
        state, parent = link[STATE], link[BEFORE]
        if link[GENERATION] != self.compiled.generation:
            place = read_again(self.compiled, parent)
            state, parent = place._state, place._parent
        self._state, self._parent, self._steps = state, parent, self._steps - count
        self._rewind()
