"""Whether ``jit`` would trace a converted function or layer again for arrays of equal shapes.

``jit`` keeps a program by the shapes, dtypes and weak types of its arguments and, for a layer, by its graph. So a
second call traces again where a layer's own state has another such type after a call, and the call of what follows
does where an output is of a weak type, which torch's never are: it also gives way to a narrower dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx


def traced_again(compute: Callable[[list[Any]], Any], arrays: Sequence[Any]) -> str | None:
    """Why a function of a list of arrays, or what takes its result, is traced twice; None if it is not.

    Where no array is of floats, a result may be of a weak type: ``1 / n`` is, of integers.
    """
    count = 0

    @jax.jit
    def counted(given: list[Any]) -> Any:
        nonlocal count
        count += 1
        return [o for o in jax.tree.leaves(compute(given)) if isinstance(o, jax.Array)]

    abstract = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arrays]
    results = counted.eval_shape(abstract)
    counted.eval_shape(list(abstract))
    if count > 1:
        return f"traced {count} times for equal shapes"
    floats = any(jnp.issubdtype(a.dtype, jnp.inexact) for a in arrays)
    weak = [o for o in results if o.weak_type and floats]
    return f"a result of a weak type: {weak[0]}" if weak else None


def layer_traced_again(layer: nnx.Module, arrays: Sequence[Any]) -> str | None:
    """Why a second call of a layer under ``nnx.jit`` is traced again; None if it is not.

    The layer itself stays as it is.
    """
    graph, state = nnx.split(layer)

    def call(state: Any, given: Sequence[Any]) -> tuple[Any, Any]:
        moved = nnx.merge(graph, state)
        result = moved(*given)
        after, left = nnx.split(moved)
        changed.append(after != graph)
        return result, left

    changed: list[bool] = []
    abstract = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arrays]
    result, left = jax.eval_shape(call, state, abstract)
    if changed[-1]:
        return "a call changes what the layer is made of"
    before = dict(nnx.to_flat_state(jax.eval_shape(lambda: state)))
    for path, leaf in nnx.to_flat_state(left):
        old, new = (jax.tree.leaves(v) for v in (before[path], leaf))
        if [(a.shape, a.dtype, a.weak_type) for a in old] != [
            (a.shape, a.dtype, a.weak_type) for a in new
        ]:
            return f"a call makes {'.'.join(map(str, path))} {new} from {old}"
    weak = [o for o in jax.tree.leaves(result) if o.weak_type]
    return f"a result of a weak type: {weak[0]}" if weak else None
