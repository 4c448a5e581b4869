"""Cases: loops over batches of models whose collections have one step: interrupts, loaders that fail, and a monitor
of plans."""

import torch
import torch.distributed as dist

import neuroshard as ns
from distributed_context import raises
from distributed_joint_forms import Whole
from shard_model_models import Collections, filled, sharded_of, starts_of
from support.torchrec_models import loss_of


def case_interrupted(context):
    """A forward that Ctrl-C ends, for which torch calls no hook, leaves later ones with one step each."""
    model, views, _, _ = sharded_of(context)
    plain = filled(context, model)
    starts, drawer, generator = starts_of(views["bags"].tables), Collections(torch.device("cpu")), context.generator("ids")
    whole = model.forward

    def interrupted(*given):
        whole(*given)
        raise KeyboardInterrupt

    for step in range(4):
        ids = [drawer.draw(generator) for _ in range(context.size)][context.rank]
        if step in (0, 2):
            model.forward = interrupted
            raises(KeyboardInterrupt, "", lambda: model(*ids))
            model.forward = whole
        before = len(starts)
        found = model(*ids)
        assert len(starts) - before == 1, (step, len(starts) - before)
        torch.testing.assert_close(found, plain(*ids))


def case_loader_fails(context, step, kind):
    """What fails on one rank before the ids of a batch are sent is an error on all at that batch's step, of the first
    forward too, which learns where the ids of the collections are."""
    model, views, _, _ = sharded_of(context, process_group=dist.new_group())
    drawer, generator, bad = Collections(torch.device("cpu")), context.generator("ids"), int(step)
    batches = [[Whole(*drawer.draw(generator)) for _ in range(context.size)][context.rank] for _ in range(4)]
    fails = context.rank == context.size - 1

    def loader():
        for number, batch in enumerate(batches):
            if kind == "loader" and fails and number == bad:
                raise OSError("no disk")
            yield batch

    def bags(batch):
        if kind == "function" and fails and batch is batches[bad]:
            raise OSError("no disk")
        return batch.bags

    def train():
        for batch in ns.distributed.pipeline(loader(), {
                views["bags"]: bags, views["inner.weighted"]: lambda one: one.more["weighted"],
                views["rows"]: lambda one: one.rows[0]}):
            loss_of(model(batch.bags, batch)).backward()

    text = {"loader": f"rank {context.size - 1}: its loader failed before step {bad}",
            "function": "the ids of a batch could not be made: OSError: no disk"}[kind]
    raises(Exception, "no disk" if fails else text, train)
    assert views["bags"].step == bad
    loss_of(model(batches[0].bags, batches[0])).backward()
    assert views["bags"].step == bad + 1


def case_monitor(context):
    """A monitor measures the ids of all collections by their names in the problem, and what it advises can be taken."""
    model, views, plan, problem = sharded_of(context, "table_wise")
    raises(TypeError, "expected the tables of all collections", lambda: ns.distributed.PlanMonitor(views["bags"]))
    tables = views["bags"].tables
    monitor = ns.distributed.PlanMonitor(tables, every=3, batches=3, horizon_steps=1e6)
    drawer, generator, counts = Collections(torch.device("cpu")), context.generator("ids"), {}
    for _ in range(3):
        ranks = [drawer.draw(generator) for _ in range(context.size)]
        for bags, batch in ranks:
            by_path = {"bags": bags, "inner.weighted": batch.more["weighted"], "rows": batch.rows[0]}
            for path, keyed in by_path.items():
                for key in keyed.keys():
                    lengths = keyed[key].lengths()
                    ids, samples = counts.get((path, key), (0, 0))
                    counts[path, key] = ids + int(lengths.sum()), samples + len(lengths)
        bags, batch = ranks[context.rank]
        loss_of(model(bags, batch)).backward()
        monitor.step({"bags": bags, "inner.weighted": batch.more["weighted"], "rows": batch.rows[0]})
    advice = monitor.wait()
    assert advice.problem.tables and {one.name for one in advice.problem.tables} == {one.name for one in problem.tables}
    seen = set()
    for member in tables.members:
        for name, key in member.features.items():
            ids, samples = counts[member.path, member.keys.get(key, key)]
            feature = next(one for one in advice.problem.features if one.name == name)
            assert abs(feature.mean_pooling * feature.presence - ids / samples) < 1e-6, (name, feature, ids, samples)
            seen.add(name)
    assert seen == {one.name for one in problem.features}
    before = ns.distributed.full_state_dict(model, rank=0)
    ns.distributed.reshard_model(views, advice.plan, advice.problem)
    after = ns.distributed.full_state_dict(model, rank=0)
    assert all(torch.equal(before[key], after[key]) for key in before)
    monitor.close()
