"""Imports of torch go; what the converted code needs comes in their place when the file is put together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Failure
from migrator.convert.neighbours import left_beside
from migrator.convert.passes.package_names import package_names
from migrator.convert.passes.parts_of_timm import from_timm
from migrator.convert.rewriter import Rewriter, comment, converts
from migrator.convert.stand_ins import at_import, bound
from migrator.infer import kinds as k
from migrator.infer.optional import UNUSED, idle, not_there
from migrator.infer.symbols import STARRED_TOO, built_on_torch, of_torch, starred
from migrator.infer.without_torch import brought_by, import_needs_torch, needs_torch
from migrator.source import dotted
from rules.torch_names import VERSION


@converts(cst.Import)
def plain_import(rw: Rewriter, node: cst.Import) -> Any:
    """``import torch``, ``import torch.nn as nn`` go; other modules in the same statement stay."""
    _check_there(rw, node)
    kept = []
    linked = rw.ctx.facts.linked
    instead: list[cst.BaseSmallStatement] = []
    apart = package_names(rw.ctx).statements
    for alias in node.names:
        module = dotted(alias.name) or ""
        head = module.partition(".")[0]
        if alias in apart:
            instead += apart[alias]
            continue
        if linked is not None and linked.place(rw.ctx.source.module, module, 0, None) != "outside":
            kept.append(_own_module(rw, node, alias))
            continue
        if needs_torch(brought_by(alias)):
            if not idle(rw.ctx.facts, [alias]):
                raise _foreign(node, head)
            _left_out(rw, node, head)
            continue
        if not of_torch(module):
            kept.append(alias)
    _check_neighbours(rw, node)
    if len(kept) == len(node.names):
        return node
    if not kept:
        return instead
    kept[-1] = syntax.changed(kept[-1], comma=cst.MaybeSentinel.DEFAULT)
    made = syntax.changed(node, names=kept)
    return [made, *instead] if instead else made


@converts(cst.ImportFrom)
def from_import(rw: Rewriter, node: cst.ImportFrom) -> Any:
    """``from torch import nn`` goes."""
    own = _of_project(rw, node)
    if own is not None:
        return own
    if node.relative or node.module is None:
        return node
    module = dotted(node.module) or ""
    if of_torch(module):
        _check_there(rw, node)
        if isinstance(node.names, cst.ImportStar) and not starred(module):
            raise Failure(
                node,
                "API005",
                f"what `from {module} import *` binds is not known here",
                "import the names that are used",
            )
        if module in STARRED_TOO and isinstance(node.names, cst.ImportStar):
            return _of_others(rw, STARRED_TOO[module])
        _check_only(rw, node)
        return _constants(node) if module == "torch" else []
    if module.startswith("timm.") and not import_needs_torch(module, node.names):
        return from_timm(rw, node, module)
    if import_needs_torch(module, node.names):
        if not idle(rw.ctx.facts, node.names):
            raise _foreign(node, module)
        _left_out(rw, node, module)
        return []
    _check_neighbours(rw, node)
    return node


def _check_neighbours(rw: Rewriter, node: cst.Import | cst.ImportFrom) -> None:
    """Raise a Failure for ``from model import Net`` of a file beside this one that is not converted with it."""
    index, source = rw.ctx.source.index, rw.ctx.source
    told = left_beside(rw.ctx.facts, source.path, node, index.of_type(cst.Attribute))
    if told is not None:
        raise Failure(node, "API004", *told)


def _check_there(rw: Rewriter, node: cst.Import | cst.ImportFrom) -> None:
    """Raise a Failure for an import that fails in a ``try`` of which it is not known what runs then."""
    missing = not_there(rw.ctx.facts, node)
    if missing is not None:
        what = f"torch {VERSION} has no {missing}: what the import fails for runs in its place"
        raise Failure(node, "API001", what, "write what runs in place of the try")


def _check_only(rw: Rewriter, node: cst.ImportFrom) -> None:
    """Raise a Failure for a name that is torch's in one branch and something else in another, which reads of it mean.

    ``if available(): from torch.x import Mask`` with ``else: Mask = torch.Tensor``: the name stays, the import goes.
    """
    index, dead = rw.ctx.source.index, rw.ctx.facts.dead
    around = index.around(node)
    if isinstance(node.names, cst.ImportStar) or not any(isinstance(n, cst.If) for n in around):
        return
    scopes = (cst.FunctionDef, cst.ClassDef, cst.Lambda)
    if any(isinstance(n, (*scopes, cst.Try)) for n in around):
        return
    names = {alias.evaluated_alias or alias.evaluated_name for alias in node.names}
    others: set[str] = set()
    for one in index.of_type(
        cst.AssignTarget, cst.FunctionDef, cst.ClassDef, cst.Import, cst.ImportFrom
    ):
        if any(isinstance(n, scopes) or n in dead for n in index.around(one)):
            continue
        if isinstance(one, (cst.Import, cst.ImportFrom)):
            module = dotted(one.module) if isinstance(one, cst.ImportFrom) and one.module else None
            if not isinstance(one.names, cst.ImportStar) and not of_torch(module or ""):
                others |= {alias.evaluated_alias or alias.evaluated_name for alias in one.names}
        else:
            others |= set(
                syntax.names(one.target if isinstance(one, cst.AssignTarget) else one.name)
            )
    for read in index.of_type(cst.Name):
        name = read.value
        if name not in names & others or of_torch(rw.ctx.facts.qualified_name(read) or ""):
            continue
        above = index.around(read)[-1]
        if isinstance(above, (cst.AssignTarget, cst.ImportAlias, cst.FunctionDef, cst.ClassDef)):
            continue
        if not (isinstance(above, cst.Attribute) and above.attr is read):
            what = f"`{name}` is torch's under a condition that is not known here"
            raise Failure(node, "API001", what, "settle the condition, or leave one of the two")


def _of_others(rw: Rewriter, modules: Mapping[str, str]) -> Any:
    """``import math`` in place of the star import that alone binds the name where the file reads it."""
    index = rw.ctx.source.index
    imported = {a.evaluated_alias or a.evaluated_name for a in index.of_type(cst.ImportAlias)}
    read = {one.value for one in index.of_type(cst.Name)} & modules.keys() - imported
    names = [
        cst.ImportAlias(
            cst.Name(modules[name]),
            None if modules[name] == name else cst.AsName(cst.Name(name)),
        )
        for name in sorted(read)
    ]
    return cst.Import(names) if names else []


def _constants(node: cst.ImportFrom) -> Any:
    """``from torch import pi`` → ``from math import pi``; all else that is imported beside it goes."""
    if isinstance(node.names, cst.ImportStar):
        return []
    kept = [a for a in node.names if dotted(a.name) in ("pi", "inf", "nan", "e")]
    if not kept:
        return []
    kept[-1] = syntax.changed(kept[-1], comma=cst.MaybeSentinel.DEFAULT)
    return syntax.changed(node, module=cst.Name("math"), names=kept, lpar=None, rpar=None)


def _of_project(rw: Rewriter, node: cst.ImportFrom) -> Any:
    """An import from another file of the project; None when it is no such import."""
    linked, here = rw.ctx.facts.linked, rw.ctx.source.module
    if linked is None:
        return None
    module, level = (
        (dotted(node.module) or "") if node.module is not None else "",
        len(node.relative),
    )
    if isinstance(node.names, cst.ImportStar):
        if linked.place(here, module, level, None) == "outside":
            return None
        return _respelled(rw, node, module, level)
    kept: list[cst.ImportAlias] = []
    missing: list[cst.ImportAlias] = []
    for alias in node.names:
        name = dotted(alias.name) or ""
        place = linked.place(here, module, level, name)
        if place == "outside" and not level:
            return None
        if place == "missing":
            missing.append(alias)
            continue
        kind = linked.bound(rw.ctx.facts, here, module, level, name)
        bound_here = alias.evaluated_alias or alias.evaluated_name
        if not _is_torch(kind) or not linked.leads_out(here, bound_here, ()):
            kept.append(alias)
    instead: list[cst.Assign] = []
    if missing:
        instead = _check_missing(rw, node, missing, f"{'.' * level}{module}", bool(kept))
    if not kept:
        return []
    if kept[-1] is not node.names[-1]:
        kept[-1] = kept[-1].with_changes(comma=node.names[-1].comma)
    changed = node if len(kept) == len(node.names) else node.with_changes(names=kept)
    made = _respelled(rw, changed, module, level)
    return [made, *instead] if instead else made


def _check_missing(
    rw: Rewriter, node: cst.ImportFrom, missing: list[cst.ImportAlias], module: str, rest: bool
) -> list[cst.Assign]:
    """Report names that no converted file defines; the import of the others may stay, and these raise when used."""
    names = ", ".join(dotted(alias.name) or "" for alias in missing)
    verb = "are" if len(missing) > 1 else "is"
    failure = Failure(
        node,
        "API004",
        f"{names} of {module} {verb} not among the files that are converted",
        "convert the file that defines it as well",
    )
    if not rest:
        raise failure
    rw.told(failure)
    rw.ctx.statements[-1].todo.append(comment(failure))
    if not at_import(rw.ctx):
        return []
    bound_names = (alias.evaluated_alias or alias.evaluated_name for alias in missing)
    return [bound(rw.ctx, cst.Name(name), failure) for name in bound_names]


def _is_torch(kind: k.Kind | None) -> bool:
    """Whether a name stands for something of torch, which the output spells out where it is used."""
    if isinstance(kind, (k.Class, k.Function, k.Namespace)):
        return kind.name == "torch" or kind.name.startswith(("torch.", "timm_layers."))
    return isinstance(kind, k.DType)


def _respelled(rw: Rewriter, node: cst.ImportFrom, module: str, level: int) -> cst.ImportFrom:
    """The import in the output, where a file may have moved against the others."""
    linked = rw.ctx.facts.linked
    assert linked is not None
    new, dots = linked.spelled(rw.ctx.source.module, module, level)
    if (new, dots) == (module, level):
        return node
    value = syntax.parse(new) if new else None
    made: cst.ImportFrom = node.with_changes(module=value, relative=[cst.Dot()] * dots)
    return made


def _own_module(rw: Rewriter, node: cst.Import, alias: cst.ImportAlias) -> cst.ImportAlias:
    """``import package.module`` of the project, which stays where the output has that name."""
    linked, here = rw.ctx.facts.linked, rw.ctx.source.module
    assert linked is not None
    name = dotted(alias.name) or ""
    if linked.place(here, name, 0, None) == "missing":
        message = f"{name} is not among the files that are converted"
        raise Failure(node, "API004", message, "convert it as well")
    if linked.spelled(here, name, 0) != (name, 0):
        raise Failure(
            node,
            "API004",
            f"the converted {name} stands in another package",
            "write `from . import …`",
        )
    return alias


def _left_out(rw: Rewriter, node: cst.CSTNode, module: str) -> None:
    if "LightningModule" in rw.ctx.words and "lightning" in module:
        return  # it is read, as a class of Flax
    rw.ctx.report(node, "API004", UNUSED.format(module), "", severity="info", blocks=False)


def _foreign(node: cst.CSTNode, module: str) -> Failure:
    return Failure(node, "API004", *built_on_torch(module))
