"""Gradients that a program asks for where it computes: ``torch.autograd.grad(u, x)`` as a pullback of a function.

JAX differentiates functions, torch what a tensor was computed from. The lines that lead from ``x`` to ``u`` become a
function of ``x``, which is what torch.func.vjp asks for::

    u = self.net(x)                                def u_of_x(x):
    u_x = torch.autograd.grad(                         return self.net(x)
        u, x, torch.ones_like(u),
        create_graph=True)[0]                      u, u_vjp = torch.func.vjp(u_of_x, x)
                                                   u_x = u_vjp(torch.ones_like(u))[0]

A line that leads there is run once, as before, but for pullbacks that a second derivative goes through.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.asked_gradients import (
    Asked,
    assigned,
    fresh_name,
    is_named,
    may_ask,
    read,
    roots_of,
    spelled,
)
from migrator.assignments import bound, with_functions
from migrator.leading_lines import Line, Lines, names_bound, read_freely

_MOST = 40
"""Gradients in one function."""


def by_pullback(tree: cst.Module, text: str) -> cst.Module:
    """A file that computes gradients of functions where it asked torch for those of tensors, as far as that is proven."""
    if not may_ask(text):
        return tree
    names, torch = spelled(tree)
    if not names or torch is None:
        return tree
    made = with_functions(tree, lambda function: _Function(function, names, torch).rewritten())
    script = cst.FunctionDef(
        cst.Name("script"), cst.Parameters(), cst.IndentedBlock(list(made.body))
    )
    body: Any = _Function(script, names, torch, top=False).rewritten().body
    return made if body is script.body else syntax.changed(made, body=list(body.body))


@dataclass
class _Pulled:
    """What a function's lines become.

    Attributes:
      taken: the lines of the block that the function takes.
      place: where it is called; what it does not take of the lines before stays before it.
      inputs: its parameters.
      asked: the calls that its pullback answers.
      carried: the variables of these lines that others read, which it returns as well.
      repeated: those of its lines that stay where they are, too.
    """

    taken: list[int]
    place: int
    inputs: list[str]
    asked: list[Asked]
    carried: list[str]
    repeated: list[int]


class _Function:
    """A function that is being rewritten."""

    def __init__(
        self, function: cst.FunctionDef, names: frozenset[str], torch: str, top: bool = True
    ) -> None:
        """``top``: what its lines bind is nobody's else, as it is where they are a script."""
        self.function, self.top = function, top
        self.names, self.torch = names, torch
        self.used = set(syntax.names(function))
        self.pullbacks: set[cst.CSTNode] = set()
        """The lines made here that compute a pullback."""
        self.left: set[cst.CSTNode] = set()
        """The calls that nothing can be done about."""
        self.body: Any = function.body

    def rewritten(self) -> cst.FunctionDef:
        function = self.function
        params = list(syntax.parameters(function))
        if params[:1] == ["ctx"] or not isinstance(self.body, cst.IndentedBlock):
            return function
        if not any(self._is_grad(node) for node in syntax.walk(self.body)):
            return function
        for _ in range(_MOST):
            made = self._block(self.body, top=self.top)
            if made is self.body:
                break
            self.body = made
        return syntax.changed(function, body=self.body)

    def _is_grad(self, node: cst.CSTNode) -> bool:
        return isinstance(node, cst.Call) and syntax.code(node.func) in self.names

    def _block(self, block: cst.IndentedBlock, top: bool = False) -> cst.IndentedBlock:
        """A block with the first of its gradients written out that can be; itself where none can."""
        for place, line in enumerate(block.body):
            if not isinstance(line, cst.SimpleStatementLine):
                made = self._inner(line)
                if made is not line:
                    body = [*block.body[:place], made, *block.body[place + 1 :]]
                    return syntax.changed(block, body=body)
            for call in self._calls(line) if isinstance(line, cst.SimpleStatementLine) else ():
                if call not in self.left:
                    answered = self._answered(block, place, call, top)
                    if answered is not None:
                        return syntax.changed(block, body=answered)
                    self.left.add(call)
            for call in self._calls(line, anywhere=True):
                chained = self._chained(block, place, call, top)
                if chained is not None:
                    return syntax.changed(block, body=chained)
        return block

    def _inner(self, line: Any) -> Any:
        """A compound statement with a gradient in one of its blocks written out."""
        if isinstance(line, (cst.FunctionDef, cst.ClassDef)):
            return line

        def visit(node: cst.CSTNode) -> cst.CSTNode:
            if isinstance(node, cst.IndentedBlock):
                return self._block(node) if not changed else node
            if isinstance(node, cst.BaseExpression):
                return node
            made = syntax.rebuild(node, visit)
            if made is not node:
                changed.append(node)
            return made

        changed: list[cst.CSTNode] = []
        return visit(line)

    def _calls(self, line: Any, anywhere: bool = False) -> list[cst.Call]:
        """The gradients a line asks for, once and in any case; or how often it may be."""
        found: list[cst.Call] = []
        pending: list[Any] = [line]
        aside: tuple[type, ...] = (cst.FunctionDef, cst.ClassDef, cst.Lambda)
        if not anywhere:
            aside += (cst.BaseComp, cst.IfExp, cst.BooleanOperation)
        while pending:
            node = pending.pop(0)
            if self._is_grad(node):
                found.append(node)
            if not isinstance(node, aside):
                pending += syntax.children(node)
        return found

    # what becomes of it

    def _answered(
        self, block: cst.IndentedBlock, place: int, call: cst.Call, top: bool
    ) -> list[Any] | None:
        first = read(call, self.body)
        if first is None:
            return None
        lines = Lines(block.body, place)
        every = self._alike(block, place, first)
        plan = self._planned(lines, block, place, every, top)
        if plan is not None:
            used = {name for i in plan.taken for name in lines[i].reads}
            used |= {name for one in first.outputs for name in read_freely(one)}
            mixed = [name for name in self._mixed(block, place, every) if name in used]
            if mixed:
                plan = self._planned(lines, block, place, every, top, mixed) or plan
        if plan is None and len(every) > 1:
            plan = self._planned(lines, block, place, [first], top)
        return self._made(block, place, plan) if plan is not None else None

    def _mixed(self, block: cst.IndentedBlock, place: int, every: list[Asked]) -> list[str]:
        """The variables that a block goes on to ask for gradients by: ``u_xt`` is one by ``t`` of one by ``x``."""
        own = {name for one in every for name in one.inputs}
        found: list[str] = []
        for line in block.body[place:]:
            for call in self._calls(line) if isinstance(line, cst.SimpleStatementLine) else ():
                asked = read(call, self.body)
                found += [n for n in asked.inputs if n not in own | set(found)] if asked else []
        return found

    def _chained(
        self, block: cst.IndentedBlock, place: int, call: cst.Call, top: bool
    ) -> list[Any] | None:
        """The lines of a block, where a gradient goes through one variable that they compute.

        ``for i in range(d): … grad(g[:, i].sum(), x)`` pulls the gradient of ``g[:, i].sum()`` back to ``g``, and from
        there to ``x``, as torch does.
        """
        asked = read(call, self.body)
        if asked is None or asked.several:
            return None
        lines, line = Lines(block.body, place), Line(block.body[place])
        dependent = lines.dependent(asked.inputs)
        wanted = read_freely(asked.outputs[0])
        if dependent is None or wanted & set(asked.inputs):
            return None
        held = {name for i in dependent for name in lines[i].binds}
        through = wanted & held
        bound_ = names_bound(block.body[place])
        if len(through) != 1 or bound_ & (through | set(asked.inputs)):
            return None
        own = {
            n
            for one in syntax.walk(line.node)
            if isinstance(one, cst.CompFor)
            for n in bound(one.target)
        }
        inner = _led_to(line.node, held | set(asked.inputs))
        others = wanted - through
        if others & inner or own & set(asked.inputs):
            return None
        if self._are_others(lines, block, others, asked.inputs, (), top):
            return None
        (name,) = through
        one = asked
        if asked.variable is None:
            one = replace(asked, outputs=[cst.Name(name)], through=asked.outputs[0])
        plan = self._planned(lines, block, place, [one], top)
        return self._made(block, place, plan) if plan is not None else None

    def _alike(self, block: cst.IndentedBlock, place: int, first: Asked) -> list[Asked]:
        """The gradients of the same variable that a block goes on to ask for."""
        found = [first]
        name = first.outputs[0]
        if first.several or not isinstance(name, cst.Name):
            return found
        bound: set[str] = set()
        for line in block.body[place:]:
            if isinstance(line, cst.SimpleStatementLine):
                for call in self._calls(line):
                    asked = read(call, self.body) if call is not first.call else None
                    if asked is None or asked.several:
                        continue
                    if is_named(asked.outputs[0], name.value) and not bound & set(asked.inputs):
                        found.append(asked)
            bound |= names_bound(line)
            if name.value in bound:
                break
        return found

    def _planned(
        self,
        lines: Lines,
        block: cst.IndentedBlock,
        place: int,
        every: list[Asked],
        top: bool,
        mixed: Sequence[str] = (),
    ) -> _Pulled | None:
        """Which lines become a function; None where it is not proven to be what torch differentiates."""
        inputs: list[str] = []
        for one in every:
            inputs += [name for name in one.inputs if name not in inputs]
        inputs += mixed
        params = list(syntax.parameters(self.function))
        if set(inputs) <= set(params):
            inputs.sort(key=params.index)
        if not all(self._is_own(lines, name, top) for name in inputs):
            return None
        outputs = every[0].outputs
        wanted = {name for one in outputs for name in read_freely(one)}
        dependent = lines.dependent(inputs)
        if dependent is None:
            return None
        taken = lines.leading(wanted, dependent, inputs)
        name = every[0].variable
        if not taken and (name is not None or not wanted & set(inputs)):
            return None
        at = place
        if name is not None:
            if name not in lines[taken[-1]].binds:
                return None
            at = taken[-1]
        repeated = [i for i in taken if block.body[i] in self.pullbacks]
        every_taken = self._with_readers(lines, taken, repeated, at)
        if every_taken is None:
            return None
        taken = every_taken
        own = {name for i in taken if i not in repeated for name in lines[i].binds}
        own -= wanted if name is not None else set()
        beside = self._beside(block.body[place], every) if at == place else set()
        carried = sorted(
            one for one in own if one in beside or self._is_read_later(block, taken, at, one, top)
        )
        if any(lines[i].reads & own for i in repeated):
            return None
        used = {n for i in taken for n in lines[i].reads} | wanted
        made = {n for i in taken for n in lines[i].binds}
        free = used - set(inputs) - made
        if not lines.are_same(free, taken, at) or not lines.bind_first(taken, inputs):
            return None
        if not (wanted & made) | set(carried) <= lines.surely(taken):
            return None
        if self._are_others(lines, block, free, inputs, taken, top):
            return None
        return _Pulled(taken, at, inputs, every, carried, repeated)

    def _is_own(self, lines: Lines, name: str, top: bool) -> bool:
        """Whether a variable is this function's: nobody outside can have computed anything from it."""
        if name in syntax.parameters(self.function) or lines.bound_at(name) is not None:
            return True
        return not top and name in {n for _, binds in _flows(self.body, set()) for n in binds}

    def _with_readers(
        self, lines: Lines, taken: list[int], repeated: list[int], at: int
    ) -> list[int] | None:
        """The lines that a function takes, with those between them that read what others of them bind."""
        chosen = set(taken)
        if not chosen:
            return []
        known = -1
        while len(chosen) > known:
            known = len(chosen)
            moved = [i for i in chosen if i not in repeated]
            first = min(moved, default=at)
            for i in range(first, at):
                if i in chosen:
                    continue
                before = {n for j in moved if j < i for n in lines[j].binds}
                if lines[i].reads & before:
                    chosen.add(i)
        if any(not lines[i].may_move for i in chosen):
            return None
        moved = [i for i in chosen if i not in repeated]
        for i in range(min(moved, default=at), at):
            if i not in chosen and not lines[i].may_stay:
                return None
        return sorted(chosen)

    def _beside(self, line: cst.CSTNode, every: list[Asked]) -> set[str]:
        """What the line of a gradient reads beside what is differentiated."""
        left = syntax.names(line)
        for one in every[0].outputs:
            for name, times in syntax.names(one).items():
                left[name] -= times
        return {name for name, times in left.items() if times > 0}

    def _is_read_later(
        self, block: cst.IndentedBlock, taken: Sequence[int], at: int, name: str, top: bool
    ) -> bool:
        for line in block.body[at + 1 :]:
            later = Line(line)
            if name in later.reads:
                return True
            if name in later.binds and not later.keeps:
                return False
        if top:
            return False
        again = (one for i, one in enumerate(block.body) if i not in taken)
        if any(name in Line(one).reads for one in again):
            return True
        inside = sum(syntax.names(line).get(name, 0) for line in block.body)
        return syntax.names(self.body).get(name, 0) > inside

    def _are_others(
        self,
        lines: Lines,
        block: cst.IndentedBlock,
        free: set[str],
        inputs: Sequence[str],
        taken: Sequence[int],
        top: bool,
    ) -> bool:
        """Whether what the function reads of its surroundings may hold an input, or be computed from one."""
        roots: set[str] = set()
        for name in inputs:
            bound = lines.bound_at(name)
            if bound is not None:
                roots |= roots_of(block.body[bound], name)
            elif not top:
                roots.add(name)
        variables = {n for _, binds in _flows(self.body, set()) for n in binds}
        roots &= variables | set(syntax.parameters(self.function))
        if not roots:
            return False
        inside = {one for i in taken for one in syntax.walk(block.body[i])}
        return bool(free & (_led_to(self.body, roots, inside) - set(inputs)))

    def _made(self, block: cst.IndentedBlock, place: int, plan: _Pulled) -> list[Any]:
        asked = plan.asked[0]
        base = _base(asked.outputs[0])
        named = asked.variable is not None
        function = self._new(f"{base}_of_{'_'.join(plan.inputs)}")
        value = base if named else self._new(f"{base}_value")
        pullback = self._new(f"{base}_vjp")
        body = [_copied(block.body[i]) if i in plan.repeated else block.body[i] for i in plan.taken]
        kept: dict[str, Any] = {}
        results: list[cst.BaseExpression] = [*asked.outputs]
        result = _tuple(results) if asked.several else results[0]
        alone = _value_of(body[-1], base) if named and body else None
        if alone is not None and base not in plan.carried:
            result = alone
            last: Any = body.pop()
            kept = {
                "leading_lines": last.leading_lines,
                "trailing_whitespace": last.trailing_whitespace,
            }
        if plan.carried:
            result = _tuple([result, _tuple([cst.Name(n) for n in plan.carried])])
        body.append(syntax.changed(cst.SimpleStatementLine([cst.Return(result)]), **kept))
        params = ", ".join(plan.inputs)
        definition: Any = syntax.statement(f"def {function}({params}):\n    pass\n")
        definition = syntax.changed(
            definition,
            body=cst.IndentedBlock(body),
            leading_lines=[cst.EmptyLine(indent=False)],
        )
        more = ", has_aux=True" if plan.carried else ""
        aux = f", ({', '.join(plan.carried)},)" if plan.carried else ""
        call = f"{self.torch}.func.vjp({function}, {params}{more})"
        line: Any = syntax.statement(f"{value}, {pullback}{aux} = {call}\n")
        line = syntax.changed(line, leading_lines=[cst.EmptyLine(indent=False)])
        self.pullbacks.add(line)
        found: list[Any] = []
        moved = {i for i in plan.taken if i not in plan.repeated}
        for i, old in enumerate(block.body):
            if i == plan.place:
                found += [definition, line]
            if i in moved:
                continue
            made = old
            if i >= place:
                before: list[Any] = []
                for one in plan.asked:
                    new = self._pulled(one, plan, value, pullback, made, before)
                    made = new
                found += before
            found.append(made)
        return found

    def _pulled(
        self, asked: Asked, plan: _Pulled, value: str, pullback: str, line: Any, before: list[Any]
    ) -> Any:
        """A line with a gradient answered by the pullback."""
        ones = []
        for place, given in enumerate(asked.given):
            of = f"{value}[{place}]" if asked.several else value
            ones.append(given or syntax.parse(f"{self.torch}.ones_like({of})"))
        cotangent = _tuple(ones) if asked.several else syntax.unparenthesized(ones[0])
        if asked.through is not None:
            cotangent = self._through(value, asked.through, asked.given[0])
        call = cst.Call(cst.Name(pullback), [cst.Arg(cotangent)])
        places = [plan.inputs.index(name) for name in asked.inputs]

        def item(place: int) -> cst.BaseExpression:
            made: cst.BaseExpression = cst.Subscript(
                call.deep_clone(), [cst.SubscriptElement(cst.Index(cst.Integer(str(place))))]
            )
            if asked.kept is True:
                return made
            cut = cst.Call(cst.Attribute(made, cst.Name("detach")))
            if asked.kept is False:
                return cut
            name = self._new(f"{asked.inputs[place]}_grad")
            before.append(assigned(name, made))
            test = syntax.code(asked.kept)
            before.append(syntax.statement(f"if not ({test}):\n    {name} = {name}.detach()\n"))
            return cst.Name(name)

        def visit(node: cst.CSTNode) -> Any:
            match node:
                case cst.Subscript(
                    value=inner,
                    slice=[cst.SubscriptElement(cst.Index(cst.Integer() as which))],
                ) if inner is asked.call and int(which.value) < len(places):
                    return item(places[int(which.value)])
            if node is asked.call:
                if asked.kept is True and places == list(range(len(plan.inputs))):
                    return call
                return _tuple([item(place) for place in places])
            return syntax.rebuild(node, visit)

        return visit(line)

    def _through(
        self, name: str, output: cst.BaseExpression, given: cst.BaseExpression | None
    ) -> cst.BaseExpression:
        """The gradient of an expression by a variable."""
        function = cst.Lambda(
            cst.Parameters([cst.Param(cst.Name(name))]),
            syntax.unparenthesized(output.deep_clone()),
        )
        variable = {"__f__": function, "__x__": cst.Name(name)}
        if given is None and _is_sum(output):
            return syntax.substitute(
                syntax.parse(f"{self.torch}.func.grad(__f__)(__x__)"), variable
            )
        ones = given or syntax.parse(f"{self.torch}.ones_like(__y__)")
        whole = syntax.parse(f"{self.torch}.func.vjp(__f__, __x__)[1](__c__)[0]")
        ones = syntax.substitute(ones, {"__y__": syntax.unparenthesized(output)})
        return syntax.substitute(whole, variable | {"__c__": syntax.unparenthesized(ones)})

    def _new(self, name: str) -> str:
        return fresh_name(name, self.used)


def _is_sum(node: cst.BaseExpression) -> bool:
    """``y.sum()``, ``y.mean()``: a number."""
    return (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and node.func.attr.value in ("sum", "mean")
        and not node.args
    )


def _flows(block: Any, aside: set[Any]) -> Iterator[tuple[set[str], set[str]]]:
    """What each line of a function reads, and what it binds, but for some lines."""
    for node in syntax.walk(block):
        if isinstance(node, cst.SimpleStatementLine) and node not in aside:
            line = Line(node)
            yield line.follows, line.binds | line.affects
        elif isinstance(node, (cst.For, cst.CompFor)):
            if not _counts(node.iter):
                yield read_freely(node.iter), set(bound(node.target))
        elif isinstance(node, cst.WithItem) and node.asname is not None:
            yield read_freely(node.item), set(bound(node.asname.name))
        elif isinstance(node, cst.FunctionDef):
            line = Line(node)
            yield line.reads, line.binds


def _counts(node: cst.BaseExpression) -> bool:
    """``range(y.shape[-1])``: numbers, through which no gradient goes."""
    return isinstance(node, cst.Call) and is_named(node.func, "range")


def _led_to(body: Any, roots: set[str], aside: set[Any] | None = None) -> set[str]:
    """Some variables and what is computed from them anywhere in a body, but for some lines."""
    flows = list(_flows(body, aside or set()))
    held = set(roots)
    known = -1
    while len(held) > known:
        known = len(held)
        for reads, binds in flows:
            if reads & held:
                held |= binds
    return held


def _base(node: cst.BaseExpression) -> str:
    """What to name a function of ``u``, ``u.sum()``, ``self.net(x)`` by."""
    for one in syntax.walk(node):
        if isinstance(one, cst.Attribute) and is_named(one.value, "self"):
            return one.attr.value
    names = [one for one in syntax.names(node) if one not in ("self", "torch")]
    return names[0] if names else "value"


def _value_of(line: Any, name: str) -> cst.BaseExpression | None:
    """What a line assigns to a variable and nothing else."""
    match line:
        case cst.SimpleStatementLine(
            body=[cst.Assign([cst.AssignTarget(cst.Name(value=target))], value)]
        ) if target == name:
            return value
    return None


def _copied(line: Any) -> Any:
    return syntax.changed(line.deep_clone(), leading_lines=[])


def _tuple(values: list[cst.BaseExpression]) -> cst.Tuple:
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    last = cst.Comma() if len(values) == 1 else cst.MaybeSentinel.DEFAULT
    return cst.Tuple(
        [
            cst.Element(
                syntax.fitted(cst.Arg(v), "value", v), comma if i < len(values) - 1 else last
            )
            for i, v in enumerate(values)
        ],
        lpar=[cst.LeftParen()],
        rpar=[cst.RightParen()],
    )
