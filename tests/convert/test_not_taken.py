"""Branches for an argument that no call of a helper gives: CenterNet's ``_gather_feat(feat, ind, mask=None)``."""

from __future__ import annotations

import textwrap

import pytest

from tests.convert.tools import check, convert, rules_of

SOURCE = """
def gather(feat, ind, mask=None):
    feat = feat[ind]
    if TEST:
        mask = mask.expand_as(feat)
        feat = feat[mask]
    return feat


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, x):
        ind = torch.arange(2)
        return CALL + gather(self.l(x), ind)
"""


def source(test: str = "mask is not None", call: str = "gather(x, ind)", more: str = "") -> str:
    return SOURCE.replace("TEST", test).replace("CALL", call) + more


@pytest.mark.parametrize(
    "call", ["gather(x, ind)", "gather(x, ind=ind, mask=None)", "gather(x, ind, None)"]
)
def test_a_branch_that_no_call_takes_is_told_and_converted(call: str) -> None:
    check(source(call=call))
    (finding,) = convert(source(call=call)).findings
    assert (finding.rule, finding.severity, finding.blocks) == ("DYN001", "info", False)
    assert "no call here takes this branch" in finding.message


@pytest.mark.parametrize(
    ("option", "never", "taken"),
    [
        ("by=0, mask=None", "by > 0", "by > -1"),
        ("by='sum', mask=None", "by == 'mean' and x.ndim", "by == 'sum' and x.ndim"),
        ("by='sum', mask=None", "by in ('mean', 'max')", "by in ('mean', 'sum')"),
        ("by=False, mask=None", "by", "by or x.ndim"),
        ("by=True, mask=None", "not by", "by"),
        ("by=-1, mask=None", "not (by == -1 or by is None)", "not by == -2"),
        ("by=x.ndim, *, mask=None", "mask is not None and by", "by"),
    ],
)
def test_an_option_of_any_constant_that_no_call_gives(option: str, never: str, taken: str) -> None:
    made = source(test="TEST").replace("mask=None", option.replace("x.ndim", "len('ab')"), 1)
    for test, blocks in ((never, False), (taken, True)):
        found = convert(made.replace("TEST", test.replace("x.ndim", "feat.ndim"))).findings
        assert [f.blocks for f in found if f.rule == "DYN001"] == [blocks]


def test_the_branch_of_an_option_that_is_left_on_is_taken() -> None:
    made = source().replace(
        "        mask = mask.expand_as(feat)\n        feat = feat[mask]\n",
        "        feat = feat * 2\n    else:\n        feat = feat[: int(ind.sum())]\n",
    )
    for text, blocks in ((made, True), (made.replace("is not None", "is None"), False)):
        assert [(f.rule, f.blocks) for f in convert(text).findings] == [("DYN004", blocks)]


@pytest.mark.parametrize(
    ("test", "call", "more"),
    [
        ("mask is not None", "gather(x, ind, x > 0)", ""),
        ("mask is not None", "gather(x, ind, mask=x > 0)", ""),
        ("mask is not None", "gather(*[x, ind, x > 0])", ""),
        ("mask is not None", "gather(x, ind, **{})", ""),
        ("mask is None or mask.any()", "gather(x, ind)", ""),
        ("mask is not None", "gather(x, ind)", "\n\nREDUCERS = {'gather': gather}\n"),
        ("mask is not None", "gather(x, ind)", "\n\ndef other(f=gather):\n    return f\n"),
    ],
)
def test_a_branch_that_some_call_may_take_is_in_the_way(test: str, call: str, more: str) -> None:
    assert "DYN001" in {f.rule for f in convert(source(test, call, more)).findings if f.blocks}


def test_a_helper_that_nobody_calls_may_be_called_by_others() -> None:
    made = (
        source()
        .replace("CALL", "x")
        .replace(" + gather(self.l(x), ind)", "")
        .replace("gather(x, ind)", "x")
    )
    assert "DYN001" in rules_of(made)


def test_an_argument_that_is_given_another_value() -> None:
    made = source().replace("    feat = feat[ind]\n", "    feat = feat[ind]\n    mask = feat > 0\n")
    assert "DYN001" in {f.rule for f in convert(made).findings if f.blocks}


def test_an_argument_that_a_decorator_gives_or_a_with_binds() -> None:
    given = "def deco(f):\n    def inner(x, ind):\n        return f(x, ind, x > 0)\n    return inner\n\n\n@deco\n"
    made = source().replace("def gather", f"{given}def gather", 1)
    assert "DYN001" in {f.rule for f in convert(made).findings if f.blocks}
    bound = "    feat = feat[ind]\n    with giving(feat) as mask:\n        pass\n"
    made = source().replace("    feat = feat[ind]\n", bound)
    assert "DYN001" in {f.rule for f in convert(made).findings if f.blocks}


def test_an_argument_behind_one_that_has_no_name() -> None:
    made = source(call="gather(x, None, x > 0)").replace("feat, ind, mask", "feat, /, ind, mask")
    assert "DYN001" in {f.rule for f in convert(made).findings if f.blocks}


def test_an_argument_of_the_forward_pass_is_for_its_caller_to_give() -> None:
    made = """
    class M(nn.Module):
        def forward(self, x, mask=None):
            if mask is not None:
                x = x[mask]
            return x


    def f(m: M, x: torch.Tensor):
        return m(x)
    """
    assert "DYN001" in {f.rule for f in convert(made).findings if f.blocks}


GIVEN = """
def pad_mask(lengths: torch.Tensor, max_len: int = 0, more=None):
    LINE
    return torch.arange(0, max_len)[None] >= lengths[:, None]


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, x):
        x = self.l(x)
        lengths = torch.arange(x.shape[0]) + 1
        return x.masked_fill(CALL, 0.0)
"""


@pytest.mark.parametrize(
    ("line", "call"),
    [
        (
            "max_len = max_len if max_len > 0 else lengths.max().item()",
            "pad_mask(lengths, x.size(1))",
        ),
        ("max_len = max_len if max_len > 0 else int(lengths.max())", "pad_mask(lengths, 4)"),
        (
            "max_len = int(lengths.max()) if max_len == 0 else max_len",
            "pad_mask(lengths, len(x[0]))",
        ),
        (
            "if not max_len:\n        max_len = lengths.max().item()",
            "pad_mask(lengths, max_len=x.shape[1])",
        ),
        ("if more is None:\n        max_len = lengths.max().item()", "pad_mask(lengths, 4, x)"),
    ],
)
def test_what_is_taken_for_an_argument_that_every_call_gives(line: str, call: str) -> None:
    check(GIVEN.replace("LINE", line).replace("CALL", call))


@pytest.mark.parametrize(
    ("line", "call"),
    [
        ("max_len = max_len if max_len > 0 else lengths.max().item()", "pad_mask(lengths)"),
        ("max_len = max_len if max_len > 0 else lengths.max().item()", "pad_mask(lengths, 0)"),
        (
            "max_len = max_len if max_len > 0 else lengths.max().item()",
            "pad_mask(lengths, max_len=-1)",
        ),
        ("max_len = max_len if max_len > 0 else lengths.max().item()", "pad_mask(lengths, *[4])"),
        (
            "max_len = max_len if max_len > 0 else lengths.max().item()",
            "pad_mask(lengths, int(x[0, 0]))",
        ),
        (
            "max_len = 0\n    max_len = max_len if max_len > 0 else lengths.max().item()",
            "pad_mask(lengths, 4)",
        ),
        (
            "if more:\n        max_len = 4\n    else:\n        max_len = lengths.max().item()",
            "pad_mask(lengths, 4, x)",
        ),
        (
            "for _ in range(2):\n        max_len = max_len - 4 if max_len > 0 else lengths.max().item()",
            "pad_mask(lengths, 4)",
        ),
    ],
)
def test_what_some_call_may_leave_out_is_in_the_way(line: str, call: str) -> None:
    found = set(rules_of(GIVEN.replace("LINE", line).replace("CALL", call)))
    assert found & {"DYN002", "DYN003", "DYN004", "API002"}


def test_the_way_of_an_array_of_numpy_is_none_of_a_tensor() -> None:
    source = textwrap.dedent("""
    import numpy as np


    def corners(x: torch.Tensor):
        y = x.clone() if isinstance(x, torch.Tensor) else np.copy(x)
        y[..., 0] = x[..., 0] - x[..., 2] / 2
        return y


    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(4, 4)

        def forward(self, x):
            return corners(self.l(x))
    """)
    check(source)
    assert rules_of(source.replace("torch.Tensor) else", "float) else"))
