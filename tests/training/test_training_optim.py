"""Lazy Adam against torch's dense Adam."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gramvec_training.fitting import optimizers as optim
from gramvec_training.fitting.optimizers import LazyAdam, rate_at


def dense_steps(table: torch.Tensor, gradients: list[torch.Tensor], rate: float, l2: float = 0.0) -> torch.Tensor:
    parameter = nn.Parameter(table.clone())
    optimizer = torch.optim.Adam([parameter], lr=rate, weight_decay=l2)
    for gradient in gradients:
        parameter.grad = gradient.clone()
        optimizer.step()
    return parameter.detach()


def lazy_step(optimizer: LazyAdam, rows: torch.Tensor, gradient: torch.Tensor, rate: float) -> None:
    optimizer.step(rows, optimizer.leaf(rows), gradient.clone(), rate)


@pytest.fixture
def table() -> nn.Parameter:
    return nn.Parameter(torch.randn(6, 3, generator=torch.Generator().manual_seed(0)))


@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_rows_touched_at_every_step_are_those_of_dense_adam(table: nn.Parameter, l2: float) -> None:
    generator = torch.Generator().manual_seed(1)
    gradients = [torch.randn(6, 3, generator=generator) for _ in range(5)]
    expected = dense_steps(table.detach(), gradients, 0.01, l2)
    optimizer = LazyAdam(table, l2=l2)
    for gradient in gradients:
        lazy_step(optimizer, torch.arange(6), gradient, 0.01)
    torch.testing.assert_close(table.detach(), expected)


def test_the_first_touch_of_a_row_is_dense_adams_at_that_step_and_others_stay(table: nn.Parameter) -> None:
    before = table.detach().clone()
    rows = torch.tensor([1, 4])
    gradient = torch.tensor([[1.0, -2.0, 3.0], [0.5, 0.0, -1.0]])
    quiet = torch.zeros(6, 3)
    full = quiet.clone()
    full[rows] = gradient
    expected = dense_steps(before, [quiet, quiet, full], 0.01)

    optimizer = LazyAdam(table)
    for _ in range(2):
        lazy_step(optimizer, torch.tensor([0]), torch.zeros(1, 3), 0.01)
    lazy_step(optimizer, rows, gradient, 0.01)
    torch.testing.assert_close(table.detach()[rows], expected[rows])
    untouched = torch.tensor([0, 2, 3, 5])
    assert torch.equal(table.detach()[untouched], before[untouched])


def test_many_rows_are_updated_as_few_are(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(2)
    start, gradient = torch.randn(50, 4, generator=generator), torch.randn(41, 4, generator=generator)
    rows = torch.randperm(50, generator=generator)[:41].sort().values
    tables = []
    for chunk in (1000, 7):
        monkeypatch.setattr(optim, "CHUNK_ROWS", chunk)
        table = nn.Parameter(start.clone())
        lazy_step(LazyAdam(table, l2=0.1), rows, gradient, 0.01)
        tables.append(table.detach())
    assert torch.equal(*tables)


def test_l2_towards_the_initial_values(table: nn.Parameter) -> None:
    rows = torch.tensor([2])
    optimizer = LazyAdam(table, l2=0.5, center="initial")
    with torch.no_grad():
        table[2] += torch.tensor([1.0, -1.0, 0.0])
    before = table.detach()[2].clone()
    lazy_step(optimizer, rows, torch.zeros(1, 3), 0.01)
    # The gradient is 0.5 * (1, -1, 0); Adam's first step is the rate times its sign.
    torch.testing.assert_close(table.detach()[2], before + torch.tensor([-0.01, 0.01, 0.0]))


def test_learning_rate() -> None:
    assert [rate_at(step, 4, 0.1, "linear") for step in range(4)] == pytest.approx([0.1, 0.075, 0.05, 0.025])
    assert rate_at(3, 4, 0.1, "none") == 0.1
