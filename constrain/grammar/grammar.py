"""Grammar: the public face of every front-end."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_origin

from constrain.errors import GrammarError, LimitError, SchemaError
from constrain.grammar.ir import GrammarIR
from constrain.grammar.schema_options import (
    Formats,
    Numbers,
    Patterns,
    PropertyOrder,
    Registry,
    SchemaOptions,
    Spellings,
    UnicodeEscapes,
    WhiteSpace,
    explains_options,
)
from constrain.limits import Deadline, limited

if TYPE_CHECKING:
    from constrain.grammar.tools.style import ToolStyle

_KEY_VALUES = 1_000_000
"""The values in a schema (a string of 64 characters counts as one), above which its text is not its key."""


# No JSON text looks like this.
_NAME_OF_FILE = re.compile(r"[\w./\\:~ -]{1,4096}\.json")

# What the keys of grammars begin with.
_ORIGINS = {
    "json_schema": "JSON Schema",
    "regex": "a regular expression",
    "lark": "Lark",
    "llguidance": "llguidance",
    "gbnf": "GBNF",
    "ebnf": "EBNF",
    "choices": "choices",
    "structural_tag": "a structural tag",
    "tools": "tools",
}


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


class _reading(limited):
    """A front-end at work: its steps are counted, and what is nested too deeply for it is an error of ours."""

    def __exit__(self, *reason: object) -> None:
        super().__exit__(*reason)
        if isinstance(reason[1], RecursionError):
            raise LimitError("the grammar is nested too deeply to be read; write it with fewer levels") from None


def _check_text(value: object, what: str) -> None:
    if not isinstance(value, str):
        advice = ""
        if isinstance(value, Path):
            advice = "; of a file, path.read_text()"
        elif isinstance(value, re.Pattern):
            advice = "; of a compiled one, its .pattern, and its flags as letters such as 'is'"
        raise GrammarError(f"{what} must be a str, not {type(value).__name__}{advice}")


def _check_grammar(text: object, start: object) -> None:
    _check_text(text, "a grammar")
    if re.fullmatch(r"[^\n]+\.(?:lark|gbnf|ebnf)", str(text)):
        raise GrammarError(f"{text!r} is no grammar; of a file, pathlib.Path({text!r}).read_text()")
    _check_text(start, "the name of the start rule")


def _is_small(schema: object) -> bool:
    """Whether the text of a schema has a reasonable size: a dict may hold one object in many places."""
    level, total = [schema], 0
    while level:
        inner: list[object] = []
        for value in level:
            if isinstance(value, dict):
                inner += value.values()
            elif isinstance(value, (list, tuple)):
                inner += value
            elif isinstance(value, str):
                total += len(value) >> 6
        total += len(inner)
        if total > _KEY_VALUES:
            return False
        level = inner
    return True


def _json_of(value: object) -> str | None:
    """The JSON text of plain data, if it is small; None also for what holds a model, a class or a function."""
    if not _is_small(value):
        return None
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return None


def _named(grammars: Mapping[str, Any] | None) -> dict[str, Any]:
    """Named grammars, with their rules in the place of those that are complete."""
    if grammars is None:
        return {}
    if not isinstance(grammars, Mapping) or not all(type(name) is str for name in grammars):
        raise GrammarError("named_grammars must be a dict from names to grammars")
    for name, grammar in grammars.items():
        if not isinstance(grammar, (str, dict, bool, Grammar)):
            raise GrammarError(
                f"named_grammars[{name!r}] must be the text of a grammar, a JSON Schema or a Grammar, "
                f"not {type(grammar).__name__}"
            )
    return {name: _part(each) if isinstance(each, Grammar) else each for name, each in grammars.items()}


def _sources_of(grammars: Mapping[str, Any]) -> tuple[str, tuple[tuple[str, Hashable], ...]] | None:
    """Named grammars as JSON text, if they are small, and of those that are complete the keys."""
    complete = {name: each for name, each in grammars.items() if isinstance(each, Grammar)}
    text = _json_of({name: each for name, each in grammars.items() if name not in complete})
    keys = tuple((name, each.key) for name, each in complete.items())
    return None if text is None or any(isinstance(key, GrammarIR) for _, key in keys) else (text, keys)


def _part(grammar: Grammar) -> Any:
    """What is written into another grammar for this one: where there is a source for it, that is written anew."""
    from constrain.grammar.lark.named import Part

    key: Any = grammar.key
    kind = key[0] if isinstance(key, tuple) else None
    if kind == "json_schema":
        from constrain.grammar.json_schema.front_end import embed_json_schema

        options = cast(SchemaOptions, dict(zip(SchemaOptions.__annotations__, key[2:], strict=True)))
        return Part(lambda builder: embed_json_schema(builder, key[1], options))
    if kind == "structural_tag":
        from constrain.grammar.lark.rules import write_lark
        from constrain.grammar.structural_tags.writer import embed_structural_tag

        return Part(lambda builder: embed_structural_tag(builder, key[1], write_lark))
    return grammar.ir


def _options_in(parameters: dict[str, Any]) -> SchemaOptions:
    """The options for a schema among the parameters of a function that has all of them."""
    return cast(SchemaOptions, {name: parameters[name] for name in SchemaOptions.__annotations__})


def _text_of(path: os.PathLike[str]) -> str:
    """The text of a schema's file, with or without a byte order mark."""
    name = os.fspath(path)
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise GrammarError(f"{name!r} is not UTF-8 text (byte {error.start})") from None
    except (OSError, ValueError, TypeError) as error:  # no such file; a name with a zero byte; a path of bytes
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise GrammarError(f"cannot read {name!r}: {reason}") from None


class Grammar:
    """What a text may be.  Made with one of the ``from_...`` constructors, compiled by a ``GrammarCompiler``.

    All constructors take ``time_limit``, the seconds that reading may take (no limit by default), or a
    :class:`~constrain.limits.Deadline`; when they are over there is a LimitError.

    Attributes
    ----------
    ir : GrammarIR
        Rules over lexemes; all that the engine knows.
    warnings : tuple of str
        What was taken note of without being refused.
    """

    def __init__(self, ir: GrammarIR, key: Hashable = None) -> None:
        if not isinstance(ir, GrammarIR):
            raise TypeError(f"a Grammar is made with one of Grammar.from_..., not of {type(ir).__name__}")
        self.ir = ir
        self._key = key

    @property
    def key(self) -> Hashable:
        """Equal keys mean equal languages; compilers cache by it."""
        return self.ir if self._key is None else self._key

    def __repr__(self) -> str:
        rules = len({left for left, _ in self.ir.productions})
        return f"<Grammar{self._origin}: {_counted(rules, 'rule')}, {_counted(len(self.ir.lexemes), 'lexeme')}>"

    @property
    def _origin(self) -> str:
        source = self._key[0] if isinstance(self._key, tuple) and self._key else None
        return f" from {_ORIGINS[source]}" if source in _ORIGINS else ""

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.ir.warnings

    @classmethod
    @explains_options
    def from_json_schema(
        cls,
        schema: dict[str, Any] | bool | str | bytes | os.PathLike[str],
        *,
        time_limit: float | Deadline | None = None,
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
        registry: Registry | None = None,
        max_work: int = 100_000,
        whitespace_pattern: str | None = None,
        separator_patterns: tuple[str, str] | None = None,
        surrounding_whitespace: bool = False,
        unicode_escapes: UnicodeEscapes = "any",
        additional_properties: bool = True,
        patterns: Patterns = "search",
        coerce_one_of: bool = False,
        max_array_length: int | None = None,
    ) -> Grammar:
        """JSON texts that are valid for a JSON Schema.

        Parameters
        ----------
        schema : dict, bool, str, bytes or path
            The schema, its JSON text (bytes are UTF-8), or a ``pathlib.Path`` of a file with it.  ``$schema`` says
            which draft it is written in: 4, 6, 7, 2019-09 or 2020-12 (the default).
        time_limit : float or Deadline, optional
            The seconds that reading may take.
        {options}

        Raises
        ------
        SchemaError
            With a JSON pointer to the part at fault.
        GrammarError
            If the file cannot be read.
        ConstrainError
            If an option has a value that it cannot have.
        LimitError
            If reading it takes too long, or makes too much.
        """
        options = _options_in(locals())
        with _reading(time_limit):
            if isinstance(schema, str):
                if schema.endswith(".json") and _NAME_OF_FILE.fullmatch(schema):
                    raise SchemaError(
                        f"{schema!r} is no JSON; if it is the name of a file, give pathlib.Path({schema!r})"
                    )
                return cls._of_schema(schema, options)
            if isinstance(schema, type) or get_origin(schema) is not None:
                name = getattr(schema, "__name__", str(schema))
                raise SchemaError(f"{name} is a Python type and no schema: for those there is Grammar.from_pydantic")
            return cls._of_schema(_text_of(schema) if isinstance(schema, os.PathLike) else schema, options)

    @classmethod
    def _of_schema(cls, schema: dict[str, Any] | bool | str | bytes, options: SchemaOptions) -> Grammar:
        from constrain.grammar.json_schema.front_end import from_json_schema

        ir = from_json_schema(schema, **options)
        if options["registry"] is not None:
            # What it holds may be different next time, so the options are not the whole story.
            return cls(ir)
        try:
            if isinstance(schema, (str, bytes)):
                text = schema
            elif _is_small(schema):
                text = json.dumps(schema)
            else:
                return cls(ir)
        except (TypeError, ValueError, RecursionError):
            # A dict may hold what no JSON text can, where that does not matter, or itself; then the rules are the
            # key.
            return cls(ir)
        if isinstance(options["separators"], list) or isinstance(options["separator_patterns"], list):
            values = [tuple(value) if isinstance(value, list) else value for value in options.values()]
            return cls(ir, ("json_schema", text, *values))
        return cls(ir, ("json_schema", text, *options.values()))

    @classmethod
    def from_regex(
        cls,
        pattern: str,
        flags: str = "",
        *,
        dialect: Literal["python", "ecma", "rust"] = "python",
        time_limit: float | Deadline | None = None,
    ) -> Grammar:
        """Texts that a regular expression matches from beginning to end.

        Parameters
        ----------
        pattern : str
        flags : str
            Any of ``i s m x a u``, as in Python's ``re``.
        dialect : "python", "ecma" or "rust"
            Whose syntax the pattern has: that of Python's ``re``, of ECMAScript, as patterns in JSON Schema, or of
            Rust's ``regex``, with sets within sets.
        time_limit : float or Deadline, optional
            The seconds that reading may take.

        Raises
        ------
        GrammarError
            With the place in the pattern.
        LimitError
            If reading it takes too long, or makes too much.
        """
        from constrain.grammar.regex import from_regex

        _check_text(pattern, "a pattern")
        _check_text(flags, "the flags of a pattern")
        if dialect not in ("python", "ecma", "rust"):
            raise GrammarError(f"dialect must be 'python', 'ecma' or 'rust', not {dialect!r}")
        with _reading(time_limit):
            return cls(from_regex(pattern, flags, dialect), ("regex", pattern, flags, dialect))

    @classmethod
    def from_lark(
        cls,
        text: str,
        *,
        start: str = "start",
        base_path: str | os.PathLike[str] | None = None,
        lexing: Literal["any", "longest", "longest-basic"] = "any",
        narrow: Mapping[str, Callable[[str], Iterable[str] | None]] | None = None,
        case: Literal["unicode", "ascii"] = "unicode",
        initial_ignore: bool = True,
        indenter: Any = None,
        named_grammars: Mapping[str, str | dict[str, Any] | bool | Grammar] | None = None,
        time_limit: float | Deadline | None = None,
    ) -> Grammar:
        """Texts of a grammar in Lark's notation.

        Parameters
        ----------
        text : str
        start : str
            The rule that a whole text has to match.
        base_path : path, optional
            The folder for relative imports, and for others before the grammars that come with Lark.
        lexing : "any", "longest" or "longest-basic"
            ``"any"``: every way to split a text into terminals counts.  ``"longest"``: the texts that Lark's own LALR
            parser accepts with its contextual lexer, by the longest match, priorities, and strings before regexes.
            ``"longest-basic"``: the same with its basic lexer.
        narrow : dict of str to callable, optional
            By the name of a terminal, a function of the text in front of it (without what is ignored right before),
            which gives the strings that it may be there, or None for all of its own.  Strings that the terminal does
            not match do not count.  Where nothing else can follow, one has to be left: otherwise whatever asks (a mask,
            too) raises GrammarError.  The function is called often, also for texts that never come; its result must
            depend on the text alone.  With ``lexing="any"`` only.
        case : "unicode" or "ascii"
            Which letters the flag ``i`` of strings and regexes is about.
        initial_ignore : bool
            Whether what ``%ignore`` names may stand before the first terminal.  ``allow_initial_skip`` of
            ``%llguidance`` in the grammar counts before it.
        indenter : lark.indenter.Indenter or a class of them, optional
            What makes the terminals ``INDENT_type`` and ``DEDENT_type`` (``%declare``) of the ends of lines, as Lark's
            ``postlex`` does.  For the lexings of Lark; no line of a statement is indented by more than 100 columns.
        named_grammars : dict of str to str, dict, bool or Grammar, optional
            What ``@name`` in the grammar stands for: the rule ``start`` of a grammar in Lark's notation, which may
            refer to the others; the values of a JSON Schema; or the texts of a Grammar.  With ``lexing="any"`` only.
        time_limit : float or Deadline, optional
            The seconds that reading may take.

        Raises
        ------
        GrammarError
            With line and column.
        LimitError
            If reading it takes too long, or makes too much.
        """
        from constrain.grammar.lark import from_lark
        from constrain.grammar.lark.indenting import Indenting

        _check_grammar(text, start)
        if lexing not in ("any", "longest", "longest-basic"):
            raise GrammarError(f"lexing must be 'any', 'longest' or 'longest-basic', not {lexing!r}")
        if case not in ("unicode", "ascii"):
            raise GrammarError(f"case must be 'unicode' or 'ascii', not {case!r}")
        if type(initial_ignore) is not bool:
            raise GrammarError(f"initial_ignore must be a boolean, not {initial_ignore!r}")
        if narrow is not None and not (isinstance(narrow, Mapping) and all(map(callable, narrow.values()))):
            raise GrammarError("narrow must be a dict from names of terminals to functions")
        if base_path is not None and not isinstance(base_path, (str, os.PathLike)):
            raise GrammarError(f"base_path must be the path of a folder, not {type(base_path).__name__}")
        named = _named(named_grammars)
        with _reading(time_limit):
            indenting = None if indenter is None else Indenting.of(indenter)
            ir = from_lark(
                text,
                start=start,
                base_path=base_path,
                indenting=indenting,
                lexing=lexing,
                narrow=narrow,
                case=case,
                initial_ignore=initial_ignore,
                named=named,
            )
        # What a relative import brought in may be different next time, so the text is not the whole story; nor is it
        # with functions.
        others = _sources_of(named_grammars or {})
        if base_path is not None or narrow or others is None:
            return cls(ir)
        key = text, start, lexing, case, initial_ignore, *others
        return cls(ir, ("lark", *key) if indenting is None else ("indented lark", *key, indenting.key))

    @classmethod
    def from_llguidance(cls, grammar: str | dict[str, Any], *, time_limit: float | Deadline | None = None) -> Grammar:
        """Texts of a grammar as llguidance takes it: its Lark, or JSON with a list of grammars that have names.

        Parameters
        ----------
        grammar : str or dict
            ``{"grammars": [{"name": "a", "lark_grammar": "start: ..."}, {"name": "b", "json_schema": {...}}, ...]}``,
            its JSON text, or the text of a grammar in Lark's notation.  A text has to match the first of the list, and
            ``@b`` in those in Lark's notation refers to another one.  Nothing is ignored before the first terminal,
            unless the grammar says otherwise.
        time_limit : float or Deadline, optional
            The seconds that reading may take.

        Raises
        ------
        GrammarError
            With the place in the grammar.
        SchemaError
            If the first of the list is a schema, with a JSON pointer to the part at fault.
        LimitError
            If reading it takes too long, or makes too much.
        """
        from constrain.grammar.lark.grammar_list import from_list

        if isinstance(grammar, (str, Path)):
            _check_grammar(grammar, "start")
        with _reading(time_limit):
            ir = from_list(grammar)
            text = grammar if isinstance(grammar, str) else _json_of(grammar)
            return cls(ir, None if text is None else ("llguidance", text))

    @classmethod
    def from_gbnf(cls, text: str, *, start: str = "root", time_limit: float | Deadline | None = None) -> Grammar:
        """Texts of a grammar in llama.cpp's GBNF notation.

        Raises
        ------
        GrammarError
            With line and column.
        LimitError
            If reading it takes too long, or makes too much.
        """
        from constrain.grammar.gbnf import from_gbnf

        _check_grammar(text, start)
        with _reading(time_limit):
            return cls(from_gbnf(text, start=start), ("gbnf", text, start))

    @classmethod
    def from_structural_tag(
        cls, tag: Any, *, lenient: bool = False, time_limit: float | Deadline | None = None
    ) -> Grammar:
        """Texts that a structural tag describes: free text, tags, schemas and patterns, in XGrammar's JSON notation.

        Parameters
        ----------
        tag : dict, str, bytes or pydantic model
            ``{"type": "structural_tag", "format": ...}``, its JSON text, XGrammar's own model, a format alone, or the
            older form with ``structures`` and ``triggers``.
        lenient : bool
            Whether what is not supported in a schema is left out, with a warning, as
            :meth:`~constrain.Grammar.from_json_schema` does.
        time_limit : float or Deadline, optional
            The seconds that reading may take.

        Raises
        ------
        SchemaError
            With a JSON pointer to the part at fault.
        LimitError
            If reading it takes too long, or makes too much.
        """
        from constrain.grammar.structural_tags.front_end import from_structural_tag

        with _reading(time_limit):
            ir = from_structural_tag(tag, lenient=lenient)
            text = tag if isinstance(tag, (str, bytes)) else _json_of(tag)
            return cls(ir, None if text is None else ("structural_tag", text, lenient))

    @classmethod
    def from_ebnf(cls, text: str, *, start: str = "root", time_limit: float | Deadline | None = None) -> Grammar:
        """Texts of a grammar in XGrammar's EBNF, with its macros.

        Raises
        ------
        GrammarError
            With line and column.
        LimitError
            If reading it takes too long, or makes too much.
        """
        from constrain.grammar.ebnf import from_ebnf

        _check_grammar(text, start)
        with _reading(time_limit):
            return cls(from_ebnf(text, start=start), ("ebnf", text, start))

    @classmethod
    def from_tools(
        cls,
        tools: Iterable[Any],
        *,
        style: str | ToolStyle,
        tool_choice: str | Mapping[str, Any] = "auto",
        parallel: bool = True,
        reasoning: bool | int = True,
        reasoning_begun: bool | None = None,
        property_order: PropertyOrder = "schema",
        closed: bool = True,
        lenient: bool = False,
        special_tokens: Iterable[str] = (),
        time_limit: float | Deadline | None = None,
    ) -> Grammar:
        """A whole turn of a model that may think, talk and call tools, in the model's own syntax.

        Parameters
        ----------
        tools : iterable of dict, type or function
            OpenAI's JSON (``{"type": "function", "function": {...}}``, or the inner object), pydantic models, or Python
            functions.
        style : str or ToolStyle
            The syntax: ``"llama3"``, ``"qwen3"``, ``"hermes"``, ``"deepseek_v3"``, ...; an error lists all.
        tool_choice : str or dict
            ``"auto"``: text, with calls in it.  ``"required"``: calls and no text.  ``"none"``: text.  Or the name of a
            tool: one call of it.  The objects that requests in OpenAI's and Anthropic's JSON have for these do as well,
            OpenAI's ``allowed_tools``, which names those of the tools that may be called, and Anthropic's
            ``disable_parallel_tool_use``, which is ``parallel=False``.
        parallel : bool
            Whether there may be several calls.
        reasoning : bool
            Whether the turn may begin with thoughts, in a style that has them; without them their marks are not
            allowed.  A number: of how many tokens, marks included, the thoughts may be, inside the budget of a matcher
            (``max_tokens``); not with ``special_tokens``.
        reasoning_begun : bool, optional
            Whether the prompt holds what thoughts begin with, as one that ends with ``<think>`` does: then the turn
            begins with thoughts.  By default as the prompts of the style do.
        property_order : {"schema", "any"}
            The arguments come in the order of the schema, or in every order.
        closed : bool
            Whether objects whose schema names members have no others, where it does not say.
        lenient : bool
            Whether what is not supported in the schema of a tool is left out, with a warning, as
            :meth:`~constrain.Grammar.from_json_schema` does.
        special_tokens : iterable of str
            Marks of the style that are special tokens of the model (``<|python_tag|>``), by their names: they stand
            for themselves then, and their characters are text.  By default all marks are text.
        time_limit : float or Deadline, optional
            The seconds that reading may take.

        Raises
        ------
        SchemaError
            With a JSON pointer into the list of tools.
        ConstrainError
            If an option has a value that it cannot have.
        LimitError
            If reading it takes too long, or makes too much.
        """
        from constrain.grammar.tools.front_end import choice_of, from_tools

        with _reading(time_limit):
            choice, allowed, is_single = choice_of(tool_choice)
            if is_single and isinstance(parallel, bool):
                parallel = False
            tools = list(tools) if isinstance(tools, Iterable) and not isinstance(tools, (str, bytes, dict)) else tools
            if isinstance(special_tokens, Iterable) and not isinstance(special_tokens, str):
                special_tokens = tuple(special_tokens)
            ir = from_tools(
                tools,
                style=style,
                tool_choice=choice,
                parallel=parallel,
                reasoning=reasoning,
                reasoning_begun=reasoning_begun,
                property_order=property_order,
                closed=closed,
                lenient=lenient,
                special_tokens=special_tokens,
                allowed=allowed,
            )
            text = _json_of(tools)
            # A number is written out: 1 and True are the same key.
            thoughts = reasoning if isinstance(reasoning, bool) else str(reasoning)
            options = (
                style,
                choice,
                parallel,
                thoughts,
                reasoning_begun,
                property_order,
                closed,
                lenient,
                special_tokens,
                allowed,
            )
            return cls(ir, None if text is None else ("tools", text, *options))

    @classmethod
    def from_choices(
        cls, choices: Iterable[str] | type[Enum] | Any, *, time_limit: float | Deadline | None = None
    ) -> Grammar:
        """Exactly one of the given strings, as it is (in JSON, with quotes, they are an ``enum`` of a schema).

        Parameters
        ----------
        choices : strings, Enum class or Literal
            The strings, an ``Enum`` class whose values are strings, or a ``Literal`` of strings.
        time_limit : float or Deadline, optional
            The seconds that reading may take.

        Raises
        ------
        GrammarError
            If there is no choice, or one is not a string.
        LimitError
            If reading them takes too long, or makes too much.
        """
        from constrain.grammar.choices import from_listed, listed_choices

        with _reading(time_limit):
            listed = listed_choices(choices)
            return cls(from_listed(listed), ("choices", *listed))

    @classmethod
    @explains_options
    def from_pydantic(
        cls,
        model: Any,
        *,
        time_limit: float | Deadline | None = None,
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
        registry: Registry | None = None,
        max_work: int = 100_000,
        whitespace_pattern: str | None = None,
        separator_patterns: tuple[str, str] | None = None,
        surrounding_whitespace: bool = False,
        unicode_escapes: UnicodeEscapes = "any",
        additional_properties: bool = True,
        patterns: Patterns = "search",
        coerce_one_of: bool = False,
        max_array_length: int | None = None,
    ) -> Grammar:
        """JSON texts that a pydantic model accepts, any type that pydantic knows, or the arguments of a function.

        Parameters
        ----------
        model : type, function or pydantic.TypeAdapter
            A ``BaseModel`` class, a dataclass, a ``TypedDict``, or any other type that ``TypeAdapter`` takes
            (``list[int]``, ``int | None``, ``Literal["a", "b"]``, an ``Enum``, ...).  Of a function, its arguments:
            an object with a member for each of its parameters.  Validators written in Python are not enforced.
        time_limit : float or Deadline, optional
            The seconds that reading may take.
        {options}

        Raises
        ------
        GrammarError
            If pydantic has no JSON Schema for the type.
        SchemaError
            If the model's JSON Schema cannot be enforced.
        ConstrainError
            If pydantic is not installed, or an option has a value that it cannot have.
        LimitError
            If reading it takes too long, or makes too much.
        """
        options = _options_in(locals())
        from constrain.grammar.pydantic.front_end import schema_of

        with _reading(time_limit):
            return cls._of_schema(schema_of(model), options)
