"""SGLang's real grammar manager, reasoner and tree traversal with constrain's back end; its engine needs a GPU."""

from __future__ import annotations

import contextlib
import json
import re
import time
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("sglang", reason="SGLang is not installed")

import torch
from servers.small_tokenizer import END_OF_THINKING, small_tokenizer
from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarObject,
    GrammarRow,
    InvalidGrammarObject,
    create_grammar_backend,
)
from sglang.srt.constrained.grammar_manager import GrammarManager
from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarObject
from sglang.srt.parser.reasoning_parser import BaseReasoningFormatDetector
from sglang.srt.plugins.hook_registry import HookRegistry
from sglang.srt.runtime_context import get_context, get_parallel
from sglang.srt.sampling.sampling_params import REQUEST_REASONING_IN_GRAMMAR_KEY, SamplingParams
from sglang.srt.server_args import ServerArgs
from sglang.srt.speculative import spec_utils
from sglang.srt.speculative.spec_utils import traverse_tree
from tiny_models import EOS, ROWS, write_folder

from constrain.engine.matcher import Matcher
from constrain.engine.vocabulary.bitmasks import allocate_token_bitmask, is_allowed
from constrain.engine.vocabulary.vocabulary import Vocabulary
from constrain.errors import ConstrainError, LimitError
from constrain.integrations import sglang as sglang_plugin
from constrain.integrations.sglang import ANY_JSON, ConstrainGrammar
from constrain.integrations.sglang_plugin import register

TOKENIZER = small_tokenizer()
VOCABULARY = Vocabulary.from_huggingface(TOKENIZER, size=ROWS)
END_OF_THINKING_ID = int(TOKENIZER.convert_tokens_to_ids(END_OF_THINKING))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module", autouse=True)
def _plugin():
    register()
    register()
    HookRegistry.apply_hooks()
    assert GRAMMAR_BACKEND_CHOICES.count("constrain") == 1


def arguments(folder, **options):
    found = ServerArgs(model_path=str(folder), device="cpu", grammar_backend="constrain", **options)
    get_context().set_server_args(found)
    return found


@pytest.fixture
def make_manager(folder):
    with contextlib.ExitStack() as stack:

        def make(**options):
            settings = arguments(folder, **options)
            stack.enter_context(get_parallel().override(pp_rank=0, pp_size=1))
            return GrammarManager(
                SimpleNamespace(
                    server_args=settings,
                    tokenizer=TOKENIZER,
                    model_config=SimpleNamespace(
                        vocab_size=ROWS, hf_eos_token_id={EOS}, think_end_ids=[END_OF_THINKING_ID]
                    ),
                    dp_tp_cpu_group=None,
                    dp_tp_group=SimpleNamespace(world_size=1, first_rank=0, is_first_rank=True),
                    pp_group=None,
                )
            )

        yield make


class Request(SimpleNamespace):
    """As much of a request as the manager reads."""

    def set_finish_with_abort(self, message):
        self.aborted = message

    def finished(self):
        return self.aborted is not None


def start(manager, most, *, thinks=False, **asked):
    """A request with its grammar, or one that was aborted."""
    request = Request(
        sampling_params=SamplingParams(max_new_tokens=most, **asked),
        origin_input_ids=[5],
        require_reasoning=thinks,
        grammar=None,
        grammar_key=None,
        grammar_wait_ct=0,
        aborted=None,
    )
    if manager.process_req_with_grammar(request):
        end = time.monotonic() + 60
        while request not in manager.get_ready_grammar_requests():
            assert time.monotonic() < end
    return request


def masks(requests):
    """As ``SamplingBatchInfo.update_regex_vocab_mask`` fills them, as booleans."""
    first = requests[0].grammar
    mask = first.allocate_vocab_mask(vocab_size=ROWS, batch_size=len(requests), device="cpu")
    entries = [
        GrammarRow(row=row, grammar=request.grammar)
        for row, request in enumerate(requests)
        if not request.grammar.finished and not request.grammar.is_terminated()
    ]
    first.fill_vocab_mask_batched(entries, mask)
    mask = first.move_vocab_mask(mask, "cpu")
    logits = torch.zeros(len(requests), ROWS)
    first.apply_vocab_mask(logits=logits, vocab_mask=mask)
    return (logits == 0).numpy()


def run(requests, random):
    """Generate all of them together; their tokens."""
    said = [[] for _ in requests]
    todo = list(range(len(requests)))
    while todo:
        rows = masks([requests[number] for number in todo])
        for row, number in zip(rows, list(todo), strict=True):
            token = random.choice(row.nonzero()[0].tolist())
            said[number].append(token)
            requests[number].grammar.accept_token(token)
            if token == EOS or len(said[number]) == requests[number].sampling_params.max_new_tokens:
                requests[number].grammar.finished = True
                todo.remove(number)
    return said


def bytes_of(vocabulary, tokens):
    return b"".join(vocabulary.tokens[token] for token in tokens).decode()


ASKED = [
    ({"regex": "[bcd]+!"}, lambda text: re.fullmatch("[bcd]+!", text)),
    (
        {"json_schema": '{"type": "array", "items": {"enum": ["a", "no"]}, "minItems": 1}'},
        lambda text: json.loads(text),
    ),
    ({"json_schema": ANY_JSON}, lambda text: json.loads(text) is not ...),
    ({"ebnf": 'root ::= "(" root ")" | "x"'}, lambda text: re.fullmatch(r"\(*x\)*", text)),
    (
        {"structural_tag": '{"type": "structural_tag", "format": {"type": "regex", "pattern": "[bc]+!"}}'},
        lambda text: re.fullmatch("[bc]+!", text),
    ),
]


def test_texts_are_complete_within_max_new_tokens(make_manager):
    manager = make_manager()
    for seed in range(12):
        random = Random(seed)
        requests = [start(manager, random.randrange(9, 40), **asked) for asked, _ in ASKED]
        assert not any(request.aborted for request in requests)
        vocabulary = requests[0].grammar.compiled.vocabulary
        for tokens, (_, is_right) in zip(run(requests, random), ASKED, strict=True):
            assert tokens[-1] == EOS
            assert is_right(bytes_of(vocabulary, tokens[:-1]))
    assert len(manager.grammar_backend.cache) == len(ASKED)
    manager.clear()
    assert not manager.grammar_backend.cache


def test_thinking_ends_in_time(make_manager):
    manager = make_manager(reasoning_parser="deepseek-r1")
    at_last = 0
    for seed in range(20):
        random = Random(seed)
        most = random.randrange(9, 60)
        request = start(manager, most, thinks=True, regex="[bcd]{5,}!")
        assert isinstance(request.grammar, ReasonerGrammarObject)
        ((*tokens, last),) = run([request], random)
        assert last == EOS
        end = tokens.index(END_OF_THINKING_ID)
        at_last += end == most - 8
        text = bytes_of(request.grammar.grammar.compiled.vocabulary, tokens[end + 1 :])
        assert re.fullmatch("[bcd]{5,}!", text)
    assert at_last
    request = start(manager, 7, thinks=False, regex="[bcd]{5,}!")
    assert len(run([request], Random(1))[0]) == 7


def test_trees_of_drafts(make_manager):
    """Each row of a tree is what a matcher that took the way to it says; the grammar ends where it began."""
    manager = make_manager()
    checked = 0
    for seed in range(40):
        random = Random(seed)
        request = start(manager, 30, regex="[bcd]{2,}!")
        vocabulary = request.grammar.compiled.vocabulary
        likely = [vocabulary.tokens.index(each) for each in (b"b", b"c", b"d", b"!")] + [EOS, 17]
        size = random.randrange(2, 12)
        drafts = torch.tensor([random.choice(likely) for _ in range(size)])
        parents = [-1] + [random.randrange(node) for node in range(1, size)]
        child, sibling = torch.full((size,), -1), torch.full((size,), -1)
        for node in reversed(range(1, size)):
            sibling[node] = child[parents[node]]
            child[parents[node]] = node
        before = Matcher(request.grammar.compiled, 29)
        mask = request.grammar.allocate_vocab_mask(vocab_size=ROWS, batch_size=size, device="cpu")
        traverse_tree(child, sibling, drafts, request.grammar, mask, vocab_size=ROWS)
        assert request.grammar.matcher.steps == 0
        matchers = [before]
        for node in range(1, size):
            parent = matchers[parents[node]]
            matcher = parent.fork() if parent is not None else None
            alive = matcher is not None and matcher.accept_token(int(drafts[node])) and not matcher.is_terminated()
            matchers.append(matcher if alive else None)
        for node, matcher in enumerate(matchers):
            if matcher is None:
                assert (mask[node] == -1).all()
                continue
            expected = allocate_token_bitmask(1, ROWS)
            matcher.fill_next_token_bitmask(expected)
            np.testing.assert_array_equal(mask[node].numpy(), expected[0])
            checked += 1
    assert checked > 60


def some_tree(random, likely, size):
    """Tokens, first children and next siblings; a chain or a tree."""
    is_chain = random.random() < 0.5
    parents = [-1] + [node - 1 if is_chain else random.randrange(node) for node in range(1, size)]
    child, sibling = torch.full((size,), -1), torch.full((size,), -1)
    for node in reversed(range(1, size)):
        sibling[node] = child[parents[node]]
        child[parents[node]] = node
    return torch.tensor([random.choice(likely) for _ in range(size)]), child, sibling


def test_trees_of_several_requests_are_masked_in_one_call(make_manager, monkeypatch):
    """The rows are what SGLang's own way through the trees gives, whatever is asked for, thought and left out."""
    manager = make_manager(reasoning_parser="deepseek-r1")
    together = []
    fill = sglang_plugin.fill_draft_bitmasks
    monkeypatch.setattr(
        sglang_plugin, "fill_draft_bitmasks", lambda *args, **more: together.append(len(args[0])) or fill(*args, **more)
    )
    for seed in range(30):
        random = Random(seed)
        size = random.randrange(1, 9)
        requests = [start(manager, random.choice([12, 500]), **asked) for asked, _ in ASKED]
        requests += [start(manager, 40, thinks=True, regex="[bcd]{2,}!"), SimpleNamespace(grammar=None)]
        random.shuffle(requests)
        likely = [VOCABULARY.tokens.index(each) for each in (b"b", b"c", b"[", b"x", b"!", b'"')]
        likely += [EOS, END_OF_THINKING_ID, ROWS + 3]
        trees = [some_tree(random, likely, size) for _ in requests]
        drafts, child, sibling = (torch.stack([tree[part] for tree in trees]) for part in range(3))
        steps = [request.grammar and request.grammar.grammar.matcher.steps for request in requests]
        expected, _ = spec_utils.generate_token_bitmask.__wrapped__(requests, child, sibling, drafts, ROWS)
        for _ in range(2):
            mask, grammar = spec_utils.generate_token_bitmask(requests, child, sibling, drafts, ROWS)
            assert torch.equal(mask, expected)
            assert grammar in [request.grammar for request in requests]
        assert [request.grammar and request.grammar.grammar.matcher.steps for request in requests] == steps
    assert max(together) == len(ASKED)
    nothing = [SimpleNamespace(grammar=None)]
    assert spec_utils.generate_token_bitmask(nothing, child[:1], sibling[:1], drafts[:1], ROWS) == (None, None)


@pytest.mark.parametrize("called", ["masks", "trees", "token"])
def test_a_grammar_that_takes_too_much_ends_its_own_request_alone(make_manager, monkeypatch, called):
    """SGLang ends a request whose token is not accepted; an exception where it asks for a mask would end the server."""
    manager = make_manager()
    # Each case has a grammar of its own, of which nothing is known yet.
    requests = [start(manager, 90, regex=f"a(?=.*b)(?:[ab]{{0,20}}a){{0,20}}({called})"), start(manager, 9, regex="b!")]
    hard, easy = (request.grammar for request in requests)
    letters = [VOCABULARY.tokens.index(each) for each in (b"a", b"b", b"!")]
    hard.accept_token(letters[0])

    def take_too_much(*_args):
        raise LimitError("too much")

    monkeypatch.setattr(hard.compiled, "_repeat", take_too_much)
    if called == "token":
        with pytest.raises(ConstrainError, match="can be followed no further: too much"):
            hard.accept_token(letters[1])
    if called == "trees":
        chain, none = torch.tensor([[1, 2, -1]] * 2), torch.full((2, 3), -1)
        drafts = torch.tensor([[0, letters[0], letters[1]], [0, letters[1], letters[2]]])
        for _ in range(2):
            mask, _ = spec_utils.generate_token_bitmask(requests, chain, none, drafts, ROWS)
            assert (mask[2] == -1).all()
            assert [[token for token in letters if is_allowed(row, token)] for row in mask[3:].numpy()] == [
                letters[1:2],
                letters[2:],
                [],
            ]
    for _ in range(2):
        rows = masks(requests)
        assert rows[0].all()
        assert [token for token in letters if rows[1][token]] == letters[1:2]
    for _ in range(2):
        with pytest.raises(ConstrainError, match="can be followed no further: too much"):
            hard.accept_token(letters[0])
    easy.accept_token(letters[1])


def test_batches_are_what_single_grammars_give(make_manager):
    manager = make_manager()
    requests = [start(manager, 20, **asked) for asked, _ in ASKED]
    together = masks(requests)
    for row, request in zip(together, requests, strict=True):
        np.testing.assert_array_equal(masks([request])[0], row)
    mask = requests[0].grammar.allocate_vocab_mask(ROWS, 3, "cpu")
    entries = [GrammarRow(row=1, grammar=requests[0].grammar), GrammarRow(row=2, grammar=Everything())]
    requests[0].grammar.fill_vocab_mask_batched(entries, mask)
    assert (mask[0] == -1).all()
    assert not (mask[1] == -1).all()
    assert (mask[2] == 7).all()
    requests[0].grammar.reset_vocab_mask(mask)
    assert (mask == -1).all()


class Everything(BaseGrammarObject):
    """A grammar of another back end."""

    def fill_vocab_mask(self, vocab_mask, idx):
        vocab_mask[idx] = 7


def test_copies_go_their_own_ways(make_manager):
    request = start(make_manager(), 20, regex="[bcd]+!")
    b, c = (request.grammar.compiled.vocabulary.tokens.index(each) for each in (b"b", b"c"))
    request.grammar.accept_token(b)
    twin = request.grammar.copy()
    twin.accept_token(c)
    assert (request.grammar.matcher.steps, twin.matcher.steps) == (1, 2)
    assert twin.grammar_stats.is_cache_hit
    twin.rollback(2)
    assert (request.grammar.matcher.steps, twin.matcher.steps) == (1, 0)
    with pytest.raises(ConstrainError, match="is not allowed here"):
        twin.accept_token(EOS)
    with pytest.raises(ConstrainError, match="is not allowed here"):
        twin.accept_token(ROWS)
    assert "[bcd]" in repr(twin)


def test_jump_forward(make_manager):
    request = start(
        make_manager(),
        40,
        json_schema='{"type": "object", "properties": {"name": {"const": "ä"}}, '
        '"required": ["name"], "additionalProperties": false}',
    )
    grammar = request.grammar
    vocabulary = grammar.compiled.vocabulary
    assert grammar.try_jump_forward(TOKENIZER) == ([], "{")
    grammar.accept_token(vocabulary.tokens.index(b"{"))
    grammar.accept_token(vocabulary.tokens.index(b'"'))
    old = [vocabulary.tokens.index(each) for each in (b"n", b"a")]
    for token in old:
        grammar.accept_token(token)
    new = [vocabulary.tokens.index(b"na"), vocabulary.tokens.index(b"m")]
    grammar.jump_and_retokenize(old, new, -1)
    assert grammar.matcher.steps == 4
    with pytest.raises(ConstrainError, match="is not allowed here"):
        grammar.jump_and_retokenize(new, [new[0], new[0]], -1)
    assert grammar.jump_forward_str_state(([], "abc")) == ("abc", -1)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"regex": "a("}, "Failed to compile regex grammar: line 1, column 2"),
        ({"json_schema": '{"type": "strin"}'}, "Failed to compile json grammar: at #/type: 'strin'"),
        ({"json_schema": "{"}, "invalid JSON"),
        ({"ebnf": "root ::= nothing"}, "Failed to compile ebnf grammar: line 1"),
        ({"structural_tag": "{}"}, "Failed to compile structural_tag grammar: at #"),
        ({"regex": "[bcd]{30}"}, "max_tokens is 20, but the shortest text"),
    ],
)
def test_what_cannot_be_met_ends_the_request_with_the_reason(make_manager, asked, message):
    manager = make_manager()
    # Once compiled, once from the cache.
    for _ in range(2):
        assert message in start(manager, 20, **asked).aborted


def test_too_few_tokens_for_thinking(make_manager):
    manager = make_manager(reasoning_parser="deepseek-r1")
    request = start(manager, 6, thinks=True, regex="[bcd]{6}")
    assert request.aborted == "max_new_tokens is 6, but the end of thinking and the shortest text take 7 tokens"


@pytest.mark.parametrize("thinks", [False, True])
def test_stop_tokens_of_a_request(make_manager, thinks):
    """They end the text where it is complete, and are no piece of it, nor of thinking."""
    manager = make_manager(reasoning_parser="deepseek-r1")
    b = VOCABULARY.tokens.index(b"b")
    seen = set()
    for seed in range(20):
        # The vocabulary lacks the last one.
        request = start(manager, 30, thinks=thinks, regex="[bcd]{3,}!", stop_token_ids=[b, ROWS + 5])
        (tokens,) = run_until(request, {EOS, b}, Random(seed))
        said = tokens[tokens.index(END_OF_THINKING_ID) + 1 :] if thinks else tokens
        assert b not in tokens[:-1]
        assert re.fullmatch("[bcd]{3,}!", bytes_of(VOCABULARY, said[:-1]))
        seen.add(tokens[-1])
        other = start(manager, 30, regex="[bcd]{3,}!")
        assert masks([other])[0][b]
    assert seen == {EOS, b}
    assert (
        "no text of the grammar was found"
        in start(manager, 30, regex="bb", stop_token_ids=sorted(spelling_of("b"))).aborted
    )
    # Without a limit they are stop tokens too.
    request = start(manager, None, regex="[bcd]{3,}!", stop_token_ids=[b])
    assert not masks([request])[0][b]


def spelling_of(letter):
    """The tokens with a letter in them."""
    return [token for token, text in enumerate(VOCABULARY.tokens) if letter.encode() in text]


def run_until(request, ends, random):
    """Generate one; its tokens."""
    said = []
    while not ends.intersection(said[-1:]):
        said.append(random.choice(masks([request])[0].nonzero()[0].tolist()))
        request.grammar.accept_token(said[-1])
        assert len(said) <= request.sampling_params.max_new_tokens
    assert request.grammar.is_terminated()
    return [said]


def test_a_least_number_of_tokens_is_refused(make_manager):
    manager = make_manager()
    for _ in range(2):
        request = start(manager, 20, regex="[bcd]!", min_new_tokens=5)
        assert request.aborted == "min_new_tokens cannot be combined with a grammar: a text may have to end before"


def test_a_reasoning_parser_whose_end_the_tokenizer_lacks(make_manager, monkeypatch):
    """As with SGLang's own back ends the grammar begins at once."""
    monkeypatch.setattr(BaseReasoningFormatDetector, "get_think_end_token_ids", lambda self, tokenizer: [])
    manager = make_manager(reasoning_parser="deepseek-r1")
    request = start(manager, 9, thinks=True, regex="[bcd]!")
    assert isinstance(request.grammar, ConstrainGrammar)
    assert len(run([request], Random(1))[0]) == 3


def test_options(folder):
    settings = arguments(folder, constrained_json_disable_any_whitespace=True)
    backend = create_grammar_backend(settings, TOKENIZER, ROWS, {EOS})
    grammar = backend.dispatch_json('{"type": "array", "items": {"type": "null"}, "minItems": 2}')
    assert isinstance(grammar, ConstrainGrammar)
    assert not Matcher(grammar.compiled).accept_bytes(b"[ null")
    assert Matcher(grammar.compiled).accept_bytes(b"[null,null]")
    found = backend.dispatch_fallback("lark", "start: a")
    assert isinstance(found, InvalidGrammarObject)
    assert "'lark'" in found.error_message
    settings = arguments(folder, constrained_json_whitespace_pattern="[ ]*")
    backend = create_grammar_backend(settings, TOKENIZER, ROWS, {EOS})
    grammar = backend.dispatch_json('{"type": "array", "items": {"type": "null"}, "minItems": 2}')
    assert Matcher(grammar.compiled).accept_bytes(b"[    null")
    assert not Matcher(grammar.compiled).accept_bytes(b"[\n")
    settings = arguments(folder, constrained_json_whitespace_pattern="x")
    with pytest.raises(ConstrainError, match="whitespace_pattern"):
        create_grammar_backend(settings, TOKENIZER, ROWS, {EOS})


def test_buffers_and_filters(folder):
    backend = create_grammar_backend(arguments(folder), TOKENIZER, ROWS, {EOS})
    buffer = backend.initialize_vocab_mask_buffer("constrain-test", ROWS, 4, "cpu")
    assert buffer.shape == (4, ROWS // 32)
    assert backend.initialize_vocab_mask_buffer("constrain-test", ROWS, 4, "cpu") is buffer
    assert backend.is_support_token_filter
    backend.set_token_filter(buffer, [33], 1, is_allowed=True)
    assert np.unpackbits(buffer[1].numpy().view(np.uint8), bitorder="little").nonzero()[0].tolist() == [33]


@pytest.mark.parametrize("most", [7, 8, 9, 40])
def test_a_grammar_that_covers_the_thinking_too(make_manager, most):
    manager = make_manager(reasoning_parser="deepseek-r1")
    parts = [
        {"type": "regex", "pattern": "[bc]*"},
        {"type": "token", "token": END_OF_THINKING},
        {"type": "regex", "pattern": "[bcd]{5}!"},
    ]
    tag = json.dumps({"type": "structural_tag", "format": {"type": "sequence", "elements": parts}})
    whole = {REQUEST_REASONING_IN_GRAMMAR_KEY: True}
    for seed in range(6):
        request = start(manager, most, thinks=True, structural_tag=tag, custom_params=whole)
        assert request.aborted is None
        assert request.grammar.reasoning_in_grammar
        (tokens,) = run([request], Random(seed))
        # Where the shortest text takes all tokens there is none for its end.
        assert (tokens[-1] == EOS) == (most > 7)
        end = tokens.index(END_OF_THINKING_ID)
        assert re.fullmatch("[bcd]{5}!", bytes_of(VOCABULARY, [t for t in tokens[end + 1 :] if t != EOS]))
    assert start(manager, 6, thinks=True, structural_tag=tag, custom_params=whole).aborted
