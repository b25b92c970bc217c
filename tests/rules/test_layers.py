"""Every layer definition computes what torch computes, on the samples of torch's own module database.

A tenth of the classes runs by default, another one each day, a few samples each; ``MODULEDB_SEED=3`` picks one,
and ``make sweep`` runs all classes on all samples. ``python -m tests.rules.moduledb`` reports in detail.
"""

from __future__ import annotations

import datetime
import inspect
import os
import pydoc
import zlib
from typing import Any

import pytest

from rules import definitions
from rules.registry import LAYERS
from tests.rules import moduledb

moduledb.definitions()
SEED = int(os.environ.get("MODULEDB_SEED", datetime.date.today().toordinal() % 10))
INFOS = moduledb.infos()
CHOSEN = [name for name in INFOS if zlib.crc32(name.encode()) % 10 == SEED]
STATE_ONLY = {"torch.nn.Embedding.from_pretrained"}


def torch_class(name: str) -> Any:
    return pydoc.locate(name)


@pytest.mark.parametrize("name", CHOSEN)
def test_layer_agrees_with_torch_on_some_samples(name: str) -> None:
    outcome = moduledb.check(INFOS[name], limit=3, seed=SEED)
    assert outcome.status in ("verified", "flagged"), outcome.why


def test_every_class_of_the_database_has_a_definition() -> None:
    assert [name for name in INFOS if f"torch.{name}" not in LAYERS] == []


OF_TORCH = sorted(name for name in LAYERS if not name.startswith("timm_layers."))
"""timm is not asked for here: tests/convert/test_parts_of_timm.py has what it documents."""


@pytest.mark.parametrize("name", OF_TORCH)
def test_definitions_take_torchs_arguments(name: str) -> None:
    target = torch_class(name)
    wanted = inspect.signature(target)
    if name.startswith(("torch.nn.LSTM", "torch.nn.GRU", "torch.nn.RNN")) and "Cell" not in name:
        return  # their torch signature is (*args, **kwargs)
    rules = definitions.layers(name)
    known = {p.name for rule in rules for p in rule.params}
    missing = [
        p.name
        for p in wanted.parameters.values()
        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and p.name not in known
    ]
    assert missing in ([], ["threshold"]), f"{name} takes {missing}"


def test_defaults_are_torchs() -> None:
    differ = []
    for name in OF_TORCH:
        ours = inspect.signature(LAYERS[name][0].function).parameters
        for parameter in inspect.signature(torch_class(name)).parameters.values():
            mine = ours.get(parameter.name)
            if mine is None or parameter.default is parameter.empty or callable(parameter.default):
                continue
            if mine.default != parameter.default:
                differ.append(f"{name}({parameter.name}={mine.default}), not {parameter.default}")
    assert differ == []
