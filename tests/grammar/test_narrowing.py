"""``Grammar.from_lark(..., narrow=...)``: a slow recognizer that tries every derivation is the judge."""

from __future__ import annotations

import random
import re
import tracemalloc
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest
from masks import mask_of

import constrain

Hook = Callable[[str], "Iterable[str] | None"]
Rules = Mapping[str, list[list[str]]]

LEXEMES = {"X": "[xy]+", "Y": "y", "Z": "z+", "P": "p", "Q": "(xp)+|z"}


def ends(
    rules: Rules, hooks: Mapping[str, Hook], text: str, ignores: bool, lexemes: Mapping[str, str] = LEXEMES
) -> set[int]:
    """Where readings of the start symbol end that begin at the beginning of a text."""
    known: dict[tuple[str, int], set[int]] = {}

    def of_lexeme(name: str, at: int) -> set[int]:
        answer = hooks[name](text[:at]) if name in hooks else None
        found = set()
        begin = at
        while True:
            for end in range(begin + 1, len(text) + 1):
                piece = text[begin:end]
                if re.fullmatch(lexemes[name], piece) and (answer is None or piece in answer):
                    found.add(end)
            if not ignores or begin == len(text) or text[begin] != " ":
                return found
            begin += 1

    def of_right(right: list[str], at: int) -> set[int]:
        places = {at}
        for symbol in right:
            places = {
                end
                for place in places
                for end in (of_lexeme(symbol, place) if symbol in LEXEMES else known.setdefault((symbol, place), set()))
            }
        return places

    while True:
        before = {key: len(found) for key, found in known.items()}
        for key in [*known, ("start", 0)]:
            for right in rules[key[0]]:
                known.setdefault(key, set()).update(of_right(right, key[1]))
        if before == {key: len(found) for key, found in known.items()}:
            return known["start", 0]


def is_read(
    rules: Rules, hooks: Mapping[str, Hook], text: str, ignores: bool, lexemes: Mapping[str, str] = LEXEMES
) -> bool:
    found = ends(rules, hooks, text, ignores, lexemes)
    return any(not text[end:].strip(" ") if ignores else end == len(text) for end in found)


def random_rules(rng: random.Random) -> dict[str, list[list[str]]]:
    names = ["start", "a", "b"]
    rules = {}
    for name in names:
        symbols = [*LEXEMES, "X", "X", "a", "b", *([name] * 2)]
        rules[name] = [[rng.choice(symbols) for _ in range(rng.choice((0, 1, 2, 2, 3)))] for _ in range(3)]
        # So that something can be made of each.
        rules[name].append([rng.choice(list(LEXEMES))])
    rules["start"] += [["a", "X"], ["Q", "b", "start"]]
    return rules


def written(rules: Rules, lexemes: Mapping[str, str], ignores: bool) -> list[str]:
    """The lines of the grammar."""
    lines = [f"{name}: " + " | ".join(" ".join(right) for right in rights) for name, rights in rules.items()]
    return [*lines, *(f"{name}: /{pattern}/" for name, pattern in lexemes.items()), *['%ignore " "'] * ignores]


def random_hook(rng: random.Random) -> Hook:
    salt = rng.random()

    def hook(text: str) -> list[str] | None:
        inner = random.Random(f"{salt} {text}")
        if inner.random() < 0.2:
            return None
        return ["x", *inner.sample(["x", "y", "xx", "xy", "yy", "", "z", "p"], inner.randrange(4))]

    return hook


BYTES = constrain.Vocabulary([bytes((i,)) for i in range(128)] + [b"</s>"], eos_ids=[128])


@pytest.mark.parametrize("seed", range(25))
def test_texts_are_those_that_a_slow_recognizer_reads(seed: int) -> None:
    rng = random.Random(seed)
    rules, ignores = random_rules(rng), rng.random() < 0.4
    lines = written(rules, LEXEMES, ignores)
    hooks: dict[str, Hook] = {"X": random_hook(rng)}
    if rng.random() < 0.5:
        hooks["Q"] = lambda text: ["z", "xp"] if len(text) % 2 else ["z"]
    grammar = constrain.Grammar.from_lark("\n".join(lines), narrow=hooks)
    compiled = constrain.CompiledGrammar(grammar.ir, BYTES)
    alphabet = "xyzp " if ignores else "xyzp"
    verdicts = {True: 0, False: 0}
    todo = [("", compiled.recognizer())]
    for text, recognizer in todo:
        expected = is_read(rules, hooks, text, ignores)
        verdicts[expected] += 1
        assert recognizer.is_accepting() == expected, (text, lines)
        if len(text) == 4:
            continue
        for char in alphabet:
            ahead = recognizer.fork()
            if ahead.try_push_byte(ord(char)):
                todo.append((text + char, ahead))
            else:
                assert not is_read(rules, hooks, text + char, ignores), (text + char, lines)
                assert not is_read(rules, hooks, text + char + "x", ignores), (text + char, lines)
    assert len(todo) > 4


SQL = r"""
    start: "select" _S columns _S "from" _S TABLE [_S "where" _S sum]
    columns: column ("," column)*
    column: TABLE "." COLUMN | "*"
    sum: sum "+" product | product
    product: COLUMN | NUMBER | "(" sum ")"
    TABLE: /[a-z]+/
    COLUMN: /[a-z]+/
    NUMBER: /[0-9]+/
    _S: " "+
    %ignore _S
"""
SCHEMA = {"users": ["id", "name"], "items": ["id", "price"]}


def columns(text: str) -> list[str]:
    table = re.search(r"(\w+) *\.$", text) or re.search(r"from +(\w+)", text)
    assert table is not None
    return SCHEMA[table[1]]


def tables(text: str) -> Iterable[str]:
    named = re.findall(r"(\w+) *\.", text)
    return named[:1] or SCHEMA


def sql(**options: object) -> constrain.Grammar:
    return constrain.Grammar.from_lark(SQL, narrow={"TABLE": tables, "COLUMN": columns}, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("select users.id from users where name+(id)+3", None),
        ("select items.price,items.id from items", None),
        ("select * from items where price", None),
        ("select users.price", 13),
        ("select users.id,items", 16),
        ("select users.id from items", 21),
        ("select orders", 7),
        ("select * from items where name", 26),
    ],
)
def test_only_what_the_schema_has_is_written(text: str, length: int | None) -> None:
    recognizer = constrain.CompiledGrammar(sql().ir, BYTES).recognizer()
    taken = 0
    for byte in text.encode():
        if not recognizer.try_push_byte(byte):
            break
        taken += 1
    assert taken == (len(text) if length is None else length)
    assert length is not None or recognizer.is_accepting()


def test_masks_are_what_tokens_lead_to() -> None:
    words = "select |users.|.id|users.id|id,|,users|items.price from|items| from |users where |id+|id+(|((|(id|name)|pr"
    pieces = [bytes((i,)) for i in range(128)] + [word.encode() for word in words.split("|")]
    vocabulary = constrain.Vocabulary([*pieces, b"</s>"], eos_ids=[len(pieces)])
    matcher = constrain.Matcher(constrain.GrammarCompiler(vocabulary).compile(sql()))
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    rng = random.Random(2)
    steps = 0
    for _ in range(60):
        matcher.reset()
        taken = 0
        for _ in range(12):
            matcher.fill_next_token_bitmask(mask)
            bits = np.unpackbits(mask[0].view(np.uint8), bitorder="little")[: vocabulary.size]
            allowed = np.flatnonzero(bits).tolist()
            assert allowed == [token for token in range(vocabulary.size) if matcher.fork().accept_token(token)]
            assert allowed
            long = [token for token in allowed if token >= 128]
            token = rng.choice(long if long and rng.random() < 0.7 else allowed)
            if token == len(pieces):
                break
            assert matcher.accept_token(token)
            steps += 1
            taken += 1
            if rng.random() < 0.2:
                back = rng.randint(1, taken)
                matcher.rollback(back)
                taken -= back
    assert steps > 400


def test_tokens_of_many_blanks_are_looked_at_once_each() -> None:
    # Behind each number of blanks the function is to be asked, and what comes after is a longer one.
    pieces = [bytes((i,)) for i in range(128)] + [b" " * n for n in range(2, 60)] + [b" " * 40 + b"items"]
    vocabulary = constrain.Vocabulary([*pieces, b"</s>"], eos_ids=[len(pieces)])
    matcher = constrain.Matcher(constrain.GrammarCompiler(vocabulary).compile(sql()))
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    assert matcher.accept_bytes(b"select users.id from")
    matcher.fill_next_token_bitmask(mask)
    bits = np.unpackbits(mask[0].view(np.uint8), bitorder="little")[: vocabulary.size]
    assert np.flatnonzero(bits).tolist() == [32, *range(128, 128 + 58)]


def test_text_goes_on_where_the_functions_say() -> None:
    matcher = constrain.Matcher(constrain.GrammarCompiler(BYTES).compile(sql()))
    assert matcher.accept_bytes(b"select items.p")
    assert matcher.forced_bytes() == b"rice"
    fork = matcher.fork()
    assert fork.accept_bytes(b"rice from items where (pr")
    assert fork.forced_bytes() == b"ice"


def test_none_is_all_that_the_terminal_has() -> None:
    grammar = constrain.Grammar.from_lark(
        "start: X X\nX: /[ab]+;/", narrow={"X": lambda text: None if text else ["a;"]}
    )
    recognizer = constrain.CompiledGrammar(grammar.ir, BYTES).recognizer()
    assert [recognizer.try_push_byte(byte) for byte in b"a;bab;"] == [True] * 6
    assert recognizer.is_accepting()


def test_equal_terminals_are_narrowed_one_by_one() -> None:
    grammar = constrain.Grammar.from_lark(
        'start: A "," B\nA: /[a-z]/\nB: A', narrow={"B": lambda text: ["x", "no", "1"]}
    )
    compiled = constrain.CompiledGrammar(grammar.ir, BYTES)
    for text, expected in (("a,x", True), ("x,x", True), ("a,a", False)):
        recognizer = compiled.recognizer()
        assert all(recognizer.try_push_byte(byte) for byte in text.encode()) == expected


def test_where_nothing_is_left_there_is_an_error_and_the_matcher_stays() -> None:
    grammar = constrain.Grammar.from_lark('start: "a" (X | "b" X)\nX: /[a-z]/', narrow={"X": lambda text: ["1"]})
    matcher = constrain.Matcher(constrain.GrammarCompiler(BYTES).compile(grammar))
    # "b" can follow an "a", and nothing can follow that.
    assert matcher.accept_bytes(b"a")
    for _ in range(2):
        with pytest.raises(constrain.GrammarError, match="narrow of X leaves nothing that could follow 'ab'"):
            matcher.accept_bytes(b"b")
        assert not matcher.accept_bytes(b"x")


@pytest.mark.parametrize("ignores", [False, True])
@pytest.mark.parametrize(
    ("rules", "text", "follows", "may_end"),
    [
        ('start: "a" X | "a" "b"', b"a", b"b", False),
        ('start: s X | "ab"\ns: "a"', b"a", b"b", False),
        ('start: "a" X?', b"a", b"", True),
        ('start: start X | "a"', b"a", b"", True),
        ('start: "a" X* "b"?', b"a", b"b", True),
        ("start: X?", b"", b"", True),
        ("start: start X | X*", b"", b"", True),
        ('start: X? "b"?', b"", b"b", True),
    ],
)
def test_a_function_may_leave_nothing_where_other_rules_go_on(
    rules: str, text: bytes, follows: bytes, may_end: bool, ignores: bool
) -> None:
    lines = rules + "\nX: /[xy]/" + '\n%ignore " "' * ignores
    grammar = constrain.Grammar.from_lark(lines, narrow={"X": lambda text: []})
    matcher = constrain.Matcher(constrain.GrammarCompiler(BYTES).compile(grammar))
    assert matcher.accept_bytes(text)
    assert matcher.is_accepting() == may_end
    # Between two bytes of one string nothing is ignored.
    blank = b" " * (ignores and (may_end or rules.startswith('start: "a" X |')))
    assert mask_of(matcher) == {*follows, *blank, *[128] * may_end}


def test_masks_ask_at_each_end_of_a_lexeme_whether_something_is_left() -> None:
    # Behind "x" nothing is left: what is ignored cannot follow, though "x" may go on.
    grammar = constrain.Grammar.from_lark(
        'start: W X\nX: /x/\nW: /[xy]{1,4}/\n%ignore " "', narrow={"X": lambda text: ["x"] if len(text) == 3 else []}
    )
    pieces = [b" ", b"x", b"y", b"x ", b"xy ", b"xx", b"xxx ", b"xxx x"]
    vocabulary = constrain.Vocabulary([*pieces, b"</s>"], eos_ids=[len(pieces)])
    matcher = constrain.Matcher(constrain.GrammarCompiler(vocabulary).compile(grammar))
    allowed = {pieces[token] for token in mask_of(matcher)}
    assert allowed == {b" ", b"x", b"y", b"xx", b"xxx ", b"xxx x"}
    assert mask_of(matcher) == {token for token in range(vocabulary.size) if matcher.fork().accept_token(token)}


def test_tokens_that_share_long_runs_of_what_is_ignored() -> None:
    # Each blank ends the separator, so each node of a run of blanks is open, and so is what follows it.
    grammar = constrain.Grammar.from_lark(
        'start: "a" _S X _S Y\nX: /[xy]{1,9}/\nY: /[xyz]{1,9}/\n_S: " "+\n%ignore " "',
        narrow={"X": lambda text: ["x", "yy"], "Y": lambda text: ["z"] if text.endswith("yy ") else ["x"]},
    )
    runs = [b" " * count for count in (*range(1, 40), 80)]
    ends = [b"x", b"yy", b"y", b"x x", b"x y", b"yy z", b"yy  x", b"yy x", b"z"]
    pieces = [b"a", *runs, *ends, *(run + end for run in runs[::7] for end in ends)]
    vocabulary = constrain.Vocabulary([*pieces, b"</s>"], eos_ids=[len(pieces)])
    compiled = constrain.GrammarCompiler(vocabulary).compile(grammar)
    for text in (b"a", b"a ", b"a   ", b"a x", b"a x ", b"a  yy ", b"a yy  "):
        matcher = constrain.Matcher(compiled)
        assert matcher.accept_bytes(text)
        allowed = mask_of(matcher)
        assert allowed == {token for token in range(vocabulary.size) if matcher.fork().accept_token(token)}
        assert allowed.intersection(range(1, 1 + len(runs)))


def test_where_what_is_left_does_not_fit_the_budget_there_is_an_error() -> None:
    grammar = constrain.Grammar.from_lark('start: "a" X | "a" "bbbb"\nX: /[xy]/', narrow={"X": lambda text: []})
    compiled = constrain.GrammarCompiler(BYTES).compile(grammar)
    for budget in (2, 4):
        with pytest.raises(constrain.GrammarError, match="narrow leaves nothing that could follow within max_tokens"):
            mask_of(constrain.Matcher(compiled, max_tokens=budget))
        with pytest.raises(constrain.GrammarError, match="narrow leaves nothing that could follow within max_tokens"):
            constrain.Matcher(compiled, max_tokens=budget).completion()
    matcher = constrain.Matcher(compiled, max_tokens=5)
    assert all(mask_of(matcher) == {byte} and matcher.accept_token(byte) for byte in b"abbbb")


@pytest.mark.parametrize(
    ("narrow", "options", "message"),
    [
        ({"NAME": columns}, {}, 'narrow names "NAME", which is no terminal'),
        ({"sum": columns}, {}, 'narrow names "sum", which is no terminal'),
        ({"COLUMN": ["id"]}, {}, "from names of terminals to functions"),
        ({"COLUMN": columns}, {"lexing": "longest"}, 'narrow is for lexing="any"'),
    ],
)
def test_what_cannot_be_narrowed_is_refused(narrow: object, options: dict[str, str], message: str) -> None:
    with pytest.raises(constrain.GrammarError, match=message):
        constrain.Grammar.from_lark(SQL, narrow=narrow, **options)  # type: ignore[arg-type]


def test_terminals_that_may_be_empty_or_are_not_used_are_refused() -> None:
    with pytest.raises(constrain.GrammarError, match="no terminal may match the empty text, as Y does"):
        constrain.Grammar.from_lark("start: X Y\nX: /x+/\nY: /y*/", narrow={"X": lambda text: None})
    with pytest.raises(constrain.GrammarError, match="a terminal that stands in no rule"):
        constrain.Grammar.from_lark('start: "a"\nX: /x+/', narrow={"X": lambda text: None})


@pytest.mark.parametrize(("answer", "message"), [("ab", "not str"), ([1], "not int"), (3, "not int")])
def test_answers_that_are_no_strings_are_refused(answer: object, message: str) -> None:
    hook: Any = lambda text: answer  # noqa: E731
    grammar = constrain.Grammar.from_lark("start: X\nX: /x+/", narrow={"X": hook})
    with pytest.raises(constrain.GrammarError, match=message):
        constrain.CompiledGrammar(grammar.ir, BYTES)


def test_a_budget_needs_a_longest_string() -> None:
    compiled = constrain.GrammarCompiler(BYTES).compile(sql())
    for _ in range(2):
        with pytest.raises(
            constrain.GrammarError,
            match=r'max_tokens or a completion with narrow needs a longest string of "\w+": bound',
        ):
            constrain.Matcher(compiled, max_tokens=9)
    assert constrain.Matcher(compiled).accept_bytes(b"select users.id")


BOUNDED = {**LEXEMES, "X": "[xy]{1,2}", "Q": "(xp){1,2}|z"}
PIECES = [*"xyzp ", "xx", "xy", "yx", "xp", "zz", "px", "yz", "xxz", " x"]
SMALL = constrain.Vocabulary([*map(str.encode, PIECES), b"</s>"], eos_ids=[len(PIECES)])


@pytest.mark.parametrize("seed", range(30))
def test_a_budget_is_kept_whatever_the_functions_say(seed: int) -> None:
    rng = random.Random(seed)
    rules, ignores = random_rules(rng), rng.random() < 0.4
    lines = written(rules, BOUNDED, ignores)
    hooks: dict[str, Hook] = {"X": random_hook(rng), "Q": lambda text: ["z", "xp"] if len(text) % 2 else ["z"]}
    if seed % 3 == 0:
        del hooks["Q"]
    grammar = constrain.Grammar.from_lark("\n".join(lines), narrow=hooks)
    compiled = constrain.CompiledGrammar(grammar.ir, SMALL)
    kept = 0
    for budget in (1, 2, 3, 4, 6, 9):
        for _ in range(4):
            try:
                matcher = constrain.Matcher(compiled, max_tokens=budget)
            except constrain.ConstrainError:
                # Too few, for all that is known.
                continue
            text, left = "", budget
            while True:
                choices = mask_of(matcher)
                assert choices == {token for token in range(SMALL.size) if matcher.fork().accept_token(token)}
                completion = matcher.completion()
                assert len(completion) <= left
                token = rng.choice(sorted(choices))
                assert matcher.accept_token(token)
                if token == len(PIECES):
                    break
                text, left = text + PIECES[token], left - 1
            kept += 1
            if len(text) < 9:
                assert is_read(rules, hooks, text, ignores, BOUNDED), (text, lines)
    assert kept


def test_a_budget_goes_round_what_cannot_be_spelled() -> None:
    """The cheapest way by the rules asks the function, which leaves a text that no tokens spell."""
    tokens = [b"a", b",", b"", b"</s>"]
    vocabulary = constrain.Vocabulary(tokens, eos_ids=[3], special_ids=[2], names={2: "<|x|>"})
    grammar = constrain.Grammar.from_lark(
        'start: "," NAME | "a" <|x|>\nNAME: /[ab]{1,2}/', narrow={"NAME": lambda text: ["b"]}
    )
    compiled = constrain.GrammarCompiler(vocabulary).compile(grammar)
    for matcher in constrain.Matcher(compiled), constrain.Matcher(compiled, 2), constrain.Matcher(compiled, 9):
        assert matcher.completion() == [0, 2]
        assert 0 in mask_of(matcher)
        assert matcher.accept_tokens([0, 2, 3])


def use_in(kind: str, matcher: constrain.Matcher) -> None:
    """Use a matcher in one of several ways."""
    mask = constrain.allocate_token_bitmask(1, BYTES.size)
    if kind == "mask":
        matcher.fill_next_token_bitmask(mask)
    elif kind == "batch":
        constrain.fill_next_token_bitmask_batch([matcher], mask)
    elif kind == "drafts":
        constrain.fill_draft_bitmasks([matcher], [[]], None, mask)
    elif kind == "token":
        matcher.accept_token(ord("x"))
    elif kind == "tokens of a batch":
        constrain.accept_token_batch([matcher], [ord("x")])
    elif kind == "bytes":
        matcher.accept_bytes(b"x.y")
    elif kind == "reset":
        matcher.reset()
    elif kind == "fork":
        matcher.fork()
    elif kind == "another":
        constrain.Matcher(matcher.compiled)
    else:
        matcher.compiled.recognizer()


USES = ("mask", "batch", "drafts", "token", "tokens of a batch", "bytes", "reset", "fork", "another", "recognizer")


@pytest.mark.parametrize("is_same", [False, True])
@pytest.mark.parametrize("use", USES)
def test_functions_cannot_use_what_waits_for_them(use: str, is_same: bool) -> None:
    """A function that drops the tables of its own grammar (an error in an inner call) brought the process down."""
    used: list[constrain.Matcher] = []
    refused: list[str] = []
    answers = {"": ["x", "xy"], "x.": ["y", "yy"]}

    def hook(text: str) -> list[str]:
        if used:
            with pytest.raises(constrain.ConstrainError, match="function given to narrow") as error:
                use_in(use, used[0])
            refused.append(str(error.value))
        return answers.get(text, ["x"])

    grammar = constrain.Grammar.from_lark('start: X ("." X)*\nX: /[xy]+/', narrow={"X": hook})
    compiled = constrain.GrammarCompiler(BYTES).compile(grammar)
    matcher, other = constrain.Matcher(compiled), constrain.Matcher(compiled)
    assert matcher.accept_bytes(b"x")
    assert other.accept_bytes(b"x")
    used.append(matcher if is_same else other)
    assert matcher.accept_bytes(b".y")
    assert refused
    used.clear()
    assert mask_of(matcher) == {ord("y"), ord("."), 128}
    assert other.accept_bytes(b".yy")
    assert other.is_accepting()


def test_what_a_function_does_with_other_grammars_is_its_own_affair() -> None:
    grammar = constrain.Grammar.from_choices(["xy", "y"])
    inner = constrain.GrammarCompiler(BYTES).compile(grammar)

    def hook(text: str) -> list[str]:
        return [each for each in ("x", "xy", "y") if constrain.Matcher(inner).accept_bytes(each.encode()[:1])]

    grammar = constrain.Grammar.from_lark("start: X X\nX: /[xy]+/", narrow={"X": hook})
    compiled = constrain.GrammarCompiler(BYTES).compile(grammar)
    assert constrain.Matcher(compiled).accept_bytes(b"xyy")


@pytest.mark.parametrize("max_tokens", [None, 30])
@pytest.mark.parametrize("errors", [(ValueError, constrain.ConstrainError), (constrain.ConstrainError, None)])
def test_after_a_function_that_raises_all_is_as_before(
    errors: tuple[type[Exception], type[Exception] | None], max_tokens: int | None
) -> None:
    """Once tables that were not whole came to be used: a mask allowed everything, or the process ended."""
    raising: dict[int, type[Exception]] = {}
    calls = 0

    def answers(text: str, which: int) -> list[str]:
        return random.Random(f"{which} {text}").sample(["x", "y", "xx", "xy", "yx", "yy", "xyx"], 5)

    def hook(text: str, which: int) -> list[str]:
        nonlocal calls
        calls += 1
        if calls - 1 in raising:
            raise raising[calls - 1]("the function failed")
        return answers(text, which)

    def compiled_with(function: Callable[[str, int], list[str]]) -> constrain.CompiledGrammar:
        hooks = {"X": lambda text: function(text, 0), "Y": lambda text: function(text, 1)}
        rules = 'start: (X | Y ":") ("." (X | Y ":"))*\nX: /[xy]{1,5}/\nY: /[xy]{1,3}/'
        return constrain.GrammarCompiler(BYTES).compile(constrain.Grammar.from_lark(rules, narrow=hooks))

    twin = constrain.Matcher(compiled_with(answers), max_tokens)
    expected, texts, written = [mask_of(twin)], [b""], ""
    for _ in range(2):
        texts.append(answers(written, 0)[0].encode() + b".")
        assert twin.accept_bytes(texts[-1])
        expected.append(mask_of(twin))
        written += texts[-1].decode()
    failures = 0
    for first in range(5):
        raising = {}
        matcher = constrain.Matcher(compiled_with(hook), max_tokens)
        raising = {calls + first: errors[0]} | ({} if errors[1] is None else {calls + first + 1: errors[1]})
        for text, mask in zip(texts, expected, strict=True):
            for call in (partial(matcher.accept_bytes, text), partial(mask_of, matcher)):
                while True:
                    before = matcher.steps
                    try:
                        found = call()
                    except (ValueError, constrain.ConstrainError):
                        assert matcher.steps == before
                        failures += 1
                    else:
                        break
            assert found == mask, (first, text)
    assert failures > 3


def test_equal_answers_are_kept_once() -> None:
    names = [f"n{i}" for i in range(5_000)]
    hooks = {"X": lambda text: names}
    grammar = constrain.Grammar.from_lark('start: X (" " X)*\nX: /n[0-9]{1,9}/', narrow=hooks)
    matcher = constrain.Matcher(constrain.GrammarCompiler(BYTES).compile(grammar))
    assert matcher.accept_bytes(b"n0 ")
    tracemalloc.start()
    try:
        for i in range(40):
            assert matcher.accept_bytes(b"n%d " % i)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 500_000, "a list of the names for each text would take 1.6 MB"
