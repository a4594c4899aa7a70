"""Texts that tokenizers find hard, and a naive twin of byte-level merging."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from constrain.tokenizers.splitting.patterns import by_name

PIECES = (
    "the", " The", "HELLO", " world", "'s", "'S", "'ll", "'LL", "'Ve", "'\u017f", "'", "''d", " 's", "can't",
    "0", " 12345", "3.14", "\u0664\u0665", "\u00bd", "\u2167", " ", "  ", "    ", "\t", "\n", "\r\n", " \n", "\n ",
    "\n\n  ", "\u00a0", "\u2003", "\u0085", "\x1c", "\x00", "\x7f", "{", '"', '":', "},\n", "/", "//", "...", "!\n",
    "\u4e2d\u6587", "\u65e5\u672c\u8a9eA", "\ud55c\uad6d", "\u0928\u092e\u0938\u094d\u0924\u0947", "\u0645\u0631",
    "e\u0301", "\u0301", "\u01c5", "\u02b0", "\u00aa", "camelCaseWord", "X\u4e2dYz", "\u0130", "\U0001f600",
    "\U0001f469\u200d\U0001f4bb", "\U0001f1e9\U0001f1ea", "\ufeff", "\ufffd", "\U0010ffff", "_", "$", "<|endoftext|>",
)  # fmt: skip

TEXTS = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=4)), max_size=24).map("".join)
"""Texts without lone surrogates (``st.text`` makes none)."""

CORPUS = (
    "The quick brown fox jumps over the lazy dog. It's what they'd said: \"we'll see, won't we?\"\n"
    '{"name": "Ada", "age": 36, "tags": ["a", "b"]}   def f(x):\n    return x ** 2  # 中文 and 日本語, naïve café\n'
    "Numbers 1 12 123 1234 and 3.14; HELLO World helloWorld, the end of the text is the end of the text.\n"
)

_WORDS = """
the of and to in is that it for as with on by be this from at or which one has not its they each so where no than a
about above across after again against all almost along already also always among an another answer any are ask away
back bear because become bed been before began begin behind below beside best better between big bird black blue boat
body book both bottle bread bridge bring brother brown build built but buy call came can care carry castle catch chair
change child children church circle city clean clear climb close cloud coat cold colour come common cook corner cost
could country cover cross cry cut dark daughter day dear deep did different dinner do does dog done door down draw dream
dress drink drive dry during early earth east easy eat edge egg eight either empty end enough even evening ever every
eye face fall family far farm fast father feel fell few field fill find fine fire first fish five floor flower fly
follow food foot forest form found four free fresh friend front fruit full game garden gate gave get girl give glass go
gold gone good grass great green grew ground grow had hair half hand hang happy hard hat have he head hear heard heart
heavy help her here high hill him his hold home hope horse hot hour house how hundred i ice if indeed inside into iron
island just keep kept kind king kitchen knew know lake land large last late laugh lay lead leaf learn least leave left
less letter lie life light like line little live long look lost loud love low made make man many market me mean meat
meet middle might milk mind minute moon more morning most mother mountain mouth move much music must my name near need
never new next night nine noise none north nothing now number off often oil old once only open orange other our out over
own page paint paper part pass path pay people perhaps place plain plant play please point poor possible potato pull
push put queen question quick quiet quite rain ran reach read ready red remember rest rich ride right ring river road
rock roof room root round run sad said sail salt same sand sang sat saw say school sea season second see seed seem seen
sell send seven several shadow shall she ship shoe shop short should shoulder show side silver simple since sing sister
sit six sleep slow small smell smile snow soft some something song soon sound south speak spoke spring stand star start
station stay step still stone stood stop storm story straight strange street strong such sudden sugar summer sun sure
sweet swim table take talk tall teach tell ten thank their them then there these thing think third those though thought
thousand three through time today together told too took top touch toward town train travel tree true try turn twelve
twenty two under until up upon use very village visit voice wait walk wall want war warm was wash watch water way we
weather week well went were west wet what wheel when whether while white who whole why wide wild will wind window winter
wish within without woman wonder wood word work world would write wrong year yellow yes yesterday yet you young your
""".split()  # noqa: SIM905


def _training_line(rng: random.Random) -> str:
    """Words, the first ones often, with marks, numbers and code between them."""
    words = [_WORDS[int(len(_WORDS) * rng.random() ** 4)] for _ in range(rng.randint(6, 18))]
    if rng.random() < 0.2:
        words.insert(rng.randrange(len(words)), f"`{rng.choice(words)}_{rng.choice(words)}({rng.choice(words)}=None)`")
    if rng.random() < 0.2:
        words.insert(rng.randrange(len(words)), rng.choice([str(rng.randrange(2000)), f"{rng.random():.2f}", "10,000"]))
    if rng.random() < 0.15:
        name, number, *others = words[0], rng.randrange(99), *words[1:5]
        return f'    {{"{name}": "{" ".join(others)}", "count": [{number}, true]}},  # {words[5]}'
    marks = [rng.choice([*[""] * 25, ",", ",", ";", ":", " -"]) for _ in words[1:]] + [rng.choice("...?!")]
    line = " ".join(word + mark for word, mark in zip(words, marks, strict=True))
    return rng.choice(["", "", "", "* ", "## "]) + line[0].upper() + line[1:]


TRAINING_TEXT = "\n".join(_training_line(rng) for rng in [random.Random(0)] for _ in range(800)) + "\n"
"""What tokenizers of the tests are trained with."""


def pieces_of(text: str, split_name: str) -> list[bytes]:
    """The pieces that a split pattern makes of a text."""
    data = text.encode()
    ends = by_name(split_name).ends(np.frombuffer(bytearray(data), dtype=np.uint8)).tolist()
    return [data[begin:end] for begin, end in pairwise([0, *ends])]


def naive_merge(piece: bytes, ranks: dict[bytes, int]) -> list[bytes]:
    """Joins the pair of lowest rank, leftmost first, until no pair is a token."""
    parts = [piece[i : i + 1] for i in range(len(piece))]
    while True:
        candidates = [(ranks[a + b], i) for i, (a, b) in enumerate(pairwise(parts)) if a + b in ranks]
        if not candidates:
            return parts
        _, place = min(candidates)
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
