"""Where the engine is taken hold of from outside: small tables, and failures where memory and files are asked for.

The engine has no code for tests.  What is patched here are its modules and classes, for the time of one ``with``.
"""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

import constrain.engine
import constrain.engine.grammar_tables as tables_module
import constrain.engine.storage.tables as tables
from bench.fuzz.protocol import note
from constrain.engine.automata import prelude as stock
from constrain.engine.compiled_grammar import CompiledGrammar
from constrain.engine.storage import header, schemas, statuses
from constrain.engine.vocabulary import trie
from constrain.errors import LimitError
from constrain.kernels.jit import python_function


def import_engine() -> list[Any]:
    """All modules of the engine, so that no kernel is compiled, and none is imported, between two patches."""
    return [
        importlib.import_module(found.name)
        for found in pkgutil.walk_packages(constrain.engine.__path__, "constrain.engine.")
    ]


@contextlib.contextmanager
def nothing() -> Iterator[None]:
    """No patch at all."""
    yield


@contextlib.contextmanager
def patched(*patches: tuple[Any, str, Any]) -> Iterator[None]:
    """Set attributes, and set them back."""
    before = [(owner, name, owner.__dict__[name]) for owner, name, _ in patches]
    try:
        for owner, name, value in patches:
            setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in reversed(before):
            setattr(owner, name, value)


def make_masks_by_core(compiled: CompiledGrammar) -> None:
    """Have a grammar's masks made by core from the beginning, as after long walks; with few tokens all are short."""
    compiled.ctx[header.LONG_WALKS] = 1 << 30


# Tables of a fixed size, and those that the expressions of a front-end (automata/prelude.py) are copied into.
_AS_THEY_ARE = {
    *(
        schemas.BYTE_CLASSES,
        schemas.CLASS_BYTES,
        schemas.CLASS_SIZES,
        schemas.CLASS_GROUPS,
        schemas.SELF_LOOPS,
        schemas.FOLLOWS,
        schemas.BOUNDARY_CURSOR,
        schemas.COST_WALK,
        schemas.PATH_SEARCH,
    ),
    *stock._SLOTS,
    *stock._BUCKETS,
}


@contextlib.contextmanager
def small_tables(collect_bytes: int = 1 << 13) -> Iterator[None]:
    """Tables that begin with few elements, so that they grow all the time, and states that are forgotten early.

    A table lies where it does otherwise; only the number of elements that it is said to have room for is another.
    """
    module: Any = tables
    specs = list(schemas.SPECS)
    template = module._TEMPLATE
    before_template = template.copy()
    for slot, (dtype, capacity, hashes) in enumerate(specs):
        if slot in _AS_THEY_ARE or capacity <= 16:
            continue
        specs[slot] = (dtype, 16, hashes)
        template[header.HEADER + 3 * slot + 1] = 16
    before_specs = schemas.SPECS[:]
    schemas.SPECS[:] = specs
    compiled: Any = tables_module
    _forget_beginnings()
    try:
        with patched(
            (compiled, "_COLLECT_BYTES", collect_bytes),
            (compiled, "_START_OVER_BYTES", 1 << 17),
            (module, "_INITIAL_BYTES", sum(map(module._initial_bytes, range(schemas.N_SLOTS)))),
        ):
            yield
    finally:
        schemas.SPECS[:] = before_specs
        template[:] = before_template
        _forget_beginnings()


def _forget_beginnings() -> None:
    tables.beginning.cache_clear()
    tables_module._beginning.cache_clear()


@contextlib.contextmanager
def low_thresholds(children: int = 2, nodes: int = 2) -> Iterator[None]:
    """Vocabularies that are made meanwhile index trie nodes of so few children as wide, and subtrees of so few nodes as
    large ones, so that small vocabularies reach what is meant for large ones.

    The numbers are constants of a compiled kernel; so its Python source runs in its place.
    """
    module: Any = trie
    index = python_function(module._index)
    with patched((module, "WIDE_CHILDREN", children), (module, "LARGE_SUBTREE", nodes), (module, "_index", index)):
        yield


class Injector:
    """Counts what could fail, and lets one of it fail.

    Attributes
    ----------
    count : int
        How many points were passed while it was armed.
    target : int
        Which of them fails, from 1 on; 0 for none.
    lasting : bool
        Whether all points behind it fail too, until it is disarmed.
    where : str
        The point that failed first.
    failures : int
        How many points failed.
    """

    def __init__(self) -> None:
        self.is_armed = False
        self.lasting = False
        self.count = 0
        self.target = 0
        self.where = ""
        self.failures = 0

    def begin(self, target: int, lasting: bool) -> None:
        self.is_armed, self.lasting, self.count, self.target, self.where = False, lasting, 0, target, ""
        self.failures = 0

    def fails(self, where: str) -> bool:
        """Pass a point; whether it fails."""
        if not self.is_armed:
            return False
        self.count += 1
        fails = self.count == self.target or (self.lasting and 0 < self.target < self.count)
        self.failures += fails
        if fails and not self.where:
            self.where = where
            note(f"after a failure at {where}")
        return fails


class _FailingModule:
    """A module some of whose functions may fail."""

    def __init__(self, module: Any, failing: dict[str, Any]) -> None:
        self.__dict__.update(failing)
        self.__module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__module, name)


# What asks for memory, of the functions that the engine calls.
_ALLOCATING = (
    *("empty", "zeros", "ones", "full", "array", "asarray", "ascontiguousarray", "arange", "fromiter", "frombuffer"),
    *("concatenate", "flatnonzero", "unique", "cumsum", "repeat", "searchsorted", "argsort", "lexsort", "packbits"),
)
# Those of the tables; what fails there is a limit that is met, or memory.
_GROWING = {
    "_enlarge": getattr(tables, "TablesFullError", LimitError)(
        "the grammar needs more bytes of tables (this failure was injected); raise limit_bytes"
    ),
    "allocate": MemoryError("injected"),
    "_install": MemoryError("injected"),
    "_extend": MemoryError("injected"),
    "__init__": MemoryError("injected"),
}


def _failing(injector: Injector, where: str, function: Callable[..., Any], error: BaseException) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if injector.fails(where):
            raise type(error)(*error.args)
        return function(*args, **kwargs)

    return call


@contextlib.contextmanager
def failing_memory(injector: Injector) -> Iterator[None]:
    """Let what the engine asks memory of fail as an injector says, and the checks of limits.

    Points: numpy's functions as the engine's modules call them; the growth of tables; mapped memory; a kernel's report
    that a pattern takes too long to follow.
    """
    import mmap

    import numpy as np

    allocating = {
        name: _failing(injector, f"np.{name}", getattr(np, name), MemoryError("injected")) for name in _ALLOCATING
    }
    numpy = _FailingModule(np, allocating)
    mapped = _FailingModule(mmap, {"mmap": _failing(injector, "mmap", mmap.mmap, OSError(12, "injected"))})
    patches: list[tuple[Any, str, Any]] = []
    for module in import_engine():
        if module.__dict__.get("np") is np:
            patches.append((module, "np", numpy))
        if module.__dict__.get("mmap") is mmap:
            patches.append((module, "mmap", mapped))
    for name, error in _GROWING.items():
        if name in tables.Tables.__dict__:
            old = tables.Tables.__dict__[name]
            patches.append((tables.Tables, name, _failing(injector, f"Tables.{name}", old, error)))
    with patched(*patches), _failing_kernels(injector):
        yield


@contextlib.contextmanager
def _failing_kernels(injector: Injector) -> Iterator[None]:
    """Let kernels report that a pattern takes too long, with and without having done their work before."""
    owner: Any = tables_module.GrammarTables
    repeat = owner.__dict__["_repeat"]

    def _repeat(self: Any, attempt: Callable[[], int]) -> int:
        if injector.fails("a kernel's limit, before it has run"):
            attempt = _limit
        elif injector.fails("a kernel's limit, after it has run"):
            attempt()
            attempt = _limit
        result: int = repeat(self, attempt)
        return result

    with patched((owner, "_repeat", _repeat)):
        yield


def _limit() -> int:
    return statuses.LIMIT


@contextlib.contextmanager
def failing_files(injector: Injector) -> Iterator[None]:
    """Let each operation of the cache on disk fail as an injector says."""
    import os
    import pathlib
    import tempfile

    import numpy as np

    from constrain.engine.storage import disk_cache

    module: Any = disk_cache
    error = OSError(5, "injected")

    def failing(owner: Any, *names: str) -> dict[str, Any]:
        return {
            name: _failing(injector, f"{owner.__name__}.{name}", getattr(owner, name), error)
            for name in names
            if hasattr(owner, name)
        }

    patches: list[tuple[Any, str, Any]] = []
    if "os" in module.__dict__:
        names = (
            "replace",
            "unlink",
            "utime",
            "fstat",
            "fsync",
            "rename",
            "remove",
            "scandir",
            "stat",
            "listdir",
            "open",
        )
        patches.append((module, "os", _FailingModule(os, failing(os, *names))))
    if "tempfile" in module.__dict__:

        def named(*args: Any, **kwargs: Any) -> Any:
            if injector.fails("NamedTemporaryFile"):
                raise OSError(28, "injected")
            return _FailingFile(tempfile.NamedTemporaryFile(*args, **kwargs), injector)

        patches.append((module, "tempfile", _FailingModule(tempfile, {"NamedTemporaryFile": named})))
    if "np" in module.__dict__:
        # Right before the content of a file is read.
        patches.append((module, "np", _FailingModule(np, failing(np, "empty"))))
    for name in ("open", "mkdir", "glob", "stat", "unlink"):
        if name in pathlib.Path.__dict__:
            old = pathlib.Path.__dict__[name]
            patches.append((pathlib.Path, name, _failing(injector, f"Path.{name}", old, error)))
    with patched(*patches):
        yield


class _FailingFile:
    """A file each of whose writes may fail after a part of it, and whose closing may fail."""

    def __init__(self, file: Any, injector: Injector) -> None:
        self._file = file
        self._injector = injector
        self.name = file.name

    def write(self, data: Any) -> Any:
        if self._injector.fails("write"):
            self._file.write(memoryview(data).cast("B")[: memoryview(data).nbytes // 2])
            raise OSError(28, "injected")
        return self._file.write(data)

    def __enter__(self) -> _FailingFile:
        self._file.__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        self._file.__exit__(*error)
        if self._injector.fails("close"):
            raise OSError(28, "injected")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
