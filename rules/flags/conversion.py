"""API and MUT: what the converter itself finds while it works on a statement, documented here."""

from __future__ import annotations

from rules.registry import code

code(
    "API001",
    "no-conversion",
    effort=1.0,
    what="a torch name without a conversion",
    why="No definition says what it means in JAX, and nothing is guessed.",
    example="def f(x: torch.Tensor):\n    return torch.lobpcg(x)",
    instead="def f(x: torch.Tensor):\n    return torch.relu(x)",
)

code(
    "API002",
    "use-not-covered",
    effort=0.5,
    what="a torch name is used in a way its definition does not cover",
    why="An argument has no counterpart in JAX, or it is not known which meaning is meant.",
    example="def f(x: torch.Tensor):\n    return x.as_strided((2, 2), (1, 2))",
    instead="def f(x: torch.Tensor):\n    return x.reshape(2, 2)",
)

code(
    "API003",
    "no-generator-at-hand",
    effort=0.5,
    what="random numbers are drawn where no generator is at hand",
    why="JAX draws from a generator that is handed on: a module keeps its own, a function is given one.",
    example=(
        "class Net(nn.Module):\n    def forward(self, x: torch.Tensor):\n        torch.manual_seed(0)\n"
        "        return x + torch.randn(3)"
    ),
    instead=(
        "class Net(nn.Module):\n    def forward(self, x: torch.Tensor):\n        return x + torch.randn(3)"
    ),
)

code(
    "API004",
    "built-on-torch",
    effort=2.0,
    what="an imported package is built on torch",
    why="What it returns are torch tensors and modules, which a Flax program cannot use.",
    example="import torchvision\n\nnet = torchvision.models.resnet18()",
    instead="import math\n\nscale = math.sqrt(2) * torch.ones(3)",
)

code(
    "API005",
    "kind-not-known",
    effort=0.25,
    what="it is not known whether a value is a tensor, a module or something else",
    why="The same method means different things in torch and in numpy, and nothing is guessed.",
    example="def f(batch):\n    for item in batch:\n        yield item.split(2, 1)",
    instead="def f(batch: torch.Tensor):\n    return batch.split(2, 1)",
)

code(
    "API006",
    "weight-of-several-layers",
    effort=0.25,
    what="a weight is named differently in the layers that an expression may stand for",
    why="Flax's Linear holds a transposed kernel, a convolution its weight as torch lays it out.",
    example=(
        "def start(conv: bool):\n    net = nn.Conv1d(2, 2, 1) if conv else nn.Linear(2, 2)\n"
        "    net.weight = nn.Parameter(torch.ones(2, 2))\n    return net"
    ),
    instead=(
        "def start(conv: bool):\n    net = nn.Conv1d(2, 2, 1) if conv else nn.Linear(2, 2)\n"
        "    nn.init.ones_(net.weight)\n    return net"
    ),
)

code(
    "API007",
    "names-of-children",
    effort=0.5,
    what="children have computed names, or a forward pass goes by their order",
    why="A child has a name in the source, or a number in a list; Flax sorts other attributes by name.",
    example=(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.b, self.a = nn.Linear(2, 2), nn.Linear(2, 2)\n\n"
        "    def forward(self, x: torch.Tensor):\n        return self._modules.popitem()[1](x)"
    ),
    instead=(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])\n\n"
        "    def forward(self, x: torch.Tensor):\n        for layer in self.layers:\n"
        "            x = layer(x)\n        return x"
    ),
)

code(
    "API008",
    "modules-in-plain-list",
    effort=0.25,
    what="modules stand in a plain list",
    why="torch neither trains nor saves them; Flax would.",
    example=(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.layers = [nn.Linear(2, 2), nn.Linear(2, 2)]"
    ),
    instead=(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])"
    ),
)

code(
    "API009",
    "shared-parameter",
    effort=0.5,
    what="a parameter is shared in a way that cannot be kept",
    why="Flax stores a Linear and an Embedding transposed to each other, so one array cannot serve both.",
    example=(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.embed = nn.Embedding(8, 4)\n        self.head = nn.Linear(4, 8)\n"
        "        self.embed.weight = self.head.weight\n\n"
        "    def forward(self, i: torch.Tensor):\n        return self.head(self.embed(i))"
    ),
    instead=(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.embed = nn.Embedding(8, 4)\n        self.head = nn.Linear(4, 8)\n"
        "        self.head.weight = self.embed.weight\n\n"
        "    def forward(self, i: torch.Tensor):\n        return self.head(self.embed(i))"
    ),
)

code(
    "API010",
    "mode-of-another-module",
    effort=0.25,
    what="the training mode of another module is asked for",
    why="Only layers that behave differently in training carry a mode in Flax.",
    example="def f(net: nn.Module, x: torch.Tensor):\n    return x if net.training else x * 2",
    instead="def f(x: torch.Tensor, training: bool):\n    return x if training else x * 2",
)

code(
    "API011",
    "class-without-class",
    effort=0.25,
    what="isinstance asks for a layer that is a plain function in the output",
    why="Layers without state become functions, which have no class of their own.",
    example="def f(layer: nn.Module):\n    return isinstance(layer, nn.Softmax)",
    instead="def f(layer: nn.Module):\n    return isinstance(layer, nn.Conv2d)",
)

code(
    "MUT001",
    "view-written",
    effort=0.5,
    what="a write reaches other tensors that share memory",
    why="Views alias in torch; JAX arrays never change, so a write reaches one name only.",
    example="def f(x: torch.Tensor):\n    y = x[0]\n    y += 1\n    return x",
    instead="def f(x: torch.Tensor):\n    x[0] += 1\n    return x",
)

code(
    "MUT002",
    "written-inside-expression",
    effort=0.25,
    what="a tensor is changed in the middle of an expression",
    why="A change becomes an assignment, which needs a statement of its own.",
    example="def f(x: torch.Tensor):\n    y = x.relu_() + x\n    return y",
    instead="def f(x: torch.Tensor):\n    x.relu_()\n    return x + x",
)

code(
    "MUT003",
    "argument-written",
    effort=0.5,
    what="a function changes an argument that its caller reads later",
    why="JAX arrays never change, so the caller would see the old values.",
    example=(
        "def shift(x: torch.Tensor):\n    x += 1\n    return x\n\n\n"
        "def f(x: torch.Tensor):\n    y = shift(x)\n    return x * y"
    ),
    instead=(
        "def shift(x: torch.Tensor):\n    return x + 1\n\n\n"
        "def f(x: torch.Tensor):\n    y = shift(x)\n    return x * y"
    ),
)

code(
    "MUT004",
    "plain-attribute-written",
    effort=0.5,
    what="the forward pass changes a plain tensor attribute",
    why="Only variables carry values out of a jitted call; a plain attribute would keep a tracer.",
    example=(
        "class Net(nn.Module):\n    last = torch.zeros(3)\n\n"
        "    def forward(self, x: torch.Tensor):\n        self.last = x\n        return x"
    ),
    instead=(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        '        self.register_buffer("last", torch.zeros(3))\n\n'
        "    def forward(self, x: torch.Tensor):\n        self.last = x\n        return x"
    ),
)

code(
    "API014",
    "first-values-set-anew",
    severity="info",
    blocks=False,
    effort=0.0,
    what="layers begin with Flax's first values, since the constructor sets them anew",
    why="What no layer keeps need not be drawn as torch draws it.",
    example=(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.fc = nn.Linear(2, 2)\n        self.apply(self._init)\n\n    def _init(self, m):\n"
        "        if isinstance(m, nn.Linear):\n            nn.init.normal_(m.weight)\n"
        "            nn.init.zeros_(m.bias)"
    ),
    instead=(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.fc = nn.Linear(2, 2)"
    ),
)

code(
    "API015",
    "module-frozen-by-attribute",
    severity="warning",
    blocks=False,
    effort=0.0,
    what="requires_grad of a module is set, which torch takes for any other attribute",
    why="Its parameters are trained all the same, in torch and in the port; requires_grad_(False) freezes them.",
    example=(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.fc = nn.Linear(2, 2)\n        self.fc.requires_grad = False"
    ),
    instead=(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.fc = nn.Linear(2, 2)\n        self.fc.requires_grad_(False)"
    ),
)
