"""Structural tags: XGrammar's JSON notation of free text, tags, schemas and patterns that follow on each other."""

from constrain.grammar.structural_tags.front_end import from_structural_tag

__all__ = ["from_structural_tag"]
