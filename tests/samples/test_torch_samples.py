"""The samples are real torch programs: they build, run forward and backward, and train."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]


def load_cases() -> list[dict[str, Any]]:
    """The cases of pyproject.toml whose torch module is a sample."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    cases = tool.get("migrate", {}).get("case", [])
    beside = ROOT / "samples" / "cases.toml"
    if beside.exists():
        cases += tomllib.loads(beside.read_text())["tool"]["migrate"]["case"]
    return [case for case in cases if case["torch"].startswith("samples/")]


def build(case: dict[str, Any]) -> torch.nn.Module:
    """The module of a case, with weights from a fixed seed."""
    path, _, attribute = case["torch"].partition(":")
    spec = importlib.util.spec_from_file_location(f"sample_{Path(path).stem}", ROOT / path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    init = case.get("init", {})
    torch.manual_seed(0)
    return getattr(module, attribute)(*init.get("args", []), **init.get("kwargs", {}))


def draw(case: dict[str, Any], pick: int) -> list[torch.Tensor]:
    """Inputs at the low (``pick=0``) or high (``pick=-1``) end of every named dimension."""
    dims = {
        name: (size["choices"] if isinstance(size, dict) else size)[pick]
        for name, size in case.get("dims", {}).items()
    }
    generator = torch.Generator().manual_seed(1)
    values = []
    for spec in case["inputs"]:
        shape = [dims.get(size, size) for size in spec["shape"]]
        low, high = (dims.get(bound, bound) for bound in spec.get("range", (-1, 1)))
        if spec["dtype"] == "int64":
            values.append(torch.randint(low, high, shape, generator=generator))
        else:
            values.append(low + (high - low) * torch.rand(shape, generator=generator))
    return values


def tensors(output: Any) -> list[torch.Tensor]:
    """The floating-point tensors in an output, depth first."""
    if isinstance(output, torch.Tensor):
        return [output] if output.is_floating_point() else []
    if isinstance(output, (tuple, list)):
        return [tensor for item in output for tensor in tensors(item)]
    return []


CASES = load_cases()


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("pick", [0, -1], ids=["smallest", "largest"])
@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_sample_runs_forward_and_backward(case, training, pick):
    model = build(case).train(training)
    outputs = tensors(model(*draw(case, pick)))
    assert outputs
    assert all(output.isfinite().all() for output in outputs)
    sum(output.square().mean() for output in outputs).backward()
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    assert grads
    assert all(grad.isfinite().all() for grad in grads)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_sample_in_eval_mode_repeats_itself(case):
    model = build(case).eval()
    inputs = draw(case, -1)
    first, second = tensors(model(*inputs)), tensors(model(*inputs))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_every_sample_has_a_case():
    files = {f"samples/{path.name}" for path in (ROOT / "samples").glob("*.py")}
    assert files == {case["torch"].partition(":")[0] for case in CASES}


def test_gpt_generates_and_attends_the_same_with_the_fused_kernel():
    case = next(case for case in CASES if case["name"] == "gpt")
    manual = build(case).eval()
    fused = build({**case, "init": {"kwargs": {"flash": True}}}).eval()
    tokens = draw(case, -1)[0]
    torch.testing.assert_close(manual(tokens)[0], fused(tokens)[0])
    assert manual.generate(tokens[:, :2], 3, top_k=5).shape == (tokens.shape[0], 5)
