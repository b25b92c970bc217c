"""All nodes of a file in one list, built once, so that many questions need no walk of their own."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import libcst as cst

from migrator.syntax import lister, names, walk


class Tree:
    """The nodes of a tree in preorder, whitespace and punctuation left out.

    What lies below a node is a slice of the list, and the nodes of one type are at hand.
    """

    def __init__(self, root: cst.CSTNode) -> None:
        self.root = root
        self.nodes: list[Any] = []
        self.parents: list[int] = []
        """For each node the index of its parent; -1 for the root."""
        self.beside: list[Tree] = []
        """The trees of the files that are worked on together with this one, and live as long."""
        self._asked: dict[tuple[int, tuple[type, ...]], list[Any]] = {}
        """Nodes of some types in a node of this tree, for those beside it, which ask for them again and again."""
        self._made: dict[int, tuple[cst.CSTNode, cst.CSTNode]] = {}
        self._by_type: dict[type, list[int]] = {}
        """The places of the nodes of each type, in the order of the source."""
        nodes, parents = self.nodes, self.parents
        kinds: dict[type, tuple[Callable[[Any], list[Any]] | None, Callable[[int], None]]] = {}
        pending: list[Any] = [root]
        above = [-1]
        index = 0
        while pending:
            node = pending.pop()
            kind = type(node)
            if kind not in kinds:
                places = self._by_type[kind] = []
                kinds[kind] = lister(kind), places.append  # type: ignore[arg-type]
            nodes.append(node)
            parents.append(above.pop())
            listed, note = kinds[kind]
            note(index)
            if listed is not None:
                children = listed(node)
                children.reverse()
                pending += children
                above += [index] * len(children)
            index += 1

    @cached_property
    def ends(self) -> list[int]:
        """For each node the index behind the last one below it."""
        ends = list(range(1, len(self.nodes) + 1))
        parents = self.parents
        for index in range(len(ends) - 1, 0, -1):
            parent = parents[index]
            if ends[parent] < ends[index]:
                ends[parent] = ends[index]
        return ends

    @cached_property
    def _index(self) -> dict[int, int]:
        return dict(zip(map(id, self.nodes), range(len(self.nodes)), strict=True))

    @cached_property
    def _typed(self) -> dict[type, list[Any]]:
        """The nodes of each type, in the same order."""
        nodes = self.nodes
        return {kind: [nodes[at] for at in places] for kind, places in self._by_type.items()}

    def place(self, node: cst.CSTNode) -> int:
        """The index of a node of the tree."""
        return self._index[id(node)]

    def end(self, node: cst.CSTNode) -> int:
        """The index behind the last node below a node of the tree."""
        return self.ends[self._index[id(node)]]

    def below(self, node: cst.CSTNode) -> Sequence[Any]:
        """A node and all nodes below it."""
        index = self._index.get(id(node))
        if index is None:  # a node of another tree
            return walk(node)
        return self.nodes[index : self.ends[index]]

    def places_of(self, types: Iterable[type[cst.CSTNode]]) -> list[int]:
        """The indices of all nodes of exactly these types, type by type."""
        return [place for kind in types for place in self._by_type.get(kind, ())]

    def of_type(self, *types: type[cst.CSTNode]) -> list[Any]:
        """All nodes of exactly these types, type by type."""
        typed = self._typed
        return [node for kind in types for node in typed.get(kind, ())]

    def within(self, node: cst.CSTNode, *types: type[cst.CSTNode]) -> list[Any]:
        """A node and those below it that are of exactly these types, in the order of the source.

        A function has many nodes and few of one type: they are looked up, not looked for."""
        start = self._index.get(id(node))
        if start is None:
            return self._of_another(node, types)
        end, found = self.ends[start], list[int]()
        if len(types) == 1:
            (kind,) = types
            places = self._by_type.get(kind)
            if places is None:
                return []
            first = bisect_left(places, start)
            return self._typed[kind][first : bisect_left(places, end, first)]
        for kind in types:
            places = self._by_type.get(kind)
            if places is not None:
                found += places[bisect_left(places, start) : bisect_left(places, end)]
        found.sort()
        nodes = self.nodes
        return [nodes[place] for place in found]

    def _of_another(self, node: cst.CSTNode, types: tuple[type[cst.CSTNode], ...]) -> list[Any]:
        """The same for a node of another tree, or of none."""
        home = self._home(node)
        if home is None:
            return [item for item in walk(node) if type(item) in types]
        key = id(node), types
        if key not in home._asked:
            home._asked[key] = [item for item in walk(node) if type(item) in types]
        return list(home._asked[key])

    def _home(self, node: cst.CSTNode) -> Tree | None:
        """The tree beside this one that a node is of."""
        number = id(node)
        for tree in self.beside:
            if number in tree._index:
                return tree
        return None

    @cached_property
    def _spelled(self) -> dict[str, list[int]]:
        """The places of all names, those of attributes and keywords among them, by their text."""
        found: dict[str, list[int]] = defaultdict(list)
        for index in self._by_type.get(cst.Name, ()):
            found[self.nodes[index].value].append(index)
        return found

    def spells(self, node: cst.CSTNode, words: Iterable[str]) -> bool:
        """Whether one of some words stands in a node as a name, of an attribute or keyword as well."""
        start = self._index.get(id(node))
        if start is None:
            home = self._home(node)
            if home is not None:
                return home.spells(node, words)
            return any(type(one) is cst.Name and one.value in words for one in walk(node))
        spelled, end = self._spelled, self.ends[start]
        for places in (spelled[word] for word in words if word in spelled):
            if bisect_left(places, start) < bisect_left(places, end):
                return True
        return False

    @cached_property
    def _attributes(self) -> dict[str, list[int]]:
        """The places of what reads an attribute, by its name."""
        found: dict[str, list[int]] = defaultdict(list)
        for index in self._by_type.get(cst.Attribute, ()):
            found[self.nodes[index].attr.value].append(index)
        return found

    def reading(self, node: cst.CSTNode, name: str) -> list[cst.Attribute]:
        """The attributes of a name in a node, in the order of the source."""
        start = self._index.get(id(node))
        if start is None:  # a node of another tree
            return [n for n in self.within(node, cst.Attribute) if n.attr.value == name]
        places = self._attributes.get(name, [])
        first, last = bisect_left(places, start), bisect_left(places, self.ends[start])
        return [self.nodes[place] for place in places[first:last]]

    @cached_property
    def _names(self) -> dict[str, list[int]]:
        """The places of the names that are read or bound, by their text."""
        found: dict[str, list[int]] = defaultdict(list)
        for index in self._by_type.get(cst.Name, ()):
            node, parent = self.nodes[index], self.nodes[self.parents[index]]
            kind = type(parent)
            if (kind is cst.Attribute and parent.attr is node) or (
                kind is cst.Arg and parent.keyword is node
            ):
                continue
            found[node.value].append(index)
        return found

    def naming(self, node: cst.CSTNode, name: str) -> bool:
        """Whether a name is read or bound in a node (the names of attributes and keywords left out)."""
        start = self._index.get(id(node))
        if start is None:  # a node of another tree
            return name in names(node)
        places = self._names.get(name, [])
        return bisect_left(places, start) < bisect_left(places, self.ends[start])

    def has(self, node: cst.CSTNode) -> bool:
        """Whether a node is one of the tree, not made since."""
        return id(node) in self._index

    def holds(self, outer: cst.CSTNode, inner: cst.CSTNode) -> bool:
        """Whether a node is another one of the tree, or lies below it."""
        start, place = self._index.get(id(outer)), self._index.get(id(inner))
        if start is None:
            home = self._home(outer)
            return home is not None and home.holds(outer, inner)
        return place is not None and start <= place < self.ends[start]

    def parent(self, node: cst.CSTNode) -> Any:
        """The node right above another one of the tree, or of one beside it, which is not the root."""
        home = self if id(node) in self._index else self._home(node) or self
        return home.nodes[home.parents[home._index[id(node)]]]

    def put(self, made: cst.CSTNode, place: cst.CSTNode) -> None:
        """Have a node that was made since stand where one of the tree does, for those that ask what is around it."""
        self._made[id(made)] = made, place

    def around(self, node: cst.CSTNode) -> list[Any]:
        """The nodes around a node of the tree or of one beside it, the root first."""
        if id(node) in self._made:
            return self.around(self._made[id(node)][1])
        home = self if id(node) in self._index else self._home(node) or self
        return home.ancestors(home._index[id(node)])

    def ancestors(self, index: int) -> list[Any]:
        """The nodes around the node at an index, the root first."""
        found = []
        parent = self.parents[index]
        while parent >= 0:
            found.append(self.nodes[parent])
            parent = self.parents[parent]
        found.reverse()
        return found
