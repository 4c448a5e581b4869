"""Sharded modules on 1, 2, 4 and 8 ranks: training against torch, forms of ids, torch's own
machinery, wrong input. Each number of ranks is one job; cases are in distributed_*.py."""

import os

import pytest
import torch

import neuroshard as ns
from distributed_models import COUNT, lone, make_problem
from neuroshard._vocabulary import OPTIMIZERS
from support import matrix
from support.ranks import Ranks, chosen_cases

ALL = bool(os.environ.get("NEUROSHARD_ALL"))
# Of each number of ranks, how many problems are drawn.
POOLED = {1: 1, 2: 3, 4: 2, 8: 1}
UNPOOLED = {1: 1, 2: 1, 4: 1, 8: 1}


def drawn(ranks):
    numbers = matrix.sample(range(COUNT), POOLED[ranks], f"distributed {ranks}")
    unpooled = matrix.sample(range(COUNT), UNPOOLED[ranks], f"unpooled {ranks}")
    repeated = numbers if ALL else numbers[:1]
    return [*(f"training.matrix:number={one}" for one in numbers),
            *(f"training.matrix:number={one}:unpooled=1" for one in unpooled),
            *(f"training.matrix:number={one}:unpooled=1:distinct=1" for one in unpooled),
            *(f"traffic.distinct_ids:number={one}" for one in unpooled),
            *(f"training.same_bits:number={one}" for one in repeated),
            *(matrix.sample(TIER_MATRIX, 1, "tiers") if ranks == 2 else ()),
            *(f"updates.matrix:number={one}" for one in repeated),
            *(f"updates.matrix:number={one}:unpooled=1" for one in unpooled),
            *(f"traffic.frozen:number={one}" for one in repeated),
            *(f"traffic.inference:number={one}" for one in numbers),
            *(f"traffic.inference:number={one}:unpooled=1" for one in unpooled),
            *(f"traffic.inference:number={one}:groups=2" for one in (numbers if ranks == 4 else ())),
            *(f"traffic.frozen:number={one}:unpooled=1" for one in (unpooled if ALL else ())),
            *(f"traffic.frozen:number={one}:groups=2" for one in (numbers if ranks == 4 else ()))]


CONVENTIONS = [f"steps.convention:optimizer={one}{division}"
               for one in ("sgd", "adagrad", "rowwise_adagrad", "adam")
               for division in ("", ":division=0")]
COMPILED = [f"torch.compile:backend={backend}:kind={kind}" for backend in ("eager", "aot_eager")
            for kind in ("pooled", "weighted", "unpooled")]
COMPILED += [f"torch.compiled_twice:backend=aot_eager:kind={kind}" for kind in ("twice", "broken")]
INDUCTOR = [f"torch.compile:backend=inductor:kind={kind}"
            for kind in ("pooled", "weighted", "unpooled")]
EXPORTED = [f"torch.export:kind={kind}" for kind in ("pooled", "weighted", "unpooled")]
EXPORTED += ["torch.export:kind=pooled:out_of_range=modulo"]
FORMS = ["inputs.forms", "inputs.position_weights", "inputs.torchrec:pooling=SUM", "inputs.torchrec:pooling=MEAN",
         "inputs.torchrec:pooling=SUM:weighted=1", "inputs.torchrec_unpooled", "inputs.bags",
         "inputs.shared_feature", "inputs.shared_feature_unpooled", "inputs.variable_batches",
         "inputs.variable_batches:pooling=MEAN", "inputs.variable_batches:weighted=1",
         "inputs.variable_batches_unpooled", "inputs.batches_of_a_dict",
         *(f"inputs.out_of_range:form={form}" for form in ("drop", "modulo", "0", "-1")),
         "inputs.row_order", "inputs.row_order:pooling=none", "inputs.row_order:kind=columns", "inputs.row_order_errors"]
ERRORS = ["errors.ids_of_one_rank", "errors.forms", "errors.weights", "errors.unread_weights",
          "errors.construction",
          "errors.forms_of_one_rank", "errors.defaults", "errors.artifact", "errors.lost_update"]
STEPS = ["steps.modes", "steps.orders", "steps.pending", "steps.looked_up", "steps.two_collections",
         "steps.searched", "steps.unread_result", "steps.learning_rate",
         "steps.learning_rate:backend=aot_eager"]
PIPELINE = [*(f"pipeline.same_bits:depth={depth}" for depth in (1, 2, 3)),
            "pipeline.same_bits:optimizer=adam", "pipeline.what_is_sent", "pipeline.other_ids",
            "pipeline.other_ids:depth=3", "pipeline.held_by_its_error", "pipeline.not_taken", "pipeline.modes",
            "pipeline.several_modules", "pipeline.of_torchrec", "pipeline.no_loader", "pipeline.uneven", "pipeline.arguments",
            *(f"pipeline.errors:kind={kind}" for kind in ("ids", "form", "function", "empty", "loader"))]
TIERS = [*(f"tiers.same_bits:optimizer={optimizer}:type={type}:policy={policy}:depth={depth}"
           for optimizer, type, policy, depth in (
               ("sgd", "f16", "lru", 1), ("adagrad", "f32", "lfu", 2), ("adam", "bf16", "lru", 3),
               ("rowwise_adagrad", "f32", "lru", 2), ("ftrl", "bf16", "lfu", 1),
               ("lars_sgd", "f16", "lru", 1), ("partial_rowwise_lamb", "bf16", "lfu", 2),
               ("rowwise_adagrad_with_counter", "f32", "lru", 2))),
         "tiers.same_bits:optimizer=momentum:catch_up=1:depth=3",
         "tiers.same_bits:optimizer=adam:type=bf16:catch_up=1:policy=lfu",
         "tiers.same_bits:cache=608", "tiers.shards", "tiers.errors", "tiers.checkpoint",
         "tiers.read_in_a_step",
         *(f"tiers.figures:cache={cache}:policy={policy}:depth={depth}"
           for cache, policy, depth in ((32, "lru", 1), (128, "lru", 2), (128, "lfu", 1),
                                        (608, "lfu", 3), (256, "lfu", 2)))]
TIER_MATRIX = [f"tiers.matrix:optimizer={optimizer}:draw={draw}:steps={100 if ALL else 20}"
               for optimizer in OPTIMIZERS for draw in ("uniform", "zipf")]
TIERS_IN_GROUPS = [f"tiers.same_bits:groups=2:depth={depth}" for depth in (1, 2, 3)]
UPDATES = [*(f"updates.same_bits:optimizer={one}" for one in ("sgd", "adagrad", "rowwise_adagrad", "adam", "lamb")),
           "updates.dropped", "updates.wrong_ids", "updates.pipeline", "updates.frozen", "updates.rates",
           "traffic.frozen_updates", "traffic.frozen_updates:at=step", "traffic.frozen_pipeline",
           "updates.scaler", "updates.scaler:at=step", "updates.scaler:micro=3",
           "updates.scaler:at=step:micro=2", "updates.arguments", "updates.optimizer", "updates.trained",
           *(f"updates.clipped:number={number}" for number in (1, 4, 8, 14)), "updates.clipped:at=backward"]
TORCH = ["torch.recomputed", "torch.operators", "torch.copies", "torch.closed", "torch.full_state", "torch.full_state:semantics=per_shard"]
# These need several ranks.
GROUPS = ["errors.disagreement", "errors.mixed_backwards", "errors.mixed_starts",
          "errors.mixed_rates", "traffic.frozen_mixed", "updates.disagreement", "updates.kept_memory", "steps.subgroups", "steps.other_orders",
          "steps.dropped_on_one_rank", "steps.late", "torch.overlap", "trace.overlap",
          "training.cuts", "training.drift", "training.drift:optimizer=sgd"]
# Second stages of ids and of results are begun by relays.
RELAYS = ["errors.mixed_backwards:groups=2", "errors.mixed_starts:groups=2",
          "steps.other_orders:groups=2", "steps.dropped_on_one_rank:groups=2",
          "steps.dropped_on_one_rank:groups=2:thread=1", "steps.dropped_looked_up:groups=2"]

INITIAL = ["training.initial_values", "training.initial_values:number=5"]

ANYWHERE = [*CONVENTIONS, *COMPILED, *INDUCTOR, *EXPORTED, *FORMS, *ERRORS, *STEPS, *PIPELINE, *TIERS, *UPDATES, *TORCH,
            "training.seeds", "training.decay_of_all_rows", *INITIAL]
SOME = {
    1: [*TIERS, *UPDATES[2::3], *PIPELINE[1::2], CONVENTIONS[2], INDUCTOR[0], EXPORTED[0], *ERRORS[:2], ERRORS[-1], *STEPS[:4], *TORCH],
    2: [*PIPELINE, *TIERS, *UPDATES, "updates.disagreement", "updates.kept_memory", *FORMS, *ERRORS, *COMPILED, *EXPORTED, *CONVENTIONS[::2], CONVENTIONS[1], *STEPS,
        "torch.operators", "torch.closed", *TORCH[4:], "torch.recomputed", "training.seeds", "training.decay_of_all_rows", *INITIAL, "errors.disagreement",
        "errors.mixed_backwards", "errors.mixed_starts", "errors.mixed_rates", "traffic.frozen_mixed", "steps.other_orders",
        "steps.dropped_on_one_rank", "steps.late", "torch.overlap",
        "trace.overlap", "training.cuts", "training.drift"],
    4: [*RELAYS, *TIERS_IN_GROUPS, "traffic.frozen_updates:groups=2", "updates.same_bits:groups=2", "updates.kept_memory:groups=2", *UPDATES[4:6], *PIPELINE[2:4], *PIPELINE[-4:], ERRORS[0], CONVENTIONS[4], CONVENTIONS[7], "steps.searched", "errors.disagreement",
        "steps.subgroups"],
    8: [CONVENTIONS[6]],
}
OTHERS = {ranks: [*ANYWHERE, *(GROUPS if ranks > 1 else [])] for ranks in SOME} if ALL else SOME
# Headers go by relay, too, from 32 ranks on.
MANY = {32: [case.replace("groups=2", "groups=4") for case in RELAYS]} if ALL else {}
CASES = {ranks: [*drawn(ranks), *OTHERS[ranks]] for ranks in POOLED} | MANY


@pytest.fixture(scope="module")
def runs(request, tmp_path_factory):
    """By number of ranks, the selected cases."""
    folder = tmp_path_factory.mktemp("distributed")
    return {ranks: Ranks(ranks, some, folder,
                         environment={"NEUROSHARD_CACHE": str(folder / "cache")},
                         modules=("neuroshard.distributed", compiler_for(some)))
            for ranks, some in chosen_cases(request, CASES).items()}


def compiler_for(cases):
    """What the cases need of torch's compiler. Importing all of it takes three times as long."""
    return ("torch._inductor.compile_fx" if any("inductor" in case for case in cases)
            else "torch._dynamo")


@pytest.mark.parametrize(("ranks", "case"),
                         [(ranks, case) for ranks, cases in CASES.items() for case in cases])
def test_ranks(runs, ranks, case):
    runs[ranks].check(case)


def test_without_process_group(tmp_path, monkeypatch):
    """One rank needs no torch.distributed; for more the error names what is missing."""
    monkeypatch.setenv("NEUROSHARD_CACHE", str(tmp_path))
    problem, plan = lone(make_problem(1, 1))
    tables = ns.ShardedEmbeddingBagCollection(plan, problem, learning_rate=0.5, threads=2)
    before = [shard.weights.clone() for shard in tables.local_shards()]
    out = tables({name: torch.zeros(3, 2, dtype=torch.int64) for name in tables.features})
    sum(one.float().sum() for one in out.values()).backward()
    assert tables.step == 1
    for old, shard in zip(before, tables.local_shards(), strict=True):
        assert not torch.equal(old[0], shard.weights[0]), shard.table
        assert torch.equal(old[1:], shard.weights[1:]), shard.table
    tables.close()
    two = problem.replace(topology="2xCPU")
    with pytest.raises(ValueError, match="for 2 devices, but the group has 1 rank; torch.distributed "
                       "is not initialised"):
        ns.ShardedEmbeddingBagCollection(ns.plan(two).plan, two, learning_rate=0.5)


@pytest.mark.filterwarnings("error")
def test_schedulers_step_alone():
    """The backward updates, so nobody calls step() of the optimizer inside, and none warns."""
    from neuroshard.distributed._optimizer import FusedOptimizer

    optimizer = FusedOptimizer(0.5, ["a"])
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    schedule.step()
    schedule.step()
    assert optimizer.learning_rates == [0.125]
