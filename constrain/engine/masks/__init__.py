"""From a state to the set of tokens that may come next."""
