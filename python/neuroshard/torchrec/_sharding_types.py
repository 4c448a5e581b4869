"""The sharding types that a table may have under TorchRec: those asked for, those its modules run
right, and those that can cut the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torchrec.distributed.planner.types import ParameterConstraints
from torchrec.distributed.types import ModuleSharder
from torchrec.modules.embedding_configs import BaseEmbeddingConfig

from neuroshard._torchrec_plans import KINDS
from neuroshard._vocabulary import COLUMN_ALIGNMENT
from neuroshard.errors import Unsupported

# Sharding types, by pooling, that TorchRec 1.9 computes wrong results with. With a mean-pooled
# table cut by rows it also divides the results of the module's other tables. Replicated unpooled
# tables lose rows in the forward.
RUN_WRONG = {"mean": {"row_wise", "table_row_wise"}, "none": {"data_parallel"}}


@dataclass(frozen=True)
class Cluster:
    """The cluster that the model runs on. local: ranks of one host. device: "cpu", "cuda"."""

    ranks: int
    local: int
    device: str

    def can_cut_rows(self, rows: int, blocks: int) -> bool:
        """Whether rows can be cut into blocks of ceil(rows / blocks). On the CPU no block may be
        empty. On GPUs some may, but not those of all hosts except the first: such a table would be
        table-row-wise."""
        filled = -(-rows // -(-rows // blocks))
        if self.device == "cpu":
            return filled == blocks > 1
        return filled > (self.local if blocks == self.ranks > self.local else 1)


def allowed_kinds(name: str, pooling: str, sharder: ModuleSharder,
                  limits: ParameterConstraints, device: str) -> list[str]:
    # For "cpu", sharders list fewer types than their modules run there.
    types = set(sharder.sharding_types("cuda" if device == "cpu" else device))
    asked = set(limits.sharding_types or ())
    # The fused optimizer does not update replicated tables, so they must be asked for.
    types = types & asked if asked else types - {"data_parallel"}
    if limits.compute_kernels and "dense" not in limits.compute_kernels:
        types.discard("data_parallel")
    if limits.compute_kernels and "fused" not in limits.compute_kernels:
        types &= {"data_parallel"}
    wrong = RUN_WRONG.get(pooling, set())
    kinds = sorted({KINDS[one] for one in types - wrong if one in KINDS})
    if not kinds:
        good = ", ".join(one for one in KINDS if one not in wrong)
        raise Unsupported(f"table \"{name}\" (pooling {pooling}): of the sharding types "
                          f"{sorted(asked)} TorchRec runs none right; it runs {good}")
    return kinds


def why_not(kind: str, pooling: str, limits: ParameterConstraints) -> str:
    """Why a table may not have a kind that allowed_kinds() left out."""
    if kind in {KINDS[one] for one in RUN_WRONG.get(pooling, ())}:
        return ("TorchRec computes wrong results of mean-pooled tables that are cut by rows" if pooling == "mean"
                else "TorchRec loses rows of replicated tables without pooling")
    if limits.sharding_types and kind not in {KINDS.get(one) for one in limits.sharding_types}:
        return "the sharding_types of the table's constraints leave it out"
    if limits.compute_kernels and ("dense" if kind == "replicated" else "fused") not in limits.compute_kernels:
        return "the compute_kernels of the table's constraints leave it out"
    if kind == "replicated":
        return ("TorchRec's fused optimizers do not update replicated tables, so these must be asked for: "
                "data_parallel among the sharding_types of the table's constraints")
    return "the sharder of the table's module does not offer it"


def can_be_cut(config: BaseEmbeddingConfig, kinds: Sequence[str], width: int,
               cluster: Cluster, pooled: bool) -> bool:
    """Whether one of the kinds can cut the table. If not, the table is whole, as it is in TorchRec
    whatever kind was asked for."""
    rows = config.num_embeddings
    return ("replicated" in kinds
            or "column_wise" in kinds and can_cut_columns(config.embedding_dim, width, cluster,
                                                          pooled)
            or "row_wise" in kinds and cluster.can_cut_rows(rows, cluster.ranks)
            or "table_row_wise" in kinds and cluster.can_cut_rows(rows, cluster.local))


def can_cut_columns(dim: int, width: int, cluster: Cluster, pooled: bool) -> bool:
    """Whether columns can be cut. Unpooled tables are cut into halves only, since all tables of
    their module must have one width. The shards of a single rank must be equally wide."""
    width = COLUMN_ALIGNMENT * -(-width // COLUMN_ALIGNMENT)
    if not pooled:
        return dim % (2 * COLUMN_ALIGNMENT) == 0 and dim >= 2 * width
    if cluster.ranks > 1:
        return dim >= 2 * width
    return any(dim % (COLUMN_ALIGNMENT * count) == 0 for count in range(2, dim // width + 1))
