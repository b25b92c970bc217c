"""Dicts that are constants of a module."""


class Table(dict):
    """A dict that a module keeps as a constant, whatever its keys: Flax would sort those of a plain one."""

    __hash__ = object.__hash__
