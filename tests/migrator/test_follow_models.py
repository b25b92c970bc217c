"""``--follow transformers``: the model that a project takes out of the library is converted along with it."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from click.testing import CliRunner
from flax import nnx

import migrator
from migrator.cli import main
from migrator.package.follow import STAND_INS
from migrator.package.model_files import ModelFiles
from migrator.project import convert_path
from tests.migrator.test_stand_ins import library  # noqa: F401

MODEL = '''"""Tiny."""
import os
from typing import Optional

import torch
from torch import nn

from ...activations import ACT2FN
from ...modeling_outputs import BaseModelOutput, TokenClassifierOutput
from ...modeling_utils import PreTrainedModel
from ...utils import auto_docstring
from ..auto import AutoModel
from .configuration_tiny import TinyConfig


def scaled(x, by=FACTOR):
    return x * by


class TinyLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.fc = nn.Linear(config.d, config.d)
        self.act = ACT2FN[config.act]

    def forward(self, x):
        return scaled(self.act(self.fc(x)))


class TinyPreTrainedModel(PreTrainedModel):
    config: TinyConfig
    base_model_prefix = "tiny"


@auto_docstring
class TinyModel(TinyPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.embed = nn.Embedding(config.vocab, config.d)
        self.layers = nn.ModuleList([TinyLayer(config) for _ in range(2)])
        self.post_init()

    @auto_docstring
    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return BaseModelOutput(last_hidden_state=x)


class TinyForTokenClassification(TinyPreTrainedModel):
    """What cannot be converted, and is not asked for."""

    def __init__(self, config):
        super().__init__(config)
        self.tiny = AutoModel.from_config(config)
        self.post_init()

    def forward(self, ids):
        x = self.tiny(ids)[0]
        return TokenClassifierOutput(logits=x[x > 0].tolist())


__all__ = ["TinyForTokenClassification", "TinyModel"]
'''.replace("by=FACTOR", "by=2.0")
CONFIG = '''"""Its configuration."""
from ... import PretrainedConfig


class TinyConfig(PretrainedConfig):
    def __init__(self, vocab=11, d=6, act="silu"):
        super().__init__()
        self.vocab, self.d, self.act = vocab, d, act

    @classmethod
    def from_pretrained(cls, name, **kwargs):
        return cls(d=int(name))
'''
NET = """
import torch
from torch import nn
from transformers import TinyConfig, TinyModel


class Net(nn.Module):
    def __init__(self, d=6):
        super().__init__()
        self.body = TinyModel(TinyConfig(d=d))
        self.head = nn.Linear(d, 3)

    def forward(self, ids):
        return self.head(self.body(ids).last_hidden_state)
"""


@pytest.fixture
def installed(library: Path) -> Path:  # noqa: F811
    """The library with a model, a configuration, and the names of both at its top."""
    place = library / "lib/transformers/models/tiny"
    place.mkdir(parents=True)
    other = (
        place.parent / "tiny_other"
    )  # of which the name begins alike, and has a definition of another name
    other.mkdir()
    (other / "modeling_tiny_other.py").write_text("def elsewhere(x):\n    return x\n")
    for folder in (place, place.parent):
        (folder / "__init__.py").touch()
    (place.parent / "auto").mkdir()
    (place.parent / "auto/__init__.py").write_text("class AutoModel:\n    pass\n")
    (place / "modeling_tiny.py").write_text(MODEL)
    (place / "configuration_tiny.py").write_text(CONFIG)
    with (library / "lib/transformers/__init__.py").open("a") as file:
        file.write(
            "\nfrom .models.tiny.configuration_tiny import TinyConfig\n"
            "from .models.tiny.modeling_tiny import TinyForTokenClassification, TinyLayer, TinyModel\n"
        )
    return library


def ported(place: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any, Any]:
    (place / "in").mkdir()
    (place / "in/net.py").write_text(text)
    done = convert_path([place / "in/net.py"], place / "out/port.py", follow=["transformers"])
    monkeypatch.syspath_prepend(str(place / "in"))
    monkeypatch.syspath_prepend(str(place / "out"))
    return done, importlib.import_module("net"), importlib.import_module("port")


def equal(model: Any, port: Any) -> None:
    migrator.load_state_dict(port, model.state_dict())
    ids = np.array([[3, 1, 0], [5, 2, 2]])
    want, got = model(torch.tensor(ids)), port(jnp.asarray(ids))
    np.testing.assert_allclose(got, want.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_a_model_of_the_library(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done, theirs, ours = ported(installed, NET, monkeypatch)
    assert done.complete, done.findings
    equal(theirs.Net(), ours.Net(rngs=nnx.Rngs(0)))
    code = (installed / "out/transformers_flax/models/tiny/modeling_tiny.py").read_text()
    assert "class TinyModel(TinyPreTrainedModel)" in code
    assert "ForTokenClassification" not in code
    assert "AutoModel" not in code
    assert "\n\n\n\n" not in code
    assert "from transformers.models.tiny.configuration_tiny import TinyConfig\n" in code


def test_a_part_of_it_by_the_name_of_its_file(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = NET.replace(
        "import TinyConfig, TinyModel",
        "import TinyConfig\nfrom transformers.models.tiny.modeling_tiny import TinyLayer, scaled",
    )
    text = text.replace(
        "self.body = TinyModel", "self.emb = nn.Embedding(11, d)\n        self.body = TinyLayer"
    )
    text = text.replace("self.body(ids).last_hidden_state", "scaled(self.body(self.emb(ids)), 0.5)")
    done, theirs, ours = ported(installed, text, monkeypatch)
    assert done.complete, done.findings
    equal(theirs.Net(), ours.Net(rngs=nnx.Rngs(0)))
    code = (installed / "out/transformers_flax/models/tiny/modeling_tiny.py").read_text()
    assert "class TinyModel" not in code


def test_a_model_that_was_saved(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = NET.replace("TinyModel(TinyConfig(d=d))", 'TinyModel.from_pretrained("6")')
    done, _, ours = ported(installed, text, monkeypatch)
    assert done.complete, done.findings
    (said,) = [f for f in done.findings if "from_pretrained" in f.message]
    assert (said.severity, said.blocks) == ("warning", False)
    port = ours.Net(rngs=nnx.Rngs(0))
    assert port.body.config.d == 6
    assert type(port.body.config).__name__ == "TinyConfig"


def test_what_cannot_be_converted_is_a_finding_in_the_library(installed: Path) -> None:
    text = NET.replace("TinyModel", "TinyForTokenClassification")
    (installed / "net.py").write_text(text)
    done = convert_path([installed / "net.py"], None, follow=["transformers"])
    found = {(Path(f.path).name, f.rule) for f in done.findings if f.blocks}
    assert ("modeling_tiny.py", "API004") in found
    lines = {f.line for f in done.findings if f.rule.startswith("DYN")}
    assert lines == {MODEL[: MODEL.index("return TokenClassifierOutput")].count("\n") + 1}


def test_without_the_option_the_finding_names_it(installed: Path) -> None:
    (installed / "net.py").write_text(NET)
    result = CliRunner().invoke(
        main, ["convert", str(installed / "net.py"), "-o", str(installed / "o.py")]
    )
    assert result.exit_code == 1
    assert "--follow transformers" in result.output


def test_names_are_looked_for_in_their_own_package(installed: Path) -> None:
    files = ModelFiles(
        "transformers",
        STAND_INS / "transformers",
        "transformers",
        installed=installed / "lib/transformers",
    )
    assert files.has("transformers.elsewhere")
    assert files.has("transformers.models.tiny_other.elsewhere")
    assert not files.has("transformers.models.tiny.elsewhere")
