"""What leaves code under ``torch.no_grad()``: arrays without a gradient, anything else as it is."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import convert, function

NET = "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(4, 2)\n\n"
NET += "    def forward(self, x):\n        return self.fc(x)\n\n\n"


def _run(source: str) -> dict[str, Any]:
    result = convert(NET + source)
    assert result.complete, result.findings
    names: dict[str, Any] = {}
    exec(result.code, names)
    return names


@pytest.mark.parametrize(
    ("lines", "want"),
    [
        ("return {'mean': model(x).mean(), 'name': 'run', 'n': len(x)}", ["name", "run"]),
        ("seen = ['a']\n    both = seen, model(x)\n    return both", ["a"]),
        (
            "stats = {'n': 0}\n    stats['n'] += 1\n    stats['by'] = 'hand'\n    return stats",
            ["by"],
        ),
        ("return model(x).argmax(1).tolist()", []),
        ("return x.shape, 'name', model(x)", ["name"]),
    ],
)
def test_strings_and_numbers_are_returned_as_they_are(lines: str, want: list[str]) -> None:
    source = "@torch.no_grad()\ndef main(model, x):\n    " + lines + "\n"
    names = _run(source)
    found = names["main"](names["M"](rngs=nnx.Rngs(0)), jnp.ones((3, 4)))
    assert "TypedInt" not in str(found)
    assert all(word in str(found) for word in want)


def test_an_object_stays_the_same_one() -> None:
    names = _run(
        "@torch.no_grad()\ndef kept(model, log):\n    model(torch.ones(1, 4))\n    return log\n"
    )
    log = {"a": ["b"]}
    assert names["kept"](names["M"](rngs=nnx.Rngs(0)), log) is log


def test_what_a_list_gathers_has_no_gradient() -> None:
    names = _run(
        "def loss(model, x):\n    found = []\n    with torch.no_grad():\n        for _ in range(2):\n"
        "            found.append(model(x))\n    return (torch.stack(found) * x.sum()).sum()\n"
    )
    model = names["M"](rngs=nnx.Rngs(0))
    grads = nnx.grad(lambda m: names["loss"](m, jnp.ones((3, 4))))(model)
    assert all(not jnp.any(leaf) for leaf in jax.tree.leaves(grads))


def test_arrays_that_are_known_are_stopped_in_one_piece() -> None:
    made = function("with torch.no_grad():", "    a = x * y", "return a")
    assert "a = jax.lax.stop_gradient(x * y)" in made


def test_a_gradient_that_is_switched_on_by_a_flag() -> None:
    names = _run(
        "def loss(model, x, labels, tune):\n    with torch.set_grad_enabled(tune):\n        y = model(x)\n"
        "        _, found = torch.max(y, 1)\n    return y.sum() + x.sum(), torch.sum(found == labels.data)\n"
    )
    model, x = names["M"](rngs=nnx.Rngs(0)), jnp.ones((3, 4))
    for tune in (True, False):
        grads = nnx.grad(lambda m: names["loss"](m, x, jnp.ones(3, int), tune)[0])(model)  # noqa: B023
        assert any(bool(jnp.any(leaf)) for leaf in jax.tree.leaves(grads)) is tune
    assert names["loss"](model, x, jnp.argmax(model(x), 1), False)[1] == 3


def test_a_flag_that_changes_within_is_a_finding() -> None:
    result = convert(
        "def f(x: torch.Tensor, on):\n    with torch.set_grad_enabled(on):\n        on = False\n"
        "        y = x * 2\n    return y\n"
    )
    assert not result.complete


def test_a_loop_that_evaluates_a_model_is_no_part_of_it() -> None:
    source = (
        "def test(model, batches):\n    model.eval()\n    right = 0\n    for x, y in batches:\n"
    )
    source += "        right += (model(x).argmax(1) == y).sum().item()\n    return right\n"
    names = _run(source)
    model = names["M"](rngs=nnx.Rngs(0))
    assert names["test"](model, [(jnp.ones((3, 4)), model(jnp.ones((3, 4))).argmax(1))] * 2) == 6


def test_a_chained_assignment_is_one_after_the_other() -> None:
    made = function("y[0] = last = x.sum()", "return y, last")
    assert made.splitlines()[:2] == ["last = x.sum()", "y = y.at[0].set(last)"]
    assert "MUT002" in [
        f.rule for f in convert("def f(x: torch.Tensor, i):\n    x[i] = i = 3\n").findings
    ]


def test_what_is_added_under_no_grad_is_a_constant() -> None:
    source = (
        "def f(x: torch.Tensor, y: torch.Tensor):\n    z = x * 2\n    with torch.no_grad():\n"
        "        z += y * 3\n        z -= 1\n    return (z * x).sum()\n"
    )
    names = _run(source)
    x, y = torch.arange(3.0, requires_grad=True), torch.ones(3)
    theirs: dict[str, Any] = {}
    exec("import torch\n" + source, theirs)
    theirs["f"](x, y).backward()
    found = jax.grad(names["f"], argnums=(0, 1))(jnp.arange(3.0), jnp.ones(3))
    np.testing.assert_allclose(found[0], x.grad)
    assert not found[1].any()
    assert not convert(source.replace("+=", "*=")).complete
