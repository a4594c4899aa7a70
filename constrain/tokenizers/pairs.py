"""Two texts as one list of ids, as cross-encoders and question answering read them.

The order is that of the file's post-processor: ``[CLS] A [SEP] B [SEP]`` of BERT, ``<s> A </s></s> B </s>`` of RoBERTa.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from constrain.errors import TokenizerError
from constrain.tokenizers.arguments import checked_id, checked_text
from constrain.tokenizers.base import Tokenizer
from constrain.tokenizers.special_text import Disallowed, Special

Truncation = Literal["longest_first", "only_first", "only_second"]


@dataclass(frozen=True)
class PairEncoding:
    """The tokens of two texts.

    Attributes
    ----------
    ids : list of int
    type_ids : list of int
        The segment of each token, as the file has it: 0 for the first text, mostly 1 for the second.
    sequence_ids : list of (int or None)
        The text that each token comes from, 0 or 1; None for tokens that were added.
    attention_mask : list of int
        1 for each.
    """

    ids: list[int]
    type_ids: list[int]
    sequence_ids: list[int | None]

    @property
    def attention_mask(self) -> list[int]:
        return [1] * len(self.ids)


def encode_pair(
    tokenizer: Tokenizer,
    text: str,
    pair: str,
    add_special_tokens: bool = True,
    *,
    max_length: int | None = None,
    truncation: Truncation = "longest_first",
    special: Special = None,
    disallowed: Disallowed = "text",
) -> PairEncoding:
    """Encode two texts together.

    Parameters
    ----------
    tokenizer : Tokenizer
    text, pair : str
    add_special_tokens : bool
        Put tokens around and between the texts, as the file says.
    max_length : int, optional
        The most ids; what is too much is cut off the ends of the texts.
    truncation : "longest_first", "only_first" or "only_second"
        Which text is cut: the longer one until both are as long, or one of them.
    special, disallowed
        As for :meth:`~constrain.tokenizers.base.Encoder.encode`.

    Raises :class:`TokenizerError` where the file does not say how two texts are put together, or where cutting that
    text does not make room enough.
    """
    if not isinstance(tokenizer, Tokenizer):
        raise TokenizerError(f"a tokenizer of constrain.load_tokenizer is needed, not a {type(tokenizer).__name__}")
    parts = tokenizer.pair_template
    if not add_special_tokens:
        # Order and types are those of the file even so.
        parts = tuple(part for part in parts or (("A", 0), ("B", 1)) if isinstance(part[0], str))
    if parts is None:
        raise TokenizerError(
            f"the files of this {type(tokenizer).__name__} do not say how two texts are put together:"
            " add_special_tokens=False joins them"
        )
    texts = [checked_text(text), checked_text(pair)]
    encodings = tokenizer.encode_batch(texts, special=special, disallowed=disallowed)
    ids = {name: encoding.ids for name, encoding in zip("AB", encodings, strict=True)}
    if max_length is not None:
        around = sum(len(part) for part, _ in parts if not isinstance(part, str))
        room = checked_id(max_length) - around
        if room < 0:
            raise TokenizerError(f"max_length is {max_length}, and {around} tokens are added")
        lengths = _cut_lengths(len(ids["A"]), len(ids["B"]), room, truncation)
        ids = {name: ids[name][:length] for name, length in zip("AB", lengths, strict=True)}
    found = PairEncoding([], [], [])
    for part, type_id in parts:
        new = ids[part] if isinstance(part, str) else list(part)
        found.ids.extend(new)
        found.type_ids.extend([type_id] * len(new))
        found.sequence_ids.extend([("AB".index(part) if isinstance(part, str) else None)] * len(new))
    return found


def _cut_lengths(first: int, second: int, room: int, truncation: Truncation) -> tuple[int, int]:
    """How many tokens are left of two texts, together at most ``room``; the rule is that of ``tokenizers``."""
    if first + second <= room:
        return first, second
    if truncation == "only_first" and second <= room:
        return room - second, second
    if truncation == "only_second" and first <= room:
        return first, room - first
    if truncation in ("only_first", "only_second"):
        raise TokenizerError(f"truncation={truncation!r}: the other text alone has more than the {room} tokens of room")
    if truncation != "longest_first":
        raise TokenizerError(f'truncation must be "longest_first", "only_first" or "only_second", not {truncation!r}')
    short, long = sorted((first, second))
    long = short if short > room else max(short, room - short)
    if short + long > room:
        short = room // 2
        long = short + room % 2
    return (long, short) if first > second else (short, long)
