"""Libraries that a program does without: ``try: import xformers … except ImportError: …``, or imports without a use.

What is built on torch has no counterpart under JAX, so the way the author wrote for its absence is the one taken.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

import libcst as cst

from migrator.infer import kinds as k
from migrator.infer.facts import Facts
from migrator.infer.without_torch import brought_by, import_is_optional
from migrator.source import dotted

_CAUGHT = frozenset("ImportError ModuleNotFoundError Exception BaseException".split())


def fallback(facts: Facts, node: cst.Try) -> cst.ExceptHandler | None:
    """The handler that runs for want of a library; None where the ``try`` is about anything else."""
    if _missing(facts, node.body.body) is None or node.finalbody is not None:
        return None
    for handler in node.handlers:
        if handler.type is None or _CAUGHT & set(_names(handler.type)):
            raises = bool(facts.tree.within(handler, cst.Raise))
            return None if raises or handler.name is not None else handler
    return None


def missing_library(facts: Facts, node: cst.Try) -> str:
    """The library that a ``try`` with a fallback imports."""
    return _missing(facts, node.body.body) or ""


def imports_another(body: cst.BaseSuite) -> bool:
    """Whether a ``try`` imports of a library beside torch, NumPy and Python's own: all of it fails where that is missing."""
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
    return False


_AT_HAND = ("torch", "numpy")


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
    """What a finding says about a library whose absence the program provides for, and its advice."""
    what = f"{library} is built on torch: the way without it is taken, as where it is not installed"
    return what, "compare with a run of the original where the library is not installed"
