"""torch's old classes of tensors: ``x.type(torch.LongTensor)``, ``isinstance(x, torch.FloatTensor)``, and as values."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from migrator import convert_source

X = np.array([[0.5, -1.5], [2.5, 3.0]], np.float32)


def both(body: str) -> tuple[Any, Any]:
    """The function in torch and its conversion."""
    source = f"import torch\n\n\ndef f(x: torch.Tensor):\n    {body}\n"
    result = convert_source(source)
    assert result.complete, result.findings
    original: dict[str, Any] = {}
    port: dict[str, Any] = {}
    exec(source, original)
    exec(result.code, port)
    return original["f"], port["f"]


@pytest.mark.parametrize(
    ("body", "dtype"),
    [
        ("return x.type(torch.LongTensor)", "int32"),
        ("return x.type('torch.FloatTensor')", "float32"),
        ("return (x > 0).type(torch.ByteTensor)", "uint8"),
        ("return (x > 0).type(torch.FloatTensor) * x", "float32"),
        ("return x.type(torch.HalfTensor)", "float16"),
    ],
)
def test_a_cast_by_class(body: str, dtype: str) -> None:
    function, port = both(body)
    got = port(jnp.asarray(X))
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, function(torch.tensor(X)).numpy())


@pytest.mark.parametrize("name", ["Float", "Long", "Bool"])
@pytest.mark.parametrize("given", [X, X.astype(np.int64), X > 0])
def test_a_class_that_is_asked_for(name: str, given: np.ndarray) -> None:
    function, port = both(f"return 1 if isinstance(x, torch.{name}Tensor) else 2")
    assert port(jnp.asarray(given)) == function(torch.tensor(given))


@pytest.mark.parametrize(
    "body",
    [
        "return isinstance(x, (torch.FloatTensor, torch.cuda.FloatTensor))",
        "return isinstance(x, torch.cuda.FloatTensor)",
        "return use(torch.cuda.FloatTensor if x.is_cuda else torch.FloatTensor)",
        "kind = torch.FloatTensor\n    return use(kind)",
    ],
)
def test_a_class_as_a_value_is_a_finding(body: str) -> None:
    assert not convert_source(f"import torch\n\n\ndef f(x: torch.Tensor):\n    {body}\n").complete


@pytest.mark.parametrize(
    ("body", "complete"),
    [
        ("m = (x > 0).byte()\n    return x[m]", False),
        (
            "m = (x > 0).type(torch.ByteTensor)\n    x = x.clone()\n    x[~m] = 0.0\n    return x",
            False,
        ),
        ("return x[(x > 0).to(torch.uint8)]", False),
        ("m = torch.ones(2, dtype=torch.uint8)\n    return x[m]", False),
        ("m = (x[:, 0] > 0).byte().long()\n    return x[m]", True),
        ("m = (x > 0).byte()\n    x = x.clone()\n    x[m == 1] = 0.0\n    return x", True),
        ("m = (x > 0).byte()\n    return m + x[0]", True),
    ],
)
def test_bytes_as_an_index_are_a_mask(body: str, complete: bool) -> None:
    """In torch; in JAX they are places."""
    source = f"import torch\n\n\ndef f(x: torch.Tensor):\n    {body}\n"
    result = convert_source(source)
    assert result.complete == complete
    assert complete or {f.rule for f in result.findings if f.blocks} <= {"API002", "DYN001"}
    if complete:
        function, port = both(body)
        np.testing.assert_array_equal(port(jnp.asarray(X)), function(torch.tensor(X)).numpy())


def test_bytes_that_another_function_hands_over() -> None:
    source = (
        "import torch\nimport torch.nn as nn\n\n\nclass P(nn.Module):\n    def forward(self, x, sel):\n        return x[sel]\n\n\n"
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.p = P()\n\n"
        "    def forward(self, x: torch.Tensor):\n        m = (x[:, 0] > 0).{}\n        chosen = m\n"
        "        return self.p(x, chosen) + m.sum()\n"
    )
    assert "API002" in {
        f.rule for f in convert_source(source.format("byte()")).findings if f.blocks
    }
    assert convert_source(source.format("long()")).complete


def test_bytes_in_a_buffer() -> None:
    source = (
        "import torch\nimport torch.nn as nn\n\n\nclass M(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.register_buffer('m', torch.eye(3).byte())\n\n"
        "    def forward(self, x: torch.Tensor):\n        return x[self.m]\n"
    )
    assert "API002" in {f.rule for f in convert_source(source).findings if f.blocks}


def test_bytes_in_an_annotation() -> None:
    source = (
        "import torch\n\n\ndef f(x: torch.Tensor, m: torch.ByteTensor, i: torch.LongTensor):\n"
        "    return {}\n"
    )
    assert {f.rule for f in convert_source(source.format("x[m]")).findings if f.blocks} == {
        "API002"
    }
    assert convert_source(source.format("x[i] * m[0]")).complete
