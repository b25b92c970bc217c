"""``[tool.migrate]``: what a case may say, and the one line a mistake in it gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.config import Config, Reference, load_config
from migrator.errors import UserError
from numerics.spec import Array, Constant, Group, size_choices


def read(tmp_path: Path, text: str) -> Config:
    (tmp_path / "pyproject.toml").write_text(text)
    return load_config(tmp_path / "pyproject.toml")


FULL = """
[tool.migrate]
output = "ported"
sources = ["models"]

[[tool.migrate.case]]
name = "gpt"
torch = "models/gpt.py:GPT"
init = { args = [{ call = "GPTConfig", kwargs = { n_layer = 2 } }], kwargs = { block = { get = "Block" } } }
dims = { B = [1, 3], T = { min = 4, max = 12, multiple = 4 }, H = { choices = [8, 16] }, V = 96 }
inputs = [
  { shape = ["B", "T"], dtype = "int64", range = "0:V" },
  { name = "mask", shape = ["B", 1, "T"], dtype = "bool", density = 0.8 },
  { name = "scale", value = 0.5 },
  { tuple = [{ shape = ["B", "2*H"] }, { shape = ["B"], range = [0, 1] }] },
]
train = false
examples = 5
"""


def test_a_full_case(tmp_path: Path) -> None:
    config = read(tmp_path, FULL)
    (case,) = config.cases
    assert case.init_args == (Reference("GPTConfig", kwargs={"n_layer": 2}, call=True),)
    assert case.init_kwargs == {"block": Reference("Block")}
    assert case.inputs.dims == {"B": (1, 2, 3), "T": (4, 8, 12), "H": (8, 16), "V": (96,)}
    ids, mask, scale, pair = case.inputs.items
    assert ids == Array(("B", "T"), "int64", 0, "V")
    assert isinstance(mask, Array)
    assert (mask.name, mask.density) == ("mask", 0.8)
    assert scale == Constant(0.5, "scale")
    assert isinstance(pair, Group)
    assert pair.kind == "tuple"
    assert (case.train, case.grad, case.examples, case.expect) == (False, True, 5, "equal")


def test_sizes_stay_few_and_tell_axes_apart(tmp_path: Path) -> None:
    spec = read(tmp_path, FULL).cases[0].inputs
    choices = size_choices(spec, 3)
    assert len(choices) == 3
    assert choices[0] == {"B": 1, "T": 4, "H": 8, "V": 96}
    assert all(len(set(sizes.values())) == 4 for sizes in choices)


@pytest.mark.parametrize(
    ("existing", "found"),
    [
        (["ported/gpt.py"], "ported/gpt.py"),
        (["ported/models/gpt.py"], "ported/models/gpt.py"),
        ([], "ported/gpt.py"),
    ],
)
def test_where_the_converted_file_lies(tmp_path: Path, existing: list[str], found: str) -> None:
    config = read(tmp_path, FULL)
    for name in existing:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert config.converted("models/gpt.py") == found


def test_no_table_means_no_cases(tmp_path: Path) -> None:
    assert read(tmp_path, "[project]\nname = 'x'\n").cases == ()


def problem(tmp_path: Path, text: str) -> str:
    """What is said of a file, or of its only case."""
    try:
        (case,) = read(tmp_path, text).cases
    except UserError as error:
        return str(error)
    return case.problem or ""


CASE = '[[tool.migrate.case]]\nname = "m"\ntorch = "m.py:M"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[tool.migrate\n", ["not valid TOML"]),
        ('[tool.migrate]\nouptut = "x"\n', ["ouptut", "output"]),
        ('[[tool.migrate.case]]\nname = "m"\n', ["case m", "torch ="]),
        ('[[tool.migrate.case]]\ntorch = "m.py"\n', ["file.py:Class"]),
        (CASE + "size = 3\n", ["unknown key 'size'"]),
        (CASE + 'train = "yes"\n', ["train", "true or false"]),
        (CASE + "examples = true\n", ["examples", "an integer"]),
        (CASE + 'expect = "same"\n', ["equal, flagged"]),
        (CASE + 'inputs = [{ shape = ["B"] }]\n', ["'B'", "dims"]),
        (CASE + "inputs = [{ shape = 3 }]\n", ["shape = 3"]),
        (CASE + 'inputs = [{ shape = [3], dtype = "float" }]\n', ["'float'", "float32"]),
        (CASE + 'inputs = [{ shape = [3], dtype = "int64" }]\n', ["range"]),
        (CASE + "inputs = [{ shape = [3], range = 3 }]\n", ["low, high"]),
        (CASE + "dims = { B = [4, 1] }\n", ["dims.B", "no size"]),
        (CASE + "dims = { B = [1, 2, 3] }\n", ["dims.B", "choices"]),
        (CASE + CASE, ["two cases", "'m'"]),
    ],
)
def test_a_mistake_gives_one_line_that_says_what_to_write(
    tmp_path: Path, text: str, words: list[str]
) -> None:
    message = problem(tmp_path, text)
    assert "\n" not in message
    assert "pyproject.toml" in message
    for word in words:
        assert word in message


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        load_config(tmp_path / "absent.toml")


MINIMAL = '[[tool.migrate.case]]\ntorch = "a.py:A"\n'


def test_conditions_on_sizes_and_kinds_of_inputs(tmp_path: Path) -> None:
    (case,) = read(
        tmp_path,
        MINIMAL
        + """
dims = { T = [1, 8], L = [1, 8] }
where = ["T <= L"]
profiles = ["normal", "nan"]
inputs = [
  { shape = ["T"], dtype = "bool", ragged = true },
  { shape = ["L"], optional = true, name = "x" },
  { choices = [1, 2], optional = true },
  { shape = ["T", 3], distribution = "probabilities" },
]
""",
    ).cases
    assert case.inputs.where == ("T <= L",)
    first, second, third, fourth = case.inputs.items
    assert first.ragged
    assert second.optional
    assert (third.values, third.optional) == ((1, 2), True)
    assert fourth.distribution == "probabilities"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('where = ["T >"]', "cannot read the size 'T >'"),
        ('where = ["T > 9"]', "no sizes fulfil T > 9"),
        ('profiles = ["huge"]', "profile 'huge'; write some of normal"),
        ('precision = "f8"', "precision = 'f8'; write one of f32"),
        ('inputs = [{ shape = [3], distribution = "cauchy" }]', "write one of uniform, normal"),
        ('inputs = [{ shape = [3], distribution = "uniform" }]', "needs its range"),
    ],
)
def test_what_cannot_be_meant(tmp_path: Path, line: str, words: str) -> None:
    assert words in problem(tmp_path, f"{MINIMAL}dims = {{ T = [1, 8] }}\n{line}\n")


def test_a_mistake_in_one_case_leaves_the_others(tmp_path: Path) -> None:
    right, wrong = read(tmp_path, MINIMAL + 'name = "b"\n' + CASE + "size = 3\n").cases
    assert right.problem is None
    assert (wrong.name, wrong.torch) == ("m", "m.py:M")
    assert "unknown key 'size'" in str(wrong.problem)
