"""The tables of bodies: as large as one may be, at the limits of JSON, and right ones to be changed in one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

MB = 2**20
LIMIT = 8 * MB


def filled(begin: bytes, unit: bytes, end: bytes) -> bytes:
    """A body as large as one may be, but for a little."""
    return begin + unit * ((LIMIT - 200) // len(unit)) + end


def keys() -> bytes:
    return b'{"inputs": "a"' + b"".join(b',"%x":1' % number for number in range(700_000)) + b"}"


# Path, body, status, and words of the error.
LARGE: dict[str, tuple[str, Callable[[], bytes], int, str]] = {
    "numbers": ("/embed", lambda: filled(b'{"inputs": [', b"1,", b"1]}"), 422, "inputs[0]: must be a string"),
    "objects": ("/embed", lambda: filled(b'{"inputs": [', b"{},", b"1]}"), 422, "inputs[0]: must be a string"),
    "lists": ("/", lambda: filled(b'{"inputs": [', b"[],", b"1]}"), 422, "inputs[0]: must be a string"),
    "numbers behind a text": ("/embed", lambda: filled(b'{"inputs": ["a",', b"1,", b"1]}"), 422, "inputs[1]: must be"),
    "empty texts": ("/embed", lambda: filled(b'{"inputs": [', b'"",', b'""]}'), 413, "send fewer texts"),
    "short texts": ("/embed", lambda: filled(b'{"inputs": [', b'"ab",', b'""]}'), 413, "send fewer texts"),
    "sentences": ("/similarity", lambda: filled(b'{"inputs": {"source_sentence": "a", "sentences": [', b"1,", b"1]}}"),
                  422, "inputs.sentences[0]: must be a string"),
    "pairs": ("/similarity", lambda: filled(b'{"inputs": {"pairs": [', b"1,", b"1]}}"), 422, "pairs[0]: must be"),
    "pairs of numbers": ("/similarity", lambda: filled(b'{"inputs": {"pairs": [', b"[1,1],", b"[]]}}"),
                         422, "inputs.pairs[0][0]: must be a string"),
    "a long pair": ("/similarity", lambda: filled(b'{"inputs": {"pairs": [[', b'"a",', b'"a"]]}}'),
                    422, "inputs.pairs[0]: must hold two texts"),
    "left": ("/similarity", lambda: filled(b'{"inputs": {"right": ["a"], "left": [', b"1,", b"1]}}"),
             422, "inputs.left[0]: must be a string"),
    "right": ("/similarity", lambda: filled(b'{"inputs": {"left": ["a"], "right": [', b"{},", b"1]}}"),
              422, "inputs.right[0]: must be a string"),
    "token ids": ("/v1/embeddings", lambda: filled(b'{"input": [', b"1,", b"1]}"), 400, "token ids"),
    "lists of token ids": ("/v1/embeddings", lambda: filled(b'{"input": [', b"[1,2],", b"[1]]}"), 400, "token ids"),
    "token ids behind a text": ("/v1/embeddings", lambda: filled(b'{"input": ["a",', b"1,", b"1]}"),
                                400, "input[1]: must be a string"),
    "keys": ("/embed", keys, 413, "JSON values"),
    "keys inside": ("/explain", lambda: b'{"inputs": ' + keys() + b"}", 422, "inputs.inputs is not a known field"),
    "left of a match": ("/match", lambda: filled(b'{"right": ["a"], "left": [', b"1,", b"1]}"),
                        422, "left[0]: must be a string"),
    "texts of a match": ("/match", lambda: filled(b'{"right": ["a"], "left": [', b'"ab",', b'""]}'),
                         413, "send fewer texts"),
    "a long match": ("/match", lambda: filled(b'{"right": ["a"], "left": [', b'"' + b"ab " * 20_000 + b'",', b'""]}'),
                     413, "characters are more than the limit"),
    "sparse texts": ("/embed_sparse", lambda: filled(b'{"inputs": [', b"{},", b"1]}"),
                     422, "inputs[0]: must be a string"),
    "lists of a text": ("/predict", lambda: filled(b'{"inputs": [', b'["a"],', b'["a"]]}'), 413, "send fewer texts"),
    "lists of nothing": ("/predict", lambda: filled(b'{"inputs": [', b"[],", b"[]]}"), 422, "inputs[0] is empty"),
    "queries": ("/search", lambda: filled(b'{"queries": [', b"1,", b"1]}"), 422, "queries[0]: must be a string"),
    "narrowed by much": ("/search", lambda: filled(b'{"queries": "a", "where": {"x": [', b'"a",', b'"a"]}}'),
                         413, "send fewer texts"),
    "narrowed deeply": ("/search", lambda: b'{"queries": "a", "where": ' + b'{"x":' * MB + b"1" + b"}" * (MB + 1),
                        400, "not JSON"),
    "documents": ("/v1/rerank", lambda: filled(b'{"query": "a", "documents": [', b'{"text":1},', b"1]}"),
                  400, "documents[0].text: must be a string"),
    "brackets": ("/embed", lambda: b'{"inputs": ' + b"[" * (4 * MB) + b"]" * (4 * MB - 100) + b"}", 400, "not JSON"),
    "digits": ("/embed", lambda: filled(b'{"inputs": ', b"9", b"}"), 400, "not JSON"),
    "numbers behind a surrogate": ("/embed", lambda: filled(b'{"inputs": ["\\ud800",', b"1,", b"1]}"),
                                   422, "inputs[1]: must be a string"),
    "commas in a text": ("/embed", lambda: filled(b'{"inputs": "', b"a,", b'"}'), 422, "characters"),
    "quotes outside of texts": ("/embed", lambda: b"[" + b'\\"' * (2 * MB) + b"," * (3 * MB), 400, "not JSON"),
    "quotes in a text": ("/embed", lambda: filled(b'{"inputs": "', b'\\",', b'"}'), 422, "characters"),
}  # fmt: skip

# Any route is sent each; the answer is one that the page of the routes has.
AT_LIMITS: dict[str, bytes] = {
    "brackets": b"[" * 100_000,
    "objects that do not end": b'{"inputs":' * 9_000,
    "lists in lists of texts": b'{"inputs": [' + b"[" * 50_000 + b"]" * 50_000 + b"]}",
    "lists behind a surrogate": b'{"input": ["\\ud800", ' + b"[" * 40_000 + b"]" * 40_000 + b"]}",
    "a number of 50,000 digits": b'{"inputs": ' + b"9" * 50_000 + b"}",
    "a dimension of 5,000 digits": b'{"inputs": "a", "dimensions": ' + b"9" * 5_000 + b"}",
    "a dimension beyond float64": b'{"inputs": "a", "dimensions": 1e400}',
    "a dimension of minus zero": b'{"inputs": "a", "dimensions": -0}',
    "a field twice": b'{"inputs": "a", "inputs": 5}',
    "a field without a name": b'{"": "a"}',
    "a byte order mark": b"\xef\xbb\xbf" + b'{"inputs": "a"}',
    "UTF-16": '{"inputs": "a"}'.encode("utf-16"),
}

GOOD: dict[str, list[dict[str, Any]]] = {
    "/embed": [
        {
            "inputs": ["a", ""],
            "normalize": True,
            "truncate": False,
            "dimensions": 3,
            "precision": "int8",
            "model": None,
        },
        {"inputs": "a", "truncation_direction": "left", "prompt_name": None},
    ],
    "/similarity": [
        {"inputs": {"source_sentence": "a", "sentences": ["b"]}, "parameters": {"truncate": True}},
        {"inputs": {"pairs": [["a", "b"]]}, "model": None},
        {"inputs": {"left": ["a"], "right": ["b", "c"]}, "top_k": 1},
    ],
    "/explain": [{"inputs": {"source_sentence": "a fast car", "target_sentence": "cars"}, "top_k": 3}],
    "/v1/embeddings": [
        {"input": ["a"], "model": "x", "encoding_format": "base64", "dimensions": 2, "user": "u"},
        {"input": "a", "model": None},
    ],
    "/embed_sparse": [{"inputs": ["a tv", ""], "truncate": True, "truncation_direction": "left"}, {"inputs": "a"}],
    "/match": [{"left": ["a tv", ""], "right": ["tv"], "top": 2, "threshold": 0.1, "one_to_one": True}],
    "/rerank": [{"query": "a", "texts": ["b", ""], "raw_scores": True, "return_text": True, "truncate": True}],
    "/v1/rerank": [{"query": "a", "documents": ["b", {"text": "c"}], "top_n": 1, "return_documents": True}],
    "/search": [
        {"queries": ["a"], "k": 2, "where": {"x": ["y", "z"]}, "index": None, "return_records": False},
        {"queries": "a", "where": {"x": 1}, "truncate": True},
    ],
    "/predict": [{"inputs": [["a"], ["b"]], "top_k": 1, "raw_scores": True, "head": "it"}, {"inputs": "a"}],
    "/": [{"inputs": ["a"]}, {"inputs": {"source_sentence": "a", "sentences": ["b"]}}],
}
