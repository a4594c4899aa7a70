"""Random content of ``tokenizer.json``: every normalizer, pre-tokenizer, model and decoder that `tokenizers` has."""

from __future__ import annotations

import base64
import random
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar

from constrain.tokenizers.byte_alphabet import CHARACTER_OF_BYTE

_LETTERS = (
    *"abcABC", "e", "\u0301", "\u00e9", "\u00df", "\u0130", "\ufb01", *"123", "\u00bd", "\u2167", *".,'-_#", "\u00ab",
    "\u4e2d", "\u304b", "\u30ab", "\u30fc", "\ud55c", "\u0928\u093f", "\U0001f600", "\u200d", "\ufffd", "\x00",
    "\u212b",
)  # fmt: skip
_SPACES = (" ", " ", " ", "  ", "\n", "\t", "\r\n", "\u00a0", "\u3000", "\u2581", "\x1c", "\u200b")
_BEHAVIORS = ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")
_REGEXES = (
    r"\s+", r"\p{N}", r"\p{L}+", r"[a-c]+", r"\s?\p{L}+", r"'s|\p{N}{1,2}|[^\s\p{L}\p{N}]+", r"a|b", r" ", r"\s+(?!\S)",
    r"^a", r"c$", r"(?i:ab)", r"[^a]", r"\p{P}", r"$", r"x*",
    r"\p{L}{1,2}+", r"a{2}?b", r"(?i)[a-c]|\p{Ll}", "(?i:\u00c9|s)", r"\p{Word}+", r"(?>a+)b|a++", r"[\w&&[^b]]+",
)  # fmt: skip
_STRINGS = (" ", "a", "ab", ".", "\u2581", "  ", "e\u0301", "\n")
_ADDED = ("<s>", "</s>", "ab", "A", "<|x|>", "\u00e9", "  ", "<unk>", "a b")
_CONTENTS = ("", " ", "_", "ab", "\u2581", "X")


@dataclass(frozen=True)
class FilePlan:
    """A file as lists of parts, so that parts can be left out.

    Attributes
    ----------
    model : dict
    normalizers, pre_tokenizers, decoders, processors, added : list of dict
    """

    model: dict[str, Any]
    normalizers: list[Any]
    pre_tokenizers: list[Any]
    decoders: list[Any]
    processors: list[Any]
    added: list[Any]

    LISTS: ClassVar[tuple[str, ...]] = ("normalizers", "pre_tokenizers", "decoders", "processors", "added")

    def having(self, **lists: Any) -> FilePlan:
        """The same with other lists."""
        return replace(self, **lists)

    def content(self) -> dict[str, Any]:
        """What the file holds; new added tokens have ids without gaps, since the library gives its own."""
        vocab = self.model["vocab"]
        known = vocab if isinstance(vocab, dict) else {entry[0] for entry in vocab}
        place = len(known)
        added = []
        for token in self.added:
            is_new = token["content"] not in known
            added.append({**token, "id": place} if is_new else token)
            place += is_new
        return {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": added,
            "normalizer": _sequence(self.normalizers, "normalizers"),
            "pre_tokenizer": _sequence(self.pre_tokenizers, "pretokenizers"),
            "post_processor": _sequence(self.processors, "processors"),
            "decoder": _sequence(self.decoders, "decoders"),
            "model": self.model,
        }


def _sequence(parts: list[Any], key: str) -> Any:
    if len(parts) < 2:
        return parts[0] if parts else None
    return {"type": "Sequence", key: parts}


def random_plan(rng: random.Random) -> FilePlan:
    """A file; most ask for few parts, because every part has to meet every other one at some time."""
    pre = [_pre_tokenizer(rng) for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3)))]
    if rng.random() < 0.35:
        pre.append(_byte_level(rng))
    in_bytes = any(part["type"] == "ByteLevel" for part in pre)
    normalizers = [_normalizer(rng) for _ in range(rng.choice((0, 0, 1, 1, 2, 3)))]
    in_bytes |= any(part["type"] == "ByteLevel" for part in normalizers)
    model = _model(rng, in_bytes)
    added = _added(rng, model)
    decoders = [{"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}]
    if not in_bytes or rng.random() < 0.1:
        decoders = _decoders(rng)
    processors = _processors(rng, model) if rng.random() < 0.3 else []
    return FilePlan(model, normalizers, pre, decoders, processors, added)


def random_texts(rng: random.Random, plan: FilePlan, count: int) -> list[str]:
    """Texts of the characters that the parts are about, and of added tokens."""
    contents = [token["content"] for token in plan.added]

    def part() -> str:
        kind = rng.random()
        if contents and kind < 0.12:
            return rng.choice(contents)
        return rng.choice(_SPACES) if kind < 0.4 else rng.choice(_LETTERS)

    return ["", *("".join(part() for _ in range(rng.choice((1, 2, 3, 5, 8, 13, 21)))) for _ in range(count - 1))]


def _flag(rng: random.Random) -> bool:
    return rng.random() < 0.5


def _pattern(rng: random.Random) -> dict[str, str]:
    return {"Regex": rng.choice(_REGEXES)} if _flag(rng) else {"String": rng.choice(_STRINGS)}


@cache
def _rules() -> str:
    """Rules of SentencePiece for ``Precompiled``, out of a model that is trained here, or none without it."""
    try:
        import io

        import sentencepiece
    except ImportError:
        return ""
    from constrain.tokenizers.formats.sentencepiece_proto import parse_model

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a b c the end of it"] * 20),
        model_writer=model,
        vocab_size=20,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return base64.b64encode(parse_model(model.getvalue()).charsmap).decode()


def _normalizer(rng: random.Random) -> dict[str, Any]:
    kind = rng.choice(
        (
            *("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Strip", "Prepend", "Replace", "Replace"),
            *("BertNormalizer", "Nmt", "Precompiled", "ByteLevel"),
        )
    )
    entry: dict[str, Any] = {"type": kind}
    if kind == "Strip":
        entry |= {"strip_left": _flag(rng), "strip_right": _flag(rng)}
    elif kind == "Prepend":
        entry["prepend"] = rng.choice(("\u2581", " ", "ab"))
    elif kind == "Replace":
        entry |= {"pattern": _pattern(rng), "content": rng.choice(_CONTENTS)}
    elif kind == "BertNormalizer":
        entry |= {"clean_text": _flag(rng), "handle_chinese_chars": _flag(rng), "lowercase": _flag(rng)}
        entry["strip_accents"] = rng.choice((None, True, False))
    elif kind == "Precompiled":
        entry["precompiled_charsmap"] = _rules()
    return entry


def _byte_level(rng: random.Random) -> dict[str, Any]:
    return {
        "type": "ByteLevel",
        "add_prefix_space": rng.random() < 0.3,
        "trim_offsets": False,
        "use_regex": _flag(rng),
    }


def _pre_tokenizer(rng: random.Random) -> dict[str, Any]:
    kind = rng.choice(
        (
            *("BertPreTokenizer", "CharDelimiterSplit", "Digits", "FixedLength", "Metaspace", "Punctuation", "Split"),
            *("Split", "UnicodeScripts", "Whitespace", "WhitespaceSplit", "ByteLevel"),
        )
    )
    if kind == "ByteLevel":
        return _byte_level(rng)
    entry: dict[str, Any] = {"type": kind}
    if kind == "CharDelimiterSplit":
        entry["delimiter"] = rng.choice(("a", " ", "\u4e2d"))
    elif kind == "Digits":
        entry["individual_digits"] = _flag(rng)
    elif kind == "FixedLength":
        entry["length"] = rng.choice((1, 2, 3, 5))
    elif kind == "Metaspace":
        entry["replacement"] = rng.choice(("\u2581", "\u2581", "_"))
        entry |= {"prepend_scheme": rng.choice(("always", "first", "never")), "split": _flag(rng)}
    elif kind == "Punctuation":
        entry["behavior"] = rng.choice(_BEHAVIORS)
    elif kind == "Split":
        entry |= {"pattern": _pattern(rng), "behavior": rng.choice(_BEHAVIORS), "invert": rng.random() < 0.3}
    return entry


def _characters(rng: random.Random, in_bytes: bool) -> list[str]:
    if in_bytes:
        most = list(CHARACTER_OF_BYTE)
        return most if rng.random() < 0.8 else rng.sample(most, 200)
    known = sorted(set("".join((*_LETTERS, *_SPACES))))
    return known if _flag(rng) else rng.sample(known, len(known) * 2 // 3)


def _model(rng: random.Random, in_bytes: bool) -> dict[str, Any]:
    kind = rng.choice(("BPE", "BPE", "BPE", "Unigram", "WordPiece", "WordLevel"))
    characters = _characters(rng, in_bytes)
    if kind == "BPE":
        return _bpe(rng, characters)
    unknown = "<unk>"
    pieces = [unknown, *characters]
    for _ in range(80):
        word = "".join(rng.choices(characters, k=rng.choice((2, 2, 3, 4))))
        pieces.append(f"##{word}" if kind == "WordPiece" and _flag(rng) else word)
    # Some that are sure to be met.
    pieces += ["ab", "abc", "\u2581a", "##b", "##ab", "\u2581", " a", "\u0120a", "\u0120"]
    pieces = list(dict.fromkeys(pieces))
    if kind == "Unigram":
        return _unigram(rng, pieces)
    vocab = {piece: place for place, piece in enumerate(pieces)}
    if kind == "WordLevel":
        return {"type": "WordLevel", "vocab": vocab, "unk_token": unknown}
    most = rng.choice((3, 100))
    entry = {"type": "WordPiece", "vocab": vocab, "unk_token": unknown, "continuing_subword_prefix": "##"}
    return {**entry, "max_input_chars_per_word": most}


def _unigram(rng: random.Random, pieces: list[str]) -> dict[str, Any]:
    falls_back = rng.random() < 0.3
    if falls_back:
        pieces = [*pieces, *(f"<0x{byte:02X}>" for byte in range(256))]
    scores = [[piece, 0.0 if not place else -rng.choice((1.0, 1.5, 2.25, 4.0))] for place, piece in enumerate(pieces)]
    return {"type": "Unigram", "unk_id": 0, "vocab": scores, "byte_fallback": falls_back}


def _bpe(rng: random.Random, characters: list[str]) -> dict[str, Any]:
    prefix = "##" if rng.random() < 0.15 else None
    suffix = "</w>" if rng.random() < 0.2 else None
    symbols = list(characters)
    if prefix:
        symbols += [prefix + char for char in characters if rng.random() < 0.9]
    if suffix:
        symbols += [f"{symbol}{suffix}" for symbol in list(symbols) if rng.random() < 0.9]
    unknown = "<unk>" if rng.random() < 0.6 else None
    vocab = list(dict.fromkeys([*([unknown] if unknown else []), *symbols]))
    falls_back = rng.random() < 0.3
    if falls_back:
        vocab += [f"<0x{byte:02X}>" for byte in range(256)]
    known = set(vocab)
    merges: list[list[str]] = []
    parts = list(symbols)
    likely = [symbol for symbol in parts if any(char in symbol for char in "abc \u2581\u0120")] or list(parts)
    for _ in range(80):
        left, right = rng.choice(likely if _flag(rng) else parts), rng.choice(likely if _flag(rng) else parts)
        if prefix and not right.startswith(prefix):
            continue
        merged = left + (right[len(prefix) :] if prefix else right)
        if [left, right] in merges or not merged:
            continue
        merges.append([left, right])
        if merged not in known:
            known.add(merged)
            vocab.append(merged)
            parts.append(merged)
            likely.append(merged)
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": unknown,
        "continuing_subword_prefix": prefix,
        "end_of_word_suffix": suffix,
        "fuse_unk": _flag(rng),
        "byte_fallback": falls_back,
        "ignore_merges": rng.random() < 0.3,
        "vocab": {piece: place for place, piece in enumerate(vocab)},
        "merges": merges,
    }


def _added(rng: random.Random, model: dict[str, Any]) -> list[dict[str, Any]]:
    vocab = model["vocab"]
    known = vocab if isinstance(vocab, dict) else {entry[0]: place for place, entry in enumerate(vocab)}
    added = []
    contents = rng.sample(_ADDED, rng.choice((0, 1, 2, 3)))
    if model["type"] == "Unigram" and model["byte_fallback"] and "<unk>" not in contents:
        # As in all real files: what a text that spells it becomes there, is another thing in each implementation.
        contents.append("<unk>")
    for content in contents:
        flags = {key: content != "<unk>" and rng.random() < 0.25 for key in ("single_word", "lstrip", "rstrip")}
        special = content in ("<s>", "</s>", "<|x|>", "<unk>")
        token_id = known.get(content, len(known))  # of a new one: see FilePlan.content
        flags |= {"normalized": not special and rng.random() < 0.6, "special": special}
        added.append({"id": token_id, "content": content, **flags})
    return sorted(added, key=lambda token: int(token["id"]))


def _decoders(rng: random.Random) -> list[dict[str, Any]]:
    choice = rng.choice(("none", "metaspace", "wordpiece", "llama", "replace", "fuse", "bpe", "ctc", "no parts"))
    if choice == "no parts":
        return [{"type": "Sequence", "decoders": []}]
    if choice == "metaspace":
        scheme = rng.choice(("always", "first", "never"))
        return [{"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": True}]
    if choice == "wordpiece":
        return [{"type": "WordPiece", "prefix": "##", "cleanup": _flag(rng)}]
    if choice == "bpe":
        return [{"type": "BPEDecoder", "suffix": "</w>"}]
    if choice == "ctc":
        return [{"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": True}]
    replaces = {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}
    if choice == "llama":
        strip = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if _flag(rng) else []
        return [replaces, {"type": "ByteFallback"}, {"type": "Fuse"}, *strip]
    if choice == "replace":
        return [replaces, {"type": "Fuse"}]
    return [{"type": "Fuse"}] if choice == "fuse" else []


def _processors(rng: random.Random, model: dict[str, Any]) -> list[dict[str, Any]]:
    vocab = model["vocab"]
    name = next(iter(vocab)) if isinstance(vocab, dict) else vocab[0][0]
    if _flag(rng):
        return [{"type": "BertProcessing", "sep": [name, 0], "cls": [name, 0]}]
    template = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": name, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {name: {"id": name, "ids": [0], "tokens": [name]}},
    }
    return [template]
