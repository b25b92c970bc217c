"""``torch.masked``: reductions and softmaxes that see only the elements where ``mask`` is True."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rules.compat.masked import masked, masked_moment, masked_norm
from rules.compat.reduction import lower_median
from rules.registry import axes, is_integer, op, surely, unsupported


@op(
    "torch.masked.sum",
    example={"torch.masked.sum(x, 1, mask=mask)": "jnp.sum(masked(x, mask, 0), axis=1)"},
)
def sum(input, dim=None, *, keepdim=False, dtype=None, mask=None) -> Tensor:
    """Sum of the elements under the mask."""
    return jnp.sum(masked(input, mask, 0), axis=axes(dim, input), dtype=dtype, keepdims=keepdim)


@op("torch.masked.prod")
def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None) -> Tensor:
    """Product of the elements under the mask."""
    return unsupported("torch.masked.prod, whose gradient is NaN in torch for large products")


@op("torch.masked.amax")
def amax(input, dim=None, *, keepdim=False, dtype=None, mask=None) -> Tensor:
    """Largest element under the mask."""
    return masked(input, mask, -jnp.inf, dtype).max(axis=axes(dim, input), keepdims=keepdim)


@op("torch.masked.amin")
def amin(input, dim=None, *, keepdim=False, dtype=None, mask=None) -> Tensor:
    """Smallest element under the mask."""
    return masked(input, mask, jnp.inf, dtype).min(axis=axes(dim, input), keepdims=keepdim)


@op("torch.masked.argmax")
def argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None) -> Tensor["int"]:
    """Where the largest element under the mask is."""
    index = masked(input, mask, -jnp.inf, dtype).argmax(axis=axes(dim, input), keepdims=keepdim)
    return index.astype(input.dtype if dtype is None else dtype)


@op("torch.masked.argmin")
def argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None) -> Tensor["int"]:
    """Where the smallest element under the mask is."""
    index = masked(input, mask, jnp.inf, dtype).argmin(axis=axes(dim, input), keepdims=keepdim)
    return index.astype(input.dtype if dtype is None else dtype)


@op("torch.masked.mean")
def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None) -> Tensor:
    """Mean of the elements under the mask."""
    return masked_moment(input, mask, 1, axes(dim, input), 0, keepdim, dtype)


@op("torch.masked.var")
def var(
    input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None
) -> Tensor:
    """Variance of the elements under the mask."""
    ddof = int(unbiased is not False) if correction is None else correction
    return masked_moment(input, mask, 2, axes(dim, input), ddof, keepdim, dtype)


@op("torch.masked.std")
def std(
    input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None
) -> Tensor:
    """Standard deviation of the elements under the mask."""
    ddof = int(unbiased is not False) if correction is None else correction
    return jnp.sqrt(masked_moment(input, mask, 2, axes(dim, input), ddof, keepdim, dtype))


@op("torch.masked.median")
def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None) -> Tensor:
    """Lower median of the elements under the mask."""
    return lower_median(
        masked(input, mask, jnp.nan, dtype),
        axes(dim, input),
        keepdims=keepdim,
        ignore_nan=mask is not None,
    )[0]


@op("torch.masked.logsumexp")
def logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None) -> Tensor:
    """log Σ exp of the elements under the mask, in the input's dtype unless another is asked for."""
    total = jax.nn.logsumexp(
        masked(input, mask, -jnp.inf, dtype), axis=axes(dim, input), keepdims=keepdim
    )
    if surely(is_integer(input)):
        return total.astype(input.dtype if dtype is None else dtype)
    return total


@op("torch.masked.norm")
def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None) -> Tensor:
    """p-norm of the elements under the mask."""
    return masked_norm(input, mask, ord, axes(dim, input), keepdim, dtype)


@op("torch.masked.cumsum")
def cumsum(input, dim, *, dtype=None, mask=None) -> Tensor:
    """Running sum, elements outside the mask counting as 0."""
    if surely(input.ndim == 0):
        return masked(input, mask, 0).sum(dtype=dtype)
    return masked(input, mask, 0).cumsum(axis=dim, dtype=dtype)


@op("torch.masked.cumprod")
def cumprod(input, dim, *, dtype=None, mask=None) -> Tensor:
    """Running product, elements outside the mask counting as 1."""
    if surely(input.ndim == 0):
        return masked(input, mask, 1).prod(dtype=dtype)
    return masked(input, mask, 1).cumprod(axis=dim, dtype=dtype)


@op("torch.masked.softmax")
def softmax(input, dim, *, dtype=None, mask=None) -> Tensor:
    """Softmax over the elements under the mask."""
    return jax.nn.softmax(masked(input, mask, -jnp.inf, dtype), axis=axes(dim, input))


@op("torch.masked.softmin")
def softmin(input, dim, *, dtype=None, mask=None) -> Tensor:
    """Softmin over the elements under the mask."""
    return jax.nn.softmax(-masked(input, mask, jnp.inf, dtype), axis=axes(dim, input))


@op("torch.masked.log_softmax")
def log_softmax(input, dim, *, dtype=None, mask=None) -> Tensor:
    """log softmax over the elements under the mask."""
    return jax.nn.log_softmax(masked(input, mask, -jnp.inf, dtype), axis=axes(dim, input))


@op("torch.masked.normalize")
def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None) -> Tensor:
    """Divided by the p-norm of the elements under the mask."""
    size = masked_norm(input, mask, ord, axes(dim, input), True, dtype)
    return masked(input, mask, 0, dtype) / jnp.maximum(size, eps)


@op("torch.masked.logaddexp")
def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None) -> Tensor:
    """log(exp(input) + exp(other)), elements outside the masks counting as -inf."""
    return jnp.logaddexp(
        masked(input, input_mask, -jnp.inf, dtype), masked(other, other_mask, -jnp.inf, dtype)
    )
