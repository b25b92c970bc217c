"""torch.nn.functional, loss functions.

``size_average`` and ``reduce`` are torch's old spelling of ``reduction``. Slopes where a loss bends are torch's.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rules.compat.losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cosine_embedding_loss,
    cosine_similarity,
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
    pairwise_distance,
    pdist,
    poisson_nll_loss,
    smooth_l1_loss,
    soft_margin_loss,
    triplet_loss,
    triplet_margin_loss,
)
from rules.registry import op, surely, unsupported


@op(
    "torch.nn.functional.mse_loss",
    example={
        "F.mse_loss(x, y)": "jnp.mean((x - y) ** 2)",
        "F.mse_loss(x, y, reduction='sum')": "jnp.sum((x - y) ** 2)",
    },
)
def f_mse_loss(
    input, target, size_average=None, reduce=None, reduction="mean", weight=None
) -> Tensor["float"]:
    """(input - target)²; a weighted mean divides by the sum of the weights."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    loss = (input - target) ** 2
    if weight is not None:
        loss = loss * weight
        if reduction == "mean":
            return jnp.sum(loss) / jnp.sum(weight)
    if reduction == "mean":
        return jnp.mean(loss)
    return jnp.sum(loss) if reduction == "sum" else loss


@op(
    "torch.nn.functional.l1_loss",
    example={"F.l1_loss(x, y)": "jnp.mean(jnp.maximum(x - y, y - x))"},
)
def f_l1_loss(
    input, target, size_average=None, reduce=None, reduction="mean", weight=None
) -> Tensor["float"]:
    """|input - target|, written so that the slope at 0 is 0 (that of jnp.abs is 1)."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    loss = jnp.maximum(input - target, target - input)
    if weight is not None:
        loss = loss * weight
        if reduction == "mean":
            return jnp.sum(loss) / jnp.sum(weight)
    if reduction == "mean":
        return jnp.mean(loss)
    return jnp.sum(loss) if reduction == "sum" else loss


@op(
    "torch.nn.functional.cross_entropy",
    example={
        "F.cross_entropy(x, i)": "cross_entropy(x, i)",
        "F.cross_entropy(x, i, ignore_index=-1)": "cross_entropy(x, i, ignore_index=-1)",
    },
)
def f_cross_entropy(
    input,
    target,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
    label_smoothing=0.0,
) -> Tensor["float"]:
    """Cross entropy of logits with class numbers or probabilities.

    Targets of one axis less than the logits are class numbers; those to ignore may lie outside of the classes.
    """
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    plain = weight is None and reduction == "mean" and label_smoothing == 0
    if surely(plain and input.ndim == 2 and target.ndim == 1):
        log_p = jax.nn.log_softmax(input)
        nll = -jnp.take_along_axis(log_p, target[:, None], axis=1)
        return jnp.mean(nll, where=target[:, None] != ignore_index)
    return cross_entropy(
        input,
        target,
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


@op(
    "torch.nn.functional.nll_loss",
    example={"F.nll_loss(x, i)": "nll_loss(x, i)"},
)
def f_nll_loss(
    input,
    target,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
) -> Tensor["float"]:
    """-input[target]; the mean divides by the weights of the targets kept."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    return nll_loss(input, target, weight=weight, ignore_index=ignore_index, reduction=reduction)


@op(
    "torch.nn.functional.binary_cross_entropy",
    example={
        "F.binary_cross_entropy(x, y)": "binary_cross_entropy(x, y)",
        "F.binary_cross_entropy(x, y, size_average=False)": "binary_cross_entropy(x, y, reduction='sum')",
    },
)
def f_binary_cross_entropy(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean"
) -> Tensor["float"]:
    """-(t log p + (1 - t) log(1 - p)) with logs no lower than -100."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    return binary_cross_entropy(input, target, weight=weight, reduction=reduction)


@op(
    "torch.nn.functional.binary_cross_entropy_with_logits",
    example={"F.binary_cross_entropy_with_logits(x, y)": "binary_cross_entropy_with_logits(x, y)"},
)
def f_binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
) -> Tensor["float"]:
    """Binary cross entropy of σ(input)."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    return binary_cross_entropy_with_logits(
        input, target, weight=weight, reduction=reduction, pos_weight=pos_weight
    )


@op(
    "torch.nn.functional.kl_div",
    example={"F.kl_div(x, y, reduction='batchmean')": "kl_div(x, y, reduction='batchmean')"},
)
def f_kl_div(
    input, target, size_average=None, reduce=None, reduction="mean", log_target=False
) -> Tensor["float"]:
    """target · (log target - input); "batchmean" divides the sum by the first size."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    return kl_div(input, target, reduction=reduction, log_target=log_target)


@op(
    "torch.nn.functional.smooth_l1_loss",
    example={"F.smooth_l1_loss(x, y)": "smooth_l1_loss(x, y)"},
)
def f_smooth_l1_loss(
    input, target, size_average=None, reduce=None, reduction="mean", beta=1.0
) -> Tensor["float"]:
    """d² / (2 beta) near 0, |d| - beta / 2 beyond."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    return smooth_l1_loss(input, target, reduction=reduction, beta=beta)


@op(
    "torch.nn.functional.huber_loss",
    example={"F.huber_loss(x, y)": "huber_loss(x, y)"},
)
def f_huber_loss(input, target, reduction="mean", delta=1.0, weight=None) -> Tensor["float"]:
    """d² / 2 near 0, delta (|d| - delta / 2) beyond."""
    return huber_loss(input, target, reduction=reduction, delta=delta, weight=weight)


@op(
    "torch.nn.functional.poisson_nll_loss",
    example={"F.poisson_nll_loss(x, y)": "poisson_nll_loss(x, y)"},
)
def f_poisson_nll_loss(
    input,
    target,
    log_input=True,
    full=False,
    size_average=None,
    eps=1e-8,
    reduce=None,
    reduction="mean",
) -> Tensor["float"]:
    """Negative log-likelihood of a Poisson count."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    return poisson_nll_loss(
        input, target, log_input=log_input, full=full, eps=eps, reduction=reduction
    )


@op(
    "torch.nn.functional.gaussian_nll_loss",
    example={"F.gaussian_nll_loss(x, y, z)": "gaussian_nll_loss(x, y, z)"},
)
def f_gaussian_nll_loss(
    input, target, var, full=False, eps=1e-6, reduction="mean"
) -> Tensor["float"]:
    """Negative log-likelihood of a normal value of variance ``var``."""
    return gaussian_nll_loss(input, target, var, full=full, eps=eps, reduction=reduction)


@op(
    "torch.nn.functional.soft_margin_loss",
    example={"F.soft_margin_loss(x, y)": "soft_margin_loss(x, y)"},
)
def f_soft_margin_loss(
    input, target, size_average=None, reduce=None, reduction="mean"
) -> Tensor["float"]:
    """log(1 + exp(-t x))."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    return soft_margin_loss(input, target, reduction=reduction)


@op(
    "torch.nn.functional.multilabel_soft_margin_loss",
    example={"F.multilabel_soft_margin_loss(x, y)": "multilabel_soft_margin_loss(x, y)"},
)
def f_multilabel_soft_margin_loss(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean"
) -> Tensor["float"]:
    """Binary cross entropy of logits, averaged over classes."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    return multilabel_soft_margin_loss(input, target, weight=weight, reduction=reduction)


@op(
    "torch.nn.functional.multilabel_margin_loss",
    example={"F.multilabel_margin_loss(x, i)": "multilabel_margin_loss(x, i)"},
)
def f_multilabel_margin_loss(
    input, target, size_average=None, reduce=None, reduction="mean"
) -> Tensor["float"]:
    """Hinge loss between every label and every other class."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    return multilabel_margin_loss(input, target, reduction=reduction)


@op(
    "torch.nn.functional.multi_margin_loss",
    example={"F.multi_margin_loss(x, i)": "multi_margin_loss(x, i)"},
)
def f_multi_margin_loss(
    input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"
) -> Tensor["float"]:
    """Hinge loss between the target class and every other class."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    return multi_margin_loss(input, target, p=p, margin=margin, weight=weight, reduction=reduction)


@op(
    "torch.nn.functional.hinge_embedding_loss",
    example={"F.hinge_embedding_loss(x, y)": "hinge_embedding_loss(x, y)"},
)
def f_hinge_embedding_loss(
    input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"
) -> Tensor["float"]:
    """x for t = 1, max(0, margin - x) for t = -1."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    return hinge_embedding_loss(input, target, margin=margin, reduction=reduction)


@op(
    "torch.nn.functional.margin_ranking_loss",
    example={"F.margin_ranking_loss(x, y, z)": "margin_ranking_loss(x, y, z, margin=0)"},
)
def f_margin_ranking_loss(
    input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"
) -> Tensor["float"]:
    """max(0, -t (x1 - x2) + margin)."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    return margin_ranking_loss(input1, input2, target, margin=margin, reduction=reduction)


@op(
    "torch.nn.functional.cosine_embedding_loss",
    example={"F.cosine_embedding_loss(x, y, z)": "cosine_embedding_loss(x, y, z, margin=0)"},
)
def f_cosine_embedding_loss(
    input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"
) -> Tensor["float"]:
    """1 - cos for t = 1, max(0, cos - margin) for t = -1."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    return cosine_embedding_loss(input1, input2, target, margin=margin, reduction=reduction)


@op(
    "torch.nn.functional.triplet_margin_loss",
    example={"F.triplet_margin_loss(x, y, z)": "triplet_margin_loss(x, y, z)"},
)
def f_triplet_margin_loss(
    anchor,
    positive,
    negative,
    margin=1.0,
    p=2,
    eps=1e-6,
    swap=False,
    size_average=None,
    reduce=None,
    reduction="mean",
) -> Tensor["float"]:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin)."""
    if size_average is not None or reduce is not None:
        summed = size_average is not None and not size_average
        reduction = "sum" if summed else "mean"
        reduction = "none" if reduce is not None and not reduce else reduction
    return triplet_margin_loss(
        anchor, positive, negative, margin=margin, p=p, eps=eps, swap=swap, reduction=reduction
    )


@op(
    "torch.nn.functional.triplet_margin_with_distance_loss",
    example={"F.triplet_margin_with_distance_loss(x, y, z)": "triplet_loss(x, y, z)"},
)
def f_triplet_margin_with_distance_loss(
    anchor,
    positive,
    negative,
    *,
    distance_function=None,
    margin=1.0,
    swap=False,
    reduction="mean",
) -> Tensor["float"]:
    """Triplet loss for any distance."""
    return triplet_loss(
        anchor,
        positive,
        negative,
        distance=distance_function,
        margin=margin,
        swap=swap,
        reduction=reduction,
    )


@op(
    "torch.nn.functional.ctc_loss",
    example={"F.ctc_loss(x, i, j, j)": "ctc_loss(x, i, j, j)"},
)
def f_ctc_loss(
    log_probs,
    targets,
    input_lengths,
    target_lengths,
    blank=0,
    reduction="mean",
    zero_infinity=False,
) -> Tensor["float"]:
    """Connectionist temporal classification."""
    return ctc_loss(
        log_probs,
        targets,
        input_lengths,
        target_lengths,
        blank=blank,
        reduction=reduction,
        zero_infinity=zero_infinity,
    )


@op(
    "torch.nn.functional.linear_cross_entropy",
    example={
        "F.linear_cross_entropy(x, y, i)": "cross_entropy(jnp.tensordot(x, y, axes=(-1, -1)), i)"
    },
)
def f_linear_cross_entropy(
    input,
    linear_weight,
    target,
    *,
    linear_bias=None,
    weight=None,
    reduction="mean",
    ignore_index=None,
    label_smoothing=0.0,
    options=None,
) -> Tensor["float"]:
    """Cross entropy of a linear map."""
    if options is not None:
        unsupported("options of linear_cross_entropy choose chunked kernels of torch")
    logits = jnp.tensordot(input, linear_weight, axes=(-1, -1))
    if linear_bias is not None:
        logits = logits + linear_bias
    return cross_entropy(
        logits,
        target,
        weight=weight,
        ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


@op(
    "torch.nn.functional.cosine_similarity",
    "torch.cosine_similarity",
    example={"F.cosine_similarity(x, y, dim=-1)": "cosine_similarity(x, y, dim=-1)"},
)
def f_cosine_similarity(x1, x2, dim=1, eps=1e-8) -> Tensor["float"]:
    """x1 · x2 / (max(‖x1‖, eps) max(‖x2‖, eps))."""
    return cosine_similarity(x1, x2, dim=dim, eps=eps)


@op(
    "torch.nn.functional.pairwise_distance",
    "torch.pairwise_distance",
    example={"F.pairwise_distance(x, y)": "pairwise_distance(x, y)"},
)
def f_pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False) -> Tensor["float"]:
    """p-norm of x1 - x2 + eps over the last axis."""
    return pairwise_distance(x1, x2, p=p, eps=eps, keepdim=keepdim)


@op(
    "torch.nn.functional.pdist",
    "torch.pdist",
    example={"F.pdist(x)": "pdist(x)"},
)
def f_pdist(input, p=2.0) -> Tensor["float"]:
    """Distances of all pairs of rows."""
    return pdist(input, p=p)


@op("torch.nn._reduction.get_enum", "torch.nn.functional._Reduction.get_enum")
def reduction_enum(reduction) -> int:
    """The number of a reduction."""
    return ("none", "mean", "sum").index(reduction)
