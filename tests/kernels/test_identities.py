"""Whether a list has the same objects as before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from constrain.kernels import identities, library

WAYS = [pytest.param(identities._compare_ids, id="ids")]
if library.loaded is not None:
    WAYS.append(pytest.param(library.loaded.are_at, id="library"))


def addresses_of(values: list[Any]) -> Any:
    return np.array(list(map(id, values)), np.int64)


@pytest.mark.parametrize("are_at", WAYS)
def test_the_same_objects_in_the_same_order(are_at: Any) -> None:
    values: list[Any] = [[], [], "a", 5]
    addresses = addresses_of(values)
    assert are_at(values, addresses) is True
    assert are_at(list(values), addresses) is True
    assert are_at([[], *values[1:]], addresses) is False, "equal, but another one"
    assert are_at(values[::-1], addresses) is False
    assert are_at(values[:3], addresses) is False
    assert are_at([*values, 5], addresses) is False
    assert are_at(values, addresses[:3].copy()) is False
    assert are_at([], addresses_of([])) is True


@pytest.mark.skipif(library.loaded is None, reason="no library of machine code")
@pytest.mark.parametrize("addresses", [np.zeros(2, np.int32), np.zeros((1, 2), np.int64), np.zeros(4, np.int64)[::2]])
def test_what_are_no_addresses(addresses: Any) -> None:
    assert library.loaded is not None
    with pytest.raises(TypeError):
        library.loaded.are_at([1, 2], addresses)
    with pytest.raises(TypeError):
        library.loaded.are_at((1, 2), np.zeros(2, np.int64))
