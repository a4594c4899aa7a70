"""The languages: a grammar in Lark's notation and a generator of programs for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from bench.code.languages import c, sql
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
    """

    name: str
    suffix: str
    items: Callable[[Random], Iterator[str]]

    def lark(self) -> str:
        """The grammar as this package reads it, with ``lexing="any"``."""
        return (_GRAMMARS / f"{self.name}.lark").read_text(encoding="utf-8")

    def llguidance(self) -> str:
        """The same for llguidance."""
        # Without this its lexer takes nothing that is ignored at the beginning of a text.
        return '%llguidance {"allow_initial_skip": true}\n\n' + self.lark()

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


LANGUAGES = {each.name: each for each in (Language("c", ".c", c.items), Language("sql", ".sql", sql.items))}
"""All languages, by name."""
