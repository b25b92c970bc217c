"""Graph networks without a graph library: convolution, attention and a readout for each graph."""

import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax


def along_axis(index: jax.Array, axis: int) -> tuple[jax.Array, ...]:
    """The subscript of the places ``index`` along ``axis``; elsewhere each place keeps its own position.

    ``x[along_axis(index, axis)]`` has the shape of ``index``, which may be shorter than ``x`` on the other
    axes (``jnp.take_along_axis`` would broadcast a 1 there).
    """
    places = list(jnp.indices(index.shape, sparse=True))
    places[axis] = index
    return tuple(places)


def clamp(x: jax.Array, min=None) -> jax.Array:
    """``x`` bounded to [min, max] (numbers or arrays); the gradient at a bound is 1, in jnp.clip it is 1/2; of NaN it is 0."""
    if min is not None:
        x = jnp.where(x >= min, x, jnp.where(x < min, min, lax.stop_gradient(x)))
    return x


class Linear(nnx.Linear):
    """``nnx.Linear`` with torch's initialisation: U(±1/√in_features) for kernel and bias."""

    def __init__(self, in_features, out_features, *, rngs: nnx.Rngs, **options):
        bound = max(in_features, 1) ** -0.5
        init = jax.tree_util.Partial(jax.random.uniform, minval=-bound, maxval=bound)
        options = {"kernel_init": init, "bias_init": init, **options}
        super().__init__(in_features, out_features, rngs=rngs, **options)


def leaky_relu(input, negative_slope=0.01):
    """x where x > 0, else negative_slope · x; the slope at 0 is ``negative_slope``, as in torch."""
    return jnp.where(input > 0, input, negative_slope * input)


def dropout_(input, p=0.5, training=True, *, rngs=None):
    """In training, zero each element with probability ``p`` and scale the others by 1 / (1 - p)."""
    if not training or p == 0:
        return input
    keep = rngs.dropout.bernoulli(1 - p, input.shape)
    return jnp.where(keep, input * (1 / (1 - p) if p < 1 else 0.0), 0)


def degree(index: jax.Array, num_nodes: int) -> jax.Array:
    """Number of edges that end in each node, as floats of shape (num_nodes,)."""
    out = jnp.zeros((num_nodes,))
    return out.at[along_axis(index, 0)].add(jnp.ones_like(index, dtype=out.dtype))


def scatter_mean(src: jax.Array, index: jax.Array, dim_size: int) -> jax.Array:
    """Mean of the rows of src (N, C) that carry the same index, of shape (dim_size, C)."""
    total = jnp.zeros((dim_size, src.shape[-1]), src.dtype).at[index].add(src)
    count = clamp(degree(index, dim_size), min=1)
    return total / count[..., None]


class GCNConv(nnx.Module):
    """Graph convolution with symmetric degree normalisation (Kipf & Welling, 2017)."""

    def __init__(self, in_channels: int, out_channels: int, *, rngs: nnx.Rngs):
        self.weight = nnx.Param(jnp.empty((in_channels, out_channels)))
        self.bias = nnx.Param(jnp.zeros((out_channels,)))
        self.reset_parameters(rngs=rngs)

    def reset_parameters(self, *, rngs: nnx.Rngs):
        self.weight[...] = jax.nn.initializers.glorot_uniform(in_axis=1, out_axis=0)(
            rngs.params(), self.weight.shape, self.weight.dtype
        )
        self.bias[...] = jnp.zeros_like(self.bias[...])

    def __call__(self, x: jax.Array, edge_index: jax.Array) -> jax.Array:
        row, col = edge_index
        x = x @ self.weight[...]
        # one self loop for every node is counted in the degree
        deg_inv_sqrt = (degree(col, x.shape[0]) + 1) ** -0.5
        norm = deg_inv_sqrt[row] * deg_inv_sqrt[col]

        messages = norm.reshape(-1, 1) * x[row]
        out = jnp.zeros_like(x)
        out = out.at[col].add(messages)
        out = out + x * (deg_inv_sqrt ** 2)[:, None]
        return out + self.bias[...]


class EdgeAttention(nnx.Module):
    """Additive attention over incoming edges, normalised by a softmax for each node."""

    def __init__(self, channels: int, negative_slope: float = 0.2, *, rngs: nnx.Rngs):
        self.lin = Linear(channels, channels, use_bias=False, rngs=rngs)
        self.att_src = nnx.Param(jnp.empty((1, channels), jnp.float32))
        self.att_dst = nnx.Param(jnp.empty((1, channels), jnp.float32))
        self.negative_slope = negative_slope
        self.att_src[...] = jax.nn.initializers.variance_scaling(
            1.0, "fan_avg", "normal", in_axis=1, out_axis=0
        )(rngs.params(), self.att_src.shape, self.att_src.dtype)
        self.att_dst[...] = jax.nn.initializers.variance_scaling(
            1.0, "fan_avg", "normal", in_axis=1, out_axis=0
        )(rngs.params(), self.att_dst.shape, self.att_dst.dtype)

    def __call__(self, x: jax.Array, edge_index: jax.Array) -> jax.Array:
        num_nodes, channels = x.shape
        src, dst = edge_index[0], edge_index[1]
        h = self.lin(x)
        score = (h * self.att_src[...]).sum(axis=-1)[src] + (h * self.att_dst[...]).sum(axis=-1)[
            dst
        ]
        score = jnp.exp(leaky_relu(score, negative_slope=self.negative_slope))
        denominator = jnp.zeros((num_nodes,)).at[along_axis(dst, 0)].add(score) + 1e-9
        alpha = score / denominator[dst]
        index = dst[..., None]
        index = jnp.broadcast_to(index, (index.shape[-2], channels))
        return jnp.zeros_like(h).at[along_axis(index, 0)].add(alpha[..., None] * h[src])


class GraphNet(nnx.Module):
    """Node features and edges in, one row of logits for each graph of the batch out."""

    def __init__(
        self,
        in_channels=8,
        hidden_channels=16,
        num_classes=4,
        num_layers=3,
        dropout=0.0,
        *,
        rngs: nnx.Rngs,
    ):
        self.deterministic = False
        self.rngs = rngs
        self.dropout = dropout
        self.encoder = Linear(in_channels, hidden_channels, rngs=rngs)
        self.convs = nnx.List([])
        self.norms = nnx.List([])
        for _ in range(num_layers):
            self.convs.append(GCNConv(hidden_channels, hidden_channels, rngs=rngs))
            self.norms.append(
                nnx.LayerNorm(hidden_channels, epsilon=1e-5, use_fast_variance=False, rngs=rngs)
            )
        self.attention = EdgeAttention(hidden_channels, rngs=rngs)
        self.classifier = nnx.Sequential(
            Linear(2 * hidden_channels, hidden_channels, rngs=rngs),
            jax.nn.elu,
            Linear(hidden_channels, num_classes, rngs=rngs),
        )

    def __call__(self, x, edge_index, batch, num_graphs: int = 2):
        """
        x: (N, in_channels) node features
        edge_index: (2, E) int64, sources and targets
        batch: (N,) int64, the graph each node belongs to
        """
        x = self.encoder(x)
        for conv, norm in zip(self.convs, self.norms):
            h = conv(x, edge_index)
            h = jax.nn.relu(norm(h))
            h = dropout_(h, p=self.dropout, training=not self.deterministic, rngs=self.rngs)
            x = x + h
        x = x + self.attention(x, edge_index)

        mean = scatter_mean(x, batch, num_graphs)
        total = jnp.zeros((num_graphs, x.shape[1]), x.dtype).at[batch].add(x)
        readout = jnp.concatenate([mean, total], axis=-1)
        return self.classifier(readout)
