"""A queue that is written to from where a buffer says it stands."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import loaded, rules_of

QUEUE = """
class M(nn.Module):
    def __init__(self, dim=4, size=6, config={{"size": 6}}):
        super().__init__()
        self.size, self.told = size, config["size"]
        self.register_buffer("queue", torch.zeros(dim, size))
        self.register_buffer("labels", torch.zeros(size, dtype=torch.long))
        self.register_buffer("ptr", torch.zeros({shape}, dtype=torch.long))

    @torch.no_grad()
    def push(self, keys):
        n = keys.shape[0]
        {take}
        {write}

    def forward(self, keys):
        self.push(keys)
        return keys @ self.queue
"""
WRITES = {
    "moco": """assert self.size % n == 0
        self.queue[:, ptr:ptr + n] = keys.T
        ptr = (ptr + n) % self.size
        self.ptr[0] = ptr""",
    "of a configuration": """self.queue[:, ptr:ptr + n] = keys.T
        self.labels[ptr:ptr + n] = 1
        self.ptr[0] = (ptr + n) % self.told""",
    "step by step": """self.queue[:, ptr:ptr + n] = keys.T.detach()
        self.labels[ptr:ptr + n] = torch.arange(n) + 5
        ptr += n
        ptr %= self.size
        self.ptr[0] = ptr""",
}


@pytest.mark.parametrize("take", ["ptr = int(self.ptr)", "ptr = self.ptr.item()"])
@pytest.mark.parametrize("name", WRITES)
def test_a_queue(name: str, take: str) -> None:
    theirs, ours, _ = loaded(QUEUE.format(shape="1", take=take, write=WRITES[name]))
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    run = nnx.jit(lambda m, x: m(x))
    for i in range(4):
        keys = torch.randn(2, 4, generator=torch.Generator().manual_seed(i))
        np.testing.assert_allclose(run(port, jnp.asarray(keys.numpy())), model(keys), rtol=1e-5)
        for buffer in ("queue", "labels", "ptr"):
            np.testing.assert_array_equal(getattr(port, buffer)[...], getattr(model, buffer))


@pytest.mark.parametrize(
    "write",
    [
        "if ptr + n > self.size:\n            n = self.size - ptr\n        self.queue[:, ptr:ptr + n] = keys[:n].T",
        "self.queue[:, ptr:] = keys.T",
        "self.queue[:, ptr:2 * ptr] = keys.T",
        "self.queue[:2, ptr:ptr + n] = keys.T[:2]",
        "self.queue[:, ptr:ptr + n] = keys.T\n        return [0] * ptr",
    ],
)
def test_what_needs_the_number_is_found(write: str) -> None:
    source = QUEUE.format(shape="1", take="ptr = int(self.ptr)", write=write)
    assert "DYN004" in rules_of(source)


def test_what_lies_past_the_end_is_left_out() -> None:
    take, write = (
        "ptr = int(self.ptr)",
        "self.labels[ptr:ptr + n] = 1\n        self.ptr[0] = ptr + n",
    )
    theirs, ours, _ = loaded(QUEUE.format(shape="1", take=take, write=write))
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    for _ in range(2):
        model(torch.ones(4, 4)), port(jnp.ones((4, 4)))
        np.testing.assert_array_equal(port.labels[...], model.labels)
        port.labels[...] = model.labels[:] = 0


def test_a_sum_with_the_place_in_it_is_found() -> None:
    write = "self.queue[:, ptr:ptr + n] = keys.T\n        total = 1\n        total += ptr\n        return [0] * total"
    source = QUEUE.format(shape="1", take="ptr = int(self.ptr)", write=write)
    assert "DYN004" in rules_of(source)
