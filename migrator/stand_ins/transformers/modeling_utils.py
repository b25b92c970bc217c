"""The base of models that have a configuration."""

import torch
from torch import nn


def sdpa_attention_forward(
    module, query, key, value, attention_mask, dropout=0.0, scaling=None, is_causal=None, **kwargs
):
    """Attention by torch's function, (batch, heads, length, size) → (batch, length, heads, size), and no weights."""
    groups = getattr(module, "num_key_value_groups", None)
    if groups is not None and key.shape[1] != query.shape[1]:
        key = key.repeat_interleave(groups, dim=1)
        value = value.repeat_interleave(groups, dim=1)
    if attention_mask is not None and attention_mask.dim() == 4:
        attention_mask = attention_mask[:, :, :, : key.shape[-2]]
    if is_causal is None:
        causal = query.shape[2] > 1 and attention_mask is None
        is_causal = causal and getattr(module, "is_causal", True)
    output = nn.functional.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=attention_mask,
        dropout_p=dropout,
        scale=scaling,
        is_causal=is_causal,
    )
    return output.transpose(1, 2).contiguous(), None


def token_loss(source, target, num_items_in_batch=None, ignore_index=-100):
    """Cross entropy of (places, classes): the mean, or the sum over a number of items."""
    if num_items_in_batch is None:
        return nn.functional.cross_entropy(source, target, ignore_index=ignore_index)
    summed = nn.functional.cross_entropy(source, target, ignore_index=ignore_index, reduction="sum")
    return summed / num_items_in_batch


def causal_loss(
    logits,
    labels,
    vocab_size,
    num_items_in_batch=None,
    ignore_index=-100,
    shift_labels=None,
    **kwargs,
):
    """Cross entropy of the token that comes next, (batch, length, vocabulary) and (batch, length)."""
    logits = logits.float()
    if shift_labels is None:
        labels = nn.functional.pad(labels, (0, 1), value=ignore_index)
        shift_labels = labels[..., 1:].contiguous()
    logits = logits.view(-1, vocab_size)
    return token_loss(logits, shift_labels.view(-1), num_items_in_batch, ignore_index)


def masked_loss(logits, labels, vocab_size, num_items_in_batch=None, ignore_index=-100, **kwargs):
    """Cross entropy of the tokens that were left out, (batch, length, vocabulary) and (batch, length)."""
    logits = logits.float().view(-1, vocab_size)
    return token_loss(logits, labels.view(-1), num_items_in_batch, ignore_index)


def class_of_token_loss(
    logits, labels, config, num_items_in_batch=None, ignore_index=-100, **kwargs
):
    """Cross entropy of the class of each token, (batch, length, classes) and (batch, length)."""
    logits = logits.view(-1, config.num_labels).float()
    return token_loss(logits, labels.view(-1), num_items_in_batch, ignore_index)


def answer_loss(
    start_logits, end_logits, start_positions, end_positions, num_items_in_batch=None, **kwargs
):
    """Cross entropy of where an answer begins and ends, each (batch, length); a place beyond is left out."""
    if start_positions.dim() > 1:
        start_positions = start_positions.squeeze(-1)
    if end_positions.dim() > 1:
        end_positions = end_positions.squeeze(-1)
    beyond = start_logits.size(1)
    start_positions = start_positions.clamp(0, beyond)
    end_positions = end_positions.clamp(0, beyond)
    start = token_loss(start_logits, start_positions, num_items_in_batch, beyond)
    end = token_loss(end_logits, end_positions, num_items_in_batch, beyond)
    return (start + end) / 2


def class_loss(labels, pooled_logits, config, num_items_in_batch=None, ignore_index=-100, **kwargs):
    """The loss of classes, (batch, classes), by ``config.problem_type``, which follows from the first labels."""
    if config.problem_type is None:
        if config.num_labels == 1:
            config.problem_type = "regression"
        elif config.num_labels > 1 and labels.dtype in (torch.int64, torch.int32):
            config.problem_type = "single_label_classification"
        else:
            config.problem_type = "multi_label_classification"
    if config.problem_type == "regression":
        if config.num_labels == 1:
            return nn.functional.mse_loss(pooled_logits.squeeze(), labels.squeeze())
        return nn.functional.mse_loss(pooled_logits, labels)
    if config.problem_type == "single_label_classification":
        logits = pooled_logits.view(-1, config.num_labels)
        return token_loss(logits, labels.view(-1), num_items_in_batch, ignore_index)
    return nn.functional.binary_cross_entropy_with_logits(pooled_logits, labels)


ALL_ATTENTION_FUNCTIONS = {"sdpa": sdpa_attention_forward}
"""By the names that configurations give them; others are kernels of CUDA's."""


class PreTrainedModel(nn.Module):
    """A module with a configuration.

    What a model does once it is built (``post_init``) stands where it is built: it draws weights.
    """

    config_class = None
    base_model_prefix = ""
    main_input_name = "input_ids"
    supports_gradient_checkpointing = False
    _supports_sdpa = False

    def __init__(self, config, *inputs, **kwargs):
        super().__init__()
        self.config = config
        both = getattr(config, "is_encoder_decoder", False)
        if both and getattr(config, "tie_encoder_decoder", False):
            raise NotImplementedError("an encoder that is tied to its decoder is not converted")
        if getattr(config, "_attn_implementation", None) is None:
            config._attn_implementation = "sdpa" if self._supports_sdpa else "eager"

    def _init_weights(self, module):
        """First values where a model says nothing else."""
        std = getattr(self.config, "initializer_range", 0.02)
        if isinstance(module, (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)):
            module.weight.data.normal_(mean=0.0, std=std)
            if module.bias is not None:
                module.bias.data.zero_()
        elif isinstance(module, nn.Embedding):
            module.weight.data.normal_(mean=0.0, std=std)
            if module.padding_idx is not None:
                module.weight.data[module.padding_idx].zero_()
        elif isinstance(module, nn.LayerNorm):
            if module.weight is not None:
                module.weight.data.fill_(1.0)
            if module.bias is not None:
                module.bias.data.zero_()
        elif isinstance(module, nn.GroupNorm) and module.affine:
            module.weight.data.fill_(1.0)
            module.bias.data.zero_()

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path, *model_args, config=None, **kwargs):
        """A model of a configuration that was saved. Its weights are drawn: they come with a state_dict."""
        if kwargs.get("dtype") is not None or kwargs.get("torch_dtype") is not None:
            raise NotImplementedError("a model of another dtype than the default is not converted")
        if config is None:
            config = cls.config_class.from_pretrained(pretrained_model_name_or_path, **kwargs)
        return cls(config, *model_args)

    @classmethod
    def _from_config(cls, config, **kwargs):
        """A model of a configuration."""
        if kwargs.get("dtype") is not None or kwargs.get("torch_dtype") is not None:
            raise NotImplementedError("a model of another dtype than the default is not converted")
        dtype = getattr(config, "dtype", None)
        if dtype is not None and not str(dtype).endswith("float32"):
            raise NotImplementedError("a model of another dtype than the default is not converted")
        if "attn_implementation" in kwargs:
            config._attn_implementation = kwargs["attn_implementation"]
        return cls(config)

    def get_input_embeddings(self):
        """The layer that looks up what a model is given."""
        found = getattr(self, getattr(self, "_input_embed_layer", "embed_tokens"), None)
        if found is not None:
            return found
        inner = getattr(self, "model", None)
        if inner is not None and hasattr(inner, "embed_tokens"):
            return inner.embed_tokens
        base = getattr(self, self.base_model_prefix, None)
        if base is not None and base is not self:
            return base.get_input_embeddings()
        raise NotImplementedError(f"the embeddings of {type(self).__name__} are not known")

    def get_decoder(self):
        """The part that draws texts."""
        if hasattr(self, "decoder"):
            return self.decoder
        inner = getattr(self, "model", None)
        if inner is None:
            return self
        if hasattr(inner, "get_decoder") and type(inner) is not type(self):
            return inner.get_decoder()
        return inner

    def resize_token_embeddings(self, *inputs, **kwargs):
        """Not converted: a model has the embeddings of its configuration."""
        raise NotImplementedError("the embeddings of a model are those of its configuration")

    def warn_if_padding_and_no_attention_mask(self, input_ids, attention_mask):
        """Nothing but a warning."""

    def loss_function(self, *args, **kwargs):
        """The loss of a model with a head, by the name of its class."""
        name = type(self).__name__
        if "ForMaskedLM" in name:
            return masked_loss(*args, **kwargs)
        if "ForTokenClassification" in name:
            return class_of_token_loss(*args, **kwargs)
        if "ForQuestionAnswering" in name:
            return answer_loss(*args, **kwargs)
        if any(f"For{of}Classification" in name for of in ("Sequence", "Image", "Video", "Audio")):
            return class_loss(*args, **kwargs)
        if "ForSegmentation" in name or "ForObjectDetection" in name:
            raise NotImplementedError(f"the loss of {name} is not converted")
        return causal_loss(*args, **kwargs)

    @property
    def base_model(self):
        """The part that a head stands on; the model itself where there is none."""
        return getattr(self, self.base_model_prefix, self)

    @property
    def dtype(self):
        """The dtype of its parameters."""
        return next(self.parameters()).dtype

    @property
    def device(self):
        """The device of its parameters."""
        return next(self.parameters()).device

    def create_extended_attention_mask_for_decoder(self, input_shape, attention_mask, device=None):
        """A mask of places, (batch, 1, length, keys), of those that come before as well."""
        batch_size, seq_length = input_shape
        seq_ids = torch.arange(seq_length)
        causal = seq_ids[None, None, :].repeat(batch_size, seq_length, 1) <= seq_ids[None, :, None]
        causal = causal.to(attention_mask.dtype)
        if causal.shape[1] < attention_mask.shape[1]:
            more = attention_mask.shape[1] - causal.shape[1]
            before = torch.ones((batch_size, seq_length, more), dtype=causal.dtype)
            causal = torch.cat([before, causal], dim=-1)
        return causal[:, None, :, :] * attention_mask[:, None, None, :]

    def get_extended_attention_mask(self, attention_mask, input_shape, device=None, dtype=None):
        """What is added to scores, (batch, 1 or heads, length or 1, keys): 0 or the least number there is."""
        if dtype is None:
            dtype = self.dtype
        if attention_mask.dim() == 3:
            extended = attention_mask[:, None, :, :]
        elif attention_mask.dim() == 2:
            if self.config.is_decoder:
                extended = self.create_extended_attention_mask_for_decoder(
                    input_shape, attention_mask
                )
            else:
                extended = attention_mask[:, None, None, :]
        else:
            raise ValueError(f"attention_mask of shape {attention_mask.shape} for {input_shape}")
        extended = extended.to(dtype=dtype)
        return (1.0 - extended) * torch.finfo(dtype).min

    def invert_attention_mask(self, encoder_attention_mask):
        """The same of the places of an encoder."""
        if encoder_attention_mask.dim() == 3:
            extended = encoder_attention_mask[:, None, :, :]
        else:
            extended = encoder_attention_mask[:, None, None, :]
        extended = extended.to(dtype=self.dtype)
        return (1.0 - extended) * torch.finfo(self.dtype).min

    def get_head_mask(self, head_mask, num_hidden_layers, is_attention_chunked=False):
        """A mask for each layer, (layers, 1, heads, 1, 1), or None for each."""
        if head_mask is None:
            return [None] * num_hidden_layers
        if head_mask.dim() == 1:
            head_mask = head_mask[None, None, :, None, None]
            head_mask = head_mask.expand(num_hidden_layers, -1, -1, -1, -1)
        elif head_mask.dim() == 2:
            head_mask = head_mask[:, None, :, None, None]
        if is_attention_chunked:
            head_mask = head_mask.unsqueeze(-1)
        return head_mask
