"""verify's power: wrong conversions planted in the samples' ports are all found, at the right submodule."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path

import pytest

from migrator.config import load_config
from migrator.verifying import load_case, verify
from numerics.verify import Settings

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Fault:
    """One edit of a generated file: what stands there, what is put in its place, where verify must see it.

    ``submodule`` is a path, with ``*`` for any block of a stack; ``nth`` chooses among several places where the text stands.
    """

    name: str
    case: str
    old: str
    new: str
    submodule: str
    nth: int = 0

    def plant(self, text: str) -> str:
        """The file with the fault in it."""
        parts = text.split(self.old)
        assert len(parts) > self.nth + 1, f"{self.case} no longer contains {self.old!r}"
        before, after = self.old.join(parts[: self.nth + 1]), self.old.join(parts[self.nth + 1 :])
        return before + self.new + after


LN_F = "ln_f=nnx.LayerNorm(\n                    config.n_embd,\n                    epsilon="
FAULTS = [
    Fault("epsilon", "gpt", LN_F + "1e-5", LN_F + "1e-6", "transformer.ln_f"),
    Fault(
        "GELU approximation",
        "gpt",
        "self.gelu = jax.nn.gelu",
        "self.gelu = lambda x: jax.nn.gelu(x, approximate=False)",
        "transformer.h.*.mlp.gelu",
    ),
    Fault(
        "swapped axis",
        "gpt",
        "y = y.swapaxes(1, 2).reshape(B, T, C)",
        "y = y.reshape(B, T, C)",
        "transformer.h.*.attn",
    ),
    Fault(
        "mask polarity",
        "gpt",
        "self.bias[:, :, :T, :T] == 0",
        "self.bias[:, :, :T, :T] != 0",
        "transformer.h.*.attn",
    ),
    Fault("biased running variance", "mlp", "var * count / (count - 1)", "var", "features.1"),
    Fault("momentum", "mlp", "momentum=0.1", "momentum=0.9", "features.1"),
    Fault(
        "padding order",
        "unet",
        "pairs += zip(pad[-2::-2], pad[::-2], strict=True)",
        "pairs += zip(pad[::-2], pad[-2::-2], strict=True)",
        "up2",  # the first where an odd size was halved
    ),
    Fault("missing scale", "diffusion_unet", "q = q * self.scale", "q = q * 1.0", "mid_attn"),
    Fault("gate order", "lstm_tagger", "i, f, _, o = ", "f, i, _, o = ", "lstm"),
    Fault(
        "dropped bias",
        "diffusion_unet",
        "return output + self.bias[...].reshape(-1, *(1,) * self.spatial)",
        "return output",
        "init_conv",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_found_at_its_submodule(fault: Fault, tmp_path: Path) -> None:
    config = load_config(ROOT / "pyproject.toml")
    shutil.copytree(ROOT / "samples" / "flax", tmp_path / "flax")
    config = replace(config, output=tmp_path / "flax")
    case = next(case for case in config.cases if case.name == fault.case)
    port = tmp_path / "flax" / Path(case.torch.partition(":")[0]).name
    port.write_text(fault.plant(port.read_text()))
    settings = Settings(examples=8, shapes=2, train=True, shrink_seconds=2)
    report = verify(*load_case(case, config), settings=settings)
    assert report.verdict == "different", str(report)
    assert fnmatch(report.first_divergence or "", fault.submodule), report.first_divergence
