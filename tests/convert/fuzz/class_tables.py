"""Registries, configurations, factories, results and functions that models are built of, by a short name."""

from __future__ import annotations

DEFINITIONS = {
    "reg": """
REGISTRY = {}


def register(name):
    def deco(cls):
        REGISTRY[name] = cls
        return cls

    return deco


@register("lin")
class RegLin(nn.Linear):
    def forward(self, x):
        return super().forward(x) * 0.5


@register("norm")
class RegNorm(nn.LayerNorm):
    pass
""",
    "cfg": """
@dataclass
class Config:
    dim: int = 4
    depth: int = 2
    act: str = "relu"
    bias: bool = True
    sizes: tuple = (4, 8)
    scale: float = field(default=0.5)

    @property
    def inner(self):
        return self.dim * 2

    def __post_init__(self):
        self.half = self.dim // 2
""",
    "nt": """
Size = namedtuple("Size", ["inp", "out"])


class Out(NamedTuple):
    y: torch.Tensor
    k: int = 1
""",
    "enum": """
class Act(Enum):
    RELU = "relu"
    TANH = "tanh"

    def layer(self):
        return nn.ReLU() if self is Act.RELU else nn.Tanh()
""",
    "regs": """
class Registry:
    def __init__(self, name):
        self.name = name
        self._items = {}

    def register(self, name=None):
        def deco(cls):
            self._items[name or cls.__name__] = cls
            return cls

        return deco

    def get(self, key):
        return self._items[key]

    def build(self, cfg, **kw):
        cfg = dict(cfg)
        return self._items[cfg.pop("type")](**cfg, **kw)

    def __contains__(self, key):
        return key in self._items


BLOCKS = Registry("blocks")
ACTS = {"relu": nn.ReLU, "gelu": nn.GELU, "none": nn.Identity}


def get_act(name, **kw):
    if name is None:
        return nn.Identity()
    if callable(name):
        return name(**kw)
    return ACTS[name](**kw)


@BLOCKS.register()
class PlainBlock(nn.Module):
    def __init__(self, dim=4, act="relu"):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.act = get_act(act)

    def forward(self, x):
        return self.act(self.fc(x))


@BLOCKS.register("res")
class ResBlock(PlainBlock):
    def forward(self, x):
        return x + super().forward(x)
""",
    "mk": """
def make_layer(kind, *args, **kwargs):
    layers = {"linear": nn.Linear, "ln": nn.LayerNorm, "id": nn.Identity}
    return layers[kind](*args, **kwargs)


def mlp(*sizes, act=nn.ReLU, last=False):
    out = []
    for a, b in zip(sizes[:-1], sizes[1:]):
        out += [nn.Linear(a, b), act()]
    if not last:
        out = out[:-1]
    return nn.Sequential(*out)


def get_clones(module, n):
    return nn.ModuleList([copy.deepcopy(module) for _ in range(n)])
""",
    "part": """
Norm = partial(nn.LayerNorm, eps=1e-3)
Conv1 = partial(nn.Linear, bias=False)


def block_of(norm_layer=Norm, act_layer=nn.GELU, linear=Conv1):
    def make(dim):
        return nn.Sequential(linear(dim, dim), norm_layer(dim), act_layer())

    return make


class PBlock(nn.Module):
    def __init__(self, dim, norm_layer=nn.LayerNorm, act_layer=partial(nn.LeakyReLU, 0.1), mlp=None):
        super().__init__()
        self.norm = norm_layer(dim)
        self.act = act_layer()
        self.mlp = mlp(dim) if mlp is not None else nn.Linear(dim, dim)

    def forward(self, x):
        return x + self.act(self.mlp(self.norm(x)))
""",
    "conf": """
class Conf:
    def __init__(self, **kw):
        self.hidden = kw.pop("hidden", 4)
        self.layers = kw.pop("layers", 2)
        self.act = kw.pop("act", "gelu")
        for k, v in kw.items():
            setattr(self, k, v)

    def to_dict(self):
        return dict(self.__dict__)

    @classmethod
    def from_dict(cls, d):
        return cls(**d)


ACT2FN = {"gelu": F.gelu, "relu": F.relu, "silu": nn.functional.silu}


class ConfModel(nn.Module):
    config_class = Conf

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.layers = nn.ModuleList([ConfLayer(config, i) for i in range(config.layers)])
        self.post = nn.LayerNorm(config.hidden, eps=getattr(config, "eps", 1e-6))

    def forward(self, x, output_hidden=False):
        states = () if output_hidden else None
        for layer in self.layers:
            if output_hidden:
                states = states + (x,)
            x = layer(x)[0]
        x = self.post(x)
        if not output_hidden:
            return x
        return tuple(v for v in [x, states] if v is not None)


class ConfLayer(nn.Module):
    def __init__(self, config, index=None):
        super().__init__()
        self.fc = nn.Linear(config.hidden, config.hidden)
        self.act = ACT2FN[config.act] if isinstance(config.act, str) else config.act
        self.index = index

    def forward(self, x):
        y = self.act(self.fc(x)) + self.index
        return (y,)
""",
    "initial": """
def init_weights(module, std=0.02):
    if isinstance(module, (nn.Linear, nn.Embedding)):
        nn.init.normal_(module.weight, std=std)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)


def freeze(module):
    for p in module.parameters():
        p.requires_grad = False
    return module


def count_params(module):
    return sum(p.numel() for p in module.parameters() if p.requires_grad)


def replace_act(module, new=nn.Tanh):
    for name, child in module.named_children():
        if isinstance(child, nn.ReLU):
            setattr(module, name, new())
        else:
            replace_act(child, new)
""",
    "fns": """
def scale_(t, k):
    t.mul_(k)
    return t


def add_to(t, other):
    t += other


def clip(t, lo=-1.0, hi=1.0):
    return t.clamp(min=lo, max=hi)


def fold(fs, x):
    for f in fs:
        x = f(x)
    return x


def nested(x):
    if isinstance(x, (list, tuple)):
        return type(x)(nested(i) for i in x)
    if isinstance(x, dict):
        return {k: nested(v) for k, v in x.items()}
    return x * 2


def power(f, n):
    if n == 0:
        return lambda t: t
    return lambda t: f(power(f, n - 1)(t))
""",
    "out": """
class Result(NamedTuple):
    last: torch.Tensor
    hidden: Tuple[torch.Tensor, ...]
    loss: Optional[torch.Tensor] = None


@dataclass
class Output:
    y: torch.Tensor
    parts: List[torch.Tensor] = field(default_factory=list)
    extra: Optional[Dict[str, torch.Tensor]] = None

    def total(self):
        return self.y + sum(self.parts)


class Trunk(nn.Module):
    def __init__(self, dim, depth=2):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(dim, dim) for _ in range(depth)])

    def forward(self, x, all=False):
        hidden = []
        for b in self.blocks:
            x = torch.tanh(b(x))
            hidden.append(x)
        if all:
            return hidden
        return Result(x, tuple(hidden))

    def run(self, x):
        out = self(x)
        return Output(out.last, list(out.hidden), extra={"n": x * 2})
""",
    "emb": """
class Embed(nn.Module):
    def __init__(self, words, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(words, dim))

    def forward(self, i):
        return F.embedding(i, self.weight)

    def logits(self, x):
        return x @ self.weight.t()


class LM(nn.Module):
    def __init__(self, words=5, dim=4, tie=True):
        super().__init__()
        self.embed = nn.Embedding(words, dim)
        self.mid = nn.Linear(dim, dim)
        self.head = nn.Linear(dim, words, bias=False)
        if tie:
            self.tie_weights()

    def tie_weights(self):
        self.head.weight = self.embed.weight

    def get_input_embeddings(self):
        return self.embed

    def set_input_embeddings(self, new):
        self.embed = new

    def forward(self, i):
        return self.head(torch.tanh(self.mid(self.embed(i))))
""",
}
