"""Text with marks is the text that str makes, and every character keeps the mark it had."""

from __future__ import annotations

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrain.tokenizers.chat.marked_text import (
    CONTENT,
    GENERATED,
    TEMPLATE,
    UNKNOWN,
    MarkedText,
    common_mark,
    generated,
    marks_of,
    origins_of,
    plain,
    where_generated,
    where_template,
    written_by,
)

# Characters that change their number when their case changes, line ends of all kinds, and separators.
letters = st.text("aAbß İΣǆ\n\r\x85ﬁ.,", max_size=12)
kinds = st.sampled_from([TEMPLATE, CONTENT])


@st.composite
def marked(draw):
    text = draw(letters)
    return MarkedText(text, bytes(draw(st.lists(kinds, min_size=len(text), max_size=len(text)))))


def by_identity(text: MarkedText) -> list[tuple[str, int]]:
    return list(zip(plain(text), marks_of(text), strict=True))


METHODS = [
    *((name, ()) for name in ("strip", "lstrip", "rstrip", "split", "rsplit", "splitlines")),
    *((name, (",",)) for name in ("strip", "lstrip", "rstrip", "split", "rsplit", "partition", "rpartition")),
    *((name, ("a",)) for name in ("removeprefix", "removesuffix", "split", "rsplit", "partition", "rpartition")),
    *((name, (None, 1)) for name in ("split", "rsplit")),
    *((name, ("a", 1)) for name in ("split", "rsplit")),
    ("splitlines", (True,)),
]


@given(marked())
def test_parts_of_a_text_keep_their_marks(text):
    for name, args in METHODS:
        expected = getattr(plain(text), name)(*args)
        found = getattr(text, name)(*args)
        assert found == expected
        assert type(found) in (type(expected), MarkedText)
        place = 0
        for piece in [found] if isinstance(found, MarkedText) else found:
            # The piece is a stretch of the text with its marks, behind the piece before.
            stretches = (by_identity(text)[i : i + len(piece)] for i in range(place, len(text) + 1))
            place += next(i for i, stretch in enumerate(stretches) if stretch == by_identity(piece))


def test_the_exact_place_of_a_part():
    text = MarkedText("ab ab", b"\1\1\1\2\2")
    assert [marks_of(piece) for piece in text.split()] == [b"\1\1", b"\2\2"]
    assert [marks_of(piece) for piece in text.rsplit("b")] == [b"\1", b"\1\2", b""]
    assert [marks_of(piece) for piece in text.rpartition("ab")] == [b"\1\1\1", b"\2\2", b""]
    assert [marks_of(piece) for piece in text.partition("ab")] == [b"", b"\1\1", b"\1\2\2"]
    assert [marks_of(piece) for piece in MarkedText("a  a ", b"\1\2\1\2\1").rsplit(None, 1)] == [b"\1", b"\2"]
    assert [marks_of(line) for line in MarkedText("a\na", b"\1\1\2").splitlines()] == [b"\1", b"\2"]


CASES = ("upper", "lower", "casefold", "swapcase", "title", "capitalize", "expandtabs")


@given(marked())
def test_changes_of_case(text):
    for name in CASES:
        found = getattr(text, name)()
        assert plain(found) == getattr(plain(text), name)()
        assert len(marks_of(found)) == len(found)
        if len(found) == len(text):
            assert marks_of(found) == marks_of(text)
        # Nothing that a message wrote becomes the template's.
        assert CONTENT not in origins_of(text) or TEMPLATE not in origins_of(found) or len(origins_of(found)) > 1
    assert marks_of(MarkedText("ßa", b"\2\1").upper()) == b"\2\2\1"
    assert marks_of(MarkedText("ﬁa", b"\2\1").title()) in (b"\0\0\0", b"\2\2\1")


@given(marked(), marked(), marked(), st.integers(-1, 3))
def test_sums_products_joins_and_replacements(text, old, new, count):
    both = text + old
    assert by_identity(both) == by_identity(text) + by_identity(old)
    assert by_identity("xy" + text) == [("x", UNKNOWN), ("y", UNKNOWN), *by_identity(text)]
    assert by_identity(text + "x") == [*by_identity(text), ("x", UNKNOWN)]
    assert by_identity(text * count) == by_identity(text) * count == by_identity(count * text)
    assert by_identity(old.join([text, "x", new])) == by_identity(text + old + "x" + old + new)
    replaced = text.replace(old, new, count)
    assert plain(replaced) == plain(text).replace(plain(old), plain(new), count)
    pieces = text.split(old, count) if old else None
    if pieces is not None:
        assert by_identity(replaced) == by_identity(new.join(pieces))
    elif count < 0:
        assert by_identity(replaced) == by_identity(new + MarkedText().join([c + new for c in text]))


@given(marked(), marked(), st.integers(0, 15))
def test_fields(text, value, width):
    for name in ("ljust", "rjust", "center"):
        found = getattr(text, name)(width, "*")
        assert plain(found) == getattr(plain(text), name)(width, "*")
        kept = [mark for character, mark in by_identity(found) if character != "*"]
        assert kept == list(marks_of(text))
    for template in ("<%s|%5s>", "%%%s%-9s", "%r%s", "%s%.2s"):
        form = MarkedText(template, TEMPLATE)
        found = form % (value, text)
        assert plain(found) == template % (plain(value), plain(text))
        origins = origins_of(found)
        assert origins <= {UNKNOWN, TEMPLATE, CONTENT}
        if CONTENT in origins_of([value, text]) and template == "<%s|%5s>":
            assert CONTENT in origins
    assert marks_of(MarkedText("<%s|%5s>", TEMPLATE) % (MarkedText("ab", CONTENT), 7)) == b"\1\2\2\1\1\1\1\1\1\1"
    assert marks_of(MarkedText("%(a)s!", TEMPLATE) % {"a": MarkedText("b", CONTENT)}) == b"\2\1"
    with pytest.raises(TypeError):
        MarkedText("%s%s", TEMPLATE) % (value,)


@given(marked(), st.slices(12))
def test_items_and_slices(text, part):
    assert by_identity(text[part]) == by_identity(text)[part]
    assert [by_identity(character)[0] for character in text] == by_identity(text)
    assert str(text) is text
    assert (hash(text), text) == (hash(plain(text)), plain(text))
    assert type(plain(text)) is str


def test_every_method_that_makes_text_keeps_or_hides_marks():
    """A method that Python adds to str would give text without marks, which is unknown and never the template's."""
    own = vars(MarkedText)
    makes_text = {"format", "format_map", "translate", "zfill", "center", "join", "replace", *CASES}
    makes_text |= {name for name, _ in METHODS} | {"ljust", "rjust"}
    makes_text |= {"__add__", "__mul__", "__mod__", "__getitem__", "__iter__"}
    assert makes_text <= own.keys()
    rest = {name for name in vars(str) if not name.startswith("_")} - own.keys()
    assert rest == {name for name in rest if name.startswith("is")} | {
        *("count", "encode", "endswith", "find", "index", "maketrans", "rfind", "rindex", "startswith")
    }


def test_marks_of_values():
    own, said = MarkedText("a", TEMPLATE), MarkedText("b", CONTENT)
    assert common_mark([own, {"x": 1}]) == UNKNOWN  # "x" has no mark
    assert common_mark([own, 3, None, ""]) == TEMPLATE == common_mark(5)
    assert common_mark((said, [said, (said,)])) == CONTENT
    assert common_mark((own, said)) == UNKNOWN == common_mark(iter([own])) == common_mark(b"bytes")
    ring = [own]
    ring.append(ring)
    assert common_mark(ring) == TEMPLATE
    assert marks_of(MarkedText("{}{}", TEMPLATE).format(said, own)) == b"\0\0"
    assert operator.mod(own, ()) == "a"
    value = written_by({"k": ["v", 1, None, True]}, CONTENT)
    assert value == {"k": ["v", 1, None, True]}
    assert origins_of(value) == {CONTENT}
    inside = generated(own + said) + own
    assert marks_of(inside) == bytes((TEMPLATE | GENERATED, CONTENT | GENERATED, TEMPLATE))
    assert where_template(marks_of(inside)) == b"\1\0\1"
    assert where_generated(marks_of(inside)) == b"\1\1\0"
