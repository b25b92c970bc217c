"""Expressions of the arguments that ``expressions`` describes, one a line, by topic."""

from __future__ import annotations

SHAPES = """
x.view(x.size(0), -1)
x.reshape(x.shape[0], 2, -1)
x.flatten(1)
x.flatten(0, 1)
x.flatten(-2)
torch.flatten(x, start_dim=1, end_dim=-1)
x.unflatten(1, (2, 2))
x.unflatten(-1, (-1, 3))
torch.unflatten(x, 2, (2, 3))
x.permute(2, 0, 1)
x.permute(-1, 0, 1)
torch.permute(x, (1, 2, 0))
x.transpose(-1, -2)
x.transpose(0, 2).contiguous().view(-1)
x.mT
x.movedim(0, -1)
torch.moveaxis(x, 1, 0)
x.swapaxes(0, 1)
x.chunk(2, dim=-1)
x.chunk(5, dim=-1)
torch.chunk(x, 4, 2)
x.split(4, dim=-1)
x.split([1, 3], dim=1)
torch.split(x, (2, 4), -1)
x.tensor_split(4, dim=-1)
x.unbind(1)
torch.unbind(x, dim=-2)[1]
torch.stack((x, x * 2), dim=-1)
torch.stack([x, x], -2)
torch.cat((x, x[:, :1]), dim=-2)
torch.cat([x, x], -1)
torch.concat((x, x), 1)
torch.hstack((x, x))
torch.vstack((x, x))
torch.dstack((x, x))
x.expand(2, -1, -1, -1)
x.repeat(2, 1, 1)
x.repeat(1, 1, 2, 1)
x.repeat_interleave(2, dim=1)
torch.repeat_interleave(x, 3, -1)
x.tile((2, 1))
torch.tile(x, (1, 2, 1, 1))
x.roll(1, -1)
torch.roll(x, (1, -1), (0, 1))
x.roll(shifts=2)
x.flip(-1)
x.flip([0, 2])
torch.flip(x, dims=(1,))
x.fliplr()
x.rot90(1, (1, 2))
x.unfold(-1, 3, 2)
x.unfold(dimension=1, size=2, step=1)
x @ x.transpose(1, 2)
x.bmm(x.mT)
torch.baddbmm(x[:, :, :4], x, x.mT, beta=0.5, alpha=2)
x.cross(x.roll(1, 0), dim=0)
x.diagonal(dim1=-2, dim2=-1)
x.diagonal(offset=1, dim1=1, dim2=2)
torch.diag_embed(x[0])
torch.diag(x[0, 0])
x.tril()
x.triu(1)
torch.tril(x, diagonal=-1)
torch.block_diag(x[0], x[1])
torch.broadcast_tensors(x, v[:1])[1]
x.squeeze(0)
x.unsqueeze(-1)
x.unsqueeze(-4)
x.view(-1, *x.shape[1:])
x.view(x.shape[:-1] + (2, 3))
x.view(*x.size()[:2], 3, 2)
x.reshape(-1, x.shape[-1])
x.reshape((x.size(0) * x.size(1), x.size(2)))
x.view_as(x * 2)
x.reshape_as(x.transpose(1, 2))
torch.cat([i, i.float()])
torch.stack((i, v[:3]))
torch.view_as_real(torch.complex(x, x))
torch.view_as_complex(x.view(3, 4, 3, 2)).abs()
torch.nn.functional.grid_sample(x[None], torch.stack((x[:1, :, :4].tanh(), x[1:2, :, :4].tanh()), -1), align_corners=False)
torch.nn.functional.fold(x.view(1, 12, 6), (3, 4), (2, 2))
"""
"""Views and copies of other shapes, with sizes that are computed."""

INDEXING = """
x[..., 0]
x[:, None]
x[None, ..., None]
x[..., None, :2]
x[:, -1, :]
x[:, ::2, 1::2]
x[:, [0, 2]]
x[[0, 1], [1, 2]]
x[:, [0, 1], [1, 2]]
x[[0, 1], :, [1, 2]]
x[torch.tensor([2, 0])]
x[torch.arange(3), i % 4]
x[:, i % 4]
x[torch.arange(3)[:, None], i[None] % 4]
x[..., i % 6]
x[i % 3, :, i % 6]
x[i % 3, None, :, 0]
x[-1]
x[-2:]
x[:-1, 1:-1]
x[True]
x[1, 2, 3]
x[1][2][3]
x[(0, 1)]
x[..., -1:]
x[slice(1, None)]
x[:, slice(None, None, 2)]
x.select(1, 2)
x.narrow(-1, 1, 3)
x.narrow(dim=1, start=-2, length=2)
x.index_select(1, i % 4)
torch.index_select(x, -1, i)
x.gather(1, (x > 0).long())
torch.gather(x, -1, x.argsort(-1))
x.gather(2, i.view(3, 1, 1).expand(-1, 4, 1) % 6)
x.take_along_dim(x.argmax(-1, keepdim=True), dim=-1)
torch.take(x, i)
x.take(i)
x.masked_fill(x > 0.5, -1.0)
x.masked_fill(x[0] > 0, 0)
x.masked_fill(~(x > 0), float("-inf")).softmax(-1).nan_to_num()
x[:, :1].expand(-1, 4, 6)
x[:1].expand_as(x)
x[:1].squeeze()
x[:1, :, :1].squeeze((0, 2))
x.select_scatter(x[:, 0] * 2, 1, 2)
"""
"""Every sort of index."""

REDUCTIONS = """
x - x.mean(-1, keepdim=True)
x / x.norm(dim=-1, keepdim=True)
x.sum((0, 2))
x.sum(dim=[-1, 1], keepdim=True)
x.mean((1, 2))
x.mean(-1, True)
x.mean()
x.std(-1)
x.std((1, 2), unbiased=False)
x.var(1, keepdim=True)
x.var(dim=-1, correction=0)
torch.var_mean(x, 1)
torch.std_mean(x, dim=(0, 1), unbiased=False)
x.max()
x.max(1)
x.max(-1).values
x.max(dim=1, keepdim=True)[0]
x.min(1)[1]
x.amax((1, 2))
x.amin(-1, keepdim=True)
x.aminmax(dim=-1)
x.argmax()
x.argmax(-1)
x.argmin(1, keepdim=True)
x.median()
x.median(-1)
x.mode(-1).values
x.sum(-1).prod(0)
x.prod(1)
x.norm()
x.norm(p=1, dim=-1)
x.norm(2, 1, True)
x.norm(float("inf"), dim=(1, 2))
torch.linalg.norm(x, dim=-1)
torch.linalg.vector_norm(x, ord=3, dim=(0, 1))
torch.norm(x, dim=1, p=2)
x.logsumexp(-1)
x.logsumexp((1, 2), keepdim=True)
x.any()
(x > 0).any(-1)
(x > 0).all(dim=1, keepdim=True)
(x > 0).sum()
(x > 0).sum(-1)
(x > 0).float().mean()
x.count_nonzero(-1)
torch.count_nonzero(x)
x.sort(-1)
x.sort(dim=1, descending=True)[0]
torch.sort(x, descending=True).indices
x.argsort(-1, descending=True)
x.topk(2)
x.topk(3, dim=1)[1]
torch.topk(x, k=2, dim=-1, largest=False).values
x.topk(2, sorted=True).indices
x.kthvalue(2, dim=-1).values
x.cumsum(-1)
x.cumprod(1)
x.cummax(-1)[0]
x.cummin(1).indices
x.logcumsumexp(-1)
x.diff()
x.diff(dim=1)
torch.diff(x, n=2, dim=-1)
x.quantile(0.3, dim=-1)
torch.clamp(x, max=x.mean())
torch.cumulative_trapezoid(x)
torch.trapz(x, dim=1)
torch.allclose(x, x)
x.isnan().any()
x.eq(0).sum()
x.ne(x.max())
torch.max(x, x * 2)
torch.maximum(x, v[0])
torch.min(x, dim=-1)
torch.minimum(i, i.flip(0))
torch.max(i)
x.max(x * 0)
torch.linalg.inv(x[0, :, :4] + 3 * torch.eye(4))
torch.linalg.det(x[:, :, :4])
torch.linalg.solve(x[0, :, :4] + 3 * torch.eye(4), x[0])
torch.linalg.matrix_norm(x)
"""
"""Over one axis, several, all; what comes in pairs; what sorts and accumulates."""

NUMBERS = """
torch.where(x > 0, x, 0.1 * x)
torch.where(x > 0, 1.0, x)
torch.where(x[..., :1] > 0, x, -x)
x.where(x > 0, torch.zeros_like(x))
torch.einsum("bij,bkj->bik", x, x)
torch.einsum("...ij->...j", x)
torch.einsum("bij,bij->b", [x, x])
torch.einsum("bii->bi", x[:, :, :4])
torch.einsum("bij->", x)
torch.einsum("i j k, l j k -> i l", x, x)
x + x[0]
x * x[:, :1]
x + v[:4, None]
x.clamp(-0.5, 0.5)
x.clamp(min=0)
x.clamp_min(0.1)
x.clip(0, 1)
x.round()
x.round(decimals=1)
x.floor()
x.ceil().long()
x.trunc()
x.frac()
x // 0.3
x % 0.3
-x % 2
torch.remainder(x, -0.7)
torch.fmod(x, 0.4)
x.div(0.3, rounding_mode="floor")
torch.div(x, 0.7, rounding_mode="trunc")
torch.floor_divide(x, 0.5)
x ** 2
2 ** x
x.pow(3)
torch.pow(2, x)
x.abs() ** 0.5
x.sign()
x.sgn()
x.heaviside(v[:1])
x.hypot(x)
torch.atan2(x, x + 1)
x.lerp(x * 2, 0.3)
torch.lerp(x, -x, x.sigmoid())
torch.addcmul(x, x, x, value=0.5)
x.addcdiv(x, x.abs() + 1, value=2)
torch.matmul(x, v[:6] if v.shape[0] > 5 else x[0, 0])
torch.addmm(x[0, :, :4], x[0], x[1].t())
torch.mv(x[0], x[1, 0])
torch.outer(x[0, 0], x[0, 1])
torch.dot(x[0, 0], x[1, 1])
torch.tensordot(x, x, dims=([1, 2], [1, 2]))
torch.cdist(x, x)
torch.cdist(x, x, p=1.0)
torch.kron(x[0], x[1])
torch.trace(x[0])
torch.bucketize(x, torch.tensor([-0.5, 0.0, 0.5]))
torch.searchsorted(torch.tensor([-0.5, 0.0, 0.5]), x, right=True)
torch.atleast_2d(v)
torch.isclose(x, x + 1e-9)
torch.equal(x, x * 1)
torch.isfinite(x / (x > 0))
torch.logical_and(x > 0, x < 0.5)
(x > 0) & (x < 1) | (x < -1)
(x > 0) ^ (x > 1)
~(x > 0)
1 - (x > 0).int()
x.gt(0) * x
torch.zeros_like(x, dtype=torch.long)
torch.zeros(x.size(0), 1, dtype=x.dtype)
x.softmax(dim=-1)
i // 2
i % 3
-i // 2
-i % 3
i / 2
i * 0.5
i + 1.5
i ** 2
2 ** i
i * True
i > 1
(i > 1) + 1
(i > 1) + (i > 2)
(i > 1) * 0.5
(i > 1) / 2
i.float() / 3
i & 1
i << 1
i >> 1
i ^ 3
~i
i.bool()
i.sum() / i.numel()
i.float().mean()
i.double().std()
i.max() + 0.5
i.cumsum(0)
i.prod()
torch.true_divide(i, 2)
torch.floor_divide(-i, 2)
torch.div(i, 2)
torch.div(i, 2, rounding_mode="floor")
torch.bincount(i, minlength=6)
torch.sqrt(i)
torch.exp(i)
i.float().sigmoid()
torch.where(i > 1, i, 0)
torch.where(i > 1, 1, 0.5)
torch.where(i > 1, 1, 0)
torch.where(i > 1, i, v[:3])
i + v[:3]
i * x[:, 0, 0]
(x > 0) + x
x * (i > 1)[:, None, None]
x.int() / 2
x.half().float() + 1
x.double() + 1
x.to(torch.int32) // 2
x.to(torch.long)
x.type(torch.float64).sum()
x.type_as(i)
x.bool().int().sum(-1)
x.long() % 2
torch.sum(x, dtype=torch.float64)
x.sum(dtype=torch.int32)
i.sum(dtype=torch.float32)
i.to(x.dtype) @ x[:, 0]
torch.result_type(x, i) == torch.float32
x.dtype == torch.float32
x.is_floating_point()
x.numel() // 2
x.shape[0] / 2
x.dim() + x.ndim
x.size()[1]
list(x.shape)[-1]
len(x)
x.nelement()
x.element_size()
torch.add(x, x, alpha=2)
x.sub(1, alpha=2)
torch.rsub(x, 1)
torch.mul(x, 2)
x.add(1).mul(2).neg()
x.reciprocal()
x.square().sqrt()
x.rsqrt()
x.exp().log1p()
x.expm1()
x.erf()
x.sin() + x.cos()
torch.sinc(x)
x.logit(eps=1e-3)
torch.special.expit(x)
x.sigmoid().logit()
x.nan_to_num(0.0)
x.float().tolist()[0][0][:1]
torch.isin(i, torch.tensor([1, 3]))
torch.histc(x, 4, -1, 1)
torch.vander(v)
torch.nn.functional.pdist(x[0])
torch.corrcoef(x[0])
torch.cov(x[0])
torch.fft.rfft(x).abs()
torch.fft.fft2(x).real
torch.polar(x.abs(), x).real
torch.nn.functional.affine_grid(x[:2, :2, :3], (2, 1, 3, 3), align_corners=True)
torch.nn.functional.pad(x > 0, (1, 1))
"""
"""Arithmetic of mixed types, the elementwise functions, products."""

FUNCTIONS = """
F.pad(x, (1, 2))
F.pad(x, (1, 1, 2, 0), value=0.5)
F.pad(x, (-1, 1))
F.pad(x, (0, -2, -1, 0))
F.pad(x, (1, 2), mode="reflect")
F.pad(x, (2, 1), "replicate")
F.pad(x, [1, 2], mode="circular")
F.pad(input=x, pad=(0, 0, 0, 0, 1, 1), mode="constant", value=-1)
F.one_hot(i, 6)
F.one_hot(i % 3)
F.normalize(x, dim=-1)
F.normalize(x, p=1, dim=1, eps=0.1)
F.softmax(x, -1)
F.softmax(x, dim=1, dtype=torch.float32)
F.log_softmax(x, 1)
F.softmin(x, 0)
F.gumbel_softmax(x * 0 + 1, dim=-1) * 0
F.glu(x, dim=-1)
F.gelu(x, approximate="tanh")
F.elu(x, 0.5)
F.leaky_relu(x, 0.2)
F.hardtanh(x, -0.5, 0.3)
F.relu6(x * 8)
F.softplus(x, beta=2)
F.softplus(x * 30, threshold=5)
F.threshold(x, 0.1, 20)
F.hardshrink(x)
F.softshrink(x, 0.2)
F.tanhshrink(x)
F.logsigmoid(x)
F.mish(x)
F.hardswish(x)
F.hardsigmoid(x)
F.silu(x)
F.selu(x)
F.celu(x, 2.0)
F.prelu(x, v[:1])
F.prelu(x, v[:4])
F.rrelu(x, training=False)
F.layer_norm(x, (6,))
F.layer_norm(x, x.shape[1:], eps=0.1)
F.group_norm(x, 2)
F.instance_norm(x)
F.local_response_norm(x, 2)
F.rms_norm(x, (6,))
F.cosine_similarity(x, x.roll(1, 0), dim=1)
F.pairwise_distance(x, x + 1)
F.mse_loss(x, x * 2)
F.l1_loss(x, x * 2, reduction="sum")
F.smooth_l1_loss(x, x * 3, beta=0.5)
F.huber_loss(x, x * 3, delta=0.3)
F.cross_entropy(x.flatten(0, 1), (x.flatten(0, 1) > 0).sum(-1) % 6)
F.cross_entropy(x, i.view(3, 1).expand(3, 6) % 4, label_smoothing=0.1)
F.cross_entropy(x[0], i.new_tensor([0, 1, 2, 2]), ignore_index=2)
F.nll_loss(F.log_softmax(x[0], -1), torch.tensor([0, 5, 1, 2]), reduction="none")
F.binary_cross_entropy_with_logits(x, (x > 0.2).float(), pos_weight=v[:1].abs())
F.binary_cross_entropy(x.sigmoid(), (x > 0).float())
F.kl_div(F.log_softmax(x, -1), F.softmax(x * 2, -1), reduction="batchmean")
F.interpolate(x, scale_factor=2)
F.interpolate(x, size=9, mode="linear")
F.interpolate(x, size=4, mode="linear", align_corners=True)
F.interpolate(x, scale_factor=1.5, mode="nearest-exact")
F.avg_pool1d(x, 2)
F.avg_pool1d(x, 3, 2, padding=1, ceil_mode=True, count_include_pad=False)
F.max_pool1d(x, 2, stride=1)
F.max_pool1d(x, 3, 2, 1, ceil_mode=True)
F.max_pool1d(x, 2, return_indices=True)
F.adaptive_avg_pool1d(x, 4)
F.adaptive_max_pool1d(x, 5)
F.lp_pool1d(x, 2, 2)
F.embedding(i, x[0].t())
F.embedding(i, x[0].t(), padding_idx=0)
F.dropout(x, 0.5, False)
F.linear(x, x[0])
F.bilinear(x[:, 0], x[:, 1], x)
F.conv1d(x, torch.ones(2, 4, 3) * 0.1)
F.conv1d(x, x[:2, :, :3], padding="same")
F.conv1d(x, torch.ones(4, 2, 2), groups=2, dilation=2, stride=2)
F.conv_transpose1d(x, torch.ones(4, 2, 3) * 0.3, stride=2, output_padding=1)
F.scaled_dot_product_attention(x, x, x)
F.scaled_dot_product_attention(x, x, x, is_causal=True, scale=0.5)
F.scaled_dot_product_attention(x[None], x[None], x[None], attn_mask=torch.ones(4, 4).tril().bool())
F.pixel_shuffle(x[:, :, None], 2)
F.unfold(x[None], (2, 2))
F.channel_shuffle(x[..., None], 2)
F.triplet_margin_loss(x[0], x[1], x[2])
F.margin_ranking_loss(x[0, 0], x[1, 0], x[2, 0].sign())
F.cosine_embedding_loss(x[0], x[1], torch.tensor([1, -1, 1, 1]))
F.pad(i, (1, 1), value=7)
"""
"""torch.nn.functional with unusual options."""

MAKING = """
torch.meshgrid(v, v[:3], indexing="xy")
torch.meshgrid(v, v[:2], indexing="ij")
torch.cartesian_prod(v, v[:2])
torch.combinations(v)
x.new_zeros(x.shape[0], 2)
x.new_full((2,), 3)
x.new_tensor([1, 2])
torch.full_like(x, 2)
torch.full((2, 2), 3)
torch.full((2,), True)
torch.ones(x.shape[:2])
torch.arange(x.size(1))
torch.arange(1, 2, 0.25)
torch.arange(5, 0, -2)
torch.linspace(0, 1, x.shape[-1])
torch.logspace(0, 1, 4)
torch.eye(3, 4)
torch.tensor([1, 2.5])
torch.tensor([True, False])
torch.tensor(x.shape)
torch.empty_like(x).fill_(2)
torch.scalar_tensor(2.0) * x
"""
"""Tensors made from sizes and numbers."""

SCATTERING = """
x.scatter(1, (x > 0).long(), 1.0)
x.scatter(-1, i.view(3, 1, 1).expand(3, 4, 1), x[..., :1])
x.scatter_add(1, (x > 0).long(), x)
torch.zeros(3, 4, 6).scatter_(2, x.argmax(-1, keepdim=True), 1.0)
torch.zeros(3, 6).scatter_(1, i[:, None], 1)
torch.zeros(6, 4).index_add(0, i, x[..., 0])
torch.zeros(6, 4).index_add_(0, i, x[..., 0], alpha=0.5)
torch.zeros(6).scatter_add(0, i, x[:, 0, 0])
torch.zeros(6, 4).scatter_reduce(0, i[:, None].expand(3, 4), x[..., 0], "amax", include_self=False)
torch.zeros(6, 4).index_copy(0, i, x[..., 0])
torch.zeros(6).index_fill(0, i, 2.0)
torch.zeros(6).index_put((i,), x[:, 0, 0])
x.slice_scatter(x[:, :2], 1, 0, 4, 2)
"""
"""What writes at places that are given."""

EXPRESSIONS = [
    line
    for table in (SHAPES, INDEXING, REDUCTIONS, NUMBERS, FUNCTIONS, MAKING, SCATTERING)
    for line in table.strip().splitlines()
]
