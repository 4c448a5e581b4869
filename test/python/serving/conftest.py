"""Frozen tables that several tests read."""

import pytest
import torch

import neuroshard as ns


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Two features, one of them unpooled, and where their tables are frozen."""
    problem = ns.ShardingProblem(
        tables=[ns.Table("user", 40, 8, optimizer="adagrad"), ns.Table("item", 30, 5)],
        features=[ns.Feature("u", "user", mean_pooling=2), ns.Feature("i", "item", pooling="none")], batch=4,
        topology="1xCPU")
    generator = torch.Generator().manual_seed(1)
    weights = {"user": torch.randn(40, 8, generator=generator), "item": torch.randn(30, 5, generator=generator)}
    return problem, weights, ns.freeze(weights, problem, tmp_path_factory.mktemp("small") / "frozen")
