"""Rules that are over after so many tokens: against a reference that knows no Earley sets, and what goes along."""

import itertools
import pickle
import random
import re

import numpy as np
import pytest

import constrain
from bench.fuzz import seams
from constrain.grammar.ir import GrammarBuilder
from constrain.grammar.languages.derivatives import Automaton
from constrain.grammar.languages.regular import byte_set
from constrain.grammar.least_tokens import write_least
from constrain.grammar.regex import regex_language
from constrain.tokenizers.mock import MockTokenizer

LETTERS = [bytes([byte]) for byte in range(256)]


def vocabulary(*longer):
    tokens = [*LETTERS, *longer, b"</s>"]
    return constrain.Vocabulary(tokens, eos_ids=[len(tokens) - 1])


class Texts:
    """A matcher that takes tokens as they are spelled."""

    def __init__(self, grammar, *longer, **options):
        self.vocabulary = vocabulary(*longer)
        grammar = constrain.Grammar.from_lark(grammar) if isinstance(grammar, str) else grammar
        self.compiled = constrain.GrammarCompiler(self.vocabulary).compile(grammar)
        self.matcher = constrain.Matcher(self.compiled, **options)

    def allowed(self, matcher=None):
        return allowed(matcher or self.matcher)

    def take(self, *tokens):
        for token in tokens:
            assert self.matcher.accept_token(self.vocabulary.tokens.index(token)), token
        return self

    def ends(self):
        return self.allowed() == {b"</s>"}


def allowed(matcher):
    """The tokens that a mask allows, as they are spelled; each is taken by ``accept_token``, and no other."""
    vocabulary = matcher.compiled.vocabulary
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    matcher.fill_next_token_bitmask(mask)
    bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[: vocabulary.size].astype(bool)
    for token in range(vocabulary.size):
        assert matcher.fork().accept_token(token) == bits[token]
    return {vocabulary.shown(token) for token in np.flatnonzero(bits).tolist()}


@pytest.mark.parametrize("most", [None, 3])
def test_a_completion_ends_where_a_rule_on_its_way_is_over(most):
    text = 'start: r\nr[max_tokens=2, suffix=";"]: /.*/'
    texts = Texts(text, max_tokens=most).take(b"\xc3")
    completion = texts.matcher.completion()
    # With two tokens there is a character, and the rule may end without the ";" that the grammar has behind it.
    assert len(completion) == texts.matcher.tokens_to_finish() == 1
    assert texts.matcher.accept_tokens(completion)
    assert texts.ends()


# -- what it says --------------------------------------------------------------------------------------


def test_a_completion_is_given_up_where_its_end_comes_no_nearer():
    """The rule needs four tokens and has one: each time it is closed, all that is left is to begin anew."""
    text = r"""
        start: (T1 | T1) r1* T1 r0
        r0: T2 r1 r1
        r1[max_tokens=1]: T0 T3+
        T0: /[<]/
        T1: /[;]|[;<abc]|[;<abc]+/
        T2: /[ac]/
        T3: /[;<abc]{2}[;<abc]/
    """
    single = constrain.Vocabulary([b"a", b"b", b"c", b"<", b";", b"</s>"], eos_ids=[5])
    matcher = constrain.Matcher(constrain.GrammarCompiler(single).compile(constrain.Grammar.from_lark(text)))
    with pytest.raises(constrain.ConstrainError, match="no way to complete"):
        matcher.completion()
    assert matcher.steps == 0


def test_over_after_so_many_tokens():
    texts = Texts('start: "<" r ">"\nr[max_tokens=2]: /[a-z]+/', b"ab", b"cd", b"cd>").take(b"<", b"ab")
    assert b">" in texts.allowed()
    assert b"x" in texts.allowed()
    assert b"cd>" in texts.allowed()
    texts.take(b"cd")
    assert texts.allowed() == {b">"}


def test_a_token_that_reaches_into_it_counts():
    texts = Texts('start: "<" r ">"\nr[max_tokens=2]: /[a-z]+/', b"<ab", b"cd").take(b"<ab", b"cd")
    assert texts.allowed() == {b">"}


def test_the_way_behind_the_rule_may_have_begun():
    texts = Texts('start: r "<t>"\nr[max_tokens=2]: /(.|\\n)*/', b"ab", b"c<", b"<t", b"t>").take(b"ab", b"c<")
    # Either "<" is text, and "<t>" begins, or "<t>" has begun.
    assert texts.allowed() == {b"<", b"<t", b"t", b"t>"}
    assert texts.take(b"t>").ends()


def test_goes_on_until_it_can_end():
    texts = Texts('start: "<" r ">"\nr[max_tokens=2]: /[a-z]+;/', b"ab").take(b"<", b"ab", b"ab")
    assert b";" in texts.allowed()
    assert b"ab" in texts.allowed()
    assert b">" not in texts.allowed()
    assert texts.take(b"ab", b";").allowed() == {b">"}


def test_the_text_ends_with_it():
    texts = Texts("start: r\nr[max_tokens=2]: /.*/", b"ab").take(b"ab", b"ab")
    assert texts.ends()


def test_each_of_several_has_its_own_tokens():
    texts = Texts('start: r+ "1"\nr[max_tokens=2]: /[a-z]+;/', b"ab;", b"cd", b";x").take(b"ab;", b"cd", b";x")
    # The second one took its two tokens, the third is in its first.
    assert b"cd" in texts.allowed()
    assert texts.take(b"cd").allowed() > {b";", b"a"}


def test_inner_limits_hold_within_outer_ones():
    grammar = 'start: a "1"\na[max_tokens=3]: "x" b\nb[max_tokens={}]: /([a-z]* )+/'
    for inner, count in ((9, 2), (1, 1)):
        texts = Texts(grammar.format(inner), b"ab ").take(b"x", *[b"ab "] * count)
        assert texts.allowed() == {b"1"}


def test_a_rule_that_is_closed_leaves_the_others_their_counts():
    grammar = "start: short | long\nshort[max_tokens=2]: /a/ /c/ /[b;]*/\nlong[max_tokens=3]: /a/ /c/ /[abc]+/"
    texts = Texts(grammar).take(b"a", b"c")
    # "short" is over behind the second token, and "long" counts on from the first one.
    assert texts.allowed() == {b"a", b"b", b"c", b"</s>"}
    assert texts.take(b"a").ends()


def test_a_rule_counts_on_where_it_began_in_a_place_that_another_use_was_in():
    texts = Texts("start: word r\nr[max_tokens=2]: word\nword: /a*/ /c?/ /c?/").take(b"c", b"a")
    # The second use, from the first byte on, is over; the one behind "c" is in its first token.
    assert b"c" in texts.allowed()
    assert texts.take(b"c").ends()


def test_rules_that_are_used_elsewhere_too_are_not_limited_there():
    texts = Texts("start: w+ r w+\nr[max_tokens=2]: w /!/ w\nw: /[a-z]+;/", b"a;", b"!a").take(*[b"a;"] * 4)
    assert texts.allowed() >= {b"a;", b"!a"}
    texts.take(b"!a", b";", b"a;", b"a;")
    assert b"a;" in texts.allowed()
    assert b"</s>" in texts.allowed()


def test_many_limited_rules_are_separated_without_looking_at_the_whole_grammar_for_each(monkeypatch):
    seen = []
    productions_since = GrammarBuilder.productions_since

    def counted(builder, count):
        found = productions_since(builder, count)
        seen.append(len(found))
        return found

    monkeypatch.setattr(GrammarBuilder, "productions_since", counted)
    names = [f"r{number}" for number in range(300)]
    texts = "".join(f'{name}[max_tokens=3]: WORD "{name}"\n' for name in names)
    grammar = constrain.Grammar.from_lark(f"start: {' | '.join(names)}\n{texts}WORD: /[a-z]+/\n")
    assert len(grammar.ir.token_limits) == 300
    # It was over a thousand times the number of rules.
    assert sum(seen) < 10 * len(names)


def test_what_is_ignored():
    texts = Texts('start: "<" r ">"\nr[max_tokens=2]: A+\nA: "a"\n%ignore " "', b"a ").take(b"<", b"a ", b"a ")
    assert texts.allowed() == {b" ", b">"}


def test_no_tokens_at_all():
    assert Texts('start: "<" r ">"\nr[max_tokens=0]: /[a-z]*/').take(b"<").allowed() == {b">"}
    texts = Texts('start: "<" r ">"\nr[max_tokens=0]: /[a-z]+/').take(b"<", b"a")
    assert texts.allowed() == {b">"}


def test_an_end_may_be_missing():
    for attribute in ('suffix="!"', 'stop="!"'):
        grammar = f'start: r ">"\nr[max_tokens=2, {attribute}, capture]: /(.|\\n)*/'
        assert Texts(grammar, b"ab").take(b"ab", b"!").allowed() == {b">"}
        texts = Texts(grammar, b"ab").take(b"ab", b"ab")
        assert texts.allowed() == {b">"}
        assert [(each.data, each.is_complete) for each in texts.matcher.captures()] == [(b"abab", True)]
    # Not where what stands before it is not complete.
    texts = Texts('start: r ">"\nr[max_tokens=1, suffix="!"]: /[ab]+;/').take(b"a")
    assert texts.allowed() == {b"a", b"b", b";"}
    assert texts.take(b";").allowed() == {b">"}


def test_what_is_behind_a_missing_end_is_closed_with_the_rule_around_it():
    for attribute in ('suffix="!"', 'stop="!"'):
        limited = f"b[max_tokens=1, {attribute}]: /x*/"
        assert Texts(f'start: a "z"\na[max_tokens=1]: b | b "y"\n{limited}').take(b"x").allowed() == {b"z"}
        # The rule around it may go on, or cannot end.
        assert Texts(f'start: a "z"\na[max_tokens=2]: b | b "y"\n{limited}').take(b"x").allowed() == {b"y", b"z"}
        assert Texts(f'start: a "z"\na[max_tokens=1]: b "y"\n{limited}').take(b"x").allowed() == {b"y"}


def test_an_end_may_be_missing_only_where_the_whole_rule_before_it_is_complete():
    grammar = 'start: "<" r ">"\nr[max_tokens=2, stop="a!"]: /a*b?/'
    # Only "ba" would be without its end; "a" alone would fit, and the rule did not begin there.
    assert Texts(grammar).take(b"<", b"b", b"a").allowed() == {b"!"}
    assert Texts(grammar).take(b"<", b"a", b"b").allowed() == {b">"}
    # The first token may hold what stands before the rule.
    assert Texts(grammar, b"<b", b"<a").take(b"<b", b"a").allowed() == {b"!"}
    assert Texts(grammar, b"<b", b"<a").take(b"<a", b"b").allowed() == {b">"}


def test_a_token_without_bytes_is_in_no_rule_that_has_not_begun():
    texts = Texts('start: "<" r ">"\nr[max_tokens=1]: /[ab]*/', b"").take(b"<", b"", b"")
    assert b"a" in texts.allowed()
    assert texts.take(b"a").allowed() == {b">", b""}


def test_captures_end_where_rules_were_closed():
    texts = Texts("start: r s\nr[max_tokens=2, capture]: /(.|\\n)*/\ns[capture]: /(.|\\n)*/", b"ab", b"cd")
    texts.take(b"ab", b"cd", b"ab", b"cd")
    assert [(each.name, each.data) for each in texts.matcher.captures()] == [("r", b"abcd"), ("s", b"abcd")]
    texts.matcher.rollback(3)
    assert [(each.name, each.data) for each in texts.matcher.captures()] == [("r", b"ab")]


@pytest.mark.parametrize("rest", ['/[ab]*/\n%ignore " "', '/[ab]*/ s?\ns: " "+', '/[ab]*/ s? t?\ns: " "+\nt: "."'])
def test_captures_of_a_rule_that_was_closed_in_front_of_what_may_be_empty(rest):
    texts = Texts(f'start: r ";"\nr[max_tokens=2, capture]: {rest}', b"bb").take(b"bb", b"bb")
    assert texts.allowed() == {b";"} | ({b" "} if "ignore" in rest else set())
    assert [(each.name, each.data, each.is_complete) for each in texts.matcher.captures()] == [("r", b"bbbb", True)]
    assert [each.data for each in texts.take(b";").matcher.captures()] == [b"bbbb"]


def test_json_inside():
    texts = Texts('start: j "END" j\nj[max_tokens=2]: %json {"type": "array", "items": {"type": "integer"}}', b"12")
    texts.take(b"[", b"12")
    # It cannot be cut: the bracket is missing.
    assert b"]" in texts.allowed()
    assert b"1" in texts.allowed()
    assert b"E" not in texts.allowed()
    assert b"E" in texts.take(b"]").allowed()
    assert b" " not in texts.allowed()


def test_json_whose_rules_are_made_on_the_way():
    schema = '%json {"type": "object", "additionalProperties": {"type": "integer"}}'
    texts = Texts(f'start: j "END" {schema}\nj[max_tokens=4]: {schema}', b'{"a"', b":1", b',"b":2', b"}END", b"}")
    texts.take(b'{"a"', b":1", b',"b":2')
    assert b"}END" in texts.allowed()
    assert b"," in texts.allowed()
    texts.take(b"}END", b'{"a"', b":1", b',"b":2')
    assert b"," in texts.allowed()


def test_ebnf():
    grammar = constrain.Grammar.from_ebnf(
        'root ::= a " " b\na[max_tokens=1] ::= sub\nb ::= sub\nsub ::= [a-z] sub | [a-z]'
    )
    texts = Texts(grammar, b"cd").take(b"cd")
    assert texts.allowed() == {b" "}
    assert b"cd" in texts.take(b" ", b"cd", b"cd").allowed()


def test_structural_tags():
    tag = {
        "type": "sequence",
        "elements": [
            {"type": "tag", "begin": "<t>", "content": {"type": "any_text", "max_tokens": count}, "end": "</t>"}
            for count in (1, 2)
        ],
    }
    texts = Texts(constrain.Grammar.from_structural_tag(tag), b"<t>", b"</t>", b"ab", b"c<").take(b"<t>", b"ab")
    assert texts.allowed() == {b"<", b"</t>"}
    texts.take(b"</t>", b"<t>", b"ab", b"c<")
    assert texts.allowed() == {b"/", b"<", b"</t>"}
    with pytest.raises(constrain.SchemaError, match="may overlap"):
        constrain.Grammar.from_structural_tag(
            {"type": "tag", "begin": "<", "content": {"type": "any_text", "max_tokens": 1}, "end": "aba"}
        )


def test_structural_tags_of_tokens():
    tokens = [*LETTERS, b"", b"", b"", b"</s>"]
    names = {256: "<a>", 257: "<b>", 258: "<c>"}
    special = constrain.Vocabulary(tokens, eos_ids=[259], special_ids=[256, 257, 258], names=names)

    def walk(content, *ids):
        tag = {"type": "tag", "begin": {"type": "token", "token": "<a>"}, "content": content}
        tag["end"] = {"type": "token", "token": "<b>"}
        compiled = constrain.GrammarCompiler(special).compile(constrain.Grammar.from_structural_tag(tag))
        matcher = constrain.Matcher(compiled)
        return all(map(matcher.accept_token, (256, *ids, 257))) and matcher.is_accepting()

    some = {"type": "any_tokens", "max_tokens": 2}
    assert walk(some)
    assert walk(some, 65)
    assert walk(some, 65, 258)
    assert not walk(some, 65, 66, 67)
    one = {"type": "exclude_token", "exclude_tokens": ["<c>"]}
    assert walk(one, 65)
    assert not walk(one)
    assert not walk(one, 258)
    assert not walk(one, 65, 66)


@pytest.mark.parametrize(
    "grammar",
    [
        constrain.Grammar.from_lark('start: "<" <[*]> ">"'),
        constrain.Grammar.from_lark('start: "<" <[^1000]> ">"'),
        constrain.Grammar.from_gbnf('root ::= "<" !<[300]> ">"'),
        constrain.Grammar.from_ebnf('root ::= "<" ExcludeToken(300) ">"'),
    ],
)
def test_one_token_of_any_text(grammar):
    tokens = [*LETTERS, b"abc", *[b"x%d" % index for index in range(1000)], b"</s>"]
    any_text = constrain.Vocabulary(tokens, eos_ids=[len(tokens) - 1])
    matcher = constrain.Matcher(constrain.GrammarCompiler(any_text).compile(grammar))
    assert matcher.accept_token(ord("<"))
    assert not matcher.fork().accept_tokens([97, 97])
    assert matcher.accept_tokens([256, ord(">")])
    assert matcher.is_accepting()


def test_at_most_so_many_tokens_of_any_text():
    texts = Texts('start: <[*]>{0,2} "."', b"ab", b"cd").take(b"ab", b"cd")
    assert texts.allowed() == {b"."}
    with pytest.raises(constrain.GrammarError, match="at least 2 tokens cannot be asked for"):
        constrain.Grammar.from_lark("start: <[*]>{2,3}")


@pytest.mark.parametrize(
    ("grammar", "reason"),
    [
        ('start: r\nr[max_tokens=3]: "a" r | "b"', r"\[max_tokens\]: the rule holds itself"),
        ('start: r\nr[max_tokens="3"]: "a"', r"\[max_tokens\] takes a number of tokens"),
        ('start: r\nr[max_tokens=-1]: "a"', r"\[max_tokens\] takes a number of tokens"),
        ('start: r\nr[min_tokens=3]: "a"', r"\[min_tokens\]: a text of the rule has at most 1 bytes, .* 3 tokens"),
        (
            'start: r\nr[min_tokens=2]: "(" r ")" | "ab"',
            r"\[min_tokens\]: the rule \"r\" is made of others: rules that refer to each other",
        ),
        (
            'start: r\nr[min_tokens=2]: s "b"\ns[capture]: /a+/',
            r"\[min_tokens\]: .*: \"s\" in it is more than its text",
        ),
        ("start: r\nr[min_tokens=2]: /a+/ <[3]>", r"\[min_tokens\]: .* a special token in it is no text"),
        ("start: r\nr[min_tokens=3, max_tokens=2]: /a+/", r"\[max_tokens\] is less than \[min_tokens\]"),
        ("start: r\nr[min_tokens=20000]: /a+/", r"\[min_tokens\]: 20,000 tokens, and .* are more than 10,000"),
        ("start: r\nr[min_tokens=x]: /a+/", r"an attribute cannot be read"),
    ],
)
def test_refused(grammar, reason):
    with pytest.raises(constrain.GrammarError, match=reason):
        constrain.Grammar.from_lark(grammar)


# -- at least so many tokens -------------------------------------------------------------------------------


def test_not_over_before_so_many_tokens():
    texts = Texts('start: "<" r ">"\nr[min_tokens=3]: /[a-z]+/', b"ab", b"b>", b"<a", b"<ab>")
    # A token that holds all of the rule is one, and one that reaches into it is one too.
    assert texts.allowed() == {b"<", b"<a"}
    assert not {b">", b"b>"} & texts.take(b"<a").allowed()
    assert b"b>" in texts.take(b"ab").allowed()
    assert b">" not in texts.allowed()
    assert texts.matcher.fork().accept_token(texts.vocabulary.tokens.index(b"b>"))
    assert b">" in texts.take(b"ab").allowed()
    assert texts.take(b">").ends()


def test_a_text_that_would_be_too_short_is_left_out():
    texts = Texts('start: r ";"\nr[min_tokens=3]: /[a-z]*|[0-9]{1,4}/', b"12", b"123", b"1234", b"abcd")
    # Behind it two more tokens have to follow.
    assert {b"1", b"12", b"abcd"} <= texts.allowed()
    assert not {b"123", b"1234", b";"} & texts.allowed()
    assert texts.take(b"12").allowed() == {b"%d" % digit for digit in range(10)}
    assert texts.take(b"3").allowed() == {b"%d" % digit for digit in range(10)}
    assert texts.take(b"4").allowed() == {b";"}


def test_one_token_is_any_text_but_none():
    assert Texts('start: r ";"\nr[min_tokens=1]: /[a-z]*/').allowed() == {bytes((byte,)) for byte in range(97, 123)}
    assert b";" in Texts('start: r ";"\nr[min_tokens=0]: /[a-z]*/').allowed()


def test_each_use_has_its_own_tokens():
    texts = Texts('start: (r ";")+\nr[min_tokens=2]: /a+/', b"aa", b"a;", b";a", b"a;a")
    texts.take(b"a")
    assert texts.allowed() == {b"a", b"aa", b"a;", b"a;a"}
    assert texts.take(b"a;a").allowed() == {b"a", b"aa", b"a;", b"a;a"}
    assert texts.take(b"a;").allowed() == {b"a", b"aa", b"</s>"}


def test_a_rule_that_may_have_begun_at_several_places():
    texts = Texts('start: "a"* r\nr[min_tokens=2]: /a{2,3}/', b"aa", b"aaa")
    # "aa" may be all before the rule, or its first token.
    assert texts.take(b"aa").allowed() == {b"a", b"aa", b"aaa"}
    assert texts.take(b"a").allowed() == {b"a", b"aa", b"aaa", b"</s>"}


def test_other_ways_to_read_the_text_stay():
    texts = Texts('start: r ";" | /[a-z]{1,2}!/\nr[min_tokens=3]: /[a-z]+/', b"b;", b"b!")
    assert b"b!" in texts.take(b"a").allowed()
    assert b"b;" not in texts.allowed()
    assert texts.take(b"b").allowed() == {*(bytes((byte,)) for byte in range(97, 123)), b"!", b"b;"}


def test_at_least_and_at_most():
    texts = Texts('start: "<" r ">"\nr[min_tokens=2, max_tokens=3]: /[a-z]*/', b"ab").take(b"<", b"ab")
    assert b">" not in texts.allowed()
    assert b">" in texts.take(b"ab").allowed()
    assert texts.take(b"ab").allowed() == {b">"}


@pytest.mark.parametrize(
    "grammar",
    [
        'start: r "ok"\nr[min_tokens=3, suffix="</t>"]: /(.|\\n)*/',
        'start: r "ok"\nr[min_tokens=3, lazy]: /(.|\\n)*/ "</t>"',
        'start: r "</t>" "ok"\nr[min_tokens=2]: /[a-z ]*/',
        'start: r "</t>" "ok"\nr[min_tokens=2]: WORD (" " WORD)*\nWORD: /[a-z]+/',
        'start: r "</t>" "ok"\n%ignore " "\nr[min_tokens=2]: /[a-z ]*/',
        constrain.Grammar.from_ebnf('root ::= r "</t>ok"\nr[min_tokens=2] ::= word (" " word)*\nword ::= [a-z]+'),
        constrain.Grammar.from_ebnf('root ::= r "</t>ok"\nr[min_tokens=2] ::= [a-z ]*'),
    ],
)
def test_of_whatever_the_rule_is_made(grammar):
    texts = Texts(grammar, b"let", b" me", b" see", b"</t>", b"</t>ok")
    assert b"</t>" not in texts.allowed()
    assert b"</t>" not in texts.take(b"let").allowed()
    assert {b"</t>", b"</t>ok"} <= texts.take(b" me").allowed()
    assert b"</s>" in texts.take(b"</t>ok").allowed()


def test_a_recognizer_knows_no_least_number_and_captures_do_not_either():
    texts = Texts('start: r ";" s\nr[min_tokens=3, capture]: /[a-z]+/\ns[capture]: /[a-z]+/', b"abc")
    recognizer = texts.compiled.recognizer()
    assert all(map(recognizer.try_push_byte, b"a;b"))
    assert recognizer.is_accepting()
    texts.take(b"abc")
    assert [(each.name, each.data, each.is_complete) for each in texts.matcher.captures()] == [("r", b"abc", False)]
    texts.take(b"a", b"b", b";", b"c")
    assert [(each.name, each.data) for each in texts.matcher.captures()] == [("r", b"abcab"), ("s", b"c")]


@pytest.mark.parametrize("most", [None, 12, 13, 40])
def test_a_completion_takes_as_many_tokens(most):
    grammar = 'start: "<" r ">"\nr[min_tokens=5]: /[a-z]+|[0-9]{5,6}x/'
    for first in (b"<", b"<a", b"<1", b"<123"):
        matcher = Texts(grammar, b"123", max_tokens=most).take(b"<").matcher
        for byte in first[1:]:
            assert matcher.accept_token(byte)
        completion = matcher.completion()
        text = b"".join(matcher.compiled.vocabulary.tokens[token] for token in completion)
        assert len(first) - 1 + len(completion) >= 6
        assert (first + text).endswith(b">")
        assert matcher.accept_tokens(completion)
        assert matcher.is_accepting()


def test_a_budget_leaves_room_for_the_least_number():
    grammar = constrain.Grammar.from_lark('start: r ";" /[a-z]{0,9}/\nr[min_tokens=4]: /[a-z]+/')
    compiled = constrain.GrammarCompiler(vocabulary(b"abc", b"c;d")).compile(grammar)
    with pytest.raises(constrain.ConstrainError, match="max_tokens is 4"):
        constrain.Matcher(compiled, max_tokens=4)
    tokens = vocabulary(b"abc", b"c;d").tokens
    for seed in range(30):
        rng = random.Random(seed)
        matcher = constrain.Matcher(compiled, max_tokens=6)
        said = []
        while not said or said[-1] != len(tokens) - 1:
            said.append(tokens.index(rng.choice(sorted(allowed(matcher) - {b"</s>"}) or [tokens[-1]])))
            if said[-1] != len(tokens) - 1 or matcher.is_accepting():
                matcher.accept_token(said[-1])
        assert matcher.is_terminated()
        assert len(said) <= 7
        # The fourth token that holds a letter of it is the first that may hold its end.
        assert not any(b";" in tokens[token] for token in said[:3])


def test_a_budget_needs_tokens_that_say_what_gates_cost():
    plain = constrain.Vocabulary([b"a", b";", b"</s>"], eos_ids=[2])
    compiled = constrain.GrammarCompiler(plain).compile(
        constrain.Grammar.from_lark('start: r ";"\nr[min_tokens=2]: /a+/')
    )
    matcher = constrain.Matcher(compiled)
    assert matcher.accept_tokens([0, 0, 1])
    assert not constrain.Matcher(compiled).accept_tokens([0, 1])
    with pytest.raises(constrain.ConstrainError, match="needs a vocabulary with a token for the byte 0xfe"):
        constrain.Matcher(compiled, max_tokens=9)


def test_the_shortest_way_on_may_lead_back_to_where_a_text_is():
    every_byte = [bytes((byte,)) for byte in range(256)]
    plain = constrain.Vocabulary([*every_byte, b"</s>"], eos_ids=[256])
    # Behind the first "b" the rule may not end yet, though its text may.
    grammar = constrain.Grammar.from_lark('start: r ";"\nr[min_tokens=2]: /[ab]+/ & /.*b/')
    compiled = constrain.GrammarCompiler(plain).compile(grammar)
    for most in (None, 4):
        matcher = constrain.Matcher(compiled, max_tokens=most)
        assert matcher.accept_bytes(b"b")
        assert matcher.completion() == list(b"b;")
        assert matcher.accept_tokens(b"b;")
        assert matcher.is_accepting()


def test_the_byte_of_gates_is_in_no_text():
    builder = GrammarBuilder()
    start, rule = builder.nonterminal("start"), builder.nonterminal("r")
    builder.limit_tokens(rule, None, constrain.GrammarError, least=2)
    write_least(builder, rule, regex_language("a+"), 2, constrain.GrammarError)
    builder.add(start, (rule, builder.lexeme(byte_set([0x61, 0xFE]), "byte")))
    with pytest.raises(constrain.ConstrainError, match="byte may hold the byte 0xfe"):
        Texts(constrain.Grammar(builder.finish(start)))
    texts = Texts('start: r ";"\nr[min_tokens=2]: /a+/', b"a\xfe", b"\xfea")
    assert texts.allowed() == {b"a"}
    assert not texts.matcher.accept_bytes(b"a\xfe")
    assert not texts.matcher.accept_bytes(b"\xfe")


def test_within_bytes_a_rule_does_not_end_before_its_time():
    texts = Texts('start: "<" r ">"\nr[min_tokens=3]: /[a-z]+/', b"abc")
    assert not texts.matcher.accept_bytes(b"<abcabc>")
    # They count as the fewest tokens that spell them, behind the last byte.
    assert texts.matcher.accept_bytes(b"<abcabc")
    assert b">" in texts.allowed()
    assert not Texts('start: "<" r ">"\nr[min_tokens=4]: /[a-z]+/', b"abc").matcher.accept_bytes(b"<abcabc>")


def test_nothing_is_forced_over_the_end_of_such_a_rule():
    texts = Texts('start: "<" r "</t>"\nr[min_tokens=2]: /a+/', b"a<", b"</t>")
    assert texts.matcher.forced_bytes() in (b"<", b"<a")
    texts.take(b"<", b"a", b"a")
    assert texts.matcher.forced_bytes() == b""
    assert texts.take(b"<").matcher.forced_bytes() == b"/t>"


@pytest.mark.parametrize("seed", range(12))
def test_least_numbers_against_all_ways_to_cut_a_text(seed):
    """The masks along random walks, against the tokenizations of all texts of a small language."""
    rng = random.Random(seed)
    pattern = rng.choice(["[ab]{1,5}", "(a|bb){1,3}", "a*b|b{2,4}|aab", "((a|b)c?){2,3}", "(ab|c){1,3}"])
    pattern, least = pattern.replace("*", "{0,4}"), rng.randint(1, 4)
    longer = {"".join(rng.choices("abc;x", k=rng.randint(2, 3))) for _ in range(8)}
    spelled = [*"abcx;", *sorted(longer)]
    plain = constrain.Vocabulary([*map(str.encode, spelled), b"</s>"], eos_ids=[len(spelled)])
    texts = [
        "".join(letters)
        for length in range(least, 7)
        for letters in itertools.product("abc", repeat=length)
        if re.fullmatch(pattern, "".join(letters))
    ]
    texts = rng.sample(texts, min(6, len(texts)))
    # The grammar is for these texts alone, so that all of its tokenizations can be listed.
    alone = "|".join(texts)
    grammar = constrain.Grammar.from_lark(f'start: ("x" r ";")~1..2\nr[min_tokens={least}]: /{alone}/')
    follow = {}
    for parts in [[text] for text in texts] + [[one, two] for one in texts for two in texts]:
        text, spans = "", []
        for part in parts:
            spans.append((len(text) + 1, len(text) + 1 + len(part)))
            text += f"x{part};"
        for tokens in tokenizations(text, spans, spelled, least):
            for index, token in enumerate((*tokens, len(spelled))):
                follow.setdefault(tokens[:index], set()).add(token)
    compiled = constrain.GrammarCompiler(plain).compile(grammar)
    for _ in range(8):
        matcher, said = constrain.Matcher(compiled), ()
        while True:
            assert {plain.tokens.index(each) for each in allowed(matcher)} == follow[said], said
            token = rng.choice(sorted(follow[said]))
            assert matcher.accept_token(token)
            if token == len(spelled):
                break
            said = (*said, token)


def tokenizations(text, spans, spelled, least):
    """The ways to cut a text in which each span is touched by so many tokens at least."""
    todo = [((), 0, (0,) * len(spans))]
    while todo:
        tokens, at, counts = todo.pop()
        if at == len(text):
            if min(counts) >= least:
                yield tokens
            continue
        for token, data in enumerate(spelled):
            if text.startswith(data, at):
                end = at + len(data)
                touched = (
                    count + (at < last and end > first) for count, (first, last) in zip(counts, spans, strict=True)
                )
                todo.append(((*tokens, token), end, tuple(touched)))


# -- what a matcher does -----------------------------------------------------------------------------------

TWO = 'start: "<" r ">" s\nr[max_tokens=2]: /(.|\\n)*/\ns[max_tokens=3]: /[a-z>]+/'


def test_rollback_fork_reset_and_pickle():
    texts = Texts(TWO, b"ab").take(b"<", b"ab", b"ab")
    matcher = texts.matcher
    assert texts.allowed() == {b">"}
    fork = matcher.fork()
    matcher.rollback(1)
    assert len(texts.allowed()) > 100
    assert allowed(fork) == {b">"}
    copied = pickle.loads(pickle.dumps(fork))
    assert allowed(copied) == {b">"}
    assert matcher.accept_token(ord("z"))
    assert texts.allowed() == {b">"}
    matcher.reset()
    assert texts.allowed() == {b"<"}


@pytest.mark.parametrize("before", ["", "q"])
def test_what_is_forced_is_so_wherever_a_rule_may_be_over(before):
    """Every text that a matcher takes begins with what was forced, and that is as long as can be known."""
    grammar = f'start: "{before}" b "xyz"\nb[suffix=";;", max_tokens=2]: /a;?/'
    texts = Texts(grammar, b"a;", b";;").take(*([b"q"] if before else []), b"a")
    # Behind another token the rule may end without its ";;".
    assert texts.matcher.forced_bytes() == b";"
    encoder = MockTokenizer(texts.vocabulary.tokens[:-1])
    assert texts.matcher.forced_tokens(tokenizer=encoder) == []
    cut, whole = texts.matcher.fork(), texts.matcher.fork()
    assert cut.accept_tokens(b";xyz")
    assert cut.is_accepting()
    assert whole.accept_tokens([257, *b"xyz"])
    assert whole.is_accepting()
    assert texts.take(b";").matcher.forced_bytes() == b"xyz"


def test_states_that_are_forgotten_are_found_again():
    texts = Texts(TWO, b"ab").take(b"<", b"ab", b"ab", b">", b"ab")
    matcher, compiled = texts.matcher, texts.compiled
    for forget in (compiled.compact, compiled.begin):
        with compiled.lock:
            forget()
        assert b"</s>" in texts.allowed()
        fork = matcher.fork()
        fork.rollback(2)
        assert allowed(fork) == {b">"}
        ends = matcher.fork()
        assert ends.accept_tokens([97, 97])
        assert allowed(ends) == {b"</s>"}


def test_long_texts_whose_states_are_forgotten_all_the_time():
    grammar = 'start: r "." deep\nr[max_tokens=2]: /(.|\\n)*/\ndeep: "(" deep ")" | s\ns[max_tokens=3]: /[a-z]+/'
    with seams.small_tables():
        texts = Texts(grammar, b"ab")
        texts.take(b"ab", b"ab", b".", *[b"("] * 400, b"ab", b"ab", b"ab")
        assert texts.allowed() == {b")"}
        fork = texts.matcher.fork()
        fork.rollback(300)
        assert allowed(fork) >= {b"(", b"a", b"ab"}
        texts.take(*[b")"] * 400)
        assert texts.ends()
        assert allowed(fork) >= {b"(", b"a", b"ab"}


_MANY_WAYS = r"""
start: (thought "," note call)+
thought[max_tokens=3]: /(.|\n)*/
note[max_tokens=2, suffix=";"]: /[a-z"]*/
call[max_tokens=4]: name ("," name)*
name[max_tokens=2]: /[a-z"]+/
"""
"""Each part may begin at nearly every byte, so states have many configurations, of which some allow the same."""


@pytest.mark.parametrize("seed", range(6))
def test_what_is_read_again_comes_to_the_same(seed):
    rng = random.Random(seed)
    pieces = [b'"cyp":', b"oas", b'":', b",", b"k", b"vih", b'in":"', b'"qo', b'","lhe', b'","ai', b"_ib", b"74", b";"]
    texts = Texts(_MANY_WAYS, *pieces)
    forgetful = texts.compiled
    plain = constrain.GrammarCompiler(texts.vocabulary).compile(constrain.Grammar.from_lark(_MANY_WAYS))
    ids = [texts.vocabulary.tokens.index(piece) for piece in pieces]
    matcher, other = texts.matcher, constrain.Matcher(plain)
    masks = constrain.allocate_token_bitmask(2, texts.vocabulary.size)
    for _ in range(40):
        if rng.random() < 0.4:
            with forgetful.lock:
                forgetful._collect(0)
        back = rng.choice((0, 0, 0, 0, 1, 4)) if other.steps > 4 else 0
        matcher.rollback(back)
        other.rollback(back)
        for row, each in enumerate((matcher, other)):
            each.fill_next_token_bitmask(masks, row)
        assert np.array_equal(masks[0], masks[1])
        token = rng.choice([each for each in ids if other.fork().accept_token(each)] or [ord("a")])
        assert matcher.accept_token(token) == other.accept_token(token)


def test_compiled_grammars_as_bytes():
    texts = Texts(TWO, b"ab").take(b"<", b"ab", b"ab")
    loaded = constrain.CompiledGrammar.from_bytes(texts.compiled.to_bytes(), texts.vocabulary)
    matcher = constrain.Matcher(loaded)
    assert matcher.accept_tokens([ord("<"), 256, 256])
    assert allowed(matcher) == {b">"}


def test_bytes_count_as_the_fewest_tokens():
    texts = Texts(TWO, b"abc")
    assert texts.matcher.accept_bytes(b"<")
    assert texts.matcher.accept_bytes(b"abc")
    assert len(texts.allowed()) > 100
    assert texts.matcher.accept_bytes(b"a")
    assert texts.allowed() == {b">"}


def test_drafts():
    texts = Texts(TWO, b"ab").take(b"<")
    draft = [256, 256, ord(">"), 256, 97, 97, 97]
    mask = constrain.allocate_token_bitmask(len(draft) + 1, texts.vocabulary.size)
    legal = constrain.fill_draft_bitmasks([texts.matcher], [draft], None, mask)
    matcher, own = texts.matcher.fork(), constrain.allocate_token_bitmask(1, texts.vocabulary.size)
    count = 0
    for row, token in enumerate([*draft, None]):
        matcher.fill_next_token_bitmask(own)
        assert (mask[row] == own[0]).all()
        if token is None or not matcher.accept_token(token):
            break
        count += 1
    assert count == 6
    assert texts.matcher.validate_tokens(draft) == count
    assert np.asarray(legal).tolist() == [count]


@pytest.mark.parametrize("most", [4, 5, 7, 12])
def test_within_a_budget_texts_are_complete(most):
    random.seed(most)
    grammar = 'start: "<" r "></r>" s\nr[max_tokens=2]: /(.|\\n)*/\ns[max_tokens=2]: /[a-z]+;/'
    for _ in range(30):
        matcher = Texts(grammar, b"></r>", b"ab", b"></", b"a;", max_tokens=most).matcher
        spelled = []
        while not matcher.is_terminated():
            token = random.choice(sorted(allowed(matcher)))
            spelled.append(token)
            assert matcher.accept_token(matcher.compiled.vocabulary.tokens.index(token))
        assert len(spelled) <= most + 1


# -- against a reference -----------------------------------------------------------------------------------


class Reference:
    """A row of parts, each with a limit or none, read byte by byte by all ways at once.

    A way is the part that it is in, how far its automaton is, and which parts began together with it.  Behind a token
    the ways in a part are dropped that began too long ago, if any other way is left.  Of parts that began at several
    places with the same others the last one counts.
    """

    def __init__(self, parts, limits):
        self._automata = [Automaton(regex_language(part)) for part in parts]
        self._limits = limits
        self.tokens = 0
        self._began = {}
        self._ways = set()
        self._done = False
        self._start({0})

    def _start(self, parts):
        # Whether the text may end there tells beginnings apart too.
        together = frozenset(parts)
        self._began[together] = self._now
        self._ways |= {(part, 0, together) for part in together if part < len(self._automata)}

    _now = 0

    def take(self, token):
        self._now = self.tokens
        for place, byte in enumerate(token):
            if place == len(token) - 1:
                self._now = self.tokens + 1
            then, ended = set(), set()
            for part, state, together in self._ways:
                automaton = self._automata[part]
                behind = automaton.step(state, byte)
                if automaton.is_dead(behind):
                    continue
                then.add((part, behind, together))
                if automaton.is_end(behind):
                    ended.add(part + 1)
            self._ways = {way for way in then if self._goes_on(*way[:2])}
            self._done = len(self._automata) in ended
            self._start(ended)
            self._now = self.tokens
            if not self._ways and not self._done:
                return False
        self.tokens += 1
        left = {way for way in self._ways if not self._is_over(*way)}
        if left or self._done:
            self._ways = left
        return True

    def _goes_on(self, part, state):
        return not Automaton(self._automata[part].rest(state)).is_empty(1000)

    def _is_over(self, part, state, together):
        return self._limits[part] is not None and self.tokens - self._began[together] >= self._limits[part]

    def ends(self):
        return self._done


PARTS = ["<", "[a-c]+", "[a-c<]*>", "([ab]c?)+", "(a|b|<|>|;)+", "a*;", "[ac]+;", "<;", "(ab)+"]


@pytest.mark.parametrize("seed", range(30))
def test_against_a_reference(seed):
    random.seed(seed)
    parts = [random.choice(PARTS) for _ in range(random.randint(1, 4))]
    limits = [random.choice([None, 1, 2, 3]) for _ in parts]
    rules = [
        f"p{index}{f'[max_tokens={limit}]' if limit else ''}: /{part}/"
        for index, (part, limit) in enumerate(zip(parts, limits, strict=True))
    ]
    alphabet = [bytes([byte]) for byte in b"abc<>;"]
    longer = [b"".join(random.choices(alphabet, k=random.randint(2, 4))) for _ in range(8)]
    tokens = [*alphabet, *dict.fromkeys(longer), b"</s>"]
    compiled = constrain.GrammarCompiler(constrain.Vocabulary(tokens, eos_ids=[len(tokens) - 1])).compile(
        constrain.Grammar.from_lark(
            "\n".join([f"start: {' '.join(f'p{index}' for index in range(len(parts)))}", *rules])
        )
    )
    for _ in range(4):
        matcher, taken = constrain.Matcher(compiled), []
        while not matcher.is_terminated() and len(taken) < 14:
            found = allowed(matcher)
            expected = set()
            for token in tokens[:-1]:
                reference = Reference(parts, limits)
                assert all(map(reference.take, taken))
                if token and reference.take(token):
                    expected.add(token)
            reference = Reference(parts, limits)
            assert all(map(reference.take, taken))
            if reference.ends():
                expected.add(b"</s>")
            assert found == expected, (parts, limits, taken)
            token = random.choice(sorted(found - {b"</s>"} or found))
            taken.append(token)
            assert matcher.accept_token(tokens.index(token))
