"""Local lambdas that shorten a registration are written out: ``register = lambda n, t: self.register_buffer(n, t.float())``.

What a module's attributes are can then be read where each is registered.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator import syntax

_METHODS = ("register_buffer", "register_parameter")


def is_wrapper(node: cst.CSTNode) -> bool:
    """Whether a value is such a lambda."""
    if not isinstance(node, cst.Lambda) or not isinstance(node.body, cst.Call):
        return False
    func, params = node.body.func, node.params
    others = (params.star_arg, params.star_kwarg, *params.kwonly_params, *params.posonly_params)
    given = [one for one in others if isinstance(one, (cst.Param, cst.ParamStar))]
    return (
        isinstance(func, cst.Attribute)
        and isinstance(func.value, cst.Name)
        and func.attr.value in _METHODS
        and not given
        and all(param.default is None for param in params.params)
    )


def written_out(tree: cst.Module, text: str) -> cst.Module:
    """A file with the calls of such lambdas replaced by what they stand for; the lambdas themselves stay."""
    if "lambda" not in text or not any(method in text for method in _METHODS):
        return tree
    replaced: dict[cst.CSTNode, cst.CSTNode] = {}
    for function in _functions(tree):
        for name, value in _wrappers(function):
            replaced |= _calls(function, name, value)
    if not replaced:
        return tree

    def visit(node: cst.CSTNode) -> cst.CSTNode:
        return replaced[node] if node in replaced else syntax.rebuild(node, visit)

    made = visit(tree)
    assert isinstance(made, cst.Module)
    return made


def _functions(tree: cst.Module) -> Iterator[cst.FunctionDef]:
    for owner in tree.body:
        for node in owner.body.body if isinstance(owner, cst.ClassDef) else ():
            if isinstance(node, cst.FunctionDef):
                yield node


def _wrappers(function: cst.FunctionDef) -> Iterator[tuple[cst.Name, cst.Lambda]]:
    for line in function.body.body:
        small = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
        if isinstance(small, cst.Assign) and len(small.targets) == 1 and is_wrapper(small.value):
            target = small.targets[0].target
            if isinstance(target, cst.Name) and isinstance(small.value, cst.Lambda):
                yield target, small.value


def _names(target: cst.CSTNode) -> Iterator[cst.Name]:
    """The names that a target binds: none of ``self.betas``."""
    if isinstance(target, cst.Name):
        yield target
    elif isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            yield from _names(element.value)


def _calls(
    function: cst.FunctionDef, name: cst.Name, value: cst.Lambda
) -> dict[cst.CSTNode, cst.CSTNode]:
    """Each call with what it stands for; none where the name is used otherwise too."""
    params = [param.name.value for param in value.params.params]
    read = syntax.names(value.body)
    bound = {
        one.value
        for node in syntax.walk(function.body)
        if isinstance(
            node, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.For, cst.NamedExpr)
        )
        for one in _names(node.target)
    }
    bound |= {param.name.value for param in function.params.params[1:]}
    if bound & (set(read) - set(params)) or any(read.get(one, 0) > 1 for one in params):
        return {}  # it reads what may be another value by the time it is called
    found: dict[cst.CSTNode, cst.CSTNode] = {}
    for node in syntax.walk(function.body):
        call = node.value if isinstance(node, cst.Expr) else None
        if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Name):
            continue
        if call.func.value != name.value:
            continue
        if len(call.args) != len(params) or any(a.star or a.keyword for a in call.args):
            return {}
        given = dict(zip(params, (arg.value for arg in call.args), strict=True))
        found[call] = syntax.substitute(value.body.deep_clone(), given)
    uses = sum(
        isinstance(n, cst.Name) and n.value == name.value for n in syntax.walk(function.body)
    )
    attributes = sum(
        isinstance(n, cst.Attribute) and n.attr.value == name.value
        for n in syntax.walk(function.body)
    )
    return found if found and uses - attributes == len(found) + 1 else {}
