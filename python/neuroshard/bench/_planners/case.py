"""A workload as TorchRec sees it: a model on the device meta, and a Topology.

Both planners get the same objects, so what differs between their plans is the planning."""

from __future__ import annotations

import datetime
import os
import platform
from dataclasses import dataclass

import torch
import torchrec
import torchrec.optim
from torch.distributed.optim import _apply_optimizer_in_backward
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, PoolingType
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner.types import Topology
from torchrec.modules.embedding_configs import DataType

import neuroshard as ns
from neuroshard._group.host import processor_model
from neuroshard.torchrec import torchrec_topology

TYPES = {"f32": DataType.FP32, "f16": DataType.FP16, "bf16": DataType.BF16}
OPTIMIZERS = {"sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad,
              "rowwise_adagrad": torchrec.optim.RowWiseAdagrad, "adam": torch.optim.Adam}


@dataclass
class Case:
    """One workload on one set of devices. problem: what plans are verified and priced against."""

    name: str
    problem: ns.ShardingProblem
    topology: Topology
    model: EmbeddingBagCollection

    @property
    def ranks(self) -> int:
        return self.topology.world_size

    @property
    def batch_per_rank(self) -> int:
        return self.problem.batch.global_size // self.ranks


def make_case(name: str, workload: ns.ShardingProblem, devices: str) -> Case:
    """The case of a workload. Raises a ValueError if it cannot be an EmbeddingBagCollection on
    hosts of one size."""
    problem = workload.replace(topology=devices, target="torchrec-1.9", memory_model="full")
    ranks = len(problem.topology.devices)
    if problem.batch.global_size % ranks:
        raise ValueError(f"{name}: a batch of {problem.batch.global_size} samples cannot be "
                         f"divided among {ranks} ranks")
    try:
        topology = torchrec_topology(problem.topology)
    except ns.Error as error:
        raise ValueError(f"{name}: expected GPUs of one class and memory in nodes of one size: {error}") from None
    if topology.compute_device == "cpu":
        raise ValueError(f"{name}: expected GPUs of one class and memory in nodes of one size, got CPUs")
    return Case(name, problem, topology, make_model(problem))


def make_model(problem: ns.ShardingProblem) -> EmbeddingBagCollection:
    """Its tables lie on the device meta, where they take no memory. The optimizers are applied
    as TorchRec has it, so that its estimates of memory count their states."""
    configs = []
    for table in problem.tables:
        features = features_of(problem, table.name)
        pooling = {one.pooling for one in features}
        if len(pooling) != 1 or "none" in pooling or any(one.weighted for one in features):
            raise ValueError(f"table {table.name}: expected features pooled in one way, without "
                             "weights")
        configs.append(EmbeddingBagConfig(
            name=table.name, num_embeddings=table.rows, embedding_dim=table.dim,
            data_type=TYPES[table.type], pooling=PoolingType[pooling.pop().upper()],
            feature_names=[one.name for one in features]))
    model = EmbeddingBagCollection(device=torch.device("meta"), tables=configs)
    for table in problem.tables:
        weight = model.embedding_bags[table.name].weight
        _apply_optimizer_in_backward(OPTIMIZERS[table.optimizer.kind], [weight], {"lr": 0.01})
    return model


def make_sharders() -> list[EmbeddingBagCollectionSharder]:
    return [EmbeddingBagCollectionSharder()]


def features_of(problem: ns.ShardingProblem, table: str) -> list[ns.Feature]:
    return [one for one in problem.features if one.table == table]


def versions() -> dict[str, str]:
    """Versions and machine on which the figures depend. machine: processor and cores."""
    model = processor_model() or platform.processor() or platform.machine()
    return {"torchrec": torchrec.__version__, "torch": torch.__version__,
            "python": platform.python_version(),
            "machine": f"{model} ({os.cpu_count()} virtual cores)",
            "date": datetime.date.today().isoformat()}
