"""The error measure and the verdict for one tensor, and for the tensors of one check.

torch in float64 is the reference ``r``. Both sides are judged by the same measure, the largest deviation in
the tensor: ``error = max |port - r|`` for the port, and for torch's own float32 the largest of ``max |t - r|``
over several runs ``t``, one as torch computes it and the others with every operation rounded at random
(``numerics.rounding``), so that a result that is exact by luck does not pass for an exact computation.
Runs in which a decision fell otherwise are outcomes of their own (``_references``).

The port is equal when ``error <= max(10 * own, 4 ulp)``, one ulp being float32's epsilon times the largest value
of the tensor (plus a thousandth of the largest value among the tensors of the check, which matters only where
a tensor is exactly zero). Errors are shown divided by the tensor's largest value.

In half precision the same is asked of the root mean squares of the errors, with 5 in the place of 10 (``_mean_ratio``).

Values beside a mask's (scores of about one beside -1e9) are judged apart from it, by their own largest value: four
ulp of 1e9 would excuse any score.

Where torch keeps fewer than two digits (own > 1 % of the tensor, in half precision 32 ulp) the tensor is ill-conditioned: its digits are
noise, so agreement there proves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

EPS = {
    "float64": 2.0**-23,  # the port computes in float32 at most
    "float32": 2.0**-23,
    "bfloat16": 2.0**-7,
    "float16": 2.0**-10,
}
FACTOR = 10.0
MEAN_FACTOR = 5.0
FLOOR_ULPS = 4.0
ILL_CONDITIONED = 1e-2
_FAR = 100.0
_GAP = 1e3  # between a mask's magnitude and those of other values
_ALIKE = 1e-3  # how far a mask's values differ, as scores may have been added to them
_GROUP = 4  # values that there are beside a mask at least
_MANY = 64  # numbers of which a mean is taken at least
_TINY = 1e-36  # below this XLA flushes to zero what torch keeps


@dataclass(frozen=True)
class Difference:
    """How one tensor of the port compares.

    ``error`` and ``torch_error`` are relative to the largest value of the tensor, ``ratio`` is error over
    allowance (above 1: not equal). ``problem`` tells of a difference that is no matter of digits (a missing
    tensor, a shape, a dtype, NaN where torch has none), ``structural`` that rounding cannot explain it.
    ``where`` is the index of the largest error, ``values`` how many numbers were compared. ``zero`` says that both sides
    are nothing but zeros.
    """

    name: str
    error: float = 0.0
    torch_error: float = 0.0
    ratio: float = 0.0
    where: tuple[int, ...] = ()
    expected: float = 0.0
    got: float = 0.0
    problem: str = ""
    ill_conditioned: bool = False
    structural: bool = False
    values: int = 0
    zero: bool = False

    @property
    def ok(self) -> bool:
        """Whether the tensors count as equal."""
        return not self.problem and self.ratio <= 1.0

    def __str__(self) -> str:
        if self.problem:
            return f"{self.name}: {self.problem}"
        at = f" at {list(self.where)}" if self.where else ""
        return (
            f"{self.name}: error {self.error:.1e} where torch's own is {self.torch_error:.1e}"
            f" (expected {self.expected:.7g}, got {self.got:.7g}{at})"
        )


def compare(
    name: str,
    reference: np.ndarray,
    own: Sequence[np.ndarray],
    port: np.ndarray,
    dtype: str = "float32",
    context: float = 0.0,
    undefined: bool = False,
) -> Difference:
    """Judge one tensor.

    Args:
      reference: torch in float64.
      own: torch in its own precision, as it runs and with random rounding.
      port: the port's values.
      dtype: torch's dtype of the tensor, for the floor.
      context: largest value among the tensors of the check.
      undefined: whether the port may have any number where torch has NaN, as for a gradient that is 0 * inf.
    """
    if port.shape != own[0].shape:
        problem = f"shape {port.shape} where torch has {own[0].shape}"
        return Difference(name, problem=problem, structural=True)
    if port.size == 0:
        return Difference(name)
    if not np.issubdtype(reference.dtype, np.inexact):
        return _compare_exact(name, own, port)
    values = reference.size
    if not all(np.isfinite(run).all() for run in (reference, port, *own)):
        settled = _settled(own)
        pattern = _same_pattern(own[0], port) | ~settled | _beyond(reference, own[0])
        if undefined:
            pattern |= np.isnan(own[0])
        if not pattern.all():
            where = tuple(int(i) for i in np.argwhere(~pattern)[0])
            problem = f"{port[where]} at {list(where)} where torch has {own[0][where]}"
            return Difference(name, problem=problem, where=where)
        usable = np.isfinite(own[0]) & settled & np.isfinite(reference)
        if not usable.any():
            return Difference(name, ill_conditioned=not settled.all())
        values = int(usable.sum())
        reference, port, *own = (np.where(usable, x, 0) for x in (reference, port, *own))
    eps = _digits(dtype, reference, own)
    found = [
        _compare_group(name, *_inside(group, reference, port, own), eps, context)
        for group in magnitudes(np.maximum(np.abs(reference), np.abs(own[0])))
    ]
    worst = max(found, key=lambda difference: (not difference.ill_conditioned, difference.ratio))
    return replace(worst, values=values, zero=not (reference.any() or port.any()))


def _digits(dtype: str, reference: np.ndarray, own: Sequence[np.ndarray]) -> float:
    """The epsilon of a tensor's numbers: that of its dtype, or of half precision if all of them have passed it.

    The gradient of a float32 parameter that meets halves is a half. That is seen where rounding moves the
    numbers, and each is one of half precision still; what never moves may be whole numbers."""
    eps = EPS.get(dtype, EPS["float32"])
    if dtype != "float32" or all(np.array_equal(own[0], run) for run in own):
        return eps
    runs = [x.astype(np.float32) for x in (reference, *own)]
    with np.errstate(over="ignore"):
        if all(np.array_equal(x.astype(np.float16), x) for x in runs):
            return EPS["float16"]
    if all(not (x.view(np.uint32) & 0xFFFF).any() for x in runs):
        return EPS["bfloat16"]
    return eps


def _inside(
    group: np.ndarray, reference: np.ndarray, port: np.ndarray, own: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """The runs with zeros outside of a group."""
    if group.all():
        return reference, port, list(own)
    reference, port, *own = (np.where(group, run, 0) for run in (reference, port, *own))
    return reference, port, own


def magnitudes(sizes: np.ndarray) -> list[np.ndarray]:
    """All of a tensor, by its absolute values; or all but a mask's values, and those.

    A mask's values are nearly the same, and three orders of magnitude above the others, which are more than a
    few. Other tensors of mixed magnitude stay whole: their small values carry the rounding of the large ones.
    """
    largest = sizes.max(initial=0.0)
    mask = largest - sizes <= _ALIKE * sizes
    others = sizes[(sizes > _TINY) & ~mask]
    if largest > _TINY and others.size >= _GROUP:
        with np.errstate(over="ignore"):
            apart = sizes[mask].min() > _GAP * others.max()
        if apart:
            return [~mask, mask]
    return [np.ones_like(mask)]


def _compare_group(
    name: str,
    reference: np.ndarray,
    port: np.ndarray,
    own: Sequence[np.ndarray],
    eps: float,
    context: float,
) -> Difference:
    """Values of about one magnitude; those outside of the group are zero everywhere."""
    scale = max(float(np.abs(value).max()) for value in (reference, own[0]))
    floor = FLOOR_ULPS * eps * (scale + 1e-3 * context) + _TINY
    floor += FLOOR_ULPS * _step(eps)
    found = []
    for base, error in _references(reference, own, floor):
        difference = _measure(name, base, error, port, eps, floor, context)
        if eps > EPS["float32"]:
            ratio = max(difference.ratio, _mean_ratio(base, error, own, port, eps))
            difference = replace(difference, ratio=ratio)
        found.append(difference)
    return min(found, key=lambda difference: difference.ratio)


def _step(eps: float) -> float:
    """What the numbers that are nearest to zero are apart: in float16 that is no small part of a small gradient."""
    return 2.0**-24 if eps == EPS["float16"] else 0.0


def _mean_ratio(
    reference: np.ndarray, error: float, own: Sequence[np.ndarray], port: np.ndarray, eps: float
) -> float:
    """The root mean square of the port's errors over what it may be, of the many numbers of a tensor in half precision.

    There the largest of torch's errors is some per cent of the largest value, and ten times that would hide a factor
    that all numbers have: the mean of as many errors is known far better than the largest one is.
    """
    many = np.abs(reference) > _TINY
    if many.sum() < _MANY:
        return 0.0

    def mean(values: np.ndarray) -> float:
        return float(np.sqrt(np.mean(np.abs(values[many]) ** 2)))

    near = [mean(run - reference) for run in own if np.abs(run - reference).max() <= error]
    allowed = max(MEAN_FACTOR * max(near, default=0.0), FLOOR_ULPS * eps * mean(reference))
    allowed += _step(eps)
    return mean(port - reference) / allowed if near else 0.0


def _measure(
    name: str,
    reference: np.ndarray,
    torch_error: float,
    port: np.ndarray,
    eps: float,
    floor: float,
    context: float,
) -> Difference:
    deviation = np.abs(port - reference)
    error = float(deviation.max())
    scale = float(np.abs(reference).max())
    where = tuple(int(i) for i in np.unravel_index(int(deviation.argmax()), deviation.shape))
    unit = scale or context or 1.0
    return Difference(
        name,
        error=error / unit,
        torch_error=torch_error / unit,
        ratio=error / max(FACTOR * torch_error, floor),
        where=where,
        expected=float(np.real(reference[where])),
        got=float(np.real(port[where])),
        ill_conditioned=torch_error > max(ILL_CONDITIONED, 32 * eps) * scale,
    )


def _compare_exact(name: str, own: Sequence[np.ndarray], port: np.ndarray) -> Difference:
    """Integers and booleans: equal wherever torch's own runs agree with each other."""
    settled = np.all([run == own[0] for run in own], axis=0)
    wrong = settled & (port != own[0])
    if not wrong.any():
        return Difference(name, ill_conditioned=not settled.any(), values=int(settled.sum()))
    where = tuple(int(i) for i in np.argwhere(wrong)[0])
    problem = f"{port[where]} at {list(where)} where torch has {own[0][where]}"
    return Difference(name, problem=problem, where=where)


def _settled(own: Sequence[np.ndarray]) -> np.ndarray:
    """Elements whose NaN or infinity does not depend on rounding."""
    return np.all([_same_pattern(own[0], run) for run in own], axis=0)


def _beyond(reference: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Where torch overflows on the way to a number that float32 does not have: what comes of that is nobody's aim."""
    with np.errstate(invalid="ignore"):
        return (
            ~np.isfinite(own)
            & np.isfinite(reference)
            & (np.abs(reference) > np.finfo(np.float32).max)
        )


def _same_pattern(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    same_inf = np.isinf(a) == np.isinf(b)
    with np.errstate(invalid="ignore"):
        same_sign = ~np.isinf(a) | (a == b)
    return (np.isnan(a) == np.isnan(b)) & same_inf & same_sign


def _references(
    reference: np.ndarray, own: Sequence[np.ndarray], floor: float
) -> list[tuple[np.ndarray, float]]:
    """What the port may be held against, each with torch's own error around it.

    That is float64, with the largest error of any run. But a decision (a bucket, a comparison, a constant that
    depends on the dtype) may fall otherwise in some runs, and they then differ by far more than rounding does.
    Taking that for rounding would excuse every other difference too. So runs that lie far apart, by the scale
    of how near most have a neighbour, are outcomes of their own: the port may agree with any of them, but with
    the error that is usual around it. Where most runs are alone, their distances are torch's error.
    """
    points = [reference, *own]
    apart = [[float(np.abs(a - b).max()) if a is not b else 0.0 for b in points] for a in points]
    noisy = range(2, len(points)) if len(own) > 1 else range(1, len(points))
    nearest = sorted(min(d for j, d in enumerate(apart[i]) if j != i) for i in noisy)
    step = max(nearest[(len(nearest) - 1) // 2], floor)

    def around(i: int) -> float:
        return max(d for d in apart[i] if d <= _FAR * step)

    far = [i for i in range(1, len(points)) if apart[0][i] > _FAR * step]
    if not far:
        return [(reference, max(apart[0]))]
    usual = max(around(0), min(step, max(apart[0])) if step > floor else 0.0)
    return [(points[i], max(around(i), usual)) for i in (0, *far)]


def compare_all(
    reference: Mapping[str, np.ndarray],
    own: Sequence[Mapping[str, np.ndarray]],
    port: Mapping[str, np.ndarray],
    dtypes: Mapping[str, str] | None = None,
    undefined: bool = False,
) -> list[Difference]:
    """Judge every tensor of a check (see ``compare``); a name on one side only is a problem of its own."""
    found: list[Difference] = []
    context: float | None = None
    for name, value in reference.items():
        if name not in port:
            found.append(missing(name))
            continue
        runs = [run[name] for run in own]
        if _same_everywhere(value, port[name], runs):
            found.append(Difference(name, values=int(np.isfinite(value).sum())))
            continue
        if context is None:
            context = max(_magnitude(value) for value in reference.values())
        dtype = (dtypes or {}).get(name, "float32")
        found.append(compare(name, value, runs, port[name], dtype, context, undefined))
    found += [
        Difference(name, problem="the port has it, torch does not", structural=True)
        for name in port
        if name not in reference
    ]
    return found


def _same_everywhere(reference: np.ndarray, port: np.ndarray, own: Sequence[np.ndarray]) -> bool:
    """Whether a float tensor is the same in all runs, as most of a state is: no need to look at its magnitudes."""
    if not np.issubdtype(reference.dtype, np.inexact) or not reference.size:
        return False
    return all(np.array_equal(reference, run) for run in (port, *own))


def missing(name: str) -> Difference:
    """A tensor that the port has not got."""
    return Difference(name, problem="torch has it, the port does not", structural=True)


def _magnitude(value: np.ndarray) -> float:
    """The largest value of the group of smallest magnitude: a mask's -1e9 says nothing of other tensors."""
    if not np.issubdtype(value.dtype, np.inexact) or not value.size:
        return 0.0
    finite = np.abs(value[np.isfinite(value)])
    return float(finite[magnitudes(finite)[0]].max()) if finite.size else 0.0
