"""What a project asks to be installed that is built on torch."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from migrator.findings import Finding

_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")


def requirements(directories: Iterable[Path]) -> list[Finding]:
    """Requirements of projects that are torch or built on it, as findings that block nothing.

    Read are ``requirements*.txt`` and ``pyproject.toml`` of each directory, and of the one above a package.
    """
    found: list[Finding] = []
    seen: set[Path] = set()
    for directory in directories:
        above = [directory.resolve().parent] if (directory / "__init__.py").is_file() else []
        for folder in (directory, *above):
            for path in [*sorted(folder.glob("requirements*.txt")), folder / "pyproject.toml"]:
                if path.is_file() and path.resolve() not in seen:
                    seen.add(path.resolve())
                    found.extend(_of_file(path))
    return found


def _of_file(path: Path) -> Iterator[Finding]:
    from migrator.infer.symbols import BASED_ON_TORCH

    try:
        text = path.read_text(encoding="utf-8")
        names = _listed(tomllib.loads(text)) if path.suffix == ".toml" else text.splitlines()
    except (OSError, ValueError):
        return
    for line in names:
        match = _NAME.match(line)
        name = match[1] if match is not None else ""
        if name.lower().replace("-", "_") not in BASED_ON_TORCH | {"torch"}:
            continue
        at = next((i for i, one in enumerate(text.splitlines(), 1) if name in one), 1)
        what = "is not needed by the converted code" if name == "torch" else "is built on torch"
        yield Finding(
            "API004",
            f"the requirement {name} {what}",
            "info",
            at,
            path=str(path),
            advice="require jax and flax in its place",
            snippet=text.splitlines()[at - 1],
        )


def _listed(document: dict[str, Any]) -> list[str]:
    """The requirements of a pyproject.toml, those of poetry too."""
    project = document.get("project", {})
    found = list(project.get("dependencies", []))
    for several in project.get("optional-dependencies", {}).values():
        found.extend(several)
    found.extend(document.get("tool", {}).get("poetry", {}).get("dependencies", {}))
    return [str(one) for one in found]
