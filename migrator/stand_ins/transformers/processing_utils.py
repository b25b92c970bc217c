"""Hints of keyword arguments."""


class Unpack:
    """``**kwargs: Unpack[Table]``: the keywords of a table."""

    def __class_getitem__(cls, item):
        return item
