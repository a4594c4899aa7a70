"""XGrammar's EBNF: macros, look-ahead, attributes, and rules that go on over line ends."""

from __future__ import annotations

import itertools
import re

import pytest
from byte_tokens import language_of
from processor_time import processor_time

from constrain import Grammar, GrammarCompiler, GrammarError, Matcher, Vocabulary

BYTES = [bytes([byte]) for byte in range(256)]
COMPILER = GrammarCompiler(Vocabulary([*BYTES, b"</s>"], eos_ids=[256]))
SPECIAL = Vocabulary(
    [*BYTES, b"", b"", b"", b"</s>"],
    eos_ids=[259],
    special_ids=[256, 257, 258],
    names={256: "<0>", 257: "<1>", 258: "<2>"},
)


def language(text: str, alphabet: str, length: int) -> set[str]:
    """The texts of a grammar over an alphabet, up to a length."""
    return language_of(COMPILER.compile(Grammar.from_ebnf(text)), alphabet, length)


def matches(pattern: str, alphabet: str, length: int) -> set[str]:
    whole = re.compile(pattern, re.DOTALL)
    letters = ("".join(each) for count in range(length + 1) for each in itertools.product(alphabet, repeat=count))
    return {word for word in letters if whole.fullmatch(word)}


def test_rules_go_on_to_the_next_one() -> None:
    text = 'root ::= "a"\n  | other_rule.x\n  "c"\nother_rule.x ::=\n  "b" # the end\n  {2}\n'
    assert language(text, "abc", 4) == {"a", "bbc"}
    # What may stand between a name and its "::=", and what a name may begin with, is the same for the first and others.
    text = '-a # x ::= \n ::= "a"\nroot ::= "c" -a # "x"\n 1.b\n1.b # [lazy] ::=\n[lazy] # the first\n::= "b"* "c"\n'
    assert language(text, "abcx", 4) == {"cac", "cabc"}


def test_escapes() -> None:
    assert language(r'root ::= "\/" [\-\]] "\?\x41\0"', "/-]?A\0", 5) == {"/-?A\0", "/]?A\0"}


def test_an_escape_by_x_takes_all_digits_that_follow() -> None:
    """As XGrammar reads them."""
    grammar = Grammar.from_ebnf(r'root ::= "\x7g" [\x0041-\x44] "\x1F389g"')
    matcher = Matcher(COMPILER.compile(grammar))
    assert matcher.accept_bytes("\x07gC🎉g".encode())
    assert matcher.is_accepting()
    assert [warning.split(" ", 4)[:4] for warning in grammar.warnings] == [
        ["line", "1,", "column", "18:"],
        ["line", "1,", "column", "32:"],
    ]
    for text in (r'root ::= "\xg"', r'root ::= "\x110000"', r'root ::= "\xD800"'):
        with pytest.raises(GrammarError, match="line 1, column 11: "):
            Grammar.from_ebnf(text)


def test_names_may_begin_with_a_dot() -> None:
    """They were read as any character and a name."""
    text = 'a ::= "a"\n.b ::= "b"\n..c ::= "c"\nroot ::= a .b "x"? ..c | . ..'
    assert language(text, "abcx", 4) == {"abc", "abxc"} | {
        "".join(word) for word in itertools.product("abcx", repeat=3)
    }


def test_any_character_and_no_most() -> None:
    assert language('root ::= [^] "a"{1, -1}', "a\n", 3) == {"aa", "\na", "aaa", "\naa"}
    for text in ("root ::= []", 'root ::= "a"{1,-2}', 'root ::= "a"{-1}'):
        with pytest.raises(GrammarError):
            Grammar.from_ebnf(text)
    for text in ("root ::= [^]", 'root ::= "a"{1,-1}'):
        with pytest.raises(GrammarError):
            Grammar.from_gbnf(text)


def test_regex() -> None:
    assert language(r'root ::= "x" Regex("[ab]{2}|c\\d+") "y"', "abcxy1", 4) == matches(
        r"x([ab]{2}|c\d+)y", "abcxy1", 4
    )
    # A dot is a line end too, unless flags say otherwise.
    assert language('root ::= Regex("a.")', "a\n", 2) == {"aa", "a\n"}
    assert language('root ::= Regex("a.", flags="")', "a\n", 2) == {"aa"}
    assert language('root ::= Regex("(\\?i)ab")', "aAbB", 2) == {"ab", "aB", "Ab", "AB"}
    # Case is that of ASCII.
    matcher = Matcher(COMPILER.compile(Grammar.from_ebnf('root ::= Regex("É", flags="i")')))
    assert not matcher.accept_bytes("é".encode())
    assert language('root ::= Regex(".", json_string=true)', 'a"\\\n', 1) == {"a"}


def test_substring() -> None:
    assert language('root ::= Substring("ab", "", "c", "d")', "abcd", 5) == {*("", "ab", "c", "d", "abc", "cd", "abcd")}
    assert language("root ::= Substring()", "a", 2) == {""}


@pytest.mark.parametrize("loops", [True, False])
def test_tag_dispatch(loops: bool) -> None:
    option = "" if loops else ", loop_after_dispatch=false"
    text = f'root ::= TagDispatch(("ab", one), ("b", two){option})\none ::= "1"+\ntwo ::= "2"'
    # "ab" ends where "b" does: either rule may follow.
    once = "[^b]*(?:(?<=a)b1+|b2)"
    pattern = rf"(?:{once})*[^b]*" if loops else rf"{once}|[^b]*"
    assert language(text, "ab12", 5) == matches(pattern, "ab12", 5)


def test_tag_dispatch_with_what_is_excluded() -> None:
    text = 'root ::= TagDispatch(("<a>", body), excludes=("!",)) "!"\nbody ::= [xy]'
    assert language(text, "<a>x!", 6) == matches(r"(?:(?!<a>|!).)*(?:<a>x(?:(?!<a>|!).)*)*!", "<a>x!", 6)


def walk(text: str, *steps: int | bytes) -> Matcher:
    matcher = Matcher(GrammarCompiler(SPECIAL).compile(Grammar.from_ebnf(text)))
    for step in steps:
        assert matcher.accept_token(step) if isinstance(step, int) else matcher.accept_bytes(step), step
    return matcher


def test_tokens() -> None:
    matcher = walk('root ::= Token(256, 257) "a"', 257)
    assert not matcher.accept_token(256)
    assert matcher.accept_bytes(b"a")
    matcher = walk('root ::= ExcludeToken(256)* "."', b"ab", 257)
    assert not matcher.accept_token(256)
    text = 'root ::= TokenTagDispatch((256, body), excludes=(257))\nbody ::= "1" Token(258)'
    matcher = walk(text, b"some text", 258, 256, b"1", 258, b"more", 256)
    assert not matcher.is_accepting()
    assert not walk(text, b"x").accept_token(257)


def test_look_ahead_and_attributes() -> None:
    grammar = Grammar.from_ebnf('root ::= a "c"\na[capture="it"] ::= "b" (="c" [d-e])')
    assert [warning.split(": ", 1)[1] for warning in grammar.warnings] == [
        "look-ahead (=...) has no effect",
    ]
    assert language('root ::= a "c"\na[lazy] ::= [ab]+ "b"?', "abc", 3) == {"ac", "bc"}
    # A bracket in the value of an attribute is none that closes it.
    text = 'root ::= a a[0-1] "c"\na[capture="x[0]", lazy] ::= "b"+'
    assert language(text.replace("a[0-1]", "[0-1]"), "b1c", 3) == {"b1c"}
    assert Grammar.from_ebnf(text).ir.captures


@pytest.mark.parametrize(
    ("pattern", "bytewise"),
    [
        (".", b"(?s:.)"),
        (r"\\x80|é", b"\x80|\xc3\xa9"),
        (r"é{2}?", b"(?:\xc3\xa9){2}"),
        (r"[^a\\x80-\\xbf]\\s?", rb"[^a\x80-\xbf]\s?"),
        (r"\\S\\W\\D", rb"\S\W\D"),
        (r"^[]\\]a]+$", rb"[]\]a]+"),
    ],
)
def test_regexes_over_bytes(pattern: str, bytewise: bytes) -> None:
    compiled = COMPILER.compile(Grammar.from_ebnf(f'root ::= Regex("{pattern}", byte_mode=true)'))
    whole = re.compile(bytewise)
    some = (0x61, 0x5D, 0x39, 0x20, 0x0A, 0x80, 0xA0, 0xA9, 0xBF, 0xC3, 0xFF)
    for word in (bytes(each) for count in range(5) for each in itertools.product(some, repeat=count)):
        matcher = Matcher(compiled)
        assert (matcher.accept_bytes(word) and matcher.is_accepting()) == (whole.fullmatch(word) is not None), word


@pytest.mark.parametrize("bounds", [(0, 0), (1, 2), (2, None), (0, 1)])
def test_lengths_of_json_strings(bounds: tuple[int, int | None]) -> None:
    low, high = bounds
    said = f"json_string_min_length={low}" + (f", json_string_max_length={high}" if high is not None else "")
    rules = 'body ::= ([ab] | "\\\\" ("n" | "u" ("0061" | "d83d" | "de00")) | "é")*'
    compiled = COMPILER.compile(Grammar.from_ebnf(f'root ::= "[" it "]"\nit[{said}] ::= "\\"" body "\\""\n{rules}'))
    parts = ("a", "b", "\\n", "\\u0061", "\\ud83d\\ude00", "é")
    for length in range(4):
        for chosen in itertools.product(parts, repeat=length):
            matcher = Matcher(compiled)
            fits = matcher.accept_bytes(f'["{"".join(chosen)}"]'.encode()) and matcher.is_accepting()
            assert fits == (low <= length <= (3 if high is None else high))
    # Half of a surrogate pair is no text.
    assert not Matcher(compiled).accept_bytes(b'["\\ud83da')


@pytest.mark.parametrize(
    "body", ['[ab]* "c"', '("a" | "bc")+', '("a" | "b" end)+\nend ::= "c"', "[ab]+", 'Regex("a|(?!bb)b*c")']
)
@pytest.mark.parametrize("most", [0, 1, 2, 3])
@pytest.mark.parametrize("lazy", [False, True])
def test_a_rule_that_cannot_end_behind_its_last_character_goes_on(body: str, most: int, lazy: bool) -> None:
    """As in XGrammar.  It was cut off there, and "ab" a text of a rule whose texts all end in "c"."""
    every = language(f"root ::= {body}", "abc", 5)
    if lazy:
        every = {word for word in every if not any(word[:length] in every for length in range(len(word)))}
    expected = {word for word in every if not any(word[:length] in every for length in range(most, len(word)))}
    rules = f"r[{'lazy, ' * lazy}max_chars={most}] ::= {body}"
    assert language(f"root ::= r\n{rules}", "abc", 5) == expected
    assert language(f'root ::= r "!"\n{rules}', "abc!", 5) == {word + "!" for word in expected if len(word) < 5}


@pytest.mark.parametrize("others", ["", "max_chars=4", 'capture="it"', 'max_chars=4, capture="it"'])
def test_excluded_texts(others: str) -> None:
    most = 4 if "max_chars" in others else 5
    comma = ", " * bool(others)
    first, last = f'excludes=("ab", "c]a", "bbb"){comma}{others}', f'{others}{comma}excludes = ("ab","bbb",)'
    for said in (first, last):
        found = language(f'root[{said}] ::= "b" [ab]* | [a-c]*', "abc", 5)
        expected = {
            word
            for length in range(most + 1)
            for word in map("".join, itertools.product("abc", repeat=length))
            if "ab" not in word and "bbb" not in word
        }
        assert found == expected
    # Each time that the rule is there begins anew.
    assert language('root ::= it "c" it\nit[excludes=("ab")] ::= [ab]+', "abc", 4) == {
        *("aca", "acb", "bca", "bcb", "aaca", "baca", "bbca", "aacb", "bacb", "bbcb"),
        *("acaa", "acba", "acbb", "bcaa", "bcba", "bcbb"),
    }
    assert language('root[lazy, excludes=("b")] ::= [ab]* "c"', "abc", 3) == {"c", "ac", "aac"}
    lazy = 'root ::= head [ab]\nhead[lazy] ::= text end\ntext ::= [abc] text | ""\nend ::= "c" | "bb" end'
    assert language(lazy, "abc", 4) == matches("[ab]*c[ab]", "abc", 4)


@pytest.mark.parametrize(
    "rules",
    [
        '[ab]* | [ab]* "c" two body\ntwo ::= [ab] | "c" [ab]{2}',
        'body "a" | body two | "c"\ntwo ::= "ab" | body_free\nbody_free ::= "b" body_free | "c"',
        'two+ | other{1,2}\ntwo ::= "ab" | "c" other\nother ::= "a" two | "b"',
        '"" | Regex("[ab]c?") body',
        'two* "a"\ntwo[excludes=("bb")] ::= [a-c] two | "b"',
    ],
)
@pytest.mark.parametrize("others", ["", ", max_chars=3"])
def test_excluded_texts_of_rules_that_are_made_of_others(rules: str, others: str) -> None:
    every = language(f"root ::= body\nbody ::= {rules}", "abc", 7)
    free = {word for word in every if "ab" not in word and "cc" not in word}
    if others:
        free = {word for word in free if not any(word[:length] in free for length in range(3, len(word)))}
    found = language(f'root ::= body\nbody[excludes=("ab", "cc"){others}] ::= {rules}', "abc", 6)
    assert found == {word for word in free if len(word) <= 6}
    assert found
    # It is the same as if what follows were no part of it.
    behind = language(f'root ::= body "ab"\nbody[excludes=("ab", "cc"){others}] ::= {rules}', "abc", 6)
    assert behind == {word + "ab" for word in free if len(word) <= 4}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('root[excludes=("a", "")] ::= [a]', "line 1, column 6: [excludes] takes strings that are not empty"),
        ("root[excludes=(a)] ::= [a]", "line 1, column 6: [excludes]: strings are expected"),
        ('root[excludes=("a"), lazi] ::= [a]', "line 1, column 22: [lazi]: there is no such attribute"),
        (
            'root[excludes=("a")] ::= "(" root ")" | "b"',
            "line 1, column 1: [excludes] on a rule that is made of others: its rules refer to each other with text on",
        ),
        (
            'root ::= r\nr[excludes=("a")] ::= x*\nx[capture] ::= "b"',
            'line 2, column 1: [excludes] on a rule that is made of others: "x" in it is',
        ),
        (
            'root[excludes=("a"), capture] ::= [ab] root | ""',
            "line 1, column 1: [excludes] on a rule that is made of others: rules that refer",
        ),
        (
            'root[excludes=("a")] ::= [ab] r\nr[excludes=("b")] ::= root | ""',
            'line 1, column 1: [excludes] on a rule that is made of others: "r" refers',
        ),
        ("root ::= Regex()", "line 1, column 10: Regex() takes one string"),
        ('root ::= Regex("a", x=1)', "line 1, column 10: Regex: there is no option 'x'"),
        ('root ::= Regex("a", flags="m")', "line 1, column 10: Regex: flags is a string of"),
        ('root ::= Regex("[é]", byte_mode=true)', "line 1, column 10: in the regex: a byte regex has no characters"),
        (
            'root ::= Regex("\\\\p{L}", byte_mode=true)',
            "line 1, column 10: in the regex: a byte regex has no characters",
        ),
        (
            'root ::= Regex("a", byte_mode=true, flags="i")',
            "line 1, column 10: Regex: byte_mode does not go with flags",
        ),
        ('root ::= Regex("(")', "line 1, column 10: in the regex: "),
        ('root ::= Regex("a"', "line 1, column 10: the parentheses of this Regex are never closed"),
        ("root ::= Substring(1)", "line 1, column 10: Substring: strings are expected"),
        ("root ::= Token()", "line 1, column 10: Token() needs the id of a token"),
        ('root ::= Token("a")', "line 1, column 10: Token: ids of tokens are expected"),
        ("root ::= ExcludeToken(1){2,3}", "line 1, column 10: at least 2 tokens cannot be asked for"),
        ('root ::= TagDispatch("a")', "line 1, column 10: TagDispatch: pairs of a trigger and a rule are expected"),
        ('root ::= TagDispatch(("a", b))', 'line 1, column 28: the rule "b" is not defined'),
        ('root ::= TagDispatch(("a", root), excludes=("a"))', "line 1, column 10: TagDispatch: 'a' is a trigger and"),
        (
            'root ::= TagDispatch(("b", root), ("abc", root))',
            "line 1, column 10: TagDispatch: within 'abc' another trigger comes to its end",
        ),
        ('root ::= TagDispatch(("", root))', "line 1, column 10: TagDispatch: a trigger is empty"),
        ('root ::= "a" (="b"', 'line 1, column 14: this "(=" is never closed'),
        ('root[capture="a]] ::= "b"', "line 1, column 5: these attributes"),
        ("root[max_tokens=3] ::= [a] root?", "line 1, column 1: [max_tokens]: the rule holds itself"),
        ("root[min_tokens=3] ::= [a]{1,2}", "line 1, column 1: [min_tokens]: a text of the rule has at most 2 bytes"),
        (
            "root[min_tokens=3] ::= [a] root [b] | [c]",
            "line 1, column 1: [min_tokens] on a rule that is made of others",
        ),
        ('root[lazy] ::= a\na ::= [b] root | "c"', "line 1, column 1: a [lazy] rule cannot be part of itself"),
        (
            'root[lazy] ::= a "c"\na ::= "(" a ")" | ""',
            "line 1, column 1: [lazy] on a rule that is made of others",
        ),
        ('root ::= "a" ; "b"', "line 1, column 14: unexpected ';'"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(GrammarError) as caught:
        Grammar.from_ebnf(text)
    assert str(caught.value).startswith(message)


def test_a_trigger_may_begin_with_another() -> None:
    text = 'root ::= TagDispatch(("a", one), ("abc", two), ("ab", one))\none ::= "1"\ntwo ::= "2" | "c1"'
    assert language(text, "abc12", 5) == matches("([^a]|a1|ab1|abc2|abcc1)*", "abc12", 5)


def test_many_triggers_are_read_in_time_proportional_to_their_number() -> None:
    def seconds(count: int) -> float:
        pairs = ", ".join(f'("<t{number}>", r)' for number in range(count))
        with processor_time() as spent:
            Grammar.from_ebnf(f'root ::= TagDispatch({pairs})\nr ::= "a"')
        return spent.seconds

    seconds(10)
    # All of them were sorted for each, which took 16 times as long.
    assert seconds(4000) < 8 * seconds(1000) + 0.3
