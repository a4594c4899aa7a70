"""Reads SentencePiece ``.model`` files: the few fields of the protobuf message that a tokenizer needs.

Field numbers are those of ``sentencepiece_model.proto``.  Nothing is believed before it is checked: a length is
compared with what is left, a nested message is read within its bounds, and unknown fields are skipped.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from constrain.errors import TokenizerError

UNIGRAM, BPE, WORD, CHAR = 1, 2, 3, 4
"""Kinds of model."""

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""Kinds of piece."""


_PIECE, _TEXT, _SCORE, _KIND = 1 << 3 | 2, 1 << 3 | 2, 2 << 3 | 5, 3 << 3 | 0
"""The first byte of the fields of a piece, and of a piece itself."""
_SHORTEST_PIECE = 9
_FLOAT = struct.Struct("<f").unpack_from


@dataclass
class SentencePieceModel:
    """What a file says.

    Attributes
    ----------
    pieces, scores, kinds : list
        By id.
    kind : int
        UNIGRAM, BPE, ...
    byte_fallback, as_suffix : bool
    charsmap : bytes
    add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces : bool
    unk_id, bos_id, eos_id, pad_id : int
        -1: there is none.
    """

    pieces: list[str] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    kinds: list[int] = field(default_factory=list)
    kind: int = UNIGRAM
    byte_fallback: bool = False
    as_suffix: bool = False
    charsmap: bytes = b""
    add_dummy_prefix: bool = True
    remove_extra_whitespaces: bool = True
    escape_whitespaces: bool = True
    unk_id: int = 0
    bos_id: int = 1
    eos_id: int = 2
    pad_id: int = -1


def parse_model(data: bytes) -> SentencePieceModel:
    """The content of a file; a :class:`TokenizerError` says what is wrong with it and where."""
    model = SentencePieceModel()
    view = memoryview(data)
    for number, value, place in _fields(view, _read_usual_pieces(data, model), len(view)):
        if number == 1:
            _read_piece(view, _range(value, place), model)
        elif number == 2:
            _read_trainer(view, _range(value, place), model)
        elif number == 3:
            _read_normalizer(view, _range(value, place), model)
        elif number == 5:
            _refuse_rules(view, _range(value, place))
    if not model.pieces:
        raise TokenizerError("SentencePiece model: there are no pieces in this file")
    return model


def _read_usual_pieces(data: bytes, model: SentencePieceModel) -> int:
    """Read the short pieces that a file begins with, several times as fast as :func:`_read_piece`.

    Returns where the first field begins that is not written as ``sentencepiece`` writes a short piece: its text, its
    score and, if it is not a normal one, its kind.
    """
    pieces, scores, kinds = model.pieces, model.scores, model.kinds
    place, end = 0, len(data)
    while place + _SHORTEST_PIECE <= end:
        piece, length, text, characters = data[place : place + 4]
        behind, score = place + 2 + length, place + 4 + characters
        rest = behind - score
        # Lengths from 128 on take two bytes.
        if piece != _PIECE or text != _TEXT or length > 127 or behind > end or rest not in (5, 7):
            break
        kind = NORMAL if rest == 5 else data[score + 6]
        if data[score] != _SCORE or not NORMAL <= kind <= BYTE or (rest == 7 and data[score + 5] != _KIND):
            break
        try:
            pieces.append(data[place + 4 : score].decode())
        except UnicodeDecodeError:
            break
        scores.append(_FLOAT(data, score + 1)[0])
        kinds.append(kind)
        place = behind
    return place


def _read_piece(view: memoryview, bounds: tuple[int, int], model: SentencePieceModel) -> None:
    piece, score, kind = "", 0.0, NORMAL
    for number, value, place in _fields(view, *bounds):
        if number == 1:
            begin, end = _range(value, place)
            try:
                piece = str(view[begin:end], "utf-8")
            except UnicodeDecodeError:
                raise TokenizerError(f"SentencePiece model: piece {len(model.pieces)} is not UTF-8") from None
        elif number == 2 and isinstance(value, float):
            score = value
        elif number == 3 and isinstance(value, int):
            kind = value
    if not NORMAL <= kind <= BYTE:
        raise TokenizerError(f"SentencePiece model: piece {len(model.pieces)} is of unknown kind {kind}")
    model.pieces.append(piece)
    model.scores.append(score)
    model.kinds.append(kind)


def _read_trainer(view: memoryview, bounds: tuple[int, int], model: SentencePieceModel) -> None:
    for number, value, _ in _fields(view, *bounds):
        if not isinstance(value, int):
            continue
        if number == 3:
            model.kind = value
        elif number == 24:
            model.as_suffix = bool(value)
        elif number == 35:
            model.byte_fallback = bool(value)
        elif number in (40, 41, 42, 43):
            # Negative numbers are written as 64 bits.
            value = value - 2**64 if value >= 2**63 else value
            setattr(model, {40: "unk_id", 41: "bos_id", 42: "eos_id", 43: "pad_id"}[number], value)


def _read_normalizer(view: memoryview, bounds: tuple[int, int], model: SentencePieceModel) -> None:
    for number, value, _ in _fields(view, *bounds):
        if number == 2 and isinstance(value, tuple):
            model.charsmap = bytes(view[value[0] : value[1]])
        elif number == 3 and isinstance(value, int):
            model.add_dummy_prefix = bool(value)
        elif number == 4 and isinstance(value, int):
            model.remove_extra_whitespaces = bool(value)
        elif number == 5 and isinstance(value, int):
            model.escape_whitespaces = bool(value)


def _refuse_rules(view: memoryview, bounds: tuple[int, int]) -> None:
    """A denormalizer would change what tokens decode to."""
    for number, value, place in _fields(view, *bounds):
        if number == 2 and isinstance(value, tuple) and value[0] < value[1]:
            raise TokenizerError(f"SentencePiece model: denormalization rules (byte {place}) are not supported")


def _range(value: object, place: int) -> tuple[int, int]:
    if not isinstance(value, tuple):
        raise TokenizerError(f"SentencePiece model: damaged at byte {place}: a message was expected")
    return value


def _fields(view: memoryview, pos: int, end: int) -> Iterator[tuple[int, int | float | tuple[int, int], int]]:
    """Number, value and place of each field; the value of a string or message is where it begins and ends."""
    while pos < end:
        place = pos
        key, pos = _varint(view, pos, end)
        kind = key & 7
        value: int | float | tuple[int, int]
        if kind == 0:
            value, pos = _varint(view, pos, end)
        elif kind == 2:
            length, pos = _varint(view, pos, end)
            if length > end - pos:
                raise TokenizerError(
                    f"SentencePiece model: damaged at byte {place}: {length} bytes wanted, {end - pos} are left"
                )
            value = (pos, pos + length)
            pos += length
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            if size > end - pos:
                raise TokenizerError(f"SentencePiece model: damaged at byte {place}: it ends within a number")
            value = struct.unpack_from("<d" if kind == 1 else "<f", view, pos)[0]
            pos += size
        else:
            raise TokenizerError(f"SentencePiece model: damaged at byte {place}: wire type {kind}")
        if key >> 3 == 0:
            raise TokenizerError(f"SentencePiece model: damaged at byte {place}: field 0")
        yield key >> 3, value, place


def _varint(view: memoryview, pos: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if pos >= end or shift > 63:
            raise TokenizerError(f"SentencePiece model: damaged at byte {pos}: a number does not end")
        byte = view[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (2**64 - 1), pos
        shift += 7
