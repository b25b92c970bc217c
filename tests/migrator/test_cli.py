"""What a user sees: exit statuses, output formats, and one clear line for each mistake."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from migrator.cli import main

MODEL = """import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 3)

    def forward(self, x):
        return torch.relu(self.fc(x))
"""
MASKED = MODEL.replace("torch.relu(self.fc(x))", "self.fc(x)[x[:, 0] > 0]")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(MODEL)
    (tmp_path / "masked.py").write_text(MASKED)
    (tmp_path / "plain.py").write_text("x = 1\n")
    return tmp_path


def migrate(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


def error_line(result: Result) -> str:
    """The one line a failed command prints."""
    assert result.exit_code == 2, result.output
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    return lines[0]


# --- exit statuses and output -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("analyze plain.py", 0),
        ("analyze masked.py", 1),
        ("analyze absent.py", 2),
        ("convert net.py -o out", 0),
        ("convert masked.py -o out", 1),
        ("convert absent.py -o out", 2),
        ("convert net.py", 2),
        ("convert net.py --no-such-option", 2),
    ],
)
def test_exit_status(here: Path, command: str, status: int) -> None:
    assert migrate(*command.split()).exit_code == status


VERIFY = ("verify", "--torch", "net.py:Net")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--input", "B,2", "--dim", "C=1:3"), "--dim C=1:3: no --input has a size C; there is B"),
        (("--input", "B,,2"), "--input 'B,,2': a size is missing between two commas"),
    ],
)
def test_sizes_that_mean_nothing_are_named(here: Path, options: Sequence[str], said: str) -> None:
    assert said in error_line(migrate(*VERIFY, *options))


@pytest.mark.parametrize("port", ["absent.py:Net", "out/net.py:Nett"])
def test_a_port_that_is_not_there_is_a_mistake_of_the_command(here: Path, port: str) -> None:
    assert migrate("convert", "net.py", "-o", "out").exit_code == 0
    result = migrate(*VERIFY, "--jax", port, "--input", "B,2")
    assert result.exit_code == 2, result.output
    assert port.partition(":")[0] in result.output


def test_analyze_shows_the_line_and_what_to_do(here: Path) -> None:
    output = migrate("analyze", "masked.py").stdout
    assert "masked.py:11:" in output
    assert "11 |         return self.fc(x)[x[:, 0] > 0]" in output
    assert "^" in output
    assert "jnp.where" in output
    assert "1 file" in output.splitlines()[-1]


def test_quiet_leaves_out_the_summary(here: Path) -> None:
    assert migrate("analyze", "-q", "plain.py").stdout == ""


def test_analyze_json(here: Path) -> None:
    document = json.loads(migrate("analyze", "masked.py", "--format", "json").stdout)
    assert document["command"] == "analyze"
    finding = document["findings"][0]
    assert finding["path"] == "masked.py"
    assert finding["line"] == 11
    assert finding["rule"].startswith("DYN")
    assert {"column", "end_line", "end_column", "message", "severity", "advice"} <= set(finding)


def test_convert_writes_and_says_where(here: Path) -> None:
    result = migrate("convert", "net.py", "-o", "out")
    assert "1 of 1 file converted: out/net.py" in result.stdout
    assert "class Net(nnx.Module):" in (here / "out" / "net.py").read_text()


def test_what_is_left_is_marked_and_reported(here: Path) -> None:
    result = migrate("convert", "masked.py", "-o", "out")
    assert "masked.py:11:" in result.stdout
    assert "TODO(migrate)" in result.stdout.splitlines()[-1]
    assert "# TODO(migrate):" in (here / "out" / "masked.py").read_text()


def test_convert_json(here: Path) -> None:
    result = migrate("convert", "net.py", "masked.py", "-o", "out", "--format", "json")
    document = json.loads(result.stdout)
    assert document["complete"] is False
    first = {"source": "net.py", "output": "out/net.py", "complete": True, "whole": []}
    assert document["files"][0] == first
    assert document["files"][1]["complete"] is False


@pytest.mark.parametrize("option", ["--diff", "--dry-run"])
def test_looking_writes_nothing(here: Path, option: str) -> None:
    result = migrate("convert", "net.py", "-o", "out", option)
    assert result.exit_code == 0
    assert not (here / "out").exists()
    assert ("+class Net(nnx.Module):" in result.stdout) == (option == "--diff")


def test_a_pipe_gets_no_colours(here: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "migrator", "analyze", "masked.py"], capture_output=True, text=True
    )
    assert run.returncode == 1
    assert "\x1b" not in run.stdout + run.stderr


def test_every_process_writes_the_same(here: Path) -> None:
    (here / "net.py").write_text(
        """import torch


def means(x, lengths):
    return torch.segment_reduce(x, "mean", lengths=lengths)
"""
    )
    command = [sys.executable, "-m", "migrator", "convert", "net.py", "--diff"]
    texts = [
        subprocess.run(
            command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True
        ).stdout
        for seed in ("0", "4")
    ]
    assert "def offsets_of(" in texts[0]
    assert texts[0] == texts[1]


# --- verify and weights -------------------------------------------------------------------------


QUICK = "verify --torch net.py:Net --input B,2 --examples 3"


@pytest.mark.slow
def test_verify_converts_and_compares(here: Path) -> None:
    result = migrate(*QUICK.split(), "-v")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Net  equal")
    assert "train gradients" in result.stdout


@pytest.mark.slow
def test_verify_names_the_submodule_that_differs(here: Path) -> None:
    migrate("convert", "net.py", "-o", "port")
    port = here / "port" / "net.py"
    port.write_text(port.read_text().replace("self.fc(x)", "self.fc(-x)"))
    result = migrate(*QUICK.split(), "--jax", "port/net.py:Net", "--format", "json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)["cases"][0]
    assert report["verdict"] == "different"
    assert report["first_divergence"] == ""


@pytest.mark.slow
def test_weights_become_a_checkpoint(here: Path) -> None:
    import orbax.checkpoint as ocp
    import torch

    migrate("convert", "net.py", "-o", "port")
    weight = torch.arange(6.0).reshape(3, 2)
    torch.save({"fc.weight": weight, "fc.bias": torch.ones(3)}, "net.pt")
    command = ["weights", "net.pt", "--module", "port/net.py:Net", "--out", "checkpoint"]
    assert "2 arrays written to checkpoint" in migrate(*command).stdout
    tree = ocp.StandardCheckpointer().restore(here / "checkpoint")
    assert (tree["fc"]["kernel"] == weight.numpy().T).all()
    assert "--force" in error_line(migrate(*command))


# --- mistakes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["analyze {}", "convert {} -o out"])
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        pytest.param("absent.py", None, "absent.py: no such file", id="no such file"),
        pytest.param("latin.py", b"x = 1\ny = '\xe9'\n", "latin.py:2: not UTF-8", id="not UTF-8"),
        pytest.param("broken.py", b"x = 1\ndef f(:\n", "broken.py:2:7: syntax", id="syntax error"),
        pytest.param("open.py", b"x = 1\ny = (x,\n", "open.py:2:5: syntax", id="open bracket"),
        pytest.param("two.py", b"x = 1\n\nprint 'a'\n", "two.py:3:1: syntax", id="Python 2"),
        pytest.param("empty", b"", "empty: a directory with no Python", id="no Python"),
    ],
)
def test_sources_that_cannot_be_read(
    here: Path, command: str, name: str, content: bytes | None, message: str
) -> None:
    if name == "empty":
        (here / name).mkdir()
    elif content is not None:
        (here / name).write_bytes(content)
    assert message in error_line(migrate(*command.format(name).split()))


def test_an_edited_output(here: Path) -> None:
    migrate("convert", "net.py", "-o", "out")
    (here / "out" / "net.py").write_text("# mine\n")
    assert "was edited" in error_line(migrate("convert", "net.py", "-o", "out"))
    assert migrate("convert", "net.py", "-o", "out", "--force").exit_code == 0


def test_a_file_that_is_no_python_leaves_the_others(here: Path) -> None:
    package = here / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("from .net import Net\n")
    (package / "net.py").write_text(MODEL)
    (package / "broken.py").write_bytes(b"# coding: nonsense\r\ndef f(x):\r\n    return (x\r\n")
    (package / "latin.py").write_bytes(b"x = '\xe9'\n")
    command = ["convert", "pkg", "-o", "out", "--no-cache"]
    for more in ([], ["--follow", "email"]):
        result = migrate(*command, *more)
        assert result.exit_code == 2
        assert "broken.py:3:12: error SRC001 syntax error: '(' was never closed" in result.stdout
        assert "latin.py:1:1: error SRC001 not UTF-8 (byte 0xe9)" in result.stdout
        assert "2 of 4 files converted" in result.stdout
        assert "nnx.Module" in (here / "out" / "net.py").read_text()
        space: dict[str, object] = {}
        with pytest.raises(NotImplementedError, match="cannot be read, line 3: syntax error"):
            exec(compile((here / "out" / "broken.py").read_bytes(), "broken.py", "exec"), space)
    result = migrate("analyze", "pkg", "--no-cache")
    assert result.exit_code == 2
    assert result.stdout.count("SRC001") == 2


def test_a_file_that_is_mended_is_worked_on(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept from one run to the next: a file that is no text is not an empty one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "cache"))
    for content, status in ((b"", 0), (b"\xe9", 2), (b"", 0), (b"x = (\n", 2), (b"x = 1\n", 0)):
        (here / "plain.py").write_bytes(content)
        assert migrate("convert", "net.py", "plain.py", "--dry-run").exit_code == status


def test_a_package_beside_files_keeps_its_name(here: Path) -> None:
    (here / "pkg").mkdir()
    (here / "pkg" / "__init__.py").write_text("from pkg.net import Net\n")
    (here / "pkg" / "net.py").write_text(MODEL)
    (here / "use.py").write_text("from pkg import Net\n\nnet = Net()\n")
    result = migrate("convert", "pkg/", "use.py", "-o", "out")
    assert result.exit_code == 0, result.output
    found = sorted(p.relative_to(here / "out").as_posix() for p in here.glob("out/**/*.py"))
    assert [p for p in found if "_torch" not in p] == ["pkg/__init__.py", "pkg/net.py", "use.py"]
    run = "import use, sys; print(type(use.net).__module__, 'torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", run], cwd=here / "out", capture_output=True, text=True, check=False
    )
    assert done.stdout == "pkg.net False\n", done.stderr


def test_an_output_that_cannot_be_written(here: Path) -> None:
    assert "plain.py" in error_line(migrate("convert", "net.py", "-o", "plain.py/out"))


def test_debug_shows_the_traceback(here: Path) -> None:
    result = migrate("analyze", "absent.py", "--debug")
    assert result.exit_code == 2
    assert "Traceback" in result.stderr
    assert result.stderr.splitlines()[-1] == "migrate: absent.py: no such file"


CASE = """
[[tool.migrate.case]]
name = "net"
torch = "net.py:Net"
dims = { B = [1, 2] }
inputs = [{ shape = ["B", 2] }]
"""


@pytest.mark.parametrize("flag", ["--init=3=", "--input=B,2", "--dim=B=3:4", "--jax=net.py:Net"])
@pytest.mark.parametrize("names", [(), ("net",)])
def test_what_describes_a_file_says_nothing_of_a_case(
    here: Path, flag: str, names: tuple[str, ...]
) -> None:
    (here / "pyproject.toml").write_text(CASE)
    line = error_line(migrate("verify", *names, flag))
    assert line.startswith(f"migrate: {flag.partition('=')[0]} goes with a file")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("verify --torch net.py:Nett", "net.py has no 'Nett'; it has Net"),
        ("verify --torch absent.py:Net", "absent.py: no such file"),
        ("verify --torch masked.py:Net", "masked.py does not convert whole"),
        ("verify --torch net.py:Net --init 3=", "--init '3=': write constructor arguments"),
        ("verify --torch net.py:Net --input B:int64:0", "--input 'B:int64:0': write SHAPE"),
        (
            "verify --torch net.py:Net --input x:float32[2,2]",
            "--input 'x:float32[2,2]': write SHAPE or",
        ),
        (
            "verify --torch net.py:Net --init Cfg()",
            "in a call, literals alone: 32, heads=4; objects",
        ),
        ("verify --torch net.py:Net --input B+,2", "cannot read the size 'B+'"),
        ("verify --torch net.py:Net --input B;2", "sizes stand between commas: B,3"),
        ("verify --torch net.py:Net --input B --dim B=x", "--dim 'B=x': write NAME=LOW:HIGH"),
        ("verify", "no case to verify"),
        ("verify nothing", "no case 'nothing'"),
        ("verify --torch net.py:Net --input B,5", "torch itself raises on every example: Runtime"),
        ("verify nothing --junit absent/a.xml", "absent/a.xml: cannot write the report (there is"),
        ("verify nothing --html .", ".: cannot write the report (is a directory)"),
        ("convert net.py -o plain.py/x", "plain.py/x: cannot be written: plain.py is no directory"),
        ("convert net.py", "-o OUT, or look at it with --diff (try 'migrate convert --help')"),
        ("convert", "Missing argument 'PATH...' (try 'migrate convert --help')"),
        ("verify --examples", "'--examples' requires an argument (try 'migrate verify --help')"),
        ("verify --precision x", "'x' is not one of 'f32', 'bf16', 'f16' (try"),
        ("convrt", "No such command 'convrt'"),
        ("--absent", "No such option '--absent' (try 'migrate --help')"),
        ("weights net.pt --module net.py --out x", "write file.py:Class"),
        ("weights net.pt --module plain.py:Net --out x", "plain.py has no 'Net'"),
        ("weights net.pt --module net.py:Net --out x", "not an nnx.Module"),
    ],
)
def test_commands_that_cannot_run(here: Path, command: str, message: str) -> None:
    assert message in error_line(migrate(*command.split()))


@pytest.mark.parametrize(
    ("command", "library"),
    [
        ("weights model.pt --module net.py:Net --out ckpt", "torch"),
        ("weights model.pt --module net.py:Net --out ckpt", "jax"),
        ("verify --torch net.py:Net --input B,2", "torch"),
    ],
)
def test_a_missing_library_is_named(here: Path, command: str, library: str) -> None:
    (here / "model.pt").touch()
    (here / "lib" / library).mkdir(parents=True)
    (here / "lib" / library / "__init__.py").write_text(f"raise ImportError('no {library} here')\n")
    run = subprocess.run(
        [sys.executable, "-m", "migrator", *command.split()],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(here / "lib")},
    )
    assert run.returncode == 2
    assert len(run.stderr.splitlines()) == 1, run.stderr
    assert f"{library} cannot be imported (no {library} here)" in run.stderr


# --- progress -----------------------------------------------------------------------------------

SLOW = """
import time
from migrator.report.progress import track

for item in track(["one", "two"], "verify"):
    time.sleep({seconds})
    print("result", item)
"""


def on_terminal(program: str) -> str:
    """What a terminal shows while a program runs."""
    reader, writer = os.openpty()
    run = subprocess.Popen([sys.executable, "-c", program], stdout=writer, stderr=writer)
    os.close(writer)
    shown = b""
    with contextlib.suppress(OSError):  # how Linux says that the other end is closed
        while chunk := os.read(reader, 4096):
            shown += chunk
    run.wait()
    os.close(reader)
    return shown.decode()


@pytest.mark.parametrize(("seconds", "expected"), [(0.0, False), (1.6, True)])
def test_a_terminal_shows_progress_after_a_second(seconds: float, expected: bool) -> None:
    shown = on_terminal(SLOW.format(seconds=seconds))
    assert ("verify one" in shown) is expected
    assert "result one" in shown
    assert "result two" in shown


def test_a_pipe_sees_results_only() -> None:
    run = subprocess.run(
        [sys.executable, "-c", SLOW.format(seconds=1.1)], capture_output=True, text=True, check=True
    )
    assert run.stdout == "result one\nresult two\n"
    assert run.stderr == ""
