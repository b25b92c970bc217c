"""``migrate weights``: a torch checkpoint file → an Orbax checkpoint, one tensor in memory at a time."""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp
from flax import nnx
from orbax.checkpoint import type_handlers

from migrator.errors import UserError
from migrator.weights import as_numpy, check_keys, check_shapes, fit, same_array, slots


@dataclass(frozen=True)
class LazyArray:
    """An array that is read when it is written; ``dtype`` is the module's, for Orbax's accounting."""

    shape: tuple[int, ...]
    dtype: np.dtype
    load: Callable[[], np.ndarray]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize


class _OneAtATime(type_handlers.NumpyHandler):
    """Writes lazy arrays in Orbax's own format for numpy arrays, each before the next is read."""

    async def serialize(
        self,
        values: Sequence[Any],
        infos: Sequence[Any],
        args: Sequence[Any] | None = None,
    ) -> Sequence[Any]:
        for i, value in enumerate(values):
            array = np.ascontiguousarray(value.load())
            await self._background_serialize([array], [infos[i]], [args[i] if args else None])
        return []


# --- reading ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StateFile:
    """An open checkpoint: the shape of every key, and its array on demand."""

    shapes: Mapping[str, tuple[int, ...]]
    read: Callable[[str], np.ndarray]


@contextmanager
def _open_safetensors(path: Path) -> Iterator[StateFile]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            shapes = {key: tuple(file.get_slice(key).get_shape()) for key in file.keys()}  # noqa: SIM118
            yield StateFile(shapes, file.get_tensor)
    except SafetensorError as error:
        raise UserError(f"{path}: not a safetensors file: {error}") from error


def _tensors(loaded: Any, path: Path, key: str | None) -> Mapping[str, Any]:
    """The state_dict in what torch.load gave: itself, or the entry named by ``key`` (``"ema.model"``)."""
    for name in key.split(".") if key else ():
        if not isinstance(loaded, Mapping) or name not in loaded:
            entries = list(map(str, loaded)) if isinstance(loaded, Mapping) else []
            there = ", ".join(entries[:8]) + (", …" if len(entries) > 8 else "")
            raise UserError(f"{path}: no entry {key!r}; there is {there or 'none'}")
        loaded = loaded[name]
    if isinstance(loaded, Mapping):
        if loaded and all(hasattr(value, "untyped_storage") for value in loaded.values()):
            return loaded
        inner = [name for name, value in loaded.items() if isinstance(value, Mapping)]
        others = [name for name, v in loaded.items() if not hasattr(v, "untyped_storage")]
        advice = (
            f"choose one of its entries with --key: {', '.join(inner)}"
            if inner
            else (f"entries that are no tensors: {', '.join(map(str, others))}")
        )
        raise UserError(f"{path}: not a state_dict; {advice}")
    raise UserError(f"{path}: holds a {type(loaded).__name__}, not a state_dict")


def _refusal(error: Exception) -> str:
    """Why torch does not load a file, without its advice to run the code that the file holds."""
    text = str(error)
    foreign = re.search(r"GLOBAL (\S+)", text)
    if foreign or (isinstance(error, UnpicklingError) and "Unsupported operand" not in text):
        what = "it holds more than tensors" + (f" ({foreign[1]})" if foreign else "")
        return f"{what}; save the module's state_dict() alone where it was made"
    if isinstance(error, OSError):
        return text
    return f"it is damaged, or no checkpoint of torch ({type(error).__name__})"


@contextmanager
def _open_torch(path: Path, key: str | None) -> Iterator[StateFile]:
    import torch

    try:
        try:
            loaded = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        except RuntimeError as error:
            if "mmap" not in str(error):
                raise
            loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # on a file of another kind the unpickler fails in any way
        raise UserError(
            f"{path}: torch.load(weights_only=True) refuses it: {_refusal(error)}"
        ) from error
    state = _tensors(loaded, path, key)
    shapes = {name: tuple(value.shape) for name, value in state.items()}
    yield StateFile(shapes, lambda name: as_numpy(state[name]))


def open_state(path: Path, key: str | None = None) -> Any:
    """Open ``model.safetensors``, or ``model.pt`` with ``torch.load(weights_only=True, mmap=True)``."""
    if path.suffix == ".safetensors":
        return _open_safetensors(path)
    return _open_torch(path, key)


# --- writing ---------------------------------------------------------------------------------------


def _lazy_tree(module: nnx.Module, state: StateFile, progress: Callable[[str], None]) -> dict:
    """Nested dict by attribute path of the arrays ``module`` wants, each tied array once."""
    wanted = slots(module)
    check_keys(wanted, state.shapes)
    check_shapes(wanted, state.shapes)
    tree: dict[str, Any] = {}
    seen: dict[int, str] = {}
    for slot in wanted:
        if slot.key not in state.shapes:
            continue
        if first := seen.get(id(slot.variable)):
            if not same_array(state.read(first), state.read(slot.key)):
                raise ValueError(f"{first} and {slot.key} are one array in Flax, but differ here")
            continue
        seen[id(slot.variable)] = slot.key
        dtype = slot.dtype

        def load(key: str = slot.key, dtype: Any = dtype, flip: bool = slot.transposed) -> Any:
            progress(key)
            array = fit(key, state.read(key), dtype)
            return array.T if flip else array

        node = tree
        for name in slot.path[:-1]:
            node = node.setdefault(name, {})
        shape = slot.shape[::-1] if slot.transposed else slot.shape
        node[slot.path[-1]] = LazyArray(shape, dtype, load)
    return tree


def write_checkpoint(
    source: Path,
    module: nnx.Module,
    out: Path,
    *,
    key: str | None = None,
    force: bool = False,
    progress: Callable[[str], None] = lambda key: None,
) -> int:
    """Write the weights in ``source`` as an Orbax checkpoint of ``module``; returns the number of keys read.

    The checkpoint is a nested dict by attribute path; take it up with::

        state = orbax.checkpoint.StandardCheckpointer().restore(out)
        nnx.update(model, nnx.restore_int_paths(state))

    Args:
      module: the converted module; arrays may be abstract (``nnx.eval_shape``), only shapes and dtypes are used.
      key: entry of the ``.pt`` file that holds the state_dict, ``"model"``.
      force: replace an existing checkpoint.
      progress: called with each key before it is written.

    Raises:
      UserError: a file that is no checkpoint, an ``out`` that exists.
      KeyError, ValueError: as ``migrator.load_state_dict``.
    """
    if not source.is_file():
        raise UserError(f"{source}: no such file")
    out = out.resolve()
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        if not force:
            raise UserError(f"{out}: exists; --force replaces it")
        if not (out / "_METADATA").is_file():
            raise UserError(f"{out}: exists and is no checkpoint; choose another --out")
    registry = type_handlers.create_type_handler_registry(
        (LazyArray, _OneAtATime()), (jax.Array, type_handlers.get_type_handler(jax.Array))
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    with (
        open_state(source, key) as state,
        tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as beside,
    ):
        tree = _lazy_tree(module, state, progress)
        handler = ocp.PyTreeCheckpointHandler(type_handler_registry=registry)
        with ocp.Checkpointer(handler) as checkpointer:
            checkpointer.save(Path(beside) / "new", tree)
        if out.exists():
            out.rename(Path(beside) / "old")
        (Path(beside) / "new").rename(out)
        return len(state.shapes)
