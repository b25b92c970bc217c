"""Model files that import of transformers: what they import of it stands here in plain torch."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
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
from migrator.project import analyze_paths, convert_path

HEAD = '''"""A model."""
import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.activations import ACT2FN
from transformers.modeling_outputs import (
    BaseModelOutput,
    CausalLMOutput,
)
from transformers.utils import add_start_docstrings


class NetConfig(PretrainedConfig):
    def __init__(self, vocab_size=20, d=8, act="gelu_new", std=0.3, tie_word_embeddings=True):
        self.vocab_size, self.d, self.act, self.std = vocab_size, d, act, std
        super().__init__(tie_word_embeddings=tie_word_embeddings)


class NetPreTrainedModel(PreTrainedModel):
    config_class = NetConfig
    base_model_prefix = "net"

    def _init_weights(self, module):
        if isinstance(module, nn.Linear):
            module.weight.data.normal_(mean=0.0, std=self.config.std)
            if module.bias is not None:
                module.bias.data.zero_()
        elif isinstance(module, nn.Embedding):
            module.weight.data.normal_(mean=0.0, std=self.config.std)
            if module.padding_idx is not None:
                module.weight.data[module.padding_idx].zero_()


@add_start_docstrings("A net")
class NetModel(NetPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.embed = nn.Embedding(config.vocab_size, config.d, 0)
        self.inner = nn.Linear(config.d, config.d)
        self.act = ACT2FN[config.act]
        self.post_init()

    def get_input_embeddings(self):
        return self.embed

    def set_input_embeddings(self, value):
        self.embed = value

    def forward(self, ids, mask=None):
        x = self.act(self.inner(self.embed(ids)))
        if mask is not None:
            x = x * self.get_extended_attention_mask(mask, ids.shape)[:, 0, 0, :, None].exp()
        heads = self.get_head_mask(None, 2)
        assert heads == [None, None]
        return BaseModelOutput(last_hidden_state=x, hidden_states=(x, x))
'''
LM = """

class NetForCausalLM(NetPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.net = NetModel(config)
        self.lm_head = nn.Linear(config.d, config.vocab_size{bias})
        self.post_init()

    def get_output_embeddings(self):
        return self.lm_head

    def set_output_embeddings(self, new):
        self.lm_head = new

    def forward(self, ids):
        outputs = self.net(ids)
        return CausalLMOutput(logits=self.lm_head(outputs[0]), hidden_states=outputs.hidden_states)
"""
PART = """

class NetHead(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.inner = nn.Linear(config.d, config.d)
        self.decoder = nn.Linear(config.d, config.vocab_size, bias=False)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        # one bias under two names
        self.decoder.bias = self.bias

    def _tie_weights(self):
        {tie}

    def forward(self, x):
        return self.decoder(self.inner(x))


class NetForCausalLM(NetPreTrainedModel):
    _tied_weights_keys = ["cls.decoder.bias", "cls.decoder.weight"]

    def __init__(self, config):
        super().__init__(config)
        self.net = NetModel(config)
        self.cls = NetHead(config)
        self.post_init()

    def get_output_embeddings(self):
        return self.cls.decoder

    def forward(self, ids):
        return CausalLMOutput(logits=self.cls(self.net(ids)[0]))
"""
REPEATED = (
    "self.decoder.bias = self.bias",
    "if self.decoder.bias.device.type == 'meta':\n            self.decoder.bias = self.bias\n        else:\n            self.bias = self.decoder.bias",
)
LIBRARY = """

class PretrainedConfig:
    is_decoder = False

    def __init__(self, tie_word_embeddings=True):
        self.tie_word_embeddings = tie_word_embeddings

    def get_text_config(self, decoder=False):
        return self


from .modeling_utils import PreTrainedModel


def post_init(self):
    self.apply(self._init_weights)
    if hasattr(self, "get_output_embeddings") and self.config.tie_word_embeddings:
        self.get_output_embeddings().weight = self.base_model.get_input_embeddings().weight


PreTrainedModel.post_init = post_init
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A library of that name which does with a model what transformers does."""
    yield from imported(tmp_path, monkeypatch)


def imported(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """See ``library``."""
    shutil.copytree(STAND_INS / "transformers", place / "lib/transformers")
    with (place / "lib/transformers/__init__.py").open("a") as file:
        file.write(LIBRARY)
    monkeypatch.syspath_prepend(str(place / "lib"))
    yield place
    for name in list(sys.modules):
        if name.partition(".")[0] in ("transformers", "transformers_flax", "net", "port"):
            del sys.modules[name]


def both(place: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """The module of a text, and that of its port."""
    (place / "in").mkdir()
    (place / "in/net.py").write_text(text)
    done = convert_path([place / "in/net.py"], place / "out/port.py")
    assert done.complete, done.findings
    monkeypatch.syspath_prepend(str(place / "in"))
    monkeypatch.syspath_prepend(str(place / "out"))
    return importlib.import_module("net"), importlib.import_module("port")


@pytest.mark.parametrize("act", ["gelu_new", "silu", "relu2", "quick_gelu"])
def test_a_base_model(act: str, library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs, ours = both(library, HEAD, monkeypatch)
    model = theirs.NetModel(theirs.NetConfig(act=act))
    port = ours.NetModel(ours.NetConfig(act=act), rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, model.state_dict())
    ids, mask = np.array([[3, 1, 0], [5, 2, 2]]), np.array([[1, 1, 0], [1, 0, 1]])
    want = model(torch.tensor(ids), torch.tensor(mask))
    got = port(jnp.asarray(ids), jnp.asarray(mask))
    for one in (got.last_hidden_state, got[0], got["last_hidden_state"], got[1][1]):
        np.testing.assert_allclose(one, want[0].detach().numpy(), rtol=1e-5, atol=1e-6)
    assert list(got.keys()) == list(want.keys()) == ["last_hidden_state", "hidden_states"]
    assert len(got.to_tuple()) == len(want.to_tuple()) == 2


HEADS = {
    "with a bias": LM.format(bias=""),
    "without one": LM.format(bias=", bias=False"),
    "of a part": PART.format(tie=REPEATED[0]),
    "of a part that may be on no device": PART.format(tie=REPEATED[1]),
}


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("tied", [True, False])
def test_a_head_is_tied_where_the_configuration_says_so(
    tied: bool, head: str, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs, ours = both(library, HEAD + HEADS[head], monkeypatch)
    model = theirs.NetForCausalLM(theirs.NetConfig(tie_word_embeddings=tied))
    port = ours.NetForCausalLM(ours.NetConfig(tie_word_embeddings=tied), rngs=nnx.Rngs(0))
    drawn = np.asarray(port.net.embed.embedding[...])
    assert not drawn[0].any()
    assert 0.2 < drawn[1:].std() < 0.4  # by _init_weights, not as an Embedding is drawn
    migrator.load_state_dict(port, model.state_dict())
    ids = np.array([[3, 1, 0], [5, 2, 2]])

    def loss(port: Any) -> Any:
        return jnp.square(port(jnp.asarray(ids)).logits).sum()

    want = model(torch.tensor(ids)).logits
    want.square().sum().backward()
    got = nnx.jit(lambda port, ids: port(ids).logits)(port, jnp.asarray(ids))
    np.testing.assert_allclose(got, want.detach().numpy(), rtol=1e-4, atol=1e-5)
    grads = migrator.to_state_dict(nnx.grad(loss)(port), like=port)
    assert len(list(model.parameters())) == len(nnx.to_flat_state(nnx.state(port, nnx.Param)))
    for name, parameter in model.named_parameters():
        np.testing.assert_allclose(grads[name], parameter.grad, rtol=1e-3, atol=1e-4)


def test_a_head_is_tied_to_a_part_that_draws_otherwise(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = HEAD + LM.format(bias=", bias=False").replace(
        "NetModel(config)", "NetModel(NetConfig(std=2.0))"
    )
    told = "        if type(outputs) is tuple:\n            raise TypeError(f'{type(outputs)}')\n"
    text = text.replace("        return CausalLM", f"{told}        return CausalLM")
    theirs, ours = both(library, text, monkeypatch)
    model, port = (
        theirs.NetForCausalLM(theirs.NetConfig()),
        ours.NetForCausalLM(ours.NetConfig(), rngs=nnx.Rngs(0)),
    )
    assert 1.0 < np.asarray(port.net.embed.embedding[...])[1:].std() < 3.0
    assert len(list(model.parameters())) == len(nnx.to_flat_state(nnx.state(port, nnx.Param)))
    migrator.load_state_dict(port, model.state_dict())
    ids = np.array([[3, 1, 0], [5, 2, 2]])
    want = model(torch.tensor(ids)).logits.detach().numpy()
    np.testing.assert_allclose(port(jnp.asarray(ids)).logits, want, rtol=1e-4, atol=1e-5)


def test_outputs_keep_names_and_keys_in_step(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = "        out = BaseModelOutput(last_hidden_state=x)\n        out.last_hidden_state = out[0] * 2\n        out['hidden_states'] = (x,)\n        return out\n"
    text = HEAD[: HEAD.rindex("        return BaseModelOutput")] + more
    theirs, ours = both(library, text, monkeypatch)
    model, port = (
        theirs.NetModel(theirs.NetConfig()),
        ours.NetModel(ours.NetConfig(), rngs=nnx.Rngs(0)),
    )
    migrator.load_state_dict(port, model.state_dict())
    ids = np.array([[3, 1, 0]])
    want, got = model(torch.tensor(ids)), port(jnp.asarray(ids))
    for one, other in ((got[0], want[0]), (got.hidden_states[0], want[1][0])):
        np.testing.assert_allclose(one, other.detach().numpy(), rtol=1e-5, atol=1e-6)
    assert list(got.keys()) == list(want.keys())


def test_a_class_of_the_file_that_unties_is_a_finding(tmp_path: Path) -> None:
    heir = "\n\nclass Untied(NetForCausalLM):\n    def get_output_embeddings(self):\n        return None\n"
    (tmp_path / "net.py").write_text(HEAD + LM.format(bias="") + heir)
    found = [f.rule for f in convert_path([tmp_path / "net.py"], None).findings if f.blocks]
    assert found
    assert set(found) == {"API004"}


def test_a_class_of_another_file_that_unties_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg/__init__.py").touch()
    (tmp_path / "pkg/net.py").write_text(HEAD + LM.format(bias=""))
    heir = "from .net import NetForCausalLM\n\n\nclass Untied(NetForCausalLM):\n    def get_output_embeddings(self):\n        return None\n\n\nclass More(NetForCausalLM):\n    def more(self):\n        return 1\n"
    (tmp_path / "pkg/heir.py").write_text(heir)
    done = convert_path([tmp_path / "pkg"], None)
    found = [(Path(f.path).name, f.rule, f.line) for f in done.findings if f.blocks]
    assert found == [("heir.py", "API004", 4)]


def test_a_loss_that_a_model_chooses_is_a_finding(tmp_path: Path) -> None:
    text = (HEAD + LM.format(bias="")).replace(
        "        self.lm_head = nn",
        "        self.loss_type = 'ForMaskedLM'\n        self.lm_head = nn",
    )
    (tmp_path / "net.py").write_text(text)
    found = [f.rule for f in convert_path([tmp_path / "net.py"], None).findings if f.blocks]
    assert found == ["API004"]


def test_setters_of_embeddings_refuse(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, ours = both(library, HEAD + LM.format(bias=""), monkeypatch)
    port = ours.NetForCausalLM(ours.NetConfig(), rngs=nnx.Rngs(0))
    with pytest.raises(NotImplementedError, match="those of its configuration"):
        port.set_output_embeddings(None)


@pytest.mark.parametrize("elsewhere", [True, False])
def test_who_sets_embeddings_anew_is_told(elsewhere: bool, tmp_path: Path) -> None:
    more = "\n\ndef grown(model: NetForCausalLM, layer):\n    model.set_output_embeddings(layer)\n    return model\n"
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg/__init__.py").touch()
    text = HEAD + LM.format(bias="")
    (tmp_path / "pkg/net.py").write_text(text if elsewhere else text + more)
    other = "from .net import NetForCausalLM\n" + more if elsewhere else ""
    (tmp_path / "pkg/other.py").write_text(other)
    done = convert_path([tmp_path / "pkg"], tmp_path / "out")
    found = {(Path(f.path).name, f.rule) for f in done.findings if f.blocks}
    if elsewhere:
        assert found == {("other.py", "API004")}
    else:  # what a file does with its own setters is converted like all else
        assert "raise NotImplementedError" not in (tmp_path / "out/net.py").read_text()


OTHERWISE = {
    "an own way to tie": "    def tie_weights(self):\n        pass\n",
    "a head that newer releases tie": None,
    "a part of the base that stands nowhere": "    def more(self):\n        return self.resize_position_embeddings(3)\n",
    "a property of the base": "    def more(self):\n        return self.name_or_path\n",
}


@pytest.mark.parametrize("name", OTHERWISE)
def test_what_is_not_known_of_the_base_is_a_finding(name: str, tmp_path: Path) -> None:
    more = OTHERWISE[name]
    text = HEAD + LM.format(bias="")
    if more is None:
        text = text.replace(
            "    def get_output_embeddings(self):\n        return self.lm_head\n", ""
        )
    (tmp_path / "net.py").write_text(text + (f"\n{more}" if more else ""))
    found = [f for f in convert_path([tmp_path / "net.py"], None).findings if f.blocks]
    assert [f.rule for f in found] == ["API004"]
    assert found[0].path == str(tmp_path / "net.py")


PARTS = """

class Part(NetPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.inner = nn.Linear(40, 40)
        self.post_init()
{own}

class Outer(NetPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.part = {part}
        self.linear = nn.Linear(40, 40)
        self.post_init()
"""
ONES = """
    def _init_weights(self, module):
        if isinstance(module, nn.Linear):
            module.weight.data.fill_(1.0)
"""


@pytest.mark.parametrize(
    ("part", "own", "drawn"),
    [
        ("Part(config)", "", (0.0, 0.3)),
        ("Part(NetConfig(std=2.0))", "", (0.0, 2.0)),
        ("Part(config)", ONES, (1.0, 0.0)),
        ("nn.ModuleList([Part(NetConfig(std=2.0))])", "", None),
    ],
)
def test_a_part_that_is_a_model_draws_its_own_weights(
    part: str,
    own: str,
    drawn: tuple[float, float] | None,
    library: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = HEAD + PARTS.format(part=part, own=own)
    if drawn is None:
        (library / "net.py").write_text(text)
        done = convert_path([library / "net.py"], None)
        assert {f.rule for f in done.findings if f.blocks} == {"API004"}
        return
    _, ours = both(library, text, monkeypatch)
    port = ours.Outer(ours.NetConfig(), rngs=nnx.Rngs(0))
    weight = np.asarray(port.part.inner.kernel[...])
    np.testing.assert_allclose((weight.mean(), weight.std()), drawn, atol=0.15)
    np.testing.assert_allclose(np.asarray(port.linear.kernel[...]).std(), 0.3, atol=0.05)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("NetForCausalLM", True),
        ("NetForMaskedLM", True),
        ("NetLMHeadModel", True),
        ("NetForObjectDetection", False),
    ],
)
def test_a_loss_goes_by_the_name_of_the_class(name: str, known: bool, tmp_path: Path) -> None:
    more = "\n    def more(self, logits, labels):\n        return self.loss_function(logits, labels, 20)\n"
    text = HEAD + LM.format(bias="").replace("NetForCausalLM", name) + more
    (tmp_path / "net.py").write_text(text)
    assert convert_path([tmp_path / "net.py"], None).complete is known


def test_what_the_port_refuses_when_it_is_asked_is_a_warning(tmp_path: Path) -> None:
    text = HEAD.replace(
        "utils import",
        "utils.generic import check_model_inputs\nfrom transformers.generation import GenerationMixin\nfrom transformers.utils import",
    )
    text = text.replace(
        "    def forward(self, ids", "    @check_model_inputs\n    def forward(self, ids"
    )
    text += LM.format(bias="").replace(
        "(NetPreTrainedModel)", "(NetPreTrainedModel, GenerationMixin)"
    )
    (tmp_path / "net.py").write_text(text)
    done = convert_path([tmp_path / "net.py"], None)
    assert done.complete, done.findings
    assert [(f.rule, f.severity) for f in done.findings] == [("API004", "warning")] * 2


def test_a_part_that_ties_more_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(HEAD + PART.format(tie="self.inner.bias = self.decoder.bias"))
    found = [f for f in convert_path([tmp_path / "net.py"], None).findings if f.blocks]
    assert {f.rule for f in found} >= {"API004"}


def test_another_class_of_that_name_does_what_it_says(tmp_path: Path) -> None:
    base = "import torch\nfrom torch import nn\n\n\nclass PreTrainedModel(nn.Module):\n    def post_init(self):\n        self.bias = nn.Parameter(torch.full((2,), 3.0))\n"
    net = "from torch import nn\nfrom .base import PreTrainedModel  # not that of transformers\n\n\nclass Net(PreTrainedModel):\n    def __init__(self):\n        super().__init__()\n        self.post_init()\n\n    def forward(self, x):\n        return x + self.bias\n"
    (tmp_path / "pkg").mkdir()
    for name, text in {"__init__.py": "", "base.py": base, "net.py": net}.items():
        (tmp_path / "pkg" / name).write_text(text)
    convert_path([tmp_path / "pkg"], tmp_path / "out")
    assert "self.post_init()" in (tmp_path / "out/net.py").read_text()


def test_a_walk_that_comes_later_meets_the_tied_head(tmp_path: Path) -> None:
    outer = "\n\nclass Outer(NetPreTrainedModel):\n    def __init__(self, config):\n        super().__init__(config)\n        self.lm = NetForCausalLM(config)\n        self.post_init()\n"
    (tmp_path / "net.py").write_text(HEAD + LM.format(bias="") + outer)
    found = [f.rule for f in convert_path([tmp_path / "net.py"], None).findings if f.blocks]
    assert "API009" in found


def test_what_stays_imported_and_what_is_not_there(tmp_path: Path) -> None:
    text = HEAD.replace("import PretrainedConfig, Pre", "import AutoConfig, PretrainedConfig, Pre")
    (tmp_path / "net.py").write_text(text.replace("BaseModelOutput,\n", "BaseModelOutput,\n", 1))
    done = convert_path([tmp_path / "net.py"], tmp_path / "out.py")
    assert done.complete, done.findings
    code = (tmp_path / "out.py").read_text()
    assert "from transformers import AutoConfig, PretrainedConfig\n" in code
    assert "from transformers_flax.modeling_utils import PreTrainedModel\n" in code or (
        "from transformers_flax import PreTrainedModel\n" in code
    )
    more = "\nfrom transformers.cache_utils import QuantizedCache\n\ncache = QuantizedCache()\n"
    (tmp_path / "more.py").write_text(text + more)
    found = [f for f in convert_path([tmp_path / "more.py"], None).findings if f.blocks]
    assert {f.rule for f in found} == {"API004"}
    assert found[0].line == text.count("\n") + 2
    assert analyze_paths([tmp_path / "net.py"])[1] == []
    assert {f.rule for f in analyze_paths([tmp_path / "more.py"])[1] if f.blocks} == {"API004"}


def test_verify_converts_with_them(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = "\n\ndef make():\n    return NetForCausalLM(NetConfig())\n"
    (library / "net.py").write_text(HEAD + LM.format(bias="") + make)
    monkeypatch.chdir(library)
    args = ["verify", "--torch", "net.py:make", "--input", "B,3:int64:0:19", "--examples", "2"]
    result = CliRunner().invoke(main, args)
    assert result.exit_code == 0, result.output
    assert "make  equal" in result.output


def test_numbers_are_made_as_the_library_makes_them(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "from torch import nn\nfrom transformers.utils import torch_float, torch_int\n\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return x / torch_float(x.shape[-1] ** 0.5), x * torch_int(2.9)\n"
    _, ours = both(library, text, monkeypatch)
    halves, doubled = ours.Net()(jnp.ones((1, 8)))
    assert halves[0, 0] == 0.5  # int(8 ** 0.5), as 4.57.1 has it
    assert doubled[0, 0] == 2.0


def test_functions_of_the_library(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
import torch
from transformers.modeling_attn_mask_utils import _prepare_4d_attention_mask
from transformers.modeling_utils import causal_loss, sdpa_attention_forward
from transformers.pytorch_utils import Conv1D, apply_chunking_to_forward


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = Conv1D(6, 4)
        self.is_causal = True

    def forward(self, x: torch.Tensor, mask: torch.LongTensor, labels: torch.LongTensor):
        q, k, v = self.conv(x).view(2, 5, 3, 2, 1).unbind(2)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        bias = _prepare_4d_attention_mask(mask, x.dtype, 5)
        a, _ = sdpa_attention_forward(self, q, k, v, bias, scaling=0.5)
        b, _ = sdpa_attention_forward(self, q, k, v, None)
        y = apply_chunking_to_forward(torch.tanh, 2, 1, x[:, :4])
        loss = causal_loss(x, labels, 4)
        return a, b, y, loss, causal_loss(x, labels, 4, num_items_in_batch=3)
"""
    theirs, ours = both(library, text, monkeypatch)
    model, port = theirs.Net(), ours.Net(rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, model.state_dict())
    x, mask = torch.randn(2, 5, 4), torch.tensor([[1, 1, 0, 1, 1], [1, 0, 0, 1, 1]])
    labels = torch.tensor([[1, -100, 3, 0, 2], [2, 2, 1, 0, -100]])
    got = port(*(jnp.asarray(one.numpy()) for one in (x, mask, labels)))
    for mine, want in zip(got, model(x, mask, labels), strict=True):
        np.testing.assert_allclose(mine, want.detach().numpy(), rtol=1e-5, atol=1e-6)


CHILDREN = """
from torch import nn
from transformers.activations import ACT2FN, get_activation


class Net(nn.Module):
    def __init__(self, name="relu2"):
        super().__init__()
        self.act1 = ACT2FN[name]
        self.act2 = ACT2FN[name]
        self.act3 = get_activation(name)

    def forward(self, x):
        for layer in self.children():
            x = layer(x)
        return x
"""


def test_each_reading_of_an_activation_is_a_module_of_its_own(tmp_path: Path) -> None:
    """As in transformers; of one under three names torch's children() would give the first."""
    (tmp_path / "net.py").write_text(CHILDREN)
    result = convert_path([tmp_path / "net.py"], tmp_path / "out")
    assert result.complete
    code = (
        "import jax.numpy as jnp; from flax import nnx; from net import Net;"
        "print(Net(rngs=nnx.Rngs(0))(jnp.array([2.0, -1.0])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path / "out", capture_output=True, text=True
    )
    assert done.stdout.split() == ["[256.", "0.]"], done.stderr
