"""What torch's databases leave out computes what torch computes too: see ``beyond``.

An eighth runs by default, another one each day; ``BEYOND_SEED=3`` picks one, ``-m sweep`` runs the others.
"""

from __future__ import annotations

import ast
import datetime
import os
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from migrator import convert_source
from migrator.weights import load_state_dict
from tests.rules.agree import agree, array, leaves
from tests.rules.beyond import INITIALISERS, LAYERS, NO_GRADIENT, RANDOM, STATIC, VALUES

SEED = int(os.environ.get("BEYOND_SEED", datetime.date.today().toordinal()))
HEAD = "import math\n\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n"
ARRAYS: dict[str, np.ndarray] = {
    "x": array((3, 4), 1),
    "y": array((3, 4), 2),
    "v": array((6,), 3),
    "rows": array((6, 8), 4),
    "seq": array((2, 4, 10), 5),
    "img": array((2, 4, 6, 6), 6),
    "vol": array((1, 2, 4, 6, 4), 7),
    "many": array((40, 500), 8),
    "i": np.array([[3, 0, 12, 5], [7, 2, 9, 1], [4, 6, 8, 30]]),
    "j": np.array([[2, 1, 4, 5], [3, 2, 6, 1], [1, 3, 2, 7]]),
    "k": np.array([4, 0, 2, 2, 1, 3]),
    "lengths": np.array([6, 4, 1]),
    "mask": array((3, 4), 9) > 0,
    "other": array((3, 4), 10) > 0,
    "c": (array((3, 4), 11) + 1j * array((3, 4), 12)).astype(np.complex64),
}
TYPES = {"f": "torch.Tensor", "i": "torch.LongTensor", "b": "torch.BoolTensor", "c": "torch.Tensor"}


@pytest.fixture(autouse=True)
def _forget_programs() -> Iterator[None]:
    yield
    jax.clear_caches()


def named(expression: str) -> list[str]:
    """The arrays that an expression names."""
    found = (n.id for n in ast.walk(ast.parse(f"f({expression})")) if isinstance(n, ast.Name))
    return [name for name in dict.fromkeys(found) if name in ARRAYS]


def arguments(expression: str) -> str:
    """The arrays of an expression as annotated arguments."""
    return ", ".join(f"{name}: {TYPES[ARRAYS[name].dtype.kind]}" for name in named(expression))


def function_of(expression: str) -> str:
    return f"def f({arguments(expression)}):\n    return {expression}\n"


def layer_of(constructor: str, called_with: str) -> str:
    return (
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"        self.layer = {constructor}\n\n"
        f"    def forward(self, {arguments(called_with)}):\n        return self.layer({called_with})\n"
    )


def initialised(expression: str) -> str:
    return (
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.layer = nn.Linear(200, 100)\n"
        f"        {expression.replace('(w', '(self.layer.weight').replace('(b', '(self.layer.bias')}\n"
    )


def both(text: str, name: str) -> tuple[Any, Any]:
    """What the source defines under the name, and what its conversion does, which is complete."""
    result = convert_source(HEAD + text)
    assert result.complete, [f"{f.rule} {f.message}" for f in result.findings]
    original: dict[str, Any] = {}
    port: dict[str, Any] = {}
    exec(compile(HEAD + text, "<original>", "exec"), original)
    exec(compile(result.code, "<converted>", "exec"), port)
    return original[name], port[name]


def cases(table: dict[str, tuple[Any, ...]]) -> list[Any]:
    """All uses of a table: an eighth by default, another one each day, the rest in the sweep."""
    found = []
    for use in (use for uses in table.values() for use in uses):
        values = use if isinstance(use, tuple) else (use,)
        later = zlib.crc32(repr(use).encode()) % 8 != SEED % 8
        found.append(pytest.param(*values, marks=[pytest.mark.sweep] if later else []))
    return found


@pytest.mark.parametrize("expression", cases(VALUES))
def test_values(expression: str) -> None:
    reference, function = both(function_of(expression), "f")
    given = [ARRAYS[name] for name in named(expression)]
    floats = any(t.is_floating_point() for t in leaves(reference(*map(torch.tensor, given))))
    agree(reference, function, *given, gradients=floats and expression not in NO_GRADIENT)


@pytest.mark.parametrize("expression", cases(STATIC))
def test_python_values(expression: str) -> None:
    reference, function = both(function_of(expression), "f")
    given = [ARRAYS[name] for name in named(expression)]
    want, got = reference(*map(torch.tensor, given)), function(*map(jnp.asarray, given))
    assert got == want
    assert isinstance(got, type(want)) or isinstance(want, torch.Size)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(("constructor", "called_with"), cases(LAYERS))
def test_layers(constructor: str, called_with: str, training: bool) -> None:
    """Outputs, and gradients by the inputs; those of parameters are the module database's."""
    torch_class, port_class = both(layer_of(constructor, called_with), "M")
    given = [ARRAYS[name] for name in named(called_with)]
    module = torch_class().train(training)
    port = port_class(**({"rngs": nnx.Rngs(0)} if takes_rngs(port_class) else {}))
    module(*map(torch.tensor, given))
    port(*map(jnp.asarray, given))
    load_state_dict(port, module.state_dict())
    port.train() if training else port.eval()
    wide = torch_class()
    wide(*map(torch.tensor, given))
    wide.load_state_dict(module.state_dict())
    wide = wide.double().train(training)

    def reference(*tensors: torch.Tensor) -> Any:
        return (wide if tensors[0].dtype == torch.float64 else module)(*tensors)

    graph, state = nnx.split(port)
    agree(reference, lambda *arrays: nnx.merge(graph, state)(*arrays), *given)


def takes_rngs(owner: Callable[..., Any]) -> bool:
    return "rngs" in owner.__init__.__code__.co_varnames  # type: ignore[misc]


def summary(value: Any) -> np.ndarray:
    """Moments and quantiles of many draws."""
    flat = np.asarray(value, np.float64).ravel()
    return np.array(
        [flat.mean(), flat.std(), *np.quantile(flat, [0, 0.1, 0.25, 0.5, 0.75, 0.9, 1])]
    )


def alike(want: torch.Tensor, got: Any, loose: float) -> None:
    assert tuple(got.shape) == tuple(want.shape)
    assert str(got.dtype).replace("int32", "int64") == str(want.dtype).removeprefix("torch.")
    a, b = summary(want.detach()), summary(got)
    scale = max(a[1], 1e-3)
    np.testing.assert_allclose(b[:2], a[:2], atol=loose * scale, rtol=loose)
    np.testing.assert_allclose(b[3:-1], a[3:-1], atol=2 * loose * scale, rtol=loose)
    np.testing.assert_allclose(b[[2, -1]], a[[2, -1]], atol=1.2 * scale, rtol=0.2)


@pytest.mark.parametrize("expression", cases(RANDOM))
def test_random(expression: str) -> None:
    """Same shape and dtype, and over 20,000 draws the same distribution; other numbers from another key."""
    reference, function = both(function_of(expression), "f")
    given = [ARRAYS[name] for name in named(expression)]
    torch.manual_seed(0)
    want = reference(*map(torch.tensor, given))
    first, second = (function(*map(jnp.asarray, given), rngs=nnx.Rngs(seed)) for seed in (0, 1))
    alike(want, first, 0.05)
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("expression", cases(INITIALISERS))
def test_initialisers(expression: str) -> None:
    """The weight and the bias of a layer after a call of ``nn.init``."""
    torch_class, port_class = both(initialised(expression), "M")
    torch.manual_seed(0)
    module, port = torch_class(), port_class(rngs=nnx.Rngs(0))
    alike(module.layer.weight, port.layer.kernel[...].T, 0.05)
    alike(module.layer.bias, port.layer.bias[...], 0.3)
