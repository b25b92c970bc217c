"""torch's draws are recorded and handed to the port, in one compilation, or refused when they do not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from flax import nnx

from numerics.randomness import Recorder, Replayer, ReplayMismatch, replaying

torch.set_num_threads(1)
KEY = jax.random.key(0)
PAIRS: list[tuple[Callable[[], Any], Callable[[nnx.Rngs], Any]]] = [
    (lambda: torch.randn(2, 3), lambda rngs: rngs.normal((2, 3))),
    (lambda: torch.randn_like(torch.ones(3)), lambda rngs: jax.random.normal(KEY, (3,))),
    (lambda: torch.empty(4).normal_(2.0, 3.0), lambda rngs: rngs.normal((4,)) * 3 + 2),
    (lambda: torch.rand(5), lambda rngs: rngs.uniform((5,))),
    (lambda: torch.empty(5).uniform_(-1, 3), lambda rngs: rngs.uniform((5,), minval=-1, maxval=3)),
    (lambda: torch.bernoulli(torch.full((6,), 0.5)), lambda rngs: rngs.bernoulli(0.5, (6,)) * 1.0),
    (
        lambda: torch.rand(5, dtype=torch.bfloat16).float(),  # numpy has no such type
        lambda rngs: rngs.uniform((5,), jnp.bfloat16).astype(jnp.float32),
    ),
    (
        lambda: F.dropout(torch.ones(6, dtype=torch.bfloat16)).float(),
        lambda rngs: (rngs.bernoulli(0.5, (6,)) * jnp.bfloat16(2.0)).astype(jnp.float32),
    ),
    (lambda: torch.randint(0, 9, (7,)), lambda rngs: rngs.randint((7,), 0, 9)),
    (lambda: torch.randperm(8), lambda rngs: rngs.permutation(8)),
    (
        lambda: torch.multinomial(torch.ones(3, 4), 1)[:, 0],
        lambda rngs: rngs.categorical(jnp.zeros((3, 4))),
    ),
    (lambda: torch.empty(3).exponential_(2.0), lambda rngs: rngs.exponential((3,)) / 2),
    (
        lambda: torch.nn.functional.dropout(torch.ones(50), 0.3),
        lambda rngs: nnx.Dropout(0.3, rngs=rngs)(jnp.ones(50)),
    ),
]


def record(function: Callable[[], Any]) -> tuple[Any, Recorder]:
    with Recorder() as recorder:
        return function(), recorder


def replay(function: Callable[[nnx.Rngs], Any], recorder: Recorder) -> Any:
    kinds = [draw.kind for draw in recorder.draws]

    @jax.jit
    def traced(values: Any) -> Any:
        with replaying(kinds, values):
            return function(nnx.Rngs(0))

    return np.asarray(traced([draw.value for draw in recorder.draws]))


@pytest.mark.parametrize("pair", PAIRS, ids=range(len(PAIRS)))
def test_the_port_draws_what_torch_drew(pair: Any) -> None:
    torch.manual_seed(3)
    value, recorder = record(pair[0])
    assert len(recorder.draws) == 1
    np.testing.assert_allclose(replay(pair[1], recorder), value.numpy(), rtol=1e-5, atol=1e-6)


def test_torch_draws_the_same_again_in_float64() -> None:
    value, recorder = record(lambda: torch.randn(4))
    with Replayer(recorder.raw):
        again = torch.randn(4, dtype=torch.float64)
    assert torch.equal(again, value.double())


@pytest.mark.parametrize(
    ("port", "words"),
    [
        (lambda rngs: rngs.uniform((4,)), "torch drew normal here, the port uniform"),
        (lambda rngs: rngs.normal((5,)), "shape"),
        (lambda rngs: rngs.normal((4,)) + rngs.normal((4,)), "more often"),
        (lambda rngs: jnp.zeros(4), "torch draws 1 times, the port 0"),
    ],
    ids=["kind", "shape", "more", "fewer"],
)
def test_draws_that_do_not_fit_are_refused(port: Any, words: str) -> None:
    _, recorder = record(lambda: torch.randn(4))
    with pytest.raises(ReplayMismatch, match=words):
        replay(port, recorder)


def test_afterwards_jax_draws_by_itself_again() -> None:
    before = jax.random.normal(KEY, (3,))
    _, recorder = record(lambda: torch.randn(3))
    replay(lambda rngs: rngs.normal((3,)), recorder)
    np.testing.assert_array_equal(jax.random.normal(KEY, (3,)), before)
    assert nnx.Rngs(0).normal((2,)).shape == (2,)


def test_a_draw_without_a_counterpart_is_named() -> None:
    _, recorder = record(lambda: torch.nn.functional.rrelu(torch.randn(4), training=True))
    assert recorder.unknown == ["rrelu_with_noise"]
