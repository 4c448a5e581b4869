"""Models whose collections have one step on 1, 2 and 3 ranks: against the unsharded model and against
collections with steps of their own, what travels, what falls back, what is refused."""

from pathlib import Path

import pytest

pytest.importorskip("torchrec")

from support.ranks import Ranks

WORKER = Path(__file__).with_name("shard_model_worker.py")
PLANS = ("cut", "table_wise", "planned")
TRAINED = [f"joint.trains:plan={plan}:optimizer={optimizer}"
           for plan, optimizer in zip(PLANS, ("sgd", "adam", "rowwise_adagrad"))]
ALL = [*TRAINED, *(f"joint.same_bits:optimizer={one}" for one in ("sgd", "adam", "rowwise_adagrad")),
       "joint.fallback:kind=made", "joint.fallback:kind=twice", "joint.fallback:kind=missing", "joint.fallback:kind=other",
       "joint.unread", "joint.compositions", "joint_forms.batches", "joint_forms.recomputed", "joint_forms.second_backward",
       "joint_forms.refused", "joint_forms.init_functions", "joint_forms.compiled"]
CASES = {1: ["joint.trains:plan=planned:optimizer=adam", "joint.fallback:kind=made", "joint.unread"],
         2: [*ALL, "joint.exchanges", "joint.bytes", "joint.distinct_ids", "joint_forms.pipeline", "joint_forms.checkpoints", "joint_forms.row_order",
             "joint_forms.drift",
             "joint_forms.dynamic_ids", "joint_forms.other_place", "joint_loops.interrupted", "joint_loops.monitor",
             *(f"joint_loops.loader_fails:step={step}:kind={kind}" for step in (0, 2) for kind in ("loader", "function")),
             "joint_forms.other_call", "joint_forms.wrong_ids", "joint_forms.failed_first", "joint_forms.changed_ids", "joint_forms.freed"],
         3: [TRAINED[0], "joint.same_bits:optimizer=adam"]}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shard_model")
    return {ranks: Ranks(ranks, cases, folder, worker=WORKER, modules=("neuroshard.distributed", "torchrec.distributed"),
                         environment={"NEUROSHARD_CACHE": str(folder / "cache")})
            for ranks, cases in CASES.items()}


@pytest.mark.parametrize(("ranks", "case"), [(ranks, case) for ranks, cases in CASES.items() for case in cases])
def test_ranks(runs, ranks, case):
    runs[ranks].check(case)
