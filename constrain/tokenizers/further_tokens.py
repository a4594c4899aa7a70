"""Tokens that are added to a tokenizer which is there already, by the rules of ``tokenizers``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from constrain.errors import TokenizerError
from constrain.tokenizers.added_tokens import AddedToken
from constrain.tokenizers.arguments import check_token_ids, checked_texts, utf8_of
from constrain.tokenizers.base import Tokenizer
from constrain.tokenizers.special_tokens import SpecialTokens


def further_tokens(
    tokenizer: Tokenizer, added: Sequence[AddedToken], texts: Iterable[str], flags: AddedToken
) -> tuple[list[AddedToken], int]:
    """The further tokens, and the size of the vocabulary with them.

    Parameters
    ----------
    tokenizer : Tokenizer
    added : sequence of AddedToken
        Those that it has, which are left out of ``texts``.
    texts : iterable of str
    flags : AddedToken
        What the new ones are like; its id and content do not count.

    Raises :class:`TokenizerError` for an empty text, or one that is there twice.
    """
    listed = checked_texts(texts)
    if "" in listed:
        raise TokenizerError("a token to be added has no text")
    for text in listed:
        utf8_of(text)
    if len(set(listed)) < len(listed):
        raise TokenizerError(f"{next(text for text in listed if listed.count(text) > 1)!r} is to be added twice")
    size = tokenizer.vocab_size
    known, ids = {token.content for token in added}, {token.id for token in added}
    new: list[AddedToken] = []
    for text in listed:
        if text in known:
            continue
        token_id = tokenizer.token_to_id(text)
        if token_id is None:
            token_id, size = size, size + 1
        elif token_id in ids:
            raise TokenizerError(f"{text!r} is what normalization makes of the added token with id {token_id}")
        new.append(replace(flags, id=token_id, content=text))
    check_token_ids([size - 1])
    return new, size


def with_additional(roles: SpecialTokens, new: Iterable[AddedToken]) -> SpecialTokens:
    """The roles of special tokens, with the new ones that are special."""
    ids = {token.id for token in new if token.special} - set(roles.roles().values())
    return replace(roles, additional=tuple(sorted(ids.union(roles.additional))))
