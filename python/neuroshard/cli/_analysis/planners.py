"""The plan of TorchRec's own planner beside ours, for a model of the user."""

from __future__ import annotations

from typing import Any

from neuroshard.cli._failures import InputError
from neuroshard.cli._input import search_options
from neuroshard.cli._input.user_code import call, names_function
from neuroshard.cli._input.workload import load_workload, pooling_by_feature, pooling_of


def compare(values: dict[str, Any], profiled: str | None) -> Any:
    """The PlannerComparison that the options of `compare --torchrec` ask for. profiled: a workload's file."""
    source, topology, batch = values["workload"], values["topology"], values["batch"]
    if not names_function(source):
        raise InputError(f"{source}: --torchrec needs the model itself, as model.py:Model; TorchRec's planner "
                         "reads no workload")
    if topology is None or batch is None:
        missing = "--topology, for instance --topology 8xH200" if topology is None else \
            "--batch, the samples over all devices"
        raise InputError(f"--torchrec plans for a model, which names no cluster and no batch: add {missing}")
    for option in ("mode", "constraints"):
        if values[option]:
            raise InputError(f"--{option} has no effect on TorchRec's planner: leave it out")
    model = search_options.take_model(values)
    try:
        from neuroshard.torchrec import compare_planners
    except ImportError as error:
        raise InputError(f"--torchrec needs torch and torchrec: {error}") from error
    import neuroshard as ns

    devices = ns.Topology.parse(topology)
    if batch % devices.device_count:
        raise InputError(f"--batch {batch}: expected a multiple of the {devices.device_count} devices")
    if (objective := model.pop("objective", None)) is not None and objective != ns.Objective():
        raise InputError("--torchrec compares costs of steps of embeddings alone: leave out options of the objective")
    known = load_workload(profiled) if profiled is not None else None
    return compare_planners(call(source), devices, batch // devices.device_count, optimizer=values["optimizer"],
                            mean_pooling=pooling_of(pooling_by_feature(values["mean_pooling"])),
                            profiled=known, **model)
