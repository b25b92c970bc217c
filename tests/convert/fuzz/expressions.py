"""Models of one line each: shapes, indices, types of numbers, functions and layers, with unusual options.

A model returns two to five of them, computed of ``x`` (3, 4, 6), of images ``im`` (2, 4, 8, 8), of a vector ``v`` (5)
and of whole numbers ``i`` (3). Whether the arguments are annotated changes what the converter knows of them.
"""

from __future__ import annotations

import random
import re

import torch

from tests.convert.fuzz.compare import Program
from tests.convert.fuzz.lines import EXPRESSIONS

ASSIGNING = """
t[:, 0] = 1
t[..., -1] = x[..., 0]
t[1:] *= 2
t[:, ::2] = t[:, 1::2]
t[t > 0] = 0
t[t < 0] *= 0.1
t[:, [0, 2]] = 0.5
t[torch.arange(3), i % 4] = 1
t[0, 1:3, -2:] = x[1, :2, :2]
t[..., None, 0] = 2
t[i % 3] = t[(i + 1) % 3]
t[:, 1] += t[:, 0]
t[0], t[1] = t[1].clone(), t[0].clone()
t[:2] = torch.stack((x[1], x[0]))
t[:, -1:, :] = x[:, :1]
t[None, 0] = 3
t[0][1] = 5
t[0, 0, 0] = i[0]
t[(x > 0) & (x < 1)] = -1.0
t[~(x > 0)] -= 1
t[..., 0][t[..., 1] > 0] = 0
t[x[..., 0] > 0] = 0.0
t[:, i % 4] = x[:, :3]
t.masked_fill_(x > 0.5, 0)
t.clamp_(-0.5, 0.5)
t.add_(x, alpha=2).mul_(0.5)
t.index_fill_(1, i % 4, 2.0)
t.scatter_(1, (x > 0).long(), 0.3)
t.scatter_add_(-1, (x > 0).long(), x)
t.index_add_(1, i % 4, x[:, :3])
t.transpose(0, 1)[0] = 1
t.view(-1)[::2] = 0
t.zero_()
t.fill_(3)
t.copy_(x[:1])
t[0].fill_(2)
t.diagonal(dim1=-2, dim2=-1).fill_(1)
t[:, 0].mul_(2)
t += x.mean(0)
t -= 1
t /= 2
t //= 0.5
t %= 0.3
t **= 2
t.unsqueeze_(0)
t.squeeze_()
t.transpose_(0, 1)
t.sub_(x).abs_()
t.sigmoid_()
t[:, 1:] = t[:, :-1].clone()
t[1] = t[0]
t.tril_()
F.relu(t, inplace=True)
F.leaky_relu_(t, 0.2)
torch.add(t, 1, out=t)
t.data[0] = 0
t.index_put_((i % 3,), x[:, 0] * 0 + 1)
t.addcmul_(x, x, value=0.1)
t.lerp_(x, 0.3)
t.round_()
t[x > x.mean()] = x.max()
t[:, :, i] = 1
t[range(2)] = 0
t[[True, False, True]] = 2
"""
"""What is written in place into ``t``, a copy of ``x``."""

IMAGE_LAYERS = """
nn.Conv2d(4, 6, 3, padding="same")
nn.Conv2d(4, 6, 3, padding="valid", stride=2)
nn.Conv2d(4, 4, 3, 1, 1, groups=4, bias=False)
nn.Conv2d(4, 8, (3, 1), padding=(1, 0), dilation=(1, 2))
nn.Conv2d(4, 4, 3, padding=1, padding_mode="reflect")
nn.Conv2d(4, 4, 3, padding=(2, 1), padding_mode="circular")
nn.Conv2d(4, 4, 3, padding=1, padding_mode="replicate", stride=2)
nn.Conv2d(4, 4, kernel_size=2, padding="same", dilation=3)
nn.ConvTranspose2d(4, 3, 2, 2)
nn.ConvTranspose2d(4, 4, 3, stride=2, padding=1, output_padding=1, groups=2)
nn.ConvTranspose2d(4, 2, (3, 2), (1, 2), dilation=2, bias=False)
nn.MaxPool2d(2)
nn.MaxPool2d(3, 2, 1, ceil_mode=True)
nn.MaxPool2d((2, 3), stride=(2, 1), padding=(1, 1), dilation=(1, 2))
nn.MaxPool2d(2, return_indices=True)
nn.AvgPool2d(3, 2, 1, count_include_pad=False)
nn.AvgPool2d(3, 2, ceil_mode=True)
nn.AvgPool2d(3, stride=2, padding=1, ceil_mode=True, count_include_pad=True)
nn.AvgPool2d(2, divisor_override=3)
nn.LPPool2d(2, 2)
nn.LPPool2d(1.5, (2, 1), ceil_mode=True)
nn.AdaptiveAvgPool2d(1)
nn.AdaptiveAvgPool2d((3, None))
nn.AdaptiveAvgPool2d((5, 3))
nn.AdaptiveMaxPool2d(3)
nn.AdaptiveMaxPool2d((3, 2), return_indices=True)
nn.Upsample(scale_factor=2)
nn.Upsample(size=(5, 7), mode="bilinear")
nn.Upsample(scale_factor=(2, 1.5), mode="bilinear", align_corners=True)
nn.Upsample(scale_factor=2, mode="bicubic", align_corners=False)
nn.Upsample(size=12, mode="nearest")
nn.UpsamplingBilinear2d(scale_factor=2)
nn.UpsamplingNearest2d(size=5)
nn.PixelShuffle(2)
nn.PixelUnshuffle(2)
nn.ChannelShuffle(2)
nn.BatchNorm2d(4, affine=False)
nn.BatchNorm2d(4, track_running_stats=False)
nn.BatchNorm2d(4, eps=0.1, momentum=None)
nn.BatchNorm2d(4, 1e-3, 0.3)
nn.InstanceNorm2d(4)
nn.InstanceNorm2d(4, affine=True, eps=0.1)
nn.InstanceNorm2d(4, track_running_stats=True)
nn.GroupNorm(2, 4)
nn.GroupNorm(1, 4, eps=0.1, affine=False)
nn.LayerNorm([4, 8, 8])
nn.LayerNorm(8, elementwise_affine=False)
nn.LayerNorm((8, 8), bias=False)
nn.RMSNorm(8)
nn.LocalResponseNorm(2, alpha=0.1, k=2.0)
nn.ReflectionPad2d(2)
nn.ReflectionPad2d((1, 0, 2, 3))
nn.ReplicationPad2d((1, 2, 0, 1))
nn.ZeroPad2d((1, -1, 2, 0))
nn.ConstantPad2d(1, 3.5)
nn.CircularPad2d((1, 2, 0, 1))
nn.Unfold(3, padding=1, stride=2)
nn.Unfold((2, 3), dilation=2)
nn.Flatten()
nn.Flatten(0, 1)
nn.Flatten(start_dim=2)
nn.Unflatten(1, (2, 2))
nn.Softmax2d()
nn.Softmax(dim=1)
nn.LogSoftmax(-1)
nn.Softmin(1)
nn.GLU(1)
nn.PReLU(4)
nn.PReLU(init=0.1)
nn.LeakyReLU(0.3, inplace=True)
nn.ELU(2.0)
nn.Hardtanh(-0.5, 0.5)
nn.Threshold(0.1, 3.0)
nn.Softplus(2, 1)
nn.GELU("tanh")
nn.RReLU(0.1, 0.1)
nn.CELU(0.5)
nn.Hardshrink(0.2)
nn.Softshrink(0.3)
nn.Mish()
nn.SiLU(inplace=True)
nn.Dropout2d(0.0)
nn.AlphaDropout(0.0)
nn.FeatureAlphaDropout(0.0)
nn.Sequential(nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4), nn.ReLU(True))
nn.Sequential(nn.Flatten(2), nn.Linear(64, 3, bias=False))
nn.Sequential(nn.Flatten(2), nn.AdaptiveAvgPool1d(3))
nn.Linear(8, 3)
"""
"""Layers that are called with ``im``."""

LAYERS = """
nn.LSTM(6, 5) :: L(x)
nn.LSTM(6, 5, num_layers=2, batch_first=True, bidirectional=True) :: L(x)[0]
nn.LSTM(6, 5, 2, bias=False, proj_size=3) :: L(x)
nn.LSTM(6, 5, proj_size=2, bidirectional=True, batch_first=True) :: L(x)[1]
nn.GRU(6, 5, 2, batch_first=True) :: L(x)
nn.GRU(6, 5, bidirectional=True, bias=False) :: L(x)[1][-1]
nn.GRU(input_size=6, hidden_size=4) :: L(x, torch.ones(1, 4, 4))
nn.RNN(6, 5, nonlinearity="relu") :: L(x)
nn.RNN(6, 5, 2, "tanh", batch_first=True, bidirectional=True) :: L(x)[0][:, -1]
nn.LSTM(6, 4) :: L(x[:, 0])
nn.LSTM(6, 4, batch_first=True) :: L(x, (torch.zeros(1, 3, 4), torch.ones(1, 3, 4)))[1][1]
nn.GRUCell(6, 5) :: L(x[0])
nn.LSTMCell(6, 5, bias=False) :: L(x[:, 0])
nn.RNNCell(6, 5, nonlinearity="relu") :: L(x[0], torch.ones(4, 5))
nn.MultiheadAttention(6, 2) :: L(x, x, x)
nn.MultiheadAttention(6, 3, batch_first=True, bias=False) :: L(x, x, x, need_weights=False)[0]
nn.MultiheadAttention(6, 2, batch_first=True) :: L(x, x, x, average_attn_weights=False)[1]
nn.MultiheadAttention(6, 2, kdim=3, vdim=2, batch_first=True) :: L(x, x[..., :3], x[..., :2])
nn.MultiheadAttention(6, 2, add_bias_kv=True, add_zero_attn=True) :: L(x, x, x)[0]
nn.MultiheadAttention(6, 2, batch_first=True) :: L(x, x, x, attn_mask=torch.ones(4, 4).triu(1).bool())[0]
nn.MultiheadAttention(6, 2, batch_first=True) :: L(x, x, x, key_padding_mask=x[..., 0] > 9)[0]
nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, batch_first=True) :: L(x)
nn.TransformerEncoderLayer(6, 3, dim_feedforward=5, dropout=0.0, activation="gelu", norm_first=True) :: L(x)
nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, 0.0, batch_first=True), 2, norm=nn.LayerNorm(6)) :: L(x)
nn.TransformerDecoderLayer(6, 2, 8, 0.0, batch_first=True) :: L(x, x * 2)
nn.Embedding(7, 4) :: L(i)
nn.Embedding(7, 4, padding_idx=0) :: L(i)
nn.EmbeddingBag(7, 4) :: L(i.view(1, 3))
nn.EmbeddingBag(7, 4, mode="sum") :: L(i, torch.tensor([0, 2]))
nn.Embedding.from_pretrained(torch.arange(28.0).view(7, 4)) :: L(i)
nn.Bilinear(6, 6, 3) :: L(x, x + 1)
nn.CosineSimilarity(dim=1) :: L(x, x + 1)
nn.PairwiseDistance(p=1, keepdim=True) :: L(x[0], x[1])
nn.Conv1d(4, 6, 3, padding="same", padding_mode="circular") :: L(x)
nn.Conv1d(4, 4, 2, stride=2, groups=2, bias=False) :: L(x)
nn.ConvTranspose1d(4, 2, 3, 2, output_padding=1) :: L(x)
nn.Conv3d(1, 2, (1, 2, 3)) :: L(x[:, None, None])
nn.BatchNorm1d(4) :: L(x)
nn.BatchNorm1d(6, affine=False) :: L(x[:, 0])
nn.MaxPool1d(2, return_indices=True) :: L(x)[1]
nn.MaxUnpool1d(2) :: L(*F.max_pool1d(x, 2, return_indices=True))
nn.AdaptiveMaxPool1d(4) :: L(x)
nn.AvgPool1d(3, 1, 1, count_include_pad=False) :: L(x)
nn.ConstantPad1d((1, 2), 0.5) :: L(x)
nn.Upsample(scale_factor=1.5, mode="linear") :: L(x)
nn.Fold((3, 4), (2, 2)) :: L(x.reshape(1, 12, 6))
nn.CrossEntropyLoss(label_smoothing=0.1) :: L(x[0], torch.tensor([1, 0, 5, 2]))
nn.CrossEntropyLoss(weight=torch.arange(1.0, 7), reduction="none") :: L(x[0], torch.tensor([1, 0, 5, 2]))
nn.CrossEntropyLoss(ignore_index=0) :: L(x, i[:, None].expand(3, 6) % 4)
nn.BCEWithLogitsLoss(pos_weight=torch.ones(6) * 2) :: L(x, (x > 0).float())
nn.KLDivLoss(reduction="batchmean", log_target=True) :: L(F.log_softmax(x, -1), F.log_softmax(x * 2, -1))
nn.SmoothL1Loss(beta=0.3) :: L(x, x * 2)
nn.NLLLoss() :: L(F.log_softmax(x, 1), i[:, None].expand(3, 6) % 4)
nn.MarginRankingLoss(0.1) :: L(x[0, 0], x[1, 0], x[2, 0].sign())
nn.TripletMarginLoss(margin=0.5, p=1) :: L(x[0], x[1], x[2])
nn.MultiLabelSoftMarginLoss() :: L(x[0], (x[1] > 0).float())
nn.GaussianNLLLoss() :: L(x, x * 2, x.abs() + 1)
nn.PoissonNLLLoss() :: L(x, x.abs())
nn.HingeEmbeddingLoss() :: L(x, x.sign())
"""
"""Layers and how they are called, as ``L``."""

SIGNATURES = [
    "x, im, v, i",
    "x: torch.Tensor, im: torch.Tensor, v: torch.Tensor, i: torch.Tensor",
    "x: torch.Tensor, im: torch.Tensor, v: torch.Tensor, i: torch.LongTensor",
]
IN_PLACE_OF_X = ["x * 2", "torch.sin(x)", "x.transpose(1, 2).transpose(2, 1)", "x + 1", "x.clone()"]
"""What a method is called on instead of an argument."""


def program(seed: int) -> Program:
    """Two to five lines of any sort."""
    draw = random.Random(seed)
    init: list[str] = []
    lines: list[str] = []
    count = draw.randint(2, 5)
    for place in range(count):
        lines += _lines(draw, place, init)
    results = ", ".join(f"o{place}" for place in range(count))
    source = [
        "class M(nn.Module):",
        "    def __init__(self):",
        "        super().__init__()",
        *(f"        {line}" for line in init),
        "",
        f"    def forward(self, {draw.choice(SIGNATURES)}):",
        *(f"        {line}" for line in lines),
        f"        return {results}",
    ]
    return Program(
        source="\n".join(source) + "\n",
        calls=["m(x, im, v, i)"],
        inputs={
            "x": torch.randn(3, 4, 6),
            "im": torch.randn(2, 4, 8, 8),
            "v": torch.randn(5),
            "i": torch.tensor([0, 3, 2]),
        },
        modes=draw.choice([(False, True), (True, False)]),
    )


def _lines(draw: random.Random, place: int, init: list[str]) -> list[str]:
    """The lines that compute ``o0``, ``o1``, …; a layer is made in the constructor."""
    sort = draw.random()
    if sort < 0.62:
        line = draw.choice(EXPRESSIONS)
        if line.startswith("x.") and draw.random() < 0.25:
            line = f"({draw.choice(IN_PLACE_OF_X)}){line[1:]}"
        if line.startswith("x") and draw.random() < 0.2:
            renamed = re.sub(r"\bx\b", f"h{place}", line)
            return [f"h{place} = x - 0.1", f"o{place} = {renamed}"]
        return [f"o{place} = {line}"]
    if sort < 0.76:
        written = draw.sample(ASSIGNING.strip().splitlines(), draw.randint(1, 2))
        copy = draw.choice(["x.clone()", "x * 1", "torch.zeros_like(x) + x"])
        return [f"t = {copy}", *written, f"o{place} = t + 0"]
    if sort < 0.9:
        init.append(f"self.l{place} = {draw.choice(IMAGE_LAYERS.strip().splitlines())}")
        return [f"o{place} = self.l{place}(im * 1)"]
    layer, called = draw.choice(LAYERS.strip().splitlines()).split(" :: ")
    init.append(f"self.l{place} = {layer}")
    return [f"o{place} = {called.replace('L(', f'self.l{place}(', 1)}"]
