"""``if i == layer:`` in a loop over the layers, with ``layer=None`` by default: a number of Python's, and no tensor."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.convert.tools import both, rules_of

SOURCE = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x, layer=None):
        x, found = self.features(x, layer)
        if layer is None:
            x = x * 2
        return x, found

    def features(self, x, place=DEFAULT):
        found, kept = [], None
        for i, one in LOOP:
            x = one(x)
            if place is not None:
                found.append(x)
            if TEST:
                kept = x
                break
        if kept is not None:
            x = kept
        return x, found
"""


def source(test: str, loop: str = "enumerate(self.layers)", default: str = "None") -> str:
    return SOURCE.replace("TEST", test).replace("LOOP", loop).replace("DEFAULT", default)


@pytest.mark.parametrize(
    "test",
    [
        *("i == place", "place == i", "not i != place"),
        *("place == i + 1", "i - 1 == place", "place is not None and place == 1 + i - 2"),
    ],
)
@pytest.mark.parametrize("place", [None, 0, 1, 2])
def test_the_layer_to_stop_at(test: str, place: int | None) -> None:
    model, port, _ = both(source(test))
    x = torch.linspace(-1, 1, 8).reshape(2, 4)
    want, found = model(x, place)
    got, ours = port(jnp.asarray(x.numpy()), place)
    np.testing.assert_allclose(got, want.detach(), atol=1e-6)
    assert len(ours) == len(found)


@pytest.mark.parametrize(
    ("test", "default"),
    [
        ("i == place.sum()", "None"),  # a tensor's method
        ("x.sum() == place", "None"),
        ("i == x.argmax()", "None"),
        ("i + x.sum() == place", "None"),
        ("i + place == 2", "None"),
    ],
)
def test_a_tensor_is_a_finding(test: str, default: str) -> None:
    assert "DYN002" in rules_of(source(test, default=default))


NAMED = source("count == place").replace(
    "x = one(x)\n", "count = i + 1\n            x = one(x)\n", 1
)


def test_a_name_for_the_place_after() -> None:
    assert "DYN002" not in rules_of(NAMED)


@pytest.mark.parametrize(
    "line", ["count += x.sum()", "count = x.sum()", "(count := x.sum())", "(count, _), y = x, 1"]
)
def test_a_name_that_is_a_tensor_as_well(line: str) -> None:
    made = NAMED.replace("x = one(x)\n", f"x = one(x)\n            {line}\n")
    assert "DYN002" in rules_of(made)


def test_a_tensor_that_is_handed_on_is_a_finding() -> None:
    made = source("i == place").replace("self.features(x, layer)", "self.features(x, x.argmax())")
    assert "DYN002" in rules_of(made)


def test_an_argument_without_a_default_may_be_a_tensor() -> None:
    made = source("i == place").replace("layer=None", "layer").replace("place=None", "place")
    assert "DYN002" in rules_of(made)


FILLED = """
def init(module):
    def normal_(data):
        data.copy_(COPY)

    if isinstance(module, nn.Linear):
        normal_(module.weight.data)
        module.bias.data.zero_()


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(50, 40)
        self.apply(init)

    def forward(self, x):
        return self.l(x)
"""


@pytest.mark.parametrize(
    "copy",
    [
        "data.cpu().normal_(mean=3.0, std=0.02).to(data.device)",
        "data.clone().normal_(3.0, 0.02)",
        "data.cpu().normal_(mean=3.0, std=0.02).to(data)",
    ],
)
def test_what_takes_over_its_filled_copy_is_filled(copy: str) -> None:
    _, port, _ = both(FILLED.replace("COPY", copy))
    from flax import nnx

    built = type(port)(rngs=nnx.Rngs(0)).l
    assert abs(float(built.kernel.mean()) - 3) < 0.01
    assert abs(float(built.kernel.std()) - 0.02) < 0.002
    assert not np.asarray(built.bias[...]).any()


@pytest.mark.parametrize(
    "copy",
    [
        "other.cpu().normal_(mean=3.0, std=0.02).to(data.device)",
        "data.cpu().normal_(mean=3.0, std=0.02).to(torch.float16)",
        "data.half().normal_(3.0)",
    ],
)
def test_what_is_filled_otherwise_is_left(copy: str) -> None:
    from migrator.source import Source

    text = "other = None\n" + FILLED.replace("COPY", copy)
    assert f"data.copy_({copy})" in Source(text).tree.code
