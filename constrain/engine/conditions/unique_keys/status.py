"""What unique keys say of a text and of a token: in notes and words (parser/companions.py)."""

from constrain.engine.parser.companions import COMPANION_SHIFT, mark_bit

MAY_REPEAT, IS_RISKY, LOOK_AHEAD, MAY_RUN_OUT, NOT_FOLLOWED, NOT_READ = 1, 2, 4, 8, 16, 32
"""A note, a sum: a token may complete a key that was there; a token may hold such a key, quotes and all; here there may
be no key left that is not there; so it may be after some token; no key has ended yet, but a token may end one and go on
to where none is left; keys are followed, but the text here has yet to be read.
"""

KEY_ENDED, LIMITED_KEY_ENDED = mark_bit(0), mark_bit(1)
"""In a word, by the marks of lexemes: a key that must not come again ended; it was one of those that may run out."""

IS_REPEATED, HAS_TO_LOOK_AHEAD = 1 << COMPANION_SHIFT, 2 << COMPANION_SHIFT
"""In a word: a key came again, and the memory is of no more use; keys were read, and the note says LOOK_AHEAD."""
