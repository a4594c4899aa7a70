"""What the search for keys that come again says of a text (unique_keys/reading.py), beside storage/statuses.py."""

MAY_REPEAT, IS_RISKY, LOOK_AHEAD, MAY_RUN_OUT, NOT_FOLLOWED = 1, 2, 4, 8, 16
"""Status, a sum: a token may complete a key that was there; a token may hold such a key, quotes and all; here there may
be no key left that is not there; so it may be after some token; no key has ended yet, but a token may end one and go on
to where none is left.
"""
