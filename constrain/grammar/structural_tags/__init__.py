"""Structural tags: XGrammar's JSON notation of free text, tags, schemas and patterns that follow on each other."""
