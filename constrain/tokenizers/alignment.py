"""Where the characters of a normalized text come from."""

from __future__ import annotations

import unicodedata
from typing import Literal

NormalForm = Literal["NFC", "NFD", "NFKC", "NFKD"]


def alignment(original: str, normal: str, form: NormalForm | None) -> list[tuple[int, int]]:
    """For each character of ``normal`` the characters of ``original`` that it comes from.

    The text is cut before every character that does not interact with what precedes it; a stretch
    that changes maps to itself as a whole.
    """
    if form is None or original == normal:
        return [(i, i + 1) for i in range(len(normal))]
    spans: list[tuple[int, int]] = []
    begin = 0
    for place in range(1, len(original) + 1):
        if place < len(original) and not _can_cut(original, begin, place, form):
            continue
        piece = unicodedata.normalize(form, original[begin:place])
        if piece == original[begin:place]:
            spans += [(i, i + 1) for i in range(begin, place)]
        else:
            spans += [(begin, place)] * len(piece)
        begin = place
    if len(spans) != len(normal):  # a composition across a cut: give up on precision, not on truth
        return [(0, len(original))] * len(normal)
    return spans


def _can_cut(text: str, begin: int, place: int, form: NormalForm) -> bool:
    following = text[place]
    if following < "\x80":
        return True
    if unicodedata.combining(following):
        return False
    joined = unicodedata.normalize(form, text[begin : place + 1])
    apart = unicodedata.normalize(form, text[begin:place]) + unicodedata.normalize(form, following)
    return joined == apart
