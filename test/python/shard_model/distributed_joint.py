"""Cases: the step of all collections of a model trains as the unsharded model, and as collections with steps of
their own; what travels, and what falls back."""

import contextlib
import warnings

import torch

import neuroshard as ns
from neuroshard import _planner
from shard_model_models import (PATHS, RATE, Collections, assert_same_tables, copy, filled, separate_of, sharded_of,
                                starts_of)
from support.torchrec_models import SAMPLES, loss_of


def case_trains(context, plan, optimizer):
    """Losses and weights are those of the unsharded model; one step for each forward from the second on."""
    model, views, _, _ = sharded_of(context, plan, optimizer, rate=[
        {"tables": ["bags.t0"], "lr": RATE / 2}, {"lr": RATE}] if optimizer == "sgd" else 0.05)
    assert list(views) == PATHS and model.inner["weighted"] is views["inner.weighted"]
    assert all((one.weights == 0.5).all() for one in views["inner.weighted"].local_shards())
    plain = filled(context, model)
    starts, generator = starts_of(views["bags"].tables), context.generator("ids")
    for step in range(3):
        everyone = [plain.draw(generator) for _ in range(context.size)]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            outputs = model(*everyone[context.rank])
        if step == 0 or optimizer == "sgd":
            torch.testing.assert_close(outputs, plain(*everyone[context.rank]), atol=1e-6, rtol=1e-6)
        loss_of(outputs).backward()
        assert len(starts) == 3 + step and views["rows"].step == step + 1
        if optimizer != "sgd":
            continue
        plain.zero_grad()
        (sum(loss_of(plain(*ids)) for ids in everyone) / context.size).backward()
        with torch.no_grad():
            for name, value in plain.named_parameters():
                value -= value.grad * (RATE / 2 if "bags.embedding_bags.t0" in name and "inner" not in name else RATE)
    whole = ns.distributed.full_state_dict(model, rank=0)
    if context.rank == 0 and optimizer == "sgd":
        found = {name: value for name, value in whole.items() if name.endswith("weight")}
        torch.testing.assert_close(found, dict(plain.state_dict()), atol=1e-5, rtol=1e-5)


def case_same_bits(context, optimizer, kind="cut"):
    """Weights, states and losses are those of modules with steps of their own, to the bit."""
    model, views, _, _ = sharded_of(context, kind, optimizer)
    other, modules = separate_of(context, views)
    drawer, generator = Collections(torch.device("cpu")), context.generator("ids")
    for _ in range(4):
        ids = [drawer.draw(generator) for _ in range(context.size)][context.rank]
        losses = [loss_of(one(*ids)) for one in (model, other)]
        assert torch.equal(*losses)
        for one in losses:
            one.backward()
    assert_same_tables(views, modules)
    assert {one.step for one in modules.values()} == {4} == {views["bags"].step}


def case_exchanges(context):
    """A step has as many exchanges as that of one collection, where collections of their own have three times
    as many."""
    from torch.profiler import ProfilerActivity, profile

    model, views, _, _ = sharded_of(context)
    other, _ = separate_of(context, views)
    ids = Collections(torch.device("cpu")).draw(context.generator(f"ids {context.rank}"))
    counts = []
    for one in (model, other):
        for _ in range(2):  # the first two learn where ids are
            loss_of(one(*ids)).backward()
        with profile(activities=[ProfilerActivity.CPU], acc_events=True) as profiler:
            loss_of(one(*ids)).backward()
        names = [event.name for event in profiler.events()]
        counts.append([names.count(f"neuroshard::embeddings_{name}") for name in ("start", "wait", "gradients", "update")]
                      + [sum(name.startswith("gloo:") for name in names)])
    (*joint, messages), (*separate, more) = counts
    # Each of these has one exchange: of ids, of results, and of gradients, before the update.
    assert joint == [1] * 4 and separate == [3] * 4, counts
    assert 0 < 2 * messages < more, counts


def case_distinct_ids(context):
    """Of the unpooled collection each id travels once: outputs keep their bits, others' tables too, and its own
    are those of sums by rank."""
    models, views = zip(*(sharded_of(context, distinct_ids=distinct)[:2] for distinct in (False, True)))
    copy(*views)
    drawer, generator = Collections(torch.device("cpu")), context.generator("ids")
    for _ in range(3):
        bags, batch = [drawer.draw(generator) for _ in range(context.size)][context.rank]
        for one in views:
            one["bags"].tables.reset_phases()
        assert len(batch.rows[0].values().unique()) < len(batch.rows[0].values())
        outputs = [model(bags, batch) for model in models]
        torch.testing.assert_close(*outputs, atol=1e-6, rtol=1e-6)
        for one in outputs:
            loss_of(one).backward()
        sent = [sum(one["bags"].tables.phases()[phase][1] for phase in ("results_exchange", "gradients_exchange"))
                for one in views]
        assert context.size == 1 or 0 < sent[1] < sent[0], sent
    pooled = [{path: one[path] for path in PATHS if path != "rows"} for one in views]
    assert_same_tables(*pooled)
    for one, other in zip(*(one["rows"].local_shards() for one in views), strict=True):
        torch.testing.assert_close(one.weights, other.weights, atol=1e-6, rtol=1e-6)


def case_bytes(context):
    """What a step sends is what the planner counts for the joint plan."""
    model, views, plan, problem = sharded_of(context)
    tables = views["bags"].tables
    generator = context.generator("ids")
    everyone = [Collections(torch.device("cpu")).draw(generator) for _ in range(context.size)]
    loss_of(model(*everyone[context.rank])).backward()
    tables.reset_phases()
    loss_of(model(*everyone[context.rank])).backward()
    sent = tables.phases()
    joint = [tables._as_jagged({"bags": bags, "inner.weighted": batch.more["weighted"], "rows": batch.rows[0]})
             for bags, batch in everyone]
    names = tables.features
    read = [[one.ids[one.offsets[SAMPLES * place]:one.offsets[SAMPLES * (place + 1)]] for place in range(len(names))]
            for one in joint]
    buckets = tables._session.manifest.plain["layout"][0]["buckets"]
    ids = [[int(((own[one["lookup"]] >= one["rows"][0]) & (own[one["lookup"]] < one["rows"][1])).sum())
            for one in buckets] for own in read]
    features = {one.name: one for one in problem.features}
    rows = [[sum((own[place].tolist() for place, name in enumerate(names) if features[name].table == table.name), [])
             for own in read] for table in problem.tables]
    expected = _planner.plan_traffic(tables.problem._native, plan._native, [[SAMPLES] * context.size], [ids], rows)
    for phase, kinds in {"ids_exchange": ("ids",), "results_exchange": ("results",),
                         "gradients_exchange": ("gradients", "copies"), "norm_exchange": ("norms",)}.items():
        count = sum(one for kind in kinds for peer, one in enumerate(expected[kind][context.rank])
                    if peer != context.rank)
        assert sent[phase][1] == count, (phase, sent[phase][1], count)


@contextlib.contextmanager
def remarks():
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield found
    found[:] = [str(one.message) for one in found if "shard_model" in str(one.message)]


def case_fallback(context, kind):
    """Ids that are made in the model, a collection that is called twice or not at all, and ids that come from
    elsewhere than before: right results and weights, with one remark."""
    model, views, _, _ = sharded_of(context)
    plain = filled(context, model)
    drawer, generator = Collections(torch.device("cpu")), context.generator("ids")
    expected = {"made": '"rows" has steps of its own beside that of the other collections, which take further exchanges: '
                        'its ids are not among the arguments', "twice": '"bags" has steps of its own',
                "missing": '"rows" has steps of its own', "other": "it was called with other ids than those at args[1].rows[0]"}
    optimizer = torch.optim.SGD(plain.parameters(), lr=RATE)
    with remarks() as found:
        for step in range(4):
            changes = {kind} if kind in ("made", "twice") or (kind == "missing" and step == 0) else (
                {"made"} if kind == "other" and step == 2 else set())
            model.changes = plain.changes = changes
            everyone = [drawer.draw(generator) for _ in range(context.size)]
            outputs = model(*everyone[context.rank])
            torch.testing.assert_close(outputs, plain(*everyone[context.rank]), atol=1e-6, rtol=1e-6)
            loss_of(outputs).backward()
            optimizer.zero_grad()
            (sum(loss_of(plain(*ids)) for ids in everyone) / context.size).backward()
            optimizer.step()
            assert views["bags"].step == step + 1  # one update for each backward
    whole = ns.distributed.full_state_dict(model, rank=0)
    if context.rank == 0:
        assert len(found) == 1 and expected[kind] in found[0], found
        found = {name: value for name, value in whole.items() if name.endswith("weight")}
        torch.testing.assert_close(found, dict(plain.state_dict()), atol=1e-5, rtol=1e-5)


def case_unread(context):
    """Collections whose results the loss does not read, or that are frozen or in eval(), keep weights and states,
    also with optimizers that move rows without gradients."""
    model, views, _, _ = sharded_of(context, optimizer="adam")
    other, modules = separate_of(context, views)
    drawer, generator = Collections(torch.device("cpu")), context.generator("ids")

    def step(**options):
        ids = [drawer.draw(generator) for _ in range(context.size)][context.rank]
        for one in (model, other):
            loss_of(one(*ids, **options)).backward()

    step()
    before = [one.weights.clone() for one in views["rows"].local_shards()]
    for _ in range(2):
        ids = [drawer.draw(generator) for _ in range(context.size)][context.rank]
        loss_of(model(*ids, unread=("rows",))).backward()
    assert all(map(torch.equal, before, [one.weights for one in views["rows"].local_shards()]))
    for one in (views["bags"], modules["bags"]):
        one.eval()
    before = [one.weights.clone() for one in views["bags"].local_shards()]
    ids = [drawer.draw(generator) for _ in range(context.size)][context.rank]
    outputs = model(*ids)
    assert not any(value.requires_grad for name, value in outputs.items() if name.startswith("bags"))
    loss_of(outputs).backward()
    views["bags"].train().requires_grad_(False)
    loss_of(model(*ids)).backward()
    assert all(map(torch.equal, before, [one.weights for one in views["bags"].local_shards()]))
    views["bags"].requires_grad_()
    loss_of(model(*ids)).backward()
    after = [one.weights for one in views["bags"].local_shards()]
    assert not after or not all(map(torch.equal, before, after))


def case_compositions(context):
    """Accumulation, updates by step() and every so often, a GradScaler, clipping and frozen tables: as modules
    with steps of their own."""
    drawer, generator = Collections(torch.device("cpu")), context.generator("ids")

    def draw():
        return [drawer.draw(generator) for _ in range(context.size)][context.rank]

    for options, work in (({}, accumulate), ({"update_every": 2}, plainly), ({"update_at": "step"}, by_step),
                          ({}, frozen)):
        model, views, _, _ = sharded_of(context, optimizer="adam", **options)
        other, modules = separate_of(context, views, **options)
        for _ in range(2):
            ids = [draw() for _ in range(2)]
            work(model, {"all": views["bags"]}, ids)
            work(other, modules, ids)
        assert_same_tables(views, modules)
    model, views, _, _ = sharded_of(context, update_at="step")
    plain = filled(context, model)
    ids = draw()
    loss_of(model(*ids)).backward()
    norm = views["bags"].clip_grad_norm_(0.1)
    views["bags"].optimizer.step()
    assert norm > 0.1 and views["bags"].step == 1
    # A scaled loss that is not finite on one rank updates nothing.
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    model, views, _, _ = sharded_of(context, grad_scaler=scaler)
    model.load_state_dict(plain.state_dict(), strict=False)
    for bad in (False, True, False):
        before = [one.weights.clone() for one in views["bags"].local_shards()]
        loss = scaler.scale(loss_of(model(*draw())))
        (loss * torch.inf if bad and context.rank == 0 else loss).backward()
        scaler.step(views["bags"].optimizer)
        scaler.update()
        after = [one.weights for one in views["bags"].local_shards()]
        assert not before or all(map(torch.equal, before, after)) == bad


def accumulate(model, modules, ids):
    with contextlib.ExitStack() as stack:
        for one in modules.values():
            stack.enter_context(one.accumulate())
        for one in ids:
            loss_of(model(*one)).backward()


def plainly(model, modules, ids):
    for one in ids:
        loss_of(model(*one)).backward()


def by_step(model, modules, ids):
    plainly(model, modules, ids)
    for one in modules.values():
        one.optimizer.step()


def frozen(model, modules, ids):
    module = modules.get("all") or modules["bags"]
    module.freeze("t0")
    assert module.frozen == ("t0",)
    plainly(model, modules, ids)
    module.unfreeze()
