"""What the flags of ``verify`` and ``weights`` mean: a case without a pyproject.toml, a module by name."""

from __future__ import annotations

import ast
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from migrator.config import Case, Config, load_config, parse_case
from migrator.errors import UserError
from migrator.project import convert_path
from migrator.verifying import PortError, build_flax, require, select, verify_cases

if TYPE_CHECKING:
    from numerics.report import Report

DEFAULT_DIM = (2, 5)
"""Range of a named dimension that no ``--dim`` describes."""


def parse_init(text: str) -> dict[str, Any]:
    """``"32, heads=4"`` → ``{"args": [32], "kwargs": {"heads": 4}}``: literals as in a Python call."""
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        assert isinstance(call, ast.Call)
        args = [ast.literal_eval(a) for a in call.args]
        return {
            "args": args,
            "kwargs": {str(k.arg): ast.literal_eval(k.value) for k in call.keywords},
        }
    except (SyntaxError, ValueError) as error:
        raise UserError(
            f"--init {text!r}: write constructor arguments as in a call: 32, heads=4"
        ) from error


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def parse_input(text: str) -> dict[str, Any]:
    """``"B,3,32"`` or ``"B,T:int64:0:100"``: sizes and dimension names, dtype, lowest and highest value."""
    shape, *rest = text.split(":")
    sizes = [_number(size.strip()) for size in shape.split(",") if size.strip()]
    entry: dict[str, Any] = {"shape": sizes, "dtype": rest[0] if rest else "float32"}
    if len(rest) == 3:
        entry["range"] = [_number(rest[1]), _number(rest[2])]
    elif len(rest) > 1:
        raise UserError(f"--input {text!r}: write SHAPE:DTYPE:LOW:HIGH, such as B,T:int64:0:100")
    return entry


def _dims(inputs: Sequence[dict[str, Any]], given: Sequence[str]) -> dict[str, Any]:
    dims: dict[str, Any] = {}
    for entry in inputs:
        for size in entry["shape"]:
            if isinstance(size, str) and size.isidentifier():
                dims[size] = list(DEFAULT_DIM)
    for text in given:
        name, _, bounds = text.partition("=")
        low, _, high = bounds.partition(":")
        if not (name.isidentifier() and low.isdigit() and (high or low).isdigit()):
            raise UserError(f"--dim {text!r}: write NAME=LOW:HIGH, such as B=1:8")
        dims[name] = [int(low), int(high or low)]
    return dims


@contextmanager
def selection(
    config: str | None, names: Sequence[str], torch: str | None, **flags: Any
) -> Iterator[tuple[Config, list[str]]]:
    """The configuration and the names of the cases to run: those of pyproject.toml, or one made of flags."""
    if torch is not None:
        require("torch")
        with quick_case(torch, **flags) as case:
            yield Config(root=Path.cwd(), cases=(case,)), [case.name]
        return
    settings = load_config(Path(config) if config else None)
    chosen = [case.name for case in select(settings, names)]
    if not chosen:
        raise UserError(
            "no case to verify: add a [[tool.migrate.case]] to pyproject.toml, or use --torch"
        )
    yield settings, chosen


@contextmanager
def quick_case(
    torch: str,
    *,
    jax: str | None = None,
    init: str = "",
    inputs: Sequence[str] = (),
    dims: Sequence[str] = (),
) -> Iterator[Case]:
    """A case from flags. Where no port is named, the torch file is converted for the occasion.

    Raises:
      UserError: flags that cannot be read, or a file that does not convert whole.
    """
    entries = [parse_input(text) for text in inputs]
    entry: dict[str, Any] = {
        "torch": torch,
        "init": parse_init(init),
        "inputs": entries,
        "dims": _dims(entries, dims),
    }
    with tempfile.TemporaryDirectory(prefix="migrate-") as directory:
        if jax is None:
            file, _, name = torch.partition(":")
            jax = f"{_converted(Path(file), Path(directory))}:{name}"
        yield parse_case({**entry, "jax": jax}, Path.cwd(), "command line")


def verify_each(
    config: Config, names: Sequence[str], jobs: int, **options: Any
) -> Iterator[Report]:
    """The reports of cases in their order, ``jobs`` of them at work at a time, each in a process of its own.

    ``options`` are those of ``migrator.verifying.verify_cases``.
    """
    work = partial(_verify_one, config, options)
    if jobs == 1 or len(names) == 1:
        yield from map(work, names)
        return
    pool = ProcessPoolExecutor(min(jobs, len(names)), get_context("spawn"))
    with pool:
        try:
            yield from pool.map(work, names)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _verify_one(config: Config, options: Mapping[str, Any], name: str) -> Report:
    return verify_cases(config, [name], **options)[0]


def _converted(source: Path, directory: Path) -> Path:
    conversion = convert_path([source], directory)
    if not conversion.complete:
        left = [f for f in conversion.findings if f.blocks] or conversion.findings
        raise UserError(
            f"{source} does not convert whole, so there is nothing to compare yet: {left[0]}"
            f" ({len(left)} in all; `migrate analyze {source}` lists them)"
        )
    return conversion.written[0].resolve()


def abstract_port(target: str, init: str) -> Any:
    """The converted module ``"file.py:Class"`` with shapes in place of arrays.

    A constructor that looks at values is run for real.

    Raises:
      UserError: no such file or class, or what its construction raised.
    """
    import jax
    from flax import nnx

    if ":" not in target:
        raise UserError(f"--module {target!r} names no class; write file.py:Class")
    options = parse_init(init)
    case = Case(target, target, target, tuple(options["args"]), options["kwargs"])
    config = Config(root=Path.cwd())
    try:
        return nnx.eval_shape(lambda: build_flax(case, config))
    except PortError as error:
        looks_at_values = (
            jax.errors.ConcretizationTypeError,
            jax.errors.TracerArrayConversionError,
            jax.errors.TracerIntegerConversionError,
        )
        if isinstance(error.__cause__, looks_at_values):
            return build_flax(case, config)
        raise


def convert_weights(
    file: str,
    target: str,
    init: str,
    out: str,
    *,
    key: str | None = None,
    force: bool = False,
    progress: Callable[[str], None] = lambda key: None,
) -> int:
    """``migrate weights``: see ``migrator.checkpoint.write_checkpoint``; errors are one line."""
    for package in ("jax", "flax", *(() if file.endswith(".safetensors") else ("torch",))):
        require(package)
    from migrator.checkpoint import write_checkpoint

    try:
        module = abstract_port(target, init)
        return write_checkpoint(
            Path(file), module, Path(out), key=key, force=force, progress=progress
        )
    except (KeyError, ValueError) as error:
        raise UserError(f"{file} does not fit {target}: {error.args[0]}") from error
