"""Exchanges in two hops, on the devices of two or more nodes."""

import itertools
import json
from dataclasses import replace

import pytest

import torch

from support import artifact, batch as batches, matrix, oracle, plans
from support.batch import random_values
from support.model import Input, Lookup, Model, Optimizer, Plan, Shard, Table
from support.session import Session

KINDS = ("rows", "rows_and_columns", "copies_of_rows_and_columns", "rows")


def adds_up(plan, table):
    """Whether a node has row shards of the table on two of its devices."""
    size = plan.devices // plan.groups
    shards = [s for s in plan.shards_of(table.name) if len(s.devices) == 1]
    return any(a.devices[0] < b.devices[0] and a.devices[0] // size == b.devices[0] // size
               and a.cols[0] < b.cols[1] and b.cols[0] < a.cols[1]
               for a in shards for b in shards)


def set_routes(plan, model, route):
    """The route of each table: the same for all, or each in turn. Results without pooling, and of
    copies, have no relays."""
    pooled = {lookup.table for input_ in model.inputs for lookup in input_.lookups
              if lookup.pooling != "unpooled"}
    for number, table in enumerate(model.tables):
        chosen = ("relay", "direct", "auto")[number % 3] if route == "in turn" else route
        if chosen == "relay" and (table.name not in pooled or plan.has_copies(table.name)):
            continue
        plan.shards = [replace(shard, route=chosen) if shard.table == table.name else shard
                       for shard in plan.shards]


def describe(devices, groups):
    model = matrix.narrow((matrix.seed() + devices) % matrix.COUNT)
    for attempt in itertools.count():
        plan = plans.random_plan(model, devices, f"relay {matrix.seed()} {groups} {attempt}",
                                 kinds=KINDS)
        plan.groups = groups
        if any(adds_up(plan, table) for table in model.tables):
            return model, plan


@pytest.mark.parametrize(("devices", "groups", "route", "emulated"), [
    (8, 2, "auto", False), (4, 2, "relay", False), (4, 2, "direct", False),
    (8, 4, "in turn", False), (4, 2, "in turn", True)], ids=str)
def test_steps(devices, groups, route, emulated, tmp_path, generator):
    model, plan = describe(devices, groups)
    set_routes(plan, model, route)
    folder = artifact.compile_model(model, plan, tmp_path / "model",
                                    *(artifact.EMULATED if emulated else ()))
    size = devices // groups
    assert json.loads((folder / "manifest.json").read_text())["groups"] == [
        list(range(node * size, (node + 1) * size)) for node in range(groups)]
    with Session(folder, model, plan, emulated=emulated) as session:
        for step, batch in enumerate((23, 1, 13), start=1):
            integers = step == 1
            if step <= 2:
                session.fill(generator, integers)
            before = session.tables()
            session.sync_reference()
            jagged = session.random_batch(batch, generator, integers)
            results, contexts = session.wait_results(jagged)
            session.check_forward(jagged, results, integers)
            gradients = [random_values(r.shape, generator, integers, r.dtype) for r in results]
            got = session.update(jagged, contexts, gradients, 0.125, step)
            session.check_update(before, jagged, gradients, 0.125, step)
            session.check_weight_gradients(before, jagged, gradients, got)


def wide():
    """1,024 columns of results by relay, on two nodes of two devices."""
    lookups = tuple(Lookup(feature, "t", pooling) for feature in "ab" for pooling in ("sum", "mean"))
    model = Model([Table("t", 40, 256, optimizer=Optimizer("adagrad", initial_accumulator=0.5))],
                  [Input("ids", ("a", "b"), lookups)])
    shards = [Shard("t", (10 * d, 10 * d + 10), (0, 256), (d,)) for d in range(4)]
    return model, Plan(4, shards, groups=2)


@pytest.mark.parametrize(("wire", "emulated", "batch"), [
    ("f32", True, 4103), ("int8", False, 16447)], ids=str)
def test_many_samples_come_in_pieces(wire, emulated, batch, tmp_path, generator):
    """Of 8 MiB that a relay sends there are two pieces (Artifact/RelayPieces.h). The results of a
    sample do not depend on it, nor on other samples."""
    model, plan = wide()
    folder = artifact.compile_model(model, plan, tmp_path / "model", "--wire-type", wire,
                                    *(artifact.EMULATED if emulated else ()))
    with Session(folder, model, plan, emulated=emulated) as session:
        session.fill(generator, True)
        before = session.tables()
        session.sync_reference()
        jagged = session.random_batch(batch, generator, True)
        results, contexts = session.wait_results(jagged)
        if wire != "f32":
            parts = [session.wait_results([part])[0] for part in batches.split(jagged[0], 5)]
            for k, result in enumerate(results):
                oracle.assert_same_bits(result, torch.cat([part[k] for part in parts]), k)
            return
        session.check_forward(jagged, results, True)
        gradients = [random_values(r.shape, generator, True, r.dtype) for r in results]
        session.update(jagged, contexts, gradients, 0.125, 1)
        session.check_update(before, jagged, gradients, 0.125, 1)
