"""Constrained decoding inside ``transformers``: an object in one line, and a logits processor for ``model.generate()``.

::

    person = generate(model, "Who wrote it?", Person, tokenizer=tokenizer)

    processor = ConstrainLogitsProcessor(compiled_grammar, max_new_tokens=200)
    model.generate(**inputs, logits_processor=[processor], eos_token_id=vocabulary.eos_ids, max_new_tokens=200)

``generate()`` hands a processor the token ids of each row and nothing about where a row came from:
beams are reordered, dropped and duplicated between two calls.  So matchers are kept by what a row
*says*: the state for a history of generated tokens is a fork of the state for that history without
its last token.

What it does not do: beam search cannot find more hypotheses than the grammar has strings; what
``transformers`` returns in place of the missing ones is up to it.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, cast
from weakref import WeakKeyDictionary

from constrain.arguments import check_integer
from constrain.engine.compiled_grammar import CompiledGrammar, check_compiled
from constrain.engine.compiler import GrammarCompiler
from constrain.engine.matcher import Matcher
from constrain.engine.vocabulary.applying import apply_token_bitmask_inplace
from constrain.engine.vocabulary.bitmasks import allocate_token_bitmask
from constrain.engine.vocabulary.vocabulary import Vocabulary
from constrain.errors import ConstrainError
from constrain.extras import how_to_install
from constrain.grammar.grammar import Grammar

try:
    import torch
    from transformers import AutoTokenizer, GenerationConfig, LogitsProcessor
except ImportError as error:
    raise ConstrainError(
        f"constrain.integrations.transformers needs {error.name}: {how_to_install('transformers')}"
    ) from error

_History = tuple[int, tuple[int, ...]]
"""Which grammar, and the tokens generated so far."""

# Assisted decoding goes back by up to its number of draft tokens, everything else by one.
_STEPS_KEPT = 32
_MIN_KEPT = 256


class ConstrainLogitsProcessor(LogitsProcessor):  # type: ignore[misc, unused-ignore]
    """Sets the scores of tokens that the grammar forbids to -inf.

    For greedy search, sampling and beam search, with any batch size, left padding, and a model whose
    logits are wider than the vocabulary.  ``generate()`` must stop at the vocabulary's end-of-sequence
    tokens: pass them as ``eos_token_id`` unless the model's configuration has the same.

    Use one processor per call of ``generate()``, or call :meth:`reset` in between.  A call with other
    prompts is recognised and needs no reset; one that goes on from the end of the last output is not.

    Parameters
    ----------
    compiled_grammars : CompiledGrammar or sequence of CompiledGrammar
        One for all rows, or one per prompt of the batch.  With beams or ``num_return_sequences`` each
        prompt's rows share its grammar.  All must have been compiled for the same vocabulary.
    prompt_length : int, optional
        Number of leading tokens of each row, padding included, that the grammar does not speak about.  By default the
        length of the rows in the first call, so that what ``generate()`` adds is what the grammar describes.
    max_new_tokens : int, optional
        That of ``generate()``, so that every row is complete by then (``Matcher``).
    generation_config : transformers.GenerationConfig, optional
        Where ``max_new_tokens``, or else ``max_length``, is read from if it is not given: what ``generate()`` is called
        with, or ``model.generation_config``.
    max_tokens : int, optional
        Another name of ``max_new_tokens``.

    Raises
    ------
    ConstrainError
        There is no grammar, their vocabularies differ, or have no end-of-sequence token, or ``generation_config`` has
        no limit.  With the first token: ``max_new_tokens`` are too few for any text of a grammar, or the limit is a
        ``max_length`` and the prompt is given as embeddings, which are not seen here.
    """

    def __init__(
        self,
        compiled_grammars: CompiledGrammar | Sequence[CompiledGrammar],
        prompt_length: int | None = None,
        *,
        max_new_tokens: int | None = None,
        generation_config: GenerationConfig | None = None,
        max_tokens: int | None = None,
    ) -> None:
        if max_tokens is not None:
            if max_new_tokens not in (None, max_tokens):
                raise ConstrainError(f"max_tokens is {max_tokens}, but max_new_tokens is {max_new_tokens}")
            max_new_tokens = max_tokens
        if max_new_tokens is not None:
            check_integer("max_new_tokens", max_new_tokens)
        if not isinstance(compiled_grammars, Sequence):
            compiled_grammars = [compiled_grammars]
        self._grammars = list(compiled_grammars)
        for each in self._grammars:
            check_compiled(each, "ConstrainLogitsProcessor()")
        if not self._grammars:
            raise ConstrainError("at least one compiled grammar is needed")
        vocabulary = self._grammars[0].vocabulary
        self._size = vocabulary.size
        self._eos_ids = sorted(vocabulary.eos_ids)
        for other in (grammar.vocabulary for grammar in self._grammars):
            if other is not vocabulary and other.digest != vocabulary.digest:
                raise ConstrainError("the grammars were compiled for different vocabularies")
        if not self._eos_ids:
            raise ConstrainError("the vocabulary has no end-of-sequence token, so that no output could end")
        if prompt_length is not None and check_integer("prompt_length", prompt_length) < 0:
            raise ConstrainError(f"prompt_length must be 0 or more, not {prompt_length}")
        self._given_prompt_length = prompt_length
        self._max_new_tokens = max_new_tokens
        self._max_length: int | None = None
        if max_new_tokens is None and generation_config is not None:
            self._max_new_tokens = generation_config.max_new_tokens
            self._max_length = generation_config.max_length if self._max_new_tokens is None else None
            if self._max_new_tokens is None and self._max_length is None:
                raise ConstrainError(
                    "generation_config has neither max_new_tokens nor max_length, so that generate() has a default of"
                    " its own: give max_new_tokens"
                )
        # The rows of the first call, prompts alone.
        self._prompts: torch.Tensor | None = None
        # The rows of the last call.
        self._last: torch.Tensor | None = None
        # None stands for a row that is over: it has ended, or it is none that the grammar allows (see _state).
        self._states: OrderedDict[_History, Matcher | None] = OrderedDict()
        self._mask = allocate_token_bitmask(1, self._size)

    def reset(self) -> None:
        """Forget the last call of ``generate()``."""
        self._prompts = self._last = None
        self._states.clear()

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """The scores, with -inf for every token that cannot come next.

        Parameters
        ----------
        input_ids : int64[rows, width]
            Prompts and what was generated so far.
        scores : float[rows, n]
            ``n`` is at least the size of the vocabulary; columns beyond it get -inf.  Not modified.

        Raises
        ------
        ConstrainError
            The shapes do not fit the grammars or the vocabulary, a row has no token left to choose, or a prompt has
            something behind ``prompt_length`` that begins no text of the grammar.
        """
        rows, columns = scores.shape
        if input_ids.ndim != 2:
            raise ConstrainError(
                "there is one token for each row and no text, as in continuous batching of transformers: use"
                " constrain.integrations.transformers_batching.ConstrainedRequests"
            )
        if input_ids.shape[0] != rows:
            raise ConstrainError(f"there are {input_ids.shape[0]} rows of token ids but {rows} rows of scores")
        if rows % len(self._grammars):
            raise ConstrainError(f"{rows} rows cannot be shared out evenly among {len(self._grammars)} grammars")
        if columns < self._size:
            raise ConstrainError(f"the model has scores for {columns} tokens, but the vocabulary has {self._size}")
        rows_per_grammar = rows // len(self._grammars)
        start = self._prompt_length(input_ids, rows_per_grammar)
        begins = not self._states
        histories = _histories(input_ids, start, rows_per_grammar)
        states = [self._state(history) for history in histories]
        if begins and None in states:
            self.reset()
            raise ConstrainError(
                f"row {states.index(None)}: what the prompt has behind its first {start} tokens (prompt_length) is not"
                " the beginning of a text of the grammar"
            )
        while len(self._states) > max(_MIN_KEPT, _STEPS_KEPT * rows):
            self._states.popitem(last=False)

        if len(self._mask) != rows:
            self._mask = allocate_token_bitmask(rows, self._size)
        over = [row for row, matcher in enumerate(states) if matcher is None]
        for row, matcher in enumerate(states):
            if matcher is not None:
                matcher.fill_next_token_bitmask(self._mask, row)
        self._mask[over] = 0
        masked = scores.clone()
        apply_token_bitmask_inplace(masked, self._mask)
        if over:
            # Whatever is chosen there is not used, but a row of nothing but -inf would turn to NaN in a softmax.
            masked[torch.tensor(over)[:, None], torch.tensor(self._eos_ids)] = 0.0
        highest = masked.amax(dim=-1)
        for row in (~torch.isfinite(highest)).nonzero().flatten().tolist():
            if highest[row] != -torch.inf:
                reason = "the scores of the allowed tokens contain NaN or +inf"
            elif self._mask[row].any():
                reason = "every token that the grammar allows is ruled out by the model or another logits processor"
            else:
                reason = "no token of the vocabulary continues the text, though the grammar needs more"
            raise ConstrainError(f"row {row}: {reason}")
        return cast("torch.FloatTensor", masked)

    def _prompt_length(self, input_ids: torch.LongTensor, rows_per_grammar: int) -> int:
        """Where the text of the grammar begins; also notices that a new call of ``generate()`` has begun."""
        width, given = int(input_ids.shape[1]), self._given_prompt_length
        if given is not None and width < given:
            raise ConstrainError(f"the rows have {width} tokens, fewer than prompt_length={given}")
        if not self._goes_on(input_ids, rows_per_grammar):
            self.reset()
            self._prompts = input_ids.clone()
        self._last = input_ids.clone()
        assert self._prompts is not None
        return self._prompts.shape[1] if given is None else given

    def _goes_on(self, input_ids: torch.LongTensor, rows_per_grammar: int) -> bool:
        """Whether the rows are of the same call of ``generate()`` as those of the last time.

        Then each is the prompt, or what was there before and one more token.  Assisted decoding goes back to a
        beginning of the last rows, whose states may be gone when it has drafted more tokens than states are kept.
        """
        prompts, last = self._prompts, self._last
        if prompts is None or last is None or prompts.shape[0] != input_ids.shape[0]:
            return False
        before = int(prompts.shape[1])
        if not torch.equal(prompts, input_ids[:, :before]):
            return False
        if input_ids.shape[1] == before or torch.equal(last[:, : input_ids.shape[1] - 1], input_ids[:, :-1]):
            return True
        start = before if self._given_prompt_length is None else self._given_prompt_length
        return all(
            (grammar, tokens[:-1]) in self._states for grammar, tokens in _histories(input_ids, start, rows_per_grammar)
        )

    def _budget(self) -> int | None:
        """How many tokens a text may have; what of it is in the prompt already (``prompt_length``) comes on top."""
        assert self._prompts is not None
        width = int(self._prompts.shape[1])
        inside = 0 if self._given_prompt_length is None else width - self._given_prompt_length
        if self._max_new_tokens is not None:
            return self._max_new_tokens + inside
        if self._max_length is None:
            return None
        if not width:
            raise ConstrainError("max_length counts a prompt that is given as embeddings too: give max_new_tokens")
        return max(self._max_length - width, 0) + inside

    def _state(self, history: _History) -> Matcher | None:
        """The matcher after ``history``, or None if nothing can follow it.

        A history that the grammar does not allow is no error: where the grammar leaves fewer choices than
        beam search wants, it goes on with candidates of score -inf, and a row that a stopping criterion has
        ended is filled up with padding.
        """
        if history in self._states:
            self._states.move_to_end(history)
            return self._states[history]
        grammar, tokens = history
        known = len(tokens)
        while known and (grammar, tokens[:known]) not in self._states:
            known -= 1
        parent = self._states.get((grammar, tokens[:known]))
        if parent is None and known == 0 and (grammar, ()) not in self._states:
            parent = self._states[(grammar, ())] = Matcher(self._grammars[grammar], self._budget())
        state = parent.fork() if parent is not None else None
        for token in tokens[known:]:
            if state is not None and (
                not 0 <= token < self._size or not state.accept_token(token) or state.is_terminated()
            ):
                state = None
        self._states[history] = state
        return state


def _histories(input_ids: torch.LongTensor, start: int, rows_per_grammar: int) -> list[_History]:
    rows: list[list[int]] = input_ids[:, start:].tolist()
    return [(row // rows_per_grammar, tuple(tokens)) for row, tokens in enumerate(rows)]


_OWN_OPTIONS = (
    "logits_processor",
    "eos_token_id",
    "generation_config",
    "num_return_sequences",
    "return_dict_in_generate",
)
"""What :func:`generate` sets itself."""

DEFAULT_MAX_NEW_TOKENS = 512
"""Where neither the call nor the model's generation settings say how long an answer may be."""

_compilers: WeakKeyDictionary[Any, dict[tuple[int, tuple[int, ...]], GrammarCompiler]] = WeakKeyDictionary()
"""For each tokenizer, by the model's number of logits and its end tokens."""


def generate(
    model: Any,
    prompt: str | Sequence[dict[str, Any]],
    output: Any,
    *,
    tokenizer: Any = None,
    max_new_tokens: int | None = None,
    **options: Any,
) -> Any:
    """Ask a model for an object.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        One that generates.
    prompt : str or sequence of dict
        The text to go on from, or the messages of a chat, for the tokenizer's chat template.
    output : type, dict, bool or Grammar
        What is wanted: a pydantic model or any other type that pydantic knows (``list[int]``, a dataclass, a
        ``TypeAdapter``), a JSON Schema, or a grammar.
    tokenizer : optional
        The model's; by default what ``AutoTokenizer`` finds under the name that the model was loaded by.
    max_new_tokens : int, optional
        How many tokens the answer may take; it is complete by then.  By default what the model's generation settings
        say, else 512, in what is left of its context.
    **options
        For ``model.generate()``: ``do_sample``, ``temperature``, ``num_beams``, ...

    Returns
    -------
    object
        An instance of the type; of a JSON Schema what ``json.loads`` makes of the answer; of a grammar the text.

    Raises
    ------
    ConstrainError
        If the output cannot be enforced, its shortest text takes more tokens than there may be, the tokenizer cannot be
        found, there is no token to begin with, or an option is what this function sets itself, or ends the text before
        it is complete (``max_time``).
    """
    for name in _OWN_OPTIONS:
        if name in options:
            raise ConstrainError(f"{name} cannot be given to this generate(): use ConstrainLogitsProcessor instead")
    if not hasattr(model, "generate"):
        given = type(model).__name__
        raise ConstrainError(
            f"model must be a transformers model, not {given}: AutoModelForCausalLM.from_pretrained(path)"
        )
    if prompt is None:
        raise ConstrainError("prompt must be a text or a chat's messages, not None")
    messages = [] if isinstance(prompt, str) else list(prompt)
    if not all(isinstance(message, Mapping) for message in messages):
        raise ConstrainError("prompt must be a text or a chat's messages; for several use ConstrainLogitsProcessor")
    tokenizer = _tokenizer_of(model) if tokenizer is None else tokenizer
    if not callable(tokenizer) or not hasattr(tokenizer, "eos_token_id"):
        given = type(tokenizer).__name__
        raise ConstrainError(f"tokenizer must be one of transformers, not {given}: AutoTokenizer.from_pretrained(path)")
    grammar, read = _reader(output)
    compiler = _compiler_of(model, tokenizer)
    ends = list(compiler.vocabulary.eos_ids)
    if isinstance(prompt, str):
        inputs = tokenizer(prompt, return_tensors="pt")
    else:
        inputs = tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
    ids, seen = inputs["input_ids"], inputs["attention_mask"]
    if not ids.shape[1]:
        ids = torch.tensor([[_first_token(model, tokenizer)]])
        seen = torch.ones_like(ids)
    ids = ids.to(model.device)
    # A decoder of its own begins with one token, and is not given the prompt's.
    begin = 1 if model.config.is_encoder_decoder else ids.shape[1]
    if max_new_tokens is None:
        max_new_tokens = _usual_length(model, begin)
    if check_integer("max_new_tokens", max_new_tokens) < 1:
        raise ConstrainError(f"an answer behind a prompt of {ids.shape[1]} tokens may take {max_new_tokens}: too few")
    compiled = compiler.compile(grammar)
    processor = ConstrainLogitsProcessor(compiled, begin, max_new_tokens=max_new_tokens)
    options.setdefault("pad_token_id", ends[0])
    row = model.generate(
        ids,
        attention_mask=seen.to(model.device),
        return_dict_in_generate=False,
        logits_processor=[processor],
        eos_token_id=ends,
        max_new_tokens=max_new_tokens,
        **options,
    )[0, begin:].tolist()
    said = row[: next((at for at, token in enumerate(row) if token in ends), len(row))]
    text = b"".join(compiler.vocabulary.tokens[token] for token in said)
    matcher = Matcher(compiled)
    if not matcher.accept_tokens(said) or not matcher.is_accepting():
        raise ConstrainError(f"the answer was ended by an option before it was complete: {text[-40:]!r}")
    return read(text.decode())


def _first_token(model: Any, tokenizer: Any) -> int:
    """What stands for a prompt without tokens, since a model needs one."""
    starts = tokenizer.bos_token_id, model.generation_config.bos_token_id, tokenizer.eos_token_id
    start = next((token for token in starts if token is not None), None)
    if start is None:
        raise ConstrainError("the prompt has no token, and the tokenizer none that begins a text")
    return int(start)


def _reader(output: Any) -> tuple[Grammar, Callable[[str], Any]]:
    """The grammar of what is wanted, and what makes it of a text."""
    if isinstance(output, Grammar):
        return output, str
    if isinstance(output, (dict, bool)):
        return Grammar.from_json_schema(output), json.loads
    if isinstance(output, (str, CompiledGrammar)):
        raise ConstrainError(f"output must be a type, a JSON Schema or a Grammar, not {type(output).__name__}")
    # Pydantic reads no integer from 1e30, nor from 12.0 where it is strict.
    grammar = Grammar.from_pydantic(output, numbers="plain")
    # It is there, or the line before would have failed.
    adapter = import_module("pydantic").TypeAdapter
    return grammar, (output if isinstance(output, adapter) else adapter(output)).validate_json


def _tokenizer_of(model: Any) -> Any:
    name = model.name_or_path
    if not name:
        raise ConstrainError("the model does not say where it was loaded from: give its tokenizer, tokenizer=")
    return AutoTokenizer.from_pretrained(name)


def end_tokens_of(model: Any) -> set[int]:
    """The end tokens that a model's settings name, of those that it has logits for."""
    size, named = int(model.get_output_embeddings().weight.shape[0]), model.generation_config.eos_token_id
    ends = [] if named is None else [named] if isinstance(named, int) else named
    return {int(token) for token in ends if 0 <= token < size}


def _compiler_of(model: Any, tokenizer: Any) -> GrammarCompiler:
    """The compiler for a model's logits and end tokens; the same again for the same tokenizer."""
    size = int(model.get_output_embeddings().weight.shape[0])
    ends = end_tokens_of(model)
    if tokenizer.eos_token_id is not None:
        ends.add(tokenizer.eos_token_id)
    if not ends:
        raise ConstrainError("neither the model nor the tokenizer has an end-of-sequence token")
    known = _compilers.setdefault(tokenizer, {})
    key = size, tuple(sorted(ends))
    if key not in known:
        known[key] = GrammarCompiler(Vocabulary.from_huggingface(tokenizer, size=size, eos_ids=key[1]))
    return known[key]


def _usual_length(model: Any, prompt: int) -> int:
    """How many tokens an answer may take where nobody has said so."""
    settings = model.generation_config
    context = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    most = DEFAULT_MAX_NEW_TOKENS if settings.max_new_tokens is None else int(settings.max_new_tokens)
    return most if context is None else max(min(most, context - prompt), 0)
