"""The Lark front-end: what each construct of the notation means, by accepted and rejected texts."""

from __future__ import annotations

import pytest
from naive import NaiveRecognizer

from constrain.grammar.languages.derivatives import Automaton
from constrain.grammar.languages.regular import Regular
from constrain.grammar.lark import from_lark

CASES = {
    "alternatives and an empty one": ('start: "a" "b" | "c" |', ["ab", "c", ""], ["a", "abc"]),
    "operators in rules": (
        'start: "a"? ("b" "c")* "d"+ ["e"] ["f" | "g"]',
        ["d", "abcdd", "bcbcddeg", "adf"],
        ["", "abd", "efd", "dfg"],
    ),
    "counts in rules": (
        'start: "a"~2 b~0..2 "c"~0\nb: "b"',
        ["aa", "aab", "aabb"],
        ["a", "aabbb", "aac"],
    ),
    "counts from zero to zero": ('start: "a"~0..0 "b"', ["b"], ["ab"]),
    "operators in terminals": (
        'start: A\nA: "a"? ("b" "c")* "d"+ ["e"] "f"~2 "g"~0..1',
        ["dff", "abcddeff", "dffg"],
        ["df", "dfff", "dffgg"],
    ),
    "terminals of terminals": (
        'start: LIST\nLIST: ITEM ("," ITEM)*\nITEM: DIGIT+ | NAME\nDIGIT: "0".."9"\nNAME: /[a-z]/~1..2',
        ["1", "12,ab,3", "a"],
        ["", "abc", "1,", "1a"],
    ),
    "ranges": ('start: "a".."c" "α".."ω" "\\u0000".."\\x7f"', ["aα!", "cω\0"], ["dα!", "aβé"]),
    "strings without case": ('start: "Straße"i', ["straße", "STRAßE"], ["strasse"]),
    "flags of regexes": ("start: /a.b/is | /c # a comment\n  d/x", ["A\nB", "a-b", "cd"], ["ab", "c d"]),
    "escapes in strings": (
        r'start: "\n" "\t" "\"" "\\" "\x41" "\u00e9" "\U0001f389" "\d" "' + "'" + '"',
        ["\n\t\"\\Aé🎉\\d'"],
        ["\n"],
    ),
    "escapes in regexes": (r"start: /\n\/\x41\"\.[\\]/", ['\n/A".\\'], ['\n/A"x\\']),
    "a terminal may be empty": ('start: A "x" B ""\nA: "a"?\nB:', ["x", "ax"], ["", "aax"]),
    "left, right and hidden recursion": (
        'start: start "a" | "b" start | x start "c" | "d"\nx: "x"?',
        ["d", "bbdaa", "dc", "xdcc", "bda"],
        ["", "ab", "bb"],
    ),
    "cycles": ('start: start | a\na: start | "x"', ["x"], ["", "xx"]),
    "modifiers, priorities and aliases have no effect": (
        '?start.2: _a | b -> one | (c -> two)\n_a: "a"\n!b: "b" -> x\nc: C\nC.-1: "c"',
        ["a", "b", "c"],
        ["ab"],
    ),
    "both modifiers, in either order": ('?!start: a | b\n!?a: "a"?\n?!b: "b"', ["a", "b", ""], ["ab"]),
    "a keyword can be a name too": ('start: "if" | NAME\nNAME: /[a-z]+/', ["if", "iff"], ["1"]),
    "no longest match": ('start: A "a"\nA: "a"+', ["aa", "aaaa"], ["a"]),
    "ignored terminals": (
        'start: "a" "b"\n%ignore " "\n%ignore /#[^\\n]*\\n/',
        ["ab", " a  b ", "a#x\nb", "#\n #\nab#\n"],
        ["a\tb", "a#b"],
    ),
    "ignored inside of no terminal": ('start: AB\nAB: "a" "b"\n%ignore " "', [" ab "], ["a b"]),
    "ignored expressions": ('start: "a"*\n%ignore "-" | B~2\nB: "b"', ["", "a-a", "bb-", "abba"], ["b", "aba"]),
    "templates": (
        'start: _sep{"a", ","} | pair{X, pair{"y", Z}}\n_sep{x, s}: x (s x)*\npair{l, r}: l "=" r\nX: "x"\nZ: "z"',
        ["a", "a,a", "x=y=z"],
        ["a,", "x=z", "a=a"],
    ),
    "recursive templates": ('start: nested{"x"}\nnested{i}: i | "(" nested{i} ")"', ["x", "((x))"], ["((x)", ""]),
    "a template as an argument": (
        'start: twice{box, "a"}\ntwice{t, x}: t{t{x}}\nbox{x}: "[" x "]"',
        ["[[a]]"],
        ["[a]"],
    ),
    "extend and override": (
        'start: a | b\na: "1"\nb: "2"\nT: "t"\n%extend a: "3" T\n%override b: "4"\n%extend T: "u"',
        ["1", "3t", "3u", "4"],
        ["2", "3"],
    ),
    "line ends and comments": (
        'start: "a" // one\n  # two\n\n     | "b"  \\\n | "c"\r\n\t| "d"',
        ["a", "b", "c", "d"],
        ["ab"],
    ),
    "regexes mean code points": ("start: /./ /[^a]/ /[α-ω]/", ["é🎉ψ"], ["aaψ", "é🎉"]),
    "alternation in a regex stays in it": ('start: A\nA: "x" /b|c/ "y"', ["xby", "xcy"], ["xb", "cy"]),
    "look-around within a terminal of one part": (
        r"start: /(?!(?:if|else)\b)[a-z]+/",
        ["iff", "elsewhere", "x"],
        ["if", "else", ""],
    ),
    "look-around sees the other parts of a terminal": (
        r'start: "-" S' + "\n" + r"S: QUOTE /.*/ END" + "\n" + r"END: /(?<!\\)/ QUOTE" + "\n" + 'QUOTE: "\\""',
        ['-"a"', '-""', '-"a\\"b"'],
        ['-"a\\"', '-"'],
    ),
    "joined terminals keep counts, ranges, flags and strings": (
        'start: S\nS: ["a".."c"] "x."i~2 D* /(?!z)/ /Q # any\n/xi? "z"~0..1 | "alone"\nD: "+" | /-/',
        ["ax.X.+-q", "x.x.Q", "alone", "bx.x.qz"],
        ["x.", "axxxx", "x.x.z", "dx.x."],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_meaning(name: str) -> None:
    grammar, good, bad = CASES[name]
    recognizer = NaiveRecognizer(from_lark(grammar))
    assert [text for text in good if not recognizer.accepts(text.encode())] == []
    assert [text for text in bad if recognizer.accepts(text.encode())] == []


def test_another_start() -> None:
    grammar = 'start: a "!"\na: A\nA: "x"+'
    for start in ("a", "A"):
        recognizer = NaiveRecognizer(from_lark(grammar, start=start))
        assert recognizer.accepts(b"xx")
        assert not recognizer.accepts(b"xx!")


def test_only_what_the_start_needs_is_built() -> None:
    ir = from_lark('start: "a"\nunused: UNUSED\nUNUSED: /(?P<x>a)(?P=x)/')
    assert ir.nonterminal_names == ("start",)
    assert len(ir.lexemes) == 1


def test_counts_in_the_thousands_stay_small() -> None:
    ir = from_lark('start: ("a" "b")~3000..70000')
    assert len(ir.productions) < 500


def test_a_counted_terminal() -> None:
    recognizer = NaiveRecognizer(from_lark('start: A\nA: "a"~3..5'))
    assert [recognizer.accepts(b"a" * count) for count in range(7)] == [False] * 3 + [True] * 3 + [False]


def test_lazy_quantifiers_are_noted() -> None:
    ir = from_lark('start: A\nA: "(" /.*?/ ")"')
    (warning,) = ir.warnings
    assert warning.startswith("line 2, column 8: a lazy quantifier")
    assert NaiveRecognizer(ir).accepts(b"(a)b)")


@pytest.mark.parametrize("pattern", [r"a\??", r"[*?]", "(?:a)", "(?i:a)", "a?", r"\*?"])
def test_what_only_looks_lazy_is_not_noted(pattern: str) -> None:
    assert from_lark(f"start: /{pattern}/").warnings == ()


def test_a_backslash_before_a_quote_is_read_as_lark_does() -> None:
    ir = from_lark(r'start: /\\"/')
    assert "Lark reads" in ir.warnings[0]
    recognizer = NaiveRecognizer(ir)
    assert recognizer.accepts(b'"')
    assert not recognizer.accepts(b'\\"')


def test_a_fault_found_later_names_the_rule() -> None:
    error = from_lark('start: a\n\n  a: a "x"').make_error("matches nothing", "a")
    assert str(error) == 'line 3, column 3: the rule "a": matches nothing'


@pytest.mark.parametrize(
    ("grammar", "warning"),
    [
        ('start: A " b" | "c"\nA: /a(?=[ (])/\n', 'line 2, column 1: the terminal "A" matches no text'),
        ('start: "c" | /(?<=x)a/\n', "line 1, column 14: this regex matches no text"),
        ('start: A "b"\nA: B "b"\nB: /a(?=b)/\n', ""),
        ('start: A | "c"\nA: /a(?!b)/\n', ""),
    ],
)
def test_terminals_that_look_behind_their_end_are_named(grammar: str, warning: str) -> None:
    warnings = from_lark(grammar).warnings
    assert len(warnings) == bool(warning)
    assert not warning or warnings[0].startswith(warning)


def test_a_terminal_of_a_grammar_read_again_is_not_searched_for_texts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[Regular] = []
    search = Automaton.is_empty

    def count(self: Automaton, limit: int) -> bool | None:
        searched.append(self.language)
        return search(self, limit)

    monkeypatch.setattr(Automaton, "is_empty", count)
    for _ in range(2):
        assert not from_lark('start: A | "c"\nA: /read twice(?!b)/\n').warnings
    assert len(searched) == 1
