"""Numbers of numpy's beside tensors of half precision, which torch leaves in it."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import convert, loaded

HEAD = """
import numpy as np

SCALE = np.sqrt(2.0)
MEAN = np.mean([1.0, 2.0])


def scaled(x, by):
    return x * by


def f(x: torch.Tensor, d=4):
    h = x.half()
"""


@pytest.mark.parametrize(
    "line",
    [
        "h * np.sqrt(x.size(-1))",
        "h / np.sqrt(d)",
        "h * (1 / np.sqrt(d)) - np.exp(-1)",
        "np.float32(2) * h + SCALE",
        "scaled(h, by=np.sqrt(3)) + scaled(h, 1 / np.log(3.0))",
        "h.clamp(max=np.sqrt(0.5)).mul(np.power(2, 0.5))",
        "h + torch.finfo(torch.float32).eps",
        "torch.add(h, np.log(d))",
        "h.masked_fill(h > 0, torch.finfo(torch.float16).min)",
        "h * np.pi",
        "h * MEAN",
    ],
)
def test_half_stays_half(line: str) -> None:
    theirs, ours, _ = loaded(f"{HEAD}    return {line}\n")
    x = torch.linspace(-1, 1, 12).reshape(3, 4)
    want, got = theirs["f"](x), ours["f"](jnp.asarray(x.numpy()))
    assert want.dtype == torch.float16
    assert got.dtype == jnp.float16
    np.testing.assert_allclose(got.astype(float), want.float(), rtol=4e-3)


def test_numbers_that_a_module_keeps() -> None:
    theirs, ours, _ = loaded("""
import numpy as np


class M(nn.Module):
    def __init__(self, d=4):
        super().__init__()
        self.temp = np.power(d, 0.5)

    def forward(self, x):
        return x.to(torch.bfloat16) / self.temp
""")
    x = torch.ones(3)
    assert theirs["M"]()(x).dtype == torch.bfloat16
    assert ours["M"](rngs=nnx.Rngs(0))(jnp.ones(3)).dtype == jnp.bfloat16


@pytest.mark.parametrize(
    "lines",
    [
        "return x / np.pi",
        "n = int(np.sqrt(d)); return x.half() * n",
        "h = x.half(); return h.masked_fill(h > 0, torch.finfo(h.dtype).min)",
        "w = np.arange(d) * 2.0; return x.half() * torch.from_numpy(w)",
    ],
)
def test_what_is_left_as_it_is(lines: str) -> None:
    body = "".join(f"    {line.strip()}\n" for line in lines.split(";"))
    code = convert(f"import numpy as np\n\n\ndef f(x: torch.Tensor, d=4):\n{body}").code
    assert "float(" not in code


def test_numbers_of_files_that_name_no_narrow_type() -> None:
    """The whole model may run in half precision, which torch keeps."""
    theirs, ours, _ = loaded("""
import numpy as np


class M(nn.Module):
    def __init__(self, d=4):
        super().__init__()
        self.temp = np.sqrt(d)
        self.weight = nn.Parameter(torch.ones(3) * np.sqrt(d))

    def forward(self, x):
        return x / self.temp + np.log(2)
""")
    x = torch.ones(3, dtype=torch.bfloat16)
    assert theirs["M"]()(x).dtype == torch.bfloat16
    assert ours["M"](rngs=nnx.Rngs(0))(jnp.ones(3, jnp.bfloat16)).dtype == jnp.bfloat16


def test_what_may_be_an_array_of_numpy_stays_one() -> None:
    """``float()`` of an array of several elements raises."""
    code = convert(
        "import numpy as np\n\n\ndef f(x: torch.HalfTensor, d):\n    return x * np.sqrt(d)\n"
    ).code
    found: dict = {}
    exec(code, found)
    x = jnp.ones(3, jnp.float16)
    np.testing.assert_allclose(found["f"](x, np.array([1.0, 4.0, 9.0])), [1, 2, 3])
    assert found["f"](x, 4).dtype == jnp.float16
