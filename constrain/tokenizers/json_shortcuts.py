"""Parts of a ``tokenizer.json`` that come to less than they say, so that a text takes one kernel call."""

from __future__ import annotations

from collections.abc import Sequence

from constrain.tokenizers.charsmap import Charsmap, SpaceOptions
from constrain.tokenizers.json_pre_tokenizers import SPACE_PATTERN
from constrain.tokenizers.piece_model import MARKER
from constrain.tokenizers.split_stages import RegexStage, Stage
from constrain.tokenizers.text_steps import Prepend, Replace, TextStep

_MARKED = Replace(" ", MARKER)


def simplified(steps: Sequence[TextStep], stages: Sequence[Stage]) -> tuple[tuple[TextStep, ...], tuple[Stage, ...]]:
    """Steps and stages that do the same.

    Blanks that become markers, with one in front or without, are what SentencePiece's normalization does without rules.
    Behind it no blank is left to split at, which Gemma's files ask for all the same.
    """
    if list(steps) not in ([_MARKED], [Prepend(MARKER), _MARKED]):
        return tuple(steps), tuple(stages)
    spaces = SpaceOptions(add_dummy_prefix=len(steps) == 2, remove_extra=False)
    left = [stage for stage in stages if not (isinstance(stage, RegexStage) and _splits_at_blanks(stage))]
    return (Charsmap(b"", spaces),), tuple(left)


def _splits_at_blanks(stage: RegexStage) -> bool:
    return stage.regex == SPACE_PATTERN and not stage.invert
