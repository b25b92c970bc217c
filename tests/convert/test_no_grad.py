"""What leaves code under ``torch.no_grad()``: arrays without a gradient, anything else as it is."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.test_reentrant_checkpoints import same_gradients
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


SCOPES = {
    "the inner one tells": (
        "def f(x, c, d):\n    with torch.set_grad_enabled(c):\n        with torch.set_grad_enabled(d):\n"
        "            y = x * 2\n        z = x * 3\n    return (y + z + x).sum()\n"
    ),
    "on again": (
        "def f(x, c, d):\n    with torch.no_grad():\n        z = x * 3\n        with torch.enable_grad():\n"
        "            y = x * 2\n        z = z + x\n    return (y + z).sum()\n"
    ),
    "on again by a flag": (
        "def f(x, c, d):\n    with torch.no_grad():\n        with torch.set_grad_enabled(c):\n"
        "            y = x * 2\n    return y.sum() + (x * x).sum()\n"
    ),
    "one context or another": (
        "def f(x, c, d):\n    context = torch.no_grad if c else nullcontext\n    with context():\n        y = x * 2\n"
        "    kept = nullcontext() if d else torch.inference_mode()\n    with kept:\n        z = x * 3\n"
        "    with context():\n        z = z + x * x\n    return (y + z + x).sum()\n"
    ),
    "either, where it is entered": (
        "def f(x, c, d):\n    with torch.no_grad() if not c else nullcontext():\n        y = x * 2\n"
        "        with (torch.no_grad if d else nullcontext)():\n            y = y + x * 3\n    return (y + x).sum()\n"
    ),
    "either, without gradients": (
        "def f(x, c, d):\n    context = torch.no_grad if c else nullcontext\n    with torch.no_grad():\n"
        "        with context():\n            y = x * 2\n    return (y + x).sum()\n"
    ),
    "of a module": (
        "class O:\n    def __init__(self, c):\n        self.frozen = c\n\n    def run(self, x):\n"
        "        with torch.set_grad_enabled(not self.frozen):\n            self.frozen = False\n            x = x * 2\n"
        "        return x\n\n\ndef f(x, c, d):\n    return (O(c).run(x) + x).sum()\n"
    ),
}


@pytest.mark.parametrize("source", SCOPES.values(), ids=SCOPES)
def test_what_switches_gradients_within_what_does(source: str) -> None:
    result = convert("from contextlib import nullcontext\n" + source)
    assert result.complete, result.findings
    names: dict[str, Any] = {}
    exec(result.code, names)
    theirs: dict[str, Any] = {}
    exec("import torch\nfrom contextlib import nullcontext\n" + source, theirs)
    for c in (True, False):
        for d in (True, False):
            x = torch.arange(1.0, 4.0, requires_grad=True)
            value = theirs["f"](x, c, d)
            value.backward()
            found, grad = jax.value_and_grad(lambda x: names["f"](x, c, d))(jnp.arange(1.0, 4.0))  # noqa: B023
            np.testing.assert_allclose(found, value.detach())
            np.testing.assert_allclose(grad, x.grad)


@pytest.mark.parametrize(
    "lines",
    [
        "context = torch.no_grad if c else nullcontext\n    print(context)\n    with context():\n        x = x * 2\n",
        "context = torch.no_grad if c else nullcontext\n    context = nullcontext\n    with context():\n        x = x * 2\n",
        "context = torch.no_grad if x.sum() > 0 else nullcontext\n    with context():\n        x = x * 2\n",
        "context = torch.no_grad if c else nullcontext\n    with context() as it:\n        x = x * 2\n",
    ],
)
def test_contexts_that_are_more_than_entered_are_findings(lines: str) -> None:
    source = "from contextlib import nullcontext\ndef f(x: torch.Tensor, c):\n    "
    assert not convert(source + lines + "    return x\n").complete


def test_gradients_that_a_function_without_them_switches_on() -> None:
    for scope in ("torch.enable_grad()", "torch.set_grad_enabled(c)"):
        source = (
            f"@torch.no_grad()\ndef f(x, c):\n    with {scope}:\n        y = x * 2\n    return y\n"
        )
        assert not convert(source).complete


def test_one_of_two_values_with_a_hint_is_no_context() -> None:
    made = convert(
        "def f(x: torch.Tensor, n: int):\n    m: int = 2 if n > 3 else n\n    return x * m\n"
    )
    assert made.complete, made.findings


KEPT = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = nn.Linear(4, 4)
        self.l = nn.Linear(4, 4)
        self.none = None
        self.held = []

    @torch.no_grad()
    def keep(self, y):
        self.last = self.l(y)

    @torch.no_grad()
    def collect(self, y, outs):
        outs.append(self.l(y))

    def forward(self, x):
        y = self.s(x)
        outs, table = [], {}
        if self.training:
            with torch.no_grad():
                LINES
        return (READ) * y
"""


@pytest.mark.parametrize(
    ("lines", "read"),
    [
        ("self.last = self.l(y)", "self.last"),
        ("self.last = self.l(y) if x.ndim == 2 else y", "self.last"),
        ("self.last = [self.l(y), y]", "self.last[0] + self.last[1]"),
        ("self.last = {'a': self.l(y)}", "self.last['a']"),
        ("self.last: torch.Tensor = self.l(y)", "self.last"),
        ("setattr(self, 'last', self.l(y))", "self.last"),
        ("self.none = self.l(y)", "self.none"),
        ("self.last = y", "self.last"),
        ("self.keep(y)", "self.last"),
        ("self.collect(y, outs)", "outs[0]"),
        ("self.held.append(self.l(y))", "self.held.pop()"),
        ("outs.insert(0, self.l(y))", "outs[0]"),
        ("outs += [self.l(y), y]", "outs[0] + outs[1]"),
        ("table.update(a=self.l(y), b=y)", "table['a'] + table['b']"),
        ("table.setdefault('a', self.l(y))", "table['a']"),
        ("table['a'] = self.l(y)", "table['a']"),
        ("if (z := self.l(y)) is not None: pass", "z"),
        ("for z in [self.l(y)]: pass", "z"),
    ],
)
def test_what_is_kept_from_code_without_gradients_has_none(lines: str, read: str) -> None:
    source = KEPT.replace("LINES", lines.replace(": pass", ":\n                    pass"))
    if "z" in read:
        source = source.replace("        outs, table = [], {}\n", "        z = y\n")
    model = same_gradients(source.replace("READ", read))
    assert model.l.weight.grad is None
