"""The process that runs the original: ``python -m migrator.observe.record ANSWER``, a ``Request`` on its input.

It imports the files of the cases as instrumented copies, builds each model, calls it in the ways that ``verify``
would, and writes what every place of those files was seen to hold: values are described, never kept.
"""

from __future__ import annotations

import builtins
import json
import pickle
import sys
import time
from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from itertools import product
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from migrator.building import build_torch, require, spec_of, target_file
from migrator.config import Case, Config
from migrator.errors import UserError
from migrator.observe.instrument import TELL, Place, instrument
from migrator.usercode import AsItStands, UserCode, describe

BUDGET = 120.0
"""Seconds after which no further run of a model is started, where its case does not say."""
MANY = 1000
"""A list of more items than that is not looked into."""
DEEP = 4
WIDE = 16
"""The items of a longer tuple are not told apart."""
_PYTHON = (bool, int, float, complex, str, bytes, tuple, list, dict, set, frozenset)

Description = tuple[Any, ...]
"""What is told of a value: its sort, and what belongs to the sort. ``ANY`` where that is nothing."""
ANY: Description = ("any",)


@dataclass(frozen=True)
class Request:
    """What to run and where to look.

    Attributes:
      files: resolved paths of the files of which places are told.
      roots: directories of the installed libraries that some of the files belong to.
    """

    config: Config
    names: tuple[str, ...]
    files: frozenset[str]
    roots: tuple[str, ...] = ()


class Recorder:
    """Keeps, for each place, the different descriptions of what stood there."""

    def __init__(self) -> None:
        import numpy as np
        import torch

        self._torch = torch
        self._unclear = (torch.Tensor, np.generic, *_PYTHON)
        """Of instances of these and of derived classes that are not told apart above, nothing is told."""
        self.places: dict[tuple[str, Place], set[Description]] = {}

    def tell(self, file: str, place: Place, value: Any) -> Any:
        """Note a value and give it back."""
        self.places.setdefault((file, place), set()).add(self.describe(value, 0))
        return value

    def describe(self, value: Any, depth: int) -> Description:
        """What a value is; nothing of the user's runs for that."""
        kind = type(value)
        torch = self._torch
        if kind is torch.Tensor or kind is torch.nn.Parameter:
            dtype = str(value.dtype).removeprefix("torch.")
            return "tensor", dtype, value.dim(), kind is torch.nn.Parameter
        if value is None or kind in (bool, int, float, complex, str):
            return "scalar", kind.__name__
        if kind in (list, tuple, torch.Size, dict, OrderedDict):
            return self._container(value, kind, depth)
        if issubclass(kind, torch.nn.Module):
            return self._module(value, kind, depth)
        if kind in (torch.dtype, torch.device, torch.Generator):
            return "torch", kind.__name__
        if issubclass(kind, type):
            return ("class",) if issubclass(value, torch.nn.Module) else ANY
        if issubclass(kind, self._unclear) or callable(value):
            return ANY
        return "object", *_name(kind)

    def _container(self, value: Any, kind: type, depth: int) -> Description:
        if depth == DEEP or len(value) > MANY:
            return ANY
        parts = value.values() if issubclass(kind, dict) else value
        items = tuple(self.describe(part, depth + 1) for part in parts)
        if issubclass(kind, tuple) and len(items) <= WIDE:
            return ("tuple", *items)
        if issubclass(kind, tuple):
            return ("tuples", *_different(items))
        return "dict" if issubclass(kind, dict) else "list", *_different(items)

    def _module(self, value: Any, kind: type, depth: int) -> Description:
        nn = self._torch.nn
        children: tuple[Description, ...] = ()
        if depth < DEEP and issubclass(kind, (nn.Sequential, nn.ModuleList, nn.ModuleDict)):
            below = vars(value).get("_modules", {}).values()  # none while it is being built
            children = _different([self.describe(child, depth + 1) for child in below])
        return "module", *_name(kind), *children


def _different(items: Collection[Description]) -> tuple[Description, ...]:
    return tuple(sorted(set(items), key=repr))


def _name(kind: type) -> tuple[str, str, str]:
    """The file, module and name of a class."""
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None)
    return str(Path(file).resolve()) if file else "", kind.__module__, kind.__name__


def run_case(case: Case, config: Config, code: UserCode) -> None:
    """Build the torch side of a case and call it: several sizes, optional arguments given or not, both modes.

    Raises:
      UserError: it cannot be built or called, with what it raised and where.
    """
    from numerics.inputs import materialise
    from numerics.recipes import seeded
    from numerics.runners import TorchMode, call_tensors, prepared

    module = build_torch(case, config, code)
    spec = spec_of(case, config, code)
    start = time.monotonic()
    for number, (example, train) in enumerate(_ways(case, spec)):
        if number > 1 and time.monotonic() - start > (case.budget or BUDGET):
            return
        mode = TorchMode(train)
        try:
            with code.active(), seeded(case.seed):
                args, kwargs = call_tensors(*materialise(spec, example), mode, {})
                prepared(module, mode)(*args, **kwargs)
        except UserError:
            raise
        except Exception as error:
            where = describe(error, target_file(case.torch, config))
            raise UserError(
                f"case {case.name}: {case.torch} raises when called: {where}"
            ) from error


def _ways(case: Case, spec: Any) -> Iterator[tuple[Any, bool]]:
    from numerics.inputs import Example
    from numerics.spec import size_choices

    modes = (False, True) if case.train else (False,)
    for seed, sizes, train in product((0, 1), size_choices(spec, max(case.shapes, 2)), modes):
        yield Example(tuple(sizes.items()), seed=seed), train


class _Libraries:
    """Finds the modules of installed libraries as Python does, and has a loader of ours read some of their files."""

    def __init__(
        self, roots: Collection[str], files: Collection[str], loader: type[SourceFileLoader]
    ) -> None:
        self._names = {Path(root).name for root in roots}
        self._files = files
        self._loader = loader

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] not in self._names:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if (
            spec is None
            or spec.origin is None
            or str(Path(spec.origin).resolve()) not in self._files
        ):
            return None
        spec.loader = self._loader(name, spec.origin)
        return spec


@contextmanager
def _told_of(
    roots: Collection[str], files: Collection[str], loader: type[SourceFileLoader]
) -> Iterator[None]:
    """While it is active these files of libraries are read by the loader; the modules are forgotten afterwards."""
    path, before = sys.path[:], set(sys.modules)
    finder = _Libraries(roots, files, loader)
    sys.meta_path.insert(0, finder)
    # where they were found to be converted, which this process might not look
    sys.path += sorted({str(Path(root).parent) for root in roots} - set(path))
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        sys.path[:] = path
        names = {Path(root).name for root in roots}
        for name in set(sys.modules) - before:
            if name.partition(".")[0] in names:
                del sys.modules[name]


def record(request: Request) -> dict[str, Any]:
    """Run the cases; the descriptions by file and place, ready for JSON.

    Raises:
      UserError: a case cannot be run.
    """
    require("torch")
    recorder = Recorder()

    class Instrumented(AsItStands):
        def source_to_code(self, data: Any, path: Any, **_: Any) -> CodeType:  # type: ignore[override]
            name = str(Path(path).resolve())
            if name not in request.files:
                return compile(data, path, "exec", dont_inherit=True)
            text = bytes(data).decode("utf-8-sig")
            return compile(instrument(text, name), path, "exec", dont_inherit=True)

    setattr(builtins, TELL, recorder.tell)
    try:
        with _told_of(request.roots, request.files, Instrumented):
            for case in request.config.cases:
                if case.name not in request.names:
                    continue
                if case.problem is not None:
                    raise UserError(case.problem)
                directory = target_file(case.torch, request.config).parent
                code = UserCode(request.config.root, directory, Instrumented)
                run_case(case, request.config, code)
    finally:
        delattr(builtins, TELL)
    found: dict[str, list[Any]] = {}
    for (file, place), kinds in recorder.places.items():
        found.setdefault(file, []).append([place, _different(kinds)])
    return {"files": found}


def main() -> None:
    """Answer one request, as JSON in the file that is named; it holds ``files``, or ``error`` with one line."""
    request: Request = pickle.load(sys.stdin.buffer)
    sys.stdout = sys.stderr  # what the user's code prints is no answer
    try:
        answer = record(request)
    except UserError as error:
        answer = {"error": str(error)}
    except SystemExit as error:
        answer = {"error": f"the original ends the program, with status {error.code!r}"}
    Path(sys.argv[1]).write_text(json.dumps(answer), encoding="utf-8")


if __name__ == "__main__":
    main()
