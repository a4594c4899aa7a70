"""The notation of grammars: Lark's own, and what llguidance and XGrammar have added to it.

Lark reads grammars with an LALR parser of its own.  Here its tables are extended:

    name[lazy, suffix="<end>"]: ...      attributes of a rule
    name::_ : a name::incr(_) %if lt(_, 6)      a rule with a number, and a condition on it
    a{2,5}   a & b   ~a                  counts; intersection and complement in terminals
    <|eot_id|>   <[128009]>              tokens
    %json {...}   %regex {...}   %lark {...}      other notations inside, whose content blocks.py has cut out
    %llguidance {...}                    options
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, cast

from lark import load_grammar
from lark.common import LexerConf, ParserConf
from lark.grammar import NonTerminal, Rule, RuleOptions, Symbol, Terminal
from lark.lexer import PatternRE, TerminalDef
from lark.parse_tree_builder import ParseTreeBuilder
from lark.parser_frontends import ParsingFrontend
from lark.tree import SlottedTree

from constrain.errors import ConstrainError

BLANK = "\x1f"
"""Stands for the line ends in what was cut out of a text, so that a statement goes on over them."""

SPECIAL = re.compile(r"<(?:\[[^\]<>\n]*\]|[^<>\s\[][^<>\s]*)>")
"""A token, by its name or its id."""

# A string, a regex, or anything else but a closing bracket: so attributes are told from the optional parts of a rule.
_IN_BRACKETS = r'(?:"(?:\\.|[^"\\\n])*"|/(?:\\.|[^/\\\n])+/|[^\]\[\n"/])*'

_TERMINALS = {
    # Names may hold "-", which no other notation does.
    "RULE": r"_?[a-z](?:[_a-z0-9]|-(?!>))*",
    "TERMINAL": r"_?[A-Z](?:[_A-Z0-9]|-(?!>))*",
    "WS": rf"[ \t{BLANK}]+",
    # Before what can be negated it is "not", else it counts.
    "TILDE": r"~(?![ \t]*[\"/(A-Z_~])",
    "_NOT": r"~(?=[ \t]*[\"/(A-Z_~])",
    "_AND": "&",
    "COUNTS": r"\{[ \t]*(?:\d+[ \t]*(?:,[ \t]*\d*)?|,[ \t]*\d+)[ \t]*\}",
    "ATTRIBUTES": rf"\[{_IN_BRACKETS}\](?=[ \t]*(?:::[ \t]*_[ \t]*)?(?:\.[ \t]*[+-]?\d+[ \t]*)?:)",
    "PARAMETER": r"::[ \t]*(?:\w+[ \t]*\((?:[^()\n]|\([^()\n]*\))*\)|\w+)",
    "CONDITION": r"%if\b(?:[^\n|#/]|/(?!/))*",
    "SPECIAL": SPECIAL.pattern,
    "BLOCK": r"%(?:json|regex|lark)\b",
    "OPTIONS": r"%(?:llguidance|grammar_options)\b",
    "REFERENCE": r"@\w[\w-]*",
}

_RULES = {
    "_item": ["options"],
    "options": ["OPTIONS _NL"],
    "rule_extras": ["", "ATTRIBUTES", "PARAMETER", "ATTRIBUTES PARAMETER", "PARAMETER ATTRIBUTES"],
    "?conditional": ["conjunction", "conjunction CONDITION"],
    "?conjunction": ["expansion", "conjunction _AND expansion"],
    "?expr": ["atom COUNTS"],
    "?atom": ["negation"],
    "negation": ["_NOT atom"],
    "value": ["special", "block", "reference", "parametric"],
    "special": ["SPECIAL"],
    "block": ["BLOCK"],
    "reference": ["REFERENCE"],
    "parametric": ["nonterminal PARAMETER"],
    "term": ["TERMINAL ATTRIBUTES _COLON expansions _NL"],
}

_CHANGED = {
    "rule": ["rule_modifiers RULE template_params rule_extras priority _COLON expansions _NL"],
    "?alias": ["conditional _TO nonterminal", "conditional"],
}


@cache
def grammar_parser() -> Any:
    """The parser of grammars, which is made as Lark makes its own.

    Raises
    ------
    ConstrainError
        If this version of Lark has no tables where they are expected.
    """
    try:
        terminals: dict[str, str] = {**cast(Any, load_grammar).TERMINALS, **_TERMINALS}
        lark_rules: dict[str, list[str]] = cast(Any, load_grammar).RULES
    except AttributeError:
        raise ConstrainError(
            "this version of lark has no parser for grammars where it is expected (known to work: lark 1.2 and 1.3)"
        ) from None
    all_rules = {name: [*lark_rules.get(name, ()), *_RULES.get(name, ())] for name in {**lark_rules, **_RULES}}
    all_rules |= _CHANGED
    rules = [
        Rule(
            NonTerminal(name.lstrip("?")),
            [_symbol(each) for each in expansion.split()],
            order,
            None,
            RuleOptions(expand1=name.startswith("?")),
        )
        for name, expansions in all_rules.items()
        for order, expansion in enumerate(expansions)
    ]
    callbacks = cast(Any, ParseTreeBuilder)(rules, SlottedTree).create_callback()
    definitions = [TerminalDef(name, PatternRE(value)) for name, value in terminals.items()]
    lexer = LexerConf(definitions, cast(Any, re), ["WS", "COMMENT", "BACKSLASH"])
    parser = ParserConf(rules, callbacks, ["start"])
    lexer.lexer_type = "basic"
    parser.parser_type = "lalr"
    return ParsingFrontend(lexer, parser, None)


def _symbol(name: str) -> Symbol:
    return Terminal(name, filter_out=name.startswith("_")) if name.lstrip("_").isupper() else NonTerminal(name)
