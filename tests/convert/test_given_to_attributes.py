"""Parameters and tensors that become attributes in a roundabout way: registered as in torch, shared, or refused."""

from __future__ import annotations

import datetime
import os
import random

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import HEADER, REFUSED_BY_TORCH, sides

SEED = int(os.environ.get("PROGRAMS_SEED", datetime.date.today().toordinal()))
X = torch.randn(3, 4, generator=torch.Generator().manual_seed(3))
PROGRAM = """import copy


def make():
    return nn.Parameter(torch.ones(4))


class M{number}(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        {lines}

    def keep(self, name, value):
        setattr(self, name, value)

    def forward(self, x):
        return self.fc(x) * getattr(self, "a") + 1


"""
GIVEN = {
    "a new one": "nn.Parameter(torch.ones(4))",
    "of a function": "make()",
    "a name": "p = nn.Parameter(torch.ones(4)); P = p",
    "a name of a function": "p = make(); P = p",
    "of a list": "ps = [nn.Parameter(torch.ones(4))]; P = ps[0]",
    "of a dict": "ps = {'a': nn.Parameter(torch.ones(4))}; P = ps['a']",
    "of several": "p, q = nn.Parameter(torch.ones(4)), 1; P = p",
    "by condition": "p = nn.Parameter(torch.ones(4)) if True else None; P = p",
    "a copy": "p = nn.Parameter(torch.ones(4)); P = copy.deepcopy(p)",
    "a copy of a layer's": "copy.deepcopy(self.fc.bias)",
    "a buffer": "self.register_buffer('b', torch.ones(4) * 3); p = self.b; P = p",
    "a copy of a buffer": "self.register_buffer('b', torch.ones(4) * 3); P = copy.deepcopy(self.b)",
    "a layer's": "self.fc.bias",
    "a name of a layer's": "p = self.fc.bias; P = p",
    "an own one": "self.q = nn.Parameter(torch.ones(4)); P = self.q",
    "a name of an own one": "p = nn.Parameter(torch.ones(4)); self.q = p; P = p",
}
"""What an attribute is given, after the lines before it."""
WAYS = [
    "self.a = P",
    "setattr(self, 'a', P)",
    "name = 'a'; setattr(self, name, P)",
    "for name in ('a',): setattr(self, name, P)",
    "self.a = self.c = P",
    "self.a, self.c = P, 2",
    "self.register_parameter('a', P)",
    "self.__setattr__('a', P)",
    "for v in [P]: self.a = v",
    "for v in [P]: setattr(self, 'a', v)",
    "for name, v in {'a': P}.items(): setattr(self, name, v)",
    "for name, v in zip('a', [P]): self.register_parameter(name, v)",
    "if (w := P) is not None: self.a = w",
    "self.keep('a', P)",
    "self.keep(name='a', value=P)",
]
TENSORS = {
    "a dict": "ps = {'a': torch.ones(4), 'c': torch.arange(4.0)}; for k, v in ps.items(): DO",
    "one twice": "w = torch.ones(4); ps = {'a': w, 'c': w}; for k, v in ps.items(): DO",
    "put into": "w = torch.ones(4); ps = {'a': w}; ps['c'] = w; for k, v in ps.items(): DO",
    "updated": "w = torch.ones(4); ps = {'a': w}; ps.update(c=w); for k, v in ps.items(): DO",
    "zipped": "ps = [torch.ones(4), torch.arange(4.0)]; for k, v in zip('ac', ps): DO",
    "a list of one": "ps = [torch.ones(4)] * 2; for k, v in zip('ac', ps): DO",
    "pairs": "for k, v in [('a', torch.ones(4)), ('c', torch.arange(4.0))]: DO",
    "pairs of one": "w = torch.ones(4); for k, v in [('a', w), ('c', w)]: DO",
    "a part": "w = torch.ones(4); for k, v in (('a', w), ('c', w[:2])): DO",
    "rows": "w = torch.ones(2, 4); for k, v in zip('ac', w): DO",
    "by another name": "ps = {'a': torch.ones(4), 'c': torch.ones(4)}; qs = ps; qs['c'] = qs['a']; for k, v in ps.items(): DO",
}
MAKING = [
    "self.register_buffer(k, v)",
    "self.register_parameter(k, nn.Parameter(v))",
    "setattr(self, k, nn.Parameter(v))",
]


def _lines(text: str) -> str:
    """The statements of a constructor that are written in a line, each in one of its own."""
    return text.replace("; ", "\n        ")


def _programs() -> dict[str, str]:
    found = {}
    for given in GIVEN.values():
        *before, value = given.split("; ")
        for way in WAYS:
            lines = "; ".join([*before, way.replace("P", value.removeprefix("P = "))])
            found[lines] = PROGRAM.replace("{lines}", _lines(lines))
    for tensors in TENSORS.values():
        for made in MAKING:
            lines = tensors.replace("DO", made)
            found[lines] = PROGRAM.replace("{lines}", _lines(lines))
    return found


PROGRAMS = _programs()


def _compare(programs: list[str]) -> int:
    """How many constructors are converted; each of them registers what torch's does, and computes the same with it."""
    text, places = HEADER, []
    for number, lines in enumerate(programs):
        first = text.count("\n")
        text += PROGRAMS[lines].replace("{number}", str(number))
        places.append((first, text.count("\n")))
    told, theirs, ours = sides(text)
    found = 0
    for number, (first, last) in enumerate(places):
        if any(first < line <= last for line in told):
            continue
        try:
            model = theirs[f"M{number}"]()
            want = model(X)
        except REFUSED_BY_TORCH:
            continue
        port = ours[f"M{number}"](rngs=nnx.Rngs(0))
        migrator.load_state_dict(port, model.state_dict())
        assert set(migrator.to_state_dict(port)) == set(model.state_dict()), programs[number]
        params = nnx.state(port, nnx.Param)
        size = sum(one.size for one in nnx.to_pure_dict(params).values() if hasattr(one, "size"))
        own = [p for n, p in model.named_parameters() if "." not in n]
        assert size == sum(p.numel() for p in own), programs[number]
        got = port(jnp.asarray(X.numpy()))
        np.testing.assert_allclose(got, want.detach(), atol=1e-5, err_msg=programs[number])
        found += 1
    return found


def test_what_attributes_are_given_today() -> None:
    assert _compare(random.Random(SEED).sample(sorted(PROGRAMS), 40))


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(5))
def test_all_that_attributes_are_given(part: int) -> None:
    assert _compare(sorted(PROGRAMS)[part::5])


@pytest.mark.parametrize("way", WAYS[:6])
def test_a_parameter_of_a_list_is_converted(way: str) -> None:
    lines = "ps = [nn.Parameter(torch.ones(4))]; " + way.replace("P", "ps[0]")
    assert _compare([lines]) == 1


@pytest.mark.parametrize("made", MAKING)
@pytest.mark.parametrize("tensors", ["a dict", "zipped", "pairs"])
def test_each_of_several_tensors_is_registered(tensors: str, made: str) -> None:
    assert _compare([TENSORS[tensors].replace("DO", made)]) == 1


@pytest.mark.parametrize("made", MAKING)
@pytest.mark.parametrize(
    "tensors", [one for one in TENSORS if one not in ("a dict", "zipped", "pairs")]
)
def test_tensors_that_share_memory_are_refused(tensors: str, made: str) -> None:
    assert _compare([TENSORS[tensors].replace("DO", made)]) == 0
