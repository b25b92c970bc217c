"""``docs/coverage.md`` says what the rules and the sweep's outcomes say today."""

from __future__ import annotations

from tests.rules import beyond, coverage


def test_the_page_is_up_to_date() -> None:
    """``python -m tests.rules.coverage`` writes it anew."""
    assert coverage.PAGE.read_text(encoding="utf-8") == coverage.page()


def test_the_tests_it_names_use_the_names() -> None:
    missing = {
        name: path
        for name, path in coverage.record()["own tests"].items()
        if not coverage.uses(path, name)
    }
    assert missing == {}


def test_the_table_of_uses_uses_its_names() -> None:
    tables = (beyond.VALUES, beyond.STATIC, beyond.RANDOM, beyond.LAYERS, beyond.INITIALISERS)
    for name, uses in (item for table in tables for item in table.items()):
        last = name.rpartition(".")[2]
        assert last.startswith("__") or any(last in repr(use) for use in uses), name


def test_nothing_was_wrong_when_it_was_measured() -> None:
    wrong = {
        (oracle, name, dtype): outcome
        for oracle, names in coverage.record().items()
        if oracle not in ("versions", "forms", "own tests")
        for name, outcomes in names.items()
        for dtype, outcome in outcomes.items()
        if outcome.startswith("wrong")
    }
    assert wrong == {}


def test_a_name_without_a_rule_says_so() -> None:
    assert coverage.status_of(["torch.geqrf_of_nobody"]).startswith("flagged: no definition")
    assert coverage.status_of(["torch.sparse_coo_tensor"]) == "not applicable: sparse layouts"
    assert coverage.status_of(["torch.add", "Tensor.add"]).startswith("verified")
