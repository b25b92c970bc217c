"""Models that keep something from one call to the next: counters, averages, queues, caches, hidden states, modes.

Each feature is what a person writes for it, with choices where there are several ways. A model has one to three of
them, some in a child; it is called several times in each mode, so that what a call leaves is seen by the next.
"""

from __future__ import annotations

import random

import torch

from tests.convert.fuzz.compare import Program
from tests.convert.fuzz.templates import chosen, indented, sections

FEATURES = """
--init
self.count# = <<0||1>>
--update
self.count# <<+= 1||= self.count# + 1||+= x.shape[0]>>
--use
<<y = y * self.count#||y = y / (self.count# + 1)||y = y + min(1.0, self.count# / 4)||y = y + x[self.count# % 3]>>
--reset
self.count# = 0
====
--init
self.register_buffer("num#", <<torch.tensor(0)||torch.zeros(1)||torch.tensor(0.0)>><<||, persistent=False>>)
--update
self.num#<< += 1||.add_(1)|| += x.size(0)||.copy_(self.num# + 1)>>
--use
<<y = y / (self.num# + 1)||y = torch.where(self.num# > 2, y, y * 2)||y = y * (1 - 0.9 ** self.num#)>>
--reset
self.num#<<.zero_()||.fill_(0)>>
====
--init
self.register_buffer("ema#", torch.<<zeros||ones>>(4))
--update
<<with torch.no_grad():
    self.ema#.mul_(0.9).add_(x.mean(0), alpha=0.1)||self.ema# = 0.9 * self.ema# + 0.1 * x.detach().mean(0)||self.ema#.data.copy_(self.ema# * 0.9 + 0.1 * x.mean(0))||with torch.no_grad():
    self.ema#.lerp_(y.mean(0), 0.1)||with torch.no_grad():
    self.ema#[:] = 0.5 * self.ema# + y.var(0, unbiased=False)>>
--use
<<y = y - self.ema#||y = y * self.ema#.sigmoid()||y = torch.where(y > self.ema#, y, y * 0.5)>>
--reset
<<self.ema#.zero_()||nn.init.zeros_(self.ema#)>>
====
--init
self.register_buffer("queue#", torch.zeros(6, 4))
self.register_buffer("ptr#", torch.zeros(1, dtype=torch.long))
--method
@torch.no_grad()
def push#(self, keys):
    b = keys.shape[0]
    p = <<int(self.ptr#)||self.ptr#.item()>>
    <<self.queue#[p:p + b] = keys||self.queue#[(p + torch.arange(b)) % 6] = keys>>
    self.ptr#[0] = (p + b) % 6
--update
self.push#(<<x||y.detach()>>)
--use
<<y = y + torch.softmax(y @ self.queue#.t(), dim=-1) @ self.queue#||y = y + self.queue#.mean(0)>>
====
--init
self.ring# = torch.zeros(5, 4)
--update
<<self.ring# = torch.cat([self.ring#[1:], x[:1].detach()])||self.ring# = torch.roll(self.ring#, 1, 0) + x.detach().mean(0)>>
--use
y = y + <<self.ring#.mean(0)||self.ring#[0] - self.ring#[-1]>>
====
--init
<<self.cache# = None||self.cache#: torch.Tensor = None>>
--forward
<<if self.cache# is None:
    self.cache# = y.detach()
else:
    self.cache# = 0.5 * self.cache# + 0.5 * y.detach()
y = y + self.cache#||if self.cache# is not None:
    y = y + self.cache#
self.cache# = y.detach()||if self.training or self.cache# is None:
    self.cache# = x.detach().mean(0)
y = y - self.cache#||self.cache# = y.detach() if self.cache# is None else torch.maximum(self.cache#, y.detach())
y = y + self.cache#>>
--reset
self.cache# = None
====
--init
self.hist# = []
--forward
<<self.hist#.append(y.detach())
if len(self.hist#) > 2:
    self.hist#.pop(0)
y = y + sum(h.mean(0) for h in self.hist#)||self.hist#.append(x.detach().mean(0))
self.hist# = self.hist#[-2:]
y = y + torch.stack(self.hist#).mean(0)>>
--reset
<<self.hist#.clear()||self.hist# = []>>
====
--init
self.places# = <<[None] * 2||[None, None]>>
--forward
for i in range(2):
    if self.places#[i] is None:
        self.places#[i] = x.detach().mean(0)
    else:
        self.places#[i] = self.places#[i] * 0.5 + i
    y = y + self.places#[i]
--reset
self.places# = [None] * 2
====
--init
self.cell# = nn.<<GRU||RNN>>Cell(4, 4)
self.h# = None
--forward
<<if self.h# is None:
    self.h# = <<torch.zeros(x.size(0), 4)||x.new_zeros(x.size(0), 4)>>
||>>
h = self.cell#(y, self.h#)
self.h# = h.detach()
y = <<h||y + h>>
--reset
self.h# = None
====
--init
self.cell# = nn.LSTM(4, 4, batch_first=True)
self.h# = None
--forward
o, self.h# = self.cell#(y.unsqueeze(1), self.h#)
self.h# = tuple(s.detach() for s in self.h#)
y = o.squeeze(1)
--reset
self.h# = None
====
--init
self.bn# = nn.BatchNorm1d(4<<||, momentum=0.3||, momentum=None||, affine=False||, track_running_stats=False||, eps=1e-3>>)
<<||self.bn#.momentum = 0.4||self.bn#.eps = 0.1||self.bn#.requires_grad_(False)||self.bn#.track_running_stats = False||self.bn#.eval()>>
--forward
<<y = self.bn#(y)||y = self.bn#(y) + self.bn#(x)||self.bn#.eval()
y = self.bn#(y)||with torch.no_grad():
    z = self.bn#(x)
y = y + z||self.bn#.train(False)
y = self.bn#(y)
self.bn#.train(self.training)>>
====
--init
self.register_buffer("rm#", torch.zeros(4))
self.register_buffer("rv#", torch.ones(4))
--forward
<<y = F.batch_norm(y, self.rm#, self.rv#, training=self.training, momentum=0.2)||if self.training:
    mean, var = y.mean(0), y.var(0, unbiased=False)
    with torch.no_grad():
        self.rm# = 0.9 * self.rm# + 0.1 * mean
        self.rv# = 0.9 * self.rv# + 0.1 * var
else:
    mean, var = self.rm#, self.rv#
y = (y - mean) / (var + 1e-5).sqrt()>>
====
--init
self.fz# = nn.Linear(4, 4)
<<for p in self.fz#.parameters():
    p.requires_grad = False||self.fz#.requires_grad_(False)||self.fz#.weight.requires_grad = False>>
--forward
<<y = y + self.fz#(x)||y = self.fz#(y) - y.detach()||with torch.no_grad():
    t# = self.fz#(x)
y = y + t#>>
====
--init
self.register_buffer("mask#", torch.<<tril||triu>>(torch.ones(4, 4))<<||, persistent=False>>)
--forward
n = y.shape[0]
s = y @ y.transpose(0, 1) / 2.0
s = <<s.masked_fill(self.mask#[:n, :n] == 0, -1e9)||s * self.mask#[:n, :n]>>
y = y + s.softmax(-1) @ y
====
--init
<<if flag:
    self.register_buffer("cb#", torch.arange(4.0))
else:
    self.cb# = None||self.register_buffer("cb#", torch.zeros(4) if flag else None)>>
--forward
if self.cb# is not None:
    y = y + self.cb#
====
--init
self.ta# = nn.Linear(4, 4)
self.tb# = nn.Linear(4, 4)
self.tb#.weight = self.ta#.weight
--forward
y = self.tb#(self.ta#(y))
====
--init
self.wn# = nn.utils.<<weight_norm||parametrizations.weight_norm>>(nn.Linear(4, 4<<||, bias=False>>))
--forward
y = self.wn#(y)
====
--top
class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(4))
        self.calls = 0

    def forward(self, t):
        self.calls += 1
        with torch.no_grad():
            self.seen += t.mean(0)
        return t + self.seen * self.calls
--init
<<self.ch# = Counter()
self.again# = <<self.ch#||Counter()>>||part# = Counter()
self.ch# = nn.ModuleList([part#, Counter()])[0]
self.again# = part#>>
--forward
y = self.ch#(y) + self.again#(x)
<<||y = y + self.ch#.calls||self.ch#.seen.mul_(0.5)||if self.ch#.calls > 2:
    y = y - 1>>
--reset
self.ch#.calls = 0
self.ch#.seen.zero_()
====
--init
for i in range(2):
    self.register_buffer(f"st#_{i}", torch.zeros(4))
--forward
for i in range(2):
    s = getattr(self, f"st#_{i}")
    y = y + s
    <<setattr(self, f"st#_{i}", s + 1)||s.add_(1)||s += 1||s[0] = 1>>
====
--init
self.register_buffer("acc#", torch.zeros(4))
self._n# = 0
--method
@property
def avg#(self):
    return self.acc# / max(self._n#, 1)

def add#(self, t):
    self.acc# <<+= t.detach().sum(0)||= self.acc# + t.detach().sum(0)>>
    self._n# += t.shape[0]
--forward
self.add#(x)
y = y + self.avg#
--reset
self.acc#.zero_()
self._n# = 0
====
--init
self.on# = nn.Linear(4, 4)
self.tg# = nn.Linear(4, 4)
self.tg#.requires_grad_(False)
--forward
<<for p, q in zip(self.on#.parameters(), self.tg#.parameters()):
    q.data.mul_(0.9).add_(p.data, alpha=0.1)||with torch.no_grad():
    for p, q in zip(self.on#.parameters(), self.tg#.parameters()):
        q.copy_(0.9 * q + 0.1 * p)||with torch.no_grad():
    self.tg#.weight.mul_(0.9).add_(0.1 * self.on#.weight)>>
with torch.no_grad():
    t = self.tg#(x)
y = self.on#(y) - t
====
--init
self.loc# = nn.Parameter(torch.zeros(4))
<<self.made# = False||self.register_buffer("made#", torch.tensor(False))>>
--forward
if not self.made#:
    with torch.no_grad():
        self.loc#.data.copy_(-y.mean(0))
    <<self.made# = True||self.made# = self.made# | True>>
y = y + self.loc#
====
--init
self.tn# = nn.BatchNorm1d(4)
--method
def train(self, mode=True):
    super().train(mode)
    <<self.tn#.eval()||self.tn#.train(False)||if mode:
        for m in self.modules():
            if isinstance(m, nn.BatchNorm1d):
                m.eval()>>
    return self
--forward
y = self.tn#(y)
====
--init
self.drop# = <<nn.Dropout(0.0)||nn.Dropout(1.0)||nn.Dropout(0.0) if flag else nn.Identity()>>
<<||self.drop#.p = 1.0||for m in self.modules():
    if isinstance(m, nn.Dropout):
        m.p = 1.0>>
--forward
y = self.drop#(y)
====
--init
self.register_buffer("al#", torch.zeros(3, 4))
--forward
<<self.al#.copy_(x)
self.al#[0].zero_()||v# = self.al#[0]
v#.add_(1)||old# = self.al#
self.al# = self.al# + 1
y = y + old#||old# = self.al#.clone()
self.al#.add_(1)
y = y + old#>>
y = y + self.al#.sum(0)
"""


def program(seed: int) -> Program:
    """A model of one to three features, perhaps some of them in a child."""
    draw = random.Random(seed)
    texts = draw.sample(FEATURES.split("===="), draw.randint(1, 3))
    if sum("def train(" in text for text in texts) > 1:
        texts = texts[:1]
    parts = [_feature(text, str(place), draw) for place, text in enumerate(texts)]
    top = dict.fromkeys("\n".join(part["top"]) for part in parts if "top" in part)
    inner = parts[:1] if len(parts) > 1 and draw.random() < 0.4 else []
    classes = list(top)
    init, forward = [], []
    if inner:
        classes.append(_class("Part", inner, [], []))
        init = [draw.choice(["self.part = Part()", "self.part = nn.Sequential(Part(), nn.ReLU())"])]
        forward = [draw.choice(["y = self.part(y)", "y = y + self.part(x)"])]
    own = parts[len(inner) :]
    classes.append(_class("M", own, init, forward))
    calls = ["m(x)", "m(z)"]
    if any("reset" in part for part in own) and draw.random() < 0.5:
        calls += ["m.reset()", "m(x)"]
    return Program(
        source="\n\n\n".join(classes) + "\n",
        made=draw.choice(["M()", "M(flag=False)"]),
        calls=calls,
        inputs={"x": torch.randn(3, 4), "z": torch.rand(3, 4) + 0.2},
        modes=draw.choice([(False, True), (True, False), (True, True, False)]),
    )


def _feature(text: str, number: str, draw: random.Random) -> dict[str, list[str]]:
    """The sections of a feature; what updates it may stand before or after its use, or only in training."""
    made = sections(chosen(text, draw).replace("#", number))
    if "update" in made:
        update, use = made["update"], made["use"]
        if draw.random() < 0.4:
            update = ["if self.training:", *indented(update)]
        made["forward"] = update + use if draw.random() < 0.6 else use + update
    return made


def _class(
    name: str, parts: list[dict[str, list[str]]], init: list[str], forward: list[str]
) -> str:
    def of(section: str) -> list[str]:
        return [line for part in parts for line in part.get(section, ())]

    lines = ["def __init__(self, flag=True):", "    super().__init__()"]
    lines += indented(["self.fc = nn.Linear(4, 4)", *init, *of("init")])
    for part in parts:
        lines += ["", *part.get("method", ())]
    if of("reset"):
        lines += ["", "def reset(self):", *indented(of("reset"))]
    lines += ["", "def forward(self, x):", "    y = self.fc(x)"]
    lines += indented([*forward, *of("forward"), "return y"])
    return "\n".join([f"class {name}(nn.Module):", *indented(lines)])
