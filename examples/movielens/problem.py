"""The sharding problem: the tables of MovieLens-100k with statistics of its batches."""

from __future__ import annotations

import numpy as np

import neuroshard as ns

from movielens.data import MovieLens

STATISTICS_BATCHES = 20
REUSE_LIMITS = 2 ** np.arange(16)
SMALL_ROWS = 100


def sharding_problem(data: MovieLens, *, dim: int, batch: int, devices: int,
                     optimizer: ns.Optimizer, target: str = "torchrec-1.9"
                     ) -> ns.ShardingProblem:
    """The problem for this many processes on CPUs. By default its plans are those that TorchRec can
    run too."""
    batches = data.global_batches(batch, STATISTICS_BATCHES)
    tables = [ns.Table(name, spec.rows, dim, optimizer=optimizer,
                       access=_access(data, name, batches[0]))
              for name, spec in data.tables.items()]
    features = [_feature(data, name, batches) for name in data.features]
    return ns.ShardingProblem(
        tables=tables, features=features, batch=batch, topology=f"{devices}xCPU", target=target,
        constraints=_constraints(data), source="MovieLens-100k")


def _constraints(data: MovieLens) -> ns.Constraints:
    """All of these tables fit on every rank, and the planner would replicate them. So that the run
    shows what large tables need, only the small ones may be replicated, and the largest is cut by
    rows."""
    largest = max(data.tables, key=lambda name: data.tables[name].rows)
    return ns.Constraints(tables=[
        ns.TableRule(name, _kinds(spec.rows, name == largest))
        for name, spec in data.tables.items()])


def _kinds(rows: int, largest: bool) -> tuple[str, ...]:
    if largest:
        return ("row_wise",)
    return ("replicated",) if rows < SMALL_ROWS else ("table_wise", "column_wise")


def _feature(data: MovieLens, name: str, batches: list[np.ndarray]) -> ns.Feature:
    table = data.features[name]
    lengths = [data.take(name, samples)[1] for samples in batches]
    presence = np.mean([np.mean(one > 0) for one in lengths])
    per_sample = [one.mean() for one in lengths]
    return ns.Feature(name, table, pooling=data.tables[table].pooling,
                      mean_pooling=float(np.mean(per_sample) / presence),
                      p99_pooling=float(np.quantile(per_sample, 0.99)),
                      presence=float(presence))


def _access(data: MovieLens, table: str, samples: np.ndarray) -> ns.Access:
    """The shares of the distinct ids of one batch that occur once, twice, 3-4 times, ..."""
    ids = np.concatenate([data.take(name, samples)[0] for name, read in data.features.items()
                          if read == table])
    counts = np.unique(ids, return_counts=True)[1]
    bins = np.bincount(np.searchsorted(REUSE_LIMITS, counts), minlength=17)
    return ns.Access(batch=len(samples), reuse=(bins / bins.sum()).tolist())
