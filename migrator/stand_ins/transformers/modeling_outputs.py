"""What models give, by name, by key and by place."""

from dataclasses import dataclass

import torch

from .utils import ModelOutput


@dataclass
class BaseModelOutput(ModelOutput):
    """Output of a model."""

    last_hidden_state: torch.FloatTensor | None = None
    hidden_states: tuple | None = None
    attentions: tuple | None = None


@dataclass
class BaseModelOutputWithNoAttention(ModelOutput):
    """Output of a model."""

    last_hidden_state: torch.FloatTensor | None = None
    hidden_states: tuple | None = None


@dataclass
class BaseModelOutputWithPooling(ModelOutput):
    """Output of a model."""

    last_hidden_state: torch.FloatTensor | None = None
    pooler_output: torch.FloatTensor | None = None
    hidden_states: tuple | None = None
    attentions: tuple | None = None


@dataclass
class BaseModelOutputWithPoolingAndNoAttention(ModelOutput):
    """Output of a model."""

    last_hidden_state: torch.FloatTensor | None = None
    pooler_output: torch.FloatTensor | None = None
    hidden_states: tuple | None = None


@dataclass
class BaseModelOutputWithPast(ModelOutput):
    """Output of a model."""

    last_hidden_state: torch.FloatTensor | None = None
    past_key_values: tuple | None = None
    hidden_states: tuple | None = None
    attentions: tuple | None = None


@dataclass
class BaseModelOutputWithCrossAttentions(ModelOutput):
    """Output of a model."""

    last_hidden_state: torch.FloatTensor | None = None
    hidden_states: tuple | None = None
    attentions: tuple | None = None
    cross_attentions: tuple | None = None


@dataclass
class BaseModelOutputWithPoolingAndCrossAttentions(ModelOutput):
    """Output of a model."""

    last_hidden_state: torch.FloatTensor | None = None
    pooler_output: torch.FloatTensor | None = None
    hidden_states: tuple | None = None
    past_key_values: tuple | None = None
    attentions: tuple | None = None
    cross_attentions: tuple | None = None


@dataclass
class BaseModelOutputWithPastAndCrossAttentions(ModelOutput):
    """Output of a model."""

    last_hidden_state: torch.FloatTensor | None = None
    past_key_values: tuple | None = None
    hidden_states: tuple | None = None
    attentions: tuple | None = None
    cross_attentions: tuple | None = None


@dataclass
class MoeModelOutputWithPast(ModelOutput):
    """Output of a model."""

    last_hidden_state: torch.FloatTensor | None = None
    past_key_values: tuple | None = None
    hidden_states: tuple | None = None
    attentions: tuple | None = None
    router_logits: tuple | None = None


@dataclass
class MoeCausalLMOutputWithPast(ModelOutput):
    """Output of a model."""

    loss: torch.FloatTensor | None = None
    aux_loss: torch.FloatTensor | None = None
    logits: torch.FloatTensor | None = None
    past_key_values: tuple | None = None
    hidden_states: tuple | None = None
    attentions: tuple | None = None
    router_logits: tuple | None = None


@dataclass
class Seq2SeqModelOutput(ModelOutput):
    """Output of a model."""

    last_hidden_state: torch.FloatTensor | None = None
    past_key_values: tuple | None = None
    decoder_hidden_states: tuple | None = None
    decoder_attentions: tuple | None = None
    cross_attentions: tuple | None = None
    encoder_last_hidden_state: torch.FloatTensor | None = None
    encoder_hidden_states: tuple | None = None
    encoder_attentions: tuple | None = None


@dataclass
class CausalLMOutput(ModelOutput):
    """Output of a model."""

    loss: torch.FloatTensor | None = None
    logits: torch.FloatTensor | None = None
    hidden_states: tuple | None = None
    attentions: tuple | None = None


@dataclass
class CausalLMOutputWithPast(ModelOutput):
    """Output of a model."""

    loss: torch.FloatTensor | None = None
    logits: torch.FloatTensor | None = None
    past_key_values: tuple | None = None
    hidden_states: tuple | None = None
    attentions: tuple | None = None


@dataclass
class CausalLMOutputWithCrossAttentions(ModelOutput):
    """Output of a model."""

    loss: torch.FloatTensor | None = None
    logits: torch.FloatTensor | None = None
    past_key_values: tuple | None = None
    hidden_states: tuple | None = None
    attentions: tuple | None = None
    cross_attentions: tuple | None = None


@dataclass
class SequenceClassifierOutputWithPast(ModelOutput):
    """Output of a model."""

    loss: torch.FloatTensor | None = None
    logits: torch.FloatTensor | None = None
    past_key_values: tuple | None = None
    hidden_states: tuple | None = None
    attentions: tuple | None = None


@dataclass
class MaskedLMOutput(ModelOutput):
    """Output of a model."""

    loss: torch.FloatTensor | None = None
    logits: torch.FloatTensor | None = None
    hidden_states: tuple | None = None
    attentions: tuple | None = None


@dataclass
class Seq2SeqLMOutput(ModelOutput):
    """Output of a model."""

    loss: torch.FloatTensor | None = None
    logits: torch.FloatTensor | None = None
    past_key_values: tuple | None = None
    decoder_hidden_states: tuple | None = None
    decoder_attentions: tuple | None = None
    cross_attentions: tuple | None = None
    encoder_last_hidden_state: torch.FloatTensor | None = None
    encoder_hidden_states: tuple | None = None
    encoder_attentions: tuple | None = None


@dataclass
class NextSentencePredictorOutput(ModelOutput):
    """Output of a model."""

    loss: torch.FloatTensor | None = None
    logits: torch.FloatTensor | None = None
    hidden_states: tuple | None = None
    attentions: tuple | None = None


@dataclass
class SequenceClassifierOutput(ModelOutput):
    """Output of a model."""

    loss: torch.FloatTensor | None = None
    logits: torch.FloatTensor | None = None
    hidden_states: tuple | None = None
    attentions: tuple | None = None


@dataclass
class Seq2SeqSequenceClassifierOutput(ModelOutput):
    """Output of a model."""

    loss: torch.FloatTensor | None = None
    logits: torch.FloatTensor | None = None
    past_key_values: tuple | None = None
    decoder_hidden_states: tuple | None = None
    decoder_attentions: tuple | None = None
    cross_attentions: tuple | None = None
    encoder_last_hidden_state: torch.FloatTensor | None = None
    encoder_hidden_states: tuple | None = None
    encoder_attentions: tuple | None = None


@dataclass
class MultipleChoiceModelOutput(ModelOutput):
    """Output of a model."""

    loss: torch.FloatTensor | None = None
    logits: torch.FloatTensor | None = None
    hidden_states: tuple | None = None
    attentions: tuple | None = None


@dataclass
class TokenClassifierOutput(ModelOutput):
    """Output of a model."""

    loss: torch.FloatTensor | None = None
    logits: torch.FloatTensor | None = None
    hidden_states: tuple | None = None
    attentions: tuple | None = None


@dataclass
class QuestionAnsweringModelOutput(ModelOutput):
    """Output of a model."""

    loss: torch.FloatTensor | None = None
    start_logits: torch.FloatTensor | None = None
    end_logits: torch.FloatTensor | None = None
    hidden_states: tuple | None = None
    attentions: tuple | None = None


@dataclass
class Seq2SeqQuestionAnsweringModelOutput(ModelOutput):
    """Output of a model."""

    loss: torch.FloatTensor | None = None
    start_logits: torch.FloatTensor | None = None
    end_logits: torch.FloatTensor | None = None
    past_key_values: tuple | None = None
    decoder_hidden_states: tuple | None = None
    decoder_attentions: tuple | None = None
    cross_attentions: tuple | None = None
    encoder_last_hidden_state: torch.FloatTensor | None = None
    encoder_hidden_states: tuple | None = None
    encoder_attentions: tuple | None = None


@dataclass
class SemanticSegmenterOutput(ModelOutput):
    """Output of a model."""

    loss: torch.FloatTensor | None = None
    logits: torch.FloatTensor | None = None
    hidden_states: tuple | None = None
    attentions: tuple | None = None


@dataclass
class ImageClassifierOutput(ModelOutput):
    """Output of a model."""

    loss: torch.FloatTensor | None = None
    logits: torch.FloatTensor | None = None
    hidden_states: tuple | None = None
    attentions: tuple | None = None


@dataclass
class ImageClassifierOutputWithNoAttention(ModelOutput):
    """Output of a model."""

    loss: torch.FloatTensor | None = None
    logits: torch.FloatTensor | None = None
    hidden_states: tuple | None = None


@dataclass
class DepthEstimatorOutput(ModelOutput):
    """Output of a model."""

    loss: torch.FloatTensor | None = None
    predicted_depth: torch.FloatTensor | None = None
    hidden_states: tuple | None = None
    attentions: tuple | None = None


@dataclass
class Wav2Vec2BaseModelOutput(ModelOutput):
    """Output of a model."""

    last_hidden_state: torch.FloatTensor | None = None
    extract_features: torch.FloatTensor | None = None
    hidden_states: tuple | None = None
    attentions: tuple | None = None


@dataclass
class XVectorOutput(ModelOutput):
    """Output of a model."""

    loss: torch.FloatTensor | None = None
    logits: torch.FloatTensor | None = None
    embeddings: torch.FloatTensor | None = None
    hidden_states: tuple | None = None
    attentions: tuple | None = None


@dataclass
class BackboneOutput(ModelOutput):
    """Output of a model."""

    feature_maps: tuple | None = None
    hidden_states: tuple | None = None
    attentions: tuple | None = None


@dataclass
class MaskedImageModelingOutput(ModelOutput):
    """Output of a model."""

    loss: torch.FloatTensor | None = None
    reconstruction: torch.FloatTensor | None = None
    hidden_states: tuple | None = None
    attentions: tuple | None = None


@dataclass
class BaseModelOutputWithPoolingAndProjection(ModelOutput):
    """Output of a model."""

    last_hidden_state: torch.FloatTensor | None = None
    pooler_output: torch.FloatTensor | None = None
    hidden_states: tuple | None = None
    attentions: tuple | None = None
    projection_state: tuple | None = None


@dataclass
class ImageSuperResolutionOutput(ModelOutput):
    """Output of a model."""

    loss: torch.FloatTensor | None = None
    reconstruction: torch.FloatTensor | None = None
    hidden_states: tuple | None = None
    attentions: tuple | None = None


@dataclass
class MoECausalLMOutputWithPast(ModelOutput):
    """Output of a model."""

    loss: torch.FloatTensor | None = None
    logits: torch.FloatTensor | None = None
    past_key_values: tuple | None = None
    hidden_states: tuple | None = None
    attentions: tuple | None = None
    z_loss: torch.FloatTensor | None = None
    aux_loss: torch.FloatTensor | None = None
    router_logits: tuple | None = None


@dataclass
class MoEModelOutput(ModelOutput):
    """Output of a model."""

    last_hidden_state: torch.FloatTensor | None = None
    hidden_states: tuple | None = None
    attentions: tuple | None = None
    router_probs: tuple | None = None


@dataclass
class MoEModelOutputWithPastAndCrossAttentions(ModelOutput):
    """Output of a model."""

    last_hidden_state: torch.FloatTensor | None = None
    past_key_values: tuple | None = None
    hidden_states: tuple | None = None
    attentions: tuple | None = None
    cross_attentions: tuple | None = None
    router_probs: tuple | None = None


@dataclass
class SampleTSPredictionOutput(ModelOutput):
    """Output of a model."""

    sequences: torch.FloatTensor | None = None


@dataclass
class Seq2SeqMoEModelOutput(ModelOutput):
    """Output of a model."""

    last_hidden_state: torch.FloatTensor | None = None
    past_key_values: tuple | None = None
    decoder_hidden_states: tuple | None = None
    decoder_attentions: tuple | None = None
    decoder_router_logits: tuple | None = None
    cross_attentions: tuple | None = None
    encoder_last_hidden_state: torch.FloatTensor | None = None
    encoder_hidden_states: tuple | None = None
    encoder_attentions: tuple | None = None
    encoder_router_logits: tuple | None = None


@dataclass
class Seq2SeqMoEOutput(ModelOutput):
    """Output of a model."""

    loss: torch.FloatTensor | None = None
    logits: torch.FloatTensor | None = None
    encoder_z_loss: torch.FloatTensor | None = None
    decoder_z_loss: torch.FloatTensor | None = None
    encoder_aux_loss: torch.FloatTensor | None = None
    decoder_aux_loss: torch.FloatTensor | None = None
    past_key_values: tuple | None = None
    decoder_hidden_states: tuple | None = None
    decoder_attentions: tuple | None = None
    decoder_router_logits: tuple | None = None
    cross_attentions: tuple | None = None
    encoder_last_hidden_state: torch.FloatTensor | None = None
    encoder_hidden_states: tuple | None = None
    encoder_attentions: tuple | None = None
    encoder_router_logits: tuple | None = None


@dataclass
class Seq2SeqSpectrogramOutput(ModelOutput):
    """Output of a model."""

    loss: torch.FloatTensor | None = None
    spectrogram: torch.FloatTensor | None = None
    past_key_values: tuple | None = None
    decoder_hidden_states: tuple | None = None
    decoder_attentions: tuple | None = None
    cross_attentions: tuple | None = None
    encoder_last_hidden_state: torch.FloatTensor | None = None
    encoder_hidden_states: tuple | None = None
    encoder_attentions: tuple | None = None


@dataclass
class Seq2SeqTSModelOutput(ModelOutput):
    """Output of a model."""

    last_hidden_state: torch.FloatTensor | None = None
    past_key_values: tuple | None = None
    decoder_hidden_states: tuple | None = None
    decoder_attentions: tuple | None = None
    cross_attentions: tuple | None = None
    encoder_last_hidden_state: torch.FloatTensor | None = None
    encoder_hidden_states: tuple | None = None
    encoder_attentions: tuple | None = None
    loc: torch.FloatTensor | None = None
    scale: torch.FloatTensor | None = None
    static_features: torch.FloatTensor | None = None


@dataclass
class Seq2SeqTSPredictionOutput(ModelOutput):
    """Output of a model."""

    loss: torch.FloatTensor | None = None
    params: tuple | None = None
    past_key_values: tuple | None = None
    decoder_hidden_states: tuple | None = None
    decoder_attentions: tuple | None = None
    cross_attentions: tuple | None = None
    encoder_last_hidden_state: torch.FloatTensor | None = None
    encoder_hidden_states: tuple | None = None
    encoder_attentions: tuple | None = None
    loc: torch.FloatTensor | None = None
    scale: torch.FloatTensor | None = None
    static_features: torch.FloatTensor | None = None
