"""The instructions of the matcher for split patterns (:mod:`constrain.tokenizers.splitting.machine`).

An instruction is a row ``[op, a, b, c]`` of ``code``; ``sets[i]`` has a bit for each class of code points, and a
character is in the set if the bit of its class is on.

======== ======================================================================================
MATCH    the pattern matches up to here
SET      one character in set a
RUN      b to c characters in set a (c < 0: no bound), as many as possible, given back one by one
FORK     try what follows, which can only begin with set c (c < 0: not known); then go on at b
FORK_LAZY  go on at b; then try what follows
JUMP     go on at a
AT       the assertion a holds
ATOMIC   up to END_ATOMIC; afterwards nothing in between is tried again
LOOK     what follows, up to END_LOOK, matches (b: does not match); go on at a without moving
BEHIND   the character before is in set a (b: is not, or there is none)
======== ======================================================================================
"""

from __future__ import annotations

MATCH, SET, RUN, FORK, FORK_LAZY, JUMP, AT, ATOMIC, END_ATOMIC, LOOK, END_LOOK, BEHIND = range(12)

AT_BEGIN, AT_END, AT_LAST, AT_LINE_BEGIN, AT_LINE_END, AT_WORD, AT_NO_WORD = range(7)
