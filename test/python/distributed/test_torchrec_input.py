"""Wrong arguments of neuroshard.torchrec: each is refused by its name."""

import re
import warnings
from types import SimpleNamespace

import pytest

pytest.importorskip("torchrec")

import torch
from torch.distributed._shard.sharding_spec import EnumerableShardingSpec, ShardMetadata
from torchrec import (EmbeddingBagCollection, EmbeddingBagConfig, EmbeddingCollection,
                      EmbeddingConfig)
from torchrec.distributed.embedding import EmbeddingCollectionSharder
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner.types import ParameterConstraints, Topology
from torchrec.distributed.types import (EmbeddingModuleShardingPlan, ParameterSharding,
                                        ShardingPlan)

import neuroshard as ns
from neuroshard.torchrec import NeuroShardPlanner, from_torchrec, to_torchrec
from neuroshard.errors import Unsupported

PLAN = ns.Plan(shards=[ns.Shard(table="m.t", rows=(0, 60), cols=(0, 8), devices=3)],
               device_count=4)


def refused(kind, text, work):
    with pytest.raises(kind, match=re.escape(text)) as caught:
        work()
    assert caught.type is kind


@pytest.mark.parametrize(("kind", "text", "arguments"), [
    (ValueError, "local_ranks: expected a divisor of the plan's 4 ranks, as all hosts have as "
     "many; got: -1", {"local_ranks": -1}),
    (ValueError, "got: 0", {"local_ranks": 0}),
    (ValueError, "got: 3", {"local_ranks": 3}),
    (ValueError, "got: 8", {"local_ranks": 8}),
    (TypeError, "local_ranks: expected a whole number, got: 2.0", {"local_ranks": 2.0}),
    (TypeError, "local_ranks: expected a whole number, got: True", {"local_ranks": True}),
    (ValueError, "unpooled: expected paths of the modules ('m'), got: 'n'", {"unpooled": ["n"]}),
    (TypeError, "unpooled: expected a list of texts, got: 'm'", {"unpooled": "m"}),
    (TypeError, "modules: expected the names of each module's tables by its path, got: ['m']",
     {"modules": ["m"]}),
    (TypeError, "modules['m']: expected a list of texts, got: 't'", {"modules": {"m": "t"}}),
    (ValueError, 'device: expected a type of devices without a number, "cuda" or "cpu", got: '
     "'cuda:0'", {"device": "cuda:0"}),
    (ValueError, "device: expected", {"device": "gpu"}),
    (TypeError, "device: expected a type of devices", {"device": None}),
    (TypeError, "plan: expected a neuroshard.Plan, got: None", {"plan": None})])
def test_to_torchrec_refuses(kind, text, arguments):
    arguments = {"plan": PLAN, "modules": {"m": ["t"]}, **arguments}
    refused(kind, text, lambda: to_torchrec(**arguments))


def test_to_torchrec_takes_every_divisor():
    for local in (1, 2, 4, None):
        shard = to_torchrec(PLAN, {"m": ["t"]}, local_ranks=local,
                            unpooled=["m"]).plan["m"]["t"].sharding_spec.shards[0]
        assert str(shard.placement) == f"rank:3/cuda:{3 % (local or 4)}"


def shards(*pieces):
    """A TorchRec plan of table m.t from (offsets, sizes, placement)."""
    spec = EnumerableShardingSpec([ShardMetadata([0, 0], [60, 8], "rank:0/cpu")])
    spec.shards = [SimpleNamespace(shard_offsets=offsets, shard_sizes=sizes, placement=placement)
                   for offsets, sizes, placement in pieces]
    return said(ParameterSharding("table_wise", "fused", [0], spec))


def said(sharding):
    return ShardingPlan({"m": EmbeddingModuleShardingPlan({"t": sharding})})


REPLICATED = ParameterSharding("data_parallel", "dense", [0, 1])
WHOLE = [0, 0], [60, 8]


@pytest.mark.parametrize(("kind", "text", "arguments"), [
    (TypeError, "plan: expected a ShardingPlan of TorchRec, got: None", {"plan": None}),
    (TypeError, 'table "m.t": expected a ParameterSharding of TorchRec, got: None',
     {"plan": said(None)}),
    (ValueError, 'table "m.t", shard 1: its offsets: expected two numbers, of rows and columns, '
     "got: [0]", {"plan": shards((*WHOLE, "rank:0/cpu"), ([0], [60], "rank:0/cpu"))}),
    (ValueError, 'table "m.t", shard 0: its sizes: expected two numbers',
     {"plan": shards(([0, 0], [60, -8], "rank:0/cpu"))}),
    (ValueError, 'table "m.t", shard 0 is on rank 2; expected ranks from 0 to 1, as device_count '
     "is 2", {"plan": shards((*WHOLE, "rank:2/cuda:2"))}),
    (ValueError, "is on rank -1; expected", {"plan": shards((*WHOLE, "rank:-1/cpu"))}),
    (Unsupported, 'table "m.t", shard 0: placement \'None\'; expected rank:N/device',
     {"plan": shards((*WHOLE, None))}),
    (ValueError, 'table "m.t" is on rank 1; expected ranks from 0 to 0',
     {"plan": said(REPLICATED), "device_count": 1}),
    (ValueError, "device_count: expected at least 1, got: 0", {"device_count": 0}),
    (TypeError, "device_count: expected a whole number, got: None", {"device_count": None}),
    (ValueError, 'table "m.t": its rows and dim: expected two numbers',
     {"tables": lambda path, name: (60,)}),
    (TypeError, 'table "m.t": its rows and dim: expected a list of two numbers, got: None',
     {"tables": lambda path, name: None})])
def test_from_torchrec_refuses(kind, text, arguments):
    arguments = {"plan": said(REPLICATED), "tables": lambda path, name: (60, 8),
                 "device_count": 2, **arguments}
    refused(kind, text, lambda: from_torchrec(**arguments))


def model_of(*tables, kind=EmbeddingBagCollection):
    return torch.nn.ModuleDict({"m": kind(device=torch.device("meta"), tables=list(tables))})


def table(name, *features, kind=EmbeddingBagConfig):
    return kind(name=name, num_embeddings=60, embedding_dim=8, feature_names=list(features))


TOPOLOGY = "2xH200"
SHARDERS = [EmbeddingBagCollectionSharder(), EmbeddingCollectionSharder()]
Limits = ParameterConstraints


@pytest.mark.parametrize(("kind", "text", "arguments"), [
    (TypeError, "topology: expected a torchrec.distributed.planner.types.Topology, a neuroshard.Topology, "
     "a text such as \"8xH200\", or None, got: 2", {"topology": 2}),
    (ns.InvalidProblem, "H2000", {"topology": "8xH2000"}),
    (Unsupported, "topology: its hosts have 8, 4 devices", {"topology": "8+4xA100-40GB"}),
    (ValueError, "device_class: A100-40GB, but the topology's devices are H200; leave it out",
     {"topology": "2xH200", "device_class": "A100-40GB"}),
    (ValueError, "topology: None takes the ranks of torch.distributed, which is not initialized",
     {"topology": None}),
    *((TypeError, f"batch_size: expected a whole number, got: {one}", {"batch_size": one})
      for one in (None, 1.5, True)),
    *((ValueError, f"batch_size: expected at least 1, got: {one}", {"batch_size": one})
      for one in (0, -1)),
    (TypeError, "constraints: expected a dict of ParameterConstraints by table, or None, got: []",
     {"constraints": []}),
    (TypeError, "constraints: expected names of tables, got: 1", {"constraints": {1: Limits()}}),
    (TypeError, "constraints['a']: expected a ParameterConstraints, got: None",
     {"constraints": {"a": None}}),
    (TypeError, "constraints['a']: expected a ParameterConstraints, got: 'row_wise'",
     {"constraints": {"a": "row_wise"}}),
    (TypeError, "optimizer: expected an Optimizer, the name of one or None, got: 3",
     {"optimizer": 3}),
    (TypeError, "per_shard_state: expected True or False, got: 'no'", {"per_shard_state": "no"}),
    (TypeError, "reserves: expected a Reserves, got: 5", {"reserves": 5}),
    (ValueError, "device_class: expected one of ", {"device_class": "H2000"})])
def test_planner_refuses(kind, text, arguments):
    arguments = {"topology": TOPOLOGY, **arguments}
    refused(kind, text, lambda: NeuroShardPlanner(**arguments))


@pytest.mark.parametrize(("kind", "text", "limits"), [
    (TypeError, "min_partition: expected a whole number, got: 'x'", {"min_partition": "x"}),
    (ValueError, "min_partition: expected at least 1, got: 0", {"min_partition": 0}),
    (TypeError, "pooling_factors: expected a list of numbers, got: 5.0", {"pooling_factors": 5.0}),
    (TypeError, "pooling_factors[0]: expected a number, got: 'x'", {"pooling_factors": ["x"]}),
    (ValueError, "pooling_factors[1]: expected a finite number", {"pooling_factors": [
        1.0, float("nan")]}),
    (ValueError, "num_poolings[0]: expected at least 0, got: -1", {"num_poolings": [-1]}),
    (TypeError, "sharding_types: expected a list of texts, got: 'row_wise'",
     {"sharding_types": "row_wise"}),
    (ValueError, "sharding_types: expected some of column_wise, data_parallel, ",
     {"sharding_types": ["rowwise"]}),
    (ValueError, "compute_kernels: expected some of ", {"compute_kernels": ["fusedd"]}),
    (TypeError, "batch_sizes[0]: expected a whole number, got: 0.5", {"batch_sizes": [.5]}),
    (ValueError, "batch_sizes[0]: expected at least 1, got: 0", {"batch_sizes": [0]}),
    (TypeError, "is_weighted: expected True, False or None, got: 'yes'", {"is_weighted": "yes"})])
def test_constraints_are_refused(kind, text, limits):
    refused(kind, f"constraints['a'].{text}",
            lambda: NeuroShardPlanner(TOPOLOGY, constraints={"a": Limits(**limits)}))


@pytest.mark.parametrize(("kind", "text", "sharders"), [
    (ValueError, "sharders: expected at least one of TorchRec's sharders", []),
    (TypeError, "sharders: expected a list of TorchRec's sharders, got: None", None),
    (TypeError, "sharders[0]: expected one of TorchRec's sharders, EmbeddingBagCollectionSharder() "
     "for instance, got: None", [None]),
    (TypeError, "sharders[1]: expected a sharder, got the class; EmbeddingBagCollectionSharder() "
     "makes one", [SHARDERS[0], EmbeddingBagCollectionSharder])])
def test_sharders_are_refused(kind, text, sharders):
    planner = NeuroShardPlanner(TOPOLOGY, progress=False)
    refused(kind, text, lambda: planner.plan(model_of(table("t", "f")), sharders))


def test_topologies_of_neuroshard():
    """A text and what it stands for plan as the Topology of TorchRec with the same numbers."""
    text = "2x2xA100-40GB"
    ours = ns.Topology.parse(text)
    outer, inner = (level.bandwidth_gb_per_s * 1e6 for level in ours.levels)
    theirs = Topology(4, "cuda", local_world_size=2, hbm_cap=ours.devices[0].memory_bytes,
                      ddr_cap=ours.hosts[0].memory_bytes // 2, intra_host_bw=inner, inter_host_bw=outer)
    model, problems, plans = model_of(table("t", "f"), table("u", "f", "g")), [], []
    for given, rest in ((text, {}), (ours, {}), (theirs, {"device_class": "A100-40GB"})):
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            planner = NeuroShardPlanner(given, batch_size=8, progress=False, **rest)
        plans.append(planner.plan(model, SHARDERS))
        problems.append(planner.problem)
    assert problems[0] == problems[1] and problems[0].topology == ours
    assert problems[2].topology.levels == ours.levels
    assert {str(one) for one in plans} == {str(plans[0])}


def test_defaults_of_a_topology_that_its_devices_do_not_have():
    with pytest.warns(UserWarning, match=r"hbm_cap \(32.0 GiB; usual 1\d\d.\d\), .*\"2x2xH200\" in place of it"):
        NeuroShardPlanner(Topology(4, "cuda", local_world_size=2))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        NeuroShardPlanner(Topology(4, "cpu", local_world_size=2))


def test_other_misuse_of_a_planner():
    planner = NeuroShardPlanner(TOPOLOGY, progress=False)
    refused(TypeError, "module: expected a torch.nn.Module, got: 'm'",
            lambda: planner.plan("m", SHARDERS))
    refused(ValueError, "collective_plan: torch.distributed is not initialized",
            lambda: planner.collective_plan(model_of(table("t", "f")), SHARDERS))


@pytest.mark.parametrize("kinds", [(EmbeddingBagConfig, EmbeddingBagCollection),
                                   (EmbeddingConfig, EmbeddingCollection)])
def test_a_table_that_reads_a_feature_twice_is_refused(kinds):
    config, collection = kinds
    model = model_of(table("t", "f", "g", "f", kind=config), kind=collection)
    refused(Unsupported, 'table "m.t": it reads feature "f" twice, which TorchRec runs wrong',
            lambda: NeuroShardPlanner(TOPOLOGY, progress=False).plan(model, SHARDERS))


def test_features_of_one_name():
    """In two modules, in two tables, and with the slash that joins table and name."""
    model = model_of(table("t", "g/f"), table("t/g", "f"), table("u", "f"))
    model["n"] = model_of(table("t", "f"))["m"]
    planner = NeuroShardPlanner(TOPOLOGY, progress=False)
    plan = planner.plan(model, SHARDERS)
    assert [one.name for one in planner.problem.features] == [
        "m.t/g/f", "m.t/g/f (2)", "m.u/f", "n.t/f"]
    assert {path: set(tables) for path, tables in plan.plan.items()} == {
        "m": {"t", "t/g", "u"}, "n": {"t"}}
