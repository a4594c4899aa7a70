"""setuptools, and what it needs besides to compile kernels: only for wheels that hold them (setup.py)."""

from __future__ import annotations

from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403  (the other functions of a build backend)


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """numba and numpy 2, whose headers make extensions that older versions load too."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), "numba>=0.61", "numpy>=2"]
