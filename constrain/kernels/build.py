"""Makes a library of machine code: ``python -m constrain.kernels.build FOLDER x86_64_v3 x86_64_v4``.

Several processes compile the kernels, a part each, and optimise all of them for a kind of processor, as code that can
lie anywhere in memory (emission.py).  Beside each kernel that Python calls, or that is called by its address, stands an
*adapter* (adapters.py).  The C compiler joins that and library.c to one extension module.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from constrain.kernels.digests import files_with_kernels, sources_digest, sources_of
from constrain.kernels.native import SUFFIX, native_name

_HERE = Path(__file__).resolve().parent
_PACKAGE = _HERE.parent


class Target(NamedTuple):
    """A kind of processor, in LLVM's words."""

    cpu: str
    features: str
    level: int


TARGETS = {
    "x86_64_v3": Target("x86-64-v3", "", 3),
    "x86_64_v4": Target("x86-64-v4", "", 4),
    "aarch64": Target("generic", "+neon", 0),
}


def host_target() -> Target:
    """The processor of this machine."""
    llvm: Any = importlib.import_module("llvmlite.binding")
    return Target(llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten(), 0)


def build_libraries(
    targets: Mapping[Path, Target],
    *,
    package: Path = _PACKAGE,
    processes: int = 2,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write extension modules, each named as Python names it: ``name.abi3.so``.

    Parameters
    ----------
    targets : mapping
        What each of them is made for.
    package : Path
        The folder of the package whose kernels they are.
    processes : int
        How many compile beside each other.
    progress : function
        Is called with how many kernels are compiled and how many there are, as that changes.

    Raises
    ------
    RuntimeError
        If kernels cannot be compiled, or there is no C compiler; the message ends with what it printed.
    """
    with tempfile.TemporaryDirectory(prefix="constrain-kernels-") as folder:
        work = Path(folder)
        kinds = list(targets.values())
        workers = [_start_worker(work, number, processes, kinds, package) for number in range(processes)]
        try:
            _watch(work, workers, progress)
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
        parts = [json.loads((work / f"part-{number}.json").read_text()) for number in range(processes)]
        entries = [entry[2:] for part in parts for entry in part]
        (work / "table.c").write_text("\n".join(_table(entries, package)))
        for kind, (path, target) in enumerate(targets.items()):
            _link(work, path.name.partition(".")[0], target, work / f"kernels-{kind}.o")
            path.parent.mkdir(parents=True, exist_ok=True)
            finished = path.with_name(f".{path.name}.{os.getpid()}")
            finished.write_bytes((work / "library.so").read_bytes())
            finished.chmod(0o755)
            finished.replace(path)
            _check(path, package)


def build_native(folder: Path, *, package: Path = _PACKAGE, progress: Callable[[int, int], None] | None = None) -> Path:
    """Make the library for this processor in a folder; the others as for :func:`build_libraries`.

    Raises
    ------
    RuntimeError
        If it cannot be made.
    """
    name = native_name()
    if name is None:
        raise RuntimeError("what this processor can do is not known, so there is no library for it alone")
    path = folder / f"{name}{SUFFIX}"
    build_libraries({path: host_target()}, package=package, progress=progress)
    return path


def _check(path: Path, package: Path) -> None:
    """Load it once, in a process that has loaded no other of this name."""
    code = "import sys, pathlib; from constrain.kernels import library; library.check(*map(pathlib.Path, sys.argv[1:]))"
    environment = {**os.environ, "PYTHONPATH": str(_PACKAGE.parent), "CONSTRAIN_KERNELS": "jit"}
    command = [sys.executable, "-c", code, str(path), str(package)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{path.name} cannot be loaded: {done.stderr.strip()[-2000:]}")


def _start_worker(
    work: Path, number: int, processes: int, targets: Sequence[Target], package: Path
) -> subprocess.Popen[bytes]:
    paths = [str(package.parent), str(_PACKAGE.parent), *(path for path in sys.path if path)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "CONSTRAIN_KERNELS": "jit",
        "NUMBA_CPU_NAME": targets[0].cpu,
        "NUMBA_CPU_FEATURES": targets[0].features,
        # A library that other machines need not have.
        "NUMBA_DISABLE_INTEL_SVML": "1",
    }
    code = "from constrain.kernels import build; build.work()"
    shared = json.dumps([processes, [target[:2] for target in targets]])
    command = [sys.executable, "-c", code, str(work), str(number), str(package), shared]
    with (work / f"log-{number}").open("wb") as log:
        return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def _watch(work: Path, workers: Sequence[subprocess.Popen[bytes]], progress: Callable[[int, int], None] | None) -> None:
    """Wait until all are done, or one has failed."""
    said = -1
    while True:
        states = [worker.poll() for worker in workers]
        for number, state in enumerate(states):
            if state:
                log = (work / f"log-{number}").read_text(errors="replace").strip()
                raise RuntimeError(log[-2000:] or f"a process ended with {state}")
        count, total = len(list(work.glob("claim-*"))), work / "total"
        if progress is not None and count != said and total.exists():
            said = count
            progress(count, int(total.read_text() or 0))
        if None not in states:
            return
        time.sleep(0.1)


def _table(entries: Sequence[Sequence[str]], package: Path) -> Iterator[str]:
    """The lines of a file in C that names all kernels and the sources."""
    sources = [str(Path(file).relative_to(package)) for file in sources_of(files_with_kernels(package))]
    yield "#include <stdint.h>"
    yield "typedef struct { const char *name, *arguments, *result; int32_t (*adapter)(int64_t *, int64_t *, void **);"
    yield "  void *address; } Kernel;"
    for symbol, *_ in entries:
        yield f"extern int32_t adapter_{symbol}(int64_t *, int64_t *, void **); extern char kernel_{symbol}[];"
    yield "const Kernel kernels[] = {"
    for symbol, name, arguments, result in entries:
        # A row of question marks could be a trigraph.
        code = arguments.replace("?", "\\?")
        yield f'  {{"{name}", "{code}", "{result}", adapter_{symbol}, kernel_{symbol}}},'
    yield "};"
    yield f"const int kernel_count = {len(entries)};"
    quoted = "\\n".join(sources)
    yield f'const char *const library_sources = "{quoted}";'
    yield f'const char *const library_digest = "{sources_digest(package, sources)}";'


def _link(work: Path, name: str, target: Target, code: Path) -> None:
    numpy: Any = importlib.import_module("numpy")
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    includes = [f"-I{path}" for path in (sysconfig.get_path("include"), numpy.get_include())]
    definitions = [f"-DNAME={name}", *([f"-DLEVEL={target.level}"] if target.level else [])]
    command = [*compiler, "-O2", "-fPIC", "-shared", "-fvisibility=hidden", *definitions, *includes]
    command += [str(_HERE / "library.c"), str(work / "table.c"), str(code), "-lm", "-Wl,-s"]
    command += ["-o", str(work / "library.so")]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise RuntimeError(f"there is no C compiler: {error}") from None
    if done.returncode:
        raise RuntimeError(f"{shlex.join(compiler)} failed: {done.stderr.strip()[-2000:]}")


def work() -> None:
    """What each process does: compile kernels that no other has taken; then make object files of what all have."""
    folder, number, package = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    processes, targets = json.loads(sys.argv[4])
    parent = os.getppid()
    emission: Any = importlib.import_module("constrain.kernels.emission")
    emission.emit_instead_of_running()
    # It would go through all that numba keeps after each kernel, and find nothing.
    gc.disable()
    for file in files_with_kernels(package):
        parts = Path(file).relative_to(package.parent).with_suffix("").parts
        importlib.import_module(".".join(parts))
    (folder / "total").write_text(str(len(emission.kernels)))
    part = emission.Part()
    for i in sorted(range(len(emission.kernels)), reverse=number != 0):
        try:
            (folder / f"claim-{i}").touch(exist_ok=False)
        except FileExistsError:
            continue
        part.add(i)
    paths = [folder / f"part-{each}.bc" for each in range(processes)]
    part.write(paths[number])
    (folder / f"compiled-{number}").touch()
    while len(list(folder.glob("compiled-*"))) < processes:
        if os.getppid() != parent:
            return
        time.sleep(0.01)
    for kind in range(number, len(targets), processes):
        (folder / f"kernels-{kind}.o").write_bytes(emission.object_code(paths, *targets[kind]))


def main() -> None:
    """Build the libraries that are named, in a folder."""
    folder, names = Path(sys.argv[1]), sys.argv[2:]
    started, before = time.perf_counter(), os.times()
    paths = {folder / f"{name}{SUFFIX}": TARGETS[name] for name in names}
    build_libraries(paths, progress=say_progress)
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    sizes = ", ".join(f"{path.name} {path.stat().st_size / 1e6:.1f} MB" for path in paths)
    print(f"{sizes}: {time.perf_counter() - started:.0f} s, {seconds:.0f} s of processor time", file=sys.stderr)


def say_progress(done: int, total: int) -> None:
    """Print one line, or on a terminal write it anew."""
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\rcompiling kernels: {done} of {total}", end=end, file=sys.stderr, flush=True)
    elif done == total:
        print(f"compiled {total} kernels", file=sys.stderr)


if __name__ == "__main__":
    main()
