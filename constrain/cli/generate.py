"""``constrain generate``: text from a model, to stdout as it is made."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from constrain.backends.factory import BACKENDS, choose_backend
from constrain.backends.options import EVICTION_POLICIES, KV_TYPES, BackendOptions
from constrain.cli.argument_types import FILE, TEXT
from constrain.cli.first_run import announce_compilation
from constrain.cli.generation_report import as_json, summary
from constrain.cli.grammar_options import (
    GRAMMAR,
    GrammarSource,
    chosen_grammar,
    errors_in,
    grammar_files,
    grammar_is_asked_for,
    grammar_options,
    layout_is_given,
    read_source,
    read_text,
    show_warnings,
)
from constrain.cli.output import write
from constrain.cli.sampling_options import (
    FURTHER_SAMPLERS,
    SAMPLING,
    USUAL,
    check_sampling,
    further_sampling_options,
    make_sampler,
    usual_sampling_options,
)
from constrain.cli.sections import SectionCommand, SectionOption, option
from constrain.cli.status import Exit, Stop
from constrain.cli.tokenizer_options import DEMO
from constrain.errors import ConstrainError
from constrain.sampling.options import MOST_BEAMS, check_length_penalty, check_options

if TYPE_CHECKING:
    from constrain import CompiledGrammar, Grammar
    from constrain.backends import Backend
    from constrain.sampling import Sampler

_model_option = partial(option, section="Model")
_prompt_option = partial(option, section="Prompt")
_output_option = partial(option, section="Output")
_memory_option = partial(option, section="Memory of the model")
_LARGEST_SEED = 2**64
# How the demonstration writes JSON unless it is told: as a person would.  Models of one's own know how they write.
_LAYOUT = {"indent": 2}

# No machine has so much memory as to need so many digits.
_LONG_NUMBER = 32


@click.command(cls=SectionCommand, short_help="Generate text that fits a grammar.")
@grammar_options
@_model_option(
    "--model",
    "-m",
    metavar="PATH",
    type=FILE,
    callback=lambda _context, _parameter, value: None if value == DEMO else value,
    help=f"A folder for transformers, or a GGUF file for llama.cpp.  [default: {DEMO}, the built-in one]",
)
@_model_option(
    "--backend",
    type=click.Choice(BACKENDS),
    default="auto",
    show_default=True,
    help="What runs the model; auto: what goes with the path.",
)
@_prompt_option(
    "--prompt", "-p", metavar="TEXT", type=TEXT, help="Text to go on from, or what to say in a chat; not printed."
)
@_prompt_option("--prompt-file", metavar="FILE", type=FILE, help="The prompt is in a file ('-': stdin).")
@_prompt_option("--system", metavar="TEXT", type=TEXT, help="The system message of a chat.")
@_prompt_option(
    "--chat/--no-chat",
    default=None,
    help="Put the prompt into the model's chat template, or not.  [default: where there is a template and a prompt]",
)
@_output_option(
    "-n",
    "--num-tokens",
    "--max-tokens",
    "num_tokens",
    metavar="N",
    type=click.IntRange(min=1),
    default=256,
    show_default=True,
    help="At most so many tokens. Under a grammar the text is always complete within them.",
)
@_output_option(
    "--budget/--no-budget",
    default=True,
    help="Under a grammar, complete the text within the tokens, or cut it.  [default: complete it]",
)
@_output_option("--stop", metavar="TEXT", type=TEXT, multiple=True, help="End in front of this text; may be repeated.")
@_output_option("--stream/--no-stream", default=True, help="Print text as it is made, or when it is done.")
@_output_option(
    "--count",
    metavar="K",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="So many texts, each with a newline after it; the seed goes up by one each time.",
)
@_output_option(
    "--beams",
    metavar="B",
    type=click.IntRange(min=1, max=MOST_BEAMS),
    help="Search for the most likely text with B beams, and draw nothing; --count so many of them.",
)
@_output_option(
    "--length-penalty",
    metavar="X",
    type=float,
    default=1.0,
    show_default=True,
    help="For --beams: above 0 long texts are preferred, below 0 short ones.",
)
@_output_option(
    "--prompt-log-probabilities",
    is_flag=True,
    help="A line of JSON on stderr says how likely each token of the prompt is.",
)
@_output_option("--json-stats", is_flag=True, help="The summary on stderr is a line of JSON.")
@usual_sampling_options
@option(
    "--seed",
    section=SAMPLING,
    metavar="N",
    type=click.IntRange(min=0, max=_LARGEST_SEED - 1),
    help="Equal seeds give equal texts.  [default: random]",
)
@further_sampling_options
@_memory_option("--kv-type", type=click.Choice(KV_TYPES), help="What keys and values are kept as.")
@_memory_option(
    "--max-seq-len",
    metavar="N",
    type=click.IntRange(min=2),
    help="The most tokens the model looks at.  [default: its own limit; llama-cpp: at most 8192]",
)
@_memory_option(
    "--eviction-policy",
    "--evict",
    "eviction_policy",
    type=click.Choice(EVICTION_POLICIES),
    default="none",
    show_default=True,
    help="When there are more, end, or forget the oldest, or what is looked at least.",
)
@_memory_option(
    "--max-kv-size",
    metavar="N",
    type=TEXT,
    help="Keys and values of at most N tokens, or of so much memory, such as 512MB; for --evict.",
)
@_memory_option(
    "--eviction-window",
    metavar="N",
    type=click.IntRange(min=2),
    help="How many of the last tokens are not forgotten.  [default: what there is room for]",
)
@_memory_option(
    "--protected-prefix",
    metavar="N",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="How many of the first tokens are never forgotten.",
)
def generate(
    model: str | None,
    backend: str,
    seed: int | None,
    num_tokens: int,
    budget: bool,
    stop: tuple[str, ...],
    stream: bool,
    count: int,
    json_stats: bool,
    **settings: Any,
) -> None:
    """Generate text that fits a grammar, or any text.

    The text goes to stdout as it is made, and a newline after it; a summary goes to stderr. The built-in demonstration
    model needs a grammar, and writes JSON with an indent of 2 unless told otherwise; with --model and no grammar, the
    text is free.
    """
    prompt = _prompt(settings["prompt"], settings["prompt_file"], stop)
    sampling = {name: settings[name] for name in USUAL}
    memory = ("kv_type", "max_seq_len", "eviction_policy", "eviction_window", "protected_prefix")
    said = _options_that_were_said()
    _check_beams(settings["beams"], count, said)
    try:
        check_sampling(said, settings)
        check_options(seed=seed, **sampling)
        check_length_penalty(settings["length_penalty"])
        options = BackendOptions(**{name: settings[name] for name in memory}, **_kv_size(settings["max_kv_size"]))
        chosen = choose_backend(model, backend) if model is None or backend != "auto" else backend
    except ConstrainError as error:
        raise click.UsageError(str(error)) from error
    source, grammar, layout = None, None, {}
    if chosen == "demo" or grammar_is_asked_for():
        kind, value = chosen_grammar()
        source = read_source(kind, value)
        layout = _LAYOUT if chosen == "demo" and source.kind == "schema" and not layout_is_given() else {}
        grammar, layout = _read(source, layout)
    elif not budget:
        raise click.UsageError("--no-budget needs a grammar: free text is not kept to any")
    if model is not None:
        choose_backend(model, backend)  # is it there?

    # All that can be wrong with the input is said before the first kernel is compiled.
    announce_compilation()
    from constrain.backends import load_backend

    loaded = load_backend(model, backend, options)
    compiled = None if grammar is None or source is None else _compile(source, grammar, loaded, layout, num_tokens)
    ids = _prompt_ids(loaded, prompt, settings["system"], settings["chat"])
    if settings["prompt_log_probabilities"]:
        _say_log_probabilities(loaded, ids)
    sampler = None if settings["beams"] is not None else _sampler(seed, sampling, settings, loaded)
    if chosen == "demo":
        click.echo("constrain: using the built-in demonstration model; do not expect sense from it", err=True)

    if sampler is None:
        _search(loaded, compiled, ids, num_tokens, budget, count, json_stats, settings)
        return
    for number in range(count):
        generation = _start(loaded, compiled, ids, num_tokens, budget, sampler, stop)
        for step in generation:
            if stream:
                write(step.text)
        write("\n" if stream else generation.text + "\n")
        statistics = generation.statistics
        memory_of = loaded.kv_statistics()
        if json_stats:
            click.echo(as_json(statistics, loaded.name, sampler.seed, memory_of), err=True)
        else:
            click.echo(f"constrain: {summary(statistics, memory_of)}; seed {sampler.seed}", err=True)
        if compiled is not None and statistics.finish_reason == "length":
            why = "the grammar needs more than" if budget else "with --no-budget it is cut after"
            raise Stop(Exit.LENGTH, f"the text is not complete: {why} {statistics.tokens} tokens")
        if number < count - 1:
            # A sampler may know what it has drawn: each text has one of its own.
            sampler = _sampler((sampler.seed + 1) % _LARGEST_SEED, sampling, settings, loaded)


for _parameter in generate.params:
    if isinstance(_parameter, SectionOption) and _parameter.section == GRAMMAR:
        _parameter.section = "Grammar, at most one"


def _sampler(seed: int | None, usual: Mapping[str, Any], given: Mapping[str, Any], backend: Backend) -> Sampler:
    try:
        return make_sampler(seed, usual, given, backend.tokenizer)
    except ConstrainError as error:
        raise click.UsageError(str(error)) from error


def _options_that_were_said() -> dict[str, SectionOption]:
    context = click.get_current_context()
    return {
        str(parameter.name): parameter
        for parameter in context.command.params
        if isinstance(parameter, SectionOption)
        and context.get_parameter_source(str(parameter.name)) is click.core.ParameterSource.COMMANDLINE
    }


def _check_beams(beams: int | None, count: int, said: Mapping[str, SectionOption]) -> None:
    """What is said beside --beams, or without it, has to have a meaning."""
    if beams is None:
        if "length_penalty" in said:
            raise click.UsageError("--length-penalty needs --beams")
        return
    if count > beams:
        raise click.UsageError(f"--count {count} is more than --beams {beams}")
    for name, parameter in said.items():
        # Equal seeds give equal texts here too.
        if name == "stop" or (parameter.section in (SAMPLING, FURTHER_SAMPLERS) and name != "seed"):
            option_name = max(parameter.opts, key=len)
            raise click.UsageError(f"{option_name} is for texts that are drawn, and --beams draws none")


def _kv_size(given: str | None) -> dict[str, Any]:
    """What --max-kv-size means: a number of tokens, or of bytes."""
    if given is None:
        return {}
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) *([kmgt]?)(i?)b", given.strip().lower())
    if found is not None:
        number, power, binary = found.groups()
        unit = (1024 if binary else 1000) ** (" kmgt".index(power or " "))
        if len(number) < _LONG_NUMBER:
            return {"max_kv_bytes": int(float(number) * unit)}
    if not given.isdecimal() or len(given) >= _LONG_NUMBER:
        shown = given if len(given) < 2 * _LONG_NUMBER else given[:_LONG_NUMBER] + "..."
        raise click.UsageError(f"--max-kv-size must be a number of tokens, or of bytes such as 512MB, not {shown!r}")
    return {"max_kv_size": int(given)}


def _prompt(text: str | None, file: str | None, stop: Sequence[str]) -> str:
    """The prompt, from wherever it is."""
    if text is not None and file is not None:
        raise click.UsageError("--prompt and --prompt-file exclude each other")
    if file == "-" and "-" in grammar_files():
        raise click.UsageError("the grammar and the prompt cannot both come from stdin")
    if not all(stop):
        raise click.UsageError("--stop needs a text of at least one character")
    return text or "" if file is None else read_text(file)


def _read(source: GrammarSource, layout: dict[str, int]) -> tuple[Grammar, dict[str, int]]:
    """The grammar, and the layout that it has: the given one, or none where the schema cannot be written so."""
    if layout:
        with contextlib.suppress(Stop):
            return source.grammar(**layout), layout
    grammar = source.grammar()
    if layout:
        _say_other_layout("no text that fits this schema can be written with an indent")
    return grammar, {}


def _compile(
    source: GrammarSource, grammar: Grammar, backend: Backend, layout: dict[str, int], most: int
) -> CompiledGrammar:
    from constrain import GrammarCompiler, Matcher

    compiler = GrammarCompiler(backend.vocabulary)
    with errors_in(source.name):
        compiled = compiler.compile(grammar)
        if layout and Matcher(compiled).tokens_to_finish() > most:
            shorter = compiler.compile(source.grammar())
            if Matcher(shorter).tokens_to_finish() <= most:
                _say_other_layout(f"with an indent the shortest text takes more than {most} tokens")
            compiled = shorter
    show_warnings(source.name, grammar.warnings)
    return compiled


def _say_other_layout(reason: str) -> None:
    click.echo(f"constrain: {reason}, so white space is as it comes (--whitespace, --indent)", err=True)


def _prompt_ids(backend: Backend, prompt: str, system: str | None, chat: bool | None) -> list[int]:
    """The tokens to go on from, with or without the model's chat template."""
    from constrain.generation import encode_chat, encode_prompt

    has_template = backend.tokenizer.chat_template is not None
    if chat is None:
        chat = has_template and bool(prompt or system)
    if not chat:
        if system is not None:
            reason = "without --no-chat" if has_template else "and this model has no chat template"
            raise click.UsageError(f"--system is for a chat, {reason}")
        return encode_prompt(backend.tokenizer, prompt)
    if not has_template:
        raise Stop(Exit.INPUT, "this model has no chat template: leave --chat out")
    if not prompt:
        raise click.UsageError("a chat needs a --prompt or a --prompt-file")
    messages = [] if system is None else [{"role": "system", "content": system}]
    return encode_chat(backend.tokenizer, [*messages, {"role": "user", "content": prompt}])


def _say_log_probabilities(backend: Backend, ids: list[int]) -> None:
    from constrain.generation import prompt_log_probabilities

    tokens = [
        {
            "id": token.token_id,
            "token": backend.tokenizer.id_to_token(token.token_id),
            "log_probability": token.log_probability,
        }
        for token in prompt_log_probabilities(backend, backend.tokenizer, ids)
    ]
    click.echo(json.dumps({"prompt": tokens}), err=True)


def _search(
    backend: Backend,
    compiled: CompiledGrammar | None,
    ids: list[int],
    most: int,
    budget: bool,
    count: int,
    json_stats: bool,
    settings: Mapping[str, Any],
) -> None:
    """The best texts of a beam search, each with a newline; their log-probabilities go to stderr."""
    from constrain.generation import beam_search

    with _enough_tokens(backend, compiled, ids, most, budget):
        found = beam_search(
            backend,
            backend.tokenizer,
            compiled,
            prompt=ids,
            beams=settings["beams"],
            max_tokens=most,
            length_penalty=settings["length_penalty"],
            budget=budget,
        )
    for beam in found[:count]:
        write(beam.text + "\n")
        about = {"tokens": len(beam.token_ids), "log_probability": beam.log_probability, "score": beam.score}
        tokens = f"{len(beam.token_ids)} token" + "s" * (len(beam.token_ids) != 1)
        if json_stats:
            click.echo(json.dumps({"backend": backend.name, **about, "finish_reason": beam.finish_reason}), err=True)
        else:
            said = f"{tokens}, log-probability {beam.log_probability:.4f}, score {beam.score:.4f}"
            click.echo(f"constrain: {said}", err=True)
        if compiled is not None and beam.finish_reason == "length":
            raise Stop(Exit.LENGTH, f"the text is not complete: it is cut after {tokens}")


def _start(
    backend: Backend,
    compiled: CompiledGrammar | None,
    ids: list[int],
    most: int,
    budget: bool,
    sampler: Any,
    stop: Sequence[str],
) -> Any:
    """Begin a generation."""
    from constrain.generation import generate as begin

    with _enough_tokens(backend, compiled, ids, most, budget):
        return begin(
            backend,
            backend.tokenizer,
            compiled,
            prompt=ids,
            max_tokens=most,
            budget=budget,
            sampler=sampler,
            stop=stop,
        )


@contextlib.contextmanager
def _enough_tokens(
    backend: Backend, compiled: CompiledGrammar | None, ids: list[int], most: int, budget: bool
) -> Iterator[None]:
    """That the grammar needs more tokens than there may be is an ending of its own."""
    from constrain.engine.matcher import Matcher

    try:
        yield
    except ConstrainError as error:
        room = most if backend.max_seq_len is None else min(most, backend.max_seq_len - len(ids))
        if compiled is None or room < 1 or not budget:
            raise
        needed = Matcher(compiled).tokens_to_finish()
        if needed <= room:
            raise
        limit = f"--num-tokens {most}" if room == most else f"the model's context, with room for {room} tokens,"
        raise Stop(
            Exit.LENGTH, f"{limit} is too little: the shortest text of the grammar takes {needed} tokens"
        ) from error
