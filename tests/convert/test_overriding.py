"""Classes that derive from another and have a method or a layer of their own, which the base's methods then run."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from tests.convert.tools import X, both, rules_of

BASE = """
class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.act = nn.Linear(4, 4), self.make()
        self.register_buffer("total", torch.ones(4))

    def make(self):
        return nn.Tanh()

    def post(self, h):
        return h * 2

    @property
    def scale(self):
        return self.total * 2

    def forward(self, x):
        h = self.lin(x)
USES


class M(Base):
HEIR
"""
POSTS = {
    "itself": "def post(self, y):\n    return y",
    "a view": "def post(self, y):\n    return y.view(-1, 4)",
    "perhaps": "def post(self, y):\n    return y * 2 if self.training else y",
    "dropout": "def post(self, y):\n    return F.dropout(y, 0.0, self.training)",
}
LAYERS = {
    "identity": "nn.Identity()",
    "dropout": "nn.Dropout(0.0)",
    "sequential": "nn.Sequential(nn.Identity())",
}
ASSIGNED = "def __init__(self):\n    super().__init__()\n    self.act = LAYER"
MADE = "def make(self):\n    return LAYER"
WRITES = {
    "sum": "k = CALL\nk += 1\nreturn h * k.sum()",
    "method": "k = CALL\nk.mul_(2)\nreturn h + k",
    "under no_grad": "with torch.no_grad():\n    k = CALL\nreturn h + k",
}
OTHERS = {
    "a buffer that is written": (
        "def post(self, y):\n    self.total.add_(1)\n    return y * 2",
        "c = self.total\nk = self.post(h)\nreturn k + c",
    ),
    "a buffer that is given": (
        "def post(self, y):\n    return self.total",
        "k = self.post(h)\nk += 1\nreturn h * self.total",
    ),
    "a property": (
        "@property\ndef scale(self):\n    return self.total",
        "k = self.scale\nk.mul_(2)\nreturn h * self.total",
    ),
    "a layer that overwrites": (
        ASSIGNED.replace("LAYER", "nn.LeakyReLU(0.1, inplace=True)"),
        "k = self.act(h)\nreturn h + k",
    ),
    "one that a method makes": (
        MADE.replace("LAYER", "nn.ReLU(inplace=True)"),
        "k = self.act(h)\nreturn h + k",
    ),
    "one that begins a Sequential": (
        ASSIGNED.replace("LAYER", "nn.Sequential(nn.ReLU(inplace=True))"),
        "k = self.act(h)\nreturn h + k",
    ),
}
ALLOWED = {
    "a tensor of its own": (
        "def post(self, y):\n    return y + 3",
        "k = self.post(h)\nk += 1\nreturn h * k.sum()",
    ),
    "nothing is written": ("def post(self, y):\n    return y", "return h + self.post(h)"),
    "what the base does": (
        "def post(self, y):\n    return super().post(y) + 1",
        "k = self.post(h)\nk += 1\nreturn h + k",
    ),
    "another layer": (ASSIGNED.replace("LAYER", "nn.Sigmoid()"), "k = self.act(h)\nreturn h + k"),
    "a layer that is run alone": (
        ASSIGNED.replace("LAYER", "nn.ReLU(inplace=True)"),
        "return self.act(h)",
    ),
}


def source(heir: str, uses: str) -> str:
    def indented(text: str, depth: int) -> str:
        return "\n".join(" " * depth + line for line in text.splitlines())

    return BASE.replace("USES", indented(uses, 8)).replace("HEIR", indented(heir, 4))


@pytest.mark.parametrize(("post", "write"), list(itertools.product(POSTS, WRITES)))
def test_what_a_method_of_an_heir_gives_back_is_no_tensor_of_its_own(post: str, write: str) -> None:
    if (post, write) == ("a view", "under no_grad"):
        return  # which keeps no gradient of the tensor that it is a view of
    assert rules_of(source(POSTS[post], WRITES[write].replace("CALL", "self.post(h)")))


@pytest.mark.parametrize(
    ("layer", "way", "write"), list(itertools.product(LAYERS, (ASSIGNED, MADE), WRITES))
)
def test_a_layer_of_an_heir_may_hand_on_its_input(layer: str, way: str, write: str) -> None:
    heir = way.replace("LAYER", LAYERS[layer])
    assert rules_of(source(heir, WRITES[write].replace("CALL", "self.act(h)")))


@pytest.mark.parametrize(("heir", "uses"), OTHERS.values(), ids=OTHERS)
def test_what_an_heir_writes_or_gives_of_its_state_is_seen(heir: str, uses: str) -> None:
    assert rules_of(source(heir, uses))


@pytest.mark.parametrize(("heir", "uses"), ALLOWED.values(), ids=ALLOWED)
def test_what_heirs_do_without_harm_converts(heir: str, uses: str) -> None:
    model, port, _ = both(source(heir, uses))
    port.eval()
    want = model.eval()(X).detach().numpy()
    np.testing.assert_allclose(port(np.asarray(X)), want, atol=1e-5)


LEFT_OPEN = """
class Base(nn.Module):
    def forward(self, x):
        out, total = self.coupling(x)
        if self.more is not None:
            total += self.more(x).sum(-1)
        return out + total[:, None]

    def coupling(self, x):
        raise NotImplementedError()


class M(Base):
    def __init__(self):
        super().__init__()
        self.lin, self.more = nn.Linear(4, 4), nn.Linear(4, 4)

    def coupling(self, x):
        h = self.lin(x)
        return h, h.sum(-1)
"""


def test_each_result_of_a_method_that_is_left_to_heirs_is_known() -> None:
    model, port, _ = both(LEFT_OPEN)
    want = model(X).detach().numpy()
    np.testing.assert_allclose(port(np.asarray(X)), want, atol=1e-5)


def test_a_function_within_no_grad_has_a_gradient_where_it_is_called_outside() -> None:
    import jax
    import jax.numpy as jnp

    model, port, _ = both("""
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        h = self.lin(x)
        with torch.no_grad():
            def twice(t):
                return t * 2
            s = twice(h).mean()
        return twice(h) * s
""")
    leaf = X.clone().requires_grad_()
    model(leaf).sum().backward()
    got = jax.grad(lambda x: port(x).sum())(jnp.asarray(X.numpy()))
    assert isinstance(leaf.grad, torch.Tensor)
    np.testing.assert_allclose(got, leaf.grad, atol=1e-5)


UNDER_NO_GRAD = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        h, kept = self.lin(x), []
        with torch.no_grad():
            def keep(t):
                kept.append(t * 2)
            keep(h)
        AFTER
        return h + kept[0]
"""


def test_a_function_within_no_grad_that_keeps_what_it_computes() -> None:
    import jax
    import jax.numpy as jnp

    assert rules_of(UNDER_NO_GRAD.replace("AFTER", "keep(x)"))
    model, port, _ = both(UNDER_NO_GRAD.replace("AFTER", "pass"))
    leaf = X.clone().requires_grad_()
    model(leaf).sum().backward()
    got = jax.grad(lambda x: port(x).sum())(jnp.asarray(X.numpy()))
    assert isinstance(leaf.grad, torch.Tensor)
    np.testing.assert_allclose(got, leaf.grad, atol=1e-5)


MIXIN = """
class Plain:
    def post(self, h):
        return h


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def post(self, h):
        return h * 2

    def forward(self, x):
        h = self.lin(x)
        k = self.post(h)
        k += 1
        return h * k


class M(BASES):
    pass
"""


def test_a_mixin_has_a_method_in_the_place_of_the_base() -> None:
    assert rules_of(MIXIN.replace("BASES", "Plain, Base"))
    assert not rules_of(MIXIN.replace("BASES", "Base, Plain"))
