"""Classes, parameters, layers, calls, control flow: what each becomes, and what is left alone."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest

from migrator.convert import convert_source, rewriter
from migrator.convert.rewriter import HANDLERS
from tests.convert.tools import HEADER, body, convert, function, module, rules_of


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("return x.view(x.size(0), -1)", "return x.reshape(x.shape[0], -1)"),
        ("B, T, C = x.size()\nreturn B", "B, T, C = x.shape\nreturn B"),
        ("q, k, v = x.chunk(3, -1)\nreturn q", "q, k, v = chunk(x, 3, axis=-1)\nreturn q"),
        ("return x.transpose(1, 2)", "return x.swapaxes(1, 2)"),
        ("return x.var(1)", "return jnp.var(x, axis=1, ddof=1)"),
        ("return F.gelu(x + 1)", "return jax.nn.gelu(x + 1, approximate=False)"),
        ("return x.unsqueeze(-1) @ y.T", "return x[..., None] @ y.T"),
        ("return x.masked_fill(mask, 0.0)", "return jnp.where(mask, jnp.asarray(0.0, x.dtype), x)"),
        ("return x[:, [0, 2]]", "return x[:, jnp.array([0, 2])]"),
        ("i = x.argmax(1)\nreturn i", "i = x.argmax(axis=1)\nreturn i"),
        ("return torch.cat([x, y], dim=1).to(x.device)", "return jnp.concatenate([x, y], axis=1)"),
        ("return x.float().cuda()", "return x.astype(jnp.float32)"),
    ],
)
def test_tensor_code(line: str, expected: str) -> None:
    assert function(*line.split("\n")) == expected


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(["s = 'a,b'", "return s.split(',')"], id="str.split"),
        pytest.param(["z = [3, 1]", "z.sort()", "return z"], id="list.sort"),
        pytest.param(["d = {}", "return d.values()"], id="dict.values"),
        pytest.param(["return max(n, 3)"], id="builtin max"),
        pytest.param(["return x + y * n"], id="operators"),
        pytest.param(["return x[:, :n], x[..., None]"], id="slices"),
        pytest.param(["return x.shape[0] // 2"], id="shape arithmetic"),
    ],
)
def test_left_alone(lines: list[str]) -> None:
    assert function(*lines) == "\n".join(lines)


def test_class_becomes_nnx() -> None:
    code = module("self.fc = nn.Linear(dim, 3)", "return self.fc(x)")
    assert code == (
        "class M(nnx.Module):\n"
        "    def __init__(self, dim: int, *, rngs: nnx.Rngs):\n"
        "        self.fc = Linear(dim, 3, rngs=rngs)\n"
        "    def __call__(self, x):\n"
        "        return self.fc(x)\n"
    )


@pytest.mark.parametrize(
    ("init", "expected"),
    [
        ("self.w = nn.Parameter(torch.zeros(dim, 2))", "self.w = nnx.Param(jnp.zeros((dim, 2)))"),
        ("self.register_buffer('b', torch.ones(dim))", "self.b = nnx.Variable(jnp.ones((dim,)))"),
        (
            "self.register_buffer('b', torch.ones(dim), persistent=False)",
            "self.b = nnx.Variable(jnp.ones((dim,)), persistent=False)",
        ),
        (
            "self.l = nn.ModuleList([nn.Linear(dim, dim) for _ in range(2)])",
            "nnx.List([Linear(dim, dim, rngs=rngs) for _ in range(2)])",
        ),
        ("self.act = nn.ReLU(inplace=True)", "self.act = jax.nn.relu"),
        ("self.drop = nn.Dropout(0.1)", "self.drop = nnx.Dropout(0.1, rngs=rngs)"),
        (
            "self.net = nn.Sequential(nn.Linear(dim, 2), nn.Tanh())",
            "nnx.Sequential(Linear(dim, 2, rngs=rngs), jnp.tanh)",
        ),
        (
            "self.emb = nn.Embedding(9, dim)",
            "nnx.Embed(9, dim, embedding_init=nnx.initializers.normal(1.0), rngs=rngs)",
        ),
        (
            "self.w = nn.Parameter(torch.zeros(dim), requires_grad=False)",
            "self.w = nnx.Variable(jnp.zeros((dim,)))",
        ),
    ],
)
def test_state(init: str, expected: str) -> None:
    assert expected in module(init)


def test_a_variable_is_read_by_value_and_asked_by_name() -> None:
    init = "self.w = nn.Parameter(torch.zeros(dim)) if dim else None\nself.fc = nn.Linear(dim, 2)"
    code = module(init, "if self.w is not None:\n    x = x * self.w\nreturn x @ self.fc.weight.t()")
    assert "if self.w is not None:" in code
    assert "x = x * self.w[...]" in code
    assert "self.fc.kernel[...]" in code


def test_training_mode() -> None:
    code = module("self.p = 0.5", "if self.training:\n    x = x * 2\nreturn x")
    assert "self.deterministic = False" in code
    assert "if not self.deterministic:" in code


def test_tied_head_is_one_object() -> None:
    init = (
        "self.wte = nn.Embedding(9, dim)\nself.head = nn.Linear(dim, 9, bias=False)\n"
        "self.head.weight = self.wte.weight"
    )
    code = module(init, "return self.head(self.wte(x))")
    assert "self.head = self.wte" in code
    assert "self.head.attend(self.wte(x))" in code
    assert "Linear" not in code


def test_random_functions_take_generators() -> None:
    source = """
    def noise(x: torch.Tensor):
        return torch.randn_like(x)

    class M(nn.Module):
        def forward(self, x):
            return x + noise(x)
    """
    code = convert(source).code
    assert "def noise(x: jax.Array, *, rngs: nnx.Rngs):" in code
    assert "self.rngs = rngs" in code
    assert "noise(x, rngs=self.rngs)" in code


def test_no_grad_stops_gradients() -> None:
    source = """
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2)

        @torch.no_grad()
        def embed(self, x):
            return self.fc(x)

        def forward(self, x):
            with torch.no_grad():
                y = self.fc(x)
            return x + y
    """
    code = convert(source).code
    assert "return jax.lax.stop_gradient(self.fc(x))" in code
    assert "y = jax.lax.stop_gradient(self.fc(x))" in code


@pytest.mark.parametrize(
    ("forward", "rule"),
    [
        ("if x.sum() > 0:\n    x = x[1:]\nreturn x", "DYN002"),
        ("return x[x > 0]", "DYN001"),
        ("return x.nonzero()", "DYN"),
        ("return torch.not_a_function(x)", "API001"),
        ("return unknown(x).max(1)[0]", "API005"),
    ],
)
def test_findings(forward: str, rule: str) -> None:
    head = "class M(nn.Module):\n    def forward(self, x):\n"
    lines = "".join(f"        {line}\n" for line in forward.split("\n"))
    found = rules_of(head + lines)
    assert found
    assert all(f.startswith(rule) for f in found)


def test_what_is_left_stands_under_a_todo_and_the_rest_is_converted() -> None:
    source = "class M(nn.Module):\n    def forward(self, x):\n        y = x[x > 0]\n        return x.view(-1)\n"
    result = convert(source)
    assert not result.complete
    lines = result.code.splitlines()
    at = next(i for i, line in enumerate(lines) if "y = x[x > 0]" in line)
    assert lines[at - 1].strip().startswith("# TODO(migrate): DYN001")
    assert "return x.reshape(-1)" in result.code


def test_comments_docstrings_and_blank_lines_survive() -> None:
    source = '''
    class M(nn.Module):
        """Says what it is."""

        # about the layer
        def forward(self, x):  # the pass

            # twice
            x = x.view(-1)  # flat

            return x
    '''
    code = body(source, "class M")
    for text in ('"""Says what it is."""', "# about the layer", "# the pass", "# twice", "# flat"):
        assert text in code


def test_output_imports_neither_torch_nor_migrator() -> None:
    code = convert("def f(x: torch.Tensor):\n    return F.relu(x)\n").code
    assert "import torch" not in code
    assert "migrator" not in code


def test_converting_the_output_again_changes_nothing() -> None:
    source = HEADER + "class M(nn.Module):\n    def forward(self, x):\n        return x.view(-1)\n"
    once = convert_source(source).code
    assert convert_source(once).code == once


def test_same_input_same_bytes() -> None:
    source = (
        "def f(x: torch.Tensor):\n    return F.cross_entropy(x, x), F.max_pool2d(x, 2), x.var()\n"
    )
    assert convert(source).code == convert(source).code


def test_a_partial_function_keeps_what_it_binds() -> None:
    source = """
        import functools


        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.act = functools.partial(F.leaky_relu, negative_slope=0.2)

            def forward(self, x):
                return self.act(x)
    """
    code = convert(source).code
    assert "functools.partial(f_leaky_relu, negative_slope=0.2)" in code
    assert "return self.act(x)" in code


@pytest.mark.parametrize(
    ("first", "second"),
    [("calls", "names"), ("state_reads", "containers"), ("state_reads", "calls")],
)
def test_one_pass_is_asked_before_another(first: str, second: str) -> None:
    """Passes register as they are imported: one that imports another would put it first."""
    convert_source("import torch\n")
    asked = [handler.__module__.rpartition(".")[2] for handler in HANDLERS[cst.Call]]
    assert max(i for i, name in enumerate(asked) if name == first) < asked.index(second)


@pytest.mark.parametrize(
    "text",
    [
        *(
            path.read_text()
            for path in sorted((Path(__file__).parents[2] / "samples").glob("*.py"))
        ),
        HEADER
        + "def f(x: torch.Tensor):\n    return torch.sigmoid(x) + 2**40, x.data, x.detach()\n",
        HEADER
        + "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        + "        self.w = nn.Parameter(torch.ones(2))\n\n    def keep(self):\n"
        + "        self.shown = [p.data for p in self.parameters()]\n",
    ],
)
def test_a_pass_is_left_out_where_it_would_do_nothing(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = convert_source(text)
    always = {
        handler: when
        for handler, when in rewriter._CONDITIONS.items()
        if not handler.__module__.endswith((".large_numbers", ".parameter_views"))
    }
    assert len(always) < len(rewriter._CONDITIONS)
    monkeypatch.setattr(rewriter, "_CONDITIONS", always)
    assert convert_source(text) == made


@pytest.mark.parametrize(
    "text",
    [
        *(
            path.read_text()
            for path in sorted((Path(__file__).parents[2] / "samples").glob("*.py"))
        ),
        HEADER
        + "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        + "        self.w = nn.Parameter(torch.ones(2))\n        self.seen = []\n"
        + "        self.w.requires_grad = False\n        nn.init.zeros_(self.w)\n"
        + "        self.act = nn.ReLU()\n        self.act = nn.Linear(2, 2) if self.w.ndim else None\n\n"
        + "    def forward(self, x: torch.Tensor):\n        self.seen.append(x)\n"
        + "        x[x > 0] = x[x > 0] * 2\n        x.add_(1)\n        a = b = x.max(1).values\n"
        + "        torch.manual_seed(0)\n        return a.device, x.dtype, self.w.T, b\n",
    ],
)
def test_a_pass_is_not_asked_about_what_is_no_business_of_it(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = convert_source(text)
    monkeypatch.setattr(rewriter, "_BUSINESS", {})
    caches = (rewriter._concerned, rewriter._words, rewriter._without)
    for cache in caches:
        cache.cache_clear()
    try:
        assert convert_source(text) == made
    finally:
        for cache in caches:
            cache.cache_clear()


def test_a_torch_name_in_a_string() -> None:
    assert function('return getattr(torch, "sin")(x)') == "return jnp.sin(x)"
    assert rules_of("def f(x, name: str):\n    return getattr(F, name)(x, 0.1)\n") == ["API001"]


def test_checkpointed_modules_are_rematerialised() -> None:
    init = "self.net = nn.Linear(dim, dim)"
    text = module(
        init, "return torch.utils.checkpoint.checkpoint(self.net, x, use_reentrant=False)"
    )
    assert "return nnx.remat(lambda block, x: block(x))(self.net, x)" in text


def test_starred_registration_is_a_finding() -> None:
    source = "class M(nn.Module):\n    def __init__(self, stage):\n        super().__init__()\n"
    assert rules_of(source + "        self.register_buffer(*stage)\n") == ["API002"]
    assert "setattr(self, *stage)" in convert(source + "        self.add_module(*stage)\n").code


def test_a_partial_function_takes_torchs_arguments() -> None:
    source = "import functools\n\n\ndef f(x: torch.Tensor):\n"
    code = convert(source + "    return functools.partial(F.softplus, beta=2)(x)\n").code
    assert "return functools.partial(f_softplus, beta=2)(x)" in code


def test_a_helper_does_not_hide_a_builtin_the_file_may_use() -> None:
    source = "import functools\n\n\ndef f(xs, x: torch.Tensor):\n"
    code = convert(source + "    return functools.partial(torch.sum, dim=0)(x) + sum(xs)\n").code
    assert "functools.partial(sum_, dim=0)(x) + sum(xs)" in code
    assert "def sum_(" in code


def test_a_function_as_a_value_has_the_name_its_helper_has() -> None:
    assert function("g = torch.clamp", "for h in (g, torch.clamp):", "    x = h(x, n)", "return x")
    code = convert("ACT = {'clamp': torch.clamp}\n").code
    assert "{'clamp': clamp}" in code
    assert "def clamp(" in code


def test_an_assignment_with_a_hint_is_one_without() -> None:
    init = (
        "self.w: Optional[nn.Parameter] = None\nself.fc: Optional[nn.Module] = None\n"
        "if dim > 2:\n    self.w = nn.Parameter(torch.zeros(3))\n    self.fc = nn.Linear(3, 3)"
    )
    text = module(init)
    assert "self.w: Optional[nnx.Param] = nnx.data(None)" in text
    assert "self.fc: Optional[nnx.Module] = nnx.data(None)" in text
