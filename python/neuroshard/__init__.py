"""NeuroShard: decides where every piece of every embedding table lives, and runs the plan.

A problem is made of Table, Feature, Topology and Constraints; plan(problem) gives a plan, its
predicted cost and the reasons. docs/python.md has examples. Sizes are in bytes, times in
milliseconds; names say so.

The planner needs the compiled module of this package and nothing else; neuroshard.collect
needs torch and not the module, neuroshard.cuda (artifacts on a GPU) libneuroshard_cuda.so,
neuroshard.distributed (sharded modules) torch, libneuroshard_torch.so and neuroshard-compile.
The first use of a name imports what it needs: import neuroshard alone takes no time.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neuroshard.constraints import Constraints, Place, Reserves, TableRule
    from neuroshard.costs import (CostModel, DeviceClass, ShardSet, ShardWork, Traffic,
                                  device_classes, load_device_classes)
    from neuroshard.distributed import (DynamicIds, EmbeddingTables, ShardedEmbeddingBagCollection,
                                        ShardedEmbeddingCollection)
    from neuroshard.errors import (CostModelError, Diagnostic, Error, InvalidPlan, InvalidProblem,
                                   PlanningError, TensorError, UnknownCostModel, UnknownPolicy)
    from neuroshard.export import export, load_export
    from neuroshard.planning import (Objective, Progress, PublishedSettings, WarmStart, algorithms,
                                     evaluate, inspect, plan)
    from neuroshard.plans import Plan, Provenance, Setting
    from neuroshard.problem import ShardingProblem
    from neuroshard.serving import ServedTables, freeze, serve
    from neuroshard.results import (Assumption, Breakdown, CacheCost, DeviceCost, DeviceMemory, Memory, Migration,
                                    PlanResult, PredictionInterval, SnapshotCost, TableMove)
    from neuroshard.runs import CacheRun, Run
    from neuroshard.shards import Shard
    from neuroshard.tables import (Access, Batch, Feature, FeatureStatistics, Optimizer, RowMass,
                                   Snapshot, Table, TableStatistics)
    from neuroshard.topology import Device, Disk, Host, Level, Topology
    from neuroshard.what_if_cases import WhatIf, WhatIfCase, what_if

__all__ = [
    "Access", "Assumption", "Batch", "Breakdown", "CacheCost", "CacheRun", "Constraints", "CostModel", "CostModelError",
    "Device", "DeviceClass", "DeviceCost", "DeviceMemory", "Diagnostic", "Disk", "Error", "Feature",
    "FeatureStatistics", "Host", "InvalidPlan", "InvalidProblem", "Level", "Memory",
    "Migration", "Objective", "Optimizer", "Place", "Plan", "PlanResult", "PlanningError",
    "PredictionInterval", "Progress", "Provenance", "PublishedSettings", "Reserves", "RowMass", "Run", "Setting",
    "Shard", "ShardSet", "ShardWork", "ShardingProblem", "Snapshot", "SnapshotCost",
    "Table", "TableMove", "TableRule", "TableStatistics", "TensorError", "Topology", "Traffic",
    "UnknownCostModel", "UnknownPolicy", "WarmStart", "WhatIf", "WhatIfCase",
    "DynamicIds", "EmbeddingTables", "ServedTables", "ShardedEmbeddingBagCollection", "ShardedEmbeddingCollection",
    "algorithms", "device_classes", "evaluate", "export", "freeze", "inspect", "load_device_classes", "load_export", "plan", "serve",
    "what_if",
]

# The module of each public name; names that need torch are below.
_MODULES = {
    "constraints": "Constraints Place Reserves TableRule",
    "costs": "CostModel DeviceClass ShardSet ShardWork Traffic device_classes load_device_classes",
    "errors": "CostModelError Diagnostic Error InvalidPlan InvalidProblem PlanningError "
              "TensorError UnknownCostModel UnknownPolicy",
    "planning": "Objective Progress PublishedSettings WarmStart algorithms evaluate inspect plan",
    "plans": "Plan Provenance Setting",
    "problem": "ShardingProblem",
    "results": "Assumption Breakdown CacheCost DeviceCost DeviceMemory Memory Migration PlanResult PredictionInterval "
               "SnapshotCost TableMove",
    "runs": "CacheRun Run",
    "shards": "Shard",
    "tables": "Access Batch Feature FeatureStatistics Optimizer RowMass Snapshot Table "
              "TableStatistics",
    "topology": "Device Disk Host Level Topology",
    "what_if_cases": "WhatIf WhatIfCase what_if",
}
# By the package that has them.
_NEED_TORCH = {
    "distributed": ("DynamicIds", "EmbeddingTables", "ShardedEmbeddingBagCollection", "ShardedEmbeddingCollection"),
    "serving": ("ServedTables", "freeze", "serve"),
}


def __getattr__(name: str) -> object:
    for package, names in _NEED_TORCH.items():
        if name == package or name in names:
            return _of_torch(package, name)
    if name == "export":  # a callable package, which imports torch when it is called
        from importlib import import_module
        return import_module("neuroshard.export")
    if name == "load_export":
        from neuroshard.export import load_export
        return load_export
    if name not in __all__:
        # Python then looks for a submodule, and some do not need the compiled module.
        raise AttributeError(f"module 'neuroshard' has no attribute {name!r}")
    _load(name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _load(name: str) -> None:
    """Imports the planner, for `name`, and makes all its names ours."""
    from importlib import import_module

    try:
        import_module("neuroshard._planner")
    except ModuleNotFoundError as error:
        if error.name != "neuroshard._planner":
            raise
        raise ImportError(
            f"neuroshard.{name} needs the compiled module neuroshard._planner, which is not beside "
            f"{__file__}; use the package of a build (PYTHONPATH=build/release/python) or an "
            "installed one: docs/python.md") from None
    for module, names in _MODULES.items():
        loaded = import_module(f"neuroshard.{module}")
        globals().update({name: getattr(loaded, name) for name in names.split()})


def _of_torch(package: str, name: str) -> object:
    from importlib import import_module

    try:
        module = import_module(f"neuroshard.{package}")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(f"neuroshard.{name} needs torch, which is not installed: pip install "
                          "\"neuroshard[torch]\"") from None
    return module if name == package else getattr(module, name)
