"""Gradient checkpointing written by hand: an autograd function that runs a function, and runs it again for its gradient.

    class CheckpointFunction(torch.autograd.Function):        # of guided-diffusion, and of what was made of it
        forward(ctx, run_function, length, *args)             # run_function(*args[:length]) under no_grad
        backward(ctx, *output_grads)                          # the same again, and torch.autograd.grad of it

What it gives, and its gradient, are those of ``run_function(*args[:length])``; the arguments behind ``length`` are the
parameters that the function reads, which are named so that torch finds them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from migrator import syntax
from migrator.infer.facts import Facts, FunctionInfo

_N = r"[A-Za-z_]\w*"
_FORWARD = (
    rf"(?P<ctx>{_N})\.(?P<run>{_N})=(?P<fn>{_N})",
    rf"(?P=ctx)\.(?P<ins>{_N})=list\((?P<args>{_N})\[:(?P<n>{_N})\]\)",
    rf"(?P=ctx)\.(?P<trained>{_N})=list\((?P=args)\[(?P=n):\]\)",
    rf"(?:(?P=ctx)\.(?!(?P=run)\b|(?P=ins)\b|(?P=trained)\b){_N}=\{{[^;]*\}};)?"  # how autocast was set
    rf"with{_N}(?:\.{_N})*\.no_grad\(\):(?P<out>{_N})=(?P=ctx)\.(?P=run)\(\*(?P=ctx)\.(?P=ins)\)",
    r"return(?P=out)",
)
_BACKWARD = (
    rf"(?P<ctx>{_N})\.(?P<ins>{_N})=\[(?P<x>{_N})\.detach\(\)\.requires_grad_\(True\)for(?P=x)in(?P=ctx)\.(?P=ins)\]",
    rf"with{_N}(?:\.{_N})*\.enable_grad\(\)(?:,{_N}(?:\.{_N})*\.autocast\(\*\*(?P=ctx)\.{_N}\))?:"
    rf"(?P<copies>{_N})=\[(?P<y>{_N})\.view_as\((?P=y)\)for(?P=y)in(?P=ctx)\.(?P=ins)\];"
    rf"(?P<out>{_N})=(?P=ctx)\.(?P<run>{_N})\(\*(?P=copies)\)",
    rf"(?P<grads>{_N})={_N}\.autograd\.grad\((?P=out),(?P=ctx)\.(?P=ins)\+(?P=ctx)\.(?P<trained>{_N}),(?P<given>{_N}),"
    r"allow_unused=True,?\)",
    r"return\(None,None\)\+(?P=grads)",
)


def recomputes(node: cst.ClassDef) -> bool:
    """Whether an autograd function is gradient checkpointing of what it is handed."""
    methods = {m.name.value: m for m in node.body.body if isinstance(m, cst.FunctionDef)}
    others = [s for s in node.body.body if not isinstance(s, cst.FunctionDef) and not _text(s)]
    if set(methods) != {"forward", "backward"} or others:
        return False
    forward, backward = methods["forward"], methods["backward"]
    first = re.fullmatch(";".join(_FORWARD), ";".join(_lines(forward.body)))
    again = re.fullmatch(";".join(_BACKWARD), ";".join(_lines(backward.body)))
    if first is None or again is None:
        return False
    own = [first["ctx"], first["fn"], first["n"], f"*{first['args']}"]
    same = all(first[name] == again[name] for name in ("run", "ins", "trained"))
    return (
        same and _names(forward) == own and _names(backward) == [again["ctx"], f"*{again['given']}"]
    )


def _text(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.SimpleStatementLine) and all(map(syntax.is_docstring, node.body))


def _names(node: cst.FunctionDef) -> list[str]:
    star = node.params.star_arg
    names = [p.name.value for p in node.params.params]
    return [*names, f"*{star.name.value}"] if isinstance(star, cst.Param) else names


def _lines(body: cst.BaseSuite) -> Iterator[str]:
    """The statements without spaces and comments; what is deleted, and texts, are left out."""
    for statement in body.body:
        if isinstance(statement, cst.With):
            items = ",".join(_plain(item.item) for item in statement.items)
            yield f"with{items}:{';'.join(_lines(statement.body))}"
        elif isinstance(statement, cst.SimpleStatementLine):
            for small in statement.body:
                if not isinstance(small, cst.Del) and not syntax.is_docstring(small):
                    yield _plain(small)
        else:
            yield "?"


def _plain(node: cst.CSTNode) -> str:
    return "".join(syntax.code(node).split())


def only_trained(facts: Facts, info: FunctionInfo) -> frozenset[str]:
    """The parameters of a function that it hands on to such a class as what is trained, and reads for nothing else.

    ``args = tuple(inputs) + tuple(params)``, ``CheckpointFunction.apply(func, len(inputs), *args)``."""
    if not any(c.gradient and c.settled is None for c in facts.classes.values()):
        return frozenset()
    calls = [c for c in facts.tree.within(info.node.body, cst.Call) if _applies(facts, c)]
    if len(calls) != 1 or len(calls[0].args) != 3 or calls[0].args[2].star != "*":
        return frozenset()
    _, length, rest = (_plain(a.value) for a in calls[0].args)
    made = [
        _plain(a.value)
        for a in facts.tree.within(info.node.body, cst.Assign)
        if [_plain(t.target) for t in a.targets] == [rest]
    ]
    if len(made) != 1:
        return frozenset()
    found = re.fullmatch(rf"tuple\(({_N})\)\+tuple\(({_N})\)", made[0])
    if found is None or length != f"len({found[1]})":
        return frozenset()
    read = [n for n in facts.tree.within(info.node.body, cst.Name) if n.value == found[2]]
    return frozenset({found[2]}) if len(read) == 1 and found[2] in info.params else frozenset()


def _applies(facts: Facts, call: cst.Call) -> bool:
    func = call.func
    if not isinstance(func, cst.Attribute) or func.attr.value != "apply":
        return False
    name = func.value.value if isinstance(func.value, cst.Name) else ""
    return any(
        info.node.name.value == name and info.gradient and recomputes(info.node)
        for info in facts.classes.values()
        if info.settled is None
    )


def saves_memory(facts: Facts, node: cst.BooleanOperation) -> cst.BaseExpression | None:
    """``self.checkpointing`` of ``torch.is_grad_enabled() and self.checkpointing``: whether a gradient recomputes.

    That changes no value, so that nobody need know whether torch would keep what a gradient needs.
    """
    if not isinstance(node.operator, cst.And):
        return None
    for one, other in ((node.left, node.right), (node.right, node.left)):
        if isinstance(one, cst.Call) and facts.callee(one) == "torch.is_grad_enabled":
            whole: cst.CSTNode = node
            for parent in reversed(facts.tree.around(node)):
                if not isinstance(parent, cst.BooleanOperation):
                    break
                if not isinstance(parent.operator, cst.And):
                    break
                whole = parent
            return other if _CHECKPOINTING.search(syntax.code(whole)) else None
    return None


_CHECKPOINTING = re.compile(r"(?i)checkpoint|ckpt|recompute")
