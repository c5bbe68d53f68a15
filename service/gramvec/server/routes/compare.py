"""POST /similarity, /match and /explain: texts compared by meaning, by their n-grams, and what made a score."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from gramvec.embed.vectors import RawEmbeddings, cosine_matrix, cosine_pairs
from gramvec.errors import InputError
from gramvec.explain.contributions import MAX_CHARACTERS, MAX_PAIRS, TOP_K, explain
from gramvec.lexical.top_k import top_k_of_rows
from gramvec.server.errors import too_large_error
from gramvec.server.inference import ModelWork
from gramvec.server.model_route import model_router
from gramvec.server.openapi import EMPTY_HEADERS, ERRORS, Scores, ok
from gramvec.server.responses import (
    ENTRY_NUMBERS,
    Headers,
    Response,
    encode_in_pieces,
    join_as_list,
    list_paths,
    rows_as_json,
    to_json,
)
from gramvec.server.schemas import (
    WHOLE,
    Body,
    LeftAndRight,
    Pairs,
    PositiveWhole,
    RequestedModel,
    SimilarityParameters,
    SimilarityRequest,
    Texts,
)
from gramvec.server.state.memory_budget import ENTRY_BYTES, NUMBER_BYTES, SCORE_BYTES

# A matrix of more is computed in a thread.
LOOP_SCORES = 8_192
# Scores that are sorted at a time: a megabyte.
ORDERED_SCORES = 64 * 1024


router = model_router("texts")


@router.post(
    "/similarity",
    responses=ok(
        "A list of scores; a matrix for left and right; with top_k the best of each left text.",
        Scores,
        headers=EMPTY_HEADERS,
    )
    | ERRORS,
)
async def compare_texts(work: ModelWork, body: SimilarityRequest) -> Response:
    """Compare texts by their cosine in [-1, 1]: one with many, pairs, or every left text with every right one.

    A text without a single known feature scores 0 with everything; the header `x-empty-inputs` names such texts.
    """
    served = work.model(body.model, nominal=True)
    inputs = body.inputs
    if body.top_k is not None and not isinstance(inputs, LeftAndRight):
        raise InputError("top_k goes with inputs of left and right only; leave it out", field="top_k")
    texts = inputs.texts()
    work.check_count(len(texts))
    parameters = body.parameters or SimilarityParameters()
    texts = work.prepare(
        served, texts, inputs.path, truncate=parameters.truncate, direction=parameters.truncation_direction
    )
    n_left = 0 if isinstance(inputs, Pairs) else len(inputs.left) if isinstance(inputs, LeftAndRight) else 1
    work.reserve(_bytes_of(n_left, len(texts), body.top_k))
    rows, distinct = _distinct(texts)
    embedded = await work.embed(served, distinct)
    embeddings = embedded.take(rows)

    empty = np.flatnonzero(embeddings.feature_counts == 0)
    headers: Headers = []
    if len(empty):
        headers.append((b"x-empty-inputs", list_paths([inputs.path(index) for index in empty.tolist()])))
    if isinstance(inputs, Pairs):
        scores = cosine_pairs(embeddings.take(slice(0, None, 2)), embeddings.take(slice(1, None, 2)))
        return Response(await rows_as_json(scores, 1), headers=headers)
    n_right = len(texts) - n_left
    compute = partial(_matrix, embeddings.take(slice(n_left)), embeddings.take(slice(n_left, None)), body.top_k)
    if n_left * n_right <= LOOP_SCORES:
        matrix = compute()
    else:
        with work.admit("comparisons", n_left * n_right) as job:
            matrix = await job.run(compute)
    if isinstance(matrix, Best):
        columns = ENTRY_NUMBERS * matrix.scores.shape[1]
        return Response(join_as_list(await encode_in_pieces(matrix, columns, Best.to_json)), headers=headers)
    if isinstance(inputs, LeftAndRight):
        return Response(await rows_as_json(matrix, n_right), headers=headers)
    return Response(await rows_as_json(matrix[0], 1), headers=headers)


class Best:
    """Indices int32[n, k] of the best right texts for each left one, and their scores float32[n, k]."""

    def __init__(self, indices: NDArray[np.int32], scores: NDArray[np.float32]) -> None:
        self.indices = indices
        self.scores = scores

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, rows: slice) -> Best:
        return Best(self.indices[rows], self.scores[rows])

    def to_json(self) -> bytes:
        """Return a list of {"index": i, "score": s} for each left text. No object is made for a score."""
        rows = []
        for indices, scores in zip(self.indices.tolist(), self.scores, strict=True):
            spelt = zip(indices, to_json(scores)[1:-1].split(b","), strict=True)
            rows.append(b"[%b]" % b",".join(map(b'{"index":%d,"score":%b}'.__mod__, spelt)))
        return b"[%b]" % b",".join(rows)


def _bytes_of(n_left: int, n_texts: int, top_k: int | None) -> int:
    """Return the most bytes of the scores and the response."""
    n_right = n_texts - n_left
    if top_k is None:
        return max(n_texts, n_left * n_right) * NUMBER_BYTES
    return n_left * (n_right * SCORE_BYTES + min(top_k, n_right) * ENTRY_BYTES)


def _distinct(texts: list[str]) -> tuple[NDArray[np.int64], list[str]]:
    """Return each text once, and the place of every given text among them."""
    places: dict[str, int] = {}
    rows = np.array([places.setdefault(text, len(places)) for text in texts], np.int64)
    return rows, list(places)


def _matrix(left: RawEmbeddings, right: RawEmbeddings, top_k: int | None) -> NDArray[np.float32] | Best:
    matrix = cosine_matrix(left, right)
    return matrix if top_k is None else _best(matrix, top_k)


def _best(matrix: NDArray[np.float32], k: int) -> Best:
    n_left, n_right = matrix.shape
    indices = np.empty((n_left, min(k, n_right)), np.int32)
    scores = np.empty(indices.shape, np.float32)
    step = max(1, ORDERED_SCORES // n_right)
    for start in range(0, n_left, step):
        rows = matrix[start : start + step]
        indices[start : start + step], scores[start : start + step] = top_k_of_rows(rows, k)
    return Best(indices, scores)


# In all texts of a request: two seconds of a core where each left text shares n-grams with each right one.
MAX_MATCH_CHARACTERS = 500_000
# Matters only where max_texts is raised.
MAX_MATCH_PAIRS = 2_000_000
# In the response to one request.
MAX_MATCHES = 100_000
# Right texts that are looked at for a left one, about: what a response without `top` may hold.
CANDIDATES = 20
# N-grams of a character, of 16 bytes each in both lists' vectors and as much while they are multiplied.
BYTES_A_CHARACTER = 2 * 32
# Making n-grams of a character, and comparing a left with a right text, in characters of work.
MATCH_COST = 3

Share = Annotated[float, Field(ge=0, le=1)]


class MatchRequest(Body):
    """Two lists of texts."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"left": ["canon sd1100", "nikon s8100"], "right": ["nikon s8100 black", "canon sd1100 is"]}]
        }
    )

    left: Texts
    right: Texts
    top: PositiveWhole | None = Field(
        None, description="The most right texts for each left one; all from the threshold on without it."
    )
    threshold: Share | None = Field(
        None,
        description="The lowest score of a match, 0 to 1; else that of the highest expected F1, or 0.35 one to one.",
    )
    one_to_one: bool | None = Field(
        False, description="No text is in two matches: the best first, among the ten nearest of each text."
    )

    def path(self, index: int) -> str:
        """Return the place of a text in the body, counted through the left ones first."""
        return f"left[{index}]" if index < len(self.left) else f"right[{index - len(self.left)}]"


class MatchedTexts(BaseModel):
    """Places of a left and a right text, and the probability that they name the same thing."""

    left: int
    right: int
    score: float


class MatchAnswer(BaseModel):
    """The response of /match: the matches by left text, then by falling score, and the lowest score that was taken."""

    matches: list[MatchedTexts]
    threshold: float


@router.post("/match", responses=ok("The matches, by left text and then the highest score.", MatchAnswer) | ERRORS)
async def match_texts(work: ModelWork, body: MatchRequest) -> Response:
    """Match two lists of texts: the most similar right texts of each left one, by rare n-grams and words.

    No model takes part: this is what `gramvec match` does with tables. All pairs of texts are considered.
    """
    service = work.service
    work.check_count(len(body.left) + len(body.right))
    served = service.admit()
    texts = work.prepare(served, [*body.left, *body.right], body.path)
    characters = work.check_characters(texts, MAX_MATCH_CHARACTERS)
    n_left, n_right = len(body.left), len(body.right)
    top = min(body.top or CANDIDATES, n_right)
    if n_left * n_right > MAX_MATCH_PAIRS:
        raise too_large_error(
            f"{n_left} left and {n_right} right texts are more than {MAX_MATCH_PAIRS} pairs; send fewer texts"
        )
    if n_left * top > MAX_MATCHES:
        raise too_large_error(f"{n_left} left texts with top {top} are more than {MAX_MATCHES} matches; ask for fewer")
    work.reserve(BYTES_A_CHARACTER * characters + n_left * top * ENTRY_BYTES)
    left, right = texts[:n_left], texts[n_left:]
    with work.admit("matches", MATCH_COST * (characters + n_left * n_right)) as job:
        encoded = await job.run(lambda: _match(left, right, body.top, body.threshold, bool(body.one_to_one)))
    await work.count_job(job, served, texts)
    return Response([encoded])


def _match(left: list[str], right: list[str], top: int | None, threshold: float | None, one_to_one: bool) -> bytes:
    # They import SciPy, which no other route needs.
    from gramvec.jobs.matching.fields import Field
    from gramvec.jobs.matching.match_tables import match_fields

    done = match_fields([Field(left, right, 1.0)], top=top, threshold=threshold, one_to_one=one_to_one)
    found = done.matches
    matches = [
        {"left": a, "right": b, "score": score}
        for a, b, score in zip(found.left.tolist(), found.right.tolist(), list(found.scores), strict=True)
    ]
    return to_json({"matches": matches, "threshold": np.float32(done.threshold)})


# In characters of work: an explanation, and the pairs of characters that one of them pays for.
EXPLAIN_COST, EXPLAIN_PAIRS = 3_000, 16


class SourceAndTarget(Body):
    """The two texts of an explanation."""

    source_sentence: str
    target_sentence: str

    @staticmethod
    def path(index: int) -> str:
        """Return the place of a text in the body."""
        return "inputs.target_sentence" if index else "inputs.source_sentence"


class ExplainRequest(Body):
    """Two texts whose cosine to explain."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"inputs": {"source_sentence": "vehicals", "target_sentence": "vehicles"}, "top_k": 1}]
        }
    )

    inputs: SourceAndTarget = Field(description=f"Two texts of at most {MAX_CHARACTERS} characters each.")
    top_k: Annotated[int, Field(ge=1, le=MAX_PAIRS), WHOLE] | None = Field(
        TOP_K, description="The number of pairs of features, and of pairs of words, that are listed, the largest first."
    )
    model: RequestedModel = None


class ExplainedFeature(Body):
    """A feature and the code-point offsets of its first occurrence in the given text."""

    kind: str
    text: str
    start: int
    end: int
    times: int


class ExplainedPair(Body):
    """A pair of features and what it adds to the score."""

    source: ExplainedFeature
    target: ExplainedFeature
    contribution: float


class ExplainedWord(Body):
    """A word (text between white space) and its code-point offsets in the given text."""

    text: str
    start: int
    end: int


class ExplainedWords(Body):
    """A pair of words and what their features add to the score."""

    source: ExplainedWord
    target: ExplainedWord
    contribution: float


class Explained(Body):
    """A score and its parts: contributions + rest + residual = score."""

    score: float
    residual: float = Field(
        description="The part that no pair of features explains: the model's bias, and rounding; for a model that is "
        "more than a sum of rows, also the effect of single features."
    )
    rest: float = Field(description="The sum of the pairs that are not listed.")
    coverage: list[float] = Field(
        description="Share of each text's characters, white space aside, that lie in a feature of the vocabulary."
    )
    features: list[ExplainedPair]
    words: list[ExplainedWords] = Field(
        description="The same by words, the largest first; a feature over two words is shared between them by its "
        "characters."
    )
    words_rest: float = Field(description="The sum of the pairs of words that are not listed.")
    characters: list[list[float]] = Field(
        description="For each text one number per code point: the contributions, spread over characters of features."
    )


@router.post("/explain", responses=ok("The score and its parts.", Explained) | ERRORS)
async def explain_texts(work: ModelWork, body: ExplainRequest) -> Response:
    """Explain the cosine of two texts: the features that made it, and what each character adds to it.

    The score is that of `/similarity`. Where the model has no bias, the contributions sum to it.
    """
    served = work.model(body.model)
    inputs = body.inputs
    texts = [inputs.source_sentence, inputs.target_sentence]
    work.prepare(served, texts, inputs.path, truncate=False)
    for index, text in enumerate(texts):
        if len(text) > MAX_CHARACTERS:
            path = inputs.path(index)
            raise InputError(
                f"{path} has {len(text)} characters, and explanations take {MAX_CHARACTERS}: shorten it",
                field=path,
                index=index,
            )

    def explain_both() -> bytes:
        return to_json(explain(served.embedder, *texts, top_k=body.top_k or TOP_K).to_dict())

    pairs = len(texts[0]) * len(texts[1])
    with work.admit("explanations", EXPLAIN_COST + pairs // EXPLAIN_PAIRS) as job:
        encoded = await job.run(explain_both)
    await work.count_job(job, served, texts)
    return Response([encoded])
