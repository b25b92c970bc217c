"""Both versions of a random model: outputs over several calls, dtypes, state afterwards, gradients."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx

import migrator
from migrator.project import convert_path
from tests.convert.tools import HEADER

NARROWED = {"int64": "int32", "float64": "float32", "complex128": "complex64"}
"""What JAX has in the place of torch's wide types."""


@dataclass
class Program:
    """The source of a class ``M`` under the usual imports, how it is made, and what is called of it.

    ``calls`` are expressions of the model ``m`` and of the inputs by their names, evaluated in turn in each mode.
    """

    source: str
    made: str = "M()"
    calls: list[str] = field(default_factory=lambda: ["m(x)"])
    inputs: dict[str, torch.Tensor] = field(default_factory=dict)
    modes: tuple[bool, ...] = (False, True)


def leaves(value: Any) -> list[Any]:
    """The tensors, arrays and numbers of a result."""
    if isinstance(value, dict):
        return [leaf for key in value for leaf in leaves(value[key])]
    if isinstance(value, (tuple, list)):
        return [leaf for one in value for leaf in leaves(one)]
    return [value[...] if isinstance(value, nnx.Variable) else value]


def outcome(make: Callable[[int], Program], seed: int) -> str:
    """ "equal", "finding", "torch" where torch itself raises, or what went wrong with the program in it."""
    torch.manual_seed(seed)
    program = make(seed)
    source = HEADER + program.source
    try:
        wanted = _of_torch(program, _executed(source, "theirs"), seed)
    except (
        Exception
    ):  # what is put together at random may be no program: of how many, the tests ask
        return "torch"
    result = migrator.convert_source(source)
    if not result.complete:
        return "finding"
    try:
        _check(program, _executed(result.code, "ours"), seed, *wanted)
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        return f"{told}\nprogram {seed}\n{source}\n--- converted\n{result.code}"
    return "equal"


def _executed(source: str, name: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": name}
    exec(compile(source, name, "exec"), names)
    return names


def outcome_of_package(program: Program, files: dict[str, str], seed: int, folder: Path) -> str:
    """The same of a program in several files, of which ``main`` has the model."""
    torch.manual_seed(seed)
    (folder / "src/pkg").mkdir(parents=True)
    for name, text in files.items():
        (folder / f"src/pkg/{name}.py").write_text(text)
    try:
        theirs = _imported(folder / "src", "pkg")
        wanted = _of_torch(program, theirs, seed)
    except Exception:
        return "torch"
    found = convert_path([folder / "src/pkg"], folder / "out/pkg", force=True, jobs=1)
    if any(one.blocks for one in found.findings):
        return "finding"
    try:
        _check(program, _imported(folder / "out", "pkg"), seed, *wanted)
    except Exception as error:
        shown = [f"# {one.name}\n{one.read_text()}" for one in sorted(folder.glob("*/pkg/*.py"))]
        return f"{type(error).__name__}: {error}\nprogram {seed}\n" + "\n".join(shown)
    return "equal"


def _imported(folder: Path, package: str) -> dict[str, Any]:
    """What ``main`` of a package defines; the package is forgotten again."""
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        return dict(vars(importlib.import_module(f"{package}.main")))
    finally:
        sys.path.remove(str(folder))
        for name in [n for n in sys.modules if n == package or n.startswith(f"{package}.")]:
            del sys.modules[name]


def _of_torch(program: Program, names: dict[str, Any], seed: int) -> tuple[Any, ...]:
    """The state that torch's model starts with, what each call gives, the state then, and the gradients."""
    model = eval(program.made, names)
    random = torch.Generator().manual_seed(seed)
    given: dict[Any, torch.Tensor] = {}
    for name, value in model.state_dict(keep_vars=True).items():
        if value.is_floating_point():  # what is tied gets one value
            spread = torch.rand(value.shape, generator=random) - (0.5 if value.ndim > 1 else 0)
            given[name] = given.setdefault((value.data_ptr(), value.shape), spread)
    model.load_state_dict({n: v for n, v in given.items() if isinstance(n, str)}, strict=False)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    wanted = []
    for mode in program.modes:
        model.train(mode)
        for call in program.calls:
            with torch.no_grad():
                found = leaves(eval(call, {**names, "m": model, **_copies(program)}))
            wanted.append([o.clone() if torch.is_tensor(o) else o for o in found])
    after = {name: value.clone() for name, value in model.state_dict().items()}
    model.eval()
    try:
        loss = _loss(eval(program.calls[0], {**names, "m": model, **_copies(program)}), torch)
        loss.backward()
    except (
        RuntimeError,
        AttributeError,
    ):  # nothing that has a gradient, or what is written keeps one from being taken
        return state, wanted, after, None
    every = model.named_parameters(remove_duplicate=False)
    return state, wanted, after, {n: p.grad for n, p in every if p.requires_grad}


def _copies(program: Program) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in program.inputs.items()}


def _loss(result: Any, library: Any) -> Any:
    total = 0
    for place, leaf in enumerate(leaves(result)):
        if isinstance(leaf, torch.Tensor) and leaf.is_floating_point():
            total = total + (place + 1) * library.tanh(leaf * 0.1).sum()
        elif isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jnp.floating):
            total = total + (place + 1) * library.tanh(leaf * 0.1).sum()
    return total


def _check(
    program: Program,
    names: dict[str, Any],
    seed: int,
    state: dict[str, torch.Tensor],
    wanted: list[list[Any]],
    after: dict[str, torch.Tensor],
    slopes: dict[str, torch.Tensor | None] | None,
) -> None:
    comma = "" if program.made.endswith("()") else ", "
    port = eval(f"{program.made[:-1]}{comma}rngs=nnx.Rngs(0))", {**names, "nnx": nnx})
    assert set(migrator.to_state_dict(port)) == set(state)
    migrator.load_state_dict(port, state)
    inputs = {name: jnp.asarray(value.numpy()) for name, value in program.inputs.items()}
    run = _jitted if seed % 2 else _called
    rest = iter(wanted)
    for mode in program.modes:
        port.train() if mode else port.eval()
        for call in program.calls:
            _same(run(call, names, port, inputs), next(rest), f"{call}, training: {mode}")
    found = migrator.to_state_dict(port)
    for name in found:
        _close(found[name], after[name], f"state {name}")
    if slopes is None:
        return
    port.eval()
    ours = nnx.grad(lambda m: _loss(_called(program.calls[0], names, m, inputs), jnp))(port)
    ours = migrator.to_state_dict(ours, like=port)
    for name, slope in slopes.items():
        if name in ours:
            _close(
                ours[name],
                torch.zeros_like(state[name]) if slope is None else slope,
                f"slope {name}",
            )


def _called(call: str, names: dict[str, Any], port: Any, inputs: dict[str, Any]) -> list[Any]:
    return leaves(eval(call, {**names, "m": port, **inputs}))


def _jitted(call: str, names: dict[str, Any], port: Any, inputs: dict[str, Any]) -> list[Any]:
    """The same under jit, which gives the arrays; what else there is was told while it was traced."""
    told: list[Any] = []

    def body(module: Any, given: dict[str, Any]) -> list[jax.Array]:
        found = _called(call, names, module, given)
        told[:] = [None if isinstance(one, jax.Array) else (one,) for one in found]
        return [one for one in found if isinstance(one, jax.Array)]

    arrays = iter(nnx.jit(body)(port, inputs))
    return [next(arrays) if one is None else one[0] for one in told]


def _same(got: list[Any], want: list[Any], where: str) -> None:
    assert len(got) == len(want), where
    for mine, other in zip(got, want):
        if not torch.is_tensor(other):
            if isinstance(other, (int, float)):
                np.testing.assert_allclose(np.asarray(mine), other, rtol=2e-3, err_msg=where)
            continue
        kinds = [str(one.dtype).removeprefix("torch.") for one in (mine, other)]
        assert NARROWED.get(kinds[0], kinds[0]) == NARROWED.get(kinds[1], kinds[1]), where
        _close(mine, other, where)


def _close(mine: Any, other: torch.Tensor, where: str) -> None:
    theirs = other.detach().numpy()
    ours = np.asarray(mine)
    assert ours.shape == theirs.shape, (where, ours.shape, theirs.shape)
    finite = (
        np.abs(theirs[np.isfinite(theirs)].astype(np.float64)) if theirs.dtype != bool else theirs
    )
    size = max(1.0, float(finite.max())) if finite.size else 1.0
    np.testing.assert_allclose(
        ours.astype(theirs.dtype), theirs, rtol=3e-3, atol=3e-4 * size, err_msg=where
    )
