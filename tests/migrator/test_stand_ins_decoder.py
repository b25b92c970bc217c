"""A decoder written as transformers has its own: rotary embeddings, caches, masks, kernels, heads that models share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from migrator.project import convert_path
from tests.migrator.test_stand_ins import both, imported

MODEL = '''"""A decoder."""
import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.activations import ACT2FN
from transformers.cache_utils import Cache, DynamicCache
from transformers.generation import GenerationMixin
from transformers.masking_utils import create_causal_mask, create_sliding_window_causal_mask
from transformers.modeling_layers import (
    GenericForQuestionAnswering,
    GenericForSequenceClassification,
    GenericForTokenClassification,
    GradientCheckpointingLayer,
)
from transformers.modeling_outputs import BaseModelOutputWithPast, CausalLMOutputWithPast
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS, dynamic_rope_update
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.utils import can_return_tuple, is_flash_attn_2_available
from transformers.utils.generic import check_model_inputs

if is_flash_attn_2_available():
    from flash_attn import flash_attn_func


class DecConfig(PretrainedConfig):
    def __init__(self, rope_scaling=None, sliding_window=None, attention="sdpa", **kwargs):
        super().__init__(tie_word_embeddings=False)
        self.vocab_size, self.hidden_size, self.num_hidden_layers = 31, 16, 2
        self.num_attention_heads, self.num_labels, self.pad_token_id = 2, 3, 0
        self.max_position_embeddings, self.rope_theta, self.rope_scaling = 8, 100.0, rope_scaling
        self.sliding_window, self._attn_implementation = sliding_window, attention
        self.use_cache, self.return_dict, self.problem_type = True, True, None
        for name, value in kwargs.items():
            setattr(self, name, value)

    def get_text_config(self, decoder=False):
        return self


class Rotary(nn.Module):
    def __init__(self, config, device=None):
        super().__init__()
        scaling = config.rope_scaling
        self.rope_type = scaling["rope_type"] if scaling is not None else "default"
        self.config = config
        self.rope_init_fn = ROPE_INIT_FUNCTIONS[self.rope_type]
        inv_freq, self.attention_scaling = self.rope_init_fn(self.config, device)
        self.register_buffer("inv_freq", inv_freq, persistent=False)
        self.original_inv_freq = self.inv_freq

    @torch.no_grad()
    @dynamic_rope_update
    def forward(self, x, position_ids):
        freqs = position_ids[:, :, None].float() * self.inv_freq[None, None, :].float()
        emb = torch.cat((freqs, freqs), dim=-1)
        cos, sin = emb.cos() * self.attention_scaling, emb.sin() * self.attention_scaling
        return cos.to(dtype=x.dtype), sin.to(dtype=x.dtype)


def rotate_half(x):
    x1, x2 = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


def eager_attention_forward(module, query, key, value, attention_mask, scaling, dropout=0.0, **kwargs):
    weights = torch.matmul(query, key.transpose(2, 3)) * scaling
    if attention_mask is not None:
        weights = weights + attention_mask[:, :, :, : key.shape[-2]]
    weights = nn.functional.softmax(weights, dim=-1)
    return torch.matmul(weights, value).transpose(1, 2).contiguous(), weights


class Attention(nn.Module):
    def __init__(self, config, layer_idx: int):
        super().__init__()
        self.config, self.layer_idx, self.head_dim = config, layer_idx, 8
        self.scaling, self.is_causal = self.head_dim**-0.5, True
        self.qkv = nn.Linear(config.hidden_size, 3 * config.hidden_size)
        self.out = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, hidden_states: tuple[torch.Tensor], position_embeddings, attention_mask, past_key_values=None):
        shape = hidden_states.shape[:-1]
        parts = self.qkv(hidden_states).chunk(3, dim=-1)
        query, key, value = (t.view(*shape, -1, self.head_dim).transpose(1, 2) for t in parts)
        cos, sin = (t.unsqueeze(1) for t in position_embeddings)
        query, key = query * cos + rotate_half(query) * sin, key * cos + rotate_half(key) * sin
        if past_key_values is not None:
            key, value = past_key_values.update(key, value, self.layer_idx)
        attend = eager_attention_forward
        if self.config._attn_implementation == "flash_attention_2":
            if attention_mask is not None and (attention_mask == 0.0).any():
                return flash_attn_func(query, key, value), None
        if self.config._attn_implementation != "eager":
            attend = ALL_ATTENTION_FUNCTIONS[self.config._attn_implementation]
        out, weights = attend(self, query, key, value, attention_mask, scaling=self.scaling)
        return self.out(out.reshape(*shape, -1)), weights


class Layer(GradientCheckpointingLayer):
    def __init__(self, config, layer_idx):
        super().__init__()
        self.attn, self.act = Attention(config, layer_idx), ACT2FN["silu"]

    def forward(self, x, **kwargs):
        out, _ = self.attn(x, **kwargs)
        return x + self.act(out)


class DecPreTrainedModel(PreTrainedModel):
    config_class = DecConfig
    base_model_prefix = "model"
    _supports_sdpa = True
    _can_record_outputs = {"hidden_states": Layer, "attentions": Attention}


class DecModel(DecPreTrainedModel):
    def __init__(self, config: DecConfig):
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size, config.pad_token_id)
        self.layers = nn.ModuleList([Layer(config, i) for i in range(config.num_hidden_layers)])
        self.rotary = Rotary(config)
        self.post_init()

    @check_model_inputs
    def forward(self, input_ids=None, attention_mask=None, position_ids=None, past_key_values: Cache | None = None, inputs_embeds=None, use_cache: bool | None = None, **kwargs):
        if inputs_embeds is None:
            inputs_embeds = self.embed_tokens(input_ids)
        if use_cache and past_key_values is None:
            past_key_values = DynamicCache(config=self.config)
        seen = past_key_values.get_seq_length() if past_key_values is not None else 0
        cache_position = torch.arange(seen, seen + inputs_embeds.shape[1], device=inputs_embeds.device)
        if position_ids is None:
            position_ids = cache_position.unsqueeze(0)
        create = create_causal_mask
        if self.config.sliding_window is not None:
            create = create_sliding_window_causal_mask
        mask = create(config=self.config, input_embeds=inputs_embeds, attention_mask=attention_mask, cache_position=cache_position, past_key_values=past_key_values, position_ids=position_ids)
        hidden_states = inputs_embeds
        embeddings = self.rotary(hidden_states, position_ids)
        for layer in self.layers:
            hidden_states = layer(hidden_states, attention_mask=mask, past_key_values=past_key_values, position_embeddings=embeddings)
        return BaseModelOutputWithPast(last_hidden_state=hidden_states, past_key_values=past_key_values)


class DecForCausalLM(DecPreTrainedModel, GenerationMixin):
    _tied_weights_keys = ["lm_head.weight"]

    def __init__(self, config):
        super().__init__(config)
        self.model = DecModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    @can_return_tuple
    def forward(self, input_ids=None, attention_mask=None, past_key_values=None, labels=None, use_cache: bool | None = None, **kwargs):
        outputs = self.model(input_ids, attention_mask=attention_mask, past_key_values=past_key_values, use_cache=use_cache, **kwargs)
        logits = self.lm_head(outputs.last_hidden_state)
        loss = None
        if labels is not None:
            loss = self.loss_function(logits=logits, labels=labels, vocab_size=self.config.vocab_size)
        return CausalLMOutputWithPast(loss=loss, logits=logits, past_key_values=outputs.past_key_values)


class DecForSequenceClassification(GenericForSequenceClassification, DecPreTrainedModel): ...


class DecForTokenClassification(GenericForTokenClassification, DecPreTrainedModel):
    pass


class DecForQuestionAnswering(GenericForQuestionAnswering, DecPreTrainedModel):
    base_model_prefix = "transformer"
'''
SCALINGS: dict[str, dict[str, Any] | None] = {
    "default": None,
    "linear": {"rope_type": "linear", "factor": 2.0},
    "yarn": {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 4},
    "llama3": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8,
    },
    "longrope": {
        "rope_type": "longrope",
        "factor": 2.0,
        "short_factor": [1.0, 1.1, 1.2, 1.3],
        "long_factor": [2.0, 3.0, 4.0, 5.0],
    },
}
IDS = np.array([[0, 0, 3, 1, 7], [5, 2, 9, 4, 4]])
MASK = (IDS != 0).astype(np.int64)


def close(got: Any, want: Any) -> None:
    np.testing.assert_allclose(got, want.detach().numpy(), rtol=1e-4, atol=1e-5)


def pair(modules: tuple[Any, Any], name: str, **options: Any) -> tuple[Any, Any]:
    theirs, ours = modules
    model = getattr(theirs, name)(theirs.DecConfig(**options)).eval()
    port = getattr(ours, name)(ours.DecConfig(**options), rngs=nnx.Rngs(0))
    port.eval()
    with torch.no_grad():
        for one in model.parameters():
            one.add_(torch.randn_like(one) * 0.2)
    migrator.load_state_dict(port, model.state_dict())
    return model, port


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any]]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        for place in imported(tmp_path_factory.mktemp("decoder"), monkeypatch):
            yield made_of(place, monkeypatch)


def made_of(place: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    theirs, ours = both(place, MODEL, monkeypatch)

    def made(self: Any, config: Any) -> None:
        """What transformers' own heads do, whose model is that of the configuration."""
        super(type(self), self).__init__(config)
        setattr(self, self.base_model_prefix, theirs.DecModel(config))
        if isinstance(self, theirs.DecForQuestionAnswering):
            self.qa_outputs = torch.nn.Linear(config.hidden_size, 2)
        else:
            bias = not isinstance(self, theirs.DecForSequenceClassification)
            self.score = torch.nn.Linear(config.hidden_size, config.num_labels, bias=bias)
        self.dropout = torch.nn.Dropout(0.1)

    for name in LABELS:
        monkeypatch.setattr(getattr(theirs, name), "__init__", made)
    return theirs, ours


def test_steps_with_a_cache(modules: tuple[Any, Any]) -> None:
    for window, attention in ((None, "sdpa"), (3, "eager"), (3, "sdpa")):
        options = {"sliding_window": window, "attention": attention}
        model, port = pair(modules, "DecForCausalLM", **options)
        past, mine = None, None
        for ids in (IDS, IDS[:, :1], IDS[:, 1:3]):
            want = model(torch.tensor(ids), past_key_values=past)
            got = port(jnp.asarray(ids), past_key_values=mine)
            close(got.logits, want.logits)
            past, mine = want.past_key_values, got.past_key_values
            assert past.get_seq_length() == mine.get_seq_length()
            for one, other in zip(mine, past):
                close(one[0], other[0])
        if window is not None:
            assert past.layers[0].keys.shape[-2] == window - 1


def test_steps_under_jit(modules: tuple[Any, Any]) -> None:
    model, port = pair(modules, "DecForCausalLM", sliding_window=3)

    @nnx.jit
    def step(port: Any, ids: Any, past: Any = None) -> Any:
        return port(ids, past_key_values=past)

    past = mine = None
    for ids in (IDS, IDS[:, :1]):
        want = model(torch.tensor(ids), past_key_values=past)
        got = step(port, jnp.asarray(ids), mine)
        close(got.logits, want.logits)
        assert list(got.keys()) == list(want.keys())
        past, mine = want.past_key_values, got.past_key_values
        assert mine.layers[0].cumulative_length == past.layers[0].cumulative_length


@pytest.mark.parametrize("name", SCALINGS)
def test_rotary_frequencies(name: str, modules: tuple[Any, Any]) -> None:
    model, port = pair(modules, "DecModel", rope_scaling=SCALINGS[name])
    for length in (5, 10):  # longrope turns otherwise from the ninth place on
        places = np.arange(length)[None]
        x = np.zeros((1, length, 16), np.float32)
        want = model.rotary(torch.tensor(x), torch.tensor(places))
        got = nnx.jit(lambda port, x, places: port.rotary(x, places))(port, x, places)
        for one, other in zip(got, want):
            close(one, other)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_masks_and_gradients(attention: str, modules: tuple[Any, Any]) -> None:
    model, port = pair(modules, "DecForCausalLM", attention=attention)
    rest = {"attention_mask": MASK, "labels": IDS}
    want = model(
        torch.tensor(IDS), **{k: torch.tensor(v) for k, v in rest.items()}, use_cache=False
    )
    want.loss.backward()
    given = {k: jnp.asarray(v) for k, v in rest.items()}
    got = port(jnp.asarray(IDS), **given, use_cache=False)
    close(got.loss, want.loss)
    close(got.logits, want.logits)
    grads = nnx.jit(nnx.grad(lambda port: port(jnp.asarray(IDS), **given, use_cache=False).loss))(
        port
    )
    named = migrator.to_state_dict(grads, like=port)
    for name, parameter in model.named_parameters():
        close(named[name], parameter.grad)


def test_several_texts_in_a_row(modules: tuple[Any, Any]) -> None:
    model, port = pair(modules, "DecModel")
    places = np.array([[0, 1, 0, 1, 2], [0, 1, 2, 3, 4]])
    want = model(torch.tensor(IDS), position_ids=torch.tensor(places), use_cache=False)
    got = port(jnp.asarray(IDS), position_ids=jnp.asarray(places), use_cache=False)
    close(got.last_hidden_state, want.last_hidden_state)
    apart = model(torch.tensor(IDS[:1, :2]), use_cache=False).last_hidden_state
    close(got.last_hidden_state[:1, :2], apart)


LABELS: dict[str, dict[str, np.ndarray]] = {
    "DecForSequenceClassification": {"labels": np.array([2, 0])},
    "DecForTokenClassification": {"labels": IDS % 3},
    "DecForQuestionAnswering": {
        "start_positions": np.array([1, 9]),
        "end_positions": np.array([3, 4]),
    },
}


@pytest.mark.parametrize("name", LABELS)
def test_heads_that_models_share(name: str, modules: tuple[Any, Any]) -> None:
    model, port = pair(modules, name)
    given = {"attention_mask": MASK, **LABELS[name]}
    want = model(torch.tensor(IDS), **{k: torch.tensor(v) for k, v in given.items()})
    got = port(jnp.asarray(IDS), **{k: jnp.asarray(v) for k, v in given.items()})
    for one, other in zip(got.to_tuple()[:2], want.to_tuple()[:2]):
        close(one, other)


def test_kernels_are_refused(modules: tuple[Any, Any]) -> None:
    _, port = pair(modules, "DecModel")
    port.config._attn_implementation = "flash_attention_2"
    with pytest.raises(NotImplementedError, match="kernels for attention"):
        port(jnp.asarray(IDS))


def test_a_warning_says_that_kernels_are_refused(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(MODEL)
    done = convert_path([tmp_path / "net.py"], None)
    (said,) = [f for f in done.findings if "kernels for attention" in f.message]
    place = MODEL.index('if self.config._attn_implementation == "flash_attention_2"')
    assert (said.severity, said.blocks) == ("warning", False)
    assert said.line == MODEL[:place].count("\n") + 1


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("return StaticCache(config=config)", {"API004"}),
        ("return isinstance(config, StaticCache)", set()),
    ],
)
def test_a_cache_of_one_size_may_be_asked_for_and_not_made(
    line: str, found: set[str], tmp_path: Path
) -> None:
    more = (
        f"\n\nfrom transformers.cache_utils import StaticCache\n\n\ndef made(config):\n    {line}\n"
    )
    (tmp_path / "net.py").write_text(MODEL + more)
    done = convert_path([tmp_path / "net.py"], None)
    assert {f.rule for f in done.findings if f.blocks} == found


def test_a_head_without_a_model_is_a_finding(tmp_path: Path) -> None:
    text = MODEL.replace("class DecForTokenClassification", "class OtherForTokenClassification")
    (tmp_path / "net.py").write_text(text)
    found = [f for f in convert_path([tmp_path / "net.py"], None).findings if f.blocks]
    assert [(f.rule, "OtherForTokenClassification" in f.message) for f in found] == [
        ("API004", True)
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    config_class = DecConfig\n", "    config_class = OtherConfig\n"),  # of another model
        ("    GenericForTokenClassification,\n", ""),  # one of the file's own
    ],
)
def test_a_head_that_is_not_sure_to_have_this_model(old: str, new: str, tmp_path: Path) -> None:
    own = "class GenericForTokenClassification:\n    def forward(self, x):\n        return x\n"
    text = MODEL.replace(old, new, 1)
    text = text.replace(
        "class DecConfig",
        f"class OtherConfig(PretrainedConfig):\n    pass\n\n\n{'' if new else own}\n\nclass DecConfig",
    )
    (tmp_path / "net.py").write_text(text)
    done = convert_path([tmp_path / "net.py"], tmp_path / "out.py")
    if new:
        assert {f.rule for f in done.findings if f.blocks} == {"API004"}
    else:
        code = (tmp_path / "out.py").read_text()
        made = code[code.index("class DecForTokenClassification") :]
        assert "self.score" not in made[: made.index("class DecForQuestionAnswering")]


READER = '''

def load_tf_weights_in_dec(model, config, path):
    """Load it."""
    import tensorflow as tf

    for name, array in tf.train.list_variables(path):
        pointer = getattr(model, name)
        pointer.data = torch.from_numpy(array)
    return model


class OldPreTrainedModel(DecPreTrainedModel):
    load_tf_weights = load_tf_weights_in_dec
'''


def test_what_reads_checkpoints_of_tensorflow_refuses(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(MODEL + READER)
    done = convert_path([tmp_path / "net.py"], tmp_path / "out.py")
    assert done.complete, done.findings
    assert [f.line for f in done.findings if "TensorFlow" in f.message] == [MODEL.count("\n") + 3]
    assert "checkpoints of TensorFlow are not read" in (tmp_path / "out.py").read_text()
