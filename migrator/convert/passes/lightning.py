"""What a ``LightningModule`` is beyond ``nn.Module``: hyperparameters, logging, and the training that Lightning runs."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import ClassInfo
from rules.definitions import module_file

_LOGGING = frozenset({"log", "log_dict"})
_RUNNING = frozenset(
    "trainer logger loggers global_step current_epoch local_rank global_rank optimizers lr_schedulers "
    "manual_backward toggle_optimizer untoggle_optimizer all_gather clip_gradients print fabric example_input_array "
    "automatic_optimization on_gpu".split()
)
"""What Lightning gives a module while it trains."""


def _names_it(ctx: Context) -> bool:
    return any(info.lightning for info in ctx.facts.classes.values())


@converts(cst.Expr, when=_names_it, values=(cst.Call,))
def left_to_lightning(rw: Rewriter, node: cst.Expr) -> Any:
    """``self.save_hyperparameters()`` → ``self.hparams = …``; ``self.log(…)`` goes."""
    call = node.value
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return None
    name = call.func.attr.value
    if not _is_lightnings(rw.ctx, call.func):
        return None
    if name == "save_hyperparameters":
        return _hyperparameters(rw, call)
    if name not in _LOGGING:
        return None
    what = f"self.{name}() of Lightning is left out"
    advice = "return the value, and log it where the training loop is"
    rw.ctx.report(node, "API004", what, advice, severity="info", blocks=False)
    return []


@converts(cst.Attribute, when=_names_it)
def given_by_lightning(rw: Rewriter, node: cst.Attribute) -> None:
    """``self.trainer``, ``self.optimizers()`` are of the training that Lightning runs."""
    if node.attr.value in _RUNNING | _LOGGING and _is_lightnings(rw.ctx, node):
        what = f"self.{node.attr.value} is of Lightning, which runs torch"
        raise Failure(node, "API004", what, "write the training loop with nnx and optax")


def _is_lightnings(ctx: Context, node: cst.Attribute) -> bool:
    """Whether an attribute of ``self`` is one that the class has from LightningModule."""
    owner = ctx.owner
    if owner is None or not ctx.is_self(node.value):
        return False
    name = node.attr.value
    if not owner.lightning:
        return False
    return owner.method(name) is None and owner.attribute(name) is None


def _hyperparameters(rw: Rewriter, call: cst.Call) -> Any:
    """``self.hparams = Hyperparameters(hidden=hidden, lr=lr)``, nothing where the file never asks for them."""
    ctx = rw.ctx
    frame = ctx.frame
    linked = ctx.facts.linked
    if "hparams" not in ctx.words and linked is None:
        return []
    if frame is None or frame.info.node.name.value != "__init__":
        what = "hyperparameters are saved outside of a constructor"
        raise Failure(call, "API004", what, "assign the attributes that are read")
    parents = ctx.owner.lineage()[1:] if ctx.owner is not None else []
    if any(one.settled is not None or _saves(ctx, one) for one in parents if one.lightning):
        what = "hyperparameters are saved by a class whose base may save some, too"
        raise Failure(call, "API004", what, "assign the attributes that are read")
    params = frame.info.node.params
    names = [p.name.value for p in syntax.named_parameters(params)]
    chosen: list[str] = []
    ignored: set[str] = set()
    for arg in call.args:
        texts = _texts(arg.value)
        keyword = arg.keyword.value if arg.keyword is not None else None
        if keyword in ("logger", "frame"):
            continue
        if texts is None or keyword not in (None, "ignore") or arg.star:
            what = "which hyperparameters are saved is not written out"
            raise Failure(call, "API004", what, "name the arguments")
        if keyword == "ignore":
            ignored |= set(texts)
        else:
            chosen += texts
    names = [n for n in names[1:] if n not in ignored and (not chosen or n in chosen)]
    args = [cst.Arg(cst.Name(n), keyword=cst.Name(n), equal=_TIGHT) for n in names]
    if params.star_kwarg is not None and not chosen:
        args.append(cst.Arg(params.star_kwarg.name, star="**"))
    helper = ctx.helpers.need(module_file("rules.compat.lightning"), "Hyperparameters")
    target = cst.AssignTarget(cst.Attribute(cst.Name("self"), cst.Name("hparams")))
    return cst.Assign([target], syntax.with_args(cst.Call(cst.Name(helper)), args))


def _saves(ctx: Context, info: ClassInfo) -> bool:
    """Whether a class of the file saves hyperparameters."""
    return bool(ctx.source.index.reading(info.node, "save_hyperparameters"))


_TIGHT = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))


def _texts(node: cst.BaseExpression) -> list[str] | None:
    """The texts of ``"lr"`` or ``["encoder", "decoder"]``."""
    if isinstance(node, cst.SimpleString):
        return [str(node.evaluated_value)]
    if isinstance(node, (cst.List, cst.Tuple)):
        found = [_texts(element.value) for element in node.elements]
        return None if None in found else [text for texts in found for text in texts or ()]
    return None
