"""The systems that a model can be, by the kind in its config: what their cards say of them.

A model of a new encoder needs none: its kind is then that of its [encoder], and its card says that nobody described it.
"""

from __future__ import annotations

from dataclasses import dataclass

from gramvec_training.registry import import_modules


@dataclass(frozen=True)
class System:
    """A sentence that describes the system, what it is bad at, and the name of its paper's config where it has one."""

    about: str
    limits: tuple[str, ...]
    paper_config: str | None = None


_SYSTEMS: dict[str, System] = {}


def register_system(kind: str, about: str, limits: tuple[str, ...], *, paper_config: str | None = None) -> None:
    """Register a kind of model, for `model.kind` of a config.

    Raises:
        ValueError: There is another one of that kind.
    """
    if kind in _SYSTEMS:
        raise ValueError(f"there are two systems of kind {kind!r}; rename one")
    _SYSTEMS[kind] = System(about, limits, paper_config)


def find_system(kind: str) -> System:
    """Return the system of a kind; one that is not here is sought in the files of the encoders.

    Raises:
        ValueError: There is none.
    """
    if kind not in _SYSTEMS:
        import_modules("gramvec_training.encoders")
    if kind not in _SYSTEMS:
        raise ValueError(f"there is no kind of model {kind!r}; there are {', '.join(_SYSTEMS)}")
    return _SYSTEMS[kind]


def describe_system(kind: str) -> System:
    """Return the system of a kind, or of one that nobody has registered what is known of it: its name."""
    try:
        return find_system(kind)
    except ValueError:
        return System(f"A model of the encoder {kind}.", ("Nobody has described it yet (register_system).",))


_NEGATION = "Negation and numbers change a vector little: a sentence and its denial are close."
_NO_ORDER = "The order of words does not count: the same words in any order have the same vector."
_HARDLY_ORDER = "The order of words hardly counts: only n-grams that cross a space see it."
_UNKNOWN_WORDS = "All words outside the vocabulary share one vector, so misspelt and rare words lose their meaning."
_SPELLING = "Words that are spelt alike are drawn together; a character that was not in the training texts is left out."
_BY_NGRAMS = (
    _HARDLY_ORDER,
    _NEGATION,
    "Words that look alike are drawn together even where they mean different things, unless training held them apart.",
    "Long texts add up many n-grams and saturate; it is made for phrases and sentences.",
)
_BY_WORDS = (_NO_ORDER, _UNKNOWN_WORDS, _NEGATION)
_IN_ORDER = (
    "It goes from step to step, so it is many times slower than a sum of rows.",
    "Texts much longer than those it was trained on are read to their end, and what stood first counts little.",
    "Negation and numbers change a vector little, unless training held such texts apart.",
)

register_system(
    "charagram-phrase",
    "Character n-grams, summed (CHARAGRAM-PHRASE, Wieting et al., 2016).",
    _BY_NGRAMS,
    paper_config="charagram-phrase-paper",
)
register_system(
    "charagram-2-layer",
    "Character n-grams, summed, and a second layer (CHARAGRAM, Wieting et al., 2016).",
    _BY_NGRAMS,
)
register_system(
    "paragram-phrase",
    "Averaged word vectors (PARAGRAM-PHRASE, Wieting et al., 2016).",
    _BY_WORDS,
    paper_config="paragram-phrase-paper",
)
register_system(
    "paragram-projection", "Averaged word vectors and one layer (PP-proj, Wieting et al., 2016).", _BY_WORDS
)
register_system(
    "dan",
    "Averaged word vectors and layers above them (deep averaging network, Iyyer et al., 2015).",
    _BY_WORDS,
)
register_system(
    "rnn",
    "Words read in their order by a plain recurrent network (RNN, Wieting et al., 2016).",
    (_UNKNOWN_WORDS, *_IN_ORDER),
)
register_system(
    "irnn",
    "Words read in their order by a linear recurrent network that began as the average (iRNN, Wieting et al., 2016).",
    (_UNKNOWN_WORDS, *_IN_ORDER),
)
register_system(
    "lstm",
    "Words read in their order by an LSTM with peepholes (Gers et al., 2003; Wieting et al., 2016).",
    (_UNKNOWN_WORDS, *_IN_ORDER),
)
register_system(
    "charlstm",
    "Characters read in their order by an LSTM with peepholes (charLSTM, Wieting et al., 2016).",
    (_SPELLING, *_IN_ORDER),
)
register_system(
    "charcnn",
    "Convolutions over characters, and their largest values (charCNN, Wieting et al., 2016).",
    (
        _SPELLING,
        "Where in a text something stands does not count, only that it is there.",
        "Long texts saturate: each filter keeps its largest value alone.",
    ),
)
register_system(
    "sif",
    "Averaged word vectors, weighted by rarity, less their common component (SIF, Arora et al., 2017).",
    (
        _NO_ORDER,
        "Words outside the vocabulary are skipped; a text of such words alone is a zero vector, similar to nothing.",
        "The common component is that of the sentences named above; text of a quite different kind gains less.",
        _NEGATION,
    ),
    paper_config="sif-paper",
)
register_system(
    "gramvec",
    "Character n-grams and whole words in one table, summed; learned from a transformer's vectors.",
    (
        _HARDLY_ORDER,
        _NEGATION,
        "It knows what its teacher knows, and inherits the teacher's mistakes and biases.",
        "Long texts are a plain sum of many features; it is made for phrases and sentences.",
    ),
)
