"""Programs in C: structs, enums, tables, and functions that use them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from bench.code.words import Words, constant, snake, words_of

_TAKEN = frozenset(
    words_of(
        """
        auto break case char const continue default do double else enum extern float for goto if inline int long
        register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
        """
    )
)
_NUMBERS = ("int", "unsigned int", "long", "size_t", "uint32_t", "int64_t", "double", "unsigned char")
_NEEDED = ("stdint.h", "stdio.h", "stdlib.h", "string.h")
_OTHERS = ("assert.h", "errno.h", "limits.h", "stdbool.h", "stddef.h", "math.h", "time.h")
_FORMATS = ("%d", "%s", "%zu", "%lu", "%-12s", "%08x", "%.3f")


@dataclass
class _Scope:
    """What a body can name: numbers, strings, and pointers to structs."""

    numbers: list[str] = field(default_factory=list)
    strings: list[str] = field(default_factory=list)
    records: list[tuple[str, str]] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def inner(self) -> _Scope:
        return _Scope(list(self.numbers), list(self.strings), list(self.records), self.names)


class _Program:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.words = Words(random)
        self.structs: dict[str, list[tuple[str, str]]] = {}
        self.functions: list[tuple[str, int]] = []
        self.constants: list[str] = []
        self.globals: list[str] = []
        self.used = set(_TAKEN)

    # -- names ----------------------------------------------------------------------------------

    def new(self, make: list[str], taken: set[str]) -> str:
        name = snake(make)
        while name in taken or name in self.used:
            name = f"{name}_{self.words.noun()}"
        taken.add(name)
        return name

    def global_name(self, words: list[str]) -> str:
        name = self.new(words, set())
        self.used.add(name)
        return name

    # -- expressions ----------------------------------------------------------------------------

    def number(self) -> str:
        random = self.random
        kind = random.random()
        if kind < 0.6:
            return str(random.choice((0, 0, 1, 1, 2, 3, 4, 8, 10, 16, 32, 64, 100, 255, 1024, random.randrange(5000))))
        if kind < 0.75:
            return f"0x{random.randrange(1 << random.choice((8, 16, 32))):02x}"
        if kind < 0.85 and self.constants:
            return random.choice(self.constants)
        if kind < 0.93:
            return f"{random.randrange(500)}{random.choice(('u', 'UL', 'L'))}"
        return f"{random.randrange(100)}.{random.randrange(1000)}"

    def text(self) -> str:
        phrase = self.words.phrase()
        if self.random.random() < 0.5:
            phrase += f": {self.random.choice(_FORMATS)}\\n"
        return f'"{phrase}"'

    def field_of(self, scope: _Scope) -> str:
        name, struct = self.random.choice(scope.records)
        member, kind = self.random.choice(self.structs[struct])
        if kind.endswith("]"):
            return f"{name}->{member}[{self.index(scope)}]"
        return f"{name}->{member}"

    def index(self, scope: _Scope) -> str:
        random = self.random
        if scope.numbers and random.random() < 0.7:
            name = random.choice(scope.numbers)
            return name if random.random() < 0.7 else f"{name} {random.choice('+-%')} {random.choice((1, 2, 16))}"
        return str(random.randrange(16))

    def call(self, scope: _Scope, depth: int) -> str:
        random = self.random
        if self.functions and random.random() < 0.7:
            name, count = random.choice(self.functions[-40:])
        else:
            name, count = random.choice((("strlen", 1), ("memcmp", 3), ("abs", 1), ("strcmp", 2), ("strtol", 3)))
        return f"{name}({', '.join(self.expression(scope, depth - 1) for _ in range(count))})"

    def primary(self, scope: _Scope, depth: int) -> str:
        random = self.random
        kind = random.random()
        if kind < 0.42 and scope.numbers:
            return random.choice(scope.numbers)
        if kind < 0.62 and scope.records:
            return self.field_of(scope)
        if kind < 0.70 and scope.strings:
            return f"{random.choice(scope.strings)}[{self.index(scope)}]"
        if kind < 0.80 and depth > 0:
            return self.call(scope, depth)
        if kind < 0.86 and depth > 0:
            return f"({self.expression(scope, depth - 1)})"
        if kind < 0.88:
            return f"sizeof({random.choice(_NUMBERS)})"
        if kind < 0.91:
            return random.choice(("'a'", "'\\n'", "'\\0'", "' '", "'%'", "'0'", "'_'"))
        if kind < 0.93 and self.globals:
            return f"{random.choice(self.globals)}[{self.index(scope)}]"
        return self.number()

    def expression(self, scope: _Scope, depth: int) -> str:
        random = self.random
        kind = random.random()
        if depth <= 0 or kind < 0.35:
            return self.primary(scope, depth)
        if kind < 0.70:
            sign = random.choice(("+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^", "+", "-"))
            return f"{self.primary(scope, depth - 1)} {sign} {self.expression(scope, depth - 1)}"
        if kind < 0.78:
            return f"{random.choice('-!~')}{self.primary(scope, depth - 1)}"
        if kind < 0.84:
            return f"({random.choice(_NUMBERS)}){self.primary(scope, depth - 1)}"
        if kind < 0.90:
            return f"{self.condition(scope, depth - 1)} ? {self.primary(scope, 0)} : {self.primary(scope, 0)}"
        return self.primary(scope, depth)

    def condition(self, scope: _Scope, depth: int) -> str:
        random = self.random
        kind = random.random()
        if depth > 0 and kind < 0.25:
            return (
                f"{self.condition(scope, depth - 1)} {random.choice(('&&', '||'))} {self.condition(scope, depth - 1)}"
            )
        if kind < 0.35:
            return f"!{self.call(scope, 1)}"
        if kind < 0.45 and scope.records:
            return f"{random.choice(scope.records)[0]} {random.choice(('==', '!='))} NULL"
        sign = random.choice(("==", "!=", "<", "<=", ">", ">="))
        return f"{self.primary(scope, depth)} {sign} {self.expression(scope, depth - 1)}"

    def target(self, scope: _Scope) -> str:
        if scope.records and self.random.random() < 0.5:
            return self.field_of(scope)
        if scope.numbers:
            return self.random.choice(scope.numbers)
        return self.random.choice(self.globals) + f"[{self.index(scope)}]" if self.globals else "errno"

    # -- statements -----------------------------------------------------------------------------

    def declaration(self, scope: _Scope, depth: int) -> str:
        random = self.random
        kind = random.random()
        if kind < 0.15 and self.structs:
            struct = random.choice(list(self.structs)[-12:])
            name = self.new(self.words.thing(), scope.names)
            value = random.choice(
                (
                    f"malloc(sizeof(struct {struct}))",
                    "NULL",
                    f"calloc({random.randrange(1, 64)}, sizeof(struct {struct}))",
                )
            )
            scope.records.append((name, struct))
            return f"struct {struct} *{name} = {value};"
        if kind < 0.28:
            name = self.new(self.words.thing(), scope.names)
            scope.strings.append(name)
            if random.random() < 0.4:
                return f"char {name}[{random.choice((16, 32, 64, 128, 256))}];"
            return f"const char *{name} = {self.text()};"
        value = self.expression(scope, depth)
        name = self.new(self.words.thing(), scope.names)
        scope.numbers.append(name)
        second = ""
        if random.random() < 0.12:
            other = self.new(self.words.thing(), scope.names)
            second = f", {other} = {self.number()}"
            scope.numbers.append(other)
        return f"{random.choice(_NUMBERS)} {name} = {value}{second};"

    def block(self, scope: _Scope, indent: str, depth: int) -> str:
        inner = scope.inner()
        lines = self.statements(inner, indent + "    ", depth, self.random.randrange(1, 4))
        return "{\n" + lines + indent + "}"

    def statements(self, scope: _Scope, indent: str, depth: int, count: int) -> str:
        return "".join(f"{indent}{self.statement(scope, indent, depth)}\n" for _ in range(count))

    def statement(self, scope: _Scope, indent: str, depth: int) -> str:
        random = self.random
        kind = random.random()
        if kind < 0.08:
            return f"/* {self.words.sentence()} */\n{indent}{self.statement(scope, indent, depth)}"
        if kind < 0.12:
            return f"// {self.words.phrase()}\n{indent}{self.statement(scope, indent, depth)}"
        if kind < 0.30:
            return self.declaration(scope, 2)
        if kind < 0.48 or depth <= 0:
            sign = random.choice(("=", "=", "=", "+=", "-=", "|=", "&=", "<<="))
            return f"{self.target(scope)} {sign} {self.expression(scope, 3)};"
        if kind < 0.56:
            return f"{self.call(scope, 2)};"
        if kind < 0.62:
            values = "".join(f", {self.primary(scope, 1)}" for _ in range(random.randrange(3)))
            return random.choice((f"printf({self.text()}{values});", f"fprintf(stderr, {self.text()}{values});"))
        if kind < 0.66:
            return f"{self.target(scope)}{random.choice(('++', '--'))};"
        if kind < 0.82:
            return self.branch(scope, indent, depth)
        if kind < 0.90:
            return self.loop(scope, indent, depth)
        if kind < 0.94:
            return f"while ({self.condition(scope, 2)}) {self.block(scope, indent, depth - 1)}"
        if kind < 0.96:
            return f"do {self.block(scope, indent, depth - 1)} while ({self.condition(scope, 1)});"
        return self.switch(scope, indent, depth)

    def branch(self, scope: _Scope, indent: str, depth: int) -> str:
        random = self.random
        kind = random.random()
        text = f"if ({self.condition(scope, 2)}) "
        if kind < 0.2:
            return text + f"{{\n{indent}    return {self.expression(scope, 1)};\n{indent}}}"
        text += self.block(scope, indent, depth - 1)
        while random.random() < 0.2:
            text += f" else if ({self.condition(scope, 1)}) {self.block(scope, indent, depth - 1)}"
        if random.random() < 0.35:
            text += f" else {self.block(scope, indent, depth - 1)}"
        return text

    def loop(self, scope: _Scope, indent: str, depth: int) -> str:
        inner = scope.inner()
        free = [letter for letter in "ijkmn" if letter not in inner.numbers]
        name = free[0] if free else self.new(self.words.thing(), inner.names)
        end = self.primary(scope, 1)
        inner.numbers.append(name)
        kind = self.random.choice(("int", "size_t", "unsigned int"))
        head = f"for ({kind} {name} = 0; {name} < {end}; {name}++)"
        return f"{head} {self.block(inner, indent, depth - 1)}"

    def switch(self, scope: _Scope, indent: str, depth: int) -> str:
        text = f"switch ({self.primary(scope, 1)}) {{\n"
        labels = self.random.sample(range(20), self.random.randrange(2, 5))
        for label in labels:
            step = f"{self.target(scope)} = {self.expression(scope, 2)};"
            text += f"{indent}case {label}:\n{indent}    {step}\n{indent}    break;\n"
        return text + f"{indent}default:\n{indent}    break;\n{indent}}}"

    # -- the top of a file ----------------------------------------------------------------------

    def header(self) -> str:
        text = f"/*\n * {self.words.sentence()}\n * {self.words.sentence()}\n */\n"
        headers = [*_NEEDED, *self.random.sample(_OTHERS, 3)]
        text += "".join(f"#include <{name}>\n" for name in sorted(headers))
        return text + "\n"

    def define(self) -> str:
        name = constant(self.global_name(self.words.thing()).split("_"))
        self.constants.append(name)
        return f"#define {name} {self.random.choice((8, 16, 64, 100, 256, 1021, 4096))}\n\n"

    def struct(self) -> str:
        random = self.random
        name = self.global_name(self.words.thing())
        taken: set[str] = set()
        members: list[tuple[str, str]] = []
        lines = []
        for _ in range(random.randrange(3, 8)):
            member = self.new(self.words.thing(), taken)
            kind = random.random()
            if kind < 0.15:
                lines.append(f"    struct {name} *{member};")
                continue
            if kind < 0.35:
                lines.append(f"    char {member}[{random.choice((16, 32, 64))}];")
                members.append((member, "char[]"))
            else:
                number = random.choice(_NUMBERS)
                note = f"  // {self.words.phrase()}" if random.random() < 0.2 else ""
                lines.append(f"    {number} {member};{note}")
                members.append((member, number))
        members.append(("flags", "unsigned int"))
        lines.append("    unsigned int flags;")
        self.structs[name] = members
        return f"struct {name} {{\n" + "\n".join(lines) + "\n};\n\n"

    def enum(self) -> str:
        name = self.global_name([*self.words.thing(), "kind"])
        values = [constant([name, self.words.noun()]) for _ in range(self.random.randrange(3, 7))]
        values = list(dict.fromkeys(values))
        self.constants += values
        body = ",\n".join(f"    {value}" + (" = 1" if at == 0 else "") for at, value in enumerate(values))
        return f"enum {name} {{\n{body}\n}};\n\n"

    def table(self) -> str:
        name = self.global_name([*self.words.thing(), "table"])
        self.globals.append(name)
        rows = [
            "    " + ", ".join(str(self.random.randrange(1000)) for _ in range(8))
            for _ in range(self.random.randrange(1, 4))
        ]
        return f"static const int {name}[] = {{\n" + ",\n".join(rows) + "\n};\n\n"

    def typedef(self) -> str:
        name = self.global_name([*self.words.action(), "t"])
        return f"typedef int (*{name})(const char *{self.words.noun()}, size_t length);\n\n"

    def function(self) -> str:
        random = self.random
        name = self.global_name(self.words.action())
        scope = _Scope()
        parameters = []
        for _ in range(random.randrange(1, 5)):
            own = self.new(self.words.thing(), scope.names)
            kind = random.random()
            if kind < 0.4 and self.structs:
                struct = random.choice(list(self.structs)[-12:])
                scope.records.append((own, struct))
                parameters.append(f"{random.choice(('', '', 'const '))}struct {struct} *{own}")
            elif kind < 0.6:
                scope.strings.append(own)
                parameters.append(f"const char *{own}")
            else:
                scope.numbers.append(own)
                parameters.append(f"{random.choice(_NUMBERS)} {own}")
        if not scope.numbers:
            scope.numbers.append(self.new(["count"], scope.names))
            parameters.append(f"size_t {scope.numbers[-1]}")
        result = random.choice(("static int", "int", "static void", "size_t", "static unsigned int", "double", "int"))
        note = f"/* {self.words.sentence()} {self.words.sentence()} */\n" if random.random() < 0.5 else ""
        body = self.statements(scope, "    ", 3, random.randrange(3, 9))
        last = "" if result.endswith("void") else f"    return {self.expression(scope, 1)};\n"
        self.functions.append((name, len(parameters)))
        return f"{note}{result} {name}({', '.join(parameters)})\n{{\n{body}{last}}}\n\n"


def items(random: Random) -> Iterator[str]:
    """The parts of an endless program, which may end after each."""
    program = _Program(random)
    yield program.header()
    yield program.define()
    yield program.struct()
    rare = (program.define, program.struct, program.struct, program.enum, program.table, program.typedef)
    while True:
        yield random.choice(rare)() if random.random() < 0.3 else program.function()
