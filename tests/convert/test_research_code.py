"""Turns of phrase of published models: kernels of attention by name, registrations in a lambda, layers by name."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import loaded, pair, rules_of, same

X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 3, 4)

KERNELS = """
from functools import partial
from torch.nn.attention import SDPBackend, sdpa_kernel


class Net(nn.Module):
    def __init__(self, betas):
        super().__init__()
        self.backends = [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]
        self.context = partial(sdpa_kernel, self.backends)
        register_buffer = lambda name, val: self.register_buffer(name, val.to(torch.float32))
        alphas = 1.0 - betas
        register_buffer("betas", betas)
        register_buffer("alphas", torch.cumprod(alphas, dim=0))

    def forward(self, x):
        with torch.nn.attention.sdpa_kernel(self.backends):
            y = F.scaled_dot_product_attention(x, x, x)
        with self.context():
            y = y + F.scaled_dot_product_attention(x, x, x)
        return torch.jit.annotate(torch.Tensor, y * self.betas[0] * self.alphas[1])
"""


def test_which_kernel_is_taken_is_left_out_and_what_is_registered_is_a_tensor() -> None:
    theirs, ours, text = loaded(KERNELS)
    assert "sdpa_kernel" not in text
    model = theirs["Net"](torch.tensor([0.1, 0.2, 0.3]))
    port = ours["Net"](jnp.array([0.1, 0.2, 0.3]), rngs=nnx.Rngs(0))
    same(model, port, X, jit=True)


NAMED = """
class Net(nn.Module):
    def __init__(self, activation="ELU", params={{"alpha": 1.5}}, final_activation=None):
        super().__init__()
        act = getattr(nn, activation)
        self.first, self.second = act(**params), act(**params)
        if final_activation is not None:
            final = getattr(nn, final_activation)
            self.final = final({more})
        self.last = final_activation is not None

    def forward(self, x):
        x = self.second(self.first(x) - 0.5)
        return self.final(x) if self.last else x
"""


@pytest.mark.parametrize(
    "built", ["Net()", "Net('GELU', {})", "Net('LeakyReLU', {'negative_slope': 0.3}, 'Tanh')"]
)
def test_activations_that_are_made_with_options(built: str) -> None:
    theirs, ours, _ = loaded(NAMED.format(more=""))
    same(*pair(theirs, ours, built), X)


@pytest.mark.parametrize("more", ["3", "*[]"])
def test_what_takes_sizes_is_no_activation(more: str) -> None:
    assert "API001" in rules_of(NAMED.format(more=more))


RANGE = """
from functools import partial


def f(x: torch.Tensor):
    arange = partial(torch.arange, device=x.device)
    whole = partial(torch.arange, 2, dtype=torch.float32)
    return arange(4), arange(1, 9, 2), arange(3, dtype=torch.long), arange(0.5, 2), whole(5)
"""


def test_ranges_on_a_device() -> None:
    theirs, ours, text = loaded(RANGE)
    assert "arange = jnp.arange\n" in text
    for got, want in zip(ours["f"](jnp.asarray(X)), theirs["f"](torch.tensor(X)), strict=True):
        np.testing.assert_array_equal(got, want.numpy())
        assert str(got.dtype) == str(want.dtype).removeprefix("torch.").replace("64", "32")


TARGET = """
class Net(nn.Module):
    def __init__(self, online, target):
        super().__init__()
        self.online, self.target = online, target
        self.target.load_state_dict(self.online.state_dict())

    def forward(self, x):
        return self.online(x) - self.target(x)


def build():
    return Net(nn.Linear(4, 2), nn.Linear(4, 2))
"""


def test_the_weights_of_another_module() -> None:
    theirs, ours, _ = loaded(TARGET)
    assert not torch.any(theirs["build"]()(torch.tensor(X)))
    assert not jnp.any(ours["build"](rngs=nnx.Rngs(0))(jnp.asarray(X)))


def test_the_state_of_an_optimiser_is_not_that_of_a_module() -> None:
    source = "def f(optim, other_optim):\n    optim.load_state_dict(other_optim.state_dict())\n"
    assert rules_of(source) == ["API001"]


ADDED = """
class Net(nn.Module):
    def __init__(self, text):
        super().__init__()
        self.positions = text.positions
        self.text = text

    def forward(self, x):
        return x + self.positions.to(self.text.dtype())


class Text(nn.Module):
    def __init__(self):
        super().__init__()
        self.positions = nn.Parameter(torch.ones(4))

    def dtype(self):
        return torch.float32


def build():
    return Net(Text())
"""


def test_what_is_added_is_a_tensor() -> None:
    theirs, ours, _ = loaded(ADDED)
    same(theirs["build"](), ours["build"](rngs=nnx.Rngs(0)), X)


BEGINS = """
from collections import OrderedDict


class Net(nn.Module):
    def __init__(self, c, more, first=True):
        super().__init__()
{lines}

    def forward(self, x):
        return x + self.body(x)
"""
NAMED_LAYERS = """
mods = [("conv", nn.Conv2d(c, c, 3, padding=1)), ("relu", nn.ReLU(inplace=True))]
if more:
    mods.append(("pool", nn.MaxPool2d(3, 1, 1)))
self.body = nn.Sequential(OrderedDict(mods))
"""
REPEATED = """
rep = []
if first:
    rep.append(nn.ReLU(inplace=True))
    rep.append(nn.Conv2d(c, c, 1))
for _ in range(2):
    rep.append(nn.ReLU(inplace=True))
    rep.append(nn.Conv2d(c, c, 1))
if not more:
    rep = rep[1:]
else:
    rep[0] = nn.ReLU(inplace=False)
self.body = nn.Sequential(*rep)
"""
IN_A_LOOP = """
self.body = nn.Sequential()
for i in range(2):
    layers = [nn.Conv2d(c, c, 1)]
    layers += [nn.ReLU(inplace=True)]
    self.body.append(nn.Sequential(*layers))
"""


@pytest.mark.parametrize("lines", [NAMED_LAYERS, REPEATED, IN_A_LOOP])
def test_what_a_list_of_layers_begins_with(lines: str) -> None:
    inner = "\n".join(f"        {line}" for line in lines.strip().splitlines())
    theirs, ours, _ = loaded(BEGINS.format(lines=inner))
    x = np.linspace(-1, 1, 48, dtype=np.float32).reshape(1, 3, 4, 4)
    for built in ("Net(3, True)", "Net(3, False, False)"):
        same(*pair(theirs, ours, built), x)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('("conv", nn.Conv2d(c, c, 3, padding=1)), ', ""),
        ('mods.append(("pool"', 'mods.insert(0, ("act", nn.ReLU(True)))\n    mods.append(("pool"'),
        ("self.body = ", "mods.reverse()\nself.body = "),
        ("self.body = ", "mods[0] = ('relu', nn.ReLU(True))\nself.body = "),
        ("self.body = ", "mods = mods[1:]\nself.body = "),
        ("self.body = ", "del mods[0]\nself.body = "),
        ("rep = rep[1:]", "pass"),
        ("rep[0] = nn.ReLU(inplace=False)", "pass"),
        ("rep = rep[1:]", "rep = rep[2:]"),
        ("rep = rep[1:]", "rep = rep[1:]\n    rep.pop(0)"),
        ("rep.append(nn.ReLU(inplace=True))\n    rep.append", "rep.append"),
    ],
)
def test_a_list_that_may_begin_in_place(old: str, new: str) -> None:
    lines = (NAMED_LAYERS if old in NAMED_LAYERS else REPEATED).replace(old, new, 1)
    assert lines not in (NAMED_LAYERS, REPEATED)
    inner = "\n".join(f"        {line}" for line in lines.strip().splitlines())
    assert rules_of(BEGINS.format(lines=inner)) == ["MUT002"]


CHECKPOINTED = """
from torch.utils.checkpoint import checkpoint


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.checkpointing = True

    def forward(self, x):
        dtype = next(iter(self.fc.parameters())).dtype
        if {test}:
            x = checkpoint(self.fc, x, use_reentrant=False)
        else:
            x = self.fc(x)
        return x.to(dtype)
"""


@pytest.mark.parametrize(
    "test",
    [
        "torch.is_grad_enabled() and self.checkpointing",
        "self.checkpointing and torch.is_grad_enabled()",
        "torch.is_grad_enabled() and self.training and self.checkpointing",
    ],
)
def test_whether_a_gradient_recomputes_asks_for_no_mode(test: str) -> None:
    theirs, ours, text = loaded(CHECKPOINTED.format(test=test))
    assert "is_grad_enabled" not in text
    same(*pair(theirs, ours, "Net()"), X)


@pytest.mark.parametrize(
    "test", ["torch.is_grad_enabled() and self.training", "torch.is_grad_enabled()"]
)
def test_what_else_goes_by_the_mode_is_a_finding(test: str) -> None:
    assert rules_of(CHECKPOINTED.format(test=test)) == ["API001"]
