"""TorchRec's rating of a plan: for its own plans, and as a cost model of our planner.

TorchRec's planner minimises the cost of the slowest rank, the sum over its shards of the times that
its perf estimator predicts for lookup, exchange and update of each shard alone."""

from __future__ import annotations

from collections.abc import Sequence

from torchrec.distributed.planner.enumerators import EmbeddingEnumerator, get_partition_by_type
from torchrec.distributed.planner.perf_models import NoopPerfModel
from torchrec.distributed.planner.types import Shard, ShardingOption
from torchrec.distributed.types import ShardingPlan

import neuroshard as ns
from neuroshard.bench._planners.case import Case, make_sharders
from neuroshard.bench._planners.rules import make_constraints
from neuroshard.torchrec import quiet


class Rating(ns.CostModel):
    """A cost model with one time per shard, forward and backward together, for
    objective="published" only, whose cost is then TorchRec's rating. It caches the times."""

    name = "torchrec-1.9's rating"

    def __init__(self, case: Case) -> None:
        self._case = case
        self._poolings = {name: one.pooling_factors for name, one in make_constraints(
            case, {table.name: None for table in case.problem.tables}).items()}
        limits = make_constraints(case, {one.name: ["table_wise"] for one in case.problem.tables})
        self._enumerator = EmbeddingEnumerator(case.topology, case.batch_per_rank, limits)
        self._known: dict[tuple[str, int, int], float] = {}
        with quiet():
            self._enumerator.enumerate(case.model, make_sharders())  # prepares the estimators

    def of_plan(self, plan: ShardingPlan) -> float:
        options = []
        for name, one in plan.plan[""].items():
            rows, dim = self._case.model.embedding_bags[name].weight.shape
            places = ([(list(spec.shard_sizes), list(spec.shard_offsets))
                       for spec in one.sharding_spec.shards] if one.sharding_spec
                      else [([rows, dim], [0, 0])] * self._case.ranks)
            options.append(self._option(name, one.sharding_type, one.compute_kernel, [
                Shard(size=size, offset=offset, rank=rank)
                for (size, offset), rank in zip(places, one.ranks)]))
        with quiet():
            self._enumerator.populate_estimates(options)
        return float(NoopPerfModel(self._case.topology).rate(options))

    def compute_ms(self, shard_sets: Sequence[ns.ShardSet]) -> list[float]:
        return [sum(self._shard_ms(one) for one in each.shards) for each in shard_sets]

    def communication_ms(self, traffic: ns.Traffic, skews: Sequence[float] | None = None,
                         direction: ns.Direction = "forward") -> list[float]:
        """Zero: the rating of each shard includes its exchange."""
        return [0.0] * len(traffic.dims)

    def _shard_ms(self, work: ns.ShardWork) -> float:
        key = (work.table, work.rows, work.width)
        if key not in self._known:
            kind = "table_wise" if work.rows == work.table_rows else "row_wise"
            option = self._option(work.table, kind, "fused", [
                Shard(size=[work.rows, work.width], offset=[0, 0], rank=0)])
            with quiet():
                self._enumerator.populate_estimates([option])
            self._known[key] = option.shards[0].perf.total
        return self._known[key]

    def _option(self, name: str, kind: str, kernel: str, shards: list[Shard]) -> ShardingOption:
        return ShardingOption(
            name=name, tensor=self._case.model.embedding_bags[name].weight,
            module=("", self._case.model), input_lengths=self._poolings[name],
            batch_size=self._case.batch_per_rank, sharding_type=kind,
            partition_by=get_partition_by_type(kind), compute_kernel=kernel, shards=shards)
