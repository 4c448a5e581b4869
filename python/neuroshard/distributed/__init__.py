"""Embedding tables sharded over the ranks of torch.distributed, by a plan.

    dist.init_process_group("gloo")
    plan = ns.distributed.plan(problem)
    tables = ns.ShardedEmbeddingBagCollection(plan, problem, learning_rate=0.05)
    for batch in ns.distributed.lockstep(loader):
        loss(model(batch.dense, tables(batch.ids)), batch.labels).backward()

It needs torch, libneuroshard_torch.so, and neuroshard-compile where no artifact is given;
import neuroshard alone imports none of them. docs/distributed.md explains it.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING or find_spec("neuroshard._planner"):
    from neuroshard.distributed._compile_cache import compile_plan
    from neuroshard.distributed._collection import (ShardedEmbeddingBagCollection,
                                                    ShardedEmbeddingCollection)
    from neuroshard.distributed._pending import Pending
    from neuroshard.distributed._pipeline import pipeline
    from neuroshard.distributed._modules.problem import problem_of
    from neuroshard.distributed._modules.shard import reshard_model, shard_model
    from neuroshard.distributed._planning import plan

from neuroshard.distributed._caches import CacheFigures
from neuroshard.distributed._dynamic_ids.arguments import DynamicIds
from neuroshard.distributed._dynamic_ids.id_table import IdFigures, IdTable
from neuroshard.distributed._lockstep import lockstep
from neuroshard.distributed._shards import LocalShard
from neuroshard.distributed._tables import EmbeddingTables
from neuroshard.errors import GroupError
from neuroshard._jagged import Jagged

if TYPE_CHECKING:
    from neuroshard.distributed._checkpoint.checkpoint import latest, load, save
    from neuroshard.distributed._checkpoint.full import full_state_dict
    from neuroshard.distributed._checkpoint.whole_tables import read_tables
    from neuroshard.distributed._monitor.advice import Advice
    from neuroshard.distributed._monitor.monitor import PlanMonitor
    from neuroshard.distributed._reshard.join import join_resharded
    from neuroshard.distributed._reshard.reshard import Resharded
    from neuroshard.errors import CheckpointError

__all__ = ["Advice", "CacheFigures", "CheckpointError", "DynamicIds", "EmbeddingTables", "GroupError",
           "IdFigures", "IdTable", "Jagged", "LocalShard", "Pending", "PlanMonitor", "Resharded",
           "ShardedEmbeddingBagCollection", "ShardedEmbeddingCollection", "compile_plan",
           "full_state_dict", "join_resharded", "latest",
           "load", "lockstep", "pipeline", "plan", "problem_of", "read_tables", "reshard_model", "save", "shard_model"]

# Those of the first four use torch.distributed.checkpoint, which takes as long to import as all else.
_LATER = {"_checkpoint.checkpoint": ("CheckpointError", "latest", "load", "save"),
          "_checkpoint.full": ("full_state_dict",), "_checkpoint.whole_tables": ("read_tables",),
          "_reshard.join": ("join_resharded",), "_reshard.reshard": ("Resharded",),
          "_monitor.advice": ("Advice",), "_monitor.monitor": ("PlanMonitor",)}


def __getattr__(name: str) -> object:
    module = next((module for module, names in _LATER.items() if name in names), None)
    if module is None:
        raise AttributeError(f"module 'neuroshard.distributed' has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
