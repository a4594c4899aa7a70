"""What each token adds to a text, by itself and as the first one, against Hugging Face's library."""

from __future__ import annotations

import json
import unicodedata

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizer_json_files import KINDS, MARK, bert_like, byte_level, llama_like, split, t5_like, words_like
from tokenizers import decoders, models

from constrain.errors import TokenizerError
from constrain.tokenizers import DecodeStream
from constrain.tokenizers.adapters import adapt
from constrain.tokenizers.formats.tokenizer_json import parse_tokenizer_json

ADDED = (
    ("Foo Bar", False, False),
    ("Caf\u00e9 Ro\u0308d", True, False),
    (MARK + MARK, False, False),
    (MARK + "x" + MARK, False, False),
    ("##Zed", False, False),
    (" lead", False, False),
    ("\u0120byte", False, False),
    ("\u00e9", False, False),
    ("\u65e5\u00e9", False, False),
    ("do not", False, False),
    (MARK + "SP", False, True),
    ("\u00fc", False, True),
    ("<|plain|>", False, True),
)
"""Contents of added tokens, whether they are looked for in normalized text, and whether they are special.

None is both: the library forgets that a token is special whose spelling a normalizer changes.
"""


def with_added(content, added=ADDED):
    """The file with these tokens added, and their ids."""
    vocab = content["model"]["vocab"]
    taken = set(vocab) if isinstance(vocab, dict) else {piece for piece, _ in vocab}
    place = 1 + max([*(vocab.values() if isinstance(vocab, dict) else (len(vocab) - 1,))])
    for text, normalized, special in added:
        if text not in taken:
            flags = {"single_word": False, "lstrip": False, "rstrip": False}
            entry = {"id": place, "content": text, "normalized": normalized, "special": special, **flags}
            content["added_tokens"].append(entry)
            place += 1
    return content


def no_decoder():
    content = llama_like()
    content["decoder"] = None
    return content


def metaspace_never():
    content = t5_like()
    content["decoder"]["prepend_scheme"] = "never"
    return content


def byte_level_nfc():
    content = byte_level(split(r"\p{N}"))
    content["normalizer"] = {"type": "NFC"}
    return content


OUTPUT_KINDS = {
    **{name: KINDS[name] for name in ("llama", "mistral", "gemma", "t5", "bert uncased", "words", "deepseek")},
    "cased, not cleaned": lambda: bert_like(lowercase=False) | {"decoder": json.loads(
        decoders.WordPiece(cleanup=False).__getstate__()
    )},
    "no decoder": no_decoder,
    "words without decoder": words_like,
    "never": metaspace_never,
    "byte level, NFC": byte_level_nfc,
}  # fmt: skip


@pytest.fixture(scope="module", params=OUTPUT_KINDS)
def both(request):
    text = json.dumps(with_added(OUTPUT_KINDS[request.param]()))
    return tokenizers.Tokenizer.from_str(text), parse_tokenizer_json(text.encode())


def is_byte(reference, token_id):
    token = reference.id_to_token(token_id)
    return token is not None and token.startswith("<0x") and len(token) == 6


def test_every_token_behind_another_one(both):
    reference, ours = both
    adapted = adapt(reference)
    anchor = next(i for i in range(280, ours.vocab_size) if (ours.token_bytes(i) or b"").strip().isalpha())
    before = reference.decode([anchor], skip_special_tokens=False)
    checked = 0
    for token_id in range(ours.vocab_size):
        expected = reference.decode([anchor, token_id], skip_special_tokens=False)
        assert ours.decode([anchor, token_id], skip_special_tokens=False) == expected
        assert adapted.decode([anchor, token_id], skip_special_tokens=False) == expected
        assert ours.id_to_token(token_id) == reference.id_to_token(token_id)
        assert ours.token_to_id(ours.id_to_token(token_id)) == token_id
        data = ours.token_bytes(token_id)
        if data is not None and not is_byte(reference, token_id):
            assert data.decode("utf-8", "replace") == expected[len(before) :]
            assert adapted.token_bytes(token_id) == data
            checked += 1
    assert checked > 200


@pytest.mark.parametrize("skip", [True, False])
def test_every_token_as_the_first_one(both, skip):
    reference, ours = both
    unknown = {ours.token_to_id("[UNK]"), ours.token_to_id("<unk>")}
    for token_id in set(range(ours.vocab_size)) - unknown:
        expected = reference.decode([token_id], skip_special_tokens=skip)
        assert ours.decode([token_id], skip) == expected
        stream = DecodeStream(ours, skip_special_tokens=skip)
        assert (stream.step(token_id) or "") + (stream.flush() or "") == expected


def test_any_tokens(both):
    reference, ours = both
    # An ill-formed sequence of bytes is one U+FFFD here, and one for each byte there.
    ids = [i for i in range(ours.vocab_size) if not is_byte(reference, i)]
    added = [token.id for token in ours.added_tokens]
    adapted = adapt(reference)

    @settings(max_examples=200)
    @given(st.lists(st.one_of(st.sampled_from(ids), st.sampled_from(added)), max_size=8), st.booleans())
    def check(chosen, skip):
        expected = reference.decode(chosen, skip_special_tokens=skip)
        for tokenizer in (ours, adapted):
            if skip and any(i in tokenizer.special_ids for i in chosen if i not in added):
                continue  # an unknown token that is not marked as special is text there
            assert tokenizer.decode(chosen, skip) == expected
            stream = DecodeStream(tokenizer, skip_special_tokens=skip)
            assert "".join(stream.step_batch(chosen)) + (stream.flush() or "") == expected

    check()


def test_added_tokens_are_found_by_content_and_by_spelling():
    content = with_added(llama_like())
    ours = parse_tokenizer_json(json.dumps(content).encode())
    reference = tokenizers.Tokenizer.from_str(json.dumps(content))
    for token in ours.added_tokens:
        assert ours.token_to_id(token.content) == reference.token_to_id(token.content) == token.id
        assert ours.token_to_id(ours.id_to_token(token.id)) == token.id
    text = "x Foo Bar  Caf\u00e9 Ro\u0308d <|plain|>"
    assert ours.encode(text).ids == reference.encode(text, add_special_tokens=False).ids
    assert unicodedata.is_normalized("NFD", "Ro\u0308d")


@pytest.mark.parametrize("kind", ["bpe", "bpe with prefixes", "unigram"])
def test_the_byte_of_a_character_that_is_a_token_may_be_missing(kind):
    """Gemini's file has a token for the tab and none for its byte."""
    pieces = ["<unk>", "a", "\t", "##a", *(f"<0x{byte:02X}>" for byte in range(256) if byte != 0x09)]
    vocab = {piece: i for i, piece in enumerate(pieces)}
    if kind == "unigram":
        model = models.Unigram([(piece, -1.0) for piece in pieces], unk_id=0, byte_fallback=True)
    else:
        prefix = {"continuing_subword_prefix": "##"} if kind == "bpe with prefixes" else {}
        model = models.BPE(vocab, [], unk_token="<unk>", byte_fallback=True, **prefix)
    reference = tokenizers.Tokenizer(model)
    ours = parse_tokenizer_json(reference.to_str().encode())
    for text in ("\t", "a\ta", "\t\té\t", "aé\n\t", "é"):
        wanted = reference.encode(text)
        found = ours.encode(text)
        assert (found.ids, found.tokens) == (wanted.ids, wanted.tokens)
    for name in ("<0x0A>", "<0xC3>"):
        less = reference.to_str().replace(name, name.lower()).encode()
        with pytest.raises(TokenizerError, match="without a token for every byte"):
            parse_tokenizer_json(less)


def test_a_run_of_blanks_among_the_added_tokens():
    """Gemma 3 adds runs of blanks that are no special tokens; their bytes are blanks."""
    vocab = {"<unk>": 0, "a": 1, MARK: 2, MARK * 2: 3, **{f"<0x{b:02X}>": 4 + b for b in range(256)}}
    reference = tokenizers.Tokenizer(models.BPE(vocab, [], unk_token="<unk>", byte_fallback=True))
    reference.normalizer = tokenizers.normalizers.Replace(" ", MARK)
    reference.decoder = decoders.Sequence([decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse()])
    reference.add_tokens([tokenizers.AddedToken(MARK * 2, normalized=False)])
    ours = parse_tokenizer_json(reference.to_str().encode())
    ids = reference.encode("a" + MARK * 2 + "a").ids
    assert ids == [1, 3, 1]
    assert ours.encode("a" + MARK * 2 + "a").ids == ids
    assert ours.decode(ids) == reference.decode(ids) == "a  a"
    assert ours.token_bytes(3) == b"  "
