"""Running torch more exactly and less exactly: float64 throughout, and with random rounding."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

_EXACT = frozenset(
    [
        "abs",
        "adaptive_max_pool2d",
        "adaptive_max_pool3d",
        "alias",
        "amax",
        "amin",
        "aminmax",
        "arange",
        "argmax",
        "argmin",
        "as_strided",
        "bitwise_and",
        "bitwise_not",
        "bitwise_or",
        "cat",
        "ceil",
        "clamp",
        "clamp_max",
        "clamp_min",
        "clone",
        "constant_pad_nd",
        "copy",
        "copy_",
        "cummax",
        "cummin",
        "detach",
        "diag_embed",
        "diagonal_copy",
        "embedding",
        "empty",
        "empty_like",
        "empty_strided",
        "eq",
        "expand_copy",
        "eye",
        "fill",
        "fill_",
        "fill_diagonal_",
        "flip",
        "floor",
        "fmax",
        "fmin",
        "full",
        "full_like",
        "gather",
        "ge",
        "gt",
        "hardtanh",
        "index",
        "index_copy",
        "index_fill",
        "index_put",
        "index_put_",
        "index_select",
        "isinf",
        "isnan",
        "isfinite",
        "le",
        "leaky_relu_backward",
        "lift_fresh",
        "linspace",
        "logical_and",
        "logical_not",
        "logical_or",
        "lt",
        "masked_fill",
        "masked_fill_",
        "masked_scatter",
        "masked_select",
        "max",
        "max_pool2d_with_indices",
        "max_pool3d_with_indices",
        "max_unpool2d",
        "max_unpool3d",
        "maximum",
        "min",
        "minimum",
        "nan_to_num",
        "ne",
        "neg",
        "new_empty",
        "new_empty_strided",
        "new_full",
        "new_ones",
        "new_zeros",
        "nonzero",
        "one_hot",
        "ones",
        "ones_like",
        "pixel_shuffle",
        "pixel_unshuffle",
        "reflection_pad1d",
        "reflection_pad2d",
        "reflection_pad3d",
        "relu",
        "relu_",
        "repeat",
        "repeat_interleave",
        "replication_pad1d",
        "replication_pad2d",
        "replication_pad3d",
        "resize_",
        "roll",
        "round",
        "scalar_tensor",
        "scatter",
        "select_scatter",
        "select_backward",
        "slice_backward",
        "slice_scatter",
        "sgn",
        "sign",
        "sort",
        "split_with_sizes_copy",
        "stack",
        "t_copy",
        "threshold",
        "threshold_backward",
        "tril",
        "triu",
        "trunc",
        "unbind_copy",
        "unfold_copy",
        "upsample_nearest1d",
        "upsample_nearest2d",
        "upsample_nearest3d",
        "where",
        "zero_",
        "zeros",
        "zeros_like",
        "_to_copy",
        "_unsafe_view",
        "_local_scalar_dense",
        "zero",
    ]
)
"""ATen operations that commit no rounding: they move, choose or create numbers."""


_REDUCING = frozenset({"scatter_reduce", "index_reduce", "segment_reduce"})
"""Operations that are told by a word how they reduce."""
_CHOOSING = frozenset({"amax", "amin", "max", "min"})
"""Those of the words that choose a number and commit no rounding."""


_MANTISSA = frozenset({torch.float32, torch.bfloat16, torch.float16})
_NORMALISATIONS = {
    "native_batch_norm": 1,
    "_native_batch_norm_legit": 1,
    "native_group_norm": 1,
    "native_layer_norm": 2,
}
"""Operations that give (output, mean, 1/deviation), and the place of their weight among the arguments."""
_UPDATES_STATISTICS = frozenset({"native_batch_norm", "_native_batch_norm_legit"})
"""These change their running mean and variance, arguments 3 and 4, without saying so in their schema."""
_WHOLE = 2.0**20
"""Whole numbers up to here are taken for counts; far above, every float32 is a whole number."""


_SUMS = frozenset(
    [
        "addbmm",
        "addmm",
        "addmv",
        "baddbmm",
        "bmm",
        "convolution",
        "convolution_backward",
        "cumsum",
        "dot",
        "embedding_dense_backward",
        "index_add",
        "linear",
        "mean",
        "mm",
        "mv",
        "scatter_add",
        "sum",
    ]
)
"""Sums of terms or of products: linear in each tensor."""
_REDUCTIONS = frozenset({"mean", "sum"})
"""Sums that may be computed one term after the other; products of matrices are computed in blocks."""
_FEW = 64
"""As many different values are taken for constants along what is reduced."""
_FUSED = ("native_", "_scaled_dot_product", "rnn", "lstm", "gru", "_softmax", "linalg_", "cdist")
"""Many operations in one, by a part of their names."""


_CASTS = {"_to_copy": 0, "copy": 1, "copy_": 1}
"""Operations that may turn floats into integers, and the place of the floats."""
_DIFFERENCES = frozenset({"_softmax_backward_data", "_log_softmax_backward_data"})
"""What is left of numbers that cancel: theirs is the rounding."""
_AMONG_EQUALS = {"topk": 2, "kthvalue": 2, "median": 1, "nanmedian": 1, "mode": 1, "sort": 1}
"""Operations that may return the index of any of several equal values, and the place of ``dim`` in the arguments."""


class RoundingNoise(TorchDispatchMode):
    """Each inexact operation's result moves at random by about one unit in the last place.

    What comes out differs from the plain run by as much as another correct implementation in the same
    precision may (Monte Carlo arithmetic). A sum moves by an ulp of the root of the sum of its squared terms,
    since any order of adding is correct, and one of equal terms by what adding them in their order loses. Whole numbers
    stay, since counts and masks are exact, and so do infinities. A float that is no number of the integer type it is
    turned into becomes any of them. Where torch's documentation leaves open which of several equal values is meant, or which comes first,
    another is.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._seed = seed
        self._salt = (seed + 1) * 0x9E3779B9

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        if name in _CASTS:
            return self._cast(func, name, args, kwargs)
        if name in _AMONG_EQUALS and not kwargs.get("stable"):
            return self._among_equals(func, _AMONG_EQUALS[name], args, kwargs)
        if (
            name in _EXACT
            or _chooses(name, args, kwargs)
            or func.is_view
            or torch.Tag.nondeterministic_seeded in func.tags
        ):
            return func(*args, **kwargs)
        if name in _SUMS:
            terms = tree_map(_root, _on_squares(func, name, args, kwargs))
            result = func(*args, **kwargs)
            if name in _REDUCTIONS and args[0].numel() == result.numel():
                return result  # of one term each, which is not rounded
            if name in _REDUCTIONS and _is_constant(args[0]):
                terms = terms + _in_order(args[0].numel(), result)
            return tree_map(self._moved, result, terms)
        result = func(*args, **kwargs)
        if name in _NORMALISATIONS:
            self._move_mean(name, args, result)
        if name == "_log_softmax":
            return self._moved(result, _of_logarithms(result, args[0], args[1]))
        if any(word in name for word in _FUSED):
            unit = tree_map(_with_spread, result)
            if name in _DIFFERENCES:
                lost = _subtracted(name, *args[:3])
                return self._moved(
                    result, torch.where(result == 0, lost, unit + lost), counts=False
                )
            return tree_map(self._moved, result, unit)
        return tree_map(self._moved, result)

    def __enter__(self) -> Any:
        """The attention of torch is made of its parts, as another implementation's is: one operation hides what they lose."""
        self._parts = sdpa_kernel(SDPBackend.MATH)
        self._parts.__enter__()
        return super().__enter__()

    def __exit__(self, *exc: Any) -> None:
        super().__exit__(*exc)
        self._parts.__exit__(*exc)

    def _cast(self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A conversion of dtype: floats that the integer type does not have become any integers."""
        source = args[_CASTS[name]]
        result = func(*args, **kwargs)
        if (
            not isinstance(source, torch.Tensor)
            or not source.is_floating_point()
            or result.is_floating_point()
            or result.is_complex()
            or result.dtype == torch.bool
        ):
            return result
        limits = torch.iinfo(result.dtype)
        wide = source.detach().double().expand(result.shape).trunc()
        beyond = ~((wide >= limits.min) & (wide <= limits.max))
        if beyond.any():
            result[beyond] = (limits.min, limits.max, 0)[self._seed % 3]
        return result

    def _among_equals(self, func: Any, place: int, args: tuple[Any, ...], kwargs: Any) -> Any:
        """The operation with the values along ``dim`` in another order, its indices in the old one."""
        dim = args[place] if len(args) > place else kwargs.get("dim", -1)
        if len(func._schema.returns) != 2 or not args[0].ndim:
            return func(*args, **kwargs)
        size = args[0].shape[dim]
        order = torch.arange(size).flip(0)
        if self._seed % 2:
            order = torch.randperm(size, generator=torch.Generator().manual_seed(self._seed))
        values, indices = func(args[0].index_select(dim, order), *args[1:], **kwargs)
        return values, order[indices]

    def _move_mean(
        self, name: str, args: tuple[Any, ...], result: tuple[torch.Tensor, ...]
    ) -> None:
        """Another implementation's mean differs in the last place, which the division by a small deviation
        turns into much; equal values, whose spread is zero, would hide it."""
        out, mean, rstd = result[:3]
        if not mean.numel():
            return
        if name in _UPDATES_STATISTICS:
            tree_map(self._moved, args[3:5], tree_map(_with_spread, args[3:5]))
        before = mean.clone()
        self._moved(mean, 8 * mean.abs())
        shift, weight = (mean - before) * rstd, args[_NORMALISATIONS[name]]
        if name == "native_group_norm":
            shift = shift.reshape(*shift.shape[:2], 1).expand(-1, -1, args[4] // args[6]).flatten(1)
            shift = shift.reshape(*shift.shape, *(1,) * (out.ndim - 2))
        elif name in _UPDATES_STATISTICS:
            shift = shift.reshape(-1, *(1,) * (out.ndim - 2))
        if weight is not None and name != "native_layer_norm":
            weight = weight.reshape(-1, *(1,) * (out.ndim - 2))
        out.sub_(shift if weight is None else shift * weight)

    def _moved(self, value: Any, unit: Any = None, *, counts: bool = True) -> Any:
        """Move ``value`` in place by up to an ulp of ``unit``, equal numbers alike (a symmetry must not break).

        Whole numbers stay where they may be counts."""
        if not isinstance(value, torch.Tensor) or value.dtype not in _MANTISSA:
            return value
        if value.numel() == 0 or _overlaps(value) or value._is_zerotensor():
            return value  # derivatives that are zero throughout may come without any memory
        self._salt = (self._salt * 6364136223846793005 + 1442695040888963407) % 2**64
        bits = value.float().view(torch.int32).mul(-1640531535).add_(self._salt % 2**31)
        bits = bits.bitwise_xor(bits >> 15).mul_(739982445)
        step = bits.float().mul_(2.0**-31 * torch.finfo(value.dtype).eps)
        wide = value.float()
        if isinstance(unit, torch.Tensor):
            step = step.mul_(unit.float().nan_to_num_(0.0, 0.0, 0.0))
        else:
            step = step.mul_(wide)
        stays = ~wide.isfinite()
        if counts:
            stays |= (wide.frac() == 0) & (wide.abs() < _WHOLE)
        value.add_(torch.where(stays, 0.0, step).to(value.dtype))
        return value


class AsFloat32(TorchDispatchMode):
    """float64 whose every result is rounded to float32: the digits of float32, and a dtype that is float64 to the program."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        return result if func.is_view else tree_map(self._rounded, result)

    @staticmethod
    def _rounded(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.dtype != torch.float64:
            return value
        if value.numel() and not _overlaps(value) and not value._is_zerotensor():
            value.copy_(value.float())
        return value


def _chooses(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether an operation chooses a number here: its derivative asks which elements equal the result."""
    given = (*args, *kwargs.values())
    if name.rstrip("_") in _REDUCING:
        return any(isinstance(one, str) and one in _CHOOSING for one in given)
    if name == "linalg_vector_norm":
        return any(isinstance(one, float) and abs(one) == float("inf") for one in given)
    return False


def _on_squares(func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A sum's operation applied to the squares of its tensors: the sum of squared terms."""

    def squared(value: Any) -> Any:
        is_float = isinstance(value, torch.Tensor) and value.dtype.is_floating_point
        return value * value if is_float else value

    factors = {key: kwargs[key] ** 2 for key in ("alpha", "beta") if key in kwargs}
    result = func(*tree_map(squared, args), **{**tree_map(squared, kwargs), **factors})
    return result / (args[0].numel() / max(result.numel(), 1)) if name == "mean" else result


def _is_constant(value: torch.Tensor) -> bool:
    """Whether a tensor has few different values: equal terms are rounded alike, so that errors gather."""
    if not value.is_floating_point() or not value.numel():
        return False
    most = min(_FEW, value.numel() // 8)
    if not most:
        return False  # a number, or a few
    first = value.detach()[(0,) * (value.ndim - 1)] if value.ndim > 1 else value.detach()[:512]
    return len(first.unique()) <= most and len(value.detach().unique()) <= most


def _in_order(terms: int, result: torch.Tensor) -> torch.Tensor:
    """The unit of a sum of equal signs, added term by term: the last partial sums are about as large as the result,
    and each is rounded, so that ulps of it gather with the root of their number (four at most are granted)."""
    gathered = (terms / max(result.numel(), 1)) ** 0.5 / 6
    return result.abs() * min(1 + gathered, 4.0)


def _root(value: Any) -> Any:
    return value.sqrt() if isinstance(value, torch.Tensor) else value


def _with_spread(value: Any) -> Any:
    """The unit of a fused operation: four times the value, and the spread of the tensor where that is small."""
    if not isinstance(value, torch.Tensor) or not value.dtype.is_floating_point:
        return value
    wide = value.float()
    return 4 * wide.abs() + wide.square().mean().sqrt()


def _of_logarithms(result: torch.Tensor, x: torch.Tensor, dim: int) -> torch.Tensor:
    """The unit of ``x - (max + log(sum(exp(x - max))))`` row by row: a row's own, whatever a mask has put beside it."""
    if not result.ndim:
        return torch.zeros_like(result)
    total = (x.float() - result.float()).nan_to_num(0.0, 0.0, 0.0)
    place = result.argmax(dim, keepdim=True)
    return 4 * result.float().abs() + total.gather(dim, place).abs() + 1


def _subtracted(name: str, grad: torch.Tensor, output: torch.Tensor, dim: int) -> torch.Tensor:
    """The size of what a softmax's derivative subtracts: ``y * (g - (y * g).sum())``."""
    grad, output = grad.float().abs(), output.float()
    if name == "_softmax_backward_data":
        return output * (grad + (output * grad).sum(dim, keepdim=True))
    return grad + output.exp() * grad.sum(dim, keepdim=True)


def _overlaps(value: torch.Tensor) -> bool:
    return any(
        stride == 0 and size > 1 for stride, size in zip(value.stride(), value.shape, strict=True)
    )


_WIDER = {torch.float32: torch.float64, torch.complex64: torch.complex128}


class Float64(TorchFunctionMode):
    """float32 becomes float64 wherever the program says it: ``.float()``, ``dtype=torch.float32``, defaults."""

    def __enter__(self) -> Float64:
        self._default = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        return super().__enter__()

    def __exit__(self, *exc: Any) -> None:
        torch.set_default_dtype(self._default)
        super().__exit__(*exc)

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func is torch.Tensor.float:
            return args[0].double()
        if any(isinstance(part, torch.dtype) for part in (*args, *(kwargs or {}).values())):
            args = tuple(_widened(part) for part in args)
            kwargs = {key: _widened(part) for key, part in (kwargs or {}).items()}
        return func(*args, **(kwargs or {}))


def _widened(value: Any) -> Any:
    return _WIDER.get(value, value) if isinstance(value, torch.dtype) else value
