"""The options of ``constrain generate`` for the usual sampler and for further steps, and the chain they make."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from constrain.cli.argument_types import TEXT
from constrain.cli.sections import option
from constrain.errors import ConstrainError

if TYPE_CHECKING:
    from constrain.sampling import Sampler
    from constrain.tokenizers.base import Tokenizer

SAMPLING = "Sampling"
FURTHER_SAMPLERS = "Further samplers"
"""Sections of the help."""

_BREAKERS = ("\n", ":", '"', "*")
_USUAL: dict[str, tuple[Any, str, str]] = {
    "temperature": (0.8, "T", "0: always the most likely token."),
    "top_k": (40, "K", "Only the K most likely tokens; 0: off."),
    "top_p": (0.9, "P", "Only the fewest tokens that have probability P together; 1: off."),
    "min_p": (0.0, "P", "Only tokens with P times the highest probability; 0: off."),
    "repetition_penalty": (1.1, "R", "Make tokens of the last ones less likely; 1: off."),
    "repetition_window": (64, "N", "How many last ones, prompt included; 0: all."),
}
"""The options of the usual sampler: defaults, what stands for a value in the help, and the help."""

USUAL = tuple(_USUAL)

_FURTHER: dict[str, tuple[Any, str]] = {
    "samplers": (None, "Steps by name, with commas between; those that are not named are left out."),
    "typical": (1.0, "Only the tokens nearest to the expected surprise, that have this probability together; 1: off."),
    "frequency_penalty": (0.0, "Less likely for each time a token was there; 0: off."),
    "presence_penalty": (0.0, "Less likely where a token was there; 0: off."),
    "top_n_sigma": (0.0, "Only tokens within so many standard deviations of the highest logit; 0: off."),
    "dynatemp_range": (0.0, "How far the temperature goes up and down with the entropy; 0: off."),
    "dynatemp_exponent": (1.0, "How the entropy counts for that."),
    "xtc_probability": (0.0, "How often the most likely tokens are left out; 0: off."),
    "xtc_threshold": (0.1, "Which: those with this probability, but for the last of them."),
    "dry_multiplier": (0.0, "How much less likely what lengthens a repetition is; 0: off."),
    "dry_base": (1.75, "How that grows with the length."),
    "dry_allowed_length": (2, "From which length on."),
    "dry_window": (0, "Among how many last tokens; 0: all."),
    "dry_breaker": (
        (),
        "No repetition goes across this text; may be repeated.  [default: a new line, ':', '\"' and '*']",
    ),
    "mirostat": (False, "Hold the surprise of the text near a target (version 2)."),
    "mirostat_tau": (5.0, "That target, in bits."),
    "mirostat_eta": (0.1, "How fast it is followed."),
    "min_tokens": (0, "No end before so many tokens, unless the grammar is complete."),
    "ignore_eos": (False, "No end but where nothing else is allowed."),
    "bad_word": ((), "Text that is not generated, unless nothing else is allowed; may be repeated."),
}
"""The others: defaults, and the help."""


_STEP_OF = {
    **{name: name for name in ("temperature", "top_k", "top_p", "min_p", "typical", "top_n_sigma", "min_tokens")},
    **dict.fromkeys(("repetition_penalty", "repetition_window", "frequency_penalty", "presence_penalty"), "penalties"),
    **dict.fromkeys(("dynatemp_range", "dynatemp_exponent"), "temperature"),
    **dict.fromkeys(("xtc_probability", "xtc_threshold"), "xtc"),
    **dict.fromkeys(("dry_multiplier", "dry_base", "dry_allowed_length", "dry_window", "dry_breaker"), "dry"),
    **dict.fromkeys(("mirostat", "mirostat_tau", "mirostat_eta"), "mirostat"),
    "ignore_eos": "min_tokens",
    "bad_word": "bad_words",
}
"""The step of a chain that each option is for."""

_NEEDS = {
    **dict.fromkeys(("dry_base", "dry_allowed_length", "dry_window", "dry_breaker"), "dry_multiplier"),
    **dict.fromkeys(("mirostat_tau", "mirostat_eta"), "mirostat"),
    "xtc_threshold": "xtc_probability",
    "dynatemp_exponent": "dynatemp_range",
}
"""Options that say how another one does what it does."""

_PENALTIES = {"repetition_penalty": 1, "frequency_penalty": 0, "presence_penalty": 0}
"""What looks at the last tokens, and where each is off."""

_CUTS = ("top_n_sigma", "top_k", "typical", "top_p", "min_p", "xtc")
"""Steps that mirostat takes the place of, as in llama.cpp."""


def check_sampling(said: Collection[str], given: Mapping[str, Any]) -> None:
    """Refuse options that would have no effect.

    ``said``: the names of those that were written out; ``given``: all options of the command.

    Raises :class:`ConstrainError`.
    """
    steps = None if given["samplers"] is None else _listed_steps(given["samplers"])
    if steps is not None and not {"logit_bias", *_STEP_OF.values()}.issuperset(steps):
        return  # a misspelled step, which is refused when the chain is made
    for name in filter(_STEP_OF.__contains__, said):
        step, other = _STEP_OF[name], _NEEDS.get(name)
        if other is not None and not given[other]:
            raise ConstrainError(f"{_flag(name)} needs {_flag(other)}")
        if name == "repetition_window" and not _penalises(given) and (steps is None or step in steps):
            raise ConstrainError(f"{_flag(name)} needs a penalty: {', '.join(map(_flag, _PENALTIES))}")
        if steps is not None and step not in steps:
            raise ConstrainError(f"{_flag(name)}: --samplers leaves {step} out")
        if given["mirostat"] and step in _CUTS:
            raise ConstrainError(f"{_flag(name)} and --mirostat exclude each other: mirostat does its own cutting")


def _penalises(given: Mapping[str, Any]) -> bool:
    """Whether any penalty is on."""
    return any(given[name] != off for name, off in _PENALTIES.items())


def _listed_steps(samplers: str) -> list[str]:
    """The steps that ``--samplers`` names."""
    return [name.strip() for name in samplers.split(",") if name.strip()]


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def usual_sampling_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of :class:`~constrain.sampling.Sampler` to a command; :data:`USUAL` are their names."""
    for name, (default, metavar, text) in reversed(_USUAL.items()):
        names = ("--temperature", "-t") if name == "temperature" else (_flag(name),)
        settings: dict[str, Any] = {"metavar": metavar, "type": type(default), "default": default, "help": text}
        command = option(*names, section=SAMPLING, show_default=True, **settings)(command)
    return command


def further_sampling_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the others; :func:`make_sampler` reads them."""
    for name, (default, text) in reversed(_FURTHER.items()):
        settings: dict[str, Any] = {"section": FURTHER_SAMPLERS, "help": text, "default": default}
        if isinstance(default, bool):
            settings["is_flag"] = True
        elif isinstance(default, tuple):
            settings |= {"multiple": True, "metavar": "TEXT", "type": TEXT}
        elif default is None:
            settings |= {"metavar": "NAME,...", "type": TEXT}
        else:
            settings |= {"type": type(default), "metavar": "N" if type(default) is int else "X", "show_default": True}
        command = option(_flag(name), **settings)(command)
    return command


def make_sampler(seed: int | None, usual: Mapping[str, Any], given: Mapping[str, Any], tokenizer: Tokenizer) -> Sampler:
    """The sampler that the options ask for: the usual one, or a chain where further steps are wanted.

    ``usual``: the options of :class:`~constrain.sampling.Sampler`; ``given``: all options of the command.

    Raises :class:`ConstrainError` for options that make no sense.
    """
    from constrain.sampling import Sampler

    further = {name: given[name] for name in _FURTHER}
    simple = ("typical", "frequency_penalty", "presence_penalty")
    if all(further[name] == default for name, (default, _) in _FURTHER.items() if name not in simple):
        return Sampler(seed=seed, **usual, **{name: further[name] for name in simple})
    from constrain.sampling.chain.chain import ORDER, SamplerChain, steps_in_order

    order: Sequence[str] = ORDER
    if further["samplers"] is not None:
        order = _listed_steps(further["samplers"])
        if not order:
            raise ConstrainError(f"--samplers needs names of steps: {', '.join(ORDER)}")
    return SamplerChain(steps_in_order(order, _steps(usual, further, tokenizer)), seed)


def _steps(usual: Mapping[str, Any], further: Mapping[str, Any], tokenizer: Tokenizer) -> dict[str, Any]:
    from constrain.sampling.chain.bad_texts import BadTexts
    from constrain.sampling.chain.dry import DRY
    from constrain.sampling.chain.min_p import MinP
    from constrain.sampling.chain.min_tokens import MinTokens
    from constrain.sampling.chain.mirostat import Mirostat
    from constrain.sampling.chain.penalties import Penalties
    from constrain.sampling.chain.temperature import Temperature
    from constrain.sampling.chain.top_k import TopK
    from constrain.sampling.chain.top_n_sigma import TopNSigma
    from constrain.sampling.chain.top_p import TopP
    from constrain.sampling.chain.typical import Typical
    from constrain.sampling.chain.xtc import XTC

    steps: dict[str, Any] = {
        "penalties": Penalties(
            usual["repetition_penalty"],
            further["frequency_penalty"],
            further["presence_penalty"],
            usual["repetition_window"],
        ),
        "top_n_sigma": TopNSigma(further["top_n_sigma"]),
        "top_k": TopK(usual["top_k"]),
        "typical": Typical(further["typical"]),
        "top_p": TopP(usual["top_p"]),
        "min_p": MinP(usual["min_p"]),
        "xtc": XTC(further["xtc_probability"], further["xtc_threshold"]),
        "temperature": Temperature(usual["temperature"], further["dynatemp_range"], further["dynatemp_exponent"]),
        "dry": DRY(
            further["dry_multiplier"],
            further["dry_base"],
            further["dry_allowed_length"],
            further["dry_window"],
            {_end_of(tokenizer, text) for text in further["dry_breaker"] or _BREAKERS},
        ),
    }
    if further["mirostat"]:
        steps["mirostat"] = Mirostat(further["mirostat_tau"], further["mirostat_eta"])
        # As in llama.cpp: mirostat does its own cutting.
        for name in _CUTS:
            del steps[name]
    if further["min_tokens"] or further["ignore_eos"]:
        count = None if further["ignore_eos"] else further["min_tokens"]
        steps["min_tokens"] = MinTokens(count, tokenizer.eos_ids)
    if further["bad_word"]:
        if "" in further["bad_word"]:
            raise ConstrainError("--bad-word needs a text of at least one character")
        texts = [word.encode() for word in further["bad_word"]]
        steps["bad_words"] = BadTexts(texts, tokenizer.tokens_as_bytes())
    return steps


def _end_of(tokenizer: Tokenizer, text: str) -> int:
    """The token that a text ends with, behind something else."""
    if not text:
        raise ConstrainError("--dry-breaker needs a text of at least one character")
    return tokenizer.encode_ordinary(f"a{text}").ids[-1]
