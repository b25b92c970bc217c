"""Classes of torch by a name of which a branch or an assertion says what it is, and parameters asked for their type."""

from __future__ import annotations

from importlib import import_module

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from rules.torch_members import importable
from tests.convert.tools import X, both, loaded, rules_of

RECURRENT = """
class M(nn.Module):
    def __init__(self, kind="LSTM"):
        super().__init__()
        self.kind = kind
        if kind in ["LSTM", "GRU"]:
            self.rnn = getattr(nn, kind)(3, 4, 1, batch_first=True)
        else:
            self.rnn = nn.RNN(3, 4, 1, batch_first=True, nonlinearity={"TANH": "tanh"}[kind])

    def begin(self, n):
        weight = next(self.parameters())
        h = weight.new_zeros(1, n, 4)
        return (h, weight.new_zeros(1, n, 4)) if self.kind == "LSTM" else h

    def forward(self, x):
        return self.rnn(x, self.begin(x.size(0)))[0].to(next(self.parameters()).dtype)
"""


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "TANH"])
def test_a_branch_says_which_layers_a_name_may_mean(kind: str) -> None:
    module, port, code = both(RECURRENT, kind)
    x = torch.linspace(-1, 1, 30).reshape(2, 5, 3)
    np.testing.assert_allclose(port(jnp.asarray(x.numpy())), module(x).detach(), atol=1e-6)
    assert '{"LSTM": LSTM, "GRU": GRU}[kind]' in code


CHOSEN = """
class M(nn.Module):
    def __init__(self, kind="Tanh"):
        super().__init__()
        CHECK
        self.act = getattr(nn, kind)()

    def forward(self, x):
        return self.act(x)
"""


@pytest.mark.parametrize(
    "check",
    [
        'assert kind in ("PReLU", "Tanh"), kind',
        'if kind not in ("PReLU", "Tanh"):\n            raise ValueError(kind)',
        'assert kind == "PReLU" or kind == "Tanh"',
        'if not (kind == "PReLU" or kind == "Tanh"):\n            raise ValueError(kind)',
    ],
)
def test_an_assertion_says_it_too(check: str) -> None:
    for kind in ("PReLU", "Tanh"):
        module, port, _ = both(CHOSEN.replace("CHECK", check), kind)
        np.testing.assert_allclose(port(X.numpy()), module(X).detach(), atol=1e-6)


@pytest.mark.parametrize(
    "check",
    [
        'print("RReLU")',
        'assert kind in ("RReLU", "Tanh")\n        kind = kind.title()',
        'assert kind in ("RReLU", "Tanh", "NoSuchLayer")',
        'assert kind in ("RReLU", "Tanh") or not kind',
        'if kind not in ("RReLU", "Tanh"):\n            print(kind)',
    ],
)
def test_what_says_nothing_is_not_believed(check: str) -> None:
    assert rules_of(CHOSEN.replace("CHECK", check)) == ["API001"]


OF_TYPE = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.other = nn.Linear(4, 4)

    def forward(self, x):
        first = next(self.parameters())
        return self.fc(x) * USE
"""


@pytest.mark.parametrize("use", ["first.sum()", "first.new_zeros(first.shape).sum()", "first"])
def test_which_parameter_comes_first_is_not_known_where_its_numbers_count(use: str) -> None:
    assert rules_of(OF_TYPE.replace("USE", use)) == ["API007"]
    typed = OF_TYPE.replace("USE", "torch.ones(4, dtype=first.dtype)")
    assert rules_of(typed) == []
    # with halves in the file, parameters may be of several types
    assert rules_of(typed.replace("self.fc = nn.Linear(4, 4)", "self.fc = nn.Linear(4, 4).half()"))


@pytest.mark.parametrize("call", ["getattr(nn, rnn_type.upper())", "getattr(nn, self.rnn_type)"])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_a_name_says_that_a_recurrent_layer_is_meant(call: str, kind: str) -> None:
    source = f"""
class M(nn.Module):
    def __init__(self, rnn_type):
        super().__init__()
        self.rnn_type = rnn_type
        self.rnn = {call}(3, 4, 1, batch_first=True, bidirectional=True)

    def forward(self, x):
        y, _ = self.rnn(x)
        return y
"""
    module, port, code = both(source, kind.lower() if "upper" in call else kind)
    x = torch.linspace(-1, 1, 30).reshape(2, 5, 3)
    np.testing.assert_allclose(port(jnp.asarray(x.numpy())), module(x).detach(), atol=1e-6)
    assert '{"GRU": GRU, "LSTM": LSTM, "RNN": ' in code


def test_cells_by_name() -> None:
    source = """
class M(nn.Module):
    def __init__(self, rnn_cell):
        super().__init__()
        self.cell = getattr(nn, rnn_cell)(3, 4)

    def forward(self, x):
        return self.cell(x, torch.zeros(x.shape[0], 4))
"""
    module, port, _ = both(source, "GRUCell")
    x = torch.linspace(-1, 1, 6).reshape(2, 3)
    np.testing.assert_allclose(port(jnp.asarray(x.numpy())), module(x).detach(), atol=1e-6)


def test_a_cell_may_be_a_layer() -> None:
    source = """
class M(nn.Module):
    def __init__(self, rnn_cell="LSTM"):
        super().__init__()
        self.rnn = getattr(nn, rnn_cell)(3, 4, 2, batch_first=True)

    def forward(self, x):
        y, _ = self.rnn(x)
        return y
"""
    module, port, _ = both(source)
    x = torch.linspace(-1, 1, 30).reshape(2, 5, 3)
    np.testing.assert_allclose(port(jnp.asarray(x.numpy())), module(x).detach(), atol=1e-6)


@pytest.mark.parametrize("layer", ["layer", "rnn_act", "rnn_norm"])
def test_a_name_that_says_nothing(layer: str) -> None:
    source = "class M(nn.Module):\n    def __init__(self, layer):\n        super().__init__()\n        self.layer = getattr(nn, layer)(3, 4)\n"
    assert "API001" in rules_of(source.replace("layer)", f"{layer})"))


def test_what_is_about_torchs_memory_goes() -> None:
    source = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 4, batch_first=True)

    def forward(self, x):
        if x.ndim == 3:
            self.rnn.flatten_parameters()
        self.rnn.flatten_parameters()
        return self.rnn(x)[0]
"""
    module, port, code = both(source)
    assert "self.rnn.flatten_parameters" not in code
    x = torch.linspace(-1, 1, 30).reshape(2, 5, 3)
    np.testing.assert_allclose(port(jnp.asarray(x.numpy())), module(x).detach(), atol=1e-6)


FAILING = """
try:
    BODY
except ImportError:
    HANDLER


class M(nn.Module):
    def forward(self, x):
        return act(x)
"""


def _same(source: str) -> None:
    theirs, ours, _ = loaded(source)
    np.testing.assert_allclose(ours["M"]()(X.numpy()), theirs["M"]()(X), atol=1e-6)


@pytest.mark.parametrize(
    "body",
    [
        "from torch.nn.functional import gelu as act, not_there_ever",
        "from torch.nn.functional import not_there_ever, gelu as act",
        "from torch.nn.functional import gelu as act\n    from torch import not_there_ever",
        "from torch.nn.functional import gelu as act\n    import torch.not_there_ever",
        "from torch.nn.functional import gelu as act\n    from torch._six import string_classes",
        "from torch.nn.functional import _not_there_ever as act",
    ],
)
@pytest.mark.parametrize(
    "handler",
    [
        "from torch.nn.functional import relu as act",
        "act = torch.sin",
        "def act(x):\n        return x * 3",
        "act = lambda x: x - 3",
    ],
)
def test_an_import_fails_as_a_whole_for_want_of_one_name(body: str, handler: str) -> None:
    _same(FAILING.replace("BODY", body).replace("HANDLER", handler))


@pytest.mark.parametrize(
    "body",
    [
        "from torch.nn.functional import silu as act, not_there_ever",
        "from torch.nn.functional import silu as act\n    from torch import not_there_ever",
        "act = torch.cos\n    from torch import not_there_ever",
        "def act(x):\n        return x * 3\n    from torch import not_there_ever\n    act = torch.cos",
    ],
)
def test_what_a_try_binds_before_it_fails_stays(body: str) -> None:
    source = "act = torch.tanh\n" + FAILING.replace("BODY", body).replace("HANDLER", "pass")
    _same(source)


def test_the_last_name_that_is_bound_by_both_ways() -> None:
    source = """
try:
    from torch import not_there_ever, nn
    KIND = "new"
except ImportError:
    from torch.nn import functional as nn
    KIND = "old"


class M(torch.nn.Module):
    def forward(self, x):
        return nn.relu(x) if KIND == "old" else x
"""
    _same(source)


@pytest.mark.parametrize(
    "handler",
    [
        "except ImportError as e:\n    print(e)\n    from torch.nn.functional import relu as act",
        "except ImportError:\n    from torch.nn.functional import relu as act\nfinally:\n    print('x')",
        "except AttributeError:\n    act = torch.relu",
    ],
)
def test_a_try_that_fails_into_the_unknown(handler: str) -> None:
    source = FAILING.replace("except ImportError:\n    HANDLER", handler)
    failing = "from torch.nn.functional import gelu as act, not_there_ever"
    assert "API001" in rules_of(source.replace("BODY", failing))


def test_names_of_which_nothing_is_known() -> None:
    source = FAILING.replace("HANDLER", "from torch.nn.functional import relu as act")
    known = source.replace("BODY", "from torch.nn.functional import gelu as act")
    assert rules_of(known) == []
    assert rules_of(known.replace("as act\n", "as act\n    from torch.ao.nn import qat\n", 1))


@pytest.mark.parametrize("module", ["torch", "torch.nn", "torch.nn.functional", "torch.utils.data"])
def test_the_names_of_torch_are_those_of_the_installed_one(module: str) -> None:
    there = [one for one in dir(import_module(module)) if not one.startswith("__")]
    assert all(importable(module, name) for name in there)
    assert importable(module, "not_there_ever") is False
    assert importable(f"{module}.not_there_ever", "x") is False
    assert importable("torch.ao.nn", "x") is None
