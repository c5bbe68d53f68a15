"""What a model of each kind is, what it is bad at, and the config of its paper: sentences of the card."""

from __future__ import annotations

SYSTEMS = {
    "charagram-phrase": "Character n-grams, summed (CHARAGRAM-PHRASE, Wieting et al., 2016).",
    "charagram-2-layer": "Character n-grams, summed, and a second layer (CHARAGRAM, Wieting et al., 2016).",
    "paragram-phrase": "Averaged word vectors (PARAGRAM-PHRASE, Wieting et al., 2016).",
    "paragram-projection": "Averaged word vectors and one layer (PP-proj, Wieting et al., 2016).",
    "dan": "Averaged word vectors and layers above them (deep averaging network, Iyyer et al., 2015).",
    "rnn": "Words read in their order by a plain recurrent network (RNN, Wieting et al., 2016).",
    "irnn": "Words read in their order by a linear recurrent network that began as the average (iRNN, Wieting et al., "
    "2016).",
    "lstm": "Words read in their order by an LSTM with peepholes (Gers et al., 2003; Wieting et al., 2016).",
    "charlstm": "Characters read in their order by an LSTM with peepholes (charLSTM, Wieting et al., 2016).",
    "charcnn": "Convolutions over characters, and their largest values (charCNN, Wieting et al., 2016).",
    "gramvec": "Character n-grams and whole words in one table, summed; learned from a transformer's vectors.",
    "sif": "Averaged word vectors, weighted by rarity, less their common component (SIF, Arora et al., 2017).",
}
LIMITS = {
    "charagram-phrase": [
        "The order of words hardly counts: only n-grams that cross a space see it.",
        "Negation and numbers change a vector little: a sentence and its denial are close.",
        "Words that look alike are drawn together even where they mean different things, unless training held them "
        "apart.",
        "Long texts add up many n-grams and saturate; it is made for phrases and sentences.",
    ],
    "paragram-phrase": [
        "The order of words does not count: the same words in any order have the same vector.",
        "All words outside the vocabulary share one vector, so misspelt and rare words lose their meaning.",
        "Negation and numbers change a vector little: a sentence and its denial are close.",
    ],
    "gramvec": [
        "The order of words hardly counts: only n-grams that cross a space see it.",
        "Negation and numbers change a vector little: a sentence and its denial are close.",
        "It knows what its teacher knows, and inherits the teacher's mistakes and biases.",
        "Long texts are a plain sum of many features; it is made for phrases and sentences.",
    ],
    "sif": [
        "The order of words does not count: the same words in any order have the same vector.",
        "Words outside the vocabulary are skipped; a text of such words alone is a zero vector, similar to nothing.",
        "The common component is that of the sentences named above; text of a quite different kind gains less.",
        "Negation and numbers change a vector little: a sentence and its denial are close.",
    ],
}
_IN_ORDER = [
    "It goes from step to step, so it is many times slower than a sum of rows.",
    "Texts much longer than those it was trained on are read to their end, and what stood first counts little.",
    "Negation and numbers change a vector little, unless training held such texts apart.",
]
_UNKNOWN_WORDS = LIMITS["paragram-phrase"][1]
_SPELLING = "Words that are spelt alike are drawn together; a character that was not in the training texts is left out."
LIMITS |= {
    "charagram-2-layer": LIMITS["charagram-phrase"],
    "paragram-projection": LIMITS["paragram-phrase"],
    "dan": LIMITS["paragram-phrase"],
    "rnn": [_UNKNOWN_WORDS, *_IN_ORDER],
    "irnn": [_UNKNOWN_WORDS, *_IN_ORDER],
    "lstm": [_UNKNOWN_WORDS, *_IN_ORDER],
    "charlstm": [_SPELLING, *_IN_ORDER],
    "charcnn": [
        _SPELLING,
        "Where in a text something stands does not count, only that it is there.",
        "Long texts saturate: each filter keeps its largest value alone.",
    ],
}
PAPER_CONFIGS = {
    "charagram-phrase": "charagram-phrase-paper",
    "paragram-phrase": "paragram-phrase-paper",
    "sif": "sif-paper",
}
