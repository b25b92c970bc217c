"""What a library that is built on torch has that runs without it: configurations, tokenizers, its version."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import libcst as cst

from migrator.infer.symbols import BASED_ON_TORCH, of_timm

_WITHOUT_TORCH = re.compile(
    r"transformers\.(?:__version__|utils\.logging|utils\.logging\.\w+"
    r"|(?:[\w.]+\.)?(?:Pre[tT]rainedConfig|AutoConfig|\w*Tokenizer(?:Fast)?)"
    r"|(?:models\.\w+\.(?:configuration_\w+\.)?)?(?!BitsAndBytes|GPTQ|Awq|Hqq|\w*Quant)[A-Z]\w*Config)"
)
"""What such a library has that needs no torch: it runs where that is not installed."""


def needs_torch(name: str) -> bool:
    """Whether a dotted name outside the project is of a library built on torch, and has no conversion of its own."""
    return _of_torch_library(name) and of_timm(name) is None


def _of_torch_library(name: str) -> bool:
    return name.partition(".")[0] in BASED_ON_TORCH and not _WITHOUT_TORCH.fullmatch(name)


def runs_without_torch(name: str) -> bool:
    """Whether a name of a library built on torch needs no torch."""
    return name.partition(".")[0] in BASED_ON_TORCH and not needs_torch(name)


def brought_by(alias: cst.ImportAlias) -> str:
    """The dotted name that ``import module`` binds: all of the library, unless the module gets a name of its own."""
    return alias.evaluated_name if alias.asname else alias.evaluated_name.partition(".")[0]


def import_needs_torch(
    module: str, names: Sequence[cst.ImportAlias] | cst.ImportStar | None
) -> bool:
    """Whether an import brings something that needs torch; ``names``: of ``from module import names``."""
    return _brings(module, names, needs_torch)


def import_is_optional(
    module: str, names: Sequence[cst.ImportAlias] | cst.ImportStar | None
) -> bool:
    """Whether an import fails where torch is not installed: a program that provides for that goes the other way."""
    return _brings(module, names, _of_torch_library)


def _brings(
    module: str,
    names: Sequence[cst.ImportAlias] | cst.ImportStar | None,
    asked: Callable[[str], bool],
) -> bool:
    if names is None or isinstance(names, cst.ImportStar):
        return asked(module)
    return any(asked(f"{module}.{alias.evaluated_name}") for alias in names)


TENSORS_ASKED = (
    'return_tensors="pt" asks for tensors of torch',
    'ask for numpy\'s arrays (return_tensors="np")',
)
"""What to say of ``tokenizer(text, return_tensors="pt")``, and what to do about it."""


def asks_for_tensors(node: cst.Arg) -> bool:
    """Whether an argument has a tokenizer, which runs without torch, return its tensors."""
    if node.keyword is None or node.keyword.value != "return_tensors":
        return False
    return isinstance(node.value, cst.SimpleString) and node.value.evaluated_value == "pt"
