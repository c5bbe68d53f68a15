"""Learning from labels: a head over the vectors of texts or of pairs, learned with the encoder or over fixed ones."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import orjson
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from gramvec.errors import InputError
from gramvec.features.featurizer import Featurizer
from gramvec_research.answers import Answers, ScoreAnswers, Scored, likelihood, pearson, read_answers
from gramvec_training.config import Start
from gramvec_training.data.corpus import Corpus
from gramvec_training.encoders.bag import Bag
from gramvec_training.encoders.base import Encoder, glorot
from gramvec_training.encoders.build import make_encode, make_similarity
from gramvec_training.fitting.loop import Selection, fit
from gramvec_training.fitting.trainer import Trainer, choose_device, settle
from gramvec_training.objectives.base import Examples, Objective, move
from gramvec_training.readers.labels import Labeled
from gramvec_training.runs.run_dir import CHECKPOINT, is_begun, list_versions, load_run, make_spec
from gramvec_training.runs.warm_start import read_start
from gramvec_training.sections import BagSettings, Penalty, PositiveCount, Schedule
from gramvec_training.shared import Floats, Ints, digest, write_atomically

HeadInput = Literal["compared", "joined"]


class Supervision(Schedule):
    """Learning a head from labels; `batch` counts labeled texts or pairs. Its own L2 term is towards zero.

    The papers' regimes: words drawn to their first values and the rest to zero; all drawn to a finished model's, which
    is what the encoder then begins as; or a fixed table of texts' vectors, and only the head.

    pair: what a head sees of a pair, "compared" for products and distances, which are the same in either order, or
    "joined" for both, each through a layer of `narrow` tanh, side by side below three layers of `hidden`.
    """

    batch: Annotated[int, Field(ge=2)] = 25
    hidden: PositiveCount = 50
    pair: HeadInput = "compared"
    narrow: PositiveCount = 100
    l2_head: Penalty = 0.0


_CHUNK = 512  # texts that are encoded at a time
_LAYERS = 3  # of JoinedHead


class TextHead(nn.Module):
    """sigmoid(x W + b) W_p + b_p: the logits of a text's classes (Wieting et al., 2016b, section 4.4).

    Matrices begin as Glorot and Bengio's uniform, biases at zero.
    """

    def __init__(self, dimension: int, hidden: int, classes: int, generator: torch.Generator) -> None:
        super().__init__()
        self.inner = nn.Parameter(glorot(dimension, hidden, generator))  # [d, hidden]
        self.bias = nn.Parameter(torch.zeros(hidden))  # [hidden]
        self.outer = nn.Parameter(glorot(hidden, classes, generator))  # [hidden, classes]
        self.outer_bias = nn.Parameter(torch.zeros(classes))  # [classes]

    def forward(self, sides: tuple[Tensor, ...]) -> Tensor:
        """Return the logits float32[n, classes] of the vectors float32[n, d] of each side."""
        return torch.sigmoid(self.of_sides(sides) + self.bias) @ self.outer + self.outer_bias

    def of_sides(self, sides: tuple[Tensor, ...]) -> Tensor:
        """Return what comes into the hidden layer, float32[n, hidden]."""
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
        """Return what comes into the hidden layer, float32[n, hidden], of the vectors of both texts."""
        x, y = sides
        return (x * y) @ self.inner + (x - y).abs() @ self.apart


class JoinedHead(nn.Module):
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
        """Return the logits float32[n, classes] of the vectors float32[n, d] of both texts."""
        x = torch.cat([torch.tanh(vectors @ self.side + self.side_bias) for vectors in sides], dim=1)  # [n, 2 narrow]
        for matrix, bias in zip(self.matrices, self.biases, strict=True):
            x = torch.tanh(x @ matrix + bias)  # [n, hidden]
        return x @ self.outer + self.outer_bias


PaperHead = TextHead | JoinedHead


def new_head(sides: int, dimension: int, classes: int, settings: Supervision) -> PaperHead:
    """Return the head of the settings for texts or pairs with vectors of `dimension` columns, drawn by their seed.

    Raises InputError where single texts are to be joined.
    """
    generator = torch.Generator().manual_seed(settings.seed)
    if settings.pair == "joined":
        if sides != 2:
            raise InputError('pair = "joined" is for pairs of texts, and these are single ones; leave it out')
        return JoinedHead(dimension, settings.hidden, classes, generator, narrow=settings.narrow)
    return (TextHead if sides == 1 else PairHead)(dimension, settings.hidden, classes, generator)


class ShuffledObjective(Objective):
    """An objective whose epochs go through all examples, each epoch in a new order."""

    def __init__(self, schedule: Schedule, examples: int, l2_own: float) -> None:
        self.schedule = schedule
        self.steps_per_epoch = -(-examples // schedule.batch)
        self.steps = schedule.steps or (schedule.epochs or 1) * self.steps_per_epoch
        self.l2_own = l2_own
        self._epoch = -1
        self._order: Ints = np.arange(examples)

    def numbers_at(self, step: int) -> Ints:
        """Return the numbers of a step's examples."""
        epoch, position = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            rng = np.random.default_rng([self.schedule.seed, epoch])
            self._epoch, self._order = epoch, rng.permutation(len(self._order))
        start = position * self.schedule.batch
        return self._order[start : start + self.schedule.batch]


class HeadObjective(ShuffledObjective):
    """The KL divergence of a head's classes from targets; of targets that are sure it is the cross-entropy.

    examples int64[n, 1 or 2]: the numbers of each one's texts in the corpus. targets float32[n, classes]: their
    distributions. The papers' code divides the divergence by the number of classes, which is a smaller rate.
    """

    def __init__(
        self, corpus: Corpus, examples: Ints, targets: Floats, head: PaperHead, settings: Supervision
    ) -> None:  # fmt: skip
        super().__init__(settings, len(examples), settings.l2_head)
        self.head = head
        self._corpus = corpus
        self._texts, self._targets = examples, targets

    def examples_at(self, step: int) -> Examples:
        """Return the texts of a step, all first ones and then all second ones, and their targets."""
        chosen = self.numbers_at(step)
        texts = self._texts[chosen].T.reshape(-1)
        return Examples(step, self._corpus.batch(texts), len(chosen), self._targets[chosen])

    def loss(self, vectors: Tensor, examples: Examples) -> Tensor:
        """Return the mean over the examples of sum p log(p / p_head)."""
        assert examples.targets is not None
        logits = self.head(torch.split(vectors, examples.count))
        targets = move(examples.targets, vectors.device)
        return functional.kl_div(functional.log_softmax(logits, dim=1), targets, reduction="batchmean")

    def parameters(self) -> dict[str, nn.Parameter]:
        """Return the head's parameters."""
        return {f"head.{name}": parameter for name, parameter in self.head.named_parameters()}

    @torch.no_grad()
    def probabilities(self, encoder: Encoder, examples: Ints) -> Floats:
        """Return float32[n, classes] of other examples of the corpus, with encoder and head as they are."""
        parts = []
        for start in range(0, len(examples), _CHUNK):
            part = examples[start : start + _CHUNK]
            ids, offsets = (torch.from_numpy(array) for array in self._corpus.cut(part.T.reshape(-1)))
            device = encoder.table.device
            logits = self.head(torch.split(encoder(ids.to(device), offsets.to(device)), len(part)))
            parts.append(torch.softmax(logits, dim=1).cpu().numpy())
        return np.concatenate(parts) if parts else np.zeros((0, self._targets.shape[1]), np.float32)


_HEAD, _ARRAYS = "head.json", "head.npz"
_TO_CHOOSE = 10  # the epoch is chosen by one of ten of the rows that are left
_CHUNK_HEADS = 4_096  # texts whose answers are computed at a time
# Those of the papers' regimes: features, and universal.
_FROZEN = {"epochs": 30, "rate": 5e-3, "fixed_table": True}
_LEARNED = {
    "epochs": 10, "rate": 2e-3, "l2": 1e-5, "l2_center": "initial", "l2_composition": 1e-4,
    "l2_composition_center": "initial",
}  # fmt: skip

HeadTexts = Sequence[tuple[str, ...]]
HeadRows = Sequence[Labeled | Scored]


@dataclass(frozen=True)
class Origin:
    """The model below a head, as its trainer computes it; digest: of what it was read from."""

    encoder: Encoder
    featurizer: Featurizer
    digest: str

    @classmethod
    def open(cls, model: str) -> Origin:
        """Open a run folder, or a bundle by its name or folder.

        Raises InputError where the run is not finished, and BundleError where there is no such bundle or it is no bag
        of rows.
        """
        folder = Path(model)
        if is_begun(folder):
            run = load_run(folder)
            return cls(run.encoder, Featurizer(make_spec(run.config), run.vocabulary), digest(folder / "weights.npz"))
        started = read_start(Start(bundle=folder))
        return cls(started.bag(started.table), started.bundle.featurizer, started.bundle.digest)


@dataclass(frozen=True)
class RowParts:
    """Rows to learn from, to choose the epoch by, and to score: int64[n] each, of one file."""

    learned: Ints
    chosen_by: Ints
    scored: Ints


def head_settings(*, frozen: bool, **changes: float | str | None) -> Supervision:
    """Return the settings of a head over a fixed model, or one that is learned with it; None changes nothing."""
    chosen = {name: value for name, value in changes.items() if value is not None}
    return Supervision.model_validate({"l2_head": 1e-6, **(_FROZEN if frozen else _LEARNED), **chosen})


def parts_of(rows: int, share: float, seed: int) -> RowParts:
    """Draw a share of the rows to be scored, and of the others a tenth, at least one, to choose the epoch by."""
    order = np.random.default_rng(seed).permutation(rows)
    scored = min(max(1, round(share * rows)), rows - 2)
    chosen_by = max(1, (rows - scored) // _TO_CHOOSE)
    return RowParts(order[scored + chosen_by :], order[scored : scored + chosen_by], order[:scored])


def make_way_for_head(folder: Path, *, overwrite: bool) -> None:
    """Check that a head may be written to a folder: a new one, one with a checkpoint, or with `overwrite` a head's.

    Raises InputError, saying what to do.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: not a folder but a file; give --out a folder")
    there = {path.name for path in folder.iterdir()} if folder.exists() else set()
    if not there <= {_HEAD, _ARRAYS, CHECKPOINT}:
        raise InputError(f"{folder}: holds other files than a head; give another --out")
    if there - {CHECKPOINT} and not overwrite:
        raise InputError(f"{folder}: holds a head already; give another --out, or --overwrite")
    if overwrite:
        for name in there:
            (folder / name).unlink()


def learn_head(
    model: str, answers: Answers, rows: HeadRows, folder: Path, settings: Supervision, *, share: float, command: str
) -> dict[str, Any]:
    """Learn a head over a model from labeled texts or scored pairs into a folder; return the record, with its figures.

    With settings.fixed_table the model stays as it is, else it is learned, too. The epoch that is kept is that under
    which the answers to a tenth of what is not scored are likeliest. The same arguments give the same head; stopped,
    they go on from the checkpoint. Raises what `Origin.open` raises, and TrainingInterrupted.
    """
    device = choose_device("cpu")
    settle(device, 1)
    origin = Origin.open(model)
    head = new_head(len(rows[0].texts), origin.encoder.dimension, answers.classes, settings)
    parts = parts_of(len(rows), share, settings.seed)
    before = _before(origin, answers, rows, parts)
    encoder, corpus = _start(origin, [row.texts for row in rows], frozen=settings.fixed_table)
    numbers = np.arange(len(rows) * len(rows[0].texts)).reshape(len(rows), -1)
    truth = answers.truth(rows)
    objective = HeadObjective(
        corpus, numbers[parts.learned], answers.targets(truth[parts.learned]), head, settings
    )  # fmt: skip
    wanted = answers.targets(truth[parts.chosen_by])

    def figures(part: Ints) -> dict[str, float | None]:
        return answers.figures(objective.probabilities(encoder, numbers[part]), truth[part])

    identity = orjson.dumps([origin.digest, settings.model_dump(mode="json"), share, [list(row) for row in rows]])
    folder.mkdir(parents=True, exist_ok=True)
    checkpoint = folder / CHECKPOINT
    history = fit(
        Trainer(encoder, objective, device), checkpoint, identity=hashlib.sha256(identity).hexdigest(),
        resume=checkpoint.is_file(),
        selection=Selection(
            lambda encoder: likelihood(objective.probabilities(encoder, numbers[parts.chosen_by]), wanted),
            objective.steps_per_epoch,
        ),
    )  # fmt: skip
    record = {
        "command": command, "model": str(Path(model).resolve()) if Path(model).exists() else model,
        "digest": origin.digest, **answers.record,
        "sides": len(rows[0].texts), "frozen": settings.fixed_table, "dimension": encoder.dimension,
        "settings": settings.model_dump(mode="json"), "rows": {name: len(part) for name, part in asdict(parts).items()},
        **figures(parts.scored), **before,
        **{f"{name} of the epoch": value for name, value in figures(parts.chosen_by).items()},
        **answers.simplest(truth[parts.learned], truth[parts.scored]), "kept": history.kept, "steps": history.steps,
        "seconds": round(history.seconds, 1), "versions": list_versions(),
    }  # fmt: skip
    arrays = {f"head.{name}": value.detach().numpy() for name, value in head.named_parameters()}
    if not settings.fixed_table:
        arrays |= {f"encoder.{name}": value for name, value in encoder.arrays().items()}
    write_atomically(folder / _ARRAYS, lambda handle: np.savez(handle, **arrays))  # type: ignore[arg-type]
    data = orjson.dumps(record, option=orjson.OPT_INDENT_2) + b"\n"
    write_atomically(folder / _HEAD, lambda handle: handle.write(data))
    checkpoint.unlink(missing_ok=True)
    return record


@dataclass(frozen=True)
class LearnedHead:
    """A finished head with its model."""

    answers: Answers
    sides: int
    origin: Origin
    head: PaperHead

    @classmethod
    def open(cls, folder: Path) -> LearnedHead:
        """Read what `learn_head` wrote. Raises InputError where it is missing, damaged, or its model is another now."""
        try:
            record = orjson.loads((folder / _HEAD).read_bytes())
            with np.load(folder / _ARRAYS, allow_pickle=False) as stored:
                arrays = dict(stored)
            answers, sides = read_answers(record), int(record["sides"])
            settings = Supervision.model_validate(record["settings"])
            head = new_head(sides, record["dimension"], answers.classes, settings)
            head.load_state_dict(_below(arrays, "head."))
        except FileNotFoundError:
            raise InputError(
                f"{folder}: no head here; give a folder that python -m gramvec_research head wrote"
            ) from None
        except (OSError, ValueError, KeyError, TypeError, RuntimeError, zipfile.BadZipFile) as error:
            raise InputError(f"{folder}: the head is damaged ({error}); learn it again") from error
        origin = Origin.open(record["model"])
        if origin.digest != record["digest"]:
            raise InputError(
                f"{record['model']} has changed since the head was learned; put it back, or learn it again"
            )
        if of_encoder := _below(arrays, "encoder."):
            origin.encoder.load_state_dict(of_encoder)
        return cls(answers, sides, origin, head)

    @torch.no_grad()
    def list_answers(self, texts: HeadTexts) -> list[tuple[str, ...]]:
        """Return the likeliest label of each text or pair and its probability, or the score of each pair."""
        encode = make_encode(self.origin.encoder, self.origin.featurizer)
        answers: list[tuple[str, ...]] = []
        for start in range(0, len(texts), _CHUNK_HEADS):
            part = texts[start : start + _CHUNK_HEADS]
            sides = tuple(torch.from_numpy(encode([row[side] for row in part])) for side in range(self.sides))
            answers += self.answers.list_answers(torch.softmax(self.head(sides), dim=1).numpy())
        return answers


def _before(origin: Origin, answers: Answers, rows: HeadRows, parts: RowParts) -> dict[str, float | None]:
    """Return Pearson's r, times 100, of the cosines by the model as it is; nothing for labels."""
    if not isinstance(answers, ScoreAnswers):
        return {}
    scored = [rows[row] for row in parts.scored.tolist()]
    similarity = make_similarity(make_encode(origin.encoder, origin.featurizer), origin.featurizer)
    predicted = similarity([row.texts[0] for row in scored], [row.texts[1] for row in scored])
    return {"pearson of the cosine": pearson(predicted, answers.truth(scored))}


def _start(origin: Origin, texts: HeadTexts, *, frozen: bool) -> tuple[Encoder, Corpus]:
    flat = [text for row in texts for text in row]
    if not frozen:
        return origin.encoder, Corpus.from_texts(flat, origin.featurizer, len(origin.encoder.table))
    return fix_encoder(make_encode(origin.encoder, origin.featurizer)(flat)), one_row_each(len(flat))


def fix_encoder(vectors: Floats) -> Bag:
    """Return an encoder whose rows are the vectors float32[n, d] of n texts, see `one_row_each`."""
    return Bag(torch.from_numpy(vectors), BagSettings(activation="linear", bias=False))


def one_row_each(texts: int) -> Corpus:
    """Return a corpus of n texts, each of which has a row of its own."""
    return Corpus(np.arange(texts, dtype=np.int32), np.arange(texts + 1), texts)


def _below(arrays: dict[str, Floats], start: str) -> dict[str, torch.Tensor]:
    return {name[len(start) :]: torch.from_numpy(value) for name, value in arrays.items() if name.startswith(start)}
