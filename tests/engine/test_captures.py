"""Captures: what rules have matched, at any time, judged by Lark's own trees."""

from __future__ import annotations

import random
from typing import Any

import lark
import pytest

import constrain
from constrain.engine import chart
from constrain.errors import GrammarError, LimitError

VOCABULARY = constrain.Vocabulary(
    [*(bytes((byte,)) for byte in range(256)), b"</s>", b"", b"ab"],
    eos_ids=[256],
    special_ids=[257],
    names={257: "<|call|>"},
)
END, CALL = 256, 257

Found = list[tuple[str, str, bool]]


def matcher_of(text: str, read: Any = constrain.Grammar.from_lark, **options: Any) -> constrain.Matcher:
    return constrain.Matcher(constrain.CompiledGrammar(read(text, **options).ir, VOCABULARY))


def found_by(matcher: constrain.Matcher) -> Found:
    return [(each.name, each.data.decode(), each.is_complete) for each in matcher.captures()]


def captures(grammar: str, text: str, *, ends: bool = False, **options: Any) -> Found:
    matcher = matcher_of(grammar, **options)
    assert matcher.accept_bytes(text.encode())
    if ends:
        assert matcher.accept_token(END)
    return found_by(matcher)


def test_a_rule_is_complete_where_nothing_can_follow_of_it() -> None:
    grammar = 'start: "<" word ">" word\nword[capture]: /[a-z]+/'
    assert captures(grammar, "<") == []
    assert captures(grammar, "<a") == [("word", "a", False)]
    assert captures(grammar, "<ab>") == [("word", "ab", True)]
    assert captures(grammar, "<ab>c") == [("word", "ab", True), ("word", "c", False)]
    assert captures(grammar, "<ab>c", ends=True) == [("word", "ab", True), ("word", "c", True)]
    assert captures('start: a\na[capture="x.1"]: "ab" "c"?', "ab") == [("x.1", "ab", False)]
    assert captures('start: a "d"?\na[capture]: "ab" "c"', "abc") == [("a", "abc", True)]


def test_rollback_forks_and_tokens_of_several_bytes() -> None:
    matcher = matcher_of('start: w ("," w)*\nw[capture]: /[a-z]+/')
    assert matcher.accept_token(258)
    assert matcher.accept_bytes(b",")
    assert found_by(matcher) == [("w", "ab", True)]
    fork = matcher.fork()
    assert fork.accept_token(258)
    assert found_by(fork) == [("w", "ab", True), ("w", "ab", False)]
    assert found_by(matcher) == [("w", "ab", True)]
    matcher.rollback()
    assert found_by(matcher) == [("w", "ab", False)]
    matcher.rollback()
    assert found_by(matcher) == []
    assert matcher.accept_bytes(b"x,yz")
    assert matcher.accept_token(END)
    assert found_by(matcher) == [("w", "x", True), ("w", "yz", True)]
    matcher.reset()
    assert found_by(matcher) == []


def test_ends_are_no_part_and_have_names() -> None:
    grammar = r"""
        start: think answer
        think[capture, suffix="</t>"]: /(.|\n)*/
        answer[capture="said", stop=/!!+/, stop_capture="mark"]: /[a-z]*/
    """
    assert captures(grammar, "hm<") == [("think", "hm<", False)]
    assert captures(grammar, "hm</t>") == [("think", "hm", True)]
    assert captures(grammar, "hm</t>yes!") == [("think", "hm", True), ("said", "yes!", False)]
    whole = [("think", "hm", True), ("said", "yes", True), ("mark", "!!", True)]
    assert captures(grammar, "hm</t>yes!!", ends=True) == whole


def test_beside_other_first_ends() -> None:
    grammar = r"""
        start: (weather | clock)* TEXT
        weather: head %json {"type": "object"} "</c>"
        head[suffix="<w>", capture="before"]: TEXT
        clock[capture]: TEXT "<k>" /[0-9]+/ "</c>"
        TEXT: /(.|\n)*/
    """
    assert captures(grammar, "x<w>{}</c>y") == [("before", "x", True), *captures(grammar, "y")]


@pytest.mark.parametrize("inner", ["", '%llguidance {"ignore_once": true}\n'])
def test_what_is_ignored_is_no_part(inner: str) -> None:
    grammar = inner + 'start: pair+\npair[capture]: key "=" /[0-9]/\nkey[capture]: /[a-z]+/ "k"?\n%ignore " "'
    first, second = [("pair", "a =1", True), ("key", "a", True)], [("pair", "b", False), ("key", "b", False)]
    assert captures(grammar, "a =1 b") == first + second
    assert captures(grammar, "a =1 ")[0] == ("pair", "a =1", True)


def test_values_of_schemas_whatever_makes_their_rules() -> None:
    schema = '{"type": "array", "items": {"type": "integer"}, "uniqueItems": true}'
    grammar = f"start: first second\nfirst[capture]: %json {schema}\nsecond[capture]: %json {{}}\n"
    assert captures(grammar, '[1, 2]{"a": [') == [("first", "[1, 2]", True), ("second", '{"a": [', False)]
    assert captures(grammar, '[1, 2]{"a": []}', ends=True)[1] == ("second", '{"a": []}', True)


def test_special_tokens_have_no_text() -> None:
    matcher = matcher_of("start: name number\nname[capture]: /[a-z]*/ <|call|>\nnumber[capture]: <[258]> /[0-9]+/")
    assert matcher.accept_bytes(b"xy")
    assert matcher.accept_token(CALL)
    assert matcher.accept_token(258)
    assert found_by(matcher) == [("name", "xy", True), ("number", "ab", False)]


def test_earlier_parts_take_as_much_as_they_can() -> None:
    grammar = "start: a b\na[capture]: /x*/\nb[capture]: /x*/"
    assert captures(grammar, "xx", ends=True) == [("a", "xx", True)]
    assert captures('start: a b\na[capture]: /x*/\nb[capture]: "x"', "xxx", ends=True) == [
        ("a", "xx", True),
        ("b", "x", True),
    ]
    assert captures('start: a\na: a | b\nb[capture]: a | "x"', "x", ends=True) == [("b", "x", True)]


def test_ebnf() -> None:
    matcher = matcher_of('root ::= "<" r ">"\nr[capture="x"] ::= [a-z]+', constrain.Grammar.from_ebnf)
    assert matcher.accept_bytes(b"<ab>")
    assert found_by(matcher) == [("x", "ab", True)]


def test_ebnf_that_leaves_bytes_out_of_a_capture() -> None:
    """What XGrammar writes for ``x[suffix="<e>", stop_capture="end"]`` in Lark."""
    attributes = 'capture="x", capture_hidden_suffix_bytes=3, stop_capture="end", lazy'
    matcher = matcher_of(f'root ::= ((x "!"))\nx[{attributes}] ::= Regex("[ab]*<e>")', constrain.Grammar.from_ebnf)
    assert matcher.accept_bytes(b"ab<e")
    assert found_by(matcher) == [("x", "ab<e", False)]
    assert matcher.accept_bytes(b">!")
    assert found_by(matcher) == [("x", "ab", True), ("end", "<e>", True)]
    with pytest.raises(GrammarError, match=r"\[capture_hidden_stop_bytes\] beside \[max_tokens\] is not supported"):
        constrain.Grammar.from_ebnf('root[capture_hidden_stop_bytes=1, max_tokens=2] ::= "a"')
    with pytest.raises(GrammarError, match=r"_suffix_bytes\] beside \[capture_hidden_stop_bytes\] is not supported"):
        constrain.Grammar.from_ebnf('root[capture_hidden_suffix_bytes=1, capture_hidden_stop_bytes=2] ::= "a"')


def test_nothing_is_captured_where_nothing_is_asked_for() -> None:
    matcher = matcher_of("start: /[a-z]+/")
    assert matcher.accept_bytes(b"ab")
    assert matcher.captures() == []


def test_longest_match_captures_nothing() -> None:
    with pytest.raises(GrammarError, match=r"\[capture\].*longest"):
        constrain.Grammar.from_lark("start: a\na[capture]: /[a-z]+/", lexing="longest")


def test_too_many_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chart, "MOST_ITEMS", 500)
    matcher = matcher_of('start: r\nr[capture]: r r | "x"')
    assert matcher.accept_bytes(b"x" * 40)
    with pytest.raises(LimitError, match="more than 500 items"):
        matcher.captures()
    matcher.rollback()
    assert matcher.accept_bytes(b"x")
    assert len(matcher_of('start: r\nr[capture]: "y"').captures()) == 0


ARITHMETIC = """
    start: sum
    sum{0}: product | sum "+" product
    product{0}: atom | product "*" atom
    atom{0}: /[0-9]+/ | "(" sum ")" | "-" atom
"""


def random_sum(random_: random.Random, depth: int) -> str:
    kind = random_.random()
    if depth == 0 or kind < 0.3:
        return str(random_.randrange(1000))
    if kind < 0.5:
        return f"({random_sum(random_, depth - 1)})"
    if kind < 0.6:
        return f"-{random_.randrange(10)}"
    return f"{random_sum(random_, depth - 1)}{random_.choice('+*')}{random_sum(random_, depth - 1)}"


def spans(tree: lark.Tree[Any], text: str) -> Found:
    found = [(str(tree.data), text[tree.meta.start_pos : tree.meta.end_pos], True)] if tree.data != "start" else []
    for child in tree.children:
        if isinstance(child, lark.Tree):
            found += spans(child, text)
    return found


@pytest.mark.parametrize("seed", range(8))
def test_the_trees_of_lark(seed: int) -> None:
    random_ = random.Random(seed)
    judge = lark.Lark(
        ARITHMETIC.format("").replace("sum:", "!sum:").replace("product:", "!product:").replace("atom:", "!atom:"),
        propagate_positions=True,
        parser="lalr",
    )
    matcher = matcher_of(ARITHMETIC.format("[capture]"))
    for _ in range(5):
        text = random_sum(random_, 4)
        matcher.reset()
        was: Found = []
        for place, byte in enumerate(text.encode(), 1):
            assert matcher.accept_token(byte)
            now = found_by(matcher)
            fresh = matcher_of(ARITHMETIC.format("[capture]"))
            if place % 7 == 0:
                assert fresh.accept_bytes(text[:place].encode())
                assert found_by(fresh) == now
            # What is complete stays as it is.
            done = [each for each in was if each[2]]
            assert all(each in now for each in done)
            was = now
        assert matcher.accept_token(END)
        assert found_by(matcher) == spans(judge.parse(text), text)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("the answer", "the answer"),
        ("list:word", "list:word"),
        (r"a \"b\" \\ c", 'a "b" \\ c'),
        (r"caf\u00e9 \ud83d\ude00", "caf\u00e9 \U0001f600"),
        ("日本", "日本"),
        ("a, b] = /c/", "a, b] = /c/"),
    ],
)
@pytest.mark.parametrize("attribute", ["capture", "stop_capture"])
def test_any_string_is_a_name(attribute: str, written: str, name: str) -> None:
    text = f'start: x "!"\nx[{attribute}="{written}", stop="."]: /[a-z]*/'
    matcher = matcher_of(text)
    assert matcher.accept_bytes(b"ab.!")
    assert [each.name for each in matcher.captures()] == [name]


def test_any_string_is_a_name_in_ebnf_too() -> None:
    matcher = matcher_of(r'root[capture="the \"first\" word"] ::= [a-z]+', constrain.Grammar.from_ebnf)
    assert matcher.accept_bytes(b"ab")
    assert [each.name for each in matcher.captures()] == ['the "first" word']


@pytest.mark.parametrize("value", ['""', '"a"i', "/a/", "A", "3"])
def test_what_is_no_name_is_refused(value: str) -> None:
    with pytest.raises(GrammarError, match=r"line 2, column 3: \[capture\] takes a name in quotes"):
        constrain.Grammar.from_lark(f'start: x\nx[capture={value}]: "a"\nA: "a"')
