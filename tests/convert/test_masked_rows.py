"""Rows that a mask takes as an index and that are written back through it: all rows are computed, as many as there are."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import HEADER, rules_of

MODEL = """
class Expert(nn.Module):
    def __init__(self, d: int):
        super().__init__()
        self.up = nn.Linear(d, 2 * d)
        self.down = nn.Linear(d, d)

    def forward(self, x):
        a, gate = self.up(x).chunk(2, dim=-1)
        return self.down(F.silu(gate) * a)


class M(nn.Module):
    def __init__(self, d: int = 4, n: int = 3):
        super().__init__()
        self.n = n
        self.router = nn.Linear(d, n)
        self.experts = nn.ModuleList([Expert(d) for _ in range(n)])
        self.norm = nn.LayerNorm(d)
        self.batch = nn.BatchNorm1d(d)
        self.token = nn.Parameter(torch.full((d,), 1.5))
        self.seen = []

    def forward(self, x):
        flat = x.view(-1, x.shape[-1])
        weights, chosen = torch.topk(F.softmax(self.router(flat), dim=-1), 2, dim=-1)
        out = torch.zeros_like(flat)
        hot = out + 0
{body}
        return out.view(x.shape)
"""
TURNS = "for i, expert in enumerate(self.experts):\n    "

FORMS = {
    "a comparison": """
for i, expert in enumerate(self.experts):
    out[chosen[:, 0] == i] = expert(flat[chosen[:, 0] == i])
""",
    "added": """
for i in range(self.n):
    m = (chosen == i).any(dim=1)
    if not m.any():
        continue
    w = (weights * (chosen == i)).sum(dim=1)[m]
    out[m] += w.unsqueeze(-1) * self.experts[i](flat[m])
""",
    "opened": """
for i in range(self.n):
    m = chosen[:, 1] == i
    if m.any():
        rows = flat[m]
        y = self.experts[i](rows)
        y = y * weights[m, 1].unsqueeze(1)
        out[m] = out[m] - y
""",
    "counted": """
for i in range(self.n):
    m = chosen[:, 1] == i
    if m.sum() == 0:
        continue
    y = self.experts[i](flat[m])
    out[m] = y * weights[m, 1, None]
""",
    "in its own shape": """
whole = (x[..., 0] > 0) & (x[..., 1] < 1)
m = whole.view(-1)
rows = self.experts[0](flat[m])
y = torch.zeros_like(x)
y[whole] += rows
y[whole] = self.experts[1](y.view(-1, 4)[m])
out = y.view(-1, 4)
""",
    "by two axes": """
z = x.view(1, -1, 4)
m = z[..., 0] > 0
y = z * 0
y[m] = self.norm(self.experts[0](z[m])) * z[m, 0].unsqueeze(-1)
out = y.view(-1, 4)
""",
    "in turn": """
m = flat[:, 0] > 0
h = self.norm(flat)
h[m] = self.experts[0](h[m])
h[m] *= self.experts[1](flat[m])
out = h
""",
    "weighed by what is theirs": """
for i, expert in enumerate(self.experts):
    m = (chosen == i).any(dim=-1)
    if m.any():
        rows = flat[m]
        y = expert(rows)
        mine = chosen[m] == i
        w = (weights[m] * mine.float()).sum(dim=-1, keepdim=True)
        out[m] += w * y
""",
    "weighed one by one": """
for i in range(self.n):
    m = (chosen == i).any(dim=-1)
    w = (weights[m] * (chosen[m] == i)).sum(-1)
    out[m] += w.unsqueeze(1) * self.experts[i](flat[m])
""",
    "weighed before they are taken": """
for i, expert in enumerate(self.experts):
    m = (chosen == i).any(dim=-1)
    if m.any():
        w = (weights * (chosen == i).float()).sum(-1, keepdim=True)
        out[m] += w[m] * expert(flat[m])
""",
    "sums of two axes": """
z = x.view(1, -1, 4)
m = z[..., 0] > 0
y = z * 0
y[m] = self.norm(z[m]) * (z[m] * (z[m] < 1)).sum(-1, keepdim=True)
out = y.view(-1, 4)
""",
    "nothing that is known": """
m = ~flat.isnan().any(dim=-1)
out[m] = self.experts[0](flat[m])
""",
}


def source_of(body: str) -> str:
    lines = "".join(f"        {line}\n" for line in body.strip("\n").splitlines())
    return MODEL.replace("{body}\n", lines)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("count", [5, 1])
def test_the_same_numbers_and_gradients(form: str, count: int) -> None:
    source = source_of(FORMS[form])
    result = migrator.convert_source(HEADER + source)
    assert result.complete, result.findings
    assert not result.findings
    theirs: dict = {}
    exec(HEADER + source, theirs)
    ours: dict = {}
    exec(result.code, ours)
    torch.manual_seed(count)
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, model.state_dict())
    values = torch.randn(2, count, 4)
    if form == "nothing that is known":
        values[0, 0, 1] = values[1, 0, 0] = torch.nan
    x = values.clone().requires_grad_()
    expected = model(x)
    expected.square().sum().backward()
    known = torch.nan_to_num(x.grad).numpy()

    def loss(port: nnx.Module, x: jax.Array) -> jax.Array:
        return jnp.square(port(x)).sum()

    given = jnp.asarray(values.numpy())
    got = nnx.jit(lambda port, x: port(x))(port, given)
    np.testing.assert_allclose(got, expected.detach().numpy(), rtol=1e-5, atol=1e-6)
    by_x = nnx.grad(loss, argnums=1)(port, given)
    np.testing.assert_allclose(jnp.nan_to_num(by_x), known, rtol=1e-3, atol=2e-6)
    grads = migrator.to_state_dict(nnx.grad(loss)(port, given), like=port)
    for name, parameter in model.named_parameters():
        want = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        if form == "nothing that is known" and name.startswith("router"):
            continue  # which looks at what is not known
        np.testing.assert_allclose(grads[name], want.numpy(), rtol=1e-3, atol=2e-6, err_msg=name)


@pytest.mark.parametrize("form", FORMS)
def test_analyze_says_what_becomes_of_them(form: str) -> None:
    findings = migrator.analyze_source(HEADER + source_of(FORMS[form]))
    assert not [f for f in findings if f.blocks]
    assert {f.rule for f in findings} == {"DYN001"}


OTHERWISE = {
    "statistics over the rows": "out[m] = self.batch(flat[m])",
    "a mean over the rows": "out[m] = flat[m] - flat[m].mean(0)",
    "a softmax that may be over the rows": "out[m] = F.softmax(flat[m][:, 0], dim=-1).unsqueeze(-1) * flat[m]",
    "parts that may be of the rows": "a, b = weights[m, 0].chunk(2, dim=-1)\nout[m] = a",
    "rows of one another": "out[m] = flat[m] @ flat[m].t() @ flat[m]",
    "a sum over the rows": "out[m] = flat[m] * flat[m][:, 0].sum(-1)",
    "a sum that may be over the rows": "out[m] = flat[m] * weights[m, 0].sum(-1)",
    "compared with another tensor of as many rows": "out[m] = flat[m] * (flat[m] > flat[:2])",
    "steep where none may be": "if m.any():\n    w = flat[:, :1].log()\n    out[m] = w[m] * self.norm(flat[m])",
    "reckoned only where there are some": "w = flat\nif m.any():\n    w = flat.sum(-1, keepdim=True)\n    out[m] = w[m] * self.norm(flat[m])\nout = out + w",
    "the mask of those there are": "if m.any():\n    m = (flat.sum(-1, keepdim=True) > 0).any(-1)\n    out[m] = self.norm(flat[m])",
    "another tensor of as many rows": "out[m] = flat[m] * flat[:2]",
    "another mask": "out[~m] = flat[m]",
    "the mask is another": "y = flat[m]\nm = ~m\nout[m] = y",
    "the mask is written": "y = flat[m]\nm[0] = False\nout[m] = y * 2",
    "the mask is written by another name": "other = m.view(-1)\ny = flat[m]\nother[0] = False\nout[m] = y * 2",
    "what it compares is written": "y = self.norm(flat[hot[:, 0] > 0])\nhot[0] = 1\nout[hot[:, 0] > 0] = y",
    "asked again": "hot[hot[:, 0] > 0] = self.norm(flat[hot[:, 0] > 0])\nout[hot[:, 0] > 0] = self.norm(flat[hot[:, 0] > 0])",
    "the number is used": "y = flat[m]\nout[m] = self.norm(y) / y.shape[0]",
    "the number is kept": "self.seen.append(flat[m].shape[0])\nout[m] = self.norm(flat[m])",
    "nothing is written": "y = self.norm(flat[m])\nout = out + y.sum()",
    "read after": "y = self.norm(flat[m])\nout[m] = y\nreturn y",
    "steep at 0": "out[m] = self.norm(flat[m].sqrt())",
    "places among the rows": "out[m] = self.experts[0].up.weight[chosen[m, 0]]",
    "the mask goes on axis 1": "out[:, m] = self.norm(flat[m])",
    "a whole of another shape": "whole = x[..., 0] > 0\nm = whole.view(-1)\nwhole = ~whole\ny = torch.zeros_like(x)\ny[whole] = self.norm(flat[m])\nout = y.view(-1, 4)",
    "no gradient is recorded": "with torch.no_grad():\n    out[m] = self.token * self.norm(flat[m])",
    "only where there are some": "if m.any():\n    out[m] = self.norm(flat[m])\n    out = out + 1",
    "more than one": "if m.sum() > 1:\n    out[m] = self.norm(flat[m])",
}


@pytest.mark.parametrize("name", OTHERWISE)
def test_what_is_done_otherwise_is_a_finding(name: str) -> None:
    body = source_of(f"m = flat[:, 0] > 0\n{OTHERWISE[name]}")
    assert rules_of(body)
    assert any(f.blocks for f in migrator.analyze_source(HEADER + body))


def test_values_of_as_many_rows_are_placed_by_data() -> None:
    assert rules_of(source_of("m = flat[:, 0] > 0\nout[m] = flat[:2]"))
