"""How a generation ends: stop strings and tokens, the model's context, cancelling; and text without a grammar."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from constrain import Grammar, GrammarCompiler, Vocabulary
from constrain.errors import ConstrainError
from constrain.generation import Statistics, encode_chat, encode_prompt, generate
from constrain.generation.masks import Overlap
from constrain.sampling import Sampler
from constrain.tokenizers.mock import MockTokenizer

TOKENIZER = MockTokenizer()
EOS = TOKENIZER.eos_ids[0]
BOS = TOKENIZER.special_tokens.bos


class Recital:
    """Says these tokens, whatever came before."""

    def __init__(self, text, end=True):
        self.ids = TOKENIZER.encode(text).ids + [EOS] * end
        self.begin = None

    def logits(self, ids):
        self.begin = len(ids) if self.begin is None else self.begin
        row = np.zeros(TOKENIZER.vocab_size, np.float32)
        row[self.ids[min(len(ids) - self.begin, len(self.ids) - 1)]] = 30
        return row


@pytest.fixture(scope="module")
def compiler():
    return GrammarCompiler(Vocabulary.from_tokenizer(TOKENIZER))


def recite(text, compiled=None, **options):
    generation = generate(Recital(text), TOKENIZER, compiled, sampler=Sampler(0), **options)
    steps = list(generation)
    assert "".join(step.text for step in steps) == generation.text
    assert [step.token_id for step in steps if step.token_id is not None] == generation.token_ids
    assert len(generation.statistics.token_seconds) == generation.statistics.tokens == len(generation.token_ids)
    return generation, steps


ANYTHING = "(.|\n)*"


@pytest.mark.parametrize("constrained", [False, True])
class TestStopStrings:
    def compiled(self, compiler, constrained):
        return compiler.compile(Grammar.from_regex(ANYTHING)) if constrained else None

    def test_the_text_ends_in_front_of_the_first(self, compiler, constrained):
        generation, _ = recite("Hello world\n\nmore", self.compiled(compiler, constrained), stop=["\n\n", "more"])
        assert generation.text == "Hello world"
        assert generation.statistics.finish_reason == "stop"

    def test_one_string_is_taken_as_one(self, compiler, constrained):
        assert recite("a END b", self.compiled(compiler, constrained), stop="END")[0].text == "a "

    def test_no_part_of_one_is_ever_shown(self, compiler, constrained):
        generation, steps = recite("ab STO STOP x", self.compiled(compiler, constrained), stop=["STOP"])
        assert generation.text == "ab STO "
        shown = ""
        for step in steps:
            shown += step.text
            assert generation.text.startswith(shown)

    def test_a_stop_token_within_a_character_leaves_no_half_of_it(self, compiler, constrained):
        half = "é".encode()[1]
        generation, steps = recite("aé", self.compiled(compiler, constrained), stop_tokens=[half])
        assert generation.text == "a"
        assert [step.text for step in steps] == ["a", ""]
        assert generation.statistics.finish_reason == "stop"

    def test_what_was_held_back_comes_at_the_end(self, compiler, constrained):
        generation, steps = recite("ab STO", self.compiled(compiler, constrained), stop=["STOP"])
        assert generation.text == "ab STO"
        assert generation.statistics.finish_reason == "complete"
        assert steps[-1].token_id is None
        assert steps[-1].text == "STO"

    def test_a_stop_token_has_no_part_in_the_text(self, compiler, constrained):
        token = ord("!")
        generation, _ = recite("ab! cd", self.compiled(compiler, constrained), stop_tokens=[token])
        assert generation.text == "ab"
        assert token not in generation.token_ids
        assert generation.statistics.finish_reason == "stop"

    def test_a_half_finished_character_is_left_out(self, compiler, constrained):
        compiled = self.compiled(compiler, constrained)
        generation, _ = recite("a€", compiled, max_tokens=3, stop=["x"], budget=False)
        assert generation.text == "a"
        assert len(generation.token_ids) == 3


@pytest.mark.parametrize(("options", "message"), [({"stop": [""]}, "at least one"), ({"stop_tokens": [999]}, "999")])
def test_stops_that_are_none(options, message):
    with pytest.raises(ConstrainError, match=message):
        generate(Recital(""), TOKENIZER, None, **options)


def test_a_stop_string_in_forced_text(compiler):
    compiled = compiler.compile(Grammar.from_choices(["one two three four"]))
    generation, _ = recite("", compiled, stop=["three"])
    assert generation.text == "one two "
    assert generation.statistics.finish_reason == "stop"


def test_free_text_ends_when_the_model_says_so():
    generation, _ = recite("Hello and the world")
    assert generation.text == "Hello and the world"
    assert generation.statistics.finish_reason == "complete"
    assert generation.statistics.mask_seconds == 0


def test_free_text_and_length():
    generation, _ = recite("Hello and the world", max_tokens=4)
    assert generation.statistics.finish_reason == "length"
    assert generation.statistics.tokens == 4


def test_free_text_needs_a_tokenizer_that_decodes():
    class Encoder:
        def encode(self, text):
            return TOKENIZER.encode(text)

    with pytest.raises(ConstrainError, match="needs a whole tokenizer"):
        generate(Recital(""), Encoder(), None)


class Short(Recital):
    max_seq_len = 6


def test_the_models_context_is_a_limit_too():
    generation = generate(Short("abcdefgh"), TOKENIZER, None, prompt=[1, 2], sampler=Sampler(0))
    assert "".join(step.text for step in generation) == "abcd"
    assert generation.statistics.finish_reason == "length"
    assert generation.statistics.prompt_tokens == 2
    with pytest.raises(ConstrainError, match="the prompt has 6 tokens, and the model's context, 6, has no room"):
        generate(Short("abc"), TOKENIZER, None, prompt=[1] * 6)


def test_an_empty_prompt_is_the_token_that_begins_a_text():
    class Starts(Recital):
        start_id = 5

        def logits(self, ids):
            self.seen = list(ids)
            return super().logits(ids)

    model = Starts("ab")
    generation = generate(model, TOKENIZER, None, prompt=[], sampler=Sampler(0))
    assert "".join(step.text for step in generation) == "ab"
    assert model.seen == [5, 97, 98]
    assert generation.token_ids == [97, 98]
    assert generation.statistics.prompt_tokens == 1


def test_ids_that_have_no_token_are_never_drawn():
    class Wide(Recital):
        def logits(self, ids):
            return np.concatenate([super().logits(ids), np.full(50, 99, np.float32)])

    generation = generate(Wide("abc"), TOKENIZER, None, sampler=Sampler(0))
    assert "".join(step.text for step in generation) == "abc"


def test_cancelling():
    generation = generate(Recital("abcdef"), TOKENIZER, None, sampler=Sampler(0))
    assert next(generation).text == "a"
    generation.cancel()
    assert list(generation) == []
    assert generation.text == "a"
    assert generation.statistics.finish_reason == "cancelled"
    generation.cancel()
    assert generation.statistics.finish_reason == "cancelled"


def test_cancelling_from_another_thread():
    class Slow(Recital):
        def logits(self, ids):
            time.sleep(0.001)
            return super().logits(ids)

    generation = generate(Slow("a" * 5000), TOKENIZER, None, max_tokens=5000, sampler=Sampler(0))
    threading.Timer(0.05, generation.cancel).start()
    assert 0 < len(list(generation)) < 5000
    assert generation.statistics.finish_reason == "cancelled"


def test_cancelling_gives_what_was_held_back():
    generation = generate(Recital("a STOP"), TOKENIZER, None, stop=["STOP"], sampler=Sampler(0))
    steps = [next(generation) for _ in range(4)]
    assert [step.text for step in steps] == ["a", " ", "", ""]
    generation.cancel()
    assert [step.text for step in generation] == ["ST"]


@pytest.mark.parametrize("overlap", [False, True])
def test_masks_beside_the_model(compiler, overlap):
    class Slow(Recital):
        def logits(self, ids):
            time.sleep(0.002)
            self.thread = threading.current_thread()
            return super().logits(ids)

    compiled = compiler.compile(Grammar.from_regex("[ab]{20}"))
    model = Slow("ab" * 10)
    generation = generate(model, TOKENIZER, compiled, sampler=Sampler(0), overlap=overlap)
    assert "".join(step.text for step in generation) == "ab" * 10
    assert model.thread is threading.current_thread()
    statistics = generation.statistics
    assert (statistics.hidden_mask_seconds > 0) == overlap
    assert statistics.model_seconds > 0.03


@pytest.mark.parametrize(
    ("model", "mask", "pays"), [(0.0, 0.0, False), (0.02, 0.0, False), (0.0, 0.02, False), (0.02, 0.02, True)]
)
def test_a_thread_where_both_are_slow(monkeypatch, model, mask, pays):
    now = [0.0]
    monkeypatch.setattr("constrain.generation.masks.perf_counter", lambda: now[0])

    def answer():
        now[0] += model

    overlap = Overlap(None)
    assert not overlap.pays
    # The first answer, with the prompt, says nothing about the next.
    overlap.ask(answer, Statistics())
    overlap.filled(mask)
    assert not overlap.pays
    overlap.ask(answer, Statistics(tokens=1))
    assert overlap.pays == pays
    assert Overlap(True).pays
    assert not Overlap(False).pays


def test_an_error_of_the_model_leaves_the_thread_in_order(compiler):
    class Broken(Recital):
        def logits(self, ids):
            raise OSError("no memory")

    generation = generate(
        Broken("ab"), TOKENIZER, compiler.compile(Grammar.from_regex("[ab]{2}")), overlap=True, sampler=Sampler(0)
    )
    for _ in range(2):
        with pytest.raises(OSError, match="no memory"):
            next(generation)


def test_the_vocabulary_cannot_say_it_beside_the_model():
    tokenizer = MockTokenizer([b"a", b"b"])
    tokens = [b"a", b"<eos>", *[b""] * (tokenizer.vocab_size - 2)]
    compiler = GrammarCompiler(Vocabulary(tokens, eos_ids=[1], special_ids=range(1, len(tokens))))

    class Zeros:
        def logits(self, ids):
            return [0.0] * len(tokens)

    generation = generate(
        Zeros(),
        tokenizer,
        compiler.compile(Grammar.from_regex("ab|ac")),
        overlap=True,
        budget=False,
    )
    assert next(generation).text == "a"
    with pytest.raises(ConstrainError, match="no token of the vocabulary continues the text after 'a'"):
        next(generation)


# -- log-probabilities ---------------------------------------------------------------------------


def test_log_probabilities(compiler):
    compiled = compiler.compile(Grammar.from_regex("[ab]c"))

    class Favours:
        def logits(self, ids):
            row = np.zeros(TOKENIZER.vocab_size, np.float32)
            row[ord("a")] = np.log(3)
            return row

    generation = generate(Favours(), TOKENIZER, compiled, sampler=Sampler(0), log_probabilities=2)
    first, second = generation
    assert (first.token_id, second.token_id) == (ord("a"), ord("c"))
    assert np.isclose(np.exp(first.log_probability), 0.75)
    assert [token for token, _ in first.top] == [ord("a"), ord("b")]
    assert second.forced
    assert second.log_probability is None
    assert next(generate(Favours(), TOKENIZER, compiled, log_probabilities=0)).top == ()
    assert next(generate(Favours(), TOKENIZER, compiled)).log_probability is None
    with pytest.raises(ConstrainError, match="log_probabilities must be an integer, not str '1'"):
        generate(Favours(), TOKENIZER, compiled, log_probabilities="1")
    with pytest.raises(ConstrainError, match="log_probabilities must be 0 or more"):
        generate(Favours(), TOKENIZER, compiled, log_probabilities=-1)


def test_penalties_look_at_prompt_and_output():
    class Flat:
        def logits(self, ids):
            row = np.zeros(TOKENIZER.vocab_size, np.float32)
            row[ord("a") : ord("f")] = [5, 4.5, 4, 3.5, 3]
            return row

    generation = generate(
        Flat(), TOKENIZER, None, prompt=[ord("a")], max_tokens=4, sampler=Sampler(0, repetition_penalty=3.0)
    )
    assert "".join(step.text for step in generation) == "bcde"


# -- prompts -------------------------------------------------------------------------------------


def test_prompts():
    assert encode_prompt(TOKENIZER, "ab") == [BOS, 97, 98]
    assert encode_prompt(TOKENIZER, "") == [BOS]
    assert encode_prompt(TOKENIZER, (1, 2)) == [1, 2]


def test_a_separator_behind_the_prompt_is_left_out():
    class Bert(MockTokenizer):
        def encode(self, text, add_special_tokens=False):
            encoding = super().encode(text)
            if add_special_tokens:
                encoding.ids = [BOS, *encoding.ids, EOS]
                encoding.special_tokens_mask = [1, *[0] * (len(encoding.ids) - 2), 1]
            return encoding

    assert encode_prompt(Bert(), "ab") == [BOS, 97, 98]


def test_chat():
    tokenizer = MockTokenizer()
    tokenizer.chat_template = (
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<a>{% endif %}"
    )
    ids = encode_chat(tokenizer, [{"role": "user", "content": "hi"}])
    assert tokenizer.decode(ids) == "<user>hi<a>"
    with pytest.raises(ConstrainError, match="no chat template"):
        encode_chat(MockTokenizer(), [{"role": "user", "content": "hi"}])


@pytest.mark.parametrize("prompt", [[-1], [1, 10**9], [2**70]])
def test_ids_of_a_prompt_that_the_model_has_not(prompt):
    class Sized(Recital):
        vocab_size = 300

    with pytest.raises(ConstrainError, match=r"the id -?\d+ of the prompt is out of range: the model has ids 0 to 299"):
        generate(Sized("ab"), TOKENIZER, None, prompt=prompt)
    if prompt == [-1]:
        with pytest.raises(ConstrainError, match=r"the id -1 of the prompt is out of range$"):
            generate(Recital("ab"), TOKENIZER, None, prompt=prompt)


@pytest.mark.parametrize("prompt", [None, 5, ["x"], [1.5]])
def test_what_is_no_prompt(prompt):
    with pytest.raises(ConstrainError, match="a prompt must be a str or the ids of tokens, not "):
        generate(Recital("ab"), TOKENIZER, None, prompt=prompt)
