"""Weights computed from other arrays: weight norm, spectral norm and ``register_parametrization``.

The layer's class is replaced by one in which the weight is a property; the arrays it is computed from carry torch's
names and layouts, also where nnx stores the weight transposed.
"""

from __future__ import annotations

import functools

import jax.numpy as jnp
from flax import nnx
from jax import lax


def attribute_of(module, name):
    """The attribute that holds torch's ``name``, and whether it is transposed there."""
    if name == "weight" and isinstance(module, nnx.Linear):
        return "kernel", True
    if name == "weight" and isinstance(module, nnx.Embed):
        return "embedding", False
    return name, False


@functools.cache
def computed(cls, attribute, transposed, compute):
    """A subclass of ``cls`` whose ``attribute`` is ``compute(layer)``."""

    def value(layer):
        array = compute(layer)
        return array.T if transposed else array

    return type(cls.__name__, (cls,), {attribute: property(value), "is_computed": True})


def replace_parameter(module, name, compute):
    """Turn a parameter into a property; returns the value it had, in torch's layout."""
    attribute, transposed = attribute_of(module, name)
    value = getattr(module, attribute)[...]
    if attribute in vars(module):
        delattr(module, attribute)
    module.__class__ = computed(type(module), attribute, transposed, compute)
    return value.T if transposed else value


def restore_parameter(module, name):
    """Make a computed weight a parameter again, with the value it has now."""
    attribute, _ = attribute_of(module, name)
    value = getattr(module, attribute)[...]
    module.__class__ = type(module).__bases__[0]
    setattr(module, attribute, nnx.data(nnx.Param(value)))
    return module


# --- weight norm (Salimans and Kingma, 2016) ---------------------------------------------------------


def norm_except(v, dim):
    """Euclidean norm over all axes but ``dim``; over all axes for None and -1."""
    axes = None if dim in (None, -1) else tuple(i for i in range(v.ndim) if i != dim % v.ndim)
    return jnp.sqrt((v * v).sum(axes, keepdims=dim not in (None, -1)))


@functools.cache
def weight_norm_of(name, dim, new):
    """The function that computes g v / ‖v‖ from a layer."""

    def compute(layer):
        if new:
            arrays = layer.parametrizations[name]
            g, v = arrays["original0"][...], arrays["original1"][...]
        else:
            g, v = getattr(layer, f"{name}_g")[...], getattr(layer, f"{name}_v")[...]
        return g * v / norm_except(v, dim)

    return compute


def weight_norm(module, name="weight", dim=0):
    """w = g v / ‖v‖ with one g for each slice along ``dim``; parameters ``weight_g`` and ``weight_v``."""
    v = replace_parameter(module, name, weight_norm_of(name, dim, False))
    setattr(module, f"{name}_g", nnx.Param(norm_except(v, dim)))
    setattr(module, f"{name}_v", nnx.Param(v))
    return module


def remove_weight_norm(module, name="weight"):
    """Undo ``weight_norm``, keeping the weight's value."""
    restore_parameter(module, name)
    delattr(module, f"{name}_g")
    delattr(module, f"{name}_v")
    return module


def parametrized_weight_norm(module, name="weight", dim=0):
    """``weight_norm`` with the names of torch.nn.utils.parametrizations."""
    v = replace_parameter(module, name, weight_norm_of(name, dim, True))
    arrays = {"original0": nnx.Param(norm_except(v, dim)), "original1": nnx.Param(v)}
    add_parametrization(module, name, nnx.Dict(arrays))
    return module


def add_parametrization(module, name, arrays):
    """Keep the arrays of a computed weight under ``module.parametrizations``."""
    if not hasattr(module, "parametrizations"):
        module.parametrizations = nnx.Dict()
    module.parametrizations[name] = arrays


# --- spectral norm (Miyato et al., 2018) -----------------------------------------------------------------


def normalized(x, eps):
    """x / max(‖x‖, eps)."""
    return x / jnp.maximum(jnp.linalg.norm(x), eps)


def spectral_weight(layer, weight, u, v, dim, steps, eps, new):
    """weight / σ with σ = uᵀ W v; training first moves the buffers u and v by power iteration.

    The function in torch.nn.utils moves v first, that in its parametrizations (``new``) u.
    """
    matrix = jnp.moveaxis(weight, dim, 0).reshape(weight.shape[dim], -1)
    if not layer.deterministic:
        fixed, left, right = lax.stop_gradient(matrix), u[...], v[...]
        for _ in range(steps):
            left = normalized(fixed @ right, eps) if new else left
            right = normalized(left @ fixed, eps)
            left = left if new else normalized(fixed @ right, eps)
        u[...], v[...] = left, right
    return weight / (u[...] @ (matrix @ v[...]))


@functools.cache
def spectral_norm_of(name, dim, steps, eps, new):
    """The function that computes a spectrally normalised weight from a layer."""

    def compute(layer):
        if new:
            arrays = layer.parametrizations[name]
            weight, u, v = arrays["original"], arrays["0"]["_u"], arrays["0"]["_v"]
        else:
            weight, u, v = (getattr(layer, f"{name}_{s}") for s in ("orig", "u", "v"))
        return spectral_weight(layer, weight[...], u, v, dim, steps, eps, new)

    return compute


def spectral_parts(module, name, n_power_iterations, eps, dim, rngs, new):
    """Replace the weight; returns its value and random unit vectors u and v."""
    if dim is None:
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    compute = spectral_norm_of(name, dim, n_power_iterations, eps, new)
    weight = replace_parameter(module, name, compute)
    module.deterministic = False
    size = weight.shape[dim]
    u = rngs.params.normal((size,), weight.dtype)
    v = rngs.params.normal((weight.size // size,), weight.dtype)
    return weight, dim, normalized(u, eps), normalized(v, eps)


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None, *, rngs):
    """Divide a weight by its largest singular value; ``weight_orig`` with buffers ``weight_u``, ``weight_v``."""
    weight, _, u, v = spectral_parts(module, name, n_power_iterations, eps, dim, rngs, False)
    setattr(module, f"{name}_orig", nnx.Param(weight))
    setattr(module, f"{name}_u", nnx.BatchStat(u))
    setattr(module, f"{name}_v", nnx.BatchStat(v))
    return module


def remove_spectral_norm(module, name="weight"):
    """Undo ``spectral_norm``, keeping the weight's value."""
    module.deterministic = True
    restore_parameter(module, name)
    for suffix in ("orig", "u", "v"):
        delattr(module, f"{name}_{suffix}")
    return module


def parametrized_spectral_norm(
    module, name="weight", n_power_iterations=1, eps=1e-12, dim=None, *, rngs
):
    """``spectral_norm`` with the names of torch.nn.utils.parametrizations; u and v start near their limit."""
    weight, dim, u, v = spectral_parts(module, name, n_power_iterations, eps, dim, rngs, True)
    matrix = jnp.moveaxis(weight, dim, 0).reshape(len(u), -1)
    for _ in range(15):
        u = normalized(matrix @ v, eps)
        v = normalized(u @ matrix, eps)
    vectors = nnx.Dict({"_u": nnx.BatchStat(u), "_v": nnx.BatchStat(v)})
    arrays = nnx.Dict({"original": nnx.Param(weight)})
    arrays["0"] = vectors
    add_parametrization(module, name, arrays)
    return module


# --- any other ---------------------------------------------------------------------------------------------


@functools.cache
def chain_of(name):
    """The function that passes the original through its parametrizations in the order of registration."""

    def compute(layer):
        arrays = layer.parametrizations[name]
        value, count = arrays["original"][...], len(arrays) - 1
        for i in range(count):
            value = arrays[str(i)](value)
        return value

    return compute


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """Compute a parameter by ``parametrization(original)``; several calls chain."""
    known = tensor_name in getattr(module, "parametrizations", ())
    if not known:
        value = replace_parameter(module, tensor_name, chain_of(tensor_name))
        add_parametrization(module, tensor_name, nnx.Dict({"original": nnx.Param(value)}))
    arrays = module.parametrizations[tensor_name]
    if hasattr(parametrization, "right_inverse"):
        original = arrays["original"]
        original[...] = parametrization.right_inverse(original[...])
    arrays[str(len(arrays) - 1)] = parametrization
    return module
