"""Masks by core: the same as without, for grammars whose texts have ever new stacks of unfinished rules."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.engine.masks.accelerators import NAMES
from constrain.engine.parser.configurations import IN_ROOTS
from constrain.engine.storage.header import LONG_WALKS
from constrain.engine.storage.schemas import RUNS, SOURCES, STATE_HASHES, STATE_MASKS

WITHOUT = [name for name in NAMES if name != "core_masks"]

EXPRESSIONS = """
start: statement+
statement: NAME "=" expression ";" | "if" "(" expression ")" statement ["else" statement] | "{" statement* "}"
expression: sum | NAME "=" expression
sum: product | sum ("+" | "-") product
product: unary | product "*" unary
unary: "-" unary | postfix
postfix: atom | postfix "(" [expression ("," expression)*] ")" | postfix "[" expression "]" | postfix "." NAME
atom: NAME | NUMBER | "(" expression ")"
NAME: /[a-z]+/
NUMBER: /[0-9]+/
%ignore /[ \\n]+/
"""
# Each byte of a name may end it, and the next name begin.
NAMES_IN_ROWS = """
start: row
row: "(" item* ")"
item: NAME [NAME] | row | NAME ":" item
NAME: /[a-z]+/
%ignore / +/
"""
AMBIGUOUS = """
start: s
s: s s | "(" s ")" | "[" s "]" | "a" | "a" "b" | s "+" s
"""
RIGHT = """
start: list
list: "a" tail | "(" list ")"
tail: "," list | "." | ":" tail
"""
# Rules that may be empty, behind others that end with them.
EMPTY = """
start: a
a: "(" b c ")" | "x" c
b: a | "y" b |
c: "," a | "-" c |
"""
NESTED_JSON = """
start: value
value: object | array | STRING | NUMBER
object: "{" [member ("," member)*] "}"
member: STRING ":" value
array: "[" [value ("," value)*] "]"
STRING: /"[a-z]*"/
NUMBER: /[0-9]+/
%ignore / +/
"""
GRAMMARS = {
    "expressions": EXPRESSIONS,
    "names in rows": NAMES_IN_ROWS,
    "ambiguous": AMBIGUOUS,
    "right recursion": RIGHT,
    "empty rules": EMPTY,
    "nested JSON": NESTED_JSON,
}


def vocabulary() -> constrain.Vocabulary:
    """All bytes of the grammars' texts, and tokens in which several lexemes and rules end."""
    rng = random.Random(7)
    alphabet = 'abxyn01()[]{};=+-*.,: "\n'
    pieces = [
        *alphabet,
        "if",
        "else",
        "foo",
        "  ",
        "))",
        "})",
        "]]",
        ");",
        '":',
        '",',
        "} ",
        ")\n",
        "(a",
        "=a",
        "+a)",
        " a",
    ]
    tokens = [character.encode() for character in alphabet]
    tokens += ["".join(rng.choices(pieces, k=rng.randint(2, 5))).encode() for _ in range(1500)]
    tokens += [("foo" + end).encode() for end in (")", "))", ");", "]", ",", " ", ".a", "(", "=", ");\n}", '"', '":')]
    return constrain.Vocabulary([*dict.fromkeys(tokens), b"</s>"], eos_ids=[len(dict.fromkeys(tokens))])


VOCABULARY = vocabulary()


def rows(mask: Any) -> list[int]:
    bits = np.unpackbits(mask[0].view(np.uint8), bitorder="little")
    return [int(token) for token in np.flatnonzero(bits[: VOCABULARY.size])]


def by_core(compiled: constrain.CompiledGrammar) -> int:
    """How many states have a mask that is made of parts."""
    masks = compiled._tables.get(STATE_MASKS)[: compiled._tables.used(STATE_HASHES)]
    return int((masks["dense"] == IN_ROOTS).sum())


def at_once(compiled: constrain.CompiledGrammar) -> None:
    """Have masks made by core from the beginning, as after many long walks; with few tokens all walks are short."""
    compiled.ctx[LONG_WALKS] = 1 << 30


@pytest.mark.parametrize("name", GRAMMARS)
def test_masks_are_the_same_without(name: str) -> None:
    grammar = constrain.Grammar.from_lark(GRAMMARS[name])
    rng = random.Random(11)
    with_cores = constrain.GrammarCompiler(VOCABULARY).compile(grammar)
    at_once(with_cores)
    without = constrain.GrammarCompiler(VOCABULARY, accelerators=WITHOUT).compile(grammar)
    mask, other = (constrain.allocate_token_bitmask(1, VOCABULARY.size) for _ in range(2))
    compared = 0
    for _ in range(25):
        matchers = constrain.Matcher(with_cores), constrain.Matcher(without)
        for _ in range(40):
            matchers[0].fill_next_token_bitmask(mask)
            matchers[1].fill_next_token_bitmask(other)
            assert rows(mask) == rows(other)
            compared += 1
            # Once more: it is known now.
            again = constrain.allocate_token_bitmask(1, VOCABULARY.size)
            matchers[0].fill_next_token_bitmask(again)
            assert np.array_equal(mask, again)
            allowed = [token for token in rows(mask) if token < VOCABULARY.size - 1]
            if not allowed:
                break
            # What opens something is as likely as all else together, so that texts get deep.
            deeper = [token for token in allowed if VOCABULARY.tokens[token][-1:] in b"([{=,+-:"]
            token = rng.choice(deeper if deeper and rng.random() < 0.5 else allowed)
            assert matchers[0].accept_token(token)
            assert matchers[1].accept_token(token)
    assert compared > 200
    assert by_core(with_cores) > 20
    assert by_core(without) == 0


def test_what_is_forgotten_is_made_again() -> None:
    """Masks, and the states of texts, are given up; parts are made anew, or stay."""
    grammar = constrain.Grammar.from_lark(EXPRESSIONS)
    small = constrain.GrammarCompiler(VOCABULARY, mask_limit_bytes=1 << 16).compile(grammar)
    at_once(small)
    without = constrain.GrammarCompiler(VOCABULARY, accelerators=WITHOUT).compile(grammar)
    mask, other = (constrain.allocate_token_bitmask(1, VOCABULARY.size) for _ in range(2))
    rng = random.Random(5)
    matchers = constrain.Matcher(small), constrain.Matcher(without)
    for step in range(250):
        matchers[0].fill_next_token_bitmask(mask)
        matchers[1].fill_next_token_bitmask(other)
        assert rows(mask) == rows(other)
        token = rng.choice([token for token in rows(mask) if token < VOCABULARY.size - 1])
        assert all(matcher.accept_token(token) for matcher in matchers)
        if step % 50 == 49:
            small._collect(3)
    assert small._tables.used(SOURCES) > 0


def test_short_walks_are_not_kept() -> None:
    """Where the walks for masks are short, there are no parts."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}
    compiled = constrain.GrammarCompiler(VOCABULARY).compile(constrain.Grammar.from_json_schema(schema))
    matcher = constrain.Matcher(compiled)
    mask = constrain.allocate_token_bitmask(1, VOCABULARY.size)
    for byte in b'{"a":10,"b":"foo"}':
        matcher.fill_next_token_bitmask(mask)
        assert matcher.accept_bytes(bytes([byte]))
    assert compiled._tables.used(SOURCES) == 0


# Names in a row: how many there are makes no difference, or all the difference.
LISTS = {
    "left recursion": 'start: "(" list ")"\nlist: list item | item\nitem: NAME ["=" NAME]',
    "right recursion": 'start: "(" list ")"\nlist: item list | item\nitem: NAME ["=" NAME]',
    "with a separator or not": 'start: item+ "."\nitem: NAME [","] | "(" item* ")"',
    "two kinds": 'start: (a | b)+ "."\na: NAME a "!" | NAME\nb: NAME b "?" | NAME ";"',
    "three at most": 'start: NAME [NAME [NAME]] "."',
    "as many ends": 'start: pair "."\npair: NAME pair "!" | NAME "="',
    "as many ends, by two": 'start: pair "."\npair: NAME other "!" | "="\nother: NAME pair ")" | ","',
    "even": 'start: "(" (NAME NAME)* ")"',
}
NAME = "\nNAME: /[ab]+/\n%ignore / /"


def words(longest: int = 9) -> constrain.Vocabulary:
    """Tokens with names in them, enough of them for an index of where names end."""
    rng = random.Random(3)
    tokens = [character.encode() for character in 'ab()=,.!?; "']
    tokens += ["".join(rng.choices("ab", k=rng.randint(2, longest))).encode() for _ in range(700)]
    ends = [*".!?;,=)", "!!", "))", "!.", "=!", ").", " a", "=b!", "!!.", ",)!", "?.", ");"]
    tokens += [("".join(rng.choices("ab ", k=rng.randint(1, 6))) + rng.choice(ends)).encode() for _ in range(700)]
    return constrain.Vocabulary([*dict.fromkeys(tokens), b"</s>"], eos_ids=[len(dict.fromkeys(tokens))])


@pytest.mark.parametrize("name", LISTS)
def test_names_in_a_row(name: str) -> None:
    vocabulary = words()
    grammar = constrain.Grammar.from_lark(LISTS[name] + NAME)
    with_cores = constrain.GrammarCompiler(vocabulary).compile(grammar)
    at_once(with_cores)
    without = constrain.GrammarCompiler(vocabulary, accelerators=WITHOUT).compile(grammar)
    mask, other = (constrain.allocate_token_bitmask(1, vocabulary.size) for _ in range(2))
    rng = random.Random(17)
    compared = 0
    while compared < 120:
        matchers = constrain.Matcher(with_cores), constrain.Matcher(without)
        for _ in range(12):
            matchers[0].fill_next_token_bitmask(mask)
            matchers[1].fill_next_token_bitmask(other)
            assert np.array_equal(mask, other)
            compared += 1
            bits = np.unpackbits(mask[0].view(np.uint8), bitorder="little")
            allowed = [int(token) for token in np.flatnonzero(bits[: vocabulary.size - 1])]
            if not allowed:
                break
            token = rng.choice(allowed)
            assert matchers[0].accept_token(token)
            assert matchers[1].accept_token(token)
    assert by_core(with_cores) > 0


@pytest.mark.parametrize("name", ["left recursion", "right recursion", "even"])
def test_names_in_a_row_are_read_once(name: str) -> None:
    """A token may be as many names as it has letters, but what follows the second one is all that there is to know."""

    def runs_read(longest: int) -> int:
        vocabulary = words(longest)
        compiled = constrain.GrammarCompiler(vocabulary).compile(constrain.Grammar.from_lark(LISTS[name] + NAME))
        at_once(compiled)
        matcher = constrain.Matcher(compiled)
        assert matcher.accept_bytes(b"(")
        matcher.fill_next_token_bitmask(constrain.allocate_token_bitmask(1, vocabulary.size))
        return compiled._tables.used(RUNS)

    assert runs_read(27) < 1.1 * runs_read(14)


COMMENTS = """
start: (NAME | "[" NAME "]" | "{" start "}" | NUMBER)*
NAME: /[a-c]+/
NUMBER: /[0-9]+/
%ignore /#[^\\n]*/
%ignore /[ \\n]+/
"""


def test_a_text_that_may_end_everywhere_and_allows_nearly_all_tokens() -> None:
    """What follows a comment is read only where tokens lead on that the comment itself cannot hold."""
    rng = np.random.default_rng(5)
    signs = np.frombuffer(b"abc7#[]{}    xyzw\n", np.uint8)
    tokens = {bytes([byte]) for byte in range(128)}
    while len(tokens) < 3000:
        tokens.add(rng.choice(signs, int(rng.integers(2, 7))).tobytes())
    vocabulary = constrain.Vocabulary([*sorted(tokens), b"</s>"], eos_ids=[len(tokens)])
    text = b"ab {a [b] #x a7 [ \n{7 c#abz } ] y\n b} #a}} [c] c7#w\n}a#"
    found: list[list[Any]] = []
    for names in (NAMES, ()):
        compiled = constrain.CompiledGrammar(constrain.Grammar.from_lark(COMMENTS).ir, vocabulary, accelerators=names)
        matcher, mask = constrain.Matcher(compiled), constrain.allocate_token_bitmask(1, vocabulary.size)
        found.append([])
        for byte in text:
            matcher.fill_next_token_bitmask(mask)
            found[-1].append(mask.copy())
            assert matcher.accept_bytes(bytes([byte]))
        assert (len(compiled._tables.get(RUNS)) > 100) == bool(names)
    assert all((one == other).all() for one, other in zip(*found, strict=True))
