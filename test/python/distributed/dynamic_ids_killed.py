"""A rank of three with dynamic ids; the second is killed before its fourth step.

usage: dynamic_ids_killed.py RANK STORE"""

import os
import signal
import sys
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path(os.environ["NEUROSHARD_BUILD_DIR"], "python")))

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import neuroshard as ns  # noqa: E402

rank, store = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=3,
                        timeout=timedelta(seconds=60))
problem = ns.ShardingProblem(tables=[ns.Table("a", 40, 8)], features=[ns.Feature("a0", "a")],
                             batch=12, topology="3xCPU@4GiB")
tables = ns.ShardedEmbeddingBagCollection(ns.distributed.plan(problem), problem, learning_rate=0.1, threads=1,
                                          dynamic_ids={"a": ns.DynamicIds()})
for step in range(6):
    if rank == 1 and step == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    tables({"a0": torch.arange(4).reshape(4, 1) + 100 * step})["a0"].sum().backward()
