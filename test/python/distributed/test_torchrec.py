"""TorchRec runs our plans: a sample of 300 searched ones on 2 and 4 ranks. Plans that it would
compute wrong results with are refused before anything is built."""

import pytest

pytest.importorskip("torchrec")

import torch
from fbgemm_gpu.split_embedding_configs import EmbOptimType
from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
    CounterBasedRegularizationDefinition, CounterWeightDecayMode, LearningRateMode, WeightDecayMode)
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner.types import ParameterConstraints, Topology
from torchrec.modules.mc_embedding_modules import ManagedCollisionEmbeddingBagCollection
from torchrec.modules.mc_modules import LFU_EvictionPolicy, ManagedCollisionCollection, MCHManagedCollisionModule
from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward

import neuroshard as ns
from neuroshard.torchrec import NeuroShardPlanner, counter_optimizer, to_torchrec
from neuroshard.errors import Unsupported
from neuroshard.torchrec._sharding_types import Cluster, allowed_kinds, can_be_cut
from neuroshard._torchrec_plans import sharding_of
from support import matrix
from support.ranks import Ranks

CASES = {ranks: [*(f"torchrec.plan:number={one}" for one in matrix.sample(
    range(first, first + 150), count, f"torchrec {ranks}")), "torchrec.refused",
    "torchrec.other_ranks"]
    for ranks, first, count in ((2, 0, 4), (4, 150, 2))}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("torchrec")
    return {ranks: Ranks(ranks, cases, folder, modules=("neuroshard.torchrec",
                                                        "torchrec.distributed"))
            for ranks, cases in CASES.items()}


@pytest.mark.parametrize(("ranks", "case"),
                         [(ranks, case) for ranks, cases in CASES.items() for case in cases])
def test_ranks(runs, ranks, case):
    runs[ranks].check(case)


def shard(rows, cols, rank):
    return ns.Shard(table="m.t", rows=rows, cols=cols, devices=rank)


def plan_of(*shards):
    return ns.Plan(shards=shards, device_count=4)


def test_refuses_uneven_rows():
    plan = plan_of(*(shard(rows, (0, 8), rank) for rank, rows in enumerate(
        ((0, 10), (10, 30), (30, 50), (50, 60)))))
    with pytest.raises(Unsupported, match=r'table "m.t": TorchRec cuts rows into blocks of '
                       r'ceil\(rows / ranks\).*found 4 blocks on ranks \[0, 1, 2, 3\]'):
        to_torchrec(plan, {"m": ["t"]})


def test_refuses_rows_on_other_ranks():
    plan = plan_of(*(shard((15 * one, 15 * one + 15), (0, 8), rank)
                     for one, rank in enumerate((1, 0, 2, 3))))
    with pytest.raises(Unsupported, match=r"on ranks \[1, 0, 2, 3\]"):
        to_torchrec(plan, {"m": ["t"]})


def test_refuses_a_group_over_two_hosts():
    plan = plan_of(shard((0, 30), (0, 8), 1), shard((30, 60), (0, 8), 2))
    with pytest.raises(Unsupported, match=r"over one host; found 2 blocks on ranks \[1, 2\]"):
        to_torchrec(plan, {"m": ["t"]}, local_ranks=2)


def test_takes_a_group_of_one_host():
    plan = plan_of(shard((0, 30), (0, 8), 2), shard((30, 60), (0, 8), 3))
    sharding = to_torchrec(plan, {"m": ["t"]}, local_ranks=2).plan["m"]["t"]
    assert sharding.sharding_type == "table_row_wise"
    assert [str(one.placement) for one in sharding.sharding_spec.shards] == [
        "rank:2/cuda:0", "rank:3/cuda:1"]


def test_refuses_width_6():
    plan = plan_of(shard((0, 60), (0, 6), 0), shard((0, 60), (6, 12), 1))
    with pytest.raises(Unsupported, match="multiples of 4, shard .* has 6 columns"):
        to_torchrec(plan, {"m": ["t"]})


def test_refuses_rows_and_columns():
    plan = plan_of(shard((0, 30), (0, 8), 0), shard((30, 60), (0, 8), 1),
                   shard((0, 60), (8, 16), 2))
    with pytest.raises(Unsupported, match="cut by rows and by columns"):
        to_torchrec(plan, {"m": ["t"]})


@pytest.mark.parametrize("devices", [(0, 2), (1, 2, 3)])
def test_refuses_copies_on_some_ranks(devices):
    plan = plan_of(shard((0, 60), (0, 8), devices))
    with pytest.raises(Unsupported, match="copies of whole tables on all ranks alone"):
        to_torchrec(plan, {"m": ["t"]})


def test_refuses_copies_of_rows():
    plan = plan_of(shard((0, 30), (0, 8), (0, 1, 2, 3)), shard((30, 60), (0, 8), 1))
    with pytest.raises(Unsupported, match="copies of whole tables on all ranks alone"):
        to_torchrec(plan, {"m": ["t"]})


def test_refuses_missing_and_unknown_tables():
    plan = plan_of(shard((0, 60), (0, 8), 0))
    with pytest.raises(Unsupported, match='no table "m.u", but the model does'):
        to_torchrec(plan, {"m": ["t", "u"]})
    with pytest.raises(Unsupported, match='a table "m.t", but the model does not'):
        to_torchrec(plan, {"m": []})


def test_refuses_two_widths_on_a_rank():
    """TorchRec would read both as rows of the first one's width."""
    plan = plan_of(shard((0, 60), (0, 8), 1), shard((0, 60), (8, 12), 2),
                   shard((0, 60), (12, 16), 1))
    with pytest.raises(Unsupported, match='table "m.t": TorchRec needs one width for all column '
                       'shards of a table on one rank; rank 1 has 8 and 4 columns'):
        to_torchrec(plan, {"m": ["t"]})


def test_refuses_two_widths_in_an_embedding_collection():
    """All its column shards travel in one exchange of rows of one width."""
    halves = [ns.Shard(table="m.u", rows=(0, 60), cols=(8 * one, 8 * one + 8), devices=one)
              for one in (0, 1)]
    quarters = [shard((0, 60), (4 * one, 4 * one + 4), one) for one in range(4)]
    plan = plan_of(*halves, *quarters)
    assert to_torchrec(plan, {"m": ["t", "u"]}).plan["m"]["u"].sharding_type == "column_wise"
    with pytest.raises(Unsupported, match='module "m": TorchRec needs one width for all column '
                       'shards of an EmbeddingCollection; "t" has 4 and "u" 8 columns'):
        to_torchrec(plan, {"m": ["t", "u"]}, unpooled=["m"])


def test_two_rows_on_a_host_are_of_that_host_on_the_cpu():
    """Row-wise over all ranks, two of them would have no rows."""
    plan = plan_of(shard((0, 1), (0, 4), 0), shard((1, 2), (0, 4), 1))
    kinds = [to_torchrec(plan, {"m": ["t"]}, device=device, local_ranks=2).plan["m"]["t"]
             .sharding_type for device in ("cpu", "cuda")]
    assert kinds == ["table_row_wise", "row_wise"]


FEW_ROWS = [shard((0, 2), (0, 4), 0), shard((2, 4), (0, 4), 1), shard((4, 5), (0, 4), 2)]


def test_refuses_ranks_without_rows_on_the_cpu():
    with pytest.raises(Unsupported, match='table "m.t": its 5 rows leave some of the ranks '
                       'that it is cut over without rows, and TorchRec computes wrong results '
                       'for such plans on the CPU'):
        to_torchrec(plan_of(*FEW_ROWS), {"m": ["t"]}, device="cpu")


def test_lists_ranks_whose_rows_have_run_out():
    """5 rows on 4 ranks: blocks of 2, 2, 1 and none."""
    sharding = sharding_of(FEW_ROWS, 4, 4, "cuda")
    assert sharding.sharding_type == "row_wise" and sharding.ranks == [0, 1, 2, 3]
    assert [one.shard_sizes for one in sharding.sharding_spec.shards] == [
        [2, 4], [2, 4], [1, 4], [0, 4]]


def test_plan_has_the_methods():
    plan = plan_of(shard((0, 60), (0, 8), 3))
    theirs = plan.to_torchrec({"m": ["t"]}, device="cpu")
    assert theirs.plan["m"]["t"].sharding_type == "table_wise"
    back = ns.Plan.from_torchrec(theirs, lambda path, name: (60, 8), 4)
    assert [(one.table, one.rows, one.cols, one.devices) for one in back.shards] == [
        ("m.t", (0, 60), (0, 8), (3,))]
    assert back.optimizer_semantics == "exact"


def test_column_shards_keep_a_state_each():
    theirs = plan_of(shard((0, 60), (0, 8), 0), shard((0, 60), (8, 16), 1)).to_torchrec(
        {"m": ["t"]})

    def back(**options):
        return ns.Plan.from_torchrec(theirs, lambda path, name: (60, 16), 4,
                                     **options).optimizer_semantics

    assert back() == "per_shard" and back(optimizer_semantics="exact") == "exact"


class Sharder:
    """The interface of TorchRec's sharders that allowed_kinds uses."""

    def sharding_types(self, device):
        return ["data_parallel", "table_wise", "column_wise", "row_wise"]


def kinds(pooling, **limits):
    return allowed_kinds("t", pooling, Sharder(), ParameterConstraints(**limits), "cpu")


def test_replicates_only_what_asks_for_it():
    """The fused optimizer does not update replicated tables."""
    assert kinds("sum") == ["column_wise", "row_wise", "table_wise"]
    assert kinds("sum", sharding_types=["data_parallel", "table_wise"]) == ["replicated",
                                                                           "table_wise"]
    assert kinds("sum", compute_kernels=["fused"]) == ["column_wise", "row_wise", "table_wise"]


def test_names_what_torchrec_runs_right():
    assert kinds("mean") == ["column_wise", "table_wise"]
    with pytest.raises(Unsupported, match=r'table "t" \(pooling mean\): of the sharding types '
                       r"\['row_wise'\] TorchRec runs none right; it runs data_parallel, "
                       "table_wise, column_wise, table_column_wise$"):
        kinds("mean", sharding_types=["row_wise"])


def piece(rows, dim, kinds, min_width=4, ranks=2, local=None, device="cpu",
          pooled=True):
    config = EmbeddingBagConfig(name="t", num_embeddings=rows, embedding_dim=dim)
    return can_be_cut(config, kinds, min_width, Cluster(ranks, local or ranks, device), pooled)


def test_a_table_too_small_to_be_cut_stays_whole():
    """TorchRec still calls it column-wise or row-wise."""
    assert piece(10, 8, ["column_wise"]) and piece(10, 16, ["column_wise"], 8)
    assert not piece(10, 8, ["column_wise"], 8)
    assert not piece(10, 12, ["column_wise"], 6)  # two shards of 8 columns need 16
    assert piece(2, 4, ["row_wise"]) and piece(2, 4, ["table_row_wise"])
    assert not piece(1, 8, ["row_wise"]) and not piece(10, 8, ["row_wise"], ranks=1)
    assert piece(1, 4, ["row_wise", "replicated"])
    # A rank alone has shards of one width: 8 + 12 columns are none.
    assert piece(10, 20, ["column_wise"], 8) and not piece(10, 20, ["column_wise"], 8, ranks=1)
    assert piece(10, 24, ["column_wise"], 8, ranks=1)


def test_tables_without_pooling_go_in_halves():
    assert piece(10, 16, ["column_wise"], 8, pooled=False)
    assert not piece(10, 20, ["column_wise"], pooled=False)
    assert not piece(10, 24, ["column_wise"], 16, pooled=False)


def test_a_table_with_rows_for_some_ranks_only_stays_whole_on_the_cpu():
    """9 rows on 4 ranks: blocks of 3, 3, 3 and none."""
    assert not piece(9, 8, ["row_wise"], ranks=4) and piece(10, 8, ["row_wise"], ranks=4)
    assert piece(9, 8, ["row_wise"], ranks=4, device="cuda")
    assert not piece(2, 8, ["row_wise"], ranks=4, local=2, device="cuda")
    assert piece(3, 8, ["table_row_wise"], ranks=4, local=2)
    assert not piece(9, 8, ["table_row_wise"], ranks=8, local=4)


def rowwise_planner(kinds, **options):
    """Of one table with row-wise Adagrad on 2 hosts of 2 GPUs, its model and sharders."""
    collection = EmbeddingBagCollection(device="meta", tables=[EmbeddingBagConfig(
        name="t", num_embeddings=1000, embedding_dim=64, feature_names=["f"])])
    sharder = EmbeddingBagCollectionSharder(
        fused_params={"optimizer": EmbOptimType.EXACT_ROWWISE_ADAGRAD})
    planner = NeuroShardPlanner(
        Topology(4, "cuda", local_world_size=2, hbm_cap=60 << 30), batch_size=8,
        constraints={"t": ParameterConstraints(sharding_types=kinds)}, **options)
    return planner, torch.nn.ModuleDict({"tables": collection}), [sharder]


@pytest.mark.parametrize("mode", [WeightDecayMode.COUNTER, WeightDecayMode.COWCLIP])
def test_states_of_counters_are_counted(mode):
    """FBGEMM keeps prev_iter and row_counter beside the sum, 4 bytes a row each."""
    def states(**params):
        planner, model, [sharder] = rowwise_planner(["table_wise"])
        sharder.fused_params.update(params)
        planner.plan(model, [sharder])
        return planner.problem.tables[0].optimizer.kind, [
            one.optimizer_state_bytes for one in planner.result.memory.devices]
    kind, plain = states()
    counted_kind, counted = states(weight_decay_mode=mode)
    assert (kind, counted_kind) == ("rowwise_adagrad", "rowwise_adagrad_with_counter")
    assert sum(counted) - sum(plain) == 2 * 4 * 1000


def test_counters_as_fbgemm_defines_them():
    definition = CounterBasedRegularizationDefinition(
        CounterWeightDecayMode.ADAGRADW, counter_halflife=5, adjustment_iter=7, adjustment_ub=0.5)
    assert counter_optimizer(definition, weight_decay=0.1, eps=1e-4) == ns.Optimizer(
        "rowwise_adagrad_with_counter", eps=1e-4, weight_decay=0.1, weight_decay_mode="adagradw",
        counter_halflife=5, adjustment_iter=7, adjustment_ub=0.5)
    for mode in (LearningRateMode.TAIL_ID_LR_DECREASE, LearningRateMode.COUNTER_SGD):
        with pytest.raises(Unsupported, match=f"counter_based_regularization: learning_rate_mode {mode.name}"):
            counter_optimizer(CounterBasedRegularizationDefinition(learning_rate_mode=mode))


def test_column_cuts_with_rowwise_optimizers_are_asked_for():
    planner, model, sharders = rowwise_planner(["column_wise"])
    with pytest.raises(ns.PlanningError, match="per_shard_state=True allows column cuts"):
        planner.plan(model, sharders)
    planner, model, sharders = rowwise_planner(["column_wise"], per_shard_state=True)
    with pytest.warns(UserWarning, match="train differently than whole ones: tables.t"):
        plan = planner.plan(model, sharders)
    assert plan.plan["tables"]["t"].sharding_type == "column_wise"


def test_table_row_wise_is_over_one_host():
    planner, model, sharders = rowwise_planner(["table_row_wise"])
    sharding = planner.plan(model, sharders).plan["tables"]["t"]
    assert sharding.sharding_type == "table_row_wise"
    assert sharding.ranks in ([0, 1], [2, 3])
    assert [one.shard_sizes for one in sharding.sharding_spec.shards] == [[500, 64]] * 2
    topology = planner.problem.topology
    assert [one.host for one in topology.devices] == [0, 0, 1, 1]
    assert {one.memory_bytes for one in topology.devices} == {60 << 30}
    ours = ns.Topology.parse("2x2xH200").levels
    assert [(one.name, one.groups, one.latency_us) for one in topology.levels] == [
        (one.name, one.groups, one.latency_us) for one in ours]


def of_one_table(device="meta", **config):
    return EmbeddingBagCollection(device=torch.device(device), tables=[EmbeddingBagConfig(**{
        "name": "t", "num_embeddings": 10, "embedding_dim": 4, "feature_names": ["f"], **config})])


def test_problem_of_leaves_nothing_out_in_silence():
    """Optimizers that were applied in the backward, tables without gradients, managed collisions, virtual tables."""
    def problem(model, **options):
        return ns.distributed.problem_of(model, batch=8, topology="1xCPU", **options)

    applied = torch.nn.ModuleDict({"bags": of_one_table("cpu")})
    apply_optimizer_in_backward(torch.optim.Adagrad, applied.parameters(), {"lr": 0.1})
    model = torch.nn.Sequential(applied)
    with pytest.raises(ValueError, match=r"0.bags.embedding_bags.t.weight: .* in its backward \(Adagrad\).*optimizer="):
        problem(model)
    assert problem(model, optimizer="adagrad").tables[0].optimizer.kind == "adagrad"
    assert problem(of_one_table()).tables[0].optimizer.kind == "sgd"
    bag = torch.nn.EmbeddingBag(5, 4).requires_grad_(False)
    for frozen in ({"bag": bag}, torch.nn.Sequential(of_one_table().requires_grad_(False))):
        with pytest.warns(UserWarning, match=r"problem_of: .*weight of the model asks for no gradient, but .*freeze\(\)"):
            problem(frozen)
    with pytest.raises(ValueError, match="t: use_virtual_table cannot be sharded"):
        problem(of_one_table(use_virtual_table=True))
    inner = of_one_table("cpu")
    managed = ManagedCollisionEmbeddingBagCollection(inner, ManagedCollisionCollection({"t": MCHManagedCollisionModule(
        zch_size=10, device=torch.device("cpu"), eviction_policy=LFU_EvictionPolicy(), eviction_interval=1,
        input_hash_size=1000)}, inner.embedding_bag_configs()))
    for given, path in ((managed, "ManagedCollisionEmbeddingBagCollection"), (torch.nn.Sequential(managed), "0")):
        with pytest.raises(ValueError, match=f"{path}: managed collisions cannot be sharded; .* dynamic_ids="):
            problem(given)


def test_problem_of_modules_by_other_names_than_texts():
    with pytest.raises(TypeError, match="a name among the modules: expected a text, the name of a feature, got: 3"):
        ns.distributed.problem_of({3: torch.nn.EmbeddingBag(5, 4)}, batch=8, topology="1xCPU")


def test_problem_of_a_feature_that_two_tables_read():
    """Features have the names of TorchRec's results, and each table's own pooling or a common
    one."""
    collection = EmbeddingBagCollection(device="meta", tables=[
        EmbeddingBagConfig(name=name, num_embeddings=10, embedding_dim=4,
                           feature_names=["clicked"]) for name in ("item", "page")])
    problem = ns.distributed.problem_of(collection, batch=8, topology="1xCPU",
                                        mean_pooling={"clicked": 7, "clicked@page": 3})
    assert [(one.name, one.table, one.mean_pooling) for one in problem.features] == [
        ("clicked@item", "item", 7), ("clicked@page", "page", 3)]
    with pytest.raises(ValueError, match=r"there is no feature 'bought'; expected some of clicked@item, clicked@page"):
        ns.distributed.problem_of(collection, batch=8, topology="1xCPU",
                                  mean_pooling={"bought": 1})
