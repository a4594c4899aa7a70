"""What BERT does to text before WordPiece: clean, lower case without accents, and cut at white space and signs."""

from __future__ import annotations

from constrain.tokenizers.normalizing.normal_forms import normalize
from constrain.tokenizers.normalizing.text_steps import CharTable, is_white_space
from constrain.tokenizers.splitting.stages import RegexStage
from constrain.tokenizers.splitting.unicode_older import older_combining_marks, older_controls, older_marks

BERT_STAGES = (RegexStage(r"\s", "Removed"), RegexStage(r"[!-/:-@\[-`{-~\p{OlderPunctuation}]"))
"""White space is removed, and each sign is a piece of its own."""

_CHINESE = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F)),
    # The last but two should begin at U+2B820; this is what the reference has.
    *((0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)


class BertText(CharTable):
    """BERT's normalization, character by character.

    ``clean``: controls are removed and white space becomes spaces; ``chinese``: spaces around ideographs.
    """

    def __init__(
        self, clean: bool = True, chinese: bool = True, strip_accents: bool = True, lowercase: bool = True
    ) -> None:
        super().__init__()
        self._options = (clean, chinese, strip_accents, lowercase)

    def replacement(self, char: str) -> str:
        clean, chinese, strip_accents, lowercase = self._options
        if clean:
            if char in "\0\ufffd" or (char in older_controls() and char not in "\t\n\r"):
                return ""
            if is_white_space(char):
                return " "
        if chinese and any(first <= ord(char) <= last for first, last in _CHINESE):
            char = f" {char} "
        if strip_accents:
            char = "".join(part for part in normalize("NFD", char) if part not in older_marks())
        return "".join(part.lower() for part in char) if lowercase else char

    def _arguments(self) -> tuple[object, ...]:
        return self._options


class StripAccents(CharTable):
    """Removes marks of any kind, those that take space too."""

    def replacement(self, char: str) -> str:
        return "" if char in older_combining_marks() else char


class Lowercase(CharTable):
    """Lower case, character by character."""

    def replacement(self, char: str) -> str:
        return char.lower()
