"""The intermediate representation: rules over lexemes.

Every front-end ends here and the engine begins here.  A grammar is context-free over *lexemes*
(terminals), and each lexeme is a regular language over bytes
(:mod:`constrain.grammar.languages.regular`).  There is no priority, no longest match and no skipping between
lexemes other than ``ignore``: a string is in the language if *some* way to split it fits.

A front-end uses :class:`GrammarBuilder`, adds productions in any order, and calls
:meth:`GrammarBuilder.finish`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Protocol

from constrain.errors import ConstrainError, GrammarError
from constrain.grammar.captures import CaptureRule
from constrain.grammar.events import EventReader
from constrain.grammar.languages.regular import Regular, nested_counts
from constrain.grammar.parse_table import ParseTable
from constrain.grammar.token_limits import Limited, TokenLimit, separate
from constrain.grammar.words import Describer, by_name
from constrain.limits import spend

Symbol = int
"""A symbol in a production: ``n >= 0`` is nonterminal ``n``, ``n < 0`` is lexeme ``~n``."""

BRANCH = 1 << 28
"""In the rules that an :class:`Unfolding` makes, symbol ``BRANCH + n`` is branch ``n``."""


class PlacedName(str):
    """The name of a lexeme, with the place in a schema that it comes from, as a JSON pointer."""

    pointer: str

    def __new__(cls, name: str, pointer: str) -> PlacedName:
        made = super().__new__(cls, name)
        made.pointer = pointer
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return str(self), self.pointer


OPEN, HARD, UNSURE = 1, 2, 4
"""Kinds of branches, as sets of bits; see :class:`Unfolding`."""

BY_RULES, BY_KEYS, BY_TEXT = range(3)
"""What decides how a text goes on at the branches of an unfolding; see :attr:`Unfolding.decided_by`."""


NEVER = 1 << 30
"""A cost that nothing reaches: of what cannot be finished, or not in a way that is known."""

FAR = 1 << 26
"""What is added to a cost where it is not known how much more there will be: the text decides, and does not end it."""


class NothingLeftError(GrammarError):
    """Nothing can follow at an open branch after a text, for a reason that its message tells."""


class Unfolding(Protocol):
    """Makes rules when a text comes to them: those of the nonterminals in :attr:`GrammarIR.unfolded`.

    Such a nonterminal may have more rules than could be written down: any number of members in any order.  Its
    right-hand sides are unfolded piece by piece.  A *branch* is a place in it; branch ``i`` is the beginning of
    ``unfolded[i]``, and what is made for a branch may end in further branches.

    How it goes on at a branch may also depend on the text so far: such a branch is OPEN.  Where a text comes to an open
    branch, at the end of a lexeme, :meth:`close` names another to go on with.  A mask looks ahead: a token may hold the
    end of that lexeme and more.  There the rules of the open branch itself stand in for those of the other.  They must
    allow the same, but where they lead to a branch that is HARD, which has no rules: what comes there is looked up
    text by text.  A branch that a text comes to goes on in some way; but one that only a mask comes to, from an open
    branch, may be UNSURE, that is, may be closed with nothing, -1.

    Each compiled grammar has one of its own and calls it under a lock.  The same calls have the same results.

    """

    @property
    def decided_by(self) -> int:
        """What decides how a text goes on: BY_RULES, BY_KEYS or BY_TEXT.

        By rules, no branch is ever OPEN, so that a mask need not know where the last byte of a token leads.  By keys,
        what takes the place of an open branch depends on the keys of the objects that are open, and on nothing else of
        the text; keys are what they stand for, however they are spelled.
        """

    @property
    def lefts(self) -> Sequence[int]:
        """For each branch so far, the nonterminal whose right-hand side it is part of."""

    @property
    def kinds(self) -> Sequence[int]:
        """For each branch so far, 0 or a sum of OPEN, HARD and UNSURE; the latter are OPEN too."""

    @property
    def lexemes(self) -> Sequence[Regular]:
        """The lexemes that were made (see :attr:`GrammarIR.makes_lexemes`); symbols go on from the grammar's."""

    @property
    def lexeme_names(self) -> Sequence[str]:
        """The names of these lexemes, for messages."""

    @property
    def marked(self) -> Collection[int]:
        """Which of them are keys that could come again by the rules (see :attr:`GrammarIR.distinct_keys`)."""

    @property
    def nonterminals(self) -> Sequence[int]:
        """For each nonterminal that was made, the branch that it is.

        Their symbols begin at the number of nonterminals of the grammar plus one.
        """

    def unfold(self, branch: int) -> list[tuple[Symbol, ...]] | int:
        """How a text goes on at a branch, if it is not HARD; asked once per branch.

        Returns
        -------
        list of tuple of Symbol, or int
            Right-hand sides, at least one unless the branch is UNSURE.  None begins with a symbol that derives the
            empty string.  All symbols are usable, that is, derive something, and so does each branch.  A branch
            stands only at the end of a right-hand side.  Or else an earlier branch that goes on in the same way.
        """

    def close(self, branch: int, text: Callable[[int], bytes]) -> int:
        """The branch that takes the place of an open one after a text; ``text(n)`` is its last ``n`` bytes or more.

        Raises
        ------
        NothingLeftError
            If the grammar's user has left nothing that could follow.  It is an error only where nothing follows that
            other rules of the text have.
        """

    def costs(self, branches: Sequence[int], cost_of: Callable[[Symbol], int]) -> list[int]:
        """What it costs at most to go on from each of some branches to the end of its right-hand side.

        NEVER if that is not known.  FAR or more says that there is a way to the end, and that no number is known for
        what will be behind some open branch on it.  Behind that branch there will be one.

        ``cost_of`` tells what the cheapest text of a symbol costs, and NEVER for one that cannot be spelled.  The
        result is a promise that holds at every step:

        * Of the ways in which a text goes on at a branch, there is one whose symbols, together with the cost of the
          branch behind them, cost no more.
        * What takes the place of an open branch, after whatever text, costs no more than the open branch.

        So a text that always takes the cheapest way comes to an end, and no step makes it dearer than it was.
        """


class UnfoldingMaker(Protocol):
    """Begins an unfolding for a compiled grammar."""

    def __call__(self, is_usable: Callable[[Symbol], bool], longest_behind: Callable[[int], int]) -> Unfolding:
        """An unfolding.

        Parameters
        ----------
        is_usable : callable (Symbol) -> bool
            Which symbols of the grammar derive something.
        longest_behind : callable (int) -> int
            How many bytes a token has at most behind the first of one value (0 to 255) in it: a mask looks no further
            ahead behind that byte.
        """


# Productions that are noted as work together.
_SPENT_AT_ONCE = 32

# Above this many repetitions a chain of one rule per count is replaced by one of powers of two.  Few, because of what
# may be empty: n of it in a row are n * n pairs of dots, between which everything is stepped over.
_CHAIN_LIMIT = 4


# So many answers are waited for.
_MOST_QUESTIONS = 16


def _has_scarce_keys(questions: tuple[Callable[[], bool], ...]) -> bool:
    return len(questions) > _MOST_QUESTIONS or any(question() for question in questions)


def _plain_error(reason: str, place: str) -> ConstrainError:
    return GrammarError(f"{place}: {reason}" if place else reason)


class FirstRegion(NamedTuple):
    """That what a text begins with has a budget of its own.

    Every text of the grammar is a text of ``grammar`` and something behind it, and what may follow does not depend on
    which one it is.
    """

    grammar: GrammarIR
    """What texts begin with, and any text behind it: it accepts as soon as that has come to its end."""
    tokens: int
    """How many tokens that may take; a token that reaches beyond its end counts."""
    shortest: bytes
    """A text of it that no other one is shorter than, with nothing behind it; it says what the rest takes at least."""
    option: str
    """What the number is called where it is given, for messages."""


@dataclass(frozen=True)
class GrammarIR:
    """An immutable grammar.

    Attributes
    ----------
    lexemes : tuple of Regular
        The terminals.  A lexeme may match the empty string, or nothing at all.
    lexeme_names, nonterminal_names : tuple of str
        For messages; need not be unique.
    productions : tuple of (int, tuple of Symbol)
        Left-hand nonterminal and right-hand side; an empty right-hand side derives the empty string.
    start : int
        The start nonterminal.
    ignore : tuple of int
        Lexemes (by index) that may stand anywhere: before, between and after other lexemes,
        any number of times.
    warnings : tuple of str
        What the front-end took note of without refusing it.
    unfolded : tuple of int
        Nonterminals whose rules are made as needed.  Their productions here are not followed: they say no more than
        whether the nonterminal derives something.  They must not derive the empty string.
    make_unfolding : callable, optional
        Makes the rules of ``unfolded``.
    makes_lexemes : bool
        Whether those rules have lexemes of their own.
    distinct_keys : tuple of int
        Lexemes (by index) that hold a key of a JSON object, and may match the same key twice in one.  If there are any,
        all texts are JSON, and those in which an object has a key twice are not in the language.
    needs_distinct_keys : bool
        Whether a text may need several of those in one object.
    outside : tuple of int
        Lexemes (by index) that nothing derives whose rules are made on demand, neither those of ``unfolded`` nor what
        these name.  Others may be part of rules that nobody knows yet.
    parse_table : ParseTable, optional
        The parser and the lexer that are to read the texts.  Only what they accept is in the language.
    token_lexemes : tuple of int
        Lexemes (by index) that hold token sets (:mod:`constrain.grammar.tokens`).  Those of ``unfolded`` hold none.
    captures : tuple of (int, CaptureRule)
        Nonterminals whose texts are wanted (engine/captures.py).  They say nothing about the language.
    skips : tuple of int
        Nonterminals of what is ignored, where that is written out: it is no part of a text that is captured.
    temperatures : tuple of (int, float)
        Nonterminals whose texts are to be drawn with a temperature of their own (engine/temperatures.py).
    token_limits : tuple of TokenLimit
        Nonterminals that take so many tokens at most, or at least (engine/conditions/limited_rules).
    first_region : FirstRegion, optional
        The budget of what a text begins with (engine/conditions/first_region.py).
    make_error : callable (reason, place) -> ConstrainError
        How a fault found after the front-end (such as a grammar that matches nothing) is reported
        in the front-end's own terms; ``place`` is a nonterminal's name or "".
    describe : callable (Progress) -> Words
        How a lexeme that may begin or go on somewhere is put in words.
    stock : callable () -> tuple of Regular, optional
        Expressions that lexemes of many grammars of the front-end are made of.  The engine makes them beforehand, and
        finds them in lexemes by identity.  It says nothing about the grammar.
    has_scarce_keys : callable () -> bool
        Whether a text may run short of the keys of ``distinct_keys``: from some beginning on there are only so many, or
        only few that are short, such as ``b`` and ``bbbbbbbb`` and longer ones.  Where it is false, each beginning has
        within 8 bytes one from which 10 letters of ASCII or more go on.  It may take some time to find out.
    make_events : callable () -> EventReader, optional
        Makes what reads the parts of a text (engine/event_stream.py), where the texts have parts with names.
    """

    lexemes: tuple[Regular, ...]
    lexeme_names: tuple[str, ...]
    nonterminal_names: tuple[str, ...]
    productions: tuple[tuple[int, tuple[Symbol, ...]], ...]
    start: int
    ignore: tuple[int, ...] = ()
    warnings: tuple[str, ...] = ()
    unfolded: tuple[int, ...] = ()
    make_unfolding: UnfoldingMaker | None = None
    makes_lexemes: bool = False
    distinct_keys: tuple[int, ...] = ()
    needs_distinct_keys: bool = False
    outside: tuple[int, ...] = ()
    parse_table: ParseTable | None = None
    token_lexemes: tuple[int, ...] = ()
    captures: tuple[tuple[int, CaptureRule], ...] = ()
    skips: tuple[int, ...] = ()
    temperatures: tuple[tuple[int, float], ...] = ()
    token_limits: tuple[TokenLimit, ...] = ()
    first_region: FirstRegion | None = None
    make_error: Callable[[str, str], ConstrainError] = field(default=_plain_error, compare=False)
    describe: Describer = field(default=by_name, compare=False)
    stock: Callable[[], tuple[Regular, ...]] | None = field(default=None, compare=False)
    has_scarce_keys: Callable[[], bool] = field(default=partial(_has_scarce_keys, ()), compare=False)
    make_events: Callable[[], EventReader] | None = field(default=None, compare=False)


class GrammarBuilder:
    """Collects productions and lexemes; equal lexemes are kept once."""

    def __init__(self) -> None:
        self._lexemes: list[Regular] = []
        self._by_content: dict[Regular, int] = {}
        # By identity first, which needs no hash: front-ends ask for the same few objects again and again.  They are
        # held here so that no other object can take the place of one.
        self._by_id: dict[int, tuple[Symbol, Regular]] = {}
        self._lexeme_names: list[str] = []
        self._names: list[str] = []
        self._productions: list[tuple[int, tuple[Symbol, ...]]] = []
        self._derived: dict[tuple[object, ...], Symbol] = {}
        # What each symbol that repeat() has made repeats, and how often.
        self._repeated: dict[Symbol, tuple[Symbol, int, int | None]] = {}
        self.warnings: list[str] = []
        self._distinct_keys: set[Symbol] = set()
        self.needs_distinct_keys = False
        self._may_be_scarce: dict[Callable[[], bool], None] = {}
        self._token_lexemes: set[Symbol] = set()
        self._captures: dict[Symbol, CaptureRule] = {}
        self._skips: set[Symbol] = set()
        self._temperatures: dict[Symbol, float] = {}
        self._limited: dict[Symbol, Limited] = {}
        self._token_limits: tuple[TokenLimit, ...] = ()

    # -- symbols ---------------------------------------------------------------------------

    def nonterminal(self, name: str = "") -> Symbol:
        """A new nonterminal without productions (it derives nothing until :meth:`add`)."""
        self._names.append(name)
        return len(self._names) - 1

    def lexeme(self, language: Regular, name: str = "") -> Symbol:
        """The lexeme with this language; the same symbol for an equal language."""
        known = self._by_id.get(id(language))
        if known is not None:
            return known[0]
        spend()
        try:
            index = self._by_content.get(language)
        except RecursionError:
            raise GrammarError(f"{name or 'a terminal'} is nested too deeply; write it with fewer levels") from None
        if index is None:
            index = self._by_content[language] = len(self._lexemes)
            self._lexemes.append(language)
            self._lexeme_names.append(name)
        self._by_id[id(language)] = (~index, language)
        return ~index

    def token(self, language: Regular, name: str = "") -> Symbol:
        """The lexeme with this language, which holds token sets: one of :func:`constrain.grammar.tokens.token_set`,
        or what it is put together to by concatenation, union and repetition."""
        symbol = self.lexeme(language, name)
        self._token_lexemes.add(symbol)
        return symbol

    def capture(self, symbol: Symbol, rule: CaptureRule) -> None:
        """Note that the texts of a nonterminal are wanted."""
        self._captures[symbol] = rule

    def warm(self, symbol: Symbol, temperature: float) -> None:
        """Note with which temperature the texts of a nonterminal are to be drawn."""
        self._temperatures[symbol] = temperature

    def limit_tokens(
        self,
        symbol: Symbol,
        tokens: int | None,
        make_error: Callable[[str], ConstrainError],
        body: Regular | None = None,
        least: int = 0,
    ) -> None:
        """Note how many tokens a nonterminal takes (:class:`~constrain.grammar.token_limits.TokenLimit`).

        ``make_error`` makes the error if that is not possible for it.
        """
        self._limited[symbol] = Limited(tokens, body, make_error, least)

    def limited_token(
        self, language: Regular, most: int, make_error: Callable[[str], ConstrainError], name: str = ""
    ) -> Symbol:
        """A nonterminal of :meth:`token`, over after ``most`` tokens."""
        rule = self.nonterminal(name)
        self.add(rule, (self.token(language, name),))
        self.limit_tokens(rule, most, make_error)
        return rule

    def skip(self, symbol: Symbol) -> None:
        """Note that a nonterminal is what is ignored."""
        self._skips.add(symbol)

    def copy_marks(self, symbol: Symbol, twin: Symbol) -> None:
        """Let a nonterminal that is written in another one's place be captured, skipped, warmed, limited as that is."""
        if symbol in self._captures:
            self._captures[twin] = self._captures[symbol]
        if symbol in self._temperatures:
            self._temperatures[twin] = self._temperatures[symbol]
        if symbol in self._skips:
            self._skips.add(twin)
        if symbol in self._limited:
            self._limited[twin] = self._limited[symbol]

    def is_marked(self, symbol: Symbol) -> bool:
        """Whether a symbol is more than the language of its texts."""
        marks = (
            self._captures,
            self._temperatures,
            self._skips,
            self._limited,
            self._token_lexemes,
            self._distinct_keys,
        )
        return any(symbol in each for each in marks)

    def twin(self, symbol: Symbol) -> Symbol:
        """Another symbol like this one: a lexeme of the same language, or a nonterminal without productions."""
        if symbol >= 0:
            twin = self.nonterminal(self._names[symbol])
            self.copy_marks(symbol, twin)
            return twin
        self._lexemes.append(self._lexemes[~symbol])
        self._lexeme_names.append(self._lexeme_names[~symbol])
        twin = -len(self._lexemes)
        if symbol in self._token_lexemes:
            self._token_lexemes.add(twin)
        if symbol in self._distinct_keys:
            self._distinct_keys.add(twin)
        return twin

    def replace_production(self, index: int, right: tuple[Symbol, ...]) -> None:
        """Give a production, by its place, another right-hand side."""
        self._productions[index] = self._productions[index][0], right

    def distinct_key(self, language: Regular, name: str = "") -> Symbol:
        """The lexeme with this language, which is a key (:attr:`GrammarIR.distinct_keys`)."""
        symbol = self.lexeme(language, name)
        self._distinct_keys.add(symbol)
        return symbol

    def own_distinct_key(self, language: Regular, name: str = "") -> Symbol:
        """The same for this very object, as :meth:`own_lexeme` is for others."""
        symbol = self.own_lexeme(language, name)
        self._distinct_keys.add(symbol)
        return symbol

    def run_short_of_keys(self, is_scarce: Callable[[], bool]) -> None:
        """Note that some keys are scarce if ``is_scarce()`` (:attr:`GrammarIR.has_scarce_keys`)."""
        self._may_be_scarce[is_scarce] = None

    def own_lexeme(self, language: Regular, name: str = "") -> Symbol:
        """The lexeme of this very object: what is known to come as one object need not be hashed, which takes time."""
        known = self._by_id.get(id(language))
        if known is not None:
            return known[0]
        self._lexemes.append(language)
        self._lexeme_names.append(name)
        symbol = -len(self._lexemes)
        self._by_id[id(language)] = (symbol, language)
        return symbol

    def add(self, left: Symbol, right: Iterable[Symbol] = ()) -> None:
        """Add the production ``left -> right``."""
        if left < 0:
            raise ValueError("the left-hand side of a production must be a nonterminal")
        productions = self._productions
        productions.append((left, tuple(right)))
        if not len(productions) % _SPENT_AT_ONCE:
            spend(_SPENT_AT_ONCE)

    # -- shorthands; each returns a symbol, the same one when asked again -------------------------

    def choice(self, alternatives: Iterable[Sequence[Symbol]], name: str = "") -> Symbol:
        """A nonterminal with one production per alternative."""
        right = tuple(dict.fromkeys(tuple(alternative) for alternative in alternatives))
        if len(right) == 1 and len(right[0]) == 1:
            return right[0][0]
        return self._derive(("choice", right), name, right)

    def sequence(self, symbols: Sequence[Symbol], name: str = "") -> Symbol:
        """One symbol that stands for ``symbols`` in a row."""
        return self.choice([symbols], name)

    def optional(self, symbol: Symbol) -> Symbol:
        """``symbol`` or nothing."""
        return self.choice([(), (symbol,)])

    def star(self, symbol: Symbol) -> Symbol:
        """``symbol`` any number of times.  Left-recursive: its rows repeat, so a list costs the same at any length."""
        key = ("star", symbol)
        if key not in self._derived:
            loop = self._derived[key] = self.nonterminal()
            self.add(loop, ())
            self.add(loop, (loop, symbol))
        return self._derived[key]

    def plus(self, symbol: Symbol) -> Symbol:
        """``symbol`` at least once."""
        key = ("plus", symbol)
        if key not in self._derived:
            loop = self._derived[key] = self.nonterminal()
            self.add(loop, (symbol,))
            self.add(loop, (loop, symbol))
        return self._derived[key]

    def repeat(self, symbol: Symbol, low: int, high: int | None) -> Symbol:
        """``symbol`` from ``low`` to ``high`` times; ``high`` None for no bound.

        The number of rules grows with the bounds up to a small limit, then with their logarithm.
        """
        if low < 0 or (high is not None and high < low):
            raise ValueError(f"bad repetition bounds {low}..{high}")
        if high == 0 or (low == 1 and high == 1):
            return symbol if high else self.choice([()])
        nested = self._repeated.get(symbol)
        counts = nested_counts(*nested[1:], low, high) if nested else None
        if nested and counts:
            symbol, (low, high) = nested[0], counts
        repeated = self._repeat(symbol, low, high)
        self._repeated[repeated] = symbol, low, high
        return repeated

    def _repeat(self, symbol: Symbol, low: int, high: int | None) -> Symbol:
        if high is None:
            if low == 0:
                return self.star(symbol)
            if low == 1:
                return self.plus(symbol)
            return self.sequence((self._exactly(symbol, low), self.star(symbol)))
        if low == high:
            return self._exactly(symbol, low)
        if low == 0:
            return self._at_most(symbol, high)
        return self.sequence((self._exactly(symbol, low), self._at_most(symbol, high - low)))

    def _exactly(self, symbol: Symbol, count: int) -> Symbol:
        if count == 1:
            return symbol
        if count <= _CHAIN_LIMIT:
            return self.sequence((symbol,) * count)
        half = self._exactly(symbol, count // 2)
        return self.sequence((half, half, symbol) if count % 2 else (half, half))

    def _at_most(self, symbol: Symbol, count: int) -> Symbol:
        # Unambiguous on purpose: every count has one derivation, so rows stay small.
        if count == 0:
            return self.choice([()])
        if count <= _CHAIN_LIMIT:
            return self._chain(symbol, count)
        power = 1 << (count.bit_length() - 1)
        if count == 2 * power - 1:
            half = self._at_most(symbol, power - 1)
            return self.choice([(half,), (self._exactly(symbol, power), half)])
        return self.choice(
            [
                (self._at_most(symbol, power - 1),),
                (self._exactly(symbol, power), self._at_most(symbol, count - power)),
            ]
        )

    def _chain(self, symbol: Symbol, count: int) -> Symbol:
        """At most so many of a symbol, each count the tail of the next one."""
        derived = self._derived
        known = count
        while known > 0 and ("at most", symbol, known) not in derived:
            known -= 1
        tail = derived["at most", symbol, known] if known else -1
        for length in range(known + 1, count + 1):
            longer = derived["at most", symbol, length] = self.nonterminal()
            self.add(longer)
            self.add(longer, (symbol,) if length == 1 else (symbol, tail))
            tail = longer
        return tail

    def _derive(self, key: tuple[object, ...], name: str, right: Iterable[tuple[Symbol, ...]]) -> Symbol:
        symbol = self._derived.get(key)
        if symbol is None:
            symbol = self._derived[key] = self.nonterminal(name)
            for alternative in right:
                self.add(symbol, alternative)
        return symbol

    def lexemes(self) -> tuple[Regular, ...]:
        """The lexemes so far, in order."""
        return tuple(self._lexemes)

    @property
    def nonterminal_count(self) -> int:
        """How many nonterminals there are so far."""
        return len(self._names)

    def name_of(self, symbol: Symbol) -> str:
        """The name of a lexeme or nonterminal."""
        return self._names[symbol] if symbol >= 0 else self._lexeme_names[~symbol]

    def is_token(self, symbol: Symbol) -> bool:
        """Whether a symbol is a lexeme that holds token sets."""
        return symbol in self._token_lexemes

    @property
    def production_count(self) -> int:
        """How many productions there are so far."""
        return len(self._productions)

    def productions_since(self, count: int) -> list[tuple[Symbol, tuple[Symbol, ...]]]:
        """The productions but for the first ``count``."""
        return self._productions[count:]

    def separate_limited(self, start: Symbol, ignore: Iterable[Symbol], unfolded: Iterable[Symbol]) -> None:
        """Let limited rules be made of symbols of their own: before anybody counts symbols for good."""
        if self._limited:
            self._token_limits = separate(self, start, self._limited, ignore, unfolded)
            self._limited = {}

    # -- the result ----------------------------------------------------------------------------

    def finish(
        self,
        start: Symbol,
        ignore: Iterable[Symbol] = (),
        make_error: Callable[[str, str], ConstrainError] = _plain_error,
        unfolded: Iterable[Symbol] = (),
        make_unfolding: UnfoldingMaker | None = None,
        describe: Describer = by_name,
        makes_lexemes: bool = False,
        stock: Callable[[], tuple[Regular, ...]] | None = None,
        make_events: Callable[[], EventReader] | None = None,
        outside: Iterable[Symbol] = (),
    ) -> GrammarIR:
        """Freeze what was added.  ``start`` may be a lexeme; ``ignore`` and ``outside`` are lexeme symbols."""
        if start < 0:
            start = self._start_rule(start)
        ignore, unfolded = tuple(ignore), tuple(unfolded)
        self.separate_limited(start, ignore, unfolded)
        return GrammarIR(
            lexemes=tuple(self._lexemes),
            lexeme_names=tuple(self._lexeme_names),
            nonterminal_names=tuple(self._names),
            productions=tuple(self._productions),
            start=start,
            ignore=tuple(~symbol for symbol in ignore),
            warnings=tuple(self.warnings),
            unfolded=unfolded,
            make_unfolding=make_unfolding,
            makes_lexemes=makes_lexemes,
            distinct_keys=tuple(~symbol for symbol in sorted(self._distinct_keys, reverse=True)),
            needs_distinct_keys=self.needs_distinct_keys,
            outside=tuple(~symbol for symbol in outside),
            has_scarce_keys=partial(_has_scarce_keys, tuple(self._may_be_scarce)),
            token_lexemes=tuple(~symbol for symbol in sorted(self._token_lexemes, reverse=True)),
            captures=tuple(self._captures.items()),
            skips=tuple(sorted(self._skips)),
            temperatures=tuple(self._temperatures.items()),
            token_limits=self._token_limits,
            make_error=make_error,
            describe=describe,
            stock=stock,
            make_events=make_events,
        )

    def _start_rule(self, symbol: Symbol) -> Symbol:
        rule = self.nonterminal("start")
        self.add(rule, (symbol,))
        return rule
