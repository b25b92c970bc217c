"""Which cases a change can affect: ``verify --changed-since REV``."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from migrator.config import Case, Config
from migrator.errors import UserError


def changed_files(root: Path, revision: str) -> set[Path]:
    """Files that differ between a git revision and the working tree, new ones included.

    Raises:
      UserError: git cannot tell (no repository, no such revision).
    """
    found: set[Path] = set()
    for command in (
        ["diff", "--name-only", "-z", revision, "--"],
        ["ls-files", "--others", "--exclude-standard", "-z", "--full-name"],
    ):
        result = _git(root, *command)
        if result.returncode:
            reason = (result.stderr.strip().splitlines() or ["git failed"])[0]
            raise UserError(f"--changed-since {revision}: {reason}")
        top = Path(_git(root, "rev-parse", "--show-toplevel").stdout.strip())
        found.update((top / name).resolve() for name in result.stdout.split("\0") if name)
    return found


def _git(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            ["git", *arguments], cwd=root, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise UserError("--changed-since needs git, which is not installed") from None


def affected(config: Config, names: Sequence[str], revision: str) -> list[str]:
    """The names of the cases whose files, or files of the project that those import, changed; all when pyproject.toml did."""
    changed = changed_files(config.root, revision)
    if config.root / "pyproject.toml" in changed:
        return list(names)
    cases = [case for case in config.cases if case.name in names]
    return [case.name for case in cases if changed & _reach(config, case)]


def _reach(config: Config, case: Case) -> set[Path]:
    """Every file of the project that a case can execute."""
    targets = [case.torch, case.jax, case.hook, case.init_hook]
    names = [target.partition(":")[0] for target in targets if target]
    names += [converted for name in names[:1] if (converted := config.converted(name))]
    return reach(config.root, [_module_file(config.root, name) for name in names])


def reach(
    root: Path, files: Sequence[Path | None], texts: Mapping[Path, str] | None = None
) -> set[Path]:
    """The files, those of the project that they import, and the ``__init__.py`` of their packages.

    Args:
      texts: file → what of it is meant, where that is not all.
    """
    waiting = list(files)
    reached: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path is None or path in reached:
            continue
        reached.add(path)
        waiting.extend(_imported(root, path, (texts or {}).get(path)))
        package = path.parent
        while (package / "__init__.py").is_file():
            waiting.append(package / "__init__.py")
            package = package.parent
    return reached


def _module_file(root: Path, name: str) -> Path | None:
    if name.endswith(".py"):
        return (root / name).resolve()
    return next(_candidates([root, root / "src"], name), None)


def _candidates(bases: Sequence[Path], name: str) -> Iterator[Path]:
    for base in bases:
        stem = base.joinpath(*name.split("."))
        for path in (stem.with_suffix(".py"), stem / "__init__.py"):
            if path.is_file():
                yield path.resolve()


def _imported(root: Path, path: Path, text: str | None = None) -> Iterator[Path]:
    """Files of the project that a file imports; a name may be a module's or something inside one."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8") if text is None else text)
    except (OSError, SyntaxError, UnicodeDecodeError):
        return  # verifying the case will say what is wrong with it
    bases = [path.parent, root, root / "src"]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _candidates(bases, alias.name)
        elif isinstance(node, ast.ImportFrom):
            near = [path.parents[node.level - 1]] if node.level else bases
            module = f"{node.module}." if node.module else ""
            if module:
                yield from _candidates(near, module[:-1])
            for alias in node.names:
                yield from _candidates(near, module + alias.name)
