"""What llguidance and XGrammar have added to Lark's notation: what it means, and what is refused."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from functools import cache

import pytest
from byte_tokens import fits, language_of
from hypothesis import given, settings
from hypothesis import strategies as st

from constrain import CompiledGrammar, Grammar, GrammarCompiler, GrammarError, Matcher, Vocabulary

BYTES = [bytes([byte]) for byte in range(256)]
PLAIN = GrammarCompiler(Vocabulary([*BYTES, b"</s>"], eos_ids=[256]))
SPECIAL = Vocabulary(
    [*BYTES, b"ab", b"</think>", b"", b"", b"</s>"],
    eos_ids=[260],
    special_ids=[258, 259],
    names={258: "<|call|>", 259: "<|end|>"},
)


def compiled(text: str) -> CompiledGrammar:
    return PLAIN.compile(Grammar.from_lark(text))


def language(text: str, alphabet: str, length: int) -> set[str]:
    """The texts of a grammar over an alphabet, up to a length."""
    return language_of(compiled(text), alphabet, length)


def words(alphabet: str, length: int) -> Iterator[str]:
    for count in range(length + 1):
        for letters in itertools.product(alphabet, repeat=count):
            yield "".join(letters)


def those(alphabet: str, length: int, holds: Callable[[str], object]) -> set[str]:
    return {word for word in words(alphabet, length) if holds(word)}


# -- counts, intersections, complements --------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "low", "high"), [("{2}", 2, 2), ("{2,}", 2, 9), ("{,2}", 0, 2), ("{ 1 , 3 }", 1, 3), ("~2", 2, 2)]
)
def test_counts(counts: str, low: int, high: int) -> None:
    for grammar in (f'start: "a"{counts}', f'start: a{counts}\na: "a"', f'start: A\nA: "a"{counts}'):
        assert language(grammar, "a", 5) == {"a" * count for count in range(low, min(high, 5) + 1)}


def test_templates_and_counts_are_told_apart() -> None:
    assert language('start: twice{"a"}{2}\ntwice{x}: x x', "a", 6) == {"aaaa"}


def test_and_binds_tighter_than_or_and_not_tighter_than_counts() -> None:
    grammar = "start: T\nT: /a+/ & /(aa)*/ | /b/ & /./"
    assert language(grammar, "ab", 4) == {"aa", "aaaa", "b"}
    assert language('start: T\nT: /[ab]*/ & ~/.*aa.*/ & ~"b"', "ab", 4) == those(
        "ab", 4, lambda word: "aa" not in word and word != "b"
    )
    assert language('start: T\nT: (~/[ab]*/ | "a")+ & /a{1,2}/', "ab", 3) == {"a", "aa"}


def test_a_complement_is_one_of_texts() -> None:
    place = compiled('start: T\nT: ~"a"').recognizer()
    assert not place.try_push_byte(0xFF)
    assert all(place.try_push_byte(byte) for byte in "é".encode())


def test_names_with_dashes() -> None:
    assert language('start: foo-bar FOO-BAR -> x\nfoo-bar: "a"\nFOO-BAR: "b"', "ab-", 3) == {"ab"}


# -- first ends ----------------------------------------------------------------------------------


def _shortest(pattern: str, word: str) -> bool:
    return bool(re.fullmatch(pattern, word)) and not any(
        re.fullmatch(pattern, word[:length]) for length in range(len(word))
    )


@pytest.mark.parametrize("pattern", ["[ab]*", "[ab]+", "[ab]*>", "a(b|ab)*>?", "(a|ab)(>|b>)", "[ab]*aba", "[ab>]*>>"])
def test_lazy_is_the_shortest_text(pattern: str) -> None:
    found = language(f"start: x\nx[lazy]: /{pattern}/", "ab>", 6)
    assert found == those("ab>", 6, lambda word: _shortest(pattern, word))


@pytest.mark.parametrize("attribute", ["suffix", "stop"])
@pytest.mark.parametrize(("body", "end"), [("[ab]*", "a>"), ("[ab>]*", "aba"), ("[ab]{1,2}", "b>?")])
def test_a_text_ends_with_the_first_end(attribute: str, body: str, end: str) -> None:
    found = language(f'start: x "b"\nx[{attribute}=/{end}/, capture="it"]: /{body}/', "ab>", 6)
    assert found == those("ab>", 6, lambda word: word.endswith("b") and _shortest(f"({body})({end})", word[:-1]))


def test_the_end_may_be_a_terminal_or_a_string() -> None:
    assert language("start: x\nx[suffix=END]: /a*/\nEND: />+/", "a>", 3) == {">", "a>", "aa>"}
    assert language('start: x\nx[suffix="B"i]: /a*/', "abB", 2) == {"b", "B", "ab", "aB"}


def test_an_empty_stop_is_the_end_of_the_generation() -> None:
    assert language('start: x "b"\nx[stop=""]: /a*/', "ab", 3) == {"b", "ab", "aab"}
    assert language('start: x "b"\nx[stop="", lazy]: /a+/', "ab", 3) == {"ab"}


def test_free_text_beside_a_first_end_does_not_hold_it() -> None:
    grammar = r"""
        start: (foo | bar)* /(.|\n)*/
        foo: foo_head /[0-9]+/ ">"
        foo_head[lazy]: /(.|\n)*<f/
        bar: bar_head ">"
        bar_head[suffix="<b"]: /(.|\n)*/
    """
    expected = re.compile(r"((?:(?!<f|<b).)*(?:<f1+>|<b>))*(?:(?!<f|<b).)*", re.DOTALL)
    assert language(grammar, "<fb1>", 6) == those("<fb1>", 6, expected.fullmatch)


def test_ends_that_overlap() -> None:
    grammar = 'start: (x | y)* /[ab]*/\nx: hx "1"\nhx[lazy]: /(.|\\n)*aba/\ny: hy "2"\nhy[lazy]: /(.|\\n)*ab/'
    # "ab" always comes first.
    expected = re.compile(r"(?:(?:(?!ab).)*ab2)*(?:(?!ab)[ab])*", re.DOTALL)
    assert language(grammar, "ab12", 6) == those("ab12", 6, expected.fullmatch)


@settings(max_examples=30, deadline=None)
@given(
    ends=st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=3, unique=True),
    body=st.sampled_from(["(.|\\n)*", "[ab]*", "(a|ba)*"]),
)
def test_many_ends(ends: list[str], body: str) -> None:
    rules = "".join(f't{n}: h{n} "{n}"\nh{n}[suffix="{end}"]: /{body}/\n' for n, end in enumerate(ends))
    grammar = f"start: ({' | '.join(f't{n}' for n in range(len(ends)))})* tail\ntail: /(.|\\n)*/\n{rules}"
    pattern = body.replace("(.|\\n)", "[^x]")

    def is_text(word: str) -> bool:
        """Read as a lexer does: where the first end is read, what ends there goes on, and nothing else."""
        begin = 0
        for stop in range(len(word) + 1):
            piece = word[begin:stop]
            ending = [n for n, end in enumerate(ends) if re.fullmatch(f"(?:{pattern}){end}", piece)]
            if ending:
                if stop == len(word) or word[stop] not in map(str, ending):
                    return False
                return is_text(word[stop + 1 :])
        return True

    digits = "".join(map(str, range(len(ends))))
    assert language(grammar, "ab" + digits, 5) == those("ab" + digits, 5, is_text)


# -- tokens ----------------------------------------------------------------------------------------


def walk(text: str, *steps: int | bytes) -> Matcher:
    matcher = Matcher(GrammarCompiler(SPECIAL).compile(Grammar.from_lark(text)))
    for step in steps:
        assert matcher.accept_token(step) if isinstance(step, int) else matcher.accept_bytes(step), step
    return matcher


def test_tokens_by_name_and_id() -> None:
    text = "start: <|call|> /[a-z]+/ <[259]>"
    matcher = walk(text, 258, b"abc", 259)
    assert matcher.is_accepting()
    assert not walk(text).accept_bytes(b"<|call|>")
    assert not walk(text, 258, b"a").accept_token(258)
    assert walk("start: <[97-98,258]>", 97).is_accepting()
    assert [str(each) for each in walk(text, 258, b"abc").expected()] == ["[a-z] (more of /[a-z]+/)", "<[259]>"]


def test_thoughts_end_with_a_token_that_the_tokenizer_does_not_call_special() -> None:
    matcher = walk(r"start: /(.|\n)*/ </think> /[0-9]+/", b"so <it> is\n", 257)
    assert not matcher.accept_bytes(b"x")
    assert matcher.accept_bytes(b"12")


def test_any_tokens() -> None:
    matcher = walk("start: <[^259]>* <|end|>", b"a\xc3", 258, b"\x80", 258, 259)
    assert matcher.is_accepting()
    assert walk('start: <[*]>+ "!"', 258, b"!").is_accepting()
    with pytest.raises(GrammarError, match="at least 3 tokens cannot be asked for"):
        Grammar.from_lark("start: <[*]>{3}")


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(GrammarError, match=r'line 2, column 4: .*no token "<\|cal\|>"; near it are <\|call\|>'):
        GrammarCompiler(SPECIAL).compile(Grammar.from_lark("start: a\na: <|cal|>"))


# -- other notations inside ------------------------------------------------------------------------


def accepts(text: str, *good: str) -> Callable[..., None]:
    grammar = compiled(text)

    def judge(word: str) -> bool:
        matcher = Matcher(grammar)
        return matcher.accept_bytes(word.encode()) and matcher.is_accepting()

    for word in good:
        assert judge(word), word

    def rejects(*bad: str) -> None:
        for word in bad:
            assert not judge(word), word

    return rejects


def test_json_inside() -> None:
    text = 'start: "<" obj ("," obj)* ">"\nobj: %json {\n "type": "object", "properties": {"a": {"type": "integer"}},\n'
    text += ' "required": ["a"], "additionalProperties": false\n}\n%ignore " "'
    rejects = accepts(text, '<{"a":1}>', '< {"a": 12} , {"a":3} >', ' <{"a"\n:1}>')
    rejects('<{"a": 1 2}>', '<{"a": "1"}>', '<{" a": 1}>', '<{"a": 1}\n>', "<{}>")


def test_any_json_inside() -> None:
    accepts('start: "<" (%json true) ">"', "<1>", '<{"a": [null]}>')("<>", "<tru>")
    with pytest.raises(GrammarError, match="line 1, column 8: in the schema, at #: nothing is valid"):
        compiled("start: %json false")
    with pytest.raises(GrammarError):
        compiled("start: %json truth")


def test_keys_in_json_inside_are_unique() -> None:
    rejects = accepts('start: %json {"type": "object"} "!"', '{"a": 1, "b": {"a": 2}}!')
    rejects('{"a": 1, "a": 2}!')


def test_lark_inside_ignores_what_it_says() -> None:
    text = 'start: "(" %lark {\n  start: A+ "}" // a brace }\n  A: "a"\n  %ignore "."\n} ")"\n%ignore " "'
    rejects = accepts(text, "(a})", "( .a.a.}. )")
    rejects("(a a})", "(.a.})x", ".(a})")


def test_parts_of_a_text() -> None:
    assert language('start: %regex {"substring_chars": "abca"}', "abc", 4) == {
        "abca"[i:j] for i in range(5) for j in range(i, 5)
    }
    rejects = accepts('start: X\nX: "<" %regex {"substring_words": "foo bar. b"} ">"', "<>", "<foo bar>", "< bar. b>")
    rejects("<oo>", "<foo b>")
    accepts('start: %regex {"substring_chunks": ["ab", "", "c"]}', "", "ab", "abc", "c")("a", "ca")


def test_the_parts_of_a_long_text_are_read_again() -> None:
    """The same trees are compared with the earlier ones; they are nested deeper than Python recurses."""
    text = f'start: %regex {{"substring_words": "{" ".join(f"w{i}" for i in range(900))}"}}'
    grammars = [Grammar.from_lark(text).ir for _ in range(2)]
    assert grammars[0].lexemes == grammars[1].lexemes
    other = Grammar.from_lark(text.replace("w899", "w89")).ir
    assert grammars[0].lexemes != other.lexemes


TAGS = [
    {"type": "const_string", "value": "ab"},
    {"type": "any_text", "excludes": ["ba"]},
    {"type": "grammar", "grammar": 'root ::= "a" root "b" | ""'},
    {"type": "tag", "begin": "a", "content": {"type": "any_text"}, "end": ["ab", "bb"]},
    {
        "type": "triggered_tags",
        "triggers": ["a"],
        "tags": [{"begin": "ab", "content": {"type": "any_text"}, "end": "b"}],
    },
    {"type": "dispatch", "rules": [["ab", {"type": "const_string", "value": "b"}]], "loop": False},
]


@pytest.mark.parametrize("tag", TAGS, ids=lambda tag: tag["type"])
def test_structural_tags_inside_a_grammar(tag: dict[str, object]) -> None:
    alone = PLAIN.compile(Grammar.from_structural_tag(tag))

    @cache
    def is_one(text: str) -> bool:
        return fits(alone, text)

    block = "%structural_tag " + json.dumps({"type": "structural_tag", "format": tag})
    assert language(f"start: {block}", "ab", 6) == those("ab", 6, is_one)
    # What is ignored stands around the tag; within it, it is text.
    ahead, behind = re.compile("c*<c*"), re.compile("c*>c*")

    def is_around_one(text: str) -> bool:
        ends = range(len(text) + 1)
        begins = [begin for begin in ends if ahead.fullmatch(text[:begin])]
        return any(is_one(text[begin:end]) for begin in begins for end in ends if behind.fullmatch(text[end:]))

    around = f'start: "<" {block} ">"\n%ignore "c"'
    assert language(around, "<abc>", 5) == those("<abc>", 5, is_around_one)


def test_options() -> None:
    accepts('%llguidance {}\n%llguidance {"no_forcing": true}\nstart: "a"', "a")
    # Terminals end where they can: a word of which another one begins is no longer waited for.
    backtracking = '%llguidance {"lexer_backtracking": true}\nstart: STEM "ness"\nSTEM: "neat" | "neatnest"'
    accepts(backtracking, "neatness", "neatnestness")
    with pytest.raises(GrammarError, match="longest"):
        Grammar.from_lark(backtracking, lexing="longest")
    with pytest.raises(GrammarError, match=r"line 1, column 1: .*'colour' is not supported"):
        Grammar.from_lark('%llguidance {"colour": 1}\nstart: "a"')


# -- rules with numbers ------------------------------------------------------------------------------


def test_permutations() -> None:
    grammar = """
        start: perm::0x0
        perm::_: ""                      %if is_ones([0:3])
               | "a" perm::set_bit(0)    %if bit_clear(0)
               | "b" perm::set_bit(1)    %if bit_clear(1)
               | "c" perm::set_bit(2)    %if bit_clear(2)   // the last
    """
    assert language(grammar, "abc", 4) == {"".join(each) for each in itertools.permutations("abc")}


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("lt(_, 3)", lambda n: n < 3),
        ("and(ge([0:2], 1), not(eq([0:2], 2)))", lambda n: n % 4 >= 1 and n % 4 != 2),
        ("or(bit_set(2), is_zeros([0:2]))", lambda n: bool(n & 4) or n % 4 == 0),
        ("bit_count_ge([0:3], 2)", lambda n: (n % 8).bit_count() >= 2),
        ("true", lambda n: True),
        ("ne([0:64], 0x1)", lambda n: n != 1),
    ],
)
def test_conditions(condition: str, holds: Callable[[int], bool]) -> None:
    grammar = f'start: r::0\nr::_: "a" r::incr(_) %if lt(_, 5)\n   | "." %if {condition}'
    assert language(grammar, "a.", 6) == {"a" * n + "." for n in range(6) if holds(n)}


def test_functions_of_numbers() -> None:
    grammar = 'start: r::7\nr::_: "a" r::decr([0:2]) %if gt([0:2], 0)\n | "." %if eq(_, 4)'
    assert language(grammar, "a.", 5) == {"aaa."}
    grammar = 'start: r::6\nr::_: "a" s::clear_bit(1)\ns::_: "b" t::bit_or(3)\nt::_: "c" u::bit_and(0x3)\n'
    assert language(grammar + 'u::_: "d" %if eq(_, 3)', "abcd", 4) == {"abcd"}


def test_templates_beside_many_rules_with_numbers() -> None:
    """The rules of both were counted as one."""
    grammar = 'start: a::0\na::_: "1" a::incr(_) %if lt(_, 11000)\n | t{"."} %if eq(_, 11000)\nt{x}: x'
    assert len(Grammar.from_lark(grammar).ir.productions) > 11_000


# -- what is refused -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('start: x\nx[max_tokens=3]: "a" x?', "line 2, column 1: [max_tokens]: the rule holds itself"),
        ("start: x\nx[min_tokens=3]: /a?/", "line 2, column 1: [min_tokens]: a text of the rule has at most 1 bytes"),
        ("start: x\nx[max_chars]: /a*/", "line 2, column 3: [max_chars] takes a number"),
        ("start: x\nx[colour=1]: /a*/", "line 2, column 3: [colour]: there is no such attribute"),
        ("start: x\nx[lazy, lazy]: /a*/", "line 2, column 9: [lazy] is there twice"),
        ("start: x\nx[lazy=1]: /a*/", "line 2, column 3: [lazy] takes no value"),
        ("start: x\nx[suffix]: /a*/", "line 2, column 3: [suffix] takes a string, a regex or a terminal"),
        ('start: x\nx[suffix=""]: /a*/', "line 2, column 3: [suffix] cannot be empty"),
        ('start: x\nx[stop="a", suffix="b"]: /a*/', "line 2, column 2: [stop] and [suffix] cannot stand on one rule"),
        ("start: x\nx[suffix=END]: /a*/", 'line 2, column 10: the terminal "END" is not defined'),
        ("start: x\nx[temperature=-1]: /a*/", "line 2, column 3: [temperature] takes a number of at least 0"),
        ('start: x\nx[capture=""]: /a*/', "line 2, column 3: [capture] takes a name in quotes"),
        ("start: x\nx[lazy]: y\ny: /a*/", 'line 2, column 10: [lazy]: the rule "x" names its end'),
        ("start: x\nx[lazy, max_chars=2]: /a*/ <[3]>", 'line 2, column 28: [lazy]: the rule "x" names its end'),
        ("start: x\nx[lazy]: /a*/ (<[3]> | /b/)", 'line 2, column 16: [lazy]: the rule "x" names its end'),
        ("start: X\nX[lazy]: /a*/", "line 2, column 2: attributes can stand on rules only"),
        ("start: a & b\na: /a/\nb: /a/", 'line 1, column 8: "&" can stand in terminals only'),
        ('start: ~"a"', 'line 1, column 9: "~" can stand in terminals only'),
        ("start: X\nX: <|a|>", "line 2, column 4: a token can stand in rules only"),
        ("start: X\nX: %json {}", "line 2, column 4: %json can stand in rules only"),
        (
            'start: X\nX: %structural_tag {"type": "any_text"}',
            "line 2, column 4: %structural_tag can stand in rules only",
        ),
        ('start: %structural_tag {"type": "tag"}', "line 1, column 8: in the structural tag, at #: begin is missing"),
        ("start: %json", "line 1, column 8: %json needs braces behind it"),
        ('start: %json {"type": }', "line 1, column 23: in the JSON of %json: Expecting value"),
        ('start: %json {"type": "x"}', "line 1, column 8: in the schema, at #"),
        ("start: %lark {", 'line 1, column 8: the "{" of this %lark is never closed'),
        ("start: %lark {\n  start: b\n}", 'line 2, column 10: the rule "b" is not defined'),
        ('start: %lark { a: "b" }', 'line 1, column 8: the grammar in %lark needs a rule "start"'),
        ('start: %regex {"a": 1}', "line 1, column 8: %regex takes a JSON object with one of"),
        ('start: %regex {"substring_chars": 1}', "line 1, column 8: %regex: substring_chars takes a string"),
        ("start: @other", "line 1, column 8: there is no grammar @other beside this one"),
        ("start: <[a]>", "line 1, column 8: the tokens <[a]> cannot be read"),
        ("start: <[5-3]>", "line 1, column 8: the range of tokens 5-3 is in the wrong order"),
        ("start: r\nr::_: /a/", 'line 1, column 8: the rule "r" needs a number'),
        ("start: r::0\nr: /a/", 'line 1, column 8: the rule "r" has no number'),
        ("start: r::incr(_)\nr::_: /a/", 'line 1, column 9: "::incr(_)" needs the number of the rule'),
        ("start: r::0\nr::_: r::grow(_)", 'line 2, column 8: there is no function "grow"'),
        ("start: r::0\nr::_: /a/ %if maybe(_)", 'line 2, column 11: there is no condition "maybe"'),
        ("start: r::0\nr::_: /a/ %if lt(_)", "line 2, column 11: 2 arguments expected, not 1"),
        ("start: r::0\nr::_: /a/ %if bit_set(64)", "line 2, column 11: the number of a bit, below 64"),
        ('start: "a" %if true', "line 1, column 8: %if can stand in a rule with a number only"),
        ('start: r::0\nr::_: "a" r::incr(_)', "line 2, column 1: the rules with numbers make more than"),
        ('start: "a"{3,2}', "line 1, column 11: the counts {3,2} are in the wrong order"),
        ('start: "a"{1000001}', "line 1, column 11: the count 1000001 is above the limit"),
        ("%llguidance\nstart: /a/", "line 1, column 1: %llguidance needs a JSON object"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(GrammarError) as caught:
        Grammar.from_lark(text)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
