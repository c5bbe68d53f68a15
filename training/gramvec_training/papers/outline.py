"""Every table and figure of the papers: what it shows, the paper's values, and what there is of it here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Item:
    """where: the table, figure or section. paper: its main values. experiments: by name, those that make it here.

    missing: what is not made here, or of it, and why; "" where all of it is. about: what the claims begin with that
    belong to it, where an experiment makes several things.
    """

    where: str
    what: str
    paper: str
    experiments: tuple[str, ...] = ()
    missing: str = ""
    about: tuple[str, ...] = ("",)


@dataclass(frozen=True)
class Paper:
    """A paper and all of its tables, figures and other figures of weight."""

    name: str
    reference: str
    items: tuple[Item, ...]


_22 = "of the paper's sets STS 2012 alone is here: the others are kept apart from this work, or cannot be had"
_BY_CHARACTERS = ("CHARAGRAM",)
_BY_WORDS = ("PARAGRAM-PHRASE", "the best of PP", "plain PP", "RNN", "the LSTM")

PAPERS: tuple[Paper, ...] = (
    Paper(
        "CHARAGRAM",
        "Wieting, Bansal, Gimpel, Livescu: Charagram, 2016",
        (
            Item("Table 1", "word similarity of three character models, SL999 and WS353",
                 "CHARAGRAM 63.3, 58.4; charLSTM 54.5, 51.4; charCNN 30.6, 33.2", ("charagram-table-1",)),
            Item("Table 2", "SL999 and Rare Words against earlier work", "70.6; 47.1",
                 missing="not done: 173,881 n-grams on PPDB XXL, which cannot be had; Rare Words is kept apart"),
            Item("Table 3", "four systems over 22 sets", "CHARAGRAM-PHRASE 68.7, PP 66.2, charCNN 59.2, charLSTM 41.9",
                 ("all-systems",), _22, _BY_CHARACTERS),
            Item("Table 4", "part-of-speech tagging", "charCNN 97.02, charLSTM 96.90, CHARAGRAM 96.99, 2 layers 97.10",
                 ("charagram-table-4",)),
            Item("Figure 1", "how soon each model learns, on words and on tagging", "CHARAGRAM first on both",
                 ("charagram-figure-1", "charagram-figure-1-tagging")),
            Item("Table 5", "number and orders of n-grams, SL999 and tagging",
                 "50,000 each: 14.4 (2) to 69.5 (2 to 6); 1,000: 15.2 to 43.9; 100: 6.2 to 8.8; "
                 "tagging 95.5 to 97.1",
                 ("charagram-table-5", "charagram-table-5-tagging"),
                 "sentences, which gramvec-train sweep makes in hours"),
            Item("Table 6", "pairs by unknown words", "PP 71.4 to 68.6, CHARAGRAM-PHRASE 73.8 to 77.9",
                 ("charagram-table-6",)),
            Item("Table 7", "pairs by length", "CHARAGRAM-PHRASE ahead of PP at each of ten lengths",
                 ("charagram-table-7",)),
            Item("Table 8", "words nearest to a negation", "not capable: incapable, unable; not, capable",
                 ("charagram-table-8",)),
            Item("Table 9", "words nearest to a word", "vehicals: vehical, vehicles, vehicels", ("charagram-table-9",)),
            Item("Table 10", "n-grams nearest to an n-gram", "die: _dy, _die, dead", ("charagram-table-10",)),
            Item("Section 4.4", "numbers of parameters", "charCNN 881,025; charLSTM 763,200",
                 ("charagram-parameters",)),
            Item("Section 4.1", "more filters of charCNN", "better with more of them",
                 ("charagram-filters",)),
            Item("Footnote 4", "a second layer of CHARAGRAM", "worse on similarity", ("all-systems",),
                 about=("a second layer",)),
            Item("Section 5.1", "share of unknown words against score", "correlation -0.45", ("charagram-unknown",)),
            Item("Supplement, Table 1", "each of the 22 sets, with the official quantiles",
                 "CHARAGRAM-PHRASE above PP on 15 of 22", ("all-systems-sets", "all-systems-wins"), _22,
                 ("CHARAGRAM", "PP is", "charCNN")),
        ),
    ),
    Paper(
        "PARAGRAM-PHRASE",
        "Wieting, Bansal, Gimpel, Livescu: Towards universal paraphrastic sentence embeddings, 2016",
        (
            Item("Table 1", "words nearest to a word, against PARAGRAM-SL999", "unlike, 2, disagree and others",
                 missing="cannot be had: PARAGRAM-SL999; charagram-table-9 has two other models side by side"),
            Item("Table 2", "22 sets, averages against LSTMs", "PP 66.8, average of PARAGRAM-SL999 54.9",
                 ("all-systems",), _22, _BY_WORDS),
            Item("Table 3", "phrases like those of training", "all four nearly the same", ("all-systems",),
                 "Annotated-PPDB cannot be had", ("on pairs like",)),
            Item("Table 4", "supervised similarity on SICK", "PP-proj .8668 from universal parameters",
                 ("paragram-table-4",)),
            Item("Table 5", "pairs by length, four models", "averages best at every length", ("paragram-table-5",)),
            Item("Section 5", "over-fitting of the training pairs", ".7535, .7572, .7565, .7463",
                 ("paragram-separation",)),
            Item("Section 6", "lengths of word vectors as weights, reciprocal frequencies", "54.9, 62.6, 45.5",
                 ("paragram-norms",)),
            Item("Footnote 19", "a learned weight a word over fixed vectors", "54.9, 62.1, 66.8",
                 ("paragram-scalars",)),
            Item("Table 6", "undertrained words against score", "turning point at 0.16", ("paragram-table-6",), _22),
            Item("Figure 2", "amount of data", "4 points from 92 pairs", ("paragram-amount",)),
            Item("Table 7", "time of training", "not legible in the text that is at hand",
                 missing="make bench PARTS=training has ours"),
            Item("Table 8", "PARAGRAM-PHRASE XXL", "within 3 points of the best on 8 of 22",
                 missing="cannot be had: PPDB XXL"),
        ),
    ),
    Paper(
        "SIF",
        "Arora, Liang, Ma: A simple but tough-to-beat baseline for sentence embeddings, 2017",
        (
            Item("Figure 1", "word2vec's subsampling against SIF's weights", "curves alike", ("sif-figure-1",)),
            Item("Tables 1 and 5", "all systems, with and without training", "PSL+WR 59.5, PP 58.7 on STS 2012",
                 ("sif-table-6", "all-systems"), "vectors of skip-thought cannot be had"),
            Item("Table 2", "supervised similarity, entailment, sentiment", "SIF 86.0, 84.6, 82.2",
                 ("sif-table-2",), "vectors of skip-thought cannot be had"),
            Item("Table 3", "order of words shuffled", "every recurrent model falls", ("sif-table-3",)),
            Item("Figure 2a", "the parameter a", "best from 1e-3 to 1e-4", ("sif-figure-2a",)),
            Item("Figure 2b", "the source of word frequencies", "almost the same", ("sif-figure-2b",)),
            Item("Section 4.1", "words nearest to the common component", "just, when, even, one, up, little",
                 ("sif-common-words",)),
            Item("Table 6", "weights, removal and both", "GloVe, 2012: 52.5, 54.0, 55.6, 56.2",
                 ("sif-table-6", "sif-table-6-learned")),
            Item("Table 7", "SNLI", "SIF 78.2, LSTM 77.6", ("sif-table-7", "sif-table-7-layers"),
                 "SNLI's training part cannot be had"),
            Item("Table 8", "IMDB against NB-SVM", "50,000 labels .85, .91; 200 labels .77, .73",
                 ("sif-table-8",), "IMDB but 2,440 reviews cannot be had"),
        ),
    ),
)  # fmt: skip
