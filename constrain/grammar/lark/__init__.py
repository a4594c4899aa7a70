"""The Lark front-end: a grammar in Lark's notation becomes an IR.

Lark's own reader turns the text into a tree (:mod:`.reader`); imports, ``%override`` and
``%extend`` are worked out over all files (:mod:`.definitions`); terminals become regular languages
(:mod:`.terminals`), rules become productions (:mod:`.rules`).  Lark's lexer and parsers are not
used: what a grammar means here is the plain context-free language of its rules, without longest
match and without priorities (see ``docs/grammars.md``).
"""

from constrain.grammar.lark.rules import from_lark

__all__ = ["from_lark"]
