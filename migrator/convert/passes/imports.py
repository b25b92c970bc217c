"""Imports of torch go; what the converted code needs comes in their place when the file is put together."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Failure
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer.symbols import of_torch
from migrator.source import dotted

BASED_ON_TORCH = frozenset(
    "torchvision torchaudio torchtext timm transformers pytorch_lightning lightning torch_geometric "
    "torch_scatter torch_sparse xformers apex fairscale deepspeed accelerate diffusers kornia monai mmcv "
    "detectron2 fvcore torchdiffeq torch_xla flash_attn triton bitsandbytes peft".split()
)


@converts(cst.Import)
def plain_import(rw: Rewriter, node: cst.Import) -> Any:
    """``import torch``, ``import torch.nn as nn`` go; other modules in the same statement stay."""
    kept = []
    for alias in node.names:
        module = dotted(alias.name) or ""
        head = module.partition(".")[0]
        if head in BASED_ON_TORCH:
            raise _foreign(node, head)
        if not of_torch(module):
            kept.append(alias)
    if len(kept) == len(node.names):
        return node
    if not kept:
        return []
    kept[-1] = syntax.changed(kept[-1], comma=cst.MaybeSentinel.DEFAULT)
    return syntax.changed(node, names=kept)


@converts(cst.ImportFrom)
def from_import(rw: Rewriter, node: cst.ImportFrom) -> Any:
    """``from torch import nn`` goes."""
    if node.relative or node.module is None:
        return node
    module = dotted(node.module) or ""
    if of_torch(module):
        return []
    if module.partition(".")[0] in BASED_ON_TORCH:
        raise _foreign(node, module)
    return node


def _foreign(node: cst.CSTNode, module: str) -> Failure:
    return Failure(
        node,
        "API004",
        f"{module} is built on torch and has no converted counterpart here",
        "port what is used of it, or copy its source into the project and convert that",
    )
