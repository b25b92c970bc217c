"""Importing a user's files as the user would, beside packages of ours that may carry the same names."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
)
from pathlib import Path
from types import CodeType, ModuleType

from migrator.errors import UserError
from migrator.folders import imports_itself

_OURS = frozenset({"rules", "numerics", "tests", "samples", "benchmarks"})


class AsItStands(SourceFileLoader):
    """Compiles a file as it stands.

    Python takes its cached bytecode for a file of the same size that was written in the same second, so that an
    edit could go unseen.
    """

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class UserCode:
    """The modules of one user program, kept apart from ours and from those of other programs.

    While ``active`` the user's directories come first on ``sys.path``, and names such as ``rules``, ``numerics``
    or ``tests`` mean the user's files where there are any. Outside, none of it is to be seen. A program that reads its
    arguments as it is imported finds none, not those that we were started with.

    Args:
      root: directory of the project, where absolute imports start.
      directory: directory of the file, as if the file had been run as a script.
      loader: what makes code of the user's files.
    """

    def __init__(
        self, root: Path, directory: Path | None = None, loader: type[AsItStands] = AsItStands
    ) -> None:
        self._loader = loader
        self._paths = [str(path.resolve()) for path in (directory, root) if path is not None]
        self._modules: dict[str, ModuleType] = {}
        self._depth = 0
        self._script = ""

    @contextmanager
    def active(self) -> Iterator[None]:
        """Make the user's modules the visible ones."""
        if self._depth:
            yield
            return
        self._depth += 1
        path, hidden, arguments = sys.path[:], self._hide(), sys.argv
        sys.argv = [self._script]
        sys.path[:0] = self._paths
        sys.path_hooks.insert(0, self._finder)
        before = set(sys.modules)
        sys.modules.update(self._modules)
        self._forget_finders()
        importlib.invalidate_caches()
        try:
            yield
        finally:
            self._depth -= 1
            sys.path[:] = path
            sys.argv = arguments
            sys.path_hooks.remove(self._finder)
            self._forget_finders()
            for name in [n for n in sys.modules if n not in before and self._is_own(n)]:
                self._modules[name] = sys.modules.pop(name)
            sys.modules.update(hidden)

    def _is_below(self, path: str) -> bool:
        """Whether a directory holds the user's own files, not those that were installed there."""
        own = any(Path(path).is_relative_to(root) for root in self._paths)
        return own and "site-packages" not in Path(path).parts

    def _finder(self, path: str) -> FileFinder:
        if not self._is_below(path):
            raise ImportError("not the user's", path=path)
        loaders = (ExtensionFileLoader, EXTENSION_SUFFIXES), (self._loader, SOURCE_SUFFIXES)
        return FileFinder(path, *loaders)

    def _forget_finders(self) -> None:
        """Have Python ask again who finds the modules of the user's directories."""
        for path in [p for p in sys.path_importer_cache if self._is_below(p)]:
            del sys.path_importer_cache[path]

    def _hide(self) -> dict[str, ModuleType]:
        """Take out of sys.modules what is ours and the user has files of the same name for."""
        tops = {
            top
            for top in _OURS & set(sys.modules)
            if any(_provides(Path(path), top) for path in self._paths)
            and not any(_provides(Path(path), top, _origin(top)) for path in self._paths)
        }
        names = [name for name in sys.modules if name.partition(".")[0] in tops]
        return {name: sys.modules.pop(name) for name in names}

    def _is_own(self, name: str) -> bool:
        """Whether a loaded module came from the user's directories."""
        if name in self._modules or name.startswith("_migrate_"):
            return True
        origin = _origin(name)
        top = name.partition(".")[0]
        return any(_provides(Path(path), top, origin) for path in self._paths) if origin else False

    def load(self, path: Path) -> ModuleType:
        """Import a file; inside a package under its dotted name, else under a private one.

        Raises:
          UserError: no such file, or what its import raised, with file and line.
        """
        path = path.resolve()
        if not path.is_file():
            raise UserError(f"{path}: no such file")
        package = path.parent
        parts = [path.stem]
        while (package / "__init__.py").is_file():
            parts.insert(0, package.name)
            package = package.parent
        for name in reversed(imports_itself(package)):
            parts.insert(0, name)
            package = package.parent
        self._script = self._script or str(path)
        with self.active():
            if len(parts) > 1:
                if str(package) not in self._paths:  # where the package is found, as src/ may be
                    self._paths.insert(0, str(package))
                    sys.path.insert(0, str(package))
                    self._forget_finders()
                return self._import(".".join(parts), path)
            return self._import_file(f"_migrate_{abs(hash(str(path)))}_{path.stem}", path)

    def load_name(self, name: str) -> ModuleType:
        """Import a dotted module name."""
        with self.active():
            return self._import(name, None)

    def _import(self, name: str, path: Path | None) -> ModuleType:
        try:
            return importlib.import_module(name)
        except Exception as error:
            raise UserError(f"cannot import {path or name}: {describe(error, path)}") from error

    def _import_file(self, name: str, path: Path) -> ModuleType:
        if name in sys.modules:
            return sys.modules[name]
        loader = self._loader(name, str(path))
        spec = importlib.util.spec_from_file_location(name, path, loader=loader)
        if spec is None or spec.loader is None:
            raise UserError(f"{path}: not a Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            del sys.modules[name]
            raise UserError(f"cannot import {path}: {describe(error, path)}") from error
        return module


def _origin(name: str) -> str | None:
    """Where a loaded module came from, None for one that is built in."""
    module = sys.modules[name]
    places = [getattr(module, "__file__", None), *getattr(module, "__path__", [])]
    return next((place for place in places if isinstance(place, str)), None)


def _provides(directory: Path, name: str, origin: str | None = None) -> bool:
    """Whether ``directory`` holds top-level module ``name`` (and ``origin`` lies in it)."""
    file, package = directory / f"{name}.py", directory / name
    if origin is not None:
        return origin == str(file) or Path(origin).is_relative_to(package)
    return file.is_file() or (package.is_dir() and any(package.glob("*.py")))


def describe(error: BaseException, path: Path | None = None) -> str:
    """``line 3: ModuleNotFoundError: No module named 'timm'``: the innermost line of the user's file."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if path is not None and Path(f.filename).resolve() == path.resolve()]
    if isinstance(error, SyntaxError) and error.lineno:
        at = f"{error.filename}:{error.lineno}: "
    else:
        at = f"line {own[-1].lineno}: " if own else ""
    text = str(error).strip().splitlines()
    return f"{at}{type(error).__name__}: {text[0] if text else ''}"
