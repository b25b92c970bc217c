"""Control flow: gradient scopes, tests on tensors, loops; what runs only sometimes is never hoisted."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax, texts
from migrator.convert import tracking
from migrator.convert.context import Context, Failure
from migrator.convert.opening import opened
from migrator.convert.passes.functions import stopped
from migrator.convert.rewriter import PASS, Rewriter, converts
from migrator.infer import kinds as k
from migrator.infer.optional import doing_without, fallback, missing_library, runs_before
from migrator.infer.recomputing import saves_memory
from migrator.infer.static import present, truth, undecided_version
from migrator.infer.switches import OFF, kept
from rules import definitions
from rules.elsewhere import CONTEXT
from rules.flags._autocast import Use, use
from rules.flags._guards import last_test

NEUTRAL = frozenset(
    "torch.profiler.record_function torch.autograd.profiler.record_function "
    "torch.autograd.profiler.profile torch.nn.attention.sdpa_kernel torch.backends.cuda.sdp_kernel".split()
)
"""Contexts of torch that change no result: which kernel is taken, what is measured."""


@converts(cst.Expr, values=(cst.Tuple,))
def calls_of_a_tuple(rw: Rewriter, node: cst.Expr) -> Any:
    """``self.add_module("norm", m),``: a comma that makes a tuple of a statement; each call stands alone."""
    if not isinstance(node.value, cst.Tuple) or not node.value.elements:
        return None
    if not all(isinstance(e.value, cst.Call) for e in node.value.elements):
        return None
    found: list[Any] = []
    for element in node.value.elements:
        made = rw.visit(cst.Expr(element.value))
        found.extend(made if isinstance(made, list) else [made])
    return found


@converts(cst.Expr, values=(cst.IfExp,))
def chosen_call(rw: Rewriter, node: cst.Expr) -> Any:
    """``init.normal_(w) if deep else init.zeros_(w)`` as a statement → ``if``, for what is written in place."""
    choice = node.value
    if not isinstance(choice, cst.IfExp):
        return None
    if not all(isinstance(arm, cst.Call) for arm in (choice.body, choice.orelse)):
        return None
    arms = [
        cst.IndentedBlock([cst.SimpleStatementLine([cst.Expr(arm)])])
        for arm in (choice.body, choice.orelse)
    ]
    return rw.statement(cst.If(choice.test, arms[0], orelse=cst.Else(arms[1])))


@converts(cst.Expr, values=(cst.Call,))
def message(rw: Rewriter, node: cst.Expr) -> Any:
    """``print("nan")`` under ``if torch.isnan(x).any():``, which no trace knows."""
    return [] if node in rw.ctx.dropped else None


@converts(cst.Try, cst.With)
def flagged(rw: Rewriter, node: cst.Try | cst.With) -> None:
    """One that catches an error of tensor code stays as it is."""
    if node in rw.ctx.blocked:
        raise Failure(node, *rw.ctx.blocked[node])


@converts(cst.With)
def with_(rw: Rewriter, node: cst.With) -> Any:
    """``with torch.no_grad():`` goes; its results are wrapped in ``stop_gradient`` where they are assigned."""
    names = [_context_name(rw, item.item) for item in node.items]
    switched = tracking.either(rw, node)
    if switched is not None:
        return switched
    if not any(name and name.startswith("torch.") for name in names):
        items = [syntax.changed(item, item=rw.visit(item.item)) for item in node.items]
        return syntax.changed(node, items=items, body=rw.block(node.body))
    if len(names) > 1 and all(names):
        inner = cst.With([_alone(item) for item in node.items[1:]], node.body)
        outer = cst.With([_alone(node.items[0])], cst.IndentedBlock([inner]))
        return rw.statement(syntax.changed(outer, leading_lines=node.leading_lines))
    if len(names) == 1 and names[0] in OFF:
        return tracking.without(rw, node)
    if names == ["torch.set_grad_enabled"] and node.items[0].asname is None:
        made = tracking.as_told(rw, node)
        if made is not None:
            return made
    if names == ["torch.enable_grad"] and node.items[0].asname is None:
        return tracking.tracked(rw, node)
    if len(names) == 1 and use(node.items[0].item, names[0]) in (Use.OFF, Use.ON_CUDA):
        return opened(rw, node)
    if len(names) == 1 and names[0] in NEUTRAL and node.items[0].asname is None:
        return opened(rw, node)
    raise Failure(
        node.items[0].item,
        "API001",
        f"the context manager {names[0]} has no conversion",
        CONTEXT,
    )


def _alone(item: cst.WithItem) -> cst.WithItem:
    return syntax.changed(item, comma=cst.MaybeSentinel.DEFAULT)


def _context_name(rw: Rewriter, node: cst.BaseExpression) -> str | None:
    target = node.func if isinstance(node, cst.Call) else node
    return rw.ctx.facts.qualified_name(target)


@converts(cst.Assign, targets=(cst.Name,))
def named_autocast(rw: Rewriter, node: cst.Assign) -> Any:
    """``autocast = torch.cuda.amp.autocast`` goes where the name is only entered, which goes as well."""
    ctx = rw.ctx
    target = node.targets[0].target
    if ctx.frame is not None or len(node.targets) != 1 or not isinstance(target, cst.Name):
        return None
    if use(node.value, ctx.facts.qualified_name(node.value)) is None:
        return None
    linked = ctx.facts.linked
    if linked is not None and linked.gives(ctx.source.module, target.value):
        return None
    index = ctx.source.index
    entered = [d.decorator for d in index.of_type(cst.Decorator)]
    entered += [item.item for one in index.of_type(cst.With) for item in one.items]
    funcs = [one.func if isinstance(one, cst.Call) else one for one in entered]
    bound = [one.target for one in index.of_type(cst.AssignTarget)]
    reads = [n for n in index.of_type(cst.Name) if n.value == target.value]
    attributes = [one.attr for one in index.of_type(cst.Attribute)]
    classes = [one.name for one in index.of_type(cst.ClassDef)]
    known = {id(one) for one in (*funcs, *bound, *attributes, *classes)}
    return [] if all(id(one) in known for one in reads) else None


@converts(cst.Assign, targets=(cst.Name,), values=(cst.IfExp,))
def kept_context(rw: Rewriter, node: cst.Assign) -> Any:
    """``context = torch.no_grad if frozen else nullcontext`` → ``context = not frozen``."""
    ctx = rw.ctx
    if ctx.frame is None or not kept(ctx.facts, node):
        return None
    made = tracking.enabled(rw, node.value)
    return syntax.changed(node, value=made) if made is not None else None


def condition(rw: Rewriter, node: cst.BaseExpression) -> cst.BaseExpression:
    """Convert a condition; one on a tensor's value is data-dependent control flow."""
    kind = rw.ctx.facts.kind(node)
    if isinstance(kind, k.Tensor) and not rw.ctx.concrete:
        raise Failure(
            node,
            "DYN002",
            "a branch on a tensor's value cannot be traced",
            f"use jnp.where or lax.cond on `{_short(node)}`",
        )
    made: cst.BaseExpression = rw.visit(node)
    return made


def _short(node: cst.CSTNode) -> str:
    text = " ".join(syntax.code(node).split())
    return text if len(text) < 50 else text[:47] + "..."


@converts(cst.If)
def asked_of_torch(rw: Rewriter, node: cst.If) -> Any:
    """``if not torch.jit.is_scripting():``, ``if hasattr(torch, "…"):`` → the branch that runs."""
    known = truth(rw.ctx.facts, node.test)
    if known is None and _stays_none(rw.ctx, node.test):
        known = False
    if known is None:
        return None
    if known:
        return opened(rw, node)
    if isinstance(node.orelse, cst.If):
        return rw.statement(syntax.changed(node.orelse, leading_lines=node.leading_lines))
    return opened(rw, node, node.orelse.body) if node.orelse is not None else []


_BUILDING = frozenset(
    "__init__ reset_parameters _reset_parameters init_weights _init_weights".split()
)


def _stays_none(ctx: Context, test: cst.BaseExpression) -> bool:
    """``if self.bias is not None:`` where a layer is initialised that has no bias, whatever it is built with."""
    frame, owner, linked = ctx.frame, ctx.owner, ctx.facts.linked
    match test:
        case cst.Comparison(asked, [cst.ComparisonTarget(cst.IsNot(), cst.Name("None"))]):
            pass
        case _:
            return False
    if frame is None or owner is None or frame.info.short not in _BUILDING:
        return False
    if not isinstance(asked, cst.Attribute) or not ctx.is_self(asked.value):
        return False
    if owner.torch_base != "torch.nn.Module" or owner.attribute(asked.attr.value) != k.NONE:
        return False
    if len(owner.lineage()) > 1 or (linked is not None and linked.shared(owner.name)):
        return False
    if any(owner in one.lineage() for one in ctx.facts.classes.values() if one is not owner):
        return False
    return not ctx.facts.tree.spells(owner.node, ("setattr", "__dict__"))


@converts(cst.If)
def of_a_mask(rw: Rewriter, node: cst.If) -> Any:
    """``if mask.any(): x = x.masked_fill(mask, 0)`` → the body, which does nothing where the mask is empty."""
    if not rw.ctx.guards(node):
        return None
    if last_test(node) is node.test:
        return opened(rw, node)
    assert isinstance(node.test, cst.BooleanOperation)
    return if_(rw, syntax.changed(node, test=node.test.left))


@converts(cst.If)
def layer_groups(rw: Rewriter, node: cst.If) -> Any:
    """``if isinstance(m, (nn.Linear, nn.Conv2d)):`` where Flax names their weights differently: a branch each."""
    test = node.test
    if not (isinstance(test, cst.Call) and isinstance(test.func, cst.Name)):
        return None
    if test.func.value != "isinstance" or len(test.args) != 2:
        return None
    classes = test.args[1].value
    if not isinstance(classes, cst.Tuple) or not isinstance(test.args[0].value, cst.Name):
        return None
    union = [rw.ctx.facts.qualified_name(e.value) or "" for e in classes.elements]
    groups: dict[Any, list[int]] = {}
    for i, name in enumerate(union):
        groups.setdefault(_weight_names(name), []).append(i)
    if (
        len(groups) < 2
        or "|".join(union) in rw.ctx.narrowed
        or not _asks_weights(node, test.args[0].value)
    ):
        return None
    made: Any = node.orelse
    if isinstance(made, cst.If):
        made = if_(rw, made)
    elif made is not None:
        made = syntax.changed(made, body=rw.block(made.body))
    for number, members in reversed(list(enumerate(groups.values()))):
        rw.ctx.narrowed["|".join(union)] = "|".join(union[i] for i in members)
        try:
            elements = [
                syntax.changed(classes.elements[i], comma=cst.MaybeSentinel.DEFAULT)
                for i in members
            ]
            only: cst.BaseExpression = (
                elements[0].value
                if len(elements) == 1
                else syntax.changed(classes, elements=elements)
            )
            one = syntax.changed(
                test, args=[test.args[0], syntax.changed(test.args[1], value=only)]
            )
            made = syntax.changed(
                node,
                test=rw.visit(one),
                body=rw.block(node.body),
                orelse=made,
                leading_lines=node.leading_lines if number == 0 else [],
            )
        finally:
            rw.ctx.narrowed.pop("|".join(union))
    return made


def _weight_names(name: str) -> Any:
    rules = definitions.layers(name)
    weights = rules[0].weights if rules else {}
    return tuple(weights.get(key, key) for key in ("weight", "bias"))


def _asks_weights(node: cst.If, name: cst.Name) -> bool:
    return any(
        isinstance(n, cst.Attribute)
        and n.attr.value in ("weight", "bias")
        and isinstance(n.value, cst.Name)
        and n.value.value == name.value
        for n in syntax.walk(node.body)
    )


@converts(cst.If)
def if_(rw: Rewriter, node: cst.If) -> Any:
    """Convert an ``if``; a test that fails marks the statement and its branches are still converted."""
    if node in rw.ctx.dropped:
        return []
    comment: Failure | None = None
    try:
        test = condition(rw, node.test)
        if test is not node.test:
            test = syntax.unparenthesized(test)
    except Failure as failure:
        comment, test = failure, node.test
    body = rw.block(node.body)
    orelse = node.orelse
    if isinstance(orelse, cst.If):
        with rw.ctx.no_hoisting():
            made = asked_of_torch(rw, orelse)
            made = if_(rw, orelse) if made is None else made
        if isinstance(made, list):
            orelse = cst.Else(cst.IndentedBlock(made)) if made else None
        else:
            orelse = made if isinstance(made, cst.If) else orelse
    elif orelse is not None:
        orelse = syntax.changed(orelse, body=rw.block(orelse.body))
    new = syntax.changed(node, test=test, body=body, orelse=orelse)
    return new if comment is None else rw.left_in_place(new, comment)


@converts(cst.While)
def while_(rw: Rewriter, node: cst.While) -> Any:
    """A loop whose test reads a tensor does not trace."""
    comment: Failure | None = None
    test = node.test
    with rw.ctx.no_hoisting():
        try:
            test = condition(rw, node.test)
        except Failure as failure:
            comment = failure
    orelse = node.orelse
    if orelse is not None:
        orelse = syntax.changed(orelse, body=rw.block(orelse.body))
    new = syntax.changed(node, test=test, body=rw.block(node.body), orelse=orelse)
    return new if comment is None else rw.left_in_place(new, comment)


@converts(cst.For)
def for_(rw: Rewriter, node: cst.For) -> Any:
    """Convert a ``for``."""
    comment: Failure | None = None
    iterator = node.iter
    try:
        iterator = rw.visit(node.iter)
        if rw.ctx.no_grad and isinstance(node.iter, (cst.List, cst.Tuple)):
            iterator = stopped(rw, iterator, node.iter)
    except Failure as failure:
        comment = failure
    orelse = node.orelse
    if orelse is not None:
        orelse = syntax.changed(orelse, body=rw.block(orelse.body))
    new = syntax.changed(node, iter=iterator, body=rw.block(node.body), orelse=orelse)
    return new if comment is None else rw.left_in_place(new, comment)


@converts(cst.Else, cst.Finally)
def else_(rw: Rewriter, node: cst.Else) -> Any:
    """Convert the suite of an ``else`` or ``finally``."""
    return syntax.changed(node, body=rw.block(node.body))


@converts(cst.Try)
def without_library(rw: Rewriter, node: cst.Try) -> Any:
    """``try: import xformers … except ImportError: …`` → what the author does without the library."""
    handler = fallback(rw.ctx.facts, node)
    if handler is None:
        return None
    library = missing_library(rw.ctx.facts, node)
    what, advice = doing_without(library)
    rw.ctx.report(node.body, "API004", what, advice, severity="info", blocks=False)
    before = runs_before(rw.ctx.facts, node)
    if not before:
        return opened(rw, node, handler.body)
    return [*opened(rw, node), *opened(rw, node.with_changes(leading_lines=[]), handler.body)]


@converts(cst.Try)
def try_(rw: Rewriter, node: cst.Try) -> Any:
    """Convert the suites of a ``try``; one whose imports all went away goes itself."""
    body = rw.block(node.body)
    handlers = [syntax.changed(h, body=rw.block(h.body)) for h in node.handlers]
    only_imports = all(
        isinstance(s, cst.SimpleStatementLine)
        and all(isinstance(x, (cst.Import, cst.ImportFrom, cst.Assign)) for x in s.body)
        for s in node.body.body
    )
    if only_imports and list(body.body) == [PASS] and node.orelse is None:
        return []
    return syntax.changed(
        node,
        body=body,
        handlers=handlers,
        orelse=rw.visit(node.orelse) if node.orelse else None,
        finalbody=rw.visit(node.finalbody) if node.finalbody else None,
    )


@converts(cst.Match)
def match_(rw: Rewriter, node: cst.Match) -> Any:
    """Convert the suites of a ``match``."""
    cases = [syntax.changed(c, body=rw.block(c.body)) for c in node.cases]
    return syntax.changed(node, subject=rw.visit(node.subject), cases=cases)


@converts(cst.Assert)
def assert_(rw: Rewriter, node: cst.Assert) -> Any:
    """An assertion on a tensor's value does not trace; one that is always true goes."""
    if node in rw.ctx.dropped or truth(rw.ctx.facts, node.test):
        return []
    if isinstance(rw.ctx.facts.kind(node.test), k.Tensor) and not rw.ctx.concrete:
        rw.ctx.report(
            node,
            "TRC011",
            "an assertion on a tensor's value is left out: it cannot be traced",
            "use jax.experimental.checkify to keep it",
            severity="info",
            blocks=False,
        )
        return []
    if _asks_gradient(rw.ctx, node.test):
        rw.ctx.report(
            node,
            "TRC011",
            "an assertion on what autograd records of a tensor is left out: arrays have no such state",
            "",
            severity="info",
            blocks=False,
        )
        return []
    with rw.ctx.no_hoisting():
        test = condition(rw, node.test)
        msg = rw.visit(node.msg) if node.msg is not None else None
    if test is node.test and msg is node.msg:
        return node
    return syntax.changed(node, test=syntax.unparenthesized(test), msg=msg)


def _asks_gradient(ctx: Context, test: cst.BaseExpression) -> bool:
    """``not x.requires_grad``, ``x.requires_grad is False``."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return _asks_gradient(ctx, test.expression)
    match test:
        case cst.Comparison(left, [cst.ComparisonTarget(_, cst.Name("True" | "False"))]):
            return _asks_gradient(ctx, left)
        case cst.Attribute(of, cst.Name("requires_grad")):
            return isinstance(ctx.facts.kind(of), k.Tensor)
    return False


@converts(cst.IfExp)
def if_exp(rw: Rewriter, node: cst.IfExp) -> Any:
    """Arms of a conditional run only sometimes: nothing is hoisted out of them."""
    known = truth(rw.ctx.facts, node.test)
    if known is not None:
        return rw.visit(node.body if known else node.orelse)
    test = condition(rw, node.test)
    with rw.ctx.no_hoisting():
        body, orelse = rw.visit(node.body), rw.visit(node.orelse)
    return syntax.changed(
        node,
        test=syntax.fitted(node, "test", test),
        body=syntax.fitted(node, "body", body),
        orelse=syntax.fitted(node, "orelse", orelse),
    )


@converts(cst.BooleanOperation)
def recomputed(rw: Rewriter, node: cst.BooleanOperation) -> Any:
    """``torch.is_grad_enabled() and self.checkpointing`` → ``self.checkpointing``."""
    rest = saves_memory(rw.ctx.facts, node)
    return rw.visit(rest) if rest is not None else None


@converts(cst.BooleanOperation)
def boolean(rw: Rewriter, node: cst.BooleanOperation) -> Any:
    """``and``/``or`` of tensors ask for their truth."""
    if isinstance(node.operator, cst.Or) and present(rw.ctx.facts, node.left):
        return rw.visit(node.left)
    known = truth(rw.ctx.facts, node.left)
    if known is not None:
        decided = known is isinstance(node.operator, cst.Or)
        return cst.Name(str(known)) if decided else rw.visit(node.right)
    last = isinstance(
        rw.ctx.facts.kind(node), k.Tensor
    )  # given as it is; who asks it is found there
    for side in (node.left,) if last else (node.left, node.right):
        if isinstance(rw.ctx.facts.kind(side), k.Tensor) and not rw.ctx.concrete:
            raise Failure(
                side,
                "DYN002",
                "the truth of a tensor cannot be traced",
                "use & and | on boolean arrays, or lax.cond",
            )
    left = rw.visit(node.left)
    with rw.ctx.no_hoisting():
        right = rw.visit(node.right)
    if left is node.left and right is node.right:
        return node
    return syntax.changed(
        node, left=syntax.fitted(node, "left", left), right=syntax.fitted(node, "right", right)
    )


@converts(cst.Comparison)
def version(rw: Rewriter, node: cst.Comparison) -> Any:
    """``torch.__version__ >= "2.0"`` compares versions, strings would compare letter by letter."""
    known = truth(rw.ctx.facts, node)
    if known is not None:
        return cst.Name(str(known))
    if undecided_version(rw.ctx.facts, node):
        what = "torch's version is compared with what is not known here"
        raise Failure(node, "API001", what, "write down the branch that is meant")
    return None


@converts(cst.UnaryOperation)
def not_(rw: Rewriter, node: cst.UnaryOperation) -> Any:
    """``not tensor`` asks for a truth value."""
    if isinstance(node.operator, cst.Not) and not rw.ctx.concrete:
        if isinstance(rw.ctx.facts.kind(node.expression), k.Tensor):
            raise Failure(node, "DYN002", "the truth of a tensor cannot be traced", "use ~")
    return None


@converts(cst.Lambda, cst.ListComp, cst.GeneratorExp, cst.SetComp, cst.DictComp)
def scoped(rw: Rewriter, node: Any) -> Any:
    """Bodies of lambdas and comprehensions run elsewhere or often: nothing is hoisted out of them."""
    with rw.ctx.no_hoisting():
        return rw.rebuild(node)


@converts(cst.FormattedString)
def formatted(rw: Rewriter, node: cst.FormattedString) -> cst.CSTNode:
    """What is put between the braces of an f-string must not end it, as its own quotes do before Python 3.12."""
    made = rw.rebuild(node)
    if made is node:
        return node
    return texts.requoted(made, node.end)
