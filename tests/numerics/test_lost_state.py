"""Buffers that a call of the port loses: torch's state_dict keeps what takes their place."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx
from jax import lax

import migrator


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)
        self.parts = torch.nn.ModuleList([torch.nn.Linear(4, 4)])
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.mean = x.detach().mean(0)
        return self.parts[0](self.fc(x)) + self.mean


class Port(nnx.Module):
    def __init__(self, keeps: str, *, rngs: nnx.Rngs) -> None:
        self.keeps = keeps
        self.fc = nnx.Linear(4, 4, rngs=rngs)
        self.parts = nnx.List([nnx.Linear(4, 4, rngs=rngs)])
        self.mean = nnx.Variable(jnp.zeros(4))

    def __call__(self, x):
        mean = lax.stop_gradient(x).mean(axis=0)
        if self.keeps == "an array":
            self.mean = mean
        elif self.keeps == "a new variable":
            self.mean = nnx.Variable(mean)
        elif self.keeps == "none":
            self.mean = None
        else:
            self.mean[...] = mean
        return self.parts[0](self.fc(x)) + mean


@pytest.mark.parametrize(
    ("keeps", "equal"),
    [("the variable", True), ("a new variable", True), ("an array", False), ("none", False)],
)
def test_a_buffer_that_a_call_loses(keeps: str, equal: bool) -> None:
    report = migrator.verify(
        Net(), Port(keeps, rngs=nnx.Rngs(0)), inputs=[np.ones((5, 4), np.float32)]
    )
    assert report.ok == equal, str(report)
    if not equal:
        assert "mean: torch has it, the port does not" in str(report)
