"""Learning from labels: a head over the vectors of texts or of pairs, learned with the encoder or over fixed ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from gramvec.errors import InputError
from gramvec_training.configuration import Supervision
from gramvec_training.data import Corpus, Ints
from gramvec_training.encoders import Encoder, glorot
from gramvec_training.objectives.base import Examples, Objective, moved
from gramvec_training.types import Floats

_CHUNK = 512  # texts that are encoded at a time
_LAYERS = 3  # of JoinedHead


class Head(nn.Module, ABC):
    """The vectors float32[n, d] of each side, one or two, to the logits float32[n, classes] of what they are together.

    Matrices begin as Glorot and Bengio's uniform, biases at zero.
    """

    @abstractmethod
    def forward(self, sides: tuple[Tensor, ...]) -> Tensor:
        """Logits float32[n, classes]."""


class TextHead(Head):
    """sigmoid(x W + b) W_p + b_p: the logits of a text's classes (Wieting et al., 2016b, section 4.4)."""

    def __init__(self, dimension: int, hidden: int, classes: int, generator: torch.Generator) -> None:
        super().__init__()
        self.inner = nn.Parameter(glorot(dimension, hidden, generator))  # [d, hidden]
        self.bias = nn.Parameter(torch.zeros(hidden))  # [hidden]
        self.outer = nn.Parameter(glorot(hidden, classes, generator))  # [hidden, classes]
        self.outer_bias = nn.Parameter(torch.zeros(classes))  # [classes]

    def forward(self, sides: tuple[Tensor, ...]) -> Tensor:
        """See Head."""
        return torch.sigmoid(self.of_sides(sides) + self.bias) @ self.outer + self.outer_bias

    def of_sides(self, sides: tuple[Tensor, ...]) -> Tensor:
        """What comes into the hidden layer, float32[n, hidden]."""
        (x,) = sides
        return x @ self.inner


class PairHead(TextHead):
    """sigmoid((x * y) W_x + |x - y| W_+ + b) W_p + b_p: the logits of a pair's classes, in either order the same.

    (Tai et al., 2015, equations 15, as Wieting et al., 2016b, and Arora et al., 2017, have them.)
    """

    def __init__(self, dimension: int, hidden: int, classes: int, generator: torch.Generator) -> None:
        super().__init__(dimension, hidden, classes, generator)
        self.apart = nn.Parameter(glorot(dimension, hidden, generator))  # [d, hidden]

    def of_sides(self, sides: tuple[Tensor, ...]) -> Tensor:
        """See TextHead; the vectors of both texts."""
        x, y = sides
        return (x * y) @ self.inner + (x - y).abs() @ self.apart


class JoinedHead(Head):
    """z_0 = [tanh(x W_x + b_x); tanh(y W_x + b_x)], z_l = tanh(z_(l-1) W_l + b_l) for three l, z_3 W_p + b_p: the
    logits of an ordered pair, premise and hypothesis (Bowman et al., 2015; Arora et al., 2017, section A.3).

    narrow: columns that a side is brought to; hidden: of each of the three layers.
    """

    def __init__(
        self, dimension: int, hidden: int, classes: int, generator: torch.Generator, *, narrow: int = 100
    ) -> None:
        super().__init__()
        self.side = nn.Parameter(glorot(dimension, narrow, generator))  # [d, narrow]
        self.side_bias = nn.Parameter(torch.zeros(narrow))  # [narrow]
        widths = (2 * narrow, *[hidden] * _LAYERS)
        self.matrices = nn.ParameterList(nn.Parameter(glorot(*pair, generator)) for pair in pairwise(widths))
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros(hidden)) for _ in range(_LAYERS))  # [hidden]
        self.outer = nn.Parameter(glorot(hidden, classes, generator))  # [hidden, classes]
        self.outer_bias = nn.Parameter(torch.zeros(classes))  # [classes]

    def forward(self, sides: tuple[Tensor, ...]) -> Tensor:
        """See Head; the vectors of both texts."""
        x = torch.cat([torch.tanh(one @ self.side + self.side_bias) for one in sides], dim=1)  # [n, 2 narrow]
        for matrix, bias in zip(self.matrices, self.biases, strict=True):
            x = torch.tanh(x @ matrix + bias)  # [n, hidden]
        return x @ self.outer + self.outer_bias


def new_head(sides: int, dimension: int, classes: int, settings: Supervision) -> Head:
    """The head of the settings for texts, or pairs of texts, with vectors of so many columns; drawn by their seed.

    Raises InputError where single texts are to be joined.
    """
    generator = torch.Generator().manual_seed(settings.seed)
    if settings.pair == "joined":
        if sides != 2:
            raise InputError('pair = "joined" is for pairs of texts, and these are single ones; leave it out.')
        return JoinedHead(dimension, settings.hidden, classes, generator, narrow=settings.narrow)
    return (TextHead if sides == 1 else PairHead)(dimension, settings.hidden, classes, generator)


def score_targets(scores: npt.NDArray[np.float64], classes: int) -> Floats:
    """float32[n, classes]: a score y in [1, classes] as two neighbouring classes, whose mean it is (Tai et al., 2015).

    p = y - floor(y) of class floor(y) + 1 and 1 - p of class floor(y). Scores outside are drawn to the nearest end.
    """
    inside = np.clip(scores, 1, classes)
    low = np.minimum(np.floor(inside), classes - 1).astype(np.int64)
    targets = np.zeros((len(inside), classes), np.float32)
    rows = np.arange(len(inside))
    targets[rows, low - 1] = 1 - (inside - low)
    targets[rows, low] = inside - low
    return targets


class HeadObjective(Objective):
    """The KL divergence of a head's classes from targets; of targets that are sure it is the cross-entropy.

    examples int64[n, 1 or 2]: the numbers of each one's texts in the corpus. targets float32[n, classes]: their
    distributions. The papers' code divides the divergence by the number of classes, which is a smaller rate. Each epoch
    goes through all examples in a new order.
    """

    def __init__(
        self, corpus: Corpus, examples: Ints, targets: Floats, head: Head, settings: Supervision
    ) -> None:  # fmt: skip
        self.schedule = self.settings = settings
        self.steps_per_epoch = -(-len(examples) // settings.batch)
        self.steps = settings.steps or (settings.epochs or 1) * self.steps_per_epoch
        self.l2_own = settings.l2_head
        self.head = head
        self._corpus = corpus
        self._texts, self._targets = examples, targets
        self._epoch = -1
        self._order = np.arange(len(examples))

    def examples_at(self, step: int) -> Examples:
        """The texts of a step, all first ones and then all second ones, and their targets."""
        epoch, position = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            rng = np.random.default_rng([self.settings.seed, epoch])
            self._epoch, self._order = epoch, rng.permutation(len(self._texts))
        start = position * self.settings.batch
        chosen = self._order[start : start + self.settings.batch]
        texts = self._texts[chosen].T.reshape(-1)
        return Examples(step, self._corpus.batch(texts), len(chosen), self._targets[chosen])

    def loss(self, vectors: Tensor, examples: Examples) -> Tensor:
        """Mean over the examples of sum p log(p / p_head)."""
        assert examples.targets is not None
        logits = self.head(torch.split(vectors, examples.count))
        targets = moved(examples.targets, vectors.device)
        return functional.kl_div(functional.log_softmax(logits, dim=1), targets, reduction="batchmean")

    def parameters(self) -> dict[str, nn.Parameter]:
        """The head's."""
        return {f"head.{name}": parameter for name, parameter in self.head.named_parameters()}

    @torch.no_grad()
    def probabilities(self, encoder: Encoder, examples: Ints) -> Floats:
        """float32[n, classes] of other examples of the corpus, with encoder and head as they are."""
        found = []
        for start in range(0, len(examples), _CHUNK):
            part = examples[start : start + _CHUNK]
            ids, offsets = (torch.from_numpy(one) for one in self._corpus.cut(part.T.reshape(-1)))
            device = encoder.table.device
            logits = self.head(torch.split(encoder(ids.to(device), offsets.to(device)), len(part)))
            found.append(torch.softmax(logits, dim=1).cpu().numpy())
        return np.concatenate(found) if found else np.zeros((0, self._targets.shape[1]), np.float32)
