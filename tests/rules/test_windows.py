"""torch.hann_window and its kin, which torch's op database leaves out."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rules.ops import windows


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("length", [1, 2, 7, 16])
@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett", "kaiser"])
def test_window(name: str, length: int, periodic: bool) -> None:
    got = getattr(windows, f"{name}_window")(length, periodic)
    want = getattr(torch, f"{name}_window")(length, periodic).numpy()
    assert got.shape == want.shape
    np.testing.assert_allclose(np.asarray(got), want, atol=1e-6)


def test_window_parameters_and_dtype() -> None:
    got = windows.hamming_window(9, alpha=0.6, beta=0.4)
    want = torch.hamming_window(9, True, 0.6, 0.4)
    np.testing.assert_allclose(np.asarray(got), want.numpy(), atol=1e-6)
    assert windows.hann_window(9, dtype=np.float16).dtype == np.float16
