"""The modules that carry what several files of a project need."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from migrator.package.build import Outcome
from migrator.package.run import Project
from rules.definitions import ROOT, read

_DOCSTRING = '"""What torch has and JAX does not: used by the converted files around this one."""'
_ORDER = ("functools", "inspect", "math", "jax", "jnp", "np", "nnx", "lax")


def helper_modules(project: Project, done: Sequence[Outcome]) -> dict[Path, str]:
    """The helper modules that the outcomes import from: place below the output directory → source."""
    wanted: dict[str, dict[tuple[str, str], bool]] = {}
    for outcome in done:
        for path, name, factory in outcome.helpers:
            table = wanted.setdefault(project.plan.users[outcome.module], {})
            table[path, name] = table.get((path, name), False) or factory
    return {project.plan.places[home]: _module(table) for home, table in sorted(wanted.items())}


def _module(wanted: dict[tuple[str, str], bool]) -> str:
    from migrator.convert.helpers import Helpers

    helpers = Helpers(frozenset(), unique=True)
    for (path, name), factory in sorted(wanted.items()):
        made = helpers.need(read(ROOT / path), name)
        if factory:
            helpers.factories.add(made)
    body = "\n\n".join(helpers.texts()).strip("\n")
    imports = dict(helpers.imports)
    standard = [imports.pop(n) for n in _ORDER[:3] if n in imports]
    others = [imports.pop(n) for n in _ORDER[3:] if n in imports] + sorted(imports.values())
    head = "\n\n".join("\n".join(lines) for lines in (standard, others) if lines)
    return f"{_DOCSTRING}\n\n{head}\n\n\n{body}\n"
