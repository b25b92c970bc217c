"""Distances between vectors."""

from __future__ import annotations

import functools

from rules.compat.losses import cosine_similarity, pairwise_distance
from rules.registry import layer


@layer("torch.nn.CosineSimilarity")
def CosineSimilarity(dim=1, eps=1e-8, *, rngs=None) -> Callable:
    """x1 · x2 / (max(‖x1‖, eps) max(‖x2‖, eps))."""
    return functools.partial(cosine_similarity, dim=dim, eps=eps)


@layer("torch.nn.PairwiseDistance")
def PairwiseDistance(p=2.0, eps=1e-6, keepdim=False, *, rngs=None) -> Callable:
    """p-norm of x1 - x2 + eps over the last axis."""
    return functools.partial(pairwise_distance, p=p, eps=eps, keepdim=keepdim)
