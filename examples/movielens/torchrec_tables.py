"""The embedding part of TorchRec, under NeuroShard's plan."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable

import torch

import neuroshard as ns

from movielens.data import Batch, MovieLens
from movielens.model import Vectors
from movielens.unsharded import make_optimizer

# These versions of TorchRec call functions that PyTorch deprecates, and log the paths that they
# trace. Neither concerns this program.
warnings.filterwarnings("ignore", category=FutureWarning)
warnings.filterwarnings("ignore", message=".*an autograd kernel was not registered.*")
for name in ("torchrec.distributed.utils", "torch.fx._symbolic_trace"):
    logging.getLogger(name).setLevel(logging.ERROR)

from fbgemm_gpu.split_embedding_configs import EmbOptimType  # noqa: E402
from torch.distributed._shard.sharded_tensor import ShardedTensor  # noqa: E402
from torchrec import (EmbeddingBagCollection, EmbeddingBagConfig, KeyedJaggedTensor,  # noqa: E402
                      PoolingType)
from torchrec.distributed import DistributedModelParallel  # noqa: E402
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder  # noqa: E402

# Those of NeuroShard's optimizers that TorchRec runs on the CPU.
OPTIMIZERS = {"sgd": EmbOptimType.EXACT_SGD, "adagrad": EmbOptimType.EXACT_ADAGRAD,
              "rowwise_adagrad": EmbOptimType.EXACT_ROWWISE_ADAGRAD}


class TorchRecTables:
    """Starts from whole tables, from which each rank copies its shards."""

    def __init__(self, data: MovieLens, plan: ns.Plan, weights: dict[str, torch.Tensor],
                 optimizer: ns.Optimizer, learning_rate: float) -> None:
        self.keys = list(data.features)
        sharder = EmbeddingBagCollectionSharder(fused_params={
            "optimizer": OPTIMIZERS[optimizer.kind], "learning_rate": learning_rate,
            "eps": optimizer.eps})
        self.model = DistributedModelParallel(
            _collection(data, weights), device=torch.device("cpu"), sharders=[sharder],
            plan=plan.to_torchrec({"": list(data.tables)}, device="cpu"))
        self._load(weights)
        # Tables that lie on one rank or are cut are updated in the backward pass.
        replicated = {shard.table for shard in plan.shards if shard.replicated}
        parameters = [parameter for name, parameter in self.model.named_parameters()
                      if _table_of(name) in replicated]
        self.replicated = make_optimizer(optimizer, parameters, learning_rate)

    def start(self, batch: Batch) -> Callable[[], Vectors]:
        pending = self.model(KeyedJaggedTensor(self.keys, batch.ids, offsets=batch.offsets))
        return pending.to_dict

    def zero_grad(self) -> None:
        self.replicated.zero_grad()

    def step(self) -> None:
        self.replicated.step()

    def _load(self, weights: dict[str, torch.Tensor]) -> None:
        with torch.no_grad():
            for name, value in self.model.state_dict().items():
                whole = weights[_table_of(name)]
                if not isinstance(value, ShardedTensor):
                    value.copy_(whole)
                    continue
                for shard in value.local_shards():
                    (row, col), (rows, cols) = shard.metadata.shard_offsets, shard.tensor.shape
                    shard.tensor.copy_(whole[row:row + rows, col:col + cols])


def _collection(data: MovieLens, weights: dict[str, torch.Tensor]) -> EmbeddingBagCollection:
    configs = [EmbeddingBagConfig(
        name=name, num_embeddings=spec.rows, embedding_dim=weights[name].shape[1],
        pooling=PoolingType.MEAN if spec.pooling == "mean" else PoolingType.SUM,
        feature_names=[feature for feature, read in data.features.items() if read == name])
        for name, spec in data.tables.items()]
    return EmbeddingBagCollection(tables=configs, device=torch.device("meta"))


def _table_of(parameter: str) -> str:
    return parameter.split(".")[-2]
