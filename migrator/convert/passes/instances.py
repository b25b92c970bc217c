"""``isinstance`` and the classes it asks for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Failure
from migrator.convert.expand import make_tuple
from migrator.convert.passes import targets
from migrator.convert.passes.class_values import (
    as_tuple,
    check_classes,
    check_of_object,
    check_stateless,
    holds_layers,
    is_derived_elsewhere,
    spelled_out,
)
from migrator.convert.rewriter import Rewriter, converts
from migrator.convert.stateless_layers import asked_of_functions
from migrator.infer import ClassInfo
from migrator.infer import kinds as k
from migrator.infer.narrowing import exact_class_test
from migrator.infer.python import class_of_object
from migrator.source import dotted
from rules import definitions
from rules.definitions import module_file


@converts(cst.Call, named=("isinstance",), called=("torch.jit.isinstance",))
def instance_test(rw: Rewriter, node: cst.Call) -> Any:
    """``isinstance(m, nn.Conv2d)``: the class that such layers have in the output."""
    if _is_torchscripts(rw, node):
        node = syntax.changed(node, func=cst.Name("isinstance"))
    if not (type(node.func) is cst.Name and node.func.value == "isinstance"):
        return None
    if len(node.args) != 2:
        return None
    if rw.ctx.facts.qualified_name(node.args[1].value) == "torch.nn.Identity":
        return _is_identity(rw, node)
    _check_module_test(rw, node)
    written = _written_out(rw, as_tuple(rw.ctx, node.args[1].value))
    check_of_object(rw.ctx, node, written)
    if (
        written is node.args[1].value
        and _is_chosen(rw, written)
        and _may_be_layer(rw.ctx.kind(node.args[0].value))
    ):
        check_stateless(rw.ctx, node, written)
        helper = rw.ctx.helpers.need(module_file("rules.compat.factories"), "made_by")
        return syntax.changed(node, func=cst.Name(helper), args=[rw.visit(a) for a in node.args])
    classes = public_classes(rw, written)
    without_state = asked_of_functions(rw, node, classes)
    if without_state is not None:
        return without_state
    if isinstance(classes, cst.Tuple):
        elements = [syntax.changed(e, value=_class(rw, e.value)) for e in classes.elements]
        new: cst.BaseExpression = syntax.changed(classes, elements=elements)
    else:
        new = _class(rw, classes)
    first = syntax.changed(node.args[0], value=rw.visit(node.args[0].value))
    return syntax.changed(node, args=[first, syntax.changed(node.args[1], value=new)])


def _is_chosen(rw: Rewriter, node: cst.BaseExpression) -> bool:
    """Whether what is asked for is a value of which nothing is known: a class of torch's, which may be a function here."""
    if holds_layers(rw.ctx, node):
        return True
    kind = rw.ctx.kind(node)
    if not isinstance(kind, k.Unknown) and kind != k.NAMELESS and not k.is_any_class(kind):
        return False
    if isinstance(node, (cst.Call, cst.Subscript)):
        return True
    if isinstance(node, cst.Attribute):
        return rw.ctx.is_self(node.value)
    if not isinstance(node, cst.Name) or rw.ctx.frame is None:
        return False
    info = rw.ctx.frame.info
    return node.value in info.params or any(
        isinstance(one.target, cst.Name) and one.target.value == node.value
        for one in rw.ctx.facts.tree.within(info.node.body, cst.AssignTarget, cst.AnnAssign)
    )


def _may_be_layer(kind: k.Kind) -> bool:
    inner = kind.inner if isinstance(kind, k.Optional) else kind
    return isinstance(inner, (k.Unknown, k.Module))


def _is_torchscripts(rw: Rewriter, node: cst.Call) -> bool:
    """``torch.jit.isinstance(x, torch.Tensor)``, which looks at items only where the type says something of them."""
    if rw.ctx.facts.callee(node) != "torch.jit.isinstance" or len(node.args) != 2:
        return False
    return not any(isinstance(n, cst.Subscript) for n in syntax.walk(node.args[1].value))


@converts(cst.Comparison)
def exact_test(rw: Rewriter, node: cst.Comparison) -> Any:
    """``type(m) == nn.Linear`` → ``isinstance(m, …)``: several classes may stand for one of torch's.

    Raises:
      Failure: what is asked for is not written there.
    """
    given = node
    node = spelled_out(rw.ctx, node)
    only = node.comparisons[0]
    written = _written_out(rw, only.comparator)
    if written is not only.comparator:
        changed = syntax.changed(only, comparator=written)
        node = syntax.changed(node, comparisons=[changed, *node.comparisons[1:]])
    asked = exact_class_test(node)
    if asked is None:
        if class_of_object(node.left) is not None:
            _check_table(rw, given, node.comparisons[0].comparator)
        check_classes(rw.ctx, given)
        return None
    tested, classes, positive = asked
    names = [rw.ctx.facts.qualified_name(c) or "" for c in classes]
    of_parameter = targets.is_variable(rw.ctx, tested) and not set(names).isdisjoint(_TENSORS)
    if "torch.Tensor" in names or of_parameter:
        return _is_tensor(rw, node, tested, [*zip(names, classes, strict=True)])
    if not any(definitions.layers(name) for name in names):
        for one in classes:
            _check_table(rw, given, one)
        check_classes(rw.ctx, given)
        return None
    if "torch.nn.Linear" in names and _has_attention(rw):
        raise Failure(
            given,
            "API011",
            "the output projection of torch's attention is a linear layer of another class",
            "decide by a flag instead",
        )
    wanted = classes[0] if len(classes) == 1 else make_tuple(list(classes))
    test = _isinstance(rw, tested, wanted)
    own = (
        rw.ctx.facts.tree
    )  # those of other files, in a circle with this one too, have no name here
    deriving = [one for one in _deriving(rw, set(names)) if own.has(one.node)]
    if is_derived_elsewhere(rw.ctx, names, deriving):
        made = rw.ctx.helpers.need(module_file("rules.compat.named"), "is_torchs")
        exact = syntax.with_args(cst.Call(cst.Name(made)), [cst.Arg(rw.visit(tested))])
        test = _both(test, exact)
    others = [cst.Name(info.name.rpartition(".")[2]) for info in deriving]
    if others:
        other = others[0] if len(others) == 1 else make_tuple(others)
        test = _both(test, cst.UnaryOperation(cst.Not(), _isinstance(rw, tested, other)))
    return test if positive else cst.UnaryOperation(cst.Not(), test)


def _both(first: cst.BaseExpression, second: cst.BaseExpression) -> cst.BaseExpression:
    both = cst.BooleanOperation(first, cst.And(), second)
    return syntax.changed(both, lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


_TENSORS = ("torch.Tensor", "torch.nn.Parameter", "torch.nn.parameter.Parameter")


def _is_tensor(
    rw: Rewriter,
    node: cst.Comparison,
    tested: cst.BaseExpression,
    classes: list[tuple[str, cst.BaseExpression]],
) -> cst.BaseExpression:
    """``type(x) == torch.Tensor`` → ``isinstance(x, jax.Array)``, which no array of JAX has for its own class."""
    tensors = [one for name, one in classes if name in _TENSORS]
    others = [one for name, one in classes if name not in _TENSORS]
    test = _isinstance(rw, tested, tensors[0] if len(tensors) == 1 else make_tuple(tensors))
    positive = isinstance(node.comparisons[0].operator, (cst.Equal, cst.Is, cst.In))
    kind = rw.ctx.kind(tested)
    if isinstance(kind, k.Tensor) and kind.role == "param":  # of which torch has a class of its own
        asked = any(name != "torch.Tensor" and name in _TENSORS for name, _ in classes)
        return cst.Name(str(asked is positive))
    if others:
        target = cst.ComparisonTarget(cst.In(), make_tuple(others))
        if len(others) == 1:
            target = cst.ComparisonTarget(cst.Is(), others[0])
        both = cst.BooleanOperation(test, cst.Or(), rw.visit(cst.Comparison(node.left, [target])))
        test = syntax.changed(both, lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return test if positive else cst.UnaryOperation(cst.Not(), test)


def _has_attention(rw: Rewriter) -> bool:
    """Whether the file builds attention of torch's, whose ``out_proj`` has a class that derives from ``Linear``."""
    kinds = (rw.ctx.facts.kind(call.func) for call in rw.ctx.source.index.of_type(cst.Call))
    return any(isinstance(kind, k.Class) and kind.name.startswith(_ATTENTION) for kind in kinds)


_ATTENTION = ("torch.nn.MultiheadAttention", "torch.nn.Transformer")


def _isinstance(
    rw: Rewriter, tested: cst.BaseExpression, classes: cst.BaseExpression
) -> cst.BaseExpression:
    made = instance_test(rw, cst.Call(cst.Name("isinstance"), [cst.Arg(tested), cst.Arg(classes)]))
    assert isinstance(made, cst.BaseExpression)
    return made


def _deriving(rw: Rewriter, names: set[str]) -> list[ClassInfo]:
    """The file's classes that derive from one of these, and are none of them."""
    found = []
    for info in rw.ctx.facts.classes.values():
        above = {info.torch_base or "", *(c.name for c in info.lineage()[1:])}
        if info.name not in names and above & names:
            found.append(info)
    return found


def _written_out(rw: Rewriter, node: cst.BaseExpression) -> cst.BaseExpression:
    """The classes that a constant of the file stands for; any other expression as it is."""
    if not isinstance(node, cst.Name):
        return node
    found = [
        one.value
        for one in rw.ctx.source.index.of_type(cst.Assign)
        if any(isinstance(t.target, cst.Name) and t.target.value == node.value for t in one.targets)
    ]
    if len(found) != 1 or not isinstance(found[0], cst.Tuple):
        return node
    names = [rw.ctx.facts.qualified_name(e.value) or "" for e in found[0].elements]
    return found[0] if all(definitions.layers(name) for name in names) else node


@converts(cst.Subscript)
@converts(cst.Call, named=("get",))
def class_as_key(rw: Rewriter, node: cst.Call | cst.Subscript) -> Any:
    """``INITS[type(m)]``, ``INITS.get(type(m))``: a class of the output is no key of a table of torch's classes."""
    if isinstance(node, cst.Subscript):
        index = node.slice[0].slice
        key = index.value if isinstance(index, cst.Index) else None
        table = node.value
    else:
        key = node.args[0].value if node.args else None
        if not isinstance(node.func, cst.Attribute) or node.func.attr.value != "get":
            return None
        table = node.func.value
    if key is not None and class_of_object(key) is not None:
        _check_table(rw, node, table)
    return None


def _check_table(rw: Rewriter, node: cst.BaseExpression, table: cst.BaseExpression) -> None:
    """A class that is looked for in a container of torch's classes that is written elsewhere."""
    wanted = _last(table) if isinstance(table, (cst.Name, cst.Attribute)) else ""
    for names, value in [([""], table)] if isinstance(table, cst.Dict) else _bound(rw):
        if wanted and wanted not in names:
            continue
        if isinstance(value, cst.Call) and len(value.args) == 1:  # frozenset([nn.Linear])
            value = value.args[0].value
        keys: list[Any] = []
        if isinstance(value, cst.Dict):
            keys = [e.key for e in value.elements if isinstance(e, cst.DictElement)]
        elif isinstance(value, (cst.Tuple, cst.List, cst.Set)):
            keys = [e.value for e in value.elements]
        if any(definitions.layers(rw.ctx.facts.qualified_name(key) or "") for key in keys):
            raise Failure(
                node,
                "API011",
                "a class is looked for among torch's, whose layers have other classes in the output",
                "write isinstance tests, one for each class",
            )


def _bound(rw: Rewriter) -> Iterator[tuple[list[str], cst.BaseExpression]]:
    """The values that names and attributes of the file get, by default too, each with the last part of the names."""
    index = rw.ctx.source.index
    for one in index.of_type(cst.Assign):
        yield [_last(target.target) for target in one.targets], one.value
    for two in index.of_type(cst.AnnAssign):
        if two.value is not None:
            yield [_last(two.target)], two.value
    for three in index.of_type(cst.Param):
        if three.default is not None:
            yield [three.name.value], three.default


def _last(node: cst.BaseExpression) -> str:
    """``KINDS`` of ``KINDS`` and ``self.KINDS``."""
    return (dotted(node) or "").rpartition(".")[2]


def _is_identity(rw: Rewriter, node: cst.Call) -> cst.Call:
    """``isinstance(m, nn.Identity)``: all of these are one function in the output, but for classes that derive from it."""
    derived = [i for i in rw.ctx.facts.classes.values() if i.torch_base == "torch.nn.Identity"]
    if derived or is_derived_elsewhere(rw.ctx, ["torch.nn.Identity"], []):
        raise Failure(
            node,
            "API011",
            "a class derives from torch.nn.Identity, which is a plain function in the output",
            "derive the class from nn.Module",
        )
    file, name = "rules.compat.layer_functions", "is_identity"
    if rw.ctx.traverses:
        file, name = "rules.compat.children", "is_identity_layer"
    function = cst.Name(rw.ctx.helpers.need(module_file(file), name))
    return syntax.with_args(cst.Call(function), [cst.Arg(rw.visit(node.args[0].value))])


def _check_module_test(rw: Rewriter, node: cst.Call) -> None:
    """``isinstance(act, nn.Module)``: an activation is a plain function in the output, and would be told from it."""
    if rw.ctx.traverses:
        return  # all layers are modules
    asked = node.args[1].value
    classes = [e.value for e in asked.elements] if isinstance(asked, cst.Tuple) else [asked]
    names = [rw.ctx.facts.qualified_name(c) for c in classes]
    if "torch.nn.Module" in names and rw.ctx.class_of(rw.ctx.kind(node.args[0].value)) is None:
        raise Failure(
            node,
            "API011",
            "layers without state are plain functions in the output, which isinstance cannot tell from others",
            "ask for what else it may be, such as `act is True` or `act is None`",
        )


_PRIVATE = {
    "torch.nn.modules.batchnorm._BatchNorm": "BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm",
    "torch.nn.modules.instancenorm._InstanceNorm": "InstanceNorm1d InstanceNorm2d InstanceNorm3d",
    "torch.nn.modules.conv._ConvNd": (
        "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d"
    ),
    "torch.nn.modules.conv._ConvTransposeNd": "ConvTranspose1d ConvTranspose2d ConvTranspose3d",
    "torch.nn.modules.dropout._DropoutNd": (
        "Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout"
    ),
}
"""Base classes that torch does not document, and the layers that derive from them."""


def public_classes(rw: Rewriter, node: cst.BaseExpression) -> cst.BaseExpression:
    """The classes that are asked for, a private base class spelled as the layers that derive from it."""
    nodes = [e.value for e in node.elements] if isinstance(node, cst.Tuple) else [node]
    found: list[cst.BaseExpression] = []
    for one in nodes:
        names = _PRIVATE.get(rw.ctx.facts.qualified_name(one) or "", "").split()
        for name in names:
            item = cst.Name(name)
            rw.ctx.facts.kinds[item] = k.Class(f"torch.nn.{name}")
            found.append(item)
        if not names:
            found.append(one)
    return node if len(found) == len(nodes) else make_tuple(found)


def _class(rw: Rewriter, node: cst.BaseExpression) -> cst.BaseExpression:
    from migrator.convert.passes.annotations import _CLASSES, layer_class

    name = rw.ctx.facts.qualified_name(node) or ""
    if not name.startswith("torch."):
        made: cst.BaseExpression = rw.visit(node)
        return made
    if name == "torch.nn.Module" and rw.ctx.traverses:
        rw.ctx.helpers.use("nnx")
        return syntax.parse("nnx.Pytree")  # lists and dicts of modules too
    if name in _CLASSES and name != "torch.Size":
        rw.ctx.helpers.use(_CLASSES[name].partition(".")[0])
        return syntax.parse(_CLASSES[name])
    if name == "torch.Size":
        return cst.Name("tuple")
    target = layer_class(rw, name)
    if target is None:
        raise Failure(
            node,
            "API011",
            f"{name} is a plain function in the output, which isinstance cannot tell",
            "decide by a flag instead",
        )
    return target
