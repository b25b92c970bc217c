"""``train(mode)`` and ``eval()`` as values, and the mode of a module that a decorator asks for."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from flax import nnx

import migrator
from migrator.cli import main
from tests.convert.tools import HEADER, both, convert, rules_of

SOURCE = """
def evaluating(method):
    def inner(model, *args, **kwargs):
        was_training = model.training
        model.eval()
        result = method(model, *args, **kwargs)
        model.train(was_training)
        return result, was_training

    return inner


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5).eval()
        self.act = nn.Sequential(nn.ReLU(), nn.Dropout(0.5)).train(mode=False)

    def forward(self, x):
        return self.act(self.drop(x))

    @evaluating
    def generate(self, x):
        return self(x)

    def set(self, mode):
        self.act.train(mode=mode)
        return self.drop.train(mode), self.train(mode=bool(mode))
"""


def modes(model: object) -> list[bool]:
    """Whether the two dropouts of ``M`` drop."""
    act = model.act  # type: ignore[attr-defined]
    parts = [model.drop, getattr(act, "layers", act)[1]]  # type: ignore[attr-defined]
    return [
        part.training if isinstance(part, torch.nn.Module) else not part.deterministic
        for part in parts
    ]


def test_modes_are_set_and_modules_returned() -> None:
    model, port, _ = both(SOURCE)
    x = torch.randn(8, 8)
    for mode in (None, True, False, True):
        if mode is not None:
            assert model.set(mode) == (model.drop, model)
            drop, whole = port.set(mode)
            assert drop is port.drop
            assert whole is port
        assert modes(port) == modes(model)
        wanted, was = model.generate(x)
        found, here = port.generate(x.numpy())
        assert here == was
        np.testing.assert_allclose(found, wanted)
        assert modes(port) == modes(model)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("m.train(False)", "m.eval()"),
        ("m.train(mode=True)", "m.train()"),
        ("m.eval()", "m.eval()"),
        ("n = m.eval()", "n = set_training(m, False)"),
        ("m.train(flag)", "set_training(m, flag)"),
        ("other.train(mode=flag)", "set_training(other, flag)"),
        ("other.train(True)", "other.train()"),
        ("n = other.train()", "n = other.train()"),
        ("n = other.eval('a + b')", "n = other.eval('a + b')"),
    ],
)
def test_what_is_written(line: str, expected: str) -> None:
    source = f"def f(m: nn.Linear, other, flag: bool):\n    {line}\n"
    assert f"    {expected}\n" in convert(source).code


def test_the_mode_of_what_is_not_known_is_a_finding() -> None:
    source = "def f(model):\n    was = model.training\n    model.eval()\n    return was\n"
    assert rules_of(source) == ["API010"]
    assert rules_of("def f(config):\n    return 2 if config.training else 1\n") == []


def test_a_decorator_of_another_file(tmp_path) -> None:
    head, _, tail = SOURCE.partition("class M")
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "pkg" / "tools.py").write_text(HEADER + head)
    (tmp_path / "pkg" / "model.py").write_text(
        HEADER + "from pkg.tools import evaluating\n\n\nclass M" + tail
    )
    out = tmp_path / "out"
    result = CliRunner().invoke(main, ["convert", str(tmp_path / "pkg"), "-o", str(out), "-q"])
    assert result.exit_code == 0, result.output
    assert "self.deterministic = False" in (out / "model.py").read_text()
    assert migrator.convert_source(HEADER + SOURCE).complete


PROBING = """
class Probe(nn.Module):
    def __init__(self, body: nn.Module, evaluate: bool = False):
        super().__init__()
        self.body = body
        if evaluate:
            self.body.eval()
        training = self.body.training
        if training:
            self.body.eval()
        with torch.no_grad():
            out = self.body(torch.ones(2, 3))
        self.body.train(training)
        self.head = nn.Linear(out.shape[1], 2)

    def forward(self, x):
        return self.head(self.body(x))


class Net(nn.Module):
    def __init__(self, evaluate=False):
        super().__init__()
        body = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
        self.probe = Probe(body, evaluate)

    def forward(self, x):
        return self.probe(x)
"""


@pytest.mark.parametrize("evaluate", [False, True])
def test_a_mode_that_is_kept_only_to_be_put_back(evaluate: bool) -> None:
    source = PROBING.replace("class Net", "class M")
    model, port, _ = both(source, evaluate)
    for part in (
        port.probe.body.layers[1].use_running_average,
        port.probe.body.layers[2].deterministic,
    ):
        assert part is evaluate
    assert model.probe.body.training is not evaluate
    mixed = PROBING.replace("self.body.train(training)", "self.body.train(not training)")
    assert rules_of(mixed) == ["API010"]


FROZEN = """
class Part(nn.Module):
    \"\"\"Keeps its statistics.\"\"\"

    def __init__(self, freeze=True):
        super().__init__()
        self.bn = nn.BatchNorm1d(4)
        self.sub = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
        self.freeze = freeze

    def train(self, mode: bool = True):
        super().train(mode)
        if mode and self.freeze:
            for m in self.modules():
                if isinstance(m, nn.BatchNorm1d):
                    m.eval()
        return self

    def forward(self, x):
        return self.sub(self.bn(x)) * (2 if self.training else 1)


class More(Part):
    def __init__(self):
        super().__init__()
        self.last = nn.BatchNorm1d(4)

    def train(self, mode=True):
        super(More, self).train(mode)
        self.last.train(False)

    def forward(self, x):
        return self.last(super().forward(x))


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()
        self.thawed = Part(False)
        self.more = More()
        self.bn = nn.BatchNorm1d(4)

    def forward(self, x):
        return self.bn(self.more(self.thawed(self.part(x))))

    def set(self, mode):
        self.part.train(mode)
"""


def test_a_train_method_runs_whoever_sets_the_mode() -> None:
    model, port, code = both(FROZEN)
    assert "deterministic = Mode()" in code
    step = nnx.jit(lambda m, x: m(x))
    for number, mode in enumerate((None, True, False, True, "set")):
        if mode == "set":
            model.set(False)
            port.set(False)
        elif mode is not None:
            model.train(mode)
            port.train() if mode else port.eval()
        x = torch.randn(8, 4, generator=torch.Generator().manual_seed(number))
        np.testing.assert_allclose(step(port, x.numpy()), model(x).detach(), atol=1e-5)
        state = migrator.to_state_dict(port)
        for name, value in model.state_dict().items():
            np.testing.assert_allclose(state[name], value, atol=1e-5, err_msg=name)


@pytest.mark.parametrize(
    "line",
    ["self.training = mode", "self.bn.eval()\n        super().train(mode)", "super().train(True)"],
)
def test_a_train_method_of_another_form_is_a_finding(line: str) -> None:
    source = FROZEN.split("class More")[0].replace("super().train(mode)", line)
    assert "API010" in rules_of(source)


def test_a_mode_that_something_is_added_to() -> None:
    model, port, _ = both("""class M(nn.Module):
    export = False

    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, x):
        self.training |= self.export
        return self.l(x) if self.training else self.l(x) + 1
""")
    x = torch.ones(2, 4)
    for export in (False, True):
        model.eval()
        port.eval()
        model.export = port.export = export
        np.testing.assert_allclose(port(x.numpy()), model(x).detach().numpy(), atol=1e-6)
        assert model.training is not port.deterministic is not export
