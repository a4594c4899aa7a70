"""Random grammars against Lark itself: its Earley parser with the exhaustive lexer is the judge.

Where the two differ on purpose is left out: look-around that sees past a terminal, lazy
quantifiers, alternation at the top of a regex that is followed by something, empty
terminals, and ignored terminals that overlap others (Lark only tries their longest match).
"""

from __future__ import annotations

import itertools
from random import Random

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from lark import Lark, LarkError, Token
from naive import NaiveRecognizer

from constrain.errors import GrammarError
from constrain.grammar.lark import from_lark
from constrain.grammar.lark.literals import read_pattern
from constrain.grammar.lark.source import Source

TEXTS = ["".join(letters) for length in range(4) for letters in itertools.product("ab", repeat=length)]
TEXTS += [" ", " a", "b ", "a b", "a  b", " ab ", "A", "aB", "a bA", "c", "abab", "bbaa", "abcab"]

TERMINALS = [
    'T: "a" | "ab"\n',
    'T: "a".."b"~1..2\n',
    "T: /[^a]b?/\n",
    'T: "b"i U\nU: ["a"] "b"+\n',
    'T: U~2 | "c"\nU: "a"\n',
    "T: /a+/ /b{1,2}/\n",
]
ATOMS = ['"a"', '"b"', '"ab"', "T", "T", "r", "s", '"A"i', '"a".."b"', "/[ab]/", '_t{"a", r}', "_t{s, T}"]
OPERATORS = ["", "", "?", "*", "+", "~2", "~0..2", "~1..3"]


def expression(random: Random) -> str:
    """An atom, or sometimes a group; nesting is kept low, as Lark's time grows fast with ambiguity."""
    if random.random() < 0.75:
        return random.choice(ATOMS) + random.choice(["", "", random.choice(OPERATORS)])
    inner = " | ".join(
        " ".join(random.choice(ATOMS) for _ in range(random.randint(1, 2))) for _ in range(random.randint(1, 2))
    )
    return f"[{inner}]" if random.random() < 0.3 else f"({inner}){random.choice(OPERATORS)}"


def alternatives(random: Random, least: int) -> str:
    return "\n    | ".join(
        " ".join(expression(random) for _ in range(random.choice([least, 1, 1, 2, 2, 3])))
        for _ in range(random.randint(1, 3))
    )


def grammar_of(random: Random) -> str:
    return (
        f"start: {alternatives(random, 1)}\n?r: {alternatives(random, 0)}\ns.3: {alternatives(random, 1)}\n"
        f"""_t{{x, y}}: x [y] | {random.choice(["y", "y x", "x y x", ""])}\n"""
        + random.choice(TERMINALS)
        + random.choice(["", '%ignore " "\n', '%ignore " " | "c"\n', "%ignore / /\n%ignore / b/\n"])
    )


def judged(judge: Lark, text: str) -> bool | None:
    """Whether Lark accepts the text; None where it stumbles over itself (an empty start and something to ignore)."""
    try:
        judge.parse(text)
    except LarkError:
        return False
    except RuntimeError as error:
        if "multiple start symbol items" not in str(error):
            raise
        return None
    return True


def test_accepts_what_lark_accepts() -> None:
    random = Random(1)
    compared = accepted = 0
    for _ in range(200):
        grammar = grammar_of(random)
        recognizer = NaiveRecognizer(from_lark(grammar))
        try:
            judge = Lark(grammar, parser="earley", lexer="dynamic_complete", ambiguity="forest")
        except LarkError as error:
            # Lark refuses two ways to write the same alternative; there is nothing wrong with them here.
            if "Rules defined twice" not in str(error):
                raise
            continue
        for text in random.sample(TEXTS, 15):
            judgement = judged(judge, text)
            assert judgement in (None, recognizer.accepts(text.encode())), (grammar, text)
            compared += judgement is not None
            accepted += judgement is True
    # The comparison would be empty if most grammars were refused, or most texts rejected.
    assert compared > 1500
    assert 250 < accepted < compared - 250


SNIPPETS = (
    'start : a A "x" /y/i | ( ) [ ] * + ? ~ 2 .. -> { } , . ! %ignore %import common WS %declare %override %extend'
)


@settings(max_examples=150)
@given(st.lists(st.sampled_from([*SNIPPETS.split(), "\n", "\n|", "// c\n", "# c", "\\\n"]), max_size=14).map(" ".join))
def test_any_text_is_a_grammar_or_one_clear_error(text: str) -> None:
    refusal = None
    try:
        from_lark(text)
    except GrammarError as error:
        refusal = error
    if refusal is not None:
        assert refusal.line is not None
        assert refusal.column is not None
        assert "\n" not in str(refusal)


@settings(max_examples=150)
@given(st.text(alphabet="\\\"'nxu/e9d0 a", max_size=8))
def compare_escapes(compared: list[str], text: str) -> None:
    raw = text.replace("/", "\\/")
    for token in (f'"{raw}"', f"/{raw}x/"):
        # Lark evaluates a repeated escape of a backslash once more in strings; nobody means that.
        assume("\\x5c" not in token)
        try:
            judge = Lark(f"start: A\nA: {token}", parser="lalr")
        except (LarkError, ValueError):
            continue
        value = judge.terminals[0].pattern.value
        if '"' in token[1:-1].replace('\\"', ""):
            continue  # several tokens
        if token[0] == '"':
            assert NaiveRecognizer(from_lark(f"start: {token}")).accepts(value.encode())
        else:
            assert read_pattern(Token("REGEXP", token, line=1, column=1), Source("", None)).text == value
        compared.append(token)


def test_escapes_are_read_as_lark_reads_them() -> None:
    compared: list[str] = []
    compare_escapes(compared)
    assert sum(token[0] == '"' for token in compared) > 30
    assert sum(token[0] == "/" for token in compared) > 30
