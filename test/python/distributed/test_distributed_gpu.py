"""Modules on 1, 2, 3 and 4 ranks with emulated GPUs and Gloo: the cases of test_distributed.py, and
those of GPUs alone. No GPU and no NCCL take part."""

import os
import re
from pathlib import Path

import pytest

from distributed_models import COUNT
from neuroshard._vocabulary import OPTIMIZERS
from support import matrix
from support.ranks import Ranks

ALL = bool(os.environ.get("NEUROSHARD_ALL"))
BUILD = Path(os.environ["NEUROSHARD_BUILD_DIR"])
EMULATOR = BUILD / "lib" / "libneuroshard_emulator.so"
POOLED = {1: 0, 2: 1, 3: 1, 4: 1}
UNPOOLED = {1: 0, 2: 1, 3: 0, 4: 0}

sanitized = re.search(r"^NEUROSHARD_SANITIZE:\w+=.", (BUILD / "CMakeCache.txt").read_text(), re.M)
pytestmark = pytest.mark.skipif(bool(sanitized) or not EMULATOR.exists(),
                                reason="the emulator is not built, or has sanitizers")


def drawn(ranks):
    numbers = matrix.sample(range(COUNT), POOLED[ranks], f"distributed gpu {ranks}")
    unpooled = matrix.sample(range(COUNT), UNPOOLED[ranks], f"unpooled gpu {ranks}")
    return [*(same("training/matrix", number=one) for one in numbers),
            *(f"gpu.as_on_cpus:number={one}" for one in numbers[:1]),
            *(same("training/matrix", number=one, unpooled=1) for one in unpooled)]


def same(case, **options):
    return ":".join([f"gpu.same:case={case}", *(f"{key}={value}"
                                                for key, value in options.items())])


def tiers(case, *tiers, **options):
    return [same(f"tiers/{case}", tier=tier, **options) for tier in tiers or ("dram", "ssd")]


TIERS = [*tiers("same_bits", "dram", optimizer="rowwise_adagrad"), *tiers("same_bits", "dram", optimizer="lamb"),
         *tiers("shards", "dram"),
         *tiers("checkpoint", "dram"), *tiers("read_in_a_step", "ssd"),
         *tiers("same_bits", "ssd", optimizer="adam", type="bf16", policy="lfu", depth=3),
         *tiers("figures", "dram", depth=1), *tiers("figures", "ssd", cache=128, policy="lfu"),
         *tiers("memory", "dram")]
# In the emulator, 100 steps of all take 9 minutes of a core.
TIER_MATRIX = [same("tiers/matrix", optimizer=optimizer, draw=draw, steps=100 if ALL else 8)
               for optimizer in OPTIMIZERS for draw in ("uniform", "zipf")]
UPDATES = [same("updates/same_bits", optimizer="rowwise_adagrad"), same("updates/frozen"), same("traffic/frozen_updates"), same("traffic/frozen", number=1),
           same("updates/rates"), same("training/decay_of_all_rows"),
           same("updates/scaler", at="step", micro=2), same("updates/matrix", number=4),
           same("updates/clipped", number=4), same("inputs/variable_batches"),
           same("inputs/out_of_range", form="drop")]
MORE_UPDATES = [*(same("updates/matrix", number=one) for one in range(COUNT)),
                *(same("updates/same_bits", optimizer=one) for one in ("sgd", "adagrad", "adam")),
                *(same("updates/clipped", number=one) for one in (1, 8, 14)), same("updates/clipped", at="backward"),
                 same("updates/dropped"), same("updates/pipeline"), same("inputs/row_order"), same("reshard/catch_up")]
FEW = {1: ["gpu.modes", same("errors/ids_of_one_rank"), *TIERS[:4]],
       2: [*TIERS, *matrix.sample(TIER_MATRIX, 1, "tiers gpu"), *UPDATES, "traffic.norms", "traffic.norms:kind=lamb", "traffic.norms:kind=partial_rowwise_lamb:on_gpus=0",
           "gpu.ragged:kind=partial_rowwise_lamb", "traffic.numbered:first=1:count=2",
           "traffic.numbered:first=1:count=2:on_gpus=0", "gpu.ragged", "gpu.checkpoint",
           "gpu.modes", "gpu.devices", same("trace/overlap", device="emulator"),
           same("errors/ids_of_one_rank"), same("errors/forms_of_one_rank"), same("steps/orders"),
           same("pipeline/same_bits"), same("pipeline/errors", kind="ids"),
           same("steps/learning_rate"),
           same("steps/learning_rate", backend="aot_eager"),
           same("torch/compile", backend="aot_eager", kind="weighted"), "gpu.export:kind=pooled"],
       3: ["gpu.ragged", same("errors/ids_of_one_rank")],
       4: [*tiers("same_bits", "dram", groups=2), "gpu.ragged", "gpu.ragged:kind=lars_sgd", "gpu.checkpoint", "traffic.norms", "traffic.numbered:first=4:count=2"]}
MORE = {1: ["gpu.ragged", "gpu.devices", "gpu.export:kind=unpooled"],
        2: [*MORE_UPDATES, *(same("steps/convention", optimizer=one) for one in
              ("sgd", "adagrad", "rowwise_adagrad", "adam")), same("steps/pending"),
            same("steps/two_collections"), same("steps/unread_result"), same("steps/searched"),
            same("reshard/random", number=4, tiers=1, moves=1), "gpu.export:kind=weighted", "gpu.as_on_cpus:number=3:unpooled=1",
            *(same("training/same_bits", number=one) for one in range(COUNT)),
            *(same("torch/compile", backend="eager", kind=kind)
              for kind in ("pooled", "weighted", "unpooled"))],
        3: [*(f"gpu.as_on_cpus:number={one}" for one in range(1, 4))],
        4: ["gpu.modes", same("steps/convention", optimizer="rowwise_adagrad"),
            same("steps/subgroups"), same("steps/pending"),
            "traffic.numbered:first=6:count=18",
            *(f"gpu.as_on_cpus:number={one}" for one in range(1, 6))]}
CASES = {ranks: [*drawn(ranks), *few, *(MORE[ranks] if ALL else [])]
         for ranks, few in FEW.items()}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("distributed_gpu")
    environment = {"NEUROSHARD_CACHE": str(folder / "cache"),
                   "NEUROSHARD_EMULATOR_STREAMS": "late", "NEUROSHARD_EMULATOR_STREAM_RACES": "1"}
    modules = ("neuroshard.distributed", "torch._dynamo", "torch.distributed.checkpoint")
    return {ranks: Ranks(ranks, cases, folder, environment=environment, modules=modules)
            for ranks, cases in CASES.items()}


@pytest.mark.parametrize(("ranks", "case"),
                         [(ranks, case) for ranks, cases in CASES.items() for case in cases])
def test_ranks(runs, ranks, case):
    runs[ranks].check(case)
