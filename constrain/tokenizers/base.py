"""What every tokenizer here has in common: text in, ids out, and ids back to bytes and to text.

Each file format has a reader, and each reader returns a :class:`Tokenizer`.  The rest of the project uses only this
interface.  The engine needs even less: the bytes of each token and the ids that end a generation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from hashlib import blake2b
from operator import itemgetter
from types import MappingProxyType
from typing import Any, ClassVar, cast

import numpy as np

from constrain.errors import TokenizerError
from constrain.tokenizers.arguments import checked_id, checked_text, checked_texts, listed_ids
from constrain.tokenizers.chat.control_tokens import control_tokens, reading_of_chat
from constrain.tokenizers.chat.marked_text import MarkedText, marks_of, plain, where_generated
from constrain.tokenizers.chat.templates import GENERATION_TAG, choose_template, render_chat
from constrain.tokenizers.chat.tool_descriptions import described_tools
from constrain.tokenizers.flat_decoding import FlatOutputs
from constrain.tokenizers.special_text import Disallowed, Reading, Special, first_refused, reading_of
from constrain.tokenizers.special_tokens import SpecialTokens
from constrain.tokenizers.threaded import map_on_threads, threads_of

_MANY_IDS = 100
"""For so many ids a kernel is faster than a table."""


class Encoding:
    """The tokens of one text.

    Attributes
    ----------
    ids : list of int
        Token ids.
    tokens : list of str
        The same as :meth:`Tokenizer.id_to_token` of each id.
    offsets : list of (int, int)
        For each token the characters of the input that it covers, as ``input[begin:end]``.  Where
        a character is spread over several tokens, each of them has the whole character.  A token
        that does not come from the input (``add_special_tokens=True``) has ``(0, 0)``.
    special_tokens_mask : list of int
        1 where the token was added and does not come from the input, else 0.
    """

    def __init__(
        self,
        ids: list[int],
        source: EncodingSource | Tokenizer,
        text: str | None = None,
        with_special: bool = False,
    ) -> None:
        """``source`` works out the other lists; or it is the tokenizer of ``text``, of which such a source is asked
        when a list is asked for.  ``with_special``: as ``add_special_tokens``."""
        # Side by side: one more object for each text is one more that the garbage collector goes through.
        self.ids = ids
        self._source: EncodingSource | Tokenizer | None = source
        self._text = text
        self._with_special = with_special

    @cached_property
    def tokens(self) -> list[str]:
        return self._known_source().tokens(self.ids)

    @cached_property
    def offsets(self) -> list[tuple[int, int]]:
        return self._known_source().offsets(self.ids)

    @cached_property
    def special_tokens_mask(self) -> list[int]:
        return self._known_source().special_tokens_mask(self.ids)

    def _known_source(self) -> EncodingSource:
        assert self._source is not None, "a pickled encoding has its lists filled in"
        if self._text is None:
            return cast("EncodingSource", self._source)
        source = cast("Tokenizer", self._source).source_of(self._text, self._with_special)
        self._source, self._text = source, None
        return source

    def hash(self) -> str:
        """A hash of the ids that is the same in every process and on every machine (32 hex digits)."""
        return blake2b(np.asarray(self.ids, dtype="<i8").tobytes(), digest_size=16).hexdigest()

    def __len__(self) -> int:
        return len(self.ids)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Encoding):
            return NotImplemented
        return self.ids == other.ids and self.offsets == other.offsets and self.tokens == other.tokens

    __hash__ = None  # type: ignore[assignment]  # its lists can be changed; hash() is for caches

    def __repr__(self) -> str:
        return f"Encoding(ids={self.ids})"

    def __getstate__(self) -> dict[str, Any]:
        return {
            "ids": self.ids,
            "tokens": self.tokens,
            "offsets": self.offsets,
            "special_tokens_mask": self.special_tokens_mask,
            "_source": None,
            "_text": None,
        }


class EncodingSource(ABC):
    """Works out the lists of an :class:`Encoding` when they are asked for."""

    @abstractmethod
    def tokens(self, ids: Sequence[int]) -> list[str]: ...

    @abstractmethod
    def offsets(self, ids: Sequence[int]) -> list[tuple[int, int]]: ...

    @abstractmethod
    def special_tokens_mask(self, ids: Sequence[int]) -> list[int]: ...


class Encoder(ABC):
    """Text to token ids."""

    @abstractmethod
    def encode(
        self,
        text: str,
        add_special_tokens: bool = False,
        *,
        special: Special = None,
        disallowed: Disallowed = "text",
    ) -> Encoding:
        """Split ``text`` into tokens.

        Parameters
        ----------
        text : str
        add_special_tokens : bool
            Add what the model expects around a text (such as a beginning-of-text token), where the file says what that
            is.
        special : "all", "none" or names of special tokens, optional
            Which special tokens are read where ``text`` spells them.  By default it is as the library of the file does
            it: all of them, and of a SentencePiece ``.model`` none.  Text from a stranger must be encoded with
            ``"none"``, or it can end its turn and begin another one.
        disallowed : "text" or "raise"
            What becomes of special tokens that ``special`` leaves out: they are encoded as the text that they are, or
            are an error.

        Raises :class:`TokenizerError` if ``text`` is no str, or holds a lone surrogate, a byte without a token or a
        special token that ``disallowed="raise"`` forbids.
        """

    def encode_ordinary(self, text: str, add_special_tokens: bool = False) -> Encoding:
        """:meth:`encode` of text that holds no special tokens, whatever it spells."""
        return self.encode(text, add_special_tokens, special="none")

    lets_threads_run: ClassVar[bool] = False
    """Whether other threads run while a text is encoded."""

    def encode_batch(
        self,
        texts: Iterable[str],
        add_special_tokens: bool = False,
        *,
        special: Special = None,
        disallowed: Disallowed = "text",
        threads: int | None = None,
    ) -> list[Encoding]:
        """:meth:`encode` for each text.

        ``threads``: on how many threads; by default on all cores where that gains time, as it does for long texts and a
        tokenizer of this package.

        Raises :class:`TokenizerError` as :meth:`encode` does, if ``texts`` is a str, and for ``threads`` below 1.
        """
        checked = checked_texts(texts)
        encode: Callable[[str], Encoding]
        if special is None and disallowed == "text":
            # A keyword takes as long as a word of the text.
            encode = partial(self.encode, add_special_tokens=True) if add_special_tokens else self.encode
        else:
            if not isinstance(special, str) and isinstance(special, Iterable):
                special = list(special)  # an iterator can be read once
            encode = partial(self.encode, add_special_tokens=add_special_tokens, special=special, disallowed=disallowed)
        count = threads_of(threads, checked, self.lets_threads_run)
        return map_on_threads(encode, checked, count) if count > 1 else list(map(encode, checked))


class Decoder(ABC):
    """Token ids to bytes, and to text."""

    @abstractmethod
    def decode_bytes(self, ids: Iterable[int], skip_special_tokens: bool = True) -> bytes:
        """The bytes of the tokens, one after the other.  What is no id, or an id without a token, is an error.

        What a token adds may depend on two things: whether an earlier token that is not skipped gave text, and, if none
        did, on the last such token.  Streams rely on this.
        """

    strips_leading_space: bool = False
    """Whether :meth:`decode` drops a space that the bytes begin with (SentencePiece puts one there)."""

    first_forms: Mapping[int, bytes] = MappingProxyType({})
    """What :meth:`decode` writes for a token at the beginning of a text (the first that is not skipped).

    Only for tokens where this is neither the bytes of the token nor these bytes without a space at their beginning."""

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = True) -> str:
        """The text of the tokens; ill-formed UTF-8 becomes U+FFFD."""
        data = self.decode_bytes(ids, skip_special_tokens)
        if self.strips_leading_space:
            data = data.removeprefix(b" ")
        return data.decode("utf-8", "replace")


class Tokenizer(Encoder, Decoder):
    """Text to token ids and back.  Immutable once made, so threads may share one; picklable.

    Attributes
    ----------
    vocab_size : int
        The largest id plus one.  Ids without a token are possible in between.
    special_tokens : SpecialTokens
        Ids by role.
    special_ids : frozenset of int
        All ids of special tokens.
    eos_ids : tuple of int
        The ids that end a generation, in increasing order; empty if the files do not say.
    chat_template : str, mapping of str to str, or None
        The Jinja template of :meth:`apply_chat_template`, or several by name; may be set at any time.
    """

    chat_template: str | Mapping[str, str] | None = None
    pair_template: tuple[tuple[str | tuple[int, ...], int], ...] | None = None
    """How two texts are put together (pairs.py): "A", "B" or ids, each with its type; None if the files do not say."""
    vocab_size: int
    special_tokens: SpecialTokens
    special_ids: frozenset[int]
    eos_ids: tuple[int, ...]
    # What decode joins, see _keep_texts: in the first one special tokens are empty.
    _kept_texts: Sequence[str | None] = ()
    _kept_full_texts: Sequence[str | None] = ()

    @abstractmethod
    def tokens_as_bytes(self) -> list[bytes | None]:
        """The bytes of every token, by id; ``None`` for special tokens and for ids without a token."""

    @abstractmethod
    def token_bytes(self, token_id: int) -> bytes | None:
        """The bytes of one token; ``None`` if it is special or if the id has no token."""

    @abstractmethod
    def token_to_id(self, token: str) -> int | None:
        """The id of a token given as :meth:`id_to_token` writes it, or ``None``."""

    @abstractmethod
    def id_to_token(self, token_id: int) -> str | None:
        """The token as the vocabulary writes it, which need not be its text; ``None`` without a token."""

    def get_vocab(self) -> dict[str, int]:
        """Every token as :meth:`id_to_token` writes it, and its id; of equal ones the first id counts."""
        spelled = ((self.id_to_token(token_id), token_id) for token_id in range(self.vocab_size - 1, -1, -1))
        return {text: token_id for text, token_id in spelled if text is not None}

    def with_added_tokens(
        self,
        texts: Iterable[str],
        *,
        special: bool = False,
        lstrip: bool = False,
        rstrip: bool = False,
        single_word: bool = False,
        normalized: bool | None = None,
    ) -> Tokenizer:
        """A tokenizer that has further tokens too; this one stays as it is.

        Parameters
        ----------
        texts : iterable of str
            What the tokens are spelled like.  They get the ids from ``vocab_size`` on, in this order; one that is in
            the vocabulary keeps its id, and is found before anything else from then on.  One that was added before
            is left as it is.
        special : bool
            They stand for no text: ``decode`` leaves them out, and ``special="none"`` takes their text for text.
        lstrip, rstrip : bool
            White space on that side is part of the token.
        single_word : bool
            Not within a word.
        normalized : bool, optional
            They are looked for in normalized text; by default those are that are not special, as in ``tokenizers``.

        Raises :class:`TokenizerError` for an empty text or one that is there twice, and if this kind of tokenizer takes
        no further tokens.
        """
        raise TokenizerError(f"{type(self).__name__} takes no further tokens; tokenizers that are read from files do")

    def count_tokens(self, text: str, add_special_tokens: bool = False, *, special: Special = None) -> int:
        """How many tokens :meth:`encode` makes of a text."""
        return len(self.encode(text, add_special_tokens, special=special).ids)

    def decode_batch(self, batch: Iterable[Iterable[int]], skip_special_tokens: bool = True) -> list[str]:
        """:meth:`decode` of each list of ids."""
        return [self.decode(ids, skip_special_tokens) for ids in batch]

    def spelled_special_tokens(self) -> Mapping[str, int]:
        """The special tokens that a text can spell, by their text there."""
        names: dict[str, int] | None = self.__dict__.get("_spelled_special")
        if names is None:
            spelled = ((self.id_to_token(token_id), token_id) for token_id in sorted(self.special_ids, reverse=True))
            names = self.__dict__["_spelled_special"] = {name: token_id for name, token_id in spelled if name}
        return names

    def spelled_added_tokens(self) -> Mapping[str, int]:
        """All tokens that are found in a text before anything else, special or not, by their text there."""
        return self.spelled_special_tokens()

    def read_text(self, text: str, add_special_tokens: bool, reading: Reading) -> Encoding:
        """:meth:`encode` where ``reading`` says which tokens are read; for chat templates.

        A class that does not define it takes text only where all tokens that are spelled are read.
        """
        refused = first_refused(text, reading, self.spelled_added_tokens())
        if refused is not None:
            raise TokenizerError(
                f"{type(self).__name__} cannot tell the token {refused!r} from the text that spells it"
            )
        return self.encode(text, add_special_tokens)

    def _reading(self, text: str, special: Special, disallowed: Disallowed) -> Reading | None:
        """What the arguments of :meth:`encode` mean; None: as without them."""
        if special is None and disallowed == "text":
            return None
        if special is None:
            raise TokenizerError("disallowed= needs special=, which says what is allowed")
        return reading_of(special, disallowed, checked_text(text), self.spelled_special_tokens(), self.special_ids)

    def source_of(self, text: str, add_special_tokens: bool) -> EncodingSource:
        """Works out the tokens and offsets of :meth:`encode` with these arguments; for tokenizers that put it off."""
        raise NotImplementedError

    def decode_bytes(self, ids: Iterable[int], skip_special_tokens: bool = True) -> bytes:
        if type(ids) is not list:
            ids = listed_ids(ids)
        if len(ids) >= _MANY_IDS:
            data = self._flat_outputs()[bool(skip_special_tokens)].join(ids)
            if data is not None:
                return data
        else:
            table = self._output_tables()[bool(skip_special_tokens)]
            try:
                # Of one id alone the getter gives no tuple.
                return b"".join(itemgetter(*ids)(table) if len(ids) > 1 else [table[token_id] for token_id in ids])
            except (IndexError, TypeError, ValueError):
                pass
        # At least one is no id or has no token: find it, and raise the error that names it.
        return b"".join([self._output_bytes(checked_id(token_id), skip_special_tokens) for token_id in ids])

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = True) -> str:
        # Every 0.1 us counts here.
        if type(ids) is list and 1 < len(ids) < _MANY_IDS:
            try:
                text = "".join(itemgetter(*ids)(self._kept_texts if skip_special_tokens else self._kept_full_texts))
            except (IndexError, TypeError, ValueError):  # an id that is here for the first time, or is none
                return self._decode_any(ids, skip_special_tokens)
            if not text.isascii():
                # A token may be a part of a character; a character is whole only now.
                text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            return text.removeprefix(" ") if self.strips_leading_space else text
        return self._decode_any(ids, skip_special_tokens)

    def _decode_any(self, ids: Iterable[int], skip_special_tokens: bool) -> str:
        is_short_list = type(ids) is list and 1 < len(ids) < _MANY_IDS
        ids = listed_ids(ids)
        data = self.decode_bytes(ids, skip_special_tokens)
        if self.first_forms:
            skipped = self.special_ids if skip_special_tokens else frozenset[int]()
            first = next((token_id for token_id in ids if token_id not in skipped), -1)
            if first in self.first_forms:
                rest = data[len(self.decode_bytes((first,), skip_special_tokens)) :]
                return (self.first_forms[first] + rest).decode("utf-8", "replace")
        elif is_short_list and type(self).decode_bytes is Tokenizer.decode_bytes:
            self._keep_texts(ids, bool(skip_special_tokens))
        if self.strips_leading_space:
            data = data.removeprefix(b" ")
        return data.decode("utf-8", "replace")

    def _keep_texts(self, ids: Iterable[Any], skip_special_tokens: bool) -> None:
        """Have :meth:`decode` find the texts of these ids, which have tokens.

        What is no UTF-8 by itself is kept as lone surrogates.  The lists are twice as long as the vocabulary: a
        negative index ends up among None.
        """
        if not self._kept_texts:
            self._kept_full_texts = [None] * (2 * self.vocab_size)
            # Last, for threads that do this at once.
            self._kept_texts = list(self._kept_full_texts) if self.special_ids else self._kept_full_texts
        texts = cast(list[str | None], self._kept_texts if skip_special_tokens else self._kept_full_texts)
        for token_id in map(checked_id, ids):
            if texts[token_id] is None:
                data = self._output_bytes(token_id, skip_special_tokens)
                texts[token_id] = data.decode("utf-8", "surrogateescape")

    def _flat_outputs(self) -> tuple[FlatOutputs, FlatOutputs]:
        """The same as :meth:`_output_tables`, for many ids at once."""
        outputs: tuple[FlatOutputs, FlatOutputs] | None = self.__dict__.get("_flat")
        if outputs is None:
            shown, without = self._output_tables()
            size = self.vocab_size
            outputs = self.__dict__["_flat"] = (FlatOutputs(shown[:size]), FlatOutputs(without[:size]))
        return outputs

    def _output_tables(self) -> tuple[list[bytes], list[bytes]]:
        """What each id adds to the output, with special tokens and without; ids without a token have None.

        Behind them stands None once more for each id: there a negative index ends up, which would find a token else.
        Made when first asked for.  Threads that do so at once make the same.
        """
        tables: tuple[list[bytes], list[bytes]] | None = self.__dict__.get("_outputs")
        if tables is None:
            shown: list[Any] = list(self.tokens_as_bytes())
            for token_id in [token_id for token_id, data in enumerate(shown) if data is None]:
                shown[token_id] = self._shown_bytes(token_id)
            without = list(shown)
            for token_id in self.special_ids:
                without[token_id] = b""
            for table in (shown, without):
                table += [None] * len(table)
            tables = self.__dict__["_outputs"] = (shown, without)
        return tables

    def apply_chat_template(
        self,
        messages: Sequence[Mapping[str, Any]] | Sequence[Sequence[Mapping[str, Any]]],
        *,
        tools: Iterable[Any] | None = None,
        documents: Iterable[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
        template: str | None = None,
        tokenize: bool = False,
        special: Special = "none",
        return_dict: bool = False,
        return_assistant_tokens_mask: bool = False,
        **variables: object,
    ) -> Any:
        """The text of a conversation, as the model was trained on it, or its tokens.

        Parameters
        ----------
        messages : list of mappings, or a list of such lists
            ``{"role": "user", "content": "..."}`` and so on: JSON, or Pydantic models.  Of several conversations the
            result is a list.
        tools : iterable, optional
            Descriptions with the JSON Schema of the arguments; or functions and Pydantic models, which are described
            (:mod:`constrain.tokenizers.chat.tool_descriptions`).
        documents : iterable of mappings, optional
        add_generation_prompt : bool
            End with what introduces the model's answer.
        continue_final_message : bool
            End within the last message, for the model to go on with it.
        template : str, optional
            The name of one of several templates, or a template, instead of the tokenizer's own.
        tokenize : bool
            Return token ids (list of int) instead of text.  What the template writes may become control tokens; what
            messages, tools, documents and ``variables`` hold stays text, however the template cuts and joins it.
            Encoding the text afterwards cannot tell the two apart.
        special : "none", "all" or names of special tokens
            With ``tokenize``: which special tokens are read in messages too, such as ``{"<image>"}``.
        return_dict : bool
            With ``tokenize``: return ``{"input_ids": [...], "attention_mask": [...]}``.
        return_assistant_tokens_mask : bool
            With ``tokenize``: the same with ``"assistant_masks"``: 1 for the tokens of what is within the template's
            ``{% generation %}``, else 0.
        variables
            Further variables of the template, such as ``enable_thinking``.

        Raises
        ------
        TokenizerError
            There is no template (the message says how to give one), it has an error, or it refuses the conversation.
            It cannot be told whether the template or a message wrote a control token.  There is no
            ``{% generation %}`` for a mask.
        LimitError
            The template wants too much time or memory.
        """
        if not tokenize and (return_dict or return_assistant_tokens_mask or special != "none"):
            raise TokenizerError("special=, return_dict= and return_assistant_tokens_mask= need tokenize=True")
        source = choose_template(self.chat_template, template, tools is not None)
        named = {f"{role}_token": self.id_to_token(token_id) for role, token_id in self.special_tokens.roles().items()}
        batch = isinstance(messages, list | tuple) and bool(messages) and isinstance(messages[0], list | tuple)
        described = None if tools is None else described_tools(tools)
        results: list[Any] = []
        for conversation in messages if batch else [messages]:
            text = render_chat(
                source,
                cast(Any, conversation),
                tools=described,
                documents=documents,
                add_generation_prompt=add_generation_prompt,
                continue_final_message=continue_final_message,
                variables=variables,
                special={name: spelled for name, spelled in named.items() if name not in variables},
            )
            if not tokenize:
                results.append(plain(text))
                continue
            encoding = self._encode_chat(text, source, special)
            found = {"input_ids": encoding.ids, "attention_mask": [1] * len(encoding.ids)}
            if return_assistant_tokens_mask:
                found["assistant_masks"] = _generated_tokens(text, source, encoding)
            results.append(found if return_dict or return_assistant_tokens_mask else encoding.ids)
        return results if batch else results[0]

    def _encode_chat(self, text: MarkedText, source: str, special: Special) -> Encoding:
        """The tokens of a rendered conversation, with control tokens only where the template wrote them."""
        names = self.spelled_special_tokens()
        controls = control_tokens(source, names, self.spelled_added_tokens())
        return self.read_text(plain(text), False, reading_of_chat(text, controls, special, {**names, **controls}))

    def _output_bytes(self, token_id: int, skip_special_tokens: bool) -> bytes:
        """What a token adds to the output."""
        if skip_special_tokens and token_id in self.special_ids:
            return b""
        self._check_id(token_id)
        data = self.token_bytes(token_id)
        if data is None:
            data = self._shown_bytes(token_id)
        if data is None:
            raise TokenizerError(f"id {token_id} has no token: this vocabulary has ids 0 to {self.vocab_size - 1}")
        return data

    def _shown_bytes(self, token_id: int) -> bytes | None:
        """What a token without :meth:`token_bytes` adds to the output where it is shown; ``None``: it has no token."""
        content = self.id_to_token(token_id) if token_id in self.special_ids else None
        return None if content is None else content.encode("utf-8")

    def _check_id(self, token_id: int) -> None:
        if not 0 <= checked_id(token_id) < self.vocab_size:
            raise TokenizerError(f"id {token_id} is out of range: this vocabulary has ids 0 to {self.vocab_size - 1}")


def _generated_tokens(text: MarkedText, source: str, encoding: Encoding) -> list[int]:
    """1 for each token with a character within ``{% generation %}``, else 0."""
    if not GENERATION_TAG.search(source):
        raise TokenizerError("return_assistant_tokens_mask: the chat template has no {% generation %}")
    inside = where_generated(marks_of(text))
    return [int(inside.find(1, begin, end) >= 0) for begin, end in encoding.offsets]
