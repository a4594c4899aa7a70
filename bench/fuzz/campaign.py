"""Runs campaigns: cases one after the other, in a process of their own, whose crash is a failure like any other."""

from __future__ import annotations

import faulthandler
import json
import os
import random
import subprocess
import sys
import time
import traceback

import click

from bench.fuzz import protocol
from bench.fuzz.kinds import NAMES, kind
from bench.fuzz.protocol import Budget, Counts, Difference
from constrain.engine.vocabulary import files as vocabulary_files

# Seconds.  A case that takes longer hangs.  None of the fixed cases of CI takes half a minute, nor does one of those
# that CI runs in kernels that check the bounds of each access.  The first case of a process may have to wait for
# kernels that are compiled when they are asked for.
_HANGS_AFTER = 600
_HANGS_IN_CI_AFTER = 300


def rng_of(name: str, seed: int, case: int) -> random.Random:
    """Where the randomness of one case comes from."""
    return random.Random(f"{name} {seed} {case}")


def _command(name: str, seed: int, case: int) -> str:
    return f"python -m bench.fuzz --kind {name} --seed {seed} --first {case} --cases 1"


def _say(**message: object) -> None:
    print(json.dumps(message), flush=True)


def _work(name: str, seed: int, first: int, cases: int | None, seconds: float | None, hangs_after: int) -> None:
    """Run cases of one kind in this process; each line on the standard output is a message for the parent.

    One that takes more than ``hangs_after`` seconds ends the process; the first one has as long as kernels may need.
    """
    faulthandler.enable()
    what = kind(name)
    # Nothing is read from disk that an earlier case has left there: a case is the same in each process.
    vocabulary_files._SMALLEST = 1 << 62
    deadline = None if seconds is None else time.monotonic() + seconds
    case = first
    while (cases is None or case < first + cases) and (deadline is None or time.monotonic() < deadline):
        _say(case=case)
        may_compile = case == first and not protocol.is_careful
        faulthandler.dump_traceback_later(_HANGS_AFTER if may_compile else hangs_after, exit=True)
        try:
            # With a fixed number of cases each runs to its own end, so that it is the same each time.
            counts = what.run(rng_of(name, seed, case), Budget(deadline if cases is None else None))
        except Difference as error:
            _say(difference=error.what, text=error.case)
            return
        except BaseException:
            _say(difference="the campaign or the engine raised what nobody expects", text=traceback.format_exc())
            return
        faulthandler.cancel_dump_traceback_later()
        _say(counts=counts)
        case += 1


def run_kind(
    name: str, seed: int, first: int, cases: int | None, seconds: float | None, hangs_after: int = _HANGS_AFTER
) -> tuple[Counts, str]:
    """What cases of one kind have counted in a child process, and what went wrong: an empty string if nothing did."""
    counts, wrong, case = _watch(name, seed, first, cases, seconds, hangs_after, careful=False)
    if wrong:
        # Once more, with each check in a process of its own, for the smallest case: a crash, or a lock that is held for
        # ever, does not get in the way there.
        wrong = _watch(name, seed, case, 1, None, hangs_after, careful=True)[1] or wrong
    return counts, f"{wrong}\nrepeat it with: {_command(name, seed, case)}" if wrong else ""


def _watch(
    name: str, seed: int, first: int, cases: int | None, seconds: float | None, hangs_after: int, careful: bool
) -> tuple[Counts, str, int]:
    """Counts, what went wrong, and in which case."""
    command = [sys.executable, "-m", "bench.fuzz", "--work", "--kind", name, "--seed", str(seed), "--first", str(first)]
    command += [] if cases is None else ["--cases", str(cases)]
    command += [] if seconds is None else ["--minutes", str(seconds / 60)]
    command += ["--careful"] if careful else []
    command += ["--hangs-after", str(hangs_after)]
    counts: Counts = Counts()
    case = first
    wrong = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                print(line, end="", flush=True)
                continue
            case = message.get("case", case)
            if "counts" in message:
                counts.update(message["counts"])
                counts["cases"] += 1
            if "difference" in message:
                wrong = f"{name}, case {case}: {message['difference']}\n{message['text']}"
    if child.returncode and not wrong:
        wrong = f"{name}, case {case}: the process ended with {child.returncode} (negative: by that signal; 1: it hung)"
    return counts, wrong, case


def _shown(counts: Counts) -> str:
    return ", ".join(f"{number:,} {what}" for what, number in sorted(counts.items()))


def _run(
    names: list[str],
    seed: int,
    first: int,
    cases: int | None,
    seconds: float | None,
    hangs_after: int = _HANGS_AFTER,
) -> tuple[Counts, bool]:
    total: Counts = Counts()
    failed = False
    for name in names:
        reason = kind(name).needs()
        if reason:
            click.echo(f"{name}: left out: {reason}")
            continue
        begin = time.monotonic()
        counts, wrong = run_kind(name, seed, first, cases, seconds, hangs_after)
        total.update(counts)
        click.echo(f"{name}: {_shown(counts)} ({time.monotonic() - begin:.0f} s)")
        if wrong:
            failed = True
            click.echo(f"WRONG: {wrong}")
    return total, failed


def _run_ci(names: list[str], share: float) -> bool:
    """The fixed cases of each kind; whether something is wrong, or fewer checks were made than should be."""
    failed = False
    for name in names:
        what = kind(name)
        cases = max(1, int(what.ci_cases * share))
        counts, wrong = _run([name], 1, 0, cases, None, _HANGS_IN_CI_AFTER)
        failed |= wrong
        for sort, least in what.ci_least.items():
            # How much the first few cases come to differs from kind to kind.
            wanted = least if share >= 1 else 1
            if not wrong and counts[sort] < wanted and not what.needs():
                failed = True
                click.echo(f"WRONG: {name}: {counts[sort]:,} {sort} were checked, and should be {wanted:,}")
    return failed


@click.command()
@click.option("--kind", "names", type=click.Choice(NAMES), multiple=True, help="Which kinds; all by default.")
@click.option("--seed", type=int, help="By default another one each time; it is printed.")
@click.option("--minutes", type=float, help="How long, for all kinds together; 10 by default.")
@click.option("--cases", type=int, help="So many cases of each kind instead.")
@click.option("--first", default=0, show_default=True, help="The number of the first case.")
@click.option("--ci", is_flag=True, help="Fixed cases of each kind; too few checks are a failure.")
@click.option("--share", default=1.0, show_default=True, help="With --ci: so much of the cases.")
@click.option("--careful", is_flag=True, hidden=True, help="Each check in a process of its own.")
@click.option("--hangs-after", default=_HANGS_AFTER, hidden=True, help="Seconds after which a case hangs.")
@click.option("--work", is_flag=True, hidden=True, help="Run in this process, and speak to the parent.")
def main(
    names: tuple[str, ...],
    seed: int | None,
    minutes: float | None,
    cases: int | None,
    first: int,
    ci: bool,
    share: float,
    work: bool,
    careful: bool,
    hangs_after: int,
) -> None:
    """Make random cases, and have them judged; the exit status is 1 if something is wrong."""
    chosen = list(names or NAMES)
    seconds = None if minutes is None else 60 * minutes
    if work:
        protocol.is_careful = careful
        protocol.check_hangs_after = hangs_after // 5
        assert seed is not None
        _work(chosen[0], seed, first, cases, seconds, hangs_after)
        return
    if ci:
        raise SystemExit(_run_ci(chosen, share))
    if seed is None:
        seed = int.from_bytes(os.urandom(4), "little")
    click.echo(f"seed {seed}")
    if cases is None and seconds is None:
        seconds = 600.0
    total, failed = _run(chosen, seed, first, cases, None if seconds is None else seconds / len(chosen))
    click.echo(f"all: {_shown(total)}; seed {seed}")
    raise SystemExit(failed)
