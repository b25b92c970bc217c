"""Schedules that are computed in float64 and given back to numpy."""

import numpy as np
import pytest

from tests.convert.tools import HEADER, convert

SCHEDULE = '''
import numpy as np


def schedule(n, cosine=False):
    """Variances."""
    if cosine:
        t = torch.arange(n + 1, dtype=torch.float64) / n + 0.008
        alphas = torch.cos(t / 1.008 * np.pi / 2).pow(2)
        betas = 1 - alphas[1:] / alphas[:-1]
    else:
        betas = torch.linspace(1e-4**0.5, 2e-2**0.5, n, dtype=torch.double) ** 2
    return betas.numpy()
'''


@pytest.mark.parametrize("cosine", [True, False])
def test_a_schedule_has_the_digits_that_torch_gives_it(cosine: bool) -> None:
    result = convert(SCHEDULE)
    assert result.complete, result.findings
    ours: dict = {}
    exec(result.code, ours)
    theirs: dict = {}
    exec(HEADER + SCHEDULE, theirs)
    got, wanted = ours["schedule"](1000, cosine), theirs["schedule"](1000, cosine)
    assert got.dtype == wanted.dtype == np.float64
    np.testing.assert_allclose(np.cumprod(1 - got), np.cumprod(1 - wanted), rtol=1e-12)
    assert result.code.index('"""Variances."""') < result.code.index("with jax.enable_x64(True):")


@pytest.mark.parametrize(
    "line",
    [
        "return torch.ones(n, dtype=torch.float64)",
        "return torch.ones(n).numpy()",
        "return (torch.ones(n, dtype=torch.float64) * torch.arange(3.0)).numpy()",
        "return other(torch.ones(n, dtype=torch.float64)).numpy()",
    ],
    ids=["a tensor", "of 32 bits", "of both", "made by another function"],
)
def test_what_leaves_as_a_tensor_or_is_not_all_of_float64_stays(line: str) -> None:
    source = (
        f"def other(x: torch.Tensor):\n    return x + torch.ones(3)\n\n\ndef make(n):\n    {line}\n"
    )
    assert "x64" not in convert(source).code
