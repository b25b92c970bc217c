"""A LightningModule is a module: what it computes converts, what Lightning does around it is said."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from migrator import convert_source

SOURCE = """
import torch
import torch.nn as nn
import torch.nn.functional as F
{imported}


class Lit({base}):
    def __init__(self, hidden=8, lr=0.5, act: nn.Module = None, **rest):
        super().__init__()
        self.save_hyperparameters({saved})
        self.l1 = nn.Linear(4, self.hparams.hidden)
        self.l2 = nn.Linear(hidden, 3)
        self.act = act or nn.Tanh()

    def forward(self, x):
        return self.l2(self.act(F.relu(self.l1(x)))) * self.hparams["lr"]

    def _step(self, batch, stage):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log(f"{{stage}}_loss", loss, prog_bar=True)
        self.log_dict({{"loss": loss}})
        return loss

    def training_step(self, batch, batch_idx):
        return self._step(batch, "train")
"""
IMPORTS = (
    ("import pytorch_lightning as pl", "pl.LightningModule"),
    ("import lightning.pytorch as pl", "pl.LightningModule"),
    ("import lightning as L", "L.LightningModule"),
    ("from pytorch_lightning import LightningModule", "LightningModule"),
    ("from pytorch_lightning.core.lightning import LightningModule", "LightningModule"),
)


class Lightning(torch.nn.Module):
    """What the sources above ask of it, here where it is not installed."""

    def save_hyperparameters(self, *names: str, ignore: object = None) -> None:
        self.hparams = _Table(hidden=8, lr=0.5)

    def log(self, *args: object, **kwargs: object) -> None:
        pass

    log_dict = log


class _Table(dict):
    def __getattr__(self, name: str) -> object:
        return self[name]


SAVED = ["'hidden', 'lr'", "ignore=['act']", "ignore='act', logger=False"]


@pytest.mark.parametrize(
    ("imported", "base", "saved"),
    [*((*one, "") for one in IMPORTS), *((*IMPORTS[0], one) for one in SAVED)],
)
def test_the_model_converts(imported: str, base: str, saved: str) -> None:
    source = SOURCE.format(imported=imported, base=base, saved=saved)
    result = convert_source(source)
    assert result.complete, result.findings
    assert "ightning" not in result.code.replace("LightningModule keeps", "")
    theirs: dict = {"Lightning": Lightning}
    plain = source.replace(imported, "").replace(base, "Lightning").replace(", logger=False", "")
    exec(plain, theirs)
    ours: dict = {}
    exec(result.code, ours)
    original, port = theirs["Lit"](), ours["Lit"](rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, original.state_dict())
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    y = np.array([0, 2])
    want = original(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(
        nnx.jit(lambda m, x: m(x))(port, jnp.asarray(x)), want, rtol=1e-5, atol=1e-6
    )
    loss = original.training_step((torch.tensor(x), torch.tensor(y)), 0).item()
    got = port.training_step((jnp.asarray(x), jnp.asarray(y)), 0)
    np.testing.assert_allclose(got, loss, rtol=1e-5)


def test_hyperparameters_that_nobody_reads_go() -> None:
    source = "import pytorch_lightning as pl\n\n\nclass M(pl.LightningModule):\n    def __init__(self, n):\n        super().__init__()\n        self.save_hyperparameters()\n        self.n = n\n"
    result = convert_source(source)
    assert result.complete
    assert "hparams" not in result.code


@pytest.mark.parametrize(
    "line", ["self.trainer.max_epochs", "self.optimizers()", "self.current_epoch + 1"]
)
def test_what_lightning_gives_while_it_trains_is_a_finding(line: str) -> None:
    source = f"import pytorch_lightning as pl\n\n\nclass M(pl.LightningModule):\n    def training_step(self, batch, i):\n        n = {line}\n        return n\n"
    assert [f.rule for f in convert_source(source).findings if f.blocks] == ["API004"]


def test_a_trainer_is_a_finding_beside_it() -> None:
    source = "import pytorch_lightning as pl\n\n\nclass M(pl.LightningModule):\n    def forward(self, x):\n        return x\n\n\ndef main():\n    pl.Trainer(max_epochs=1).fit(M())\n"
    result = convert_source(source)
    assert {f.rule for f in result.findings if f.blocks} == {"API004"}
    assert "class M(nnx.Module):" in result.code


def test_a_class_that_has_such_a_method_itself_keeps_it() -> None:
    source = "import pytorch_lightning as pl\n\n\nclass M(pl.LightningModule):\n    def log(self, x):\n        return x\n\n    def forward(self, x):\n        self.log(x)\n        return self.log(x)\n"
    result = convert_source(source)
    assert result.complete
    assert "return self.log(x)" in result.code
