"""What llguidance has added to Lark's notation, beside llguidance itself: masks along random walks."""

from __future__ import annotations

import random
from typing import Any

import pytest

from constrain import Grammar, GrammarCompiler, Matcher, Vocabulary, allocate_token_bitmask

llguidance = pytest.importorskip("llguidance")

TOKENS = [*(bytes([byte]) for byte in range(256)), b"<eos>"]
COMPILER = GrammarCompiler(Vocabulary(TOKENS, eos_ids=[256]))

GRAMMARS = [
    (
        r"""
        start: (foo | bar)* tail
        tail: /(.|\n)*/
        foo: foo_head /[0-9]+/ ">"
        foo_head[lazy]: /(.|\n)*<f/
        bar: bar_head ">"
        bar_head[suffix="<b"]: /(.|\n)*/
        """,
        "<fb1>a",
    ),
    ('start: (x | y)* t\nt: /(.|\\n)*/\nx: a "1"\na[lazy]: /(.|\\n)*aba/\ny: b "2"\nb[lazy]: /(.|\\n)*ab/', "ab12"),
    ("start: T\nT: /[ab]*/ & ~/(?s:.*)aa(?s:.*)/", "ab"),
    ('start: T\nT: /[ab]{1,3}/ & /.*b/ | "c"{2,}', "abc"),
    ('start: x "b"\nx[lazy]: /[ab]*a>/', "ab>"),
    ('start: x "b"\nx[suffix=/b>?/]: /[ab]{1,2}/', "ab>"),
    ('start: x*\nx[lazy]: /[ab]+>/ | ">"', "ab>"),
    (
        """
        start: p::0
        p::_: ""                %if bit_count_ge(_, 1)
            | "a" p::set_bit(0) %if bit_clear(0)
            | "b" p::set_bit(1) %if bit_clear(1)
            | "c" p::set_bit(2) %if and(bit_clear(2), bit_set(0))
        """,
        "abc",
    ),
    ('start: "x" %regex {"substring_chunks": ["ab", "c", "d"]} "y"', "abcdxy"),
    ('start: "[" %json {"properties": {"a": {"type": "integer"}}, "type": "object"} "]"', '[]{}"a:1 ,'),
    ('start: "(" %lark {\n start: "a"{2} | b\n b: "b" "c"?\n} ")"', "abc()"),
]


class _ByteTokenizer:
    """What llguidance needs to know of a tokenizer of bytes."""

    eos_token_id = 256
    bos_token_id = None
    tokens = TOKENS
    special_token_ids = (256,)

    def __call__(self, text: Any) -> list[int]:
        return list(text.encode() if isinstance(text, str) else text)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return llguidance.LLTokenizer(llguidance.TokenizerWrapper(_ByteTokenizer()))


@pytest.mark.parametrize(("text", "alphabet"), GRAMMARS, ids=range(len(GRAMMARS)))
def test_masks(tokenizer: Any, text: str, alphabet: str) -> None:
    compiled = COMPILER.compile(Grammar.from_lark(text))
    chance = random.Random(7)
    for _ in range(30):
        ours, theirs = Matcher(compiled), llguidance.LLMatcher(tokenizer, llguidance.grammar_from("lark", text))
        read = ""
        for _ in range(9):
            mask, other = allocate_token_bitmask(1, 257), theirs.compute_bitmask()
            ours.fill_next_token_bitmask(mask)
            allowed = {char for char in alphabet if mask[0, ord(char) // 32] >> ord(char) % 32 & 1}
            assert allowed == {char for char in alphabet if other[ord(char) // 8] >> ord(char) % 8 & 1}, read
            assert ours.is_accepting() == bool(other[32] & 1), read
            if not allowed:
                break
            char = chance.choice(sorted(allowed))
            read += char
            assert ours.accept_token(ord(char))
            assert theirs.consume_token(ord(char))
