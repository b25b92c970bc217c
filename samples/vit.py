"""Vision Transformer (Dosovitskiy et al., 2020)."""

from collections import OrderedDict
from functools import partial
from typing import Callable, Tuple

import torch
import torch.nn as nn


class PatchEmbed(nn.Module):
    """2D image to patch embedding."""

    def __init__(
        self, img_size: int = 32, patch_size: int = 8, in_chans: int = 3, embed_dim: int = 32
    ):
        super().__init__()
        self.img_size = (img_size, img_size)
        self.patch_size = (patch_size, patch_size)
        self.grid_size = (img_size // patch_size, img_size // patch_size)
        self.num_patches = self.grid_size[0] * self.grid_size[1]
        self.proj = nn.Conv2d(in_chans, embed_dim, kernel_size=patch_size, stride=patch_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        B, C, H, W = x.shape
        assert H == self.img_size[0] and W == self.img_size[1], (
            f"Input image size ({H}*{W}) doesn't match model ({self.img_size[0]}*{self.img_size[1]})."
        )
        return self.proj(x).flatten(2).transpose(1, 2)  # BCHW -> BNC


class MLPBlock(nn.Sequential):
    """Transformer MLP block."""

    def __init__(self, in_dim: int, mlp_dim: int, dropout: float):
        super().__init__(
            OrderedDict(
                [
                    ("fc1", nn.Linear(in_dim, mlp_dim)),
                    ("act", nn.GELU()),
                    ("drop1", nn.Dropout(dropout)),
                    ("fc2", nn.Linear(mlp_dim, in_dim)),
                    ("drop2", nn.Dropout(dropout)),
                ]
            )
        )


class EncoderBlock(nn.Module):
    """Pre-norm Transformer encoder block."""

    def __init__(
        self,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float,
        norm_layer: Callable[..., nn.Module] = partial(nn.LayerNorm, eps=1e-6),
    ):
        super().__init__()
        self.ln_1 = norm_layer(hidden_dim)
        self.self_attention = nn.MultiheadAttention(
            hidden_dim, num_heads, dropout=dropout, batch_first=True
        )
        self.dropout = nn.Dropout(dropout)
        self.ln_2 = norm_layer(hidden_dim)
        self.mlp = MLPBlock(hidden_dim, mlp_dim, dropout)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        x = self.ln_1(input)
        x, _ = self.self_attention(x, x, x, need_weights=False)
        x = self.dropout(x)
        x = x + input

        y = self.ln_2(x)
        y = self.mlp(y)
        return x + y


class VisionTransformer(nn.Module):
    """ViT classifier: patches, a class token, learned positions and an encoder."""

    def __init__(
        self,
        img_size: int = 32,
        patch_size: int = 8,
        in_chans: int = 3,
        num_classes: int = 10,
        embed_dim: int = 32,
        depth: int = 2,
        num_heads: int = 4,
        mlp_ratio: float = 4.0,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.embed_dim = embed_dim
        self.patch_embed = PatchEmbed(img_size, patch_size, in_chans, embed_dim)

        self.cls_token = nn.Parameter(torch.zeros(1, 1, embed_dim))
        self.pos_embed = nn.Parameter(
            torch.empty(1, self.patch_embed.num_patches + 1, embed_dim).normal_(std=0.02)
        )
        self.pos_drop = nn.Dropout(p=dropout)

        self.blocks = nn.ModuleList(
            [
                EncoderBlock(num_heads, embed_dim, int(embed_dim * mlp_ratio), dropout)
                for _ in range(depth)
            ]
        )
        self.norm = nn.LayerNorm(embed_dim, eps=1e-6)
        self.head = nn.Linear(embed_dim, num_classes) if num_classes > 0 else nn.Identity()

        nn.init.trunc_normal_(self.cls_token, std=0.02)
        self.apply(self._init_weights)

    @staticmethod
    def _init_weights(m: nn.Module) -> None:
        if isinstance(m, nn.Linear):
            nn.init.trunc_normal_(m.weight, std=0.02)
            if m.bias is not None:
                nn.init.constant_(m.bias, 0)
        elif isinstance(m, nn.LayerNorm):
            nn.init.constant_(m.bias, 0)
            nn.init.constant_(m.weight, 1.0)

    def forward_features(self, x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        """The class token and the patch tokens after the last block."""
        n = x.shape[0]
        x = self.patch_embed(x)
        cls_tokens = self.cls_token.expand(
            n, -1, -1
        )  # stole cls_tokens impl from Phil Wang, thanks
        x = torch.cat((cls_tokens, x), dim=1)
        x = self.pos_drop(x + self.pos_embed)
        for blk in self.blocks:
            x = blk(x)
        x = self.norm(x)
        return x[:, 0], x[:, 1:]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        cls, _ = self.forward_features(x)
        return self.head(cls)
