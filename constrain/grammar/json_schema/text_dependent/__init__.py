"""Rules that are made as a text is read."""
