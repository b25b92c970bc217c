"""Loss helpers compute torch's values and gradients, at their bends and for ignored classes too."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.compat import losses
from tests.rules.agree import agree, array, traces

few = settings(max_examples=8, deadline=None)
reductions = st.sampled_from(["none", "mean", "sum"])


def both(name: str, **options):
    """The torch function and the helper of one name with the same options."""
    return functools.partial(getattr(F, name), **options), functools.partial(
        getattr(losses, name), **options
    )


@few
@given(
    reduction=reductions,
    spatial=st.sampled_from([(), (3,), (2, 3)]),
    smoothing=st.sampled_from([0.0, 0.1]),
    weighted=st.booleans(),
    ignore=st.sampled_from([-100, 2]),
)
def test_cross_entropy_of_classes(reduction, spatial, smoothing, weighted, ignore) -> None:
    x, weight = array((4, 5, *spatial)), jnp.abs(array((5,), 1)) if weighted else None
    target = np.random.default_rng(2).integers(0, 5, (4, *spatial))
    options = {"reduction": reduction, "ignore_index": ignore}
    options["label_smoothing"] = smoothing
    agree(
        lambda t: F.cross_entropy(
            t,
            torch.tensor(target),
            None if weight is None else torch.tensor(np.array(weight)).to(t.dtype),
            **options,
        ),
        lambda a: losses.cross_entropy(a, jnp.array(target), weight, **options),
        x,
    )
    del options["label_smoothing"]
    agree(
        lambda t: F.nll_loss(
            t,
            torch.tensor(target),
            None if weight is None else torch.tensor(np.array(weight)).to(t.dtype),
            **options,
        ),
        lambda a: losses.nll_loss(a, target, weight, **options),
        x,
    )


@few
@given(
    reduction=reductions, smoothing=st.sampled_from([0.0, 0.1]), spatial=st.sampled_from([(), (3,)])
)
def test_cross_entropy_of_probabilities(reduction, smoothing, spatial) -> None:
    x, target = array((4, 5, *spatial)), np.abs(array((4, 5, *spatial), 1))
    agree(*both("cross_entropy", reduction=reduction, label_smoothing=smoothing), x, target)


def test_mean_over_no_kept_target_is_nan() -> None:
    target = np.full(3, -100)
    loss = losses.cross_entropy(jnp.ones((3, 4)), target)
    assert jnp.isnan(loss)
    assert torch.isnan(F.cross_entropy(torch.ones(3, 4), torch.tensor(target)))


def test_one_sample_without_batch_axis() -> None:
    agree(
        lambda t: F.cross_entropy(t, torch.tensor(2)),
        lambda a: losses.cross_entropy(a, jnp.array(2)),
        array((4,)),
    )


@few
@given(reduction=reductions, weighted=st.booleans())
def test_binary_cross_entropy(reduction, weighted) -> None:
    p = np.array([[0, 1, 0.3, 0.7], [1, 0, 0.5, 0.1]], np.float32)
    target = np.array([[0, 1, 0.5, 1], [0, 1, 0, 0.2]], np.float32)
    weight = np.abs(array((4,))) if weighted else None
    agree(
        lambda t: F.binary_cross_entropy(
            t,
            torch.tensor(target).to(t.dtype),
            None if weight is None else torch.tensor(np.array(weight)).to(t.dtype),
            reduction=reduction,
        ),
        lambda a: losses.binary_cross_entropy(a, target, weight, reduction),
        p,
    )


@few
@given(reduction=reductions, scale=st.sampled_from([1, 100]), positive=st.booleans())
def test_binary_cross_entropy_with_logits(reduction, scale, positive) -> None:
    arrays = [array((3, 4)) * np.float32(scale), np.abs(array((3, 4), 1)).clip(0, 1)]
    pos_weight = np.abs(array((4,), 2)) if positive else None
    agree(
        lambda t, y: F.binary_cross_entropy_with_logits(
            t,
            y,
            reduction=reduction,
            pos_weight=None if pos_weight is None else torch.tensor(pos_weight).to(t.dtype),
        ),
        lambda a, y: losses.binary_cross_entropy_with_logits(
            a, y, reduction=reduction, pos_weight=pos_weight
        ),
        *arrays,
    )


@few
@given(reduction=st.sampled_from(["none", "mean", "sum", "batchmean"]), log_target=st.booleans())
def test_kl_div(reduction, log_target) -> None:
    x = np.array(jax.nn.log_softmax(array((3, 4))))
    target = np.array(jax.nn.softmax(array((3, 4), 1)))
    target = np.log(target) if log_target else target
    agree(*both("kl_div", reduction=reduction, log_target=log_target), x, target)


def test_kl_div_is_zero_where_the_target_is() -> None:
    x = np.array(jax.nn.log_softmax(array((2, 3))))
    target = np.array([[0, 0.4, 0.6], [1, 0, 0]], np.float32)
    options = {"reduction": "none"}
    agree(
        lambda t: F.kl_div(t, torch.tensor(target).to(t.dtype), **options),
        lambda a: losses.kl_div(a, target, **options),
        x,
    )


ELEMENTWISE = {
    "smooth_l1_loss": [{}, {"beta": 0.5}, {"beta": 0.0}],
    "huber_loss": [{}, {"delta": 0.5}],
    "poisson_nll_loss": [{}, {"full": True}, {"log_input": False}],
    "soft_margin_loss": [{}],
    "multilabel_soft_margin_loss": [{}],
    "hinge_embedding_loss": [{}, {"margin": 0.5}],
}
CASES = [(name, options) for name, all_options in ELEMENTWISE.items() for options in all_options]


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize(("name", "options"), CASES)
def test_losses_of_two_arrays(name, options, reduction) -> None:
    x, target = array((3, 4), grain=0.5), array((3, 4), 1, grain=0.5)
    if name in ("soft_margin_loss", "hinge_embedding_loss"):
        target = np.where(target > 0, np.float32(1), np.float32(-1))
    if name == "poisson_nll_loss":
        x, target = np.abs(x) + 0.5, np.abs(target) * 3
    reference, function = both(name, **options, reduction=reduction)
    agree(
        lambda t: reference(t, torch.tensor(target).to(t.dtype)),
        lambda a: function(a, target),
        x,
    )


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", [(3, 4), (3, 1), (3,)])
def test_gaussian_nll_loss(full, shape) -> None:
    var = np.abs(array(shape, 2))
    var.flat[0] = 1e-9
    agree(*both("gaussian_nll_loss", full=full, eps=1e-3), array((3, 4)), array((3, 4), 1), var)


@pytest.mark.parametrize("margin", [0.0, 0.5])
def test_ranking_and_cosine_embedding(margin) -> None:
    target = np.array([1, -1, 1], np.float32)
    x, y = array((3,), grain=0.5), array((3,), 1, grain=0.5)
    agree(
        lambda a, b: F.margin_ranking_loss(a, b, torch.tensor(target).to(a.dtype), margin),
        lambda a, b: losses.margin_ranking_loss(a, b, target, margin),
        x,
        y,
    )
    agree(
        lambda a, b: F.cosine_embedding_loss(a, b, torch.tensor(target).to(a.dtype), margin),
        lambda a, b: losses.cosine_embedding_loss(a, b, target, margin),
        array((3, 4)),
        array((3, 4), 1),
    )


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_triplet_margin_loss(swap, p) -> None:
    arrays = [array((4, 5), seed) for seed in range(3)]
    agree(*both("triplet_margin_loss", swap=swap, p=p), *arrays)
    far = functools.partial(losses.pairwise_distance, p=p)
    theirs = functools.partial(F.pairwise_distance, p=p)
    agree(
        functools.partial(F.triplet_margin_with_distance_loss, distance_function=theirs, swap=swap),
        functools.partial(losses.triplet_loss, distance=far, swap=swap),
        *arrays,
    )


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 2.5, float("inf")])
def test_distances(p) -> None:
    x, y = array((4, 5), grain=0.5), array((4, 5), 1, grain=0.5)
    y[0] = x[0]
    agree(*both("pairwise_distance", p=p), x, y)
    # torch gives every tied component of an infinite norm the whole gradient here
    agree(*both("pdist", p=p), x if p < float("inf") else array((4, 5)))


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_cosine_similarity(dim) -> None:
    x, y = array((4, 5)), array((4, 5), 1)
    x[1] = 0
    agree(*both("cosine_similarity", dim=dim), x, y)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("p", [1, 2])
def test_multi_margin_loss(p, reduction) -> None:
    target, weight = np.array([0, 3, 1]), jnp.abs(array((4,), 1))
    agree(
        lambda t: F.multi_margin_loss(
            t,
            torch.tensor(target),
            p,
            0.5,
            torch.tensor(np.array(weight)).to(t.dtype),
            reduction=reduction,
        ),
        lambda a: losses.multi_margin_loss(a, target, p, 0.5, weight, reduction),
        array((3, 4), grain=0.5),
    )


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_multilabel_margin_loss(reduction) -> None:
    target = np.array([[1, 3, -1, 0], [0, -1, -1, 2], [-1, 1, 2, 3]])
    agree(
        lambda t: F.multilabel_margin_loss(t, torch.tensor(target), reduction=reduction),
        lambda a: losses.multilabel_margin_loss(a, target, reduction),
        array((3, 4), grain=0.5),
    )


@few
@given(
    reduction=reductions,
    lengths=st.tuples(*[st.integers(1, 8)] * 3),
    labels=st.tuples(*[st.integers(0, 4)] * 3),
    zero_infinity=st.booleans(),
    seed=st.integers(0, 9),
)
def test_ctc_loss(reduction, lengths, labels, zero_infinity, seed) -> None:
    x = np.array(jax.nn.log_softmax(array((8, 3, 5), seed)))
    targets = np.random.default_rng(seed).integers(1, 5, (3, 4))
    options = {"reduction": reduction, "zero_infinity": zero_infinity}
    feasible = all(n >= 2 * m for n, m in zip(lengths, labels, strict=True))
    agree(
        lambda t: F.ctc_loss(t, torch.tensor(targets), lengths, labels, **options),
        lambda a: losses.ctc_loss(a, targets, lengths, labels, **options),
        x,
        gradients=feasible or zero_infinity,
    )


@pytest.mark.parametrize(
    "function",
    [
        lambda x: losses.cross_entropy(x, np.array([0, 1, -100]), label_smoothing=0.1),
        lambda x: losses.binary_cross_entropy(jax.nn.sigmoid(x), x > 0),
        lambda x: losses.ctc_loss(jax.nn.log_softmax(x)[:, None], np.ones((1, 1), int), (3,), (1,)),
        lambda x: losses.triplet_margin_loss(x, 2 * x, 1 - x),
        lambda x: losses.multilabel_margin_loss(x, np.zeros((3, 4), int)),
        lambda x: losses.cosine_similarity(x, 1 - x),
        losses.pdist,
    ],
)
def test_compiles_once(function) -> None:
    assert traces(function, array((3, 4))) == 1


@pytest.mark.parametrize("positive", [None, 0.3, 2.5])
@pytest.mark.parametrize("target", [0.0, 0.4, 1.0])
def test_a_small_slope_of_logits_is_not_lost(target, positive) -> None:
    x = torch.tensor([-90.0, -20.0, -17.0, -14.77, 0.0, 14.77, 90.0], requires_grad=True)
    t = torch.full((7,), target, requires_grad=True)
    weight = None if positive is None else torch.full((7,), positive)
    F.binary_cross_entropy_with_logits(x, t, pos_weight=weight, reduction="sum").backward()

    def loss(x, t):
        w = None if positive is None else jnp.full(7, positive)
        return losses.binary_cross_entropy_with_logits(x, t, reduction="sum", pos_weight=w)

    got = jax.grad(loss, (0, 1))(jnp.asarray(x.detach().numpy()), jnp.asarray(t.detach().numpy()))
    absolute = 0.0 if target == 0 else 1e-6  # elsewhere it is one number less another
    for one, other in zip(got, (x.grad, t.grad), strict=True):
        np.testing.assert_allclose(one, other.numpy(), rtol=1e-5, atol=absolute)


def test_logits_and_classes_that_are_integers() -> None:
    x, t = torch.linspace(-2, 2, 5, requires_grad=True), torch.tensor([0, 1, 1, 0, 1])
    want = F.binary_cross_entropy_with_logits(x, t.float())
    want.backward()
    value, slope = jax.value_and_grad(losses.binary_cross_entropy_with_logits)(
        jnp.asarray(x.detach().numpy()), jnp.asarray(t.numpy())
    )
    np.testing.assert_allclose(value, want.item(), rtol=1e-6)
    np.testing.assert_allclose(slope, x.grad.numpy(), rtol=1e-5)
