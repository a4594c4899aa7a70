"""From formats to rules and lexemes.

Where text is free, it is free up to a string that means something: a trigger, or the end of the tag around it.  So what
is free and the string behind it are one lexeme (:mod:`~.free_text`), and a format is written either alone
(:meth:`Writer.write`) or together with the ends of its tag (:meth:`Writer.write_through`).
"""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from typing import NoReturn

from constrain.errors import GrammarError, SchemaError
from constrain.grammar.embedding import EmbeddingBuilder
from constrain.grammar.gbnf import from_gbnf
from constrain.grammar.ir import Symbol
from constrain.grammar.prefix_tree import prefix_tree
from constrain.grammar.regex import regex_code_points
from constrain.grammar.regular import Regular, literal
from constrain.grammar.structural_tags.formats import (
    AnyText,
    AnyTokens,
    ConstString,
    Dispatch,
    ExcludeToken,
    Format,
    GrammarText,
    JsonSchema,
    Or,
    Regex,
    Repeated,
    Sequence,
    Tag,
    TagsWithSeparator,
    TokenDispatch,
    TokenOnce,
    TokenTriggeredTags,
    TriggeredTags,
)
from constrain.grammar.structural_tags.free_text import is_reached, text_through, text_without
from constrain.grammar.structural_tags.schemas import write_schema

Right = tuple[Symbol, ...]
Ends = tuple[str, ...]

MAX_REPEAT = 1_000_000
"""The greatest bound of ``repeat``."""


class Writer:
    """Writes formats into a grammar.

    Parameters
    ----------
    builder : EmbeddingBuilder
    """

    def __init__(self, builder: EmbeddingBuilder) -> None:
        self._builder = builder

    def write(self, format: Format) -> Symbol:
        """The symbol of a format."""
        return self._symbol(format, None)

    def write_through(self, format: Format, ends: Ends) -> Symbol:
        """The symbol of a format with one of the ends of its tag behind it.

        An end that is the empty string stands for a tag that may end anywhere.
        """
        return self._symbol(format, ends)

    def _symbol(self, format: Format, ends: Ends | None) -> Symbol:
        if isinstance(format, AnyText):
            return self._any_text(format, ends)
        if isinstance(format, TriggeredTags):
            return self._triggered_tags(format, ends)
        if isinstance(format, Dispatch):
            return self._dispatch(format, ends)
        if isinstance(format, Sequence) and format.elements:
            *before, last = format.elements
            return self._builder.sequence([*map(self.write, before), self._symbol(last, ends)])
        if isinstance(format, Or):
            return self._builder.choice([(self._symbol(each, ends),) for each in format.elements])
        symbol = self._closed(format)
        return symbol if ends is None else self._builder.sequence((symbol, *self._end(ends)))

    def _end(self, ends: Ends) -> Right:
        """One of some ends."""
        return () if ends == ("",) else (self._lexeme(prefix_tree(ends), " or ".join(map(repr, ends))),)

    def _lexeme(self, language: Regular, name: str) -> Symbol:
        return self._builder.lexeme(language, name)

    def _literal(self, text: str) -> Right:
        return (self._lexeme(literal(text), repr(text)),) if text else ()

    def _closed(self, format: Format) -> Symbol:
        """The symbol of a format that ends by itself."""
        builder = self._builder
        if isinstance(format, ConstString):
            return builder.sequence(self._literal(format.value))
        if isinstance(format, JsonSchema):
            return write_schema(builder, format)
        if isinstance(format, Regex):
            return self._regex(format)
        if isinstance(format, GrammarText):
            return self._grammar(format)
        if isinstance(format, Sequence):
            return builder.sequence([])
        if isinstance(format, Repeated):
            if max(format.low, format.high or 0) > MAX_REPEAT:
                raise SchemaError(f"more than {MAX_REPEAT} repetitions are not supported", format.pointer)
            return builder.repeat(self.write(format.content), format.low, format.high)
        if isinstance(format, Tag):
            return builder.sequence(self._tag(format, 0))
        if isinstance(format, TagsWithSeparator):
            return self._tags_with_separator(format)
        if isinstance(format, TokenOnce):
            return self._token(format)
        if isinstance(format, ExcludeToken):
            return self._exclude_token(format)
        if isinstance(format, AnyTokens):
            return self._any_tokens(format)
        if isinstance(format, TokenTriggeredTags):
            return self._token_triggered_tags(format)
        assert isinstance(format, TokenDispatch)
        return self._token_dispatch(format)

    # -- with tokens -------------------------------------------------------------------------------

    def _needs_tokens(self, name: str, format: Format) -> NoReturn:
        raise SchemaError(f"{name}: tokens in a structural tag are not supported", format.pointer)

    def _token(self, format: TokenOnce) -> Symbol:
        self._needs_tokens("token", format)

    def _exclude_token(self, format: ExcludeToken) -> Symbol:
        self._needs_tokens("exclude_token", format)

    def _any_tokens(self, format: AnyTokens) -> Symbol:
        self._needs_tokens("any_tokens", format)

    def _token_triggered_tags(self, format: TokenTriggeredTags) -> Symbol:
        self._needs_tokens("token_triggered_tags", format)

    def _token_dispatch(self, format: TokenDispatch) -> Symbol:
        self._needs_tokens("token_dispatch", format)

    # -- patterns and grammars ---------------------------------------------------------------------

    def _regex(self, format: Regex) -> Symbol:
        try:
            language = regex_code_points(format.pattern, dialect="ecma")
        except GrammarError as error:
            raise SchemaError(f"in the pattern: {error}", f"{format.pointer}/pattern") from None
        return self._lexeme(language, f"a match of {format.pattern!r}")

    def _grammar(self, format: GrammarText) -> Symbol:
        try:
            return self._builder.include(from_gbnf(format.grammar))
        except GrammarError as error:
            raise SchemaError(f"in the grammar: {error}", f"{format.pointer}/grammar") from None

    # -- tags and free text ------------------------------------------------------------------------

    def _tag(self, tag: Tag, skip: int) -> Right:
        """A tag without the first ``skip`` characters."""
        if isinstance(tag.begin, TokenOnce):
            return (self._token(tag.begin),)
        if isinstance(tag.ends, TokenOnce):
            return (self._token(tag.ends),)
        return (*self._literal(tag.begin[skip:]), self.write_through(tag.content, tag.ends))

    def _check_ends(self, ends: Ends | None, format: Format) -> None:
        if ends is not None and not any(ends):
            raise SchemaError("the tag around this free text has no end that is not empty", format.pointer)

    def _any_text(self, format: AnyText, ends: Ends | None) -> Symbol:
        if format.max_tokens is not None:
            raise SchemaError("a number of tokens is not supported here", f"{format.pointer}/max_tokens")
        if not format.excludes:
            self._check_ends(ends, format)
        return self._builder.choice([self._free_text((), format.excludes, ends, format.max_chars)])

    def _free_text(self, triggers: Ends, excludes: Ends, ends: Ends | None, max_chars: int | None = None) -> Right:
        """Text in which no trigger occurs, to the end of a tag, or as far as it goes if ``ends`` is None."""
        some = tuple(filter(None, ends or ()))
        alone = self._lexeme(text_without((*triggers, *excludes, *some), max_chars), "text")
        if not some:
            return (alone,)
        name = f"text to {' or '.join(map(repr, some))}"
        through = self._lexeme(text_through(some, (*triggers, *some), excludes, max_chars), name)
        return (through,) if ends is not None and "" not in ends else (self._builder.choice([(through,), (alone,)]),)

    def _loop(
        self,
        rules: SequenceOf[tuple[str, SequenceOf[Right]]],
        excludes: Ends,
        ends: Ends | None,
        first: SequenceOf[Right] | None,
        is_once: bool,
    ) -> Symbol:
        """Free text in which each trigger is followed by one of its continuations.

        Parameters
        ----------
        rules : sequence of (str, sequence of Right)
            Triggers with what may follow.
        excludes, ends
            As for free text.
        first : sequence of Right, optional
            What has to come first, if anything.
        is_once : bool
            Whether the end comes behind the first continuation.
        """
        builder = self._builder
        triggers = tuple(trigger for trigger, _ in rules)
        stops = (*triggers, *filter(None, ends or ()))
        parts = []
        for trigger, rights in rules:
            through = self._lexeme(text_through((trigger,), stops, excludes), f"text to {trigger!r}")
            parts.append((through, builder.choice(rights)))
        end = () if ends is None else self._end(ends)
        free = self._free_text(triggers, excludes, ends)
        if first is not None:
            one = builder.choice(first)
            if is_once:
                return builder.sequence((one, *end))
            return builder.sequence((one, builder.star(builder.choice(parts)), *free))
        if is_once:
            return builder.choice([*((*part, *end) for part in parts), free])
        return builder.sequence((builder.star(builder.choice(parts)), *free))

    def _triggered_tags(self, format: TriggeredTags, ends: Ends | None) -> Symbol:
        self._check_ends(ends, format)
        rests: dict[str, list[Right]] = {}
        for tag in format.tags:
            assert isinstance(tag.begin, str)
            matching = [trigger for trigger in format.triggers if tag.begin.startswith(trigger)]
            if not matching:
                raise SchemaError(f"no trigger is the beginning of {tag.begin!r}", f"{tag.pointer}/begin")
            # The one that comes to its end first.
            trigger = min(matching, key=len)
            if not is_reached(trigger, format.triggers):
                raise SchemaError(f"within {trigger!r} another trigger comes to its end", f"{tag.pointer}/begin")
            rests.setdefault(trigger, []).append(self._tag(tag, len(trigger)))
        whole = [self._tag(tag, 0) for tag in format.tags] if format.at_least_one else None
        rules = [(trigger, rests.get(trigger, ())) for trigger in format.triggers]
        return self._loop(rules, format.excludes, ends, whole, format.stop_after_first)

    def _dispatch(self, format: Dispatch, ends: Ends | None) -> Symbol:
        self._check_ends(ends, format)
        rules: dict[str, list[Right]] = {}
        for index, (pattern, content) in enumerate(format.rules):
            rules.setdefault(pattern, []).append((self.write(content),))
            if not is_reached(pattern, tuple(other for other, _ in format.rules)):
                pointer = f"{format.pointer}/rules/{index}/0"
                raise SchemaError(f"within {pattern!r} another pattern comes to its end", pointer)
        return self._loop(list(rules.items()), format.excludes, ends, None, not format.loop)

    def _tags_with_separator(self, format: TagsWithSeparator) -> Symbol:
        builder = self._builder
        one = builder.choice([self._tag(tag, 0) for tag in format.tags])
        some = one
        if not format.stop_after_first:
            further = builder.sequence((*self._literal(format.separator), one))
            some = builder.sequence((one, builder.star(further)))
        return some if format.at_least_one else builder.optional(some)
