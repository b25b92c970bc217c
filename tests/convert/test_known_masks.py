"""Masks that hang on sizes alone, and selections that are given a shape of known sizes."""

from __future__ import annotations

import pytest
import torch

from tests.convert.tools import compare_gradients, loaded, rules_of, under

HEAD = "def f(x: torch.Tensor):\n    n = x.shape[0]\n"
X = torch.linspace(-1, 1.7, 16).reshape(4, 4)
LINES = {
    "the diagonal left out": "m = ~torch.eye(n, dtype=torch.bool); return x[m].view(n, -1)",
    "a triangle": "m = torch.triu(torch.ones(n, n), diagonal=1).bool(); return x[m]",
    "a triangle of the last axes": "m = torch.tril(torch.ones(n, n)).bool(); return x[None][:, m]",
    "in the index itself": "return x[torch.arange(n) > 1]",
    "under its name and another": "m = torch.arange(n) != 2; return torch.cat([x[m], x[~m]])",
    "labels of pairs": (
        "l = torch.cat([torch.arange(n // 2) for _ in range(2)]); l = (l[None] == l[:, None]).float();"
        "m = torch.eye(l.shape[0], dtype=torch.bool); l = l[~m].view(l.shape[0], -1);"
        "s = x[~m].view(n, -1); p = s[l.bool()].view(n, -1); q = s[~l.bool()].view(n, -1);"
        "return torch.cat([p, q], dim=1)"
    ),
    "read as numbers too": (
        "m = torch.eye(n) > 0; y = torch.where(m, x, -x).masked_fill(m, 2.0) + m * x; return y[m]"
    ),
    "as many as a shape says": "x = x.view(n, n); m = x > -0.3; return x[m].view(n, n - 1)",
    "as many, by a method": "m = x > -0.3; return x.masked_select(m).reshape(n, n - 1)",
    "as many of both": "m = x[:, :1] > -0.5; return x.masked_select(m).view((n - 1, n))",
    "the places off the diagonal": (
        "i = (torch.ones(n, n) - torch.eye(n)).nonzero().t(); i = i[0] * n + i[1]; return x.view(-1)[i]"
    ),
    "places along each axis": (
        "a = torch.ones(n, n) - torch.eye(n); i, j = torch.where(a > 0);"
        "p, q = a.triu().nonzero(as_tuple=True); return torch.cat([x[i] - x[j], x[p] * x[q]])"
    ),
    "places by other names": (
        "m = torch.arange(n) > 1; return x[torch.nonzero(m).squeeze(1)] * x[torch.argwhere(m)[:, 0]]"
    ),
    "numbers of sizes": (
        "s = torch.tensor(x.shape) - torch.tensor([2, 3]); h = (s / 2).int(); p = -torch.stack((h, h)).t().flatten();"
        "return F.pad(x, p.tolist())"
    ),
    "numbers by their own name": (
        "a = 2 ** torch.arange(n - 1); a = a.tolist(); return sum(x.roll(i, 0) * i for i in a)"
    ),
    "one number": "h = torch.tensor(x.shape)[1] // 3; return x[:, h.item() :] * len(x)",
    "as many of all rows": "m = torch.eye(n).bool(); return x[None].masked_select(~m).view(n * (n - 1))",
}


@pytest.mark.parametrize("name", list(LINES))
def test_values_and_gradients(name: str) -> None:
    compare_gradients(under(HEAD, LINES[name]), X)


def test_what_is_written_for_them() -> None:
    _, _, code = loaded(under(HEAD, LINES["the diagonal left out"]))
    assert "m = ~np.eye(n, dtype=bool)\n" in code
    _, _, code = loaded(under(HEAD, LINES["as many as a shape says"]))
    assert "x[jnp.nonzero(m, size=n * (n - 1))].reshape(n, n - 1)" in code


@pytest.mark.parametrize(
    "lines",
    {
        "a part of data": "m = torch.eye(n).bool() & (x > 0); return x[m]",
        "bound twice": "m = torch.eye(n).bool()\n    if n > 3:\n        m = x > 0\n    return x[m]",
        "bound in a loop": "m = torch.eye(n).bool()\n    for _ in range(2):\n        y = x[m]\n        m = x > 0\n    return y",
        "written in place": "m = torch.ones(n, n).bool(); m[0] = False; return x[m]",
        "written by a method": "m = torch.ones(n, n).bool(); m.logical_not_(); return x[m]",
        "a number of data": "k = int(x.max()); m = torch.arange(n) < k; return x[m]",
        "an argument": "return x[x > 0]",
        "written under another name": "m = torch.eye(n).bool(); k = ~m; k &= x > 0; return x[m].view(n, -1), k.sum()",
        "an item of what is made of it": "m = torch.eye(n).bool(); k = m.float(); k[0] = 1; return x[m].view(n, -1), k",
        "filled": "m = torch.eye(n).bool(); k = m.index_fill(0, torch.tensor([0]), True); return x[m], k",
        "handed out": "m = torch.eye(n).bool(); return x[m], m",
        "numbers that float32 rounds": "m = torch.arange(n) * 0.1 <= 0.3; return x[m]",
        "steps that float32 rounds": "m = torch.arange(0, 0.4, 0.1) <= 0.2; return x[m]",
        "a size that may be open": "k = -1; x = x.view(n, n); m = x > 0; return x[m].view(k, 2)",
        "looked up": "m = torch.eye(n).bool(); i = x[0].argmax(); return x[m], x * m.float()[i]",
        "looked up under another name": "m = torch.eye(n).bool(); k = ~m; i = x[0].argmax(); return x[m], k[i]",
        "scattered": "m = torch.eye(n).bool(); return x[m], m.float().scatter(1, torch.tensor([[0]]), 7.0)",
        "one of two": "m = torch.eye(n).bool(); k = m if n > 2 else x > 0; return x[m], k",
        "drawn": "m = torch.rand(n, n) > 0.5; return x[m]",
        "more than numpy has": "m = torch.eye(n).bool().roll(1, 0); return x[m]",
        "a size that is left open": "m = x > 0; return x[m].view(n, -1)",
        "axes that are not known": "def g(x):\n        m = x > 0\n        return x[m].view(3)\n    return g(x)",
    }.values(),
)
def test_what_hangs_on_data_is_a_finding(lines: str) -> None:
    assert "DYN001" in rules_of(under(HEAD, lines))


def test_masks_keep_their_dtype_when_they_are_moved() -> None:
    moved = [
        "m.view(-1)",
        "m.reshape(-1)",
        "m.flatten()",
        "torch.cat([m, m])",
        "m[None].squeeze(0)",
    ]
    for one in [*moved, "m.expand(4, -1)", "m.unbind(0)[0]", "torch.stack([m[0], m[1]])"]:
        text = f"def f(x: torch.Tensor):\n    m = x > 0\n    k = {one}\n    return x.flatten()[k]\n"
        assert "DYN001" in rules_of(text), one


@pytest.mark.parametrize(
    "lines",
    [
        "return (x > 0).nonzero()",
        "m = torch.eye(n) * x; return torch.where(m > 0)",
        "m = torch.eye(n); m[0, 1] = x[0, 0]; return m.nonzero()",
        "m = torch.eye(n); return m.nonzero(), m",
        "m = torch.arange(n) * 0.1 <= 0.3; return torch.where(m)[0]",
    ],
)
def test_places_that_numpy_cannot_tell(lines: str) -> None:
    assert "DYN005" in rules_of(under(HEAD, lines))
