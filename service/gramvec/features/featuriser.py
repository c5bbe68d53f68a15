"""The one featuriser of training and serving."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from gramvec.errors import InputError
from gramvec.features import plain
from gramvec.features.batch import FeatureBatch
from gramvec.features.spec import FeatureSpec
from gramvec.features.text import CodePoints, code_points
from gramvec.vocab import Memo, Vocabulary


class Featuriser:
    """Texts to the rows of the table that a model sums.

    compiled: True for the numba pass, False for numpy, None for numba where it is installed.
    Both give the same ids in the same order: each text's n-grams by their last character, shorter first, then
    its words. Calls are pure and may run in several threads.
    memo: rows for frequent chunks, which the compiled pass takes in place of their features (see CompiledFeaturiser);
    the numpy pass does without. A text's rows have the same sum with it and without it.

    Raises InputError if the spec, the vocabulary and the memo do not fit together.
    """

    def __init__(
        self,
        spec: FeatureSpec,
        vocabulary: Vocabulary,
        *,
        compiled: bool | None = None,
        memo: Memo | None = None,
    ) -> None:
        if spec.lowercase != vocabulary.lowercase:
            raise InputError("the FeatureSpec and the vocabulary disagree on lowercase; build them together")
        if spec.orders and spec.orders[-1] * vocabulary.bits > 64:
            raise InputError(
                f"n-grams of {spec.orders[-1]} characters do not fit this vocabulary's {vocabulary.bits}-bit "
                "characters; build the vocabulary with the same FeatureSpec"
            )
        if spec.unknown_words == "row" and vocabulary.unknown_row < 0:
            raise InputError("unknown_words='row', but the vocabulary has no row for unknown words")
        if memo is not None and (not can_be_memoised(spec) or memo.first_row != len(vocabulary)):
            raise InputError("the memo does not fit the FeatureSpec and the vocabulary; export the bundle again")
        self.spec = spec
        self.vocabulary = vocabulary
        self._featurise = _choose(spec, vocabulary, compiled, memo)
        self.memo = memo if self.compiled else None

    @property
    def compiled(self) -> bool:
        """Whether the numba pass is in use."""
        return not isinstance(self._featurise, partial)

    def __call__(self, texts: Sequence[str]) -> FeatureBatch:
        """The features of each text; a text without a known feature has none.

        Raises InputError with the text's index for a lone surrogate or anything but str.
        """
        return self._featurise(code_points(texts))


def can_be_memoised(spec: FeatureSpec) -> bool:
    """Whether chunks have sums of their own: n-grams of one character would count a space for both its sides."""
    return bool(spec.orders) and spec.orders[0] > 1


def _choose(
    spec: FeatureSpec, vocabulary: Vocabulary, compiled: bool | None, memo: Memo | None
) -> Callable[[CodePoints], FeatureBatch]:
    if compiled is not False:
        try:
            from gramvec.features.compiled import CompiledFeaturiser

            return CompiledFeaturiser(spec, vocabulary, memo)
        except ImportError as error:
            if compiled:
                raise InputError("compiled=True needs numba: pip install numba") from error
    return partial(plain.featurise, spec=spec, vocabulary=vocabulary)
