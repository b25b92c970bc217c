"""What a port does under ``jax.jit`` besides computing: told by tracing it once, without compiling."""

from __future__ import annotations

import contextlib
import io
import re
import resource
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx


def examine(port: nnx.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[str]:
    """What a person should know, a line each; nothing for a port that does nothing odd.

    Tracers that outlive the trace, output and attributes that change while tracing (both happen once, not in
    every call), state that changes its type, and 64-bit types that JAX cuts to 32 bits.
    """
    found: list[str] = []
    for mode in ("eval", "train"):
        found += [f"{line} ({mode} mode)" for line in _traced(port, args, kwargs, mode == "train")]
    once = dict.fromkeys(line.rpartition(" (")[0] for line in found)
    return [
        line if f"{line} (train mode)" in found and f"{line} (eval mode)" in found else whole
        for line in once
        for whole in [next(f for f in found if f.startswith(line))]
    ]


def shared(port: nnx.Module) -> list[str]:
    """Variables that hold one and the same array, a line each; of a port as it is built, before it is given weights.

    Two arguments of a compiled step may not be one buffer when they are donated, as training steps do with state.
    """
    holders: dict[int, str] = {}
    found = []
    for path, variable in nnx.to_flat_state(nnx.state(port)):
        name, value = ".".join(map(str, path)), variable.get_value()
        if not isinstance(value, jax.Array) or not value.size:
            continue
        first = holders.setdefault(id(value), name)
        if first != name:
            found.append(f"{first} and {name} are built as one array, so a step cannot donate them")
    return found


def _traced(port: nnx.Module, args: Any, kwargs: Any, train: bool) -> list[str]:
    port.train() if train else port.eval()
    graphdef, state = nnx.split(port)
    kept = dict(_types(state))
    leaves, treedef = jax.tree.flatten((tuple(args), dict(kwargs)), is_leaf=lambda x: x is None)
    moving = {i: jnp.asarray(x) for i, x in enumerate(leaves) if isinstance(x, np.ndarray)}
    changed: list[str] = []
    retyped: list[str] = []

    def call(state: Any, moving: Any) -> Any:
        module = nnx.merge(graphdef, state, copy=True)
        before = _attributes(module)
        given = [moving.get(i, leaf) for i, leaf in enumerate(leaves)]
        call_args, call_kwargs = jax.tree.unflatten(treedef, given)
        module(*call_args, **call_kwargs)
        changed.extend(_changed(before, _attributes(module)))
        for name, now in _types(nnx.state(module)):
            if kept.get(name, now) != now:
                retyped.append(
                    f"{name} is {now} after the call where it was {kept[name]}, so its memory cannot be"
                    " donated and the next call compiles again"
                )

    printed = io.StringIO()
    found = []
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(printed):
        warnings.simplefilter("always")
        try:
            with jax.checking_leaks():
                jax.eval_shape(call, state, moving)
        except Exception as error:
            if "Leaked" not in str(error):
                raise
            found.append(f"a traced value is kept after the call: {_short(error)}")
    if printed.getvalue().strip():
        first = printed.getvalue().strip().splitlines()[0]
        found.append(f"prints while it is traced, once and not in every call: {first[:80]!r}")
    found += [f"changes {name} in the call, which under jit is lost" for name in changed]
    found += retyped
    cut = [w for w in caught if "truncated to dtype" in str(w.message)]
    places = dict.fromkeys(f"{Path(w.filename).name}:{w.lineno}" for w in cut)
    return found + [f"a 64-bit type is cut to 32 bits at {place}" for place in places]


def _types(state: nnx.State) -> Iterator[tuple[str, str]]:
    """dtype and shape of every array of a state by its path."""
    for path, variable in nnx.to_flat_state(state):
        value = variable.get_value()
        yield ".".join(map(str, path)), f"{value.dtype}{list(value.shape)}"


def _attributes(module: nnx.Module) -> dict[str, Any]:
    """Plain attributes of every module by path: numbers, strings, None, and sizes of lists."""
    found: dict[str, Any] = {}
    for path, node in nnx.iter_modules(module):
        for name, value in vars(node).items():
            label = ".".join(str(part) for part in (*path, name))
            if isinstance(value, bool | int | float | str) or value is None:
                found[label] = value
            elif type(value) in (list, dict, set):
                found[label] = f"{type(value).__name__} of {len(value)}"
            elif isinstance(value, jax.Array):
                found[label] = id(value)
    return found


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    names = [name for name in after if name not in before or after[name] != before[name]]
    return [name for name in names if not name.rpartition(".")[2].startswith("_")]


def _short(error: Exception) -> str:
    """The start of a message, without the numbers of objects, which differ from call to call."""
    text = re.sub(r"0x[0-9a-f]+|\b\d{6,}\b", "…", " ".join(str(error).split()))
    return text[:200]


# --- compilations ----------------------------------------------------------------------------------


def retraced(earlier: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The arguments, by name, in which two traces for the same shapes differ, with how."""
    found = [
        f"{name} is {now[name]} where it was {earlier[name]}"
        for name in now
        if name in earlier and earlier[name] != now[name]
    ]
    found += [f"{name} is new" for name in now if name not in earlier]
    return found + [f"{name} is gone" for name in earlier if name not in now]


# --- memory ----------------------------------------------------------------------------------------


def peak_memory() -> int:
    """Bytes this process has had resident at most."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def memory_now() -> int:
    """Bytes resident now; the peak where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return peak_memory()
