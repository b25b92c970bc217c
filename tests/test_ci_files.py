"""The files that CI systems read: the action, the pre-commit hook, JUnit reports."""

from __future__ import annotations

import re
import shlex
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from migrator.cli import main, verify
from migrator.report import verify_junit
from numerics.compare import Difference
from numerics.inputs import Example
from numerics.report import Check, Failure, Report

ROOT = Path(__file__).resolve().parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
OPTIONS = {name for parameter in verify.params for name in parameter.opts}


def test_the_action_uses_inputs_it_declares_and_options_that_exist() -> None:
    text = (ROOT / "action.yml").read_text()
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(ACTION["inputs"])
    assert ACTION["runs"]["using"] == "composite"
    for step in ACTION["runs"]["steps"]:
        assert ("uses" in step) != ("run" in step)
        assert "uses" in step or step["shell"] == "bash"
    script = ACTION["runs"]["steps"][-1]["run"]
    assert set(re.findall(r"(--[a-z][\w-]*)", script)) <= OPTIONS


@pytest.mark.parametrize("since", ["", "abc123"])
def test_the_actions_command_line(since: str, tmp_path: Path) -> None:
    """Run the step's script with a ``migrate`` that prints what it was given."""
    fake = tmp_path / "migrate"
    fake.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    fake.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "RUNNER_TEMP": str(tmp_path / "a b")}
    environment |= {"GITHUB_OUTPUT": str(tmp_path / "output"), "CASES": "mlp gpt", "JOBS": "2"}
    environment |= {"SINCE": since, "OPTIONS": "--examples 4"}
    script = ACTION["runs"]["steps"][-1]["run"]
    result = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], env=environment, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    given = result.stdout.splitlines()
    assert given[:5] == ["verify", "mlp", "gpt", "--jobs", "2"]
    assert ("--changed-since" in given) == bool(since)
    assert given[-2:] == ["--examples", "4"]
    assert f"{tmp_path}/a b/migrate.xml" in given
    assert "junit=" in (tmp_path / "output").read_text()


def test_the_pre_commit_hook_runs_a_command_that_exists() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert {"id", "name", "entry", "language"} <= set(hook)
    program, command, *options = shlex.split(hook["entry"])
    assert program == "migrate"
    assert command in main.commands
    assert options[0] in OPTIONS
    assert hook["pass_filenames"] is False


def test_the_command_that_ci_calls_says_what_it_takes() -> None:
    assert CliRunner().invoke(main, ["verify", "--help"]).exit_code == 0


# --- JUnit -------------------------------------------------------------------------------------------------------

_DECIMAL, _WHOLE = re.compile(r"\d+(\.\d+)?"), re.compile(r"\d+")
SCHEMA: dict[str, dict[str, Any]] = {
    # what Jenkins' xUnit plugin (junit-10.xsd) allows: attributes with their form, required ones, children
    "testsuites": {
        "attributes": {
            "name": None,
            "time": _DECIMAL,
            "tests": _WHOLE,
            "failures": _WHOLE,
            "errors": _WHOLE,
        },
        "required": set(),
        "children": {"testsuite"},
    },
    "testsuite": {
        "attributes": {
            "name": None,
            "tests": _WHOLE,
            "failures": _WHOLE,
            "errors": _WHOLE,
            "time": _DECIMAL,
            "skipped": _WHOLE,
            "timestamp": None,
            "hostname": None,
            "id": None,
            "package": None,
        },
        "required": {"name", "tests", "failures", "errors"},
        "children": {"properties", "testcase", "system-out", "system-err"},
    },
    "testcase": {
        "attributes": {
            "name": None,
            "classname": None,
            "time": _DECIMAL,
        },
        "required": {"name", "classname"},
        "children": {"skipped", "error", "failure", "system-out", "system-err"},
    },
    "failure": {
        "attributes": {"message": None, "type": None},
        "required": set(),
        "children": set(),
    },
    "error": {"attributes": {"message": None, "type": None}, "required": set(), "children": set()},
}


def problems(element: ET.Element) -> list[str]:
    """What the schema forbids in an element and below."""
    rule = SCHEMA[element.tag]
    found = [f"{element.tag} lacks {name}" for name in rule["required"] - set(element.attrib)]
    for name, value in element.attrib.items():
        if name not in rule["attributes"]:
            found.append(f"{element.tag} has {name}")
        elif rule["attributes"][name] and not rule["attributes"][name].fullmatch(value):
            found.append(f"{element.tag} {name}={value!r}")
    for child in element:
        if child.tag not in rule["children"]:
            found.append(f"{child.tag} in {element.tag}")
        else:
            found += problems(child)
    return found


def test_junit_reports_keep_to_the_schema() -> None:
    wrong = Difference("[0]", error=1.0, torch_error=1e-7, ratio=10.0, where=(0,))
    failure = Failure("eval outputs", Example(), [wrong], submodule="a<b>", snippet="\x1b[1m & <x>")
    reports = [
        Report("right", "equal", [Check("eval outputs", 3)], seconds=1.5),
        Report("wrong", "different", [Check("eval outputs", 3, ok=False)], failure),
        Report("broken", "error", notes=["no such file: <a&b>"]),
        Report("odd", "not compared"),
    ]
    root = ET.fromstring(verify_junit.render(reports))
    assert problems(root) == []
    assert root.get("tests") == "4"
    assert (root.get("failures"), root.get("errors")) == ("2", "1")
    for suite in root:
        assert int(suite.get("tests", "")) == len(suite.findall("testcase"))
    assert problems(ET.fromstring("<testsuites><testcase name='x'/></testsuites>")) != []
    assert problems(ET.fromstring("<testsuites><testsuite name='x' tests='a'/></testsuites>")) != []
