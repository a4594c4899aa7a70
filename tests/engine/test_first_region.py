"""Thoughts with a budget of their own: masks judged by counting tokens, with and without a budget of the whole."""

from __future__ import annotations

import pickle
import random
from functools import cache

import numpy as np
import pytest
from byte_tokens import BYTES

import constrain
from constrain.errors import ConstrainError
from constrain.grammar.tools.styles import STYLES

TOOL = {"name": "f", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}
TOKENS = ["<", "/", "think", ">", "</think>", "a", "</", "think>\n\na", "<think>\n", "\n", "th", "ink", "a</th", "é"]
TOKENS += ["<tool_call>", '{"name": "f", "arguments": {"n": ', "1", "}}", "}", "\n</tool_call>", "<|", ">a", "<th"]
DEEPSEEK = ["<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f", "\n```json\n", '{"n": ', "\n```", "<"]
DEEPSEEK += ["<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"]


def vocabulary_of(tokens: list[str]) -> constrain.Vocabulary:
    data = [token.encode() for token in dict.fromkeys(tokens)]
    return constrain.Vocabulary([*data, b"\xc3", b"\xa9", b"</s>"], eos_ids=[len(data) + 2])


GLM = ["<think>", "\n<think>", "\n<"]
GLM += ["<tool_call>f", "<arg_key>n</arg_key>", "<arg_value>1</arg_value>", "</tool_call>"]
VOCABULARIES = {
    "qwen3": vocabulary_of(TOKENS),
    "deepseek_r1": vocabulary_of([*TOKENS, *DEEPSEEK]),
    "glm4.5": vocabulary_of([*TOKENS, *GLM]),
}


@cache
def _compiled(style: str, reasoning: str, choice: str) -> constrain.CompiledGrammar:
    thoughts = reasoning == "True" or int(reasoning)
    grammar = constrain.Grammar.from_tools([TOOL], style=style, reasoning=thoughts, tool_choice=choice)
    return constrain.GrammarCompiler(VOCABULARIES[style]).compile(grammar)


def compiled(style: str, reasoning: bool | int, choice: str = "auto") -> constrain.CompiledGrammar:
    """The grammar of a turn; 1 is not True here."""
    return _compiled(style, str(reasoning), choice)


def is_over(style: str, text: bytes) -> bool:
    """Whether thoughts have come to their end, or there are none."""
    thoughts = STYLES[style].reasoning
    assert thoughts is not None
    openings = [opening.encode() for opening in thoughts.openings()]
    if not thoughts.is_open:
        begin = next((opening for opening in openings if text.startswith(opening)), None)
        if begin is None:
            try:
                # A character that is not all there says nothing yet.
                text.decode()
            except UnicodeDecodeError:
                return False
            return not any(opening.startswith(text) for opening in openings)
        text = text[len(begin) :]
    return thoughts.end.encode() in text


def allowed_tokens(matcher: constrain.Matcher) -> list[int]:
    mask = constrain.allocate_token_bitmask(1, matcher.compiled.vocabulary.size)
    matcher.fill_next_token_bitmask(mask)
    found: list[int] = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist()
    return found


class Oracle:
    """Which tokens leave a way to end the thoughts in time: each is tried, and all that may follow."""

    def __init__(self, style: str, most: int) -> None:
        self.style, self.most = style, most
        self._known: dict[tuple[bytes, int], bool] = {}

    def is_possible(self, plain: constrain.Matcher, text: bytes, count: int) -> bool:
        if is_over(self.style, text):
            return True
        if count >= self.most:
            return False
        key = text, count
        if key not in self._known:
            self._known[key] = any(self.allows(plain, text, count, token) for token in allowed_tokens(plain))
        return self._known[key]

    def allows(self, plain: constrain.Matcher, text: bytes, count: int, token: int) -> bool:
        vocabulary = plain.compiled.vocabulary
        if token in vocabulary.eos_ids:
            return True
        behind = plain.fork()
        assert behind.accept_token(token)
        return self.is_possible(behind, text + vocabulary.tokens[token], count + 1)


@pytest.mark.parametrize("style", list(VOCABULARIES))
@pytest.mark.parametrize("most", [3, 4, 5])
def test_masks_and_steps_are_those_that_counting_gives(style: str, most: int) -> None:
    oracle = Oracle(style, most)
    vocabulary = VOCABULARIES[style]
    for seed in range(10):
        rng = random.Random(seed)
        matcher, plain, text = constrain.Matcher(compiled(style, most)), constrain.Matcher(compiled(style, True)), b""
        for count in range(most + 3):
            over = is_over(style, text)
            wanted = [each for each in allowed_tokens(plain) if over or oracle.allows(plain, text, count, each)]
            assert allowed_tokens(matcher) == wanted, text
            for token in range(vocabulary.size):
                assert matcher.fork().accept_token(token) == (token in wanted)
            if not wanted:
                # The few tokens that there are cannot spell what has to follow.
                break
            token = rng.choice(wanted)
            assert matcher.accept_token(token)
            if token in vocabulary.eos_ids:
                break
            assert plain.accept_token(token)
            text += vocabulary.tokens[token]
            if rng.random() < 0.3:
                # Back and forth, in a fork as well.
                twin = matcher.fork()
                back = rng.randrange(matcher.steps + 1)
                tokens = matcher._steps_taken()[matcher.steps - back :]
                matcher.rollback(back)
                assert allowed_tokens(twin) == allowed_tokens(twin.fork())
                assert matcher.accept_tokens([each for each in tokens if isinstance(each, int)])
                assert allowed_tokens(matcher) == allowed_tokens(twin)
                assert allowed_tokens(pickle.loads(pickle.dumps(matcher))) == allowed_tokens(twin)


@pytest.mark.parametrize("style", list(VOCABULARIES))
@pytest.mark.parametrize("choice", ["auto", "required"])
def test_inside_the_budget_of_the_whole(style: str, choice: str) -> None:
    vocabulary = VOCABULARIES[style]
    grammar = compiled(style, 6, choice)
    for seed in range(30):
        rng = random.Random(seed)
        most = rng.choice((14, 18, 30))
        matcher, count, text = constrain.Matcher(grammar, max_tokens=most), 0, b""
        taken = None
        while True:
            token = rng.choice(allowed_tokens(matcher))
            assert matcher.accept_token(token)
            if token in vocabulary.eos_ids:
                break
            count, text = count + 1, text + vocabulary.tokens[token]
            if taken is None and is_over(style, text):
                taken = count
        assert count <= most
        assert taken is None or taken <= 6
        plain = constrain.Matcher(compiled(style, True, choice))
        assert plain.accept_bytes(text)
        assert plain.is_accepting()


def test_bytes_count_as_the_fewest_tokens() -> None:
    matcher = constrain.Matcher(compiled("deepseek_r1", 3))
    assert matcher.accept_bytes(b"aa")
    assert not matcher.accept_bytes(b"a")
    assert matcher.accept_bytes(b"</think>")
    assert matcher.accept_bytes(b"aaaaaaaaa")
    matcher.rollback(2)
    assert not matcher.accept_bytes(b"a")
    matcher.reset()
    assert matcher.accept_bytes(b"</think>aaaa")


def test_too_few() -> None:
    with pytest.raises(ConstrainError, match=r"^reasoning=1 is too few: what it limits takes 2 tokens at least$"):
        constrain.Matcher(compiled("qwen3", 1))
    shortest = constrain.Matcher(compiled("qwen3", True, "required")).tokens_to_finish()
    message = f"max_tokens={shortest} is too few: reasoning=6 needs 2 tokens at least, and the rest {shortest}"
    with pytest.raises(ConstrainError, match=message):
        constrain.Matcher(compiled("qwen3", 6, "required"), max_tokens=shortest)
    constrain.Matcher(compiled("qwen3", 6, "required"), max_tokens=shortest + 2)
    for wrong in (-1, 1.5, "1", None):
        with pytest.raises(ConstrainError, match="reasoning must be a boolean or a number of tokens"):
            constrain.Grammar.from_tools([TOOL], style="qwen3", reasoning=wrong)  # type: ignore[arg-type]
    with pytest.raises(ConstrainError, match="a number of tokens does not go with special_tokens"):
        constrain.Grammar.from_tools([TOOL], style="harmony", reasoning=9, special_tokens=["<|end|>"])


def test_a_grammar_is_found_again_by_its_number() -> None:
    compiler = constrain.GrammarCompiler(VOCABULARIES["qwen3"])
    grammars = [constrain.Grammar.from_tools([TOOL], style="qwen3", reasoning=number) for number in (True, 1, 2)]
    assert len({grammar.key for grammar in grammars}) == 3
    assert [compiler.compile(grammar).region is None for grammar in grammars] == [True, False, False]
    again = constrain.CompiledGrammar.from_bytes(compiler.compile(grammars[2]).to_bytes(), VOCABULARIES["qwen3"])
    matcher = constrain.Matcher(again)
    assert matcher.accept_token(TOKENS.index("<think>\n"))
    assert not matcher.accept_token(TOKENS.index("a"))
    assert matcher.accept_token(TOKENS.index("</think>"))
    assert matcher.accept_token(TOKENS.index("a"))


@pytest.mark.parametrize("style", [name for name, style in STYLES.items() if style.reasoning is not None])
def test_every_style_that_has_thoughts(style: str) -> None:
    thoughts = STYLES[style].reasoning
    assert thoughts is not None
    text = f"{'' if thoughts.is_open else thoughts.begin}hm{thoughts.end}".encode()
    grammar = constrain.Grammar.from_tools([TOOL], style=style, reasoning=len(text))
    compiler = constrain.GrammarCompiler(BYTES)
    matcher = constrain.Matcher(compiler.compile(grammar))
    assert matcher.accept_tokens(list(text))
    plain = constrain.Matcher(
        compiler.compile(constrain.Grammar.from_tools([TOOL], style=style, reasoning=True)), max_tokens=1000
    )
    assert plain.accept_tokens(list(text))
    assert allowed_tokens(matcher) == allowed_tokens(plain)
    matcher.reset()
    assert matcher.validate_tokens(list(text.replace(b"hm", b"hmm"))) == text.index(b"hm") + 2
    budget = constrain.Matcher(compiler.compile(grammar), max_tokens=len(text) + 200)
    assert budget.accept_tokens(list(text))


@pytest.mark.parametrize("style", sorted(name for name, each in STYLES.items() if each.reasoning is not None))
@pytest.mark.parametrize("choice", ["auto", "required", "none"])
def test_thoughts_that_are_spelled_in_characters_never_lead_nowhere(style: str, choice: str) -> None:
    """What shows that there are no thoughts is what the turn may begin with in their place, and nothing else."""
    thoughts = STYLES[style].reasoning
    assert thoughts is not None
    mark = thoughts.begin.encode()
    grammar = constrain.Grammar.from_tools([TOOL], style=style, tool_choice=choice, reasoning=len(mark))
    tokens = [*(bytes((byte,)) for byte in range(256)), mark, thoughts.end.encode(), b"</s>"]
    vocabulary = constrain.Vocabulary(tokens, eos_ids=[258])
    matcher = constrain.Matcher(constrain.CompiledGrammar(grammar.ir, vocabulary))
    for byte in mark:
        allowed = [token for token in allowed_tokens(matcher) if token != 258]
        for token in allowed:
            twin = matcher.fork()
            assert twin.accept_token(token)
            assert allowed_tokens(twin), (matcher.steps, tokens[token])
        if not matcher.accept_token(byte):
            break


def test_limits_hold_for_thoughts_too() -> None:
    """Looked at from within: what the limits do is tested elsewhere, and thoughts rarely come near them."""
    grammar = constrain.Grammar.from_tools([TOOL], style="qwen3", reasoning=8)
    limits = {"limit_bytes": 1 << 25, "mask_limit_bytes": 1 << 20}
    compiled = constrain.CompiledGrammar(grammar.ir, VOCABULARIES["qwen3"], accelerators=(), **limits)
    region = compiled.region
    assert region is not None
    assert (region._limit_bytes, region.mask_limit_bytes, region.accelerators) == (1 << 25, 1 << 20, ())
