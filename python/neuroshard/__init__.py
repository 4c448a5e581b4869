"""NeuroShard: decides where every piece of every embedding table lives, and runs the plan.

A problem is made of Table, Feature, Topology and Constraints; plan(problem) gives a plan, its
predicted cost and the reasons. docs/python.md has examples. Sizes are in bytes, times in
milliseconds; names say so.

The planner needs the compiled module of this package and nothing else; neuroshard.collect
needs torch and not the module, neuroshard.cuda (artifacts on a GPU) libneuroshard_cuda.so,
neuroshard.distributed (sharded modules) torch, libneuroshard_torch.so and neuroshard-compile.
"""

try:
    import neuroshard._planner
except ModuleNotFoundError as error:
    if error.name != "neuroshard._planner":
        raise

    def __getattr__(name: str) -> object:
        # Python then looks for a submodule; these do without the compiled module.
        if name.startswith("__") or name in ("collect", "cuda", "torch_cuda"):
            raise AttributeError(name)
        raise ImportError(
            f"neuroshard.{name} needs the compiled module neuroshard._planner, which is not beside "
            f"{__file__}; use the package of a build (PYTHONPATH=build/release/python) or an "
            "installed one: docs/python.md")
else:
    from neuroshard.cases import WhatIf, WhatIfCase, what_if
    from neuroshard.constraints import Constraints, Place, Reserves, Shard, TableRule
    from neuroshard.costs import (CostModel, DeviceClass, ShardSet, ShardWork, Traffic,
                                  device_classes)
    from neuroshard.errors import (CostModelError, Diagnostic, Error, InvalidPlan,
                                   InvalidProblem, PlanningError, UnknownCostModel,
                                   UnknownPolicy)
    from neuroshard.planning import (Objective, Progress, PublishedSettings, WarmStart,
                                     algorithms, evaluate, inspect, plan)
    from neuroshard.plans import Plan, Provenance, Setting
    from neuroshard.problem import ShardingProblem
    from neuroshard.results import (Breakdown, DeviceCost, DeviceMemory, Memory, Migration,
                                    PlanResult, SnapshotCost, TableMove)
    from neuroshard.tables import (Access, Batch, Feature, FeatureStatistics, Optimizer,
                                   RowMass, Snapshot, Table, TableStatistics)
    from neuroshard.topology import Device, Host, Level, Topology

    __all__ = [
        "Access", "Batch", "Breakdown", "Constraints", "CostModel", "CostModelError",
        "Device", "DeviceClass", "DeviceCost", "DeviceMemory", "Diagnostic", "Error", "Feature",
        "FeatureStatistics", "Host", "InvalidPlan", "InvalidProblem", "Level", "Memory",
        "Migration", "Objective", "Optimizer", "Place", "Plan", "PlanResult", "PlanningError",
        "Progress", "Provenance", "PublishedSettings", "Reserves", "RowMass", "Setting",
        "Shard", "ShardSet", "ShardWork", "ShardingProblem", "Snapshot", "SnapshotCost",
        "Table", "TableMove", "TableRule", "TableStatistics", "Topology", "Traffic",
        "UnknownCostModel", "UnknownPolicy", "WarmStart", "WhatIf", "WhatIfCase",
        "ShardedEmbeddingBagCollection", "ShardedEmbeddingCollection", "algorithms",
        "device_classes", "evaluate", "inspect", "plan", "what_if",
    ]

    def __getattr__(name: str) -> object:
        # What needs torch is imported when it is first used.
        if name not in ("ShardedEmbeddingBagCollection", "ShardedEmbeddingCollection",
                        "distributed"):
            raise AttributeError(f"module 'neuroshard' has no attribute {name!r}")
        import importlib

        distributed = importlib.import_module("neuroshard.distributed")
        return distributed if name == "distributed" else getattr(distributed, name)
