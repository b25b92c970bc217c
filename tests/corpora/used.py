"""Which findings of a converted library an architecture meets: those in code that runs when it is built and called.

The original is watched while it is built and run. A finding counts where its innermost function or class has been
used; one at the top of a file, where anything of the file has been used; one of an import, where code that ran reads a
name that it brings. More narrowly, it is asked whether the very statement has run.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from migrator.findings import Finding

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass
class Used:
    """What ran of a library.

    Attributes:
      lines: file → first lines of functions and classes.
      names: file → names that their code reads.
      run: file → lines that were run.
    """

    root: Path
    lines: dict[str, set[int]] = field(default_factory=dict)
    names: dict[str, set[str]] = field(default_factory=dict)
    run: dict[str, set[int]] = field(default_factory=dict)

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Note each function of the library that is called, and each line of it that is run."""
        root = f"{self.root}/"

        def called(frame: FrameType, event: str, _: Any) -> Any:
            file = frame.f_code.co_filename
            if not file.startswith(root):
                return None
            self._note(frame.f_code)
            run = self.run.setdefault(file, set())

            def line(frame: FrameType, event: str, _: Any) -> Any:
                if event == "line":
                    run.add(frame.f_lineno)
                return line

            return line

        before = sys.gettrace()
        sys.settrace(called)
        try:
            yield
        finally:
            sys.settrace(before)

    def _note(self, code: CodeType) -> None:
        lines = self.lines.setdefault(code.co_filename, set())
        if code.co_firstlineno not in lines:
            lines.add(code.co_firstlineno)
            self.names.setdefault(code.co_filename, set()).update(_read(code))

    def note_classes(self, modules: Sequence[Any]) -> None:
        """Count the classes of modules as used, with those they derive from, though no method of theirs has run."""
        for one in {cls for module in modules for cls in type(module).__mro__}:
            file = getattr(sys.modules.get(one.__module__), "__file__", None) or ""
            if file.startswith(f"{self.root}/"):
                self.lines.setdefault(file, set()).update(
                    _first_line(scope)
                    for scope in _scopes(file)
                    if isinstance(scope, ast.ClassDef) and scope.name == one.__name__
                )

    def meets(self, finding: Finding) -> bool:
        """Whether a finding stands in what ran."""
        ran = self.lines.get(finding.path)
        if not ran:
            return False
        inside = [s for s in _scopes(finding.path) if _first_line(s) <= finding.line <= _end(s)]
        if not inside:
            brought = _brought(finding.path, finding.line)
            return brought is None or bool(brought & self.names.get(finding.path, set()))
        innermost = max(inside, key=_first_line)
        return any(_first_line(innermost) <= line <= _end(innermost) for line in ran)

    def reaches(self, finding: Finding) -> bool:
        """Whether the very statement of a finding has run, of one that ``meets``."""
        around = [
            node
            for node in ast.walk(_tree(finding.path))
            if isinstance(node, ast.stmt) and node.lineno <= finding.line <= (node.end_lineno or 0)
        ]
        if not any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in around):
            return True
        innermost = max(around, key=lambda node: node.lineno)
        body = getattr(innermost, "body", None)
        end = body[0].lineno - 1 if body else innermost.end_lineno or innermost.lineno
        if isinstance(innermost, Scope):
            return True
        ran = self.run.get(finding.path, set())
        return any(line in ran for line in range(innermost.lineno, max(end, innermost.lineno) + 1))


def _read(code: CodeType) -> set[str]:
    """The names that a function reads, and those of the functions in it."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _read(constant)
    return found


@cache
def _tree(file: str) -> ast.Module:
    return ast.parse(Path(file).read_text(encoding="utf-8"))


@cache
def _scopes(file: str) -> tuple[Scope, ...]:
    return tuple(node for node in ast.walk(_tree(file)) if isinstance(node, Scope))


def _first_line(scope: Scope) -> int:
    """As code objects count: a decorator's line is the first."""
    return min([scope.lineno, *(decorator.lineno for decorator in scope.decorator_list)])


def _end(scope: Scope) -> int:
    return scope.end_lineno or scope.lineno


def _brought(file: str, line: int) -> set[str] | None:
    """The names that an import at the top of a file brings; None where the line has no import."""
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            if node.lineno <= line <= (node.end_lineno or line):
                return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return None
