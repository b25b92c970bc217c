"""Convert a package, and compare each class of modules of its complete files with torch.

    python -m tests.corpora.classes PACKAGE --work build/classes [PREFIX]...

The package is looked for where Python looks for packages (PYTHONPATH); PREFIX are the beginnings of the names of modules to
look at. What a class is built of and called with is guessed from its signature: a class that torch cannot build so is left
out. Each runs in a process of its own; a line for each goes to ``WORK/PACKAGE.txt``.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import inspect
import json
import logging
import os
import signal
import socket
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from flax import nnx

import migrator
from migrator.package.members import members
from migrator.package.run import read_project
from migrator.package.table import Table
from migrator.project import convert_path
from migrator.source import read_text
from migrator.verifying import keep_compilations
from migrator.weights import load_state_dict, to_state_dict, unstored
from numerics.pair import Pair
from numerics.spec import Array, InputSpec
from numerics.verify import Settings, verify_pair
from tests.corpora.guesses import Drawn, arguments, draw, inputs
from tests.corpora.libraries import register_operators
from tests.corpora.one import outcome, short

ROOT = Path(__file__).resolve().parents[2]
LARGE = 30_000_000
TRAINED = 3_000_000
"""Numbers of a model beyond which it is not compared at all, or in training."""


class TooLong(Exception):
    """torch takes too long to build or to run a class."""


def convert(package: str, work: Path) -> list[str]:
    """Convert a package below ``work``; the modules whose files are complete, with all that they read of other files."""
    spec = importlib.util.find_spec(package)
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    if not places:
        raise SystemExit(f"{package} is no package that Python finds")
    root = Path(places[0])
    made = convert_path([root], work / f"{package}_flax", force=True, jobs=1, strict=False)
    # what stands here of other libraries comes along, and is not asked about
    own = [one for one in made.files if one.file.path.is_relative_to(root)]
    every = members((one.file.path, one.file.name) for one in own)
    table = read_project(every, read_text, None).table
    complete = {m.module for m, one in zip(every, own, strict=True) if one.complete}
    whole = [
        m.module for m in every if m.module in complete and behind(m.module, table) <= complete
    ]
    print(
        f"{package}: {len(complete)} of {len(own)} files are complete, "
        f"{len(whole)} with what they read",
        flush=True,
    )
    return whole


def behind(module: str, table: Table) -> set[str]:
    """The files that one reads something of, and those that these do."""
    waiting, seen = [module], {module}
    while waiting:
        new = table.dependencies(waiting.pop()) - seen
        seen |= new
        waiting.extend(new)
    return seen - {module}


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Raise TooLong where something takes longer."""

    def stop(*_: object) -> None:
        raise TooLong

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def built(kind: type[torch.nn.Module]) -> tuple[dict[str, Any], list[Drawn]] | str:
    """Arguments and inputs that torch takes; why there are none."""
    why = "no input is taken"
    for given in arguments(kind):
        try:
            with within(20):
                model = kind(**given)
        except Exception as error:
            why = short(error)
            continue
        if sum(one.numel() for one in model.parameters()) > LARGE:
            return "large"
        for wanted in inputs(model):
            try:
                with within(10), torch.no_grad():
                    out = model.eval()(*draw(wanted))
            except TooLong:
                return "no time"
            except Exception:
                continue
            if any(isinstance(one, torch.Tensor) for one in torch.utils._pytree.tree_leaves(out)):
                return given, wanted
    return why


def compare(module: str, name: str, tell: Callable[[str], None]) -> None:
    """Compare a class of a package with that of its port."""
    torch.manual_seed(0)
    kind = getattr(importlib.import_module(module), name)
    found = built(kind)
    if isinstance(found, str):
        tell(f"left out: {found}")
        return
    given, wanted = found
    tell(f"{given} of {wanted}")
    model = kind(**given)
    package, *rest = module.split(".")
    port_of = getattr(importlib.import_module(".".join([f"{package}_flax", *rest])), name)
    takes = "rngs" in inspect.signature(port_of.__init__).parameters
    port = port_of(**given, **({"rngs": nnx.Rngs(0)} if takes else {}))
    migrator.load_state_dict(port, model.state_dict())
    small = sum(one.numel() for one in model.parameters()) < TRAINED
    settings = Settings(examples=2, shapes=1, train=small, grad=small, shrink_seconds=0)
    bounds: dict[str, dict[str, Any]] = {
        "float": {},
        "int": {"dtype": "int64", "low": 0, "high": 2},
        "bool": {"dtype": "bool"},
    }
    spec = InputSpec(tuple(Array(shape, **bounds[dtype]) for dtype, shape in wanted))
    pair = Pair(model, port, spec, load_state_dict, to_state_dict, settings, rest=unstored)
    tell(json.dumps(outcome(verify_pair(pair, settings, name))))


def apart(module: str, name: str, seconds: float) -> str:
    """What comes of a class, in a process of its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)

        def tell(text: str) -> None:
            os.write(writer, f"{' '.join(text.split())} | ".encode())

        try:
            compare(module, name, tell)
        except BaseException as error:
            tell(f"RAISES {short(error)}")
        os._exit(0)
    os.close(writer)
    os.set_blocking(reader, False)
    told, end = b"", time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            part = os.read(reader, 65536)
        except BlockingIOError:
            time.sleep(0.05)
            continue
        if not part:
            break
        told += part
    else:
        told += b"no time"
    os.close(reader)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return told.decode().removesuffix(" | ")


def classes(modules: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The classes of modules that some files define; those of a file that torch's side does not import are left out."""
    for name in modules:
        try:
            module = importlib.import_module(name)
        except BaseException as error:
            print(f"{name}: not imported: {short(error)[:120]}", flush=True)
            continue
        for key, kind in sorted(vars(module).items()):
            own = inspect.isclass(kind) and issubclass(kind, torch.nn.Module)
            if own and kind.__module__ == name and not inspect.isabstract(kind):
                yield name, key


def refused(*_: object, **__: object) -> Any:
    """Stands for the network."""
    raise OSError("no network")


def main(argv: Sequence[str] | None = None) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("package")
    parser.add_argument("prefixes", nargs="*")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "classes")
    parser.add_argument("--seconds", type=float, default=120.0)
    options = parser.parse_args(argv)
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
    warnings.simplefilter("ignore")
    sys.setrecursionlimit(10_000)
    torch.set_num_threads(1)
    work = options.work.resolve()
    modules = convert(options.package, work)
    chosen = [m for m in modules if m.startswith(tuple(options.prefixes) or (options.package,))]
    socket.create_connection = socket.getaddrinfo = refused
    logging.disable(logging.CRITICAL)
    register_operators()
    keep_compilations()
    sys.path.insert(0, str(work))
    with (work / f"{options.package}.txt").open("w", encoding="utf-8") as log:
        for module, name in classes(chosen):
            line = f"{module}:{name} | {apart(module, name, options.seconds)}"
            print(line, flush=True)
            print(line, file=log, flush=True)


if __name__ == "__main__":
    main()
