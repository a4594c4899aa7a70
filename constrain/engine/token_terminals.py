"""Which tokens a grammar means by its token sets, settled for a vocabulary (constrain/grammar/tokens.py)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from difflib import get_close_matches

from constrain.engine.vocabulary.token_spellings import SpelledVocabulary, spelled_vocabulary
from constrain.engine.vocabulary.vocabulary import NORMAL, Vocabulary
from constrain.grammar.ir import GrammarIR
from constrain.grammar.languages.derivatives import bytes_in
from constrain.grammar.languages.regular import Regular
from constrain.grammar.tokens import GATE, MARK, TokenSet, replace_token_sets, spell_any, token_sets

# How many names a message lists.
_NAMES_LISTED = 8


def settle_tokens(ir: GrammarIR, vocabulary: Vocabulary) -> tuple[GrammarIR, Vocabulary]:
    """A grammar without token sets, and the view of the vocabulary that it is for; both as they are if it has none.

    Raises
    ------
    GrammarError
        At the place of the token set: if the vocabulary has no token of a name, or several, or no such id.
    ConstrainError
        The grammar's own error (``ir.make_error``) if a lexeme of it holds the byte 0xFF, which no text does, or that
        of gates in a grammar with gates.
    """
    if not ir.token_lexemes:
        return ir, vocabulary
    if isinstance(vocabulary, SpelledVocabulary):
        vocabulary = vocabulary.plain
    listed: dict[TokenSet, set[int]] = {}
    for index in ir.token_lexemes:
        for each in token_sets(ir.lexemes[index]):
            if each not in listed:
                listed[each] = _listed(each, vocabulary)
    named = {token for tokens in listed.values() for token in tokens if vocabulary.kinds[token] == NORMAL}
    special = _used(vocabulary) | named
    spelled: dict[TokenSet, Regular] = {
        each: spell_any(sorted(special - tokens if each.excluded else tokens)) for each, tokens in listed.items()
    }
    lexemes, names = list(ir.lexemes), list(ir.lexeme_names)
    for index in ir.token_lexemes:
        names[index] = names[index] or " or ".join(map(str, token_sets(lexemes[index])))
        lexemes[index] = replace_token_sets(lexemes[index], spelled)
    has_gates = any(limit.least > 1 for limit in ir.token_limits)
    known: dict[int, int] = {}
    for byte in (MARK, GATE) if has_gates else (MARK,):
        for index, lexeme in enumerate(ir.lexemes):
            if index not in ir.token_lexemes and bytes_in(lexeme, known) >> byte & 1:
                raise ir.make_error(
                    f"{names[index] or 'a terminal'} may hold the byte {byte:#x}, which is no part of UTF-8 text and "
                    f"stands for {'tokens' if byte == MARK else '[min_tokens]'} in a grammar that names some",
                    "",
                )
    view = spelled_vocabulary(vocabulary, named, has_gates=has_gates)
    return replace(ir, lexemes=tuple(lexemes), lexeme_names=tuple(names)), view


def _used(vocabulary: Vocabulary) -> set[int]:
    """The special tokens that are tokens at all, without those that end a text."""
    return {token for token in vocabulary.special_ids if token in vocabulary.names or vocabulary.tokens[token]} - set(
        vocabulary.eos_ids
    )


def _listed(tokens: TokenSet, vocabulary: Vocabulary) -> set[int]:
    """The ids of what a token set lists."""
    found: set[int] = set()
    for part in tokens.parts:
        if isinstance(part, str):
            found.add(_by_name(part, tokens, vocabulary))
            continue
        first, last = part
        if last >= vocabulary.size:
            raise tokens.error(f"there is no token {last}: the vocabulary has {vocabulary.size:,} tokens")
        found.update(range(first, last + 1))
    return found


def _by_name(name: str, tokens: TokenSet, vocabulary: Vocabulary) -> int:
    special = [token for token, known in vocabulary.names.items() if known == name]
    if len(special) == 1:
        return special[0]
    data = name.encode()
    found = special or [token for token in vocabulary.text_ids.tolist() if vocabulary.tokens[token] == data]
    if len(found) == 1:
        return found[0]
    if found:
        raise tokens.error(f'several tokens are called "{name}": {_and_more(map(str, found))}; name one by its id')
    near = get_close_matches(name, vocabulary.names.values(), _NAMES_LISTED, 0.5)
    if near:
        raise tokens.error(f'the vocabulary has no token "{name}"; near it are {_and_more(near)}')
    known_names = _and_more(vocabulary.names.values()) or "none that has a name"
    raise tokens.error(f'the vocabulary has no token "{name}"; its special tokens are {known_names}')


def _and_more(names: Iterable[str]) -> str:
    listed = list(names)
    more = len(listed) - _NAMES_LISTED
    return ", ".join(listed[:_NAMES_LISTED]) + (f" and {more:,} more" if more > 0 else "")
