"""What people get wrong in a first program: each is one line that says what was given and what is wanted."""

# mypy: disable-error-code=arg-type
from __future__ import annotations

import pathlib
import re
from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from byte_tokens import BYTES

import constrain
from constrain import Grammar, GrammarCompiler, Matcher, Vocabulary
from constrain.backends import load_backend
from constrain.demo import load
from constrain.generation import beam_search, encode_chat, generate, generate_batch
from constrain.tokenizers import DecodeStream, OffsetDecodeStream, StopSequenceDecoder
from constrain.tokenizers.mock import MockTokenizer
from constrain.tools import TurnParser, parse

COMPILED = GrammarCompiler(BYTES).compile(Grammar.from_choices(["yes", "no"]))
YES = GrammarCompiler(BYTES).compile(Grammar.from_choices(["yes"]))
ANY = Grammar.from_regex("[a-z]*")
MASK = constrain.allocate_token_bitmask(1, BYTES.size)


def _fed_behind_its_end(style: str) -> None:
    parser = TurnParser(style)
    parser.finish()
    parser.feed("more")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Matcher(COMPILED).accept_bytes("yes"), "takes bytes, not str: of a text, text.encode()"),
        # bytes(3) is b"\0\0\0".
        (lambda: Matcher(COMPILED).accept_bytes(3), "takes bytes, not int"),
        (lambda: Matcher(COMPILED).accept_tokens(121), "token_ids must be a list of token ids, not 121"),
        (lambda: Matcher(COMPILED).validate_tokens(121), "token_ids must be a list of token ids, not 121"),
        (lambda: Matcher(COMPILED).text(1), "there is no text of 1 steps, there were 0"),
        (lambda: Matcher(COMPILED).text(-1), "there is no text of -1 steps, there were 0"),
        (lambda: Matcher(COMPILED).text(None), "steps must be an integer, not None"),
        # Also of a grammar that the cache has.
        (
            lambda: [(each := GrammarCompiler(BYTES)).compile(ANY), each.compile(ANY, time_limit=-1)],
            "a time limit must be a positive number of seconds, not -1",
        ),
        (
            lambda: GrammarCompiler(BYTES).submit(ANY, time_limit=float("nan")),
            "a time limit must be a positive number of seconds, not nan",
        ),
        (
            lambda: constrain.accept_token_batch([Matcher(COMPILED)], 121),
            "token_ids must be a list of token ids, not 121",
        ),
        (
            lambda: constrain.fill_draft_bitmasks([Matcher(COMPILED)], None, None, MASK),
            "drafts must be lists of integers",
        ),
        (lambda: Matcher(COMPILED).rollback(None), "rollback() takes a number of steps, not None"),
        (lambda: Matcher(COMPILED).rollback(0.5), "rollback() takes a number of steps, not 0.5"),
        (lambda: Matcher(YES).forced_tokens(tokenizer="gpt-4"), "or has encode(text).ids, which str has not"),
        (lambda: Matcher(YES).forced_tokens(tokenizer=5), "or has encode(text).ids, which int has not"),
        # As tokenizers of transformers have it.
        (
            lambda: Matcher(YES).forced_tokens(tokenizer=SimpleNamespace(encode=list)),
            "has encode(text).ids, which SimpleNamespace has not",
        ),
        (
            lambda: Matcher(YES).forced_tokens(5, tokenizer=MockTokenizer()),
            "history must be a list of token ids, not 5",
        ),
        (lambda: Matcher(YES).forced_tokens(["a"], tokenizer=MockTokenizer()), "token id 'a' is not an integer"),
        # Whose apply_chat_template() lets messages write special tokens.
        (
            lambda: encode_chat(SimpleNamespace(apply_chat_template=list), [{"role": "user", "content": "hi"}]),
            "encode_chat() takes a tokenizer of constrain.load_tokenizer(), which opens those of other libraries",
        ),
        (lambda: Matcher(COMPILED, stop_token_ids=3), "stop_token_ids must be a list of token ids, not 3"),
        (lambda: Vocabulary([b"a", b"b"], eos_ids=1), "eos_ids must be a list of token ids, not 1"),
        (lambda: COMPILED.recognizer().try_push_byte(b"y"), "b'y' is not a byte: an integer from 0 to 255"),
        (lambda: constrain.allocate_token_bitmask(1, "10"), "vocab_size must be an integer, not str '10'"),
        (lambda: constrain.allocate_token_bitmask(1.5, 10), "batch_size must be an integer, not float 1.5"),
        (lambda: constrain.allocate_token_bitmask(10**12, 10**12), "is larger than any array"),
        (lambda: constrain.allocate_token_bitmask(10**30, 10), "is larger than any array"),
        (
            lambda: Matcher(COMPILED).fill_next_token_bitmask(MASK, "0"),
            "row of a mask must be an integer, not str '0'",
        ),
        (
            lambda: Matcher(COMPILED).fill_next_token_bitmask(MASK, None),
            "row of a mask must be an integer, not None",
        ),
        (
            lambda: constrain.fill_next_token_bitmask_batch(Matcher(COMPILED), MASK),
            "a list of Matcher, not Matcher",
        ),
        (lambda: constrain.fill_draft_bitmasks(None, [], None, MASK), "must be a list of Matcher, not NoneType"),
        (lambda: COMPILED.recognizer().pop_bytes("a"), "the count of bytes must be an integer, not str 'a'"),
        (lambda: Vocabulary(None), "tokens must be a list of bytes, not NoneType"),
        (lambda: GrammarCompiler(BYTES, cache_limit_bytes="1GB"), "cache_limit_bytes must be a number, not str '1GB'"),
        (lambda: GrammarCompiler(BYTES, limit_bytes=-1), "limit_bytes must be at least 0 and finite, not -1"),
        (
            lambda: constrain.CompiledGrammar(COMPILED.ir, BYTES, mask_limit_bytes=float("inf")),
            "mask_limit_bytes must be at least 0 and finite, not inf",
        ),
        (
            lambda: generate(load_backend(), "path/to/it", COMPILED, prompt="a"),
            "or has encode(text).ids, which str has not",
        ),
        (lambda: load_backend(3), "the path of a model must be a str or a path, not int"),
        (lambda: load_backend(options={"kv_type": "q8"}), "options must be a BackendOptions, not dict"),
        (lambda: parse(None, "qwen3"), "the text of a turn must be a str, not NoneType"),
        (lambda: TurnParser("qwen3").feed(b"x"), "the text of a turn must be a str, not bytes"),
        (lambda: _fed_behind_its_end("qwen3"), "finish() has ended the turn; another one takes another TurnParser"),
        (lambda: DecodeStream(None), "a stream needs a tokenizer of constrain.load_tokenizer, not None"),
        (lambda: OffsetDecodeStream("a"), "a stream needs a tokenizer of constrain.load_tokenizer, not str 'a'"),
        (lambda: StopSequenceDecoder(None), "a stream needs a tokenizer of constrain.load_tokenizer, not None"),
        (lambda: Grammar.from_lark(pathlib.Path("json.lark")), "of a file, path.read_text()"),
        (lambda: Grammar.from_regex(re.compile("a", re.IGNORECASE)), "of a compiled one, its .pattern"),
    ],
)
def test_wrong_arguments(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(constrain.ConstrainError) as raised:
        call()
    assert message in str(raised.value)


@pytest.mark.parametrize("limit", [10**400, float("inf"), np.float32(60), np.int64(60), Fraction(120, 2)])
def test_numbers_of_any_kind_are_time_limits(limit: Any) -> None:
    compiler = GrammarCompiler(BYTES)
    assert compiler.submit(ANY, time_limit=limit).result(60) is compiler.compile(ANY, time_limit=limit)


def test_numbers_of_any_kind_are_numbers_of_threads() -> None:
    constrain.fill_next_token_bitmask_batch([Matcher(COMPILED)], MASK, threads=np.int64(2))


def test_other_kinds_of_bytes_are_bytes() -> None:
    assert Matcher(COMPILED).accept_bytes(bytearray(b"yes"))
    assert Matcher(COMPILED).accept_bytes(memoryview(b"yes"))


def test_a_tokenizer_is_no_vocabulary() -> None:
    tokenizer, _model = load()
    with pytest.raises(TypeError, match=r"takes a Vocabulary, not \w+: Vocabulary.from_tokenizer\(tokenizer\)"):
        GrammarCompiler(tokenizer)


def test_what_takes_an_object_of_the_package_says_so() -> None:
    with pytest.raises(TypeError, match=r"from_bytes\(\) takes a Vocabulary, not NoneType"):
        constrain.CompiledGrammar.from_bytes(COMPILED.to_bytes(), None)
    with pytest.raises(TypeError, match=r"CompiledGrammar\(\) takes the ir of a Grammar, not Grammar: grammar.ir"):
        constrain.CompiledGrammar(Grammar.from_choices(["yes"]), BYTES)
    with pytest.raises(TypeError, match=r"a Grammar is made with one of Grammar.from_..., not of str"):
        Grammar('root ::= "a"')


def test_what_is_no_model_or_tokenizer() -> None:
    tokenizer, model = load()
    compiled = GrammarCompiler(Vocabulary.from_tokenizer(tokenizer)).compile(Grammar.from_choices(["yes"]))
    for function in (generate, beam_search):
        with pytest.raises(constrain.ConstrainError, match=r"has logits\(ids\), which NoneType has not"):
            function(None, tokenizer, compiled)
        for wrong in (None, SimpleNamespace(encode=lambda text: [1])):
            with pytest.raises(constrain.ConstrainError, match=r"has encode\(text\).ids, which \w+ has not"):
                function(model, wrong, compiled)
    with pytest.raises(constrain.ConstrainError, match="prompts must be a sequence"):
        generate_batch(model, tokenizer, compiled, prompts=3)


def test_arguments_of_generate_in_another_order() -> None:
    tokenizer, model = load()
    with pytest.raises(TypeError, match=r"generate\(\) takes a CompiledGrammar"):
        generate(model, COMPILED, tokenizer)
    with pytest.raises(constrain.ConstrainError, match=r"<Vocabulary: 257 .*>, but the tokenizer has 12,288 tokens"):
        generate(model, tokenizer, COMPILED)
    with pytest.raises(constrain.ConstrainError, match=r"sampler must be a Sampler or a SamplerChain, not 0\.7"):
        generate(model, tokenizer, None, sampler=0.7)


@pytest.mark.parametrize("value", ["Person", 3, (int, str), [int]])
def test_a_value_is_no_type(value: object) -> None:
    pytest.importorskip("pydantic")
    with pytest.raises(constrain.GrammarError, match=r"it is a value \(\w+\); give a type"):
        Grammar.from_pydantic(value)


@pytest.mark.parametrize(
    ("choice", "same"),
    [
        ({"type": "function", "function": {"name": "look"}}, "look"),
        ({"type": "function", "name": "look"}, "look"),
        ({"type": "tool", "name": "look"}, "look"),
        ({"type": "any"}, "required"),
        ({"type": "none"}, "none"),
    ],
)
def test_the_choice_of_a_tool_as_requests_have_it(choice: dict[str, Any], same: str) -> None:
    tools = [{"name": "look", "parameters": {"type": "object"}}, {"name": "listen", "parameters": {"type": "object"}}]
    as_object = Grammar.from_tools(tools, style="qwen3", tool_choice=choice)
    as_name = Grammar.from_tools(tools, style="qwen3", tool_choice=same)
    compiler = GrammarCompiler(BYTES)
    assert compiler.compile(as_object) is compiler.compile(as_name)


@pytest.mark.parametrize("inner", [True, False])
@pytest.mark.parametrize("mode", ["auto", "required"])
def test_only_some_tools_are_allowed_as_requests_have_it(inner: bool, mode: str) -> None:
    tools = [{"name": name, "parameters": {"type": "object"}} for name in ("look", "listen", "speak")]
    refs = [{"type": "function", "function": {"name": name}} for name in ("speak", "look")]
    flat = [{"type": "function", "name": name} for name in ("speak", "look")]
    allowed: dict[str, Any] = {"mode": mode, "tools": refs} if inner else {"mode": mode, "tools": flat}
    choice = {"type": "allowed_tools", **({"allowed_tools": allowed} if inner else allowed)}
    compiler = GrammarCompiler(BYTES)
    some = compiler.compile(Grammar.from_tools(tools, style="qwen3", tool_choice=choice, reasoning=False))
    assert some is not compiler.compile(Grammar.from_tools(tools, style="qwen3", tool_choice=mode, reasoning=False))
    again = constrain.CompiledGrammar.from_bytes(some.to_bytes(), BYTES)
    for name, fits in (("look", True), ("listen", False), ("speak", True)):
        for each in (some, again):
            matcher = constrain.Matcher(each)
            assert matcher.accept_bytes(f'<tool_call>\n{{"name": "{name}", "arg'.encode()) == fits
    assert constrain.Matcher(some).accept_bytes(b"Hm.") == (mode == "auto")
    refs[0]["function"] = flat[0]["name"] = "none"  # type: ignore[assignment]
    with pytest.raises(constrain.ConstrainError, match="tool_choice"):
        Grammar.from_tools(tools, style="qwen3", tool_choice=choice)


@pytest.mark.parametrize(
    "choices", [{"yes": 1, "no": 2}, {"yes": 1, "no": 2}.keys(), frozenset({"yes", "no"}), iter(["yes", "no"])]
)
def test_choices_of_any_kind_can_be_written(choices: Any) -> None:
    again = constrain.CompiledGrammar.from_bytes(
        GrammarCompiler(BYTES).compile(Grammar.from_choices(choices)).to_bytes(), BYTES
    )
    for text in (b"yes", b"no"):
        matcher = Matcher(again)
        assert matcher.accept_bytes(text)
        assert matcher.is_accepting()
