"""Whether the children of an own class derived from ``nn.Sequential`` have names, or numbers alone.

Those of one have names if anything gives it a child under one; a class and those derived from it are of one mind, since
they share a constructor. What other files do is not seen: a class that hands on the layers it is given is ready for names.
"""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.infer import kinds as k
from migrator.infer.facts import ClassInfo

SEQUENTIAL = k.Class("torch.nn.Sequential")
REGISTERING = ("add_module", "register_module")


def is_named(ctx: Context, info: ClassInfo | None) -> bool:
    """Whether the instances of a subclass of Sequential keep their children under names."""
    root = root_of(info) if info is not None else None
    if root is None:
        return False
    if root.settled is not None:
        return root.settled.named
    if root not in ctx.named_classes:
        family = [
            c for c in ctx.facts.classes.values() if c.settled is None and root in c.lineage()
        ]
        ctx.named_classes[root] = any(gives_names(ctx, one) for one in family) or (
            is_open(root) and ctx.facts.linked is not None and ctx.facts.linked.shared(root.name)
        )
    return ctx.named_classes[root]


def root_of(info: ClassInfo) -> ClassInfo | None:
    """The own class of a lineage that derives from torch's Sequential itself."""
    return next((one for one in info.lineage() if SEQUENTIAL in one.bases), None)


def is_open(info: ClassInfo) -> bool:
    """Whether a class directly derived from Sequential has the layers that its callers hand to it, or none yet."""
    init = info.methods.get("__init__")
    if init is None:
        return True
    calls = [
        node
        for node in syntax.walk(init.node)
        if isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and node.func.attr.value == "__init__"
    ]
    star = init.node.params.star_arg
    name = star.name.value if isinstance(star, cst.Param) else ""
    return any(
        not call.args or any(a.star == "*" and _is_name(a.value, name) for a in call.args)
        for call in calls
    )


def gives_names(ctx: Context, info: ClassInfo) -> bool:
    """Whether the constructor of a class, or what the file does with an instance, gives children names."""
    init = info.methods.get("__init__")
    for node in syntax.walk(init.node) if init is not None else ():
        if isinstance(node, cst.AssignTarget) and isinstance(node.target, cst.Attribute):
            if _is_name(node.target.value, "self") and isinstance(ctx.kind(node.target), k.Module):
                return True
        if not (isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute)):
            continue
        if node.func.attr.value in (*REGISTERING, "append"):
            if _is_name(node.func.value, "self"):
                return True
        if node.func.attr.value == "__init__":
            kinds = [ctx.kind(a.value) for a in node.args if not _is_name(a.value, "self")]
            derived = SEQUENTIAL not in info.bases  # and hands this to a constructor of the file
            if (not kinds and not derived) or (len(kinds) == 1 and isinstance(kinds[0], k.Mapping)):
                return True
    return _gains_children(ctx, info)


def _gains_children(ctx: Context, info: ClassInfo) -> bool:
    """Whether the file builds a Sequential of this class empty or from a dict, or adds named children to one."""
    plain = info.method("__init__") is None
    for call in ctx.source.index.of_type(cst.Call):
        kind = ctx.facts.kind(call.func)
        if isinstance(kind, k.Class) and kind.name == info.name:
            if plain and (not call.args or isinstance(ctx.kind(call.args[0].value), k.Mapping)):
                return True
        elif type(call.func) is cst.Attribute and call.func.attr.value in REGISTERING:
            receiver = ctx.kind(call.func.value)
            if isinstance(receiver, k.Module) and receiver.cls == info.name:
                return True
    return False


def left_to_heirs(ctx: Context, method: str) -> bool:
    """Whether classes that derive from the one being read define a method, which here draws nothing."""
    owner = ctx.owner
    if owner is None or owner.method(method) is not None or owner.attribute(method) is not None:
        return False
    heirs = [c for c in ctx.facts.classes.values() if owner in c.lineage()]
    found = [c.methods[method] for c in heirs if method in c.methods]
    return bool(found) and all(ctx.plan.how(one) != "param" for one in found)


def _is_name(node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name
