"""What is measured: an engine of maskbench, and the notation in which it gets a language's grammar."""

from __future__ import annotations

from dataclasses import dataclass, field

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
    options : dict
        Of the engine.
    """

    engine: str
    kind: Kind
    dialect: str
    options: dict[str, object] = field(default_factory=dict)

    def grammar(self, language: Language) -> str:
        """The language's grammar for this engine."""
        text: str = getattr(language, self.dialect)()
        return text


OURS, OURS_GBNF, XGRAMMAR = "constrain", "constrain-gbnf", "xgrammar"
LLGUIDANCE, LLGUIDANCE_LIMITED = "llguidance", "llguidance-limited"

# Its parser's own limit of 50,000 items in a step ends most programs early.  So it is measured without, and with it to
# see where that is.
_NO_LIMIT = 1 << 31

CANDIDATES = {
    OURS: Candidate(engines.OURS, Kind.LARK, "lark"),
    OURS_GBNF: Candidate(engines.OURS, Kind.GBNF, "gbnf"),
    LLGUIDANCE: Candidate("llguidance", Kind.LARK, "llguidance", {"max_items": _NO_LIMIT}),
    LLGUIDANCE_LIMITED: Candidate("llguidance", Kind.LARK, "llguidance"),
    XGRAMMAR: Candidate("xgrammar", Kind.GBNF, "gbnf"),
}
"""By the names in the tables, in their order."""


def installed(name: str) -> bool:
    """Whether the engine's package is there."""
    return engines.installed(CANDIDATES[name].engine)
