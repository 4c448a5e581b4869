"""Speed beside torch, Triton and FBGEMM, as a share of what a copy reaches in the same run."""

import time

import torch

import timing
from contenders import Fbgemm, Ours, TorchBags, TritonContender, importable
from inputs import make_features, make_sets, number_of_sets, unique_rows
from machine import Machine
from points import TABLES, as_json, dlrm_features, listed, tiny
from support.model import DTYPES

POINT_BUDGET_S = 0.35  # of samples, per direction
SPARE_BYTES = 3 << 30
DLRM, DLRM_BATCH = "dlrm_v2_forward", 65536


def run(context):
    machine = Machine(context.dry)
    records = context.records("speed")
    if "copy" not in records and not context.dry:
        records.add("copy", bytes_per_s=timing.copy_bandwidth())
    points = tiny() if context.dry else listed()
    for program in dict.fromkeys(point.program for point in points):
        left = [point for point in points
                if point.program == program and point.name not in records]
        if left:
            measure_program(context, machine, records, left)
    if DLRM not in records:
        records.add(DLRM, **measure_dlrm(context, machine))
    if not context.dry:
        records.add("copy_at_the_end", bytes_per_s=timing.copy_bandwidth())


def measure_program(context, machine, records, points):
    """All points that share tables; these are made once."""
    needed = points[0].table_bytes + SPARE_BYTES * (not machine.dry)
    if needed > machine.free_bytes():
        for point in points:
            records.add(point.name, point=as_json(point),
                        skipped=f"its tables take {points[0].table_bytes / 2**30:.1f} GiB and "
                        f"{machine.free_bytes() / 2**30:.1f} are free")
        return
    rows = TABLES * points[0].rows
    weights = torch.empty((rows, points[0].dim), dtype=DTYPES[points[0].dtype],
                          device=machine.place)
    weights.uniform_(-0.01, 0.01)
    state = torch.zeros(rows, device=machine.place)
    for point in points:
        begin = time.monotonic()
        try:
            values = measure(context, machine, point, weights, state)
        except torch.OutOfMemoryError as error:
            values = {"skipped": f"out of memory: {error}"[:200]}
        records.add(point.name, point=as_json(point), wall_s=time.monotonic() - begin, **values)


def measure(context, machine, point, weights, state):
    touched = min(point.forward_bytes(), point.table_bytes)
    sets = make_sets(point, TABLES, number_of_sets(
        3 * point.step_bytes(), touched, machine.free_bytes() - SPARE_BYTES), machine.place)
    tables = list(zip(weights.chunk(TABLES), state.chunk(TABLES)))
    artifact = context.artifacts / "speed" / point.program
    ours = Ours(artifact, machine, tables, sets, point.bags)
    if machine.dry:
        return run_once(ours, sets)
    values = {"sets": len(sets), "unique_rows": unique_rows(point, TABLES, sets[0].ids)}
    values["bytes"] = {"forward": point.forward_bytes(),
                       "backward": point.backward_bytes(values["unique_rows"])}
    values["errors"] = {}
    fixed = Ours(artifact, machine, tables, sets, point.bags, fixed=point.ids)
    others = make_others(point, weights, state, sets, machine, values["errors"])
    forwards = {contender.name: (contender.forward, contender.graph_forward)
                for contender in [ours, *others]}
    forwards["neuroshard, fixed pooling"] = (fixed.forward, True)
    values["forward_ms"] = measure_runs(forwards, sets, values["errors"])
    steps = {contender.name: (contender.step, contender.graph_step)
             for contender in [ours, *others]}
    values["step_ms"] = measure_runs(steps, sets, values["errors"])
    values["update_ms"] = measure_update(ours, sets, values["errors"])
    for contender in [ours, fixed, *others]:
        contender.close()
    return values


def make_others(point, weights, state, sets, machine, errors):
    others = []
    makers = {"torch.nn.EmbeddingBag": lambda: TorchBags(weights.chunk(TABLES), sets, point.bags),
              "Triton": lambda: TritonContender(weights, state)}
    if importable("fbgemm_gpu") and point.table_bytes + SPARE_BYTES < machine.free_bytes():
        makers["FBGEMM"] = lambda: Fbgemm(point)
    for name, make in makers.items():
        try:
            others.append(make())
        except Exception as error:  # one that is not there must not end the run
            errors[name] = f"{type(error).__name__}: {error}"[:300]
    return others


def measure_runs(runs, sets, errors):
    """Samples in ms of each of name -> (function of a set, whether it can be captured)."""
    calls = {}
    for name, (function, capturable) in runs.items():
        bound = [lambda given=given, function=function: function(given) for given in sets]
        try:
            calls[name] = timing.capture(bound) if capturable else timing.together(bound)
        except Exception as error:
            torch.cuda.synchronize()
            errors[name] = f"{type(error).__name__}: {error}"[:300]
    return timing.time_in_turn(calls, len(sets), POINT_BUDGET_S)


def measure_update(ours, sets, errors):
    """Our update alone, its sort not counted: what is left when the forward hides it."""
    try:
        ours.sort(sets[0])
        replay = timing.capture([lambda: ours.backward(sets[0])])
        return timing.time_in_turn({ours.name: replay}, 1, POINT_BUDGET_S / 2)
    except Exception as error:
        errors["update"] = f"{type(error).__name__}: {error}"[:300]
        return {}


def run_once(ours, sets):
    """A dry run: everything is called, nothing is timed."""
    for given in sets:
        ours.forward(given)
        ours.step(given)
    ours.close()
    return {"sets": len(sets)}


def measure_dlrm(context, machine):
    """The forward of MLPerf DLRM-v2 with all of its tables on one GPU."""
    features = dlrm_features()
    if machine.dry:
        features = [(min(rows, 50), dim, min(pooling, 2)) for rows, dim, pooling in features]
    batch = 16 if machine.dry else DLRM_BATCH
    table_bytes = sum(rows * dim * 4 for rows, dim, _ in features)
    if table_bytes + SPARE_BYTES * (not machine.dry) > machine.free_bytes():
        return {"skipped": f"its tables take {table_bytes / 2**30:.1f} GiB, "
                f"{machine.free_bytes() / 2**30:.1f} are free"}
    tables = [torch.empty((rows, dim), device=machine.place).uniform_(-0.01, 0.01)
              for rows, dim, _ in features]
    states = [torch.zeros(len(table), device=machine.place) for table in tables]
    sets = make_features(features, batch, 2, machine.place)
    ours = Ours(context.artifacts / "speed" / "dlrm_v2", machine, list(zip(tables, states)), sets,
                batch)
    errors = {}
    if machine.dry:
        ours.forward(sets[0])
        ours.close()
        return {"sets": len(sets)}
    others = TorchBags(tables, sets, batch)
    forward = measure_runs({one.name: (one.forward, True) for one in (ours, others)}, sets, errors)
    ours.close()
    size = sum(batch * (pooling * (dim * 4 + 8) + 8 + dim * 4) for _, dim, pooling in features)
    return {"forward_ms": forward, "bytes": {"forward": size}, "errors": errors,
            "point": {"batch": batch}}
