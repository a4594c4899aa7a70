"""Which characters of a rendered conversation become control tokens: those that the chat template wrote itself."""

from __future__ import annotations

import re
from collections.abc import Mapping

from constrain.errors import TokenizerError
from constrain.tokenizers.chat.marked_text import CONTENT, TEMPLATE, MarkedText, marks_of, origins_of, where_template
from constrain.tokenizers.special_text import Reading, Special, allowed_ids, search_any

_MARKUP = re.compile(r"<[|\uff5c].*[|\uff5c]>", re.DOTALL)
_BRACKETS = frozenset("<>[]{}|\uff5c")


def control_tokens(template: str, special: Mapping[str, int], added: Mapping[str, int]) -> dict[str, int]:
    """The tokens that text of a message must not become, by the text that spells them.

    They are the special tokens, and of the other added tokens those that steer a conversation all the same: those like
    ``<|this|>``, and tags that the template itself writes, such as ``<tool_response>``.  Model makers do not flag
    all of them.
    """
    return {
        name: token_id
        for name, token_id in added.items()
        if name in special or _MARKUP.fullmatch(name) or (name in template and not _BRACKETS.isdisjoint(name))
    } | dict(special)


def reading_of_chat(
    text: MarkedText, controls: Mapping[str, int], special: Special, names: Mapping[str, int]
) -> Reading:
    """What is read of a rendered conversation.

    Parameters
    ----------
    text : MarkedText
    controls : mapping of str to int
        See :func:`control_tokens`.
    special : "all", "none" or names of special tokens
        What is read of messages.
    names : mapping of str to int
        The tokens that ``special`` may name.

    Raises :class:`TokenizerError` if it cannot be told whether the template or a message wrote a control token.
    """
    allowed = frozenset(names.values()) if special == "all" else allowed_ids(special, names)
    guarded = {name: token_id for name, token_id in controls.items() if token_id not in allowed and name}
    _check_origins(text, frozenset(guarded))
    return Reading(guarded=frozenset(guarded.values()), trusted=where_template(marks_of(text)))


def _check_origins(text: MarkedText, names: frozenset[str]) -> None:
    place = 0
    while (found := search_any(names, text, place)) is not None:
        begin, end = found.span()
        place = begin + 1
        origins = origins_of(text[begin:end])
        if origins == {TEMPLATE}:
            continue
        # A message may hold the text of a token, or begin or end within it.  Then it is text.
        ends = origins_of(text[begin]) | origins_of(text[end - 1])
        if CONTENT in ends:
            continue
        made_of = "around text of a message" if CONTENT in origins else "in a way that hides who wrote it"
        raise TokenizerError(
            f"the chat template makes the control token {found.group()!r} {made_of}, so it cannot be told from text;"
            f" special={{{found.group()!r}}} allows this token in messages too"
        )
