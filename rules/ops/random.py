"""Random numbers: drawn from ``nnx.Rngs``, the same distributions, not the same numbers.

The in-place fillers of a tensor (``normal_``, ``uniform_``, …) have no functional form: each is given as the new
value. ``torch.manual_seed`` seeds the ``rngs`` the program is built with.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from rules.registry import is_complex, op, sizes, surely, unsupported


@op(
    "torch.rand",
    example={
        "torch.rand(2, dtype=torch.cfloat)": ("lax.complex(rngs.uniform((2,)), rngs.uniform((2,)))")
    },
)
def rand_complex(
    *size,
    generator=None,
    dtype: DType["complex"],
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
    rngs,
) -> Tensor["complex"]:
    """Real and imaginary part uniform on [0, 1)."""
    return lax.complex(rngs.uniform(sizes(size)), rngs.uniform(sizes(size)))


@op("torch.rand", example={"torch.rand(2, 3)": "rngs.uniform((2, 3))"}, general=True)
def rand(
    *size,
    generator=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
    rngs,
) -> Tensor["float"]:
    """Uniform on [0, 1)."""
    if dtype is not None:
        return rngs.uniform(sizes(size), dtype)
    return rngs.uniform(sizes(size))


@op("torch.randn", example={"torch.randn(2, 3)": "rngs.normal((2, 3))"})
def randn(
    *size,
    generator=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
    rngs,
) -> Tensor["float"]:
    """Standard normal."""
    if dtype is not None:
        return rngs.normal(sizes(size), dtype)
    return rngs.normal(sizes(size))


@op("torch.rand_like", example={"torch.rand_like(x)": "rngs.uniform(x.shape, x.dtype)"})
def rand_like(
    input,
    *,
    generator=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    memory_format=None,
    rngs,
) -> Tensor["same"]:
    """Uniform on [0, 1), shape and dtype of ``input``."""
    return rngs.uniform(input.shape, input.dtype if dtype is None else dtype)


@op("torch.randn_like", example={"torch.randn_like(x)": "rngs.normal(x.shape, x.dtype)"})
def randn_like(
    input,
    *,
    generator=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    memory_format=None,
    rngs,
) -> Tensor["same"]:
    """Standard normal, shape and dtype of ``input``."""
    return rngs.normal(input.shape, input.dtype if dtype is None else dtype)


@op("torch.randint", example={"torch.randint(5, 9, (2, 3))": "rngs.randint((2, 3), 5, 9)"})
def randint(
    low: int,
    high: int,
    size,
    *,
    generator=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
    rngs,
) -> Tensor["int"]:
    """Integers from ``low`` up to, not including, ``high``."""
    if dtype is None:
        return rngs.randint(tuple(size), low, high)
    return rngs.randint(tuple(size), low, high).astype(dtype)


@op("torch.randint", example={"torch.randint(9, (2, 3))": "rngs.randint((2, 3), 0, 9)"})
def randint_below(
    high: int,
    size,
    *,
    generator=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
    rngs,
) -> Tensor["int"]:
    """Integers from 0 up to, not including, ``high``."""
    if dtype is None:
        return rngs.randint(tuple(size), 0, high)
    return rngs.randint(tuple(size), 0, high).astype(dtype)


@op(
    "torch.randint_like",
    example={"torch.randint_like(i, 2, 9)": "rngs.randint(i.shape, 2, 9).astype(i.dtype)"},
)
def randint_like(
    input,
    low,
    high=None,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    memory_format=None,
    rngs,
) -> Tensor["same"]:
    """Integers in [low, high), or [0, low) for one bound, with shape and dtype of ``input``."""
    if dtype is None:
        dtype = input.dtype
    if high is None:
        return rngs.randint(input.shape, 0, low).astype(dtype)
    return rngs.randint(input.shape, low, high).astype(dtype)


@op("torch.randperm", example={"torch.randperm(8)": "rngs.permutation(8)"})
def randperm(
    n,
    *,
    generator=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
    rngs,
) -> Tensor["int"]:
    """The numbers 0 … n − 1 in random order."""
    if dtype is None:
        return rngs.permutation(n)
    return rngs.permutation(n).astype(dtype)


@op(
    "torch.normal",
    example={"torch.normal(0.0, 1.0, (2, 3))": "rngs.normal((2, 3))"},
)
def normal_sized(
    mean: float,
    std: float,
    size,
    *,
    generator=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
    rngs,
) -> Tensor["float"]:
    """Normal numbers of one mean and deviation."""
    draw = rngs.normal(tuple(size)) if dtype is None else rngs.normal(tuple(size), dtype)
    if std != 1:
        draw = std * draw
    if mean != 0:
        draw = mean + draw
    return draw


@op(
    "torch.normal",
    example={"torch.normal(x, y)": "lax.stop_gradient(x + y * rngs.normal(x.shape, x.dtype))"},
)
def normal(mean: Tensor, std: Tensor = 1.0, *, generator=None, rngs) -> Tensor["float"]:
    """A normal number for every mean and deviation, which get no gradient from it."""
    if surely(mean.shape != std.shape):
        mean, std = jnp.broadcast_arrays(mean, std)
    return lax.stop_gradient(mean + std * rngs.normal(mean.shape, mean.dtype))


@op(
    "torch.normal",
    example={"torch.normal(x, 2.0)": "lax.stop_gradient(x + 2.0 * rngs.normal(x.shape, x.dtype))"},
)
def normal_means(mean: Tensor, std: float = 1.0, *, generator=None, rngs) -> Tensor["float"]:
    """A normal number for every mean, which gets no gradient from it."""
    return lax.stop_gradient(mean + std * rngs.normal(mean.shape, mean.dtype))


@op(
    "torch.normal",
    example={"torch.normal(0.5, y)": "lax.stop_gradient(0.5 + y * rngs.normal(y.shape, y.dtype))"},
)
def normal_deviations(mean: float, std: Tensor, *, generator=None, rngs) -> Tensor["float"]:
    """A normal number for every deviation, which gets no gradient from it."""
    return lax.stop_gradient(mean + std * rngs.normal(std.shape, std.dtype))


@op(
    "torch.bernoulli",
    "Tensor.bernoulli",
    example={"torch.bernoulli(x)": "rngs.bernoulli(x).astype(x.dtype)"},
)
def bernoulli(input, p=None, *, generator=None, rngs) -> Tensor["same"]:
    """1 with the probability given by each element (or by ``p``), else 0."""
    if p is not None:
        return rngs.bernoulli(p, input.shape).astype(input.dtype)
    return rngs.bernoulli(input).astype(input.dtype)


@op("torch.poisson", example={"torch.poisson(x)": "rngs.poisson(x).astype(x.dtype)"})
def poisson(input, generator=None, *, rngs) -> Tensor["same"]:
    """Poisson numbers of the given rates."""
    return rngs.poisson(input).astype(input.dtype)


@op(
    "torch.multinomial",
    "Tensor.multinomial",
    example={
        "torch.multinomial(x, 1)": "rngs.categorical(jnp.log(x))[..., None]",
        "torch.multinomial(x, 3)": "lax.top_k(jnp.log(x) + rngs.gumbel(x.shape), 3)[1]",
    },
)
def multinomial(input, num_samples, replacement=False, *, generator=None, rngs) -> Tensor["int"]:
    """Indices drawn with the row's weights; without replacement the largest of log-weights plus Gumbel noise."""
    if num_samples == 1:
        return rngs.categorical(jnp.log(input))[..., None]
    if replacement:
        return rngs.categorical(
            jnp.log(input)[..., None, :], shape=(*input.shape[:-1], num_samples)
        )
    return lax.top_k(jnp.log(input) + rngs.gumbel(input.shape), num_samples)[1]


@op("Tensor.normal_", example={"x.normal_(0, 0.02)": "0.02 * rngs.normal(x.shape, x.dtype)"})
def normal_(input, mean=0, std=1, *, generator=None, rngs) -> Tensor["same"]:
    """Filled with normal numbers."""
    if surely(is_complex(input)):
        unsupported("normal_ of a complex tensor: torch shifts real and imaginary part")
    draw = rngs.normal(input.shape, input.dtype)
    if std != 1:
        draw = std * draw
    if mean != 0:
        draw = mean + draw
    return draw


@op(
    "Tensor.uniform_",
    example={"x.uniform_(-1, 1)": "rngs.uniform(x.shape, x.dtype, minval=-1, maxval=1)"},
)
def uniform_(input, from_=0, to=1, *, generator=None, rngs) -> Tensor["same"]:
    """Filled with uniform numbers."""
    if surely(is_complex(input)):
        unsupported("uniform_ of a complex tensor: draw real and imaginary part")
    return rngs.uniform(input.shape, input.dtype, minval=from_, maxval=to)


@op(
    "Tensor.bernoulli_",
    example={"x.bernoulli_(0.3)": "rngs.bernoulli(0.3, x.shape).astype(x.dtype)"},
)
def bernoulli_(input, p=0.5, *, generator=None, rngs) -> Tensor["same"]:
    """Filled with 1 by probability ``p``, else 0."""
    return rngs.bernoulli(p, input.shape).astype(input.dtype)


@op("Tensor.exponential_", example={"x.exponential_()": "rngs.exponential(x.shape, x.dtype)"})
def exponential_(input, lambd=1, *, generator=None, rngs) -> Tensor["same"]:
    """Filled with exponential numbers of rate ``lambd``."""
    if lambd != 1:
        return rngs.exponential(input.shape, input.dtype) / lambd
    return rngs.exponential(input.shape, input.dtype)


@op("Tensor.cauchy_", example={"x.cauchy_()": "rngs.cauchy(x.shape, x.dtype)"})
def cauchy_(input, median=0, sigma=1, *, generator=None, rngs) -> Tensor["same"]:
    """Filled with Cauchy numbers."""
    draw = rngs.cauchy(input.shape, input.dtype)
    if sigma != 1:
        draw = sigma * draw
    if median != 0:
        draw = median + draw
    return draw


@op(
    "Tensor.log_normal_",
    example={"x.log_normal_()": "jnp.exp(1 + 2 * rngs.normal(x.shape, x.dtype))"},
)
def log_normal_(input, mean=1, std=2, *, generator=None, rngs) -> Tensor["same"]:
    """Filled with exponentials of normal numbers."""
    return jnp.exp(mean + std * rngs.normal(input.shape, input.dtype))


@op(
    "Tensor.geometric_",
    example={"x.geometric_(0.5)": "rngs.geometric(0.5, x.shape).astype(x.dtype)"},
)
def geometric_(input, p, *, generator=None, rngs) -> Tensor["same"]:
    """Filled with the number of trials up to the first success."""
    return rngs.geometric(p, input.shape).astype(input.dtype)


@op("Tensor.random_", example={"i.random_(0, 9)": "rngs.randint(i.shape, 0, 9).astype(i.dtype)"})
def random_(input, from_: int, to: int, *, generator=None, rngs) -> Tensor["same"]:
    """Filled with integers in [from, to)."""
    return rngs.randint(input.shape, from_, to).astype(input.dtype)


@op("Tensor.random_", example={"i.random_(9)": "rngs.randint(i.shape, 0, 9).astype(i.dtype)"})
def random_below(input, to: int, *, generator=None, rngs) -> Tensor["same"]:
    """Filled with integers in [0, to)."""
    return rngs.randint(input.shape, 0, to).astype(input.dtype)


@op("torch.get_rng_state", "torch.set_rng_state", "torch.seed", "torch.initial_seed")
def rng_state(*args) -> Tensor:
    """Refused: JAX has no global generator."""
    unsupported(
        "JAX keeps no global random state; keep the nnx.Rngs (or its key) the draws come from"
    )
