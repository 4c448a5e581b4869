"""Loads and judges a problem of many tables, or of many devices, in Python.

    large_problem.py tables|devices COUNT FOLDER

tables: COUNT tables on 8 devices; devices: one table cut by rows over COUNT devices. A problem and
a plan are written to FOLDER, read, and the plan's cost and memory worked out.
"""

import json
import os
import sys

import neuroshard as ns

ROWS, DIM = 1 << 20, 16


def workload(tables):
    return {"schema": "neuroshard.workload.v1", "batch": {"global_size": 1 << 20},
            "tables": [{"name": f"t{i}", "rows": ROWS, "dim": DIM} for i in range(tables)],
            "features": [{"name": f"f{i}", "table": f"t{i}"} for i in range(tables)]}


def plan(kind, count):
    if kind == "tables":
        return ns.Plan(device_count=8, shards=[
            ns.Shard(table=f"t{i}", rows=(0, ROWS), cols=(0, DIM), devices=i % 8)
            for i in range(count)])
    ends = [ROWS * device // count for device in range(count + 1)]
    return ns.Plan(device_count=count, shards=[
        ns.Shard(table="t0", rows=(ends[i], ends[i + 1]), cols=(0, DIM), devices=i)
        for i in range(count)])


def main():
    kind, count, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    paths = [os.path.join(folder, f"{kind}-{count}.{what}.json") for what in ("problem", "plan")]
    with open(paths[0], "w", encoding="utf-8") as file:
        json.dump(workload(count if kind == "tables" else 1), file)
    plan(kind, count).save(paths[1])
    devices = 8 if kind == "tables" else count
    problem = ns.ShardingProblem.load(paths[0]).replace(topology=f"{devices}xH200@1024GiB")
    ns.inspect(problem, ns.Plan.load(paths[1]))


if __name__ == "__main__":
    main()
