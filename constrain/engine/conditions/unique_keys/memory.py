"""The layout of the memory in which kernels keep the keys of a text (unique_keys/reading.py), and what they say of it.

It is like that of a compiled grammar (storage/tables.py): one array with scalars in its header and the addresses of a
few tables behind it.  It is a companion (parser/companions.py): its first two words are the address of the kernel that
reads a token along with the grammar, and what a token comes to where that kernel is not to be called.
"""

from __future__ import annotations

from constrain.engine.parser.companions import COMPANION_SHIFT, FIRST_SCALAR

# Scalars in the header: what is under way (one of the next three); how much of an escape has been read (0: none, 1: the
# backslash, 2 and more: u and so many digits); its value so far, and the high half of a surrogate pair before it;
# whether a string that begins now is a key; where the key under way begins; how much of each table is in use; how many
# of the keys are risky.  Then what others write here: the most bytes before a quote in a token; how many more pieces
# may be read before someone wants to have a look; and the status.
_SECOND, N_SCALARS = FIRST_SCALAR + 10, FIRST_SCALAR + 13
MODE, ESCAPE, CODE, HIGH, EXPECTS_KEY, BEGIN, DEPTH, N_KEYS, N_BYTES, N_RISKY = range(FIRST_SCALAR, _SECOND)
LONGEST_REST, CALLS_LEFT, STATUS = range(_SECOND, N_SCALARS)
OUTSIDE, IN_VALUE, IN_KEY = range(3)

# Tables: for each open bracket the number of keys before it (inverted for arrays); the keys of all open objects, as
# (begin, end, 1 for a risky one or 0) in the bytes; those bytes; and the risky contents as they lie in RISKY_BYTES.
FRAMES, KEYS, KEY_BYTES, RISKY_STARTS, RISKY_BYTES = range(5)

MAY_REPEAT, IS_RISKY, NOT_READ = 1, 2, 4
"""The status, a sum, which is the companion's note: a token may complete a key that was there; a token may hold such a
key, quotes and all; keys are followed, but the text here has yet to be read.
"""

IS_REPEATED = 1 << COMPANION_SHIFT
"""In a word: a key came again, and the memory is of no more use."""
