"""The normalizers of ``tokenizer.json`` as steps."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from constrain.errors import TokenizerError
from constrain.tokenizers.formats.json_parts import flag_of, parts_of, pattern_of, text_of, type_of
from constrain.tokenizers.normalizing.bert_text import BertText, Lowercase, StripAccents
from constrain.tokenizers.normalizing.nmt_text import NmtText
from constrain.tokenizers.normalizing.precompiled import Precompiled
from constrain.tokenizers.normalizing.text_steps import (
    ByteAlphabet,
    Form,
    Prepend,
    Replace,
    ReplaceRegex,
    Strip,
    TextStep,
)
from constrain.tokenizers.splitting.regex import may_be_empty, parse_split
from constrain.tokenizers.splitting.stages import RegexStage

_LONGEST_PREFIX = 1_000
"""It is put before each stretch between added tokens, of which a text may have as many as characters."""

_KNOWN = (
    "NFC, NFD, NFKC, NFKD, BertNormalizer, Lowercase, StripAccents, Strip, Prepend, Replace, Precompiled, Nmt and"
    " ByteLevel"
)


def steps_of_normalizer(entry: Any) -> tuple[TextStep, ...]:
    """The steps; a normalizer that is not supported is a :class:`TokenizerError` that names it."""
    return tuple(step for part in parts_of(entry, "normalizers") for step in _steps(part))


def _steps(entry: Any) -> list[TextStep]:
    kind = type_of(entry)
    if kind in ("NFC", "NFD", "NFKC", "NFKD"):
        return [Form(kind)]  # type: ignore[arg-type]
    if kind == "Lowercase":
        return [Lowercase()]
    if kind == "StripAccents":
        return [StripAccents()]
    if kind == "Strip":
        return [Strip(flag_of(entry, "strip_left", True), flag_of(entry, "strip_right", True))]
    if kind == "Prepend":
        content = text_of(entry, "prepend")
        if len(content) > _LONGEST_PREFIX:
            raise TokenizerError(f"Prepend: {len(content):,} characters; the limit is {_LONGEST_PREFIX:,}")
        return [Prepend(content)]
    if kind == "BertNormalizer":
        lowercase = flag_of(entry, "lowercase", True)
        strip = lowercase if entry.get("strip_accents") is None else flag_of(entry, "strip_accents", lowercase)
        clean, chinese = flag_of(entry, "clean_text", True), flag_of(entry, "handle_chinese_chars", True)
        return [BertText(clean, chinese, strip, lowercase)]
    if kind == "Replace":
        pattern, is_regex = pattern_of(entry)
        content = text_of(entry, "content")
        if not is_regex:
            return [Replace(pattern, content)]
        RegexStage(pattern, oniguruma=True).check()
        if may_be_empty(parse_split(pattern, True)):
            raise TokenizerError(
                f"normalizer Replace is not supported with the regex {pattern!r}, which may match nothing"
            )
        return [ReplaceRegex(pattern, content)]
    if kind == "Nmt":
        return [NmtText()]
    if kind == "ByteLevel":
        return [ByteAlphabet()]
    if kind == "Precompiled":
        return _precompiled(entry)
    raise TokenizerError(f"normalizer {kind} is not supported; supported are {_KNOWN}")


def _precompiled(entry: dict[str, Any]) -> list[TextStep]:
    try:
        compiled = base64.b64decode(entry.get("precompiled_charsmap") or "", validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise TokenizerError("normalizer Precompiled: precompiled_charsmap is not base 64") from None
    return [Precompiled(compiled)] if compiled else []
