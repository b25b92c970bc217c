"""Forms that published models have, each as its authors write it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.convert.tools import X, both, check, rules_of

PARAMETERS = {
    "copied into": "self.table.data.copy_(torch.arange(4).float())",
    "filled": "self.table.data.fill_(2.0)",
    "initialised": "nn.init.constant_(self.table, 3.0)",
    "an item": "with torch.no_grad():\n            self.table[0] = 7.0",
}


@pytest.mark.parametrize("line", PARAMETERS.values(), ids=PARAMETERS)
@pytest.mark.parametrize(
    "made",
    [
        "e = nn.Parameter(torch.zeros(n))\n        return e, {'a': 0}",
        "return nn.Parameter(torch.zeros(n)), {'a': 0}",
    ],
)
def test_a_parameter_that_a_method_gives_beside_something_else(line: str, made: str) -> None:
    """ClimaX's ``create_var_embedding``."""
    code = check(f"""
class M(nn.Module):
    def __init__(self, n=4):
        super().__init__()
        self.table, self.places = self.make(n)
        {line}

    def make(self, n):
        {made}

    def forward(self, x):
        return x + self.table
""")
    assert "nnx.Param" in code


def test_an_array_of_numpy_whose_items_the_constructor_writes() -> None:
    """TabNet's mask of continuous columns."""
    code = check("""
import numpy as np


class M(nn.Module):
    def __init__(self, n=4, places=(1,)):
        super().__init__()
        self.keep = np.ones(n, dtype=bool)
        self.keep[list(places)] = 0

    def forward(self, x):
        columns = []
        for i, kept in enumerate(self.keep):
            columns.append(x[:, i] if kept else x[:, i] * 2)
        return torch.stack(columns, dim=1)
""")
    assert "self.keep.value[list(places)] = 0" in code


NARROW = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        h = x * 2
        h.narrow(1, START, COUNT).WRITE
        return h
"""


@pytest.mark.parametrize("write", ["mul_(3)", "zero_()", "copy_(x[:, :COUNT])"])
@pytest.mark.parametrize(("start", "count"), [(-2, 2), (-3, 2), (-1, 1), (1, 2), (0, 4)])
def test_a_part_from_the_end_is_written(write: str, start: int, count: int) -> None:
    text = NARROW.replace("WRITE", write).replace("START", str(start))
    check(text.replace("COUNT", str(count)))


def test_one_of_two_values_is_no_place_with_an_axis() -> None:
    text = """
class M(nn.Module):
    def forward(self, x):
        h = x * 1
        r = h[torch.where(WHERE)[0]]
        r.zero_()
        return h
"""
    assert rules_of(text.replace("WHERE", "x[:, 0] > 9, 0, 1"))
    found = rules_of(text.replace("WHERE", "torch.tensor([True, False, True])"))
    assert "MUT001" not in found


POINTS = """
def index_points(points, idx):
    view_shape = list(idx.shape)
    view_shape[1:] = [1] * (len(view_shape) - 1)
    repeat_shape = list(idx.shape)
    repeat_shape[0] = 1
    rows = torch.arange(points.shape[0]).view(view_shape).REPEATED
    return points[rows, idx, :]


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        xyz = x[:, :, None] * torch.ones(3)
        grouped = index_points(xyz, xyz[:, :, 0].argsort(dim=1))
        grouped -= 1
        return grouped.sum(-1) + xyz.sum(-1)
"""


def test_sizes_of_which_one_is_written_make_an_axis() -> None:
    """``index_points`` of PointNet++."""
    check(POINTS.replace("REPEATED", "repeat(repeat_shape)"))


GRAPH = """
import numpy as np


def conv_init(conv):
    nn.init.constant_(conv.weight, 0.5)


class Unit(nn.Module):
    def __init__(self, A, residual=1):
        super().__init__()
        if residual == 2:
            self.down = nn.Sequential(nn.Linear(4, 4))
        elif residual == 1:
            self.down = lambda x: x
        else:
            self.down = lambda x: 0
        self.PA = nn.Parameter(torch.from_numpy(A.astype(np.float32)))
        self.lin = nn.Linear(4, 4)
        for m in self.modules():
            if isinstance(m, ASKED):
                conv_init(m)

    def forward(self, x):
        device = x.get_device()
        A = self.PA.cuda(x.get_device()) if x.is_cuda else self.PA.to(device=x.device)
        return self.lin(x @ A) + self.down(x) + torch.zeros(4, device=x.device)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        A = np.eye(4)
        self.one, self.two, self.three = Unit(A), Unit(A, 0), Unit(A, 2)

    def forward(self, x):
        return self.three(self.two(self.one(x)))
"""


def test_a_unit_of_ctr_gcn() -> None:
    check(GRAPH.replace("ASKED", "nn.Linear"))
    assert rules_of(GRAPH.replace("ASKED", "nn.ReLU"))


def test_the_number_of_a_device_as_a_number_is_refused() -> None:
    text = "class M(nn.Module):\n    def forward(self, x):\n        USED\n"
    assert rules_of(text.replace("USED", "return x * 2 if x.get_device() >= 0 else x"))
    used = "d = x.get_device()\n        return x.to(d) + d"
    assert rules_of(text.replace("USED", used))
    used = "d = x.get_device()\n        return x.to(d) + torch.ones(4).cuda(d)"
    assert not rules_of(text.replace("USED", used))


def test_the_initial_values_of_a_unit() -> None:
    model, port, _ = both(GRAPH.replace("ASKED", "nn.Linear"))
    assert isinstance(model(X * 0), torch.Tensor)
    np.testing.assert_allclose(port.one.lin.kernel[...], 0.5)
