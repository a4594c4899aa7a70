"""Wheels with the machine code of the kernels; all else about the package is in pyproject.toml."""

from __future__ import annotations

import os
import platform
import runpy
import sys
import time
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
TARGETS = {"x86_64": ["x86_64_v3", "x86_64_v4"], "AMD64": ["x86_64_v3", "x86_64_v4"], "aarch64": ["aarch64"]}


def targets() -> list[str]:
    """The processors to compile for: those that CONSTRAIN_BUILD_KERNELS names, none, or those of this platform."""
    named = os.environ.get("CONSTRAIN_BUILD_KERNELS")
    if named is not None:
        return named.split()
    return TARGETS.get(platform.machine(), []) if sys.platform == "linux" else []


class BuildWithMachineCode(build_py):
    """Compiles the kernels where the package is copied to; not for an editable installation, which has none."""

    def run(self) -> None:
        """Copy the package, and add the libraries."""
        super().run()
        if self.editable_mode or not targets():
            return
        folder = Path(self.build_lib).resolve() / "constrain" / "kernels" / "machine_code"
        sys.path.insert(0, str(HERE))
        started = time.perf_counter()
        try:
            build = runpy.run_path(str(HERE / "constrain" / "kernels" / "build.py"))
            libraries = {folder / f"{name}{build['SUFFIX']}": build["TARGETS"][name] for name in targets()}
            for path in folder.glob("*"):
                path.unlink()
            build["build_libraries"](libraries, progress=build["say_progress"])
        except (ImportError, RuntimeError) as error:
            if os.environ.get("CONSTRAIN_BUILD_KERNELS"):
                raise
            print(
                f"constrain: without machine code, so kernels are compiled in the first run: {error}", file=sys.stderr
            )
        else:
            print(f"constrain: compiled in {time.perf_counter() - started:.0f} s", file=sys.stderr)
        finally:
            sys.path.remove(str(HERE))


class WheelOfAPlatform(bdist_wheel):
    """Says for which platform a wheel with machine code is; any Python from 3.10 on loads it."""

    def finalize_options(self) -> None:
        """Set the tag's first parts."""
        if targets():
            self.py_limited_api = "cp310"
        super().finalize_options()


class DistributionOfAPlatform(Distribution):
    """One that says that it has extension modules."""

    def has_ext_modules(self) -> bool:
        """Whether it has."""
        return bool(targets())


setup(distclass=DistributionOfAPlatform, cmdclass={"build_py": BuildWithMachineCode, "bdist_wheel": WheelOfAPlatform})
