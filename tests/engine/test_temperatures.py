"""Temperatures of rules: what the tables say at each place, judged by a chart of the text."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from byte_tokens import BYTES

import constrain
from constrain.engine.chart import Chart
from constrain.errors import ConstrainError
from constrain.sampling import Sampler
from constrain.sampling.chain.chain import SamplerChain
from constrain.sampling.chain.temperature import Temperature

GRAMMARS = [
    'start: "<" word ">" word\nword[temperature=0.5]: /[a-z]+/',
    'start: a b?\na[temperature=0.3]: "x" b "y"\nb[temperature=0.9]: "z"*',
    'start: list\nlist[temperature=0.1]: "[" [item ("," item)*] "]"\nitem: list | num\nnum[temperature=1.5]: /[0-9]+/',
    'start: s\ns[temperature=0.7]: "a" s t | "b"\nt[temperature=0.2]: "c" | ',
    'start: e\ne: e "+" e | n | "(" e ")"\nn[temperature=2]: /[0-9]/+\n%ignore " "',
    'start: ("a" | x)* y\nx[temperature=0.4]: "a" "b"\ny[temperature=0.6]: "a" "c"',
    'start: think "." said\nthink[temperature=1, suffix="</t>"]: /.*/\nsaid[temperature=0, max_chars=4]: /[a-z]+/',
    'start: hot "z" hot\nhot[temperature=0.6]: "x"+ | "y" "y"\n%ignore " "',
    'start: r*\nr[temperature=0.8]: "a" r | "a" q\nq: "b" | r "b"',
]


def expected(chart: Chart, temperatures: dict[int, float], text: bytes) -> float | None:
    """The highest temperature of the innermost rules around lexemes that go on or begin at the end of the text."""
    chart.read(text)
    place = len(text)
    todo: list[tuple[int, int]] = list(chart.open_lexemes())
    last = chart.sets[place]
    todo += [(symbol, place) for symbol in (last.waiting if last is not None else ()) if symbol < 0]
    found: list[float] = []
    seen = set()
    while todo:
        symbol, begin = todo.pop()
        if (symbol, begin) in seen:
            continue
        seen.add((symbol, begin))
        there = chart.sets[begin]
        assert there is not None
        for item in there.waiting.get(symbol, ()):
            left = chart.rules[item.rule][0]
            if left == chart.skip:
                continue
            if left in temperatures:
                found.append(temperatures[left])
            else:
                todo.append((left, item.origin))
    return max(found, default=None)


@pytest.mark.parametrize("grammar", GRAMMARS)
def test_a_chart_says_the_same(grammar: str) -> None:
    compiled = constrain.GrammarCompiler(BYTES).compile(constrain.Grammar.from_lark(grammar))
    temperatures = dict(compiled.ir.temperatures)
    assert temperatures
    mask = constrain.allocate_token_bitmask(1, BYTES.size)
    met = set()
    for seed in range(12):
        rng = random.Random(seed)
        matcher, text = constrain.Matcher(compiled), b""
        chart = Chart(compiled.ir)
        for _ in range(14):
            assert matcher.temperature == expected(chart, temperatures, text), text
            met.add(matcher.temperature)
            matcher.fill_next_token_bitmask(mask)
            allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist()
            # Signs rather than letters, of which there are many.
            token = (
                rng.choice([each for each in allowed if not chr(each).isalnum()] or allowed)
                if rng.random() < 0.5
                else rng.choice(allowed)
            )
            assert matcher.accept_token(token)
            if token == 256:
                assert matcher.temperature is None
                break
            text += bytes((token,))
        steps = rng.randrange(len(text) + 1)
        matcher.rollback(matcher.steps - steps)
        assert matcher.temperature == expected(chart, temperatures, text[:steps])
    assert met - {None}


def test_what_is_ignored_behind_a_rule_is_no_part_of_it() -> None:
    grammar = constrain.Grammar.from_lark('start: hot "z"\nhot[temperature=0.6]: "x" "y"\n%ignore " "')
    matcher = constrain.Matcher(constrain.GrammarCompiler(BYTES).compile(grammar))
    for text, temperature in ((b"x", 0.6), (b" ", 0.6), (b"y", None), (b" ", None), (b"z", None)):
        assert matcher.accept_bytes(text)
        assert matcher.temperature == temperature


def test_ebnf_has_them_and_other_grammars_have_none() -> None:
    compiler = constrain.GrammarCompiler(BYTES)
    matcher = constrain.Matcher(
        compiler.compile(constrain.Grammar.from_ebnf('root ::= "a" r\nr[temperature=0.25] ::= "b" "c"'))
    )
    assert matcher.temperature is None
    assert matcher.accept_bytes(b"a")
    assert matcher.temperature == 0.25
    assert matcher.accept_bytes(b"b")
    assert matcher.temperature == 0.25
    assert constrain.Matcher(compiler.compile(constrain.Grammar.from_regex("a"))).temperature is None


class Uphill(Sampler):
    """Notes the temperature of each draw."""

    drawn: list[float]

    def sample(self, *args: Any, **options: Any) -> int:
        self.drawn.append(self.temperature)
        return super().sample(*args, **options)


def test_the_generation_loop_draws_with_them() -> None:
    from constrain.backends import load_backend
    from constrain.generation import generate

    backend = load_backend()
    grammar = constrain.Grammar.from_lark(
        'start: a "; " b ". " /[a-z]{9}/\na[temperature=0]: /[a-z]{5}/\nb[temperature=1.25]: /[a-z]{5}/'
    )
    compiled = constrain.GrammarCompiler(backend.vocabulary).compile(grammar)
    sampler = Uphill(0.5, seed=1)
    sampler.drawn = []
    generation = generate(backend, backend.tokenizer, compiled, sampler=sampler, max_tokens=30, skip_forced=False)
    list(generation)
    assert sampler.temperature == 0.5
    matcher, wanted = constrain.Matcher(compiled), []
    for token in generation.token_ids:
        wanted.append(0.5 if matcher.temperature is None else matcher.temperature)
        assert matcher.accept_token(token)
    assert sampler.drawn == wanted
    assert set(wanted) == {0, 1.25, 0.5}


def test_samplers_at_another_temperature() -> None:
    logits = np.array([1.0, 2.0, 4.0], np.float32)
    for sampler in (Sampler(1.0, 0, 1.0, seed=1), SamplerChain([Temperature(1.0)], seed=1)):
        own = sampler.distribution(logits)[1]
        with sampler.at_temperature(2.0):
            assert np.allclose(sampler.distribution(logits)[1], Sampler(2.0, 0, 1.0, seed=1).distribution(logits)[1])
        with sampler.at_temperature(0):
            assert sampler.sample(logits) == 2
        with sampler.at_temperature(None):
            assert np.allclose(sampler.distribution(logits)[1], own)
        assert np.allclose(sampler.distribution(logits)[1], own)
        with (
            pytest.raises(ConstrainError, match="temperature must be a number from 0 up, not -1"),
            sampler.at_temperature(-1),
        ):
            pass
    with pytest.raises(ConstrainError, match="no step for it"), SamplerChain([], seed=1).at_temperature(1.0):
        pass
