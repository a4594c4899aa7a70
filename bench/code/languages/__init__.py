"""The languages: a grammar in Lark's notation and a generator of programs for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from bench.code.languages import c, graphql, javascript, python, rust, sql
from bench.code.notation import to_gbnf

_GRAMMARS = Path(__file__).resolve().parent / "grammars"


@dataclass(frozen=True)
class Language:
    """A language.

    Attributes
    ----------
    name : str
    suffix : str
        Of its files.
    items : Random -> iterator of str
        The parts of an endless program; a program may end after each.
    prepare : str -> str
        What makes the grammar of its file.
    for_llguidance : tuple of (str, str)
        What stands elsewhere in llguidance's grammar, so that its lexer takes ordinary programs: old and new.
    probes : tuple of str
        Small programs of the language where the longest lexeme is not always the right one.
    """

    name: str
    suffix: str
    items: Callable[[Random], Iterator[str]]
    prepare: Callable[[str], str] = str
    for_llguidance: tuple[tuple[str, str], ...] = ()
    probes: tuple[str, ...] = ()

    def lark(self) -> str:
        """The grammar as this package reads it, with ``lexing="any"``."""
        return self.prepare((_GRAMMARS / f"code_{self.name}.lark").read_text(encoding="utf-8"))

    def llguidance(self) -> str:
        """The same for llguidance."""
        text = self.lark()
        for old, new in self.for_llguidance:
            if text.count(old) != 1:
                raise AssertionError(f"{self.name}: {old!r} does not stand in the grammar once")
            text = text.replace(old, new)
        # Without this its lexer takes nothing that is ignored at the beginning of a text.
        return '%llguidance {"allow_initial_skip": true}\n\n' + text

    def gbnf(self) -> str:
        """The same in GBNF, which XGrammar reads as well."""
        return to_gbnf(self.lark())

    def program(self, seed: int, is_long_enough: Callable[[str], bool]) -> str:
        """A whole program; the same for the same seed, but longer ones begin with shorter ones.

        Parameters
        ----------
        is_long_enough : str -> bool
            Whether the text may end here.
        """
        text = ""
        for item in self.items(Random(f"{self.name} {seed}")):
            text += item
            if is_long_enough(text):
                return text
        raise AssertionError("the parts of a program have an end")


# After "0." its lexer waits for another digit, so that "0..n" needs a lexeme of its own.
_RUST_RANGES = (
    ("range: disjunction", "range: INTEGER_DOTS [disjunction] | disjunction"),
    ('| ["-"] literal [', '| ["-"] INTEGER_DOTS ["-"] literal | ["-"] literal ['),
    ("FLOAT: ", "INTEGER_DOTS: /[0-9][0-9_]*\\.\\.=?/\nFLOAT: "),
)

_ALL = (
    Language("c", ".c", c.items),
    Language("sql", ".sql", sql.items),
    Language(
        "python",
        ".py",
        python.items,
        prepare=python.written_out,
        probes=("x = 0 if y else 1\n", "x = 0if y else 1\n", "x = y if z == 1else 0\n"),
    ),
    Language("javascript", ".js", javascript.items, probes=("x = a ? .5 : 1;\n", "x = a?.5:1;\n")),
    Language(
        "rust",
        ".rs",
        rust.items,
        for_llguidance=_RUST_RANGES,
        probes=("fn f() { g(0..n); }\n", "fn f() { x = 1.max(y); }\n", "fn f() { x = t.0.1; }\n"),
    ),
    Language("graphql", ".graphql", graphql.items),
)

LANGUAGES = {each.name: each for each in _ALL}
"""All languages, by name."""
