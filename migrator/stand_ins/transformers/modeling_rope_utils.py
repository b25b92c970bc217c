"""Frequencies of rotary position embeddings, by the names that configurations give them."""

import math
from functools import wraps

import torch


def dynamic_rope_update(rope_forward):
    """Call an embedding with the frequencies for the places it is asked for."""

    @wraps(rope_forward)
    def wrapper(self, x, position_ids):
        if "dynamic" in self.rope_type:
            raise NotImplementedError(
                "frequencies that grow with the longest text are not converted"
            )
        if self.rope_type == "longrope":
            most = getattr(self.config, "original_max_position_embeddings", None)
            if most is None:
                most = self.config.max_position_embeddings
            far, _ = self.rope_init_fn(self.config, None, seq_len=most + 1)
            is_far = torch.max(position_ids) + 1 > most
            self.inv_freq = torch.where(is_far, far, self.original_inv_freq)
        return rope_forward(self, x, position_ids)

    return wrapper


def _turned(config):
    """How much of each head turns."""
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return int(size * getattr(config, "partial_rotary_factor", 1.0))


def _powers(base, dim):
    return base ** (torch.arange(0, dim, 2, dtype=torch.int64).to(torch.float) / dim)


def _default(config, device=None, seq_len=None):
    return 1.0 / _powers(config.rope_theta, _turned(config)), 1.0


def _linear(config, device=None, seq_len=None):
    frequencies, scaling = _default(config)
    return frequencies / config.rope_scaling["factor"], scaling


def _dynamic(config, device=None, seq_len=None):
    dim, most = _turned(config), config.max_position_embeddings
    factor = config.rope_scaling["factor"]
    length = most if seq_len is None else max(seq_len, most)
    grown = ((factor * length / most) - (factor - 1)) ** (dim / (dim - 2))
    return 1.0 / _powers(config.rope_theta * grown, dim), 1.0


def _scale(factor, mscale=1):
    return 1.0 if factor <= 1 else 0.1 * mscale * math.log(factor) + 1.0


def _yarn(config, device=None, seq_len=None):
    """Peng et al., YaRN: Efficient Context Window Extension of Large Language Models, 2023."""
    base, dim, options = config.rope_theta, _turned(config), config.rope_scaling
    factor, scaling = options["factor"], options.get("attention_factor")
    mscale, every = options.get("mscale"), options.get("mscale_all_dim")
    most = options.get("original_max_position_embeddings") or config.max_position_embeddings
    if scaling is None:
        scaling = _scale(factor)
        if mscale and every:
            scaling = float(_scale(factor, mscale) / _scale(factor, every))
    turns = options.get("beta_fast") or 32, options.get("beta_slow") or 1
    low, high = (
        dim * math.log(most / (number * 2 * math.pi)) / (2 * math.log(base)) for number in turns
    )
    if options.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    if low == high:
        high += 0.001
    ramp = torch.clamp((torch.arange(dim // 2, dtype=torch.float32) - low) / (high - low), 0, 1)
    kept = 1 - ramp
    powers = _powers(base, dim)
    return 1.0 / (factor * powers) * (1 - kept) + 1.0 / powers * kept, scaling


def _longrope(config, device=None, seq_len=None):
    """Ding et al., LongRoPE: Extending LLM Context Window Beyond 2 Million Tokens, 2024."""
    options, dim = config.rope_scaling, _turned(config)
    factor, scaling = options.get("factor"), options.get("attention_factor")
    most = getattr(config, "original_max_position_embeddings", None)
    if most:
        factor = config.max_position_embeddings / most
    else:
        most = config.max_position_embeddings
    if scaling is None:
        scaling = 1.0 if factor <= 1.0 else math.sqrt(1 + math.log(factor) / math.log(most))
    is_far = seq_len is not None and seq_len > most
    factors = torch.tensor(
        options["long_factor"] if is_far else options["short_factor"], dtype=torch.float32
    )
    return 1.0 / (factors * _powers(config.rope_theta, dim)), scaling


def _llama3(config, device=None, seq_len=None):
    frequencies, scaling = _default(config)
    options = config.rope_scaling
    factor, most = options["factor"], options["original_max_position_embeddings"]
    low, high = options["low_freq_factor"], options["high_freq_factor"]
    length = 2 * math.pi / frequencies
    slowed = torch.where(length > most / low, frequencies / factor, frequencies)
    smooth = (most / length - low) / (high - low)
    between = (1 - smooth) * slowed / factor + smooth * slowed
    is_between = ~(length < most / high) & ~(length > most / low)
    return torch.where(is_between, between, slowed), scaling


ROPE_INIT_FUNCTIONS = {
    "default": _default,
    "linear": _linear,
    "dynamic": _dynamic,
    "yarn": _yarn,
    "longrope": _longrope,
    "llama3": _llama3,
}
