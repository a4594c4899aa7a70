"""Grammars that stand beside a grammar, and that its rules refer to by name: ``@name``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from constrain.grammar.embedding import EmbeddingBuilder
from constrain.grammar.ir import GrammarIR, Symbol
from constrain.grammar.lark.definitions import Definitions, collect
from constrain.grammar.lark.options import Conventions
from constrain.grammar.lark.source import Source
from constrain.grammar.lark.tree import Token
from constrain.grammar.lark.validate import validate


@dataclass(frozen=True)
class Part:
    """A grammar that another front-end writes as a part of this one, which may be more than could be copied.

    Attributes
    ----------
    write : callable (EmbeddingBuilder) -> Symbol
        Writes its rules, and returns the symbol of its texts.
    """

    write: Callable[[EmbeddingBuilder], Symbol]


NamedGrammar: TypeAlias = "str | dict[str, Any] | bool | Part | GrammarIR"
"""A grammar in Lark's notation, a JSON Schema, what a front-end writes, or a grammar that is complete."""

ReadGrammar: TypeAlias = "Definitions | dict[str, Any] | bool | Part | GrammarIR"


def read_named(named: Mapping[str, NamedGrammar], source: Source, conventions: Conventions) -> dict[str, ReadGrammar]:
    """The grammars, those in Lark's notation read; all of them may refer to each other.

    Raises
    ------
    GrammarError
        For a fault in one of them, whether something refers to it or not.
    """
    read: dict[str, ReadGrammar] = {}
    for name, given in named.items():
        if isinstance(given, str):
            read[name] = inner_definitions(given, replace(source, name=f"@{name}"), None, conventions, named)
        else:
            read[name] = given
    return read


def inner_definitions(
    text: str, source: Source, at: Token | None, conventions: Conventions, named: Collection[str]
) -> Definitions:
    """The definitions of a grammar that is part of another one, whose texts are those of its rule ``start``.

    Raises
    ------
    GrammarError
        For a fault in it, or if it has no such rule.
    """
    definitions = collect(text, source, conventions)
    validate(definitions, named=named)
    start = definitions.by_name.get("start")
    if start is None or start.params or start.has_number:
        raise source.error(f'the grammar{"" if at is None else f" in {at}"} needs a rule "start"', at)
    return definitions
