"""numpy arrays in attributes of modules."""

from __future__ import annotations

import pytest

from migrator.convert import convert_source
from tests.convert.tools import check

MODEL = """
import numpy as np


def grid(ratios, n):
    out = np.zeros((n, len(ratios)))
    out[:, :] = np.sqrt(ratios)
    return out.astype(np.float32)


class Anchors(nn.Module):
    def __init__(self, ratios=None):
        super().__init__()
        if ratios is None:
            self.ratios = np.array([0.5, 1.0, 2.0, 4.0])
        self.mean = np.arange(4.0, dtype=np.float32)
        {more}

    def forward(self, x):
        {use}
        return x * torch.from_numpy(self.mean)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Anchors()

    def forward(self, x):
        return self.a(x)
"""


@pytest.mark.parametrize(
    ("use", "kept"),
    [
        ("x = x + torch.from_numpy(grid(self.ratios, 3))", True),
        ("x = x * float(max(self.ratios[1:]))", True),
        ("x = x + sum(float(r) for r in self.ratios)", True),
        ("x = x * torch.tensor(self.ratios, dtype=torch.float32)", False),
    ],
)
def test_numpy_may_work_with_them_under_jit(use: str, kept: bool) -> None:
    code = check(MODEL.format(use=use, more=""))
    assert ("self.ratios = HostArray(" in code) is kept
    assert "self.mean = np.arange(" in code


def test_one_that_is_written_is_left() -> None:
    code = check(MODEL.format(use="n = len(self.mean)", more="self.mean[1:] += 1"))
    assert "HostArray" not in code


@pytest.mark.parametrize(
    ("made", "shares"),
    [
        ("torch.from_numpy(a)", True),
        ("torch.from_numpy(a.copy())", False),
        ("torch.tensor(a)", False),
    ],
)
def test_a_write_to_an_array_that_a_tensor_was_made_of(made: str, shares: bool) -> None:
    source = f"def f(n: int):\n    a = np.ones(n)\n    a[1] = 2\n    t = {made}\n    a[0] = 5\n    return t.sum()\n"
    found = [
        f.rule for f in convert_source("import numpy as np\nimport torch\n\n\n" + source).findings
    ]
    assert ("MUT001" in found) is shares
