"""What the rule files are asked without parsing them is what parsing them gives."""

import pytest

from rules.definitions import ROOT, defined, index, layers, ops, read

FILES = [p for folder in ("compat", "ops", "layers") for p in sorted((ROOT / folder).glob("*.py"))]


def test_the_names_of_a_file_are_found_in_its_text() -> None:
    assert {p.name: defined(p) for p in FILES} == {
        p.name: tuple(read(p).definitions) for p in FILES
    }


@pytest.mark.parametrize(("group", "look_up"), [("op", ops), ("layer", layers)])
def test_a_name_is_looked_up_as_in_the_whole_table(group, look_up) -> None:
    table = index(group)
    assert len(table) > 50
    assert {name: look_up(name) for name in table} == table
    assert look_up("no.such.name") == ()
