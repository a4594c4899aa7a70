"""What unique keys say of a text and of a token: in notes and words (parser/companions.py)."""

from constrain.engine.parser.companions import COMPANION_SHIFT

MAY_REPEAT, IS_RISKY, NOT_READ = 1, 2, 4
"""A note, a sum: a token may complete a key that was there; a token may hold such a key, quotes and all; keys are
followed, but the text here has yet to be read.
"""

IS_REPEATED = 1 << COMPANION_SHIFT
"""In a word: a key came again, and the memory is of no more use."""
