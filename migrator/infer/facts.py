"""What inference learns about a file: its classes, its functions and the kind of every expression."""

from __future__ import annotations

from dataclasses import dataclass, field

import libcst as cst

from migrator.infer import kinds as k
from migrator.tree import Tree


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
    evidence: dict[str, k.Kind] = field(default_factory=dict)
    """What the calls a parameter is handed to say about it."""
    returns: k.Kind | None = None
    calls: list[FunctionInfo | ClassInfo] = field(default_factory=list)
    draws: bool = False
    builds: bool = False
    closure: dict[str, k.Kind] = field(default_factory=dict)
    uses: dict[str, set[str]] | None = None
    generator: bool = False
    dirty: bool = True
    """Something it reads has changed since it was last walked."""
    callers: set[FunctionInfo] = field(default_factory=set)
    call_sites: dict[cst.CSTNode, FunctionInfo | None] = field(default_factory=dict)
    """Every call of the function in the file and the function that makes it."""

    @property
    def short(self) -> str:
        """The name without its qualification."""
        return self.node.name.value

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
    asks_training: bool = False
    """Whether a method of its own reads ``self.training``."""
    torch_base: str | None = None
    """The torch.nn class it derives from, directly or not; None when it is no module."""

    @property
    def short(self) -> str:
        """The name without its qualification."""
        return self.node.name.value

    readers: set[FunctionInfo] = field(default_factory=set)

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
        for info in self.lineage():
            for table in (info.attributes, info.statics):
                if name in table:
                    found = table[name] if found is None else k.join(found, table[name])
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
    module_env: dict[str, k.Kind] = field(default_factory=dict)

    def kind(self, node: cst.CSTNode) -> k.Kind:
        """The kind of an expression; Unknown when it was never reached."""
        return self.kinds.get(node, k.UNKNOWN)

    def callee(self, call: cst.Call) -> str | None:
        """The qualified name of what a call reaches: ``torch.relu``, ``Tensor.view``, ``torch.nn.Linear``."""
        kind = self.kind(call.func)
        if isinstance(kind, (k.Function, k.Class)) and kind.name:
            return kind.name
        if isinstance(kind, k.Module):
            return f"{kind.cls}()"
        return None

    def qualified_name(self, node: cst.CSTNode) -> str | None:
        """The qualified name of a Name or Attribute that stands for a module, class, function or dtype."""
        kind = self.kind(node)
        if isinstance(kind, (k.Function, k.Class, k.Namespace)) and kind.name:
            return kind.name
        if isinstance(kind, k.DType) and kind.name:
            return f"torch.{kind.name}"
        return None
