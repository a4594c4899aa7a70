"""What can be wrong with names: checked for every definition before anything is built."""

from __future__ import annotations

from collections.abc import Collection

from constrain.grammar.lark.definitions import Body, Definition, Definitions, attribute_references, references
from constrain.grammar.lark.source import Node, subtrees_of
from constrain.grammar.lark.terminals import terminal_references
from constrain.grammar.lark.tree import Token, Tree


def validate(definitions: Definitions, produced: Collection[str] = (), named: Collection[str] = ()) -> None:
    """Check that all names are defined and used as what they are.

    Parameters
    ----------
    definitions : Definitions
    produced : collection of str
        Terminals that need only be declared.
    named : collection of str
        The grammars that ``@name`` may refer to.

    Raises
    ------
    GrammarError
        For an undefined name, a rule or alias inside a terminal, a recursive terminal, a template
        without its arguments or with too many, or a parameter named like a rule.
    """
    has_numbers = any(definition.has_number for definition in definitions.by_name.values())
    for definition in definitions.by_name.values():
        for body in definition.bodies:
            _check_names(body, definition, definitions, produced)
            if definition.is_terminal:
                _check_terminal_body(body, definition.name)
            else:
                _check_templates(body, definition, definitions, has_numbers, named)
    for body in definitions.ignored:
        ignore = Definition("%ignore", Token("TERMINAL", "%ignore"), True, (), [body], body.source)
        _check_names(body, ignore, definitions, ())
        _check_terminal_body(body, "%ignore")
    _check_recursion(definitions)


def _check_names(body: Body, definition: Definition, definitions: Definitions, produced: Collection[str]) -> None:
    for name, token in (*references(body, definition.params), *attribute_references(definition)):
        declared = definitions.by_name.get(name)
        if declared is None:
            if name in definitions.missing:
                raise definitions.missing[name]
            kind = "terminal" if token.type == "TERMINAL" else "rule"
            raise body.source.error(f'the {kind} "{token}" is not defined', token)
        if not declared.bodies and name not in produced:
            if name in definitions.missing:
                raise definitions.missing[name]
            raise declared.error(
                f'%declare is not supported: "{declared.name}" would come from outside of the grammar, '
                "so there is no text it could stand for"
            )


_NOT_IN_TERMINALS = {
    *("nonterminal", "template_usage", "alias", "special", "block", "reference", "parametric", "conditional")
}


def _check_terminal_body(body: Body, name: str) -> None:
    if _NOT_IN_TERMINALS.isdisjoint(body.contents.kinds):
        return
    for tree in subtrees_of(body.tree):
        if tree.data in ("nonterminal", "template_usage"):
            raise body.source.error(f'a terminal cannot contain a rule ("{name}" must be regular)', tree)
        if tree.data == "alias":
            raise body.source.error("an alias (->) cannot stand in a terminal", tree)
        if tree.data == "special":
            raise body.source.error("a token can stand in rules only, not in a terminal", tree)
        if tree.data == "block" and str(tree.children[0]) != "%regex":
            raise body.source.error(f"{tree.children[0]} can stand in rules only, not in a terminal", tree)
        if tree.data in ("reference", "parametric"):
            raise body.source.error(f'a terminal cannot contain a rule ("{name}" must be regular)', tree)
        if tree.data == "conditional":
            raise body.source.error("%if can stand in a rule with a number only", tree)


# What has more to it than its name.
_CHECKED = {"template_usage", "reference", "conditional", "parametric"}


def _check_templates(
    body: Body, definition: Definition, definitions: Definitions, has_numbers: bool, named: Collection[str]
) -> None:
    for parameter in definition.params:
        if body.scope.resolve(parameter) in definitions.by_name:
            raise body.source.error(
                f'the parameter "{parameter}" of "{definition.name}" has the name of a rule', definition.token
            )
    if not has_numbers and _CHECKED.isdisjoint(body.contents.kinds):
        return
    for tree in subtrees_of(body.tree):
        _check_rule_part(tree, body, definition, definitions)
        if tree.data == "reference":
            _check_reference(tree, body, named)
        if tree.data != "template_usage":
            continue
        name = tree.children[0]
        assert isinstance(name, Tree)
        token = name.children[0]
        assert isinstance(token, Token)
        if token in definition.params:
            continue
        wanted = len(definitions.by_name[body.scope.resolve(token)].params)
        given = len(tree.children) - 1
        if wanted != given:
            takes = f"takes {wanted} argument{'s' * (wanted != 1)}, not {given}" if wanted else "is not a template"
            raise body.source.error(f'"{token}" {takes}', token)


def _check_reference(tree: Node, body: Body, named: Collection[str]) -> None:
    token = str(tree.children[0])
    if token[1:] not in named:
        listed = ", ".join(f"@{name}" for name in list(named)[:8]) + (", ..." if len(named) > 8 else "")
        raise body.source.error(f"there is no grammar {token} beside this one (there are: {listed or 'none'})", tree)


def _check_rule_part(tree: Node, body: Body, definition: Definition, definitions: Definitions) -> None:
    """Check what may stand in some rules and not in others."""
    if tree.data == "conditional" and not definition.has_number:
        raise body.source.error('%if can stand in a rule with a number only, as in "name::_ :"', tree)
    if tree.data == "parametric":
        name = tree.children[0]
        assert isinstance(name, Tree)
        token = name.children[0]
        assert isinstance(token, Token)
        known = definitions.by_name.get(body.scope.resolve(token))
        if known is not None and not known.has_number:
            raise body.source.error(f'the rule "{token}" has no number (its definition would say "{token}::_")', token)
        return
    # What an alias names is no rule.
    for child in tree.children[:1] if tree.data == "alias" else tree.children:
        if isinstance(child, Tree) and child.data == "nonterminal":
            token = child.children[0]
            assert isinstance(token, Token)
            known = definitions.by_name.get(body.scope.resolve(token))
            if token not in definition.params and known is not None and known.has_number:
                raise body.source.error(f'the rule "{token}" needs a number, as in "{token}::0"', token)


def _check_recursion(definitions: Definitions) -> None:
    """Follow the references between terminals depth first; one back to an open terminal is a circle."""
    finished: set[str] = set()
    for root, definition in definitions.by_name.items():
        if not definition.is_terminal or root in finished:
            continue
        open_names = {root}
        todo = [(root, iter(terminal_references(definition)))]
        while todo:
            name, remaining = todo[-1]
            other = next(remaining, None)
            if other is None:
                open_names.discard(name)
                finished.add(name)
                todo.pop()
            elif other in open_names:
                raise _recursion_error(definitions.by_name[name], other, definitions)
            elif other not in finished:
                open_names.add(other)
                todo.append((other, iter(terminal_references(definitions.by_name[other]))))


def _recursion_error(definition: Definition, name: str, definitions: Definitions) -> Exception:
    for body in definition.bodies:
        for found, token in references(body):
            if found == name:
                return body.source.error(
                    f'the terminal "{definitions.by_name[name].name}" refers to itself here '
                    "(only rules can be recursive)",
                    token,
                )
    raise AssertionError(name)
