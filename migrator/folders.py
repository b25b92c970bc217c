"""Folders that are packages without an ``__init__.py``."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

RESERVED = frozenset("torch jax flax numpy scipy einops".split())


class Resolved:
    """``path.resolve()`` of many files, the folders of which are looked at once."""

    def __init__(self) -> None:
        self._folders: dict[Path, Path] = {}

    def __call__(self, path: Path) -> Path:
        if path.name in ("", "..") or path.is_symlink():
            return path.resolve()
        folder = path.parent
        if folder not in self._folders:
            self._folders[folder] = folder.resolve()
        return self._folders[folder] / path.name


_BARE = re.compile(r"^\s*(?:from|import)\s+(\w+)", re.MULTILINE)


@cache
def imports_itself(folder: Path) -> tuple[str, ...]:
    """The parts of the name under which files of a folder without ``__init__.py`` import one another; else empty.

    Such a folder is a package all the same where the one above it is looked up (``from models.blocks import Block`` in
    ``models/``, and ``from project.models.blocks`` just so). A folder of which a file imports another by its bare name
    holds scripts. Its own files and those one level below are read: a home directory may be asked for.
    """
    if (
        (folder / "__init__.py").is_file()
        or not folder.name.isidentifier()
        or folder.name in RESERVED
    ):
        return ()
    said = re.compile(
        rf"^\s*(?:from|import)\s+((?:\w+\.)*){re.escape(folder.name)}\.(\w+)", re.MULTILINE
    )
    names: set[tuple[str, ...]] = set()
    own = sorted(folder.glob("*.py"))
    for file in [*own, *sorted(folder.glob("*/*.py"))] if own else ():
        try:
            text = file.read_text(encoding="utf-8", errors="replace")
        except OSError:  # a directory of that name, or somebody else's file beside the user's
            continue
        bare = set(_BARE.findall(text)) - sys.stdlib_module_names
        if any((file.parent / f"{name}.py").is_file() for name in bare):
            return ()
        for found in said.finditer(text) if folder.name in text else ():
            above = tuple(found[1].split(".")[:-1])
            there = folder / found[2]
            if folder.parts[-1 - len(above) : -1] == above and (
                there.with_suffix(".py").is_file() or there.is_dir()
            ):
                names.add((*above, folder.name))
    return min(names, key=len, default=())


def imported_folders(named: list[Path], below: Callable[[Path], Iterable[Path]]) -> dict[Path, str]:
    """Of several paths those that keep their folder in the output, since a file among them imports by it: ``models/…``.

    A folder is named itself, or files of it are; a package keeps its name in any case: the output takes the place of a
    directory, but not of a package beside something else. ``below`` gives the files of a directory.
    """
    if len(named) < 2 or not all(one.exists() for one in named):
        return {}
    packages = {one: one.resolve().name for one in named if (one / "__init__.py").is_file()}
    around = Path(os.path.commonpath([one.resolve().parent for one in named]))
    folders = {
        one: (one if one.is_dir() else one.parent).resolve().relative_to(around).as_posix()
        for one in named
    }
    folders = {one: name for one, name in folders.items() if name != "."}
    if not folders:
        return packages
    said: set[str] = set()
    for one in named:
        for file in below(one) if one.is_dir() else [one]:
            try:
                text = file.read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            said.update(_DOTTED.findall(text))
    return packages | {
        one: name
        for one, name in folders.items()
        if one not in packages
        and any(f"{word}.".startswith(f"{name.replace('/', '.')}.") for word in said)
    }


_DOTTED = re.compile(r"^\s*(?:from|import)\s+([\w.]+)", re.MULTILINE)
