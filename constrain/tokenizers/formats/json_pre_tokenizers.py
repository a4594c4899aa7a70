"""The pre-tokenizers of ``tokenizer.json`` as steps and stages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from constrain.errors import TokenizerError
from constrain.tokenizers.formats.json_parts import flag_of, parts_of, pattern_of, text_of, type_of
from constrain.tokenizers.normalizing.bert_text import BERT_STAGES
from constrain.tokenizers.normalizing.text_steps import ByteAlphabet, MarkWords, Prepend, Replace, Steps, TextStep
from constrain.tokenizers.splitting.patterns import SplitPattern, by_name, find_regex
from constrain.tokenizers.splitting.regex import may_be_empty, parse_split
from constrain.tokenizers.splitting.stages import (
    BEHAVIORS,
    ByteAlphabetStage,
    LengthStage,
    PrefixStage,
    RegexStage,
    RewriteStage,
    Stage,
)

_KNOWN = (
    "ByteLevel, Split, Digits, Punctuation, Whitespace, WhitespaceSplit, BertPreTokenizer, CharDelimiterSplit,"
    " FixedLength"
)
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
    unusual : bool
        A part stands where the other attributes cannot say so: only :func:`general_stages` does what the file asks for.
    """

    steps: list[TextStep] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    byte_level: bool = False
    prefix: bool = False
    unusual: bool = False


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
            result.unusual |= any(isinstance(stage, LengthStage) for stage in stages)
            result.stages += [ByteAlphabetStage(stage) for stage in stages if not isinstance(stage, LengthStage)]
        else:
            result.stages += stages
    return result


def _add_byte_level(entry: dict[str, Any], result: PreTokenizer) -> None:
    result.unusual |= result.byte_level or bool(result.steps)
    result.byte_level = True
    if flag_of(entry, "add_prefix_space", True):
        if result.stages:
            result.stages.append(PrefixStage())
        else:
            result.prefix = True
    if flag_of(entry, "use_regex", True):
        result.stages.append(by_name("gpt2"))


def general_stages(entry: Any) -> tuple[Stage, ...]:
    """The same as stages alone, part by part: exact for all parts in any order, but slower where text is rewritten."""
    stages: list[Stage] = []
    for part in parts_of(entry, "pretokenizers"):
        kind = type_of(part)
        if kind == "ByteLevel":
            if flag_of(part, "add_prefix_space", True):
                stages.append(PrefixStage())
            if flag_of(part, "use_regex", True):
                stages.append(by_name("gpt2"))
            stages.append(RewriteStage(ByteAlphabet()))
        elif kind == "Metaspace":
            marker, scheme = _marker_and_scheme(part)
            stages.append(RewriteStage(Steps(_marking(marker, scheme))))
            if flag_of(part, "split", True):
                stages.append(RegexStage(_literal(marker), "MergedWithNext"))
        else:
            stages += _stages(part, kind)
    return tuple(stages)


def _marker_and_scheme(entry: dict[str, Any]) -> tuple[str, str]:
    marker = text_of(entry, "replacement")
    if len(marker) != 1:
        raise TokenizerError("pre_tokenizer Metaspace: its replacement must be one character")
    scheme = entry.get("prepend_scheme")
    if scheme is None:
        scheme = "always" if flag_of(entry, "add_prefix_space", True) else "never"
    if scheme not in ("always", "first", "never"):
        raise TokenizerError(f"pre_tokenizer Metaspace: prepend_scheme {scheme!r} is not supported")
    return marker, scheme


def _marking(marker: str, scheme: str) -> tuple[TextStep, ...]:
    """What a Metaspace changes."""
    if scheme == "never":
        return (Replace(" ", marker),)
    return Replace(" ", marker), Prepend(marker, "always" if scheme == "always" else "first", unless_there=True)


def _add_metaspace(entry: dict[str, Any], result: PreTokenizer) -> None:
    marker, scheme = _marker_and_scheme(entry)
    cuts = flag_of(entry, "split", True)
    if result.stages == [_WHITE_SPACE] and not result.steps and scheme == "always" and cuts:
        # Marking each word is the same as turning white space into markers.
        result.stages.clear()
        result.steps.append(MarkWords(marker))
    else:
        result.unusual |= bool(result.stages or result.steps or result.byte_level)
        result.steps += _marking(marker, scheme)
    if cuts:
        result.stages.append(RegexStage(_literal(marker), "MergedWithNext"))


def _stages(entry: Any, kind: str) -> list[SplitPattern | RegexStage | LengthStage]:
    if kind == "Split":
        pattern, is_regex = pattern_of(entry)
        behavior, invert = _behavior(entry), flag_of(entry, "invert", False)
        known = find_regex(pattern) if is_regex and behavior == "Isolated" and not invert else None
        if known is not None:
            return [known]
        stage = RegexStage(pattern if is_regex else _literal(pattern), behavior, invert, oniguruma=True)
        if is_regex:
            stage.check()  # only a regex can be wrong
            if behavior == "Contiguous" and may_be_empty(parse_split(pattern, True)):
                raise TokenizerError(
                    f"pre_tokenizer Split: behavior Contiguous is not supported with the regex {pattern!r}, which may"
                    " match nothing"
                )
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
    if kind == "FixedLength":
        length = entry.get("length", 5)
        if type(length) is not int or length < 1:
            raise TokenizerError("pre_tokenizer FixedLength: its length must be an integer from 1 up")
        return [LengthStage(length)]
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
