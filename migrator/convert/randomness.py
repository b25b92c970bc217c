"""Where random generators come from: which functions take ``rngs``, which methods use ``self.rngs``."""

from __future__ import annotations

import re

import libcst as cst

from migrator import syntax
from migrator.infer import ClassInfo, Facts, FunctionInfo
from migrator.infer import kinds as k
from migrator.infer.facts import SettledFunction
from migrator.infer.reached import asked_of_self


class RngPlan:
    """Decides for every function of a file how it gets at an ``nnx.Rngs``.

    A module's ``__init__`` and the methods that only it calls take a keyword-only parameter; methods of the
    forward pass use ``self.rngs``, which ``__init__`` stores; other functions that draw or build modules take
    the parameter too.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._needs: set[FunctionInfo] = set()
        self._init: set[FunctionInfo] = set()
        self._building: set[FunctionInfo] = set()
        self._perhaps: set[FunctionInfo] = set()
        self._collect()
        found = self._unknown_builders()
        while found:  # who calls them needs a generator too, and may be one of them in turn
            self._perhaps |= found
            self._collect()
            found = self._unknown_builders()

    def _unknown_builders(self) -> set[FunctionInfo]:
        """Functions that run while modules are built and call something that may be a class."""
        every = [f for f in self.facts.functions.values() if f.outer is None and f.settled is None]
        return {f for f in every if f.calls_unknown and self.builds_time(f)} - self._needs

    def _collect(self) -> None:
        functions = list(self.facts.functions.values())
        self._needs = {f for f in functions if f.draws or f.builds or self._is_init(f)}
        self._needs |= self._perhaps
        self._needs |= {f for f in functions if self._overridden(f) == "param"}
        self._needs |= {f for f in functions if self._is_left_to_others(f)}
        changed = True
        while changed:
            changed = self._take_around(functions)
            for function in functions:
                if function in self._needs:
                    continue
                for callee in _reached(function):
                    if isinstance(callee, FunctionInfo) and self._needy(callee):
                        if callee.owner is not None and self._is_method(callee):
                            continue  # settled below: methods may carry their own generator
                        self._needs.add(function)
                        changed = True
        for one, other in _overrides(functions):
            if (
                one in self._needs or other in self._needs
            ):  # whoever calls either does not know which
                self._needs |= {one, other}
        self._init = self._build_time(functions)
        changed = True
        while changed:
            changed = self._take_around(functions)
            for function in functions:
                if function in self._needs:
                    continue
                for callee in _reached(function):
                    if isinstance(callee, FunctionInfo) and self.how(callee) == "param":
                        if not self._is_init(callee):
                            self._needs.add(function)
                            changed = True
        self._building = self._builders(functions) | self._left_to_heirs(functions)

    def _take_around(self, functions: list[FunctionInfo]) -> bool:
        """Give what stands around a function that needs a generator one too; whether there was any without."""
        before = len(self._needs)
        for function in functions:
            outer = function.outer if function in self._needs else None
            while outer is not None:
                self._needs.add(outer)
                outer = outer.outer
        return len(self._needs) > before

    def _needy(self, function: FunctionInfo) -> bool:
        settled = function.settled
        return settled.how is not None if settled is not None else function in self._needs

    @staticmethod
    def _decided(function: FunctionInfo) -> SettledFunction | None:
        """What is decided about the method of another file's class that a method overrides."""
        for parent in function.owner.lineage()[1:] if function.owner is not None else ():
            method = parent.methods.get(function.short)
            if method is not None and method.settled is not None:
                return method.settled
        return None

    def _overridden(self, function: FunctionInfo) -> str | None:
        """How the method of another file's class that a method overrides gets at its ``nnx.Rngs``."""
        decided = self._decided(function)
        return decided.how if decided is not None else None

    def _is_left_to_others(self, function: FunctionInfo) -> bool:
        """``def _build_model(self): raise NotImplementedError`` of a plain class that other files derive from."""
        owner, linked = function.owner, self.facts.linked
        if owner is None or owner.torch_base is not None or function.settled is not None:
            return False
        if linked is None or not linked.shared(owner.name) or not _BUILDS.match(function.short):
            return False
        return syntax.is_left_open(function.node)

    def _is_called_without(self, function: FunctionInfo) -> bool:
        """Whether a method overrides one of another file, which hands no generator to it: it takes the module's."""
        decided = self._decided(function) if function.short != "__init__" else None
        return decided is not None and decided.how is None

    @staticmethod
    def _is_method(function: FunctionInfo) -> bool:
        return function.owner is not None and not (
            {"staticmethod", "classmethod"} & set(function.decorators)
        )

    @staticmethod
    def _is_init(function: FunctionInfo) -> bool:
        return (
            function.short == "__init__"
            and function.owner is not None
            and function.owner.torch_base is not None
        )

    def _build_time(self, functions: list[FunctionInfo]) -> set[FunctionInfo]:
        """Methods that run only while a module is built."""
        methods = [f for f in functions if self._is_method(f) and f.owner and f.owner.torch_base]
        reached = {f for f in methods if f.short == "__init__" or self._overridden(f) == "param"}
        grown = True
        while grown:
            more = {
                c
                for f in reached
                for c in f.calls
                if isinstance(c, FunctionInfo) and c in methods and c not in reached
            }
            more |= {f for f in methods if f.short in _INIT_NAMES and f not in reached}
            more |= {a for a, b in _overrides(methods) if b in reached and a not in reached}
            grown = bool(more)
            reached |= more
        self._early = frozenset(reached)
        later = {f for f in methods if f not in reached or f.short == "forward"}
        needy = self._drawing(reached)
        later |= {f for f in needy if self._is_called_without(f)}
        later |= self._called_on_anything({f for f in needy if f.short != "__init__"})
        grown = True
        while grown:
            more = {
                c for f in later for c in f.calls if isinstance(c, FunctionInfo) and c in reached
            }
            for pair in _overrides(methods):  # one way for both: whoever calls them cannot tell
                more |= set(pair) if not later.isdisjoint(pair) else set()
            more -= {f for f in more if f.short == "__init__" or f in later}
            grown = bool(more - later)
            later |= more
        handed = {f for f in reached if self._overridden(f) == "param"}
        return reached - (later - handed)  # a base of another file hands its generator to those

    def _drawing(self, methods: set[FunctionInfo]) -> set[FunctionInfo]:
        """Those of some methods that need a generator themselves, or for another of them that they call."""
        found = methods & self._needs
        grown = True
        while grown:
            more = {f for f in methods - found if not found.isdisjoint(f.calls)}
            grown = bool(more)
            found |= more
        return found

    def _called_on_anything(self, methods: set[FunctionInfo]) -> set[FunctionInfo]:
        """Methods that have the name of one which is called on what is not known: nobody hands a generator over there."""
        names = {f.short for f in methods} - _INIT_NAMES
        if not names:
            return set()
        resolved = {id(site) for f in self.facts.functions.values() for site in f.call_sites}
        found = {
            call.func.attr.value
            for function in self.facts.functions
            for call in syntax.walk(function)
            if isinstance(call, cst.Call)
            and isinstance(call.func, cst.Attribute)
            and call.func.attr.value in names
            and id(call) not in resolved
        }
        return {f for f in methods if f.short in found}

    def _left_to_heirs(self, functions: list[FunctionInfo]) -> set[FunctionInfo]:
        """Methods that a base calls while it is constructed and does not have: ``self.build()``, called nowhere else."""
        asking: dict[FunctionInfo, list[FunctionInfo]] = {}
        for function in functions:
            if self._is_method(function) and function.owner and function.short != "forward":
                above = [
                    c for c in function.owner.lineage()[1:] if c.method(function.short) is None
                ]
                asking[function] = [
                    method
                    for cls in above
                    for method in cls.methods.values()
                    if function.short in asked_of_self(self.facts, method)
                ]
        found = {
            f
            for f, bases in asking.items()
            if bases and f not in self._init and all(map(self.builds_time, bases))
        }
        grown = True
        while grown:
            others = {
                f
                for f in found
                if not found.union(self._init).issuperset(f.call_sites.values())
                or self._is_named_elsewhere(
                    f, [*asking[f], *(g for g in found if g.short == f.short)]
                )
            }
            grown = bool(others)
            found -= others
        return found

    def _is_named_elsewhere(self, function: FunctionInfo, within: list[FunctionInfo]) -> bool:
        """Whether anything but some functions reads an attribute of a method's name."""
        known = {id(n) for f in within if f.settled is None for n in syntax.walk(f.node)}
        return any(
            node.attr.value == function.short and id(node) not in known
            for node in self.facts.tree.of_type(cst.Attribute)
        )

    def _builders(self, functions: list[FunctionInfo]) -> set[FunctionInfo]:
        """Plain functions that return modules they build, and those that only such functions call."""
        plain = [f for f in functions if f.outer is None and not self._is_method(f)]
        found = {f for f in plain if f in self._needs and isinstance(f.returns, k.Module)}
        grown = True
        while grown:
            more = {
                f
                for f in plain
                if f not in found
                and f.call_sites
                and all(
                    c is not None and (c in found or c in self._init) for c in f.call_sites.values()
                )
            }
            grown = bool(more)
            found |= more
        return found

    def builds_time(self, function: FunctionInfo) -> bool:
        """Whether a function runs while modules are built (no gradient, no jit)."""
        if function.settled is not None:
            return function.settled.builds_time
        if function.outer is not None:
            return self.builds_time(function.outer)
        return function in self._init or function in self._building

    def how(self, function: FunctionInfo) -> str | None:
        """ "param", "self" or None: where the function's ``nnx.Rngs`` comes from."""
        if function.settled is not None:
            return function.settled.how
        if function not in self._needs:
            return None
        if function.outer is not None:
            return None
        if self._is_method(function) and function.owner and function.owner.torch_base:
            return "param" if function in self._init else "self"
        return "param"

    def stores_first(self, info: ClassInfo) -> bool:
        """Whether what a class inherits from may ask for the stored generator while it is constructed itself."""
        own = [m for m in info.methods.values() if self.how(m) == "self" and m.short != "forward"]
        parents = info.lineage()[1:]
        left = {name for parent in parents for name in _asked_of_heirs(self.facts, parent)}
        return any(m.short in left or any(m.short in p.methods for p in parents) for m in own)

    def stores(self, info: ClassInfo) -> bool:
        """Whether a module must keep its generator for the methods of its forward pass."""
        if info.settled is not None:
            return info.settled.stores
        return any(self.how(m) == "self" for m in info.methods.values())

    def passed_over(self, info: ClassInfo) -> list[ClassInfo]:
        """Modules among the bases of a class that get a constructor in Flax which does not run: ``Noise`` of ``M(Root, Noise)``."""
        bases = [c for c in info.lineage()[1:] if c.torch_base]
        first = next((c for c in bases if "__init__" in c.methods), None)
        if first is None:
            first = next((c for c in bases if c.asks_training or self.stores(c)), None)
        runs = first.lineage() if first is not None else bases
        return [c for c in bases if c not in runs and "__init__" not in c.methods]

    def keeps(self, info: ClassInfo) -> bool:
        """Whether the constructor of a class is where its generator is stored.

        What it inherits from may do so too late: once it has called the methods that the class overrides.
        """
        passed = self.passed_over(info)
        parents = [c for c in info.lineage()[1:] if c not in passed]
        stores = self.stores(info) or any(map(self.stores, passed))
        if not stores or not any(map(self.stores, parents)):
            return stores
        own = {m.short for m in info.methods.values() if self.how(m) == "self"} - {"forward"}
        following = next((p for p in parents if "__init__" in p.methods), None)
        if following is not None and self.keeps(following):  # before it runs any, but for its bases
            parents = following.lineage()[1:]
        return any(
            name in own and self.early(method)
            for p in parents
            for name, method in p.methods.items()
        )

    def early(self, function: FunctionInfo) -> bool:
        """Whether a constructor of a module may run a method, whatever else does."""
        settled = function.settled
        return settled.early if settled is not None else function in self._early


def _asked_of_heirs(facts: Facts, info: ClassInfo) -> set[str]:
    """The attributes of ``self`` that the methods of a class name: those it lacks may be methods of what derives from it."""
    found = {name for method in info.methods.values() for name in asked_of_self(facts, method)}
    return found | {
        one.attr.value
        for method in info.methods.values()
        if method.settled is None
        for one in syntax.walk(method.node)
        if isinstance(one, cst.Attribute) and syntax.names(one.value) == {"self": 1}
    }


_BUILDS = re.compile(
    r"_*(?:build|create|make|get|setup|init)_\w*(?:model|net|module|backbone|encoder|decoder|layer|head|agent|policy)"
)


def _overrides(functions: list[FunctionInfo]) -> list[tuple[FunctionInfo, FunctionInfo]]:
    """Methods of modules with those of the file's base classes that they override; forward passes left out."""
    found = []
    for function in functions:
        owner = function.owner
        if owner is None or function.short in ("__init__", "forward"):
            continue
        if owner.torch_base is None and function.short.startswith("__"):
            continue
        for parent in owner.lineage()[1:]:
            method = parent.methods.get(function.short)
            if method is not None and method is not function and method.settled is None:
                found.append((function, method))
    return found


def _reached(function: FunctionInfo) -> list[FunctionInfo | ClassInfo]:
    """What a function calls, and what it hands on that initialises: it takes its generator along."""
    handed = [f for f in function.hands if f.returns == k.NONE]
    return [*function.calls, *handed]


_INIT_NAMES = frozenset("reset_parameters _reset_parameters _init_weights init_weights".split())
