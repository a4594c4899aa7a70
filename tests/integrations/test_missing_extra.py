"""Without the extra an integration says what to install."""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from types import ModuleType

import pytest

from constrain.errors import ConstrainError


@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_transformers(monkeypatch, package):
    monkeypatch.delitem(sys.modules, "constrain.integrations.transformers", raising=False)
    if find_spec("torch") is None:
        monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))  # lest it is the one that is missed
    # What Python itself does for a package that is not there, as far as an importer can tell.
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConstrainError, match=rf"needs {package}: pip install 'constrain-llm\[transformers\]'"):
        importlib.import_module("constrain.integrations.transformers")
