"""The normalizer ``Nmt`` of ``tokenizer.json``: controls are removed, and what looks like a space becomes one."""

from __future__ import annotations

from constrain.tokenizers.normalizing.text_steps import CharTable

_REMOVED = frozenset(map(chr, (*range(1, 9), 0x0B, *range(0x0E, 0x20), 0x7F, 0x8F, 0x9F)))
_SPACES = frozenset("\t\n\x0c\r\u1680\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u2581\ufeff\ufffd")


class NmtText(CharTable):
    """Character by character."""

    def replacement(self, char: str) -> str:
        return "" if char in _REMOVED else " " if char in _SPACES else char
