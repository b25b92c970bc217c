"""A TPU's matrix unit on the CPU: at default precision its products round float32 operands to bfloat16.

The rounding is put into what JAX writes for XLA, after differentiation, so that gradients are rounded where a
TPU rounds them. Sums stay in float32, as on the unit. Products that ask for more (``precision="highest"``) get it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from jax._src.interpreters import mlir as lowering
from jax._src.lib.mlir import ir
from jax._src.lib.mlir.dialects import hlo
from jax.extend.core import primitives

from numerics.compare import ILL_CONDITIONED
from numerics.inputs import Example, materialise
from numerics.pair import Pair
from numerics.runners import FlaxRunner, TorchMode, run_torch

_PRODUCTS = (primitives.dot_general_p, primitives.conv_general_dilated_p)
_EXPONENT_BITS, _MANTISSA_BITS = 8, 7  # bfloat16


@contextmanager
def matrix_unit() -> Iterator[None]:
    """While active, what is compiled for the CPU multiplies as a TPU does at default precision.

    Only functions that are compiled inside are concerned: ``jax.jit`` keeps what it has compiled.
    """
    tables = lowering._platform_specific_lowerings["cpu"]
    saved = {product: tables.get(product) for product in _PRODUCTS}
    for product in _PRODUCTS:
        rule = saved[product] or lowering._lowerings[product]
        tables[product] = _replaced(rule)
    try:
        with jax.default_matmul_precision("default"):
            yield
    finally:
        for product, rule in saved.items():
            if rule is None:
                del tables[product]
            else:
                tables[product] = rule


def _replaced(entry: Any) -> Any:
    """The same table entry with operands rounded first."""
    if callable(entry):
        return _rounding(entry)
    return replace(entry, rule=_rounding(entry.rule))


def _rounding(rule: Callable[..., Any]) -> Callable[..., Any]:
    def lower(ctx: Any, *operands: Any, **params: Any) -> Any:
        if _is_default(params.get("precision")) and all(
            aval.dtype == np.float32 for aval in ctx.avals_in
        ):
            operands = tuple(_rounded(operand) for operand in operands)
        return rule(ctx, *operands, **params)

    return lower


def _is_default(precision: Any) -> bool:
    parts = precision if isinstance(precision, tuple) else (precision,)
    return all(part is None or part == jax.lax.Precision.DEFAULT for part in parts)


def _rounded(operand: Any) -> Any:
    bits = ir.IntegerType.get_signless(32)
    return hlo.reduce_precision(
        operand,
        exponent_bits=ir.IntegerAttr.get(bits, _EXPONENT_BITS),
        mantissa_bits=ir.IntegerAttr.get(bits, _MANTISSA_BITS),
    )


def tpu_errors(pair: Pair, example: Example) -> dict[str, float]:
    """The error a TPU will show at default precision, by check, relative to each tensor's largest value.

    Where JAX runs on another platform than the CPU, that platform's own precision is measured, not an emulated one.
    ``"eval outputs"`` and ``"eval gradients"``: the largest over their tensors, against torch in float64.
    """
    args, kwargs = materialise(pair.spec, example)
    module = pair.weighted(example)
    runner = FlaxRunner(pair.flax.module, pair.load, pair.dump)
    runner.matmul_precision = "default"
    grad = pair.wanted.grad
    plain = run_torch(module, args, kwargs, TorchMode(grad=grad))
    exact = run_torch(module, args, kwargs, TorchMode(grad=grad, float64=True))
    with matrix_unit() if jax.default_backend() == "cpu" else nullcontext():
        port = runner.run(
            args, kwargs, train=False, grad=grad, cotangents=plain.cotangents, draws=plain.draws
        )
    found = {"eval outputs": _largest(exact.outputs, plain.outputs, port.outputs)}
    if exact.gradients:
        found["eval gradients"] = _largest(exact.gradients, plain.gradients, port.gradients)
    return found


def _largest(
    exact: Mapping[str, np.ndarray], plain: Mapping[str, np.ndarray], port: Mapping[str, np.ndarray]
) -> float:
    """The largest of the tensors' errors; one that is noise in torch's float32 already says nothing."""
    errors = [0.0]
    for name, value in exact.items():
        scale = float(np.abs(value).max()) if value.dtype.kind == "f" and value.size else 0.0
        if name not in port or not np.isfinite(scale) or scale == 0:
            continue
        own, found = (float(np.nanmax(np.abs(x[name] - value))) / scale for x in (plain, port))
        if own <= ILL_CONDITIONED:
            errors.append(found)
    return max(errors)
