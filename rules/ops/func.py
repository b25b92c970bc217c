"""Function transforms: ``torch.func``, ``torch.vmap``, ``torch.autograd.functional``, ``torch.cond``.

JAX's own, where they arrange their results alike. ``chunk_size`` only saves memory and is left out.
"""

from __future__ import annotations

import jax
from jax import lax

from rules.compat.transforms import grad_and_value, while_loop
from rules.registry import op, unsupported


@op(
    "torch.func.vmap",
    "torch.vmap",
    example={
        "torch.vmap(f, in_dims=(0, None))": "jax.vmap(f, in_axes=(0, None))",
    },
)
def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """Maps over an axis of the arguments."""
    if randomness == "different":
        unsupported("vmap(randomness='different'): pass one key for each element")
    return jax.vmap(func, in_axes=in_dims, out_axes=out_dims)


@op("torch.func.grad", example={"torch.func.grad(f, argnums=1)": "jax.grad(f, argnums=1)"})
def grad(func, argnums=0, has_aux=False):
    """Gradient of a function with a scalar result."""
    return jax.grad(func, argnums=argnums, has_aux=has_aux)


@op("torch.func.grad_and_value", example={"torch.func.grad_and_value(f)": "grad_and_value(f)"})
def gradient_and_value(func, argnums=0, has_aux=False):
    """Gradient and value, in this order."""
    return grad_and_value(func, argnums=argnums, has_aux=has_aux)


@op("torch.func.jacrev", example={"torch.func.jacrev(f)": "jax.jacrev(f)"})
def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None):
    """Jacobian by reverse mode."""
    return jax.jacrev(func, argnums=argnums, has_aux=has_aux)


@op("torch.func.jacfwd", example={"torch.func.jacfwd(f)": "jax.jacfwd(f)"})
def jacfwd(func, argnums=0, has_aux=False, *, randomness="error"):
    """Jacobian by forward mode."""
    return jax.jacfwd(func, argnums=argnums, has_aux=has_aux)


@op("torch.func.hessian", example={"torch.func.hessian(f)": "jax.hessian(f)"})
def hessian(func, argnums=0):
    """Matrix of second derivatives."""
    return jax.hessian(func, argnums=argnums)


@op(
    "torch.func.jvp",
    example={"torch.func.jvp(f, (x,), (y,))": "jax.jvp(f, (x,), (y,))"},
)
def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """Value and directional derivative."""
    return jax.jvp(func, primals, tangents, has_aux=has_aux)


@op("torch.func.vjp", example={"torch.func.vjp(f, x, y)": "jax.vjp(f, x, y)"})
def pullback(func, *primals, has_aux=False):
    """Value and the function that pulls cotangents back."""
    return jax.vjp(func, *primals, has_aux=has_aux)


@op("torch.func.linearize", example={"torch.func.linearize(f, x)": "jax.linearize(f, x)"})
def linearize(func, *primals):
    """Value and the linear map of tangents at a point."""
    return jax.linearize(func, *primals)


@op("torch.func.functional_call", "torch.nn.utils.stateless.functional_call")
def functional_call(
    module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False
):
    """Refused: a module's state is a pytree in Flax, not a dict of torch names."""
    unsupported(
        "functional_call: graphdef, state = nnx.split(module), then nnx.merge(graphdef, state)(*args)"
    )


@op("torch.func.stack_module_state")
def stack_module_state(models):
    """Refused: stack the states of Flax modules as pytrees."""
    unsupported(
        "stack_module_state: jax.tree.map(lambda *p: jnp.stack(p), *[nnx.state(m) for m in models])"
    )


@op("torch.func.functionalize")
def functionalize(func, *, remove="mutations"):
    """The function itself: JAX code is functional already."""
    return func


@op(
    "torch.autograd.functional.jacobian",
    example={"torch.autograd.functional.jacobian(f, (x, y))": "jax.jacrev(f, (0, 1))(x, y)"},
)
def jacobian(
    func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"
):
    """Jacobian at a point, for each of several inputs."""
    if isinstance(inputs, (tuple, list)):
        return jax.jacrev(func, tuple(range(len(inputs))))(*inputs)
    return jax.jacrev(func)(inputs)


@op(
    "torch.autograd.functional.hessian",
    example={"torch.autograd.functional.hessian(f, (x, y))": "jax.hessian(f, (0, 1))(x, y)"},
)
def hessian_at(
    func,
    inputs,
    create_graph=False,
    strict=False,
    vectorize=False,
    outer_jacobian_strategy="reverse-mode",
):
    """Second derivatives at a point, for each pair of several inputs."""
    if isinstance(inputs, (tuple, list)):
        return jax.hessian(func, tuple(range(len(inputs))))(*inputs)
    return jax.hessian(func)(inputs)


@op(
    "torch.cond",
    example={"torch.cond(x.sum() > 0, f, g, (x,))": "lax.cond(x.sum() > 0, f, g, x)"},
)
def cond(pred, true_fn, false_fn, operands=()):
    """One of two functions, chosen by a value."""
    return lax.cond(pred, true_fn, false_fn, *operands)


@op(
    "torch.while_loop",
    "torch._higher_order_ops.while_loop",
    example={"torch.while_loop(f, g, (x, y))": "while_loop(f, g, (x, y))"},
)
def loop(cond_fn, body_fn, carried_inputs):
    """Repeats while a condition on the carried values holds."""
    return while_loop(cond_fn, body_fn, carried_inputs)
