"""What all tests share: one thread for torch and JAX on the CPU, whatever the machine has."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile

import pytest

from tests import costly

# What the tests convert is not worth a place in the cache of whoever runs them.
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="migrate-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Thousands of small programs are compiled once each: compile time is what counts.
os.environ.setdefault(
    "XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_multi_thread_eigen=false"
)


def pytest_configure(config: pytest.Config) -> None:
    """The whole suite leaves out what is another day's turn; its workers learn of it by their environment."""
    part = costly.seed()
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS and part is not None:
        os.environ["COSTLY_PART"] = str(part)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "COSTLY_PART" not in os.environ or "not sweep" not in config.option.markexpr:
        return
    part, known = int(os.environ["COSTLY_PART"]), costly.listed()
    turn = [costly.runs(item.nodeid, known, part) for item in items]
    config.hook.pytest_deselected(items=[i for i, runs in zip(items, turn) if not runs])
    items[:] = [item for item, runs in zip(items, turn) if runs]


def pytest_runtest_setup() -> None:
    torch = sys.modules.get("torch")
    if torch is not None and torch.get_num_threads() != 1:
        torch.set_num_threads(1)
