"""From grammar text to a tree of it, by one pass over its tokens, with errors in one line.

The children of the tree are statements:

    rule [name, params [names], extras [attributes and number], expansions]
    term [name, attributes if there are any, expansions]
    ignore [expansions]   override [rule or term]   extend [rule or term]
    import [import_lib or import_rel [names], name_list [names] or another name if there is one]
    declare [names]   options [OPTIONS]

and within ``expansions``, by alternative:

    alias [alternative, nonterminal]   conditional [alternative, CONDITION]   conjunction [left, right]
    expansion [what stands in a row, each of the following]: a terminal, nonterminal or literal alone is only that,
        also in brackets
    expr [operand, OP or COUNTS]   expr [operand, TILDE, NUMBER, and a second NUMBER]   negation [operand]
    maybe [expansions]   literal [STRING or REGEXP]   range [STRING, STRING]   terminal [TERMINAL]   nonterminal [RULE]
    template_usage [nonterminal, arguments]   parametric [nonterminal, PARAMETER]
    special [SPECIAL]   block [BLOCK]   reference [REFERENCE]
"""

from __future__ import annotations

from dataclasses import dataclass, field

from constrain.grammar.lark.notation import NEW_LINE, OR_ON_NEW_LINE, tokens_of_text
from constrain.grammar.lark.source import Node, Source
from constrain.grammar.lark.tree import Token, Tree
from constrain.limits import spend

# Types of tokens, as a reader of an error message would call them; others are called by what they are, in quotes.
_NAMES = {
    "OP": '"*", "+", "?"',
    "COUNTS": '"{2,5}"',
    "TILDE": '"~"',
    "RULE_MODIFIERS": '"?" or "!"',
    "RULE": "a rule name",
    "TERMINAL": "a terminal name",
    "STRING": "a string",
    "REGEXP": "a regex",
    "NUMBER": "a number",
    "SPECIAL": "a token",
    "BLOCK": "%json",
    NEW_LINE: "the end of the line",
}

_LEAVES = {
    "RULE": "nonterminal",
    "TERMINAL": "terminal",
    "STRING": "literal",
    "REGEXP": "literal",
    "SPECIAL": "special",
    "BLOCK": "block",
    "REFERENCE": "reference",
}
_ALONE = {"terminal", "nonterminal", "literal"}
_CLOSING = {"(": ")", "[": "]"}
_ENDS = ("|", OR_ON_NEW_LINE, NEW_LINE, "->", "CONDITION", *_CLOSING.values())
_SPENT_AT_ONCE = 64
_LONGER = {"..", "PARAMETER", "{"}
_BEHIND = {"STRING": ("..",), "RULE": ("{",)}


def read(text: str, source: Source) -> Node:
    """The statements of a grammar, as the children of one tree.

    Raises
    ------
    GrammarError
        If the text is not in Lark's notation.
    """
    return _Parser(tokens_of_text(text, source), source).grammar()


@dataclass
class _Group:
    """Expansions that are being read: what they are within, and what there is of them.

    Attributes
    ----------
    opening : str
        ``(``, ``[``, or nothing for what is not in brackets.
    negations : int
        How many ``~`` stand before it.
    alternatives : list of Tree
    conjunction : Tree or None
        The alternative under way as far as the last ``&``.
    items : list of Tree
        What stands in a row behind that.
    """

    opening: str = ""
    negations: int = 0
    alternatives: list[Node] = field(default_factory=list)
    conjunction: Node | None = None
    items: list[Node] = field(default_factory=list)


class _Parser:
    def __init__(self, tokens: list[Token], source: Source) -> None:
        self._tokens = tokens
        self._source = source
        self._at = 0

    # -- tokens ----------------------------------------------------------------------------------

    def _peek(self) -> str:
        return self._tokens[self._at].type

    def _next(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _take(self, *types: str) -> Token:
        """The next token, which has to be one of some types."""
        if self._tokens[self._at].type not in types:
            raise self._unexpected(*types)
        return self._next()

    def _taken(self, kind: str) -> bool:
        """Whether the next token is of a type; then it is read."""
        found = self._tokens[self._at].type == kind
        self._at += found
        return found

    def _unexpected(self, *types: str) -> Exception:
        token = self._tokens[self._at]
        found = repr(str(token))
        if token.type in (NEW_LINE, OR_ON_NEW_LINE):
            found = "end of line" if token.type == NEW_LINE else "'|'"
        names = sorted(
            {
                _NAMES.get(each, each if each.startswith("%") else f'"{each}"')
                for each in types
                if each in _NAMES or not each.isupper()
            }
        )
        expected = ", ".join(names[:-1]) + " or " * (len(names) > 1) + names[-1]
        # What other notations have.
        hint = ""
        if str(token) == "'":
            hint = "; strings are written in double quotes"
        elif str(token) == ":" and self._at and str(self._tokens[self._at - 1]) == ":":
            hint = "; a rule is written with one colon here, and with ::= in GBNF and EBNF"
        return self._source.error(f"unexpected {found}, expected {expected}{hint}", token)

    # -- statements ------------------------------------------------------------------------------

    def grammar(self) -> Node:
        statements: list[Node | Token] = []
        while self._at < len(self._tokens):
            spend()
            if not self._taken(NEW_LINE):
                statements.append(self._statement())
        return Tree("start", statements)

    def _statement(self) -> Node:
        kind = self._peek()
        if kind in ("RULE", "TERMINAL", "RULE_MODIFIERS"):
            return self._definition()
        if kind == "%ignore":
            self._at += 1
            return Tree("ignore", [self._expansions()])
        if kind in ("%override", "%extend"):
            self._at += 1
            return Tree(kind[1:], [self._definition()])
        if kind == "%import":
            self._at += 1
            return self._import()
        if kind == "%declare":
            self._at += 1
            names = [self._take("RULE", "TERMINAL")]
            while self._peek() != NEW_LINE:
                names.append(self._take("RULE", "TERMINAL", NEW_LINE))
            self._at += 1
            return Tree("declare", names)
        if kind == "OPTIONS":
            token = self._next()
            self._take(NEW_LINE)
            return Tree("options", [token])
        statements = ("%ignore", "%override", "%extend", "%import", "%declare")
        raise self._unexpected("RULE_MODIFIERS", "RULE", "TERMINAL", *statements, NEW_LINE)

    def _definition(self) -> Node:
        if self._peek() == "TERMINAL":
            children: list[Node | Token] = [self._next()]
            if self._peek() == "ATTRIBUTES":
                children.append(self._next())
                self._take(":")
            else:
                self._priority()
            return Tree("term", [*children, self._expansions()])
        if self._taken("RULE_MODIFIERS"):
            name = self._take("RULE")
        else:
            name = self._take("RULE_MODIFIERS", "RULE", "TERMINAL")
        params: list[Token] = []
        extras: list[Token] = []
        if self._taken("{"):
            params.append(self._take("RULE"))
            while self._taken(","):
                params.append(self._take("RULE"))
            self._take(",", "}")
        for _ in range(2):
            if self._peek() in ("ATTRIBUTES", "PARAMETER") and all(each.type != self._peek() for each in extras):
                extras.append(self._next())
        self._priority(*() if params or extras else ("{",))
        return Tree("rule", [name, Tree("params", params), Tree("extras", extras), self._expansions()])

    def _priority(self, *others: str) -> None:
        """A priority if there is one, and the colon; ``others`` could have stood before."""
        if self._taken("."):
            self._take("NUMBER")
            self._take(":")
        else:
            self._take(*others, ".", ":")

    def _import(self) -> Node:
        kind = "import_rel" if self._taken(".") else "import_lib"
        names = [self._take("RULE", "TERMINAL")]
        while self._taken("."):
            names.append(self._take("RULE", "TERMINAL"))
        children: list[Node | Token] = [Tree(kind, names)]
        if self._taken("->"):
            children.append(self._take("RULE", "TERMINAL"))
            self._take(NEW_LINE)
        elif self._taken("("):
            listed = [self._take("RULE", "TERMINAL")]
            while self._taken(","):
                listed.append(self._take("RULE", "TERMINAL"))
            self._take(",", ")")
            children.append(Tree("name_list", listed))
            self._take(NEW_LINE)
        else:
            self._take(".", "->", "(", NEW_LINE)
        return Tree("import", children)

    # -- expansions ------------------------------------------------------------------------------

    def _expansions(self) -> Node:
        """What stands to the right of a colon, up to the end of the line; without recursion, as it may be deep."""
        group = _Group()
        outer: list[_Group] = []
        until_spent = _SPENT_AT_ONCE
        while True:
            until_spent -= 1
            if not until_spent:
                spend(_SPENT_AT_ONCE)
                until_spent = _SPENT_AT_ONCE
            kind = self._tokens[self._at].type
            if kind in _LEAVES:
                group.items.append(self._repeated(self._value()))
            elif kind in _CLOSING or kind == "_NOT":
                negations = 0
                while self._taken("_NOT"):
                    negations += 1
                if self._peek() in _CLOSING:
                    outer.append(group)
                    group = _Group(self._next().type, negations)
                else:
                    group.items.append(self._repeated(_negated(self._value(), negations)))
            elif kind == "&":
                self._at += 1
                group.conjunction, group.items = _alternative(group), []
            elif kind not in _ENDS:
                raise self._unexpected(*self._could_follow(group))
            else:
                self._end_alternative(group)
                kind = self._peek()
                if kind in ("|", OR_ON_NEW_LINE):
                    self._at += 1
                elif kind != _CLOSING.get(group.opening, NEW_LINE):
                    raise self._unexpected(*self._could_follow(group))
                else:
                    self._at += 1
                    tree = Tree("expansions", group.alternatives)
                    if not group.opening:
                        return tree
                    alone = group.alternatives[0]
                    if len(group.alternatives) == 1 and alone.data in _ALONE:
                        tree = alone
                    if kind == "]":
                        tree = Tree("maybe", [tree])
                    negations, group = group.negations, outer.pop()
                    group.items.append(self._repeated(_negated(tree, negations)))

    def _end_alternative(self, group: _Group) -> None:
        """Add what was read since the last ``|``, with a condition and an alias if they come next."""
        alternative = _alternative(group)
        if self._tokens[self._at].type in ("CONDITION", "->"):
            alternative = self._named(alternative)
        group.alternatives.append(alternative)
        group.conjunction, group.items = None, []

    def _named(self, alternative: Node) -> Node:
        if self._peek() == "CONDITION":
            alternative = Tree("conditional", [alternative, self._next()])
        if self._taken("->"):
            alternative = Tree("alias", [alternative, Tree("nonterminal", [self._take("RULE")])])
        return alternative

    def _value(self) -> Node:
        token = self._tokens[self._at]
        name = _LEAVES.get(token.type)
        if name is None:
            raise self._unexpected(*_LEAVES)
        self._at += 1
        leaf = Tree(name, [token])
        kind = self._tokens[self._at].type
        if kind not in _LONGER:
            return leaf
        if token.type == "STRING" and kind == "..":
            self._at += 1
            return Tree("range", [token, self._take("STRING")])
        if token.type == "RULE" and kind == "PARAMETER":
            return Tree("parametric", [leaf, self._next()])
        if token.type == "RULE" and kind == "{":
            self._at += 1
            arguments = [self._value()]
            while self._taken(","):
                arguments.append(self._value())
            self._take(",", "}")
            return Tree("template_usage", [leaf, *arguments])
        return leaf

    def _repeated(self, operand: Node) -> Node:
        """An operand with the counts that come next, if any do."""
        kind = self._tokens[self._at].type
        if kind in ("OP", "COUNTS"):
            return Tree("expr", [operand, self._next()])
        if kind != "TILDE":
            return operand
        children: list[Node | Token] = [operand, self._next(), self._take("NUMBER")]
        if self._taken(".."):
            children.append(self._take("NUMBER"))
        return Tree("expr", children)

    def _could_follow(self, group: _Group) -> tuple[str, ...]:
        """Types of tokens that could stand where the next one does."""
        before = self._tokens[self._at - 1].type
        common = ("|", _CLOSING.get(group.opening, NEW_LINE))
        if group.alternatives and not group.items and before not in ("|", OR_ON_NEW_LINE):
            return common
        found = (*_LEAVES, "(", "[", "&", "->", *common)
        if before in _LEAVES or before in _CLOSING.values():
            found += ("OP", "COUNTS", "TILDE", *_BEHIND.get(before, ()))
        return found


def _alternative(group: _Group) -> Node:
    """What was read since the last ``|``."""
    items = group.items
    # One thing is the same in a row and alone, and most grammars have many such.
    if len(items) == 1 and group.conjunction is None and type(items[0]) is Tree and items[0].data in _ALONE:
        return items[0]
    row = Tree("expansion", group.items)
    return row if group.conjunction is None else Tree("conjunction", [group.conjunction, row])


def _negated(tree: Node, count: int) -> Node:
    for _ in range(count):
        tree = Tree("negation", [tree])
    return tree
