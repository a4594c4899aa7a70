"""A grammar that is put together from what several front-ends write: free text around JSON around a pattern."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from constrain.errors import ConstrainError, GrammarError
from constrain.grammar.ir import GrammarBuilder, GrammarIR, Symbol
from constrain.grammar.languages.regular import Regular
from constrain.grammar.rules_on_demand import Template, UnfoldingMaker
from constrain.grammar.words import Describer, by_name

MakeStock = Callable[[], tuple[Regular, ...]]


def _make_error(reason: str, place: str) -> ConstrainError:
    return GrammarError(reason)


class EmbeddingBuilder(GrammarBuilder):
    """Collects the rules of all parts.

    Attributes
    ----------
    unfolded : dict of Symbol to Template
        The nonterminals whose rules are made on demand.
    makes_lexemes : bool
        Whether those rules have lexemes of their own.
    formats : set of str
        The formats that schemas among the parts name.
    has_schemas : bool
        Whether there are any.
    is_lenient : bool, optional
        Whether what is not supported in a schema is left out, with a warning; None: as the schema itself says, and no
        option could say so.
    """

    def __init__(self, is_lenient: bool | None = None) -> None:
        super().__init__()
        self.is_lenient = is_lenient
        self.unfolded: dict[Symbol, Template] = {}
        self.makes_lexemes = False
        self.formats: set[str] = set()
        self.has_schemas = False
        self._outside: dict[Regular, Symbol] = {}

    def separate_lexeme(self, language: Regular, name: str = "") -> Symbol:
        """A lexeme of its own, whatever others there are with this language."""
        self._lexemes.append(language)
        self._lexeme_names.append(name)
        return -len(self._lexemes)

    def outside_lexeme(self, language: Regular, name: str = "") -> Symbol:
        """The lexeme with this language that stands outside of all parts (:attr:`GrammarIR.outside`)."""
        symbol = self._outside.get(language)
        if symbol is None:
            symbol = self._outside[language] = self.separate_lexeme(language, name)
        return symbol

    def include(self, ir: GrammarIR) -> Symbol:
        """The start of a grammar that is complete by itself, whose rules are copied with all that is said of them.

        Raises GrammarError for what only fits a grammar of its own: rules made on demand, keys that must differ, a
        lexer, a budget.
        """
        if ir.unfolded or ir.distinct_keys:
            raise GrammarError(
                "a grammar with rules made on demand (unique items, members in any order, narrowed terminals) "
                "cannot be part of another one; a schema or a structural tag can"
            )
        if ir.parse_table is not None:
            raise GrammarError("a grammar that is read with Lark's lexer cannot be part of another one")
        if ir.first_region is not None:
            raise GrammarError("a grammar with a budget for how it begins cannot be part of another one")
        lexemes = [
            (self.token if index in ir.token_lexemes else self.lexeme)(each, name)
            for index, (each, name) in enumerate(zip(ir.lexemes, ir.lexeme_names, strict=True))
        ]
        ignored = self.choice([(lexemes[index],) for index in ir.ignore]) if ir.ignore else None
        if ignored is not None:
            # It may stand in front of the first lexeme, and behind each.
            skip = self.nonterminal()
            self.add(skip)
            self.add(skip, (skip, ignored))
            self.skip(skip)
            lexemes = [self.sequence((lexeme, skip)) for lexeme in lexemes]
        first = self.nonterminal_count
        for name in ir.nonterminal_names:
            self.nonterminal(name)
        for left, right in ir.productions:
            self.add(first + left, [first + symbol if symbol >= 0 else lexemes[~symbol] for symbol in right])
        for symbol, rule in ir.captures:
            self.capture(first + symbol, rule)
        for symbol, temperature in ir.temperatures:
            self.warm(first + symbol, temperature)
        for symbol in ir.skips:
            self.skip(first + symbol)
        for limit in ir.token_limits:
            self.limit_tokens(first + limit.symbol, limit.tokens, GrammarError, limit.body, limit.least)
        self.warnings += ir.warnings
        return first + ir.start if ignored is None else self.sequence((skip, first + ir.start))

    def finish_whole(
        self,
        start: Symbol,
        make_stock: MakeStock | None = None,
        *,
        ignore: Iterable[Symbol] = (),
        make_error: Callable[[str, str], ConstrainError] = _make_error,
        describe: Describer = by_name,
    ) -> GrammarIR:
        """Freeze all that was added; the arguments are those of :meth:`GrammarBuilder.finish`."""
        ignore = tuple(ignore)
        self.separate_limited(start, ignore, self.unfolded)
        outside = self._outside.values()
        maker = None
        if self.unfolded:
            maker = UnfoldingMaker(self.unfolded, self.lexemes(), self.nonterminal_count, frozenset(outside))
        return self.finish(
            start,
            ignore,
            make_error,
            unfolded=self.unfolded,
            make_unfolding=maker,
            makes_lexemes=self.makes_lexemes,
            stock=make_stock,
            describe=describe,
            outside=outside,
        )
