"""What this package's way of compiling leaves out must not be missed, and must not be felt elsewhere."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import numpy as np
import pytest
from numba import njit

from constrain.kernels.compiler import InnerKernelCompiler, KernelCompiler
from constrain.kernels.jit import ENTRY

pytestmark = pytest.mark.skipif(not hasattr(njit(lambda: None), "overloads"), reason="numba compiles nothing")

NOT_KEPT = ENTRY


def spread(values: np.ndarray, low: int) -> tuple[float, int]:
    """Branches, a loop, slices, tuples, arrays, overloads: what kernels are made of."""
    sums = np.zeros(2)
    most = low
    for place, value in enumerate(values[1:]):
        sums[place & 1] += value
        most = max(most, int(value))
    sums[1:] *= 2
    return float(sums[0] - sums[1]), most


def test_kernels_do_what_they_do_compiled_as_usual() -> None:
    values = np.random.default_rng(3).integers(0, 1000, 101)
    assert njit(**NOT_KEPT)(spread)(values, 5) == njit(spread)(values, 5) == spread(values, 5)


@pytest.mark.parametrize("collects", [True, False])
def test_garbage_is_collected_as_before(collects: bool) -> None:
    seen = []

    class Watching(KernelCompiler):
        def define_pipelines(self):  # type: ignore[no-untyped-def]
            seen.append(gc.isenabled())
            return super().define_pipelines()

    def fails(x):  # type: ignore[no-untyped-def]
        return x.nothing_of_this_name

    before = gc.isenabled()
    try:
        (gc.enable if collects else gc.disable)()
        njit("int64(int64)", pipeline_class=Watching)(lambda x: x + 1)
        assert gc.isenabled() is collects
        with pytest.raises(Exception, match="nothing_of_this_name"):
            njit("int64(int64)", pipeline_class=Watching)(fails)
        assert gc.isenabled() is collects
        assert seen == [False, False]
    finally:
        (gc.enable if before else gc.disable)()


def test_options_are_told_apart() -> None:
    # With another treatment of a division by zero the same overload is another function.
    def divided(x):  # type: ignore[no-untyped-def]
        return np.divide(1.0, x) + 1.0 / x

    as_numpy = njit(**NOT_KEPT, error_model="numpy")(divided)
    as_python = njit(**NOT_KEPT)(divided)
    assert as_numpy(0.0) == np.inf
    with pytest.raises(ZeroDivisionError):
        as_python(0.0)
    assert as_numpy(0.0) == np.inf


def test_passes_are_left_out_by_their_names() -> None:
    # If numba calls them otherwise one day, they are merely run: this says that it is time to look.
    from numba.core import compiler

    names = []

    class Watching(KernelCompiler):
        def define_pipelines(self):  # type: ignore[no-untyped-def]
            usual = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state).passes
            (ours,) = super().define_pipelines()
            names.append([each[0].__name__ for each in usual if each not in ours.passes])
            return [ours]

    njit("int64(int64)", pipeline_class=Watching)(lambda x: x + 1)
    assert names == [["InlineClosureLikes", "InlineOverloads", "NopythonRewrites"]]


def test_an_inner_kernel_is_part_of_others_and_has_machine_code_once_it_is_asked_for() -> None:
    entry: dict[str, Any] = {**ENTRY, "_nrt": False}
    without_wrappers = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": InnerKernelCompiler}
    inner: Any = njit("int64(int64)", **{**entry, **without_wrappers})(lambda x: x + 1)
    (compiled,) = inner.overloads.values()
    library, name = compiled.library, compiled.fndesc.llvm_func_name
    assert library.get_pointer_to_function(name) == 0
    assert library.serialize_using_object_code()[1] == "bitcode"
    outer = njit("int64(int64)", **entry)(lambda x: 2 * inner(x))
    assert outer(3) == 8
    library.make_machine_code()
    library.make_machine_code()
    assert library.serialize_using_object_code()[1] == "object"
    # numba's own convention: the status is returned, the result written.
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int64), ctypes.c_void_p, ctypes.c_int64)
    result = ctypes.c_int64()
    assert kind(library.get_pointer_to_function(name))(ctypes.byref(result), None, 41) == 0
    assert result.value == 42
    again = njit("int64(int64)", **entry)(lambda x: 3 * inner(x))
    assert again(3) == 12
