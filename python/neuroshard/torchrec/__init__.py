"""NeuroShard inside TorchRec: a planner for DistributedModelParallel, and plans there and back.

    from neuroshard.torchrec import NeuroShardPlanner

    planner = NeuroShardPlanner(topology, batch_size=512, constraints=constraints)
    model = DistributedModelParallel(model, plan=planner.collective_plan(model, sharders, pg))

It needs torch and torchrec 1.9; import neuroshard alone imports neither. docs/torchrec.md
explains it.
"""

try:
    import torchrec  # noqa: F401
except ModuleNotFoundError as error:
    raise ImportError("neuroshard.torchrec needs torch and torchrec 1.9 "
                      f"(pip install neuroshard[torchrec]): {error}") from error

from neuroshard.torchrec._planner import NeuroShardPlanner
from neuroshard.torchrec._plans import from_torchrec, to_torchrec

__all__ = ["NeuroShardPlanner", "from_torchrec", "to_torchrec"]
