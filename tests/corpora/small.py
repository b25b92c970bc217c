"""An architecture as small as its constructor allows: few blocks, narrow where it is wide, small images."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

Options = dict[str, Any]
FEWER: tuple[Options, ...] = (
    {"num_classes": 7},
    {"depth": 2},
    {"depths": (2, 1, 1, 1)},
    {"depths": (2, 1, 1)},
    {"layers": (2, 1, 1, 1)},
    {"layers": [2, 1, 1, 1]},
    {"embed_dim": 64, "num_heads": 2},
    {"embed_dim": 64},
)
"""Tried in this order; what a constructor takes, and what makes the model smaller by a tenth, is kept."""
SIZES = (64, 96, 128, 160, 192, 224, 256, 384, 512)
KNOWN: dict[str, Options] = {
    "googlenet": {"init_weights": False},
    "inception_v3": {"init_weights": False},
    "vit_b_16": {"image_size": 64},
    "segmentation": {"weights": None, "weights_backbone": None},
    "video.mvit_v1_b": {"spatial_size": (64, 64), "temporal_size": 8},
    "video.mvit_v2_s": {"spatial_size": (64, 64), "temporal_size": 8},
}
"""Arguments of torchvision's builders, by name or by the part of the library."""
FRAMES = {"video.s3d": 16}


class NotBuilt(RuntimeError):
    """torch builds the architecture in no way that was tried, or takes no image that was."""


@dataclass
class Small:
    """A model in torch with what it was built of; ``shape`` is that of its input."""

    model: torch.nn.Module
    options: Options
    shape: tuple[int, ...]
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = size_of(self.model)


def size_of(model: torch.nn.Module) -> int:
    """How many numbers its parameters have."""
    return sum(parameter.numel() for parameter in model.parameters())


def smaller(build: Callable[..., Any], library: str, name: str) -> Small:
    """Build an architecture small.

    Raises:
      NotBuilt: torch cannot.
    """
    options = dict(KNOWN.get(name, KNOWN.get(name.rpartition(".")[0], {})))
    size, problem = _size(build, options)
    taken = [options]
    for more in FEWER:
        found, _ = _size(build, options | more)
        if found is not None and (size is None or found < 0.9 * size or "num_classes" in more):
            options, size = options | more, found
            taken.append(options)
    if size is None:
        raise NotBuilt(problem)
    while True:
        try:
            return _on_an_image(build, taken.pop(), name)
        except NotBuilt:
            if not taken:
                raise


def _size(build: Callable[..., Any], options: Options) -> tuple[int | None, str]:
    """The size of a model, without its numbers where that is possible, or why it cannot be built."""
    problem = ""
    for device in ("meta", "cpu"):
        try:
            with torch.device(device), _linspace_of_numbers():
                return size_of(build(**options)), ""
        except (TypeError, KeyError) as error:
            return None, f"{type(error).__name__}: {error}"
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
    return None, problem


@contextmanager
def _linspace_of_numbers() -> Iterator[None]:
    """``[x.item() for x in torch.linspace(0, rate, depth)]`` of a model that is built without its numbers."""
    before = torch.linspace
    torch.linspace = partial(before, device="cpu")
    try:
        yield
    finally:
        torch.linspace = before


def _on_an_image(build: Callable[..., Any], options: Options, name: str) -> Small:
    """The model with the smallest image it takes."""
    takes_size = _size(build, options | {"img_size": 224})[0] is not None
    problem = ""
    for height, width in _sizes(takes_size or (len(options) > 1 and "." not in name)):
        chosen = options | ({"img_size": height} if takes_size else {})
        frames = (FRAMES.get(name, 8),) if name.startswith("video.") else ()
        shape = (2, 3, *frames, height, width)
        try:
            torch.manual_seed(0)
            model = build(**chosen)
            with torch.no_grad():
                model.eval()(torch.randn(shape))
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            continue
        return Small(model, chosen, shape)
    raise NotBuilt(problem)


def _sizes(square: bool) -> Iterator[tuple[int, int]]:
    """Images to try; one that is no square shows where axes are mixed up."""
    if not square:
        yield 64, 96
    for size in SIZES:
        yield size, size
