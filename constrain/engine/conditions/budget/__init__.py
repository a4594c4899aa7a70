"""The condition that a text can be completed within a number of tokens."""
