"""Losses with torch's reductions, class weights, ignored classes and gradients at their bends."""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from rules.compat.pointwise import absolute


def reduce_loss(loss, reduction="mean"):
    """``loss`` itself ("none"), its mean or its sum."""
    return {"none": lambda x: x, "mean": jnp.mean, "sum": jnp.sum}[reduction](loss)


def _class_loss(log_p, smooth, target, weight, ignore_index, reduction, label_smoothing=0.0):
    """Weighted negative log-likelihood of class numbers; the mean is over the weights kept."""
    axis = min(log_p.ndim - 1, 1)
    kept = target != ignore_index
    target = jnp.where(kept, target, 0)
    picked = -jnp.take_along_axis(log_p, jnp.expand_dims(target, axis), axis).squeeze(axis)
    weights = kept.astype(log_p.dtype)
    if weight is not None:
        picked, weights = picked * weight[target], jnp.where(kept, weight[target], 0)
    if label_smoothing:
        picked = (1 - label_smoothing) * picked + label_smoothing * smooth
    loss = jnp.where(kept, picked, 0)
    if reduction == "mean":
        return jnp.sum(loss) / jnp.sum(weights)
    return reduce_loss(loss, reduction)


def nll_loss(input, target, weight=None, ignore_index=-100, reduction="mean"):
    """-input[target] · weight[target]; the mean divides by the weights of the targets kept.

    Shapes: input (C,) or (N, C, …) of log-probabilities, target () or (N, …) of class numbers.
    """
    return _class_loss(input, None, target, weight, ignore_index, reduction)


def cross_entropy(
    input, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0
):
    """Cross entropy of logits against class numbers or class probabilities.

    Shapes: input (C,) or (N, C, …); target () or (N, …) of integers, or as input. Formula: torch's
    documentation of torch.nn.CrossEntropyLoss.
    """
    axis = min(input.ndim - 1, 1)
    log_p = weighted = jax.nn.log_softmax(input, axis)
    if weight is not None:
        weighted = log_p * weight.reshape(-1, *(1,) * (input.ndim - axis - 1))
    if jnp.issubdtype(target.dtype, jnp.floating):
        if label_smoothing:
            target = target * (1 - label_smoothing) + label_smoothing / input.shape[axis]
        return reduce_loss(-jnp.sum(weighted * target, axis), reduction)
    smooth = -jnp.mean(weighted, axis)
    return _class_loss(log_p, smooth, target, weight, ignore_index, reduction, label_smoothing)


@jax.custom_jvp
def _binary_cross_entropy(input, target):
    log_p, log_q = jnp.log(input), jnp.log1p(-input)
    return -(target * jnp.maximum(log_p, -100) + (1 - target) * jnp.maximum(log_q, -100))


@_binary_cross_entropy.defjvp
def _binary_cross_entropy_jvp(primals, tangents):
    input, target = primals
    slope = (input - target) / jnp.maximum((1 - input) * input, 1e-12)
    by_target = jnp.log1p(-input) - jnp.log(input)
    tangent = slope * tangents[0] + by_target * tangents[1]
    return _binary_cross_entropy(input, target), tangent


def binary_cross_entropy(input, target, weight=None, reduction="mean"):
    """-(t log p + (1 - t) log(1 - p)) with logs no lower than -100 and a finite slope, as in torch.

    Shapes: input and target alike, weight broadcast to them.
    """
    loss = _binary_cross_entropy(input, target)
    return reduce_loss(loss if weight is None else loss * weight, reduction)


@jax.custom_jvp
def _of_logits(input, target, pos_weight):
    log_weight = (pos_weight - 1) * target + 1
    return (1 - target) * input - log_weight * jax.nn.log_sigmoid(input)


@_of_logits.defjvp
def _of_logits_jvp(primals, tangents):
    # of (1 - t) x and log σ(x) apart the slope would be 1 - σ(-x), in which a small σ(x) is lost
    input, target, pos_weight = primals
    slope = ((pos_weight - 1) * target + 1) * jax.nn.sigmoid(input) - pos_weight * target
    log_p = jax.nn.log_sigmoid(input)
    by_target = jax.nn.log_sigmoid(-input) - pos_weight * log_p
    tangent = slope * tangents[0] + by_target * tangents[1] - target * log_p * tangents[2]
    return _of_logits(input, target, pos_weight), tangent


def binary_cross_entropy_with_logits(input, target, weight=None, reduction="mean", pos_weight=None):
    """-(pos_weight · t log σ(x) + (1 - t) log(1 - σ(x))); shapes as binary_cross_entropy."""
    target = jnp.asarray(target, jnp.result_type(input, target))
    loss = _of_logits(input, target, 1.0 if pos_weight is None else pos_weight)
    return reduce_loss(loss if weight is None else loss * weight, reduction)


def kl_div(input, target, reduction="mean", log_target=False):
    """target · (log target - input), where ``input`` holds log-probabilities; 0 where target is 0.

    "mean" is over all elements, "batchmean" over the first axis only.
    """
    if log_target:
        loss = jnp.exp(target) * (target - input)
    else:
        zero = target == 0
        log = jnp.log(jnp.where(zero, 1, target))
        loss = jnp.where(zero, target * 0, target * log) - target * input
    if reduction == "batchmean":
        return jnp.sum(loss) / (input.shape[0] if input.ndim else 1)
    return reduce_loss(loss, reduction)


def clamp_min(input, minimum):
    """max(x, minimum) whose slope at x = minimum is 1, as torch's clamp."""
    return jnp.where(input < minimum, minimum, input)


def p_norm(input, p=2.0, axis=-1, keepdims=False):
    """(Σ |x|^p)^(1/p) with slope 0 where the norm is 0, as in torch."""
    size = absolute(input)
    if p == float("inf"):
        return jnp.max(size, axis, keepdims=keepdims)
    if p == 0:
        return jnp.sum((input != 0).astype(input.dtype), axis, keepdims=keepdims)
    if p == 1:
        return jnp.sum(size, axis, keepdims=keepdims)
    safe = jnp.where(size > 0, size, 1)
    total = jnp.sum(jnp.where(size > 0, safe**p, size), axis, keepdims=keepdims)
    root = jnp.where(total > 0, total, 1)
    return jnp.where(total > 0, root ** (1 / p), total)


def smooth_l1_loss(input, target, reduction="mean", beta=1.0):
    """d² / (2 beta) where |d| < beta, else |d| - beta / 2, for d = input - target."""
    size = absolute(input - target)
    if beta == 0:
        return reduce_loss(size, reduction)
    loss = jnp.where(size < beta, 0.5 * size**2 / beta, size - 0.5 * beta)
    return reduce_loss(loss, reduction)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """d² / 2 where |d| <= delta, else delta (|d| - delta / 2), for d = input - target."""
    size = absolute(input - target)
    loss = jnp.where(size <= delta, 0.5 * size**2, delta * (size - 0.5 * delta))
    return reduce_loss(loss if weight is None else loss * weight, reduction)


def poisson_nll_loss(input, target, log_input=True, full=False, eps=1e-8, reduction="mean"):
    """exp(x) - t x, or x - t log(x + eps) without ``log_input``; ``full`` adds Stirling's log t!."""
    if log_input:
        loss = jnp.exp(input) - target * input
    else:
        loss = input - target * jnp.log(input + eps)
    if full:
        t = jnp.where(target > 1, target, 1)
        stirling = t * jnp.log(t) - t + 0.5 * jnp.log(2 * math.pi * t)
        loss = loss + jnp.where(target > 1, stirling, 0)
    return reduce_loss(loss, reduction)


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """(log v + (x - t)² / v) / 2 with v = max(var, eps), whose slope by ``var`` ignores the max.

    ``var`` has input's shape, or lacks its last axis, or has 1 there, or is a number.
    """
    var = jnp.asarray(var, input.dtype)
    if var.ndim and var.shape == input.shape[:-1] and var.shape != input.shape:
        var = var[..., None]
    var = jnp.where(var < eps, eps + var - jax.lax.stop_gradient(var), var)
    loss = 0.5 * (jnp.log(var) + (input - target) ** 2 / var)
    return reduce_loss(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


def soft_margin_loss(input, target, reduction="mean"):
    """log(1 + exp(-t x)) for t in {-1, 1}."""
    return reduce_loss(jnp.log1p(jnp.exp(-target * input)), reduction)


def multilabel_soft_margin_loss(input, target, weight=None, reduction="mean"):
    """Binary cross entropy of logits (N, C), weighted by class, averaged over C → (N)."""
    loss = -(target * jax.nn.log_sigmoid(input) + (1 - target) * jax.nn.log_sigmoid(-input))
    return reduce_loss(jnp.mean(loss if weight is None else loss * weight, -1), reduction)


def hinge_embedding_loss(input, target, margin=1.0, reduction="mean"):
    """x where t = 1, max(0, margin - x) where t = -1."""
    near = jnp.where(target != -1, input, 0)
    return reduce_loss(near + jnp.where(target != 1, clamp_min(margin - input, 0), 0), reduction)


def margin_ranking_loss(input1, input2, target, margin=0.0, reduction="mean"):
    """max(0, -t (x1 - x2) + margin)."""
    return reduce_loss(clamp_min(-target * (input1 - input2) + margin, 0), reduction)


def pdist(input, p=2.0):
    """p-norm distances of all pairs of rows i < j: (N, D) → (N (N - 1) / 2)."""
    first, second = np.triu_indices(input.shape[0], 1)
    return p_norm(input[first] - input[second], p)


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """p-norm of x1 - x2 + eps over the last axis: (…, D), (…, D) → (…)."""
    return p_norm(x1 - x2 + eps, p, -1, keepdim)


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """x1 · x2 / (max(‖x1‖, eps) max(‖x2‖, eps)) over ``dim``; shapes broadcast."""
    x1, x2 = jnp.broadcast_arrays(*jnp.atleast_1d(x1, x2))
    norms = [jnp.sqrt(clamp_min(jnp.sum(x * x, dim, keepdims=True), eps * eps)) for x in (x1, x2)]
    return jnp.sum((x1 / norms[0]) * (x2 / norms[1]), dim)


def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction="mean"):
    """1 - cos where target is 1, max(0, cos - margin) where it is -1: (N, D), (N, D), (N) → (N)."""
    dots = jnp.sum(input1 * input2, -1)
    sizes = (jnp.sum(input1**2, -1) + 1e-12) * (jnp.sum(input2**2, -1) + 1e-12)
    cosine = dots / jnp.sqrt(sizes)
    far = clamp_min(cosine - margin, 0)
    loss = jnp.where(target == 1, 1 - cosine, 0) + jnp.where(target == -1, far, 0)
    return reduce_loss(loss, reduction)


def triplet_margin_loss(
    anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, reduction="mean"
):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) with the p-norm: three (N, D) → (N)."""
    distance = functools.partial(pairwise_distance, p=p, eps=eps)
    return triplet_loss(anchor, positive, negative, distance, margin, swap, reduction)


def triplet_loss(
    anchor, positive, negative, distance=None, margin=1.0, swap=False, reduction="mean"
):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) for any ``distance``.

    ``swap`` takes the nearer of anchor and positive to the negative (Balntas et al., 2016).
    """
    distance = distance or pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = jnp.minimum(far, distance(positive, negative))
    return reduce_loss(clamp_min(margin + near - far, 0), reduction)


def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, reduction="mean"):
    """Σ_{i≠y} max(0, margin - x[y] + x[i])^p / C: (N, C), (N) → (N)."""
    rows, classes = jnp.atleast_2d(input), jnp.atleast_1d(target)[:, None]
    gap = margin - jnp.take_along_axis(rows, classes, 1) + rows
    gap = jnp.where((jnp.arange(rows.shape[1]) != classes) & (gap > 0), gap, 0)
    loss = gap**p if weight is None else gap**p * weight[classes]
    return reduce_loss(jnp.mean(loss, 1).reshape(target.shape), reduction)


def multilabel_margin_loss(input, target, reduction="mean"):
    """Σ over labels y and non-labels i of max(0, 1 - x[y] + x[i]) / C: two (N, C) → (N).

    A row of ``target`` lists label numbers up to the first -1.
    """
    rows, labels = jnp.atleast_2d(input), jnp.atleast_2d(target)
    listed = jnp.cumprod(labels >= 0, 1).astype(bool)
    labels = jnp.where(listed, labels, 0)
    classes = jnp.arange(rows.shape[1])
    is_label = jnp.any((labels[:, :, None] == classes) & listed[:, :, None], 1)
    gap = 1 - jnp.take_along_axis(rows, labels, 1)[:, :, None] + rows[:, None, :]
    counted = listed[:, :, None] & ~is_label[:, None, :] & (gap > 0)
    loss = jnp.sum(jnp.where(counted, gap, 0), (1, 2)) / rows.shape[1]
    return reduce_loss(loss.reshape(target.shape[:-1]), reduction)


def ctc_loss(
    log_probs,
    targets,
    input_lengths,
    target_lengths,
    blank=0,
    reduction="mean",
    zero_infinity=False,
):
    """Connectionist temporal classification (Graves et al., 2006), in log space over time.

    Shapes: log_probs (T, N, C) or (T, C); targets (N, S), or all targets in one row; lengths (N).
    """
    batched = log_probs.ndim == 3
    log_probs = log_probs if batched else log_probs[:, None]
    input_lengths = jnp.atleast_1d(jnp.asarray(input_lengths))
    target_lengths = jnp.atleast_1d(jnp.asarray(target_lengths))
    time, batch, _ = log_probs.shape
    if targets.ndim == 1:  # concatenated
        starts = jnp.cumsum(target_lengths) - target_lengths
        at = starts[:, None] + jnp.arange(targets.shape[0])
        targets = targets[jnp.minimum(at, targets.shape[0] - 1)]
    # Blanks around every label: l_0 = blank, l_1 = target 0, l_2 = blank, …
    labels = jnp.full((batch, 2 * targets.shape[1] + 1), blank).at[:, 1::2].set(targets)
    skips = (labels != blank) & (labels != jnp.roll(labels, 2, 1))
    scores = jnp.take_along_axis(log_probs, labels[None].repeat(time, 0), 2)
    none = jnp.full((batch, 2), -jnp.inf, scores.dtype)

    def step(alpha, inputs):
        score, at = inputs
        behind = jnp.concatenate([none, alpha], 1)
        two_back = jnp.where(skips, behind[:, :-2], -jnp.inf)
        new = _log_add(_log_add(alpha, behind[:, 1:-1]), two_back) + score
        return jnp.where((at < input_lengths)[:, None], new, alpha), None

    first = jnp.where(jnp.arange(labels.shape[1]) < 2, 0, -jnp.inf) + scores[0]
    alpha, _ = jax.lax.scan(step, first, (scores[1:], jnp.arange(1, time)))
    last = 2 * target_lengths[:, None]
    ends = jnp.take_along_axis(alpha, jnp.maximum(last - jnp.arange(2), 0), 1)
    ends = jnp.where(last - jnp.arange(2) >= 0, ends, -jnp.inf)
    loss = -_log_add(ends[:, 0], ends[:, 1])
    # torch's slope is that of normalised log_probs: exp(log_probs) minus the posterior.
    during = jnp.arange(time)[:, None, None] < input_lengths[:, None]
    mass = jnp.sum(jnp.where(during, jnp.exp(log_probs), 0), (0, 2))
    loss = loss + mass - jax.lax.stop_gradient(mass)
    if zero_infinity:
        loss = jnp.where(loss == jnp.inf, 0, loss)
    if reduction == "mean":
        return jnp.mean(loss / jnp.maximum(target_lengths, 1))
    return reduce_loss(loss if batched else loss[0], reduction)


def _log_add(a, b):
    """log(exp a + exp b) with zero slope, not nan, where both are -inf."""
    none = jnp.maximum(a, b) == -jnp.inf
    return jnp.where(none, -jnp.inf, jnp.logaddexp(jnp.where(none, 0, a), jnp.where(none, 0, b)))
