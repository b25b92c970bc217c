"""A tensor of no dimensions beside one in half precision, whose dtype torch keeps."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import both, check, convert, loaded

SCALED = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.7))
        self.log = nn.Parameter(torch.ones([]) * 0.3)
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        y = self.fc(x).to(torch.DTYPE)
        s = self.log.exp()
        a = y * self.scale
        b = s * self.fc(x).to(torch.DTYPE)
        whole = (y * self.scale.half()).sum() * self.scale
        return a, b - self.scale, a / a.abs().max(), whole, s * self.fc(x)
"""


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_dtype_of_the_tensor_with_dimensions_is_kept(dtype: str) -> None:
    module, port, code = both(SCALED.replace("DTYPE", dtype))
    x = torch.linspace(-1, 1, 12).reshape(3, 4)
    for ours, theirs in zip(port(jnp.asarray(x.numpy())), module(x), strict=True):
        assert str(ours.dtype) == str(theirs.dtype).removeprefix("torch.")
        expected = theirs.detach().float().numpy()
        np.testing.assert_allclose(np.asarray(ours, np.float32), expected, rtol=0.02, atol=0.02)
    assert "y * beside(y, self.scale[...])" in code


def test_files_of_one_float_type_stay_as_they_are() -> None:
    assert "beside" not in both(SCALED.replace(".to(torch.DTYPE)", "").replace(".half()", ""))[2]


def test_the_function_that_computes_is_imported() -> None:
    source = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.scale * self.fc(x).half()
"""
    module, port, code = both(source)
    assert "in_torch_dtype(jnp.multiply" in code
    x = torch.linspace(-1, 1, 12).reshape(3, 4)
    expected = module(x).detach().float()
    np.testing.assert_allclose(port(jnp.asarray(x.numpy())).astype("float32"), expected, rtol=0.01)


@pytest.mark.parametrize(
    ("made", "number"),
    [
        ("torch.ones([]) * np.log(1 / 0.07)", True),
        ("torch.tensor(math.log(10))", True),
        ("torch.tensor(-2.0)", True),
        ("torch.tensor(np.zeros(3), dtype=torch.float32)", False),
        ("torch.tensor(np.log(VALUES))", False),
        ("torch.ones(1)", False),
    ],
)
def test_which_parameters_have_no_dimensions(made: str, number: bool) -> None:
    head = "import math\nimport numpy as np\n\nVALUES = np.ones(3, np.float32)\n\n"
    source = head + SCALED.replace("DTYPE", "float16").replace("torch.tensor(1.7)", made)
    assert ("y * beside(y, self.scale[...])" in convert(source).code) is number


def test_names_that_are_made_of_one_another_and_what_gets_dimensions_later() -> None:
    source = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(0.3))

    def forward(self, x):
        a = self.scale
        b = self.scale
        for _ in range(2):
            a = b.exp()
            b = a.exp()
        c = self.scale.exp()
        c = c + x
        d = self.scale.exp()
        d = torch.stack([d, d, d, d])
        y = x.half()
        return y * a, y * c, y * d
"""
    module, port, _ = both(source)
    x = torch.linspace(-1, 1, 4)
    for ours, theirs in zip(port(jnp.asarray(x.numpy())), module(x), strict=True):
        assert str(ours.dtype) == str(theirs.dtype).removeprefix("torch.")
        np.testing.assert_allclose(ours.astype("float32"), theirs.detach().float(), rtol=0.01)


def test_a_number_that_a_module_holds_and_nothing_shows_the_dimensions_of() -> None:
    source = """
class M(nn.Module):
    def __init__(self, part, size):
        super().__init__()
        normal = torch.distributions.Normal(0, 1)
        self.times = normal.icdf(torch.full(size, part, dtype=torch.float32))

    def forward(self, x):
        x = x.to(torch.float16)
        return x.std(-1, keepdim=True) * self.times
"""
    x = torch.linspace(-1, 1, 12).reshape(3, 4)
    for size in ((), (4,)):
        module, port, _ = both(source, 0.7, size)
        ours, theirs = port(jnp.asarray(x.numpy())), module(x)
        assert str(ours.dtype) == str(theirs.dtype).removeprefix("torch.")
        expected = theirs.detach().float().numpy()
        np.testing.assert_allclose(np.asarray(ours, np.float32), expected, rtol=0.02)


WIDE = """
class M(nn.Module):
    def __init__(self, d=4):
        super().__init__()
        self.fc = nn.Linear(d, d)
        self.d = d

    def forward(self, x):
        y = self.fc(x)
        n = (y > 0).sum().float()
        root = torch.tensor(self.d, dtype=torch.float32)
        a = y @ y.transpose(-2, -1) / torch.sqrt(torch.tensor(y.size(-1), dtype=torch.float32))
        b = torch.einsum("ij,kj->ik", y, y) * torch.tensor(self.d).float().sqrt()
        return y / (n + 1), a, b, y * root, torch.tensor(3, dtype=torch.float) * a, y.mean() / root
"""


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_numbers_that_are_float32_by_what_a_file_says(dtype: str) -> None:
    """The model itself runs in half precision here: no word of it stands in the file."""
    module, port, code = both(WIDE)
    module = module.to(getattr(torch, dtype))
    x = torch.linspace(-1, 1, 12).reshape(3, 4).to(getattr(torch, dtype))
    for _, variable in nnx.iter_graph(port):
        if isinstance(variable, nnx.Param):
            variable.set_value(variable[...].astype(dtype))
    given = jnp.asarray(x.float().numpy()).astype(dtype)
    for ours, theirs in zip(port(given), module(x), strict=True):
        assert str(ours.dtype) == str(theirs.dtype).removeprefix("torch.")
        expected = theirs.detach().float().numpy()
        np.testing.assert_allclose(np.asarray(ours, np.float32), expected, rtol=0.03, atol=0.03)
    assert "/ math.sqrt(y.shape[-1])" in code
    assert "* math.sqrt(self.d)" in code
    assert "float(3) * a" in code


def test_a_number_that_a_whole_type_cuts_off() -> None:
    """``torch.tensor(2.7, dtype=torch.int64)`` is 2."""
    check("""
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        x = self.fc(x)
        return x @ x.transpose(-2, -1) / torch.sqrt(torch.tensor(2.7, dtype=torch.int64).float())
""")


def test_what_may_have_no_dimensions_itself_is_looked_at() -> None:
    """Of two numbers the wider dtype is the result's in torch, too."""
    source = """
class M(nn.Module):
    def forward(self, x, y):
        return torch.matmul(x, y) / torch.sqrt(torch.tensor(2, dtype=torch.float32))
"""
    assert "in_torch_dtype(jnp.divide" in convert(source).code


@pytest.mark.parametrize(
    "form",
    [
        "h * (h.float().pow(2).mean() + 1e-6).rsqrt()",
        "x.half() * x.mean()",
        "x.bfloat16() / x.norm()",
        "x.bfloat16() - x.max()",
        "h + h.float().mean()",
        "x.half() * x.float().pow(2).mean().sqrt().reciprocal()",
        "x * h.mean()",
        "x.mean() * h.float()",
        "x / x.mean()",
    ],
)
def test_a_number_that_is_computed_of_what_is_cast(form: str) -> None:
    source = f"""
class M(nn.Module):
    def forward(self, x):
        h = x.bfloat16()
        return {form}
"""
    theirs, ours, _ = loaded(source)
    x = torch.linspace(-1, 1.5, 12).reshape(3, 4)
    want, got = theirs["M"]()(x), ours["M"]()(jnp.asarray(x.numpy()))
    assert str(got.dtype) == str(want.dtype).removeprefix("torch.")
    np.testing.assert_allclose(np.asarray(got, np.float32), want.float(), rtol=0.02, atol=0.02)
