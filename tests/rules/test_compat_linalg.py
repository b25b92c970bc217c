"""``torch.logdet`` where the determinant itself is out of range, zero or negative."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import torch

from rules.compat.decompositions import logdet

MATRICES = {
    "tiny": 1e-3 * np.eye(64),
    "huge": 1e3 * np.eye(64) + 1,
    "negative": -np.eye(3),
    "singular": np.zeros((3, 3)),
    "batch": np.stack([np.eye(3), 2 * np.eye(3), -np.eye(3)]),
}


@pytest.mark.parametrize("name", MATRICES)
def test_logdet(name: str) -> None:
    x = MATRICES[name].astype(np.float32)
    np.testing.assert_allclose(logdet(x), torch.logdet(torch.tensor(x)).numpy(), rtol=1e-5)


@pytest.mark.parametrize("name", ["tiny", "huge", "negative"])
def test_its_gradient(name: str) -> None:
    x = torch.tensor(MATRICES[name].astype(np.float32), requires_grad=True)
    torch.logdet(x).backward()
    got = jax.grad(lambda m: logdet(m))(x.detach().numpy())
    np.testing.assert_allclose(got, x.grad.numpy(), rtol=1e-4, atol=1e-6)


def test_of_complex_numbers() -> None:
    x = (np.eye(3) * (0.5 + 2j)).astype(np.complex64)
    np.testing.assert_allclose(logdet(x), torch.logdet(torch.tensor(x)).numpy(), rtol=1e-5)
