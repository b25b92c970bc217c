"""Keys and values of the tokens that were seen, kept for those that come."""

from functools import partial

import torch
from torch.utils._pytree import register_pytree_node

_TENSORS = ("keys", "values", "layers", "self_attention_cache", "cross_attention_cache")


def _taken_apart(one):
    every = vars(one).items()
    held = {n: value for n, value in every if n in _TENSORS or isinstance(value, torch.Tensor)}
    rest = {n: value for n, value in every if n not in held}
    return list(held.values()), (list(held), rest)


def _made(cls, values, context):
    names, rest = context
    one = object.__new__(cls)
    vars(one).update(rest)
    vars(one).update(zip(names, values, strict=True))
    return one


class DynamicLayer:
    """What one layer keeps, (batch, heads, length, size): all that it was given."""

    is_compileable = False
    is_sliding = False

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        register_pytree_node(cls, _taken_apart, partial(_made, cls))

    def __init__(self):
        self.keys = None
        self.values = None

    @property
    def is_initialized(self):
        """Whether anything was given."""
        return self.keys is not None

    def update(self, key_states, value_states, cache_kwargs=None):
        """Take what is new; all keys and values there are now."""
        if self.keys is None:
            self.keys, self.values = key_states, value_states
        else:
            self.keys = torch.cat([self.keys, key_states], dim=-2)
            self.values = torch.cat([self.values, value_states], dim=-2)
        return self.keys, self.values

    def get_mask_sizes(self, cache_position):
        """How many keys there will be, and the place of the first."""
        return self.get_seq_length() + cache_position.shape[0], 0

    def get_seq_length(self):
        """How many tokens were seen."""
        return 0 if self.keys is None else self.keys.shape[-2]

    def get_max_cache_shape(self):
        """There is no most."""
        return -1

    def reorder_cache(self, beam_idx):
        """Take other rows of the batch."""
        if self.keys is not None:
            self.keys = self.keys.index_select(0, beam_idx)
            self.values = self.values.index_select(0, beam_idx)

    def crop(self, max_length):
        """Keep the first tokens; those but the last of a negative number."""
        length = self.get_seq_length()
        if max_length < 0:
            max_length = length + max_length
        if length > max_length:
            self.keys = self.keys[..., :max_length, :]
            self.values = self.values[..., :max_length, :]

    def batch_repeat_interleave(self, repeats):
        """Each row of the batch a number of times."""
        if self.keys is not None:
            self.keys = self.keys.repeat_interleave(repeats, dim=0)
            self.values = self.values.repeat_interleave(repeats, dim=0)

    def batch_select_indices(self, indices):
        """Some rows of the batch."""
        if self.keys is not None:
            self.keys = self.keys[indices, ...]
            self.values = self.values[indices, ...]


class DynamicSlidingWindowLayer(DynamicLayer):
    """What a layer keeps that looks back a number of tokens only."""

    is_sliding = True

    def __init__(self, sliding_window):
        super().__init__()
        self.sliding_window = sliding_window
        self.cumulative_length = 0

    def update(self, key_states, value_states, cache_kwargs=None):
        """Take what is new; what was kept and what is new."""
        self.cumulative_length += key_states.shape[-2]
        keys, values = key_states, value_states
        if self.keys is not None:
            keys = torch.cat([self.keys, key_states], dim=-2)
            values = torch.cat([self.values, value_states], dim=-2)
        self.keys = keys[:, :, -self.sliding_window + 1 :, :]
        self.values = values[:, :, -self.sliding_window + 1 :, :]
        return keys, values

    def get_mask_sizes(self, cache_position):
        """How many keys there will be, and the place of the first."""
        query_length = cache_position.shape[0]
        offset = max(self.cumulative_length - self.sliding_window + 1, 0)
        if self.cumulative_length >= self.sliding_window:
            return self.sliding_window - 1 + query_length, offset
        return self.cumulative_length + query_length, offset

    def get_seq_length(self):
        """How many tokens were seen."""
        return self.cumulative_length

    def get_max_cache_shape(self):
        """How far it looks back."""
        return self.sliding_window

    def crop(self, max_length):
        """As of other layers, as long as nothing was let go."""
        if self.get_seq_length() >= self.sliding_window:
            raise ValueError("a layer that has let go of tokens cannot be cut")
        super().crop(max_length)
        self.cumulative_length = self.keys.shape[-2]


register_pytree_node(DynamicLayer, _taken_apart, partial(_made, DynamicLayer))


class Cache:
    """What each layer keeps."""

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        register_pytree_node(cls, _taken_apart, partial(_made, cls))

    def __init__(self, layers=None, layer_class_to_replicate=None):
        self.layers = layers if layers is not None else []
        self.layer_class_to_replicate = layer_class_to_replicate

    def update(self, key_states, value_states, layer_idx, cache_kwargs=None):
        """Take what is new to a layer; the keys and values that it looks at."""
        if self.layer_class_to_replicate is not None:
            while len(self.layers) <= layer_idx:
                self.layers.append(self.layer_class_to_replicate())
        return self.layers[layer_idx].update(key_states, value_states, cache_kwargs)

    def get_seq_length(self, layer_idx=0):
        """How many tokens a layer has seen."""
        if layer_idx >= len(self.layers):
            return 0
        return self.layers[layer_idx].get_seq_length()

    def get_usable_length(self, new_seq_length, layer_idx=0):
        """As above, where there is no most."""
        return self.get_seq_length(layer_idx)

    def get_mask_sizes(self, cache_position, layer_idx):
        """How many keys a layer will look at, and the place of the first."""
        if layer_idx >= len(self.layers):
            return cache_position.shape[0], 0
        return self.layers[layer_idx].get_mask_sizes(cache_position)

    def get_max_cache_shape(self, layer_idx=0):
        """How many tokens a layer keeps at most; -1 where there is no most."""
        if layer_idx >= len(self.layers):
            return -1
        return self.layers[layer_idx].get_max_cache_shape()

    def get_max_length(self):
        """As above, by its older name."""
        return None

    def reorder_cache(self, beam_idx):
        """Take other rows of the batch."""
        for layer in self.layers:
            layer.reorder_cache(beam_idx)

    def crop(self, max_length):
        """Keep the first tokens."""
        for layer in self.layers:
            layer.crop(max_length)

    def batch_repeat_interleave(self, repeats):
        """Each row of the batch a number of times."""
        for layer in self.layers:
            layer.batch_repeat_interleave(repeats)

    def batch_select_indices(self, indices):
        """Some rows of the batch."""
        for layer in self.layers:
            layer.batch_select_indices(indices)

    @property
    def is_compileable(self):
        """Whether the sizes of all layers stay as they are."""
        return False

    @property
    def is_initialized(self):
        """Whether all layers were given something."""
        return len(self.layers) > 0 and all(layer.is_initialized for layer in self.layers)

    @property
    def is_sliding(self):
        """Whether a layer looks back a number of tokens only, for each."""
        return [layer.is_sliding for layer in self.layers]

    @property
    def key_cache(self):
        """The keys of each layer, as older releases have them."""
        return tuple(layer.keys for layer in self.layers)

    @property
    def value_cache(self):
        """The values of each layer, as older releases have them."""
        return tuple(layer.values for layer in self.layers)

    def __getitem__(self, layer_idx):
        if layer_idx >= len(self.layers):
            raise KeyError(f"a cache of {len(self.layers)} layers has no layer {layer_idx}")
        return self.layers[layer_idx].keys, self.layers[layer_idx].values

    def __iter__(self):
        for layer in self.layers:
            yield layer.keys, layer.values

    def __len__(self):
        return len(self.layers)


class DynamicCache(Cache):
    """What each layer keeps, as long as it gets."""

    def __init__(self, ddp_cache_data=None, config=None):
        layers = []
        if config is not None:
            decoder = config.get_text_config(decoder=True)
            window = getattr(decoder, "sliding_window", None)
            window = window or getattr(decoder, "attention_chunk_size", None)
            kinds = getattr(decoder, "layer_types", None)
            if kinds is None:
                kind = "full_attention" if window is None else "sliding_attention"
                kinds = [kind] * decoder.num_hidden_layers
            if hasattr(decoder, "num_kv_shared_layers"):
                kinds = kinds[: -decoder.num_kv_shared_layers]
            for kind in kinds:
                if kind in ("sliding_attention", "chunked_attention"):
                    layers.append(DynamicSlidingWindowLayer(sliding_window=window))
                else:
                    layers.append(DynamicLayer())
        for layer_idx, (keys, values) in enumerate(ddp_cache_data or ()):
            if config is None:
                layers.append(DynamicLayer())
            layers[layer_idx].update(keys, values)
        if layers:
            super().__init__(layers=layers)
        else:
            super().__init__(layer_class_to_replicate=DynamicLayer)

    def to_legacy_cache(self):
        """The keys and values of each layer."""
        return tuple((layer.keys, layer.values) for layer in self.layers)

    @classmethod
    def from_legacy_cache(cls, past_key_values=None):
        """A cache of the keys and values of each layer."""
        cache = cls()
        if past_key_values is not None:
            for layer_idx, (keys, values) in enumerate(past_key_values):
                cache.update(keys, values, layer_idx)
        return cache


class EncoderDecoderCache(Cache):
    """What the layers of a decoder keep of themselves, and of the encoder."""

    def __init__(self, *caches):
        super().__init__()
        if len(caches) == 1:
            self.self_attention_cache, self.cross_attention_cache = DynamicCache(), DynamicCache()
            for layer_idx, several in enumerate(caches[0]):
                self.self_attention_cache.update(several[0], several[1], layer_idx)
                if len(several) > 2:
                    self.cross_attention_cache.update(several[2], several[3], layer_idx)
        else:
            self.self_attention_cache, self.cross_attention_cache = caches
        self.is_updated = {}
        for layer_idx in range(len(self.cross_attention_cache)):
            self.is_updated[layer_idx] = self.cross_attention_cache.get_seq_length(layer_idx) > 0

    def __getitem__(self, layer_idx):
        own, other = self.self_attention_cache, self.cross_attention_cache
        return (*own[layer_idx], *other[layer_idx])

    def __iter__(self):
        for layer_idx in range(len(self)):
            yield self[layer_idx]

    def __len__(self):
        return len(self.self_attention_cache)

    def to_legacy_cache(self):
        """The keys and values of each layer, and those of the encoder behind them."""
        own = self.self_attention_cache.to_legacy_cache()
        if len(self.cross_attention_cache) == 0:
            return own
        other = self.cross_attention_cache.to_legacy_cache()
        return tuple(a + b for a, b in zip(own, other, strict=False))

    @classmethod
    def from_legacy_cache(cls, past_key_values):
        """A cache of the keys and values of each layer, of itself and of the encoder."""
        cache = cls(DynamicCache(), DynamicCache())
        for layer_idx, several in enumerate(past_key_values or ()):
            cache.self_attention_cache.update(several[0], several[1], layer_idx)
            if len(several) > 2:
                cache.cross_attention_cache.update(several[2], several[3], layer_idx)
                cache.is_updated[layer_idx] = True
        return cache

    def get_seq_length(self, layer_idx=0):
        """How many tokens a layer has seen of itself."""
        return self.self_attention_cache.get_seq_length(layer_idx)

    def reorder_cache(self, beam_idx):
        """Take other rows of the batch."""
        self.self_attention_cache.reorder_cache(beam_idx)
        self.cross_attention_cache.reorder_cache(beam_idx)

    def crop(self, maximum_length):
        """Keep the first tokens, not of the encoder's."""
        self.self_attention_cache.crop(maximum_length)

    def batch_repeat_interleave(self, repeats):
        """Each row of the batch a number of times."""
        self.self_attention_cache.batch_repeat_interleave(repeats)
        self.cross_attention_cache.batch_repeat_interleave(repeats)

    def batch_select_indices(self, indices):
        """Some rows of the batch."""
        self.self_attention_cache.batch_select_indices(indices)
        self.cross_attention_cache.batch_select_indices(indices)

    def get_max_cache_shape(self, layer_idx=0):
        """How many tokens a layer keeps at most; -1 where there is no most."""
        return self.self_attention_cache.get_max_cache_shape(layer_idx)

    def get_mask_sizes(self, cache_position, layer_idx):
        """How many keys a layer will look at, and the place of the first."""
        return self.self_attention_cache.get_mask_sizes(cache_position, layer_idx)

    @property
    def is_sliding(self):
        """Whether a layer looks back a number of tokens only, for each."""
        return self.self_attention_cache.is_sliding


class StaticCache(Cache):
    """Not converted: generation of transformers writes into a cache of one size."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("StaticCache of transformers is not converted")
