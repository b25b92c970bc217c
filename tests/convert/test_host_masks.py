"""Masks that a constructor makes and keeps: what they select is known, if nobody changes them."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import HEADER, loaded, sides

X = torch.randn(4, 4, generator=torch.Generator().manual_seed(5))
PROGRAM = """class M(nn.Module):
    def __init__(self, n=4, given=torch.eye(4).bool()):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        MADE

    def mask_of(self, n):
        mask = torch.ones((n, n), dtype=bool)
        mask = mask.fill_diagonal_(0)
        for i in range(n // 2):
            mask[i, n // 2 + i] = 0
        return mask

    def forward(self, x):
        x = self.fc(x)
        USED
"""
MADE = {
    "off the diagonal": "self.mask = ~torch.eye(n, dtype=torch.bool)",
    "by Python's bool": "self.mask = ~torch.eye(n, dtype=bool)",
    "a triangle": "self.mask = torch.triu(torch.ones(n, n), diagonal=1) == 1",
    "by a method": "self.mask = self.mask_of(n)",
    "by a local name": "m = torch.eye(n); m[0, 1] = 1; self.mask = m > 0",
    "a local name": "m = torch.eye(n) > 0; m[0, 1] = True; self.mask = m",
    "moved": "self.mask = torch.tril(torch.ones(n, n)).bool().to('cpu')",
}
USED = {
    "all": "return x[self.mask]",
    "the others": "return x[~self.mask]",
    "behind": "return x[None][:, self.mask]",
    "by a method": "return x.masked_select(self.mask)",
    "by a function": "return torch.masked_select(x[None], self.mask)",
    "viewed": "return x[self.mask].view(-1, 1) * 2",
    "by a local name": "m = self.mask & (torch.eye(4) < 1); return x[m]",
    "as a number too": "return x[self.mask].sum() * self.mask.float() + self.mask.sum()",
    "filled": "return x.masked_fill(self.mask, 0.0) + x[self.mask].mean()",
    "where": "return torch.where(self.mask, x, -x) + x[self.mask].max()",
    "its places": "i, j = self.mask.nonzero(as_tuple=True); return x[i] * x[j]",
    "in two": "a = x[self.mask]; b = x[~self.mask]; return torch.cat([a, b])",
    "a row": "return x[self.mask[0]]",
}
CHANGED = [
    ("self.mask = ~torch.eye(n, dtype=torch.bool); self.mask[0] = False", "return x[self.mask]"),
    (
        "self.mask = ~torch.eye(n, dtype=torch.bool); self.mask.fill_diagonal_(True)",
        "return x[self.mask]",
    ),
    ("m = ~torch.eye(n, dtype=torch.bool); self.mask = m; m[0] = False", "return x[self.mask]"),
    (
        "m = ~torch.eye(n, dtype=torch.bool); k = m.t(); self.mask = m; k[0] = False",
        "return x[self.mask]",
    ),
    ("self.mask = given.bool(); given[0] = False", "return x[self.mask]"),
    ("self.mask = ~torch.eye(n, dtype=torch.bool)", "self.mask = x > 0; return x[self.mask]"),
    ("self.mask = ~torch.eye(n, dtype=torch.bool)", "self.mask[0, 0] = True; return x[self.mask]"),
    (
        "self.mask = ~torch.eye(n, dtype=torch.bool)",
        "m = self.mask; m[0, 0] = True; return x[self.mask]",
    ),
    (
        "self.mask = ~torch.eye(n, dtype=torch.bool)",
        "self.mask.logical_not_(); return x[self.mask]",
    ),
    ("self.register_buffer('mask', ~torch.eye(n, dtype=torch.bool))", "return x[self.mask]"),
    (
        "self.mask = ~torch.eye(n, dtype=torch.bool)",
        "setattr(self, 'mask', x > 0); return x[self.mask]",
    ),
]


def _outcome(made: str, used: str) -> bool | None:
    """Whether the port gives what torch does, in two calls and under jit; None where it is refused."""
    text = PROGRAM.replace("MADE", made.replace("; ", "\n        "))
    text = HEADER + text.replace("USED", used.replace("; ", "\n        "))
    told, theirs, ours = sides(text)
    if told:
        return None
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    port.fc.kernel[...] = jnp.asarray(model.fc.weight.detach().numpy().T)
    port.fc.bias[...] = jnp.asarray(model.fc.bias.detach().numpy())
    run = nnx.jit(lambda module, x: module(x))
    for x in (X, 2 * X):
        want = model(x).detach().numpy()
        for call in (run, lambda module, x: module(x)):
            np.testing.assert_allclose(call(port, jnp.asarray(x.numpy())), want, atol=1e-5)
    grads = nnx.grad(lambda module: module(jnp.asarray(X.numpy())).sum())(port)
    model(X).sum().backward()
    np.testing.assert_allclose(grads["fc"]["bias"][...], model.fc.bias.grad, atol=1e-4)
    return True


@pytest.mark.parametrize("used", USED)
@pytest.mark.parametrize("made", ["off the diagonal", "by a method"])
def test_what_a_kept_mask_selects(made: str, used: str) -> None:
    assert _outcome(MADE[made], USED[used])


@pytest.mark.parametrize("made", MADE)
def test_masks_are_made_in_many_ways(made: str) -> None:
    assert _outcome(MADE[made], USED["all"])


@pytest.mark.parametrize(("made", "used"), CHANGED)
def test_a_mask_that_changes_is_refused(made: str, used: str) -> None:
    assert _outcome(made, used) is None


@pytest.mark.parametrize("made", ["off the diagonal", "by a method"])
def test_a_constructor_that_is_traced(made: str) -> None:
    text = PROGRAM.replace("MADE", MADE[made]).replace("USED", USED["all"])
    _, ours, code = loaded(text)
    assert "self.mask = host_array(lambda: " in code
    assert nnx.eval_shape(lambda: ours["M"](rngs=nnx.Rngs(0))).fc.kernel.shape == (4, 4)
    port, built = ours["M"](rngs=nnx.Rngs(0)), nnx.jit(lambda: ours["M"](rngs=nnx.Rngs(0)))()
    x = jnp.asarray(X.numpy())
    np.testing.assert_allclose(nnx.jit(lambda m, x: m(x))(built, x), port(x), atol=1e-5)


@pytest.mark.parametrize("made", ["torch.tensor", "torch.as_tensor", "np.array"])
@pytest.mark.parametrize("values", ["[True, False, True, True]", "[i != 1 for i in range(4)]"])
@pytest.mark.parametrize("used", ["x[:, self.mask]", "x[:, ~self.mask]", "x[self.mask.nonzero()]"])
def test_masks_of_truths_that_are_written_out(made: str, values: str, used: str) -> None:
    if made == "np.array" and "nonzero" in used:
        used = "x[:, self.mask] * 2"
    program = "import numpy as np\n\n\n" + PROGRAM
    text = HEADER + program.replace("MADE", f"self.mask = {made}({values})")
    told, theirs, ours = sides(text.replace("USED", f"return {used}"))
    assert not told
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    port.fc.kernel[...] = jnp.asarray(model.fc.weight.detach().numpy().T)
    port.fc.bias[...] = jnp.asarray(model.fc.bias.detach().numpy())
    made_ = nnx.jit(lambda module, x: module(x))(port, jnp.asarray(X.numpy()))
    np.testing.assert_allclose(made_, model(X).detach().numpy(), atol=1e-5)


def test_a_mask_of_truths_in_the_forward_pass() -> None:
    assert _outcome("self.k = 1", "m = torch.tensor([True, False, True, True]); return x[:, m]")
    assert (
        _outcome(
            "self.register_buffer('mask', torch.tensor([True, False, True, True]))",
            "return x[:, self.mask]",
        )
        is None
    )
