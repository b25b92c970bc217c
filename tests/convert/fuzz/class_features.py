"""What models do with classes and functions of their files: the first section is named by what it needs, then what the constructor makes, and its use."""

from __future__ import annotations

FEATURES = """
--reg
self.r# = REGISTRY["lin"](4, 4)
--use
y = self.r#(y)
====
--reg
self.r# = REGISTRY["norm"](4)
--use
y = self.r#(y)
====
--reg
self.r# = nn.ModuleList([REGISTRY[n](*s) for n, s in (("lin", (4, 4)), ("norm", (4,)))])
--use
for m in self.r#:
    y = m(y)
====
--cfg
cfg = cfg or Config()
self.cfg = cfg
self.f# = nn.Linear(cfg.dim, cfg.inner, bias=cfg.bias)
self.g# = nn.Linear(cfg.inner, cfg.half * 2)
--use
y = self.g#(getattr(F, self.cfg.act)(self.f#(y))) * self.cfg.scale
====
--cfg
cfg# = Config(depth=3, bias=False)
self.f# = nn.Sequential(*[nn.Linear(cfg#.dim, cfg#.dim, bias=cfg#.bias) for _ in range(cfg#.depth)])
self.s# = cfg#.sizes[-1]
--use
y = self.f#(y) + self.s#
====
--nt
size = Size(4, out=4)
self.inner# = nn.Linear(*size)
self.size# = size
--use
o# = Out(self.inner#(y))
y = o#.y * o#.k + self.size#.out
====
--enum
self.e# = Act.RELU
self.el# = self.e#.layer()
--use
if self.e# == Act.RELU:
    y = self.el#(y) + 1
====
--enum
self.e# = {"relu": nn.ReLU, "tanh": nn.Tanh}[Act.TANH.value]()
--use
y = self.e#(y)
====
--base
self.b# = Base()
--use
y = self.b#(y)
====
--base
self.b# = Child(4)
--use
y = self.b#(y) + len(self.b#.names)
====
--base
self.b# = GrandChild(gain=3)
--use
y = self.b#(y)
====
--base
self.b# = GrandChild()
self.b#.proj = nn.Identity()
--use
y = self.b#(y)
====
--base
self.b# = Child()
del self.b#.fc_r
self.b#.names = ["p"]
--use
y = self.b#(y)
====
--mix
self.m# = MixLin(4, 4, gain=2)
--use
y = self.m#(y)
====
--mix
self.m# = MixLin(4, 4, bias=False)
self.m#.scale = 0.5
--use
y = self.m#(y) + (0 if self.m#.bias is None else 1)
====
--seq
self.s# = Stack(4)
--use
y = self.s#(y) * self.s#.n
====
--seq
self.s# = Stack(4, 3, nn.Tanh, nn.LayerNorm)
--use
y = self.s#[0](y) + self.s#[-1](y) + self.s#(y)
====
--seq
self.s# = Stack(4, 3, norm_layer=partial(nn.LayerNorm, eps=1e-3))
self.s#.append(nn.Linear(4, 4))
--use
y = self.s#(y) + len(self.s#)
====
--seq
self.s# = Stack(4, act=partial(nn.LeakyReLU, 0.2))
self.s#[1] = nn.Identity()
--use
for layer in self.s#:
    y = layer(y)
====
--lst
self.l# = Bank(4, 3)
--use
y = self.l#(y)
====
--lst
self.l# = Bank(4, 2)
self.l#.append(nn.Linear(4, 4))
self.l#.insert(0, nn.Tanh())
--use
y = self.l#(y) + self.l#[1](y)
====
--lst
self.l# = Bank(4, 3)
self.l#.pop(1)
--use
y = self.l#(y)
====
--lst
self.l# = Bank(4, 3)
self.l#.gain = 0.5
self.l#.extend([nn.Linear(4, 4, bias=False)])
--use
y = self.l#(y)
====
--dct
self.h# = Heads({"a": 1, "b": 3})
--use
y = self.h#(y)
====
--dct
self.h# = Heads(dict(a=2))
self.h#.update({"b": nn.Linear(4, 2)})
--use
y = self.h#(y) + (1 if 'b' in self.h# else 0)
====
--dct
self.h# = Heads(dict(a=2, b=2))
self.h#["c"] = nn.Linear(4, 4)
--use
y = self.h#['c'](y) + sum(len(n) for n in self.h#)
====
--cls
self.c# = Made.square(4, gain=2)
--use
y = self.c#(y) + self.c#.out
====
--cls
self.c# = Deeper.square(4, layers=[nn.Linear(4, 4), nn.ReLU()])
--use
y = self.c#(y) + self.c#[0](y) * len(self.c#)
====
--cls
self.c# = Deeper(4, out=4)
self.c#.reset_parameters()
--use
y = Made.squash(self.c#(x=y))
====
--mk
self.k# = make_layer("linear", 4, 4, bias=False)
--use
y = self.k#(y)
====
--mk
self.k# = make_layer("ln", (4,), eps=1e-2)
--use
y = self.k#(y)
====
--mk
self.k# = mlp(4, 8, 4)
--use
y = self.k#(y)
====
--mk
self.k# = mlp(*[4] * 3, act=nn.GELU, last=True)
--use
y = self.k#(y)
====
--mk
self.k# = get_clones(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), 2)
--use
for m in self.k#[::-1]:
    y = m(y)
====
--res
self.p# = Residual(nn.Linear(4, 4))
--use
y = self.p#(y)
====
--res
self.p# = Residual(nn.Linear(4, 4), 0.5)
--use
y = self.p#(y) * self.p#.fn.in_features
====
--res
self.p# = Residual(nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 4)), alpha=0.1)
--use
y = self.p#(y)
====
--abc
self.o# = LinOp(4)
self.s# = Square()
--use
y = self.s#.twice(self.o#(y) * 0.1)
====
--abc
self.o# = NormOp(dim=4)
--use
y = self.o#(y) / self.o#.width
====
--gen
self.h# = Holder(nn.Linear(4, 4), 0.5)
--use
y = self.h#(y)
====
--gen
self.h# = Holder[nn.Module](nn.Sequential(nn.Linear(4, 4), nn.Tanh()))
--use
y = self.h#(y) * self.h#.scale
====
--gen
self.h#: Callable2 = nn.Linear(4, 4)
--use
y = self.h#(y)
====
--out
self.t# = Trunk(4)
--use
y = sum(self.t#(y, all=True))
====
--out
self.t# = Trunk(4, depth=3)
--use
o# = self.t#(y)
y = o#.last + o#.hidden[0] + (0 if o#.loss is None else o#.loss)
====
--out
self.t# = Trunk(4, 1)
--use
last, hidden, *_ = self.t#(y)
y = last * len(hidden)
====
--out
self.t# = Trunk(4)
--use
y = self.t#.run(y).total()
====
--out
self.t# = Trunk(4)
--use
o# = self.t#.run(y)
o#.y = o#.y * 2
o#.parts.append(y)
y = o#.total() + o#.extra['n']
====
--fns
--use
y = scale_(y.clone(), 0.5)
====
--fns
self.k# = 3
--use
z# = y * 1
scale_(z#, self.k#)
y = y + z#
====
--fns
--use
z# = y + 0
add_to(z#, x)
y = z# * y
====
--fns
self.fs# = [torch.tanh, F.relu, clip]
--use
y = fold(self.fs#, y)
====
--fns
self.fs# = nn.ModuleList([nn.Linear(4, 4), nn.Tanh()])
--use
y = fold(self.fs#, y)
====
--fns
--use
y, z# = nested((y, {'a': [x]}))
y = y + z#['a'][0]
====
--fns
--use
y = power(torch.tanh, 3)(y)
====
--fns
self.lo# = partial(clip, lo=-0.5)
--use
y = self.lo#(y) + clip(y, hi=0.1)
====
--stat
self.st# = Stats(4)
--use
y = self.st#(y)
====
--stat
self.st# = Stats(4)
--use
y = self.st#(y) * (1 + self.st#.steps)
====
--three
self.c# = C0(4)
--use
y = self.c#(y)
====
--three
self.c# = C0.small(norm=False, k=3)
--use
y = self.c#(y)
====
--three
self.c# = C0.from_config({"dim": 4, "hid": 3})
--use
y = self.c#(y) + (1 if self.c#.kind == 'c' else 2)
====
--three
self.c# = B0(4, 6)
self.c#.opts["k"] = 2
--use
y = self.c#(y)
====
--prop
self.p# = Prop(4)
self.p#.gain = 0.5
--use
y = self.p#(y)
====
--prop
self.p# = Prop(4)
--use
y = self.p#(y, twice=True) * self.p#.gain
====
--wrap
self.w# = Wrap(nn.Linear(4, 4))
--use
y = self.w#(y) * self.w#.in_features
====
--wrap
self.w# = Wrap(nn.Linear(4, 4), extra=2)
--use
y = self.w#(y) + self.w#.weight.sum()
====
--regs
self.r# = BLOCKS.get("res")(4)
--use
y = self.r#(y)
====
--regs
self.r# = BLOCKS.build(dict(type="PlainBlock", dim=4, act="gelu"))
--use
y = self.r#(y)
====
--regs
self.r# = BLOCKS.build({"type": "res"}, act=None)
--use
y = self.r#(y)
====
--regs
self.r# = nn.ModuleList([BLOCKS.build(dict(type=t, dim=4)) for t in ("res", "PlainBlock") if t in BLOCKS])
--use
for r in self.r#:
    y = r(y)
====
--regs
self.a# = get_act(nn.LeakyReLU, negative_slope=0.3)
--use
y = self.a#(y)
====
--regs
self.a# = nn.ModuleDict({n: get_act(n) for n in ("relu", "none")})
--use
y = self.a#['relu'](y) + self.a#['none'](y)
====
--nest
self.inner# = Outer()
--use
y = self.inner#(y)
====
--nest
self.inner# = Outer.Inner(4)
self.inner#.gain = 3
--use
y = self.inner#(y)
====
--emb
self.lm# = LM()
--use
y = y + self.lm#(torch.arange(3))[:, :4]
====
--emb
self.lm# = LM(tie=False)
self.lm#.tie_weights()
--use
y = y + self.lm#(torch.tensor([0, 2, 4]))[:, 1:]
====
--emb
self.lm# = LM()
self.lm#.mid.weight = self.first.weight
--use
y = y * self.lm#(torch.arange(3)).mean()
====
--emb
self.em# = Embed(5, 4)
self.hd# = nn.Linear(4, 5, bias=False)
self.hd#.weight = self.em#.weight
--use
y = y + self.em#(torch.arange(3)) + self.hd#(y)[..., :4] + self.em#.logits(y)[:, :1]
====
--emb
self.lm# = LM(tie=False)
self.lm#.set_input_embeddings(nn.Embedding(5, 4))
--use
y = y + self.lm#(torch.arange(3)).sum() + self.lm#.get_input_embeddings().weight[0]
====
--plainmix
self.mx# = Mixed(4)
--use
y = self.mx#(y)
====
--plainmix
self.mx# = Mixed(4)
--use
y = self.mx#(y) * self.mx#.alpha + len(self.mx#.describe())
====
--part
self.pb# = PBlock(4)
--use
y = self.pb#(y)
====
--part
self.pb# = PBlock(4, norm_layer=Norm, act_layer=nn.Tanh, mlp=block_of())
--use
y = self.pb#(y)
====
--part
self.pb# = nn.Sequential(*[PBlock(4, Norm, mlp=lambda d: Conv1(d, d)) for _ in range(2)])
--use
y = self.pb#(y)
====
--part
self.pb# = block_of(act_layer=partial(nn.GELU, approximate="tanh"))(4)
--use
y = self.pb#(y)
====
--tree
self.tr# = Tree(1)
--use
y = self.tr#(y) * self.tr#.count()
====
--tree
self.tr# = Tree(depth=2)
self.tr#.left = nn.Identity()
--use
y = self.tr#(y)
====
--initial
self.apply(init_weights)
--use
y = y * 1
====
--initial
self.apply(partial(init_weights, std=0.1))
--use
y = y * 1
====
--initial
self.fz# = freeze(nn.Linear(4, 4))
--use
y = self.fz#(y)
====
--initial
self.fz# = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Sequential(nn.ReLU(), nn.Linear(4, 4)))
replace_act(self.fz#)
--use
y = self.fz#(y)
====
--initial
self.np# = count_params(self)
--use
y = y + self.np# * 0.01
====
--seqs
self.sq# = Block2(4, nn.Tanh)
--use
y = self.sq#(y) + self.sq#[0](y)
====
--seqs
self.sq# = Named(4)
--use
y = self.sq#(y) + self.sq#.fc(y)
====
--seqs
self.sq# = Chain(Block2(4) for _ in range(2))
--use
y = self.sq#(y)
====
--seqs
self.sq# = Chain([nn.Linear(4, 4)])
self.sq#.append(nn.Tanh())
--use
y = self.sq#(y) + len(self.sq#)
====
--seqs
self.sq# = Branches({"a": nn.Linear(4, 4), "b": nn.Identity()})
--use
o# = self.sq#(y)
y = o#['a'] * o#['b']
====
--seqs
self.sq# = nn.ModuleDict()
for i in range(2):
    self.sq#[f"n_{i}"] = Block2(4)
--use
y = sum(self.sq#[n](y) for n in sorted(self.sq#))
====
--seqs
self.sq# = nn.ModuleDict({str(i): nn.Linear(4, 4) for i in range(3)})
--use
y = self.sq#[str(self.n % 3)](y)
====
--attn
self.at# = Attn(4)
--use
y = y + self.at#(y[None])[0]
====
--attn
self.at# = Attn(4, heads=1)
--use
y = self.at#(y[None], context=x.unsqueeze(0)).squeeze(0)
====
--conf
self.cf# = ConfModel(Conf())
--use
y = self.cf#(y)
====
--conf
self.cf# = ConfModel(Conf.from_dict(dict(layers=1, act=torch.tanh, eps=1e-3)))
--use
o# = self.cf#(y, output_hidden=True)
y = o#[0] + o#[1][-1]
====
--conf
self.cf# = ConfModel.config_class(hidden=4)
self.cm# = ConfLayer(self.cf#, 1)
--use
y, = self.cm#(y)
y = y * len(self.cf#.to_dict())
"""
