"""A Transformer feed-forward layer made of sparsely routed experts (Shazeer et al., 2017).

The routing gathers the tokens of each expert by a boolean mask, so shapes depend on the data.
"""

from typing import NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F


class Routing(NamedTuple):
    """Which experts each token goes to, how much each counts, and the router's probabilities."""

    weights: torch.Tensor
    experts: torch.Tensor
    probs: torch.Tensor


class Expert(nn.Module):
    """Gated feed-forward network."""

    def __init__(self, dim: int, hidden_dim: int):
        super().__init__()
        self.w1 = nn.Linear(dim, hidden_dim, bias=False)
        self.w2 = nn.Linear(hidden_dim, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden_dim, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class TopKRouter(nn.Module):
    """Sends every token to its k most probable experts."""

    def __init__(self, dim: int, num_experts: int, top_k: int):
        super().__init__()
        self.top_k = top_k
        self.gate = nn.Linear(dim, num_experts, bias=False)

    def forward(self, x: torch.Tensor) -> Routing:
        probs = F.softmax(self.gate(x), dim=-1)
        weights, experts = torch.topk(probs, self.top_k, dim=-1)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        return Routing(weights, experts, probs)


class MixtureOfExperts(nn.Module):
    """
    Args:
        dim: size of a token
        hidden_dim: inner size of an expert
        num_experts: how many experts there are
        top_k: how many experts a token visits
    """

    def __init__(self, dim: int = 16, hidden_dim: int = 32, num_experts: int = 4, top_k: int = 2):
        super().__init__()
        self.num_experts = num_experts
        self.router = TopKRouter(dim, num_experts, top_k)
        self.experts = nn.ModuleList([Expert(dim, hidden_dim) for _ in range(num_experts)])

    def forward(self, x: torch.Tensor):
        batch, length, dim = x.shape
        x = x.view(-1, dim)
        routing = self.router(x)

        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            # which tokens chose this expert, and as which of their choices
            token_idx, choice = torch.where(routing.experts == i)
            if token_idx.numel() == 0:
                continue
            weight = routing.weights[token_idx, choice, None]
            out.index_add_(0, token_idx, weight * expert(x[token_idx]))

        return out.view(batch, length, dim), self.load_balancing_loss(routing)

    def load_balancing_loss(self, routing: Routing) -> torch.Tensor:
        """Product of the share of tokens and the mean probability of each expert, summed."""
        chosen = F.one_hot(routing.experts, self.num_experts).float()
        tokens_per_expert = chosen.sum(dim=1).mean(dim=0)
        prob_per_expert = routing.probs.mean(dim=0)
        return self.num_experts * torch.sum(tokens_per_expert * prob_per_expert)

    @torch.no_grad()
    def confident_tokens(self, x: torch.Tensor, threshold: float = 0.5) -> torch.Tensor:
        """The tokens whose first expert has more than the given probability."""
        x = x.flatten(0, 1)
        best, _ = self.router(x).probs.max(dim=-1)
        mask = best > threshold
        return x[mask]


class MoEBlock(nn.Module):
    """Pre-norm residual block around the experts."""

    def __init__(self, dim: int = 16, dropout: float = 0.0, **moe_kwargs):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.moe = MixtureOfExperts(dim, **moe_kwargs)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor):
        hidden, aux_loss = self.moe(self.norm(x))
        return x + self.dropout(hidden), aux_loss
