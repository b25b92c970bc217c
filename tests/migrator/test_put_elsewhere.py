"""Buffers that one place registers and another gives new values: torch's results, and its state."""

from __future__ import annotations

import datetime
import os
import random
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from migrator.usercode import UserCode
from tests.convert.tools import REFUSED_BY_TORCH
from tests.migrator.test_packages import convert

SEED = int(os.environ.get("PROGRAMS_SEED", datetime.date.today().toordinal()))
X = torch.linspace(-1, 1, 12).reshape(3, 4)
HEAD = "import torch\nfrom torch import nn\n\n\n"
MAIN = """class M{number}({bases}):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.bn = nn.BatchNorm1d(4)
        self.register_buffer("b", torch.arange(4.0))
        self.register_buffer("n", torch.tensor(3))
        for i in range(2):
            self.register_buffer(f"made_{{i}}", torch.zeros(4))

    def forward(self, x):
        y = {call}
        return self.bn(self.fc(x)) + self.b + self.n + y


"""
HOLDERS = {
    "a mixin": ("class Up{number}:\n    def up(self, x):\n{lines}", "Up{number}, nn.Module"),
    "a mixin behind": ("class Up{number}:\n    def up(self, x):\n{lines}", "nn.Module, Up{number}"),
    "a base": ("class Up{number}(nn.Module):\n    def up(self, x):\n{lines}", "Up{number}"),
    "a base of a base": (
        "class Low{number}(nn.Module):\n    def up(self, x):\n{lines}class Up{number}(Low{number}):\n    pass\n",
        "Up{number}",
    ),
    "a function": ("def up{number}(m, x):\n{lines}", "nn.Module"),
    "a function of a module": ("def up{number}(m: nn.Module, x):\n{lines}", "nn.Module"),
}
LINES = [
    "self.b = x.mean(0)",
    "self.b += x.mean(0)",
    "self.b = self.b * 0.9 + 0.1 * x[0]",
    "self.n = self.n + 1",
    "self.n += 1",
    "self.n *= 2",
    "self.b = self.b.long()",
    "self.b = x.sum()",
    "self.b: torch.Tensor = x[0]",
    "setattr(self, 'b', x[0])",
    "setattr(self, 'b', getattr(self, 'b') + 1)",
    "self.__setattr__('b', x[0])",
    "for k in ('b', 'n'): setattr(self, k, getattr(self, k) + 1)",
    "for i in range(2): setattr(self, f'made_{i}', x[i])",
    "self.made_1 = x[1]",
    "for i in range(3): self.b = self.b + i",
    "self.b = torch.zeros_like(self.b)",
    "with torch.no_grad(): self.b = self.b * 0.5 + x[0] * 0.5",
    "old = self.b; self.b = x.mean(0); return self.b - old",
    "old = self.b; self.b += x.mean(0); return self.b - old",
    "old = self.b; self.b = old * 2; self.b = old",
    "self.b = x[0].clone(); self.b.add_(1)",
    "self.b = x[0]; self.b += 1",
    "self.b, self.n = x[0], self.n + 1",
    "self.bn.running_mean = x.mean(0)",
    "self.bn.running_mean = self.bn.running_mean * 0.5 + x[0]",
    "self.bn.running_var += x.var(0)",
    "self.bn.num_batches_tracked += 1",
    "setattr(self.bn, 'running_mean', x.mean(0))",
    "bn = self.bn; bn.running_mean = torch.zeros(4)",
    "return self.b * 2",
    "return torch.stack([self.b, x[0]]).sum(0)",
]
PROGRAMS = [(one, line) for one in HOLDERS for line in LINES]


def _lines(text: str, function: bool) -> str:
    text = text if "return" in text else f"{text}; return x"
    lines = "".join(f"        {one.strip()}\n" for one in text.split(";"))
    return lines.replace("self", "m") if function else lines


def _compare(path: Path, programs: list[tuple[str, str]], apart: bool) -> int:
    """How many of some programs are converted; each of them has torch's results and state."""
    lib, net, places = HEAD, HEAD, []
    net += "from .lib import *\n\n\n" if apart else ""
    for number, (holder, text) in enumerate(programs):
        function = holder.startswith("a function")
        made, bases = HOLDERS[holder]
        made = made.format(number=number, lines=_lines(text, function)) + "\n\n"
        first = lib.count("\n"), net.count("\n")
        lib, net = (lib + made, net) if apart else (lib, net + made)
        call = f"up{number}(self, x * 1)" if function else "self.up(x * 1)"
        net += MAIN.format(number=number, bases=bases.format(number=number), call=call)
        places.append((first, (lib.count("\n"), net.count("\n"))))
    result = convert(path, {"lib.py": lib, "net.py": net}, "flaxed")
    names = ["lib.py", "net.py"]
    told = [(names.index(Path(f.path).name), f.line) for f in result.findings if f.blocks]
    theirs = UserCode(path / "src").load(path / "src/pkg/net.py")
    ours = UserCode(path / "out").load(path / "out/flaxed/net.py")
    found = 0
    for number, (first, last) in enumerate(places):
        if not any(first[file] < line <= last[file] for file, line in told):
            found += _agree(
                getattr(theirs, f"M{number}"), getattr(ours, f"M{number}"), programs[number]
            )
    return found


def _agree(model: type, port: type, program: tuple[str, str]) -> bool:
    """Check that both give the same in two calls and keep the same; False where torch does not run it either."""
    torch.manual_seed(0)
    module = model()
    begin = {name: value.clone() for name, value in module.state_dict().items()}
    try:
        want = [module(one.clone()).detach().numpy().copy() for one in (X, X * 2)]
    except REFUSED_BY_TORCH:
        return False
    for jit in (False, True):
        made = port(rngs=nnx.Rngs(0))
        migrator.load_state_dict(made, begin)
        run = nnx.jit(lambda m, x: m(x)) if jit else lambda m, x: m(x)
        for one, expected in zip((X, X * 2), want, strict=True):
            got = run(made, jnp.asarray(one.numpy()))
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5, err_msg=str(program))
        kept, state = migrator.to_state_dict(made), module.state_dict()
        assert state.keys() <= kept.keys(), program
        for name, value in state.items():
            np.testing.assert_allclose(
                kept[name], value, rtol=1e-4, atol=1e-5, err_msg=str(program)
            )
            assert kept[name].dtype.kind == value.numpy().dtype.kind, program
    return True


@pytest.mark.parametrize("apart", [False, True])
def test_buffers_of_others_today(tmp_path: Path, apart: bool) -> None:
    _compare(tmp_path, random.Random(SEED).sample(PROGRAMS, 10), apart)


@pytest.mark.sweep
@pytest.mark.parametrize("apart", [False, True])
def test_all_buffers_of_others(tmp_path: Path, apart: bool) -> None:
    for first in range(0, len(PROGRAMS), 40):
        _compare(tmp_path / str(first), PROGRAMS[first : first + 40], apart)


@pytest.mark.parametrize("apart", [False, True])
def test_buffers_of_others_are_converted(tmp_path: Path, apart: bool) -> None:
    lines = LINES[:4]
    assert _compare(tmp_path, [(one, line) for one in HOLDERS for line in lines], apart) == 24
