"""The vocabularies that campaigns use."""

from __future__ import annotations

import random

import constrain
from bench.fuzz import seams

_PIECES = (
    *('{"', '":', '","', '"a"', '"a":', '"b":', "true", "false", "null", "\\u00", "\\u0061", "[[", "]]", "}}", "},{"),
    *("1.0", ", ", '": ', '"]', "é", "😀", '"ab"', ":1,", "{}", "[1,2]", '""', '":"', "[]", ",[", '"}', "ab", "aa"),
    *("  ", "\n", "\n  ", "if ", "(x", ");", "k1", "k2", '"k1":', "k3"),
)
_BYTES = tuple(bytes([byte]) for byte in range(256))
_END = b"</s>"


def small() -> constrain.Vocabulary:
    """All bytes, pieces of JSON and of programs, a token that begins within a character, an end token."""
    tokens = [*_BYTES, *(piece.encode() for piece in _PIECES), "é😀".encode()[1:4], _END]
    return constrain.Vocabulary(tokens, eos_ids=[len(tokens) - 1])


_AROUND_KEYS = (
    *(
        '"b":',
        '"a":',
        '"b":1',
        '":1,',
        '":1,"',
        '":',
        '","',
        '"}',
        "}}",
        "}]",
        '":1}',
        '"b":1}',
        '"b":1}]',
        '},{"',
        '{"',
    ),
    *('{"b":', ',"b":1', '"b', "bb", "bbb", '"a":1,"b":1', "aa", "1,", ',"', '[{"', '"k":1,', "[1,1,1]", '}},"', 'b":'),
)


def around_keys(rng: random.Random) -> constrain.Vocabulary:
    """All of ASCII, and some tokens of keys, quotes and brackets, so that one key is a token and the next is not."""
    pieces = [piece.encode() for piece in rng.sample(_AROUND_KEYS, rng.randint(0, 10))]
    pieces += [bytes(rng.choices(b'{}[]:,"ab1', k=rng.randint(2, 4))) for _ in range(rng.randint(0, 3))]
    tokens = [*_BYTES[:128], *dict.fromkeys(pieces), _END]
    return constrain.Vocabulary(tokens, eos_ids=[len(tokens) - 1])


def large(size: int = 9000) -> constrain.Vocabulary:
    """More than 8,192 tokens (so its trie is kept on disk), with wide nodes and large subtrees.

    Words, numbers, runs of blanks, pieces across quotes; some tokens twice; two end tokens and a special one.
    """
    rng = random.Random(7)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    found: dict[bytes, None] = dict.fromkeys([*_BYTES, *(piece.encode() for piece in _PIECES)])
    for count in range(1, 40):
        found |= dict.fromkeys([b" " * count, b"\n" + b" " * count, b"\t" * min(count, 8)])
    for number in range(1100):
        found[str(number).encode()] = None
    while len(found) < size - 20:
        word = "".join(rng.choices(letters, weights=range(26, 0, -1), k=rng.randint(2, 7)))
        shape = rng.choice(("{}", " {}", "{}", " {}", '"{}', '{}"', '"{}":', '","{}', "_{}", "é{}", '{}":"'))
        found[shape.format(word.capitalize() if rng.random() < 0.2 else word).encode()] = None
    tokens = [*found, *rng.sample(sorted(found), 17), _END, b"<end>", b"<special>"]
    return constrain.Vocabulary(tokens, [len(tokens) - 3, len(tokens) - 2], [len(tokens) - 1])


def odd() -> constrain.Vocabulary:
    """What real vocabularies have besides: doubles, empty tokens, pieces of characters, tokens that begin each other.

    Long tokens; special tokens, of which two share a text with ordinary ones; two end tokens; room behind the last one.
    """
    pieces = (
        *_PIECES,
        "abc",
        "abcd",
        "aba",
        "</",
        "</a",
        "</a>",
        "</a>x",
        ";",
        "a;",
        "a;b",
        ",,",
        "<b>",
        '<|"|>',
        '<|"',
    )
    long = (*("a" * count for count in (40, 41, 64, 200)), " " * 48, '"' + "a" * 45 + '"', "é" * 25)
    broken = ("é😀".encode()[1:4], "😀".encode()[:2], "😀".encode()[2:], b"a\xc3", b"\xa9b")
    doubles = (b"a", b"ab", b"</a>", b'"', b"", b"")
    tokens = [*_BYTES, *(piece.encode() for piece in (*pieces, *long)), *broken, *doubles]
    names = {len(tokens) + index: name for index, name in enumerate(ODD_SPECIAL)}
    tokens += [b"", b"", b"ab", b"</a>", _END, b"<end>"]
    ends = [len(tokens) - 2, len(tokens) - 1]
    return constrain.Vocabulary([*tokens, *[b""] * 30], ends, [*names], names=names)


ODD_SPECIAL = ("<|call|>", "<|end|>", "<|x|>", "<|y|>")
"""The special tokens of :func:`odd`, by their names."""


def random_vocabulary(rng: random.Random, alphabet: bytes, most: int) -> constrain.Vocabulary:
    """Tokens over an alphabet: each byte, and random strings; now and then an empty one, doubles, special ones.

    Half of them have wide nodes and large subtrees, with low thresholds.
    """
    tokens = [bytes([byte]) for byte in alphabet]
    lengths = (0, 1, 2, 2, 3, 3, 4, 6, 12)
    tokens += [bytes(rng.choices(alphabet, k=rng.choice(lengths))) for _ in range(rng.randint(0, most))]
    special = [index for index in range(len(alphabet), len(tokens)) if rng.random() < 0.03]
    tokens += [_END] * rng.choice((1, 1, 2))
    ends = [index for index, token in enumerate(tokens) if token == _END]
    with seams.low_thresholds(rng.choice((2, 3)), rng.choice((2, 4))) if rng.random() < 0.5 else seams.nothing():
        return constrain.Vocabulary(tokens, ends, special)
