"""Grammar: the public face of every front-end."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

from constrain.grammar.ir import GrammarIR

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from constrain.grammar.schema_options import (
        Formats,
        Numbers,
        PropertyOrder,
        SchemaOptions,
        Spellings,
        WhiteSpace,
    )


class Grammar:
    """What a text may be.  Made with one of the ``from_...`` constructors, compiled by a ``GrammarCompiler``.

    Attributes
    ----------
    ir : GrammarIR
        Rules over lexemes; all that the engine knows.
    warnings : tuple of str
        What was taken note of without being refused.
    """

    def __init__(self, ir: GrammarIR, key: Hashable = None) -> None:
        self.ir = ir
        self._key = key

    @property
    def key(self) -> Hashable:
        """Equal keys mean equal languages; compilers cache by it."""
        return self.ir if self._key is None else self._key

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.ir.warnings

    @classmethod
    def from_json_schema(
        cls,
        schema: dict[str, Any] | bool | str | bytes,
        *,
        whitespace: WhiteSpace = "flexible",
        max_whitespace: int | None = None,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        ensure_ascii: bool = False,
        numbers: Numbers = "any",
        spelling: Spellings = "any",
        property_order: PropertyOrder = "schema",
        formats: Formats = "assert",
        lenient: bool = False,
        registry: Any = None,
        max_work: int = 100_000,
    ) -> Grammar:
        """JSON texts that are valid for a JSON Schema, given as a dict, a bool, or JSON text.

        Options are those of :func:`constrain.grammar.json_schema.from_json_schema`.

        Raises
        ------
        SchemaError
            With a JSON pointer to the part at fault.
        ConstrainError
            If an option has a value that it cannot have.
        """
        options: SchemaOptions = {
            "whitespace": whitespace,
            "max_whitespace": max_whitespace,
            "indent": indent,
            "separators": separators,
            "ensure_ascii": ensure_ascii,
            "numbers": numbers,
            "spelling": spelling,
            "property_order": property_order,
            "formats": formats,
            "lenient": lenient,
            "registry": registry,
            "max_work": max_work,
        }
        from constrain.grammar.json_schema import from_json_schema

        ir = from_json_schema(schema, **options)
        if registry is not None:
            # What it holds may be different next time, so the options are not the whole story.
            return cls(ir)
        try:
            text = schema if isinstance(schema, (str, bytes)) else json.dumps(schema)
        except (TypeError, ValueError, RecursionError):
            # A dict may hold what no JSON text can, where that does not matter, or itself; then the rules are the key.
            return cls(ir)
        hashable = (tuple(value) if isinstance(value, list) else value for value in options.values())
        return cls(ir, ("json_schema", text, *hashable))

    @classmethod
    def from_regex(cls, pattern: str, flags: str = "") -> Grammar:
        """Texts that a regular expression matches from beginning to end.

        Raises
        ------
        GrammarError
            With the place in the pattern.
        """
        from constrain.grammar.regex import from_regex

        return cls(from_regex(pattern, flags), ("regex", pattern, flags))

    @classmethod
    def from_lark(cls, text: str, *, start: str = "start", base_path: str | os.PathLike[str] | None = None) -> Grammar:
        """Texts of a grammar in Lark's notation; ``base_path`` is the folder for relative imports.

        Raises
        ------
        GrammarError
            With line and column.
        """
        from constrain.grammar.lark import from_lark

        ir = from_lark(text, start=start, base_path=base_path)
        # What a relative import brought in may be different next time, so the text is not the whole story.
        return cls(ir, ("lark", text, start) if base_path is None else None)

    @classmethod
    def from_gbnf(cls, text: str, *, start: str = "root") -> Grammar:
        """Texts of a grammar in llama.cpp's GBNF notation.

        Raises
        ------
        GrammarError
            With line and column.
        """
        from constrain.grammar.gbnf import from_gbnf

        return cls(from_gbnf(text, start=start), ("gbnf", text, start))

    @classmethod
    def from_choices(cls, choices: Sequence[str]) -> Grammar:
        """Exactly one of the given strings.

        Raises
        ------
        GrammarError
            If there is no choice, or one is not a string.
        """
        from constrain.grammar.choices import from_choices

        return cls(from_choices(choices), ("choices", *choices))

    @classmethod
    def from_pydantic(cls, model: Any, **options: Unpack[SchemaOptions]) -> Grammar:
        """JSON texts that a pydantic model (or any type pydantic knows) accepts.

        Options are those of :meth:`from_json_schema`.

        Raises
        ------
        SchemaError
            If the model's JSON Schema cannot be enforced.
        """
        from constrain.grammar.pydantic import from_pydantic

        return cls(from_pydantic(model, **options))
