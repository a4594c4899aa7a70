"""Documents in GraphQL: types, inputs, enums, and the queries, mutations and fragments that use them."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from bench.code.words import Words, camel, constant, pascal

Field = tuple[str, str]

_SCALARS = ("Int", "Float", "String", "Boolean", "ID", "DateTime")
_KEYWORDS = frozenset({"on", "fragment", "query", "mutation", "subscription", "true", "false", "null"})


class _Document:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.words = Words(random)
        self.types: dict[str, list[Field]] = {}
        self.enums: dict[str, list[str]] = {}
        self.fragments: list[tuple[str, str]] = []
        self.used: set[str] = set(_SCALARS)

    def name(self, words: list[str]) -> str:
        name = pascal(words)
        while name in self.used:
            name += self.words.noun().capitalize()
        self.used.add(name)
        return name

    def field_name(self, taken: set[str]) -> str:
        name = camel(self.words.thing())
        while name in taken or name in _KEYWORDS:
            name += self.words.noun().capitalize()
        taken.add(name)
        return name

    # -- types ----------------------------------------------------------------------------------

    def type(self) -> str:
        random = self.random
        kind = random.random()
        if kind < 0.55 or not self.types:
            name = random.choice(_SCALARS)
        elif kind < 0.65 and self.enums:
            name = random.choice(list(self.enums)[-10:])
        else:
            name = random.choice(list(self.types)[-20:])
        if random.random() < 0.25:
            name = f"[{name}{random.choice(('', '!'))}]"
        return name + random.choice(("", "!"))

    def description(self, indent: str) -> str:
        random = self.random
        kind = random.random()
        if kind < 0.5:
            return ""
        if kind < 0.7:
            return f'{indent}"{self.words.sentence()}"\n'
        if kind < 0.85:
            return f"{indent}# {self.words.sentence()}\n"
        return f'{indent}"""\n{indent}{self.words.sentence()}\n{indent}{self.words.sentence()}\n{indent}"""\n'

    def default(self, of: str) -> str:
        random = self.random
        bare = of.strip("[]!")
        if of.startswith("["):
            return "[]"
        if bare == "Int":
            return str(random.randrange(-5, 100))
        if bare == "Float":
            return f"{random.randrange(100)}.{random.randrange(100)}"
        if bare == "Boolean":
            return random.choice(("true", "false"))
        if bare in self.enums:
            return random.choice(self.enums[bare])
        if bare in _SCALARS:
            return f'"{self.words.phrase()}"'
        return "null"

    def inputs(self, indent: str, count: int) -> list[str]:
        taken: set[str] = set()
        made = []
        for _ in range(count):
            of = self.random.choice(("Int", "String", "ID", "Boolean", "Float", "[ID!]", "[String]", "Int!", "ID!"))
            text = f"{indent}{self.field_name(taken)}: {of}"
            if self.random.random() < 0.25 and not of.endswith("!"):
                text += f" = {self.default(of)}"
            made.append(text)
        return made

    def fields(self) -> tuple[list[Field], str]:
        random = self.random
        taken: set[str] = {"id"}
        fields: list[Field] = [("id", "ID!")]
        text = "  id: ID!\n"
        for _ in range(random.randrange(3, 9)):
            name, of = self.field_name(taken), self.type()
            fields.append((name, of))
            arguments = f"({', '.join(self.inputs('', random.randrange(1, 3)))})" if random.random() < 0.15 else ""
            note = ""
            if random.random() < 0.08:
                note = f' @deprecated(reason: "{self.words.sentence()}")'
            text += f"{self.description('  ')}  {name}{arguments}: {of}{note}\n"
        return fields, text

    def object(self) -> str:
        name = self.name(self.words.thing())
        fields, text = self.fields()
        head = self.description("")
        kind = self.random.choice(("type", "type", "type", "interface"))
        self.types[name] = fields
        interface = f" implements {self.name([*self.words.thing(), 'node'])}" if self.random.random() < 0.15 else ""
        return f"{head}{kind} {name}{interface} {{\n{text}}}\n\n"

    def enum(self) -> str:
        name = self.name([*self.words.thing(), "kind"])
        values = list(dict.fromkeys(constant(self.words.thing()) for _ in range(self.random.randrange(3, 8))))
        self.enums[name] = values
        body = "".join(f"{self.description('  ')}  {value}\n" for value in values)
        return f"{self.description('')}enum {name} {{\n{body}}}\n\n"

    def input(self) -> str:
        name = self.name([*self.words.action(), "input"])
        body = "\n".join(self.inputs("  ", self.random.randrange(3, 7)))
        return f"{self.description('')}input {name} {{\n{body}\n}}\n\n"

    def other(self) -> str:
        random = self.random
        kind = random.random()
        if kind < 0.4:
            members = random.sample(list(self.types), min(3, len(self.types)))
            return f"union {self.name([*self.words.thing(), 'result'])} = {' | '.join(members)}\n\n"
        if kind < 0.7:
            return f'scalar {self.name(self.words.thing())} @specifiedBy(url: "https://example.com/{self.words.noun()}")\n\n'
        name = camel(self.words.action())
        return f"directive @{name}({', '.join(self.inputs('', 2))}) on FIELD_DEFINITION | OBJECT\n\n"

    # -- operations -----------------------------------------------------------------------------

    def value(self, variables: list[str], depth: int) -> str:
        random = self.random
        kind = random.random()
        if kind < 0.35 and variables:
            return f"${random.choice(variables)}"
        if kind < 0.5:
            return str(random.randrange(1000))
        if kind < 0.7:
            return f'"{self.words.phrase()}"'
        if kind < 0.8 and self.enums:
            return random.choice(self.enums[random.choice(list(self.enums))])
        if depth <= 0:
            return random.choice(("true", "false", "null", "2.5"))
        if kind < 0.9:
            inner = ", ".join(f"{camel(self.words.thing())}: {self.value(variables, depth - 1)}" for _ in range(2))
            return f"{{{inner}}}"
        return f"[{', '.join(self.value(variables, depth - 1) for _ in range(random.randrange(1, 4)))}]"

    def selections(self, of: str, variables: list[str], indent: str, depth: int) -> str:
        random = self.random
        fields = self.types[of]
        lines = []
        for name, kind in random.sample(fields, random.randrange(1, len(fields) + 1)):
            inner = kind.strip("[]!")
            line = f"{camel(self.words.thing())}: {name}" if random.random() < 0.12 else name
            if random.random() < 0.2:
                given = ", ".join(
                    f"{camel(self.words.thing())}: {self.value(variables, 2)}" for _ in range(random.randrange(1, 3))
                )
                line += f"({given})"
            if random.random() < 0.06 and variables:
                line += f" @{random.choice(('include', 'skip'))}(if: ${random.choice(variables)})"
            if inner in self.types:
                if depth <= 0:
                    line += " { id }"
                else:
                    line += f" {{\n{self.selections(inner, variables, indent + '  ', depth - 1)}{indent}}}"
            lines.append(line)
        if random.random() < 0.12 and self.fragments:
            lines.append(f"...{random.choice(self.fragments)[0]}")
        if random.random() < 0.12:
            other = random.choice(list(self.types)[-20:])
            lines.append(f"... on {other} {{\n{self.selections(other, variables, indent + '  ', 0)}{indent}}}")
        if random.random() < 0.1:
            lines.insert(0, f"# {self.words.phrase()}\n{indent}__typename")
        return "".join(f"{indent}{line}\n" for line in lines)

    def operation(self) -> str:
        random = self.random
        kind = random.choice(("query", "query", "query", "mutation", "subscription"))
        taken: set[str] = set()
        variables = [self.field_name(taken) for _ in range(random.randrange(4))]
        text = f"{kind} {pascal(self.words.action())}"
        if variables:
            parts = []
            for name in variables:
                of = random.choice(("Int", "ID!", "String", "[ID!]!", "Boolean", "Float"))
                default = f" = {self.default(of)}" if random.random() < 0.3 and not of.endswith("!") else ""
                parts.append(f"${name}: {of}{default}")
            text += f"({', '.join(parts)})"
        text += " {\n"
        for _ in range(random.randrange(1, 4)):
            of = random.choice(list(self.types)[-20:])
            given = ""
            if random.random() < 0.7:
                made = [
                    f"{camel(self.words.thing())}: {self.value(variables, 2)}" for _ in range(random.randrange(1, 4))
                ]
                given = f"({', '.join(made)})"
            body = self.selections(of, variables, "    ", random.randrange(1, 4))
            text += f"  {camel(self.words.thing())}{given} {{\n{body}  }}\n"
        return text + "}\n\n"

    def fragment(self) -> str:
        of = self.random.choice(list(self.types)[-20:])
        name = f"{camel(self.words.thing())}Fields"
        text = f"fragment {name} on {of} {{\n{self.selections(of, [], '  ', 1)}}}\n\n"
        self.fragments.append((name, of))
        return text


def items(random: Random) -> Iterator[str]:
    """The definitions of an endless document."""
    document = _Document(random)
    for _ in range(3):
        yield document.object()
    yield document.enum()
    while True:
        kind = random.random()
        if kind < 0.25:
            yield document.object()
        elif kind < 0.32:
            yield document.enum()
        elif kind < 0.40:
            yield document.input()
        elif kind < 0.45:
            yield document.other()
        elif kind < 0.55:
            yield document.fragment()
        else:
            yield document.operation()
