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


ARCHITECTURES = """
    efficientnet_b6 regnetv_064 vit_base_patch14_dinov2 vit_base_patch16_rope_reg1_gap_256
    ecaresnet26t levit_conv_384_s8 vitamin_xlarge_384 xcit_tiny_12_p16_384
    vit_medium_patch16_reg4_gap_256 sequencer2d_s vit_small_patch16_224
    vit_large_patch16_rope_mixed_ape_224 tnt_s_legacy_patch16_224 vit_so400m_patch14_siglip_gap_384
    swiftformer_xs maxvit_tiny_rw_256 aimv2_3b_patch14_448 xcit_medium_24_p8_224 densenet121
    efficientformerv2_s0 naflexvit_so400m_patch16_siglip eca_nfnet_l1 swinv2_cr_base_ns_224
    beitv2_large_patch16_224 tnt_b_patch16_224 pvt_v2_b1 lcnet_150 resnetv2_50d mixnet_xxl
    repvgg_b2g4 res2net50_48w_2s resnet50_clip_gap vit_base_patch16_siglip_256
    deit3_small_patch16_384 repghostnet_050 dm_nfnet_f0 vit_medium_patch32_clip_224
    vit_huge_patch14_xp_224 nextvit_small nasnetalarge swinv2_large_window12to24_192to384
    ese_vovnet39b_evos vit_small_patch32_384 poolformer_m36 coatnet_1_224 resnet152d
    resnest50d_4s2x40d test_convnext3 seresnet152d dm_nfnet_f2 resnetv2_50d_gn
    vit_so400m_patch14_siglip_gap_224 vit_medium_patch16_gap_240 vgg13_bn efficientnet_b3_g8_gn
    seresnet50t vit_base_patch16_clip_quickgelu_224 vitamin_xlarge_336 resnetv2_50d_frn
    vit_base_resnet50d_224 mobilenetv2_035 sequencer2d_m vit_pe_spatial_small_patch16_512
    tf_efficientnetv2_l vit_base_patch16_siglip_224 vit_base_patch32_384 coatnet_1_rw_224
    vit_small_patch16_rope_ape_224 levit_conv_512_s8 efficientnetv2_l convnextv2_base
    vit_base_r50_s16_224 xcit_tiny_12_p8_384 seresnext26ts tf_efficientnet_b6 eva02_base_patch14_224
    tf_mixnet_s mambaout_small efficientnet_cc_b1_8e swinv2_large_window12to16_192to256
    tf_efficientnet_b5 vit_large_patch16_dinov3_qkvb mixnet_xl vit_pe_core_gigantic_patch14_448
    resnext101_32x8d pit_xs_distilled_224 vit_large_patch16_siglip_256 vit_7b_patch16_dinov3
    tf_efficientnetv2_b3 shvit_s4 hrnet_w64 nf_regnet_b0 mobilenetv4_conv_small_050
    beit_base_patch16_384 coatnet_rmlp_3_rw_224 eva_giant_patch14_clip_224 vitamin_large_224
    swinv2_small_window8_256 vit_base_r26_s32_224 tinynet_d
""".split()
"""``random.Random(2026).sample(sorted(timm.list_models()), 100)`` of timm 1.0.20."""
SHRUNK: list[dict[str, Any]] = [
    {},
    {"depth": 2},
    {"depths": (1, 1, 1, 1)},
    {"layers": (1, 1, 1, 1)},
]
LARGEST = 90_000_000


@pytest.fixture(scope="module")
def timm(torchvision: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """timm, and the converted one under the name ``timm_flax``."""
    source = source_of("timm")
    out = tmp_path_factory.mktemp("timm")
    parts = ["/layers/", "/models/", "/data/", "/utils/", "/version.py"]
    made = convert_path([source], out / "timm_flax", include=parts)
    sys.path.insert(0, str(out))
    yield importlib.import_module("timm"), made
    sys.path.remove(str(out))


def smallest(theirs: Any, name: str) -> tuple[dict[str, Any], Any]:
    """An architecture with as few blocks as its constructor allows."""
    best: tuple[dict[str, Any], Any] | None = None
    for options in SHRUNK:
        try:
            model = theirs.create_model(name, **options)
        except (TypeError, AssertionError, IndexError, ValueError, RuntimeError, KeyError):
            continue
        if best is None or size_of(model) < size_of(best[1]):
            best = options, model
    assert best is not None
    return best


def size_of(model: Any) -> int:
    return sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_timm(timm: Any, name: str) -> None:
    theirs, made = timm
    options, model = smallest(theirs, name)
    if size_of(model) > LARGEST:
        pytest.skip("too large for this machine, and its constructor takes no depth")
    file = sys.modules[theirs.model_entrypoint(name).__module__].__file__ or ""
    if incomplete(made, f"models/{Path(file).name}"):
        pytest.xfail(incomplete(made, f"models/{Path(file).name}")[0])
    ours = importlib.import_module("timm_flax.models._registry").model_entrypoint(name)
    size = theirs.get_pretrained_cfg(name).input_size
    compare(lambda **kw: theirs.create_model(name, **kw), ours, options, (2, *size))


def test_timm_converts_in_large_part(timm: Any) -> None:
    """Most model files are complete; docs/packages.md lists what stands in the way of the others."""
    models = [f for f in timm[1].files if f.file.name.parts[0] == "models"]
    complete = sum(f.complete for f in models)
    assert complete >= 0.75 * len(models), f"{complete} of {len(models)}"
