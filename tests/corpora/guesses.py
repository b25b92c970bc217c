"""Arguments and inputs for a class of modules of which nothing is known but its signature."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import torch

Drawn = tuple[str, tuple[int, ...]]
"""``"float"``, ``"int"`` or ``"bool"``, and a shape."""
WIDTH = 8
ARGUMENTS: dict[str, Any] = {
    **dict.fromkeys(
        ("num_heads", "heads", "nhead", "n_heads", "n_head", "groups", "num_groups"), 2
    ),
    **dict.fromkeys(
        ("num_layers", "depth", "n_layers", "n_layer", "scale_factor", "ratio", "rank"), 2
    ),
    **dict.fromkeys(("spatial_dims", "ndim", "dims", "reduction_ratio", "squeeze_factor"), 2),
    **dict.fromkeys(("kernel_size", "ks", "k"), 3),
    **dict.fromkeys(("num_classes", "n_classes", "classes"), 5),
    **dict.fromkeys(("img_size", "image_size"), 32),
    **dict.fromkeys(("patch_size", "window_size", "dim_head"), 4),
    **dict.fromkeys(("stride", "strides", "padding", "dilation"), 1),
    **dict.fromkeys(("dropout", "dropout_rate", "drop_prob", "p"), 0.1),
    **dict.fromkeys(("max_len", "max_seq_len", "mlp_dim", "n_fft"), 16),
    "vocab_size": 20,
    "eps": 1e-5,
    "sigma": 1.5,
    "reduction": "mean",
    "act": "relu",
    "activation": "relu",
    "norm": "batch",
}
"""By the names that arguments have everywhere; small."""
DEEP = ("num_layers", "depth", "n_layers", "n_layer")
SHAPES: tuple[tuple[int, ...], ...] = (
    (2, WIDTH, 16, 16),
    (2, 3, 32, 32),
    (2, 1, 32, 32),
    (2, 5, WIDTH),
    (2, WIDTH, 12),
    (2, WIDTH),
    (2, WIDTH, 8, 8, 8),
    (2, 1, 16, 16, 16),
    (2, 16, 16, WIDTH),
    (2, 3, 64, 64),
)


def arguments(kind: type[torch.nn.Module]) -> Iterator[dict[str, Any]]:
    """Keywords to try for a constructor, the likeliest first."""
    given: dict[str, Any] = {}
    for parameter in list(inspect.signature(kind.__init__).parameters.values())[1:]:
        named = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        if parameter.default is parameter.empty and named:
            given[parameter.name] = _guess(parameter)
        elif parameter.name in DEEP and isinstance(parameter.default, int):
            given[parameter.name] = min(parameter.default, 2)
    yield given
    for name, value in given.items():
        others = (2,) if value == WIDTH else ("relu", "batch") if value is None else ()
        for other in (*others, [WIDTH, WIDTH], (3, 3)):
            yield {**given, name: other}


def _guess(parameter: inspect.Parameter) -> Any:
    if parameter.name in ARGUMENTS:
        return ARGUMENTS[parameter.name]
    hint = str(parameter.annotation).lower()
    for word, value in (("bool", True), ("float", 0.5), ("str", None)):
        if word in hint:
            return value
    several = any(word in hint for word in ("sequence", "list", "tuple"))
    return (WIDTH, WIDTH) if several else WIDTH


def inputs(model: torch.nn.Module) -> Iterator[list[Drawn]]:
    """What to try as the arguments of a call."""
    required = [
        parameter
        for parameter in inspect.signature(model.forward).parameters.values()
        if parameter.default is parameter.empty and parameter.kind != parameter.VAR_KEYWORD
    ]
    more = len(required) - 1
    for shape in SHAPES:
        first: Drawn = ("float", shape)
        yield [first, *[first] * more]
        if more > 0:  # a loss: classes, masks, vectors
            rest = [first] * (more - 1)
            for second in (
                ("int", shape[:1]),
                ("bool", shape),
                ("int", shape[:1] + shape[2:]),
                ("float", shape[:2]),
                ("float", shape[:1]),
            ):
                yield [first, second, *rest]
    yield [("int", (2, 6))] * (more + 1)


def draw(wanted: list[Drawn]) -> list[torch.Tensor]:
    """Tensors of the given types and shapes."""
    made = {
        "float": torch.rand,
        "int": lambda shape: torch.randint(0, 2, shape),
        "bool": lambda shape: torch.rand(shape) > 0.5,
    }
    return [made[kind](shape) for kind, shape in wanted]
