"""Writes ``tokenizer.json``, which ``tokenizers`` and ``transformers`` open.

Byte-level BPE of any format; other tokenizers if they are from such a file.  SentencePiece's and llama.cpp's do things
to a text that no ``tokenizer.json`` can say.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from constrain.errors import TokenizerError
from constrain.tokenizers.added_tokens import AddedToken
from constrain.tokenizers.arguments import checked_path
from constrain.tokenizers.base import Tokenizer
from constrain.tokenizers.byte_alphabet import alphabet_bytes, bytes_to_text
from constrain.tokenizers.formats.json_parts import FILE_PARTS
from constrain.tokenizers.models.byte_level_bpe import ByteLevelBPE
from constrain.tokenizers.models.piece_tokenizer import PieceTokenizer
from constrain.tokenizers.models.spelled_bpe import SpelledBPE
from constrain.tokenizers.models.symbol_bpe import SymbolBPE
from constrain.tokenizers.models.unigram import Unigram
from constrain.tokenizers.splitting.patterns import SplitPattern, by_name, regex_of
from constrain.tokenizers.splitting.stages import PrefixStage, RegexStage, Stage


def save_tokenizer_json(tokenizer: Tokenizer, path: str | os.PathLike[str]) -> None:
    """Write a tokenizer as ``tokenizer.json``.

    Roles of special tokens, ids that end a text and chat templates are not part of that file.  Where the files of the
    tokenizer do not say how two texts are put together, what surrounds one text is put around both.

    Parameters
    ----------
    tokenizer : Tokenizer
        Byte-level BPE of any format, or one that is from a ``tokenizer.json``.
    path : str or path
        The file; one that is there is replaced as a whole.

    Raises :class:`TokenizerError` for other tokenizers, for parts that such a file cannot hold, and if the file cannot
    be written.
    """
    place = checked_path(path)
    if not place.name:
        raise TokenizerError(f"{place} is the path of a folder: give that of a file, such as tokenizer.json")
    try:
        data = json.dumps(tokenizer_json_of(tokenizer), ensure_ascii=False, indent=1).encode()
    except UnicodeEncodeError as error:
        near = error.object[max(0, error.start - 20) : error.end]
        raise TokenizerError(f"{near!r}: a lone surrogate has no UTF-8, so that it cannot be written") from None
    beside = place.with_name(f"{place.name}.{os.getpid()}.part")
    try:
        beside.write_bytes(data)
        beside.replace(place)
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise TokenizerError(f"{place}: {error.strerror}") from None


def tokenizer_json_of(tokenizer: Tokenizer) -> dict[str, Any]:
    """The content of the ``tokenizer.json`` of a tokenizer."""
    if isinstance(tokenizer, PieceTokenizer) and tokenizer.file_parts is not None:
        return _piece_json(tokenizer, json.loads(tokenizer.file_parts))
    if not isinstance(tokenizer, ByteLevelBPE):
        raise TokenizerError(
            f"a {type(tokenizer).__name__} cannot be written as tokenizer.json, unless it is from such a file;"
            " byte-level BPE can"
        )
    options = tokenizer.options
    if not options.added_in_alphabet:
        for token in tokenizer.added_tokens:
            if alphabet_bytes(token.content) != token.content.encode():
                raise TokenizerError(
                    f"added token {token.content!r}: its decoder in tokenizer.json would read bytes in it"
                )
    spelled = {token_id: bytes_to_text(data) for token_id, data in tokenizer.model_tokens().items()}
    merges = [[spelled[left], spelled[right]] for left, right in tokenizer.merges().tolist()]
    spelled |= tokenizer.foreign_tokens()
    added = sorted(tokenizer.added_tokens, key=lambda token: token.id)
    spelled |= _added_in_model(added, spelled, options.whole_piece)
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added_json(added),
        "normalizer": None if options.normal_form is None else {"type": options.normal_form},
        "pre_tokenizer": _pre_tokenizer(options.split, options.add_prefix_space),
        "post_processor": _post_processor(tokenizer),
        "decoder": _byte_level(False, True),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": options.whole_piece,
            "vocab": {text: token_id for token_id, text in sorted(spelled.items())},
            "merges": merges,
        },
    }


def _piece_json(tokenizer: PieceTokenizer, parts: dict[str, Any]) -> dict[str, Any]:
    """``parts``: what the file that the tokenizer is from has beside tokens and merges."""
    outside = frozenset(parts["outside"])
    texts = {token_id: text for token_id, text in tokenizer.vocabulary_texts().items() if token_id not in outside}
    given = -1
    for token in sorted(tokenizer.added_tokens, key=lambda token: token.id):
        given = max(given, token.id) if token.id in texts else max(given + 1, len(texts))
        if token.id in outside and token.id != given:
            raise TokenizerError(f"added token {token.content!r}: tokenizer.json cannot say its id, {token.id}")
    model: dict[str, Any] = {**parts["model"]}
    if isinstance(tokenizer.model, Unigram):
        model["vocab"] = [[texts[token_id], score] for token_id, score in enumerate(tokenizer.model.scores())]
    else:
        model["vocab"] = {text: token_id for token_id, text in sorted(texts.items())}
    if isinstance(tokenizer.model, SymbolBPE | SpelledBPE):
        model["merges"] = [[texts[left], texts[right]] for left, right in tokenizer.model.merges()]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added_json(tokenizer.added_tokens),
        **{key: parts[key] for key in FILE_PARTS},
        "model": model,
    }


def _added_json(added: Iterable[AddedToken]) -> list[dict[str, Any]]:
    return [
        {
            "id": token.id,
            "content": token.content,
            "single_word": token.single_word,
            "lstrip": token.lstrip,
            "rstrip": token.rstrip,
            "normalized": token.normalized,
            "special": token.special,
        }
        for token in sorted(added, key=lambda token: token.id)
    ]


def _added_in_model(added: list[AddedToken], spelled: dict[int, str], whole_piece: bool) -> dict[int, str]:
    """The added tokens that the model's vocabulary has to name too, by id, so that they keep their ids.

    ``tokenizers`` numbers them itself when it reads a file: one that the model names has its id there, and the others
    follow the number of the model's tokens.  So where ids were left out, or added tokens come first, they need names.
    """
    ids = {text: token_id for token_id, text in spelled.items()}
    given = -1
    are_counted = True
    for token in added:
        next_one = max(given + 1, len(ids))
        given = max(given, ids.get(token.content, next_one))
        are_counted &= ids.get(token.content, next_one) == token.id
    if are_counted:
        return {}
    for token in added:
        if ids.get(token.content, token.id) != token.id:
            raise TokenizerError(f"added token {token.content!r}: the model has a token that is written like it")
        # What the model names it may find itself: a whole piece of the text, if that is not taken out before.
        is_taken_out = not token.single_word and alphabet_bytes(token.content) == token.content.encode()
        if whole_piece and token.content not in ids and not is_taken_out:
            raise TokenizerError(f"added token {token.content!r}: tokenizer.json cannot say its id, {token.id}")
    return {token.id: token.content for token in added}


def _pre_tokenizer(split: SplitPattern | tuple[Stage, ...], add_prefix_space: bool) -> dict[str, Any]:
    if isinstance(split, SplitPattern) and split.name == "gpt2":
        return _byte_level(add_prefix_space, True)
    if add_prefix_space:
        raise TokenizerError("a space in front of the text, with another split than GPT-2's, cannot be written")
    stages: tuple[Stage, ...] = (split,) if isinstance(split, SplitPattern) else split
    last = _byte_level(False, False)
    for place, stage in enumerate(stages):
        # A blank before each piece is written by the part that turns pieces into bytes, which is the last one.
        if isinstance(stage, PrefixStage) and stages[place + 1 :] in ((), (by_name("gpt2"),)):
            last = _byte_level(True, place + 1 < len(stages))
            stages = stages[:place]
            break
    parts: list[dict[str, Any]] = []
    for stage in stages:
        if isinstance(stage, SplitPattern):
            regex, behavior, invert = regex_of(stage), "Isolated", False
        elif isinstance(stage, RegexStage) and stage.is_same_in_oniguruma():
            regex, behavior, invert = stage.regex, stage.behavior, stage.invert
        else:
            raise TokenizerError(f"a split by a {type(stage).__name__} cannot be written as tokenizer.json")
        parts.append({"type": "Split", "pattern": {"Regex": regex}, "behavior": behavior, "invert": invert})
    return {"type": "Sequence", "pretokenizers": [*parts, last]}


def _byte_level(add_prefix_space: bool, use_regex: bool) -> dict[str, Any]:
    return {
        "type": "ByteLevel",
        "add_prefix_space": add_prefix_space,
        "trim_offsets": False,
        "use_regex": use_regex,
    }


def _post_processor(tokenizer: ByteLevelBPE) -> dict[str, Any]:
    before, after = tokenizer.around
    pair = tokenizer.pair_template
    if not before and not after and pair in (None, (("A", 0), ("B", 1))):
        return _byte_level(False, True)
    names: dict[str, dict[str, Any]] = {}

    def pieces(parts: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for part, type_id in parts:
            if isinstance(part, str):
                found.append({"Sequence": {"id": part, "type_id": type_id}})
                continue
            for token_id in part:
                name = tokenizer.id_to_token(token_id) or ""
                names[name] = {"id": name, "ids": [token_id], "tokens": [name]}
                found.append({"SpecialToken": {"id": name, "type_id": type_id}})
        return found

    return {
        "type": "TemplateProcessing",
        "single": pieces(((before, 0), ("A", 0), (after, 0))),
        "pair": pieces(pair or ((before, 0), ("A", 0), ("B", 1), (after, 1))),
        "special_tokens": names,
    }
