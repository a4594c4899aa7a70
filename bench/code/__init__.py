"""Masks in grammars of programming languages, side by side with other engines."""
