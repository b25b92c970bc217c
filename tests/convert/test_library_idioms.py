"""Idioms that published model files share: option dicts, parameter lists, questions about torch itself."""

from __future__ import annotations

import torch
from flax import nnx

from migrator import load_state_dict
from rules.torch_names import VERSION
from tests.convert.tools import body, convert, module, rules_of


def test_a_dict_of_options_is_opened() -> None:
    made = module(
        'kw = {"device": None, "dtype": torch.float16}\n'
        "self.w = nn.Parameter(torch.zeros(dim, **kw))\nself.l = nn.Linear(2, 2, **kw)"
    )
    assert 'self.w = nnx.Param(jnp.zeros((dim,), dtype=kw["dtype"]))' in made
    assert 'param_dtype=kw["dtype"]' in made


def test_a_dict_that_changes_is_not_opened() -> None:
    made = body(
        "def f(n: int):\n    kw = dict(device=None)\n    kw.update(dtype=torch.int32)\n"
        "    return torch.zeros(n, **kw)\n",
        "def f",
    )
    assert "**kw" in made


def test_a_display_with_a_star_says_what_each_target_is() -> None:
    made = body(
        "def f(x: torch.Tensor):\n    _, h, w, device, dtype = *x.shape, x.device, x.dtype\n"
        "    return x.sum().type(dtype), torch.arange(h, device=device)\n",
        "def f",
    )
    assert "x.sum().astype(dtype), jnp.arange(h)" in made


def test_disabled_autocast_and_compile_go() -> None:
    source = '@torch.autocast("cuda", enabled=False)\ndef f(x: torch.Tensor):\n    return x\n'
    assert body(source, "def f") == "def f(x: jax.Array):\n    return x\n"
    assert rules_of(source.replace(", enabled=False", "")) == ["DTY005"]
    assert "return f" in body(
        "def g(f: nn.Module):\n    return torch.compile(f, fullgraph=True)\n", "def g"
    )


def test_questions_about_torch_are_answered() -> None:
    source = "def f():\n    return torch.__version__, torch.jit.is_scripting()\n"
    assert f'return "{VERSION}", False' in body(source, "def f")
    assert torch.__version__.partition("+")[0] == VERSION


def test_a_chain_on_a_new_tensor_is_written_in_place() -> None:
    made = body("def f(n: int):\n    return torch.zeros(n).float().uniform_(0, 1) < 0.5\n", "def f")
    assert "uniform(" in made
    source = "def f(x: torch.Tensor):\n    return x.float().uniform_(0, 1) < 0.5\n"
    assert rules_of(source) == ["MUT001"]


def test_an_uncalled_method_name_is_an_attribute_of_something_else() -> None:
    made = module("pass\n\ndef __init__(self, net):\n    self.l = nn.Linear(net.dim, 2)")
    assert "Linear(net.dim, 2" in made


PARAMETERS = """
class M(nn.Module):
    def __init__(self, n: int = 2):
        super().__init__()
        self.a = nn.ParameterList([nn.Parameter(torch.randn(3)) for _ in range(n)])
        self.b = nn.ParameterList([torch.ones(3)])
        self.b.append(torch.zeros(3))
        self.c = nn.ParameterDict({"u": nn.Parameter(torch.zeros(3)), "b": nn.Parameter(torch.ones(3))})
        for p in self.a:
            nn.init.normal_(p)
        nn.init.ones_(self.b[1])

    def forward(self, x):
        for s in self.a:
            x = x * s
        for name, value in self.c.items():
            x = x * 2 + value
        return x + self.b[0] - self.b[-1] * self.c["u"]
"""


def test_parameter_lists() -> None:
    scope: dict = {"torch": torch, "nn": torch.nn}
    exec(PARAMETERS, scope)
    theirs = scope["M"]()
    result = convert(PARAMETERS)
    assert result.complete, result.findings
    exec(result.code, scope)
    ours = scope["M"](rngs=nnx.Rngs(0))
    state = {key: torch.randn_like(value) for key, value in theirs.state_dict().items()}
    theirs.load_state_dict(state)
    load_state_dict(ours, state)
    assert len(nnx.to_flat_state(nnx.state(ours, nnx.Param))) == 6
    x = torch.randn(2, 3)
    torch.testing.assert_close(torch.tensor(ours(x.numpy()).tolist()), theirs(x).detach())


def test_what_a_parameter_list_is_given_must_be_known() -> None:
    assert rules_of(
        "class M(nn.Module):\n    def __init__(self, ps):\n        super().__init__()\n"
        "        self.ps = nn.ParameterList(ps)\n"
    ) == ["API005"]
