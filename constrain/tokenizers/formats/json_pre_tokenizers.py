"""The pre-tokenizers of ``tokenizer.json`` as steps and stages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from constrain.errors import TokenizerError
from constrain.tokenizers.formats.json_parts import flag_of, parts_of, pattern_of, text_of, type_of
from constrain.tokenizers.normalizing.bert_text import BERT_STAGES
from constrain.tokenizers.normalizing.text_steps import MarkWords, Prepend, Replace, TextStep
from constrain.tokenizers.splitting.patterns import SplitPattern, by_name, find_regex
from constrain.tokenizers.splitting.stages import BEHAVIORS, ByteAlphabetStage, RegexStage, Stage

_KNOWN = "ByteLevel, Split, Digits, Punctuation, Whitespace, WhitespaceSplit, BertPreTokenizer, CharDelimiterSplit"
_WHITE_SPACE = RegexStage(r"\s", "Removed")
_SIGNS = r"[!-/:-@\[-`{-~\p{OlderPunctuation}]"


@dataclass
class PreTokenizer:
    """What a pre-tokenizer does.

    Attributes
    ----------
    steps : list of TextStep
        Changes of each stretch of text before it is cut.
    stages : list of stages
    byte_level : bool
        Pieces become characters that stand for bytes.
    prefix : bool
        A space is put in front of a stretch that does not begin with one.
    """

    steps: list[TextStep] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    byte_level: bool = False
    prefix: bool = False


def read_pre_tokenizer(entry: Any) -> PreTokenizer:
    """What ``entry`` asks for; a part that is not supported is a :class:`TokenizerError` that names it."""
    result = PreTokenizer()
    for part in parts_of(entry, "pretokenizers"):
        kind = type_of(part)
        if kind == "ByteLevel":
            _add_byte_level(part, result)
            continue
        if kind == "Metaspace":
            _add_metaspace(part, result)
            continue
        stages = _stages(part, kind)
        if result.byte_level:
            # From here on each byte is a character of the byte-level alphabet.
            result.stages += [ByteAlphabetStage(stage) for stage in stages]
        else:
            result.stages += stages
    return result


def _add_byte_level(entry: dict[str, Any], result: PreTokenizer) -> None:
    if result.byte_level:
        raise TokenizerError("pre_tokenizer: ByteLevel twice is not supported")
    result.byte_level = True
    if flag_of(entry, "add_prefix_space", True):
        if result.stages or result.steps:
            raise TokenizerError("pre_tokenizer ByteLevel with add_prefix_space is supported as the first part only")
        result.prefix = True
    if flag_of(entry, "use_regex", True):
        result.stages.append(by_name("gpt2"))


def _add_metaspace(entry: dict[str, Any], result: PreTokenizer) -> None:
    marker = text_of(entry, "replacement")
    if len(marker) != 1:
        raise TokenizerError("pre_tokenizer Metaspace: its replacement must be one character")
    scheme = entry.get("prepend_scheme")
    if scheme is None:
        scheme = "always" if flag_of(entry, "add_prefix_space", True) else "never"
    if scheme not in ("always", "first", "never"):
        raise TokenizerError(f"pre_tokenizer Metaspace: prepend_scheme {scheme!r} is not supported")
    if result.stages == [_WHITE_SPACE] and not result.steps and scheme == "always":
        # Marking each word is the same as turning white space into markers.
        result.stages.clear()
        result.steps.append(MarkWords(marker))
    elif result.stages or result.steps or result.byte_level:
        raise TokenizerError("pre_tokenizer Metaspace is supported as the first part or after WhitespaceSplit only")
    else:
        result.steps.append(Replace(" ", marker))
        if scheme != "never":
            result.steps.append(Prepend(marker, "always" if scheme == "always" else "first", unless_there=True))
    if flag_of(entry, "split", True):
        result.stages.append(RegexStage(_literal(marker), "MergedWithNext"))


def _stages(entry: Any, kind: str) -> list[SplitPattern | RegexStage]:
    if kind == "Split":
        pattern, is_regex = pattern_of(entry)
        behavior, invert = _behavior(entry), flag_of(entry, "invert", False)
        known = find_regex(pattern) if is_regex and behavior == "Isolated" and not invert else None
        if known is not None:
            return [known]
        stage = RegexStage(pattern if is_regex else _literal(pattern), behavior, invert, line_anchors=True)
        if is_regex:
            stage.check()  # only a regex can be wrong
        return [stage]
    if kind == "Digits":
        return [RegexStage(r"\p{N}", "Isolated" if flag_of(entry, "individual_digits", False) else "Contiguous")]
    if kind == "Punctuation":
        return [RegexStage(_SIGNS, _behavior(entry))]
    if kind == "Whitespace":
        return [RegexStage(r"\p{Word}+|[^\p{Word}\s]+", "Removed", invert=True)]
    if kind == "WhitespaceSplit":
        return [_WHITE_SPACE]
    if kind == "BertPreTokenizer":
        return [*BERT_STAGES]
    if kind == "CharDelimiterSplit":
        return [RegexStage(_literal(text_of(entry, "delimiter")), "Removed")]
    raise TokenizerError(f"pre_tokenizer {kind} is not supported; supported are {_KNOWN} and Metaspace")


def _behavior(entry: dict[str, Any]) -> str:
    behavior = entry.get("behavior", "Isolated")
    if behavior not in BEHAVIORS:
        raise TokenizerError(f"pre_tokenizer {type_of(entry)}: behavior {behavior!r} is not supported")
    return str(behavior)


def _literal(text: str) -> str:
    """A regex for a string."""
    if not text:
        raise TokenizerError("pre_tokenizer: an empty string to split at")
    return "".join(f"\\x{{{ord(char):x}}}" for char in text)


SPACE_PATTERN = _literal(" ")
"""The regex of a stage that splits at blanks."""
