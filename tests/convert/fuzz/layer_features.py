"""What constructors do with torch's layers, and how the forward pass runs what comes of it."""

from __future__ import annotations

FEATURES = """
--init
self.add_module(f"x{self.n}", nn.Linear(4, 4))
--use
y = getattr(self, f'x{self.n}')(y)
====
--init
for i, d in enumerate([4, 4]):
    self.add_module("blk#_%d" % i, nn.Linear(d, 4))
--use
for i in range(2):
    y = getattr(self, 'blk#_' + str(i))(y)
====
--init
for i in range(3):
    setattr(self, f"lay#_{i}", nn.Linear(4, 4) if i else nn.Identity())
self.seqs# = [getattr(self, f"lay#_{i}") for i in range(3)]
--use
for m in self.seqs#:
    y = m(y)
====
--init
self.t# = nn.Linear(4, 4, bias=False)
self.u# = nn.Linear(4, 4)
self.u#.weight = self.t#.weight
--use
y = self.u#(self.t#(y))
====
--init
self.emb# = nn.Embedding(5, 4)
self.out# = nn.Linear(4, 5, bias=False)
self.out#.weight = self.emb#.weight
--use
y = y + self.out#(y)[..., :1] + self.emb#.weight[0]
====
--init
self.sh# = nn.Linear(4, 4)
self.shs# = nn.ModuleList([self.sh#, self.sh#])
--use
for m in self.shs#:
    y = m(y)
====
--init
for name, m in self.named_children():
    if isinstance(m, nn.Linear):
        nn.init.zeros_(m.weight)
--use
y = y + sum(1 for _ in self.children())
====
--init
for p in self.parameters():
    p.requires_grad = False
--use
y = y + 1
====
--init
self.total# = sum(p.numel() for p in self.parameters())
--use
y = y + self.total# / 100
====
--init
for m in self.modules():
    if isinstance(m, (nn.Linear, nn.Embedding)):
        m.weight.data.normal_(0, 0.02)
    if hasattr(m, "bias") and m.bias is not None:
        m.bias.data.zero_()
--use
y = y * 1
====
--init
self.apply(self.init_weights)
--use
y = y * 1
====
--init
self.act# = kwargs.get("act", nn.ReLU)()
--use
y = self.act#(y)
====
--init
self.act# = kwargs.pop("fn", torch.tanh)
--use
y = self.act#(y)
====
--init
self.fcs# = nn.ModuleDict({f"n{i}": nn.Linear(4, 4) for i in range(2)})
--use
for name, m in self.fcs#.items():
    if name != 'n0':
        y = m(y)
====
--init
self.pl# = nn.ParameterList([nn.Parameter(torch.ones(4) * i) for i in range(3)])
--use
for i, p in enumerate(self.pl#):
    y = y * p + i
====
--init
self.pd# = nn.ParameterDict({"a": nn.Parameter(torch.ones(4))})
self.pd#["b"] = nn.Parameter(torch.zeros(4))
--use
y = y * self.pd#['a'] + self.pd#['b']
====
--init
layers = [nn.Linear(4, 4)]
layers.extend([nn.ReLU(), nn.Linear(4, 4)])
self.sq# = nn.Sequential(OrderedDict([(f"l{i}", m) for i, m in enumerate(layers)]))
--use
y = self.sq#(y) + self.sq#.l0(y)
====
--init
self.sq# = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
self.sq#.add_module("last", nn.Linear(4, 4))
--use
y = self.sq#.last(y) + self.sq#(y)
====
--init
self.sq# = nn.Sequential(*(nn.Linear(4, 4) for _ in range(3)))
self.sq# = self.sq#[:-1]
--use
y = self.sq#(y)
====
--init
self.sq# = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
del self.sq#[1]
--use
y = self.sq#(y)
====
--init
self.sq# = nn.Sequential(*[nn.Linear(4, 4), nn.ReLU()] * 2)
--use
y = self.sq#(y)
====
--init
self.tail# = nn.Sequential(*list(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)).children())[:-1])
--use
y = self.tail#(y)
====
--init
norm = kwargs.get("norm") or partial(nn.LayerNorm, eps=1e-4)
self.nm# = norm(4)
--use
y = self.nm#(y)
====
--init
self.drop# = nn.Dropout(0.0) if self.n > 2 else nn.Identity()
--use
y = self.drop#(y)
====
--init
self.register_buffer("buf#", torch.arange(4.0) * self.n)
--use
y = y + self.buf#
====
--init
self.cp# = copy.deepcopy(self.first)
--use
y = self.cp#(y)
====
--init
self.first = nn.Linear(4, 4, bias=False)
--use
y = y + (self.first.bias is None)
====
--init
self.first.bias = None
--use
y = y * 1
====
--init
self.first.register_parameter("extra", nn.Parameter(torch.ones(4)))
--use
y = y * self.first.extra
====
--init
self.first.gain = 2
--use
y = y * self.first.gain
====
--init
self.first.forward = self.other.forward
--use
y = self.first(y)
====
--init
self.alias# = self.first
--use
y = self.alias#(y)
====
--init
self.pair# = (self.first, self.other)
--use
y = self.pair#[0](y) + self.pair#[1](y)
====
--init
self.md# = nn.ModuleDict()
for name in ("q", "v"):
    self.md#[name] = nn.Linear(4, 4)
--use
y = self.md#.q(y) + self.md#['v'](y)
====
--init
self.ml# = nn.ModuleList()
for i in range(self.n):
    self.ml# += [nn.Linear(4, 4)]
--use
y = sum(m(y) for m in self.ml#)
====
--init
self.cls# = nn.ReLU if self.n > 2 else nn.Tanh
--use
y = self.cls#()(y)
====
--init
self.w# = nn.Parameter(torch.empty(4, 4))
self.v# = nn.Parameter(torch.empty(4))
for p in (self.w#, self.v#):
    nn.init.ones_(p)
--use
y = F.linear(y, self.w#, self.v#)
====
--init
self.w# = nn.Parameter(torch.randn(2, 4, 4))
self.register_parameter("none#", None)
--use
y = torch.einsum('bi,hij->bj', y, self.w#) if self.none# is None else y
"""
