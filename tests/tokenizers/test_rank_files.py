"""The content of rank files: what the kernel reads is what Python reads line by line, or is left to Python."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrain.errors import TokenizerError
from constrain.tokenizers.formats.tiktoken_file import _ranks_line_by_line, _usual_ranks, parse_ranks

LINES = st.one_of(
    st.tuples(st.binary(min_size=1, max_size=9), st.integers(0, 10**9 + 5)).map(
        lambda pair: base64.b64encode(pair[0]) + b" %d" % pair[1]
    ),
    st.sampled_from([b"", b"YQ==", b"YQ 1", b"YQ= 1", b"YQ=== 1", b"YR== 1", b"YWI= 1", b"YWJ= 1", b"Y 1", b"= 1"]),
    st.sampled_from(
        [b"YQ==  1", b"YQ== 1 ", b" YQ== 1", b"YQ== -1", b"YQ== 1_0", b"YQ==\t1", b"Y-== 1", b"YQ==YQ== 1"]
    ),
)
ENDS = st.sampled_from([b"\n", b"\n", b"\n", b"\n", b"\r\n", b"\n\n", b" "])


@settings(max_examples=400)
@given(st.lists(st.tuples(LINES, ENDS), max_size=8), st.booleans())
def test_as_line_by_line(lines, has_end):
    data = b"".join(line + end for line, end in lines)
    data = data if has_end else data.rstrip(b"\n")
    found = _usual_ranks(data)
    if found is not None:
        assert list(found.items()) == list(_ranks_line_by_line(data).items())


def test_usual_files_are_read_by_the_kernel():
    tokens = [bytes([byte]) for byte in range(256)] + [b"the", b"ab", b"\xff\x00\xfe\x01"]
    ranks = dict(enumerate(tokens))
    data = b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in ranks.items())
    assert _usual_ranks(data) == _usual_ranks(data[:-1]) == parse_ranks(data) == ranks
    assert parse_ranks(data.replace(b"\n", b"\r\n")) == ranks


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"YQ== 1\nYg== 1\n", "line 2: rank 1 is there twice"),
        (b"YQ== 1\nYg=", "line 2 is not a token"),
        (b"", "no ranks"),
        (b"\n\n", "no ranks"),
        (b"YQ== 1 2\n", "line 1 is not"),
    ],
)
def test_errors_name_the_line(data, message):
    with pytest.raises(TokenizerError, match=message):
        parse_ranks(data)
