"""All nodes of a file in one list, built once, so that many questions need no walk of their own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import libcst as cst

from migrator.syntax import lister, walk


class Tree:
    """The nodes of a tree in preorder, whitespace and punctuation left out.

    What lies below a node is a slice of the list, and the nodes of one type are at hand.
    """

    def __init__(self, root: cst.CSTNode) -> None:
        self.root = root
        self.nodes: list[Any] = []
        self.parents: list[int] = []
        """For each node the index of its parent; -1 for the root."""
        nodes, parents = self.nodes, self.parents
        listers: dict[type, Callable[[Any], list[Any]] | None] = {}
        pending: list[Any] = [root]
        above = [-1]
        while pending:
            node = pending.pop()
            parent = above.pop()
            kind = type(node)
            if kind not in listers:
                listers[kind] = lister(kind)  # type: ignore[arg-type]
            nodes.append(node)
            parents.append(parent)
            listed = listers[kind]
            if listed is not None:
                children = listed(node)
                children.reverse()
                pending += children
                above += [len(nodes) - 1] * len(children)

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
        return {id(node): index for index, node in enumerate(self.nodes)}

    @cached_property
    def _by_type(self) -> dict[type, list[Any]]:
        found: dict[type, list[Any]] = defaultdict(list)
        for node in self.nodes:
            found[type(node)].append(node)
        return found

    def place(self, node: cst.CSTNode) -> int:
        """The index of a node of the tree."""
        return self._index[id(node)]

    def below(self, node: cst.CSTNode, without: type | None = None) -> Sequence[Any]:
        """A node and all nodes below it, parts of one type left out."""
        index = self._index.get(id(node))
        if index is None:  # a node of another tree
            found: Sequence[Any] = walk(node)
            return found if without is None else [n for n in found if type(n) is not without]
        end = self.ends[index]
        found = self.nodes[index:end]
        if without is None or without not in self._by_type:
            return found
        kept: list[Any] = []
        while index < end:
            item = self.nodes[index]
            if type(item) is without:
                index = self.ends[index]
            else:
                kept.append(item)
                index += 1
        return kept

    def of_type(self, *types: type[cst.CSTNode]) -> Sequence[Any]:
        """All nodes of exactly these types, type by type."""
        if len(types) == 1:
            return self._by_type.get(types[0], [])
        return [node for kind in types for node in self._by_type.get(kind, ())]

    def has(self, node: cst.CSTNode) -> bool:
        """Whether a node is one of the tree, not made since."""
        return id(node) in self._index

    def around(self, node: cst.CSTNode) -> list[Any]:
        """The nodes around a node of the tree, the root first."""
        return self.ancestors(self._index[id(node)])

    def ancestors(self, index: int) -> list[Any]:
        """The nodes around the node at an index, the root first."""
        found = []
        parent = self.parents[index]
        while parent >= 0:
            found.append(self.nodes[parent])
            parent = self.parents[parent]
        found.reverse()
        return found
