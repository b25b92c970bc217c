"""Classes that derive from nn.Embedding: torch's arguments and attributes, and its lookup spelled out."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from migrator import convert_source

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"
LOOKUP = (
    "F.embedding({}, self.weight, self.padding_idx, self.max_norm, self.norm_type, "
    "self.scale_grad_by_freq, self.sparse)"
)
CLASSES = [
    ("class E(nn.Embedding):\n    def forward(self, x):\n        i = torch.arange(2, x.size(1) + 2)\n"
     f"        return {LOOKUP.format('x * 0 + i')}\n", "E(10, 4, padding_idx=3)"),
    ("class E(nn.Embedding):\n    def forward(self, x):\n"
     f"        return {LOOKUP.format('x')}\n", "E(10, 4, max_norm=0.5)"),
    ("class E(nn.Embedding):\n    def __init__(self, n: int, dim: int, padding_idx: int):\n"
     "        super().__init__(n, dim, padding_idx)\n        self.most = self.num_embeddings - self.padding_idx - 1\n\n"
     f"    def forward(self, x):\n        return {LOOKUP.format('x')} * self.most\n", "E(10, 4, 1)"),
    ("class E(nn.Embedding):\n    def __init__(self, n, dim=4):\n        super().__init__(n, dim, padding_idx=0)\n",
     "E(10)"),
    ("class E(nn.Embedding):\n    def __init__(self, *args, **kwargs):\n        super().__init__(*args, **kwargs)\n"
     "        nn.init.normal_(self.weight, std=0.02)\n\n    def forward(self, x):\n"
     "        return super().forward(x) * self.embedding_dim**0.5\n", "E(10, 4, padding_idx=-1)"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "made"), CLASSES)
def test_rows_and_gradients_are_those_of_torch(source: str, made: str) -> None:
    source = HEAD + source
    result = convert_source(source)
    assert result.complete
    theirs: dict = {}
    exec(source, theirs)
    ours: dict = {}
    exec(result.code, ours)
    torch.manual_seed(0)
    original = eval(made, theirs)
    port = eval(made.replace(")", ", rngs=rngs)"), {**ours, "rngs": nnx.Rngs(0)})
    migrator.load_state_dict(port, original.state_dict())
    index = np.array([[1, 0, 3, 9], [3, 5, 1, 7]])
    want = original(torch.tensor(index))
    (want**2).sum().backward()
    loss = nnx.grad(lambda m: (m(jnp.asarray(index)) ** 2).sum())
    slopes = loss(port).embedding[...]
    np.testing.assert_allclose(port(jnp.asarray(index)), want.detach(), rtol=1e-5)
    np.testing.assert_allclose(slopes, original.weight.grad, rtol=1e-4, atol=1e-6)


def test_the_padding_row_is_counted_from_the_front() -> None:
    ours: dict = {}
    exec(convert_source(HEAD + CLASSES[4][0]).code, ours)
    assert ours["E"](10, 4, padding_idx=-1, rngs=nnx.Rngs(0)).padding_idx == 9
