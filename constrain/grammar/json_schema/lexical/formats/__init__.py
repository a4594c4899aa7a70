"""The values of the keyword ``format``."""
