"""Numbers that Python's functions take: every field of the records of a problem, and every option of
plan(), refuses what is no number and what is out of its range, and names field and value."""

import dataclasses
import math

import pytest

import neuroshard as ns
from neuroshard.planning import OPTIONS
from support.planning import small_problem

NO_NUMBERS = ("1", b"1", True, 1j, None, (), math.nan, math.inf, -math.inf, 10**400)
PLAN = ns.Plan(device_count=2, shards=[])
REUSE = [1.0, *[0.0] * 16]

# A record of each class that people fill, from changes of its fields.
RECORDS = {
    "Access": lambda **c: ns.Access(**{"batch": 8, "reuse": REUSE, **c}),
    "Batch": lambda **c: ns.Batch(**{"global_size": 8, **c}),
    "CacheRun": lambda **c: ns.CacheRun(**{"rows": 4, "hits": 2, "written": 1, "wait_ms": 0.5, **c}),
    "Device": lambda **c: ns.Device(**{"device_class": "CPU", "memory_bytes": 1 << 30, **c}),
    "Disk": lambda **c: ns.Disk(**c),
    "DynamicIds": lambda **c: ns.DynamicIds(**c),
    "Feature": lambda **c: ns.Feature(**{"name": "f", "table": "user", "mean_pooling": 2, **c}),
    "FeatureStatistics": lambda **c: ns.FeatureStatistics(**{"feature": "user", **c}),
    "Host": lambda **c: ns.Host(**{"memory_bytes": 1 << 30, **c}),
    "Level": lambda **c: ns.Level(**{"name": "node", "groups": [2], "bandwidth_gb_per_s": 1.0,
                                     "latency_us": 1.0, **c}),
    "Objective": lambda **c: ns.Objective(**c),
    "Optimizer": lambda **c: ns.Optimizer(**{"kind": "adam", **c}),
    "Place": lambda **c: ns.Place(**{"table": "user", "devices": 0, **c}),
    "Plan": lambda **c: ns.Plan(**{"device_count": 2, "shards": [], **c}),
    "PublishedSettings": lambda **c: ns.PublishedSettings(**c),
    "Reserves": lambda **c: ns.Reserves(**c),
    "RowMass": lambda **c: ns.RowMass(**{"row_share": 0.5, "lookup_share": 0.9, **c}),
    "Run": lambda **c: ns.Run(**{"steps": 1, "devices": [], "caches": {}, **c}),
    "Shard": lambda **c: ns.Shard(**{"table": "user", "rows": (0, 1), "cols": (0, 4),
                                     "devices": 0, **c}),
    "ShardingProblem": lambda **c: small_problem(**c),
    "Snapshot": lambda **c: ns.Snapshot(**{"name": "day", **c}),
    "Table": lambda **c: ns.Table(**{"name": "user", "rows": 10, "dim": 4, **c}),
    "TableRule": lambda **c: ns.TableRule(**{"table": "user", **c}),
    "WarmStart": lambda **c: ns.WarmStart(**{"previous": PLAN, **c}),
}
# What the planner makes, not people.
RESULTS = {"Breakdown", "CacheCost", "DeviceCost", "DeviceMemory", "Memory", "Migration", "PlanResult",
           "PredictionInterval", "Provenance", "SnapshotCost", "TableMove"}


def numeric_fields(name):
    return [one.name for one in dataclasses.fields(getattr(ns, name))
            if one.type.startswith(("int", "float", "tuple[int", "tuple[float"))]


def refusal(make):
    """The text of the error, which must be one of a value or a type."""
    with pytest.raises((ValueError, TypeError)) as caught:
        make()
    return str(caught.value)


def test_every_record_with_numbers_is_here():
    records = {name for name in ns.__all__ if dataclasses.is_dataclass(getattr(ns, name, None))
               and numeric_fields(name)}
    assert records - RESULTS == set(RECORDS)
    assert sum(len(numeric_fields(name)) for name in RECORDS) > 40


@pytest.mark.parametrize("name", RECORDS)
def test_no_numbers(name):
    for field in numeric_fields(name):
        kind = next(one.type for one in dataclasses.fields(getattr(ns, name)) if one.name == field)
        for value in NO_NUMBERS:
            if (value is None and "None" in kind) or (value == () and kind.startswith("tuple")):
                continue
            if kind.startswith("tuple") and value == "1":
                continue
            text = refusal(lambda: RECORDS[name](**{field: value}))
            assert field in text, (name, field, value, text)


def problem_with(name, changes):
    """A problem with this record in it."""
    record = RECORDS[name](**changes)
    problem = small_problem()
    first, *others = problem.tables
    feature, *features = problem.features
    devices = problem.topology
    return {
        "Access": lambda: problem.replace(tables=[first.replace(access=record), *others]),
        "Batch": lambda: problem.replace(batch=record),
        "Device": lambda: problem.replace(topology=devices.replace(
            devices=[record, *devices.devices[1:]])),
        "Disk": lambda: problem.replace(topology=devices.replace(hosts=[
            ns.Host(memory_bytes=1 << 30, disk=record)])),
        "Feature": lambda: problem.replace(features=[
            feature.replace(**{one.name: getattr(record, one.name)
                               for one in dataclasses.fields(record)
                               if one.name not in ("name", "table")}), *features]),
        "FeatureStatistics": lambda: problem.replace(snapshots=[ns.Snapshot("day", features=[
            record.replace(feature=feature.name)])]),
        "Host": lambda: problem.replace(topology=devices.replace(hosts=[record])),
        "Level": lambda: problem.replace(topology=devices.replace(levels=[record])),
        "Optimizer": lambda: problem.replace(tables=[first.replace(optimizer=record), *others]),
        "Place": lambda: problem.replace(constraints=ns.Constraints(
            pins=[record.replace(table=first.name)])),
        "Reserves": lambda: problem.replace(constraints=ns.Constraints(reserves=record)),
        "RowMass": lambda: problem.replace(tables=[first.replace(
            access=ns.Access(batch=8, reuse=REUSE, row_mass=[record])), *others]),
        "ShardingProblem": lambda: record,
        "Snapshot": lambda: problem.replace(snapshots=[record]),
        "Table": lambda: problem.replace(tables=[record.replace(name=first.name), *others]),
        "TableRule": lambda: problem.replace(constraints=ns.Constraints(
            tables=[record.replace(table=first.name)])),
    }[name]()


HUGE = 10**29
OUTSIDE = {
    "Access.batch": (-1, 2**31 + 1, HUGE), "Batch.global_size": (0, -1, 2**31 + 1, HUGE),
    "Batch.input_copies": (0, -1, 17, HUGE), "Batch.backwards": (0, -1, 1025, HUGE),
    "Device.memory_bytes": (0, -1, HUGE),
    "Device.host": (-1, 99, HUGE), "Disk.bytes": (-1, HUGE),
    "Disk.reads_per_second": (-1, 1e13, 1e308), "Disk.bandwidth_gb_per_s": (-1, 1e13, 1e308),
    "Feature.mean_pooling": (-1, 1e7, 1e308, HUGE),
    "Feature.p99_pooling": (-1, 1e308, HUGE), "Feature.presence": (-0.5, 1.5, 1e308),
    "Feature.batch": (-1, 2**31 + 1, HUGE), "FeatureStatistics.mean_pooling": (-1, 1e308),
    "FeatureStatistics.p99_pooling": (-1, 1e308), "FeatureStatistics.presence": (-0.5, 1.5),
    "Host.memory_bytes": (-1, HUGE), "Level.bandwidth_gb_per_s": (0, -1, 1e31, HUGE * 100),
    "Level.latency_us": (-1, 1e31), "Level.group_bandwidth_gb_per_s": (-1, 1e31, HUGE * 100),
    "Optimizer.eps": (-1, 1e308),
    "Optimizer.beta1": (-0.5, 1, 1e308), "Optimizer.beta2": (-0.5, 1, 1e308),
    "Optimizer.initial_accumulator": (-1, 1e308), "Optimizer.weight_decay": (-1, 1e308),
    "Optimizer.l1_penalty": (-1, 1e308), "Optimizer.l2_penalty": (-1, 1e308),
    "Optimizer.eta": (-1, 1e308), "Optimizer.max_gradient": (-1, 1e308),
    "Optimizer.counter_halflife": (-3, 1e308), "Optimizer.adjustment_iter": (-2, 1e308), "Optimizer.adjustment_ub": (-1, 1e308),
    "Reserves.dense_bytes": (-1, HUGE), "Reserves.fragmentation_bytes": (-1, HUGE),
    "Reserves.communicator_bytes": (-1, HUGE), "RowMass.row_share": (-0.5, 1.5, 1e308),
    "RowMass.lookup_share": (-0.5, 1.5, 1e308),
    "ShardingProblem.cache_load_factor": (-1, 1.5, 1e308), "Snapshot.weight": (-1, 0, 1e10, 1e308),
    "Table.rows": (0, -1, 2**48 + 1, HUGE), "Table.dim": (0, -1, 2**20 + 1, HUGE),
    "Table.id_candidates": (-1, 2**48 + 1, HUGE),
    "TableRule.min_width": (-1, HUGE), "TableRule.sync_every": (-1, 10**9 + 1, HUGE),
    "TableRule.cache_share": (-0.5, 1.5, 1e308),
    "Place.devices": ([-1], [99], [HUGE]), "Level.groups": ([0], [-2, 4], [HUGE]),
    "Access.reuse": ([-1.0] * 17, [1e308] * 17),
}


@pytest.mark.parametrize("field", OUTSIDE)
def test_numbers_out_of_range(field):
    name, field = field.split(".")
    for value in OUTSIDE[f"{name}.{field}"]:
        text = refusal(lambda: problem_with(name, {field: value}))
        assert field in text.replace("groups[0]", "groups"), (value, text)


def test_every_field_of_a_problem_has_a_range():
    made = set(RECORDS) - {"CacheRun", "DynamicIds", "Objective", "Plan", "PublishedSettings", "Run", "Shard",
                           "WarmStart"}
    assert {f"{name}.{field}" for name in made for field in numeric_fields(name)} == set(OUTSIDE)


SCOPES = {"published": {"algorithm": "published"}, "dreamshard": {"algorithm": "dreamshard"}}


@pytest.mark.parametrize("key", [key for key, row in OPTIONS.items() if row["kind"] != "text"])
def test_options_of_a_search(key):
    row = OPTIONS[key]

    def call(value):
        given = {key: value}
        if key in {one.name for one in dataclasses.fields(ns.PublishedSettings)}:
            given = {"published": ns.PublishedSettings(**given)}
        elif key in {one.name for one in dataclasses.fields(ns.WarmStart)}:
            given = {"warm_start": ns.WarmStart(PLAN, **given)}
        elif key in {one.name for one in dataclasses.fields(ns.Objective)}:
            given = {"objective": ns.Objective(**given)}
        ns.plan(small_problem(), progress=False, **SCOPES.get(row["scope"], {}), **given)

    step = 0.5 if row["kind"] == "number" else 1
    beyond = int(row["high"]) * 2 if row["kind"] == "whole" else row["high"] * 2
    for value in ("1", True, math.nan, 10**400, row["low"] - step, -HUGE, beyond, HUGE):
        text = refusal(lambda: call(value))
        assert key in text, (value, text)


@pytest.mark.parametrize("devices", [0, -1, "2", 1.5, True, [0], [10**30], 65537, math.nan])
def test_device_counts_of_what_if(devices):
    assert "device" in refusal(lambda: ns.what_if(small_problem(), devices=devices))
