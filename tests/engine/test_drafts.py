"""Drafts, and tokens for a whole batch, against one matcher at a time."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import constrain
from constrain import ConstrainError, Grammar, Matcher
from constrain.engine import accepting
from constrain.engine.masks import drafts as drafts_module
from constrain.errors import LimitError

TOKENS = [bytes([byte]) for byte in range(32, 127)]
TOKENS += [b'{"', b'":', b'",', b'","', b'"}', b"ab", b"true", b"12", b"", b"</s>", b"<x>", b"<e>"]
END, MARK, OTHER_END = len(TOKENS) - 3, len(TOKENS) - 2, len(TOKENS) - 1
VOCABULARY = constrain.Vocabulary(TOKENS, eos_ids=[END, OTHER_END], special_ids=[MARK])
WORDS = (VOCABULARY.size + 31) // 32
COMPACT: Any = {"whitespace": "compact", "separators": (",", ":")}
GRAMMARS = {
    "open": Grammar.from_json_schema({"type": "object", "additionalProperties": {"type": "integer"}}, **COMPACT),
    "closed": Grammar.from_json_schema(
        {"properties": {"a": {"enum": ["ab", 1]}, "b": {}}, "type": "object", "additionalProperties": False}, **COMPACT
    ),
    "few keys": Grammar.from_json_schema(
        {"type": "object", "propertyNames": {"enum": ["a", "b", "ab"]}, "minProperties": 2}, **COMPACT
    ),
    "any order": Grammar.from_json_schema({"properties": {"a": {}, "ab": {}}, "required": ["a"]}, property_order="any"),
    "regex": Grammar.from_regex("(ab|a1|12)*"),
    "token": Grammar.from_lark("start: /[a-z]*/ <x> /[a-z]*/"),
}
COMPILER = constrain.GrammarCompiler(VOCABULARY)
OPTIONS: list[dict[str, Any]] = [{}, {}, {}, {"max_tokens": 30}, {"max_tokens": 400}, {"stop_token_ids": [0, END]}]


def allowed(row: np.ndarray[Any, Any]) -> list[int]:
    bits: list[int] = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()
    return bits


def mask_of(matcher: Matcher) -> np.ndarray[Any, Any]:
    mask = constrain.allocate_token_bitmask(1, VOCABULARY.size)
    matcher.fill_next_token_bitmask(mask)
    row: np.ndarray[Any, Any] = mask[0]
    return row


def some_matcher(choose: random.Random, names: list[str]) -> Matcher:
    matcher = Matcher(COMPILER.compile(GRAMMARS[choose.choice(names)]), **choose.choice(OPTIONS))
    for _ in range(choose.randrange(12)):
        tokens = allowed(mask_of(matcher))
        if not tokens or matcher.is_terminated():
            break
        matcher.accept_token(choose.choice(tokens))
    return matcher


def some_draft(choose: random.Random, matcher: Matcher, is_tree: bool) -> tuple[list[int], list[int]]:
    """Tokens most of which are legal, and their parents."""
    places = {-1: matcher.fork()}
    draft: list[int] = []
    parents = []
    for place in range(choose.randrange(8)):
        parent = choose.randrange(-1, place) if is_tree and place else place - 1
        before = places.get(parent)
        tokens = allowed(mask_of(before)) if before else []
        token = choose.choice(tokens) if tokens and choose.random() < 0.9 else choose.randrange(VOCABULARY.size)
        after = before.fork() if before else None
        if after is not None and after.accept_token(token):
            places[place] = after
        draft.append(token)
        parents.append(parent)
    return draft, parents


def naive(matcher: Matcher, draft: list[int], parents: list[int]) -> tuple[int, np.ndarray[Any, Any]]:
    """How much is legal, and the masks, by taking each path from the beginning."""
    rows = [mask_of(matcher.fork())]
    count = 0
    for place, _token in enumerate(draft):
        path = []
        at = place
        while at >= 0:
            path.append(draft[at])
            at = parents[at]
        twin = matcher.fork()
        is_legal = all(twin.accept_token(step) for step in reversed(path))
        count += is_legal
        rows.append(mask_of(twin) if is_legal else np.zeros(WORDS, np.int32))
    return count, np.array(rows)


def place_of(matcher: Matcher) -> tuple[Any, ...]:
    return matcher.steps, matcher.is_terminated(), matcher.tokens_left, mask_of(matcher).tolist()


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.booleans(), st.integers(1, 2), st.booleans())
def test_drafts_are_as_one_matcher_at_a_time(seed: int, is_tree: bool, threads: int, is_wide: bool) -> None:
    choose = random.Random(seed)
    names = choose.sample(list(GRAMMARS), choose.randrange(1, 4))
    matchers = [some_matcher(choose, names) for _ in range(choose.randrange(1, 7))]
    drafts, parents = zip(*(some_draft(choose, matcher, is_tree) for matcher in matchers), strict=True)
    before = [place_of(matcher) for matcher in matchers]
    rows = sum(map(len, drafts)) + len(drafts)
    mask = np.full((rows + 1, WORDS + is_wide), 7, np.int32)
    for _ in range(2):  # the second time, more is known
        counts = constrain.fill_draft_bitmasks(matchers, drafts, parents if is_tree else None, mask, threads=threads)
        begin = 0
        for matcher, draft, tree, count in zip(matchers, drafts, parents, counts, strict=True):
            legal, masks = naive(matcher, draft, tree)
            assert count == legal
            assert (mask[begin : begin + len(masks), :WORDS] == masks).all()
            if not is_tree:
                assert matcher.validate_tokens(draft) == legal
            begin += len(masks)
        assert (mask[-1] == 7).all()
        assert [place_of(matcher) for matcher in matchers] == before


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_a_batch_of_tokens_is_as_one_at_a_time(seed: int) -> None:
    choose = random.Random(seed)
    names = choose.sample(list(GRAMMARS), choose.randrange(1, 4))
    matchers = [some_matcher(choose, names) for _ in range(choose.randrange(1, 7))]
    twins = [matcher.fork() for matcher in matchers]
    for _ in range(10):
        tokens = []
        for matcher in matchers:
            known = allowed(mask_of(matcher))
            some = choose.randrange(VOCABULARY.size)
            tokens.append(choose.choice(known) if known and choose.random() < 0.9 else some)
        taken = constrain.accept_token_batch(matchers, np.array(tokens) if choose.random() < 0.5 else tokens)
        assert taken == [twin.accept_token(token) for twin, token in zip(twins, tokens, strict=True)]
        assert [place_of(matcher) for matcher in matchers] == [place_of(twin) for twin in twins]
        if choose.random() < 0.2:
            steps = min(matcher.steps for matcher in matchers)
            for matcher in (*matchers, *twins):
                matcher.rollback(min(2, steps))


@settings(max_examples=40)
@given(st.integers(0, 2**32))
def test_some_tokens_are_taken_together_or_not_at_all(seed: int) -> None:
    choose = random.Random(seed)
    matcher = some_matcher(choose, list(GRAMMARS))
    draft, _ = some_draft(choose, matcher, False)
    before, twin = place_of(matcher), matcher.fork()
    count = matcher.validate_tokens(draft)
    assert place_of(matcher) == before
    assert matcher.accept_tokens(draft) == (count == len(draft))
    if count < len(draft):
        assert place_of(matcher) == before
    assert count == len(draft) or matcher.accept_tokens(draft[:count])
    assert all(map(twin.accept_token, draft[:count]))
    assert place_of(matcher) == place_of(twin)


def test_rows_where_they_are_wanted() -> None:
    compiled = COMPILER.compile(GRAMMARS["regex"])
    first, second = Matcher(compiled), Matcher(compiled)
    mask = np.full((9, WORDS), 5, np.int32)
    a, b = TOKENS.index(b"a"), TOKENS.index(b"b")
    assert constrain.fill_draft_bitmasks([first, second], [[a, b], []], None, mask, first_rows=[5, 1]) == [2, 0]
    assert (mask[[0, 2, 3, 4, 8]] == 5).all()
    assert (mask[1] == mask_of(second)).all()
    assert TOKENS[allowed(mask[6])[0]] == b"1"
    assert constrain.fill_draft_bitmasks([], [], None, mask) == []
    assert constrain.accept_token_batch([], []) == []


def test_what_is_refused() -> None:
    compiled = COMPILER.compile(GRAMMARS["regex"])
    matchers = [Matcher(compiled), Matcher(compiled)]
    mask = np.full((4, WORDS), 5, np.int32)
    size = VOCABULARY.size

    def fill(drafts: Any, parents: Any = None, **options: Any) -> Any:
        return lambda: constrain.fill_draft_bitmasks(matchers, drafts, parents, mask, **options)

    for call, reason in [
        (fill([[1]]), "1 drafts for 2 matchers"),
        (fill([[1], [size]]), f"token id {size} is out of range"),
        (fill([[1], [-1]]), "token id -1 is out of range"),
        (fill([[1], ["a"]]), "draft 1 must be integers"),
        (fill([[1], [[1]]]), "draft 1 must be integers"),
        (fill([1, [1]]), "draft 0 must be integers"),
        (fill([[1], [2**70]]), "draft 1 must be integers"),
        (fill([[1], [1.5]]), "draft 1 must be integers"),
        (fill([[1, 2], [1]]), "rows that the mask does not have: it has 4"),
        (fill([[1], [1]], [[0], [-1]]), "parents: 0 is neither"),
        (fill([[1], [1]], [[-2], [-1]]), "parents: -2 is neither"),
        (fill([[1], [1]], [[-1]]), "one number for each token"),
        (fill([[1], [1]], first_rows=[0]), "one integer for each of the 2 drafts"),
        (fill([[1], [1]], first_rows=[0, 1]), "two drafts have the same row"),
        (fill([[1], [1]], first_rows=[0, 3]), "rows that the mask does not have"),
        (fill([[1], [1]], first_rows=[-1, 2]), "rows that the mask does not have"),
        (fill([[1], [1]], threads=0), "threads must be"),
        (lambda: constrain.fill_draft_bitmasks([1], [[1]], None, mask), "entry 0 of the batch is int"),  # type: ignore[list-item]
        (lambda: constrain.accept_token_batch(matchers, [1]), "1 tokens for 2 matchers"),
        (lambda: constrain.accept_token_batch(matchers[:1] * 2, [1, 1]), "twice"),
        (lambda: constrain.accept_token_batch(matchers, [TOKENS.index(b"a"), size]), "out of range"),
        (lambda: constrain.accept_token_batch(matchers, [-1, TOKENS.index(b"a")]), "out of range"),
        (lambda: constrain.accept_token_batch(matchers, [TOKENS.index(b"a"), 2**70]), "out of range"),
        (lambda: constrain.accept_token_batch(matchers, np.array([1.0, 1.0])), "not an integer"),  # type: ignore[arg-type]
        (lambda: constrain.accept_token_batch(matchers, [[1], [1]]), "not an integer"),  # type: ignore[list-item]
        (lambda: constrain.accept_token_batch(matchers, [[1], [1, 2]]), "not an integer"),  # type: ignore[list-item]
        (lambda: matchers[0].accept_tokens([TOKENS.index(b"a"), size]), "out of range"),
        (lambda: matchers[0].validate_tokens([TOKENS.index(b"a"), "x"]), "not an integer"),  # type: ignore[list-item]
    ]:
        with pytest.raises(ConstrainError, match=reason):
            call()
        assert (mask == 5).all()
        assert [matcher.steps for matcher in matchers] == [0, 0]


class Interrupted(BaseException):
    pass


@pytest.mark.parametrize("error", [LimitError, Interrupted, KeyboardInterrupt])
def test_after_an_error_all_are_where_they_were(error: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    choose = random.Random(3)
    matchers = [some_matcher(choose, list(GRAMMARS)) for _ in range(12)]
    matchers = [matcher for matcher in matchers if not matcher.is_terminated()]
    before = [place_of(matcher) for matcher in matchers]
    tokens = [allowed(mask_of(matcher))[0] for matcher in matchers]
    assert any(matcher._asking for matcher in matchers)
    count = 0

    def fail(*_args: Any) -> bool:
        nonlocal count
        count += 1
        if count > 1:
            raise error("no more")
        return original(*_args)

    original = Matcher.accept_token
    monkeypatch.setattr(Matcher, "accept_token", fail)
    with pytest.raises(error):
        constrain.accept_token_batch(matchers, tokens)
    monkeypatch.undo()
    assert [place_of(matcher) for matcher in matchers] == before
    count = 0
    monkeypatch.setattr(Matcher, "accept_token", fail)
    with pytest.raises(error):
        matchers[0].accept_tokens(tokens[:1] * 3)
    monkeypatch.undo()
    assert [place_of(matcher) for matcher in matchers] == before
    monkeypatch.setattr(accepting, "push_tokens", fail)
    with pytest.raises(error):
        constrain.accept_token_batch(matchers, tokens)
    monkeypatch.undo()
    assert [place_of(matcher) for matcher in matchers] == before
    assert all(constrain.accept_token_batch(matchers, tokens))


@pytest.mark.parametrize("most", [None, 400])
def test_known_drafts_take_one_kernel_call(monkeypatch: pytest.MonkeyPatch, most: int | None) -> None:
    compiled = COMPILER.compile(GRAMMARS["regex"])
    matchers = [Matcher(compiled, most) for _ in range(5)]
    drafts = [[TOKENS.index(b"ab"), TOKENS.index(b"1"), TOKENS.index(b"2"), END]] * 5
    mask = constrain.allocate_token_bitmask(25, VOCABULARY.size)
    assert constrain.fill_draft_bitmasks(matchers, drafts, None, mask) == [4] * 5
    monkeypatch.setattr(drafts_module, "run_jobs", lambda jobs, threads: pytest.fail("followed") if jobs else None)
    expected = mask.copy()
    mask[:] = 0
    assert constrain.fill_draft_bitmasks(matchers, drafts, None, mask) == [4] * 5
    assert (mask == expected).all()


def test_numbers_that_fit_no_row_and_no_place() -> None:
    """A sum of two went around: of a text that had ended, rows of zeros were written beside the mask."""
    compiled = constrain.GrammarCompiler(VOCABULARY).compile(constrain.Grammar.from_regex("a*"))
    matcher, ended = constrain.Matcher(compiled), constrain.Matcher(compiled)
    token = VOCABULARY.tokens.index(b"a")
    assert ended.accept_token(VOCABULARY.eos_ids[0])
    around = np.full((9, WORDS), 5, np.int32)
    mask = around[3:6]
    for row in (2**63 - 1, 2**63 - 2, np.uint64(2**64 - 1)):
        for each in (matcher, ended):
            with pytest.raises(constrain.ConstrainError, match="rows that the mask does not have"):
                constrain.fill_draft_bitmasks([each], [[token]], None, mask, first_rows=[row])
    with pytest.raises(constrain.ConstrainError, match="neither -1 nor the place of a token before"):
        constrain.fill_draft_bitmasks([matcher], [[token]], [np.array([2**64 - 1], np.uint64)], mask)
    with pytest.raises(constrain.ConstrainError, match=r"token id [0-9]+ is out of range"):
        constrain.fill_draft_bitmasks([matcher], [np.array([2**64 - 1], np.uint64)], None, mask)
    assert (around == 5).all()
