"""What analyze reports about a file: the alternative on the very line, suppressions, names without conversion."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from migrator.analyze import analyze_source
from migrator.convert import convert_source
from migrator.findings import Finding

ROOT = Path(__file__).parents[2]
HEADER = (
    "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\nimport numpy as np\n\n"
)


def found(body: str, signature: str = "x: torch.Tensor") -> list[Finding]:
    """Findings in the body of a function of tensors."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return analyze_source(f"{HEADER}def f({signature}):\n{lines}\n")


TWO = "x: torch.Tensor, mask: torch.BoolTensor, n: torch.Tensor"

# --- advice ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "code", "advice"),
    [
        ("return x[x > 0].mean(0)", "DYN001", "`jnp.mean(x, axis=0, where=x > 0)`"),
        ("return x[mask].sum(0)", "DYN001", "jnp.sum(x, axis=0, where=mask"),
        ("return torch.prod(x[x > 1])", "DYN001", "`jnp.prod(x, where=x > 1)`"),
        ("return len(x[x > 1])", "DYN001", "`(x > 1).sum()`"),
        (
            "return F.kl_div(x[mask], n[mask])",
            "DYN001",
            "jnp.where(mask, loss, 0).sum() / mask.sum()",
        ),
        ("x[mask] = n * 2\nreturn x", "DYN001", "`x = jnp.where(mask, values, x)`"),
        ("return x[mask]", "DYN001", "jnp.nonzero(mask, size=n"),
        (
            "if x.sum() > 0:\n    x = x * n\nreturn x",
            "DYN002",
            "`x = jnp.where(x.sum() > 0, x * n, x)`",
        ),
        (
            "if x.sum() > 0:\n    y = x\nelse:\n    y = n\nreturn y",
            "DYN002",
            "`y = jnp.where(x.sum() > 0, x, n)`",
        ),
        ("return x if x.sum() > 0 else n", "DYN002", "`jnp.where(x.sum() > 0, x, n)`"),
        (
            "while x.sum() > 1:\n    x = x / 2\nreturn x",
            "DYN002",
            "`x = lax.while_loop(lambda x: x.sum() > 1, body, x)`",
        ),
        (
            "if mask.any() and n > 2:\n    return x\nreturn n",
            "DYN002",
            "jnp.where(mask.any() & (n > 2), x, …)",
        ),
        (
            "if torch.equal(x, n):\n    return x\nreturn n",
            "DYN002",
            "jnp.where(torch.equal(x, n), x, …)",
        ),
        ("return max(x.sum(), 1.0)", "DYN002", "`jnp.maximum(x.sum(), 1.0)`"),
        (
            "for i in range(4):\n    if x.sum() > i:\n        break\nreturn x",
            "DYN002",
            "lax.while_loop",
        ),
        ("return x[:n]", "DYN003", "`jnp.arange(x.shape[0]) < n`"),
        ("return x[:, n:n + 4]", "DYN003", "`lax.dynamic_slice_in_dim(x, n, 4, axis=1)`"),
        (
            "for i in range(n):\n    x = x + 1\nreturn x",
            "DYN003",
            "lax.fori_loop(0, n, body, state)",
        ),
        ("return torch.arange(n)", "DYN003", "`jnp.arange(n) < n`"),
        ("return x * math.sqrt(x.max().item())", "DYN004", "keep the 0-d array: `x.max()`"),
        ("return torch.zeros(int(n.max()), 3)", "DYN004", "Python int"),
        ("if x.sum().item() > 0:\n    return x\nreturn n", "DYN004", "compare `x.sum()` itself"),
        ("return torch.nonzero(x > 0)", "DYN005", "jnp.where(x > 0, …, 0)"),
        ("return torch.unique(n)", "DYN005", "`jnp.unique(n, size=n, fill_value=-1)`"),
        ("return torch.masked_select(x, x > 0).prod()", "DYN005", "`jnp.prod(x, where=x > 0)`"),
        (
            "return x.repeat_interleave(n, dim=0)",
            "DYN005",
            "`jnp.repeat(x, n, axis=0, total_repeat_length=n)`",
        ),
        ("return F.one_hot(n)", "DYN005", "num_classes"),
        ("kept = x[x > 0]\nreturn kept.mean()", "DYN006", "`jnp.mean(x, where=x > 0)`"),
        ("print(x.sum())\nreturn x", "TRC001", '`jax.debug.print("{}", x.sum())`'),
        ("return torch.from_numpy(np.exp(x))", "TRC007", "`jnp.exp(…)`"),
        ("return x.half()", "DTY003", "bfloat16"),
    ],
)
def test_the_alternative_is_spelled_out_for_the_line(body: str, code: str, advice: str) -> None:
    advices = [finding.advice for finding in found(body, TWO) if finding.rule == code]
    assert any(advice in text for text in advices), [str(f) + f.advice for f in found(body, TWO)]


@pytest.mark.parametrize(
    "body",
    [
        "x[x > 0] = 0\nreturn x",
        "y = x.clone()\ny[mask] = x[mask]\nreturn y",
        "x[mask] += 1\nreturn x",
        "return torch.where(mask, x, n)",
        "if x.shape[0] > 2 and x.dim() == 3:\n    return x\nreturn n",
        "if x is None or mask is not None:\n    return x\nreturn n",
        "if n != None:\n    return x\nreturn n",
        "if not isinstance(x, torch.Tensor):\n    return x\nreturn n",
        "if len(x) > 2 and x.size(0) % 2:\n    return x\nreturn n",
        "assert x.size(-1) in [2, 6]\nreturn x",
        "if x.is_floating_point() and torch.is_tensor(n):\n    return x\nreturn n",
        "return x[: x.shape[0] // 2, 1:]",
        "return x[:, torch.arange(3)]",
        "return torch.zeros(x.shape[0], int(x.size(1) * 0.5))",
        "return x.repeat_interleave(2, dim=0)",
        "return F.one_hot(n, 5)",
        "return torch.nonzero_static(x, size=4)",
        "return max(x.shape[0], 3) * x",
        "return torch.zeros(round(x.shape[0] / 2))",
        "return [i + x for i in range(10)]",
        "return x[::2][x.argmax()]",
        "return np.prod(x.shape) * x",
    ],
)
def test_static_code_raises_nothing(body: str) -> None:
    signature = "x: torch.Tensor, mask: torch.BoolTensor, n: torch.Tensor"
    assert [str(f) for f in found(body, signature)] == []


def test_code_that_is_not_traced_may_read_values() -> None:
    text = """
class Net(nn.Module):
    def __init__(self, depth, rate: float):
        super().__init__()
        self.rates = [r.item() for r in torch.linspace(0, rate, depth)]
        self.fc = nn.Linear(2, int(torch.tensor(3.0)))


def train(net, optimizer, batches):
    for batch in batches:
        loss = net(batch).sum()
        loss.backward()
        optimizer.step()
        print(loss.item())
        if loss.item() > 3:
            break
"""
    assert not [f for f in analyze_source(HEADER + text) if f.rule.startswith(("DYN", "TRC"))]


def test_a_bare_parameter_that_is_tested_may_be_a_flag() -> None:
    text = """
class Net(nn.Module):
    def forward(self, x, return_all):
        y = x.relu()
        if return_all:
            return x, y
        return y
"""
    assert analyze_source(HEADER + text) == []


# --- places ---------------------------------------------------------------------------------------


def test_the_span_is_the_part_that_is_meant() -> None:
    (finding,) = found("if (x > 0).all():\n    x = x * 2\nreturn x")
    assert (finding.line, finding.column) == (7, 8)
    assert finding.snippet[finding.column - 1 : finding.end_column - 1] == "(x > 0).all()"


# --- suppressions ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("comment", "silent"),
    [
        ("# migrate: ignore[DYN001]", True),
        ("# migrate: ignore[TRC001, DYN001] bounded by the caller", True),
        ("# migrate: ignore", True),
        ("#migrate:ignore", True),
        ("# migrate: ignore[DYN002]", False),
        ("# ignore[DYN001]", False),
    ],
)
def test_suppression(comment: str, silent: bool) -> None:
    assert (found(f"return x[x > 0].max()  {comment}") == []) is silent


def test_suppression_at_the_end_of_several_lines() -> None:
    assert found("return x[\n    x > 0\n].max()  # migrate: ignore[DYN001]") == []


def test_a_suppressed_note_is_not_in_the_conversion_either() -> None:
    text = HEADER + "def f(x: torch.Tensor):\n    print(x.sum()){}\n    return x\n"
    assert [f.rule for f in convert_source(text.format("")).findings] == ["TRC001"]
    assert convert_source(text.format("  # migrate: ignore[TRC001]")).findings == []


def test_what_cannot_be_converted_stays_marked_though_suppressed() -> None:
    text = HEADER + "def f(x: torch.Tensor):\n    return x[x > 0]  # migrate: ignore\n"
    result = convert_source(text)
    assert not result.complete
    assert "TODO(migrate)" in result.code


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        "return torch.lobpcg(x)",
        "from torch import lobpcg as solve\nreturn solve(x)",
        'return getattr(torch, "lobpcg")(x)',
        "import functools\nsolve = functools.partial(torch.lobpcg, k=2)\nreturn solve(x)",
        'table = {"solve": torch.lobpcg}\nreturn table["solve"](x)',
        "return list(map(torch.lobpcg, [x]))",
    ],
)
def test_a_name_without_conversion_is_found_however_it_is_reached(body: str) -> None:
    findings = found(body)
    assert [f.rule for f in findings] == ["API001"], [str(f) for f in findings]
    assert "torch.lobpcg" in findings[0].message


def test_a_package_as_a_value_is_found() -> None:
    assert {f.rule for f in found("t = torch\nreturn t.lobpcg(x)")} == {"API001"}


def test_computed_names_are_found() -> None:
    (finding,) = found("return getattr(F, name)(x)", "x: torch.Tensor, name: str")
    assert finding.rule == "API001"
    assert finding.severity == "warning"  # the port knows the activations
    (finding,) = found("return getattr(torch, name)(x)", "x: torch.Tensor, name: str")
    assert finding.rule == "API001"
    assert finding.severity == "error"
    assert not found("return getattr(nn, rnn_type)(3, 4)(x)", "x: torch.Tensor, rnn_type: str")


def test_arguments_a_definition_refuses_are_found() -> None:
    assert "API002" in {f.rule for f in found("return x.as_strided((2, 2), (1, 2))")}


def test_a_package_built_on_torch() -> None:
    (finding,) = analyze_source(
        "import torch\nfrom torchvision.models import resnet18\nnet = resnet18()\n"
    )
    assert (finding.rule, finding.line) == ("API004", 2)


LOOP = """import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.tensorboard import SummaryWriter


class Trainer:
    def __init__(self, model: nn.Module):
        self.model = model
        self.opt = torch.optim.AdamW(model.parameters())
        self.schedule = torch.optim.lr_scheduler.StepLR(self.opt, 1)
        self.log = SummaryWriter()

    def fit(self, x: torch.Tensor):
        self.opt.zero_grad()
        self.model(x).sum().backward()
        self.opt.step()
        self.schedule.step()
        self.log.add_scalar("loss", 1.0)
        for group in self.opt.param_groups:
            print(group)
        self.opt.param_groups[0]["lr"] = self.schedule.get_last_lr()[0]
        torch.save(self.model.state_dict(), "model.pt")


def step(model, optimizer, scheduler, batch, env):
    optimizer.zero_grad()
    loss = model(batch)["loss"]
    loss.backward(retain_graph=True)
    optimizer.step()
    scheduler.step(loss)
    state = env.step(3)
    return loss, state


def load(x: torch.Tensor):
    return DataLoader(TensorDataset(x))


def resume(path, model: nn.Module):
    state = torch.load(path)
    model.load_state_dict(state["model"])


def epoch(path):
    return torch.load(path)["epoch"]
"""


def test_every_line_of_a_training_loop_that_asks_torch_is_marked() -> None:
    lines = LOOP.splitlines()
    result = convert_source(LOOP)
    marked = {lines[finding.line - 1].strip() for finding in result.findings if finding.blocks}
    asking = (
        "return torch.load",
        "opt",
        "log",
        "torch.optim",
        "torch.save",
        ".step(",
        "backward(",
        "zero_grad",
        "DataLoader(",
    )
    expected = {line.strip() for line in lines if any(word in line for word in asking)}
    saves = "torch.save(self.model.state_dict()"  # which raises in the output
    left = ("def ", "class ", "from ", "state = env.step", saves)
    assert marked == {line for line in expected if not line.startswith(left)}
    made = result.code.splitlines()
    for i, line in enumerate(made):
        if line.strip() in marked:
            assert "# TODO(migrate): API0" in made[i - 1], line


def test_analyze_and_convert_give_the_same_advice() -> None:
    converted = {(f.line, f.rule): f for f in convert_source(LOOP).findings}
    analyzed = {(f.line, f.rule): f for f in analyze_source(LOOP)}
    assert converted.keys() == analyzed.keys()
    for place, finding in converted.items():
        if "TensorDataset" not in analyzed[place].message:  # convert ends at what stands around it
            assert finding.message == analyzed[place].message
        assert finding.advice == analyzed[place].advice
        assert finding.severity == analyzed[place].severity
    advice = " ".join(finding.advice for finding in analyzed.values())
    for words in ("optimiser of the same name in optax", "schedule of optax", "Orbax", "grain"):
        assert words in advice


def test_a_file_without_torch_has_no_findings() -> None:
    assert analyze_source("def f(x):\n    return x[x > 0].item()\n") == []


# --- whole files ----------------------------------------------------------------------------------

SAMPLES = sorted((ROOT / "samples").glob("*.py"))


@pytest.mark.parametrize("path", [p for p in SAMPLES if p.stem != "moe"], ids=lambda p: p.stem)
def test_samples_that_convert_have_no_blocking_finding(path: Path) -> None:
    findings = analyze_source(path.read_text(), str(path))
    assert not [str(f) for f in findings if f.blocks]


def test_the_mixture_of_experts_is_told_as_it_is_converted() -> None:
    text = (ROOT / "samples/moe.py").read_text()
    rows, masked = analyze_source(text)
    assert (rows.rule, rows.severity, rows.blocks, rows.effort) == ("DYN005", "info", False, 0)
    assert "convert computes as many as it has places" in rows.message
    assert masked.snippet.strip() == "return x[mask]"
    assert [f for f in convert_source(text).findings if f.blocks] == [masked]


@pytest.mark.parametrize(
    ("body", "rule", "note"),
    [
        ("if x.sum() > 0:\n    x = x * 2\nreturn x", "DYN002", "convert makes `lax.cond` of it"),
        ("return x * 2 if x.mean() > 0 else x", "DYN002", "convert makes `lax.cond` of it"),
        ("return ((x[mask] - 1) ** 2).mean()", "DYN001", "over the mask"),
    ],
)
def test_what_convert_knows_to_write_is_a_note(body: str, rule: str, note: str) -> None:
    (finding,) = found(body, TWO)
    assert (finding.rule, finding.severity, finding.blocks, finding.effort) == (
        rule,
        "info",
        False,
        0,
    )
    assert note in finding.message


def test_rows_that_are_used_otherwise_are_flagged_line_by_line() -> None:
    text = (ROOT / "samples/moe.py").read_text()
    text = text.replace("weight * expert(x[token_idx])", "weight * expert(x[token_idx].flip(0))")
    findings = {f.snippet.strip(): f for f in analyze_source(text)}
    expected = {
        "token_idx, choice = torch.where(routing.experts == i)": "jnp.where(routing.experts == i, …, 0)",
        "if token_idx.numel() == 0:": "a sum under the mask `routing.experts == i` is 0",
        "weight = routing.weights[token_idx, choice, None]": "jnp.where(routing.experts == i, routing.weights, 0)",
        "out.index_add_(0, token_idx, weight * expert(x[token_idx].flip(0)))": "out = out + jnp.where(mask",
        "return x[mask]": "jnp.where(mask, x, 0)",
    }
    assert findings.keys() == expected.keys()
    for line, advice in expected.items():
        assert advice in findings[line].advice


NEEDS_A_VALUE = {
    "assume_constant_result",
    "constrain_as_size_example",
    "constrain_as_value_example",
}
"""torch's examples that take a Python number out of a tensor, which a trace cannot."""


def _export_examples() -> list[Path]:
    spec = find_spec("torch")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent / "_export/db/examples"
    return sorted(p for p in folder.glob("*.py") if p.stem != "__init__")


@pytest.mark.parametrize("path", _export_examples(), ids=lambda p: p.stem)
def test_examples_that_torch_labels(path: Path) -> None:
    """What torch.export takes has static shapes here too; what needs values is flagged."""
    findings = analyze_source(path.read_text(), str(path))
    dynamic = [f for f in findings if f.rule.startswith("DYN")]
    assert bool(dynamic) is (path.stem in NEEDS_A_VALUE), [str(f) for f in dynamic]


def test_a_complete_conversion_names_nothing_of_torch() -> None:
    text = """
def make():
    class Net(nn.Module):
        def forward(self, x):
            return torch.relu(x)

    return Net
"""
    result = convert_source(HEADER + text)
    assert not result.complete or "torch" not in result.code


def test_a_span_is_right_where_the_text_repeats() -> None:
    body = "y = [\n    x[mask],\n    x[mask].max(),\n]\nreturn y"
    places = [(f.line, f.column, f.end_column) for f in found(body, TWO) if f.rule == "DYN001"]
    assert places == [(8, 9, 16), (9, 9, 16)]


def test_a_span_in_an_elif() -> None:
    body = "if x.dim() == 2:\n    return x\nelif x.sum() > 0:\n    return n"
    (finding,) = found(body, TWO)
    assert finding.snippet[finding.column - 1 : finding.end_column - 1] == "x.sum() > 0"
