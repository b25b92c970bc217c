"""Losses: a ``functools.partial`` of the function stands for the layer, a module where it holds arrays.

``size_average`` and ``reduce`` are torch's old spelling of ``reduction``.
"""

from __future__ import annotations

import functools
import math

import jax.numpy as jnp

from rules.compat.as_torch import WeightedLossAsTorch
from rules.compat.linear import Linear
from rules.compat.loss_layers import LinearCrossEntropyLoss, Loss, WeightedLoss, l1_loss, mse_loss
from rules.compat.losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cosine_embedding_loss,
    cross_entropy,
    ctc_loss,
    gaussian_nll_loss,
    hinge_embedding_loss,
    huber_loss,
    kl_div,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    nll_loss,
    poisson_nll_loss,
    smooth_l1_loss,
    soft_margin_loss,
    triplet_loss,
    triplet_margin_loss,
)
from rules.registry import layer


@layer(
    "torch.nn.MSELoss",
    example={
        "nn.MSELoss()": "mse_loss",
        "nn.MSELoss(size_average=False)": "functools.partial(mse_loss, reduction='sum')",
        "nn.MSELoss(reduce=False)": "functools.partial(mse_loss, reduction='none')",
    },
)
def MSELoss(size_average=None, reduce=None, reduction="mean", *, rngs=None) -> Callable:
    """(input - target)²."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    return functools.partial(mse_loss, reduction=reduction)


@layer("torch.nn.L1Loss")
def L1Loss(size_average=None, reduce=None, reduction="mean", *, rngs=None) -> Callable:
    """|input - target|."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    return functools.partial(l1_loss, reduction=reduction)


@layer("torch.nn.SmoothL1Loss")
def SmoothL1Loss(
    size_average=None, reduce=None, reduction="mean", beta=1.0, *, rngs=None
) -> Callable:
    """Quadratic below beta, linear above."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    return functools.partial(smooth_l1_loss, reduction=reduction, beta=beta)


@layer("torch.nn.HuberLoss")
def HuberLoss(reduction="mean", delta=1.0, *, rngs=None) -> Callable:
    """Quadratic below delta, linear above."""
    return functools.partial(huber_loss, reduction=reduction, delta=delta)


@layer(
    "torch.nn.CrossEntropyLoss",
    example={
        "nn.CrossEntropyLoss(ignore_index=0)": "functools.partial(cross_entropy, ignore_index=0)"
    },
)
def CrossEntropyLoss(
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
    label_smoothing=0.0,
    *,
    rngs=None,
) -> Callable:
    """Cross entropy of logits."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    if weight is None:
        return functools.partial(
            cross_entropy,
            ignore_index=ignore_index,
            reduction=reduction,
            label_smoothing=label_smoothing,
        )
    return WeightedLoss(
        functools.partial(
            cross_entropy,
            ignore_index=ignore_index,
            reduction=reduction,
            label_smoothing=label_smoothing,
        ),
        weight=weight,
        rngs=rngs,
    )


@layer("torch.nn.NLLLoss")
def NLLLoss(
    weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", *, rngs=None
) -> Callable:
    """Negative log-likelihood of log-probabilities."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    if weight is None:
        return functools.partial(nll_loss, ignore_index=ignore_index, reduction=reduction)
    return WeightedLoss(
        functools.partial(nll_loss, ignore_index=ignore_index, reduction=reduction),
        weight=weight,
        rngs=rngs,
    )


@layer("torch.nn.BCELoss")
def BCELoss(
    weight=None, size_average=None, reduce=None, reduction="mean", *, rngs=None
) -> Callable:
    """Binary cross entropy of probabilities."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    if weight is None:
        return functools.partial(binary_cross_entropy, reduction=reduction)
    return WeightedLoss(
        functools.partial(binary_cross_entropy, reduction=reduction), weight=weight, rngs=rngs
    )


@layer("torch.nn.BCEWithLogitsLoss")
def BCEWithLogitsLoss(
    weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None, *, rngs=None
) -> Callable:
    """Binary cross entropy of logits."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    if weight is None and pos_weight is None:
        return functools.partial(binary_cross_entropy_with_logits, reduction=reduction)
    return WeightedLoss(
        functools.partial(binary_cross_entropy_with_logits, reduction=reduction),
        weight=weight,
        pos_weight=pos_weight,
        rngs=rngs,
    )


@layer("torch.nn.KLDivLoss")
def KLDivLoss(
    size_average=None, reduce=None, reduction="mean", log_target=False, *, rngs=None
) -> Callable:
    """target · (log target - input)."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    return functools.partial(kl_div, reduction=reduction, log_target=log_target)


@layer("torch.nn.PoissonNLLLoss")
def PoissonNLLLoss(
    log_input=True,
    full=False,
    size_average=None,
    eps=1e-8,
    reduce=None,
    reduction="mean",
    *,
    rngs=None,
) -> Callable:
    """exp(x) - t x."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    return functools.partial(
        poisson_nll_loss, log_input=log_input, full=full, eps=eps, reduction=reduction
    )


@layer("torch.nn.GaussianNLLLoss")
def GaussianNLLLoss(*, full=False, eps=1e-6, reduction="mean", rngs=None) -> Callable:
    """(log v + (x - t)² / v) / 2."""
    return functools.partial(gaussian_nll_loss, full=full, eps=eps, reduction=reduction)


@layer("torch.nn.SoftMarginLoss")
def SoftMarginLoss(size_average=None, reduce=None, reduction="mean", *, rngs=None) -> Callable:
    """log(1 + exp(-t x))."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    return functools.partial(soft_margin_loss, reduction=reduction)


@layer("torch.nn.MultiLabelSoftMarginLoss")
def MultiLabelSoftMarginLoss(
    weight=None, size_average=None, reduce=None, reduction="mean", *, rngs=None
) -> Callable:
    """Binary cross entropy of logits averaged over classes."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    if weight is None:
        return functools.partial(multilabel_soft_margin_loss, reduction=reduction)
    return WeightedLoss(
        functools.partial(multilabel_soft_margin_loss, reduction=reduction),
        weight=weight,
        rngs=rngs,
    )


@layer("torch.nn.MultiLabelMarginLoss")
def MultiLabelMarginLoss(
    size_average=None, reduce=None, reduction="mean", *, rngs=None
) -> Callable:
    """Hinge between labels and non-labels."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    return functools.partial(multilabel_margin_loss, reduction=reduction)


@layer("torch.nn.MultiMarginLoss")
def MultiMarginLoss(
    p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean", *, rngs=None
) -> Callable:
    """Hinge between the class and the others."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    if weight is None:
        return functools.partial(multi_margin_loss, p=p, margin=margin, reduction=reduction)
    return WeightedLoss(
        functools.partial(multi_margin_loss, p=p, margin=margin, reduction=reduction),
        weight=weight,
        rngs=rngs,
    )


@layer("torch.nn.HingeEmbeddingLoss")
def HingeEmbeddingLoss(
    margin=1.0, size_average=None, reduce=None, reduction="mean", *, rngs=None
) -> Callable:
    """x where t = 1, max(0, margin - x) where t = -1."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    return functools.partial(hinge_embedding_loss, margin=margin, reduction=reduction)


@layer("torch.nn.MarginRankingLoss")
def MarginRankingLoss(
    margin=0.0, size_average=None, reduce=None, reduction="mean", *, rngs=None
) -> Callable:
    """max(0, -t (x1 - x2) + margin)."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    return functools.partial(margin_ranking_loss, margin=margin, reduction=reduction)


@layer("torch.nn.CosineEmbeddingLoss")
def CosineEmbeddingLoss(
    margin=0.0, size_average=None, reduce=None, reduction="mean", *, rngs=None
) -> Callable:
    """1 - cos, or max(0, cos - margin)."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    return functools.partial(cosine_embedding_loss, margin=margin, reduction=reduction)


@layer("torch.nn.TripletMarginLoss")
def TripletMarginLoss(
    margin=1.0,
    p=2.0,
    eps=1e-6,
    swap=False,
    size_average=None,
    reduce=None,
    reduction="mean",
    *,
    rngs=None,
) -> Callable:
    """max(0, d(a, p) - d(a, n) + margin)."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    return functools.partial(
        triplet_margin_loss, margin=margin, p=p, eps=eps, swap=swap, reduction=reduction
    )


@layer("torch.nn.CTCLoss")
def CTCLoss(blank=0, reduction="mean", zero_infinity=False, *, rngs=None) -> Callable:
    """Connectionist temporal classification."""
    return functools.partial(
        ctc_loss, blank=blank, reduction=reduction, zero_infinity=zero_infinity
    )


@layer("torch.nn.TripletMarginWithDistanceLoss")
def TripletMarginWithDistanceLoss(
    *, distance_function=None, margin=1.0, swap=False, reduction="mean", rngs=None
) -> Callable:
    """max(0, d(a, p) - d(a, n) + margin) for any distance."""
    return functools.partial(
        triplet_loss, distance=distance_function, margin=margin, swap=swap, reduction=reduction
    )


@layer("torch.nn.LinearCrossEntropyLoss")
def linear_cross_entropy_loss_layer(
    in_features,
    num_classes,
    *,
    out_features=(),
    bias=False,
    device=None,
    dtype=None,
    reduction="mean",
    weight=None,
    ignore_index=None,
    label_smoothing=0.0,
    options=None,
    rngs,
) -> LinearCrossEntropyLoss:
    """A linear layer and its cross entropy; ``options`` only say how torch saves memory."""
    return LinearCrossEntropyLoss(
        Linear(
            in_features,
            math.prod(out_features, start=num_classes),
            use_bias=bias,
            param_dtype=dtype or jnp.float32,
            rngs=rngs,
        ),
        num_classes,
        out_features=out_features,
        weight=weight,
        reduction=reduction,
        ignore_index=-100 if ignore_index is None else ignore_index,
        label_smoothing=label_smoothing,
        rngs=rngs,
    )


@layer("torch.nn.modules.loss._Loss")
def _Loss(size_average=None, reduce=None, reduction="mean", *, rngs=None) -> Loss:
    """What losses of one's own derive from."""
    return Loss(size_average, reduce, reduction)


@layer("torch.nn.modules.loss._WeightedLoss")
def _WeightedLoss(
    weight=None, size_average=None, reduce=None, reduction="mean", *, rngs=None
) -> WeightedLossAsTorch:
    """What losses with a weight a class derive from: ``weight`` is a buffer where it is given."""
    return WeightedLossAsTorch(weight, size_average, reduce, reduction)
