"""Layers whose first values nobody sees: a constructor ends with ``self.apply(self._init_weights)``, which sets them anew.

They need no initialisation of torch's. All of it must be plain to see: which layers a function sets, and whole; that
every layer of the kind is built into a module that ends so; that nothing reads one, or its weights, before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.infer import ClassInfo, FunctionInfo
from migrator.infer import kinds as k

LAYERS = ("torch.nn.Linear", "torch.nn.Embedding")
"""Layers that Flax has as well, with other first values."""
_HOLDERS = frozenset({"torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict"})
_PLAIN = frozenset({"builtins.dict", "builtins.list", "builtins.tuple", "collections.OrderedDict"})
_WHOLE = frozenset(
    "normal_ uniform_ zeros_ ones_ constant_ trunc_normal_ xavier_normal_ xavier_uniform_ "
    "xavier_normal xavier_uniform kaiming_normal_ kaiming_uniform_ orthogonal_".split()
)
"""Functions of ``torch.nn.init`` that give every element a value, whatever it was."""
_METHODS = frozenset({"normal_", "uniform_", "zero_", "fill_"})
_OWN_WAYS = frozenset(
    "__new__ __setattr__ __getattr__ __getattribute__ __call__ apply children named_children "
    "modules named_modules register_module add_module".split()
)
"""Methods that a class must have from Module: how parts are registered, and walked over."""
_SIZES = frozenset(
    "in_features out_features num_embeddings embedding_dim padding_idx shape".split()
)
_REGISTERS = frozenset({"register_buffer", "register_parameter"})


@dataclass(eq=False)
class _Root:
    """A class whose constructor sets layers anew, where it does so, and by what."""

    info: ClassInfo
    call: cst.Call
    layers: dict[str, bool]
    """Layer → whether its bias is set as well."""
    before: Sequence[cst.CSTNode] = field(default_factory=list)
    """The statements of the constructor up to there."""


def overwritten(ctx: Context) -> frozenset[str]:
    """The layers of torch of which every one in the file is set anew by what builds it."""
    if ctx.overwritten is None:
        ctx.overwritten = frozenset()
        if ".apply(" in ctx.source.text and not _is_shared(ctx):
            roots = [root for info in ctx.facts.classes.values() if (root := _root(ctx, info))]
            found = {name: _all_within(ctx, name, roots) for name in LAYERS} if roots else {}
            ctx.overwritten = frozenset(name for name, by in found.items() if by)
            for root in roots:
                _tell(ctx, root, [name for name in LAYERS if root in found[name]])
    return ctx.overwritten


def _tell(ctx: Context, root: _Root, names: Sequence[str]) -> None:
    if not names:
        return
    short = " and ".join(name.rpartition(".")[2] for name in names)
    what = f"this gives every {short} its first values, which begin as Flax's"
    advice = (
        f"build the parts of {root.info.short} within it, or give their layers torch's own values"
    )
    ctx.report(root.call, "API014", what, advice, severity="info", blocks=False)


def _is_shared(ctx: Context) -> bool:
    """Whether another file of the project reads anything of this one: it might build its parts, or ask what they are."""
    linked, module = ctx.facts.linked, ctx.facts.module
    own = {*ctx.facts.module_env, *(n.rpartition(".")[2] for n in ctx.facts.classes)}
    return linked is not None and any(linked.shared(f"{module}.{name}") for name in own)


# --- what sets layers anew ---------------------------------------------------------------------------------------------


def _root(ctx: Context, info: ClassInfo) -> _Root | None:
    """The class, where its constructor surely comes to ``self.apply(fn)`` and fn sets layers."""
    init = _constructor(ctx, info)
    if init is None:
        return None
    for i, statement in enumerate(init.node.body.body):
        match statement:
            case cst.SimpleStatementLine(
                [
                    cst.Expr(
                        cst.Call(cst.Attribute(cst.Name("self")), [cst.Arg(given, star="")]) as call
                    )
                ]
            ) if ctx.facts.callee(call) == "Module.apply":
                function = _function(ctx, info, given)
                layers = _layers_set(ctx, function) if function is not None else {}
                before = init.node.body.body[:i]
                leaves = any(isinstance(n, cst.Return) for s in before for n in syntax.walk(s))
                if layers and not leaves:
                    return _Root(info, call, layers, before)
    return None


def _constructor(ctx: Context, info: ClassInfo) -> FunctionInfo | None:
    """The constructor of a class that derives from Module alone, and from which nothing in the file derives."""
    init = info.methods.get("__init__")
    alone = info.torch_base == "torch.nn.Module" and not info.parents and len(info.bases) == 1
    derived = any(info in other.parents for other in ctx.facts.classes.values())
    if not alone or derived or init is None or init.node.decorators or init.generator:
        return None
    if not _OWN_WAYS.isdisjoint(info.methods):
        return None
    first = init.node.params.params[0].name.value if init.node.params.params else ""
    return init if first == "self" and isinstance(init.node.body, cst.IndentedBlock) else None


def _function(ctx: Context, info: ClassInfo, given: cst.BaseExpression) -> FunctionInfo | None:
    """What ``self._init_weights``, or a function of the file, is."""
    match given:
        case cst.Attribute(cst.Name("self"), cst.Name(name)):
            if info.attribute(name) is not None:
                return None
            found = info.methods.get(name)
        case cst.Name(name):
            kind = ctx.facts.kind(given)
            named = isinstance(kind, k.Function) and kind.name == f"{ctx.facts.module}.{name}"
            found = ctx.facts.names.get(f"{ctx.facts.module}.{name}") if named else None
        case _:
            return None
    return found if found is not None and not found.generator else None


def _layers_set(ctx: Context, function: FunctionInfo) -> dict[str, bool]:
    """The layers whose weight a function sets whole, and whether their bias as well."""
    node = function.node
    names = [p.name.value for p in node.params.params]
    static = "staticmethod" in function.decorators
    wanted = 1 if function.owner is None or static else 2
    others = {"no_grad", "staticmethod", "inference_mode"}
    if len(names) != wanted or not others.issuperset(function.decorators):
        return {}
    found = {}
    for layer in LAYERS:
        setting = _Setting(ctx, layer, names[-1])
        setting.block(node.body)
        if "weight" in setting.done:
            found[layer] = "bias" in setting.done
    return found


class _Left(Exception):
    """What follows is not known to be reached, or reads the values."""


class _Setting:
    """Which of a layer's parameters a function has given new values, as it goes through its statements."""

    def __init__(self, ctx: Context, layer: str, name: str) -> None:
        self.ctx, self.layer, self.name = ctx, layer, name
        self.done: set[str] = set()

    def block(self, body: cst.BaseSuite) -> None:
        try:
            self._block(body)
        except _Left:
            pass

    def _block(self, body: cst.BaseSuite) -> None:
        for statement in body.body:
            if isinstance(statement, cst.If):
                self._if(statement)
            elif isinstance(statement, cst.With) and self._is_no_grad(statement):
                self._block(statement.body)
            elif isinstance(statement, cst.SimpleStatementLine):
                for small in statement.body:
                    self._small(small)
            else:
                raise _Left

    def _is_no_grad(self, node: cst.With) -> bool:
        return all(
            isinstance(item.item, cst.Call)
            and self.ctx.facts.callee(item.item) == "torch.no_grad"
            and item.asname is None
            for item in node.items
        )

    def _if(self, node: cst.If) -> None:
        answer = self._answer(node.test)
        if answer is True:
            self._block(node.body)
        elif answer == "bias":  # what has none does not come here
            weight = "weight" in self.done
            try:
                self._block(node.body)
            finally:
                self.done -= set() if weight else {"weight"}
            if node.orelse is not None:
                self._check(node.orelse)
        elif answer is False:
            if isinstance(node.orelse, cst.If):
                self._if(node.orelse)
            elif node.orelse is not None:
                self._block(node.orelse.body)
        else:
            self._check(node)

    def _answer(self, test: cst.BaseExpression) -> bool | str | None:
        """Whether a test holds for the layer; "bias": where it has a bias."""
        match test:
            case cst.BooleanOperation(left, cst.And(), right):
                both = self._answer(left), self._answer(right)
                if False in both:
                    return False
                if None in both:
                    return None
                return "bias" if "bias" in both else True
            case cst.Call(cst.Name("isinstance"), [cst.Arg(cst.Name(name)), cst.Arg(classes)]):
                if name == self.name:
                    return self._is_one_of(classes)
            case cst.Comparison(
                cst.Attribute(cst.Name(name), cst.Name("bias")),
                [cst.ComparisonTarget(cst.IsNot() | cst.NotEqual(), cst.Name("None"))],
            ) if name == self.name:
                return "bias"
        return None

    def _is_one_of(self, classes: cst.BaseExpression) -> bool | None:
        elements = classes.elements if isinstance(classes, cst.Tuple) else [cst.Element(classes)]
        names = [self.ctx.facts.qualified_name(one.value) or "" for one in elements]
        if self.layer in names or "torch.nn.Module" in names:
            return True
        known = all(n.startswith("torch.nn.") or n in self.ctx.facts.classes for n in names)
        return False if known else None

    def _small(self, node: cst.BaseSmallStatement) -> None:
        if isinstance(node, cst.Pass) or (
            isinstance(node, cst.Expr) and isinstance(node.value, cst.SimpleString)
        ):
            return
        call = node.value if isinstance(node, cst.Expr) else None
        parameter = self._set_by(call) if isinstance(call, cst.Call) else None
        if parameter is None:
            self._check(node)
        else:
            assert isinstance(call, cst.Call)
            first = call.args[0] if self._is_function(call) else None
            for argument in call.args:
                if argument is not first:
                    self._check(argument)
            self.done.add(parameter)

    def _is_function(self, call: cst.Call) -> bool:
        return (self.ctx.facts.callee(call) or "").startswith("torch.nn.init.")

    def _set_by(self, call: cst.Call) -> str | None:
        """The parameter that a call gives new values: "weight" of ``init.normal_(module.weight, std=0.02)``."""
        name = self.ctx.facts.callee(call) or ""
        if name.startswith("torch.nn.init."):
            whole = name.rpartition(".")[2] in _WHOLE
            plain = bool(call.args) and not call.args[0].star and call.args[0].keyword is None
            return self._parameter(call.args[0].value) if whole and plain else None
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in _METHODS:
            return self._parameter(call.func.value)
        return None

    def _parameter(self, node: cst.BaseExpression) -> str | None:
        match node:
            case cst.Attribute(inner, cst.Name("data")):
                return self._parameter(inner)
            case cst.Attribute(cst.Name(name), cst.Name("weight" | "bias" as parameter)):
                return parameter if name == self.name else None
        return None

    def _check(self, node: cst.CSTNode) -> None:
        """What is not understood may do as it likes but read the layer, or leave.

        Raises:
          _Left: it does.
        """
        read = {
            id(one.value)
            for one in syntax.walk(node)
            if isinstance(one, cst.Attribute) and one.attr.value in _SIZES
        }
        for one in syntax.walk(node):
            if isinstance(one, cst.Return | cst.Raise | cst.Yield | cst.Assert):
                raise _Left
            if isinstance(one, cst.Name) and one.value == self.name and id(one) not in read:
                if not self._is_asked(node, one):
                    raise _Left

    def _is_asked(self, within: cst.CSTNode, name: cst.Name) -> bool:
        """Whether a name stands in ``isinstance(module, …)`` or ``module.bias is not None``."""
        parents = self.ctx.facts.tree.around(name)
        match parents[-1], parents[-2]:
            case cst.Arg(), cst.Call(cst.Name("isinstance")):
                return True
            case cst.Attribute(_, cst.Name("bias")), cst.Comparison(_, [cst.ComparisonTarget(op)]):
                return isinstance(op, cst.Is | cst.IsNot)
        return False


# --- where layers are built --------------------------------------------------------------------------------------------


def _all_within(ctx: Context, layer: str, roots: Sequence[_Root]) -> list[_Root]:
    """The roots that set every layer of a kind in the file; none where one of them is not set, or may not be."""
    setting = [root for root in roots if layer in root.layers]
    sites = _sites(ctx, layer)
    if (
        not setting
        or not sites
        or any(_derives(info, layer) for info in ctx.facts.classes.values())
    ):
        return []
    if layer == "torch.nn.Linear" and not all(root.layers[layer] for root in setting):
        if not all(map(_without_bias, sites)):
            return []
    return setting if _Places(ctx, setting).hold(sites) else []


def _derives(info: ClassInfo, layer: str) -> bool:
    return info.torch_base == layer


def _without_bias(call: cst.Call) -> bool:
    return any(
        a.keyword is not None and a.keyword.value == "bias" and syntax.code(a.value) == "False"
        for a in call.args
    )


def _sites(ctx: Context, name: str) -> list[cst.Call] | None:
    """The calls that build what is called so; None where it is read otherwise than to ask for it."""
    tree = ctx.facts.tree
    sites = []
    short = name.rpartition(".")[2]
    for node in tree.of_type(cst.Name, cst.Attribute):
        kind = ctx.facts.kinds.get(node)
        if not isinstance(kind, k.Class) or (kind.name != name and name not in kind.among):
            if isinstance(node, cst.Name) and node.value == short:
                if not _is_name_of(tree.around(node), node):
                    return None
            continue
        around = tree.around(node)
        match around:
            case [*_, cst.Call() as call] if call.func is node and kind.name == name:
                sites.append(call)
            case [*_, cst.Annotation()] | [
                *_,
                cst.Call(cst.Name("isinstance" | "super")),
                cst.Arg(),
            ]:
                pass
            case [
                *_,
                cst.Call(cst.Name("isinstance")),
                cst.Arg(),
                cst.Tuple(),
                cst.Element(),
            ]:
                pass
            case _:
                return None
    return sites


def _is_name_of(around: Sequence[Any], node: cst.Name) -> bool:
    """Whether a name is that of a definition or an import, or the last of a dotted one, which is looked at itself."""
    parent = around[-1]
    if isinstance(parent, cst.Attribute):
        return parent.attr is node
    return isinstance(parent, cst.ClassDef | cst.ImportAlias)


class _Places:
    """Whether calls stand where what they build becomes part of a module that is set anew."""

    def __init__(self, ctx: Context, roots: Sequence[_Root]) -> None:
        self.ctx = ctx
        self.roots = {root.info: root for root in roots}
        self._known: dict[ClassInfo, bool] = {}
        self._kept: dict[ClassInfo, frozenset[str]] = {}

    def hold(self, sites: Sequence[cst.Call] | None) -> bool:
        """All of them."""
        return sites is not None and all(map(self._holds, sites))

    def _holds(self, call: cst.Call) -> bool:
        around = self.ctx.facts.tree.around(call)
        function = next((n for n in reversed(around) if isinstance(n, cst.FunctionDef)), None)
        info = self.ctx.facts.functions.get(function) if function is not None else None
        if info is None or info.owner is None or info.short != "__init__":
            return False
        if not _is_registered(self.ctx, around, call):
            return False
        root = self.roots.get(info.owner)
        if root is not None and any(one is call for s in root.before for one in syntax.walk(s)):
            return self._unread(info.owner, root.before)
        return self._within(info.owner)

    def _within(self, info: ClassInfo) -> bool:
        """Whether a class is built as a part of such modules alone, and reads nothing while it is."""
        if info not in self._known:
            self._known[info] = False  # what holds itself is built by nobody
            init = _constructor(self.ctx, info)
            self._known[info] = (
                init is not None
                and self._unread(info, init.node.body.body)
                and bool(sites := _sites(self.ctx, info.name))
                and self.hold(sites)
            )
        return self._known[info]

    def _unread(self, info: ClassInfo, statements: Sequence[cst.CSTNode]) -> bool:
        """Whether statements of a constructor neither hand the module on nor read a part of it."""
        parts = self._parts(info)
        tree = self.ctx.facts.tree
        for node in (n for s in statements for n in syntax.walk(s)):
            if not isinstance(node, cst.Name) or node.value != "self":
                continue
            around = tree.around(node)
            parent = around[-1]
            if isinstance(parent, cst.Arg):
                if not (isinstance(around[-2], cst.Call) and _is_super(around[-2])):
                    return False
            elif not isinstance(parent, cst.Attribute) or parent.value is not node:
                return False
            elif not self._may_read(parent, around[:-1], parts):
                return False
        return True

    def _may_read(self, node: cst.Attribute, around: Sequence[Any], parts: frozenset[str]) -> bool:
        """Whether ``self.name`` is bound, is a plain value, is added to, or shares a weight."""
        name, parent = node.attr.value, around[-1]
        if isinstance(parent, cst.AssignTarget | cst.AnnAssign) and parent.target is node:
            return True
        if isinstance(parent, cst.Call) and parent.func is node:
            return name in _REGISTERS and (self.ctx.facts.callee(parent) == f"Module.{name}")
        if name not in parts:
            return isinstance(self.ctx.facts.kind(node), k.Const | k.Scalar | k.Tuple | k.Tensor)
        if isinstance(parent, cst.Attribute) and parent.attr.value == "append":
            return True
        return _shares_weight(around)

    def _parts(self, info: ClassInfo) -> frozenset[str]:
        """The attributes of a class that may hold modules."""
        if info not in self._kept:
            plain = k.Const | k.Scalar | k.Tensor
            self._kept[info] = frozenset(
                name
                for name, kind in info.attributes.items()
                if not isinstance(kind, plain)
                and not (
                    isinstance(kind, k.Tuple) and all(isinstance(i, plain) for i in kind.items)
                )
            )
        return self._kept[info]


def _is_super(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Name) and call.func.value == "super"


def _shares_weight(around: Sequence[Any]) -> bool:
    """Whether a node is the head of one side of ``self.a.weight = self.b.c.weight``."""
    chain = list(around)
    last = None
    while chain and isinstance(chain[-1], cst.Attribute):
        last = chain.pop()
    if last is None or last.attr.value != "weight" or not chain:
        return False
    assign = chain[-2] if isinstance(chain[-1], cst.AssignTarget) else chain[-1]
    if not isinstance(assign, cst.Assign) or len(assign.targets) != 1:
        return False
    sides = assign.targets[0].target, assign.value
    return all(isinstance(s, cst.Attribute) and s.attr.value == "weight" for s in sides)


def _is_registered(ctx: Context, around: Sequence[Any], call: cst.Call) -> bool:
    """Whether what a call builds becomes, directly or in containers, an attribute of self or an entry of a ModuleList."""
    loose = False  # in a list or a dict, which does not register what it holds
    for parent in reversed(around):
        match parent:
            case cst.Arg() | cst.Element() | cst.StarredElement() | cst.DictElement():
                continue
            case cst.List() | cst.Tuple() | cst.Dict() | cst.ListComp() | cst.GeneratorExp():
                loose = True
            case cst.IfExp():
                continue
            case cst.Call(func):
                name = ctx.facts.callee(parent) or ""
                if name not in _HOLDERS and name not in _PLAIN:
                    return not loose and _is_appended(ctx, func)
                loose = name in _PLAIN
            case cst.Assign([cst.AssignTarget(cst.Attribute(cst.Name("self")))]):
                return not loose
            case _:
                return False
    return False


def _is_appended(ctx: Context, func: cst.BaseExpression) -> bool:
    match func:
        case cst.Attribute(cst.Attribute(cst.Name("self")) as holder, cst.Name("append")):
            kind = ctx.facts.kind(holder)
            return isinstance(kind, k.Module) and kind.cls == "torch.nn.ModuleList"
    return False
