"""Writes to a view: the tensor that the view shows gets them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.convert.tools import check, convert, loaded, rules_of

LINES = {
    "x.view(-1)[::2] = 0": "x = x.reshape(-1).at[::2].set(0).reshape(x.shape)",
    "x.view(2, 8).mul_(3)": "x = (x.reshape(2, 8) * 3).reshape(x.shape)",
    "x.view(-1).copy_(y.view(-1))": "",
    "x.view_as(y)[0] += 1": "",
    "x.unsqueeze(0)[0, 1] = y[0]": "",
    "x[:1].squeeze(0).neg_()": "",
    "x.transpose(0, 1)[0] = 5": "x = x.swapaxes(0, 1).at[0].set(5).swapaxes(0, 1)",
    "x.t()[1].add_(y[2])": "",
    "torch.transpose(x, 0, -1)[3] *= 2": "",
    "x.view(4, 2, 2).permute(2, 0, -2)[1] = y[:, :2]": "",
    "x.view(2, 2, 4).movedim(-1, 0)[2].zero_()": "",
    "x.diagonal().fill_(7)": "",
    "x.diagonal(1)[:] = False": "",
    "x.diagonal(-2).sub_(1)": "",
    "torch.diagonal(x, 2)[0] = 9": "",
    "x.view(4, 2, 2).diagonal()[0] = 9": "",
    "x.narrow(1, 1, 2).copy_(y[:, :2])": "x = x.at[:, 1 : 1 + 2].set(",
    "x.select(1, 2).add_(1)": "x = x.at[:, 2].set(x[:, 2] + 1)",
    "x.view(-1).view(2, 8).t()[3:, :1] = 0": "",
    "x[1:].view(-1)[0] = 3": "",
    "x = x.view(-1).clamp_(min=0)": "x = clamp(x.reshape(-1), min=0)",
    "x = x.type_as(y).masked_fill_(y > 0, 0)": "",
    "s = torch.diagonal(x).add_(-1).pow_(2).sum()": "",
    "s = x.view(-1).mul_(2).sum()": "",
    "s = y.clone().float().fill_(2).sum()": "",
    "s = y.new_zeros(3).double().fill_(2).sum()": "",
    "s = (x + y).float().mul_(2).sum()": "",
}


@pytest.mark.parametrize("line", LINES)
def test_the_tensor_behind_a_view_is_written(line: str) -> None:
    source = "def f(x, y):\n    x, y = x * 2, y.clone()\n    s = 0\n    LINE\n    return x, y, s\n"
    source = source.replace("f(x, y)", "f(x: torch.Tensor, y: torch.Tensor)").replace("LINE", line)
    theirs, ours, code = loaded(source)
    assert LINES[line] in code
    x, y = (np.random.default_rng(seed).normal(size=(4, 4)).astype(np.float32) for seed in (0, 1))
    want = theirs["f"](torch.tensor(x), torch.tensor(y))
    got = jax.jit(ours["f"])(jnp.asarray(x), jnp.asarray(y))
    for mine, other in zip(got, want, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "lines",
    [
        "x.reshape(-1)[0] = 1",  # a copy, if x is not contiguous
        "x.flatten()[0] = 1",
        "x.view(torch.int32)[0] = 1",
        "x.permute(*y.shape)[0] = 1",
        "s = x.float().mul_(2)",  # x, or a copy of it
        "z = x\n    x.view(-1)[0] = 1\n    s = z",
        "z = x[0]\n    x.t()[0] = 1\n    s = z",
        "z = x\n    x = x.view(-1).mul_(2)\n    s = z",
        "s = x.view(-1).mul_(2).sum() + x.sum()",
    ],
)
def test_what_others_see_or_torch_may_copy(lines: str) -> None:
    source = "def f(x, y):\n    x, s = x * 2, 0\n    LINES\n    return x, s\n"
    source = source.replace("f(x, y)", "f(x: torch.Tensor, y: torch.Tensor)").replace(
        "LINES", lines
    )
    assert rules_of(source) in (["MUT001"], ["MUT002"], ["MUT001", "MUT001"])


TEMPORARIES = [
    "def g(x: torch.Tensor):\n    return x.flatten()[1:]\n\n\n"
    "def f(x: torch.Tensor):\n    c = x * 2\n    s = g(c).mul_(2).sum()\n    return s + c.sum()\n",
    "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.w = nn.Parameter(torch.ones(4))\n\n    def g(self):\n        return self.w\n\n"
    "    def forward(self, x):\n        s = self.g().data.mul_(2).sum()\n        return s + self.w\n",
    "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.act = nn.Identity()\n\n    def forward(self, x):\n        x = x * 2\n"
    "        s = self.act(x).mul_(2).sum()\n        return s + x\n",
]


@pytest.mark.parametrize("source", TEMPORARIES)
def test_what_a_call_gives_may_be_memory_that_is_read_later(source: str) -> None:
    assert rules_of(source) == ["MUT001"]


def test_an_argument_written_through_a_view() -> None:
    source = (
        "def fill(x: torch.Tensor):\n    x.view(-1)[0] = 1\n    return x.sum()\n\n\n"
        "def f(x: torch.Tensor):\n    x = x * 2\n    s = fill(x)\n    return x + s\n"
    )
    assert rules_of(source) == ["MUT003"]


BUFFER = """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(3, 4))
        self.fc = nn.Linear(4, 4)
        with torch.no_grad():
            self.fc.weight.diagonal().fill_(1.0)
            self.fc.weight.t()[0] = 0.5

    def forward(self, x):
        self.seen.view(-1)[:4] = x[0].detach()
        c = self.fc(x).T @ x
        on = torch.diagonal(c).add_(-1).pow_(2).sum()
        off = c.flatten()[:-1].view(3, 5)[:, 1:].flatten().pow_(2).sum()
        return on + off + self.seen
"""


def test_buffers_weights_and_the_loss_of_barlow_twins() -> None:
    check(BUFFER)
    theirs, ours, _ = loaded(BUFFER)
    from flax import nnx

    port = ours["M"](rngs=nnx.Rngs(0))
    want = torch.diagonal(theirs["M"]().fc.weight).detach()
    kernel = port.fc.kernel[...]
    np.testing.assert_allclose(np.diagonal(kernel)[1:], want[1:])
    np.testing.assert_allclose(kernel[0], 0.5)


FIRE = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.squeeze = nn.Linear(4, 4)
        self.select = nn.Linear(4, 4)
        self.act = nn.ReLU(inplace=True)

    def view(self, x):
        return x * 2

    def forward(self, x):
        x = self.act(self.squeeze(x))
        y = self.act(self.view(x))
        z = self.select(x)
        return torch.cat([F.relu_(self.select(y)).mul_(2), z.mul_(3), self.squeeze(x).add_(1)], 1)
"""


def test_a_layer_with_the_name_of_a_view_is_a_layer() -> None:
    check(FIRE)


@pytest.mark.parametrize("layer", ["Identity()", "Dropout(0.5)", "Flatten(0)"])
def test_a_layer_with_the_name_of_a_view_may_hand_on_what_it_is_handed(layer: str) -> None:
    source = FIRE.replace("self.select = nn.Linear(4, 4)", f"self.select = nn.{layer}")
    assert not convert(source).complete
