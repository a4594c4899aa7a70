"""Vocabulary: what the tokens of a model are, in bytes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import operator
import re
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from constrain.engine.storage import schemas, tables
from constrain.engine.vocabulary import files as vocabulary_files
from constrain.engine.vocabulary.encoder import Encoder
from constrain.engine.vocabulary.shared_masks import SharedMasks
from constrain.engine.vocabulary.trie import BYTE_GROUP, TokenTrie
from constrain.errors import ConstrainError

if TYPE_CHECKING:
    from constrain.tokenizers.base import Tokenizer

NORMAL, SPECIAL, END = 0, 1, 2
"""Kinds of token: allowed by its bytes; never allowed; allowed when the text may end."""

# Blanks behind another byte of a token; where there may be so many, it does not matter whether there are fewer.
_INNER_BLANKS = re.compile(rb"[^ \t]([ \t]+)")
_SHORT_INDENT = 32
_MOST_TOKENS = 1 << 24


def _padding(count: int, size: int | None) -> int:
    """How many ids without a token follow those of a tokenizer."""
    if size is None:
        return 0
    if isinstance(size, bool) or not hasattr(size, "__index__"):
        raise ConstrainError(f"size must be a number of tokens, not {size!r}")
    most = operator.index(size)
    if most < count:
        raise ConstrainError(f"size {most} is too small: the tokenizer has {count} tokens")
    if most > _MOST_TOKENS:
        raise ConstrainError(f"size {most} is too large: at most {_MOST_TOKENS} tokens are supported")
    return most - count


class Vocabulary:
    """The tokens of a model, immutable and shared by every grammar that is compiled for it.

    Parameters
    ----------
    tokens : sequence of bytes
        The bytes of token ``i`` at position ``i``.  Several tokens may have the same bytes; a
        token may be invalid UTF-8 on its own.  An empty token that is not special is allowed
        wherever the text may still go on or end, since it adds nothing.
    eos_ids : iterable of int
        Tokens that end the text.  They are allowed exactly when the text is complete, whatever
        their bytes are.
    special_ids : iterable of int
        Tokens that are never allowed, whatever their bytes are, but where a grammar names them.  (An id may be in
        both; it is then an end token.)
    names : mapping of int to str, optional
        What special tokens and end tokens are called in grammars (``<|eot_id|>``); by default the text of their bytes.
        A special token without a name and without bytes is an id that the model does not use.

    Raises
    ------
    ConstrainError
        If there is no token, an entry is not bytes, a name is no text or that of a token that is not special, or an id
        is out of range.

    Attributes
    ----------
    size : int
        Number of tokens, which is the number of bits in a mask.
    tokens : tuple of bytes
        Made when first asked for.
    eos_ids, special_ids : tuple of int
        Sorted.
    names : dict of int to str
        Of the special tokens and end tokens that have one.
    text_ids : int64[n]
        The tokens that are allowed by their bytes, in increasing order.
    spelled_ids : frozenset of int
        The tokens that have a spelling instead of bytes; none but in a view (token_spellings.py).
    inner_blanks : int
        How many blanks and tabs may stand behind another byte of a token, in a row, at most.
    tokenizer : Encoder or None
        The tokenizer that it was made from, where :meth:`from_tokenizer` made it.  Copies and pickles do not have it.
    shared : SharedMasks
        What its grammars have in common.
    shared_tables : int64[3 * n]
        The tables that kernels read, as :class:`~..storage.tables.Tables` takes them; valid while the vocabulary lives.
    """

    spelled_ids: frozenset[int] = frozenset()
    tokenizer: Encoder | None

    def __init__(
        self,
        tokens: Sequence[bytes],
        eos_ids: Iterable[int] = (),
        special_ids: Iterable[int] = (),
        names: Mapping[int, str] | None = None,
    ) -> None:
        try:
            listed = tuple(tokens)
        except TypeError:
            raise ConstrainError(f"tokens must be a list of bytes, not {type(tokens).__name__}") from None
        if set(map(type, listed)) - {bytes}:
            for index, token in enumerate(listed):
                if not isinstance(token, bytes):
                    raise ConstrainError(f"token {index} is {type(token).__name__}, not bytes")
        self._set_tokens(listed)
        self._set_kinds(eos_ids, special_ids, names)

    def _set_tokens(self, tokens: tuple[bytes, ...]) -> None:
        self.__dict__["tokens"] = tokens
        self._set_bytes(b"".join(tokens), np.fromiter(map(len, tokens), np.int64, len(tokens)))

    def _set_bytes(self, blob: bytes, lengths: np.ndarray[Any, Any]) -> None:
        self.size = len(lengths)
        if self.size == 0:
            raise ConstrainError("a vocabulary needs at least one token")
        self._blob = blob
        self.data = np.frombuffer(blob or b"\0", np.uint8).copy()
        self.starts = np.zeros(self.size + 1, np.int64)
        np.cumsum(lengths, out=self.starts[1:])

    def _set_kinds(
        self, eos_ids: Iterable[int], special_ids: Iterable[int], names: Mapping[int, str] | None = None
    ) -> None:
        """All but the tokens."""
        self.eos_ids = self._check_ids(eos_ids, "eos_ids")
        self.special_ids = self._check_ids(special_ids, "special_ids")

        self.names = self._check_names(names)
        self.tokenizer = None

        kinds = np.zeros(self.size, np.uint8)
        kinds[list(self.special_ids)] = SPECIAL
        kinds[list(self.eos_ids)] = END
        self._make_tables(kinds, np.flatnonzero(kinds == NORMAL))

    @cached_property
    def tokens(self) -> tuple[bytes, ...]:
        """The bytes of every token.

        Made when first asked for: 100,000 objects take 10 ms, and a process that begins needs few of them.
        """
        blob = self._blob
        return tuple([blob[begin:end] for begin, end in pairwise(self.starts.tolist())])

    def token_bytes(self, token: int) -> bytes:
        """The bytes of one token, without those of all others."""
        return self._blob[self.starts[token] : self.starts[token + 1]]

    def longest_behind(self, byte: int) -> int:
        """How many bytes a token has at most behind a byte (0 to 255) in it; 0 if no token has the byte."""
        if byte not in self._longest_behind:
            places = np.flatnonzero(self.data == byte)
            ends = self.starts[np.searchsorted(self.starts, places, side="right")]
            self._longest_behind[byte] = int((ends - places).max(initial=1)) - 1
        return self._longest_behind[byte]

    @cached_property
    def _longest_behind(self) -> dict[int, int]:
        return {}

    def _make_tables(self, kinds: np.ndarray[Any, np.dtype[np.uint8]], text_ids: np.ndarray[Any, Any]) -> None:
        """Make all that grammars need; ``text_ids`` (int64[n]) are the tokens that are in the trie."""
        self.kinds = kinds
        self.text_ids = text_ids
        # Of bytes, one is read in a fifth of the time that an array takes.
        self.kind_bytes = kinds.tobytes()
        # A token may be both in the trie and an end token, if a grammar names it (token_spellings.py).
        members = kinds.copy()
        members[text_ids] |= 4
        files = vocabulary_files.VocabularyFiles(self.data, self.starts, members)
        self.trie = files.load_trie() or self._build_trie(files)
        lengths = np.diff(self.starts)
        long = [self.token_bytes(token) for token in np.flatnonzero(lengths > _SHORT_INDENT).tolist()]
        runs = (len(found[1]) for token in long for found in _INNER_BLANKS.finditer(token))
        self.inner_blanks = max([_SHORT_INDENT, *runs])
        self.empty_ids = text_ids[self.starts[1:][text_ids] == self.starts[:-1][text_ids]].astype(np.int32)
        self._tables = {
            schemas.TRIE_NODES: self.trie.node,
            schemas.SUBTREE_SIZES: self.trie.size,
            # Found once it is needed; behind the last node it says whether it has been.
            schemas.TRIE_HEIGHT: np.zeros(len(self.trie.size) + 1, np.int32),
            schemas.CHILD_GROUPS: self.trie.children,
            schemas.BYTE_GROUP: BYTE_GROUP,
            schemas.NODE_TOKENS: self.trie.token,
            schemas.SUBTREES: self.trie.subtrees,
            schemas.TOKENS_IN_ORDER: self.trie.in_order,
            schemas.NODES_BY_BYTE: self.trie.by_byte,
            schemas.BYTE_STARTS: self.trie.byte_starts,
            schemas.TOKENS_BY_LENGTH: self.trie.by_length,
            schemas.WIDE_NODES: self.trie.wide,
            schemas.WIDE_MASKS: self.trie.wide_masks,
            schemas.WIDE_ENDS: self.trie.wide_ends,
            schemas.WIDE_FIRST: self.trie.wide_first,
            schemas.WIDE_CHILD: self.trie.wide_child,
            schemas.SAME_BYTES: self.trie.same,
            schemas.TOKEN_STARTS: self.starts,
            schemas.TOKEN_BYTES: self.data,
            schemas.EMPTY_TOKENS: self.empty_ids,
            schemas.EOS_TOKENS: np.array(self.eos_ids, np.int32),
        }
        self.shared = SharedMasks(self.size, files)
        self._tables |= self.shared.tables
        self._local = threading.local()
        # By what is different in them (views.py).
        self.views: OrderedDict[Hashable, Vocabulary] = OrderedDict()
        # Of a view: compiled grammars for it, by those for the vocabulary that it is a view of, as long as these live.
        self.twins: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        self.shared_tables = tables.sharing(self._tables)

    def _build_trie(self, files: vocabulary_files.VocabularyFiles) -> TokenTrie:
        trie = TokenTrie(self.data, self.starts, self.text_ids)
        files.save_trie(trie)
        return trie

    def _check_ids(self, ids: Iterable[int], name: str) -> tuple[int, ...]:
        if not isinstance(ids, Iterable):
            raise ConstrainError(f"{name} must be a list of token ids, not {ids!r}")
        checked = set()
        for value in ids:
            try:
                index = operator.index(value)
            except TypeError:
                raise ConstrainError(f"{name}: {value!r} is not an integer") from None
            if not 0 <= index < self.size:
                raise ConstrainError(f"{name}: {index} is out of range, the vocabulary has {self.size} tokens")
            checked.add(index)
        return tuple(sorted(checked))

    def _check_names(self, names: Mapping[int, str] | None) -> dict[int, str]:
        checked: dict[int, str] = {}
        special = {*self.special_ids, *self.eos_ids}
        for token in sorted(special):
            data = self.token_bytes(token)
            with contextlib.suppress(UnicodeDecodeError):
                if data:
                    checked[token] = data.decode()
        for value, name in (names or {}).items():
            (token,) = self._check_ids([value], "names")
            if token not in special:
                raise ConstrainError(f"names: token {token} is not special, it stands for its bytes")
            if not isinstance(name, str) or not name:
                raise ConstrainError(f"names: the name of token {token} must be a text, not {name!r}")
            checked[token] = name
        return dict(sorted(checked.items()))

    def without_spellings(self, data: bytes) -> bytes:
        """Some bytes of a text without the spellings of tokens: ordinary tokens have text, special ones have none."""
        return data

    def shown(self, token: int) -> bytes:
        """What to show of a token: its bytes, or the name of a special one."""
        return self.token_bytes(token) or self.names.get(token, "").encode()

    @classmethod
    def from_tokenizer(
        cls, tokenizer: Tokenizer | Any, eos_ids: Iterable[int] | None = None, *, size: int | None = None
    ) -> Vocabulary:
        """The vocabulary of a tokenizer from :func:`constrain.load_tokenizer`.

        Ids without bytes (special and unused ones) become special tokens.

        Parameters
        ----------
        tokenizer
            Anything with ``tokens_as_bytes() -> list[bytes | None]`` and ``eos_ids``; what is special is called as
            ``id_to_token`` says, if there is such a method.  Where there is ``packed_tokens()``
            (constrain/tokenizers/packed_strings.py), the tokens are taken from there, in one piece.
        eos_ids : iterable of int, optional
            Overrides the tokenizer's own.
        size : int, optional
            How many logits the model has, where it pads its output: the ids beyond the tokenizer's are never allowed,
            and masks have their width.

        Raises
        ------
        ConstrainError
            If it is no such tokenizer, or has more tokens than ``size``.
        """
        if not hasattr(tokenizer, "tokens_as_bytes"):
            raise ConstrainError(
                f"from_tokenizer takes a tokenizer of constrain.load_tokenizer, not {type(tokenizer).__name__}: "
                "for those of other libraries there is Vocabulary.from_huggingface"
            )
        ends = tokenizer.eos_ids if eos_ids is None else eos_ids
        if hasattr(tokenizer, "packed_tokens"):
            packed = tokenizer.packed_tokens()
            count = len(packed)
            lengths = np.concatenate([packed.lengths, np.full(_padding(count, size), -1, np.int32)])
            special = np.flatnonzero(lengths < 0).tolist()
            vocabulary = cls.__new__(cls)
            vocabulary._set_bytes(packed.blob, np.maximum(lengths, 0))
            vocabulary._set_kinds(ends, special)
        else:
            tokens = tokenizer.tokens_as_bytes()
            count = len(tokens)
            tokens = [*tokens, *[None] * _padding(count, size)]
            special = [index for index, token in enumerate(tokens) if token is None]
            vocabulary = cls([token or b"" for token in tokens], eos_ids=ends, special_ids=special)
        vocabulary.tokenizer = tokenizer if hasattr(tokenizer, "encode") else None
        name_of = getattr(tokenizer, "id_to_token", None)
        if name_of is not None:
            # Ids behind the tokenizer's have no name.
            named = {token: name_of(token) for token in {*special, *vocabulary.eos_ids} if token < count}
            vocabulary.names = vocabulary._check_names({token: name for token, name in named.items() if name})
        return vocabulary

    @classmethod
    def from_huggingface(
        cls, tokenizer: Any, size: int | None = None, *, eos_ids: Iterable[int] | None = None
    ) -> Vocabulary:
        """The vocabulary of a tokenizer of ``transformers`` or ``tokenizers``, or of another library that is known.

        Parameters
        ----------
        tokenizer
            What ``AutoTokenizer.from_pretrained`` returns, a ``tokenizers.Tokenizer``, or anything else that
            :func:`constrain.tokenizers.adapters.adapt` takes.
        size : int, optional
            How many logits the model has (``model.config.vocab_size``), where it pads its output: the ids beyond the
            tokenizer's are never allowed, and masks have their width.
        eos_ids : iterable of int, optional
            The tokens that end a text, where the tokenizer does not say or names only one of several.

        Raises
        ------
        TokenizerError
            If no such library is known, or the tokens have no exact bytes.
        ConstrainError
            If the tokenizer has more tokens than ``size``, or an id is out of range.
        """
        from constrain.tokenizers.adapters import adapt

        return cls.from_tokenizer(adapt(tokenizer), eos_ids, size=size)

    @cached_property
    def digest(self) -> str:
        """A hash of the tokens, of what they are, and of the names of special ones; in hexadecimal digits.

        Vocabularies with the same digest give the same masks.
        """
        digest = hashlib.blake2b(json.dumps(list(self.names.items())).encode(), digest_size=16)
        for array in (self.starts, self.data, self.kinds):
            digest.update(array.data)
        return digest.hexdigest()

    @cached_property
    def text_bits(self) -> np.ndarray[Any, np.dtype[np.int32]]:
        """The tokens that are allowed by their bytes, as a row of a mask: int32[words]."""
        bits = np.zeros(-(-self.size // 32) * 32, np.uint8)
        bits[self.text_ids] = 1
        return np.packbits(bits, bitorder="little").view("<i4").astype(np.int32)

    def scratch(self) -> tuple[int, int, np.ndarray[Any, Any]]:
        """(address, length, the array) of an int32 array for a walk's results; each thread has its own."""
        found: tuple[int, int, np.ndarray[Any, Any]] | None = getattr(self._local, "found", None)
        if found is None:
            array = np.empty(self.size + 1, np.int32)
            found = self._local.found = array.ctypes.data, len(array), array
        return found

    def __reduce__(self) -> Any:
        # The tables hold addresses, so a copy has to make its own.
        return Vocabulary, (self.tokens, self.eos_ids, self.special_ids, self.names)

    @property
    def nbytes(self) -> int:
        """Memory of the tables, in bytes (without the ``tokens`` themselves)."""
        return int(self.kinds.nbytes + sum(array.nbytes for array in self._tables.values()))

    def __repr__(self) -> str:
        ends = ", ".join(map(str, self.eos_ids[:4])) + (", ..." if len(self.eos_ids) > 4 else "")
        return f"<Vocabulary: {self.size:,} tokens, {f'ends with {ends}' if ends else 'no end tokens'}>"


def check_vocabulary(value: object, taker: str) -> None:
    """Raise TypeError if a value is no vocabulary: a tokenizer, for example."""
    if not isinstance(value, Vocabulary):
        raise TypeError(
            f"{taker} takes a Vocabulary, not {type(value).__name__}: "
            "Vocabulary.from_tokenizer(tokenizer), or Vocabulary.from_huggingface(tokenizer)"
        )
