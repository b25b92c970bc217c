"""Switches of torch's backends and words to CUDA's allocator, which change no number."""

from __future__ import annotations

import pytest

from tests.convert.tools import convert


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("torch.backends.cudnn.benchmark = True", "CUDA005"),
        ("torch.backends.cudnn.deterministic = torch.backends.cudnn.enabled = False", "CUDA005"),
        ("torch.backends.cuda.matmul.allow_tf32 = torch.cuda.is_available()", "CUDA005"),
        ('torch.set_float32_matmul_precision("high")', "CUDA005"),
        ("torch.use_deterministic_algorithms(True)", "CUDA005"),
        ("torch.backends.cuda.enable_flash_sdp(False)", "CUDA005"),
        ("torch.cuda.empty_cache()", "CUDA004"),
        ("torch.set_num_threads(4)", "CUDA005"),
        ("torch.cuda.set_device(0)", "CUDA005"),
        ('torch.set_default_device("cuda")', "CUDA005"),
    ],
)
def test_go_where_they_stand_alone(line: str, rule: str) -> None:
    for source in (
        f"{line}\nX = 1\n",
        f"def f(n: int):\n    if n > 2:\n        {line}\n    return n\n",
    ):
        made = convert(source)
        assert made.complete, made.findings
        assert {f.rule for f in made.findings} == {rule}
        assert "torch" not in made.code


@pytest.mark.parametrize(
    "line",
    [
        "torch._dynamo.config.suppress_errors = True",
        "torch._inductor.config.triton.unique_kernel_names = True",
        "torch._dynamo.reset()",
        "torch.compiler.cudagraph_mark_step_begin()",
        "torch._dynamo.mark_dynamic(X, 0)",
    ],
)
def test_what_the_compiler_is_told_goes(line: str) -> None:
    for source in (f"X = 1\n{line}\n", f"def f(X: torch.Tensor):\n    {line}\n    return X\n"):
        made = convert(source)
        assert made.complete, made.findings
        assert "torch" not in made.code


@pytest.mark.parametrize(
    "line",
    [
        "torch._dynamo.config.suppress_errors = m.pop()",
        "torch._dynamo.mark_dynamic(m.pop(), 0)",
        "return torch.backends.cudnn.benchmark",
        "torch.backends.cudnn.benchmark = m.pop()",
        "m.empty, torch.backends.cudnn.benchmark = 1, 2",
        "torch.cuda.empty_cache(m.pop())",
        "return torch.cuda.memory_allocated()",
        "torch.backends.cudnn = m",
        "torch.backends.quantized.engine = 'qnnpack'",
        "torch.set_num_threads(m.pop())",
        "torch.set_default_device('meta')",
        "torch.set_default_device(m)",
        "torch.set_default_dtype(torch.bfloat16)",
        "torch.set_grad_enabled(False)",
    ],
)
def test_what_is_asked_or_does_more_is_a_finding(line: str) -> None:
    assert not convert(f"def f(m):\n    {line}\n").complete


def test_the_default_dtype_may_be_written_down() -> None:
    made = convert("torch.set_default_dtype(torch.float32)\nX = 1\n")
    assert made.complete, made.findings
    assert "torch" not in made.code


def test_a_name_of_ones_own_stays() -> None:
    made = convert("class cudnn:\n    benchmark = False\n\n\ncudnn.benchmark = True\n")
    assert "cudnn.benchmark = True" in made.code


@pytest.mark.parametrize(
    ("asked", "complete"),
    [
        ("torch.Tensor", True),
        ("int", True),
        ("(int, float)", True),
        ("dict[str, torch.Tensor]", False),
    ],
)
def test_instances_as_torchscript_asks_for_them(asked: str, complete: bool) -> None:
    made = convert(
        f"def f(x: torch.Tensor):\n    return x + 1 if torch.jit.isinstance(x, {asked}) else x\n"
    )
    assert made.complete == complete
    assert complete == ("if isinstance(x, " in made.code)
