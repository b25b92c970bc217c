"""Which libraries are converted, which of their files, and which architectures are taken of them."""

from __future__ import annotations

import importlib
import importlib.util
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

OPERATORS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
TORCHVISION = """
    alexnet convnext_tiny densenet121 efficientnet_b0 efficientnet_v2_s googlenet inception_v3 maxvit_t mnasnet0_5
    mobilenet_v2 mobilenet_v3_small regnet_x_400mf regnet_y_400mf resnet18 resnet50 resnext50_32x4d wide_resnet50_2
    shufflenet_v2_x0_5 squeezenet1_0 squeezenet1_1 swin_t swin_v2_t vgg11 vgg11_bn vit_b_16
    segmentation.deeplabv3_mobilenet_v3_large segmentation.deeplabv3_resnet50 segmentation.fcn_resnet50
    segmentation.lraspp_mobilenet_v3_large video.mc3_18 video.mvit_v1_b video.mvit_v2_s video.r2plus1d_18
    video.r3d_18 video.s3d video.swin3d_t
""".split()
"""Each family of classification, segmentation and video has one or more."""


@dataclass(frozen=True)
class Library:
    """A library: the version that is asked for, and which of its files are converted.

    Attributes:
      count: how many architectures are drawn where nobody says; 0: all that ``names`` has.
    """

    name: str
    version: str
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    count: int = 0

    @property
    def root(self) -> Path:
        """The directory of the installed sources, found without an import.

        Raises:
          ModuleNotFoundError: it is not installed.
        """
        spec = importlib.util.find_spec(self.name)
        if spec is None or not spec.submodule_search_locations:
            raise ModuleNotFoundError(f"{self.name} is not installed", name=self.name)
        return Path(next(iter(spec.submodule_search_locations)))

    def names(self, seed: int, count: int) -> list[str]:
        """The architectures, ``count`` drawn by ``seed`` (0: the library's own number of them)."""
        every = TORCHVISION if self.name == "torchvision" else _registered()
        count = count or self.count or len(every)
        return random.Random(seed).sample(sorted(every), count) if count < len(every) else every

    def builder(self, name: str) -> Callable[..., Any]:
        """What builds an architecture in torch."""
        register_operators()
        return _builder(self.name, name)

    def port(self, name: str) -> Callable[..., Any]:
        """What builds it in Flax, of the converted library."""
        return _builder(f"{self.name}_flax", name)


LIBRARIES = {
    "torchvision": Library(
        "torchvision",
        "0.28.0",
        (
            "/models/*.py",
            "/models/segmentation/",
            "/models/video/",
            "/ops/",
            "/transforms/*.py",
            "/utils.py",
            "/_utils.py",
            "/_internally_replaced_utils.py",
        ),
        ("/models/feature_extraction.py", "/ops/_register_onnx_ops.py"),
    ),
    "timm": Library(
        "timm",
        "1.0.20",
        ("/layers/", "/models/", "/data/", "/utils/", "/version.py"),
        count=100,
    ),
}

_kept: list[Any] = []


def register_operators() -> None:
    """Give torchvision's compiled operators their names, which is enough for its models in Python."""
    import torch

    library = torch.library.Library("torchvision", "FRAGMENT")
    _kept.append(library)  # what it defines goes when it does
    for operator in OPERATORS:
        try:
            library.define(operator)
        except RuntimeError:  # they are there
            return


def _shallow(name: str, models: Any) -> Callable[..., Any] | None:
    """A builder of fewer and narrower blocks, of the classes that a builder of torchvision uses with many."""
    resnet, swin, efficient = models.resnet, models.swin_transformer, models.efficientnet
    window: dict[str, Any] = {"patch_size": [4, 4], "embed_dim": 24, "depths": [2, 2]}
    window |= {"num_heads": [2, 4], "window_size": [4, 4]}
    version_2 = {"downsample_layer": swin.PatchMergingV2}
    regnet = {"depth": 4, "w_0": 16, "w_a": 16.0, "w_m": 2.0, "group_width": 8}
    fused, expanded = efficient.FusedMBConvConfig, efficient.MBConvConfig
    bottleneck = partial(resnet.ResNet, resnet.Bottleneck, [2, 1, 1, 1])
    made: dict[str, Callable[[], Callable[..., Any]]] = {
        "densenet121": lambda: partial(models.densenet.DenseNet, 8, (2, 2, 2, 2), 16),
        "resnet50": lambda: bottleneck,
        "resnext50_32x4d": lambda: partial(bottleneck, groups=32, width_per_group=4),
        "wide_resnet50_2": lambda: partial(bottleneck, width_per_group=128),
        "swin_t": lambda: partial(swin.SwinTransformer, **window),
        "swin_v2_t": lambda: partial(
            swin.SwinTransformer, block=swin.SwinTransformerBlockV2, **version_2, **window
        ),
        "regnet_x_400mf": lambda: partial(
            models.regnet.RegNet, models.regnet.BlockParams.from_init_params(**regnet)
        ),
        "regnet_y_400mf": lambda: partial(
            models.regnet.RegNet,
            models.regnet.BlockParams.from_init_params(**regnet, se_ratio=0.25),
        ),
        "efficientnet_v2_s": lambda: partial(
            efficient.EfficientNet,
            [fused(1, 3, 1, 8, 8, 2), fused(4, 3, 2, 8, 16, 2), expanded(4, 3, 2, 16, 24, 2)],
            0.2,
            last_channel=64,
        ),
        "maxvit_t": lambda: partial(
            models.maxvit.MaxVit,
            input_size=(64, 64),
            stem_channels=16,
            partition_size=2,
            block_channels=[16, 32],
            block_layers=[1, 2],
            head_dim=8,
            stochastic_depth_prob=0.2,
        ),
    }
    return made[name]() if name in made else None


def _registered() -> list[str]:
    register_operators()
    names: list[str] = importlib.import_module("timm").list_models()
    return names


def _builder(package: str, name: str) -> Callable[..., Any]:
    if package.startswith("timm"):
        create = importlib.import_module(f"{package}.models").create_model
        return lambda **options: create(name, **options)
    shallow = _shallow(name, importlib.import_module(f"{package}.models"))
    if shallow is not None:
        return shallow
    part, _, function = name.rpartition(".")
    made: Callable[..., Any] = getattr(
        importlib.import_module(f"{package}.models.{part}".rstrip(".")), function
    )
    return made
