"""Kind "tokenizer_files": random ``tokenizer.json`` files of all parts that `tokenizers` writes, judged by it.

A file may ask for what the native tokenizers do not have; then loading it must say so, and name the part.  A file that
loads must give the ids, offsets and texts of the library; so must what a cache on disk makes of its tokenizer, what is
written of it and read again, and both with tokens that are added later.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any

from bench.fuzz.protocol import Budget, Counts, Difference, Kind, isolated, smallest
from bench.fuzz.tokenizer_parts import FilePlan, random_plan, random_texts
from constrain.errors import TokenizerError
from constrain.tokenizers.base import Tokenizer
from constrain.tokenizers.formats.json_writer import tokenizer_json_of
from constrain.tokenizers.formats.tokenizer_json import parse_tokenizer_json
from constrain.tokenizers.state_arrays import UnknownStateError, from_arrays, to_arrays

_FILES = 25
_TEXTS = 12

# What a refusal at load must say: that a part is not supported, and which, or what of it is missing.
_NAMES_A_PART = re.compile(r"supported|without a token for every byte|must be")
_CHARACTERS_OF_BYTES = re.compile("\ufffd+")


def _needs() -> str:
    try:
        import tokenizers  # noqa: F401
    except ImportError:
        return "it needs the package tokenizers"
    return ""


def _reference(content: dict[str, Any]) -> Any:
    """The library's tokenizer, or None if it does not read the file."""
    import tokenizers

    return _asked(tokenizers.Tokenizer.from_str, json.dumps(content))


def _asked(call: Any, *arguments: Any, **named: Any) -> Any:
    """What the library answers; None where it raises or panics."""
    try:
        return call(*arguments, **named)
    except KeyboardInterrupt:
        raise
    except BaseException:  # a panic is no Exception
        return None


def _difference(
    ours: Tokenizer, reference: Any, text: str, unmarked: frozenset[int], has_offsets: bool, counts: Counts
) -> str:
    """What differs for a text; an empty string if nothing does.

    ``unmarked``: the token for what is unknown, where the file does not say that it is special: here it is.
    """
    for around in (False, True):
        expected = _asked(reference.encode, text, add_special_tokens=around)
        if expected is None:
            counts["texts that the library refuses"] += 1
            return ""
        try:
            got = ours.encode(text, around)
        except TokenizerError as error:
            return f"encode({text!r}) raises {str(error)!r}, the library has {expected.ids}"
        if got.ids != expected.ids:
            return f"encode({text!r}, {around}) is {got.ids}, the library has {expected.ids}"
        if has_offsets and got.offsets != expected.offsets:
            return f"offsets of {text!r} are {got.offsets}, the library has {expected.offsets} for {got.ids}"
    counts["texts"] += 1
    for skip in (False, True) if unmarked.isdisjoint(got.ids) else (False,):
        wanted = _asked(reference.decode, got.ids, skip_special_tokens=skip)
        if wanted is None:
            continue
        decoded = ours.decode(got.ids, skip)
        # One U+FFFD for each ill-formed sequence here, and for each byte there.
        if _CHARACTERS_OF_BYTES.sub("\ufffd", decoded) != _CHARACTERS_OF_BYTES.sub("\ufffd", wanted):
            return f"decode({got.ids}, {skip}) is {decoded!r}, the library has {wanted!r}"
    return ""


def _has_twins(plan: FilePlan, reference: Any) -> bool:
    """Whether a normalizer spells two added tokens the same: which one the library finds changes from run to run."""
    contents = [token["content"] for token in plan.added if token["normalized"]]
    if reference.normalizer is not None:
        contents = [_asked(reference.normalizer.normalize_str, content) for content in contents]
    return len(set(contents)) < len(contents)


def _asks_for_lost_places(plan: FilePlan) -> bool:
    """Whether something is done at the beginning of the text only, behind ``Precompiled``.

    What follows a character that it removes is at the place of that character in the library.
    """
    first = any(part.get("prepend_scheme") == "first" for part in plan.pre_tokenizers)
    return first and any(part["type"] == "Precompiled" for part in plan.normalizers)


def _has_offsets(plan: FilePlan) -> bool:
    """Whether the library's offsets are those of characters.

    Bytes of a prefix or a suffix move all that follows there.  ``Precompiled`` gives what it makes of a cluster to the
    first character of it.
    """
    model = plan.model
    spelled = model.get("continuing_subword_prefix") or model.get("end_of_word_suffix")
    moved = model.get("byte_fallback") and model["type"] == "BPE" and spelled
    return not moved and not any(part["type"] == "Precompiled" for part in plan.normalizers)


def _difference_of_kept(ours: Tokenizer, texts: list[str]) -> str:
    """What is different in the same tokenizer from the cache; an empty string if nothing is."""
    try:
        kept = from_arrays(to_arrays(ours))
    except UnknownStateError as error:
        return f"it cannot be kept: {error}"
    return _difference_between(ours, kept, texts, "from the cache")


def _difference_between(ours: Tokenizer, other: Tokenizer, texts: list[str], where: str) -> str:
    everything = [
        [
            [tokenizer.tokens_as_bytes(), tokenizer.get_vocab(), tokenizer.special_tokens, tokenizer.eos_ids],
            [_all_of(tokenizer, text, around) for text in texts for around in (False, True)],
        ]
        for tokenizer in (ours, other)
    ]
    for one, twin in zip(*everything, strict=True):
        for expected, got in zip(one, twin, strict=True):
            if got != expected:
                return f"{where} it is {got!r}, not {expected!r}"
    return ""


def _difference_of_written(ours: Tokenizer, texts: list[str], counts: Counts) -> str:
    """What is different in the same tokenizer, written and read again."""
    try:
        content = tokenizer_json_of(ours)
    except TokenizerError:
        counts["files that cannot be written"] += 1
        return ""
    counts["files written"] += 1
    try:
        again = parse_tokenizer_json(json.dumps(content).encode())
    except TokenizerError as error:
        return f"what is written cannot be read: {error}"
    return _difference_between(ours, again, texts, "written and read again")


def _difference_with_more(plan: FilePlan, ours: Tokenizer, reference: Any, texts: list[str], counts: Counts) -> str:
    """What is different after tokens were added, which texts may have."""
    import tokenizers

    known = {token["content"] for token in plan.added}
    new = [text for text in dict.fromkeys(["<more>", *(text[1:4] for text in texts[:3])]) if text and text not in known]
    special = len(texts[0]) % 2 == 1 if texts else False
    if not special and reference.normalizer is not None:
        spelled = [_asked(reference.normalizer.normalize_str, text) for text in (*new, *known)]
        if len(set(spelled)) < len(spelled):
            return ""
    try:
        more = ours.with_added_tokens(new, special=special)
    except TokenizerError:
        counts["tokens that cannot be added"] += 1
        return ""
    added = [tokenizers.AddedToken(text, special=special, normalized=not special) for text in new]
    reference.add_special_tokens(added) if special else reference.add_tokens(added)
    counts["files with more tokens"] += 1
    if [more.token_to_id(text) for text in new] != [reference.token_to_id(text) for text in new]:
        return f"{new} get the ids {[more.token_to_id(text) for text in new]}"
    unmarked = more.special_ids - {token["id"] for token in plan.added if token["special"]}
    unmarked -= {more.token_to_id(text) for text in new} if special else set()
    for text in (*texts[:4], "".join(new), "a ".join(new)):
        wrong = _difference(more, reference, text, unmarked, _has_offsets(plan), counts)
        if wrong:
            return f"with {new} (special: {special}) {wrong}"
    return _difference_of_written(more, texts[:2], counts)


def _all_of(tokenizer: Tokenizer, text: str, around: bool) -> Any:
    try:
        found = tokenizer.encode(text, around)
    except TokenizerError as error:
        return str(error)
    texts = [tokenizer.decode(found.ids, skip) for skip in (False, True)]
    return found.ids, found.tokens, found.offsets, found.special_tokens_mask, texts


def _check(plan: FilePlan, texts: list[str], counts: Counts) -> str:
    content = plan.content()
    reference = _reference(content)
    if reference is None:
        counts["files that the library does not read"] += 1
        return ""
    try:
        ours = parse_tokenizer_json(json.dumps(content).encode())
    except TokenizerError as error:
        if not _NAMES_A_PART.search(str(error)):
            return f"loading raises {str(error)!r}, which names no part that is not supported"
        counts["files refused by name"] += 1
        return ""
    if _asks_for_lost_places(plan):
        counts["files that ask for places that the library loses"] += 1
        return ""
    if _has_twins(plan, reference):
        counts["files about which the library draws lots"] += 1
        return ""
    counts["files"] += 1
    wrong = _difference_of_kept(ours, texts) or _difference_of_written(ours, texts, counts)
    if wrong:
        return wrong
    unmarked = ours.special_ids - {token["id"] for token in plan.added if token["special"]}
    for text in texts:
        wrong = _difference(ours, reference, text, unmarked, _has_offsets(plan), counts)
        if wrong:
            return wrong
    return _difference_with_more(plan, ours, reference, texts, counts)


def run(rng: random.Random, budget: Budget) -> Counts:
    counts: Counts = Counts()
    for _ in range(_FILES):
        plan = random_plan(rng)
        texts = random_texts(rng, plan, _TEXTS)
        wrong = _check(plan, texts, counts)
        if wrong:
            raise _smallest_difference(plan, texts, wrong)
        if budget.is_over():
            break
    return counts


def _smallest_difference(plan: FilePlan, texts: list[str], wrong: str) -> Difference:
    """The same with fewer parts and shorter texts."""

    def still(plan: FilePlan, texts: list[str]) -> str:
        return isolated(lambda: _check(plan, texts, Counts()))

    texts, wrong = smallest(texts, lambda fewer: still(plan, fewer), wrong)
    for name in FilePlan.LISTS:
        whole = plan

        def without(fewer: list[Any], name: str = name, whole: FilePlan = whole) -> str:
            return still(whole.having(**{name: fewer}), texts)

        steps, wrong = smallest(getattr(plan, name), without, wrong)
        plan = whole.having(**{name: steps})
    if len(texts) == 1:
        letters, wrong = smallest(list(texts[0]), lambda fewer: still(plan, ["".join(fewer)]), wrong)
        texts = ["".join(letters)]
    return Difference(wrong, f"content = {plan.content()!r}\ntexts = {texts!r}")


KIND = Kind(
    "tokenizer_files",
    "ids, offsets and texts of random tokenizer.json files by `tokenizers`",
    run,
    40,
    {"files": 300, "texts": 3000},
    _needs,
)
