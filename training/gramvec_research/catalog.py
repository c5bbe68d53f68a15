"""All experiments by name, in the order of the papers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from gramvec.errors import InputError
from gramvec_research import charagram, paragram, sif, systems, tagging
from gramvec_research.shared import GIVEN, PHRASE, SN, Drawing, Experiment

_VECTORS = "GloVe 6B of 50 dimensions for GloVe 840B of 300; sts12, sts16 and SICK's trial part for STS 2012 to 2015"
_KINDS = (
    "SN is learned by the command vectors from 3 million words of Wikipedia, the 8,000 commonest, of 50 dimensions, "
    "with the first seed; PARAGRAM-PHRASE is the shipped bundle's words, or what --norms-of names"
)
_PAIRS = (
    "121,000 open pairs of phrases and sentences, three epochs, for PPDB; GloVe 6B of 50 dimensions for PARAGRAM-SL999"
)
_ENCODERS = (
    "encoders begin as the models of all-systems or their vectors; one setting of the learning for all, where the "
    "papers searched"
)
_TREEBANK = (
    "12,544 sentences of English texts of the web (EWT, its Penn tags), {} epochs of one setting for each encoder, for "
    "sections 1 to 18 of the Wall Street Journal and 50 epochs of tuned ones"
)
_BUNDLES = "the shipped bundles, which learned from a transformer, for the paper's models"

EXPERIMENTS: tuple[Experiment, ...] = (
    Experiment(
        "all-systems", "CHARAGRAM, Table 3; PARAGRAM-PHRASE, Tables 2 and 3; SIF, Tables 1 and 5",
        "All systems, learned from the same pairs and the same vectors", _PAIRS, systems.all_systems, learns=True,
        note="Rates and sampling are those of one to four tried that were best on the phrases with the first seed. "
        "charCNN with MAX ended at 12, 2 and 7 where MIX has its row; charLSTM at 5e-3 has 39, 49 and 43: it needs "
        "tens of epochs.",
    ),
    Experiment(
        "all-systems-sets", "CHARAGRAM, Table 1 of the supplement", "All systems set by set", _PAIRS,
        systems.set_by_set,
        learns=True,
        note="SIF is the average of the given vectors with weights and removal.",
    ),
    Experiment(
        "all-systems-wins", "CHARAGRAM, Table 1 of the supplement; SIF, Table 5",
        "On how many sets each system is above each other one", "models of all-systems; 11 sets for 22",
        systems.set_wins,
        learns=True,
        note="A row's system is above the column's on so many sets. To the right: its wins over all others in a task.",
    ),
    Experiment(
        "charagram-table-1", "CHARAGRAM, Table 1", "Character models on single words",
        "60,000 pairs of PPDB's words, four epochs, 100 dimensions, for 770,007, fifty epochs and 300",
        charagram.word_similarity, learns=True,
    ),
    Experiment(
        "charagram-table-4", "CHARAGRAM, Table 4", "Part-of-speech tagging over four word encoders",
        f"{_TREEBANK.format('ten')}; WSJ is 3,914 sentences of the Journal, scored by what learned from the web",
        tagging.tagging_accuracies, learns=True, tags=True,
        note="Accuracy times 100 of the epoch that was best on the held-out part. charLSTM still rose in the tenth. "
        "The second layer's lead is 0.006, and seeds are up to 0.29 apart.",
    ),
    Experiment(
        "charagram-figure-1", "CHARAGRAM, Figure 1", "How soon character models learn words",
        "the runs of charagram-table-1", charagram.word_curves, learns=True,
        drawing=Drawing("pairs", ("CHARAGRAM", "charCNN", "charLSTM")),
    ),
    Experiment(
        "charagram-figure-1-tagging", "CHARAGRAM, Figure 1", "How soon character models learn to tag",
        "the runs of charagram-table-4, on EWT's development part", tagging.tagging_curves, learns=True, tags=True,
        drawing=Drawing("epoch", ("CHARAGRAM", "CHARAGRAM, 2 layers", "charCNN", "charLSTM")),
    ),
    Experiment(
        "charagram-table-5", "CHARAGRAM, Table 5", "Number and orders of n-grams, on SL999",
        "60,000 pairs of PPDB's words, two epochs, 100 dimensions, for 770,007, five epochs and 300",
        charagram.word_sizes,
        learns=True,
    ),
    Experiment(
        "charagram-table-5-tagging", "CHARAGRAM, Table 5", "Number and orders of n-grams, in tagging",
        _TREEBANK.format("two"), tagging.tagging_by_ngrams, learns=True, tags=True,
        note="Accuracy times 100 on EWT's development part after the last epoch.",
    ),
    Experiment(
        "charagram-table-6", "CHARAGRAM, Table 6", "Pairs by their number of unknown words",
        "models of all-systems; sts12 and sts16; unknown is what GloVe 6B's first 50,000 words lack",
        charagram.pairs_by_unknown_words, learns=True,
    ),
    Experiment(
        "charagram-table-7", "CHARAGRAM, Table 7", "Pairs by their length in words",
        "models of all-systems; sts12 and sts16", charagram.pairs_by_length, learns=True,
    ),
    Experiment(
        "charagram-table-8", "CHARAGRAM, Table 8", "Words nearest to a negation", _BUNDLES,
        charagram.nearest_to_negations,
    ),
    Experiment(
        "charagram-table-9", "CHARAGRAM, Table 9", "Words nearest to a word", _BUNDLES,
        charagram.nearest_to_words,
    ),
    Experiment(
        "charagram-table-10", "CHARAGRAM, Table 10", "N-grams nearest to an n-gram", _BUNDLES,
        charagram.nearest_to_ngrams,
    ),
    Experiment(
        "charagram-parameters", "CHARAGRAM, section 4.4", "Numbers of parameters", "the paper's own sizes",
        charagram.numbers_of_parameters,
    ),
    Experiment(
        "charagram-filters", "CHARAGRAM, section 4.1", "Number of charCNN's filters",
        "60,000 pairs of PPDB's words, four epochs, 100 dimensions", charagram.filters, learns=True,
    ),
    Experiment(
        "charagram-unknown", "CHARAGRAM, section 5.1", "Shares of unknown words and scores, set by set",
        "models of all-systems; 11 sets for 22; unknown is what GloVe 6B's first 50,000 words lack",
        charagram.scores_by_unknown_words,
        learns=True,
    ),
    Experiment(
        "paragram-table-5", "PARAGRAM-PHRASE, Table 5", "Averages and LSTMs by length",
        "models of all-systems; sts12 and sts16", paragram.lengths_of_compositions, learns=True,
    ),
    Experiment(
        "paragram-separation", "PARAGRAM-PHRASE, section 5", "How well training pairs are kept from other texts",
        "models of all-systems; 2,000 of the pairs that they learned from", paragram.separation_of_pairs, learns=True,
    ),
    Experiment(
        "paragram-amount", "PARAGRAM-PHRASE, Figure 2", "PARAGRAM-PHRASE over the amount of data",
        "82,550 mined pairs of phrases, the most frequent first, for the 3,033,753 of PPDB XL",
        paragram.scores_by_amount,
        learns=True, drawing=Drawing("pairs", ("file's order", "permuted"), logarithmic=True),
    ),
    Experiment(
        "paragram-norms", "PARAGRAM-PHRASE, section 6", "Lengths of trained word vectors as weights",
        "GloVe 6B of 50 dimensions for PARAGRAM-SL999; the shipped paragram-phrase, or what --norms-of names",
        paragram.norms_as_weights,
    ),
    Experiment(
        "paragram-scalars", "PARAGRAM-PHRASE, footnote 19", "A number a word, learned over fixed vectors",
        f"{_PAIRS}; sts12, sts16 and SICK's trial part for 22 sets", paragram.learned_scalars, learns=True,
        note="Rate and sampling are those of five tried that were best on the phrases with the first seed; MIX at the "
        "same rate is 0.9 behind on these and has 46, 50 and 61.",
    ),
    Experiment(
        "paragram-table-6", "PARAGRAM-PHRASE, Table 6", "Words that training saw seldom, and scores, set by set",
        "models of all-systems; 11 sets for 22; undertrained is what the training pairs, a thirtieth of the paper's, "
        "hold fewer than 10 times for 100",
        paragram.scores_by_undertrained_words, learns=True,
    ),
    Experiment(
        "paragram-table-4", "PARAGRAM-PHRASE, Table 4", "Supervised similarity on SICK in three regimes",
        f"SICK's trial part is scored; {_ENCODERS}", paragram.supervised_regimes, learns=True, labels=True,
    ),
    Experiment(
        "sif-table-2", "SIF, Table 2", "Supervised similarity, entailment and sentiment",
        f"SICK's trial part is scored; 10,000 of 67,349 phrases of sentiment; {_ENCODERS}", sif.supervised_table,
        learns=True, labels=True,
    ),
    Experiment(
        "sif-table-3", "SIF, Table 3", "Supervised tasks with the order of words shuffled",
        f"SICK's trial part is scored; 10,000 of 67,349 phrases of sentiment; {_ENCODERS}", sif.shuffled_table,
        learns=True, labels=True,
    ),
    Experiment(
        "sif-table-7", "SIF, Table 7", "Natural language inference",
        f"SNLI's development part for its training part, and the pair's head for three more layers; {_ENCODERS}",
        sif.inferences, learns=True, labels=True,
    ),
    Experiment(
        "sif-table-7-layers", "SIF, Table 7", "Natural language inference below three layers",
        f"SNLI's development part for its training part; {_ENCODERS}", partial(sif.inferences, joined=True),
        learns=True, labels=True,
    ),
    Experiment(
        "sif-table-8", "SIF, Table 8", "Reviews with many and with few labels, SIF against NB-SVM",
        "1,707 reviews of IMDB for 25,000; GloVe 6B of 50 dimensions for GloVe 840B of 300", sif.scores_by_labels,
        learns=True, labels=True,
    ),
    Experiment(
        "sif-table-6", "SIF, Tables 1 and 6", "Averages, tf-idf, weights (W), removal (R) and both (WR)",
        _VECTORS, sif.ablation_of_given,
    ),
    Experiment(
        "sif-table-6-learned", "SIF, Table 6", "The same over vectors that are learned here",
        f"sts12, sts16 and SICK's trial part for STS 2012 to 2015; {_KINDS}", sif.ablation_of_learned, learns=True,
        raw=True,
    ),
    Experiment(
        "sif-figure-1", "SIF, Figure 1", "word2vec's subsampling of words against SIF's weights", "the paper's own",
        sif.subsampling_curves, drawing=Drawing("p", ("word2vec", "SIF, a = 1e-4"), logarithmic=True),
    ),
    Experiment(
        "sif-figure-2a", "SIF, Figure 2a", "WR over the parameter a, with three kinds of vectors",
        f"{_VECTORS}; {_KINDS}", sif.parameter_curves, learns=True, raw=True,
        drawing=Drawing("a", (GIVEN, SN, PHRASE), logarithmic=True),
        note="The paper's third kind is PARAGRAM-SL999, of words alone; PARAGRAM-PHRASE has learned from phrases how "
        "much words weigh, and weighing them again takes from it.",
    ),
    Experiment(
        "sif-figure-2b", "SIF, Figure 2b", "WR over sources of word frequencies", _VECTORS,
        sif.frequency_sources,
    ),
    Experiment(
        "sif-common-words", "SIF, section 4.1", "Words nearest to the common component of each task", _VECTORS,
        sif.component_words,
    ),
)  # fmt: skip


def experiment_named(name: str) -> Experiment:
    """Return an experiment. Raises InputError, with the names that there are, for another name."""
    for one in EXPERIMENTS:
        if one.name == name:
            return one
    raise InputError(f"there is no experiment {name}; there are {', '.join(one.name for one in EXPERIMENTS)}")


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
                 "sentences, which python -m gramvec_research sweep makes in hours"),
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
