"""Cases from a project on disk: built, verified, reported; the user's files keep their names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from flax import nnx

from migrator import failures
from migrator.cli import main
from migrator.config import load_config
from migrator.errors import UserError
from migrator.report import json as json_report
from migrator.report import verification, verify_github, verify_junit
from migrator.verifying import load_case, verify, verify_cases
from numerics.initial import compare_initial, drawn
from numerics.inputs import Example

TORCH = """
import torch
from torch import nn

class Config:
    def __init__(self, width=6):
        self.width = width

class Scale(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(config.width, 4))
        self.register_buffer("shift", torch.ones(4))

    def forward(self, x):
        return x @ self.weight + self.shift
"""

FLAX = """
import jax.numpy as jnp
from flax import nnx

class Config:
    def __init__(self, width=6):
        self.width = width

class Scale(nnx.Module):
    def __init__(self, config, *, rngs: nnx.Rngs):
        assert type(config) is Config, "the port gets the port's own config"
        self.weight = nnx.Param(rngs.normal((config.width, 4)))
        self.shift = nnx.Variable(jnp.ones(4))

    def __call__(self, x):
        return x @ self.weight[...] + self.shift[...]
"""

PROJECT = """
[tool.migrate]
output = "ported"

[[tool.migrate.case]]
name = "scale"
torch = "model.py:Scale"
init = { args = [{ call = "Config", kwargs = { width = 5 } }] }
dims = { B = [1, 3] }
inputs = [{ shape = ["B", 5] }]
examples = 4
shapes = 2
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "ported").mkdir()
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "model.py").write_text(TORCH)
    (tmp_path / "ported" / "model.py").write_text(FLAX)
    return tmp_path


def reports(project: Path, **options: Any) -> list[Any]:
    return verify_cases(load_config(project / "pyproject.toml"), **options)


def test_a_case_is_built_on_both_sides_and_equal(project: Path) -> None:
    (report,) = reports(project)
    assert report.verdict == "equal", report.notes or str(report)
    assert report.name == "scale"


def test_a_case_with_a_mistake_in_its_table_does_not_stop_the_others(project: Path) -> None:
    with (project / "pyproject.toml").open("a") as file:
        file.write('[[tool.migrate.case]]\nname = "odd"\ntorch = "model.py:Scale"\nsize = 3\n')
    right, wrong = reports(project)
    assert (right.verdict, wrong.verdict) == ("equal", "error")
    assert "case odd: unknown key 'size'" in wrong.notes[0]
    with pytest.raises(UserError, match="unknown key 'size'"):
        load_case("odd", project / "pyproject.toml")


def test_a_wrong_port_comes_with_a_program_that_shows_it(project: Path) -> None:
    port = project / "ported" / "model.py"
    port.write_text(port.read_text().replace("+ self.shift", "- self.shift"))
    (report,) = reports(project)
    assert report.verdict == "different"
    assert report.failure is not None
    shown: list[str] = []
    exec(report.failure.snippet, {"print": lambda value: shown.append(str(value))})
    assert "different" in shown[0]


def test_the_users_own_rules_numerics_and_tests_are_the_users(project: Path) -> None:
    (project / "rules.py").write_text("WIDTH = 5\n")
    (project / "numerics.py").write_text("from rules import WIDTH as ADD\n")
    (project / "tests").mkdir()
    (project / "tests" / "__init__.py").write_text("")
    (project / "tests" / "helper.py").write_text("ONE = 1\n")
    head = "from numerics import ADD\nfrom tests.helper import ONE\nimport rules\nassert ADD == 5\n"
    lazy = "        import rules; assert rules.WIDTH == 5\n        return x"
    for file, text in (("model.py", TORCH), ("ported/model.py", FLAX)):
        (project / file).write_text(head + text.replace("        return x", lazy))
    before = {name: sys.modules[name] for name in ("numerics", "numerics.inputs")}
    (report,) = reports(project)
    assert report.verdict == "equal", report.notes or str(report)
    assert {name: sys.modules[name] for name in before} == before
    import numerics

    assert "migrat" not in str(numerics.__file__ or "")
    assert numerics.__path__


def test_two_directories_may_hold_files_of_one_name(project: Path) -> None:
    (project / "layers.py").write_text("SIDE = 'torch'\n")
    (project / "ported" / "layers.py").write_text("SIDE = 'flax'\n")
    (project / "model.py").write_text("import layers\nassert layers.SIDE == 'torch'\n" + TORCH)
    (project / "ported" / "model.py").write_text(
        "import layers\nassert layers.SIDE == 'flax'\n" + FLAX
    )
    (report,) = reports(project)
    assert report.verdict == "equal", report.notes or str(report)
    assert "layers" not in sys.modules


def test_a_hook_draws_what_a_table_cannot_say(project: Path) -> None:
    config = (project / "pyproject.toml").read_text()
    config = config.replace('inputs = [{ shape = ["B", 5] }]', 'inputs = "hook.py:inputs"')
    (project / "pyproject.toml").write_text(config)
    (project / "hook.py").write_text(
        "import numpy as np\n"
        "def inputs(rng, sizes, profile):\n"
        "    return (rng.standard_normal((sizes['B'], 5)).astype(np.float32),)\n"
    )
    (report,) = reports(project)
    assert report.verdict == "equal", report.notes or str(report)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("model.py", None, None), ["model.py", "no such file"]),
        (("model.py", "class Scale", "class Scales"), ["no 'Scale'", "Scales"]),
        (("model.py", "import torch\n", "import torhc\n"), ["line 2", "torhc"]),
        (("model.py", "super().__init__()", "1 / 0"), ["cannot be built", "ZeroDivisionError"]),
        (("ported/model.py", None, None), ["ported/model.py", "migrate convert"]),
    ],
    ids=["no file", "no class", "import error", "constructor error", "not converted"],
)
def test_what_cannot_run_says_why_in_one_line(
    project: Path, change: tuple[str, str | None, str | None], words: list[str]
) -> None:
    file, old, new = change
    if old is None or new is None:
        (project / file).unlink()
    else:
        (project / file).write_text((project / file).read_text().replace(old, new))
    (report,) = reports(project)
    assert report.verdict == "error"
    (note,) = report.notes
    assert "\n" not in note
    for word in words:
        assert word in note


def test_a_port_that_cannot_be_built_is_the_ports_fault(project: Path) -> None:
    port = project / "ported" / "model.py"
    port.write_text(port.read_text().replace("jnp.ones(4)", "jnp.onse(4)"))
    (report,) = reports(project)
    assert report.verdict == "raises"
    assert "onse" in report.failure.reason


def test_weights_without_a_place_are_named(project: Path) -> None:
    port = project / "ported" / "model.py"
    port.write_text(port.read_text().replace("shift", "offset"))
    (report,) = reports(project)
    assert report.verdict == "raises"
    assert "shift" in report.failure.reason


def test_a_name_no_case_has(project: Path) -> None:
    with pytest.raises(UserError, match=r"no case 'scael'.*scale"):
        reports(project, names=["scael"])


def test_a_case_that_must_be_flagged(project: Path) -> None:
    config = (project / "pyproject.toml").read_text() + 'expect = "flagged"\n'
    (project / "pyproject.toml").write_text(config)
    (report,) = reports(project)
    assert report.verdict == "not flagged"
    (project / "model.py").write_text(TORCH.replace("return x", "return x[x > 0]"))
    (report,) = reports(project)
    assert report.verdict == "flagged", report.notes


def test_load_case_gives_both_modules_and_the_inputs(project: Path) -> None:
    torch_module, flax_module, inputs = load_case("scale", project / "pyproject.toml")
    assert isinstance(torch_module, torch.nn.Module)
    assert isinstance(flax_module, nnx.Module)
    report = verify(torch_module, flax_module, inputs, example=Example((("B", 2),)))
    assert report.ok
    assert report.examples == 1


def test_plain_arrays_with_the_public_function(project: Path) -> None:
    torch_module, flax_module, _ = load_case("scale", project / "pyproject.toml")
    report = verify(torch_module, flax_module, inputs=[np.ones((2, 5), np.float32)], train=True)
    assert report.ok, str(report)


def test_an_edit_that_bytecode_does_not_show_is_seen(project: Path) -> None:
    """Same size, same second: Python would run what it compiled before."""
    port = project / "ported" / "model.py"
    os.utime(port, (1e9, 1e9))
    assert reports(project)[0].verdict == "equal"
    port.write_text(port.read_text().replace("+ self.shift", "- self.shift"))
    os.utime(port, (1e9, 1e9))
    assert reports(project)[0].verdict == "different"


def broken(project: Path) -> list[Any]:
    port = project / "ported" / "model.py"
    port.write_text(port.read_text().replace("+ self.shift", "- self.shift"))
    return reports(project)


def test_the_text_report_has_one_line_a_case_and_says_what_differs(project: Path) -> None:
    (report,) = reports(project)
    (line,) = verification.lines(report, ["scale"])
    assert "equal" in line
    assert report.worst is not None
    assert report.worst.ratio == max(check.ratio for check in report.checks)
    assert f"error {report.worst.error:.1e} ({report.worst.name})" in line
    text = "\n".join(verification.lines(broken(project)[0], ["scale"]))
    for words in ("different", "first difference in: the module itself", "expected", "load_case("):
        assert words in text


def test_an_error_of_the_port_is_told_with_its_line(project: Path) -> None:
    port = project / "ported" / "model.py"
    text = port.read_text()
    assert text.count("return") == 1
    port.write_text(text.replace("return ", "return 1 + missing + "))
    (report,) = reports(project)
    assert report.verdict == "raises"
    line = next(i for i, t in enumerate(port.read_text().splitlines(), 1) if "missing" in t)
    assert f"model.py:{line} `return 1 + missing" in str(report.failure)


def test_a_package_below_src_is_verified_against_a_port_of_the_same_name(project: Path) -> None:
    for directory, text in (("src", TORCH), ("port", FLAX)):
        package = project / directory / "pkg"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (package / "parts.py").write_text(text)
        (package / "model.py").write_text("from .parts import *\n")
    target = 'torch = "src/pkg/model.py:Scale"\njax = "port/pkg/model.py:Scale"'
    config = PROJECT.replace('torch = "model.py:Scale"', target)
    (project / "pyproject.toml").write_text(config)
    (report,) = reports(project)
    assert report.verdict == "equal", str(report)


def test_equal_says_what_it_does_not_speak_of(project: Path) -> None:
    (report,) = reports(project)
    report.notes += ["input gradients: not compared (why)", "train mode: as usual"]
    _, *more = verification.lines(report, ["scale"])
    assert more == ["  input gradients: not compared (why)"]


def test_a_model_that_needs_more_memory_than_it_may_have_is_an_error(project: Path) -> None:
    case = ["verify", "--config", str(project / "pyproject.toml"), "-q", "--memory"]
    done = CliRunner().invoke(main, [*case, "200MiB"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "scale: ended: it needs more than the 0.2 GiB it may have" in done.stderr
    assert CliRunner().invoke(main, [*case, "8GiB"]).exit_code == 0


def test_the_platform_is_the_one_asked_for_or_an_error(project: Path) -> None:
    case = ["verify", "--config", str(project / "pyproject.toml"), "--platform"]
    done = CliRunner().invoke(main, [*case, "cpu"])
    assert done.exit_code == 0, done.output
    assert "ran on cpu" in done.stdout
    done = CliRunner().invoke(main, [*case, "tpu"])
    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("migrate: --platform tpu: JAX has no such device here")


def test_the_json_report(project: Path) -> None:
    cases = [report.to_dict() for report in broken(project)]
    document = json.loads(json_report.document("verify", (), cases=cases))
    (case,) = document["cases"]
    assert case["verdict"] == "different"
    assert case["checks"][0]["name"] == "state_dict round trip"
    assert case["failure"]["example"]["profile"] == "normal"


def test_a_junit_file_has_a_test_for_each_check(project: Path) -> None:
    suites = ElementTree.fromstring(verify_junit.render(reports(project)))
    (suite,) = suites
    assert suite.get("name") == "scale"
    assert suite.get("tests") == str(len(suite)) == "9"
    assert not suite.findall("testcase/failure")
    (failed,) = ElementTree.fromstring(verify_junit.render(broken(project))).iter("failure")
    assert failed.get("type") == "different"
    assert "load_case" in (failed.text or "")


def test_github_annotations_point_at_the_port(project: Path) -> None:
    config = load_config(project / "pyproject.toml")
    assert verify_github.render(reports(project), config) == ""
    line = verify_github.render(broken(project), config)
    assert line.startswith("::error file=ported/model.py,title=scale%3A different::")
    assert line.count("\n") == 1


def test_the_command_line_writes_every_report(project: Path) -> None:
    broken(project)
    junit = project / "report.xml"
    options = ["--config", str(project / "pyproject.toml"), "--junit", str(junit), "--github"]
    options += ["--html", str(project / "report.html")]
    result = CliRunner().invoke(main, ["verify", *options])
    assert result.exit_code == 1, result.output
    assert "::error file=ported/model.py" in result.output
    assert ElementTree.parse(junit).getroot().get("failures") == "1"
    assert "<svg" in (project / "report.html").read_text()
    options[3] = str(project / "absent" / "report.xml")
    assert CliRunner().invoke(main, ["verify", *options]).exit_code == 2


def test_an_example_that_failed_is_tried_first_until_it_passes(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(project / "cache"))
    (case,) = load_config(project / "pyproject.toml").cases
    assert failures.load(case) == ()
    port = project / "ported" / "model.py"
    right = port.read_text()
    (report,) = broken(project)
    assert report.failure is not None
    assert failures.load(case) == (report.failure.example,)
    (again,) = reports(project, examples=1)
    assert again.failure is not None
    assert again.failure.example == report.failure.example
    port.write_text(right)
    assert reports(project)[0].ok
    assert failures.load(case) == ()
    for seed in range(9):
        report.failure.example = Example((("B", 2),), seed=seed)
        failures.save(case, report)
    kept = failures.load(case)
    assert (len(kept), kept[-1].seed) == (5, 8)
    for file in (project / "cache" / "migrate" / "failures").rglob("*"):
        _ = file.is_file() and file.write_text("no json")
    assert failures.load(case) == ()


def planted(project: Path, torch_line: str, port_line: str, case: str = "") -> Any:
    """The report with one more line in each constructor."""
    for file, line in (("model.py", torch_line), ("ported/model.py", port_line)):
        text = (project / file).read_text()
        head, mark, rest = text.partition("        self.weight =")
        (project / file).write_text(f"{head}        {line}\n{mark}{rest}")
    with (project / "pyproject.toml").open("a") as file:
        file.write(case)
    (report,) = reports(project)
    return report


@pytest.mark.parametrize(
    ("torch_line", "port_line", "ok"),
    [
        (
            "{B}table{M}torch.sin(torch.arange(40.0)){T}",
            "self.table = nnx.Variable(jnp.sin(jnp.arange(40.0)))",
            True,
        ),
        (
            "{B}table{M}torch.sin(torch.arange(40.0)){T}",
            "self.table = nnx.Variable(jnp.cos(jnp.arange(40.0)))",
            False,
        ),
        (
            "{B}far{M}torch.cos(torch.arange(9.0) * 999.9){F}",
            "self.far = nnx.Variable(jnp.sin(jnp.arange(9.0) * 999.9 + jnp.pi / 2), persistent=False)",
            True,
        ),
        (
            "{B}mask{M}torch.ones(5, 5).tril(){F}",
            "self.mask = nnx.Variable(jnp.ones((5, 5)).T, persistent=False)",
            False,
        ),
        (
            "self.scales = [torch.ones(3), torch.zeros(3)]",
            "self.scales = nnx.List([jnp.ones(3), jnp.ones(3)])",
            False,
        ),
        ("self.gain = nn.Parameter(torch.ones(4))", "self.gain = nnx.Param(jnp.zeros(4))", False),
        (
            "self.bank = nn.Parameter(torch.rand(40, 40))",
            "self.bank = nnx.Param(rngs.uniform((40, 40)))",
            True,
        ),
        (
            "self.bank = nn.Parameter(torch.rand(40, 40))",
            "self.bank = nnx.Param(rngs.normal((40, 40)))",
            False,
        ),
        (
            "self.same = nn.Parameter(torch.rand(1).repeat(400))",
            "self.same = nnx.Param(rngs.uniform((1,)).repeat(400))",
            True,
        ),
    ],
)
def test_what_the_port_makes_itself_is_compared_before_it_is_given_torchs(
    project: Path, torch_line: str, port_line: str, ok: bool
) -> None:
    words = {"B": 'self.register_buffer("', "M": '", ', "T": ")", "F": ", persistent=False)"}
    report = planted(project, torch_line.format(**words), port_line)
    assert report.ok is ok, str(report)
    if not ok:
        assert report.failure.check == "initial values"
        assert report.first_divergence in ("", "scales")


def test_another_deviation_of_drawn_weights_is_seen() -> None:
    """A kernel drawn for its inputs where torch's is for its outputs: by a factor of 1.4 on 1,152 numbers."""

    def build(seed: int) -> torch.nn.Module:
        torch.manual_seed(seed)
        conv = torch.nn.Conv2d(8, 16, 3, bias=False)
        torch.nn.init.kaiming_normal_(conv.weight, mode="fan_out")
        return conv

    random = drawn(build(0), build)
    port = {"weight": build(20).weight.detach().numpy()}
    (found,) = compare_initial(build(0), random, build, port)
    assert found.ok
    port = {"weight": port["weight"] * 2**0.5}
    (found,) = compare_initial(build(0), random, build, port)
    assert "deviation" in found.problem


def test_a_number_drawn_from_few_is_not_taken_for_a_constant() -> None:
    class Sign(torch.nn.Module):
        def __init__(self, sign: float) -> None:
            super().__init__()
            self.register_buffer("sign", torch.tensor([sign]))

    def build(seed: int) -> torch.nn.Module:
        return Sign(1.0 if seed in (0, 1, 4) else -1.0)

    port = {"sign": np.array([-1.0])}
    assert not drawn(build(0), build)
    (found,) = compare_initial(build(0), {}, build, port)
    assert found.ok
    (found,) = compare_initial(build(0), {}, lambda seed: Sign(1.0), port)
    assert not found.ok


def test_a_module_that_can_be_built_only_once_is_compared_without(project: Path) -> None:
    port_line = "self.gain = nnx.Param(jnp.ones(4))"
    torch_line = "assert not globals().setdefault('built', []), 'again'; built.append(1); self.gain = nn.Parameter(torch.ones(4))"
    report = planted(project, torch_line, port_line)
    assert report.ok, str(report)
    assert any(note.startswith("initial values: not compared") for note in report.notes)
    assert "initial values" not in {check.name for check in report.checks}


def test_initial_values_are_left_out_where_the_case_says_so(project: Path) -> None:
    lines = "self.gain = nn.Parameter(torch.ones(4))", "self.gain = nnx.Param(jnp.zeros(4))"
    assert planted(project, *lines, case="initial = false\n").ok


def test_numbers_drawn_at_construction_and_not_stored_are_carried(project: Path) -> None:
    used = {"model.py": "self.shift", "ported/model.py": "self.shift[...]"}
    for file, old in used.items():
        (project / file).write_text(
            (project / file).read_text().replace(f"+ {old}", f"+ {old} + self.noise")
        )
    report = planted(project, "self.noise = torch.randn(4)", "self.noise = rngs.normal((4,))")
    assert report.verdict == "equal", str(report)
    assert any(note.startswith("noise: drawn when the module is built") for note in report.notes)


@pytest.mark.parametrize(("off", "verdict"), [(2e-7, "equal"), (1e-3, "different")])
def test_rounding_of_what_a_module_computes_when_built_is_no_error_of_its_call(
    project: Path, off: float, verdict: str
) -> None:
    used = {"model.py": "self.shift", "ported/model.py": "self.shift[...]"}
    for file, old in used.items():  # 1 - w is a few ulps, all of which are lost
        text = (project / file).read_text()
        (project / file).write_text(text.replace(f"+ {old}", f"+ {old} + 1e6 * (1 - self.w)"))
    torch_line = "self.w = torch.ones(4) - 2e-7"
    report = planted(project, torch_line, f"self.w = jnp.ones(4) - 2e-7 - {off}")
    assert report.verdict == verdict, str(report)
    assert any(note.startswith("w: equal but for") for note in report.notes) is (verdict == "equal")


def test_an_attribute_that_the_port_has_not_got_is_mentioned(project: Path) -> None:
    model = project / "model.py"
    text = model.read_text().replace(
        "        return x", "        self.seen = x.detach()\n        return x"
    )
    model.write_text(text)
    (report,) = reports(project)
    assert report.ok, str(report)
    assert any("changes seen in torch, the port has no such" in note for note in report.notes)


@pytest.mark.parametrize("kept", ["x.sum(0)", "2 * x.sum(0)"])
def test_a_cache_in_no_state_dict_is_compared_after_the_call(project: Path, kept: str) -> None:
    lines = {
        "model.py": "self.last.copy_(x.detach().sum(0))",
        "ported/model.py": f"self.last[...] = {kept}",
    }
    for file, line in lines.items():
        text = (project / file).read_text()
        (project / file).write_text(
            text.replace("        return x", f"        {line}\n        return x")
        )
    report = planted(
        project,
        'self.register_buffer("last", torch.zeros(5), persistent=False)',
        "self.last = nnx.Variable(jnp.zeros(5), persistent=False)",
    )
    if kept == "x.sum(0)":
        assert report.verdict == "equal", str(report)
    else:
        assert report.failure.check == "eval state"


def test_a_case_that_ends_its_process_is_told_and_the_others_are_verified(project: Path) -> None:
    dying = "class Dies(Scale):\n    def forward(self, x):\n        if x.requires_grad:\n            {}\n"
    kill = "import os; os.kill(os.getpid(), 11)"
    with (project / "model.py").open("a") as file:
        file.write(
            dying.format(kill) + dying.format("raise SystemExit(0)").replace("Dies", "Leaves")
        )
    with (project / "ported" / "model.py").open("a") as file:
        file.write("\nDies = Leaves = Scale\n")
    table = PROJECT.split("[[tool.migrate.case]]")[1]
    with (project / "pyproject.toml").open("a") as file:
        for name in ("Dies", "Leaves", "Again"):
            one = table.replace('"scale"', f'"{name}"')
            file.write(
                "[[tool.migrate.case]]" + one.replace("Scale", name.replace("Again", "Scale"))
            )
    command = [
        sys.executable,
        "-m",
        "migrator",
        "verify",
        "--junit",
        "junit.xml",
        "--format",
        "json",
    ]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    verdicts = {case["name"]: case["verdict"] for case in json.loads(done.stdout)["cases"]}
    assert verdicts == {"scale": "equal", "Dies": "error", "Leaves": "error", "Again": "equal"}
    dies, leaves = (line for line in done.stderr.splitlines() if line.startswith("migrate: "))
    assert "Dies: its process was ended by SIGSEGV at eval outputs and gradients (B=" in dies
    assert "--debug shows" in dies
    assert "Leaves: its process left with exit status 0 at eval outputs and gradients" in leaves
    tree = ElementTree.parse(project / "junit.xml").getroot()
    assert tree.get("errors") == "2"
    assert "SIGSEGV" in str(tree.find("testsuite[@name='Dies']/testcase/error").attrib)  # type: ignore[union-attr]
