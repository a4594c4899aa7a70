"""A small ``tokenizer.json`` of each kind, trained on the spot: functions without arguments that return its content."""

from __future__ import annotations

import copy
import json

import tokenizers
from tokenizer_texts import CORPUS, PIECES, TRAINING_TEXT
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

LINES = [*CORPUS.splitlines(), *TRAINING_TEXT.splitlines(), " ".join(PIECES)] * 2
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
MARK = "\u2581"


def trained(model, trainer, normalizer=None, pre_tokenizer=None, decoder=None):
    tokenizer = tokenizers.Tokenizer(model)
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    if decoder is not None:
        tokenizer.decoder = decoder
    tokenizer.train_from_iterator(LINES, trainer)
    return json.loads(tokenizer.to_str())


def llama_like():
    """Prepend, Replace, byte fallback: Llama 2 and Phi 3."""
    content = trained(
        models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True),
        trainers.BpeTrainer(vocab_size=900, special_tokens=["<unk>", "<s>", "</s>", *BYTES], show_progress=False),
        normalizers.Sequence([normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)]),
        None,
        decoders.Sequence(
            [decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
        ),
    )
    content["added_tokens"] = content["added_tokens"][:3]
    return content


def mistral_like():
    """Metaspace without cutting, in front of the first word only."""
    content = llama_like()
    content["normalizer"] = None
    content["pre_tokenizer"] = {"type": "Metaspace", "replacement": MARK, "prepend_scheme": "first", "split": False}
    return content


def gemma_like():
    """No prefix, a split that follows a replacement, no unknown token left."""
    content = llama_like()
    content["normalizer"] = {"type": "Replace", "pattern": {"String": " "}, "content": MARK}
    content["pre_tokenizer"] = {
        "type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False,
    }  # fmt: skip
    content["decoder"]["decoders"].pop()
    content["model"]["ignore_merges"] = True
    return content


def no_bytes():
    """Unknown characters become one token each, or one for several."""
    content = llama_like()
    content["model"]["byte_fallback"] = False
    for merge_unknown in (False, True):
        content["model"]["fuse_unk"] = merge_unknown
        yield copy.deepcopy(content)


def t5_like(**options):
    return trained(
        models.Unigram(),
        trainers.UnigramTrainer(
            vocab_size=500, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False
        ),
        normalizers.Sequence([normalizers.Replace(tokenizers.Regex(" {2,}"), " "), normalizers.NFKC()]),
        options.get("pre_tokenizer", pre_tokenizers.Metaspace()),
        decoders.Metaspace(),
    )


def bert_like(**options):
    return trained(
        models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=20),
        trainers.WordPieceTrainer(vocab_size=400, special_tokens=["[UNK]", "[CLS]", "[SEP]"], show_progress=False),
        normalizers.BertNormalizer(**options),
        pre_tokenizers.BertPreTokenizer(),
        decoders.WordPiece(),
    )


def words_like():
    return trained(
        models.WordLevel(unk_token="[UNK]"),
        trainers.WordLevelTrainer(vocab_size=300, special_tokens=["[UNK]"], show_progress=False),
        normalizers.Sequence([normalizers.Nmt(), normalizers.Lowercase()]),
        pre_tokenizers.Whitespace(),
    )


def byte_level(*stages):
    byte_stage = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return trained(
        models.BPE(),
        trainers.BpeTrainer(vocab_size=500, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False),
        None,
        pre_tokenizers.Sequence([*stages, byte_stage] if not any_byte_level(stages) else list(stages)),
        decoders.ByteLevel(),
    )


def any_byte_level(stages):
    return any(isinstance(stage, pre_tokenizers.ByteLevel) for stage in stages)


def split(regex, behavior="isolated"):
    return pre_tokenizers.Split(tokenizers.Regex(regex), behavior)


KINDS = {
    "llama": llama_like,
    "mistral": mistral_like,
    "gemma": gemma_like,
    "unknown": lambda: next(iter(no_bytes())),
    "fused unknown": lambda: list(no_bytes())[1],
    "t5": t5_like,
    "xlm-roberta": lambda: t5_like(
        pre_tokenizer=pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    ),
    "bert uncased": bert_like,
    "bert cased": lambda: bert_like(lowercase=False, strip_accents=False),
    "bert accents": lambda: bert_like(lowercase=True, strip_accents=False, handle_chinese_chars=False),
    "words": words_like,
    "starcoder": lambda: byte_level(
        pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)
    ),
    "falcon": lambda: byte_level(
        pre_tokenizers.Punctuation("contiguous"),
        pre_tokenizers.ByteLevel(add_prefix_space=False),
        pre_tokenizers.Digits(individual_digits=False),
        split("[0-9][0-9][0-9]"),
    ),
    "deepseek": lambda: byte_level(
        split(r"[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split("[一-龥ࠀ-一가-퟿]+"),
        pre_tokenizers.Digits(individual_digits=True),
    ),
    "deepseek 3": lambda: byte_level(
        split(r"\p{N}{1,3}"), split("[一-龥぀-ゟ゠-ヿ]+"),
        split(r"[!-/:-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+"),
    ),
}  # fmt: skip
