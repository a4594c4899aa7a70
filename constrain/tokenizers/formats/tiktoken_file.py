"""Reads ``.tiktoken`` rank files: one token in base 64 and its rank on each line.

Such a file has neither a split pattern nor special tokens; they belong to an *encoding*, which is
known by name.  The name is taken from the file name, else from the number of ranks.  A ``tokenizer_config.json``
beside the file may have other special tokens.
"""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

import numpy as np

from constrain.collection import without_collection
from constrain.errors import TokenizerError
from constrain.tokenizers.added_tokens import AddedToken
from constrain.tokenizers.file_errors import errors_of
from constrain.tokenizers.formats.rank_encodings import ENCODINGS, RankEncoding
from constrain.tokenizers.json_files import read_json
from constrain.tokenizers.models.byte_level_bpe import ByteLevelBPE, ByteLevelOptions
from constrain.tokenizers.models.rank_kernels import read_ranks
from constrain.tokenizers.special_tokens import SpecialTokens, find_eos_ids, read_roles
from constrain.tokenizers.splitting.patterns import by_name


def load_tiktoken_file(
    path: Path, encoding: str | RankEncoding | None = None, eos_ids: tuple[int, ...] | None = None
) -> ByteLevelBPE:
    """Read a rank file; ``encoding``: one of :data:`ENCODINGS`, or a new one, where the file cannot tell."""
    return _load(path, encoding, eos_ids)


@without_collection
def _load(path: Path, encoding: str | RankEncoding | None, eos_ids: tuple[int, ...] | None) -> ByteLevelBPE:
    with errors_of(path):
        ranks = parse_ranks(path.read_bytes())
    if encoding is None:
        encoding = _guess(path, len(ranks))
    if isinstance(encoding, str):
        if encoding not in ENCODINGS:
            raise TokenizerError(f"unknown encoding {encoding!r}; known ones: {', '.join(ENCODINGS)}")
        encoding = ENCODINGS[encoding]
    with errors_of(path):
        encoding, eos = _with_config(encoding, path.parent)
        return tokenizer_from_ranks(ranks, encoding, eos if eos_ids is None else eos_ids)


def _with_config(encoding: RankEncoding, folder: Path) -> tuple[RankEncoding, tuple[int, ...] | None]:
    """The encoding with the special tokens of ``tokenizer_config.json``, if there are any, and the ids of ends."""
    config = folder / "tokenizer_config.json"
    entries = read_json(config).get("added_tokens_decoder") if config.is_file() else None
    if not entries:
        return encoding, None
    special: dict[str, int] = {}
    for key, entry in entries.items() if isinstance(entries, dict) else [("", None)]:
        content = entry.get("content") if isinstance(entry, dict) else None
        if not key.isascii() or not key.isdigit() or len(key) > 9 or not isinstance(content, str):
            raise TokenizerError(f"{config}: added_tokens_decoder[{key!r}] is no token with an id")
        special[content] = int(key)
    roles = read_roles(folder, special.values(), special.get)
    ends = find_eos_ids(folder, roles, special.get)
    bos = encoding.bos if encoding.bos in special else None
    return replace(encoding, special=special, eos=(), bos=bos), ends


def tokenizer_from_ranks(
    ranks: dict[int, bytes], known: RankEncoding, eos_ids: tuple[int, ...] | None = None
) -> ByteLevelBPE:
    """The tokenizer of a list of ranks with the split pattern and special tokens of an encoding."""
    taken = [name for name, token_id in known.special.items() if token_id in ranks]
    if taken:
        raise TokenizerError(f"the id of {taken[0]} is a rank of this file: it belongs to another encoding")
    eos = tuple(known.special[name] for name in known.eos) if eos_ids is None else eos_ids
    bos = None if known.bos is None else known.special[known.bos]
    others = set(known.special.values()) - {bos, *eos[:1]}
    split = by_name(known.split) if isinstance(known.split, str) else known.split
    return ByteLevelBPE(
        ranks,
        None,
        [AddedToken(token_id, name, special=True) for name, token_id in known.special.items()],
        ByteLevelOptions(split=split, whole_piece=True, before=() if bos is None else (bos,)),
        SpecialTokens(bos=bos, eos=eos[0] if eos else None, additional=tuple(sorted(others))),
        eos,
    )


def parse_ranks(data: bytes) -> dict[int, bytes]:
    """The bytes of each token by rank, from the content of a rank file."""
    return _usual_ranks(data) or _ranks_line_by_line(data)


def _usual_ranks(data: bytes) -> dict[int, bytes] | None:
    """The same by a kernel; None for what is not as it usually is."""
    lines = data.count(b"\n") + 1
    if len(data) >= 2**31:
        return None
    out, bounds = np.empty(len(data) + 3, dtype=np.uint8), np.empty(lines + 1, dtype=np.int32)
    numbers = np.empty(lines, dtype=np.int64)
    count = read_ranks(np.frombuffer(bytearray(data), dtype=np.uint8), out, bounds, numbers)
    if count <= 0:
        return None
    blob, cuts = out[: bounds[count]].tobytes(), bounds[: count + 1].tolist()
    ranks = dict(zip(numbers[:count].tolist(), map(blob.__getitem__, map(slice, cuts, cuts[1:])), strict=True))
    return ranks if len(ranks) == count else None


def _ranks_line_by_line(data: bytes) -> dict[int, bytes]:
    ranks: dict[int, bytes] = {}
    for number, line in enumerate(data.splitlines(), 1):
        if not line:
            continue
        try:
            token, rank = line.split()
            index = int(rank)
            if index in ranks:
                raise TokenizerError(f"line {number}: rank {index} is there twice")
            ranks[index] = base64.b64decode(token, validate=True)
        except TokenizerError:
            raise
        except ValueError:
            raise TokenizerError(f"line {number} is not a token in base 64 and its rank") from None
    if not ranks:
        raise TokenizerError("there are no ranks in this file")
    return ranks


def _guess(path: Path, count: int) -> str:
    # The longest name first: one may be part of another.
    for name in sorted(ENCODINGS, key=len, reverse=True):
        if name in path.stem:
            if count != ENCODINGS[name].ranks:
                raise TokenizerError(
                    f"{path}: {count} ranks, and {name} has {ENCODINGS[name].ranks}: the file is damaged, or not what"
                    " its name says; if it is as it should be, give encoding="
                )
            return name
    for name, known in ENCODINGS.items():
        if known.ranks == count:
            return name
    raise TokenizerError(
        f"{path}: neither the file name nor its {count} ranks tell which encoding this is;"
        f" give encoding= one of {', '.join(ENCODINGS)}, or a RankEncoding"
    )
