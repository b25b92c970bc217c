"""What torch's calls do with the memory of their arguments, by name: share it, keep it, or write to it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.several import is_several
from migrator.infer import kinds as k
from migrator.infer.python import PARTIAL
from rules import definitions

VIEWS = frozenset(
    "view view_as reshape reshape_as flatten unflatten transpose t permute squeeze unsqueeze expand expand_as "
    "narrow select split chunk unbind tensor_split contiguous detach unfold movedim moveaxis swapaxes swapdims "
    "diagonal as_strided ravel to type float double half long int bool bfloat16 char byte short type_as cpu cuda "
    "requires_grad_ view_as_real view_as_complex hsplit vsplit dsplit adjoint real imag T mT H mH data numpy "
    "broadcast_to rearrange values indices relu_ squeeze_ unsqueeze_ transpose_ t_ detach_ atleast_1d atleast_2d "
    "atleast_3d broadcast_tensors cartesian_prod meshgrid einsum conj conj_physical resolve_conj resolve_neg "
    "positive sum_to_size split_with_sizes unsafe_split unsafe_chunk slice as_tensor asarray from_numpy "
    "pin_memory dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout Parameter Variable "
    "checkpoint cond annotate _unwrap_optional".split()
)
"""Names whose result may share memory with an argument."""
OVERLAPPING = frozenset(
    "expand expand_as broadcast_to broadcast_tensors meshgrid as_strided unfold".split()
)
"""Views whose rows may share memory with one another."""
_OF_FIRST = frozenset(
    "reshape flatten unflatten transpose t permute squeeze unsqueeze narrow select split chunk unbind tensor_split "
    "detach movedim moveaxis swapaxes swapdims diagonal as_strided ravel hsplit vsplit dsplit adjoint real imag "
    "broadcast_to conj view_as_real view_as_complex dropout dropout1d dropout2d dropout3d alpha_dropout "
    "feature_alpha_dropout".split()
)
"""Functions of torch's that look at their first argument; the others are sizes, axes and rates."""
FUNCTIONAL = "torch.nn.functional."
PLAIN = ("builtins.len", "builtins.int", "builtins.range", "math.")
CONTAINERS = frozenset(
    f"builtins.{name}" for name in "list dict set tuple reversed sorted zip enumerate map".split()
) | frozenset({"collections.deque", "collections.OrderedDict", "collections.defaultdict"})
_OF_SCIPY = ("scipy.", "numpy.linalg.", "numpy.fft.", "numpy.random.")
"""What gives arrays of its own, each of several another."""
NUMPY_VIEWS = frozenset(
    "asarray ascontiguousarray atleast_1d atleast_2d diagonal expand_dims flip moveaxis ravel reshape squeeze "
    "swapaxes transpose view".split()
)
"""Functions of numpy and methods of its arrays whose result may share memory with an argument."""
STORING = frozenset(
    "append appendleft insert extend extendleft add update setdefault put push __setitem__".split()
)
"""Methods by which a container keeps what it is handed."""
KEEPING = frozenset({"register_buffer", "register_parameter", "save_for_backward"})
"""Methods by which a module or an autograd function keeps a tensor."""
COPIES = frozenset(
    {
        *("copy.deepcopy", "einops.pack", "builtins.abs", "builtins.pow", "builtins.round"),
        *(f"{PARTIAL}torch.tensor", "torch.nn.functional.unfold"),
    }
)
"""What always gives memory of its own; the shapes of ``pack`` share nothing. The method ``unfold`` is a view."""


def run_layer(ctx: Context, kind: object) -> str:
    """The class whose forward pass a layer runs: torch's, where a class of the project derived from it has none.

    Returns:
      A qualified name; an empty one for what is no layer.
    """
    if not isinstance(kind, k.Module):
        return ""
    own = ctx.facts.classes.get(kind.cls)
    if own is None or own.torch_base is None:
        return kind.cls
    bases = [base for one in own.lineage() for base in one.bases]
    known = all(isinstance(b, k.Class) and _is_known(ctx, b.name) for b in bases)
    runs = [
        own.method(name) or own.attribute(name) for name in ("forward", "__call__", "_conv_forward")
    ]
    return own.torch_base if known and not any(runs) else kind.cls


def called_layer(ctx: Context, node: cst.Call) -> str:
    """``torch.nn.Linear()`` of a call of such a layer; an empty text for a call of anything else."""
    layer = run_layer(ctx, ctx.kind(node.func))
    return f"{layer}()" if layer else ""


def of_scipy(ctx: Context, node: cst.Call) -> bool:
    """Whether a call gives arrays that nothing else has: ``scipy.linalg.lu(a)``."""
    func = node.func
    kind = ctx.kind(func.value if isinstance(func, cst.Attribute) else func)
    return isinstance(kind, k.Function) and f"{kind.name}.".startswith(_OF_SCIPY)


def without_forward(ctx: Context, node: cst.Call) -> cst.Call:
    """``self.conv(x)`` for ``self.conv.forward(x)``."""
    func, kind = node.func, ctx.kind(node.func)
    if not isinstance(func, cst.Attribute) or func.attr.value != "forward":
        return node
    if not isinstance(kind, k.Function) or kind.name != "Module.forward":
        return node
    if not isinstance(ctx.kind(func.value), k.Module):
        return node
    made = syntax.changed(node, func=func.value)
    ctx.facts.kinds[made] = ctx.facts.kind(node)
    return made


def may_be_shared(name: str, args: Sequence[cst.Arg]) -> list[cst.BaseExpression]:
    """The arguments whose memory what a call gives may share, if it does any."""
    words = [a.keyword.value if a.keyword is not None else "" for a in args]
    given = [a.value for a, word in zip(args, words, strict=True) if word != "inplace"]
    first = name.startswith("torch.") and name.rpartition(".")[2] in _OF_FIRST
    first = first or ("inplace" in words and name.startswith(FUNCTIONAL))
    if first and args and not args[0].star:
        told = [a.value for a, word in zip(args, words, strict=True) if word == "input"]
        return told or given[:1]
    return given


def _is_known(ctx: Context, cls: str) -> bool:
    return cls.startswith("torch.nn.") or cls == "builtins.object" or cls in ctx.facts.classes


def operands(node: cst.Call) -> int:
    """How many tensors an einsum is of."""
    given = [a.value for a in node.args if a.keyword is None][1:]
    if len(given) == 1 and isinstance(given[0], (cst.List, cst.Tuple)):
        return len(given[0].elements)
    return len(given)


def kept_as(func: cst.Attribute, call: cst.Call) -> cst.Attribute:
    """``self.mask`` for ``self.register_buffer("mask", …)``, ``ctx.saved_tensors`` for ``ctx.save_for_backward(…)``."""
    name = call.args[0].value if call.args else None
    attribute = str(name.evaluated_value) if isinstance(name, cst.SimpleString) else "saved_tensors"
    return cst.Attribute(func.value, cst.Name(attribute if attribute.isidentifier() else "buffers"))


def inplace_argument(name: str, node: cst.Call) -> cst.Arg | None:
    """The ``inplace`` argument of a call of a torch function, by keyword or by place; None for False."""
    found = next((a for a in node.args if a.keyword and a.keyword.value == "inplace"), None)
    for at in _inplace_places(name) if found is None else ():
        if at < len(node.args) and all(a.keyword is None for a in node.args[: at + 1]):
            found = node.args[at]
    if found is None or (isinstance(found.value, cst.Name) and found.value.value == "False"):
        return None
    return found


@cache
def _inplace_places(name: str) -> tuple[int, ...]:
    """Where the definitions of a torch function take ``inplace`` by place."""
    orders = [rule.positional for rule in definitions.ops(name)]
    return tuple(order.index("inplace") for order in orders if "inplace" in order)


def is_view(owner: k.Kind, name: str) -> bool:
    """Whether an attribute is, or makes, another look at the tensor that it is read of: ``x.T``, ``x.data``.

    A module has no such attributes: ``self.values`` is what it calls so.
    """
    return isinstance(owner, k.Tensor) or (name in VIEWS and not isinstance(owner, k.Module))


def is_view_index(ctx: Context, node: cst.Subscript) -> bool:
    """Whether an index may make a view: integers, slices, None and Ellipsis do; lists and masks copy, and so do tensors.

    A tensor without axes that holds a whole number counts as that number, and is a view
    (``aten/src/ATen/TensorIndexing.h``: ``is_tracing`` aside, it is selected).
    """
    for element in node.slice:
        index = element.slice
        if isinstance(index, cst.Index):
            kind = ctx.kind(index.value)
            if isinstance(kind, k.Tensor) and (kind.dtype == "bool" or kind.rank):
                return False
            if isinstance(kind, k.Tensor) and is_several(ctx, index.value):
                return False
            if isinstance(index.value, cst.List):
                return False
            if isinstance(kind, k.Sequence) and kind.type == "list" and _is_number(kind.item):
                return False
    return True


def _is_number(kind: k.Kind) -> bool:
    """Whether what a list holds is a whole number: a list of slices makes views, as a tuple of them does."""
    return k.scalar_type(kind) == "int"


def of_copy(node: cst.Call) -> bool:
    """``torch.from_numpy(w.copy())``, ``w.astype(np.float32)``: only numpy's arrays are taken, and these copy the numbers."""
    made = node.args[0].value if len(node.args) == 1 else None
    func = made.func if isinstance(made, cst.Call) else None
    if not isinstance(made, cst.Call) or not isinstance(func, cst.Attribute):
        return False
    given = [one for one in made.args if one.keyword is None and not one.star]
    if func.attr.value == "astype":
        return len(made.args) == len(given) == 1
    return func.attr.value == "copy" and not made.args
