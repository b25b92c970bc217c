"""What a file says to torch alone: hooks for checkpoints, compilers, what a gradient is kept for."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from migrator import convert_source
from tests.convert.tools import HEADER, X, both, rules_of

HOOKED = """
def _renamed(state_dict, prefix, *args):
    state_dict.pop(prefix + "pe", None)


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self._register_load_state_dict_pre_hook(self._older)

    def _older(self, state_dict, prefix, *args, **kwargs):
        old = state_dict.pop(prefix + "old", None)
        if old is not None:
            state_dict[prefix + "fc.bias"] = torch.as_tensor(old).storage().data_ptr()

    def forward(self, x):
        return self.fc(x)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = Head()
        self.register_load_state_dict_pre_hook(_renamed)

    def forward(self, x):
        return self.head(x)
"""


def test_hooks_for_older_checkpoints_are_left_out() -> None:
    model, port, code = both(HOOKED)
    np.testing.assert_allclose(port(X.numpy()), model(X).detach(), atol=1e-6)
    assert "_older" not in code
    assert "hook" not in code
    found = convert_source(HEADER + HOOKED).findings
    said = [f for f in found if f.message.startswith("how checkpoints of older versions are read")]
    assert [f.blocks for f in said] == [False, False]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self._register_load_state_dict_pre_hook(self._older)", "self._register_state_dict_hook(self._older)"),
        ("self.register_load_state_dict_pre_hook", "M.made[0].register_load_state_dict_pre_hook"),
        ("return self.fc(x)", "self._older({}, '')\n        return self.fc(x)"),
    ],
)  # fmt: skip
def test_what_else_is_said_of_them_is_a_finding(old: str, new: str) -> None:
    assert HOOKED.replace(old, new) != HOOKED
    assert not convert_source(HEADER + HOOKED.replace(old, new)).complete


COMPILED = """
class M(nn.Module):
    def __init__(self, mode="default"):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.net = nn.Sequential(nn.Linear(4, 4))
        self.net.forward = torch.compile(self.net.forward)
        if mode is not None:
            self.forward = torch.compile(self.forward, mode=mode, fullgraph=True)

    def forward(self, x):
        return self.net(self.fc(x))

    def other(self, x):
        return x
"""


def test_forward_that_is_compiled_stays_what_it_is() -> None:
    model, port, _ = both(COMPILED, None)
    np.testing.assert_allclose(port(X.numpy()), model.fc(X).detach() @ model.net[0].weight.T.detach() + model.net[0].bias.detach(), atol=1e-6)  # fmt: skip
    assert rules_of(COMPILED.replace("compile(self.forward,", "compile(self.other,")) == ["API005"]


SPIKE = """
class Spike(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y, alpha):
        if x.requires_grad or y.requires_grad:
            ctx.save_for_backward(x, y)
            ctx.alpha = alpha
        return (x > y).to(x)

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        slope = ctx.alpha * torch.sigmoid(x - y)
        return grad * slope, -grad * slope * 2, None


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.threshold = nn.Parameter(torch.linspace(-1, 1, 4))

    def forward(self, x):
        return Spike.apply(x, self.threshold, 2.0)
"""


def test_what_backward_needs_is_kept() -> None:
    model, port, _ = both(SPIKE)
    x = X.clone().requires_grad_()
    model(x).square().sum().backward()

    def loss(x: jax.Array) -> jax.Array:
        return jnp.sum(port(x) ** 2)

    np.testing.assert_allclose(port(X.numpy()), model(X).detach())
    np.testing.assert_allclose(jax.grad(loss)(jnp.asarray(X.numpy())), x.grad, rtol=1e-5)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("            ctx.alpha = alpha", "            x = x * 2"),
        ("        if x.req", "        x = x * 1.0\n        if x.req"),
        ("            ctx.alpha = alpha\n", "            ctx.alpha = alpha\n        else:\n            y = y * 2\n"),
        ("ctx.alpha = alpha", "ctx.alpha = alpha * x.sum()"),
    ],
)  # fmt: skip
def test_what_is_computed_for_a_gradient_is_a_finding(old: str, new: str) -> None:
    assert SPIKE.replace(old, new) != SPIKE
    assert "API002" in rules_of(SPIKE.replace(old, new))


ASKED = """
import collections.abc


class Kept(collections.abc.Mapping):
    def __init__(self, values):
        self.values_ = values

    def __getitem__(self, name):
        return self.values_[name]

    def __iter__(self):
        return iter(self.values_)

    def __len__(self):
        return len(self.values_)


class M(nn.Module):
    def __init__(self, conv=False):
        super().__init__()
        self.kept = dict(Kept({"a": 2.0}))
        self.net = nn.Sequential(nn.Conv1d(4, 4, 1) if conv else nn.Linear(4, 4), nn.ReLU())

    def forward(self, x):
        if any(isinstance(m, nn.Conv1d) and not hasattr(m, "nothing") for m in self.modules()):
            return self.net(x.T).T
        return self.net(x) * self.kept["a"]
"""


@pytest.mark.parametrize("conv", [False, True])
def test_a_question_about_all_modules_is_answered_in_any_order(conv: bool) -> None:
    model, port, _ = both(ASKED, conv)
    np.testing.assert_allclose(port(X.numpy()), model(X).detach(), atol=1e-6)


@pytest.mark.parametrize("test", ["m.bias is None", "next(counter)"])
def test_another_question_is_a_finding(test: str) -> None:
    source = ASKED.replace("isinstance(m, nn.Conv1d)", f"isinstance(m, nn.Conv1d) and {test}")
    assert "API007" in rules_of(source)


METHODS = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("kept", torch.ones(4))
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return CALL * self.fc(x)
"""


@pytest.mark.parametrize(
    "call", ["self.get_buffer('kept')", "self.fc.xpu().weight.sum()", "self._named_members(1)"]
)
def test_methods_of_torch_that_flax_has_not_are_findings(call: str) -> None:
    assert rules_of(METHODS.replace("CALL", call)) == ["API001"]
    own = METHODS.replace(
        "    def forward", "    def get_buffer(self, name):\n        return 2\n\n    def forward"
    )
    model, port, _ = both(own.replace("CALL", "self.get_buffer('kept')"))
    np.testing.assert_allclose(port(X.numpy()), model(X).detach(), atol=1e-6)


CHECKED = """
class M(nn.Module):
    def __init__(self, n=4):
        super().__init__()
        torch._check(n > 0)
        self.n = n
        self.fc = nn.Linear(n, n)

    def forward(self, x):
        torch._check(x.ndim == 2 and x.shape[1] == self.n, lambda: f"axes of {self.n}")
        torch._check_is_size(x.shape[0])
        torch._check_value(
            len(x)
            < 9,
            message=lambda: "few",
        )
        return self.fc(x)
"""


def test_checks_raise_what_torch_raises() -> None:
    model, port, _ = both(CHECKED)
    np.testing.assert_allclose(port(X.numpy()), model(X).detach(), atol=1e-6)
    for x in (torch.ones(2, 3), torch.ones(4), torch.ones(9, 4)):
        with pytest.raises((RuntimeError, ValueError)) as theirs:
            model(x)
        with pytest.raises(theirs.type, match=str(theirs.value)):
            port(jnp.asarray(x.numpy()))
    with pytest.raises(RuntimeError, match="Expected cond to be True"):
        type(port)(0, rngs=nnx.Rngs(0))
    assert not convert_source(
        HEADER + CHECKED.replace("len(x)\n            < 9", "(x > 9).all()")
    ).complete
