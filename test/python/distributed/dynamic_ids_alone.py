"""A rank of three with dynamic ids; the second alone does something before its fourth step: it is killed, or
under pipeline() looks up without training, gives other ids, or does not call the module.

usage: dynamic_ids_alone.py RANK STORE killed|evaluates|others|skips"""

import os
import signal
import sys
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path(os.environ["NEUROSHARD_BUILD_DIR"], "python")))

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import neuroshard as ns  # noqa: E402

rank, store, does = int(sys.argv[1]), sys.argv[2], sys.argv[3]
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=3,
                        timeout=timedelta(seconds=60))
problem = ns.ShardingProblem(tables=[ns.Table("a", 40, 8)], features=[ns.Feature("a0", "a")],
                             batch=12, topology="3xCPU@4GiB")
tables = ns.ShardedEmbeddingBagCollection(ns.distributed.plan(problem), problem, learning_rate=0.1, threads=1,
                                          dynamic_ids={"a": ns.DynamicIds()})
loader = [{"a0": torch.arange(4).reshape(4, 1) + 100 * step} for step in range(6)]
piped = ns.distributed.pipeline(loader, {tables: lambda batch: batch})
for step, batch in enumerate(loader if does == "killed" else piped):
    alone = rank == 1 and step == 3
    if alone and does == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if alone and does == "skips":
        continue
    tables.train(not (alone and does == "evaluates"))
    results = tables(loader[0] if alone and does == "others" else batch)["a0"]
    if results.requires_grad:
        results.sum().backward()
