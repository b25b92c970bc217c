"""Functions with a gradient written by hand: ``torch.autograd.Function`` on ``jax.custom_vjp``."""

from __future__ import annotations

import inspect
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def _is_array(value: Any) -> bool:
    return isinstance(value, (jax.Array, np.ndarray))


def _is_real(like: Any) -> bool:
    """Whether an argument is an array that can have a gradient."""
    return like is not None and bool(jnp.issubdtype(like.dtype, jnp.inexact))


def _received(grad: Any, zero: bool) -> Any:
    """The gradient of an output as ``backward`` gets it: zeros where none can flow."""
    if grad is not None and (zero or grad.dtype == jax.dtypes.float0):
        return jnp.zeros(grad.shape, None if grad.dtype == jax.dtypes.float0 else grad.dtype)
    return grad


def _returned(grad: Any, like: Any) -> Any:
    """A gradient in the shape and dtype of its argument, summed over axes along which that was broadcast."""
    if grad is None or not _is_real(like):
        return None
    added = grad.ndim - len(like.shape)
    ones = [added + i for i, n in enumerate(like.shape) if n == 1]
    return grad.sum((*range(added), *ones)).reshape(like.shape).astype(like.dtype)


@jax.tree_util.register_pytree_node_class
class FunctionContext:
    """What ``forward`` keeps for ``backward``: arrays are traced, anything else stays as it is."""

    def __init__(self, **kept: Any) -> None:
        self.saved_tensors: tuple[Any, ...] = ()
        vars(self).update(kept)

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The older name."""
        return self.saved_tensors

    def mark_non_differentiable(self, *outputs: Any) -> None:
        self.non_differentiable = outputs

    def set_materialize_grads(self, value: bool) -> None:
        """The gradient of an output that nobody uses is zero in JAX, never None."""

    def tree_flatten(self) -> tuple[list[Any], Any]:
        leaves, tree = jax.tree.flatten(vars(self))
        fixed = tuple(None if _is_array(leaf) else (leaf,) for leaf in leaves)
        return [leaf for leaf in leaves if _is_array(leaf)], (tree, fixed)

    @classmethod
    def tree_unflatten(cls, aux: Any, arrays: Any) -> Any:
        tree, fixed = aux
        arrays = iter(arrays)
        leaves = [next(arrays) if leaf is None else leaf[0] for leaf in fixed]
        return cls(**jax.tree.unflatten(tree, leaves))


class Function:
    """A function whose ``backward`` gives the gradients of ``forward``; call it by ``apply``.

    Subclasses define ``forward(ctx, *args)``, or ``forward(*args)`` and ``setup_context(ctx, inputs, output)``,
    and ``backward(ctx, *grads)`` with a gradient, or None, for each argument.
    """

    @classmethod
    def apply(cls, *args: Any, **named: Any) -> Any:
        """``forward`` of the arguments; those that are arrays, also inside tuples and lists, are traced."""
        if named or hasattr(cls, "setup_context"):
            ctx = () if hasattr(cls, "setup_context") else (None,)
            bound = inspect.signature(cls.forward).bind(*ctx, *args, **named)
            bound.apply_defaults()
            args = bound.args[len(ctx) :]
        leaves, tree = jax.tree.flatten(args)
        traced = [i for i, leaf in enumerate(leaves) if _is_array(leaf)]
        whole = [i for i, arg in enumerate(args) if _is_array(arg)]
        owner = [i for i, arg in enumerate(args) for _ in jax.tree.leaves(arg)]
        like = {i: jax.ShapeDtypeStruct(args[i].shape, args[i].dtype) for i in whole}
        # JAX keeps what is defined here: it must hold no array of this call
        fixed = [None if _is_array(leaf) else leaf for leaf in leaves]
        number = len(args)

        def forward(*arrays):
            filled = dict(zip(traced, arrays, strict=True))
            inputs = jax.tree.unflatten(tree, [filled.get(i, x) for i, x in enumerate(fixed)])
            ctx = FunctionContext(
                needs_input_grad=tuple(_is_real(like.get(i)) for i in range(number))
            )
            if hasattr(cls, "setup_context"):
                output = cls.forward(*inputs)
                cls.setup_context(ctx, inputs, output)
            else:
                output = cls.forward(ctx, *inputs)
            outputs = output if isinstance(output, tuple) else (output,)
            marked = vars(ctx).pop("non_differentiable", ())
            ctx.constant = tuple(any(one is other for other in marked) for one in outputs)
            return output, ctx

        def backward(ctx, cotangents):
            cotangents = cotangents if isinstance(cotangents, tuple) else (cotangents,)
            grads = [_received(g, zero) for g, zero in zip(cotangents, ctx.constant, strict=True)]
            found = cls.backward(ctx, *grads)
            found = found if isinstance(found, tuple) else (found,)
            found = (*found, *[None] * (number - len(found)))  # of arguments given by name
            return tuple(_returned(found[owner[i]], like.get(owner[i])) for i in traced)

        function = jax.custom_vjp(lambda *arrays: forward(*arrays)[0])
        function.defvjp(forward, backward)
        return function(*(leaves[i] for i in traced))
