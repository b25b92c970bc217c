"""libcst's classes of nodes, made quick to build, to ask for and to look up: most of the time goes into nodes.

Nodes stay what they are, and nothing here changes one; what falls away is how libcst keeps others from it.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import cache
from threading import Lock
from typing import Any

import libcst as cst


class _Node(ABCMeta):
    """The type of libcst's classes of nodes, asked for instances as plain classes are.

    Nobody registers another class as a node, which is what an abstract class looks for, three times as long.
    """

    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__


class _TrustedParser:
    """Within it libcst does not check the nodes it builds.

    The checks are for nodes made by hand; after the parser they take a sixth of its time and find nothing. Other
    threads that build nodes meanwhile go unchecked as well, which changes nothing for them either.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self.inside = 0

    def __enter__(self) -> None:
        with self._lock:
            self.inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self.inside -= 1


trusted_parser = _TrustedParser()


def _constructor(kind: Any) -> Callable[..., None]:
    """The constructor of a class of nodes, whose fields are set as those of any object are.

    A frozen dataclass has them set one by one by a call, which takes a third of the parser's time.
    """
    given, lines = [], []
    names: dict[str, Any] = {"MISSING": MISSING, "trusted": trusted_parser}
    for field in fields(kind):
        name, value = field.name, field.name
        if field.default is not MISSING:
            names[f"default_{name}"] = field.default
            given.append(f"{name}=default_{name}")
        elif field.default_factory is not MISSING:
            names[f"make_{name}"] = field.default_factory
            given.append(f"{name}=MISSING")
            value = f"make_{name}() if {name} is MISSING else {name}"
        else:
            given.append(name)
        lines.append(f"    self.{name} = {value}")
    head = f"def __init__({', '.join(['self', *given])}):"
    check = ["    if not trusted.inside:", "        self.__post_init__()"]
    exec("\n".join([head, *lines, *check]), names)
    made: Callable[..., None] = names["__init__"]
    return made


@cache
def copier(kind: type[cst.CSTNode]) -> Callable[[Any], Any]:
    """A function that copies a node of this type field by field, without the checks of its constructor."""
    lines = [f"    made.{f.name} = node.{f.name}" for f in fields(kind)]
    names: dict[str, Any] = {"new": object.__new__, "kind": kind}
    exec("\n".join(["def copied(node):", "    made = new(kind)", *lines, "    return made"]), names)
    made: Callable[[Any], Any] = names["copied"]
    return made


def _first(kind: Any) -> Callable[..., None]:
    """The constructor until a node of the class is built: most programs have few of the classes."""

    def init(self: Any, *args: Any, **given: Any) -> None:
        kind.__init__ = _constructor(kind)
        kind.__init__(self, *args, **given)

    return init


def _prepare(kind: Any) -> None:
    # by identity like libcst's own, which calls id() in Python at every lookup
    kind.__hash__ = object.__hash__
    if isinstance(kind, ABCMeta):  # libcst was imported before ``migrator.plain`` could do better
        kind.__class__ = _Node
    for frozen in ("__setattr__", "__delattr__"):
        if frozen in vars(kind):
            delattr(kind, frozen)
    if "__init__" in vars(kind) and kind is not cst.CSTNode:
        kind.__init__ = _first(kind)


for _kind in vars(cst).values():
    if isinstance(_kind, type) and issubclass(_kind, cst.CSTNode):
        _prepare(_kind)
