"""Bases and what derives from them, mixins, containers and wrappers that models are built of, by a short name."""

from __future__ import annotations

DEFINITIONS = {
    "base": """
class Base(nn.Module):
    dim = 4
    act_layer = nn.ReLU
    names = ["p", "q"]

    def __init__(self, dim=None, **kwargs):
        super().__init__()
        self.dim = dim or self.dim
        self.kw = kwargs
        self.build()
        self.post_init()

    def build(self):
        self.proj = nn.Linear(self.dim, self.dim)

    def post_init(self):
        self.apply(self._init)

    def _init(self, m):
        if isinstance(m, nn.Linear):
            nn.init.constant_(m.weight, 0.1)

    def pre(self, x):
        return self.proj(x)

    def post(self, x):
        return x

    def forward(self, x):
        return self.post(self.pre(x))


class Child(Base):
    names = Base.names + ["r"]

    def build(self):
        super().build()
        self.act = self.act_layer()
        for n in self.names:
            setattr(self, f"fc_{n}", nn.Linear(self.dim, self.dim, bias=n != "q"))

    def post(self, x):
        for n in self.names:
            x = x + getattr(self, "fc_" + n)(x)
        return self.act(super().post(x))


class GrandChild(Child):
    act_layer = nn.Tanh
    dim = 4

    def pre(self, x):
        return super().pre(x) + x * self.kw.get("gain", 2)
""",
    "mix": """
class ScaleMixin:
    scale = 2.0

    def scaled(self, x):
        return x * self.scale

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.mixed = 3


class NormMixin:
    def forward(self, x):
        return F.layer_norm(super().forward(x), (4,))


class MixLin(ScaleMixin, NormMixin, nn.Linear):
    def __init__(self, a, b, bias=True, *, gain=1):
        super().__init__(a, b, bias)
        self.gain = gain

    def forward(self, x):
        return self.scaled(super().forward(x)) * self.gain + self.mixed
""",
    "seq": """
class Stack(nn.Sequential):
    def __init__(self, dim, n=2, act=nn.ReLU, norm_layer=None):
        layers = []
        for i in range(n):
            layers.append(nn.Linear(dim, dim))
            if norm_layer is not None:
                layers.append(norm_layer(dim))
            if i < n - 1:
                layers.append(act())
        super().__init__(*layers)
        self.n = n

    def forward(self, x):
        return x + super().forward(x)
""",
    "lst": """
class Bank(nn.ModuleList):
    def __init__(self, dim, n):
        super().__init__([nn.Linear(dim, dim) for _ in range(n)])
        self.gain = 2

    def forward(self, x):
        for i, m in enumerate(self):
            x = m(x) if i % 2 == 0 else F.relu(m(x))
        return x * self.gain + len(self)
""",
    "dct": """
class Heads(nn.ModuleDict):
    def __init__(self, sizes):
        super().__init__({k: nn.Linear(4, v) for k, v in sizes.items()})

    def forward(self, x):
        return torch.cat([m(x) for m in self.values()], -1)
""",
    "cls": """
class Made(nn.Module):
    count = 0

    def __init__(self, inp, out, *, gain=1.0, layers=None):
        super().__init__()
        self.fc = nn.Linear(inp, out)
        self.gain = gain
        self.layers = nn.ModuleList(layers or [])

    @classmethod
    def square(cls, dim, **kw):
        return cls(dim, dim, **kw)

    @staticmethod
    def squash(x):
        return torch.tanh(x)

    @property
    def out(self):
        return self.fc.out_features

    def __len__(self):
        return len(self.layers)

    def __getitem__(self, i):
        return self.layers[i]

    def reset_parameters(self):
        nn.init.zeros_(self.fc.bias)

    def forward(self, x):
        for m in self.layers:
            x = m(x)
        return self.squash(self.fc(x)) * self.gain


class Deeper(Made):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.reset_parameters()

    def forward(self, *args, **kwargs):
        return super().forward(*args, **kwargs) + 1

    @staticmethod
    def squash(x):
        return x * 0.5
""",
    "res": """
class Residual(nn.Module):
    def __init__(self, fn, alpha=None):
        super().__init__()
        self.fn = fn
        self.alpha = nn.Parameter(torch.ones(1) * alpha) if alpha else 1.0

    def forward(self, x, **kwargs):
        return self.fn(x, **kwargs) * self.alpha + x

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.fn, name)
""",
    "abc": """
class Shape(ABC):
    @abstractmethod
    def area(self, x):
        ...

    def twice(self, x):
        return self.area(x) * 2


class Op(nn.Module, ABC):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
        self.lin = self.make(dim)

    @abstractmethod
    def make(self, dim):
        raise NotImplementedError

    @property
    def width(self):
        return self.dim * 2

    def forward(self, x):
        return self.lin(x) + self.width


class LinOp(Op):
    def make(self, dim):
        return nn.Linear(dim, dim)


class NormOp(Op):
    def make(self, dim):
        return nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, dim, bias=False))

    @property
    def width(self):
        return super().width + 1


class Square(Shape):
    def area(self, x):
        return x * x
""",
    "gen": """
T = TypeVar("T")


class Holder(nn.Module, Generic[T]):
    def __init__(self, item: T, scale: float = 1.0):
        super().__init__()
        self.item = item
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.item(x) * self.scale


class Callable2(Protocol):
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        ...
""",
    "stat": """
class Stats(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("steps", torch.zeros(1))
        self.register_buffer("last", None)

    def update(self, x, rate=0.1):
        with torch.no_grad():
            self.mean.mul_(1 - rate).add_(x.mean(0), alpha=rate)
            self.steps += 1

    def forward(self, x):
        if self.training:
            self.update(x)
            self.last = x.detach().sum(0)
        return x - self.mean
""",
    "three": """
class A0(nn.Module):
    kind = "a"

    def __init__(self, dim, **kw):
        super().__init__()
        self.dim = dim
        self.a = nn.Linear(dim, dim)
        self.opts = kw

    def feats(self, x):
        return self.a(x)

    def head(self, x):
        return x

    def forward(self, x):
        return self.head(self.feats(x)) * self.opts.get("k", 1)


class B0(A0):
    def __init__(self, dim, hid=None, **kw):
        super().__init__(dim, **kw)
        hid = hid or dim
        self.b = nn.Linear(dim, hid)
        self.c = nn.Linear(hid, dim)

    def feats(self, x):
        return self.c(F.relu(self.b(super().feats(x))))


class C0(B0):
    kind = "c"

    def __init__(self, *args, norm=True, **kw):
        super().__init__(*args, **kw)
        self.norm = nn.LayerNorm(self.dim) if norm else None

    def feats(self, x):
        y = super().feats(x)
        return self.norm(y) if self.norm is not None else y

    def head(self, x):
        return super().head(x) + len(self.kind)

    @classmethod
    def small(cls, **kw):
        return cls(4, hid=2, **kw)

    @classmethod
    def from_config(cls, cfg):
        cfg = dict(cfg)
        dim = cfg.pop("dim")
        return cls(dim, **cfg)
""",
    "prop": """
class Prop(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.lin = nn.Linear(dim, dim)
        self._gain = 1.0
        self._cache = None

    @property
    def gain(self):
        return self._gain

    @gain.setter
    def gain(self, value):
        self._gain = value * 2

    @property
    def weight(self):
        return self.lin.weight

    @property
    def size(self):
        return self.weight.shape[0], self.weight.shape[1]

    def forward(self, x, twice=False):
        y = F.linear(x, self.weight) * self.gain + self.size[1]
        return y * 2 if twice else y
""",
    "wrap": """
class Wrap(nn.Module):
    def __init__(self, inner, extra=0):
        super().__init__()
        self.inner = inner
        self.extra = extra

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.inner, name)

    def forward(self, *args, **kwargs):
        return self.inner(*args, **kwargs) + self.extra
""",
    "nest": """
class Outer(nn.Module):
    class Inner(nn.Module):
        gain = 2

        def __init__(self, dim):
            super().__init__()
            self.fc = nn.Linear(dim, dim)

        def forward(self, x):
            return self.fc(x) * self.gain

    class Cfg:
        depth = 2
        dims = [4, 4]

    def __init__(self, cfg=None):
        super().__init__()
        cfg = cfg or self.Cfg
        self.parts = nn.ModuleList([self.Inner(d) for d in cfg.dims[:cfg.depth]])

    def forward(self, x):
        for p in self.parts:
            x = p(x)
        return x
""",
    "plainmix": """
class Saves:
    saved = None

    def remember(self, x):
        self.saved = x
        return x

    def describe(self):
        return f"{type(self).__name__}"


class Resid:
    def resid(self, x, y):
        return x + y * self.alpha

    @property
    def alpha(self):
        return 0.5

    def setup(self, dim):
        self.pre = nn.LayerNorm(dim)
        self.post = None
        if dim > 3:
            self.post = nn.Linear(dim, dim)


class Mixed(Resid, Saves, nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.setup(dim)
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        y = self.fc(self.pre(x))
        if self.post is not None:
            y = self.post(y)
        return self.resid(x, y)
""",
    "tree": """
class Tree(nn.Module):
    def __init__(self, depth, dim=4):
        super().__init__()
        self.depth = depth
        self.fc = nn.Linear(dim, dim)
        if depth > 0:
            self.left = Tree(depth - 1, dim)
            self.right = Tree(depth - 1, dim)

    def forward(self, x):
        x = torch.tanh(self.fc(x))
        if self.depth == 0:
            return x
        return self.left(x) + self.right(x) * 0.5

    def count(self):
        return 1 if self.depth == 0 else self.left.count() + self.right.count()
""",
    "seqs": """
class Block2(nn.Sequential):
    def __init__(self, dim, act=nn.ReLU):
        super().__init__(nn.Linear(dim, dim), act())


class Named(nn.Sequential):
    def __init__(self, dim):
        super().__init__(OrderedDict([("fc", nn.Linear(dim, dim)), ("act", nn.ReLU())]))
        self.add_module("out", nn.Linear(dim, dim))


class Chain(nn.ModuleList):
    def forward(self, x):
        for m in self:
            x = m(x)
        return x


class Branches(nn.ModuleDict):
    def forward(self, x):
        return {k: m(x) for k, m in self.items()}
""",
    "attn": """
class Attn(nn.Module):
    def __init__(self, dim, heads=2, cross=False):
        super().__init__()
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.q = nn.Linear(dim, dim)
        self.kv = nn.Linear(dim, dim * 2)
        self.register_buffer("mask", torch.tril(torch.ones(8, 8)), persistent=False)

    def split(self, t):
        b, n, d = t.shape
        return t.view(b, n, self.heads, d // self.heads).transpose(1, 2)

    def forward(self, x, context=None, mask=None):
        b, n, d = x.shape
        context = x if context is None else context
        q = self.split(self.q(x))
        k, v = map(self.split, self.kv(context).chunk(2, dim=-1))
        s = q @ k.transpose(-1, -2) * self.scale
        s = s.masked_fill(self.mask[:n, :k.shape[2]] == 0, float("-inf"))
        if mask is not None:
            s = s + mask
        return (s.softmax(-1) @ v).transpose(1, 2).reshape(b, n, d)
""",
}
