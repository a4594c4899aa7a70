"""Recognises parts of a ``tokenizer.json`` that do the same as fewer parts, so that a text takes one kernel call."""

from __future__ import annotations

from collections.abc import Sequence

from constrain.tokenizers.formats.json_pre_tokenizers import SPACE_PATTERN
from constrain.tokenizers.models.piece_model import MARKER
from constrain.tokenizers.normalizing.charsmap import Charsmap, SpaceOptions
from constrain.tokenizers.normalizing.normal_forms import Spans
from constrain.tokenizers.normalizing.text_steps import Prepend, Replace, TextStep, align_steps
from constrain.tokenizers.splitting.stages import RegexStage, Stage

_MARKED = Replace(" ", MARKER)


def simplified(steps: Sequence[TextStep], stages: Sequence[Stage]) -> tuple[tuple[TextStep, ...], tuple[Stage, ...]]:
    """Steps and stages that do the same.

    Replacing blanks by markers, with or without a marker in front, is SentencePiece's normalization without rules.
    After it no blank is left, so the split at blanks that Gemma's files ask for does nothing.
    """
    if list(steps) not in ([_MARKED], [Prepend(MARKER), _MARKED]):
        return tuple(steps), tuple(stages)
    left = [stage for stage in stages if not (isinstance(stage, RegexStage) and _splits_at_blanks(stage))]
    return (MarkedBlanks(len(steps) == 2),), tuple(left)


class MarkedBlanks(Charsmap):
    """Blanks become markers; ``prefix``: one is put in front."""

    def __init__(self, prefix: bool) -> None:
        super().__init__(b"", SpaceOptions(add_dummy_prefix=prefix, remove_extra=False))
        self._prefix = prefix

    def align(self, text: str, first: bool) -> tuple[str, Spans]:
        # Offsets are those of the parts of the file, not SentencePiece's.
        return align_steps((Prepend(MARKER), _MARKED) if self._prefix else (_MARKED,), text, first)

    def __reduce__(self) -> tuple[type[Charsmap], tuple[object, ...]]:
        return MarkedBlanks, (self._prefix,)


def _splits_at_blanks(stage: RegexStage) -> bool:
    return stage.regex == SPACE_PATTERN and not stage.invert
