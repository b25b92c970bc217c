"""What inference learns about a file: its classes, its functions and the kind of every expression."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import libcst as cst

from migrator.infer import kinds as k
from migrator.tree import Tree


class Linked(Protocol):
    """What a file may ask about the other files of its project; ``migrator.package.link`` answers."""

    def bound(
        self, facts: Facts, importer: str, module: str, level: int, name: str
    ) -> k.Kind | None:
        """The kind that ``from module import name`` binds; None for what is not the project's."""

    def star(self, facts: Facts, importer: str, module: str, level: int) -> Mapping[str, k.Kind]:
        """What ``from module import *`` binds of the project's names."""

    def lookup(self, facts: Facts, name: str) -> k.Kind | None:
        """The kind of a dotted name; None for what is not the project's."""

    def head(self, importer: str, module: str) -> str:
        """The dotted name that ``import module`` means in a file."""

    def shared(self, name: str) -> bool:
        """Whether another file reads a definition, by its qualified name."""

    def in_place(self, module: str) -> frozenset[str]:
        """Parameters of a file's definitions, as ``Block.act``, that may be handed what overwrites its argument."""

    def holders(self, importer: str, bases: Iterable[str]) -> tuple[frozenset[str], dict[str, int]]:
        """The names in a file of what other files make to work in place, and of attributes of its classes' bases.

        And of the functions that do so where an argument ``inplace`` says so, with its place.
        """

    def lost(self, importer: str) -> frozenset[str]:
        """The names in a file of what may be, in another, a class that writes to its argument whatever it is told."""

    def emptied(self, module: str) -> frozenset[str]:
        """The names of attributes that other files than this may take something out of, or replace."""

    def lists_dicts(self, module: str) -> bool:
        """Whether another file may go over a ModuleDict that a file makes."""

    def listed(self, module: str) -> frozenset[str]:
        """The attributes that a file makes a Sequential and another goes over as a list, ``net.body``."""

    def registered_elsewhere(self, module: str) -> frozenset[str]:
        """What other files register as parameters or buffers and a file may give values, ``name`` or ``Class.name``."""

    def given_out(self, module: str) -> frozenset[str]:
        """The names of a file's classes whose objects functions of other files return, and no other file keeps."""

    def gives(self, module: str, name: str) -> bool:
        """Whether another file may get a name from a file that merely imports it."""

    def place(self, importer: str, module: str, level: int, name: str | None) -> str:
        """Where an import leads: "own" or "outside" of the project, or "missing" from it."""

    def is_missing(self, importer: str, name: str) -> bool:
        """Whether all imports of a name in a file lead to nothing that the project has."""

    def spelled(self, importer: str, module: str, level: int) -> tuple[str, int]:
        """The ``from`` clause that means the same file in the output: dotted name and number of dots."""

    def is_module(self, name: str) -> bool:
        """Whether a dotted name is a file or a folder of files of the project."""

    def defined(self, module: str, name: str) -> tuple[str, str] | None:
        """The file of the project that defines what ``module.name`` is, and its name there."""

    def reaches(self, module: str, other: str) -> bool:
        """Whether a file of the project reads what another one defines, or reads a file that does."""

    def leads_out(self, importer: str, head: str, path: Sequence[str]) -> bool:
        """Whether a dotted name means nothing that a file of the project defines, under another name perhaps."""

    def stars(self, importer: str) -> frozenset[str]:
        """The names that star imports bring into a file."""

    @property
    def traverses(self) -> bool:
        """Whether some file asks for the children of modules, which are all modules then."""

    @property
    def hands_makers(self) -> bool:
        """Whether some file hands classes of modules around, or says that it takes what makes one."""

    @property
    def keeps_makers(self) -> bool:
        """Whether some file puts classes into tables by decorators, or looks them up by dotted names."""

    @property
    def derived(self) -> frozenset[tuple[str, str]]:
        """Layers of torch and the project's classes that derive from them, by their last names."""

    @property
    def handed_on(self) -> frozenset[str]:
        """Qualified names of definitions that some file hands on as values."""

    def publish(self, module: str, env: Mapping[str, k.Kind]) -> None:
        """Make the names of a file known to those that it imports in a circle."""


@dataclass(frozen=True)
class SettledFunction:
    """What the conversion of another file has decided about one of its functions.

    ``how`` says where its ``nnx.Rngs`` comes from (``RngPlan.how``); ``mutates`` are parameters whose memory it
    writes to in torch, and whose callers must not read them afterwards; ``reads_training`` that it asks something
    for its mode; ``updates`` are names of attributes of modules that it, or what it calls, may write to in place,
    ``keeps`` the arguments whose memory a constructor keeps (``migrator.convert.kept``), ``only_trained`` those it
    names for gradient checkpointing alone (``migrator.infer.recomputing``).
    """

    how: str | None = None
    builds_time: bool = False
    writes_first: bool = False
    returned: frozenset[str] = frozenset({"*"})
    """Parameters of which it may return memory, ``*`` for all."""
    mutates: frozenset[str] = frozenset()
    returned_state: frozenset[str] = frozenset()
    """Of what others read too, what it may return: ``attr:self.total``."""
    state: frozenset[str] = frozenset()
    """The names of attributes of which it, or what it calls, may return memory: ``total``."""
    reads_training: bool = False
    updates: frozenset[str] = frozenset()
    keeps: tuple[tuple[str, str, str], ...] = ()
    only_trained: frozenset[str] = frozenset()
    stored: frozenset[tuple[str, str]] = frozenset()
    """Parameters, and the attributes that hold their memory once a method has run."""
    hands_keywords: bool = True
    """Of a decorator: what it puts in the place of a function is called with all keywords that that one is."""
    early: bool = True
    """A constructor of a module may run it, whatever else does."""
    asks: frozenset[str] = frozenset()
    """Of a method: the names of the methods that it calls of its own object."""
    by_row: bool = False
    """It gives a row for each of what it is given first (``migrator.convert.by_row``)."""
    goes_over: frozenset[str] = frozenset()
    """Parameters, and ``self.x``, whose items it takes (``migrator.convert.gone_over``)."""
    told_to: bool = False
    """What it writes to its arguments it writes where one called ``inplace`` says so, or an attribute."""
    repeats: tuple[str, ...] = ()
    """A container, and the parameters that make all that it gives in it (``migrator.infer.repeated``)."""
    calls: frozenset[str] = frozenset()
    """Parameters that it calls, or functions in it."""
    only_calls: frozenset[str] = frozenset()
    """Of these the ones that it does nothing else with."""
    of_globals: tuple[tuple[str, str], ...] = ()
    """Attributes that it makes of a tensor of its file, and what that is called (``migrator.convert.made_of_globals``)."""


@dataclass(frozen=True)
class SettledClass:
    """What the conversion of another file has decided about one of its classes."""

    stores: bool = False
    constructor: bool = False
    tied: tuple[tuple[str, str], ...] = ()
    """Tied output layers and the source of the weight they share."""
    loose: frozenset[str] = frozenset()
    """Output layers that may be tied in a branch, or with a bias."""
    named: bool = False
    """Of a class derived from Sequential: its children have names."""
    host_arrays: frozenset[str] = frozenset()
    """Attributes that are numpy arrays and no data of the module."""
    begins_in_place: bool = False
    """Of a class derived from Sequential: its first layer may overwrite what it is called with."""
    record: tuple[str, ...] = ()
    """Of a named tuple: the hints of its fields."""
    hooks: frozenset[str] = frozenset()
    """What its methods ask of ``self`` and write to, or take no gradient of."""
    shown: frozenset[str] = frozenset()
    """What they hand a tensor to which they read again."""
    given: dict[str, k.Kind] = field(default_factory=dict, compare=False)
    """What its own file gives its attributes, whatever others put there."""


_ITS_MODULES = re.compile(r"\bself\._modules\b")
_OF_MODULES = re.compile(r"\bisinstance\([^\n]*\bModule\b")


def asks_for_modules(text: str) -> bool:
    """Whether a source asks which objects are modules: every layer must be one then, also one without state."""
    return (
        ".children(" in text
        or ".named_children(" in text
        or ("self._modules" in text and _ITS_MODULES.search(text) is not None)
        or ("isinstance(" in text and "Module" in text and _OF_MODULES.search(text) is not None)
    )


_HANDS_MAKERS = re.compile(
    r"\b(?:Callable|[Tt]ype)\s*\[|=\s*(?:\w+\.)*(?!True\b|False\b|None\b)[A-Z]\w*[a-z]\w*\s*[,)\n]"
)


def hands_makers(text: str) -> bool:
    """Whether a source hands classes of modules around, which a function that makes a module may stand for."""
    return _HANDS_MAKERS.search(text) is not None


_KEEPS_MAKERS = re.compile(
    r"^[ \t]*@(?!torch\b|staticmethod)[\w.]*regist|^[ \t]*[\w.]+\.register(?:_module|_model)?\(\s*[A-Z\"']"
    r"|\bimport_module\(|\b__import__\(",
    re.M | re.I,
)
_KEEPING = (".register(", ".register_module(", ".register_model(", "import_module(", "__import__(")
_DECORATED = re.compile(r"@[\w.]*regist")
"""With the words above what every such source holds, and few others do: they are found many times as fast."""


def keeps_makers(text: str) -> bool:
    """Whether a source puts classes into tables by decorators, or looks them up by dotted names: a call may be of any."""
    plain = text.casefold()
    may = any(word in plain for word in _KEEPING) or _DECORATED.search(plain) is not None
    return may and _KEEPS_MAKERS.search(text) is not None


@dataclass(eq=False)
class FunctionInfo:
    """A function or method of the file.

    ``params`` holds the joined kinds of annotations, defaults and call sites; ``returns`` the joined kind of its
    return statements."""

    name: str
    node: cst.FunctionDef
    owner: ClassInfo | None = None
    outer: FunctionInfo | None = None
    params: dict[str, k.Kind] = field(default_factory=dict)
    sites: dict[str, k.Kind] = field(default_factory=dict)
    handed: dict[str, dict[cst.CSTNode | None, k.Kind]] = field(default_factory=dict)
    """Parameter → call → the kind that the call hands to it."""
    begins: dict[cst.CSTNode | None, bool | None] = field(default_factory=dict)
    """Call → whether the first of the layers that it hands to ``*layers`` works in place."""
    evidence: dict[str, k.Kind] = field(default_factory=dict)
    """What the calls a parameter is handed to say about it."""
    returns: k.Kind | None = None
    calls: list[FunctionInfo | ClassInfo] = field(default_factory=list)
    hands: list[FunctionInfo] = field(default_factory=list)
    """Functions of the project that it reads as values: whoever gets them may call them."""
    draws: bool = False
    builds: bool = False
    calls_unknown: bool = False
    """It calls a name or an entry of a table of which nothing is known: a class perhaps."""
    closure: dict[str, k.Kind] = field(default_factory=dict)
    uses: dict[str, set[str]] | None = None
    items: frozenset[str] | None = None
    """The names of what is taken out of its arguments (see items.py)."""
    generator: bool = False
    nested: bool = False
    """A method of a class that a function defines: it sees the function's names."""
    dirty: bool = True
    """Something it reads has changed since it was last walked."""
    callers: set[FunctionInfo] = field(default_factory=set)
    call_sites: dict[cst.CSTNode, FunctionInfo | None] = field(default_factory=dict)
    """Every call of the function in the file and the function that makes it."""
    settled: SettledFunction | None = None
    """Set for a function of another file."""
    shared: bool = False
    """Other files may call it, with arguments of which nothing is known here."""
    kept_whole: frozenset[str] | None = None
    """Parameters of a module's constructor that it keeps as they are; None until somebody asks."""

    @property
    def short(self) -> str:
        """The name without its qualification."""
        return self.node.name.value

    @cached_property
    def tests_none(self) -> bool | None:
        """What ``exists(x)`` answers for None: False for ``return x is not None``, None for other functions."""
        params = self.node.params.params
        body = self.node.body.body
        if self.owner is not None or len(params) != 1 or len(body) != 1:
            return None
        small = body[0].body[0] if isinstance(body[0], cst.SimpleStatementLine) else body[0]
        test = small.value if isinstance(small, cst.Return) else None
        if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
            return None
        left, right = test.left, test.comparisons[0]
        names = [n.value for n in (left, right.comparator) if isinstance(n, cst.Name)]
        if names != [params[0].name.value, "None"]:
            return None
        return {cst.Is: True, cst.IsNot: False}.get(type(right.operator))

    @property
    def has_receiver(self) -> bool:
        """Whether the first parameter is given by the call itself: self, cls, the context of an autograd function."""
        return self.receivers > 0

    @property
    def receivers(self) -> int:
        """How many of the first parameters are given by the call itself."""
        if self.owner is None:
            return 0
        decorators = self.decorators
        bound = 0 if "staticmethod" in decorators else 1
        if not self.owner.gradient or not (bound == 0 or "classmethod" in decorators):
            return bound
        if self.short == "forward":
            return bound + (self.owner.method("setup_context") is None)
        return bound + (self.short in ("backward", "setup_context"))

    @property
    def decorators(self) -> list[str]:
        """The last names of its decorators (``staticmethod``, ``property``, ``no_grad``)."""
        found = []
        for decorator in self.node.decorators:
            node: cst.BaseExpression = decorator.decorator
            if isinstance(node, cst.Call):
                node = node.func
            if isinstance(node, cst.Attribute):
                found.append(node.attr.value)
            elif isinstance(node, cst.Name):
                found.append(node.value)
        return found


@dataclass(eq=False)
class ClassInfo:
    """A class of the file. ``attributes`` are those of its instances, joined over all assignments."""

    name: str
    node: cst.ClassDef
    bases: list[k.Kind] = field(default_factory=list)
    attributes: dict[str, k.Kind] = field(default_factory=dict)
    statics: dict[str, k.Kind] = field(default_factory=dict)
    methods: dict[str, FunctionInfo] = field(default_factory=dict)
    parents: list[ClassInfo] = field(default_factory=list)
    state: frozenset[str] | None = None
    """Plain tensor attributes that methods of the forward pass write: buffers without a key."""
    asked: frozenset[str] = frozenset()
    """Attributes that begin as a plain value, become a tensor, and are asked which they are."""
    asks_training: bool = False
    """Whether a method of its own reads ``self.training``."""
    declared: set[str] = field(default_factory=set)
    unclear: set[str] = field(default_factory=set)
    """Attributes that are None and are given what nobody knows: that they are None says nothing."""
    """Attributes of which methods have said only what they are, ``self.bank: Tensor``."""
    gradient: bool = False
    """A torch.autograd.Function: what its methods get first is taken for an instance of it."""
    torch_base: str | None = None
    """The torch.nn class it derives from, directly or not; None when it is no module."""
    lightning: bool = False
    """Whether it derives from Lightning's module, directly or not."""
    settled: SettledClass | None = None
    """Set for a class of another file."""

    @property
    def short(self) -> str:
        """The name without its qualification."""
        return self.node.name.value

    readers: set[FunctionInfo] = field(default_factory=set)

    def is_state(self, name: str) -> bool:
        """Whether an attribute is registered as a buffer, be it that it begins as None."""
        none = any(f"<none:{name}>" in one.statics for one in self.lineage())
        return none or name in (self.state or ())

    def lineage(self) -> list[ClassInfo]:
        """The class and its own bases, nearest first."""
        found = [self]
        for parent in self.parents:
            found.extend(c for c in parent.lineage() if c not in found)
        return found

    def method(self, name: str) -> FunctionInfo | None:
        """A method of the class or of its nearest base in the file."""
        for info in self.lineage():
            if name in info.methods:
                return info.methods[name]
        return None

    def attribute(self, name: str) -> k.Kind | None:
        """The kind of an instance or class attribute, None when nothing assigns it."""
        found: k.Kind | None = None
        for table in [c.attributes for c in self.lineage()] + [c.statics for c in self.lineage()]:
            if name in table:
                # a class that says ``bank: Tensor`` of a buffer gives it no value
                one = table[name] if found is None else k.in_role_of(table[name], found)
                found = one if found is None else k.join(found, one)
        return found


@dataclass(eq=False)
class Facts:
    """The result of inference over one file."""

    tree: Tree
    kinds: dict[cst.CSTNode, k.Kind] = field(default_factory=dict)
    classes: dict[str, ClassInfo] = field(default_factory=dict)
    functions: dict[cst.FunctionDef, FunctionInfo] = field(default_factory=dict)
    names: dict[str, FunctionInfo] = field(default_factory=dict)
    lambdas: dict[str, tuple[cst.Lambda, dict[str, k.Kind]]] = field(default_factory=dict)
    """Lambda expressions by a made-up name, with the joined kinds of what they are called with."""
    around: dict[str, tuple[FunctionInfo | None, dict[str, k.Kind]]] = field(default_factory=dict)
    """Lambda → the function that it stands in, and the kinds of the names that it sees there."""
    dead: list[cst.CSTNode] = field(default_factory=list)
    """Branches that no run of the output takes, by what they ask of torch."""
    settled: dict[str, object] = field(default_factory=dict)
    """Names at the top that say whether a library is there which is built on torch: ``HAS_XFORMERS`` → False."""
    gives_numbers: dict[FunctionInfo, bool] = field(default_factory=dict)
    """Functions of which it was asked whether they give back numbers that only a run can tell, and the answer."""
    answering: list[FunctionInfo] = field(default_factory=list)
    """Functions whose answer is being looked for."""
    module_env: dict[str, k.Kind] = field(default_factory=dict)
    module: str = ""
    """The dotted name of the file."""
    linked: Linked | None = None
    """The other files of the project, None for a file that is read alone."""
    keeps_makers: bool = False
    """Whether what is called by a name that is looked up may be any class or function of the program."""
    observed: dict[cst.CSTNode, k.Kind] = field(default_factory=dict)
    """What a run of the original showed at places of the file, to be used where inference ends."""

    @cached_property
    def rebound(self) -> frozenset[str]:
        """The names that a function gives another value than where they stand: ``global PAD``, ``nonlocal count``."""
        declared = self.tree.of_type(cst.Global, cst.Nonlocal)
        return frozenset(one.name.value for node in declared for one in node.names)

    def skipped(self, func: cst.CSTNode, owner: ClassInfo) -> ClassInfo | None:
        """``A`` of ``super(A, self).forward`` in a class that derives from A: what A has is passed over."""
        held = func.value if isinstance(func, cst.Attribute) else None
        if not isinstance(held, cst.Call) or not held.args or not isinstance(held.func, cst.Name):
            return None
        if held.func.value != "super":
            return None
        kind = self.kind(held.args[0].value)
        named = self.classes.get(kind.name) if isinstance(kind, k.Class) else None
        return named if named is not owner and named in owner.lineage() else None

    def after(self, func: cst.CSTNode, owner: ClassInfo) -> list[ClassInfo]:
        """The classes in which ``super().forward`` of a class looks for a method, the nearest first."""
        lineage, skipped = owner.lineage(), self.skipped(func, owner)
        return lineage[(lineage.index(skipped) if skipped is not None else 0) + 1 :]

    @cached_property
    def names_made_up(self) -> bool:
        """Whether attributes may be assigned under names that only a run tells."""
        words = {n.value for n in self.tree.of_type(cst.Name)}
        return not words.isdisjoint({"setattr", "add_module", "__dict__", "vars"})

    def release(self) -> None:
        """Take the cycles between classes and functions apart."""
        self.tree.beside = []
        for info in (*self.functions.values(), *self.classes.values()):
            vars(info).clear()

    def kind(self, node: cst.CSTNode) -> k.Kind:
        """The kind of an expression; Unknown when it was never reached."""
        return self.kinds.get(node, k.UNKNOWN)

    def callee(self, call: cst.Call) -> str | None:
        """The qualified name of what a call reaches: ``torch.relu``, ``Tensor.view``, ``torch.nn.Linear``."""
        kind: Any = self.kinds.get(call.func)
        if kind is None:
            return None
        form = type(kind)
        if form is k.Optional:
            kind = kind.inner  # None cannot be called
            form = type(kind)
        if form is k.Function or form is k.Class:
            name = kind.name
            if not name or (form is k.Function and kind.given):
                return None
            return k.on_host(name) if name.startswith("torch.cuda.") else name
        return f"{kind.cls}()" if form is k.Module else None

    def qualified_name(self, node: cst.CSTNode) -> str | None:
        """The qualified name of a Name or Attribute that stands for a module, class, function or dtype."""
        kind = self.kind(node)
        if isinstance(kind, (k.Function, k.Class, k.Namespace)) and kind.name:
            return None if isinstance(kind, k.Function) and kind.given else kind.name
        if isinstance(kind, k.DType) and kind.name:
            return f"torch.{kind.name}"
        return None
