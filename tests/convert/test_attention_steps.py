"""Attention without a mask is written out where it stands: scores, weights and what they weigh."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import function, loaded

WHOLE = "F.scaled_dot_product_attention(q, k, v{more})"
FUNCTION = "def f(q, k, v, causal=True):\n    return " + WHOLE + "\n"


def test_the_steps_have_their_names() -> None:
    got = function("q, k, v = x, x + 1, y", f"return {WHOLE.format(more=', is_causal=True')}")
    assert got.splitlines()[1:] == [
        "wide = jnp.promote_types(q.dtype, jnp.float32)",
        "scores = jnp.matmul(q, k.mT, preferred_element_type=wide)",
        "scaled = scores / math.sqrt(q.shape[-1])",
        "causal = jnp.tril(jnp.ones((q.shape[-2], k.shape[-2]), bool))",
        "weights = jax.nn.softmax(jnp.where(causal, scaled, -jnp.inf))",
        "return weights.astype(q.dtype) @ v",
    ]


@pytest.mark.parametrize(
    "more",
    [", attn_mask=mask", ", is_causal=causal", ", enable_gqa=gqa", ", mask, 0.1, scale=0.5"],
)
def test_what_is_not_known_is_left_to_the_helper(more: str) -> None:
    got = function("q, k, v = x, x + 1, y", f"return {WHOLE.format(more=more)}")
    assert "scaled_dot_product_attention(" in got
    assert "scores" not in got


@pytest.mark.parametrize(
    "line", ["return (lambda q: {})(x)", "return y if n else {}", "return [{} for q in (x, y)]"]
)
def test_where_no_statement_may_stand_before_it_is_the_helper(line: str) -> None:
    got = function("q, k, v = x, x + 1, y", line.format(WHOLE.format(more="")))
    assert "scaled_dot_product_attention(q, k, v" in got
    assert "scores" not in got


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("more", "lead", "keys", "wide"),
    [
        ("", (2, 3), 5, 4),
        ("", (), 1, 7),
        (", scale=0.3", (2,), 5, 4),
        (", None, 0.0, True", (2, 3), 5, 6),
        (", is_causal=True", (1,), 3, 4),  # keys that nobody may look at, and the other way round
        (", is_causal=True, scale=2.0", (2,), 8, 4),
    ],
)
def test_values(more: str, lead: tuple[int, ...], keys: int, wide: int, dtype: torch.dtype) -> None:
    theirs, ours, text = loaded(FUNCTION.format(more=more))
    assert "scaled_dot_product_attention" not in text
    seed = torch.Generator().manual_seed(0)
    shapes = (*lead, 5, 4), (*lead, keys, 4), (*lead, keys, wide)
    given = [torch.randn(shape, generator=seed).to(dtype) for shape in shapes]
    want = theirs["f"](*given)
    got = ours["f"](*[jnp.asarray(t.float().numpy(), str(dtype)[6:]) for t in given])
    assert str(got.dtype) == str(want.dtype)[6:]
    bound = 1e-5 if dtype == torch.float32 else 2e-2
    np.testing.assert_allclose(
        np.asarray(got, np.float32), want.float().numpy(), rtol=bound, atol=bound
    )


def test_gradients() -> None:
    theirs, ours, _ = loaded(FUNCTION.format(more=", is_causal=True"))
    seed = torch.Generator().manual_seed(0)
    given = [torch.randn(2, 5, 4, generator=seed, requires_grad=True) for _ in range(3)]
    want = torch.autograd.grad((theirs["f"](*given) ** 2).sum(), given)
    arrays = [jnp.asarray(t.detach().numpy()) for t in given]

    def loss(arrays: list[jnp.ndarray]) -> jnp.ndarray:
        return (ours["f"](*arrays) ** 2).sum()

    for got, one in zip(nnx.grad(loss)(arrays), want, strict=True):
        np.testing.assert_allclose(got, one.numpy(), rtol=1e-4, atol=1e-5)


MODULE = """
class Attend(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, q, k, v):
        dropout = self.p if self.training else 0.0
        return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout{more})
"""


@pytest.mark.parametrize("more", ["", ", is_causal=True"])
def test_dropout_of_the_weights(more: str) -> None:
    theirs, ours, text = loaded(MODULE.format(more=more))
    assert "weights = nnx.Dropout(dropout)(" in text
    x = torch.randn(2, 64, 4, generator=torch.Generator().manual_seed(0))
    whole = theirs["Attend"](0.5).eval()(x, x, x).numpy()
    array = jnp.asarray(x.numpy())
    for p in (0.0, 0.5, 1.0):
        module = ours["Attend"](p, rngs=nnx.Rngs(0))
        dropped = np.asarray(module(array, array, array))
        want = theirs["Attend"](p)(x, x, x).numpy()
        if p == 0.5:  # which are dropped is chance: how far the sums stray is not
            assert not np.allclose(dropped, whole, atol=1e-2)
            np.testing.assert_allclose(np.std(dropped), np.std(want), rtol=0.2)
        else:
            np.testing.assert_allclose(dropped, want, rtol=1e-5, atol=1e-6)
        module.eval()
        np.testing.assert_allclose(module(array, array, array), whole, rtol=1e-5, atol=1e-6)
