"""Compares the results of contenders with sums in float64 before they are timed.

A sample of bags and rows is enough here: the section `correctness` has every bag and row of its
cases. Results are poisoned before, so that what is not written shows."""

import torch

BAGS, ROWS = 48, 10
ROUNDING = {torch.float32: 2.0**-20, torch.float16: 2.0**-9, torch.bfloat16: 2.0**-6}


class WrongResult(Exception):
    """A result differs from that in float64."""


def poison(given):
    given.out.fill_(float("nan"))


def check_forward(tables, given, bags, results):
    """results: of each table, [bags, dim]."""
    for result in results:
        if not bool(result.isfinite().all()):
            raise WrongResult("forward: some results are not finite, or not written")
    generator = torch.Generator().manual_seed(7)
    for _ in range(BAGS):
        feature = int(torch.randint(len(tables), (), generator=generator))
        bag = int(torch.randint(bags, (), generator=generator))
        begin, end = given.offsets[feature * bags + bag:][:2].tolist()
        rows = tables[feature][given.ids[begin:end]].double()
        error = (results[feature][bag].double() - rows.sum(0)).abs()
        # Results may be rounded to the type of the weights.
        bound = (end - begin + 2) * 2.0**-23 * rows.abs().sum(0)
        bound += ROUNDING[results[feature].dtype] * rows.sum(0).abs() + 1e-12
        if bool((error > bound).any()):
            raise WrongResult(f"forward: table {feature}, bag {bag} is off by {error.max():.2e}")


class StepCheck:
    """Row-wise Adagrad of a sample of rows that a set names."""

    def __init__(self, tables, given, bags, ids_per_bag, learning_rate, eps=1e-8):
        """`tables`: (weights, state) each."""
        self.tables, self.learning_rate, self.eps = tables, learning_rate, eps
        generator = torch.Generator().manual_seed(11)
        ids_per_table = bags * ids_per_bag
        self.rows = {}
        for _ in range(ROWS):
            feature = int(torch.randint(len(tables), (), generator=generator))
            ids = given.ids[feature * ids_per_table:][:ids_per_table]
            row = int(ids[int(torch.randint(ids_per_table, (), generator=generator))])
            width = tables[feature][0].shape[1]
            where = (ids == row).nonzero().flatten() // ids_per_bag
            gradient = given.gradients[where, feature * width:(feature + 1) * width].double().sum(0)
            self.rows[feature, row] = self.updated(feature, row, gradient)

    def updated(self, feature, row, gradient):
        weights, state = (one[row].double() for one in self.tables[feature])
        state = state + gradient.square().mean()
        return weights - self.learning_rate / (state.sqrt() + self.eps) * gradient, state

    def compare(self):
        for (feature, row), (weights, state) in self.rows.items():
            found, accumulated = (one[row] for one in self.tables[feature])
            rounding = ROUNDING[found.dtype]
            bound = rounding * weights.abs() + 2e-3 * self.learning_rate
            if not bool(((found.double() - weights).abs() <= bound).all()):
                raise WrongResult(f"step: weights of table {feature}, row {row}")
            if not abs(float(accumulated) - float(state)) <= 1e-3 * float(state):
                raise WrongResult(f"step: state of table {feature}, row {row}")
