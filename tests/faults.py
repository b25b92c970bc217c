"""Wrong conversions to plant in the samples' ports: what stands there, what is put in its place, where it must show.

Each is a mistake that people and programs make in ports. ``submodule`` is the torch path whose code is wrong.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from migrator.config import Config
from migrator.verifying import verify_case
from numerics.report import Report

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Fault:
    """One edit of a generated file.

    ``submodule`` may have ``*`` for any block of a stack; ``nth`` chooses among several places where the text
    stands; ``init`` adds keyword arguments of the constructor, on both sides.
    """

    case: str
    name: str
    old: str
    new: str
    submodule: str
    nth: int = 0
    init: Mapping[str, Any] = field(default_factory=dict)

    def plant(self, text: str) -> str:
        """The file with the fault in it."""
        parts = text.split(self.old)
        assert len(parts) > self.nth + 1, f"{self.case} no longer contains {self.old!r}"
        before, after = self.old.join(parts[: self.nth + 1]), self.old.join(parts[self.nth + 1 :])
        return before + self.new + after


def _faults(case: str, *rows: tuple[Any, ...]) -> list[Fault]:
    return [Fault(case, *row) for row in rows]


_LN_F = "ln_f=nnx.LayerNorm(\n                    config.n_embd,\n                    epsilon="
_BF16 = "(att.astype(jnp.bfloat16) @ v.astype(jnp.bfloat16)).astype(jnp.float32)"
_DROP = {"dropout": 0.2}

GPT = _faults(
    "gpt",
    ("epsilon", _LN_F + "1e-5", _LN_F + "1e-6", "transformer.ln_f"),
    (
        "GELU approximation",
        "self.gelu = jax.nn.gelu",
        "self.gelu = lambda x: jax.nn.gelu(x, approximate=False)",
        "transformer.h.*.mlp.gelu",
    ),
    (
        "heads not moved back",
        "y.swapaxes(1, 2).reshape(B, T, C)",
        "y.reshape(B, T, C)",
        "transformer.h.*.attn",
    ),
    ("mask polarity", ":T, :T] == 0", ":T, :T] != 0", "transformer.h.*.attn"),
    ("mask off by one", ":T, :T] == 0", "1 : T + 1, :T] == 0", "transformer.h.*.attn"),
    (
        "scale without root",
        "1.0 / math.sqrt(k.shape[-1])",
        "1.0 / k.shape[-1]",
        "transformer.h.*.attn",
    ),
    ("missing residual", "x = x + self.mlp(", "x = self.mlp(", "transformer.h.*"),
    ("order of q, k, v", "q, k, v = jnp.split", "k, q, v = jnp.split", "transformer.h.*.attn"),
    ("positions from one", "jnp.arange(0, t,", "jnp.arange(1, t + 1,", ""),
    (
        "softmax axis",
        "att = jax.nn.softmax(att)",
        "att = jax.nn.softmax(att, -2)",
        "transformer.h.*.attn",
    ),
    ("ignored label", "target[:, None] != -1)", "target[:, None] != 0)", ""),
    (
        "embedding without gradient",
        "tok_emb = self.transformer.wte(idx)",
        "tok_emb = lax.stop_gradient(self.transformer.wte(idx))",
        "",
    ),
    (
        "attention without gradient",
        "att = self.attn_dropout(att)",
        "att = self.attn_dropout(lax.stop_gradient(att))",
        "transformer.h.*.attn",
    ),
    ("bfloat16 product", "y = att @ v", f"y = {_BF16}", "transformer.h.*.attn"),
    (
        "missing dropout",
        "self.resid_dropout(self.c_proj(y))",
        "self.c_proj(y)",
        "transformer.h.*.attn*",
        0,
        _DROP,
    ),
    (
        "half the dropout",
        "self.dropout = nnx.Dropout(config.dropout",
        "self.dropout = nnx.Dropout(config.dropout / 2",
        "transformer.h.*.mlp.dropout",
        0,
        _DROP,
    ),
    ("last token id clamped", "wte(idx)", "wte(jnp.minimum(idx, 94))", ""),
    ("last position clamped", "wpe(pos)", "wpe(jnp.minimum(pos, 30))", ""),
    (
        "buffer made trainable",
        "nnx.Variable(\n            jnp.tril(",
        "nnx.Param(\n            jnp.tril(",
        "transformer.h.*.attn",
    ),
    ("buffer of another triangle", "jnp.tril(jnp.ones((c", "jnp.triu(jnp.ones((c", "*.attn"),
)

VIT = _faults(
    "vit",
    ("table drawn too wide", "0.02 * rngs.normal((1, self", "0.2 * rngs.normal((1, self", ""),
    ("epsilon", "partial(LayerNorm, eps=1e-6)", "partial(LayerNorm, eps=1e-5)", "blocks.*.ln_1"),
    ("mean in place of class token", "return x[:, 0], x[:, 1:]", "return x.mean(1), x[:, 1:]", ""),
    ("order of tokens", "(cls_tokens, x), axis=1", "(x, cls_tokens), axis=1", ""),
    (
        "patches by column",
        "h.reshape(*h.shape[:2], -1)",
        "h.swapaxes(2, 3).reshape(*h.shape[:2], -1)",
        "patch_embed",
    ),
    (
        "scale by heads",
        "q * self.head_dim**-0.5",
        "q * self.num_heads**-0.5",
        "blocks.*.self_attention",
    ),
    (
        "queries for keys",
        '"nhls,nshd->nlhd"',
        '"nhsl,nshd->nlhd"',
        "blocks.*.self_attention",
    ),
    ("missing positions", "self.pos_drop(x + self.pos_embed[...])", "self.pos_drop(x)", ""),
    (
        "GELU approximation",
        "partial(jax.nn.gelu, approximate=False)",
        "jax.nn.gelu",
        "blocks.*.mlp.act",
    ),
    ("frozen parameter", "self.cls_token = nnx.Param(", "self.cls_token = nnx.Variable(", ""),
    ("residual of the wrong value", "return x + y", "return input + y", "blocks.*"),
)

MLP = _faults(
    "mlp",
    ("biased running variance", "var * count / (count - 1)", "var", "features.1"),
    ("momentum", "momentum=0.1", "momentum=0.9", "features.1"),
    (
        "epsilon outside the root",
        "lax.rsqrt(var + self.eps)",
        "1 / (jnp.sqrt(var) + self.eps)",
        "features.1",
    ),
    ("batches not counted", "self.num_batches_tracked[...] += 1", "pass", "features.1"),
    (
        "running statistics in training",
        "if self.use_running_average:",
        "if self.running_mean is not None:",
        "features.1",
    ),
    (
        "variance without gradient",
        "mean, var = x.mean(axes), x.var(axes)",
        "mean, var = x.mean(axes), lax.stop_gradient(x.var(axes))",
        "features.*",
    ),
    ("axes swapped", "x.reshape(x.shape[0], -1)", "x.swapaxes(1, 2).reshape(x.shape[0], -1)", ""),
    (
        "ReLU that ends at six",
        "activation = jax.nn.relu",
        "activation = jax.nn.relu6",
        "features.2",
    ),
    (
        "batches counted in eval",
        "mean, var = self.running_mean[...], self.running_var[...]",
        "mean, var = self.running_mean[...], self.running_var[...]\n"
        "            self.num_batches_tracked[...] += 1",
        "features.1",
    ),
    (
        "statistics made trainable",
        "self.running_mean = nnx.BatchStat(",
        "self.running_mean = nnx.Param(",
        "features.1",
    ),
    (
        "eval without gradient",
        "scale = lax.rsqrt(var + self.eps)",
        "scale = lax.rsqrt(var + self.eps)\n"
        "        x = lax.stop_gradient(x) if self.use_running_average else x",
        "features.*",
    ),
)

LSTM = _faults(
    "lstm_tagger",
    ("gate order", "i, f, _, o = ", "f, i, _, o = ", "lstm"),
    ("cell without tanh", "return o * jnp.tanh(c), c", "return o * c, c", "lstm"),
    ("both directions forward", 'reverse=suffix.endswith("_reverse")', "reverse=False", "lstm"),
    (
        "padding with gradient",
        "jnp.where(padding, lax.stop_gradient(output), output)",
        "output",
        "word_embeddings",
    ),
    ("softmax axis", "log_softmax(tag_space, axis=1)", "log_softmax(tag_space, axis=0)", ""),
    ("order of final states", "jnp.stack(h) for h", "jnp.stack(h[::-1]) for h", "lstm"),
    ("missing bias", "affine(state[0], w_hh, b_hh)", "affine(state[0], w_hh)", "lstm"),
)

GRAPH = _faults(
    "graph_net",
    ("two self loops", "degree(col, x.shape[0]) + 1", "degree(col, x.shape[0]) + 2", "convs.*"),
    ("edges reversed", "row, col = edge_index", "col, row = edge_index", "convs.*"),
    (
        "slope",
        "negative_slope=self.negative_slope",
        "negative_slope=0.01",
        "attention",
    ),
    ("set in place of add", ".at[col].add(messages)", ".at[col].set(messages)", "convs.*"),
    ("graphs of one node", "degree(index, dim_size), min=1", "degree(index, dim_size), min=2", ""),
    ("epsilon", "+ 1e-9", "+ 1e-5", "attention"),
    ("ELU for SELU", "jax.nn.elu", "jax.nn.selu", "classifier.1"),
    (
        "softmax without gradient",
        "alpha = score / denominator[dst]",
        "alpha = score / jax.lax.stop_gradient(denominator)[dst]",
        "attention",
    ),
    ("order of readouts", "[mean, total]", "[total, mean]", ""),
)

T5 = _faults(
    "t5",
    ("scale that starts at zero", "nnx.Param(jnp.ones((hid", "nnx.Param(jnp.zeros((hid", "*norm*"),
    (
        "no epsilon",
        "lax.rsqrt(variance + self.variance_epsilon)",
        "lax.rsqrt(variance)",
        "encoder.block.*.norm",
    ),
    (
        "buckets of both directions",
        "bidirectional=not self.is_decoder",
        "bidirectional=True",
        "decoder*",
    ),
    (
        "bucket of the largest distance",
        "/ math.log(max_distance / max_exact)",
        "/ math.log(max_distance / max_exact + 1)",
        "encoder*",
    ),
    ("future seen", "k=1)", "k=2)", "decoder"),
    ("output scale", "self.config.d_model**-0.5", "self.config.d_model**-0.25", ""),
    (
        "missing norm",
        "self.cross_attention(self.cross_norm(x), encoder_states)",
        "self.cross_attention(x, encoder_states)",
        "decoder.block.*",
    ),
    ("activation", "jax.nn.relu(self.wi(", "jax.nn.gelu(self.wi(", "encoder.block.*.feed_forward"),
    (
        "bias without gradient",
        "scores += position_bias",
        "scores += lax.stop_gradient(position_bias)",
        "*.self_attention",
    ),
)

RESNET = _faults(
    "resnet18",
    (
        "maximum for mean",
        "functools.partial(jnp.mean, axis",
        "functools.partial(jnp.max, axis",
        "avgpool",
    ),
    (
        "ReLU before the sum",
        "out += identity\n        out = self.relu(out)",
        "out = identity + self.relu(out)",
        "layer1.0",
    ),
    (
        "epsilon",
        "self.bn1 = BatchNorm2d(planes, ",
        "self.bn1 = BatchNorm2d(planes, eps=1e-4, ",
        "layer1.0.bn1",
    ),
    ("momentum", "momentum=0.1", "momentum=0.01", "bn1"),
    (
        "padding to one side",
        "[(p, p) for p in self.padding]",
        "[(2 * p, 0) for p in self.padding]",
        "conv1",
    ),
)

OTHERS = [
    *_faults(
        "unet",
        (
            "padding order",
            "pairs += zip(pad[-2::-2], pad[::-2], strict=True)",
            "pairs += zip(pad[::-2], pad[-2::-2], strict=True)",
            "up2",  # the first where an odd size was halved
        ),
        ("order of channels", "[x2, x1], axis=1", "[x1, x2], axis=1", "up1"),
        (
            "kernel not flipped",
            "jnp.flip(self.weight[...], range(2, 4))",
            "self.weight[...]",
            "up1.up",
        ),
    ),
    *_faults(
        "mobilenet_v2",
        ("ReLU6 without its end", "jax.nn.relu6,", "jax.nn.relu,", "features.0.2"),
        ("missing residual", "return x + self.conv(x)", "return self.conv(x)", "features.*"),
    ),
    *_faults(
        "vae",
        (
            "scale that starts at zero",
            "nnx.Param(jnp.ones(num_features",
            "nnx.Param(jnp.zeros(num_features",
            "*",
        ),
        ("variance for deviation", "jnp.exp(0.5 * logvar)", "jnp.exp(logvar)", ""),
        ("sampling in eval", "if self.deterministic:", "if False:", ""),
        ("no sampling in training", "if self.deterministic:", "if True:", ""),
        ("slope", "negative_slope=0.2", "negative_slope=0.02", "encoder.0.2"),
        (
            "order of outputs",
            "self.fc_mu(result), self.fc_var(result)",
            "self.fc_var(result), self.fc_mu(result)",
            "",
        ),
    ),
    *_faults(
        "diffusion_unet",
        ("missing scale", "q = q * self.scale", "q = q * 1.0", "mid_attn"),
        (
            "dropped bias",
            "output if bias is None else output + bias.reshape(-1, 1, 1)",
            "output",
            "init_conv",
        ),
        (
            "scale without its one",
            "x * (scale + 1) + shift",
            "x * scale + shift",
            "downs.0.0.block1",
        ),
        ("groups", "GroupNorm(groups, dim_out", "GroupNorm(1, dim_out", "downs.0.0.block1.norm"),
        (
            "order of sine and cosine",
            "(jnp.sin(emb), jnp.cos(emb))",
            "(jnp.cos(emb), jnp.sin(emb))",
            "time_mlp.0",
        ),
        ("constant", "theta: int = 10000", "theta: int = 9999", "time_mlp.0"),
        (
            "pixels shifted",
            "index = np.arange(new) // 2",
            "index = (np.arange(new) - 1).clip(0) // 2",
            "ups.0.0",
        ),
        ("activation", "self.act = jax.nn.silu", "self.act = jax.nn.gelu", "downs.0.0.block1.act"),
    ),
]

FAULTS = [*GPT, *VIT, *MLP, *LSTM, *GRAPH, *T5, *RESNET, *OTHERS]

ELSEWHERE = {("gpt", "embedding without gradient"), ("diffusion_unet", "constant")}
"""Found, but named at a neighbour: at the embedding whose gradient is cut off behind it; where a difference that
torch's own error hides in the sines it starts from has grown."""


def planted(fault: Fault, directory: Path, config: Config, examples: int = 12) -> Report:
    """The report on a sample whose port has the fault; its files are written below ``directory``."""
    output = directory / "flax"
    if output.exists():
        shutil.rmtree(output)
    shutil.copytree(ROOT / "samples" / "flax", output)
    case = next(case for case in config.cases if case.name == fault.case)
    port = output / Path(case.torch.partition(":")[0]).name
    port.write_text(fault.plant(port.read_text()))
    kwargs = {**case.init_kwargs, **fault.init}
    case = replace(case, init_kwargs=kwargs, examples=examples)
    return verify_case(case, replace(config, output=output), shrink_seconds=0)


def found(report: Report) -> bool:
    """Whether the fault was seen."""
    return report.verdict in ("different", "raises")


def placed(report: Report, fault: Fault) -> bool:
    """Whether it was seen where it is."""
    return report.first_divergence is not None and fnmatch(report.first_divergence, fault.submodule)
