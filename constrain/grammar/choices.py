"""Front-end: one string out of a list."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any, Literal, get_args, get_origin

from constrain.errors import GrammarError
from constrain.grammar.ir import GrammarBuilder, GrammarIR
from constrain.grammar.languages.prefix_tree import prefix_tree
from constrain.grammar.words import by_language
from constrain.limits import spend


def _values_of(choices: Any) -> Any:
    """The values of an ``Enum`` class or of a ``Literal`` type, as a tuple; anything else as it is."""
    if isinstance(choices, type) and issubclass(choices, Enum):
        return tuple(member.value for member in choices)
    return get_args(choices) if get_origin(choices) is Literal else choices


def from_listed(choices: Iterable[str]) -> GrammarIR:
    """The grammar of exactly these strings; repeated ones count once, the empty one is allowed."""
    builder = GrammarBuilder()
    return builder.finish(builder.lexeme(prefix_tree(choices), "choices"), describe=by_language)


def listed_choices(choices: Iterable[str] | Any) -> list[str]:
    """The strings that an iterable has, the values of an ``Enum`` class, or those of a ``Literal``.

    Raises GrammarError if there is no choice, or if one is not a string or holds a lone surrogate
    (which no UTF-8 text can).
    """
    if isinstance(choices, (str, bytes)):
        raise GrammarError(f"choices must be a list of strings, not one {type(choices).__name__}")
    of_type = _values_of(choices)
    advice = "" if of_type is choices else "; Grammar.from_pydantic writes the values of any such type as JSON"
    choices = of_type
    try:
        values = []
        for value in choices:
            spend()
            values.append(value)
    except TypeError:
        raise GrammarError(f"choices must be a list of strings, not {type(choices).__name__}") from None
    if not values:
        raise GrammarError("choices is empty: there must be at least one string to choose")
    for index, value in enumerate(values):
        if not isinstance(value, str):
            raise GrammarError(f"choice {index} is not a string but {type(value).__name__}{advice}")
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise GrammarError(f"choice {index} ({value!r}) holds a lone surrogate, which has no UTF-8") from None
    return values
