"""What a module does once: ``if self.initialized.item() == 0: self.initialize(x)`` → ``nnx.cond`` over the module."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Failure
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.flags._first import Asked, Start, start


@converts(cst.If)
def once(rw: Rewriter, node: cst.If) -> Any:
    """A function of the module that does it, and ``nnx.cond(self.initialized[...] == 0, it, lambda self: None, self)``."""
    ctx = rw.ctx
    if ctx.frame is None or ctx.in_init or ctx.owner is None or not ctx.facts.tree.has(node):
        return None
    found = start(node, ctx.facts.tree.around(node), ctx.facts.kind)
    if found is None:
        return None
    ctx.helpers.use("nnx")
    wanted = "then" if found.otherwise else "start"
    functions = [_function(rw, wanted, found.body, found.given)]
    names = [functions[0].name.value, "lambda self: None"]
    if found.otherwise:
        functions.append(_function(rw, "otherwise", found.otherwise))
        names[1] = functions[1].name.value
    if found.ends:
        names.reverse()
        ctx.moved.update(found.body)
    call = syntax.parse(f"nnx.cond(__test__, {', '.join(names)}, self)")
    call = syntax.substitute(call, {"__test__": _question(rw, found.asked)})
    lines: list[Any] = [*functions, cst.SimpleStatementLine([cst.Expr(call)])]
    if found.settled:
        test = syntax.unparenthesized(_settled(rw, found))
        if found.otherwise:  # which is what is done where nothing is asked, too
            other = cst.IndentedBlock([syntax.statement(f"{names[1]}(self)")])
            lines[-1] = cst.If(test, cst.IndentedBlock(lines[-1:]), cst.Else(other))
        else:
            lines = [cst.If(test, cst.IndentedBlock(lines))]
    lines[0] = syntax.changed(lines[0], leading_lines=node.leading_lines)
    return lines


@converts(cst.Raise)
def left_out(rw: Rewriter, node: cst.Raise) -> Any:
    """An error that depends on the state of a module cannot be raised by what is traced."""
    return cst.Pass() if node in rw.ctx.dropped else None


def _function(
    rw: Rewriter, wanted: str, lines: Sequence[cst.BaseStatement], given: Sequence[str] = ()
) -> Any:
    """``def start(self): …``; what it gives other values than its function has comes with them as defaults."""
    ctx = rw.ctx
    name = _name(rw, wanted)
    with ctx.no_hoisting():
        body = rw.block(cst.IndentedBlock(list(lines)))
    _check_names(rw, lines, body, given)
    parameters = ", ".join(["self", *(f"{one}={one}" for one in given)])
    return syntax.changed(syntax.statement(f"def {name}({parameters}):\n    pass\n"), body=body)


def _settled(rw: Rewriter, found: Start) -> cst.BaseExpression:
    """What must hold of Python's: all of several; or, where the function ends else, none."""
    mapping = {f"__part{at}__": rw.visit(one) for at, one in enumerate(found.settled)}
    joined = (" or " if found.ends else " and ").join(mapping)
    if found.ends and len(mapping) == 1:
        (only,) = mapping.values()
        if isinstance(only, cst.UnaryOperation) and isinstance(only.operator, cst.Not):
            return only.expression
        joined = f"not {joined}"
    elif found.ends:
        joined = f"not ({joined})"
    return syntax.substitute(syntax.parse(joined), mapping)


def _question(rw: Rewriter, asked: Sequence[Asked]) -> cst.BaseExpression:
    """What is asked of the state, as one truth value: ``self.steps[...] < 3``."""
    texts, mapping = [], dict[str, cst.BaseExpression]()
    for at, one in enumerate(asked):
        text = f"__state{at}__"
        mapping[text] = rw.visit(one.state)
        if one.modulo is not None:
            text += f" % __modulo{at}__"
            mapping[f"__modulo{at}__"] = rw.visit(one.modulo)
        if isinstance(one.number, str):
            text += f" {one.operator} {one.number}"
        else:
            text += f" {one.operator} __number{at}__"
            mapping[f"__number{at}__"] = rw.visit(one.number)
        kind = rw.ctx.kind(one.state)
        if (
            isinstance(kind, k.Tensor)
            and kind.dtype == "bool"
            and text.endswith((" != 0", " == 0"))
        ):
            text = ("~" if text.endswith(" == 0") else "") + text[: -len(" == 0")]
        if not isinstance(kind, k.Tensor) or kind.rank != 0:
            rw.ctx.helpers.use("jnp")
            text = f"jnp.all({text})"
        texts.append(text if len(asked) == 1 else f"({text})")
    return syntax.substitute(syntax.parse(" & ".join(texts)), mapping)


def _name(rw: Rewriter, wanted: str) -> str:
    """A name for a function, with a number where the method has another use for it or a function of that name."""
    assert rw.ctx.frame is not None
    taken = {n.value for n in rw.ctx.facts.tree.within(rw.ctx.frame.info.node, cst.Name)}
    taken |= rw.ctx.frame.starts
    numbered = (f"{wanted}{number}" for number in itertools.count(2))
    name = next(one for one in itertools.chain([wanted], numbered) if one not in taken)
    rw.ctx.frame.starts.add(name)
    return name


def _check_names(
    rw: Rewriter, lines: Sequence[cst.CSTNode], body: cst.BaseSuite, given: Sequence[str]
) -> None:
    """What the converted branch binds is its own: a function cannot give the names around it new values."""
    assert rw.ctx.frame is not None
    bound = {
        item.target.value
        for item in syntax.walk(body)
        if isinstance(item, (cst.AssignTarget, cst.AugAssign)) and isinstance(item.target, cst.Name)
    }
    tree = rw.ctx.facts.tree
    function = rw.ctx.frame.info.node
    inside = {id(n) for line in lines for n in tree.within(line, cst.Name)}
    outside = {n.value for n in tree.within(function, cst.Name) if id(n) not in inside}
    if bound & outside - set(given):
        what = "a branch on a tensor's value cannot be traced"
        raise Failure(lines[0], "DYN002", what, "choose by jnp.where or lax.cond")
