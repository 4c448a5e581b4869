"""Plans at the edges: devices that own nothing, one device that owns all, one row each."""

import json

import pytest
import torch

from support import artifact, matrix, plans
from support.batch import from_features, random_values
from support.model import Input, Lookup, Model, Optimizer, Plan, Shard, Table
from support.optimizers import TRUST, decay_mode, is_rowwise
from support.session import Session


def model_for(number, emulated):
    return (matrix.narrow if emulated else matrix.model)((matrix.seed() + number) % matrix.COUNT)


def run_step(model, plan, folder, generator):
    compare_step(artifact.compile_model(model, plan, folder), model, plan, generator)


def compare_step(folder, model, plan, generator, emulated=False):
    """One forward and one update, on integers and on reals."""
    with Session(folder, model, plan, emulated=emulated) as session:
        for integers in (True, False):
            session.fill(generator, integers)
            before = session.tables()
            session.sync_reference()
            jagged = session.random_batch(10, generator, integers)
            results, contexts = session.wait_results(jagged)
            session.check_forward(jagged, results, integers)
            gradients = [random_values(r.shape, generator, integers, r.dtype) for r in results]
            session.update(jagged, contexts, gradients, 0.125, 1)
            session.check_update(before, jagged, gradients, 0.125, 1)


@pytest.mark.parametrize("idle", [(0,), (1, 3), (0, 2, 3)], ids=str)
def test_devices_that_own_nothing(idle, tmp_path, generator):
    model = matrix.model(matrix.seed() % matrix.COUNT)
    plan = plans.random_plan(model, 4, f"idle {matrix.seed()}", idle=idle,
                             kinds=("table_wise", "columns", "rows"))
    run_step(model, plan, tmp_path / "model", generator)


def test_one_row_per_shard(tmp_path, generator):
    model = matrix.model((matrix.seed() + 5) % matrix.COUNT)
    shards = [Shard(t.name, (row, row + 1), (0, t.dim), (row % 3,))
              for t in model.tables for row in range(min(t.rows, 5))]
    shards += [Shard(t.name, (5, t.rows), (0, t.dim), (2,)) for t in model.tables if t.rows > 5]
    run_step(model, Plan(3, shards), tmp_path / "model", generator)


def cut_half_of_the_rows_by_columns(table):
    half = table.rows // 2
    if half == 0 or table.dim < 8:
        return [Shard(table.name, (0, table.rows), (0, table.dim), (0,))]
    return [Shard(table.name, (0, half), (0, table.dim), (0,)),
            Shard(table.name, (half, table.rows), (0, 4), (1,)),
            Shard(table.name, (half, table.rows), (4, table.dim), (2,))]


def has_trust_ratio(optimizer):
    return optimizer is not None and optimizer.kind in TRUST


def has_rows_with_l2_decay(optimizer):
    return is_rowwise(optimizer) and decay_mode(optimizer) == "l2"


@pytest.mark.parametrize("is_wanted", [is_rowwise, has_trust_ratio, has_rows_with_l2_decay])
def test_some_rows_whole_and_others_cut_by_columns(is_wanted, tmp_path, generator):
    model = next(model for model in map(matrix.model, range(matrix.COUNT))
                 if any(is_wanted(t.optimizer) and t.dim >= 8
                        and t.rows >= 2 for t in model.tables))
    shards = [shard for table in model.tables for shard in cut_half_of_the_rows_by_columns(table)]
    run_step(model, Plan(3, shards), tmp_path / "model", generator)


def test_partial_plan_is_completed(tmp_path, generator):
    model = matrix.model((matrix.seed() + 3) % matrix.COUNT)
    by_hand = plans.random_plan(model, 2, 1, kinds=("rows",))
    del by_hand.shards[::2]
    folder = artifact.compile_model(model, by_hand, tmp_path / "model")
    written = json.loads((folder / "plan.json").read_text())["shards"]
    whole = Plan(2, [Shard(s["table"], tuple(s["rows"]), tuple(s["cols"]), tuple(s["devices"]))
                     for s in written])
    assert all(shard in whole.shards for shard in by_hand.shards)
    compare_step(folder, model, whole, generator)


def test_everything_replicated(tmp_path, generator):
    model = matrix.model((matrix.seed() + 7) % matrix.COUNT)
    plan = plans.random_plan(model, 4, 1, kinds=("replicated",))
    run_step(model, plan, tmp_path / "model", generator)


@pytest.mark.parametrize(("devices", "emulated"), [(2, False), (3, False), (3, True)],
                         ids=lambda value: str(value))
def test_hot_rows_on_all_devices(devices, emulated, tmp_path, generator):
    """The first rows of each table have a copy on each device, the others are whole or cut."""
    model = model_for(11 + devices, emulated)
    plan = plans.random_plan(model, devices, matrix.seed(), kinds=("hot_rows",))
    assert all(any(shard.table == table.name and len(shard.devices) == devices for shard in plan.shards)
               for table in model.tables if table.rows > 1)
    folder = artifact.compile_model(model, plan, tmp_path / "model",
                                    *(artifact.EMULATED if emulated else ()))
    compare_step(folder, model, plan, generator, emulated)


@pytest.mark.parametrize(("devices", "emulated"), [(2, True), (3, False), (3, True), (5, False)],
                         ids=lambda value: str(value))
def test_sums_of_rows_of_replicated_tables(devices, emulated, tmp_path, generator):
    """In a large batch the rows of small tables have many gradients, so that their sums travel."""
    model = model_for(devices, emulated)
    plan = plans.random_plan(model, devices, 1, kinds=("replicated",))
    folder = artifact.compile_model(model, plan, tmp_path / "model",
                                    *(artifact.EMULATED if emulated else ()))
    with Session(folder, model, plan, emulated=emulated) as session:
        session.fill(generator, False)
        for step, size in enumerate((300, 2, 150), start=1):
            before = session.tables()
            session.sync_reference()
            jagged = session.random_batch(size, generator, False)
            results, contexts = session.wait_results(jagged)
            gradients = [random_values(r.shape, generator, False, r.dtype) for r in results]
            got = session.update(jagged, contexts, gradients, 0.125, step)
            session.check_update(before, jagged, gradients, 0.125, step)
            session.check_weight_gradients(before, jagged, gradients, got)


@pytest.mark.parametrize("emulated", [False, True], ids=["cpu", "emulated"])
def test_copies_keep_the_same_bits_beside_other_tables(emulated, tmp_path, generator):
    """Two rows of a copied table have most ids of a batch, and one device has another table: what it
    sorts before them must not change the order in which their gradients are added."""
    devices, batch, hot = 2, 1200, 2
    tables = [Table(name, rows, 4, "f32", Optimizer("adagrad"))
              for name, rows in (("alone", 50), ("copied", 40_000))]
    model = Model(tables, [Input("batch", ("alone", "copied"),
                                 tuple(Lookup(table.name, table.name) for table in tables))])
    plan = Plan(devices, [Shard("alone", (0, 50), (0, 4), (0,)),
                          Shard("copied", (0, 40_000), (0, 4), tuple(range(devices)))])
    folder = artifact.compile_model(model, plan, tmp_path / "model",
                                    *(artifact.EMULATED if emulated else ()))
    one = torch.ones(batch, dtype=torch.int64)
    read = torch.arange(hot).repeat(devices)  # by each device
    with Session(folder, model, plan, emulated=emulated) as session:
        session.fill(generator, False)
        for step in range(1, 6):
            some = torch.randint(0, 4, (batch,), generator=generator)
            jagged = [from_features(
                [(torch.randint(0, 50, (int(some.sum()),), generator=generator), some, None),
                 (torch.randint(0, hot, (batch,), generator=generator), one, None)], "i64", False)]
            _, contexts = session.wait_results(jagged)
            gradients = [random_values((batch, 4), generator, False) for _ in tables]
            session.update(jagged, contexts, gradients, 0.125, step)
            results, _ = session.wait_results([from_features(
                [(read, one[:len(read)], None)] * 2, "i64", False)])
            first, *others = results[1].split(hot)
            for other in others:
                assert torch.equal(first, other), f"copies differ after step {step}"


def test_threads_do_not_change_a_bit(tmp_path, generator):
    model = matrix.model((matrix.seed() + 9) % matrix.COUNT)
    plan = plans.random_plan(model, 2, f"threads {matrix.seed()}")
    folder = artifact.compile_model(model, plan, tmp_path / "model")
    state = generator.get_state()
    outcomes = [outcome(folder, model, plan, threads, generator.set_state(state))
                for threads in (1, 3)]
    assert len(outcomes[0]) == len(outcomes[1])
    for one, other in zip(*outcomes):
        assert torch.equal(one, other)


def outcome(folder, model, plan, threads, generator):
    """Results of a step and the tables after it."""
    with Session(folder, model, plan, threads) as session:
        session.fill(generator, False)
        jagged = session.random_batch(300, generator, False)
        results, contexts = session.wait_results(jagged)
        gradients = [random_values(r.shape, generator, False, r.dtype) for r in results]
        session.update(jagged, contexts, gradients, 0.125, 1)
        tables = [array for weights, states in session.tables().values()
                  for array in (weights, *states)]
        return [*results, *tables]
