"""Layers and functions of which only a run tells what they are: ``getattr(nn, config.activation)()``."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.containing import plainly_kept
from migrator.convert.rewriter import Rewriter
from migrator.infer import kinds as k
from migrator.infer.named import activation_helper, known_by_name
from migrator.source import dotted
from rules.definitions import module_file

_DISPLAYS = (
    *(cst.List, cst.Tuple, cst.Dict, cst.Set),
    *(cst.ListComp, cst.DictComp, cst.SetComp, cst.GeneratorExp),
)
_ADDING = frozenset({"append", "extend", "insert", "add", "update", "setdefault"})

_MODULES = {"activation_layer": "activation_module", "padding_layer": "padding_module"}
"""What makes a module where another makes a function."""


def made_by_name(rw: Rewriter, node: cst.Call) -> cst.BaseExpression | None:
    """``getattr(F, config.act)`` → ``activation(config.act)``; a warning says that it raises on another name."""
    helper = activation_helper(rw.ctx.facts, node)
    if helper is None:
        return None
    what, advice = known_by_name(helper)
    rw.ctx.report(node, "API001", what, advice, severity="warning", blocks=False)
    where = "by_name"
    if rw.ctx.traverses and helper != "activation":  # layers are found among the children
        if _may_be_kept_plainly(rw, node):
            raise plainly_kept(node)
        where, helper = "children", _MODULES[helper]
    name = rw.ctx.helpers.need(module_file(f"rules.compat.{where}"), helper)
    return syntax.with_args(cst.Call(cst.Name(name)), [cst.Arg(rw.visit(node.args[1].value))])


def _may_be_kept_plainly(rw: Rewriter, node: cst.Call) -> bool:
    """Whether an attribute may come to hold a plain container with what a call makes: ``self.acts = [act(), act()]``.

    What is handed on, to ``nn.Sequential(*layers)`` say, is the affair of what takes it.
    """
    tree = rw.ctx.facts.tree
    around = tree.around(node)
    function = next((one for one in reversed(around) if isinstance(one, cst.FunctionDef)), None)
    if function is None:
        return True
    names, seen = [(node, False)], set[str]()
    while names:
        value, contained = names.pop()
        kept, name, contained = _goes(rw, value, contained)
        if kept:
            return True
        if name and name not in seen:
            seen.add(name)
            reads = [n for n in tree.within(function, cst.Name) if n.value == name]
            names += [(one, contained) for one in reads]
    return False


def _goes(rw: Rewriter, node: cst.CSTNode, contained: bool) -> tuple[bool, str, bool]:
    """Whether an attribute holds a container with a value; the name that it is given, and whether in a container."""
    value = node
    for parent in reversed(rw.ctx.facts.tree.around(node)):
        if isinstance(parent, cst.Arg):
            value = parent
            continue
        if isinstance(parent, cst.Call) and value is not parent.func:
            func = parent.func
            if not isinstance(func, cst.Attribute) or func.attr.value not in _ADDING:
                return False, "", contained
            if isinstance(func.value, cst.Name):
                return False, func.value.value, True
            return not isinstance(rw.ctx.facts.kind(func.value), k.Module), "", True
        contained = contained or isinstance(parent, _DISPLAYS)
        if isinstance(parent, (cst.Attribute, cst.Subscript)) and value is not node:
            return False, "", contained
        if isinstance(parent, (cst.Return, cst.Yield)):
            return contained, "", contained
        if isinstance(parent, (cst.Assign, cst.AugAssign, cst.AnnAssign)):
            if value is not parent.value:
                return False, "", contained  # a target
            targets = parent.targets if isinstance(parent, cst.Assign) else [parent]
            for one in targets:
                target = one.target
                if isinstance(target, cst.Name):
                    return False, target.value, contained
                own = isinstance(target, cst.Attribute) and dotted(target) is not None
                if not own or contained:
                    grown = isinstance(parent, cst.AugAssign)
                    module = isinstance(rw.ctx.facts.kind(target), k.Module)
                    return not (grown and module), "", contained
            return False, "", contained
        if isinstance(parent, cst.BaseStatement):
            return False, "", contained
        value = parent
    return False, "", contained
