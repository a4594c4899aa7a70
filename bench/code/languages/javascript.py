"""Modules in JavaScript: imports, classes, functions and arrow functions, promises and template strings."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from bench.code.words import Words, camel, constant, pascal, words_of

_TAKEN = frozenset(
    words_of(
        """
        abstract arguments async await boolean break byte case catch char class const continue debugger default delete
        do double else enum eval export extends false final finally float for function get goto if implements import in
        instanceof int interface let long native new null of package private protected public return set short static
        super switch synchronized this throw throws transient true try typeof undefined var void volatile while with
        yield
        """
    )
)
_METHODS = ("map", "filter", "forEach", "some", "every", "find", "push", "join", "slice", "concat", "get", "set", "has")
_MODULES = ("./config.js", "./helpers.js", "../models/index.js", "node:fs", "node:path", "lodash", "express")
_PATTERNS = (r"/^[a-z]+(-[a-z]+)*$/", r"/\d{4}-\d{2}-\d{2}/g", r"/[^\w\s]/gi", r"/\s+/g", r"/[/\\]+$/")


class _Scope:
    """The names of a body."""

    def __init__(self, names: list[str], attributes: list[str], is_async: bool = False) -> None:
        self.names, self.attributes, self.is_async = names, attributes, is_async
        self.taken = set(names)

    def inner(self, *more: str, is_arrow: bool = False) -> _Scope:
        # An arrow function inside is none that can wait.
        made = _Scope([*self.names, *more], self.attributes, self.is_async and not is_arrow)
        made.taken |= self.taken
        return made

    def add(self, name: str) -> None:
        self.names.append(name)
        self.taken.add(name)


class _Module:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.words = Words(random)
        self.functions: list[str] = []
        self.classes: list[str] = []
        self.constants: list[str] = []
        self.used = set(_TAKEN)

    def name(self, words: list[str], scope: _Scope | None = None) -> str:
        name = camel(words)
        while name in self.used or (scope is not None and name in scope.taken):
            name += self.words.noun().capitalize()
        return name

    def global_name(self, name: str) -> str:
        while name in self.used:
            name += self.words.noun().capitalize()
        self.used.add(name)
        return name

    # -- expressions ----------------------------------------------------------------------------

    def number(self) -> str:
        random = self.random
        kind = random.random()
        if kind < 0.8:
            return str(random.choice((0, 1, 2, 3, 10, 60, 100, 1000, random.randrange(9999))))
        return random.choice(
            (f"0x{random.randrange(65536):x}", f"{random.randrange(10)}.{random.randrange(100)}", "1e3")
        )

    def string(self, scope: _Scope) -> str:
        random = self.random
        kind = random.random()
        if kind < 0.4:
            return f"'{self.words.noun()}'"
        if kind < 0.5:
            return f'"{self.words.phrase()}"'
        if kind < 0.8 and scope.names:
            inner = random.choice(scope.names)
            if random.random() < 0.4:
                inner = f"{inner}.{self.name(self.words.thing())}"
            return (
                f"`{self.words.phrase()}: ${{{inner}}}{random.choice(('', '%', ' ms', '.', ' ' + self.words.noun()))}`"
            )
        return f"'{self.words.phrase()}'"

    def place(self, scope: _Scope) -> str:
        random = self.random
        kind = random.random()
        if kind < 0.4 and scope.attributes:
            return f"this.{random.choice(scope.attributes)}"
        if scope.names:
            base = random.choice(scope.names)
            if kind < 0.75:
                return base
            if kind < 0.9:
                return f"{base}.{self.name(self.words.thing())}"
            return f"{base}[{random.choice((self.number(), random.choice(scope.names), self.string(scope)))}]"
        return random.choice(self.constants) if self.constants else "window.state"

    def arrow(self, scope: _Scope, depth: int) -> str:
        random = self.random
        own = self.name([self.words.noun()], scope)
        inner = scope.inner(own, is_arrow=True)
        if random.random() < 0.35:
            other = self.name([self.words.noun(), "at"], inner)
            head, inner = f"({own}, {other})", inner.inner(other)
        else:
            head = random.choice((own, f"({own})"))
        kind = random.random()
        if kind < 0.6:
            return f"{head} => {self.returned(inner, depth - 1)}"
        return f"{head} => {self.condition(inner, 0)}"

    def returned(self, scope: _Scope, depth: int) -> str:
        """What an arrow function returns: braces would begin its body."""
        text = self.expression(scope, depth)
        return f"({text})" if text.startswith("{") else text

    def call(self, scope: _Scope, depth: int) -> str:
        random = self.random
        kind = random.random()
        arguments = [self.expression(scope, depth - 1) for _ in range(random.randrange(4))]
        if kind < 0.3 and self.functions:
            name = random.choice(self.functions[-40:])
        elif kind < 0.6 and scope.names:
            name = f"{random.choice(scope.names)}{random.choice(('.', '.', '.', '?.'))}{self.name(self.words.action())}"
        elif kind < 0.85:
            name = f"{self.place(scope)}.{random.choice(_METHODS)}"
            arguments = [self.arrow(scope, depth)]
        else:
            name = random.choice(("Math.max", "Object.keys", "JSON.stringify", "Number", "Array.from", "Boolean"))
        if random.random() < 0.05 and scope.names:
            arguments.append(f"...{random.choice(scope.names)}")
        text = f"{name}({', '.join(arguments)})"
        return f"await {text}" if scope.is_async and random.random() < 0.2 else text

    def object(self, scope: _Scope, depth: int) -> str:
        random = self.random
        parts = []
        for _ in range(random.randrange(1, 4)):
            kind = random.random()
            if kind < 0.25 and scope.names:
                parts.append(random.choice(scope.names))
            elif kind < 0.35 and scope.names:
                parts.append(f"...{random.choice(scope.names)}")
            else:
                parts.append(f"{self.name(self.words.thing())}: {self.expression(scope, depth - 1)}")
        return f"{{ {', '.join(parts)} }}"

    def primary(self, scope: _Scope, depth: int) -> str:
        random = self.random
        kind = random.random()
        if kind < 0.45:
            return self.place(scope)
        if kind < 0.60 and depth > 0:
            return self.call(scope, depth)
        if kind < 0.66 and depth > 0:
            return f"({self.expression(scope, depth - 1)})"
        if kind < 0.78:
            return self.string(scope)
        if kind < 0.82 and depth > 0:
            return f"[{', '.join(self.expression(scope, depth - 1) for _ in range(random.randrange(4)))}]"
        if kind < 0.85 and self.constants:
            return random.choice(self.constants)
        if kind < 0.87 and self.classes and depth > 0:
            return f"new {random.choice(self.classes[-10:])}({self.expression(scope, 0)})"
        if kind < 0.91:
            return random.choice(("null", "undefined", "true", "false"))
        if kind < 0.92:
            return random.choice(_PATTERNS)
        return self.number()

    def expression(self, scope: _Scope, depth: int) -> str:
        random = self.random
        kind = random.random()
        if depth <= 0 or kind < 0.45:
            return self.primary(scope, depth)
        if kind < 0.72:
            sign = random.choice(("+", "-", "*", "/", "%", "&", "|", "<<", ">>>", "+", "-"))
            return f"{self.primary(scope, depth - 1)} {sign} {self.expression(scope, depth - 1)}"
        if kind < 0.77:
            return f"{random.choice(('!', '-', 'typeof '))}{self.place(scope)}"
        if kind < 0.84:
            return f"{self.condition(scope, 0)} ? {self.primary(scope, depth - 1)} : {self.primary(scope, depth - 1)}"
        if kind < 0.88:
            return f"{self.place(scope)} ?? {self.primary(scope, 0)}"
        if kind < 0.93:
            return self.object(scope, depth)
        return self.primary(scope, depth)

    def condition(self, scope: _Scope, depth: int) -> str:
        random = self.random
        kind = random.random()
        if depth > 0 and kind < 0.25:
            sign = random.choice(("&&", "||"))
            return f"{self.condition(scope, depth - 1)} {sign} {self.condition(scope, depth - 1)}"
        if kind < 0.35:
            return f"!{self.place(scope)}"
        if kind < 0.42:
            return f"typeof {self.place(scope)} === '{random.choice(('string', 'number', 'function', 'undefined'))}'"
        if kind < 0.47:
            return f"{random.choice(_PATTERNS[:1] + _PATTERNS[3:])}.test({self.place(scope)})"
        sign = random.choice(("===", "!==", "===", "<", "<=", ">", ">="))
        return f"{self.primary(scope, depth)} {sign} {self.primary(scope, 0)}"

    # -- statements -----------------------------------------------------------------------------

    def block(self, scope: _Scope, indent: str, depth: int, count: int = 0) -> str:
        inner = scope.inner()
        count = count or self.random.randrange(1, 4)
        lines = "".join(f"{indent}  {self.statement(inner, indent + '  ', depth)}\n" for _ in range(count))
        return f"{{\n{lines}{indent}}}"

    def statement(self, scope: _Scope, indent: str, depth: int) -> str:
        random = self.random
        kind = random.random()
        if kind < 0.07:
            return f"// {self.words.sentence()}\n{indent}{self.statement(scope, indent, depth)}"
        if kind < 0.30:
            value = self.expression(scope, 3)
            own = self.name(self.words.thing(), scope)
            scope.add(own)
            return f"{random.choice(('const', 'const', 'let'))} {own} = {value};"
        if kind < 0.36 and scope.names:
            source = self.place(scope)
            first = self.name(self.words.thing(), scope)
            scope.add(first)
            second = self.name(self.words.thing(), scope)
            scope.add(second)
            pattern = random.choice((f"{{ {first}, {second} }}", f"{{ {first}: {second} }}", f"[{first}, ...{second}]"))
            return f"const {pattern} = {source};"
        if kind < 0.44 or depth <= 0:
            target = f"{random.choice(scope.names or ['module'])}.{self.name(self.words.thing())}"
            return f"{target} {random.choice(('=', '=', '+=', '-=', '||='))} {self.expression(scope, 2)};"
        if kind < 0.54:
            return f"{self.call(scope, 2)};"
        if kind < 0.60:
            return (
                f"console.{random.choice(('log', 'warn', 'error'))}({self.string(scope)}, {self.expression(scope, 1)});"
            )
        if kind < 0.66:
            return self.chain(scope, indent, depth)
        if kind < 0.82:
            return self.branch(scope, indent, depth)
        if kind < 0.93:
            return self.loop(scope, indent, depth)
        text = f"try {self.block(scope, indent, depth - 1)}"
        return f"{text} catch (error) {self.block(scope.inner('error'), indent, depth - 1, 1)}"

    def chain(self, scope: _Scope, indent: str, depth: int) -> str:
        random = self.random
        own = self.name([self.words.noun()], scope)
        inner = scope.inner(own, is_arrow=True)
        body = self.block(inner, indent, depth - 1)
        if random.random() < 0.5:
            return f"{self.place(scope)}.forEach(({own}) => {body});"
        name = self.name(self.words.thing(), scope)
        text = f"const {name} = {self.place(scope)}\n"
        text += f"{indent}  .filter(({own}) => {self.condition(inner, 1)})\n"
        text += f"{indent}  .map(({own}) => {self.returned(inner, 1)});"
        scope.add(name)
        return text

    def branch(self, scope: _Scope, indent: str, depth: int) -> str:
        random = self.random
        kind = random.random()
        text = f"if ({self.condition(scope, 2)}) "
        if kind < 0.15:
            return f"{text}{{\n{indent}  throw new Error({self.string(scope)});\n{indent}}}"
        if kind < 0.3:
            return f"{text}{{\n{indent}  return {self.expression(scope, 1)};\n{indent}}}"
        text += self.block(scope, indent, depth - 1)
        while random.random() < 0.15:
            text += f" else if ({self.condition(scope, 1)}) {self.block(scope, indent, depth - 1)}"
        return text + f" else {self.block(scope, indent, depth - 1)}" * (random.random() < 0.3)

    def loop(self, scope: _Scope, indent: str, depth: int) -> str:
        random = self.random
        own = self.name([self.words.noun()], scope)
        kind = random.random()
        if kind < 0.5:
            head = f"for (const {own} of {self.place(scope)})"
        elif kind < 0.8:
            free = [letter for letter in "ijkmn" if letter not in scope.taken]
            own = free[0] if free else own
            head = f"for (let {own} = 0; {own} < {self.place(scope)}.length; {own}++)"
        elif kind < 0.9:
            return f"while ({self.condition(scope, 1)}) {self.block(scope, indent, depth - 1)}"
        else:
            text = f"switch ({self.place(scope)}) {{\n"
            for _ in range(random.randrange(2, 4)):
                step = f"{self.place(scope)}.{self.name(self.words.thing())} = {self.expression(scope, 1)};"
                text += f"{indent}  case '{self.words.noun()}':\n{indent}    {step}\n{indent}    break;\n"
            return f"{text}{indent}  default:\n{indent}    break;\n{indent}}}"
        return f"{head} {self.block(scope.inner(own), indent, depth - 1)}"

    # -- the top of a module --------------------------------------------------------------------

    def header(self) -> str:
        text = f"/**\n * {self.words.sentence()}\n */\n"
        for module in self.random.sample(_MODULES, 3):
            names = list(dict.fromkeys(self.global_name(camel(self.words.action())) for _ in range(2)))
            self.functions += names
            text += f"import {{ {', '.join(names)} }} from '{module}';\n"
        return text + "\n"

    def constant(self) -> str:
        name = self.global_name(constant(self.words.thing()))
        value = self.expression(_Scope([], []), 1) if self.random.random() < 0.6 else self.object(_Scope([], []), 2)
        self.constants.append(name)
        return f"const {name} = {value};\n\n"

    def parameters(self, names: list[str]) -> str:
        random = self.random
        scope = _Scope(names, [])
        parts = []
        for _ in range(random.randrange(1, 4)):
            own = self.name(self.words.thing(), scope)
            scope.add(own)
            default = (
                f" = {random.choice(('null', '[]', '{}', 'true', self.number()))}" if random.random() < 0.15 else ""
            )
            parts.append(own + default)
        return ", ".join(parts)

    def body(self, names: list[str], attributes: list[str], indent: str, is_async: bool) -> str:
        scope = _Scope(names, attributes, is_async)
        lines = [self.statement(scope, indent + "  ", 3) for _ in range(self.random.randrange(2, 7))]
        lines.append(f"return {self.expression(scope, 2)};")
        return "{\n" + "".join(f"{indent}  {line}\n" for line in lines) + f"{indent}}}"

    def function(self) -> str:
        random = self.random
        name = self.global_name(camel(self.words.action()))
        names: list[str] = []
        is_async = random.random() < 0.25
        head = random.choice(("", "", "export "))
        note = ""
        parameters = self.parameters(names)
        if random.random() < 0.5:
            note = f"/**\n * {self.words.sentence()}\n"
            note += "".join(f" * @param {{*}} {own} {self.words.phrase()}\n" for own in names) + " */\n"
        mark = "async " if is_async else ""
        body = self.body(names, [], "", is_async)
        self.functions.append(name)
        if random.random() < 0.3:
            return f"{note}{head}const {name} = {mark}({parameters}) => {body};\n\n"
        return f"{note}{head}{mark}function {name}({parameters}) {body}\n\n"

    def klass(self) -> str:
        random = self.random
        name = self.global_name(pascal(self.words.thing()))
        base = f" extends {random.choice(self.classes)}" if self.classes and random.random() < 0.3 else ""
        names: list[str] = []
        text = f"{random.choice(('', 'export '))}class {name}{base} {{\n  constructor({self.parameters(names)}) {{\n"
        text += "    super();\n" if base else ""
        text += "".join(f"    this.{own} = {own};\n" for own in names) + "  }\n"
        self.classes.append(name)
        for _ in range(random.randrange(1, 4)):
            own: list[str] = []
            is_async = random.random() < 0.25
            head = random.choice(("", "", "static ")) + ("async " if is_async else "")
            method = self.name(self.words.action())
            text += f"\n  {head}{method}({self.parameters(own)}) {self.body(own, list(names), '  ', is_async)}\n"
        return text + "}\n\n"


def items(random: Random) -> Iterator[str]:
    """The parts of an endless module."""
    module = _Module(random)
    yield module.header()
    while True:
        kind = random.random()
        if kind < 0.15:
            yield module.constant()
        elif kind < 0.4:
            yield module.klass()
        else:
            yield module.function()
