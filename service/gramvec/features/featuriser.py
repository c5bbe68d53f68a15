"""The one featuriser of training and serving."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from gramvec.errors import InputError
from gramvec.features import plain
from gramvec.features.batch import FeatureBatch
from gramvec.features.spec import FeatureSpec
from gramvec.features.text import CodePoints, code_points
from gramvec.vocab import Vocabulary


class Featuriser:
    """Texts to the rows of the table that a model sums.

    compiled: True for the numba pass, False for numpy, None for numba where it is installed.
    Both give the same ids in the same order: each text's n-grams by their last character, shorter first, then
    its words. Calls are pure and may run in several threads.

    Raises InputError if the spec and the vocabulary do not fit together.
    """

    def __init__(self, spec: FeatureSpec, vocabulary: Vocabulary, *, compiled: bool | None = None) -> None:
        if spec.lowercase != vocabulary.lowercase:
            raise InputError("the FeatureSpec and the vocabulary disagree on lowercase; build them together")
        if spec.orders and spec.orders[-1] * vocabulary.bits > 64:
            raise InputError(
                f"n-grams of {spec.orders[-1]} characters do not fit this vocabulary's {vocabulary.bits}-bit "
                "characters; build the vocabulary with the same FeatureSpec"
            )
        if spec.unknown_words == "row" and vocabulary.unknown_row < 0:
            raise InputError("unknown_words='row', but the vocabulary has no row for unknown words")
        self.spec = spec
        self.vocabulary = vocabulary
        self._featurise = _choose(spec, vocabulary, compiled)

    @property
    def compiled(self) -> bool:
        """Whether the numba pass is in use."""
        return not isinstance(self._featurise, partial)

    def __call__(self, texts: Sequence[str]) -> FeatureBatch:
        """The features of each text; a text without a known feature has none.

        Raises InputError with the text's index for a lone surrogate or anything but str.
        """
        return self._featurise(code_points(texts))


def _choose(spec: FeatureSpec, vocabulary: Vocabulary, compiled: bool | None) -> Callable[[CodePoints], FeatureBatch]:
    if compiled is not False:
        try:
            from gramvec.features.compiled import CompiledFeaturiser

            return CompiledFeaturiser(spec, vocabulary)
        except ImportError as error:
            if compiled:
                raise InputError("compiled=True needs numba: pip install numba") from error
    return partial(plain.featurise, spec=spec, vocabulary=vocabulary)
