"""Kind "lexing": ``Grammar.from_lark(..., lexing="longest")`` by Lark's own LALR parser and lexer.

Random grammars have terminals that are beginnings of each other, lazy quantifiers, alternatives in an unlucky order,
keywords within names, priorities and ignored terminals.  All texts up to some length over a small alphabet are judged:
Lark accepts what the recognizer accepts, and no byte leads to a state that no text finishes.  A random text within a
budget is complete in time.
"""

from __future__ import annotations

import random

import lark
from lark.exceptions import LarkError

import constrain
from bench.fuzz.protocol import Budget, Counts, Difference, Kind

_ALPHABET = "ab1. "
_VOCABULARY = constrain.Vocabulary([bytes((i,)) for i in range(256)] + [b"</s>"], eos_ids=[256])
_REGEXES = (
    *(
        "[a-b]+",
        "a+",
        "b*a",
        "[0-9]+",
        r"[0-9]+\.[0-9]*",
        r"[0-9]*\.[0-9]+",
        "a|ab",
        "ab|a",
        "a(b|ba)?",
        "a?(ab)?",
        "a.*?b",
    ),
    *(
        "(?i:A)b?",
        r"\.+",
        r"1(\.1)?",
        "a*?b",
        "(a|b)(1|1a)?",
        "[ab1]+",
        r"a[^b]*b",
        "b(?<!a)b",
        r"[ab](?<=a)1",
        " +",
        "( a)?b",
    ),
    *("a+(?!b)", "ab?(?!1)", r"1(?!\.)", "a(?!bb)[ab]*", "[ab]+(?![1.])", "(?!aa)[ab]+", "a(?!b)|ab+", "bb?(?!a)"),
    *(r"ab\b", r"a?b*1\b[.b]*", r"(a|ab)\b|b", r"a+\b\.?"),
    *(r"\.\.", "1{2,3}", "(ab){1,2}?a", "a{0,2}?b?", "b+?", "b+?1"),
)
_STRINGS = ("a", "b", "ab", "aa", "1", ".", "..", "1.", "ba", "bb", "a.", ". ", "aba")
_FINISHING = b"ab1. AB0"
_MOST_STATES = 400


def random_grammar(rng: random.Random) -> str:
    """The text of a random grammar; Lark may refuse it."""
    terminals = []
    for i in range(rng.randint(2, 5)):
        priority = rng.choice(("", "", "", ".2", ".-1"))
        if rng.random() < 0.45:
            body = f'"{rng.choice(_STRINGS)}"' + rng.choice(("", "", "", "i"))
        else:
            body = f"/{rng.choice(_REGEXES)}/" + rng.choice(("", "", "", "i"))
        terminals.append(f"T{i}{priority}: {body}")
    names = [f"T{i}" for i in range(len(terminals))]
    lines = []
    rules = ["start", *(f"r{i}" for i in range(rng.randint(0, 2)))]
    for rule in rules:
        alternatives = []
        for _ in range(rng.randint(1, 3)):
            symbols = []
            for _ in range(rng.randint(1, 4)):
                symbol = rng.choice(names * 2 + rules[1:] + ([rule] if rng.random() < 0.3 else []))
                symbols.append(symbol + rng.choice(("", "", "", "", "*", "+", "?")))
            alternatives.append(" ".join(symbols))
        lines.append(f"{rule}: {' | '.join(alternatives)}")
    lines += terminals
    if rng.random() < 0.6:
        lines.append("%ignore " + rng.choice(('" "', "/ +/", '" "', rng.choice(names))))
    return "\n".join(lines)


def accepts(parser: lark.Lark, text: str) -> bool:
    """Whether Lark accepts a text."""
    try:
        parser.parse(text)
    except LarkError:
        return False
    return True


def _texts(length: int) -> list[str]:
    found = [""]
    for text in found:
        if len(text) == length:
            break
        found += [text + char for char in _ALPHABET]
    return found


def _finishes(recognizer: constrain.Recognizer, prefix: bytes) -> bool | None:
    """Whether some text finishes a prefix, as far as states tell; None if there are too many."""
    at = recognizer.fork()
    for byte in prefix:
        at.try_push_byte(byte)
    seen: set[int] = {at._state}
    todo = [at]
    while todo:
        at = todo.pop(0)
        if at.is_accepting():
            return True
        for char in _FINISHING:
            after = at.fork()
            if after.try_push_byte(char) and after._state not in seen:
                seen.add(after._state)
                if len(seen) > _MOST_STATES:
                    return None
                todo.append(after)
    return False


def _compiled(grammar: str, lexer: str) -> constrain.CompiledGrammar:
    lexing = "longest" if lexer == "contextual" else "longest-basic"
    return constrain.CompiledGrammar(constrain.Grammar.from_lark(grammar, lexing=lexing).ir, _VOCABULARY)


def difference(grammar: str, lexer: str, length: int, counts: Counts) -> str:
    """What Lark and the recognizer disagree about in all short texts; empty if nothing."""
    try:
        parser = lark.Lark(grammar, parser="lalr", lexer=lexer)
    except (LarkError, AssertionError, AttributeError):
        # The last is a fault of interegular's, which Lark looks for collisions with.
        counts["refused by Lark"] += 1
        return ""
    try:
        compiled = _compiled(grammar, lexer)
    except constrain.ConstrainError as error:
        counts["refused here"] += 1
        for text in _texts(length):
            if "matches no text" in str(error) and accepts(parser, text):
                return f"{text!r} is accepted by Lark: {error}"
        return ""
    counts["grammars"] += 1
    recognizer = compiled.recognizer()
    alive: dict[str, bool] = {"": True}
    for text in _texts(length):
        at = recognizer.fork()
        alive[text] = alive[text[:-1]] and all(at.try_push_byte(byte) for byte in text.encode())
        expected = accepts(parser, text)
        found = alive[text] and at.is_accepting()
        counts["texts"] += 1
        counts["accepted"] += expected
        if found != expected:
            return f"{text!r} is {'accepted' if expected else 'refused'} by Lark, and not by the recognizer"
    for text, is_alive in alive.items():
        if is_alive and len(text) <= length - 2:
            finishes = _finishes(recognizer, text.encode())
            counts["prefixes" if finishes is not None else "prefixes not decided"] += 1
            if finishes is False:
                return f"{text!r} cannot be finished"
    return ""


def budget_difference(grammar: str, lexer: str, rng: random.Random, counts: Counts) -> str:
    """What is wrong with a random text within a budget; empty if nothing.

    It is complete in time, and before each token the mask allows what is accepted.
    """
    try:
        compiled = _compiled(grammar, lexer)
    except constrain.ConstrainError:
        return ""
    most = constrain.Matcher(compiled).tokens_to_finish() + rng.randint(0, 8)
    matcher, text = constrain.Matcher(compiled, max_tokens=most), b""
    mask = constrain.allocate_token_bitmask(1, _VOCABULARY.size)
    while True:
        matcher.fill_next_token_bitmask(mask)
        allowed = [token for token in range(_VOCABULARY.size) if mask[0, token >> 5] >> (token & 31) & 1]
        accepted = [token for token in range(_VOCABULARY.size) if matcher.fork().accept_token(token)]
        counts["masks within budgets"] += 1
        if allowed != accepted:
            return f"max_tokens={most}, {text!r}: the mask allows {allowed}, and accepted are {accepted}"
        if not allowed:
            return f"max_tokens={most}, {text!r}: nothing is allowed"
        token = rng.choice(allowed)
        matcher.accept_token(token)
        if token == 256:
            return ""
        text += bytes((token,))


def run(rng: random.Random, budget: Budget) -> Counts:
    counts: Counts = Counts()
    grammar = random_grammar(rng)
    lexer = rng.choice(("contextual", "contextual", "basic"))
    wrong = difference(grammar, lexer, rng.choice((4, 5)), counts) or budget_difference(grammar, lexer, rng, counts)
    if wrong:
        raise Difference(wrong, f"lexer = {lexer!r}\ngrammar = '''\n{grammar}\n'''")
    return counts


KIND = Kind(
    "lexing",
    "lexing by the longest match, by Lark's LALR parser",
    run,
    80,
    {"texts": 20_000, "prefixes": 150, "masks within budgets": 100},
)
