"""Kind "history": rollbacks, forks, pickles and resets at random, compared with fresh matchers that read the same."""

from __future__ import annotations

import random

from bench.fuzz import odd_sources, scripts, seams
from bench.fuzz.protocol import Budget, Counts, Difference, Kind, isolated, smallest


def _wrong(case: scripts.Case, reference: scripts.Reference, counts: Counts, is_small: bool) -> str:
    with seams.small_tables() if is_small else seams.nothing():
        run = scripts.Run(case, reference)
        run.compile()
        for number, step in enumerate(case.steps):
            call = run.prepare(step)
            if call is None:
                continue
            try:
                wrong = run.finish(step, call[0](*call[1]))
            except Exception as error:
                wrong = f"{type(error).__name__}: {error}"
            counts["steps"] += 1
            if wrong:
                return f"step {number} {step}: {wrong}"
            # All matchers now and then: what one does must not change another.
            if number % 8 == 7 or number == len(case.steps) - 1:
                wrong = run.wrong()
                if wrong:
                    return f"after step {number} {step}: {wrong}"
        counts["masks"] += run.masks
    return ""


def _judge(case: scripts.Case, reference: scripts.Reference, counts: Counts, is_small: bool) -> None:
    wrong = isolated(lambda: _wrong(case, reference, counts, is_small))
    if wrong:
        steps, wrong = smallest(
            case.steps,
            lambda steps: isolated(lambda: _wrong(case.with_steps(steps), reference, Counts(), is_small)),
            wrong,
        )
        raise Difference(wrong, f"{case.with_steps(steps)}\nsmall tables: {is_small}")


def run(rng: random.Random, budget: Budget) -> Counts:
    counts: Counts = Counts()
    if rng.random() < 0.5:
        source, vocabulary = rng.choice(odd_sources.SOURCES), "odd"
    else:
        source, vocabulary = rng.choice(scripts.SOURCES), rng.choice(("small", "small", "small", "large"))
    accelerators = rng.choice((None, ()))
    reference = scripts.Reference(source, scripts.VOCABULARIES[vocabulary](), accelerators)
    is_small = rng.random() < 0.7
    for _ in range(4):
        case = scripts.random_case(rng, reference, source, vocabulary, rng.choice((20, 60, 200)), scripts.COPIES)
        _judge(case, reference, counts, is_small)
    return counts


KIND = Kind("history", "scripts of tokens, rollbacks, forks and resets by fresh matchers", run, 60, {"masks": 1000})
