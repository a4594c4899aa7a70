"""Modules in Python: imports, classes with methods, functions, and the writing-out of the grammar's levels."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from random import Random

from bench.code.notation import with_blanks
from bench.code.words import Words, constant, pascal, snake, words_of

LEVELS = 6
"""How deep blocks may be nested: a function in a class is at 1, its body at 2."""

_TAKEN = frozenset(
    words_of(
        """
        and as assert async await break class continue def del elif else except False finally for from global if import
        in is lambda None nonlocal not or pass raise return True try while with yield print len range sorted list dict
        set str int float max min sum any all isinstance enumerate zip open self cls match case type
        """
    )
)
_TYPES = ("int", "str", "float", "bool", "list[int]", "dict[str, int]", "str | None", "Sequence[str]", "Path", "bytes")
_CALLS = ("len", "sorted", "list", "str", "int", "sum", "max", "min", "repr", "tuple", "abs")
_ERRORS = ("ValueError", "KeyError", "TypeError", "OSError", "RuntimeError", "LookupError")
_MODULES = words_of("collections functools itertools json logging os pathlib random re string sys time typing")


def written_out(text: str, levels: int = LEVELS) -> str:
    """The grammar without ``{n}``, and with blanks after what is not a sign of its own for them."""
    head, _, terminals = text.partition("// -- terminals")
    definitions = re.split(r"\n(?=\S)", head)
    out = []
    for definition in definitions:
        if definition.startswith("//") or not definition.strip():
            out.append(definition)
        elif "{last}" in definition:
            out.append(definition.replace("{last}", str(levels - 1)))
        elif "{n}" in definition:
            out += [_at(definition, level) for level in range(levels - 1)]
        else:
            out.append(definition)
    indents = "".join(f'_INDENT{level}: "{"    " * level}"\n' for level in range(1, levels))
    rules = with_blanks("\n".join(out), "_BLANKS", {'"("': "_SPACES", '"["': "_SPACES", '"{"': "_SPACES"})
    return f"{rules}\n// -- terminals{terminals}{indents}"


def _at(definition: str, level: int) -> str:
    text = definition.replace("{n+1}", str(level + 1)).replace("{n}", str(level))
    return text.replace("_INDENT0 ", "").replace(" _INDENT0", "")


class _Scope:
    """The names of a body, and what it may use of ``self``."""

    def __init__(self, names: list[str], attributes: list[str], is_loop: bool = False) -> None:
        self.names, self.attributes, self.is_loop = names, attributes, is_loop

    def inner(self, is_loop: bool = False) -> _Scope:
        return _Scope(list(self.names), self.attributes, self.is_loop or is_loop)


class _Module:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.words = Words(random)
        self.functions: list[str] = []
        self.classes: list[str] = []
        self.constants: list[str] = []
        self.used = set(_TAKEN)

    def name(self, words: list[str], taken: Collection[str] = ()) -> str:
        name = snake(words)
        while name in taken or name in _TAKEN:
            name = f"{name}_{self.words.noun()}"
        return name

    # -- expressions ----------------------------------------------------------------------------

    def number(self) -> str:
        random = self.random
        kind = random.random()
        if kind < 0.75:
            return str(random.choice((0, 1, 2, 3, 10, 60, 100, 1000, random.randrange(9999))))
        if kind < 0.85:
            return f"{random.randrange(1, 10)}_{random.randrange(1000):03}"
        return random.choice(
            (f"0x{random.randrange(65536):x}", f"{random.randrange(10)}.{random.randrange(100)}", "1e-6")
        )

    def string(self, scope: _Scope) -> str:
        random = self.random
        kind = random.random()
        if kind < 0.3:
            return f'"{self.words.noun()}"'
        if kind < 0.4:
            return f"'{self.words.noun()}'"
        if kind < 0.6 and scope.names:
            return f'f"{self.words.phrase()}: {{{random.choice(scope.names)}}}"'
        if kind < 0.65:
            return f'r"^[a-z]+_{self.words.noun()}\\d*$"'
        return f'"{self.words.phrase()}"'

    def call(self, scope: _Scope, depth: int) -> str:
        random = self.random
        kind = random.random()
        if kind < 0.35 and self.functions:
            name = random.choice(self.functions[-40:])
        elif kind < 0.5 and self.classes:
            name = random.choice(self.classes[-10:])
        elif kind < 0.75 and scope.names:
            name = f"{random.choice(scope.names)}.{random.choice((self.words.verb(), snake(self.words.action())))}"
            name = name if name.rpartition(".")[2] not in _TAKEN else f"{name}_all"
        else:
            name = random.choice(_CALLS)
        arguments = [self.expression(scope, depth - 1) for _ in range(random.randrange(4))]
        if random.random() < 0.2:
            arguments.append(f"{self.name(self.words.thing())}={self.expression(scope, depth - 1)}")
        return f"{name}({', '.join(arguments)})"

    def primary(self, scope: _Scope, depth: int) -> str:
        random = self.random
        kind = random.random()
        if kind < 0.38 and scope.names:
            return random.choice(scope.names)
        if kind < 0.52 and scope.attributes:
            return f"self.{random.choice(scope.attributes)}"
        if kind < 0.62 and depth > 0:
            return self.call(scope, depth)
        if kind < 0.68 and scope.names:
            index = random.choice(("0", "-1", "1:", ":-1", f'"{self.words.noun()}"', random.choice(scope.names)))
            return f"{random.choice(scope.names)}[{index}]"
        if kind < 0.74 and depth > 0:
            return f"({self.expression(scope, depth - 1)})"
        if kind < 0.84:
            return self.string(scope)
        if kind < 0.88 and depth > 0:
            return self.display(scope, depth)
        if kind < 0.91 and self.constants:
            return random.choice(self.constants)
        if kind < 0.94:
            return random.choice(("None", "True", "False"))
        return self.number()

    def display(self, scope: _Scope, depth: int) -> str:
        random = self.random
        kind = random.random()
        if kind < 0.25:
            return f"[{', '.join(self.expression(scope, depth - 1) for _ in range(random.randrange(4)))}]"
        if kind < 0.45:
            pairs = [
                f"{self.string(scope)}: {self.expression(scope, depth - 1)}" for _ in range(random.randrange(1, 4))
            ]
            return f"{{{', '.join(pairs)}}}"
        own = self.name([self.words.noun()], scope.names)
        inner = _Scope([*scope.names, own], scope.attributes)
        body = f"{self.expression(inner, depth - 1)} for {own} in {self.primary(scope, 0)}"
        if random.random() < 0.4:
            body += f" if {self.condition(inner, 0)}"
        return random.choice((f"[{body}]", f"{{{body}}}", f"({body})", f"{{{own}: {body}}}"))

    def expression(self, scope: _Scope, depth: int) -> str:
        random = self.random
        kind = random.random()
        if depth <= 0 or kind < 0.45:
            return self.primary(scope, depth)
        if kind < 0.75:
            sign = random.choice(("+", "-", "*", "/", "//", "%", "**", "&", "|", "<<", "+", "-"))
            return f"{self.primary(scope, depth - 1)} {sign} {self.expression(scope, depth - 1)}"
        if kind < 0.80:
            return f"-{self.primary(scope, 0)}"
        if kind < 0.86:
            return f"{self.primary(scope, 0)} if {self.condition(scope, 0)} else {self.primary(scope, 0)}"
        if kind < 0.89:
            own = self.name([self.words.noun()], scope.names)
            return f"(lambda {own}: {self.primary(_Scope([own], []), 0)})"
        return self.primary(scope, depth)

    def condition(self, scope: _Scope, depth: int) -> str:
        random = self.random
        kind = random.random()
        if depth > 0 and kind < 0.25:
            sign = random.choice(("and", "or"))
            return f"{self.condition(scope, depth - 1)} {sign} {self.condition(scope, depth - 1)}"
        if kind < 0.35:
            return f"not {self.primary(scope, depth)}"
        if kind < 0.5:
            return f"{self.primary(scope, 0)} is {random.choice(('', 'not '))}None"
        if kind < 0.65:
            return f"{self.primary(scope, 0)} {random.choice(('', 'not '))}in {self.primary(scope, 0)}"
        return (
            f"{self.primary(scope, depth)} {random.choice(('==', '!=', '<', '<=', '>', '>='))} {self.primary(scope, 0)}"
        )

    # -- statements -----------------------------------------------------------------------------

    def block(self, scope: _Scope, level: int, count: int = 0, is_loop: bool = False) -> str:
        inner = scope.inner(is_loop)
        count = count or self.random.randrange(1, 4)
        return "".join(self.statement(inner, level) for _ in range(count))

    def statement(self, scope: _Scope, level: int) -> str:
        random = self.random
        pad = "    " * level
        kind = random.random()
        if kind < 0.08:
            return f"{pad}# {self.words.sentence()}\n{self.statement(scope, level)}"
        if kind < 0.34 or (level >= LEVELS - 1 and kind >= 0.6):
            value = self.expression(scope, 3)
            own = self.name(self.words.thing(), scope.names)
            scope.names.append(own)
            note = f": {random.choice(_TYPES)}" if random.random() < 0.12 else ""
            after = f"  # {self.words.phrase()}" if random.random() < 0.06 else ""
            return f"{pad}{own}{note} = {value}{after}\n"
        if kind < 0.42 and scope.names:
            sign = random.choice(("+=", "-=", "*=", "|=", "//="))
            return f"{pad}{random.choice(scope.names)} {sign} {self.expression(scope, 2)}\n"
        if kind < 0.48 and scope.attributes:
            return f"{pad}self.{random.choice(scope.attributes)} = {self.expression(scope, 2)}\n"
        if kind < 0.6 or level >= LEVELS - 1:
            return pad + self.long_call(scope, pad) if random.random() < 0.25 else f"{pad}{self.call(scope, 2)}\n"
        if kind < 0.78:
            return self.branch(scope, level, pad)
        if kind < 0.90:
            return self.loop(scope, level, pad)
        if kind < 0.94:
            own = self.name(self.words.thing(), scope.names)
            inner = _Scope([*scope.names, own], scope.attributes)
            return f"{pad}with {self.call(scope, 1)} as {own}:\n{self.block(inner, level + 1)}"
        text = f"{pad}try:\n{self.block(scope, level + 1)}"
        text += f"{pad}except {random.choice(_ERRORS)} as error:\n"
        text += self.block(_Scope([*scope.names, "error"], scope.attributes), level + 1, 1)
        if random.random() < 0.2:
            text += f"{pad}finally:\n{self.block(scope, level + 1, 1)}"
        return text

    def long_call(self, scope: _Scope, pad: str) -> str:
        lines = [f"{pad}    {self.expression(scope, 2)},\n" for _ in range(self.random.randrange(2, 5))]
        if self.random.random() < 0.5:
            lines.append(f"{pad}    {self.name(self.words.thing())}={self.expression(scope, 1)},\n")
        name = self.random.choice(self.functions[-40:] or ["print"])
        return f"{name}(\n{''.join(lines)}{pad})\n"

    def branch(self, scope: _Scope, level: int, pad: str) -> str:
        random = self.random
        text = f"{pad}if {self.condition(scope, 1)}:\n"
        kind = random.random()
        if kind < 0.15:
            return f'{text}{pad}    raise {random.choice(_ERRORS)}(f"{self.words.phrase()}")\n'
        if kind < 0.25:
            return f"{text}{pad}    return {self.expression(scope, 1)}\n"
        if kind < 0.35 and scope.is_loop:
            return f"{text}{pad}    {random.choice(('continue', 'break'))}\n"
        text += self.block(scope, level + 1)
        while random.random() < 0.2:
            text += f"{pad}elif {self.condition(scope, 0)}:\n{self.block(scope, level + 1)}"
        if random.random() < 0.35:
            text += f"{pad}else:\n{self.block(scope, level + 1)}"
        return text

    def loop(self, scope: _Scope, level: int, pad: str) -> str:
        random = self.random
        if random.random() < 0.2:
            return f"{pad}while {self.condition(scope, 1)}:\n{self.block(scope, level + 1, is_loop=True)}"
        own = self.name([self.words.noun()], scope.names)
        names, over = own, self.primary(scope, 1)
        kind = random.random()
        added = [own]
        if kind < 0.25:
            index = "index" if "index" not in scope.names and own != "index" else self.name(["at"], [*scope.names, own])
            names, over = f"{index}, {own}", f"enumerate({over})"
            added.append(index)
        elif kind < 0.45:
            over = f"range({self.primary(scope, 0)})"
        inner = _Scope([*scope.names, *added], scope.attributes)
        return f"{pad}for {names} in {over}:\n{self.block(inner, level + 1, is_loop=True)}"

    # -- the top of a module --------------------------------------------------------------------

    def header(self) -> str:
        modules = sorted(self.random.sample(_MODULES, 4))
        text = f'"""{self.words.sentence()}\n\n{self.words.sentence()}\n{self.words.sentence()}\n"""\n\n'
        text += "from __future__ import annotations\n\n"
        text += "".join(f"import {module}\n" for module in modules)
        text += "from collections.abc import Iterator, Sequence\nfrom dataclasses import dataclass\n"
        return text + "from pathlib import Path\n\n"

    def constant(self) -> str:
        name = constant(self.words.thing())
        self.constants.append(name)
        return f"{name} = {self.expression(_Scope([], []), 2)}\n\n"

    def parameters(self, names: list[str], first: str = "") -> str:
        random = self.random
        parts = [first] if first else []
        has_default = False
        for _ in range(random.randrange(1, 5)):
            own = self.name(self.words.thing(), names)
            names.append(own)
            has_default = has_default or random.random() < 0.2
            default = f" = {random.choice(('None', '0', '()', 'True', self.number()))}" if has_default else ""
            parts.append(f"{own}: {random.choice(_TYPES)}{default}")
        return ", ".join(parts)

    def function(self, level: int = 0, attributes: list[str] | None = None) -> str:
        random = self.random
        pad = "    " * level
        name = self.name(self.words.action(), self.used)
        names: list[str] = []
        head = ""
        if attributes is None:
            self.used.add(name)
            parameters = self.parameters(names)
        else:
            parameters = self.parameters(names, "self")
            if random.random() < 0.1:
                head, parameters, names = f"{pad}@property\n", "self", []
        text = f"{head}{pad}def {name}({parameters}) -> {random.choice(_TYPES)}:\n"
        if random.random() < 0.6:
            text += f'{pad}    """{self.words.sentence()}"""\n'
        scope = _Scope(names, attributes or [])
        text += "".join(self.statement(scope, level + 1) for _ in range(random.randrange(2, 7)))
        text += f"{pad}    return {self.expression(scope, 2)}\n\n"
        if attributes is None:
            self.functions.append(name)
        return text if level else text + "\n"

    def klass(self) -> str:
        random = self.random
        name = pascal(self.words.thing())
        while name in self.used:
            name += self.words.noun().capitalize()
        self.used.add(name)
        base = f"({random.choice(self.classes)})" if self.classes and random.random() < 0.3 else ""
        text = f'class {name}{base}:\n    """{self.words.sentence()}"""\n\n'
        if random.random() < 0.3:
            text = "@dataclass(frozen=True)\n" + text
        names: list[str] = []
        text += f"    def __init__({self.parameters(names, 'self')}) -> None:\n"
        attributes = [f"_{own}" if random.random() < 0.5 else own for own in names]
        text += "".join(f"        self.{at} = {own}\n" for at, own in zip(attributes, names, strict=True)) + "\n"
        self.classes.append(name)
        for _ in range(random.randrange(1, 4)):
            text += self.function(1, attributes)
        return text + "\n"


def items(random: Random) -> Iterator[str]:
    """The parts of an endless module."""
    module = _Module(random)
    yield module.header()
    while True:
        kind = random.random()
        if kind < 0.15:
            yield module.constant()
        elif kind < 0.45:
            yield module.klass()
        else:
            yield module.function()
