"""Builders that are looked up by a name get the generator that the ones with modules ask for."""

from __future__ import annotations

import pytest
from flax import nnx

from tests.convert.tools import HEADER, check, convert, loaded, rules_of

DEFINED = """
import sys


class A(nn.Module):
    def __init__(self, n=3):
        super().__init__()
        self.l = nn.Linear(n, n)

    def forward(self, x):
        return self.l(x)


def small(n=2):
    return A(n)


def plain(n=2):
    return n + 1


TABLE = {"small": small, "plain": plain}
FILLED = {}


def register(function):
    FILLED[function.__name__] = function
    return function


@register
def large(n=5):
    return A(n)
"""


@pytest.mark.parametrize(
    "made",
    [
        "TABLE[name](**kwargs)",
        "TABLE.get(name, small)(**kwargs)",
        "globals()[name](**kwargs)",
        "globals().get(name)(**kwargs)",
        "eval(name)(**kwargs)",
        "vars()['TABLE'][name](**kwargs)",
        "{'small': small, 'plain': plain}[name](**kwargs)",
    ],
)
@pytest.mark.parametrize("named", [False, True])
def test_what_is_looked_up_may_build_modules(made: str, named: bool) -> None:
    if "vars" in made and not named:
        made = "FILLED['large'](**kwargs) if name == 'large' else small(**kwargs)"
    elif "vars" in made:
        made = "FILLED.get(name, small)(**kwargs)"
    if named and "if" not in made:
        function, _, given = made.rpartition("(")
        body = f"chosen = {function}\n    return chosen({given}"
    else:
        body = f"return {made}"
    source = (
        DEFINED
        + f"\n\ndef create(name, **kwargs):\n    {body}\n\n\ndef one():\n    return create('small', n=4)\n"
    )
    result = convert(source)
    assert result.complete, result.findings
    ours: dict = {}
    exec(result.code, ours)
    exec(HEADER + source, {"__name__": "theirs"})
    model = ours["one"](rngs=nnx.Rngs(0))
    assert model.l.kernel.shape == (4, 4)
    if "TABLE" in made:
        assert ours["create"]("plain", n=3, rngs=nnx.Rngs(0)) == 4


def test_a_table_of_functions_of_tensors_asks_for_none() -> None:
    source = """
ACTIVATIONS = {"relu": torch.relu, "double": lambda x: 2 * x}
LOSSES = {}


def act(name, x):
    return ACTIVATIONS[name](x)


def get_loss(name, x: torch.Tensor, y: torch.Tensor):
    return LOSSES[name](x, y)
"""
    result = convert(source)
    assert result.complete
    assert "rngs" not in result.code


def test_a_registry_builds() -> None:
    source = """
class Registry:
    def __init__(self):
        self.entries = {}

    def register(self, entry):
        self.entries[entry.__name__] = entry
        return entry

    def build(self, name, **kwargs):
        return self.entries[name](**kwargs)


MODELS = Registry()


@MODELS.register
class A(nn.Module):
    def __init__(self, n=3):
        super().__init__()
        self.l = nn.Linear(n, n)

    def forward(self, x):
        return self.l(x)


def make():
    return MODELS.build("A", n=2)
"""
    result = convert(source)
    assert result.complete, result.findings
    ours: dict = {}
    exec(result.code, ours)
    assert ours["make"](rngs=nnx.Rngs(0)).l.kernel.shape == (2, 2)


@pytest.mark.parametrize("norm", ["instance", "group", "own", "made"])
def test_the_signature_of_a_class_of_modules(norm: str) -> None:
    """Flax's metaclass takes anything."""
    check(
        """
import inspect
from functools import partial


class Own(nn.Module):
    def __init__(self, n, gain=2.0):
        super().__init__()
        self.l = nn.Linear(n, n)
        self.gain = gain

    def forward(self, x):
        return self.l(x) * self.gain


NORMS = {"instance": nn.InstanceNorm1d, "group": nn.GroupNorm, "own": Own, "made": partial(Own, 4)}


def takes(make, name):
    return name in inspect.signature(make).parameters


class M(nn.Module):
    def __init__(self, norm):
        super().__init__()
        make, given = NORMS[norm], {}
        if takes(make, "num_features"):
            given["num_features"] = 3
        if takes(make, "num_channels"):
            given.update(num_groups=2, num_channels=4)
        if takes(make, "n"):
            given["n"] = 4
        if takes(make, "gain"):
            given["gain"] = 3.0
        self.norm = make(**given)
        self.count = len(inspect.signature(Own).parameters)

    def forward(self, x):
        return self.norm(x) * self.count
""",
        norm,
    )


def test_the_signature_of_torchs_own_class_is_a_finding() -> None:
    source = "import inspect\n\n\ndef f():\n    return inspect.signature(nn.Linear).parameters\n"
    assert rules_of(source) == ["API001"]


NAMED = """
KNOWN = ["ReLU", "Softplus", "Tanh", "PReLU"]


class M(nn.Module):
    def __init__(self, activation, n=4):
        super().__init__()
        {0}
        self.activation = getattr(nn, activation)()
        self.fc = nn.Linear(n, n)

    def forward(self, x):
        return self.activation(self.fc(x))
"""


@pytest.mark.parametrize("name", ["Softplus", "PReLU"])
@pytest.mark.parametrize(
    "line",
    [
        "assert activation in KNOWN, activation",
        'assert activation in ["Softplus", "PReLU"]',
        "if activation not in KNOWN:\n            raise ValueError(activation)",
    ],
)
def test_layers_among_those_that_a_program_insists_on(line: str, name: str) -> None:
    check(NAMED.format(line), name)


def test_a_list_that_changes_says_nothing() -> None:
    line = "KNOWN.append('Threshold')\n        assert activation in KNOWN"
    assert "API001" in rules_of(NAMED.format(line))


ADAPTED = """
import importlib
import logging


class Adapter(logging.LoggerAdapter):
    def log(self, level, msg, *args, **kwargs):
        if self.isEnabledFor(level):
            msg, kwargs = self.process(msg, kwargs)
            self.logger.log(level, msg, *args, **kwargs)


def found(name):
    return getattr(importlib.import_module("models"), name)


def say(text):
    logger = logging.Logger("adapted")
    seen = []
    logger.addFilter(lambda record: seen.append(record.getMessage()))
    Adapter(logger, {}).warning(text)
    return seen
"""


def test_a_method_of_a_class_of_python_s_makes_no_module() -> None:
    theirs, ours, code = loaded(ADAPTED)
    assert theirs["say"]("here") == ours["say"]("here") == ["here"]
    assert "rngs" not in code
