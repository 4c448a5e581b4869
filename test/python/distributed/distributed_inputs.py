"""Cases: the forms of ids and results, compared with TorchRec's collections."""

import torch
import torch.distributed as dist
from torchrec.modules.embedding_configs import (EmbeddingBagConfig, EmbeddingConfig, PoolingType)
from torchrec.modules.embedding_modules import EmbeddingBagCollection, EmbeddingCollection
from torchrec.modules.feature_processor_ import PositionWeightedModuleCollection
from torchrec.modules.fp_embedding_modules import FeatureProcessedEmbeddingBagCollection
from torchrec.sparse.jagged_tensor import JaggedTensor, KeyedJaggedTensor, KeyedTensor

import neuroshard as ns
from distributed_context import raises, whole
from distributed_models import make_plan, random_parts
from distributed_steps import small
from neuroshard.errors import TensorError

KINDS = ["rows", "columns"]


def keyed(problem, part, order, extra=()):
    """A KeyedJaggedTensor with its features in this order, and other features."""
    names = [one.name for one in problem.features]
    ids, lengths, weights = [], [], []
    for name in order:
        one = part.feature(names.index(name) if name in names else 0)
        ids.append(one[0])
        lengths.append(one[1].diff())
        weights.append(one[2])
    return KeyedJaggedTensor(list(order), torch.cat(ids),
                             None if weights[0] is None else torch.cat(weights),
                             torch.cat(lengths))


def check(expected, found):
    assert list(found) == list(expected)
    for name, value in expected.items():
        assert torch.equal(found[name], value), name


def case_forms(context):
    """All forms of ids give the same results; a KeyedJaggedTensor gives a KeyedTensor."""
    problem, plan = small(context.size)
    tables = context.make(plan, problem)
    part = random_parts(problem, [3 + one for one in range(context.size)],
                        context.generator())[context.rank]
    ids, offsets = part.tensors()
    names = [one.name for one in problem.features]
    assert tables.features == tuple(names)
    expected = tables((ids, offsets))
    assert list(expected) == names
    features = {name: part.feature(number)[:2] for number, name in enumerate(names)}
    for form in (ns.distributed.Jagged(ids, offsets), [ids, offsets], (ids.int(), offsets),
                 (ids, offsets.int()), features, dict(reversed(features.items())),
                 (torch.stack([ids, ids], 1)[:, 0], offsets)):
        check(expected, tables(form))
    for order in (names, names[::-1], ["x", *names[::-1], "y"]):
        result = tables(keyed(problem, part, order))
        assert isinstance(result, KeyedTensor)
        assert result.keys() == names
        check(expected, result.to_dict())
    raises(TensorError, "there is no a1", lambda: tables(keyed(problem, part, ["a0", "b0", "c0"])))
    fixed = torch.ones(8, dtype=torch.int64)
    check(tables((fixed, torch.arange(9))), tables(ns.distributed.Jagged(fixed, pooling=1)))
    check(tables((fixed, torch.arange(9))), tables(dict.fromkeys(names, fixed[:2].view(2, 1))))


def configs(kind, pooling=None):
    """TorchRec's unpooled collections need one dim for all tables."""
    last = 12 if pooling else 8
    pooling = {"pooling": pooling} if pooling else {}
    return [kind(name="t1", embedding_dim=8, num_embeddings=30, feature_names=["f1", "g1"],
                 **pooling),
            kind(name="t2", embedding_dim=last, num_embeddings=20, feature_names=["f2"], **pooling)]


def sharded_like(context, module, mean_pooling=1, **options):
    """Our module with torchrec's weights."""
    problem = ns.distributed.problem_of(module, batch=16, topology=f"{context.size}xCPU@4GiB",
                                        mean_pooling=mean_pooling)
    tables = context.make(make_plan(problem, KINDS, context.size, 3), problem,
                          **{"learning_rate": 0.25, **options})
    holders = dict(module.embedding_bags.items() if hasattr(module, "embedding_bags")
                   else module.embeddings.items())
    for shard in tables.local_shards():
        shard.weights.copy_(holders[shard.table].weight.data[slice(*shard.rows),
                                                             slice(*shard.cols)])
    return problem, tables, holders


def case_torchrec(context, pooling, weighted="0"):
    """Replaces an EmbeddingBagCollection: equal results, and an equal step of SGD by the mean over
    all ranks."""
    torch.manual_seed(5)
    weighted = weighted == "1"
    theirs = EmbeddingBagCollection(tables=configs(EmbeddingBagConfig, PoolingType[pooling]),
                                    is_weighted=weighted)
    problem, tables, holders = sharded_like(context, theirs, mean_pooling={"f1": 3})
    assert [(one.name, one.table, one.pooling, one.mean_pooling, one.weighted)
            for one in problem.features] == [
        (name, table, pooling.lower(), mean, weighted)
        for name, table, mean in (("f1", "t1", 3), ("g1", "t1", 1), ("f2", "t2", 1))]
    parts = random_parts(problem, [4] * context.size, context.generator())
    names = [one.name for one in problem.features]
    losses = []
    for rank, part in enumerate(parts):
        batch = keyed(problem, part, names[::-1])
        expected = theirs(batch)
        losses.append(expected.values().square().mean())
        if rank == context.rank:
            result = tables(batch)
            assert result.keys() == expected.keys()
            torch.testing.assert_close(result.values(), expected.values(), rtol=1e-6, atol=1e-6)
            assert torch.equal(torch.cat(
                [result[name] for name in expected.keys()], 1), result.values())
            result.values().square().mean().backward()
    torch.stack(losses).mean().backward()
    for name, (weights, _) in whole(tables).items():
        bag = holders[name].weight
        torch.testing.assert_close(weights, bag.data - 0.25 * bag.grad, rtol=1e-6, atol=1e-6)


def variable_batch(generator, rows, weighted=False):
    """A KeyedJaggedTensor whose features have batches of their own, and the samples' bags: what it says,
    and the same with all bags repeated."""
    batches = [4, 1, 3]
    lengths = [torch.randint(0, 4, (count,), generator=generator) for count in batches]
    ids = [torch.randint(0, most, (int(one.sum()),), generator=generator)
           for one, most in zip(lengths, rows)]
    weights = torch.rand(sum(map(len, ids)), generator=generator) if weighted else None
    inverse = torch.stack([torch.randint(0, count, (6,), generator=generator) for count in batches])
    return KeyedJaggedTensor(["f1", "f2", "g1"], torch.cat(ids), weights, torch.cat(lengths),
                             stride_per_key_per_rank=[[count] for count in batches],
                             inverse_indices=(["f1", "f2", "g1"], inverse))


def case_position_weights(context):
    """TorchRec's weights by position in front of the module train as its FeatureProcessedEmbeddingBagCollection."""
    def processors():
        return PositionWeightedModuleCollection({"f1": 3, "f2": 5, "g1": 4}, torch.device("cpu"))

    torch.manual_seed(5)
    collection = EmbeddingBagCollection(tables=configs(EmbeddingBagConfig, PoolingType.SUM), is_weighted=True)
    _, tables, holders = sharded_like(context, collection, mean_pooling={"f1": 3})
    own = processors()
    theirs = FeatureProcessedEmbeddingBagCollection(collection, processors())
    optimizers = [torch.optim.SGD(one.parameters(), 0.25) for one in (own, theirs)]
    generator = context.generator()
    for _ in range(3):
        batches = []
        for _ in range(context.size):
            lengths = torch.randint(0, 4, (12,), generator=generator)
            ids = torch.randint(0, 20, (int(lengths.sum()),), generator=generator)
            batches.append(KeyedJaggedTensor(["f2", "g1", "f1"], ids, lengths=lengths))
        (sum(theirs(one).values().square().mean() for one in batches) / context.size).backward()
        tables(own(batches[context.rank])).values().square().mean().backward()
        for one in own.parameters():
            dist.all_reduce(one.grad)
            one.grad /= context.size
        for one in optimizers:
            one.step()
            one.zero_grad()
    for one, other in zip(own.parameters(), theirs._feature_processors.parameters(), strict=True):
        assert not torch.equal(one, torch.ones_like(one))
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
    for name, (weights, _) in whole(tables).items():
        torch.testing.assert_close(weights, holders[name].weight.data, rtol=1e-5, atol=1e-6)


def case_variable_batches(context, pooling="SUM", weighted="0"):
    """Features with batches of their own and inverse indices: results and a step of SGD equal those of
    TorchRec's EmbeddingBagCollection."""
    torch.manual_seed(5)
    weighted = weighted == "1"
    theirs = EmbeddingBagCollection(tables=configs(EmbeddingBagConfig, PoolingType[pooling]),
                                    is_weighted=weighted)
    _, tables, holders = sharded_like(context, theirs, mean_pooling={"f1": 3})
    generator, losses = context.generator(), []
    for rank in range(context.size):
        batch = variable_batch(generator, (30, 20, 30), weighted)
        expected = theirs(batch)
        losses.append(expected.values().square().mean())
        if rank != context.rank:
            continue
        result = tables(batch)
        assert result.keys() == expected.keys()
        torch.testing.assert_close(result.values(), expected.values(), rtol=1e-6, atol=1e-6)
        result.values().square().mean().backward()
    torch.stack(losses).mean().backward()
    for name, (weights, _) in whole(tables).items():
        bag = holders[name].weight
        torch.testing.assert_close(weights, bag.data - 0.25 * bag.grad, rtol=1e-6, atol=1e-6)
    plain = KeyedJaggedTensor(batch.keys(), batch.values(), batch.weights_or_none(), batch.lengths(),
                              stride_per_key_per_rank=batch.stride_per_key_per_rank())
    raises(TensorError, "or inverse indices, found a KeyedJaggedTensor with batches of", lambda: tables(plain))


def case_batches_of_a_dict(context):
    """Features of different batches in a dict, some of them empty, equal torch, and so does their step."""
    problem, plan = small(context.size)
    tables = context.make(plan, problem, 0.25, gradient_division=False)
    before = {name: torch.nn.Parameter(weights) for name, (weights, _) in whole(tables).items()}
    generator = context.generator()
    losses = []
    for rank in range(context.size):
        ids = {}
        for number, feature in enumerate(problem.features):
            lengths = torch.randint(0, 4, ((2 * number + rank) % 5,), generator=generator)
            rows = problem.table(feature.table).rows
            ids[feature.name] = (torch.randint(0, rows, (int(lengths.sum()),), generator=generator),
                                 torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]))
        expected = {feature.name: torch.nn.functional.embedding_bag(
            ids[feature.name][0], before[feature.table], ids[feature.name][1], mode=feature.pooling,
            include_last_offset=True) for feature in problem.features}
        losses.append(sum(one.square().sum() for one in expected.values()))
        if rank != context.rank:
            continue
        result = tables(ids)
        for name, value in expected.items():
            torch.testing.assert_close(result[name], value, rtol=1e-6, atol=1e-6)
        sum(one.square().sum() for one in result.values()).backward()
    sum(losses).backward()
    for name, (weights, _) in whole(tables).items():
        torch.testing.assert_close(weights, before[name].data - 0.25 * before[name].grad, rtol=1e-6,
                                   atol=1e-6)


def case_variable_batches_unpooled(context):
    """Jagged results of features with batches of their own stay jagged."""
    torch.manual_seed(5)
    theirs = EmbeddingCollection(tables=configs(EmbeddingConfig))
    _, tables, _ = sharded_like(context, theirs)
    batch = variable_batch(context.generator(str(context.rank)), (30, 20, 30))
    expected, result = theirs(batch), tables(batch)
    assert set(result) == set(expected)
    for name, value in expected.items():
        assert torch.equal(result[name].values(), value.values()), name
        assert torch.equal(result[name].lengths(), value.lengths()), name
    sum(one.values().sum() for one in result.values()).backward()


def case_out_of_range(context, form):
    """Ids that no table has count as the form says: as the same batch with other ids, in results, updates
    and gradients of weights."""
    form = int(form) if form.lstrip("-").isdigit() else form
    problem, plan = small(context.size)
    problem = problem.replace(features=[one.replace(pooling="sum", weighted=True, needs_weight_gradient=True)
                                        for one in problem.features])
    tables, plain = context.make(plan, problem, out_of_range=form), context.make(plan, problem)
    generator = context.generator()
    part = random_parts(problem, [5] * context.size, generator)[context.rank]
    rows = torch.cat([torch.full((part.span(number)[1] - part.span(number)[0],),
                                 problem.table(feature.table).rows)
                      for number, feature in enumerate(problem.features)])
    wrong = torch.rand(len(part.ids), generator=generator) < 0.4
    beyond = torch.where(torch.rand(len(part.ids), generator=generator) < 0.5, -3, rows + 7)
    ids = torch.where(wrong, beyond, part.ids)
    meant = part.ids.clone()
    if form == "modulo":
        meant = torch.where(wrong, ids % rows, ids)
    elif form != "drop":
        meant = torch.where(wrong, form % rows, ids)
    weights = [part.weights.clone().requires_grad_() for _ in range(2)]
    other = weights[1] * ~wrong if form == "drop" else weights[1]
    results = [tables((ids, part.offsets, weights[0])), plain((meant, part.offsets, other))]
    check(results[1], results[0])
    for one in results:
        sum(value.square().sum() for value in one.values()).backward()
    assert torch.equal(weights[0].grad, weights[1].grad)
    for name, (values, _) in whole(tables).items():
        torch.testing.assert_close(values, whole(plain)[name][0], rtol=0, atol=0)
    assert tables.ids_out_of_range == int(wrong.sum())
    raises(ValueError, "offsets", lambda: tables((ids, part.offsets + 1, weights[0].detach())))
    turned = part.offsets.clone()
    turned[1] = len(ids) + 5
    raises(ValueError, "offsets", lambda: tables((ids, turned, weights[0].detach())))
    if form != "drop":  # whose number of ids depends on them
        before = tables.ids_out_of_range
        torch._dynamo.reset()
        compiled = torch.compile(lambda *one: tables(one), backend="aot_eager", fullgraph=True)
        check(plain((meant, part.offsets, other)), compiled(ids, part.offsets, weights[0]))
        assert tables.ids_out_of_range == before + int(wrong.sum())
    for odd in ("ignore", None, 20, -21, True):
        raises(ValueError, "out_of_range: expected", lambda odd=odd: context.make(plan, problem, out_of_range=odd))


def by_id(context, tables):
    """The whole state, on all ranks."""
    state = [ns.distributed.full_state_dict(tables)]
    dist.broadcast_object_list(state)
    return state[0]


def assert_close(found, expected):
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        torch.testing.assert_close(found[key], values, rtol=1e-5, atol=1e-6, msg=key)


def case_row_order(context, pooling="sum", kind="hot_rows"):
    """Tables with rows in another order than ids train as those without, under plans of their own. Whole state dicts
    are by id; checkpoints keep the order, and load under other plans with the same order alone."""
    problem, plain_plan = small(context.size)
    problem = problem.replace(features=[one.replace(pooling=pooling, weighted=False, needs_weight_gradient=False)
                                        for one in problem.features])
    generator = context.generator()
    orders = {table.name: torch.randperm(table.rows, generator=generator) for table in problem.tables[1:]}
    kinds = [kind] * len(problem.tables)
    tables = context.make(make_plan(problem, kinds, context.size, 5), problem, row_order=orders)
    plain = context.make(plain_plan, problem)
    tables.load_state_dict(by_id(context, plain))
    assert_close(by_id(context, tables), by_id(context, plain))
    for _ in range(3):
        part = random_parts(problem, [5] * context.size, generator)[context.rank]
        found, expected = tables((part.ids, part.offsets)), plain((part.ids, part.offsets))
        for name, value in expected.items():
            one, other = (value, found[name]) if pooling != "none" else (value[0], found[name][0])
            torch.testing.assert_close(other, one, rtol=1e-5, atol=1e-6)
        for results in (found, expected):
            sum((one if pooling != "none" else one[0]).square().sum() for one in results.values()).backward()
    assert_close(by_id(context, tables), by_id(context, plain))
    for name, (values, _) in whole(tables).items():  # the rows themselves are in the order
        rows = values[orders[name]] if name in orders else values
        torch.testing.assert_close(rows, whole(plain)[name][0], rtol=1e-5, atol=1e-6)
    bad = part.ids.clone()
    bad[0] = 10**6
    raises(ValueError, "1000000", lambda: tables((bad, part.offsets)))
    path = context.folder / f"row-order-{pooling}-{kind}-{context.size}"
    ns.distributed.save(path, {"tables": tables})
    other = context.make(make_plan(problem, ["rows"] * len(problem.tables), context.size, 7), problem, row_order=orders)
    ns.distributed.load(path, {"tables": other})
    assert_close(by_id(context, other), by_id(context, tables))
    if pooling != "none":
        torch._dynamo.reset()
        compiled = torch.compile(lambda *one: other(one), backend="aot_eager", fullgraph=True)
        check(other((part.ids, part.offsets)), compiled(part.ids, part.offsets))
    other.reshard(plain_plan)
    assert_close(by_id(context, other), by_id(context, tables))
    found, expected = other((part.ids, part.offsets)), tables((part.ids, part.offsets))
    for name, value in expected.items():
        one, two = (value, found[name]) if pooling != "none" else (value[0], found[name][0])
        torch.testing.assert_close(two, one, rtol=1e-5, atol=1e-6)
    names = [table.name for table in problem.tables]
    weights = by_id(context, tables)
    for name, values in ns.distributed.read_tables(path, names):
        assert torch.equal(values, next(one for key, one in weights.items() if key.endswith(f".{name}.weight")))
    reversed_orders = {name: order.flip(0) for name, order in orders.items()}
    for wrong, said in ((plain, "make it with row_order="),
                        (context.make(plain_plan, problem, row_order=reversed_orders), "another order of rows")):
        before = by_id(context, wrong)
        for only in (None, "weights", "optimizer"):
            raises(ns.distributed.CheckpointError, said,
                   lambda wrong=wrong, only=only: ns.distributed.load(path, {"tables": wrong}, only=only))
        assert_close(by_id(context, wrong), before)
    raises(RuntimeError, "make it with row_order=", lambda: plain.load_state_dict(tables.state_dict()))


def case_row_order_errors(context):
    problem, plan = small(context.size)
    table = problem.tables[0]
    make = lambda order: context.make(plan, problem, row_order=order)  # noqa: E731
    for order in (torch.zeros(table.rows, dtype=torch.int64), torch.arange(table.rows + 1),
                  torch.arange(table.rows).float(), [1, 2], torch.arange(1, table.rows + 1)):
        raises(ValueError, f"row_order: table \"{table.name}\": expected a tensor of int64 or int32 that has each of "
                           f"{table.rows} rows once", lambda order=order: make({table.name: order}))
    raises(ValueError, "row_order: expected tables of", lambda: make({"nothing": torch.arange(3)}))
    raises(TypeError, "row_order: expected a file of neuroshard profile --reorder or a dict", lambda: make(3))
    raises(ValueError, "expected a file of neuroshard profile --reorder",
           lambda: make(str(context.folder / "no-file.safetensors")))
    if context.size > 1:
        order = torch.arange(table.rows).roll(context.rank)
        raises(Exception, "row_order", lambda: make({table.name: order}))


def case_torchrec_unpooled(context):
    """Replaces an EmbeddingCollection."""
    torch.manual_seed(5)
    theirs = EmbeddingCollection(tables=configs(EmbeddingConfig))
    problem, tables, _ = sharded_like(context, theirs)
    part = random_parts(problem, [4] * context.size, context.generator())[context.rank]
    batch = keyed(problem, part, [one.name for one in problem.features][::-1])
    expected, result = theirs(batch), tables(batch)
    assert set(result) == set(expected)
    for name, value in expected.items():
        assert isinstance(result[name], JaggedTensor)
        assert torch.equal(result[name].values(), value.values()), name
        assert torch.equal(result[name].lengths(), value.lengths()), name
        assert torch.equal(result[name].offsets(), value.offsets()), name
    plain = tables(part.tensors())
    for number, name in enumerate(tables.features):
        values, offsets = plain[name]
        assert torch.equal(values, result[name].values())
        assert torch.equal(offsets, part.feature(number)[1])


def shared_configs(kind, **rest):
    """"s" is read by two tables, "f" by one of them."""
    return [kind(name="t1", embedding_dim=8, num_embeddings=30, feature_names=["f", "s"], **rest),
            kind(name="t2", embedding_dim=8, num_embeddings=20, feature_names=["s"], **rest)]


def shared_batch(generator):
    lengths = torch.randint(0, 4, (2, 4), generator=generator)
    ids = [torch.randint(0, rows, (int(count.sum()),), generator=generator)
           for rows, count in zip((20, 30), lengths)]
    return KeyedJaggedTensor(["s", "f"], torch.cat(ids), lengths=lengths.view(-1).int())


def case_shared_feature(context):
    """A feature that two tables read has its ids once in a batch; results and updates equal
    TorchRec's and have its names."""
    torch.manual_seed(5)
    theirs = EmbeddingBagCollection(tables=shared_configs(EmbeddingBagConfig,
                                                          pooling=PoolingType.SUM))
    problem, tables, holders = sharded_like(context, theirs, mean_pooling={"s": 3, "f": 2})
    assert [(one.name, one.mean_pooling) for one in problem.features] == [
        ("f", 2), ("s@t1", 3), ("s@t2", 3)]
    generator, losses = context.generator(), []
    for rank in range(context.size):
        batch = shared_batch(generator)
        expected = theirs(batch)
        losses.append(expected.values().square().mean())
        if rank != context.rank:
            continue
        result = tables(batch)
        assert result.keys() == expected.keys() == ["f", "s@t1", "s@t2"]
        torch.testing.assert_close(result.values(), expected.values(), rtol=1e-6, atol=1e-6)
        result.values().square().mean().backward()
        own = batch
    torch.stack(losses).mean().backward()
    for name, (weights, _) in whole(tables).items():
        bag = holders[name].weight
        bag.data -= 0.25 * bag.grad
        torch.testing.assert_close(weights, bag.data, rtol=1e-6, atol=1e-6)
    plain = tables({key: (own[key].values(), own[key].offsets()) for key in own.keys()})
    for name, value in theirs(own).to_dict().items():
        torch.testing.assert_close(plain[name], value, rtol=1e-6, atol=1e-6)
    raises(TensorError, "there is no s", lambda: tables(own.split([1, 1])[1]))


def case_shared_feature_unpooled(context):
    torch.manual_seed(5)
    theirs = EmbeddingCollection(tables=shared_configs(EmbeddingConfig))
    _, tables, _ = sharded_like(context, theirs)
    generator = context.generator()
    batch = [shared_batch(generator) for _ in range(context.size)][context.rank]
    expected, result = theirs(batch), tables(batch)
    assert list(result) == list(expected) == ["f", "s@t1", "s@t2"]
    for name, value in expected.items():
        assert torch.equal(result[name].values(), value.values()), name
        assert torch.equal(result[name].offsets(), value.offsets()), name


def case_bags(context):
    """Replaces a dict of nn.EmbeddingBag, two of which are one module."""
    torch.manual_seed(5)
    shared = torch.nn.EmbeddingBag(20, 8, mode="mean", include_last_offset=True)
    bags = {"p": shared, "q": torch.nn.EmbeddingBag(9, 4, mode="sum", include_last_offset=True),
            "r": shared}
    problem = ns.distributed.problem_of(bags, batch=16, topology=f"{context.size}xCPU@4GiB",
                                        optimizer="adagrad")
    assert [(one.name, one.rows, one.dim) for one in problem.tables] == [("p", 20, 8), ("q", 9, 4)]
    tables = context.make(make_plan(problem, KINDS, context.size, 3), problem)
    for shard in tables.local_shards():
        shard.weights.copy_(bags[shard.table].weight.data[slice(*shard.rows), slice(*shard.cols)])
    part = random_parts(problem, [4] * context.size, context.generator())[context.rank]
    given = {name: part.feature(number)[:2] for number, name in enumerate(bags)}
    for name, value in tables(given).items():
        torch.testing.assert_close(value, bags[name](*given[name]), rtol=1e-6, atol=1e-6)
    for changed, text in (({"mode": "max"}, "mode 'max'"), ({"max_norm": 1.0}, "max_norm"),
                          ({"scale_grad_by_freq": True, "mode": "sum"}, "scale_grad_by_freq"),
                          ({"padding_idx": 0}, "padding_idx"),
                          ({"dtype": torch.float64}, "torch.float64")):
        bag = torch.nn.EmbeddingBag(9, 4, **changed)
        raises(ValueError, text, lambda bag=bag: ns.distributed.problem_of(
            {"p": bag}, batch=4, topology="1xCPU"))
    for wrong in (torch.nn.Linear(1, 1), {"p": torch.nn.Linear(1, 1)}, 3):
        raises(TypeError, "EmbeddingBag", lambda wrong=wrong: ns.distributed.problem_of(
            wrong, batch=4, topology="1xCPU"))
