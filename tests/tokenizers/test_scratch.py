"""Working memory of threads: what is kept, and that results do not lie in it."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from tokenizer_texts import CORPUS, PIECES

from constrain.tokenizers import scratch as module
from constrain.tokenizers.models.symbol_bpe import SymbolBPE
from constrain.tokenizers.models.unigram import Unigram
from constrain.tokenizers.scratch import scratch


def test_small_arrays_are_kept_and_large_ones_are_not():
    first = scratch("test", 1000, np.int32)
    assert len(first) == 1000
    assert np.shares_memory(first, scratch("test", 500, np.int32))
    assert not np.shares_memory(first, scratch("other", 500, np.int32))
    large = scratch("test", module._KEPT, np.int32)
    assert len(large) == module._KEPT
    assert not np.shares_memory(large, scratch("test", module._KEPT, np.int32))


def models():
    tokens = dict(enumerate(sorted(set(CORPUS))))
    scores = np.linspace(-9, -1, len(tokens) + 1)
    yield Unigram(tokens, scores, unk=len(tokens), unknown_score=-20.0)
    yield SymbolBPE(tokens, scores=scores.astype(np.float32), unk=-1)


@pytest.mark.parametrize("model", list(models()), ids=["unigram", "symbols"])
def test_results_stay_as_they_are(model):
    texts = [np.frombuffer(bytearray(piece.encode()), dtype=np.uint8) for piece in (CORPUS, *PIECES, CORPUS * 50)]
    results, copies = [], []
    for data in texts:
        results.append(model.encode(data, np.array([len(data)], dtype=np.int32)))
        copies.append(results[-1].copy())
    for result, copy in zip(results, copies, strict=True):
        assert np.array_equal(result, copy)

    def again():
        for data, copy in zip(texts, copies, strict=True):
            wrong.append(not np.array_equal(model.encode(data, np.array([len(data)], dtype=np.int32)), copy))

    wrong: list[bool] = []
    threads = [threading.Thread(target=again) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(wrong) == 4 * len(texts)
    assert not any(wrong)
