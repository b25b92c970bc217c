"""Layer classes that are handed around as values, and static methods of layers."""

from __future__ import annotations

import pytest

import migrator
from migrator.convert.signature import plain_class
from rules import definitions
from tests.convert.tools import both, check, rules_of


def converted(expression: str) -> str:
    source = f"""import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, make={expression}):
        super().__init__()
        self.layer = make(8)
"""
    result = migrator.convert_source(source)
    assert result.complete, result.findings
    return result.code


@pytest.mark.parametrize("name", ["BatchNorm2d", "InstanceNorm1d", "PReLU"])
def test_a_class_with_torchs_arguments_is_passed_itself(name: str) -> None:
    code = converted(f"nn.{name}")
    assert f"make={name}," in code
    assert "_layer(" not in code


def test_a_class_without_a_counterpart_is_passed_as_its_definition() -> None:
    code = converted("nn.LayerNorm")
    assert "make=LayerNorm," in code
    assert "def LayerNorm(" in code


@pytest.mark.parametrize("name", ["Conv2d", "Dropout2d", "Linear", "SyncBatchNorm", "ReLU"])
def test_a_definition_that_does_more_than_pass_on_is_no_plain_class(name: str) -> None:
    assert plain_class(definitions.layers(f"torch.nn.{name}")[0]) is None


@pytest.mark.parametrize("owner", ["nn.Transformer", "self.transformer"])
def test_the_causal_mask_by_class_and_by_instance(owner: str) -> None:
    source = f"""from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.transformer = nn.Transformer(8, 2)

    def forward(self, x):
        return x + {owner}.generate_square_subsequent_mask(4).to(x.device)
"""
    result = migrator.convert_source(source)
    assert result.complete, result.findings
    assert "x + jnp.triu(jnp.full((4, 4), -jnp.inf), 1)" in result.code


@pytest.mark.parametrize(
    ("layer", "asked"),
    [
        ("nn.BatchNorm1d(4)", "reset_running_stats()"),
        ("nn.MultiheadAttention(4, 2)", "_reset_parameters()"),
        ("nn.LSTM(4, 4)", "mode"),
        ("nn.Linear(4, 4)", "something"),
        ("nn.LSTM(4, 4)", "dropout"),
    ],
)
def test_what_a_layer_of_torch_has_and_its_port_has_not_is_a_finding(
    layer: str, asked: str
) -> None:
    source = f"def main():\n    for m in nn.Sequential({layer}).modules():\n"
    found = f"        if isinstance(m, {layer.partition('(')[0]}):\n            print(m.{asked})\n"
    assert "API001" in rules_of(source + found)


@pytest.mark.parametrize(
    "line",
    ["print(m.running_mean, m.num_features, m.eps)", "m.mark = 1\n    print(m.mark, m.__class__)"],
)
def test_what_the_port_has_too_or_the_file_gives_it_converts(line: str) -> None:
    assert rules_of(f"def main():\n    m = nn.BatchNorm1d(4)\n    {line}\n") == []


def test_what_is_written_to_a_computed_weight_is_lost() -> None:
    """Weight norm computes the weight anew before each call, in torch as in the port."""
    code = check("""
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.utils.weight_norm(nn.Conv1d(3, 3, 1))
        self.fc = nn.utils.weight_norm(nn.Linear(4, 4))
        self.plain = nn.Linear(4, 2)
        self.conv.weight.data.normal_(0, 0.01)
        self.fc.weight.data.normal_(0, 0.01)
        nn.init.constant_(self.plain.weight, 0.5)
        for m in self.modules():
            if isinstance(m, nn.Conv1d):
                nn.init.xavier_uniform_(m.weight)

    def forward(self, x):
        return self.plain(self.fc(self.conv(x)))
""")
    flat = " ".join(code.split())
    assert 'initialize( self.conv, "weight"' in flat or 'initialize(self.conv, "weight"' in flat
    assert 'self.fc, "weight"' in flat


def test_a_table_of_classes_and_of_functions_that_build_them_is_a_finding() -> None:
    net = "class N(nn.Module):\n    def __init__(self, n=2):\n        super().__init__()\n        self.l = nn.Linear(n, n)\n\n\n"
    make = "\n\ndef make(name):\n    return TABLE[name]()\n"
    assert rules_of(net + "TABLE = {'a': lambda: N(3), 'b': N}\n" + make) == ["API005"]
    assert rules_of(net + "TABLE = {'a': lambda: N(3), 'b': lambda: N(4)}\n" + make) == []
    assert rules_of(net + "TABLE = {'a': N, 'b': N}\n" + make) == []


def test_what_is_set_on_a_parameter_is_its_metadata() -> None:
    code = check("""
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))
        self.w._no_weight_decay = True
        self.fc = nn.Linear(4, 4)
        self.fc.bias._no_reinit = True
        self.register("v", torch.zeros(4), 0.1)

    def register(self, name, tensor, lr):
        self.register_parameter(name, nn.Parameter(tensor))
        setattr(getattr(self, name), "_optim", {"lr": lr})

    def forward(self, x):
        return self.fc(x) * self.w + self.v
""")
    assert 'self.w.set_metadata("_no_weight_decay", True)' in code
    assert 'self.fc.bias.set_metadata("_no_reinit", True)' in code
    assert 'set_attribute(getattr(self, name), "_optim", {"lr": lr})' in code


@pytest.mark.parametrize("layer", ["nn.Conv2d(0, 4, 3)", "nn.ConvTranspose1d(0, 4, 3)"])
def test_a_convolution_of_no_channels_is_built(layer: str) -> None:
    model, port, _ = both(f"""
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.skip = {layer}

    def forward(self, x):
        return x
""")
    assert port.skip.weight.shape == tuple(model.skip.weight.shape)


def test_an_argument_is_written_of_one_layer_or_another() -> None:
    """What stands for the layer may be a plain function, which takes no notice of it."""
    source = """
class Pool(nn.Module):
    def __init__(self, kind):
        super().__init__()
        if kind == "avg":
            self.pool = nn.AvgPool2d(2)
        else:
            self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        return self.pool(x)


class Picked(Pool):
    def __init__(self, kind):
        super().__init__(kind)
        if kind == "max":
            self.pool.return_indices = True

    def forward(self, x):
        y, index = self.pool(x)
        return x.flatten()[index.flatten()].reshape(y.shape)
"""
    assert rules_of(source) == ["API001"]
    assert rules_of(source.replace("return_indices", "name")) == []


def test_a_class_gets_other_bases() -> None:
    source = """
class Keeper:
    def keep(self, x):
        return x


def keeping(cls):
    cls.__bases__ = (Keeper, *cls.__bases__)
    return cls


class Base(nn.Module):
    def forward(self, x):
        return x


@keeping
class M(Base):
    def forward(self, x):
        return self.keep(x)
"""
    assert rules_of(source) == ["API001"]
