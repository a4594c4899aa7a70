"""Why a text fits a grammar or does not, for a person: how far it can be read, and what happens at each token."""

from __future__ import annotations

from constrain.explain.reading import Reading, read_text, without_last_line_break

__all__ = ["Reading", "read_text", "without_last_line_break"]
