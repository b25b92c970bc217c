"""torch.nn.utils: weight norm, spectral norm, parametrizations. Each changes the layer it is given and returns it."""

from __future__ import annotations

from rules.compat.parametrizations import (
    parametrized_spectral_norm,
    parametrized_weight_norm,
    register_parametrization,
    remove_spectral_norm,
    remove_weight_norm,
    spectral_norm,
    weight_norm,
)
from rules.registry import op


@op("torch.nn.utils.weight_norm")
def weight_norm_layer(module, name="weight", dim=0) -> Self:
    """w = g v / ‖v‖, parameters ``weight_g`` and ``weight_v``."""
    return weight_norm(module, name=name, dim=dim)


@op("torch.nn.utils.remove_weight_norm")
def remove_weight_norm_layer(module, name="weight") -> Self:
    """The weight is a parameter again."""
    return remove_weight_norm(module, name=name)


@op("torch.nn.utils.parametrizations.weight_norm")
def parametrized_weight_norm_layer(module, name="weight", dim=0) -> Self:
    """w = g v / ‖v‖, parameters ``parametrizations.weight.original0`` and ``original1``."""
    return parametrized_weight_norm(module, name=name, dim=dim)


@op("torch.nn.utils.spectral_norm")
def spectral_norm_layer(
    module, name="weight", n_power_iterations=1, eps=1e-12, dim=None, *, rngs
) -> Self:
    """The weight over its largest singular value, followed by power iteration in training."""
    return spectral_norm(
        module, name=name, n_power_iterations=n_power_iterations, eps=eps, dim=dim, rngs=rngs
    )


@op("torch.nn.utils.remove_spectral_norm")
def remove_spectral_norm_layer(module, name="weight") -> Self:
    """The weight is a parameter again."""
    return remove_spectral_norm(module, name=name)


@op("torch.nn.utils.parametrizations.spectral_norm")
def parametrized_spectral_norm_layer(
    module, name="weight", n_power_iterations=1, eps=1e-12, dim=None, *, rngs
) -> Self:
    """The same under ``parametrizations.weight``."""
    return parametrized_spectral_norm(
        module, name=name, n_power_iterations=n_power_iterations, eps=eps, dim=dim, rngs=rngs
    )


@op("torch.nn.utils.parametrize.register_parametrization")
def register_parametrization_layer(module, tensor_name, parametrization, *, unsafe=False) -> Self:
    """The weight is what a module of one's own makes of ``parametrizations.weight.original``."""
    return register_parametrization(module, tensor_name, parametrization)
