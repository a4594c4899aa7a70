"""``Grammar.from_lark(..., lexing="longest")``: Lark's own LALR parser is the judge."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import numpy as np
import pytest
from lark import Lark

import constrain
from bench.fuzz import lexing
from bench.fuzz.protocol import Counts

FOLDER = Path(__file__).resolve().parents[2] / "grammars"
BYTES = constrain.Vocabulary([bytes((i,)) for i in range(256)] + [b"</s>"], eos_ids=[256])

STATEMENTS = r"""
start: (stmt ";")*
stmt: "return" expr | NAME "=" expr | expr ".." expr | "if" expr stmt ["else" stmt]
expr: NAME | NUM | FLOAT | STRING | NAME "(" [expr ("," expr)*] ")"
NAME: /[a-z_]\w*/
NUM: /[0-9]+/
FLOAT: /[0-9]+\.[0-9]+/
STRING: /".*?(?<!\\)(\\\\)*?"/
COMMENT: /\/\*.*?\*\//s
%ignore COMMENT
%ignore /[ \n]+/
"""
TEXTS = [
    *("returnx=1;", "return x;", "return=1;", "returnx;", "x=1..2;", "1..2;", "1 ..2;", "1.5..2;", "1.5.5;", "xy..z;"),
    *("if x y=1;", "if x y=1 else z=2;", "ifx=1;", "if=1;", "x=f(1,2);", "x=f(1 2);", "elsewhere=1;", "else=1;"),
    *(
        'x="a";',
        r'x="a\"b";',
        r'x="a\\";',
        r'x="a\";',
        'x="a" "b";',
        "x=/* ; */1;",
        "x=/* * / */1;",
        "x=1;/**/",
        "é=1;",
    ),
    *("", " ", "x=1", "x =\n 1 ;", "x=1;;", "xé=1;", "x=12 3;", "/* */ */x=1;"),
]


def compiled(grammar: str, **options: object) -> constrain.CompiledGrammar:
    return constrain.CompiledGrammar(constrain.Grammar.from_lark(grammar, **options).ir, BYTES)  # type: ignore[arg-type]


def reads(grammar: constrain.CompiledGrammar, text: str) -> bool:
    recognizer = grammar.recognizer()
    return all(recognizer.try_push_byte(byte) for byte in text.encode()) and recognizer.is_accepting()


@pytest.mark.parametrize(("lexer", "how"), [("contextual", "longest"), ("basic", "longest-basic")])
def test_texts_are_those_that_lark_accepts(lexer: str, how: str) -> None:
    grammar, judge = compiled(STATEMENTS, lexing=how), Lark(STATEMENTS, parser="lalr", lexer=lexer)  # type: ignore[call-overload]
    verdicts = {text: lexing.accepts(judge, text) for text in TEXTS}
    assert 15 < sum(verdicts.values()) < len(verdicts) - 10
    assert {text: reads(grammar, text) for text in TEXTS} == verdicts


def test_mutated_texts_are_judged_as_by_lark() -> None:
    grammar, judge = compiled(STATEMENTS, lexing="longest"), Lark(STATEMENTS, parser="lalr")
    rng = random.Random(7)
    accepted = 0
    for _ in range(1500):
        text = "".join(rng.choice([text for text in TEXTS if lexing.accepts(judge, text)]) for _ in range(2))
        for _ in range(rng.randint(0, 2)):
            at = rng.randint(0, len(text))
            text = rng.choice((text[:at] + rng.choice('. "\\/*x1=;') + text[at:], text[:at] + text[at + 1 :]))
        expected = lexing.accepts(judge, text)
        accepted += expected
        assert reads(grammar, text) == expected, text
    assert 300 < accepted < 1300


@pytest.mark.parametrize("seed", range(40))
def test_all_short_texts_of_random_grammars(seed: int) -> None:
    rng = random.Random(seed)
    assert not lexing.difference(lexing.random_grammar(rng), rng.choice(("contextual", "basic")), 4, Counts())


@pytest.mark.parametrize(
    ("grammar", "right", "wrong"),
    [
        # The first alternative of a regex wins, though another is longer.
        ('start: A "c"\nA: /a|ab/\n', ["ac"], ["abc"]),
        # The order of terminals: priorities, then width, then length.
        ('start: A "1" | B "2"\nA.1: /a/\nB: /a+/\n', ["a1"], ["a2", "aa2"]),
        # Keywords before names, also where the case does not matter.
        ('start: "if"i NAME\nNAME: /[a-z]+/i\n%ignore " "\n', ["IF x", "if iff", "if if", "ifx"], ["if", "x x"]),
        # A boundary behind a letter, where a name would begin with the keyword, and within a terminal.
        ('start: (IF | NAME)+\nIF: /if\\b|else\\b/\nNAME: /[a-z]+!?/\n%ignore " "\n', ["if x", "iff else!"], ["ifé"]),
        # What is no letter, or the end.
        (
            'start: (OR | NAME | "(" | ")")+\nOR.2: /U(?=[^a-z]|$)/\nNAME: /[a-z]+/\n%ignore " "\n',
            ["U", "aU b", "a U b", "(U)U", "UU"],
            ["Ub", "aUb", "U1"],
        ),
        (
            "start: L+\nL: /#(if|ifdef|i?e+)\\b[^;]*;/i\n",
            ["#if;", "#ifdef x;#IF!if;", "#e-;"],
            ["#ifx;", "#if_;", "#eé;", "#;"],
        ),
        # Numbers as GraphQL has them: neither a letter nor a dot follows, and each is a beginning of the other one.
        (
            "start: (INT | FLOAT | NAME)+\nINT: /(0|[1-9][0-9]*)(?![.eE0-9_A-Za-z])/\n"
            "FLOAT: /(0|[1-9][0-9]*)(\\.[0-9]+)?(e[0-9]+)?(?![0-9_A-Za-z.])/\nNAME: /[a-z]+/\n%ignore / +/\n",
            ["12", "1.5 e", "0 7e3", "1.5e2 12", "0"],
            ["12.", "1.5.2", "1a", "01", "1.5e", "12 3x"],
        ),
        # "==" is read where "=" must not be, and ">>=" before the ">>" that it begins with.
        (
            'start: NAME (">>" NAME)* (ASSIGN | "==") NAME\nASSIGN: /=(?!=)|>>=/\nNAME: /[a-z]+/\n',
            ["a=b", "a==b", "a>>=b", "a>>b>>c==d"],
            ["a===b", "a>>==b", "a= =b", "a=>>b"],
        ),
        # Two brackets begin another comment, and one of them none; so nothing is read of one that does not end.
        (
            "start: NAME*\nNAME: /[a-z]+/\nCOMMENT: /--(?!\\[\\[)[^\\n]*/\nLONG: /--\\[\\[.*?\\]\\]/s\n"
            "%ignore COMMENT\n%ignore LONG\n%ignore /\\s+/\n",
            ["a --[b\nc", "a --[[b\n]]c", "--", "--[", "--[[]]d", "--\ne"],
            ["a --[[b", "--[[ ]\nc", "--[[a]", "a --[[b\n]c"],
        ),
        # A lazy quantifier stops first.
        ('start: S "x"\nS: /".*?"/\n', ['"a"x', '""x'], ['"a"b"x']),
    ],
)
def test_what_the_lexer_prefers(grammar: str, right: list[str], wrong: list[str]) -> None:
    judge, found = Lark(grammar, parser="lalr"), compiled(grammar, lexing="longest")
    assert [lexing.accepts(judge, text) for text in right + wrong] == [True] * len(right) + [False] * len(wrong)
    assert [reads(found, text) for text in right + wrong] == [True] * len(right) + [False] * len(wrong)


UNICODE = r"""
start: (NAME NUMBER* | WORD | "let" NAME | OTHER)*
NAME: /[\p{XID_Start}_]\w*/
NUMBER: /\p{Nd}+(\.\d+)?/
WORD.-1: /[\p{No}\p{Mn}]+?\pL?/s
OTHER.-2: /[^\p{L}\p{N}\p{M}\s]/
%ignore /\s/
"""


def test_properties_of_unicode_are_those_of_the_package_that_lark_reads_them_by() -> None:
    pytest.importorskip("regex")
    grammar, judge = compiled(UNICODE, lexing="longest"), Lark(UNICODE, parser="lalr", regex=True)
    rng = random.Random(5)
    # Marks and U+001D are what the packages read differently as \\w and \\s.
    characters = "aλΛé_1٣².\u0301\x1d \n-—中ǅ😀\ud7ff\ue000\u0378"
    accepted = 0
    for _ in range(1500):
        text = "".join(rng.choices([*characters, "let", "letter", "1.5"], k=rng.randint(0, 4)))
        expected = lexing.accepts(judge, text)
        accepted += expected
        assert reads(grammar, text) == expected, ascii(text)
    assert 300 < accepted < 1300


@pytest.mark.parametrize("given", ["ab abc ab", '\\"/ \0.\n[]', "", "é😀\u2028é"])
@pytest.mark.parametrize("kind", ["substring_chars", "substring_words", "substring_chunks"])
def test_quotes_are_the_longest_that_there_are(kind: str, given: str) -> None:
    pieces = re.findall(r"\w+|\s+|[^\w\s]", given) if kind == "substring_words" else list(given)
    quotes = {"".join(pieces[i:j]) for i in range(len(pieces) + 1) for j in range(i, len(pieces) + 1)}
    escapes = {"\0": r"[\0]", "\n": r"\n", "/": r"\/", '"': '["]', "\\": r"[\\]"}
    ways = ("".join(escapes.get(char, re.escape(char)) for char in quote) for quote in sorted(quotes, key=len)[::-1])
    shape = 'start: (QUOTE | WORD | "<a")*\nQUOTE: "<" %s ">"?\nWORD: /[a-c]+/\n%%ignore " "'
    block = json.dumps({kind: pieces if kind == "substring_chunks" else given})
    grammar = compiled(shape % f"%regex {block}", lexing="longest")
    judge = Lark(shape % f"/(?:{'|'.join(ways)})/", parser="lalr")
    rng = random.Random(9)
    for _ in range(200):
        text = "".join(rng.choice(["<", ">", "<ab", "c", " ", *sorted(quotes)]) for _ in range(rng.randint(0, 5)))
        assert reads(grammar, text) == lexing.accepts(judge, text), text


def test_any_way_to_split_counts_by_default() -> None:
    assert reads(compiled(STATEMENTS), "returnx;")
    assert constrain.Grammar.from_lark(STATEMENTS).ir.parse_table is None


def test_masks_are_what_the_bytes_of_tokens_lead_to() -> None:
    texts = 'return|return |x=|=1;|1.|..|.5|if|el|se|/*|*/|1..2|a b|1,|";|elsex=1| else y|é|ifx|x="|;if x y|\\\\"'
    pieces = [bytes((i,)) for i in range(256)] + [text.encode() for text in texts.split("|")]
    vocabulary = constrain.Vocabulary([*pieces, b"</s>"], eos_ids=[len(pieces)])
    matcher = constrain.Matcher(
        constrain.GrammarCompiler(vocabulary).compile(constrain.Grammar.from_lark(STATEMENTS, lexing="longest"))
    )
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    rng = random.Random(3)
    steps = 0
    for _ in range(25):
        for _ in range(12):
            matcher.fill_next_token_bitmask(mask)
            row = mask[0].view(np.uint32)
            allowed = [token for token in range(len(pieces)) if row[token >> 5] >> np.uint32(token & 31) & np.uint32(1)]
            assert allowed == [token for token in range(len(pieces)) if matcher.fork().accept_token(token)]
            assert allowed
            steps += 1
            # Whole words are taken more often than single bytes.
            words = [token for token in allowed if token >= 256 or chr(token) in ';= x1"']
            matcher.accept_token(rng.choice(words or allowed))
        matcher.rollback(rng.randint(1, 12))
        if rng.random() < 0.3:
            matcher.reset()
    assert steps == 300


@pytest.mark.parametrize("name", ["arithmetic.lark", "json.lark", "iso_datetime.lark", "url.lark"])
def test_ready_grammars_can_be_read_by_the_longest_match(name: str) -> None:
    text = (FOLDER / name).read_text()
    grammar, judge = compiled(text, lexing="longest"), Lark(text, parser="lalr")
    samples = {
        "arithmetic.lark": ["1+2*3", "2x", "1 2", "f(x,1.5e3)", "1.5e", "-x^-2"],
        "json.lark": ['{"a": [1, 2]}', "[1,]", "nul", '"\\x"', "01", "1.5e+10"],
        "iso_datetime.lark": ["2024-02-29", "2023-02-29", "2024-01-31T00:00:00Z", "12:30:00", "24:00:00"],
        "url.lark": ["http://example.org", "https://a@b.c:80/d?e=f#g", "http://", "ftp://[::1]/", "http://a b"],
    }[name]
    assert {text: reads(grammar, text) for text in samples} == {text: lexing.accepts(judge, text) for text in samples}


@pytest.mark.parametrize(
    ("grammar", "message"),
    [
        (r'start: A "\ud83d\ude00"' "\nA: /a/", "a lone surrogate is not text"),
        ("start: A\nA: /a(?=b)/", r"look-ahead cannot be followed .*; write \(\?!\[\^x\]\) for \(\?=x\)"),
        ("start: A\nA: /a+ ?\\b/", r"boundary \\b, but behind"),
        ("start: A\nA: /\\ba/", r"boundary \\b, but behind"),
        ("start: A\nA: /a\\Bb/", "boundary non_boundary"),
        ("start: A\nA: /(?<=x)a/", "looking behind its beginning"),
        ('start: a | b\na: "x"\nb: "x"', "Reduce/Reduce"),
        ("start: A A\nA: /a+/", "A has to follow A"),
        ("start: A\nA: /a*/", "zero-width"),
        ('start: x "a"\nx: "a" | "a" x', "does not reduce"),
        ('start: "x" | start_\nstart_: "y" start_', "never ends"),
        ('start: loop\nloop: "y" loop', "the rule loop has an alternative that no text can have"),
        ('start: "x"i A\nA: /\\p{L}/', "the flag i beside"),
        ("start: A\nA: /\\p{L}[a[:alpha:]]/", r"\[: in a set"),
        ("start: A\nA: /\\p{L}{e}/", "a brace that is no repetition"),
        ("start: A\nA: /[a-\\p{L}]/", "a range that ends in|bad character range"),
        ("start: A\nA: /\\p{Latn1}/", "unknown property"),
        ('start: "<" %regex {"substring_words": "a b"} ">"', "zero-width .* with what stands around it"),
        (f'start: Q\nQ: "<" %regex {{"substring_words": "{"a b " * 50}"}}', "line 2, column 8: %regex: .* 100 pieces"),
        ("start: %json {}", 'line 1, column 8: %json is for lexing="any"'),
    ],
)
def test_what_cannot_be_read_exactly_is_refused_by_name(grammar: str, message: str) -> None:
    with pytest.raises(constrain.GrammarError, match=message):
        constrain.Grammar.from_lark(grammar, lexing="longest")


def test_a_start_that_is_a_terminal_and_an_unknown_lexing() -> None:
    with pytest.raises(constrain.GrammarError, match="is a terminal"):
        constrain.Grammar.from_lark("A: /a/", start="A", lexing="longest")
    with pytest.raises(constrain.GrammarError, match="lexing must be"):
        constrain.Grammar.from_lark('start: "a"', lexing="first")  # type: ignore[arg-type]


FINISHED_BY_PROOF = {
    # A flag that the earlier HEADING would take is read only where nothing looks for headings.
    "a text that an earlier terminal takes is none": r"""
        start: (HEADING | "do" FLAG NAME | FLAG "x") (_NL (HEADING | "do" FLAG NAME))*
        FLAG: "*" | "!"
        HEADING.2: /\*[^\n]*/
        NAME: /[a-z]+/
        _NL: "\n"
        %ignore " "
    """,
    # What an open string would need, a second quote, is in no text that has to follow.
    "what never ends in what follows": r"""
        start: "f" "(" (WORD | STRING) ("," (WORD | STRING))* ")"
        WORD: /["a-z]+/
        STRING.2: /"[^"]*;"/
    """,
    # Behind a comment there is only a line end; a value can follow that.
    "another terminal first": r"""
        start: _NL* section+
        section: "s" _NL+ item+
        item: "i" _NL+ | "(" (_NL | "a")* "a" ")" _NL+
        _NL: "\n"
        COMMENT: /#[^\n]*/
        %ignore COMMENT
    """,
    # In lists, words are not looked for; behind a false at the top, they are.
    "what the lexer looked for": r"""
        start: value ("\n" (value | WORD))*
        value: "false" | "[" value ("," value)* "]"
        WORD: /[a-z\]]+/
    """,
    # A quote that opens a string and one that closes it stand in different places, so three in a row begin a RAW only.
    "what the parser can take behind a terminal in its place": r"""
        start: (MARK* "val" string ";")+
        string: RAW | "\"" (TEXT | "${" string "}")* "\""
        RAW.3: /\"{3}(.|\n)*?\"{3}/
        TEXT: /[^"$\n]+/
        MARK: /@[a-z]+/
        %ignore /[ \n]+/
    """,
}


@pytest.mark.parametrize("name", FINISHED_BY_PROOF)
def test_every_beginning_can_be_finished_where_the_proof_takes_more_than_the_next_character(name: str) -> None:
    text = FINISHED_BY_PROOF[name]
    grammar, judge = compiled(text, lexing="longest"), Lark(text, parser="lalr")
    for seed in range(60):
        rng = random.Random(seed)
        matcher = constrain.Matcher(grammar)
        written = b""
        for _ in range(rng.randint(0, 12)):
            mask = constrain.allocate_token_bitmask(1, BYTES.size)
            matcher.fill_next_token_bitmask(mask)
            bits = np.unpackbits(mask[0].view(np.uint8), bitorder="little")[:256]
            if not bits.any():
                assert matcher.is_accepting()
                break
            likely = [byte for byte in b'*!adofxsi#()[],;" \n\\' if bits[byte]]
            byte = rng.choice(likely or np.nonzero(bits)[0].tolist())
            assert matcher.accept_token(byte)
            written += bytes((byte,))
        finished = written + bytes(matcher.completion())
        assert lexing.accepts(judge, finished.decode()), finished


def test_a_lexeme_that_began_earlier_may_stand_in_the_way() -> None:
    # Behind ``abc`` a d would make it one lexeme, and nothing else can follow.
    rules = 'start: A (E | B C D) | "q" LONG\nA: "a"\nB: "b"\nC: "c"\nD: "d"\nE: "e"\nLONG: "abcd"\n'
    with pytest.raises(constrain.GrammarError, match="in LONG, where C has to follow B"):
        constrain.Grammar.from_lark(rules, lexing="longest-basic")
    rules += '%ignore " "'
    apart, judge = compiled(rules, lexing="longest-basic"), Lark(rules, parser="lalr", lexer="basic")
    for text in ("ae", "abc d", "ab cd", "abcd", "ac d", "ad", "q abcd"):
        assert reads(apart, text) == lexing.accepts(judge, text), text
