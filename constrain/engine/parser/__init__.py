"""The Earley parser: rules, Earley sets, and configurations of sets and lexer states."""
