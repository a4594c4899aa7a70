"""The grammars in ``grammars/``: what they must accept, and what they must not."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from lark import Lark, LarkError
from naive import NaiveRecognizer

from constrain.grammar.gbnf import from_gbnf
from constrain.grammar.ir import GrammarIR
from constrain.grammar.lark import from_lark

FOLDER = Path(__file__).resolve().parents[2] / "grammars"

JSON = (
    [
        "{}",
        "[]",
        " null ",
        "-0",
        "1.5e+10",
        '"\\u00e9 é \\n \\" 🎉"',
        '{"a": [1, 2, {"b": null}],\n\t"c": "x"}',
        "[[[]], {}]",
        '""',
    ],
    [
        "",
        "{",
        "[1,]",
        "{,}",
        "01",
        "1.",
        ".5",
        "+1",
        "'a'",
        '"\\x"',
        '"\t"',
        '{"a" 1}',
        "nul",
        "[1 2]",
        "{a: 1}",
        "1 2",
        '"a"b"',
    ],
)

SAMPLES: dict[str, tuple[list[str], list[str]]] = {
    "json.lark": JSON,
    "json.gbnf": JSON,
    "arithmetic.lark": (
        ["1", "1+2*3", " -x ^ -2 ", "(1.5e-3 + sin(x, 2)) / y_1", "2^3^4", "1 - -1"],
        ["", "1+", "*1", "(1", "1)", "f()", "1..2", "x y", "1 2", "2x"],
    ),
    "csv.lark": (
        ["", "a", "a,b,c", "a,b\n1,2", "a,b\r\n1,2\r\n", ",,", '"x, ""y""\nz",2', "é,\n"],
        ['"a', 'a"b', '"a"b', "a\rb", '"a""'],
    ),
    "iso_datetime.lark": (
        [
            "2024-02-29",
            "2000-02-29",
            "1999-12-31T23:59:59Z",
            "2024-01-31T00:00:00.123456789+05:30",
            "12:30:00",
            "2400-02-29",
            "2023-06-30T12:00:00",
        ],
        [
            "2023-02-29",
            "1900-02-29",
            "2024-04-31",
            "2024-13-01",
            "2024-00-10",
            "2024-1-1",
            "24:00:00",
            "12:60:00",
            "2024-01-01Z",
            "2024-01-01T",
            "2024-01-01T10:00",
            "12:00:00.",
        ],
    ),
    "toml.lark": (
        [
            "",
            'a=1\n# c\nb."c d" = [1, # e\n 2,\n]\n[t]\nd={e=1.5e3, f.g=true}\n[[u]]',
            "a = 1979-05-27T07:32:00Z\r\n",
            'a = """x\n"y" \\\n z"""',
            "a = '''b'c'''",
        ],
        ["a", "a=", "=1", "a=01", "a=1__0", "a={b=1,}", "a=[1,,2]", "[a", "a=1 b=2", 'a="\\q"', "a=2024-02-30"],
    ),
    "url.lark": (
        [
            "http://example.org",
            "https://user:pw@example.org:8080/a/b%20c/?q=1&r=a/b#top",
            "ftp://192.168.0.1/",
            "http://[2001:db8::1]:80/",
            "http://[::1]",
            "http://[::]",
            "wss://a-b.c./x;y=1",
            "http://[1:2:3:4:5:6:7:8]/",
            "http://[1::8]?",
            "http://@a#",
        ],
        [
            "http:/example.org",
            "mailto:a@b.c",
            "http://",
            "http://a b",
            "http://-a.org",
            "http://example.org/%2",
            "http://[1:2:3:4:5:6:7]/",
            "http://[1::2::3]",
            "http://a_b",
            "http://a/é",
            "http://a/#b#c",
            "http://a:65536",
        ],
    ),
    "markdown_table.lark": (
        ["|a|\n|-|", "| a | b |\n|:--|--:|\n| 1 | `x\\|y` |\n| 2 |\n", "|||\n|-|-|"],
        ["", "|a|", "|a|b|\n|-|", "|a|\n|-|-|", "a|b\n-|-", "|a|\n|--|\n\n|1|", "|a|\n|:|"],
    ),
    "javascript.lark": (
        [
            "let x = 1;",
            "const f = (a, { b = 2, ...c } = {}) => { return a + b; };",
            "class A extends B { constructor(x) { super(x); } static of() { return new A(1); } get y() { return 1; } }",
            "for (const [k, v] of Object.entries(o)) { if (!v) continue; else break; }",
            "switch (x) { case 1: y++; break; default: throw new Error(`no ${x}`); }",
            "a?.b?.(c)[0] ?? d; a ? .5 : b; x = - -y - -1; z = w ** -2;",
            "// c\nfunction f() { try { g(); } catch { return; } finally { } }",
        ],
        [
            "",
            "let x = 1",
            "return 1;",
            "break;",
            "{ a: 1, b: 2 };",
            "const x;",
            "x = a +++ b + ++c++;",
            "throw\nnew Error();",
            "x\n++;",
            "(a)\n=> a;",
            "a?.b = 1;",
            "-a ** b;",
            "a ?? b || c;",
            "x = 1.toString();",
            "if (a) let b = 1;",
            "x = a<!--b;",
        ],
    ),
    "sql.lark": (
        [
            "SELECT 1",
            "select * from t;",
            "SELECT a.x AS y, COUNT(*) FROM s.t AS a LEFT JOIN u ON a.id = u.id WHERE x > 1 AND NOT y IS NULL "
            "GROUP BY x HAVING SUM(y) >= 10 ORDER BY 1 DESC NULLS LAST, y LIMIT 10 OFFSET 5",
            "SELECT name FROM t WHERE id IN (SELECT id FROM u WHERE v BETWEEN 1 AND 2) UNION ALL SELECT 'it''s'",
            "SELECT CASE WHEN a=1 THEN 'x' ELSE NULL END, CAST(b AS DECIMAL(10,2)) FROM (SELECT 1 AS b) q",
            "WITH c AS (SELECT 1) SELECT * FROM c JOIN d USING (id) CROSS JOIN e",
            "INSERT INTO t (a, b) VALUES(1, 'x'), (:b, -2.5e3)",
            "INSERT INTO t SELECT * FROM u",
            'UPDATE "my table" SET a = a + 1, b = :b WHERE EXISTS (SELECT 1)',
            "DELETE FROM t WHERE a LIKE '%x_' OR a || b <> 'c'",
            "CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, name VARCHAR(40) NOT NULL DEFAULT 'x', "
            "CHECK (id > 0), CONSTRAINT f FOREIGN KEY (id) REFERENCES u (id) ON DELETE SET NULL)",
            "SELECT a -- the first\nFROM t /* all * of it */ WHERE selected = 1",
            "SELECT 1; SELECT 2;",
        ],
        [
            "",
            "SELECT",
            "SELECTa FROM t",
            "SELECT a FROM",
            "SELECT a FROM t WHERE",
            "SELECT from FROM t",
            "SELECT a b c FROM t",
            "INSERT t VALUES (1)",
            "UPDATE t SET a == 1",
            "INSERT INTO t VALUES (DEFAULT)",
            "ſelect 1",
            "SELECT a---1",
            "DELETE t",
            "CREATE TABLE t ()",
            "SELECT 'it's'",
            "SELECT (1",
            "SELECT 1 -- no line end",
            "SELECT 1--2",
            "SELECT a FROM t GROUP x",
            "SELECT 1 SELECT 2",
        ],
    ),
    "c.lark": (
        [
            "int x;",
            "int main(void) { return 0; }\n",
            '#include <stdio.h>\n#define N 10\nint main(int argc, char **argv) { printf("%d\\n", N); return(0); }',
            "typedef struct node { int value; struct node *next; } node_t;\n",
            "static const unsigned long long *p = &q, a[3] = {1, 2, 3}, b[] = {[0] = 1, [1].x = 2,};",
            "enum color { RED, GREEN = 1 << 2, BLUE, };",
            "void f(int (*g)(int, ...), char s[]) { for (int i = 0; i < 9; i++) { if (!g(i)) continue; else break; } }",
            "int f() { do x--; while (x > 0); switch (x) { case 1: case 'a': y = 2; break; default: ; } }",
            "int f() { goto end; end: return -x; }",
            "int x = a ? b : c, y = (int)z + sizeof(int) * sizeof x, w = p->q.r[1](2)++;",
            "int y = a && b || c & d | e ^ f == g << 2 % 3; // the end\n",
            "int y = a - -b, z = a / *p, w = *p * *q, v = - -u, t = a-b/c;",
            'long double d = 1.5e-3L; unsigned u = 0xFFu, o = 0777; char c = \'\\n\', *s = "a" "b\\x41";',
            "struct s { unsigned a : 3, : 2; int *b, c[2]; };",
            "int ifx = 1, returned;",
            "Tree *x; a_t f(a_t, Tree *y, int[]) { Tree y; x = (Tree){1}; { } }",
            "",
            "int x;\n#include <a>\n",
            "// c\n#define N 1 // n\n\n#if N\nint f() { return 0xFE + 0x1F; }",
        ],
        [
            "int",
            "intx = 1;",
            "int x",
            "int if;",
            "x = 1;",
            "int f() { returnx }",
            "int f( { }",
            "int f() { if x { } }",
            "int f() { x = ; }",
            "int f() { a--b; }",
            "int f() { x = a/*p; }",
            "int x = 08;",
            "char c = 'ab';",
            'char *s = "a;',
            "int f() { else x; }",
            "int x { }",
            "int a[3;",
            "struct { };",
            "int f() { case: ; }",
            "int x; #include <a>\n",
            "int x = a//* b */c;",
            "int x = 0xFE+1;",
            "int x = 1.x;",
            "T *x; T y;",
            "/* open",
        ],
    ),
}


@functools.cache
def recognizer(name: str) -> NaiveRecognizer:
    text = (FOLDER / name).read_text(encoding="utf-8")
    ir: GrammarIR = from_gbnf(text) if name.endswith(".gbnf") else from_lark(text)
    assert ir.warnings == ()
    return NaiveRecognizer(ir)


def test_every_grammar_file_has_samples() -> None:
    assert sorted(SAMPLES) == sorted(path.name for path in FOLDER.iterdir() if path.suffix in (".lark", ".gbnf"))


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_file_begins_with_a_comment_that_says_what_it_is(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8").startswith(("// ", "# "))


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, (good, _) in SAMPLES.items() for text in good])
def test_accepts(name: str, text: str) -> None:
    assert recognizer(name).accepts(text.encode())


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, (_, bad) in SAMPLES.items() for text in bad])
def test_rejects(name: str, text: str) -> None:
    assert not recognizer(name).accepts(text.encode())


@pytest.mark.parametrize("name", ["json.lark", "arithmetic.lark", "csv.lark", "iso_datetime.lark"])
def test_lark_itself_agrees(name: str) -> None:
    # Left out: the two large grammars, for which Lark's exhaustive lexer takes minutes, and the one for
    # URLs, of whose terminals it tries the first match and its beginnings only and so misses addresses.
    judge = Lark((FOLDER / name).read_text(encoding="utf-8"), parser="earley", lexer="dynamic_complete")
    good, bad = SAMPLES[name]
    for text in [*good, *bad]:
        try:
            judge.parse(text)
            accepted = True
        except LarkError:
            accepted = False
        assert accepted == (text in good), text


@pytest.mark.parametrize("name", sorted(name for name in SAMPLES if name.endswith(".lark")))
def test_lark_can_load_it_too(name: str) -> None:
    Lark((FOLDER / name).read_text(encoding="utf-8"), parser="earley", lexer="dynamic_complete")
