"""torch.nn.functional, dropout functions: they draw from ``rngs`` where ``training`` holds."""

from __future__ import annotations

from rules.compat.dropout import alpha_dropout, dropout, feature_dropout
from rules.registry import op, surely


@op(
    "torch.nn.functional.dropout",
    example={
        "F.dropout(x, 0.1)": "dropout(x, p=0.1, rngs=rngs)",
        "F.dropout(x, 0.1, training=False)": "x",
    },
)
def f_dropout(input, p=0.5, training=True, inplace=False, *, rngs) -> Tensor["same"]:
    """Zero elements with probability ``p``, scale the others by 1 / (1 - p)."""
    if surely(not training or p == 0):
        return input
    return dropout(input, p=p, training=training, rngs=rngs)


@op(
    "torch.dropout",
    example={"torch.dropout(x, 0.1, True)": "dropout(x, p=0.1, rngs=rngs)"},
)
def torch_dropout(input, p, train, *, rngs) -> Tensor["same"]:
    """F.dropout with every argument given."""
    if surely(not train or p == 0):
        return input
    return dropout(input, p=p, training=train, rngs=rngs)


@op(
    "torch.nn.functional.dropout1d",
    example={"F.dropout1d(x, 0.1)": "feature_dropout(x, p=0.1, spatial=1, rngs=rngs)"},
)
def f_dropout1d(input, p=0.5, training=True, inplace=False, *, rngs) -> Tensor["same"]:
    """Zero whole channels; a batch axis is optional."""
    if surely(not training or p == 0):
        return input
    return feature_dropout(input, p=p, training=training, spatial=1, rngs=rngs)


@op(
    "torch.nn.functional.dropout2d",
    example={"F.dropout2d(x, 0.1)": "feature_dropout(x, p=0.1, spatial=x.ndim - 2, rngs=rngs)"},
)
def f_dropout2d(input, p=0.5, training=True, inplace=False, *, rngs) -> Tensor["same"]:
    """Zero whole channels; axes 0 and 1 are samples and channels, whatever the rank."""
    if surely(not training or p == 0):
        return input
    return feature_dropout(input, p=p, training=training, spatial=input.ndim - 2, rngs=rngs)


@op(
    "torch.nn.functional.dropout3d",
    example={
        "F.dropout3d(x, 0.1)": "feature_dropout(x, p=0.1, spatial=3 if x.ndim == 5 else x.ndim - 1, rngs=rngs)"
    },
)
def f_dropout3d(input, p=0.5, training=True, inplace=False, *, rngs) -> Tensor["same"]:
    """Zero whole channels; of any rank but 5 the first axis is that of channels."""
    if surely(not training or p == 0):
        return input
    spatial = 3 if input.ndim == 5 else input.ndim - 1
    return feature_dropout(input, p=p, training=training, spatial=spatial, rngs=rngs)


@op(
    "torch.feature_dropout",
    example={
        "torch.feature_dropout(x, 0.1, True)": "feature_dropout(x, p=0.1, spatial=x.ndim - 2, rngs=rngs)"
    },
)
def torch_feature_dropout(input, p, train, *, rngs) -> Tensor["same"]:
    """Zero whole channels of (N, C, …)."""
    if surely(not train or p == 0):
        return input
    return feature_dropout(input, p=p, training=train, spatial=input.ndim - 2, rngs=rngs)


@op(
    "torch.nn.functional.alpha_dropout",
    example={"F.alpha_dropout(x, 0.1, True)": "alpha_dropout(x, p=0.1, training=True, rngs=rngs)"},
)
def f_alpha_dropout(input, p=0.5, training=False, inplace=False, *, rngs) -> Tensor["same"]:
    """Dropout that keeps mean and variance of SELU activations; off by default."""
    if surely(not training or p == 0):
        return input
    return alpha_dropout(input, p=p, training=training, rngs=rngs)


@op(
    "torch.nn.functional.feature_alpha_dropout",
    example={
        "F.feature_alpha_dropout(x, 0.1, True)": "alpha_dropout(x, p=0.1, training=True, channels=True, rngs=rngs)"
    },
)
def f_feature_alpha_dropout(input, p=0.5, training=False, inplace=False, *, rngs) -> Tensor["same"]:
    """Alpha dropout of whole channels of (N, C, …)."""
    if surely(not training or p == 0):
        return input
    return alpha_dropout(input, p=p, training=training, channels=True, rngs=rngs)


@op(
    "torch.alpha_dropout",
    example={
        "torch.alpha_dropout(x, 0.1, True)": "alpha_dropout(x, p=0.1, training=True, rngs=rngs)"
    },
)
def torch_alpha_dropout(input, p, train, *, rngs) -> Tensor["same"]:
    """F.alpha_dropout with every argument given."""
    if surely(not train or p == 0):
        return input
    return alpha_dropout(input, p=p, training=train, rngs=rngs)


@op(
    "torch.feature_alpha_dropout",
    example={
        "torch.feature_alpha_dropout(x, 0.1, True)": "alpha_dropout(x, p=0.1, training=True, channels=True, rngs=rngs)"
    },
)
def torch_feature_alpha_dropout(input, p, train, *, rngs) -> Tensor["same"]:
    """F.feature_alpha_dropout with every argument given."""
    if surely(not train or p == 0):
        return input
    return alpha_dropout(input, p=p, training=train, channels=True, rngs=rngs)
