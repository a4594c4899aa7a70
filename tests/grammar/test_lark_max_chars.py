"""``[max_chars=N]`` against a list of all short texts."""

from __future__ import annotations

import itertools
import re

import pytest
from byte_tokens import BYTES, fits

import constrain
from constrain.errors import GrammarError

WORDS = ["".join(word) for size in range(7) for word in itertools.product("aé>", repeat=size)]


def read(text: str) -> constrain.CompiledGrammar:
    return constrain.CompiledGrammar(constrain.Grammar.from_lark(text).ir, BYTES)


def over(texts: set[str], late: set[str], most: int) -> set[str]:
    """The texts of less than ``most`` characters, and of the others those of ``late`` that begin with no other one."""
    others = {word for word in late if len(word) >= most}
    short = {word for word in texts if len(word) < most}
    return short | {word for word in others if not any(word[:end] in others for end in range(len(word)))}


@pytest.mark.parametrize("most", [0, 1, 2, 3])
@pytest.mark.parametrize("pattern", ["[aé]*", "(aé)+", "a{2}|é>a?", "é{1,2}a", "", "(a|é>)*>"])
@pytest.mark.parametrize("attribute", ["", 'suffix=">"', "lazy"])
def test_a_rule_is_over_after_so_many_characters(most: int, pattern: str, attribute: str) -> None:
    named = f", {attribute}" if attribute else ""
    compiled = read(f'start: r "!"\nr[max_chars={most}{named}]: /{pattern}/')
    whole = pattern if not attribute.startswith("suffix") else f"(?:{pattern})>"
    texts = {word for word in WORDS if re.fullmatch(whole, word)}
    late = set(texts)
    if attribute:
        late = texts = {text for text in texts if not any(text[:end] in texts for end in range(len(text)))}
    if attribute.startswith("suffix"):
        bodies = {word for word in WORDS if re.fullmatch(pattern, word)}
        late = texts | {word for word in bodies if not any(word[:end] in texts for end in range(len(word) + 1))}
    assert {word for word in WORDS if fits(compiled, word + "!")} == over(texts, late, most)


def test_captures_and_ends() -> None:
    matcher = constrain.Matcher(read('start: r "!"\nr[max_chars=2, capture, stop=">", stop_capture="end"]: /[a>]*/'))
    for text, expected in (("aa!", [("r", b"aa")]), ("a>!", [("r", b"a"), ("end", b">")])):
        assert matcher.accept_bytes(text.encode())
        assert [(each.name, each.data) for each in matcher.captures()] == expected
        matcher.reset()


@pytest.mark.parametrize("most", [0, 1, 2, 3, 4])
@pytest.mark.parametrize(
    "rules",
    [
        '"a" inner\ninner: /[aé>]*/',
        '"a" inner "é"\ninner[max_chars=2]: /[a>]*>é/',
        'inner r | "é"\ninner: "a" | ">" ">"',
        '%structural_tag {"format": {"type": "any_text", "excludes": [">"]}} "é>"?',
        '%lark { start: (%regex {"substring_chars": "aé"})* ">" }',
        "T\nT: /[aé]*>/ & ~/.*aa.*/",
        "/a*(?=é)[^>]/",
    ],
)
def test_a_rule_of_others_is_over_after_so_many_characters(most: int, rules: str) -> None:
    every = read(f"start: r\nr: {rules}")
    texts = {word for word in WORDS if fits(every, word)}
    cut = read(f'start: r "!"\nr[max_chars={most}]: {rules}')
    assert {word for word in WORDS if fits(cut, word + "!")} == over(texts, texts, most)


def test_no_limit() -> None:
    assert fits(read("start[max_chars=2147483647]: /a*/"), "a" * 50)
    ebnf = constrain.Grammar.from_ebnf('root ::= r "!"\nr[max_chars=2] ::= [a-z]*')
    compiled = constrain.CompiledGrammar(ebnf.ir, BYTES)
    assert fits(compiled, "ab!")
    assert not fits(compiled, "abc!")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'start: r\nr[max_chars=2]: "a" r "b" | "c"',
            r"\[max_chars\]: the rule \"r\" is made of others: .* not regular",
        ),
        ("start: r\nr[max_chars=2]: s\ns[capture]: /a/", r"\[max_chars\]: .* \"s\" in it is more than its text"),
        ("start: r\nr[max_chars=2]: /a/ <[3]>", r"\[max_chars\]: .* a special token in it is no text"),
        ("start: r\nr[max_chars=2]: s\ns[lazy]: /a*b/", r"\[max_chars\]: .* \"s\" in it is more than its text"),
        ('start: r\nr[max_chars=2]: s\ns: /a/\n%ignore " "', r"\[max_chars\]: the rule \"r\" .* terminals alone"),
        ("start: r\nr[max_chars=9]: %json {}", r"\[max_chars\]: the rule \"r\" is made of others"),
        ('start: r\nr[max_chars="2"]: /a/', r"\[max_chars\] takes a number"),
        ("start: r\nr[max_chars]: /a/", r"\[max_chars\] takes a number"),
        ("start: r\nr[max_chars=1.5]: /a/", r"\[max_chars\] takes a number"),
    ],
)
def test_faults(text: str, message: str) -> None:
    with pytest.raises(GrammarError, match=message):
        constrain.Grammar.from_lark(text)


BYTES_OF_LARK = '%llguidance {"allow_invalid_utf8": true}\n'
REGEX_OF_BYTES = r'Regex("[a\\x80-\\xff]*", byte_mode=true)'


@pytest.mark.parametrize("attribute", ["", ", lazy", ', suffix="!"'])
def test_bytes_that_are_no_characters_are_not_counted(attribute: str) -> None:
    message = r"\[max_chars\] counts characters, and a text of the rule may have bytes that are not UTF-8"
    for rule in (
        r"/[a\x80-\xff]+/",
        r"/é\xff/",
        r"/a|[\xc3][\xa9]?/",
        r"/\xe3[\x80-\xbf]{1,2}/",
        r"/(\xc3[\xa9]{1,9}|a){3,}/",
        r"/\xed\xa0\x80/",
        "T\nT: ~/[a-z]?/",
    ):
        with pytest.raises(GrammarError, match=f"line 3, column 1: {message}"):
            read(f"{BYTES_OF_LARK}start: r\nr[max_chars=2{attribute}]: {rule}")
    grammar = read(
        f"{BYTES_OF_LARK}start: r\nr[max_chars=2{attribute}]: /é!|[\\xc3][\\xa9-\\xbf]!|\\xe3[\\x80-\\x81]{{2}}!/"
    )
    assert all(fits(grammar, text) for text in ("é!", "ê!", "\u3040!"))


def test_bytes_of_other_grammars_that_are_no_characters_are_not_counted() -> None:
    message = r"\[max_chars\] counts characters"
    bytes_of_ebnf = constrain.Grammar.from_ebnf(f"root ::= {REGEX_OF_BYTES}")
    for inner in (bytes_of_ebnf, BYTES_OF_LARK + r"start: /[\x80-\xff]/"):
        with pytest.raises(GrammarError, match=f"line 2, column 1: {message}"):
            constrain.Grammar.from_lark("start: r\nr[max_chars=2]: @a", named_grammars={"a": inner})
    for rules in (REGEX_OF_BYTES, f"s\ns ::= {REGEX_OF_BYTES}"):
        with pytest.raises(GrammarError, match=f"line 2, column 1: {message}"):
            constrain.Grammar.from_ebnf(f"root ::= r\nr[max_chars=2] ::= {rules}")
