"""Libraries that a program does without: ``try: import xformers … except ImportError: …``, or imports without a use.

What is built on torch has no counterpart under JAX, so the way the author wrote for its absence is the one taken.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from migrator.infer import kinds as k
from migrator.infer.facts import Facts
from migrator.infer.static import of_version
from migrator.infer.without_torch import brought_by, import_is_optional
from migrator.source import dotted
from rules.torch_members import importable
from rules.torch_names import VERSION

_CAUGHT = frozenset("ImportError ModuleNotFoundError Exception BaseException".split())


@dataclass(frozen=True)
class Failing:
    """What ends the body of a ``try``: an import that fails."""

    missing: str
    """The library, or the name of torch, that is not there."""
    at: int
    """Which line of the body it is; those before it run."""
    bound: cst.Import | cst.ImportFrom | None = None
    """The import of the names that the line binds before it fails."""


def fallback(facts: Facts, node: cst.Try) -> cst.ExceptHandler | None:
    """The handler that runs for want of a library or of a name of torch; None where the ``try`` is about anything else."""
    if failing(facts, node) is None or node.finalbody is not None:
        return None
    for handler in node.handlers:
        if handler.type is None or _CAUGHT & set(_names(handler.type)):
            raises = bool(facts.tree.within(handler, cst.Raise))
            return None if raises or _reads_error(facts, handler) else handler
    return None


def _reads_error(facts: Facts, handler: cst.ExceptHandler) -> bool:
    """Whether ``except ImportError as e`` does anything with it."""
    if handler.name is None:
        return False
    bound = handler.name.name
    names = facts.tree.within(handler.body, cst.Name)
    return not isinstance(bound, cst.Name) or any(one.value == bound.value for one in names)


def runs_before(facts: Facts, node: cst.Try) -> Sequence[cst.BaseStatement]:
    """The lines of a ``try`` with a fallback that run before the import which fails."""
    found = failing(facts, node)
    body = node.body.body if isinstance(node.body, cst.IndentedBlock) else ()
    return body[: found.at] if found is not None else ()


def without(facts: Facts, node: cst.Try) -> tuple[list[cst.CSTNode], list[cst.CSTNode]]:
    """What of a ``try`` with a fallback never runs, and what does before the handler."""
    found, before = failing(facts, node), list(runs_before(facts, node))
    never: list[cst.CSTNode] = list(node.body.body[len(before) :]) if before else [node.body]
    never += [node.orelse] if node.orelse is not None else []
    return never, [*before, *([found.bound] if found and found.bound else [])]


def missing_library(facts: Facts, node: cst.Try) -> str:
    """The library, or the name of torch, that a ``try`` with a fallback does without."""
    found = failing(facts, node)
    return found.missing if found is not None else ""


def not_there(facts: Facts, node: cst.Import | cst.ImportFrom) -> str | None:
    """A name that a ``try`` imports and torch does not have, where it is not known what runs then."""
    absent = _absent(facts, node)
    tries = [one for one in facts.tree.around(node) if isinstance(one, cst.Try)]
    inside = any(facts.tree.holds(one.body, node) for one in tries)
    return absent[0] if absent is not None and inside else None


def _absent(facts: Facts, node: cst.Import | cst.ImportFrom) -> tuple[str, int] | None:
    """The first name that an import does not find in torch, and how many names are found before it."""
    linked = facts.linked
    if isinstance(node, cst.Import):
        names = [(dotted(alias.name) or "", "") for alias in node.names]
    elif node.relative or node.module is None:
        return None
    else:
        module = dotted(node.module) or ""
        star = isinstance(node.names, cst.ImportStar)
        words = [""] if star else [one.evaluated_name for one in node.names]  # type: ignore[union-attr]
        names = [(module, one) for one in words]
    for at, (module, name) in enumerate(names):
        if module.partition(".")[0] != "torch" or importable(module, name) is not False:
            continue
        if linked is None or linked.place(facts.module, module, 0, None) == "outside":
            return f"{module}.{name}".rstrip("."), at
    return None


def imports_another(body: cst.BaseSuite) -> bool:
    """Whether a ``try`` imports what may not be there: all of it fails then.

    That is a library beside torch, NumPy and Python's own, or a name of torch of which it is not known.
    """
    for line in body.body:
        for small in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            modules: list[cst.BaseExpression | None] = []
            if isinstance(small, cst.Import):
                modules += [one.name for one in small.names]
            elif isinstance(small, cst.ImportFrom) and not small.relative:
                modules.append(small.module)
            roots = [(dotted(one) or "").partition(".")[0] for one in modules if one is not None]
            if any(r not in sys.stdlib_module_names and r not in _AT_HAND for r in roots):
                return True
            if "torch" in roots and not _all_there(small):
                return True
    return False


_AT_HAND = ("torch", "numpy")


def _all_there(node: cst.CSTNode) -> bool:
    """Whether torch surely has what is imported of it."""
    if isinstance(node, cst.Import):
        found = [dotted(alias.name) or "" for alias in node.names]
        return all(importable(one) for one in found if one.partition(".")[0] == "torch")
    assert isinstance(node, cst.ImportFrom)
    module = dotted(node.module) or "" if node.module is not None else ""
    if isinstance(node.names, cst.ImportStar):
        return bool(importable(module))
    return all(importable(module, one.evaluated_name) for one in node.names)


def settled(facts: Facts) -> dict[str, object]:
    """Names at the top of a file that only such a ``try`` binds, with the constant its handler gives them."""
    found: dict[str, object] = {}
    tries = [n for n in facts.tree.root.body if isinstance(n, cst.Try)]  # type: ignore[attr-defined]
    for node in tries:
        handler = fallback(facts, node)
        if handler is None:
            continue
        for target, value in _constants(handler.body):
            places = (handler, node, facts.tree.root)
            once, inside, everywhere = (_assigned(facts, place)[target] for place in places)
            if once == 1 and inside == everywhere:
                found[target] = value
    return found | _of_versions(facts)


def _of_versions(facts: Facts) -> dict[str, object]:
    """``is_torch_2 = V(torch.__version__) >= V("2.0")`` at the top of a file, and nothing else of that name."""
    found: dict[str, object] = {}
    for line in facts.tree.root.body:  # type: ignore[attr-defined]
        for one in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            if not isinstance(one, cst.Assign) or len(one.targets) != 1:
                continue
            target, value = one.targets[0].target, of_version(facts, one.value)
            if isinstance(target, cst.Name) and value is not None:
                if _assigned(facts, facts.tree.root)[target.value] == 1:
                    found[target.value] = value
    return found


def _assigned(facts: Facts, node: cst.CSTNode) -> Counter[str]:
    """How often each name is bound below a node; ``global`` counts, for it lets functions assign."""
    found: Counter[str] = Counter()
    for one in facts.tree.below(node):
        if isinstance(one, (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.For, cst.CompFor)):
            found.update(n.value for n in facts.tree.within(one.target, cst.Name))
        elif isinstance(one, (cst.NameItem, cst.FunctionDef, cst.ClassDef, cst.Param)):
            found[one.name.value] += 1
        elif isinstance(one, (cst.NamedExpr, cst.AsName)):
            target = one.target if isinstance(one, cst.NamedExpr) else one.name
            found.update(n.value for n in facts.tree.within(target, cst.Name))
        elif isinstance(one, cst.ImportAlias) and isinstance(one.name, cst.Name):
            found[one.name.value] += 1
    return found


def _constants(body: cst.BaseSuite) -> Iterator[tuple[str, object]]:
    for line in body.body:
        for small in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            if not isinstance(small, cst.Assign) or len(small.targets) != 1:
                continue
            target, value = small.targets[0].target, small.value
            known = {"True": True, "False": False, "None": None}
            if isinstance(target, cst.Name) and isinstance(value, cst.Name):
                if value.value in known:
                    yield target.value, known[value.value]


def failing(facts: Facts, node: cst.Try) -> Failing | None:
    """The import that ends the body of a ``try`` on every way through it."""
    for at, line in enumerate(node.body.body):
        library = _missing(facts, [line])
        if library is not None:
            return Failing(library, at)
        small = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
        if isinstance(small, (cst.Import, cst.ImportFrom)):
            absent = _absent(facts, small)
            if absent is None:
                continue
            known = small.with_changes(names=small.names[: absent[1]]) if absent[1] else None  # type: ignore[index]
            return Failing(absent[0], at, known)
    return None


def _missing(facts: Facts, body: object) -> str | None:
    """The library whose import ends a body on every way through it."""
    for statement in body:  # type: ignore[attr-defined]
        if isinstance(statement, cst.If):
            if _missing(facts, statement.body.body) and _raises(statement.orelse):
                return _missing(facts, statement.body.body)
        small = statement.body if isinstance(statement, cst.SimpleStatementLine) else ()
        for one in small:
            if isinstance(one, (cst.Import, cst.ImportFrom)):
                found = _foreign(facts, one)
                if found is not None:
                    return found
    return None


def _raises(orelse: cst.CSTNode | None) -> bool:
    if not isinstance(orelse, cst.Else) or not orelse.body.body:
        return False
    first = orelse.body.body[0]
    line = first.body if isinstance(first, cst.SimpleStatementLine) else [first]
    return isinstance(line[0], cst.Raise)


def _foreign(facts: Facts, node: cst.Import | cst.ImportFrom) -> str | None:
    if isinstance(node, cst.Import):
        modules, names = [brought_by(alias) for alias in node.names], None
    else:
        modules = [(dotted(node.module) or "") if node.module is not None else ""]
        names = node.names
        if node.relative:
            return None
    for module in modules:
        linked = facts.linked
        own = linked is not None and linked.place(facts.module, module, 0, None) != "outside"
        if import_is_optional(module, names) and not own:
            return module
    return None


def _names(node: cst.BaseExpression) -> Iterator[str]:
    parts = [e.value for e in node.elements] if isinstance(node, cst.Tuple) else [node]
    return (dotted(part) or "" for part in parts)


_BY_NAME = frozenset("globals locals vars eval exec".split())
"""Functions that read names which stand nowhere in the file."""


def idle(facts: Facts, names: Sequence[cst.ImportAlias] | cst.ImportStar) -> bool:
    """Whether nobody reads what an import binds, as of a ``from torchvision import models`` left from before."""
    if isinstance(names, cst.ImportStar):
        return False
    bound = [alias.asname.name if alias.asname else alias.name for alias in names]
    words = {(dotted(one) or "").partition(".")[0] for one in bound}
    linked = facts.linked
    if linked is not None and any(linked.gives(facts.module, word) for word in words):
        return False
    tree = facts.tree
    imports = [one for kind in (cst.Import, cst.ImportFrom) for one in tree.of_type(kind)]
    own = {id(part) for one in imports for part in tree.below(one)}
    own |= {id(one.attr) for one in tree.of_type(cst.Attribute)}
    own |= {id(root) for root in _converted_bases(facts)}
    read = {one.value for one in tree.of_type(cst.Name) if id(one) not in own}
    if read & (words | _BY_NAME):
        return False
    written = [one.value for one in tree.of_type(cst.SimpleString)]
    quoted = " ".join(one for one in written if one[-3:] not in ('"""', "'''"))
    return not words & set(_WORD.findall(quoted))  # nor in __all__ or an annotation in quotes


def _converted_bases(facts: Facts) -> Iterator[cst.CSTNode]:
    """``pl`` of ``pl.LightningModule``, which becomes a class of Flax."""
    for one in facts.tree.of_type(cst.Attribute, cst.Name):
        if facts.kinds.get(one) == k.Class("torch.nn.Module"):
            while isinstance(one, cst.Attribute):
                one = one.value
            yield one


_WORD = re.compile(r"[^\W\d]\w*")
UNUSED = "nothing reads what is imported of {}, which is built on torch: the import is left out"


def doing_without(library: str) -> tuple[str, str]:
    """What a finding says about a library, or a name of torch, whose absence the program provides for, and its advice."""
    if library.partition(".")[0] == "torch":
        what = f"torch {VERSION} has no {library}: the way without it is taken"
        return what, f"compare with a run of the original under torch {VERSION}"
    what = f"{library} is built on torch: the way without it is taken, as where it is not installed"
    return what, "compare with a run of the original where the library is not installed"
