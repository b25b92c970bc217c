"""Rows that a mask selects and that are written back: mixtures of experts keep static shapes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import HEADER, convert, loaded, rules_of

MODEL = """
class Expert(nn.Module):
    def __init__(self, d: int):
        super().__init__()
        self.up = nn.Linear(d, 2 * d)
        self.gate = nn.Linear(d, 2 * d)
        self.down = nn.Linear(2 * d, d)
    def forward(self, x):
        h = F.silu(self.gate(x))
        return self.down(h * self.up(x))


def linear(x, weight, bias=None):
    if weight.element_size() > 1:
        return F.linear(x, weight, bias)
    raise NotImplementedError


def centred(x, weight):
    if weight is not None:
        x = x - x.mean(0)
    return x


class Parallel(nn.Module):
    def __init__(self, d: int, bias: bool):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d, d))
        self.bias = nn.Parameter(torch.ones(d)) if bias else None
    def forward(self, x):
        y = linear(x, self.weight)
        if self.bias is not None:
            y += self.bias
        return y


ACTS = {"silu": nn.SiLU(), "tanh": nn.Tanh(), "gelu": nn.GELU()}


class Chosen(nn.Module):
    def __init__(self, d: int, act: str):
        super().__init__()
        self.up = nn.Linear(d, d)
        self.act = ACTS[act]
    def forward(self, x):
        return self.act(self.up(x))


class M(nn.Module):
    def __init__(self, d: int = 4, n: int = 5):
        super().__init__()
        self.n = n
        self.router = nn.Linear(d, n)
        self.experts = nn.ModuleList([Expert(d) for _ in range(n)])
        self.mlps = nn.ModuleList([nn.Sequential(nn.Linear(d, d), nn.GELU()) for _ in range(n)])
        self.norms = nn.ModuleList([nn.BatchNorm1d(d) for _ in range(n)])
        self.held = nn.ModuleList([Expert(d) if i < n else None for i in range(n)])
        self.parallel = nn.ModuleList([Parallel(d, True) for i in range(n)])
        self.chosen = nn.ModuleList([Chosen(d, "tanh") for i in range(n)])
        self.scale = nn.Parameter(torch.full((d,), 1.5))
        self.seen = []
    def forward(self, x):
        weights, chosen = torch.topk(F.softmax(self.router(x), dim=-1), 2, dim=-1)
        out = torch.zeros_like(x)
{before}        for i in range(self.n):
            mask = chosen == i
{body}
        return out
"""

FORMS = {
    "continue": """
if not mask.any():
    continue
rows, slot = torch.where(mask)
y = self.experts[i](x[rows]) * weights[rows, slot].unsqueeze(-1)
out.index_add_(0, rows, y)
""",
    "numel": """
rows, slot = torch.where(mask)
if rows.numel() == 0:
    continue
expert = self.mlps[i]
y = expert(x[rows]).float() * self.scale
y = y * weights[rows, slot, None]
out[rows] += y
""",
    "any": """
if mask.any():
    rows, slot = mask.nonzero(as_tuple=True)
    out.index_add_(0, rows, weights[rows, slot][:, None] * self.mlps[i](x[rows]).to(x.dtype))
""",
    "right after": """
rows, slot = torch.where(mask)
if not mask.any():
    continue
out[rows] += self.mlps[i](x[rows]) * weights[rows, slot, None]
""",
    "inside": """
rows, slot = torch.nonzero(mask, as_tuple=True)
if len(rows) > 0:
    y = 2 * self.experts[i](x[rows]) / 3
    out[rows] = out[rows] - y * weights[rows, slot, None]
""",
    "counted before": """
if counts[i] == 0:
    continue
expert = self.held[i]
rows, slot = torch.where(chosen == i)
out[rows] += expert(x[rows]) * weights[rows, slot, None]
""",
    "counted around": """
if counts[i] > 0:
    rows, slot = torch.where(chosen == i)
    out.index_add_(0, rows, self.held[i](x[rows]) * weights[rows, slot, None])
""",
    "under one": """
slot, rows = torch.where(mask.t())
state = x[None, rows].reshape(-1, x.shape[-1])
out.index_add_(0, rows, self.experts[i](state) * weights[rows, slot, None])
""",
    "an activation of a table": """
rows, slot = torch.where(mask)
out[rows] += self.chosen[i](x[rows]) * weights[rows, slot, None]
""",
    "by functions": """
rows, slot = torch.where(mask)
out[rows] += self.parallel[i](x[rows]) * weights[rows, slot, None]
""",
    "flat": """
slot, rows = torch.where(mask.t())
state = flat[rows].reshape(-1, x.shape[-1])
out.index_add_(0, rows, self.experts[i](state) * weights[rows, slot, None])
""",
    "one axis": """
found = mask.any(dim=-1)
rows = torch.where(found)[0]
share = torch.zeros(rows.shape[0])
share = share + (weights * mask)[rows, 0] + (weights * mask)[rows, 1]
out[rows] += F.linear(x[rows], self.experts[i].up.weight[:4]) * share.unsqueeze(-1)
""",
}


def written(body: str) -> str:
    lines = "".join(f"            {line}\n" for line in body.strip("\n").splitlines())
    count = "counts = torch.bincount(chosen.flatten(), minlength=self.n).tolist()"
    flat = "        flat = x.view(-1, x.shape[-1])\n" if "flat[" in body else ""
    before = f"        {count}\n" if "counts" in body and "bincount" not in body else ""
    return MODEL.replace("{body}\n", lines).replace("{before}", flat + before)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("count", [3, 1])
def test_the_same_numbers_and_gradients(form: str, count: int) -> None:
    source = written(FORMS[form])
    result = migrator.convert_source(HEADER + source)
    assert result.complete, result.findings
    theirs: dict = {}
    exec(HEADER + source, theirs)
    ours: dict = {}
    exec(result.code, ours)
    torch.manual_seed(count)
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, model.state_dict())
    x = torch.randn(count, 4, requires_grad=True)
    expected = model(x)
    expected.square().sum().backward()

    def loss(port: nnx.Module, x: jax.Array) -> jax.Array:
        return jnp.square(port(x)).sum()

    got = nnx.jit(lambda port, x: port(x))(port, jnp.asarray(x.detach().numpy()))
    np.testing.assert_allclose(got, expected.detach().numpy(), rtol=1e-5, atol=1e-6)
    by_x = nnx.grad(loss, argnums=1)(port, jnp.asarray(x.detach().numpy()))
    np.testing.assert_allclose(by_x, x.grad.numpy(), rtol=1e-4, atol=1e-6)
    grads = migrator.to_state_dict(nnx.grad(loss)(port, jnp.asarray(x.detach().numpy())), like=port)
    for name, parameter in model.named_parameters():
        want = parameter.grad if parameter.grad is not None else torch.zeros_like(parameter)
        np.testing.assert_allclose(grads[name], want.numpy(), rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("form", FORMS)
def test_analyze_says_what_becomes_of_them(form: str) -> None:
    findings = migrator.analyze_source(HEADER + written(FORMS[form]))
    assert [(f.rule, f.severity) for f in findings] == [("DYN005", "info")]


OTHERWISE = {
    "statistics over the rows": "out[rows] += self.norms[i](x[rows])",
    "a mean over the rows": "out[rows] += x[rows] - x[rows].mean(0)",
    "a softmax that may be over the rows": "out[rows] += F.softmax(x[rows, 0], dim=-1).unsqueeze(-1)",
    "rows of one another": "out[rows] += x[rows] @ x[rows].t() @ x[rows]",
    "rows turned over": "out[rows] += x[rows].flip(0)",
    "a function that looks at all rows": "out[rows] += centred(x[rows], self.scale)",
    "no derivative at zero": "out[rows] += x[rows].sqrt()",
    "another tensor of as many rows": "out[rows] += x[rows] * x[:2]",
    "values of as many rows": "out[rows] = x[:2]",
    "the number is used": "out[rows] += x[rows] / rows.numel()",
    "the number is kept": "self.seen.append(rows.numel())\nout[rows] += x[rows]",
    "nothing is written": "y = x[rows]\nout = out + y.sum()",
    "read after the loop": "y = x[rows]\nout[rows] += y\nlast = y.sum()",
    "places of columns": "out[:, rows] += x[:, rows]",
    "what may be a mask": "kept = self.flags[rows]\nout[kept] += x[rows]",
    "one row": "out[rows] += x[rows[0]]",
    "a mask of a mask": "y = x[rows]\nout[rows[y[:, 0] > 0]] += y[y[:, 0] > 0]",
    "no gradient is recorded": "with torch.no_grad():\n    k = torch.where(mask)[0]\n    out[k] += self.scale * x[k]",
}


@pytest.mark.parametrize("name", OTHERWISE)
def test_what_is_done_otherwise_is_a_finding(name: str) -> None:
    guarded = f"if not mask.any():\n    continue\nrows, slot = torch.where(mask)\n{OTHERWISE[name]}"
    for body in (guarded, guarded.partition("continue\n")[2]):
        assert rules_of(written(body))
        assert any(f.blocks for f in migrator.analyze_source(HEADER + written(body)))


@pytest.mark.parametrize(
    "body",
    [
        "if not mask.any():\n    continue\nrows, slot = torch.where(mask)\nself.seen.append(i)\nout[rows] += x[rows]",
        "if not mask.any():\n    continue\nrows, slot = torch.where(mask)\nout[rows] += x[rows]\nout = out + 1",
        "if not mask.any():\n    break\nrows, slot = torch.where(mask)\nout[rows] += x[rows]",
        "if not (mask & True).any():\n    continue\nrows, slot = torch.where(mask)\nout[rows] += x[rows]",
        "if mask.any():\n    rows, slot = torch.where(mask)\n    out[rows] += x[rows]\nelse:\n    out = out + 1",
        "rows, slot = torch.where(mask)\nmask = chosen > i\nif mask.any():\n    out[rows] += x[rows]",
        "rows, slot = torch.where(mask)\nmask[0] = False\nif not mask.any():\n    continue\nout[rows] += x[rows]",
        "if not mask.any():\n    continue\nlast = i\nrows, slot = torch.where(mask)\nout[rows] += x[rows]\nout = out * last",
        "if counts[i] == 0:\n    continue\nrows, slot = torch.where(weights > i)\nout[rows] += x[rows]",
        "if counts[0] == 0:\n    continue\nrows, slot = torch.where(chosen == i)\nout[rows] += x[rows]",
        "if counts[i] == 1:\n    continue\nrows, slot = torch.where(chosen == i)\nout[rows] += x[rows]",
        "chosen[0] = 1\nif counts[i] == 0:\n    continue\nrows, slot = torch.where(chosen == i)\nout[rows] += x[rows]",
        "counts = torch.bincount(chosen.view(-1)).tolist()\nchosen = chosen + 1\nif counts[i] == 0:\n    continue\nrows, slot = torch.where(chosen == i)\nout[rows] += x[rows]",
        "rows, slot = torch.where(mask)\nif rows.numel() > 1:\n    out[rows] += x[rows]",
    ],
)
def test_what_runs_only_where_there_are_rows_keeps_its_test(body: str) -> None:
    assert rules_of(written(body))


@pytest.mark.parametrize(
    ("write", "said"),
    [
        ("out[t] += x[t] * w[t, i, None]", ["MUT001"]),
        ("out[t] = x[t] * w[t, i, None]", ["MUT001"]),
        ("out.index_add_(0, t, x[t] * w[t, i, None])", []),
    ],
)
def test_a_row_that_a_mask_may_find_twice_is_said(write: str, said: list[str]) -> None:
    """torch leaves open which of two values a write leaves, and its gradient counts both."""
    source = (
        "import torch\n\n\ndef f(x: torch.Tensor, w: torch.Tensor, s: torch.LongTensor):\n"
        f"    out = torch.zeros_like(x)\n    t, i = torch.where(s == 1)\n    {write}\n    return out\n"
    )
    result = migrator.convert_source(source)
    assert result.complete
    assert [f.rule for f in result.findings] == said


def test_a_block_before_a_selection_may_hold_blocks() -> None:
    source = """
    def f(x, mask, loud: bool):
        for i in range(2):
            if mask.any():
                with torch.no_grad():
                    x = x + 1
            rows = torch.where(mask)[0]
            x[rows] = x[rows] * 2
        return x
    """
    assert "INT001" not in rules_of(source)


def test_what_is_read_after_the_loop_keeps_the_test_before_it() -> None:
    """Without the test ``last`` would be that of the last turn, not of the last that found rows."""
    body = "if not mask.any():\n    continue\nlast = i\nrows, slot = torch.where(mask)\nout[rows] += x[rows]"
    assert rules_of(written(body).replace("        return out\n", "        return out * last\n"))


HIT = """class Expert(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.up = nn.Linear(d, d)

    def forward(self, x):
        return F.silu(self.up(x))


class M(nn.Module):
    def __init__(self, d: int = 4, n: int = 5):
        super().__init__()
        self.n = n
        self.router = nn.Linear(d, n)
        self.experts = nn.ModuleList([Expert(d) for _ in range(n)])

    def forward(self, x):
        weights, chosen = torch.topk(F.softmax(self.router(x), dim=-1), 2, dim=-1)
        out = torch.zeros_like(x)
        {mask}
        {hit}
        for e in hit:
            expert = self.experts[e]
            {rows}
            y = expert(x[None, t].reshape(-1, x.shape[-1])) * weights[t, slot, None]
            out.index_add_(0, t, y)
        return out{after}
"""
FOUND = {
    "mask": "mask = F.one_hot(chosen, num_classes=self.n).permute(2, 1, 0)",
    "hit": "hit = torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero()",
    "rows": "slot, t = torch.where(mask[e].squeeze(0))",
    "after": "",
}
HITS = [
    {},
    {"hit": "hit = (mask.sum((1, 2)) > 0).nonzero()"},
    {"hit": "hit = torch.nonzero(torch.gt(mask.sum([-2, -1]), 0))"},
    {"mask": "mask = F.one_hot(chosen, self.n)\n        mask = mask.permute(2, 1, 0)"},
]


@pytest.mark.parametrize("form", HITS)
def test_a_loop_over_the_experts_that_are_hit(form: dict[str, str]) -> None:
    theirs, ours, code = loaded(HIT.format(**{**FOUND, **form}))
    assert "for e in range(mask.shape[0]):" in code
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, model.state_dict())
    for count in (1, 3):
        x = torch.randn(count, 4)
        got = nnx.jit(lambda port, x: port(x))(port, jnp.asarray(x.numpy()))
        np.testing.assert_allclose(got, model(x).detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "form",
    [
        {"hit": "hit = torch.greater(mask.sum(dim=(-1, -2)), 1).nonzero()"},
        {"hit": "hit = torch.greater(mask.sum(dim=(0, 1)), 0).nonzero()"},
        {"mask": "mask = (F.one_hot(chosen, self.n) - 1).permute(2, 1, 0)"},
        {"mask": "mask = F.one_hot(chosen, self.n)[..., 1:].permute(2, 1, 0)"},
        {"rows": "slot, t = torch.where(mask[e].squeeze(0))\n            self.last = e"},
        {"rows": "mask = mask * 1\n            slot, t = torch.where(mask[e].squeeze(0))"},
        {"after": " * hit.shape[0]"},
        {"after": " * e"},
        {"rows": "self.n += 1\n            slot, t = torch.where(mask[e].squeeze(0))"},
    ],
)
def test_a_loop_over_what_may_be_others_is_a_finding(form: dict[str, str]) -> None:
    assert rules_of(HIT.format(**{**FOUND, **form}))


def test_lines_after_such_a_loop_are_where_they_were() -> None:
    source = HIT.format(**{**FOUND, "after": " + torch.nonzero(x)[0]"})
    [found] = [f for f in convert(source).findings if f.blocks]
    assert (HEADER + source).splitlines()[found.line - 1].strip().startswith("return out")
