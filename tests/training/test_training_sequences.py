"""Encoders with layers and with order, each against a slow reference that goes step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gramvec.errors import InputError
from gramvec_training.config import parse_config
from gramvec_training.encoders import char_cnn
from gramvec_training.encoders.base import LONGEST, Encoder, Steps
from gramvec_training.encoders.build import build_encoder, restore_encoder
from gramvec_training.encoders.recurrent import lstm, rnn
from gramvec_training.sections import ENCODERS

pytestmark = pytest.mark.slow

Doubles = npt.NDArray[np.float64]
Arrays = dict[str, Doubles]

ROWS, WIDTH, DIMENSION = 9, 5, 7
LENGTHS = (3, 0, 1, 6, 6, 2, 11)
FUNCTIONS: dict[str, Callable[[Doubles], Doubles]] = {
    "linear": lambda x: x,
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}


def averaged(a: Arrays, e: Doubles, activation: str = "linear", layers: int = 1, **_: Any) -> Doubles:
    x = e.mean(axis=0) if len(e) else np.zeros(WIDTH)
    for layer in range(layers):
        x = FUNCTIONS[activation](x @ a[f"matrices.{layer}"] + a[f"biases.{layer}"])
    return x


def two_layers(a: Arrays, e: Doubles, activation: str = "tanh", **_: Any) -> Doubles:
    h = FUNCTIONS[activation]
    return h(h(e.sum(axis=0) + a["bias"]) @ a["second"] + a["second_bias"])


def recurrent(a: Arrays, e: Doubles, activation: str = "tanh", **_: Any) -> Doubles:
    h = np.zeros(DIMENSION)
    for one in e:
        h = FUNCTIONS[activation](one @ a["inputs"] + h @ a["recurrent"] + a["bias"])
    return h


def identity_recurrent(a: Arrays, e: Doubles, **_: Any) -> Doubles:
    return recurrent(a, e, "linear") / max(1, len(e))


def long_short(a: Arrays, e: Doubles, output_gate: bool = True, **_: Any) -> Doubles:
    """Gers et al., 2003, a gate at a time; the blocks are input gate, forget gate, candidate, output gate."""
    blocks = 4 if output_gate else 3
    into = np.split(a["inputs"], blocks, axis=1)
    over = np.split(a["recurrent"], blocks, axis=1)
    bias = np.split(a["bias"], blocks)
    p, sigmoid = a["peepholes"], FUNCTIONS["sigmoid"]
    h = c = np.zeros(DIMENSION)
    for one in e:
        i = sigmoid(one @ into[0] + h @ over[0] + p[0] * c + bias[0])
        f = sigmoid(one @ into[1] + h @ over[1] + p[1] * c + bias[1])
        c = f * c + i * np.tanh(one @ into[2] + h @ over[2] + bias[2])
        o = sigmoid(one @ into[3] + h @ over[3] + p[2] * c + bias[3]) if output_gate else 1.0
        h = o * np.tanh(c)
    return h


def convolved(
    a: Arrays,
    e: Doubles,
    filters: str = "b",
    scale: float = 1.0,
    filter_activation: str = "tanh",
    layer: bool = True,
    activation: str = "tanh",
    **_: Any,
) -> Doubles:
    """A filter at a time, a place at a time; texts shorter than a filter have zeros behind their end."""
    found = []
    widths = (2, 3, 4) if filters == "a" else (1, 2, 3, 4, 5, 6)
    for number, wide in enumerate(widths):
        count = max(1, round((175 if filters == "a" else 25 * wide) * scale))
        kernel = a[f"filters.{number}"].reshape(WIDTH, wide, count)
        padded = np.concatenate([e, np.zeros((max(0, wide - len(e)), WIDTH))])
        bias = a["filter_bias"][sum(map(len, found)) :][:count]
        places = [np.einsum("jd,djk->k", padded[t : t + wide], kernel) for t in range(len(padded) - wide + 1)]
        found.append(np.max([FUNCTIONS[filter_activation](place + bias) for place in places], axis=0))
    x = np.concatenate(found)
    return FUNCTIONS[activation](x @ a["layer"] + a["bias"]) if layer else x


REFERENCES: list[tuple[dict[str, Any], Callable[..., Doubles]]] = [
    ({"kind": "two-layer"}, two_layers),
    ({"kind": "two-layer", "activation": "relu"}, two_layers),
    ({"kind": "projection"}, averaged),
    ({"kind": "projection", "activation": "tanh"}, averaged),
    ({"kind": "dan", "activation": "tanh"}, averaged),
    ({"kind": "dan", "layers": 3, "activation": "relu"}, averaged),
    ({"kind": "dan", "layers": 4, "activation": "sigmoid"}, averaged),
    ({"kind": "rnn"}, recurrent),
    ({"kind": "rnn", "activation": "relu"}, recurrent),
    ({"kind": "irnn"}, identity_recurrent),
    ({"kind": "lstm"}, long_short),
    ({"kind": "lstm", "output_gate": False}, long_short),
    ({"kind": "char-cnn", "filters": "a", "scale": 0.03, "filter_activation": "linear"}, convolved),
    (
        {"kind": "char-cnn", "filters": "b", "scale": 0.1, "filter_activation": "relu", "activation": "linear"},
        convolved,
    ),
    ({"kind": "char-cnn", "filters": "b", "scale": 0.04, "layer": False}, convolved),
]
IDS = ["-".join(str(value) for value in one.values()) for one, _ in REFERENCES]


def made(values: dict[str, Any], *, rows: int = ROWS, seed: int = 3) -> Encoder:
    """An encoder with random weights everywhere, in double precision."""
    same = values["kind"] in ("two-layer", "irnn")
    generator = torch.Generator().manual_seed(seed)
    table = torch.empty(rows, DIMENSION if same else WIDTH).normal_(0, 1, generator=generator)
    chosen: Any = ENCODERS.parse(values)
    found = sum(count for _, count in chosen.counts) if values["kind"] == "char-cnn" else DIMENSION
    dimension = DIMENSION if values.get("layer", True) else found
    encoder = build_encoder(chosen, table, dimension, generator).double()
    with torch.no_grad():
        for name, parameter in encoder.named_parameters():
            if name != "table":
                parameter.normal_(0, 0.5, generator=generator)
    return encoder


def bags(lengths: Sequence[int], seed: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    ids = np.random.default_rng(seed).integers(0, ROWS, sum(lengths)).astype(np.int32)
    return torch.from_numpy(ids), torch.from_numpy(np.cumsum([0, *lengths]).astype(np.int32))


@pytest.mark.parametrize(("values", "reference"), REFERENCES, ids=IDS)
def test_vectors_are_those_of_the_slow_reference(values: dict[str, Any], reference: Callable[..., Doubles]) -> None:
    encoder = made(values)
    ids, offsets = bags(LENGTHS)
    found = encoder(ids, offsets).detach().numpy()
    arrays = {name: value.detach().numpy() for name, value in encoder.named_parameters()}
    options = {key: value for key, value in values.items() if key != "kind"}
    for text, (begin, end) in enumerate(pairwise(offsets)):
        rows = arrays["table"][ids[begin:end].numpy()]
        np.testing.assert_allclose(found[text], reference(arrays, rows, **options), atol=1e-12)


@pytest.mark.parametrize(("values", "reference"), REFERENCES, ids=IDS)
def test_gradients_are_those_of_finite_differences(values: dict[str, Any], reference: Callable[..., Doubles]) -> None:
    encoder = made(values)
    ids, offsets = bags((2, 0, 4, 1))
    names = [name for name, _ in encoder.named_parameters()]

    def vectors(*values: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(encoder, dict(zip(names, values, strict=True)), (ids, offsets))

    torch.autograd.gradcheck(vectors, tuple(encoder.parameters()), fast_mode=True)


@pytest.mark.parametrize(("values", "reference"), REFERENCES, ids=IDS)
@given(lengths=st.lists(st.integers(0, 9), min_size=1, max_size=8), seed=st.integers(0, 99))
def test_a_vector_does_not_depend_on_its_company(
    values: dict[str, Any], reference: Callable[..., Doubles], lengths: list[int], seed: int
) -> None:
    """Up to what a matrix product rounds by its number of rows: in double precision, the last digits."""
    encoder = made(values)
    ids, offsets = bags(lengths, seed)
    together = encoder(ids, offsets).detach().numpy()
    for text, (begin, end) in enumerate(pairwise(offsets)):
        alone = encoder(ids[begin:end], torch.tensor([0, end - begin], dtype=torch.int32))
        np.testing.assert_allclose(together[text], alone[0].detach().numpy(), atol=1e-13)


@pytest.mark.parametrize(("values", "reference"), REFERENCES, ids=IDS)
def test_a_leaf_of_rows_gives_what_the_table_gives(values: dict[str, Any], reference: Callable[..., Doubles]) -> None:
    encoder = made(values, rows=400)  # more rows than positions: these are projected one by one
    ids, offsets = bags(LENGTHS)
    rows, numbered = torch.unique(ids, return_inverse=True)
    leaf = encoder.table.detach()[rows]
    expected = encoder(ids, offsets)
    np.testing.assert_allclose(encoder(numbered.int(), offsets, leaf).detach(), expected.detach(), atol=1e-13)


@pytest.mark.parametrize(("values", "reference"), REFERENCES, ids=IDS)
def test_an_encoder_is_stored_and_restored(values: dict[str, Any], reference: Callable[..., Doubles]) -> None:
    encoder = made(values).float()
    chosen: Any = ENCODERS.parse(values)
    again = restore_encoder(chosen, encoder.arrays(), encoder.dimension)
    ids, offsets = bags(LENGTHS)
    assert torch.equal(encoder(ids, offsets), again(ids, offsets))
    assert encoder.parameter_counts() == {name: array.size for name, array in encoder.arrays().items()}


def test_irnn_begins_as_the_average() -> None:
    chosen: Any = ENCODERS.parse({"kind": "irnn"})
    table = torch.randn(ROWS, DIMENSION, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    encoder = build_encoder(chosen, table, DIMENSION, torch.Generator()).double()
    ids, offsets = bags(LENGTHS)
    mean = torch.nn.functional.embedding_bag(ids, table, offsets, mode="mean", include_last_offset=True)
    np.testing.assert_allclose(encoder(ids, offsets).detach(), mean, atol=1e-15)


def test_no_output_gate_is_a_gate_that_stands_open() -> None:
    """A bias of 50 makes sigmoid 1 in double precision; the other blocks are the same."""
    closed = made({"kind": "lstm", "output_gate": False})
    gated = made({"kind": "lstm"})
    with torch.no_grad():
        for name in ("inputs", "recurrent"):
            getattr(gated, name)[:] = torch.cat([getattr(closed, name), torch.zeros_like(getattr(closed, name))], 1)[
                :, : 4 * DIMENSION
            ]
            getattr(gated, name)[:, 3 * DIMENSION :] = 0
        gated.bias[:] = torch.cat([closed.bias, torch.full((DIMENSION,), 50.0)])
        gated.peepholes[:] = torch.cat([closed.peepholes, torch.zeros(1, DIMENSION)])
        gated.table[:] = closed.table
    ids, offsets = bags(LENGTHS)
    np.testing.assert_allclose(gated(ids, offsets).detach(), closed(ids, offsets).detach(), atol=1e-15)


def test_without_peepholes_it_is_the_lstm_of_torch() -> None:
    encoder = made({"kind": "lstm"})
    torchs = torch.nn.LSTM(WIDTH, DIMENSION, batch_first=True).double()
    order = [0, 1, 2, 3]  # torch's gates: input, forget, candidate, output
    with torch.no_grad():
        encoder.peepholes.zero_()
        blocks = [block.T for block in encoder.inputs.split(DIMENSION, dim=1)]
        torchs.weight_ih_l0[:] = torch.cat([blocks[i] for i in order])
        torchs.weight_hh_l0[:] = torch.cat([encoder.recurrent.split(DIMENSION, dim=1)[i].T for i in order])
        torchs.bias_ih_l0[:] = encoder.bias
        torchs.bias_hh_l0.zero_()
    ids, offsets = bags((5,))
    _, (state, _) = torchs(encoder.table[ids].unsqueeze(0))
    np.testing.assert_allclose(encoder(ids, offsets)[0].detach(), state[0, 0].detach(), atol=1e-14)


def test_first_values_are_the_papers() -> None:
    def fresh(values: dict[str, Any], dimension: int = 80) -> Encoder:
        chosen: Any = ENCODERS.parse(values)
        return build_encoder(chosen, torch.zeros(3, 80), dimension, torch.Generator().manual_seed(1))

    gated, plain, dan, projection = (
        fresh({"kind": kind, **rest})
        for kind, rest in (("lstm", {}), ("rnn", {}), ("dan", {"layers": 2}), ("projection", {}))
    )
    for name in ("inputs", "recurrent", "peepholes"):
        assert abs(float(getattr(gated, name).detach().std()) - 0.1) < 0.01, name
    assert not gated.bias.any()
    for name in ("inputs", "recurrent"):
        values = getattr(plain, name).detach().abs()
        assert 0.0099 < float(values.max()) <= 0.01, name
    glorot = (6 / 160) ** 0.5
    assert abs(float(dan.matrices[0].detach().std()) - 0.1) < 0.01
    assert 0.98 * glorot < float(dan.matrices[1].detach().abs().max()) <= glorot
    assert 0.98 * glorot < float(projection.matrices[0].detach().abs().max()) <= glorot
    network = fresh({"kind": "char-cnn", "filters": "a"})
    for wide, filters in zip((2, 3, 4), network.filters, strict=True):
        half = (6 / (wide * (80 + 175))) ** 0.5  # fans of width * w in and filters * w out
        assert 0.98 * half < float(filters.detach().abs().max()) <= half


@given(lengths=st.lists(st.integers(0, 12), max_size=12), backwards=st.booleans())
def test_steps_hold_every_position_once_in_step(lengths: list[int], backwards: bool) -> None:
    offsets = np.cumsum([0, *lengths])
    steps = Steps.from_offsets(torch.from_numpy(offsets), backwards=backwards)
    assert sorted(steps.places.tolist()) == list(range(sum(lengths)))
    assert steps.sizes == [sum(length > step for length in lengths) for step in range(max(lengths, default=0))]
    order = sorted(range(len(lengths)), key=lambda text: -lengths[text])
    assert steps.rank.tolist() == [order.index(text) for text in range(len(lengths))]
    begin = 0
    for step, size in enumerate(steps.sizes):
        for rank in range(size):
            text = order[rank]
            expected = offsets[text] + (lengths[text] - 1 - step if backwards else step)
            assert steps.places[begin + rank] == expected
        begin += size
    states = steps.places.unsqueeze(1).double()
    last = [[(offsets[i] if backwards else offsets[i + 1] - 1) if n else 0.0] for i, n in enumerate(lengths)]
    assert steps.take_last(states).tolist() == last


@pytest.mark.parametrize("kind", ["rnn", "irnn", "lstm", "char-cnn"])
def test_a_text_is_read_up_to_its_longest_position(kind: str) -> None:
    encoder = made({"kind": kind, **({"scale": 0.04} if kind == "char-cnn" else {})})
    ids, _ = bags((LONGEST + 9,))
    offsets = torch.tensor([0, LONGEST], dtype=torch.int32)
    cut = encoder(ids[:LONGEST], offsets)
    np.testing.assert_array_equal(encoder(ids, torch.tensor([0, len(ids)])).detach(), cut.detach())


def test_no_texts_and_texts_of_nothing() -> None:
    nothing = torch.zeros(0, dtype=torch.int32)
    for values, _ in REFERENCES:
        encoder = made(values)
        assert encoder(nothing, torch.tensor([0])).shape == (0, encoder.dimension)
        empty = encoder(nothing, torch.tensor([0, 0, 0]))
        np.testing.assert_allclose(empty[0].detach(), empty[1].detach(), atol=1e-15)
        if values["kind"] in ("rnn", "irnn", "lstm"):
            assert not empty.any()


def test_of_equal_places_the_first_has_the_gradient() -> None:
    """The text "aa": two equal places of a filter of one character; the gradient is not counted twice."""
    parts = torch.tensor([[2.0], [0.0]], dtype=torch.float64, requires_grad=True)
    places = torch.tensor([[0], [0]])
    maxima = char_cnn._Maxima.apply(parts, places, [1, 1])
    (gradient,) = torch.autograd.grad(maxima.sum(), parts)
    assert gradient.tolist() == [[1.0], [0.0]]


@pytest.mark.parametrize("gate", [True, False])
def test_states_of_all_steps_have_their_gradients(gate: bool) -> None:
    """What a tagger reads: every state, not the last alone."""
    _, offsets = bags((3, 1, 0, 4))
    steps = Steps.from_offsets(offsets)
    blocks = 4 if gate else 3
    generator = torch.Generator().manual_seed(2)
    values, over, peep = (
        torch.randn(*shape, dtype=torch.float64, generator=generator, requires_grad=True)
        for shape in ((5, blocks * 3), (3, blocks * 3), (blocks - 1, 3))
    )
    ids = torch.randint(0, 5, (len(steps.places),), generator=generator)

    def states(*given: torch.Tensor) -> torch.Tensor:
        return lstm(given[0], ids, *given[1:], steps.sizes, output_gate=gate)

    torch.autograd.gradcheck(states, (values, over, peep))
    plain = torch.randn(5, 3, dtype=torch.float64, generator=generator, requires_grad=True)
    square = torch.randn(3, 3, dtype=torch.float64, generator=generator, requires_grad=True)
    for activation in ("linear", "tanh", "relu"):
        torch.autograd.gradcheck(
            lambda one, other, activation=activation: rnn(one, ids, other, steps.sizes, activation=activation),
            (plain, square),
        )


def test_dropout_draws_by_the_step_and_only_while_it_learns() -> None:
    encoder = made({"kind": "char-cnn", "scale": 0.1, "dropout": 0.5})
    ids, offsets = bags(LENGTHS)
    encoder.eval()
    still = encoder(ids, offsets)
    assert torch.equal(still, encoder(ids, offsets))
    encoder.train()
    assert not torch.equal(still, encoder(ids, offsets))
    assert encoder.draws
    assert not made({"kind": "char-cnn", "scale": 0.1}).draws
    chosen: Any = ENCODERS.parse({"kind": "char-cnn", "scale": 0.1, "dropout": 0.5})
    restored = restore_encoder(chosen, encoder.float().arrays(), encoder.dimension)
    assert torch.equal(restored(ids, offsets), restored(ids, offsets))


@pytest.mark.parametrize(
    ("encoder", "model", "features", "sentence"),
    [
        ({"kind": "lstm"}, {}, {}, "reads words or characters in order"),
        ({"kind": "char-cnn"}, {}, {"orders": [1], "words": True}, "reads words or characters in order"),
        ({"kind": "rnn"}, {}, {"orders": [1, 2]}, "reads words or characters in order"),
        ({"kind": "irnn"}, {"width": 50}, {"orders": [1]}, "leave model.width out"),
        ({"kind": "bag"}, {"width": 50}, {}, "leave model.width out"),
        ({"kind": "char-cnn", "layer": False}, {}, {"orders": [1]}, "is the 525 filters: set model.dimension to that"),
        ({"kind": "dan", "layers": 5}, {}, {}, "less than or equal to 4"),
        ({"kind": "gru"}, {}, {}, "'gru'.* bag, char-cnn"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_said(
    encoder: dict[str, Any], model: dict[str, Any], features: dict[str, Any], sentence: str
) -> None:
    values = {"training": {"steps": 1}, "data": [{"path": "x"}], "encoder": encoder, "features": features}
    with pytest.raises(InputError, match=sentence):
        parse_config({**values, "model": {"name": "m", "kind": "lstm", **model}}, source="test")
