"""Problems and cost models that several tests of the Python planner use."""

import json
import math
from pathlib import Path

import neuroshard as ns

ROOT = Path(__file__).resolve().parents[3]
REFERENCE = ROOT / "test" / "reference_search"
EXPECTED = {entry["task"]: entry for entry in json.loads((REFERENCE / "expected.json").read_text())}


def reference_task(name):
    return ns.ShardingProblem.load(REFERENCE / f"{name}.json")


def small_problem(**changes):
    """Four tables on two devices with room to spare."""
    tables = [ns.Table("user", 100_000, 64, optimizer="rowwise_adagrad"),
              ns.Table("item", 50_000, 32), ns.Table("page", 1_000, 16), ns.Table("tag", 77, 20)]
    features = [ns.Feature("user_id", "user"),
                ns.Feature("clicked", "item", mean_pooling=20, pooling="mean"),
                ns.Feature("page_id", "page", mean_pooling=3), ns.Feature("tag_id", "tag")]
    values = {"tables": tables, "features": features, "batch": 4096, "topology": "2xCPU@4GiB",
              **changes}
    return ns.ShardingProblem(**values)


class ReferenceModel(ns.CostModel):
    """The closed form of test/reference_search/README.md."""

    name = "reference in Python"

    def compute_ms(self, shard_sets):
        times = []
        for shard_set in shard_sets:
            total = sum(shard.pooling * (shard.width + 8) * (1 + 0.05 * math.log10(shard.rows))
                        for shard in shard_set.shards)
            times.append(0.3 + 0.004 * total ** 0.93 + 0.02 * len(shard_set.shards))
        return times

    def communication_ms(self, traffic, skews=None, direction="forward"):
        most = max(traffic.dims)
        times = [0.015 * most + 0.005 * dims for dims in traffic.dims]
        if skews is not None:
            times = [time + 0.7 * (max(skews) - skew)
                     for time, skew in zip(times, skews, strict=True)]
        return times


class BytesModel(ns.CostModel):
    """Separates forward and backward: bytes over a rate."""

    def compute_ms(self, shard_sets):
        return [(1e-6 * sum(shard.lookups * shard.width for shard in shard_set.shards),
                 2e-6 * sum(shard.update_lookups * shard.width for shard in shard_set.shards))
                for shard_set in shard_sets]

    def communication_ms(self, traffic, skews=None, direction="forward"):
        return [1e-6 * max(out, into)
                for out, into in zip(traffic.bytes_out, traffic.bytes_in, strict=True)]
