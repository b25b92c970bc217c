"""Functions that initialise a tensor and are handed around: what they are called on starts as in torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import HEADER, rules_of

HELPERS = {
    "apply_to": """
def apply_to(m, fn):
    fn(m.weight)
""",
    "walk": """
def walk(m, fn):
    for p in m.parameters():
        if p.dim() > 1:
            fn(p)
""",
}
SOURCE = """

class M(nn.Module):
    def __init__(self, fn=nn.init.ones_):
        super().__init__()
        self.a = nn.Linear(4, 3)
        self.b = nn.Linear(4, 3)
        {}

    def forward(self, x):
        return self.a(x) + self.b(x)
"""
HALF = "partial(nn.init.constant_, val=0.5)"


def _source(line: str) -> str:
    helpers = "".join(text for name, text in HELPERS.items() if name in line)
    return "from functools import partial\n" + helpers + SOURCE.format(line)


def _both(line: str) -> tuple[torch.nn.Module, nnx.Module]:
    result = migrator.convert_source(HEADER + _source(line))
    assert result.complete, result.findings
    theirs: dict = {}
    exec(HEADER + _source(line), theirs)
    ours: dict = {}
    exec(result.code, ours)
    return theirs["M"](), ours["M"](rngs=nnx.Rngs(0))


@pytest.mark.parametrize(
    "line",
    [
        f"init = {HALF}\n        init(self.a.weight)",
        f"{HALF}(self.a.weight)",
        f"for m in (self.a,):\n            {HALF}(m.weight.data)",
        f"apply_to(self.a, {HALF})",
        f"apply_to(self.a, {HALF})\n        apply_to(self.b, nn.init.zeros_)",
        f"walk(self, {HALF})",
        "fill = lambda w: nn.init.constant_(w, 3.0)\n        fill(self.a.weight)",
        "apply_to(self.a, lambda w: nn.init.constant_(w, 3.0))",
        "fn(self.a.weight)",
        "init = partial(nn.init.orthogonal_, gain=2.0)\n        init(self.a.weight)\n        with torch.no_grad():\n"
        "            self.a.weight.copy_(self.a.weight @ self.a.weight.T @ torch.ones(3, 4))",
    ],
)
def test_what_a_handed_function_writes(line: str) -> None:
    model, port = _both(line)
    want = model.a.weight.detach().numpy()
    np.testing.assert_allclose(port.a.kernel[...].T, want, rtol=1e-5, atol=1e-5)
    if "self.b" in line or "walk" in line:
        np.testing.assert_array_equal(port.b.kernel[...].T, model.b.weight.detach().numpy())


def test_a_draw_by_a_bound_function() -> None:
    model, port = _both(
        "init = partial(nn.init.trunc_normal_, std=0.02)\n        init(self.a.weight)"
    )
    assert port.a.kernel[...].std() < 0.05
    assert port.a.kernel.shape == tuple(model.a.weight.T.shape)


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("walk(self, partial(nn.init.kaiming_uniform_, a=0.0))", "API006"),
        (
            "table = {'z': nn.init.zeros_, 'o': nn.init.ones_}\n        for key in table:\n            table[key](self.a.weight)",
            "MUT002",
        ),
        ("apply_to(self.a, nn.init.zeros_)\n        apply_to(self.b, print)", "MUT002"),
    ],
)
def test_what_cannot_be_said_is_told(line: str, rule: str) -> None:
    assert rule in rules_of(_source(line))


OTHERS = """
class M(nn.Module):
    def __init__(self, layer=nn.Linear, init_fn=None):
        super().__init__()
        self.fc, self.layer = nn.Linear(4, 4), layer
        try:
            self.layer(8, out_features=3)
            self.n = 2
        except TypeError:
            self.n = 1
        init_fn = init_fn or plain
        for name, module in self.named_modules():
            init_fn(module, name)
        table = {"zeros": nn.init.zeros_, "ones": nn.init.ones_}
        for name in table:
            table[name](self.fc.bias)

    def forward(self, x):
        return self.fc(x) * self.n


def plain(module, name):
    if isinstance(module, nn.Linear):
        nn.init.ones_(module.weight)
"""


def test_what_is_called_with_a_number_or_a_module_initialises_no_tensor() -> None:
    rules = rules_of(OTHERS)
    assert rules == ["MUT002"]  # of the table alone
