"""Merges are read out of JSON by a kernel, and are what the plain way gives."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrain.errors import TokenizerError
from constrain.tokenizers.formats.tokenizer_json import parse_tokenizer_json
from constrain.tokenizers.models.merge_ids import Pairs, ids_of_merges, is_merge, read_json_with_merges

TOKEN = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
PAIRS = st.lists(st.tuples(TOKEN, TOKEN), max_size=6)
ODD = ('"merges"', '\\"merges\\": [["a","b"]]', "],[", "\u2581", "\U0001f600", "\n\t\\/\b\f\r", "\x00\x1f")


def read(model, **options):
    content = {"vocab": {'"merges": [': 0, "merges": 1}, "model": model, "after": {"x": ["merges", ":", "["]}}
    data = json.dumps(content, **options).encode()
    found = read_json_with_merges(data)
    merges = found["model"]["merges"]
    found["model"] = {**found["model"], "merges": None}
    assert found == {**content, "model": {**model, "merges": None}}
    return merges


@given(PAIRS, st.sampled_from(ODD), st.booleans(), st.sampled_from([None, 1]))
def test_pairs(pairs, odd, ascii_only, indent):
    pairs = [*pairs, (odd, "x"), ("", odd)]
    found = read({"merges": [list(pair) for pair in pairs], "type": "BPE"}, ensure_ascii=ascii_only, indent=indent)
    assert isinstance(found, Pairs)
    assert [found[i] for i in range(len(found))] == [list(pair) for pair in pairs]
    joined = [f"{left} {right}" for left, right in pairs if " " not in left + right]
    whole = Pairs.of_texts(joined)
    assert [whole[i] for i in range(len(whole))] == [text.split(" ") for text in joined]
    for wrong in ("ab", "a b c", ""):
        with pytest.raises(ValueError, match="not a pair"):
            Pairs.of_texts([*joined, wrong])
    with pytest.raises(ValueError, match="not a pair"):
        Pairs.of_texts([*joined, "a b c", "d"])
    found = read({"merges": joined}, ensure_ascii=ascii_only, indent=indent)
    assert isinstance(found, Pairs)
    assert [found[i] for i in range(len(found))] == [text.split(" ") for text in joined]


@pytest.mark.parametrize(
    "merges",
    [["ab"], ["a b c"], [["a"]], [["a", "b", "c"]], [["a", 1]], [5], [None], [["a", ["b"]]], "ab", {"a": "b"}, None,
     [["a", "\ud800"]], [["\udc00", "a"]], [[]]],
    ids=repr,
)  # fmt: skip
def test_what_is_no_list_of_pairs_is_left_to_json(merges):
    assert read({"merges": merges}) == merges


@pytest.mark.parametrize("damage", ['["a","b"],]', '["a","b"', '["a" "b"]]', '["a\x01","b"]]', '["\\x","b"]]', "[,]]"])
def test_damaged_json_stays_an_error(damage):
    with pytest.raises(ValueError, match=r"line 1|Invalid"):
        read_json_with_merges(b'{"model": {"merges": [' + damage.encode() + b"}}")


def test_elsewhere_and_twice():
    for text in (
        '{"merges": [["a","b"]]}',
        '[{"merges": [["a","b"]]}]',
        '{"model": {"merges": []}, "merges": [["a","b"]]}',
    ):
        assert read_json_with_merges(text.encode()) == json.loads(text)
    assert read_json_with_merges(b'\xef\xbb\xbf{"model": {"merges": [["a","b"]]}}')["model"]["merges"][0] == ["a", "b"]


@given(st.lists(st.tuples(TOKEN, TOKEN), max_size=8), st.booleans())
def test_ids(pairs, complete):
    ids = {"unrelated": 7}
    for left, right in pairs:
        for token in (left, right, left + right) if complete else (left, right):
            ids.setdefault(token, 3 * len(ids))
    right_ones = all(is_merge(pair, ids) for pair in pairs)
    assert right_ones == all(left and right and {left, right, left + right} <= ids.keys() for left, right in pairs)
    if not right_ones or "" in ids:
        if not right_ones:
            with pytest.raises(ValueError, match="not a pair"):
                ids_of_merges(pairs, ids)
        return
    found = ids_of_merges(pairs, ids)
    assert [column.tolist() for column in found] == [
        [ids[left] for left, _ in pairs], [ids[right] for _, right in pairs], [ids[a + b] for a, b in pairs]
    ]  # fmt: skip


def test_the_wrong_one_is_named(small_json):
    for wrong, said in (("zz qq", r"\['zz', 'qq'\]"), (["zz", "qq"], r"\['zz', 'qq'\]"), ("abc", "'abc'")):
        merges = [*small_json["model"]["merges"], wrong]
        content = {**small_json, "model": {**small_json["model"], "merges": merges}}
        with pytest.raises(TokenizerError, match=rf"merge {len(merges) - 1}, {said}, is not a pair of tokens"):
            parse_tokenizer_json(json.dumps(content).encode())
