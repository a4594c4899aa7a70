"""Calls through pointers: one list declares all of them, and each has the kernel behind it that the list names."""

from __future__ import annotations

import ast
import functools
import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import constrain.engine
from constrain.engine.storage import links
from constrain.engine.storage.header import FIRST_LINK, HEADER

ENGINE = Path(constrain.engine.__file__).parent
DECLARED = {name: value for name, value in vars(links).items() if name.startswith("F_")}
CALLS = {"far_entry", "far_call", "walk_tokens"}


@functools.cache
def uses() -> dict[str, dict[str, set[str]]]:
    """For ``far_entry``, ``far_call``, and ``walk_tokens``, which takes a visitor: which files use which links."""
    found: dict[str, dict[str, set[str]]] = {call: {} for call in CALLS}
    for path in ENGINE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
                places = {"far_entry": slice(1), "far_call": slice(2), "walk_tokens": slice(3, 4)}[node.func.id]
                for argument in node.args[places]:
                    if isinstance(argument, ast.Call):  # int64(F_...)
                        argument = argument.args[0]
                    name = argument.attr if isinstance(argument, ast.Attribute) else getattr(argument, "id", "")
                    if name.startswith("F_"):
                        found[node.func.id].setdefault(name, set()).add(str(path.relative_to(ENGINE)))
    return found


def test_links_are_numbered_as_they_are_listed() -> None:
    assert sorted(DECLARED.values()) == list(range(len(links.LINKS)))
    assert len(links.LINKS) <= HEADER - FIRST_LINK


def test_each_link_is_provided_and_called() -> None:
    found = uses()
    assert set(found["far_entry"]) == set(DECLARED)
    # The door asks for masks by the numbers of their links (masks/accelerators.py); companions are called by address.
    asked = {name for name, index in DECLARED.items() if links.FIRST_MASK_LINK <= index < links.END_MASK_LINKS}
    # walk_tokens calls those that it is given.
    assert set(found["walk_tokens"]) == {"F_COST_NODE", "F_PATH_NODE", "F_REACHED_NODE"}
    assert set(DECLARED) - set(found["far_call"]) - set(found["walk_tokens"]) - asked == {"F_READ_ALONG"}


def test_each_provider_exists_and_says_so() -> None:
    for name, index in DECLARED.items():
        files = set()
        for provider in links.LINKS[index].providers:
            module, kernel = provider.rsplit(".", 1)
            if kernel == "not_mine":
                continue
            function = getattr(importlib.import_module(f"constrain.engine.{module}"), kernel)
            arguments = getattr(function, "py_func", function).__code__.co_argcount
            assert arguments == (5 if name == "F_READ_ALONG" else 3), provider
            files.add(f"{module.replace('.', '/')}.py")
        assert uses()["far_entry"][name] == files
        assert links.LINKS[index].takes
        assert links.LINKS[index].gives
        assert links.addresses[index] != 0 or not links.addresses.any()  # without the compiler all are 0


def test_another_kernel_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    before = links.addresses.copy()

    def another(ctx: Any, a: Any, b: Any) -> int:
        return 0

    with pytest.raises(ValueError, match=r"stands in for masks\.fast\.self_loops\._take_subtree"):
        links.far_entry(links.F_SELF_LOOP, another)
    assert np.array_equal(links.addresses, before)
