"""Cases as tests: ``pytest --migrate`` runs each, ``def test_port(migrate_case)`` runs one's own code for each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from migrator.config import Config, find_pyproject, load_config
from migrator.errors import UserError


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--migrate``: collect the cases of the project's pyproject.toml."""
    parser.getgroup("migrate").addoption(
        "--migrate",
        action="store_true",
        help="verify every [[tool.migrate.case]] of pyproject.toml as a test",
    )


def pytest_configure(config: pytest.Config) -> None:
    """With ``--migrate``, pyproject.toml is one more file to collect from."""
    path = find_pyproject(config.rootpath)
    if config.getoption("--migrate") and path is not None and str(path) not in config.args:
        config.args.append(str(path))


def pytest_collect_file(file_path: Any, parent: pytest.Collector) -> pytest.Collector | None:
    """The cases of a pyproject.toml."""
    if file_path.name == "pyproject.toml" and parent.config.getoption("--migrate"):
        return CaseFile.from_parent(parent, path=file_path)
    return None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes ``migrate_case`` runs once for each case, which it gets loaded on demand."""
    if "migrate_case" in metafunc.fixturenames:
        settings = _settings(metafunc.config)
        names = [case.name for case in settings.cases if case.expect == "equal"]
        metafunc.parametrize("migrate_case", names, indirect=True)


def _settings(config: pytest.Config) -> Config:
    path = find_pyproject(config.rootpath)
    return load_config(path) if path is not None else Config(root=config.rootpath)


@pytest.fixture
def migrate_case(request: pytest.FixtureRequest) -> Any:
    """A ``migrator.verifying.LoadedCase``: both modules, built, and the inputs they take."""
    from migrator.verifying import load_case

    return load_case(request.param, _settings(request.config))


class CaseFile(pytest.File):
    """A pyproject.toml with cases."""

    def collect(self) -> Iterator[CaseItem]:
        """One test a case."""
        for case in load_config(self.path).cases:
            yield CaseItem.from_parent(self, name=case.name)


class NotAsExpected(Exception):
    """A case whose verdict is not the one it expects; carries the lines of its report."""


class CaseItem(pytest.Item):
    """The verification of one case."""

    def runtest(self) -> None:
        """Verify; a failure is the report, not a traceback."""
        from migrator.report.verification import lines
        from migrator.verifying import verify_cases

        (report,) = verify_cases(load_config(self.path), [self.name])
        if not report.ok:
            raise NotAsExpected("\n".join([*lines(report, [self.name, ""]), *report.notes]))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What the person needs to see."""
        if isinstance(excinfo.value, NotAsExpected | UserError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """Where the case stands."""
        return self.path, None, f"migrate case {self.name}"
