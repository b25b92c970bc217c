"""numpy arrays in attributes of modules."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from migrator.convert import convert_source
from tests.convert.tools import check, convert, loaded, rules_of

MODEL = """
import numpy as np


def grid(ratios, n):
    out = np.zeros((n, len(ratios)))
    out[:, :] = np.sqrt(ratios)
    return out.astype(np.float32)


class Anchors(nn.Module):
    def __init__(self, ratios=None):
        super().__init__()
        if ratios is None:
            self.ratios = np.array([0.5, 1.0, 2.0, 4.0])
        self.mean = np.arange(4.0, dtype=np.float32)
        {more}

    def forward(self, x):
        {use}
        return x * torch.from_numpy(self.mean)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Anchors()

    def forward(self, x):
        return self.a(x)
"""


@pytest.mark.parametrize(
    ("use", "kept"),
    [
        ("x = x + torch.from_numpy(grid(self.ratios, 3))", True),
        ("x = x * float(max(self.ratios[1:]))", True),
        ("x = x + sum(float(r) for r in self.ratios)", True),
        ("x = x * torch.tensor(self.ratios, dtype=torch.float32)", False),
    ],
)
def test_numpy_may_work_with_them_under_jit(use: str, kept: bool) -> None:
    code = check(MODEL.format(use=use, more=""))
    assert ("self.ratios = HostArray(" in code) is kept
    assert "self.mean = np.arange(" in code


def test_one_that_is_written_is_left() -> None:
    code = check(MODEL.format(use="n = len(self.mean)", more="self.mean[1:] += 1"))
    assert "HostArray" not in code


@pytest.mark.parametrize(
    ("made", "shares"),
    [
        ("torch.from_numpy(a)", True),
        ("torch.from_numpy(a.copy())", False),
        ("torch.tensor(a)", False),
    ],
)
def test_a_write_to_an_array_that_a_tensor_was_made_of(made: str, shares: bool) -> None:
    source = f"def f(n: int):\n    a = np.ones(n)\n    a[1] = 2\n    t = {made}\n    a[0] = 5\n    return t.sum()\n"
    found = [
        f.rule for f in convert_source("import numpy as np\nimport torch\n\n\n" + source).findings
    ]
    assert ("MUT001" in found) is shares


@pytest.mark.parametrize(
    "write",
    [
        "a += 1",
        "a[0] += 1",
        "a.sort()",
        "a.fill(3)",
        "np.add(a, 1, out=a)",
        "np.random.shuffle(a)",
        "b = a.reshape(-1)\n    b *= 2",
    ],
)
@pytest.mark.parametrize(
    ("made", "shares"),
    [("torch.as_tensor(a)", True), ("torch.from_numpy(a)", True), ("torch.tensor(a)", False)],
)
def test_every_way_to_write_to_an_array_that_a_tensor_was_made_of(
    write: str, made: str, shares: bool
) -> None:
    source = f"import numpy as np\n\n\ndef f(n: int):\n    a = np.ones(n)\n    t = {made}\n"
    source += f"    {write}\n    return t.sum() + a.sum()\n"
    assert ("MUT001" in rules_of(source)) is shares


@pytest.mark.parametrize(
    "source",
    [
        "def f(x: torch.Tensor):\n    y = x * 2\n    a = y.detach().cpu().numpy()\n    a[0] = 1\n    return y",
        "def f(x):\n    y = x * 2\n    a = y.numpy()\n    a += 1\n    return y",
        "def g(x: torch.Tensor):\n    a = x.numpy()\n    a += 1\n    return a\n\n\n"
        "def f(x: torch.Tensor):\n    g(x)\n    return x",
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.register_buffer('b', torch.ones(3))\n\n"
        "    def f(self):\n        a = self.b.numpy()\n        a[0] = 2",
    ],
)
def test_a_tensor_sees_what_is_written_to_its_array(source: str) -> None:
    assert set(rules_of(source + "\n")) & {"MUT001", "MUT003"}


def test_an_array_of_a_tensor_may_be_written() -> None:
    """What numpy gets of a JAX array may only be read: one that is written is a copy."""
    source = (
        "import numpy as np\n\n\ndef f(x: torch.Tensor):\n    a = (x * 2).numpy().transpose(1, 0)\n"
        "    a[0] = 1\n    a -= a.mean()\n    c = x.numpy()\n    return a, c + 1\n"
    )
    result = convert(source)
    assert result.complete, result.findings
    assert "c = np.asarray(x)" in result.code
    scope: dict = {"torch": torch}
    exec(source, scope)
    x = torch.arange(6.0).reshape(2, 3)
    theirs = scope["f"](x.clone())
    exec(result.code, scope)
    for ours, want in zip(scope["f"](x.numpy()), theirs, strict=True):
        np.testing.assert_array_equal(ours, want)


def test_what_is_computed_of_arrays_of_numpy_is_one() -> None:
    """``np.arange(n) / n``, with which a helper of the forward pass computes in numpy."""
    check("""import numpy as np

class M(nn.Module):
    def __init__(self, n=4):
        super().__init__()
        self.fc = nn.Linear(4, 6)
        self.t = np.arange(n) / n

    def season(self, thetas, t):
        s = torch.tensor(np.array([np.cos(2 * np.pi * i * t) for i in range(6)])).float()
        return thetas.mm(s)

    def forward(self, x):
        return self.season(self.fc(x), self.t)
""")


MAYBE = """
import numpy as np
import torch
from torch import nn

class M(nn.Module):
    def __init__(self, t=None, c=True):
        super().__init__()
        self.l = nn.Linear(4, 4)
        if t is None:
            t = np.array([2, 3])
        self.t = t
        self.b = np.array([2, 3]) if c else None
        self.e = [np.array([1, 2]), np.array([3])]
        self.f = {'a': np.array([2., 3.])}
        self.k = t if t is not None else np.array([1, 2])
        ts = []
        for i in range(3):
            ts.append(np.arange(4) * i)
        self.i = ts
        self.j = []
        for i in range(3):
            self.j.append(np.arange(4) + i)
        self.w = np.ones(4)
    def forward(self, x):
        y = self.l(x).repeat(1, int(self.t[0]))
        if self.b is not None and self.b[0] > 1:
            y = y + float(self.b[1])
        y = y * int(self.e[0][1]) + np.log10(self.f['a'])[0] * len(self.i)
        for a in self.i:
            y = y + int(a[1])
        y = y + int(self.j[2][1]) + int(self.k[0])
        return y[:, :4] * torch.from_numpy(self.w).float()
"""


def test_what_may_be_an_array_or_hold_some() -> None:
    check(MAYBE)


AGAIN = """
import numpy as np

class Base(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.scale = k

class M(Base):
    def __init__(self, k=4):
        super().__init__(k)
        self.k = k
        self.k = np.ones(k, dtype=np.float32)
        self.late = None
        self.late = np.arange(k)
        self.grown = []
        self.grown.append(2)
        self.grown = np.array(self.grown)
        self.scale = np.full(k, 2.0, dtype=np.float32)

    def forward(self, x):
        x = x * torch.from_numpy(self.k) + torch.tensor(self.late) * torch.from_numpy(self.scale)
        return x * int(self.grown[0])
"""


def test_arrays_under_a_name_that_held_a_number_a_list_or_nothing() -> None:
    code = check(AGAIN)
    assert "self.k = nnx.data(np.ones(k" in code
    assert "self.grown = HostArray(np.array(self.grown.value))" in code


OF_NUMPY = """
import numpy as np
from typing import Optional


def check(y: np.ndarray, w: Optional[np.ndarray]):
    if w is not None and y.shape != w.shape:
        raise ValueError("weights of another shape")


def loss(y: np.ndarray, z: np.ndarray, w: Optional[np.ndarray] = None):
    check(y, w)
    d = np.abs(y - z)
    return np.average(d[~np.isnan(d)], weights=None if w is None else w[~np.isnan(d)]), y.size
"""


def test_a_hint_of_numpy_is_no_tensor_for_having_a_shape() -> None:
    theirs, ours, code = loaded(OF_NUMPY)
    assert "np.abs(y - z)" in code
    y, z = np.array([1.0, np.nan, 3.0]), np.array([0.5, 1.0, 5.0])
    for w in (None, np.array([1.0, 2.0, 3.0])):
        assert theirs["loss"](y, z, w) == ours["loss"](y, z, w)


def test_a_hint_of_numpy_is_a_tensor_where_it_is_used_as_one() -> None:
    source = "import numpy as np\n\n\ndef f(y: np.ndarray):\n    return np.exp(y.unsqueeze(0))\n"
    assert rules_of(source) == ["TRC007"]


HINTED = """
import numpy as np


def spread(y: np.ndarray):
    return y.std(), y.repeat(2), y.transpose(1, 0), y.transpose((1, 0))


def column(y: np.ndarray):
    return y[:, 0].var()


def channels(image):
    return torch.from_numpy(image.transpose(2, 0, 1))


def stood_up(image):
    return image.transpose((1, 0, 2))
"""


def test_what_a_hint_of_numpy_says_is_numpys() -> None:
    """``repeat`` and ``std`` of arrays are others than those of tensors; torch's ``transpose`` takes two axes."""
    theirs, ours, code = loaded(HINTED)
    y, image = np.arange(6.0).reshape(3, 2), np.arange(24.0).reshape(2, 3, 4)
    for name, given in {"spread": y, "column": y, "stood_up": image}.items():
        a, b = theirs[name](given), ours[name](given)
        for one, other in zip(a, b, strict=True) if isinstance(a, tuple) else [(a, b)]:
            np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(theirs["channels"](image).numpy(), ours["channels"](image))
    assert "jnp.asarray(image.transpose(2, 0, 1))" in code


HELPERS = """
import numpy as np


def clipped(boxes, shape):
    boxes[:, 0::4] = np.maximum(np.minimum(boxes[:, 0::4], shape[1] - 1), 0)
    boxes[:, 1::4] += 2
    return boxes


def overlaps(a, b):
    low = np.maximum(a[:, None, :2], b[:, :2])
    high = np.minimum(a[:, None, 2:4], b[..., 2:])
    return np.prod(high - low, axis=2) * (low < high).all(axis=2)


def suppressed(found, threshold):
    left, order, kept = found[:, 0], found[:, 4].argsort()[::-1], []
    while order.size > 0:
        kept.append(int(order[0]))
        distance = np.abs(left[order[0]] - left[order[1:]])
        order = order[np.where(distance > threshold)[0] + 1]
    return kept
"""


def test_functions_that_name_nothing_of_torch_work_on_arrays_of_numpy() -> None:
    theirs, ours, _ = loaded(HELPERS)
    boxes = np.random.default_rng(0).normal(size=(5, 8)).astype(np.float32)
    both = boxes.copy(), boxes.copy()
    for name, args in (
        ("clipped", ((3, 4),)),
        ("overlaps", (boxes[:3, :4],)),
        ("suppressed", (1.0,)),
    ):
        made = [one[name](given, *args) for one, given in zip((theirs, ours), both, strict=True)]
        np.testing.assert_array_equal(*made)
    np.testing.assert_array_equal(*both)


def test_they_are_told_where_they_are_handed_tensors() -> None:
    code = (
        HELPERS
        + "\n\nclass M(nn.Module):\n    def forward(self, x):\n        return overlaps(x, x)\n"
    )
    assert "TRC007" in rules_of(code)
    assert "TRC007" in rules_of(HELPERS.replace("(a, b)", "(a: torch.Tensor, b: torch.Tensor)"))
