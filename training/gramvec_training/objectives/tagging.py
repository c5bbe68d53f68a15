"""Learning to tag: a biLSTM over the vectors of a sentence's words, learned with the encoder that gives these."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from gramvec_training.configuration import Tagging
from gramvec_training.data import Batch, Corpus, Ids, Ints
from gramvec_training.encoders import Encoder, Steps, glorot, lstm, normal, projected
from gramvec_training.objectives.base import Examples, Objective, moved

_WORDS, _SENTENCES = 4_096, 512  # that are encoded, and tagged, at a time
_NONE = np.zeros(0, np.int32)


@dataclass(frozen=True)
class Sentences:
    """words: of each sentence the numbers of its words in a corpus of words; tags: of each of them its tag's, or -1."""

    words: Corpus
    tags: Corpus


@dataclass(frozen=True)
class TaggedExamples(Examples):
    """Whose batch is of the distinct words. words: int32[m], of each place which; offsets: int32[n + 1] of sentences.

    The targets are the places' tags, int32[m].
    """

    words: Ids = field(default_factory=lambda: _NONE)
    offsets: Ids = field(default_factory=lambda: _NONE)


class Tagger(nn.Module):
    """softmax(tanh([forward_t; backward_t] W + b) W_p + b_p) of each word t of a sentence: its tags.

    forward and backward are LSTMs with peepholes and output gate (see encoders.Lstm) that read the words' vectors from
    the first to the last, and from the last to the first. (Ling et al., 2015, with the sizes of Wieting et al., 2016a,
    section 4.2.) LSTMs begin normal with standard deviation 0.1, W and W_p as Glorot and Bengio's uniform, biases at
    zero. Words behind the 4,096th of a sentence have states of zeros.
    """

    def __init__(self, dimension: int, tags: int, settings: Tagging, generator: torch.Generator) -> None:
        super().__init__()
        h = settings.states
        self.inputs = nn.ParameterList(nn.Parameter(normal(dimension, 4 * h, generator=generator)) for _ in range(2))
        self.recurrent = nn.ParameterList(nn.Parameter(normal(h, 4 * h, generator=generator)) for _ in range(2))
        self.peepholes = nn.ParameterList(nn.Parameter(normal(3, h, generator=generator)) for _ in range(2))
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros(4 * h)) for _ in range(2))
        self.inner = nn.Parameter(glorot(2 * h, settings.hidden, generator))  # [2h, hidden]
        self.bias = nn.Parameter(torch.zeros(settings.hidden))  # [hidden]
        self.outer = nn.Parameter(glorot(settings.hidden, tags, generator))  # [hidden, tags]
        self.outer_bias = nn.Parameter(torch.zeros(tags))  # [tags]

    def forward(self, vectors: Tensor, words: Tensor, offsets: Tensor) -> Tensor:
        """Logits float32[m, tags] of sentences that begin at `offsets` [n + 1].

        vectors: float32[u, d] of the distinct words; words: int[m], of each place which of them it has.
        """
        states = torch.cat([self._states(vectors, words, offsets, way) for way in (0, 1)], dim=1)  # [m, 2h]
        hidden = torch.tanh(torch.addmm(self.bias, states, self.inner))  # [m, hidden]
        return torch.addmm(self.outer_bias, hidden, self.outer)

    def _states(self, vectors: Tensor, words: Tensor, offsets: Tensor, way: int) -> Tensor:
        steps = Steps.of(offsets, backwards=way == 1)
        values, at = projected(vectors, words[steps.places].long(), self.inputs[way], self.biases[way])
        states = lstm(values, at, self.recurrent[way], self.peepholes[way], steps.sizes, output_gate=True)
        return states.new_zeros(len(words), states.shape[1]).index_copy(0, steps.places, states)


class TaggingObjective(Objective):
    """The cross-entropy of a tagger's tags, mean over the words of a batch of sentences.

    corpus: the distinct words of all sentences by number, as features. Of a batch each distinct word is encoded once.
    A step updates the whole table, as dense SGD does: with a momentum of 0.95 a row that is touched once moves twenty
    times as far in the steps after as in that one. Each epoch goes through all sentences in a new order.
    """

    def __init__(self, corpus: Corpus, learned: Sentences, tagger: Tagger, settings: Tagging, rows: int) -> None:
        self.schedule = self.settings = settings
        self.steps_per_epoch = -(-len(learned.words) // settings.batch)
        self.steps = settings.steps or (settings.epochs or 1) * self.steps_per_epoch
        self.l2_own = settings.l2_head
        self.tagger = tagger
        self._corpus, self._learned = corpus, learned
        self._rows = np.arange(rows)
        self._epoch = -1
        self._order: Ints = np.arange(len(learned.words))

    def examples_at(self, step: int) -> TaggedExamples:
        """The sentences of a step, and their distinct words with all rows of the table."""
        epoch, position = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            rng = np.random.default_rng([self.settings.seed, epoch])
            self._epoch, self._order = epoch, rng.permutation(len(self._learned.words))
        start = position * self.settings.batch
        chosen = self._order[start : start + self.settings.batch]
        sentences = self._learned.words.batch(chosen)
        ids, offsets = self._corpus.cut(sentences.rows)
        batch = Batch(self._rows, ids, offsets, sentences.rows)
        tags = self._learned.tags.cut(chosen)[0]
        return TaggedExamples(step, batch, len(chosen), tags, sentences.ids, sentences.offsets)

    def loss(self, vectors: Tensor, examples: Examples) -> Tensor:
        """Mean over the words of -log p(tag)."""
        assert isinstance(examples, TaggedExamples)
        assert examples.targets is not None
        words, offsets, tags = (
            moved(one, vectors.device) for one in (examples.words, examples.offsets, examples.targets)
        )
        return functional.cross_entropy(self.tagger(vectors, words, offsets), tags.long())

    def parameters(self) -> dict[str, nn.Parameter]:
        """The tagger's."""
        return {f"tagger.{name}": parameter for name, parameter in self.tagger.named_parameters()}

    @torch.no_grad()
    def tags(self, encoder: Encoder, sentences: Sentences) -> Ints:
        """int64[m]: the likeliest tag of each word of other sentences of the corpus."""
        device = encoder.table.device
        distinct, numbers = np.unique(sentences.words.ids.astype(np.int64), return_inverse=True)
        parts = []
        for start in range(0, len(distinct), _WORDS):
            ids, offsets = self._corpus.cut(distinct[start : start + _WORDS])
            parts.append(encoder(moved(ids, device), moved(offsets, device)))
        found: list[Ints] = []
        bounds = sentences.words.offsets
        for start in range(0, len(sentences.words), _SENTENCES):
            part = bounds[start : start + _SENTENCES + 1]
            words = moved(numbers[part[0] : part[-1]], device)
            logits = self.tagger(torch.cat(parts), words, moved(part - part[0], device))
            found.append(logits.argmax(dim=1).cpu().numpy())
        return np.concatenate(found) if found else np.zeros(0, np.int64)

    def accuracy(self, encoder: Encoder, sentences: Sentences) -> float:
        """Times 100: the share of words whose likeliest tag is theirs. One with a tag that was not learned is wrong."""
        return 100 * float(np.mean(self.tags(encoder, sentences) == sentences.tags.ids))
