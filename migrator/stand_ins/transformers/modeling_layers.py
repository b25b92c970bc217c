"""Layers that training may compute twice to save memory, and heads; each class with a head makes its own parts."""

import torch
from torch import nn

from .modeling_outputs import (
    QuestionAnsweringModelOutput,
    SequenceClassifierOutputWithPast,
    TokenClassifierOutput,
)
from .utils import can_return_tuple


class GradientCheckpointingLayer(nn.Module):
    """A layer like any other."""

    gradient_checkpointing = False

    def __init__(self):
        super().__init__()


class GenericForSequenceClassification:
    """A class for each text, (batch, classes), by its last token that is no padding."""

    base_model_prefix = "model"

    @can_return_tuple
    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        position_ids=None,
        past_key_values=None,
        inputs_embeds=None,
        labels=None,
        use_cache=None,
        **kwargs,
    ):
        outputs = self.base_model(
            input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            past_key_values=past_key_values,
            inputs_embeds=inputs_embeds,
            use_cache=use_cache,
            **kwargs,
        )
        logits = self.score(outputs.last_hidden_state)
        batch_size = logits.shape[0]
        padding = self.config.pad_token_id
        if padding is None and batch_size != 1:
            raise ValueError("the last token of several texts is known by a padding token only")
        if padding is None or input_ids is None:
            pooled = logits[:, -1]
        else:
            places = torch.arange(input_ids.shape[-1], dtype=torch.int32)
            last = (places * (input_ids != padding).to(torch.int32)).argmax(-1)
            pooled = logits[torch.arange(batch_size), last]
        loss = None
        if labels is not None:
            loss = self.loss_function(
                logits=logits, labels=labels, pooled_logits=pooled, config=self.config
            )
        return SequenceClassifierOutputWithPast(
            loss=loss,
            logits=pooled,
            past_key_values=outputs.past_key_values,
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )


class GenericForQuestionAnswering:
    """Where an answer begins and ends, each (batch, length)."""

    base_model_prefix = "model"

    @can_return_tuple
    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        position_ids=None,
        past_key_values=None,
        inputs_embeds=None,
        start_positions=None,
        end_positions=None,
        **kwargs,
    ):
        outputs = self.base_model(
            input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            past_key_values=past_key_values,
            inputs_embeds=inputs_embeds,
            **kwargs,
        )
        start_logits, end_logits = self.qa_outputs(outputs.last_hidden_state).split(1, dim=-1)
        start_logits, end_logits = start_logits.squeeze(-1), end_logits.squeeze(-1)
        loss = None
        if start_positions is not None and end_positions is not None:
            loss = self.loss_function(
                start_logits, end_logits, start_positions, end_positions, **kwargs
            )
        return QuestionAnsweringModelOutput(
            loss=loss,
            start_logits=start_logits,
            end_logits=end_logits,
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )


class GenericForTokenClassification:
    """A class for each token, (batch, length, classes)."""

    base_model_prefix = "model"

    @can_return_tuple
    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        position_ids=None,
        past_key_values=None,
        inputs_embeds=None,
        labels=None,
        use_cache=None,
        **kwargs,
    ):
        outputs = self.base_model(
            input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            past_key_values=past_key_values,
            inputs_embeds=inputs_embeds,
            use_cache=use_cache,
            **kwargs,
        )
        logits = self.score(self.dropout(outputs.last_hidden_state))
        loss = None
        if labels is not None:
            loss = self.loss_function(logits, labels, self.config)
        return TokenClassifierOutput(
            loss=loss,
            logits=logits,
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )
