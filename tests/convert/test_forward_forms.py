"""What a module runs, however its class comes to it: torch calls ``forward``, the output ``__call__``."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

BASE = """class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x)


def go(self, x):
    return self.fc(x) * 2


FAST = True


"""
LOST = {
    "a function": "class M(A):\n    forward = go\n",
    "a lambda": "class M(A):\n    forward = lambda self, x: self.fc(x) + 1\n",
    "another method": "class M(A):\n    def run(self, x):\n        return self.fc(x) * 3\n\n    forward = run\n",
    "a partial method": "class M(A):\n    def run(self, x, k):\n        return self.fc(x) * k\n\n"
    "    forward = functools.partialmethod(run, k=3)\n",
    "a condition": "class M(A):\n    if FAST:\n        def forward(self, x):\n            return self.fc(x) * 3\n",
    "its call": "class M(A):\n    def __call__(self, x):\n        return self.forward(x) * 7\n\n"
    "    def forward(self, x):\n        return self.fc(x)\n",
    "the call of its base": "class B(nn.Module):\n    def __call__(self, x):\n        return self.forward(x) * 7\n\n\n"
    "class M(B):\n    def forward(self, x):\n        return x * 2\n",
    "an alias of its base's": "class M(A):\n    run = A.forward\n\n    def forward(self, x):\n        return self.run(x) * 2\n",
    "type()": 'M = type("M", (A,), {"forward": go})\n',
    "type() and dict()": 'M = type("M", (A,), dict(forward=go))\n',
    "type() and some dict": 'WAYS = {"forward": go}\nM = type("M", (A,), WAYS)\n',
    "an assignment": "class M(A):\n    pass\n\n\nM.forward = go\n",
    "setattr": 'class M(A):\n    pass\n\n\nsetattr(M, "forward", go)\n',
    "the class behind": "class M(A):\n    def forward(self, x):\n        return type(self).__mro__[1].forward(self, x) * 2\n",
    "the class of a layer": "class M(A):\n    def forward(self, x):\n        return type(self.fc).forward(self.fc, x)\n",
}
KEPT = {
    "a value": "class M(A):\n    def forward(self, x):\n        run = super().forward\n        return run(x) * 2\n",
    "an argument": "def twice(f, x):\n    return f(f(x))\n\n\nclass M(A):\n    def forward(self, x):\n"
    "        return twice(super().forward, x)\n",
    "in a list": "class M(A):\n    def two(self, x):\n        return x * 2\n\n    def forward(self, x):\n"
    "        return sum(f(self, x) for f in [A.forward, M.two])\n",
    "in a function": "class M(A):\n    def forward(self, x):\n        def run(t):\n"
    "            return super(M, self).forward(t) * 2\n        return run(x)\n",
    "in a comprehension": "class M(A):\n    def forward(self, x):\n"
    "        return sum([super(M, self).forward(t) for t in (x, x * 2)])\n",
    "of a layer": "class M(nn.Linear):\n    def __init__(self):\n        super().__init__(4, 4)\n\n"
    "    def forward(self, x):\n        run = super().forward\n        return run(x) * 2\n",
    "type() with a number": "class B(A):\n    k = 1\n\n    def forward(self, x):\n        return self.fc(x) * self.k\n\n\n"
    'M = type("M", (B,), {"k": 3})\n',
}


@pytest.mark.parametrize("code", LOST.values(), ids=LOST)
def test_what_would_not_be_called_is_a_finding(code: str) -> None:
    assert rules_of("import functools\n\n\n" + BASE + code)


@pytest.mark.parametrize("code", KEPT.values(), ids=KEPT)
def test_a_forward_that_is_handed_around_is_called(code: str) -> None:
    check(BASE + code)
