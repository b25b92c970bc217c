"""Datasets: plain classes with a length and items, which run on the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.convert.tools import convert, rules_of

HEAD = "from torch.utils.data import Dataset, IterableDataset\n\n\n"
WINDOWS = """
class Windows(Dataset):
    def __init__(self, data, size):
        super().__init__()
        self.data = torch.as_tensor(data)
        self.size = size

    def __len__(self):
        return len(self.data) - self.size

    def __getitem__(self, i):
        if self.data[i].item() < 0:
            return self.data[i : i + 1]
        return self.data[i : i + self.size]
"""


def _names(source: str) -> dict[str, Any]:
    result = convert(HEAD + source)
    assert result.complete, result.findings
    assert "Dataset" not in result.code
    names: dict[str, Any] = {}
    exec(result.code, names)
    return names


def test_a_dataset_is_a_class_that_ends_where_its_length_says() -> None:
    made = _names(WINDOWS)["Windows"](np.array([1, -2, 3, 4, 5]), 2)
    assert len(made) == 3
    assert [item.tolist() for item in made] == [[1, -2], [-2], [3, 4]]


def test_items_one_after_the_other() -> None:
    source = (
        "class Stream(IterableDataset):\n    def __iter__(self):\n        yield torch.ones(2)\n"
    )
    made = convert(HEAD + source)
    assert made.complete
    assert "class Stream:" in made.code
    assert "range(len(self))" not in made.code


@pytest.mark.parametrize(
    "line",
    [
        "def f(a):\n    x = Windows(a, 2)\n    return x + Windows(a, 3)\n",
        "def f(a):\n    return isinstance(a, Dataset)\n",
        "class B(torch.utils.data.TensorDataset):\n    pass\n",
    ],
)
def test_what_needs_torchs_class_is_a_finding(line: str) -> None:
    assert rules_of(HEAD + WINDOWS + "\n\n" + line)
