"""What is measured: an engine of maskbench, and the notation in which it gets a language's grammar."""

from __future__ import annotations

from dataclasses import dataclass

from bench.code.languages import Language
from bench.maskbench import engines
from bench.maskbench.jobs import Kind


@dataclass(frozen=True)
class Candidate:
    """An engine with a notation.

    Attributes
    ----------
    engine : str
        Its name in :mod:`bench.maskbench.engines`.
    kind : Kind
        Of the notation.
    dialect : str
        The method of :class:`~bench.code.languages.Language` that gives the grammar.
    """

    engine: str
    kind: Kind
    dialect: str

    def grammar(self, language: Language) -> str:
        """The language's grammar for this engine."""
        text: str = getattr(language, self.dialect)()
        return text


OURS, OURS_GBNF, LLGUIDANCE, XGRAMMAR = "constrain", "constrain-gbnf", "llguidance", "xgrammar"

CANDIDATES = {
    OURS: Candidate(engines.OURS, Kind.LARK, "lark"),
    OURS_GBNF: Candidate(engines.OURS, Kind.GBNF, "gbnf"),
    LLGUIDANCE: Candidate("llguidance", Kind.LARK, "llguidance"),
    XGRAMMAR: Candidate("xgrammar", Kind.GBNF, "gbnf"),
}
"""By the names in the tables, in their order."""


def installed(name: str) -> bool:
    """Whether the engine's package is there."""
    return engines.installed(CANDIDATES[name].engine)
