"""The logits processor in ``generate()`` of a real model class with random weights."""

from __future__ import annotations

import re

import pytest

torch = pytest.importorskip("torch", reason="the extra 'transformers' is not installed")
transformers = pytest.importorskip("transformers", reason="the extra 'transformers' is not installed")

import tokenizers  # noqa: E402
from tiny_models import small_llama, write_folder  # noqa: E402

from constrain import Grammar, GrammarCompiler, Vocabulary  # noqa: E402
from constrain.errors import ConstrainError  # noqa: E402
from constrain.integrations.transformers import ConstrainLogitsProcessor, generate  # noqa: E402
from constrain.tokenizers.mock import MockTokenizer  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PAD, EOS = 0, 1
TOKENS = [b"<pad>", b"</s>"] + [bytes([b]) for b in range(32, 127)] + [b"ab", b'": ', b'{"', b"true", b"10", b'",']
# As real models do: rounded up, with rows that belong to no token.
MODEL_WIDTH = 160

PATTERNS = ["(ab|ba){1,4}c", "[0-9]{2}-[0-9]{1,3}", '\\{"a": (true|[1-9][0-9]?)\\}', "x*y"]


@pytest.fixture(scope="module")
def model():
    return small_llama(MODEL_WIDTH, pad=PAD, eos=EOS).to(DEVICE)


@pytest.fixture(scope="module")
def compiled():
    compiler = GrammarCompiler(Vocabulary(TOKENS, eos_ids=[EOS], special_ids=[PAD, EOS]))
    return {pattern: compiler.compile(Grammar.from_regex(pattern)) for pattern in PATTERNS}


def prompts(rows):
    """Prompts of different lengths, padded on the left."""
    width = rows + 2
    ids = torch.full((rows, width), PAD, device=DEVICE)
    attention = torch.zeros((rows, width), dtype=torch.long, device=DEVICE)
    for row in range(rows):
        length = row + 2
        ids[row, width - length :] = torch.arange(40, 40 + length)
        attention[row, width - length :] = 1
    return {"input_ids": ids, "attention_mask": attention}


def texts(output, prompt_width):
    """Each row's text and whether it was finished."""
    result = []
    for row in output[:, prompt_width:].tolist():
        finished = EOS in row
        tokens = row[: row.index(EOS)] if finished else row
        result.append((b"".join(TOKENS[token] for token in tokens).decode(), finished))
    return result


def check(output, prompt_width, patterns, *, all_finished=True):
    rows = texts(output, prompt_width)
    assert len(rows) % len(patterns) == 0
    each = len(rows) // len(patterns)
    for row, (text, finished) in enumerate(rows):
        if finished:
            assert re.fullmatch(patterns[row // each], text), (row, text)
    assert any(finished for _, finished in rows)
    if all_finished:
        assert all(finished for _, finished in rows), rows


MODES = {
    "greedy": {"do_sample": False},
    "sampling": {"do_sample": True, "temperature": 1.5, "top_k": 20, "top_p": 0.95},
    "several samples": {"do_sample": True, "temperature": 2.0, "num_return_sequences": 3},
    "beams": {"do_sample": False, "num_beams": 3},
    "several beams": {"do_sample": False, "num_beams": 4, "num_return_sequences": 2},
    "early stopping": {"do_sample": False, "num_beams": 4, "early_stopping": True},
    "sampled beams": {"do_sample": True, "num_beams": 3, "temperature": 2.0},
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("patterns", [PATTERNS[:3], PATTERNS[2:3], PATTERNS[1:2] * 2], ids=["mixed", "one", "same"])
def test_finished_outputs_are_in_the_language(model, compiled, patterns, mode):
    inputs = prompts(len(patterns))
    for seed in range(3):
        torch.manual_seed(seed)
        processor = ConstrainLogitsProcessor([compiled[pattern] for pattern in patterns])
        output = model.generate(**inputs, logits_processor=[processor], max_new_tokens=24, **MODES[mode])
        check(output, inputs["input_ids"].shape[1], patterns)


def test_without_the_processor_the_outputs_are_not_in_the_language(model):
    # Else the tests here would prove nothing.
    inputs = prompts(3)
    output = model.generate(**inputs, max_new_tokens=24, do_sample=False, suppress_tokens=list(range(103, 160)))
    for (text, _), pattern in zip(texts(output, inputs["input_ids"].shape[1]), PATTERNS, strict=False):
        assert not re.fullmatch(pattern, text)


def test_one_grammar_for_the_whole_batch(model, compiled):
    inputs = prompts(4)
    processor = ConstrainLogitsProcessor(compiled[PATTERNS[0]])
    output = model.generate(**inputs, logits_processor=[processor], max_new_tokens=24, do_sample=True)
    check(output, inputs["input_ids"].shape[1], [PATTERNS[0]] * 4)


def test_more_beams_than_the_language_has_strings(model):
    compiler = GrammarCompiler(Vocabulary(TOKENS, eos_ids=[EOS], special_ids=[PAD, EOS]))
    grammar = compiler.compile(Grammar.from_choices(["a", "xyz"]))
    inputs = prompts(2)
    for sample in (False, True):
        torch.manual_seed(1)
        output = model.generate(
            **inputs,
            logits_processor=[ConstrainLogitsProcessor(grammar)],
            max_new_tokens=8,
            num_beams=5,
            do_sample=sample,
        )
        check(output, inputs["input_ids"].shape[1], ["a|xyz"] * 2)


def test_beams_find_the_most_likely_string(model):
    # Against exhaustive search: with as many beams as strings, nothing is pruned.
    compiler = GrammarCompiler(Vocabulary(TOKENS, eos_ids=[EOS], special_ids=[PAD, EOS]))
    grammar = compiler.compile(Grammar.from_regex("[a-c][a-c]|[x-z]{2}"))
    prompt = torch.tensor([40, 41, 42], device=DEVICE)
    width = len(prompt)
    output = model.generate(
        prompt[None],
        logits_processor=[ConstrainLogitsProcessor(grammar)],
        max_new_tokens=6,
        num_beams=40,
        do_sample=False,
        length_penalty=0.0,
        return_dict_in_generate=True,
        output_scores=True,
    )

    def score(tokens):
        ids = torch.cat([prompt, torch.tensor([*tokens, EOS], device=DEVICE)])
        with torch.no_grad():
            logp = model(ids[None]).logits[0].log_softmax(-1)
        return sum(logp[width - 1 + i, token].item() for i, token in enumerate([*tokens, EOS]))

    single = {bytes(token): index for index, token in enumerate(TOKENS)}
    ways = [[single[bytes([a])], single[bytes([b])]] for group in (b"abc", b"xyz") for a in group for b in group]
    ways.append([single[b"ab"]])
    best = max(ways, key=score)
    assert output.sequences[0, width : width + len(best)].tolist() == best
    assert abs(output.sequences_scores[0].item() - score(best)) < 1e-3


def test_rows_cut_off_by_length_are_prefixes(model, compiled):
    inputs = prompts(1)
    output = model.generate(
        **inputs,
        logits_processor=[ConstrainLogitsProcessor(compiled[PATTERNS[2]])],
        max_new_tokens=2,
        do_sample=False,
    )
    ((text, finished),) = texts(output, inputs["input_ids"].shape[1])
    assert not finished
    assert '{"a": '.startswith(text)


def test_used_again_with_other_prompts(model, compiled):
    processor = ConstrainLogitsProcessor(compiled[PATTERNS[0]])
    for rows in (2, 3, 1, 1):
        inputs = prompts(rows)
        inputs["input_ids"][inputs["attention_mask"] == 1] += rows
        output = model.generate(**inputs, logits_processor=[processor], max_new_tokens=24, do_sample=True)
        check(output, inputs["input_ids"].shape[1], [PATTERNS[0]] * rows)
    longer = {"input_ids": torch.cat([output, torch.full((1, 5), 50, device=DEVICE)], dim=1)}
    output = model.generate(**longer, logits_processor=[processor], max_new_tokens=24, do_sample=True)
    check(output, longer["input_ids"].shape[1], [PATTERNS[0]])
    processor.reset()
    again = {"input_ids": output}
    output = model.generate(**again, logits_processor=[processor], max_new_tokens=24, do_sample=True)
    check(output, again["input_ids"].shape[1], [PATTERNS[0]])


def test_prompt_that_begins_the_output(model, compiled):
    inputs = {"input_ids": torch.tensor([[50, 51, 52, TOKENS.index(b"1"), TOKENS.index(b"2")]], device=DEVICE)}
    processor = ConstrainLogitsProcessor(compiled[PATTERNS[1]], prompt_length=3)
    output = model.generate(**inputs, logits_processor=[processor], max_new_tokens=24, do_sample=False)
    ((text, finished),) = texts(output, 3)
    assert finished
    assert re.fullmatch("12-[0-9]{1,3}", text)
    with pytest.raises(ConstrainError, match="fewer than prompt_length=3"):
        processor(torch.zeros((1, 2), dtype=torch.long), torch.zeros((1, MODEL_WIDTH)))


def test_a_prompt_that_begins_no_text(compiled):
    processor = ConstrainLogitsProcessor(compiled["x*y"], prompt_length=1)
    ids = torch.tensor([[5, TOKENS.index(b"x")], [5, 5]])
    scores = torch.zeros(2, MODEL_WIDTH)
    for _ in range(2):
        with pytest.raises(ConstrainError, match=r"^row 1: what the prompt has behind its first 1 tokens"):
            processor(ids, scores)
    assert torch.isfinite(processor(ids[:1], scores[:1])).any()


@pytest.mark.parametrize("width", [2, 9])
def test_used_again_with_other_prompts_that_begin_the_output(model, compiled, width):
    """With prompt_length too, another prompt has a limit and an error of its own."""
    x, bias = TOKENS.index(b"x"), {(TOKENS.index(b"y"),): -50.0}
    processor = ConstrainLogitsProcessor(compiled["x*y"], 1, max_new_tokens=3)
    for inside in (6, width):
        ids = torch.tensor([[40 + inside, *[x] * inside]], device=DEVICE)
        row = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            logits_processor=[processor],
            max_new_tokens=3,
            sequence_bias=bias,
        )[0]
        text = b"".join(TOKENS[token] for token in row[1:].tolist() if token > EOS).decode()
        assert text == "x" * (inside + 2) + "y"
    with pytest.raises(ConstrainError, match=r"^row 0: what the prompt has behind its first 1 tokens"):
        processor(torch.tensor([[5, 5]]), torch.zeros(1, MODEL_WIDTH))


@pytest.mark.parametrize("prompt_length", [None, 1])
def test_going_back_behind_all_states_that_are_kept(compiled, prompt_length):
    """As assisted decoding does that has drafted hundreds of tokens."""
    processor = ConstrainLogitsProcessor(compiled["[0-9]{2}-[0-9]{1,3}"], prompt_length)
    digit, dash = TOKENS.index(b"7"), TOKENS.index(b"-")
    ids = torch.tensor([[5, digit, digit, dash, digit, EOS, *[PAD] * 400]])
    scores = torch.zeros(1, MODEL_WIDTH)
    for width in range(1, ids.shape[1]):
        processor(ids[:, :width], scores)
    for width in (3, 4, 5):
        masked = processor(ids[:, :width], scores)
        allowed = {TOKENS[token] for token in torch.isfinite(masked[0]).nonzero().flatten().tolist()}
        assert (b"-" in allowed, b"</s>" in allowed) == (width == 3, width == 5)


def test_assisted_decoding(model, compiled):
    inputs = prompts(1)
    for sample in (False, True):
        torch.manual_seed(2)
        output = model.generate(
            **inputs,
            assistant_model=model,
            logits_processor=[ConstrainLogitsProcessor(compiled[PATTERNS[0]])],
            max_new_tokens=24,
            do_sample=sample,
        )
        check(output, inputs["input_ids"].shape[1], [PATTERNS[0]])


def test_scores_are_not_modified_and_rows_that_are_over_stay_finite(compiled):
    processor = ConstrainLogitsProcessor(compiled["x*y"], prompt_length=0)
    scores = torch.randn(3, MODEL_WIDTH, device=DEVICE)
    before = scores.clone()
    y = TOKENS.index(b"y")
    rows = torch.tensor([[y, EOS, PAD], [y, y, y], [TOKENS.index(b"x")] * 3], device=DEVICE)
    for width in range(4):
        masked = processor(rows[:, :width], scores)
    assert torch.equal(scores, before)
    allowed = [set(torch.isfinite(row).nonzero().flatten().tolist()) for row in masked]
    assert allowed == [{EOS}, {EOS}, {TOKENS.index(b"x"), y}]
    assert masked[2, y] == scores[2, y]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_dtypes(compiled, dtype):
    processor = ConstrainLogitsProcessor(compiled["x*y"])
    masked = processor(torch.zeros((1, 4), dtype=torch.long), torch.zeros((1, MODEL_WIDTH), dtype=dtype, device=DEVICE))
    assert masked.dtype == dtype
    assert torch.isfinite(masked).sum() == 2


def test_mismatches_are_errors(compiled):
    one, other = compiled["x*y"], compiled[PATTERNS[0]]
    elsewhere = GrammarCompiler(Vocabulary([b"x", b"y", b"</s>"], eos_ids=[2], special_ids=[2]))
    endless = GrammarCompiler(Vocabulary([b"x", b"y"], eos_ids=[]))
    own = one.vocabulary
    others = GrammarCompiler(Vocabulary([b"?", *own.tokens[1:]], eos_ids=own.eos_ids, special_ids=own.special_ids))
    grammar = Grammar.from_regex("x*y")
    for grammars, message in [
        ([], "at least one"),
        ([one, elsewhere.compile(grammar)], "different vocabularies"),
        ([one, others.compile(grammar)], "different vocabularies"),
        ([endless.compile(grammar)], "no end-of-sequence"),
    ]:
        with pytest.raises(ConstrainError, match=message):
            ConstrainLogitsProcessor(grammars)
    with pytest.raises(ConstrainError, match="prompt_length must be"):
        ConstrainLogitsProcessor(one, prompt_length=-1)
    ids = torch.zeros((3, 4), dtype=torch.long)
    scores = torch.zeros((3, MODEL_WIDTH))
    with pytest.raises(ConstrainError, match="3 rows cannot be shared out evenly among 2"):
        ConstrainLogitsProcessor([one, other])(ids, scores)
    with pytest.raises(ConstrainError, match="scores for 50 tokens, but the vocabulary has 103"):
        ConstrainLogitsProcessor(one)(ids, scores[:, :50])
    with pytest.raises(ConstrainError, match=r"continuous batching .*: use .*\.ConstrainedRequests"):
        ConstrainLogitsProcessor(one)(ids[:, 0], scores)
    with pytest.raises(ConstrainError, match="3 rows of token ids but 2 rows"):
        ConstrainLogitsProcessor(one)(ids, scores[:2])
    with pytest.raises(ConstrainError, match="row 0: every token that the grammar allows is ruled out"):
        ConstrainLogitsProcessor(one)(ids, torch.full_like(scores, -torch.inf))
    with pytest.raises(ConstrainError, match="row 0: the scores of the allowed tokens contain NaN"):
        ConstrainLogitsProcessor(one)(ids, torch.full_like(scores, torch.nan))
    mute = GrammarCompiler(Vocabulary([b"x", b"</s>"], eos_ids=[1], special_ids=[1])).compile(Grammar.from_regex("y"))
    with pytest.raises(ConstrainError, match="row 0: no token of the vocabulary"):
        ConstrainLogitsProcessor(mute)(ids, scores)


def test_the_limit_of_generate(model, compiled):
    grammar = compiled["x*y"]
    for given in ({"max_new_tokens": 9}, {"max_tokens": 9}, {"max_tokens": 9, "max_new_tokens": 9}):
        rows = generated(model, ConstrainLogitsProcessor(grammar, **given), max_new_tokens=9)
        assert all(re.fullmatch("x*y", text) for text in rows)
    settings = transformers.GenerationConfig(max_new_tokens=9)
    assert all(re.fullmatch("x*y", text) for text in generated(model, with_config(grammar, settings), max_new_tokens=9))
    # Prompts of three rows are five tokens long.
    settings = transformers.GenerationConfig(max_length=12)
    assert all(re.fullmatch("x*y", text) for text in generated(model, with_config(grammar, settings), max_new_tokens=7))
    for wrong in ({"max_new_tokens": "9"}, {"max_tokens": 9.5}, {"prompt_length": "3"}):
        with pytest.raises(ConstrainError, match=r"must be an integer, not (str '[93]'|float 9.5)"):
            ConstrainLogitsProcessor(grammar, **wrong)
    with pytest.raises(ConstrainError, match="max_tokens is 3, but max_new_tokens is 4"):
        ConstrainLogitsProcessor(grammar, max_tokens=3, max_new_tokens=4)
    with pytest.raises(ConstrainError, match="the shortest text"):
        generated(model, ConstrainLogitsProcessor(compiled["[0-9]{2}-[0-9]{1,3}"], max_new_tokens=2), max_new_tokens=2)


def test_settings_without_a_limit_that_can_be_known(model, compiled):
    with pytest.raises(ConstrainError, match="neither max_new_tokens nor max_length"):
        with_config(compiled["x*y"], transformers.GenerationConfig())
    # The rows begin with no token at all, and max_length is not what is generated.
    embeddings = torch.randn(2, 4, 32, device=DEVICE)
    processor = with_config(compiled["x*y"], transformers.GenerationConfig(max_length=8))
    with pytest.raises(ConstrainError, match="given as embeddings too: give max_new_tokens"):
        model.generate(inputs_embeds=embeddings, logits_processor=[processor], max_length=8)
    bias = {(TOKENS.index(b"y"),): -50.0}
    processor = ConstrainLogitsProcessor(compiled["x*y"], max_new_tokens=8)
    for _ in range(2):
        rows = model.generate(
            inputs_embeds=embeddings, logits_processor=[processor], max_new_tokens=8, sequence_bias=bias
        )
        assert [text for text, _ in texts(rows, 0)] == ["x" * 7 + "y"] * 2


def with_config(grammar, settings):
    return ConstrainLogitsProcessor(grammar, generation_config=settings)


def generated(model, processor, **options):
    """What three rows say that had rather go on: y is made unlikely."""
    bias = {(TOKENS.index(b"y"),): -50.0}
    inputs = prompts(3)
    rows = model.generate(**inputs, logits_processor=[processor], sequence_bias=bias, do_sample=True, **options)
    assert rows.shape[1] <= 5 + options["max_new_tokens"]
    return [b"".join(TOKENS[token] for token in row if token > EOS).decode() for row in rows[:, 5:].tolist()]


def test_a_limit_counts_what_generate_adds(model, compiled):
    """What a prompt holds of the text already is none of the new tokens."""
    ids = torch.tensor([[TOKENS.index(b"a"), *[TOKENS.index(b"x")] * 6]], device=DEVICE)
    processor = ConstrainLogitsProcessor(compiled["x*y"], 1, max_new_tokens=3)
    rows = model.generate(
        ids, attention_mask=torch.ones_like(ids), logits_processor=[processor], max_new_tokens=3, do_sample=True
    )
    text = b"".join(TOKENS[token] for token in rows[0, 1:].tolist() if token > EOS).decode()
    assert re.fullmatch("x{6,8}y", text)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("model"), chat=True)


@pytest.fixture(scope="module")
def loaded(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(folder).to(DEVICE)


def test_no_token_at_all_is_too_few(loaded):
    with pytest.raises(ConstrainError, match="too few"):
        generate(loaded, "Who? ", {"type": "null"}, max_new_tokens=0)
    with pytest.raises(ConstrainError, match="too few"):
        generate(loaded, "Who? " * loaded.config.max_position_embeddings, {"type": "null"})


def test_an_object_in_one_line(loaded):
    pydantic = pytest.importorskip("pydantic", reason="the extra 'pydantic' is not installed")

    class Person(pydantic.BaseModel, extra="forbid"):
        name: str
        age: int = pydantic.Field(ge=0, le=130)

    torch.manual_seed(3)
    for options in ({}, {"do_sample": True}, {"num_beams": 2}):
        person = generate(loaded, "Who? ", Person, max_new_tokens=60, **options)
        assert type(person) is Person
        assert 0 <= person.age <= 130
    messages = [{"role": "user", "content": "Which ones?"}]
    numbers = generate(loaded, messages, list[int], max_new_tokens=20, do_sample=True)
    assert type(numbers) is list
    assert all(type(each) is int for each in numbers)
    adapted = generate(loaded, messages, pydantic.TypeAdapter(list[int]), max_new_tokens=20, do_sample=True)
    assert all(type(each) is int for each in adapted)


@pytest.mark.parametrize("prompt", ["", "a", "Which one? "])
def test_one_line_with_an_encoder(loaded, folder, prompt):
    """What is generated begins with one token of the decoder's own, whatever the prompt."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    settings = transformers.BartConfig(
        vocab_size=loaded.config.vocab_size,
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        max_position_embeddings=64,
        pad_token_id=tokenizer.eos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.eos_token_id,
        forced_eos_token_id=None,
    )
    translator = transformers.BartForConditionalGeneration(settings).eval().to(DEVICE)
    for options in ({"max_new_tokens": 9}, {"max_new_tokens": 9, "num_beams": 2}, {"do_sample": True}):
        text = generate(translator, prompt, Grammar.from_regex("[bcd]{2,}!"), tokenizer=tokenizer, **options)
        assert re.fullmatch("[bcd]{2,}!", text)


def test_pydantic_reads_the_numbers_of_one_line(loaded):
    pydantic = pytest.importorskip("pydantic", reason="the extra 'pydantic' is not installed")

    class Count(pydantic.BaseModel, extra="forbid", strict=True):
        n: int

    # Pydantic reads no integer from 5e30, and a strict model none from 12.0.
    for seed in range(8):
        torch.manual_seed(seed)
        found = generate(loaded, "How many? ", Count, max_new_tokens=20, do_sample=True, temperature=9.0)
        assert type(found.n) is int


def test_schemas_and_grammars_in_one_line(loaded, folder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert generate(loaded, "Yes? ", {"const": [True]}, tokenizer=tokenizer) == [True]
    assert generate(loaded, "Yes? ", Grammar.from_choices(["yes", "no"])) in ("yes", "no")
    # Without a limit it is as long as the context lets it be.
    text = generate(loaded, "a" * 200, Grammar.from_regex("[bcd]+!"), tokenizer=tokenizer, do_sample=True)
    assert re.fullmatch("[bcd]+!", text)


@pytest.mark.parametrize(
    "name",
    ["logits_processor", "eos_token_id", "generation_config", "num_return_sequences", "return_dict_in_generate"],
)
def test_one_line_sets_some_options_itself(loaded, name):
    with pytest.raises(ConstrainError, match=f"{name} cannot be given"):
        generate(loaded, "?", Grammar.from_choices(["a"]), **{name: None})


def test_one_line_does_not_return_half_an_answer(loaded):
    with pytest.raises(ConstrainError, match="ended by an option before it was complete: b'"):
        generate(loaded, "Yes? ", Grammar.from_regex("[bcd]{9}"), max_time=0.0)


@pytest.mark.parametrize("has_start", [True, False])
def test_one_line_without_a_prompt(loaded, folder, has_start):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    # As of most models, which put nothing in front of a text.
    tokenizer._tokenizer.post_processor = tokenizers.processors.Sequence([])
    assert tokenizer("").input_ids == []
    if not has_start:
        tokenizer.bos_token = None
    assert generate(loaded, "", Grammar.from_choices(["yes", "no"]), tokenizer=tokenizer) in ("yes", "no")


def test_one_line_says_what_it_lacks(model, loaded):
    with pytest.raises(ConstrainError, match="give its tokenizer"):
        generate(model, "?", Grammar.from_choices(["a"]))
    with pytest.raises(ConstrainError, match="the shortest text"):
        generate(loaded, "?", Grammar.from_regex("[bcd]{30}"), max_new_tokens=20)
    with pytest.raises(ConstrainError, match="a text or a chat's messages; for several use"):
        generate(loaded, ["one", "two"], int)
    with pytest.raises(ConstrainError, match="prompt must be a text or a chat's messages, not None"):
        generate(loaded, None, int)
    with pytest.raises(ConstrainError, match="output must be a type, a JSON Schema or a Grammar, not str"):
        generate(loaded, "?", "[a-z]+")
    with pytest.raises(ConstrainError, match="output must be a type, a JSON Schema or a Grammar, not CompiledGrammar"):
        generate(
            loaded, "?", GrammarCompiler(Vocabulary([b"a", b""], eos_ids=[1])).compile(Grammar.from_choices(["a"]))
        )
    with pytest.raises(ConstrainError, match=r"model must be a transformers model, not str: AutoModel"):
        generate("path/to/model", "A", int)
    for wrong in (5, "path/to/model", MockTokenizer()):
        with pytest.raises(ConstrainError, match=r"tokenizer must be one of transformers, not \w+: AutoTokenizer"):
            generate(loaded, "?", int, tokenizer=wrong)
    with pytest.raises(ConstrainError, match="max_new_tokens must be an integer, not str '9'"):
        generate(loaded, "?", int, max_new_tokens="9")
    with pytest.raises(TypeError, match=r"ConstrainLogitsProcessor\(\) takes a CompiledGrammar, not Grammar"):
        ConstrainLogitsProcessor(Grammar.from_choices(["a"]))
