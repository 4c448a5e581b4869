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


def dense_optimizer(optimizer, parameter, learning_rate):
    betas, decay = (optimizer.beta1, optimizer.beta2), optimizer.weight_decay
    return {
        "sgd": lambda: torch.optim.SGD([parameter], lr=learning_rate, weight_decay=decay),
        "adagrad": lambda: torch.optim.Adagrad([parameter], lr=learning_rate, weight_decay=decay,
                                               eps=optimizer.eps),
        "momentum": lambda: torch.optim.SGD([parameter], lr=learning_rate, weight_decay=decay,
                                            momentum=optimizer.beta1),
        "adam": lambda: torch.optim.Adam([parameter], lr=learning_rate, betas=betas,
                                         weight_decay=decay, eps=0),
        "adamw": lambda: torch.optim.AdamW([parameter], lr=learning_rate, betas=betas,
                                           weight_decay=decay, eps=0),
    }[optimizer.kind]()


def summed(dense, touched):
    """The gradient of a step in which rows have one term, or none."""
    return oracle.TableGradient(dense, dense.abs(), touched.to(torch.int64))


@pytest.mark.parametrize("optimizer", [
    Optimizer("sgd", weight_decay=0.1), Optimizer("adagrad", weight_decay=0.1),
    Optimizer("momentum", beta1=0.8), Optimizer("momentum", weight_decay=0.1),
    Optimizer("adam", eps=0, weight_decay=0.1), Optimizer("adamw", eps=0),
    Optimizer("adamw", beta1=0.8, eps=0, weight_decay=0.1)], ids=str)
def test_formula_is_that_of_torchs_dense_optimizer(optimizer):
    """Where all rows have gradients. With an eps, torch's Adam and AdamW add it to another root
    than SparseAdam and we."""
    generator = torch.Generator().manual_seed(2)
    start = torch.randn((5, 6), generator=generator, dtype=torch.float64)
    parameter = torch.nn.Parameter(start.clone())
    theirs = dense_optimizer(optimizer, parameter, 0.1)
    weights, states = start, [s.double() for s in optimizers.new_states(optimizer, 5, 6)]
    for number in range(1, 5):
        parameter.grad = torch.randn((5, 6), generator=generator, dtype=torch.float64)
        gradient = summed(parameter.grad.clone(), torch.ones(5))
        theirs.step()
        weights, *states = [new.value for new in optimizers.step(
            optimizer, weights, states, gradient, 0.1, number)]
        torch.testing.assert_close(weights, parameter.detach(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", ["sgd", "adagrad", "adam"])
def test_decoupled_decay_is_adamws_before_the_step(kind):
    """torch.optim.AdamW multiplies the weights by 1 - lr * decay, then does Adam's step."""
    generator = torch.Generator().manual_seed(3)
    weights = torch.randn((3, 4), generator=generator, dtype=torch.float64)
    states = [s.double() for s in optimizers.new_states(Optimizer(kind), 3, 4)]
    gradient = summed(torch.randn((3, 4), generator=generator, dtype=torch.float64),
                      torch.tensor([1, 0, 1]))
    decayed = Optimizer(kind, weight_decay=0.5, weight_decay_mode="decoupled")
    found, *_ = optimizers.step(decayed, weights, states, gradient, 0.1, 1)
    by_hand, *_ = optimizers.step(Optimizer(kind), weights * 0.95, states, gradient, 0.1, 1)
    torch.testing.assert_close(found.value[[0, 2]], by_hand.value[[0, 2]], rtol=1e-14, atol=1e-14)
    assert torch.equal(found.value[1], weights[1])


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


def test_partial_rowwise_adam_is_adam_with_the_mean_square_of_a_row():
    """On a table of one column it is Adam; on others the second moment is of the mean."""
    generator = torch.Generator().manual_seed(4)
    for dim in (1, 4):
        weights = torch.randn((3, dim), generator=generator, dtype=torch.float64)
        dense = torch.randn((3, dim), generator=generator, dtype=torch.float64)
        gradient = summed(dense, torch.ones(3))
        plain, partial = Optimizer("adam", eps=0.5), Optimizer("partial_rowwise_adam", eps=0.5)
        theirs, first, _ = optimizers.step(plain, weights, optimizers.new_states(plain, 3, dim),
                                           gradient, 0.1, 1)
        ours, own_first, second = optimizers.step(
            partial, weights, optimizers.new_states(partial, 3, dim), gradient, 0.1, 1)
        assert torch.equal(first.value, own_first.value)
        torch.testing.assert_close(second.value[:, 0], 0.001 * dense.square().mean(1), rtol=1e-12,
                                   atol=0)
        size = 0.1 * (1 - 0.999) ** 0.5 / (1 - 0.9)
        expected = weights - size * 0.1 * dense / (second.value.sqrt() + 0.5)
        torch.testing.assert_close(ours.value, expected, rtol=1e-12, atol=1e-12)
        assert torch.allclose(ours.value, theirs.value, rtol=1e-12, atol=1e-12) == (dim == 1)


def test_rowwise_rmsprop_is_torchs_on_tables_of_one_column():
    generator = torch.Generator().manual_seed(5)
    start = torch.randn((4, 1), generator=generator, dtype=torch.float64)
    optimizer = Optimizer("rowwise_rmsprop", beta2=0.9, eps=0.5, weight_decay=0.1)
    parameter = torch.nn.Parameter(start.clone())
    theirs = torch.optim.RMSprop([parameter], lr=0.1, alpha=0.9, eps=0.5, weight_decay=0.1)
    weights, states = start, optimizers.new_states(optimizer, 4, 1)
    for number in range(1, 4):
        parameter.grad = torch.randn((4, 1), generator=generator, dtype=torch.float64)
        gradient = summed(parameter.grad.clone(), torch.ones(4))
        theirs.step()
        weights, *states = [new.value for new in optimizers.step(
            optimizer, weights, states, gradient, 0.1, number)]
        torch.testing.assert_close(weights, parameter.detach(), rtol=1e-12, atol=1e-12)


def test_a_trust_ratio_makes_steps_as_long_as_the_rate_says():
    """You et al.: LAMB's step has the length rate * |w|, and LARS's first one rate * eta * |w| where
    it has no decay; gradients and weights of any length."""
    generator = torch.Generator().manual_seed(6)
    weights = torch.randn((4, 8), generator=generator).double() * torch.tensor([[.01], [1], [3], [100]])
    gradient = summed(torch.randn((4, 8), generator=generator).double()
                      * torch.tensor([[50], [1], [.1], [.001]]), torch.ones(4))
    for kind, rate in (("lamb", 0.5), ("partial_rowwise_lamb", 0.5), ("lars_sgd", 0.5 * 0.25)):
        optimizer = Optimizer(kind, eta=0.25 if kind == "lars_sgd" else 0.001,
                              weight_decay=0 if kind == "lars_sgd" else 0.5)
        new, *_ = optimizers.step(optimizer, weights, optimizers.new_states(optimizer, 4, 8), gradient, 0.5, 1)
        torch.testing.assert_close((new.value - weights).norm(dim=1), rate * weights.norm(dim=1))


def test_lamb_of_one_column_is_partial_rowwise_lamb():
    generator = torch.Generator().manual_seed(7)
    runs = []
    for kind in ("lamb", "partial_rowwise_lamb"):
        optimizer = Optimizer(kind, eps=0.5, weight_decay=0.25)
        generator.manual_seed(7)
        weights, states = torch.randn((5, 1), generator=generator).double(), optimizers.new_states(
            optimizer, 5, 1)
        for number in (1, 2, 3):
            gradient = summed(torch.randn((5, 1), generator=generator).double(), torch.ones(5))
            weights, *states = [one.value for one in optimizers.step(
                optimizer, weights, states, gradient, 0.1, number)]
        runs.append([weights, *states])
    for one, other in zip(*runs):
        torch.testing.assert_close(one, other)


def test_ftrl_is_what_minimises_its_sum_of_losses():
    """By the definition in McMahan et al.: the weight that minimises g_1..t * w + l1 * |w| + l2 / 2 *
    w^2 + 1/2 * sum of sigma_s * (w - w_s)^2, found on a grid; sigma_1..t = (beta + sqrt(n)) / rate."""
    optimizer = Optimizer("ftrl", eps=0.5, l1_penalty=0.3, l2_penalty=0.25)
    weights, states = torch.zeros((1, 1)).double(), optimizers.new_states(optimizer, 1, 1)
    grid = torch.linspace(-2, 2, 400_001, dtype=torch.float64)
    loss = optimizer.l1_penalty * grid.abs() + optimizer.l2_penalty / 2 * grid ** 2
    loss += optimizer.eps / 0.5 / 2 * grid ** 2  # of beta, around the weight 0
    squares = 0.0
    for number, value in enumerate((0.25, -1.0, 0.5, 1.5), start=1):
        gradient = summed(torch.full((1, 1), value).double(), torch.ones(1))
        sigma = ((squares + value ** 2) ** 0.5 - squares ** 0.5) / 0.5
        squares += value ** 2
        loss += value * grid + sigma / 2 * (grid - weights.item()) ** 2
        weights, *states = [new.value for new in optimizers.step(
            optimizer, weights, states, gradient, 0.5, number)]
        assert weights.item() == pytest.approx(grid[loss.argmin()].item(), abs=1e-5)
        assert (weights.item() == 0) == (number in (1, 3))


@pytest.mark.parametrize("kind", ["sgd", "adagrad", "rowwise_adagrad"])
def test_clipping_is_torchs_by_value(kind):
    generator = torch.Generator().manual_seed(6)
    weights, dense = torch.randn((2, 3, 4), generator=generator, dtype=torch.float64)
    parameter = torch.nn.Parameter(weights.clone())
    parameter.grad = dense.clone()
    torch.nn.utils.clip_grad_value_(parameter, 0.5)
    states = [s.double() for s in optimizers.new_states(Optimizer(kind), 3, 4)]
    for found, expected in zip(*(optimizers.step(Optimizer(kind, max_gradient=bound), weights, states,
                                                 summed(values, torch.ones(3)), 0.1, 1)
                                 for bound, values in ((0.5, dense), (0, parameter.grad)))):
        assert torch.equal(found.value, expected.value)


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


COUNTERS = [Optimizer("rowwise_adagrad_with_counter", eps=1e-3, weight_decay=decay, weight_decay_mode=mode,
                      counter_halflife=halflife, adjustment_iter=adjustment, adjustment_ub=0.125)
            for decay, mode, halflife, adjustment in (
                (0.25, "l2", 4.0, -1.0), (0.25, "l2", 2.0, 3.0), (0.25, "decoupled", 4.0, 2.0),
                (0.25, "adagradw", -1.0, -1.0), (0.25, "adagradw", -2.0, 3.0),
                (0.25, "adagradw", 4.0, 2.0), (0.25, "adagradw", 0.0, 0.0), (0.0, "l2", -1.0, -1.0))]


@pytest.mark.parametrize("optimizer", COUNTERS, ids=str)
def test_rows_with_counters_are_those_of_fbgemm(optimizer):
    """FBGEMM's CPU operator, rows of every step, of some and of none."""
    tables = fbgemm_tables(optimizer, rows=6, dim=4)
    generator = torch.Generator().manual_seed(7)
    theirs, = tables.split_embedding_weights()
    theirs.copy_(torch.randn((6, 4), generator=generator))
    weights, states = theirs.clone(), optimizers.new_states(optimizer, 6, 4)
    for number in range(1, 9):
        ids = torch.tensor([0, 1 + number % 3, 4 if number % 4 == 0 else 0])
        terms = torch.randn((3, 4), generator=generator)
        tables(ids, torch.arange(4)).backward(terms)
        dense = torch.zeros((6, 4)).index_add_(0, ids, terms)
        weights, *states = [new.value.float() for new in optimizers.step(
            optimizer, weights, states, summed(dense.double(), torch.bincount(ids, minlength=6)), 0.1,
            number)]
        torch.testing.assert_close(weights, theirs, rtol=1e-5, atol=1e-6)
        for ours, one in zip(states, tables.split_optimizer_states()[0], strict=True):
            torch.testing.assert_close(ours[:, 0], one, rtol=1e-5, atol=1e-6)


def fbgemm_tables(optimizer, rows, dim):
    training = pytest.importorskip("fbgemm_gpu.split_table_batched_embeddings_ops_training")
    modes = training.CounterWeightDecayMode
    mode = {"l2": modes.L2, "decoupled": modes.DECOUPLE, "adagradw": modes.ADAGRADW}
    return training.SplitTableBatchedEmbeddingBagsCodegen(
        [(rows, dim, training.EmbeddingLocation.HOST, training.ComputeDevice.CPU)],
        optimizer=training.OptimType.EXACT_ROWWISE_ADAGRAD, learning_rate=0.1, eps=optimizer.eps,
        weight_decay=optimizer.weight_decay, weight_decay_mode=training.WeightDecayMode.COUNTER,
        stochastic_rounding=False,
        counter_based_regularization=training.CounterBasedRegularizationDefinition(
            counter_weight_decay_mode=mode[optimizer.weight_decay_mode],
            counter_halflife=int(optimizer.counter_halflife),
            adjustment_iter=int(optimizer.adjustment_iter), adjustment_ub=optimizer.adjustment_ub))
