"""Which pieces that are tokens become that token, whatever the merges say."""

from __future__ import annotations

NEVER, ALWAYS, NEWLINES = range(3)
"""``NEWLINES``: the pieces that begin with a newline."""
