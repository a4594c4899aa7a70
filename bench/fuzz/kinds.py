"""The kinds of campaigns, by name."""

from __future__ import annotations

import importlib

from bench.fuzz.protocol import Kind

NAMES = (
    *("regexes", "lark", "lexing", "schemas", "applicators", "few_values", "near_repeats", "python_types", "history"),
    *("accelerators", "shared_masks", "budgets", "limited_rules"),
    *("threads", "faults", "interrupts", "forks", "tokenizer_files", "damaged_files"),
)


def kind(name: str) -> Kind:
    """The kind of a name; its file is imported when it is asked for."""
    found: Kind = importlib.import_module(f"bench.fuzz.{name}").KIND
    return found
