"""Classes of modules in forms that torch takes and Flax does not."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import migrator
from tests.convert.tools import X, check, convert, loaded, rules_of

BODY = """
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, x):
        return self.l(x)
"""
METHODS = """
    def out(self) -> int:
        return 4

    def more(self) -> int:
        return 5
"""
PROTOCOL = '''
from typing import Protocol


class Says(Protocol):
    """What there is."""

    width: int

    def out(self) -> int: ...

    def more(self) -> int:
        raise NotImplementedError

'''


def test_slots_go() -> None:
    code = check(f'class M(nn.Module):\n    __slots__ = ["a"]\n{BODY}')
    assert "__slots__" not in code
    code = check(f'class A:\n    __slots__ = ["a"]\n\n\nclass M(nn.Module):\n{BODY}')
    assert "__slots__" in code


def test_a_protocol_is_no_base() -> None:
    code = check(f"{PROTOCOL}\nclass M(nn.Module, Says):{BODY}{METHODS}")
    assert "class M(nnx.Module):" in code
    assert "class Says(Protocol):" in code


@pytest.mark.parametrize("code", ["return 3", "self.a = 1", "yield 2"])
def test_a_protocol_with_code_is_a_finding(code: str) -> None:
    protocol = PROTOCOL.replace("raise NotImplementedError", code)
    assert rules_of(f"{protocol}\nclass M(nn.Module, Says):{BODY}{METHODS}") == ["API001"]
    assert rules_of(f"{PROTOCOL}\nclass M(nn.Module, Says):{BODY}") == ["API001"]


@pytest.mark.parametrize("given", [False, True])
def test_a_buffer_that_may_be_left_out(given: bool) -> None:
    source = """
class M(nn.Module):
    def __init__(self, weight=None):
        super().__init__()
        self.register_buffer("weight", weight)

    def forward(self, x):
        return x if self.weight is None else x * self.weight
"""
    theirs, ours, _ = loaded(source)
    model = theirs["M"](X[0] if given else None)
    port = ours["M"](jnp.asarray(X[0].numpy()) if given else None, rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, model.state_dict())
    assert set(migrator.to_state_dict(port)) == set(model.state_dict())
    np.testing.assert_allclose(port(jnp.asarray(X.numpy())), model(X), rtol=1e-6)


TEXT = """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def __str__(self):
        trained = filter(lambda p: p.requires_grad, self.parameters())
        return super().__str__() + f"\\nTrained: {sum(p.numel() for p in trained)}"

    def forward(self, x):
        return self.fc(x)
"""


def test_a_text_for_who_reads_it_is_that_of_flax() -> None:
    namespace: dict[str, Any] = {}
    result = convert(TEXT)
    exec(result.code, namespace)
    assert [f.severity for f in result.findings] == ["warning"]
    assert str(namespace["M"](rngs=nnx.Rngs(0))).endswith("Trained: 20")


def test_a_text_that_something_hangs_on_is_told() -> None:
    source = TEXT.replace(
        "return self.fc(x)", 'return self.fc(x) if "Lin" in super().__str__() else x'
    )
    assert rules_of(source) == ["API001"]
