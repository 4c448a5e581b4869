"""The optimizer formulas that the updates are compared with are those of torch.optim."""

import pytest
import torch

from support import oracle, optimizers
from support.model import Optimizer


def torch_optimizer(kind, parameter, learning_rate):
    return {
        "sgd": lambda: torch.optim.SGD([parameter], lr=learning_rate),
        "adagrad": lambda: torch.optim.Adagrad([parameter], lr=learning_rate, eps=1e-8),
        "adam": lambda: torch.optim.SparseAdam([parameter], lr=learning_rate),
    }[kind]()


@pytest.mark.parametrize("kind", ["sgd", "adagrad", "adam"])
def test_formula_is_torchs(kind):
    generator = torch.Generator().manual_seed(1)
    start = torch.randn((10, 6), generator=generator, dtype=torch.float64)
    parameter = torch.nn.Parameter(start.clone())
    theirs = torch_optimizer(kind, parameter, 0.1)
    weights, states = start, [s.double() for s in
                              optimizers.new_states(Optimizer(kind), 10, 6)]
    for number in range(1, 4):
        rows = torch.randint(0, 10, (4,), generator=generator).unique()
        values = torch.randn((len(rows), 6), generator=generator, dtype=torch.float64)
        parameter.grad = torch.sparse_coo_tensor(rows.unsqueeze(0), values, (10, 6))
        theirs.step()
        dense = torch.zeros((10, 6), dtype=torch.float64)
        dense[rows] = values
        terms = torch.zeros(10, dtype=torch.int64)
        terms[rows] = 1
        gradient = oracle.TableGradient(dense, dense.abs(), terms)
        weights, *states = [new.value for new in optimizers.step(
            Optimizer(kind), weights, states, gradient, 0.1, number)]
        torch.testing.assert_close(weights, parameter.detach(), rtol=1e-12, atol=1e-12)


def test_rowwise_adagrad_keeps_one_mean_square_per_row():
    optimizer = Optimizer("rowwise_adagrad", eps=0.5)
    gradient = oracle.TableGradient(torch.tensor([[3.0, 4.0], [0.0, 0.0]]).double(),
                                    torch.tensor([[3.0, 4.0], [0.0, 0.0]]).double(),
                                    torch.tensor([1, 0]))
    weights, state = optimizers.step(optimizer, torch.zeros(2, 2), [torch.zeros(2, 1)],
                                     gradient, 1.0, 1)
    assert state.value.tolist() == [[12.5], [0.0]]
    expected = 3.0 / (12.5 ** 0.5 + 0.5)
    assert weights.value[0, 0].item() == pytest.approx(-expected, rel=1e-15)
    assert weights.value[1].tolist() == [0.0, 0.0]
