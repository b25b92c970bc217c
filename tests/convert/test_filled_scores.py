"""Scores that a method computes and that are filled by ``data`` before a softmax, as attention layers do."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import both, rules_of

SOURCE = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(4, 4)
        self.v = nn.Linear(4, 1)
        self.value = -float("inf")

    def scores(self, query, memory):
        q = self.query(query.unsqueeze(1))
        BODY

    def forward(self, query, memory, mask):
        scores = self.scores(query, memory)
        scores.data.masked_fill_(mask, self.value)
        return torch.bmm(F.softmax(scores, dim=1).unsqueeze(1), memory).squeeze(1)
"""


@pytest.mark.parametrize(
    "body",
    [
        "e = self.v(torch.tanh(q + memory))\n        e = e.squeeze(-1)\n        return e",
        "return self.v(torch.tanh(q + memory)).squeeze(-1)",
        "e = self.v(torch.tanh(q + memory))\n        return e.squeeze(-1)",
        "e = memory.bmm(q.transpose(1, 2)).squeeze(-1)\n        e = e * 0.5\n        return e",
    ],
)
def test_what_no_gradient_goes_by(body: str) -> None:
    module, port, _ = both(SOURCE.replace("BODY", body))
    query, memory = torch.linspace(-1, 1, 12).reshape(3, 4), torch.linspace(-2, 1, 60)
    memory = memory.reshape(3, 5, 4).sin()
    mask = torch.arange(5)[None] > torch.tensor([[1], [4], [2]])
    want = module(query, memory, mask)
    (want * torch.arange(12.0).reshape(3, 4)).sum().backward()
    given = [jnp.asarray(one.numpy()) for one in (query, memory, mask)]

    def loss(model: nnx.Module) -> tuple[jax.Array, jax.Array]:
        output = model(*given)
        return (output * jnp.arange(12.0).reshape(3, 4)).sum(), output

    (_, got), grads = nnx.jit(nnx.value_and_grad(loss, has_aux=True))(port)
    np.testing.assert_allclose(got, want.detach(), atol=1e-5)
    slopes = migrator.to_state_dict(grads, like=port)
    for name, one in module.named_parameters():
        slope = one.grad if one.grad is not None else torch.zeros_like(one)
        np.testing.assert_allclose(slopes[name], slope, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "body",
    [
        "e = torch.tanh(self.v(q + memory)).squeeze(-1)\n        return e",
        "e = self.v(q + memory).squeeze(-1)\n        self.last = torch.exp(e)\n        return e",
        "e = self.v(q + memory)\n        f = e.squeeze(-1)\n        return f",
        "e = torch.tanh(self.v(q + memory))\n        return e.squeeze(-1)",
        "e = self.v(q + memory)\n        self.last = torch.exp(e)\n        return e.squeeze(-1)",
        "e = self.v(q + memory).squeeze(-1)\n        if self.training:\n            e = torch.exp(e)\n        return e",
        "if self.training:\n            e = torch.exp(q + memory)[..., 0]\n        else:\n            e = (q + memory)[..., 0]\n        return e",
    ],
)
def test_what_one_may_go_by(body: str) -> None:
    assert "MUT002" in rules_of(SOURCE.replace("BODY", body))


OWN = """
class Norm(nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.linear_layer = nn.Linear(n, m)

    def forward(self, x):
        LAST

""" + SOURCE.replace("nn.Linear(4, 1)", "Norm(4, 1)").replace(
    "BODY", "return self.v(torch.tanh(q + memory)).squeeze(-1)"
)
"""Tacotron 2: the layer that gives the scores is of the file."""


@pytest.mark.parametrize(
    "last",
    [
        "return self.linear_layer(x)",
        "out = self.linear_layer(x)\n        return out * 2",
    ],
)
def test_a_layer_of_the_file_keeps_nothing(last: str) -> None:
    module, port, _ = both(OWN.replace("LAST", last))
    query, memory = torch.linspace(-1, 1, 12).reshape(3, 4), torch.linspace(-2, 1, 60)
    memory = memory.reshape(3, 5, 4).sin()
    mask = torch.arange(5)[None] > torch.tensor([[1], [4], [2]])
    want = module(query, memory, mask)
    want.pow(2).sum().backward()
    given = [jnp.asarray(one.numpy()) for one in (query, memory, mask)]
    grads = nnx.grad(lambda model: (model(*given) ** 2).sum())(port)
    np.testing.assert_allclose(port(*given), want.detach(), atol=1e-5)
    slopes = migrator.to_state_dict(grads, like=port)
    for name, one in module.named_parameters():
        slope = one.grad if one.grad is not None else torch.zeros_like(one)
        np.testing.assert_allclose(slopes[name], slope, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("last", "more"),
    [
        ("return torch.sigmoid(self.linear_layer(x))", ""),
        ("return x", ""),
        ("out = self.linear_layer(x)\n        self.last = torch.exp(out)\n        return out", ""),
        (
            "return self.linear_layer(x)",
            "\nclass Other(Norm):\n    def forward(self, x):\n        return self.linear_layer(x).exp()\n\n",
        ),
        (
            "return self.linear_layer(x)",
            "\ndef hook(m: nn.Linear, f):\n    m.register_forward_hook(f)\n\n",
        ),
    ],
)
def test_a_layer_of_the_file_may_keep_what_it_gives(last: str, more: str) -> None:
    assert "MUT002" in rules_of(
        OWN.replace("LAST", last).replace("\n\nclass M(", f"\n{more}\nclass M(")
    )
