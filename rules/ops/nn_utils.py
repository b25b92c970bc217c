"""torch.nn.utils: what acts on ``.grad`` or on lists of parameters has its place in optax or in ``nnx.state``."""

from __future__ import annotations

from rules.registry import op, unsupported


@op("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_norm")
def clip_grad_norm_(
    parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None
) -> Tensor:
    """Clips gradients that a backward pass left on the parameters."""
    unsupported("gradients are values in JAX: put optax.clip_by_global_norm before the optimizer")


@op("torch.nn.utils.clip_grad_value_")
def clip_grad_value_(parameters, clip_value, foreach=None) -> None:
    """Clips gradients that a backward pass left on the parameters."""
    unsupported("gradients are values in JAX: put optax.clip before the optimizer")


@op("torch.nn.utils.clip_grads_with_norm_")
def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None) -> None:
    """Clips gradients that a backward pass left on the parameters."""
    unsupported("gradients are values in JAX: put optax.clip_by_global_norm before the optimizer")


@op("torch.nn.utils.get_total_norm")
def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None) -> Tensor:
    """The norm of many tensors taken as one."""
    unsupported("use optax.tree.norm of the gradients")


@op("torch.nn.utils.parameters_to_vector")
def parameters_to_vector(parameters) -> Tensor:
    """All parameters in one vector."""
    unsupported("use jax.flatten_util.ravel_pytree(nnx.state(model, nnx.Param))")


@op("torch.nn.utils.vector_to_parameters")
def vector_to_parameters(vec, parameters) -> None:
    """Parameters set from one vector."""
    unsupported("use the second result of jax.flatten_util.ravel_pytree and nnx.update")


@op("torch.nn.utils.skip_init")
def skip_init(module_cls, *args, **kwargs) -> None:
    """A module without initial values."""
    unsupported("construct the module as usual, or with nnx.eval_shape")


@op(
    "torch.nn.utils.fuse_conv_bn_eval",
    "torch.nn.utils.fuse_linear_bn_eval",
    "torch.nn.utils.fuse_conv_bn_weights",
    "torch.nn.utils.fuse_linear_bn_weights",
)
def fuse(*args, **kwargs) -> None:
    """Batch normalisation folded into the layer before it."""
    unsupported("XLA fuses batch normalisation into its neighbours by itself")
