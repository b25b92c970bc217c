"""Arguments of the forward pass that are only handed on as sizes, and places of layers that are called."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

RELATIVE = """\
class Bias(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(32, 2)

    def compute(self, qlen, klen, step=None):
        step = 0 if step is None else step
        q = torch.arange(step, step + qlen, dtype=torch.long)[:, None]
        k = torch.arange(klen, dtype=torch.long)[None, :]
        return self.table((k - q).clamp(-15, 15) + 16).permute(2, 0, 1).unsqueeze(0)

    def forward(self, batch_size, qlen, klen, step=None):
        return self.compute(qlen, klen, step).repeat(batch_size, 1, 1, 1).view(-1, qlen, klen)
"""


def test_sizes_that_another_method_counts_by() -> None:
    main = """

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = Bias()

    def forward(self, x):
        b, n = x.shape
        return self.bias(b, n, n).sum() + x
"""
    assert rules_of(RELATIVE) == []  # whoever calls it
    code = check(RELATIVE + main)
    assert "jnp.arange(step, step + qlen" in code


def test_what_has_axes_is_a_tensor() -> None:
    changed = RELATIVE.replace(".permute(2, 0, 1)", ".permute(2, 0, 1) * qlen.unsqueeze(0)")
    assert rules_of(changed)


def test_sizes_that_come_one_after_another() -> None:
    check("""\
class Grid(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(2, 1)

    def forward(self, *dimensions):
        places = [torch.arange(d) for d in dimensions]
        grid = torch.stack(torch.meshgrid(*places, indexing="ij"))
        return self.l(grid.flatten(1).t().float()).view(dimensions)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.grid = Grid()

    def forward(self, x):
        return self.grid(*x.shape) + x
""")


def test_the_place_of_a_layer_that_is_called() -> None:
    code = check("""\
class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(4) for _ in range(3)])

    def forward(self, x, index):
        return self.norms[index](x)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = Shared()

    def forward(self, x):
        for i in range(3):
            x = self.shared(x, i) + x
        return x
""")
    assert "self.norms[index](x)" in code


@pytest.mark.parametrize("name", ["reshape", "expand", "repeat", "view"])
def test_a_method_of_ones_own_by_the_name_takes_tensors(name: str) -> None:
    check(f"""\
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def {name}(self, h, n):
        return h.unsqueeze(0) * n

    def forward(self, x):
        return self.l(x) + self.{name}(x, 2)[0] / 3
""")


def test_a_function_of_the_file_counts_too() -> None:
    code = """\
def places(n):
    return torch.arange(n)


class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(8, 4)

    def forward(self, length):
        return self.table(places(length))
"""
    assert rules_of(code) == []
