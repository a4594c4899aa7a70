"""``%import``: Lark's own grammars, and files."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from lark import Lark
from lark.indenter import PythonIndenter
from naive import NaiveRecognizer

import constrain
from constrain.errors import GrammarError
from constrain.grammar.lark import from_lark

COMMON = {
    "DIGIT": (["7"], ["77", "a"]),
    "HEXDIGIT": (["f", "F", "0"], ["g"]),
    "INT": (["007"], ["-1", ""]),
    "SIGNED_INT": (["-1", "+2", "3"], ["--1"]),
    "DECIMAL": (["1.", ".5", "1.5"], ["1", "."]),
    "FLOAT": (["1e5", "1.5E-3", "1."], ["1", "e5"]),
    "SIGNED_NUMBER": (["-1.5e+3", "1"], ["1e", "- 1"]),
    "ESCAPED_STRING": (['"a"', '""', r'"a\"b"', r'"\\"', '"é"'], ['"a"b"', r'"a\"', '"a\nb"', '"']),
    "LETTER": (["q", "Q"], ["é", "qq"]),
    "WORD": (["Word"], ["a1", ""]),
    "CNAME": (["_a1", "B"], ["1a", ""]),
    "WS": ([" \t\r\n\f"], ["", "x"]),
    "WS_INLINE": ([" \t"], ["\n"]),
    "CR": (["\r"], ["\n"]),
    "LF": (["\n"], ["\r"]),
    "NEWLINE": (["\n", "\r\n\n"], ["\r"]),
    "SH_COMMENT": (["# x", "#"], ["# x\n"]),
    "CPP_COMMENT": (["// x"], ["/ x", "//\n"]),
    "C_COMMENT": (["/* a */", "/**/", "/***/", "/* * / \n **/"], ["/* a */ */", "/*/", "/* a"]),
    "SQL_COMMENT": (["-- x"], ["- x", "--\n"]),
}


@pytest.mark.parametrize("name", COMMON)
def test_common(name: str) -> None:
    good, bad = COMMON[name]
    ir = from_lark(f"start: {name}\n%import common.{name}")
    assert ir.warnings == ()
    recognizer = NaiveRecognizer(ir)
    assert [text for text in good if not recognizer.accepts(text.encode())] == []
    assert [text for text in bad if recognizer.accepts(text.encode())] == []


PYTHON = {
    "STRING": (['"a"', "rb'x'", r'"\""', "''"], ['"""', "'a'b'", '"\n"']),
    "LONG_STRING": (['"""a"""', "'''a\n'b'''", r'"""\""""', '""""a"""'], ['"""a""""', '"""a"""b"""', '""""""""']),
    "DEC_NUMBER": (["0", "0_0", "1_000"], ["01", "1_", ""]),
    "FLOAT_NUMBER": (["1.5", "1e5", "1_0.0"], ["1", "1__0."]),
    "NAME": (["é1", "_x"], ["1x", ""]),
}


@pytest.mark.parametrize("name", PYTHON)
def test_python(name: str) -> None:
    good, bad = PYTHON[name]
    recognizer = NaiveRecognizer(from_lark(f"start: {name}\n%import python.{name}"))
    assert [text for text in good if not recognizer.accepts(text.encode())] == []
    assert [text for text in bad if recognizer.accepts(text.encode())] == []


def test_parts_of_strings_keep_their_warning() -> None:
    ir = from_lark('start: "\'" _STRING_ESC_INNER "\'"\n%import common._STRING_ESC_INNER')
    assert "lazy" in ir.warnings[0]
    recognizer = NaiveRecognizer(ir)
    assert recognizer.accepts(rb"'a\'b'")
    assert not recognizer.accepts(b"'a\\")


def test_rules_of_a_library_grammar() -> None:
    recognizer = NaiveRecognizer(from_lark("start: test\n%import python.test\n%import python.COMMENT\n%ignore /[ ]/"))
    assert recognizer.accepts(b"f(x, *y)[1:2] + (lambda a, b=1: {a: 'b', **c}) if not d else [i for i in e if i]")
    assert not recognizer.accepts(b"f(x")


def test_lists_and_aliases() -> None:
    grammar = "start: INT WHITE NAME\n%import common (INT, CNAME)\n%import common.WS -> WHITE\nNAME: CNAME"
    recognizer = NaiveRecognizer(from_lark(grammar))
    assert recognizer.accepts(b"12 ab")
    assert not recognizer.accepts(b"12")


def test_names_of_an_import_do_not_meet_those_of_the_importer() -> None:
    recognizer = NaiveRecognizer(from_lark('start: INT DIGIT\nDIGIT: "x"\n%import common.INT'))
    assert recognizer.accepts(b"12x")
    assert not recognizer.accepts(b"xx")


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.lark").write_text(text, encoding="utf-8")


def test_relative(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    write(tmp_path, numbers='number: DIGIT+ [unit]\nDIGIT: "0".."9"\nunit: "m"\nstart: "no"')
    write(tmp_path / "sub", lists='%import .items.item\nlist: "[" item ("," item)* "]"\n%ignore "-"', items='item: "i"')
    grammar = "start: number list\n%import .numbers.number\n%import .sub.lists.list"
    recognizer = NaiveRecognizer(from_lark(grammar, base_path=tmp_path))
    assert recognizer.accepts(b"12m[i,i]")
    assert recognizer.accepts(b"1[i]")
    # What an imported file ignores is its own affair, as in Lark.
    assert not recognizer.accepts(b"1-[i]")
    assert NaiveRecognizer(from_lark(grammar, base_path=str(tmp_path))).accepts(b"1[i]")


@pytest.mark.parametrize("lexing", ["any", "longest"])
def test_the_folder_comes_before_the_grammars_of_lark(tmp_path: Path, lexing: Literal["any", "longest"]) -> None:
    write(tmp_path, common='DIGIT: "a"', own="number: DIGIT\n%import common.DIGIT")
    (tmp_path / "sub").mkdir()
    write(tmp_path / "sub", common='DIGIT: "b"', deep="deep: DIGIT\n%import common.DIGIT")
    grammar = "start: number deep CNAME\n%import common.DIGIT\n%import own.number\n%import sub.deep.deep\n"
    with pytest.raises(GrammarError, match="CNAME"):
        constrain.Grammar.from_lark(grammar + "%import common.CNAME", base_path=tmp_path, lexing=lexing)
    grammar = grammar.replace("CNAME", "DIGIT")
    vocabulary = constrain.Vocabulary([bytes([byte]) for byte in range(128)] + [b"</s>"], eos_ids=[128])
    compiled = constrain.CompiledGrammar(
        constrain.Grammar.from_lark(grammar, base_path=tmp_path, lexing=lexing).ir, vocabulary
    )
    for text, fits in ((b"aaa", True), (b"aba", False), (b"1aa", False), (b"aa1", False)):
        matcher = constrain.Matcher(compiled)
        assert (matcher.accept_bytes(text) and matcher.is_accepting()) == fits


def test_overriding_reaches_what_was_imported_beside_it(tmp_path: Path) -> None:
    write(tmp_path, base='sum: number ("+" number)*\nnumber: "1"\nt{x}: x number')
    imports = 'start: sum | t{DOT}\n%import .base (sum, number, t)\nDOT: "."\n'
    assert NaiveRecognizer(from_lark(imports, base_path=tmp_path)).accepts(b"1+1")
    recognizer = NaiveRecognizer(from_lark(imports + '%override number: "2"', base_path=tmp_path))
    assert recognizer.accepts(b"2+2")
    assert recognizer.accepts(b".2")
    assert not recognizer.accepts(b"1+1")
    recognizer = NaiveRecognizer(from_lark(imports + "%extend number: DOT", base_path=tmp_path))
    assert recognizer.accepts(b"1+.")


def test_errors_in_an_imported_file_name_it(tmp_path: Path) -> None:
    write(tmp_path, bad='a: "x"\nb: (', undefined='a: "x"\n  | nothing', loop="%import .loop.a\nb: a")
    with pytest.raises(GrammarError, match=r"^line 2, column 5: unexpected end of line, .*\(in bad\.lark\)$"):
        from_lark("start: a\n%import .bad.a", base_path=tmp_path)
    with pytest.raises(GrammarError, match=r'^line 2, column 5: the rule "nothing" is not defined \(in undefined'):
        from_lark("start: a\n%import .undefined.a", base_path=tmp_path)
    with pytest.raises(GrammarError, match=r'"loop" imports itself'):
        from_lark("start: b\n%import .loop.b", base_path=tmp_path)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.lark").write_bytes(b'a: "\xe9"')
    with pytest.raises(GrammarError, match=r"^line 1, column 15: cannot import .*: No such file"):
        from_lark("%import .gone.a\nstart: a", base_path=tmp_path)
    with pytest.raises(GrammarError, match=r"^line 1, column 16: cannot import .*: it is not UTF-8 text"):
        from_lark("%import .latin.a\nstart: a", base_path=tmp_path)


def test_the_same_name_twice(tmp_path: Path) -> None:
    write(tmp_path, one='a: "1"', two='a: "2"')
    with pytest.raises(GrammarError, match=r'^line 2, column 14: "a" is imported from several files'):
        from_lark("%import .one.a\n%import .two.a\nstart: a", base_path=tmp_path)
    with pytest.raises(GrammarError, match=r'"a" is imported twice under different names'):
        from_lark("%import .one.a -> b\n%import .one.a -> c\nstart: b c", base_path=tmp_path)


def test_files_that_import_in_ever_new_ways(tmp_path: Path) -> None:
    for index in range(40):
        following = f"%import .f{index + 1}.a -> b\n%import .f{index + 2}.a -> c\n"
        write(tmp_path, **{f"f{index}": following + "a: b c"})
    write(tmp_path, f40='a: "x"', f41='a: "y"')
    with pytest.raises(GrammarError, match="more than 500 imports"):
        from_lark("%import .f0.a\nstart: a", base_path=tmp_path)


@pytest.mark.parametrize("how", ["any", "longest"])
def test_an_imported_name_that_is_not_defined_matters_where_it_is_used(how: Literal["any", "longest"]) -> None:
    """As in Lark, which reads the first of these grammars."""
    Lark("start: INT\n%import common (INT, NOTHING)\n", parser="lalr")
    constrain.Grammar.from_lark("start: INT\n%import common (INT, NOTHING)\n", lexing=how)
    constrain.Grammar.from_lark("start: NOTHING\n%import common (INT, NOTHING)\nNOTHING: INT\n", lexing=how)
    with pytest.raises(constrain.GrammarError, match=r'^line 2, column 22: "common" does not define "NOTHING"$'):
        constrain.Grammar.from_lark("start: INT NOTHING\n%import common (INT, NOTHING)\n", lexing=how)


def test_what_an_imported_file_declares_may_come_from_an_indenter() -> None:
    """The grammar of Lark's example py3to2, which also imports a rule that there is not."""
    grammar = r"""
    start: stmt+
    %import python (stmt, atom, var, _NEWLINE, _INDENT, _DEDENT, COMMENT, NAME)
    %extend atom: TEMPLATE_NAME -> var
    TEMPLATE_NAME: "$" NAME
    %ignore /[\t \f]+/
    %ignore COMMENT
    """
    found = constrain.Grammar.from_lark(grammar, lexing="longest", indenter=PythonIndenter)
    vocabulary = constrain.Vocabulary([bytes((i,)) for i in range(256)])
    matcher = constrain.Matcher(constrain.GrammarCompiler(vocabulary).compile(found))
    assert matcher.accept_bytes(b"if $a:\n  $b\nc\n")
    assert matcher.is_accepting()
    with pytest.raises(constrain.GrammarError, match=r'^line 3, column \d+: what is imported here needs "_INDENT"'):
        constrain.Grammar.from_lark(grammar)
