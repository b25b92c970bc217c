"""A bidirectional LSTM part-of-speech tagger."""

import torch
import torch.nn as nn
import torch.nn.functional as F

PAD = 0


class LSTMTagger(nn.Module):
    """Embedding, stacked bidirectional LSTM and a linear layer over the tags.

    Args:
        vocab_size (int): number of word ids, 0 is padding
        tagset_size (int): number of tags
        embedding_dim (int): size of a word vector
        hidden_dim (int): size of the hidden state of both directions together
        num_layers (int): number of stacked layers
        dropout (float): dropout on the embeddings and between LSTM layers
    """

    def __init__(
        self, vocab_size, tagset_size, embedding_dim=16, hidden_dim=24, num_layers=2, dropout=0.0
    ):
        super(LSTMTagger, self).__init__()
        self.embedding_dim = embedding_dim
        self.hidden_dim = hidden_dim
        self.num_layers = num_layers
        self.num_directions = 2

        self.word_embeddings = nn.Embedding(vocab_size, embedding_dim, padding_idx=PAD)
        self.dropout = nn.Dropout(dropout)
        # The LSTM takes word embeddings as inputs, and outputs hidden states
        # with dimensionality hidden_dim.
        self.lstm = nn.LSTM(
            embedding_dim,
            hidden_dim // self.num_directions,
            num_layers=num_layers,
            batch_first=True,
            bidirectional=True,
            dropout=dropout,
        )
        # The linear layer that maps from hidden state space to tag space
        self.hidden2tag = nn.Linear(hidden_dim, tagset_size)

    def init_hidden(self, batch_size, device=None):
        """Zero states; the axes semantics are (num_layers * num_directions, batch, hidden)."""
        shape = (self.num_layers * self.num_directions, batch_size, self.hidden_dim // 2)
        return (torch.zeros(shape, device=device), torch.zeros(shape, device=device))

    def forward(self, sentence, hidden=None):
        """
        sentence: (batch, seq_len) int64 word ids
        returns: (batch, seq_len, tagset_size) log-probabilities and the final LSTM state
        """
        batch_size, seq_len = sentence.size()
        if hidden is None:
            hidden = self.init_hidden(batch_size, sentence.device)
        embeds = self.dropout(self.word_embeddings(sentence))
        lstm_out, hidden = self.lstm(embeds, hidden)
        tag_space = self.hidden2tag(lstm_out.contiguous().view(-1, self.hidden_dim))
        tag_scores = F.log_softmax(tag_space, dim=1)
        return tag_scores.view(batch_size, seq_len, -1), hidden


def tagging_loss(tag_scores, tags):
    """Negative log-likelihood of the tags, padding positions excluded."""
    return F.nll_loss(tag_scores.view(-1, tag_scores.shape[-1]), tags.view(-1), ignore_index=PAD)


def tagging_accuracy(tag_scores, tags):
    """Share of the words that are tagged right."""
    _, predicted = tag_scores.max(dim=-1)
    mask = tags.ne(PAD)
    correct = (predicted == tags) & mask
    return correct.sum().float() / mask.sum().clamp(min=1).float()
