"""Where a port's NaN or infinity comes from: its program run one operation at a time, gradients included."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import source_info_util
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

_CALLS = frozenset(
    ["jit", "pjit", "closed_call", "checkpoint", "remat2", "custom_jvp_call", "custom_vjp_call"]
)
"""Primitives that only call a program of their own, which is looked into."""

Test = Callable[[np.ndarray], np.ndarray]


def origin(function: Callable[..., Any], *operands: Any, test: Test = np.isnan) -> str | None:
    """The operation that makes the first NaN (or what ``test`` tells) that reaches a result of ``function``.

    A NaN that a later ``where`` leaves out is passed over. None where no result has one.

    Returns:
      such as ``"sqrt at model.py:12, of values from -1 to 3"``, for a gradient the line it belongs to.
    """
    closed = jax.make_jaxpr(function)(*operands)
    leaves = [jnp.asarray(leaf) for leaf in jax.tree.leaves(operands)]
    _, found = _run(closed, leaves, [None] * len(leaves), test)
    return next((where for where in found if where is not None), None)


def _run(
    program: ClosedJaxpr | Jaxpr, operands: Sequence[Any], origins: Sequence[str | None], test: Test
) -> tuple[list[Any], list[str | None]]:
    """The results of a program, and for each that ``test`` holds of the operation it goes back to."""
    jaxpr: Any = getattr(program, "jaxpr", program)
    consts = list(getattr(program, "consts", ()))
    values: dict[Any, tuple[Any, str | None]] = {
        variable: (const, None) for variable, const in zip(jaxpr.constvars, consts, strict=True)
    }
    for variable, value, where in zip(jaxpr.invars, operands, origins, strict=True):
        values[variable] = (value, where)

    def read(atom: Any) -> tuple[Any, str | None]:
        return (atom.val, None) if isinstance(atom, Literal) else values[atom]

    for equation in jaxpr.eqns:
        given = [read(atom) for atom in equation.invars]
        results, found = _step(equation, [v for v, _ in given], [w for _, w in given], test)
        values.update(zip(equation.outvars, zip(results, found, strict=True), strict=True))
    pairs = [read(atom) for atom in jaxpr.outvars]
    return [value for value, _ in pairs], [where for _, where in pairs]


def _step(
    equation: JaxprEqn, operands: list[Any], origins: list[str | None], test: Test
) -> tuple[list[Any], list[str | None]]:
    if equation.primitive.name in _CALLS:
        inner = next(v for v in equation.params.values() if isinstance(v, ClosedJaxpr | Jaxpr))
        return _run(inner, operands, origins, test)
    bound: Any = equation.primitive.get_bind_params(equation.params)
    functions, params = bound if isinstance(bound, tuple) else ((), bound)  # by the version of JAX
    found = equation.primitive.bind(*functions, *operands, **params)
    results = list(found) if equation.primitive.multiple_results else [found]
    earlier = next((where for where in origins if where is not None), None)
    return results, [
        (earlier or _described(equation, operands)) if _holds(test, result) else None
        for result in results
    ]


def _holds(test: Test, value: Any) -> bool:
    return _is_float(value) and bool(test(np.asarray(value)).any())


def _is_float(value: Any) -> bool:
    return bool(jnp.issubdtype(jnp.result_type(value), jnp.floating))


def _described(equation: JaxprEqn, operands: Sequence[Any]) -> str:
    place, _, function = source_info_util.summarize(equation.source_info).partition(" ")
    part = " in the gradient" if "transpose" in str(equation.source_info.name_stack) else ""
    text = f"{equation.primitive.name}{part} at {Path(place).name} {function}".rstrip()
    ranges = [
        f"{np.min(array):.4g} to {np.max(array):.4g}"
        for array in (np.asarray(x, np.float64) for x in operands if _is_float(x))
        if array.size
    ]
    return f"{text}, of values from {' and '.join(ranges)}" if ranges else text
