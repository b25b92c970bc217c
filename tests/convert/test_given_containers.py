"""Lists and dicts of a module that hold tensors only at run time: what a constructor is handed, what the forward pass fills."""

from __future__ import annotations

import inspect
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import check, loaded, rules_of

GIVEN = """
class M(nn.Module):
    def __init__(self, PARAMS):
        super().__init__()
        self.n = 2
        self.ts = KEPT

    def forward(self, x):
        LINES
"""
ONE, TWO = torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.full((4,), 2.0)
CASES: dict[str, tuple[str, str, str, tuple[Any, ...], dict[str, Any]]] = {
    "a loop": ("ts", "ts", "for t in self.ts: x = x * t; return x", ([ONE, TWO],), {}),
    "of numbers": ("ts", "ts", "for t in self.ts: x = x * t; return x", ([2.0, 3],), {}),
    "a tuple": ("ts", "ts", "for t in self.ts: x = x * t; return x", ((ONE, TWO),), {}),
    "starred": ("*ts", "ts", "for t in self.ts: x = x * t; return x", (ONE, TWO), {}),
    "keywords": (
        "**ts",
        "ts",
        "for t in self.ts.values(): x = x * t; return x",
        (),
        {"a": ONE, "b": TWO},
    ),
    "a dict": ("ts", "ts", "return x * self.ts['a'] + self.ts['b']", ({"a": ONE, "b": TWO},), {}),
    "joined": (
        "ts=None",
        "ts",
        "new = self.ts + [torch.tanh(x)]; for t in new: x = x + t; return x",
        ([ONE, TWO],),
        {},
    ),
    "matrices": (
        "ts",
        "ts",
        "return sum(x @ t for i, t in enumerate(self.ts))",
        ([torch.eye(4), torch.ones(4, 4)],),
        {},
    ),
    "one or several": (
        "ts",
        "ts if isinstance(ts, list) else [ts]",
        "for t in self.ts: x = x * t; return x",
        (ONE,),
        {},
    ),
}


def _lines(text: str) -> str:
    made = []
    for line in text.split("; "):
        head, colon, rest = line.partition(": ")
        made.append(f"{head}:\n            {rest}" if colon and head.startswith("for") else line)
    return "\n        ".join(made)


@pytest.mark.parametrize("case", CASES)
def test_containers_that_a_constructor_is_handed(case: str) -> None:
    params, kept, lines, args, named = CASES[case]
    source = GIVEN.replace("PARAMS", params).replace("KEPT", kept).replace("LINES", _lines(lines))
    theirs, ours, _ = loaded(source)

    def as_array(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return jnp.asarray(value.numpy())
        if isinstance(value, dict):
            return {key: as_array(one) for key, one in value.items()}
        return type(value)(map(as_array, value)) if isinstance(value, (list, tuple)) else value

    x = torch.linspace(-1, 1, 8).reshape(2, 4)
    want = theirs["M"](*args, **named)(x)
    built = {key: as_array(one) for key, one in named.items()}
    if "rngs" in inspect.signature(ours["M"].__init__).parameters:
        built["rngs"] = nnx.Rngs(0)
    port = ours["M"](*map(as_array, args), **built)
    got = nnx.jit(lambda module, x: module(x))(port, jnp.asarray(x.numpy()))
    np.testing.assert_allclose(got, want, rtol=1e-5)


FILLED = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 3
        self.cs = MADE
        self.dec = nn.Linear(4, 4)

    def forward(self, x):
        for t in range(self.n):
            c = torch.zeros_like(x) if t == 0 else self.cs[t - 1]
            self.cs[t] = c + self.dec(x - torch.sigmoid(c))
        return torch.sigmoid(self.cs[-1]) * x
"""


@pytest.mark.parametrize(
    "made",
    [
        *("[0] * self.n", "[0.0, 0.0, 0.0]", "[0 for _ in range(self.n)]", "list(range(self.n))"),
        *("[None] * self.n", "[torch.zeros(1)] * self.n"),
    ],
)
def test_lists_of_numbers_that_get_tensors(made: str) -> None:
    check(FILLED.replace("MADE", made))


@pytest.mark.parametrize(
    ("made", "fills", "reads"),
    [
        ("[[0, 0] for _ in range(2)]", "self.cs[0][1] = x", "self.cs[0][1]"),
        ("[[] for _ in range(2)]", "self.cs[0].append(x)", "self.cs[0][0]"),
        ("[0, 0]", "self.cs[0] = x", "(self.cs[0] if torch.is_tensor(self.cs[1]) else x)"),
        ("[0, 0]", "self.cs[0] = x; kept = self.cs; kept[1] = x", "self.cs[0]"),
        ("[0, 0]", "self.cs = self.cs + [x * 2]", "self.cs[-1]"),
    ],
)
def test_lists_that_flax_does_not_look_into_are_refused(made: str, fills: str, reads: str) -> None:
    lines = "\n        ".join(fills.split("; "))
    source = FILLED[: FILLED.index("        for t in")].replace("MADE", made)
    assert "TRC003" in rules_of(f"{source}        {lines}\n        return self.dec({reads})\n")


TABLES = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        rng = np.random.RandomState(0)
        self.m = {}
        self.m[-1] = np.arange(4) if self.training else rng.permutation(4)
        for i in range(2):
            self.m[i] = rng.randint(int(np.min(self.m[i - 1])), 3, size=4)
        mask = self.m[-1][:, None] <= self.m[1][None, :]
        self.register_buffer("mask", torch.from_numpy(mask.astype(np.float32).T.copy()))
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return F.linear(x, self.fc.weight * self.mask, self.fc.bias)
"""


def test_arrays_that_numpy_draws_into_a_dict() -> None:
    check("import numpy as np\n\n\n" + TABLES)
