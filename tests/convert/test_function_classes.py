"""Classes that derive from layers that are plain functions elsewhere in the output."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import both, rules_of

IMAGE = torch.linspace(-2, 3, 2 * 3 * 4 * 5).reshape(2, 3, 4, 5).sin()

LAYERS = [
    ("Identity", "4, unused=True", ""),
    ("GELU", "", ""),
    ("GELU", "'tanh'", "approximate"),
    ("Sigmoid", "", ""),
    ("Softmax", "1", "dim"),
    ("Softmax", "", ""),
    ("LogSoftmax", "dim=-1", "dim"),
    ("Flatten", "", "start_dim"),
    ("Flatten", "0, 2", "end_dim"),
    ("Upsample", "scale_factor=2", "scale_factor"),
    ("Upsample", "None, (2, 1.5), 'bilinear', True", "scale_factor[1]"),
    ("Upsample", "7, mode='bicubic'", "mode"),
    ("AdaptiveAvgPool2d", "2", "output_size"),
    ("AdaptiveAvgPool2d", "(None, 3)", "output_size[1]"),
    ("ConstantPad1d", "(1, -2), 3.5", "padding[1]"),
    ("ConstantPad2d", "2, 1.5", "padding[3]"),
    ("ConstantPad2d", "(0, 1, 2, 3), value=1.5", "value"),
    ("ZeroPad2d", "1", "value"),
    ("ReflectionPad2d", "(1, 2, 0, 1)", "padding[1]"),
]


@pytest.mark.parametrize(("layer", "given", "read"), LAYERS)
def test_a_layer_as_a_base(layer: str, given: str, read: str) -> None:
    source = f"""
class Plain(nn.{layer}):
    pass


class Own(nn.{layer}):
    def __init__(self, *args, gain=2.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.gain = gain

    def forward(self, x):
        return super().forward(x) * self.gain


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.plain = Plain({given})
        self.own = nn.Sequential(Own({given}))

    def forward(self, x):
        return self.plain(x), self.own(x)
"""
    model, port, _ = both(source)
    want = model(IMAGE)
    got = nnx.jit(lambda m, x: m(x))(port, jnp.asarray(IMAGE.numpy()))
    for mine, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(mine, theirs.numpy(), rtol=2e-5, atol=1e-6)
    if read:
        assert eval(f"m.{read}", {"m": port.plain}) == eval(f"m.{read}", {"m": model.plain})


WEIGHTS = "torch.tensor([1.0, 2.0, 0.5])"
LOSSES = [
    ("MSELoss", "", "float"),
    ("MSELoss", "reduction='sum'", "float"),
    ("L1Loss", "size_average=False", "float"),
    ("L1Loss", "None, False", "float"),
    ("SmoothL1Loss", "beta=0.5", "float"),
    ("KLDivLoss", "reduction='batchmean', log_target=True", "float"),
    ("CrossEntropyLoss", f"{WEIGHTS}, label_smoothing=0.1", "class"),
    ("CrossEntropyLoss", "ignore_index=1, reduction='none'", "class"),
    ("CrossEntropyLoss", "", "float"),
    ("NLLLoss", f"weight={WEIGHTS}, ignore_index=2", "class"),
    ("BCELoss", "", "part"),
    ("BCELoss", f"{WEIGHTS}.reshape(3, 1, 1), reduction='sum'", "part"),
    ("BCEWithLogitsLoss", f"pos_weight={WEIGHTS}.reshape(3, 1, 1)", "part"),
    ("BCEWithLogitsLoss", "reduce=False", "part"),
]


@pytest.mark.parametrize(("loss", "given", "target"), LOSSES)
def test_a_loss_as_a_base(loss: str, given: str, target: str) -> None:
    source = f"""
class Scaled(nn.{loss}):
    def __init__(self, gain, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.gain = gain

    def forward(self, input, target):
        loss = super().forward(input, target)
        return loss.sum() * self.gain if self.reduction == "none" else loss


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.loss = Scaled(3.0, {given})

    def forward(self, x, y):
        return self.loss(x, y)
"""
    model, port, _ = both(source)
    x = (IMAGE.sigmoid() if target == "part" else IMAGE).clone().requires_grad_()
    y = {
        "class": torch.arange(40).reshape(2, 4, 5) % 3,
        "part": (IMAGE > 0).float() * 0.9,
        "float": IMAGE.cos() / 3,
    }[target]
    value = model(x, y)
    value.backward()
    got, slope = jax.value_and_grad(lambda a: port(a, jnp.asarray(y.numpy())))(
        jnp.asarray(x.detach().numpy())
    )
    np.testing.assert_allclose(got, value.detach().numpy(), rtol=1e-5)
    assert x.grad is not None
    np.testing.assert_allclose(slope, x.grad.numpy(), rtol=1e-4, atol=1e-6)
    assert port.loss.reduction == model.loss.reduction


def test_weights_that_may_be_none() -> None:
    source = """
class Focal(nn.CrossEntropyLoss):
    def __init__(self, weight=None):
        super().__init__(weight=weight, reduction="none")

    def forward(self, x, y):
        cost = F.cross_entropy(x, y, weight=self.weight, reduction=self.reduction)
        return ((1 - torch.exp(-cost)) ** 2 * cost).mean()


class Positive(nn.BCEWithLogitsLoss):
    def forward(self, x, y):
        if self.pos_weight is None:
            return super().forward(x, y)
        return F.binary_cross_entropy_with_logits(x, y, self.weight, pos_weight=self.pos_weight)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Focal(torch.tensor([1.0, 2.0, 0.5])), Focal()
        self.c, self.d = Positive(pos_weight=torch.tensor([3.0]).reshape(1, 1, 1)), Positive()

    def forward(self, x, y):
        soft = x.sigmoid()
        return self.a(x, y) + self.b(x, y) + self.c(x, soft) + self.d(x, soft)
"""
    model, port, _ = both(source)
    y = torch.arange(40).reshape(2, 4, 5) % 3
    got = nnx.jit(lambda m, x, y: m(x, y))(port, jnp.asarray(IMAGE.numpy()), jnp.asarray(y.numpy()))
    np.testing.assert_allclose(got, model(IMAGE, y).numpy(), rtol=1e-5)


def test_what_a_function_does_not_keep_is_a_finding() -> None:
    source = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.loss = nn.CrossEntropyLoss()

    def forward(self, x, y):
        return F.cross_entropy(x, y, weight=self.loss.weight)
"""
    assert rules_of(source) == ["API001"]


def test_an_instance_of_identity_that_is_a_class_is_a_finding() -> None:
    source = """
class Skip(nn.Identity):
    pass


def f(m):
    return isinstance(m, nn.Identity)
"""
    assert rules_of(source) == ["API011"]
