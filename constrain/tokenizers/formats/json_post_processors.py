"""The post-processors of ``tokenizer.json``: the ids around a text, and how two texts are put together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from constrain.errors import TokenizerError
from constrain.tokenizers.formats.json_parts import parts_of, type_of

PairTemplate = tuple[tuple[str | tuple[int, ...], int], ...]


def pair_template(entry: Any, to_id: Callable[[str], int | None]) -> PairTemplate | None:
    """How two texts are put together: "A", "B" or ids, each with its type; None where a template does not say.

    ``entry`` is one that :func:`around_text` has accepted.
    """
    part = _part_that_adds(entry)
    if part is None:
        return ("A", 0), ("B", 1)
    kind = type_of(part)
    if kind == "TemplateProcessing":
        return _pair_of_template(part)
    begin, end = _named_id(part.get("cls"), to_id), _named_id(part.get("sep"), to_id)
    if kind == "BertProcessing":
        return (begin, 0), ("A", 0), (end, 0), ("B", 1), (end, 1)
    return (begin, 0), ("A", 0), (end * 2, 0), ("B", 0), (end, 0)


def _pair_of_template(part: dict[str, Any]) -> PairTemplate | None:
    if part.get("pair") is None:
        return None
    found: list[tuple[str | tuple[int, ...], int]] = []
    try:
        for piece in part["pair"]:
            kind, inner = next(iter(piece.items()))
            type_id = int(inner["type_id"])
            if kind == "Sequence":
                if inner["id"] not in ("A", "B"):
                    raise ValueError(inner)
                found.append((inner["id"], type_id))
            else:
                found.append((_special_ids(part, inner), type_id))
    except (AttributeError, KeyError, OverflowError, StopIteration, TypeError, ValueError):
        raise TokenizerError("post_processor TemplateProcessing: its pair is malformed") from None
    return tuple(found)


def around_text(entry: Any, to_id: Callable[[str], int | None]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ids before and after a single text."""
    part = _part_that_adds(entry)
    if part is None:
        return (), ()
    kind = type_of(part)
    if kind == "TemplateProcessing":
        return _template(part)
    if kind in ("RobertaProcessing", "BertProcessing"):
        return _named_id(part.get("cls"), to_id), _named_id(part.get("sep"), to_id)
    raise TokenizerError(
        f"post_processor {kind} is not supported; supported are ByteLevel, TemplateProcessing,"
        " BertProcessing and RobertaProcessing"
    )


def _part_that_adds(entry: Any) -> Any:
    """The part that adds tokens, or None.

    ``tokenizers`` takes what the first of several makes, text and tokens, for the texts of a pair: no file means that.
    """
    # The others trim offsets, and ours always include the space.
    parts = [part for part in parts_of(entry, "processors") if type_of(part) != "ByteLevel"]
    if len(parts) > 1:
        names = " + ".join(map(type_of, parts))
        raise TokenizerError(f"post_processor {names} is not supported: only one part may add tokens")
    return parts[0] if parts else None


def _template(part: dict[str, Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    around: list[list[int]] = [[]]
    try:
        for piece in part["single"]:
            if "Sequence" not in piece:
                around[-1] += _special_ids(part, piece["SpecialToken"])
            elif piece["Sequence"]["id"] == "A":
                around.append([])
            else:
                raise ValueError(piece)
    except (KeyError, TypeError, ValueError):
        raise TokenizerError("post_processor TemplateProcessing is malformed") from None
    if len(around) != 2:
        raise TokenizerError(
            f"post_processor TemplateProcessing has the text {len(around) - 1} times; only once is supported"
        )
    return tuple(around[0]), tuple(around[1])


def _special_ids(part: dict[str, Any], piece: dict[str, Any]) -> tuple[int, ...]:
    """The ids that a template names."""
    ids = tuple(part["special_tokens"][piece["id"]]["ids"])
    if set(map(type, ids)) - {int}:
        raise ValueError(ids)
    return ids


def _named_id(pair: Any, to_id: Callable[[str], int | None]) -> tuple[int, ...]:
    """The id of a token given as ``[name, id]``; where the vocabulary has another one for the name, the given one."""
    name, token_id = pair if isinstance(pair, list) and len(pair) == 2 else (None, None)
    if not isinstance(name, str) or to_id(name) is None:
        raise TokenizerError(f"post_processor names {name!r}, which is not in the vocabulary")
    if type(token_id) is not int:
        raise TokenizerError(f"post_processor names {name!r} without an id")
    return (token_id,)
