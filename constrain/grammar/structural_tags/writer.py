"""From formats to rules and lexemes.

Where text is free, it is free up to a string that means something: a trigger, or the end of the tag around it.  So what
is free and the string behind it are one lexeme (:mod:`~constrain.grammar.free_text`), and a format is written either
alone (:meth:`Writer.write`) or together with the ends of its tag (:meth:`Writer.write_through`).  No free text within a
tag holds an end of it, wherever it stands there: in the first part of a sequence, in any repetition.

A token is never a part of a text, so a token that ends a tag stands behind the content, and only has to be kept out of
what is any tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Sequence as SequenceOf
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from typing import Any

from constrain.errors import GrammarError, SchemaError
from constrain.grammar.ebnf import from_ebnf
from constrain.grammar.embedding import EmbeddingBuilder
from constrain.grammar.free_text import (
    TextsThrough,
    grouped,
    reached,
    shortest_beginning,
    text_through,
    text_without,
)
from constrain.grammar.ir import GrammarIR, Symbol
from constrain.grammar.json_schema.lexical.prelude import stock_for
from constrain.grammar.languages.prefix_tree import prefix_tree
from constrain.grammar.languages.regular import Regular, literal
from constrain.grammar.regex import regex_code_points
from constrain.grammar.structural_tags import formats as f
from constrain.grammar.structural_tags.reader import read_structural_tag
from constrain.grammar.structural_tags.schemas import describe_part, write_schema
from constrain.grammar.tokens import Named, any_tokens, token_set

Right = tuple[Symbol, ...]
Ends = tuple[str, ...]

WriteLark = Callable[[EmbeddingBuilder, str], Symbol]
"""Writes a grammar in Lark's notation, which may have structural tags inside in turn."""

FEW_TRIGGERS = 4
"""So many have a lexeme each."""

MAX_REPEAT = 1_000_000
"""The greatest bound of ``repeat``."""


def grammar_of(format: f.Format, write_lark: WriteLark | None = None, *, is_lenient: bool = False) -> GrammarIR:
    """The grammar of the texts of a format.

    ``is_lenient``: what is not supported in its schemas is left out, with a warning.
    """
    builder = EmbeddingBuilder(is_lenient)
    start = Writer(builder, write_lark).write(format)
    return builder.finish_whole(start, stock_for(builder.formats), describe=describe_part)


def embed_structural_tag(builder: EmbeddingBuilder, tag: Any, write_lark: WriteLark) -> Symbol:
    """The symbol of the texts of a structural tag, as a part of a longer text; raises SchemaError for a fault in it."""
    return Writer(builder, write_lark).write(read_structural_tag(tag))


class Writer:
    """Writes formats into a grammar.

    Parameters
    ----------
    builder : EmbeddingBuilder
    write_lark : callable, optional
        Without it there are no grammars in Lark's notation among the formats.
    """

    def __init__(self, builder: EmbeddingBuilder, write_lark: WriteLark | None = None) -> None:
        self._builder = builder
        self._write_lark = write_lark
        # The innermost tag around what is being written: the strings that end it, or the token that does.
        self._stops: Ends = ()
        self._until: f.TokenOnce | None = None
        # What was written of schemas: the arguments of a tool stand behind each way to begin a call of it.  The schema
        # is kept with it, so that no other one has its identity.
        self._schemas: dict[tuple[int, f.Format], tuple[Any, Symbol]] = {}

    def write(self, format: f.Format) -> Symbol:
        """The symbol of a format."""
        return self._symbol(format, None)

    def write_through(self, format: f.Format, ends: Ends) -> Symbol:
        """The symbol of a format with one of the ends of its tag behind it.

        An end that is the empty string stands for a tag that may end anywhere.
        """
        return self._symbol(format, ends)

    def _symbol(self, format: f.Format, ends: Ends | None) -> Symbol:
        if isinstance(format, f.AnyText):
            return self._any_text(format, ends)
        if isinstance(format, f.TriggeredTags):
            return self._triggered_tags(format, ends)
        if isinstance(format, f.Dispatch):
            # Its text may hold an end of the tag around it, unless it excludes that.
            if not format.excludes:
                self._check_ends(ends, format)
            return self._builder.sequence((self._dispatch(format), *(self._end(ends) if ends else ())))
        if isinstance(format, f.Sequence) and format.elements:
            *before, last = format.elements
            return self._builder.sequence([*map(self.write, before), self._symbol(last, ends)])
        if isinstance(format, f.Or):
            return self._builder.choice([(self._symbol(each, ends),) for each in format.elements])
        if isinstance(format, f.Repeated) and not isinstance(format.content, f.ExcludeToken):
            return self._repeated(format, ends)
        symbol = self._closed(format)
        return symbol if ends is None else self._builder.sequence((symbol, *self._end(ends)))

    def _end(self, ends: Ends) -> Right:
        """One of some ends."""
        return () if ends == ("",) else (self._lexeme(prefix_tree(ends), " or ".join(map(repr, ends))),)

    def _lexeme(self, language: Regular, name: str) -> Symbol:
        return self._builder.lexeme(language, name)

    def _literal(self, text: str) -> Right:
        return (self._lexeme(literal(text), repr(text)),) if text else ()

    def _closed(self, format: f.Format) -> Symbol:
        """The symbol of a format that ends by itself, or before the token that ends its tag."""
        builder = self._builder
        if isinstance(format, f.ConstString):
            return builder.sequence(self._literal(format.value))
        if isinstance(format, f.JsonSchema):
            return self._schema(format)
        if isinstance(format, f.Regex):
            return self._regex(format)
        if isinstance(format, f.GrammarText):
            return self._grammar(format)
        if isinstance(format, f.Sequence):
            return builder.sequence([])
        if isinstance(format, f.Repeated):
            assert isinstance(format.content, f.ExcludeToken)
            return self._some_tokens(format.content, format.low, format.high)
        if isinstance(format, f.Tag):
            return builder.sequence(self._tag(format, 0))
        if isinstance(format, f.TagsWithSeparator):
            return self._tags_with_separator(format)
        if isinstance(format, f.TokenOnce):
            return self._token(format)
        if isinstance(format, f.ExcludeToken):
            return self._exclude_token(format)
        if isinstance(format, f.AnyTokens):
            return self._any_tokens(format)
        if isinstance(format, f.TokenTriggeredTags):
            return self._token_triggered_tags(format)
        assert isinstance(format, f.TokenDispatch)
        return self._token_dispatch(format)

    def _repeated(self, format: f.Repeated, ends: Ends | None) -> Symbol:
        """A format several times.  The end of the tag is written together with the last time."""
        builder, content, low, high = self._builder, format.content, format.low, format.high
        if max(low, high or 0) > MAX_REPEAT:
            raise SchemaError(f"more than {MAX_REPEAT} repetitions are not supported", format.pointer)
        if isinstance(content, f.AnyText) and content == f.AnyText(content.pointer) and high != 0:
            # Texts one behind the other are a text, which ends with its first end, even if two of them share that.
            return self._symbol(content, ends)
        if ends is None or high == 0:
            return builder.sequence((builder.repeat(self.write(content), low, high), *self._end(ends or ("",))))
        last = self._symbol(content, ends)
        some: Right = (last,)
        if high != 1:
            before = builder.repeat(self.write(content), max(low - 1, 0), None if high is None else high - 1)
            some = (before, last)
        return builder.sequence(some) if low else builder.choice([some, self._end(ends)])

    # -- with tokens -------------------------------------------------------------------------------

    def _one_of(self, token: f.Token, pointer: str) -> Symbol:
        return self._builder.token(token_set([_named(token)], pointer=pointer))

    def _token(self, format: f.TokenOnce) -> Symbol:
        return self._one_of(format.token, f"{format.pointer}/token")

    def _exclude_token(self, format: f.ExcludeToken) -> Symbol:
        return self._some_tokens(format, 1, 1)

    def _some_tokens(self, format: f.ExcludeToken, low: int, high: int | None) -> Symbol:
        """From ``low`` to ``high`` tokens that are none of some."""
        if low > 1:
            raise SchemaError(
                f"exclude_token: at least {low} tokens cannot be asked for: a text may be cut into fewer",
                format.pointer,
            )
        if high == 0:
            return self._builder.sequence([])
        free = self._free_tokens(format.tokens, f"{format.pointer}/exclude_tokens", low)
        return free if high is None else self._limited(free, high, format.pointer)

    def _free_tokens(self, excluded: SequenceOf[f.Token], pointer: str, low: int = 0) -> Symbol:
        """Any number of tokens, of ``low`` on, that are none of some, nor the one that ends the tag."""
        listed = [_named(token) for token in excluded]
        if self._until is not None:
            listed.append(_named(self._until.token))
        language = any_tokens(listed, low, pointer=pointer)
        return self._builder.token(language, "any tokens")

    def _any_tokens(self, format: f.AnyTokens) -> Symbol:
        if format.max_tokens == 0:
            return self._builder.sequence([])
        free = self._free_tokens(format.exclude, f"{format.pointer}/exclude_tokens")
        return (
            free
            if format.max_tokens is None
            else self._limited(free, format.max_tokens, f"{format.pointer}/max_tokens")
        )

    def _limited(self, content: Symbol, tokens: int, pointer: str) -> Symbol:
        """Content that is over after so many tokens."""
        rule = self._builder.nonterminal(self._builder.name_of(content))
        self._builder.add(rule, (content,))
        self._builder.limit_tokens(rule, tokens, lambda reason: SchemaError(reason, pointer))
        return rule

    def _token_triggered_tags(self, format: f.TokenTriggeredTags) -> Symbol:
        for tag in format.tags:
            assert isinstance(tag.begin, f.TokenOnce)
            if tag.begin.token not in format.triggers:
                reason = f"{tag.begin.token!r} is none of the triggers, as they are written"
                raise SchemaError(reason, f"{tag.begin.pointer}/token")
        ways = [self._tag(tag, 0) for tag in format.tags]
        free = self._tokens_between(format.triggers, format.exclude, format.pointer)
        return self._token_loop(free, ways, format.at_least_one, format.stop_after_first)

    def _token_dispatch(self, format: f.TokenDispatch) -> Symbol:
        ways = [
            (self._one_of(token, f"{format.pointer}/rules/{index}/0"), self.write(content))
            for index, (token, content) in enumerate(format.rules)
        ]
        triggers = [token for token, _ in format.rules]
        free = self._tokens_between(triggers, format.exclude, format.pointer)
        return self._token_loop(free, ways, False, not format.loop)

    def _tokens_between(self, triggers: SequenceOf[f.Token], exclude: SequenceOf[f.Token], pointer: str) -> Symbol:
        """Any tokens but triggers and what is excluded."""
        for index, token in enumerate(exclude):
            if token in triggers:
                raise SchemaError(f"{token!r} is a trigger and excluded", f"{pointer}/exclude_tokens/{index}")
        return self._free_tokens((*triggers, *exclude), pointer)

    def _token_loop(self, free: Symbol, ways: SequenceOf[Right], is_first: bool, is_once: bool) -> Symbol:
        """Any tokens in which each trigger is the beginning of one of some ways.

        ``is_first``: one comes first.  ``is_once``: the end comes behind the first one.
        """
        builder = self._builder
        one = builder.choice(ways)
        if is_once:
            return one if is_first else builder.choice([(free,), (free, one)])
        further = builder.star(builder.sequence((free, one)))
        return builder.sequence((one, further, free) if is_first else (further, free))

    # -- patterns and grammars ---------------------------------------------------------------------

    def _regex(self, format: f.Regex) -> Symbol:
        try:
            language = regex_code_points(format.pattern, dialect="ecma")
        except GrammarError as error:
            raise SchemaError(f"in the pattern: {error}", f"{format.pointer}/pattern") from None
        return self._lexeme(language, f"a match of {format.pattern!r}")

    def _grammar(self, format: f.GrammarText) -> Symbol:
        try:
            if format.syntax == "lark":
                assert self._write_lark is not None
                return self._write_lark(self._builder, format.grammar)
            return self._builder.include(from_ebnf(format.grammar))
        except GrammarError as error:
            raise SchemaError(f"in the grammar: {error}", f"{format.pointer}/grammar") from None

    def _schema(self, format: f.JsonSchema) -> Symbol:
        key = id(format.schema), replace(format, schema=True)
        found = self._schemas.get(key)
        if found is None:
            found = self._schemas[key] = format.schema, write_schema(self._builder, format)
        return found[1]

    # -- tags and free text ------------------------------------------------------------------------

    def _tag(self, tag: f.Tag, skip: int) -> Right:
        """A tag without the first ``skip`` characters."""
        begin = (self._token(tag.begin),) if isinstance(tag.begin, f.TokenOnce) else self._literal(tag.begin[skip:])
        if isinstance(tag.ends, f.TokenOnce):
            with self._within((), tag.ends):
                return (*begin, self.write(tag.content), self._token(tag.ends))
        with self._within(tuple(filter(None, tag.ends)), None):
            return (*begin, self.write_through(tag.content, tag.ends))

    @contextmanager
    def _within(self, stops: Ends, until: f.TokenOnce | None) -> Iterator[None]:
        """What is written now stands in a tag with these ends."""
        around = self._stops, self._until
        self._stops, self._until = stops, until
        yield
        self._stops, self._until = around

    def _check_ends(self, ends: Ends | None, format: f.Format) -> None:
        if ends is not None and not any(ends):
            raise SchemaError("the tag around this free text has no end that is not empty", format.pointer)

    def _any_text(self, format: f.AnyText, ends: Ends | None) -> Symbol:
        if not format.excludes:
            self._check_ends(ends, format)
        if format.max_tokens:
            return self._limited_text(format, format.max_tokens, ends)
        most = 0 if format.max_tokens == 0 else format.max_chars
        return self._builder.choice([self._free_text((), format.excludes, ends, most)])

    def _limited_text(self, format: f.AnyText, tokens: int, ends: Ends | None) -> Symbol:
        """Text that is over after so many tokens, and then the end of the tag, which does not count."""
        some = () if ends is None else self._stops
        found = next((pair for pair in product((*format.excludes, *some), some) if _overlap(*pair)), None)
        if found is not None:
            # Where the text is followed by an end, there would be another one before it.
            raise SchemaError(
                f"not supported beside {found[0]!r} and {found[1]!r}, which may overlap", f"{format.pointer}/max_tokens"
            )
        alone = self._builder.outside_lexeme(text_without((*format.excludes, *self._stops), format.max_chars), "text")
        text = self._limited(alone, tokens, f"{format.pointer}/max_tokens")
        # The first end is the end, as without a limit.
        ways = [(text, *self._end(tuple(filter(reached(some).__contains__, some))))] if some else []
        if not some or ends is None or "" in ends:
            ways.append((text,))
        return self._builder.choice(ways)

    def _free_text(self, triggers: Ends, excludes: Ends, ends: Ends | None, max_chars: int | None = None) -> Right:
        """Text in which no trigger occurs, to the end of a tag, or as far as it goes if ``ends`` is None."""
        some = self._stops
        alone = self._builder.outside_lexeme(text_without((*triggers, *excludes, *some), max_chars), "text")
        if ends is None or not some:
            return (alone,)
        name = f"text to {' or '.join(map(repr, some))}"
        through = self._lexeme(text_through(some, (*triggers, *some), excludes, max_chars), name)
        return (through,) if "" not in ends else (self._builder.choice([(through,), (alone,)]),)

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
        stops = (*triggers, *self._stops)
        parts = self._triggered(rules, stops, excludes)
        end = () if ends is None else self._end(ends)
        free = self._free_to_end(triggers, excludes, ends)
        if first is not None:
            one = builder.choice(first)
            if is_once:
                return builder.sequence((one, *end))
            return builder.sequence((one, builder.star(builder.choice(parts)), *free))
        if is_once:
            return builder.choice([*((*part, *end) for part in parts), free])
        return builder.sequence((builder.star(builder.choice(parts)), *free))

    def _free_to_end(self, triggers: Ends, excludes: Ends, ends: Ends | None) -> Right:
        """Free text to the end of a tag; an end that begins with a trigger may follow that as what it triggers does."""
        stops = (*triggers, *self._stops)
        alive, known = reached(stops), frozenset(triggers)
        lengths = sorted(set(map(len, known)))
        behind: dict[str, list[Right]] = {}
        for end in ends or ():
            trigger = None if end in alive else shortest_beginning(end, known, lengths)
            if trigger:
                behind.setdefault(trigger, []).append(self._literal(end[len(trigger) :]))
        if not behind:
            return self._free_text(triggers, excludes, ends)
        ways = self._triggered(list(behind.items()), stops, excludes)
        if "" in (ends or ()) or not alive.isdisjoint(ends or ()):
            ways.append(self._free_text(triggers, excludes, ends))
        return (self._builder.choice(ways),)

    def _triggered(self, rules: SequenceOf[tuple[str, SequenceOf[Right]]], stops: Ends, excludes: Ends) -> list[Right]:
        """Free text through each trigger, with what may follow."""
        builder = self._builder
        # A trigger in which another stop comes to its end is never read.
        alive = reached(stops)
        stops = tuple(stop for stop in dict.fromkeys(stops) if stop in alive)
        rights_of = {trigger: rights for trigger, rights in rules if rights and trigger in alive}
        triggers = tuple(rights_of)
        # A lexeme for each of many triggers would look for all the others.
        groups = [(trigger, [trigger]) for trigger in triggers]
        if len(triggers) > FEW_TRIGGERS:
            groups = grouped(triggers, tuple(stop for stop in stops if stop not in rights_of))
        parts: list[Right] = []
        texts = TextsThrough(builder, stops, excludes)
        for prefix, group in groups:
            text = self._lexeme(texts.before(prefix), f"text to {prefix!r}")
            rests = [(*self._literal(each[len(prefix) :]), *right) for each in group for right in rights_of[each]]
            parts.append((text, builder.choice(rests)))
        return parts

    def _triggered_tags(self, format: f.TriggeredTags, ends: Ends | None) -> Symbol:
        self._check_ends(ends, format)
        alive, known = reached(format.triggers), frozenset(format.triggers)
        lengths = sorted(set(map(len, known)))
        rests: dict[str, list[Right]] = {}
        for tag in format.tags:
            assert isinstance(tag.begin, str)
            trigger = shortest_beginning(tag.begin, known, lengths)
            if trigger is None:
                raise SchemaError(f"no trigger is the beginning of {tag.begin!r}", f"{tag.pointer}/begin")
            if trigger not in alive:
                raise SchemaError(f"within {trigger!r} another trigger comes to its end", f"{tag.pointer}/begin")
            rests.setdefault(trigger, []).append(self._tag(tag, len(trigger)))
        whole = [self._tag(tag, 0) for tag in format.tags] if format.at_least_one else None
        rules = [(trigger, rests.get(trigger, ())) for trigger in format.triggers]
        return self._loop(rules, format.excludes, ends, whole, format.stop_after_first)

    def _dispatch(self, format: f.Dispatch) -> Symbol:
        known = frozenset(pattern for pattern, _ in format.rules)
        lengths = sorted(set(map(len, known)))
        rules: dict[str, list[Right]] = {}
        for pattern, content in format.rules:
            # Where a pattern begins with another, what is left of it is what may follow that.
            first = shortest_beginning(pattern, known, lengths) or pattern
            rules.setdefault(first, []).append((*self._literal(pattern[len(first) :]), self.write(content)))
        alive = reached(tuple(rules))
        for index, (pattern, _) in enumerate(format.rules):
            if (shortest_beginning(pattern, known, lengths) or pattern) not in alive:
                pointer = f"{format.pointer}/rules/{index}/0"
                raise SchemaError(f"within {pattern!r} another pattern comes to its end", pointer)
        # The text between its patterns may hold an end of the tag.
        with self._within((), self._until):
            return self._loop(list(rules.items()), format.excludes, None, None, not format.loop)

    def _tags_with_separator(self, format: f.TagsWithSeparator) -> Symbol:
        builder = self._builder
        one = builder.choice([self._tag(tag, 0) for tag in format.tags])
        some = one
        if not format.stop_after_first:
            further = builder.sequence((*self._literal(format.separator), one))
            some = builder.sequence((one, builder.star(further)))
        return some if format.at_least_one else builder.optional(some)


def _named(token: f.Token) -> Named:
    return token if isinstance(token, str) else (token, token)


def _overlap(one: str, other: str) -> bool:
    """Whether the end of one text, but for all of it, is the beginning of the other."""
    return any(other.startswith(one[place:]) for place in range(1, len(one)))
