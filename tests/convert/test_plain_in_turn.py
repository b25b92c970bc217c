"""Attributes that are assigned together and become tensors or modules later; weights that one instance has not."""

import pytest

from tests.convert.tools import check


@pytest.mark.parametrize(
    "lines",
    [
        "self.gamma, self.alpha = 2, alpha\n        if isinstance(alpha, list): self.alpha = torch.tensor(alpha)",
        "self.gamma, self.norm = 2, None\n        self.norm = nn.LayerNorm(4)",
        "self.gamma, self.g = None, None\n        self.g = nn.Parameter(torch.ones(4))",
        "self.gamma, self.name = 3, 'x'",
    ],
)
def test_what_is_assigned_together(lines: str) -> None:
    check(
        f"""
class M(nn.Module):
    def __init__(self, alpha=[0.25, 0.5, 1.0, 2.0]):
        super().__init__()
        {lines}
    def forward(self, x):
        if getattr(self, "norm", None) is not None:
            x = self.norm(x)
        return x * (self.gamma or 1)
"""
    )


def test_weights_that_one_instance_has_and_another_has_not() -> None:
    check(
        """
class Weighted(nn.Module):
    def __init__(self, w=None):
        super().__init__()
        self.w = w
        if w is not None:
            self.w = torch.tensor(w)
    def forward(self, x):
        if self.w is not None:
            if self.w.type() != x.data.type():
                self.w = self.w.type_as(x.data)
            return x * self.w
        return x

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Weighted([0.1, 0.2, 0.3, 0.4]), Weighted()
    def forward(self, x):
        return self.b(self.a(x))
"""
    )
