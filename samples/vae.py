"""Variational autoencoder with a convolutional encoder and decoder (Kingma & Welling, 2013)."""

from typing import Dict, List, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class VAE(nn.Module):
    """Gaussian latent, Bernoulli likelihood.

    Args:
        in_channels: channels of the image.
        latent_dim: size of the latent vector.
        hidden_dims: channels after each halving of the image.
        image_size: height and width, a multiple of 2 ** len(hidden_dims).
    """

    def __init__(
        self,
        in_channels: int = 1,
        latent_dim: int = 8,
        hidden_dims: Optional[List[int]] = None,
        image_size: int = 16,
    ) -> None:
        super(VAE, self).__init__()
        self.latent_dim = latent_dim

        modules = []
        if hidden_dims is None:
            hidden_dims = [8, 16]
        self.top_size = image_size // 2 ** len(hidden_dims)
        self.top_channels = hidden_dims[-1]

        # Build Encoder
        channels = in_channels
        for h_dim in hidden_dims:
            modules.append(
                nn.Sequential(
                    nn.Conv2d(channels, h_dim, kernel_size=3, stride=2, padding=1),
                    nn.BatchNorm2d(h_dim),
                    nn.LeakyReLU(0.2),
                )
            )
            channels = h_dim
        self.encoder = nn.Sequential(*modules)
        flat = hidden_dims[-1] * self.top_size**2
        self.fc_mu = nn.Linear(flat, latent_dim)
        self.fc_var = nn.Linear(flat, latent_dim)

        # Build Decoder
        modules = []
        self.decoder_input = nn.Linear(latent_dim, flat)
        dims = hidden_dims[::-1]
        for i in range(len(dims) - 1):
            modules.append(
                nn.Sequential(
                    nn.ConvTranspose2d(
                        dims[i], dims[i + 1], kernel_size=3, stride=2, padding=1, output_padding=1
                    ),
                    nn.BatchNorm2d(dims[i + 1]),
                    nn.LeakyReLU(0.2),
                )
            )
        self.decoder = nn.Sequential(*modules)
        self.final_layer = nn.Sequential(
            nn.ConvTranspose2d(dims[-1], dims[-1], 3, stride=2, padding=1, output_padding=1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(dims[-1], out_channels=in_channels, kernel_size=3, padding=1),
            nn.Sigmoid(),
        )

    def encode(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        """Mean and log-variance of q(z | x), each of shape (B, latent_dim)."""
        result = self.encoder(x)
        result = torch.flatten(result, start_dim=1)
        return self.fc_mu(result), self.fc_var(result)

    def decode(self, z: Tensor) -> Tensor:
        """Maps latent codes onto the image space."""
        result = self.decoder_input(z)
        result = result.view(-1, self.top_channels, self.top_size, self.top_size)
        result = self.decoder(result)
        return self.final_layer(result)

    def reparameterize(self, mu: Tensor, logvar: Tensor) -> Tensor:
        """Sample from N(mu, var) by the reparameterization trick; the mean itself in eval mode."""
        if not self.training:
            return mu
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return eps * std + mu

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        mu, logvar = self.encode(x)
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar

    @torch.no_grad()
    def sample(self, num_samples: int) -> Tensor:
        """Images decoded from draws of the prior."""
        z = torch.randn(num_samples, self.latent_dim)
        return self.decode(z)


def vae_loss(
    recon: Tensor, x: Tensor, mu: Tensor, logvar: Tensor, beta: float = 1.0
) -> Dict[str, Tensor]:
    """Negative evidence lower bound, summed over pixels and averaged over the batch.

    KL(N(mu, sigma), N(0, 1)) = -0.5 * sum(1 + log(sigma^2) - mu^2 - sigma^2)
    """
    recons_loss = F.binary_cross_entropy(recon, x, reduction="sum") / x.shape[0]
    kld_loss = torch.mean(-0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1), dim=0)
    loss = recons_loss + beta * kld_loss
    return {"loss": loss, "reconstruction": recons_loss.detach(), "kld": kld_loss.detach()}
