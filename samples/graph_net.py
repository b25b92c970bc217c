"""Graph networks without a graph library: convolution, attention and a readout for each graph."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def degree(index: torch.Tensor, num_nodes: int) -> torch.Tensor:
    """Number of edges that end in each node, as floats of shape (num_nodes,)."""
    out = torch.zeros(num_nodes, device=index.device)
    return out.scatter_add_(0, index, torch.ones_like(index, dtype=out.dtype))


def scatter_mean(src: torch.Tensor, index: torch.Tensor, dim_size: int) -> torch.Tensor:
    """Mean of the rows of src (N, C) that carry the same index, of shape (dim_size, C)."""
    total = src.new_zeros(dim_size, src.size(-1)).index_add_(0, index, src)
    count = degree(index, dim_size).clamp_(min=1)
    return total / count.unsqueeze(-1)


class GCNConv(nn.Module):
    """Graph convolution with symmetric degree normalisation (Kipf & Welling, 2017)."""

    def __init__(self, in_channels: int, out_channels: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_channels, out_channels))
        self.bias = nn.Parameter(torch.zeros(out_channels))
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.xavier_uniform_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        row, col = edge_index
        x = x @ self.weight
        # one self loop for every node is counted in the degree
        deg_inv_sqrt = (degree(col, x.size(0)) + 1).pow(-0.5)
        norm = deg_inv_sqrt[row] * deg_inv_sqrt[col]

        messages = norm.view(-1, 1) * x[row]
        out = torch.zeros_like(x)
        out.index_add_(0, col, messages)
        out = out + x * deg_inv_sqrt.pow(2).unsqueeze(1)
        return out + self.bias


class EdgeAttention(nn.Module):
    """Additive attention over incoming edges, normalised by a softmax for each node."""

    def __init__(self, channels: int, negative_slope: float = 0.2):
        super().__init__()
        self.lin = nn.Linear(channels, channels, bias=False)
        self.att_src = nn.Parameter(torch.Tensor(1, channels))
        self.att_dst = nn.Parameter(torch.Tensor(1, channels))
        self.negative_slope = negative_slope
        nn.init.xavier_normal_(self.att_src)
        nn.init.xavier_normal_(self.att_dst)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        num_nodes, channels = x.shape
        src, dst = edge_index[0], edge_index[1]
        h = self.lin(x)
        score = (h * self.att_src).sum(-1)[src] + (h * self.att_dst).sum(dim=-1)[dst]
        score = F.leaky_relu(score, self.negative_slope).exp()
        denominator = torch.zeros(num_nodes).scatter_add(0, dst, score) + 1e-9
        alpha = score / denominator[dst]
        index = dst.unsqueeze(-1).expand(-1, channels)
        return torch.zeros_like(h).scatter_add(0, index, alpha.unsqueeze(-1) * h[src])


class GraphNet(nn.Module):
    """Node features and edges in, one row of logits for each graph of the batch out."""

    def __init__(self, in_channels=8, hidden_channels=16, num_classes=4, num_layers=3, dropout=0.0):
        super(GraphNet, self).__init__()
        self.dropout = dropout
        self.encoder = nn.Linear(in_channels, hidden_channels)
        self.convs = nn.ModuleList()
        self.norms = nn.ModuleList()
        for _ in range(num_layers):
            self.convs.append(GCNConv(hidden_channels, hidden_channels))
            self.norms.append(nn.LayerNorm(hidden_channels))
        self.attention = EdgeAttention(hidden_channels)
        self.classifier = nn.Sequential(
            nn.Linear(2 * hidden_channels, hidden_channels),
            nn.ELU(),
            nn.Linear(hidden_channels, num_classes),
        )

    def forward(self, x, edge_index, batch, num_graphs: int = 2):
        """
        x: (N, in_channels) node features
        edge_index: (2, E) int64, sources and targets
        batch: (N,) int64, the graph each node belongs to
        """
        x = self.encoder(x)
        for conv, norm in zip(self.convs, self.norms):
            h = conv(x, edge_index)
            h = F.relu(norm(h))
            h = F.dropout(h, p=self.dropout, training=self.training)
            x = x + h
        x = x + self.attention(x, edge_index)

        mean = scatter_mean(x, batch, num_graphs)
        total = x.new_zeros((num_graphs, x.shape[1])).index_add(0, batch, x)
        readout = torch.cat([mean, total], dim=-1)
        return self.classifier(readout)
