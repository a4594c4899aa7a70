"""The bitmask: its layout, filling one row of it, and applying it to logits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from naive import tokens_of

import constrain
from constrain.grammar.ir import GrammarBuilder
from constrain.grammar.languages.regular import byte_set, literal

SIZES = [1, 31, 32, 33, 64, 100]


def matcher_of_one_byte(size: int, members: list[int]) -> constrain.Matcher:
    """Token ``i`` is the byte ``i`` (the last one EOS); the grammar is one byte out of ``members``."""
    tokens = [bytes((byte,)) for byte in range(size - 1)] + [b""]
    vocabulary = constrain.Vocabulary(tokens, eos_ids=[size - 1])
    builder = GrammarBuilder()
    grammar = constrain.Grammar(builder.finish(builder.lexeme(byte_set(members))))
    return constrain.Matcher(constrain.GrammarCompiler(vocabulary).compile(grammar))


def set_bits(mask: np.ndarray[Any, Any], row: int, tokens: list[int]) -> None:
    view = mask.view(np.uint32)
    for token in tokens:
        view[row, token // 32] |= np.uint32(1 << (token % 32))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("batch", [1, 3])
def test_allocation(batch: int, size: int) -> None:
    mask = constrain.allocate_token_bitmask(batch, size)
    assert mask.dtype == np.int32
    assert mask.shape == (batch, -(-size // 32))


@pytest.mark.parametrize(("batch", "size"), [(-1, 10), (1, 0), (1, -5)])
def test_allocation_refuses_bad_sizes(batch: int, size: int) -> None:
    with pytest.raises(constrain.ConstrainError):
        constrain.allocate_token_bitmask(batch, size)


@pytest.mark.parametrize("members", [[0], [31], [32], [0, 31, 32, 63, 64, 98], list(range(99))])
def test_bit_i_of_word_i_over_32(members: list[int]) -> None:
    matcher = matcher_of_one_byte(100, members)
    mask = constrain.allocate_token_bitmask(1, 100)
    matcher.fill_next_token_bitmask(mask, 0)
    expected = constrain.allocate_token_bitmask(1, 100)
    expected[:] = 0
    set_bits(expected, 0, members)
    assert tokens_of(mask[0], 100) == set(members) == tokens_of(expected[0], 100)


@pytest.mark.parametrize("row", [0, 1, 2])
@pytest.mark.parametrize("before", [0, -1])
def test_filling_touches_one_row_and_all_of_it(row: int, before: int) -> None:
    matcher = matcher_of_one_byte(100, [5, 40])
    mask = constrain.allocate_token_bitmask(3, 100)
    mask[:] = before
    matcher.fill_next_token_bitmask(mask, row)
    for other in range(3):
        if other == row:
            assert tokens_of(mask[other], 100) == {5, 40}
        else:
            assert (mask[other] == before).all()


def larger_masks() -> list[Any]:
    """Arrays with the mask in them, by what they are: how a scheduler may have laid out its memory."""
    words = -(-100 // 32)
    return [
        pytest.param(lambda: np.full((4, words + 3), -1, np.int32), id="wider"),
        pytest.param(lambda: np.full((8, 2 * words), -1, np.int32)[::2, :words], id="part of each second row"),
        pytest.param(lambda: np.full((4, 3 * words), -1, np.int32)[:, words : 2 * words + 1], id="middle of rows"),
        pytest.param(lambda: np.full((4, 2 * words), -1, np.int32)[:, ::2], id="each second word"),
        pytest.param(lambda: np.full((words, 4), -1, np.int32).T, id="columns"),
        pytest.param(lambda: np.asfortranarray(np.full((4, words + 1), -1, np.int32)), id="by columns, wider"),
        pytest.param(lambda: np.full((4, words), -1, np.int32)[::-1], id="from the end"),
        pytest.param(
            lambda: np.frombuffer(bytearray(b"\xff" * (16 * words + 1)), np.uint8)[1:].view(np.int32).reshape(4, words),
            id="between words",
        ),
    ]


def whole(view: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array that a view is of."""
    while isinstance(view.base, np.ndarray):
        view = view.base
    return view


@pytest.mark.parametrize("make", larger_masks())
@pytest.mark.parametrize("row", [0, 2, 3])
def test_rows_of_larger_arrays(make: Any, row: int) -> None:
    """They are filled in place, and what the row has behind the vocabulary is cleared; nothing else changes."""
    matcher = matcher_of_one_byte(100, [5, 40])
    words = -(-100 // 32)
    view = make()
    for _ in range(2):  # also where the mask is known
        view[...] = -1
        matcher.fill_next_token_bitmask(view, row)
        assert tokens_of(np.ascontiguousarray(view[row, :words]), 100) == {5, 40}
        assert not view[row, words:].any()
        view[row] = -1
        assert set(whole(view).tobytes()) == {0xFF}


@pytest.mark.parametrize("make", larger_masks())
def test_batches_into_larger_arrays(make: Any) -> None:
    matchers = [matcher_of_one_byte(100, [token]) for token in (7, 33, 98)]
    words = -(-100 // 32)
    view = make()
    constrain.fill_next_token_bitmask_batch(matchers, view, indices=[3, 0, 2])
    for row, token in ((3, 7), (0, 33), (2, 98)):
        assert tokens_of(np.ascontiguousarray(view[row, :words]), 100) == {token}
        assert not view[row, words:].any()
    view[[3, 0, 2]] = -1
    assert set(whole(view).tobytes()) == {0xFF}


def test_a_larger_array_after_the_end() -> None:
    matcher = matcher_of_one_byte(100, [5])
    assert matcher.accept_token(5)
    assert matcher.accept_token(99)
    wide = np.full((2, 10), -1, np.int32)
    matcher.fill_next_token_bitmask(wide, 1)
    assert (wide[0] == -1).all()
    assert not wide[1].any()


def test_plain_and_larger_masks_in_turn() -> None:
    """The way for the mask of the time before is not taken for another one."""
    matcher = matcher_of_one_byte(100, [5, 40])
    plain, wide = constrain.allocate_token_bitmask(1, 100), np.full((1, 9), -1, np.int32)
    for mask in (plain, wide, plain, wide, wide[:, :4], plain):
        mask[:] = -1
        matcher.fill_next_token_bitmask(mask)
        assert tokens_of(np.ascontiguousarray(mask[0, :4]), 100) == {5, 40}
        assert not mask[0, 4:].any()


def test_what_cannot_be_made_leaves_the_rows_of_a_larger_array(monkeypatch: pytest.MonkeyPatch) -> None:
    matchers = [matcher_of_one_byte(100, [token]) for token in (7, 33)]
    # A mask that a budget restricts is filled by itself.
    matchers[1] = constrain.Matcher(matchers[1].compiled, max_tokens=1)
    fill = constrain.Matcher.fill_next_token_bitmask

    def fails(self: Any, mask: Any, index: int = 0) -> None:
        if self is matchers[1]:
            raise constrain.LimitError("no room")
        fill(self, mask, index)

    monkeypatch.setattr(constrain.Matcher, "fill_next_token_bitmask", fails)
    wide = np.full((2, 6), -1, np.int32)
    with pytest.raises(constrain.LimitError):
        constrain.fill_next_token_bitmask_batch(matchers, wide)
    assert tokens_of(np.ascontiguousarray(wide[0, :4]), 100) == {7}
    assert (wide[1, :4] == -1).all()


@pytest.mark.parametrize(
    "take",
    [
        pytest.param(lambda tensor: tensor, id="wider"),
        pytest.param(lambda tensor: tensor[:, :4], id="part of each row"),
        pytest.param(lambda tensor: tensor[:, :4].clone(), id="plain"),
        pytest.param(lambda tensor: tensor.t().contiguous().t(), id="columns"),
    ],
)
def test_filling_torch(take: Any) -> None:
    torch = pytest.importorskip("torch")
    matchers = [matcher_of_one_byte(100, [5, 40]), matcher_of_one_byte(100, [98])]
    mask = take(torch.full((3, 6), -1, dtype=torch.int32))
    matchers[0].fill_next_token_bitmask(mask, 1)
    assert tokens_of(np.ascontiguousarray(mask[1, :4].numpy()), 100) == {5, 40}
    assert (mask[[0, 2]] == -1).all()
    assert not mask[1, 4:].any()
    constrain.fill_next_token_bitmask_batch(matchers, mask, indices=[2, 0])
    assert tokens_of(np.ascontiguousarray(mask[2, :4].numpy()), 100) == {5, 40}
    assert tokens_of(np.ascontiguousarray(mask[0, :4].numpy()), 100) == {98}
    assert not mask[:, 4:].any()


def test_filling_torch_on_a_device() -> None:
    """No device here: a tensor that says that it is on one, and has no memory that numpy could use."""
    torch = pytest.importorskip("torch")

    class OnDevice(torch.Tensor):  # type: ignore[misc, name-defined]
        is_cpu = False

        def numpy(self, *, force: bool = False) -> Any:
            raise TypeError("can't convert cuda:0 device type tensor to numpy")

        def cpu(self) -> Any:
            return self.as_subclass(torch.Tensor)

    matcher = matcher_of_one_byte(100, [5, 40])
    memory = torch.full((3, 6), -1, dtype=torch.int32)
    mask = memory.as_subclass(OnDevice)
    matcher.fill_next_token_bitmask(mask, 1)
    assert tokens_of(np.ascontiguousarray(memory[1, :4].numpy()), 100) == {5, 40}
    assert (memory[[0, 2]] == -1).all()
    constrain.fill_next_token_bitmask_batch([matcher, matcher.fork()], mask, indices=[2, 0])
    assert (memory[:, :4] == memory[1, :4]).all()
    assert not memory[:, 4:].any()


def test_filling_refuses_wrong_tensors() -> None:
    torch = pytest.importorskip("torch")
    matcher = matcher_of_one_byte(100, [5])
    for mask, message in (
        (torch.zeros((1, 4), dtype=torch.int64), "dtype int32, not int64"),
        (torch.zeros((1, 3), dtype=torch.int32), r"shape \[batch, 4\].*not \[1, 3\]"),
        (torch.zeros(4, dtype=torch.int32), r"not \[4\]"),
        (torch.zeros((0, 4), dtype=torch.int32), "the mask has 0 rows"),
        (torch.zeros((1, 4), dtype=torch.int32, device="meta"), "has no data"),
    ):
        with pytest.raises(constrain.ConstrainError, match=message) as caught:
            matcher.fill_next_token_bitmask(mask)
        assert "\n" not in str(caught.value)


def bad_masks() -> list[Any]:
    words = -(-100 // 32)
    return [
        pytest.param(np.zeros((1, words), np.int64), 0, id="int64"),
        pytest.param(np.zeros((1, words), np.float32), 0, id="float32"),
        pytest.param(np.zeros((1, 100), np.bool_), 0, id="bool"),
        pytest.param(np.zeros((1, words - 1), np.int32), 0, id="narrow"),
        pytest.param(np.zeros(words, np.int32), 0, id="one dimension"),
        pytest.param(np.zeros((1, 1, words), np.int32), 0, id="three dimensions"),
        pytest.param(np.zeros((2, words), np.int32), 2, id="index too large"),
        pytest.param(np.zeros((2, words), np.int32), -1, id="index negative"),
        pytest.param([[0] * words], 0, id="list"),
        pytest.param(None, 0, id="none"),
    ]


@pytest.mark.parametrize(("mask", "index"), bad_masks())
def test_filling_refuses_a_wrong_array(mask: Any, index: int) -> None:
    matcher = matcher_of_one_byte(100, [5])
    with pytest.raises(constrain.ConstrainError):
        matcher.fill_next_token_bitmask(mask, index)


def test_filling_refuses_a_read_only_array() -> None:
    mask = constrain.allocate_token_bitmask(1, 100)
    mask.setflags(write=False)
    with pytest.raises(constrain.ConstrainError):
        matcher_of_one_byte(100, [5]).fill_next_token_bitmask(mask, 0)


# -- applying ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("size", SIZES)
def test_applying_to_one_row(size: int, dtype: Any) -> None:
    mask = constrain.allocate_token_bitmask(1, size)
    mask[:] = 0
    allowed = [token for token in range(size) if token % 3 == 0]
    set_bits(mask, 0, allowed)
    logits = np.arange(size, dtype=dtype)
    constrain.apply_token_bitmask_inplace(logits, mask)
    expected = np.array([token if token % 3 == 0 else -np.inf for token in range(size)], dtype=dtype)
    np.testing.assert_array_equal(logits, expected)


def test_applying_to_a_batch() -> None:
    random = np.random.default_rng(0)
    logits = random.normal(size=(4, 70)).astype(np.float32)
    bits = random.random((4, 70)) < 0.5
    mask = constrain.allocate_token_bitmask(4, 70)
    mask[:] = 0
    for row in range(4):
        set_bits(mask, row, np.flatnonzero(bits[row]).tolist())
    expected = np.where(bits, logits, -np.inf)
    constrain.apply_token_bitmask_inplace(logits, mask)
    np.testing.assert_array_equal(logits, expected)


def test_applying_ignores_bits_beyond_the_logits() -> None:
    mask = constrain.allocate_token_bitmask(1, 40)
    mask[:] = -1
    logits = np.zeros(40, np.float32)
    constrain.apply_token_bitmask_inplace(logits, mask)
    assert (logits == 0).all()


def test_applying_forbids_logits_wider_than_the_mask() -> None:
    """Models pad their vocabulary; what the mask does not know is forbidden."""
    mask = constrain.allocate_token_bitmask(2, 64)
    mask[:] = -1
    logits = np.zeros((2, 100), np.float32)
    constrain.apply_token_bitmask_inplace(logits, mask)
    assert (logits[:, :64] == 0).all()
    assert (logits[:, 64:] == -np.inf).all()


@pytest.mark.parametrize(
    ("logits", "rows"),
    [
        pytest.param(np.zeros((2, 40), np.float32), 3, id="batch sizes differ"),
        pytest.param(np.zeros(40, np.int64), 1, id="integers"),
        pytest.param(np.zeros((1, 1, 40), np.float32), 1, id="three dimensions"),
        pytest.param([0.0] * 40, 1, id="list"),
    ],
)
def test_applying_refuses_wrong_logits(logits: Any, rows: int) -> None:
    with pytest.raises(constrain.ConstrainError):
        constrain.apply_token_bitmask_inplace(logits, constrain.allocate_token_bitmask(rows, 40))


def test_applying_refuses_a_wrong_mask() -> None:
    with pytest.raises(constrain.ConstrainError):
        constrain.apply_token_bitmask_inplace(np.zeros(40, np.float32), np.zeros((1, 2), np.int64))


def test_applying_to_torch() -> None:
    torch = pytest.importorskip("torch")
    mask = constrain.allocate_token_bitmask(2, 40)
    mask[:] = 0
    set_bits(mask, 0, [0, 39])
    set_bits(mask, 1, [31, 32])
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        logits = torch.zeros((2, 45), dtype=dtype)
        constrain.apply_token_bitmask_inplace(logits, mask)
        assert torch.isneginf(logits).logical_not().nonzero().tolist() == [[0, 0], [0, 39], [1, 31], [1, 32]]
        assert logits[0, 0] == 0
    logits = torch.zeros(40)
    constrain.apply_token_bitmask_inplace(logits, torch.from_numpy(mask[1:]))
    assert torch.isneginf(logits).logical_not().nonzero().flatten().tolist() == [31, 32]


def test_filled_mask_on_logits_end_to_end() -> None:
    tokens = [b"a", b"ab", b"b", b"c", b"</s>"]
    vocabulary = constrain.Vocabulary(tokens, eos_ids=[4])
    builder = GrammarBuilder()
    grammar = constrain.Grammar(builder.finish(builder.lexeme(literal("abc"))))
    matcher = constrain.Matcher(constrain.GrammarCompiler(vocabulary).compile(grammar))
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    said = b""
    while not matcher.is_terminated():
        matcher.fill_next_token_bitmask(mask, 0)
        logits = np.arange(len(tokens), dtype=np.float32)
        constrain.apply_token_bitmask_inplace(logits, mask)
        token = int(logits.argmax())
        assert matcher.accept_token(token)
        said += tokens[token] if token != 4 else b""
    assert said == b"abc"
