"""Kinds from annotations: a user's type hints and the return annotations of definitions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache

import libcst as cst

from migrator import syntax
from migrator.infer import kinds as k
from migrator.infer.symbols import LAYERS

_SCALARS = {"int": k.INT, "float": k.FLOAT, "bool": k.BOOL, "str": k.STR}
_DTYPES = ("int", "float", "bool", "complex")

OTHER_RANK = frozenset(
    "__and__ __or__ __xor__ affine_grid amax amin aminmax cholesky_ex diagonal eigh fold gather geqrf histc "
    "histogram histogramdd inv_ex kthvalue lu lu_factor lu_factor_ex masked_fill masked_scatter max median min "
    "mode nanmedian resize_ resize_as_ scaled_dot_product_attention svd take tensorsolve unfold vander "
    "where".split()
)
"""Functions whose result has the dtype of their first argument (``Tensor["same"]``), and not its rank for sure."""
TO_ONE = frozenset(
    "sum nansum mean nanmean prod max min amax amin median nanmedian std var norm all any argmax argmin "
    "count_nonzero trace".split()
)
"""Functions of a tensor that give one element where they are told nothing else."""


_MOVES = frozenset(
    "view view_copy reshape view_as reshape_as flatten unflatten ravel squeeze squeeze_copy unsqueeze unsqueeze_copy "
    "broadcast_to expand_copy expand expand_as repeat tile repeat_interleave select select_copy unfold unfold_copy diag "
    "diagflat diagonal diagonal_copy diag_embed take_along_dim masked_select unbind".split()
)
"""Functions that move the elements of their first argument, and leave out or repeat some."""
_JOINS = frozenset(
    "cat concat concatenate stack hstack vstack row_stack dstack column_stack".split()
)
"""Functions that put the elements of several tensors side by side."""


def moved_dtype(short: str, args: list[tuple[str | None, k.Kind]]) -> str | None:
    """The dtype of what a function makes of the elements of its first argument, None where it is not known."""
    first = args[0][1] if args else k.UNKNOWN
    if short in _MOVES and isinstance(first, k.Tensor):
        if short == "view" and len(args) == 2 and not _is_size(args[1][1]):
            return None  # it may be a dtype
        return first.dtype
    if short == "to" and isinstance(first, k.Tensor):
        moves = all(key in _OF_MOVING and (key or _is_device(kind)) for key, kind in args[1:])
        return first.dtype if moves and len(args) > 1 else None
    if short == "type_as" and len(args) > 1:
        return args[1][1].dtype if isinstance(args[1][1], k.Tensor) else None
    if short in _JOINS:
        items = first.items if isinstance(first, k.Tuple) else ()
        if isinstance(first, k.Sequence):
            items = (first.item,)
        dtypes = {one.dtype if isinstance(one, k.Tensor) else None for one in items}
        return dtypes.pop() if len(dtypes) == 1 else None
    return "bool" if _made_of_truths(short, args) else None


def _made_of_truths(short: str, args: list[tuple[str | None, k.Kind]]) -> bool:
    """Whether a tensor is made of Python's truth values and nothing else: ``torch.tensor([True, False])``."""
    if short not in _OF_DATA or not args or any(keyword == "dtype" for keyword, _ in args):
        return False
    return len([one for one in args if one[0] is None]) == 1 and _is_of_truths(args[0][1])


_OF_DATA = frozenset({"tensor", "as_tensor", "asarray"})


def _is_of_truths(kind: k.Kind) -> bool:
    if isinstance(kind, k.Sequence):
        return _is_of_truths(kind.item)
    if isinstance(kind, k.Tuple):
        return bool(kind.items) and all(map(_is_of_truths, kind.items))
    return k.scalar_type(kind) == "bool"


_OF_MOVING = (None, "device", "non_blocking", "copy", "memory_format")


def _is_device(kind: k.Kind) -> bool:
    return isinstance(kind, k.Device) or k.scalar_type(kind) in ("str", "int", "bool")


def _is_size(kind: k.Kind) -> bool:
    return k.scalar_type(kind) is not None or isinstance(kind, (k.Tuple, k.Sequence))


def has_no_axes(short: str, args: list[tuple[str | None, k.Kind]]) -> bool:
    """Whether a function gives one element: ``x.sum()``, ``torch.tensor(0.5, dtype=…)``."""
    if short in ("tensor", "as_tensor", "scalar_tensor"):
        return bool(args) and args[0][0] is None and k.scalar_type(args[0][1]) is not None
    if short in _LOSSES:
        extra = [kind for keyword, kind in args[2:] if keyword is None]
        return all(isinstance(kind, k.Tensor) for kind in extra) and _reduces(args)
    return len(args) == 1 and args[0][0] is None and short in TO_ONE


_ALONG = frozenset(
    "softmax log_softmax softmin gumbel_softmax normalize logsigmoid sigmoid cumsum cumprod".split()
)
"""Functions along an axis, which stays."""


_BOUNDED = frozenset("clamp clip clamp_min clamp_max".split())
"""Functions whose result is as large as their first argument where the bounds are numbers."""


def _is_bound(kind: k.Kind) -> bool:
    return kind == k.NONE or k.scalar_type(kind) in ("int", "float", "number")


def of_known_rank(short: str, kind: k.Kind, args: list[tuple[str | None, k.Kind]]) -> k.Kind:
    """The result of a function of a tensor of known rank, with the rank that it has for sure."""
    first = args[0][1] if args else k.UNKNOWN
    if not isinstance(first, k.Tensor) or first.rank is None:
        return kind
    if isinstance(kind, k.Tuple) and short in ("topk", "sort"):
        items = (replace(one, rank=first.rank) for one in kind.items if isinstance(one, k.Tensor))
        return replace(kind, items=tuple(items))
    if not isinstance(kind, k.Tensor) or kind.rank is not None:
        return kind
    if short in _ALONG or (short in _BOUNDED and all(_is_bound(one) for _, one in args[1:])):
        return replace(kind, rank=first.rank)
    axes = [one for word, one in args[1:] if word in (None, "dim")]
    rest = [one for word, one in args[1:] if word == "keepdim"]
    if short in ("any", "all", "sum", "mean") and len(axes) == 1 and len(args) == 2 + len(rest):
        if k.scalar_type(axes[0]) == "int" and all(isinstance(one, k.Const) for one in rest):
            kept = any(one.value for one in rest)  # type: ignore[attr-defined]
            return replace(kind, rank=first.rank if kept else max(first.rank - 1, 0))
    return kind


_LOSSES = frozenset(
    "mse_loss l1_loss smooth_l1_loss huber_loss cross_entropy nll_loss binary_cross_entropy kl_div "
    "binary_cross_entropy_with_logits".split()
)
_LOSS_LAYERS = frozenset(
    f"torch.nn.{name}"
    for name in (
        "MSELoss L1Loss SmoothL1Loss HuberLoss CrossEntropyLoss NLLLoss BCELoss BCEWithLogitsLoss KLDivLoss"
    ).split()
)
_REDUCTIONS = ("mean", "sum", "batchmean")


def _reduces(args: Iterable[tuple[str | None, object]]) -> bool:
    """Whether a loss is surely one number: nothing says that it is not averaged or added up."""
    for key, value in args:
        if key == "reduction":
            if isinstance(value, k.Const):
                value = value.value
            if value not in _REDUCTIONS:
                return False
        elif key in ("reduce", "size_average", "*", "**"):
            return False
    return True


def is_mean_loss(name: str, args: Iterable[tuple[str | None, object]]) -> bool:
    """Whether a layer is a loss that gives one number."""
    return name in _LOSS_LAYERS and _reduces(args)


@cache
def _parts(text: str) -> tuple[str, ...]:
    """Split ``A, tuple[B, C]`` at its outer commas."""
    found, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c == "[") - (c == "]")
        if c == "," and not depth:
            found.append(text[start:i].strip())
            start = i + 1
    found.append(text[start:].strip())
    return tuple(p for p in found if p)


TENSOR_DTYPES = {
    f"torch.{device}{name}Tensor": f"torch.{dtype}"
    for device in ("", "cuda.")
    for name, dtype in (
        ("Float", "float32"),
        ("Double", "float64"),
        ("Half", "float16"),
        ("BFloat16", "bfloat16"),
        ("Long", "int64"),
        ("Int", "int32"),
        ("Short", "int16"),
        ("Char", "int8"),
        ("Byte", "uint8"),
        ("Bool", "bool"),
    )
}
"""torch's old classes of tensors and the dtypes they stand for."""
TENSOR_CLASSES = {
    name: None
    if dtype == "torch.uint8"
    else dtype.removeprefix("torch.").rstrip("0123456789").replace("bfloat", "float")
    for name, dtype in TENSOR_DTYPES.items()
}
"""What a type hint of such a class says of the dtype: nothing where it is ByteTensor, which is often a mask."""


def from_definition(text: str, first: k.Kind = k.UNKNOWN, fields: tuple[str, ...] = ()) -> k.Kind:
    """The kind a definition's return annotation stands for.

    Args:
      text: ``Tensor["bool"]``, ``Int``, ``tuple[Tensor, Tensor]``, ``Self``…
      first: the kind of the call's first argument, for ``Self`` and ``Tensor["same"]``.
      fields: component names of a tuple result.
    """
    text = text.strip().strip("'\"")
    base, _, rest = text.partition("[")
    inner = rest[:-1] if rest.endswith("]") else rest
    if base == "Tensor":
        tag = inner.strip("'\" ")
        if tag == "same":
            return k.without_role(first) if isinstance(first, k.Tensor) else k.TENSOR
        return k.Tensor(dtype=tag if tag in _DTYPES else None)
    if base == "Self":
        return k.without_role(first)
    simple = {
        "Int": k.INT,
        "int": k.INT,
        "Float": k.FLOAT,
        "float": k.FLOAT,
        "Bool": k.BOOL,
        "bool": k.BOOL,
        "Str": k.STR,
        "str": k.STR,
        "Number": k.Scalar("number"),
        "Shape": k.Sequence(k.INT, "size"),
        "DType": k.DType(),
        "Device": k.Device(),
        "Generator": k.Generator(),
        "BlockMask": k.BLOCK_MASK,
        "None": k.NONE,
        "Callable": k.Function(),
        "dict": k.Mapping(),
    }
    if base in simple:
        return simple[base]
    if base == "Optional":
        return k.Optional(from_definition(inner, first))
    if base == "tuple":
        parts = _parts(inner)
        if len(parts) == 2 and parts[1] == "...":
            return k.Sequence(from_definition(parts[0], first), "tuple")
        return k.Tuple(tuple(from_definition(p, first) for p in parts), fields)
    if base in ("list", "Sequence"):
        item = from_definition(inner, first) if inner else k.UNKNOWN
        return k.Sequence(item, "tuple" if base == "Sequence" else "list")
    if " | None" in text:
        return k.Optional(from_definition(text.replace(" | None", ""), first))
    return k.UNKNOWN


def from_hint(node: cst.CSTNode, resolve: Callable[[cst.CSTNode], k.Kind]) -> k.Kind:
    """The kind of a value that a user's type hint describes.

    Args:
      node: the annotation expression.
      resolve: gives the kind (Class, Namespace…) of a Name or Attribute.
    """
    if type(node) is cst.SimpleString:
        text = node.evaluated_value
        try:
            return from_hint(cst.parse_expression(str(text)), resolve)
        except cst.ParserSyntaxError:
            return k.UNKNOWN
    if type(node) is cst.BinaryOperation and type(node.operator) is cst.BitOr:
        return k.join(from_hint(node.left, resolve), from_hint(node.right, resolve))
    if isinstance(node, cst.Name) and node.value in _SCALARS:
        return k.Scalar("number") if node.value == "float" else _SCALARS[node.value]
    if isinstance(node, cst.Name) and node.value == "None":
        return k.NONE
    if isinstance(node, cst.Subscript):
        return _generic(node, resolve)
    name = _last(node)
    kind = resolve(node)
    if isinstance(kind, k.Class):
        return instance(kind.name)
    if name in ("List", "list", "Sequence", "Iterable", "Iterator"):
        return k.Sequence(k.UNKNOWN)
    if name in ("Tuple", "tuple"):
        return k.Sequence(k.UNKNOWN, "tuple")
    if name in ("Dict", "dict", "Mapping"):
        return k.Mapping()
    if name == "Callable":
        return k.Function()
    return k.UNKNOWN


def _last(node: cst.CSTNode) -> str:
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else ""


_TEXT = (cst.SimpleString, cst.ConcatenatedString, cst.FormattedString)


def _generic(node: cst.Subscript, resolve: Callable[[cst.CSTNode], k.Kind]) -> k.Kind:
    base = _last(node.value)
    parts = [e.slice.value for e in node.slice if isinstance(e.slice, cst.Index)]
    if base == "Callable":
        # a callable that gives modules is as good as a class of them
        result = from_hint(parts[1], resolve) if len(parts) == 2 else k.UNKNOWN
        return k.Class("") if isinstance(result, k.Module) else k.Function()
    kinds = [from_hint(p, resolve) for p in parts if syntax.code(p) != "()"]
    if not kinds:
        return k.Tuple(()) if base in ("Tuple", "tuple") else k.UNKNOWN
    if base == "Optional":
        return k.join(k.NONE, kinds[0])
    if base == "Union":
        if all(isinstance(kind, k.Other) and kind.type for kind in kinds):
            return k.Other("|".join(sorted({getattr(kind, "type", "") for kind in kinds})))
        result = kinds[0]
        for kind in kinds[1:]:
            result = k.join(result, kind)
        return result
    if base in ("Tuple", "tuple"):
        if len(parts) == 2 and isinstance(parts[1], cst.Ellipsis):
            return k.Sequence(kinds[0], "tuple")
        return k.Tuple(tuple(kinds))
    if base in ("List", "list", "Sequence", "Iterable", "Iterator"):
        return k.Sequence(kinds[0])
    if base in ("Dict", "dict", "Mapping", "OrderedDict") and len(kinds) == 2:
        return k.Mapping(kinds[1])
    if base in ("Type", "type"):
        return k.Class("")
    if base in ("Final", "ClassVar", "Annotated"):
        return kinds[0]
    if isinstance(kinds[0], k.Tensor) and len(parts) == 2 and isinstance(parts[1], _TEXT):
        return k.TENSOR  # Float[Tensor, "batch dim"]
    kind = resolve(node.value)
    if isinstance(kind, k.Class):
        return instance(kind.name)
    if re.match(r"(Float|Int|Bool|Shaped|Num)$", base):
        return k.TENSOR
    return k.UNKNOWN


def instance(name: str) -> k.Kind:
    """The kind of an instance of a class by qualified name."""
    if name in ("torch.Tensor", "torch.nn.Parameter", "torch.autograd.Variable"):
        return k.TENSOR
    if name in TENSOR_CLASSES:
        return k.Tensor(dtype=TENSOR_CLASSES[name])
    special = {
        "torch.Size": k.Sequence(k.INT, "size"),
        "torch.dtype": k.DType(),
        "torch.device": k.Device(),
        "torch.Generator": k.Generator(),
    }
    if name in special:
        return special[name]
    if name.startswith(("torch.nn.utils.rnn.", "torch.nn.attention.")):
        return k.Other(name)
    if name.startswith(LAYERS):
        return k.Module(name)
    return k.Other(name) if name else k.UNKNOWN


def dtype_class(name: str | None) -> str | None:
    """ "float", "int", "bool" or "complex" for a torch dtype name."""
    if name is None:
        return None
    if name in ("bool",):
        return "bool"
    if name.startswith(("float", "double", "half", "bfloat")):
        return "float"
    if name.startswith(("complex", "cfloat", "cdouble")):
        return "complex"
    return "int"


def of_dtype(kind: k.Tensor, dtype: k.Kind) -> k.Tensor | None:
    """A tensor of a dtype that is given, ``torch.bool`` or Python's ``bool``; None where that is no dtype."""
    if isinstance(dtype, k.DType):
        return replace(kind, dtype=dtype_class(dtype.name))
    if isinstance(dtype, k.Function) and dtype.name in _OF_PYTHON:
        return replace(kind, dtype=dtype.name.removeprefix("builtins."))
    name = dtype.name if isinstance(dtype, k.Class) else ""
    if isinstance(dtype, k.Const) and isinstance(dtype.value, str):
        name = dtype.value
    short = name.rpartition(".")[2]
    if name.startswith("torch.") and short in _TENSORS:
        return replace(kind, dtype=_TENSORS[short])
    return None


_TENSORS = {
    **dict.fromkeys(("FloatTensor", "DoubleTensor", "HalfTensor", "BFloat16Tensor"), "float"),
    **dict.fromkeys(("LongTensor", "IntTensor", "ShortTensor", "CharTensor", "ByteTensor"), "int"),
    "BoolTensor": "bool",
}
"""torch's names of tensors of one dtype, which ``x.type`` takes in place of a dtype."""


_OF_PYTHON = ("builtins.bool", "builtins.int", "builtins.float", "builtins.complex")


def says_types(node: cst.CSTNode) -> bool:
    """Whether a statement is ``__annotations__ = {…}``, by which classes told TorchScript their types."""
    if not isinstance(node, cst.Assign) or len(node.targets) != 1:
        return False
    target = node.targets[0].target
    return isinstance(target, cst.Name) and target.value == "__annotations__"
