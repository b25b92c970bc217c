"""Outputs of either framework as one flat mapping."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from numerics.tree import flatten


class Cache:
    """Keys and values of each layer."""

    def __init__(self) -> None:
        self.layers = [(torch.ones(1), torch.zeros(2)), (torch.ones(3), None)]

    def __len__(self) -> int:
        return len(self.layers)

    def __iter__(self) -> Iterator[object]:
        return iter(self.layers)


def test_an_object_that_has_items_is_a_sequence_of_them() -> None:
    found = flatten({"past": Cache()})
    assert list(found) == ["past[0][0]", "past[0][1]", "past[1][0]", "past[1][1] is None"]
    assert found["past[0][1]"].shape == (2,)


@pytest.mark.parametrize("value", [object(), {1.0, 2.0}, iter([1.0])])
def test_what_has_no_order_or_no_end_is_not_compared(value: object) -> None:
    with pytest.raises(TypeError, match="cannot compare a"):
        flatten([value])
