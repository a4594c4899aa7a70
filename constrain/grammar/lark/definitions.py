"""All definitions of a Lark grammar: its own, what it imports, and what it overrides or extends.

Names work as they do in Lark.  An imported file is instantiated for the file that imports it: the
names asked for become names of the importer, every other name gets the file's path as a prefix.
So overriding an imported name also changes what the other names imported from that file refer to.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from constrain.errors import ConstrainError, GrammarError
from constrain.grammar.lark.attributes import Attribute, read_attributes
from constrain.grammar.lark.options import Conventions, read_options
from constrain.grammar.lark.reader import read
from constrain.grammar.lark.source import Node, Source, tokens_of
from constrain.grammar.lark.tree import Token, Tree
from constrain.limits import spend

# More files than this are not a grammar but files that import each other in ever new ways.
_MAX_IMPORTS = 500


@dataclass(frozen=True)
class Scope:
    """What the names in one file are called in the whole grammar.

    Attributes
    ----------
    prefix : str
        Put before every name that was not asked for; empty in the main text.
    aliases : mapping of str to str
        From names asked for to what the importer calls them.
    parent : Scope or None
        The importer's scope; None in the main text.
    """

    prefix: str = ""
    aliases: Mapping[str, str] = field(default_factory=dict)
    parent: Scope | None = None

    def resolve(self, name: str) -> str:
        """The name in the whole grammar of what this file calls ``name``."""
        if self.parent is None:
            return name
        scope: Scope | None = self
        while scope is not None:
            if scope.prefix:
                name = scope.aliases.get(name) or f"{scope.prefix}.{name}"
            scope = scope.parent
        return name


class Contents(NamedTuple):
    """What stands in a tree, in the order of the text.

    Attributes
    ----------
    kinds : frozenset of str
        What its nodes are.
    names : tuple of Token
        Of rules, templates, their parameters, and terminals that it uses.
    literals : tuple of Token
        Strings and regexes, without the ends of ranges.
    """

    kinds: frozenset[str]
    names: tuple[Token, ...]
    literals: tuple[Token, ...]


_ONE_LITERAL = frozenset(("expansions", "literal"))


@dataclass(frozen=True)
class Body:
    """The right-hand side of a definition, or of an ``%extend`` of it."""

    tree: Node
    source: Source
    scope: Scope

    @cached_property
    def contents(self) -> Contents:
        """What stands in it, looked for once."""
        alone = self.tree.children[0]
        if len(self.tree.children) == 1 and type(alone) is Tree and alone.data == "literal":
            # Most terminals are one string or regex.
            return Contents(_ONE_LITERAL, (), tuple(alone.children))  # type: ignore[arg-type]
        kinds: set[str] = set()
        names: list[Token] = []
        literals: list[Token] = []
        stack: list[Node | Token] = [self.tree]
        while stack:
            tree = stack.pop()
            if type(tree) is not Tree:
                continue
            kind = tree.data
            kinds.add(kind)
            if kind in ("terminal", "nonterminal"):
                names += tree.children  # type: ignore[arg-type]
            elif kind == "alias":
                # What it names is not used.
                stack.append(tree.children[0])
            elif kind == "literal":
                literals += tree.children  # type: ignore[arg-type]
            else:
                stack += tree.children[::-1]
        spend(len(names) + len(literals))
        return Contents(frozenset(kinds), tuple(names), tuple(literals))

    @cached_property
    def terminals(self) -> tuple[str, ...]:
        """The terminals that it names, as called in the whole grammar."""
        return tuple(dict.fromkeys(self.scope.resolve(each) for each in self.contents.names if each.type == "TERMINAL"))


@dataclass
class Definition:
    """A rule, template or terminal.

    Attributes
    ----------
    name : str
        As its own file calls it.
    token : Token
        Where it is defined.
    is_terminal : bool
    params : tuple of str
        Parameters of a template.
    has_number : bool
        Whether it is a rule with a number (:mod:`.parametric`).
    attributes : tuple of Attribute
    bodies : list of Body
        One, and one more for every ``%extend``; empty if it was only declared.
    source : Source
    """

    name: str
    token: Token
    is_terminal: bool
    params: tuple[str, ...]
    bodies: list[Body]
    source: Source
    has_number: bool = False
    attributes: tuple[Attribute, ...] = ()

    @property
    def kind(self) -> str:
        return "terminal" if self.is_terminal else "rule"

    def error(self, reason: str) -> GrammarError:
        """An error at the place of the definition."""
        return self.source.error(reason, self.token)


@dataclass
class Definitions:
    """A grammar with everything it imports.

    Attributes
    ----------
    by_name : dict of str to Definition
        By name in the whole grammar (:meth:`Scope.resolve`).
    ignored : list of Body
        What ``%ignore`` of the main text names; imported files do not ignore anything.
    missing : dict of str to GrammarError
        By name: what is wrong with an imported name that its file does not define, or only declares.  As in Lark, that
        matters only where the name is used.
    conventions : Conventions
        How it is read.
    """

    by_name: dict[str, Definition] = field(default_factory=dict)
    ignored: list[Body] = field(default_factory=list)
    missing: dict[str, GrammarError] = field(default_factory=dict)
    conventions: Conventions = field(default_factory=Conventions)


def collect(text: str, source: Source, conventions: Conventions | None = None) -> Definitions:
    """Read a grammar and everything it imports; ``conventions`` are those that it begins with.

    Raises
    ------
    GrammarError
        For a syntax error, an import that cannot be found, a name defined twice or never.
    """
    loader = _Loader()
    definitions = Definitions(conventions=conventions or Conventions())
    loader.load(read(text, source), source, Scope(), definitions)
    return definitions


def references(body: Body, params: tuple[str, ...] = ()) -> Iterator[tuple[str, Token]]:
    """The names a body uses, as called in the whole grammar, with the token of each use."""
    resolve = body.scope.resolve
    for token in body.contents.names:
        if token not in params:
            yield resolve(token), token


def attribute_references(definition: Definition) -> Iterator[tuple[str, Token]]:
    """The terminals that the attributes of a rule name, as called in the whole grammar, with the token of each."""
    for attribute in definition.attributes:
        if attribute.value is not None and attribute.value.type == "TERMINAL":
            yield definition.bodies[0].scope.resolve(attribute.value), attribute.value


class _Loader:
    def __init__(self) -> None:
        self._open: list[str] = []
        self._count = 0

    def load(self, tree: Node, source: Source, scope: Scope, into: Definitions) -> None:
        self._load_imports(tree, source, scope, into)
        for statement in tree.children:
            assert isinstance(statement, Tree)
            kind = statement.data
            if kind in ("rule", "term"):
                self._define(statement, source, scope, into)
            elif kind in ("override", "extend"):
                (inner,) = statement.children
                assert isinstance(inner, Tree)
                self._change(str(kind), inner, source, scope, into)
            elif kind == "ignore":
                if scope.parent is None:
                    (body,) = statement.children
                    assert isinstance(body, Tree)
                    into.ignored.append(Body(body, source, scope))
            elif kind == "options":
                into.conventions = read_options(statement.children[0], source, into.conventions)
            elif kind == "declare":
                self._declare(statement, source, scope, into)

    def _define(self, statement: Node, source: Source, scope: Scope, into: Definitions) -> None:
        definition = _definition(statement, source, scope)
        name = scope.resolve(definition.name)
        if (known := into.by_name.get(name)) is not None:
            line = f"line {known.token.place[0]}" if known.source == source else known.source.name
            raise source.error(
                f'the {definition.kind} "{definition.name}" is defined twice (first in {line})', definition.token
            )
        into.by_name[name] = definition

    def _change(self, kind: str, statement: Node, source: Source, scope: Scope, into: Definitions) -> None:
        definition = _definition(statement, source, scope)
        name = scope.resolve(definition.name)
        base = into.by_name.get(name)
        if base is None:
            raise source.error(
                f'%{kind} of the {definition.kind} "{definition.name}", which is not defined before', definition.token
            )
        if kind == "override":
            into.by_name[name] = definition
            return
        if base.params != definition.params:
            raise source.error(f'%extend of "{definition.name}" with other parameters', definition.token)
        if definition.attributes or (definition.has_number and not base.has_number):
            what = f"[{definition.attributes[0].name}]" if definition.attributes else "a number"
            raise source.error(f'%extend cannot give "{definition.name}" {what}; %override can', definition.token)
        if not base.bodies:
            raise source.error(f'%extend of "{definition.name}", which is only declared', definition.token)
        base.bodies.extend(definition.bodies)

    def _declare(self, statement: Node, source: Source, scope: Scope, into: Definitions) -> None:
        for token in tokens_of(statement):
            # A declaration does no harm as long as nothing uses it, which is checked later.
            is_terminal = token.type == "TERMINAL"
            into.by_name[scope.resolve(token)] = Definition(str(token), token, is_terminal, (), [], source)

    # -- imports ---------------------------------------------------------------------------------

    def _load_imports(self, tree: Node, source: Source, scope: Scope, into: Definitions) -> None:
        imports: dict[tuple[bool, tuple[str, ...]], dict[str, tuple[str, Token]]] = {}
        for statement in tree.children:
            if isinstance(statement, Tree) and statement.data == "import":
                key, names = _import_names(statement, source)
                known = imports.setdefault(key, {})
                for name, (alias, token) in names.items():
                    if known.get(name, (alias, token))[0] != alias:
                        raise source.error(f'"{name}" is imported twice under different names', token)
                    known[name] = (alias, token)
        for (is_relative, path), names in imports.items():
            self._import(is_relative, path, names, source, scope, into)

    def _import(
        self,
        is_relative: bool,
        path: tuple[str, ...],
        names: dict[str, tuple[str, Token]],
        source: Source,
        scope: Scope,
        into: Definitions,
    ) -> None:
        at = next(iter(names.values()))[1]
        imported, text, key = _open(is_relative, path, source, at)
        if key in self._open:
            raise source.error(f'"{".".join(path)}" imports itself', at)
        self._count += 1
        if self._count > _MAX_IMPORTS:
            raise source.error(f"more than {_MAX_IMPORTS} imports in all files together", at)
        self._open.append(key)
        prefix = ("." if is_relative else "") + ".".join(path)
        inner = Scope(prefix, {name: alias for name, (alias, _) in names.items()}, scope)
        found = Definitions()
        self.load(read(text, imported), imported, inner, found)
        if imported.folder is None:
            override = resources.files("constrain.grammar.lark") / "overrides" / f"{path[-1]}.lark"
            if len(path) == 1 and override.is_file():
                self.load(read(override.read_text(encoding="utf-8"), imported), imported, inner, found)
        self._open.pop()
        into.missing |= found.missing
        for name, (_, token) in names.items():
            if inner.resolve(name) not in found.by_name:
                error = source.error(f'"{".".join(path)}" does not define "{name}"', token)
                into.missing.setdefault(inner.resolve(name), error)
        asked_for = [inner.resolve(name) for name in names if inner.resolve(name) in found.by_name]
        for name in _reachable(found.by_name, asked_for):
            definition = found.by_name[name]
            if not definition.bodies:
                into.missing[name] = source.error(
                    f'what is imported here needs "{definition.name}", which {imported.name} only declares '
                    "(%declare is not supported)",
                    at,
                )
            if name in into.by_name:
                raise source.error(f'"{name}" is imported from several files', at)
            into.by_name[name] = definition


def _definition(statement: Node, source: Source, scope: Scope) -> Definition:
    attributes: tuple[Attribute, ...] = ()
    parameters: tuple[str, ...] = ()
    has_number = False
    if statement.data == "rule":
        name, params, extras, tree = statement.children
        assert isinstance(params, Tree)
        assert isinstance(extras, Tree)
        for token in tokens_of(params):
            if token in parameters:
                raise source.error(f'the parameter "{token}" occurs twice', token)
            parameters += (str(token),)
        for token in tokens_of(extras):
            if token.type == "ATTRIBUTES":
                attributes = read_attributes(token, source)
            elif str(token)[2:].strip() != "_":
                raise source.error(
                    'the number of a rule is called "_" where the rule is defined, as in "name::_ :"', token
                )
            else:
                has_number = True
        if has_number and parameters:
            raise source.error("a template cannot have a number", statement)
    else:
        name, tree = statement.children[0], statement.children[-1]
        for child in statement.children:
            if isinstance(child, Token) and child.type == "ATTRIBUTES":
                raise source.error("attributes can stand on rules only, not on terminals", child)
    assert isinstance(name, Token)
    assert isinstance(tree, Tree)
    bodies = [Body(tree, source, scope)]
    return Definition(str(name), name, statement.data == "term", parameters, bodies, source, has_number, attributes)


def _import_names(statement: Node, source: Source) -> tuple[tuple[bool, tuple[str, ...]], dict[str, tuple[str, Token]]]:
    """The file of an ``%import``, and the names asked for with what they are to be called."""
    path_node, *rest = statement.children
    assert isinstance(path_node, Tree)
    path = list(tokens_of(path_node))
    names: dict[str, tuple[str, Token]] = {}
    if rest and isinstance(rest[0], Tree):
        names = {str(token): (str(token), token) for token in tokens_of(rest[0])}
    else:
        token = path.pop()
        if not path:
            raise source.error(f'%import needs a grammar and a name in it, as in "%import {token}.NAME"', token)
        alias = rest[0] if rest else token
        assert isinstance(alias, Token)
        if alias.type != token.type:
            raise source.error(f"a {_kind(token)} cannot be imported as a {_kind(alias)}", alias)
        names[str(token)] = (str(alias), token)
    return (path_node.data == "import_rel", tuple(map(str, path))), names


def _kind(token: Token) -> str:
    return "terminal" if token.type == "TERMINAL" else "rule"


def _open(is_relative: bool, path: tuple[str, ...], source: Source, at: Token) -> tuple[Source, str, str]:
    """The text of an imported grammar, its source, and a key that tells files apart."""
    dotted = ".".join(path)
    if is_relative and source.folder is None:
        raise source.error(f'the relative import ".{dotted}" needs base_path, the folder to look in', at)
    folder = source.folder if is_relative else source.root
    file = Path(*path[:-1], f"{path[-1]}.lark")
    if folder is None or not (is_relative or os.path.isfile(folder / file)):
        of_lark = _grammars_of_lark() / file
        if not os.path.isfile(of_lark):
            raise source.error(
                f'Lark has no grammar "{dotted}" (it has common, python, unicode and lark); '
                f'for a file beside this one write "%import .{dotted}"',
                at,
            )
        return Source(f"lark's {dotted}.lark", None, source.root), of_lark.read_text(encoding="utf-8"), dotted
    found = folder / file
    try:
        text = found.read_text(encoding="utf-8")
    except OSError as error:
        raise source.error(f"cannot import {found}: {error.strerror}", at) from None
    except UnicodeDecodeError:
        raise source.error(f"cannot import {found}: it is not UTF-8 text", at) from None
    except ValueError as error:
        raise source.error(f"cannot import {str(found)!r}: {error}", at) from None
    return Source(found.name, found.parent, source.root), text, str(found.resolve())


@cache
def _grammars_of_lark() -> Path:
    """The folder of the grammars that Lark comes with; Lark is not imported for it, which takes long."""
    found = find_spec("lark")
    if found is None or found.origin is None:
        raise ConstrainError("lark is not installed, from which %import takes grammars: pip install lark")
    return Path(found.origin).parent / "grammars"


def _reachable(definitions: Mapping[str, Definition], names: list[str]) -> list[str]:
    """``names`` and all they refer to, as far as it is defined."""
    seen = dict.fromkeys(names)
    todo = list(names)
    while todo:
        definition = definitions[todo.pop()]
        for body in definition.bodies:
            for name, _ in (*references(body, definition.params), *attribute_references(definition)):
                if name in definitions and name not in seen:
                    seen[name] = None
                    todo.append(name)
    return list(seen)
