"""Mixed precision: what does nothing goes, what a flag switches on CUDA goes with a warning, the rest is a finding."""

from __future__ import annotations

import pytest

from migrator import convert_source

FUNCTION = "import torch\n{first}\n\ndef f(x: torch.Tensor, on: bool):\n    with {context}:\n        return torch.relu(x)\n"


def _converted(context: str, first: str = "") -> tuple[str, list[str]]:
    result = convert_source(FUNCTION.format(context=context, first=first))
    return result.code, [f.rule for f in result.findings if f.severity != "info"]


OFF = [
    "torch.autocast('cuda', enabled=False)",
    "torch.autocast('cpu', torch.bfloat16, False)",
    "torch.amp.autocast(device_type=x.device.type, enabled=False)",
    "torch.cuda.amp.autocast(False)",
    "torch.no_grad(), torch.autocast('cuda', enabled=False)",
]
SWITCHED = [
    "torch.autocast('cuda', enabled=on)",
    "torch.autocast('cuda', torch.bfloat16, on)",
    "torch.cuda.amp.autocast(on)",
    "torch.cuda.amp.autocast(enabled=on and x.is_cuda)",
]
ON = [
    "torch.autocast('cuda')",
    "torch.autocast('cuda', enabled=True)",
    "torch.cuda.amp.autocast()",
    "torch.autocast('cpu', torch.bfloat16, enabled=on)",
    "torch.autocast(x.device.type, enabled=on)",
]


@pytest.mark.parametrize("context", OFF)
def test_what_does_nothing_goes(context: str) -> None:
    code, rules = _converted(context)
    assert rules == []
    assert "with" not in code
    assert "jax.nn.relu(x)" in code


@pytest.mark.parametrize("context", SWITCHED)
def test_what_a_flag_switches_on_cuda_is_computed_as_elsewhere(context: str) -> None:
    code, rules = _converted(context)
    assert rules == ["DTY009"]
    assert "return jax.nn.relu(x)" in code


@pytest.mark.parametrize("context", ON)
def test_the_rest_is_a_finding(context: str) -> None:
    code, rules = _converted(context)
    assert rules == ["DTY005"]
    assert "TODO(migrate): DTY005" in code


def test_a_name_of_its_own_and_one_for_older_versions() -> None:
    first = """
try:
    autocast = torch.cuda.amp.autocast
except AttributeError:
    class autocast:
        def __init__(self, enabled):
            pass

        def __enter__(self):
            pass

        def __exit__(self, *args):
            pass
"""
    code, rules = _converted("autocast(enabled=on)", first)
    assert rules == ["DTY009"]
    assert "autocast" not in code
    code, rules = _converted("autocast(enabled=on)", "autocast = torch.cuda.amp.autocast")
    assert rules == ["DTY009"]
    assert "autocast" not in code
    kept = "autocast = torch.cuda.amp.autocast\nCONTEXTS = [autocast]"
    assert "API001" in _converted("autocast(enabled=on)", kept)[1]
