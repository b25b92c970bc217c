"""What a run of the original showed, as kinds at places of its files."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import libcst as cst

import migrator
from migrator import syntax
from migrator.errors import UserError
from migrator.findings import OBSERVED, Finding
from migrator.infer import kinds as k
from migrator.infer.annotations import dtype_class
from migrator.infer.observed import described
from migrator.infer.symbols import canonical
from migrator.observe.record import Description, Request
from migrator.package.follow import Followed
from migrator.package.members import members
from migrator.project import File
from migrator.quick import selection
from migrator.source import Source, Span, read_text

_TORCH: Mapping[str, k.Kind] = {
    "dtype": k.DType(),
    "device": k.Device(),
    "Generator": k.Generator(),
}


@dataclass(frozen=True)
class Fact:
    """The kind that was seen at one place.

    Attributes:
      module, place: file and index in its ``Tree``, as for ``migrator.infer.observed.Observed``.
      text, line, function: what stands there, in which source line and function.
      dtype: the dtype that all tensors seen there had, where it was one.
      rank: facts of lower rank say more at once: parameters, then names that are bound, then what is read.
    """

    module: str
    place: int
    kind: k.Kind
    path: str
    span: Span
    text: str
    line: str
    function: str
    dtype: str = ""
    rank: int = 0

    def finding(self) -> Finding:
        """The note that the conversion rests on the fact."""
        where = f" of {self.function}()" if self.function else ""
        text = f"observed, not proven: `{self.text}`{where} is {described(self.kind, self.dtype)}"
        span = self.span
        place = (span.line, span.column, span.end_line, span.end_column)
        return Finding(OBSERVED, text, "info", *place, self.path, "", self.line)


def observe(
    cases: Sequence[str], files: Sequence[File], copies: Followed | None = None
) -> list[Fact]:
    """Run cases in a process of its own and return what was seen in the files, most telling facts first.

    Args:
      cases: names of cases in pyproject.toml, or files that make their own inputs, as ``verify`` takes them.
      copies: the files are these copies; what runs, and what facts name, are the files they were made from.

    Raises:
      UserError: no such case; the original cannot be imported, built or called; none of the files was run.
    """
    every = members((file.path, file.name) for file in files)
    origins = {member.module: _origin(Path(member.path), copies) for member in every}
    modules = {str(path.resolve()): module for module, path in origins.items()}
    roots = tuple(map(str, copies.roots)) if copies is not None else ()
    with selection(None, cases, None, port=False) as (config, names):
        seen = _run(Request(config, tuple(names), frozenset(modules), roots))
    if not seen:
        raise UserError(f"--observe {', '.join(names)}: runs none of the files that are converted")
    facts: list[Fact] = []
    for member in every:
        origin = origins[member.module]
        told = seen.get(str(origin.resolve()))
        if told is not None:
            source = Source(read_text(member.path), origin, member.module)
            lines = source.lines if copies is None else read_text(origin).splitlines()
            facts += _facts(source, told, modules, lines)
    return sorted(facts, key=lambda fact: (fact.rank, fact.module, fact.place))


def _origin(path: Path, copies: Followed | None) -> Path:
    return path if copies is None else copies.origins[path].path


def _run(request: Request) -> dict[str, list[Any]]:
    """Descriptions by file and place, from the process that runs the original."""
    root = str(Path(migrator.__file__).parents[1])
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "JAX_PLATFORMS": "cpu",
        "TORCHDYNAMO_DISABLE": "1",  # a compiled function would run without the copy's calls
    }
    names = ", ".join(request.names)
    with tempfile.TemporaryDirectory(prefix="migrate-") as directory:
        result = Path(directory) / "observed.json"
        done = subprocess.run(
            [sys.executable, "-P", "-m", "migrator.observe.record", str(result)],
            input=pickle.dumps(request),
            stdout=2,
            env=environment,
            check=False,
        )
        if not result.is_file():
            died = f"the process that runs the original died, status {done.returncode}"
            raise UserError(f"--observe {names}: {died}")
        answer = json.loads(result.read_text(encoding="utf-8"))
    if "error" in answer:
        raise UserError(f"--observe: {answer['error']}")
    files: dict[str, list[Any]] = answer["files"]
    return files


# --- kinds ------------------------------------------------------------------------------------------------------


def _facts(
    source: Source, told: Iterable[Any], modules: Mapping[str, str], lines: Sequence[str]
) -> Iterable[Fact]:
    """The facts of a file: places at which all that was seen is of one kind.

    Args:
      lines: those of the file that ran; where they are others than the source's, nothing is known.
    """
    tree = source.index
    spans = {node: source.span(node) for node in tree.of_type(*_PLACES)}
    places = {(s.line, s.column, s.end_line, s.end_column): n for n, s in spans.items()}
    for place, descriptions in told:
        node = places.get(tuple(place))
        if node is None or lines[place[0] - 1 : place[2]] != source.lines[place[0] - 1 : place[2]]:
            continue
        if not isinstance(node, (cst.Attribute, cst.Call)):  # a name holds a parameter's value
            descriptions = [[*d[:3], False] if d[0] == "tensor" else d for d in descriptions]
        kind = joined(descriptions, modules)
        if kind == k.UNKNOWN or kind == k.NONE:  # only ever None says nothing of other runs
            continue
        yield _fact(
            source, node, kind, spans[node], {d[1] for d in descriptions if d[0] == "tensor"}
        )


_PLACES = (cst.Name, cst.Attribute, cst.Subscript, cst.Call, cst.BooleanOperation, cst.IfExp)


def _fact(source: Source, node: cst.CSTNode, kind: k.Kind, span: Span, dtypes: set[str]) -> Fact:
    above = source.index.around(node)
    names = [n.name.value for n in above if isinstance(n, (cst.ClassDef, cst.FunctionDef))]
    inside = any(isinstance(n, cst.FunctionDef) for n in above)
    rank = 0 if isinstance(above[-1], cst.Param) else 1 if isinstance(above[-1], _BINDING) else 2
    return Fact(
        source.module,
        source.index.place(node),
        kind,
        source.path,
        span,
        " ".join(syntax.code(node).split()),
        source.excerpt(span.line),
        ".".join(names) if inside else "",
        dtypes.pop() if len(dtypes) == 1 and isinstance(kind, k.Tensor) else "",
        rank,
    )


_BINDING = (cst.For, cst.CompFor, cst.Element)


def kind_of(description: Description, modules: Mapping[str, str]) -> k.Kind:
    """The kind of a value that ``record`` has described; values themselves are never part of it.

    Args:
      modules: file → module, for the classes of the files that are converted.
    """
    sort, *rest = description
    if sort == "tensor":
        dtype, rank, parameter = rest
        return k.Tensor(rank, dtype_class(dtype), "param" if parameter else "")
    if sort == "scalar":
        return k.NONE if rest[0] == "NoneType" else k.Scalar(rest[0])
    if sort == "torch":
        return _TORCH[rest[0]]
    if sort == "class":
        return k.Class("")
    if sort == "object":
        file, home, name = rest
        return k.Other(f"{modules.get(file, home)}.{name}")
    if sort == "module":
        return _module(rest, modules)
    items = [k.without_role(kind_of(one, modules)) for one in rest]
    if sort == "tuple":
        return k.Tuple(tuple(items))
    item = reduce(k.join, items) if items else k.UNKNOWN
    if sort == "dict":
        return k.Mapping(item)
    return k.Sequence(item, "list" if sort == "list" else "tuple") if sort != "any" else k.UNKNOWN


def joined(descriptions: Sequence[Description], modules: Mapping[str, str]) -> k.Kind:
    """The kind of all that was seen at a place; what an empty list would hold is left to those that are not."""
    filled = {tuple(d[:1]) for d in descriptions if len(d) > 1}
    some = [d for d in descriptions if len(d) > 1 or d[0] == "any" or tuple(d) not in filled]
    return reduce(k.join, (kind_of(one, modules) for one in some))


def _module(described: Sequence[Any], modules: Mapping[str, str]) -> k.Kind:
    file, home, name, *children = described
    own = home.startswith("torch.nn.")
    cls = (
        canonical(f"{home}.{name}") if own else f"{modules[file]}.{name}" if file in modules else ""
    )
    kinds = [kind_of(child, modules) for child in children]
    return k.Module(cls or "torch.nn.Module", reduce(k.join, kinds) if kinds else None)
