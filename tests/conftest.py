"""What all tests share: one thread for torch and JAX on the CPU, whatever the machine has."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile

# What the tests convert is not worth a place in the cache of whoever runs them.
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="migrate-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Thousands of small programs are compiled once each: compile time is what counts.
os.environ.setdefault(
    "XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_multi_thread_eigen=false"
)


def pytest_runtest_setup() -> None:
    torch = sys.modules.get("torch")
    if torch is not None and torch.get_num_threads() != 1:
        torch.set_num_threads(1)
