"""What the passes share while one file is rewritten."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from symtable import SymbolTable
from typing import TYPE_CHECKING, Any

import libcst as cst

from migrator import syntax
from migrator.convert.bindings import (
    bound_at_top,
    bound_in_file,
    bound_within,
    hidden_at_top,
    imported,
    used_names,
)
from migrator.convert.helpers import Helpers
from migrator.convert.randomness import RngPlan
from migrator.findings import Finding
from migrator.infer import ClassInfo, Facts, FunctionInfo
from migrator.infer import kinds as k
from migrator.infer.facts import asks_for_modules, hands_makers
from migrator.source import Source
from migrator.tree import Tree
from rules.flags._guards import is_guard

if TYPE_CHECKING:
    from migrator.analyze.walk import FlagWalk


class Failure(Exception):
    """The statement around a node cannot be converted."""

    def __init__(self, node: cst.CSTNode, rule: str, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.node, self.rule, self.message, self.advice = node, rule, message, advice


@dataclass
class Frame:
    """One function being rewritten, and the names it binds itself."""

    info: FunctionInfo
    owner: ClassInfo | None
    locals: frozenset[str]
    no_grad: bool = False
    reads: dict[str, int] = field(default_factory=dict)
    starts: set[str] = field(default_factory=set)
    """The names of the functions within it that hold what is done under a condition."""


@dataclass
class Statement:
    """The statement being rewritten: what must stand before it, and what ran before in it."""

    node: cst.CSTNode
    before: list[cst.BaseStatement] = field(default_factory=list)
    effects: list[cst.CSTNode] = field(default_factory=list)
    may_hoist: bool = True
    todo: list[cst.EmptyLine] = field(default_factory=list)
    """Comments on parts of it that are not converted, while it is."""
    target: str | None = None


class Context:
    """State of one conversion."""

    def __init__(self, source: Source, facts: Facts, plan: RngPlan | None = None) -> None:
        self.source = source
        self.facts = facts
        self.findings: list[Finding] = []
        self.words = used_names(source.index)
        """Every name and name of an attribute that the file holds."""
        self.helpers = Helpers(self.words, bound_in_file(source.index))
        self.names_made: SymbolTable | None = None
        """The names of what the file has become."""
        self.plan = plan if plan is not None else RngPlan(facts)
        self.blocked: dict[cst.CSTNode, tuple[str, str, str]] = {}
        self.dropped: set[cst.CSTNode] = set()
        self.moved: set[cst.CSTNode] = set()
        """Statements that stand in a function made of them, no more where they were."""
        self.classes: list[ClassInfo] = []
        self.frames: list[Frame] = []
        self.in_defaults = False
        self.statements: list[Statement] = []
        self.torch_names = imported(source.index)
        self.rebound: dict[str, int] | None = None
        """Imported names that the top of the file binds to something else, and where in the tree it has done so."""
        self.bound_within: dict[str, list[tuple[int, int]]] = {}
        self.module_rngs = False
        self.rngs_by_definitions = False
        """Whether a default or a class body, which run where they stand, takes the file's own generator."""
        self.no_grad = 0
        self.called_off: dict[FunctionInfo, bool | None] = {}
        self.gradient_if: list[cst.BaseExpression] = []
        self.edits_lists: bool | None = None
        self.gone_over: dict[FunctionInfo, frozenset[str]] = {}
        self.put_somewhere: dict[FunctionInfo, frozenset[str]] = {}
        self.overriding: dict[FunctionInfo, list[FunctionInfo]] | None = None
        self.handed_sequentials: Any = None  # of migrator.convert.gone_over
        self.made_up_names: dict[ClassInfo, list[str]] = {}
        self.kin: dict[ClassInfo, list[ClassInfo]] = {}
        self.possible_calls: dict[FunctionInfo, dict[Any, FunctionInfo | None]] | None = None
        self.iterates_dicts: bool | None = None
        self.narrow: tuple[bool, ...] | None = None
        """Whether the file names a dtype of fewer digits than float32 and int32."""
        self.half: bool | None = None
        """Whether it names a float dtype of fewer digits than float32."""
        self.extended: set[str] | None = None
        self.named: dict[bool, set[str]] | None = None
        """The names that Sequentials are assigned to, by whether their children have names."""
        self.writers: dict[FunctionInfo, bool] = {}
        self.writing: dict[FunctionInfo, bool] = {}
        """Whether a function may write to the memory of one of its arguments."""
        self.writing_untold: dict[FunctionInfo, bool] = {}
        """Whether it may do so whatever ``inplace`` says."""
        self.updates: dict[FunctionInfo, frozenset[str]] = {}
        self.state_names: dict[FunctionInfo, frozenset[str]] = {}
        """Names of attributes that a function may write to in place."""
        self.direct_writes: dict[FunctionInfo, frozenset[str]] = {}
        """Those that its own lines write to."""
        self.written_names: frozenset[str] | None = None
        """Those that anything in the file may write to in place."""
        self.held: Any = None
        """Names for what a mask selects, which are only asked where something is written through the same mask."""
        self.looked_into: set[str] = set()
        """Local names whose values are being looked into for methods."""
        self.bounded: set[cst.CSTNode] | None = None
        """Targets of writes within bounds that tensors hold."""
        self.pointers: Any = None
        """Places to write from on that tensors hold."""
        self.places: Any = None
        """Selections by a mask that are nothing but places to write a number to."""
        self.dtype_keys: Any = None
        """Dtypes that a dict or a set is asked by, or holds."""
        self.branches: dict[cst.CSTNode, Any] | None = None
        """Branches on a tensor's value that become ``lax.cond``."""
        self.flagged: list[tuple[cst.CSTNode, Finding]] = []
        """What the flag rules say, before anything was found to be convertible after all."""
        self.nonzero_fills: Any = None
        """Rows that are looked up for nothing but to be filled."""
        self.stops: dict[cst.CSTNode, Any] | None = None
        """Loops that end by a tensor's value, whose rounds become functions."""
        self.overwritten: frozenset[str] | None = None
        """Layers of torch of which every one in the file gets new first values from what builds it."""
        self.rebound_names: frozenset[str] | None = None
        """Names of attributes that something in the file binds where it builds no object."""
        self.forward_writes: frozenset[str] | None = None
        """Those that the forward pass of some module may write to."""
        self.tensor_names: frozenset[str] | None = None
        """Names of attributes that are tensors in some class."""
        self.forward_pass: set[FunctionInfo] | None = None
        """The functions that the forward pass of some module calls."""
        self.state_read: dict[FunctionInfo, frozenset[str]] = {}
        """Those of them that a function reads."""
        self.kept_methods: frozenset[tuple[str, str]] | None = None
        """Classes and attributes that keep methods of the module, by their names."""
        self.replaced: frozenset[tuple[str, bool]] | None = None
        """What the names of children may be in whose place the file may put a layer that returns its input.

        Each with whether it may be the child of a Sequential."""
        self.takes_layers: bool | None = None
        """Whether it takes layers out of a container."""
        self.kept_functions: frozenset[tuple[str, str]] | None = None
        """Those that keep a function which is handed the module."""
        self.kept_either: dict[tuple[str, str], bool] | None = None
        """Those that keep such a function or else another, and whether a layer may stand there."""
        self.made_of_globals: dict[str, str] | None = None
        """Names of attributes that may share memory with a tensor of the file, and what that is called."""
        self.of_globals: dict[FunctionInfo, tuple[tuple[str, str], ...]] = {}
        """Those that a function makes."""
        self.given_anywhere: dict[str, list[cst.CSTNode]] | None = None
        """Names → what they are given anywhere in the file, once it is asked for."""
        self.stateless: dict[FunctionInfo, bool] = {}
        """Whether a method is written as a static one, once it has been asked."""
        self.package_names: Any = None
        """What becomes of the dotted names of the file's own package, once it is asked for."""
        self.known_masks: Any = None
        """The masks whose values hang on sizes alone, once they are asked for."""
        self.hands_initializers: bool | None = None
        """Whether the file hands functions around that initialise what they are given."""
        self.kept: dict[FunctionInfo, tuple[tuple[str, str, str], ...]] = {}
        """Constructor → the arguments whose memory it keeps."""
        self.assigned: dict[ClassInfo, dict[str, list[cst.BaseExpression]]] = {}
        """Class → attribute of self → what it and the classes derived from it assign to it."""
        self.built: dict[cst.CSTNode, list[FunctionInfo]] | None = None
        """Call → the constructors of the file that it may run, once they are asked for."""
        self.displays: dict[FunctionInfo, dict[str, list[cst.BaseExpression]]] = {}
        """Function → its local names that are given lists, tuples and dicts which are written out, and these."""
        self.putting: dict[FunctionInfo, list[Any]] = {}
        """Method → what in it may put something into a container."""
        self.put_beside: dict[ClassInfo, frozenset[str]] = {}
        """Class → the attributes that get constants beside others: ``self.norm, self.act = None, None``."""
        self.redeclared: set[cst.CSTNode] = set()
        """Assignments that are being declared as data."""
        self.emptied: frozenset[str] | None = None
        """Names of lists that the project may take something out of."""
        self.named_classes: dict[ClassInfo, bool] = {}
        self.refilled: frozenset[str] | None = None
        """Buffers that are filled with what has a gradient, once they are asked for."""
        self.made_variables: dict[FunctionInfo, list[Any]] = {}
        """Constructor → the parameters and buffers it makes, and the memory they are made of."""
        self.variables: dict[FunctionInfo, list[cst.Attribute]] = {}
        """Function → where it names a parameter or buffer as an attribute."""
        self.given_names: dict[str, bool] | None = None
        """Names of attributes, and whether the file assigns to them anywhere or holds them as a text."""
        self.holders: set[str] | None = None
        """Names that may stand for one of them, or for what makes one."""
        self.foreign_holders: set[str] = set()
        """Those of them that another file makes, or may hand over."""
        self.lost_holders: set[str] = set()
        """Those of them that only a wide search finds."""
        self.lost_everywhere: set[str] = set()
        """Names that may stand for a class of the project that writes to its argument whatever it is told."""
        self.values: tuple[set[FunctionInfo], set[str]] | None = None
        """The functions that stand somewhere as values, and names in lambdas that may be theirs."""
        self.asked_by_others: set[FunctionInfo] | None = None
        """The functions that another file or who gets them as values may run."""
        self.touched: frozenset[str] | None = None
        """Names of attributes of which something may be written in place."""
        self.fronts: dict[Any, list[cst.Call] | None] = {}
        """Class and attribute → the layers that work in place at the front of the Sequential that it is."""
        self.at_fronts: list[cst.Call] | None = None
        """Those of them whose input is read again."""
        self.wrapped: set[cst.CSTNode] = set()
        """Layers that are being converted to be wrapped."""
        self.any_registered_writes: bool | None = None
        """Whether a layer that is registered under a made up name may write to its argument."""
        self.untracked: list[cst.Call] | None = None
        """Layers that are made with ``inplace=True`` and handed around."""
        self.procedures: set[FunctionInfo] = set()
        """Functions without a result that write to their first argument: they return it in the output."""
        self.written_parameters: dict[FunctionInfo, tuple[str, ...]] = {}
        """Those that a function returns in the output as it writes to them."""
        self.mutated: dict[FunctionInfo, set[str]] = {}
        """Parameters whose memory a function writes to in torch."""
        self.narrowed: dict[str, str] = {}
        """Several classes a module may have, as one string → the ones it has in this branch."""
        self.class_being_read: ClassInfo | None = None
        self.aliases: dict[FunctionInfo, object | None] = {}
        self.class_values = class_values(source.index, facts)
        linked = facts.linked
        self.traverses = linked.traverses if linked is not None else asks_for_modules(source.text)
        """Whether layers without state must be modules, to be found among the children of one."""
        self.hands_makers = linked.hands_makers if linked is not None else hands_makers(source.text)
        """Whether what makes a module is called like a class, which takes ``rngs``."""
        if facts.linked is not None:
            self.class_values |= facts.linked.handed_on
            self.torch_names |= facts.linked.stars(source.module)
        self.new_parameters: dict[cst.CSTNode, frozenset[str]] = {}
        """Function body → the local names that hold a new parameter."""
        self.by_axes: dict[cst.CSTNode, tuple[str, cst.CSTNode] | None] = {}
        """Body of a loop over parameters → what goes by their axes, and where."""
        self.axes_asked: set[tuple[object, ...]] = set()
        """Functions, with the parameters that are being asked about: whether they go by the axes of these."""
        self.stood_in: dict[str, tuple[str, str]] = {}
        """Names at the top of the file that raise in the output, with rule and message."""
        self.libraries: frozenset[str] | None = None
        """The libraries beside torch that the file imports, once they are asked for."""
        self.brought: dict[str, str] = {}
        """The names that imports bring from them, and the library of each."""
        self.tied_heads: dict[str, dict[str, cst.Attribute]] = {}
        self.loose_heads: dict[str, frozenset[str]] = {}
        """The same for heads that are tied in a branch, or have a bias."""
        self.assumed: set[cst.CSTNode] = set()
        """Loops that are said to be taken to run."""
        self.large: object | None = None
        """Whole numbers beyond 32 bits, once they are asked for."""
        self.everywhere: dict[cst.CSTNode, cst.BaseExpression] = {}
        """What becomes of parts of a value that is computed everywhere, and not where a mask selects."""
        self.selected: object | None = None
        """Rows that masks select, once they are asked for."""
        self.masked: object | None = None
        """Numbers of what masks select, once they are asked for."""
        self.returned_numbers: dict[cst.CSTNode, cst.BaseExpression] | None = None
        """Numbers that functions give back, once they are asked for."""
        self.in_step: frozenset[str] = frozenset()
        """Lists that get what is written to an item of theirs under another name."""
        self.drops: Any = None
        """Rounds of loops that are left out by a draw, once they are asked for."""
        self.skips: dict[cst.CSTNode, Any] | None = None
        """Early returns by a draw, once they are asked for."""
        self.as_float: set[cst.CSTNode] = set()
        """Those that are written as floats."""
        self.single_numbers: dict[cst.CSTNode, str] | None = None
        self.asking: set[tuple[str, cst.CSTNode]] = set()
        """Handlers that wait for what the others make of a node."""
        """Calls that make a tensor of other tensors' values, and are behind ``lax.stop_gradient``."""

    # --- questions ------------------------------------------------------------------------------------------------

    def kind(self, node: cst.CSTNode) -> k.Kind:
        """The kind inferred for a node of the original tree, None taken out of an Optional."""
        kind = self.facts.kinds.get(node, k.UNKNOWN)
        if type(kind) is k.Optional:
            kind = kind.inner
        if self.narrowed and isinstance(kind, k.Module) and kind.cls in self.narrowed:
            return k.Module(self.narrowed[kind.cls])
        return kind

    @property
    def frame(self) -> Frame | None:
        """The innermost function."""
        return self.frames[-1] if self.frames else None

    @property
    def owner(self) -> ClassInfo | None:
        """The class around the innermost method."""
        for frame in reversed(self.frames):
            if frame.owner is not None:
                return frame.owner
        return self.classes[-1] if self.classes else None

    @property
    def in_init(self) -> bool:
        """Whether the code runs while a module is built."""
        frame = self.frame
        return frame is not None and self.plan.builds_time(frame.info)

    @property
    def concrete(self) -> bool:
        """Whether the values of arrays are known where the code runs: no ``jit`` is around it."""
        frame = self.frame
        if frame is None:
            return self._runs_at_once
        return self.in_init or not self._walk.is_traced(frame.info)

    @property
    def _runs_at_once(self) -> bool:
        """Whether a statement of the file runs as Python comes to it: no class around it, no function in it."""
        if self.classes or not self.statements:
            return False
        inside = (cst.FunctionDef, cst.ClassDef, cst.Lambda)
        return not self.source.index.within(self.statements[-1].node, *inside)

    def is_traced(self, info: FunctionInfo) -> bool:
        """Whether a function may run under ``jit``, as far as the file shows."""
        return self._walk.is_traced(info)

    def guards(self, node: cst.If) -> bool:
        """Whether an ``if`` asks for a mask around what does nothing where the mask is empty."""
        return is_guard(node, self._walk)

    @cached_property
    def _walk(self) -> FlagWalk:
        from migrator.analyze.walk import FlagWalk

        return FlagWalk(self.source, self.facts, self.plan)

    def is_import(self, node: cst.CSTNode) -> bool:
        """Whether a dotted name leads, through imports alone, to what stands outside of the project.

        A local variable does not, nor does ``LinearNoBias`` of another file where it is a ``partial`` of a layer.
        """
        path = []
        while isinstance(node, cst.Attribute):
            path.append(node.attr.value)
            node = node.value
        if not isinstance(node, cst.Name) or node.value not in self.torch_names:
            return False
        name = node.value
        if any(name in frame.locals for frame in self.frames) or self._is_bound_anew(node):
            return False
        linked = self.facts.linked
        return linked is None or linked.leads_out(self.source.module, name, path[::-1])

    def _is_bound_anew(self, node: cst.Name) -> bool:
        """Whether a name that is imported means what the file binds it to: ``Linear = partial(Linear, bias=False)``."""
        tree = self.source.index
        if self.rebound is None:
            self.rebound = bound_at_top(tree, self.torch_names, self.facts.dead)
            self.bound_within = bound_within(tree, self.torch_names)
        place = tree.place(node) if tree.has(node) else None
        spans = self.bound_within.get(node.value, ())
        if place is not None and any(start <= place < end for start, end in spans):
            return True
        end = self.rebound.get(node.value)
        return end is not None and (bool(self.frames) or place is None or place >= end)

    def is_hidden(self, name: str) -> bool:
        """Whether a name of Python's own means something of the file here: ``max = x.max()``."""
        if name not in self.helpers.bound:
            return False
        return any(name in frame.locals for frame in self.frames) or name in self._hidden_at_top

    @cached_property
    def _hidden_at_top(self) -> frozenset[str]:
        return hidden_at_top(self.source.index, self.facts.dead)

    def is_module(self, node: cst.CSTNode) -> bool:
        """Whether an expression is a module: what has the name of a tensor's method there is a layer or its own."""
        return isinstance(self.kind(node), k.Module)

    def is_self(self, node: cst.CSTNode) -> bool:
        """Whether an expression is the instance a method works on."""
        if not isinstance(node, cst.Name) or not self.frames:
            return False
        for frame in reversed(self.frames):
            if frame.owner is not None:
                params = frame.info.node.params.params
                return bool(params) and params[0].name.value == node.value
        return False

    def class_of(self, kind: k.Kind) -> ClassInfo | None:
        """The file's own class of an instance kind."""
        if isinstance(kind, k.Module):
            return self.facts.classes.get(kind.cls)
        return None

    def release(self) -> None:
        """Take the cycles apart that hold the trees, so that they are freed at once.

        The garbage collector would look at every node of them first."""
        self.facts.release()
        vars(self).clear()

    # --- edits ----------------------------------------------------------------------------------------------------

    def rngs(self, node: cst.CSTNode) -> cst.BaseExpression:
        """The expression that holds the ``nnx.Rngs`` here."""
        if not self.frames:
            self.module_rngs = True
            self.rngs_by_definitions |= bool(self.classes) or self.in_defaults
            return cst.Name("rngs")
        for frame in reversed(self.frames):
            how = self.plan.how(frame.info)
            if how == "self":
                first = frame.info.node.params.params[0].name.value
                return cst.Attribute(cst.Name(first), cst.Name("rngs"))
            if how == "param":
                return cst.Name("rngs")
        raise Failure(
            node,
            "API003",
            "this draws random numbers where no random generator is at hand",
            "pass an nnx.Rngs to this function",
        )

    def effect(self, node: cst.CSTNode) -> None:
        """Note a call that may change state, for the order of evaluation."""
        if self.statements:
            self.statements[-1].effects.append(node)

    def hoist(
        self,
        original: cst.CSTNode,
        updated: cst.BaseExpression,
        hint: str = "h",
        as_result: bool = True,
        again: cst.BaseExpression | None = None,
    ) -> cst.BaseExpression | None:
        """Give an expression a name in a statement of its own before this one; None when order forbids it.

        Args:
          hint: the name, unless the file has it already.
          as_result: the name that the statement assigns will do.
          again: a name that an earlier call gave, whose value is not read any more.
        """
        if not self.may_hoist(original):
            return None
        statement = self.statements[-1]
        if isinstance(again, cst.Name):
            name = again.value
        elif as_result:
            name = self._temporary(statement, original, hint)
        else:
            name = self._passing(statement, hint)
        line = cst.SimpleStatementLine(
            [cst.Assign([cst.AssignTarget(cst.Name(name))], syntax.unparenthesized(updated))]
        )
        statement.before.append(line)
        return cst.Name(name)

    def may_hoist(self, original: cst.CSTNode) -> bool:
        """Whether an expression may be computed in a statement of its own before this one."""
        if not self.statements:
            return False
        statement = self.statements[-1]
        if not statement.may_hoist:
            return False
        from migrator.convert.moving import keeps_order

        if not keeps_order(self, statement, original):
            return False
        walrus = self.facts.tree.within(statement.node, cst.NamedExpr)
        # what it reads may get its value within the statement
        return syntax.names(original).keys().isdisjoint(one.target.value for one in walrus)

    def _temporary(self, statement: Statement, original: cst.CSTNode, hint: str) -> str:
        target = statement.target
        if target is not None and not statement.before:
            outside = syntax.names(statement.node).get(target, 0)
            inside = syntax.names(original).get(target, 0)
            if outside - 1 <= inside:  # the target itself is one of the names outside
                return target
        return self.unused(hint)

    def _passing(self, statement: Statement, hint: str) -> str:
        """A name for what one statement alone reads; another may have had it before."""
        made = {name for line in statement.before for name in syntax.names(line)}
        name, number = hint, 2
        while name in made or (name in self.helpers.taken and name not in self.helpers.passing):
            name, number = f"{hint}{number}", number + 1
        self.helpers.take(name)
        self.helpers.passing.add(name)
        return name

    def unused(self, hint: str) -> str:
        """A name that the file has no other use for."""
        name, number = hint, 2
        while name in self.helpers.taken or name in self.helpers.passing:
            name, number = f"{hint}{number}", number + 1
        self.helpers.take(name)
        return name

    @contextmanager
    def no_hoisting(self) -> Iterator[None]:
        """Parts of a statement that need not run, or run many times."""
        if not self.statements:
            yield
            return
        statement = self.statements[-1]
        saved, statement.may_hoist = statement.may_hoist, False
        try:
            yield
        finally:
            statement.may_hoist = saved

    def report(
        self,
        node: cst.CSTNode,
        rule: str,
        message: str,
        advice: str = "",
        *,
        severity: str = "error",
        blocks: bool = True,
    ) -> None:
        """Add a finding at a node of the original tree."""
        span = self.source.span(node)
        self.findings.append(
            Finding(
                rule,
                message,
                severity,
                span.line,
                span.column,
                span.end_line,
                span.end_column,
                self.source.path,
                advice,
                self.source.excerpt(span.line),
                0.5 if blocks else 0.0,
                blocks,
            )
        )


def class_values(tree: Tree, facts: Facts) -> frozenset[str]:
    """The file's own classes that are handed around as values, not only called or derived from.

    A decorator may put a class into a table."""
    own = {name: info.node for name, info in facts.classes.items() if info.settled is None}
    found = {name for name, node in own.items() if node.decorators}
    for node in tree.of_type(cst.Name, cst.Attribute):
        kind = facts.kinds.get(node)
        if isinstance(kind, k.Class) and kind.name in facts.classes and kind.name not in found:
            above = tree.around(node)
            if _is_value(above) and not any(type(n) is cst.Annotation for n in above):
                found.add(kind.name)
    return frozenset(found)


def _is_value(above: Sequence[cst.CSTNode]) -> bool:
    """Whether the place of an expression, the nodes around it from the file inwards, hands it on."""
    parent = above[-1]
    if isinstance(parent, cst.Arg):
        call = above[-2]
        if not isinstance(call, cst.Call):
            return False  # a base of a class
        return not (isinstance(call.func, cst.Name) and call.func.value in ("isinstance", "super"))
    return isinstance(parent, _VALUE_PLACES)


_VALUE_PLACES = (
    cst.Assign,
    cst.Element,
    cst.DictElement,
    cst.Param,
    cst.Return,
    cst.IfExp,
    cst.BooleanOperation,
    cst.AnnAssign,
)
