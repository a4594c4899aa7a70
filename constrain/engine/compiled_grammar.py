"""CompiledGrammar: a grammar made ready for one vocabulary."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from functools import partial
from typing import Any

from constrain.engine.grammar_tables import DEFAULT_LIMIT_BYTES, DEFAULT_MASK_LIMIT_BYTES, GrammarTables
from constrain.engine.learned import note_learned, take_over
from constrain.engine.recognizer import Recognizer
from constrain.engine.storage.packed_arrays import pack, unpack
from constrain.engine.storage.schemas import EARLEY_SET_HASHES, EXPRESSION_HASHES, LEXER_STATE_HASHES, STATE_HASHES
from constrain.engine.token_terminals import settle_tokens
from constrain.engine.vocabulary.files import kernels_digest
from constrain.engine.vocabulary.views import with_more_ends
from constrain.engine.vocabulary.vocabulary import NORMAL, Vocabulary, check_vocabulary
from constrain.errors import ConstrainError, LimitError
from constrain.grammar.ir import GrammarIR
from constrain.grammar.least_tokens import without_least
from constrain.grammar.source import read_source, write_source
from constrain.limits import Deadline, limited
from constrain.version import __version__

_MAGIC = b"constrain grammar 2\n"
_WHAT = "a compiled grammar"


class CompiledGrammar(GrammarTables):
    """A grammar bound to a vocabulary; shared by any number of matchers, from any thread.

    It starts nearly empty and is filled in as matchers ask: automata, Earley sets, states and masks are
    each made once and then shared.  One lock guards all of it; kernels run without the GIL.

    Parameters
    ----------
    ir : GrammarIR
    vocabulary : Vocabulary
    limit_bytes : int
        Tables may not grow past this; :class:`constrain.errors.LimitError` then.  Sets and states that
        no matcher is at are forgotten long before, so a long text does not bring that about; a grammar
        may, whose patterns alone have too many states.
    mask_limit_bytes : int
        When the remembered masks take more than this, all of them are dropped and computed again
        as needed.  Results do not change.  More than 8 GiB is taken as 8 GiB.
    accelerators : collection of str, optional
        The names of the accelerators to use (``constrain.engine.masks.accelerators.NAMES``); masks are the same with
        any of them.  ``()`` is the plain engine; the default is all of them, or with the environment variable
        ``CONSTRAIN_PLAIN=1`` none.
    source : hashable, optional
        The key of the grammar that ``ir`` is of (:attr:`constrain.Grammar.key`), which :meth:`to_bytes` needs; a
        GrammarCompiler gives it.

    Raises
    ------
    ValueError
        If there is no accelerator of a name.
    ConstrainError
        The grammar's own error (``ir.make_error``) if its language is empty, or if it names a token that the
        vocabulary does not have.

    Attributes
    ----------
    ir, vocabulary
        As given, but where the grammar has tokens as terminals: then they are settled for the vocabulary, which is
        replaced by a view of it in which special tokens are spelled (vocabulary/token_spellings.py).
    region : CompiledGrammar or None
        That of what texts begin with, where it has a budget of its own.
    """

    def __init__(
        self,
        ir: GrammarIR,
        vocabulary: Vocabulary,
        *,
        limit_bytes: int = DEFAULT_LIMIT_BYTES,
        mask_limit_bytes: int = DEFAULT_MASK_LIMIT_BYTES,
        accelerators: Collection[str] | None = None,
        source: Hashable = None,
    ) -> None:
        if not isinstance(ir, GrammarIR):
            raise TypeError(f"CompiledGrammar() takes the ir of a Grammar, not {type(ir).__name__}: grammar.ir")
        # As given, to be given to another one.
        self.source = source
        self._given = ir, vocabulary
        ir, vocabulary = settle_tokens(ir, vocabulary)
        super().__init__(
            ir, vocabulary, limit_bytes=limit_bytes, mask_limit_bytes=mask_limit_bytes, accelerators=accelerators
        )
        self.region: CompiledGrammar | None = None
        self._without_least: CompiledGrammar | None = None
        if ir.first_region is not None:
            self.region = CompiledGrammar(ir.first_region.grammar, vocabulary, **self._options())

    def recognizer(self) -> Recognizer:
        """A recognizer at the start of the grammar.  It knows no tokens, and so no numbers of them."""
        if self._without_least is None:
            ir, vocabulary = self._given
            plain = without_least(ir)
            if plain is ir:
                return Recognizer(self)
            with self.lock:
                self._without_least = self._without_least or CompiledGrammar(
                    plain, vocabulary, limit_bytes=self._limit_bytes, accelerators=self.accelerators
                )
        return Recognizer(self._without_least)

    def ending_with(self, tokens: Iterable[int]) -> CompiledGrammar:
        """The grammar for texts that some ordinary tokens end, so that no text has them; itself if none of them is one.

        It is kept as long as the view of the vocabulary is, which are the last few; the first for such tokens takes a
        third of a second with a vocabulary of 128,000.
        """
        own = self.vocabulary
        ordinary = frozenset(t for t in tokens if own.kinds[t] == NORMAL and t not in self.spelled_ids)
        if not ordinary:
            return self
        ir, vocabulary = self._given
        view = with_more_ends(vocabulary, ordinary)
        found: CompiledGrammar | None = view.twins.get(self)
        if found is None:
            found = CompiledGrammar(ir, view, source=self.source, **self._options())
            # Another thread may have made one meanwhile.
            found = view.twins.setdefault(self, found)
        return found

    def _options(self) -> dict[str, Any]:
        """The options of another one like it."""
        return {
            "limit_bytes": self._limit_bytes,
            "mask_limit_bytes": self.mask_limit_bytes,
            "accelerators": self.accelerators,
        }

    def statistics(self) -> dict[str, int]:
        """How many expressions, lexer states, Earley sets ("rows") and recognizer states exist so far, and bytes."""
        counts = {
            "nodes": EXPRESSION_HASHES,
            "lexer_states": LEXER_STATE_HASHES,
            "rows": EARLEY_SET_HASHES,
            "states": STATE_HASHES,
        }
        result = {name: self._tables.used(slot) for name, slot in counts.items()}
        return {**result, "mask_bytes": self.mask_bytes, "nbytes": self.nbytes}

    def to_bytes(self) -> bytes:
        """The grammar and what it has learned, for :meth:`from_bytes` in another process, now or later.

        It holds the source (a schema, a pattern, a text, with its options), the ways to up to 4,096 places and their
        masks, up to some 16 MiB of them.  (docs/how-it-works.md, bytes)

        Raises
        ------
        ConstrainError
            If the source is not known: of a grammar with a registry, with imports of files, with a style or tools that
            are Python objects, or one that was not compiled by a GrammarCompiler.
        """
        head = {
            "version": __version__,
            "kernels": kernels_digest(),
            "vocabulary": self.vocabulary.digest,
            "source": write_source(self.source),
        }
        with self.lock:
            learned = note_learned(self)
        return pack(_MAGIC, head, learned)

    @classmethod
    def from_bytes(
        cls,
        data: bytes,
        vocabulary: Vocabulary,
        *,
        limit_bytes: int = DEFAULT_LIMIT_BYTES,
        mask_limit_bytes: int = DEFAULT_MASK_LIMIT_BYTES,
        accelerators: Collection[str] | None = None,
        time_limit: float | Deadline | None = None,
    ) -> CompiledGrammar:
        """The grammar that :meth:`to_bytes` has written, which knows what that one had learned.

        Bytes may come from anywhere: a grammar in them is read and compiled like any other, and nothing that is
        learned is believed but sets of tokens.  Who makes the bytes decides what the grammar is, as who writes a
        schema does.

        Parameters
        ----------
        data : bytes
        vocabulary : Vocabulary
            With the tokens of the one that the grammar was compiled for.
        limit_bytes, mask_limit_bytes, accelerators
            As for the class.
        time_limit : float or Deadline, optional
            Seconds that this may take.

        Raises
        ------
        TypeError
            If ``vocabulary`` is something else.
        ConstrainError
            If the bytes are of something else, damaged, of another version of the package, or for another vocabulary;
            and all that the front-end of the grammar raises.
        LimitError
            If it takes more time, or memory, than is allowed.
        """
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise ConstrainError(f"from_bytes() takes bytes, not {type(data).__name__}")
        check_vocabulary(vocabulary, "from_bytes()")
        head, learned = unpack(_MAGIC, bytes(data), _WHAT)
        if (head.get("version"), head.get("kernels")) != (__version__, kernels_digest()):
            raise ConstrainError(
                f"this compiled grammar was written by version {head.get('version')!s:.40} of constrain or by another "
                f"state of its sources, and this is version {__version__}: compile the grammar here"
            )
        if head.get("vocabulary") != vocabulary.digest:
            raise ConstrainError(
                "this compiled grammar is for another vocabulary: its tokens, end tokens or special tokens differ from "
                f"those of {vocabulary!r}"
            )
        source = head.get("source")
        if not isinstance(source, str):
            raise ConstrainError(f"these bytes are not {_WHAT}: they have no source")
        with limited(time_limit):
            grammar = read_source(source)
            compiled = cls(
                grammar.ir,
                vocabulary,
                limit_bytes=limit_bytes,
                mask_limit_bytes=mask_limit_bytes,
                accelerators=accelerators,
                source=grammar.key,
            )
            with compiled.lock:
                take_over(compiled, learned)
        return compiled

    def __copy__(self) -> CompiledGrammar:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledGrammar:
        # It is shared by all who use it, as it is.
        return self

    def __reduce__(self) -> Any:
        (ir, vocabulary), options = self._given, self._options()
        try:
            data = self.to_bytes()
        except LimitError:
            raise
        except ConstrainError:
            # A pickle can hold the rules themselves.
            return partial(CompiledGrammar, **options), (ir, vocabulary)
        return partial(CompiledGrammar.from_bytes, **options), (data, vocabulary)

    def __repr__(self) -> str:
        counts = self.statistics()
        tokens = self.vocabulary.size
        return f"<CompiledGrammar: {tokens:,} tokens, {counts['states']:,} states, {counts['nbytes']:,} bytes>"


def check_compiled(value: object, taker: str) -> None:
    """Raise TypeError if a value is no compiled grammar: a :class:`~constrain.grammar.grammar.Grammar`, for example."""
    if not isinstance(value, CompiledGrammar):
        kind = type(value).__name__
        raise TypeError(f"{taker} takes a CompiledGrammar, not {kind}: GrammarCompiler(vocabulary).compile(grammar)")
