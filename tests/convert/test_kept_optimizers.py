"""Optimisers that a module keeps for its training, and seeds whose name some text has."""

from __future__ import annotations

import pytest
from flax import nnx

from tests.convert.tools import check, convert, loaded, rules_of

CLASS = """
import torch.optim as optim
from itertools import chain


class M(nn.Module):
    def __init__(self, lr=0.1, train=True):
        super().__init__()
        self.l = nn.Linear(4, 4)
        {kept}

    def forward(self, x):
        return self.l(x)
"""


def _source(kept: str, more: str = "") -> str:
    return CLASS.format(kept=kept.replace("; ", "\n        ")) + more


@pytest.mark.parametrize(
    "kept",
    [
        "self.optimizer = optim.Adam(self.parameters(), lr=lr)",
        "self.optimizer = torch.optim.RMSprop(self.l.parameters(), lr=float(lr))",
        "self.opt = optim.SGD(filter(lambda p: p.requires_grad, self.parameters()), lr)",
        "self.opt = optim.AdamW([{'params': self.l.parameters(), 'lr': lr}])",
        "self.opt = optim.Adam(self.parameters()); self.s = optim.lr_scheduler.StepLR(self.opt, 3)",
        "self.opt = optim.Adam(list(chain(self.parameters())), lr=lr)",
        "if train:; \tself.opt = optim.Adam(self.parameters(), lr)".replace("\t", "    "),
    ],
)
def test_what_nothing_asks_is_left_out(kept: str) -> None:
    code = check(_source(kept))
    assert "optim" not in code
    left = [f for f in convert(_source(kept)).findings if "left out" in f.message]
    assert len(left) == kept.count("optim.") - kept.count("torch.optim.lr")
    assert all(f.rule == "API012" and not f.blocks for f in left)


@pytest.mark.parametrize(
    ("kept", "more", "rules"),
    [
        ("", "    def get(self):\n        return self.opt\n", ["API001"]),
        ("", "    def rate(self):\n        return self.opt.defaults\n", ["API001"]),
        ("", "    def rate(self):\n        return self.opt.param_groups[0]['lr']\n", ["API012"]),
        ("", "    def learn(self):\n        self.opt.step()\n", ["API012"]),
        ("", "    def ask(self, name):\n        return getattr(self, 'opt')\n", ["API001"]),
        ("", "\n\ndef given(net):\n    return net.opt\n", ["API001"]),
        ("; self.again = self.opt", "", ["API001"]),
        ("; self.opt = None", "", ["API001"]),
    ],
)
def test_what_reads_one_is_a_finding(kept: str, more: str, rules: list[str]) -> None:
    source = _source("self.opt = optim.Adam(self.parameters(), lr=lr)" + kept, "\n" + more)
    assert rules_of(source) == rules


@pytest.mark.parametrize(
    "source",
    [
        _source("self.opt = optim.Adam(self.parameters(), lr=rate(self))")
        + "\n\ndef rate(net):\n    net.l = nn.Linear(4, 3)\n    return 0.1\n",
        "class Trainer:\n    def __init__(self, net):\n"
        "        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)\n",
    ],
)
def test_others_stay_findings(source: str) -> None:
    assert "API001" in rules_of(source)


@pytest.mark.parametrize(
    "more", ["", "CONFIG = {'seed': 4}\n", "\ndef name():\n    return 'seed'\n"]
)
def test_a_seed_that_is_kept(more: str) -> None:
    assert "seed(" not in check(_source("self.seed = torch.manual_seed(3)", more))


@pytest.mark.parametrize(
    "more",
    [
        "\n\ndef ask(net):\n    return getattr(net, 'seed')\n",
        "\n\ndef ask(net):\n    return vars(net)['seed']\n",
        "\n\ndef ask(net):\n    return net.seed\n",
    ],
)
def test_a_seed_that_is_asked_for(more: str) -> None:
    assert "API001" in rules_of(_source("self.seed = torch.manual_seed(3)", more))


@pytest.mark.parametrize(
    ("asked", "refused"),
    [
        ("hasattr(self, 'op' + 't')", True),
        ("getattr(self, f'o{word}', None)", True),
        ("getattr(self, word)", True),
        ("getattr(self, f'layer{word}')", False),
        ("getattr(self, word + '_layer')", False),
    ],
)
def test_a_name_that_is_put_together(asked: str, refused: bool) -> None:
    source = _source(
        "self.opt = optim.Adam(self.parameters(), lr=lr)",
        f"\n    def ask(self, word):\n        return {asked}\n",
    )
    assert ("API001" in rules_of(source)) is refused


MADE = """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, x):
        return self.l(x)

    def {name}(self, lr=0.1):
        \"\"\"What trains it.\"\"\"
        decay = {{n: p for n, p in self.named_parameters() if p.dim() > 1}}
        opt = torch.optim.AdamW([{{"params": decay.values()}}], lr=lr)
        return {given}
"""


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("make", "opt"),
        ("configure_optimizers", "opt"),
        ("configure_optimizers", "[opt], []"),
        ("configure_optimizers", "{'optimizer': opt}"),
    ],
)
def test_a_method_that_only_gives_one_raises(name: str, given: str) -> None:
    source = MADE.format(name=name, given=given)
    check(source)
    module = loaded(source)[1]["M"](rngs=nnx.Rngs(0))
    with pytest.raises(NotImplementedError, match="use optax"):
        getattr(module, name)()


@pytest.mark.parametrize(
    ("name", "given", "more"),
    [
        ("make", "opt, 1", ""),
        ("make", "self", ""),
        ("make", "opt", "\n\ndef train(net: M):\n    return net.make()\n"),
        ("make", "opt", "\n\ndef train(net):\n    return getattr(net, 'make')()\n"),
        (
            "configure_optimizers",
            "opt",
            "\n    def reset(self):\n        return self.configure_optimizers()\n",
        ),
    ],
)
def test_a_method_that_does_more_or_is_called_is_a_finding(
    name: str, given: str, more: str
) -> None:
    assert "API001" in rules_of(MADE.format(name=name, given=given) + more)


@pytest.mark.parametrize(
    ("base", "refused"), [("", False), ("(nn.Module)", True), (", Config", True)]
)
def test_a_setting_by_a_name_that_is_put_together(base: str, refused: bool) -> None:
    """``setattr(self, key, value)`` of a class that is no module's."""
    source = MADE.format(name="make", given="opt")
    if base.startswith(","):
        source, base = source.replace("(nn.Module)", "(nn.Module, Config)"), ""
    config = (
        f"class Config{base}:\n    def set(self, **values):\n"
        "        for key, value in values.items():\n            setattr(self, key, value)\n\n\n"
    )
    assert ("API001" in rules_of(config + source)) is refused
