"""Published packages, converted whole and compared with what they compute in torch (``-m sweep``).

The sources are those of the installed torchvision and timm, or of those below $MIGRATE_CORPUS. torchvision's
compiled operators need not load: their names are registered, which is enough for its models in Python.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from migrator.project import Conversion, convert_path

pytestmark = pytest.mark.sweep
CORPUS = os.environ.get("MIGRATE_CORPUS", "")
TORCHVISION = [
    "alexnet",
    "convnext_tiny",
    "efficientnet_b0",
    "efficientnet_v2_s",
    "googlenet",
    "inception_v3",
    "maxvit_t",
    "mnasnet0_5",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "regnet_x_400mf",
    "regnet_y_400mf",
    "resnet18",
    "resnet50",
    "resnext50_32x4d",
    "wide_resnet50_2",
    "shufflenet_v2_x0_5",
    "squeezenet1_0",
    "squeezenet1_1",
    "swin_t",
    "swin_v2_t",
    "vgg11",
    "vgg11_bn",
    "vit_b_16",
    "segmentation.deeplabv3_mobilenet_v3_large",
    "segmentation.deeplabv3_resnet50",
    "segmentation.fcn_resnet50",
    "segmentation.lraspp_mobilenet_v3_large",
    "video.mc3_18",
    "video.mvit_v1_b",
    "video.r2plus1d_18",
    "video.r3d_18",
    "video.s3d",
    "video.swin3d_t",
]
INCOMPLETE = {
    "densenet121": "asks whether a tensor requires a gradient, to choose a checkpointed path"
}
"""What does not convert, and why."""
SIZES = {"inception_v3": 96, "vit_b_16": 224, "maxvit_t": 224, "alexnet": 96}
CLIPS = {"video.mvit_v1_b": (16, 224), "video.s3d": (16, 224)}
OPERATORS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)


def source_of(name: str) -> Path:
    """The directory of an installed package, found without importing it."""
    if CORPUS and CORPUS not in sys.path:
        sys.path.append(CORPUS)
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{name} is not installed, nor below $MIGRATE_CORPUS")
    return Path(next(iter(spec.submodule_search_locations)))


@pytest.fixture(scope="module")
def torchvision(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """torchvision's models, and the converted ones under the name ``torchvision_flax``."""
    import torch

    source = source_of("torchvision")
    pytest.importorskip("PIL", reason="torchvision imports Pillow")
    library = torch.library.Library("torchvision", "FRAGMENT")
    for operator in OPERATORS:
        try:
            library.define(operator)
        except RuntimeError:  # they are there
            break
    out = tmp_path_factory.mktemp("torchvision")
    parts = ["/models/*.py", "/models/segmentation/", "/models/video/", "/ops/", "/transforms/*.py"]
    made = convert_path(
        [source],
        out / "torchvision_flax",
        include=[*parts, "/utils.py", "/_utils.py", "/_internally_replaced_utils.py"],
        exclude=["/models/feature_extraction.py", "/ops/_register_onnx_ops.py"],
    )
    sys.path.insert(0, str(out))
    yield importlib.import_module("torchvision.models"), made, library
    sys.path.remove(str(out))


def incomplete(made: Conversion, file: str) -> list[str]:
    return [str(f) for f in made.findings if f.blocks and f.path.endswith(file)]


@pytest.mark.parametrize("name", TORCHVISION)
def test_torchvision(torchvision: Any, name: str) -> None:
    theirs, made, _ = torchvision
    part, _, builder = name.rpartition(".")
    theirs = importlib.import_module(f"{theirs.__name__}.{part}") if part else theirs
    ours = importlib.import_module(f"torchvision_flax.models.{part}".rstrip("."))
    file = Path(sys.modules[getattr(theirs, builder).__module__].__file__ or "").name
    assert not incomplete(made, f"{part}/{file}" if part else f"models/{file}")
    options: dict[str, Any] = {}
    if part == "segmentation":
        options = {"weights": None, "weights_backbone": None, "num_classes": 5}
    if name in ("inception_v3", "googlenet"):
        options = {"aux_logits": False, "init_weights": False}
    frames, size = CLIPS.get(name, (8, 64)) if part == "video" else (0, SIZES.get(name, 64))
    shape = (1, 3, frames, size, size) if part == "video" else (2, 3, size, size)
    compare(getattr(theirs, builder), getattr(ours, builder), options, shape)


def compare(theirs: Any, ours: Any, options: dict[str, Any], shape: tuple[int, ...]) -> None:
    """Build both, carry random weights over, and compare the results of the forward pass in eval mode."""
    import torch
    from flax import nnx

    import migrator

    torch.manual_seed(0)
    expected = theirs(**options).eval()
    with torch.no_grad():
        for name, value in expected.state_dict().items():
            if name.endswith("running_var"):
                value.uniform_(0.5, 1.5)
            elif value.is_floating_point() and (value == 0).all():
                value.normal_(0, 0.02)  # what starts at zero would hide a difference
    found = ours(rngs=nnx.Rngs(0), **options)
    migrator.load_state_dict(found, expected.state_dict())
    found.eval()
    x = torch.randn(shape)
    with torch.no_grad():
        theirs_out = leaves(expected(x))
    for mine, other in zip(leaves(found(x.numpy())), theirs_out, strict=True):
        other = other.numpy()
        scale = np.abs(other).max()
        assert scale > 0
        np.testing.assert_allclose(np.asarray(mine), other, rtol=0, atol=1e-4 * scale)


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [value[key] for key in value]
    return (
        [leaf for one in value for leaf in leaves(one)]
        if isinstance(value, (tuple, list))
        else [value]
    )


def test_torchvision_that_does_not_convert_says_so(torchvision: Any) -> None:
    assert all(incomplete(torchvision[1], f"models/{name[:8]}.py") for name in INCOMPLETE)


def test_timm_converts_in_large_part(tmp_path: Path) -> None:
    """Most model files are complete; docs/packages.md lists what stands in the way of the others."""
    made = convert_path(
        [source_of("timm")],
        tmp_path / "timm_flax",
        include=["/layers/", "/models/", "/data/", "/utils/"],
    )
    models = [f for f in made.files if f.file.name.parts[0] == "models"]
    complete = sum(f.complete for f in models)
    assert complete >= 0.45 * len(models), f"{complete} of {len(models)}"
