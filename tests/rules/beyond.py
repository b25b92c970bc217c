"""Uses of what torch's op and module databases have no entry for, or no float32 sample of.

Expressions are over the arrays of ``test_beyond``; each becomes a function of those it names, or a layer called with
what it is paired with.
"""

from __future__ import annotations

VALUES: dict[str, tuple[str, ...]] = {
    "Tensor.__and__": ("i & j", "mask & other", "i & 3", "mask & (x > 0)"),
    "Tensor.__or__": ("i | j", "mask | other", "8 | i"),
    "Tensor.__xor__": ("i ^ j", "mask ^ other"),
    "Tensor.__invert__": ("~i", "~mask"),
    "Tensor.__lshift__": ("i << j", "i << 2"),
    "Tensor.__rshift__": ("i >> j", "i >> 1", "-i >> 1"),
    "torch.bitwise_and": ("torch.bitwise_and(i, j)", "i.bitwise_and(j)"),
    "torch.bitwise_not": ("torch.bitwise_not(i)", "mask.bitwise_not()"),
    "torch.bitwise_left_shift": ("torch.bitwise_left_shift(i, j)",),
    "Tensor.cpu": ("x.cpu()", "x.cpu().to('cpu')"),
    "Tensor.fill_diagonal_": ("x.clone().fill_diagonal_(2.0)",),
    "torch.gcd": ("torch.gcd(i, j)", "i.gcd(j)"),
    "torch.lcm": ("torch.lcm(i, j)", "i.lcm(j)"),
    "Tensor.imag": ("c.imag", "c.real", "torch.imag(c)"),
    "Tensor.new_tensor": ("x.new_tensor([1.0, 2.0]) + v[:2]", "x.new_tensor([1, 2])"),
    "Tensor.type": (
        "x.type(torch.float64).float()",
        "i.type(torch.float32)",
        "x.type(torch.LongTensor)",
        "i.type('torch.FloatTensor')",
    ),
    "Tensor.type_as": ("i.type_as(x)", "x.type_as(i)", "mask.type_as(x)"),
    "torch.as_tensor": (
        "torch.as_tensor([1.0, 2.0]) * v[:2]",
        "torch.as_tensor(x, dtype=torch.int64)",
        "torch.as_tensor(3)",
    ),
    "torch.asarray": ("torch.asarray([[1, 2], [3, 4]])",),
    "torch.bartlett_window": (
        "torch.bartlett_window(7)",
        "torch.bartlett_window(6, periodic=False)",
    ),
    "torch.blackman_window": (
        "torch.blackman_window(7)",
        "torch.blackman_window(6, periodic=False)",
    ),
    "torch.kaiser_window": ("torch.kaiser_window(7)", "torch.kaiser_window(6, False, 9.0)"),
    "torch.chain_matmul": ("torch.chain_matmul(x, y.t(), x)",),
    "torch.cond": ("torch.cond(x.sum() > 0, lambda a: a + 1, lambda a: a * 2, (x,))",),
    "torch.detach_copy": ("torch.detach_copy(x) * x",),
    "torch.embedding": ("torch.embedding(rows, k)",),
    "torch.is_tensor": ("x if torch.is_tensor(x) else y",),
    "torch.promote_types": ("x.to(torch.promote_types(torch.float32, torch.int64))",),
    "torch.result_type": ("i.to(torch.result_type(i, x))",),
    "torch.finfo": (
        "x.masked_fill(mask, torch.finfo(x.dtype).min)",
        "x + torch.finfo(torch.float32).eps",
    ),
    "torch.iinfo": ("i.clamp(max=torch.iinfo(torch.int16).max)",),
    "torch.get_default_dtype": ("i.to(torch.get_default_dtype())",),
    "torch.range": ("torch.range(1, 4)", "torch.range(0, 2, 0.5)"),
    "torch.tril_indices": ("torch.tril_indices(3, 4)", "torch.tril_indices(3, 3, -1)"),
    "torch.triu_indices": ("torch.triu_indices(3, 4)", "torch.triu_indices(4, 4, offset=1)"),
    "torch.unravel_index": ("torch.unravel_index(k, (2, 3))",),
    "torch.vander": ("torch.vander(v)", "torch.vander(v, N=3, increasing=True)"),
    "torch.while_loop": (
        "torch._higher_order_ops.while_loop(lambda a: a.sum() < 50, lambda a: (a * a + 1,), (x,))",
    ),
    "torch.FloatTensor": ("torch.FloatTensor([1, 2, 3]) * v[:3]",),
    "torch.DoubleTensor": ("torch.DoubleTensor([1, 2, 3]).float() * v[:3]",),
    "torch.IntTensor": ("torch.IntTensor([1, 2, 3])",),
    "torch.adaptive_max_pool1d": ("torch.adaptive_max_pool1d(seq, 5)",),
    "torch.max_pool1d_with_indices": ("torch.max_pool1d_with_indices(seq, 2)",),
    "torch.conv_tbc": (
        "torch.conv_tbc(seq, rows.reshape(3, 16)[:, :10, None].repeat(1, 1, 2), v[:2])",
    ),
    "F.adaptive_max_pool1d_with_indices": ("F.adaptive_max_pool1d_with_indices(seq, 5)",),
    "F.adaptive_max_pool2d_with_indices": ("F.adaptive_max_pool2d_with_indices(img, (3, 2))",),
    "F.adaptive_max_pool3d_with_indices": ("F.adaptive_max_pool3d_with_indices(vol, 2)",),
    "F.max_pool1d_with_indices": ("F.max_pool1d_with_indices(seq, 3, 2)",),
    "F.max_pool2d_with_indices": ("F.max_pool2d_with_indices(img, 2)",),
    "F.max_pool3d_with_indices": ("F.max_pool3d_with_indices(vol, 2)",),
    "F.lp_pool1d": ("F.lp_pool1d(seq, 2.0, 3)", "F.lp_pool1d(seq, 2, 2, stride=1, ceil_mode=True)"),
    "F.lp_pool2d": ("F.lp_pool2d(img, 2, 2)", "F.lp_pool2d(img, 1.0, (3, 2), stride=2)"),
    "F.lp_pool3d": ("F.lp_pool3d(vol, 2, 2)",),
    "F.one_hot": ("F.one_hot(k, 5)", "F.one_hot(i, num_classes=31).float()"),
    "torch.fft.fftfreq": ("torch.fft.fftfreq(6)", "torch.fft.fftfreq(5, d=0.5)"),
    "torch.fft.rfftfreq": ("torch.fft.rfftfreq(6)", "torch.fft.rfftfreq(5, d=0.5)"),
    "torch.nn.init.calculate_gain": (
        "x * nn.init.calculate_gain('relu')",
        "x * nn.init.calculate_gain('leaky_relu', 0.2)",
        "x * nn.init.calculate_gain('tanh')",
    ),
    "torch.func.linearize": ("torch.func.linearize(torch.sin, x)[1](y)",),
}

NO_GRADIENT = frozenset(
    [
        "torch.detach_copy(x) * x",  # torch has none for it
        "torch._higher_order_ops.while_loop(lambda a: a.sum() < 50, lambda a: (a * a + 1,), (x,))",  # JAX has none
        "torch.func.linearize(torch.sin, x)[1](y)",  # by y only, in torch
        "torch.vander(v)",  # torch writes over what its own gradient needs
        "torch.vander(v, N=3, increasing=True)",
        "x.clone().fill_diagonal_(2.0)",
    ]
)
"""Uses of which values only are compared."""

STATIC: dict[str, tuple[str, ...]] = {
    "Tensor.device": ("x.device.type",),
    "Tensor.dim": ("x.dim()", "x.ndim", "x.ndimension()"),
    "Tensor.element_size": ("x.element_size()", "x.itemsize"),
    "Tensor.nbytes": ("x.nbytes",),
    "Tensor.nelement": ("x.nelement()", "x.numel()"),
    "Tensor.__len__": ("len(x)", "len(x.shape)"),
    "Tensor.is_floating_point": (
        "x.is_floating_point()",
        "i.is_floating_point()",
        "torch.is_floating_point(x)",
    ),
    "Tensor.is_signed": ("x.is_signed()", "mask.is_signed()"),
    "Tensor.is_same_size": ("x.is_same_size(y)", "x.is_same_size(v)"),
    "Tensor.is_conj": ("x.is_conj()", "x.is_neg()"),
    "Tensor.is_sparse": (
        "x.is_sparse",
        "x.is_quantized",
        "x.is_nested",
        "x.is_meta",
        "x.is_mkldnn",
    ),
    "Tensor.is_cuda": ("x.is_cuda", "x.is_mps"),
    "torch.Size": ("torch.Size([2, 3])", "torch.Size((2, 3)).numel()"),
    "torch.is_tensor": ("torch.is_tensor(x)", "torch.is_tensor(3)"),
    "torch.is_autocast_enabled": ("torch.is_autocast_enabled()",),
}

LAYERS: dict[str, tuple[tuple[str, str], ...]] = {
    "ChannelShuffle": (("nn.ChannelShuffle(2)", "img"),),
    "CosineSimilarity": (("nn.CosineSimilarity(dim=1, eps=1e-6)", "x, y"),),
    "Dropout": (("nn.Dropout(0.0)", "x"), ("nn.Dropout(1.0)", "x")),
    "Dropout1d": (("nn.Dropout1d(0.0)", "seq"),),
    "Dropout2d": (("nn.Dropout2d(0.0)", "img"),),
    "Dropout3d": (("nn.Dropout3d(0.0)", "vol"),),
    "AlphaDropout": (("nn.AlphaDropout(0.0)", "x"),),
    "Fold": (("nn.Fold((4, 5), (2, 2), stride=(1, 2))", "seq[:, :, :6]"),),
    "Unfold": (
        ("nn.Unfold(3, padding=1, stride=2)", "img"),
        ("nn.Unfold((2, 3), dilation=2)", "img"),
    ),
    "LazyLinear": (("nn.LazyLinear(5)", "x"),),
    "MaxUnpool1d": (("nn.MaxUnpool1d(2)", "*F.max_pool1d(seq, 2, return_indices=True)"),),
    "MaxUnpool2d": (("nn.MaxUnpool2d(2)", "*F.max_pool2d(img, 2, return_indices=True)"),),
    "MaxUnpool3d": (("nn.MaxUnpool3d(2)", "*F.max_pool3d(vol, 2, return_indices=True)"),),
    "PairwiseDistance": (
        ("nn.PairwiseDistance(p=1.0, keepdim=True)", "x, y"),
        ("nn.PairwiseDistance()", "x, y"),
    ),
    "PixelShuffle": (("nn.PixelShuffle(2)", "img"),),
    "PixelUnshuffle": (("nn.PixelUnshuffle(3)", "img"),),
    "TransformerDecoder": (
        (
            "nn.TransformerDecoder(nn.TransformerDecoderLayer(10, 2, 12, 0.0), 2, nn.LayerNorm(10))",
            "seq, seq[:1] * 0.5",
        ),
    ),
    "TripletMarginLoss": (
        ("nn.TripletMarginLoss(margin=0.5)", "x, y, x * y"),
        ("nn.TripletMarginLoss(swap=True, reduction='none')", "x, y, x * y"),
    ),
    "TripletMarginWithDistanceLoss": (
        (
            "nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().sum(1))",
            "x, y, x * y",
        ),
        ("nn.TripletMarginWithDistanceLoss(swap=True)", "x, y, x * y"),
    ),
    "Upsample": (
        ("nn.Upsample(scale_factor=2)", "img"),
        ("nn.Upsample(size=(9, 4), mode='bilinear', align_corners=True)", "img"),
        ("nn.Upsample(scale_factor=1.5, mode='linear')", "seq"),
        ("nn.Upsample(scale_factor=2, mode='bicubic')", "img"),
        ("nn.Upsample(scale_factor=(2, 1, 2), mode='trilinear')", "vol"),
        ("nn.Upsample(size=7, mode='nearest-exact')", "seq"),
    ),
    "UpsamplingBilinear2d": (("nn.UpsamplingBilinear2d(scale_factor=2)", "img"),),
    "UpsamplingNearest2d": (("nn.UpsamplingNearest2d(size=(9, 13))", "img"),),
}

RANDOM: dict[str, tuple[str, ...]] = {
    "torch.alpha_dropout": (
        "torch.alpha_dropout(many, 0.3, True)",
        "F.alpha_dropout(many, 0.3, True)",
    ),
    "torch.feature_alpha_dropout": ("torch.feature_alpha_dropout(many, 0.3, True)",),
    "torch.dropout": ("torch.dropout(many, 0.3, True)", "F.dropout(many, 0.3)"),
    "torch.feature_dropout": ("torch.feature_dropout(many[..., None], 0.3, True)",),
    "F.dropout1d": ("F.dropout1d(many[None, ..., None].transpose(1, 2)[0], 0.4)",),
    "Tensor.random_": ("many.clone().random_(3, 9)",),
    "torch.poisson": ("torch.poisson(many.abs() * 3)",),
    "torch.rand": ("torch.rand(40, 500)", "torch.rand((40, 500)) * 2 - 1"),
    "torch.rand_like": ("torch.rand_like(many)",),
    "torch.randperm": ("torch.randperm(2000).float()",),
    "F.gumbel_softmax": ("F.gumbel_softmax(many, tau=0.7)", "F.gumbel_softmax(many, hard=True)"),
}

INITIALISERS: dict[str, tuple[str, ...]] = {
    "constant_": ("nn.init.constant_(w, 0.3)", "nn.init.constant_(b, 0.3)"),
    "ones_": ("nn.init.ones_(b)", "nn.init.ones_(w)"),
    "zeros_": ("nn.init.zeros_(b)",),
    "eye_": ("nn.init.eye_(w)",),
    "normal_": ("nn.init.normal_(w, 0.2, 0.5)", "nn.init.normal_(w, std=0.02)"),
    "uniform_": ("nn.init.uniform_(w, -0.3, 0.8)",),
    "trunc_normal_": (
        "nn.init.trunc_normal_(w, std=0.5)",
        "nn.init.trunc_normal_(w, 0.1, 0.5, -0.3, 0.6)",
    ),
    "xavier_normal_": ("nn.init.xavier_normal_(w)", "nn.init.xavier_normal_(w, gain=2.0)"),
    "xavier_uniform_": (
        "nn.init.xavier_uniform_(w)",
        "nn.init.xavier_uniform_(w, nn.init.calculate_gain('relu'))",
    ),
    "kaiming_normal_": (
        "nn.init.kaiming_normal_(w)",
        "nn.init.kaiming_normal_(w, mode='fan_out', nonlinearity='relu')",
    ),
    "kaiming_uniform_": (
        "nn.init.kaiming_uniform_(w, a=math.sqrt(5))",
        "nn.init.kaiming_uniform_(w, 0.1)",
    ),
    "orthogonal_": ("nn.init.orthogonal_(w, gain=1.4)",),
    "sparse_": ("nn.init.sparse_(w, sparsity=0.25, std=0.5)",),
}


def names() -> set[str]:
    """The qualified names that a table is about."""
    spelled = {
        name.replace("F.", "torch.nn.functional.", 1) for name in (*VALUES, *STATIC, *RANDOM)
    }
    layers = {f"torch.nn.{name}" for name in LAYERS}
    return spelled | layers | {f"torch.nn.init.{name}" for name in INITIALISERS}
