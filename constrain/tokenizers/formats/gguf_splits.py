"""How the ``pre`` names of GGUF files cut text, for the vocabularies that are byte-level BPE.

The names are given out by the converter that writes such files; each stands for the pre-tokenizer of the
``tokenizer.json`` that the file was made from.
"""

from __future__ import annotations

from constrain.errors import TokenizerError
from constrain.tokenizers.splitting.patterns import by_name
from constrain.tokenizers.splitting.stages import RegexStage, Stage

_CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_GPT2 = by_name("gpt2")
_LLAMA3 = by_name("llama3")
_QWEN2 = by_name("qwen2")
_O200K = by_name("o200k")
_ONE_DIGIT = RegexStage(r"\p{N}")
_THREE_DIGITS = RegexStage(r"\p{N}{1,3}")
_KANA_AND_HAN = RegexStage("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+")
_ASCII_SIGN = r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]"
_DEEPSEEK3 = RegexStage(
    _ASCII_SIGN + r"[A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_SPARK = RegexStage(
    _ASCII_SIGN + r"[A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+"
)
_SENTENCE_SIGNS = RegexStage(" ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+")
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_FALCON_SIGNS = RegexStage(r"[\p{P}\$\+<=>\^~\|`]+")

# The letters that DeepSeek LLM takes as such: those of scripts with two cases, without the modifiers.
_CASED = RegexStage(
    "\\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373"
    "\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f"
    "\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77"
    "\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d"
    "\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4"
    "\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139"
    "\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d"
    "\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a"
    "\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2"
    "\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943]+"
)
# From the right in groups of three.
_GROUPED_DIGITS = RegexStage(r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))")
# Han, kana, Thai, Lao, Khmer, Burmese and Hangul, of which the words have no spaces between them or are long.
_ASIAN_BLOCKS = RegexStage(
    "[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u3040-\u30ff\uff65-\uff9f\u2f00-\u2fdf\u0e40-\u0e7f\u0e80-\u0eff"
    "\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af\u1100-\u11ff]+"
)
_EAST_ASIAN = RegexStage("[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+")


_WORDS_WITH_MARKS = RegexStage(
    rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}"
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _o200k_like(contraction: str) -> RegexStage:
    """o200k's, with one digit a piece."""
    return RegexStage(
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{contraction}"
        rf"|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{contraction}"
        r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )


_DIGITS_FIRST = (_ONE_DIGIT, _GPT2)

_GPT2_NAMES = (
    *("gpt-2", "phi-2", "jina-es", "jina-de", "jina-v1-en", "jina-v2-es", "jina-v2-de", "jina-v2-code", "gigachat"),
    *("a.x-4.0", "mellum", "modern-bert", "roberta-bpe", "mpt", "olmo", "jais", "exaone4", "trillion"),
    "granite-docling",
)
_LLAMA3_NAMES = (
    "llama3",
    "llama-v3",
    "llama-bpe",
    "falcon3",
    "falcon-h1",
    "pixtral",
    "midm-2.0",
    "lfm2",
    "jina-v5-nano",
)

_STAGES: dict[str, tuple[Stage, ...]] = {
    "default": (RegexStage(r"[\p{P}\$\+<=>\^~\|]+"), _GPT2, RegexStage(r"\p{N}+"), RegexStage("[0-9][0-9][0-9]")),
    **dict.fromkeys(_GPT2_NAMES, (_GPT2,)),
    **dict.fromkeys((*_LLAMA3_NAMES, "dbrx", "smaug-bpe", "glm4", "chatglm-bpe"), (_LLAMA3,)),
    **dict.fromkeys(
        ("qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "stablelm2", "megrez", "hunyuan", "solar-open", "grok-2"),
        (_QWEN2,),
    ),
    "qwen35": (_WORDS_WITH_MARKS,),
    **dict.fromkeys(
        ("starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"), _DIGITS_FIRST
    ),
    "falcon": (_FALCON_SIGNS, _GPT2, RegexStage("[0-9][0-9][0-9]")),
    "deepseek-llm": (
        RegexStage(r"[\r\n]"),
        _CASED,
        RegexStage("\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"),
        RegexStage(r"\s+$"),
        _EAST_ASIAN,
        RegexStage(r"\p{N}+"),
    ),
    "deepseek-coder": (
        RegexStage(r"[\r\n]"),
        RegexStage(r"\s?\p{L}+"),
        RegexStage(r"\s?\p{P}+"),
        _EAST_ASIAN,
        _ONE_DIGIT,
    ),
    **dict.fromkeys(("deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"), (_THREE_DIGITS, _KANA_AND_HAN, _DEEPSEEK3)),
    "spark2_5": (_THREE_DIGITS, _KANA_AND_HAN, _SPARK, _ONE_DIGIT),
    "afmoe": (_GROUPED_DIGITS, _ASIAN_BLOCKS, _DEEPSEEK3),
    "youtu": (
        RegexStage(
            "[\uac00-\ud7a3\u3131-\u318e]+|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c"
            "\u3001-\u303f\ufe30-\ufe4f]+|[\u3105-\u312f]+|[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
        ),
        _o200k_like(f"{_CONTRACTION}?"),
    ),
    "ufakzeka": (RegexStage(r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"),),
    "chameleon": (
        RegexStage("<sentinel:[0-9]+>"),
        RegexStage("(?:IMGIMG)(?:[A-I]{1,4})Z"),
        RegexStage(r"[\t\n]|    |  "),
        _ONE_DIGIT,
        RegexStage(r"[\p{P}!-/:-@\[-`{-~]"),
        _GPT2,
    ),
    **dict.fromkeys(("poro-chat", "bloom", "gpt3-finnish"), (_SENTENCE_SIGNS,)),
    "viking": (_SENTENCE_SIGNS, _ONE_DIGIT),
    "tekken": (_o200k_like(""),),
    **dict.fromkeys(("gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2", "granite-embed-multi-97m"), (_O200K,)),
    "tiny_aya": (RegexStage(r"\d{1,3}(?=(?:\d{3})*\b)"), _O200K),
    "cohere2moe": (RegexStage(r"\d{1,3}(?=(?:\d{3})*\b)"), _O200K),
    **dict.fromkeys(
        ("bailingmoe", "bailingmoe2", "llada-moe"),
        (
            RegexStage(
                r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)"
                r"|\s+"
            ),
        ),
    ),
    "seed-coder": (
        RegexStage(
            _CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
    ),
    "exaone-moe": (
        RegexStage(
            _CONTRACTION + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?"
            r"|\s*[\r\n]|\s+(?!\S)|\s+"
        ),
    ),
    "jais-2": (
        RegexStage(
            _CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)"
            r"|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)"
            r"|\s{1}"
        ),
    ),
    "minicpm5": (
        _THREE_DIGITS,
        RegexStage(
            _CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
    ),
    "laguna": (RegexStage(r"[^\n]+|\n+"), _QWEN2),
    "kimi-k2": (
        RegexStage(
            r"\p{Han}+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*"
            rf"[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}&&[^\p{{Han}}]]+{_CONTRACTION}?"
            r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
            rf"[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}&&[^\p{{Han}}]]*{_CONTRACTION}?"
            r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
    ),
    "superbpe": (RegexStage(r"\p{N}+"), RegexStage(r"(?=(\d{3})+(?!\d))")),
}

WHOLE_PIECES = frozenset((*_LLAMA3_NAMES, "minicpm5", "tekken", "granite-embed-multi-97m", "youtu"))
"""The names whose ``tokenizer.json`` has ``ignore_merges``."""

BEGIN_BY_DEFAULT = frozenset((*_LLAMA3_NAMES, "tekken", "chameleon"))
"""The names that stand for a beginning-of-text token in front where the file does not say."""


CHARACTER_SPLITS = frozenset(("gemma4", "granite-embed-multi-311m", "sarvam-moe"))
"""The names that stand for merging characters instead of bytes, in files whose model is ``gpt2``."""


def stages_of(pre: str) -> tuple[Stage, ...]:
    """The stages of a ``pre`` name; a :class:`TokenizerError` names one that is not known."""
    if pre not in _STAGES:
        raise TokenizerError(
            f"unknown pre-tokenizer {pre!r}; known: {', '.join(sorted((*_STAGES, *CHARACTER_SPLITS)))}"
        )
    return _STAGES[pre]
