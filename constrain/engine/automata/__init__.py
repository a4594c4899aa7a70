"""Automata over bytes: expressions and their derivatives, and the lexer states made of them."""
