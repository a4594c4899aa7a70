"""Crates in a Rust-like language: structs, enums, traits, implementations, and functions with matches and closures."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from bench.code.words import Words, constant, pascal, snake, words_of

_TAKEN = frozenset(
    words_of(
        """
        abstract as async await become box break const continue crate do dyn else enum extern false final fn for if impl
        in let loop macro match mod move mut override priv pub ref return self static struct super trait true try type
        typeof unsafe unsized use virtual where while yield union
        """
    )
)
_NUMBERS = ("u8", "u16", "u32", "u64", "usize", "i32", "i64", "f64")
_USES = (
    "std::collections::HashMap",
    "std::collections::{BTreeMap, HashSet}",
    "std::fmt",
    "std::io::{self, Read, Write}",
    "std::path::{Path, PathBuf}",
    "std::sync::{Arc, Mutex}",
    "std::time::Duration",
)
_DERIVES = ("Clone", "Copy", "Debug", "Default", "PartialEq", "Eq", "Hash")
_METHODS = (
    "iter",
    "len",
    "clone",
    "unwrap_or_default",
    "as_ref",
    "to_string",
    "is_empty",
    "max",
    "min",
    "contains",
    "get",
)


class _Scope:
    """The names of a body."""

    def __init__(self, names: list[str], attributes: list[str]) -> None:
        self.names, self.attributes = names, attributes

    def inner(self, *more: str) -> _Scope:
        return _Scope([*self.names, *more], self.attributes)


class _Crate:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.words = Words(random)
        self.functions: list[str] = []
        self.structs: dict[str, list[str]] = {}
        self.enums: dict[str, list[tuple[str, int]]] = {}
        self.constants: list[str] = []
        self.used: set[str] = set(_TAKEN)

    def name(self, words: list[str], taken: list[str] | tuple[str, ...] = ()) -> str:
        name = snake(words)
        while name in taken or name in _TAKEN:
            name = f"{name}_{self.words.noun()}"
        return name

    def global_name(self, name: str, join: str = "") -> str:
        while name in self.used:
            more = self.words.noun()
            name += join + (more if join else more.capitalize())
        self.used.add(name)
        return name

    def type(self, depth: int = 1) -> str:
        random = self.random
        kind = random.random()
        if kind < 0.4 or depth <= 0:
            return random.choice((*_NUMBERS, "bool", "String"))
        if kind < 0.55 and self.structs:
            return random.choice(list(self.structs)[-12:])
        if kind < 0.7:
            return f"Vec<{self.type(depth - 1)}>"
        if kind < 0.8:
            return f"Option<{self.type(depth - 1)}>"
        if kind < 0.87:
            return f"HashMap<String, {self.type(depth - 1)}>"
        if kind < 0.95:
            return f"&{random.choice(('', '', 'mut '))}{self.type(depth - 1)}"
        return f"[{random.choice(_NUMBERS)}; {random.choice((4, 16, 32))}]"

    # -- expressions ----------------------------------------------------------------------------

    def number(self) -> str:
        random = self.random
        kind = random.random()
        if kind < 0.75:
            return str(random.choice((0, 1, 2, 3, 10, 64, 100, 255, 1024, random.randrange(9999))))
        if kind < 0.85:
            return f"{random.randrange(1, 200)}{random.choice(_NUMBERS[:7])}"
        return random.choice(
            (
                f"0x{random.randrange(65536):04x}",
                f"{random.randrange(10)}.{random.randrange(100)}",
                f"{random.randrange(9)}_000",
            )
        )

    def place(self, scope: _Scope) -> str:
        random = self.random
        kind = random.random()
        if kind < 0.35 and scope.attributes:
            return f"self.{random.choice(scope.attributes)}"
        if scope.names:
            base = random.choice(scope.names)
            if kind < 0.75:
                return base
            if kind < 0.9:
                return f"{base}.{self.name(self.words.thing())}"
            return f"{base}[{random.choice((self.number(), random.choice(scope.names)))}]"
        return random.choice(self.constants) if self.constants else "DEFAULT"

    def closure(self, scope: _Scope, depth: int) -> str:
        own = self.name([self.words.noun()], scope.names)
        inner = scope.inner(own)
        head = self.random.choice((own, own, f"&{own}"))
        move = self.random.choice(("", "", "move "))
        body = self.expression(inner, depth - 1) if self.random.random() < 0.6 else self.condition(inner, 0)
        return f"{move}|{head}| {body}"

    def call(self, scope: _Scope, depth: int) -> str:
        random = self.random
        kind = random.random()
        arguments = [self.expression(scope, depth - 1) for _ in range(random.randrange(4))]
        if kind < 0.3 and self.functions:
            name = random.choice(self.functions[-40:])
        elif kind < 0.5:
            name = f"{self.place(scope)}.{self.name(self.words.action())}"
        elif kind < 0.7:
            name, arguments = f"{self.place(scope)}.{random.choice(_METHODS)}", arguments[:1]
        elif kind < 0.85:
            what = random.choice(("map", "filter", "any", "for_each", "position"))
            end = random.choice((".collect::<Vec<_>>()", ".count()", ".sum::<u64>()", ".next()"))
            return f"{self.place(scope)}.iter().{what}({self.closure(scope, depth)}){end}"
        elif self.structs and kind < 0.93:
            name = f"{random.choice(list(self.structs)[-12:])}::{random.choice(('new', 'from', 'default'))}"
        else:
            name = random.choice(("Some", "Ok", "Err", "Box::new", "Arc::new", "String::from"))
            arguments = [self.expression(scope, depth - 1)]
        return f"{name}({', '.join(arguments)}){'?' if random.random() < 0.12 else ''}"

    def literal(self, scope: _Scope, depth: int) -> str:
        random = self.random
        name = random.choice(list(self.structs)[-12:])
        parts = [
            member if random.random() < 0.2 else f"{member}: {self.expression(scope, depth - 1)}"
            for member in self.structs[name]
        ]
        return f"{name} {{ {', '.join(parts)} }}"

    def primary(self, scope: _Scope, depth: int, in_head: bool = False) -> str:
        random = self.random
        kind = random.random()
        if kind < 0.45:
            return self.place(scope)
        if kind < 0.65 and depth > 0:
            return self.call(scope, depth)
        if kind < 0.71 and depth > 0:
            return f"({self.expression(scope, depth - 1)})"
        if kind < 0.77:
            return f'"{self.words.phrase()}"'
        if kind < 0.80 and depth > 0:
            return f"vec![{', '.join(self.expression(scope, depth - 1) for _ in range(random.randrange(1, 4)))}]"
        if kind < 0.83 and depth > 0:
            return f'format!("{self.words.phrase()}: {{}}", {self.expression(scope, depth - 1)})'
        if kind < 0.86 and self.structs and depth > 0 and not in_head:
            return self.literal(scope, depth)
        if kind < 0.90 and self.constants:
            return random.choice(self.constants)
        if kind < 0.93:
            return random.choice(("None", "true", "false", "'\\n'", "'a'", "b'x'"))
        return self.number()

    def expression(self, scope: _Scope, depth: int) -> str:
        random = self.random
        kind = random.random()
        if depth <= 0 or kind < 0.5:
            return self.primary(scope, depth)
        if kind < 0.75:
            sign = random.choice(("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", "+", "-"))
            return f"{self.primary(scope, depth - 1)} {sign} {self.expression(scope, depth - 1)}"
        if kind < 0.83:
            return f"{random.choice(('-', '!', '&', '*', '&mut '))}{self.place(scope)}"
        if kind < 0.90:
            return f"{self.place(scope)} as {random.choice(_NUMBERS)}"
        if kind < 0.94:
            return f"if {self.condition(scope, 0)} {{ {self.primary(scope, 0)} }} else {{ {self.primary(scope, 0)} }}"
        return self.primary(scope, depth)

    def condition(self, scope: _Scope, depth: int) -> str:
        random = self.random
        kind = random.random()
        if depth > 0 and kind < 0.25:
            sign = random.choice(("&&", "||"))
            return f"{self.condition(scope, depth - 1)} {sign} {self.condition(scope, depth - 1)}"
        if kind < 0.4:
            return f"!{self.place(scope)}.is_{random.choice(('empty', 'some', 'none', 'ok'))}()"
        sign = random.choice(("==", "!=", "<", "<=", ">", ">="))
        return f"{self.place(scope)} {sign} {self.primary(scope, 0, in_head=True)}"

    # -- statements -----------------------------------------------------------------------------

    def block(self, scope: _Scope, indent: str, depth: int, count: int = 0) -> str:
        inner = scope.inner()
        count = count or self.random.randrange(1, 4)
        lines = "".join(f"{indent}    {self.statement(inner, indent + '    ', depth)}\n" for _ in range(count))
        return f"{{\n{lines}{indent}}}"

    def statement(self, scope: _Scope, indent: str, depth: int) -> str:
        random = self.random
        kind = random.random()
        if kind < 0.07:
            return f"// {self.words.sentence()}\n{indent}{self.statement(scope, indent, depth)}"
        if kind < 0.34:
            value = self.expression(scope, 3)
            own = self.name(self.words.thing(), scope.names)
            scope.names.append(own)
            note = f": {self.type()}" if random.random() < 0.2 else ""
            return f"let {random.choice(('', '', 'mut '))}{own}{note} = {value};"
        if kind < 0.46 or depth <= 0:
            return (
                f"{self.place(scope)} {random.choice(('=', '=', '+=', '-=', '|=', '<<='))} {self.expression(scope, 2)};"
            )
        if kind < 0.54:
            return f"{self.call(scope, 2)};"
        if kind < 0.60:
            name = random.choice(("println", "eprintln", "log::debug", "assert"))
            given = f'"{self.words.phrase()}: {{:?}}", {self.expression(scope, 1)}'
            return f"{name}!({self.condition(scope, 0) if name == 'assert' else given});"
        if kind < 0.78:
            return self.branch(scope, indent, depth)
        if kind < 0.88:
            return self.loop(scope, indent, depth)
        return self.match(scope, indent, depth)

    def branch(self, scope: _Scope, indent: str, depth: int) -> str:
        random = self.random
        kind = random.random()
        if kind < 0.2:
            own = self.name([self.words.noun()], scope.names)
            head = f"if let {random.choice(('Some', 'Ok'))}({own}) = {self.place(scope)} "
            return head + self.block(scope.inner(own), indent, depth - 1)
        text = f"if {self.condition(scope, 2)} "
        if kind < 0.4:
            return f"{text}{{\n{indent}    return {self.expression(scope, 1)};\n{indent}}}"
        text += self.block(scope, indent, depth - 1)
        while random.random() < 0.15:
            text += f" else if {self.condition(scope, 1)} {self.block(scope, indent, depth - 1)}"
        return text + f" else {self.block(scope, indent, depth - 1)}" * (random.random() < 0.3)

    def loop(self, scope: _Scope, indent: str, depth: int) -> str:
        random = self.random
        kind = random.random()
        if kind < 0.15:
            return f"while {self.condition(scope, 1)} {self.block(scope, indent, depth - 1)}"
        if kind < 0.25:
            body = self.block(scope, indent, depth - 1).removesuffix(f"{indent}}}")
            pad = indent + "    "
            end = f"{pad}if {self.condition(scope, 0)} {{\n{pad}    break;\n{pad}}}\n"
            return f"loop {body}{end}{indent}}}"
        own = self.name([self.words.noun()], scope.names)
        names, over = own, f"{random.choice(('', '&', '&mut '))}{self.place(scope)}"
        if random.random() < 0.3:
            over = f"{random.choice((0, 0, 1))}{random.choice(('..', '..', '..='))}{self.place(scope)}"
        elif random.random() < 0.3:
            names, over = f"(index, {own})", f"{self.place(scope)}.iter().enumerate()"
        return f"for {names} in {over} {self.block(scope.inner(own), indent, depth - 1)}"

    def match(self, scope: _Scope, indent: str, depth: int) -> str:
        random = self.random
        text = f"match {self.place(scope)} {{\n"
        pad = indent + "    "
        kind = random.random()
        if kind < 0.5 and self.enums:
            name = random.choice(list(self.enums)[-8:])
            for variant, count in random.sample(self.enums[name], min(3, len(self.enums[name]))):
                inner = scope.inner()
                held = [self.name([self.words.noun()], inner.names) for _ in range(count)]
                inner.names += held
                pattern = f"{name}::{variant}" + (f"({', '.join(held)})" if held else "")
                text += f"{pad}{pattern} => {self.arm(inner, pad, depth)}\n"
        elif kind < 0.75:
            own = self.name([self.words.noun()], scope.names)
            guard = f" if {self.condition(scope.inner(own), 0)}" if random.random() < 0.3 else ""
            text += f"{pad}Some({own}){guard} => {self.arm(scope.inner(own), pad, depth)}\n"
        else:
            values = random.sample(range(100), 3)
            text += f"{pad}{values[0]} | {values[1]} => {self.arm(scope, pad, depth)}\n"
            text += f"{pad}{values[2]}..={values[2] + 9} => {self.arm(scope, pad, depth)}\n"
        return f"{text}{pad}_ => {self.arm(scope, pad, depth)}\n{indent}}}"

    def arm(self, scope: _Scope, indent: str, depth: int) -> str:
        if depth > 0 and self.random.random() < 0.4:
            return self.block(scope, indent, depth - 1, 1)
        return f"{self.expression(scope, 1)},"

    # -- items ----------------------------------------------------------------------------------

    def header(self) -> str:
        text = f"//! {self.words.sentence()}\n//! {self.words.sentence()}\n\n"
        return text + "".join(f"use {name};\n" for name in sorted(self.random.sample(_USES, 4))) + "\n"

    def constant(self) -> str:
        name = self.global_name(constant(self.words.thing()), "_")
        self.constants.append(name)
        return f"const {name}: {self.random.choice(_NUMBERS)} = {self.number()};\n\n"

    def derive(self) -> str:
        return f"#[derive({', '.join(sorted(self.random.sample(_DERIVES, self.random.randrange(1, 4))))})]\n"

    def struct(self) -> str:
        random = self.random
        name = self.global_name(pascal(self.words.thing()))
        members: list[str] = []
        text = ""
        for _ in range(random.randrange(2, 7)):
            member = self.name(self.words.thing(), members)
            members.append(member)
            if random.random() < 0.2:
                text += f"    /// {self.words.sentence()}\n"
            text += (
                f"    {random.choice(('', 'pub '))}{member}: {self.type(2).replace('&mut ', '').replace('&', '')},\n"
            )
        self.structs[name] = members
        note = f"/// {self.words.sentence()}\n" if random.random() < 0.6 else ""
        return f"{note}{self.derive()}pub struct {name} {{\n{text}}}\n\n"

    def enum(self) -> str:
        random = self.random
        name = self.global_name(pascal([*self.words.thing(), "kind"]))
        variants: dict[str, int] = {}
        for _ in range(random.randrange(3, 7)):
            variants[pascal(self.words.thing())] = random.choice((0, 0, 1, 2))
        self.enums[name] = list(variants.items())
        lines = []
        for variant, count in variants.items():
            held = ", ".join(random.choice((*_NUMBERS, "String")) for _ in range(count))
            lines.append(f"    {variant}({held}),\n" if held else f"    {variant},\n")
        return f"{self.derive()}pub enum {name} {{\n{''.join(lines)}}}\n\n"

    def parameters(self, names: list[str]) -> str:
        parts = []
        for _ in range(self.random.randrange(1, 4)):
            own = self.name(self.words.thing(), names)
            names.append(own)
            parts.append(f"{own}: {self.type()}")
        return ", ".join(parts)

    def function(self, indent: str = "", attributes: list[str] | None = None) -> str:
        random = self.random
        name = self.name(self.words.action())
        names: list[str] = []
        note = f"{indent}/// {self.words.sentence()}\n" if random.random() < 0.5 else ""
        parameters = self.parameters(names)
        generic = ""
        if attributes is not None:
            parameters = f"{random.choice(('&self', '&self', '&mut self'))}, {parameters}"
        elif random.random() < 0.2:
            own = self.name(self.words.thing(), names)
            names.append(own)
            generic, parameters = "<'a, T: Clone + Into<String>>", f"{parameters}, {own}: &'a [T]"
        result = random.choice(("", f" -> {self.type()}", f" -> Result<{self.type(0)}, io::Error>"))
        # A reference would need a lifetime.
        result = result.replace("&mut ", "").replace("&", "")
        scope = _Scope(names, attributes or [])
        lines = [self.statement(scope, indent + "    ", 3) for _ in range(random.randrange(2, 7))]
        if result:
            lines.append(self.expression(scope, 2))
        body = "".join(f"{indent}    {line}\n" for line in lines)
        if attributes is None:
            self.functions.append(name)
        head = random.choice(("", "pub ", "pub(crate) "))
        return f"{note}{indent}{head}fn {name}{generic}({parameters}){result} {{\n{body}{indent}}}\n\n"

    def implementation(self) -> str:
        random = self.random
        name = random.choice(list(self.structs)[-12:])
        members = self.structs[name]
        text = f"impl {name} {{\n"
        if random.random() < 0.2:
            text = f"impl {self.trait_name()} for {name} {{\n"
        for _ in range(random.randrange(1, 4)):
            text += self.function("    ", members)
        return f"{text.rstrip()}\n}}\n\n"

    def trait_name(self) -> str:
        return self.random.choice(("fmt::Display", "Iterator", "Default", "Drop", "From<u32>"))

    def trait(self) -> str:
        name = self.global_name(pascal(self.words.action()))
        text = f"pub trait {name} {{\n    type Item;\n\n"
        for _ in range(self.random.randrange(1, 4)):
            text += f"    fn {self.name(self.words.action())}(&self, {self.parameters([])}) -> Option<Self::Item>;\n"
        return text + "}\n\n"


def items(random: Random) -> Iterator[str]:
    """The items of an endless crate."""
    crate = _Crate(random)
    yield crate.header()
    yield crate.struct()
    yield crate.enum()
    while True:
        kind = random.random()
        if kind < 0.08:
            yield crate.constant()
        elif kind < 0.2:
            yield crate.struct()
        elif kind < 0.27:
            yield crate.enum()
        elif kind < 0.32:
            yield crate.trait()
        elif kind < 0.6:
            yield crate.implementation()
        else:
            yield crate.function()
