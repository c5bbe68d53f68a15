"""The training side of gramvec: data, vocabularies, encoders, losses, export and evaluation."""

from gramvec_training.api import distill as distill
from gramvec_training.api import evaluate as evaluate
from gramvec_training.api import fit as fit
from gramvec_training.options import LabelOptions as LabelOptions
from gramvec_training.options import PairOptions as PairOptions
from gramvec_training.options import RunOptions as RunOptions
from gramvec_training.options import TextOptions as TextOptions
from gramvec_training.options import WeightOptions as WeightOptions
