"""torch with JAX's derivative of a quotient, to tell a wrong gradient from one that is lost in any port.

JAX differentiates ``x / y`` with respect to ``y`` as ``-x * y ** -2``, torch as ``-(x / y) / y``. In float32 the first
is zero from |y| of about 1e19 on, as in a softmax written out with ``exp`` for scores beyond 44. No port that divides
has the rest of that gradient, so such a loss is told and is no difference.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_QUOTIENTS = frozenset(
    [
        torch.div,
        torch.true_divide,
        torch.Tensor.div,
        torch.Tensor.true_divide,
        torch.Tensor.__truediv__,
    ]
)
_REVERSED = frozenset([torch.Tensor.__rtruediv__, torch.Tensor.__rdiv__])
_RECIPROCALS = frozenset([torch.reciprocal, torch.Tensor.reciprocal])


class _Quotient(torch.autograd.Function):
    """``x / y`` of two tensors of one shape."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, y)
        return x / y

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x, y = ctx.saved_tensors
        square = 1 / (y * y)
        smallest = torch.finfo(square.dtype).tiny  # XLA has no numbers below
        square = square.masked_fill(square < smallest, 0.0)
        return gradient / y, -gradient * x * square


class DividesAsJax(TorchFunctionMode):
    """While active, quotients are differentiated as JAX does; ``met`` tells whether that loses anything."""

    def __init__(self) -> None:
        super().__init__()
        self.met = False

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func in _RECIPROCALS:
            pair = (1.0, args[0])
        elif len(args) == 2 and not kwargs and func in _QUOTIENTS:
            pair = args
        elif len(args) == 2 and func in _REVERSED:
            pair = (args[1], args[0])
        else:
            return func(*args, **(kwargs or {}))
        if not self._loses(pair[1]):
            return func(*args, **(kwargs or {}))
        self.met = True
        y = pair[1]
        x = pair[0] if isinstance(pair[0], torch.Tensor) else y.new_tensor(pair[0])
        dtype = torch.result_type(x, y)
        x, y = torch.broadcast_tensors(x.to(dtype), y.to(dtype))
        return _Quotient.apply(x, y)

    @staticmethod
    def _loses(y: Any) -> bool:
        if not isinstance(y, torch.Tensor) or not y.dtype.is_floating_point or not y.requires_grad:
            return False
        far = float(torch.finfo(y.dtype).tiny) ** -0.5
        return bool((y.detach().abs() > far).any())
