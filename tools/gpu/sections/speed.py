"""Measures speed beside torch, Triton and FBGEMM, as a share of a copy's rate in the same run."""

import torch

import speed_checks
import timing
from contenders import (LEARNING_RATE, Fbgemm, FixedPooling, Ours, TorchBags, TritonContender,
                        importable)
from inputs import make_features, make_sets, number_of_sets, touched_bytes, unique_rows
from points import DLRM_BATCH, DLRM_ROWS, TABLES, as_json, dlrm_features, dlrm_name, listed, tiny
from support.model import DTYPES

POINT_BUDGET_S = 0.35  # of samples, per direction
GIB = 2**30


def run(context):
    context.attempt("copy", lambda: {"bytes_per_s": timing.copy_bandwidth(context.machine),
                                     "clocks": context.machine.clocks()})
    points = tiny() if context.dry else listed()
    for program in dict.fromkeys(point.program for point in points):
        left = [point for point in points
                if point.program == program and point.name not in context.records]
        if left:
            measure_program(context, left)
        if program == points[0].program:
            measure_dlrm(context)  # the other of the two goals that are times
    context.attempt("copy_at_the_end", lambda: {
        "bytes_per_s": timing.copy_bandwidth(context.machine),
        "clocks": context.machine.clocks()})


def measure_program(context, points):
    """All points that share tables; these are made once."""
    machine, first = context.machine, points[0]
    needed, free = first.table_bytes + machine.spare_bytes(), machine.free_bytes()
    if needed > free:
        for point in points:
            context.attempt(point.name, lambda point=point: {
                "point": as_json(point), "skipped":
                f"needs {needed / GIB:.1f} GiB, {free / GIB:.1f} are free"})
        return
    weights = torch.empty((TABLES * first.rows, first.dim), dtype=DTYPES[first.dtype],
                          device=machine.place)
    weights.uniform_(-0.01, 0.01)
    state = torch.zeros(TABLES * first.rows, device=machine.place)
    for point in points:
        context.attempt(point.name,
                        lambda point=point: Measurement(context, point, weights, state).run())


class Measurement:
    """One point: all contenders on the same tables and sets of inputs."""

    def __init__(self, context, point, weights, state):
        self.context, self.machine, self.point = context, context.machine, point
        self.weights, self.state = weights, state
        self.tables = list(zip(weights.chunk(TABLES), state.chunk(TABLES)))
        self.errors, self.contenders = {}, []

    def run(self):
        point, machine = self.point, self.machine
        count = 2 if machine.dry else number_of_sets(
            3 * point.step_bytes(), touched_bytes(point),
            machine.free_bytes() - machine.spare_bytes())
        self.sets = make_sets(point, TABLES, count, machine.place)
        unique = unique_rows(point, TABLES, self.sets[0].ids)
        values = {"point": as_json(point), "sets": len(self.sets), "unique_rows": unique,
                  "bytes": {"forward": point.forward_bytes(),
                            "backward": point.backward_bytes(unique)},
                  "clocks": machine.clocks(), "errors": self.errors}
        try:
            self.open()
            values["forward_ms"] = self.time({
                one.name: (one.forward, True) for one in self.contenders})
            values["step_ms"] = self.time({
                one.name: (one.step, one.graph_step) for one in self.contenders
                if not isinstance(one, FixedPooling)})
            values["update_ms"] = self.time_update()
            for one in self.contenders:
                if isinstance(one, Ours):
                    one.check()
        finally:
            for one in self.contenders:
                one.close()
        return values

    def open(self):
        """Those that compute what they should."""
        point, machine, bags = self.point, self.machine, self.point.bags
        artifact = self.context.artifacts / "speed" / point.program
        makers = {
            Ours: lambda: Ours(artifact, machine, self.tables, self.sets, bags),
            FixedPooling: lambda: FixedPooling(artifact, machine, self.tables, self.sets, bags,
                                               fixed=point.ids),
            TorchBags: lambda: TorchBags(self.weights.chunk(TABLES), self.sets, bags),
            TritonContender: lambda: TritonContender(self.weights, self.state),
            Fbgemm: lambda: Fbgemm(point, self.weights, machine.dry)}
        for kind, package in ((TritonContender, "triton"), (Fbgemm, "fbgemm_gpu")):
            if not importable(package):
                del makers[kind]
        if Fbgemm in makers and point.table_bytes + machine.spare_bytes() > machine.free_bytes():
            del makers[Fbgemm]
            self.errors[Fbgemm.name] = "no room for tables of its own"
        for kind, make in makers.items():
            reason = self.context.blamed.get((point.name, kind.name))
            if reason is None:
                self.guarded(kind.name, lambda make=make: self.add(make()))
            else:
                self.errors[kind.name] = reason
        self.context.running(None)

    def add(self, contender):
        try:
            self.check(contender)
        except BaseException:
            contender.close()
            raise
        self.contenders.append(contender)

    def check(self, contender):
        given = self.sets[0]
        speed_checks.poison(given)
        contender.forward(given)
        speed_checks.check_forward([weights for weights, _ in self.tables], given,
                                   self.point.bags, contender.results(given))
        if contender.shares_tables and not isinstance(contender, FixedPooling):
            expected = speed_checks.StepCheck(self.tables, given, self.point.bags,
                                              self.point.ids, LEARNING_RATE)
            contender.step(given)
            expected.compare()

    def guarded(self, name, function):
        """The result of `function`; None and a note if it fails. A contender after which the GPU no
        longer works is left out when another process tries again."""
        try:
            self.context.running(name)
            return function()
        except Exception as error:
            self.errors[name] = f"{type(error).__name__}: {error}"[:300]
            error.__traceback__ = None
            self.context.check_alive()
            return None

    def time(self, runs):
        """Samples in ms of each of name -> (function of a set, whether it can be captured)."""
        calls = {}
        for name, (function, capturable) in runs.items():
            bound = [lambda given=given, function=function: function(given)
                     for given in self.sets]
            call = capturable and self.guarded(name, lambda b=bound: self.machine.capture(b))
            if not call:
                if capturable:
                    self.errors[name] = f"not captured, timed without: {self.errors[name]}"
                call = together(bound)
            calls[name] = call
        self.context.running(None)
        samples, errors = timing.time_in_turn(self.machine, calls, len(self.sets), POINT_BUDGET_S)
        self.errors.update(errors)
        self.context.check_alive()
        return samples

    def time_update(self):
        """Our update alone, its sort not counted: what is left when the forward hides it."""
        ours = next((one for one in self.contenders if type(one) is Ours), None)
        if ours is None:
            return {}
        name, given = f"{ours.name}, update", self.sets[0]

        def sample():
            sort = self.machine.capture([lambda: ours.sort(given)])
            update = self.machine.capture([lambda: ours.backward(given)], warm_up=0)
            samples = []
            for _ in range(1 if self.machine.dry else timing.LEAST_SAMPLES):
                sort()
                samples.append(self.machine.time_ms(update, 1))
            return {ours.name: samples}

        found = self.guarded(name, sample) or {}
        self.context.running(None)
        return found


def together(runs):
    """The same without a graph, for what cannot be captured."""
    def call():
        for run in runs:
            run()
    return call


def measure_dlrm(context):
    """The forward of MLPerf DLRM-v2 with all of its tables on one GPU; where they do not fit, of
    tables cut down to as many rows as do, which is another point and no answer to the goal."""
    for cap in DLRM_ROWS:
        context.attempt(dlrm_name(cap), lambda cap=cap: dlrm_values(context, cap))
        if "skipped" not in context.records.items[dlrm_name(cap)]:
            return


def dlrm_values(context, cap):
    machine = context.machine
    features = dlrm_features(50 if machine.dry else cap)
    if machine.dry:
        features = [(rows, dim, min(pooling, 2)) for rows, dim, pooling in features]
    batch = 16 if machine.dry else DLRM_BATCH
    table_bytes = sum(rows * (dim + 1) * 4 for rows, dim, _ in features)
    needed, free = table_bytes + 2 * machine.spare_bytes(), machine.free_bytes()
    values = {"point": {"batch": batch, "rows_at_most": cap, "table_bytes": table_bytes}}
    if needed > free:
        return {**values, "skipped": f"needs {needed / GIB:.1f} GiB, {free / GIB:.1f} are free"}
    tables = [torch.empty((rows, dim), device=machine.place).uniform_(-0.01, 0.01)
              for rows, dim, _ in features]
    states = [torch.zeros(len(table), device=machine.place) for table in tables]
    sets = make_features(features, batch, 2, machine.place)
    makers = {Ours: lambda: Ours(context.artifacts / "speed" / dlrm_name(cap), machine,
                                 list(zip(tables, states)), sets, batch),
              TorchBags: lambda: TorchBags(tables, sets, batch)}
    contenders, calls, blamed = [], {}, {}
    try:
        for kind, make in makers.items():
            if reason := context.blamed.get((dlrm_name(cap), kind.name)):
                blamed[kind.name] = reason
                continue
            context.running(kind.name)
            one = make()
            contenders.append(one)
            speed_checks.poison(sets[0])
            one.forward(sets[0])
            speed_checks.check_forward(tables, sets[0], batch, one.results(sets[0]))
            calls[one.name] = machine.capture([lambda given=given, one=one: one.forward(given)
                                               for given in sets])
        context.running(None)
        forward, errors = timing.time_in_turn(machine, calls, len(sets), POINT_BUDGET_S)
        contenders[0].check()
    finally:
        for one in contenders:
            one.close()
    size = sum(batch * (pooling * (dim * 4 + 8) + 8 + dim * 4) for _, dim, pooling in features)
    return {**values, "forward_ms": forward, "bytes": {"forward": size},
            "errors": {**blamed, **errors}, "clocks": machine.clocks()}
