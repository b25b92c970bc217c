"""Schedules that are computed in float64 and given back to numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from migrator import to_state_dict
from tests.convert.tools import HEADER, convert, loaded

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


DIFFUSION = """
def linear(n):
    scale = 1000 / n
    return torch.linspace(scale * 1e-4, scale * 0.02, n, dtype=torch.float64)


def cosine(n, s=0.008):
    t = torch.linspace(0, n, n + 1, dtype=torch.float64) / n
    alphas = torch.cos((t + s) / (1 + s) * 1.5707963) ** 2
    betas = 1 - (alphas[1:] / alphas[:-1])
    return torch.clip(betas, 0, 0.999)


class M(nn.Module):
    def __init__(self, name="cosine", n=1000, weighted=True):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        if name == "linear":
            schedule = linear
        elif name == "cosine":
            schedule = cosine
        else:
            raise ValueError(name)

        betas = schedule(n)
        alphas = torch.cumprod(1.0 - betas, dim=0)
        n, = betas.shape
        self.n = int(n)
        keep = lambda name, value: self.register_buffer(name, value.to(torch.float32))
        keep("alphas", alphas)
        self.register_buffer("noise", torch.sqrt(1.0 - alphas).float())
        snr = alphas / (1 - alphas)
        if weighted:
            snr = snr.clone()
            snr.clamp_(max=5)
        keep("weights", snr)
        self.last = nn.Linear(n % 7 + 1, 4)

    def forward(self, x):
        return self.fc(x) * self.alphas[0]
"""


@pytest.mark.parametrize("name", ["cosine", "linear"])
def test_what_a_constructor_computes_in_float64_has_its_digits_in_float32(name: str) -> None:
    theirs, ours, code = loaded(DIFFUSION)
    assert code.count("with jax.enable_x64(True):") == 1
    assert "build(" not in code
    model, port = theirs["M"](name), ours["M"](name, rngs=nnx.Rngs(0))
    state = to_state_dict(port)
    for key in ("alphas", "noise", "weights"):
        want = model.state_dict()[key].numpy()
        assert state[key].dtype == want.dtype == np.float32
        np.testing.assert_allclose(state[key], want, rtol=2e-7)
    dtypes = {leaf.dtype for leaf in jax.tree.leaves(nnx.state(port, nnx.Param))}
    assert dtypes == {jnp.dtype("float32")}
    made = nnx.jit(lambda: ours["M"](name, rngs=nnx.Rngs(0)))()
    np.testing.assert_allclose(to_state_dict(made)["noise"], model.noise.numpy(), rtol=2e-7)
    x = torch.ones(2, 4)
    assert port(jnp.ones((2, 4))).dtype == jnp.float32
    assert model(x).dtype == torch.float32


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ('keep("weights", snr)', "self.weights = snr"),
        ('keep("weights", snr)', 'buffer = 1\n        self.register_buffer("weights", snr)'),
        ('keep("alphas", alphas)', 'self.n = torch.arange(3) * 1\n        keep("alphas", alphas)'),
        ("n, = betas.shape", "n, = betas.shape\n        self.mid = nn.Linear(4, 4)"),
        ("n, = betas.shape", "steps = torch.arange(n)"),
        ("betas = schedule(n)", "betas = schedule(n).float()"),
        ("n + 1, dtype=torch.float64)", "n + 1)"),
        ("schedule = linear", "schedule = self.fc"),
    ],
    ids=["kept", "a name", "integers", "drawn", "read later", "cast", "of 32 bits", "a layer"],
)
def test_statements_that_leave_more_than_float32_stay(line: str, other: str) -> None:
    source = DIFFUSION.replace(line, other)
    assert source != DIFFUSION
    if other.startswith("steps"):
        source = source.replace("n % 7 + 1", "len(steps)")
    assert "x64" not in convert(source).code


TRAINER = """
class M(nn.Module):
    def __init__(self, n=1000):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.register_buffer("betas", torch.linspace(1e-4, 0.02, n).double())
        alphas = 1.0 - self.betas
        bar = torch.cumprod(alphas, dim=0)
        self.register_buffer("signal", torch.sqrt(bar))
        self.register_buffer("noise", torch.sqrt(1.0 - bar))

    def forward(self, x):
        return self.fc(x) * self.signal[1].float() + self.noise[1].float()
"""


@pytest.mark.parametrize("x64", [False, True])
def test_buffers_of_float64_have_its_digits_as_well(x64: bool) -> None:
    theirs, ours, code = loaded(TRAINER)
    assert code.count("with jax.enable_x64(True):") == 1
    model = theirs["M"]()
    with jax.enable_x64(x64):
        port = ours["M"](rngs=nnx.Rngs(0))
        state = nnx.state(port)
    for key in ("betas", "signal", "noise"):
        got = np.asarray(state[key][...])
        assert got.dtype == (np.float64 if x64 else np.float32)
        np.testing.assert_allclose(got, model.state_dict()[key].numpy(), rtol=5e-7)
    made = nnx.jit(lambda: ours["M"](rngs=nnx.Rngs(0)))()
    np.testing.assert_allclose(made.noise[...], model.noise.numpy(), rtol=5e-7)
    assert port(jnp.ones((2, 4))).dtype == jnp.float32


def test_a_single_buffer_of_float64() -> None:
    one = TRAINER.replace('self.register_buffer("betas", ', "betas = (").replace(
        "self.betas", "betas"
    )
    one = one.replace('self.register_buffer("signal", torch.sqrt(bar))', "")
    one = one.replace("self.signal[1].float()", "2")
    theirs, ours, code = loaded(one)
    assert "self.noise.set_value(self.noise[...].astype(float))" in code
    port = ours["M"](rngs=nnx.Rngs(0))
    np.testing.assert_allclose(port.noise[...], theirs["M"]().noise.numpy(), rtol=5e-7)
