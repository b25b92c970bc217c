"""What numpy's functions return, where it is not simply an array."""

from __future__ import annotations

import libcst as cst

from migrator.infer import kinds as k
from migrator.infer.signatures import Args
from migrator.tree import Tree

_ALWAYS = frozenset("permutation multivariate_normal dirichlet multinomial".split())
_INTEGERS = {"randint": 2, "random_integers": 2, "binomial": 2, "poisson": 1, "geometric": 1}
"""Draws of integers, by the number of their parameters before ``size``."""
_FLOATS = {
    **dict.fromkeys(["rand", "randn", "random", "random_sample", "ranf", "sample"], 0),
    **dict.fromkeys(["exponential", "standard_gamma", "chisquare", "pareto", "rayleigh"], 1),
    **dict.fromkeys(["uniform", "normal", "beta", "gamma", "laplace", "gumbel", "lognormal"], 2),
    "standard_normal": 0,
    "triangular": 3,
}
"""Draws of floats, by the number of their parameters before ``size``."""


_MATRICES = frozenset(
    "cholesky eigvals eigvalsh inv pinv solve tensorinv tensorsolve matrix_power multi_dot svdvals".split()
)
"""What ``numpy.linalg`` gives one array of; a norm or a determinant may be a number."""
_TORCH = frozenset("torch th nn F self cls".split())
"""How a function may come by tensors, its arguments and what it calls aside."""


def is_of_numpy(tree: Tree, function: cst.FunctionDef) -> bool:
    """Whether a function computes with numpy and names nothing of torch: its arrays are numpy's, unless it is told."""
    names = {node.value for node in tree.within(function.body, cst.Name)}
    return not names.isdisjoint(("np", "numpy")) and names.isdisjoint(_TORCH)


def numpy_result(name: str, args: Args) -> k.Kind:
    """The kind of a call of one of numpy's functions, named with its module (``numpy.random.randint``).

    A draw is one number where neither a size nor an array of parameters is given, and an array otherwise.
    """
    short = name.rpartition(".")[2]
    if name == "numpy.nonzero" or (name == "numpy.where" and len(args) == 1 and args[0][0] is None):
        return k.Sequence(k.NUMPY, "tuple")
    if name.startswith("numpy.linalg.") and short not in _MATRICES:
        several = short in ("svd", "eig", "eigh", "qr", "lstsq") and len(args) == 1
        return k.Sequence(k.NUMPY, "tuple") if several else k.UNKNOWN
    if not name.startswith("numpy.random."):
        return k.NUMPY
    if short in _ALWAYS:
        return k.NUMPY
    if short not in _INTEGERS and short not in _FLOATS:
        return k.UNKNOWN  # choice(names): one of them
    if any(keyword in ("*", "**") for keyword, _ in args):
        return k.UNKNOWN
    first = _INTEGERS.get(short, _FLOATS.get(short, 0))
    shape = short in ("rand", "randn")  # rand(2, 3)
    sizes = [
        kind
        for i, (keyword, kind) in enumerate(args)
        if keyword == "size" or (keyword is None and (shape or i == first))
    ]
    if any(kind != k.NONE for kind in sizes):
        return k.UNKNOWN if any(isinstance(kind, k.Optional) for kind in sizes) else k.NUMPY
    parameters = [
        kind
        for i, (keyword, kind) in enumerate(args)
        if keyword not in ("dtype", "size") and (keyword or i < first)
    ]
    if all(map(k.scalar_type, parameters)):
        return k.INT if short in _INTEGERS else k.FLOAT
    return k.UNKNOWN
