"""How a text is cut into pieces."""
