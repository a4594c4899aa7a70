"""Whether another version of the package gives the same masks: every mask of every schema, compared.

    python -m bench.same_masks OTHER_CHECKOUT [--schemas N] [--share I/N] [--budget TOKENS]

Both versions compile the schemas of MaskBench's file and go through their instances with Llama-3's vocabulary, and
through the texts of the other grammars (``bench/maskbench/subjects.py``).  Each writes a hash of all masks of each
instance, of which tokens it accepted, and of errors.  What differs is printed, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


_RAISED = "raised"


def _lines(count: int | None, share: str, budget: int | None) -> Iterator[str]:
    """One line for each job: its name, a hash of its masks, how many they are."""
    import constrain
    from bench.maskbench.jobs import Kind
    from bench.maskbench.schemas import SCHEMAS, VOCABULARY, SchemaJobs, data_folder
    from bench.maskbench.subjects import subject_jobs
    from bench.maskbench.vocabulary import TokenTable
    from constrain.errors import ConstrainError

    folder = data_folder()
    table = TokenTable.read(folder / VOCABULARY)
    vocabulary = constrain.Vocabulary(table.tokens, eos_ids=table.end_ids, special_ids=table.special_ids)
    compiler = constrain.GrammarCompiler(vocabulary)
    read: dict[Any, Any] = {
        Kind.JSON_SCHEMA: constrain.Grammar.from_json_schema,
        Kind.LARK: constrain.Grammar.from_lark,
        Kind.REGEX: constrain.Grammar.from_regex,
    }
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    part, parts = map(int, share.split("/"))
    jobs: list[Any] = [*subject_jobs(table), *SchemaJobs(folder / SCHEMAS, table, seed=0, count=count)]
    for job in jobs[part::parts]:
        digest, masks = hashlib.blake2b(digest_size=16), 0
        try:
            compiled = compiler.compile(read[job.kind](job.grammar))
            for instance in job.instances:
                matcher = constrain.Matcher(compiled, budget)
                for token in instance.tokens:
                    matcher.fill_next_token_bitmask(mask, 0)
                    digest.update(mask.data)
                    masks += 1
                    if not matcher.accept_token(token):
                        digest.update(b"refused")
                        break
                matcher.fill_next_token_bitmask(mask, 0)
                digest.update(mask.data)
        except ConstrainError as error:
            digest.update(str(error).encode())
        except Exception as error:  # a fault of a version is not the end of the comparison
            yield f"{job.id}\t{_RAISED} {error!r}\t{masks}"
            continue
        yield f"{job.id}\t{digest.hexdigest()}\t{masks}"


def _start(checkout: Path, folder: Path, arguments: list[str]) -> subprocess.Popen[str]:
    """This file as a worker, with the package of a checkout and the benchmark of this one."""
    folder.mkdir()
    (folder / "constrain").symlink_to(checkout.resolve() / "constrain")
    (folder / "bench").symlink_to(ROOT / "bench")
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, "-m", "bench.same_masks", "--worker", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=folder)


def main() -> int:
    """Compare, or be a worker."""
    parser = argparse.ArgumentParser(description="Compare all masks with those of another version.")
    parser.add_argument("other", nargs="?", type=Path, help="another checkout")
    parser.add_argument("--schemas", type=int, help="so many schemas instead of all")
    parser.add_argument("--share", default="0/1", help="I/N: every N-th job from the I-th on")
    parser.add_argument("--budget", type=int, help="a budget of tokens for each instance")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        for line in _lines(options.schemas, options.share, options.budget):
            print(line, flush=True)
        return 0
    if options.other is None or not (options.other / "constrain").is_dir():
        parser.error("name the folder of another checkout")
    arguments = ["--share", options.share]
    for name in ("schemas", "budget"):
        if getattr(options, name) is not None:
            arguments += [f"--{name}", str(getattr(options, name))]
    with tempfile.TemporaryDirectory() as folder:
        workers = [
            _start(checkout, Path(folder) / name, arguments)
            for checkout, name in ((ROOT, "this"), (options.other, "other"))
        ]
        jobs = masks = different = faults = 0
        ours, theirs = (worker.stdout or [] for worker in workers)
        for one, other in zip(ours, theirs, strict=True):
            jobs += 1
            masks += int(one.rsplit("\t", 1)[1])
            if f"\t{_RAISED}" in other:
                faults += 1
                print(f"the other version raised: {other.strip()}", flush=True)
            elif one != other:
                different += 1
                print(f"different: {one.strip()} | {other.strip()}", flush=True)
        failed = [worker.wait() for worker in workers]
    aside = f", {faults} not compared since the other version raised" if faults else ""
    print(f"{jobs:,} grammars, {masks:,} masks: {different} different{aside}")
    return 1 if different or any(failed) or not masks else 0


if __name__ == "__main__":
    sys.exit(main())
