"""What the kernels and their callers agree on: statuses, and the places of the options."""

EMPTY_MASK = -1
"""Status: the mask allows no token."""
NOT_A_NUMBER = -2
"""Status: the logit of an allowed token is NaN or +inf."""
ALL_MINUS_INFINITY = -3
"""Status: every allowed token has the logit -inf."""
MASK_TOO_WIDE = -4
"""Status: the mask allows a token for which there is no logit."""
NOT_IN_THE_ROW = -5
"""Status: the history or the biases name a token for which there is no logit."""

TEMPERATURE, TOP_K, TOP_P, MIN_P, TYPICAL, REPETITION, FREQUENCY, PRESENCE, OPTIONS = range(9)
"""Places in the array of options, float64[OPTIONS]; 0 or 1 switches a step off, as in ``Sampler``."""
