"""Group: how long each file takes to open for the first and for the second time, beside its reference library.

Each opening is in a process of its own, in processor time; the module that is called, its bytecode, the machine code
and the file are warm.  The first opening finds an empty cache folder and fills it, the second finds what the first
left there; after it, three ids are decoded, for which some tables are made.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from bench.figures import data_folder
from bench.tokenizers.subjects import ROOT, Subject

_RUNS = 3
_COLUMNS = ("first", "second", "decode", "without", "reference")
_OURS = """
import sys, time
from constrain.tokenizers.factory import load_tokenizer
clock = time.process_time()
tokenizer = load_tokenizer(sys.argv[1])
loaded = time.process_time()
tokenizer.decode([260, 261, 262])
print(loaded - clock, time.process_time() - loaded)
"""
_THEIRS = {
    ".json": """
import sys, time, tokenizers
clock = time.process_time()
tokenizers.Tokenizer.from_file(sys.argv[1])
print(time.process_time() - clock)
""",
    ".model": """
import sys, time, sentencepiece
clock = time.process_time()
sentencepiece.SentencePieceProcessor(model_file=sys.argv[1])
print(time.process_time() - clock)
""",
    ".tiktoken": """
import sys, time, tiktoken.load
clock = time.process_time()
ranks = tiktoken.load.load_tiktoken_bpe(sys.argv[1])
tiktoken.Encoding("ranks", pat_str="x", mergeable_ranks=ranks, special_tokens={})
print(time.process_time() - clock)
""",
}


def reopening(subjects: list[Subject]) -> None:
    """One row for each file among the vocabularies; ``subjects`` are not asked."""
    click.echo(f"\nreopen: seconds, medians of {_RUNS}")
    click.echo(f"{'':34s}{'MB':>8s}" + "".join(f"{each:>12s}" for each in _COLUMNS))
    with tempfile.TemporaryDirectory(prefix="constrain-reopen-") as name:
        for path in _files(Path(name)):
            _row(path, Path(name))


def _files(folder: Path) -> list[Path]:
    given = data_folder() / "vocab"
    unpacked = folder / "llama3" / "tokenizer.json"
    unpacked.parent.mkdir()
    unpacked.write_bytes(gzip.decompress((given / "llama3-tokenizer.json.gz").read_bytes()))
    found = [path for path in sorted(given.iterdir()) if path.suffix in (".gguf", ".model", ".tiktoken")]
    return [unpacked, *found]


def _row(path: Path, folder: Path) -> None:
    times: dict[str, list[float]] = {name: [] for name in _COLUMNS}
    reference = _THEIRS.get(path.suffix)
    for run in range(_RUNS):
        bytecode = {"PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
        kept = {**bytecode, "CONSTRAIN_CACHE_DIR": str(folder / f"{path.name}-{run}")}
        times["first"].append(_seconds(_OURS, path, kept)[0])
        second, decode = _seconds(_OURS, path, kept)
        times["second"].append(second)
        times["decode"].append(decode)
        times["without"].append(_seconds(_OURS.replace("argv[1])", "argv[1], cache=False)"), path, kept)[0])
        if reference is not None:
            times["reference"].append(_seconds(reference, path, bytecode)[0])
    medians = [f"{sorted(each)[_RUNS // 2]:.3f}" if each else "" for each in times.values()]
    megabytes = f"{path.stat().st_size / 1e6:.1f}"
    click.echo(f"{path.name:34s}{megabytes:>8s}" + "".join(f"{each:>12s}" for each in medians))


def _seconds(code: str, path: Path, environment: dict[str, str]) -> list[float]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", code, str(path)]
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    return list(map(float, output.split()))
