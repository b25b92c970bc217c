"""One architecture: built in torch and in Flax, and compared.

Each stage tells what is known so far, so that whoever stops the process has it.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import torch
from flax import nnx

import migrator
from migrator.findings import Finding
from migrator.verifying import keep_compilations
from migrator.weights import load_state_dict, to_state_dict, unstored
from numerics.compare import compare_all
from numerics.pair import Pair
from numerics.parameters import perturbed
from numerics.runners import to_numpy
from numerics.spec import Array, InputSpec
from numerics.tree import flatten
from numerics.verify import Settings, verify_pair
from tests.corpora.libraries import LIBRARIES, Library
from tests.corpora.small import NotBuilt, Small, smaller
from tests.corpora.used import Used

Tell = Callable[[dict[str, Any]], None]
LARGE = 50_000_000
"""Numbers of a model beyond which only outputs are compared."""
TRAINING_COSTS = 6.0
"""How much longer a comparison of training with its gradients takes than one of outputs, at most."""


class Case:
    """An architecture's record as it grows."""

    def __init__(
        self, library: Library, name: str, directory: Path, seconds: float, tell: Tell
    ) -> None:
        self.library, self.name, self.directory = library, name, directory
        self.deadline = time.process_time() + seconds
        self.send = tell
        self.record: dict[str, Any] = {"library": library.name, "name": name}

    def tell(self, **news: Any) -> None:
        """Add to the record and hand it on."""
        self.record |= news
        self.send(self.record)

    def run(self) -> None:
        """Build both, compare, and say what came of it."""
        self.tell(stage="torch")
        try:
            small = smaller(self.library.builder(self.name), self.library.name, self.name)
        except NotBuilt as error:
            self.tell(verdict="not built", why=short(error))
            return
        options = {key: repr(value) for key, value in small.options.items()}
        self.tell(options=options, shape=small.shape, size=small.size)
        self.tell(**self.findings(small), stage="build")
        try:
            port = self.build(small)
        except Exception as error:
            self.tell(verdict="raises", why=f"when it is built: {short(error)}")
            return
        self.tell(stage="compare")
        self.compare(small, port)

    def findings(self, small: Small) -> dict[str, Any]:
        """What of the conversion's findings the architecture meets, and whether the model's own file has none."""
        used = Used(self.library.root)
        with used.watch():
            model = self.library.builder(self.name)(**small.options)
            exercise(model, small.shape)
        used.note_classes(list(model.modules()))
        found = [
            Finding(**one) for one in json.loads((self.directory / "findings.json").read_text())
        ]
        blocking = [finding for finding in found if finding.blocks]
        met = [finding for finding in blocking if used.meets(finding)]
        own = sys.modules[type(model).__module__].__file__
        return {
            "file": self._relative(own or ""),
            "findings": [f"{self._relative(f.path)}:{f.line} {f.rule} {f.message}" for f in met],
            "reached": sum(map(used.reaches, met)),
            "whole": not any(finding.path == own for finding in blocking),
        }

    def _relative(self, path: str) -> str:
        place = Path(path)
        root = self.library.root
        return place.relative_to(root).as_posix() if place.is_relative_to(root) else place.name

    def build(self, small: Small) -> Any:
        """The port with torch's weights."""
        with drawn_by_numpy():
            port = self.library.port(self.name)(rngs=nnx.Rngs(0), **small.options)
        migrator.load_state_dict(port, small.model.state_dict())
        return port

    def compare(self, small: Small, port: Any) -> None:
        """Outputs in eval mode; outputs, state and gradients of training when there is time for it."""
        if small.size > LARGE:
            self.compare_outputs(small, port)
            return
        started = time.process_time()
        settings = Settings(examples=2, shapes=1, train=False, grad=False, shrink_seconds=0)
        spec = InputSpec((Array(small.shape),))
        pair = Pair(
            small.model, port, spec, load_state_dict, to_state_dict, settings, rest=unstored
        )
        report = verify_pair(pair, settings, self.name)
        self.tell(**outcome(report), stage="train")
        spent = time.process_time() - started
        if report.verdict != "equal":
            return
        if TRAINING_COSTS * spent > self.deadline - time.process_time():
            self.tell(train="no time")
            return
        pair.wanted = settings = replace(settings, examples=2, train=True, grad=True)
        pair.skipped.add("eval")
        report = verify_pair(pair, settings, self.name)
        self.tell(train=report.verdict, stage="done")
        if report.verdict not in ("equal", "not compared", "ill-conditioned"):
            self.tell(**outcome(report))
        elif report.notes:
            self.tell(notes=[short(note) for note in report.notes])

    def compare_outputs(self, small: Small, port: Any) -> None:
        """One example in eval mode, by the same measure, of a model whose numbers fit into memory only a few times."""
        model = perturbed(small.model, "fresh").eval()
        load_state_dict(port, model.state_dict())
        port.eval()
        x = torch.randn(small.shape)
        with torch.no_grad():
            own, reference = (
                {path: to_numpy(value) for path, value in flatten(out).items()}
                for out in (model(x), model.double()(x.double()))
            )
        found = flatten(nnx.jit(lambda module, x: module(x))(port, x.numpy()))
        differences = compare_all(reference, [own], {n: to_numpy(v) for n, v in found.items()})
        wrong = [difference for difference in differences if not difference.ok]
        error = max(difference.error for difference in differences)
        news = {"verdict": "different" if wrong else "equal", "error": float(f"{error:.1e}")}
        self.tell(**news, train="no memory", **({"why": short(wrong[0])} if wrong else {}))


def exercise(model: Any, shape: tuple[int, ...]) -> None:
    """Run a model in both modes and differentiate it, as a comparison does."""
    x = torch.randn(shape)
    with torch.no_grad():
        model.eval()(x)
    try:
        out = model.train()(x)
        leaves = [v for v in torch.utils._pytree.tree_leaves(out) if isinstance(v, torch.Tensor)]
        torch.autograd.backward([leaf.sum() for leaf in leaves if leaf.requires_grad])
    except (RuntimeError, ValueError):
        pass  # a comparison will not get further


def outcome(report: Any) -> dict[str, Any]:
    """What a record keeps of a verification."""
    kept = {"verdict": report.verdict, "error": float(f"{report.max_error:.1e}")}
    if report.failure is not None:
        failure = report.failure
        place = failure.traceback.strip().splitlines()[-3:] if failure.traceback else []
        kept["why"] = short(f"{failure.check} at {failure.submodule}: {failure} {' '.join(place)}")
    return kept


def short(text: object) -> str:
    """One line of at most 400 characters."""
    if isinstance(text, Exception):
        frames = traceback.extract_tb(text.__traceback__)
        at = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
        text = f"{type(text).__name__}: {text}{at}"
    return " ".join(str(text).split())[:400]


@contextmanager
def drawn_by_numpy() -> Iterator[None]:
    """Initial values, which torch's replace, without a compilation for each shape."""
    rng = np.random.default_rng(0)

    def uniform(
        key: Any, shape: Any = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0
    ) -> Any:
        return _array(rng.random(shape) * (maxval - minval) + minval, dtype)

    def normal(key: Any, shape: Any = (), dtype: Any = None, **_: Any) -> Any:
        return _array(rng.standard_normal(shape), dtype)

    def truncated(
        key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = None, **_: Any
    ) -> Any:
        return _array(np.clip(rng.standard_normal(shape or np.shape(lower)), lower, upper), dtype)

    instead = {"uniform": uniform, "normal": normal, "truncated_normal": truncated}
    before = {name: getattr(jax.random, name) for name in instead}
    try:
        for name, function in instead.items():
            setattr(jax.random, name, function)
        yield
    finally:
        for name, function in before.items():
            setattr(jax.random, name, function)


def _array(values: Any, dtype: Any) -> jax.Array:
    return jax.numpy.asarray(np.asarray(values, np.float32 if dtype is None else dtype))


def run(library: str, name: str, directory: Path, seconds: float, tell: Tell) -> None:
    """Compare one architecture, in a process of its own."""
    warnings.simplefilter("ignore")
    sys.setrecursionlimit(10_000)
    torch.set_num_threads(1)
    keep_compilations()
    Case(LIBRARIES[library], name, directory, seconds, tell).run()
