"""Arguments under older names."""


def deprecate_kwarg(old_name, version=None, new_name=None, **options):
    """A function takes its arguments under their own names."""

    def kept(function):
        return function

    return kept
