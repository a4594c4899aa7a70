"""The GBNF front-end: meaning, errors with their place, and random expressions against ``re``."""

from __future__ import annotations

import re
from random import Random

import pytest
from naive import NaiveRecognizer
from processor_time import processor_time

import constrain
from constrain.errors import GrammarError
from constrain.grammar.gbnf import GbnfReader, from_gbnf
from constrain.grammar.languages.regular import literal

CASES = {
    "alternatives, the last one empty": ('root ::= "a" "b" | "c" |', ["ab", "c", ""], ["a", "abc"]),
    "operators": ('root ::= "a"? b* "c"+\nb ::= "b"', ["c", "abbcc"], ["", "ab", "aac"]),
    "operators on groups and literals": ('root ::= ("a" b)+ "cd"*\nb ::= "b"', ["ab", "ababcdcd"], ["abcc", "a"]),
    "counts": (
        'root ::= "a"{2} b{1,} "c"{0,2} "d"{0}\nb ::= "b"',
        ["aab", "aabbbcc"],
        ["ab", "aabccc", "aabd"],
    ),
    "an operator on what was repeated": ('root ::= "a"{2}* b{2}{2}\nb ::= "b"', ["bbbb", "aabbbb"], ["abbbb", "bb"]),
    "spaces and line ends in counts": ('root ::= ("a"{ 1 ,\n 2 })', ["a", "aa"], ["", "aaa"]),
    "classes": (
        r'root ::= [a-c_] [^a-c] [-x] [x-] [\]\[\\"] [α-ω] [\x41-\u0042] [\-^]',
        ["aé-x]βA^", '_d--"αB-'],
        ["aa-x]βA^", "aé-x]βC^", "aé-y]βA^"],
    ),
    "any character, line ends too": ("root ::= . .", ["é\n", "🎉a"], ["a", "abc"]),
    "escapes are code points": (
        r'root ::= "\x41\xe9\u20ac\U0001F389\n\t\r\\\"\[\]"',
        ['Aé€🎉\n\t\r\\"[]'],
        ["A"],
    ),
    "recursion on the left and the right": (
        'root ::= root "+" t | t\nt ::= "(" root ")" | "x" t | "x"',
        ["x", "xx+x", "(x+x)+x"],
        ["", "+x", "(x"],
    ),
    "rules go on in parentheses and after a bar": (
        '# a comment\nroot ::= # one\n  "a" |\n\n  # two\n  (\n"b"\n | "c"\n) "d" # three\n\n\nother ::= "e"\r\n',
        ["a", "bd", "cd"],
        ["b", "e"],
    ),
    "names": ('root ::= a-1 Z9 -\na-1 ::= "a"\nZ9 ::= "z"\n- ::= "-"', ["az-"], ["a"]),
    "the space around ::= may be missing": ('root::="a"b\nb::=[b]', ["ab"], ["a"]),
    "an empty group": ('root ::= () "a" ( | "b") ("c" |)', ["a", "abc", "ac"], ["", "b"]),
    "line ends in literals": ('root ::= "a\nb" [\n]', ["a\nb\n"], ["ab"]),
}


@pytest.mark.parametrize("name", CASES)
def test_meaning(name: str) -> None:
    grammar, good, bad = CASES[name]
    recognizer = NaiveRecognizer(from_gbnf(grammar))
    assert [text for text in good if not recognizer.accepts(text.encode())] == []
    assert [text for text in bad if recognizer.accepts(text.encode())] == []


def test_another_start() -> None:
    assert NaiveRecognizer(from_gbnf('root ::= a "!"\na ::= "x"', start="a")).accepts(b"x")


def test_only_well_formed_text() -> None:
    recognizer = NaiveRecognizer(from_gbnf("root ::= [^a]"))
    assert recognizer.is_viable_prefix(b"\xc3")
    assert not recognizer.is_viable_prefix(b"\xff")
    assert not recognizer.is_viable_prefix(b"\xed\xa0")


def test_what_has_no_rule_in_it_is_one_lexeme() -> None:
    ir = from_gbnf(r'root ::= "\"" ( [^"\\] | "\\" ["\\] )* "\"" end [0-9]+ "." | "x"' + '\nend ::= "."')
    assert len(ir.lexemes) == 4
    assert len(ir.productions) == 3


def test_counts_in_the_thousands_stay_small() -> None:
    ir = from_gbnf('root ::= a{3000,70000} (("b"{1000}){1000}){1000}\na ::= "a"')
    assert len(ir.productions) < 500
    assert NaiveRecognizer(from_gbnf('root ::= "a"{0,1000000} "b"')).accepts(b"aab")


def test_nested_counts_are_one_count_where_they_can_be() -> None:
    """As counters in counters, a text of a nullable part is split among them in every way; a mask took minutes."""
    stars = from_gbnf("root ::= " + "(" * 6 + "[^x]*" + "){0,99}" * 6)
    assert stars.lexemes == from_gbnf("root ::= [^x]*").lexemes
    assert len(stars.productions) == 1


def test_nested_counts_against_counting() -> None:
    random = Random(3)
    texts = [b"a" * length for length in range(20)]
    for _ in range(150):
        counts = [(low, random.choice([None, low, low + 1, low + 3])) for low in random.choices(range(4), k=3)]
        operators = [f"{{{low},{'' if high is None else high}}}" for low, high in counts]
        lengths = {1}
        for low, high in counts:
            reached = [{0}]
            for _ in range(20 if high is None else high):
                reached.append({n + m for n in reached[-1] for m in lengths if n + m < 20})
            lengths = set().union(*reached[low:])
        expected = [len(text) in lengths for text in texts]
        for item in ('"a"', "r"):
            grammar = from_gbnf("root ::= " + "(" * 3 + item + ")".join(["", *operators]) + '\nr ::= "a"')
            recognizer = NaiveRecognizer(grammar)
            assert [recognizer.accepts(text) for text in texts] == expected, (item, operators)


ERRORS = {
    'root ::= "a': "line 1, column 10: the string that begins here is never closed",
    'root ::= "a\\': "line 1, column 10: the string that begins here is never closed",
    'root ::= "b" [a': "line 1, column 14: the character class that begins here is never closed",
    "root ::= []": "line 1, column 10: a character class without characters",
    "root ::= [^]": "line 1, column 10: a character class without characters",
    "root ::= [a-cz-x]": "line 1, column 14: the range 'z'-'x' is in the wrong order",
    'root ::= "a\\q"': "line 1, column 12: unknown escape \\q",
    'root ::= "\\x4g"': "line 1, column 11: \\x must be followed by 2 hexadecimal digits",
    'root ::= "\\ud800"': "line 1, column 11: \\ud800 is not a character",
    'root ::= "\\U00110000"': "line 1, column 11: \\U00110000 is not a character",
    'root ::= "\ud800"': "line 1, column 11: a lone surrogate is not text",
    'root ::= "a" (\n("b")': 'line 1, column 14: this "(" is never closed',
    'root ::= ("a" @)': "line 1, column 15: unexpected '@', expected ",
    'root ::= "a" )': "line 1, column 14: unexpected ')', expected ",
    'root ::= "a"\n  "b"': 'line 2, column 3: a rule goes on in the next line only after "|" or inside parentheses',
    "root ::= a_b": (
        """line 1, column 11: unexpected '_', expected a literal, "[", "(", ".", a rule name, a repetition, "|" or """
        """the end of the line; the name of a rule has letters, digits and '-'; Grammar.from_ebnf takes '_' too"""
    ),
    "root ::= 'a'": (
        """line 1, column 10: unexpected "'", expected a literal, "[", "(", ".", a rule name, a repetition, "|" or """
        """the end of the line; a literal stands in double quotes"""
    ),
    'root ::= "a"\n| "b"': 'line 2, column 1: a rule goes on in the next line only after "|" or inside parentheses',
    'root = "a"': "line 1, column 6: unexpected '=', expected \"::=\"",
    "root": 'line 1, column 5: unexpected end of the grammar, expected "::="',
    'root ::= "a" |\nb ::= "c"': 'line 2, column 3: the name before this "::=" belongs to the rule "root", which ',
    'root ::=\nb ::= "c"': 'line 2, column 3: the name before this "::=" belongs to the rule "root", which ',
    "root ::= * ": "line 1, column 10: there is nothing before '*' that it could repeat",
    'root ::= "a" | {2}': "line 1, column 16: there is nothing before '{' that it could repeat",
    'root ::= ("a" (+))': "line 1, column 16: there is nothing before '+' that it could repeat",
    'root ::= "a"{3,2}': "line 1, column 13: the counts {3,2} are in the wrong order",
    'root ::= "a"{,2}': "line 1, column 14: unexpected ',', expected a number; at most 2 is {0,2}",
    'root ::= "a"{ , 10 }': "line 1, column 15: unexpected ',', expected a number; at most 10 is {0,10}",
    'root ::= "a"{,}': "line 1, column 14: unexpected ',', expected a number; any number of times is *",
    'root ::= "a"{,b}': "line 1, column 14: unexpected ',', expected a number",
    'root ::= "a"{2;3}': 'line 1, column 15: unexpected \';\', expected "," or "}"',
    'root ::= "a"{1,1000001}': "line 1, column 16: the count is above the limit of 1000000",
    'root ::= "a"{' + "9" * 5000 + "}": "line 1, column 14: the count is above the limit of 1000000",
    "root ::= <[a]>": "line 1, column 10: a token looks like <think> or <[1000]>",
    "root ::= < a>": "line 1, column 10: a token looks like <think> or <[1000]>",
    'root ::= "a" (!<[12]>){2}': "line 1, column 15: at least 2 tokens cannot be asked for",
    'root[lazy] ::= "a"': "line 1, column 5: attributes of rules, as [lazy] and [capture], are not supported in GBNF",
    'root ::= "a" b\nc ::= "d"': 'line 1, column 14: the rule "b" is not defined',
    'root ::= "a"\n root ::= "b"': 'line 2, column 2: the rule "root" is defined twice (first in line 1)',
    'a ::= "x"\nb ::= a': 'line 1, column 1: the start rule "root" is not defined (defined are: a, b)',
    "": 'line 1, column 1: the start rule "root" is not defined (defined are: no rules)',
}


@pytest.mark.parametrize("grammar", ERRORS)
def test_error(grammar: str) -> None:
    with pytest.raises(GrammarError) as caught:
        from_gbnf(grammar)
    message = str(caught.value)
    assert message.startswith(ERRORS[grammar])
    assert "\n" not in message
    assert message == f"line {caught.value.line}, column {caught.value.column}: {caught.value.reason}"


def test_a_fault_found_later_names_the_rule() -> None:
    error = from_gbnf('root ::= a\n\n a ::= a "x"').make_error("matches nothing", "a")
    assert str(error) == 'line 3, column 2: the rule "a": matches nothing'


def test_plain_characters_of_a_string_are_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    by_one = GbnfReader._char

    def count(self: GbnfReader, what: str, begin: int) -> str:
        read.append(by_one(self, what, begin))
        return read[-1]

    monkeypatch.setattr(GbnfReader, "_char", count)
    text = "a" * 1000 + "\\n" + "\u00e9" * 1000
    assert from_gbnf(f'root ::= "{text}"').lexemes == (literal("a" * 1000 + "\n" + "\u00e9" * 1000),)
    assert read == ["\n"]
    with pytest.raises(GrammarError, match=r"line 1, column 11: .* lone surrogate"):
        from_gbnf('root ::= "\ud800"')
    with pytest.raises(GrammarError, match=r"line 1, column 10: .* never closed"):
        from_gbnf('root ::= "ab')


def test_hostile_grammars_end_soon() -> None:
    depth = 20_000
    with processor_time() as spent:
        from_gbnf("root ::= " + "(" * depth + '"a"' + ")" * depth)
        from_gbnf("root ::= " + "(" * depth + '"a"' + ')* "b"' * depth)
        from_gbnf("root ::= " + '"a" | ' * depth)
        from_gbnf("root ::= " + "[a-z]* " * depth)
        with pytest.raises(GrammarError, match="never closed"):
            from_gbnf("root ::= " + "(" * depth)
    # About two seconds on an idle machine; anything quadratic would take minutes.
    assert spent.seconds < 30


def test_random_expressions_against_re() -> None:
    """The same expression in both notations, with some of its parts moved to rules of their own in GBNF."""
    random = Random(1)
    texts = ["".join(random.choice("abé\n-") for _ in range(random.randint(0, 4))) for _ in range(60)]
    accepted = 0
    for _ in range(200):
        rules: list[str] = []
        gbnf, pattern = expression(random, rules, 2)
        recognizer = NaiveRecognizer(from_gbnf("\n".join([f"root ::= ({gbnf})", *rules])))
        for text in texts:
            expected = re.fullmatch(pattern, text) is not None
            assert recognizer.accepts(text.encode()) == expected, (gbnf, rules, pattern, text)
            accepted += expected
    assert 500 < accepted < 200 * len(texts) - 500


def expression(random: Random, rules: list[str], depth: int) -> tuple[str, str]:
    """Alternatives of sequences, in GBNF and in Python's regex notation."""
    branches = [
        [item(random, rules, depth) for _ in range(random.choice([0, 1, 1, 2, 2, 3]))]
        for _ in range(random.choice([1, 1, 2, 3]))
    ]
    gbnf = " | ".join(" ".join(part for part, _ in branch) for branch in branches)
    return gbnf, "|".join("".join(part for _, part in branch) for branch in branches)


ATOMS = [
    ('"a"', "a"),
    ('"ab"', "(?:ab)"),
    ('"é"', "é"),
    ("[ab]", "[ab]"),
    ("[^a]", "[^a]"),
    (".", "[\\s\\S]"),
    ("[a-]", "[a-]"),
    ('"\\n"', "\\n"),
    ('""', "(?:)"),
]
OPERATORS = ["", "", "", "?", "*", "+", "{2}", "{1,2}", "{0,1}", "{1,}"]


def item(random: Random, rules: list[str], depth: int) -> tuple[str, str]:
    if depth == 0 or random.random() < 0.6:
        gbnf, pattern = random.choice(ATOMS)
    else:
        gbnf, pattern = expression(random, rules, depth - 1)
        gbnf, pattern = f"({gbnf})", f"(?:{pattern})"
    if random.random() < 0.25:
        name = f"r{len(rules)}"
        rules.append(f"{name} ::= {gbnf}")
        gbnf = name
    # re refuses a repetition of a repetition, so one operator is enough.
    operator = random.choice(OPERATORS if depth < 2 else OPERATORS[:5])
    return gbnf + operator, pattern + operator


def test_tokens() -> None:
    vocabulary = constrain.Vocabulary(
        [b"a", b"b", b"<think>", b"", b"", b"</s>"],
        eos_ids=[5],
        special_ids=[3, 4],
        names={3: "<|call|>", 4: "<|end|>"},
    )
    grammar = constrain.Grammar.from_gbnf('root ::= <think> (!<|end|>)* <|end|> "a" <[3]>+')
    matcher = constrain.Matcher(constrain.GrammarCompiler(vocabulary).compile(grammar))
    for token in (2, 0, 3, 1, 4, 0):
        assert matcher.accept_token(token)
    assert not matcher.accept_token(4)
    assert matcher.accept_token(3)
    assert matcher.is_accepting()


def test_the_name_of_a_file_is_no_grammar() -> None:
    for read in (constrain.Grammar.from_gbnf, constrain.Grammar.from_ebnf, constrain.Grammar.from_lark):
        with pytest.raises(constrain.GrammarError, match=r"^'my/x\.lark' is no grammar; of a file, pathlib\.Path\("):
            read("my/x.lark")
    assert constrain.Grammar.from_regex("x.lark")
