"""Faults in Lark grammars: one line each, with the place and what was expected."""

from __future__ import annotations

import tracemalloc

import pytest
from processor_time import processor_time

from constrain.errors import GrammarError
from constrain.grammar.lark import from_lark

ERRORS = {
    # syntax
    'start: "a': "line 1, column 8: the string that begins here is not closed",
    'start: "a" /b': "line 1, column 12: the regex that begins here is not closed",
    "start: /a\nb/": "line 1, column 8: the regex that begins here is not closed on its line",
    'start: ("a"\n': "line 1, column 12: unexpected end of line, expected ",
    'start: "a" )': "line 1, column 12: unexpected ')', expected ",
    'start "a"': 'line 1, column 7: unexpected \'"a"\', expected ".", ":" or "{"',
    'start: "a" -> ': "line 1, column 15: unexpected end of line, expected a rule name",
    'start: "a"~': "line 1, column 12: unexpected end of line, expected a number",
    'start: "a"\n  $': "line 2, column 3: unexpected '$', expected ",
    'start: a\n\n| "b" | a: "x"': "line 3, column 10: unexpected ':', expected ",
    # names
    "start: a": 'line 1, column 8: the rule "a" is not defined',
    'start: "x" A': 'line 1, column 12: the terminal "A" is not defined',
    'start: "a"\nunused: nothing': 'line 2, column 9: the rule "nothing" is not defined',
    'start: "a"\n%ignore WS': 'line 2, column 9: the terminal "WS" is not defined',
    'a: "x"': 'line 1, column 1: the start rule "start" is not defined (defined are: a)',
    'start{x}: x\na: start{"b"}': 'line 1, column 1: the start rule "start" is a template',
    'start::_ : "a"': 'line 1, column 1: the start rule "start" has a number, and nothing says which',
    'start: "a"\n%extend start[capture]: "b"': 'line 2, column 9: %extend cannot give "start" [capture]; %override can',
    'start: "a"\n%extend start::_ : "b"': 'line 2, column 9: %extend cannot give "start" a number; %override can',
    'start: "a" $ "b': "line 1, column 12: unexpected '$', expected ",
    'start: "a"\nstart: "b"': 'line 2, column 1: the rule "start" is defined twice (first in line 1)',
    'start: A\nA: "a"\n A: "b"': 'line 3, column 2: the terminal "A" is defined twice (first in line 2)',
    # terminals
    'start: A\nA: B\nB: "x" A': 'line 3, column 8: the terminal "A" refers to itself here',
    'start: "a"\nA: "(" A ")"': 'line 2, column 8: the terminal "A" refers to itself here',
    'start: A\nA: "x" b\nb: "y"': 'line 2, column 8: a terminal cannot contain a rule ("A" must be regular)',
    'start: A\nA: "x" -> y': "line 2, column 4: an alias (->) cannot stand in a terminal",
    'start: a\na: "x"\n%ignore a': 'line 3, column 9: a terminal cannot contain a rule ("%ignore" must be regular)',
    # literals
    r'start: "ab\x4"': r"line 1, column 11: \x must be followed by 2 hexadecimal digits",
    r'start: "\ud800"': r"line 1, column 9: \ud800 is not a character",
    'start: "\ud800"': "line 1, column 9: a lone surrogate is not text",
    'start: "z".."a"': 'line 1, column 8: the range "z".."a" is in the wrong order',
    'start: "ab".."c"': 'line 1, column 8: the ends of a range must be single characters, not "ab"',
    'start: "a"i.."c"': "line 1, column 8: the ends of a range cannot have flags",
    "start: /a/l": "line 1, column 8: the regex flag l (locale) is not supported",
    r"start: /ab(\u0041/": "line 1, column 11: in the regex: ",
    r"start: /\u0041\u0042(/": "line 1, column 21: in the regex: ",
    "start: /ab # (\n  (c/x": "line 2, column 3: in the regex: ",
    'start: A\nA: "x" B\nB: /a(?!b)/ /(?P=n)/': 'line 3, column 4: the terminal "B" has look-around or anchors, so ',
    # counts
    'start: "a"~3..2': "line 1, column 11: the counts 3..2 are in the wrong order",
    'start: "a"~-1': "line 1, column 12: a negative count -1",
    'start: "a"~2..1000001': "line 1, column 15: the count 1000001 is above the limit of 1000000",
    'start: "a"~' + "9" * 5000: "line 1, column 12: the count 9999999999... is above the limit",
    # templates
    's{x}: x\nstart: s{"a", "b"}': 'line 2, column 8: "s" takes 1 argument, not 2',
    "s{x}: x\nstart: s": "line 2, column 8: a template is used here without arguments",
    's: "x"\nstart: s{"a"}': 'line 2, column 8: "s" is not a template',
    "start: s\ns{x, x}: x": 'line 2, column 6: the parameter "x" occurs twice',
    's{start}: start\nstart: "a"': 'line 1, column 1: the parameter "start" of "s" has the name of a rule',
    'start: s{start}\ns{x}: x{"a"}': 'line 2, column 7: the parameter "x" is called like a template, but it is none',
    'start: s{t, "a"}\ns{f, x}: f{x, x}\nt{x}: x': 'line 2, column 10: "f" takes 1 argument, not 2',
    # statements
    "start: X\n%declare X": 'line 2, column 10: %declare is not supported: "X" would come from outside',
    '%extend start: "a"': 'line 1, column 9: %extend of the rule "start", which is not defined before',
    '%override A: "a"\nstart: A': 'line 1, column 11: %override of the terminal "A", which is not defined before',
    'start: s{"a"}\ns{x}: x\n%extend s{y}: y y': 'line 3, column 9: %extend of "s" with other parameters',
    # imports
    "%import common\nstart: A": 'line 1, column 9: %import needs a grammar and a name in it, as in "%import ',
    "start: A\n%import nowhere.A": 'line 2, column 17: Lark has no grammar "nowhere" (it has common, ',
    "start: A\n%import common.NOTHING -> A": 'line 2, column 16: "common" does not define "NOTHING"',
    "%import common.WS -> ws\nstart: ws": "line 1, column 22: a terminal cannot be imported as a rule",
    "%import .file.A\nstart: A": 'line 1, column 15: the relative import ".file" needs base_path, the ',
    "start: file_input\n%import python.file_input": 'line 2, column 16: what is imported here needs "_INDENT", which',
    "%import common.WS\nstart: WS\nWS: /x/": 'line 3, column 1: the terminal "WS" is defined twice (first in lark',
}


@pytest.mark.parametrize(
    ("grammar", "place", "hint"),
    [
        ("start: 'a'", 'line 1, column 8: unexpected "\'", expected ', "; strings are written in double quotes"),
        (
            'start ::= "a"',
            "line 1, column 8: unexpected ':', expected ",
            "; a rule is written with one colon here",
        ),
    ],
)
def test_what_other_notations_have_is_named(grammar: str, place: str, hint: str) -> None:
    with pytest.raises(GrammarError) as error:
        from_lark(grammar)
    assert str(error.value).startswith(place)
    assert hint in str(error.value)


@pytest.mark.parametrize("grammar", ERRORS)
def test_error(grammar: str) -> None:
    with pytest.raises(GrammarError) as caught:
        from_lark(grammar)
    message = str(caught.value)
    assert message.startswith(ERRORS[grammar])
    assert "\n" not in message
    assert message == f"line {caught.value.line}, column {caught.value.column}: {caught.value.reason}"


def doubling_terminals(count: int) -> str:
    lines = [f"A{i + 1}: A{i} A{i}" for i in range(count)]
    return "\n".join([f"start: A{count}", 'A0: "x"', *lines])


HOSTILE = {
    "backslashes in an open string": ('start: "' + "\\\\" * 5000, "not closed"),
    "blank lines": ("start: a" + "\n" * 200_000, 'the rule "a" is not defined'),
    "blank lines before a comment": ("start: a" + "\n" * 200_000 + "// end", 'the rule "a" is not defined'),
    "blanks in a line": ("start: a" + " " * 200_000 + "$", "unexpected '\\$'"),
    "open brackets": ("start: " + "[" * 200_000, "unexpected end of line"),
    "characters that are no notation": ('start: "a"' + "\r" * 200_000, r"column 11: unexpected '\\r'"),
    "nested terminal": ("start: A\nA: " + "(" * 20_000 + '"a"' + ')* "b"' * 20_000, "nested more than 100 levels"),
    "chained terminals": (
        'start: A3000\nA0: "a"\n' + "".join(f'A{i + 1}: (A{i} "x")?\n' for i in range(3000)),
        "nested more than 100 levels",
    ),
    "doubling terminals": (doubling_terminals(60), "larger than 3000000 characters"),
    "doubling terminals that are joined": (
        doubling_terminals(18).replace("A18\n", "B\nB: A18 /(?!y)/\n", 1),
        "larger than 3000000 characters",
    ),
    "counted counts in a terminal": ('start: A\nA: (("a"~1000)~1000)~1000', "larger than 3000000 characters"),
    "templates without end": ('start: t{"a"}\nt{x}: t{u{x}}\nu{x}: x', "make more than 10000 rules"),
    "a large template used often": (
        "start: " + " ".join(f't{{"{i}"}}' for i in range(5000)) + "\nt{x}: " + "x " * 2000,
        "make more than 10000 rules or 2000000 symbols",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_grammars_end_soon(name: str) -> None:
    grammar, reason = HOSTILE[name]
    with processor_time() as spent, pytest.raises(GrammarError, match=reason):
        from_lark(grammar)
    # A second or so on an idle machine; what is meant to be caught would take hours.
    assert spent.seconds < 30


@pytest.mark.parametrize("rule", ['"{}"', '("{}")?', "/(?#{})a/", '"a" // {}', '[ "{}" ]', '%json {{"const": "{}"}}'])
def test_a_long_text_takes_little_more_than_its_size_to_read(rule: str) -> None:
    size = 150_000
    tracemalloc.start()
    try:
        from_lark("start: " + rule.format("x" * size))
        assert tracemalloc.get_traced_memory()[1] < 100 * size
    finally:
        tracemalloc.stop()


def test_deep_nesting_in_rules_is_no_problem() -> None:
    depth = 20_000
    ir = from_lark("start: " + "(" * depth + '"a"' + ')* "b"' * depth)
    assert len(ir.productions) > depth


def test_templates_that_double_are_shared() -> None:
    lines = [f"t{i + 1}{{x}}: t{i}{{x}} t{i}{{x}}" for i in range(60)]
    ir = from_lark("\n".join(['start: t60{"a"}', "t0{x}: x x", *lines]))
    assert len(ir.productions) < 100


@pytest.mark.parametrize(
    ("grammar", "message"),
    [
        (
            'start: A "x"\nA: /a\\Bb\nc/x\n',
            'line 2, column 1: the terminal "A" (/a\\Bb\\nc/x): the anchor or boundary non_boundary cannot be followed',
        ),
        ('start: A "x"\nA: "a"\n%ignore /^\\n/\n', "line 3, column 9: the terminal /^\\n/: the anchor"),
        ('start: A "x" /^\x01b/\nA: "a"\n', "line 1, column 14: the terminal /^\\x01b/: the anchor"),
        (
            "start: NAME\nNAME: /\\p{Lx}+/\n",
            "line 2, column 1: Lark's LALR parser refuses this grammar: Cannot compile token NAME: '\\\\p{Lx}+': "
            "unknown property",
        ),
    ],
)
def test_what_a_lexer_cannot_follow_is_quoted_on_one_line(grammar: str, message: str) -> None:
    with pytest.raises(GrammarError) as found:
        from_lark(grammar, lexing="longest")
    assert str(found.value).startswith(message)
    assert str(found.value).isprintable()


def test_long_messages_of_lark_end_with_a_whole_part() -> None:
    rules = [f"rule_number_{number}" for number in range(40)]
    grammar = f"start: {' | '.join(rules)}\n" + "".join(f"{rule}: A\n" for rule in rules) + 'A: "a"\n'
    with pytest.raises(GrammarError, match=r"<rule_number_\d+ : A> \.\.\. \(and \d+ more lines\)$") as found:
        from_lark(grammar, lexing="longest")
    assert len(str(found.value)) < 650
