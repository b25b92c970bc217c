"""What the objects of ``torch.distributions`` have, and what their methods return."""

from __future__ import annotations

from migrator.infer import kinds as k

DISTRIBUTIONS = "torch.distributions."
_TENSORS = frozenset(
    "mean mode variance stddev loc scale probs logits scale_tril covariance_matrix".split()
)
_SHAPES = ("batch_shape", "event_shape")
METHODS = frozenset("sample rsample log_prob entropy cdf icdf perplexity".split())
"""Methods that return a tensor."""
KNOWN = _TENSORS | METHODS | {*_SHAPES, "base_dist"}
"""The attributes that the converted classes have."""


def of_distribution(value: k.Other, name: str) -> k.Kind:
    """The kind of an attribute of a distribution."""
    if name in METHODS:
        return k.Function(f"{value.type}.{name}", value)
    if name in _SHAPES:
        return k.Sequence(k.INT, "size")
    return k.TENSOR if name in _TENSORS else k.UNKNOWN


def result(name: str) -> k.Kind | None:
    """The kind of what a method of a distribution returns, by its qualified name; None for other functions."""
    owner, _, method = name.rpartition(".")
    if method not in METHODS or not owner.startswith(DISTRIBUTIONS):
        return None
    return k.TENSOR
