"""What kernels return in place of a result: no two statuses are the same number, and there are no others."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import constrain.engine
from constrain.engine.storage.statuses import Status

ENGINE = Path(constrain.engine.__file__).parent
FILES = sorted(
    ".".join(path.relative_to(ENGINE).with_suffix("").parts) for path in ENGINE.rglob("*.py") if path.stem != "__init__"
)


def source_of(name: str) -> str:
    return (ENGINE / f"{name.replace('.', '/')}.py").read_text()


KERNELS = [name for name in FILES if "@njit" in source_of(name)]


def module_of(name: str) -> ModuleType:
    return importlib.import_module(f"constrain.engine.{name}")


def results(expression: ast.expr | None) -> Iterator[ast.expr]:
    """The alternatives of a returned value, without conversions."""
    if isinstance(expression, ast.IfExp):
        yield from results(expression.body)
        yield from results(expression.orelse)
    elif isinstance(expression, ast.Call) and isinstance(expression.func, ast.Name):
        if expression.func.id in ("int64", "min", "max"):
            for argument in expression.args:
                yield from results(argument)
    elif isinstance(expression, ast.BoolOp):
        for value in expression.values:
            yield from results(value)
    elif expression is not None:
        yield expression


def returned(module: ModuleType, name: str) -> Iterator[tuple[str, int, int]]:
    """(as it is written, value, line) of the negative constants that functions return."""
    for node in ast.walk(ast.parse(source_of(name))):
        if not isinstance(node, ast.Return):
            continue
        for expression in results(node.value):
            if isinstance(expression, ast.Name):
                value = getattr(module, expression.id, None)
                if type(value) is int and value < 0:
                    yield expression.id, value, node.lineno
            elif isinstance(expression, ast.UnaryOp) and isinstance(expression.op, ast.USub):
                if isinstance(expression.operand, ast.Constant):
                    yield ast.unparse(expression), -expression.operand.value, node.lineno


def test_statuses_are_negative_and_all_different() -> None:
    values = [status.value for status in Status]
    assert len(set(values)) == len(values) == len(Status.__members__)
    assert max(values) < 0


@pytest.mark.parametrize("name", FILES)
def test_a_name_of_a_status_is_that_status_in_every_file(name: str) -> None:
    members: dict[str, Any] = vars(module_of(name))
    for status in Status:
        assert members.get(status.name, status.value) == status.value
        if status.name in members and name != "storage.statuses":
            source = source_of(name)
            assert f"\n{status.name} =" not in source


def test_kernels_return_no_other_negative_constants() -> None:
    """Other negative numbers are -1, which always says that there is nothing."""
    found = 0
    for name in KERNELS:
        module = module_of(name)
        for written, value, line in returned(module, name):
            found += 1
            # -1 may have a name of its own in a file.
            if value != Status.NONE:
                assert written in Status.__members__, f"{name}.py:{line} returns {written}, which is no status"
                assert value == Status[written]
    assert found > 200
