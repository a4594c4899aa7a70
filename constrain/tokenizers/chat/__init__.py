"""Chat templates, and the special tokens that they need."""
