"""Scripts in SQL: tables, indexes and views, rows, and questions about them."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from bench.code.words import Words, snake, words_of

_TAKEN = frozenset(
    words_of(
        """
        add all and as asc between by case cast check column commit constraint copy create cross current default
        delete desc distinct drop else end except exists filter first foreign from full group having if in index
        inner insert intersect into is join key last left like limit match not null nulls of offset on or order
        outer over partition plan primary query range references release rename replace restrict right rollback row
        rows select set table temporary then transaction trigger union unique update using values view when where
        window with
        """
    )
)
_TYPES = (
    ("INTEGER", "number"),
    ("BIGINT", "number"),
    ("REAL", "number"),
    ("NUMERIC(12, 2)", "number"),
    ("TEXT", "text"),
    ("VARCHAR(80)", "text"),
    ("DATE", "text"),
    ("TIMESTAMP", "text"),
    ("BOOLEAN", "number"),
)

Column = tuple[str, str]


class _Script:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.words = Words(random)
        self.tables: dict[str, list[Column]] = {}
        self.used = set(_TAKEN)

    def name(self, words: list[str]) -> str:
        name = snake(words)
        while name in self.used:
            name = f"{name}_{self.words.noun()}"
        self.used.add(name)
        return name

    # -- expressions ----------------------------------------------------------------------------

    def number(self) -> str:
        random = self.random
        return (
            str(random.randrange(1000))
            if random.random() < 0.8
            else f"{random.randrange(100)}.{random.randrange(100):02}"
        )

    def text(self) -> str:
        random = self.random
        kind = random.random()
        if kind < 0.4:
            return f"'{self.words.noun()}'"
        if kind < 0.6:
            return f"'20{random.randrange(10, 30)}-{random.randrange(1, 13):02}-{random.randrange(1, 29):02}'"
        if kind < 0.7:
            return f"'{self.words.noun()}''s {self.words.noun()}'"
        return f"'{self.words.phrase()}'"

    def pick(self, columns: list[Column], kind: str) -> str | None:
        fitting = [name for name, of in columns if of == kind]
        return self.random.choice(fitting) if fitting else None

    def scalar(self, columns: list[Column], depth: int) -> str:
        random = self.random
        kind = random.random()
        column = self.pick(columns, "number")
        if column is None or kind < 0.1:
            return self.number()
        if kind < 0.5 or depth <= 0:
            return column
        if kind < 0.75:
            return f"{column} {random.choice('+-*/%')} {self.scalar(columns, depth - 1)}"
        if kind < 0.83:
            return f"({self.scalar(columns, depth - 1)} {random.choice('+-')} {self.number()})"
        if kind < 0.92:
            function = random.choice(("round", "coalesce", "max", "min"))
            return f"{function}({self.scalar(columns, depth - 1)}, {self.number()})"
        if kind < 0.96:
            return f"CAST({self.scalar(columns, depth - 1)} AS {random.choice(('INTEGER', 'REAL', 'NUMERIC(10, 2)'))})"
        return (
            f"CASE WHEN {self.condition(columns, depth - 1)} THEN {self.scalar(columns, 0)} "
            f"ELSE {self.scalar(columns, 0)} END"
        )

    def word(self, columns: list[Column], depth: int) -> str:
        random = self.random
        column = self.pick(columns, "text")
        if column is None or random.random() < 0.15:
            return self.text()
        if depth <= 0 or random.random() < 0.6:
            return column
        return random.choice(
            (
                f"lower({column})",
                f"upper(trim({column}))",
                f"{column} || {self.text()}",
                f"substr({column}, 1, {random.randrange(2, 20)})",
                f"coalesce({column}, {self.text()})",
            )
        )

    def condition(self, columns: list[Column], depth: int) -> str:
        random = self.random
        kind = random.random()
        if depth > 0 and kind < 0.30:
            sign = random.choice(("AND", "OR", "AND"))
            return f"{self.condition(columns, depth - 1)} {sign} {self.condition(columns, depth - 1)}"
        if depth > 0 and kind < 0.35:
            return f"NOT ({self.condition(columns, depth - 1)})"
        if kind < 0.60:
            sign = random.choice(("=", "<>", "<", "<=", ">", ">="))
            return f"{self.scalar(columns, 1)} {sign} {self.scalar(columns, 1)}"
        if kind < 0.68:
            return f"{self.word(columns, 1)} {random.choice(('=', '<>', '>', '<'))} {self.text()}"
        if kind < 0.75:
            return f"{self.word(columns, 0)} {random.choice(('', 'NOT '))}LIKE '%{self.words.noun()}%'"
        if kind < 0.82:
            return f"{self.scalar(columns, 0)} BETWEEN {self.number()} AND {self.number()}"
        if kind < 0.88:
            return f"{random.choice(columns)[0]} IS {random.choice(('', 'NOT '))}NULL"
        if kind < 0.94 or depth <= 0:
            values = ", ".join(self.text() for _ in range(random.randrange(2, 5)))
            return f"{self.word(columns, 0)} IN ({values})"
        table, inner = self.table()
        chosen = random.choice(inner)[0]
        where = self.condition(inner, 0)
        return f"{self.scalar(columns, 0)} IN (SELECT {chosen} FROM {table} WHERE {where})"

    def table(self) -> tuple[str, list[Column]]:
        name = self.random.choice(list(self.tables)[-30:])
        return name, self.tables[name]

    # -- statements -----------------------------------------------------------------------------

    def comment(self) -> str:
        random = self.random
        if random.random() < 0.75:
            return f"-- {self.words.sentence()}\n"
        return f"/* {self.words.sentence()}\n   {self.words.sentence()} */\n"

    def create_table(self) -> str:
        random = self.random
        name = self.name([*self.words.thing()])
        columns: list[Column] = [("id", "number")]
        lines = ["id INTEGER PRIMARY KEY"]
        taken = {*_TAKEN, "id"}
        for _ in range(random.randrange(3, 8)):
            column = snake(self.words.thing())
            if column in taken:
                continue
            taken.add(column)
            of, kind = random.choice(_TYPES)
            line = f"{column} {of}"
            if random.random() < 0.4:
                line += " NOT NULL"
            if random.random() < 0.2:
                line += f" DEFAULT {self.number() if kind == 'number' else self.text()}"
            if random.random() < 0.1:
                line += " UNIQUE"
            if random.random() < 0.1 and kind == "number":
                line += f" CHECK ({column} >= {random.randrange(10)})"
            columns.append((column, kind))
            lines.append(line)
        if self.tables and random.random() < 0.6:
            other = random.choice(list(self.tables)[-30:])
            column = f"{other}_id"
            if column not in taken:
                columns.append((column, "number"))
                lines.append(
                    f"{column} INTEGER REFERENCES {other} (id) ON DELETE {random.choice(('CASCADE', 'SET NULL'))}"
                )
        if random.random() < 0.2:
            lines.append(f"UNIQUE ({', '.join(name for name, _ in columns[1:3])})")
        self.tables[name] = columns
        body = ",\n".join(f"    {line}" for line in lines)
        return f"CREATE TABLE {random.choice(('', 'IF NOT EXISTS '))}{name} (\n{body}\n);\n\n"

    def create_index(self) -> str:
        table, columns = self.table()
        chosen = self.random.sample([name for name, _ in columns], min(2, len(columns)))
        unique = self.random.choice(("", "", "UNIQUE "))
        return f"CREATE {unique}INDEX {self.name([*table.split('_'), 'index'])} ON {table} ({', '.join(chosen)});\n\n"

    def create_view(self) -> str:
        return f"CREATE VIEW {self.name([*self.words.thing(), 'view'])} AS\n{self.select('')};\n\n"

    def insert(self) -> str:
        random = self.random
        table, columns = self.table()
        rows = []
        for _ in range(random.randrange(1, 6)):
            values = [self.number() if kind == "number" else self.text() for _, kind in columns]
            values = ["NULL" if random.random() < 0.06 and at else value for at, value in enumerate(values)]
            rows.append(f"    ({', '.join(values)})")
        names = ", ".join(name for name, _ in columns)
        return f"INSERT INTO {table} ({names}) VALUES\n" + ",\n".join(rows) + ";\n\n"

    def update(self) -> str:
        table, columns = self.table()
        chosen = self.random.sample(columns, min(len(columns), self.random.randrange(1, 3)))
        parts = [
            f"{name} = {self.scalar(columns, 2) if kind == 'number' else self.word(columns, 1)}"
            for name, kind in chosen
        ]
        return f"UPDATE {table}\nSET {', '.join(parts)}\nWHERE {self.condition(columns, 2)};\n\n"

    def delete(self) -> str:
        table, columns = self.table()
        return f"DELETE FROM {table} WHERE {self.condition(columns, 1)};\n\n"

    def select(self, indent: str, depth: int = 1) -> str:
        random = self.random
        table, own = self.table()
        alias = table[0]
        columns = [(f"{alias}.{name}", kind) for name, kind in own]
        source = f"{table} AS {alias}" if random.random() < 0.5 else f"{table} {alias}"
        joins = ""
        for at in range(random.choice((0, 0, 1, 1, 2))):
            other, theirs = self.table()
            name = f"{other[0]}{at + 2}"
            left = self.pick(columns, "number")
            kind = random.choice(("JOIN", "LEFT JOIN", "INNER JOIN", "LEFT OUTER JOIN"))
            joins += f"\n{indent}{kind} {other} {name} ON {name}.id = {left}"
            columns += [(f"{name}.{column}", of) for column, of in theirs]
        grouped = random.random() < 0.35
        parts = []
        if grouped:
            keys = random.sample([name for name, _ in columns], min(2, len(columns)))
            parts += keys
            for _ in range(random.randrange(1, 3)):
                function = random.choice(("sum", "avg", "min", "max", "count"))
                distinct = "DISTINCT " if function == "count" and random.random() < 0.4 else ""
                parts.append(f"{function}({distinct}{self.scalar(columns, 1)}) AS {self.alias()}")
            if random.random() < 0.4:
                parts.append(f"count(*) AS {self.alias()}")
        else:
            for _ in range(random.randrange(1, 5)):
                part = self.scalar(columns, 2) if random.random() < 0.6 else self.word(columns, 1)
                parts.append(f"{part} AS {self.alias()}" if random.random() < 0.4 else part)
        distinct = random.choice(("", "", "", "DISTINCT "))
        text = f"{indent}SELECT {distinct}{', '.join(parts)}\n{indent}FROM {source}{joins}"
        if random.random() < 0.75:
            text += f"\n{indent}WHERE {self.condition(columns, 2)}"
        if depth and random.random() < 0.15:
            other, theirs = self.table()
            text += " AND" if "\n" + indent + "WHERE" in text else f"\n{indent}WHERE"
            text += f" EXISTS (\n{self.select(indent + '    ', 0)}\n{indent})"
        if grouped:
            text += f"\n{indent}GROUP BY {', '.join(keys)}"
            if random.random() < 0.4:
                text += f"\n{indent}HAVING count(*) > {random.randrange(20)}"
        return text

    def alias(self) -> str:
        name = snake(self.words.thing())
        return f"{name}_value" if name in _TAKEN else name

    def query(self) -> str:
        random = self.random
        head = ""
        if random.random() < 0.2:
            name = self.name([*self.words.thing(), "rows"])
            head = f"WITH {name} AS (\n{self.select('    ')}\n)\n"
        text = self.select("")
        if random.random() < 0.1:
            table, columns = self.table()
            sign = random.choice(("UNION", "UNION ALL", "EXCEPT"))
            text = f"SELECT {columns[0][0]} FROM {table}\n{sign}\nSELECT id FROM {self.table()[0]}"
        elif random.random() < 0.5:
            text += f"\nORDER BY 1{random.choice(('', ' DESC', ' ASC'))}"
        if random.random() < 0.4:
            text += f"\nLIMIT {random.randrange(1, 500)}"
            if random.random() < 0.3:
                text += f" OFFSET {random.randrange(100)}"
        return head + text + ";\n\n"

    def statement(self) -> str:
        random = self.random
        kind = random.random()
        if kind < 0.12:
            made = self.create_table()
        elif kind < 0.16:
            made = self.create_index()
        elif kind < 0.20:
            made = self.create_view()
        elif kind < 0.38:
            made = self.insert()
        elif kind < 0.48:
            made = self.update()
        elif kind < 0.53:
            made = self.delete()
        else:
            made = self.query()
        return (self.comment() if random.random() < 0.35 else "") + made


def items(random: Random) -> Iterator[str]:
    """The statements of an endless script."""
    script = _Script(random)
    for _ in range(3):
        yield script.comment() + script.create_table()
    while True:
        yield script.statement()
