"""What other people's models do that once was converted into something else."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import both, convert, loaded, rules_of

MIXED = """
class Mixin:
    def __init__(self{more}):
        self.scale = 100.0

    def scaled(self, x):
        return x * self.scale


class Base(nn.Module):
    pass


class M({bases}):
    def __init__(self, n: int = 3):
        self.scale = 2.0
        super().__init__()
        self.fc = nn.Linear(n, n)

    def forward(self, x):
        return self.scaled(self.fc(x))
"""


@pytest.mark.parametrize(
    ("bases", "more", "scale"),
    [
        ("nn.Module, Mixin", "", 2),
        ("nn.Module, Mixin", ", seed", 2),
        ("Base, Mixin", "", 2),
        ("Base, Mixin", ", seed", 2),
        ("Mixin, nn.Module", "", None),
    ],
)
def test_torch_goes_no_further_than_its_module(bases: str, more: str, scale: int | None) -> None:
    """``nn.Module.__init__`` calls none of the bases behind it; a base before it is called."""
    source = MIXED.format(bases=bases, more=more)
    if scale is None:
        assert "super().__init__()" in convert(source).code
        return
    module, port, _ = both(source)
    x = np.ones((2, 3), np.float32)
    want = module(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(port(jnp.asarray(x)), want, rtol=1e-5)
    assert port.scale == scale


@pytest.mark.parametrize("bases", ["nn.Module, Mixin", "Base, Mixin"])
def test_nor_where_the_class_has_no_constructor(bases: str) -> None:
    source = MIXED.format(bases=bases, more="").split("    def __init__(self, n")[0]
    source += "    scale = 2.0\n\n    def forward(self, x):\n        return self.scaled(x)\n"
    source += "\n\nclass Whole(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.m = M()\n"
    theirs, ours, _ = loaded(source)
    assert theirs["M"]().scale == ours["M"](rngs=nnx.Rngs(0)).scale == 2
    assert ours["Whole"](rngs=nnx.Rngs(0)).m.scale == 2


NOISY = """
class Noisy(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.w = nn.Parameter(torch.ones(n))
        self.register_buffer("eps", torch.zeros(n))
        self.reset_noise()

    def reset_noise(self):
        self.eps.copy_(torch.randn(self.eps.shape))

    def forward(self, x):
        return x * (self.w + self.eps)


class M(nn.Module):
    def __init__(self, n: int = 4):
        super().__init__()
        self.fc = Noisy(n)

    def forward(self, x):
        return self.fc(x)

    def reset_noise(self):
        for name, module in self.named_children():
            module.reset_noise()
"""


def test_a_method_that_draws_and_is_called_on_any_module() -> None:
    """Nobody hands a generator over there: the module keeps one."""
    _, port, code = both(NOISY)
    assert "def reset_noise(self):" in code
    before = np.asarray(port.fc.eps[...])
    port.reset_noise()
    assert not np.array_equal(before, port.fc.eps[...])


def test_a_dict_that_is_handed_on() -> None:
    source = """
class M(nn.Module):
    def __init__(self, n: int = 4):
        super().__init__()
        self.fc = nn.Linear(n, n)

    def step(self, x, cache=None, step=None):
        if cache is not None:
            x = (x + step * cache["prev"]) / (step + 1)
            cache["prev"] = x
        return x

    def forward(self, x, cache=None, step=None):
        return self.fc(self.step(x, cache, step))
"""
    module, port, _ = both(source)
    x = np.ones((2, 4), np.float32)
    theirs, ours = {"prev": torch.tensor(2 * x)}, {"prev": jnp.asarray(2 * x)}
    want = module(torch.tensor(x), theirs, 3).detach().numpy()
    np.testing.assert_allclose(port(jnp.asarray(x), ours, 3), want, rtol=1e-5)
    np.testing.assert_allclose(ours["prev"], theirs["prev"], rtol=1e-6)


def test_an_option_of_a_layer_that_gets_a_new_value() -> None:
    source = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(x)

    def update(self, p):
        self.drop.p = p
"""
    _, port, _ = both(source)
    port.update(0.25)
    assert port.drop.rate == 0.25


def test_a_tensor_that_becomes_a_parameter_of_the_same_name() -> None:
    source = """
class M(nn.Module):
    def __init__(self, n: int = 4):
        super().__init__()
        {}
        self.pattern = nn.Parameter({})

    def forward(self, x):
        return x * self.pattern

    def again(self):
        self.pattern.data = torch.ones(4)
"""
    assert rules_of(source.format("self.pattern = torch.zeros(n)", "self.pattern")) == ["MUT002"]
    _, port, _ = both(source.format("", "torch.zeros(n)"))
    port.again()
    assert isinstance(port.pattern, nnx.Param)


def test_a_number_of_numpy_in_a_class() -> None:
    source = "import numpy as np\n\n\nclass M(nn.Module):\n    C = np.log(2.0)\n\n    def forward(self, x):\n        return x + self.C\n"
    theirs, ours, _ = loaded(source)
    want = theirs["M"]()(torch.ones(2))
    np.testing.assert_allclose(ours["M"]()(jnp.ones(2)), want, rtol=1e-6)


SEEDED = """
class M(nn.Module):
    def __init__(self, n: int = 4, seed: int = 0):
        super().__init__()
        self.seed = torch.manual_seed(seed)
        self.fc = nn.Linear(n, n)

    def forward(self, x):
        return self.fc(x){}
"""


def test_a_seed_that_is_kept_and_not_asked_for() -> None:
    result = convert(SEEDED.format(""))
    assert result.complete
    assert "self.seed" not in result.code
    assert rules_of(SEEDED.format(" + torch.rand(4, generator=self.seed)"))


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("h = F.softmax(x, 1)", True),
        ("h = x.sigmoid()", True),
        ("h = self.act(x)", True),
        ("h = x * 2", False),
        ("h = x @ x.t()", False),
        ("h = x / 2\n        n = h.shape[0]\n        mask = mask & (h > 0)", False),
        ("h = F.softmax(x, 1).view(3, 3)", True),
        ("p = F.softmax(x, 1)\n        h = p", True),
        ("h = x * 2\n        x = h * x", True),
        ("h = self.own(x)", True),
        (
            "h = x * 2\n        for i in range(2):\n            h.data.mul_(2)\n            x = x * h",
            True,
        ),
        (
            "for i in range(2):\n            h = x * 2\n            h.data.mul_(2)\n            x = x * h",
            True,
        ),
        ("h = x * 2\n        h = self.fc(h)", False),
    ],
)
def test_what_torch_keeps_for_a_gradient_is_not_written(line: str, found: bool) -> None:
    """The write by ``data`` changes the gradient of softmax, too."""
    source = (
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.act, self.fc = nn.Tanh(), nn.Linear(3, 3)\n\n"
        "    def own(self, x):\n        return x.exp()\n\n"
        "    def forward(self, x: torch.Tensor, mask: torch.BoolTensor):\n"
        f"        {line}\n        h.data.masked_fill_(mask, 0)\n        return h * 3\n"
    )
    assert set(rules_of(source)) == ({"MUT002"} if found else set())


def test_a_hint_in_quotes_stays_in_them_where_it_names_what_is_not_there_yet() -> None:
    source = """
from typing import TYPE_CHECKING, List

if TYPE_CHECKING:
    from typing import Dict


def f(a: "torch.Tensor", b: "List[torch.Tensor]", c: "Optional[torch.Tensor]" = None, d: "Dict[str, torch.Tensor]" = None):
    return a


class State:
    def of(self, other: "Tuple[State, torch.Tensor]") -> "State":
        return self
"""
    _, _, code = loaded(source)
    assert "a: jax.Array" in code
    assert "b: List[jax.Array]" in code
    assert 'c: "Optional[jax.Array]"' in code
    assert 'd: "Dict[str, jax.Array]"' in code
    assert 'other: "Tuple[State, jax.Array]"' in code


@pytest.mark.parametrize(
    "line",
    [
        "z[1] = y[1:2]",
        "z[1, 2] = y[1, 2].view(1)",
        "z[..., 0] = y[:, :1].t()",
    ],
)
def test_leading_axes_of_one_element_are_left_out(line: str) -> None:
    source = f"def f():\n    y = torch.arange(12.0).reshape(3, 4)\n    z = torch.zeros(3, 4)\n    {line}\n    return z\n"
    theirs, ours, _ = loaded(source)
    np.testing.assert_array_equal(ours["f"](), theirs["f"]())


def test_words_for_torchscript_and_old_pickles() -> None:
    source = """
class M(nn.Module):
    __annotations__ = {"bias_k": torch._jit_internal.Optional[torch.Tensor]}
    __constants__ = ["fc"]

    def __init__(self, n: int = 4):
        super().__init__()
        self.fc = nn.Linear(n, n)
        self.activation = F.relu

    def __setstate__(self, state):
        if "activation" not in state:
            state["activation"] = F.relu
        super(M, self).__setstate__(state)

    def forward(self, x):
        return self.activation(self.fc(x))
"""
    result = convert(source)
    assert result.complete
    assert "__setstate__" not in result.code
    assert "__annotations__" not in result.code


def test_parameters_that_are_none() -> None:
    source = """
class M(nn.Module):
    def __init__(self, n: int = 4):
        super().__init__()
        self.fc = nn.Linear(n, n)
        self.mean = self.register_parameter("mean", None)

    def forward(self, x):
        return self.fc(x) if self.mean is None else self.fc(x - self.mean)
"""
    _, port, code = both(source)
    assert "self.mean = None" in code or "self.mean = nnx.data(None)" in code
    assert port(jnp.ones((2, 4))).shape == (2, 4)


def test_a_number_in_a_sequential() -> None:
    source = """
class M(nn.Sequential):
    def __init__(self, layers=3, n=4):
        super().__init__()
        self.count = layers
        self.add_module("first", nn.Linear(n, n))
        for i in range(layers - 1):
            self.add_module(f"layer{i + 1}", nn.Linear(n, n))

    def forward(self, x):
        for i in range(self.count - 1):
            x = self[i + 1](x)
        return x + self.first(x)
"""
    module, port, _ = both(source)
    x = np.ones((2, 4), np.float32)
    want = module(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(port(jnp.asarray(x)), want, rtol=1e-5, atol=1e-6)
    assert rules_of(source.replace("self.count", "self.layers")) == ["API007"]


@pytest.mark.parametrize("ones", ["torch.ones_like(x)", "x.new_ones(x.shape)", "x.detach()"])
def test_more_is_given_than_is_scattered(ones: str) -> None:
    """What is as large as a trained tensor is not trained itself: its shape need not be that of the index."""
    source = f"""
class M(nn.Module):
    def __init__(self, n: int = 4):
        super().__init__()
        self.fc = nn.Linear(n, n)

    def forward(self, x):
        x = self.fc(x)
        place = x.argmax(-1, keepdim=True)
        ones = {ones}
        return x + torch.zeros_like(x).scatter_add(-1, place, ones).scatter(-1, place, {ones})
"""
    module, port, _ = both(source)
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    want = module(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(port(jnp.asarray(x)), want, rtol=1e-5, atol=1e-6)
