"""Compile a port with the real XLA:TPU compiler for a TPU that is not there, and read what it would cost.

Runs in a process of its own: libtpu takes hold of what it finds, and a compiler may crash.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from multiprocessing import get_context
from typing import Any

GIB = 2**30


@dataclass(frozen=True)
class Chip:
    """One generation: a small topology, memory of a device as JAX counts them, width of the matrix unit.

    Memory and unit as documented by Google Cloud; on v3 and tpu7x JAX sees two devices a chip.
    """

    topology: str
    memory: int
    unit: int = 128


CHIPS = {
    "v3": Chip("v3:2x2", 16 * GIB),
    "v4": Chip("v4:2x2x1", 32 * GIB),
    "v5e": Chip("v5e:2x2", 16 * GIB),
    "v5p": Chip("v5p:2x2x1", 95 * GIB),
    "v6e": Chip("v6e:2x2", 32 * GIB, 256),
    "tpu7x": Chip("tpu7x:2x2x1", 96 * GIB, 256),
}


@dataclass
class Lowered:
    """One function (``"forward"``, ``"training step"``) compiled for one chip.

    ``memory`` is what it needs in bytes, arguments, outputs and temporaries together; ``padding`` how much
    larger its arguments are in the chip's layout; ``fill`` the share of the matrix unit's work that is not
    padding, by operations; ``fallen`` products that XLA computes without the matrix unit, ``unread`` that it
    could not be seen which. ``error`` is what the compiler says of the program, ``untried`` why it was not asked.
    """

    chip: str
    function: str
    error: str = ""
    untried: str = ""
    memory: int = 0
    available: int = 0
    flops: float = 0.0
    moved: float = 0.0
    padding: float = 1.0
    fill: float = 1.0
    products: int = 0
    fallen: list[str] = field(default_factory=list)
    unread: bool = False

    def __str__(self) -> str:
        head = f"{self.chip:<6} {self.function:<14}"
        if self.error:
            return f"{head} does not compile: {self.error}"
        if self.untried:
            return f"{head} not compiled: {self.untried}"
        share = self.memory / self.available
        text = (
            f"{head} {_size(self.memory)} of {_size(self.available)} ({share:.2g})"
            f"  {self.flops:.3g} flop  {_size(self.moved)} moved  padding x{self.padding:.2f}"
            f"  matrix unit {100 * self.fill:.0f} % full"
        )
        if self.fallen:
            more = f" and {len(self.fallen) - 3} more" if len(self.fallen) > 3 else ""
            text += f"  not on it: {', '.join(self.fallen[:3])}{more}"
        return text


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} GiB"


def available() -> bool:
    """Whether libtpu is installed."""
    return find_spec("libtpu") is not None


_ALONE = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # there is no TPU that two processes could both reach for
}


def in_own_process(work: Callable[..., list[Lowered]], *arguments: Any) -> list[Lowered]:
    """Run ``work`` in a new process that has no device but the CPU.

    Raises:
      RuntimeError: the process died.
    """
    with _environment(_ALONE), ProcessPoolExecutor(1, get_context("spawn")) as pool:
        try:
            return pool.submit(work, *arguments).result()
        except BrokenProcessPool as error:
            raise RuntimeError("the compiler's process died") from error


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    saved = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in saved.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def lower(module: Any, args: Sequence[Any], kwargs: Any, chips: Sequence[str]) -> list[Lowered]:
    """Forward pass in eval mode and a training step with SGD, for each chip.

    Args:
      module: the port.
      args, kwargs: numpy arrays, of which shapes and dtypes count.
    """
    return [
        _compiled(function, name, inputs, chip)
        for chip in chips
        for name, (function, inputs) in _functions(module, args, kwargs).items()
    ]


def _functions(module: Any, args: Any, kwargs: Any) -> dict[str, tuple[Any, Any]]:
    import jax
    import jax.numpy as jnp
    import numpy as np
    from flax import nnx

    from numerics.tree import flatten

    leaves, treedef = jax.tree.flatten((tuple(args), dict(kwargs)), is_leaf=lambda x: x is None)
    moving = {i: jnp.asarray(x) for i, x in enumerate(leaves) if isinstance(x, np.ndarray)}

    def outputs(graphdef: Any, params: Any, rest: Any, moving: Any) -> Any:
        copy = nnx.merge(graphdef, params, rest, copy=True)
        given = [moving.get(i, leaf) for i, leaf in enumerate(leaves)]
        call_args, call_kwargs = jax.tree.unflatten(treedef, given)
        found = flatten(copy(*call_args, **call_kwargs))
        values = {path: jnp.asarray(value) for path, value in found.items()}
        return values, nnx.state(copy, nnx.Not(nnx.Param))

    module.eval()
    eval_graph, params, rest = nnx.split(module, nnx.Param, ...)

    def forward(params: Any, rest: Any, moving: Any) -> Any:
        return outputs(eval_graph, params, rest, moving)[0]

    module.train()
    train_graph, _, train_rest = nnx.split(module, nnx.Param, ...)

    def step(params: Any, rest: Any, moving: Any) -> Any:
        def loss(params: Any) -> Any:
            values, after = outputs(train_graph, params, rest, moving)
            floats = [v for v in values.values() if jnp.issubdtype(v.dtype, jnp.floating)]
            return sum(jnp.mean(v.astype(jnp.float32) ** 2) for v in floats), after

        (value, after), slopes = jax.value_and_grad(loss, has_aux=True)(params)
        return value, after, jax.tree.map(lambda p, g: p - 0.01 * g, params, slopes)

    return {
        "forward": (forward, (params, rest, moving)),
        "training step": (step, (params, train_rest, moving)),
    }


def _compiled(function: Any, name: str, inputs: Any, chip: str) -> Lowered:
    import jax
    from jax.experimental import topologies
    from jax.sharding import SingleDeviceSharding

    from numerics.pair import one_line

    known = CHIPS[chip]
    result = Lowered(chip, name, available=known.memory)
    try:
        topology = topologies.get_topology_desc(platform="tpu", topology_name=known.topology)
    except Exception as error:
        result.untried = one_line(error)
        return result
    try:
        place = SingleDeviceSharding(topology.devices[0])
        shapes = jax.tree.map(
            lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place), inputs
        )
        traced = jax.jit(function).trace(*shapes)
        compiled = traced.lower().compile()
    except Exception as error:
        result.error = one_line(error)
        return result
    memory, cost = compiled.memory_analysis(), compiled.cost_analysis() or {}
    result.memory = (
        memory.argument_size_in_bytes
        + memory.output_size_in_bytes
        + memory.temp_size_in_bytes
        + memory.generated_code_size_in_bytes
        - memory.alias_size_in_bytes
    )
    result.flops, result.moved = cost.get("flops", 0.0), cost.get("bytes accessed", 0.0)
    logical = sum(math.prod(x.shape) * x.dtype.itemsize for x in jax.tree.leaves(shapes))
    result.padding = memory.argument_size_in_bytes / max(logical, 1)
    result.fill, result.products = matrix_unit_fill(traced.jaxpr, known.unit)
    try:
        result.fallen = fallen(compiled.as_text())
    except Exception:  # a libtpu of another age than jaxlib, which cannot read all of its programs
        result.unread = True
    return result


# --- the matrix unit -----------------------------------------------------------------------------


def matrix_unit_fill(jaxpr: Any, unit: int) -> tuple[float, int]:
    """(share of the unit's work that is not padding, number of products) of everything a jaxpr computes.

    Rows are padded to 8, columns and the summed axis to the unit's width; a loop's body counts as often as it
    runs.
    """
    useful = padded = 0.0
    products = 0
    for times, rows, columns, summed, batch in _products(jaxpr.jaxpr, 1):
        products += 1
        useful += times * batch * rows * columns * summed
        sizes = _up(rows, 8) * _up(columns, unit) * _up(summed, unit)
        padded += times * batch * sizes
    return (useful / padded if padded else 1.0), products


def _up(size: int, multiple: int) -> int:
    return max(1, -(-size // multiple)) * multiple


def _products(jaxpr: Any, times: int) -> Iterator[tuple[int, int, int, int, int]]:
    for equation in jaxpr.eqns:
        name, shapes = equation.primitive.name, [v.aval.shape for v in equation.invars]
        if name == "dot_general":
            (left, _), (batch_left, _) = equation.params["dimension_numbers"]
            summed = math.prod(shapes[0][i] for i in left)
            batch = math.prod(shapes[0][i] for i in batch_left)
            rows = math.prod(shapes[0]) // max(summed * batch, 1)
            columns = math.prod(shapes[1]) // max(summed * batch, 1)
            yield times, max(rows, columns), min(rows, columns), summed, batch
        elif name == "conv_general_dilated":
            numbers, groups = (
                equation.params["dimension_numbers"],
                equation.params["feature_group_count"],
            )
            kernel, output = shapes[1], equation.outvars[0].aval.shape
            features = kernel[numbers.rhs_spec[0]] // groups
            summed = math.prod(kernel) // max(kernel[numbers.rhs_spec[0]], 1)
            pixels = math.prod(output) // max(output[numbers.out_spec[1]], 1)
            yield times, pixels, features, summed, groups
        repeats = times * equation.params.get("length", 1) if name == "scan" else times
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else (value,):
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    yield from _products(inner, repeats)


_INSTRUCTION = re.compile(
    r"= \S+ ([\w-]+)\(.*?op_name=\"([^\"]*(?:dot_general|conv_general_dilated)[^\"]*)\""
)
_ON_UNIT = frozenset({"convolution", "dot", "custom-call"})
_WORK = frozenset({"multiply", "reduce", "add"})


def fallen(text: str) -> list[str]:
    """Products that appear in compiled HLO as multiplications and sums alone, by the place JAX gives them."""
    found: dict[str, set[str]] = {}
    for operation, place in _INSTRUCTION.findall(text):
        found.setdefault(place, set()).add(operation)
    names = [n for n, kinds in found.items() if not kinds & _ON_UNIT and kinds & _WORK]
    return sorted({re.sub(r"^jit\(\w+\)/", "", name) for name in names})
