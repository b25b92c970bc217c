"""What a file has in the place of what is not converted, so that the rest of it can be imported and used."""

from __future__ import annotations


class NotConverted:
    """Stands for what is not converted: it can be handed on and derived from, and raises when it is used.

    A test of it raises as well, so that nobody goes on with a wrong answer.
    """

    def __init__(self, why):
        self._why = why

    def __call__(self, *args, **kwargs):
        raise NotImplementedError(self._why)

    __getattr__ = __getitem__ = __iter__ = __len__ = __contains__ = __enter__ = __call__
    __bool__ = __eq__ = __ne__ = __str__ = __format__ = __call__
    __instancecheck__ = __subclasscheck__ = __call__
    __isabstractmethod__ = False  # what Python asks of every attribute of a class

    def __hash__(self):
        """A class may be put into a set, where Python looks for it by identity; of a value, equal ones would count."""
        name = self._why.partition(":")[0]
        if name.isidentifier() and name[0].isupper() and not name.isupper():
            return hash(name)
        raise NotImplementedError(self._why)

    def __setitem__(self, key, value):
        """A table may be added to as a file is imported; who reads it is told."""

    def __mro_entries__(self, bases):
        """The base of a class that derives from this: of such a class there are no instances."""
        why = self._why

        class Base:
            def __new__(cls, *args, **kwargs):
                raise NotImplementedError(why)

            def __init_subclass__(cls, **kwargs):
                pass

        return (Base,)
