"""Kind "faults": one failure at every place where memory, a limit or a file is asked for.

A script is played again and again: in run 1 the first place fails that it comes to, in run 2 the second, and so on
until a run goes through without a failure.  After a failure each matcher, also those that were not in the call, must be
where it was before the call, with the mask of a fresh one; then the call is made again, and the script goes on.
"""

from __future__ import annotations

import random
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import constrain
from bench.fuzz import scripts, seams, vocabularies
from bench.fuzz.protocol import Budget, Counts, Difference, Kind, isolated, smallest
from constrain.engine.storage import disk_cache
from constrain.errors import LimitError

_EXPECTED = (MemoryError, LimitError, OSError)
# Of long scripts not every place: so many, drawn at random.
_MOST = 400


def play(
    case: scripts.Case, reference: scripts.Reference, injector: seams.Injector, counts: Counts, options: Options
) -> str:
    """Play a script with the failure that ``injector`` is set to; what is wrong, or an empty string."""
    run = scripts.Run(case, reference)
    calls: list[Any] = [("compile",), *case.steps]
    for number, step in enumerate(calls):
        where = f"step {number - 1} {step}"
        is_compile = step[0] == "compile"
        call = (run.compile, ()) if is_compile else run.prepare(step)
        if call is None:
            continue
        failed = 0
        failures = injector.failures
        while True:
            injector.is_armed = options.in_compile == is_compile and not failed
            try:
                result = call[0](*call[1])
            except _EXPECTED as error:
                injector.is_armed = False
                counts["faults"] += 1
                failed += 1
                if not injector.where:
                    return f"{where}: {type(error).__name__} without a failure: {error}"
                if failed > 1:
                    return f"{where} fails again after a failure at {injector.where}: {type(error).__name__}: {error}"
                wrong = run.wrong()
                if wrong:
                    return f"{where}, after a failure at {injector.where}: {wrong}"
                continue
            except Exception as error:
                injector.is_armed = False
                return f"{where}: {type(error).__name__}: {error}, after a failure at {injector.where or '-'}"
            break
        injector.is_armed = False
        if injector.failures > failures and not failed:
            counts["faults"] += 1
            counts["faults that the engine could do without"] += 1
        if not is_compile:
            wrong = run.finish(step, result)
            if wrong:
                return f"{where}, after a failure at {injector.where or '-'}: {wrong}"
    counts["masks"] += run.masks
    wrong = run.wrong()
    return f"at the end, after a failure at {injector.where or '-'}: {wrong}" if wrong else ""


@dataclass(frozen=True)
class Options:
    """How failures are injected.

    Attributes
    ----------
    in_compile : bool
        In the compile, or behind it.
    lasting : bool
        All that comes behind the first failure in a call fails too.
    is_small : bool
        In tables that begin small, and so grow all the time.
    """

    in_compile: bool
    lasting: bool
    is_small: bool


def _sweep(
    case: scripts.Case, reference: scripts.Reference, options: Options, rng: random.Random | None, counts: Counts
) -> str:
    """Let one place after the other fail, until none does any more; of many, some (all without an ``rng``)."""
    injector = seams.Injector()
    patch = seams.small_tables() if options.is_small else seams.nothing()
    with patch, seams.failing_memory(injector):
        injector.begin(0, False)
        wrong = play(case, reference, injector, counts, options)
        if wrong:
            return f"without a failure: {wrong}"
        total = injector.count
        targets = list(range(1, total + 1))
        if rng is not None and total > _MOST:
            targets = sorted(rng.sample(targets, _MOST))
        for target in targets:
            injector.begin(target, options.lasting)
            wrong = isolated(lambda: play(case, reference, injector, counts, options))
            if wrong:
                return f"place {target} of {total}: {wrong}"
    return ""


def _memory(rng: random.Random, counts: Counts) -> None:
    source = rng.choice(scripts.SOURCES)
    vocabulary = rng.choice(("small", "small", "small", "large"))
    reference = scripts.Reference(source, scripts.VOCABULARIES[vocabulary]())
    case = scripts.random_case(rng, reference, source, vocabulary, rng.choice((8, 20, 40)))
    options = Options(rng.random() < 0.15, rng.random() < 0.4, rng.random() < 0.7)
    wrong = _sweep(case, reference, options, rng, counts)
    if wrong:
        steps, wrong = smallest(
            case.steps,
            lambda steps: _sweep(case.with_steps(steps), reference, options, random.Random(1), Counts()),
            wrong,
        )
        raise Difference(wrong, f"{case.with_steps(steps)}\n{options}")


def _limits(rng: random.Random, counts: Counts) -> None:
    """A real limit, from hardly enough to compile on: what is refused is refused as a whole."""
    source = rng.choice(scripts.SOURCES)
    reference = scripts.Reference(source, vocabularies.small())
    case = scripts.random_case(rng, reference, source, "small", rng.choice((20, 60)))
    least = constrain.CompiledGrammar(reference.ir, reference.vocabulary)._tables.nbytes
    for _ in range(6):
        limits = {"limit_bytes": least + int(1024 * 2 ** rng.uniform(0, 12))}
        if rng.random() < 0.5:
            limits["mask_limit_bytes"] = rng.choice((0, 1000, 100_000))
        _one_limit(scripts.Case(case.source, case.vocabulary, case.steps, limits), reference, counts)


def _one_limit(case: scripts.Case, reference: scripts.Reference, counts: Counts) -> None:
    wrong = isolated(lambda: _play_limited(case, reference, counts))
    if wrong:
        steps, wrong = smallest(
            case.steps,
            lambda steps: isolated(lambda: _play_limited(case.with_steps(steps), reference, Counts())),
            wrong,
        )
        raise Difference(wrong, str(case.with_steps(steps)))


def _play_limited(case: scripts.Case, reference: scripts.Reference, counts: Counts) -> str:
    run = scripts.Run(case, reference)
    try:
        run.compile()
    except LimitError:
        counts["faults"] += 1
        return ""
    refused = 0
    for number, step in enumerate(case.steps):
        call = run.prepare(step)
        if call is None:
            continue
        try:
            result = call[0](*call[1])
        except LimitError:
            counts["faults"] += 1
            refused += 1
            if step[0] == "begin":
                # The steps behind it count on a matcher at this number.
                run.matchers.append(None)
                run.places.append(None)
            elif step[0] in ("fork", "copy"):
                return f"step {number} {step}: a fork needs no tables, and is refused"
            wrong = _wrong_within_limits(run)
            if wrong:
                return f"step {number} {step}, after {refused} LimitErrors: {wrong}"
            continue
        except Exception as error:
            return f"step {number} {step}, after {refused} LimitErrors: {type(error).__name__}: {error}"
        wrong = run.finish(step, result)
        if wrong:
            return f"step {number} {step}, after {refused} LimitErrors: {wrong}"
    counts["masks"] += run.masks
    return _wrong_within_limits(run)


def _wrong_within_limits(run: scripts.Run) -> str:
    """As :meth:`scripts.Run.wrong`, but a mask may be refused."""
    mask = constrain.allocate_token_bitmask(1, run.reference.vocabulary.size)
    for index, (matcher, place) in enumerate(zip(run.matchers, run.places, strict=True)):
        if matcher is None or place is None:
            continue
        expected = run.reference.seen(place)
        if (matcher.text(matcher.steps), matcher.tokens_left) != (expected.text, expected.left):
            return f"matcher {index} is at {matcher.text(matcher.steps)!r} instead of {expected.text!r}"
        try:
            matcher.fill_next_token_bitmask(mask)
        except LimitError:
            continue
        run.masks += 1
        if expected.mask is not None and mask.tobytes() != expected.mask:
            return f"matcher {index}: the mask is not that of a fresh matcher, at {expected.text!r}"
    return ""


def _disk(rng: random.Random, counts: Counts) -> None:
    """Each operation on a file of arrays fails once; they are read as they were written, or not at all."""
    make = np.random.default_rng(rng.randrange(2**32))
    arrays = {
        name: make.integers(0, 100, rng.choice((0, 1, 50, 3000))).astype(rng.choice((np.int32, np.uint8, np.int64)))
        for name in "abc"
    }
    injector = seams.Injector()
    lasting = rng.random() < 0.5
    for older in ({}, {"a": np.arange(7, dtype=np.int32)}):
        injector.begin(0, lasting)
        target = 0
        while target == 0 or injector.where:
            injector.begin(target, lasting)
            with tempfile.TemporaryDirectory() as name:
                path = Path(name) / "folder" / disk_cache.name_of("arrays")
                wrong = _wrong_files(path, older, arrays, injector)
            if wrong:
                raise Difference(f"{wrong}, after a failure at {injector.where}", f"lasting: {lasting}")
            if injector.where:
                counts["faults"] += 1
                counts["file faults"] += 1
            target += 1


def _wrong_files(path: Path, older: dict[str, Any], arrays: dict[str, Any], injector: seams.Injector) -> str:
    """Write arrays over older ones and read them, with a failure; what is wrong, or an empty string."""
    if older:
        disk_cache.write(path, older)
    with seams.failing_files(injector):
        injector.is_armed = True
        try:
            written = disk_cache.write(path, arrays)
            read = disk_cache.read(path)
        except Exception as error:
            return f"disk_cache raises {type(error).__name__}: {error}"
        finally:
            injector.is_armed = False
    after = disk_cache.read(path)
    for found in (read, after):
        if found is not None and not _are_equal(found, arrays) and not (older and _are_equal(found, older)):
            return "other arrays are read than were written"
    if written and after is None:
        return "what was written cannot be read"
    if older and after is None:
        return "a file is gone that could not be replaced"
    if not disk_cache.write(path, arrays) or not _are_equal(disk_cache.read(path), arrays):
        return "nothing can be kept any more"
    return ""


def _are_equal(some: Any, others: Any) -> bool:
    return (
        some is not None
        and some.keys() == others.keys()
        and all(
            np.array_equal(array, others[name]) and array.dtype == others[name].dtype for name, array in some.items()
        )
    )


def run(rng: random.Random, budget: Budget) -> Counts:
    counts: Counts = Counts()
    rng.choices((_memory, _limits, _disk), (80, 15, 5))[0](rng, counts)
    return counts


KIND = Kind(
    "faults",
    "after each injected failure all matchers by fresh ones, which read the same steps",
    run,
    12,
    {"faults": 2500, "masks": 5000},
)
