"""Cases: models whose collections have one step with batches of any size, checkpoints, pipelines and torch's
machinery, and what is refused."""

import gc
import warnings
import weakref

import torch
import torch.distributed as dist
import torch.utils.checkpoint
from torchrec import EmbeddingBagCollection, KeyedJaggedTensor
from torchrec.distributed import TrainPipelineSparseDist
from torchrec.streamable import Pipelineable

import neuroshard as ns
from distributed_context import raises
from neuroshard.errors import TensorError
from shard_model_models import (PATHS, RATE, Batch, Collections, assert_same_tables, filled, plan_of, problem_of,
                                separate_of, sharded_of, starts_of)
from support.torchrec_models import SAMPLES, loss_of


def case_batches(context):
    """Collections with batches of different sizes, also empty ones."""
    model, views, _, _ = sharded_of(context)
    plain = filled(context, model)

    def keyed(keys, sizes, rows, weighted=False):
        lengths = torch.tensor([one for size in sizes for one in [2] * size], dtype=torch.int32)
        count = int(lengths.sum())
        return KeyedJaggedTensor(keys, torch.arange(count) % rows, lengths=lengths,
                                 weights=torch.ones(count) / 2 if weighted else None)

    for bags, weighted, rows in ((4, 4, 4), (4, 2, 6), (0, 3, 2), (3, 0, 0), (0, 0, 0)):
        size = context.rank + 1 if bags else 0
        ids = (keyed(["f0", "f1"], [bags * size] * 2, 30),
               Batch({"weighted": keyed(["f0"], [weighted], 40, True)}, (keyed(["f0"], [rows], 20),)))
        outputs = model(*ids)
        torch.testing.assert_close(outputs, plain(*ids), atol=1e-6, rtol=1e-6)
        sum(one.sum() for one in outputs.values()).backward()
        model.load_state_dict(plain.state_dict(), strict=False)


def case_recomputed(context):
    """A collection whose results are computed again in the backward, in the step of all."""
    found = []
    for checkpointed in (False, True):
        model, views, _, _ = sharded_of(context, optimizer="adam")
        filled(context, model)
        drawer, generator = Collections(torch.device("cpu")), context.generator("ids")
        starts = starts_of(views["bags"].tables)
        if checkpointed:
            bags = model.bags.forward
            model.bags.forward = lambda ids, bags=bags: Scaled(torch.utils.checkpoint.checkpoint(
                lambda one: bags(one).values().tanh(), ids, use_reentrant=False))
        else:
            bags = model.bags.forward
            model.bags.forward = lambda ids, bags=bags: Scaled(bags(ids).values().tanh())
        for step in range(3):
            ids = [drawer.draw(generator) for _ in range(context.size)][context.rank]
            loss_of(model(*ids)).backward()
        found.append([one.weights.clone() for view in views.values() for one in view.local_shards()])
        assert views["bags"].step == 3
        assert checkpointed or len(starts) == 5
    assert all(map(torch.equal, *found))


class Scaled:
    def __init__(self, values):
        self._values = values

    def to_dict(self):
        return {"all": self._values}


def case_second_backward(context):
    """A second backward of the results of one forward is an error that says what to do; steps of their own
    allow it."""
    model, views, _, _ = sharded_of(context, one_step=False)
    plain = filled(context, model)
    ids = plain.draw(context.generator(f"{context.rank}"))
    for _ in range(2):
        outputs = model(*ids)
        for name in ("bags", "rows"):
            sum(one.sum() for key, one in outputs.items() if key.startswith(name)).backward()
    assert views["bags"].step == 4
    model, views, _, _ = sharded_of(context)
    model(*ids)
    outputs = model(*ids)
    sum(one.sum() for key, one in outputs.items() if key.startswith("bags")).backward()
    raises(TensorError, "rows: a second backward of one forward", lambda: sum(
        one.sum() for key, one in outputs.items() if key.startswith("rows")).backward())


def case_refused(context):
    """What does not fit is an error on all ranks, and the model stays as it was."""
    model = Collections(torch.device("meta"))
    problem = problem_of(Collections(torch.device("meta")), context.size)
    plan = ns.distributed.plan(problem)

    def shard(model=model, problem=problem, **options):
        return ns.distributed.shard_model(model, plan, problem, **{"learning_rate": RATE, **options})

    fewer = problem.replace(tables=problem.tables[1:], features=[
        one for one in problem.features if one.table != "bags.t0"])
    raises(ValueError, 'table "bags.t0" is in the model only', lambda: shard(problem=fewer))
    larger = problem.replace(tables=[one.replace(rows=one.rows + 1) for one in problem.tables])
    raises(ValueError, 'table "bags.t0" has 50 rows of 8 in the model, and 51 of 8 in the problem',
           lambda: shard(problem=larger))
    renamed = problem.replace(features=[one.replace(name=f"{one.name}x") for one in problem.features])
    raises(ValueError, 'feature "bags/f0" is in the model only', lambda: shard(problem=renamed))
    raises(ValueError, "expected a model with its tables in", lambda: shard(model=model.bags))
    model.single = torch.nn.EmbeddingBag(9, 4)
    raises(ValueError, "found single modules (single)", lambda: shard())
    raises(ValueError, "mean_pooling: there is no feature 'f9'", lambda: ns.distributed.problem_of(
        model, batch=8, topology="2xCPU", mean_pooling={"f9": 1}))
    raises(ValueError, "no feature 'bags/f00'; did you mean 'bags/f0'?", lambda: ns.distributed.problem_of(
        model, batch=8, topology="2xCPU", mean_pooling={"bags/f00": 1}))
    raises(TypeError, "a Linear without tables", lambda: ns.distributed.problem_of(
        torch.nn.Linear(2, 2), batch=8, topology="2xCPU"))
    del model.single
    for options in ({"learning_rate": [{"tables": ["t9"], "lr": 1}]}, {"initial_values": {"t9": None}}):
        raises(ValueError, "expected tables of bags.t0, bags.t1, inner.weighted.t0, rows.t0, found 't9'",
               lambda options=options: shard(**options))
    # An error of one rank reaches the others.
    kind = ValueError if context.rank == 0 else ns.distributed.GroupError
    raises(kind, "in the problem", lambda: shard(problem=larger if context.rank == 0 else problem))
    raises(ns.distributed.GroupError, "another one_step than rank 0", lambda: shard(one_step=context.rank > 0))
    assert isinstance(model.bags, EmbeddingBagCollection)
    # Weights that are lost are told of, once.
    for device, told in (("meta", []), ("cpu", ["bags, inner.weighted, rows"] if context.rank == 0 else [])):
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            context.modules.append(shard(model=Collections(torch.device(device)))["bags"])
        found = [str(one.message) for one in given if "are not taken" in str(one.message)]
        assert len(found) == len(told) and all(map(str.__contains__, found, told)), found
    # The order of features is the caller's.
    views = shard(problem=problem.replace(features=list(reversed(problem.features))))
    context.modules.append(views["bags"])
    raises(TypeError, "whose tables are sharded already", lambda: shard())
    raises(AttributeError, "the module at \"bags\" has no 'reshard' of its own", lambda: views["bags"].reshard)
    raises(AttributeError, "has no attribute 'nothing'", lambda: views["bags"].nothing)
    raises(ValueError, 'table "bags.t0" is in the modules only', lambda: ns.distributed.reshard_model(
        views, plan, fewer))
    raises(TensorError, "expected collections of bags, inner.weighted, rows, found 'else'",
           lambda: views["bags"].tables({"else": None}))


def case_init_functions(context):
    """Tables begin by the functions of their configs, or by those of the caller; state dicts have the names of the
    unsharded model's."""
    model, views, _, _ = sharded_of(context, initial_values={"rows.t0": torch.nn.init.ones_})
    for path, value in (("inner.weighted", 0.5), ("rows", 1)):
        assert all((one.weights == value).all() for one in views[path].local_shards())
    names = set(Collections(torch.device("meta")).state_dict())
    assert names == {one for one in model.state_dict() if one.endswith("weight")}
    assert {one for one in model.state_dict() if not one.endswith("weight")} == {
        f"{path}.{name}" for path in PATHS for name in ("step", "learning_rate")}
    assert [one.name for one in views["rows"].problem.tables] == ["t0"] and views["rows"].features == ("f0",)


def case_compiled(context):
    """A compiled model has steps for each collection, and one update."""
    model, views, _, _ = sharded_of(context)
    plain = filled(context, model)
    ids = plain.draw(context.generator(f"{context.rank}"))
    dense = torch.nn.Linear(8, 3)
    compiled = torch.compile(dense, backend="aot_eager")
    for _ in range(2):
        compiled(model(*ids)["bags f0"]).sum().backward()
    assert views["bags"].step == 2
    whole = torch.compile(model, backend="eager")
    model.load_state_dict(plain.state_dict(), strict=False)
    outputs = whole(*ids)
    torch.testing.assert_close(outputs, plain(*ids), atol=1e-6, rtol=1e-6)
    loss_of(outputs).backward()
    assert views["bags"].step == 3


class Ranking(torch.nn.Module):
    """Collections and a dense part, with the loss; torch.fx can trace it."""

    def __init__(self, collections):
        super().__init__()
        self.bags, self.weighted, self.rows = collections.bags, collections.inner["weighted"], collections.rows
        self.top = torch.nn.Linear(28, 1)

    def forward(self, batch):
        rows = self.rows(batch.rows[0])["f0"].values()
        weighted = self.weighted(batch.more["weighted"]).values()
        loss = self.top(self.bags(batch.bags).values()).square().mean() + rows.square().sum() + weighted.square().sum()
        return loss, loss.detach()


class Whole(Pipelineable):
    def __init__(self, bags, batch):
        self.more, self.rows, self.bags = batch.more, batch.rows, bags

    def to(self, device, non_blocking=False):
        return self

    def record_stream(self, stream):
        pass


def case_pipeline(context):
    """pipeline() with the views, and TorchRec's, train as a plain loop; a pipeline sends the ids of all collections
    of the next batch ahead."""
    drawer, generator = Collections(torch.device("cpu")), context.generator("ids")
    batches = [[Whole(*drawer.draw(generator)) for _ in range(context.size)][context.rank] for _ in range(5)]
    found = []
    for kind in ("plain", "own", "torchrec", "data parallel"):
        model = Ranking(Collections(torch.device("meta")))
        model.top.to_empty(device="cpu")
        torch.nn.init.ones_(model.top.weight), torch.nn.init.ones_(model.top.bias)
        problem = ns.distributed.problem_of(model, batch=SAMPLES * context.size, topology=f"{context.size}xCPU@4GiB",
                                            optimizer="adam")
        views = ns.distributed.shard_model(model, ns.distributed.plan(problem), problem, learning_rate=RATE, threads=1)
        context.modules.append(views["bags"])
        dense = torch.optim.SGD(model.top.parameters(), 0.1)
        starts = starts_of(views["bags"].tables)
        if kind == "torchrec":
            theirs, loader = TrainPipelineSparseDist(model, dense, torch.device("cpu")), iter(batches)
            for _ in batches:
                theirs.progress(loader)
        else:
            loop = ns.distributed.pipeline(batches, {
                views["bags"]: lambda one: one.bags, views["weighted"]: lambda one: one.more["weighted"],
                views["rows"]: lambda one: one.rows[0]}) if kind == "own" else batches
            called = torch.nn.parallel.DistributedDataParallel(model) if kind == "data parallel" else model
            for batch in loop:
                dense.zero_grad()
                called(batch)[0].backward()
                dense.step()
        assert views["bags"].step == 5
        if kind == "own":
            assert len(starts) == 5, len(starts)
        found.append([one.weights.clone() for view in views.values() for one in view.local_shards()])
    assert all(map(torch.equal, found[0], found[1])) and all(map(torch.equal, found[0], found[2]))


def case_checkpoints(context):
    """Checkpoints have the names of before, load under another plan, and models move to another plan."""
    model, views, _, _ = sharded_of(context, optimizer="adam")
    other, modules = separate_of(context, views)
    plain = Collections(torch.device("cpu"))
    ids = plain.draw(context.generator(f"{context.rank}"))
    for one in (model, other):
        loss_of(one(*ids)).backward()
    assert list(model.state_dict()) == list(other.state_dict())
    path = context.folder / "separate"
    ns.distributed.save(path, {"model": other})
    loss_of(model(*ids)).backward()
    ns.distributed.load(path, {"model": model})
    assert_same_tables(views, modules)
    assert views["bags"].step == 1
    before = ns.distributed.full_state_dict(model, rank=0)
    plan, problem = plan_of(context, "table_wise", optimizer="adam")
    moved = ns.distributed.reshard_model(views, plan, problem)
    assert isinstance(moved, ns.distributed.Resharded)
    after = ns.distributed.full_state_dict(model, rank=0)
    assert before.keys() == after.keys() and all(torch.equal(before[key], after[key]) for key in before)
    assert {f"{path}.{shard.table}" for path, one in views.items() for shard in one.plan.shards} == {
        shard.table for shard in plan.shards}
    torch.testing.assert_close(*(loss_of(one(*ids)) for one in (model, other)))
    other_model, other_views, _, _ = sharded_of(context, "planned", "adam")
    saved = context.folder / "joint"
    ns.distributed.save(saved, {"model": model})
    ns.distributed.load(saved, {"model": other_model})
    loaded = ns.distributed.full_state_dict(other_model, rank=0)
    assert all(torch.equal(loaded[key], after[key]) for key in after)


def case_row_order(context):
    """Rows in another order than ids train as the unsharded model does; checkpoints keep the order."""
    generator = context.generator("order")
    orders = {"bags.t0": torch.randperm(50, generator=generator), "rows.t0": torch.randperm(20, generator=generator)}
    model, views, _, _ = sharded_of(context, row_order=orders)
    plain = filled(context, model)
    for _ in range(3):
        everyone = [plain.draw(generator) for _ in range(context.size)]
        outputs = model(*everyone[context.rank])
        torch.testing.assert_close(outputs, plain(*everyone[context.rank]), atol=1e-5, rtol=1e-5)
        loss_of(outputs).backward()
        plain.zero_grad()
        (sum(loss_of(plain(*ids)) for ids in everyone) / context.size).backward()
        with torch.no_grad():
            for value in plain.parameters():
                value -= value.grad * RATE
    weights = dict(plain.state_dict())
    for table, key in (("bags.t0", "bags.embedding_bags.t0"), ("rows.t0", "rows.embeddings.t0")):
        path, name = table.split(".")
        for one in views[path].local_shards():
            if one.table == name:
                rows = torch.argsort(orders[table])[slice(*one.rows)]
                torch.testing.assert_close(one.weights, weights[f"{key}.weight"][rows][:, slice(*one.cols)],
                                           atol=1e-5, rtol=1e-5)
    whole = ns.distributed.full_state_dict(model, rank=0)
    if context.rank == 0:
        torch.testing.assert_close({name: whole[name] for name in weights}, weights, atol=1e-5, rtol=1e-5)
    saved = context.folder / "row-order"
    ns.distributed.save(saved, {"model": model})
    other, _, _, _ = sharded_of(context, "planned", row_order=orders)
    ns.distributed.load(saved, {"model": other})
    loaded = ns.distributed.full_state_dict(other, rank=0)
    assert loaded.keys() == whole.keys() and all(torch.equal(loaded[key], whole[key]) for key in whole)
    raises(ns.distributed.CheckpointError, "make it with row_order=",
           lambda: ns.distributed.load(saved, {"model": sharded_of(context)[0]}))
    raises(ValueError, "row_order: expected tables of bags.t0", lambda: sharded_of(context, row_order={"t0": orders["bags.t0"]}))


def case_drift(context):
    """A checkpoint of a step between averages is loaded over copies that have drifted."""
    model, views, _, _ = sharded_of(context, "drift")
    ids = Collections(torch.device("cpu")).draw(context.generator(f"{context.rank}"))
    loss_of(model(*ids)).backward()
    views["bags"].average_copies()
    path = context.gather(str(context.folder / "drift"))[0]
    ns.distributed.save(path, {"model": model})
    before = ns.distributed.full_state_dict(model, rank=0)
    loss_of(model(*ids)).backward()
    raises(TensorError, "call average_copies() on all ranks first", model.state_dict)
    other = torch.nn.Module()
    other.bags = model.bags
    ns.distributed.load(path, {"model": other})
    raises(TensorError, "call average_copies() on all ranks first", model.state_dict)  # one of three views
    ns.distributed.load(path, {"model": model})
    after = ns.distributed.full_state_dict(model, rank=0)
    assert all(torch.equal(before[key], after[key]) for key in before) and views["bags"].step == 1


def case_dynamic_ids(context):
    """Ids of any size of one collection, by pipeline() too, and in a checkpoint."""
    options = {"dynamic_ids": {"bags.t0": ns.DynamicIds()}, "optimizer": "adam"}
    found = []
    for is_ahead in (False, True):
        model, views, _, _ = sharded_of(context, **options)
        filled(context, model)
        drawer, generator, batches = Collections(torch.device("cpu")), context.generator("ids"), []
        for _ in range(4):
            bags, batch = [drawer.draw(generator) for _ in range(context.size)][context.rank]
            # f1 is read by a table without dynamic ids, too.
            values = torch.cat([bags["f0"].values() * 10**12 + 7, bags["f1"].values()])
            bags = KeyedJaggedTensor(bags.keys(), values, lengths=bags.lengths())
            batches.append(Whole(bags, batch))
        loop = ns.distributed.pipeline(batches, {views["bags"].tables: lambda one: {
            "bags": one.bags, "inner.weighted": one.more["weighted"], "rows": one.rows[0]}}) if is_ahead else batches
        for one in loop:
            loss_of(model(one.bags, one)).backward()
        assert list(views["bags"].dynamic_ids) == ["t0"] and not views["rows"].dynamic_ids
        assert views["bags"].dynamic_ids["t0"].total().ids > 20 and views["rows"].step == 4
        found.append([one.weights.clone() for view in views.values() for one in view.local_shards()])
    assert all(map(torch.equal, *found))
    new = KeyedJaggedTensor(bags.keys(), torch.cat([bags["f0"].values() + 3, bags["f1"].values()]), lengths=bags.lengths())
    ids = views["bags"].dynamic_ids["t0"].total().ids
    views["bags"].eval()
    loss_of(model(new, batch)).backward()
    views["bags"].train()
    assert views["bags"].dynamic_ids["t0"].total().ids == ids, "new ids of a collection that does not learn"
    path = context.folder / "dynamic"
    ns.distributed.save(path, {"model": model})
    other, other_views, _, _ = sharded_of(context, **options)
    ns.distributed.load(path, {"model": other})
    last = batches[-1]
    torch.testing.assert_close(*(one.eval()(last.bags, last) for one in (model, other)), atol=0, rtol=0)
    assert other_views["bags"].dynamic_ids["t0"].total().ids == views["bags"].dynamic_ids["t0"].total().ids


def case_other_place(context):
    """A rank whose model gets ids from elsewhere is one error on all."""
    model, _, _, _ = sharded_of(context, process_group=dist.new_group())
    ids = Collections(torch.device("cpu")).draw(context.generator(f"{context.rank}"))
    model.changes = {"made"} if context.rank == 1 else set()
    model(*ids)  # ranks compare what they found when the next forward begins
    text = raises(ns.distributed.GroupError, 'rank 1 has another place of the ids of "rows" among the arguments of the '
                  "model than rank 0 (none, not args[1].rows[0])", lambda: model(*ids))
    assert len(set(context.gather(text))) == 1


def case_failed_first(context):
    """A first forward that fails on one rank, after its lookups, lets no rank wait."""
    model, views, _, _ = sharded_of(context, process_group=dist.new_group())
    starts, ids = starts_of(views["bags"].tables), Collections(torch.device("cpu")).draw(
        context.generator(f"{context.rank}"))
    whole = model.forward

    def failing(*given):
        whole(*given)
        raise RuntimeError("of the dense part")

    with torch.no_grad():
        if context.rank == 1:
            model.forward = failing
            raises(RuntimeError, "of the dense part", lambda: model(*ids))
            model.forward = whole
        else:
            model(*ids)
        assert len(starts) == 3
        model(*ids)
    assert len(starts) == 4


def case_changed_ids(context):
    """Ids that a forward changes in place, or replaces in a dict, are those that are looked up."""
    model, views, _, _ = sharded_of(context)
    other, _, _, _ = sharded_of(context)
    other.load_state_dict(model.state_dict())
    whole = other.forward

    def changing(bags, batch):
        bags.values().remainder_(3)
        return whole(bags, batch)

    drawer, generator = Collections(torch.device("cpu")), context.generator("ids")
    other.forward = changing
    for step in range(3):
        ids = [drawer.draw(generator) for _ in range(context.size)][context.rank]
        copy = copy_of(ids)
        copy[0].values().remainder_(3)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            outputs = [model(*copy), other(*ids)]
        torch.testing.assert_close(*outputs, atol=0, rtol=0)
        if step == 1 and context.rank == 0:
            assert "the model changes its ids in place" in str([str(one.message) for one in found])
        for one in outputs:
            loss_of(one).backward()


def copy_of(ids):
    bags, batch = ids
    return KeyedJaggedTensor(bags.keys(), bags.values().clone(), lengths=bags.lengths()), batch


def case_freed(context):
    """Tables are freed once nobody has the model, after joint steps, too; and may move after a forward whose
    results were dropped."""
    model, views, plan, problem = sharded_of(context)
    for _ in range(3):
        ids = Collections(torch.device("cpu")).draw(context.generator(f"{context.rank}"))
        loss_of(model(*ids)).backward()
    model(*ids)
    ns.distributed.reshard_model(views, plan, problem)
    tables = weakref.ref(views["bags"].tables)
    tables().close()
    context.modules.clear()
    del model, views
    gc.collect()
    assert tables() is None


def case_other_call(context):
    """A rank that looks rows up for other collections than the others is an error on all."""
    model, _, _, _ = sharded_of(context, process_group=dist.new_group())
    ids = Collections(torch.device("cpu")).draw(context.generator(f"{context.rank}"))
    loss_of(model(*ids)).backward()
    if context.rank == 1:
        model.changes, ids = {"missing"}, (ids[0], Batch(ids[1].more, (None,)))
    raises(dist.DistBackendError, "has looked rows up for other modules", lambda: model(*ids))


def case_wrong_ids(context):
    """Wrong ids of one collection of one rank are an error on all, and the model goes on."""
    model, views, _, _ = sharded_of(context)
    plain = filled(context, model)
    generator = context.generator("ids")
    for step in range(3):
        bags, batch = [plain.draw(generator) for _ in range(context.size)][context.rank]
        if context.rank == 0:
            wrong = KeyedJaggedTensor(["f0"], torch.tensor([20]), lengths=torch.tensor([1], dtype=torch.int32))
            short = KeyedJaggedTensor(["f1"], torch.tensor([1]), lengths=torch.tensor([1], dtype=torch.int32))
            for bad, text in ((wrong, 'feature "rows/f0"'), (short, "there is no f0")):
                raises(ValueError, text, lambda bad=bad: model(bags, Batch(batch.more, (bad,))))
        else:
            for text in ('rank 0: ', "rank 0: "):
                raises(ValueError, text, lambda: model(bags, batch))
        loss_of(model(bags, batch)).backward()
    assert views["bags"].step == 3
