"""torch checkpoint files become Orbax checkpoints, one tensor in memory at a time."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import orbax.checkpoint as ocp
import pytest
import torch
from flax import nnx
from jax import numpy as jnp
from safetensors.torch import save_file

from migrator import to_state_dict
from migrator.checkpoint import write_checkpoint
from migrator.errors import UserError


class Net(nnx.Module):
    """Containers, a buffer, dropout's random state and a non-persistent buffer."""

    def __init__(self, layers: int = 2, width: int = 4, *, rngs: nnx.Rngs) -> None:
        self.blocks = nnx.List([nnx.Linear(width, width, rngs=rngs) for _ in range(layers)])
        self.norm = nnx.Sequential(nnx.LayerNorm(width, rngs=rngs))
        self.dropout = nnx.Dropout(0.1, rngs=rngs)
        self.steps = nnx.BatchStat(jnp.array(0))
        self.mask = nnx.Variable(jnp.ones(3), persistent=False)


def abstract(**options: int) -> Net:
    return nnx.eval_shape(lambda: Net(rngs=nnx.Rngs(0), **options))


def random_state(net: Net) -> dict[str, torch.Tensor]:
    rng = np.random.default_rng(0)
    state = {k: torch.from_numpy(v) for k, v in to_state_dict(net).items()}
    return {
        k: torch.from_numpy(rng.normal(size=v.shape).astype(np.float32)) if v.ndim else v + 9
        for k, v in state.items()
    }


@pytest.fixture
def state() -> dict[str, torch.Tensor]:
    return random_state(Net(rngs=nnx.Rngs(0)))


def restored(path: Path) -> dict[str, np.ndarray]:
    """The documented way to take up the checkpoint."""
    model = Net(rngs=nnx.Rngs(1))
    tree = ocp.StandardCheckpointer().restore(path)
    nnx.update(model, nnx.restore_int_paths(tree))
    return to_state_dict(model)


def save_pt(state: dict[str, torch.Tensor], path: Path) -> Path:
    torch.save(state, path.with_suffix(".pt"))
    return path.with_suffix(".pt")


def save_legacy(state: dict[str, torch.Tensor], path: Path) -> Path:
    torch.save(state, path.with_suffix(".pth"), _use_new_zipfile_serialization=False)
    return path.with_suffix(".pth")


def save_safe(state: dict[str, torch.Tensor], path: Path) -> Path:
    save_file(state, path.with_suffix(".safetensors"))
    return path.with_suffix(".safetensors")


@pytest.mark.parametrize("save", [save_pt, save_legacy, save_safe])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_checkpoint_restores_bit_for_bit(
    tmp_path: Path, state: dict, save: Callable, dtype: torch.dtype
) -> None:
    state = {k: v.to(dtype) if v.is_floating_point() else v for k, v in state.items()}
    file = save(state, tmp_path / "model")
    assert write_checkpoint(file, abstract(), tmp_path / "out") == len(state)
    found = restored(tmp_path / "out")
    assert set(found) == set(state)
    for key, tensor in state.items():
        assert found[key].tobytes() == bytes(tensor.view(-1).view(torch.uint8).numpy()), key


def test_an_entry_of_a_training_checkpoint(tmp_path: Path, state: dict) -> None:
    file = tmp_path / "last.pt"
    torch.save({"epoch": 3, "model": state, "optimizer": {"lr": 0.1}}, file)
    with pytest.raises(UserError, match=r"--key: model, optimizer"):
        write_checkpoint(file, abstract(), tmp_path / "out")
    with pytest.raises(UserError, match=r"no entry 'ema'; there is epoch, model, optimizer"):
        write_checkpoint(file, abstract(), tmp_path / "out", key="ema")
    write_checkpoint(file, abstract(), tmp_path / "out", key="model")
    assert set(restored(tmp_path / "out")) == set(state)


def test_leftovers_and_shapes_are_refused_before_anything_is_written(
    tmp_path: Path, state: dict
) -> None:
    file = save_safe(state, tmp_path / "model")
    with pytest.raises(KeyError, match=r"blocks\.2\.weight"):
        write_checkpoint(file, abstract(layers=3), tmp_path / "out")
    with pytest.raises(ValueError, match=r"blocks\.0\.weight.*\(4, 4\).*\(5, 5\)"):
        write_checkpoint(file, abstract(width=5), tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir()] == [file.name]


class Evil:
    """What weights_only=True must refuse."""

    def __reduce__(self) -> tuple:
        return os.mkdir, ("evil",)


@pytest.mark.parametrize("protocol", [2, 4])
def test_pickled_code_is_never_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: int
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"w": Evil()}, "zip.pt")
    Path("plain.pt").write_bytes(pickle.dumps({"w": Evil()}, protocol))
    for name in ("zip.pt", "plain.pt"):
        with pytest.raises(UserError, match=r"weights_only=True\) refuses it") as caught:
            write_checkpoint(Path(name), abstract(), tmp_path / "out")
        assert name != "zip.pt" or "more than tensors (posix.mkdir)" in str(caught.value)
    assert not Path("evil").exists()


def test_a_file_that_torch_refuses_is_told_in_our_words(tmp_path: Path) -> None:
    """torch's own message advises to switch the safety off."""
    torch.save(torch.nn.Linear(2, 2), tmp_path / "module.pt")
    (tmp_path / "junk.pt").write_bytes(b"not a checkpoint")
    (tmp_path / "empty.pt").write_bytes(b"")
    (tmp_path / "cut.pt").write_bytes((tmp_path / "module.pt").read_bytes()[:300])
    for name, reason in [
        (
            "module.pt",
            r"more than tensors \(torch\.nn\.modules\.linear\.Linear\); save .*state_dict",
        ),
        ("junk.pt", "damaged, or no checkpoint of torch"),
        ("empty.pt", "damaged, or no checkpoint of torch"),
        ("cut.pt", "damaged, or no checkpoint of torch"),
    ]:
        with pytest.raises(UserError, match=reason) as caught:
            write_checkpoint(tmp_path / name, abstract(), tmp_path / "out")
        assert "trust" not in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["model.pt", "model.safetensors"])
def test_a_file_that_is_no_checkpoint_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match=rf"{name}: no such file"):
        write_checkpoint(tmp_path / name, abstract(), tmp_path / "out")
    (tmp_path / name).write_text("hello")
    with pytest.raises(UserError, match=name):
        write_checkpoint(tmp_path / name, abstract(), tmp_path / "out")


def test_an_existing_output_is_kept_unless_forced(tmp_path: Path, state: dict) -> None:
    file = save_safe(state, tmp_path / "model")
    out = tmp_path / "out"
    write_checkpoint(file, abstract(), out)
    with pytest.raises(UserError, match="--force"):
        write_checkpoint(file, abstract(), out)
    write_checkpoint(file, abstract(), out, force=True)
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.txt").touch()
    with pytest.raises(UserError, match="no checkpoint"):
        write_checkpoint(file, abstract(), other, force=True)
    assert {p.name for p in tmp_path.iterdir()} == {file.name, "out", "other"}


def private_bytes() -> int:
    """Memory of this process that is no mapped file."""
    status = Path("/proc/self/status").read_text().splitlines()
    line = next(x for x in status if x.startswith("RssAnon"))
    return int(line.split()[1]) * 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's /proc")
@pytest.mark.parametrize("save", [save_pt, save_safe])
def test_memory_holds_a_few_tensors_not_the_file(tmp_path: Path, save: Callable) -> None:
    net = abstract(layers=48, width=768)
    state = {
        f"{prefix}.{name}": torch.ones(shape)
        for prefix in [*(f"blocks.{i}" for i in range(48)), "norm.0"]
        for name, shape in (
            ("weight", (768, 768) if prefix != "norm.0" else (768,)),
            ("bias", (768,)),
        )
    }
    file = save({**state, "steps": torch.tensor(0)}, tmp_path / "big")
    del state
    write_checkpoint(file, net, tmp_path / "warm")
    base, peak = private_bytes(), 0

    def watch(key: str) -> None:
        nonlocal peak
        peak = max(peak, private_bytes() - base)

    write_checkpoint(file, net, tmp_path / "out", progress=watch)
    assert file.stat().st_size > 110e6
    assert peak < 40e6
